//! Memory management: several copies in one call. Copies of a batch have no order among themselves; here they are made one after
//! another.

use crate::arrays;
use crate::error::{CuResult, Failure};
use crate::platform::device;
use crate::streams;
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::{Extent, Region, Side, Transfer};
use device::stream::SourceAccess;
use entry_macros::entry_point;
use std::sync::Arc;

/// A batch may not go to the legacy default stream.
pub(super) fn stream_of_batch(handle: CUstream, default: DefaultStream) -> CuResult<Arc<device::Stream>> {
    let stream = streams::find(handle, default)?;
    if stream.kind() == device::StreamKind::Legacy {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Ok(stream)
}

/// Which of several values each of `count` items takes, where value k is for the items from `firsts[k]` on.
pub(super) fn spread<T: Copy>(
    count: usize,
    values: Array<T>,
    firsts: Array<usize>,
    values_count: usize,
) -> CuResult<Vec<(usize, T)>> {
    // There is a value for each item, and an item for each value.
    if values_count == 0 || values_count > count {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let mut spread: Vec<(usize, T)> = Vec::new();
    for index in 0..values_count {
        let first = firsts.get(index)?;
        let in_order = match spread.last() {
            None => first == 0,
            Some((before, _)) => first > *before,
        };
        if !in_order || first >= count {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        spread.push((first, values.get(index)?));
    }
    Ok(spread)
}

/// The value for an item.
pub(super) fn value_for<T: Copy>(spread: &[(usize, T)], item: usize) -> T {
    let index = spread.partition_point(|(first, _)| *first <= item);
    spread[index - 1].1
}

/// Where something is wrong with one copy, which.
struct BadCopy {
    index: Option<usize>,
    failure: Failure,
}

impl<E: Into<Failure>> From<E> for BadCopy {
    fn from(error: E) -> Self {
        BadCopy { index: None, failure: error.into() }
    }
}

/// Makes a batch's copies. All are checked before the first is queued.
fn run(
    stream: CUstream,
    default: DefaultStream,
    count: usize,
    copy: impl Fn(usize) -> Result<(Transfer, SourceAccess), Failure>,
) -> Result<(), BadCopy> {
    let stream = stream_of_batch(stream, default)?;
    let context = stream.context()?;
    context.check()?;
    if count == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // A capture goes on without them.
    if stream.is_capturing() {
        return Err(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.into());
    }
    let mut copies = Vec::new();
    for index in 0..count {
        let bad = |failure| BadCopy { index: Some(index), failure };
        let (transfer, access) = copy(index).map_err(bad)?;
        transfer.check(context.memory()).map_err(|error| bad(error.into()))?;
        copies.push((transfer, access));
    }
    for (index, (transfer, access)) in copies.into_iter().enumerate() {
        let made = stream.copy_from(transfer, access);
        made.map_err(|error| BadCopy { index: Some(index), failure: error.into() })?;
    }
    Ok(())
}

/// Tells which copy is wrong; of what is wrong with none in particular, the greatest number there is.
fn report(outcome: Result<(), BadCopy>, place: Out<usize>) -> CuResult {
    outcome.map_err(|bad| {
        place.set_if_wanted(bad.index.unwrap_or(usize::MAX));
        bad.failure
    })
}

fn source_access(order: CUmemcpySrcAccessOrder, flags: u32) -> CuResult<SourceAccess> {
    if flags & !CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    match order {
        CU_MEMCPY_SRC_ACCESS_ORDER_STREAM | CU_MEMCPY_SRC_ACCESS_ORDER_ANY => Ok(SourceAccess::InStream),
        CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL => Ok(SourceAccess::DuringCall),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// Whether what is said of where memory is could be: nothing, or a place that there is.
fn check_hint(hint: &CUmemLocation) -> CuResult {
    hint.r#type.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    if hint.r#type == CU_MEM_LOCATION_TYPE_DEVICE {
        device(hint.id).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    }
    Ok(())
}

/// The arrays of `cuMemcpyBatchAsync`.
struct Rows {
    to: Array<CUdeviceptr>,
    from: Array<CUdeviceptr>,
    sizes: Array<usize>,
    count: usize,
    attributes: Array<CUmemcpyAttributes>,
    firsts: Array<usize>,
    attributes_count: usize,
}

impl Rows {
    /// # Safety
    /// Host memory that the addresses name may be read and written until the copies are done.
    unsafe fn copy(self, stream: CUstream, default: DefaultStream) -> Result<(), BadCopy> {
        let attributes = spread(self.count, self.attributes, self.firsts, self.attributes_count)?;
        for (_, attributes) in &attributes {
            source_access(attributes.srcAccessOrder, attributes.flags)?;
            check_hint(&attributes.srcLocHint)?;
            check_hint(&attributes.dstLocHint)?;
        }
        run(stream, default, self.count, |index| {
            let (to, from) = (self.to.get(index)?.0, self.from.get(index)?.0);
            let attributes = value_for(&attributes, index);
            // SAFETY: the caller's duty.
            let (to, from) = unsafe { (Side::any(to), Side::any(from)) };
            let size = self.sizes.get(index)?;
            if size == 0 {
                return Err(CUDA_ERROR_INVALID_VALUE.into());
            }
            let transfer = Transfer::linear(to, from, size as u64);
            Ok((transfer, source_access(attributes.srcAccessOrder, attributes.flags)?))
        })
    }
}

#[entry_point(ptsz)]
unsafe fn cuMemcpyBatchAsync(
    default: DefaultStream,
    dsts: Array<CUdeviceptr>,
    srcs: Array<CUdeviceptr>,
    sizes: Array<usize>,
    count: usize,
    attrs: Array<CUmemcpyAttributes>,
    attrsIdxs: Array<usize>,
    numAttrs: usize,
    failIdx: Out<usize>,
    hStream: CUstream,
) -> CuResult {
    let (attributes, firsts, attributes_count) = (attrs, attrsIdxs, numAttrs);
    let rows = Rows { to: dsts, from: srcs, sizes, count, attributes, firsts, attributes_count };
    // SAFETY: the caller's duty.
    report(unsafe { rows.copy(hStream, default) }, failIdx)
}

#[entry_point(ptsz)]
unsafe fn cuMemcpyBatchAsync_v2(
    default: DefaultStream,
    dsts: Array<CUdeviceptr>,
    srcs: Array<CUdeviceptr>,
    sizes: Array<usize>,
    count: usize,
    attrs: Array<CUmemcpyAttributes>,
    attrsIdxs: Array<usize>,
    numAttrs: usize,
    hStream: CUstream,
) -> CuResult {
    let (attributes, firsts, attributes_count) = (attrs, attrsIdxs, numAttrs);
    let rows = Rows { to: dsts, from: srcs, sizes, count, attributes, firsts, attributes_count };
    // SAFETY: the caller's duty.
    unsafe { rows.copy(hStream, default) }.map_err(|bad| bad.failure)
}

/// # Safety
/// Host memory that the operations name may be read and written until the copies are done.
unsafe fn copy_boxes(
    count: usize,
    operations: Array<CUDA_MEMCPY3D_BATCH_OP>,
    flags: u64,
    stream: CUstream,
    default: DefaultStream,
) -> Result<(), BadCopy> {
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    run(stream, default, count, |index| {
        let operation = operations.get(index)?;
        let CUextent3D { width, height, depth } = operation.extent;
        if width == 0 || height == 0 || depth == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        // With an array, what counts in elements counts in its texels; two arrays have texels of one size.
        let element = match (texel(&operation.src)?, texel(&operation.dst)?) {
            (None, None) => 1,
            (Some(a), Some(b)) if a != b => return Err(CUDA_ERROR_INVALID_VALUE.into()),
            (Some(texel), _) | (None, Some(texel)) => u64::from(texel),
        };
        let width = in_bytes(width, element)?;
        let extent = Extent { width, height: height as u64, depth: depth as u64 };
        // SAFETY: the caller's duty.
        let (to, from) =
            unsafe { (region(&operation.dst, element, extent)?, region(&operation.src, element, extent)?) };
        Ok((Transfer { to, from, extent }, source_access(operation.srcAccessOrder, operation.flags)?))
    })
}

fn in_bytes(elements: usize, element: u64) -> CuResult<u64> {
    Ok((elements as u64).checked_mul(element).ok_or(CUDA_ERROR_INVALID_VALUE)?)
}

/// Bytes of a texel of an operand that is an array.
fn texel(operand: &CUmemcpy3DOperand) -> CuResult<Option<u32>> {
    match operand.r#type {
        CU_MEMCPY_OPERAND_TYPE_POINTER => Ok(None),
        CU_MEMCPY_OPERAND_TYPE_ARRAY => {
            // SAFETY: the type says that it is this member.
            let array = unsafe { operand.op.array }.array;
            Ok(Some(arrays::level(array)?.texel))
        }
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// # Safety
/// As for [`copy_boxes`].
unsafe fn region(operand: &CUmemcpy3DOperand, element: u64, extent: Extent) -> CuResult<Region> {
    if operand.r#type == CU_MEMCPY_OPERAND_TYPE_ARRAY {
        // SAFETY: the type says that it is this member.
        let CUmemcpy3DArray { array, offset } = unsafe { operand.op.array };
        let x = in_bytes(offset.x, element)?;
        return Ok(arrays::level(array)?.region(x, offset.y as u64, offset.z as u64, extent)?);
    }
    // SAFETY: the type says that it is this member.
    let memory = unsafe { operand.op.ptr };
    // Zero stands for the extent's.
    let or = |given: u64, least: u64| match given {
        0 => Ok(least),
        given if given < least => Err(CUDA_ERROR_INVALID_VALUE),
        given => Ok(given),
    };
    let pitch = or(in_bytes(memory.rowLength, element)?, extent.width)?;
    let height = or(memory.layerHeight as u64, extent.height)?;
    let slice_pitch = pitch.checked_mul(height).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    // SAFETY: the caller's duty.
    Ok(Region { start: unsafe { Side::any(memory.ptr.0) }, pitch, slice_pitch })
}

#[entry_point(ptsz)]
unsafe fn cuMemcpy3DBatchAsync(
    default: DefaultStream,
    numOps: usize,
    opList: Array<CUDA_MEMCPY3D_BATCH_OP>,
    failIdx: Out<usize>,
    flags: u64,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    report(unsafe { copy_boxes(numOps, opList, flags, hStream, default) }, failIdx)
}

#[entry_point(ptsz)]
unsafe fn cuMemcpy3DBatchAsync_v2(
    default: DefaultStream,
    numOps: usize,
    opList: Array<CUDA_MEMCPY3D_BATCH_OP>,
    flags: u64,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    unsafe { copy_boxes(numOps, opList, flags, hStream, default) }.map_err(|bad| bad.failure)
}
