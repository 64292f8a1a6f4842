//! `cargo run --release -p anywarp-compiler --example compile-times -- FILE.ptx [--kernel NAME] [--block X,Y,Z] [--rounds N] [--quick] [--show ir|optimized|assembly]`:
//! where the time from PTX to code goes, in milliseconds that the processor works for it. First once in a fresh process, then the
//! least of many rounds.
//!
//! With `--quick` as for a first launch.
//!
//! What a load does to the whole text comes first: it is parsed, all its instructions are checked, its kernels and variables are
//! described. Then, for each kernel and a block of this size: the kernel's own functions are parsed again and lowered to our IR,
//! which becomes LLVM's (`emission`), passes (`passes`) and code (`generation`), which is linked into memory. `--show` prints what comes
//! of a kernel instead.

use std::collections::HashMap;
use std::process::ExitCode;

use codegen::target::Cpu;
use codegen::{ENTRY_SYMBOL, Plan, Stage, Text};
use jit::host_symbol;
use jit::object::LoadedObject;
use kernel_abi::{Approximations, Shape, Tier};
use ptx::{Bodies, Options};

fn main() -> ExitCode {
    match arguments().and_then(|arguments| report(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("compile-times: {message}");
            ExitCode::FAILURE
        }
    }
}

struct Arguments {
    path: String,
    kernel: Option<String>,
    shape: Shape,
    rounds: u32,
    cpu: String,
    show: Option<Text>,
    tier: Tier,
}

fn arguments() -> Result<Arguments, String> {
    let mut found = Arguments {
        path: String::new(),
        kernel: None,
        shape: Shape::of([1024, 1, 1], [256, 1, 1]),
        rounds: 10,
        cpu: std::env::var("ANYWARP_CPU").unwrap_or_default(),
        show: None,
        tier: Tier::Full,
    };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--kernel" => found.kernel = Some(value()?),
            "--quick" => found.tier = Tier::Quick,
            "--rounds" => found.rounds = value()?.parse().map_err(|_| "--rounds is a number")?,
            "--show" => {
                found.show = Some(match value()?.as_str() {
                    "ir" => Text::Ir,
                    "optimized" => Text::OptimizedIr,
                    "assembly" => Text::Assembly,
                    _ => return Err("--show is followed by ir, optimized or assembly".into()),
                });
            }
            "--block" => {
                let mut block = [1; 3];
                for (size, text) in block.iter_mut().zip(value()?.split(',')) {
                    *size = text.parse().map_err(|_| "--block is up to three numbers")?;
                }
                found.shape = Shape::of([1024, 1, 1], block);
            }
            _ => found.path = argument,
        }
    }
    if found.path.is_empty() { Err("which PTX file?".into()) } else { Ok(found) }
}

/// Milliseconds of the steps, by row and column.
#[derive(Default)]
struct Times(HashMap<(String, &'static str), f64>);

impl Times {
    fn get(&self, row: &str, column: &'static str) -> f64 {
        self.0.get(&(row.to_owned(), column)).copied().unwrap_or_default()
    }

    fn add(&mut self, row: &str, column: &'static str, milliseconds: f64) {
        self.0.insert((row.to_owned(), column), milliseconds);
    }

    fn keep_least(&mut self, other: Times) {
        for (key, time) in other.0 {
            let least = self.0.entry(key).or_insert(time);
            *least = least.min(time);
        }
    }
}

/// The time that this thread has run since the last call.
struct Clock(f64);

impl Clock {
    fn start() -> Clock {
        Clock(Clock::now())
    }

    fn lap(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.0, Clock::now());
        self.0 - before
    }

    fn now() -> f64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it fills what it is given.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 * 1e-6
    }
}

const MODULE: [&str; 3] = ["parse", "check", "describe"];
const KERNEL: [&str; 7] = ["parse", "lower", "machine", "emission", "passes", "generation", "link"];

