//! Device management.

use super::common::*;
use crate::facts;

pub fn devices_are_numbered_from_zero() {
    init();
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count));
    for ordinal in 0..count {
        let mut device = -1;
        cu!(cuDeviceGet(&mut device, ordinal));
        assert_eq!(device, ordinal);
    }
    let mut device = 0;
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, count));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, 99));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, -1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(null_mut()));
}

pub fn a_name_is_cut_to_the_buffer() {
    init();
    let name_in = |len: i32| {
        let mut buffer = [0x55 as c_char; 256];
        cu!(cuDeviceGetName(buffer.as_mut_ptr(), len, 0));
        assert!(buffer[len as usize..].iter().all(|byte| *byte == 0x55), "written past {len}");
        text_of(buffer.as_ptr())
    };
    let name = name_in(200);
    assert!(name.len() > 4, "{name}");
    assert_eq!(name_in(5), name[..4]);
    assert_eq!(name_in(1), "");
    let mut buffer = [0 as c_char; 16];
    if ours_only("NVIDIA's driver writes to null, and before a buffer without bytes") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(null_mut(), 16, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(buffer.as_mut_ptr(), 0, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(buffer.as_mut_ptr(), -1, 0));
    }
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(buffer.as_mut_ptr(), 16, 99));
}

pub fn identities_are_the_same_by_every_function() {
    init();
    let mut ids = [CUuuid { bytes: [0; 16] }; 2];
    cu!(cuDeviceGetUuid(&mut ids[0], 0); cuDeviceGetUuid_v2(&mut ids[1], 0));
    assert_eq!(ids[0].bytes, ids[1].bytes);
    assert_ne!(ids[0].bytes, [0; 16]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetUuid(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetUuid_v2(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetUuid(&mut ids[0], 99));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetUuid_v2(&mut ids[0], -1));
}

pub fn there_is_no_luid_outside_windows() {
    init();
    let (mut luid, mut mask) = ([0x55 as c_char; 8], 0x55);
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetLuid(luid.as_mut_ptr(), &mut mask, 0));
}

pub fn total_memory_is_what_a_context_sees() {
    new_context();
    let (mut total, mut free, mut of_context) = (0, 0, 0);
    cu!(cuDeviceTotalMem_v2(&mut total, 0); cuMemGetInfo_v2(&mut free, &mut of_context));
    assert_eq!(total, of_context);
    assert!(free > 0 && free <= total, "{free} of {total}");
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem_v2(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem_v2(&mut total, 99));
}

/// The first version tells 32 bits.
pub fn total_memory_by_the_first_version_is_cut() {
    init();
    let (mut total, mut cut) = (0, [0x5555_5555_u32; 2]);
    cu!(cuDeviceTotalMem_v2(&mut total, 0); cuDeviceTotalMem(&mut cut[0], 0));
    assert_eq!(u64::from(cut[0]), (total as u64).min(u64::from(u32::MAX)));
    assert_eq!(cut[1], 0x5555_5555);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem(&mut cut[0], 99));
}

/// Attributes that belong to the machine: any value is right.
const OF_THE_MACHINE: &[CUdevice_attribute] = &[
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
    CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
    CU_DEVICE_ATTRIBUTE_NUMA_ID,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
    CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID,
    CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID,
];

/// Attributes in which a processor is not a GPU, and why.
const OURS: &[(CUdevice_attribute, i32, &str)] = &[
    (CU_DEVICE_ATTRIBUTE_INTEGRATED, 1, "device memory is the host's"),
    (CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0, "the host's memory does not tell"),
    (CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1, "copies are done by the processor's cores"),
    (CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 1, "host and device have the same atomics"),
    (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1, "kernels can reach all of the process's memory"),
    (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 1, "kernels run in the process"),
    (CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 1, "managed memory never moves"),
    (CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0, "memory is not compressed"),
    (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0, "no other hardware reaches device memory"),
    (
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
        0,
        "no other hardware reaches device memory",
    ),
    (CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 1, "there is no fabric"),
    (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0, "no other hardware reaches device memory"),
    (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0, "no other hardware reaches device memory"),
    (CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0, "there is no fabric"),
    (CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 7, "a processor unpacks what it is told to"),
    (CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, i32::MAX, "a processor unpacks what it is told to"),
];

