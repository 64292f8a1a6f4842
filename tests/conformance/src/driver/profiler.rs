//! Profiler control.

use super::common::*;

pub fn starting_and_stopping_without_a_profiler_succeeds() {
    new_context();
    cu!(cuProfilerStart(); cuProfilerStop(); cuProfilerStop(); cuProfilerStart());
}

pub fn starting_needs_a_context() {
    fails!(CUDA_ERROR_NOT_INITIALIZED, cuProfilerStart());
    init();
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuProfilerStart());
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuProfilerStop());
}

pub fn the_old_initialisation_is_gone() {
    new_context();
    fails!(
        CUDA_ERROR_NOT_SUPPORTED,
        cuProfilerInitialize(c"config".as_ptr(), c"output".as_ptr(), CU_OUT_CSV)
    );
}
