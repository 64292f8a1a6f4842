//! Profiler control: a profiler that watches this library hears of these calls; without one they do nothing.

use crate::contexts;
use crate::error::CuResult;
use cuda_abi::args::Text;
use cuda_abi::driver::*;
use entry_macros::entry_point;

#[entry_point]
fn cuProfilerStart() -> CuResult {
    device::graph::check_unsafe_call()?;
    contexts::usable().map(drop)
}

#[entry_point]
fn cuProfilerStop() -> CuResult {
    contexts::usable().map(drop)
}

/// Since version 12 of the API always an error: the profiler that it configured is gone.
#[entry_point]
fn cuProfilerInitialize(_configFile: Text, _outputFile: Text, _outputMode: CUoutput_mode) -> CuResult {
    Err(CUDA_ERROR_NOT_SUPPORTED.into())
}
