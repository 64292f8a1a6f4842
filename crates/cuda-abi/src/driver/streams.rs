//! Attributes of streams and their operations on words of memory.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::ffi::c_void;

c_enum! {
    /// An operation of `cuStreamBatchMemOp`.
    CUstreamBatchMemOpType {
        CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
        CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
        CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
        CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
        CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
        CU_STREAM_MEM_OP_BARRIER = 6,
    }
}

c_enum! {
    /// How threads wait for a stream.
    CUsynchronizationPolicy {
        CU_SYNC_POLICY_AUTO = 1,
        CU_SYNC_POLICY_SPIN = 2,
        CU_SYNC_POLICY_YIELD = 3,
        CU_SYNC_POLICY_BLOCKING_SYNC = 4,
    }
}

c_enum! {
    /// How memory is expected to be accessed.
    CUaccessProperty {
        CU_ACCESS_PROPERTY_NORMAL = 0,
        CU_ACCESS_PROPERTY_STREAMING = 1,
        CU_ACCESS_PROPERTY_PERSISTING = 2,
    }
}

c_consts! {
    CU_STREAM_WAIT_VALUE_GEQ: u32 = 0;
    CU_STREAM_WAIT_VALUE_EQ: u32 = 1;
    CU_STREAM_WAIT_VALUE_AND: u32 = 2;
    CU_STREAM_WAIT_VALUE_NOR: u32 = 3;
    CU_STREAM_WAIT_VALUE_FLUSH: u32 = 1 << 30;
    CU_STREAM_WRITE_VALUE_DEFAULT: u32 = 0;
    CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER: u32 = 1;
    CU_STREAM_MEMORY_BARRIER_TYPE_SYS: u32 = 0;
    CU_STREAM_MEMORY_BARRIER_TYPE_GPU: u32 = 1;
    CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT: u32 = 0;
    CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE: u32 = 1;
}

/// One operation of a batch: a union in C. `barrierFlags` counts for barriers and flushes, what follows for the others.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUstreamBatchMemOpParams {
    pub operation: CUstreamBatchMemOpType,
    pub barrierFlags: u32,
    pub address: CUdeviceptr,
    pub value64: u64,
    pub flags: u32,
    pub alias: CUdeviceptr,
    pub pad: u64,
}

/// A range of memory and what is expected of accesses to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUaccessPolicyWindow {
    pub base_ptr: *mut c_void,
    pub num_bytes: usize,
    pub hitRatio: f32,
    pub hitProp: CUaccessProperty,
    pub missProp: CUaccessProperty,
}
