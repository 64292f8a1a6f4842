//! Memory management, unified addressing, and access to peers.

use std::mem::{MaybeUninit, zeroed};

use super::common::*;

const UP: cudaMemcpyKind = cudaMemcpyHostToDevice;
const DOWN: cudaMemcpyKind = cudaMemcpyDeviceToHost;
const ACROSS: cudaMemcpyKind = cudaMemcpyDeviceToDevice;
const ANY: cudaMemcpyKind = cudaMemcpyDefault;

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 7 + 1) as u8).collect()
}

fn source(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

fn place(bytes: &mut [u8]) -> *mut c_void {
    bytes.as_mut_ptr().cast()
}

/// Programs look at the address instead of the code.
pub fn what_cannot_be_allocated_is_null() {
    const NO_ROOM: cudaError_t = cudaErrorMemoryAllocation;
    let huge = 1 << 50;
    let mut pointer: *mut c_void;
    macro_rules! leaves_null {
        ($code:expr, $($call:tt)*) => {
            pointer = garbage();
            fails!($code, $($call)*);
            assert!(pointer.is_null(), stringify!($($call)*));
        };
    }
    leaves_null!(NO_ROOM, cudaMalloc(&mut pointer, huge));
    leaves_null!(NO_ROOM, cudaMallocHost(&mut pointer, huge << 5));
    leaves_null!(cudaErrorInvalidValue, cudaHostAlloc(&mut pointer, 64, 99));
    leaves_null!(NO_ROOM, cudaMallocManaged(&mut pointer, huge << 5, cudaMemAttachGlobal));
    leaves_null!(NO_ROOM, cudaMallocAsync(&mut pointer, huge, DEFAULT));
    let mut pitch = 0;
    leaves_null!(NO_ROOM, cudaMallocPitch(&mut pointer, &mut pitch, 1 << 30, 1 << 20));
    leaves_null!(cudaErrorInvalidValue, cudaHostGetDevicePointer(&mut pointer, (&raw mut pitch).cast(), 0));
    let format = cudaChannelFormatDesc { x: 32, y: 0, z: 0, w: 0, f: cudaChannelFormatKindFloat };
    let mut array = cudaArray_t(0x77);
    fails!(cudaErrorInvalidValue, cudaMallocArray(&mut array, &format, 1 << 30, 1, 0));
    assert_eq!(array.0, 0);
    let extent = cudaExtent { width: 1 << 30, height: 1, depth: 0 };
    let mut levels = cudaMipmappedArray_t(0x77);
    fails!(cudaErrorInvalidValue, cudaMallocMipmappedArray(&mut levels, &format, extent, 3, 0));
    assert_eq!(levels.0, 0);
}

pub fn allocations_and_what_is_none() {
    let mut pointer = garbage();
    cuda!(cudaMalloc(&mut pointer, 0));
    assert!(pointer.is_null());
    fails!(cudaErrorMemoryAllocation, cudaMalloc(&mut pointer, 1 << 50));
    fails!(cudaErrorMemoryAllocation, cudaMalloc(&mut pointer, usize::MAX));
    fails!(cudaErrorInvalidValue, cudaMalloc(null_mut(), 64));
    cuda!(cudaMalloc(&mut pointer, 64); cudaFree(pointer));
    fails!(cudaErrorInvalidValue, cudaFree(pointer));
    fails!(cudaErrorInvalidValue, cudaFree(garbage()));
    fails!(cudaErrorInvalidValue, cudaFree((&raw mut pointer).cast()));
    cuda!(cudaMallocHost(&mut pointer, 0));
    assert!(pointer.is_null());
    fails!(cudaErrorInvalidValue, cudaFreeHost(garbage()));
    fails!(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(garbage()));
    cuda!(cudaFreeHost(null_mut()); cudaFree(null_mut()));
    let mut pitch = 0;
    cuda!(cudaMallocPitch(&mut pointer, &mut pitch, 100, 4));
    assert!(pitch >= 100 && pitch.is_multiple_of(attribute(cudaDevAttrTexturePitchAlignment) as usize));
    fails!(cudaErrorMemoryAllocation, cudaMallocPitch(&mut pointer, &mut pitch, 1 << 30, 1 << 30));
    // SAFETY: numbers and a pointer, for which zero is a value.
    let mut boxed: cudaPitchedPtr = unsafe { zeroed() };
    let extent = cudaExtent { width: 100, height: 4, depth: usize::MAX };
    fails!(cudaErrorMemoryAllocation, cudaMalloc3D(&mut boxed, extent));
}

pub fn every_copy_of_bytes_copies() {
    let data = bytes(256);
    let (first, second) = (malloc(256), malloc(256));
    let mut back = vec![0u8; 256];
    let mut check = |what: &str, up: &dyn Fn(*const c_void), down: &dyn Fn(*mut c_void)| {
        cuda!(cudaMemset(first, 0, 256); cudaMemset(second, 0, 256));
        back.fill(0);
        up(source(&data));
        down(place(&mut back));
        assert_eq!(back, data, "{what}");
    };
    check(
        "on the default stream",
        &|from| cuda!(cudaMemcpy(first, from, 256, UP); cudaMemcpy(second, first, 256, ACROSS)),
        &|to| cuda!(cudaMemcpy(to, second, 256, DOWN)),
    );
    check(
        "on the thread's default stream",
        &|from| cuda!(cudaMemcpy_ptds(first, from, 256, UP); cudaMemcpy_ptds(second, first, 256, ACROSS)),
        &|to| cuda!(cudaMemcpy_ptds(to, second, 256, DOWN)),
    );
    check(
        "whatever the direction",
        &|from| cuda!(cudaMemcpy(first, from, 256, ANY); cudaMemcpy_ptds(second, first, 256, ANY)),
        &|to| cuda!(cudaMemcpy(to, second, 256, ANY)),
    );
    let stream = stream();
    check(
        "in order",
        &|from| cuda!(cudaMemcpyAsync(first, from, 256, UP, stream); cudaMemcpyAsync(second, first, 256, ACROSS, stream)),
        &|to| cuda!(cudaMemcpyAsync(to, second, 256, DOWN, stream); cudaStreamSynchronize(stream)),
    );
    check(
        "in order of the thread's default stream",
        &|from| cuda!(cudaMemcpyAsync_ptsz(first, from, 256, ANY, DEFAULT); cudaMemcpyAsync_ptsz(second, first, 256, ACROSS, DEFAULT)),
        &|to| cuda!(cudaMemcpyAsync_ptsz(to, second, 256, DOWN, DEFAULT); cudaStreamSynchronize_ptsz(DEFAULT)),
    );
    check(
        "from a device to itself",
        &|from| cuda!(cudaMemcpy(first, from, 256, UP); cudaMemcpyPeer(second, 0, first, 0, 256)),
        &|to| cuda!(cudaMemcpyPeerAsync(first, 0, second, 0, 256, stream); cudaMemcpyAsync(to, first, 256, DOWN, stream); cudaStreamSynchronize(stream)),
    );
}

pub fn directions_that_do_not_fit_are_refused() {
    let (device, mut host) = (malloc(64), [0u8; 64]);
    let pointer = place(&mut host);
    fails!(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, pointer, 64, cudaMemcpyKind(99)));
    fails!(cudaErrorInvalidValue, cudaMemcpy(device, pointer, 64, DOWN));
    fails!(cudaErrorInvalidValue, cudaMemcpy(pointer, device, 64, UP));
    fails!(cudaErrorInvalidValue, cudaMemcpy(device, pointer, 64, ACROSS));
    cuda!(cudaMemcpy(device, pointer, 64, cudaMemcpyHostToHost));
    fails!(cudaErrorInvalidValue, cudaMemcpy(device, null(), 64, UP));
    fails!(cudaErrorInvalidValue, cudaMemcpy(null_mut(), pointer, 64, UP));
    cuda!(cudaMemcpy(null_mut(), null(), 0, UP));
    fails!(cudaErrorInvalidValue, cudaMemcpy(device, pointer, 64 + (4 << 20), UP));
    fails!(cudaErrorInvalidDevice, cudaMemcpyPeer(device, 99, device, 0, 64));
    fails!(cudaErrorInvalidDevice, cudaMemcpyPeerAsync(device, 0, device, -1, 64, DEFAULT));
}

