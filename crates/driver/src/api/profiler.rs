//! Profiler control: a profiler that watches this library hears of these calls; without one they do nothing.

use crate::error::CuResult;
use entry_macros::entry_point;

#[entry_point]
fn cuProfilerStart() -> CuResult {
    Ok(())
}

#[entry_point]
fn cuProfilerStop() -> CuResult {
    Ok(())
}
