//! The stream-ordered allocator.

use std::mem::zeroed;

use super::common::*;

fn default_pool() -> cudaMemPool_t {
    let mut pool = cudaMemPool_t::NULL;
    cuda!(cudaDeviceGetDefaultMemPool(&mut pool, 0));
    pool
}

fn new_pool() -> cudaMemPool_t {
    // SAFETY: numbers and a pointer, for which zero is a value.
    let mut properties: cudaMemPoolProps = unsafe { zeroed() };
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = cudaMemLocation { r#type: cudaMemLocationTypeDevice, id: 0 };
    let mut pool = cudaMemPool_t::NULL;
    cuda!(cudaMemPoolCreate(&mut pool, &properties));
    pool
}

fn used(pool: cudaMemPool_t) -> u64 {
    let mut bytes = 0u64;
    cuda!(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, (&raw mut bytes).cast()));
    bytes
}

pub fn memory_comes_and_goes_in_order() {
    let stream = stream();
    let mut pointer = null_mut();
    cuda!(cudaMemPoolSetAccess(default_pool(), null(), 0));
    cuda!(cudaMallocAsync(&mut pointer, 1000, stream));
    assert!(used(default_pool()) >= 1000);
    cuda!(cudaMemsetAsync(pointer, 7, 1000, stream));
    let mut values = [0u8; 1000];
    cuda!(cudaMemcpyAsync(values.as_mut_ptr().cast(), pointer, 1000, cudaMemcpyDeviceToHost, stream));
    cuda!(cudaFreeAsync(pointer, stream); cudaStreamSynchronize(stream));
    assert!(values.iter().all(|&value| value == 7));
    assert_eq!(used(default_pool()), 0);
    cuda!(cudaMallocAsync_ptsz(&mut pointer, 64, DEFAULT); cudaFreeAsync_ptsz(pointer, DEFAULT));
    cuda!(cudaStreamSynchronize_ptsz(DEFAULT));
    cuda!(cudaMallocAsync(&mut pointer, 0, stream));
    assert!(pointer.is_null());
    fails!(cudaErrorInvalidValue, cudaMallocAsync(null_mut(), 64, stream));
    fails!(cudaErrorInvalidValue, cudaFreeAsync(garbage(), stream));
    // What was allocated in order may be freed at once, and the reverse.
    cuda!(cudaMallocAsync(&mut pointer, 64, stream); cudaStreamSynchronize(stream); cudaFree(pointer));
    let plain = malloc(64);
    cuda!(cudaFreeAsync(plain, stream); cudaStreamSynchronize(stream));
    fails!(cudaErrorInvalidValue, cudaFree(plain));
}

pub fn pools_of_the_programs_own() {
    let (pool, stream) = (new_pool(), stream());
    let mut pointer = null_mut();
    cuda!(cudaMallocFromPoolAsync(&mut pointer, 4096, pool, stream); cudaStreamSynchronize(stream));
    assert!(used(pool) >= 4096);
    cuda!(cudaFreeAsync(pointer, stream); cudaStreamSynchronize(stream));
    assert_eq!(used(pool), 0);
    cuda!(cudaMallocFromPoolAsync_ptsz(&mut pointer, 64, pool, DEFAULT); cudaFreeAsync_ptsz(pointer, DEFAULT));
    cuda!(cudaStreamSynchronize_ptsz(DEFAULT); cudaMemPoolTrimTo(pool, 0));
    let mut keep = 1u64 << 20;
    let value: *mut c_void = (&raw mut keep).cast();
    cuda!(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, value));
    keep = 0;
    cuda!(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, value));
    assert_eq!(keep, 1 << 20);
    // The device's pool can be another.
    let mut current = cudaMemPool_t::NULL;
    cuda!(cudaDeviceSetMemPool(0, pool); cudaDeviceGetMemPool(&mut current, 0));
    assert_eq!(current, pool);
    cuda!(cudaMallocAsync(&mut pointer, 4096, stream));
    assert!(used(pool) >= 4096);
    cuda!(cudaFreeAsync(pointer, stream); cudaStreamSynchronize(stream));
    cuda!(cudaDeviceSetMemPool(0, default_pool()); cudaMemPoolDestroy(pool));
    fails!(cudaErrorInvalidValue, cudaMemPoolCreate(null_mut(), null()));
    fails!(cudaErrorInvalidValue, cudaMemPoolGetAttribute(default_pool(), cudaMemPoolAttr(99), value));
    fails!(cudaErrorInvalidValue, cudaDeviceGetDefaultMemPool(null_mut(), 0));
    fails!(cudaErrorInvalidDevice, cudaDeviceGetDefaultMemPool(&mut current, 99));
    fails!(cudaErrorInvalidValue, cudaDeviceGetMemPool(&mut current, 99));
    fails!(cudaErrorInvalidValue, cudaDeviceSetMemPool(99, default_pool()));
    if ours_only("NVIDIA's driver crashes on a pool that was destroyed") {
        fails!(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
    }
}

