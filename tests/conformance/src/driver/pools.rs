//! Stream ordered memory allocator.

use super::common::*;

const DEVICE: CUmemLocation = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };

fn props() -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: 0,
        location: DEVICE,
        win32SecurityAttributes: null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    }
}

fn pool(props: &CUmemPoolProps) -> CUmemoryPool {
    let mut pool = CUmemoryPool::NULL;
    cu!(cuMemPoolCreate(&mut pool, props));
    pool
}

fn ask(pool: CUmemoryPool, attribute: CUmemPool_attribute) -> u64 {
    let mut value = 0u64;
    cu!(cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()));
    value
}

pub fn a_pool_holds_no_more_than_it_may() {
    new_context();
    let pool = pool(&CUmemPoolProps { maxSize: 1 << 20, ..props() });
    let mut p = CUdeviceptr(0);
    // In whole pieces, as a pool takes them, which an H100 has of 32 MiB.
    cu!(cuMemAllocFromPoolAsync(&mut p, 8 << 20, pool, CUstream::NULL));
    let another = &mut CUdeviceptr(0);
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(another, 128 << 20, pool, CUstream::NULL));
    cu!(cuMemFreeAsync(p, CUstream::NULL); cuCtxSynchronize(); cuMemPoolDestroy(pool));
}

pub fn memory_is_allocated_and_freed_in_order() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let (mut p, mut values, pool) = (CUdeviceptr(0), [0u32; 8], pool(&props()));
    for round in 0..4 {
        match round {
            0 => cu!(cuMemAllocAsync(&mut p, 32, s)),
            1 => cu!(cuMemAllocAsync_ptsz(&mut p, 32, s)),
            2 => cu!(cuMemAllocFromPoolAsync(&mut p, 32, pool, s)),
            _ => cu!(cuMemAllocFromPoolAsync_ptsz(&mut p, 32, pool, s)),
        }
        cu!(cuMemsetD32Async(p, round, 8, s); cuMemcpyDtoHAsync_v2(values.as_mut_ptr().cast(), p, 32, s));
        if round % 2 == 0 {
            cu!(cuMemFreeAsync(p, s));
        } else {
            cu!(cuMemFreeAsync_ptsz(p, s));
        }
        cu!(cuStreamSynchronize(s));
        assert_eq!(values, [round; 8]);
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
    }
    // Freed in another way, too.
    cu!(cuMemAllocAsync(&mut p, 32, s); cuStreamSynchronize(s); cuMemFree_v2(p));
    let mine = alloc(64);
    cu!(cuMemFreeAsync(mine, s); cuStreamSynchronize(s));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(mine));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync(null_mut(), 32, s));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(CUdeviceptr(0x1234), s));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&mut p, 1 << 50, s));
}

pub fn a_stream_allocates_what_several_of_its_frees_give_together() {
    new_context();
    let (s, gate) = (stream(CU_STREAM_NON_BLOCKING), Gate::new());
    let pool = pool(&CUmemPoolProps { maxSize: 32 << 20, ..props() });
    let (mut parts, mut whole, seen) = ([CUdeviceptr(0); 2], CUdeviceptr(0), alloc(4));
    gate.hold(s);
    for round in 0..4u32 {
        for part in &mut parts {
            cu!(cuMemAllocFromPoolAsync(part, 12 << 20, pool, s); cuMemsetD32Async(*part, round, 3 << 20, s));
        }
        fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&mut whole, 24 << 20, pool, s));
        for part in parts {
            cu!(cuMemFreeAsync(part, s));
        }
        cu!(
            cuMemAllocFromPoolAsync(&mut whole, 24 << 20, pool, s);
            cuMemsetD32Async(whole, 10 + round, 6 << 20, s);
            cuMemcpyDtoDAsync_v2(seen, CUdeviceptr(whole.0 + (24 << 20) - 4), 4, s);
            cuMemFreeAsync(whole, s);
        );
    }
    gate.open();
    let (mut last, mut used) = (0u32, 0u64);
    cu!(cuStreamSynchronize(s); cuMemcpyDtoH_v2((&raw mut last).cast(), seen, 4));
    assert_eq!(last, 13);
    cu!(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, (&raw mut used).cast()));
    assert_eq!(used, 0);
}

