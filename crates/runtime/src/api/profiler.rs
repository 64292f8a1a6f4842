//! Profiler control.

use super::prelude::*;
use crate::context;

/// Starts collecting for a profiler that is attached.
#[entry_point]
fn cudaProfilerStart() -> CudaResult {
    context::ensure_current()?;
    call!(cuProfilerStart())
}

/// Stops collecting.
#[entry_point]
fn cudaProfilerStop() -> CudaResult {
    context::ensure_current()?;
    call!(cuProfilerStop())
}
