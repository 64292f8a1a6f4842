//! Semaphores of other APIs, by a descriptor that they have exported.
//!
//! Without a graphics driver two objects of the operating system have the meaning that the manual asks for. An event counter
//! (`eventfd`) is a *binary* semaphore: to signal adds to it, to wait takes what is there. The first eight bytes of memory that can
//! be mapped are a *timeline*: to signal stores a number, to wait waits until it is reached.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::graph::Operation;
use crate::memory::SharedFile;
use crate::{Error, Result, Stream};

/// A semaphore that another API has made.
#[derive(Debug)]
pub struct ExternalSemaphore {
    object: Object,
}

#[derive(Debug)]
enum Object {
    Binary(File),
    Timeline(Counter),
}

/// A number in memory that others map too.
#[derive(Debug)]
struct Counter {
    address: u64,
    _file: SharedFile,
}

/// What a semaphore is signalled with, or has to reach.
#[derive(Clone, Debug)]
pub struct SemaphoreUse {
    /// The semaphore.
    pub semaphore: Arc<ExternalSemaphore>,
    /// The number of a timeline; a binary semaphore has none.
    pub value: u64,
}

impl ExternalSemaphore {
    /// The binary semaphore behind a descriptor.
    ///
    /// # Errors
    /// [`Error::OperatingSystem`] for a descriptor of something else than an event counter.
    pub fn import_binary(descriptor: OwnedFd) -> Result<ExternalSemaphore> {
        let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let is_counter =
            std::fs::read_link(path).is_ok_and(|name| name.as_os_str() == "anon_inode:[eventfd]");
        if !is_counter {
            return Err(Error::OperatingSystem("the descriptor is of no event counter".into()));
        }
        Ok(ExternalSemaphore { object: Object::Binary(File::from(descriptor)) })
    }

    /// The timeline behind a descriptor.
    ///
    /// # Errors
    /// [`Error::OperatingSystem`] for a descriptor of something else than memory of eight bytes or more.
    pub fn import_timeline(descriptor: OwnedFd) -> Result<ExternalSemaphore> {
        let unusable = || Error::OperatingSystem("the descriptor is of no memory that can be mapped".into());
        let file = SharedFile::from_descriptor(descriptor).map_err(|_| unusable())?;
        if file.bytes() < Counter::BYTES {
            return Err(unusable());
        }
        Ok(ExternalSemaphore { object: Object::Timeline(Counter::map(file).ok_or_else(unusable)?) })
    }

    fn signal(&self, value: u64) -> Result<()> {
        match &self.object {
            Object::Binary(counter) => {
                let mut counter = counter;
                // A counter that can take no more is signalled already.
                match counter.write(&1_u64.to_ne_bytes()) {
                    Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => Err(os_error(&error)),
                    _ => Ok(()),
                }
            }
            Object::Timeline(counter) => counter.store(value),
        }
    }

    /// Waits until it is signalled, or has reached a value.
    fn wait(&self, value: u64) -> Result<()> {
        match &self.object {
            Object::Binary(counter) => take_signal(counter),
            Object::Timeline(counter) => {
                let mut tries = 0_u32;
                while counter.load()? < value {
                    tries = tries.saturating_add(1);
                    match tries {
                        0..100 => std::hint::spin_loop(),
                        100..1000 => std::thread::yield_now(),
                        _ => std::thread::sleep(Duration::from_micros(50)),
                    }
                }
                Ok(())
            }
        }
    }
}

impl Stream {
    /// Signals semaphores when what is queued before is done.
    pub fn signal_semaphores(&self, semaphores: &[SemaphoreUse]) -> Result<()> {
        self.context()?.check()?;
        if semaphores.is_empty() {
            return Ok(());
        }
        self.perform(Operation::Signal(semaphores.into()))
    }

    /// What is queued from now on waits for semaphores.
    pub fn wait_for_semaphores(&self, semaphores: &[SemaphoreUse]) -> Result<()> {
        self.context()?.check()?;
        if semaphores.is_empty() {
            return Ok(());
        }
        self.perform(Operation::AwaitSemaphores(semaphores.into()))
    }
}

