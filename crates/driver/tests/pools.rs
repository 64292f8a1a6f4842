//! Memory pools.

mod common;
use common::*;

#[test]
fn pools_count_what_is_allocated() {
    let context = new_context();
    let (mut default, mut current) = (CUmemoryPool::NULL, CUmemoryPool::NULL);
    cu!(cuDeviceGetDefaultMemPool(out(&mut default), 0); cuDeviceGetMemPool(out(&mut current), 0));
    assert_eq!(default, current);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(default));
    // SAFETY: numbers and null pointers only.
    let mut props: CUmemPoolProps = unsafe { std::mem::zeroed() };
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    let mut pool = CUmemoryPool::NULL;
    cu!(cuMemPoolCreate(out(&mut pool), by_ref(&props)));
    let used = |pool, attribute| {
        let mut bytes = 99u64;
        cu!(cuMemPoolGetAttribute(pool, attribute, (&raw mut bytes).cast()));
        bytes
    };
    let mut pointer = CUdeviceptr(0);
    cu!(cuMemAllocFromPoolAsync(out(&mut pointer), 5000, pool, CUstream::NULL));
    assert_eq!(used(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000);
    cu!(cuMemFreeAsync(pointer, CUstream::NULL); cuCtxSynchronize());
    assert_eq!(used(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_eq!(used(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 5000);
    let mut threshold = 1u64 << 20;
    cu!(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut threshold).cast()));
    assert_eq!(used(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 1 << 20);
    cu!(cuDeviceSetMemPool(0, pool); cuMemAllocAsync(out(&mut pointer), 100, CUstream::NULL));
    assert_eq!(used(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 100);
    cu!(cuMemFree_v2(pointer); cuMemPoolTrimTo(pool, 0); cuMemPoolDestroy(pool));
    cu!(cuDeviceGetMemPool(out(&mut current), 0));
    assert_eq!(default, current, "back to the default pool");
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(pool, 0));
    cu!(cuCtxDestroy_v2(context));
}
