//! Enumerations of the Runtime API: the manual's names and numbers.

c_enum! {
    /// Direction of a copy.
    cudaMemcpyKind {
        cudaMemcpyHostToHost = 0,
        cudaMemcpyHostToDevice = 1,
        cudaMemcpyDeviceToHost = 2,
        cudaMemcpyDeviceToDevice = 3,
        cudaMemcpyDefault = 4,
    }
}

c_enum! {
    /// A limit of a device, for `cudaDeviceGetLimit` and `cudaDeviceSetLimit`.
    cudaLimit {
        cudaLimitStackSize = 0,
        cudaLimitPrintfFifoSize = 1,
        cudaLimitMallocHeapSize = 2,
        cudaLimitDevRuntimeSyncDepth = 3,
        cudaLimitDevRuntimePendingLaunchCount = 4,
        cudaLimitMaxL2FetchGranularity = 5,
        cudaLimitPersistingL2CacheSize = 6,
    }
}

c_enum! {
    /// What `cudaFuncSetAttribute` can set.
    cudaFuncAttribute {
        cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
        cudaFuncAttributePreferredSharedMemoryCarveout = 9,
        cudaFuncAttributeClusterDimMustBeSet = 10,
        cudaFuncAttributeRequiredClusterWidth = 11,
        cudaFuncAttributeRequiredClusterHeight = 12,
        cudaFuncAttributeRequiredClusterDepth = 13,
        cudaFuncAttributeNonPortableClusterSizeAllowed = 14,
        cudaFuncAttributeClusterSchedulingPolicyPreference = 15,
        cudaFuncAttributeMax = 16,
    }
}

c_enum! {
    /// Preferred split between L1 cache and shared memory.
    cudaFuncCache {
        cudaFuncCachePreferNone = 0,
        cudaFuncCachePreferShared = 1,
        cudaFuncCachePreferL1 = 2,
        cudaFuncCachePreferEqual = 3,
    }
}

c_enum! {
    /// Width of the shared memory banks.
    cudaSharedMemConfig {
        cudaSharedMemBankSizeDefault = 0,
        cudaSharedMemBankSizeFourByte = 1,
        cudaSharedMemBankSizeEightByte = 2,
    }
}

c_enum! {
    /// Where the memory behind a pointer is.
    cudaMemoryType {
        cudaMemoryTypeUnregistered = 0,
        cudaMemoryTypeHost = 1,
        cudaMemoryTypeDevice = 2,
        cudaMemoryTypeManaged = 3,
    }
}

c_enum! {
    /// Who may create contexts on a device.
    cudaComputeMode {
        cudaComputeModeDefault = 0,
        cudaComputeModeExclusive = 1,
        cudaComputeModeProhibited = 2,
        cudaComputeModeExclusiveProcess = 3,
    }
}

c_enum! {
    /// Kind of one channel of a texel.
    cudaChannelFormatKind {
        cudaChannelFormatKindSigned = 0,
        cudaChannelFormatKindUnsigned = 1,
        cudaChannelFormatKindFloat = 2,
        cudaChannelFormatKindNone = 3,
        cudaChannelFormatKindNV12 = 4,
        cudaChannelFormatKindUnsignedNormalized8X1 = 5,
        cudaChannelFormatKindUnsignedNormalized8X2 = 6,
        cudaChannelFormatKindUnsignedNormalized8X4 = 7,
        cudaChannelFormatKindUnsignedNormalized16X1 = 8,
        cudaChannelFormatKindUnsignedNormalized16X2 = 9,
        cudaChannelFormatKindUnsignedNormalized16X4 = 10,
        cudaChannelFormatKindSignedNormalized8X1 = 11,
        cudaChannelFormatKindSignedNormalized8X2 = 12,
        cudaChannelFormatKindSignedNormalized8X4 = 13,
        cudaChannelFormatKindSignedNormalized16X1 = 14,
        cudaChannelFormatKindSignedNormalized16X2 = 15,
        cudaChannelFormatKindSignedNormalized16X4 = 16,
        cudaChannelFormatKindUnsignedBlockCompressed1 = 17,
        cudaChannelFormatKindUnsignedBlockCompressed1SRGB = 18,
        cudaChannelFormatKindUnsignedBlockCompressed2 = 19,
        cudaChannelFormatKindUnsignedBlockCompressed2SRGB = 20,
        cudaChannelFormatKindUnsignedBlockCompressed3 = 21,
        cudaChannelFormatKindUnsignedBlockCompressed3SRGB = 22,
        cudaChannelFormatKindUnsignedBlockCompressed4 = 23,
        cudaChannelFormatKindSignedBlockCompressed4 = 24,
        cudaChannelFormatKindUnsignedBlockCompressed5 = 25,
        cudaChannelFormatKindSignedBlockCompressed5 = 26,
        cudaChannelFormatKindUnsignedBlockCompressed6H = 27,
        cudaChannelFormatKindSignedBlockCompressed6H = 28,
        cudaChannelFormatKindUnsignedBlockCompressed7 = 29,
        cudaChannelFormatKindUnsignedBlockCompressed7SRGB = 30,
        cudaChannelFormatKindUnsignedNormalized1010102 = 31,
    }
}

