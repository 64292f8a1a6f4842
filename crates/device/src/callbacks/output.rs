//! The output of kernels, held back until the program synchronises.

use std::ffi::c_void;

use crate::lock::{Rank, RankedMutex};

/// Text that kernels have printed.
#[derive(Debug)]
pub struct Output {
    buffer: RankedMutex<Buffer>,
}

#[derive(Debug)]
struct Buffer {
    text: Vec<u8>,
    limit: usize,
}

unsafe extern "C" {
    /// The C library's standard output.
    static stdout: *mut libc::FILE;
}

impl Output {
    /// An empty buffer that is written out when it holds more than `limit` bytes.
    pub fn new(limit: u64) -> Output {
        Output { buffer: RankedMutex::new(Rank::Output, Buffer { text: Vec::new(), limit: limit as usize }) }
    }

    /// Sets the limit.
    pub fn set_limit(&self, limit: u64) {
        self.buffer.lock().limit = limit as usize;
    }

    /// Adds text. Where hardware would overwrite the oldest text of a full buffer, it is written out early.
    pub fn append(&self, text: &[u8]) {
        let mut buffer = self.buffer.lock();
        buffer.text.extend_from_slice(text);
        if buffer.text.len() > buffer.limit {
            write(&mut buffer.text);
        }
    }

    /// Writes everything out: called when the program synchronises.
    pub fn flush(&self) {
        let mut buffer = self.buffer.lock();
        if !buffer.text.is_empty() {
            write(&mut buffer.text);
        }
    }
}

/// Writes through the C library, so that a C program's own output keeps its order with the kernels'.
fn write(text: &mut Vec<u8>) {
    // SAFETY: the C library's own stream, and a buffer of the given length.
    unsafe { libc::fwrite(text.as_ptr().cast::<c_void>(), 1, text.len(), stdout) };
    text.clear();
}
