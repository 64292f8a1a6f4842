//! Writes what `scripts/link-library` needs to link a library: `linker-input libcudart.so.12 FOLDER` makes
//!
//! * `map`: the linker's version script;
//! * `names`: the exported names, a line each;
//! * `renames`: what objcopy renames first;
//! * `definitions`: symbols that the linker defines, as `name=name`.

use cuda_abi::functions::{Library, definitions, exported_by, renames, version_script};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [soname, folder] = arguments.as_slice() else { usage() };
    let Some(library) = Library::ALL.into_iter().find(|library| library.soname() == soname) else { usage() };
    let names: String = exported_by(library).iter().map(|(name, _)| format!("{name}\n")).collect();
    let folder = Path::new(folder);
    std::fs::write(folder.join("map"), version_script(library))?;
    std::fs::write(folder.join("names"), names)?;
    std::fs::write(folder.join("renames"), renames(library))?;
    std::fs::write(folder.join("definitions"), definitions(library))
}

fn usage() -> ! {
    let sonames: Vec<_> = Library::ALL.iter().map(|library| library.soname()).collect();
    eprintln!("usage: linker-input {} FOLDER", sonames.join("|"));
    std::process::exit(2);
}
