//! Green contexts: parts of a device's multiprocessors.

use super::common::*;

const SM: CUdevResourceType = CU_DEV_RESOURCE_TYPE_SM;

fn nothing() -> CUdevResource {
    // SAFETY: zeros are a resource of no type.
    unsafe { std::mem::zeroed() }
}

fn all() -> CUdevResource {
    let mut all = nothing();
    cu!(cuDeviceGetDevResource(0, &mut all, SM));
    all
}

/// Parts of a resource, and what is left of it.
fn split(input: &CUdevResource, least: u32, most: usize) -> (Vec<CUdevResource>, CUdevResource) {
    let (mut parts, mut rest, mut count) = (vec![nothing(); most], nothing(), most as u32);
    cu!(cuDevSmResourceSplitByCount(parts.as_mut_ptr(), &mut count, input, &mut rest, 0, least));
    parts.truncate(count as usize);
    (parts, rest)
}

/// A device of which half can be taken; others are skipped.
fn setup() -> (CUcontext, CUdevResource) {
    if is_ours() {
        set_env("ANYWARP_MULTIPROCESSORS", "8");
    }
    init();
    let mut primary = CUcontext::NULL;
    cu!(cuDevicePrimaryCtxRetain(&mut primary, 0); cuCtxSetCurrent(primary));
    (primary, all())
}

