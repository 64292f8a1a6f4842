//! Threads whose signal mask blocks what faults raise: the kernel would end the process there, whoever handles the signal.
//!
//! A program may block signals at any time, and only a system call tells. It would cost a short kernel a third of its time, so a thread that was
//! found not to block them is asked again after a while only.

use crate::handler::SIGNALS;
use crate::x86_64;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

/// For so many ticks of the processor's counter (a fraction of a millisecond) a thread is taken not to have blocked anything.
const FRESH: u64 = 1 << 20;

thread_local! {
    /// When the signals were last known to come through; 0 where they are blocked, or nobody has looked.
    static OPEN: Cell<u64> = const { Cell::new(0) };
    /// Whether a [`Receptive`] of this thread lives: nobody need look.
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// As long as it lives, faults of its thread come to the handler.
#[must_use]
pub struct Receptive {
    /// Which of the signals the program has blocked.
    blocked: Option<libc::sigset_t>,
    /// Whether it is within another.
    is_inner: bool,
    /// A mask is its thread's.
    _here: PhantomData<*mut ()>,
}

impl Drop for Receptive {
    fn drop(&mut self) {
        HELD.set(self.is_inner);
        if let Some(blocked) = &self.blocked {
            OPEN.set(0);
            // SAFETY: the set is ours.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, blocked, ptr::null_mut()) };
        }
    }
}

/// Lets the signals of faults through on this thread until the answer is dropped. [`guarded_call`](crate::guarded_call), [`copy`](crate::copy) and
/// [`fill`](crate::fill) do so themselves; accesses to words, which are to be quick, are left to the caller where a program's thread makes them.
pub fn receptive() -> Receptive {
    let is_inner = HELD.replace(true);
    let blocked = if is_inner { None } else { found_blocked() };
    Receptive { blocked, is_inner, _here: PhantomData }
}

fn found_blocked() -> Option<libc::sigset_t> {
    let now = x86_64::time_stamp();
    if now.wrapping_sub(OPEN.get()) < FRESH { None } else { unblock(now) }
}

/// Lets the signals of faults through on this thread, which is not one of the program's, for good: it may have been started by one that blocks them.
pub fn stay_receptive() {
    let _ = unblock(x86_64::time_stamp());
}

/// Which of the signals were blocked, if any was.
#[cold]
fn unblock(now: u64) -> Option<libc::sigset_t> {
    OPEN.set(now);
    // SAFETY: the sets are ours; `sigemptyset` initialises one, and the call the other.
    unsafe {
        let mut faults = MaybeUninit::uninit();
        libc::sigemptyset(faults.as_mut_ptr());
        let mut faults = faults.assume_init();
        for signal in SIGNALS {
            libc::sigaddset(&mut faults, signal);
        }
        let mut before = MaybeUninit::uninit();
        if libc::pthread_sigmask(libc::SIG_UNBLOCK, &faults, before.as_mut_ptr()) != 0 {
            return None;
        }
        let before = before.assume_init();
        let mut any = false;
        for signal in SIGNALS {
            if libc::sigismember(&before, signal) == 1 {
                any = true;
            } else {
                libc::sigdelset(&mut faults, signal);
            }
        }
        any.then_some(faults)
    }
}
