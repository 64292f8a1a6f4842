//! Memory that is asked for long before it is read: what kernels that stream read, and nothing else.
#![cfg(target_arch = "x86_64")]

mod launch;

use codegen::target::{Cpu, Level};
use codegen::{Plan, Text};
use kernel_abi::Shape;
use simt_ir::Program;

const SHAPE: fn() -> Shape = || Shape::of([8, 1, 1], [256, 1, 1]);

/// Each thread has an element of `x`, whose address is `%x`, and one of `y`, whose is `%y`.
fn program(step: &str) -> Program {
    let source = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 x, .param .u64 y)\n{{\n\
         .reg .b32 %t, %n, %b;\n.reg .f32 %f<6>;\n.reg .b64 %x, %y, %step;\n.reg .pred %p;\n\
         ld.param.u64 %x, [x];\nld.param.u64 %y, [y];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %b, %ctaid.x;\n\
         mad.lo.u32 %t, %b, %n, %t;\nmul.wide.u32 %step, %t, 4;\n\
         add.u64 %x, %x, %step;\nadd.u64 %y, %y, %step;\n{step}\nret;\n}}"
    );
    launch::kernel_of(&source)
}

/// How far from what is read the lines are that the code asks for, next to the processor.
fn asked(step: &str, level: Level, plan: Plan) -> Vec<u32> {
    asked_by("prefetcht0", step, level, plan)
}

/// Likewise, by this instruction.
fn asked_by(instruction: &str, step: &str, level: Level, plan: Plan) -> Vec<u32> {
    let text = codegen::emit_text_as(&program(step), &SHAPE(), &Cpu::level_cpu(level), plan, Text::Assembly)
        .unwrap();
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(instruction));
    let mut distances: Vec<u32> =
        lines.map(|line| line.trim().split('(').next().unwrap().parse().unwrap_or(0)).collect();
    distances.sort_unstable();
    distances
}

const SUM: &str =
    "ld.global.f32 %f0, [%x]; ld.global.f32 %f1, [%y]; add.rn.f32 %f0, %f0, %f1; st.global.f32 [%y], %f0;";

#[test]
fn each_line_that_a_warp_reads_in_order_is_asked_for() {
    for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
        assert_eq!(asked(SUM, level, Plan::FULL), [4096, 4096, 4160, 4160], "{level:?}");
    }
}

#[test]
fn neighbours_share_their_lines() {
    let step = "ld.global.f32 %f0, [%x]; ld.global.f32 %f1, [%x+4]; add.rn.f32 %f0, %f0, %f1; st.global.f32 [%y], %f0;";
    assert_eq!(asked(step, Level::Avx512, Plan::FULL), [4096, 4160]);
}

/// Each thread sums up two members of a structure of so many bytes.
fn members(bytes: u32) -> String {
    format!(
        "ld.param.u64 %x, [x]; mul.wide.u32 %step, %t, {bytes}; add.u64 %x, %x, %step;\n\
         ld.global.f32 %f0, [%x]; ld.global.f32 %f1, [%x+4]; add.rn.f32 %f0, %f0, %f1; st.global.f32 [%y], %f0;"
    )
}

#[test]
fn structures_are_asked_for_as_a_whole() {
    let lines = |bytes: u32| (0..bytes / 2).map(|line| 4096 + 64 * line).collect::<Vec<_>>();
    for bytes in [12, 20, 32, 128] {
        assert_eq!(asked(&members(bytes), Level::Avx512, Plan::FULL), lines(bytes), "{bytes}");
    }
    for bytes in [8, 16, 256] {
        assert!(asked(&members(bytes), Level::Avx512, Plan::FULL).is_empty(), "{bytes}");
    }
}

#[test]
fn nothing_is_asked_for_that_does_not_go_on() {
    let same_for_all = "ld.param.u64 %x, [x]; ld.global.f32 %f0, [%x]; st.global.f32 [%y], %f0;";
    let ordered = "ld.relaxed.gpu.global.f32 %f0, [%x]; st.global.f32 [%y], %f0;";
    let in_a_loop = "mov.b32 %f0, 0f00000000;\nloop: ld.global.f32 %f1, [%x]; add.rn.f32 %f0, %f0, %f1; add.u64 %x, %x, 65536;\n\
                     sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra loop; st.global.f32 [%y], %f0;";
    for step in [same_for_all, ordered, in_a_loop] {
        assert!(asked(step, Level::Avx512, Plan::FULL).is_empty(), "{step}");
    }
    // The places are asked for, but not what is there.
    let anywhere = "ld.global.u32 %t, [%y]; ld.param.u64 %x, [x]; mul.wide.u32 %step, %t, 4; add.u64 %x, %x, %step;\n\
                    ld.global.f32 %f0, [%x]; st.global.f32 [%y], %f0;";
    assert_eq!(asked(anywhere, Level::Avx512, Plan::FULL), [4096, 4160]);
}

