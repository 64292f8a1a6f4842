//! Libraries and their kernels.

use super::common::*;

const MANAGED: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 everywhere = 9;
.visible .global .align 4 .u32 own = 3;
.visible .entry k() { ret; }
";

fn load_library(ptx: &str) -> CUlibrary {
    let (mut library, code) = (CUlibrary::NULL, CString::new(ptx).expect("no NUL inside"));
    cu!(cuLibraryLoadData(
        &mut library,
        code.as_ptr().cast(),
        null_mut(),
        null_mut(),
        0,
        null_mut(),
        null_mut(),
        0
    ));
    library
}

fn kernel_of(library: CUlibrary, name: &CStr) -> CUkernel {
    let mut kernel = CUkernel::NULL;
    cu!(cuLibraryGetKernel(&mut kernel, library, name.as_ptr()));
    kernel
}

fn global(library: CUlibrary, name: &CStr) -> (CUdeviceptr, usize) {
    let (mut address, mut size) = (CUdeviceptr(0), 0);
    cu!(cuLibraryGetGlobal(&mut address, &mut size, library, name.as_ptr()));
    (address, size)
}

/// Adds one to the library's counter in the current context, by a kernel or a function.
fn bump(function: CUfunction) {
    let one = 1_u32;
    assert_eq!(launch(function, 1, 1, CUstream::NULL, &mut [arg(&one)]), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
}

pub fn loading_needs_no_context() {
    init();
    let library = load_library(KERNELS);
    kernel_of(library, c"bump");
    cu!(cuLibraryUnload(library));
}

pub fn a_kernel_is_launched_in_whatever_context_is_current() {
    init();
    let library = load_library(KERNELS);
    let kernel = kernel_of(library, c"bump");
    let one = create_context();
    bump(CUfunction(kernel.0));
    bump(CUfunction(kernel.0));
    let (counter, size) = global(library, c"counter");
    assert_eq!((size, read::<u32>(counter, 1)[0]), (4, 9));
    create_context();
    bump(CUfunction(kernel.0));
    assert_eq!(read::<u32>(global(library, c"counter").0, 1), [8]);
    cu!(cuCtxSetCurrent(one));
    assert_eq!(read::<u32>(global(library, c"counter").0, 1), [9]);
}

pub fn a_kernel_is_launched_in_the_context_of_its_stream() {
    init();
    let library = load_library(KERNELS);
    let (kernel, one) = (CUfunction(kernel_of(library, c"bump").0), 1_u32);
    let first = create_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    create_context();
    let (mut graph, mut executable) = (CUgraph::NULL, CUgraphExec::NULL);
    assert_eq!(launch(kernel, 1, 1, s, &mut [arg(&one)]), CUDA_SUCCESS);
    cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_eq!(launch(kernel, 1, 1, s, &mut [arg(&one)]), CUDA_SUCCESS);
    cu!(
        cuStreamEndCapture(s, &mut graph);
        cuGraphInstantiateWithFlags(&mut executable, graph, 0);
        cuGraphLaunch(executable, s);
        cuStreamSynchronize(s);
    );
    assert_eq!(read::<u32>(global(library, c"counter").0, 1), [7], "here nothing has run");
    cu!(cuCtxSetCurrent(first));
    assert_eq!(read::<u32>(global(library, c"counter").0, 1), [9]);
}

pub fn a_kernel_has_a_function_and_a_library() {
    new_context();
    let library = load_library(KERNELS);
    let kernel = kernel_of(library, c"bump");
    let (mut function, mut of_kernel, mut name) = (CUfunction::NULL, CUlibrary::NULL, null());
    cu!(cuKernelGetFunction(&mut function, kernel); cuKernelGetLibrary(&mut of_kernel, kernel));
    assert_eq!(of_kernel, library);
    bump(function);
    assert_eq!(read::<u32>(global(library, c"counter").0, 1), [8]);
    cu!(cuKernelGetName(&mut name, kernel));
    assert_eq!(text_of(name), "bump");
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetFunction(null_mut(), kernel));
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetLibrary(null_mut(), kernel));
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetName(null_mut(), kernel));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&mut function, CUkernel::NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelGetLibrary(&mut of_kernel, CUkernel::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetName(&mut name, CUkernel::NULL));
}

pub fn its_module_has_functions_too() {
    new_context();
    let library = load_library(KERNELS);
    let mut module = CUmodule::NULL;
    cu!(cuLibraryGetModule(&mut module, library));
    bump(function(module, c"bump"));
    assert_eq!(read::<u32>(global(library, c"counter").0, 1), [8]);
    fails!(CUDA_ERROR_NOT_PERMITTED, cuModuleUnload(module));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetModule(null_mut(), library));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetModule(&mut module, CUlibrary::NULL));
}

