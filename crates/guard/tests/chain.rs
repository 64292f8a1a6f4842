//! A program with a handler of its own, installed before ours: it still gets the faults that are not ours.

use guard::{FaultKind, guarded_call};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static PAGE: AtomicU64 = AtomicU64::new(0);
static REPAIRED: AtomicUsize = AtomicUsize::new(0);
static RECEIVED: AtomicUsize = AtomicUsize::new(0);

/// Makes the page accessible and returns, so that the faulting instruction succeeds.
extern "C" fn repair(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    let page = PAGE.load(Ordering::Relaxed);
    // SAFETY: the kernel passes a valid siginfo; the page is the test's own.
    unsafe {
        if (*info).si_code <= 0 {
            RECEIVED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if (*info).si_addr() as u64 & !4095 != page {
            libc::abort();
        }
        libc::mprotect(page as *mut c_void, 4096, libc::PROT_READ | libc::PROT_WRITE);
    }
    REPAIRED.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn read(page: *mut c_void, _: u64, _: u64) -> u32 {
    // SAFETY: the fault is what is being tested.
    unsafe { page.cast::<u32>().read_volatile() }
}

#[test]
fn foreign_faults_and_sent_signals_reach_the_earlier_handler() {
    // SAFETY: a handler that keeps to async-signal-safe calls, a mapping of our own, and reads of it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = repair as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut()), 0);

        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        PAGE.store(page as u64, Ordering::Relaxed);

        let ours = guarded_call(read, page, 0, 0).unwrap_err();
        assert_eq!((ours.kind, ours.address), (FaultKind::Protected, page as u64));
        assert_eq!(guard::load::<u32>(page as u64).unwrap_err().kind, FaultKind::Protected);
        assert_eq!(REPAIRED.load(Ordering::Relaxed), 0);

        assert_eq!(page.cast::<u32>().read_volatile(), 0);
        assert_eq!(REPAIRED.load(Ordering::Relaxed), 1);
        assert_eq!(guarded_call(read, page, 0, 0), Ok(0));

        libc::raise(libc::SIGSEGV);
        assert_eq!(RECEIVED.load(Ordering::Relaxed), 1);
    }
}
