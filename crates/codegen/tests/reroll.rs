//! Loops as compilers unroll them, of lanes with different numbers of iterations, against the interpreter.
#![cfg(target_arch = "x86_64")]

mod launch;

use std::fmt::Write;

use codegen::Choice;
use launch::{Launch, cpus, kernel_of};
use simt_ir::Program;

const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// A loop by threads, `for (i = first + thread; i < limit; i += step)`, unrolled.
#[derive(Clone, Copy, Debug)]
struct Loop<'a> {
    times: u32,
    step: &'a str,
    /// What else `%i` begins with, and the limit `%n`.
    row: &'a str,
    /// How the iterations are computed as `%left`, and less one as `%trips`.
    count: &'a str,
    /// What is computed before each of the two loops.
    before: &'a str,
    /// What it does with `%i` and the address `%a` of its element, to `%sum`.
    body: &'a str,
    /// How the second loop has its addresses: of its own from iteration to iteration, or computed from the index again.
    own_address: bool,
    /// What the last one of those that the second loop does at once does instead.
    last: Option<&'a str>,
    /// Whether the second loop is left out, by the iterations less one in `%trips`.
    short: &'a str,
}

const SUM: &str = "ld.global.u32 %v, [%a];\nmad.lo.u32 %sum, %sum, 3, %v;\n";
const PLAIN: Loop<'static> = Loop {
    times: 4,
    step: "64",
    row: "",
    count: "not.b32 %v, %i;\nadd.s32 %v, %v, %n;\ndiv.u32 %trips, %v, %step;\nadd.s32 %left, %trips, 1;",
    before: "",
    body: SUM,
    own_address: true,
    last: None,
    short: "setp.lt.u32 %p, %trips, 3;",
};

fn program(unrolled: Loop<'_>) -> Program {
    let Loop { times, step, row, count, before, body, own_address, last, short } = unrolled;
    let mut again = String::new();
    for at in 0..times {
        if !own_address {
            again += "mul.wide.s32 %x, %i, 4;\nadd.u64 %a, %data, %x;\n";
        }
        again += last.filter(|_| at == times - 1).unwrap_or(body);
        again += "add.s32 %i, %i, %step;\n";
        if own_address {
            again += "add.u64 %a, %a, %bytes;\n";
        }
    }
    let mut text = String::new();
    write!(
        text,
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 data, .param .u64 out, .param .u32 first, .param .u32 limit, .param .u32 by)\n{{\n\
         .reg .b32 %t, %i, %n, %v, %sum, %trips, %left, %step, %by, %f;\n.reg .b64 %data, %out, %a, %x, %bytes;\n.reg .pred %p;\n\
         ld.param.u64 %data, [data];\nld.param.u64 %out, [out];\nld.param.u32 %i, [first];\nld.param.u32 %n, [limit];\n\
         ld.param.u32 %by, [by];\nmov.u32 %step, {step};\nmov.u32 %t, %tid.x;\nadd.s32 %i, %i, %t;\nmov.u32 %sum, 7;\n\
         {row}setp.ge.s32 %p, %i, %n;\n@%p bra done;\n\
         {count}\n\
         and.b32 %left, %left, {};\nmul.wide.s32 %bytes, %step, 4;\nsetp.eq.s32 %p, %left, 0;\n@%p bra several;\n\
         mul.wide.s32 %x, %i, 4;\nadd.u64 %a, %data, %x;\n{before}\n\
         one:\n{body}add.s32 %i, %i, %step;\nadd.u64 %a, %a, %bytes;\nadd.s32 %left, %left, -1;\n\
         setp.ne.s32 %p, %left, 0;\n@%p bra one;\n\
         several:\n{short}\n@%p bra done;\nmul.wide.s32 %x, %i, 4;\nadd.u64 %a, %data, %x;\n{before}\n\
         again:\n{again}setp.lt.s32 %p, %i, %n;\n@%p bra again;\n\
         done:\nmul.wide.u32 %x, %t, 4;\nadd.u64 %out, %out, %x;\nst.global.u32 [%out], %sum;\nret;\n}}",
        times - 1,
    )
    .unwrap();
    kernel_of(&text)
}

