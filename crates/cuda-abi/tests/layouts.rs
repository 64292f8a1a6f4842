//! The layouts that programs are compiled against, on 64-bit Linux.
#![allow(non_camel_case_types, reason = "the manual's names")]

use cuda_abi::driver::*;
use cuda_abi::runtime::*;

macro_rules! sizes {
    ($($name:ident: $size:expr,)*) => {
        [$((stringify!($name), size_of::<$name>(), $size)),*]
    };
}

macro_rules! offsets {
    ($($name:ident.$field:ident: $offset:expr,)*) => {
        [$((concat!(stringify!($name), ".", stringify!($field)), core::mem::offset_of!($name, $field), $offset)),*]
    };
}

#[test]
fn structures_have_the_size_that_c_gives_them() {
    for (name, is, should_be) in sizes! {
        CUuuid: 16,
        CUipcMemHandle: 64,
        CUdevprop: 56,
        CUDA_MEMCPY2D: 128,
        CUDA_MEMCPY3D: 200,
        CUDA_MEMCPY3D_PEER: 200,
        CUDA_ARRAY_DESCRIPTOR: 24,
        CUDA_ARRAY3D_DESCRIPTOR: 40,
        CUlaunchConfig: 56,
        CUlaunchAttribute: 72,
        CUlaunchAttributeValue: 64,
        CUDA_LAUNCH_PARAMS: 56,
        CUexecAffinityParam: 8,
        CUctxCreateParams: 24,
        CUmemLocation: 8,
        CUmemPoolProps: 88,
        CUmemAccessDesc: 12,
        CUDA_RESOURCE_DESC: 144,
        CUDA_TEXTURE_DESC: 104,
        CUDA_RESOURCE_VIEW_DESC: 112,
        CUDA_KERNEL_NODE_PARAMS_v1: 56,
        CUDA_KERNEL_NODE_PARAMS: 72,
        CUDA_MEMSET_NODE_PARAMS: 40,
        CUDA_HOST_NODE_PARAMS: 16,
        CUDA_MEM_ALLOC_NODE_PARAMS: 120,
        CUgraphEdgeData: 8,
        CUgraphExecUpdateResultInfo: 24,
        CUDA_GRAPH_INSTANTIATE_PARAMS: 32,
        CUDA_MEMCPY2D_v1: 96,
        CUDA_MEMCPY3D_v1: 144,
        CUDA_ARRAY_DESCRIPTOR_v1: 16,
        CUDA_ARRAY3D_DESCRIPTOR_v1: 24,
        CUmulticastObjectProp: 32,
        CUstreamBatchMemOpParams: 48,
        CUDA_BATCH_MEM_OP_NODE_PARAMS: 32,
        CUaccessPolicyWindow: 32,
        CUgraphNodeParams: 256,
        CUDA_MEMCPY_NODE_PARAMS: 216,
        CUDA_MEMSET_NODE_PARAMS_v2: 48,
        cudaGraphNodeParams: 256,
        CUmemcpyAttributes: 24,
        CUmemcpy3DOperand: 40,
        CUDA_MEMCPY3D_BATCH_OP: 112,
        CUmemPoolPtrExportData: 64,
        CUasyncNotificationInfo: 16,
        CUDA_ARRAY_MEMORY_REQUIREMENTS: 32,
        CUDA_ARRAY_SPARSE_PROPERTIES: 48,
        dim3: 12,
        cudaKernelNodeParams: 56,
        cudaChannelFormatDesc: 20,
        cudaPitchedPtr: 32,
        cudaExtent: 24,
        cudaPos: 24,
        cudaMemcpy3DParms: 160,
        cudaMemcpy3DPeerParms: 168,
        cudaLaunchConfig_t: 56,
        cudaPointerAttributes: 88,
        cudaFuncAttributes: 144,
        cudaMemLocation: 8,
        cudaMemAccessDesc: 12,
        cudaMemPoolProps: 88,
        cudaTextureDesc: 72,
        cudaResourceDesc: 144,
        cudaResourceViewDesc: 112,
        cudaDeviceProp: 1008,
    } {
        assert_eq!(is, should_be, "size of {name}");
    }
}

#[test]
fn fields_are_where_c_puts_them() {
    for (name, is, should_be) in offsets! {
        CUDA_MEMCPY3D.WidthInBytes: 176,
        CUlaunchConfig.hStream: 32,
        CUlaunchAttribute.value: 8,
        cudaDeviceProp.totalGlobalMem: 288,
        cudaDeviceProp.multiProcessorCount: 384,
        cudaDeviceProp.surfaceAlignment: 552,
        cudaDeviceProp.sharedMemPerMultiprocessor: 624,
        cudaDeviceProp.hostNumaMultinodeIpcSupported: 780,
        cudaMemcpy3DParms.kind: 152,
        cudaPointerAttributes.hostPointer: 16,
        cudaFuncAttributes.maxDynamicSharedSizeBytes: 44,
        cudaLaunchConfig_t.stream: 32,
    } {
        assert_eq!(is, should_be, "offset of {name}");
    }
}
