//! Library management.

use super::common::*;

pub fn a_library_has_kernels() {
    let library = library(KERNELS);
    let mut count = 0;
    cuda!(cudaLibraryGetKernelCount(&mut count, library));
    assert_eq!(count as usize, KERNELS.matches(".entry").count());
    let mut kernels = vec![cudaKernel_t::NULL; count as usize + 2];
    cuda!(cudaLibraryEnumerateKernels(kernels.as_mut_ptr(), 2, library));
    assert!(!kernels[0].is_null() && !kernels[1].is_null() && kernels[2].is_null());
    cuda!(cudaLibraryEnumerateKernels(kernels.as_mut_ptr(), count + 2, library));
    assert_eq!(kernels.iter().filter(|kernel| !kernel.is_null()).count(), count as usize);
    let bump = kernel_of(library, c"bump");
    assert!(kernels.contains(&bump));
    let mut name = null();
    cuda!(cudaFuncGetName(&mut name, as_function(bump)));
    assert_eq!(text_of(name), "bump");
    fails!(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&mut kernels[0], library, c"no_such".as_ptr()));
    fails!(cudaErrorInvalidValue, cudaLibraryGetKernel(null_mut(), library, c"bump".as_ptr()));
    fails!(cudaErrorInvalidValue, cudaLibraryGetKernel(&mut kernels[0], library, null()));
    fails!(cudaErrorInvalidValue, cudaLibraryGetKernelCount(null_mut(), library));
    fails!(cudaErrorInvalidValue, cudaLibraryEnumerateKernels(null_mut(), 2, library));
}

pub fn a_library_has_variables() {
    let library = library(KERNELS);
    let (mut address, mut bytes) = (null_mut(), 0);
    cuda!(cudaLibraryGetGlobal(&mut address, &mut bytes, library, c"counter".as_ptr()));
    assert_eq!((bytes, read::<u32>(address, 1)), (4, vec![7]));
    cuda!(cudaLibraryGetGlobal(null_mut(), &mut bytes, library, c"counter".as_ptr()));
    cuda!(cudaLibraryGetGlobal(&mut address, null_mut(), library, c"scale".as_ptr()));
    assert_eq!(read::<f32>(address, 1), [2.0]);
    let place = &mut address;
    fails!(cudaErrorSymbolNotFound, cudaLibraryGetGlobal(place, &mut bytes, library, c"no_such".as_ptr()));
    fails!(cudaErrorSymbolNotFound, cudaLibraryGetManaged(place, &mut bytes, library, c"counter".as_ptr()));
    fails!(cudaErrorInvalidValue, cudaLibraryGetGlobal(place, &mut bytes, library, null()));
    fails!(cudaErrorInvalidValue, cudaLibraryGetManaged(place, &mut bytes, library, null()));
    let mut function = null_mut();
    fails!(cudaErrorInvalidValue, cudaLibraryGetUnifiedFunction(&mut function, library, c"no_such".as_ptr()));
    fails!(cudaErrorInvalidValue, cudaLibraryGetUnifiedFunction(null_mut(), library, c"bump".as_ptr()));
}

pub fn a_managed_variable_of_a_library() {
    let managed = library(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .global .attribute(.managed) .align 4 .u32 shared = 42;\n\
         .visible .entry nothing() { ret; }",
    );
    let (mut address, mut bytes) = (null_mut(), 0);
    cuda!(cudaLibraryGetManaged(&mut address, &mut bytes, managed, c"shared".as_ptr()));
    assert_eq!(bytes, 4);
    // SAFETY: managed memory, which no kernel uses.
    assert_eq!(unsafe { address.cast::<u32>().read() }, 42);
}

