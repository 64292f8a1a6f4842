//! The Driver API's types, under the manual's names.
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, reason = "the manual's names")]

mod array_mappings;
mod batches;
mod capabilities;
mod codes;
mod device_attributes;
mod dumps;
mod enums;
mod external;
mod flags;
mod graphs;
mod green;
mod handles;
mod notifications;
mod resources;
mod sharing;
mod streams;
mod structs;
mod version_1;

pub use array_mappings::*;
pub use batches::*;
pub use capabilities::*;
pub use codes::*;
pub use device_attributes::*;
pub use dumps::*;
pub use enums::*;
pub use external::*;
pub use flags::*;
pub use graphs::*;
pub use green::*;
pub use handles::*;
pub use notifications::*;
pub use resources::*;
pub use sharing::*;
pub use streams::*;
pub use structs::*;
pub use version_1::*;

/// The version of the API that is implemented: 1000 × major + 10 × minor.
pub const CUDA_VERSION: i32 = 13000;
