//! NVIDIA's driver, or whichever library `libcuda.so.1` is, as something to run kernels on and compare with.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::machine::Grid;

type Code = c_int;

/// A driver with the primary context of its first device.
///
/// A fault ends the context, and every later launch fails: [`Failure::Lost`].
pub struct Driver {
    load: Load,
    unload: Unload,
    function: Function,
    allocate: Allocate,
    free: Free,
    to_device: ToDevice,
    from_device: FromDevice,
    launch: Launch,
    synchronize: Synchronize,
}

type Load =
    unsafe extern "C" fn(*mut *mut c_void, *const c_char, c_uint, *const c_int, *const *mut c_void) -> Code;
type Unload = unsafe extern "C" fn(*mut c_void) -> Code;
type Function = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> Code;
type Allocate = unsafe extern "C" fn(*mut u64, usize) -> Code;
type Free = unsafe extern "C" fn(u64) -> Code;
type ToDevice = unsafe extern "C" fn(u64, *const c_void, usize) -> Code;
type FromDevice = unsafe extern "C" fn(*mut c_void, u64, usize) -> Code;
type Synchronize = unsafe extern "C" fn() -> Code;
type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> Code;

/// Why a kernel did not run.
#[derive(Debug)]
pub enum Failure {
    /// The driver does not take the PTX; its reason.
    Refused(String),
    /// The code of a fault, after which this process runs nothing more.
    Lost(i32),
}

impl Driver {
    /// Opens a library by name or path, and its first device.
    pub fn open(library: &str) -> Result<Driver, String> {
        let name = CString::new(library).map_err(|error| error.to_string())?;
        // SAFETY: opening a library runs its constructors, which is what is asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        if handle.is_null() {
            return Err(format!("{library} does not open"));
        }
        let symbol = |name: &CStr| {
            // SAFETY: the handle is that of an open library, which is never closed.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if address.is_null() { Err(format!("{library} has no {name:?}")) } else { Ok(address) }
        };
        let init = symbol(c"cuInit")?;
        let retain = symbol(c"cuDevicePrimaryCtxRetain")?;
        let set_current = symbol(c"cuCtxSetCurrent")?;
        let mut context = null_mut();
        // SAFETY: these are the functions of these names in CUDA's Driver API, whose signatures these are.
        let code = unsafe {
            let init: unsafe extern "C" fn(c_uint) -> Code = std::mem::transmute(init);
            let retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> Code = std::mem::transmute(retain);
            let set_current: unsafe extern "C" fn(*mut c_void) -> Code = std::mem::transmute(set_current);
            [init(0), retain(&mut context, 0), set_current(context)]
        };
        if code != [0; 3] {
            return Err(format!("{library} does not initialise: {code:?}"));
        }
        // SAFETY: likewise.
        unsafe {
            Ok(Driver {
                load: std::mem::transmute::<*mut c_void, Load>(symbol(c"cuModuleLoadDataEx")?),
                unload: std::mem::transmute::<*mut c_void, Unload>(symbol(c"cuModuleUnload")?),
                function: std::mem::transmute::<*mut c_void, Function>(symbol(c"cuModuleGetFunction")?),
                allocate: std::mem::transmute::<*mut c_void, Allocate>(symbol(c"cuMemAlloc_v2")?),
                free: std::mem::transmute::<*mut c_void, Free>(symbol(c"cuMemFree_v2")?),
                to_device: std::mem::transmute::<*mut c_void, ToDevice>(symbol(c"cuMemcpyHtoD_v2")?),
                from_device: std::mem::transmute::<*mut c_void, FromDevice>(symbol(c"cuMemcpyDtoH_v2")?),
                launch: std::mem::transmute::<*mut c_void, Launch>(symbol(c"cuLaunchKernel")?),
                synchronize: std::mem::transmute::<*mut c_void, Synchronize>(symbol(c"cuCtxSynchronize")?),
            })
        }
    }

    /// Runs a kernel whose parameters are addresses of buffers, which then hold what it left in them.
    pub fn run(&self, ptx: &str, entry: &str, grid: Grid, buffers: &mut [Vec<u64>]) -> Result<(), Failure> {
        let ptx = CString::new(ptx).map_err(|error| Failure::Refused(error.to_string()))?;
        let entry = CString::new(entry).map_err(|error| Failure::Refused(error.to_string()))?;
        let mut log = vec![0u8; 4096];
        // CU_JIT_ERROR_LOG_BUFFER and its size.
        let names: [c_int; 2] = [5, 6];
        let values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        let mut module = null_mut();
        // SAFETY: pointers to variables that outlive the calls, as the manual asks for them; the text ends in a NUL.
        unsafe {
            if (self.load)(&mut module, ptx.as_ptr(), 2, names.as_ptr(), values.as_ptr()) != 0 {
                let text = CStr::from_bytes_until_nul(&log).unwrap_or_default();
                return Err(Failure::Refused(text.to_string_lossy().into_owned()));
            }
            let result = self.launch(module, &entry, grid, buffers);
            (self.unload)(module);
            result.map_err(Failure::Lost)
        }
    }

    /// # Safety
    /// The module is loaded.
    unsafe fn launch(
        &self,
        module: *mut c_void,
        entry: &CStr,
        grid: Grid,
        buffers: &mut [Vec<u64>],
    ) -> Result<(), i32> {
        let check = |code: Code| if code == 0 { Ok(()) } else { Err(code) };
        let mut function = null_mut();
        let mut addresses = vec![0u64; buffers.len()];
        let [x, y, z] = grid.grid;
        let [block_x, block_y, block_z] = grid.block;
        // SAFETY: pointers to variables that outlive the calls and are as large as they say; the caller's promise.
        unsafe {
            check((self.function)(&mut function, module, entry.as_ptr()))?;
            for (address, buffer) in addresses.iter_mut().zip(buffers.iter()) {
                check((self.allocate)(address, buffer.len() * 8))?;
                check((self.to_device)(*address, buffer.as_ptr().cast(), buffer.len() * 8))?;
            }
            let mut parameters: Vec<*mut c_void> =
                addresses.iter_mut().map(|address| std::ptr::from_mut(address).cast()).collect();
            let (shared, stream) = (grid.dynamic_shared, null_mut());
            let parameters = parameters.as_mut_ptr();
            check((self.launch)(
                function,
                x,
                y,
                z,
                block_x,
                block_y,
                block_z,
                shared,
                stream,
                parameters,
                null::<()>() as _,
            ))?;
            check((self.synchronize)())?;
            for (address, buffer) in addresses.iter().zip(buffers) {
                check((self.from_device)(buffer.as_mut_ptr().cast(), *address, buffer.len() * 8))?;
                check((self.free)(*address))?;
            }
        }
        Ok(())
    }
}