pub fn a_stream_allocates_again_what_it_is_about_to_free() {
    new_context();
    let (s, other, gate) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING), Gate::new());
    // Two pieces of 32 MiB.
    let pool = pool(&CUmemPoolProps { maxSize: 64 << 20, ..props() });
    let (mut p, mut q, mut values, seen) = (CUdeviceptr(0), CUdeviceptr(0), [0u32; 8], alloc(32));
    gate.hold(s);
    for round in 0..8 {
        // Sizes that do not rise fit into what is there.
        let size = (40 << 20) - (round << 16);
        cu!(cuMemAllocFromPoolAsync(&mut p, size, pool, s));
        let (last, place) = (CUdeviceptr(p.0 + size as u64 - 4), CUdeviceptr(seen.0 + 4 * round as u64));
        let (mut base, mut bytes) = (CUdeviceptr(0), 0);
        cu!(cuMemGetAddressRange_v2(&mut base, &mut bytes, p));
        assert_eq!((base, bytes), (p, size));
        cu!(
            cuMemsetD32Async(p, round as u32, size / 4, s);
            cuMemcpyDtoDAsync_v2(place, last, 4, s);
            cuMemFreeAsync(p, s);
        );
    }
    // What another stream does is not behind it, but may be made to wait.
    let allow_waits = |mut allowed: i32| {
        let attribute = CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
        cu!(cuMemPoolSetAttribute(pool, attribute, (&raw mut allowed).cast()));
    };
    allow_waits(0);
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&mut q, 39 << 20, pool, other));
    allow_waits(1);
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&mut q, 41 << 20, pool, other));
    cu!(cuMemAllocFromPoolAsync(&mut q, 39 << 20, pool, other); cuMemsetD32Async(q, 99, 1 << 20, other));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(other));
    cu!(cuMemFreeAsync(q, other); cuMemAllocFromPoolAsync(&mut q, 4096, pool, s));
    cu!(cuMemAllocFromPoolAsync(&mut p, 4096, pool, other));
    assert_ne!(p, q);
    gate.open();
    cu!(cuStreamSynchronize(s); cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), seen, 32));
    assert_eq!(values, [0, 1, 2, 3, 4, 5, 6, 7]);
    // It is there until it is freed for itself.
    cu!(cuMemsetD8_v2(q, 1, 4096); cuMemFreeAsync(q, s); cuMemFreeAsync(p, other); cuCtxSynchronize());
    assert_eq!(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    cu!(cuMemPoolDestroy(pool));
}

pub fn no_bytes_can_be_allocated() {
    new_context();
    let (s, mut pool) = (stream(CU_STREAM_NON_BLOCKING), CUmemoryPool::NULL);
    let [mut p, mut q] = [CUdeviceptr(1); 2];
    cu!(
        cuDeviceGetDefaultMemPool(&mut pool, 0);
        cuMemAllocAsync(&mut p, 0, s);
        cuMemAllocFromPoolAsync(&mut q, 0, pool, s);
    );
    assert_ne!([p, q], [CUdeviceptr(1); 2]);
    cu!(cuMemFreeAsync(p, s); cuMemFreeAsync(q, s); cuStreamSynchronize(s));
}

pub fn attributes_are_counted_and_set() {
    new_context();
    let (pool, mut p) = (pool(&props()), CUdeviceptr(0));
    cu!(cuMemAllocFromPoolAsync(&mut p, 5000, pool, CUstream::NULL); cuCtxSynchronize());
    assert!(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 5000);
    assert!(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 5000);
    cu!(cuMemFreeAsync(p, CUstream::NULL); cuCtxSynchronize());
    assert_eq!(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert!(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 5000);
    assert!(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 5000);
    let (mut zero, mut one, mut threshold) = (0u64, 1i32, 1u64 << 20);
    let high = CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    cu!(cuMemPoolTrimTo(pool, 0); cuMemPoolSetAttribute(pool, high, (&raw mut zero).cast()));
    assert_eq!(ask(pool, high), 0);
    // High marks can be reset only.
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, high, (&raw mut threshold).cast()));
    let release = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    assert_eq!(ask(pool, release), 0);
    cu!(cuMemPoolSetAttribute(pool, release, (&raw mut threshold).cast()));
    assert_eq!(ask(pool, release), 1 << 20);
    for reuse in [
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
    ] {
        assert_eq!(ask(pool, reuse), 1);
        cu!(cuMemPoolSetAttribute(pool, reuse, (&raw mut zero).cast()));
        assert_eq!(ask(pool, reuse), 0);
        cu!(cuMemPoolSetAttribute(pool, reuse, (&raw mut one).cast()));
        assert_eq!(ask(pool, reuse), 1);
    }
    if !ours_only("NVIDIA's driver crashes at null") {
        return;
    }
    let place = (&raw mut zero).cast::<c_void>();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, CUmemPool_attribute(99), place));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CUmemPool_attribute(99), place));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, release, null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, release, null_mut()));
    cu!(cuMemPoolDestroy(pool));
}

