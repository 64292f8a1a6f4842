//! Generates, for each of the APIs:
//!
//! * `<api>_functions.rs`: a Rust function for every exported function that the tests name, typed as in
//!   `cuda-abi/functions.in`, which looks its symbol up at the first call;
//! * `<api>_handles.rs`: the table of all functions that take handles;
//! * `<api>_tests.rs`: the table of tests, which are the functions `pub fn name()` of the files in `src/<api>/`,
//!   except `common.rs`.

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use cuda_abi::functions::{Function, Library, exported_by};

/// Types of handles, and whose handles they are: the runtime's are the driver's by other names.
const HANDLES: &[(&str, &str)] = &[
    ("CUarray", "CUarray"),
    ("CUasyncCallbackHandle", "CUasyncCallbackHandle"),
    ("CUcontext", "CUcontext"),
    ("CUdevResourceDesc", "CUdevResourceDesc"),
    ("CUevent", "CUevent"),
    ("CUexternalMemory", "CUexternalMemory"),
    ("CUexternalSemaphore", "CUexternalSemaphore"),
    ("CUfunction", "CUfunction"),
    ("CUgraph", "CUgraph"),
    ("CUgraphExec", "CUgraphExec"),
    ("CUgraphNode", "CUgraphNode"),
    ("CUgreenCtx", "CUgreenCtx"),
    ("CUkernel", "CUkernel"),
    ("CUlibrary", "CUlibrary"),
    ("CUlinkState", "CUlinkState"),
    ("CUlogsCallbackHandle", "CUlogsCallbackHandle"),
    ("CUmemGenericAllocationHandle", "CUmemGenericAllocationHandle"),
    ("CUmemoryPool", "CUmemoryPool"),
    ("CUmipmappedArray", "CUmipmappedArray"),
    ("CUmodule", "CUmodule"),
    ("CUstream", "CUstream"),
    ("CUsurfObject", "CUsurfObject"),
    ("CUsurfref", "CUsurfref"),
    ("CUtexObject", "CUtexObject"),
    ("CUtexref", "CUtexref"),
    ("CUuserObject", "CUuserObject"),
    ("cudaArray_const_t", "CUarray"),
    ("cudaArray_t", "CUarray"),
    ("cudaAsyncCallbackHandle_t", "CUasyncCallbackHandle"),
    ("cudaEvent_t", "CUevent"),
    ("cudaExternalMemory_t", "CUexternalMemory"),
    ("cudaExternalSemaphore_t", "CUexternalSemaphore"),
    ("cudaGraphExec_t", "CUgraphExec"),
    ("cudaGraphNode_t", "CUgraphNode"),
    ("cudaGraph_t", "CUgraph"),
    ("cudaKernel_t", "CUkernel"),
    ("cudaLibrary_t", "CUlibrary"),
    ("cudaLogsCallbackHandle", "CUlogsCallbackHandle"),
    ("cudaMemPool_t", "CUmemoryPool"),
    ("cudaMipmappedArray_const_t", "CUmipmappedArray"),
    ("cudaMipmappedArray_t", "CUmipmappedArray"),
    ("cudaStream_t", "CUstream"),
    ("cudaSurfaceObject_t", "CUsurfObject"),
    ("cudaTextureObject_t", "CUtexObject"),
    ("cudaUserObject_t", "CUuserObject"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut files = Vec::new();
    collect_files(Path::new("src"), &mut files)?;

    let mut words = BTreeSet::new();
    for (_, source) in &files {
        // Names that are called; not those in texts.
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let calls = source.split('(').map(|before| before.rsplit(|c| !is_word(c)).next().unwrap_or(before));
        words.extend(calls);
    }
    for (api, library) in
        [("driver", Library::Driver), ("runtime", Library::Runtime13), ("nvml", Library::Nvml)]
    {
        let mut text = String::new();
        for (exported, function) in exported_by(library) {
            if words.contains(function.name) {
                write_function(&mut text, api, exported, &function)?;
            }
        }
        // What only CUDA 12 or 11 has is called by the table's name, and looked up in the newer of their libraries by its own.
        let older = [("runtime12", Library::Runtime12), ("runtime11", Library::Runtime11)];
        let mut newer = vec![library];
        for (origin, older) in older.into_iter().filter(|_| api == "runtime") {
            for (exported, function) in exported_by(older) {
                let only_there = newer.iter().all(|newer| function.name_in(*newer).is_none());
                if only_there && words.contains(function.name) {
                    write_function(&mut text, origin, exported, &function)?;
                }
            }
            newer.push(older);
        }
        fs::write(out.join(format!("{api}_functions.rs")), text)?;
        if library != Library::Nvml {
            fs::write(out.join(format!("{api}_handles.rs")), table_of_handles(api, library)?)?;
        }
        fs::write(out.join(format!("{api}_tests.rs")), table_of_tests(api, &files)?)?;
    }
    Ok(())
}

/// Every source file under a folder, with its text, in order of their paths.
fn collect_files(folder: &Path, files: &mut Vec<(PathBuf, String)>) -> std::io::Result<()> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path)?;
            files.push((path, source));
        }
    }
    Ok(())
}

