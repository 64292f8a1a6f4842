//! `functions.in`, the table of every exported function, and what is generated from it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// The table's text.
pub const TEXT: &str = include_str!("../functions.in");

/// One of the APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// The Driver API, crate `driver`.
    Driver,
    /// The Runtime API, crate `runtime`.
    Runtime,
    /// The management library, crate `nvml`.
    Nvml,
}

impl Api {
    /// The result type that `functions.in` leaves out.
    fn result(self) -> &'static str {
        match self {
            Api::Driver => "CUresult",
            Api::Runtime => "cudaError_t",
            Api::Nvml => "nvmlReturn_t",
        }
    }
}

/// One of the libraries that programs find an API in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// `libcuda.so.1`, the Driver API.
    Driver,
    /// `libcudart.so.13`, the Runtime API for programs that were compiled with CUDA 13.
    Runtime13,
    /// `libcudart.so.12`, the Runtime API for programs that were compiled with CUDA 12.
    Runtime12,
    /// `libcudart.so.11.0`, the Runtime API for programs that were compiled with CUDA 11.
    Runtime11,
    /// `libnvidia-ml.so.1`, the management library.
    Nvml,
}

impl Library {
    /// Every library.
    pub const ALL: [Library; 5] =
        [Library::Driver, Library::Runtime13, Library::Runtime12, Library::Runtime11, Library::Nvml];

    /// The API that the library offers.
    pub fn api(self) -> Api {
        match self {
            Library::Driver => Api::Driver,
            Library::Runtime13 | Library::Runtime12 | Library::Runtime11 => Api::Runtime,
            Library::Nvml => Api::Nvml,
        }
    }

    /// The file name that programs are linked against.
    pub fn soname(self) -> &'static str {
        match self {
            Library::Driver => "libcuda.so.1",
            Library::Runtime13 => "libcudart.so.13",
            Library::Runtime12 => "libcudart.so.12",
            Library::Runtime11 => "libcudart.so.11.0",
            Library::Nvml => "libnvidia-ml.so.1",
        }
    }

    /// The version node that the symbols carry, if any.
    pub fn version_node(self) -> Option<&'static str> {
        match self {
            Library::Driver | Library::Nvml => None,
            Library::Runtime13 | Library::Runtime12 | Library::Runtime11 => Some(self.soname()),
        }
    }

    /// The major version by which `functions.in` names a library of the runtime.
    fn major(self) -> Option<i32> {
        match self {
            Library::Driver | Library::Nvml => None,
            Library::Runtime13 => Some(13),
            Library::Runtime12 => Some(12),
            Library::Runtime11 => Some(11),
        }
    }
}

/// One line of `functions.in`.
#[derive(Clone, Debug)]
pub struct Function {
    /// The API that it belongs to.
    pub api: Api,
    /// The heading under which the manual describes it.
    pub group: &'static str,
    /// Whether it has a body; otherwise a stub answers "not supported".
    pub done: bool,
    /// The name of the function in its crate; also the exported name unless [`Function::exports`] says otherwise.
    pub name: &'static str,
    /// The types of its parameters in Rust; `None` where they are not public.
    pub parameters: Option<Vec<&'static str>>,
    /// The type of its result in Rust; `()` for none.
    pub result: &'static str,
    /// How `cuGetProcAddress` finds it (driver).
    pub lookups: Vec<Lookup>,
    /// The names under which libraries of single major versions export it (runtime); if empty, all do under its name.
    pub exports: Vec<(&'static str, i32)>,
}

impl Function {
    /// The name under which a library exports the function, if it does.
    pub fn name_in(&self, library: Library) -> Option<&'static str> {
        if library.api() != self.api {
            return None;
        }
        match library.major() {
            Some(major) if !self.exports.is_empty() => {
                self.exports.iter().find(|(_, of)| *of == major).map(|(name, _)| *name)
            }
            _ => Some(self.name),
        }
    }
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

/// Every function of all APIs, in the table's order.
pub fn all() -> Vec<Function> {
    let mut functions = Vec::new();
    let (mut api, mut group) = (Api::Driver, "");
    for (number, line) in TEXT.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = match line.split_once(' ') {
            Some(("library", names)) => {
                let named =
                    Library::ALL.into_iter().find(|library| names.split(' ').any(|n| n == library.soname()));
                api = named.unwrap_or_else(|| panic!("functions.in line {}: {line}", number + 1)).api();
                continue;
            }
            Some(("group", heading)) => {
                group = heading;
                continue;
            }
            Some(("done", rest)) => parse_function(api, group, true, rest),
            Some(("missing", rest)) => parse_function(api, group, false, rest),
            _ => None,
        };
        functions.push(parsed.unwrap_or_else(|| panic!("functions.in line {}: {line}", number + 1)));
    }
    functions
}

