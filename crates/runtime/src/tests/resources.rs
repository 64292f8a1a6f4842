//! Arrays, textures, surfaces and clusters: what reaches the driver.

use std::mem::zeroed;

use cuda_abi::args::In;
use cuda_abi::driver::*;
use cuda_abi::runtime::*;

use super::*;
use crate::api::device::cudaDeviceGetTexture1DLinearMaxWidth;
use crate::api::ipc::*;
use crate::api::memory::array::*;
use crate::api::memory::copy_array::*;
use crate::api::occupancy::*;
use crate::api::surface_object::*;
use crate::api::texture_object::*;

fn begin_in_context() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
}

fn at<T>(address: usize) -> *mut T {
    ptr::without_provenance_mut(address)
}

fn place<T>(address: usize) -> Out<T> {
    // SAFETY: the driver of the tests writes nothing.
    unsafe { Out::new(at(address)) }
}

fn nowhere<T>() -> Out<T> {
    // SAFETY: null is noticed.
    unsafe { Out::new(ptr::null_mut()) }
}

fn by_ref<T: Copy>(value: &T) -> In<T> {
    // SAFETY: the value outlives the call.
    unsafe { In::new(value) }
}

fn missing<T: Copy>() -> In<T> {
    // SAFETY: null is noticed.
    unsafe { In::new(ptr::null()) }
}

/// The call succeeds, and the driver's function is called with arguments that begin so.
macro_rules! reaches {
    ($call:expr => $driver:literal) => {{
        // SAFETY: the driver of the tests looks at no pointer but descriptions, which live through the call.
        assert_eq!(unsafe { $call }, cudaSuccess);
        let call = mock_driver::last_call();
        assert!(call.starts_with($driver), "{call}");
    }};
}

macro_rules! refuses {
    ($code:ident, $call:expr) => {{
        let _ = mock_driver::last_call();
        // SAFETY: nothing that is not null is looked at.
        assert_eq!(unsafe { $call }, $code);
        assert!(!mock_driver::last_call().contains('('), "the driver was called");
    }};
}

const FLOAT: cudaChannelFormatDesc =
    cudaChannelFormatDesc { x: 32, y: 0, z: 0, w: 0, f: cudaChannelFormatKindFloat };
const THREE: cudaChannelFormatDesc = cudaChannelFormatDesc { y: 32, z: 32, ..FLOAT };

#[test]
fn arrays_are_made_described_and_freed() {
    begin_in_context();
    let (extent, mipmap) = (cudaExtent { width: 4, height: 5, depth: 6 }, cudaMipmappedArray_t(0xB0));
    reaches!(cudaMallocArray(place(0x10), by_ref(&FLOAT), 4, 5, 0) => "cuArray3DCreate_v2(0x10, ");
    reaches!(cudaMalloc3DArray(place(0x10), by_ref(&FLOAT), extent, 0) => "cuArray3DCreate_v2(0x10, ");
    reaches!(cudaMallocMipmappedArray(place(0x10), by_ref(&FLOAT), extent, 3, 0) => "cuMipmappedArrayCreate(0x10, ");
    reaches!(cudaFreeArray(cudaArray_t(0xA0)) => "cuArrayDestroy(0xa0)");
    reaches!(cudaFreeMipmappedArray(mipmap) => "cuMipmappedArrayDestroy(0xb0)");
    reaches!(
        cudaGetMipmappedArrayLevel(place(0x10), cudaMipmappedArray_const_t(0xB0), 2)
        => "cuMipmappedArrayGetLevel(0x10, 0xb0, 2)"
    );
    refuses!(cudaErrorInvalidValue, cudaMallocArray(nowhere(), by_ref(&FLOAT), 4, 5, 0));
    refuses!(cudaErrorInvalidValue, cudaMallocArray(place(0x10), missing(), 4, 5, 0));
    refuses!(cudaErrorInvalidChannelDescriptor, cudaMalloc3DArray(place(0x10), by_ref(&THREE), extent, 0));
    refuses!(cudaErrorInvalidValue, cudaMallocMipmappedArray(nowhere(), by_ref(&FLOAT), extent, 3, 0));
    refuses!(
        cudaErrorInvalidValue,
        cudaGetMipmappedArrayLevel(nowhere(), cudaMipmappedArray_const_t(0xB0), 2)
    );
    refuses!(cudaSuccess, cudaFreeArray(cudaArray_t::NULL));
    refuses!(cudaSuccess, cudaFreeMipmappedArray(cudaMipmappedArray_t::NULL));

    let (mut channels, mut size, mut flags) = (THREE, extent, 9);
    // SAFETY: results have their places.
    unsafe {
        let code = cudaArrayGetInfo(out(&mut channels), out(&mut size), out(&mut flags), cudaArray_t(0xA0));
        assert_eq!(code, cudaSuccess);
        assert_eq!((channels, flags), (FLOAT, 0));
        assert_eq!((size.width, size.height, size.depth), (mock_driver::ARRAY.0, mock_driver::ARRAY.1, 0));
        assert_eq!(cudaGetChannelDesc(out(&mut channels), cudaArray_const_t(0xA0)), cudaSuccess);
        assert_eq!(channels, FLOAT);
        assert_eq!(cudaArrayGetInfo(nowhere(), nowhere(), nowhere(), cudaArray_t(0xA0)), cudaSuccess);
        assert_eq!(cudaGetChannelDesc(nowhere(), cudaArray_const_t(0xA0)), cudaErrorInvalidValue);
        let made = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
        assert_eq!(made, FLOAT);
    }
}

