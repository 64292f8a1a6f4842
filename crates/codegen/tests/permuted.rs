//! Lanes that lie in memory in another order than theirs, against the interpreter.

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

/// The first word that is read.
const FIRST: u32 = 4;

/// `out[to] = in[from] + tid.z * 100 + tid.y * 10 + tid.x` of words where `from < limit`; `from` and `to` are sums of so many times x, y and z of the thread,
/// and of what the block's number times its threads adds, and `from` is [`FIRST`] more.
fn transposed(from: [u32; 3], to: [u32; 3], threads: u32) -> Program {
    let sum = |name: &str, times: [u32; 3]| {
        let [x, y, z] = times;
        format!(
            "mad.lo.s32 {name}, %x, {x}, %first;
            mad.lo.s32 {name}, %y, {y}, {name};
            mad.lo.s32 {name}, %z, {z}, {name};"
        )
    };
    launch::kernel_of(&format!(
        ".version 8.0
        .target sm_80
        .address_size 64
        .visible .entry kernel(.param .u64 in, .param .u64 out, .param .u32 limit) {{
            .reg .pred %p;
            .reg .b32 %x, %y, %z, %first, %limit, %from, %to, %value;
            .reg .b64 %in, %out, %at;
            ld.param.u64 %in, [in];
            ld.param.u64 %out, [out];
            ld.param.u32 %limit, [limit];
            mov.u32 %x, %tid.x;
            mov.u32 %y, %tid.y;
            mov.u32 %z, %tid.z;
            mov.u32 %first, %ctaid.x;
            mul.lo.s32 %first, %first, {threads};
            {from}
            add.s32 %from, %from, {FIRST};
            {to}
            setp.ge.s32 %p, %from, %limit;
            @%p ret;
            mul.wide.s32 %at, %from, 4;
            add.s64 %in, %in, %at;
            ld.global.b32 %value, [%in];
            add.s32 %value, %value, %x;
            mad.lo.s32 %value, %y, 10, %value;
            mad.lo.s32 %value, %z, 100, %value;
            mul.wide.s32 %at, %to, 4;
            add.s64 %out, %out, %at;
            st.global.b32 [%out], %value;
            ret;
        }}",
        from = sum("%from", from),
        to = sum("%to", to),
    ))
}

/// What each axis is multiplied by if elements lie in this order of axes, the first side by side.
fn strides(block: [u32; 3], order: [usize; 3]) -> [u32; 3] {
    let mut strides = [0; 3];
    let mut stride = 1;
    for axis in order {
        strides[axis] = stride;
        stride *= block[axis];
    }
    strides
}

#[test]
fn blocks_of_three_axes_have_their_elements_in_any_order() {
    let blocks = [
        [2, 16, 2],
        [8, 8, 4],
        [4, 2, 8],
        [2, 2, 8],
        [4, 4, 16],
        [32, 2, 2],
        [16, 16, 1],
        [4, 3, 8],
        [2, 64, 2],
    ];
    let orders = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]];
    for block in blocks {
        let threads: u32 = block.iter().product();
        let launch = Launch { grid: [3, 1, 1], block };
        let count = 3 * threads;
        for from in orders {
            for to in orders {
                let program = transposed(strides(block, from), strides(block, to), threads);
                for limit in [count + FIRST, count - 3] {
                    let words = (count + FIRST).div_ceil(2) as usize;
                    let start: Vec<u64> =
                        (0..words as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
                    let memory = [&start[..], &vec![u64::MAX; words + 1]].concat();
                    let params = |memory: &mut [u64]| {
                        let first = memory.as_mut_ptr() as u64;
                        [first, first + 8 * words as u64, limit.into()]
                    };
                    launch.must_agree(
                        &program,
                        &memory,
                        params,
                        format_args!("{block:?}, {from:?} to {to:?}, {limit}"),
                    );
                }
            }
        }
    }
}

/// Rows of four words that the lanes of a block share, or that each has in another order.
#[test]
fn lanes_that_share_elements_load_each_once() {
    for block in [[4, 8, 1], [8, 8, 1], [4, 2, 8], [16, 4, 2]] {
        let threads: u32 = block.iter().product();
        let launch = Launch { grid: [2, 1, 1], block };
        for from in [[0, 1, 8], [1, 0, 8], [0, 1, 0], [1, 0, 0]] {
            let program = transposed(from, strides(block, [0, 1, 2]), threads);
            let words = threads as usize + 64;
            let start: Vec<u64> =
                (0..words as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let memory = [&start[..], &vec![u64::MAX; words]].concat();
            let params = |memory: &mut [u64]| {
                let first = memory.as_mut_ptr() as u64;
                [first, first + 8 * words as u64, u64::from(u32::MAX >> 1)]
            };
            launch.must_agree(&program, &memory, params, format_args!("{block:?}, {from:?}"));
        }
    }
}

/// A transposition within blocks of three axes has whole runs.
#[test]
fn blocks_of_three_axes_are_accessed_by_runs() {
    for (block, from, to) in [([2, 16, 2], [1, 2, 0], [2, 1, 0]), ([4, 8, 2], [1, 0, 2], [0, 1, 2])] {
        let program = transposed(strides(block, from), strides(block, to), block.iter().product());
        let shape = Launch { grid: [3, 1, 1], block }.shape();
        let cpu = Cpu::level_cpu(Level::Avx512);
        let ir = codegen::emit_text(&program, &shape, &cpu, Text::OptimizedIr).unwrap();
        assert!(!["fdiv", "gather", "scatter"].iter().any(|slow| ir.contains(slow)), "{block:?}: {ir}");
        let one_by_one = ir.lines().filter(|line| line.contains("insertelement")).count();
        assert!(one_by_one < 8, "{block:?}: {one_by_one} elements of vectors: {ir}");
    }
}