c_enum! {
    /// An option of the just-in-time compiler.
    cudaJitOption {
        cudaJitMaxRegisters = 0,
        cudaJitThreadsPerBlock = 1,
        cudaJitWallTime = 2,
        cudaJitInfoLogBuffer = 3,
        cudaJitInfoLogBufferSizeBytes = 4,
        cudaJitErrorLogBuffer = 5,
        cudaJitErrorLogBufferSizeBytes = 6,
        cudaJitOptimizationLevel = 7,
        cudaJitFallbackStrategy = 10,
        cudaJitGenerateDebugInfo = 11,
        cudaJitLogVerbose = 12,
        cudaJitGenerateLineInfo = 13,
        cudaJitCacheMode = 14,
        cudaJitPositionIndependentCode = 30,
        cudaJitMinCtaPerSm = 31,
        cudaJitMaxThreadsPerBlock = 32,
        cudaJitOverrideDirectiveValues = 33,
    }
}

c_enum! {
    /// An option of `cudaLibraryLoadData`.
    cudaLibraryOption {
        cudaLibraryHostUniversalFunctionAndDataTable = 0,
        cudaLibraryBinaryIsPreserved = 1,
    }
}

c_enum! {
    /// Whether a stream is being captured.
    cudaStreamCaptureStatus {
        cudaStreamCaptureStatusNone = 0,
        cudaStreamCaptureStatusActive = 1,
        cudaStreamCaptureStatusInvalidated = 2,
    }
}

c_enum! {
    /// How strictly a capture forbids unsafe calls.
    cudaStreamCaptureMode {
        cudaStreamCaptureModeGlobal = 0,
        cudaStreamCaptureModeThreadLocal = 1,
        cudaStreamCaptureModeRelaxed = 2,
    }
}

c_enum! {
    /// Advice on managed memory.
    cudaMemoryAdvise {
        cudaMemAdviseSetReadMostly = 1,
        cudaMemAdviseUnsetReadMostly = 2,
        cudaMemAdviseSetPreferredLocation = 3,
        cudaMemAdviseUnsetPreferredLocation = 4,
        cudaMemAdviseSetAccessedBy = 5,
        cudaMemAdviseUnsetAccessedBy = 6,
    }
}

c_enum! {
    /// What can be asked of a managed range.
    cudaMemRangeAttribute {
        cudaMemRangeAttributeReadMostly = 1,
        cudaMemRangeAttributePreferredLocation = 2,
        cudaMemRangeAttributeAccessedBy = 3,
        cudaMemRangeAttributeLastPrefetchLocation = 4,
        cudaMemRangeAttributePreferredLocationType = 5,
        cudaMemRangeAttributePreferredLocationId = 6,
        cudaMemRangeAttributeLastPrefetchLocationType = 7,
        cudaMemRangeAttributeLastPrefetchLocationId = 8,
    }
}

c_enum! {
    /// What can be asked about a pair of devices.
    cudaDeviceP2PAttr {
        cudaDevP2PAttrPerformanceRank = 1,
        cudaDevP2PAttrAccessSupported = 2,
        cudaDevP2PAttrNativeAtomicSupported = 3,
        cudaDevP2PAttrCudaArrayAccessSupported = 4,
        cudaDevP2PAttrOnlyPartialNativeAtomicSupported = 5,
    }
}

c_enum! {
    /// How `cudaGetDriverEntryPoint` fared.
    cudaDriverEntryPointQueryResult {
        cudaDriverEntryPointSuccess = 0,
        cudaDriverEntryPointSymbolNotFound = 1,
        cudaDriverEntryPointVersionNotSufficent = 2,
    }
}

c_enum! {
    /// The kind of place a memory location names.
    cudaMemLocationType {
        cudaMemLocationTypeInvalid = 0,
        cudaMemLocationTypeNone = 0,
        cudaMemLocationTypeDevice = 1,
        cudaMemLocationTypeHost = 2,
        cudaMemLocationTypeHostNuma = 3,
        cudaMemLocationTypeHostNumaCurrent = 4,
    }
}

c_enum! {
    /// The kind of memory a pool is made of.
    cudaMemAllocationType {
        cudaMemAllocationTypeInvalid = 0,
        cudaMemAllocationTypePinned = 1,
        cudaMemAllocationTypeManaged = 2,
        cudaMemAllocationTypeMax = 0x7fffffff,
    }
}

