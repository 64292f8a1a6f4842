//! Failures as codes.

use crate::log;
use cuda_abi::args::NullPointer;
use cuda_abi::driver::*;
use device::Error;
pub use platform::code;

/// What a driver entry point's body returns.
pub type CuResult<T = ()> = Result<T, Failure>;

/// Why a call fails, as the code that its caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure(pub CUresult);

impl From<CUresult> for Failure {
    fn from(code: CUresult) -> Self {
        Failure(code)
    }
}

impl From<NullPointer> for Failure {
    fn from(null: NullPointer) -> Self {
        Failure(null.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if let Error::Internal(what) = &error {
            eprintln!("anywarp: internal error: {what}");
        }
        let code = code(&error);
        if let Some(detail) = detail(&error) {
            log::remember_detail(code, detail);
        }
        Failure(code)
    }
}

/// What an error tells beyond its code.
fn detail(error: &Error) -> Option<&str> {
    match error {
        Error::InvalidImage(text)
        | Error::InvalidPtx(text)
        | Error::UnsupportedPtxVersion(text)
        | Error::InvalidSource(text)
        | Error::NoCompiler(text)
        | Error::OperatingSystem(text)
        | Error::NotSupported(text)
        | Error::Internal(text) => Some(text),
        _ => None,
    }
}
