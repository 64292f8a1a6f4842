//! One fat binary, its kernels and its variables.

use cuda_abi::shim::locked;
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use cuda_abi::driver::{
    CU_JIT_GLOBAL_SYMBOL_ADDRESSES, CU_JIT_GLOBAL_SYMBOL_COUNT, CU_JIT_GLOBAL_SYMBOL_NAMES,
    CU_LIBRARY_BINARY_IS_PRESERVED, CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE, CUDA_ERROR_NOT_FOUND,
    CUdeviceptr, CUkernel, CUlibraryHostUniversalFunctionAndDataTable,
};
use cuda_abi::runtime::{CudaResult, cudaError_t, cudaErrorInvalidSymbol, cudaKernel_t, cudaLibrary_t};

use crate::context;
use crate::driver::call;

/// A registered fat binary.
pub struct Binary {
    /// Address of the wrapper, in the program's image.
    wrapper: usize,
    /// The driver's library made of it; null until it is needed.
    library: Mutex<cudaLibrary_t>,
    managed: Mutex<Vec<Arc<Variable>>>,
    /// Variables that the device code shares with the host, which has them.
    host_variables: Mutex<Vec<HostVariable>>,
    /// The functions and data whose addresses host and device share, as the driver wants to be told of them.
    unified_table: Mutex<Option<CUlibraryHostUniversalFunctionAndDataTable>>,
}

/// A variable of the host that device code names.
struct HostVariable {
    name: CString,
    address: usize,
}

impl Binary {
    pub fn new(wrapper: *const c_void) -> Self {
        let library = Mutex::new(cudaLibrary_t::NULL);
        Self {
            wrapper: wrapper as usize,
            library,
            managed: Mutex::default(),
            host_variables: Mutex::default(),
            unified_table: Mutex::default(),
        }
    }

    /// Has the device code's undefined variable `name` be the host's at `address`.
    pub fn add_host_variable(&self, name: &CStr, address: usize) {
        let variable = HostVariable { name: name.to_owned(), address };
        locked(&self.host_variables).push(variable);
    }

    /// Sets the functions and data whose addresses host and device share.
    pub fn set_unified_table(&self, table: CUlibraryHostUniversalFunctionAndDataTable) {
        *locked(&self.unified_table) = Some(table);
    }

    /// Adds a managed variable, whose host pointer is to be set when the binary is loaded.
    pub fn add_managed(&self, variable: Arc<Variable>) {
        locked(&self.managed).push(variable);
    }

    /// The library, loaded if it is not there yet. A failure is not remembered: the next use tries again and fails
    /// with the same code.
    pub fn library(&self) -> CudaResult<cudaLibrary_t> {
        let mut library = locked(&self.library);
        if !library.is_null() {
            return Ok(*library);
        }
        context::initialize()?;
        let loaded = self.load()?;
        for variable in locked(&self.managed).iter() {
            if let Err(error) = variable.set_host_pointer(loaded) {
                let _ = call!(cuLibraryUnload(loaded));
                return Err(error);
            }
        }
        leave_loaded_at_exit();
        *library = loaded;
        Ok(loaded)
    }

    fn load(&self) -> CudaResult<cudaLibrary_t> {
        let mut library_options = vec![CU_LIBRARY_BINARY_IS_PRESERVED];
        let mut library_values = vec![ptr::without_provenance_mut::<c_void>(1)];
        let mut table = *locked(&self.unified_table);
        if let Some(table) = &mut table {
            library_options.push(CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE);
            library_values.push(ptr::from_mut(table).cast());
        }
        let host_variables = locked(&self.host_variables);
        let mut names: Vec<_> = host_variables.iter().map(|variable| variable.name.as_ptr()).collect();
        let mut addresses: Vec<_> = host_variables
            .iter()
            .map(|variable| ptr::with_exposed_provenance_mut::<c_void>(variable.address))
            .collect();
        let mut options =
            [CU_JIT_GLOBAL_SYMBOL_NAMES, CU_JIT_GLOBAL_SYMBOL_ADDRESSES, CU_JIT_GLOBAL_SYMBOL_COUNT];
        let mut values = [
            names.as_mut_ptr().cast(),
            addresses.as_mut_ptr().cast(),
            ptr::without_provenance_mut(host_variables.len()),
        ];
        // Not to trouble drivers that do not know them.
        let count = if host_variables.is_empty() { 0 } else { options.len() };
        let mut loaded = cudaLibrary_t::NULL;
        call!(cuLibraryLoadData(
            &mut loaded,
            ptr::with_exposed_provenance(self.wrapper),
            options.as_mut_ptr(),
            values.as_mut_ptr(),
            count as u32,
            library_options.as_mut_ptr(),
            library_values.as_mut_ptr(),
            library_options.len() as u32,
        ))?;
        Ok(loaded)
    }

    /// Gives the library back to the driver, except while the process exits: kernels may be running still, and the
    /// exit must not wait for them.
    pub fn unload(&self) {
        let mut library = locked(&self.library);
        let loaded = std::mem::take(&mut *library);
        if !loaded.is_null() && !EXITING.load(Ordering::Acquire) {
            // Nobody is left to whom an error would be of use.
            let _ = call!(cuLibraryUnload(loaded));
        }
    }
}