/// The functions that a library exports, with the names that it gives them.
pub fn exported_by(library: Library) -> Vec<(&'static str, Function)> {
    let named = |function: Function| function.name_in(library).map(|name| (name, function));
    all().into_iter().filter_map(named).collect()
}

fn parse_function(api: Api, group: &'static str, done: bool, rest: &'static str) -> Option<Function> {
    let (signature, found_as) = rest.split_once(" = ").unwrap_or((rest, ""));
    let (signature, result) = signature.split_once(" -> ").unwrap_or((signature, api.result()));
    let (name, parameters) = signature.strip_suffix(')')?.split_once('(')?;
    let parameters = match parameters {
        ".." => None,
        "" => Some(Vec::new()),
        list => Some(list.split(", ").collect()),
    };
    let (mut lookups, mut exports) = (Vec::new(), Vec::new());
    for text in found_as.split(", ").filter(|text| !text.is_empty()) {
        let mut words = text.split(' ');
        let (name, version) = (words.next()?, words.next()?.parse().ok()?);
        match (api, words.next()) {
            (Api::Driver, None) => lookups.push(Lookup { base: name, since: version, per_thread: false }),
            (Api::Driver, Some("per-thread")) => {
                lookups.push(Lookup { base: name, since: version, per_thread: true });
            }
            (Api::Runtime, None) => exports.push((name, version)),
            _ => return None,
        }
    }
    Some(Function { api, group, done, name, parameters, result, lookups, exports })
}

/// The functions of an API whose names stand, as whole words, in the Rust sources under a folder.
pub fn named_under(api: Api, folder: &Path) -> io::Result<Vec<Function>> {
    let mut words = BTreeSet::new();
    collect_words(folder, &mut words)?;
    Ok(all().into_iter().filter(|f| f.api == api && words.contains(f.name)).collect())
}

fn collect_words(folder: &Path, words: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_words(&path, words)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path)?;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            words.extend(
                source
                    .split(|c| !is_word(c))
                    .filter(|w| w.starts_with("cu") || w.starts_with("nvml"))
                    .map(str::to_owned),
            );
        }
    }
    Ok(())
}

/// Writes what an API's crate includes into `out`, the build script's `OUT_DIR`:
///
/// * `stubs.rs`: an exported function for every `missing` line;
/// * `exports.rs` (driver): `EXPORTS`, the table behind `cuGetProcAddress`, sorted by base name and version.
pub fn generate(api: Api, out: &Path) -> io::Result<()> {
    let functions: Vec<_> = all().into_iter().filter(|function| function.api == api).collect();
    std::fs::write(out.join("stubs.rs"), stubs(&functions))?;
    if api == Api::Driver {
        std::fs::write(out.join("exports.rs"), exports(&functions))?;
    }
    Ok(())
}

fn stubs(functions: &[Function]) -> String {
    let mut text = String::new();
    for function in functions.iter().filter(|function| !function.done) {
        let name = function.name;
        // The caller cleans up its arguments in every C ABI of Linux, so a stub need not know them.
        write!(
            text,
            "/// Not there yet.\n#[unsafe(no_mangle)]\npub extern \"C\" fn {name}() -> u32 {{\n    \
             crate::shim::missing(\"{name}\").0\n}}\n\n"
        )
        .expect("a String takes any text");
    }
    text
}

