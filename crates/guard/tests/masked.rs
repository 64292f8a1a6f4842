//! Threads that block the signals of faults.

use guard::{FaultKind, guarded_call, receptive, stay_receptive};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

const FAULTS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

unsafe extern "C" fn read(_: *mut c_void, address: u64, _: u64) -> u32 {
    // SAFETY: the fault is what is being tested.
    unsafe { (address as *const u32).read_volatile() }
}

fn must_fault() {
    // SAFETY: the function owns nothing.
    let fault = unsafe { guarded_call(read, ptr::null_mut(), 64, 0) }.unwrap_err();
    assert_eq!((fault.kind, fault.address), (FaultKind::Unmapped, 64));
}

/// Changes the mask of this thread.
fn change(how: libc::c_int, signals: &[libc::c_int]) {
    // SAFETY: a set of ours.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        assert_eq!(libc::pthread_sigmask(how, set.as_ptr(), ptr::null_mut()), 0);
    }
}

/// Which of the signals of faults, and of another, this thread blocks.
fn blocked() -> Vec<libc::c_int> {
    // SAFETY: a set of ours, which the call fills.
    unsafe {
        let mut set = MaybeUninit::uninit();
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), set.as_mut_ptr()), 0);
        let all = FAULTS.into_iter().chain([libc::SIGUSR1]);
        all.filter(|signal| libc::sigismember(set.as_ptr(), *signal) == 1).collect()
    }
}

/// Runs a test on a thread of its own, whose mask is its own too.
fn on_a_thread(test: fn()) {
    std::thread::spawn(test).join().unwrap();
}

#[test]
fn a_thread_that_blocks_all_signals_faults_and_has_its_mask_again() {
    on_a_thread(|| {
        let all = [&FAULTS[..], &[libc::SIGUSR1]].concat();
        change(libc::SIG_BLOCK, &all);
        for _ in 0..3 {
            must_fault();
            assert_eq!(blocked(), all);
        }
        // SAFETY: nothing is there, which is answered.
        unsafe {
            let mut place = [1_u8; 8];
            assert!(guard::copy(place.as_mut_ptr() as u64, 64, 8).is_err());
            assert!(guard::fill(64, 0, 8).is_err());
        }
        assert_eq!(blocked(), all);
        change(libc::SIG_UNBLOCK, &[libc::SIGBUS]);
        must_fault();
        assert_eq!(blocked(), [libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGUSR1]);
    });
}

#[test]
fn a_thread_may_block_signals_later() {
    on_a_thread(|| {
        must_fault();
        change(libc::SIG_BLOCK, &FAULTS);
        // Until it is asked again.
        std::thread::sleep(Duration::from_millis(20));
        must_fault();
        must_fault();
        change(libc::SIG_UNBLOCK, &FAULTS);
        must_fault();
        assert!(blocked().is_empty());
    });
}

#[test]
fn what_is_held_open_stays_open_for_calls_inside() {
    on_a_thread(|| {
        change(libc::SIG_BLOCK, &FAULTS);
        let outer = receptive();
        for _ in 0..3 {
            must_fault();
            assert!(blocked().is_empty());
            // SAFETY: nothing is there, which is answered.
            assert!(unsafe { guard::load::<u32>(64) }.is_err());
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(outer);
        assert_eq!(blocked(), FAULTS);
        must_fault();
        assert_eq!(blocked(), FAULTS);
    });
}

#[test]
fn a_thread_of_ours_stays_open() {
    on_a_thread(|| {
        change(libc::SIG_BLOCK, &[&FAULTS[..], &[libc::SIGUSR1]].concat());
        stay_receptive();
        assert_eq!(blocked(), [libc::SIGUSR1]);
        must_fault();
        assert_eq!(blocked(), [libc::SIGUSR1]);
    });
}
