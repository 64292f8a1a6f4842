//! Memory and semaphores of other APIs, by what those export.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::ffi::c_void;
use core::fmt;

c_enum! {
    /// As what memory of another API is handed over.
    CUexternalMemoryHandleType {
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32 = 2,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP = 4,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE = 5,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE = 6,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT = 7,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF = 8,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9,
    }
}

c_enum! {
    /// As what a semaphore of another API is handed over.
    CUexternalSemaphoreHandleType {
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD = 1,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32 = 2,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE = 4,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE = 5,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC = 6,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX = 7,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT = 8,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD = 9,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 = 10,
    }
}

/// What another API exports an object as: the member that the type beside it names.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUexternalHandle {
    pub fd: i32,
    pub win32: CUexternalWin32Handle,
    pub nvSci: *const c_void,
}

/// A handle of Windows, or the name of an object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUexternalWin32Handle {
    pub handle: *mut c_void,
    pub name: *const c_void,
}

impl fmt::Debug for CUexternalHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Which member counts is told by the type beside it.
        f.debug_struct("CUexternalHandle").finish_non_exhaustive()
    }
}

/// Memory to be imported.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    pub r#type: CUexternalMemoryHandleType,
    pub handle: CUexternalHandle,
    pub size: u64,
    pub flags: u32,
    pub reserved: [u32; 16],
}

/// A part of imported memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    pub offset: u64,
    pub size: u64,
    pub flags: u32,
    pub reserved: [u32; 16],
}

/// An array with mipmap levels in imported memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
    pub offset: u64,
    pub arrayDesc: CUDA_ARRAY3D_DESCRIPTOR,
    pub numLevels: u32,
    pub reserved: [u32; 16],
}

/// A semaphore to be imported.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    pub r#type: CUexternalSemaphoreHandleType,
    pub handle: CUexternalHandle,
    pub flags: u32,
    pub reserved: [u32; 16],
}

/// How a semaphore is signalled: `value` is what a timeline is set to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    pub value: u64,
    pub nvSciSync: u64,
    pub key: u64,
    pub reserved0: [u32; 12],
    pub flags: u32,
    pub reserved: [u32; 16],
}

/// How a semaphore is waited for: `value` is what a timeline has to reach.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    pub value: u64,
    pub nvSciSync: u64,
    pub key: u64,
    pub timeoutMs: u32,
    pub pad: u32,
    pub reserved0: [u32; 10],
    pub flags: u32,
    pub reserved: [u32; 16],
}

/// Semaphores that a node signals.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
    pub extSemArray: *mut CUexternalSemaphore,
    pub paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    pub numExtSems: u32,
}

/// Semaphores that a node waits for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_EXT_SEM_WAIT_NODE_PARAMS {
    pub extSemArray: *mut CUexternalSemaphore,
    pub paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    pub numExtSems: u32,
}

c_consts! {
    CUDA_EXTERNAL_MEMORY_DEDICATED: u32 = 1;
}
