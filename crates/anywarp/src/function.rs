//! Kernels and their launch.

use crate::arguments::{Declared, Parameter};
use crate::{Arguments, Error, Module, Result, Stream};
use device::Launch;
use device::module::ParamClass;
use std::sync::Arc;

/// A kernel of a module.
#[derive(Clone)]
pub struct Function {
    function: Arc<device::Function>,
    module: Module,
    parameters: Arc<[Parameter]>,
}

/// The shape of a launch: blocks of a grid, threads of a block, and bytes of dynamic shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
}

impl LaunchConfig {
    /// In one dimension.
    pub fn new(blocks: u32, threads: u32) -> LaunchConfig {
        LaunchConfig { grid: [blocks, 1, 1], block: [threads, 1, 1], shared: 0 }
    }

    /// As many blocks of `block` threads as give every element one: the last may have threads too many.
    pub fn for_threads(elements: u32, block: u32) -> LaunchConfig {
        LaunchConfig::new(elements.div_ceil(block.max(1)).max(1), block)
    }

    /// Rows and columns of tiles: a grid over `width` × `height` elements.
    pub fn for_tiles(width: u32, height: u32, block: [u32; 2]) -> LaunchConfig {
        let blocks = |elements: u32, threads: u32| elements.div_ceil(threads.max(1)).max(1);
        let grid = [blocks(width, block[0]), blocks(height, block[1]), 1];
        LaunchConfig { grid, block: [block[0], block[1], 1], shared: 0 }
    }

    /// The same with so many bytes of dynamic shared memory.
    pub fn with_shared(self, shared: u32) -> LaunchConfig {
        LaunchConfig { shared, ..self }
    }
}

impl Function {
    pub(crate) fn new(function: Arc<device::Function>, module: Module) -> Function {
        let parameters = function.kernel().entry().params.iter().map(|param| Parameter {
            offset: param.offset as usize,
            size: param.size as usize,
            declared: match param.class {
                ParamClass::Integer => Declared::Integer,
                ParamClass::Float => Declared::Float,
                ParamClass::Bits => Declared::Bits,
            },
        });
        Function { parameters: parameters.collect(), function, module }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.function.name()
    }

    /// Queues the kernel in a stream of its context. The number of arguments and their types are checked first:
    /// [`Error::Arguments`] says what is wrong.
    ///
    /// # Safety
    /// A kernel is a program: it reads and writes what its code says. Wherever it computes addresses inside the buffers
    /// it is given, and nothing else uses those at the same time in conflict with it, all is well. An address where
    /// nothing is becomes an [`Error::Fault`]; one that belongs to the host program does not.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        let context = self.module.context();
        let packed = arguments.pack(&self.parameters, context)?;
        let LaunchConfig { grid, block, shared } = config;
        let launch = Launch { grid, block, dynamic_shared: shared, cooperative: false };
        // SAFETY: the caller vouches for what the kernel does.
        let launched = unsafe { self.function.launch(stream.inner(), &launch, &packed) };
        launched.map_err(|error| match error {
            device::Error::InvalidHandle => Error::Device("the stream is of another context".into()),
            device::Error::InvalidValue => Error::Device(format!(
                "{} takes no grid {grid:?} of {block:?} with {shared} bytes",
                self.name()
            )),
            other => context.error(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_cover_all_elements() {
        assert_eq!(LaunchConfig::for_threads(257, 256).grid, [2, 1, 1]);
        assert_eq!(LaunchConfig::for_threads(256, 256).grid, [1, 1, 1]);
        assert_eq!(LaunchConfig::for_threads(0, 256).grid, [1, 1, 1]);
        assert_eq!(LaunchConfig::for_tiles(33, 8, [32, 8]).grid, [2, 1, 1]);
        assert_eq!(LaunchConfig::new(1, 1).with_shared(64).shared, 64);
    }
}
