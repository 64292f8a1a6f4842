use std::ffi::c_void;

use cuda_abi::driver::*;
use cuda_abi::runtime::*;

use super::*;
use crate::api::memory::allocate::*;
use crate::api::memory::copy::*;
use crate::api::memory::copy_array::*;
use crate::api::memory::copy_array_bytes::*;
use crate::api::memory::set::*;
use crate::api::memory::symbol::*;
use crate::copy::describe_3d;

fn pointer(address: usize) -> *mut c_void {
    ptr::without_provenance_mut(address)
}

fn begin_in_context() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
}

#[test]
fn no_bytes_are_a_null_pointer() {
    begin_in_context();
    let mut p = pointer(1);
    // SAFETY: the result has its place.
    assert_eq!(unsafe { cudaMalloc(out(&mut p), 0) }, cudaSuccess);
    assert!(p.is_null());
    assert!(!mock_driver::calls().contains(&"cuMemAlloc_v2".to_owned()));
    // SAFETY: the result has its place.
    assert_eq!(unsafe { cudaMalloc(out(&mut p), 16) }, cudaSuccess);
    assert_eq!(p.addr(), 0x5000);
}

#[test]
fn the_direction_chooses_the_function() {
    begin_in_context();
    let copy = |kind, count| {
        mock_driver::calls();
        // SAFETY: the mock looks at no pointer.
        let code = unsafe { cudaMemcpy(pointer(16), pointer(32), count, kind) };
        (code, mock_driver::calls())
    };
    let expect = |name: &str| (cudaSuccess, vec![name.to_owned()]);
    let _ = copy(cudaMemcpyDefault, 1);
    assert_eq!(copy(cudaMemcpyHostToDevice, 8), expect("cuMemcpyHtoD_v2"));
    assert_eq!(copy(cudaMemcpyDeviceToHost, 8), expect("cuMemcpyDtoH_v2"));
    assert_eq!(copy(cudaMemcpyDeviceToDevice, 8), expect("cuMemcpyDtoD_v2"));
    assert_eq!(copy(cudaMemcpyHostToHost, 8), expect("cuMemcpy"));
    assert_eq!(copy(cudaMemcpyDefault, 8), expect("cuMemcpy"));
    assert_eq!(copy(cudaMemcpyDefault, 0), (cudaSuccess, vec![]));
    assert_eq!(copy(cudaMemcpyKind(99), 8), (cudaErrorInvalidMemcpyDirection, vec![]));
    // SAFETY: the mock looks at no pointer.
    assert_eq!(unsafe { cudaMemcpy_ptds(pointer(16), pointer(32), 8, cudaMemcpyHostToDevice) }, cudaSuccess);
    assert_eq!(mock_driver::calls(), ["cuMemcpyHtoD_v2_ptds"]);
}

