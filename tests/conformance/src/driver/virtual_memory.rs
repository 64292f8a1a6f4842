//! Virtual memory management, and multicast objects.

use super::common::*;

pub fn memory_is_mapped_where_the_program_says() {
    new_context();
    let (p, g) = mapped_pair();
    let middle = CUdeviceptr(p.0 + g as u64 - 16);
    cu!(cuMemsetD32_v2(middle, 0x0102_0304, 8));
    assert_eq!(read::<u32>(middle, 8), [0x0102_0304; 8], "across the border");
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 3 * g));
    cu!(cuCtxSynchronize(); cuMemUnmap(p, 2 * g); cuMemAddressFree(p, 3 * g));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(p, 0, 1));
}

/// As pools of programs do that are to grow without a copy: far more addresses than any device has memory.
pub fn terabytes_of_addresses_are_set_aside() {
    new_context();
    let (mut g, mut handle) = (0, 0);
    let mut starts = [CUdeviceptr(0); 2];
    let (prop, access) = (allocation_prop(), access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    let size = 8 << 40;
    cu!(cuMemGetAllocationGranularity(&mut g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    cu!(cuMemCreate(&mut handle, g, &prop, 0));
    for start in &mut starts {
        cu!(cuMemAddressReserve(start, size, g, CUdeviceptr(0), 0));
    }
    for start in starts {
        let last = CUdeviceptr(start.0 + (size - g) as u64);
        for place in [start, last] {
            cu!(cuMemMap(place, g, 0, handle, 0); cuMemSetAccess(place, g, &access, 1));
        }
        cu!(cuMemsetD32_v2(last, 0x0a0b_0c0d, g / 4));
        assert_eq!(read::<u32>(start, 4), [0x0a0b_0c0d; 4], "the same memory");
        let (mut base, mut len) = (CUdeviceptr(0), 0_usize);
        cu!(
            cuPointerGetAttribute((&raw mut base).cast(), CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, last);
            cuPointerGetAttribute((&raw mut len).cast(), CU_POINTER_ATTRIBUTE_RANGE_SIZE, last);
        );
        assert!(base.0 >= start.0 && len <= size);
    }
    // There is as much room for memory as before.
    let memory = alloc(64 << 20);
    cu!(cuMemFree_v2(memory));
    for start in starts {
        cu!(cuMemUnmap(start, g); cuMemUnmap(CUdeviceptr(start.0 + (size - g) as u64), g));
        cu!(cuMemAddressFree(start, size));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(start, size));
    }
    cu!(cuMemRelease(handle));
}

pub fn addresses_are_where_they_are_wished() {
    new_context();
    let (mut g, mut first, mut second, mut third) = (0, CUdeviceptr(0), CUdeviceptr(0), CUdeviceptr(0));
    let prop = allocation_prop();
    cu!(
        cuMemGetAllocationGranularity(&mut g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        cuMemAddressReserve(&mut first, 8 * g, 0, CUdeviceptr(0), 0);
        cuMemAddressFree(first, 8 * g);
    );
    let wishes = [4, 6].map(|granules| first.0 + (granules * g) as u64);
    cu!(
        cuMemAddressReserve(&mut second, 2 * g, 0, CUdeviceptr(wishes[0]), 0);
        cuMemAddressReserve(&mut third, 2 * g, 0, CUdeviceptr(wishes[1]), 0);
    );
    assert_eq!([second.0, third.0], wishes);
    // Memory that goes on from one to the other is one for copies and fills.
    for start in [second, third] {
        let mut memory = 0;
        cu!(
            cuMemCreate(&mut memory, 2 * g, &prop, 0);
            cuMemMap(start, 2 * g, 0, memory, 0);
            cuMemRelease(memory);
            cuMemSetAccess(start, 2 * g, &access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), 1);
        );
    }
    cu!(cuMemsetD8_v2(second, 7, 4 * g));
    assert_eq!(read::<u8>(CUdeviceptr(third.0 - 8), 16), [7; 16]);
    // What is taken is wished in vain.
    let mut elsewhere = CUdeviceptr(0);
    cu!(cuMemAddressReserve(&mut elsewhere, g, 0, third, 0));
    assert!(elsewhere.0 >= third.0 + 2 * g as u64 || elsewhere.0 + g as u64 <= second.0);
    // And nobody wishes what is not aligned.
    let beside = first.0.next_multiple_of(1 << 30) + g as u64;
    for (wish, alignment) in [(first.0 + 1, 0), (first.0 + 4096, 0), (first.0 + 4096, g), (beside, 1 << 30)] {
        let wish = CUdeviceptr(wish);
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&mut elsewhere, g, alignment, wish, 0));
    }
    // Both are cleared at once, and given back one by one.
    cu!(cuMemUnmap(second, 4 * g); cuMemUnmap(second, 2 * g));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&mut 0, third.0 as *mut c_void));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(second, 4 * g));
    cu!(
        cuMemAddressFree(second, 2 * g);
        cuMemAddressFree(third, 2 * g);
        cuMemAddressFree(elsewhere, g);
    );
}

