//! Descriptions of copies in the driver's terms.

use std::ffi::c_void;
use std::ptr;

use cuda_abi::driver::*;
use cuda_abi::runtime::*;

use crate::driver::call;
use crate::formats;

/// An address as the driver writes it.
pub fn device_pointer(pointer: *const c_void) -> CUdeviceptr {
    CUdeviceptr(pointer.expose_provenance() as u64)
}

/// Fails for a number that is no direction.
pub fn check_kind(kind: cudaMemcpyKind) -> CudaResult {
    if kind <= cudaMemcpyDefault { Ok(()) } else { Err(cudaErrorInvalidMemcpyDirection) }
}

/// Fails unless the direction is `with_host` or leaves the host out, for copies with one end on the device.
pub fn check_kind_with_device(kind: cudaMemcpyKind, with_host: cudaMemcpyKind) -> CudaResult {
    let allowed = [with_host, cudaMemcpyDeviceToDevice, cudaMemcpyDefault].contains(&kind);
    if allowed { Ok(()) } else { Err(cudaErrorInvalidMemcpyDirection) }
}

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub struct End {
    place: Place,
    /// Bytes into the row.
    x: usize,
    y: usize,
    z: usize,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Memory { kind: CUmemorytype, pointer: *mut c_void, pitch: usize, height: usize },
    Array(CUarray),
}

impl End {
    /// Memory whose rows lie `pitch` bytes apart and whose slices have `height` rows, read from in direction `kind`.
    pub fn source(kind: cudaMemcpyKind, pointer: *const c_void, pitch: usize, height: usize) -> Self {
        Self::memory(source_type(kind), pointer.cast_mut(), pitch, height)
    }

    /// The same, written to.
    pub fn destination(kind: cudaMemcpyKind, pointer: *mut c_void, pitch: usize, height: usize) -> Self {
        Self::memory(destination_type(kind), pointer, pitch, height)
    }

    /// An array.
    pub fn array(array: CUarray) -> Self {
        Self { place: Place::Array(array), x: 0, y: 0, z: 0 }
    }

    /// Moves the end to a place in the memory or array; `x` in bytes.
    pub fn at(self, x: usize, y: usize, z: usize) -> Self {
        Self { x, y, z, ..self }
    }

    fn memory(kind: CUmemorytype, pointer: *mut c_void, pitch: usize, height: usize) -> Self {
        Self { place: Place::Memory { kind, pointer, pitch, height }, x: 0, y: 0, z: 0 }
    }

    fn kind(&self) -> CUmemorytype {
        match self.place {
            Place::Memory { kind, .. } => kind,
            Place::Array(_) => CU_MEMORYTYPE_ARRAY,
        }
    }

    fn host(&self) -> *mut c_void {
        match self.place {
            Place::Memory { kind: CU_MEMORYTYPE_HOST, pointer, .. } => pointer,
            _ => ptr::null_mut(),
        }
    }

    fn device(&self) -> CUdeviceptr {
        match self.place {
            Place::Memory { kind, pointer, .. } if kind != CU_MEMORYTYPE_HOST => device_pointer(pointer),
            _ => CUdeviceptr(0),
        }
    }

    fn in_array(&self) -> CUarray {
        match self.place {
            Place::Array(array) => array,
            Place::Memory { .. } => CUarray::NULL,
        }
    }

    fn pitch(&self) -> usize {
        if let Place::Memory { pitch, .. } = self.place { pitch } else { 0 }
    }

    fn height(&self) -> usize {
        if let Place::Memory { height, .. } = self.place { height } else { 0 }
    }
}

/// A copy of `height` rows of `width` bytes.
pub fn describe_2d(source: End, destination: End, width: usize, height: usize) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: source.x,
        srcY: source.y,
        srcMemoryType: source.kind(),
        srcHost: source.host(),
        srcDevice: source.device(),
        srcArray: source.in_array(),
        srcPitch: source.pitch(),
        dstXInBytes: destination.x,
        dstY: destination.y,
        dstMemoryType: destination.kind(),
        dstHost: destination.host(),
        dstDevice: destination.device(),
        dstArray: destination.in_array(),
        dstPitch: destination.pitch(),
        WidthInBytes: width,
        Height: height,
    }
}

