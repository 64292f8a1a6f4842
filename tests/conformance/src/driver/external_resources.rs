//! External resource interoperability: memory and semaphores by file descriptors.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;

use super::common::*;

const BYTES: u64 = 1 << 16;

/// Without a graphics API only our driver has something to import.
fn can_import() -> bool {
    ours_only("NVIDIA's driver imports what a graphics API has exported, and nothing else")
}

/// Memory of the operating system's.
fn memory(bytes: u64) -> File {
    // SAFETY: a name that ends in NUL; the descriptor is new.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), 0)) };
    file.set_len(bytes).unwrap();
    file
}

/// An event counter.
fn counter() -> File {
    // SAFETY: the descriptor is new.
    unsafe { File::from_raw_fd(libc::eventfd(0, 0)) }
}

fn memory_desc(fd: i32, size: u64) -> CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
        r#type: CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        handle: CUexternalHandle { fd },
        size,
        flags: 0,
        reserved: [0; 16],
    }
}

fn buffer_desc(offset: u64, size: u64) -> CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC { offset, size, flags: 0, reserved: [0; 16] }
}

fn semaphore_desc(fd: i32, r#type: CUexternalSemaphoreHandleType) -> CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    let handle = CUexternalHandle { fd };
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { r#type, handle, flags: 0, reserved: [0; 16] }
}

fn import(file: &File) -> CUexternalMemory {
    let (mut imported, copy) = (CUexternalMemory::NULL, file.try_clone().unwrap());
    cu!(cuImportExternalMemory(&mut imported, &memory_desc(copy.into_raw_fd(), BYTES)));
    imported
}

fn import_semaphore(file: &File, r#type: CUexternalSemaphoreHandleType) -> CUexternalSemaphore {
    let (mut imported, copy) = (CUexternalSemaphore::NULL, file.try_clone().unwrap());
    cu!(cuImportExternalSemaphore(&mut imported, &semaphore_desc(copy.into_raw_fd(), r#type)));
    imported
}

/// A binary semaphore, and the counter behind it.
fn binary() -> (CUexternalSemaphore, File) {
    let file = counter();
    (import_semaphore(&file, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD), file)
}

/// A timeline semaphore, and the memory behind it.
fn timeline() -> (CUexternalSemaphore, File) {
    let file = memory(64);
    (import_semaphore(&file, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD), file)
}

fn signal(value: u64) -> CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
        value,
        nvSciSync: 0,
        key: 0,
        reserved0: [0; 12],
        flags: 0,
        reserved: [0; 16],
    }
}

fn wait(value: u64) -> CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
        value,
        nvSciSync: 0,
        key: 0,
        timeoutMs: 0,
        pad: 0,
        reserved0: [0; 10],
        flags: 0,
        reserved: [0; 16],
    }
}

fn number(file: &File) -> u64 {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0).unwrap();
    u64::from_ne_bytes(bytes)
}

pub fn memory_is_shared_with_whoever_maps_it() {
    new_context();
    if !can_import() {
        return;
    }
    let (file, mut p, mut part) = (memory(BYTES), CUdeviceptr(0), CUdeviceptr(0));
    file.write_all_at(&[7; 16], 4096).unwrap();
    let imported = import(&file);
    cu!(
        cuExternalMemoryGetMappedBuffer(&mut p, imported, &buffer_desc(0, BYTES));
        cuExternalMemoryGetMappedBuffer(&mut part, imported, &buffer_desc(4096 + 8, 64));
    );
    assert_eq!(read::<u8>(CUdeviceptr(p.0 + 4096), 17)[15..], [7, 0]);
    cu!(cuMemsetD8_v2(part, 9, 64));
    assert_eq!(read::<u8>(CUdeviceptr(p.0 + 4096 + 7), 2), [7, 9], "one memory");
    let mut seen = [0; 2];
    file.read_exact_at(&mut seen, 4096 + 8 + 63).unwrap();
    assert_eq!(seen, [9, 0]);
    // A kernel writes there too.
    let word = CUdeviceptr(p.0 + 64);
    assert_eq!(launch(kernel(c"poke"), 1, 1, CUstream::NULL, &mut [arg(&word)]), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u32>(word, 1), [1]);
    let (mut base, mut size, mut kind) = (CUdeviceptr(0), 0, 0_u32);
    cu!(cuMemGetAddressRange_v2(&mut base, &mut size, CUdeviceptr(part.0 + 5)));
    assert_eq!((base, size), (part, 64));
    let memory_type = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    cu!(cuPointerGetAttribute(std::ptr::from_mut(&mut kind).cast(), memory_type, part));
    assert_eq!(kind, CU_MEMORYTYPE_DEVICE.0);
    // Mappings stay when the object goes, and go by themselves.
    cu!(cuDestroyExternalMemory(imported); cuMemFree_v2(part));
    assert_eq!(read::<u8>(CUdeviceptr(p.0 + 4096 + 8), 1), [9]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(part, 9, 64));
    cu!(cuMemFree_v2(p));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
}

