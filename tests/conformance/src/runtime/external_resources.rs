//! External resource interoperability: memory and semaphores by file descriptors.

use std::fs::File;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;

use super::common::driver::{
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, CUexternalHandle,
};
use super::common::*;

const BYTES: u64 = 1 << 16;

/// Without a graphics API only our driver has something to import.
fn can_import() -> bool {
    ours_only("NVIDIA's driver imports what a graphics API has exported, and nothing else")
}

fn memory(bytes: u64) -> File {
    // SAFETY: a name that ends in NUL; the descriptor is new.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), 0)) };
    file.set_len(bytes).unwrap();
    file
}

fn import(file: &File) -> cudaExternalMemory_t {
    let mut imported = cudaExternalMemory_t::NULL;
    let described = cudaExternalMemoryHandleDesc {
        r#type: CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        handle: CUexternalHandle { fd: file.try_clone().unwrap().into_raw_fd() },
        size: BYTES,
        flags: 0,
    };
    cuda!(cudaImportExternalMemory(&mut imported, &described));
    imported
}

/// A timeline semaphore, and the memory behind it.
fn timeline() -> (cudaExternalSemaphore_t, File) {
    let (file, mut imported) = (memory(64), cudaExternalSemaphore_t::NULL);
    let described = cudaExternalSemaphoreHandleDesc {
        r#type: CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD,
        handle: CUexternalHandle { fd: file.try_clone().unwrap().into_raw_fd() },
        flags: 0,
    };
    cuda!(cudaImportExternalSemaphore(&mut imported, &described));
    (imported, file)
}

fn signal(value: u64) -> cudaExternalSemaphoreSignalParams {
    cudaExternalSemaphoreSignalParams {
        value,
        nvSciSync: 0,
        key: 0,
        reserved0: [0; 12],
        flags: 0,
        reserved: [0; 16],
    }
}

