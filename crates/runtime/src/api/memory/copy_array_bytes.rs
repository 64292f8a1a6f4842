//! Copies of bytes to and from arrays (deprecated): a run of bytes that goes on in the next row where a row ends.

use super::copy::copy_2d;
use crate::api::prelude::*;
use crate::context;
use crate::copy::{ArrayRows, End, array_rows, check_kind_with_device, describe_2d};
use crate::streams::resolve;

/// Copies bytes into an array.
#[entry_point(ptds)]
fn cudaMemcpyToArray(
    default: DefaultStream,
    dst: cudaArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    to_array(When::Now(default), dst, wOffset, hOffset, src, count, kind)
}

/// Copies bytes into an array in stream order.
#[entry_point(ptsz)]
fn cudaMemcpyToArrayAsync(
    default: DefaultStream,
    dst: cudaArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> CudaResult {
    to_array(When::InOrder(resolve(default, stream)), dst, wOffset, hOffset, src, count, kind)
}

/// Copies bytes out of an array.
#[entry_point(ptds)]
fn cudaMemcpyFromArray(
    default: DefaultStream,
    dst: *mut c_void,
    src: cudaArray_const_t,
    wOffset: usize,
    hOffset: usize,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    from_array(When::Now(default), dst, src, wOffset, hOffset, count, kind)
}

/// Copies bytes out of an array in stream order.
#[entry_point(ptsz)]
fn cudaMemcpyFromArrayAsync(
    default: DefaultStream,
    dst: *mut c_void,
    src: cudaArray_const_t,
    wOffset: usize,
    hOffset: usize,
    count: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> CudaResult {
    from_array(When::InOrder(resolve(default, stream)), dst, src, wOffset, hOffset, count, kind)
}

/// Copies bytes from one array to another.
#[entry_point(ptds)]
fn cudaMemcpyArrayToArray(
    default: DefaultStream,
    dst: cudaArray_t,
    wOffsetDst: usize,
    hOffsetDst: usize,
    src: cudaArray_const_t,
    wOffsetSrc: usize,
    hOffsetSrc: usize,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    check_kind_with_device(kind, cudaMemcpyDefault)?;
    context::ensure_current()?;
    let from = Run::in_array(src.0, wOffsetSrc, hOffsetSrc, count)?;
    let to = Run::in_array(dst.0, wOffsetDst, hOffsetDst, count)?;
    copy(When::Now(default), from, to, count)
}

fn to_array(
    when: When,
    array: cudaArray_t,
    x: usize,
    y: usize,
    pointer: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    check_kind_with_device(kind, cudaMemcpyHostToDevice)?;
    context::ensure_current()?;
    let to = Run::in_array(array.0, x, y, count)?;
    copy(when, Run::Source { kind, pointer }, to, count)
}

fn from_array(
    when: When,
    pointer: *mut c_void,
    array: cudaArray_const_t,
    x: usize,
    y: usize,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    check_kind_with_device(kind, cudaMemcpyDeviceToHost)?;
    context::ensure_current()?;
    let from = Run::in_array(array.0, x, y, count)?;
    copy(when, from, Run::Destination { kind, pointer }, count)
}

#[derive(Clone, Copy)]
enum When {
    /// On the default stream.
    Now(DefaultStream),
    InOrder(CUstream),
}

/// A run of bytes.
#[derive(Clone, Copy)]
enum Run {
    Source { kind: cudaMemcpyKind, pointer: *const c_void },
    Destination { kind: cudaMemcpyKind, pointer: *mut c_void },
    Array { array: CUarray, rows: ArrayRows, begin: usize },
}

impl Run {
    /// `count` bytes of an array from byte `x` of row `y` on.
    fn in_array(array: usize, x: usize, y: usize, count: usize) -> CudaResult<Self> {
        if array == 0 {
            return Err(cudaErrorInvalidResourceHandle);
        }
        let array = CUarray(array);
        let rows = array_rows(array)?;
        let begin = y.checked_mul(rows.width).and_then(|begin| begin.checked_add(x));
        let size = rows.width.checked_mul(rows.height);
        match (begin, size) {
            (Some(begin), Some(size)) if begin.checked_add(count).is_some_and(|end| end <= size) => {
                Ok(Run::Array { array, rows, begin })
            }
            _ => Err(cudaErrorInvalidValue),
        }
    }

    /// The bytes left in the row after `done` bytes, and the width of a row; memory has no rows.
    fn row(&self, done: usize) -> Option<(usize, usize)> {
        match *self {
            Run::Array { rows, begin, .. } => Some((rows.width - (begin + done) % rows.width, rows.width)),
            _ => None,
        }
    }

    /// The place after `done` bytes, with rows `pitch` bytes apart if it is in memory.
    fn end(&self, done: usize, pitch: usize) -> End {
        match *self {
            Run::Source { kind, pointer } => End::source(kind, pointer.wrapping_byte_add(done), pitch, 0),
            Run::Destination { kind, pointer } => {
                End::destination(kind, pointer.wrapping_byte_add(done), pitch, 0)
            }
            Run::Array { array, rows, begin } => {
                End::array(array).at((begin + done) % rows.width, (begin + done) / rows.width, 0)
            }
        }
    }
}

/// Copies in as few boxes as the rows allow.
fn copy(when: When, from: Run, to: Run, count: usize) -> CudaResult {
    let mut done = 0;
    while done < count {
        let left = count - done;
        let ends = [from.row(done), to.row(done)];
        // The bytes until the first row ends, and the width of rows if all begin here and are equally long.
        let piece = ends.iter().flatten().map(|&(rest, _)| rest).fold(left, usize::min);
        let whole = ends.iter().flatten().all(|&(rest, width)| rest == width && width == piece);
        let height = if whole { left / piece } else { 1 };
        let description = describe_2d(from.end(done, piece), to.end(done, piece), piece, height);
        match when {
            When::Now(default) => copy_2d(default, &description)?,
            When::InOrder(stream) => call!(cuMemcpy2DAsync_v2(&description, stream))?,
        }
        done += piece * height;
    }
    Ok(())
}
