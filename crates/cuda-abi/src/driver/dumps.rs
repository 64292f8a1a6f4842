//! Core dumps, processes that are stopped and moved, and compressed memory.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::CUuuid;
use core::ffi::c_void;

c_enum! {
    /// What can be set about core dumps.
    CUcoredumpSettings {
        CU_COREDUMP_ENABLE_ON_EXCEPTION = 1,
        CU_COREDUMP_TRIGGER_HOST = 2,
        CU_COREDUMP_LIGHTWEIGHT = 3,
        CU_COREDUMP_ENABLE_USER_TRIGGER = 4,
        CU_COREDUMP_FILE = 5,
        CU_COREDUMP_PIPE = 6,
        CU_COREDUMP_GENERATION_FLAGS = 7,
    }
}

c_consts! {
    CU_COREDUMP_DEFAULT_FLAGS: u32 = 0;
    CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES: u32 = 1;
    CU_COREDUMP_SKIP_GLOBAL_MEMORY: u32 = 2;
    CU_COREDUMP_SKIP_SHARED_MEMORY: u32 = 4;
    CU_COREDUMP_SKIP_LOCAL_MEMORY: u32 = 8;
    CU_COREDUMP_SKIP_ABORT: u32 = 16;
    CU_COREDUMP_SKIP_CONSTBANK_MEMORY: u32 = 32;
    CU_COREDUMP_GZIP_COMPRESS: u32 = 64;
    CU_COREDUMP_LIGHTWEIGHT_FLAGS: u32 = 1 | 2 | 4 | 8 | 32;
}

c_enum! {
    /// Whether a process may use its devices.
    CUprocessState {
        CU_PROCESS_STATE_RUNNING = 0,
        CU_PROCESS_STATE_LOCKED = 1,
        CU_PROCESS_STATE_CHECKPOINTED = 2,
        CU_PROCESS_STATE_FAILED = 3,
    }
}

/// How a process is locked.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CUcheckpointLockArgs {
    /// 0: as long as it takes.
    pub timeoutMs: u32,
    pub reserved0: u32,
    pub reserved1: [u64; 7],
}

/// How a process is stopped.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CUcheckpointCheckpointArgs {
    pub reserved: [u64; 8],
}

/// A device, and the one that takes its place.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUcheckpointGpuPair {
    pub oldUuid: CUuuid,
    pub newUuid: CUuuid,
}

/// How it goes on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUcheckpointRestoreArgs {
    /// Which devices take the places of which; null: each its own.
    pub gpuPairs: *const CUcheckpointGpuPair,
    pub gpuPairsCount: u32,
    pub reserved: [u8; 44],
    pub reserved1: u64,
}

/// How a process is unlocked.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CUcheckpointUnlockArgs {
    pub reserved: [u64; 8],
}

c_enum! {
    /// How memory is compressed.
    CUmemDecompressAlgorithm {
        CU_MEM_DECOMPRESS_UNSUPPORTED = 0,
        CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE = 1,
        CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY = 2,
        CU_MEM_DECOMPRESS_ALGORITHM_LZ4 = 4,
    }
}

/// A piece of compressed memory, and where its content goes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemDecompressParams {
    pub srcNumBytes: usize,
    pub dstNumBytes: usize,
    /// How many bytes the content has.
    pub dstActBytes: *mut u32,
    pub src: *const c_void,
    pub dst: *mut c_void,
    pub algo: CUmemDecompressAlgorithm,
    pub padding: [u8; 20],
}

const _: () = {
    assert!(size_of::<CUcheckpointLockArgs>() == 64 && size_of::<CUcheckpointRestoreArgs>() == 64);
    assert!(size_of::<CUmemDecompressParams>() == 64);
};