pub fn every_copy_of_rows_copies() {
    let data = bytes(64 * 4);
    // Four rows of 48 bytes, 64 apart on the host and 128 apart on the device.
    let expected: Vec<u8> = data.chunks(64).flat_map(|row| [&row[..48], &[0u8; 16]].concat()).collect();
    let (device, stream) = (malloc(128 * 4), stream());
    let mut back = vec![0u8; 256];
    let mut check = |copy: &dyn Fn(*const c_void, *mut c_void)| {
        cuda!(cudaMemset(device, 0, 512); cudaDeviceSynchronize());
        back.fill(0);
        copy(source(&data), place(&mut back));
        assert_eq!(back, expected);
    };
    check(
        &|from, to| cuda!(cudaMemcpy2D(device, 128, from, 64, 48, 4, UP); cudaMemcpy2D(to, 64, device, 128, 48, 4, DOWN)),
    );
    check(
        &|from, to| cuda!(cudaMemcpy2D_ptds(device, 128, from, 64, 48, 4, UP); cudaMemcpy2D_ptds(to, 64, device, 128, 48, 4, ANY)),
    );
    check(&|from, to| {
        cuda!(cudaMemcpy2DAsync(device, 128, from, 64, 48, 4, UP, stream));
        cuda!(cudaMemcpy2DAsync(to, 64, device, 128, 48, 4, DOWN, stream); cudaStreamSynchronize(stream));
    });
    check(&|from, to| {
        cuda!(cudaMemcpy2DAsync_ptsz(device, 128, from, 64, 48, 4, UP, DEFAULT));
        cuda!(cudaMemcpy2DAsync_ptsz(to, 64, device, 128, 48, 4, DOWN, DEFAULT); cudaStreamSynchronize_ptsz(DEFAULT));
    });
    let from = source(&data);
    fails!(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 40, from, 64, 48, 4, UP));
    fails!(cudaErrorInvalidPitchValue, cudaMemcpy2DAsync(device, 128, from, 40, 48, 4, UP, stream));
    fails!(cudaErrorInvalidValue, cudaMemcpy2D(device, 128, from, 64, 48, 5, UP));
    fails!(cudaErrorInvalidMemcpyDirection, cudaMemcpy2D(device, 128, from, 64, 48, 4, cudaMemcpyKind(9)));
}

