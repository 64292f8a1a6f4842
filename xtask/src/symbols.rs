//! `xtask symbols FOLDER`: the built libraries export exactly what `functions.in` lists.

use crate::{Error, Report, workspace};
use cuda_abi::functions::{Library, exported_by};
use std::collections::BTreeSet;
use std::path::Path;

/// What every name of the compiler library starts with.
const COMPILER_PREFIX: &str = "anywarp_";

/// Compares the libraries in a folder with the table.
pub fn run(folder: &Path) -> Result<Report, Error> {
    let mut report = Report::default();
    for library in Library::ALL {
        let found = exported(&folder.join(library.soname()))?;
        let check = format!("{} exports the table's functions", library.soname());
        report.add(check, compare(&found, &expected(library)));
    }
    for (path, library) in
        [("libcudart_static.a", Library::Runtime13), ("cuda12/libcudart_static.a", Library::Runtime12)]
    {
        let check = format!("{path} offers the table's functions and hides the rest");
        report.add(check, compare(&offered(&folder.join(path))?, &names(library)));
    }
    let compiler = exported(&folder.join("libanywarp_compiler.so"))?;
    let strange = compiler.iter().filter(|name| !name.starts_with(COMPILER_PREFIX));
    report.add("the compiler exports names of its own", strange.cloned().collect());
    let redirection = exported(&folder.join("libanywarp_redirect.so"))?;
    report.add("the redirection exports what the loader asks for", compare(&redirection, &auditor()));
    Ok(report)
}

/// What `man 7 rtld-audit` lists and we need.
fn auditor() -> BTreeSet<String> {
    ["la_objopen", "la_objsearch", "la_version"].map(String::from).into()
}

/// The names a library should export, with their version as `nm` writes it.
fn expected(library: Library) -> BTreeSet<String> {
    let node = library.version_node().map(|node| format!("@@{node}")).unwrap_or_default();
    names(library).into_iter().map(|name| name + &node).collect()
}

fn names(library: Library) -> BTreeSet<String> {
    exported_by(library).into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// The dynamic symbols that a library defines, without the version nodes themselves.
fn exported(library: &Path) -> Result<BTreeSet<String>, Error> {
    nm(library, &["-D", "--defined-only", "--with-symbol-versions"])
}

/// The symbols that a static library gives to other objects of a program.
fn offered(library: &Path) -> Result<BTreeSet<String>, Error> {
    nm(library, &["--extern-only", "--defined-only"])
}

fn nm(library: &Path, options: &[&str]) -> Result<BTreeSet<String>, Error> {
    let library = library.canonicalize().map_err(|error| format!("{}: {error}", library.display()))?;
    let library = library.to_str().ok_or("the library's path is not UTF-8")?;
    Ok(parse(&workspace::output("nm", &[options, &[library]].concat())?))
}

fn parse(nm: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in nm.lines() {
        // ADDRESS KIND NAME; a version node is an absolute symbol.
        if let [_, kind, name] = line.split_whitespace().collect::<Vec<_>>()[..]
            && kind != "A"
        {
            names.insert(name.to_owned());
        }
    }
    names
}

fn compare(found: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Vec<String> {
    let missing = wanted.difference(found).map(|name| format!("{name} is not exported"));
    let surplus = found.difference(wanted).map(|name| format!("{name} is exported and should not be"));
    missing.chain(surplus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_is_read_without_version_nodes() {
        let names = parse(
            "0000000000001139 T cudaFree@@libcudart.so.13\n0000000000000000 A libcudart.so.13@@libcudart.so.13\n",
        );
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["cudaFree@@libcudart.so.13"]);
    }

    #[test]
    fn both_directions_are_findings() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let findings = compare(&set(&["a", "b"]), &set(&["b", "c"]));
        assert_eq!(findings, ["c is not exported", "a is exported and should not be"]);
    }

    #[test]
    fn the_table_names_every_library() {
        assert!(expected(Library::Driver).contains("cuInit"));
        assert!(expected(Library::Runtime13).contains("cudaMalloc@@libcudart.so.13"));
        assert!(expected(Library::Runtime12).contains("cudaMemAdvise_v2@@libcudart.so.12"));
    }
}
