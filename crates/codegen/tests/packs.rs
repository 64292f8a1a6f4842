//! What each lane has several of in a row, loaded, computed and stored together, against the interpreter.

mod launch;

use std::fmt::Write;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::Program;
use transform::gang::Choice;

/// Where the sums of a lane's elements go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Beside each other, one by one.
    Beside,
    /// Likewise, by stores of all of them.
    Whole,
    /// Far from each other.
    Apart,
}

/// How a kernel of 64 threads treats the elements that each has, so many in a row, of a tile in shared memory.
#[derive(Clone, Copy)]
struct Plot {
    ty: &'static str,
    count: usize,
    /// Sums of products with so many numbers.
    rows: usize,
    /// What is done with a number `l` of all threads, an element `r` and a sum `s`.
    step: &'static str,
    /// One load brings all elements.
    whole_loads: bool,
    /// Sums begin with numbers of each thread's own.
    own_start: bool,
    /// After each tile the sums of a row change places.
    rotated: bool,
    /// One element is used by itself too.
    one_alone: bool,
    /// Whose the number is: so many threads in a row have one of their own, or all the same.
    left_of: Option<u32>,
    /// Only threads below this compute.
    below: usize,
    fate: Fate,
}

const THREADS: usize = 64;
const TILES: usize = 3;
/// Elements of a tile: steps are 4 elements apart, so that the last thread reads beyond what threads have.
const TILE: usize = 5 * THREADS;

const PLOT: Plot = Plot {
    ty: "f32",
    count: 4,
    rows: 3,
    step: "fma.rn.f32 s, l, r, s;",
    whole_loads: false,
    own_start: false,
    rotated: false,
    one_alone: false,
    left_of: None,
    below: THREADS,
    fate: Fate::Beside,
};

impl Plot {
    fn size(&self) -> usize {
        if self.ty.ends_with("64") { 8 } else { 4 }
    }

