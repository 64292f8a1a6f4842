//! Assertions of kernels: who says that it has failed, and what of the others is seen.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

use super::common::*;

const ASSERTIONS: &str = include_str!("assertions.ptx");

/// Runs a kernel that fails; what it says, line by line, and what it has stored in a word for each of so many threads.
fn run(name: &CStr, grid: u32, block: u32) -> (Vec<String>, Vec<u32>) {
    new_context();
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors. That of standard error is closed by nobody else.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        // Many lines fit.
        libc::fcntl(ends[1], libc::F_SETPIPE_SZ, 1 << 20);
    }
    let mut words: *mut c_void = null_mut();
    let bytes = 4 * block as usize;
    cu!(cuMemHostAlloc(&mut words, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
    // SAFETY: so many bytes of pinned memory.
    unsafe { std::ptr::write_bytes(words.cast::<u8>(), 0, bytes) };
    let (kernel, address) = (function(load(ASSERTIONS), name), words.addr() as u64);
    // SAFETY: descriptors of this process.
    let before = unsafe {
        let before = libc::dup(2);
        libc::dup2(ends[1], 2);
        before
    };
    assert_eq!(launch(kernel, grid, block, CUstream::NULL, &mut [arg(&address)]), CUDA_SUCCESS);
    // SAFETY: no arguments.
    let code = unsafe { cuCtxSynchronize() };
    // SAFETY: as above; the reading end is nobody else's.
    let mut said = unsafe {
        libc::dup2(before, 2);
        libc::close(ends[1]);
        File::from_raw_fd(ends[0])
    };
    assert_eq!(code, CUDA_ERROR_ASSERT);
    let mut text = String::new();
    said.read_to_string(&mut text).expect("a text");
    let said = text.lines().filter(|line| line.contains("Assertion")).map(str::to_owned).collect();
    // SAFETY: pinned memory, which no kernel writes any more.
    let stored = unsafe { std::slice::from_raw_parts(words.cast::<u32>(), block as usize) }.to_vec();
    (said, stored)
}

pub fn every_warp_and_block_says_that_it_has_failed() {
    let (mut said, _) = run(c"each", 4, 96);
    said.sort();
    let line = |block, thread| {
        format!("f.cu:7: f: block: [{block},0,0], thread: [{thread},0,0] Assertion `wrong` failed.")
    };
    let mut expected: Vec<_> =
        (0..4).flat_map(|block| [5, 37, 69].map(|thread| line(block, thread))).collect();
    expected.sort();
    assert_eq!(said, expected);
}

pub fn who_waits_for_a_failed_warp_waits_in_vain() {
    let (said, stored) = run(c"awaited", 1, 128);
    assert_eq!((said.len(), stored), (32, vec![1; 128]));
}

pub fn a_warp_fails_before_the_first_barrier() {
    let (said, stored) = run(c"late", 1, 128);
    assert_eq!((said.len(), stored), (32, vec![1; 128]));
}

pub fn a_warp_fails_between_barriers() {
    // Of three warps the last, in its second turn.
    let (said, stored) = run(c"late", 1, 96);
    assert_eq!((said.len(), stored), (32, vec![2; 96]));
}

pub fn a_warp_fails_once() {
    let (said, _) = run(c"once", 1, 32);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("thread: [3,0,0]"), "{said:?}");
}
