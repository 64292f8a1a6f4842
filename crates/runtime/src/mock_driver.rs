//! A driver for the tests: it has a few devices, does nothing and remembers the calls of each thread.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, Once};

use cuda_abi::driver::*;

/// How many devices there are.
pub const DEVICES: i32 = 6;
/// The address that every variable has in the first context that looks for one.
pub const GLOBAL_ADDRESS: u64 = 0x1000;
/// The size of every variable.
pub const GLOBAL_SIZE: usize = 64;
/// The address of every managed variable.
pub const MANAGED_ADDRESS: u64 = 0x2000;
/// The name of the only variable that no library has.
pub const MISSING: &CStr = c"missing";

/// Puts the mock in the driver's place.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| crate::driver::replace_resolver(resolve));
}

/// The calls of this thread since it last asked, without those that every runtime call begins with.
pub fn calls() -> Vec<String> {
    CALLS.with(|calls| calls.take())
}

/// Makes the next call of a function in this thread fail.
pub fn fail_next(function: &'static str, code: CUresult) {
    FAILURE.set(Some((function, code)));
}

/// The current context of this thread.
pub fn current() -> CUcontext {
    CURRENT.get()
}

/// Makes a context current in this thread, as a program does with the driver API.
pub fn make_current(context: CUcontext) {
    CURRENT.set(context);
}

/// The primary context of a device.
pub fn primary(device: i32) -> CUcontext {
    CUcontext(0x100 + device as usize)
}

/// A context that was destroyed.
pub const DESTROYED: CUcontext = CUcontext(0xDEAD0);

/// Resets a device's primary context, as a program does with the driver API.
pub fn reset_primary(device: i32) {
    ACTIVE[device as usize].store(false, Ordering::SeqCst);
}

/// How often a device's primary context is retained.
pub fn retentions(device: i32) -> usize {
    RETENTIONS[device as usize].load(Ordering::SeqCst)
}

/// What a launch was given: sizes and shared memory, stream, address of the arguments.
pub type Launch = (CUfunction, [u32; 7], CUstream, usize);

/// The last launch of this thread.
pub fn last_launch() -> Option<Launch> {
    LAUNCH.get()
}

/// The last description of a copy of rows in this thread.
pub fn last_copy_2d() -> Option<CUDA_MEMCPY2D> {
    COPY_2D.get()
}

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static FAILURE: Cell<Option<(&'static str, CUresult)>> = const { Cell::new(None) };
    static CURRENT: Cell<CUcontext> = const { Cell::new(CUcontext(0)) };
    static LAUNCH: Cell<Option<Launch>> = const { Cell::new(None) };
    static COPY_2D: Cell<Option<CUDA_MEMCPY2D>> = const { Cell::new(None) };
}

static RETENTIONS: [AtomicUsize; DEVICES as usize] = [const { AtomicUsize::new(0) }; DEVICES as usize];
static ACTIVE: [AtomicBool; DEVICES as usize] = [const { AtomicBool::new(false) }; DEVICES as usize];
static HANDLES: AtomicUsize = AtomicUsize::new(0x10_0000);

fn enter(function: &'static str) -> CUresult {
    CALLS.with(|calls| calls.borrow_mut().push(function.to_owned()));
    match FAILURE.get() {
        Some((failing, code)) if failing == function => {
            FAILURE.set(None);
            code
        }
        _ => CUDA_SUCCESS,
    }
}

fn resolve(name: &CStr) -> *mut c_void {
    let name = name.to_str().expect("names are ASCII");
    FUNCTIONS
        .lock()
        .expect("no test panics in here")
        .get(name)
        .map_or(std::ptr::null_mut(), |&f| f as *mut c_void)
}

macro_rules! functions {
    ($(fn $name:ident($($parameter:ident: $type:ty),*) $body:block)*) => {
        mod functions {
            #![allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's signatures")]
            use super::*;
            $(pub unsafe extern "C" fn $name($($parameter: $type),*) -> CUresult {
                match enter(stringify!($name)) {
                    CUDA_SUCCESS => {}
                    code => return code,
                }
                $body
                #[allow(unreachable_code, reason = "some bodies return")]
                CUDA_SUCCESS
            })*
        }
        static FUNCTIONS: LazyLock<Mutex<HashMap<&'static str, usize>>> =
            LazyLock::new(|| Mutex::new(HashMap::from([$((stringify!($name), functions::$name as *const () as usize)),*])));
    };
}

/// Writes a result of the mock.
fn put<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the runtime passes pointers to variables of its own or of the tests.
        unsafe { out.write(value) };
    }
}

