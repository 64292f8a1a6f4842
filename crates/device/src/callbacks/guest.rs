//! Reading what a kernel points to.

/// Longest string that is read.
const LONGEST: usize = 1 << 20;

/// The bytes up to a NUL; `None` if they are not all readable.
pub fn string(address: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST {
        // SAFETY: reading memory of the kernel's; what is not there is answered as a fault.
        match unsafe { guard::load::<u8>(address.checked_add(bytes.len() as u64)?) } {
            Ok(0) => return Some(bytes),
            Ok(byte) => bytes.push(byte),
            Err(_) => return None,
        }
    }
    Some(bytes)
}

/// A string to show to people.
pub fn string_lossy(address: u64) -> String {
    string(address)
        .map_or_else(|| "(unreadable)".into(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A number of `size` bytes, 4 or 8, without a sign.
pub fn number(address: u64, size: u64) -> Option<u64> {
    // SAFETY: as in `string`.
    unsafe {
        match size {
            4 => guard::load::<u32>(address).ok().map(u64::from),
            _ => guard::load::<u64>(address).ok(),
        }
    }
}