fn agrees(unrolled: Loop<'_>, first: i32, limit: i32, by: i32) {
    let words: Vec<u64> = (0..1000u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let args = |words: &mut [u64]| {
        let start = words.as_mut_ptr() as u64;
        let [first, limit, by] = [first, limit, by].map(|number| u64::from(number as u32));
        [start, start + 4 * 1800, first | limit << 32, by]
    };
    LAUNCH.must_agree(&program(unrolled), &words, args, format_args!("{unrolled:?} {first} {limit} {by}"));
}

/// Sums whose order tells, loops that store, and numbers alone.
const LOOPS: [Loop<'static>; 9] = [
    PLAIN,
    Loop { own_address: false, ..PLAIN },
    Loop { times: 2, short: "setp.lt.u32 %p, %trips, 1;", ..PLAIN },
    Loop { times: 8, short: "setp.lt.u32 %p, %trips, 7;", ..PLAIN },
    Loop { step: "%by", own_address: false, ..PLAIN },
    Loop {
        body: "ld.global.u32 %v, [%a];\nadd.u32 %v, %v, %i;\nst.global.u32 [%a], %v;\nxor.b32 %sum, %sum, %v;\n",
        ..PLAIN
    },
    Loop { body: "mad.lo.u32 %sum, %sum, 3, %i;\n", ..PLAIN },
    Loop {
        before: "mul.lo.u32 %f, %t, %t;\nxor.b32 %f, %f, %by;",
        body: "ld.global.u32 %v, [%a];\nmad.lo.u32 %sum, %sum, %f, %v;\n",
        ..PLAIN
    },
    Loop { body: "mad.lo.u32 %sum, %sum, 3, %i;\n", step: "%by", ..PLAIN },
];

#[test]
fn each_iteration_is_done_once_and_in_order() {
    for unrolled in LOOPS {
        for limit in [0, 1, 64, 100, 257, 511, 1023] {
            agrees(unrolled, 0, limit, 64);
        }
        agrees(unrolled, 3, 500, 80);
    }
}

#[test]
fn rolled_loops_are_of_lanes_side_by_side() {
    let blocks = |unrolled: Loop<'_>| {
        let shape = LAUNCH.shape();
        let split = transform::within::split(program(unrolled).kernel(), &shape);
        split.map_or(0, |func| func.blocks().len())
    };
    for unrolled in LOOPS {
        // With the loop that is there once more: tests, a way in, itself, a way out.
        let other = format!("{}xor.b32 %sum, %sum, 1;\n", unrolled.body);
        let broken = Loop { last: Some(&other), ..unrolled };
        assert!(blocks(unrolled) >= blocks(broken) + 4, "{unrolled:?}");
    }
}

#[test]
fn what_only_looks_unrolled_is_left_as_it_is() {
    let others = [
        // Another factor, another element, another sum, a store instead, in another order.
        Loop { last: Some("ld.global.u32 %v, [%a];\nmad.lo.u32 %sum, %sum, 5, %v;\n"), ..PLAIN },
        Loop { last: Some("ld.global.u32 %v, [%a+4];\nmad.lo.u32 %sum, %sum, 3, %v;\n"), ..PLAIN },
        Loop { last: Some("ld.global.u32 %v, [%a];\nmad.lo.u32 %sum, %v, 3, %sum;\n"), ..PLAIN },
        Loop {
            last: Some("ld.global.u32 %v, [%a];\nst.global.u32 [%a], %sum;\nmad.lo.u32 %sum, %sum, 3, %v;\n"),
            ..PLAIN
        },
        // The second loop is left out sooner, or later.
        Loop { short: "setp.lt.u32 %p, %trips, 5;", ..PLAIN },
        Loop { short: "setp.lt.u32 %p, %trips, 2;", ..PLAIN },
        Loop { short: "setp.eq.u32 %p, %t, 5;", ..PLAIN },
    ];
    for unrolled in others {
        for limit in [100, 257, 300, 511, 700] {
            agrees(unrolled, 0, limit, 64);
        }
    }
}

#[test]
fn large_numbers_and_steps_are_counted_as_they_were() {
    for number in [
        Loop { body: "mad.lo.u32 %sum, %sum, 3, %i;\n", step: "%by", ..PLAIN },
        Loop {
            body: "mad.lo.u32 %sum, %sum, 3, %i;\ncvt.s64.s32 %x, %i;\nshr.u64 %x, %x, 3;\ncvt.u32.u64 %v, %x;\nadd.u32 %sum, %sum, %v;\n",
            step: "%by",
            ..PLAIN
        },
        Loop {
            body: "mad.lo.u32 %sum, %sum, 3, %i;\ncvt.u64.u32 %x, %i;\nshr.u64 %x, %x, 3;\ncvt.u32.u64 %v, %x;\nadd.u32 %sum, %sum, %v;\n",
            step: "%by",
            ..PLAIN
        },
    ] {
        for (first, limit, by) in [
            (i32::MAX - 900, i32::MAX - 400, 64),
            (i32::MIN, i32::MIN + 700, 64),
            (-200, 300, 64),
            (0, 3 << 29, 1 << 29),
            (-1 << 30, 1 << 30, 900_000_000),
            (-1 << 30, 1 << 30, 400_000_000),
            (0, 1000, i32::MIN),
        ] {
            agrees(number, first, limit, by);
        }
    }
}

