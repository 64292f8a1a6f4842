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

/// Threads store three words of a structure one after another, each with a word of a row that lies where a number from memory says. Rows of threads are as
/// far apart as the last parameter says.
fn rows_anywhere(load: &str) -> Program {
    let mut steps = String::new();
    for at in [0, 4, 8] {
        writeln!(steps, "{load} %v, [%a+{at}];\nmad.lo.u32 %v, %v, 3, %t;\nst.global.u32 [%b+{at}], %v;")
            .unwrap();
    }
    kernel_of(&format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 first, .param .u64 second, .param .u64 numbers, .param .u64 pitch)\n{{\n\
         .reg .b32 %t, %y, %v;\n.reg .b64 %a, %b, %c, %x;\n.reg .pred %p;\n\
         ld.param.u64 %a, [first];\nld.param.u64 %b, [second];\nld.param.u64 %c, [numbers];\nld.param.u64 %x, [pitch];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %y, %tid.y;\n\
         cvt.u32.u64 %v, %x;\nmul.wide.u32 %x, %y, %v;\nadd.u64 %b, %b, %x;\nmul.wide.u32 %x, %t, 32;\nadd.u64 %b, %b, %x;\n\
         mad.lo.u32 %t, %y, 16, %t;\nsetp.gt.u32 %p, %t, 60;\n@%p bra done;\n\
         mul.wide.u32 %x, %t, 4;\nadd.u64 %c, %c, %x;\nld.global.u32 %v, [%c];\nmul.wide.u32 %x, %v, 32;\nadd.u64 %a, %a, %x;\n\
         {steps}\ndone:\nret;\n}}"
    ))
}

#[test]
fn rows_that_lie_anywhere_are_seen_to_be_stored_to() {
    let program = rows_anywhere("ld.global.u32");
    for block in [[64, 1, 1], [16, 4, 1]] {
        let launch = Launch { grid: [1, 1, 1], block };
        // A lane's own words, of which it stores some before it loads them; far behind all others and before them; close to them.
        for (first, second) in
            [(100, 100), (101, 100), (100, 102), (100, 700), (700, 100), (100, 615), (614, 100)]
        {
            let is_apart = u64::abs_diff(first, second) > 8;
            let mut words: Vec<u64> = (0..1400u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            for thread in 0..64u64 {
                let number = if is_apart { thread * 37 % 64 } else { thread };
                let word = &mut words[thread as usize / 2];
                *word = *word & 0xffff_ffff << (32 * (1 - thread % 2)) | number << (32 * (thread % 2));
            }
            let args = |words: &mut [u64]| {
                let start = words.as_mut_ptr() as u64;
                [start + 4 * first, start + 4 * second, start, 16 * 32]
            };
            launch.must_agree(&program, &words, args, format_args!("{block:?}, {first}, {second}"));
        }
    }
}

#[test]
fn rows_that_lie_anywhere_come_together() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let gathers = |program: &Program| {
        let text = codegen::emit_text(program, &LAUNCH.shape(), &cpu, Text::Ir).unwrap();
        text.matches("= call <32 x i32> @llvm.masked.gather").count()
    };
    // For some lanes, or where they are stored to.
    assert_eq!(gathers(&rows_anywhere("ld.global.u32")), 3);
    assert_eq!(gathers(&rows_anywhere("ld.relaxed.gpu.global.u32")), 0, "those are in order, one by one");
}

/// The threads of a warp gather what four rows of 32 words have for each, into a row of its own: rows are as many bytes apart as the last parameter says.
fn rows_gathered() -> Program {
    let mut steps = String::new();
    for at in [0, 4, 8, 12] {
        writeln!(steps, "ld.global.u32 %v, [%a];\nadd.u64 %a, %a, %pitch;\nst.global.u32 [%b+{at}], %v;")
            .unwrap();
    }
    kernel_of(&format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 first, .param .u64 second, .param .u64 pitch, .param .u64 apart)\n{{\n\
         .reg .b32 %t, %v;\n.reg .b64 %a, %b, %pitch, %x, %y;\n\
         ld.param.u64 %a, [first];\nld.param.u64 %b, [second];\nld.param.u64 %pitch, [pitch];\nld.param.u64 %x, [apart];\n\
         mov.u32 %t, %tid.x;\ncvt.u64.u32 %y, %t;\nmul.lo.u64 %x, %x, %y;\nadd.u64 %b, %b, %x;\n\
         mul.wide.u32 %x, %t, 4;\nadd.u64 %a, %a, %x;\n{steps}ret;\n}}"
    ))
}

const WARP: Launch = Launch { grid: [1, 1, 1], block: [32, 1, 1] };

#[test]
fn rows_of_each_lane_may_lie_in_each_other() {
    let program = rows_gathered();
    let words: Vec<u64> = (0..1200u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    // Apart, one behind the other, overlapping, in one place, and towards the beginning.
    for apart in [32i64, 20, 16, 12, 4, 0, -4, -16, -24] {
        // Behind what is loaded, before it, and among it: a row, or between two.
        for second in [1400u64, 300, 664, 680, 1000] {
            let args = |words: &mut [u64]| {
                let start = words.as_mut_ptr() as u64;
                [start + 4 * 600, start + 4 * second, 256, apart as u64]
            };
            WARP.must_agree(&program, &words, args, format_args!("{apart} bytes, {second}"));
        }
    }
}

#[test]
fn rows_of_each_lane_are_stored_as_such() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = codegen::emit_text(&rows_gathered(), &WARP.shape(), &cpu, Text::Ir).unwrap();
    let count = |what: &str| text.matches(what).count();
    assert_eq!((count("store <4 x i32>"), count("@llvm.masked.scatter.v")), (32, 5), "{text}");
}
