//! `xtask support`: the page of what there is, `docs/api-support.md`, from `functions.in` and the tests.
//!
//! A function is there, or a stub says that it is not; tests name it, found by their words; and where a test states that our
//! answer and NVIDIA's differ, the reason stands beside the function that the statement is about.

use crate::coverage::words_of_tests;
use crate::{Error, Report, workspace};
use cuda_abi::functions::{Api, Function, Library, all, exported_by};
use std::collections::{BTreeMap, BTreeSet};

/// Where the page lies, from the repository's root.
const PAGE: &str = "docs/api-support.md";

/// Where the tests of all APIs through their C interface are.
const CONFORMANCE: &str = "tests/conformance/src/";

/// What functions about drawing have in their names. No device here draws.
const GRAPHICS: &[&str] = &["EGL", "Egl", "GL", "VDPAU", "Graphics"];

/// Writes the page.
pub fn write() -> Result<Report, Error> {
    let texts = workspace::tracked_texts()?;
    std::fs::write(workspace::root().join(PAGE), page(&texts))?;
    let mut report = Report::default();
    check(&texts, &mut report);
    Ok(report)
}

/// Whether the page says what is so.
pub fn check(texts: &[(String, String)], report: &mut Report) {
    let wanted = page(texts);
    let there = std::fs::read_to_string(workspace::root().join(PAGE)).unwrap_or_default();
    let differs = wanted.lines().zip(there.lines()).find(|(wanted, there)| wanted != there);
    let finding = (wanted != there).then(|| {
        let line = differs.map_or("", |(wanted, _)| wanted);
        format!("{PAGE} is not up to date (cargo run -p xtask -- support writes it): {line}")
    });
    report.add("the page of supported functions is true", finding.into_iter().collect());
}

/// What the tests say of the functions.
#[derive(Default)]
struct Tests<'a> {
    /// The files that name a function.
    files: BTreeMap<&'a str, BTreeSet<String>>,
    /// Why our answer is another than NVIDIA's.
    differences: BTreeMap<&'a str, BTreeSet<String>>,
}

impl<'a> Tests<'a> {
    fn read(functions: &'a [Function], texts: &[(String, String)]) -> Tests<'a> {
        let names: BTreeMap<&str, &'a str> = functions.iter().map(|f| (f.name, f.name)).collect();
        let mut tests = Tests::default();
        for (path, text) in texts {
            for name in words_of_tests(path, text).filter_map(|word| names.get(word)) {
                tests.files.entry(name).or_default().insert(path.clone());
            }
            if path.starts_with(CONFORMANCE) {
                for (name, why) in differences(text, &names) {
                    tests.differences.entry(name).or_default().insert(why);
                }
            }
        }
        tests
    }

    /// The places of a function's tests: those of its C interface, or any other.
    fn places(&self, name: &str) -> String {
        let Some(files) = self.files.get(name) else { return String::new() };
        let conformance: Vec<_> = files.iter().filter(|path| path.starts_with(CONFORMANCE)).collect();
        let chosen = if conformance.is_empty() { files.iter().collect() } else { conformance };
        let short = |path: &&String| {
            let short = path.strip_prefix(CONFORMANCE).and_then(|path| path.strip_suffix(".rs"));
            format!("`{}`", short.unwrap_or(path))
        };
        let places: Vec<_> = chosen.iter().map(short).collect();
        match places.len() {
            0..=3 => places.join(" "),
            _ => format!("{} …", places[..3].join(" ")),
        }
    }
}

/// The differences that a file's tests state, each with the functions that it is about: those of the block that only our
/// library is asked to run, or the first that is named at or behind the statement.
fn differences<'a>(text: &str, names: &BTreeMap<&str, &'a str>) -> Vec<(&'a str, String)> {
    const STATEMENTS: [&str; 4] = ["differs(", "runtime_differs(", "ours_only(", "our_runtime_only("];
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let named = |line: &str| -> Vec<&'a str> {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter_map(|word| names.get(word).copied()).collect()
    };
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if !STATEMENTS.iter().any(|statement| line.contains(statement)) {
            continue;
        }
        // The reason is the first text, here or in the next line.
        let Some(why) = lines[number..].iter().take(2).find_map(|line| line.split('"').nth(1)) else {
            continue;
        };
        let is_block = line.trim_start().starts_with("if ours_only(")
            || line.trim_start().starts_with("if our_runtime_only(");
        let about: Vec<&str> = match is_block {
            true => {
                let inside = lines[number + 1..].iter().take_while(|inner| indent(inner) > indent(line));
                inside.flat_map(|inner| named(inner)).collect()
            }
            // Not beyond the test's end.
            false => {
                let rest = lines[number..].iter().take_while(|line| **line != "}");
                rest.map(|line| named(line)).find(|names| !names.is_empty()).unwrap_or_default()
            }
        };
        found.extend(about.into_iter().map(|name| (name, why.to_owned())));
    }
    found
}

