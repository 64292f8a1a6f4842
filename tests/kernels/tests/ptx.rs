//! Every kernel under `tests/ptx`, on every back end, compared with the expected output it carries.

use std::path::{Path, PathBuf};

use kernel_tests::backend;
use kernel_tests::case::TestFile;
use kernel_tests::known::Known;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder of tests is there") {
        let path = entry.expect("entries are readable").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
}

#[test]
fn every_kernel_on_every_back_end() {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../ptx"), &mut found);
    found.sort();
    assert!(found.len() >= 10, "the walk found only {} tests", found.len());
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut known = Known::read("ptx").expect("the list of known failures is sound");
    let mut failures = Vec::new();
    for name in backend::names() {
        let backend = backend::open(&name).expect("every name opens");
        for path in found.iter().filter(|path| path.to_string_lossy().contains(&only)) {
            if let Err(why) = TestFile::read(path).and_then(|test| test.run(&*backend)) {
                let test = path.file_stem().expect("files have names").to_string_lossy();
                if !known.expects(&name, &test) {
                    failures.push(format!("[{name}] {why}"));
                }
            }
        }
    }
    if only.is_empty() {
        failures.extend(known.stale());
    }
    assert!(
        failures.is_empty(),
        "{} failures in {} tests:\n{}",
        failures.len(),
        found.len(),
        failures.join("\n")
    );
}
