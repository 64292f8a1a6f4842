//! Shuffles whose results are wanted in some lanes only, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::Cpu;
use launch::{Launch, kernel_of};
use simt_ir::Program;
use transform::gang::Choice;

/// Steps towards the first lane, from lanes ever nearer.
const DOWN: [(&str, u32, u32); 5] =
    [("down", 16, 31), ("down", 8, 31), ("down", 4, 31), ("down", 2, 31), ("down", 1, 31)];
/// Steps towards the last lane.
const UP: [(&str, u32, u32); 5] = [("up", 1, 0), ("up", 2, 0), ("up", 4, 0), ("up", 8, 0), ("up", 16, 0)];
/// Within groups of eight lanes, some of which have nothing to read, and each way.
const MIXED: [(&str, u32, u32); 5] =
    [("down", 4, 0x181f), ("up", 3, 0x1800), ("bfly", 9, 31), ("down", 1, 0x1803), ("down", 30, 31)];

/// Each thread adds what others have to its number by `add`, step by step; then those for which `%q` holds after `who` keep `%sum`.
fn program(steps: &[(&str, u32, u32)], add: &str, who: &str) -> Program {
    let mut sums = String::new();
    for (mode, lane, clamp) in steps {
        sums += &format!("shfl.sync.{mode}.b32 %other, %sum, {lane}, {clamp}, -1;\n{add};\n");
    }
    kernel_of(&format!(
        "
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 data) {{
    .reg .pred %q, %r;
    .reg .b32 %x, %y, %width, %t, %lane, %sum, %other;
    .reg .b64 %a, %offset;
    ld.param.u64 %a, [data];
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %width, %ntid.x;
    mad.lo.u32 %t, %y, %width, %x;
    mul.wide.u32 %offset, %t, 4;
    add.u64 %a, %a, %offset;
    ld.global.u32 %sum, [%a];
    {sums}
    {who}
    @!%q bra DONE;
    st.global.u32 [%a+1024], %sum;
DONE:
    ret;
}}"
    ))
}

const FIRST: &str = "and.b32 %lane, %x, 31;\nsetp.eq.u32 %q, %lane, 0;";
const EVERY: &str = "setp.ne.u32 %q, %x, 4000;";

#[test]
fn lanes_that_want_a_sum_have_it() {
    let whose = [
        FIRST,
        EVERY,
        "rem.u32 %lane, %x, 8;\nsetp.le.u32 %q, %lane, 1;",
        "mov.u32 %lane, %laneid;\nsetp.eq.u32 %q, %lane, 31;",
        "setp.eq.u32 %q, %x, 37;",
        "setp.ne.u32 %q, %x, 5;\nnot.pred %q, %q;",
        "setp.lt.s32 %q, %x, 3;",
        "setp.ge.u32 %q, %x, 7;\nnot.pred %q, %q;",
        "setp.gt.u32 %q, 5, %x;",
        "and.b32 %lane, %x, 31;\nsetp.lt.u32 %q, %lane, 9;\nsetp.ne.u32 %r, %lane, 2;\nand.pred %q, %q, %r;",
        "and.b32 %lane, %x, 31;\nsetp.eq.u32 %q, %lane, 9;\nsetp.eq.u32 %r, %lane, 2;\nor.pred %q, %q, %r;",
        // What one lane has comes to all.
        "shfl.sync.idx.b32 %sum, %sum, 0, 31, -1;\nsetp.ne.u32 %q, %x, 4000;",
        "shfl.sync.idx.b32 %sum, %sum, 3, 0x1c1f, -1;\nsetp.ne.u32 %q, %x, 4000;",
        // The sums themselves tell whose are kept, or all are asked about them.
        "setp.gt.u32 %q, %sum, 0x70000000;",
        "setp.gt.u32 %r, %sum, 0x70000000;\nvote.sync.ballot.b32 %sum, %r, -1;\nsetp.eq.u32 %q, %x, 0;",
        "setp.eq.u32 %q, %x, 0;\nselp.u32 %sum, 1, %sum, %q;\nsetp.ne.u32 %q, %x, 4000;",
        // One lane goes on by another way, and has another number where they meet.
        "setp.ne.u32 %q, %x, 0;\n@%q bra MEET;\nadd.u32 %sum, %sum, 7;\nMEET:\nsetp.lt.u32 %q, %x, 2;",
    ];
    for block in [[64, 1, 1], [48, 1, 1], [16, 4, 1], [32, 2, 1], [24, 2, 1]] {
        let launch = Launch { grid: [1, 1, 1], block };
        let words: Vec<u64> = (1..257u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for steps in [DOWN, UP, MIXED] {
            for who in whose {
                let program = program(&steps, "mad.lo.u32 %sum, %sum, 3, %other", who);
                let what = format!("{block:?}, {steps:?}, {who}");
                launch.must_agree(&program, &words, |words| [words.as_mut_ptr() as u64], &what);
                let mut expected = words.clone();
                launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
                let cpu = Cpu::native().unwrap();
                let compiled = launch.compile_in_gangs(&program, &cpu, Choice::Always).unwrap();
                let mut got = words.clone();
                launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
                assert!(got == expected, "{what} in gangs of {}", compiled.info.gang);
            }
        }
    }
}

#[test]
fn what_no_lane_wants_is_not_added_up() {
    let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1] };
    for cpu in launch::cpus() {
        let sums = |who: &str| {
            let program = program(&DOWN, "add.f32 %sum, %sum, %other", who);
            let text = codegen::emit_text(&program, &launch.shape(), &cpu, Text::Assembly).unwrap();
            text.lines().filter(|line| line.contains("addps\t")).count()
        };
        let (one, all) = (sums(FIRST), sums(EVERY));
        assert!(2 * one <= all, "{one} and {all} on {}", cpu.name());
    }
}
