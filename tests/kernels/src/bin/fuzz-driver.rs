//! `fuzz-driver [--library NAME] [--seed N] [--count N] [--keep FOLDER]`: runs random kernels on a driver, NVIDIA's `libcuda.so.1` if
//! none is named, and on the interpreter with the hardware's approximations, which must agree.
//!
//! A difference is reduced and printed, or kept in a folder as a test of `tests/ptx`. After a fault, which ends the
//! context, the process starts anew with the next kernel. The last line is `N passed, M failed, K refused`.
//!
//! Known to differ with CUDA 13.0's ptxas, and left so: `set` and `testp` under a guard, which change their result where it does not hold;
//! products of 8-bit floats and `wmma` products whose results are in registers of other operands; operations on a value and
//! itself, which may stay what it is (`max.f32 a, b, b` of a NaN); and results of `f32` stored as bytes.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use interp::Interpreter;
use kernel_abi::Approximations;
use kernel_tests::driver::{Driver, Failure};
use kernel_tests::fuzz::generate::Sources;
use kernel_tests::fuzz::program::{self, Program};
use kernel_tests::fuzz::{self, Outcome, generate, reduce};

struct Settings {
    library: String,
    seed: u64,
    count: u64,
    keep: Option<PathBuf>,
    /// Passed, failed and refused before the process started anew.
    so_far: [u64; 3],
}

fn main() {
    if let Err(message) = settings().and_then(run) {
        eprintln!("fuzz-driver: {message}");
        std::process::exit(2);
    }
}

fn settings() -> Result<Settings, String> {
    let mut settings =
        Settings { library: "libcuda.so.1".into(), seed: 1, count: 1000, keep: None, so_far: [0; 3] };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or(format!("{arg} wants a value"))?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is no number"));
        match arg.as_str() {
            "--library" => settings.library = value,
            "--seed" => settings.seed = number(&value)?,
            "--count" => settings.count = number(&value)?,
            "--keep" => settings.keep = Some(PathBuf::from(value)),
            "--so-far" => {
                for (count, text) in settings.so_far.iter_mut().zip(value.split(',')) {
                    *count = number(text)?;
                }
            }
            _ => return Err(format!("what is {arg}?")),
        }
    }
    Ok(settings)
}

/// What a driver makes of a program.
enum Verdict {
    Same,
    /// Where it differs, and all that the driver's kernel left behind.
    Differs(String, Vec<u64>),
    Refused(String),
    Lost(u32),
}

fn judge(program: &Program, driver: &Driver, oracle: &Interpreter) -> Verdict {
    if !program.images.is_empty() {
        return Verdict::Refused("textures and surfaces are not made there".into());
    }
    let Outcome::Ran(expected) = fuzz::run(program, oracle) else { return Verdict::Same };
    match driver.run(&program.text(), program::ENTRY, program.grid, &program.input(), expected.len()) {
        Ok(got) => match expected.iter().zip(&got).position(|(a, b)| a != b) {
            Some(at) => {
                let place = fuzz::place(program, at);
                Verdict::Differs(format!("{place} there {:#x}, here {:#x}", got[at], expected[at]), got)
            }
            None => Verdict::Same,
        },
        Err(Failure::Refused(why)) => Verdict::Refused(why.replace('\n', " ")),
        Err(Failure::Lost(code)) => Verdict::Lost(code),
    }
}

fn run(settings: Settings) -> Result<(), String> {
    let driver = Driver::open(&settings.library)?;
    let oracle = Interpreter { approximations: Approximations::Hardware, ..Interpreter::default() };
    let mut sources = Sources::default();
    let [mut passed, mut failed, mut refused] = settings.so_far;
    for seed in settings.seed..settings.seed + settings.count {
        let program = generate::program(seed, &mut sources);
        let mut lost = false;
        // Only what runs and answers otherwise counts, so that one difference does not become another.
        let mut differs = |candidate: &Program| match judge(candidate, &driver, &oracle) {
            Verdict::Differs(why, words) if !lost => Some((why, words)),
            verdict => {
                lost |= matches!(verdict, Verdict::Lost(_));
                None
            }
        };
        let why = match judge(&program, &driver, &oracle) {
            Verdict::Same => {
                passed += 1;
                continue;
            }
            Verdict::Differs(..) => {
                failed += 1;
                let reduced = reduce::reduce(&program, |candidate| differs(candidate).is_some());
                let (why, words) = differs(&reduced).unwrap_or_default();
                let text = fuzz::as_test(&reduced, seed, &why, Some(&words));
                match &settings.keep {
                    Some(folder) => {
                        let path = folder.join(format!("kernel_{seed}.ptx"));
                        std::fs::write(&path, text)
                            .map_err(|error| format!("{}: {error}", path.display()))?;
                    }
                    None => println!("{text}"),
                }
                why
            }
            Verdict::Refused(why) => {
                refused += 1;
                why
            }
            Verdict::Lost(code) => {
                failed += 1;
                lost = true;
                format!("code {code} there")
            }
        };
        println!("kernel {seed}, block {:?}: {why}", program.grid.block);
        if lost {
            let left = settings.seed + settings.count - seed - 1;
            let so_far = [passed, failed, refused];
            return Err(anew(Settings { seed: seed + 1, count: left, so_far, ..settings }));
        }
    }
    println!("{passed} passed, {failed} failed, {refused} refused");
    Ok(())
}

/// Starts the process anew, with a driver that has seen no fault; answers why it could not.
fn anew(Settings { library, seed, count, keep, so_far: [passed, failed, refused] }: Settings) -> String {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let mut command = std::process::Command::new(program);
    command.args(["--library", &library, "--seed", &seed.to_string(), "--count", &count.to_string()]);
    command.args(["--so-far", &format!("{passed},{failed},{refused}")]);
    if let Some(folder) = keep {
        command.arg("--keep").arg(folder);
    }
    command.exec().to_string()
}