c_enum! {
    /// The kinds of shareable handle a pool supports.
    cudaMemAllocationHandleType {
        cudaMemHandleTypeNone = 0,
        cudaMemHandleTypePosixFileDescriptor = 1,
        cudaMemHandleTypeWin32 = 2,
        cudaMemHandleTypeWin32Kmt = 4,
        cudaMemHandleTypeFabric = 8,
    }
}

c_enum! {
    /// An attribute of a memory pool.
    cudaMemPoolAttr {
        cudaMemPoolReuseFollowEventDependencies = 1,
        cudaMemPoolReuseAllowOpportunistic = 2,
        cudaMemPoolReuseAllowInternalDependencies = 3,
        cudaMemPoolAttrReleaseThreshold = 4,
        cudaMemPoolAttrReservedMemCurrent = 5,
        cudaMemPoolAttrReservedMemHigh = 6,
        cudaMemPoolAttrUsedMemCurrent = 7,
        cudaMemPoolAttrUsedMemHigh = 8,
    }
}

c_enum! {
    /// What a device may do with memory.
    cudaMemAccessFlags {
        cudaMemAccessFlagsProtNone = 0,
        cudaMemAccessFlagsProtRead = 1,
        cudaMemAccessFlagsProtReadWrite = 3,
    }
}

c_enum! {
    /// What a texture or surface object reads.
    cudaResourceType {
        cudaResourceTypeArray = 0,
        cudaResourceTypeMipmappedArray = 1,
        cudaResourceTypeLinear = 2,
        cudaResourceTypePitch2D = 3,
    }
}

c_enum! {
    /// How a resource view reads its texels.
    cudaResourceViewFormat {
        cudaResViewFormatNone = 0,
        cudaResViewFormatUnsignedChar1 = 1,
        cudaResViewFormatUnsignedChar2 = 2,
        cudaResViewFormatUnsignedChar4 = 3,
        cudaResViewFormatSignedChar1 = 4,
        cudaResViewFormatSignedChar2 = 5,
        cudaResViewFormatSignedChar4 = 6,
        cudaResViewFormatUnsignedShort1 = 7,
        cudaResViewFormatUnsignedShort2 = 8,
        cudaResViewFormatUnsignedShort4 = 9,
        cudaResViewFormatSignedShort1 = 10,
        cudaResViewFormatSignedShort2 = 11,
        cudaResViewFormatSignedShort4 = 12,
        cudaResViewFormatUnsignedInt1 = 13,
        cudaResViewFormatUnsignedInt2 = 14,
        cudaResViewFormatUnsignedInt4 = 15,
        cudaResViewFormatSignedInt1 = 16,
        cudaResViewFormatSignedInt2 = 17,
        cudaResViewFormatSignedInt4 = 18,
        cudaResViewFormatHalf1 = 19,
        cudaResViewFormatHalf2 = 20,
        cudaResViewFormatHalf4 = 21,
        cudaResViewFormatFloat1 = 22,
        cudaResViewFormatFloat2 = 23,
        cudaResViewFormatFloat4 = 24,
        cudaResViewFormatUnsignedBlockCompressed1 = 25,
        cudaResViewFormatUnsignedBlockCompressed2 = 26,
        cudaResViewFormatUnsignedBlockCompressed3 = 27,
        cudaResViewFormatUnsignedBlockCompressed4 = 28,
        cudaResViewFormatSignedBlockCompressed4 = 29,
        cudaResViewFormatUnsignedBlockCompressed5 = 30,
        cudaResViewFormatSignedBlockCompressed5 = 31,
        cudaResViewFormatUnsignedBlockCompressed6H = 32,
        cudaResViewFormatSignedBlockCompressed6H = 33,
        cudaResViewFormatUnsignedBlockCompressed7 = 34,
    }
}

c_enum! {
    /// What a texture read outside the texture gives.
    cudaTextureAddressMode {
        cudaAddressModeWrap = 0,
        cudaAddressModeClamp = 1,
        cudaAddressModeMirror = 2,
        cudaAddressModeBorder = 3,
    }
}

c_enum! {
    /// How a texture read between texels is made up.
    cudaTextureFilterMode {
        cudaFilterModePoint = 0,
        cudaFilterModeLinear = 1,
    }
}

c_enum! {
    /// Whether integer texels are read as they are or scaled to the unit range.
    cudaTextureReadMode {
        cudaReadModeElementType = 0,
        cudaReadModeNormalizedFloat = 1,
    }
}

c_enum! {
    /// Whose remote writes to flush.
    cudaFlushGPUDirectRDMAWritesTarget {
        cudaFlushGPUDirectRDMAWritesTargetCurrentDevice = 0,
    }
}

c_enum! {
    /// For whom remote writes are flushed.
    cudaFlushGPUDirectRDMAWritesScope {
        cudaFlushGPUDirectRDMAWritesToOwner = 100,
        cudaFlushGPUDirectRDMAWritesToAllDevices = 200,
    }
}
