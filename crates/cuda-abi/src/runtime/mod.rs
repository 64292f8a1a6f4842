//! The Runtime API's types, under the manual's names.
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, reason = "the manual's names")]

mod codes;
mod cuda11;
mod cuda12;
mod device_attributes;
mod enums;
mod external;
mod flags;
mod graphs;
mod handles;
mod resources;
mod structs;

pub use codes::*;
pub use cuda11::*;
pub use cuda12::*;
pub use device_attributes::*;
pub use enums::*;
pub use external::*;
pub use flags::*;
pub use graphs::*;
pub use handles::*;
pub use resources::*;
pub use structs::*;

/// The version of the API that is implemented: 1000 × major + 10 × minor.
pub const CUDART_VERSION: i32 = 13000;

/// What a runtime entry point's body returns.
pub type CudaResult<T = ()> = Result<T, cudaError_t>;

impl From<crate::driver::CUresult> for cudaError_t {
    /// The numbers of the two APIs' codes are the same where both have one.
    fn from(code: crate::driver::CUresult) -> Self {
        cudaError_t(code.0)
    }
}
