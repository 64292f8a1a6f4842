//! Loops that lanes enter at different places and go through side by side, as those that are unrolled after a loop over the rest, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::Program;

const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// How many elements a lane is further when it comes to the second loop.
type Count = fn(u32) -> u32;

/// Each thread goes over every 64th element of `x` from its own on: so many as `counts` says first, then two at a time up to the `n`-th. It stores
/// the sums that it comes by on its way in `y`, and its last in `sums`.
fn program() -> Program {
    let source = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 counts, .param .u64 x, .param .u64 y, .param .u64 sums, .param .u32 n)
{
.reg .b32 %t, %count, %i, %n;
.reg .f32 %sum, %f<2>;
.reg .b64 %at, %x, %y, %step;
.reg .pred %p;
ld.param.u32 %n, [n];
mov.u32 %t, %tid.x;
mul.wide.u32 %step, %t, 4;
ld.param.u64 %at, [counts];
add.u64 %at, %at, %step;
ld.global.u32 %count, [%at];
ld.param.u64 %x, [x];
add.u64 %x, %x, %step;
mov.b32 %sum, 0f00000000;
mov.b32 %i, %t;
setp.eq.u32 %p, %count, 0;
@%p bra rest;
first:
ld.global.f32 %f0, [%x];
add.rn.f32 %sum, %sum, %f0;
add.u64 %x, %x, 256;
add.u32 %i, %i, 64;
sub.u32 %count, %count, 1;
setp.ne.u32 %p, %count, 0;
@%p bra first;
rest:
ld.param.u64 %y, [y];
mul.wide.u32 %at, %i, 4;
add.u64 %y, %y, %at;
setp.ge.u32 %p, %i, %n;
@%p bra end;
loop:
ld.global.f32 %f0, [%x];
ld.global.f32 %f1, [%x+256];
add.rn.f32 %sum, %sum, %f0;
st.global.f32 [%y], %sum;
add.rn.f32 %sum, %sum, %f1;
st.global.f32 [%y+256], %sum;
add.u64 %x, %x, 512;
add.u64 %y, %y, 512;
add.u32 %i, %i, 128;
setp.lt.u32 %p, %i, %n;
@%p bra loop;
end:
ld.param.u64 %at, [sums];
add.u64 %at, %at, %step;
st.global.f32 [%at], %sum;
ret;
}";
    launch::kernel_of(source)
}

#[test]
fn however_they_lie_when_they_come_lanes_go_over_their_elements() {
    const ELEMENTS: usize = 1024;
    let program = program();
    let counts: [(&str, Count); 6] = [
        ("none has come further", |_| 0),
        ("all as far", |_| 2),
        ("some at the beginning further", |lane| u32::from(lane % 32 < 9)),
        ("some at the end further", |lane| 3 * u32::from(lane >= 41)),
        ("every second", |lane| lane % 2),
        ("each as it likes", |lane| lane * 7 % 5),
    ];
    for (what, count) in counts {
        for n in [0, 64, 500, 700] {
            // Counts, elements, those that are stored, sums.
            let mut words = vec![0_u32; 64 + 2 * ELEMENTS + 64];
            (0..THREADS).for_each(|lane| words[lane as usize] = count(lane));
            (0..ELEMENTS).for_each(|at| words[64 + at] = (at as f32 / 3.0).to_bits());
            let words = launch::in_pairs(&words);
            let params = |words: &mut [u64]| {
                let start = words.as_mut_ptr() as u64;
                let [x, y, sums] = [64, 64 + ELEMENTS, 64 + 2 * ELEMENTS].map(|at| start + 4 * at as u64);
                [start, x, y, sums, n]
            };
            LAUNCH.must_agree(&program, &words, params, format_args!("{what}, up to {n}"));
        }
    }
}

#[test]
fn where_they_lie_side_by_side_they_are_loaded_together() {
    let text =
        codegen::emit_text(&program(), &LAUNCH.shape(), &Cpu::level_cpu(Level::Avx512), Text::Ir).unwrap();
    // An element in the first loop and two in the other, of all lanes: in one piece, and where they are not all, under a mask.
    let whole = text.matches("load <32 x float>").count();
    let masked = text.matches("@llvm.masked.load.v32f32").count();
    assert!(whole >= 3 && masked >= 3, "{whole} and {masked}: {text}");
}