fn is_missing(name: *const c_char) -> bool {
    // SAFETY: the runtime passes the names that the tests registered.
    unsafe { CStr::from_ptr(name) == MISSING }
}

functions! {
    fn cuDriverGetVersion(version: *mut i32) { put(version, 13000); }
    fn cuInit(_flags: u32) {}
    fn cuDeviceGetCount(count: *mut i32) { put(count, DEVICES); }
    fn cuCtxGetCurrent(context: *mut CUcontext) {
        CALLS.with(|calls| calls.borrow_mut().pop());
        put(context, CURRENT.get());
    }
    fn cuCtxSetCurrent(context: CUcontext) { CURRENT.set(context); }
    fn cuCtxGetDevice(device: *mut CUdevice) { put(device, (CURRENT.get().0 & 0xF) as i32); }
    fn cuCtxSynchronize() {}
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) {
        RETENTIONS[device as usize].fetch_add(1, Ordering::SeqCst);
        ACTIVE[device as usize].store(true, Ordering::SeqCst);
        put(context, primary(device));
    }
    fn cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut u32, active: *mut i32) {
        put(flags, 0);
        put(active, ACTIVE[device as usize].load(Ordering::SeqCst).into());
    }
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) {
        if RETENTIONS[device as usize].fetch_sub(1, Ordering::SeqCst) == 1 {
            ACTIVE[device as usize].store(false, Ordering::SeqCst);
        }
    }
    fn cuDevicePrimaryCtxReset_v2(device: CUdevice) {
        reset_primary(device);
    }
    fn cuLibraryLoadData(
        library: *mut CUlibrary, _code: *const c_void, _options: *mut CUjit_option, _values: *mut *mut c_void,
        _count: u32, _library_options: *mut CUlibraryOption, _library_values: *mut *mut c_void, _library_count: u32
    ) { put(library, CUlibrary(HANDLES.fetch_add(16, Ordering::SeqCst))); }
    fn cuLibraryUnload(_library: CUlibrary) {}
    fn cuLibraryGetKernel(kernel: *mut CUkernel, _library: CUlibrary, name: *const c_char) {
        if is_missing(name) { return CUDA_ERROR_NOT_FOUND; }
        put(kernel, CUkernel(HANDLES.fetch_add(16, Ordering::SeqCst)));
    }
    fn cuLibraryGetGlobal(address: *mut CUdeviceptr, size: *mut usize, _library: CUlibrary, name: *const c_char) {
        if is_missing(name) { return CUDA_ERROR_NOT_FOUND; }
        put(address, CUdeviceptr(GLOBAL_ADDRESS));
        put(size, GLOBAL_SIZE);
    }
    fn cuLibraryGetManaged(address: *mut CUdeviceptr, size: *mut usize, _library: CUlibrary, _name: *const c_char) {
        put(address, CUdeviceptr(MANAGED_ADDRESS));
        put(size, GLOBAL_SIZE);
    }
    fn cuLaunchKernel(
        function: CUfunction, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: CUstream,
        arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) { LAUNCH.set(Some((function, [gx, gy, gz, bx, by, bz, shared], stream, arguments.addr()))); }
    fn cuMemAlloc_v2(address: *mut CUdeviceptr, _size: usize) {
        let context = CURRENT.get();
        let inactive = |device: i32| context == primary(device) && !ACTIVE[device as usize].load(Ordering::SeqCst);
        if context == DESTROYED || (0..DEVICES).any(inactive) { return CUDA_ERROR_CONTEXT_IS_DESTROYED; }
        put(address, CUdeviceptr(0x5000));
    }
    fn cuMemFree_v2(_address: CUdeviceptr) {}
    fn cuMemcpy(_to: CUdeviceptr, _from: CUdeviceptr, _count: usize) {}
    fn cuMemcpyHtoD_v2(_to: CUdeviceptr, _from: *const c_void, _count: usize) {}
    fn cuMemcpyHtoD_v2_ptds(_to: CUdeviceptr, _from: *const c_void, _count: usize) {}
    fn cuMemcpyDtoH_v2(_to: *mut c_void, _from: CUdeviceptr, _count: usize) {}
    fn cuMemcpyDtoD_v2(_to: CUdeviceptr, _from: CUdeviceptr, _count: usize) {}
    fn cuMemcpy2DUnaligned_v2(description: *const CUDA_MEMCPY2D) {
        // SAFETY: the runtime passes a description of its own.
        COPY_2D.set(Some(unsafe { *description }));
    }
    fn cuMemsetD2D8_v2(_address: CUdeviceptr, _pitch: usize, _value: u8, _width: usize, _height: usize) {}
    fn cuStreamQuery(_stream: CUstream) { return CUDA_ERROR_NOT_READY; }
}
