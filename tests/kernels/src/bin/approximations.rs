//! `approximations [--step N] [FORM]...`: the largest error of the fast `.approx` instructions of f32 over all 2^32 operands, as code for
//! the best processor that this one can stand in for; of the divisions, over 2^32 pairs. `--step N` looks at every N-th
//! operand only.
//!
//! Prints a line a form: error in units in the last place of the exact result, and as a power of two absolute and relative, the
//! latter of normal results. In every sixteenth block of operands, all other kinds of code must give the same bits, and the form with
//! `.ftz` is compared. A negative operand whose result mirrors that of the positive one has its error.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kernel_abi::CompiledKernel;
use kernel_tests::backend;
use kernel_tests::machine::{self, Grid};
use kernel_tests::module::Loaded;

/// An instruction, what it should give, and how many operands it has.
struct Form {
    name: &'static str,
    exact: Exact,
    operands: usize,
    /// What the sign of the operand changes in the result's bits, and in the exact value: nothing or the sign.
    mirror: Option<u32>,
}

/// Operands whose errors are told apart: a name, and which they are.
type Class = (&'static str, fn(f64) -> bool);

/// What a result is compared with.
enum Exact {
    /// It is the exact value, rounded.
    Rounded(fn(f32, f32) -> f32),
    /// The value, of these operands.
    Value(fn(f64) -> f64, &'static [Class]),
}

const ALL: &[Class] = &[("all operands", |_| true)];
const NEAR_ONE: &[Class] =
    &[("in [0.5, 2]", |x| (0.5..=2.0).contains(&x)), ("elsewhere", |x| !(0.5..=2.0).contains(&x))];
const ANGLES: &[Class] = &[
    ("up to 2pi", |x| x.abs() <= std::f64::consts::TAU),
    ("up to 100pi", |x| x.abs() <= 50.0 * std::f64::consts::TAU),
];
const SIGN: Option<u32> = Some(1 << 31);
const FORMS: &[Form] = &[
    Form { name: "rcp.approx", exact: Exact::Rounded(|x, _| 1.0 / x), operands: 1, mirror: SIGN },
    Form { name: "sqrt.approx", exact: Exact::Rounded(|x, _| x.sqrt()), operands: 1, mirror: None },
    Form { name: "rsqrt.approx", exact: Exact::Value(|x| 1.0 / x.sqrt(), ALL), operands: 1, mirror: None },
    Form { name: "ex2.approx", exact: Exact::Value(f64::exp2, ALL), operands: 1, mirror: None },
    Form { name: "lg2.approx", exact: Exact::Value(f64::log2, NEAR_ONE), operands: 1, mirror: None },
    Form { name: "sin.approx", exact: Exact::Value(f64::sin, ANGLES), operands: 1, mirror: SIGN },
    Form { name: "cos.approx", exact: Exact::Value(f64::cos, ANGLES), operands: 1, mirror: Some(0) },
    Form { name: "tanh.approx", exact: Exact::Value(f64::tanh, ALL), operands: 1, mirror: SIGN },
    Form {
        name: "div.approx",
        exact: Exact::Rounded(divided_by_what_has_a_reciprocal),
        operands: 2,
        mirror: None,
    },
    Form { name: "div.full", exact: Exact::Rounded(|x, y| x / y), operands: 2, mirror: None },
];

/// Divisors beyond 2^126 count as infinite.
fn divided_by_what_has_a_reciprocal(x: f32, y: f32) -> f32 {
    let infinite = y.abs() > 126f32.exp2();
    x / if infinite { f32::INFINITY.copysign(y) } else { y }
}

/// Operands of a launch.
const CHUNK: u64 = 1 << 20;

fn main() -> ExitCode {
    let (mut step, mut wanted) = (1, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--step" => step = args.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0).unwrap_or(1),
            _ => wanted.push(arg),
        }
    }
    let chosen = FORMS.iter().filter(|form| wanted.is_empty() || wanted.iter().any(|name| name == form.name));
    // Every form, whatever the others gave.
    let sound = chosen.map(|form| measure(form, step)).filter(|sound| !sound).count() == 0;
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Of so many blocks of operands, one is given to all kinds of code.
const COMPARED: u64 = 16;

/// Prints the errors of a form; whether all kinds of code agree.
fn measure(form: &Form, step: u64) -> bool {
    let grid =
        Grid { grid: [(CHUNK / 256) as u32, 1, 1], block: [256, 1, 1], dynamic_shared: 0, cluster: None };
    // The best first.
    let names: Vec<String> = backend::names().into_iter().rev().filter(|name| name != "interp").collect();
    let compile = |suffix: &str| -> Vec<Arc<dyn CompiledKernel>> {
        let loaded = Loaded::new(&kernel(form, suffix)).expect("the kernel is right");
        let compile = |name: &String| {
            let backend = backend::open(name).expect("the name opens");
            loaded.compile(&*backend, "k", grid).expect("the kernel compiles")
        };
        names.iter().map(compile).collect()
    };
    // The hyperbolic tangent has no form that flushes.
    let flushing = if form.name == "tanh.approx" { Vec::new() } else { compile(".ftz") };
    let kernels = [compile(""), flushing].concat();
    let half = (1 << 31) / step;
    let mirror = form.mirror.filter(|_| half * step == 1 << 31);
    let next = AtomicU64::new(0);
    let all = Mutex::new(Errors::default());
    let work = || {
        let mut mine = Errors::default();
        let mut halves = [0, 1].map(|_| vec![vec![0f32; CHUNK as usize]; kernels.len()]);
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            let firsts = [block * CHUNK, block * CHUNK + half];
            if firsts[0] >= half {
                break;
            }
            let used = if block.is_multiple_of(COMPARED) { kernels.len() } else { 1 };
            for (results, first) in halves.iter_mut().zip(firsts) {
                for (kernel, result) in kernels[..used].iter().zip(results) {
                    let words = [result.as_mut_ptr() as u64, first, step];
                    let params: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    machine::launch(&**kernel, grid, &params, &[]).expect("the kernel runs");
                }
            }
            for offset in 0..CHUNK as usize {
                let [positive, negative] = halves.each_ref().map(|results| results[0][offset]);
                let [(x, y), (minus_x, minus_y)] =
                    firsts.map(|first| operands(form, first + offset as u64, step));
                mine.note(form, x, y, positive);
                if mirror.is_none_or(|mirror| positive.to_bits() ^ mirror != negative.to_bits()) {
                    mine.note(form, minus_x, minus_y, negative);
                }
            }
            for (results, first) in halves.iter().zip(firsts) {
                let (plain, flushing) = results[..used].split_at(names.len().min(used));
                for alike in [plain, flushing] {
                    for pair in alike.windows(2) {
                        let differ = |(a, b): &(&f32, &f32)| a.to_bits() != b.to_bits();
                        mine.differing += pair[0].iter().zip(&pair[1]).filter(differ).count() as u64;
                    }
                }
                for (offset, flushed) in flushing.first().into_iter().flatten().enumerate() {
                    let (x, y) = operands(form, first + offset as u64, step);
                    mine.note_flushed(x, y, plain[0][offset], *flushed);
                }
            }
        }
        all.lock().expect("no worker panics").take(&mine);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let errors = all.into_inner().expect("no worker panics");
    let names = names.join(", ");
    println!("{}.f32: {}; {} differ between {names}", form.name, errors.text(form), errors.differing);
    errors.differing == 0
}

/// A kernel whose thread i stores the result of the operands with number first + i.
fn kernel(form: &Form, suffix: &str) -> String {
    // Of a pair, the halves of a product.
    let (second, operands) = match form.operands {
        1 => ("", "mul.lo.u64 %n, %n, %step; cvt.u32.u64 %a, %n; mov.b32 %x, %a;".to_string()),
        _ => (
            ", %y",
            format!("mul.lo.u64 %n, %n, {SPREAD}; mov.b64 {{%a, %b}}, %n; mov.b32 %x, %a; mov.b32 %y, %b;"),
        ),
    };
    format!(
        ".version 8.0 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 to, .param .u64 first, .param .u64 step) {{
            .reg .b64 %to, %n, %i, %step; .reg .b32 %a, %b, %c; .reg .f32 %x, %y, %z;
            ld.param.u64 %to, [to]; ld.param.u64 %n, [first]; ld.param.u64 %step, [step];
            mov.u32 %a, %ctaid.x; mov.u32 %b, %ntid.x; mov.u32 %c, %tid.x;
            mad.lo.u32 %a, %a, %b, %c; cvt.u64.u32 %i, %a; add.u64 %n, %n, %i;
            mad.lo.u64 %to, %i, 4, %to; {operands}
            {}{suffix}.f32 %z, %x{second}; st.global.f32 [%to], %z; ret;
        }}",
        form.name
    )
}

