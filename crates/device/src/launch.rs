//! Launches: what is checked before a kernel is queued.

use std::sync::Arc;

use kernel_abi::{Shape, Tier};

use crate::callbacks::Services;
use crate::executor::{Grid, GridParts, Params, Ready};
use crate::graph::{KernelCall, Operation};
use crate::limits::{self, Limit};
use crate::module::Module;
use crate::nested::Nested;
use crate::occupancy::{BlockShape, blocks_per_multiprocessor};
use crate::stream::{Start, Work};
use crate::texture::Bound;
use crate::{Context, Error, Function, Result, Stream};

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// All blocks run at the same time and may wait for each other.
    pub cooperative: bool,
    /// Blocks of a cluster in x, y, z. A kernel may itself say how large its clusters are; then this is the same or `None`, as all
    /// zeros are.
    pub cluster: Option<[u32; 3]>,
}

impl Function {
    /// Queues the kernel, and waits for it if the options ask for that. `params` holds its parameters as
    /// [`Entry`](crate::module::Entry) lays them out; what is missing at the end is zero.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a shape that device or kernel do not take, [`Error::InvalidClusterSize`] for such clusters,
    /// [`Error::LaunchOutOfResources`] for more parameters than the kernel has, [`Error::CooperativeLaunchTooLarge`], and what compiling the kernel gives.
    ///
    /// # Safety
    /// The kernel may do with memory what it does: where it and the host touch the same, the program keeps them in order.
    /// What the kernel does wrong itself is a fault.
    pub unsafe fn launch(
        self: &Arc<Function>,
        stream: &Stream,
        launch: &Launch,
        params: &[u8],
    ) -> Result<()> {
        if !stream.is_capturing() {
            if self.kernel().entry().explicit_cluster {
                check_shape(self, launch)?;
                self.cluster_of(launch)?;
            }
            // SAFETY: the caller's contract.
            return unsafe { self.launch_now(stream, launch, params, Start::AtOnce) };
        }
        self.check_launch(launch).map_err(|error| stream.refuse_capture(error))?;
        if let Err(error) = self.cluster_if_any(launch) {
            // A size that is one only in part is no launch at all; any other ends the capture.
            if launch.cluster.is_none_or(|cluster| !cluster.contains(&0)) {
                return Err(stream.refuse_capture(error));
            }
            return Err(error);
        }
        if params.len() > self.kernel().entry().param_bytes as usize {
            return Err(Error::LaunchOutOfResources);
        }
        let (function, params) = (self.clone(), params.to_vec());
        let call = KernelCall { function, launch: *launch, params, updatable: None };
        stream.perform(Operation::Kernel(call))
    }

    /// Checks what can be known of a launch before it is queued.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] if the module is gone, [`Error::InvalidValue`] for a shape that device or kernel do not take.
    pub fn check_launch(&self, launch: &Launch) -> Result<()> {
        self.module()?;
        // What static memory leaves is seen when the kernel has been read, at the launch.
        if launch.dynamic_shared > self.max_dynamic_shared_with(0) {
            return Err(Error::InvalidValue);
        }
        check_shape(self, launch)
    }

    /// Blocks of a cluster of such a launch, `None` if its blocks are by themselves.
    ///
    /// # Errors
    /// [`Error::InvalidClusterSize`] if they are not those that the kernel asks for, too many, or do not divide the grid, and if there are
    /// none though the kernel leaves it to the launch to say how many.
    pub fn cluster_of(&self, launch: &Launch) -> Result<Option<[u32; 3]>> {
        let cluster = self.cluster_if_any(launch)?;
        if cluster.is_none() && self.kernel().entry().explicit_cluster {
            return Err(Error::InvalidClusterSize);
        }
        Ok(cluster)
    }

