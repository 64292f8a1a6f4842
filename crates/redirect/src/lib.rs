//! `libanywarp_redirect.so`: runs programs that carry NVIDIA's runtime inside, or ask NVIDIA's run-time compiler for machine code.
//!
//! nvcc links NVIDIA's Runtime API into programs unless told `-cudart shared`. That copy works with NVIDIA's own driver
//! only. It leaves its symbols in the file, though, so what debuggers and checkers do can be done here: every function
//! `cuda*` of that copy gets a jump to the function of the same name in our `libcudart.so` over its first bytes, before any
//! code of the file has run. None of NVIDIA's runtime is executed then.
//!
//! `anywarp run` names this library in `LD_AUDIT`. The dynamic loader calls an auditor for each object that it has mapped,
//! at the program's start and in each `dlopen`, before the object is relocated and its constructors run
//! (`man 7 rtld-audit`); children of the program inherit it. What happens to one object:
//!
//! 1. [`image`] reads the tables of its file and decides whether a runtime is inside, and which. Most objects have none:
//!    they are not touched, and nothing else is loaded.
//! 2. [`ours`] lists what our runtime of that version exports, from its file.
//! 3. [`jump`] plans the bytes to write. A plan covers all functions or there is none: never is half of NVIDIA's runtime
//!    left in use. [`memory`] checks that the object in memory is the one in the file, and writes.
//! 4. The jumps lead to [`stubs`], which open our `libcudart.so` at the first call.
//!
//! NVIDIA's run-time compiler (NVRTC) keeps the PTX that it makes machine code of. What asks for the machine code
//! (`nvrtcGetCUBIN`), which no CPU can run, gets that PTX: drivers take either. A jump inside that library does it.
//!
//! The same interface asks where to find an object that is needed. Ours come first, even where a program names a folder of
//! its own for NVIDIA's ([`ours::instead_of`]).
//!
//! What cannot be led to us is said on standard error, with what to do about it, and left as it was: NVIDIA's runtime then
//! reports an error of its own, since our driver does not pretend to be NVIDIA's.
//!
//! An auditor lives in a name space of its own, with its own C library. That is why this library knows no other crate of
//! ours, shares no state with them, and opens `libcudart.so` explicitly in the program's name space.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!(
    "anywarp-redirect writes jumps for Linux on x86-64 only: add them for this target in src/jump.rs"
);

pub mod image;
pub mod jump;
mod memory;
mod object_file;
mod ours;
mod report;
mod stubs;

use image::{Image, Inside};
use report::{log, warn};
use std::ffi::{CStr, OsStr, c_char, c_int, c_long, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// What the loader tells of an object: the public beginning of `struct link_map` in `<link.h>`.
#[repr(C)]
pub struct LinkMap {
    /// What was added to the addresses in the file.
    load_bias: usize,
    name: *const c_char,
    dynamic: *const c_void,
}

/// The loader's first question to an auditor: which version of the interface it speaks. Everything used here is in all.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(offered: c_uint) -> c_uint {
    offered
}

/// The loader looks for an object, by a name without folder or in one folder after another. The answer is where to look.
///
/// # Safety
/// Called by the dynamic loader, with a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    _cookie: *mut usize,
    _rule: c_uint,
) -> *const c_char {
    // SAFETY: a string of the loader's.
    let wanted = unsafe { CStr::from_ptr(name) };
    match catch_unwind(|| ours::instead_of(wanted)) {
        Ok(Some(found)) => found.as_ptr(),
        _ => name,
    }
}

/// The loader has mapped an object. The answer says that its symbol bindings are of no interest.
///
/// # Safety
/// Called by the dynamic loader, with the object's description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objopen(map: *const LinkMap, _namespace: c_long, _cookie: *mut usize) -> c_uint {
    // SAFETY: the loader passes a valid description that outlives this call.
    let map = unsafe { &*map };
    // A panic would be a bug here; the program must not pay for it.
    let _ = catch_unwind(|| redirect(map));
    0
}

