//! Functions that programs call without defining them, because the device provides them.

use simt_ir::RuntimeFunction;

use crate::ast::{Function, Module};
use crate::error::Errors;
use crate::link::{Input, link};
use crate::parser::{Bodies, Options, parse_with};
use crate::target::Device;

/// Those that are PTX themselves.
const LIBRARY: &str = include_str!("provided.ptx");
const IN_LIBRARY: [&str; 4] =
    ["cudaCGGetIntrinsicHandle", "cudaCGSynchronize", "cudaCGSynchronizeGrid", "cudaGraphSetConditional"];

/// The module with the device's functions in PTX linked to it, as text; `None` if it declares none that it does not
/// define itself. `text` is what the module was read from.
pub fn with_library(text: &str, module: &Module<'_>, device: Device) -> Result<Option<String>, Errors> {
    let defined = |name: &str| module.functions().any(|f| f.name.text == name && f.is_defined());
    let wanted = |name: &&str| module.functions().any(|f| f.name.text == *name) && !defined(name);
    if !IN_LIBRARY.iter().any(wanted) {
        return Ok(None);
    }
    let inputs =
        [Input { name: "the module", text }, Input { name: "the device's functions", text: LIBRARY }];
    link(&inputs, device).map(Some)
}

/// Whether a text is the library of functions that kernels launch kernels by (`libcudadevrt`), as programs bring it to be linked. It is made of
/// calls that only NVIDIA's driver answers; the device provides these functions itself. A text that cannot be read is none.
pub fn is_device_runtime(text: &str, device: Device) -> bool {
    let options = Options { device: Some(device), bodies: Bodies::Skipped };
    let defines = |f: &Function<'_>| f.is_defined() && RuntimeFunction::by_name(f.name.text).is_some();
    parse_with(text, &options).is_ok_and(|module| module.functions().any(defines))
}

/// Whether the device defines the function of this name.
pub fn is_provided(name: &str) -> bool {
    IN_LIBRARY.contains(&name) || crate::lower::syscall(name).is_some()
}
