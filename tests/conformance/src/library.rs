//! The libraries under test and their symbols.

use std::ffi::{CStr, CString, OsString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::answers::skip;

/// Which files to test.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The Driver API; without one the loader looks for `libcuda.so.1`.
    pub driver: Option<PathBuf>,
    /// The Runtime API; without one the loader looks for `libcudart.so.13`.
    pub runtime: Option<PathBuf>,
    /// The Runtime API of CUDA 12; without one the loader looks for `libcudart.so.12`, and tests of it are skipped if
    /// there is none.
    pub runtime12: Option<PathBuf>,
    /// Likewise that of CUDA 11, `libcudart.so.11.0`.
    pub runtime11: Option<PathBuf>,
    /// The management library; without one the loader looks for `libnvidia-ml.so.1`.
    pub nvml: Option<PathBuf>,
}

/// Who made a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// This project.
    Anywarp,
    /// Anyone else: where a GPU is, NVIDIA.
    Nvidia,
}

impl Maker {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Maker::Anywarp => "anywarp",
            Maker::Nvidia => "nvidia",
        }
    }

    /// The maker of that name.
    pub fn from_name(name: &str) -> Option<Maker> {
        [Maker::Anywarp, Maker::Nvidia].into_iter().find(|maker| maker.name() == name)
    }

    /// Our libraries name environment variables after the project; nobody else's do.
    fn of_file(path: &Path) -> std::io::Result<Maker> {
        let content = std::fs::read(path)?;
        let ours = content.windows(8).any(|bytes| bytes == b"ANYWARP_" || bytes == b"anywarp-");
        Ok(if ours { Maker::Anywarp } else { Maker::Nvidia })
    }
}

/// An open library.
pub struct Library {
    handle: NonNull<c_void>,
    path: PathBuf,
    maker: Maker,
}

// SAFETY: the loader's handles may be used by any thread.
unsafe impl Send for Library {}
// SAFETY: likewise.
unsafe impl Sync for Library {}

static CHOICE: OnceLock<(Choice, Option<Maker>)> = OnceLock::new();
static DRIVER: OnceLock<Library> = OnceLock::new();
static RUNTIME: OnceLock<Library> = OnceLock::new();
static RUNTIME12: OnceLock<Library> = OnceLock::new();
static RUNTIME11: OnceLock<Library> = OnceLock::new();
static NVML: OnceLock<Library> = OnceLock::new();

/// Says what to test, before the first call; `maker` overrides what the driver's file tells.
pub fn choose(choice: Choice, maker: Option<Maker>) {
    CHOICE.set((choice, maker)).expect("the choice is made once");
}

fn choice() -> &'static (Choice, Option<Maker>) {
    CHOICE.get_or_init(Default::default)
}

/// The Driver API under test.
pub fn driver() -> &'static Library {
    DRIVER.get_or_init(|| {
        let (choice, maker) = choice();
        let mut library = Library::open(choice.driver.as_deref(), "libcuda.so.1");
        library.maker = maker.unwrap_or(library.maker);
        library
    })
}

/// The Runtime API under test. It works on the driver under test: that is opened first, and the loader does not open
/// a second `libcuda.so.1`.
pub fn runtime() -> &'static Library {
    driver();
    RUNTIME.get_or_init(|| Library::open(choice().0.runtime.as_deref(), "libcudart.so.13"))
}

/// The Runtime API of CUDA 12 under test, beside that of CUDA 13.
pub fn runtime12() -> &'static Library {
    driver();
    RUNTIME12.get_or_init(|| match &choice().0.runtime12 {
        Some(path) => Library::open(Some(path), "libcudart.so.12"),
        None => Library::try_open(None, "libcudart.so.12").unwrap_or_else(|reason| skip(&reason)),
    })
}

/// The Runtime API of CUDA 11 under test, likewise.
pub fn runtime11() -> &'static Library {
    driver();
    RUNTIME11.get_or_init(|| match &choice().0.runtime11 {
        Some(path) => Library::open(Some(path), "libcudart.so.11.0"),
        None => Library::try_open(None, "libcudart.so.11.0").unwrap_or_else(|reason| skip(&reason)),
    })
}

