//! The assembly for x86-64 under the System V ABI: entering and leaving a guarded call, and memory accesses at known
//! program counters.

use crate::{Fault, FaultKind, GuardedFn};
use std::arch::{asm, global_asm};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::offset_of;

/// One guarded call in progress: where to go when it ends early. Lives in the frame of `guarded_call`.
#[repr(C)]
pub struct Record {
    stack_pointer: u64,
    mxcsr: u32,
    x87_control: u16,
    /// A `FaultKind`, or 0.
    fault_kind: u64,
    fault_address: u64,
    fault_pc: u64,
    /// The call around this one on the same thread.
    pub outer: *mut Record,
}

impl Record {
    pub fn new() -> Self {
        Self {
            stack_pointer: 0,
            mxcsr: 0,
            x87_control: 0,
            fault_kind: 0,
            fault_address: 0,
            fault_pc: 0,
            outer: std::ptr::null_mut(),
        }
    }

    pub fn fault(&self) -> Option<Fault> {
        let kind = FaultKind::from_code(self.fault_kind)?;
        Some(Fault { kind, address: self.fault_address, pc: self.fault_pc })
    }

    fn set_fault(&mut self, fault: Fault) {
        (self.fault_kind, self.fault_address, self.fault_pc) = (fault.kind as u64, fault.address, fault.pc);
    }
}

/// Result of an access at an unchecked address: `fault` is 0 and `value` what was read, or `fault` is a `FaultKind` and
/// `value` the address. The signal handler writes the two registers in the second case.
#[repr(C)]
pub struct Accessed {
    pub value: u64,
    pub fault: u64,
}

unsafe extern "C" {
    pub fn anywarp_guard_enter(f: GuardedFn, a: *mut c_void, b: u64, c: u64, record: *mut Record) -> u32;

    /// Leaves the innermost guarded call of this thread, which then returns `status`.
    ///
    /// For generated code, which calls it by address. Aborts the process when no guarded call is in progress.
    ///
    /// # Safety
    /// The frames between here and the guarded call vanish: none may own anything.
    #[link_name = "anywarp_guarded_exit"]
    pub fn guarded_exit(status: u32) -> !;

    fn anywarp_guard_landing();

    pub fn anywarp_guard_load8(address: u64) -> Accessed;
    pub fn anywarp_guard_load16(address: u64) -> Accessed;
    pub fn anywarp_guard_load32(address: u64) -> Accessed;
    pub fn anywarp_guard_load64(address: u64) -> Accessed;
    pub fn anywarp_guard_store8(address: u64, value: u64) -> Accessed;
    pub fn anywarp_guard_store16(address: u64, value: u64) -> Accessed;
    pub fn anywarp_guard_store32(address: u64, value: u64) -> Accessed;
    pub fn anywarp_guard_store64(address: u64, value: u64) -> Accessed;
    pub fn anywarp_guard_cas8(address: u64, expected: u64, new: u64) -> Accessed;
    pub fn anywarp_guard_cas16(address: u64, expected: u64, new: u64) -> Accessed;
    pub fn anywarp_guard_cas32(address: u64, expected: u64, new: u64) -> Accessed;
    pub fn anywarp_guard_cas64(address: u64, expected: u64, new: u64) -> Accessed;
    /// `read` receives the value.
    pub fn anywarp_guard_load128(address: u64, read: *mut [u64; 2]) -> Accessed;
    /// `expected` points to the expected value and receives the previous one.
    pub fn anywarp_guard_cas128(
        address: u64,
        expected: *mut [u64; 2],
        new_low: u64,
        new_high: u64,
    ) -> Accessed;
    pub fn anywarp_guard_copy(destination: u64, source: u64, length: u64) -> Accessed;
    pub fn anywarp_guard_fill(destination: u64, byte: u64, length: u64) -> Accessed;

    fn anywarp_guard_access_start();
    fn anywarp_guard_access_end();
    fn anywarp_guard_cas128_start();
    fn anywarp_guard_cas128_end();
    fn anywarp_guard_access_failed();
    fn anywarp_guard_cas128_failed();
}

/// The processor's counter of time: what tells that some has passed at the least cost. Another processor's may differ.
pub fn time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, which only reads a register.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Puts this thread's floating-point control and status register back when dropped.
///
/// A program may round as it likes, take subnormals for zero or have exceptions trap; a kernel knows nothing of it, and neither does Rust.
#[must_use]
pub struct FloatControl {
    previous: u32,
    /// It belongs to one thread's register.
    _of_thread: PhantomData<*mut ()>,
}

