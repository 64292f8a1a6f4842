//! Execution control: launches, attributes of functions, and the deprecated way.

use super::common::*;

const KERNELS_HERE: &str = ".version 8.0
.target sm_80
.address_size 64
.const .align 4 .u32 cvar[2] = {5, 6};

.visible .entry smem(.param .u64 out)
{
    .shared .align 4 .b8 many[32768];
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, many;
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r2, 2;
    add.u32 %r1, %r1, %r3;
    ld.const.u32 %r4, [cvar+4];
    st.shared.u32 [%r1], %r4;
    ld.shared.u32 %r4, [%r1];
    st.global.u32 [%rd1], %r4;
    ret;
}

// out[0] += 1 for each thread; out[1..4] are the sizes of block and grid, as the thread sees them.
.visible .entry shape(.param .u64 out)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    atom.global.add.u32 %r1, [%rd1], 1;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %ntid.y;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %nctaid.y;
    st.global.u32 [%rd1+4], %r1;
    st.global.u32 [%rd1+8], %r2;
    st.global.u32 [%rd1+12], %r3;
    st.global.u32 [%rd1+16], %r4;
    ret;
}

// out[0] = a + b, as floats.
.visible .entry sum(.param .u64 out, .param .f32 a, .param .f32 b)
{
    .reg .f32 %f<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.param.f32 %f1, [a];
    ld.param.f32 %f2, [b];
    add.f32 %f1, %f1, %f2;
    st.global.f32 [%rd1], %f1;
    ret;
}

// Every block adds one to out[0] and waits until all have.
.visible .entry together(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %nctaid.x;
    atom.global.add.u32 %r2, [%rd1], 1;
again:
    ld.volatile.global.u32 %r3, [%rd1];
    setp.lt.u32 %p, %r3, %r1;
    @%p bra again;
    ret;
}
";

fn here(name: &CStr) -> CUfunction {
    function(load(KERNELS_HERE), name)
}

/// Launches `nothing`, which takes no parameters.
fn try_shape(grid: [u32; 3], block: [u32; 3], shared: u32) -> CUresult {
    let nothing = kernel(c"nothing");
    let [gx, gy, gz] = grid;
    let [bx, by, bz] = block;
    // SAFETY: a kernel without parameters.
    unsafe { cuLaunchKernel(nothing, gx, gy, gz, bx, by, bz, shared, CUstream::NULL, null_mut(), null_mut()) }
}

pub fn blocks_and_grids_have_limits() {
    new_context();
    const BAD: CUresult = CUDA_ERROR_INVALID_VALUE;
    const ONE: [u32; 3] = [1, 1, 1];
    for (grid, block, code) in [
        (ONE, [1024, 1, 1], CUDA_SUCCESS),
        (ONE, [1, 1024, 1], CUDA_SUCCESS),
        (ONE, [1, 1, 64], CUDA_SUCCESS),
        (ONE, [32, 32, 1], CUDA_SUCCESS),
        (ONE, [1025, 1, 1], BAD),
        (ONE, [32, 32, 2], BAD),
        (ONE, [1, 1, 65], BAD),
        (ONE, [0, 1, 1], BAD),
        (ONE, [1, 0, 1], BAD),
        (ONE, [1, 1, 0], BAD),
        (ONE, [1 << 16, 1 << 16, 1], BAD),
        ([0, 1, 1], ONE, BAD),
        ([1, 0, 1], ONE, BAD),
        ([1, 1, 0], ONE, BAD),
        ([1 << 31, 1, 1], ONE, BAD),
        ([1, 65536, 1], ONE, BAD),
        ([1, 1, 65536], ONE, BAD),
        ([1, 65535, 1], ONE, CUDA_SUCCESS),
        ([1, 1, 65535], ONE, CUDA_SUCCESS),
    ] {
        assert_eq!(try_shape(grid, block, 0), code, "{grid:?} {block:?}");
    }
    cu!(cuCtxSynchronize());
}

