//! Generates the table of driver functions that a loaded `libcuda.so.1` gives: one field for each that the sources name.

use cuda_abi::functions::{self, Api};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

const SOURCES: &str = "src/driver/library";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SOURCES}");
    let (mut fields, mut values) = (String::new(), String::new());
    for function in functions::named_under(Api::Driver, Path::new(SOURCES))? {
        let name = function.name;
        let types = function.parameters.ok_or_else(|| format!("{name} has no public signature"))?.join(", ");
        let ty = format!("unsafe extern \"C\" fn({types}) -> {}", function.result);
        writeln!(fields, "    /// The driver's `{name}`.\n    pub {name}: Option<{ty}>,")?;
        writeln!(
            values,
            "            // SAFETY: a function of this name has this signature, or is null for none.\n            \
             {name}: unsafe {{ std::mem::transmute::<*mut c_void, Option<{ty}>>(find(c\"{name}\")) }},"
        )?;
    }
    let text = format!(
        "/// The functions of a driver that this crate calls; one that it lacks is absent.\n\
         pub struct Functions {{\n{fields}}}\n\n\
         impl Functions {{\n    \
             /// Looks every function up.\n    \
             ///\n    \
             /// # Safety\n    \
             /// `find` answers with null or the address of the driver's function of that name.\n    \
             pub unsafe fn load(find: impl Fn(&CStr) -> *mut c_void) -> Functions {{\n        \
                 Functions {{\n{values}        }}\n    }}\n}}\n"
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    fs::write(out.join("functions.rs"), text)?;
    Ok(())
}
