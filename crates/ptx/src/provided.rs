//! Functions that programs call without defining them, because the device provides them.

/// Whether the device defines the function of this name.
pub fn is_provided(name: &str) -> bool {
    FUNCTIONS.contains(&name) || FAMILIES.iter().any(|prefix| name.starts_with(prefix))
}

/// Every function whose name begins so: the device side of the runtime, for launches from kernels.
const FAMILIES: [&str; 2] = ["__cudaCDP2", "__cudaCG"];

const FUNCTIONS: [&str; 37] = [
    "vprintf",
    "malloc",
    "free",
    "__assertfail",
    "cudaCGGetIntrinsicHandle",
    "cudaCGGetRank",
    "cudaCGGetSize",
    "cudaCGSynchronize",
    "cudaCGSynchronizeGrid",
    "cudaDeviceGetAttribute",
    "cudaDeviceGetCacheConfig",
    "cudaDeviceGetLimit",
    "cudaDeviceGetSharedMemConfig",
    "cudaDeviceSynchronize",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
    "cudaEventRecord",
    "cudaEventRecordWithFlags",
    "cudaFree",
    "cudaFuncGetAttributes",
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetLastError",
    "cudaGetParameterBuffer",
    "cudaGetParameterBufferV2",
    "cudaLaunchDevice",
    "cudaLaunchDeviceV2",
    "cudaMalloc",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cudaPeekAtLastError",
    "cudaRuntimeGetVersion",
    "cudaStreamCreateWithFlags",
    "cudaStreamDestroy",
    "cudaStreamWaitEvent",
];
