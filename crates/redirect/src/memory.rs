//! Writing over mapped code.

use crate::image::Image;
use crate::jump::Patch;
use crate::report::die;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Writes patches into an object in memory: all of them, or none if it is not the object in the file.
///
/// # Safety
/// The loader has mapped the object of `image` with this bias, and no thread executes code in it.
pub unsafe fn write(image: &Image, patches: &[Patch], load_bias: usize) -> Result<(), String> {
    let (Some(first), Some(last)) = (patches.first(), patches.last()) else { return Ok(()) };
    // SAFETY: always answers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let place = |patch: &Patch| (load_bias + patch.address as usize) as *mut u8;
    let start = place(first) as usize & !(page - 1);
    let length = place(last) as usize + last.bytes.len() - start;
    protect(start, length, libc::PROT_READ | libc::PROT_WRITE)
        .map_err(|error| format!("its code cannot be written: {error}"))?;
    let same = patches.iter().all(|patch| {
        // SAFETY: `plan` has found these bytes in an executable segment, which the loader has mapped.
        let bytes = unsafe { std::slice::from_raw_parts(place(patch), patch.bytes.len()) };
        image.code(patch.address, patch.bytes.len() as u64) == Some(bytes)
    });
    if same {
        for patch in patches {
            // SAFETY: as above, writable now, and nobody executes it.
            unsafe { place(patch).copy_from_nonoverlapping(patch.bytes.as_ptr(), patch.bytes.len()) };
        }
    }
    if let Err(error) = protect(start, length, libc::PROT_READ | libc::PROT_EXEC) {
        die(&format!("code that was redirected cannot be made executable again: {error}"));
    }
    if same {
        Ok(())
    } else {
        Err("the file has changed since it was opened, or something else has changed its code".into())
    }
}

fn protect(start: usize, length: usize, protection: i32) -> io::Result<()> {
    // SAFETY: the pages belong to an object in which nothing runs yet.
    match unsafe { libc::mprotect(start as *mut _, length, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The file that is mapped at an address of this process.
pub fn file_mapped_at(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    maps.split(|&byte| byte == b'\n').find_map(|line| file_of_line(line, address))
}

/// The file in a line of `/proc/PID/maps`, if its range has the address.
fn file_of_line(line: &[u8], address: usize) -> Option<PathBuf> {
    let text = std::str::from_utf8(line.get(..line.iter().position(|&byte| byte == b' ')?)?).ok()?;
    let (start, end) = text.split_once('-')?;
    let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
    let path = line.iter().position(|&byte| byte == b'/')?;
    range.contains(&address).then(|| PathBuf::from(OsStr::from_bytes(&line[path..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_at_an_address_is_found() {
        let own = file_mapped_at(the_file_at_an_address_is_found as *const () as usize).unwrap();
        assert_eq!(own, std::env::current_exe().unwrap());
        assert_eq!(file_mapped_at(1), None);
    }

    #[test]
    fn lines_of_the_map() {
        let line = b"1000-3000 r-xp 00001000 fe:01 77    /a path/with spaces";
        assert_eq!(file_of_line(line, 0x2FFF), Some("/a path/with spaces".into()));
        assert_eq!(file_of_line(line, 0x3000), None);
        assert_eq!(file_of_line(b"1000-3000 rw-p 00000000 00:00 0", 0x2000), None);
        assert_eq!(file_of_line(b"", 0), None);
    }
}
