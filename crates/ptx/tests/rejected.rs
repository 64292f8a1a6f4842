//! What looks like PTX and is none: thousands of combinations of modifiers and types that the hardware's own assembler
//! refuses for sm_90. Each must be refused here too, at its line. And variants of each entry of the instruction table, with what the assembler said
//! to them.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use ptx::target::Device;
use ptx::{Bodies, Options};

const HEADER: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// The kernels, each after a line with its group and name.
fn cases() -> String {
    packed("rejected.ptx.zst")
}

/// The text of a file of `tests/golden`.
fn packed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    let packed = std::fs::read(path).expect("the file is there");
    let mut text = String::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&packed[..]).expect("a frame of zstd");
    decoder.read_to_string(&mut text).expect("text");
    text
}

/// The lines under test, counted from 1.
fn lines_under_test(module: &str) -> Range<usize> {
    let line_of =
        |marker: &str| module.lines().position(|line| line == marker).expect("both markers are there") + 1;
    line_of("// ---- under test") + 1..line_of("// ----")
}

/// What is wrong with how a module is refused.
fn complaint(module: &str) -> Option<String> {
    let options = Options { device: Some(Device { sm: 90 }), bodies: Bodies::Parsed };
    let outcome = ptx::parse_with(module, &options).and_then(|parsed| ptx::lower::check(module, &parsed));
    let Err(errors) = outcome else { return Some("accepted".into()) };
    let text = errors.to_string();
    let line = text.strip_prefix("line ").and_then(|rest| rest.split(',').next()?.parse().ok());
    match line {
        Some(line) if lines_under_test(module).contains(&line) => None,
        _ => Some(format!("refused at another place: {text}")),
    }
}

#[test]
fn what_is_no_ptx_is_refused_at_its_line() {
    let text = cases();
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in text.split("//// CASE ").skip(1) {
        let (name, body) = case.split_once('\n').expect("a case has a body");
        count += 1;
        if let Some(what) = complaint(&format!("{HEADER}{body}")) {
            wrong.push(format!("{name}: {what}"));
        }
    }
    assert!(count > 3600, "only {count} cases");
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_same_kernels_without_the_mistake_are_accepted() {
    // Otherwise the cases could be refused for what surrounds the instruction.
    let text = cases();
    let mut repaired = 0;
    for case in text.split("//// CASE ").skip(1) {
        let (name, body) = case.split_once('\n').expect("a case has a body");
        let module = format!("{HEADER}{body}");
        let under_test = lines_under_test(&module);
        let lines = module.lines().enumerate().filter(|(at, _)| !under_test.contains(&(at + 1)));
        let rest = lines.map(|(_, line)| format!("{line}\n")).collect::<String>();
        let options = Options { device: Some(Device { sm: 90 }), bodies: Bodies::Parsed };
        let outcome = ptx::parse_with(&rest, &options).and_then(|parsed| ptx::lower::check(&rest, &parsed));
        if let Err(errors) = outcome {
            panic!("{name}: {errors}");
        }
        repaired += 1;
    }
    assert!(repaired > 3600);
}

/// What `scripts/compare-ptxas --record` wrote: a module's beginning, then instructions, each after `taken` or `refused`.
#[test]
fn instructions_are_taken_and_refused_as_by_the_assembler() {
    let text = packed("verdicts.ptx.zst");
    let (head, list) = text.split_once("// ==== instructions\n").expect("the record has a head");
    let (mut wrong, mut counts) = (Vec::new(), [0, 0]);
    for line in list.lines() {
        let (verdict, instruction) = line.split_once(' ').expect("a verdict comes first");
        let module = format!("{head}{instruction}\n\tret;\n}}\n");
        let options = Options { device: Some(Device { sm: 90 }), bodies: Bodies::Parsed };
        let outcome = ptx::parse_with(&module, &options).and_then(|parsed| {
            ptx::lower::check(&module, &parsed)?;
            ptx::lower::program(&module, &parsed, "k").map(drop)
        });
        counts[usize::from(verdict == "taken")] += 1;
        if outcome.is_ok() != (verdict == "taken") {
            wrong.push(format!("{verdict} by the assembler: {instruction}"));
        }
    }
    assert!(counts.iter().all(|count| *count > 15000), "{counts:?}");
    assert!(wrong.is_empty(), "{} of {counts:?}:\n{}", wrong.len(), wrong.join("\n"));
}