/// A copy of two slices of two rows of eight bytes: packed on the host, rows 16 and slices 64 bytes apart on the device.
fn copy_of_a_box(device: *mut c_void, host: *mut c_void, up: bool) -> cudaMemcpy3DParms {
    let on_device = cudaPitchedPtr { ptr: device, pitch: 16, xsize: 16, ysize: 4 };
    let on_host = cudaPitchedPtr { ptr: host, pitch: 8, xsize: 8, ysize: 2 };
    let start = cudaPos { x: 0, y: 0, z: 0 };
    let (source, destination, kind) = if up { (on_host, on_device, UP) } else { (on_device, on_host, DOWN) };
    cudaMemcpy3DParms {
        srcArray: cudaArray_t::NULL,
        srcPos: start,
        srcPtr: source,
        dstArray: cudaArray_t::NULL,
        dstPos: start,
        dstPtr: destination,
        extent: cudaExtent { width: 8, height: 2, depth: 2 },
        kind,
    }
}

pub fn every_copy_of_boxes_copies() {
    let mut data = bytes(32);
    let (device, stream) = (malloc(128), stream());
    let from = place(&mut data);
    let mut back = vec![0u8; 32];
    let to = place(&mut back);
    let (up, down) = (copy_of_a_box(device, from, true), copy_of_a_box(device, to, false));
    let begin = || cuda!(cudaMemset(device, 0, 128); cudaMemset(device, 0, 128); cudaDeviceSynchronize());
    let check = |what: &str| {
        // SAFETY: the buffer of the test, which no copy writes to now.
        let back = unsafe { std::slice::from_raw_parts(to.cast::<u8>(), 32) };
        assert_eq!(back, bytes(32), "{what}");
        // SAFETY: as above.
        unsafe { to.cast::<u8>().write_bytes(0, 32) };
        let rows: Vec<u8> = read(device, 128);
        assert_eq!(rows[64..72], bytes(32)[16..24], "{what}: the second slice");
        assert!(rows[32..64].iter().all(|&byte| byte == 0), "{what}: between slices");
    };
    begin();
    cuda!(cudaMemcpy3D(&up); cudaMemcpy3D(&down));
    check("on the default stream");
    begin();
    cuda!(cudaMemcpy3D_ptds(&up); cudaMemcpy3D_ptds(&down));
    check("on the thread's default stream");
    begin();
    cuda!(cudaMemcpy3DAsync(&up, stream); cudaMemcpy3DAsync(&down, stream); cudaStreamSynchronize(stream));
    check("in order");
    begin();
    cuda!(cudaMemcpy3DAsync_ptsz(&up, DEFAULT); cudaMemcpy3DAsync_ptsz(&down, DEFAULT); cudaStreamSynchronize_ptsz(DEFAULT));
    check("in order of the thread's default stream");
    fails!(cudaErrorInvalidValue, cudaMemcpy3D(null()));
    // One end is nowhere; and a slice has no more rows than it says, even if it is the only one.
    let nothing = cudaPitchedPtr { ptr: null_mut(), pitch: 0, xsize: 0, ysize: 0 };
    fails!(cudaErrorInvalidValue, cudaMemcpy3D(&cudaMemcpy3DParms { dstPtr: nothing, ..up }));
    let (position, single) = (cudaPos { x: 0, y: 0, z: 0 }, cudaExtent { width: 1, height: 2, depth: 1 });
    let mut short = cudaMemcpy3DParms { srcPos: position, dstPos: position, extent: single, ..up };
    cuda!(cudaMemcpy3D(&short));
    short.srcPtr.ysize = 1;
    fails!(cudaErrorInvalidValue, cudaMemcpy3D(&short));
    fails!(cudaErrorInvalidValue, cudaMemcpy3DAsync(&short, stream));
    fails!(cudaErrorInvalidValue, cudaMemcpy3DAsync(null(), stream));
}

