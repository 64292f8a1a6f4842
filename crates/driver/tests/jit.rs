//! Images that do not load, logs, linking.

mod common;
use common::*;

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// The code of a load and its error log.
fn try_load(image: &str) -> (CUresult, String) {
    let image = CString::new(image).unwrap();
    let mut log = [0u8; 2048];
    let mut names = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut::<c_void>(log.len())];
    let mut module = CUmodule::NULL;
    // SAFETY: an image that ends in NUL, and options with their values.
    let code = unsafe {
        cuModuleLoadDataEx(out(&mut module), image.as_ptr().cast(), 2, array(&mut names), array(&mut values))
    };
    let used = values[1] as usize;
    let text = std::ffi::CStr::from_bytes_until_nul(&log).unwrap().to_str().unwrap().to_owned();
    assert!(text.len() <= used && used <= log.len(), "{used} bytes used for {text:?}");
    if code == CUDA_SUCCESS {
        cu!(cuModuleUnload(module));
    }
    (code, text)
}

#[test]
fn what_is_no_ptx_is_told_from_wrong_ptx() {
    let context = new_context();
    for nothing in ["", "hello", "// a comment\n", "\x7fELF no"] {
        assert_eq!(try_load(nothing).0, CUDA_ERROR_INVALID_IMAGE, "{nothing:?}");
    }
    let with = |body: &str| format!("{HEADER}.visible .entry k()\n{{\n{body}\n    ret;\n}}\n");
    assert_eq!(try_load(&with("")).0, CUDA_SUCCESS);
    for (body, line) in [
        ("    .reg .b32 %r<2>;\n    frobnicate.u32 %r1, %r1;", "7"),
        ("    .reg .b32 %r<2>;\n    add.u32 %r1, %r1, %nowhere;", "7"),
        ("    bra nowhere;", "6"),
        ("    .reg .b32 %r<2>;\n    mov.u32 %r1, 1", "8"),
    ] {
        let (code, log) = try_load(&with(body));
        assert_eq!(code, CUDA_ERROR_INVALID_PTX, "{body}");
        assert!(log.contains(line), "{body}: {log}");
    }
    let (code, log) = try_load(".version 99.0\n.target sm_90\n.address_size 64\n");
    assert_eq!(code, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "{log}");
    assert_eq!(try_load(".version 8.0\n.target sm_999\n.address_size 64\n").0, CUDA_ERROR_INVALID_PTX);
    let (code, log) = try_load(&with("    .shared .align 4 .b8 most[232448];"));
    assert_eq!(code, CUDA_SUCCESS, "{log}");
    let (code, log) = try_load(&with("    .shared .align 4 .b8 more[232452];"));
    assert_eq!(code, CUDA_ERROR_INVALID_PTX);
    assert!(log.contains("232452 bytes of shared variables"), "{log}");
    cu!(cuCtxDestroy_v2(context));
}