/// Odd, so that different numbers give different pairs.
const SPREAD: u64 = 0x1e37_79b9_7f4a_7c15;

fn operands(form: &Form, index: u64, step: u64) -> (f32, f32) {
    let single = |bits: u64| f32::from_bits(bits as u32);
    if form.operands == 1 {
        return (single(index * step), 0.0);
    }
    let pair = index.wrapping_mul(SPREAD);
    (single(pair), single(pair >> 32))
}

/// What was found.
#[derive(Clone, Copy, Default)]
struct Errors {
    /// The largest, of each class of operands.
    largest: [Largest; 2],
    /// Results that are not the exact value, rounded.
    unrounded: u64,
    /// Infinite, or not a number, where that is not the exact value, or the other way round.
    of_another_kind: u64,
    /// The largest difference that `.ftz` makes to a result that is not flushed.
    by_flushing: f32,
    /// Results on which the paths differ.
    differing: u64,
}

#[derive(Clone, Copy, Default)]
struct Largest {
    ulp: f64,
    absolute: f64,
    relative: f64,
}

impl Errors {
    fn take(&mut self, other: &Errors) {
        for (mine, other) in self.largest.iter_mut().zip(&other.largest) {
            mine.ulp = mine.ulp.max(other.ulp);
            mine.absolute = mine.absolute.max(other.absolute);
            mine.relative = mine.relative.max(other.relative);
        }
        self.unrounded += other.unrounded;
        self.of_another_kind += other.of_another_kind;
        self.by_flushing = self.by_flushing.max(other.by_flushing);
        self.differing += other.differing;
    }