pub fn boxes_between_devices() {
    let (first, second, stream) = (malloc_with(&bytes(128)), malloc(128), stream());
    let boxed = |ptr| cudaPitchedPtr { ptr, pitch: 16, xsize: 16, ysize: 4 };
    let start = cudaPos { x: 0, y: 0, z: 0 };
    let copy = cudaMemcpy3DPeerParms {
        srcArray: cudaArray_t::NULL,
        srcPos: start,
        srcPtr: boxed(first),
        srcDevice: 0,
        dstArray: cudaArray_t::NULL,
        dstPos: start,
        dstPtr: boxed(second),
        dstDevice: 0,
        extent: cudaExtent { width: 16, height: 4, depth: 2 },
    };
    let check = || {
        cuda!(cudaDeviceSynchronize());
        assert_eq!(read::<u8>(second, 128), bytes(128));
        cuda!(cudaMemset(second, 0, 128); cudaDeviceSynchronize());
    };
    cuda!(cudaMemcpy3DPeer(&copy));
    check();
    cuda!(cudaMemcpy3DPeer_ptds(&copy));
    check();
    cuda!(cudaMemcpy3DPeerAsync(&copy, stream));
    check();
    cuda!(cudaMemcpy3DPeerAsync_ptsz(&copy, DEFAULT));
    check();
    fails!(cudaErrorInvalidValue, cudaMemcpy3DPeer(null()));
    let elsewhere = cudaMemcpy3DPeerParms { dstDevice: 99, ..copy };
    fails!(cudaErrorInvalidDevice, cudaMemcpy3DPeer(&elsewhere));
}

