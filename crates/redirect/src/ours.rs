//! Our own libraries: where they are, and what our runtimes export, read from their files without opening them.

use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, Sym};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// What programs link with and open. The names say which version of an interface is behind them.
const LIBRARIES: [&str; 4] = ["libcuda.so.1", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"];

/// The file of ours that takes the place of a library, however it is named: an object that was linked with a run path, as
/// wheels are that bring NVIDIA's libraries, would find those before any in `LD_LIBRARY_PATH`.
pub fn instead_of(wanted: &CStr) -> Option<&'static CStr> {
    static FILES: OnceLock<Vec<CString>> = OnceLock::new();
    let name = |path: &CStr| path.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
    let wanted = name(wanted);
    if !LIBRARIES.iter().any(|library| library.as_bytes() == wanted) {
        return None;
    }
    let files = FILES.get_or_init(|| {
        let Ok(folder) = crate::own_folder() else { return Vec::new() };
        let files = LIBRARIES.iter().map(|library| folder.join(library)).filter(|file| file.is_file());
        files.filter_map(|file| CString::new(file.as_os_str().as_bytes()).ok()).collect()
    });
    files.iter().map(CString::as_c_str).find(|file| name(file) == wanted)
}

/// The major version of CUDA that the first of our runtimes is for; each of the others is for the next one.
pub const OLDEST: u32 = 11;
/// How many there are.
pub const RUNTIMES: usize = 3;

/// One of our runtimes.
pub struct Exports {
    /// Its file.
    pub path: PathBuf,
    /// The exported functions, sorted. A function's place is the number of its stub.
    names: Vec<CString>,
}

impl Exports {
    /// The number of an exported function.
    pub fn index(&self, name: &[u8]) -> Option<usize> {
        self.names.binary_search_by(|exported| exported.as_bytes().cmp(name)).ok()
    }

    /// The name of an exported function.
    pub fn name(&self, index: usize) -> Option<&CString> {
        self.names.get(index)
    }
}

/// Our runtime for programs of a major version of CUDA.
pub fn exports(version: u32) -> Result<&'static Exports, String> {
    static EXPORTS: [OnceLock<Result<Exports, String>>; RUNTIMES] = [const { OnceLock::new() }; RUNTIMES];
    EXPORTS[place(version)].get_or_init(|| read(version)).as_ref().map_err(Clone::clone)
}

/// A runtime's place among ours, by the major version that an image was found to have.
pub fn place(version: u32) -> usize {
    (version - OLDEST) as usize
}

fn read(version: u32) -> Result<Exports, String> {
    // CUDA 11 has a minor version in the name, the same in all of its versions.
    let minor = if version == 11 { ".0" } else { "" };
    let path = crate::own_folder()?.join(format!("libcudart.so.{version}{minor}"));
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut names = functions(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    names.sort();
    names.dedup();
    Ok(Exports { path, names })
}

fn functions(bytes: &[u8]) -> object::Result<Vec<CString>> {
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    let sections = header.sections(LittleEndian, bytes)?;
    let symbols = sections.symbols(LittleEndian, bytes, elf::SHT_DYNSYM)?;
    let defined = symbols
        .iter()
        .filter(|symbol| symbol.st_type() == elf::STT_FUNC && !symbol.is_undefined(LittleEndian));
    defined
        .map(|symbol| Ok(CString::new(symbol.name(LittleEndian, symbols.strings())?).unwrap_or_default()))
        .collect()
}
