//! Modules: loading, functions, variables.

use super::common::*;

/// Two kernels, an own function, variables of several kinds.
const PTX: &CStr = c".version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 gvar[4] = {1, 2, 3, 4};
.visible .const .align 4 .u32 cvar[2] = {5, 6};
.global .align 4 .u32 hidden = 7;
.func own()
{
    ret;
}
.visible .entry first(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [gvar+4];
    ld.const.u32 %r2, [cvar+4];
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry second()
{
    ret;
}
";

fn load_ptx() -> CUmodule {
    let mut module = CUmodule::NULL;
    cu!(cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
    module
}

fn global(module: CUmodule, name: &CStr) -> (CUdeviceptr, usize) {
    let (mut address, mut size) = (CUdeviceptr(0), 0);
    cu!(cuModuleGetGlobal_v2(&mut address, &mut size, module, name.as_ptr()));
    (address, size)
}

/// What `first` stores.
fn run_first(module: CUmodule) -> u32 {
    let out = alloc_with(&[0_u32]);
    let first = function(module, c"first");
    assert_eq!(launch(first, 1, 1, CUstream::NULL, &mut [arg(&out)]), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    read(out, 1)[0]
}

pub fn what_is_not_found_is_null() {
    new_context();
    let module = load(PTX.to_str().expect("a text"));
    let mut found = CUfunction(0x77);
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&mut found, module, c"nowhere".as_ptr()));
    assert_eq!(found, CUfunction::NULL);
    let (mut address, mut size) = (CUdeviceptr(0x77), 0x77);
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&mut address, &mut size, module, c"nowhere".as_ptr()));
    assert_eq!((address.0, size), (0, 0));
    // What is no name is refused before.
    found = CUfunction(0x77);
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&mut found, module, c"".as_ptr()));
    assert_eq!(found, CUfunction(0x77));
}

pub fn every_loading_function_takes_ptx() {
    new_context();
    let mut modules = [CUmodule::NULL; 5];
    let file = std::env::temp_dir().join(format!("conformance-{}.ptx", std::process::id()));
    std::fs::write(&file, PTX.to_bytes()).expect("a temporary file");
    let path = CString::new(file.to_str().expect("a plain path")).expect("no NUL inside");
    cu!(
        cuModuleLoad(&mut modules[0], path.as_ptr());
        cuModuleLoadData(&mut modules[1], PTX.as_ptr().cast());
        cuModuleLoadDataEx(&mut modules[2], PTX.as_ptr().cast(), 0, null_mut(), null_mut());
        cuModuleLoadFatBinary(&mut modules[3], PTX.as_ptr().cast())
    );
    std::fs::remove_file(&file).expect("the file is there");
    modules[4] = load_ptx();
    for module in modules {
        assert_eq!(run_first(module), 2 + 6);
        cu!(cuModuleUnload(module));
    }
}

pub fn what_is_not_there_is_told() {
    new_context();
    let module = load_ptx();
    let (mut function, mut address, mut size) = (CUfunction::NULL, CUdeviceptr(0), 0);
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&mut function, module, c"third".as_ptr()));
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&mut function, module, c"own".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&mut function, module, c"".as_ptr()));
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&mut address, &mut size, module, c"third".as_ptr()));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuModuleGetGlobal_v2(&mut address, &mut size, module, c"first".as_ptr())
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(&mut address, &mut size, module, c"".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(null_mut(), module, c"first".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&mut function, module, null()));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&mut function, CUmodule::NULL, c"first".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(null_mut(), null_mut(), module, c"gvar".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal_v2(&mut address, &mut size, module, null()));
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuModuleGetGlobal_v2(&mut address, &mut size, CUmodule::NULL, c"gvar".as_ptr())
    );
}

pub fn variables_have_addresses_sizes_and_first_values() {
    new_context();
    let module = load_ptx();
    let (gvar, size) = global(module, c"gvar");
    assert_eq!(size, 16);
    assert_eq!(read::<u32>(gvar, 4), [1, 2, 3, 4]);
    let (cvar, size) = global(module, c"cvar");
    assert_eq!(size, 8);
    assert_eq!(read::<u32>(cvar, 2), [5, 6]);
    let (mut address, mut size) = (CUdeviceptr(0), 0);
    cu!(cuModuleGetGlobal_v2(&mut address, null_mut(), module, c"gvar".as_ptr()));
    cu!(cuModuleGetGlobal_v2(null_mut(), &mut size, module, c"gvar".as_ptr()));
    assert_eq!((address, size), (gvar, 16));
    cu!(cuMemsetD32_v2(CUdeviceptr(gvar.0 + 4), 100, 1); cuMemsetD32_v2(CUdeviceptr(cvar.0 + 4), 11, 1));
    assert_eq!(run_first(module), 111);
}

pub fn the_first_version_of_a_variables_address_is_cut() {
    new_context();
    let module = load_ptx();
    let (gvar, _) = global(module, c"gvar");
    let (mut address, mut size) = ([0x5555_5555; 2], [0x5555_5555; 2]);
    let code = differs("there is one kind of context", CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT);
    if code != CUDA_SUCCESS {
        fails!(code, cuModuleGetGlobal(&mut address[0], &mut size[0], module, c"gvar".as_ptr()));
        return;
    }
    cu!(cuModuleGetGlobal(&mut address[0], &mut size[0], module, c"gvar".as_ptr()));
    assert_eq!(size, [16, 0x5555_5555]);
    assert_eq!(address, [gvar.0 as u32, 0x5555_5555]);
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&mut address[0], &mut size[0], module, c"third".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal(null_mut(), null_mut(), module, c"gvar".as_ptr()));
}

