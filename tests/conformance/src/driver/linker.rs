//! The linker: pieces in, one image out.

use super::common::*;

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel that stores what a function elsewhere gives.
const CALLER: &str = "
.extern .func (.param .b32 result) elsewhere();
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .param .b32 result;
    ld.param.u64 %rd1, [out];
    call (result), elsewhere;
    ld.param.b32 %r1, [result];
    st.global.u32 [%rd1], %r1;
    ret;
}
";

const CALLED: &str = "
.visible .global .align 4 .u32 answer = 42;
.visible .func (.param .b32 result) elsewhere()
{
    .reg .b32 %r<2>;
    ld.global.u32 %r1, [answer];
    st.param.b32 [result], %r1;
    ret;
}
";

fn create() -> CUlinkState {
    let mut state = CUlinkState::NULL;
    cu!(cuLinkCreate_v2(0, null_mut(), null_mut(), &mut state));
    state
}

/// Adds PTX, with the header before it; the code of the call.
fn add(state: CUlinkState, text: &str) -> CUresult {
    let mut text = format!("{HEADER}{text}\0");
    let (data, len) = (text.as_mut_ptr().cast(), text.len());
    // SAFETY: as many bytes as said, and no options.
    unsafe {
        cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, data, len, c"piece".as_ptr(), 0, null_mut(), null_mut())
    }
}

fn complete(state: CUlinkState) -> (*mut c_void, usize) {
    let (mut image, mut size) = (null_mut(), 0);
    cu!(cuLinkComplete(state, &mut image, &mut size));
    assert!(!image.is_null() && size > 0);
    (image, size)
}

/// What the kernel of an image stores.
fn run(module: CUmodule) -> u32 {
    let out = alloc_with(&[0_u32]);
    assert_eq!(launch(function(module, c"k"), 1, 1, CUstream::NULL, &mut [arg(&out)]), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    read(out, 1)[0]
}

pub fn every_loading_function_takes_the_image() {
    new_context();
    let state = create();
    assert_eq!(add(state, CALLER), CUDA_SUCCESS);
    assert_eq!(add(state, CALLED), CUDA_SUCCESS);
    let (image, size) = complete(state);
    let mut modules = [CUmodule::NULL; 4];
    // SAFETY: the image has as many bytes, until the link is destroyed.
    let bytes = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), size) };
    let file = std::env::temp_dir().join(format!("conformance-{}.image", std::process::id()));
    std::fs::write(&file, bytes).expect("a temporary file");
    let path = CString::new(file.to_str().expect("a plain path")).expect("no NUL inside");
    let mut library = CUlibrary::NULL;
    cu!(
        cuModuleLoadData(&mut modules[0], image);
        cuModuleLoadDataEx(&mut modules[1], image, 0, null_mut(), null_mut());
        cuModuleLoadFatBinary(&mut modules[2], image);
        cuModuleLoad(&mut modules[3], path.as_ptr());
        cuLibraryLoadData(&mut library, image, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0)
    );
    std::fs::remove_file(&file).expect("the file is there");
    cu!(cuLinkDestroy(state));
    let mut of_library = CUmodule::NULL;
    cu!(cuLibraryGetModule(&mut of_library, library));
    for module in modules.into_iter().chain([of_library]) {
        assert_eq!(run(module), 42);
    }
    let (mut address, mut size) = (CUdeviceptr(0), 0);
    cu!(cuModuleGetGlobal_v2(&mut address, &mut size, modules[0], c"answer".as_ptr()));
    assert_eq!((size, read::<u32>(address, 1)[0]), (4, 42));
}

/// An image may be linked with others again.
pub fn an_image_can_be_linked_again() {
    new_context();
    let first = create();
    assert_eq!(add(first, CALLED), CUDA_SUCCESS);
    let (image, size) = complete(first);
    let second = create();
    assert_eq!(add(second, CALLER), CUDA_SUCCESS);
    // SAFETY: the image has as many bytes; no options.
    let code = unsafe {
        cuLinkAddData_v2(
            second,
            CU_JIT_INPUT_CUBIN,
            image,
            size,
            c"image".as_ptr(),
            0,
            null_mut(),
            null_mut(),
        )
    };
    // Machine code that is fully linked has no functions to call any more.
    assert_eq!(code, differs("our images are PTX", CUDA_SUCCESS, CUDA_ERROR_NO_BINARY_FOR_GPU));
    if is_ours() {
        let (image, _) = complete(second);
        let mut module = CUmodule::NULL;
        cu!(cuModuleLoadData(&mut module, image));
        assert_eq!(run(module), 42);
    }
}

