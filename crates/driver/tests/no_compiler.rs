//! Without the compiler library, which is named by the environment: a process of its own.

mod common;
use common::*;

#[test]
fn a_missing_compiler_is_named() {
    // SAFETY: this process has one test, and it has not read the environment yet.
    unsafe {
        std::env::set_var("ANYWARP_BACKEND", "jit");
        std::env::set_var("ANYWARP_COMPILER_LIB", "/nowhere/at/all.so");
        std::env::set_var("CUDA_CACHE_DISABLE", "1");
    }
    let context = new_context();
    let nothing = function(load(KERNELS), "nothing");
    assert_eq!(launch(nothing, 1, 1, CUstream::NULL, &mut []), CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
    // Nothing has failed but the launch.
    let place = alloc(4);
    cu!(cuMemsetD32_v2(place, 7, 1));
    assert_eq!(read::<u32>(place, 1), [7]);
    cu!(cuCtxDestroy_v2(context));
}