pub fn memory_that_was_exported_is_imported() {
    new_context();
    let (mapped, g) = mapped_pair();
    let (mut handle, mut fd, mut imported, mut p) = (0, -1_i32, CUexternalMemory::NULL, CUdeviceptr(0));
    let posix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    cu!(
        cuMemsetD8_v2(mapped, 5, g);
        cuMemRetainAllocationHandle(&mut handle, mapped.0 as *mut c_void);
        cuMemExportToShareableHandle(std::ptr::from_mut(&mut fd).cast(), handle, posix, 0);
        cuImportExternalMemory(&mut imported, &memory_desc(fd, g as u64));
        cuExternalMemoryGetMappedBuffer(&mut p, imported, &buffer_desc(0, g as u64));
    );
    assert_eq!(read::<u8>(p, 2), [5, 5]);
    cu!(cuMemsetD8_v2(p, 6, 1));
    assert_eq!(read::<u8>(mapped, 2), [6, 5]);
}

pub fn an_array_lies_in_external_memory() {
    new_context();
    if !can_import() {
        return;
    }
    let (file, mut mipmapped, mut level) = (memory(BYTES), CUmipmappedArray::NULL, CUarray::NULL);
    let texels: Vec<u8> = (0..64_u32).flat_map(u32::to_ne_bytes).collect();
    file.write_all_at(&texels, 4096).unwrap();
    let imported = import(&file);
    let mut wanted = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
        offset: 4096,
        arrayDesc: CUDA_ARRAY3D_DESCRIPTOR {
            Width: 8,
            Height: 8,
            Depth: 0,
            Format: CU_AD_FORMAT_UNSIGNED_INT32,
            NumChannels: 1,
            Flags: CUDA_ARRAY3D_COLOR_ATTACHMENT,
        },
        numLevels: 2,
        reserved: [0; 16],
    };
    cu!(
        cuExternalMemoryGetMappedMipmappedArray(&mut mipmapped, imported, &wanted);
        cuMipmappedArrayGetLevel(&mut level, mipmapped, 0);
    );
    let mut row = [0_u32; 2];
    // SAFETY: zeros are a description.
    let nothing: CUDA_MEMCPY2D = unsafe { std::mem::zeroed() };
    let down = CUDA_MEMCPY2D {
        srcMemoryType: CU_MEMORYTYPE_ARRAY,
        srcArray: level,
        srcXInBytes: 4,
        srcY: 1,
        dstMemoryType: CU_MEMORYTYPE_HOST,
        dstHost: row.as_mut_ptr().cast(),
        WidthInBytes: 8,
        Height: 1,
        ..nothing
    };
    cu!(cuMemcpy2D_v2(&down));
    assert_eq!(row, [9, 10]);
    let value = [77_u32];
    let up = CUDA_MEMCPY2D {
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: value.as_ptr().cast(),
        dstMemoryType: CU_MEMORYTYPE_ARRAY,
        dstArray: level,
        WidthInBytes: 4,
        Height: 1,
        ..nothing
    };
    cu!(cuMemcpy2D_v2(&up));
    let mut seen = [0; 4];
    file.read_exact_at(&mut seen, 4096).unwrap();
    assert_eq!(u32::from_ne_bytes(seen), 77);
    let invalid = CUDA_ERROR_INVALID_VALUE;
    let mut other = CUmipmappedArray::NULL;
    wanted.numLevels = 0;
    fails!(invalid, cuExternalMemoryGetMappedMipmappedArray(&mut other, imported, &wanted));
    wanted.numLevels = 1;
    wanted.arrayDesc.Width = 1024;
    wanted.arrayDesc.Height = 1024;
    fails!(invalid, cuExternalMemoryGetMappedMipmappedArray(&mut other, imported, &wanted));
    fails!(invalid, cuExternalMemoryGetMappedMipmappedArray(null_mut(), imported, &wanted));
    fails!(invalid, cuExternalMemoryGetMappedMipmappedArray(&mut other, imported, null()));
    cu!(cuMipmappedArrayDestroy(mipmapped));
}

