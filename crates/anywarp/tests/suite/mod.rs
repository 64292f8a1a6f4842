//! What a program does with the crate, whatever the platform: each test file that includes this says which.

mod code;
mod memory;
mod streams;

use crate::platform;
use anywarp::{Context, Error, Result};

pub const KERNELS: &str = include_str!("kernels.ptx");

/// A context of the test's own, or the end of a test without a platform.
macro_rules! context {
    () => {
        match $crate::suite::make_context() {
            Some(context) => context,
            None => return,
        }
    };
}
pub(crate) use context;

pub fn make_context() -> Option<Context> {
    Some(platform()?.device(0).unwrap().create_context().unwrap())
}

/// The error that there must be.
pub fn refused<T>(outcome: Result<T>) -> Error {
    outcome.err().expect("it should have been refused")
}
