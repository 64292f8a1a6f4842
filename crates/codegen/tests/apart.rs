//! Arrays that are stored to between loads from others: against the interpreter, whether they are apart or not, and what their loads become.
#![cfg(target_arch = "x86_64")]

mod launch;

use std::fmt::Write;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::{Launch, kernel_of};
use simt_ir::Program;

const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// Threads below 61 change five words of a structure of so many bytes one after another, by five words of another, which lies wherever the second
/// parameter says.
fn program(bytes: u32) -> Program {
    let mut steps = String::new();
    for at in [0, 4, 8, 12, 16] {
        writeln!(
            steps,
            "ld.global.u32 %v, [%a+{at}];\nld.global.u32 %w, [%b+{at}];\nmad.lo.u32 %v, %v, 3, %w;\nst.global.u32 [%b+{at}], %v;"
        )
        .unwrap();
    }
    kernel_of(&format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 first, .param .u64 second)\n{{\n\
         .reg .b32 %t, %v, %w;\n.reg .b64 %a, %b, %x;\n.reg .pred %p;\n\
         ld.param.u64 %a, [first];\nld.param.u64 %b, [second];\nmov.u32 %t, %tid.x;\n\
         setp.gt.u32 %p, %t, 60;\n@%p bra done;\n\
         mul.wide.u32 %x, %t, {bytes};\nadd.u64 %a, %a, %x;\nadd.u64 %b, %b, %x;\n{steps}\ndone:\nret;\n}}"
    ))
}

#[test]
fn what_passes_what_is_as_the_arrays_lie() {
    for bytes in [20, 24, 32, 64] {
        let program = program(bytes);
        // In the same place, in part in the same words, between each other's structures, behind all of the other, and before.
        for (first, second) in
            [(100u64, 100u64), (100, 101), (101, 100), (100, 105), (100, 1200), (1200, 100)]
        {
            // What a lane stores another must not load: which is first then is for nobody to say.
            let structure = u64::from(bytes) / 4;
            let distance = first.abs_diff(second);
            if distance > 0 && distance < 1000 && structure < 5 + distance {
                continue;
            }
            let words: Vec<u64> = (0..1200u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let args = |words: &mut [u64]| {
                let start = words.as_mut_ptr() as u64;
                [start + 4 * first, start + 4 * second]
            };
            LAUNCH.must_agree(&program, &words, args, format_args!("{bytes} bytes, {first}, {second}"));
        }
    }
}

#[test]
fn arrays_apart_are_whole_pieces() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = codegen::emit_text(&program(20), &LAUNCH.shape(), &cpu, Text::Ir).unwrap();
    // All ten loads of both arrays in two, and what is stored in registers. The other way, for some lanes or arrays that overlap, those of the array
    // that is not stored to stay where they are.
    let count = |what: &str| text.matches(what).count();
    assert_eq!(count("= load <160 x i32>"), 2, "{text}");
    assert_eq!(count("store <16 x i32>"), 10, "{text}");
    assert_eq!(count("= call <160 x i32> @llvm.masked.load"), 1, "{text}");
    assert_eq!(count("= call <32 x i32> @llvm.masked.gather"), 5, "{text}");
}
