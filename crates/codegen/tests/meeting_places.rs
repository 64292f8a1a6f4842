//! Atomics whose lanes come to one place or to several, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::Program;

/// Threads whose key is not zero update the word of their key in `out`, each with a word of its own.
fn program(operation: &str) -> Program {
    launch::kernel_of(&format!(
        ".version 8.0
        .target sm_80
        .address_size 64
        .visible .entry kernel(.param .u64 keys, .param .u64 words, .param .u64 out) {{
            .reg .pred %p;
            .reg .b32 %key, %word, %thread, %block, %size;
            .reg .b64 %keys, %words, %out, %at;
            ld.param.u64 %keys, [keys];
            ld.param.u64 %words, [words];
            ld.param.u64 %out, [out];
            mov.u32 %thread, %tid.x;
            mov.u32 %block, %ctaid.x;
            mov.u32 %size, %ntid.x;
            mad.lo.u32 %thread, %block, %size, %thread;
            mul.wide.u32 %at, %thread, 4;
            add.u64 %keys, %keys, %at;
            ld.global.u32 %key, [%keys];
            add.u64 %words, %words, %at;
            ld.global.u32 %word, [%words];
            setp.eq.u32 %p, %key, 0;
            @%p ret;
            mul.wide.u32 %at, %key, 4;
            add.u64 %out, %out, %at;
            red.global.{operation} [%out], %word;
            ret;
        }}"
    ))
}

const OPERATIONS: &[&str] =
    &["add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32", "or.b32", "xor.b32"];

/// Keys of which those of a warp are equal, but for some that are zero; some warps have one other, in some place; some have all kinds.
fn keys(threads: u32) -> Vec<u32> {
    let key = |thread: u32| {
        let (warp, lane) = (thread / 32, thread % 32);
        let usual = 1 + warp % 9;
        match warp % 4 {
            0 => usual,
            1 if (warp + lane).is_multiple_of(3) => 0,
            2 if lane == warp % 32 => usual + 1,
            3 => 1 + (lane * 7 + warp) % 11,
            _ => usual,
        }
    };
    (0..threads).map(key).collect()
}

#[test]
fn each_lane_counts_wherever_it_meets_others() {
    for operation in OPERATIONS {
        let program = program(operation);
        for (grid, block) in [([3, 1, 1], [256, 1, 1]), ([2, 1, 1], [40, 1, 1])] {
            let launch = Launch { grid, block };
            let threads = grid[0] * block[0];
            let words = (0..threads).map(|at| at.wrapping_mul(0x9e37_79b9));
            let out = (0..12).map(|at: u32| at.wrapping_mul(0x6487_9b01));
            let all: Vec<u32> = keys(threads).into_iter().chain(words).chain(out).collect();
            let params = |words: &mut [u64]| {
                let first = words.as_mut_ptr() as u64;
                [0, 1, 2].map(|part| first + 4 * part * u64::from(threads))
            };
            launch.must_agree(
                &program,
                &launch::in_pairs(&all),
                params,
                format_args!("{operation}, {launch:?}"),
            );
        }
    }
}

#[test]
fn where_all_meet_one_access_does() {
    let shape = kernel_abi::Shape::of([8, 1, 1], [256, 1, 1]);
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = codegen::emit_text(&program("add.u32"), &shape, &cpu, Text::Ir).unwrap();
    assert!(text.contains("llvm.vector.reduce.add"), "{text}");
}
