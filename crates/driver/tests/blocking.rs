//! `CUDA_LAUNCH_BLOCKING=1`, which is read once: a process of its own.

mod common;
use common::*;

#[test]
fn a_launch_reports_its_own_failure() {
    // SAFETY: this process has one test, and it has not read the environment yet.
    unsafe { std::env::set_var("CUDA_LAUNCH_BLOCKING", "1") };
    let context = new_context();
    let module = load(KERNELS);
    let place = alloc(4);
    assert_eq!(launch(function(module, "poke"), 1, 1, CUstream::NULL, &mut [arg(&place)]), CUDA_SUCCESS);
    cu!(cuStreamQuery(CUstream::NULL));
    assert_eq!(read::<u32>(place, 1), [1]);
    let nowhere = 16u64;
    let code = launch(function(module, "poke"), 1, 1, CUstream::NULL, &mut [arg(&nowhere)]);
    assert_eq!(code, CUDA_ERROR_ILLEGAL_ADDRESS);
    cu!(cuCtxDestroy_v2(context));
}