pub fn shared_memory_has_limits() {
    new_context();
    const BAD: CUresult = CUDA_ERROR_INVALID_VALUE;
    for (bytes, code) in [(48 << 10, CUDA_SUCCESS), ((48 << 10) + 1, BAD), (1 << 20, BAD)] {
        assert_eq!(try_shape([1, 1, 1], [1, 1, 1], bytes), code, "{bytes}");
    }
    let (smem, out) = (here(c"smem"), alloc(4));
    let mut argument = out;
    let mut arguments = [(&raw mut argument).cast::<c_void>()];
    let mut with = |bytes| {
        // SAFETY: the kernel takes one pointer.
        unsafe {
            cuLaunchKernel(smem, 1, 1, 1, 32, 1, 1, bytes, CUstream::NULL, arguments.as_mut_ptr(), null_mut())
        }
    };
    assert_eq!(with(16 << 10), CUDA_SUCCESS);
    assert_eq!(with(17 << 10), BAD);
    cu!(cuFuncSetAttribute(smem, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100_000));
    assert_eq!(with(100_000), CUDA_SUCCESS);
    assert_eq!(with(100_001), BAD);
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u32>(out, 1), [6]);
    let optin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    let set = |bytes| {
        // SAFETY: numbers only.
        unsafe { cuFuncSetAttribute(smem, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes) }
    };
    assert_eq!(set(optin - 32768 + 1), BAD);
    assert_eq!(set(optin - 32768), CUDA_SUCCESS);
    assert_eq!(set(-1), BAD);
}

/// Static shared memory beyond what a launch may ask for.
pub fn large_static_shared_memory_can_be_launched() {
    new_context();
    let large = KERNELS_HERE.replace("many[32768]", "many[65536]");
    let (smem, out) = (function(load(&large), c"smem"), alloc(4));
    assert_eq!(launch(smem, 1, 32, CUstream::NULL, &mut [arg(&out)]), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u32>(out, 1), [6]);
}

pub fn declared_block_sizes_are_kept_to() {
    new_context();
    let module = load(KERNELS);
    let try_threads = |name, threads| launch(function(module, name), 1, threads, CUstream::NULL, &mut []);
    assert_eq!(try_threads(c"at_most_64", 65), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(try_threads(c"at_most_64", 64), CUDA_SUCCESS);
    assert_eq!(try_threads(c"at_most_64", 32), CUDA_SUCCESS);
    assert_eq!(try_threads(c"exactly_64", 32), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(try_threads(c"exactly_64", 64), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
}

pub fn parameters_come_one_by_one_or_as_a_block() {
    new_context();
    let mixed = kernel(c"mixed");
    let out = alloc_with(&[0_u32]);
    let (i, c, w) = (100_u32, -3_i8, 7.9_f32);
    assert_eq!(
        launch(mixed, 1, 1, CUstream::NULL, &mut [arg(&i), arg(&c), arg(&out), arg(&w)]),
        CUDA_SUCCESS
    );
    assert_eq!(read::<i32>(out, 1), [104]);
    // The same as a block of 20 bytes.
    let mut block = [0_u8; 64];
    block[0..4].copy_from_slice(&200_u32.to_ne_bytes());
    block[4] = 5;
    block[8..16].copy_from_slice(&out.0.to_ne_bytes());
    block[16..20].copy_from_slice(&1.0_f32.to_ne_bytes());
    let try_block = |mut size: usize, with_params: bool| {
        let mut extra = [
            std::ptr::without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_POINTER),
            block.as_ptr().cast_mut().cast(),
            std::ptr::without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_SIZE),
            (&raw mut size).cast(),
            std::ptr::without_provenance_mut(CU_LAUNCH_PARAM_END),
        ];
        let mut params = [arg(&i), arg(&c), arg(&out), arg(&w)];
        let params = if with_params { params.as_mut_ptr() } else { null_mut() };
        // SAFETY: the block has 64 bytes, the list ends, and the parameters are the kernel's.
        unsafe { cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, params, extra.as_mut_ptr()) }
    };
    assert_eq!(try_block(20, false), CUDA_SUCCESS);
    assert_eq!(read::<i32>(out, 1), [206]);
    assert_eq!(try_block(64, false), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_eq!(try_block(20, true), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(launch(mixed, 1, 1, CUstream::NULL, &mut []), CUDA_ERROR_INVALID_VALUE);
    cu!(cuCtxSynchronize());
}

/// Some programs hand over a list of nothing beside the parameters.
pub fn a_list_that_ends_at_once_says_nothing() {
    new_context();
    let (mixed, out) = (kernel(c"mixed"), alloc_with(&[0_u32]));
    let (i, c, w) = (100_u32, -3_i8, 7.9_f32);
    let mut params = [arg(&i), arg(&c), arg(&out), arg(&w)];
    let mut extra = [std::ptr::without_provenance_mut(CU_LAUNCH_PARAM_END)];
    // SAFETY: the parameters are the kernel's, and the list ends.
    cu!(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, params.as_mut_ptr(), extra.as_mut_ptr()));
    assert_eq!(read::<i32>(out, 1), [104]);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, null_mut(), extra.as_mut_ptr())
    );
}