pub fn what_is_no_memory_is_not_imported() {
    new_context();
    let (mut imported, mut p) = (CUexternalMemory::NULL, CUdeviceptr(0));
    let invalid = CUDA_ERROR_INVALID_VALUE;
    let file = memory(BYTES);
    let fd = file.as_raw_fd();
    fails!(invalid, cuImportExternalMemory(null_mut(), &memory_desc(fd, BYTES)));
    fails!(invalid, cuImportExternalMemory(&mut imported, null()));
    let strange =
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC { r#type: CUexternalMemoryHandleType(0), ..memory_desc(fd, BYTES) };
    fails!(invalid, cuImportExternalMemory(&mut imported, &strange));
    let flags = CUDA_EXTERNAL_MEMORY_HANDLE_DESC { flags: 2, ..memory_desc(fd, BYTES) };
    fails!(invalid, cuImportExternalMemory(&mut imported, &flags));
    fails!(invalid, cuImportExternalMemory(&mut imported, &memory_desc(fd, 0)));
    fails!(CUDA_ERROR_UNKNOWN, cuImportExternalMemory(&mut imported, &memory_desc(-1, BYTES)));
    let no_memory = counter();
    let described = memory_desc(no_memory.as_raw_fd(), BYTES);
    fails!(CUDA_ERROR_UNKNOWN, cuImportExternalMemory(&mut imported, &described));
    let code = differs("another system's kind is known", CUDA_ERROR_NOT_SUPPORTED, invalid);
    for (r#type, code) in [
        (CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32, code),
        (CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD, CUDA_ERROR_NOT_SUPPORTED),
    ] {
        let described = CUDA_EXTERNAL_MEMORY_HANDLE_DESC { r#type, ..memory_desc(fd, BYTES) };
        fails!(code, cuImportExternalMemory(&mut imported, &described));
        let empty = CUDA_EXTERNAL_MEMORY_HANDLE_DESC { r#type, ..memory_desc(fd, 0) };
        fails!(invalid, cuImportExternalMemory(&mut imported, &empty));
    }
    if !can_import() {
        return;
    }
    fails!(invalid, cuImportExternalMemory(&mut imported, &memory_desc(fd, BYTES + 1)));
    let imported = import(&file);
    assert_eq!(file.metadata().unwrap().len(), BYTES, "what was refused stays open");
    for (offset, size) in [(0, 0), (0, BYTES + 1), (BYTES, 1), (u64::MAX, 2)] {
        fails!(invalid, cuExternalMemoryGetMappedBuffer(&mut p, imported, &buffer_desc(offset, size)));
    }
    let flags = CUDA_EXTERNAL_MEMORY_BUFFER_DESC { flags: 1, ..buffer_desc(0, 64) };
    fails!(invalid, cuExternalMemoryGetMappedBuffer(&mut p, imported, &flags));
    fails!(invalid, cuExternalMemoryGetMappedBuffer(null_mut(), imported, &buffer_desc(0, 64)));
    fails!(invalid, cuExternalMemoryGetMappedBuffer(&mut p, imported, null()));
    cu!(cuDestroyExternalMemory(imported));
    let stale = CUDA_ERROR_INVALID_HANDLE;
    fails!(stale, cuExternalMemoryGetMappedBuffer(&mut p, imported, &buffer_desc(0, 64)));
    fails!(stale, cuDestroyExternalMemory(imported));
    fails!(invalid, cuDestroyExternalMemory(CUexternalMemory::NULL));
}

pub fn a_binary_semaphore_passes_between_streams_and_others() {
    new_context();
    if !can_import() {
        return;
    }
    let (s, p) = (stream(CU_STREAM_NON_BLOCKING), alloc_with(&[0_u32; 4]));
    let (semaphore, mut theirs) = binary();
    // Signalled when the work before is done, and not before.
    let gate = Gate::new();
    gate.hold(s);
    cu!(cuSignalExternalSemaphoresAsync(&semaphore, &signal(0), 1, s));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    gate.open();
    let mut count = [0; 8];
    theirs.read_exact(&mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 1);
    // What comes after a wait waits, and the signal is gone.
    cu!(cuWaitExternalSemaphoresAsync(&semaphore, &wait(0), 1, s); cuMemsetD32Async(p, 3, 1, s));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    theirs.write_all(&1_u64.to_ne_bytes()).unwrap();
    cu!(cuStreamSynchronize(s));
    assert_eq!(read::<u32>(p, 1), [3]);
    // One stream waits for another.
    let other = stream(CU_STREAM_NON_BLOCKING);
    cu!(
        cuWaitExternalSemaphoresAsync_ptsz(&semaphore, &wait(0), 1, s);
        cuMemcpyDtoDAsync_v2(CUdeviceptr(p.0 + 4), CUdeviceptr(p.0 + 8), 4, s);
        cuMemsetD32Async(CUdeviceptr(p.0 + 8), 8, 1, other);
        cuSignalExternalSemaphoresAsync_ptsz(&semaphore, &signal(0), 1, other);
        cuStreamSynchronize(s);
    );
    assert_eq!(read::<u32>(p, 3), [3, 8, 8]);
    cu!(cuDestroyExternalSemaphore(semaphore));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalSemaphore(semaphore));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuSignalExternalSemaphoresAsync(&semaphore, &signal(0), 1, s));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuWaitExternalSemaphoresAsync(&semaphore, &wait(0), 1, s));
}

