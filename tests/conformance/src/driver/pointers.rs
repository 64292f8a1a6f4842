//! Unified addressing: what is known of an address.

use super::common::*;

fn ask<T: Default>(which: CUpointer_attribute, pointer: CUdeviceptr) -> T {
    let mut value = T::default();
    cu!(cuPointerGetAttribute((&raw mut value).cast(), which, pointer));
    value
}

fn refused(which: CUpointer_attribute, pointer: CUdeviceptr) {
    let mut value = [0u64; 2];
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(value.as_mut_ptr().cast(), which, pointer));
}

pub fn device_memory_tells_what_it_is() {
    let context = new_context();
    let p = alloc(1000);
    let middle = CUdeviceptr(p.0 + 100);
    assert_eq!(ask::<usize>(CU_POINTER_ATTRIBUTE_CONTEXT, middle), context.0);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, middle), CU_MEMORYTYPE_DEVICE.0);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, middle), middle.0);
    refused(CU_POINTER_ATTRIBUTE_HOST_POINTER, middle);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, middle), 0);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_IS_MANAGED, middle), 0);
    assert_eq!(ask::<i32>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, middle), 0);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, middle), 1);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, middle), p.0);
    assert_eq!(ask::<usize>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, middle), 1000);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_MAPPED, middle), 1);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, middle), 0);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, middle), CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0);
    assert_eq!(ask::<usize>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, middle), 0);
    let can = differs("there is no hardware that decompresses", 0, 1);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, middle), can);
}

pub fn every_allocation_has_a_number_of_its_own() {
    new_context();
    let (a, b) = (alloc(64), alloc(64));
    let number = |p: CUdeviceptr| ask::<u64>(CU_POINTER_ATTRIBUTE_BUFFER_ID, p);
    assert_eq!(number(a), number(CUdeviceptr(a.0 + 63)));
    assert_ne!(number(a), number(b));
    let before = number(a);
    cu!(cuMemFree_v2(a));
    // The same address, perhaps; never the same number.
    for _ in 0..8 {
        assert_ne!(number(alloc(64)), before);
    }
}

pub fn host_memory_tells_what_it_is() {
    let context = new_context();
    let mut host = null_mut();
    cu!(cuMemHostAlloc(&mut host, 1000, 0));
    let p = CUdeviceptr(host as u64 + 10);
    assert_eq!(ask::<usize>(CU_POINTER_ATTRIBUTE_CONTEXT, p), context.0);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_HOST.0);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_HOST_POINTER, p), p.0);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p), p.0);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 0);
    assert_eq!(ask::<i32>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p), 0);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p), host as u64);
    assert_eq!(ask::<usize>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, p), 1000);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_MAPPED, p), 1);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p), 0);
    cu!(cuMemFreeHost(host));
    refused(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);

    let mut buffer = vec![0u8; 1 << 20];
    let start = buffer.as_mut_ptr();
    cu!(cuMemHostRegister_v2(start.cast(), buffer.len(), 0));
    let p = CUdeviceptr(start as u64 + 12345);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_HOST.0);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_HOST_POINTER, p), p.0);
    // What it is mapped by are pages.
    let pages = (start as u64 & !4095)..(start as u64 + (1 << 20)).next_multiple_of(4096);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p), pages.start);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p), pages.end - pages.start);
    cu!(cuMemHostUnregister(start.cast()));
    refused(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
}

pub fn managed_memory_tells_what_it_is() {
    new_context();
    let mut p = CUdeviceptr(0);
    cu!(cuMemAllocManaged(&mut p, 1000, CU_MEM_ATTACH_GLOBAL));
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 1);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_DEVICE.0);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_HOST_POINTER, p), p.0);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p), p.0);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p), p.0);
}

pub fn pooled_memory_names_its_pool() {
    new_context();
    let (mut p, mut pool) = (CUdeviceptr(0), CUmemoryPool::NULL);
    cu!(cuDeviceGetDefaultMemPool(&mut pool, 0); cuMemAllocAsync(&mut p, 1000, CUstream::NULL); cuCtxSynchronize());
    assert_eq!(ask::<usize>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p), pool.0);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_DEVICE.0);
    cu!(cuMemFreeAsync(p, CUstream::NULL));
}

pub fn memory_of_a_pool_that_nobody_asked_for_names_it() {
    new_context();
    let (mut p, mut pool) = (CUdeviceptr(0), CUmemoryPool::NULL);
    cu!(cuMemAllocAsync(&mut p, 1000, CUstream::NULL); cuCtxSynchronize());
    let told = ask::<usize>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p);
    cu!(cuDeviceGetDefaultMemPool(&mut pool, 0); cuMemFreeAsync(p, CUstream::NULL));
    assert_eq!(told, pool.0);
}

pub fn memory_of_a_shared_pool_tells_how_it_is_shared() {
    new_context();
    let kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) as u32 & kind.0 == 0 {
        skip("pools are not shared by descriptors");
    }
    for (handle_types, told) in [(kind.0, 1), (0, 0)] {
        let props = CUmemPoolProps {
            allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: handle_types,
            location: CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 },
            win32SecurityAttributes: null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let (mut p, mut pool) = (CUdeviceptr(0), CUmemoryPool::NULL);
        cu!(
            cuMemPoolCreate(&mut pool, &props);
            cuMemAllocFromPoolAsync(&mut p, 100, pool, CUstream::NULL);
            cuCtxSynchronize();
        );
        assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p), told);
        cu!(cuMemFree_v2(p); cuMemPoolDestroy(pool));
    }
}