#[test]
fn every_copy_of_rows_of_arrays_copies() {
    begin_in_context();
    let (array, source, any) = (cudaArray_t(0xA0), cudaArray_const_t(0xA1), cudaMemcpyDefault);
    let (memory, stream): (*mut c_void, _) = (at(0x1000), CUstream(0x700));
    let own = cudaStream_t::NULL;
    reaches!(cudaMemcpy2DToArray_ptds(array, 0, 0, memory, 64, 32, 2, any) => "cuMemcpy2DUnaligned_v2_ptds(");
    reaches!(cudaMemcpy2DFromArray_ptds(memory, 64, source, 0, 0, 32, 2, any) => "cuMemcpy2DUnaligned_v2_ptds(");
    reaches!(cudaMemcpy2DArrayToArray_ptds(array, 0, 0, source, 0, 0, 32, 2, any) => "cuMemcpy2DUnaligned_v2_ptds(");
    mock_driver::copies_2d();
    reaches!(cudaMemcpy2DArrayToArray(array, 1, 2, source, 3, 4, 32, 2, any) => "cuMemcpy2DUnaligned_v2(");
    reaches!(cudaMemcpy2DToArrayAsync(array, 5, 6, memory, 64, 32, 2, any, stream) => "cuMemcpy2DAsync_v2(");
    reaches!(cudaMemcpy2DFromArrayAsync(memory, 64, source, 7, 8, 32, 2, any, stream) => "cuMemcpy2DAsync_v2(");
    let copies = mock_driver::copies_2d();
    assert_eq!((copies[0].srcXInBytes, copies[0].srcY, copies[0].dstXInBytes, copies[0].dstY), (3, 4, 1, 2));
    assert_eq!((copies[1].dstXInBytes, copies[1].dstY), (5, 6));
    assert_eq!((copies[2].srcXInBytes, copies[2].srcY), (7, 8));
    // SAFETY: the driver of the tests looks at no pointer but descriptions.
    unsafe {
        let code = cudaMemcpy2DToArrayAsync_ptsz(array, 0, 0, memory, 64, 32, 2, any, own);
        assert_eq!(code, cudaSuccess);
        assert!(mock_driver::last_call().ends_with("0x2)"), "not on the thread's default stream");
        let code = cudaMemcpy2DFromArrayAsync_ptsz(memory, 64, source, 0, 0, 32, 2, any, own);
        assert_eq!(code, cudaSuccess);
        assert!(mock_driver::last_call().ends_with("0x2)"), "not on the thread's default stream");
    }
}

