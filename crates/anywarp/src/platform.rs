//! Platforms and their devices.

use crate::driver::{self, embedded, library};
use crate::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A driver with its devices: the one that is part of this crate, or any `libcuda.so.1`.
///
/// Clones are the same platform. Objects of two platforms do not mix.
#[derive(Clone)]
pub struct Platform(Arc<dyn driver::Driver>);

impl Platform {
    /// The devices that are part of this crate: the machine's processor. The environment says how many and how large
    /// (`ANYWARP_DEVICES`, `ANYWARP_MEMORY`, `ANYWARP_THREADS`, `CUDA_VISIBLE_DEVICES`) and what runs kernels
    /// (`ANYWARP_BACKEND`). They are made when first asked for, once in a process.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice) if the environment shows none; [`Other`](crate::ErrorKind::Other) with code
    /// 3 in a process forked from one that has used them.
    pub fn embedded() -> Result<Platform> {
        embedded::driver().map(Platform)
    }

    /// The driver that this system has installed: the `libcuda.so.1` that the dynamic loader finds. On a machine with a GPU
    /// that is NVIDIA's; with `LD_LIBRARY_PATH` leading to it, Anywarp's.
    ///
    /// # Errors
    /// [`Other`](crate::ErrorKind::Other) with code 303 and the loader's reason if there is none;
    /// [`NoDevice`](crate::ErrorKind::NoDevice) if it finds no device.
    pub fn system() -> Result<Platform> {
        // SAFETY: under this name a system installs CUDA's driver, and nothing else.
        unsafe { Platform::library("libcuda.so.1") }
    }

    /// The driver in this file. It stays loaded until the process ends.
    ///
    /// # Errors
    /// As for [`system`](Self::system).
    ///
    /// # Safety
    /// The file is an implementation of CUDA's Driver API for the process's own architecture: loading it runs its code, and
    /// its functions are called as the manual describes them.
    pub unsafe fn library(path: impl AsRef<Path>) -> Result<Platform> {
        // SAFETY: the caller's contract.
        unsafe { library::open(path.as_ref()) }.map(Platform)
    }

    /// The version of CUDA that the driver has: major and minor number.
    pub fn cuda_version(&self) -> Result<(u32, u32)> {
        self.0.version().map(|version| (version / 1000, version % 1000 / 10))
    }

    /// How many devices there are.
    pub fn device_count(&self) -> Result<usize> {
        self.0.devices()
    }

    /// The device with this number, from 0.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice) if there are not as many.
    pub fn device(&self, ordinal: usize) -> Result<Device> {
        self.0.device(ordinal).map(Device)
    }

    /// All devices.
    pub fn devices(&self) -> Result<Vec<Device>> {
        (0..self.device_count()?).map(|ordinal| self.device(ordinal)).collect()
    }
}

/// A device.
///
/// Over the [embedded](Platform::embedded) platform it is the machine's processor with its memory, or one of several views
/// of it.
#[derive(Clone)]
pub struct Device(Arc<dyn driver::Device>);

impl Device {
    /// How many devices the [embedded](Platform::embedded) platform has.
    pub fn count() -> Result<usize> {
        Platform::embedded()?.device_count()
    }

    /// A device of the [embedded](Platform::embedded) platform, from 0.
    ///
    /// # Errors
    /// [`NoDevice`](crate::ErrorKind::NoDevice) if there are not as many.
    pub fn get(ordinal: usize) -> Result<Device> {
        Platform::embedded()?.device(ordinal)
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.0.info().ordinal
    }

    /// A name for people.
    pub fn name(&self) -> &str {
        &self.0.info().name
    }

    /// Which instructions it has, as CUDA counts them: major and minor number.
    pub fn compute_capability(&self) -> (u32, u32) {
        self.0.info().compute_capability
    }

    /// How many processors work on a grid; over the embedded platform, threads of the machine.
    pub fn multiprocessors(&self) -> u32 {
        self.0.info().multiprocessors
    }

    /// Bytes of memory.
    pub fn total_memory(&self) -> u64 {
        self.0.info().total_memory
    }

    /// What a launch may ask for.
    pub fn limits(&self) -> DeviceLimits {
        self.0.info().limits
    }

    /// A new context, which ends when it is dropped.
    pub fn create_context(&self) -> Result<Context> {
        self.create_context_with(ContextOptions::default())
    }

    /// The same, with options.
    pub fn create_context_with(&self, options: ContextOptions) -> Result<Context> {
        Ok(Context::new(self.0.create_context(options)?, self.clone()))
    }

    /// The device's primary context, which everyone in the process shares who asks for it, the CUDA runtime and
    /// [`runtime`](crate::runtime) among them. It ends when the last of them has dropped it.
    pub fn primary_context(&self) -> Result<Context> {
        Ok(Context::new(self.0.primary_context()?, self.clone()))
    }
}

/// What a launch may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceLimits {
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

/// What a context is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextOptions {
    /// How threads of the host wait for the device.
    pub scheduling: Scheduling,
}

impl ContextOptions {
    /// The same with another way of waiting.
    pub fn with_scheduling(self, scheduling: Scheduling) -> ContextOptions {
        ContextOptions { scheduling }
    }
}

/// How threads of the host wait for the device: a hint, which the embedded platform needs not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// As the driver likes.
    #[default]
    Auto,
    /// In a loop: soonest back.
    Spin,
    /// In a loop that leaves the core to other threads.
    Yield,
    /// Asleep: costs least.
    Block,
}

/// Where the embedded platform keeps compiled kernels between runs; `None` if it does not.
pub fn kernel_cache() -> Option<PathBuf> {
    platform::kernel_cache()
}