/// The missing bytes are zeros or whatever was there: the launch alone is looked at.
pub fn a_block_of_parameters_may_be_short_but_not_empty() {
    new_context();
    let mixed = kernel(c"mixed");
    let (out, mut block) = (alloc(4), [0_u8; 16]);
    block[8..16].copy_from_slice(&out.0.to_ne_bytes());
    let try_size = |mut size: usize| {
        let mut extra = [
            std::ptr::without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_POINTER),
            block.as_ptr().cast_mut().cast(),
            std::ptr::without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_SIZE),
            (&raw mut size).cast(),
            std::ptr::without_provenance_mut(CU_LAUNCH_PARAM_END),
        ];
        // SAFETY: the block has as many bytes, and the list ends.
        unsafe { cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, null_mut(), extra.as_mut_ptr()) }
    };
    assert_eq!(try_size(16), CUDA_SUCCESS);
    assert_eq!(try_size(0), CUDA_ERROR_INVALID_VALUE);
    cu!(cuCtxSynchronize());
}

pub fn null_functions_are_refused() {
    new_context();
    assert_eq!(launch(CUfunction::NULL, 1, 1, CUstream::NULL, &mut []), CUDA_ERROR_INVALID_HANDLE);
    let mut value = 0;
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuFuncGetAttribute(&mut value, CU_FUNC_ATTRIBUTE_NUM_REGS, CUfunction::NULL)
    );
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuFuncSetAttribute(CUfunction::NULL, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100)
    );
    fails!(CUDA_ERROR_INVALID_HANDLE, cuFuncSetCacheConfig(CUfunction::NULL, CU_FUNC_CACHE_PREFER_L1));
    let mut module = CUmodule::NULL;
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetModule(&mut module, CUfunction::NULL));
}

pub fn the_extensible_launch_takes_shapes_and_attributes() {
    new_context();
    let (shape, out) = (here(c"shape"), alloc_with(&[0_u32; 5]));
    let mut argument = out;
    let mut arguments = [(&raw mut argument).cast::<c_void>()];
    // SAFETY: a structure of numbers and handles.
    let mut attribute: CUlaunchAttribute = unsafe { std::mem::zeroed() };
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    let mut config = CUlaunchConfig {
        gridDimX: 3,
        gridDimY: 2,
        gridDimZ: 1,
        blockDimX: 16,
        blockDimY: 4,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: CUstream::NULL,
        attrs: null_mut(),
        numAttrs: 0,
    };
    cu!(cuLaunchKernelEx(&config, shape, arguments.as_mut_ptr(), null_mut()));
    assert_eq!(read::<u32>(out, 5), [6 * 64, 16, 4, 3, 2]);
    config.attrs = &mut attribute;
    config.numAttrs = 1;
    cu!(cuLaunchKernelEx(&config, shape, arguments.as_mut_ptr(), null_mut()));
    cu!(cuLaunchKernelEx_ptsz(&config, shape, arguments.as_mut_ptr(), null_mut()); cuCtxSynchronize());
    assert_eq!(read::<u32>(out, 1), [3 * 6 * 64]);
    // A window of 64 bytes, twice as many of which are to stay as there are; and one larger than there may be.
    attribute.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    // What misses it may stream, and may not persist.
    for (bytes, ratio, miss, code) in [
        (64_u64, 1_f32, CU_ACCESS_PROPERTY_NORMAL, CUDA_SUCCESS),
        (64, 1.0, CU_ACCESS_PROPERTY_STREAMING, CUDA_SUCCESS),
        (64, 1.0, CU_ACCESS_PROPERTY_PERSISTING, CUDA_ERROR_INVALID_VALUE),
        (64, 2.0, CU_ACCESS_PROPERTY_NORMAL, CUDA_ERROR_INVALID_VALUE),
        (1 << 40, 1.0, CU_ACCESS_PROPERTY_NORMAL, CUDA_ERROR_INVALID_VALUE),
    ] {
        attribute.value.bytes[..8].copy_from_slice(&out.0.to_ne_bytes());
        attribute.value.bytes[8..16].copy_from_slice(&bytes.to_ne_bytes());
        attribute.value.bytes[16..20].copy_from_slice(&ratio.to_ne_bytes());
        attribute.value.bytes[24..28].copy_from_slice(&miss.0.to_ne_bytes());
        config.attrs = &mut attribute;
        // SAFETY: a kernel with its arguments, and one attribute.
        let told = unsafe { cuLaunchKernelEx(&config, shape, arguments.as_mut_ptr(), null_mut()) };
        assert_eq!(told, code, "{bytes} {ratio}");
    }
    attribute.id = CUlaunchAttributeID(9999);
    config.attrs = &mut attribute;
    fails!(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, shape, arguments.as_mut_ptr(), null_mut()));
    config.numAttrs = 0;
    config.blockDimX = 0;
    fails!(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, shape, arguments.as_mut_ptr(), null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(null(), shape, arguments.as_mut_ptr(), null_mut()));
    config.blockDimX = 1;
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuLaunchKernelEx(&config, CUfunction::NULL, arguments.as_mut_ptr(), null_mut())
    );
}

