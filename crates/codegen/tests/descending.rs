//! Lanes that go down through memory, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::Program;

/// Elements of rows so wide, each in its place from the other end of its row, as compilers write it (`!x + width`), loaded or stored there.
fn program(ty: &str, bytes: u32, loads: bool) -> Program {
    let (from, to) = if loads { ("%there", "%here") } else { ("%here", "%there") };
    launch::kernel_of(&format!(
        ".version 8.0
        .target sm_80
        .address_size 64
        .visible .entry kernel(.param .u64 in, .param .u64 out, .param .u32 width) {{
            .reg .pred %p;
            .reg .b32 %x, %y, %width, %size, %block, %row, %here, %there;
            .reg .b64 %in, %out, %at;
            .reg .{ty} %value;
            ld.param.u64 %in, [in];
            ld.param.u64 %out, [out];
            ld.param.u32 %width, [width];
            mov.u32 %x, %tid.x;
            mov.u32 %block, %ctaid.x;
            mov.u32 %size, %ntid.x;
            mad.lo.s32 %x, %block, %size, %x;
            mov.u32 %y, %tid.y;
            setp.ge.s32 %p, %x, %width;
            @%p ret;
            mul.lo.s32 %row, %y, %width;
            add.s32 %here, %row, %x;
            not.b32 %there, %x;
            add.s32 %there, %there, %width;
            add.s32 %there, %there, %row;
            mul.wide.s32 %at, {from}, {bytes};
            add.s64 %in, %in, %at;
            ld.global.{ty} %value, [%in];
            mul.wide.s32 %at, {to}, {bytes};
            add.s64 %out, %out, %at;
            st.global.{ty} [%out], %value;
            ret;
        }}"
    ))
}

#[test]
fn each_element_comes_from_its_place_at_the_other_end() {
    for (ty, bytes) in [("b16", 2), ("b32", 4), ("b64", 8)] {
        for loads in [false, true] {
            let program = program(ty, bytes, loads);
            for (grid, block, width) in [
                ([3, 1, 1], [64, 1, 1], 173_u32),
                ([1, 1, 1], [256, 1, 1], 256),
                ([2, 1, 1], [16, 16, 1], 32),
                ([3, 1, 1], [16, 8, 1], 41),
                ([2, 1, 1], [8, 8, 1], 13),
                ([2, 1, 1], [40, 1, 1], 71),
            ] {
                let launch = Launch { grid, block };
                let count = (width * block[1] * bytes).div_ceil(8) as usize;
                let start: Vec<u64> =
                    (0..count as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
                // What is not stored stays.
                let words = [&start[..], &vec![u64::MAX; count + 1]].concat();
                let params = |words: &mut [u64]| {
                    let first = words.as_mut_ptr() as u64;
                    [first, first + 8 * count as u64, width.into()]
                };
                let what = format_args!("{ty}, loads: {loads}, {launch:?}, {width}");
                launch.must_agree(&program, &words, params, what);
            }
        }
    }
}

#[test]
fn no_lane_has_an_access_of_its_own() {
    for block in [[256, 1, 1], [16, 16, 1]] {
        let shape = kernel_abi::Shape::of([8, 1, 1], block);
        for level in [Level::Avx2, Level::Avx512] {
            for loads in [false, true] {
                let program = program("b32", 4, loads);
                let cpu = Cpu::level_cpu(level);
                let text = codegen::emit_text(&program, &shape, &cpu, Text::OptimizedIr).unwrap();
                let usual: Vec<_> = text.lines().filter(|line| line.contains("shufflevector")).collect();
                assert!(
                    !usual.is_empty() && text.contains("i32 7, i32 6, i32 5, i32 4"),
                    "{block:?} {level:?}"
                );
            }
        }
    }
}
