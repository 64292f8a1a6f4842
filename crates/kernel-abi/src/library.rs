//! The C interface of the compiler library.
//!
//! The library is opened at run time, so that a process whose kernels are all cached never maps it. Both sides compare
//! [`INTERFACE`] first.

use std::ffi::c_char;

use crate::artifact::version;

/// File name of the library.
pub const FILE_NAME: &str = "libanywarp_compiler.so";

/// What [`InterfaceFn`] must answer for the two sides to fit: the version of the project and of what they exchange.
pub const INTERFACE: &str = concat!(env!("CARGO_PKG_VERSION"), "/3.", version!());

/// Symbol of [`InterfaceFn`].
pub const INTERFACE_SYMBOL: &std::ffi::CStr = c"anywarp_compiler_interface";
/// Symbol of [`CompileFn`].
pub const COMPILE_SYMBOL: &std::ffi::CStr = c"anywarp_compile";
/// Symbol of [`FreeFn`].
pub const FREE_SYMBOL: &std::ffi::CStr = c"anywarp_compile_free";

/// Bytes lent for the duration of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The first.
    pub data: *const u8,
    /// How many.
    pub length: usize,
}

impl Bytes {
    /// Lends a text.
    pub fn of(text: &str) -> Bytes {
        Bytes { data: text.as_ptr(), length: text.len() }
    }

    /// The text, if it is UTF-8.
    ///
    /// # Safety
    /// The bytes are readable for as long as the result is used.
    pub unsafe fn text<'a>(self) -> Option<&'a str> {
        if self.length == 0 {
            return Some("");
        }
        // SAFETY: the caller's contract.
        std::str::from_utf8(unsafe { std::slice::from_raw_parts(self.data, self.length) }).ok()
    }
}

/// A kernel to compile.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// The linked module.
    pub ptx: Bytes,
    /// Name of the kernel.
    pub entry: Bytes,
    /// Name of the CPU: `native` or a level.
    pub cpu: Bytes,
    /// Name of the [`Approximations`](simt_ir::Approximations).
    pub approximations: Bytes,
    /// [`Shape::code`](crate::Shape::code).
    pub shape: u32,
    /// A [`Tier`](crate::Tier) as number.
    pub tier: u32,
}

/// How a compilation came out.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The data is an [`Artifact`](crate::artifact::Artifact).
    Compiled = 0,
    /// The data says what is wrong.
    Failed = 1,
    /// The data says what this implementation lacks.
    Unsupported = 2,
    /// Likewise, of code of a first launch: see [`CompileError::later`](crate::CompileError::later).
    Later = 3,
}

/// Result of a compilation, owned by the library until it is given back.
#[repr(C)]
#[derive(Debug)]
pub struct Output {
    /// An [`Outcome`] as number.
    pub outcome: u32,
    /// The first byte.
    pub data: *mut u8,
    /// How many.
    pub length: usize,
}

/// `anywarp_compiler_interface`: the library's [`INTERFACE`], NUL-terminated.
pub type InterfaceFn = unsafe extern "C" fn() -> *const c_char;
/// `anywarp_compile`: fills the output, always. May be called from several threads at once.
pub type CompileFn = unsafe extern "C" fn(input: *const Input, output: *mut Output);
/// `anywarp_compile_free`: takes the output's data back.
pub type FreeFn = unsafe extern "C" fn(output: *mut Output);
