//! Codes of the runtime as kernels see them. (The host's are the runtime's; a kernel's come from the device.)

use crate::Error;

/// A `cudaError_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub(super) u32);

macro_rules! codes {
    ($($name:ident = $number:literal, $spelling:literal, $meaning:literal;)*) => {
        impl Code {
            $(pub(super) const $name: Code = Code($number);)*
        }

        /// Number, name and meaning of each, ended by NUL for C.
        const KNOWN: &[(u32, &str, &str)] =
            &[$(($number, concat!($spelling, "\0"), concat!($meaning, "\0"))),*];
    };
}

codes! {
    SUCCESS = 0, "cudaSuccess", "no error";
    INVALID_VALUE = 1, "cudaErrorInvalidValue", "invalid argument";
    MEMORY_ALLOCATION = 2, "cudaErrorMemoryAllocation", "out of memory";
    INVALID_CONFIGURATION = 9, "cudaErrorInvalidConfiguration", "invalid configuration argument";
    INVALID_MEMCPY_DIRECTION = 21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy";
    LAUNCH_PENDING_COUNT_EXCEEDED = 69, "cudaErrorLaunchPendingCountExceeded", "launch failed because there are too many pending launches";
    INVALID_DEVICE_FUNCTION = 98, "cudaErrorInvalidDeviceFunction", "invalid device function";
    INVALID_DEVICE = 101, "cudaErrorInvalidDevice", "invalid device ordinal";
    UNSUPPORTED_LIMIT = 215, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture";
    INVALID_PTX = 218, "cudaErrorInvalidPtx", "a PTX JIT compilation failed";
    INVALID_RESOURCE_HANDLE = 400, "cudaErrorInvalidResourceHandle", "invalid resource handle";
    ILLEGAL_ADDRESS = 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch";
    CONTEXT_IS_DESTROYED = 709, "cudaErrorContextIsDestroyed", "context is destroyed";
    LAUNCH_FAILURE = 719, "cudaErrorLaunchFailure", "unspecified launch failure";
    NOT_SUPPORTED = 801, "cudaErrorNotSupported", "operation not supported";
}

impl Code {
    /// Address of its name, a C string.
    pub(super) fn name_address(self) -> u64 {
        self.text(|known| known.1)
    }

    /// Address of what it means, a C string.
    pub(super) fn meaning_address(self) -> u64 {
        self.text(|known| known.2)
    }

    fn text(self, part: impl Fn(&'static (u32, &'static str, &'static str)) -> &'static str) -> u64 {
        let text = KNOWN.iter().find(|known| known.0 == self.0).map_or("unrecognized error code\0", part);
        text.as_ptr().expose_provenance() as u64
    }
}

impl From<Error> for Code {
    fn from(error: Error) -> Code {
        match error {
            Error::InvalidValue => Code::INVALID_CONFIGURATION,
            Error::OutOfMemory => Code::MEMORY_ALLOCATION,
            Error::LaunchOutOfResources => Code::LAUNCH_OUT_OF_RESOURCES,
            Error::InvalidPtx(_) | Error::NoCompiler(_) => Code::INVALID_PTX,
            Error::InvalidHandle => Code::INVALID_DEVICE_FUNCTION,
            Error::ContextIsDestroyed => Code::CONTEXT_IS_DESTROYED,
            Error::UnsupportedLimit => Code::UNSUPPORTED_LIMIT,
            Error::NotSupported(_) => Code::NOT_SUPPORTED,
            _ => Code::LAUNCH_FAILURE,
        }
    }
}