pub fn a_launch_records_events() {
    new_context();
    let (shape, out, stream) = (here(c"shape"), alloc_with(&[0_u32; 5]), stream(CU_STREAM_NON_BLOCKING));
    let mut argument = out;
    let mut arguments = [(&raw mut argument).cast::<c_void>()];
    // SAFETY: a structure of numbers and handles.
    let mut attribute: CUlaunchAttribute = unsafe { std::mem::zeroed() };
    let mut launch = |id: CUlaunchAttributeID, event: CUevent, flags: u32| {
        attribute.id = id;
        attribute.value.bytes[..8].copy_from_slice(&(event.0 as u64).to_ne_bytes());
        attribute.value.bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
        let config = one_thread_in(stream, std::slice::from_mut(&mut attribute));
        // SAFETY: the configuration and the kernel's argument live through the call.
        unsafe { cuLaunchKernelEx(&config, shape, arguments.as_mut_ptr(), null_mut()) }
    };
    for id in [CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT] {
        let gate = Gate::new();
        gate.hold(stream);
        let recorded = event(CU_EVENT_DISABLE_TIMING);
        assert_eq!(launch(id, recorded, 0), CUDA_SUCCESS);
        fails!(CUDA_ERROR_NOT_READY, cuEventQuery(recorded));
        gate.open();
        cu!(cuEventSynchronize(recorded));
        // It takes no time, and belongs to this process.
        assert_eq!(launch(id, event(CU_EVENT_DEFAULT), 0), CUDA_ERROR_NOT_SUPPORTED);
        let shared = event(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
        assert_eq!(launch(id, shared, 0), CUDA_ERROR_NOT_SUPPORTED);
        // Only that of the programmatic start may let who waits for it sleep.
        let sleeping = launch(id, event(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC), 0);
        let is_start = id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
        assert_eq!(sleeping, if is_start { CUDA_SUCCESS } else { CUDA_ERROR_NOT_SUPPORTED });
        assert_eq!(launch(id, recorded, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
        if id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT {
            let mut graph = CUgraph::NULL;
            cu!(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
            let captured = launch(id, recorded, CU_EVENT_RECORD_EXTERNAL);
            cu!(cuStreamEndCapture(stream, &mut graph));
            assert_eq!(captured, CUDA_ERROR_NOT_SUPPORTED);
        }
        assert_eq!(launch(id, recorded, 2), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(launch(id, CUevent::NULL, 0), CUDA_ERROR_INVALID_HANDLE);
    }
    cu!(cuStreamSynchronize(stream));
}

pub fn the_threads_own_default_stream_launches_too() {
    new_context();
    let (shape, out) = (here(c"shape"), alloc_with(&[0_u32; 5]));
    let mut argument = out;
    let mut arguments = [(&raw mut argument).cast::<c_void>()];
    cu!(cuLaunchKernel_ptsz(shape, 2, 1, 1, 32, 1, 1, 0, CUstream::NULL, arguments.as_mut_ptr(), null_mut()));
    cu!(cuLaunchCooperativeKernel_ptsz(shape, 1, 1, 1, 32, 1, 1, 0, CUstream::NULL, arguments.as_mut_ptr()));
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u32>(out, 1), [96]);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernel_ptsz(shape, 0, 1, 1, 32, 1, 1, 0, CUstream::NULL, arguments.as_mut_ptr(), null_mut())
    );
}

pub fn blocks_of_a_cooperative_launch_meet() {
    new_context();
    let (together, out) = (here(c"together"), alloc_with(&[0_u32]));
    let mut argument = out;
    let mut arguments = [(&raw mut argument).cast::<c_void>()];
    let mut resident = 0;
    cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut resident, together, 1, 0));
    let most = (resident * attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) as u32;
    cu!(cuLaunchCooperativeKernel(together, most, 1, 1, 1, 1, 1, 0, CUstream::NULL, arguments.as_mut_ptr()));
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u32>(out, 1), [most]);
    fails!(
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        cuLaunchCooperativeKernel(
            together,
            most + 1,
            1,
            1,
            1,
            1,
            1,
            0,
            CUstream::NULL,
            arguments.as_mut_ptr()
        )
    );
    // The same as an attribute.
    // SAFETY: a structure of numbers and handles.
    let mut attributes: [CUlaunchAttribute; 1] = unsafe { std::mem::zeroed() };
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[0].value.bytes[0] = 1;
    let config = CUlaunchConfig {
        gridDimX: most + 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: CUstream::NULL,
        attrs: attributes.as_mut_ptr(),
        numAttrs: 1,
    };
    fails!(
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        cuLaunchKernelEx(&config, together, arguments.as_mut_ptr(), null_mut())
    );
}

