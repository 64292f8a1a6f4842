//! Semaphores of other APIs, by descriptions without reserved space.

use crate::api::prelude::*;
use crate::context;
use crate::streams::resolve;

/// Signals semaphores when the work before is done.
#[entry_point(ptsz)]
fn cudaSignalExternalSemaphoresAsync_cuda12(
    default: DefaultStream,
    extSemArray: *const cudaExternalSemaphore_t,
    paramsArray: Array<cudaExternalSemaphoreSignalParams_v1>,
    numExtSems: u32,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let newer = |index| paramsArray.get(index).map(Into::into);
    let params: Vec<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> =
        (0..numExtSems as usize).map(newer).collect::<Result<_, _>>()?;
    let stream = resolve(default, stream);
    call!(cuSignalExternalSemaphoresAsync(extSemArray, params.as_ptr(), numExtSems, stream))
}

/// The work after waits for semaphores.
#[entry_point(ptsz)]
fn cudaWaitExternalSemaphoresAsync_cuda12(
    default: DefaultStream,
    extSemArray: *const cudaExternalSemaphore_t,
    paramsArray: Array<cudaExternalSemaphoreWaitParams_v1>,
    numExtSems: u32,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let newer = |index| paramsArray.get(index).map(Into::into);
    let params: Vec<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> =
        (0..numExtSems as usize).map(newer).collect::<Result<_, _>>()?;
    let stream = resolve(default, stream);
    call!(cuWaitExternalSemaphoresAsync(extSemArray, params.as_ptr(), numExtSems, stream))
}
