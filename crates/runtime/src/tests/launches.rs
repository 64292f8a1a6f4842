use std::ffi::{c_char, c_void};
use std::ptr;

use cuda_abi::driver::*;
use cuda_abi::runtime::*;

use super::*;
use crate::api::device::cudaSetDevice;
use crate::api::error::{cudaGetLastError, cudaPeekAtLastError};
use crate::api::execution::*;

/// What the compiler makes of `kernel<<<grid, block, shared, stream>>>(…)`.
fn launch(
    host_function: *const c_void,
    grid: dim3,
    block: dim3,
    shared: usize,
    stream: usize,
) -> cudaError_t {
    // SAFETY: the pointers are to variables of this function, the handle is what __cudaGetKernel gave.
    unsafe {
        assert_eq!(__cudaPushCallConfiguration(grid, block, shared, ptr::without_provenance_mut(stream)), 0);
        let mut kernel = cudaKernel_t::NULL;
        let _ = __cudaGetKernel(out(&mut kernel), host_function);
        let (mut g, mut b, mut sm, mut st) = (size(0, 0, 0), size(0, 0, 0), 0, cudaStream_t::NULL);
        let code =
            __cudaPopCallConfiguration(out(&mut g), out(&mut b), out(&mut sm), ptr::from_mut(&mut st).cast());
        assert_eq!(code, cudaSuccess);
        __cudaLaunchKernel(kernel, g, b, ptr::without_provenance_mut(0xA000), sm, st)
    }
}

#[test]
fn registration_calls_no_driver_and_the_first_launch_loads() {
    begin();
    let (function, shadow) = (0u64, 0u64);
    let registered = Registered::new().kernel(&function, c"k").variable(&shadow, c"v");
    // SAFETY: the handle is the binary's.
    unsafe { __cudaRegisterFatBinaryEnd(registered.handle) };
    assert!(mock_driver::calls().is_empty());

    mock_driver::make_current(CUcontext(0x200));
    assert_eq!(launch(address(&function), size(1, 2, 3), size(4, 5, 6), 7, 0x77), cudaSuccess);
    let calls = mock_driver::calls();
    assert!(
        calls.ends_with(&["cuLibraryLoadData", "cuLibraryGetKernel", "cuLaunchKernel"].map(String::from))
    );
    let (_, sizes, stream, arguments) = mock_driver::last_launch().unwrap();
    assert_eq!((sizes, stream, arguments), ([1, 2, 3, 4, 5, 6, 7], CUstream(0x77), 0xA000));

    assert_eq!(launch(address(&function), size(1, 1, 1), size(1, 1, 1), 0, 0), cudaSuccess);
    assert_eq!(mock_driver::calls(), ["cuLaunchKernel"]);

    drop(registered);
    assert_eq!(mock_driver::calls(), ["cuLibraryUnload"]);
}

#[test]
fn a_binary_that_was_never_used_is_never_unloaded() {
    begin();
    drop(Registered::new());
    assert!(mock_driver::calls().is_empty());
}

#[test]
fn every_launch_says_why_its_binary_cannot_be_loaded() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
    let function = 0u64;
    let _registered = Registered::new().kernel(&function, c"k");
    for _ in 0..2 {
        mock_driver::fail_next("cuLibraryLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
        let one = size(1, 1, 1);
        assert_eq!(launch(address(&function), one, one, 0, 0), cudaErrorNoKernelImageForDevice);
        // SAFETY: no pointers.
        assert_eq!(unsafe { cudaGetLastError() }, cudaErrorNoKernelImageForDevice);
    }
    assert_eq!(launch(address(&function), size(1, 1, 1), size(1, 1, 1), 0, 0), cudaSuccess);
}

#[test]
fn a_kernel_that_the_binary_lacks_is_not_found() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
    let function = 0u64;
    let _registered = Registered::new().kernel(&function, mock_driver::MISSING);
    assert_eq!(launch(address(&function), size(1, 1, 1), size(1, 1, 1), 0, 0), cudaErrorSymbolNotFound);
}

#[test]
fn what_is_not_registered_goes_to_the_driver_as_a_handle() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
    let (one, none) = (size(1, 1, 1), ptr::null_mut());
    // SAFETY: the mock looks at no pointer.
    unsafe {
        assert_eq!(
            cudaLaunchKernel(ptr::null(), one, one, none, 0, cudaStream_t::NULL),
            cudaErrorInvalidDeviceFunction
        );
        let handle = ptr::without_provenance(0xBEE0);
        assert_eq!(cudaLaunchKernel(handle, one, one, none, 0, cudaStream_t::NULL), cudaSuccess);
    }
    assert_eq!(mock_driver::last_launch().unwrap().0, CUfunction(0xBEE0));
}

