//! `functions.in` against the sources: a function marked `done` has one body, and every body's function is marked so.

use cuda_abi::functions::{self, Api};
use std::collections::BTreeMap;

/// One sentence for each name whose status and sources disagree. (The macro and the linker notice too, but only once
/// everything is compiled.)
pub fn check(texts: &[(String, String)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (api, folder) in
        [(Api::Driver, "crates/driver/"), (Api::Runtime, "crates/runtime/"), (Api::Nvml, "crates/nvml/")]
    {
        let mut bodies: BTreeMap<String, usize> = BTreeMap::new();
        for (_, text) in texts.iter().filter(|(path, _)| path.starts_with(folder) && path.ends_with(".rs")) {
            for name in entry_points(text) {
                *bodies.entry(name).or_default() += 1;
            }
        }
        for function in functions::all().iter().filter(|function| function.api == api) {
            let count = bodies.remove(function.name).unwrap_or(0);
            match (function.done, count) {
                (true, 0) => findings.push(format!("{} is `done` but {folder} has no body", function.name)),
                (false, 1..) => findings.push(format!("{} has a body but is `missing`", function.name)),
                (_, 2..) => findings.push(format!("{} has {count} bodies", function.name)),
                _ => {}
            }
        }
        findings.extend(bodies.keys().map(|name| format!("{name} is not in functions.in")));
    }
    findings
}

/// The names that the entry points of one source file export: that of the function, and that of its variant where the
/// attribute asks for one.
fn entry_points(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        // An attribute may span lines, and other attributes may follow it.
        let Some(rest) = line.strip_prefix("#[entry_point") else { continue };
        let mut options = rest.to_owned();
        for line in lines.by_ref() {
            if let Some(name) = function_name(line) {
                let variant = ["ptds", "ptsz"].into_iter().find(|word| has_word(&options, word));
                names.extend(variant.map(|suffix| format!("{name}_{suffix}")));
                names.push(name.to_owned());
                break;
            }
            options.push_str(line);
        }
    }
    names
}

/// The name that a line like `pub unsafe fn name(` declares.
fn function_name(line: &str) -> Option<&str> {
    let words = ["pub ", "unsafe ", "extern \"C\" "];
    let line = words.iter().fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
    let name = line.strip_prefix("fn ")?.split(['(', '<']).next()?;
    Some(name.trim())
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_are_found_with_their_variants() {
        let text = "
#[entry_point(before_init)]
fn cuA(x: i32) -> CuResult {}
#[entry_point(
    ptsz,
    keeps_last_error
)]
#[inline]
pub unsafe fn cuB(
    x: i32,
) -> CuResult {}
fn helper() {}
";
        assert_eq!(entry_points(text), ["cuA", "cuB_ptsz", "cuB"]);
    }

    #[test]
    fn a_body_that_the_table_does_not_have_is_found() {
        let texts =
            [("crates/driver/src/api/x.rs".to_owned(), "#[entry_point]\nfn cuNoSuch() {}".to_owned())];
        assert!(check(&texts).contains(&"cuNoSuch is not in functions.in".to_owned()));
    }

    #[test]
    fn two_bodies_are_found() {
        let body = "#[entry_point]\nfn cuDriverGetVersion() {}\n".to_owned();
        let texts =
            [("crates/driver/a.rs".to_owned(), body.clone()), ("crates/driver/b.rs".to_owned(), body)];
        assert!(check(&texts).contains(&"cuDriverGetVersion has 2 bodies".to_owned()));
    }
}
