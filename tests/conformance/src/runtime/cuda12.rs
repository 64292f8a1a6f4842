//! What CUDA 12's library has otherwise than CUDA 13's: `NAME_cuda12` is the function that it exports as `NAME`. All else
//! is called in CUDA 13's library, which works on the same device.

use super::common::*;

/// A structure with something behind it that the library must leave alone.
#[repr(C)]
pub struct Followed<T> {
    pub value: T,
    behind: [u8; 64],
}

impl<T> Followed<T> {
    pub fn new() -> Self {
        // SAFETY: used for structures of numbers, pointers and unions of them.
        Self { value: unsafe { std::mem::zeroed() }, behind: [0xA5; 64] }
    }

    pub fn check(&self) {
        assert_eq!(self.behind, [0xA5; 64], "written behind the structure");
    }
}

fn attribute(attribute: cudaDeviceAttr) -> i32 {
    let mut value = 0;
    cuda!(cudaDeviceGetAttribute(&mut value, attribute, 0));
    value
}

pub fn properties_have_the_fields_that_cuda_13_removed() {
    let mut found = Followed::<cudaDeviceProp_cuda12>::new();
    let mut new = Followed::<cudaDeviceProp>::new();
    cuda!(cudaGetDeviceProperties_v2(&mut found.value, 0); cudaGetDeviceProperties(&mut new.value, 0));
    found.check();
    let (p, new) = (found.value, new.value);
    assert_eq!((p.name, p.uuid, p.totalGlobalMem), (new.name, new.uuid, new.totalGlobalMem));
    assert_eq!((p.major, p.minor), (new.major, new.minor));
    assert_eq!(p.multiProcessorCount, attribute(cudaDevAttrMultiProcessorCount));
    assert_eq!(p.maxGridSize, new.maxGridSize);
    assert_eq!(p.maxTexture2DLinear, new.maxTexture2DLinear);
    assert_eq!(p.sharedMemPerMultiprocessor, new.sharedMemPerMultiprocessor);
    assert_eq!(p.reservedSharedMemPerBlock, new.reservedSharedMemPerBlock);
    assert_eq!(p.memoryPoolsSupported, attribute(cudaDevAttrMemoryPoolsSupported));
    assert_eq!(p.clockRate, attribute(cudaDevAttrClockRate));
    assert_eq!(p.memoryClockRate, attribute(cudaDevAttrMemoryClockRate));
    assert_eq!(p.deviceOverlap, attribute(cudaDevAttrGpuOverlap));
    assert_eq!(p.computeMode, attribute(cudaDevAttrComputeMode));
    assert_eq!(p.kernelExecTimeoutEnabled, attribute(cudaDevAttrKernelExecTimeout));
    assert_eq!(p.singleToDoublePrecisionPerfRatio, attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio));
    assert!(p.clockRate > 0 && p.warpSize == 32, "{} {}", p.clockRate, p.warpSize);
    fails!(cudaErrorInvalidValue, cudaGetDeviceProperties_v2(null_mut(), 0));
    fails!(cudaErrorInvalidDevice, cudaGetDeviceProperties_v2(&mut found.value, 1000));
}

pub fn properties_of_cuda_11_end_where_its_structure_ends() {
    const SIZE: usize = std::mem::offset_of!(cudaDeviceProp_cuda12, hostRegisterSupported);
    let mut bytes = [0xA5_u8; 2048];
    let mut whole = Followed::<cudaDeviceProp_cuda12>::new();
    cuda!(cudaGetDeviceProperties_cuda11(bytes.as_mut_ptr().cast(), 0));
    cuda!(cudaGetDeviceProperties_v2(&mut whole.value, 0));
    // SAFETY: a structure without padding in what is compared.
    let expected = unsafe { std::slice::from_raw_parts((&raw const whole.value).cast::<u8>(), SIZE) };
    let multiprocessors = std::mem::offset_of!(cudaDeviceProp_cuda12, multiProcessorCount);
    assert_eq!(bytes[..256], expected[..256], "the name");
    assert_eq!(bytes[multiprocessors..SIZE - 8], expected[multiprocessors..SIZE - 8]);
    assert!(bytes[SIZE..].iter().all(|&byte| byte == 0xA5), "written behind the structure");
    fails!(cudaErrorInvalidValue, cudaGetDeviceProperties_cuda11(null_mut(), 0));
}

pub fn a_device_is_chosen_by_properties() {
    let mut wanted = Followed::<cudaDeviceProp_cuda12>::new().value;
    wanted.major = 1;
    let mut device = -1;
    cuda!(cudaChooseDevice_cuda12(&mut device, &wanted));
    assert!(device >= 0);
    fails!(cudaErrorInvalidValue, cudaChooseDevice_cuda12(null_mut(), &wanted));
    fails!(cudaErrorInvalidValue, cudaChooseDevice_cuda12(&mut device, null()));
}