fn report(arguments: &Arguments) -> Result<(), String> {
    let bytes = std::fs::read(&arguments.path).map_err(|error| format!("{}: {error}", arguments.path))?;
    let source = ptx::text_of_image(&bytes).into_owned();
    if let Some(text) = arguments.show {
        return show(&source, arguments, text);
    }
    let mut kernels = Vec::new();
    let first = round(&source, arguments, &mut kernels)?;
    print("First time in the process", &first, &kernels);
    let mut least = Times::default();
    for _ in 0..arguments.rounds {
        least.keep_least(round(&source, arguments, &mut kernels)?);
    }
    if arguments.rounds > 0 {
        print(&format!("Least of {} more", arguments.rounds), &least, &kernels);
    }
    Ok(())
}

fn show(source: &str, arguments: &Arguments, text: Text) -> Result<(), String> {
    let module = ptx::parse(source).map_err(|errors| errors.to_string())?;
    let cpu = Cpu::named(&arguments.cpu).map_err(|error| error.to_string())?;
    for kernel in module.entries().map(|kernel| kernel.name.text) {
        if arguments.kernel.as_ref().is_none_or(|only| only == kernel) {
            let program =
                ptx::lower::program(source, &module, kernel).map_err(|errors| errors.to_string())?;
            let plan = Plan::of(arguments.tier);
            let text = codegen::emit_text_as(&program, &arguments.shape, &cpu, plan, text);
            println!("{}", text.map_err(|error| format!("{kernel}: {}", error.message))?);
        }
    }
    Ok(())
}

fn print(title: &str, times: &Times, kernels: &[String]) {
    println!("{title}:\n\n{:32} {:>10} {:>10} {:>10}", "module", MODULE[0], MODULE[1], MODULE[2]);
    print!("{:32}", "");
    MODULE.iter().for_each(|column| print!(" {:10.3}", times.get("", column)));
    print!("\n\n{:32}", "kernel");
    KERNEL.iter().for_each(|column| print!(" {column:>10}"));
    println!(" {:>10}", "all");
    for kernel in kernels {
        print!("{:32}", kernel.chars().take(32).collect::<String>());
        KERNEL.iter().for_each(|column| print!(" {:10.3}", times.get(kernel, column)));
        println!(" {:10.3}", KERNEL.iter().map(|column| times.get(kernel, column)).sum::<f64>());
    }
    println!();
}

fn round(source: &str, arguments: &Arguments, kernels: &mut Vec<String>) -> Result<Times, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut times = Times::default();
    let mut clock = Clock::start();
    let module = ptx::parse(source).map_err(|errors| text(&errors))?;
    times.add("", "parse", clock.lap());
    ptx::lower::check(source, &module).map_err(|errors| text(&errors))?;
    times.add("", "check", clock.lap());
    let entries = ptx::lower::entries(source, &module).map_err(|errors| text(&errors))?;
    ptx::lower::variables(source, &module).map_err(|errors| text(&errors))?;
    times.add("", "describe", clock.lap());
    kernels.clear();
    let wanted = |name: &String| arguments.kernel.as_ref().is_none_or(|only| only == name);
    kernels.extend(entries.into_iter().map(|entry| entry.name).filter(wanted));
    let cpu = Cpu::named(&arguments.cpu).map_err(|error| text(&error))?;
    for kernel in kernels {
        clock.lap();
        let options = Options { device: None, bodies: Bodies::Skipped };
        let module = ptx::parse_with(source, &options).map_err(|errors| text(&errors))?;
        times.add(kernel, "parse", clock.lap());
        let program = ptx::lower::program_of(source, module, kernel, Approximations::default())
            .map_err(|errors| text(&errors))?;
        times.add(kernel, "lower", clock.lap());
        let mut stages = |stage| {
            let column = match stage {
                Stage::Machine => "machine",
                Stage::Emission => "emission",
                Stage::Passes => "passes",
                Stage::Generation => "generation",
            };
            times.add(kernel, column, clock.lap());
        };
        let compiled = codegen::compile_in_stages(
            &program,
            &arguments.shape,
            &cpu,
            Plan::of(arguments.tier),
            &mut stages,
        );
        let object = compiled.map_err(|error| format!("{kernel}: {}", error.message))?;
        clock.lap();
        let loaded = LoadedObject::load(&object.bytes, &host_symbol).map_err(|error| text(&error))?;
        loaded.symbol(ENTRY_SYMBOL).ok_or("the code has no entry")?;
        times.add(kernel, "link", clock.lap());
    }
    Ok(times)
}