/// The linker's version script: exactly the table's names are exported, with the version node that programs expect.
pub fn version_script(library: Library) -> String {
    let mut text = format!(
        "{}{{\n  global:\n",
        library.version_node().map(|node| format!("{node} ")).unwrap_or_default()
    );
    for (name, _) in exported_by(library) {
        writeln!(text, "    {name};").expect("a String takes any text");
    }
    text + "  local: *;\n};\n"
}

/// What objcopy renames in the crate's archive before a library is linked: `name exported-name`, a line each.
///
/// A function that the library does not export makes way where another takes its name.
pub fn renames(library: Library) -> String {
    let mut text = String::new();
    for (exported, Function { name, .. }) in exported_by(library) {
        if exported != name {
            writeln!(text, "{name} {exported}").expect("a String takes any text");
        }
    }
    let taken: Vec<_> = exported_by(library).into_iter().map(|(exported, _)| exported).collect();
    for Function { name, .. } in
        all().iter().filter(|f| f.api == library.api() && f.name_in(library).is_none())
    {
        if taken.contains(name) {
            writeln!(text, "{name} {name}_elsewhere").expect("a String takes any text");
        }
    }
    text
}

/// Symbols that the linker defines in a library of the runtime, a `name=name` each: the version that its functions see,
/// which is the only thing that differs inside them.
pub fn definitions(library: Library) -> String {
    library
        .major()
        .map(|major| format!("anywarp_cudart_version=anywarp_cudart_version_{major}\n"))
        .unwrap_or_default()
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
        for library in Library::ALL {
            let mut names: Vec<_> = exported_by(library).into_iter().map(|(name, _)| name).collect();
            assert!(names.len() > 390, "{library:?} exports {} names", names.len());
            names.sort();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name of {library:?} is there twice");
        }
        let mut names: Vec<_> = all().into_iter().map(|function| function.name).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "two functions have one name");
    }

    #[test]
    fn every_function_is_exported_by_a_library() {
        for function in all() {
            assert!(
                Library::ALL.into_iter().any(|library| function.name_in(library).is_some()),
                "{} is exported by no library",
                function.name
            );
        }
    }

    #[test]
    fn one_name_in_two_libraries_is_two_functions() {
        let find = |name: &str| all().into_iter().find(|function| function.name == name).unwrap();
        let libraries = [Library::Driver, Library::Runtime13, Library::Runtime12, Library::Runtime11];
        let names = |name: &str| libraries.map(|library| find(name).name_in(library));
        assert_eq!(names("cuInit"), [Some("cuInit"), None, None, None]);
        let malloc = Some("cudaMalloc");
        assert_eq!(names("cudaMalloc"), [None, malloc, malloc, malloc]);
        assert_eq!(names("cudaMemAdvise"), [None, Some("cudaMemAdvise"), Some("cudaMemAdvise_v2"), None]);
        assert_eq!(names("cudaMemAdvise_cuda12"), [None, None, Some("cudaMemAdvise"), Some("cudaMemAdvise")]);
        assert_eq!(names("cudaGraphInstantiate_cuda11"), [None, None, None, Some("cudaGraphInstantiate")]);
        assert_eq!(names("cudaLogsCurrent"), [None, Some("cudaLogsCurrent"), None, None]);
    }

    #[test]
    fn renaming_leaves_each_name_to_one_function() {
        for library in Library::ALL {
            let renames = renames(library);
            let renames: Vec<_> = renames.lines().map(|line| line.split_once(' ').unwrap()).collect();
            let functions = all();
            let mut names: Vec<_> = functions
                .iter()
                .filter(|function| function.api == library.api())
                .map(|function| {
                    renames
                        .iter()
                        .find(|(from, _)| *from == function.name)
                        .map_or(function.name, |(_, to)| to)
                })
                .collect();
            names.sort();
            let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
            assert!(twice.is_empty(), "{library:?}: {twice:?}");
        }
        assert_eq!(renames(Library::Driver), "");
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
