//! Writes the table of all functions that the two libraries have, by name.

use cuda_abi::functions::{self, Api};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

fn main() -> std::io::Result<()> {
    // The targets call the two APIs, not the management library.
    let functions =
        functions::all().into_iter().filter(|function| function.done && function.api != Api::Nvml);
    let names: BTreeSet<_> = functions.map(|function| function.name).collect();
    let mut text = String::from("unsafe extern \"C\" {\n");
    for name in &names {
        writeln!(text, "    fn {name}();").expect("a String takes any text");
    }
    text += "}\n\n/// Every function with a body, by name.\npub static SYMBOLS: &[(&str, unsafe extern \"C\" fn())] = &[\n";
    for name in &names {
        writeln!(text, "    (\"{name}\", {name}),").expect("a String takes any text");
    }
    text += "];\n";
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("symbols.rs"), text)
}