#[test]
fn the_per_thread_variant_changes_only_the_default_stream() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
    let function = 0u64;
    let _registered = Registered::new().kernel(&function, c"k");
    let (one, none) = (size(1, 1, 1), ptr::null_mut());
    let stream = || mock_driver::last_launch().unwrap().2;
    // SAFETY: the mock looks at no pointer.
    unsafe {
        assert_eq!(cudaLaunchKernel(address(&function), one, one, none, 0, CUstream(0)), cudaSuccess);
        assert_eq!(stream(), CUstream(0));
        assert_eq!(cudaLaunchKernel_ptsz(address(&function), one, one, none, 0, CUstream(0)), cudaSuccess);
        assert_eq!(stream(), CU_STREAM_PER_THREAD);
        assert_eq!(cudaLaunchKernel_ptsz(address(&function), one, one, none, 0, CUstream(0x88)), cudaSuccess);
        assert_eq!(stream(), CUstream(0x88));
    }
}

#[test]
fn shared_memory_beyond_32_bits_is_refused() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
    let function = 0u64;
    let _registered = Registered::new().kernel(&function, c"k");
    assert_eq!(launch(address(&function), size(1, 1, 1), size(1, 1, 1), 1 << 32, 0), cudaErrorInvalidValue);
}

#[test]
fn of_a_kernel_in_two_binaries_one_remains_when_the_other_goes() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
    let function = 0u64;
    let first = Registered::new().kernel(&function, c"k");
    let _second = Registered::new().kernel(&function, c"k");
    drop(first);
    assert_eq!(launch(address(&function), size(1, 1, 1), size(1, 1, 1), 0, 0), cudaSuccess);
}

#[test]
fn a_stub_without_configuration_is_told_so() {
    begin();
    let (mut g, mut b, mut sm, mut st) = (size(0, 0, 0), size(0, 0, 0), 0, cudaStream_t::NULL);
    // SAFETY: the pointers are to variables of this function.
    let code = unsafe {
        __cudaPopCallConfiguration(out(&mut g), out(&mut b), out(&mut sm), ptr::from_mut(&mut st).cast())
    };
    assert_eq!(code, cudaErrorMissingConfiguration);
}

#[test]
fn managed_pointers_are_set_when_their_binary_is_loaded() {
    begin();
    let mut pointer: *mut c_void = ptr::null_mut();
    let registered = Registered::new().managed(&raw mut pointer, c"m");
    assert!(mock_driver::calls().is_empty());
    mock_driver::fail_next("cuLibraryGetManaged", CUDA_ERROR_OUT_OF_MEMORY);
    // SAFETY: the handle is the binary's.
    assert_eq!(unsafe { __cudaInitModule(registered.handle) }, 0 as c_char);
    // SAFETY: no pointers.
    assert_eq!(unsafe { cudaPeekAtLastError() }, cudaErrorMemoryAllocation);
    // SAFETY: the handle is the binary's.
    assert_eq!(unsafe { __cudaInitModule(registered.handle) }, 1 as c_char);
    // SAFETY: a variable of this function.
    assert_eq!(unsafe { (&raw const pointer).read_volatile() }.addr(), mock_driver::MANAGED_ADDRESS as usize);
}

#[test]
fn a_launch_without_context_makes_the_primary_one_current() {
    begin();
    let function = 0u64;
    let _registered = Registered::new().kernel(&function, c"k");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: no pointers.
            assert_eq!(unsafe { cudaSetDevice(1) }, cudaSuccess);
            mock_driver::make_current(CUcontext::NULL);
            assert_eq!(launch(address(&function), size(1, 1, 1), size(1, 1, 1), 0, 0), cudaSuccess);
            assert_eq!(mock_driver::current(), mock_driver::primary(1));
        });
    });
}

#[test]
fn variables_of_the_host_go_with_the_binary_that_names_them() {
    begin();
    let (first, second) = (1u32, 2u32);
    let registered = Registered::new();
    // SAFETY: the handle is the binary's and the names are texts.
    unsafe {
        for (variable, name) in [(&first, c"first"), (&second, c"second")] {
            let host = ptr::from_ref(variable).cast_mut().cast();
            __cudaRegisterHostVar(registered.handle, name.as_ptr(), host, 4);
            __cudaRegisterHostVar(registered.handle, ptr::null(), host, 4);
        }
        __cudaRegisterHostVar(ptr::null_mut(), c"lost".as_ptr(), ptr::null_mut(), 4);
        assert_eq!(__cudaInitModule(registered.handle), 1);
    }
    let expected =
        [(c"first".to_owned(), address(&first).addr()), (c"second".to_owned(), address(&second).addr())];
    assert_eq!(mock_driver::host_variables(), expected);
    assert!(mock_driver::unified_table().is_none());
}

#[test]
fn a_unified_table_goes_with_its_binary() {
    begin();
    let registered = Registered::new();
    let place = ptr::without_provenance_mut;
    // SAFETY: the handle is the binary's; the mock does not look into the tables.
    unsafe {
        __cudaRegisterUnifiedTable(registered.handle, place(0x10), 2, place(0x30), 4);
        __cudaRegisterUnifiedTable(ptr::null_mut(), place(0x50), 2, place(0x30), 4);
        assert_eq!(__cudaInitModule(registered.handle), 1);
    }
    let table = mock_driver::unified_table().unwrap();
    assert_eq!((table.functionTable.addr(), table.functionWindowSize), (0x10, 2));
    assert_eq!((table.dataTable.addr(), table.dataWindowSize), (0x30, 4));
    assert_eq!(mock_driver::host_variables(), []);
}
