//! Memory that several mappings, in this process or others, can be of.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::{Error, Result};

/// A file in memory, in no folder.
#[derive(Debug)]
pub struct SharedFile {
    file: File,
    len: u64,
}

impl SharedFile {
    /// New memory of so many bytes, all zero.
    pub fn create(len: u64) -> Result<SharedFile> {
        SharedFile::create_named(len, c"anywarp")
    }

    /// As [`create`](Self::create), with a [name](Self::name) that goes along with its descriptors.
    pub fn create_named(len: u64, name: &CStr) -> Result<SharedFile> {
        // SAFETY: a plain call with a name that ends in NUL; the descriptor is ours alone.
        let file = unsafe {
            match libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) {
                -1 => return Err(Error::OutOfMemory),
                fd => File::from_raw_fd(fd),
            }
        };
        file.set_len(len).map_err(|_| Error::OutOfMemory)?;
        Ok(SharedFile { file, len })
    }

    /// Memory that somebody else made.
    pub fn from_descriptor(descriptor: OwnedFd) -> Result<SharedFile> {
        SharedFile::from_file(File::from(descriptor))
    }

    /// The memory behind another process's descriptor.
    pub fn of_process(process: u32, descriptor: RawFd) -> Result<SharedFile> {
        let path = format!("/proc/{process}/fd/{descriptor}");
        let file = File::options().read(true).write(true).open(path).map_err(|_| Error::InvalidValue)?;
        SharedFile::from_file(file)
    }

    fn from_file(file: File) -> Result<SharedFile> {
        let len = file.metadata().map_err(|_| Error::InvalidValue)?.len();
        if len == 0 { Err(Error::InvalidValue) } else { Ok(SharedFile { file, len }) }
    }

    /// Whether it can be mapped to be read and written by all who map it.
    pub fn is_mappable(&self) -> bool {
        // SAFETY: asks about our own descriptor.
        let flags = unsafe { libc::fcntl(self.descriptor(), libc::F_GETFL) };
        flags != -1
            && flags & libc::O_ACCMODE == libc::O_RDWR
            && self.file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// What it was called by whoever made it; empty where that cannot be told.
    pub fn name(&self) -> String {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", self.descriptor())).unwrap_or_default();
        let link = link.to_string_lossy();
        let name = link.strip_prefix("/memfd:").unwrap_or_default();
        name.strip_suffix(" (deleted)").unwrap_or(name).to_owned()
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// The descriptor, which stays this object's.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// A descriptor of the same memory for somebody else.
    pub fn duplicate(&self) -> Result<OwnedFd> {
        let copy = self.file.try_clone();
        copy.map(OwnedFd::from).map_err(|error| Error::OperatingSystem(error.to_string()))
    }

    /// What tells this memory from all other of the machine.
    pub fn identity(&self) -> Result<u64> {
        let identity = self.file.metadata().map(|metadata| metadata.ino());
        identity.map_err(|error| Error::OperatingSystem(error.to_string()))
    }

    /// Writes a number, which the file becomes longer for where it ends before.
    pub fn set_word(&self, offset: u64, word: u64) -> Result<()> {
        self.file.write_all_at(&word.to_ne_bytes(), offset).map_err(|_| Error::OutOfMemory)
    }

    /// The number at an offset, if there is one.
    pub fn word(&self, offset: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, offset).ok().map(|()| u64::from_ne_bytes(bytes))
    }

    /// Gives the memory of a range back; what is read there next is zero.
    pub fn discard(&self, offset: u64, len: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: our own descriptor. Where it is not done, nothing is lost but memory.
        unsafe { libc::fallocate(self.descriptor(), mode, offset as libc::off_t, len as libc::off_t) };
    }

    /// Fills the file with what is at `address`.
    ///
    /// # Safety
    /// As many bytes as the file has are readable there, and nobody writes them meanwhile.
    pub unsafe fn fill_from(&self, address: u64) -> Result<()> {
        // SAFETY: the caller's contract.
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, self.len as usize) };
        self.file.write_all_at(bytes, 0).map_err(|_| Error::OutOfMemory)
    }
}
