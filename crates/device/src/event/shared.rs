//! Events that several processes share: numbers in memory that all of them map.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::memory::SharedFile;
use crate::{Error, Result};

/// Names an event to other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedEventHandle {
    /// The process that made it.
    pub process: u32,
    /// Its descriptor of the event's memory.
    pub descriptor: RawFd,
    /// What tells that memory from all other.
    pub identity: u64,
}

/// What the processes share. Zero at first.
#[repr(C)]
struct Numbers {
    /// Times the event was recorded.
    recorded: AtomicU64,
    /// The last of them that is over.
    done: AtomicU64,
    /// The process that recorded last.
    recorder: AtomicU32,
}

const BYTES: u64 = 4096;

/// An event's memory, mapped.
pub(super) struct SharedEvent {
    numbers: NonNull<Numbers>,
    file: SharedFile,
    /// It is this process's, which others open.
    is_own: bool,
}

// SAFETY: the mapping is this object's alone until it is dropped, and what is in it is atomic.
unsafe impl Send for SharedEvent {}
// SAFETY: likewise.
unsafe impl Sync for SharedEvent {}

impl SharedEvent {
    /// A new event, never recorded.
    pub(super) fn create() -> Result<Arc<SharedEvent>> {
        SharedEvent::map(SharedFile::create(BYTES)?, true)
    }

    /// Another process's event.
    ///
    /// # Errors
    /// [`Error::InvalidContext`] for one of this process, [`Error::InvalidValue`] if it is not there.
    pub(super) fn open(handle: &SharedEventHandle) -> Result<Arc<SharedEvent>> {
        if handle.process == std::process::id() {
            return Err(Error::InvalidContext);
        }
        let file = SharedFile::of_process(handle.process, handle.descriptor)?;
        if file.bytes() != BYTES || file.identity()? != handle.identity {
            return Err(Error::InvalidValue);
        }
        SharedEvent::map(file, false)
    }

    fn map(file: SharedFile, is_own: bool) -> Result<Arc<SharedEvent>> {
        // SAFETY: a fresh mapping of our file.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.descriptor(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::OutOfMemory);
        }
        let numbers = NonNull::new(start.cast()).ok_or(Error::OutOfMemory)?;
        Ok(Arc::new(SharedEvent { numbers, file, is_own }))
    }

    /// What other processes open it by.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] for one of another process.
    pub(super) fn handle(&self) -> Result<SharedEventHandle> {
        if !self.is_own {
            return Err(Error::InvalidHandle);
        }
        let (process, descriptor) = (std::process::id(), self.file.descriptor());
        Ok(SharedEventHandle { process, descriptor, identity: self.file.identity()? })
    }

    /// Counts a record; answers its number.
    pub(super) fn record(&self) -> u64 {
        let numbers = self.numbers();
        numbers.recorder.store(std::process::id(), Ordering::Relaxed);
        numbers.recorded.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// A record is over, and all before it.
    pub(super) fn finish(&self, record: u64) {
        self.numbers().done.fetch_max(record, Ordering::AcqRel);
    }

    /// The newest record, if it is not over.
    pub(super) fn pending(&self) -> Option<u64> {
        let newest = self.numbers().recorded.load(Ordering::Acquire);
        (!self.is_over(newest)).then_some(newest)
    }

    /// Waits until a record is over.
    pub(super) fn wait(&self, record: u64) {
        let mut pause = Duration::from_micros(20);
        while !self.is_over(record) {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Whether a record is over. What a process that is gone has recorded is.
    fn is_over(&self, record: u64) -> bool {
        let numbers = self.numbers();
        if numbers.done.load(Ordering::Acquire) >= record {
            return true;
        }
        has_ended(numbers.recorder.load(Ordering::Relaxed))
    }

    fn numbers(&self) -> &Numbers {
        // SAFETY: mapped as long as this object lives, aligned to a page, and made of atomics.
        unsafe { self.numbers.as_ref() }
    }
}

impl Drop for SharedEvent {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody can use it any more.
        unsafe { libc::munmap(self.numbers.as_ptr().cast(), BYTES as usize) };
    }
}

/// Whether a process is gone, or has only its exit status left that nobody has asked for.
fn has_ended(process: u32) -> bool {
    // SAFETY: makes a descriptor, which is ours.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0) } as RawFd;
    if descriptor < 0 {
        return std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut question = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one question, ours, and no waiting. The descriptor of a process can be read from its end on.
    unsafe { libc::poll(&mut question, 1, 0) == 1 }
}

#[cfg(test)]
#[cfg(not(miri))] // shared mappings
mod tests {
    use super::*;

    #[test]
    fn two_mappings_count_together() {
        let event = SharedEvent::create().unwrap();
        let handle = event.handle().unwrap();
        assert_eq!(SharedEvent::open(&handle).err(), Some(Error::InvalidContext));
        // As another process would see it.
        let file = SharedFile::of_process(handle.process, handle.descriptor).unwrap();
        assert_eq!(file.identity(), Ok(handle.identity));
        let theirs = SharedEvent::map(file, false).unwrap();
        assert_eq!(theirs.pending(), None);
        let first = event.record();
        assert_eq!(theirs.pending(), Some(first));
        let second = theirs.record();
        event.finish(first);
        assert_eq!(event.pending(), Some(second));
        theirs.wait(first);
        theirs.finish(second);
        assert_eq!(event.pending(), None);
        event.wait(second);
    }

    #[test]
    fn a_process_that_is_gone_keeps_nobody_waiting() {
        let event = SharedEvent::create().unwrap();
        let record = event.record();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        event.numbers().recorder.store(gone, Ordering::Relaxed);
        // It ends, and stays in the table of processes until it is asked how.
        event.wait(record);
        assert_eq!(event.pending(), None);
        child.wait().unwrap();
        event.wait(record);
        assert_eq!(event.pending(), None);
    }

    #[test]
    fn a_process_that_is_there_is_waited_for() {
        assert!(!has_ended(std::process::id()));
    }
}
