//! Execution control, occupancy, and the ways to a kernel's handle.

use std::mem::{MaybeUninit, zeroed};
use std::sync::atomic::{AtomicU32, Ordering};

use super::common::*;

/// Adds two vectors with `launch`, which gets the arguments.
fn check_sum(launch: impl FnOnce(*const c_void, *mut *mut c_void) -> cudaError_t) {
    let (a, b) = (malloc_with(&[1.0f32, 2.0, 3.0]), malloc_with(&[10.0f32, 20.0, 30.0]));
    let (sum, count) = (malloc_with(&[0f32; 3]), 3u32);
    let mut arguments = [arg(&a), arg(&b), arg(&sum), arg(&count)];
    assert_eq!(launch(kernel(c"vecadd"), arguments.as_mut_ptr()), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    assert_eq!(read::<f32>(sum, 3), [11.0, 22.0, 33.0]);
}

pub fn every_kind_of_launch_launches() {
    let config = || {
        // SAFETY: numbers and pointers, for which zero is a value.
        let mut config: cudaLaunchConfig_t = unsafe { zeroed() };
        (config.gridDim, config.blockDim) = (size(1), size(32));
        config
    };
    // SAFETY: the arguments are those of the kernel.
    unsafe {
        check_sum(|kernel, arguments| cudaLaunchKernel(kernel, size(1), size(32), arguments, 0, DEFAULT));
        check_sum(|kernel, arguments| {
            cudaLaunchKernel_ptsz(kernel, size(1), size(32), arguments, 0, DEFAULT)
        });
        check_sum(|kernel, args| cudaLaunchCooperativeKernel(kernel, size(1), size(32), args, 0, DEFAULT));
        check_sum(|kernel, args| {
            cudaLaunchCooperativeKernel_ptsz(kernel, size(1), size(32), args, 0, DEFAULT)
        });
        check_sum(|kernel, arguments| cudaLaunchKernelExC(&config(), kernel, arguments));
        check_sum(|kernel, arguments| cudaLaunchKernelExC_ptsz(&config(), kernel, arguments));
    }
}

pub fn a_kernel_runs_on_the_device_of_its_stream() {
    set_env("ANYWARP_DEVICES", "2");
    let mut devices = 0;
    cuda!(cudaGetDeviceCount(&mut devices));
    if devices < 2 {
        skip("one device");
    }
    cuda!(cudaSetDevice(1));
    let other = stream();
    cuda!(cudaSetDevice(0));
    // Whatever CUDA's guide says.
    let nothing = kernel(c"nothing");
    assert_eq!(launch(nothing, 1, 1, other, &mut []), cudaSuccess);
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut config: cudaLaunchConfig_t = unsafe { zeroed() };
    (config.gridDim, config.blockDim, config.stream) = (size(1), size(1), other);
    cuda!(
        cudaLaunchKernelExC(&config, nothing, null_mut());
        cudaLaunchCooperativeKernel(nothing, size(1), size(1), null_mut(), 0, other);
        cudaStreamSynchronize(other);
    );
    // So does one of a graph, launched for either, and of a graph with kernels for both.
    let (own, forked, joined) = (stream(), event_of(0), event_of(1));
    let (mut graph, mut executable) = (cudaGraph_t::NULL, cudaGraphExec_t::NULL);
    cuda!(
        cudaStreamBeginCapture(own, cudaStreamCaptureModeRelaxed);
        cudaEventRecord(forked, own);
        cudaStreamWaitEvent(other, forked, 0);
    );
    for stream in [own, other] {
        assert_eq!(launch(nothing, 1, 1, stream, &mut []), cudaSuccess);
    }
    cuda!(
        cudaSetDevice(1);
        cudaEventRecord(joined, other);
        cudaSetDevice(0);
        cudaStreamWaitEvent(own, joined, 0);
        cudaStreamEndCapture(own, &mut graph);
        cudaGraphInstantiate(&mut executable, graph, 0);
        cudaGraphLaunch(executable, own);
        cudaGraphLaunch(executable, other);
        cudaStreamSynchronize(own);
        cudaStreamSynchronize(other);
    );
}

/// An event of a device, which is current for a moment.
fn event_of(device: i32) -> cudaEvent_t {
    let (mut before, mut event) = (0, cudaEvent_t::NULL);
    cuda!(cudaGetDevice(&mut before); cudaSetDevice(device); cudaEventCreate(&mut event); cudaSetDevice(before));
    event
}

pub fn impossible_launches_are_refused() {
    let nothing = kernel(c"nothing");
    let launch = |grid: dim3, block: dim3, shared: usize| {
        // SAFETY: the kernel takes no arguments.
        unsafe { cudaLaunchKernel(nothing, grid, block, null_mut(), shared, DEFAULT) }
    };
    let of = |x, y, z| dim3 { x, y, z };
    assert_eq!(launch(size(1), size(1024), 0), cudaSuccess);
    for (grid, block, shared) in [
        (size(0), size(1), 0),
        (size(1), size(0), 0),
        (size(1), size(1025), 0),
        (size(1), of(1, 1, 65), 0),
        (of(1, 65536, 1), size(1), 0),
        (of(1, 1, 65536), size(1), 0),
        (size(1), of(u32::MAX, 2, 1), 0),
        (size(1), size(1), 49153),
        (size(1), size(1), 1 << 20),
        (size(1), size(1), usize::MAX),
    ] {
        assert_eq!(launch(grid, block, shared), cudaErrorInvalidValue, "{grid:?} {block:?} {shared}");
        assert_eq!(last_error(), cudaErrorInvalidValue);
    }
    let code = runtime_differs("NVIDIA's looks at 32 bits of the size", cudaErrorInvalidValue, cudaSuccess);
    assert_eq!((launch(size(1), size(1), 1 << 32), last_error()), (code, code));
    cuda!(cudaDeviceSynchronize());
    // A kernel with parameters needs arguments.
    let bump = kernel(c"bump");
    fails!(cudaErrorInvalidValue, cudaLaunchKernel(bump, size(1), size(1), null_mut(), 0, DEFAULT));
    if our_runtime_only("NVIDIA's runtime follows null") {
        fails!(cudaErrorInvalidValue, cudaLaunchKernelExC(null(), nothing, null_mut()));
    }
    // A grid that cannot be on the device as a whole.
    let all = 1 << 20;
    let none = null_mut();
    fails!(
        cudaErrorCooperativeLaunchTooLarge,
        cudaLaunchCooperativeKernel(nothing, size(all), size(1024), none, 0, DEFAULT)
    );
}

pub fn attributes_of_a_kernel() {
    let mut attributes = MaybeUninit::uninit();
    let reverse = kernel(c"reverse");
    cuda!(cudaFuncGetAttributes(attributes.as_mut_ptr(), reverse));
    // SAFETY: the call wrote them.
    let attributes: cudaFuncAttributes = unsafe { attributes.assume_init() };
    assert_eq!((attributes.sharedSizeBytes, attributes.localSizeBytes), (0, 0));
    assert_eq!(attributes.maxThreadsPerBlock, 1024);
    assert_eq!(attributes.ptxVersion, 80);
    assert!(attributes.binaryVersion >= 80 && attributes.numRegs > 0);
    assert_eq!(attributes.maxDynamicSharedSizeBytes, 49152);
    assert_eq!(attributes.preferredShmemCarveout, -1);
    assert_eq!((attributes.clusterDimMustBeSet, attributes.nonPortableClusterSizeAllowed), (0, 0));
    let mut limited = MaybeUninit::uninit();
    cuda!(cudaFuncGetAttributes(limited.as_mut_ptr(), kernel(c"at_most_64")));
    // SAFETY: as above.
    assert_eq!(unsafe { limited.assume_init() }.maxThreadsPerBlock, 64);
}

pub fn attributes_that_can_be_set() {
    let reverse = kernel(c"reverse");
    let (out, count) = (malloc(4 * 512), 512u32);
    let mut arguments = [arg(&out), arg(&count)];
    let launch = |bytes, arguments: &mut [*mut c_void]| {
        // SAFETY: the arguments are those of the kernel.
        unsafe { cudaLaunchKernel(reverse, size(1), size(512), arguments.as_mut_ptr(), bytes, DEFAULT) }
    };
    assert_eq!(launch(100_000, &mut arguments), cudaErrorInvalidValue);
    cuda!(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 100_000));
    assert_eq!(launch(100_000, &mut arguments), cudaSuccess);
    let expected: Vec<u32> = (0..512).map(|index| 3 * (511 - index)).collect();
    assert_eq!(read::<u32>(out, 512), expected);
    cuda!(cudaFuncSetAttribute(reverse, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    cuda!(cudaFuncSetCacheConfig(reverse, cudaFuncCachePreferShared));
    cuda!(cudaFuncSetSharedMemConfig(reverse, cudaSharedMemBankSizeEightByte));
    let dynamic = cudaFuncAttributeMaxDynamicSharedMemorySize;
    fails!(cudaErrorInvalidValue, cudaFuncSetAttribute(reverse, dynamic, 300_000));
    fails!(cudaErrorInvalidValue, cudaFuncSetAttribute(reverse, dynamic, -1));
    fails!(cudaErrorInvalidValue, cudaFuncSetAttribute(null(), cudaFuncAttribute(1), 0));
    fails!(cudaErrorInvalidValue, cudaFuncSetAttribute(reverse, cudaFuncAttribute(0), 1));
    fails!(cudaErrorInvalidValue, cudaFuncSetCacheConfig(reverse, cudaFuncCache(9)));
    fails!(cudaErrorInvalidDeviceFunction, cudaFuncSetAttribute(null(), dynamic, 1));
    fails!(
        cudaErrorInvalidDeviceFunction,
        cudaFuncSetSharedMemConfig(null(), cudaSharedMemBankSizeEightByte)
    );
}

pub fn parameters_of_a_kernel() {
    let mixed = kernel(c"mixed");
    let (mut offset, mut bytes) = (0, 0);
    for (index, expected) in [(0, 4), (4, 1), (8, 8), (16, 4)].into_iter().enumerate() {
        cuda!(cudaFuncGetParamInfo(mixed, index, &mut offset, &mut bytes));
        assert_eq!((offset, bytes), expected);
    }
    cuda!(cudaFuncGetParamInfo(mixed, 0, &mut offset, null_mut()));
    fails!(cudaErrorInvalidValue, cudaFuncGetParamInfo(mixed, 4, &mut offset, &mut bytes));
    fails!(cudaErrorInvalidValue, cudaFuncGetParamInfo(mixed, 0, null_mut(), &mut bytes));
    let mut name = null();
    cuda!(cudaFuncGetName(&mut name, mixed));
    assert_eq!(text_of(name), "mixed");
    fails!(cudaErrorInvalidValue, cudaFuncGetName(null_mut(), mixed));
}

pub fn host_functions_run_in_order_and_may_not_call_the_api() {
    static STEPS: AtomicU32 = AtomicU32::new(0);
    static CODE: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn step(number: *mut c_void) {
        // SAFETY: results have their places.
        let code = unsafe { cudaMalloc(&mut null_mut(), 64) };
        CODE.store(code.0, Ordering::SeqCst);
        // SAFETY: as above.
        let taken = unsafe { cudaGetLastError() };
        assert_eq!(taken, cudaErrorNotPermitted);
        STEPS.store(STEPS.load(Ordering::SeqCst) * 10 + number.addr() as u32, Ordering::SeqCst);
    }
    let number = std::ptr::without_provenance_mut;
    let stream = stream();
    cuda!(cudaLaunchHostFunc(stream, Some(step), number(1)));
    cuda!(cudaLaunchHostFunc(stream, Some(step), number(2)); cudaStreamSynchronize(stream));
    cuda!(cudaLaunchHostFunc_ptsz(DEFAULT, Some(step), number(3)); cudaStreamSynchronize_ptsz(DEFAULT));
    cuda!(cudaLaunchHostFunc(DEFAULT, Some(step), number(4)); cudaDeviceSynchronize());
    assert_eq!(STEPS.load(Ordering::SeqCst), 1234);
    assert_eq!(CODE.load(Ordering::SeqCst), cudaErrorNotPermitted.0);
    assert_eq!(last_error(), cudaSuccess);
    fails!(cudaErrorInvalidValue, cudaLaunchHostFunc(stream, None, null_mut()));
}

pub fn occupancy_of_a_kernel() {
    let reverse = kernel(c"reverse");
    let (mut blocks, mut bytes) = (0, 0);
    cuda!(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, reverse, 256, 0));
    let threads = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    assert_eq!(blocks, threads / 256);
    let flags = cudaOccupancyDisableCachingOverride;
    cuda!(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut blocks, reverse, 1024, 0, flags));
    assert_eq!(blocks, threads / 1024);
    cuda!(cudaOccupancyAvailableDynamicSMemPerBlock(&mut bytes, reverse, 2, 256));
    let available = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) as usize / 2;
    assert!(bytes > 0 && bytes <= available, "{bytes} of {available}");
    cuda!(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, reverse, 256, 0));
    let place = &mut bytes;
    fails!(cudaErrorInvalidValue, cudaOccupancyAvailableDynamicSMemPerBlock(place, reverse, 0, 256));
    if our_runtime_only("NVIDIA's driver writes to null, and its runtime passes it on") {
        fails!(cudaErrorInvalidValue, cudaOccupancyAvailableDynamicSMemPerBlock(null_mut(), reverse, 2, 256));
    }
    fails!(cudaErrorInvalidDeviceFunction, cudaOccupancyAvailableDynamicSMemPerBlock(place, null(), 2, 256));
}

pub fn a_kernels_handles() {
    let nothing = kernel_of(library(KERNELS), c"nothing");
    let mut function = driver::CUfunction::NULL;
    cuda!(cudaFree(null_mut()));
    cu!(get_function(&mut function, nothing));
    // A function of the driver will do where a host function stands.
    assert_eq!(launch(std::ptr::without_provenance(function.0), 1, 1, DEFAULT, &mut []), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    let mut kernel = cudaKernel_t::NULL;
    let stranger = std::ptr::from_ref(&kernel).cast();
    fails!(cudaErrorInvalidDeviceFunction, cudaGetFuncBySymbol(&mut function, stranger));
    fails!(cudaErrorInvalidDeviceFunction, cudaGetFuncBySymbol(&mut function, null()));
    fails!(cudaErrorInvalidDeviceFunction, cudaGetKernel(&mut kernel, null()));
}

use driver::{CUDA_SUCCESS, cuKernelGetFunction as get_function};
