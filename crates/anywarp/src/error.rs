//! Why an operation failed.

use cuda_abi::driver::*;
use std::fmt;

/// Why an operation failed: a [kind](Error::kind) to decide by, CUDA's [code](Error::code), and a text for people.
///
/// ```
/// use anywarp::{Device, ErrorKind};
///
/// let context = Device::get(0)?.create_context()?;
/// let error = context.load_ptx(".version 8.0\n.target sm_80\n.adress_size 64\n").err().unwrap();
/// assert_eq!(error.kind(), ErrorKind::Ptx);
/// assert_eq!((error.code(), error.code_name()), (218, Some("CUDA_ERROR_INVALID_PTX")));
/// assert!(error.message().contains("3"), "the line is in the log: {error}");
/// # Ok::<(), anywarp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    code: CUresult,
    message: String,
}

/// What sort of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for makes no sense: arguments that a kernel does not take, lengths that differ, objects of different
    /// contexts.
    Arguments,
    /// A kernel of this context has failed. Every later operation in the context fails likewise; other contexts go on.
    Fault,
    /// PTX or a fat binary is wrong, or has nothing for this device; the message is the compiler's log.
    Ptx,
    /// The device or the host has not enough memory left.
    OutOfMemory,
    /// There is no device of this number, or none at all.
    NoDevice,
    /// There is nothing of this name.
    NotFound,
    /// The operation is not allowed here: CUDA must not be called from a function that a stream calls.
    NotPermitted,
    /// The driver cannot do this.
    NotSupported,
    /// Anything else; the code and the message say what.
    Other,
}

impl Error {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// CUDA's number for it, a `CUresult`; what this crate finds wrong itself is 1, `CUDA_ERROR_INVALID_VALUE`.
    pub fn code(&self) -> u32 {
        self.code.0
    }

    /// CUDA's name of the code, if it has one.
    pub fn code_name(&self) -> Option<&'static str> {
        self.code.name()
    }

    /// What is wrong, for people: the compiler's log, the kernel and thread that failed, the argument that does not fit.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn new(code: CUresult, message: impl Into<String>) -> Error {
        let mut message = message.into();
        if message.is_empty() {
            message = text(code);
        }
        Error { kind: kind(code), code, message }
    }

    /// A mistake that this crate finds itself.
    pub(crate) fn arguments(message: impl Into<String>) -> Error {
        Error::new(CUDA_ERROR_INVALID_VALUE, message)
    }

    pub(crate) fn out_of_memory() -> Error {
        Error::new(CUDA_ERROR_OUT_OF_MEMORY, "")
    }
}

impl From<CUresult> for Error {
    fn from(code: CUresult) -> Error {
        Error::new(code, "")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn text(code: CUresult) -> String {
    match code.c_text() {
        Some(text) => text.to_string_lossy().into_owned(),
        None => format!("the driver answers {}", code.0),
    }
}

fn kind(code: CUresult) -> ErrorKind {
    match code {
        CUDA_ERROR_INVALID_VALUE | CUDA_ERROR_INVALID_HANDLE => ErrorKind::Arguments,
        CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        CUDA_ERROR_NO_DEVICE | CUDA_ERROR_INVALID_DEVICE => ErrorKind::NoDevice,
        CUDA_ERROR_NOT_FOUND | CUDA_ERROR_FILE_NOT_FOUND => ErrorKind::NotFound,
        CUDA_ERROR_NOT_PERMITTED => ErrorKind::NotPermitted,
        CUDA_ERROR_NOT_SUPPORTED | CUDA_ERROR_UNSUPPORTED_LIMIT => ErrorKind::NotSupported,
        CUDA_ERROR_INVALID_IMAGE
        | CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUDA_ERROR_INVALID_PTX
        | CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUDA_ERROR_JIT_COMPILER_NOT_FOUND
        | CUDA_ERROR_INVALID_SOURCE => ErrorKind::Ptx,
        CUDA_ERROR_ILLEGAL_ADDRESS
        | CUDA_ERROR_LAUNCH_TIMEOUT
        | CUDA_ERROR_ASSERT
        | CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUDA_ERROR_MISALIGNED_ADDRESS
        | CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUDA_ERROR_INVALID_PC
        | CUDA_ERROR_LAUNCH_FAILED => ErrorKind::Fault,
        _ => ErrorKind::Other,
    }
}
