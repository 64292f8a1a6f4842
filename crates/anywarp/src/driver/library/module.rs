//! Modules and kernels of a loaded driver.

use super::super::own;
use super::context::Inner;
use super::stream::Stream;
use super::{c_name, call, signatures};
use crate::arguments::{Declared, Parameter};
use crate::{Error, FunctionAttributes, Image, JitOptions, LaunchConfig, Result};
use cuda_abi::driver::*;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;

pub struct Module {
    inner: Arc<Inner>,
    handle: CUmodule,
    signatures: HashMap<String, Vec<Parameter>>,
}

/// An image as the driver wants it: aligned, PTX with a NUL at its end.
enum Bytes {
    Text(CString),
    Words { words: Vec<u64>, len: usize },
}

impl Bytes {
    fn of(image: &Image<'_>) -> Result<Bytes> {
        match image {
            Image::Ptx(text) => {
                let ends = || Error::new(CUDA_ERROR_INVALID_PTX, "there is a NUL in the PTX");
                CString::new(text.trim_end_matches('\0')).map(Bytes::Text).map_err(|_| ends())
            }
            Image::Fatbin(bytes) => {
                check_container(bytes)?;
                let mut words = vec![0_u64; bytes.len().div_ceil(8)];
                bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
                Ok(Bytes::Words { words, len: bytes.len() })
            }
        }
    }

    fn pointer(&self) -> *const c_void {
        match self {
            Bytes::Text(text) => text.as_ptr().cast(),
            Bytes::Words { words, .. } => words.as_ptr().cast(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Bytes::Text(text) => text.as_bytes_with_nul().len(),
            Bytes::Words { len, .. } => *len,
        }
    }

    fn input(&self) -> CUjitInputType {
        match self {
            Bytes::Text(_) => CU_JIT_INPUT_PTX,
            Bytes::Words { .. } => CU_JIT_INPUT_FATBINARY,
        }
    }
}

/// The driver is told no length and believes all headers, so they must be right. NVIDIA's reads the options of PTX without
/// asking whether there are any.
fn check_container(bytes: &[u8]) -> Result<()> {
    let damaged = |what: String| Error::new(CUDA_ERROR_INVALID_IMAGE, what);
    let wrong = |error: fatbin::FatbinError| damaged(error.to_string());
    for entry in fatbin::Container::parse(bytes).map_err(wrong)?.entries() {
        let entry = entry.map_err(wrong)?;
        let options = entry.options().map_err(wrong)?;
        if entry.kind == fatbin::EntryKind::Ptx && options.is_none() {
            return Err(damaged("the fat binary's PTX has no options".to_owned()));
        }
    }
    Ok(())
}

/// Options in the form of the C ABI. The buffers of the logs move with it, but what they lead to does not.
struct Options {
    names: Vec<CUjit_option>,
    cells: Vec<*mut c_void>,
    info: Vec<u8>,
    error: Vec<u8>,
}

impl Options {
    fn new(options: &JitOptions) -> Options {
        const LOG: usize = 64 << 10;
        let number = |value: usize| std::ptr::without_provenance_mut::<c_void>(value);
        let (mut info, mut error) = (vec![0; LOG], vec![0; LOG]);
        let mut all = vec![
            (CU_JIT_INFO_LOG_BUFFER, info.as_mut_ptr().cast()),
            (CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, number(LOG)),
            (CU_JIT_ERROR_LOG_BUFFER, error.as_mut_ptr().cast()),
            (CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(LOG)),
        ];
        let mut add =
            |name, value: Option<u32>| all.extend(value.map(|value| (name, number(value as usize))));
        add(CU_JIT_MAX_REGISTERS, options.max_registers);
        add(CU_JIT_OPTIMIZATION_LEVEL, options.optimization_level);
        add(CU_JIT_GENERATE_DEBUG_INFO, options.debug_info.then_some(1));
        add(CU_JIT_GENERATE_LINE_INFO, options.line_info.then_some(1));
        add(CU_JIT_LOG_VERBOSE, options.verbose.then_some(1));
        let (names, cells) = all.into_iter().unzip();
        Options { names, cells, info, error }
    }

    fn count(&self) -> u32 {
        self.names.len() as u32
    }

