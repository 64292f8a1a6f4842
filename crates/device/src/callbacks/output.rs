//! The output of kernels, held back until the program synchronises.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::{Rank, RankedMutex};

/// What kernels have printed: a first-in, first-out buffer in which new output takes the place of the oldest.
#[derive(Debug)]
pub struct Output {
    buffer: RankedMutex<Buffer>,
    /// There is something to write out: asked at every launch.
    pending: AtomicBool,
}

#[derive(Debug)]
struct Buffer {
    text: VecDeque<u8>,
    calls: VecDeque<Call>,
    /// What the calls take of the limit.
    taken: u64,
    limit: u64,
    /// A kernel has printed: the limit stays.
    is_used: bool,
}

/// One call of `printf`.
#[derive(Clone, Copy, Debug)]
struct Call {
    bytes: usize,
    taken: u64,
}

unsafe extern "C" {
    /// The C library's standard output.
    static stdout: *mut libc::FILE;
}

impl Output {
    /// An empty buffer of so many bytes.
    pub fn new(limit: u64) -> Output {
        let buffer =
            Buffer { text: VecDeque::new(), calls: VecDeque::new(), taken: 0, limit, is_used: false };
        Output { buffer: RankedMutex::new(Rank::Output, buffer), pending: AtomicBool::new(false) }
    }

    /// Sets the limit; false if a kernel has printed and it would change.
    pub fn set_limit(&self, limit: u64) -> bool {
        let mut buffer = self.buffer.lock();
        if buffer.is_used && buffer.limit != limit {
            return false;
        }
        buffer.limit = limit;
        true
    }

    /// Writes everything out and begins anew.
    pub fn reset(&self, limit: u64) {
        self.flush();
        let mut buffer = self.buffer.lock();
        (buffer.limit, buffer.is_used) = (limit, false);
    }

    /// Adds the text of one call with so many arguments.
    pub fn append(&self, text: &[u8], arguments: u32) {
        // A device keeps the addresses of format and arguments, and makes the text later. The text counts as well, by a part,
        // so that wide fields do not take more memory than the limit stands for.
        let taken = (16 + 8 * u64::from(arguments)).max(text.len() as u64 / 16);
        let mut buffer = self.buffer.lock();
        buffer.is_used = true;
        buffer.text.extend(text);
        buffer.calls.push_back(Call { bytes: text.len(), taken });
        buffer.taken += taken;
        while buffer.taken > buffer.limit {
            let Some(oldest) = buffer.calls.pop_front() else { break };
            buffer.text.drain(..oldest.bytes);
            buffer.taken -= oldest.taken;
        }
        self.pending.store(true, Ordering::Release);
    }

    /// Writes everything out: called where the program synchronises.
    pub fn flush(&self) {
        if !self.pending.load(Ordering::Acquire) {
            return;
        }
        let mut buffer = self.buffer.lock();
        self.pending.store(false, Ordering::Relaxed);
        let (first, second) = buffer.text.as_slices();
        write(first);
        write(second);
        buffer.text.clear();
        buffer.calls.clear();
        buffer.taken = 0;
    }

    #[cfg(test)]
    fn text(&self) -> String {
        let buffer = self.buffer.lock();
        String::from_utf8(buffer.text.iter().copied().collect()).unwrap()
    }
}

/// Writes through the C library, so that a C program's own output keeps its order with the kernels'.
fn write(text: &[u8]) {
    // SAFETY: the C library's own stream, and a buffer of the given length.
    unsafe { libc::fwrite(text.as_ptr().cast::<c_void>(), 1, text.len(), stdout) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_output_takes_the_place_of_the_oldest() {
        let output = Output::new(24 * 3);
        for text in ["one ", "two ", "three ", "four "] {
            output.append(text.as_bytes(), 1);
        }
        assert_eq!(output.text(), "two three four ");
        output.append(b"five ", 6);
        assert_eq!(output.text(), "five ", "one call of 64 bytes for three of 24");
        output.append(b"too large", 8);
        assert_eq!(output.text(), "");
        output.append(b"fits", 7);
        assert_eq!(output.text(), "fits");
    }

    #[test]
    fn long_texts_count_too() {
        let output = Output::new(4096);
        let line = "x".repeat(16 << 10);
        for _ in 0..100 {
            output.append(line.as_bytes(), 0);
        }
        assert_eq!(output.text().len(), 4 * line.len());
    }

    #[test]
    fn the_limit_stays_once_there_was_output() {
        let output = Output::new(100);
        assert!(output.set_limit(200));
        output.append(b"", 0);
        assert!(output.set_limit(200) && !output.set_limit(300));
        output.reset(50);
        assert!(output.set_limit(300));
    }
}