/// A loop over what each lane has of structures of so many bytes, which goes on by so much.
fn structures(bytes: u32, step: u32, load: &str) -> String {
    format!(
        "ld.param.u64 %x, [x]; mul.wide.u32 %step, %t, {bytes}; add.u64 %x, %x, %step; mov.b32 %f0, 0f00000000;\n\
         loop: {load} add.rn.f32 %f0, %f0, %f1; add.u64 %x, %x, {step};\n\
         sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra loop; st.global.f32 [%y], %f0;"
    )
}

#[test]
fn a_loop_asks_for_structures_that_are_farther_on() {
    let load = "ld.global.f32 %f1, [%x];";
    let lines = |count: u32, from: u32| (0..count).map(move |line| from + 64 * line);
    for level in [Level::Avx2, Level::Avx512] {
        let asked = |bytes, step, load| asked(&structures(bytes, step, load), level, Plan::FULL);
        assert_eq!(asked(12, 2304, load), lines(7, 2304).collect::<Vec<_>>(), "{level:?}");
        assert!(asked(12, 128, load).is_empty(), "{level:?}: processors see it go on");
        assert!(asked(48, 2304, load).is_empty(), "{level:?}: lanes are far apart");
        let parts = "ld.global.f32 %f1, [%x]; ld.global.f32 %f2, [%x+8]; add.rn.f32 %f1, %f1, %f2;";
        assert_eq!(asked(12, 2304, parts).len(), 7, "{level:?}: the same lines");
    }
}

/// A loop whose iterations do `body`, which has a pitch.
fn rows(body: &str) -> String {
    format!(
        "ld.param.u64 %step, [y]; mov.b32 %f0, 0f00000000;\n\
         loop: {body}\n\
         sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra loop; st.global.f32 [%y], %f0;"
    )
}

/// How far from what is read the lines are that a loop asks for to be in the second cache.
fn asked_beside(body: &str) -> Vec<u32> {
    asked_by("prefetcht1", &rows(body), Level::Avx512, Plan::FULL)
}

#[test]
fn a_loop_over_rows_asks_for_what_lies_beside() {
    let sum = "ld.global.f32 %f1, [%x]; add.rn.f32 %f0, %f0, %f1;";
    assert_eq!(asked_beside(&format!("{sum} add.u64 %x, %x, %step;")), [256, 320]);
    assert_eq!(asked_beside(&format!("{sum} add.u64 %x, %x, 65536;")), [256, 320]);
    assert_eq!(asked_beside(&format!("{sum} add.u64 %x, %x, -65536;")), [256, 320]);
    let near = format!("{sum} ld.global.f32 %f2, [%x+4]; add.rn.f32 %f0, %f0, %f2; add.u64 %x, %x, %step;");
    assert_eq!(asked_beside(&near), [256, 320], "neighbours share their lines");
    assert_eq!(asked_beside("st.global.f32 [%x], %f0; add.u64 %x, %x, %step;"), [256, 320]);
    let unrolled = format!("{sum} add.u64 %x, %x, %step; ").repeat(3);
    assert_eq!(asked_beside(&unrolled).len(), 6, "each row is asked for");
}

#[test]
fn rows_are_not_asked_for_that_are_near_or_unknown() {
    let sum = "ld.global.f32 %f1, [%x]; add.rn.f32 %f0, %f0, %f1;";
    for step in [
        "add.u64 %x, %x, 128;",
        "mul.wide.u32 %step, %t, 4; add.u64 %x, %x, %step;",
        "shr.u64 %x, %x, 1;",
        "ld.global.u64 %step, [%y]; add.u64 %x, %x, %step;",
    ] {
        assert!(asked_beside(&format!("{sum} {step}")).is_empty(), "{step}");
    }
    let same_for_all = "ld.global.f32 %f1, [%step]; add.rn.f32 %f0, %f0, %f1; add.u64 %step, %step, 65536;";
    assert!(asked_beside(same_for_all).is_empty());
    let ordered = "ld.relaxed.gpu.global.f32 %f1, [%x]; add.rn.f32 %f0, %f0, %f1; add.u64 %x, %x, %step;";
    assert!(asked_beside(ordered).is_empty());
}

#[test]
fn quick_code_asks_for_nothing() {
    let in_a_loop = structures(12, 2304, "ld.global.f32 %f1, [%x];");
    for step in [SUM, &in_a_loop] {
        assert!(asked(step, Level::Avx512, Plan::QUICK).is_empty());
    }
    let rows = rows("ld.global.f32 %f1, [%x]; add.rn.f32 %f0, %f0, %f1; add.u64 %x, %x, %step;");
    assert!(asked_by("prefetcht1", &rows, Level::Avx512, Plan::QUICK).is_empty());
}

#[test]
fn blocks_that_read_much_ask_for_nothing() {
    let loads: Vec<String> =
        (0..5).map(|at| format!("ld.global.f32 %f{at}, [%x]; add.u64 %x, %x, 1048576;")).collect();
    let sums: Vec<String> = (1..5).map(|at| format!("add.rn.f32 %f0, %f0, %f{at};")).collect();
    let step = format!("{} {} st.global.f32 [%y], %f0;", loads.join(" "), sums.join(" "));
    assert!(asked(&step, Level::Avx512, Plan::FULL).is_empty());
}