impl FloatControl {
    /// Sets what the ABI says a program starts with: rounding to nearest, subnormals honoured, no exceptions.
    pub fn standard() -> Self {
        /// What exceptions there were changes nothing.
        const STATUS: u32 = 0x3f;
        const STANDARD: u32 = 0x1f80;
        let previous = control();
        if previous & !STATUS != STANDARD {
            // SAFETY: this is what Rust code assumes the register to have.
            unsafe { set_control(STANDARD) };
        }
        Self { previous, _of_thread: PhantomData }
    }
}

impl Drop for FloatControl {
    fn drop(&mut self) {
        if control() != self.previous {
            // SAFETY: what the code around had.
            unsafe { set_control(self.previous) };
        }
    }
}

fn control() -> u32 {
    let mut value = 0;
    // SAFETY: writes four bytes of ours.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
    value
}

/// # Safety
/// Code that runs until the register is put back expects that value.
unsafe fn set_control(value: u32) {
    // SAFETY: reads four bytes of ours; the rest is the contract.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, readonly)) };
}

/// Registers of an interrupted thread, as the signal handler sees and changes them.
pub struct Interrupted<'a>(&'a mut libc::ucontext_t);

impl<'a> Interrupted<'a> {
    /// # Safety
    /// `context` is the third argument of an `SA_SIGINFO` handler that is still running.
    pub unsafe fn new(context: *mut c_void) -> Self {
        // SAFETY: per the contract the kernel passed a ucontext_t that lives as long as the handler.
        Self(unsafe { &mut *context.cast::<libc::ucontext_t>() })
    }

    fn register(&mut self, index: libc::c_int) -> &mut i64 {
        &mut self.0.uc_mcontext.gregs[index as usize]
    }

    pub fn pc(&mut self) -> u64 {
        *self.register(libc::REG_RIP) as u64
    }

    pub fn stack_pointer(&mut self) -> u64 {
        *self.register(libc::REG_RSP) as u64
    }

    /// If the interrupted instruction is one of this module's accesses, makes it answer `fault`.
    pub fn fail_access(&mut self, fault: Fault) -> bool {
        let failed = if (access_start()..access_end()).contains(&fault.pc) {
            anywarp_guard_access_failed as *const () as i64
        } else if (anywarp_guard_cas128_start as *const () as u64
            ..anywarp_guard_cas128_end as *const () as u64)
            .contains(&fault.pc)
        {
            anywarp_guard_cas128_failed as *const () as i64
        } else {
            return false;
        };
        *self.register(libc::REG_RAX) = fault.address as i64;
        *self.register(libc::REG_RDX) = fault.kind as i64;
        *self.register(libc::REG_RIP) = failed;
        true
    }

    /// Makes the thread continue at the end of the guarded call of `record`.
    ///
    /// # Safety
    /// `record` is the innermost guarded call in progress on the interrupted thread.
    pub unsafe fn leave_guarded_call(&mut self, record: *mut Record, fault: Fault) {
        // SAFETY: the record lives in the frame of a call in progress, which only looks at it after the call.
        unsafe { (*record).set_fault(fault) };
        *self.register(libc::REG_RDI) = record as i64;
        *self.register(libc::REG_RSI) = 0;
        *self.register(libc::REG_RIP) = anywarp_guard_landing as *const () as i64;
    }
}

fn access_start() -> u64 {
    anywarp_guard_access_start as *const () as u64
}

fn access_end() -> u64 {
    anywarp_guard_access_end as *const () as u64
}

/// What `guarded_exit` leaves. Aborts when there is none: the caller cannot go on and there is nowhere to return to.
extern "C" fn innermost_record() -> *mut Record {
    let record = crate::thread::innermost();
    if record.is_null() {
        std::process::abort();
    }
    record
}

// The frame of a guarded call: six callee-saved registers below the return address, then the record's address, which also
// aligns the stack. `rbp` points at its own saved value, 48 bytes above the lowest slot.
global_asm!(
    ".text",
    ".hidden anywarp_guard_enter, anywarp_guard_landing, anywarp_guarded_exit",
    ".globl anywarp_guard_enter, anywarp_guard_landing, anywarp_guarded_exit",
    ".type anywarp_guard_enter, @function",
    ".p2align 4",
    "anywarp_guard_enter:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "push r8",
    "stmxcsr [r8 + {mxcsr}]",
    "fnstcw [r8 + {x87_control}]",
    "mov [r8 + {stack_pointer}], rsp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "call rax",
    "mov r8, [rsp]",
    "7:",
    "ldmxcsr [r8 + {mxcsr}]",
    "fldcw [r8 + {x87_control}]",
    "lea rsp, [rbp - 40]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    // In: rdi = record, esi = status. Nothing else of the thread's state is meaningful here.
    "anywarp_guard_landing:",
    "mov rsp, [rdi + {stack_pointer}]",
    "lea rbp, [rsp + 48]",
    "mov r8, rdi",
    "mov eax, esi",
    "cld",
    "jmp 7b",
    ".cfi_endproc",
    ".size anywarp_guard_enter, . - anywarp_guard_enter",
    ".type anywarp_guarded_exit, @function",
    ".p2align 4",
    "anywarp_guarded_exit:",
    "mov ebx, edi",
    "and rsp, -16",
    "call {innermost}",
    "mov rdi, rax",
    "mov esi, ebx",
    "jmp anywarp_guard_landing",
    ".size anywarp_guarded_exit, . - anywarp_guarded_exit",
    mxcsr = const offset_of!(Record, mxcsr),
    x87_control = const offset_of!(Record, x87_control),
    stack_pointer = const offset_of!(Record, stack_pointer),
    innermost = sym innermost_record,
);