pub fn to_what_is_not_mapped_apart_nobody_has_been_given_access() {
    new_context();
    let place = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    let of_host = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST, id: 0 };
    let of_node = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA, id: 0 };
    let own_node = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, id: 0 };
    let nowhere = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_NONE, id: 0 };
    let (mut host, mut managed) = (null_mut(), CUdeviceptr(0));
    cu!(cuMemHostAlloc(&mut host, 64, 0); cuMemAllocManaged(&mut managed, 64, CU_MEM_ATTACH_GLOBAL));
    for p in [alloc(64), CUdeviceptr(host as u64), managed] {
        for place in [place, of_host, of_node] {
            let mut flags = 9;
            cu!(cuMemGetAccess(&mut flags, &place, p));
            assert_eq!(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE.0.into());
        }
        for place in [own_node, nowhere] {
            fails!(CUDA_ERROR_INVALID_DEVICE, cuMemGetAccess(&mut 9, &place, p));
        }
    }
    let granule = 2 << 20;
    for p in [alloc(64), managed] {
        let base = ask::<u64>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p);
        let size = ask::<u64>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p);
        assert!(base <= p.0 && p.0 + 64 <= base + size, "{p:?} in {size} bytes at {base:#x}");
        assert!(base.is_multiple_of(granule) && size.is_multiple_of(granule));
    }
}

pub fn mapped_memory_tells_mapping_and_range() {
    new_context();
    let (p, g) = mapped_pair();
    let second = CUdeviceptr(p.0 + g as u64 + 5);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, second), p.0);
    assert_eq!(ask::<usize>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, second), 3 * g);
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, second), p.0 + g as u64);
    assert_eq!(ask::<usize>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, second), g);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_MAPPED, second), 1);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p), CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0);
    let block = |p: CUdeviceptr| ask::<u64>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, p);
    assert_ne!(block(p), block(second), "two pieces of memory");
    assert_eq!(ask::<u64>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p), 1);
    assert_eq!(ask::<u32>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p), 0);
}

pub fn an_unknown_address_is_refused() {
    new_context();
    let local = 0u32;
    let p = CUdeviceptr(&raw const local as u64);
    for which in 1..=20 {
        if which != 13 {
            refused(CUpointer_attribute(which), p);
        }
    }
    let (known, mut value) = (alloc(64), 0u64);
    let place = (&raw mut value).cast::<c_void>();
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuPointerGetAttribute(null_mut(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, known)
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(place, CUpointer_attribute(0), known));
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(place, CUpointer_attribute(999), known));
}

pub fn several_attributes_of_any_address() {
    let context = new_context();
    let p = alloc(1000);
    let (mut owner, mut kind, mut start, mut ordinal) = (7usize, 7u32, 7u64, 7i32);
    let mut places = [
        (&raw mut owner).cast::<c_void>(),
        (&raw mut kind).cast(),
        (&raw mut start).cast(),
        (&raw mut ordinal).cast(),
    ];
    let mut which = [
        CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let (names, data) = (which.as_mut_ptr(), places.as_mut_ptr());
    cu!(cuPointerGetAttributes(4, names, data, CUdeviceptr(p.0 + 1)));
    assert_eq!((owner, kind, start, ordinal), (context.0, CU_MEMORYTYPE_DEVICE.0, p.0, 0));
    // Of an unknown address nothing is told, which is no error.
    let local = 0u32;
    cu!(cuPointerGetAttributes(4, names, data, CUdeviceptr(&raw const local as u64)));
    assert_eq!((owner, kind), (0, 0));
    if ours_only("NVIDIA's driver tells a range all the same") {
        assert_eq!(start, 0);
    }
    // But that it is the host's, as far as is known.
    let (address, mut told) = (CUdeviceptr(&raw const local as u64), 7u64);
    let mut one = [(&raw mut told).cast::<c_void>()];
    cu!(cuPointerGetAttributes(1, &mut { CU_POINTER_ATTRIBUTE_HOST_POINTER }, one.as_mut_ptr(), address));
    assert_eq!(told, address.0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(4, null_mut(), data, p));
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(4, names, null_mut(), p));
    which[2] = CUpointer_attribute(999);
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(4, which.as_mut_ptr(), data, p));
}

pub fn synchronous_memory_operations_are_asked_for() {
    new_context();
    let (p, other) = (alloc(64), alloc(64));
    let (on, off) = (1u32, 0u32);
    let sync = CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    cu!(cuPointerSetAttribute((&raw const on).cast(), sync, CUdeviceptr(p.0 + 8)));
    assert_eq!((ask::<u32>(sync, p), ask::<u32>(sync, other)), (1, 0));
    cu!(cuPointerSetAttribute((&raw const off).cast(), sync, p));
    assert_eq!(ask::<u32>(sync, p), 0);
    let value = (&raw const on).cast::<c_void>();
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(value, sync, CUdeviceptr(0x1234)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(null(), sync, p));
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(value, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(value, CUpointer_attribute(999), p));
}