/// One grid for each device; with one device, one launch.
pub fn a_cooperative_launch_may_span_devices() {
    new_context();
    let (shape, out) = (here(c"shape"), alloc_with(&[0_u32; 5]));
    let mut argument = out;
    let mut arguments = [(&raw mut argument).cast::<c_void>()];
    let mut launches = [CUDA_LAUNCH_PARAMS {
        function: shape,
        gridDimX: 2,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream(CU_STREAM_NON_BLOCKING),
        kernelParams: arguments.as_mut_ptr(),
    }];
    let supported = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH) == 1;
    let code = if supported { CUDA_SUCCESS } else { CUDA_ERROR_NOT_SUPPORTED };
    fails!(code, cuLaunchCooperativeKernelMultiDevice(launches.as_mut_ptr(), 1, 0));
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u32>(out, 1), [if supported { 64 } else { 0 }]);
}

pub fn attributes_of_functions_are_told() {
    new_context();
    let smem = here(c"smem");
    let get = |attribute| {
        let mut value = -7;
        cu!(cuFuncGetAttribute(&mut value, attribute, smem));
        value
    };
    for (attribute, value) in [
        (CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
        (CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 32768),
        (CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 8),
        (CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 0),
        (CU_FUNC_ATTRIBUTE_PTX_VERSION, 80),
        (CU_FUNC_ATTRIBUTE_BINARY_VERSION, 90),
        (CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, 0),
        (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 16384),
        (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1),
        (CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 0),
        (CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 0),
        (CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 0),
        (CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 0),
        (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0),
        (CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 0),
    ] {
        assert_eq!(get(attribute), value, "{attribute:?}");
    }
    let mut value = 0;
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&mut value, CUfunction_attribute(16), smem));
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&mut value, CUfunction_attribute(999), smem));
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(null_mut(), CU_FUNC_ATTRIBUTE_NUM_REGS, smem));
    let at_most = kernel(c"at_most_64");
    cu!(cuFuncGetAttribute(&mut value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, at_most));
    assert_eq!(value, 64);
}

