//! Generates stubs and linker input (see `cuda_abi::functions`), and a Rust function for each driver function that the
//! sources name.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use cuda_abi::functions::{self, Api, Function};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    functions::generate(Api::Runtime, &out)?;

    println!("cargo::rerun-if-changed=src");
    let mut text =
        String::from("use cuda_abi::driver::*;\nuse cuda_abi::runtime::CudaResult;\nuse std::ffi::*;\n\n");
    text += "use super::symbols::{Symbol, check};\n\n";
    let mut recorders = String::new();
    let mut table = String::from(
        "/// Every function of the driver that the crate calls, as one that only remembers the call.\n\
         pub static RECORDERS: &[(&str, Address)] = &[\n",
    );
    for function in functions::named_under(Api::Driver, Path::new("src"))? {
        write_function(&mut text, &function)?;
        write_recorder(&mut recorders, &function)?;
        writeln!(table, "    (\"{0}\", Address({0} as *const ())),", function.name)?;
    }
    fs::write(out.join("driver_functions.rs"), text)?;
    fs::write(out.join("driver_recorders.rs"), format!("{table}];\n\n{recorders}"))?;
    Ok(())
}

fn write_function(text: &mut String, function: &Function) -> Result<(), Box<dyn Error>> {
    let Function { name, result, .. } = function;
    let types = function.parameters.as_ref().ok_or_else(|| format!("{name} has no public signature"))?;
    if *result != "CUresult" {
        return Err(format!("{name} does not answer with a code").into());
    }
    let parameters: Vec<_> = types.iter().enumerate().map(|(i, ty)| format!("a{i}: {ty}")).collect();
    let arguments: Vec<_> = (0..types.len()).map(|i| format!("a{i}")).collect();
    let (parameters, arguments, types) = (parameters.join(", "), arguments.join(", "), types.join(", "));
    write!(
        text,
        "/// Calls the driver's `{name}`.\n\
         ///\n\
         /// # Safety\n\
         /// The pointers are what the driver's manual demands.\n\
         pub unsafe fn {name}({parameters}) -> CudaResult {{\n    \
             static SYMBOL: Symbol = Symbol::new(c\"{name}\");\n    \
             let address = SYMBOL.address()?;\n    \
             // SAFETY: a driver's function of this name has this signature.\n    \
             let function: unsafe extern \"C\" fn({types}) -> CUresult = unsafe {{ std::mem::transmute(address) }};\n    \
             // SAFETY: the caller's duty.\n    \
             check(unsafe {{ function({arguments}) }})\n\
         }}\n\n"
    )?;
    Ok(())
}

/// A function for the tests' driver, which remembers the call's arguments and does nothing.
fn write_recorder(text: &mut String, function: &Function) -> Result<(), Box<dyn Error>> {
    let Function { name, .. } = function;
    let types = function.parameters.as_ref().ok_or_else(|| format!("{name} has no public signature"))?;
    let parameters: Vec<_> = types.iter().enumerate().map(|(i, ty)| format!("a{i}: {ty}")).collect();
    let arguments: Vec<_> = (0..types.len()).map(|i| format!("&a{i}")).collect();
    let (parameters, arguments) = (parameters.join(", "), arguments.join(", "));
    write!(
        text,
        "unsafe extern \"C\" fn {name}({parameters}) -> CUresult {{\n    \
             super::record(\"{name}\", &[{arguments}])\n\
         }}\n\n"
    )?;
    Ok(())
}