pub fn kernels_are_counted_and_listed() {
    init();
    let library = load_library(MANAGED);
    let mut count = 0;
    cu!(cuLibraryGetKernelCount(&mut count, library));
    assert_eq!(count, 1);
    let mut kernels = [CUkernel::NULL; 2];
    cu!(cuLibraryEnumerateKernels(kernels.as_mut_ptr(), 2, library));
    assert_eq!(kernels, [kernel_of(library, c"k"), CUkernel::NULL]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernelCount(null_mut(), library));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernelCount(&mut count, CUlibrary::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryEnumerateKernels(null_mut(), 1, library));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLibraryEnumerateKernels(kernels.as_mut_ptr(), 1, CUlibrary::NULL));
}

pub fn what_is_not_there_is_told() {
    new_context();
    let library = load_library(KERNELS);
    let (mut kernel, mut address, mut size) = (CUkernel::NULL, CUdeviceptr(0), 0);
    fails!(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&mut kernel, library, c"third".as_ptr()));
    fails!(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&mut address, &mut size, library, c"third".as_ptr()));
    fails!(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&mut address, &mut size, library, c"counter".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(null_mut(), library, c"bump".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(&mut kernel, library, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetGlobal(&mut address, &mut size, library, null()));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLibraryGetGlobal(null_mut(), null_mut(), library, c"counter".as_ptr())
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetManaged(&mut address, &mut size, library, null()));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel(&mut kernel, CUlibrary::NULL, c"bump".as_ptr()));
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuLibraryGetGlobal(&mut address, &mut size, CUlibrary::NULL, c"counter".as_ptr())
    );
}

pub fn a_managed_variable_is_one_for_all_contexts() {
    init();
    let library = load_library(MANAGED);
    create_context();
    let (mut address, mut size) = (CUdeviceptr(0), 0);
    cu!(cuLibraryGetManaged(&mut address, &mut size, library, c"everywhere".as_ptr()));
    assert_eq!(size, 4);
    // SAFETY: managed memory, which the host can reach.
    assert_eq!(unsafe { (address.0 as *const u32).read() }, 9);
    create_context();
    let mut again = CUdeviceptr(0);
    cu!(cuLibraryGetManaged(&mut again, null_mut(), library, c"everywhere".as_ptr()));
    assert_eq!(again, address);
}

pub fn files_are_loaded_too() {
    init();
    let file = std::env::temp_dir().join(format!("conformance-{}.ptx", std::process::id()));
    std::fs::write(&file, KERNELS).expect("a temporary file");
    let path = CString::new(file.to_str().expect("a plain path")).expect("no NUL inside");
    let mut library = CUlibrary::NULL;
    cu!(cuLibraryLoadFromFile(
        &mut library,
        path.as_ptr(),
        null_mut(),
        null_mut(),
        0,
        null_mut(),
        null_mut(),
        0
    ));
    std::fs::remove_file(&file).expect("the file is there");
    create_context();
    bump(CUfunction(kernel_of(library, c"bump").0));
    fails!(
        CUDA_ERROR_FILE_NOT_FOUND,
        cuLibraryLoadFromFile(
            &mut library,
            c"/no/such/file".as_ptr(),
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0
        )
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLibraryLoadFromFile(&mut library, null(), null_mut(), null_mut(), 0, null_mut(), null_mut(), 0)
    );
}

pub fn the_code_may_be_kept_by_the_caller() {
    init();
    let code = CString::new(KERNELS).expect("no NUL inside");
    let (mut library, mut keep) = (CUlibrary::NULL, 1_u32);
    let mut names = [CU_LIBRARY_BINARY_IS_PRESERVED, CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE];
    let mut values = [(&raw mut keep).cast::<c_void>()];
    cu!(cuLibraryLoadData(
        &mut library,
        code.as_ptr().cast(),
        null_mut(),
        null_mut(),
        0,
        names.as_mut_ptr(),
        values.as_mut_ptr().cast(),
        1
    ));
    create_context();
    bump(CUfunction(kernel_of(library, c"bump").0));
    let mut unknown = [CUlibraryOption(99)];
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLibraryLoadData(
            &mut library,
            code.as_ptr().cast(),
            null_mut(),
            null_mut(),
            0,
            unknown.as_mut_ptr(),
            values.as_mut_ptr().cast(),
            1
        )
    );
}

/// Loading takes a text as it is; whoever needs what is in it hears that it is wrong.
pub fn bad_ptx_is_told_at_first_use() {
    new_context();
    let library =
        load_library(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; }\n");
    let mut kernel = CUkernel::NULL;
    fails!(CUDA_ERROR_INVALID_PTX, cuLibraryGetKernel(&mut kernel, library, c"k".as_ptr()));
    let mut module = CUmodule::NULL;
    fails!(CUDA_ERROR_INVALID_PTX, cuLibraryGetModule(&mut module, library));
    // It has no kernels.
    let mut count = 9;
    cu!(cuLibraryGetKernelCount(&mut count, library); cuLibraryUnload(library));
    assert_eq!(count, 0);
}

