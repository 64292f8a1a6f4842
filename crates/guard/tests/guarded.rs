//! Faults of every kind, nested and on several threads.

use guard::{Fault, FaultKind, guarded_call, guarded_exit, unguarded};
use std::arch::asm;
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

/// Address space that stays reserved without access, so that "nothing readable here" cannot become untrue.
fn no_access_page() -> u64 {
    // SAFETY: a fresh private mapping.
    let page = unsafe {
        libc::mmap(ptr::null_mut(), 4096, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    };
    assert_ne!(page, libc::MAP_FAILED);
    page as u64
}

fn call(f: guard::GuardedFn, a: *mut c_void, b: u64, c: u64) -> Result<u32, Fault> {
    // SAFETY: the functions of this file own nothing where they fault.
    unsafe { guarded_call(f, a, b, c) }
}

unsafe extern "C" fn read(_: *mut c_void, address: u64, _: u64) -> u32 {
    let value: u32;
    // SAFETY: the fault is what is being tested.
    unsafe { asm!("mov {0:e}, [{1}]", out(reg) value, in(reg) address) };
    value
}

unsafe extern "C" fn write(_: *mut c_void, address: u64, value: u64) -> u32 {
    // SAFETY: as in `read`.
    unsafe { asm!("mov [{1}], {0:e}", in(reg) value, in(reg) address) };
    0
}

unsafe extern "C" fn divide(_: *mut c_void, b: u64, c: u64) -> u32 {
    let quotient: u64;
    // SAFETY: as in `read`.
    unsafe { asm!("xor edx, edx", "div {0}", in(reg) c, inout("rax") b => quotient, out("rdx") _) };
    quotient as u32
}

unsafe extern "C" fn trap(_: *mut c_void, _: u64, _: u64) -> u32 {
    // SAFETY: as in `read`.
    unsafe { asm!("ud2") };
    0
}

#[expect(unconditional_recursion, reason = "ends in the guard page")]
unsafe extern "C" fn recurse(_: *mut c_void, depth: u64, _: u64) -> u32 {
    let block = black_box([depth; 64]);
    // SAFETY: ends in the guard page.
    let below = unsafe { recurse(ptr::null_mut(), black_box(depth + 1), 0) };
    below.wrapping_add(block[black_box(3)] as u32)
}

#[test]
fn a_call_without_fault_returns_its_status() {
    unsafe extern "C" fn sum(a: *mut c_void, b: u64, c: u64) -> u32 {
        (a as u64 + b + c) as u32
    }
    assert_eq!(call(sum, ptr::without_provenance_mut(1), 20, 300), Ok(321));
}

#[test]
fn null_is_unmapped() {
    let fault = call(read, ptr::null_mut(), 0x10, 0).unwrap_err();
    assert_eq!((fault.kind, fault.address), (FaultKind::Unmapped, 0x10));
    let code = read as *const () as u64;
    assert!((code..code + 64).contains(&fault.pc), "{fault}");
}

#[test]
fn a_page_without_permission_is_protected() {
    let page = no_access_page();
    for f in [read as guard::GuardedFn, write] {
        let fault = call(f, ptr::null_mut(), page + 8, 1).unwrap_err();
        assert_eq!((fault.kind, fault.address), (FaultKind::Protected, page + 8));
    }
}

#[test]
fn an_address_that_is_not_canonical_is_a_general_fault() {
    let fault = call(read, ptr::null_mut(), 1 << 60, 0).unwrap_err();
    assert_eq!(fault.kind, FaultKind::General);
}

#[test]
fn division_and_traps() {
    assert_eq!(call(divide, ptr::null_mut(), 84, 2), Ok(42));
    assert_eq!(call(divide, ptr::null_mut(), 84, 0).unwrap_err().kind, FaultKind::Arithmetic);
    let fault = call(trap, ptr::null_mut(), 0, 0).unwrap_err();
    assert_eq!((fault.kind, fault.address), (FaultKind::IllegalInstruction, fault.pc));
}

#[test]
fn a_stack_without_end_overflows_on_every_thread_and_more_than_once() {
    for _ in 0..3 {
        assert_eq!(call(recurse, ptr::null_mut(), 0, 0).unwrap_err().kind, FaultKind::StackOverflow);
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    assert_eq!(
                        call(recurse, ptr::null_mut(), 0, 0).unwrap_err().kind,
                        FaultKind::StackOverflow
                    );
                }
            });
        }
    });
}