    /// An error with the log, where there is one. What a driver calls unknown although its log knows it (NVIDIA's does, for
    /// a function that comes twice) is wrong in the source.
    fn explain(&self, error: Error) -> Error {
        let log = text(&self.error);
        match CUresult(error.code()) {
            _ if log.is_empty() => error,
            CUDA_ERROR_UNKNOWN => Error::new(CUDA_ERROR_INVALID_SOURCE, log),
            code => Error::new(code, log),
        }
    }
}

fn text(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

/// Loads one image, or links several.
pub fn load(
    inner: &Arc<Inner>,
    images: &[(&str, Image<'_>)],
    options: &JitOptions,
) -> Result<(Module, String)> {
    let _current = inner.enter()?;
    let mut options = Options::new(options);
    let mut handle = CUmodule::NULL;
    let loaded = match images {
        [(_, only)] => Bytes::of(only).and_then(|bytes| {
            call!(
                inner.library,
                cuModuleLoadDataEx(
                    &mut handle,
                    bytes.pointer(),
                    options.count(),
                    options.names.as_mut_ptr(),
                    options.cells.as_mut_ptr(),
                )
            )
        }),
        _ => link(inner, images, &mut options, &mut handle),
    };
    loaded.map_err(|error| options.explain(error))?;
    let signatures = signatures::of(images, inner.sm()?);
    Ok((Module { inner: inner.clone(), handle, signatures }, text(&options.info)))
}

fn link(
    inner: &Inner,
    images: &[(&str, Image<'_>)],
    options: &mut Options,
    handle: &mut CUmodule,
) -> Result<()> {
    /// A link in progress, whose result lives as long.
    struct Link<'a>(&'a Inner, CUlinkState);
    impl Drop for Link<'_> {
        fn drop(&mut self) {
            let _ = call!(self.0.library, cuLinkDestroy(self.1));
        }
    }
    let mut state = CUlinkState::NULL;
    // The driver writes into the logs until the link is destroyed, which it is before this returns.
    call!(
        inner.library,
        cuLinkCreate_v2(options.count(), options.names.as_mut_ptr(), options.cells.as_mut_ptr(), &mut state)
    )?;
    let link = Link(inner, state);
    for (name, image) in images {
        let (bytes, name) = (Bytes::of(image)?, c_name(name)?);
        call!(
            inner.library,
            cuLinkAddData_v2(
                link.1,
                bytes.input(),
                bytes.pointer().cast_mut(),
                bytes.len(),
                name.as_ptr(),
                0,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        )?;
    }
    let (mut image, mut size) = (std::ptr::null_mut(), 0);
    call!(inner.library, cuLinkComplete(link.1, &mut image, &mut size))?;
    // The image belongs to the link, which is destroyed after it has been loaded.
    let (names, cells) = (std::ptr::null_mut(), std::ptr::null_mut());
    call!(inner.library, cuModuleLoadDataEx(handle, image, 0, names, cells))
}

impl Drop for Module {
    fn drop(&mut self) {
        let Ok(_current) = self.inner.enter() else { return };
        // Its kernels may still run.
        let _ = call!(self.inner.library, cuCtxSynchronize());
        let _ = call!(self.inner.library, cuModuleUnload(self.handle));
    }
}

impl super::super::Module for Module {
    fn function(&self, name: &str) -> Result<Box<dyn super::super::Function>> {
        let _current = self.inner.enter()?;
        let c_name = c_name(name)?;
        let mut handle = CUfunction::NULL;
        call!(self.inner.library, cuModuleGetFunction(&mut handle, self.handle, c_name.as_ptr()))?;
        let signature = self.signatures.get(name).cloned();
        Ok(Box::new(Function { inner: self.inner.clone(), handle, signature }))
    }

    fn function_names(&self) -> Result<Vec<String>> {
        let _current = self.inner.enter()?;
        let mut count = 0;
        call!(self.inner.library, cuModuleGetFunctionCount(&mut count, self.handle))?;
        let mut functions = vec![CUfunction::NULL; count as usize];
        call!(self.inner.library, cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, self.handle))?;
        functions.into_iter().map(|function| self.name_of(function)).collect()
    }

    fn variable(&self, name: &str) -> Result<(u64, usize)> {
        let _current = self.inner.enter()?;
        let c_name = c_name(name)?;
        let (mut address, mut size) = (CUdeviceptr::default(), 0);
        call!(
            self.inner.library,
            cuModuleGetGlobal_v2(&mut address, &mut size, self.handle, c_name.as_ptr())
        )?;
        Ok((address.0, size))
    }
}

impl Module {
    fn name_of(&self, function: CUfunction) -> Result<String> {
        let mut name = std::ptr::null();
        call!(self.inner.library, cuFuncGetName(&mut name, function))?;
        if name.is_null() {
            return Ok(String::new());
        }
        // SAFETY: the driver's text ends in NUL and lives as long as the module.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

struct Function {
    inner: Arc<Inner>,
    handle: CUfunction,
    signature: Option<Vec<Parameter>>,
}

impl Function {
    fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32> {
        let mut value = 0;
        call!(self.inner.library, cuFuncGetAttribute(&mut value, attribute, self.handle))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

impl super::super::Function for Function {
    fn parameters(&self) -> Result<Vec<Parameter>> {
        if let Some(signature) = &self.signature {
            return Ok(signature.clone());
        }
        let _current = self.inner.enter()?;
        let mut parameters = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            let index = parameters.len();
            match call!(self.inner.library, cuFuncGetParamInfo(self.handle, index, &mut offset, &mut size)) {
                Ok(()) => parameters.push(Parameter { offset, size, declared: Declared::Bits }),
                Err(error) if error.code() == CUDA_ERROR_INVALID_VALUE.0 => return Ok(parameters),
                Err(error) => return Err(error),
            }
        }
    }

    fn attributes(&self) -> Result<FunctionAttributes> {
        let _current = self.inner.enter()?;
        let version = |value: u32| (value / 10, value % 10);
        Ok(FunctionAttributes {
            max_threads_per_block: self.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            shared_bytes: self.attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            constant_bytes: self.attribute(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            local_bytes: self.attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            registers: self.attribute(CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            ptx_version: version(self.attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION)?),
            binary_version: version(self.attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION)?),
            max_dynamic_shared: self.attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
        })
    }

    fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()> {
        let _current = self.inner.enter()?;
        let bytes = i32::try_from(bytes).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
        let attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        call!(self.inner.library, cuFuncSetAttribute(self.handle, attribute, bytes))
    }

    fn blocks_per_multiprocessor(&self, threads: u32, dynamic_shared: u32) -> Result<u32> {
        let _current = self.inner.enter()?;
        // More threads than a number of the ABI can say are more than any block can have.
        let Ok(threads) = i32::try_from(threads) else { return Ok(0) };
        let mut blocks = 0;
        call!(
            self.inner.library,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.handle,
                threads,
                dynamic_shared as usize
            )
        )?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    fn best_block(&self, dynamic_shared: u32) -> Result<(u32, u32)> {
        let _current = self.inner.enter()?;
        let (mut blocks, mut threads) = (0, 0);
        call!(
            self.inner.library,
            cuOccupancyMaxPotentialBlockSize(
                &mut blocks,
                &mut threads,
                self.handle,
                None,
                dynamic_shared as usize,
                0
            )
        )?;
        Ok((u32::try_from(threads).unwrap_or(0), u32::try_from(blocks).unwrap_or(0)))
    }

    unsafe fn launch(
        &self,
        stream: &dyn super::super::Stream,
        config: &LaunchConfig,
        parameters: &[Parameter],
        bytes: &mut [u8],
    ) -> Result<()> {
        let stream: &Stream = own(stream.as_any())?;
        let _current = self.inner.enter()?;
        // Each lies in `bytes`, as the packing has found.
        let base = bytes.as_mut_ptr();
        let place = |parameter: &Parameter| base.wrapping_add(parameter.offset).cast::<c_void>();
        let mut places: Vec<*mut c_void> = parameters.iter().map(place).collect();
        let ([x, y, z], [a, b, c]) = (config.grid, config.block);
        let (shared, stream, places) = (config.shared, stream.handle, places.as_mut_ptr());
        // The caller vouches for what the kernel does.
        match config.cooperative {
            true => call!(
                self.inner.library,
                cuLaunchCooperativeKernel(self.handle, x, y, z, a, b, c, shared, stream, places)
            ),
            false => call!(
                self.inner.library,
                cuLaunchKernel(self.handle, x, y, z, a, b, c, shared, stream, places, std::ptr::null_mut())
            ),
        }
    }
}