/// Allocates from a pool and frees again; what it holds then, before and after somebody waits for the device.
fn held_after(pool: CUmemoryPool, bytes: usize) -> [u64; 2] {
    let (mut p, reserved) = (CUdeviceptr(0), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    cu!(cuMemAllocFromPoolAsync(&mut p, bytes, pool, CUstream::NULL); cuMemFreeAsync(p, CUstream::NULL));
    let before = ask(pool, reserved);
    cu!(cuStreamSynchronize(CUstream::NULL));
    assert_eq!(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    [before, ask(pool, reserved)]
}

pub fn a_pool_keeps_what_is_below_its_threshold() {
    // So little that the machine always has it, and what other processes use is not counted.
    set_env("ANYWARP_MEMORY", "2G");
    set_env("ANYWARP_RUNTIME_DIR", "");
    new_context();
    let (pool, mib, mut zero) = (pool(&props()), 1u64 << 20, 0u64);
    let (release, high) = (CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
    let mut free = [0usize; 3];
    let info = |free: &mut usize| cu!(cuMemGetInfo_v2(free, &mut 0));
    info(&mut free[0]);
    // Memory is taken in pieces of 32 MiB, and nothing is kept at first.
    assert_eq!(held_after(pool, 5000), [32 * mib, 0]);
    let (mut less, mut all) = (5, u64::MAX);
    cu!(cuMemPoolSetAttribute(pool, release, (&raw mut less).cast()));
    assert_eq!(held_after(pool, 5000), [32 * mib, 0]);
    cu!(cuMemPoolSetAttribute(pool, release, (&raw mut all).cast()));
    assert_eq!(held_after(pool, 5000), [32 * mib; 2]);
    assert_eq!(held_after(pool, 100 << 20), [128 * mib; 2]);
    info(&mut free[1]);
    if ours_only("others use a GPU's memory too, and a driver keeps some itself") {
        assert_eq!(free[0] - free[1], 128 << 20, "what is kept is not free");
    }
    assert_eq!(held_after(pool, 5000), [128 * mib; 2]);
    cu!(cuMemPoolTrimTo(pool, 48 << 20));
    assert_eq!(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * mib);
    cu!(cuMemPoolTrimTo(pool, 0));
    assert_eq!(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    info(&mut free[2]);
    if ours_only("others use a GPU's memory too, and a driver keeps some itself") {
        assert_eq!(free[0], free[2]);
    }
    assert_eq!(ask(pool, high), 128 * mib);
    cu!(cuMemPoolSetAttribute(pool, high, (&raw mut zero).cast()));
    assert_eq!(ask(pool, high), 0);
    cu!(cuMemPoolDestroy(pool));
}

pub fn a_device_has_a_current_pool() {
    new_context();
    let (mut default, mut current, mut place) = (CUmemoryPool::NULL, CUmemoryPool::NULL, DEVICE);
    let kind = CU_MEM_ALLOCATION_TYPE_PINNED;
    cu!(cuDeviceGetDefaultMemPool(&mut default, 0); cuDeviceGetMemPool(&mut current, 0));
    assert_eq!(default, current);
    cu!(cuMemGetDefaultMemPool(&mut current, &mut place, kind));
    assert_eq!(default, current);
    let (own, mut p) = (pool(&props()), CUdeviceptr(0));
    cu!(cuMemSetMemPool(&mut place, kind, own); cuMemGetMemPool(&mut current, &mut place, kind));
    assert_eq!(current, own);
    cu!(cuMemAllocAsync(&mut p, 100, CUstream::NULL); cuCtxSynchronize());
    assert!(ask(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 100);
    let mut context = 9usize;
    cu!(cuPointerGetAttribute((&raw mut context).cast(), CU_POINTER_ATTRIBUTE_CONTEXT, p));
    assert_eq!(context, 0, "memory of a pool is no context's");
    cu!(cuDeviceSetMemPool(0, default); cuDeviceGetMemPool(&mut current, 0));
    assert_eq!(current, default);
    cu!(cuDeviceSetMemPool(0, own); cuMemFree_v2(p); cuMemPoolDestroy(own); cuDeviceGetMemPool(&mut current, 0));
    assert_eq!(current, default, "a destroyed pool is no device's");
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(default));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetMemPool(&mut current, 99));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(99, default));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDefaultMemPool(&mut current, 99));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetMemPool(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetDefaultMemPool(null_mut(), 0));
    if ours_only("NVIDIA's driver may follow a handle that is none") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(own, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(own));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(CUmemoryPool::NULL));
        fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, own));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&mut p, 100, own, CUstream::NULL));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&mut current, null_mut(), kind));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetDefaultMemPool(null_mut(), &mut place, kind));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemSetMemPool(null_mut(), kind, default));
    }
}