#[test]
fn rows_are_described_to_the_driver() {
    begin_in_context();
    // SAFETY: the mock looks at no pointer.
    let copy = |dpitch, spitch, kind| unsafe {
        cudaMemcpy2D(pointer(0x10), dpitch, pointer(0x20), spitch, 100, 3, kind)
    };
    assert_eq!(copy(64, 128, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    assert_eq!(copy(128, 64, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    assert_eq!(copy(128, 256, cudaMemcpyKind(9)), cudaErrorInvalidMemcpyDirection);
    assert_eq!(copy(128, 256, cudaMemcpyHostToDevice), cudaSuccess);
    let d = mock_driver::last_copy_2d().unwrap();
    assert_eq!((d.srcMemoryType, d.srcHost.addr(), d.srcPitch), (CU_MEMORYTYPE_HOST, 0x20, 256));
    assert_eq!((d.dstMemoryType, d.dstDevice, d.dstPitch), (CU_MEMORYTYPE_DEVICE, CUdeviceptr(0x10), 128));
    assert_eq!((d.WidthInBytes, d.Height), (100, 3));
    assert_eq!(copy(128, 256, cudaMemcpyDefault), cudaSuccess);
    let d = mock_driver::last_copy_2d().unwrap();
    assert_eq!((d.srcMemoryType, d.dstMemoryType), (CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED));
}

#[test]
fn boxes_are_set_slice_by_slice_unless_they_touch() {
    begin_in_context();
    let whole = cudaPitchedPtr { ptr: pointer(0x1000), pitch: 64, xsize: 10, ysize: 4 };
    let set = |height| {
        mock_driver::calls();
        // SAFETY: the mock looks at no pointer.
        let code = unsafe { cudaMemset3D(whole, 0, cudaExtent { width: 10, height, depth: 3 }) };
        (code, mock_driver::calls().len())
    };
    let _ = set(4);
    assert_eq!(set(4), (cudaSuccess, 1));
    assert_eq!(set(2), (cudaSuccess, 3));
    assert_eq!(set(0), (cudaSuccess, 0));
    assert_eq!(set(5), (cudaErrorInvalidValue, 0));
    let huge = cudaExtent { width: 1, height: 4, depth: usize::MAX };
    // SAFETY: the mock looks at no pointer.
    assert_eq!(unsafe { cudaMemset3D(whole, 0, huge) }, cudaErrorInvalidValue);
    // Without a pitch all slices would be one, however many there are.
    let (flat, deep) =
        (cudaPitchedPtr { pitch: 0, ..whole }, cudaExtent { width: 1, height: 1, depth: usize::MAX });
    // SAFETY: as above.
    assert_eq!(unsafe { cudaMemset3D(flat, 0, deep) }, cudaErrorInvalidValue);
    // SAFETY: as above.
    assert_eq!(unsafe { cudaMemset3D(flat, 0, cudaExtent { height: 0, ..deep }) }, cudaSuccess);
}

#[test]
fn rows_go_to_and_from_arrays() {
    begin_in_context();
    let (array, none) = (cudaArray_t(0xA0), cudaArray_t::NULL);
    // SAFETY: the mock looks at no pointer.
    unsafe {
        let to = |array, pitch, kind| cudaMemcpy2DToArray(array, 4, 5, pointer(0x20), pitch, 100, 3, kind);
        assert_eq!(to(array, 128, cudaMemcpyHostToDevice), cudaSuccess);
        let d = mock_driver::last_copy_2d().unwrap();
        assert_eq!((d.srcMemoryType, d.srcHost.addr(), d.srcPitch), (CU_MEMORYTYPE_HOST, 0x20, 128));
        assert_eq!(
            (d.dstMemoryType, d.dstArray, d.dstXInBytes, d.dstY),
            (CU_MEMORYTYPE_ARRAY, CUarray(0xA0), 4, 5)
        );
        assert_eq!(to(array, 64, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
        assert_eq!(to(array, 128, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
        assert_eq!(to(none, 128, cudaMemcpyHostToDevice), cudaErrorInvalidResourceHandle);

        let array = cudaArray_const_t(0xA0);
        let from = |kind| cudaMemcpy2DFromArray(pointer(0x30), 128, array, 4, 5, 100, 3, kind);
        assert_eq!(from(cudaMemcpyDeviceToHost), cudaSuccess);
        let d = mock_driver::last_copy_2d().unwrap();
        assert_eq!(
            (d.srcMemoryType, d.srcArray, d.srcXInBytes, d.srcY),
            (CU_MEMORYTYPE_ARRAY, CUarray(0xA0), 4, 5)
        );
        assert_eq!((d.dstMemoryType, d.dstHost.addr()), (CU_MEMORYTYPE_HOST, 0x30));
        assert_eq!(from(cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
    }
}

/// A piece of a copy: where in memory, where in the array, bytes of a row and rows.
type Piece = (usize, (usize, usize), (usize, usize));

fn pieces() -> Vec<Piece> {
    let piece = |d: CUDA_MEMCPY2D| {
        let (memory, place) = if d.srcMemoryType == CU_MEMORYTYPE_ARRAY {
            (d.dstHost.addr() + d.dstDevice.0 as usize, (d.srcXInBytes, d.srcY))
        } else {
            (d.srcHost.addr() + d.srcDevice.0 as usize, (d.dstXInBytes, d.dstY))
        };
        (memory, place, (d.WidthInBytes, d.Height))
    };
    mock_driver::copies_2d().into_iter().map(piece).collect()
}

#[test]
fn bytes_in_arrays_go_on_in_the_next_row() {
    begin_in_context();
    // Rows of 64 bytes, eight of them.
    let (array, up, down) = (cudaArray_t(0xA0), cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost);
    // SAFETY: the mock looks at no pointer.
    let to = |x, y, count, kind| unsafe { cudaMemcpyToArray(array, x, y, pointer(0x1000), count, kind) };
    assert_eq!(to(0, 0, 64, up), cudaSuccess);
    assert_eq!(pieces(), [(0x1000, (0, 0), (64, 1))]);
    assert_eq!(to(0, 1, 3 * 64, up), cudaSuccess);
    assert_eq!(pieces(), [(0x1000, (0, 1), (64, 3))]);
    assert_eq!(to(60, 1, 4 + 2 * 64 + 8, up), cudaSuccess);
    let expected = [(0x1000, (60, 1), (4, 1)), (0x1004, (0, 2), (64, 2)), (0x1084, (0, 4), (8, 1))];
    assert_eq!(pieces(), expected);
    assert_eq!(to(8, 7, 56, cudaMemcpyDefault), cudaSuccess);
    assert_eq!(pieces(), [(0x1000, (8, 7), (56, 1))]);
    assert_eq!(to(8, 7, 57, up), cudaErrorInvalidValue);
    assert_eq!(to(8, usize::MAX, 1, up), cudaErrorInvalidValue);
    assert_eq!(to(1, 0, usize::MAX, up), cudaErrorInvalidValue);
    assert_eq!(to(0, 0, 4, down), cudaErrorInvalidMemcpyDirection);
    assert_eq!(to(0, 0, 0, up), cudaSuccess);
    assert_eq!(pieces(), []);

    let source = cudaArray_const_t(0xA0);
    let stream = cudaStream_t::NULL;
    // SAFETY: the mock looks at no pointer.
    unsafe {
        let on_own_stream = |code| {
            assert_eq!(code, cudaSuccess);
            assert!(mock_driver::last_call().starts_with("cuMemcpy2DUnaligned_v2_ptds("));
        };
        on_own_stream(cudaMemcpyToArray_ptds(array, 4, 0, pointer(0x1000), 4, up));
        on_own_stream(cudaMemcpyFromArray_ptds(pointer(0x2000), cudaArray_const_t(0xA0), 0, 0, 4, down));
        let from = cudaArray_const_t(0xA0);
        on_own_stream(cudaMemcpyArrayToArray_ptds(array, 0, 0, from, 0, 0, 4, cudaMemcpyDefault));
        assert_eq!(cudaMemcpyToArrayAsync(array, 4, 0, pointer(0x1000), 4, up, stream), cudaSuccess);
        assert_eq!(cudaMemcpyToArrayAsync_ptsz(array, 8, 0, pointer(0x1000), 4, up, stream), cudaSuccess);
        assert_eq!(pieces(), [(0x1000, (4, 0), (4, 1)), (0x1000, (8, 0), (4, 1))]);
        assert_eq!(
            cudaMemcpyToArray(cudaArray_t::NULL, 0, 0, pointer(16), 4, up),
            cudaErrorInvalidResourceHandle
        );

        assert_eq!(cudaMemcpyFromArray(pointer(0x2000), source, 32, 0, 64, down), cudaSuccess);
        assert_eq!(pieces(), [(0x2000, (32, 0), (32, 1)), (0x2020, (0, 1), (32, 1))]);
        assert_eq!(cudaMemcpyFromArrayAsync(pointer(0x2000), source, 32, 0, 4, down, stream), cudaSuccess);
        assert_eq!(
            cudaMemcpyFromArrayAsync_ptsz(pointer(0x2000), source, 36, 0, 4, down, stream),
            cudaSuccess
        );
        assert_eq!(pieces(), [(0x2000, (32, 0), (4, 1)), (0x2000, (36, 0), (4, 1))]);
        let code = cudaMemcpyFromArray(pointer(0x2000), source, 0, 0, 4, up);
        assert_eq!(code, cudaErrorInvalidMemcpyDirection);

        // Both ends in arrays: a piece ends where either row does.
        assert_eq!(cudaMemcpyArrayToArray(array, 16, 0, source, 32, 4, 64, cudaMemcpyDefault), cudaSuccess);
        let ends: Vec<_> = mock_driver::copies_2d()
            .into_iter()
            .map(|d| ((d.srcXInBytes, d.srcY), (d.dstXInBytes, d.dstY), d.WidthInBytes))
            .collect();
        assert_eq!(ends, [((32, 4), (16, 0), 32), ((0, 5), (48, 0), 16), ((16, 5), (0, 1), 16)]);
    }
}

#[test]
fn boxes_are_described_to_the_driver() {
    let memory = |address| cudaPitchedPtr { ptr: pointer(address), pitch: 64, xsize: 10, ysize: 4 };
    let nowhere = cudaPos { x: 0, y: 0, z: 0 };
    let copy = |width, height, kind| {
        describe_3d(&cudaMemcpy3DParms {
            srcArray: cudaArray_t::NULL,
            srcPos: cudaPos { x: 1, y: 2, z: 3 },
            srcPtr: memory(0x10),
            dstArray: cudaArray_t::NULL,
            dstPos: nowhere,
            dstPtr: memory(0x20),
            extent: cudaExtent { width, height, depth: 2 },
            kind,
        })
    };
    let d = copy(32, 4, cudaMemcpyDeviceToHost).unwrap().unwrap();
    assert_eq!(
        (d.srcMemoryType, d.srcDevice, d.srcPitch, d.srcHeight),
        (CU_MEMORYTYPE_DEVICE, CUdeviceptr(0x10), 64, 4)
    );
    assert_eq!((d.srcXInBytes, d.srcY, d.srcZ), (1, 2, 3));
    assert_eq!((d.dstMemoryType, d.dstHost.addr()), (CU_MEMORYTYPE_HOST, 0x20));
    assert_eq!((d.WidthInBytes, d.Height, d.Depth), (32, 4, 2));
    assert!(copy(0, 4, cudaMemcpyDefault).unwrap().is_none());
    let code = |width, height, kind| copy(width, height, kind).map(drop);
    assert_eq!(code(65, 4, cudaMemcpyDefault), Err(cudaErrorInvalidPitchValue));
    assert_eq!(code(64, 5, cudaMemcpyDefault), Err(cudaErrorInvalidPitchValue));
    assert_eq!(code(32, 4, cudaMemcpyKind(9)), Err(cudaErrorInvalidMemcpyDirection));
}

#[test]
fn symbols_are_found_by_their_shadow_and_bounds_are_checked() {
    begin_in_context();
    let (shadow, lost, stranger) = ([0u8; 64], 0u8, 0u8);
    let _registered = Registered::new().variable(&shadow, c"table").variable(&lost, mock_driver::MISSING);
    let mut found = ptr::null_mut();
    let mut size = 0;
    // SAFETY: results have their places; the mock looks at no other pointer.
    unsafe {
        assert_eq!(cudaGetSymbolAddress(out(&mut found), address(&shadow)), cudaSuccess);
        assert_eq!(found.addr(), mock_driver::GLOBAL_ADDRESS as usize);
        assert_eq!(cudaGetSymbolSize(out(&mut size), address(&shadow)), cudaSuccess);
        assert_eq!(size, mock_driver::GLOBAL_SIZE);
        assert_eq!(cudaGetSymbolAddress(out(&mut found), address(&stranger)), cudaErrorInvalidSymbol);
        assert_eq!(cudaGetSymbolAddress(out(&mut found), address(&lost)), cudaErrorInvalidSymbol);

        let to = |count, offset, kind| cudaMemcpyToSymbol(address(&shadow), pointer(16), count, offset, kind);
        assert_eq!(to(64, 0, cudaMemcpyHostToDevice), cudaSuccess);
        assert_eq!(to(32, 32, cudaMemcpyDefault), cudaSuccess);
        assert_eq!(to(33, 32, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
        assert_eq!(to(usize::MAX, 32, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
        assert_eq!(to(4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
        assert_eq!(to(0, 99, cudaMemcpyHostToDevice), cudaSuccess);
        let code = cudaMemcpyFromSymbol(pointer(16), address(&shadow), 8, 8, cudaMemcpyDeviceToHost);
        assert_eq!(code, cudaSuccess);
    }
}

#[test]
fn managed_variables_are_symbols_by_their_address_too() {
    begin_in_context();
    let mut managed: *mut c_void = ptr::null_mut();
    let place = &raw mut managed;
    let registered = Registered::new().managed(place, c"m");
    let mut found = ptr::null_mut();
    // SAFETY: the handle is the binary's, results have their places.
    unsafe {
        assert_eq!(crate::api::compiler::__cudaInitModule(registered.handle), 1);
        for symbol in [place.cast_const().cast(), place.read()] {
            assert_eq!(cudaGetSymbolAddress(out(&mut found), symbol), cudaSuccess);
            assert_eq!(found.addr(), mock_driver::MANAGED_ADDRESS as usize);
        }
    }
}
