//! Device management, version checks and entry points.

use std::mem::MaybeUninit;

use super::common::*;

fn properties() -> cudaDeviceProp {
    let mut properties = MaybeUninit::uninit();
    cuda!(cudaGetDeviceProperties(properties.as_mut_ptr(), 0));
    // SAFETY: the call wrote them.
    unsafe { properties.assume_init() }
}

pub fn properties_are_the_attributes() {
    let p = properties();
    let name = text_of(p.name.as_ptr());
    assert!(!name.is_empty());
    let (mut of_driver, mut total) = ([0 as c_char; 256], 0);
    {
        use driver::*;
        cu!(cuDeviceGetName(of_driver.as_mut_ptr(), 256, 0); cuDeviceTotalMem_v2(&mut total, 0));
    }
    assert_eq!((text_of(of_driver.as_ptr()), total), (name, p.totalGlobalMem));
    let number = |attribute_of| attribute(attribute_of) as i64;
    for (what, is, should) in [
        ("warpSize", i64::from(p.warpSize), number(cudaDevAttrWarpSize)),
        ("major", p.major.into(), number(cudaDevAttrComputeCapabilityMajor)),
        ("minor", p.minor.into(), number(cudaDevAttrComputeCapabilityMinor)),
        ("multiProcessorCount", p.multiProcessorCount.into(), number(cudaDevAttrMultiProcessorCount)),
        ("maxThreadsPerBlock", p.maxThreadsPerBlock.into(), number(cudaDevAttrMaxThreadsPerBlock)),
        ("maxThreadsDim", p.maxThreadsDim[2].into(), number(cudaDevAttrMaxBlockDimZ)),
        ("maxGridSize", p.maxGridSize[1].into(), number(cudaDevAttrMaxGridDimY)),
        ("sharedMemPerBlock", p.sharedMemPerBlock as i64, number(cudaDevAttrMaxSharedMemoryPerBlock)),
        (
            "sharedMemPerBlockOptin",
            p.sharedMemPerBlockOptin as i64,
            number(cudaDevAttrMaxSharedMemoryPerBlockOptin),
        ),
        ("regsPerBlock", p.regsPerBlock.into(), number(cudaDevAttrMaxRegistersPerBlock)),
        ("totalConstMem", p.totalConstMem as i64, number(cudaDevAttrTotalConstantMemory)),
        ("l2CacheSize", p.l2CacheSize.into(), number(cudaDevAttrL2CacheSize)),
        ("managedMemory", p.managedMemory.into(), number(cudaDevAttrManagedMemory)),
        ("unifiedAddressing", p.unifiedAddressing.into(), number(cudaDevAttrUnifiedAddressing)),
        ("cooperativeLaunch", p.cooperativeLaunch.into(), number(cudaDevAttrCooperativeLaunch)),
        ("memoryPoolsSupported", p.memoryPoolsSupported.into(), number(cudaDevAttrMemoryPoolsSupported)),
        ("pciBusID", p.pciBusID.into(), number(cudaDevAttrPciBusId)),
        ("clusterLaunch", p.clusterLaunch.into(), number(cudaDevAttrClusterLaunch)),
        ("hostRegisterSupported", p.hostRegisterSupported.into(), number(cudaDevAttrHostRegisterSupported)),
        ("textureAlignment", p.textureAlignment as i64, number(cudaDevAttrTextureAlignment)),
        ("memPitch", p.memPitch as i64, number(cudaDevAttrMaxPitch)),
    ] {
        assert_eq!(is, should, "{what}");
    }
    fails!(cudaErrorInvalidValue, cudaGetDeviceProperties(null_mut(), 0));
    let mut other = MaybeUninit::uninit();
    fails!(cudaErrorInvalidDevice, cudaGetDeviceProperties(other.as_mut_ptr(), 99));
}

pub fn attributes_that_do_not_exist() {
    let mut value = 0;
    for number in [0, 9999, u32::MAX] {
        fails!(cudaErrorInvalidValue, cudaDeviceGetAttribute(&mut value, cudaDeviceAttr(number), 0));
    }
    fails!(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&mut value, cudaDevAttrWarpSize, 9));
    fails!(cudaErrorInvalidValue, cudaDeviceGetAttribute(null_mut(), cudaDevAttrWarpSize, 0));
}

