//! Enumerations of the Driver API: the manual's names and numbers.

c_enum! {
    /// A limit of a context, for `cuCtxGetLimit` and `cuCtxSetLimit`.
    CUlimit {
        CU_LIMIT_STACK_SIZE = 0,
        CU_LIMIT_PRINTF_FIFO_SIZE = 1,
        CU_LIMIT_MALLOC_HEAP_SIZE = 2,
        CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
        CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
        CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
        CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
        CU_LIMIT_SHMEM_SIZE = 7,
        CU_LIMIT_CIG_ENABLED = 8,
        CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED = 9,
    }
}

c_enum! {
    /// An option of the just-in-time compiler and linker; its value travels in a pointer-sized cell.
    CUjit_option {
        CU_JIT_MAX_REGISTERS = 0,
        CU_JIT_THREADS_PER_BLOCK = 1,
        CU_JIT_WALL_TIME = 2,
        CU_JIT_INFO_LOG_BUFFER = 3,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
        CU_JIT_ERROR_LOG_BUFFER = 5,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
        CU_JIT_OPTIMIZATION_LEVEL = 7,
        CU_JIT_TARGET_FROM_CUCONTEXT = 8,
        CU_JIT_TARGET = 9,
        CU_JIT_FALLBACK_STRATEGY = 10,
        CU_JIT_GENERATE_DEBUG_INFO = 11,
        CU_JIT_LOG_VERBOSE = 12,
        CU_JIT_GENERATE_LINE_INFO = 13,
        CU_JIT_CACHE_MODE = 14,
        CU_JIT_NEW_SM3X_OPT = 15,
        CU_JIT_FAST_COMPILE = 16,
        CU_JIT_GLOBAL_SYMBOL_NAMES = 17,
        CU_JIT_GLOBAL_SYMBOL_ADDRESSES = 18,
        CU_JIT_GLOBAL_SYMBOL_COUNT = 19,
        CU_JIT_LTO = 20,
        CU_JIT_FTZ = 21,
        CU_JIT_PREC_DIV = 22,
        CU_JIT_PREC_SQRT = 23,
        CU_JIT_FMA = 24,
        CU_JIT_REFERENCED_KERNEL_NAMES = 25,
        CU_JIT_REFERENCED_KERNEL_COUNT = 26,
        CU_JIT_REFERENCED_VARIABLE_NAMES = 27,
        CU_JIT_REFERENCED_VARIABLE_COUNT = 28,
        CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES = 29,
        CU_JIT_POSITION_INDEPENDENT_CODE = 30,
        CU_JIT_MIN_CTA_PER_SM = 31,
        CU_JIT_MAX_THREADS_PER_BLOCK = 32,
        CU_JIT_OVERRIDE_DIRECTIVE_VALUES = 33,
        CU_JIT_SPLIT_COMPILE = 34,
        CU_JIT_NUM_OPTIONS = 35,
    }
}

c_enum! {
    /// What a piece of input to the linker is.
    CUjitInputType {
        CU_JIT_INPUT_CUBIN = 0,
        CU_JIT_INPUT_PTX = 1,
        CU_JIT_INPUT_FATBINARY = 2,
        CU_JIT_INPUT_OBJECT = 3,
        CU_JIT_INPUT_LIBRARY = 4,
        CU_JIT_INPUT_NVVM = 5,
        CU_JIT_NUM_INPUT_TYPES = 6,
    }
}

c_enum! {
    /// What `cuFuncGetAttribute` can be asked.
    CUfunction_attribute {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
        CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
        CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
        CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
        CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
        CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
        CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
    }
}

c_enum! {
    /// What `cuPointerGetAttribute` can be asked.
    CUpointer_attribute {
        CU_POINTER_ATTRIBUTE_CONTEXT = 1,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
        CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
        CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
        CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
        CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
        CU_POINTER_ATTRIBUTE_MAPPED = 13,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
        CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
        CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
        CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
        CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE = 21,
    }
}

c_enum! {
    /// Where the memory behind an address is.
    CUmemorytype {
        CU_MEMORYTYPE_HOST = 1,
        CU_MEMORYTYPE_DEVICE = 2,
        CU_MEMORYTYPE_ARRAY = 3,
        CU_MEMORYTYPE_UNIFIED = 4,
    }
}

c_enum! {
    /// Preferred split between L1 cache and shared memory.
    CUfunc_cache {
        CU_FUNC_CACHE_PREFER_NONE = 0,
        CU_FUNC_CACHE_PREFER_SHARED = 1,
        CU_FUNC_CACHE_PREFER_L1 = 2,
        CU_FUNC_CACHE_PREFER_EQUAL = 3,
    }
}

