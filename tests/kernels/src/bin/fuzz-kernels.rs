//! `fuzz-kernels [--seed N] [--count N] [--seconds N] [--backend NAME]... [--with TEXT] [--keep FOLDER] [--show N]`: runs random kernels
//! on the back ends, all if none is named, and on the interpreter, which must agree; of all kernels those that have some text, if one is named.
//!
//! A difference is reduced and printed, or kept in a folder as a test of `tests/ptx`; `--show` prints the kernel of a number.
//! The last line is `N passed, M failed`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kernel_tests::backend;
use kernel_tests::fuzz::generate::Sources;
use kernel_tests::fuzz::{self, Outcome, Random, generate, reduce};

fn main() {
    match run() {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(message) => {
            eprintln!("fuzz-kernels: {message}");
            std::process::exit(2);
        }
    }
}

fn run() -> Result<bool, String> {
    let (mut seed, mut count, mut seconds, mut keep, mut show) = (1u64, u64::MAX, u64::MAX, None, None);
    let (mut names, mut with) = (Vec::new(), String::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or(format!("{arg} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("'{value}' is no number"));
        match arg.as_str() {
            "--seed" => seed = number()?,
            "--count" => count = number()?,
            "--seconds" => seconds = number()?,
            "--backend" => names.push(value),
            "--with" => with = value,
            "--keep" => keep = Some(PathBuf::from(value)),
            "--show" => show = Some(number()?),
            _ => return Err(format!("what is {arg}?")),
        }
    }
    let mut sources = Sources::default();
    if let Some(seed) = show {
        print!("{}", fuzz::as_test(&generate::program(seed, &mut sources), seed, "shown", None));
        return Ok(true);
    }
    if names.is_empty() {
        names = backend::names().into_iter().filter(|name| name != "interp").collect();
    }
    let oracle = backend::open("interp")?;
    let backends =
        names.iter().map(|name| Ok((name, backend::open(name)?))).collect::<Result<Vec<_>, String>>()?;
    let start = Instant::now();
    let (mut passed, mut failed, mut refused) = (0u64, 0u64, BTreeMap::<String, u64>::new());
    for seed in (seed..).take(count.try_into().unwrap_or(usize::MAX)) {
        if seconds != u64::MAX && start.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        let program = generate::program(seed, &mut sources);
        if !with.is_empty() && !program.text().contains(&with) {
            continue;
        }
        let mut random = Random::new(!seed);
        let (name, backend) = random.pick(&backends);
        let (expected, got) = (fuzz::run(&program, &*oracle), fuzz::run(&program, &**backend));
        let Some(why) = fuzz::difference_of(&program, &expected, &got) else {
            if let Outcome::Refused(why) = got {
                *refused.entry(why).or_default() += 1;
            }
            passed += 1;
            continue;
        };
        failed += 1;
        println!("kernel {seed}, {name}, block {:?}: {why}", program.grid.block);
        let reduced =
            reduce::reduce(&program, |candidate| fuzz::difference(candidate, &**backend, &*oracle).is_some());
        let why = fuzz::difference(&reduced, &**backend, &*oracle).unwrap_or_default();
        let expected = match fuzz::run(&reduced, &*oracle) {
            Outcome::Ran(words) => Some(words),
            _ => None,
        };
        let text = fuzz::as_test(&reduced, seed, &why, expected.as_deref());
        match &keep {
            Some(folder) => {
                let path = folder.join(format!("kernel_{seed}.ptx"));
                std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
                println!("  {why}: {}", path.display());
            }
            None => println!("{text}"),
        }
    }
    for (why, count) in refused {
        println!("not compiled, {count} times: {why}");
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}