/// Kernels with more values alive at once have more registers.
pub fn registers_are_counted() {
    new_context();
    let registers = |function| {
        let mut value = 0;
        cu!(cuFuncGetAttribute(&mut value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
        assert!((1..=255).contains(&value), "{value}");
        value
    };
    let many: String =
        (1..=60).map(|n| format!("    ld.volatile.global.u32 %r{n}, [%rd1+{}];\n", 4 * n)).collect();
    let sums: String = (2..=60).map(|n| format!("    add.u32 %r1, %r1, %r{n};\n")).collect();
    let text = format!(
        "{}.visible .entry many(.param .u64 out)\n{{\n    .reg .b32 %r<61>;\n    .reg .b64 %rd<2>;\n    \
         ld.param.u64 %rd1, [out];\n{many}    bar.sync 0;\n{sums}    st.global.u32 [%rd1], %r1;\n    ret;\n}}\n",
        ".version 8.0\n.target sm_80\n.address_size 64\n"
    );
    let many = registers(function(load(&text), c"many"));
    assert!(many > registers(here(c"sum")), "{many}");
}

pub fn attributes_that_can_be_set() {
    new_context();
    let (reverse, nothing) = (kernel(c"reverse"), kernel(c"nothing"));
    for (attribute, value) in [
        (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000),
        (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50),
        (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
        (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1),
        (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
        (CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 1),
    ] {
        cu!(cuFuncSetAttribute(reverse, attribute, value));
        let mut now = -7;
        cu!(cuFuncGetAttribute(&mut now, attribute, reverse));
        assert_eq!(now, value, "{attribute:?}");
        cu!(cuFuncGetAttribute(&mut now, attribute, nothing));
        assert_ne!(now, 1000, "{attribute:?} is one function's");
    }
    // Any number is taken, and told as whether it is one.
    for value in [2, -1] {
        let (allowed, mut now) = (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, -7);
        cu!(cuFuncSetAttribute(reverse, allowed, value); cuFuncGetAttribute(&mut now, allowed, reverse));
        assert_eq!(now, 1);
    }
    const BAD: CUresult = CUDA_ERROR_INVALID_VALUE;
    fails!(BAD, cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300_000));
    fails!(BAD, cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
    fails!(BAD, cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -2));
    fails!(BAD, cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_NUM_REGS, 32));
    fails!(BAD, cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 32));
    fails!(BAD, cuFuncSetAttribute(reverse, CUfunction_attribute(999), 32));
}

pub fn cache_and_bank_preferences_are_accepted() {
    new_context();
    let nothing = kernel(c"nothing");
    for config in [
        CU_FUNC_CACHE_PREFER_NONE,
        CU_FUNC_CACHE_PREFER_SHARED,
        CU_FUNC_CACHE_PREFER_L1,
        CU_FUNC_CACHE_PREFER_EQUAL,
    ] {
        cu!(cuFuncSetCacheConfig(nothing, config));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetCacheConfig(nothing, CUfunc_cache(99)));
    cu!(cuFuncSetSharedMemConfig(nothing, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetSharedMemConfig(nothing, CUsharedconfig(99)));
}

pub fn names_modules_and_parameters_of_functions() {
    new_context();
    let module = load(KERNELS);
    let mixed = function(module, c"mixed");
    let (mut name, mut of_function) = (null(), CUmodule::NULL);
    cu!(cuFuncGetName(&mut name, mixed); cuFuncGetModule(&mut of_function, mixed));
    assert_eq!(text_of(name), "mixed");
    assert_eq!(of_function, module);
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetName(null_mut(), mixed));
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetModule(null_mut(), mixed));
    let info = |index| {
        let (mut offset, mut size) = (99, 99);
        cu!(cuFuncGetParamInfo(mixed, index, &mut offset, &mut size));
        (offset, size)
    };
    assert_eq!([0, 1, 2, 3].map(info), [(0, 4), (4, 1), (8, 8), (16, 4)]);
    let (mut offset, mut size) = (0, 0);
    cu!(cuFuncGetParamInfo(mixed, 3, &mut offset, null_mut()));
    assert_eq!(offset, 16);
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(mixed, 4, &mut offset, &mut size));
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(mixed, 0, null_mut(), &mut size));
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(kernel(c"nothing"), 0, &mut offset, &mut size));
}

pub fn functions_are_loaded_by_asking_or_by_use() {
    new_context();
    let nothing = kernel(c"nothing");
    let mut state = CUfunctionLoadingState(99);
    cu!(cuFuncIsLoaded(&mut state, nothing));
    assert!(
        [CU_FUNCTION_LOADING_STATE_LOADED, CU_FUNCTION_LOADING_STATE_UNLOADED].contains(&state),
        "{state:?}"
    );
    cu!(cuFuncLoad(nothing); cuFuncIsLoaded(&mut state, nothing));
    assert_eq!(state, CU_FUNCTION_LOADING_STATE_LOADED);
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncIsLoaded(null_mut(), nothing));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuFuncLoad(CUfunction::NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuFuncIsLoaded(&mut state, CUfunction::NULL));
}

