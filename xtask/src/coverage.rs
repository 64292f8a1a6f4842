//! `xtask tidy`: every function that is done is named by a test.

use crate::Report;
use cuda_abi::functions::{self, Api, Function};
use std::collections::BTreeSet;

/// Headings with functions that no test names yet. Nothing may be added; a heading whose functions are all named leaves.
const EXCEPTIONS: &[(Api, &str)] = &[];

/// The crate whose tests name functions of the driver, but call a mock's.
const OVER_A_MOCK: &str = "crates/runtime/";

/// Whether each function that is done is named by a test of these files, or its heading is an exception.
pub fn check(texts: &[(String, String)], report: &mut Report) {
    for api in [Api::Driver, Api::Runtime, Api::Nvml] {
        let words: BTreeSet<&str> = texts
            .iter()
            .filter(|(path, _)| api != Api::Driver || !path.starts_with(OVER_A_MOCK))
            .flat_map(|(path, text)| words_of_tests(path, text))
            .collect();
        let name = match api {
            Api::Driver => "functions of the Driver API have tests",
            Api::Runtime => "functions of the Runtime API have tests",
            Api::Nvml => "functions of the management library have tests",
        };
        report.add(name, findings(api, &functions::all(), &words, EXCEPTIONS));
    }
}

/// The words that a file says in tests.
pub fn words_of_tests<'a>(path: &str, text: &'a str) -> impl Iterator<Item = &'a str> {
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
    api: Api,
    functions: &[Function],
    words: &BTreeSet<&str>,
    exceptions: &[(Api, &str)],
) -> Vec<String> {
    let of_api = functions.iter().filter(|function| function.api == api && function.done);
    let untested: Vec<&Function> = of_api.filter(|function| !words.contains(function.name)).collect();
    let excepted = |heading: &str| exceptions.contains(&(api, heading));
    let mut findings: Vec<String> = untested
        .iter()
        .filter(|function| !excepted(function.group))
        .map(|function| format!("no test names {} ({})", function.name, function.group))
        .collect();
    for (_, heading) in exceptions.iter().filter(|(of, _)| *of == api) {
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
            api: Api::Driver,
            group: "Streams",
            done: true,
            name,
            parameters: None,
            result: "CUresult",
            lookups: Vec::new(),
            exports: Vec::new(),
        };
        let functions = [function("cuOne"), function("cuTwo")];
        let check = |words: &[&'static str], exceptions: &[(Api, &str)]| {
            findings(Api::Driver, &functions, &words.iter().copied().collect(), exceptions)
        };
        assert_eq!(check(&["cuOne"], &[]), ["no test names cuTwo (Streams)"]);
        assert!(check(&["cuOne"], &[(Api::Driver, "Streams")]).is_empty());
        assert_eq!(check(&["cuOne", "cuTwo"], &[(Api::Driver, "Streams")]).len(), 1);
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
