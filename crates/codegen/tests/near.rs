//! Lanes that are near each other, or not, as numbers with fractions tell: against the interpreter, where memory ends, and how they are loaded.
#![cfg(target_arch = "x86_64")]

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::{Edge, Launch, in_pairs, kernel_of};
use simt_ir::Program;

const THREADS: u32 = 64;
/// Steps from thread to thread, from -4 to 4 in fifths: as many blocks as have each of these several times, in turn and in a row.
const STEPS: u32 = 41;
const BLOCKS: u32 = 6 * STEPS;

fn launch(row: u32) -> Launch {
    Launch { grid: [BLOCKS, 1, 1], block: [row, THREADS / row, 1] }
}

/// Thread `%t` of a block has a place `%i` that is so many times its number from a middle, by a step that is the block's. `%x` is where elements of so many bytes
/// begin and `%v0` goes to the thread's word. A thread whose number is not below the limit has none.
fn program(index: &str, bytes: u32, load: &str) -> Program {
    kernel_of(&format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 words, .param .u64 elements, .param .u32 limit)\n{{\n\
         .reg .b16 %h;\n.reg .b32 %t, %i, %c, %s, %v<4>;\n.reg .f32 %f<4>;\n.reg .b64 %own, %x, %w<4>;\n.reg .pred %p;\n\
         ld.param.u64 %own, [words];\nld.param.u64 %x, [elements];\nld.param.u32 %s, [limit];\n\
         mov.u32 %t, %tid.y;\nmov.u32 %c, %ntid.x;\nmov.u32 %i, %tid.x;\nmad.lo.u32 %t, %t, %c, %i;\n\
         mov.u32 %c, %ctaid.x;\nmad.lo.u32 %i, %c, {THREADS}, %t;\nmul.wide.u32 %w0, %i, 4;\nadd.u64 %own, %own, %w0;\n\
         setp.ge.u32 %p, %t, %s;\n@%p bra done;\n\
         shr.u32 %s, %c, 1;\nand.b32 %c, %c, 1;\nmul.lo.u32 %c, %c, 23;\nadd.u32 %c, %c, %s;\nrem.u32 %c, %c, {STEPS};\n\
         sub.u32 %c, %c, {};\ncvt.rn.f32.s32 %f0, %c;\nmul.f32 %f0, %f0, 0f3E4CCCCD;\n\
         {index}\n\
         mul.wide.s32 %w0, %i, {bytes};\nadd.u64 %x, %x, %w0;\n{load}\n\
         st.global.u32 [%own], %v0;\ndone:\nret;\n}}",
        STEPS / 2
    ))
}

/// In a row, with 0.49 between some.
const ALONG: &str =
    "cvt.rn.f32.u32 %f1, %t;\nfma.rn.f32 %f1, %f0, %f1, 0f437F0000;\ncvt.rzi.s32.f32 %i, %f1;";
/// Back and forth.
const ANYHOW: &str = "xor.b32 %t, %t, 5;\ncvt.rn.f32.u32 %f1, %t;\nfma.rn.f32 %f1, %f0, %f1, 0f437F0000;\ncvt.rni.s32.f32 %i, %f1;\n\
                      setp.gt.f32 %p, %f1, 0f43800000;\nselp.b32 %c, 1, 0, %p;\nadd.s32 %i, %i, %c;";
/// Without fractions.
const DIVIDED: &str = "add.u32 %s, %s, 1;\nmul.lo.u32 %i, %t, 3;\ndiv.u32 %i, %i, %s;";

/// The bytes of an element, how many a thread loads, and how.
const LOADS: [(u32, u32, &str); 7] = [
    (1, 1, "ld.global.u8 %h, [%x]; cvt.u32.u16 %v0, %h;"),
    (2, 1, "ld.global.s16 %h, [%x]; cvt.s32.s16 %v0, %h;"),
    (4, 1, "ld.global.u32 %v0, [%x];"),
    (8, 1, "ld.global.u64 %w1, [%x]; shr.u64 %w2, %w1, 29; cvt.u32.u64 %v0, %w2;"),
    (4, 2, "ld.global.u32 %v1, [%x]; ld.global.u32 %v2, [%x+4]; mad.lo.u32 %v0, %v1, 3, %v2;"),
    (8, 1, "ld.global.v2.u32 {%v1, %v2}, [%x]; sub.u32 %v0, %v1, %v2;"),
    (4, 1, "add.u64 %x, %x, -1; and.b64 %x, %x, -4; ld.global.u32 %v0, [%x+4];"),
];

#[test]
fn elements_are_found_as_far_as_memory_goes() {
    let edge = Edge::new();
    let words = in_pairs(&vec![0; (BLOCKS * THREADS) as usize]);
    for (bytes, count, load) in LOADS {
        // With the last place that a thread comes to.
        for (index, last, how) in [(ALONG, 507, "along"), (ANYHOW, 508, "anyhow"), (DIVIDED, 189, "divided")]
        {
            let program = program(index, bytes, load);
            let elements = edge.start as u64 + Edge::PAGE as u64 - u64::from((last + count) * bytes);
            for (row, limit) in [(64, 64), (16, 41), (8, 64)] {
                let params = |words: &mut [u64]| [words.as_mut_ptr() as u64, elements, limit];
                launch(row).must_agree(
                    &program,
                    &words,
                    params,
                    format!("{how}, {row} in a row, {limit}: {load}"),
                );
            }
        }
    }
}

#[test]
fn what_comes_from_fractions_or_quotients_may_be_near() {
    let chooses = |index: &str, (bytes, _, load): (u32, u32, &str), level| {
        let program = program(index, bytes, load);
        let text =
            codegen::emit_text(&program, &launch(64).shape(), &Cpu::level_cpu(level), Text::Ir).unwrap();
        ["@llvm.x86.avx512.vpermi2var.", "@llvm.x86.avx2.permd("].iter().any(|name| text.contains(name))
    };
    for index in [ALONG, ANYHOW, DIVIDED] {
        assert!(chooses(index, LOADS[2], Level::Avx512), "{index}");
        assert!(chooses(index, LOADS[3], Level::Avx512), "{index}");
        assert!(chooses(index, LOADS[4], Level::Avx512), "{index}");
        assert!(chooses(index, LOADS[2], Level::Avx2), "{index}");
        assert!(!chooses(index, LOADS[2], Level::Baseline), "{index}");
    }
    assert!(!chooses("ld.global.u32 %i, [%own];", LOADS[2], Level::Avx512), "memory may tell anything");
}
