//! What CUDA 11's library has otherwise than CUDA 12's: `NAME_cuda11` is the function that it exports as `NAME`. Handles are
//! those of the device, whichever library made them.

use super::common::*;
use super::cuda12::Followed;

pub fn a_device_is_chosen_by_properties() {
    let mut wanted = Followed::<cudaDeviceProp_cuda11>::new();
    let mut device = -1;
    cuda!(cudaGetDeviceProperties_cuda11(&mut wanted.value, 0));
    wanted.check();
    cuda!(cudaChooseDevice_cuda11(&mut device, &wanted.value));
    assert!(device >= 0);
    fails!(cudaErrorInvalidValue, cudaChooseDevice_cuda11(null_mut(), &wanted.value));
    fails!(cudaErrorInvalidValue, cudaChooseDevice_cuda11(&mut device, null()));
}

pub fn functions_of_the_driver_are_found_without_a_status() {
    let mut function = null_mut();
    cuda!(cudaGetDriverEntryPoint_cuda11(c"cuMemAlloc".as_ptr(), &mut function, 0));
    assert!(!function.is_null());
    function = null_mut();
    cuda!(cudaGetDriverEntryPoint_cuda11_ptsz(c"cuMemcpy".as_ptr(), &mut function, 0));
    assert!(!function.is_null());
    fails!(cudaErrorInvalidValue, cudaGetDriverEntryPoint_cuda11(c"cuMemAlloc".as_ptr(), null_mut(), 0));
}

pub fn attributes_are_those_of_a_kernel() {
    let mut found = Followed::<cudaFuncAttributes_cuda11>::new();
    fails!(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes_cuda11(&mut found.value, null()));
    found.check();
}

pub fn graphs_tell_what_was_wrong_by_pointers() {
    let (mut graph, mut node, mut executable) =
        (driver::CUgraph(0), driver::CUgraphNode(0), driver::CUgraphExec(0));
    let mut log = [0; 64];
    cuda!(
        cudaGraphCreate(&mut graph, 0);
        cudaGraphAddEmptyNode(&mut node, graph, null(), 0);
        cudaGraphInstantiate_cuda11(&mut executable, graph, null_mut(), log.as_mut_ptr(), log.len());
        cudaGraphLaunch(executable, driver::CUstream(0));
        cudaDeviceSynchronize();
    );
    let mut failed = driver::CUgraphNode(0);
    let mut result = driver::CUgraphExecUpdateResult(99);
    cuda!(cudaGraphExecUpdate_cuda11(executable, graph, &mut failed, &mut result));
    assert_eq!(result.0, 0);
    // Another node more: the executable graph cannot follow.
    cuda!(cudaGraphAddEmptyNode(&mut node, graph, null(), 0));
    fails!(
        cudaErrorGraphExecUpdateFailure,
        cudaGraphExecUpdate_cuda11(executable, graph, &mut failed, &mut result)
    );
    // NVIDIA's driver names another reason here than to `cudaGraphExecUpdate`.
    assert_ne!(result.0, 0);
    cuda!(cudaGraphExecDestroy(executable); cudaGraphDestroy(graph));
}

pub fn textures_are_described_without_seamless_cube_maps() {
    let mut memory = null_mut();
    cuda!(cudaMalloc(&mut memory, 1024));
    // SAFETY: numbers, for which zero is a value.
    let mut resource: cudaResourceDesc_cuda12 = unsafe { std::mem::zeroed() };
    resource.resType = cudaResourceTypeLinear;
    let desc = cudaChannelFormatDesc { x: 32, y: 0, z: 0, w: 0, f: cudaChannelFormatKindFloat };
    resource.res.linear = cudaResourceLinear { devPtr: memory, desc, sizeInBytes: 1024 };
    let mut reading = Followed::<cudaTextureDesc_cuda11>::new();
    let mut texture = 0;
    cuda!(cudaCreateTextureObject_cuda11(&mut texture, &resource, &reading.value, null()));
    reading.value.sRGB = 1;
    cuda!(cudaGetTextureObjectTextureDesc_cuda11(&mut reading.value, texture));
    reading.check();
    assert_eq!((reading.value.sRGB, reading.value.normalizedCoords), (0, 0));
    fails!(
        cudaErrorInvalidValue,
        cudaCreateTextureObject_cuda11(null_mut(), &resource, &reading.value, null())
    );
    cuda!(cudaDestroyTextureObject(texture); cudaFree(memory));
}
