//! Two- and three-dimensional copies as the manual's structures describe them.

use crate::arrays;
use crate::error::CuResult;
use cuda_abi::driver::*;
use device::memory::{Extent, Region, Side, Transfer};

/// One end of a copy.
struct End {
    kind: CUmemorytype,
    host: u64,
    device: CUdeviceptr,
    array: CUarray,
    pitch: usize,
    /// Rows from one slice to the next.
    height: usize,
    x: usize,
    y: usize,
    z: usize,
    lod: usize,
}

/// A two-dimensional copy.
///
/// # Safety
/// Host memory that the copy names may be read and written until the copy is done.
pub unsafe fn from_2d(copy: &CUDA_MEMCPY2D) -> CuResult<Transfer> {
    let from = End {
        kind: copy.srcMemoryType,
        host: copy.srcHost as u64,
        device: copy.srcDevice,
        array: copy.srcArray,
        pitch: copy.srcPitch,
        height: 0,
        x: copy.srcXInBytes,
        y: copy.srcY,
        z: 0,
        lod: 0,
    };
    let to = End {
        kind: copy.dstMemoryType,
        host: copy.dstHost as u64,
        device: copy.dstDevice,
        array: copy.dstArray,
        pitch: copy.dstPitch,
        height: 0,
        x: copy.dstXInBytes,
        y: copy.dstY,
        z: 0,
        lod: 0,
    };
    let extent = Extent { width: copy.WidthInBytes as u64, height: copy.Height as u64, depth: 1 };
    // SAFETY: the caller's duty.
    unsafe { transfer(&to, &from, extent) }
}

/// A three-dimensional copy.
///
/// # Safety
/// As for [`from_2d`].
pub unsafe fn from_3d(copy: &CUDA_MEMCPY3D) -> CuResult<Transfer> {
    let from = End {
        kind: copy.srcMemoryType,
        host: copy.srcHost as u64,
        device: copy.srcDevice,
        array: copy.srcArray,
        pitch: copy.srcPitch,
        height: copy.srcHeight,
        x: copy.srcXInBytes,
        y: copy.srcY,
        z: copy.srcZ,
        lod: copy.srcLOD,
    };
    let to = End {
        kind: copy.dstMemoryType,
        host: copy.dstHost as u64,
        device: copy.dstDevice,
        array: copy.dstArray,
        pitch: copy.dstPitch,
        height: copy.dstHeight,
        x: copy.dstXInBytes,
        y: copy.dstY,
        z: copy.dstZ,
        lod: copy.dstLOD,
    };
    let extent =
        Extent { width: copy.WidthInBytes as u64, height: copy.Height as u64, depth: copy.Depth as u64 };
    // SAFETY: the caller's duty.
    unsafe { transfer(&to, &from, extent) }
}

/// The plainest structure that describes a copy.
pub fn to_3d(transfer: &Transfer) -> CUDA_MEMCPY3D {
    let Transfer { to, from, extent } = transfer;
    // Where one end is said to be the device's, the other was said to be the host's; else nothing is known of either.
    let told = [from, to].iter().any(|end| end.start.is_known() || end.start.is_array());
    let (from, to) = (End::of_region(from, *extent, told), End::of_region(to, *extent, told));
    let host = |end: &End| std::ptr::with_exposed_provenance_mut(end.host as usize);
    CUDA_MEMCPY3D {
        srcXInBytes: from.x,
        srcY: from.y,
        srcZ: from.z,
        srcLOD: 0,
        srcMemoryType: from.kind,
        srcHost: host(&from),
        srcDevice: from.device,
        srcArray: from.array,
        reserved0: std::ptr::null_mut(),
        srcPitch: from.pitch,
        srcHeight: from.height,
        dstXInBytes: to.x,
        dstY: to.y,
        dstZ: to.z,
        dstLOD: 0,
        dstMemoryType: to.kind,
        dstHost: host(&to),
        dstDevice: to.device,
        dstArray: to.array,
        reserved1: std::ptr::null_mut(),
        dstPitch: to.pitch,
        dstHeight: to.height,
        WidthInBytes: extent.width as usize,
        Height: extent.height as usize,
        Depth: extent.depth as usize,
    }
}

unsafe fn transfer(to: &End, from: &End, extent: Extent) -> CuResult<Transfer> {
    // SAFETY: the caller's duty, for both.
    unsafe { Ok(Transfer { to: to.region(extent)?, from: from.region(extent)?, extent }) }
}