pub fn every_fill_fills() {
    let (device, stream) = (malloc(256), stream());
    let boxed = cudaPitchedPtr { ptr: device, pitch: 16, xsize: 16, ysize: 4 };
    let extent = cudaExtent { width: 8, height: 2, depth: 2 };
    let clear = || cuda!(cudaMemset(device, 0, 256); cudaDeviceSynchronize());
    let filled = |value: u8| {
        cuda!(cudaDeviceSynchronize());
        read::<u8>(device, 256).iter().filter(|&&byte| byte == value).count()
    };
    let check = |fill: &dyn Fn(), count: usize| {
        clear();
        fill();
        assert_eq!(filled(5), count);
    };
    check(&|| cuda!(cudaMemset(device, 0x105, 100)), 100);
    check(&|| cuda!(cudaMemset_ptds(device, 5, 100)), 100);
    check(&|| cuda!(cudaMemsetAsync(device, 5, 100, stream)), 100);
    check(&|| cuda!(cudaMemsetAsync_ptsz(device, 5, 100, DEFAULT)), 100);
    check(&|| cuda!(cudaMemset2D(device, 64, 5, 10, 3)), 30);
    check(&|| cuda!(cudaMemset2D_ptds(device, 64, 5, 10, 3)), 30);
    check(&|| cuda!(cudaMemset2DAsync(device, 64, 5, 10, 3, stream)), 30);
    check(&|| cuda!(cudaMemset2DAsync_ptsz(device, 64, 5, 10, 3, DEFAULT)), 30);
    check(&|| cuda!(cudaMemset3D(boxed, 5, extent)), 32);
    check(&|| cuda!(cudaMemset3D_ptds(boxed, 5, extent)), 32);
    check(&|| cuda!(cudaMemset3DAsync(boxed, 5, extent, stream)), 32);
    check(&|| cuda!(cudaMemset3DAsync_ptsz(boxed, 5, extent, DEFAULT)), 32);
    fails!(cudaErrorInvalidValue, cudaMemset(null_mut(), 0, 64));
    fails!(cudaErrorInvalidValue, cudaMemset(device, 0, 257 + (4 << 20)));
    fails!(cudaErrorInvalidValue, cudaMemset2DAsync(device, 64, 0, 10, 1 << 20, stream));
    fails!(cudaErrorInvalidValue, cudaMemset3DAsync(boxed, 5, cudaExtent { height: 5, ..extent }, stream));
    // A slice has no more rows than it says, even if it is the only one, unless nothing is to be filled.
    let row = cudaExtent { width: 8, height: 1, depth: 1 };
    for (ysize, height, code) in
        [(4, 5, cudaErrorInvalidValue), (0, 1, cudaErrorInvalidValue), (0, 0, cudaSuccess)]
    {
        let boxed = cudaPitchedPtr { ysize, ..boxed };
        fails!(code, cudaMemset3D(boxed, 5, cudaExtent { height, ..row }));
        fails!(code, cudaMemset3DAsync(boxed, 5, cudaExtent { height, ..row }, stream));
    }
}

