//! Prints, as Markdown, which functions of the two APIs have a body.

use cuda_abi::functions::{self, Function, Library};

fn main() {
    let functions = functions::all();
    println!("# Functions of the two APIs\n");
    println!(
        "Every name is exported. What is missing answers `CUDA_ERROR_NOT_SUPPORTED` or `cudaErrorNotSupported`."
    );
    for library in [Library::Driver, Library::Runtime] {
        let of_library: Vec<_> = functions.iter().filter(|function| function.library == library).collect();
        println!("\n## {}: {}\n", library.soname(), count(&of_library));
        println!("| Part of the manual | Done | Missing |\n|---|---|---|");
        for group in of_library.chunk_by(|a, b| a.group == b.group) {
            let missing: Vec<_> = group.iter().filter(|f| !f.done).map(|f| format!("`{}`", f.name)).collect();
            println!("| {} | {} | {} |", group[0].group, count(group), missing.join(" "));
        }
    }
}

fn count(functions: &[&Function]) -> String {
    format!("{} of {}", functions.iter().filter(|function| function.done).count(), functions.len())
}