pub fn access_is_given_and_told() {
    new_context();
    let (p, g) = mapped_pair();
    let (mut flags, place) = (9, allocation_prop().location);
    cu!(cuMemGetAccess(&mut flags, &place, p));
    assert_eq!(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0.into());
    let read_only = CUmemAccessDesc { location: place, flags: CU_MEM_ACCESS_FLAGS_PROT_READ.0 };
    cu!(cuMemSetAccess(p, g, &read_only, 1); cuMemGetAccess(&mut flags, &place, p));
    assert_eq!(flags, CU_MEM_ACCESS_FLAGS_PROT_READ.0.into());
    cu!(cuMemGetAccess(&mut flags, &place, CUdeviceptr(p.0 + g as u64)));
    assert_eq!(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0.into());
    let wrong = CUmemAccessDesc { flags: 77, ..read_only };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, g, &wrong, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, g, &read_only, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 3 * g, &read_only, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, g / 2, &read_only, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&mut flags, &place, CUdeviceptr(0x1234)));
    if ours_only("NVIDIA's driver may follow null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, g, null(), 1));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(null_mut(), &place, p));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&mut flags, null(), p));
    }
}

pub fn memory_is_named_by_handles() {
    new_context();
    let (p, _) = mapped_pair();
    let (mut handle, mut prop) = (0, allocation_prop());
    cu!(cuMemRetainAllocationHandle(&mut handle, p.0 as *mut c_void));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    cu!(cuMemGetAllocationPropertiesFromHandle(&mut prop, handle));
    assert_eq!(prop.r#type, CU_MEM_ALLOCATION_TYPE_PINNED);
    assert_eq!(prop.location, CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 });
    assert_eq!(prop.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    cu!(cuMemRelease(handle));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&mut handle, 0x1234 as *mut c_void));
    if ours_only("NVIDIA's driver may follow a handle that is none") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemRelease(0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(&mut prop, 0x1234));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(null_mut(), handle));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(null_mut(), p.0 as *mut c_void));
    }
}

