//! Module images: from what the loading functions are given to PTX texts and code.

use crate::error::{CuResult, Failure};
use crate::jit::JitOptions;
use crate::platform::platform;
use cuda_abi::driver::*;
use device::module::{Code, Input, Kernel, texts_of};
use fatbin::raw;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The PTX texts of an image: several are to be linked.
pub type Texts = device::Result<device::module::Texts>;

/// The texts of what stands at a pointer that suit a device of compute capability `sm`.
///
/// # Safety
/// The pointer is null or leads to an image, as `cuModuleLoadData` asks.
pub unsafe fn at(pointer: *const c_void, sm: u32) -> CuResult<Texts> {
    if pointer.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: the caller's duty; the texts are copied before this returns.
    let image = unsafe { raw::image_at(pointer.cast()) };
    Ok(image
        .map_err(|error| device::Error::InvalidImage(error.to_string()))
        .and_then(|image| texts_of(&image, sm)))
}

/// The texts of an image in memory that suit a device of compute capability `sm`.
pub fn of_bytes(bytes: &[u8], sm: u32) -> Texts {
    device::module::from_bytes(bytes).and_then(|image| texts_of(&image, sm))
}

/// A file's content.
pub fn read_file(path: &CStr) -> CuResult<Vec<u8>> {
    let path = OsStr::from_bytes(path.to_bytes());
    std::fs::read(path).map_err(|error| match error.kind() {
        // NVIDIA's driver asks for as much memory as a folder says that it has bytes.
        std::io::ErrorKind::IsADirectory => CUDA_ERROR_OUT_OF_MEMORY.into(),
        _ => CUDA_ERROR_FILE_NOT_FOUND.into(),
    })
}

/// `len` bytes at a pointer.
///
/// # Safety
/// The pointer is null or leads to as many bytes, which stay for `'a`.
pub unsafe fn bytes<'a>(pointer: *const c_void, len: usize) -> CuResult<&'a [u8]> {
    if pointer.is_null() || len == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: the caller's duty.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), len) })
}

/// Reads and checks texts; what is wrong with them goes to the log.
pub fn code(texts: Texts, options: &mut JitOptions) -> CuResult<Arc<Code>> {
    let sm = options.sm()?;
    let code = texts.and_then(|image| {
        options.check()?;
        let mut remarks = Vec::new();
        let texts = image.texts.into_iter().map(|text| options.tuned(text, image.sm, &mut remarks));
        let texts: Vec<String> = texts.collect::<device::Result<_>>()?;
        remarks.iter().for_each(|remark| options.inform(remark));
        let names: Vec<String> = (1..=texts.len()).map(|number| format!("image {number}")).collect();
        let inputs: Vec<Input<'_>> =
            names.iter().zip(&texts).map(|(name, text)| Input { name, text }).collect();
        Code::from_inputs_with(&inputs, options.placed(), image.sm)
    });
    let code = code.map_err(|error| logged(error, options))?;
    code.remarks().iter().for_each(|remark| options.inform(remark));
    describe_all(&code, sm, options);
    Ok(code)
}

/// Tells the log about each kernel, if it is to say so much.
pub fn describe_all(code: &Code, sm: u32, options: &mut JitOptions) {
    if options.is_verbose() {
        for kernel in code.kernels() {
            options.inform(&describe(kernel, sm));
        }
    }
}

/// A line about a kernel.
fn describe(kernel: &Kernel, sm: u32) -> String {
    let (name, entry) = (kernel.name(), kernel.entry());
    match (kernel.registers(), kernel.program()) {
        (Ok(registers), Ok(program)) => format!(
            "kernel {name} for sm_{sm}: {registers} registers, {} bytes of shared memory, {} of parameters",
            program.shared_bytes, entry.param_bytes
        ),
        (Err(error), _) | (_, Err(error)) => format!("kernel {name} for sm_{sm}: {error}"),
    }
}

/// Tells the log about an error, and makes it a code.
pub fn logged(error: device::Error, options: &mut JitOptions) -> Failure {
    use device::Error;
    match &error {
        Error::InvalidImage(log)
        | Error::InvalidPtx(log)
        | Error::UnsupportedPtxVersion(log)
        | Error::InvalidSource(log)
        | Error::NotSupported(log) => options.complain(log),
        _ => {}
    }
    error.into()
}

/// 10 · major + minor of the compute capability that code is for.
pub fn sm() -> CuResult<u32> {
    Ok(platform()?.options().sm)
}