pub fn a_pool_outlives_its_handle() {
    new_context();
    let (own, mut p) = (pool(&props()), CUdeviceptr(0));
    cu!(cuMemAllocFromPoolAsync(&mut p, 64, own, CUstream::NULL); cuMemPoolDestroy(own));
    cu!(cuMemsetD8_v2(p, 3, 64));
    assert_eq!(read::<u8>(p, 64), [3; 64]);
    cu!(cuMemFreeAsync(p, CUstream::NULL); cuCtxSynchronize());
}

pub fn properties_and_access_are_checked() {
    new_context();
    let mut made = CUmemoryPool::NULL;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(null_mut(), &props()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut made, null()));
    let mut more = props();
    more.reserved[3] = 1;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut made, &more));
    let mut managed = CUdeviceptr(0);
    cu!(cuMemAllocManaged(&mut managed, 64, CU_MEM_ATTACH_GLOBAL));
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemFreeAsync(managed, CUstream::NULL));
    cu!(cuMemFree_v2(managed));
    let managed = CUmemPoolProps { allocType: CU_MEM_ALLOCATION_TYPE_INVALID, ..props() };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut made, &managed));
    let nowhere = CUmemPoolProps { location: CUmemLocation { id: 99, ..DEVICE }, ..props() };
    // SAFETY: a place for the handle.
    let code = unsafe { cuMemPoolCreate(&mut made, &nowhere) };
    assert!([CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_VALUE].contains(&code), "{code:?}");
    let (own, mut access, mut place) = (pool(&props()), CUmemAccess_flags(9), DEVICE);
    cu!(cuMemPoolGetAccess(&mut access, own, &mut place));
    assert_eq!(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    let mut host = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST, id: 0 };
    cu!(cuMemPoolGetAccess(&mut access, own, &mut host));
    assert_eq!(access, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    let all = CUmemAccessDesc { location: DEVICE, flags: CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0 };
    cu!(cuMemPoolSetAccess(own, &all, 1));
    let none = CUmemAccessDesc { flags: CU_MEM_ACCESS_FLAGS_PROT_NONE.0, ..all };
    fails!(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(own, &none, 1));
    let read = CUmemAccessDesc { flags: CU_MEM_ACCESS_FLAGS_PROT_READ.0, ..all };
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolSetAccess(own, &read, 1));
    let of_host = CUmemAccessDesc { location: host, ..all };
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolSetAccess(own, &of_host, 1));
    let nobody = CUmemAccessDesc { location: CUmemLocation { id: 99, ..DEVICE }, ..all };
    fails!(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(own, &nobody, 1));
    let mut nowhere = nobody.location;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(&mut access, own, &mut nowhere));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(null_mut(), own, &mut place));
    if ours_only("NVIDIA's driver may follow null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(own, null(), 1));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(&mut access, own, null_mut()));
    }
}