#[test]
fn an_inner_fault_leaves_the_outer_call_running() {
    unsafe extern "C" fn outer(inner: *mut c_void, b: u64, _: u64) -> u32 {
        let inner = call(read, inner, 0, 0).unwrap_err();
        assert_eq!(inner.kind, FaultKind::Unmapped);
        if b == 0 {
            return 7;
        }
        // SAFETY: faults by design.
        unsafe { divide(ptr::null_mut(), 1, 0) }
    }
    assert_eq!(call(outer, ptr::null_mut(), 0, 0), Ok(7));
    assert_eq!(call(outer, ptr::null_mut(), 1, 0).unwrap_err().kind, FaultKind::Arithmetic);
}

#[test]
fn an_exit_leaves_the_innermost_call() {
    unsafe extern "C" fn exit_deep(_: *mut c_void, status: u64, depth: u64) -> u32 {
        if black_box(depth) == 0 {
            // SAFETY: the frames of this function own nothing.
            unsafe { guarded_exit(status as u32) }
        }
        // SAFETY: as above.
        unsafe { exit_deep(ptr::null_mut(), status, depth - 1) + 1 }
    }
    unsafe extern "C" fn outer(_: *mut c_void, status: u64, depth: u64) -> u32 {
        call(exit_deep, ptr::null_mut(), status, depth).unwrap() * 2
    }
    assert_eq!(call(outer, ptr::null_mut(), 21, 10), Ok(42));
}

#[test]
fn callee_saved_registers_and_float_control_survive() {
    unsafe extern "C" fn clobber(_: *mut c_void, _: u64, _: u64) -> u32 {
        let flush = 0x8040_u32 | 0x1f80;
        // SAFETY: breaks what the guarded call restores, then faults.
        unsafe {
            asm!(
                "ldmxcsr [{0}]", "std",
                "xor ebx, ebx", "xor r12d, r12d", "xor r13d, r13d", "xor r14d, r14d", "xor r15d, r15d", "xor ebp, ebp",
                "mov eax, [rbx]",
                in(reg) &flush, options(noreturn)
            )
        }
    }
    fn mxcsr() -> u32 {
        let mut value = 0_u32;
        // SAFETY: stores four bytes into `value`.
        unsafe { asm!("stmxcsr [{0}]", in(reg) &mut value) };
        value & !0x3f // the status flags
    }
    let before = mxcsr();
    let values: Vec<u64> = (0..8).map(black_box).collect();
    assert_eq!(call(clobber, ptr::null_mut(), 0, 0).unwrap_err().kind, FaultKind::Unmapped);
    assert_eq!(mxcsr(), before);
    assert_eq!(values.iter().sum::<u64>(), 28);
}

#[test]
fn threads_fault_independently() {
    std::thread::scope(|scope| {
        for thread in 1..=8_u64 {
            scope.spawn(move || {
                for i in 0..500 {
                    let address = thread * 64 + i % 64;
                    assert_eq!(call(read, ptr::null_mut(), address, 0).unwrap_err().address, address);
                    assert_eq!(call(divide, ptr::null_mut(), thread * 2, 2), Ok(thread as u32));
                }
            });
        }
    });
}

#[test]
fn a_callback_runs_outside_the_guard_and_may_guard_again() {
    unsafe extern "C" fn with_callback(_: *mut c_void, _: u64, _: u64) -> u32 {
        let inner = unguarded(|| call(read, ptr::null_mut(), 0, 0).unwrap_err().kind as u32);
        // SAFETY: faults by design, in the outer guarded call again.
        inner + unsafe { divide(ptr::null_mut(), 1, 0) }
    }
    assert_eq!(call(with_callback, ptr::null_mut(), 0, 0).unwrap_err().kind, FaultKind::Arithmetic);
}