    fn text(&self) -> String {
        let Plot { ty, count, rows, .. } = *self;
        let (size, bits) = (self.size(), &ty[1..]);
        let each = || (0..rows).flat_map(|row| (0..count).map(move |at| (row, at)));
        let mut text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n\
             .visible .entry kernel(.param .u64 data, .param .u64 out)\n{{\n\
             .shared .align 16 .b8 tile[{}];\n\
             .reg .pred %p;\n.reg .b32 %t, %i, %m, %a, %b, %c, %l0;\n.reg .b64 %data, %out, %x, %y;\n\
             .reg .b{bits} %v, %l, %alone, %r<{count}>, %s<{}>, %z;\n\
             ld.param.u64 %data, [data];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n\
             mul.wide.u32 %x, %t, {size};\nadd.s64 %x, %x, %data;\nmul.lo.u32 %a, %t, {size};\n\
             mov.u32 %b, tile;\nadd.u32 %a, %a, %b;\nmul.lo.u32 %c, %t, {};\nadd.u32 %c, %c, %b;\n\
             mov.b{bits} %alone, 0;\n",
            TILE * size,
            rows * count,
            count * size,
        );
        let line = |text: &mut String, line: String| writeln!(text, "{line}").unwrap();
        for (row, at) in each() {
            let sum = row * count + at;
            match self.own_start {
                true => line(&mut text, format!("ld.global.{ty} %s{sum}, [%x+{}];", (sum * THREADS) * size)),
                false => line(&mut text, format!("mov.b{bits} %s{sum}, 0;")),
            }
        }
        line(&mut text, "mov.u32 %i, 0;\nTILES:".into());
        line(&mut text, format!("mul.wide.u32 %y, %i, {};\nadd.s64 %y, %y, %x;", TILE * size));
        for at in 0..TILE / THREADS {
            let place = at * THREADS * size;
            line(&mut text, format!("ld.global.{ty} %v, [%y+{place}];\nst.shared.{ty} [%a+{place}], %v;"));
        }
        line(&mut text, "bar.sync 0;\nmov.u32 %m, 0;".into());
        line(&mut text, format!("setp.ge.u32 %p, %t, {};\n@%p bra DONE;\nSTEPS:", self.below));
        line(&mut text, format!("mul.lo.u32 %b, %m, {};\nadd.u32 %b, %b, %c;", 4 * size));
        if self.whole_loads {
            let names: Vec<_> = (0..count).map(|at| format!("%r{at}")).collect();
            line(&mut text, format!("ld.shared.v{count}.{ty} {{{}}}, [%b];", names.join(", ")));
        } else {
            for at in 0..count {
                line(&mut text, format!("ld.shared.{ty} %r{at}, [%b+{}];", at * size));
            }
        }
        for row in 0..rows {
            match self.left_of {
                Some(threads) => line(
                    &mut text,
                    format!(
                        "shr.u32 %l0, %t, {};\nmul.wide.u32 %y, %l0, {size};\nadd.s64 %y, %y, %data;\n\
                         ld.global.{ty} %l, [%y+{}];",
                        threads.trailing_zeros(),
                        row * 8 * size
                    ),
                ),
                None => line(
                    &mut text,
                    format!(
                        "mul.wide.u32 %y, %m, {};\nadd.s64 %y, %y, %data;\nld.global.{ty} %l, [%y+{}];",
                        4 * size,
                        (row + 7) * size
                    ),
                ),
            }
            for at in 0..count {
                let sum = format!("%s{}", row * count + at);
                let words = self.step.split(' ').map(|word| {
                    let (name, rest) = word.split_at(word.find([',', ';']).unwrap_or(word.len()));
                    match name {
                        "l" => format!("%l{rest}"),
                        "r" => format!("%r{at}{rest}"),
                        "s" => format!("{sum}{rest}"),
                        _ => word.to_owned(),
                    }
                });
                line(&mut text, words.collect::<Vec<_>>().join(" "));
            }
        }
        if self.one_alone {
            line(&mut text, format!("max.{ty} %alone, %alone, %r1;"));
        }
        line(&mut text, "add.u32 %m, %m, 1;\nsetp.lt.u32 %p, %m, 5;\n@%p bra STEPS;\nDONE:".into());
        if self.rotated {
            for row in 0..rows {
                line(&mut text, format!("mov.b{bits} %z, %s{};", row * count));
                for at in 1..count {
                    let sum = row * count + at;
                    line(&mut text, format!("mov.b{bits} %s{}, %s{sum};", sum - 1));
                }
                line(&mut text, format!("mov.b{bits} %s{}, %z;", row * count + count - 1));
            }
        }
        line(&mut text, "bar.sync 0;\nadd.u32 %i, %i, 1;".into());
        line(&mut text, format!("setp.lt.u32 %p, %i, {TILES};\n@%p bra TILES;"));
        let own = if self.fate == Fate::Apart { size } else { count * size };
        line(&mut text, format!("mul.wide.u32 %x, %t, {own};\nadd.s64 %x, %x, %out;"));
        for row in 0..rows {
            let start = row * count * THREADS * size;
            let sum = |at: usize| format!("%s{}", row * count + at);
            match self.fate {
                Fate::Whole => {
                    let names = (0..count).map(sum).collect::<Vec<_>>().join(", ");
                    line(&mut text, format!("st.global.v{count}.{ty} [%x+{start}], {{{names}}};"));
                }
                fate => (0..count).for_each(|at| {
                    let step = if fate == Fate::Apart { THREADS * size } else { size };
                    line(&mut text, format!("st.global.{ty} [%x+{}], {};", start + at * step, sum(at)));
                }),
            }
        }
        line(&mut text, format!("mul.wide.u32 %x, %t, {size};\nadd.s64 %x, %x, %out;"));
        let end = rows * count * THREADS * size;
        line(&mut text, format!("st.global.{ty} [%x+{end}], %alone;\nret;\n}}"));
        text
    }

    fn program(&self) -> Program {
        let source = self.text();
        launch::kernel_of(&source)
    }
}

fn plots() -> Vec<Plot> {
    let u32 = Plot { ty: "u32", step: "mad.lo.u32 s, l, r, s;", ..PLOT };
    let f64 = Plot { ty: "f64", count: 2, step: "fma.rn.f64 s, l, r, s;", ..PLOT };
    vec![
        PLOT,
        Plot { count: 2, ..PLOT },
        Plot { whole_loads: true, fate: Fate::Whole, ..PLOT },
        Plot { whole_loads: true, count: 2, ..PLOT },
        Plot { fate: Fate::Whole, ..PLOT },
        Plot { fate: Fate::Apart, ..PLOT },
        Plot { own_start: true, ..PLOT },
        Plot { own_start: true, rotated: true, ..PLOT },
        Plot { rotated: true, fate: Fate::Apart, count: 2, ..PLOT },
        Plot { one_alone: true, ..PLOT },
        Plot { left_of: Some(1), ..PLOT },
        Plot { left_of: Some(16), ..PLOT },
        Plot { left_of: Some(16), rotated: true, fate: Fate::Whole, ..PLOT },
        Plot { left_of: Some(16), count: 2, rows: 2, whole_loads: true, ..PLOT },
        Plot { below: 41, ..PLOT },
        Plot { below: 32, rotated: true, ..PLOT },
        Plot { rows: 9, ..PLOT },
        Plot { rows: 1, step: "fma.rn.f32 s, r, r, s;", ..PLOT },
        Plot { step: "fma.rz.ftz.f32 s, r, l, s;", ..PLOT },
        Plot { step: "add.f32 s, s, r; max.f32 s, s, l;", ..PLOT },
        Plot { step: "mul.f32 s, s, l; sub.f32 s, s, r;", own_start: true, ..PLOT },
        Plot { step: "neg.f32 s, s; fma.rn.f32 s, l, r, s; abs.f32 s, s;", ..PLOT },
        u32,
        Plot { step: "xor.b32 s, s, r; add.u32 s, s, l;", rotated: true, ..u32 },
        Plot { step: "shl.b32 s, s, 1; add.u32 s, s, r;", ..u32 },
        f64,
        Plot { step: "fma.rz.f64 s, l, r, s;", ..f64 },
        Plot { whole_loads: true, rotated: true, fate: Fate::Whole, ..f64 },
        Plot { fate: Fate::Apart, own_start: true, ..f64 },
    ]
}

/// Numbers that are finite in each type.
fn words() -> Vec<u64> {
    let float = |at: u64| u64::from((((at * 29) % 61) as f32 / 16.0 - 1.5).to_bits());
    (0..4000).map(|at| float(2 * at) | float(2 * at + 1) << 32).collect()
}

#[test]
fn packs_are_what_their_values_are_one_by_one() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS as u32, 1, 1] };
    for (number, plot) in plots().into_iter().enumerate() {
        let program = plot.program();
        let args = |words: &mut [u64]| [words.as_mut_ptr() as u64, words[1600..].as_mut_ptr() as u64];
        let mut expected = words();
        launch.interpret(&program, &args(&mut expected)).unwrap();
        for cpu in launch::cpus().into_iter().take(3) {
            // Each compilation takes a while.
            let choices = [Choice::WhereItPays, Choice::InStrips, Choice::Always];
            for choice in choices.into_iter().take(if cpu.level() == Level::Baseline { 1 } else { 3 }) {
                let compiled = launch.compile_in_gangs(&program, &cpu, choice).unwrap();
                let mut got = words();
                launch.run(&compiled, &args(&mut got)).unwrap();
                assert!(got == expected, "plot {number} on {}, {choice:?}", cpu.name());
            }
        }
    }
}