/// The page's text.
fn page(texts: &[(String, String)]) -> String {
    let functions = all();
    let tests = Tests::read(&functions, texts);
    let mut text = String::from(
        "# Functions of CUDA's APIs\n\n\
         Every function that the libraries export: whether it does its work here, which tests name it, and where our answer is another\n\
         than that of NVIDIA's library on an H100, as the tests state it. What is not there answers \"not supported\".\n\n\
         Tests are files of `tests/conformance/src`, which judge NVIDIA's libraries as well as ours, unless a path says otherwise.\n\n\
         `cargo run -p xtask -- support` writes this page from `crates/cuda-abi/functions.in` and the tests; `make test` fails where it\n\
         is not up to date.\n\n\
         | library | functions | there | without graphics | there |\n|---|---:|---:|---:|---:|\n",
    );
    for library in Library::ALL {
        let exported: Vec<Function> =
            exported_by(library).into_iter().map(|(_, function)| function).collect();
        let plain: Vec<Function> =
            exported.iter().filter(|function| !is_graphics(function)).cloned().collect();
        text += &format!(
            "| `{}` | {} | {} | {} | {} |\n",
            library.soname(),
            exported.len(),
            share(&exported),
            plain.len(),
            share(&plain)
        );
    }
    text += "\nOf the management library, whatever a sensor or a feature that processors have not would answer is \"not supported\" too.\n";
    text += &list("Not there", &functions, |function| {
        !function.done && !is_graphics(function) && function.api != Api::Nvml
    });
    let untested = |function: &Function| function.done && !tests.files.contains_key(function.name);
    text += &list("There, and without a test", &functions, untested);
    for (api, title) in
        [(Api::Driver, "Driver API"), (Api::Runtime, "Runtime API"), (Api::Nvml, "Management library")]
    {
        text += &format!("\n## {title}\n");
        let mut group = "";
        for function in functions.iter().filter(|function| function.api == api) {
            if function.group != group {
                group = function.group;
                text += &format!(
                    "\n### {group}\n\n| function | there | tests | different from NVIDIA's |\n|---|---|---|---|\n"
                );
            }
            let there = if function.done { "yes" } else { "no" };
            let differences = tests.differences.get(function.name).into_iter().flatten();
            let differences: Vec<&str> = differences.map(String::as_str).collect();
            let places = tests.places(function.name);
            text += &format!("| `{}` | {there} | {places} | {} |\n", function.name, differences.join("; "));
        }
    }
    text
}

fn is_graphics(function: &Function) -> bool {
    // NVML calls a clock so.
    function.api != Api::Nvml && GRAPHICS.iter().any(|word| function.name.contains(word))
}

/// How many are there, in all and of a hundred.
fn share(functions: &[Function]) -> String {
    let done = functions.iter().filter(|function| function.done).count();
    format!("{done} ({:.1} %)", 100.0 * done as f64 / functions.len().max(1) as f64)
}

fn list(title: &str, functions: &[Function], accept: impl Fn(&Function) -> bool) -> String {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for function in functions.iter().filter(|function| accept(function)) {
        groups.entry(function.group).or_default().push(format!("`{}`", function.name));
    }
    let lines: Vec<_> =
        groups.iter().map(|(group, names)| format!("- {group}: {}\n", names.join(" "))).collect();
    match lines.is_empty() {
        true => format!("\n## {title}\n\nNone.\n"),
        false => format!("\n## {title}\n\n{}", lines.concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_about_the_function_at_or_behind_it() {
        let names = ["cuA", "cuB", "cuC", "cuD"].map(|name| (name, name)).into();
        let text = "
pub fn one() {
    cu!(cuD());
    fails!(differs(\"at\", X, Y), cuA(1));
    let code = differs(
        \"behind\", X, Y);
    fails!(code, cuB());
    if ours_only(\"inside\") {
        fails!(X, cuB());
        fails!(X, cuC());
    }
    cu!(cuD());
    let last = differs(\"none\", X, Y);
}
pub fn two() {
    cu!(cuD());
}
";
        let found = differences(text, &names);
        let found: Vec<_> = found.iter().map(|(name, why)| (*name, why.as_str())).collect();
        assert_eq!(found, [("cuA", "at"), ("cuB", "behind"), ("cuB", "inside"), ("cuC", "inside")]);
    }

    #[test]
    fn shares_are_of_a_hundred() {
        let mut functions: Vec<_> = all().into_iter().take(3).collect();
        for (function, done) in functions.iter_mut().zip([true, true, false]) {
            function.done = done;
        }
        assert_eq!(share(&functions), "2 (66.7 %)");
        assert_eq!(share(&[]), "0 (0.0 %)");
    }
}
