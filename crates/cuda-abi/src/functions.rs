//! `functions.in`, the table of every exported function, and what is generated from it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// The table's text.
pub const TEXT: &str = include_str!("../functions.in");

/// One of the two libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// `libcuda.so.1`, the Driver API.
    Driver,
    /// `libcudart.so.13`, the Runtime API.
    Runtime,
}

impl Library {
    /// The file name that programs are linked against.
    pub fn soname(self) -> &'static str {
        match self {
            Library::Driver => "libcuda.so.1",
            Library::Runtime => "libcudart.so.13",
        }
    }

    /// The version node that the symbols carry, if any.
    fn version_node(self) -> &'static str {
        match self {
            Library::Driver => "",
            Library::Runtime => "libcudart.so.13 ",
        }
    }

    /// What a function that does not exist yet answers.
    fn not_supported(self) -> u32 {
        match self {
            Library::Driver => crate::driver::CUDA_ERROR_NOT_SUPPORTED.0,
            Library::Runtime => crate::runtime::cudaErrorNotSupported.0,
        }
    }

    /// The result type that `functions.in` leaves out.
    fn result(self) -> &'static str {
        match self {
            Library::Driver => "CUresult",
            Library::Runtime => "cudaError_t",
        }
    }
}

/// One line of `functions.in`.
#[derive(Clone, Debug)]
pub struct Function {
    /// The library that exports it.
    pub library: Library,
    /// The heading under which the manual describes it.
    pub group: &'static str,
    /// Whether it has a body; otherwise a stub answers "not supported".
    pub done: bool,
    /// The exported name.
    pub name: &'static str,
    /// The types of its parameters in Rust; `None` where they are not public.
    pub parameters: Option<Vec<&'static str>>,
    /// The type of its result in Rust; `()` for none.
    pub result: &'static str,
    /// How `cuGetProcAddress` finds it.
    pub lookups: Vec<Lookup>,
}

/// A name and version for which `cuGetProcAddress` answers with a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The name without variant suffix.
    pub base: &'static str,
    /// The first version of the API that has the variant.
    pub since: i32,
    /// Whether the variant's default stream belongs to the calling thread.
    pub per_thread: bool,
}

/// Every exported function, in the table's order.
pub fn all() -> Vec<Function> {
    let mut functions = Vec::new();
    let (mut library, mut group) = (Library::Driver, "");
    for (number, line) in TEXT.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = match line.split_once(' ') {
            Some(("library", "libcuda.so.1")) => {
                library = Library::Driver;
                continue;
            }
            Some(("library", "libcudart.so.13")) => {
                library = Library::Runtime;
                continue;
            }
            Some(("group", heading)) => {
                group = heading;
                continue;
            }
            Some(("done", rest)) => parse_function(library, group, true, rest),
            Some(("missing", rest)) => parse_function(library, group, false, rest),
            _ => None,
        };
        functions.push(parsed.unwrap_or_else(|| panic!("functions.in line {}: {line}", number + 1)));
    }
    functions
}

fn parse_function(library: Library, group: &'static str, done: bool, rest: &'static str) -> Option<Function> {
    let (signature, lookups) = rest.split_once(" = ").unwrap_or((rest, ""));
    let (signature, result) = signature.split_once(" -> ").unwrap_or((signature, library.result()));
    let (name, parameters) = signature.strip_suffix(')')?.split_once('(')?;
    let parameters = match parameters {
        ".." => None,
        "" => Some(Vec::new()),
        list => Some(list.split(", ").collect()),
    };
    let lookups = lookups
        .split(", ")
        .filter(|text| !text.is_empty())
        .map(|text| {
            let mut words = text.split(' ');
            let (base, since) = (words.next()?, words.next()?.parse().ok()?);
            match words.next() {
                None => Some(Lookup { base, since, per_thread: false }),
                Some("per-thread") => Some(Lookup { base, since, per_thread: true }),
                Some(_) => None,
            }
        })
        .collect::<Option<_>>()?;
    Some(Function { library, group, done, name, parameters, result, lookups })
}

/// The functions of a library whose names stand, as whole words, in the Rust sources under a folder.
pub fn named_under(library: Library, folder: &Path) -> io::Result<Vec<Function>> {
    let mut words = BTreeSet::new();
    collect_words(folder, &mut words)?;
    Ok(all().into_iter().filter(|f| f.library == library && words.contains(f.name)).collect())
}

