//! Kernels and their launch.

use crate::arguments::Parameter;
use crate::driver;
use crate::{Arguments, Context, Error, ErrorKind, Result, Stream};
use std::marker::PhantomData;

/// A kernel of a module.
///
/// ```
/// use anywarp::{Device, ErrorKind, LaunchConfig};
///
/// # let scale = "
/// #     .version 8.0\n.target sm_80\n.address_size 64
/// #     .visible .entry scale (.param .u64 values, .param .f32 factor)
/// #     {
/// #         .reg .u32 %r<2>; .reg .u64 %rd<3>; .reg .f32 %f<3>;
/// #         mov.u32 %r1, %tid.x;
/// #         ld.param.u64 %rd1, [values];
/// #         ld.param.f32 %f1, [factor];
/// #         mul.wide.u32 %rd2, %r1, 4;
/// #         add.u64 %rd1, %rd1, %rd2;
/// #         ld.global.f32 %f2, [%rd1];
/// #         mul.rn.f32 %f2, %f2, %f1;
/// #         st.global.f32 [%rd1], %f2;
/// #         ret;
/// #     }";
/// let context = Device::get(0)?.create_context()?;
/// let module = context.load_ptx(scale)?; // .entry scale (.param .u64 values, .param .f32 factor)
/// let scale = module.function("scale")?;
/// let (stream, config) = (context.create_stream()?, LaunchConfig::new(1, 4));
/// let mut values = context.buffer_from(&[1.0_f32, 2.0, 3.0, 4.0])?;
///
/// // What the kernel does not take is refused before anything runs.
/// // SAFETY: nothing is launched.
/// let refused = unsafe { scale.launch(&stream, config, (&mut values, 2_u32)) }.unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::Arguments);
/// assert_eq!(refused.message(), "argument 1: the kernel takes a floating-point number");
///
/// // SAFETY: the kernel changes as many elements as it has threads.
/// unsafe { scale.launch(&stream, config, (&mut values, 2.0_f32))? };
/// assert_eq!(values.to_vec()?, [2.0, 4.0, 6.0, 8.0]);
/// # Ok::<(), anywarp::Error>(())
/// ```
pub struct Function<'m> {
    raw: Box<dyn driver::Function>,
    name: String,
    parameters: Vec<Parameter>,
    context: &'m Context,
    module: PhantomData<&'m ()>,
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
    /// All blocks run at the same time and may wait for each other.
    pub cooperative: bool,
}

impl LaunchConfig {
    /// In one dimension.
    pub fn new(blocks: u32, threads: u32) -> LaunchConfig {
        LaunchConfig { grid: [blocks, 1, 1], block: [threads, 1, 1], shared: 0, cooperative: false }
    }

    /// As many blocks of `block` threads as give every element one: the last may have threads too many.
    pub fn for_threads(elements: u32, block: u32) -> LaunchConfig {
        LaunchConfig::new(elements.div_ceil(block.max(1)).max(1), block)
    }

    /// Rows and columns of tiles: a grid over `width` × `height` elements.
    pub fn for_tiles(width: u32, height: u32, block: [u32; 2]) -> LaunchConfig {
        let blocks = |elements: u32, threads: u32| elements.div_ceil(threads.max(1)).max(1);
        let grid = [blocks(width, block[0]), blocks(height, block[1]), 1];
        LaunchConfig { grid, block: [block[0], block[1], 1], ..LaunchConfig::new(1, 1) }
    }

    /// The same with so many bytes of dynamic shared memory.
    pub fn with_shared(self, shared: u32) -> LaunchConfig {
        LaunchConfig { shared, ..self }
    }

    /// The same with all blocks running at the same time: they may wait for each other.
    pub fn cooperative(self) -> LaunchConfig {
        LaunchConfig { cooperative: true, ..self }
    }
}

