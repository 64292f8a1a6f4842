//! Whole modules in `tests/syntax`: those of `valid` are read, resolved and printed; those of `invalid` name
//! their errors in comments, `// ERROR line:column text`.

use std::fs;
use std::path::{Path, PathBuf};

use ptx::ast::Body;
use ptx::{Bodies, Errors, LoadErrorKind, Module, Options, parse, parse_with, resolve};

fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/syntax").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{}", folder.display());
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Everything that loading a module looks for.
fn load(source: &str) -> Result<Module<'_>, Errors> {
    let module = parse(source)?;
    resolve::check(source, &module)?;
    Ok(module)
}

#[test]
fn valid_modules_survive_printing() {
    for (path, source) in files("valid") {
        let module = load(&source).unwrap_or_else(|errors| panic!("{}: {errors}", path.display()));
        let printed = module.to_string();
        let again = load(&printed).unwrap_or_else(|errors| panic!("{}: {errors}\n{printed}", path.display()));
        assert_eq!(module, again, "{}", path.display());
        assert_eq!(printed, again.to_string(), "{}", path.display());
    }
}

#[test]
fn skipped_bodies_can_be_read_later() {
    for (path, source) in files("valid") {
        let whole = parse(&source).unwrap();
        let options = Options { bodies: Bodies::Skipped, ..Options::default() };
        let mut skipped = parse_with(&source, &options).unwrap();
        for item in &mut skipped.items {
            if let ptx::ast::Item::Function(function) = item {
                assert!(!matches!(function.body, Body::Parsed(_)), "{}", path.display());
                Module::parse_body(&source, function).unwrap();
            }
        }
        assert_eq!(whole, skipped, "{}", path.display());
    }
}

#[test]
fn invalid_modules_tell_where() {
    for (path, source) in files("invalid") {
        let expected: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("// ERROR ")).collect();
        assert!(!expected.is_empty(), "{} expects no error", path.display());
        let errors = load(&source).expect_err(&path.display().to_string());
        let found: Vec<String> = errors
            .list()
            .iter()
            .map(|e| format!("{}:{} {}", e.line, e.column, e.text.lines().next().unwrap_or("")))
            .map(|text| text.trim_end().to_owned())
            .collect();
        assert_eq!(found, expected, "{}:\n{errors}", path.display());
    }
}

#[test]
fn kinds_of_errors() {
    use LoadErrorKind::*;
    let kind = |source: &str| load(source).expect_err(source).kind();
    for (source, expected) in [
        ("", NotPtx),
        ("// only a comment", NotPtx),
        ("hello", NotPtx),
        (".target sm_80 .version 8.0", NotPtx),
        (".version 99.0 .target sm_80", UnsupportedVersion),
        (".version 10.0", UnsupportedVersion),
        (".version 9.4 .target sm_999", NewerTarget),
        (".version 8.9 .target sm_90", Syntax),
        (".version 8.0 .target debug, sm_80", Syntax),
        (".version 8.0 .target sm_80, debug", Syntax),
        (".version 8.0 .target sm_80, fast", Syntax),
        (".version 8.0 .target sm_80, sm_81", Syntax),
        (".version 8.0 .target sm_80, map_f64_to_f32", Syntax),
        (".version 8.0 .target sm_80, texmode_unified, texmode_independent", Syntax),
        (".version 8.0 .target sm_80 .address_size 64 .target sm_80", Syntax),
        (".version 8.0 .target sm_999", NewerTarget),
        (".version 8.7 .target sm_100", NewerTarget),
        (".version 8.7 .target sm_100a", NewerTarget),
        (".version 7.0 .target sm_90", VersionTooOld),
        (".version 8.0 .target sm_80 .address_size 32", AddressSize),
        (".version 8.0 .target sm_80 .entry k() { foo }", Syntax),
        (".version 8.0 .target sm_80 .entry k() { foo x; }", Name),
    ] {
        assert_eq!(kind(source), expected, "{source}");
    }
    for good in [
        ".version 9.0 .target sm_90a",
        ".version 8.0 .target sm_30",
        ".version 8.0 .target sm_80 .entry k() { ret; }",
        ".version 8.0 .target sm_90, debug .target texmode_independent, sm_80 .address_size 64 .section .debug_str { .b8 0 }",
        ".version 1.4 .target sm_13\n@@DWARF .section .debug_info\n",
        ".version 3.0 .target sm_12, map_f64_to_f32",
    ] {
        load(good).unwrap_or_else(|errors| panic!("{good}: {errors}"));
    }
}

#[test]
fn damaged_text_is_refused_calmly() {
    for (_, source) in files("valid").into_iter().chain(files("invalid")) {
        for cut in 0..source.len() {
            if let Some(part) = source.get(..cut) {
                let _ = load(part);
            }
        }
        let bytes = source.as_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] = b"{}[]().;\"%<0@/"[at % 14];
            let Ok(text) = String::from_utf8(damaged) else { continue };
            let _ = load(&text);
            // What is still PTX can be printed.
            if let Ok(module) = parse(&text) {
                let printed = module.to_string();
                assert_eq!(parse(&printed).as_ref(), Ok(&module), "{text}\n{printed}");
            }
        }
    }
}

#[test]
fn depth_is_limited() {
    let head = ".version 8.0 .target sm_90 .address_size 64 ";
    let deep = 100_000;
    for (before, open, after) in [
        (".entry k() {", "{", ""),
        (".entry k() { mov.u32 x, ", "(", ""),
        (".entry k() { mov.u32 x, ", "-", "1; }"),
        (".entry k() { mov.u32 x, ", "~", "1; }"),
        (".entry k() { mov.u32 x, ", "(.s64)", "1; }"),
        (".entry k() { mov.u32 x, ", "1?2:", "3; }"),
        (".entry k() { mov.u32 x, ", "1?", "3; }"),
        (".entry k() { mov.u32 x, ", "{", ""),
        (".entry k() { mov.u32 x, ", "[a, ", ""),
        (".entry k() { mov.u32 x, ", "a[", ""),
        (".entry k() { call ", "(", ""),
        (".global .u32 x = ", "{", ""),
        (".global .u32 x = ", "1(", ""),
        (".global .u32 x", "[", ""),
    ] {
        let source = format!("{head}{before}{}{after}", open.repeat(deep));
        load(&source).expect_err(open);
    }
    let blocks = format!("{head}.entry k() {{ {}{} ret; }}", "{".repeat(100), "}".repeat(100));
    load(&blocks).unwrap();
}

#[test]
fn errors_are_limited() {
    let source = format!(".version 8.0 .target sm_90 .entry k() {{ {} }}", "add.u32 ,; ".repeat(1000));
    assert_eq!(load(&source).unwrap_err().list().len(), Errors::LIMIT);
}
