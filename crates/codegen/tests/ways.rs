//! Ways that all lanes of a warp usually go, told by comparisons of single numbers, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::Program;

const BLOCK: [u32; 3] = [32, 4, 1];

/// Bounds of a picture, as compilers write them; `%x` and `%y` are a thread's place, `%w` and `%h` its extents, `%p` becomes true where there is none.
const BOUNDS: [&str; 7] = [
    "setp.ge.s32 %p, %x, %w; setp.ge.s32 %q, %y, %h; or.pred %p, %p, %q;",
    "setp.lt.s32 %p, %x, %w; setp.lt.s32 %q, %y, %h; and.pred %p, %p, %q; not.pred %p, %p;",
    "setp.le.u32 %p, %w, %x; setp.gt.s32 %q, %h, %y; not.pred %q, %q; or.pred %p, %q, %p;",
    "setp.ge.s32 %p, %x, %w; setp.eq.s32 %q, %y, %h; or.pred %p, %p, %q;",
    // Also of use elsewhere.
    "setp.ge.s32 %p, %x, %w; selp.b32 %v, 3, 4, %p; setp.ge.s32 %q, %y, %h; or.pred %p, %p, %q;",
    // Of what is loaded.
    "ld.global.u32 %v, [%in]; setp.ge.s32 %p, %x, %w; setp.gt.u32 %q, %v, 0xE0000000; or.pred %p, %p, %q;",
    "setp.gt.s32 %p, %x, 40; setp.ge.s32 %q, %x, %w; and.pred %q, %q, %p; setp.lt.s32 %p, %y, 1; or.pred %p, %p, %q;",
];

/// Each thread within bounds loads a number, computes for long, and stores what comes of it. `goes` leaves where `%p` is set.
fn program(bounds: &str, goes: &str) -> Program {
    let work: String =
        (0..80).map(|at| format!("mad.lo.u32 %v, %v, %x, {at};\nmax.u32 %v, %v, %y;\n")).collect();
    let source = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 in, .param .u64 out, .param .u32 w, .param .u32 h)\n{{\n\
         .reg .pred %p, %q;\n.reg .b32 %x, %y, %w, %h, %v, %n;\n.reg .b64 %in, %out, %step;\n\
         ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nld.param.u32 %w, [w];\nld.param.u32 %h, [h];\n\
         mov.u32 %n, %tid.y;\nmov.u32 %x, %tid.x;\nmov.u32 %y, %ctaid.x;\nshl.b32 %y, %y, 2;\nadd.u32 %y, %y, %n;\n\
         mad.lo.u32 %n, %y, 32, %x;\nmul.wide.u32 %step, %n, 4;\nadd.u64 %in, %in, %step;\nadd.u64 %out, %out, %step;\n\
         mov.u32 %v, 5;\n{bounds}\n{goes}\n\
         IN:\nld.global.u32 %n, [%in];\nadd.u32 %v, %v, %n;\n{work}st.global.u32 [%out], %v;\nOUT:\nret;\n}}"
    );
    launch::kernel_of(&source)
}

#[test]
fn threads_within_bounds_do_what_they_do_alone() {
    let launch = Launch { grid: [2, 1, 1], block: BLOCK };
    let words: Vec<u64> = (1..=2 * 128u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for (number, bounds) in BOUNDS.into_iter().enumerate() {
        let program = program(bounds, ["@%p bra OUT;", "@!%p bra IN;\nbra OUT;"][number % 2]);
        for (w, h) in [(32, 8), (31, 5), (-1, 8), (40, 0), (i32::MIN, i32::MAX)] {
            let extents = u64::from(w as u32) | u64::from(h as u32) << 32;
            let params =
                |words: &mut [u64]| [words.as_mut_ptr() as u64, words[128..].as_mut_ptr() as u64, extents];
            launch.must_agree(&program, &words, params, format_args!("{bounds} {w} × {h}"));
        }
    }
}

#[test]
fn lanes_are_asked_only_where_some_may_go_elsewhere() {
    let compares =
        |text: &str| text.lines().filter(|line| line.contains("icmp") && line.contains("<32 x i32>")).count();
    for bounds in &BOUNDS[..3] {
        let program = program(bounds, "@%p bra OUT;");
        let shape = kernel_abi::Shape::of([2, 1, 1], BLOCK);
        let text = codegen::emit_text(&program, &shape, &Cpu::level_cpu(Level::Avx512), Text::Ir).unwrap();
        let (before, asked) = text.split_once("\nsome:").expect("a block for where some may");
        assert_eq!(compares(before), 0, "{text}");
        assert!(compares(asked.split_once("\nmasks:").map_or(asked, |(some, _)| some)) > 0, "{text}");
    }
}
