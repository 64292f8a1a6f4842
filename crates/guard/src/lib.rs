//! Runs generated code, and touches guest memory, so that a fault becomes a value.
//!
//! A kernel may dereference any address, divide by zero or recurse without end. On the host that is a signal; here it is
//! a [`Fault`]. Two tools:
//!
//! - [`guarded_call`] runs a C function. A fault on this thread while it runs ends the call, whatever the function was
//!   doing. Calls nest.
//! - [`load`], [`store`], [`copy`], [`fill`] and [`compare_exchange`] touch memory at an address nobody vouches for.
//!   They need no enclosing guarded call.
//!
//! The handlers for `SIGSEGV`, `SIGBUS`, `SIGFPE` and `SIGILL` are installed at the first use and stay. A fault that is
//! not ours, and a signal somebody sent, goes to whoever handled it before. A thread that blocks these signals is made
//! [`receptive`] for as long as a guarded call takes.
//!
//! **Invariant.** A fault discards the frames between the faulting instruction and the guarded call without running any
//! destructor. Generated code has none. Host code that generated code calls back into must therefore run inside
//! [`unguarded`], where a fault is the host's own bug again and not the kernel's.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!(
    "anywarp-guard has its trampolines for Linux on x86-64 only: add them for this target beside src/x86_64.rs"
);

mod access;
mod handler;
mod mask;
mod stack;
mod thread;
mod x86_64;

use std::ffi::c_void;
use std::fmt;

pub use access::{Word, compare_exchange, compare_exchange_u128, copy, fill, load, load_u128, store};
pub use handler::install;
pub use mask::{Receptive, receptive, stay_receptive};
pub use stack::{has_stack, stack_left, want_stack};
pub use thread::unguarded;
pub use x86_64::{FloatControl, guarded_exit};

/// What stopped a guarded call or access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The sort of fault.
    pub kind: FaultKind,
    /// The address that was accessed; 0 where the processor does not tell it ([`FaultKind::General`]). For an
    /// arithmetic fault or an illegal instruction, the instruction's own address.
    pub address: u64,
    /// Address of the faulting instruction in a guarded call; 0 for the accesses of this crate.
    pub pc: u64,
}

/// The sort of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum FaultKind {
    /// Nothing is mapped at the address.
    Unmapped = 1,
    /// The page is mapped without the permission that the access needs.
    Protected = 2,
    /// An address the processor cannot translate at all (not canonical), or one that an instruction demanding
    /// alignment refuses.
    General = 3,
    /// The page exists but its backing does not: a mapped file that was cut short, a broken memory cell.
    Bus = 4,
    /// Integer division by zero or its overflow.
    Arithmetic = 5,
    /// The instruction is not valid, or is a trap that the program asked for.
    IllegalInstruction = 6,
    /// The thread's host stack is used up.
    StackOverflow = 7,
}

impl FaultKind {
    /// The kind whose discriminant is `code`.
    fn from_code(code: u64) -> Option<Self> {
        use FaultKind::*;
        [Unmapped, Protected, General, Bus, Arithmetic, IllegalInstruction, StackOverflow]
            .into_iter()
            .find(|kind| *kind as u64 == code)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, address, pc } = self;
        match kind {
            FaultKind::Unmapped => write!(f, "access to unmapped address {address:#x}")?,
            FaultKind::Protected => write!(f, "access to protected address {address:#x}")?,
            FaultKind::General => write!(f, "access to an invalid or misaligned address")?,
            FaultKind::Bus => write!(f, "bus error at {address:#x}")?,
            FaultKind::Arithmetic => write!(f, "integer division fault")?,
            FaultKind::IllegalInstruction => write!(f, "illegal instruction")?,
            FaultKind::StackOverflow => write!(f, "stack overflow")?,
        }
        if *pc != 0 {
            write!(f, " (pc {pc:#x})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// The functions that [`guarded_call`] runs.
pub type GuardedFn = unsafe extern "C" fn(*mut c_void, u64, u64) -> u32;

/// Runs `f(a, b, c)` and returns what it returns, or what [`guarded_exit`] was given, or the fault that ended it.
///
/// The floating-point control registers are restored however the call ends, so `f` may change them.
///
/// # Safety
/// `f` must be sound to call with these arguments when it does not fault. When it does, or when it leaves through
/// [`guarded_exit`], its frames vanish: no frame between here and there may own anything or hold a lock.
pub unsafe fn guarded_call(f: GuardedFn, a: *mut c_void, b: u64, c: u64) -> Result<u32, Fault> {
    install();
    let receptive = mask::receptive();
    let mut record = x86_64::Record::new();
    let nesting = thread::enter(&raw mut record);
    // SAFETY: the record outlives the call and is the thread's innermost one while it runs; the rest is the caller's
    // contract.
    let status = unsafe { x86_64::anywarp_guard_enter(f, a, b, c, &raw mut record) };
    drop(nesting);
    drop(receptive);
    match record.fault() {
        None => Ok(status),
        Some(fault) => Err(fault),
    }
}