pub fn choosing_a_device() {
    let (wanted, mut device) = (properties(), -1);
    cuda!(cudaChooseDevice(&mut device, &wanted));
    assert_eq!(device, 0);
    let mut list = [0];
    cuda!(cudaSetValidDevices(list.as_mut_ptr(), 1));
    cuda!(cudaFree(null_mut()));
    cuda!(cudaGetDevice(&mut device));
    assert_eq!(device, 0);
    fails!(cudaErrorInvalidValue, cudaChooseDevice(null_mut(), &wanted));
    fails!(cudaErrorInvalidValue, cudaChooseDevice(&mut device, null()));
}

pub fn valid_devices_must_exist() {
    let mut list = [99];
    fails!(cudaErrorInvalidDevice, cudaSetValidDevices(list.as_mut_ptr(), 1));
    fails!(cudaErrorInvalidValue, cudaSetValidDevices(list.as_mut_ptr(), -1));
}

pub fn a_devices_place_on_the_bus() {
    let (mut place, mut device) = ([0 as c_char; 32], -1);
    cuda!(cudaDeviceGetPCIBusId(place.as_mut_ptr(), 32, 0); cudaDeviceGetByPCIBusId(&mut device, place.as_ptr()));
    assert_eq!(device, 0);
    let p = properties();
    let expected = format!("{:04x}:{:02x}:{:02x}.0", p.pciDomainID, p.pciBusID, p.pciDeviceID);
    assert_eq!(text_of(place.as_ptr()).to_lowercase(), expected);
    fails!(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(null_mut(), 32, 0));
    fails!(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(place.as_mut_ptr(), 0, 0));
    fails!(cudaErrorInvalidDevice, cudaDeviceGetPCIBusId(place.as_mut_ptr(), 32, 99));
    fails!(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(null_mut(), place.as_ptr()));
    fails!(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&mut device, null()));
}

pub fn limits_and_configurations_of_a_context() {
    let mut value = 0;
    for (limit, usual) in [
        (cudaLimitStackSize, 1024),
        (cudaLimitPrintfFifoSize, 8_650_752),
        (cudaLimitMallocHeapSize, 8_388_608),
    ] {
        cuda!(cudaDeviceGetLimit(&mut value, limit));
        assert_eq!(value, usual, "{limit:?}");
    }
    cuda!(cudaDeviceSetLimit(cudaLimitStackSize, 1000); cudaDeviceGetLimit(&mut value, cudaLimitStackSize));
    assert_eq!(value, 1008);
    fails!(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitStackSize, 1 << 30));
    fails!(cudaErrorInvalidValue, cudaDeviceGetLimit(&mut value, cudaLimit(99)));
    fails!(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&mut value, cudaLimitDevRuntimeSyncDepth));
    let (mut cache, mut banks) = (cudaFuncCache(9), cudaSharedMemConfig(9));
    cuda!(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1); cudaDeviceGetCacheConfig(&mut cache));
    assert_eq!(cache, cudaFuncCachePreferL1);
    cuda!(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte); cudaDeviceGetSharedMemConfig(&mut banks));
    // Devices of today have no choice, and may say so or not.
    assert!([cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte].contains(&banks), "{banks:?}");
    fails!(cudaErrorInvalidValue, cudaDeviceGetSharedMemConfig(null_mut()));
    fails!(cudaErrorInvalidValue, cudaDeviceSetCacheConfig(cudaFuncCache(9)));
}

pub fn flags_of_a_device() {
    let mut flags = 0;
    cuda!(cudaGetDeviceFlags(&mut flags));
    assert_eq!(flags, cudaDeviceMapHost);
    cuda!(cudaSetDeviceFlags(cudaDeviceScheduleYield); cudaGetDeviceFlags(&mut flags));
    assert_eq!(flags, cudaDeviceScheduleYield | cudaDeviceMapHost);
    cuda!(cudaFree(null_mut()); cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync); cudaGetDeviceFlags(&mut flags));
    assert_eq!(flags, cudaDeviceScheduleBlockingSync | cudaDeviceMapHost);
    fails!(cudaErrorInvalidValue, cudaSetDeviceFlags(0x1000));
    fails!(cudaErrorInvalidValue, cudaGetDeviceFlags(null_mut()));
    cuda!(cudaInitDevice(0, 0, 0));
    fails!(cudaErrorInvalidDevice, cudaInitDevice(99, 0, 0));
}

