//! Unified addressing: what programs say about where managed memory should be.

use super::common::*;

const HOST: CUmemLocation = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST, id: 0 };
const DEVICE: CUmemLocation = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
const NOWHERE: CUmemLocation = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_INVALID, id: 0 };

/// Managed memory; where that does not move, its place cannot be talked about.
fn managed(bytes: usize) -> CUdeviceptr {
    new_context();
    if attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0 {
        skip("managed memory is not accessed concurrently");
    }
    let mut pointer = CUdeviceptr(0);
    cu!(cuMemAllocManaged(&mut pointer, bytes, CU_MEM_ATTACH_GLOBAL));
    pointer
}

fn ask(attribute: CUmem_range_attribute, pointer: CUdeviceptr, len: usize) -> i32 {
    let mut value = 12345;
    cu!(cuMemRangeGetAttribute((&raw mut value).cast(), 4, attribute, pointer, len));
    value
}

const SIZE: usize = 4 << 20;
const HALF: usize = SIZE / 2;

pub fn what_was_advised_can_be_asked() {
    let p = managed(SIZE);
    let upper = CUdeviceptr(p.0 + HALF as u64);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, SIZE), 0);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, SIZE), CU_DEVICE_INVALID);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE), CU_DEVICE_INVALID);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, SIZE), CU_DEVICE_INVALID);
    cu!(cuMemAdvise_v2(p, HALF, CU_MEM_ADVISE_SET_READ_MOSTLY, DEVICE));
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, HALF), 1);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, upper, HALF), 0);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, SIZE), 0, "not of all of it");
    cu!(cuMemAdvise(p, SIZE, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, HALF), 0);

    cu!(cuMemAdvise(p, HALF, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    cu!(cuMemAdvise_v2(upper, HALF, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, DEVICE));
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, HALF), CU_DEVICE_CPU);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, upper, HALF), 0);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, SIZE), CU_DEVICE_INVALID, "two places");
    let kind = |pointer| ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, pointer, HALF) as u32;
    assert_eq!(CUmemLocationType(kind(p)), CU_MEM_LOCATION_TYPE_HOST);
    assert_eq!(CUmemLocationType(kind(upper)), CU_MEM_LOCATION_TYPE_DEVICE);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, upper, HALF), 0);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, p, HALF), CU_DEVICE_CPU);
    cu!(cuMemAdvise_v2(p, SIZE, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, DEVICE));
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, upper, HALF), CU_DEVICE_INVALID);
    assert_eq!(CUmemLocationType(kind(upper)), CU_MEM_LOCATION_TYPE_INVALID);

    cu!(cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    let mut users = [99i32; 3];
    let place = users.as_mut_ptr().cast();
    cu!(cuMemRangeGetAttribute(place, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE));
    assert_eq!(users, [0, CU_DEVICE_INVALID, CU_DEVICE_INVALID]);
    cu!(
        cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU);
        cuMemRangeGetAttribute(place, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE);
    );
    assert_eq!(users, [0, CU_DEVICE_CPU, CU_DEVICE_INVALID], "devices first");
    cu!(cuMemAdvise(p, SIZE, CU_MEM_ADVISE_UNSET_ACCESSED_BY, CU_DEVICE_CPU));
    cu!(cuMemAdvise_v2(upper, HALF, CU_MEM_ADVISE_UNSET_ACCESSED_BY, DEVICE));
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE), CU_DEVICE_INVALID);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, HALF), 0);
}

pub fn a_new_allocation_knows_nothing_of_the_old() {
    let p = managed(SIZE);
    cu!(cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0); cuMemFree_v2(p));
    let mut again = CUdeviceptr(0);
    for _ in 0..4 {
        cu!(cuMemAllocManaged(&mut again, SIZE, CU_MEM_ATTACH_GLOBAL));
        assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, again, SIZE), 0);
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(CUdeviceptr(0), SIZE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
}

pub fn several_attributes_at_once() {
    let p = managed(SIZE);
    cu!(cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    cu!(cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    let (mut mostly, mut users) = (9i32, [9i32; 2]);
    let mut places = [(&raw mut mostly).cast::<c_void>(), users.as_mut_ptr().cast()];
    let mut sizes = [4, 8];
    let mut which = [CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY];
    let (data, lens, names) = (places.as_mut_ptr(), sizes.as_mut_ptr(), which.as_mut_ptr());
    cu!(cuMemRangeGetAttributes(data, lens, names, 2, p, SIZE));
    assert_eq!((mostly, users), (1, [0, CU_DEVICE_INVALID]));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, lens, names, 0, p, SIZE));
    sizes[0] = 8;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, sizes.as_mut_ptr(), names, 2, p, SIZE));
    sizes[0] = 4;
    which[1] = CUmem_range_attribute(99);
    let names = which.as_mut_ptr();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, sizes.as_mut_ptr(), names, 2, p, SIZE));
    if ours_only("NVIDIA's driver may follow null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(null_mut(), lens, names, 2, p, SIZE));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, null_mut(), names, 2, p, SIZE));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, lens, null_mut(), 2, p, SIZE));
    }
}

