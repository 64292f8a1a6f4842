//! `cargo run --example verdicts -- HEAD.ptx TAIL.ptx < LINES`: for each line of the input whether it is taken between the two: `ok`, or what is
//! wrong with it. `--synopses` prints the instruction table instead. For `scripts/compare-ptxas`.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use ptx::target::Device;
use ptx::{Bodies, Errors, Options};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--synopses"] => synopses(),
        [head, tail] => verdicts(head, tail),
        _ => Err("usage: verdicts HEAD.ptx TAIL.ptx < LINES".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn synopses() -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    for text in ptx::isa::synopses() {
        let words = text.split('$').skip(1).map(|rest| rest.split([',', '}']).next().unwrap_or_default());
        let expanded = words.fold(text.to_owned(), |text, name| {
            text.replace(&format!("${name}"), ptx::isa::words_of_set(name).unwrap_or_default())
        });
        writeln!(out, "{expanded}").map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn verdicts(head: &str, tail: &str) -> Result<(), String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
    let (head, tail) = (read(head)?, read(tail)?);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let verdict = match check(&format!("{head}{line}\n{tail}")) {
            Ok(()) => "ok".to_owned(),
            Err(errors) => errors.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        writeln!(out, "{verdict}").map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn check(module: &str) -> Result<(), Errors> {
    let options = Options { device: Some(Device { sm: 90 }), bodies: Bodies::Parsed };
    let parsed = ptx::parse_with(module, &options)?;
    ptx::lower::check(module, &parsed)?;
    // What is found only when a kernel is launched is found too late.
    parsed.entries().try_for_each(|kernel| ptx::lower::program(module, &parsed, kernel.name.text).map(drop))
}