/// A plot's code in a text form.
fn text(plot: Plot, text: Text) -> String {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let shape = kernel_abi::Shape::of([1; 3], [THREADS as u32, 1, 1]);
    codegen::emit_text(&plot.program(), &shape, &cpu, text).unwrap()
}

#[test]
fn what_stays_together_is_not_shuffled() {
    let is_shuffle = |line: &&str| ["\tvperm", "\tvshuf", "\tvunpck"].iter().any(|op| line.contains(op));
    let shuffles = |plot: Plot| text(plot, Text::Assembly).lines().filter(is_shuffle).count();
    assert_eq!(shuffles(PLOT), 0);
    assert_eq!(shuffles(Plot { fate: Fate::Whole, ..PLOT }), 0);
    assert_eq!(shuffles(Plot { whole_loads: true, ..PLOT }), 0);
    assert_eq!(shuffles(Plot { count: 2, ..PLOT }), 0);
    assert!(shuffles(Plot { fate: Fate::Apart, ..PLOT }) > 0, "they are told apart at the end");
    assert!(shuffles(Plot { one_alone: true, ..PLOT }) > 0, "what is wanted alone is loaded apart");
    assert_eq!(shuffles(Plot { left_of: Some(16), ..PLOT }), 0);
    assert!(
        shuffles(Plot { left_of: Some(1), ..PLOT }) > 0,
        "a number of each lane's own is in no such order"
    );
}