/// A green context with some of the device.
fn green(all: &CUdevResource) -> CUgreenCtx {
    let (parts, _) = split(all, all.sm.smCount / 4, 1);
    let (mut description, mut green) = (CUdevResourceDesc::NULL, CUgreenCtx::NULL);
    cu!(
        cuDevResourceGenerateDesc(&mut description, parts.as_ptr().cast_mut(), 1);
        cuGreenCtxCreate(&mut green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    );
    green
}

fn context_of(green: CUgreenCtx) -> CUcontext {
    let mut context = CUcontext::NULL;
    cu!(cuCtxFromGreenCtx(&mut context, green));
    context
}

fn stream_of(green: CUgreenCtx) -> CUstream {
    let mut stream = CUstream::NULL;
    cu!(cuGreenCtxStreamCreate(&mut stream, green, CU_STREAM_NON_BLOCKING, 0));
    stream
}

pub fn a_device_tells_its_multiprocessors() {
    let (primary, all) = setup();
    assert_eq!(
        (all.r#type, all.sm.smCount as i32),
        (SM, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT))
    );
    assert!(all.sm.minSmPartitionSize > 0 && all.sm.smCoscheduledAlignment > 0);
    let mut of_context = nothing();
    cu!(cuCtxGetDevResource(primary, &mut of_context, SM));
    assert_eq!(of_context.sm, all.sm);
    let mut resource = nothing();
    for r#type in [CU_DEV_RESOURCE_TYPE_INVALID, CUdevResourceType(99)] {
        fails!(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(0, &mut resource, r#type));
        fails!(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuCtxGetDevResource(primary, &mut resource, r#type));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetDevResource(0, null_mut(), SM));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDevResource(99, &mut resource, SM));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevResource(CUcontext::NULL, &mut resource, SM));
}

pub fn parts_are_as_large_as_asked_for_and_aligned() {
    let (_, all) = setup();
    let CUdevSmResource { smCount: total, minSmPartitionSize: least, smCoscheduledAlignment: align } = all.sm;
    for wanted in [0, 1, 2, 3, total / 4, total / 2, total] {
        // Where a whole one does not fit, a part is all that there is.
        let size = wanted.max(least).next_multiple_of(align).min(total);
        let (mut count, many) = (0, (total / size) as usize);
        cu!(cuDevSmResourceSplitByCount(null_mut(), &mut count, &all, null_mut(), 0, wanted));
        // On a GPU, a part's multiprocessors are neighbours, so that some are left over.
        let many = if is_ours() { many } else { many.min(count as usize) };
        assert_eq!(count as usize, many, "{wanted}");
        for most in [1, many, many + 1] {
            let (parts, rest) = split(&all, wanted, most);
            assert_eq!(parts.len(), most.min(many), "{wanted} {most}");
            assert!(parts.iter().all(|part| part.r#type == SM && part.sm.smCount == size), "{wanted} {most}");
            let left = total - size * parts.len() as u32;
            assert_eq!(rest.sm.smCount, left, "{wanted} {most}");
            assert_eq!(rest.r#type, if left == 0 { CU_DEV_RESOURCE_TYPE_INVALID } else { SM });
        }
    }
}

pub fn what_cannot_be_split() {
    let (_, all) = setup();
    let (mut part, mut count, total) = (nothing(), 1, all.sm.smCount);
    let invalid = CUDA_ERROR_INVALID_VALUE;
    fails!(invalid, cuDevSmResourceSplitByCount(&mut part, null_mut(), &all, null_mut(), 0, 1));
    fails!(invalid, cuDevSmResourceSplitByCount(&mut part, &mut count, null(), null_mut(), 0, 1));
    fails!(invalid, cuDevSmResourceSplitByCount(&mut part, &mut count, &all, null_mut(), 3, 1));
    let typeless = CUDA_ERROR_INVALID_RESOURCE_TYPE;
    fails!(typeless, cuDevSmResourceSplitByCount(&mut part, &mut count, &nothing(), null_mut(), 0, 1));
    let large = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    fails!(large, cuDevSmResourceSplitByCount(&mut part, &mut count, &all, null_mut(), 0, total + 1));
    let (parts, _) = split(&all, 1, 1);
    fails!(large, cuDevSmResourceSplitByCount(&mut part, &mut count, &parts[0], null_mut(), 0, 1));
}

pub fn descriptions_are_of_one_split() {
    let (_, all) = setup();
    let (parts, rest) = split(&all, all.sm.smCount / 4, 2);
    let (others, _) = split(&all, all.sm.smCount / 4, 2);
    let mut description = CUdevResourceDesc::NULL;
    let mut describe = |list: &[CUdevResource]| {
        let (list, count) = (list.as_ptr().cast_mut(), list.len() as u32);
        // SAFETY: as many resources as counted.
        unsafe { cuDevResourceGenerateDesc(&mut description, list, count) }
    };
    for list in [&parts[..1], &parts, &[parts[0], rest], &[all]] {
        assert_eq!(describe(list), CUDA_SUCCESS);
    }
    let wrong = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    let code = differs("which split a part is of is known", wrong, CUDA_SUCCESS);
    assert_eq!(describe(&[parts[0], others[1]]), code);
    assert_eq!(describe(&[parts[0], all]), code);
    assert_eq!(describe(&[nothing()]), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(null_mut(), parts.as_ptr().cast_mut(), 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&mut description, null_mut(), 1));
    if ours_only("NVIDIA's driver crashes") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&mut description, null_mut(), 0));
    }
}

pub fn a_green_context_has_its_part() {
    let (primary, all) = setup();
    let (first, second) = (green(&all), green(&all));
    let (context, mut of_green, mut of_context) = (context_of(first), nothing(), nothing());
    assert!(context != primary && context != context_of(second) && context == context_of(first));
    cu!(
        cuGreenCtxGetDevResource(first, &mut of_green, SM);
        cuCtxGetDevResource(context, &mut of_context, SM);
    );
    assert!(of_green.sm.smCount >= all.sm.smCount / 4 && of_green.sm.smCount < all.sm.smCount);
    assert_eq!(of_green.sm, of_context.sm);
    // It can be split again.
    assert_eq!(split(&of_green, 1, 1).0.len(), 1);
    let (mut one, mut other, mut current, mut id) = (0, 0, 0, 0);
    cu!(
        cuCtxGetId(context, &mut id);
        cuGreenCtxGetId(first, &mut one);
        cuGreenCtxGetId(second, &mut other);
        cuCtxSetCurrent(context);
        cuGreenCtxGetId(CUgreenCtx::NULL, &mut current);
    );
    assert!(one != other && one == current && one == id);
    let mut device = 9;
    cu!(cuCtxGetDevice(&mut device));
    assert_eq!((super::common::current(), device), (context, 0));
    cu!(cuGreenCtxDestroy(second); cuGreenCtxDestroy(first); cuCtxSetCurrent(primary));
}

pub fn a_stream_has_the_part_of_its_context() {
    if !ours_only("this version of the driver does not have the function") {
        return;
    }
    let (primary, all) = setup();
    let first = green(&all);
    let (of_primary, of_green) = (stream(CU_STREAM_NON_BLOCKING), stream_of(first));
    let (mut whole, mut part, mut context_part) = (nothing(), nothing(), nothing());
    cu!(
        cuStreamGetDevResource(of_primary, &mut whole, SM);
        cuStreamGetDevResource(of_green, &mut part, SM);
        cuGreenCtxGetDevResource(first, &mut context_part, SM);
    );
    assert_eq!((whole.sm, part.sm), (all.sm, context_part.sm));
    fails!(
        CUDA_ERROR_INVALID_RESOURCE_TYPE,
        cuStreamGetDevResource(of_primary, &mut whole, CUdevResourceType(99))
    );
    cu!(cuGreenCtxDestroy(first); cuCtxSetCurrent(primary));
}

pub fn streams_know_their_green_context() {
    let (primary, all) = setup();
    let first = green(&all);
    let context = context_of(first);
    let (of_green, of_primary) = (stream_of(first), stream(CU_STREAM_NON_BLOCKING));
    let green_of = |stream| {
        let (mut green, mut same, mut context) = (CUgreenCtx(1), CUgreenCtx(1), CUcontext(1));
        cu!(cuStreamGetGreenCtx(stream, &mut green); cuStreamGetCtx_v2(stream, &mut context, &mut same));
        assert_eq!(green, same);
        (green, context)
    };
    assert_eq!(green_of(of_green), (first, primary));
    let mut of_context = CUcontext::NULL;
    cu!(cuStreamGetCtx(of_green, &mut of_context));
    assert_eq!(of_context, context);
    assert_eq!(green_of(of_primary), (CUgreenCtx::NULL, primary));
    assert_eq!(green_of(CUstream::NULL), (CUgreenCtx::NULL, primary));
    cu!(cuCtxSetCurrent(context));
    assert_eq!(green_of(CUstream::NULL).0, first);
    assert_eq!(green_of(stream(CU_STREAM_NON_BLOCKING)).0, first);
    cu!(cuCtxSetCurrent(primary));
    let mut priority = 9;
    cu!(cuStreamGetPriority(of_green, &mut priority));
    assert_eq!(priority, 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetGreenCtx(of_green, null_mut()));
    let mut made = CUstream::NULL;
    fails!(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&mut made, first, CU_STREAM_DEFAULT, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(null_mut(), first, CU_STREAM_NON_BLOCKING, 0));
}

pub fn kernels_run_in_a_green_context() {
    let (primary, all) = setup();
    let first = green(&all);
    let (function, p) = (kernel(c"poke"), alloc_with(&[0_u32; 4]));
    let at = |index: u64| CUdeviceptr(p.0 + 4 * index);
    // A stream of the green context, with the primary context current, and its default stream.
    assert_eq!(launch(function, 64, 32, stream_of(first), &mut [arg(&at(0))]), CUDA_SUCCESS);
    cu!(cuCtxSetCurrent(context_of(first)));
    assert_eq!(launch(function, 64, 32, CUstream::NULL, &mut [arg(&at(1))]), CUDA_SUCCESS);
    assert_eq!(launch(function, 64, 32, stream(CU_STREAM_NON_BLOCKING), &mut [arg(&at(2))]), CUDA_SUCCESS);
    cu!(cuCtxSynchronize(); cuCtxSetCurrent(primary); cuCtxSynchronize());
    assert_eq!(read::<u32>(p, 4), [1, 1, 1, 0]);
}

pub fn events_stand_for_a_green_context() {
    let (_, all) = setup();
    let (first, second) = (green(&all), green(&all));
    let (s, t, e, p) =
        (stream_of(first), stream_of(second), event(CU_EVENT_DISABLE_TIMING), alloc_with(&[0_u32; 2]));
    let gate = Gate::new();
    gate.hold(s);
    cu!(cuMemsetD32Async(p, 5, 1, s); cuGreenCtxRecordEvent(second, e); cuEventSynchronize(e));
    cu!(cuGreenCtxRecordEvent(first, e));
    fails!(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    // All streams of the other wait, one that is made later too.
    cu!(cuGreenCtxWaitEvent(second, e));
    let later = stream_of(second);
    for (index, stream) in [(0, t), (1, later)] {
        let to = CUdeviceptr(p.0 + 4);
        cu!(cuMemcpyDtoDAsync_v2(to, p, 4, stream));
        fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
        assert!(index < 2);
    }
    gate.open();
    cu!(cuStreamSynchronize(t); cuStreamSynchronize(later));
    assert_eq!(read::<u32>(p, 2), [5, 5]);
    // The functions for contexts do the same.
    cu!(cuCtxRecordEvent(context_of(first), e); cuCtxWaitEvent(context_of(second), e); cuEventSynchronize(e));
    let stale = CUevent::NULL;
    fails!(CUDA_ERROR_INVALID_HANDLE, cuGreenCtxRecordEvent(first, stale));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuGreenCtxWaitEvent(first, stale));
    let mut graph = CUgraph::NULL;
    for round in 0..2 {
        cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        match round {
            0 => fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGreenCtxRecordEvent(first, e)),
            _ => fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGreenCtxWaitEvent(first, e)),
        }
        fails!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &mut graph));
    }
}

pub fn a_green_context_retains_the_primary_context() {
    let (_, all) = setup();
    let first = green(&all);
    let (mut flags, mut active) = (0, 0);
    cu!(cuDevicePrimaryCtxRelease_v2(0); cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
    assert_eq!(active, 1);
    cu!(cuGreenCtxDestroy(first); cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
    assert_eq!(active, 0);
}

pub fn what_a_green_context_cannot_be() {
    let (_, all) = setup();
    let (mut description, mut made) = (CUdevResourceDesc::NULL, CUgreenCtx::NULL);
    let (parts, _) = split(&all, 1, 1);
    cu!(cuDevResourceGenerateDesc(&mut description, parts.as_ptr().cast_mut(), 1));
    let invalid = CUDA_ERROR_INVALID_VALUE;
    for flags in [0, 2, 3] {
        fails!(invalid, cuGreenCtxCreate(&mut made, description, 0, flags));
    }
    fails!(invalid, cuGreenCtxCreate(null_mut(), description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    fails!(
        CUDA_ERROR_INVALID_DEVICE,
        cuGreenCtxCreate(&mut made, description, 99, CU_GREEN_CTX_DEFAULT_STREAM)
    );
    // Without a description it is of the whole device.
    let mut resource = nothing();
    cu!(
        cuGreenCtxCreate(&mut made, CUdevResourceDesc::NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM);
        cuGreenCtxGetDevResource(made, &mut resource, SM);
    );
    assert_eq!(resource.sm, all.sm);
    let first = green(&all);
    fails!(invalid, cuCtxFromGreenCtx(null_mut(), first));
    fails!(invalid, cuGreenCtxGetId(first, null_mut()));
    fails!(invalid, cuGreenCtxGetDevResource(first, null_mut(), SM));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(context_of(first)));
}

pub fn a_destroyed_green_context_is_of_no_use() {
    if !ours_only("NVIDIA's driver frees what is free already") {
        return;
    }
    let (primary, all) = setup();
    let first = green(&all);
    let (context, s) = (context_of(first), stream_of(first));
    cu!(cuGreenCtxDestroy(first));
    let (mut id, mut resource, mut stream, mut handle) = (0, nothing(), CUstream::NULL, CUcontext::NULL);
    let destroyed = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    fails!(destroyed, cuGreenCtxDestroy(first));
    fails!(destroyed, cuGreenCtxGetId(first, &mut id));
    fails!(destroyed, cuGreenCtxGetDevResource(first, &mut resource, SM));
    fails!(destroyed, cuGreenCtxStreamCreate(&mut stream, first, CU_STREAM_NON_BLOCKING, 0));
    fails!(destroyed, cuCtxFromGreenCtx(&mut handle, first));
    fails!(destroyed, cuStreamQuery(s));
    fails!(destroyed, cuStreamSynchronize(s));
    fails!(destroyed, cuStreamGetGreenCtx(s, &mut CUgreenCtx(0)));
    fails!(destroyed, cuStreamDestroy_v2(s));
    cu!(cuCtxSetCurrent(context));
    fails!(destroyed, cuCtxSynchronize());
    cu!(cuCtxSetCurrent(primary); cuCtxSynchronize());
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxDestroy(CUgreenCtx::NULL));
}