pub fn a_timeline_is_waited_for_by_number() {
    new_context();
    if !can_import() {
        return;
    }
    let s = stream(CU_STREAM_NON_BLOCKING);
    let ((first, one), (second, two)) = (timeline(), timeline());
    let both = [first, second];
    cu!(cuSignalExternalSemaphoresAsync(both.as_ptr(), [signal(5), signal(9)].as_ptr(), 2, s); cuStreamSynchronize(s));
    assert_eq!((number(&one), number(&two)), (5, 9));
    // What has been reached is not waited for.
    cu!(cuWaitExternalSemaphoresAsync(both.as_ptr(), [wait(5), wait(3)].as_ptr(), 2, s); cuStreamSynchronize(s));
    cu!(cuWaitExternalSemaphoresAsync(both.as_ptr(), [wait(6), wait(9)].as_ptr(), 2, s));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    one.write_all_at(&6_u64.to_ne_bytes(), 0).unwrap();
    cu!(cuStreamSynchronize(s));
}

pub fn what_is_no_semaphore_is_not_imported() {
    new_context();
    let (mut imported, s) = (CUexternalSemaphore::NULL, stream(CU_STREAM_NON_BLOCKING));
    let invalid = CUDA_ERROR_INVALID_VALUE;
    let (file, opaque) = (counter(), CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD);
    let fd = file.as_raw_fd();
    fails!(invalid, cuImportExternalSemaphore(null_mut(), &semaphore_desc(fd, opaque)));
    fails!(invalid, cuImportExternalSemaphore(&mut imported, null()));
    fails!(invalid, cuSignalExternalSemaphoresAsync(null(), null(), 0, s));
    fails!(invalid, cuWaitExternalSemaphoresAsync(null(), null(), 0, s));
    if !can_import() {
        return;
    }
    let strange = semaphore_desc(fd, CUexternalSemaphoreHandleType(0));
    fails!(invalid, cuImportExternalSemaphore(&mut imported, &strange));
    fails!(CUDA_ERROR_UNKNOWN, cuImportExternalSemaphore(&mut imported, &semaphore_desc(-1, opaque)));
    let timeline = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    fails!(invalid, cuImportExternalSemaphore(&mut imported, &semaphore_desc(-1, timeline)));
    let flags = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { flags: 1, ..semaphore_desc(fd, opaque) };
    fails!(invalid, cuImportExternalSemaphore(&mut imported, &flags));
    let windows = semaphore_desc(fd, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32);
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuImportExternalSemaphore(&mut imported, &windows));
    let no_counter = memory(64);
    let described = semaphore_desc(no_counter.as_raw_fd(), opaque);
    fails!(CUDA_ERROR_UNKNOWN, cuImportExternalSemaphore(&mut imported, &described));
    let described = semaphore_desc(fd, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD);
    fails!(CUDA_ERROR_UNKNOWN, cuImportExternalSemaphore(&mut imported, &described));
    let (semaphore, _) = binary();
    fails!(invalid, cuSignalExternalSemaphoresAsync(null(), &signal(0), 1, s));
    fails!(invalid, cuSignalExternalSemaphoresAsync(&semaphore, null(), 1, s));
    fails!(invalid, cuWaitExternalSemaphoresAsync(null(), &wait(0), 1, s));
    fails!(invalid, cuWaitExternalSemaphoresAsync(&semaphore, null(), 1, s));
    let flags = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS { flags: 1, ..signal(0) };
    fails!(invalid, cuSignalExternalSemaphoresAsync(&semaphore, &flags, 1, s));
}

