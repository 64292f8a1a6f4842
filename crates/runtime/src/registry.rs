//! What compiled programs register: fat binaries, kernels and variables.
//!
//! Registration runs in static constructors and only records. A fat binary becomes a driver library when one of its
//! kernels or variables is first needed; the driver keeps a copy of the variables for each context.

mod binary;

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cuda_abi::driver::CUlibraryHostUniversalFunctionAndDataTable;
use cuda_abi::runtime::{CudaResult, cudaErrorInvalidSymbol, cudaKernel_t};

use crate::fork;

pub use binary::{Binary, Kernel, Variable, VariableKind};

/// Records a fat binary by the address of its wrapper, which stays where it is until it is unregistered. The result
/// is its handle.
pub fn register_binary(wrapper: *const c_void) -> usize {
    let binary = Arc::new(Binary::new(wrapper));
    let handle = Arc::as_ptr(&binary) as usize;
    write().binaries.insert(handle, binary);
    handle
}

/// Records a kernel of a binary under the address of its host function.
pub fn register_kernel(handle: usize, host_function: usize, name: &CStr) {
    let mut registry = write();
    let Some(binary) = registry.binaries.get(&handle).cloned() else { return };
    registry.kernels.entry(host_function).or_default().push(Arc::new(Kernel::new(binary, name)));
}

/// Records a variable of a binary under the address of its host shadow.
pub fn register_variable(handle: usize, host_address: usize, name: &CStr, kind: VariableKind) {
    let mut registry = write();
    let Some(binary) = registry.binaries.get(&handle).cloned() else { return };
    let variable = Arc::new(Variable::new(&binary, name, kind));
    if let VariableKind::Managed { .. } = kind {
        binary.add_managed(Arc::clone(&variable));
    }
    registry.variables.entry(host_address).or_default().push(variable);
}

/// Records a variable of the host that a binary's device code names.
pub fn register_host_variable(handle: usize, address: usize, name: &CStr) {
    if let Some(binary) = read().binaries.get(&handle) {
        binary.add_host_variable(name, address);
    }
}

/// Records the functions and data whose addresses a binary's device code shares with the host.
pub fn register_unified_table(handle: usize, table: CUlibraryHostUniversalFunctionAndDataTable) {
    if let Some(binary) = read().binaries.get(&handle) {
        binary.set_unified_table(table);
    }
}

/// Forgets a binary with its kernels and variables and gives its library back to the driver.
pub fn unregister_binary(handle: usize) {
    // At the end of a child there is nothing to give back, and the lock may be held by a thread that does not exist.
    if fork::is_child() {
        return;
    }
    let binary = {
        let mut registry = write();
        let Some(binary) = registry.binaries.remove(&handle) else { return };
        let Registry { kernels, variables, .. } = &mut *registry;
        kernels.retain(|_, all| {
            all.retain(|kernel| !Arc::ptr_eq(kernel.binary(), &binary));
            !all.is_empty()
        });
        variables.retain(|_, all| {
            all.retain(|variable| !variable.is_of(&binary));
            !all.is_empty()
        });
        binary
    };
    binary.unload();
}

/// Loads a binary and makes its managed variables usable by the host.
pub fn load(handle: usize) -> CudaResult {
    let binary = read().binaries.get(&handle).cloned();
    binary.map_or(Ok(()), |binary| binary.library().map(drop))
}

/// The kernel that a host function stands for; `None` if no such function was registered.
pub fn kernel(host_function: usize) -> CudaResult<Option<cudaKernel_t>> {
    let kernel = {
        let registry = read();
        // One function may be registered by several binaries, if the linker merged its copies: any of them will do.
        let Some(kernel) = registry.kernels.get(&host_function).and_then(|all| all.first()) else {
            return Ok(None);
        };
        if let Some(handle) = kernel.found() {
            return Ok(Some(handle));
        }
        Arc::clone(kernel)
    };
    kernel.find().map(Some)
}

/// What was registered for a host function.
pub fn kernel_record(host_function: usize) -> Option<Arc<Kernel>> {
    read().kernels.get(&host_function).and_then(|all| all.first()).cloned()
}

/// The host functions of the kernels that were found before.
pub fn host_functions() -> Vec<(usize, cudaKernel_t)> {
    let registry = read();
    let kernels = registry.kernels.iter();
    let each =
        kernels.flat_map(|(host_function, all)| all.iter().map(move |kernel| (*host_function, kernel)));
    each.filter_map(|(host_function, kernel)| Some((host_function, kernel.found()?))).collect()
}

/// The variable of which `symbol` is the host shadow, or, if it is managed, the address.
pub fn variable(symbol: usize) -> CudaResult<Arc<Variable>> {
    let registry = read();
    if let Some(variable) = registry.variables.get(&symbol).and_then(|all| all.first()) {
        return Ok(Arc::clone(variable));
    }
    let managed =
        registry.variables.values().flatten().find(|variable| variable.managed_address() == Some(symbol));
    managed.cloned().ok_or(cudaErrorInvalidSymbol)
}

#[derive(Default)]
struct Registry {
    binaries: HashMap<usize, Arc<Binary>>,
    kernels: HashMap<usize, Vec<Arc<Kernel>>>,
    variables: HashMap<usize, Vec<Arc<Variable>>>,
}

/// Never dropped, and no driver call is made under its lock.
static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(RwLock::default);

fn read() -> RwLockReadGuard<'static, Registry> {
    // Each change is complete before anything can panic.
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Registry> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner)
}
