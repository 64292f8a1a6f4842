//! Just-in-time compilation: options that limit registers, threads of a block, and blocks of a processor.

use super::common::*;

/// A kernel with these directives whose threads hold a hundred words at once.
fn kernel_text(name: &str, directives: &str) -> String {
    let words = |line: &dyn Fn(usize) -> String| (0..100).map(line).collect::<String>();
    let loads = words(&|n| format!("    ld.volatile.global.u32 %r{n}, [%rd1+{}];\n", 4 * n));
    let stores = words(&|n| format!("    st.volatile.global.u32 [%rd1+{}], %r{};\n", 4 * n, 99 - n));
    format!(
        ".visible .entry {name}(.param .u64 p) {directives}
        {{ .reg .b32 %r<100>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p];\n{loads}{stores}    ret; }}\n"
    )
}

fn image() -> CString {
    let kernels = [
        ("plain", ""),
        ("maxnt", ".maxntid 256, 1, 1"),
        ("minct", ".maxntid 256, 1, 1\n.minnctapersm 4"),
        ("maxnr", ".maxnreg 40"),
        ("reqnt", ".reqntid 128, 1, 1"),
    ];
    let text: String = kernels.iter().map(|(name, directives)| kernel_text(name, directives)).collect();
    CString::new(format!(".version 8.0\n.target sm_80\n.address_size 64\n{text}")).expect("no NUL inside")
}

type Asked<'a> = &'a [(CUjit_option, u32)];

/// Options and their values.
fn split(options: Asked<'_>) -> (Vec<CUjit_option>, Vec<*mut c_void>) {
    let number = |value: u32| std::ptr::without_provenance_mut(value as usize);
    options.iter().map(|(name, value)| (*name, number(*value))).unzip()
}

/// The module, by loading it, and by linking with the options for all of it and for the piece.
fn modules(options: Asked<'_>) -> [CUmodule; 3] {
    let image = image();
    let count = options.len() as u32;
    let mut modules = [CUmodule::NULL; 3];
    let (mut names, mut values) = split(options);
    let (name, value) = (names.as_mut_ptr(), values.as_mut_ptr());
    cu!(cuModuleLoadDataEx(&mut modules[0], image.as_ptr().cast(), count, name, value));
    let (text, len) = (image.as_ptr().cast_mut().cast(), image.as_bytes_with_nul().len());
    for (module, for_all) in modules[1..].iter_mut().zip([true, false]) {
        let (mut names, mut values) = split(options);
        let (name, value) = (names.as_mut_ptr(), values.as_mut_ptr());
        let (all, piece) = if for_all { (count, 0) } else { (0, count) };
        let (mut state, mut linked, mut size) = (CUlinkState::NULL, null_mut(), 0);
        cu!(
            cuLinkCreate_v2(all, name, value, &mut state);
            cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, len, c"piece".as_ptr(), piece, name, value);
            cuLinkComplete(state, &mut linked, &mut size);
            cuModuleLoadData(module, linked);
            cuLinkDestroy(state);
        );
    }
    modules
}

fn ask(module: CUmodule, name: &CStr, attribute: CUfunction_attribute) -> u32 {
    let mut value = 0;
    cu!(cuFuncGetAttribute(&mut value, attribute, function(module, name)));
    value as u32
}

/// With these options the kernels have so many registers at most; 255 stands for what they like.
fn registers(options: Asked<'_>, expected: [u32; 5]) {
    for (way, module) in modules(options).into_iter().enumerate() {
        for (name, most) in [c"plain", c"maxnt", c"minct", c"maxnr", c"reqnt"].into_iter().zip(expected) {
            let registers = ask(module, name, CU_FUNC_ATTRIBUTE_NUM_REGS);
            let what = format!("{options:?} {way} {name:?}: {registers}");
            if most == 255 {
                assert!(registers > 80, "{what}")
            } else {
                assert_eq!(registers, most, "{what}")
            }
        }
    }
}

