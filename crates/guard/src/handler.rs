//! The signal handler: which faults are ours, what they mean, and whom the others go to.

use crate::thread;
use crate::x86_64::Interrupted;
use crate::{Fault, FaultKind};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;

/// Those that faults raise.
pub const SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

// Values of `siginfo_t::si_code` on Linux that the libc crate does not name.
const SI_KERNEL: libc::c_int = 0x80;
const SEGV_ACCERR: libc::c_int = 2;
const SEGV_PKUERR: libc::c_int = 4;

/// The actions that were in place before ours.
struct Previous(UnsafeCell<[MaybeUninit<libc::sigaction>; SIGNALS.len()]>);

// SAFETY: written by `install` alone, each element before the handler that reads it is installed.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(UnsafeCell::new([const { MaybeUninit::uninit() }; SIGNALS.len()]));

/// Installs the handlers, the first time it is called. Everything in this crate that needs them calls it.
#[inline]
pub fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        thread::create_key();
        for (index, &signal) in SIGNALS.iter().enumerate() {
            // SAFETY: the previous action is stored before our handler can run; the handler keeps to what is
            // async-signal-safe.
            unsafe {
                let previous = &mut (*PREVIOUS.0.get())[index];
                libc::sigaction(signal, ptr::null(), previous.as_mut_ptr());
                let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&mut action.sa_mask);
                let error = libc::sigaction(signal, &action, ptr::null_mut());
                assert_eq!(error, 0, "a handler can be set for a signal that exists");
            }
        }
    });
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes valid pointers to a handler installed with SA_SIGINFO, and this is that handler.
    unsafe {
        let mut interrupted = Interrupted::new(context);
        if let Some(fault) = classify(signal, &*info, &mut interrupted) {
            if interrupted.fail_access(fault) {
                return;
            }
            let record = thread::innermost();
            if !record.is_null() {
                interrupted.leave_guarded_call(record, fault);
                return;
            }
        }
        chain(signal, info, context);
    }
}

/// What the signal says; nothing if it is not the processor's answer to an instruction.
fn classify(signal: libc::c_int, info: &libc::siginfo_t, interrupted: &mut Interrupted<'_>) -> Option<Fault> {
    if info.si_code <= 0 {
        return None; // sent by kill, sigqueue and the like
    }
    // SAFETY: these four signals carry an address when the kernel raises them.
    let address = unsafe { info.si_addr() } as u64;
    let pc = interrupted.pc();
    let kind = match signal {
        libc::SIGFPE => FaultKind::Arithmetic,
        libc::SIGILL => FaultKind::IllegalInstruction,
        libc::SIGSEGV | libc::SIGBUS => {
            let thread = thread::existing();
            // SAFETY: a state that exists lives until its thread, which is this one, ends.
            let stack_end =
                !thread.is_null() && unsafe { (*thread).is_stack_end(address, interrupted.stack_pointer()) };
            match info.si_code {
                _ if stack_end => FaultKind::StackOverflow,
                SI_KERNEL => FaultKind::General,
                _ if signal == libc::SIGBUS => FaultKind::Bus,
                SEGV_ACCERR | SEGV_PKUERR => FaultKind::Protected,
                _ => FaultKind::Unmapped,
            }
        }
        _ => return None,
    };
    Some(Fault { kind, address, pc })
}

/// Gives the signal to the action that was in place before ours.
///
/// # Safety
/// The arguments are those of a running handler.
unsafe fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(index) = SIGNALS.iter().position(|&known| known == signal) else { return };
    // SAFETY: `install` stored the action before it installed the handler we are in; a handler address that is neither
    // of the two special values is a function of the type its flags tell.
    unsafe {
        let previous = (*PREVIOUS.0.get())[index].assume_init_ref();
        let sent = (*info).si_code <= 0;
        match previous.sa_sigaction {
            libc::SIG_IGN if sent => {}
            libc::SIG_DFL | libc::SIG_IGN => {
                let mut default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &default, ptr::null_mut());
                // A fault recurs when the handler returns; a signal that was sent must be sent again.
                if sent {
                    libc::raise(signal);
                }
            }
            handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler = std::mem::transmute::<
                    usize,
                    extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void),
                >(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler = std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler);
                handler(signal);
            }
        }
    }
}