fn collect_words(folder: &Path, words: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_words(&path, words)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path)?;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            words.extend(source.split(|c| !is_word(c)).filter(|w| w.starts_with("cu")).map(str::to_owned));
        }
    }
    Ok(())
}

/// Writes what a library's crate includes and its linker needs into `out`, the build script's `OUT_DIR`:
///
/// * `stubs.rs`: an exported function for every `missing` line;
/// * `exports.rs` (driver): `EXPORTS`, the table behind `cuGetProcAddress`, sorted by base name and version.
pub fn generate(library: Library, out: &Path) -> io::Result<()> {
    let functions: Vec<_> = all().into_iter().filter(|function| function.library == library).collect();
    std::fs::write(out.join("stubs.rs"), stubs(library, &functions))?;
    if library == Library::Driver {
        std::fs::write(out.join("exports.rs"), exports(&functions))?;
    }
    Ok(())
}

fn stubs(library: Library, functions: &[Function]) -> String {
    let mut text = String::new();
    for function in functions.iter().filter(|function| !function.done) {
        let name = function.name;
        // The caller cleans up its arguments in every C ABI of Linux, so a stub need not know them.
        write!(
            text,
            "/// Not there yet.\n#[unsafe(no_mangle)]\npub extern \"C\" fn {name}() -> u32 {{\n    \
             crate::shim::missing(\"{name}\");\n    {}\n}}\n\n",
            library.not_supported()
        )
        .expect("a String takes any text");
    }
    text
}

/// The linker's version script: exactly the table's names are exported, with the version node that programs expect.
pub fn version_script(library: Library) -> String {
    let mut text = format!("{}{{\n  global:\n", library.version_node());
    for function in all().iter().filter(|function| function.library == library) {
        writeln!(text, "    {};", function.name).expect("a String takes any text");
    }
    text + "  local: *;\n};\n"
}

fn exports(functions: &[Function]) -> String {
    let mut lines: Vec<_> = functions
        .iter()
        .flat_map(|function| function.lookups.iter().map(move |lookup| (lookup, function)))
        .map(|(lookup, function)| {
            // A stub's module is not that of a body, but the symbols are all C names: declared, not imported.
            let Lookup { base, since, per_thread } = lookup;
            let name = function.name;
            (
                (*base, *since, *per_thread),
                format!("    Export {{ base: \"{base}\", since: {since}, per_thread: {per_thread}, address: {name} }},\n"),
                name,
            )
        })
        .collect();
    lines.sort();
    let mut names: Vec<_> = lines.iter().map(|(_, _, name)| *name).collect();
    names.sort();
    names.dedup();
    let mut text = String::from(
        "#[allow(non_snake_case, reason = \"the manual's names\")]\nmod symbols {\n    unsafe extern \"C\" {\n",
    );
    for name in names {
        writeln!(text, "        pub fn {name}();").expect("a String takes any text");
    }
    text += "    }\n}\nuse symbols::*;\n\n/// What `cuGetProcAddress` can answer with, by base name and version.\n";
    text += "pub static EXPORTS: &[Export] = &[\n";
    for (_, line, _) in &lines {
        text += line;
    }
    text + "];\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood_and_every_name_is_there_once() {
        let functions = all();
        for library in [Library::Driver, Library::Runtime] {
            let mut names: Vec<_> =
                functions.iter().filter(|f| f.library == library).map(|f| f.name).collect();
            assert!(names.len() > 400, "{library:?} exports {} names", names.len());
            names.sort();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name of {library:?} is there twice");
        }
    }

    #[test]
    fn one_name_at_two_versions_is_two_functions() {
        let find = |name: &str| all().into_iter().find(|function| function.name == name).unwrap().lookups;
        let lookup = |base, since, per_thread| Lookup { base, since, per_thread };
        assert_eq!(find("cuCtxSynchronize"), [lookup("cuCtxSynchronize", 2000, false)]);
        assert_eq!(find("cuCtxSynchronize_v2"), [lookup("cuCtxSynchronize", 13000, false)]);
        assert_eq!(find("cuMemcpyHtoD_v2_ptds"), [lookup("cuMemcpyHtoD", 7000, true)]);
    }

    #[test]
    fn no_two_functions_answer_the_same_question() {
        let mut lookups: Vec<_> = all()
            .into_iter()
            .flat_map(|function| function.lookups)
            .map(|lookup| (lookup.base, lookup.since, lookup.per_thread))
            .collect();
        lookups.sort();
        let twice: Vec<_> = lookups.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
