//! A driver for the tests: it has a few devices, does nothing and remembers the calls of each thread.
//!
//! The functions below answer as a driver would; all others that the crate calls only remember the call.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt::Debug;
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
/// The only function that the driver does not have.
pub const ABSENT: &str = "cuCtxSetLimit";
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

/// The last call of this thread: the function and its arguments, as `name(value, …)`.
pub fn last_call() -> String {
    LAST_CALL.take()
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
    COPIES_2D.with(|copies| copies.borrow().last().copied())
}

/// The descriptions of copies of rows in this thread since it last asked.
pub fn copies_2d() -> Vec<CUDA_MEMCPY2D> {
    COPIES_2D.take()
}

/// The names and addresses of the host's variables that the last library loaded in this thread was given.
pub fn host_variables() -> Vec<(CString, usize)> {
    HOST_VARIABLES.take()
}

/// The table of functions and data that the last library loaded in this thread was given.
pub fn unified_table() -> Option<CUlibraryHostUniversalFunctionAndDataTable> {
    UNIFIED_TABLE.take()
}

/// Width, in elements of four bytes, and height of every array.
pub const ARRAY: (usize, usize) = (16, 8);

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static LAST_CALL: RefCell<String> = const { RefCell::new(String::new()) };
    static FAILURE: Cell<Option<(&'static str, CUresult)>> = const { Cell::new(None) };
    static CURRENT: Cell<CUcontext> = const { Cell::new(CUcontext(0)) };
    static LAUNCH: Cell<Option<Launch>> = const { Cell::new(None) };
    static COPIES_2D: RefCell<Vec<CUDA_MEMCPY2D>> = const { RefCell::new(Vec::new()) };
    static HOST_VARIABLES: RefCell<Vec<(CString, usize)>> = const { RefCell::new(Vec::new()) };
    /// What the last texture or surface object was made of.
    static OBJECT: Cell<Option<(CUDA_RESOURCE_DESC, Option<CUDA_RESOURCE_VIEW_DESC>)>> = const { Cell::new(None) };
    static UNIFIED_TABLE: Cell<Option<CUlibraryHostUniversalFunctionAndDataTable>> = const { Cell::new(None) };
}

static RETENTIONS: [AtomicUsize; DEVICES as usize] = [const { AtomicUsize::new(0) }; DEVICES as usize];
static ACTIVE: [AtomicBool; DEVICES as usize] = [const { AtomicBool::new(false) }; DEVICES as usize];
static HANDLES: AtomicUsize = AtomicUsize::new(0x10_0000);

/// Remembers a call, and says how it ends.
fn record(function: &'static str, arguments: &[&dyn Debug]) -> CUresult {
    // What every runtime call begins with.
    if function == "cuCtxGetCurrent" {
        return CUDA_SUCCESS;
    }
    let arguments: Vec<_> = arguments.iter().map(|argument| format!("{argument:?}")).collect();
    LAST_CALL.replace(format!("{function}({})", arguments.join(", ")));
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
    if name == ABSENT {
        return std::ptr::null_mut();
    }
    let functions = FUNCTIONS.lock().expect("no test panics in here");
    let recorder = || recorders::RECORDERS.iter().find(|(known, _)| *known == name);
    match functions.get(name) {
        Some(&function) => function as *mut c_void,
        None => recorder().map_or(std::ptr::null_mut(), |(_, address)| address.0.cast_mut().cast()),
    }
}

