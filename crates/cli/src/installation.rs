//! Where Anywarp is installed.

use std::path::{Path, PathBuf};

/// The folder of our libraries: `../lib` as seen from this command, wherever both were moved to.
pub fn library_folder() -> Result<PathBuf, String> {
    let command = std::env::current_exe().map_err(|error| format!("where this command lies: {error}"))?;
    let folder = command.parent().and_then(Path::parent).map(|root| root.join("lib"));
    match folder {
        Some(folder) if folder.join("libcuda.so.1").is_file() => Ok(folder),
        Some(folder) => Err(format!("{} has no libcuda.so.1: `make build` puts it there", folder.display())),
        None => Err(format!("{} has no folder above it", command.display())),
    }
}
