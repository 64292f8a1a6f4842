//! Just-in-time compilation: what is wrong with PTX, logs, and options.

use super::common::*;

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel with this body, whose first line is line 5.
fn kernel_with(body: &str) -> String {
    format!("{HEADER}.visible .entry k() {{\n{body}\n    ret;\n}}\n")
}

/// A load's code, its error log, and the bytes that it says are used.
struct Answer {
    code: CUresult,
    log: String,
    used: usize,
}

fn number(value: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(value)
}

fn try_load(image: &[u8], room: usize) -> Answer {
    let mut image = image.to_vec();
    image.push(0);
    let mut log = vec![0x55_u8; 8192];
    log[0] = 0;
    let mut names = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast(), number(room)];
    let mut module = CUmodule::NULL;
    // SAFETY: an image that ends in NUL, and options with their values.
    let code = unsafe {
        cuModuleLoadDataEx(&mut module, image.as_ptr().cast(), 2, names.as_mut_ptr(), values.as_mut_ptr())
    };
    assert!(log[room..].iter().all(|byte| *byte == 0x55), "written past {room} bytes");
    let text = CStr::from_bytes_until_nul(&log).expect("the log ends in NUL").to_string_lossy().into_owned();
    // Without options the answer is the same.
    let mut without = CUmodule::NULL;
    fails!(code, cuModuleLoadData(&mut without, image.as_ptr().cast()));
    if code == CUDA_SUCCESS {
        cu!(cuModuleUnload(module); cuModuleUnload(without));
    }
    Answer { code, log: text, used: values[1] as usize }
}

/// An image is refused with this code, and the log has these words.
fn is_refused(image: impl AsRef<[u8]>, code: CUresult, words: &[&str]) {
    let answer = try_load(image.as_ref(), 4096);
    let said = String::from_utf8_lossy(image.as_ref()).into_owned();
    assert_eq!(answer.code, code, "{said}: {}", answer.log);
    assert_eq!(answer.used, answer.log.len(), "{said}: bytes used of {:?}", answer.log);
    for word in words {
        assert!(answer.log.contains(word), "{said}: no {word:?} in {:?}", answer.log);
    }
}

fn is_taken(image: &str) {
    let answer = try_load(image.as_bytes(), 4096);
    assert_eq!(answer.code, CUDA_SUCCESS, "{image}: {}", answer.log);
    assert_eq!((answer.used, &*answer.log), (0, ""), "{image}");
}

pub fn what_is_no_ptx_is_no_image() {
    new_context();
    for text in ["", "this is no PTX", ".target sm_80\n.address_size 64\n", "// only a comment\n"] {
        is_refused(text, CUDA_ERROR_INVALID_IMAGE, &[]);
    }
    is_refused(b"\x7fELF no", CUDA_ERROR_INVALID_IMAGE, &[]);
}