    /// The same for a node of a graph, which may leave open what the kernel leaves open.
    pub(crate) fn cluster_if_any(&self, launch: &Launch) -> Result<Option<[u32; 3]>> {
        let kernel = self.kernel();
        let asked = launch.cluster.filter(|cluster| *cluster != [0; 3]);
        let Some(cluster) = kernel.required_cluster().or(asked) else {
            return Ok(None);
        };
        let size = cluster.iter().try_fold(1_u32, |size, blocks| size.checked_mul(*blocks));
        let possible = size.is_some_and(|size| (1..=kernel.most_in_cluster()).contains(&size));
        if !possible || asked.is_some_and(|asked| asked != cluster) {
            return Err(Error::InvalidClusterSize);
        }
        let grid = grid_of(self, launch);
        if (0..3).any(|axis| !grid[axis].is_multiple_of(cluster[axis])) {
            return Err(Error::InvalidClusterSize);
        }
        Ok(Some(cluster))
    }

    /// Queues the kernel even if the stream captures.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch).
    pub(crate) unsafe fn launch_now(
        &self,
        stream: &Stream,
        launch: &Launch,
        params: &[u8],
        start: Start,
    ) -> Result<()> {
        let context = stream.context()?;
        context.check()?;
        // A launch is one of the points at which the manual has kernels' output appear.
        context.domain().output.flush();
        let module = self.module()?;
        if !std::ptr::eq(&*module.context()?, &*context) {
            return Err(Error::InvalidHandle);
        }
        let (parts, services) = self.prepare(&context, &module, launch, params, 0)?;
        let of_part = stream.partition().map(|partition| partition.processors());
        if launch.cooperative && of_part.is_some_and(|processors| !parts.fits_at_once(processors)) {
            return Err(Error::CooperativeLaunchTooLarge);
        }
        let start = if parts.is_quick() { start } else { Start::InQueue };
        let make = |completion| Work::Grid(Grid::new(parts, stream.queue().clone(), services, completion));
        let completion = stream.submit_with(&context, Vec::new(), make, start)?;
        if context.hardware().options.blocking_launches {
            completion.wait();
            context.domain().output.flush();
            context.notice()?;
        }
        Ok(())
    }

    /// What a launch is made of; `depth` counts the launches that it is within.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub(crate) fn prepare(
        &self,
        context: &Arc<Context>,
        module: &Arc<Module>,
        launch: &Launch,
        params: &[u8],
        depth: u32,
    ) -> Result<(GridParts, Services)> {
        let kernel = self.kernel();
        check_shape(self, launch)?;
        let cluster = self.cluster_if_any(launch)?;
        let grid = grid_of(self, launch);
        let param_bytes = kernel.entry().param_bytes as usize;
        if params.len() > param_bytes {
            return Err(Error::LaunchOutOfResources);
        }
        let (ready, objects) = self.ready(context, module, Shape::of(grid, launch.block))?;
        let info = ready.kernel.info();
        let multiprocessor = context.attributes().multiprocessor();
        let most = multiprocessor.shared_per_block;
        let shared = shared_bytes(self, launch, most, info.shared_bytes, info.shared_align)?;
        let threads = launch.block.iter().product();
        let resident = blocks_per_multiprocessor(multiprocessor, BlockShape { threads, shared });
        let stack = match info.stack_limits {
            0 => 0,
            limits => (context.limit(Limit::StackSize)? as u32).saturating_mul(limits),
        };
        let parts = GridParts {
            grid,
            block: launch.block,
            params: Params::new(params, param_bytes.max(info.param_bytes as usize)),
            dynamic_shared: launch.dynamic_shared,
            shared,
            local: info.local_bytes.saturating_add(stack),
            resident_blocks: resident,
            cooperative: launch.cooperative,
            cluster,
            ready: ready.clone(),
        };
        if launch.cooperative && !parts.fits_at_once(context.hardware().attributes.multiprocessors) {
            return Err(Error::CooperativeLaunchTooLarge);
        }
        let together = cluster.map_or(1, |cluster| cluster.iter().product());
        if !Grid::needs_of(&parts).are_possible(together) {
            return Err(Error::LaunchOutOfResources);
        }
        Ok((parts, Services::new(Nested::new(ready, depth), objects)))
    }

    /// The kernel ready for launches of a shape, and what the variables are bound to that it reads textures and surfaces by.
    fn ready(
        &self,
        context: &Arc<Context>,
        module: &Arc<Module>,
        shape: Shape,
    ) -> Result<(Arc<Ready>, Vec<Arc<Bound>>)> {
        if let Some(ready) = self.last_ready(shape) {
            return Ok((ready, Vec::new()));
        }
        let kernel = self.kernel();
        let backend = &context.hardware().backend;
        let compiled = kernel.compile(&**backend, shape, Tier::Quick)?;
        let (mut objects, mut may_change) = (Vec::new(), compiled.successor().is_some());
        let globals = compiled.info().globals.iter().map(|name| {
            if let Some(bound) = module.bound(name) {
                may_change = true;
                // Nothing has the handle 0: what is not bound is a fault of the kernel that uses it.
                let handle = bound.as_ref().map_or(0, |bound| bound.handle());
                objects.extend(bound);
                return Ok(handle);
            }
            let missing = || Error::Internal(format!("{} uses the unknown variable {name}", kernel.name()));
            module.global(name).map(|global| global.address).map_err(|_| missing())
        });
        let globals = globals.collect::<Result<_>>()?;
        let ready = Arc::new(Ready {
            shape,
            kernel: compiled,
            name: kernel.name().clone(),
            locate: Some(kernel.locate()),
            replay: Some(kernel.replay(backend)),
            is_kernel: true,
            profile: kernel.profile().clone(),
            globals,
            domain: context.domain().clone(),
            context: Arc::downgrade(context),
            module: Arc::downgrade(module),
        });
        if !may_change {
            self.keep_ready(&ready);
        }
        Ok((ready, objects))
    }
}