pub fn access_to_a_pool() {
    let pool = new_pool();
    let mut device = cudaMemLocation { r#type: cudaMemLocationTypeDevice, id: 0 };
    let mut flags = cudaMemAccessFlagsProtNone;
    cuda!(cudaMemPoolGetAccess(&mut flags, pool, &mut device));
    assert_eq!(flags, cudaMemAccessFlagsProtReadWrite);
    let access = cudaMemAccessDesc { location: device, flags: cudaMemAccessFlagsProtReadWrite };
    cuda!(cudaMemPoolSetAccess(pool, &access, 1));
    if our_runtime_only("NVIDIA's runtime writes to null") {
        fails!(cudaErrorInvalidValue, cudaMemPoolGetAccess(null_mut(), pool, &mut device));
    }
    fails!(cudaErrorInvalidValue, cudaMemPoolGetAccess(&mut flags, pool, null_mut()));
}

pub fn pools_by_place() {
    let mut device = cudaMemLocation { r#type: cudaMemLocationTypeDevice, id: 0 };
    let (mut pool, kind) = (cudaMemPool_t::NULL, cudaMemAllocationTypePinned);
    cuda!(cudaMemGetDefaultMemPool(&mut pool, &mut device, kind));
    assert_eq!(pool, default_pool());
    let own = new_pool();
    cuda!(cudaMemSetMemPool(&mut device, kind, own); cudaMemGetMemPool(&mut pool, &mut device, kind));
    assert_eq!(pool, own);
    fails!(cudaErrorInvalidValue, cudaMemGetMemPool(null_mut(), &mut device, kind));
    fails!(cudaErrorInvalidValue, cudaMemGetMemPool(&mut pool, null_mut(), kind));
}

/// A thread that has asked for nothing yet takes the memory of a pool over.
pub fn a_pointer_is_imported_without_a_context() {
    // SAFETY: numbers and a pointer, for which zero is a value.
    let mut properties: cudaMemPoolProps = unsafe { zeroed() };
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    properties.location = cudaMemLocation { r#type: cudaMemLocationTypeDevice, id: 0 };
    let (mut own, mut imported, mut pointer) = (cudaMemPool_t::NULL, cudaMemPool_t::NULL, null_mut());
    let (mut descriptor, posix) = (-1i32, cudaMemHandleTypePosixFileDescriptor);
    cuda!(
        cudaMemPoolCreate(&mut own, &properties);
        cudaMallocFromPoolAsync(&mut pointer, 64, own, DEFAULT);
        cudaDeviceSynchronize();
        cudaMemPoolExportToShareableHandle((&raw mut descriptor).cast(), own, posix, 0);
        cudaMemPoolImportFromShareableHandle(&mut imported, descriptor as usize as *mut c_void, posix, 0);
    );
    // SAFETY: numbers.
    let mut data: cudaMemPoolPtrExportData = unsafe { zeroed() };
    cuda!(cudaMemPoolExportPointer(&mut data, pointer));
    let import = move || {
        let mut theirs = null_mut();
        // SAFETY: a place for the pointer, and what was exported.
        unsafe { cudaMemPoolImportPointer(&mut theirs, imported, &mut data) }
    };
    let code = std::thread::spawn(import).join().unwrap();
    assert_ne!(code, cudaErrorDeviceUninitialized);
    assert!(code == cudaSuccess || !is_ours(), "{code:?}");
}