pub fn memory_is_exported_and_imported() {
    new_context();
    let (p, g) = mapped_pair();
    let kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let (mut handle, mut descriptor, mut imported, mut again) = (0, -1i32, 0, CUdeviceptr(0));
    cu!(
        cuMemsetD8_v2(p, 5, 64);
        cuMemRetainAllocationHandle(&mut handle, p.0 as *mut c_void);
        cuMemExportToShareableHandle((&raw mut descriptor).cast(), handle, kind, 0);
        cuMemImportFromShareableHandle(&mut imported, descriptor as usize as *mut c_void, kind);
        cuMemAddressReserve(&mut again, g, 0, CUdeviceptr(0), 0);
        cuMemMap(again, g, 0, imported, 0);
    );
    let access =
        CUmemAccessDesc { location: allocation_prop().location, flags: CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0 };
    cu!(cuMemSetAccess(again, g, &access, 1));
    assert_eq!(read::<u8>(again, 64), [5; 64]);
    cu!(cuMemsetD8_v2(again, 6, 64));
    assert_eq!(read::<u8>(p, 64), [6; 64], "the same memory");
    let place = (&raw mut descriptor).cast::<c_void>();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(place, handle, kind, 1));
    let fabric = CU_MEM_HANDLE_TYPE_FABRIC;
    for other in [CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_WIN32, fabric] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(place, handle, other, 0));
    }
    let descriptor_of = descriptor as usize as *mut c_void;
    let none = CU_MEM_HANDLE_TYPE_NONE;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&mut 0, descriptor_of, none));
    fails!(
        CUDA_ERROR_NOT_SUPPORTED,
        cuMemImportFromShareableHandle(&mut 0, descriptor_of, CU_MEM_HANDLE_TYPE_WIN32)
    );
    let mut of_fabric = [0u8; 64];
    let of_fabric = of_fabric.as_mut_ptr().cast::<c_void>();
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemImportFromShareableHandle(&mut 0, of_fabric, fabric));
    // Who made memory hands it on.
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(place, imported, kind, 0));
    // What was imported does not tell how.
    let mut told = allocation_prop();
    cu!(cuMemGetAllocationPropertiesFromHandle(&mut told, handle));
    assert_eq!(told.requestedHandleTypes, kind);
    cu!(cuMemGetAllocationPropertiesFromHandle(&mut told, imported));
    assert_eq!(told.requestedHandleTypes, none);
    // Memory that was not made to be shared is not.
    let (mut alone, prop) =
        (0, CUmemAllocationProp { requestedHandleTypes: CU_MEM_HANDLE_TYPE_NONE, ..allocation_prop() });
    cu!(cuMemCreate(&mut alone, g, &prop, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(place, alone, kind, 0));
    if ours_only("NVIDIA's driver may follow null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(null_mut(), handle, kind, 0));
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuMemImportFromShareableHandle(null_mut(), descriptor as usize as *mut c_void, kind)
        );
    }
    fails!(CUDA_ERROR_UNKNOWN, cuMemImportFromShareableHandle(&mut imported, 99999 as *mut c_void, kind));
    // What a descriptor leads to may be anything.
    let file = std::fs::File::open("/proc/self/exe").expect("it runs");
    let file = std::os::fd::AsRawFd::as_raw_fd(&file) as usize as *mut c_void;
    fails!(CUDA_ERROR_UNKNOWN, cuMemImportFromShareableHandle(&mut imported, file, kind));
}

pub fn access_is_given_across_gaps() {
    new_context();
    let (p, g) = mapped_pair();
    let at = |granule: usize| CUdeviceptr(p.0 + (granule * g) as u64);
    let (read_only, mut memory) = (access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READ), 0);
    let prop = allocation_prop();
    cu!(cuMemUnmap(at(1), g); cuMemCreate(&mut memory, g, &prop, 0); cuMemMap(at(2), g, 0, memory, 0));
    cu!(cuMemSetAccess(p, 3 * g, &read_only, 1));
    if ours_only("NVIDIA's driver gives less access where there is a gap") {
        for granule in [0, 2] {
            let mut flags = 9;
            cu!(cuMemGetAccess(&mut flags, &prop.location, at(granule)));
            assert_eq!(flags, 1);
        }
    }
    // It begins and ends with something.
    for (from, granules) in [(0, 2), (1, 1), (1, 2)] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at(from), granules * g, &read_only, 1));
    }
}