pub fn host_functions_run_in_the_streams_order() {
    extern "C" fn look(place: *mut c_void) {
        // SAFETY: the test passes a counter that outlives the stream's work.
        unsafe { *place.cast::<u32>() += 1 };
    }
    new_context();
    let stream = stream(CU_STREAM_NON_BLOCKING);
    let mut calls = 0_u32;
    let place = (&raw mut calls).cast();
    cu!(cuLaunchHostFunc(stream, Some(look), place); cuLaunchHostFunc(stream, Some(look), place));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(calls, 2);
    cu!(cuLaunchHostFunc_ptsz(CUstream::NULL, Some(look), place); cuCtxSynchronize());
    assert_eq!(calls, 3);
    fails!(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(stream, None, place));
}

pub fn the_deprecated_way_sets_and_then_launches() {
    new_context();
    let (sum, out) = (here(c"sum"), alloc_with(&[0.0_f32]));
    let mut pointer = out;
    cu!(
        cuFuncSetBlockShape(sum, 1, 1, 1);
        cuFuncSetSharedSize(sum, 64);
        cuParamSetv(sum, 0, (&raw mut pointer).cast(), 8);
        cuParamSetf(sum, 8, 1.5);
        cuParamSeti(sum, 12, 2.25_f32.to_bits());
        cuParamSetSize(sum, 16);
        cuLaunch(sum);
        cuCtxSynchronize()
    );
    assert_eq!(read::<f32>(out, 1), [3.75]);
}

pub fn the_deprecated_grids_have_two_dimensions() {
    new_context();
    let (shape, out) = (here(c"shape"), alloc_with(&[0_u32; 5]));
    let mut pointer = out;
    cu!(
        cuFuncSetBlockShape(shape, 8, 4, 1);
        cuParamSetv(shape, 0, (&raw mut pointer).cast(), 8);
        cuParamSetSize(shape, 8);
        cuLaunchGrid(shape, 3, 2)
    );
    assert_eq!(read::<u32>(out, 5), [6 * 32, 8, 4, 3, 2]);
    let stream = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuLaunchGridAsync(shape, 5, 1, stream); cuStreamSynchronize(stream));
    assert_eq!(read::<u32>(out, 5), [11 * 32, 8, 4, 5, 1]);
}

pub fn the_deprecated_way_refuses_bad_arguments() {
    new_context();
    let (sum, mut bytes) = (here(c"sum"), [0_u8; 64]);
    const BAD: CUresult = CUDA_ERROR_INVALID_VALUE;
    const NULL: CUfunction = CUfunction::NULL;
    fails!(BAD, cuFuncSetBlockShape(sum, 0, 1, 1));
    fails!(BAD, cuFuncSetBlockShape(sum, -1, 1, 1));
    fails!(BAD, cuFuncSetBlockShape(sum, 2048, 1, 1));
    if ours_only("NVIDIA's driver follows null, and writes before the parameters") {
        fails!(BAD, cuParamSetv(sum, -4, bytes.as_mut_ptr().cast(), 8));
        fails!(BAD, cuParamSeti(sum, -4, 1));
        fails!(BAD, cuParamSetf(sum, -4, 1.0));
        fails!(BAD, cuParamSetv(sum, 0, null_mut(), 8));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuFuncSetBlockShape(NULL, 1, 1, 1));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuFuncSetSharedSize(NULL, 1));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuParamSetSize(NULL, 1));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuParamSeti(NULL, 0, 1));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuParamSetf(NULL, 0, 1.0));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuParamSetv(NULL, 0, bytes.as_mut_ptr().cast(), 8));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuLaunch(NULL));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuLaunchGrid(NULL, 1, 1));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuLaunchGridAsync(NULL, 1, 1, CUstream::NULL));
    }
    fails!(BAD, cuLaunchGrid(sum, 0, 1));
    fails!(BAD, cuLaunchGridAsync(sum, 1, 0, CUstream::NULL));
}
