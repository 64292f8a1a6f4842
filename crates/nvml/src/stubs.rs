//! Exported functions without a body, generated from `functions.in`.
#![allow(non_snake_case, reason = "the exported names")]

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
