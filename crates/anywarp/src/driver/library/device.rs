//! The driver and its devices.

use super::super::{DeviceInfo, callback};
use super::context::Context;
use super::{Library, call};
use crate::{ContextOptions, DeviceLimits, Error, Result, Scheduling};
use cuda_abi::driver::*;
use std::ffi::CStr;
use std::sync::Arc;

pub struct Driver(pub Arc<Library>);

impl super::super::Driver for Driver {
    fn version(&self) -> Result<u32> {
        let mut version = 0;
        call!(self.0, cuDriverGetVersion(&mut version))?;
        Ok(u32::try_from(version).unwrap_or(0))
    }

    fn devices(&self) -> Result<usize> {
        let mut count = 0;
        call!(self.0, cuDeviceGetCount(&mut count))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    fn device(&self, ordinal: usize) -> Result<Arc<dyn super::super::Device>> {
        let devices = self.devices()?;
        let number = i32::try_from(ordinal).ok().filter(|_| ordinal < devices);
        let missing = || Error::new(CUDA_ERROR_INVALID_DEVICE, format!("device {ordinal} of {devices}"));
        let mut device = 0;
        call!(self.0, cuDeviceGet(&mut device, number.ok_or_else(missing)?))?;
        let info = self.info(ordinal, device)?;
        Ok(Arc::new(Device { library: self.0.clone(), device, info }))
    }
}

impl Driver {
    fn info(&self, ordinal: usize, device: CUdevice) -> Result<DeviceInfo> {
        let library = &self.0;
        let number = |attribute| {
            let mut value = 0;
            call!(library, cuDeviceGetAttribute(&mut value, attribute, device))?;
            Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
        };
        let mut name = [0; 256];
        call!(library, cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device))?;
        let name = CStr::from_bytes_until_nul(name.map(|c| c as u8).as_slice())
            .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned());
        let mut total_memory = 0;
        call!(library, cuDeviceTotalMem_v2(&mut total_memory, device))?;
        let compute_capability = (
            number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        // No attribute tells the parameters' size: the manual does, for such devices and since 12.1.
        let long = compute_capability.0 >= 7 && super::super::Driver::version(self)? >= 12010;
        let limits = DeviceLimits {
            block: [
                number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            threads_per_block: number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            grid: [
                number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            shared_per_block: number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            parameters: if long { 32764 } else { 4096 },
        };
        let multiprocessors = number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let total_memory = total_memory as u64;
        Ok(DeviceInfo { ordinal, name, compute_capability, multiprocessors, total_memory, limits })
    }
}

struct Device {
    library: Arc<Library>,
    device: CUdevice,
    info: DeviceInfo,
}

impl super::super::Device for Device {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn create_context(&self, options: ContextOptions) -> Result<Box<dyn super::super::Context>> {
        callback::check()?;
        let flags = match options.scheduling {
            Scheduling::Auto => CU_CTX_SCHED_AUTO,
            Scheduling::Spin => CU_CTX_SCHED_SPIN,
            Scheduling::Yield => CU_CTX_SCHED_YIELD,
            Scheduling::Block => CU_CTX_SCHED_BLOCKING_SYNC,
        };
        let mut handle = CUcontext::NULL;
        call!(self.library, cuCtxCreate_v2(&mut handle, flags | CU_CTX_MAP_HOST, self.device))?;
        // It has become current; here a context is current only during a call.
        call!(self.library, cuCtxPopCurrent_v2(std::ptr::null_mut()))?;
        Ok(Box::new(Context::new(self.library.clone(), handle, self.device, false)))
    }

    fn primary_context(&self) -> Result<Box<dyn super::super::Context>> {
        callback::check()?;
        let mut handle = CUcontext::NULL;
        call!(self.library, cuDevicePrimaryCtxRetain(&mut handle, self.device))?;
        Ok(Box::new(Context::new(self.library.clone(), handle, self.device, true)))
    }
}