/// What is not implemented says 0; it may become what a GPU says without a change here.
const NOT_YET: &[CUdevice_attribute] = &[
    CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS,
];

pub fn every_attribute_has_a_gpus_value_or_a_reason() {
    init();
    let mut wrong = Vec::new();
    for [number, value, name] in facts::rows(facts::DEVICE_ATTRIBUTES) {
        let wanted = CUdevice_attribute(number.parse().expect("a number"));
        let answer = attribute(wanted);
        if OF_THE_MACHINE.contains(&wanted) {
            continue;
        }
        let value: i32 = value.parse().expect("a number");
        let right = match OURS.iter().find(|(attribute, _, _)| *attribute == wanted) {
            Some((_, ours, why)) => differs(&format!("{name}: {why}"), *ours, value),
            None if NOT_YET.contains(&wanted) && answer == 0 => {
                differs(&format!("{name}: not implemented"), 0, value)
            }
            None => value,
        };
        if answer != right {
            wrong.push(format!("{name} ({number}) is {answer} and should be {right}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}

pub fn attributes_of_the_machine_are_plausible() {
    init();
    assert!(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
    assert!(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) > 100_000);
    assert!(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) > 1 << 18);
}

pub fn what_is_no_attribute_is_refused() {
    init();
    let mut value = 0;
    for number in [0, 148, 199, 12345, u32::MAX] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&mut value, CUdevice_attribute(number), 0));
    }
    const WARP: CUdevice_attribute = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(null_mut(), WARP, 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&mut value, WARP, 99));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&mut value, WARP, -1));
}

