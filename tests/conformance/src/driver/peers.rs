//! Peer context memory access, and memory of several devices.

use super::common::*;

/// Contexts on two devices, the second one's current.
fn two_devices() -> [CUcontext; 2] {
    set_env("ANYWARP_DEVICES", "2");
    init();
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count));
    if count < 2 {
        skip("there is one device");
    }
    [0, 1].map(|device| {
        let mut context = CUcontext::NULL;
        cu!(cuCtxCreate_v4(&mut context, null_mut(), 0, device));
        context
    })
}

pub fn devices_reach_each_other() {
    let [first, second] = two_devices();
    let mut can = 9;
    cu!(cuDeviceCanAccessPeer(&mut can, 0, 0));
    assert_eq!(can, 0, "a device is not its own peer");
    cu!(cuDeviceCanAccessPeer(&mut can, 0, 1));
    if can == 0 {
        skip("the devices do not reach each other");
    }
    let mut value = 9;
    for (attribute, least) in
        [(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0), (CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1)]
    {
        cu!(cuDeviceGetP2PAttribute(&mut value, attribute, 0, 1));
        assert!(value >= least, "{attribute:?} is {value}");
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&mut value, CUdevice_P2PAttribute(99), 0, 1));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceGetP2PAttribute(null_mut(), CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1)
    );
    fails!(
        CUDA_ERROR_INVALID_DEVICE,
        cuDeviceGetP2PAttribute(&mut value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 99)
    );
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&mut can, 0, 99));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceCanAccessPeer(null_mut(), 0, 1));

    fails!(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(first));
    cu!(cuCtxEnablePeerAccess(first, 0));
    fails!(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(first, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(first, 1));
    cu!(cuCtxDisablePeerAccess(first));
    // SAFETY: one's own context.
    let code = unsafe { cuCtxEnablePeerAccess(second, 0) };
    assert!([CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, CUDA_ERROR_INVALID_CONTEXT].contains(&code), "{code:?}");
}

pub fn atomics_between_devices_are_told_by_operation() {
    let operations = [CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_FLOAT_MIN];
    let (mut bits, ask) = ([0x5555_u32; 2], operations.as_ptr());
    two_devices();
    cu!(cuDeviceGetP2PAtomicCapabilities(bits.as_mut_ptr(), ask, 2, 0, 1));
    assert!(bits.iter().all(|bits| *bits != 0x5555), "{bits:x?}");
    if is_ours() {
        assert!(bits[0] & CU_ATOMIC_CAPABILITY_SCALAR_64 != 0 && bits[1] == 0, "{bits:x?}");
    }
}

pub fn a_device_is_no_peer_of_itself_for_atomics_either() {
    init();
    let (mut bits, operations) = ([0_u32; 1], [CU_ATOMIC_OPERATION_INTEGER_ADD]);
    let (place, ask) = (bits.as_mut_ptr(), operations.as_ptr());
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAtomicCapabilities(place, ask, 1, 0, 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAtomicCapabilities(place, ask, 1, 0, 99));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAtomicCapabilities(place, ask, 1, -1, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAtomicCapabilities(place, ask, 0, 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAtomicCapabilities(null_mut(), ask, 1, 0, 99));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAtomicCapabilities(place, null(), 1, 0, 99));
}

