//! `xtask support --check`: every function that is done is named by a test.

use crate::{Error, Report, workspace};
use cuda_abi::functions::{self, Function, Library};
use std::collections::BTreeSet;

/// Headings with functions that no test names yet. Nothing may be added; a heading whose functions are all named leaves.
const EXCEPTIONS: &[(Library, &str)] = &[
    (Library::Driver, "Context Management"),
    (Library::Driver, "Context Management [DEPRECATED]"),
    (Library::Driver, "Device Management"),
    (Library::Driver, "Device Management [DEPRECATED]"),
    (Library::Driver, "Driver Entry Point Access"),
    (Library::Driver, "Error Handling"),
    (Library::Driver, "Event Management"),
    (Library::Driver, "Execution Control"),
    (Library::Driver, "Execution Control [DEPRECATED]"),
    (Library::Driver, "Graph Management"),
    (Library::Driver, "Library Management"),
    (Library::Driver, "Memory Management"),
    (Library::Driver, "Module Management"),
    (Library::Driver, "Occupancy"),
    (Library::Driver, "Peer Context Memory Access"),
    (Library::Driver, "Primary Context Management"),
    (Library::Driver, "Profiler Control"),
    (Library::Driver, "Stream Management"),
    (Library::Driver, "Stream Memory Operations"),
    (Library::Driver, "Stream Ordered Memory Allocator"),
    (Library::Driver, "Unified Addressing"),
    (Library::Driver, "Virtual Memory Management"),
    (Library::Runtime, "Compiler interface"),
    (Library::Runtime, "Device Management"),
    (Library::Runtime, "Device Management [DEPRECATED]"),
    (Library::Runtime, "Driver Entry Point Access"),
    (Library::Runtime, "Event Management"),
    (Library::Runtime, "Execution Control"),
    (Library::Runtime, "Execution Control [DEPRECATED]"),
    (Library::Runtime, "Graph Management"),
    (Library::Runtime, "Library Management"),
    (Library::Runtime, "Memory Management"),
    (Library::Runtime, "Occupancy"),
    (Library::Runtime, "Peer Device Memory Access"),
    (Library::Runtime, "Profiler Control"),
    (Library::Runtime, "Stream Management"),
    (Library::Runtime, "Stream Ordered Memory Allocator"),
    (Library::Runtime, "Surface Object Management"),
    (Library::Runtime, "Texture Object Management"),
];

/// Whether each function that is done is named by a test, or its heading is an exception.
pub fn run() -> Result<Report, Error> {
    let mut report = Report::default();
    check(&workspace::tracked_texts()?, &mut report);
    Ok(report)
}

/// The same on files that are read already.
pub fn check(texts: &[(String, String)], report: &mut Report) {
    let words: BTreeSet<&str> = texts.iter().flat_map(|(path, text)| words_of_tests(path, text)).collect();
    for library in [Library::Driver, Library::Runtime] {
        let name = match library {
            Library::Driver => "functions of the Driver API have tests",
            Library::Runtime => "functions of the Runtime API have tests",
        };
        report.add(name, findings(library, &functions::all(), &words, EXCEPTIONS));
    }
}

/// The words that a file says in tests.
fn words_of_tests<'a>(path: &str, text: &'a str) -> impl Iterator<Item = &'a str> {
    let is_rust = path.ends_with(".rs");
    let everywhere = is_rust
        && (path.starts_with("tests/conformance/src/")
            || path.contains("/tests/")
            || path.ends_with("/tests.rs"))
        || path.starts_with("tests/programs/");
    let tests = match everywhere {
        true => text,
        // A module of tests ends a file.
        false if is_rust => text.find("#[cfg(test)]\nmod tests {").map_or("", |start| &text[start..]),
        false => "",
    };
    let code = tests.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
}

fn findings(
    library: Library,
    functions: &[Function],
    words: &BTreeSet<&str>,
    exceptions: &[(Library, &str)],
) -> Vec<String> {
    let of_library = functions.iter().filter(|function| function.library == library && function.done);
    let untested: Vec<&Function> = of_library.filter(|function| !words.contains(function.name)).collect();
    let excepted = |heading: &str| exceptions.contains(&(library, heading));
    let mut findings: Vec<String> = untested
        .iter()
        .filter(|function| !excepted(function.group))
        .map(|function| format!("no test names {} ({})", function.name, function.group))
        .collect();
    for (_, heading) in exceptions.iter().filter(|(of, _)| *of == library) {
        if untested.iter().all(|function| function.group != *heading) {
            findings.push(format!("{heading} is an exception in {} and need not be", file!()));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_without_a_test_is_found_and_so_is_an_exception_without_need() {
        let function = |name| Function {
            library: Library::Driver,
            group: "Streams",
            done: true,
            name,
            parameters: None,
            result: "CUresult",
            lookups: Vec::new(),
        };
        let functions = [function("cuOne"), function("cuTwo")];
        let check = |words: &[&'static str], exceptions: &[(Library, &str)]| {
            findings(Library::Driver, &functions, &words.iter().copied().collect(), exceptions)
        };
        assert_eq!(check(&["cuOne"], &[]), ["no test names cuTwo (Streams)"]);
        assert!(check(&["cuOne"], &[(Library::Driver, "Streams")]).is_empty());
        assert_eq!(check(&["cuOne", "cuTwo"], &[(Library::Driver, "Streams")]).len(), 1);
    }

    #[test]
    fn comments_and_other_code_are_no_tests() {
        let words =
            |path, text| words_of_tests(path, text).filter(|word| word.starts_with("cu")).collect::<Vec<_>>();
        assert_eq!(words("tests/conformance/src/driver/x.rs", "cu!(cuOne(1)); // cuTwo"), ["cu", "cuOne"]);
        assert_eq!(words("crates/driver/src/x.rs", "cuOne\n#[cfg(test)]\nmod tests {\ncuTwo"), ["cuTwo"]);
        assert_eq!(words("tests/programs/x/main.cu", "cudaOne(1);"), ["cudaOne"]);
        assert!(words("README.md", "cuOne").is_empty());
    }
}