/// The management library under test.
pub fn nvml() -> &'static Library {
    NVML.get_or_init(|| Library::open(choice().0.nvml.as_deref(), "libnvidia-ml.so.1"))
}

/// Which files will be tested and who made them, or why they cannot be.
pub fn describe(choice: &Choice, with_runtime: bool) -> Result<String, String> {
    let driver = Library::try_open(choice.driver.as_deref(), "libcuda.so.1")?;
    let mut text = format!("{} ({})", driver.path.display(), driver.maker.name());
    if with_runtime {
        let runtime = Library::try_open(choice.runtime.as_deref(), "libcudart.so.13")?;
        text += &format!(", {} ({})", runtime.path.display(), runtime.maker.name());
    }
    Ok(text)
}

impl Library {
    fn open(path: Option<&Path>, soname: &str) -> Library {
        Library::try_open(path, soname).unwrap_or_else(|reason| panic!("{reason}"))
    }

    fn try_open(path: Option<&Path>, soname: &str) -> Result<Library, String> {
        let name = path.map_or_else(|| OsString::from(soname), |path| path.as_os_str().to_owned());
        let name = CString::new(name.as_bytes()).expect("a path has no NUL");
        // SAFETY: opening a library runs its constructors, which is what is asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        let handle = NonNull::new(handle).ok_or_else(last_error)?;
        let path = file_of(handle).unwrap_or_else(|| PathBuf::from(soname));
        let maker = Maker::of_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Library { handle, path, maker })
    }

    /// Who made it.
    pub fn maker(&self) -> Maker {
        self.maker
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of an exported name, if there is one.
    pub fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is that of an open library, which is never closed.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

fn last_error() -> String {
    // SAFETY: the text lives until the thread's next call of the loader.
    let text = unsafe { libc::dlerror() };
    match text.is_null() {
        true => "the loader gives no reason".to_owned(),
        // SAFETY: not null, so a C string.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}

/// The file that a handle's library was loaded from.
fn file_of(handle: NonNull<c_void>) -> Option<PathBuf> {
    /// The beginning of the loader's `struct link_map`, which is public.
    #[repr(C)]
    struct LinkMap {
        _base: usize,
        name: *const libc::c_char,
    }
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: an open handle, and a place for the pointer that this request answers with.
    let status = unsafe { libc::dlinfo(handle.as_ptr(), libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    if status != 0 || map.is_null() {
        return None;
    }
    // SAFETY: the map of an open library, whose name is a C string.
    let name = unsafe { CStr::from_ptr((*map).name) };
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
}

/// An exported function, looked up at its first call.
pub struct Symbol {
    name: &'static CStr,
    library: fn() -> &'static Library,
    address: OnceLock<usize>,
}

impl Symbol {
    /// A function of the Driver API.
    pub const fn driver(name: &'static CStr) -> Symbol {
        Symbol { name, library: driver, address: OnceLock::new() }
    }

    /// A function of the Runtime API.
    pub const fn runtime(name: &'static CStr) -> Symbol {
        Symbol { name, library: runtime, address: OnceLock::new() }
    }

    /// A function that the Runtime API has in CUDA 11 only.
    pub const fn runtime11(name: &'static CStr) -> Symbol {
        Symbol { name, library: runtime11, address: OnceLock::new() }
    }

    /// A function that the Runtime API has in CUDA 12 and not in 13.
    pub const fn runtime12(name: &'static CStr) -> Symbol {
        Symbol { name, library: runtime12, address: OnceLock::new() }
    }

    /// A function of the management library.
    pub const fn nvml(name: &'static CStr) -> Symbol {
        Symbol { name, library: nvml, address: OnceLock::new() }
    }

    /// Its address; a library without it fails the test.
    pub fn address(&self) -> *const c_void {
        let address = self.address.get_or_init(|| {
            let library = (self.library)();
            let symbol = library.symbol(self.name);
            symbol.unwrap_or_else(|| panic!("{} has no {:?}", library.path.display(), self.name)).as_ptr()
                as usize
        });
        *address as *const c_void
    }
}