pub fn ranges_and_advice_are_checked() {
    let p = managed(SIZE);
    let mut value = 0i32;
    let place = (&raw mut value).cast::<c_void>();
    let mostly = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
    let device = alloc(SIZE);
    let mostly_read = CU_MEM_ADVISE_SET_READ_MOSTLY;
    for (pointer, len) in [(p, 0), (p, SIZE * 2), (CUdeviceptr(0), 64), (device, SIZE), (p, usize::MAX)] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(pointer, len, mostly_read, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(pointer, len, mostly_read, DEVICE));
        if len == usize::MAX && !ours_only("NVIDIA's driver lets the end of a range overflow") {
            continue;
        }
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(place, 4, mostly, pointer, len));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(pointer, len, 0, CUstream::NULL));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(pointer, len, DEVICE, 0, CUstream::NULL));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(p, SIZE, CUmem_advise(99), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(p, SIZE, CUmem_advise(0), DEVICE));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 99));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, 99));
    // The other function has one code for places that there are not, whatever the advice.
    for advice in [mostly_read, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION]
    {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(p, SIZE, advice, NOWHERE));
    }
    let far = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 99 };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(p, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, far));
    cu!(cuMemAdvise_v2(p, SIZE, mostly_read, far));
    // No machine has so many nodes.
    let no_node = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA, id: 9999 };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(p, SIZE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, no_node));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(p, SIZE, no_node, 0, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(place, 8, mostly, p, SIZE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(place, 0, mostly, p, SIZE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(place, 4, CUmem_range_attribute(0), p, SIZE));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemRangeGetAttribute(place, 3, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE)
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(null_mut(), 4, mostly, p, SIZE));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(p, SIZE, 99, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(p, SIZE, DEVICE, 1, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(p, SIZE, NOWHERE, 0, CUstream::NULL));
}

pub fn every_prefetch_is_remembered() {
    let p = managed(SIZE);
    let (s, last) = (CUstream::NULL, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    cu!(cuMemsetD8_v2(p, 5, SIZE));
    cu!(cuMemPrefetchAsync(p, SIZE, 0, s));
    assert_eq!(ask(last, p, SIZE), 0);
    cu!(cuMemPrefetchAsync_ptsz(p, SIZE, CU_DEVICE_CPU, s));
    assert_eq!(ask(last, p, SIZE), CU_DEVICE_CPU);
    cu!(cuMemPrefetchAsync_v2(p, SIZE, DEVICE, 0, s));
    assert_eq!(ask(last, p, SIZE), 0);
    let kind = ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, p, SIZE) as u32;
    assert_eq!(CUmemLocationType(kind), CU_MEM_LOCATION_TYPE_DEVICE);
    assert_eq!(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, p, SIZE), 0);
    cu!(cuMemPrefetchAsync_v2_ptsz(p, SIZE, HOST, 0, s); cuCtxSynchronize());
    assert_eq!(ask(last, p, SIZE), CU_DEVICE_CPU);
    assert_eq!(read::<u8>(p, SIZE), vec![5; SIZE], "the content stays");
}