c_enum! {
    /// Width of the shared memory banks.
    CUsharedconfig {
        CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE = 0,
        CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE = 1,
        CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE = 2,
    }
}

c_enum! {
    /// Who may create contexts on a device.
    CUcomputemode {
        CU_COMPUTEMODE_DEFAULT = 0,
        CU_COMPUTEMODE_PROHIBITED = 2,
        CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
    }
}

c_enum! {
    /// What can be asked about a pair of devices.
    CUdevice_P2PAttribute {
        CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
        CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
        CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
        CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED = 4,
        CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED = 4,
        CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED = 5,
    }
}

c_enum! {
    /// Format of one channel of an array element.
    CUarray_format {
        CU_AD_FORMAT_UNSIGNED_INT8 = 1,
        CU_AD_FORMAT_UNSIGNED_INT16 = 2,
        CU_AD_FORMAT_UNSIGNED_INT32 = 3,
        CU_AD_FORMAT_SIGNED_INT8 = 8,
        CU_AD_FORMAT_SIGNED_INT16 = 9,
        CU_AD_FORMAT_SIGNED_INT32 = 10,
        CU_AD_FORMAT_HALF = 16,
        CU_AD_FORMAT_FLOAT = 32,
        CU_AD_FORMAT_NV12 = 176,
        CU_AD_FORMAT_UNORM_INT8X1 = 192,
        CU_AD_FORMAT_UNORM_INT8X2 = 193,
        CU_AD_FORMAT_UNORM_INT8X4 = 194,
        CU_AD_FORMAT_UNORM_INT16X1 = 195,
        CU_AD_FORMAT_UNORM_INT16X2 = 196,
        CU_AD_FORMAT_UNORM_INT16X4 = 197,
        CU_AD_FORMAT_SNORM_INT8X1 = 198,
        CU_AD_FORMAT_SNORM_INT8X2 = 199,
        CU_AD_FORMAT_SNORM_INT8X4 = 200,
        CU_AD_FORMAT_SNORM_INT16X1 = 201,
        CU_AD_FORMAT_SNORM_INT16X2 = 202,
        CU_AD_FORMAT_SNORM_INT16X4 = 203,
        CU_AD_FORMAT_BC1_UNORM = 145,
        CU_AD_FORMAT_BC1_UNORM_SRGB = 146,
        CU_AD_FORMAT_BC2_UNORM = 147,
        CU_AD_FORMAT_BC2_UNORM_SRGB = 148,
        CU_AD_FORMAT_BC3_UNORM = 149,
        CU_AD_FORMAT_BC3_UNORM_SRGB = 150,
        CU_AD_FORMAT_BC4_UNORM = 151,
        CU_AD_FORMAT_BC4_SNORM = 152,
        CU_AD_FORMAT_BC5_UNORM = 153,
        CU_AD_FORMAT_BC5_SNORM = 154,
        CU_AD_FORMAT_BC6H_UF16 = 155,
        CU_AD_FORMAT_BC6H_SF16 = 156,
        CU_AD_FORMAT_BC7_UNORM = 157,
        CU_AD_FORMAT_BC7_UNORM_SRGB = 158,
        CU_AD_FORMAT_P010 = 159,
        CU_AD_FORMAT_P016 = 161,
        CU_AD_FORMAT_NV16 = 162,
        CU_AD_FORMAT_P210 = 163,
        CU_AD_FORMAT_P216 = 164,
        CU_AD_FORMAT_YUY2 = 165,
        CU_AD_FORMAT_Y210 = 166,
        CU_AD_FORMAT_Y216 = 167,
        CU_AD_FORMAT_AYUV = 168,
        CU_AD_FORMAT_Y410 = 169,
        CU_AD_FORMAT_Y416 = 177,
        CU_AD_FORMAT_Y444_PLANAR8 = 178,
        CU_AD_FORMAT_Y444_PLANAR10 = 179,
        CU_AD_FORMAT_YUV444_8bit_SemiPlanar = 180,
        CU_AD_FORMAT_YUV444_16bit_SemiPlanar = 181,
        CU_AD_FORMAT_UNORM_INT_101010_2 = 80,
    }
}

c_enum! {
    /// Names one attribute of a launch, a stream or a graph node.
    CUlaunchAttributeID {
        CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
        CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
        CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
        CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
        CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16,
    }
}

