//! Launches on several devices at once.

use crate::api::execution::shared_bytes;
use crate::api::prelude::*;
use crate::{context, kernels};

/// One cooperative launch for each device, none of which begins before the streams of all have got there.
#[entry_point]
fn cudaLaunchCooperativeKernelMultiDevice(
    launchParamsList: Array<cudaLaunchParams>,
    numDevices: u32,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    let launch = |index| to_driver(&launchParamsList.get(index)?);
    let mut launches = (0..numDevices as usize).map(launch).collect::<CudaResult<Vec<_>>>()?;
    call!(cuLaunchCooperativeKernelMultiDevice(launches.as_mut_ptr(), numDevices, flags))
}

/// The launch in the driver's terms, of the kernel as it is in the stream's context.
fn to_driver(launch: &cudaLaunchParams) -> CudaResult<CUDA_LAUNCH_PARAMS> {
    let (mut of_stream, mut popped) = (CUcontext::NULL, CUcontext::NULL);
    call!(cuStreamGetCtx(launch.stream, &mut of_stream))?;
    call!(cuCtxPushCurrent_v2(of_stream))?;
    let function = kernels::in_context(launch.func);
    call!(cuCtxPopCurrent_v2(&mut popped))?;
    let (grid, block) = (launch.gridDim, launch.blockDim);
    Ok(CUDA_LAUNCH_PARAMS {
        function: function?,
        gridDimX: grid.x,
        gridDimY: grid.y,
        gridDimZ: grid.z,
        blockDimX: block.x,
        blockDimY: block.y,
        blockDimZ: block.z,
        sharedMemBytes: shared_bytes(launch.sharedMem)?,
        hStream: launch.stream,
        kernelParams: launch.args,
    })
}