/// `origin` says which library the function is looked up in, and `exported` by which name.
fn write_function(
    text: &mut String,
    origin: &str,
    exported: &str,
    function: &Function,
) -> Result<(), Box<dyn Error>> {
    let Function { name, result, .. } = function;
    let result = if *result == "()" { String::new() } else { format!(" -> {result}") };
    // Without a public signature there is nothing that a test could call.
    let Some(types) = function.parameters.as_ref() else { return Ok(()) };
    let parameters: Vec<_> = types.iter().enumerate().map(|(i, ty)| format!("a{i}: {ty}")).collect();
    let arguments: Vec<_> = (0..types.len()).map(|i| format!("a{i}")).collect();
    let (parameters, arguments, types) = (parameters.join(", "), arguments.join(", "), types.join(", "));
    write!(
        text,
        "/// Calls `{name}` of the library under test.\n\
         ///\n\
         /// # Safety\n\
         /// The pointers are what the manual demands, or what the library must notice.\n\
         #[allow(clippy::too_many_arguments, reason = \"the manual's signature\")]\n\
         pub unsafe fn {name}({parameters}){result} {{\n    \
             static SYMBOL: Symbol = Symbol::{origin}(c\"{exported}\");\n    \
             // SAFETY: the library's function of this name has this signature.\n    \
             let function: unsafe extern \"C\" fn({types}){result} = unsafe {{ std::mem::transmute(SYMBOL.address()) }};\n    \
             // SAFETY: the caller's duty.\n    \
             unsafe {{ function({arguments}) }}\n\
         }}\n\n"
    )?;
    Ok(())
}

/// The table of the functions that take handles and answer with a code. Those that only compilers' glue calls, with what they gave
/// it, are not for programs.
fn table_of_handles(api: &str, library: Library) -> Result<String, Box<dyn Error>> {
    let mut text =
        "/// The functions that take handles.\npub static TAKING_HANDLES: &[Function] = &[\n".to_owned();
    for (exported, function) in exported_by(library) {
        let Some(types) = function.parameters.as_ref().filter(|_| function.done) else { continue };
        let kind = |ty: &str| HANDLES.iter().find(|(name, _)| *name == ty).map(|(_, kind)| *kind);
        let takes_handle = types.iter().any(|ty| kind(ty).is_some()) && !exported.starts_with("__");
        if !takes_handle || !["CUresult", "cudaError_t"].contains(&function.result) {
            continue;
        }
        let parameters: String =
            types.iter().map(|ty| format!("Parameter {{ ty: \"{ty}\", kind: {:?} }}, ", kind(ty))).collect();
        // SAFETY in what is generated: an argument has room for any of the types, for each of which zeros are a value.
        let arguments: Vec<_> = types
            .iter()
            .enumerate()
            .map(|(i, ty)| format!("a[{i}].as_ptr().cast::<{ty}>().read_unaligned()"))
            .collect();
        write!(
            text,
            "Function {{ name: \"{exported}\", parameters: &[{parameters}], call: |a| {{\n\
                 static SYMBOL: Symbol = Symbol::{api}(c\"{exported}\");\n\
                 // SAFETY: the library's function of this name has this signature, and an argument has room for each of its types.\n\
                 unsafe {{\n\
                     let f: unsafe extern \"C\" fn({}) -> {} = std::mem::transmute(SYMBOL.address());\n\
                     f({}).0\n\
                 }}\n\
             }} }},\n",
            types.join(", "),
            function.result,
            arguments.join(", "),
        )?;
    }
    Ok(text + "];\n")
}

/// The table of the tests in `src/<api>/`; a file that no `mod` names would hold tests that never run.
fn table_of_tests(api: &str, files: &[(PathBuf, String)]) -> Result<String, Box<dyn Error>> {
    let folder = Path::new("src").join(api);
    let root = fs::read_to_string(folder.join("mod.rs"))?;
    let mut text = format!("/// The tests of the files in `src/{api}/`.\npub static TESTS: &[Test] = &[\n");
    for (path, source) in files {
        let Ok(relative) = path.strip_prefix(&folder) else { continue };
        let file = relative.file_stem().and_then(|stem| stem.to_str()).ok_or("a file has a name")?;
        if ["mod", "common"].contains(&file) {
            continue;
        }
        if relative.components().count() > 1 {
            return Err(format!("{}: the folder has no folders", path.display()).into());
        }
        if !root
            .lines()
            .any(|line| line == format!("mod {file};") || line == format!("pub(crate) mod {file};"))
        {
            return Err(format!("{}: src/{api}/mod.rs has no `mod {file};`", path.display()).into());
        }
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("pub fn ").and_then(|line| line.strip_suffix("() {")) {
                writeln!(text, "    Test {{ name: \"{api}::{file}::{name}\", body: {file}::{name} }},")?;
            }
        }
    }
    Ok(text + "];\n")
}
