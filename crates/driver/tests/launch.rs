//! Modules, kernels and launches.

mod common;
use common::*;

#[test]
fn vectors_are_added() {
    let context = new_context();
    let add = function(load(KERNELS), "vecadd");
    let n = 5000u32;
    let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let b: Vec<f32> = (0..n).map(|i| 3.0 - i as f32).collect();
    let (da, db, dc) = (alloc_with(&a), alloc_with(&b), alloc(4 * n as usize));
    let mut arguments = [arg(&da), arg(&db), arg(&dc), arg(&n)];
    assert_eq!(launch(add, n.div_ceil(128), 128, CUstream::NULL, &mut arguments), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    assert_eq!(read::<f32>(dc, n as usize), expected);
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn parameters_come_singly_or_packed() {
    let context = new_context();
    let mixed = function(load(KERNELS), "mixed");
    let (i, c, w, place) = (1000i32, -7i8, 20.5f32, alloc(4));
    let mut arguments = [arg(&i), arg(&c), arg(&place), arg(&w)];
    assert_eq!(launch(mixed, 1, 1, CUstream::NULL, &mut arguments), CUDA_SUCCESS);
    assert_eq!(read::<i32>(place, 1), [1013]);
    let layout: Vec<(usize, usize)> = (0..4)
        .map(|index| {
            let (mut offset, mut size) = (0, 0);
            cu!(cuFuncGetParamInfo(mixed, index, out(&mut offset), out(&mut size)));
            (offset, size)
        })
        .collect();
    assert_eq!(layout, [(0, 4), (4, 1), (8, 8), (16, 4)]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(mixed, 4, nowhere(), nowhere()));

    let mut packed = [0u8; 20];
    packed[0..4].copy_from_slice(&2000i32.to_ne_bytes());
    packed[4] = 5;
    packed[8..16].copy_from_slice(&place.0.to_ne_bytes());
    packed[16..20].copy_from_slice(&(-100.0f32).to_ne_bytes());
    let size = packed.len();
    let [pointer, bytes, end] =
        [CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END]
            .map(std::ptr::without_provenance_mut::<c_void>);
    let mut extra = [pointer, packed.as_mut_ptr().cast(), bytes, arg(&size), end];
    let extra = extra.as_mut_ptr();
    cu!(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, null_mut(), extra));
    assert_eq!(read::<i32>(place, 1), [1905]);
    let both = arguments.as_mut_ptr();
    fails!(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, both, extra));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, null_mut(), null_mut())
    );
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn configurations_out_of_range_are_refused() {
    let context = new_context();
    let module = load(KERNELS);
    let nothing = function(module, "nothing");
    let try_shape = |function, grid: [u32; 3], block: [u32; 3], shared| {
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        // SAFETY: the kernel takes no parameters.
        unsafe {
            cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, CUstream::NULL, null_mut(), null_mut())
        }
    };
    for (grid, block, shared) in [
        ([0, 1, 1], [1, 1, 1], 0),
        ([1, 1, 1], [0, 1, 1], 0),
        ([1, 1, 1], [1025, 1, 1], 0),
        ([1, 1, 1], [32, 32, 2], 0),
        ([1, 1, 1], [1, 1, 65], 0),
        ([1 << 31, 1, 1], [1, 1, 1], 0),
        ([1, 65536, 1], [1, 1, 1], 0),
        ([1, 1, 65536], [1, 1, 1], 0),
        ([1, 1, 1], [1, 1, 1], (48 << 10) + 1),
        ([1, 1, 1], [1, 1, 1], 1 << 20),
    ] {
        let code = try_shape(nothing, grid, block, shared);
        assert_eq!(code, CUDA_ERROR_INVALID_VALUE, "{grid:?} {block:?} {shared}");
    }
    assert_eq!(try_shape(nothing, [2, 3, 4], [32, 32, 1], 48 << 10), CUDA_SUCCESS);
    assert_eq!(try_shape(function(module, "at_most_64"), [1; 3], [65, 1, 1], 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(try_shape(function(module, "at_most_64"), [1; 3], [32, 1, 1], 0), CUDA_SUCCESS);
    assert_eq!(try_shape(function(module, "exactly_64"), [1; 3], [32, 1, 1], 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(try_shape(function(module, "exactly_64"), [1; 3], [64, 1, 1], 0), CUDA_SUCCESS);
    assert_eq!(try_shape(CUfunction::NULL, [1; 3], [1; 3], 0), CUDA_ERROR_INVALID_HANDLE);

    let more = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(nothing, more, 300_000));
    cu!(cuFuncSetAttribute(nothing, more, 100_000));
    assert_eq!(try_shape(nothing, [1; 3], [32, 1, 1], 100_000), CUDA_SUCCESS);
    cu!(cuCtxSynchronize(); cuCtxDestroy_v2(context));
}

#[test]
fn dynamic_shared_memory_and_barriers_work() {
    let context = new_context();
    let reverse = function(load(KERNELS), "reverse");
    let (n, place) = (77u32, alloc(4 * 77));
    let mut arguments = [arg(&place), arg(&n)];
    let parameters = arguments.as_mut_ptr();
    cu!(cuLaunchKernel(reverse, 1, 1, 1, 96, 1, 1, 4 * 77, CUstream::NULL, parameters, null_mut()));
    let expected: Vec<u32> = (0..77).map(|i| 3 * (76 - i)).collect();
    assert_eq!(read::<u32>(place, 77), expected);
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn modules_have_functions_and_variables() {
    let context = new_context();
    let module = load(KERNELS);
    let mut count = 0;
    cu!(cuModuleGetFunctionCount(out(&mut count), module));
    assert_eq!(count, 8);
    let mut function = CUfunction::NULL;
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(out(&mut function), module, text(c"none")));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(out(&mut function), CUmodule::NULL, text(c"bump")));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(nowhere(), module, text(c"bump")));
    cu!(cuModuleGetFunction(out(&mut function), module, text(c"bump")));
    let (mut pointer, mut bytes) = (CUdeviceptr(0), 0);
    cu!(cuModuleGetGlobal_v2(out(&mut pointer), out(&mut bytes), module, text(c"counter")));
    assert_eq!((bytes, read::<u32>(pointer, 1)), (4, vec![7]));
    assert_eq!(launch(function, 2, 50, CUstream::NULL, &mut [arg(&3u32)]), CUDA_SUCCESS);
    assert_eq!(read::<u32>(pointer, 1), [307]);
    let attribute = |which| {
        let mut value = -1;
        cu!(cuFuncGetAttribute(out(&mut value), which, function));
        value
    };
    assert_eq!(attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION), 80);
    assert_eq!(attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION), 90);
    assert_eq!(attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
    assert_eq!(attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    let mut of = CUmodule::NULL;
    cu!(cuFuncGetModule(out(&mut of), function));
    assert_eq!(of, module);
    cu!(cuModuleUnload(module));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    assert_eq!(launch(function, 1, 1, CUstream::NULL, &mut [arg(&3u32)]), CUDA_ERROR_INVALID_HANDLE);
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn libraries_load_into_each_context() {
    init();
    let ptx = CString::new(KERNELS).unwrap();
    let (mut library, mut kernel) = (CUlibrary::NULL, CUkernel::NULL);
    cu!(
        cuLibraryLoadData(
            out(&mut library), ptx.as_ptr().cast(), no_array(), no_array(), 0, no_array(), no_array(), 0
        );
        cuLibraryGetKernel(out(&mut kernel), library, text(c"bump"));
    );
    fails!(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(out(&mut kernel), library, text(c"none")));
    let contexts = [new_context(), new_context()];
    let counter = || {
        let (mut pointer, mut bytes) = (CUdeviceptr(0), 0);
        cu!(cuLibraryGetGlobal(out(&mut pointer), out(&mut bytes), library, text(c"counter")));
        read::<u32>(pointer, 1)[0]
    };
    assert_eq!(launch(CUfunction(kernel.0), 1, 10, CUstream::NULL, &mut [arg(&1u32)]), CUDA_SUCCESS);
    assert_eq!(counter(), 17);
    cu!(cuCtxPopCurrent_v2(nowhere()));
    assert_eq!(counter(), 7);
    cu!(cuLibraryUnload(library));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
    cu!(cuCtxDestroy_v2(contexts[0]); cuCtxDestroy_v2(contexts[1]));
}

#[test]
fn a_fault_stays_with_its_context() {
    let healthy = new_context();
    let sick = new_context();
    let poke = function(load(KERNELS), "poke");
    assert_eq!(launch(poke, 1, 1, CUstream::NULL, &mut [arg(&16u64)]), CUDA_SUCCESS);
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(out(&mut pointer), 16));
    assert_eq!(launch(poke, 1, 1, CUstream::NULL, &mut [arg(&16u64)]), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(current(), sick);
    cu!(cuCtxDestroy_v2(sick));
    assert_eq!(current(), healthy);
    cu!(cuMemAlloc_v2(out(&mut pointer), 16); cuCtxSynchronize(); cuCtxDestroy_v2(healthy));
}

#[test]
fn cooperative_grids_must_fit_the_device() {
    let context = new_context();
    let nothing = function(load(KERNELS), "nothing");
    let (mut announced, mut processors, mut blocks) = (0, 0, 0);
    cu!(cuDeviceGetAttribute(out(&mut announced), CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    cu!(cuDeviceGetAttribute(out(&mut processors), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(out(&mut blocks), nothing, 1024, 0));
    assert_eq!((announced, blocks), (1, 2));
    let most = (processors * blocks) as u32;
    cu!(cuLaunchCooperativeKernel(nothing, most, 1, 1, 1024, 1, 1, 0, CUstream::NULL, null_mut()));
    fails!(
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        cuLaunchCooperativeKernel(nothing, most + 1, 1, 1, 1024, 1, 1, 0, CUstream::NULL, null_mut())
    );
    cu!(cuCtxSynchronize(); cuCtxDestroy_v2(context));
}

#[test]
fn occupancy_follows_threads_and_shared_memory() {
    let context = new_context();
    let module = load(KERNELS);
    let nothing = function(module, "nothing");
    let blocks = |function, threads, shared| {
        let mut blocks = -1;
        cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(out(&mut blocks), function, threads, shared));
        blocks
    };
    assert_eq!((blocks(nothing, 1024, 0), blocks(nothing, 1, 0)), (2, 32));
    assert_eq!((blocks(nothing, 32, 48 << 10), blocks(nothing, 32, 49 << 10)), (4, 0));
    assert_eq!((blocks(nothing, 1025, 0), blocks(function(module, "at_most_64"), 65, 0)), (0, 21));
    let mut count = 0;
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(out(&mut count), nothing, 0, 0)
    );
    unsafe extern "C" fn a_kilobyte_a_thread(threads: i32) -> usize {
        threads as usize * 1024
    }
    let (mut grid, mut block) = (0, 0);
    cu!(cuOccupancyMaxPotentialBlockSize(out(&mut grid), out(&mut block), nothing, None, 0, 0));
    assert_eq!(block, 1024);
    let shared = Some(a_kilobyte_a_thread as unsafe extern "C" fn(i32) -> usize);
    cu!(cuOccupancyMaxPotentialBlockSize(out(&mut grid), out(&mut block), nothing, shared, 0, 0));
    assert_eq!(block, 32);
    let mut bytes = 0;
    cu!(cuOccupancyAvailableDynamicSMemPerBlock(out(&mut bytes), nothing, 4, 128));
    assert!(bytes >= 48 << 10, "{bytes}");
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn attributes_of_a_launch_are_hints_or_refused() {
    let context = new_context();
    let nothing = function(load(KERNELS), "nothing");
    let launch = |id: CUlaunchAttributeID, first: u32, second: u32| {
        let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
        value.bytes[..4].copy_from_slice(&first.to_ne_bytes());
        value.bytes[4..8].copy_from_slice(&second.to_ne_bytes());
        let mut attributes = [CUlaunchAttribute { id, pad: [0; 4], value }];
        let config = CUlaunchConfig {
            gridDimX: 2,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: CUstream::NULL,
            attrs: attributes.as_mut_ptr(),
            numAttrs: 1,
        };
        // SAFETY: one attribute, as the configuration says; the kernel takes no parameters.
        unsafe { cuLaunchKernelEx(by_ref(&config), nothing, null_mut(), null_mut()) }
    };
    assert_eq!(launch(CU_LAUNCH_ATTRIBUTE_PRIORITY, 1, 0), CUDA_SUCCESS);
    assert_eq!(launch(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0, 0), CUDA_SUCCESS);
    assert_eq!(launch(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1, 0), CUDA_SUCCESS);
    assert_eq!(launch(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 2, 0), CUDA_SUCCESS);
    assert_eq!(
        launch(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 3, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(launch(CUlaunchAttributeID(999), 0, 0), CUDA_ERROR_INVALID_VALUE);
    cu!(cuCtxSynchronize(); cuCtxDestroy_v2(context));
}