fn wait(value: u64) -> cudaExternalSemaphoreWaitParams {
    cudaExternalSemaphoreWaitParams {
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

fn reach(file: &File, value: u64) {
    file.write_all_at(&value.to_ne_bytes(), 0).unwrap();
}

pub fn memory_is_shared_with_whoever_maps_it() {
    cuda!(cudaFree(null_mut()));
    if !can_import() {
        return;
    }
    let (file, mut pointer) = (memory(BYTES), null_mut());
    file.write_all_at(&[7; 4], 4096).unwrap();
    let imported = import(&file);
    let mut described = cudaExternalMemoryBufferDesc { offset: 4096, size: 64, flags: 0 };
    cuda!(cudaExternalMemoryGetMappedBuffer(&mut pointer, imported, &described));
    assert_eq!(read::<u8>(pointer, 5), [7, 7, 7, 7, 0]);
    cuda!(cudaMemset(pointer, 9, 64); cudaDeviceSynchronize());
    let mut seen = [0; 2];
    file.read_exact_at(&mut seen, 4096 + 63).unwrap();
    assert_eq!(seen, [9, 0]);
    described.size = BYTES;
    let mut other = null_mut();
    fails!(cudaErrorInvalidValue, cudaExternalMemoryGetMappedBuffer(&mut other, imported, &described));
    cuda!(cudaDestroyExternalMemory(imported); cudaFree(pointer));
    fails!(cudaErrorInvalidResourceHandle, cudaDestroyExternalMemory(imported));
    fails!(cudaErrorInvalidValue, cudaImportExternalMemory(null_mut(), null()));
}

pub fn an_array_lies_in_external_memory() {
    cuda!(cudaFree(null_mut()));
    if !can_import() {
        return;
    }
    let (file, mut mipmapped, mut level) = (memory(BYTES), cudaMipmappedArray_t::NULL, cudaArray_t::NULL);
    let texels: Vec<u8> = (0..64_u32).flat_map(u32::to_ne_bytes).collect();
    file.write_all_at(&texels, 4096).unwrap();
    let described = cudaExternalMemoryMipmappedArrayDesc {
        offset: 4096,
        formatDesc: cudaChannelFormatDesc { x: 32, y: 0, z: 0, w: 0, f: cudaChannelFormatKindUnsigned },
        extent: cudaExtent { width: 8, height: 8, depth: 0 },
        flags: 0,
        numLevels: 1,
    };
    cuda!(
        cudaExternalMemoryGetMappedMipmappedArray(&mut mipmapped, import(&file), &described);
        cudaGetMipmappedArrayLevel(&mut level, cudaMipmappedArray_const_t(mipmapped.0), 0);
    );
    let mut row = [0_u32; 2];
    let source = cudaArray_const_t(level.0);
    cuda!(cudaMemcpy2DFromArray(row.as_mut_ptr().cast(), 8, source, 4, 1, 8, 1, cudaMemcpyDeviceToHost));
    assert_eq!(row, [9, 10]);
    cuda!(cudaFreeMipmappedArray(mipmapped));
}

pub fn semaphores_order_streams_and_others() {
    cuda!(cudaFree(null_mut()));
    if !can_import() {
        return;
    }
    let (s, (semaphore, theirs)) = (stream(), timeline());
    cuda!(
        cudaSignalExternalSemaphoresAsync(&semaphore, &signal(3), 1, s);
        cudaWaitExternalSemaphoresAsync(&semaphore, &wait(3), 1, s);
        cudaStreamSynchronize(s);
    );
    assert_eq!(number(&theirs), 3);
    cuda!(cudaWaitExternalSemaphoresAsync_ptsz(&semaphore, &wait(5), 1, s));
    fails!(cudaErrorNotReady, cudaStreamQuery(s));
    reach(&theirs, 5);
    cuda!(cudaSignalExternalSemaphoresAsync_ptsz(&semaphore, &signal(6), 1, s); cudaStreamSynchronize(s));
    assert_eq!(number(&theirs), 6);
    cuda!(cudaDestroyExternalSemaphore(semaphore));
    fails!(cudaErrorInvalidResourceHandle, cudaDestroyExternalSemaphore(semaphore));
    let no_counter = cudaExternalSemaphoreHandleDesc {
        r#type: CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
        handle: CUexternalHandle { fd: -1 },
        flags: 0,
    };
    let mut imported = cudaExternalSemaphore_t::NULL;
    fails!(cudaErrorUnknown, cudaImportExternalSemaphore(&mut imported, &no_counter));
}

pub fn semaphores_order_streams_of_cuda_12() {
    cuda!(cudaFree(null_mut()));
    if !can_import() {
        return;
    }
    let (s, (semaphore, theirs)) = (stream(), timeline());
    let signal = |value| cudaExternalSemaphoreSignalParams_v1 { value, nvSciSync: 0, key: 0, flags: 0 };
    let wait = |value| cudaExternalSemaphoreWaitParams_v1 {
        value,
        nvSciSync: 0,
        key: 0,
        timeoutMs: 0,
        pad: 0,
        flags: 0,
    };
    let (both, values) = ([semaphore; 2], [signal(2), signal(4)]);
    cuda!(
        cudaSignalExternalSemaphoresAsync_cuda12(both.as_ptr(), values.as_ptr(), 2, s);
        cudaWaitExternalSemaphoresAsync_cuda12(&semaphore, &wait(4), 1, s);
        cudaStreamSynchronize(s);
    );
    assert_eq!(number(&theirs), 4);
    cuda!(cudaWaitExternalSemaphoresAsync_cuda12_ptsz(&semaphore, &wait(5), 1, s));
    fails!(cudaErrorNotReady, cudaStreamQuery(s));
    reach(&theirs, 5);
    cuda!(cudaSignalExternalSemaphoresAsync_cuda12_ptsz(&semaphore, &signal(6), 1, s); cudaStreamSynchronize(s));
    assert_eq!(number(&theirs), 6);
}

pub fn semaphores_are_nodes() {
    cuda!(cudaFree(null_mut()));
    if !can_import() {
        return;
    }
    let (s, mut graph, mut executable) = (stream(), cudaGraph_t::NULL, cudaGraphExec_t::NULL);
    let ((mut first, one), (mut second, two)) = (timeline(), timeline());
    let (mut signals, mut waits) = (cudaGraphNode_t::NULL, cudaGraphNode_t::NULL);
    let (set, more, reached) = (signal(4), signal(7), wait(2));
    let params = |semaphore: &mut cudaExternalSemaphore_t, params: &cudaExternalSemaphoreSignalParams| {
        cudaExternalSemaphoreSignalNodeParams { extSemArray: semaphore, paramsArray: params, numExtSems: 1 }
    };
    let mut told = params(&mut second, &set);
    let mut awaited =
        cudaExternalSemaphoreWaitNodeParams { extSemArray: &mut first, paramsArray: &reached, numExtSems: 1 };
    cuda!(
        cudaGraphCreate(&mut graph, 0);
        cudaGraphAddExternalSemaphoresWaitNode(&mut waits, graph, null(), 0, &awaited);
        cudaGraphAddExternalSemaphoresSignalNode(&mut signals, graph, &waits, 1, &told);
        cudaGraphInstantiate(&mut executable, graph, 0);
        cudaGraphLaunch(executable, s);
    );
    fails!(cudaErrorNotReady, cudaStreamQuery(s));
    reach(&one, 2);
    cuda!(cudaStreamSynchronize(s));
    assert_eq!(number(&two), 4);
    cuda!(
        cudaGraphExternalSemaphoresSignalNodeGetParams(signals, &mut told);
        cudaGraphExternalSemaphoresWaitNodeGetParams(waits, &mut awaited);
    );
    // SAFETY: the library's arrays, of the length that it tells.
    unsafe { assert_eq!(((*told.paramsArray).value, (*awaited.paramsArray).value), (4, 2)) };
    let other = params(&mut second, &more);
    let awaits = cudaExternalSemaphoreWaitNodeParams { extSemArray: &mut first, ..awaited };
    cuda!(
        cudaGraphExecExternalSemaphoresSignalNodeSetParams(executable, signals, &other);
        cudaGraphExecExternalSemaphoresWaitNodeSetParams(executable, waits, &awaits);
        cudaGraphLaunch(executable, s);
        cudaStreamSynchronize(s);
    );
    assert_eq!(number(&two), 7);
    let other = params(&mut first, &more);
    cuda!(
        cudaGraphExternalSemaphoresSignalNodeSetParams(signals, &other);
        cudaGraphExternalSemaphoresWaitNodeSetParams(waits, &awaits);
        cudaGraphInstantiate(&mut executable, graph, 0);
        cudaGraphLaunch(executable, s);
        cudaStreamSynchronize(s);
    );
    assert_eq!(number(&one), 7);
}