pub fn pointer_attributes_are_24_bytes() {
    let mut pointer = null_mut();
    cuda!(cudaMalloc(&mut pointer, 256));
    let mut found = Followed::<cudaPointerAttributes_cuda12>::new();
    cuda!(cudaPointerGetAttributes_cuda12(&mut found.value, pointer));
    found.check();
    assert_eq!(found.value.r#type, cudaMemoryTypeDevice);
    assert_eq!((found.value.device, found.value.devicePointer), (0, pointer));
    assert!(found.value.hostPointer.is_null());
    let local = 0;
    cuda!(cudaPointerGetAttributes_cuda12(&mut found.value, (&raw const local).cast()));
    assert_eq!(found.value.r#type, cudaMemoryTypeUnregistered);
    fails!(cudaErrorInvalidValue, cudaPointerGetAttributes_cuda12(null_mut(), pointer));
}

pub fn places_of_managed_memory_are_device_numbers() {
    const SIZE: usize = 1 << 20;
    let mut pointer = null_mut();
    cuda!(cudaMallocManaged(&mut pointer, SIZE, cudaMemAttachGlobal));
    let place = |attribute| {
        let mut place = -7;
        cuda!(cudaMemRangeGetAttribute((&raw mut place).cast(), 4, attribute, pointer, SIZE));
        place
    };
    for device in [0, cudaCpuDeviceId] {
        cuda!(cudaMemAdvise_cuda12(pointer, SIZE, cudaMemAdviseSetPreferredLocation, device));
        assert_eq!(place(cudaMemRangeAttributePreferredLocation), device);
        cuda!(cudaMemPrefetchAsync_cuda12(pointer, SIZE, device, cudaStream_t::NULL));
        assert_eq!(place(cudaMemRangeAttributeLastPrefetchLocation), device);
        cuda!(cudaMemPrefetchAsync_cuda12_ptsz(pointer, SIZE, device, cudaStream_t::NULL));
    }
    fails!(
        cudaErrorInvalidDevice,
        cudaMemAdvise_cuda12(pointer, SIZE, cudaMemAdviseSetPreferredLocation, 1000)
    );
    fails!(cudaErrorInvalidDevice, cudaMemPrefetchAsync_cuda12(pointer, SIZE, 1000, cudaStream_t::NULL));
    cuda!(cudaDeviceSynchronize(); cudaFree(pointer));
}

pub fn a_batch_tells_where_it_failed() {
    let (mut stream, mut from, mut to) = (cudaStream_t::NULL, null_mut(), null_mut());
    cuda!(cudaStreamCreate(&mut stream); cudaMalloc(&mut from, 512); cudaMalloc(&mut to, 512));
    cuda!(cudaMemsetAsync(from, 3, 512, stream));
    let mut targets = [to, to.wrapping_byte_add(256)];
    let mut sources = [from, from.wrapping_byte_add(256)];
    let (mut sizes, mut first, mut failed) = ([256, 128], 0, 7);
    let mut attributes = cudaMemcpyAttributes {
        srcAccessOrder: driver::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        srcLocHint: driver::CUmemLocation { r#type: driver::CUmemLocationType(0), id: 0 },
        dstLocHint: driver::CUmemLocation { r#type: driver::CUmemLocationType(0), id: 0 },
        flags: 0,
    };
    let mut copy = |targets: &mut [*mut c_void; 2], failed: &mut usize| {
        let (to, from, sizes) = (targets.as_mut_ptr(), sources.as_mut_ptr(), sizes.as_mut_ptr());
        // SAFETY: as many addresses, sizes and attributes as is said.
        unsafe {
            cudaMemcpyBatchAsync_cuda12(to, from, sizes, 2, &mut attributes, &mut first, 1, failed, stream)
        }
    };
    assert_eq!(copy(&mut targets, &mut failed), cudaSuccess);
    let mut bytes = [0_u8; 512];
    cuda!(cudaMemcpyAsync(bytes.as_mut_ptr().cast(), to, 512, cudaMemcpyDeviceToHost, stream));
    cuda!(cudaStreamSynchronize(stream));
    assert!(bytes[..384].iter().all(|&byte| byte == 3));
    targets[1] = null_mut();
    assert_eq!(copy(&mut targets, &mut failed), cudaErrorInvalidValue);
    assert_eq!(failed, 1);
}

pub fn edges_have_no_data() {
    let mut graph = cudaGraph_t::NULL;
    let [mut a, mut b, mut c] = [cudaGraphNode_t::NULL; 3];
    cuda!(cudaGraphCreate(&mut graph, 0));
    for node in [&mut a, &mut b, &mut c] {
        cuda!(cudaGraphAddEmptyNode(node, graph, null(), 0));
    }
    let (from, to) = ([a, b], [c, c]);
    cuda!(cudaGraphAddDependencies_cuda12(graph, from.as_ptr(), to.as_ptr(), 2));

    let mut count = 0;
    cuda!(cudaGraphGetEdges_cuda12(graph, null_mut(), null_mut(), &mut count));
    assert_eq!(count, 2);
    let (mut found_from, mut found_to) = ([a; 2], [a; 2]);
    cuda!(cudaGraphGetEdges_cuda12(graph, found_from.as_mut_ptr(), found_to.as_mut_ptr(), &mut count));
    found_from.sort();
    let mut expected = from;
    expected.sort();
    assert_eq!((found_from, found_to), (expected, to));

    let mut before = [c; 2];
    cuda!(cudaGraphNodeGetDependencies_cuda12(c, before.as_mut_ptr(), &mut count));
    before.sort();
    assert_eq!((count, before), (2, expected));
    let mut after = [a; 2];
    cuda!(cudaGraphNodeGetDependentNodes_cuda12(a, after.as_mut_ptr(), &mut count));
    assert_eq!((count, after[0]), (1, c));

    cuda!(cudaGraphRemoveDependencies_cuda12(graph, from.as_ptr(), to.as_ptr(), 1));
    cuda!(cudaGraphNodeGetDependencies_cuda12(c, null_mut(), &mut count));
    assert_eq!(count, 1);
    // The edge is no longer there.
    fails!(cudaErrorInvalidValue, cudaGraphRemoveDependencies_cuda12(graph, from.as_ptr(), to.as_ptr(), 1));
    fails!(cudaErrorInvalidValue, cudaGraphAddDependencies_cuda12(graph, null(), to.as_ptr(), 1));
    fails!(cudaErrorInvalidValue, cudaGraphGetEdges_cuda12(graph, null_mut(), null_mut(), null_mut()));
    cuda!(cudaGraphDestroy(graph));
}

pub fn a_capture_is_described_without_the_data_of_edges() {
    let mut stream = cudaStream_t::NULL;
    let (mut status, mut id) = (cudaStreamCaptureStatus(7), 0);
    cuda!(cudaStreamCreate(&mut stream));
    cuda!(cudaStreamGetCaptureInfo_cuda12(stream, &mut status, &mut id));
    assert_eq!(status, cudaStreamCaptureStatusNone);

    cuda!(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    let mut pointer = null_mut();
    cuda!(cudaMalloc(&mut pointer, 64); cudaMemsetAsync(pointer, 1, 64, stream));
    cuda!(cudaStreamGetCaptureInfo_cuda12(stream, &mut status, &mut id));
    assert_eq!(status, cudaStreamCaptureStatusActive);
    cuda!(cudaStreamGetCaptureInfo_cuda12_ptsz(stream, &mut status, null_mut()));

    let (mut same_id, mut graph, mut nodes, mut count) = (0, cudaGraph_t::NULL, null(), 0);
    cuda!(cudaStreamGetCaptureInfo_v2(stream, &mut status, &mut same_id, &mut graph, &mut nodes, &mut count));
    assert_eq!((status, same_id, count), (cudaStreamCaptureStatusActive, id, 1));
    // SAFETY: the library said that there is one.
    let memset = unsafe { *nodes };
    cuda!(cudaStreamGetCaptureInfo_v2_ptsz(
        stream,
        &mut status,
        null_mut(),
        null_mut(),
        null_mut(),
        null_mut()
    ));

    let mut node = cudaGraphNode_t::NULL;
    cuda!(cudaGraphAddEmptyNode(&mut node, graph, null(), 0));
    const ADD: u32 = 0;
    const SET: u32 = 1;
    cuda!(cudaStreamUpdateCaptureDependencies_cuda12(stream, &mut node, 1, ADD));
    cuda!(cudaStreamGetCaptureInfo_v2(stream, &mut status, null_mut(), null_mut(), null_mut(), &mut count));
    assert_eq!(count, 2);
    cuda!(cudaStreamUpdateCaptureDependencies_cuda12_ptsz(stream, &mut node, 1, SET));
    cuda!(cudaStreamGetCaptureInfo_v2(stream, &mut status, null_mut(), null_mut(), &mut nodes, &mut count));
    // SAFETY: as above.
    assert_eq!((count, unsafe { *nodes }), (1, node));
    assert_ne!(node, memset);

    let mut captured = cudaGraph_t::NULL;
    cuda!(cudaStreamEndCapture(stream, &mut captured));
    assert_eq!(captured, graph);
    fails!(cudaErrorIllegalState, cudaStreamUpdateCaptureDependencies_cuda12(stream, &mut node, 1, ADD));
    fails!(cudaErrorInvalidValue, cudaStreamGetCaptureInfo_cuda12(stream, null_mut(), &mut id));
}

pub fn time_passes_between_events() {
    let (mut start, mut end, mut ms) = (cudaEvent_t::NULL, cudaEvent_t::NULL, -1.0);
    cuda!(cudaEventCreate(&mut start); cudaEventCreate(&mut end));
    cuda!(cudaEventRecord(start, cudaStream_t::NULL); cudaEventRecord(end, cudaStream_t::NULL));
    cuda!(cudaEventSynchronize(end); cudaEventElapsedTime_cuda12(&mut ms, start, end));
    assert!(ms >= 0.0, "{ms}");
    fails!(cudaErrorInvalidValue, cudaEventElapsedTime_cuda12(null_mut(), start, end));
}

pub fn functions_of_threads_are_those_of_the_device() {
    let (mut limit, mut same) = (0, 1);
    cuda!(cudaThreadGetLimit(&mut limit, cudaLimitStackSize); cudaDeviceGetLimit(&mut same, cudaLimitStackSize));
    assert_eq!(limit, same);
    cuda!(cudaThreadSetLimit(cudaLimitStackSize, 4096); cudaDeviceGetLimit(&mut same, cudaLimitStackSize));
    assert!(same >= 4096, "{same}");
    fails!(cudaErrorInvalidValue, cudaThreadGetLimit(null_mut(), cudaLimitStackSize));

    let mut config = cudaFuncCache(7);
    cuda!(cudaThreadSetCacheConfig(cudaFuncCachePreferL1); cudaThreadGetCacheConfig(&mut config));
    assert!(config == cudaFuncCachePreferL1 || config == cudaFuncCachePreferNone, "{config:?}");

    let mut pointer = null_mut();
    cuda!(cudaMalloc(&mut pointer, 64); cudaMemsetAsync(pointer, 1, 64, cudaStream_t::NULL); cudaThreadSynchronize());
    cuda!(cudaThreadExit());
    fails!(cudaErrorInvalidValue, cudaFree(pointer));
}

pub fn doubles_stay_as_they_are() {
    let mut number = 1.5;
    cuda!(cudaSetDoubleForDevice(&mut number); cudaSetDoubleForHost(&mut number));
    assert_eq!(number, 1.5);
}

/// One grid for each device.
pub fn a_cooperative_launch_may_span_devices() {
    if !ours_only("NVIDIA's driver has kept the function's name and attribute, and refuses every launch") {
        return;
    }
    set_env("ANYWARP_DEVICES", "2");
    let mut devices = 0;
    cuda!(cudaGetDeviceCount(&mut devices));
    let poke = kernel(c"poke");
    let words: Vec<_> = (0..devices.min(2))
        .map(|device| {
            cuda!(cudaSetDevice(device));
            (malloc_with(&[0_u32]), stream())
        })
        .collect();
    let mut arguments: Vec<_> = words.iter().map(|(word, _)| [arg(word)]).collect();
    let launches = arguments.iter_mut().zip(&words).map(|(arguments, (_, stream))| cudaLaunchParams {
        func: poke,
        gridDim: size(2),
        blockDim: size(32),
        args: arguments.as_mut_ptr(),
        sharedMem: 0,
        stream: *stream,
    });
    let mut launches: Vec<_> = launches.collect();
    let count = launches.len() as u32;
    // CUDA 13 has only kept the number.
    let supported = attribute(cudaDeviceAttr(96)) == 1;
    let code = if supported { cudaSuccess } else { cudaErrorNotSupported };
    fails!(code, cudaLaunchCooperativeKernelMultiDevice(launches.as_mut_ptr(), count, 0));
    for (word, stream) in &words {
        cuda!(cudaStreamSynchronize(*stream));
        assert_eq!(read::<u32>(*word, 1), [u32::from(supported)]);
    }
    if supported {
        fails!(
            cudaErrorInvalidValue,
            cudaLaunchCooperativeKernelMultiDevice(launches.as_mut_ptr(), count, 4)
        );
        fails!(cudaErrorInvalidValue, cudaLaunchCooperativeKernelMultiDevice(null_mut(), 1, 0));
        launches[0].stream = DEFAULT;
        fails!(
            cudaErrorInvalidValue,
            cudaLaunchCooperativeKernelMultiDevice(launches.as_mut_ptr(), count, 0)
        );
    }
}
