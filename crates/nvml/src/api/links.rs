//! How devices are connected: all of them are the same processors and the same memory.

use super::{find, handle_of, not_there};
use cuda_abi::args::{Array, Out};
use cuda_abi::nvml::*;
use entry_macros::entry_point;

#[entry_point]
fn nvmlDeviceOnSameBoard(device1: nvmlDevice_t, device2: nvmlDevice_t, onSameBoard: Out<i32>) -> NvmlResult {
    find(device1)?;
    find(device2)?;
    onSameBoard.set(1)?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetTopologyCommonAncestor(
    device1: nvmlDevice_t,
    device2: nvmlDevice_t,
    pathInfo: Out<nvmlGpuTopologyLevel_t>,
) -> NvmlResult {
    pathInfo.check()?;
    if find(device1)?.index == find(device2)?.index {
        return Err(NVML_ERROR_NOT_SUPPORTED);
    }
    pathInfo.set(NVML_TOPOLOGY_INTERNAL)?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetTopologyNearestGpus(
    device: nvmlDevice_t,
    level: nvmlGpuTopologyLevel_t,
    count: Out<u32>,
    deviceArray: Array<nvmlDevice_t>,
) -> NvmlResult {
    // SAFETY: where not null, the manual wants a number there.
    let room = unsafe { count.check()?.as_ptr().read_unaligned() };
    let found = find(device)?;
    let others = found.machine.devices().iter().filter(|other| other.index != found.index);
    let near: Vec<_> = others.filter(|_| level == NVML_TOPOLOGY_INTERNAL).map(handle_of).collect();
    count.set(near.len() as u32)?;
    for (index, handle) in near.into_iter().take(room as usize).enumerate() {
        deviceArray.set(index, handle)?;
    }
    Ok(())
}

/// A device is not its own peer. All others read, write and change each other's memory as their own; there is neither NVLink nor a bus between them.
#[entry_point]
fn nvmlDeviceGetP2PStatus(
    device1: nvmlDevice_t,
    device2: nvmlDevice_t,
    p2pIndex: nvmlGpuP2PCapsIndex_t,
    p2pStatus: Out<nvmlGpuP2PStatus_t>,
) -> NvmlResult {
    p2pStatus.check()?;
    if find(device1)?.index == find(device2)?.index {
        p2pStatus.set(NVML_P2P_STATUS_NOT_SUPPORTED)?;
        return Ok(());
    }
    p2pStatus.set(match p2pIndex {
        NVML_P2P_CAPS_INDEX_READ | NVML_P2P_CAPS_INDEX_WRITE | NVML_P2P_CAPS_INDEX_ATOMICS => {
            NVML_P2P_STATUS_OK
        }
        NVML_P2P_CAPS_INDEX_NVLINK | NVML_P2P_CAPS_INDEX_PCI => NVML_P2P_STATUS_NOT_SUPPORTED,
        _ => return Err(NVML_ERROR_INVALID_ARGUMENT),
    })?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetNvLinkState(
    device: nvmlDevice_t,
    _link: u32,
    isActive: Out<nvmlEnableState_t>,
) -> NvmlResult {
    isActive.check()?;
    not_there(device)
}

#[entry_point]
fn nvmlDeviceGetNvLinkVersion(device: nvmlDevice_t, _link: u32, version: Out<u32>) -> NvmlResult {
    version.check()?;
    not_there(device)
}

#[entry_point]
fn nvmlDeviceGetNvLinkCapability(
    device: nvmlDevice_t,
    link: u32,
    _capability: u32,
    capResult: Out<u32>,
) -> NvmlResult {
    capResult.check()?;
    no_link(device, link)
}

#[entry_point]
fn nvmlDeviceGetNvLinkRemotePciInfo(device: nvmlDevice_t, link: u32, pci: Out<nvmlPciInfo_t>) -> NvmlResult {
    pci.check()?;
    no_link(device, link)
}

#[entry_point]
fn nvmlDeviceGetNvLinkRemotePciInfo_v2(
    device: nvmlDevice_t,
    link: u32,
    pci: Out<nvmlPciInfo_t>,
) -> NvmlResult {
    pci.check()?;
    no_link(device, link)
}

/// Links that a device may have at most.
const MAX_LINKS: u32 = 18;

fn no_link(handle: nvmlDevice_t, link: u32) -> NvmlResult {
    if link >= MAX_LINKS {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    not_there(handle)
}
