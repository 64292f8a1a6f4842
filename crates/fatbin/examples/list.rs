//! Lists the entries of the containers in a file: `list FILE`, for example the output of `nvcc -fatbin` or the
//! `.nv_fatbin` section of an object.

use std::error::Error;

use fatbin::{CONTAINER_MAGIC, Container};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: list FILE")?;
    let file = std::fs::read(path)?;
    let mut rest = file.as_slice();
    // In a section the containers follow each other, padded with zeros.
    while let Some(start) = rest.windows(4).position(|word| word == CONTAINER_MAGIC.to_le_bytes()) {
        rest = &rest[start..];
        println!("container of {} bytes", Container::claimed_len(rest)?);
        for entry in Container::parse(rest)?.entries() {
            let entry = entry?;
            let payload = entry.payload()?;
            println!(
                "  {:?} {}.{} sm_{} flags {:#x} {:?}: {} bytes, source {:?}, options {:?}",
                entry.kind,
                entry.version.major,
                entry.version.minor,
                entry.sm,
                entry.flags,
                entry.compression,
                payload.len(),
                entry.source_name()?,
                entry.options()?,
            );
        }
        rest = &rest[usize::try_from(Container::claimed_len(rest)?)?..];
    }
    Ok(())
}
