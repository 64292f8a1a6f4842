//! CUDA 12's structures on their way to the driver and back, and batches that tell where they failed.

use std::mem::{MaybeUninit, zeroed};

use cuda_abi::args::In;
use cuda_abi::driver::*;
use cuda_abi::runtime::*;

use super::*;
use crate::api::cuda12::memory::*;
use crate::api::cuda12::objects::*;

/// A structure with something behind it that must stay as it is.
#[repr(C)]
pub struct Followed<T> {
    value: MaybeUninit<T>,
    behind: [u8; 128],
}

impl<T> Followed<T> {
    pub fn new() -> Self {
        Self { value: MaybeUninit::uninit(), behind: [0xA5; 128] }
    }

    pub fn out(&mut self) -> Out<T> {
        // SAFETY: valid for writing, and every test keeps the place while the call runs.
        unsafe { Out::new(self.value.as_mut_ptr()) }
    }

    pub fn written(self) -> T {
        assert_eq!(self.behind, [0xA5; 128], "written behind the structure");
        // SAFETY: the call before succeeded, so that it is written.
        unsafe { self.value.assume_init() }
    }
}

pub fn given<T: Copy>(value: &T) -> In<T> {
    // SAFETY: valid for reading while the call runs.
    unsafe { In::new(value) }
}

pub fn nothing<T: Copy>() -> In<T> {
    // SAFETY: null is noticed.
    unsafe { In::new(ptr::null()) }
}

pub fn rows() -> cudaResourceDesc_cuda12 {
    let desc = cudaChannelFormatDesc { x: 32, y: 0, z: 0, w: 0, f: cudaChannelFormatKindFloat };
    let address = ptr::without_provenance_mut(0x1000);
    let rows = cudaResourcePitch2D { devPtr: address, desc, width: 5, height: 6, pitchInBytes: 64 };
    let res = cudaResource_cuda12 { pitch2D: rows };
    cudaResourceDesc_cuda12 { resType: cudaResourceTypePitch2D, res }
}

fn check_rows(found: &cudaResourceDesc_cuda12) {
    assert_eq!(found.resType, cudaResourceTypePitch2D);
    // SAFETY: the type says that this member is set.
    let (found, made) = unsafe { (found.res.pitch2D, rows().res.pitch2D) };
    assert_eq!(format!("{found:?}"), format!("{made:?}"));
}

#[test]
fn textures() {
    begin();
    let view = cudaResourceViewDesc_cuda12 {
        format: cudaResourceViewFormat(3),
        width: 5,
        height: 6,
        depth: 7,
        firstMipmapLevel: 1,
        lastMipmapLevel: 2,
        firstLayer: 3,
        lastLayer: 4,
    };
    // SAFETY: numbers, for which zero is a value.
    let reading: cudaTextureDesc = unsafe { zeroed() };
    let mut texture = 0;
    let mut create = |resource, view| {
        // SAFETY: the descriptions live while the call runs, or null is noticed.
        unsafe { cudaCreateTextureObject_cuda12(out(&mut texture), resource, given(&reading), view) }
    };
    assert_eq!(create(nothing(), given(&view)), cudaErrorInvalidValue);
    assert_eq!(create(given(&rows()), nothing()), cudaSuccess);
    assert_eq!(create(given(&rows()), given(&view)), cudaSuccess);
    assert_eq!(texture, 1);

    let mut found = Followed::new();
    // SAFETY: a place for the result.
    assert_eq!(unsafe { cudaGetTextureObjectResourceDesc_cuda12(found.out(), texture) }, cudaSuccess);
    check_rows(&found.written());
    let mut found = Followed::new();
    // SAFETY: as above.
    assert_eq!(unsafe { cudaGetTextureObjectResourceViewDesc_cuda12(found.out(), texture) }, cudaSuccess);
    assert_eq!(format!("{:?}", found.written()), format!("{view:?}"));
}

#[test]
fn surfaces() {
    begin();
    let array = cudaResource_cuda12 { array: cudaArray_t(0xA0) };
    let resource = cudaResourceDesc_cuda12 { resType: cudaResourceTypeArray, res: array };
    let mut surface = 0;
    // SAFETY: the description lives while the call runs.
    let code = unsafe { cudaCreateSurfaceObject_cuda12(out(&mut surface), given(&resource)) };
    assert_eq!((code, surface), (cudaSuccess, 2));
    // SAFETY: null is noticed.
    let code = unsafe { cudaCreateSurfaceObject_cuda12(out(&mut surface), nothing()) };
    assert_eq!(code, cudaErrorInvalidValue);
    let unknown = cudaResourceDesc_cuda12 { resType: cudaResourceType(9), ..resource };
    // SAFETY: as above.
    let code = unsafe { cudaCreateSurfaceObject_cuda12(out(&mut surface), given(&unknown)) };
    assert_eq!(code, cudaErrorInvalidValue);

    let mut found = Followed::new();
    // SAFETY: a place for the result.
    assert_eq!(unsafe { cudaGetSurfaceObjectResourceDesc_cuda12(found.out(), surface) }, cudaSuccess);
    let found = found.written();
    // SAFETY: the type says that this member is set.
    assert_eq!((found.resType, unsafe { found.res.array }), (cudaResourceTypeArray, cudaArray_t(0xA0)));
}

#[test]
fn batches_tell_where_they_failed() {
    begin();
    fn at<T>(address: usize) -> *mut T {
        ptr::without_provenance_mut(address)
    }
    let stream = CUstream(0x700);
    let check = |code: cudaError_t, call: &str| {
        assert_eq!((code, &*mock_driver::last_call()), (cudaSuccess, call));
    };
    // SAFETY: the driver of the tests looks at no pointer.
    unsafe {
        check(
            cudaMemcpyBatchAsync_cuda12(at(1), at(2), at(3), 4, at(5), at(6), 7, at(8), stream),
            "cuMemcpyBatchAsync(0x1, 0x2, 0x3, 4, 0x5, 0x6, 7, 0x8, 0x700)",
        );
        check(
            cudaMemcpyBatchAsync_cuda12_ptsz(at(1), at(2), at(3), 4, at(5), at(6), 7, at(8), CUstream(0)),
            "cuMemcpyBatchAsync(0x1, 0x2, 0x3, 4, 0x5, 0x6, 7, 0x8, 0x2)",
        );
        check(
            cudaMemcpy3DBatchAsync_cuda12(1, at(2), at(3), 4, stream),
            "cuMemcpy3DBatchAsync(1, 0x2, 0x3, 4, 0x700)",
        );
        check(
            cudaMemcpy3DBatchAsync_cuda12_ptsz(1, at(2), at(3), 4, CUstream(0)),
            "cuMemcpy3DBatchAsync(1, 0x2, 0x3, 4, 0x2)",
        );
    }
}
