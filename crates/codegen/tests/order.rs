//! The order in which pieces of memory are read, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::Program;

const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [64, 1, 1] };

/// Each thread computes one number of two that it loads.
fn program(step: &str) -> Program {
    let source = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 x, .param .u64 y)\n{{\n\
         .reg .b32 %t, %a, %b;\n.reg .f32 %f, %g;\n.reg .b64 %x, %y, %step;\n\
         ld.param.u64 %x, [x];\nld.param.u64 %y, [y];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %step, %t, 4;\n\
         add.u64 %x, %x, %step;\nadd.u64 %y, %y, %step;\n{step}\nret;\n}}"
    );
    launch::kernel_of(&source)
}

const STEPS: [(&str, &str); 3] = [
    (
        "ld.global.f32 %f, [%x]; ld.global.f32 %g, [%y]; fma.rn.f32 %g, %f, 0f3F000000, %g; st.global.f32 [%y], %g;",
        "vfmadd",
    ),
    (
        "ld.global.f32 %f, [%x]; ld.global.f32 %g, [%y]; sub.rn.f32 %g, %f, %g; st.global.f32 [%y], %g;",
        "vsubps",
    ),
    (
        "ld.global.u32 %a, [%x]; ld.global.u32 %b, [%y]; mul.lo.u32 %b, %a, %b; st.global.u32 [%y], %b;",
        "vpmulld",
    ),
];

#[test]
fn what_is_computed_register_by_register_is_the_same() {
    let words: Vec<u64> =
        (0..64).map(|at| u64::from((at as f32 / 7.0).to_bits()) << 32 | (0x4080_0000 + at)).collect();
    for (step, _) in STEPS {
        let params = |words: &mut [u64]| [words.as_mut_ptr() as u64, words[32..].as_mut_ptr() as u64];
        LAUNCH.must_agree(&program(step), &words, params, step);
    }
}

#[test]
fn pieces_of_memory_are_read_from_their_beginning() {
    for (level, register) in [(Level::Avx2, 32), (Level::Avx512, 64)] {
        for (step, op) in STEPS {
            let text =
                codegen::emit_text(&program(step), &LAUNCH.shape(), &Cpu::level_cpu(level), Text::Assembly)
                    .unwrap();
            let lines = text.lines().filter(|line| line.trim_start().starts_with(op) && line.contains("(%r"));
            let offsets: Vec<u32> = lines
                .map(|line| {
                    line.split_whitespace()
                        .nth(1)
                        .and_then(|operand| operand.split('(').next())
                        .unwrap_or("")
                        .parse()
                        .unwrap_or(0)
                })
                .collect();
            let wanted: Vec<u32> = (0..128 / register).map(|at| at * register).collect();
            assert!(offsets.starts_with(&wanted), "{level:?}, {step}: {offsets:?}\n{text}");
        }
    }
}