/// Set when the exit handlers run.
static EXITING: AtomicBool = AtomicBool::new(false);

/// Has [`EXITING`] set before a binary that is loaded now is unregistered by an exit handler.
///
/// Handlers run in the reverse of their order, and a binary's own was there before its first use. One that is
/// unregistered because its shared object is closed still finds the flag unset.
fn leave_loaded_at_exit() {
    extern "C" fn exiting() {
        EXITING.store(true, Ordering::Release);
    }
    // SAFETY: the handler only sets a flag. If there is no room for it, unloading at exit is merely not avoided.
    unsafe { libc::atexit(exiting) };
}

/// A registered kernel.
pub struct Kernel {
    binary: Arc<Binary>,
    name: CString,
    /// The driver's handle; null until it is asked for.
    handle: AtomicUsize,
}

impl Kernel {
    pub fn new(binary: Arc<Binary>, name: &CStr) -> Self {
        Self { binary, name: name.to_owned(), handle: AtomicUsize::new(0) }
    }

    pub fn binary(&self) -> &Arc<Binary> {
        &self.binary
    }

    /// The driver's handle, if it was asked for before.
    pub fn found(&self) -> Option<cudaKernel_t> {
        let handle = CUkernel(self.handle.load(Ordering::Acquire));
        (!handle.is_null()).then_some(handle)
    }

    /// The driver's handle.
    pub fn find(&self) -> CudaResult<cudaKernel_t> {
        let library = self.binary.library()?;
        let mut handle = cudaKernel_t::NULL;
        call!(cuLibraryGetKernel(&mut handle, library, self.name.as_ptr()))?;
        self.handle.store(handle.0, Ordering::Release);
        Ok(handle)
    }
}

/// A registered variable.
pub struct Variable {
    /// Weak, for a binary owns its managed variables.
    binary: Weak<Binary>,
    name: CString,
    kind: VariableKind,
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug)]
pub enum VariableKind {
    /// On the device, a copy for each context.
    Device,
    /// In managed memory, once. The host finds it by the pointer at this address.
    Managed {
        /// Where the host's pointer is.
        host_pointer: usize,
    },
}

impl Variable {
    pub fn new(binary: &Arc<Binary>, name: &CStr, kind: VariableKind) -> Self {
        Self { binary: Arc::downgrade(binary), name: name.to_owned(), kind }
    }

    pub fn is_of(&self, binary: &Arc<Binary>) -> bool {
        self.binary.as_ptr() == Arc::as_ptr(binary)
    }

    /// The address and size in the current context.
    pub fn address(&self) -> CudaResult<(CUdeviceptr, usize)> {
        let library = self.binary.upgrade().ok_or(cudaErrorInvalidSymbol)?.library()?;
        match self.kind {
            VariableKind::Managed { .. } => self.managed(library),
            VariableKind::Device => {
                context::ensure_current()?;
                let (mut address, mut size) = (CUdeviceptr::default(), 0);
                call!(cuLibraryGetGlobal(&mut address, &mut size, library, self.name.as_ptr()))
                    .map_err(|code| if is_not_found(code) { cudaErrorInvalidSymbol } else { code })?;
                Ok((address, size))
            }
        }
    }

    /// The address of a managed variable whose binary is loaded.
    pub fn managed_address(&self) -> Option<usize> {
        let VariableKind::Managed { host_pointer } = self.kind else { return None };
        let address = host_slot(host_pointer).load(Ordering::Acquire) as usize;
        (address != 0).then_some(address)
    }

    /// Tells the host where the managed variable is.
    fn set_host_pointer(&self, library: cudaLibrary_t) -> CudaResult {
        let VariableKind::Managed { host_pointer } = self.kind else { return Ok(()) };
        let (address, _) = self.managed(library)?;
        host_slot(host_pointer)
            .store(ptr::with_exposed_provenance_mut(address.0 as usize), Ordering::Release);
        Ok(())
    }

    fn managed(&self, library: cudaLibrary_t) -> CudaResult<(CUdeviceptr, usize)> {
        let (mut address, mut size) = (CUdeviceptr::default(), 0);
        call!(cuLibraryGetManaged(&mut address, &mut size, library, self.name.as_ptr()))
            .map_err(|code| if is_not_found(code) { cudaErrorInvalidSymbol } else { code })?;
        Ok((address, size))
    }
}

/// The host's pointer to a managed variable.
fn host_slot(host_pointer: usize) -> &'static AtomicPtr<c_void> {
    // SAFETY: the compiler's glue registered the address of a pointer variable in the image that its binary is part
    // of; both live until the binary is unregistered, which drops the variable's record first.
    unsafe { AtomicPtr::from_ptr(ptr::with_exposed_provenance_mut(host_pointer)) }
}

fn is_not_found(code: cudaError_t) -> bool {
    code == cudaError_t::from(CUDA_ERROR_NOT_FOUND)
}