/// With these options the kernels' blocks have so many threads at most.
fn threads(options: Asked<'_>, expected: [u32; 5]) {
    for (way, module) in modules(options).into_iter().enumerate() {
        for (name, most) in [c"plain", c"maxnt", c"minct", c"maxnr", c"reqnt"].into_iter().zip(expected) {
            let threads = ask(module, name, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
            // A GPU has no more threads than registers for them.
            let registers = ask(module, name, CU_FUNC_ATTRIBUTE_NUM_REGS);
            let most = if is_ours() { most } else { most.min(65536 / registers / 128 * 128) };
            assert_eq!(threads, most, "{options:?} {way} {name:?}");
        }
    }
}

pub fn what_kernels_declare_counts() {
    new_context();
    registers(&[], [255, 255, 64, 40, 255]);
    threads(&[], [1024, 256, 256, 1024, 1024]);
}

pub fn registers_are_limited_where_a_kernel_declares_nothing() {
    new_context();
    registers(&[(CU_JIT_MAX_REGISTERS, 1)], [24, 255, 64, 40, 255]);
    registers(&[(CU_JIT_MAX_REGISTERS, 32)], [32, 255, 64, 40, 255]);
    registers(&[(CU_JIT_MAX_REGISTERS, 1000)], [255, 255, 64, 40, 255]);
    registers(&[(CU_JIT_MAX_REGISTERS, 32), (CU_JIT_MAX_REGISTERS, 64)], [32, 255, 64, 40, 255]);
}

pub fn registers_suffice_for_a_block() {
    new_context();
    registers(&[(CU_JIT_THREADS_PER_BLOCK, 768)], [80, 255, 64, 40, 255]);
    registers(&[(CU_JIT_THREADS_PER_BLOCK, 1024)], [64, 255, 64, 40, 255]);
    registers(&[(CU_JIT_THREADS_PER_BLOCK, 512), (CU_JIT_MAX_REGISTERS, 32)], [32, 255, 64, 40, 255]);
    // What was compiled for is told: whole warps, and no more than a block has.
    for (asked, told) in [(1, 32), (33, 64), (128, 128), (1000, 1024), (1025, 1024), (u32::MAX, 1024)] {
        let (mut names, mut values) = split(&[(CU_JIT_THREADS_PER_BLOCK, asked)]);
        let mut module = CUmodule::NULL;
        let (name, value) = (names.as_mut_ptr(), values.as_mut_ptr());
        cu!(cuModuleLoadDataEx(&mut module, image().as_ptr().cast(), 1, name, value));
        assert_eq!(values[0] as usize, told, "{asked}");
    }
}

pub fn blocks_are_limited_where_a_kernel_declares_nothing() {
    new_context();
    threads(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 0)], [1024, 256, 256, 1024, 1024]);
    threads(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 64)], [64, 256, 256, 64, 1024]);
    threads(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 2049)], [1024, 256, 256, 1024, 1024]);
    registers(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 1024)], [64, 255, 64, 40, 255]);
    registers(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 2048)], [32, 255, 64, 40, 255]);
    // Who exceeds it is refused.
    let (module, words) = (modules(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 64)])[0], alloc(400));
    let plain = function(module, c"plain");
    let start = |threads| launch(plain, 1, threads, CUstream::NULL, &mut [arg(&words)]);
    assert_eq!(start(64), CUDA_SUCCESS);
    assert_eq!(start(65), CUDA_ERROR_INVALID_VALUE);
    cu!(cuCtxSynchronize());
}

pub fn blocks_of_a_processor_leave_so_many_registers() {
    new_context();
    registers(&[(CU_JIT_MIN_CTA_PER_SM, 4)], [255, 64, 64, 40, 255]);
    registers(&[(CU_JIT_MIN_CTA_PER_SM, 8)], [255, 32, 64, 40, 64]);
    // Too many are no wish at all.
    registers(&[(CU_JIT_MIN_CTA_PER_SM, 32)], [255, 255, 64, 40, 255]);
    registers(&[(CU_JIT_MIN_CTA_PER_SM, i32::MAX as u32)], [255, 255, 64, 40, 255]);
    let both = [(CU_JIT_MAX_THREADS_PER_BLOCK, 128), (CU_JIT_MIN_CTA_PER_SM, 8)];
    registers(&both, [64, 32, 64, 40, 64]);
    registers(&[both[0], both[1], (CU_JIT_MAX_REGISTERS, 32)], [32, 255, 64, 40, 255]);
}

pub fn options_override_what_kernels_declare() {
    new_context();
    let over = (CU_JIT_OVERRIDE_DIRECTIVE_VALUES, 1);
    registers(&[(CU_JIT_MAX_REGISTERS, 32), over], [32; 5]);
    threads(&[(CU_JIT_MAX_REGISTERS, 32), over], [1024, 256, 256, 1024, 1024]);
    registers(&[(CU_JIT_THREADS_PER_BLOCK, 1024), over], [64; 5]);
    threads(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 128), over], [128; 5]);
    registers(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 512), over], [255, 255, 32, 40, 255]);
    registers(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 512), (CU_JIT_MIN_CTA_PER_SM, 4), over], [32; 5]);
    registers(&[(CU_JIT_MAX_THREADS_PER_BLOCK, 2000), over], [32, 32, 32, 40, 32]);
    registers(&[(CU_JIT_MAX_REGISTERS, 300), over], [255; 5]);
}
