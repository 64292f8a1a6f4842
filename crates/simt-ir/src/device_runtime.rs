//! The functions of the runtime that kernels call: launches of kernels and graphs, and what belongs to them (the chapter on dynamic
//! parallelism of CUDA's programming guide).
//!
//! A program declares them, with the prefix of their interface (`__cudaCDP2LaunchDeviceV2`) or under their plain names
//! (`cudaLaunchDeviceV2`), and the device provides them.

use crate::Type;
use Type::{I32, I64};

/// A function of the runtime, on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "they are CUDA's names")]
pub enum RuntimeFunction {
    DeviceGetAttribute,
    DeviceGetLimit,
    DeviceGetCacheConfig,
    DeviceGetSharedMemConfig,
    GetLastError,
    PeekAtLastError,
    GetErrorString,
    GetErrorName,
    GetDeviceCount,
    GetDevice,
    StreamCreateWithFlags,
    StreamDestroy,
    StreamWaitEvent,
    EventCreateWithFlags,
    EventRecord,
    EventRecordWithFlags,
    EventDestroy,
    FuncGetAttributes,
    Malloc,
    Free,
    MemcpyAsync,
    Memcpy2DAsync,
    Memcpy3DAsync,
    MemsetAsync,
    Memset2DAsync,
    Memset3DAsync,
    RuntimeGetVersion,
    OccupancyMaxActiveBlocksPerMultiprocessor,
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    GetParameterBuffer,
    GetParameterBufferV2,
    LaunchDevice,
    LaunchDeviceV2,
    GraphLaunch,
    GraphKernelNodeSetParam,
    GraphKernelNodeSetEnabled,
    GraphKernelNodeSetGridDim,
    GraphKernelNodeUpdatesApply,
    AlignedMalloc,
}

/// What a program calls it, what it takes and what it gives. A structure is passed by its address.
struct Interface {
    function: RuntimeFunction,
    name: &'static str,
    params: &'static [Type],
    result: Type,
}

macro_rules! interfaces {
    ($($function:ident($($param:ident),*) -> $result:ident;)*) => {
        [$(Interface {
            function: RuntimeFunction::$function,
            name: stringify!($function),
            params: &[$($param),*],
            result: $result,
        }),*]
    };
}

/// In the order of the enumeration.
static INTERFACES: [Interface; 39] = interfaces! {
    DeviceGetAttribute(I64, I32, I32) -> I32;
    DeviceGetLimit(I64, I32) -> I32;
    DeviceGetCacheConfig(I64) -> I32;
    DeviceGetSharedMemConfig(I64) -> I32;
    GetLastError() -> I32;
    PeekAtLastError() -> I32;
    GetErrorString(I32) -> I64;
    GetErrorName(I32) -> I64;
    GetDeviceCount(I64) -> I32;
    GetDevice(I64) -> I32;
    StreamCreateWithFlags(I64, I32) -> I32;
    StreamDestroy(I64) -> I32;
    StreamWaitEvent(I64, I64, I32) -> I32;
    EventCreateWithFlags(I64, I32) -> I32;
    EventRecord(I64, I64) -> I32;
    EventRecordWithFlags(I64, I64, I32) -> I32;
    EventDestroy(I64) -> I32;
    FuncGetAttributes(I64, I64) -> I32;
    Malloc(I64, I64) -> I32;
    Free(I64) -> I32;
    MemcpyAsync(I64, I64, I64, I32, I64) -> I32;
    Memcpy2DAsync(I64, I64, I64, I64, I64, I64, I32, I64) -> I32;
    Memcpy3DAsync(I64, I64) -> I32;
    MemsetAsync(I64, I32, I64, I64) -> I32;
    Memset2DAsync(I64, I64, I32, I64, I64, I64) -> I32;
    Memset3DAsync(I64, I32, I64, I64) -> I32;
    RuntimeGetVersion(I64) -> I32;
    OccupancyMaxActiveBlocksPerMultiprocessor(I64, I64, I32, I64) -> I32;
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(I64, I64, I32, I64, I32) -> I32;
    GetParameterBuffer(I64, I64) -> I64;
    GetParameterBufferV2(I64, I64, I64, I32) -> I64;
    LaunchDevice(I64, I64, I64, I64, I32, I64) -> I32;
    LaunchDeviceV2(I64, I64) -> I32;
    GraphLaunch(I64, I64) -> I32;
    GraphKernelNodeSetParam(I64, I64, I64, I64) -> I32;
    GraphKernelNodeSetEnabled(I64, I32) -> I32;
    GraphKernelNodeSetGridDim(I64, I64) -> I32;
    GraphKernelNodeUpdatesApply(I64, I64) -> I32;
    AlignedMalloc(I64, I64) -> I64;
};

impl RuntimeFunction {
    /// The function that programs call by this name. Those that end in `_ptsz` mean the default stream of the thread, which is
    /// the block's as the other is.
    pub fn by_name(name: &str) -> Option<RuntimeFunction> {
        if name == "__cuda_syscall_aligned_malloc" {
            return Some(RuntimeFunction::AlignedMalloc);
        }
        let name = name.strip_prefix("__cudaCDP2").or_else(|| name.strip_prefix("cuda"))?;
        let name = name.strip_suffix("_ptsz").unwrap_or(name);
        INTERFACES.iter().find(|interface| interface.name == name).map(|interface| interface.function)
    }

    /// The function of a number.
    pub fn from_number(number: u32) -> Option<RuntimeFunction> {
        INTERFACES.get(number as usize).map(|interface| interface.function)
    }

    /// What it takes: structures by their address.
    pub fn params(self) -> &'static [Type] {
        INTERFACES[self as usize].params
    }

    /// What it gives: an error code of the runtime, or an address.
    pub fn result(self) -> Type {
        INTERFACES[self as usize].result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_found_by_its_names_and_its_number() {
        for (number, interface) in INTERFACES.iter().enumerate() {
            assert_eq!(interface.function as usize, number, "{}", interface.name);
            assert_eq!(RuntimeFunction::from_number(number as u32), Some(interface.function));
            for name in [
                format!("cuda{}", interface.name),
                format!("__cudaCDP2{}", interface.name),
                format!("__cudaCDP2{}_ptsz", interface.name),
            ] {
                assert_eq!(RuntimeFunction::by_name(&name), Some(interface.function), "{name}");
            }
        }
        assert_eq!(RuntimeFunction::by_name("cudaDeviceSynchronize"), None);
        assert_eq!(RuntimeFunction::by_name("LaunchDeviceV2"), None);
        assert_eq!(RuntimeFunction::from_number(INTERFACES.len() as u32), None);
    }
}
