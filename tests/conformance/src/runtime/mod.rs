//! Tests of the Runtime API, a file for each heading of the manual.

use crate::Test;

mod arrays;
mod compiler_interface;
mod compressed_arrays;
mod contexts;
mod cuda11;
mod cuda12;
mod devices;
mod error_log;
mod errors;
mod every_handle;
mod execution;
mod external_resources;
mod graphs;
mod libraries;
mod memory;
mod pools;
mod streams;
mod versions;

/// The functions of the library under test that the tests name.
#[allow(
    non_snake_case,
    dead_code,
    unused_imports,
    reason = "the manual's names; a helper may name more than the tests use"
)]
mod functions {
    use cuda_abi::runtime::*;
    use std::ffi::*;

    use crate::every_handle::{Function, Parameter};
    use crate::library::Symbol;

    include!(concat!(env!("OUT_DIR"), "/runtime_functions.rs"));
    include!(concat!(env!("OUT_DIR"), "/runtime_handles.rs"));
}

include!(concat!(env!("OUT_DIR"), "/runtime_tests.rs"));

/// What the tests share.
mod common;
