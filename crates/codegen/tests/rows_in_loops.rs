//! Rows of each lane's own, and elements out of them, that a loop goes over: against the interpreter, and what they are loaded as.
#![cfg(target_arch = "x86_64")]

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::{Launch, in_pairs, kernel_of};
use simt_ir::Program;

const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };
/// Words of data.
const WORDS: u32 = 4096;

/// Each thread sums in `%sum` what it loads from `%data` on; there are `%n` rows for all of them.
fn program(steps: &str) -> Program {
    kernel_of(&format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 words, .param .u32 rows)\n{{\n\
         .reg .b32 %t, %i, %n, %left, %v<4>, %sum;\n.reg .b64 %own, %data, %x;\n.reg .pred %p;\n\
         ld.param.u64 %data, [words];\nld.param.u32 %n, [rows];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %own, %t, 4;\n\
         add.u64 %own, %own, %data;\nadd.u64 %data, %data, {};\nmov.b32 %sum, 0;\n{steps}\n\
         st.global.u32 [%own], %sum;\nret;\n}}",
        4 * THREADS
    ))
}

fn agrees(steps: &str, rows: u32) {
    let data = (0..THREADS + WORDS).map(|at| at.wrapping_mul(0x9e37_79b9));
    let words = in_pairs(&data.collect::<Vec<_>>());
    LAUNCH.must_agree(&program(steps), &words, |words| [words.as_mut_ptr() as u64, rows.into()], steps);
}

/// How often the code for AVX-512 loads a vector of so many words.
fn loads(steps: &str, lanes: u32) -> usize {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = codegen::emit_text(&program(steps), &LAUNCH.shape(), &cpu, Text::Ir).unwrap();
    text.matches(&format!("= load <{lanes} x i32>")).count()
}

/// A loop over rows of two words, by an index of 32 bits that might wrap, which takes these of them.
fn pairs(loads: &str) -> String {
    format!(
        "mov.u32 %i, %t;\nsetp.ge.s32 %p, %i, %n;\n@%p bra done;\nagain:\nmul.wide.s32 %x, %i, 8;\nadd.u64 %x, %x, %data;\n\
         {loads}\nadd.s32 %i, %i, 64;\nsetp.lt.s32 %p, %i, %n;\n@%p bra again;\ndone:"
    )
}

const BOTH: &str =
    "ld.global.u32 %v0, [%x];\nld.global.u32 %v1, [%x+4];\nxor.b32 %v1, %v1, %v0;\nadd.u32 %sum, %sum, %v1;";
const FIRST: &str = "ld.global.u32 %v0, [%x];\nadd.u32 %sum, %sum, %v0;";

/// As compilers unroll a loop over rows of four words: what is left over comes first, one row at a time.
const UNROLLED: &str = "not.b32 %left, %t;\nadd.u32 %left, %left, %n;\nshr.u32 %left, %left, 6;\nadd.u32 %left, %left, 1;\n\
     and.b32 %left, %left, 1;\nmov.u32 %i, %t;\nsetp.eq.u32 %p, %left, 0;\n@%p bra rest;\nfirst:\nmul.wide.u32 %x, %i, 16;\n\
     add.u64 %x, %x, %data;\nld.global.u32 %v0, [%x];\nadd.u32 %sum, %sum, %v0;\nadd.u32 %i, %i, 64;\nadd.u32 %left, %left, -1;\n\
     setp.ne.u32 %p, %left, 0;\n@%p bra first;\nrest:\nsetp.ge.u32 %p, %i, %n;\n@%p bra done;\nmul.wide.u32 %x, %i, 16;\n\
     add.u64 %x, %x, %data;\nsecond:\nld.global.u32 %v0, [%x];\nld.global.u32 %v1, [%x+4];\nld.global.u32 %v2, [%x+8];\n\
     ld.global.u32 %v3, [%x+12];\nxor.b32 %v1, %v1, %v0;\nadd.u32 %sum, %sum, %v1;\nxor.b32 %v3, %v3, %v2;\nadd.u32 %sum, %sum, %v3;\n\
     add.u64 %x, %x, 1024;\nadd.u32 %i, %i, 64;\nsetp.lt.u32 %p, %i, %n;\n@%p bra second;\ndone:";

#[test]
fn rows_are_summed_however_many_a_lane_has() {
    for rows in [0, 1, 40, 64, 100, 128, 131, 192, 300, 512] {
        agrees(&pairs(BOTH), rows);
        agrees(&pairs(FIRST), rows);
        agrees(UNROLLED, rows);
    }
}

#[test]
fn where_no_index_wraps_the_words_of_rows_come_together() {
    assert_eq!(loads(&pairs(BOTH), 64), 1);
}

#[test]
fn what_is_between_elements_is_loaded_with_them() {
    assert_eq!(loads(&pairs(FIRST), 16), 4, "four registers, the last of which ends with the last element");
}

#[test]
fn lanes_that_left_a_loop_together_have_their_rows_side_by_side() {
    assert!(loads(UNROLLED, 128) > 0);
}
