//! Tests of the Driver API, a file for each heading of the manual.

use crate::Test;

mod array_copies;
mod arrays;
mod assertions;
mod capture_misuse;
mod captures;
mod checkpointing;
mod clusters;
mod compressed_arrays;
mod contexts;
mod copies;
mod copy_batches;
mod coredumps;
mod decompression;
mod device_management;
mod empty_arguments;
mod entry_points;
mod error_handling;
mod error_log;
mod events;
pub(crate) mod every_handle;
mod execution;
mod external_resources;
mod faults;
mod graph_batches;
mod graph_conditionals;
mod graph_edges;
mod graph_ids;
mod graph_memory;
mod graph_nodes;
mod graph_pictures;
mod graph_structure;
mod graph_updatable;
mod graph_updates;
mod green_contexts;
mod handles;
mod handles_in_structures;
mod initialization;
mod ipc;
mod jit_options;
mod jit_tuning;
mod known_answers;
mod large_graphs;
mod libraries;
mod linker;
mod managed;
mod memory;
mod memory_v1;
mod modules;
mod occupancy;
mod peers;
mod pointers;
mod pools;
mod primary_contexts;
mod profiler;
mod sets;
mod sparse_arrays;
mod stale_handles;
mod stream_attributes;
mod stream_memory;
mod streams;
mod tensor_maps;
mod texture_objects;
mod texture_reads;
mod texture_references;
mod version_management;
mod virtual_memory;

/// The functions of the library under test that the tests name.
#[allow(
    non_snake_case,
    dead_code,
    unused_imports,
    reason = "the manual's names; a helper may name more than the tests use"
)]
pub(crate) mod functions {
    use cuda_abi::driver::*;
    use std::ffi::*;

    use crate::every_handle::{Function, Parameter};
    use crate::library::Symbol;

    include!(concat!(env!("OUT_DIR"), "/driver_functions.rs"));
    include!(concat!(env!("OUT_DIR"), "/driver_handles.rs"));
}

include!(concat!(env!("OUT_DIR"), "/driver_tests.rs"));

/// What the tests share.
mod common;