pub fn sizes_and_places_are_checked() {
    new_context();
    let (prop, mut g, mut p, mut handle) = (allocation_prop(), 0, CUdeviceptr(0), 0);
    cu!(cuMemGetAllocationGranularity(&mut g, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    assert!(g.is_power_of_two());
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemGetAllocationGranularity(null_mut(), &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemGetAllocationGranularity(&mut g, null(), CU_MEM_ALLOC_GRANULARITY_MINIMUM)
    );
    // All memory has the same, even such as there is not.
    for (r#type, place, id) in [(0, 1, 0), (2, 1, 0), (3, 4, 5), (1, 1, 99)] {
        let location = CUmemLocation { r#type: CUmemLocationType(place), id };
        let other = CUmemAllocationProp { r#type: CUmemAllocationType(r#type), location, ..prop };
        let mut same = 0;
        cu!(cuMemGetAllocationGranularity(&mut same, &other, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
        assert_eq!(same, g);
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&mut p, g, 0, CUdeviceptr(g as u64 + 12345), 0));
    for size in [0, g - 1, g + 1] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&mut p, size, 0, CUdeviceptr(0), 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut handle, size, &prop, 0));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&mut p, g, 3, CUdeviceptr(0), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&mut p, g, 0, CUdeviceptr(0), 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(null_mut(), g, 0, CUdeviceptr(0), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut handle, g, &prop, 1));
    let elsewhere = CUmemAllocationProp { win32HandleMetaData: std::ptr::without_provenance_mut(8), ..prop };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut handle, g, &elsewhere, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(null_mut(), g, &prop, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut handle, g, null(), 0));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&mut handle, 1 << 50, &prop, 0));
    cu!(cuMemAddressReserve(&mut p, 2 * g, 0, CUdeviceptr(0), 0); cuMemCreate(&mut handle, g, &prop, 0));
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, 2 * g, 0, handle, 0));
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, g, g, handle, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, g, 0, handle, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, 0, 0, handle, 0));
    for types in [CU_MEM_HANDLE_TYPE_WIN32, CU_MEM_HANDLE_TYPE_WIN32_KMT] {
        let foreign = CUmemAllocationProp { requestedHandleTypes: types, ..prop };
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut 0, g, &foreign, 0));
    }
    let nowhere = CUmemLocation { id: 99, ..prop.location };
    for types in [CU_MEM_HANDLE_TYPE_WIN32, CUmemAllocationHandleType(9)] {
        let foreign = CUmemAllocationProp { requestedHandleTypes: types, location: nowhere, ..prop };
        fails!(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&mut 0, g, &foreign, 0));
    }
    // Where nothing is mapped, or not all over, there is less to take out.
    cu!(cuMemUnmap(p, g); cuMemMap(p, g, 0, handle, 0); cuMemUnmap(p, 2 * g); cuMemUnmap(p, 2 * g));
    if !ours_only("NVIDIA's codes for the others are not known") {
        return;
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemMap(CUdeviceptr(p.0 + 2 * g as u64), g, 0, handle, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(CUdeviceptr(p.0 + g as u64), 2 * g));
    cu!(cuMemMap(p, g, 0, handle, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, g, 0, handle, 0));
    cu!(cuMemUnmap(p, g); cuMemRelease(handle));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, g));
    cu!(cuMemAddressFree(p, 2 * g));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 2 * g));
}