pub fn semaphores_are_nodes() {
    new_context();
    if !can_import() {
        return;
    }
    let (s, main) = (stream(CU_STREAM_NON_BLOCKING), graph());
    let ((mut first, one), (mut second, two)) = (timeline(), timeline());
    let (mut signals, mut waits) = (CUgraphNode::NULL, CUgraphNode::NULL);
    let signal_params = |semaphore: &mut CUexternalSemaphore,
                         params: &CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS| {
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS { extSemArray: semaphore, paramsArray: params, numExtSems: 1 }
    };
    let wait_params = |semaphore: &mut CUexternalSemaphore, params: &CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS| {
        CUDA_EXT_SEM_WAIT_NODE_PARAMS { extSemArray: semaphore, paramsArray: params, numExtSems: 1 }
    };
    let (set, reached) = (signal(4), wait(2));
    cu!(
        cuGraphAddExternalSemaphoresWaitNode(&mut waits, main, null(), 0, &wait_params(&mut first, &reached));
        cuGraphAddExternalSemaphoresSignalNode(&mut signals, main, &waits, 1, &signal_params(&mut second, &set));
    );
    let mut kinds = [CUgraphNodeType(99); 2];
    cu!(cuGraphNodeGetType(waits, &mut kinds[0]); cuGraphNodeGetType(signals, &mut kinds[1]));
    assert_eq!(kinds, [CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL]);
    let executable = instantiate(main);
    cu!(cuGraphLaunch(executable, s));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    assert_eq!(number(&two), 0);
    one.write_all_at(&2_u64.to_ne_bytes(), 0).unwrap();
    cu!(cuStreamSynchronize(s));
    assert_eq!(number(&two), 4);
    // What nodes do is told, and set, in the graph and in what was made of it.
    let mut told = signal_params(&mut first, &set);
    let mut told_wait = wait_params(&mut second, &reached);
    cu!(
        cuGraphExternalSemaphoresSignalNodeGetParams(signals, &mut told);
        cuGraphExternalSemaphoresWaitNodeGetParams(waits, &mut told_wait);
    );
    // SAFETY: the driver's arrays, of the length that it tells.
    unsafe {
        assert_eq!((told.numExtSems, *told.extSemArray, (*told.paramsArray).value), (1, second, 4));
        let (semaphore, params) = (*told_wait.extSemArray, *told_wait.paramsArray);
        assert_eq!((told_wait.numExtSems, semaphore, params.value), (1, first, 2));
    }
    let (six, one_is_enough) = (signal(6), wait(1));
    cu!(
        cuGraphExecExternalSemaphoresSignalNodeSetParams(executable, signals, &signal_params(&mut second, &six));
        cuGraphExecExternalSemaphoresWaitNodeSetParams(executable, waits, &wait_params(&mut second, &one_is_enough));
        cuGraphLaunch(executable, s);
        cuStreamSynchronize(s);
    );
    assert_eq!(number(&two), 6);
    cu!(
        cuGraphExternalSemaphoresSignalNodeSetParams(signals, &signal_params(&mut first, &six));
        cuGraphExternalSemaphoresWaitNodeSetParams(waits, &wait_params(&mut second, &one_is_enough));
        cuGraphLaunch(instantiate(main), s);
        cuStreamSynchronize(s);
    );
    assert_eq!(number(&one), 6);
    // Two in the place of one do not fit.
    let (mut both, each) = ([first, second], [set; 2]);
    let two_signals = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
        extSemArray: both.as_mut_ptr(),
        paramsArray: each.as_ptr(),
        numExtSems: 2,
    };
    let invalid = CUDA_ERROR_INVALID_VALUE;
    fails!(invalid, cuGraphExecExternalSemaphoresSignalNodeSetParams(executable, signals, &two_signals));
    fails!(invalid, cuGraphAddExternalSemaphoresSignalNode(&mut signals, main, null(), 0, null()));
    fails!(invalid, cuGraphAddExternalSemaphoresWaitNode(&mut waits, main, null(), 0, null()));
    fails!(invalid, cuGraphExternalSemaphoresSignalNodeGetParams(waits, &mut told));
    fails!(invalid, cuGraphExternalSemaphoresWaitNodeGetParams(signals, &mut told_wait));
}

pub fn semaphores_are_captured() {
    new_context();
    if !can_import() {
        return;
    }
    let (s, mut main, mut count) = (stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL, 0);
    let ((first, one), (second, two)) = (timeline(), timeline());
    cu!(
        cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
        cuWaitExternalSemaphoresAsync(&first, &wait(1), 1, s);
        cuSignalExternalSemaphoresAsync(&second, &signal(3), 1, s);
        cuStreamEndCapture(s, &mut main);
        cuGraphGetNodes(main, null_mut(), &mut count);
        cuGraphLaunch(instantiate(main), s);
    );
    assert_eq!((count, number(&two)), (2, 0));
    one.write_all_at(&1_u64.to_ne_bytes(), 0).unwrap();
    cu!(cuStreamSynchronize(s));
    assert_eq!(number(&two), 3);
}