pub fn each_load_has_variables_of_its_own() {
    new_context();
    let (one, other) = (load_ptx(), load_ptx());
    assert_ne!(one, other);
    assert_ne!(global(one, c"gvar").0, global(other, c"gvar").0);
    cu!(cuMemsetD32_v2(global(one, c"gvar").0, 50, 4));
    assert_eq!(run_first(one), 56);
    assert_eq!(run_first(other), 8);
}

pub fn unloading_and_loading_begins_anew() {
    new_context();
    let module = load_ptx();
    let (gvar, _) = global(module, c"gvar");
    cu!(cuMemsetD32_v2(gvar, 50, 4); cuModuleUnload(module));
    let mut byte = 0_u8;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2((&raw mut byte).cast(), gvar, 1));
    for _ in 0..20 {
        let module = load_ptx();
        assert_eq!(run_first(module), 8);
        cu!(cuModuleUnload(module));
    }
}

pub fn an_unloaded_module_is_refused() {
    new_context();
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(CUmodule::NULL));
    let module = load_ptx();
    let first = function(module, c"second");
    cu!(cuModuleUnload(module));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    if ours_only("NVIDIA's driver follows handles of what is gone") {
        let mut function = CUfunction::NULL;
        fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&mut function, module, c"first".as_ptr()));
        assert_eq!(launch(first, 1, 1, CUstream::NULL, &mut []), CUDA_ERROR_INVALID_HANDLE);
    }
}

pub fn unloading_waits_for_its_kernels() {
    new_context();
    let module = load_ptx();
    let out = alloc_with(&[0_u32]);
    let first = function(module, c"first");
    for _ in 0..100 {
        assert_eq!(launch(first, 1, 1, CUstream::NULL, &mut [arg(&out)]), CUDA_SUCCESS);
    }
    cu!(cuModuleUnload(module));
    assert_eq!(read::<u32>(out, 1), [8]);
}

pub fn functions_are_counted_and_listed() {
    new_context();
    let module = load_ptx();
    let mut count = 0;
    cu!(cuModuleGetFunctionCount(&mut count, module));
    assert_eq!(count, 2);
    let mut functions = [CUfunction::NULL; 3];
    cu!(cuModuleEnumerateFunctions(functions.as_mut_ptr(), 2, module));
    assert!(functions[2].is_null());
    let names: Vec<_> = functions[..2]
        .iter()
        .map(|function| {
            let mut name = null();
            cu!(cuFuncGetName(&mut name, *function));
            text_of(name)
        })
        .collect();
    assert!(names.contains(&"first".to_owned()) && names.contains(&"second".to_owned()), "{names:?}");
    let mut one = [CUfunction::NULL; 2];
    cu!(cuModuleEnumerateFunctions(one.as_mut_ptr(), 1, module));
    assert!(!one[0].is_null() && one[1].is_null());
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunctionCount(null_mut(), module));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleEnumerateFunctions(null_mut(), 1, module));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunctionCount(&mut count, CUmodule::NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleEnumerateFunctions(one.as_mut_ptr(), 1, CUmodule::NULL));
}

pub fn a_functions_handle_stays_the_same() {
    new_context();
    let module = load_ptx();
    assert_eq!(function(module, c"first"), function(module, c"first"));
    assert_ne!(function(module, c"first"), function(module, c"second"));
}

pub fn bad_images_and_places_are_refused() {
    new_context();
    let mut module = CUmodule::NULL;
    fails!(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&mut module, c"/no/such/file".as_ptr()));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuModuleLoad(&mut module, c"/tmp".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(&mut module, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(null_mut(), c"/no/such/file".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&mut module, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(null_mut(), PTX.as_ptr().cast()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&mut module, null(), 0, null_mut(), null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadFatBinary(&mut module, null()));
    fails!(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&mut module, c"".as_ptr().cast()));
    assert!(module.is_null());
}

fn loading_mode() -> CUmoduleLoadingMode {
    init();
    let mut mode = CUmoduleLoadingMode(99);
    cu!(cuModuleGetLoadingMode(&mut mode));
    if ours_only("NVIDIA's driver writes to null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetLoadingMode(null_mut()));
    }
    mode
}

pub fn loading_is_lazy_by_default() {
    assert_eq!(loading_mode(), CU_MODULE_LAZY_LOADING);
}

pub fn loading_can_be_eager() {
    set_env("CUDA_MODULE_LOADING", "EAGER");
    assert_eq!(loading_mode(), CU_MODULE_EAGER_LOADING);
    create_context();
    assert_eq!(run_first(load_ptx()), 8);
}

pub fn a_module_belongs_to_its_context() {
    let owner = new_context();
    let module = load_ptx();
    let first = function(module, c"first");
    let other = create_context();
    let out = alloc_with(&[0_u32]);
    // A function runs in its own context, whose memory and stream must be given.
    assert_eq!(launch(first, 1, 1, CUstream::NULL, &mut [arg(&out)]), CUDA_ERROR_INVALID_HANDLE);
    cu!(cuCtxSetCurrent(owner));
    assert_eq!(run_first(module), 8);
    cu!(cuCtxDestroy_v2(other));
    assert_eq!(run_first(module), 8);
}
