//! Flags and other constants that travel as plain numbers.

use super::cudaStream_t;

c_consts! {
    cudaHostAllocDefault: u32 = 0;
    cudaHostAllocPortable: u32 = 1;
    cudaHostAllocMapped: u32 = 2;
    cudaHostAllocWriteCombined: u32 = 4;
    cudaHostRegisterDefault: u32 = 0;
    cudaHostRegisterPortable: u32 = 1;
    cudaHostRegisterMapped: u32 = 2;
    cudaHostRegisterIoMemory: u32 = 4;
    cudaHostRegisterReadOnly: u32 = 8;
    cudaPeerAccessDefault: u32 = 0;
    cudaStreamLegacy: cudaStream_t = crate::driver::CUstream(1);
    cudaStreamPerThread: cudaStream_t = crate::driver::CUstream(2);
    cudaStreamDefault: u32 = 0;
    cudaStreamNonBlocking: u32 = 1;
    cudaEventDefault: u32 = 0;
    cudaEventBlockingSync: u32 = 1;
    cudaEventDisableTiming: u32 = 2;
    cudaEventInterprocess: u32 = 4;
    cudaEventRecordDefault: u32 = 0;
    cudaEventRecordExternal: u32 = 1;
    cudaEventWaitDefault: u32 = 0;
    cudaEventWaitExternal: u32 = 1;
    cudaDeviceScheduleAuto: u32 = 0;
    cudaDeviceScheduleSpin: u32 = 1;
    cudaDeviceScheduleYield: u32 = 2;
    cudaDeviceScheduleBlockingSync: u32 = 4;
    cudaDeviceScheduleMask: u32 = 7;
    cudaDeviceMapHost: u32 = 8;
    cudaDeviceLmemResizeToMax: u32 = 16;
    cudaDeviceSyncMemops: u32 = 128;
    cudaDeviceMask: u32 = 255;
    cudaInitDeviceFlagsAreValid: u32 = 1;
    cudaArrayDefault: u32 = 0;
    cudaArrayLayered: u32 = 0x01;
    cudaArraySurfaceLoadStore: u32 = 0x02;
    cudaArrayCubemap: u32 = 0x04;
    cudaArrayTextureGather: u32 = 0x08;
    cudaArrayColorAttachment: u32 = 0x20;
    cudaArraySparse: u32 = 0x40;
    cudaArrayDeferredMapping: u32 = 0x80;
    cudaMemAttachGlobal: u32 = 1;
    cudaMemAttachHost: u32 = 2;
    cudaMemAttachSingle: u32 = 4;
    cudaOccupancyDefault: u32 = 0;
    cudaOccupancyDisableCachingOverride: u32 = 1;
    cudaCpuDeviceId: i32 = -1;
    cudaInvalidDeviceId: i32 = -2;
    cudaIpcMemLazyEnablePeerAccess: u32 = 1;
    cudaEnableDefault: u64 = 0;
    cudaEnableLegacyStream: u64 = 1;
    cudaEnablePerThreadDefaultStream: u64 = 2;
}