c_enum! {
    /// An option of `cuLibraryLoadData`.
    CUlibraryOption {
        CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
        CU_LIBRARY_BINARY_IS_PRESERVED = 1,
        CU_LIBRARY_NUM_OPTIONS = 2,
    }
}

c_enum! {
    /// When kernels are loaded.
    CUmoduleLoadingMode {
        CU_MODULE_EAGER_LOADING = 1,
        CU_MODULE_LAZY_LOADING = 2,
    }
}

c_enum! {
    /// How `cuGetProcAddress_v2` fared.
    CUdriverProcAddressQueryResult {
        CU_GET_PROC_ADDRESS_SUCCESS = 0,
        CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
        CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
    }
}

c_enum! {
    /// Whether a function is loaded already.
    CUfunctionLoadingState {
        CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
        CU_FUNCTION_LOADING_STATE_LOADED = 1,
    }
}

c_enum! {
    /// Advice on managed memory.
    CUmem_advise {
        CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
        CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
        CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
        CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
        CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
        CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
    }
}

c_enum! {
    /// What can be asked of a managed range.
    CUmem_range_attribute {
        CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2,
        CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 4,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE = 5,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID = 6,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE = 7,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID = 8,
    }
}

c_enum! {
    /// The kind of place a memory location names.
    CUmemLocationType {
        CU_MEM_LOCATION_TYPE_INVALID = 0,
        CU_MEM_LOCATION_TYPE_NONE = 0,
        CU_MEM_LOCATION_TYPE_DEVICE = 1,
        CU_MEM_LOCATION_TYPE_HOST = 2,
        CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    }
}

c_enum! {
    /// The kind of an allocation made by the virtual memory functions.
    CUmemAllocationType {
        CU_MEM_ALLOCATION_TYPE_INVALID = 0,
        CU_MEM_ALLOCATION_TYPE_PINNED = 1,
        CU_MEM_ALLOCATION_TYPE_MANAGED = 2,
    }
}

c_enum! {
    /// An attribute of a memory pool.
    CUmemPool_attribute {
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
        CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
        CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
    }
}

c_enum! {
    /// Whether a stream is being captured.
    CUstreamCaptureStatus {
        CU_STREAM_CAPTURE_STATUS_NONE = 0,
        CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
        CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
    }
}

c_enum! {
    /// How strictly a capture forbids unsafe calls.
    CUstreamCaptureMode {
        CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
        CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    }
}

c_enum! {
    /// A kind of execution affinity.
    CUexecAffinityType {
        CU_EXEC_AFFINITY_TYPE_SM_COUNT = 0,
    }
}

c_enum! {
    /// Whose remote writes to flush.
    CUflushGPUDirectRDMAWritesTarget {
        CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX = 0,
    }
}

c_enum! {
    /// For whom remote writes are flushed.
    CUflushGPUDirectRDMAWritesScope {
        CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER = 100,
        CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES = 200,
    }
}

c_enum! {
    /// What a texture read outside the texture gives.
    CUaddress_mode {
        CU_TR_ADDRESS_MODE_WRAP = 0,
        CU_TR_ADDRESS_MODE_CLAMP = 1,
        CU_TR_ADDRESS_MODE_MIRROR = 2,
        CU_TR_ADDRESS_MODE_BORDER = 3,
    }
}

c_enum! {
    /// How a texture read between texels is made up.
    CUfilter_mode {
        CU_TR_FILTER_MODE_POINT = 0,
        CU_TR_FILTER_MODE_LINEAR = 1,
    }
}

c_enum! {
    /// What a texture or surface object reads.
    CUresourcetype {
        CU_RESOURCE_TYPE_ARRAY = 0,
        CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1,
        CU_RESOURCE_TYPE_LINEAR = 2,
        CU_RESOURCE_TYPE_PITCH2D = 3,
    }
}