pub fn the_first_versions_link_too() {
    new_context();
    let mut state = CUlinkState::NULL;
    cu!(cuLinkCreate(0, null_mut(), null_mut(), &mut state));
    let mut caller = format!("{HEADER}{CALLER}\0");
    cu!(cuLinkAddData(
        state,
        CU_JIT_INPUT_PTX,
        caller.as_mut_ptr().cast(),
        caller.len(),
        c"caller".as_ptr(),
        0,
        null_mut(),
        null_mut()
    ));
    let file = std::env::temp_dir().join(format!("conformance-{}.ptx", std::process::id()));
    std::fs::write(&file, format!("{HEADER}{CALLED}")).expect("a temporary file");
    let path = CString::new(file.to_str().expect("a plain path")).expect("no NUL inside");
    cu!(cuLinkAddFile(state, CU_JIT_INPUT_PTX, path.as_ptr(), 0, null_mut(), null_mut()));
    std::fs::remove_file(&file).expect("the file is there");
    let (image, _) = complete(state);
    let mut module = CUmodule::NULL;
    cu!(cuModuleLoadData(&mut module, image); cuLinkDestroy(state));
    assert_eq!(run(module), 42);
}

pub fn files_are_added() {
    new_context();
    let state = create();
    assert_eq!(add(state, CALLER), CUDA_SUCCESS);
    let file = std::env::temp_dir().join(format!("conformance-{}.ptx", std::process::id()));
    std::fs::write(&file, format!("{HEADER}{CALLED}")).expect("a temporary file");
    let path = CString::new(file.to_str().expect("a plain path")).expect("no NUL inside");
    cu!(cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, path.as_ptr(), 0, null_mut(), null_mut()));
    std::fs::remove_file(&file).expect("the file is there");
    let (image, _) = complete(state);
    let mut module = CUmodule::NULL;
    cu!(cuModuleLoadData(&mut module, image));
    assert_eq!(run(module), 42);
    let nowhere = c"/no/such/file".as_ptr();
    fails!(
        CUDA_ERROR_FILE_NOT_FOUND,
        cuLinkAddFile_v2(create(), CU_JIT_INPUT_PTX, nowhere, 0, null_mut(), null_mut())
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLinkAddFile_v2(create(), CU_JIT_INPUT_PTX, null(), 0, null_mut(), null_mut())
    );
}

/// A fat binary of one uncompressed text for sm_80.
fn fat_binary(text: &str) -> Vec<u8> {
    let mut payload = text.as_bytes().to_vec();
    payload.push(0);
    payload.resize(payload.len().next_multiple_of(8), 0);
    let mut entry = vec![0_u8; 64];
    entry[0..2].copy_from_slice(&1_u16.to_le_bytes());
    entry[2..4].copy_from_slice(&0x0101_u16.to_le_bytes());
    entry[4..8].copy_from_slice(&64_u32.to_le_bytes());
    entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    entry[26..28].copy_from_slice(&8_u16.to_le_bytes());
    entry[28..32].copy_from_slice(&80_u32.to_le_bytes());
    entry[40..48].copy_from_slice(&0x11_u64.to_le_bytes());
    let mut binary = 0xBA55_ED50_u32.to_le_bytes().to_vec();
    binary.extend(1_u16.to_le_bytes());
    binary.extend(16_u16.to_le_bytes());
    binary.extend(((entry.len() + payload.len()) as u64).to_le_bytes());
    binary.extend(entry);
    binary.extend(payload);
    binary
}