/// A copy of a box; `None` if there is nothing in it.
pub fn describe_3d(parameters: &cudaMemcpy3DParms) -> CudaResult<Option<CUDA_MEMCPY3D>> {
    let p = parameters;
    check_kind(p.kind)?;
    let (source, destination) = (
        BoxEnd { array: CUarray(p.srcArray.0), pointer: p.srcPtr, position: p.srcPos },
        BoxEnd { array: CUarray(p.dstArray.0), pointer: p.dstPtr, position: p.dstPos },
    );
    // An array is not the host's: that is asked only of the source.
    let from_host = matches!(p.kind, cudaMemcpyHostToHost | cudaMemcpyHostToDevice);
    if from_host && !source.array.is_null() {
        return Err(cudaErrorInvalidValue);
    }
    describe_box([(source, source_type(p.kind)), (destination, destination_type(p.kind))], p.extent)
}

/// A copy of a box from one place to another, whichever kind of memory each is; `None` if there is nothing in it.
fn describe_box(
    ends: [(BoxEnd, CUmemorytype); 2],
    elements: cudaExtent,
) -> CudaResult<Option<CUDA_MEMCPY3D>> {
    let [(source, source_type), (destination, destination_type)] = ends;
    let scale = scale(&source, &destination)?;
    let Some(extent) = extent_in_bytes(elements, scale)? else { return Ok(None) };
    let (source, destination) = (
        source.end(source_type, scale, &extent, elements.width)?,
        destination.end(destination_type, scale, &extent, elements.width)?,
    );
    Ok(Some(CUDA_MEMCPY3D {
        srcXInBytes: source.x,
        srcY: source.y,
        srcZ: source.z,
        srcLOD: 0,
        srcMemoryType: source.kind(),
        srcHost: source.host(),
        srcDevice: source.device(),
        srcArray: source.in_array(),
        reserved0: ptr::null_mut(),
        srcPitch: source.pitch(),
        srcHeight: source.height(),
        dstXInBytes: destination.x,
        dstY: destination.y,
        dstZ: destination.z,
        dstLOD: 0,
        dstMemoryType: destination.kind(),
        dstHost: destination.host(),
        dstDevice: destination.device(),
        dstArray: destination.in_array(),
        reserved1: ptr::null_mut(),
        dstPitch: destination.pitch(),
        dstHeight: destination.height(),
        WidthInBytes: extent.width,
        Height: extent.height,
        Depth: extent.depth,
    }))
}

