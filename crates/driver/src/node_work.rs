//! What a node does, as the manual's structures say it.

use crate::api::read_uses;
use crate::contexts::{self, Context};
use crate::error::CuResult;
use crate::functions;
use crate::graphs::{Description, copy_of};
use crate::libraries;
use crate::parameters::{Parameter, pack};
use crate::streams;
use crate::transfers;
use crate::words;
use cuda_abi::args::Array;
use cuda_abi::driver::*;
use device::Launch;
use device::graph::{KernelCall, Operation};
use device::memory::{Allocation, Fill, Kind};
use device::stream::WordOperation;
use std::ffi::c_void;
use std::sync::Arc;

/// What a node is to do, with what only the program's own structure tells of it.
pub struct Work {
    /// What is done.
    pub operation: Operation,
    /// What the node's parameters are, where the operation does not tell.
    pub described: Option<Description>,
}

impl From<Operation> for Work {
    fn from(operation: Operation) -> Self {
        Work { operation, described: None }
    }
}

impl Work {
    fn new(operation: Operation, described: Description) -> Self {
        Work { operation, described: Some(described) }
    }

    /// A launch.
    ///
    /// # Safety
    /// Parameters are as `cuLaunchKernel` asks.
    pub unsafe fn kernel(params: &CUDA_KERNEL_NODE_PARAMS) -> CuResult<Self> {
        let context = context_of(params.ctx)?;
        let function = match context {
            _ if !params.func.is_null() => functions::find(params.func)?,
            Some(context) => libraries::find_kernel(params.kern)?.function_in(&context)?,
            None => libraries::find_kernel(params.kern)?.function()?,
        };
        let entry = function.entry();
        let layout = entry
            .params
            .iter()
            .map(|parameter| Parameter { offset: parameter.offset as usize, size: parameter.size as usize });
        // SAFETY: the caller's duty.
        let packed = unsafe { pack(layout, entry.param_bytes as usize, params.kernelParams, params.extra) }?;
        let launch = Launch {
            grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
            block: [params.blockDimX, params.blockDimY, params.blockDimZ],
            dynamic_shared: params.sharedMemBytes,
            cooperative: false,
            cluster: None,
        };
        function.function.check_launch(&launch)?;
        let call =
            KernelCall { function: function.function.clone(), launch, params: packed, updatable: None };
        Ok(Operation::Kernel(call).into())
    }

    /// A copy whose ends are in memory.
    ///
    /// # Safety
    /// Host memory that it names may be read and written whenever the graph runs.
    pub unsafe fn copy(params: CUDA_MEMCPY3D) -> CuResult<Self> {
        // A call that copies nothing does nothing; a node must copy something.
        if params.WidthInBytes == 0 || params.Height == 0 || params.Depth == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        // SAFETY: the caller's duty.
        let transfer = unsafe { transfers::from_3d(&params) }?;
        transfer.check(crate::platform::platform()?.memory())?;
        Ok(Work::new(Operation::Copy(transfer), Description::Copy(params)))
    }

    /// A fill of memory, in a context.
    pub fn fill(params: &CUDA_MEMSET_NODE_PARAMS, context: CUcontext) -> CuResult<Self> {
        context_of(context)?;
        // A call that fills nothing does nothing; a node must fill something.
        if params.width == 0 || params.height == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        let fill = Fill {
            address: params.dst.0,
            pitch: params.pitch as u64,
            value: params.value,
            element: params.elementSize,
            width: params.width as u64,
            height: params.height as u64,
        };
        fill.check(crate::platform::platform()?.memory())?;
        Ok(Operation::Fill(fill).into())
    }

    /// A call of a host function.
    pub fn host(params: CUDA_HOST_NODE_PARAMS) -> CuResult<Self> {
        let function = params.r#fn.ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let user_data = params.userData as usize;
        // SAFETY: the program gave the function with its argument to be called so.
        let call = Arc::new(move || unsafe { function(user_data as *mut c_void) });
        Ok(Work::new(Operation::Host(call), Description::Host(params)))
    }