impl End {
    /// The plainest description of an end: `told` says that what is not the device's is the host's. An array that is gone is
    /// described as memory that is not there.
    fn of_region(region: &Region, extent: Extent, told: bool) -> End {
        let address = region.start.address();
        if let Some((handle, array)) = region.start.is_array().then(|| arrays::at(address)).flatten() {
            let (z, y, x) = array.level.position(region.start);
            let (x, y, z) = (x as usize, y as usize, z as usize);
            let (kind, device) = (CU_MEMORYTYPE_ARRAY, CUdeviceptr(0));
            return End { kind, host: 0, device, array: handle, pitch: 0, height: 0, x, y, z, lod: 0 };
        }
        let (kind, host, device) = match region.start.is_known() {
            true => (CU_MEMORYTYPE_DEVICE, 0, address),
            false if told => (CU_MEMORYTYPE_HOST, address, 0),
            false => (CU_MEMORYTYPE_UNIFIED, 0, address),
        };
        // The pitch counts only where there are several rows, the height of a slice where there are several slices.
        let is_row = extent.is_row() && region.pitch == extent.width;
        let height = match region.pitch {
            0 => 0,
            _ if extent.depth <= 1 => 0,
            pitch => (region.slice_pitch / pitch).max(extent.height),
        };
        End {
            kind,
            host,
            device: CUdeviceptr(device),
            array: CUarray::NULL,
            pitch: if is_row { 0 } else { region.pitch as usize },
            height: height as usize,
            x: 0,
            y: 0,
            z: 0,
            lod: 0,
        }
    }

    unsafe fn region(&self, extent: Extent) -> CuResult<Region> {
        let base = match self.kind {
            CU_MEMORYTYPE_HOST => self.host,
            CU_MEMORYTYPE_DEVICE | CU_MEMORYTYPE_UNIFIED => self.device.0,
            CU_MEMORYTYPE_ARRAY => {
                // A level is an array of its own.
                if self.lod != 0 {
                    return Err(CUDA_ERROR_INVALID_VALUE.into());
                }
                let level = arrays::level(self.array)?;
                return Ok(level.region(self.x as u64, self.y as u64, self.z as u64, extent)?);
            }
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        };
        let (address, pitch, slice_pitch) = self.locate(base, extent).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let start = match self.kind {
            CU_MEMORYTYPE_DEVICE => Side::device(address),
            // SAFETY: the caller's duty.
            _ => unsafe { Side::any(address) },
        };
        Ok(Region { start, pitch, slice_pitch })
    }

    /// The first byte's address and the distances of rows and slices; `None` where rows or slices overlap or numbers overflow.
    fn locate(&self, base: u64, extent: Extent) -> Option<(u64, u64, u64)> {
        let (x, y, z) = (self.x as u64, self.y as u64, self.z as u64);
        let row_end = x.checked_add(extent.width)?;
        let slice_end = y.checked_add(extent.height)?;
        // No pitch and no height say that there is nothing between rows and slices.
        let or = |given: usize, packed: u64| if given == 0 { packed } else { given as u64 };
        let (pitch, height) = (or(self.pitch, row_end), or(self.height, slice_end));
        let several_slices = z.checked_add(extent.depth)? > 1;
        // A single slice needs no height; a pitch that is given is no less than a row even if that is the only one.
        if pitch < row_end || (several_slices && height < slice_end) {
            return None;
        }
        let slice_pitch = if several_slices { pitch.checked_mul(height)? } else { 0 };
        let slices = slice_pitch.checked_mul(z)?;
        let rows = pitch.checked_mul(y)?;
        let address = base.checked_add(slices)?.checked_add(rows)?.checked_add(x)?;
        Some((address, pitch, slice_pitch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    fn copy_2d() -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            srcXInBytes: 4,
            srcY: 2,
            srcMemoryType: CU_MEMORYTYPE_HOST,
            srcHost: ptr::without_provenance(0x1000),
            srcDevice: CUdeviceptr(0),
            srcArray: CUarray::NULL,
            srcPitch: 32,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: CUdeviceptr(0x8000),
            dstArray: CUarray::NULL,
            dstPitch: 64,
            WidthInBytes: 28,
            Height: 3,
        }
    }

    fn convert(copy: &CUDA_MEMCPY2D) -> CuResult<Transfer> {
        // SAFETY: the copy is never made.
        unsafe { from_2d(copy) }
    }

    #[test]
    fn offsets_lead_to_the_first_byte() {
        let transfer = convert(&copy_2d()).unwrap();
        assert_eq!((transfer.from.start.address(), transfer.from.pitch), (0x1044, 32));
        assert_eq!(transfer.to, Region { start: Side::device(0x8000), pitch: 64, slice_pitch: 0 });
        assert_eq!(transfer.extent, Extent { width: 28, height: 3, depth: 1 });
    }

    #[test]
    fn rows_must_fit_their_pitch() {
        let mut copy = copy_2d();
        copy.WidthInBytes = 29;
        assert_eq!(convert(&copy), Err(CUDA_ERROR_INVALID_VALUE.into()));
        (copy.srcY, copy.Height, copy.srcPitch, copy.dstPitch) = (0, 1, 0, 0);
        assert!(convert(&copy).is_ok(), "one row needs no pitch");
        copy.dstPitch = copy.WidthInBytes - 1;
        assert_eq!(convert(&copy), Err(CUDA_ERROR_INVALID_VALUE.into()), "a wrong one is refused");
    }

    #[test]
    fn nothing_overflows() {
        for field in 0..4 {
            let mut copy = copy_2d();
            match field {
                0 => copy.srcXInBytes = usize::MAX,
                1 => copy.srcY = usize::MAX,
                2 => copy.srcHost = ptr::without_provenance(usize::MAX - 8),
                _ => copy.Height = usize::MAX,
            }
            assert_eq!(convert(&copy), Err(CUDA_ERROR_INVALID_VALUE.into()), "{field}");
        }
    }
}
