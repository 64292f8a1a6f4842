//! Divisions of all lanes by the same, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::Program;

const THREADS: usize = 1024;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS as u32, 1, 1] };

/// Each thread divides its number by a parameter, and stores quotients and remainders, with and without signs.
fn program() -> Program {
    let source = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 numbers, .param .u64 results, .param .u32 divisor)
{
.reg .b32 %t, %x, %d, %r<4>;
.reg .b64 %at, %step;
ld.param.u32 %d, [divisor];
mov.u32 %t, %tid.x;
mul.wide.u32 %step, %t, 4;
ld.param.u64 %at, [numbers];
add.u64 %at, %at, %step;
ld.global.u32 %x, [%at];
div.s32 %r0, %x, %d;
rem.s32 %r1, %x, %d;
div.u32 %r2, %x, %d;
rem.u32 %r3, %x, %d;
mul.wide.u32 %step, %t, 16;
ld.param.u64 %at, [results];
add.u64 %at, %at, %step;
st.global.v4.u32 [%at], {%r0, %r1, %r2, %r3};
ret;
}";
    launch::kernel_of(source)
}

#[test]
fn what_is_divided_by_the_same_is_divided_exactly() {
    let program = program();
    let powers = (0..32).flat_map(|bit| [-1i64, 0, 1].map(|by| ((1i64 << bit) + by) as u32));
    let others = [3, 5, 6, 7, 10, 641, 1000, 46341, 65537, 1_000_003, 0x5555_5555, 0xaaaa_aaab, 0xffff_fffd];
    for divisor in powers.chain(others).flat_map(|divisor| [divisor, divisor.wrapping_neg()]) {
        // Numbers around multiples, small and large, of both signs, and any.
        let numbers = (0..THREADS as u32).map(|at| {
            let (place, by) = (at / 4, at % 4);
            let most = u32::MAX / divisor.max(1);
            match by {
                3 => place.wrapping_mul(0x9e37_79b9),
                by if place % 2 == 0 => (place / 2).wrapping_mul(divisor).wrapping_add(by).wrapping_sub(1),
                by => most.wrapping_sub(place / 2).wrapping_mul(divisor).wrapping_add(by).wrapping_sub(1),
            }
        });
        let numbers: Vec<u32> = numbers.chain(std::iter::repeat_n(0, 4 * THREADS)).collect();
        let words = launch::in_pairs(&numbers);
        let params = |words: &mut [u64]| {
            let start = words.as_mut_ptr() as u64;
            [start, start + 4 * THREADS as u64, divisor.into()]
        };
        LAUNCH.must_agree(&program, &words, params, format_args!("by {divisor:#x}"));
    }
}

#[test]
fn one_division_serves_all_lanes() {
    for level in [Level::Avx2, Level::Avx512] {
        let text = codegen::emit_text(&program(), &LAUNCH.shape(), &Cpu::level_cpu(level), Text::Assembly);
        let text = text.unwrap();
        assert!(text.contains("vdivsd") && !text.contains("vdivpd"), "{level:?}: {text}");
    }
}
