//! CUDA Checkpointing.

use super::common::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn state_of(process: i32) -> CUprocessState {
    let mut state = CUprocessState(77);
    cu!(cuCheckpointProcessGetState(process, &mut state));
    state
}

/// A process with 1234 in its device's memory, which reads that when it is told to and sends how long that took.
fn with_other(test: impl FnOnce(i32, &mut UnixStream)) {
    let (mut here, mut there) = UnixStream::pair().expect("a line");
    // SAFETY: this process has one thread, and has not called the driver.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(here);
        new_context();
        let memory = alloc_with(&[1234_u32]);
        cu!(cuCtxSynchronize());
        there.write_all(b"x").expect("the test listens");
        there.read_exact(&mut [0]).expect("the test speaks");
        let begin = Instant::now();
        assert_eq!(read::<u32>(memory, 1), [1234]);
        let waited = begin.elapsed() > Duration::from_millis(100);
        there.write_all(&[waited.into()]).expect("the test listens");
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(0) }
    }
    drop(there);
    here.read_exact(&mut [0]).expect("the other process is ready");
    init();
    test(child, &mut here);
    let mut status = 0;
    // SAFETY: waits for the child, with a place for its status.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "the other process failed");
    let mut state = CUprocessState(77);
    fails!(CUDA_ERROR_OPERATING_SYSTEM, cuCheckpointProcessGetState(child, &mut state));
}

/// Lets the other process go on; whether it had to wait.
fn goes_on(line: &mut UnixStream, pause: impl FnOnce()) -> bool {
    line.write_all(b"x").expect("the other process listens");
    std::thread::sleep(Duration::from_millis(300));
    pause();
    let mut waited = [0];
    line.read_exact(&mut waited).expect("the other process speaks");
    waited == [1]
}

pub fn a_process_goes_through_its_states() {
    with_other(|other, line| {
        const WRONG: CUresult = CUDA_ERROR_ILLEGAL_STATE;
        let lock = CUcheckpointLockArgs { timeoutMs: 10_000, ..Default::default() };
        let room = CUcheckpointCheckpointArgs::default();
        let lock = (&raw const lock).cast_mut();
        assert_eq!(state_of(other), CU_PROCESS_STATE_RUNNING);
        fails!(WRONG, cuCheckpointProcessUnlock(other, null_mut()));
        fails!(WRONG, cuCheckpointProcessRestore(other, null_mut()));
        fails!(WRONG, cuCheckpointProcessCheckpoint(other, null_mut()));
        cu!(cuCheckpointProcessLock(other, lock));
        assert_eq!(state_of(other), CU_PROCESS_STATE_LOCKED);
        fails!(WRONG, cuCheckpointProcessLock(other, lock));
        fails!(WRONG, cuCheckpointProcessRestore(other, null_mut()));
        cu!(cuCheckpointProcessCheckpoint(other, (&raw const room).cast_mut()));
        assert_eq!(state_of(other), CU_PROCESS_STATE_CHECKPOINTED);
        fails!(WRONG, cuCheckpointProcessLock(other, lock));
        fails!(WRONG, cuCheckpointProcessCheckpoint(other, null_mut()));
        fails!(WRONG, cuCheckpointProcessUnlock(other, null_mut()));
        cu!(cuCheckpointProcessRestore(other, null_mut()));
        assert_eq!(state_of(other), CU_PROCESS_STATE_LOCKED);
        cu!(cuCheckpointProcessUnlock(other, null_mut()));
        assert_eq!(state_of(other), CU_PROCESS_STATE_RUNNING);
        assert!(!goes_on(line, || ()), "an unlocked process does not wait");
    });
}

pub fn calls_of_a_locked_process_wait() {
    with_other(|other, line| {
        cu!(cuCheckpointProcessLock(other, null_mut()));
        let unlock = || cu!(cuCheckpointProcessUnlock(other, null_mut()));
        assert!(goes_on(line, unlock), "it waited");
    });
}

pub fn a_process_can_lock_itself() {
    let own = std::process::id() as i32;
    new_context();
    cu!(cuCheckpointProcessLock(own, null_mut()));
    assert_eq!(state_of(own), CU_PROCESS_STATE_LOCKED);
    cu!(cuCheckpointProcessUnlock(own, null_mut()));
    cu!(cuCtxSynchronize());
}

pub fn a_thread_restores() {
    init();
    let (own, mut thread) = (std::process::id() as i32, 0);
    cu!(cuCheckpointProcessGetRestoreThreadId(own, &mut thread));
    let task = format!("/proc/self/task/{thread}");
    assert!(std::path::Path::new(&task).exists(), "{thread} is a thread of this process");
    fails!(CUDA_ERROR_INVALID_VALUE, cuCheckpointProcessGetRestoreThreadId(own, null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCheckpointProcessGetState(own, null_mut()));
}

pub fn only_processes_with_devices_can_be_asked_about() {
    let mut state = CUprocessState(77);
    let own = std::process::id() as i32;
    fails!(CUDA_ERROR_NOT_INITIALIZED, cuCheckpointProcessGetState(own, &mut state));
    init();
    assert_eq!(state_of(own), CU_PROCESS_STATE_RUNNING);
    for nobody in [0, -1, 0x7fff_fffe] {
        fails!(CUDA_ERROR_OPERATING_SYSTEM, cuCheckpointProcessGetState(nobody, &mut state));
        fails!(CUDA_ERROR_OPERATING_SYSTEM, cuCheckpointProcessLock(nobody, null_mut()));
    }
    // The first process of the machine uses no device.
    fails!(CUDA_ERROR_NOT_INITIALIZED, cuCheckpointProcessGetState(1, &mut state));
    fails!(CUDA_ERROR_NOT_INITIALIZED, cuCheckpointProcessLock(1, null_mut()));
}