#[test]
fn a_pack_is_computed_at_once() {
    let is_product = |line: &&str| line.contains("= call") && line.contains("@llvm.fma.");
    let products = |plot: Plot| text(plot, Text::Ir).lines().filter(is_product).count();
    assert_eq!(products(Plot { one_alone: true, ..PLOT }), PLOT.rows * PLOT.count);
    assert_eq!(products(PLOT), PLOT.rows);
}

/// Threads below a limit that double what each has of one array, so many words in a row, into another.
fn doubled(count: usize, is_guarded: bool) -> Program {
    let mut text = String::from(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 from, .param .u64 to)\n{\n\
         .reg .pred %p;\n.reg .b32 %t, %i, %n;\n.reg .f32 %v;\n.reg .b64 %from, %to, %x;\n\
         ld.param.u64 %from, [from];\nld.param.u64 %to, [to];\nmov.u32 %t, %tid.x;\n",
    );
    let bytes = 4 * count;
    writeln!(text, "mul.wide.u32 %x, %t, {bytes};\nadd.s64 %from, %from, %x;\nadd.s64 %to, %to, %x;")
        .unwrap();
    // What a constant bounds would be decided.
    let limit = THREADS * count - 3;
    writeln!(text, "mul.lo.u32 %t, %t, {count};\nmov.u32 %n, %ctaid.x;\nadd.s32 %n, %n, {limit};").unwrap();
    for at in 0..count {
        let place = 4 * at;
        if is_guarded {
            writeln!(text, "add.s32 %i, %t, {at};\nsetp.ge.s32 %p, %i, %n;\n@%p bra L{at};").unwrap();
        }
        writeln!(
            text,
            "ld.global.f32 %v, [%from+{place}];\nadd.f32 %v, %v, %v;\nst.global.f32 [%to+{place}], %v;"
        )
        .unwrap();
        if is_guarded {
            writeln!(text, "L{at}:").unwrap();
        }
    }
    text.push_str("ret;\n}\n");
    launch::kernel_of(&text)
}

#[test]
fn what_is_stored_as_it_was_loaded_stays_together() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS as u32, 1, 1] };
    let cpu = Cpu::level_cpu(Level::Avx512);
    for (count, is_guarded) in [(2, false), (4, false), (8, false), (16, false), (8, true), (4, true)] {
        let program = doubled(count, is_guarded);
        let apart = |words: &mut [u64]| [words.as_mut_ptr() as u64, words[1600..].as_mut_ptr() as u64];
        let in_place = |words: &mut [u64]| [words.as_mut_ptr() as u64; 2];
        launch.must_agree(&program, &words(), apart, format_args!("{count}, {is_guarded}"));
        launch.must_agree(&program, &words(), in_place, format_args!("{count}, {is_guarded}, in place"));
        let text = codegen::emit_text(&program, &launch.shape(), &cpu, Text::Ir).unwrap();
        let sum = format!("= fadd <{} x float>", 32 * count);
        assert!(text.contains(&sum), "{count}, {is_guarded}: {text}");
    }
}
