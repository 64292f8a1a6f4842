//! NVIDIA's driver, or whichever library `libcuda.so.1` is, as something to run kernels on and compare with.

use anywarp::{Context, ErrorKind, LaunchConfig, Platform};

use crate::machine::Grid;

/// A driver with a context of its first device.
///
/// A fault ends the context, and every later launch fails: [`Failure::Lost`].
pub struct Driver(Context);

/// Why a kernel did not run.
#[derive(Debug)]
pub enum Failure {
    /// The driver does not take the PTX; its reason.
    Refused(String),
    /// The code of a fault, after which this process runs nothing more.
    Lost(u32),
}

impl From<anywarp::Error> for Failure {
    fn from(error: anywarp::Error) -> Failure {
        match error.kind() {
            ErrorKind::Ptx => Failure::Refused(error.message().into()),
            _ => Failure::Lost(error.code()),
        }
    }
}

impl Driver {
    /// Opens a library by name or path, and its first device.
    pub fn open(library: &str) -> Result<Driver, String> {
        // SAFETY: who names a library for this says that it is a driver.
        let platform = unsafe { Platform::library(library) };
        let context = platform.and_then(|platform| platform.device(0)?.primary_context());
        context.map(Driver).map_err(|error| format!("{library}: {error}"))
    }

    /// Runs a kernel whose parameters are the addresses of two buffers; answers what the second, zeros at first, holds then.
    pub fn run(
        &self,
        ptx: &str,
        entry: &str,
        grid: Grid,
        input: &[u64],
        output_words: usize,
    ) -> Result<Vec<u64>, Failure> {
        let Driver(context) = self;
        let module = context.load_ptx(ptx)?;
        let (input, output) = (context.buffer_from(input)?, context.zeroed::<u64>(output_words)?);
        let mut config = LaunchConfig::new(1, 1).with_shared(grid.dynamic_shared);
        (config.grid, config.block) = (grid.grid, grid.block);
        // SAFETY: nothing else uses the buffers meanwhile, and what is outside them is no memory of this process's.
        unsafe { module.function(entry)?.launch(&context.default_stream(), config, (&input, &output)) }?;
        context.synchronize()?;
        Ok(output.to_vec()?)
    }
}
