//! Context management.

use crate::contexts::{self, Context};
use crate::error::CuResult;
use crate::{coredump, stack, streams};
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use device::limits::PRIORITIES;
use device::{CacheConfig, Event, Limit, SharedConfig};
use entry_macros::entry_point;
use std::sync::Arc;

/// What `cuCtxGetApiVersion` says of every context.
const CONTEXT_API_VERSION: u32 = 3020;

#[entry_point]
fn cuCtxCreate(pctx: Out<CUcontext>, flags: u32, dev: CUdevice) -> CuResult {
    create(pctx, flags, dev)
}

#[entry_point]
fn cuCtxCreate_v2(pctx: Out<CUcontext>, flags: u32, dev: CUdevice) -> CuResult {
    create(pctx, flags, dev)
}

/// A context limited to some multiprocessors cannot be had.
#[entry_point]
fn cuCtxCreate_v3(
    pctx: Out<CUcontext>,
    paramsArray: *mut CUexecAffinityParam,
    numParams: i32,
    flags: u32,
    dev: CUdevice,
) -> CuResult {
    pctx.check()?;
    match (paramsArray.is_null(), numParams) {
        (_, 0) => create(pctx, flags, dev),
        (false, 1..) => Err(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY.into()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

#[entry_point]
fn cuCtxCreate_v4(
    pctx: Out<CUcontext>,
    ctxCreateParams: *mut CUctxCreateParams,
    flags: u32,
    dev: CUdevice,
) -> CuResult {
    // SAFETY: the manual wants null or a pointer to parameters.
    if let Some(parameters) = unsafe { ctxCreateParams.as_ref() } {
        if parameters.numExecAffinityParams != 0 {
            return Err(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY.into());
        }
        if !parameters.cigParams.is_null() {
            return Err(CUDA_ERROR_NOT_SUPPORTED.into());
        }
    }
    create(pctx, flags, dev)
}

fn create(place: Out<CUcontext>, flags: u32, device: CUdevice) -> CuResult {
    place.check()?;
    let context = contexts::create(device, flags)?;
    stack::push(context);
    place.set(context)?;
    Ok(())
}

#[entry_point]
fn cuCtxDestroy(ctx: CUcontext) -> CuResult {
    contexts::destroy(ctx)
}

#[entry_point]
fn cuCtxDestroy_v2(ctx: CUcontext) -> CuResult {
    contexts::destroy(ctx)
}

/// Deprecated: adds a use of the current context.
#[entry_point]
fn cuCtxAttach(pctx: Out<CUcontext>, flags: u32) -> CuResult {
    pctx.check()?;
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let context = contexts::current()?;
    context.attach();
    pctx.set(context.handle)?;
    Ok(())
}

/// Deprecated: takes back a use, the last of which destroys the context. It must be current.
#[entry_point]
fn cuCtxDetach(ctx: CUcontext) -> CuResult {
    let context = contexts::current()?;
    if context.handle != ctx {
        return Err(CUDA_ERROR_INVALID_CONTEXT.into());
    }
    if context.detach() { contexts::destroy(ctx) } else { Ok(()) }
}

#[entry_point]
fn cuCtxPushCurrent(ctx: CUcontext) -> CuResult {
    push(ctx)
}

#[entry_point]
fn cuCtxPushCurrent_v2(ctx: CUcontext) -> CuResult {
    push(ctx)
}

fn push(context: CUcontext) -> CuResult {
    if context.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    contexts::check_handle(context)?;
    stack::push(context);
    Ok(())
}

#[entry_point]
fn cuCtxPopCurrent(pctx: Out<CUcontext>) -> CuResult {
    pctx.set_if_wanted(stack::pop().ok_or(CUDA_ERROR_INVALID_CONTEXT)?);
    Ok(())
}

#[entry_point]
fn cuCtxPopCurrent_v2(pctx: Out<CUcontext>) -> CuResult {
    pctx.set_if_wanted(stack::pop().ok_or(CUDA_ERROR_INVALID_CONTEXT)?);
    Ok(())
}

#[entry_point]
fn cuCtxSetCurrent(ctx: CUcontext) -> CuResult {
    // What is current has been looked at before.
    if stack::top() == Some(ctx) {
        return Ok(());
    }
    if !ctx.is_null() {
        contexts::check_handle(ctx)?;
    }
    stack::set(ctx);
    Ok(())
}

#[entry_point]
fn cuCtxGetCurrent(pctx: Out<CUcontext>) -> CuResult {
    pctx.set(stack::top().unwrap_or(CUcontext::NULL))?;
    Ok(())
}

/// A destroyed context still knows its device.
#[entry_point]
fn cuCtxGetDevice(device: Out<CUdevice>) -> CuResult {
    device.check()?.set(contexts::device_of(stack::top().ok_or(CUDA_ERROR_INVALID_CONTEXT)?)?)?;
    Ok(())
}

#[entry_point]
fn cuCtxGetDevice_v2(device: Out<CUdevice>, ctx: CUcontext) -> CuResult {
    let context = if ctx.is_null() { stack::top().ok_or(CUDA_ERROR_INVALID_CONTEXT)? } else { ctx };
    device.check()?.set(contexts::device_of(context)?)?;
    Ok(())
}

/// A primary context always tells that it maps the host's memory, others what they were made with.
#[entry_point]
fn cuCtxGetFlags(flags: Out<u32>) -> CuResult {
    let place = flags.check()?;
    let context = contexts::current()?;
    let always = if context.is_primary() { CU_CTX_MAP_HOST } else { 0 };
    place.set(contexts::write_flags(context.flags()?) | always)?;
    Ok(())
}

#[entry_point]
fn cuCtxSetFlags(flags: u32) -> CuResult {
    let (context, flags) = (contexts::current()?, contexts::read_flags(flags)?);
    context.set_flags(flags)?;
    coredump::heed_flags(context.id(), flags);
    Ok(())
}

#[entry_point]
fn cuCtxGetId(ctx: CUcontext, ctxId: Out<u64>) -> CuResult {
    ctxId.check()?;
    let context = contexts::named_or_current(ctx)?;
    ctxId.set(context.partition().map_or(context.id().0, |partition| partition.id()))?;
    Ok(())
}

#[entry_point]
fn cuCtxGetApiVersion(ctx: CUcontext, version: Out<u32>) -> CuResult {
    version.check()?;
    contexts::named_or_current(ctx).map_err(|_| CUDA_ERROR_INVALID_CONTEXT)?;
    version.set(CONTEXT_API_VERSION)?;
    Ok(())
}

#[entry_point]
fn cuCtxSynchronize() -> CuResult {
    contexts::current()?.synchronize()?;
    Ok(())
}

#[entry_point]
fn cuCtxSynchronize_v2(ctx: CUcontext) -> CuResult {
    contexts::named_or_current(ctx)?.synchronize()?;
    Ok(())
}

#[entry_point]
fn cuCtxGetLimit(pvalue: Out<usize>, limit: CUlimit) -> CuResult {
    pvalue.check()?.set(contexts::current()?.limit(read_limit(limit)?)? as usize)?;
    Ok(())
}

#[entry_point]
fn cuCtxSetLimit(limit: CUlimit, value: usize) -> CuResult {
    let context = contexts::current()?;
    // They are the hardware's.
    if matches!(limit, CU_LIMIT_SHMEM_SIZE | CU_LIMIT_CIG_ENABLED) {
        return Err(CUDA_ERROR_NOT_PERMITTED.into());
    }
    device::graph::check_unsafe_call()?;
    context.set_limit(read_limit(limit)?, value as u64)?;
    Ok(())
}

#[entry_point]
fn cuCtxGetStreamPriorityRange(leastPriority: Out<i32>, greatestPriority: Out<i32>) -> CuResult {
    contexts::usable()?;
    leastPriority.set_if_wanted(PRIORITIES.0);
    greatestPriority.set_if_wanted(PRIORITIES.1);
    Ok(())
}

/// A green context is limited to some multiprocessors; every other has them all.
#[entry_point]
fn cuCtxGetExecAffinity(pExecAffinity: Out<CUexecAffinityParam>, r#type: CUexecAffinityType) -> CuResult {
    pExecAffinity.check()?;
    r#type.name().ok_or(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY)?;
    let multiprocessors = contexts::usable()?.processors();
    pExecAffinity.set(CUexecAffinityParam { r#type, smCount: multiprocessors })?;
    Ok(())
}

/// What a context does with an event. It is not the current one without its name.
fn named_with_event(context: CUcontext, event: CUevent) -> CuResult<(Arc<Context>, Arc<Event>)> {
    if context.is_null() {
        return Err(CUDA_ERROR_INVALID_CONTEXT.into());
    }
    Ok((contexts::named_or_current(context)?, streams::find_event(event)?))
}

/// The event stands for the work of all streams. It must be of the same context.
#[entry_point]
fn cuCtxRecordEvent(hCtx: CUcontext, hEvent: CUevent) -> CuResult {
    let (context, event) = named_with_event(hCtx, hEvent)?;
    if let Some(partition) = context.partition() {
        return Ok(partition.record(&event)?);
    }
    if !Arc::ptr_eq(&context.context, &event.context()?) {
        return Err(CUDA_ERROR_INVALID_HANDLE.into());
    }
    event.record_context()?;
    Ok(())
}

#[entry_point]
fn cuCtxWaitEvent(hCtx: CUcontext, hEvent: CUevent) -> CuResult {
    let (context, event) = named_with_event(hCtx, hEvent)?;
    match context.partition() {
        Some(partition) => partition.wait_event(&event)?,
        None => context.wait_event(&event)?,
    }
    Ok(())
}

/// Caches are the processor's: a preference is kept and has no effect.
#[entry_point]
fn cuCtxSetCacheConfig(config: CUfunc_cache) -> CuResult {
    let config = match config {
        CU_FUNC_CACHE_PREFER_NONE => CacheConfig::PreferNone,
        CU_FUNC_CACHE_PREFER_SHARED => CacheConfig::PreferShared,
        CU_FUNC_CACHE_PREFER_L1 => CacheConfig::PreferL1,
        CU_FUNC_CACHE_PREFER_EQUAL => CacheConfig::PreferEqual,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    contexts::current()?.set_cache_config(config)?;
    Ok(())
}

#[entry_point]
fn cuCtxGetCacheConfig(pconfig: Out<CUfunc_cache>) -> CuResult {
    let config = match contexts::current()?.cache_config()? {
        CacheConfig::PreferNone => CU_FUNC_CACHE_PREFER_NONE,
        CacheConfig::PreferShared => CU_FUNC_CACHE_PREFER_SHARED,
        CacheConfig::PreferL1 => CU_FUNC_CACHE_PREFER_L1,
        CacheConfig::PreferEqual => CU_FUNC_CACHE_PREFER_EQUAL,
    };
    pconfig.set(config)?;
    Ok(())
}

/// Deprecated: the preference is kept and has no effect.
#[entry_point]
fn cuCtxSetSharedMemConfig(config: CUsharedconfig) -> CuResult {
    let config = match config {
        CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE => SharedConfig::Default,
        CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE => SharedConfig::FourBytes,
        CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE => SharedConfig::EightBytes,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    contexts::current()?.set_shared_config(config)?;
    Ok(())
}

/// Deprecated: the width that was asked for.
#[entry_point]
fn cuCtxGetSharedMemConfig(pConfig: Out<CUsharedconfig>) -> CuResult {
    let config = match contexts::current()?.shared_config()? {
        SharedConfig::Default | SharedConfig::FourBytes => CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE,
        SharedConfig::EightBytes => CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE,
    };
    pConfig.set(config)?;
    Ok(())
}

/// No cache lines persist, so none are to be reset.
#[entry_point]
fn cuCtxResetPersistingL2Cache() -> CuResult {
    contexts::usable()?;
    Ok(())
}

/// Unknown limits are invalid values.
fn read_limit(limit: CUlimit) -> CuResult<Limit> {
    Ok(match limit {
        CU_LIMIT_STACK_SIZE => Limit::StackSize,
        CU_LIMIT_PRINTF_FIFO_SIZE => Limit::PrintfFifoSize,
        CU_LIMIT_MALLOC_HEAP_SIZE => Limit::MallocHeapSize,
        CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH => Limit::DevRuntimeSyncDepth,
        CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => Limit::DevRuntimePendingLaunchCount,
        CU_LIMIT_MAX_L2_FETCH_GRANULARITY => Limit::MaxL2FetchGranularity,
        CU_LIMIT_PERSISTING_L2_CACHE_SIZE => Limit::PersistingL2CacheSize,
        CU_LIMIT_SHMEM_SIZE => Limit::SharedMemorySize,
        CU_LIMIT_CIG_ENABLED => Limit::CigEnabled,
        CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED => Limit::CigSharedMemoryFallback,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    })
}