/// Signals each.
pub(crate) fn signal(semaphores: &[SemaphoreUse]) -> Result<()> {
    semaphores.iter().try_for_each(|semaphore| semaphore.semaphore.signal(semaphore.value))
}

/// Waits for each.
pub(crate) fn wait(semaphores: &[SemaphoreUse]) -> Result<()> {
    semaphores.iter().try_for_each(|semaphore| semaphore.semaphore.wait(semaphore.value))
}

/// Waits for a signal and takes it.
fn take_signal(mut counter: &File) -> Result<()> {
    let mut taken = [0; 8];
    loop {
        let error = match counter.read(&mut taken) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match error.kind() {
            std::io::ErrorKind::Interrupted => {}
            // The other side reads without waiting.
            std::io::ErrorKind::WouldBlock => wait_until_readable(counter),
            _ => return Err(os_error(&error)),
        }
    }
}

fn wait_until_readable(file: &File) {
    let mut asked = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    const MILLISECONDS: libc::c_int = 100;
    // SAFETY: one structure, which is ours. Whatever the answer, the caller looks again.
    unsafe { libc::poll(&mut asked, 1, MILLISECONDS) };
}

fn os_error(error: &std::io::Error) -> Error {
    Error::OperatingSystem(error.to_string())
}

impl Counter {
    const BYTES: u64 = size_of::<u64>() as u64;

    fn map(file: SharedFile) -> Option<Counter> {
        // SAFETY: a fresh mapping of the file's first page.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Counter::BYTES as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.descriptor(),
                0,
            )
        };
        (start != libc::MAP_FAILED).then(|| Counter { address: start as u64, _file: file })
    }

    fn load(&self) -> Result<u64> {
        let _receptive = guard::receptive();
        // SAFETY: mapped as long as this object lives; a file that has been cut is a fault.
        unsafe { guard::load(self.address) }.map_err(|_| Error::InvalidValue)
    }

    fn store(&self, value: u64) -> Result<()> {
        let _receptive = guard::receptive();
        // SAFETY: as for `load`.
        unsafe { guard::store(self.address, value) }.map_err(|_| Error::InvalidValue)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody can use it any more.
        unsafe { libc::munmap(self.address as *mut _, Counter::BYTES as usize) };
    }
}

#[cfg(test)]
#[cfg(not(miri))] // descriptors of the operating system
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    fn counter(flags: libc::c_int) -> (ExternalSemaphore, File) {
        // SAFETY: a new descriptor, ours alone.
        let file = unsafe { File::from_raw_fd(libc::eventfd(0, flags)) };
        let theirs = file.try_clone().unwrap();
        (ExternalSemaphore::import_binary(file.into()).unwrap(), theirs)
    }

    #[test]
    fn a_wait_takes_the_signal() {
        for flags in [0, libc::EFD_NONBLOCK] {
            let (semaphore, mut theirs) = counter(flags);
            semaphore.signal(0).unwrap();
            semaphore.wait(0).unwrap();
            let waiter = std::thread::spawn(move || semaphore.wait(0));
            assert!(!waiter.is_finished());
            assert_eq!(theirs.write(&1_u64.to_ne_bytes()).unwrap(), 8);
            waiter.join().unwrap().unwrap();
        }
    }

    #[test]
    fn a_timeline_is_waited_for_by_number() {
        let file = SharedFile::create(64).unwrap();
        let import = || ExternalSemaphore::import_timeline(file.duplicate().unwrap()).unwrap();
        let (ours, theirs) = (import(), import());
        ours.signal(5).unwrap();
        theirs.wait(5).unwrap();
        theirs.wait(3).unwrap();
        let waiter = std::thread::spawn(move || theirs.wait(6));
        ours.signal(7).unwrap();
        waiter.join().unwrap().unwrap();
    }

    #[test]
    fn other_descriptors_are_no_semaphores() {
        let memory = || SharedFile::create(64).unwrap().duplicate().unwrap();
        assert!(ExternalSemaphore::import_binary(memory()).is_err());
        let small = SharedFile::create(4).unwrap().duplicate().unwrap();
        assert!(ExternalSemaphore::import_timeline(small).is_err());
        let (_, counter) = counter(0);
        assert!(ExternalSemaphore::import_timeline(counter.into()).is_err());
    }
}