pub fn fat_binaries_are_loaded_and_linked() {
    if !ours_only(
        "a container with no more than our notes on the format tell ends in a crash of NVIDIA's driver",
    ) {
        return;
    }
    new_context();
    let mut module = CUmodule::NULL;
    let alone = fat_binary(&format!(
        "{HEADER}{CALLED}{}",
        CALLER.replace(".extern .func (.param .b32 result) elsewhere();", "")
    ));
    cu!(cuModuleLoadFatBinary(&mut module, alone.as_ptr().cast()));
    assert_eq!(run(module), 42);
    cu!(cuModuleLoadData(&mut module, alone.as_ptr().cast()));
    assert_eq!(run(module), 42);
    let state = create();
    assert_eq!(add(state, CALLER), CUDA_SUCCESS);
    let mut called = fat_binary(&format!("{HEADER}{CALLED}"));
    cu!(cuLinkAddData_v2(
        state,
        CU_JIT_INPUT_FATBINARY,
        called.as_mut_ptr().cast(),
        called.len(),
        c"called".as_ptr(),
        0,
        null_mut(),
        null_mut()
    ));
    let (image, _) = complete(state);
    cu!(cuModuleLoadData(&mut module, image));
    assert_eq!(run(module), 42);
}

/// A link's image stays as it is.
pub fn a_link_is_completed_once() {
    new_context();
    let state = create();
    assert_eq!(add(state, CALLER), CUDA_SUCCESS);
    assert_eq!(add(state, CALLED), CUDA_SUCCESS);
    let (image, mut size) = complete(state);
    let mut again = null_mut();
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete(state, &mut again, &mut size));
    assert_eq!(add(state, ".visible .entry other() { ret; }"), CUDA_ERROR_INVALID_VALUE);
    let mut module = CUmodule::NULL;
    cu!(cuModuleLoadData(&mut module, image); cuLinkDestroy(state));
    assert_eq!(run(module), 42);
}

/// Adds bytes as an input of a kind, with an option.
fn add_as(
    state: CUlinkState,
    kind: CUjitInputType,
    bytes: &[u8],
    option: Option<(CUjit_option, usize)>,
) -> CUresult {
    let mut bytes = bytes.to_vec();
    let (data, len) = (bytes.as_mut_ptr().cast(), bytes.len());
    let (mut name, mut value) = (option.unwrap_or((CU_JIT_LTO, 0)).0, null_mut());
    if let Some((_, number)) = option {
        value = std::ptr::without_provenance_mut(number);
    }
    let count = option.is_some().into();
    // SAFETY: as many bytes as said, and as many options.
    unsafe { cuLinkAddData_v2(state, kind, data, len, c"piece".as_ptr(), count, &mut name, &mut value) }
}

pub fn inputs_of_every_kind_are_what_they_are_called() {
    new_context();
    let ptx = format!("{HEADER}{CALLED}\0").into_bytes();
    let wrong = CUDA_ERROR_INVALID_IMAGE;
    let unreadable = differs("what cannot be read is no image", wrong, CUDA_ERROR_UNKNOWN);
    for (kind, code) in [
        (CU_JIT_INPUT_CUBIN, wrong),
        (CU_JIT_INPUT_PTX, CUDA_SUCCESS),
        (CU_JIT_INPUT_FATBINARY, CUDA_SUCCESS),
        (CU_JIT_INPUT_OBJECT, unreadable),
        (CU_JIT_INPUT_LIBRARY, unreadable),
        (CU_JIT_INPUT_NVVM, CUDA_ERROR_JIT_COMPILER_NOT_FOUND),
        (CU_JIT_NUM_INPUT_TYPES, CUDA_ERROR_INVALID_VALUE),
    ] {
        assert_eq!(add_as(create(), kind, &ptx, None), code, "PTX as {kind:?}");
    }
    for kind in [CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_PTX, CU_JIT_INPUT_FATBINARY] {
        assert_eq!(add_as(create(), kind, b"garbage\0", None), wrong, "garbage as {kind:?}");
    }
    // What was no code at all cannot be linked any more; wrong text is as if it had not been added.
    let (mut image, mut size) = (null_mut(), 0);
    let broken = create();
    assert_eq!(add_as(broken, CU_JIT_INPUT_CUBIN, b"garbage\0", None), wrong);
    fails!(wrong, cuLinkComplete(broken, &mut image, &mut size));
    let fine = create();
    assert_eq!(add_as(fine, CU_JIT_INPUT_PTX, b"garbage\0", None), wrong);
    cu!(cuLinkComplete(fine, &mut image, &mut size));
}