/// What a program may be given by others: it is refused with the line and the reason, however large it is.
#[test]
fn hostile_texts_are_refused_with_line_and_reason() {
    let context = new_context();
    let body = |text: &str| format!("{HEADER}.visible .entry k()\n{{\n{text}\nret;\n}}\n");
    let module = |text: &str| format!("{HEADER}{text}\n");
    let mega = |text: &str| text.repeat(1 << 20);
    let wrong = [
        (body(".reg .b32 %r<99999999999>;"), "line 6", "too many"),
        (body(".reg .v3 .b32 %r;"), "line 6", ".v3"),
        (body(".reg .v4 .b64 %r;"), "line 6", "128 bits"),
        (
            body(".reg .b32 %r<9>;\n.reg .b64 %a;\nld.global.v5.b32 {%r0, %r1, %r2, %r3, %r4}, [%a];"),
            "line 8",
            "v5",
        ),
        (
            body(&format!(".reg .b32 %r;\n.reg .b64 %a;\nst.global.v4.b32 [%a], {{{}%r}};", mega("%r, "))),
            "line 8",
            "4 elements",
        ),
        (body(".reg .b32 %r;\nmov.u32 %r, 99999999999999999999999;"), "line 7", "64 bits"),
        (body(&format!(".reg .b32 %r;\nmov.u32 %r, {};", mega("9"))), "line 7", "64 bits"),
        (body(&mega("{")), "line 6", "nested"),
        (body(&format!(".reg .b32 %r;\nmov.u32 %r, {}1", mega("("))), "line 7", "nested"),
        (body(&format!(".reg .b32 %r;\nmov.u32 %r, {}1;", mega("1 ? 2 : "))), "line 7", "nested"),
        (body(&format!(".reg .b32 %r;\nmov.u32 %r, {}", mega("{"))), "line 7", "nested"),
        (body(&format!("add{} %r;", mega(".u32"))), "line 6", "%r"),
        (body(&mega("frobnicate; ")), "line 6", "frobnicate"),
        (module(".global .b8 a[99999999999999999999];"), "line 4", "64 bits"),
        (module(".global .b64 a[4294967296][4294967296];"), "line 4", "too large"),
        (module(".global .b8 a[0];"), "line 4", "size"),
        (module(".global .b8 a[4][0];"), "line 4", "dimension"),
        (module(".global .align 3 .b8 a[4];"), "line 4", "power of two"),
        (module(&format!(".global .b32 a[1] = {}", mega("{"))), "line 4", "nested"),
        (module(".entry k(.param .b8 a[4294967296]) { ret; }"), "line 4", "4352 bytes"),
        (module(".entry k() .reqntid 99999999999 { ret; }"), "line 4", "out of range"),
        (module(&format!("//{}\nfoo", mega("x"))), "line 5", "foo"),
        (module(&format!("/*{}", mega("x"))), "line 4", "does not end"),
        (module(&format!(".file 1 \"{}", mega("x"))), "line 4", "does not end"),
        (".version 8.0\n.target debug\n".to_owned(), "line 2", "debug"),
        (".version 8.0\n.target sm_80, debug\n".to_owned(), "line 2", "debug"),
        (".version 8.0\n.target sm_80, fast\n".to_owned(), "line 2", "fast"),
        (".version 8.9\n.target sm_80\n".to_owned(), "line 1", "8.9"),
        (".version 99999999999999999.1\n.target sm_80\n".to_owned(), "line 1", "version"),
        (".version 8.0\n.target sm_99999999999999999999\n".to_owned(), "line 2", "sm_9"),
    ];
    for (text, line, reason) in &wrong {
        let start = &text[..text.len().min(200)];
        let (code, log) = try_load(text);
        assert_eq!(code, CUDA_ERROR_INVALID_PTX, "{start}: {log}");
        let first = log.lines().next().unwrap_or_default();
        assert!(first.contains(line) && first.contains(reason), "{start}: {log}");
    }
    for newer in ["10.0", "10.9"] {
        let (code, log) = try_load(&format!(".version {newer}\n.target sm_80\n.address_size 64\n"));
        assert_eq!(code, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "{newer}: {log}");
        assert!(log.contains("line 1") && log.contains(newer), "{log}");
    }
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn an_error_tells_its_line_of_the_program() {
    let context = new_context();
    let body = "    .reg .b32 %r<2>;\n    .loc 1 12 5\n    add.u32 %r1, %r1, %nowhere;";
    let file = ".file 1 \"saxpy.cu\"\n";
    let (code, log) = try_load(&format!("{HEADER}.entry k()\n{{\n{body}\n    ret;\n}}\n{file}"));
    assert_eq!(code, CUDA_ERROR_INVALID_PTX);
    assert!(log.contains("line 8") && log.contains("saxpy.cu:12"), "{log}");
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn files_and_null_images() {
    let context = new_context();
    let mut module = CUmodule::NULL;
    fails!(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(out(&mut module), text(c"/nowhere/at/all.ptx")));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(out(&mut module), null()));
    let path = std::env::temp_dir().join(format!("anywarp-driver-{}.ptx", std::process::id()));
    std::fs::write(&path, KERNELS).unwrap();
    cu!(cuModuleLoad(out(&mut module), any_text(path.to_str().unwrap())));
    std::fs::remove_file(&path).unwrap();
    function(module, "vecadd");
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn pieces_are_linked() {
    let context = new_context();
    let caller = format!(
        "{HEADER}.extern .func (.param .b32 r) triple(.param .b32 x);\n\
         .visible .entry k(.param .u64 out)\n{{\n    .reg .b32 %r<2>;\n    .reg .b64 %rd<2>;\n    ld.param.u64 %rd1, [out];\n\
         {{\n    .param .b32 p;\n    .param .b32 q;\n    st.param.b32 [p], 14;\n    call.uni (q), triple, (p);\n\
         ld.param.b32 %r1, [q];\n}}\n    st.global.u32 [%rd1], %r1;\n    ret;\n}}\n"
    );
    let callee = format!(
        "{HEADER}.visible .func (.param .b32 r) triple(.param .b32 x)\n{{\n    .reg .b32 %r<3>;\n    ld.param.b32 %r1, [x];\n    \
         mul.lo.s32 %r2, %r1, 3;\n    st.param.b32 [r], %r2;\n    ret;\n}}\n"
    );
    let mut link = CUlinkState::NULL;
    cu!(cuLinkCreate_v2(0, no_array(), no_array(), out(&mut link)));
    for piece in [&caller, &callee] {
        let image = CString::new(piece.as_str()).unwrap();
        let bytes = image.as_bytes_with_nul().len();
        let (data, name) = (image.as_ptr().cast_mut().cast(), text(c"piece"));
        cu!(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, data, bytes, name, 0, no_array(), no_array()));
    }
    let (mut image, mut size, mut module) = (null_mut(), 0, CUmodule::NULL);
    cu!(
        cuLinkComplete(link, out(&mut image), out(&mut size));
        cuModuleLoadData(out(&mut module), image);
        cuLinkDestroy(link);
    );
    assert!(size > 0);
    fails!(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(link));
    let place = alloc(4);
    assert_eq!(launch(function(module, "k"), 1, 1, CUstream::NULL, &mut [arg(&place)]), CUDA_SUCCESS);
    assert_eq!(read::<u32>(place, 1), [42]);
    cu!(cuCtxDestroy_v2(context));
}