fn redirect(map: &LinkMap) {
    // SAFETY: the name is a string of the loader's, empty for the executable.
    let name = OsStr::from_bytes(unsafe { CStr::from_ptr(map.name) }.to_bytes());
    let path = if name.is_empty() {
        memory::file_mapped_at(map.dynamic as usize)
    } else {
        Some(PathBuf::from(name))
    };
    // An object without a file is the kernel's own (the vDSO).
    let Some(file) = path.as_deref().and_then(|path| object_file::Mapped::open(path).ok()) else { return };
    let path = path.unwrap_or_default();
    // What the loader accepted and this reader does not has no tables to find a runtime by.
    let Ok(image) = Image::parse(file.bytes()) else { return };
    match hand_out_ptx(&image, map.load_bias) {
        Ok(false) => {}
        Ok(true) => log(&path, "what asks for machine code gets PTX"),
        Err(reason) => {
            let found =
                format!("is NVIDIA's run-time compiler, which cannot be led to hand out PTX: {reason}");
            warn(&path, &found, ADVICE_COMPILER);
        }
    }
    match image.inside() {
        Inside::Nothing => {}
        Inside::Hidden => {
            warn(&path, "has NVIDIA's CUDA runtime inside but no symbol table to find it by", ADVICE_STRIPPED)
        }
        Inside::Older => warn(&path, "has the CUDA runtime of a version before 11 inside", ADVICE_RELINK),
        Inside::Runtime(version) => match lead_to_ours(&image, version, map.load_bias) {
            Ok(done) => log(&path, &done),
            Err(reason) => {
                let found = format!(
                    "has NVIDIA's CUDA {version} runtime inside, which cannot be redirected: {reason}"
                );
                warn(&path, &found, ADVICE_RELINK);
            }
        },
    }
}

const ADVICE_STRIPPED: &str = "Its CUDA calls will fail. Keep its symbols (no `strip`, no `-s`), or link it with `nvcc -cudart shared` \
                               or with Anywarp's libcudart_static.a.";
const ADVICE_RELINK: &str = "Its CUDA calls will fail. Link it with `nvcc -cudart shared` of CUDA 11, 12 or 13, or with Anywarp's libcudart_static.a.";

const ADVICE_COMPILER: &str = "Programs that ask it for machine code rather than PTX will fail: let them compile for `compute_XX` in place of `sm_XX`.";

/// Leads what hands out machine code in NVIDIA's run-time compiler to what hands out PTX. Answers whether the object is one.
fn hand_out_ptx(image: &Image, load_bias: usize) -> Result<bool, String> {
    let pairs = image.compiler_functions();
    let in_memory =
        |address: u64| (load_bias as u64).checked_add(address).ok_or("it lies beyond the end of memory");
    let requests = pairs.iter().map(|(function, instead)| {
        Ok(jump::Request { function: *function, target: in_memory(instead.address)? })
    });
    let patches = jump::plan(image, requests.collect::<Result<_, String>>()?, load_bias as u64)?;
    // SAFETY: the loader has mapped this object and nothing has run in it yet: it is not relocated.
    unsafe { memory::write(image, &patches, load_bias) }?;
    Ok(!pairs.is_empty())
}

/// Redirects every function of the runtime in an object, or none. Answers what was done.
fn lead_to_ours(image: &Image, version: u32, load_bias: usize) -> Result<String, String> {
    let ours = ours::exports(version)?;
    let mut missing = Vec::new();
    let mut requests = Vec::new();
    for function in image.runtime_functions(|name| ours.index(name).is_some()) {
        let target = match ours.index(function.name) {
            Some(index) => stubs::address(version, index)?,
            None => {
                missing.push(String::from_utf8_lossy(function.name));
                stubs::not_supported as *const () as usize
            }
        };
        requests.push(jump::Request { function, target: target as u64 });
    }
    let count = requests.len();
    let patches = jump::plan(image, requests, load_bias as u64)?;
    // SAFETY: the loader has mapped this object and nothing has run in it yet: it is not relocated.
    unsafe { memory::write(image, &patches, load_bias) }?;
    let mut done =
        format!("{count} functions of the CUDA {version} runtime inside lead to {}", ours.path.display());
    if !missing.is_empty() {
        done += &format!("; not there, so they answer cudaErrorNotSupported: {}", missing.join(" "));
    }
    Ok(done)
}

/// The folder of this library, where our runtimes lie too.
fn own_folder() -> Result<PathBuf, String> {
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: the address is of a function here; `found` is writable.
    let known: c_int = unsafe { libc::dladdr(la_version as *const c_void, &mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return Err("where this library lies is not known".into());
    }
    // SAFETY: dladdr answers with the loader's own string, which lives as long as this library.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(found.dli_fname) }.to_bytes()));
    Ok(path.parent().unwrap_or(Path::new(".")).to_owned())
}