pub fn options_of_a_piece_are_the_compilers() {
    new_context();
    let ptx = format!("{HEADER}{CALLED}\0").into_bytes();
    for name in [
        CU_JIT_MAX_REGISTERS,
        CU_JIT_OPTIMIZATION_LEVEL,
        CU_JIT_GENERATE_DEBUG_INFO,
        CU_JIT_LOG_VERBOSE,
        CU_JIT_GENERATE_LINE_INFO,
        CU_JIT_CACHE_MODE,
        CU_JIT_NEW_SM3X_OPT,
        CU_JIT_FAST_COMPILE,
        CU_JIT_POSITION_INDEPENDENT_CODE,
        CU_JIT_SPLIT_COMPILE,
    ] {
        let code = add_as(create(), CU_JIT_INPUT_PTX, &ptx, Some((name, 1)));
        assert_eq!(code, CUDA_SUCCESS, "{name:?}");
    }
    for name in [
        CU_JIT_WALL_TIME,
        CU_JIT_TARGET_FROM_CUCONTEXT,
        CU_JIT_TARGET,
        CU_JIT_FALLBACK_STRATEGY,
        CU_JIT_LTO,
        CU_JIT_FTZ,
        CU_JIT_REFERENCED_KERNEL_COUNT,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ] {
        let code = add_as(create(), CU_JIT_INPUT_PTX, &ptx, Some((name, 90)));
        assert_eq!(code, CUDA_ERROR_INVALID_VALUE, "{name:?}");
    }
    let compiled = add_as(create(), CU_JIT_INPUT_CUBIN, b"garbage\0", Some((CU_JIT_MAX_REGISTERS, 32)));
    assert_eq!(compiled, CUDA_ERROR_INVALID_VALUE, "machine code is compiled already");
    let broken = add_as(create(), CU_JIT_INPUT_PTX, &ptx, Some((CU_JIT_OPTIMIZATION_LEVEL, 1 << 31)));
    assert_eq!(broken, CUDA_ERROR_INVALID_PTX);
}

fn create_with(option: CUjit_option, value: usize) -> (CUresult, CUlinkState) {
    let (mut name, mut value) = (option, std::ptr::without_provenance_mut(value));
    let mut state = CUlinkState::NULL;
    // SAFETY: one option and its value, which the linker does not write to.
    (unsafe { cuLinkCreate_v2(1, &mut name, &mut value, &mut state) }, state)
}

pub fn options_of_a_link() {
    new_context();
    for strategy in [CU_PREFER_PTX, CU_PREFER_BINARY] {
        let (code, _) = create_with(CU_JIT_FALLBACK_STRATEGY, strategy.0 as usize);
        assert_eq!(code, CUDA_ERROR_INVALID_VALUE, "the linker takes exact matches");
    }
    for (option, value) in
        [(CU_JIT_CACHE_MODE, 3), (CU_JIT_MAX_REGISTERS, 0), (CU_JIT_TARGET, 91), (CU_JIT_NUM_OPTIONS, 0)]
    {
        assert_eq!(create_with(option, value).0, CUDA_ERROR_INVALID_VALUE, "{option:?}");
    }
    // For another device a link is made, and loaded nowhere here.
    let (code, state) = create_with(CU_JIT_TARGET, 80);
    assert_eq!(code, CUDA_SUCCESS);
    assert_eq!(add(state, CALLER), CUDA_SUCCESS);
    assert_eq!(add(state, CALLED), CUDA_SUCCESS);
    let (image, _) = complete(state);
    let mut module = CUmodule::NULL;
    fails!(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&mut module, image));
    let (code, state) = create_with(CU_JIT_TARGET, 75);
    assert_eq!(code, CUDA_SUCCESS);
    assert_eq!(add(state, CALLED), CUDA_ERROR_INVALID_PTX, "written for sm_80");
    let (code, state) = create_with(CU_JIT_TARGET, 1);
    assert_eq!(code, CUDA_SUCCESS);
    assert_eq!(add(state, CALLED), CUDA_ERROR_INVALID_IMAGE, "there is no such device");
}