/// What a kernel needs and allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionAttributes {
    /// Threads of a block at most.
    pub max_threads_per_block: u32,
    /// Bytes of static shared memory.
    pub shared_bytes: u32,
    /// Bytes of constant memory of its module.
    pub constant_bytes: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// The virtual architecture that its PTX was written for: major and minor number.
    pub ptx_version: (u32, u32),
    /// The compute capability that it is compiled for.
    pub binary_version: (u32, u32),
    /// Bytes of dynamic shared memory that a launch may ask for.
    pub max_dynamic_shared: u32,
}

impl<'m> Function<'m> {
    pub(crate) fn new(
        raw: Box<dyn driver::Function>,
        name: &str,
        context: &'m Context,
    ) -> Result<Function<'m>> {
        let parameters = raw.parameters()?;
        Ok(Function { raw, name: name.to_owned(), parameters, context, module: PhantomData })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many arguments it takes.
    pub fn parameter_count(&self) -> usize {
        self.parameters.len()
    }

    /// What it needs and allows.
    pub fn attributes(&self) -> Result<FunctionAttributes> {
        self.raw.attributes()
    }

    /// Allows launches with so many bytes of dynamic shared memory: more than 48 KiB in all must be asked for.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) if a block cannot have as much.
    pub fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()> {
        self.raw.set_max_dynamic_shared(bytes)
    }

    /// How many blocks of so many threads run on one multiprocessor together; 0 if the device can run none. Whether the
    /// kernel itself allows so many threads ([`max_threads_per_block`](FunctionAttributes::max_threads_per_block)) is
    /// another question.
    pub fn blocks_per_multiprocessor(&self, threads: u32, dynamic_shared: u32) -> Result<u32> {
        if threads == 0 {
            return Err(Error::arguments("a block has at least one thread"));
        }
        self.raw.blocks_per_multiprocessor(threads, dynamic_shared)
    }

    /// The shape of the smallest grid that keeps the device as busy as this kernel can, with so many bytes of dynamic shared
    /// memory for each block.
    pub fn best_config(&self, dynamic_shared: u32) -> Result<LaunchConfig> {
        let (threads, blocks) = self.raw.best_block(dynamic_shared)?;
        Ok(LaunchConfig::new(blocks, threads).with_shared(dynamic_shared))
    }

    /// Queues the kernel in a stream of its context and returns. The arguments are checked first against the parameters that
    /// the kernel declares: their number, the size of each, and whether it is an integer or pointer, a floating-point
    /// number, or bytes. (For machine code without PTX, which only NVIDIA's driver runs, the last cannot be known.)
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for arguments that the kernel does not take, a stream or buffer of another
    /// context, and a shape that the device or the kernel does not take; [`Fault`](crate::ErrorKind::Fault) if a kernel of
    /// the context has failed before. A failure of this one comes from what waits for it.
    ///
    /// # Safety
    /// A kernel is a program: it reads and writes what its code says, and a parameter's type does not say whether it is a
    /// pointer, nor how far it reads from there. The caller vouches that until the kernel has ended
    /// - it writes nothing but device memory that it was given to write, and pinned and managed memory of which the host
    ///   holds no reference meanwhile; and
    /// - no other work in conflict with it, in another stream or on the host, touches the same memory.
    ///
    /// Addresses where nothing is are no matter of safety: they end the kernel with a fault.
    pub unsafe fn launch(
        &self,
        stream: &Stream<'_>,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        self.context.check_same(stream.context(), "the stream")?;
        let mut bytes = arguments.pack(&self.parameters, self.context)?;
        // SAFETY: the caller vouches for what the kernel does.
        let launched = unsafe { self.raw.launch(stream.raw(), &config, &self.parameters, &mut bytes) };
        launched.map_err(|error| match error.kind() {
            ErrorKind::Arguments => {
                let LaunchConfig { grid, block, shared, .. } = config;
                let name = &self.name;
                Error::arguments(format!("{name} takes no grid {grid:?} of {block:?} with {shared} bytes"))
            }
            _ => error,
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