    fn note(&mut self, form: &Form, x: f32, y: f32, result: f32) {
        const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
        let (exact, classes) = match form.exact {
            Exact::Rounded(exact) => {
                let exact = exact(x, y);
                self.unrounded += u64::from(exact != result && !(exact.is_nan() && result.is_nan()));
                return;
            }
            Exact::Value(exact, classes) => (exact, classes),
        };
        let x = f64::from(x);
        if !classes.iter().any(|(_, contains)| contains(x)) {
            return;
        }
        let exact = exact(x);
        let rounded = exact as f32;
        if !rounded.is_finite() || !result.is_finite() {
            // Next to the largest number either side will do.
            let same = rounded == result || rounded.is_nan() && result.is_nan();
            let close = rounded.is_infinite() && exact.is_finite() && result.abs() == f32::MAX;
            self.of_another_kind += u64::from(!same && !close);
            return;
        }
        let error = (f64::from(result) - exact).abs();
        let binade = f64::from_bits(exact.abs().max(SMALLEST).to_bits() & 0x7ff0_0000_0000_0000);
        for ((_, contains), largest) in classes.iter().zip(&mut self.largest) {
            if contains(x) {
                largest.ulp = largest.ulp.max(error / (binade * (-23f64).exp2()));
                largest.absolute = largest.absolute.max(error);
                if exact.abs() >= SMALLEST {
                    largest.relative = largest.relative.max(error / exact.abs());
                }
            }
        }
    }

    fn note_flushed(&mut self, x: f32, y: f32, plain: f32, flushed: f32) {
        let tiny = |value: f32| value != 0.0 && value.abs() < f32::MIN_POSITIVE;
        if !tiny(x) && !tiny(y) && !tiny(plain) && plain != flushed {
            let difference = (plain - flushed).abs();
            self.by_flushing = self.by_flushing.max(if plain.is_nan() { 0.0 } else { difference });
        }
    }

    fn text(&self, form: &Form) -> String {
        let mut text = match form.exact {
            Exact::Rounded(_) => format!("{} not correctly rounded", self.unrounded),
            Exact::Value(_, classes) => {
                let classes = classes.iter().zip(&self.largest).map(|((class, _), largest)| {
                    let Largest { ulp, absolute, relative } = largest;
                    let (absolute, relative) = (absolute.log2(), relative.log2());
                    format!("{class} {ulp:.3} ulp, absolute 2^{absolute:.2}, relative 2^{relative:.2}")
                });
                classes.collect::<Vec<_>>().join("; ")
            }
        };
        if self.of_another_kind > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "; {} of another kind", self.of_another_kind);
        }
        if self.by_flushing > 0.0 {
            let _ = write!(text, "; with .ftz others by up to 2^{:.2}", self.by_flushing.log2());
        }
        text
    }
}