/// `for (i = first; i < limit; i++)` by a thread, over a row that memory tells: the first number, and in which distance the limit is.
const ROW: Loop<'static> = Loop {
    step: "1",
    row: "mul.wide.u32 %x, %t, 4;\nadd.u64 %a, %data, %x;\nld.global.u32 %i, [%a];\nand.b32 %i, %i, 511;\n\
          ld.global.u32 %n, [%a+256];\nand.b32 %n, %n, 127;\nadd.s32 %n, %n, %i;\nadd.s32 %n, %n, -5;\n",
    count: "add.s32 %v, %i, 1;\nmax.s32 %v, %n, %v;\nnot.b32 %trips, %i;\nadd.s32 %trips, %v, %trips;\nadd.s32 %left, %trips, 1;",
    ..PLAIN
};

/// The iterations as compilers count them of a row.
const COUNTED: &str =
    "add.s32 %v, %i, 1;\nmax.s32 %v, %n, %v;\nsub.s32 %left, %v, %i;\nadd.s32 %trips, %left, -1;";

/// Likewise where memory tells the limit, and a branch before the loops that there are some.
const LIMITED: Loop<'static> = Loop {
    row: "mul.wide.u32 %x, %t, 4;\nadd.u64 %a, %data, %x;\nld.global.u32 %i, [%a];\nand.b32 %i, %i, 511;\n\
          ld.global.u32 %n, [%a+256];\nand.b32 %n, %n, 511;\n",
    count: "sub.s32 %left, %n, %i;\nnot.b32 %trips, %i;\nadd.s32 %trips, %n, %trips;",
    ..ROW
};

fn agrees_singly(unrolled: Loop<'_>, first: i32, limit: i32) {
    let program = program(unrolled);
    let words: Vec<u64> = (0..1000u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let args = |words: &mut [u64]| {
        let start = words.as_mut_ptr() as u64;
        let [first, limit] = [first, limit].map(|number| u64::from(number as u32));
        [start, start + 4 * 1800, first | limit << 32, 1]
    };
    let mut expected = words.clone();
    LAUNCH.interpret(&program, &args(&mut expected)).unwrap();
    for cpu in cpus() {
        let compiled = LAUNCH.compile_in_gangs(&program, &cpu, Choice::Singly).unwrap();
        let mut got = words.clone();
        LAUNCH.run(&compiled, &args(&mut got)).unwrap();
        assert!(got == expected, "{unrolled:?} {first} {limit} on {}", cpu.name());
    }
}

#[test]
fn lanes_one_at_a_time_take_their_rows_in_one_loop() {
    let numbers = Loop { row: "", body: "mad.lo.u32 %sum, %sum, 3, %i;\n", ..ROW };
    for row in [ROW, Loop { count: COUNTED, ..ROW }, LIMITED] {
        for unrolled in [
            row,
            Loop { own_address: false, ..row },
            Loop { times: 8, short: "setp.lt.u32 %p, %trips, 7;", ..row },
            Loop { last: Some("ld.global.u32 %v, [%a];\nmad.lo.u32 %sum, %sum, 5, %v;\n"), ..row },
            Loop { short: "setp.lt.u32 %p, %trips, 5;", ..row },
        ] {
            agrees_singly(unrolled, 0, 0);
        }
        for (first, limit) in [(i32::MAX - 90, i32::MAX), (i32::MIN, i32::MIN + 66), (-40, 30), (5, 5)] {
            agrees_singly(Loop { count: row.count, ..numbers }, first, limit);
        }
    }
}

#[test]
fn lanes_that_run_by_themselves_have_rolled_loops() {
    let size = |unrolled: Loop<'_>| {
        let program = program(unrolled);
        let shape = LAUNCH.shape();
        let registers = transform::gang::Registers { count: 32, bytes: 64 };
        let (lane, prepared) =
            transform::gang::choose(program.kernel(), &shape, registers, Choice::WhereItPays).unwrap();
        assert_eq!(lane.lanes(), 1, "{unrolled:?}");
        let blocks = prepared.cfg.order();
        (blocks.len(), blocks.iter().map(|block| prepared.func.block(*block).insts.len()).sum::<usize>())
    };
    let counted = Loop { count: COUNTED, ..ROW };
    let broken = Loop { last: Some("ld.global.u32 %v, [%a];\nmad.lo.u32 %sum, %sum, 5, %v;\n"), ..ROW };
    for unrolled in [ROW, counted] {
        assert!(size(unrolled).0 >= size(broken).0 + 3, "{unrolled:?}");
    }
    assert!(
        size(counted).1 + 5 < size(ROW).1,
        "what is known of the number of iterations need not be tested"
    );
    let known = LIMITED;
    assert!(size(known).1 + 15 < size(counted).1, "nothing needs to be");
    let later = Loop { short: "setp.lt.u32 %p, %trips, 2;", ..known };
    assert!(size(later).1 > size(known).1 + 15, "but for which of the loops there are");
}
