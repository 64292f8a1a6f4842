//! The C interface. No panic crosses it.

use crate::exit::InUse;
use kernel_abi::library::{INTERFACE, Input, Outcome, Output};
use kernel_abi::{Approximations, CompileError, Shape, Tier};
use std::any::Any;
use std::ffi::{CString, c_char};
use std::panic::catch_unwind;
use std::sync::LazyLock;

/// What this library speaks: [`INTERFACE`], NUL-terminated.
#[unsafe(no_mangle)]
pub extern "C" fn anywarp_compiler_interface() -> *const c_char {
    static TEXT: LazyLock<CString> = LazyLock::new(|| CString::new(INTERFACE).unwrap_or_default());
    TEXT.as_ptr()
}

/// Compiles a kernel and fills `output`, which is to be given to [`anywarp_compile_free`].
///
/// # Safety
/// `input` and what it lends are readable, `output` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anywarp_compile(input: *const Input, output: *mut Output) {
    // SAFETY: the caller's contract.
    let input = unsafe { *input };
    let (outcome, data) = match catch_unwind(|| {
        let _in_use = InUse::begin();
        // SAFETY: the caller's contract, for the duration of this call.
        unsafe { compile(input) }
    }) {
        Ok(Ok(artifact)) => (Outcome::Compiled, artifact),
        Ok(Err(error)) if error.later => (Outcome::Later, error.message.into_bytes()),
        Ok(Err(error)) if error.unsupported => (Outcome::Unsupported, error.message.into_bytes()),
        Ok(Err(error)) => (Outcome::Failed, error.message.into_bytes()),
        Err(panic) => (Outcome::Failed, describe(&*panic).into_bytes()),
    };
    let length = data.len();
    let data = Box::into_raw(data.into_boxed_slice()).cast::<u8>();
    // SAFETY: the caller's contract.
    unsafe { output.write(Output { outcome: outcome as u32, data, length }) };
}

/// Takes back what [`anywarp_compile`] filled in.
///
/// # Safety
/// `output` was filled by [`anywarp_compile`] and its data is used no more. A second call does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anywarp_compile_free(output: *mut Output) {
    // SAFETY: the caller's contract: the data is the boxed slice that `anywarp_compile` let go of.
    unsafe {
        let Output { data, length, .. } = *output;
        if !data.is_null() {
            drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, length)));
        }
        (*output).data = std::ptr::null_mut();
        (*output).length = 0;
    }
}

/// # Safety
/// What `input` lends is readable.
unsafe fn compile(input: Input) -> Result<Vec<u8>, CompileError> {
    let bad = |what: &str| CompileError::new(format!("the compiler was given {what}"));
    // SAFETY: the caller's contract.
    let (source, entry, cpu, approximations) = unsafe {
        (
            input.ptx.text().ok_or_else(|| bad("a text that is not UTF-8"))?,
            input.entry.text().ok_or_else(|| bad("a name that is not UTF-8"))?,
            input.cpu.text().ok_or_else(|| bad("a CPU that is not UTF-8"))?,
            input.approximations.text().and_then(Approximations::named),
        )
    };
    let shape = Shape::from_code(input.shape).ok_or_else(|| bad("an unknown shape"))?;
    let tier = Tier::from_number(input.tier).ok_or_else(|| bad("an unknown tier"))?;
    let approximations = approximations.ok_or_else(|| bad("unknown approximations"))?;
    Ok(crate::compile(source, entry, shape, cpu, approximations, tier)?.encode())
}

fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the compiler failed on this kernel: {}", text.unwrap_or("unknown cause"))
}