/// A granule of memory with these properties, mapped, and given access to.
fn mapped(prop: &CUmemAllocationProp, access: &[CUmemAccessDesc]) -> (CUdeviceptr, usize) {
    let (mut g, mut start, mut memory) = (0, CUdeviceptr(0), 0);
    cu!(
        cuMemGetAllocationGranularity(&mut g, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        cuMemAddressReserve(&mut start, g, 0, CUdeviceptr(0), 0);
        cuMemCreate(&mut memory, g, prop, 0);
        cuMemMap(start, g, 0, memory, 0);
        cuMemRelease(memory);
    );
    if !access.is_empty() {
        cu!(cuMemSetAccess(start, g, access.as_ptr(), access.len()));
    }
    (start, g)
}

fn access_of_device(flags: CUmemAccess_flags) -> CUmemAccessDesc {
    CUmemAccessDesc { location: allocation_prop().location, flags: flags.0 }
}

/// What a kernel's store to the beginning of memory comes to.
fn stored(p: CUdeviceptr) -> CUresult {
    assert_eq!(launch(kernel(c"poke"), 1, 1, CUstream::NULL, &mut [arg(&p)]), CUDA_SUCCESS);
    // SAFETY: no pointers.
    unsafe { cuCtxSynchronize() }
}

/// What a kernel's load of 64 numbers comes to.
fn loaded(p: CUdeviceptr) -> CUresult {
    let (sums, arguments) = (alloc(256), &mut [arg(&p), arg(&p), arg(&0_u64), arg(&64_u32)]);
    arguments[2] = arg(&sums);
    assert_eq!(launch(kernel(c"vecadd"), 1, 64, CUstream::NULL, arguments), CUDA_SUCCESS);
    // SAFETY: no pointers.
    unsafe { cuCtxSynchronize() }
}

pub fn kernels_do_not_store_where_they_have_no_access() {
    new_context();
    let (p, _) = mapped(&allocation_prop(), &[]);
    assert_eq!(stored(p), CUDA_ERROR_ILLEGAL_ADDRESS);
}

pub fn kernels_do_not_load_where_they_have_no_access() {
    new_context();
    let (p, _) = mapped(&allocation_prop(), &[]);
    assert_eq!(loaded(p), CUDA_ERROR_ILLEGAL_ADDRESS);
}

pub fn kernels_only_load_where_they_may_read() {
    new_context();
    let (p, _) = mapped(&allocation_prop(), &[access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READ)]);
    assert_eq!(loaded(p), CUDA_SUCCESS);
    assert_eq!(stored(p), CUDA_ERROR_ILLEGAL_ADDRESS);
}

pub fn work_under_way_keeps_the_access_that_it_began_with() {
    new_context();
    let (p, g) = mapped(&allocation_prop(), &[access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)]);
    let filled_as_access_goes = |size: usize, flags, value| {
        for _ in 0..8 {
            cu!(cuMemsetD8Async(p, value, size, CUstream::NULL));
        }
        cu!(
            cuMemSetAccess(p, g, &access_of_device(flags), 1);
            cuCtxSynchronize();
            cuMemSetAccess(p, g, &access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), 1);
        );
        assert_eq!(read::<u8>(CUdeviceptr(p.0 + size as u64 - 8), 8), [value; 8]);
    };
    // To give what there is takes nothing from anybody.
    filled_as_access_goes(64, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 1);
    if ours_only("NVIDIA's driver waits for nothing: the work fails") {
        filled_as_access_goes(g, CU_MEM_ACCESS_FLAGS_PROT_READ, 2);
        filled_as_access_goes(g, CU_MEM_ACCESS_FLAGS_PROT_NONE, 3);
    }
}

pub fn access_that_is_taken_back_is_gone() {
    new_context();
    let (p, g) = mapped(&allocation_prop(), &[access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)]);
    assert_eq!(stored(p), CUDA_SUCCESS);
    cu!(cuMemSetAccess(p, g, &access_of_device(CU_MEM_ACCESS_FLAGS_PROT_NONE), 1));
    assert_eq!(stored(p), CUDA_ERROR_ILLEGAL_ADDRESS);
}

pub fn unmapped_memory_is_gone() {
    new_context();
    let (p, g) = mapped(&allocation_prop(), &[access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)]);
    assert_eq!(stored(p), CUDA_SUCCESS);
    cu!(cuMemUnmap(p, g));
    assert_eq!(stored(p), CUDA_ERROR_ILLEGAL_ADDRESS);
}