pub fn a_link_of_nothing_is_an_image_of_nothing() {
    new_context();
    let state = create();
    let (image, _) = complete(state);
    let (mut module, mut count) = (CUmodule::NULL, 7);
    cu!(cuModuleLoadData(&mut module, image); cuModuleGetFunctionCount(&mut count, module));
    assert_eq!(count, 0);
    cu!(cuLinkDestroy(state));
}

pub fn bad_pieces_are_refused() {
    new_context();
    let state = create();
    let mut nothing = *b"no PTX\0";
    let data = nothing.as_mut_ptr().cast();
    fails!(
        CUDA_ERROR_INVALID_IMAGE,
        cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, data, 7, c"piece".as_ptr(), 0, null_mut(), null_mut())
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLinkAddData_v2(
            state,
            CU_JIT_INPUT_PTX,
            null_mut(),
            7,
            c"piece".as_ptr(),
            0,
            null_mut(),
            null_mut()
        )
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLinkAddData_v2(state, CUjitInputType(99), data, 7, c"piece".as_ptr(), 0, null_mut(), null_mut())
    );
    assert_eq!(add(state, ".visible .entry k() { nonsense; }"), CUDA_ERROR_INVALID_PTX);
    if ours_only("NVIDIA's driver follows the handle") {
        fails!(
            CUDA_ERROR_INVALID_HANDLE,
            cuLinkAddData_v2(CUlinkState::NULL, CU_JIT_INPUT_PTX, data, 7, null(), 0, null_mut(), null_mut())
        );
        fails!(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(CUlinkState::NULL));
        let (mut image, mut size) = (null_mut(), 0);
        fails!(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete(CUlinkState::NULL, &mut image, &mut size));
        cu!(cuLinkDestroy(state));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(state));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuLinkCreate_v2(0, null_mut(), null_mut(), null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(create(), null_mut(), null_mut()));
}

pub fn what_stays_unresolved_or_is_there_twice_is_refused() {
    new_context();
    let (mut image, mut size) = (null_mut(), 0);
    let state = create();
    assert_eq!(add(state, CALLER), CUDA_SUCCESS);
    // SAFETY: places for the answers.
    let code = unsafe { cuLinkComplete(state, &mut image, &mut size) };
    assert_eq!(code, CUDA_ERROR_INVALID_SOURCE);
    let state = create();
    assert_eq!(add(state, CALLED), CUDA_SUCCESS);
    // Once a piece does not go with those before, none does.
    assert_eq!(add(state, CALLED), CUDA_ERROR_INVALID_SOURCE);
    assert_eq!(add(state, CALLER), CUDA_ERROR_INVALID_SOURCE);
    fails!(CUDA_ERROR_INVALID_SOURCE, cuLinkComplete(state, &mut image, &mut size));
}

pub fn logs_of_a_link_name_what_is_missing() {
    new_context();
    let (mut info, mut error) = ([0_u8; 4096], [0_u8; 4096]);
    let mut names = [
        CU_JIT_INFO_LOG_BUFFER,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_ERROR_LOG_BUFFER,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_LOG_VERBOSE,
        CU_JIT_WALL_TIME,
    ];
    let number = std::ptr::without_provenance_mut::<c_void>;
    let mut values = [
        info.as_mut_ptr().cast(),
        number(4096),
        error.as_mut_ptr().cast(),
        number(4096),
        number(1),
        number(0),
    ];
    let (mut state, mut image, mut size) = (CUlinkState::NULL, null_mut(), 0);
    cu!(cuLinkCreate_v2(6, names.as_mut_ptr(), values.as_mut_ptr(), &mut state));
    assert_eq!(add(state, CALLER), CUDA_SUCCESS);
    fails!(CUDA_ERROR_INVALID_SOURCE, cuLinkComplete(state, &mut image, &mut size));
    let text = CStr::from_bytes_until_nul(&error).expect("the log ends in NUL");
    assert!(text.to_string_lossy().contains("elsewhere"), "{text:?}");
    assert_eq!(values[3] as usize, text.count_bytes());
}