pub fn pointers_tell_what_they_lead_to() {
    let attributes = |pointer: *const c_void| {
        let mut attributes = MaybeUninit::uninit();
        cuda!(cudaPointerGetAttributes(attributes.as_mut_ptr(), pointer));
        // SAFETY: the call wrote them.
        let attributes: cudaPointerAttributes = unsafe { attributes.assume_init() };
        (attributes.r#type, attributes.device, attributes.devicePointer, attributes.hostPointer)
    };
    let (device, mut pinned, mut managed, mut plain) = (malloc(64), null_mut(), null_mut(), 0u8);
    cuda!(cudaMallocHost(&mut pinned, 64); cudaMallocManaged(&mut managed, 64, cudaMemAttachGlobal));
    let inside = device.wrapping_byte_add(1);
    assert_eq!(attributes(inside), (cudaMemoryTypeDevice, 0, inside, null_mut()));
    assert_eq!(attributes(pinned), (cudaMemoryTypeHost, 0, pinned, pinned));
    assert_eq!(attributes(managed), (cudaMemoryTypeManaged, 0, managed, managed));
    let plain: *mut c_void = (&raw mut plain).cast();
    assert_eq!(attributes(plain), (cudaMemoryTypeUnregistered, cudaInvalidDeviceId, null_mut(), plain));
    assert_eq!(attributes(null()).0, cudaMemoryTypeUnregistered);
    fails!(cudaErrorInvalidValue, cudaPointerGetAttributes(null_mut(), device));
}

pub fn pinned_and_registered_memory() {
    let (mut pinned, mut device, mut flags) = (null_mut(), null_mut(), 0);
    cuda!(cudaHostAlloc(&mut pinned, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
    cuda!(cudaHostGetFlags(&mut flags, pinned); cudaHostGetDevicePointer(&mut device, pinned, 0));
    assert_eq!(
        flags & (cudaHostAllocMapped | cudaHostAllocPortable),
        cudaHostAllocMapped | cudaHostAllocPortable
    );
    let by = 1u32;
    let poke = kernel(c"poke");
    assert_eq!(launch(poke, 1, 1, DEFAULT, &mut [arg(&device)]), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    // SAFETY: pinned memory, which no kernel uses now.
    assert_eq!(unsafe { pinned.cast::<u32>().read() }, by);
    cuda!(cudaFreeHost(pinned));

    let mut own = vec![0u64; 4096 / 8 * 4];
    let begin = own.as_mut_ptr().cast::<c_void>();
    let aligned = begin.wrapping_byte_add(begin.align_offset(4096));
    cuda!(cudaHostRegister(aligned, 4096, cudaHostRegisterMapped));
    fails!(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(aligned, 4096, 0));
    cuda!(cudaHostGetDevicePointer(&mut device, aligned, 0));
    assert_eq!(launch(poke, 1, 1, DEFAULT, &mut [arg(&device)]), cudaSuccess);
    cuda!(cudaDeviceSynchronize(); cudaHostUnregister(aligned));
    // SAFETY: the test's own memory.
    assert_eq!(unsafe { aligned.cast::<u32>().read() }, 1);
    fails!(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(aligned));
    fails!(cudaErrorInvalidValue, cudaHostRegister(null_mut(), 4096, 0));
    fails!(cudaErrorInvalidValue, cudaHostRegister(aligned, 0, 0));
    fails!(cudaErrorInvalidValue, cudaHostAlloc(&mut pinned, 4096, 99));
}

pub fn managed_memory_is_advised_moved_and_asked_about() {
    let mut managed = null_mut();
    cuda!(cudaMallocManaged(&mut managed, 1 << 16, cudaMemAttachGlobal));
    let on = |r#type, id| cudaMemLocation { r#type, id };
    let (device, host) = (on(cudaMemLocationTypeDevice, 0), on(cudaMemLocationTypeHost, 0));
    cuda!(cudaMemAdvise(managed, 1 << 16, cudaMemAdviseSetReadMostly, device));
    cuda!(cudaMemAdvise(managed, 1 << 16, cudaMemAdviseSetPreferredLocation, device));
    let mut mostly = 0i32;
    let answer: *mut c_void = (&raw mut mostly).cast();
    cuda!(cudaMemRangeGetAttribute(answer, 4, cudaMemRangeAttributeReadMostly, managed, 1 << 16));
    assert_eq!(mostly, 1);
    let (mut preferred, mut again) = (-9i32, 0i32);
    let mut places: [*mut c_void; 2] = [(&raw mut preferred).cast(), (&raw mut again).cast()];
    let mut sizes = [4, 4];
    let mut wanted = [cudaMemRangeAttributePreferredLocation, cudaMemRangeAttributeReadMostly];
    cuda!(cudaMemRangeGetAttributes(
        places.as_mut_ptr(),
        sizes.as_mut_ptr(),
        wanted.as_mut_ptr(),
        2,
        managed,
        1 << 16
    ));
    assert_eq!((preferred, again), (0, 1));
    cuda!(cudaMemPrefetchAsync(managed, 1 << 16, device, 0, DEFAULT));
    cuda!(cudaMemPrefetchAsync_ptsz(managed, 1 << 16, host, 0, DEFAULT); cudaStreamSynchronize_ptsz(DEFAULT));
    cuda!(cudaDeviceSynchronize());
    let nowhere = on(cudaMemLocationTypeDevice, 99);
    fails!(cudaErrorInvalidDevice, cudaMemPrefetchAsync(managed, 1 << 16, nowhere, 0, DEFAULT));
    fails!(cudaErrorInvalidValue, cudaMemAdvise(managed, 1 << 16, cudaMemoryAdvise(99), device));
    fails!(
        cudaErrorInvalidValue,
        cudaMemRangeGetAttribute(answer, 3, cudaMemRangeAttributeReadMostly, managed, 1 << 16)
    );
    fails!(cudaErrorInvalidValue, cudaMallocManaged(&mut managed, 64, 77));
    cuda!(cudaMallocManaged(&mut managed, 0, cudaMemAttachGlobal));
    assert!(managed.is_null());
}

pub fn batches_copy_fetch_and_discard() {
    let (stream, data) = (stream(), bytes(96));
    let (first, second) = (malloc(64), malloc(32));
    let (mut to, mut from) = ([first, second], [source(&data), source(&data[64..])]);
    let (mut sizes, mut index) = ([64, 32], [0]);
    // SAFETY: numbers, for which zero is a value.
    let mut attributes: [cudaMemcpyAttributes; 1] = unsafe { zeroed() };
    attributes[0].srcAccessOrder = driver::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    let (lists, begin) = ((to.as_mut_ptr(), from.as_mut_ptr(), sizes.as_mut_ptr()), index.as_mut_ptr());
    cuda!(cudaMemcpyBatchAsync(lists.0, lists.1, lists.2, 2, attributes.as_mut_ptr(), begin, 1, stream));
    cuda!(cudaStreamSynchronize(stream));
    assert_eq!(read::<u8>(first, 64), &data[..64]);
    assert_eq!(read::<u8>(second, 32), &data[64..]);
    if our_runtime_only(
        "for the variants stream 0 is the thread's own, which may have batches; NVIDIA's refuses it",
    ) {
        cuda!(cudaMemset(first, 0, 64); cudaDeviceSynchronize());
        cuda!(cudaMemcpyBatchAsync_ptsz(
            lists.0,
            lists.1,
            lists.2,
            2,
            attributes.as_mut_ptr(),
            begin,
            1,
            DEFAULT
        ));
        cuda!(cudaStreamSynchronize_ptsz(DEFAULT));
        assert_eq!(read::<u8>(first, 64), &data[..64]);
    }
    let count = |count| {
        // SAFETY: the lists have two entries.
        unsafe {
            cudaMemcpyBatchAsync(
                lists.0,
                lists.1,
                lists.2,
                count,
                attributes.as_ptr().cast_mut(),
                begin,
                1,
                stream,
            )
        }
    };
    assert_eq!(count(0), cudaErrorInvalidValue);

    let mut managed = null_mut();
    cuda!(cudaMallocManaged(&mut managed, 1 << 21, cudaMemAttachGlobal));
    let (mut ranges, mut lengths, mut first_of) = ([managed], [1usize << 21], [0usize]);
    let mut places = [cudaMemLocation { r#type: cudaMemLocationTypeDevice, id: 0 }];
    let (ranges, lengths, first_of) = (ranges.as_mut_ptr(), lengths.as_mut_ptr(), first_of.as_mut_ptr());
    let places = places.as_mut_ptr();
    cuda!(cudaMemPrefetchBatchAsync(ranges, lengths, 1, places, first_of, 1, 0, stream));
    cuda!(cudaMemDiscardBatchAsync(ranges, lengths, 1, 0, stream));
    cuda!(cudaMemDiscardAndPrefetchBatchAsync(ranges, lengths, 1, places, first_of, 1, 0, stream));
    cuda!(cudaStreamSynchronize(stream));
}