// Leaf functions that never move rsp, so that any instruction of them can be replaced by a return. Result: rax = value,
// rdx = 0; on a fault the handler puts the address into rax and the kind into rdx.
global_asm!(
    ".macro ANYWARP_ACCESS name",
    ".hidden anywarp_guard_\\name",
    ".globl anywarp_guard_\\name",
    ".type anywarp_guard_\\name, @function",
    "anywarp_guard_\\name:",
    "xor eax, eax",
    ".endm",
    ".text",
    ".hidden anywarp_guard_access_start, anywarp_guard_access_end, anywarp_guard_access_failed",
    ".globl anywarp_guard_access_start, anywarp_guard_access_end, anywarp_guard_access_failed",
    ".p2align 4",
    "anywarp_guard_access_start:",
    "ANYWARP_ACCESS load8",
    "movzx eax, byte ptr [rdi]",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS load16",
    "movzx eax, word ptr [rdi]",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS load32",
    "mov eax, [rdi]",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS load64",
    "mov rax, [rdi]",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS store8",
    "mov [rdi], sil",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS store16",
    "mov [rdi], si",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS store32",
    "mov [rdi], esi",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS store64",
    "mov [rdi], rsi",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS cas8",
    "mov rax, rsi",
    "lock cmpxchg byte ptr [rdi], dl",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS cas16",
    "mov rax, rsi",
    "lock cmpxchg word ptr [rdi], dx",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS cas32",
    "mov rax, rsi",
    "lock cmpxchg dword ptr [rdi], edx",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS cas64",
    "mov rax, rsi",
    "lock cmpxchg qword ptr [rdi], rdx",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS load128",
    "movdqa xmm0, [rdi]",
    "movdqu [rsi], xmm0",
    "xor edx, edx",
    "ret",
    // Some processors (Zen 3) copy by `rep movsb` at a tenth of their speed where the destination lies a little further on in its page than
    // the source in its. In words of 16 bytes, which lie in one page each, everything before the faulting one is copied as well.
    "ANYWARP_ACCESS copy",
    "mov rcx, rdx",
    "mov eax, edi",
    "sub eax, esi",
    "test eax, 0xe00",
    "jnz 3f",
    "test eax, 0xfff",
    "jz 3f",
    "mov eax, edi",
    "or eax, esi",
    "test al, 15",
    "jnz 3f",
    "2:",
    "cmp rcx, 64",
    "jb 3f",
    "movaps xmm0, [rsi]",
    "movaps [rdi], xmm0",
    "movaps xmm1, [rsi + 16]",
    "movaps [rdi + 16], xmm1",
    "movaps xmm2, [rsi + 32]",
    "movaps [rdi + 32], xmm2",
    "movaps xmm3, [rsi + 48]",
    "movaps [rdi + 48], xmm3",
    "add rsi, 64",
    "add rdi, 64",
    "sub rcx, 64",
    "jmp 2b",
    "3:",
    "rep movsb",
    "xor edx, edx",
    "ret",
    "ANYWARP_ACCESS fill",
    "mov rcx, rdx",
    "mov rax, rsi",
    "rep stosb",
    "xor edx, edx",
    "anywarp_guard_access_failed:",
    "ret",
    "anywarp_guard_access_end:",
    // cmpxchg16b wants rbx, which the caller keeps: it waits in r11.
    ".hidden anywarp_guard_cas128_start, anywarp_guard_cas128_end, anywarp_guard_cas128_failed",
    ".globl anywarp_guard_cas128_start, anywarp_guard_cas128_end, anywarp_guard_cas128_failed",
    "ANYWARP_ACCESS cas128",
    "mov r11, rbx",
    "mov r10, rsi",
    "mov rbx, rdx",
    "mov rax, [r10]",
    "mov rdx, [r10 + 8]",
    "anywarp_guard_cas128_start:",
    "lock cmpxchg16b [rdi]",
    "anywarp_guard_cas128_end:",
    "mov [r10], rax",
    "mov [r10 + 8], rdx",
    "xor edx, edx",
    "anywarp_guard_cas128_failed:",
    "mov rbx, r11",
    "ret",
);