pub fn a_device_is_not_its_own_peer() {
    let mut can = 9;
    cuda!(cudaDeviceCanAccessPeer(&mut can, 0, 0));
    assert_eq!(can, 0);
    fails!(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0));
    fails!(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(99, 0));
    fails!(cudaErrorInvalidDevice, cudaDeviceDisablePeerAccess(99));
    fails!(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&mut can, 0, 99));
    fails!(cudaErrorInvalidDevice, cudaDeviceGetP2PAttribute(&mut can, cudaDevP2PAttrAccessSupported, 0, 99));
    fails!(cudaErrorInvalidValue, cudaDeviceCanAccessPeer(null_mut(), 0, 0));
}

pub fn entry_points_of_the_driver() {
    let mut status = cudaDriverEntryPointQueryResult(9);
    let (mut address, mut newer) = (null_mut(), null_mut());
    let name = c"cuCtxGetDevice".as_ptr();
    cuda!(cudaGetDriverEntryPointByVersion(name, &mut address, 12000, cudaEnableDefault, &mut status));
    assert_eq!(status, cudaDriverEntryPointSuccess);
    cuda!(cudaGetDriverEntryPointByVersion(name, &mut newer, 13000, cudaEnableDefault, &mut status));
    assert!(!address.is_null() && !newer.is_null() && address != newer);
    let (mut usual, mut own) = (null_mut(), null_mut());
    let name = c"cuStreamQuery".as_ptr();
    cuda!(cudaGetDriverEntryPoint(name, &mut usual, cudaEnableDefault, &mut status));
    cuda!(cudaGetDriverEntryPoint_ptsz(name, &mut own, cudaEnableDefault, &mut status));
    assert_ne!(usual, own);
    cuda!(cudaGetDriverEntryPoint(name, &mut usual, cudaEnablePerThreadDefaultStream, null_mut()));
    assert_eq!(usual, own);
    cuda!(cudaGetDriverEntryPointByVersion_ptsz(name, &mut usual, 13000, cudaEnableDefault, &mut status));
    assert_eq!(usual, own);
    cuda!(cudaGetDriverEntryPointByVersion(c"cuNoSuchFunction".as_ptr(), &mut usual, 13000, 0, &mut status));
    assert_eq!((status, usual), (cudaDriverEntryPointSymbolNotFound, null_mut()));
    if our_runtime_only("NVIDIA's driver follows null, and its runtime passes it on") {
        fails!(
            cudaErrorInvalidValue,
            cudaGetDriverEntryPointByVersion(null(), &mut usual, 13000, 0, &mut status)
        );
        fails!(
            cudaErrorInvalidValue,
            cudaGetDriverEntryPointByVersion(name, null_mut(), 13000, 0, &mut status)
        );
    }
}

pub fn memory_of_another_process_is_not_ones_own() {
    let (pointer, mut again) = (malloc(1 << 21), null_mut());
    let mut handle = MaybeUninit::uninit();
    cuda!(cudaIpcGetMemHandle(handle.as_mut_ptr(), pointer));
    // SAFETY: the call wrote it.
    let handle: cudaIpcMemHandle_t = unsafe { handle.assume_init() };
    fails!(
        cudaErrorDeviceUninitialized,
        cudaIpcOpenMemHandle(&mut again, handle, cudaIpcMemLazyEnablePeerAccess)
    );
    if our_runtime_only("NVIDIA's runtime writes to null") {
        fails!(cudaErrorInvalidValue, cudaIpcGetMemHandle(null_mut(), pointer));
    }
    fails!(cudaErrorInvalidValue, cudaIpcCloseMemHandle(pointer));
}

pub fn notifications_are_registered() {
    unsafe extern "C" fn note(
        _: *mut driver::CUasyncNotificationInfo,
        _: *mut c_void,
        _: cudaAsyncCallbackHandle_t,
    ) {
    }
    let mut handle = cudaAsyncCallbackHandle_t::NULL;
    cuda!(cudaDeviceRegisterAsyncNotification(0, Some(note), null_mut(), &mut handle));
    assert!(!handle.is_null());
    cuda!(cudaDeviceUnregisterAsyncNotification(0, handle));
    fails!(
        cudaErrorInvalidDevice,
        cudaDeviceRegisterAsyncNotification(99, Some(note), null_mut(), &mut handle)
    );
    if our_runtime_only("NVIDIA's driver writes to null, and its runtime passes it on") {
        fails!(
            cudaErrorInvalidValue,
            cudaDeviceRegisterAsyncNotification(0, Some(note), null_mut(), null_mut())
        );
    }
}
