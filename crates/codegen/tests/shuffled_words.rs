//! Words of 64 bits that lanes give each other half by half, against the interpreter.

mod launch;

use codegen::target::{Cpu, Level};
use codegen::{Choice, Text};
use launch::Launch;
use simt_ir::Program;

/// Each thread's word becomes what the shuffles, of `low` and of `high`, make of its halves, several times. Blocks meet between.
fn program(low: &str, high: &str, more: &str) -> Program {
    launch::kernel_of(&format!(
        ".version 8.0
        .target sm_80
        .address_size 64
        .visible .entry kernel(.param .u64 words) {{
            .reg .pred %p, %q;
            .reg .b32 %low, %high, %thread, %round, %lane;
            .reg .b64 %words, %at, %word, %sum;
            .shared .align 4 .b32 kept[1024];
            .reg .b32 %own, %kept;
            ld.param.u64 %words, [words];
            mov.u32 %thread, %tid.x;
            and.b32 %lane, %thread, 31;
            mul.wide.u32 %at, %thread, 8;
            add.u64 %words, %words, %at;
            ld.global.u64 %sum, [%words];
            mov.u32 %round, 0;
            mov.u32 %kept, kept;
            mad.lo.u32 %own, %thread, 4, %kept;
        again:
            st.shared.u32 [%own], %round;
            bar.sync 0;
            ld.shared.u32 %kept, [%own];
            mov.b64 {{%low, %high}}, %sum;
            shfl.sync.{low};
            shfl.sync.{high};
            {more}
            mov.b64 %word, {{%low, %high}};
            mul.lo.u64 %sum, %sum, 3;
            add.u64 %sum, %sum, %word;
            add.u32 %round, %kept, 1;
            setp.lt.u32 %p, %round, 5;
            @%p bra again;
            st.global.u64 [%words], %sum;
            ret;
        }}"
    ))
}

/// Those of a word as a whole.
const WHOLE: &[[&str; 2]] = &[
    ["down.b32 %low, %low, 16, 31, -1", "down.b32 %high, %high, 16, 31, -1"],
    ["up.b32 %low, %low, 3, 0, -1", "up.b32 %high, %high, 3, 0, -1"],
    ["bfly.b32 %low, %low, 5, 0x1807, -1", "bfly.b32 %high, %high, 5, 0x1807, -1"],
    ["idx.b32 %low, %low, 7, 31, -1", "idx.b32 %high, %high, 7, 31, -1"],
];

/// Others: halves go different ways, from lanes that are not known, change places, or are told whether they come from anywhere.
const APART: &[[&str; 3]] = &[
    ["down.b32 %low, %low, 16, 31, -1", "down.b32 %high, %high, 8, 31, -1", ""],
    ["down.b32 %low, %low, 4, 31, -1", "up.b32 %high, %high, 4, 0, -1", ""],
    ["idx.b32 %low, %low, %lane, 31, -1", "idx.b32 %high, %high, %lane, 31, -1", ""],
    ["down.b32 %low, %high, 1, 31, -1", "down.b32 %high, %low, 1, 31, -1", ""],
    ["down.b32 %low|%q, %low, 9, 31, -1", "down.b32 %high, %high, 9, 31, -1", "@%q add.u32 %low, %low, 1;"],
    ["down.b32 %low, %low, 9, 31, -1", "down.b32 %high, %high, 9, 31, -1", "add.u32 %low, %low, 1;"],
];

fn agrees(program: &Program, what: &str) {
    for threads in [32, 48, 256] {
        let launch = Launch { grid: [1, 1, 1], block: [threads, 1, 1] };
        let start: Vec<u64> =
            (0..threads).map(|at| u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut expected = start.clone();
        launch.interpret(program, &[expected.as_mut_ptr() as u64]).unwrap();
        for cpu in launch::cpus() {
            let always = launch.compile_in_gangs(program, &cpu, Choice::Always).unwrap();
            for compiled in [launch.compile(program, &cpu).unwrap(), always] {
                let mut got = start.clone();
                launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
                assert_eq!(got, expected, "{what}, {threads} threads on {}", cpu.name());
            }
        }
    }
}

#[test]
fn halves_come_from_where_they_are_said_to() {
    for [low, high] in WHOLE {
        agrees(&program(low, high, ""), low);
    }
    for [low, high, more] in APART {
        agrees(&program(low, high, more), low);
    }
}

#[test]
fn what_is_exchanged_alike_is_so_as_a_whole() {
    let shape = kernel_abi::Shape::of([8, 1, 1], [32, 1, 1]);
    let cpu = Cpu::level_cpu(Level::Avx512);
    // Those by which vectors are made of others have nothing on one side.
    let exchanges = |program: &Program, bits: u32| {
        let text = codegen::emit_text(program, &shape, &cpu, Text::Ir).unwrap();
        let of_these = format!("shufflevector <32 x i{bits}>");
        text.lines().filter(|line| line.contains(&of_these) && !line.contains("poison")).count()
    };
    for [low, high] in &WHOLE[..3] {
        let program = program(low, high, "");
        assert_eq!([32, 64].map(|bits| exchanges(&program, bits)), [0, 1], "{low}");
    }
    for [low, high, more] in APART {
        assert_eq!(exchanges(&program(low, high, more), 64), 0, "{low}");
    }
}