pub fn copies_and_sets_have_the_access_that_was_given() {
    new_context();
    let (p, g) = mapped(&allocation_prop(), &[access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)]);
    let (mut bytes, other) = ([7u8; 64], alloc(64));
    let place = bytes.as_mut_ptr().cast::<c_void>();
    let codes = |flags| {
        // What was asked for before may still run.
        cu!(cuCtxSynchronize(); cuMemSetAccess(p, g, &access_of_device(flags), 1));
        // SAFETY: as many bytes as are there on all sides.
        unsafe {
            [
                cuMemcpyDtoH_v2(place, p, 64),
                cuMemcpyDtoD_v2(other, p, 64),
                cuMemcpyHtoD_v2(p, place, 64),
                cuMemcpyDtoD_v2(p, other, 64),
                cuMemsetD8_v2(p, 1, 64),
                cuMemsetD8Async(p, 1, 64, CUstream::NULL),
            ]
        }
    };
    const BAD: CUresult = CUDA_ERROR_INVALID_VALUE;
    assert_eq!(codes(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), [CUDA_SUCCESS; 6]);
    let read_only = [CUDA_SUCCESS, CUDA_SUCCESS, BAD, BAD, BAD, BAD];
    assert_eq!(codes(CU_MEM_ACCESS_FLAGS_PROT_READ), read_only);
    assert_eq!(codes(CU_MEM_ACCESS_FLAGS_PROT_NONE), [BAD; 6]);
    // The context is as it was.
    cu!(cuMemsetD8_v2(other, 3, 64); cuCtxSynchronize());
}

pub fn access_is_kept_for_each_place() {
    new_context();
    let (p, g) = mapped(&allocation_prop(), &[]);
    let (device, host) =
        (allocation_prop().location, CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST, id: 0 });
    let told = |place: CUmemLocation| {
        let mut flags = 9;
        // SAFETY: places for both.
        let code = unsafe { cuMemGetAccess(&mut flags, &place, p) };
        (code, flags)
    };
    assert_eq!([told(device), told(host)], [(CUDA_SUCCESS, 0); 2]);
    cu!(cuMemSetAccess(p, g, &access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), 1));
    assert_eq!(told(device), (CUDA_SUCCESS, 3));
    if ours_only("of whatever place it is asked, NVIDIA's driver tells what the first device may do") {
        assert_eq!(told(host), (CUDA_SUCCESS, 0));
    }
    let nowhere = CUmemLocation { id: 99, ..device };
    assert_eq!(told(nowhere).0, CUDA_ERROR_INVALID_DEVICE);
    // The host has no access to a device's memory.
    for (location, flags, code) in [
        (host, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CUDA_ERROR_NOT_SUPPORTED),
        (host, CU_MEM_ACCESS_FLAGS_PROT_READ, CUDA_ERROR_NOT_SUPPORTED),
        (host, CU_MEM_ACCESS_FLAGS_PROT_NONE, CUDA_SUCCESS),
        (nowhere, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CUDA_ERROR_INVALID_VALUE),
    ] {
        let wanted = CUmemAccessDesc { location, flags: flags.0 };
        // SAFETY: one description.
        assert_eq!(unsafe { cuMemSetAccess(p, g, &wanted, 1) }, code);
    }
}