pub fn versions_and_targets() {
    new_context();
    let header =
        |version: &str, target: &str| format!(".version {version}\n.target {target}\n.address_size 64\n");
    is_refused(header("99.0", "sm_80"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION, &["99.0"]);
    is_refused(header("8.0", "sm_999"), CUDA_ERROR_INVALID_PTX, &["sm_999", "line 2"]);
    is_refused(header("8.7", "sm_100"), CUDA_ERROR_INVALID_PTX, &[]);
    is_refused(".version 8.0\n.target sm_80\n.address_size 32\n", CUDA_ERROR_INVALID_PTX, &["32"]);
    is_taken(&header("8.0", "sm_90a"));
    is_taken(&header("6.0", "sm_30"));
    is_taken(&header("7.0", "sm_70"));
    is_taken(&header("9.0", "sm_90"));
    is_taken(&kernel_with("").replace(".address_size 64\n", ""));
}

pub fn good_ptx_has_an_empty_error_log() {
    new_context();
    is_taken(&kernel_with(""));
    is_taken(HEADER);
    is_taken(
        &kernel_with("    .reg .b32 %r<2>;\n    mov.u32 %r1, some;")
            .replace(".visible", ".extern .shared .b8 some[];\n.visible"),
    );
}

pub fn mistakes_are_told_with_their_lines() {
    new_context();
    const WRONG: CUresult = CUDA_ERROR_INVALID_PTX;
    for (body, words) in [
        ("    foo.u32 %r1, %r2;", ["line 5", "foo"]),
        ("    .reg .b32 %r<2>;\n    add.u32 %r1, %r1, %r9;", ["line 6", "%r9"]),
        ("    .reg .b32 %r<2>; .reg .f32 %f<2>;\n    add.u32 %r1, %r1, %f1;", ["line 6", "add"]),
        ("    .reg .b32 %r<2>;\n    mov.u32 %r1, 1", ["line 7", ""]),
        ("    bra NOWHERE;", ["line 5", "NOWHERE"]),
        ("    .reg .b64 %rd<2>;\n    mov.u64 %rd1, nosuch;", ["line 6", "nosuch"]),
        ("    .reg .b32 %r<3>;\n    add.sat.u32 %r1, %r1, %r2;", ["line 6", ".u32"]),
        ("    .reg .f32 %f<3>;\n    redux.sync.add.f32 %f1, %f2, 0xffffffff;", ["line 6", "redux"]),
        ("A:\nA:", ["line 6", "A"]),
        ("    .reg .b32 %a;\n    .reg .b32 %a;", ["line 6", "%a"]),
    ] {
        is_refused(kernel_with(body), WRONG, &words);
    }
    let twice = format!("{}.visible .entry k() {{ ret; }}\n", kernel_with(""));
    is_refused(twice, WRONG, &["k"]);
    is_refused(format!("{HEADER}/* never closed"), WRONG, &["line 4"]);
    is_refused([HEADER.as_bytes(), b"\xe4\n"].concat(), WRONG, &["line 4"]);
}

pub fn several_mistakes_are_told_at_once() {
    new_context();
    let image = kernel_with("    foo.u32 %r1;\n    bar2.u32 %r1;");
    is_refused(image, CUDA_ERROR_INVALID_PTX, &["line 5", "foo", "line 6", "bar2"]);
}

pub fn a_function_that_is_nowhere_is_refused_where_it_is_called() {
    new_context();
    let declared = |body| kernel_with(body).replace(".visible", ".extern .func ext();\n.visible");
    is_refused(declared("    call ext;"), CUDA_ERROR_INVALID_PTX, &["ext"]);
    is_taken(&declared(""));
}

/// Shared variables of a kernel, or of the module, up to what a block can have at all.
pub fn shared_variables_have_a_limit() {
    new_context();
    for (bytes, fits) in [(48 << 10, true), (227 << 10, true), ((227 << 10) + 16, false), (300_000, false)] {
        let variable = format!("    .shared .align 16 .b8 many[{bytes}];");
        let use_it = "    .reg .b32 %r<2>;\n    mov.u32 %r1, many;\n    st.shared.u32 [%r1], 1;";
        let inside = kernel_with(&format!("{variable}\n{use_it}"));
        let outside = kernel_with(use_it).replace(".visible", &format!("{variable}\n.visible"));
        for image in [inside, outside] {
            match fits {
                true => is_taken(&image),
                false => is_refused(image, CUDA_ERROR_INVALID_PTX, &["shared"]),
            }
        }
    }
}

pub fn a_log_is_cut_to_its_buffer() {
    new_context();
    let image = kernel_with("    foo.u32 %r1;");
    let whole = try_load(image.as_bytes(), 4096);
    let cut = try_load(image.as_bytes(), 16);
    assert_eq!(cut.code, CUDA_ERROR_INVALID_PTX);
    assert!(cut.log.len() < 16, "{:?}", cut.log);
    assert!(whole.log.starts_with(&cut.log), "{:?} of {:?}", cut.log, whole.log);
    assert_eq!((cut.used, cut.log.len()), (16, 15), "all of it, with the NUL");
}

/// Options and their values, as the loading functions take them.
struct Options {
    names: Vec<CUjit_option>,
    values: Vec<*mut c_void>,
}

impl Options {
    fn of(options: &[(CUjit_option, usize)]) -> Options {
        let (names, values) = options.iter().map(|(name, value)| (*name, number(*value))).unzip();
        Options { names, values }
    }

    fn load(&mut self) -> (CUresult, CUmodule) {
        let mut module = CUmodule::NULL;
        let (names, values) = (self.names.as_mut_ptr(), self.values.as_mut_ptr());
        let image = CString::new(KERNELS).expect("no NUL inside");
        // SAFETY: an image that ends in NUL, and as many names as values.
        let code = unsafe {
            cuModuleLoadDataEx(&mut module, image.as_ptr().cast(), self.names.len() as u32, names, values)
        };
        (code, module)
    }
}

fn adds_up(module: CUmodule) {
    let (a, b) = (alloc_with(&[1.0_f32, 2.0]), alloc_with(&[3.0_f32, 4.0]));
    let (sum, count) = (alloc(8), 2_u32);
    let vecadd = function(module, c"vecadd");
    let mut arguments = [arg(&a), arg(&b), arg(&sum), arg(&count)];
    assert_eq!(launch(vecadd, 1, 32, CUstream::NULL, &mut arguments), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    assert_eq!(read::<f32>(sum, 2), [4.0, 6.0]);
}

pub fn options_that_tune_leave_results_alone() {
    new_context();
    for (name, value) in [
        (CU_JIT_MAX_REGISTERS, 32),
        (CU_JIT_THREADS_PER_BLOCK, 128),
        (CU_JIT_OPTIMIZATION_LEVEL, 0),
        (CU_JIT_OPTIMIZATION_LEVEL, 4),
        (CU_JIT_TARGET_FROM_CUCONTEXT, 0),
        (CU_JIT_TARGET, 90),
        // CU_TARGET_COMPUTE_90A
        (CU_JIT_TARGET, 0x1_0000 + 90),
        (CU_JIT_FALLBACK_STRATEGY, CU_PREFER_PTX.0 as usize),
        (CU_JIT_FALLBACK_STRATEGY, CU_PREFER_BINARY.0 as usize),
        (CU_JIT_GENERATE_DEBUG_INFO, 1),
        (CU_JIT_LOG_VERBOSE, 1),
        (CU_JIT_GENERATE_LINE_INFO, 1),
        (CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_NONE.0 as usize),
        (CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_CG.0 as usize),
        (CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_CA.0 as usize),
        (CU_JIT_POSITION_INDEPENDENT_CODE, 1),
    ] {
        let (code, module) = Options::of(&[(name, value)]).load();
        assert_eq!(code, CUDA_SUCCESS, "{name:?} {value}");
        adds_up(module);
    }
}

/// What an option does to kernels is in `jit_tuning.rs`; these are of no consequence for results, whatever they say.
pub fn options_without_effect_take_any_value() {
    new_context();
    for name in [
        CU_JIT_FALLBACK_STRATEGY,
        CU_JIT_GENERATE_LINE_INFO,
        CU_JIT_GENERATE_DEBUG_INFO,
        CU_JIT_FAST_COMPILE,
        CU_JIT_LTO,
        CU_JIT_FTZ,
        CU_JIT_PREC_DIV,
        CU_JIT_PREC_SQRT,
        CU_JIT_FMA,
        CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES,
        CU_JIT_POSITION_INDEPENDENT_CODE,
        CU_JIT_SPLIT_COMPILE,
        CU_JIT_TARGET_FROM_CUCONTEXT,
        CU_JIT_OVERRIDE_DIRECTIVE_VALUES,
    ] {
        for value in [0, 1, 2] {
            let (code, module) = Options::of(&[(name, value)]).load();
            assert_eq!(code, CUDA_SUCCESS, "{name:?} {value}");
            adds_up(module);
        }
    }
    for name in [CU_JIT_REFERENCED_KERNEL_COUNT, CU_JIT_REFERENCED_VARIABLE_COUNT] {
        assert_eq!(Options::of(&[(name, 0)]).load().0, CUDA_SUCCESS, "{name:?}");
    }
}

pub fn values_that_cannot_be_are_refused() {
    new_context();
    for (name, value) in [
        (CU_JIT_MAX_REGISTERS, 0),
        (CU_JIT_CACHE_MODE, 3),
        (CU_JIT_CACHE_MODE, 99),
        (CU_JIT_REFERENCED_KERNEL_NAMES, 0),
        (CU_JIT_REFERENCED_VARIABLE_NAMES, 0),
        (CU_JIT_INFO_LOG_BUFFER, 0),
        (CU_JIT_ERROR_LOG_BUFFER, 0),
        (CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 0),
        (CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 0),
        (CU_JIT_NUM_OPTIONS, 0),
        (CUjit_option(u32::MAX), 0),
    ] {
        assert_eq!(Options::of(&[(name, value)]).load().0, CUDA_ERROR_INVALID_VALUE, "{name:?} {value}");
    }
    let mut log = [0_u8; 16];
    let only_a_buffer = [(CU_JIT_ERROR_LOG_BUFFER, log.as_mut_ptr() as usize)];
    assert_eq!(Options::of(&only_a_buffer).load().0, CUDA_ERROR_INVALID_VALUE);
    let no_buffer = [(CU_JIT_ERROR_LOG_BUFFER, 0), (CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 0)];
    assert_eq!(Options::of(&no_buffer).load().0, CUDA_ERROR_INVALID_VALUE);
    if ours_only("NVIDIA's driver divides by it") {
        assert_eq!(Options::of(&[(CU_JIT_THREADS_PER_BLOCK, 0)]).load().0, CUDA_ERROR_INVALID_VALUE);
    }
}

/// What the assembler is asked for and cannot do makes the PTX wrong.
pub fn the_assembler_refuses_too() {
    new_context();
    let level = |level| (CU_JIT_OPTIMIZATION_LEVEL, level);
    for options in [
        vec![level(1 << 31)],
        vec![(CU_JIT_MIN_CTA_PER_SM, 1 << 31)],
        vec![(CU_JIT_GENERATE_DEBUG_INFO, 1), level(1)],
        vec![(CU_JIT_NEW_SM3X_OPT, 0)],
    ] {
        assert_eq!(Options::of(&options).load().0, CUDA_ERROR_INVALID_PTX, "{options:?}");
    }
    for options in [
        vec![level(5)],
        vec![level((1 << 31) - 1)],
        vec![(CU_JIT_GENERATE_DEBUG_INFO, 1), level(0)],
        vec![(CU_JIT_GENERATE_DEBUG_INFO, 0), level(4)],
    ] {
        let (code, module) = Options::of(&options).load();
        assert_eq!(code, CUDA_SUCCESS, "{options:?}");
        adds_up(module);
    }
    // A library says so when it is asked for something.
    let (mut library, mut kernel) = (CUlibrary::NULL, CUkernel::NULL);
    let mut options = Options::of(&[level(1 << 31)]);
    let image = CString::new(KERNELS).expect("no NUL inside");
    let (names, values) = (options.names.as_mut_ptr(), options.values.as_mut_ptr());
    cu!(cuLibraryLoadData(&mut library, image.as_ptr().cast(), names, values, 1, null_mut(), null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_PTX, cuLibraryGetKernel(&mut kernel, library, c"vecadd".as_ptr()));
}

pub fn limits_on_registers_are_kept_to() {
    new_context();
    for limit in [16, 32, 64] {
        let (code, module) = Options::of(&[(CU_JIT_MAX_REGISTERS, limit)]).load();
        assert_eq!(code, CUDA_SUCCESS);
        let mut registers = 0;
        cu!(cuFuncGetAttribute(&mut registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function(module, c"vecadd")));
        assert!(registers >= 1 && registers <= limit.max(24) as i32, "{registers} of {limit}");
    }
}

pub fn the_time_is_told_as_a_float() {
    new_context();
    let mut options = Options::of(&[(CU_JIT_WALL_TIME, usize::MAX >> 1)]);
    let (code, module) = options.load();
    assert_eq!(code, CUDA_SUCCESS);
    let milliseconds = f32::from_bits(options.values[0] as usize as u32);
    assert!((0.0..60_000.0).contains(&milliseconds), "{milliseconds}");
    adds_up(module);
}

pub fn the_info_log_tells_of_a_load() {
    new_context();
    let (mut info, mut error) = ([0_u8; 4096], [1_u8; 64]);
    let mut options = Options::of(&[
        (CU_JIT_INFO_LOG_BUFFER, info.as_mut_ptr() as usize),
        (CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4096),
        (CU_JIT_ERROR_LOG_BUFFER, error.as_mut_ptr() as usize),
        (CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 64),
        (CU_JIT_LOG_VERBOSE, 1),
        // Not from a cache, which has nothing to tell.
        (CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_NONE.0 as usize),
    ]);
    let (code, _) = options.load();
    assert_eq!(code, CUDA_SUCCESS);
    let text = CStr::from_bytes_until_nul(&info).expect("the log ends in NUL");
    assert_eq!(options.values[1] as usize, text.count_bytes());
    assert_eq!(options.values[3] as usize, 0);
    assert_eq!(error[0], 0, "an empty log is an empty text");
}

pub fn a_log_size_needs_a_log() {
    new_context();
    for size in [CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES] {
        assert_eq!(Options::of(&[(size, 100)]).load().0, CUDA_ERROR_INVALID_VALUE, "{size:?}");
    }
}

pub fn unknown_options_are_refused() {
    new_context();
    assert_eq!(Options::of(&[(CUjit_option(999), 0)]).load().0, CUDA_ERROR_INVALID_VALUE);
    let mut module = CUmodule::NULL;
    let image = CString::new(KERNELS).expect("no NUL inside");
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuModuleLoadDataEx(&mut module, image.as_ptr().cast(), 1, null_mut(), null_mut())
    );
}

pub fn a_target_that_cannot_be_is_refused() {
    new_context();
    let target = |number| Options::of(&[(CU_JIT_TARGET, number)]).load().0;
    for forgotten in [7, 30, 37, 53, 62] {
        assert_eq!(target(forgotten), CUDA_ERROR_INVALID_IMAGE, "{forgotten}");
    }
    for unknown in [10, 20, 51, 82, 91, 130, 999, 0x1_0000 + 80, 0x2_0000 + 90, 0x3_0000 + 90] {
        assert_eq!(target(unknown), CUDA_ERROR_INVALID_VALUE, "{unknown}");
    }
    // What may be used follows the target, and only the device's own code is loaded.
    for older in [52, 60, 75] {
        assert_eq!(target(older), CUDA_ERROR_INVALID_PTX, "{older}");
    }
    for other in [80, 89, 100, 121, 0x1_0000 + 100, 0x2_0000 + 120] {
        assert_eq!(target(other), CUDA_ERROR_INVALID_SOURCE, "{other}");
    }
    let together = Options::of(&[(CU_JIT_TARGET, 90), (CU_JIT_THREADS_PER_BLOCK, 256)]).load().0;
    assert_eq!(together, CUDA_ERROR_INVALID_VALUE);
}

/// A library for another device is told of, and runs nowhere.
pub fn a_library_for_another_device_runs_nowhere() {
    new_context();
    let (mut library, mut kernel) = (CUlibrary::NULL, CUkernel::NULL);
    let (mut module, mut function) = (CUmodule::NULL, CUfunction::NULL);
    let mut options = Options::of(&[(CU_JIT_TARGET, 80)]);
    let image = CString::new(KERNELS).expect("no NUL inside");
    let (names, values) = (options.names.as_mut_ptr(), options.values.as_mut_ptr());
    cu!(
        cuLibraryLoadData(&mut library, image.as_ptr().cast(), names, values, 1, null_mut(), null_mut(), 0);
        cuLibraryGetKernel(&mut kernel, library, c"vecadd".as_ptr());
    );
    fails!(CUDA_ERROR_INVALID_SOURCE, cuLibraryGetModule(&mut module, library));
    fails!(CUDA_ERROR_INVALID_SOURCE, cuKernelGetFunction(&mut function, kernel));
    let code = launch(CUfunction(kernel.0), 1, 1, CUstream::NULL, &mut []);
    assert_eq!(code, CUDA_ERROR_INVALID_SOURCE);
}

/// Of a whole program nobody else defines a variable: it is the program's own, of zeros.
pub fn variables_that_nobody_defines_are_zero() {
    new_context();
    for space in ["global", "const"] {
        let image = format!(
            "{HEADER}.extern .{space} .u32 v;
            .visible .entry k(.param .u64 out) {{
                .reg .b32 %r<2>; .reg .b64 %rd<3>;
                ld.param.u64 %rd1, [out];
                ld.{space}.u32 %r1, [v];
                add.u32 %r1, %r1, 5;
                st.global.u32 [%rd1], %r1;
                ret;
            }}"
        );
        is_taken(&image);
        let (module, out) = (load(&image), alloc_with(&[9_u32]));
        let (mut address, mut size) = (CUdeviceptr(0), 0);
        cu!(cuModuleGetGlobal_v2(&mut address, &mut size, module, c"v".as_ptr()));
        assert_eq!((size, read::<u32>(address, 1)[0]), (4, 0));
        let code = launch(function(module, c"k"), 1, 1, CUstream::NULL, &mut [arg(&out)]);
        assert_eq!(code, CUDA_SUCCESS);
        assert_eq!(read::<u32>(out, 1), [5]);
    }
    let open = kernel_with("    .reg .b64 %rd<2>;\n    mov.u64 %rd1, v;")
        .replace(".visible", ".extern .global .align 4 .b8 v[];\n.visible");
    is_refused(open, CUDA_ERROR_INVALID_PTX, &["v"]);
}
