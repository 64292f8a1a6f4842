//! The devices of this process.

use crate::{Context, Error, Result};
use device::{Platform, limits};
use platform::WithoutCompiler;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A device: the machine's processor with its memory, one of several views of it if `ANYWARP_DEVICES` says so.
#[derive(Clone)]
pub struct Device(Arc<device::Device>);

impl Device {
    /// How many devices there are.
    pub fn count() -> Result<usize> {
        Ok(platform()?.devices().len())
    }

    /// The device with this number, from 0.
    pub fn get(ordinal: usize) -> Result<Device> {
        platform()?.device(ordinal).cloned().map(Device).map_err(Error::new)
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal()
    }

    /// A name for people.
    pub fn name(&self) -> &str {
        &self.0.attributes().name
    }

    /// Which instructions it has, as CUDA counts them: major and minor number.
    pub fn compute_capability(&self) -> (u32, u32) {
        self.0.attributes().compute_capability
    }

    /// How many threads of the machine work on a grid.
    pub fn multiprocessors(&self) -> u32 {
        self.0.attributes().multiprocessors
    }

    /// Bytes of memory.
    pub fn total_memory(&self) -> u64 {
        self.0.attributes().total_memory
    }

    /// What a launch may ask for.
    pub fn limits(&self) -> Limits {
        Limits {
            block: limits::MAX_BLOCK,
            threads_per_block: limits::MAX_THREADS_PER_BLOCK,
            grid: limits::MAX_GRID,
            shared_per_block: limits::SHARED_PER_BLOCK_OPTIN,
            parameters: limits::MAX_PARAMS,
        }
    }

    /// A new context, which ends with the last of its [`Context`]s, buffers, modules and streams.
    pub fn create_context(&self) -> Result<Context> {
        let context = self.0.create_context(device::ContextFlags::default()).map_err(Error::new)?;
        Ok(Context::own(context))
    }

    /// The device's primary context, which everyone in the process shares who uses this or the [`runtime`](crate::runtime).
    pub fn primary_context(&self) -> Result<Context> {
        let context = self.0.primary().retain().map_err(Error::new)?;
        Ok(Context::primary(context, self.0.clone()))
    }
}

/// What a launch may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Threads of a block, in x, y and z.
    pub block: [u32; 3],
    /// Threads of a block in all.
    pub threads_per_block: u32,
    /// Blocks of a grid, in x, y and z.
    pub grid: [u32; 3],
    /// Bytes of shared memory of a block.
    pub shared_per_block: u32,
    /// Bytes of a kernel's parameters.
    pub parameters: u32,
}

/// Where compiled kernels are kept between runs; `None` if they are not.
pub fn kernel_cache() -> Option<PathBuf> {
    platform::kernel_cache()
}

/// All devices, made when first asked for.
pub(crate) fn platform() -> Result<&'static Platform> {
    static PLATFORM: OnceLock<std::result::Result<Platform, device::Error>> = OnceLock::new();
    let make = || platform::from_environment(WithoutCompiler::Interpret);
    PLATFORM.get_or_init(make).as_ref().map_err(|error| Error::new(error.clone()))
}