/// A copy of bytes, as a box of one row.
pub fn describe_1d(
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult<CUDA_MEMCPY3D> {
    let row = |ptr| cudaPitchedPtr { ptr, pitch: count, xsize: count, ysize: 1 };
    let start = cudaPos { x: 0, y: 0, z: 0 };
    let parameters = cudaMemcpy3DParms {
        srcArray: cudaArray_t::NULL,
        srcPos: start,
        srcPtr: row(src.cast_mut()),
        dstArray: cudaArray_t::NULL,
        dstPos: start,
        dstPtr: row(dst),
        extent: cudaExtent { width: count, height: 1, depth: 1 },
        kind,
    };
    let copy = describe_3d(&parameters)?.ok_or(cudaErrorInvalidValue)?;
    // A single row needs no pitch and no height, and is told without.
    Ok(CUDA_MEMCPY3D { srcPitch: 0, srcHeight: 0, dstPitch: 0, dstHeight: 0, ..copy })
}

/// The runtime's description of a copy that the driver describes.
pub fn describe_for_runtime(copy: &CUDA_MEMCPY3D) -> CudaResult<cudaMemcpy3DParms> {
    let c = copy;
    let array = [c.srcArray, c.dstArray].into_iter().find(|array| !array.is_null());
    // With an array, steps in x are its elements, and those of compressed ones are texels.
    let Scale { bytes, side } = array.map_or(Ok(Scale { bytes: 1, side: 1 }), element_size)?;
    let pointer = |kind, host: *mut c_void, device: CUdeviceptr, pitch, height| {
        let ptr = match kind {
            CU_MEMORYTYPE_HOST => host,
            CU_MEMORYTYPE_ARRAY => ptr::null_mut(),
            _ => ptr::with_exposed_provenance_mut(device.0 as usize),
        };
        // The driver knows no width of rows but the copy's.
        cudaPitchedPtr { ptr, pitch, xsize: 0, ysize: height }
    };
    Ok(cudaMemcpy3DParms {
        srcArray: cudaArray_t(c.srcArray.0),
        srcPos: cudaPos { x: c.srcXInBytes / bytes * side, y: c.srcY * side, z: c.srcZ },
        srcPtr: pointer(c.srcMemoryType, c.srcHost.cast_mut(), c.srcDevice, c.srcPitch, c.srcHeight),
        dstArray: cudaArray_t(c.dstArray.0),
        dstPos: cudaPos { x: c.dstXInBytes / bytes * side, y: c.dstY * side, z: c.dstZ },
        dstPtr: pointer(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstPitch, c.dstHeight),
        extent: cudaExtent { width: c.WidthInBytes / bytes * side, height: c.Height * side, depth: c.Depth },
        kind: match (c.srcMemoryType, c.dstMemoryType) {
            (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST) => cudaMemcpyHostToHost,
            (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE | CU_MEMORYTYPE_ARRAY) => cudaMemcpyHostToDevice,
            (CU_MEMORYTYPE_DEVICE | CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_HOST) => cudaMemcpyDeviceToHost,
            (CU_MEMORYTYPE_UNIFIED, _) | (_, CU_MEMORYTYPE_UNIFIED) => cudaMemcpyDefault,
            _ => cudaMemcpyDeviceToDevice,
        },
    })
}

/// A copy of a box from one context to another; `None` if there is nothing in it.
pub fn describe_3d_peer(
    parameters: &cudaMemcpy3DPeerParms,
    source_context: CUcontext,
    destination_context: CUcontext,
) -> CudaResult<Option<CUDA_MEMCPY3D_PEER>> {
    let p = parameters;
    let (source, destination) = (
        BoxEnd { array: CUarray(p.srcArray.0), pointer: p.srcPtr, position: p.srcPos },
        BoxEnd { array: CUarray(p.dstArray.0), pointer: p.dstPtr, position: p.dstPos },
    );
    let Some(copy) =
        describe_box([(source, CU_MEMORYTYPE_DEVICE), (destination, CU_MEMORYTYPE_DEVICE)], p.extent)?
    else {
        return Ok(None);
    };
    Ok(Some(CUDA_MEMCPY3D_PEER {
        srcXInBytes: copy.srcXInBytes,
        srcY: copy.srcY,
        srcZ: copy.srcZ,
        srcLOD: copy.srcLOD,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice,
        srcArray: copy.srcArray,
        srcContext: source_context,
        srcPitch: copy.srcPitch,
        srcHeight: copy.srcHeight,
        dstXInBytes: copy.dstXInBytes,
        dstY: copy.dstY,
        dstZ: copy.dstZ,
        dstLOD: copy.dstLOD,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice,
        dstArray: copy.dstArray,
        dstContext: destination_context,
        dstPitch: copy.dstPitch,
        dstHeight: copy.dstHeight,
        WidthInBytes: copy.WidthInBytes,
        Height: copy.Height,
        Depth: copy.Depth,
    }))
}

/// One end of a copy of a box as the runtime describes it: an array or a pointer, and a position.
struct BoxEnd {
    array: CUarray,
    pointer: cudaPitchedPtr,
    position: cudaPos,
}

impl BoxEnd {
    /// The end in the driver's terms; a position in memory is in elements of the arrays that take part. A pitch is what the runtime finds wrong only
    /// if it is less than the box has `elements` in a row, as if they were bytes; what else is wrong with it, the driver does.
    fn end(&self, kind: CUmemorytype, scale: Scale, extent: &cudaExtent, elements: usize) -> CudaResult<End> {
        let (x, y) = scale.place(self.position.x, self.position.y)?;
        let (in_array, in_memory) = (!self.array.is_null(), !self.pointer.ptr.is_null());
        if in_array == in_memory {
            return Err(cudaErrorInvalidValue);
        }
        // Rows and slices of memory must not overlap, where there is more than one. A single slice has no more rows than it says.
        let rows_overlap = elements > self.pointer.pitch && (extent.height > 1 || extent.depth > 1);
        let slices_overlap = extent.height > self.pointer.ysize && extent.depth > 1;
        if self.array.is_null() && (rows_overlap || slices_overlap) {
            return Err(cudaErrorInvalidPitchValue);
        }
        if in_memory && self.pointer.ysize != 0 && extent.height > self.pointer.ysize {
            return Err(cudaErrorInvalidValue);
        }
        let end = match in_array {
            true => End::array(self.array),
            false => End::memory(kind, self.pointer.ptr, self.pointer.pitch, self.pointer.ysize),
        };
        Ok(end.at(x, y, self.position.z))
    }
}

/// What a step in x is: an element of the arrays that take part, a byte if there are none.
fn scale(source: &BoxEnd, destination: &BoxEnd) -> CudaResult<Scale> {
    let mut scale = None;
    for array in [source.array, destination.array].into_iter().filter(|array| !array.is_null()) {
        let size = element_size(array)?;
        if *scale.get_or_insert(size) != size {
            return Err(cudaErrorInvalidValue);
        }
    }
    Ok(scale.unwrap_or(Scale { bytes: 1, side: 1 }))
}

/// What the elements of an array are: so many bytes, for a block of so many texels in x and y.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scale {
    bytes: usize,
    side: usize,
}