pub fn memory_of_the_host_is_mapped() {
    new_context();
    if attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0 {
        skip("there is no memory of the host without an address");
    }
    let node = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA, id: 0 };
    let prop = CUmemAllocationProp { location: node, ..allocation_prop() };
    let all = access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    let (p, g) = mapped(&prop, &[all, CUmemAccessDesc { location: node, ..all }]);
    let (mut kind, mut handle, mut told) = (0u32, 0, allocation_prop());
    cu!(
        cuPointerGetAttribute((&raw mut kind).cast(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
        cuMemRetainAllocationHandle(&mut handle, p.0 as *mut c_void);
        cuMemGetAllocationPropertiesFromHandle(&mut told, handle);
        cuMemRelease(handle);
    );
    assert_eq!((kind, told.location), (CU_MEMORYTYPE_HOST.0, node));
    // The host writes, a kernel adds, the host reads.
    let values = p.0 as *mut f32;
    // SAFETY: host memory of a granule, which nothing else uses.
    unsafe { (0..64).for_each(|index| values.add(index).write(index as f32)) };
    let arguments = &mut [arg(&p), arg(&p), arg(&p), arg(&64_u32)];
    assert_eq!(launch(kernel(c"vecadd"), 1, 64, CUstream::NULL, arguments), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    // SAFETY: as above; the kernel is done.
    unsafe { (0..64).for_each(|index| assert_eq!(values.add(index).read(), 2.0 * index as f32)) };
    cu!(cuMemUnmap(p, g); cuMemAddressFree(p, g));
    // Somewhere at the host is at a node, and is not shared.
    let anywhere = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST, id: 5 };
    let alone = CUmemAllocationProp {
        location: anywhere,
        requestedHandleTypes: CU_MEM_HANDLE_TYPE_NONE,
        ..allocation_prop()
    };
    cu!(
        cuMemCreate(&mut handle, g, &alone, 0);
        cuMemGetAllocationPropertiesFromHandle(&mut told, handle);
        cuMemRelease(handle);
    );
    assert_eq!(told.location, node);
    let current = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, id: 0 };
    for wrong in [
        CUmemAllocationProp { location: CUmemLocation { id: 9999, ..node }, ..prop },
        CUmemAllocationProp { location: current, ..prop },
        CUmemAllocationProp { location: anywhere, ..prop },
    ] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut handle, g, &wrong, 0));
    }
}

pub fn a_range_is_handed_out_where_the_device_can() {
    new_context();
    let (p, g) = mapped_pair();
    let (kind, mut descriptor) = (CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, -1i32);
    let place = (&raw mut descriptor).cast::<c_void>();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(place, CUdeviceptr(p.0 + 1), g, kind, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(place, p, g - 1, kind, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(place, p, g, CUmemRangeHandleType(99), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(null_mut(), p, g, kind, 0));
    if attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0 {
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(place, p, g, kind, 0));
    }
}

pub fn multicast_objects_are_where_the_device_has_them() {
    new_context();
    let prop = CUmulticastObjectProp { numDevices: 1, size: 2 << 20, handleTypes: 0, flags: 0 };
    let (mut handle, mut g) = (0, 0);
    if attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) != 0 {
        skip("the device has multicast objects");
    }
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuMulticastCreate(&mut handle, &prop));
    if ours_only("NVIDIA's driver does not look at null where it has none") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMulticastCreate(null_mut(), &prop));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMulticastCreate(&mut handle, null()));
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuMulticastGetGranularity(null_mut(), &prop, CU_MULTICAST_GRANULARITY_MINIMUM)
        );
        fails!(
            CUDA_ERROR_NOT_SUPPORTED,
            cuMulticastGetGranularity(&mut g, &prop, CU_MULTICAST_GRANULARITY_MINIMUM)
        );
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMulticastAddDevice(0, 0));
        fails!(CUDA_ERROR_INVALID_DEVICE, cuMulticastAddDevice(0, 99));
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMulticastBindMem(0, 0, 0, 0, 0, 0));
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMulticastBindAddr(0, 0, CUdeviceptr(0), 0, 0));
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMulticastBindMem_v2(0, 0, 0, 0, 0, 0, 0));
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMulticastBindAddr_v2(0, 0, 0, CUdeviceptr(0), 0, 0));
        fails!(CUDA_ERROR_INVALID_DEVICE, cuMulticastBindMem_v2(0, 99, 0, 0, 0, 0, 0));
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuMulticastUnbind(0, 0, 0, 0));
    }
}
