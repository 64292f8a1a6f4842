//! The compiler, opened when it is first needed.

use kernel_abi::artifact::Artifact;
use kernel_abi::library::{
    Bytes, COMPILE_SYMBOL, CompileFn, FILE_NAME, FREE_SYMBOL, FreeFn, INTERFACE, INTERFACE_SYMBOL, Input,
    InterfaceFn, Outcome, Output,
};
use kernel_abi::{Approximations, CompileError, Tier};
use std::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A kernel to compile.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The linked module.
    pub ptx: &'a str,
    /// Name of the kernel.
    pub entry: &'a str,
    /// Launch shape to specialise for.
    pub shape: kernel_abi::Shape,
    /// Name of the CPU: `native` or a level.
    pub cpu: &'a str,
    /// What `.approx` instructions become.
    pub approximations: Approximations,
    /// How much is done for the code's speed.
    pub tier: Tier,
}

/// What turns PTX into machine code.
pub trait Compiler: Send + Sync {
    /// Tells this build of the compiler from all others: part of every key in the cache. Must be quick.
    fn identity(&self) -> String;

    /// Compiles a kernel. May be called from several threads at once.
    fn compile(&self, source: &Source<'_>) -> Result<Artifact, CompileError>;
}

/// The compiler as a library beside the one that contains this code, or where `ANYWARP_COMPILER_LIB` says.
#[derive(Default)]
pub struct CompilerLibrary {
    opened: OnceLock<Result<Opened, CompileError>>,
}

impl CompilerLibrary {
    /// Whether there is a file to open.
    pub fn is_installed() -> bool {
        find().is_some_and(|path| path.is_file())
    }
}

impl Compiler for CompilerLibrary {
    /// The file's place, size and time: it is not opened for that.
    fn identity(&self) -> String {
        let Some(path) = find() else { return "none".into() };
        match path.metadata() {
            Ok(file) => {
                format!(
                    "{INTERFACE} {} {} {}.{}",
                    path.display(),
                    file.size(),
                    file.mtime(),
                    file.mtime_nsec()
                )
            }
            Err(_) => format!("{INTERFACE} {}", path.display()),
        }
    }

    fn compile(&self, source: &Source<'_>) -> Result<Artifact, CompileError> {
        self.opened.get_or_init(open).as_ref().map_err(CompileError::clone)?.compile(source)
    }
}

struct Opened {
    compile: CompileFn,
    free: FreeFn,
}

impl Opened {
    fn compile(&self, source: &Source<'_>) -> Result<Artifact, CompileError> {
        let input = Input {
            ptx: Bytes::of(source.ptx),
            entry: Bytes::of(source.entry),
            cpu: Bytes::of(source.cpu),
            approximations: Bytes::of(source.approximations.name()),
            shape: source.shape.code(),
            tier: source.tier as u32,
        };
        let mut output = Output { outcome: Outcome::Failed as u32, data: std::ptr::null_mut(), length: 0 };
        // SAFETY: the functions are those of a library that speaks this interface, which was compared; input and output
        // live as long as the calls. The data is copied before it is given back.
        let data = unsafe {
            (self.compile)(&input, &mut output);
            let data = match output.data.is_null() {
                true => Vec::new(),
                false => std::slice::from_raw_parts(output.data, output.length).to_vec(),
            };
            (self.free)(&mut output);
            data
        };
        if output.outcome == Outcome::Compiled as u32 {
            return Artifact::decode(&data)
                .ok_or_else(|| CompileError::new("the compiler library answered nonsense"));
        }
        let message = String::from_utf8_lossy(&data).into_owned();
        Err(match output.outcome {
            outcome if outcome == Outcome::Unsupported as u32 => CompileError::unsupported(message),
            outcome if outcome == Outcome::Later as u32 => CompileError::later(message),
            _ => CompileError::new(message),
        })
    }
}

/// Where the library is: named by the environment, or beside this code's own file, or in `lib` beside that file's folder (a
/// program in `bin`), or above it (one that Cargo built in `examples` or `deps`).
fn find() -> Option<PathBuf> {
    if let Some(path) = env::var_os("ANYWARP_COMPILER_LIB").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let own = own_file()?;
    let folder = own.parent()?;
    let candidates = ["", "../lib", ".."].map(|place| folder.join(place).join(FILE_NAME));
    candidates.into_iter().find(|path| path.exists())
}

/// The file that this code was loaded from, links resolved.
fn own_file() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| named_by_loader().or_else(named_by_kernel)?.canonicalize().ok()).as_deref()
}

/// The name by which the file was opened, unless it depends on the folder the process was in then.
fn named_by_loader() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is ours; on success the name is NUL-terminated and lives as long as this code is loaded.
    let name = unsafe {
        if libc::dladdr(own_file as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(info.assume_init().dli_fname)
    };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    path.is_absolute().then(|| path.to_owned())
}

/// The name of the mapping that holds this code. Lines: `start-end permissions offset device inode path`.
fn named_by_kernel() -> Option<PathBuf> {
    let here = own_file as *const () as u64;
    let maps = std::fs::read("/proc/self/maps").ok()?;
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let text = String::from_utf8_lossy(line);
        let (start, rest) = text.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        let path = line.iter().position(|byte| *byte == b'/')?;
        range.contains(&here).then(|| Path::new(OsStr::from_bytes(&line[path..])).to_owned())
    })
}

fn open() -> Result<Opened, CompileError> {
    let path = find().ok_or_else(|| {
        failed(format!("{FILE_NAME} is not beside the library that needs it; set ANYWARP_COMPILER_LIB"))
    })?;
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| failed("a path with a NUL"))?;
    // SAFETY: opening runs the library's initialisers; it is our own library, or the one the user named as such. It is
    // never closed, so its functions stay.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            return Err(failed(last_error()));
        }
        let interface = symbol::<InterfaceFn>(handle, INTERFACE_SYMBOL)?();
        let found = CStr::from_ptr(interface).to_string_lossy();
        if found != INTERFACE {
            return Err(failed(format!("{} is of version {found}, not {INTERFACE}", path.display())));
        }
        Ok(Opened {
            compile: symbol::<CompileFn>(handle, COMPILE_SYMBOL)?,
            free: symbol::<FreeFn>(handle, FREE_SYMBOL)?,
        })
    }
}

/// A function of the library.
///
/// # Safety
/// `handle` is open, and the symbol, if there, is a function of type `F`, which is a function pointer.
unsafe fn symbol<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, CompileError> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle is open; the type is the caller's contract.
    unsafe {
        let address = libc::dlsym(handle, name.as_ptr());
        if address.is_null() {
            return Err(failed(format!("it has no symbol {}", name.to_string_lossy())));
        }
        Ok(std::mem::transmute_copy::<*mut c_void, F>(&address))
    }
}

fn failed(why: impl fmt::Display) -> CompileError {
    CompileError::no_compiler(format!("cannot open the compiler library: {why}"))
}

fn last_error() -> String {
    // SAFETY: dlerror answers null or a NUL-terminated string that is valid until this thread's next dl call.
    unsafe {
        let error: *const c_char = libc::dlerror();
        if error.is_null() {
            "unknown error".into()
        } else {
            CStr::from_ptr(error).to_string_lossy().into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_code_knows_its_file() {
        let program = env::current_exe().unwrap().canonicalize().unwrap();
        assert_eq!(own_file(), Some(&*program));
        assert_eq!(named_by_kernel(), Some(program));
    }
}