pub fn batches_prefetch_and_discard() {
    let p = managed(SIZE);
    let s = stream(CU_STREAM_NON_BLOCKING);
    let upper = CUdeviceptr(p.0 + HALF as u64);
    let (mut ranges, mut sizes) = ([p, upper], [HALF, HALF]);
    let (starts, lens) = (ranges.as_mut_ptr(), sizes.as_mut_ptr());
    let (mut places, mut firsts) = ([DEVICE, HOST], [0, 1]);
    let (to, from) = (places.as_mut_ptr(), firsts.as_mut_ptr());
    let last = |pointer| ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, HALF);
    cu!(
        cuMemsetD8_v2(p, 5, SIZE);
        cuCtxSynchronize();
        cuMemPrefetchBatchAsync(starts, lens, 2, to, from, 2, 0, s);
        cuStreamSynchronize(s);
    );
    assert_eq!((last(p), last(upper)), (0, CU_DEVICE_CPU));
    assert_eq!(read::<u8>(p, SIZE), vec![5; SIZE]);
    cu!(
        cuMemPrefetchBatchAsync_ptsz(starts, lens, 2, to, from, 1, 0, CUstream::NULL);
        cuMemDiscardBatchAsync(starts, lens, 1, 0, s);
        cuMemDiscardBatchAsync_ptsz(starts, lens, 1, 0, CUstream::NULL);
        cuCtxSynchronize();
    );
    assert_eq!((last(p), last(upper)), (0, 0));
    // What was discarded is undefined; what was not stays, and what is written later too.
    assert_eq!(read::<u8>(upper, HALF), vec![5; HALF]);
    cu!(cuMemsetD8Async(p, 6, HALF, s); cuStreamSynchronize(s));
    assert_eq!(read::<u8>(p, HALF), vec![6; HALF]);
    cu!(
        cuMemDiscardAndPrefetchBatchAsync(starts, lens, 2, to, from, 2, 0, s);
        cuMemDiscardAndPrefetchBatchAsync_ptsz(starts, lens, 2, to, from, 2, 0, CUstream::NULL);
        cuCtxSynchronize();
    );
    assert_eq!((last(p), last(upper)), (0, CU_DEVICE_CPU));
    cu!(cuMemsetD8_v2(p, 7, SIZE));
    assert_eq!(read::<u8>(p, SIZE), vec![7; SIZE]);

    let value = CUDA_ERROR_INVALID_VALUE;
    fails!(value, cuMemPrefetchBatchAsync(starts, lens, 2, to, from, 2, 1, s));
    fails!(value, cuMemPrefetchBatchAsync(starts, lens, 2, to, from, 3, 0, s));
    fails!(value, cuMemPrefetchBatchAsync(starts, lens, 2, to, from, 0, 0, s));
    fails!(value, cuMemPrefetchBatchAsync(starts, lens, 0, to, from, 0, 0, s));
    fails!(value, cuMemPrefetchBatchAsync(starts, lens, 2, to, from, 2, 0, CUstream::NULL));
    fails!(value, cuMemDiscardBatchAsync(starts, lens, 0, 0, s));
    fails!(value, cuMemDiscardBatchAsync(starts, lens, 2, 1, s));
    fails!(value, cuMemDiscardBatchAsync(starts, lens, 2, 0, CUstream::NULL));
    fails!(value, cuMemDiscardAndPrefetchBatchAsync(starts, lens, 2, to, from, 2, 1, s));
    let device = alloc(64);
    ranges[1] = device;
    fails!(value, cuMemDiscardBatchAsync(ranges.as_mut_ptr(), lens, 2, 0, s));
    fails!(value, cuMemPrefetchBatchAsync(ranges.as_mut_ptr(), lens, 2, to, from, 2, 0, s));
    if ours_only("NVIDIA's driver may follow null") {
        fails!(value, cuMemPrefetchBatchAsync(null_mut(), lens, 2, to, from, 2, 0, s));
        fails!(value, cuMemPrefetchBatchAsync(starts, null_mut(), 2, to, from, 2, 0, s));
        fails!(value, cuMemPrefetchBatchAsync(starts, lens, 2, null_mut(), from, 2, 0, s));
        fails!(value, cuMemPrefetchBatchAsync(starts, lens, 2, to, null_mut(), 2, 0, s));
        fails!(value, cuMemDiscardBatchAsync(null_mut(), lens, 2, 0, s));
    }
}

pub fn managed_memory_is_attached_as_a_whole() {
    let p = managed(1000);
    let s = stream(CU_STREAM_NON_BLOCKING);
    cu!(
        cuStreamAttachMemAsync(s, p, 0, CU_MEM_ATTACH_SINGLE);
        cuStreamAttachMemAsync(s, p, 1000, CU_MEM_ATTACH_HOST);
        cuStreamAttachMemAsync_ptsz(CUstream::NULL, p, 0, CU_MEM_ATTACH_GLOBAL);
        cuCtxSynchronize();
    );
    if !ours_only("NVIDIA's driver crashes at some of these") {
        return;
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(s, p, 500, CU_MEM_ATTACH_GLOBAL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(s, p, 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(s, p, 0, 77));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(CUstream::NULL, p, 0, CU_MEM_ATTACH_SINGLE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(s, alloc(64), 0, CU_MEM_ATTACH_GLOBAL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(s, CUdeviceptr(0), 0, CU_MEM_ATTACH_GLOBAL));
}
