//! Memory of the program that calls may read and write: nothing else is near it, so that a copy which runs out of it
//! faults instead of corrupting the fuzzer.

use std::sync::OnceLock;

/// Bytes of the program's memory.
pub const LEN: usize = 64 << 10;
/// Unmapped bytes on both sides: more than any pitch and any height of [`crate::arguments`] make together.
const AROUND: usize = 1 << 40;

/// The address of the first byte.
pub fn memory() -> usize {
    static MEMORY: OnceLock<usize> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        // SAFETY: fresh mappings, never unmapped.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let all = libc::mmap(std::ptr::null_mut(), 2 * AROUND + LEN, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(all, libc::MAP_FAILED, "addresses around the program's memory");
            let middle = all.byte_add(AROUND);
            assert_eq!(libc::mprotect(middle, LEN, libc::PROT_READ | libc::PROT_WRITE), 0);
            middle as usize
        }
    })
}
