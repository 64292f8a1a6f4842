//! Checks of this repository that cargo and clippy do not make.
//!
//! ```text
//! cargo run -p xtask -- tidy              dependency edges, sources, licences, exported names, the page of functions
//! cargo run -p xtask -- symbols dist/lib  what the built libraries export, against that list
//! cargo run -p xtask -- support           writes docs/api-support.md: every function, whether it is there, its tests
//! ```

mod coverage;
mod exports;
mod support;
mod symbols;
mod tidy;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["support"] => support::write(),
        ["tidy"] => tidy::run(),
        ["symbols", folder] => symbols::run(Path::new(folder)),
        _ => Err("usage: xtask tidy | xtask symbols FOLDER | xtask support".into()),
    };
    match outcome {
        Ok(report) => report.print(),
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// What went wrong before a check could judge anything (a missing file, a failed command).
type Error = Box<dyn std::error::Error>;

/// The outcome of several checks: each has a name and its findings, one sentence each.
#[derive(Default)]
struct Report {
    checks: Vec<(String, Vec<String>)>,
}

impl Report {
    fn add(&mut self, name: impl Into<String>, findings: Vec<String>) {
        self.checks.push((name.into(), findings));
    }

    /// Prints the findings and, last, the line `N passed, M failed` that `scripts/test` adds up.
    fn print(&self) -> ExitCode {
        for (name, findings) in &self.checks {
            println!("{} {name}", if findings.is_empty() { "ok  " } else { "FAIL" });
            for finding in findings {
                println!("       {finding}");
            }
        }
        let failed = self.checks.iter().filter(|(_, findings)| !findings.is_empty()).count();
        println!("{} passed, {failed} failed", self.checks.len() - failed);
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