    /// A batch of operations on words of memory. What is at their addresses shows when the graph runs.
    ///
    /// # Safety
    /// The list of operations is as long as its count says.
    pub unsafe fn words(params: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> CuResult<Self> {
        if params.flags != 0 || params.ctx.is_null() {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        contexts::find(params.ctx)?.check()?;
        // SAFETY: the caller's duty.
        let operations = words::read(params.count, unsafe { Array::new(params.paramArray) }, true)?;
        operations.iter().try_for_each(WordOperation::check)?;
        let description = Description::Words { context: params.ctx, list: Box::default() };
        Ok(Work::new(Operation::Words(operations.into()), description))
    }

    /// The signalling of semaphores.
    ///
    /// # Safety
    /// The arrays are as long as their count says.
    pub unsafe fn signal(params: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) -> CuResult<Self> {
        // Unlike a call, a node may have none.
        if params.numExtSems == 0 {
            return Ok(Operation::Signal([].into()).into());
        }
        // SAFETY: the caller's duty.
        let semaphores = unsafe {
            let (list, each) = (Array::new(params.extSemArray), Array::new(params.paramsArray.cast_mut()));
            read_uses(list, each, params.numExtSems, |each| (each.value, each.flags))
        }?;
        Ok(Operation::Signal(semaphores.into()).into())
    }

    /// The wait for semaphores.
    ///
    /// # Safety
    /// The arrays are as long as their count says.
    pub unsafe fn await_semaphores(params: &CUDA_EXT_SEM_WAIT_NODE_PARAMS) -> CuResult<Self> {
        if params.numExtSems == 0 {
            return Ok(Operation::AwaitSemaphores([].into()).into());
        }
        // SAFETY: the caller's duty.
        let semaphores = unsafe {
            let (list, each) = (Array::new(params.extSemArray), Array::new(params.paramsArray.cast_mut()));
            read_uses(list, each, params.numExtSems, |each| (each.value, each.flags))
        }?;
        Ok(Operation::AwaitSemaphores(semaphores.into()).into())
    }

    /// The recording of an event.
    pub fn record(event: CUevent) -> CuResult<Self> {
        Ok(Work::new(Operation::Record(event_of(event)?), Description::Event(event)))
    }

    /// The wait for an event.
    pub fn wait(event: CUevent) -> CuResult<Self> {
        Ok(Work::new(Operation::Wait(event_of(event)?), Description::Event(event)))
    }

    /// A graph as it is now.
    pub fn child(graph: CUgraph) -> CuResult<Self> {
        Ok(Operation::Child(copy_of(graph)?).into())
    }

    /// The freeing of what a graph allocated.
    pub fn free(address: CUdeviceptr) -> CuResult<Self> {
        let allocation = crate::platform::platform()?.memory().find(address.0);
        let is_whole = |found: Allocation| found.kind == Kind::Graph && found.base == address.0;
        if !allocation.is_some_and(is_whole) {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        Ok(Operation::Free { address: address.0 }.into())
    }

    /// Whatever a structure for any kind of node says.
    ///
    /// # Safety
    /// As for [`Work::kernel`], [`Work::copy`] and [`Work::words`]; the member that the type names is set.
    pub unsafe fn any(node: &CUgraphNodeParams) -> CuResult<Self> {
        let params = &node.params;
        // SAFETY: each member is read where the type says that it is set. The rest is the caller's duty.
        unsafe {
            match node.r#type {
                CU_GRAPH_NODE_TYPE_EMPTY => Ok(Operation::Empty.into()),
                CU_GRAPH_NODE_TYPE_KERNEL => Work::kernel(&params.kernel),
                CU_GRAPH_NODE_TYPE_MEMCPY => {
                    if params.memcpy.flags != 0 || params.memcpy.reserved != 0 {
                        return Err(CUDA_ERROR_INVALID_VALUE.into());
                    }
                    context_of(params.memcpy.copyCtx)?;
                    Work::copy(params.memcpy.copyParams)
                }
                CU_GRAPH_NODE_TYPE_MEMSET => {
                    let fill = params.memset;
                    Work::fill(&without_context(fill), fill.ctx)
                }
                CU_GRAPH_NODE_TYPE_HOST => Work::host(params.host),
                CU_GRAPH_NODE_TYPE_GRAPH => match params.graph.ownership {
                    CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => Work::child(params.graph.graph),
                    CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
                    _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
                },
                CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => Work::words(&params.words),
                CU_GRAPH_NODE_TYPE_WAIT_EVENT => Work::wait(params.event),
                CU_GRAPH_NODE_TYPE_EVENT_RECORD => Work::record(params.event),
                CU_GRAPH_NODE_TYPE_MEM_FREE => Work::free(params.free),
                CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => Work::signal(&params.signal),
                CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => Work::await_semaphores(&params.wait),
                CU_GRAPH_NODE_TYPE_CONDITIONAL => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
                // An allocation cannot become another.
                _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
            }
        }
    }
}

/// The context that a node is to run in; none stands for the current one.
fn context_of(handle: CUcontext) -> CuResult<Option<Arc<Context>>> {
    if handle.is_null() {
        return Ok(None);
    }
    let context = contexts::find(handle)?;
    context.check()?;
    Ok(Some(context))
}

/// The newer structure of an older one.
pub fn newer(old: CUDA_KERNEL_NODE_PARAMS_v1) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: old.func,
        gridDimX: old.gridDimX,
        gridDimY: old.gridDimY,
        gridDimZ: old.gridDimZ,
        blockDimX: old.blockDimX,
        blockDimY: old.blockDimY,
        blockDimZ: old.blockDimZ,
        sharedMemBytes: old.sharedMemBytes,
        kernelParams: old.kernelParams,
        extra: old.extra,
        kern: CUkernel::NULL,
        ctx: CUcontext::NULL,
    }
}

/// The older structure of a newer one.
pub fn older(new: CUDA_KERNEL_NODE_PARAMS) -> CUDA_KERNEL_NODE_PARAMS_v1 {
    CUDA_KERNEL_NODE_PARAMS_v1 {
        func: new.func,
        gridDimX: new.gridDimX,
        gridDimY: new.gridDimY,
        gridDimZ: new.gridDimZ,
        blockDimX: new.blockDimX,
        blockDimY: new.blockDimY,
        blockDimZ: new.blockDimZ,
        sharedMemBytes: new.sharedMemBytes,
        kernelParams: new.kernelParams,
        extra: new.extra,
    }
}

/// The structure of a fill.
pub fn fill_params(operation: &Operation) -> CuResult<CUDA_MEMSET_NODE_PARAMS> {
    match operation {
        Operation::Fill(fill) => Ok(CUDA_MEMSET_NODE_PARAMS {
            dst: CUdeviceptr(fill.address),
            pitch: fill.pitch as usize,
            value: fill.value,
            elementSize: fill.element,
            width: fill.width as usize,
            height: fill.height as usize,
        }),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

fn without_context(fill: CUDA_MEMSET_NODE_PARAMS_v2) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: fill.dst,
        pitch: fill.pitch,
        value: fill.value,
        elementSize: fill.elementSize,
        width: fill.width,
        height: fill.height,
    }
}

/// The event of a node. None at all is another mistake than one that there is not.
fn event_of(event: CUevent) -> CuResult<Arc<device::Event>> {
    if event.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    streams::find_event(event)
}