#[test]
fn texture_and_surface_objects() {
    begin_in_context();
    let array = cudaResourceDesc {
        resType: cudaResourceTypeArray,
        res: cudaResource { array: cudaArray_t(0xA0) },
        flags: 0,
    };
    let unknown = cudaResourceDesc { resType: cudaResourceType(9), ..array };
    // SAFETY: numbers, for which zero is a value.
    let reading: cudaTextureDesc = unsafe { zeroed() };
    let (array, unknown, reading) = (by_ref(&array), by_ref(&unknown), by_ref(&reading));
    let mut object = 0;
    reaches!(cudaCreateTextureObject(out(&mut object), array, reading, missing()) => "cuTexObjectCreate(0x");
    assert_ne!(object, 0);
    reaches!(cudaDestroyTextureObject(7) => "cuTexObjectDestroy(7)");
    reaches!(cudaCreateSurfaceObject(out(&mut object), array) => "cuSurfObjectCreate(0x");
    reaches!(cudaDestroySurfaceObject(7) => "cuSurfObjectDestroy(7)");
    refuses!(cudaErrorInvalidValue, cudaCreateTextureObject(nowhere(), array, reading, missing()));
    refuses!(cudaErrorInvalidValue, cudaCreateTextureObject(place(0x10), missing(), reading, missing()));
    refuses!(
        cudaErrorInvalidResourceHandle,
        cudaCreateTextureObject(place(0x10), array, missing(), missing())
    );
    refuses!(cudaErrorInvalidValue, cudaCreateTextureObject(place(0x10), unknown, reading, missing()));
    refuses!(cudaErrorInvalidValue, cudaCreateSurfaceObject(nowhere(), array));
    refuses!(cudaErrorInvalidValue, cudaCreateSurfaceObject(place(0x10), unknown));
    refuses!(cudaErrorInvalidValue, cudaGetTextureObjectResourceViewDesc(nowhere(), 7));
    refuses!(cudaErrorInvalidValue, cudaGetTextureObjectResourceDesc(nowhere(), 7));
    refuses!(cudaErrorInvalidValue, cudaGetTextureObjectTextureDesc(nowhere(), 7));
    refuses!(cudaErrorInvalidValue, cudaGetSurfaceObjectResourceDesc(nowhere(), 7));
    // What the driver tells comes in the runtime's terms.
    // SAFETY: unions of plain numbers, for which zero is a value; results have their places.
    unsafe {
        let (mut resource, mut reading): (cudaResourceDesc, cudaTextureDesc) = (zeroed(), zeroed());
        assert_eq!(cudaGetTextureObjectResourceDesc(out(&mut resource), 7), cudaSuccess);
        assert_eq!((resource.resType, resource.res.array), (cudaResourceTypeArray, cudaArray_t(0xA0)));
        resource.res.array = cudaArray_t::NULL;
        assert_eq!(cudaGetSurfaceObjectResourceDesc(out(&mut resource), 8), cudaSuccess);
        assert_eq!(resource.res.array, cudaArray_t(0xA0));
        assert_eq!(cudaGetTextureObjectTextureDesc(out(&mut reading), 7), cudaSuccess);
        assert_eq!((reading.normalizedCoords, reading.maxAnisotropy), (1, 7));
    }
}

#[test]
fn clusters_and_widths() {
    begin_in_context();
    // SAFETY: numbers and pointers, for which zero is a value.
    let config: cudaLaunchConfig_t = unsafe { zeroed() };
    let (config, kernel) = (by_ref(&config), at::<c_void>(0xF0).cast_const());
    reaches!(cudaOccupancyMaxActiveClusters(place(0x10), kernel, config) => "cuOccupancyMaxActiveClusters(0x10, 0xf0, ");
    reaches!(
        cudaOccupancyMaxPotentialClusterSize(place(0x10), kernel, config)
        => "cuOccupancyMaxPotentialClusterSize(0x10, 0xf0, "
    );
    refuses!(cudaErrorInvalidValue, cudaOccupancyMaxActiveClusters(nowhere(), kernel, config));
    refuses!(cudaErrorInvalidValue, cudaOccupancyMaxPotentialClusterSize(place(0x10), kernel, missing()));
    refuses!(
        cudaErrorInvalidDeviceFunction,
        cudaOccupancyMaxActiveClusters(place(0x10), ptr::null(), config)
    );
    reaches!(
        cudaDeviceGetTexture1DLinearMaxWidth(place(0x10), by_ref(&FLOAT), 1)
        => "cuDeviceGetTexture1DLinearMaxWidth(0x10, CU_AD_FORMAT_FLOAT, 1, 1)"
    );
    refuses!(cudaErrorInvalidValue, cudaDeviceGetTexture1DLinearMaxWidth(nowhere(), by_ref(&FLOAT), 1));
    refuses!(
        cudaErrorInvalidChannelDescriptor,
        cudaDeviceGetTexture1DLinearMaxWidth(place(0x10), by_ref(&THREE), 1)
    );
}

#[test]
fn events_of_other_processes() {
    begin_in_context();
    reaches!(cudaIpcGetEventHandle(place(0x10), CUevent(0x20)) => "cuIpcGetEventHandle(0x10, 0x20)");
    refuses!(cudaErrorInvalidValue, cudaIpcGetEventHandle(nowhere(), CUevent(0x20)));
    let handle = CUipcEventHandle { reserved: [7; 64] };
    reaches!(cudaIpcOpenEventHandle(place(0x10), handle) => "cuIpcOpenEventHandle(0x10, ");
    refuses!(cudaErrorInvalidValue, cudaIpcOpenEventHandle(nowhere(), handle));
}