impl Scale {
    /// A place in x in bytes, and one in y in rows. A block is not cut.
    fn place(self, x: usize, y: usize) -> CudaResult<(usize, usize)> {
        let is_whole = x.is_multiple_of(self.side) && y.is_multiple_of(self.side);
        let x = (x / self.side).checked_mul(self.bytes).filter(|_| is_whole);
        Ok((x.ok_or(cudaErrorInvalidValue)?, y / self.side))
    }
}

/// The elements of an array.
fn element_size(array: CUarray) -> CudaResult<Scale> {
    let descriptor = array_descriptor(array)?;
    let bytes = formats::texel_size(descriptor.Format, descriptor.NumChannels)?;
    Ok(Scale { bytes, side: formats::side(descriptor.Format) })
}

/// An array's rows.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRows {
    /// The length of each in bytes, not zero.
    pub width: usize,
    /// How many there are.
    pub height: usize,
}

/// The rows of an array of one or two dimensions.
pub fn array_rows(array: CUarray) -> CudaResult<ArrayRows> {
    // Copies answer for what is no array as they do for what is no address.
    let descriptor = array_descriptor(array).map_err(|code| match code {
        cudaErrorInvalidResourceHandle => cudaErrorInvalidValue,
        code => code,
    })?;
    let texel = formats::texel_size(descriptor.Format, descriptor.NumChannels)?;
    // Rows of compressed texels are of blocks.
    let side = formats::side(descriptor.Format);
    let width = descriptor.Width.div_ceil(side).checked_mul(texel).filter(|&width| width != 0);
    let height = descriptor.Height.div_ceil(side).max(1);
    Ok(ArrayRows { width: width.ok_or(cudaErrorInvalidValue)?, height })
}

/// An array's shape and format.
pub fn array_descriptor(array: CUarray) -> CudaResult<CUDA_ARRAY3D_DESCRIPTOR> {
    let mut descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 0,
        Height: 0,
        Depth: 0,
        Format: CUarray_format(0),
        NumChannels: 0,
        Flags: 0,
    };
    call!(cuArray3DGetDescriptor_v2(&mut descriptor, array))?;
    Ok(descriptor)
}

/// The extent with its width in bytes; `None` if it is empty.
fn extent_in_bytes(extent: cudaExtent, scale: Scale) -> CudaResult<Option<cudaExtent>> {
    if extent.width == 0 || extent.height == 0 || extent.depth == 0 {
        return Ok(None);
    }
    // Where compressed texels end, the last blocks are counted whole.
    let width = extent.width.div_ceil(scale.side).checked_mul(scale.bytes).ok_or(cudaErrorInvalidValue)?;
    Ok(Some(cudaExtent { width, height: extent.height.div_ceil(scale.side), ..extent }))
}

/// Where the source is by the direction of a copy. Host-to-host copies take device memory too.
fn source_type(kind: cudaMemcpyKind) -> CUmemorytype {
    match kind {
        cudaMemcpyHostToDevice => CU_MEMORYTYPE_HOST,
        cudaMemcpyDeviceToHost | cudaMemcpyDeviceToDevice => CU_MEMORYTYPE_DEVICE,
        _ => CU_MEMORYTYPE_UNIFIED,
    }
}

fn destination_type(kind: cudaMemcpyKind) -> CUmemorytype {
    match kind {
        cudaMemcpyDeviceToHost => CU_MEMORYTYPE_HOST,
        cudaMemcpyHostToDevice | cudaMemcpyDeviceToDevice => CU_MEMORYTYPE_DEVICE,
        _ => CU_MEMORYTYPE_UNIFIED,
    }
}
