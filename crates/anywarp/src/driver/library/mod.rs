//! Any `libcuda.so.1`, loaded at run time and called through its C ABI.

mod context;
mod device;
mod module;
mod signatures;
mod stream;
#[allow(non_snake_case, clippy::type_complexity, reason = "the manual's names and signatures")]
mod table;

use crate::{Error, Result};
use cuda_abi::driver::*;
use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use table::Functions;

/// A driver's library, which stays loaded: it has threads of its own.
pub struct Library {
    functions: Functions,
}

/// Calls a driver function by its exported name.
///
/// It is for calls whose pointers lead to memory that lives through the call and has the size that the driver's manual
/// says, or is lent to the driver under a contract that the surrounding function states; and whose handles are of this
/// library and not yet destroyed, which the objects that own them see to.
macro_rules! call {
    ($library:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match $library.functions.$name {
            // SAFETY: pointers and handles are those that the macro's description allows.
            Some(function) => $crate::driver::library::check(unsafe { function($($argument),*) }),
            None => Err($crate::driver::library::lacks(stringify!($name))),
        }
    };
}
use call;

/// Loads a driver's library and initialises it.
///
/// # Safety
/// The library is CUDA's driver: its functions do what the manual says under the names of CUDA's ABI.
pub unsafe fn open(path: &Path) -> Result<Arc<dyn super::Driver>> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::arguments(format!("{}: no file has such a name", path.display())))?;
    // SAFETY: the library's constructors run, as the caller wants.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(Error::new(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, why(path)));
    }
    // SAFETY: the handle is never closed; the names end in NUL.
    let find = |name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: the caller says that the functions are CUDA's.
    let functions = unsafe { Functions::load(find) };
    let library = Arc::new(Library { functions });
    call!(library, cuInit(0))?;
    Ok(Arc::new(device::Driver(library)))
}

/// What the loader has to say.
fn why(path: &Path) -> String {
    // SAFETY: the loader's text is valid until this thread's next call of it.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return format!("{} cannot be loaded", path.display());
    }
    // SAFETY: as above; the loader's texts end in NUL.
    let text = unsafe { CStr::from_ptr(text) };
    OsStr::from_bytes(text.to_bytes()).to_string_lossy().into_owned()
}

/// A driver's answer as a result.
fn check(code: CUresult) -> Result<()> {
    if code == CUDA_SUCCESS { Ok(()) } else { Err(code.into()) }
}

fn lacks(name: &str) -> Error {
    Error::new(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, format!("the driver has no {name}"))
}

/// A name for the driver. What cannot be one is found nowhere; drivers call an empty name a wrong argument instead.
fn c_name(name: &str) -> Result<CString> {
    CString::new(name)
        .ok()
        .filter(|name| !name.is_empty())
        .ok_or_else(|| Error::new(CUDA_ERROR_NOT_FOUND, format!("nothing has the name {name:?}")))
}

/// A host address as a pointer.
fn pointer(address: u64) -> *mut c_void {
    // The address was a pointer's, whose owner has exposed it.
    std::ptr::with_exposed_provenance_mut(address as usize)
}