macro_rules! functions {
    ($(fn $name:ident($($parameter:ident: $type:ty),*) $body:block)*) => {
        mod functions {
            #![allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's signatures")]
            use super::*;
            $(pub unsafe extern "C" fn $name($($parameter: $type),*) -> CUresult {
                match record(stringify!($name), &[$(&$parameter),*]) {
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

mod recorders {
    //! The functions that the mock has no body for.
    #![allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's signatures")]
    use cuda_abi::driver::*;
    use std::ffi::*;

    /// The address of a function.
    pub struct Address(pub *const ());

    // SAFETY: code, which no thread owns.
    unsafe impl Sync for Address {}

    include!(concat!(env!("OUT_DIR"), "/driver_recorders.rs"));
}

/// # Safety
/// There are `count` options with their values.
unsafe fn read_host_variables(
    options: *mut CUjit_option,
    values: *mut *mut c_void,
    count: u32,
) -> Vec<(CString, usize)> {
    let value = |wanted| {
        // SAFETY: below `count`.
        let index = (0..count as usize).find(|&index| unsafe { *options.add(index) } == wanted)?;
        // SAFETY: as above.
        Some(unsafe { *values.add(index) })
    };
    let (Some(names), Some(addresses), Some(number)) = (
        value(CU_JIT_GLOBAL_SYMBOL_NAMES),
        value(CU_JIT_GLOBAL_SYMBOL_ADDRESSES),
        value(CU_JIT_GLOBAL_SYMBOL_COUNT),
    ) else {
        return Vec::new();
    };
    let (names, addresses) = (names.cast::<*const c_char>(), addresses.cast::<*mut c_void>());
    // SAFETY: the values lead to as many names and addresses.
    let entry =
        |index| unsafe { (CStr::from_ptr(*names.add(index)).to_owned(), (*addresses.add(index)).addr()) };
    (0..number.addr()).map(entry).collect()
}

/// # Safety
/// There are `count` options with their values.
unsafe fn read_unified_table(
    options: *mut CUlibraryOption,
    values: *mut *mut c_void,
    count: u32,
) -> Option<CUlibraryHostUniversalFunctionAndDataTable> {
    let wanted = CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE;
    // SAFETY: below `count`.
    let index = (0..count as usize).find(|&index| unsafe { *options.add(index) } == wanted)?;
    // SAFETY: as above; the option's value leads to a table.
    Some(unsafe { *(*values.add(index)).cast() })
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
        library: *mut CUlibrary, _code: *const c_void, options: *mut CUjit_option, values: *mut *mut c_void,
        count: u32, library_options: *mut CUlibraryOption, library_values: *mut *mut c_void, library_count: u32
    ) {
        // SAFETY: the runtime passes as many options with their values.
        HOST_VARIABLES.set(unsafe { read_host_variables(options, values, count) });
        // SAFETY: as above.
        UNIFIED_TABLE.set(unsafe { read_unified_table(library_options, library_values, library_count) });
        put(library, CUlibrary(HANDLES.fetch_add(16, Ordering::SeqCst)));
    }
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
        COPIES_2D.with(|copies| copies.borrow_mut().push(unsafe { *description }));
    }
    fn cuMemcpy2DAsync_v2(description: *const CUDA_MEMCPY2D, _stream: CUstream) {
        // SAFETY: as above.
        COPIES_2D.with(|copies| copies.borrow_mut().push(unsafe { *description }));
    }
    fn cuArray3DGetDescriptor_v2(descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR, _array: CUarray) {
        put(descriptor, CUDA_ARRAY3D_DESCRIPTOR {
            Width: ARRAY.0, Height: ARRAY.1, Depth: 0, Format: CU_AD_FORMAT_FLOAT, NumChannels: 1, Flags: 0,
        });
    }
    fn cuMemsetD2D8_v2(_address: CUdeviceptr, _pitch: usize, _value: u8, _width: usize, _height: usize) {}
    fn cuTexObjectCreate(
        object: *mut CUtexObject, resource: *const CUDA_RESOURCE_DESC, _texture: *const CUDA_TEXTURE_DESC,
        view: *const CUDA_RESOURCE_VIEW_DESC
    ) {
        // SAFETY: the runtime passes descriptions of its own.
        OBJECT.set(Some(unsafe { (*resource, view.as_ref().copied()) }));
        put(object, 1);
    }
    fn cuTexObjectGetResourceDesc(resource: *mut CUDA_RESOURCE_DESC, _object: CUtexObject) {
        put(resource, OBJECT.get().expect("an object was made").0);
    }
    fn cuTexObjectGetResourceViewDesc(view: *mut CUDA_RESOURCE_VIEW_DESC, _object: CUtexObject) {
        put(view, OBJECT.get().expect("an object was made").1.expect("the object has a view"));
    }
    fn cuSurfObjectCreate(object: *mut CUsurfObject, resource: *const CUDA_RESOURCE_DESC) {
        // SAFETY: as above.
        OBJECT.set(Some((unsafe { *resource }, None)));
        put(object, 2);
    }
    fn cuSurfObjectGetResourceDesc(resource: *mut CUDA_RESOURCE_DESC, _object: CUsurfObject) {
        put(resource, OBJECT.get().expect("an object was made").0);
    }
    fn cuTexObjectGetTextureDesc(description: *mut CUDA_TEXTURE_DESC, texture: CUtexObject) {
        // SAFETY: numbers, for which zero is a value.
        let mut reading: CUDA_TEXTURE_DESC = unsafe { std::mem::zeroed() };
        (reading.flags, reading.maxAnisotropy) = (CU_TRSF_NORMALIZED_COORDINATES, texture as u32);
        put(description, reading);
    }
    fn cuStreamQuery(_stream: CUstream) { return CUDA_ERROR_NOT_READY; }
}
