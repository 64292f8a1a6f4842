//! Tests of the management library.

use crate::Test;

mod devices;
mod events;
mod initialization;
mod processes;
mod system;

/// The functions of the library under test that the tests name.
#[allow(
    non_snake_case,
    dead_code,
    unused_imports,
    reason = "the manual's names; a helper may name more than the tests use"
)]
pub(crate) mod functions {
    use cuda_abi::nvml::*;
    use std::ffi::*;

    use crate::library::Symbol;

    include!(concat!(env!("OUT_DIR"), "/nvml_functions.rs"));
}

include!(concat!(env!("OUT_DIR"), "/nvml_tests.rs"));

/// What the tests share.
mod common;
