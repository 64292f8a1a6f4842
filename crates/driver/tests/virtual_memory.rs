//! Virtual memory management.

mod common;
use common::*;

#[test]
fn two_pieces_of_memory_side_by_side() {
    let context = new_context();
    // SAFETY: numbers and null pointers only.
    let mut prop: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    prop.r#type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    let mut g = 0;
    cu!(cuMemGetAllocationGranularity(out(&mut g), by_ref(&prop), CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    let (mut start, mut first, mut second) = (CUdeviceptr(0), 0, 0);
    cu!(cuMemAddressReserve(out(&mut start), 2 * g, 0, CUdeviceptr(0), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(out(&mut first), g - 1, by_ref(&prop), 0));
    cu!(cuMemCreate(out(&mut first), g, by_ref(&prop), 0); cuMemCreate(out(&mut second), g, by_ref(&prop), 0));
    cu!(cuMemMap(start, g, 0, first, 0); cuMemMap(CUdeviceptr(start.0 + g as u64), g, 0, second, 0));
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(start, g, g, first, 0));
    let mut same = 0;
    cu!(cuMemRetainAllocationHandle(out(&mut same), start.0 as *mut c_void));
    assert_eq!(same, first, "a memory has one handle, to be released as often as it was had");
    cu!(cuMemRelease(first); cuMemRelease(first); cuMemRelease(second));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemRelease(first));
    let flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0;
    let mut access = [CUmemAccessDesc { location: prop.location, flags }];
    cu!(cuMemSetAccess(start, 2 * g, array(&mut access), 1));
    // Across the border between the two.
    let middle = CUdeviceptr(start.0 + g as u64 - 16);
    cu!(cuMemsetD32_v2(middle, 0x0102_0304, 8));
    assert_eq!(read::<u32>(middle, 8), [0x0102_0304; 8]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(start, 0, 2 * g + 1));
    let mut again = 0;
    cu!(cuMemRetainAllocationHandle(out(&mut again), middle.0 as *mut c_void); cuMemRelease(again));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(start, 2 * g));
    cu!(cuMemUnmap(start, 2 * g); cuMemAddressFree(start, 2 * g); cuCtxDestroy_v2(context));
}