pub fn pools_are_made_of_what_there_is() {
    new_context();
    let (mut made, managed) = (CUmemoryPool::NULL, CU_MEM_ALLOCATION_TYPE_MANAGED);
    // There are no addresses for as much.
    fails!(
        CUDA_ERROR_OUT_OF_MEMORY,
        cuMemPoolCreate(&mut made, &CUmemPoolProps { maxSize: 1 << 50, ..props() })
    );
    // What it is for is not looked at.
    for usage in [1, 2, 4] {
        cu!(cuMemPoolDestroy(pool(&CUmemPoolProps { usage, ..props() })));
    }
    // Handles of another system, of several kinds at once, and of a kind that there is not; and of managed memory there are none.
    for types in [2, 3, 4, 64] {
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuMemPoolCreate(&mut made, &CUmemPoolProps { handleTypes: types, ..props() })
        );
        let props = CUmemPoolProps { handleTypes: types, allocType: managed, ..props() };
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut made, &props));
    }
    for r#type in [CUmemLocationType(5), CUmemLocationType(6)] {
        let location = CUmemLocation { r#type, id: 0 };
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut made, &CUmemPoolProps { location, ..props() }));
        let props = CUmemPoolProps { location, allocType: managed, ..props() };
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&mut made, &props));
    }
    // The place is looked at before what is to be allowed there, but for reading.
    let own = pool(&props());
    for (location, flags, code) in [
        (HOST, 2, CUDA_ERROR_NOT_SUPPORTED),
        (CUmemLocation { id: 99, ..DEVICE }, 2, CUDA_ERROR_INVALID_DEVICE),
        (CUmemLocation { id: 99, ..DEVICE }, 1, CUDA_ERROR_NOT_SUPPORTED),
        (DEVICE, 2, CUDA_ERROR_INVALID_VALUE),
    ] {
        fails!(code, cuMemPoolSetAccess(own, &CUmemAccessDesc { location, flags }, 1));
    }
    cu!(cuMemPoolDestroy(own));
}

const HOST: CUmemLocation = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST, id: 0 };
const NODE: CUmemLocation = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA, id: 0 };

/// A pool of a type of memory at a place.
fn pool_at(kind: CUmemAllocationType, location: CUmemLocation) -> CUmemoryPool {
    pool(&CUmemPoolProps { allocType: kind, location, ..props() })
}

fn access_of(pool: CUmemoryPool, mut location: CUmemLocation) -> CUmemAccess_flags {
    let mut access = CUmemAccess_flags(99);
    cu!(cuMemPoolGetAccess(&mut access, pool, &mut location));
    access
}

fn told<T: Copy + Default>(attribute: CUpointer_attribute, pointer: CUdeviceptr) -> T {
    let mut value = T::default();
    cu!(cuPointerGetAttribute((&raw mut value).cast(), attribute, pointer));
    value
}

