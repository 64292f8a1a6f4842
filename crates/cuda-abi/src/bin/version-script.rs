//! Prints the linker's version script of a library: `version-script libcuda.so.1`.

use cuda_abi::functions::{Library, version_script};

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    match [Library::Driver, Library::Runtime].into_iter().find(|library| library.soname() == wanted) {
        Some(library) => print!("{}", version_script(library)),
        None => {
            eprintln!("usage: version-script libcuda.so.1|libcudart.so.13");
            std::process::exit(2);
        }
    }
}