pub fn memory_belongs_to_its_device() {
    let [first, second] = two_devices();
    let theirs = alloc_with(&[2u32; 16]);
    cu!(cuCtxSetCurrent(first));
    let mine = alloc_with(&[1u32; 16]);
    for (pointer, device) in [(mine, 0), (theirs, 1)] {
        let (mut ordinal, mut context) = (9i32, 0usize);
        cu!(
            cuPointerGetAttribute((&raw mut ordinal).cast(), CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
            cuPointerGetAttribute((&raw mut context).cast(), CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
        );
        assert_eq!((ordinal, context), (device, [first.0, second.0][device as usize]));
    }
    // One address space: any context copies between them.
    cu!(cuMemcpyPeer(theirs, second, mine, first, 32); cuCtxSynchronize());
    assert_eq!(read::<u32>(theirs, 16), [[1; 8], [2; 8]].concat());
    cu!(cuMemcpyDtoD_v2(mine, CUdeviceptr(theirs.0 + 32), 32); cuCtxSynchronize());
    assert_eq!(read::<u32>(mine, 16), [[2; 8], [1; 8]].concat());
    // A stream of the other device's context is the other device's.
    cu!(cuCtxSetCurrent(second));
    let (s, mut device) = (stream(CU_STREAM_NON_BLOCKING), 9);
    cu!(cuCtxSetCurrent(first); cuStreamGetDevice(s, &mut device); cuMemsetD32Async(theirs, 5, 16, s); cuStreamSynchronize(s));
    assert_eq!((device, read::<u32>(theirs, 16)), (1, vec![5; 16]));
}

pub fn a_device_is_given_access_to_anothers_pool() {
    let [first, second] = two_devices();
    let mut can = 0;
    cu!(cuDeviceCanAccessPeer(&mut can, 1, 0));
    if can == 0 {
        skip("the devices do not reach each other");
    }
    let add = kernel(c"vecadd");
    let place = |id| CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id };
    let props = CUmemPoolProps {
        allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: 0,
        location: place(0),
        win32SecurityAttributes: null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    };
    let (mut pool, mut p, mut ordinal) = (CUmemoryPool::NULL, [CUdeviceptr(0); 2], 9i32);
    cu!(cuMemPoolCreate(&mut pool, &props));
    let access = |id| {
        let (mut access, mut place) = (CUmemAccess_flags(99), place(id));
        cu!(cuMemPoolGetAccess(&mut access, pool, &mut place));
        access
    };
    assert_eq!([access(0), access(1)], [CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_NONE]);
    let give = |id, flags: CUmemAccess_flags| CUmemAccessDesc { location: place(id), flags: flags.0 };
    // All or nothing.
    let bad = [give(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), give(99, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)];
    fails!(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, bad.as_ptr(), 2));
    assert_eq!(access(1), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    cu!(cuMemPoolSetAccess(pool, &give(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), 1));
    assert_eq!(access(1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    // Memory of the first device, once for each device's stream; kernels of the second use it.
    for (context, p) in [first, second].into_iter().zip(&mut p) {
        cu!(
            cuCtxSetCurrent(context);
            cuMemAllocFromPoolAsync(p, 256, pool, CUstream::NULL);
            cuMemsetD32Async(*p, 2.5_f32.to_bits(), 64, CUstream::NULL);
            cuCtxSynchronize();
            cuPointerGetAttribute((&raw mut ordinal).cast(), CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, *p);
        );
        assert_eq!(ordinal, 0);
    }
    let arguments = &mut [arg(&p[0]), arg(&p[1]), arg(&p[0]), arg(&64_u32)];
    assert_eq!(launch(add, 1, 64, CUstream::NULL, arguments), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    assert_eq!(read::<f32>(p[0], 64), [5.0; 64]);
    for p in p {
        cu!(cuMemFreeAsync(p, CUstream::NULL); cuCtxSynchronize());
    }
    cu!(cuMemPoolSetAccess(pool, &give(1, CU_MEM_ACCESS_FLAGS_PROT_NONE), 1));
    assert_eq!(access(1), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    cu!(cuMemPoolDestroy(pool));
}

pub fn pools_belong_to_their_device() {
    two_devices();
    let (mut first, mut second, mut p) = (CUmemoryPool::NULL, CUmemoryPool::NULL, CUdeviceptr(0));
    cu!(cuDeviceGetDefaultMemPool(&mut first, 0); cuDeviceGetDefaultMemPool(&mut second, 1));
    assert_ne!(first, second);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, second));
    cu!(cuMemAllocAsync(&mut p, 64, CUstream::NULL); cuCtxSynchronize());
    let mut ordinal = 9i32;
    cu!(cuPointerGetAttribute((&raw mut ordinal).cast(), CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    assert_eq!(ordinal, 1, "the current context's device");
    cu!(cuMemFreeAsync(p, CUstream::NULL); cuCtxSynchronize());
}