pub fn pools_of_host_memory() {
    new_context();
    if attribute(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED) == 0 {
        skip("there are no pools of host memory");
    }
    let add = kernel(c"vecadd");
    for place in [HOST, NODE, CUmemLocation { id: 7, ..HOST }] {
        let (own, mut p) = (pool_at(CU_MEM_ALLOCATION_TYPE_PINNED, place), CUdeviceptr(0));
        assert_eq!(access_of(own, DEVICE), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        assert_eq!([HOST, NODE].map(|at| access_of(own, at)), [CU_MEM_ACCESS_FLAGS_PROT_READWRITE; 2]);
        cu!(cuMemAllocFromPoolAsync(&mut p, 4000, own, CUstream::NULL); cuCtxSynchronize());
        assert_eq!(ask(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4000);
        assert_eq!(ask(own, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 << 20);
        assert_eq!(told::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_HOST.0);
        assert_eq!(told::<u64>(CU_POINTER_ATTRIBUTE_HOST_POINTER, p), p.0);
        assert_eq!(told::<u64>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, p), 4000);
        assert_eq!(told::<usize>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p), own.0);
        assert_eq!(told::<u8>(CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 0);
        let mut reached = 0u64;
        let reached_by_device = (&raw mut reached).cast();
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuPointerGetAttribute(reached_by_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p)
        );
        let all = CUmemAccessDesc { location: DEVICE, flags: CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0 };
        cu!(cuMemPoolSetAccess(own, &all, 1));
        assert_eq!(access_of(own, DEVICE), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        assert_eq!(told::<u64>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p), p.0);
        // The host writes it, a kernel changes it, the host reads it.
        let values = p.0 as *mut f32;
        // SAFETY: host memory of 1000 numbers, which nothing else uses.
        unsafe { (0..64).for_each(|index| values.add(index).write(index as f32)) };
        let arguments = &mut [arg(&p), arg(&p), arg(&p), arg(&64_u32)];
        assert_eq!(launch(add, 1, 64, CUstream::NULL, arguments), CUDA_SUCCESS);
        cu!(cuCtxSynchronize());
        // SAFETY: as above; the kernel is done.
        unsafe { (0..64).for_each(|index| assert_eq!(values.add(index).read(), 2.0 * index as f32)) };
        // Neither memory nor pool is what it is not.
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(values.cast()));
        fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, own));
        let none = CUmemAccessDesc { location: HOST, flags: CU_MEM_ACCESS_FLAGS_PROT_NONE.0 };
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolSetAccess(own, &none, 1));
        cu!(cuMemFreeAsync(p, CUstream::NULL); cuCtxSynchronize());
        assert_eq!(ask(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
        assert_eq!(ask(own, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0, "nothing is kept");
        cu!(cuMemAllocFromPoolAsync(&mut p, 64, own, CUstream::NULL); cuMemFree_v2(p); cuMemPoolDestroy(own));
    }
    for (kind, location) in [
        (CU_MEM_ALLOCATION_TYPE_PINNED, CUmemLocation { id: 9999, ..NODE }),
        (CU_MEM_ALLOCATION_TYPE_PINNED, CUmemLocation { id: -1, ..NODE }),
        (
            CU_MEM_ALLOCATION_TYPE_PINNED,
            CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, id: 0 },
        ),
        (CU_MEM_ALLOCATION_TYPE_PINNED, CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_NONE, id: 0 }),
        (CU_MEM_ALLOCATION_TYPE_MANAGED, CUmemLocation { id: 9999, ..NODE }),
    ] {
        let mut made = CUmemoryPool::NULL;
        let props = CUmemPoolProps { allocType: kind, location, ..props() };
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut made, &props));
    }
    let shared = |location| CUmemPoolProps {
        handleTypes: CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0,
        location,
        ..props()
    };
    let mut made = CUmemoryPool::NULL;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut made, &shared(HOST)));
    cu!(cuMemPoolCreate(&mut made, &shared(NODE)); cuMemPoolDestroy(made));
}

pub fn a_shared_pool_of_host_memory_is_exported_and_imported() {
    new_context();
    let kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED) == 0 {
        skip("there are no pools of host memory");
    }
    let own = pool(&CUmemPoolProps { handleTypes: kind.0, location: NODE, ..props() });
    let (mut p, mut descriptor, mut imported) = (CUdeviceptr(0), -1i32, CUmemoryPool::NULL);
    cu!(
        cuMemAllocFromPoolAsync(&mut p, 1000, own, CUstream::NULL);
        cuCtxSynchronize();
        cuMemPoolExportToShareableHandle((&raw mut descriptor).cast(), own, kind, 0);
    );
    assert_eq!(told::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_HOST.0);
    // SAFETY: host memory of 1000 bytes.
    unsafe { (p.0 as *mut u8).write_bytes(7, 1000) };
    let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
    cu!(
        cuMemPoolImportFromShareableHandle(&mut imported, descriptor as usize as *mut c_void, kind, 0);
        cuMemPoolExportPointer(&mut data, p);
    );
    // Another process would import the pointer now; this one may, where the driver lets it.
    let mut theirs = CUdeviceptr(0);
    // SAFETY: a place for the pointer, and what was exported.
    let code = unsafe { cuMemPoolImportPointer(&mut theirs, imported, &mut data) };
    if code == CUDA_SUCCESS {
        assert_eq!(told::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, theirs), CU_MEMORYTYPE_HOST.0);
        // SAFETY: as above.
        assert_eq!(unsafe { std::slice::from_raw_parts(theirs.0 as *const u8, 1000) }, [7; 1000]);
        cu!(cuMemFree_v2(theirs));
    } else {
        assert!(!is_ours(), "{code:?}");
    }
    let mut none = CUdeviceptr(0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&mut none, 64, imported, CUstream::NULL));
    cu!(cuMemPoolDestroy(imported); cuMemFree_v2(p); cuMemPoolDestroy(own));
}

