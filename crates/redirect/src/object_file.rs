//! A file's bytes, without reading all of them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A file in memory, as far as it is looked at.
pub struct Mapped {
    start: *mut libc::c_void,
    length: usize,
}

impl Mapped {
    /// Maps a file that is an object: the loader has mapped it too.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let length = usize::try_from(metadata.len()).unwrap_or(0);
        if !metadata.is_file() || length == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new private mapping, read only, of a file that is open.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { start, length }) }
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for this length until `self` goes. A file that shrinks meanwhile takes the program down with it
        // in any case: the loader has mapped the same file.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, which nothing refers to any more.
        unsafe { libc::munmap(self.start, self.length) };
    }
}