pub fn a_library_from_a_file() {
    let path = std::env::temp_dir().join(format!("conformance-{}.ptx", std::process::id()));
    std::fs::write(&path, KERNELS).expect("the folder for temporary files can be written to");
    let name = CString::new(path.to_str().expect("a plain path")).expect("no NUL");
    let load = |name: *const c_char, place: *mut cudaLibrary_t| {
        // SAFETY: null, or texts and places of the test.
        unsafe { cudaLibraryLoadFromFile(place, name, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0) }
    };
    let mut library = cudaLibrary_t::NULL;
    assert_eq!(load(name.as_ptr(), &mut library), cudaSuccess);
    std::fs::remove_file(&path).expect("it can be removed");
    assert_eq!(launch(as_function(kernel_of(library, c"nothing")), 1, 1, DEFAULT, &mut []), cudaSuccess);
    cuda!(cudaDeviceSynchronize(); cudaLibraryUnload(library));
    assert_eq!(load(name.as_ptr(), &mut library), cudaErrorFileNotFound);
    assert_eq!(load(null(), &mut library), cudaErrorInvalidValue);
    assert_eq!(load(name.as_ptr(), null_mut()), cudaErrorInvalidValue);
}

pub fn an_unloaded_library_is_gone() {
    let library = library(KERNELS);
    let bump = kernel_of(library, c"bump");
    cuda!(cudaLibraryUnload(library));
    if ours_only("NVIDIA's driver crashes on a library or a kernel that was unloaded") {
        let (by, mut count) = (1u32, 0);
        fails!(cudaErrorInvalidResourceHandle, cudaLibraryUnload(library));
        fails!(cudaErrorInvalidResourceHandle, cudaLibraryGetKernelCount(&mut count, library));
        assert_eq!(launch(as_function(bump), 1, 1, DEFAULT, &mut [arg(&by)]), cudaErrorInvalidResourceHandle);
        fails!(cudaErrorInvalidResourceHandle, cudaLibraryUnload(cudaLibrary_t::NULL));
    }
}

pub fn wrong_code_is_refused() {
    let load = |code: *const c_void, place: *mut cudaLibrary_t| {
        // SAFETY: null, or texts and places of the test.
        unsafe { cudaLibraryLoadData(place, code, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0) }
    };
    let mut library = cudaLibrary_t::NULL;
    assert_eq!(load(null(), &mut library), cudaErrorInvalidValue);
    assert_eq!(load(c"".as_ptr().cast(), null_mut()), cudaErrorInvalidValue);
    let broken = c".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; }";
    // A text is taken as it is; whoever needs what is in it hears that it is wrong.
    let mut kernel = cudaKernel_t::NULL;
    assert_eq!(load(c"no PTX".as_ptr().cast(), &mut library), cudaSuccess);
    // SAFETY: a place for the answer and a text.
    let code = unsafe { cudaLibraryGetKernel(&mut kernel, library, c"k".as_ptr()) };
    assert_ne!(code, cudaSuccess);
    assert_eq!(load(broken.as_ptr().cast(), &mut library), cudaSuccess);
    fails!(cudaErrorInvalidPtx, cudaLibraryGetKernel(&mut kernel, library, c"k".as_ptr()));
}

pub fn the_error_log_of_a_load() {
    let (mut log, mut library) = ([0u8; 512], cudaLibrary_t::NULL);
    let mut options = [cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    let broken = c".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n nonsense; }";
    let code = broken.as_ptr().cast();
    let (names, cells) = (options.as_mut_ptr(), values.as_mut_ptr());
    cuda!(cudaLibraryLoadData(&mut library, code, names, cells, 2, null_mut(), null_mut(), 0));
    let text = CStr::from_bytes_until_nul(&log).expect("the log ends").to_string_lossy().into_owned();
    assert!(text.contains('5'), "no line in {text:?}");
}

pub fn attributes_of_a_kernel_on_a_device() {
    let reverse = kernel_of(library(KERNELS), c"reverse");
    let attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cuda!(cudaKernelSetAttributeForDevice(reverse, attribute, 65536, 0));
    let mut attributes = std::mem::MaybeUninit::uninit();
    cuda!(cudaFuncGetAttributes(attributes.as_mut_ptr(), as_function(reverse)));
    // SAFETY: the call wrote them.
    let attributes: cudaFuncAttributes = unsafe { attributes.assume_init() };
    assert_eq!(attributes.maxDynamicSharedSizeBytes, 65536);
    fails!(cudaErrorInvalidValue, cudaKernelSetAttributeForDevice(reverse, attribute, 1 << 30, 0));
    fails!(cudaErrorInvalidDevice, cudaKernelSetAttributeForDevice(reverse, attribute, 1024, 99));
}