pub fn pools_of_managed_memory() {
    new_context();
    if attribute(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED) == 0 {
        skip("there are no pools of managed memory");
    }
    let add = kernel(c"vecadd");
    let anywhere = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_NONE, id: 0 };
    let own_node = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, id: 0 };
    for place in [DEVICE, HOST, NODE, anywhere, own_node] {
        let (own, mut p) = (pool_at(CU_MEM_ALLOCATION_TYPE_MANAGED, place), CUdeviceptr(0));
        assert_eq!([DEVICE, HOST].map(|at| access_of(own, at)), [CU_MEM_ACCESS_FLAGS_PROT_NONE; 2]);
        cu!(cuMemAllocFromPoolAsync(&mut p, 4000, own, CUstream::NULL); cuCtxSynchronize());
        assert_eq!(told::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_DEVICE.0);
        assert_eq!(told::<u8>(CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 1);
        assert_eq!(told::<usize>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p), own.0);
        cu!(cuMemsetD32_v2(p, 1.5_f32.to_bits(), 64));
        let arguments = &mut [arg(&p), arg(&p), arg(&p), arg(&64_u32)];
        assert_eq!(launch(add, 1, 64, CUstream::NULL, arguments), CUDA_SUCCESS);
        cu!(cuCtxSynchronize());
        // SAFETY: managed memory of 1000 numbers; the kernel is done.
        assert_eq!(unsafe { std::slice::from_raw_parts(p.0 as *const f32, 64) }, [3.0; 64]);
        for (location, flags) in [
            (HOST, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
            (DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
            (HOST, CU_MEM_ACCESS_FLAGS_PROT_NONE),
            (DEVICE, CU_MEM_ACCESS_FLAGS_PROT_NONE),
        ] {
            cu!(cuMemPoolSetAccess(own, &CUmemAccessDesc { location, flags: flags.0 }, 1));
            assert_eq!(access_of(own, location), flags);
        }
        cu!(cuMemFreeAsync(p, CUstream::NULL); cuCtxSynchronize());
        assert_eq!(ask(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
        // The one at the device can be what the device allocates from, when it is asked for managed memory.
        let code = if place.r#type == DEVICE.r#type { CUDA_SUCCESS } else { CUDA_ERROR_INVALID_VALUE };
        fails!(code, cuDeviceSetMemPool(0, own));
        cu!(cuMemAllocAsync(&mut p, 64, CUstream::NULL); cuCtxSynchronize());
        assert_eq!(told::<u8>(CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 0);
        cu!(cuMemFree_v2(p); cuMemPoolDestroy(own));
    }
    let mut made = CUmemoryPool::NULL;
    let shared = CUmemPoolProps {
        allocType: CU_MEM_ALLOCATION_TYPE_MANAGED,
        handleTypes: CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0,
        ..props()
    };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut made, &shared));
}

pub fn every_sort_of_memory_has_a_pool() {
    new_context();
    if attribute(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED) == 0 {
        skip("there are no pools of host memory");
    }
    let (pinned, managed) = (CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_MANAGED);
    let anywhere = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_NONE, id: 0 };
    let sorts = [(pinned, HOST), (pinned, NODE), (managed, DEVICE), (managed, HOST), (managed, anywhere)];
    let (mut seen, mut of_device) = (Vec::new(), CUmemoryPool::NULL);
    cu!(cuDeviceGetDefaultMemPool(&mut of_device, 0));
    for (kind, mut place) in sorts {
        let (mut default, mut current) = (CUmemoryPool::NULL, CUmemoryPool::NULL);
        cu!(cuMemGetDefaultMemPool(&mut default, &mut place, kind); cuMemGetMemPool(&mut current, &mut place, kind));
        assert_eq!(default, current);
        assert!(default != of_device && !seen.contains(&default), "{place:?}");
        seen.push(default);
        let own = pool_at(kind, place);
        cu!(cuMemSetMemPool(&mut place, kind, own); cuMemGetMemPool(&mut current, &mut place, kind));
        assert_eq!(current, own);
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemSetMemPool(&mut place, kind, of_device));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(default));
        cu!(cuMemSetMemPool(&mut place, kind, default); cuMemGetMemPool(&mut current, &mut place, kind));
        assert_eq!(current, default);
        cu!(cuMemSetMemPool(&mut place, kind, own); cuMemPoolDestroy(own));
        if ours_only("NVIDIA's driver keeps a pool there that was destroyed") {
            cu!(cuMemGetMemPool(&mut current, &mut place, kind));
            assert_eq!(current, default);
        }
    }
    let mut pool = CUmemoryPool::NULL;
    for (location, kind, code) in [
        (anywhere, pinned, CUDA_ERROR_INVALID_VALUE),
        (DEVICE, CU_MEM_ALLOCATION_TYPE_INVALID, CUDA_ERROR_INVALID_VALUE),
        (CUmemLocation { id: 99, ..DEVICE }, managed, CUDA_ERROR_INVALID_VALUE),
        (CUmemLocation { r#type: CUmemLocationType(5), id: 0 }, pinned, CUDA_ERROR_NOT_SUPPORTED),
    ] {
        let mut location = location;
        fails!(code, cuMemGetDefaultMemPool(&mut pool, &mut location, kind));
        fails!(code, cuMemGetMemPool(&mut pool, &mut location, kind));
    }
}

pub fn a_shared_pool_is_exported_and_imported() {
    new_context();
    let kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) as u32 & kind.0 == 0 {
        skip("pools are not shared by descriptors");
    }
    let own = pool(&CUmemPoolProps { handleTypes: kind.0, ..props() });
    let (mut p, mut descriptor, mut imported) = (CUdeviceptr(0), -1i32, CUmemoryPool::NULL);
    cu!(
        cuMemAllocFromPoolAsync(&mut p, 1000, own, CUstream::NULL);
        cuMemsetD8_v2(p, 7, 1000);
        cuCtxSynchronize();
        cuMemPoolExportToShareableHandle((&raw mut descriptor).cast(), own, kind, 0);
    );
    assert!(descriptor >= 0);
    let handle = descriptor as usize as *mut c_void;
    cu!(cuMemPoolImportFromShareableHandle(&mut imported, handle, kind, 0));
    assert_ne!(imported, own);
    let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
    cu!(cuMemPoolExportPointer(&mut data, p));
    // Another process would import the pointer now; this one may, where the driver lets it.
    let mut theirs = CUdeviceptr(0);
    // SAFETY: a place for the pointer, and what was exported.
    let code = unsafe { cuMemPoolImportPointer(&mut theirs, imported, &mut data) };
    if code == CUDA_SUCCESS {
        assert_eq!(read::<u8>(theirs, 1000), [7; 1000]);
        cu!(cuMemsetD8_v2(theirs, 8, 1000));
        assert_eq!(read::<u8>(p, 1000), [8; 1000], "the same memory");
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&mut data, theirs));
        // The pool is there as long as they are.
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(imported));
        cu!(cuMemFree_v2(theirs));
    } else {
        assert!(!is_ours(), "{code:?}");
    }
    // Nothing is allocated from another process's pool.
    let mut none = CUdeviceptr(0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&mut none, 64, imported, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, imported));
    // It tells nothing of itself, and keeps nothing that could be given back.
    for attribute in 1..9 {
        let (attribute, mut value) = (CUmemPool_attribute(attribute), 0u64);
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuMemPoolGetAttribute(imported, attribute, (&raw mut value).cast::<c_void>())
        );
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuMemPoolSetAttribute(imported, attribute, (&raw mut value).cast::<c_void>())
        );
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(imported, 0));
    let place = (&raw mut descriptor).cast::<c_void>();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(place, own, kind, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(place, pool(&props()), kind, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&mut data, alloc(64)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&mut imported, handle, kind, 1));
    fails!(
        CUDA_ERROR_UNKNOWN,
        cuMemPoolImportFromShareableHandle(&mut { CUmemoryPool::NULL }, 999 as *mut c_void, kind, 0)
    );
    if ours_only("NVIDIA's driver may follow null, and what was never exported") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(null_mut(), own, kind, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(null_mut(), handle, kind, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(null_mut(), p));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&mut theirs, imported, null_mut()));
        let mut wrong = CUmemPoolPtrExportData { reserved: [9; 64] };
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&mut theirs, imported, &mut wrong));
    }
    cu!(cuMemPoolDestroy(imported); cuMemFree_v2(p); cuMemPoolDestroy(own));
}