pub fn properties_are_attributes() {
    init();
    // SAFETY: a structure of numbers.
    let mut properties: CUdevprop = unsafe { std::mem::zeroed() };
    cu!(cuDeviceGetProperties(&mut properties, 0));
    assert_eq!(properties.maxThreadsPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    assert_eq!(properties.maxThreadsDim, [1024, 1024, 64]);
    assert_eq!(properties.maxGridSize, [i32::MAX, 65535, 65535]);
    assert_eq!(properties.sharedMemPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    assert_eq!(properties.totalConstantMemory, attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY));
    assert_eq!(properties.SIMDWidth, 32);
    assert_eq!(properties.memPitch, attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH));
    assert_eq!(properties.regsPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
    assert_eq!(properties.clockRate, attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
    assert_eq!(properties.textureAlign, attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetProperties(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetProperties(&mut properties, 99));
}

pub fn the_compute_capability_is_an_attribute() {
    init();
    let (mut major, mut minor) = (0, -1);
    cu!(cuDeviceComputeCapability(&mut major, &mut minor, 0));
    assert_eq!(major, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
    assert_eq!(minor, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceComputeCapability(null_mut(), &mut minor, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceComputeCapability(&mut major, null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceComputeCapability(&mut major, &mut minor, 99));
}

pub fn a_pci_bus_id_finds_its_device() {
    init();
    let mut buffer = [0 as c_char; 32];
    cu!(cuDeviceGetPCIBusId(buffer.as_mut_ptr(), 32, 0));
    let id = text_of(buffer.as_ptr());
    assert_eq!(id.len(), "0000:00:00.0".len(), "{id}");
    let find = |id: &str| {
        let (id, mut device) = (CString::new(id).expect("no NUL inside"), -1);
        // SAFETY: a place for the answer and a text.
        (unsafe { cuDeviceGetByPCIBusId(&mut device, id.as_ptr()) }, device)
    };
    assert_eq!(find(&id), (CUDA_SUCCESS, 0));
    assert_eq!(find(&id[..10]), (CUDA_SUCCESS, 0), "without function");
    assert_eq!(find(&id[5..]), (CUDA_SUCCESS, 0), "without domain");
    assert_eq!(find(&id[5..10]).0, CUDA_ERROR_INVALID_VALUE, "with neither");
    assert_eq!(find("1234:fe:1f.0").0, CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(find("no bus").0, CUDA_ERROR_INVALID_VALUE);
    let mut device = 0;
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(null_mut(), buffer.as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&mut device, null()));
}

pub fn a_pci_bus_id_needs_room() {
    init();
    let mut buffer = [0 as c_char; 32];
    cu!(cuDeviceGetPCIBusId(buffer.as_mut_ptr(), 13, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(buffer.as_mut_ptr(), 12, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(buffer.as_mut_ptr(), 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(null_mut(), 32, 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetPCIBusId(buffer.as_mut_ptr(), 32, 99));
}

pub fn a_linear_texture_is_as_wide_as_the_device_says() {
    init();
    let widest = |format, channels| {
        let mut width = 0;
        cu!(cuDeviceGetTexture1DLinearMaxWidth(&mut width, format, channels, 0));
        width
    };
    assert_eq!(widest(CU_AD_FORMAT_FLOAT, 1), 1 << 30);
    assert_eq!(widest(CU_AD_FORMAT_FLOAT, 4), 1 << 28);
    assert_eq!([1, 4].map(|channels| widest(CU_AD_FORMAT_UNSIGNED_INT8, channels)), [1 << 30; 2]);
    let mut width = 0;
    const FLOAT: CUarray_format = CU_AD_FORMAT_FLOAT;
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(null_mut(), FLOAT, 1, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(&mut width, FLOAT, 3, 0));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceGetTexture1DLinearMaxWidth(&mut width, CUarray_format(0x7777), 1, 0)
    );
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetTexture1DLinearMaxWidth(&mut width, FLOAT, 1, 99));
}

pub fn affinity_to_multiprocessors_is_a_matter_of_mps() {
    init();
    let mut supported = 7;
    cu!(cuDeviceGetExecAffinitySupport(&mut supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    assert!(matches!(supported, 0 | 1), "{supported}");
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceGetExecAffinitySupport(null_mut(), CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0)
    );
    cu!(cuDeviceGetExecAffinitySupport(&mut supported, CUexecAffinityType(99), 0));
    assert_eq!(supported, 0);
    fails!(
        CUDA_ERROR_INVALID_DEVICE,
        cuDeviceGetExecAffinitySupport(&mut supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 99)
    );
}

pub fn memory_pools_of_the_device_are_one_by_default() {
    init();
    let mut pools = [CUmemoryPool::NULL; 2];
    cu!(cuDeviceGetDefaultMemPool(&mut pools[0], 0); cuDeviceGetMemPool(&mut pools[1], 0));
    assert!(!pools[0].is_null());
    assert_eq!(pools[0], pools[1]);
    cu!(cuDeviceSetMemPool(0, pools[0]));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetDefaultMemPool(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetMemPool(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, CUmemoryPool::NULL));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDefaultMemPool(&mut pools[0], 99));
}

pub fn host_atomics_are_told_by_operation() {
    init();
    let operations = [CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_FLOAT_ADD];
    let mut capabilities = [0x5555_u32; 2];
    cu!(cuDeviceGetHostAtomicCapabilities(capabilities.as_mut_ptr(), operations.as_ptr(), 2, 0));
    assert!(capabilities.iter().all(|bits| *bits != 0x5555), "{capabilities:x?}");
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceGetHostAtomicCapabilities(capabilities.as_mut_ptr(), operations.as_ptr(), 0, 0)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceGetHostAtomicCapabilities(null_mut(), operations.as_ptr(), 2, 0)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceGetHostAtomicCapabilities(capabilities.as_mut_ptr(), null(), 2, 0)
    );
    fails!(
        CUDA_ERROR_INVALID_DEVICE,
        cuDeviceGetHostAtomicCapabilities(capabilities.as_mut_ptr(), operations.as_ptr(), 2, 99)
    );
}

pub fn attributes_of_nv_sci_sync_are_not_there() {
    init();
    let mut list = [0_u64; 8];
    let list: *mut c_void = list.as_mut_ptr().cast();
    let both = CUDA_NVSCISYNC_ATTR_SIGNAL | CUDA_NVSCISYNC_ATTR_WAIT;
    for flags in [CUDA_NVSCISYNC_ATTR_SIGNAL, CUDA_NVSCISYNC_ATTR_WAIT, both] {
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetNvSciSyncAttributes(list, 0, flags));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetNvSciSyncAttributes(list, 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetNvSciSyncAttributes(list, 0, 4));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetNvSciSyncAttributes(list, 99, 1));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuDeviceGetNvSciSyncAttributes(null_mut(), 0, 1));
}
