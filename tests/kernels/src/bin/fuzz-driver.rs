//! `fuzz-driver [--library NAME] [--seed N] [--count N] [--keep FOLDER]`: runs random kernels on a driver, NVIDIA's `libcuda.so.1` if
//! none is named, and on the interpreter with the hardware's approximations, which must agree.
//!
//! A difference is reduced and printed, or kept in a folder as a test of `tests/ptx`. After a fault, which ends the
//! context, the process starts anew with the next kernel. The last line is `N passed, M failed, K refused`.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use interp::Interpreter;
use kernel_abi::Approximations;
use kernel_tests::driver::{Driver, Failure};
use kernel_tests::fuzz::program::{self, Program};
use kernel_tests::fuzz::table::Table;
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

fn run(settings: Settings) -> Result<(), String> {
    let driver = Driver::open(&settings.library)?;
    let oracle = Interpreter { approximations: Approximations::Hardware, ..Interpreter::default() };
    let mut table = Table::default();
    let [mut passed, mut failed, mut refused] = settings.so_far;
    for seed in settings.seed..settings.seed + settings.count {
        let program = generate::program(seed, &mut table);
        let mut lost = false;
        let mut shows = |program: &Program| {
            if lost {
                return None;
            }
            let Outcome::Ran(expected) = fuzz::run(program, &oracle) else { return None };
            let mut buffers = [program.input(), vec![0; expected.len()]];
            match driver.run(&program.text(), program::ENTRY, program.grid, &mut buffers) {
                Ok(()) => {
                    let at = expected.iter().zip(&buffers[1]).position(|(a, b)| a != b)?;
                    let found = format!(
                        "{} there {:#x}, here {:#x}",
                        fuzz::place(program, at),
                        buffers[1][at],
                        expected[at]
                    );
                    Some((found, buffers[1].clone()))
                }
                Err(Failure::Refused(why)) => Some((why, Vec::new())),
                Err(Failure::Lost(code)) => {
                    lost = true;
                    Some((format!("code {code} there"), Vec::new()))
                }
            }
        };
        match shows(&program) {
            None => passed += 1,
            Some((why, words)) if words.is_empty() => {
                println!("kernel {seed}, block {:?}: {}", program.grid.block, why.replace('\n', " "));
                if lost { failed += 1 } else { refused += 1 }
            }
            Some(_) => {
                failed += 1;
                // Only what runs and answers otherwise counts, so that one difference does not become another.
                let reduced = reduce::reduce(&program, |candidate| {
                    shows(candidate).is_some_and(|(_, words)| !words.is_empty())
                });
                let (why, words) = shows(&reduced).unwrap_or_default();
                println!("kernel {seed}, block {:?}: {why}", program.grid.block);
                let text = fuzz::as_test(&reduced, seed, &why, Some(&words));
                match &settings.keep {
                    Some(folder) => {
                        let path = folder.join(format!("kernel_{seed}.ptx"));
                        std::fs::write(&path, text)
                            .map_err(|error| format!("{}: {error}", path.display()))?;
                    }
                    None => println!("{text}"),
                }
            }
        }
        if lost {
            let left = settings.seed + settings.count - seed - 1;
            let error =
                std::process::Command::new(std::env::current_exe().map_err(|error| error.to_string())?)
                    .args([
                        "--library",
                        &settings.library,
                        "--seed",
                        &(seed + 1).to_string(),
                        "--count",
                        &left.to_string(),
                    ])
                    .args(["--so-far", &format!("{passed},{failed},{refused}")])
                    .args(
                        settings
                            .keep
                            .iter()
                            .flat_map(|folder| ["--keep".into(), folder.clone().into_os_string()]),
                    )
                    .exec();
            return Err(error.to_string());
        }
    }
    println!("{passed} passed, {failed} failed, {refused} refused");
    Ok(())
}