c_enum! {
    /// How a resource view reads its texels.
    CUresourceViewFormat {
        CU_RES_VIEW_FORMAT_NONE = 0,
        CU_RES_VIEW_FORMAT_UINT_1X8 = 1,
        CU_RES_VIEW_FORMAT_UINT_2X8 = 2,
        CU_RES_VIEW_FORMAT_UINT_4X8 = 3,
        CU_RES_VIEW_FORMAT_SINT_1X8 = 4,
        CU_RES_VIEW_FORMAT_SINT_2X8 = 5,
        CU_RES_VIEW_FORMAT_SINT_4X8 = 6,
        CU_RES_VIEW_FORMAT_UINT_1X16 = 7,
        CU_RES_VIEW_FORMAT_UINT_2X16 = 8,
        CU_RES_VIEW_FORMAT_UINT_4X16 = 9,
        CU_RES_VIEW_FORMAT_SINT_1X16 = 10,
        CU_RES_VIEW_FORMAT_SINT_2X16 = 11,
        CU_RES_VIEW_FORMAT_SINT_4X16 = 12,
        CU_RES_VIEW_FORMAT_UINT_1X32 = 13,
        CU_RES_VIEW_FORMAT_UINT_2X32 = 14,
        CU_RES_VIEW_FORMAT_UINT_4X32 = 15,
        CU_RES_VIEW_FORMAT_SINT_1X32 = 16,
        CU_RES_VIEW_FORMAT_SINT_2X32 = 17,
        CU_RES_VIEW_FORMAT_SINT_4X32 = 18,
        CU_RES_VIEW_FORMAT_FLOAT_1X16 = 19,
        CU_RES_VIEW_FORMAT_FLOAT_2X16 = 20,
        CU_RES_VIEW_FORMAT_FLOAT_4X16 = 21,
        CU_RES_VIEW_FORMAT_FLOAT_1X32 = 22,
        CU_RES_VIEW_FORMAT_FLOAT_2X32 = 23,
        CU_RES_VIEW_FORMAT_FLOAT_4X32 = 24,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC1 = 25,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC2 = 26,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC3 = 27,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC4 = 28,
        CU_RES_VIEW_FORMAT_SIGNED_BC4 = 29,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC5 = 30,
        CU_RES_VIEW_FORMAT_SIGNED_BC5 = 31,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC6H = 32,
        CU_RES_VIEW_FORMAT_SIGNED_BC6H = 33,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC7 = 34,
    }
}

c_enum! {
    /// What to do without machine code for the device.
    CUjit_fallback {
        CU_PREFER_PTX = 0,
        CU_PREFER_BINARY = 1,
    }
}

c_enum! {
    /// Where loads are cached unless they say.
    CUjit_cacheMode {
        CU_JIT_CACHE_OPTION_NONE = 0,
        CU_JIT_CACHE_OPTION_CG = 1,
        CU_JIT_CACHE_OPTION_CA = 2,
    }
}

c_enum! {
    /// Output format of the former profiler.
    CUoutput_mode {
        CU_OUT_KEY_VALUE_PAIR = 0,
        CU_OUT_CSV = 1,
    }
}

c_enum! {
    /// What a place may do with memory.
    CUmemAccess_flags {
        CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
        CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    }
}

c_enum! {
    /// How memory is handed to other processes: bits.
    CUmemAllocationHandleType {
        CU_MEM_HANDLE_TYPE_NONE = 0,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
        CU_MEM_HANDLE_TYPE_WIN32 = 2,
        CU_MEM_HANDLE_TYPE_WIN32_KMT = 4,
        CU_MEM_HANDLE_TYPE_FABRIC = 8,
    }
}

c_enum! {
    /// Which granularity is asked for.
    CUmemAllocationGranularity_flags {
        CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
        CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
    }
}

c_enum! {
    /// What the elements of a tensor are.
    CUtensorMapDataType {
        CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
        CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
        CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
        CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
        CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4,
        CU_TENSOR_MAP_DATA_TYPE_INT64 = 5,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
        CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ = 10,
        CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = 11,
        CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ = 12,
        CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B = 13,
        CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B = 14,
        CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B = 15,
    }
}

c_enum! {
    /// How the channels of a tensor are grouped in memory.
    CUtensorMapInterleave {
        CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
        CU_TENSOR_MAP_INTERLEAVE_16B = 1,
        CU_TENSOR_MAP_INTERLEAVE_32B = 2,
    }
}

c_enum! {
    /// How parts of a tensor are permuted in shared memory.
    CUtensorMapSwizzle {
        CU_TENSOR_MAP_SWIZZLE_NONE = 0,
        CU_TENSOR_MAP_SWIZZLE_32B = 1,
        CU_TENSOR_MAP_SWIZZLE_64B = 2,
        CU_TENSOR_MAP_SWIZZLE_128B = 3,
        CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B = 4,
        CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B = 5,
        CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B = 6,
    }
}

c_enum! {
    /// How much of a tensor is fetched at once.
    CUtensorMapL2promotion {
        CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
        CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
    }
}

c_enum! {
    /// What elements outside a tensor read as.
    CUtensorMapFloatOOBfill {
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA = 1,
    }
}

c_enum! {
    /// Which pixels of a row a wide column takes.
    CUtensorMapIm2ColWideMode {
        CU_TENSOR_MAP_IM2COL_WIDE_MODE_W = 0,
        CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 = 1,
    }
}