fn check_shape(function: &Function, launch: &Launch) -> Result<()> {
    let within =
        |dims: [u32; 3], most: [u32; 3]| dims.iter().zip(most).all(|(dim, most)| (1..=most).contains(dim));
    if !within(launch.grid, limits::MAX_GRID)
        || !within(grid_of(function, launch), limits::MAX_GRID)
        || !within(launch.block, limits::MAX_BLOCK)
    {
        return Err(Error::InvalidValue);
    }
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    if threads > function.kernel().max_threads().into() {
        return Err(Error::InvalidValue);
    }
    if function.kernel().entry().required_block.is_some_and(|required| required != launch.block) {
        return Err(Error::InvalidValue);
    }
    Ok(())
}

/// Blocks of the grid: a kernel may have the launch count clusters.
fn grid_of(function: &Function, launch: &Launch) -> [u32; 3] {
    let kernel = function.kernel();
    match kernel.required_cluster() {
        Some(cluster) if kernel.entry().blocks_are_clusters => {
            std::array::from_fn(|axis| launch.grid[axis].saturating_mul(cluster[axis]))
        }
        _ => launch.grid,
    }
}

/// Shared memory of a block besides what is reserved: static, dynamic, and the gap between them; so much at most.
fn shared_bytes(function: &Function, launch: &Launch, most: u32, fixed: u32, align: u32) -> Result<u32> {
    if launch.dynamic_shared > function.max_dynamic_shared_with(fixed) {
        // Of such blocks none fits.
        return Err(if launch.cooperative { Error::CooperativeLaunchTooLarge } else { Error::InvalidValue });
    }
    let reserved = kernel_abi::RESERVED_SHARED;
    let end = fixed.checked_add(reserved).ok_or(Error::InvalidValue)?;
    let gap = end.checked_next_multiple_of(align.max(16)).ok_or(Error::InvalidValue)?;
    let end = if launch.dynamic_shared == 0 { Some(end) } else { gap.checked_add(launch.dynamic_shared) };
    let bytes = end.map(|end| end - reserved);
    bytes.filter(|bytes| *bytes <= most).ok_or(Error::InvalidValue)
}