pub fn bad_arguments_of_loading() {
    init();
    let (mut library, code) = (CUlibrary::NULL, CString::new(KERNELS).expect("no NUL inside"));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLibraryLoadData(&mut library, null(), null_mut(), null_mut(), 0, null_mut(), null_mut(), 0)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLibraryLoadData(
            null_mut(),
            code.as_ptr().cast(),
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0
        )
    );
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(CUlibrary::NULL));
    if ours_only("NVIDIA's driver follows handles of what is gone") {
        let library = load_library(KERNELS);
        let kernel = kernel_of(library, c"bump");
        cu!(cuLibraryUnload(library));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
        let mut name = null();
        fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&mut name, kernel));
    }
}

pub fn unloading_frees_its_variables_everywhere() {
    new_context();
    let library = load_library(KERNELS);
    let (counter, _) = global(library, c"counter");
    cu!(cuLibraryUnload(library));
    let mut byte = 0_u8;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2((&raw mut byte).cast(), counter, 1));
    let library = load_library(KERNELS);
    bump(CUfunction(kernel_of(library, c"bump").0));
    assert_eq!(read::<u32>(global(library, c"counter").0, 1), [8]);
}

pub fn attributes_of_a_kernel_are_set_for_a_device() {
    new_context();
    let library = load_library(KERNELS);
    let kernel = kernel_of(library, c"reverse");
    const DYNAMIC: CUfunction_attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let get = |attribute| {
        let mut value = -7;
        cu!(cuKernelGetAttribute(&mut value, attribute, kernel, 0));
        value
    };
    assert_eq!(get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    assert_eq!(get(CU_FUNC_ATTRIBUTE_PTX_VERSION), 80);
    assert_eq!(get(DYNAMIC), 48 << 10);
    cu!(cuKernelSetAttribute(DYNAMIC, 100_000, kernel, 0));
    assert_eq!(get(DYNAMIC), 100_000);
    let mut function = CUfunction::NULL;
    cu!(cuKernelGetFunction(&mut function, kernel));
    let mut value = 0;
    cu!(cuFuncGetAttribute(&mut value, DYNAMIC, function));
    assert_eq!(value, 100_000);
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelSetAttribute(DYNAMIC, 300_000, kernel, 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuKernelSetAttribute(DYNAMIC, 1000, kernel, 99));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuKernelGetAttribute(&mut value, DYNAMIC, kernel, 99));
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetAttribute(null_mut(), DYNAMIC, kernel, 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelGetAttribute(&mut value, DYNAMIC, CUkernel::NULL, 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelSetAttribute(DYNAMIC, 1000, CUkernel::NULL, 0));
    // A function is no kernel, though a kernel may stand for a function.
    fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelSetAttribute(DYNAMIC, 1000, CUkernel(function.0), 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelGetAttribute(&mut value, DYNAMIC, CUkernel(function.0), 0));
}

pub fn a_kernels_attributes_hold_in_every_context() {
    new_context();
    let library = load_library(KERNELS);
    let kernel = kernel_of(library, c"reverse");
    cu!(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100_000, kernel, 0));
    create_context();
    let (out, count) = (alloc(4 * 32), 32_u32);
    let (mut a, mut b) = (out, count);
    let mut arguments = [(&raw mut a).cast(), (&raw mut b).cast()];
    cu!(cuLaunchKernel(
        CUfunction(kernel.0),
        1,
        1,
        1,
        32,
        1,
        1,
        90_000,
        CUstream::NULL,
        arguments.as_mut_ptr(),
        null_mut()
    ));
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u32>(out, 2), [3 * 31, 3 * 30]);
}

pub fn cache_preferences_and_parameters_of_a_kernel() {
    new_context();
    let library = load_library(KERNELS);
    let kernel = kernel_of(library, c"mixed");
    cu!(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelSetCacheConfig(kernel, CUfunc_cache(99), 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuKernelSetCacheConfig(CUkernel::NULL, CU_FUNC_CACHE_PREFER_L1, 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 99));
    let info = |index| {
        let (mut offset, mut size) = (99, 99);
        cu!(cuKernelGetParamInfo(kernel, index, &mut offset, &mut size));
        (offset, size)
    };
    assert_eq!([0, 1, 2, 3].map(info), [(0, 4), (4, 1), (8, 8), (16, 4)]);
    let (mut offset, mut size) = (99, 99);
    cu!(cuKernelGetParamInfo(kernel, 2, &mut offset, null_mut()));
    assert_eq!(offset, 8);
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(kernel, 4, &mut offset, &mut size));
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(kernel, 0, null_mut(), &mut size));
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(CUkernel::NULL, 0, &mut offset, &mut size));
}

pub fn unified_functions_need_a_table_of_host_functions() {
    new_context();
    let library = load_library(KERNELS);
    let mut function = null_mut();
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetUnifiedFunction(&mut function, library, c"bump".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetUnifiedFunction(null_mut(), library, c"bump".as_ptr()));
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuLibraryGetUnifiedFunction(&mut function, CUlibrary::NULL, c"bump".as_ptr())
    );
}
