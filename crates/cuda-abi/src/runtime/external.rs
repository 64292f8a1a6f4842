//! Memory and semaphores of other APIs. Most of it is the driver's own.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use crate::driver::*;

/// As what memory of another API is handed over.
pub type cudaExternalMemoryHandleType = CUexternalMemoryHandleType;
/// As what a semaphore of another API is handed over.
pub type cudaExternalSemaphoreHandleType = CUexternalSemaphoreHandleType;
/// How a semaphore is signalled.
pub type cudaExternalSemaphoreSignalParams = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
/// How a semaphore is waited for.
pub type cudaExternalSemaphoreWaitParams = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
/// Semaphores that a node signals.
pub type cudaExternalSemaphoreSignalNodeParams = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS;
/// Semaphores that a node waits for.
pub type cudaExternalSemaphoreWaitNodeParams = CUDA_EXT_SEM_WAIT_NODE_PARAMS;

/// Memory to be imported. CUDA 13 has reserved space behind it, CUDA 12 has not.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaExternalMemoryHandleDesc {
    pub r#type: cudaExternalMemoryHandleType,
    pub handle: CUexternalHandle,
    pub size: u64,
    pub flags: u32,
}

/// A part of imported memory, with reserved space behind it in CUDA 13.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaExternalMemoryBufferDesc {
    pub offset: u64,
    pub size: u64,
    pub flags: u32,
}

/// An array with mipmap levels in imported memory, with reserved space behind it in CUDA 13.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaExternalMemoryMipmappedArrayDesc {
    pub offset: u64,
    pub formatDesc: cudaChannelFormatDesc,
    pub extent: cudaExtent,
    pub flags: u32,
    pub numLevels: u32,
}

/// A semaphore to be imported, with reserved space behind it in CUDA 13.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaExternalSemaphoreHandleDesc {
    pub r#type: cudaExternalSemaphoreHandleType,
    pub handle: CUexternalHandle,
    pub flags: u32,
}

/// How a semaphore is signalled, as CUDA 12 had it first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaExternalSemaphoreSignalParams_v1 {
    pub value: u64,
    pub nvSciSync: u64,
    pub key: u64,
    pub flags: u32,
}

/// How a semaphore is waited for, as CUDA 12 had it first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaExternalSemaphoreWaitParams_v1 {
    pub value: u64,
    pub nvSciSync: u64,
    pub key: u64,
    pub timeoutMs: u32,
    pub pad: u32,
    pub flags: u32,
}

impl From<cudaExternalSemaphoreSignalParams_v1> for cudaExternalSemaphoreSignalParams {
    fn from(old: cudaExternalSemaphoreSignalParams_v1) -> Self {
        let cudaExternalSemaphoreSignalParams_v1 { value, nvSciSync, key, flags } = old;
        Self { value, nvSciSync, key, reserved0: [0; 12], flags, reserved: [0; 16] }
    }
}

impl From<cudaExternalSemaphoreWaitParams_v1> for cudaExternalSemaphoreWaitParams {
    fn from(old: cudaExternalSemaphoreWaitParams_v1) -> Self {
        let cudaExternalSemaphoreWaitParams_v1 { value, nvSciSync, key, timeoutMs, pad, flags } = old;
        Self { value, nvSciSync, key, timeoutMs, pad, reserved0: [0; 10], flags, reserved: [0; 16] }
    }
}
