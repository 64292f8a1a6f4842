//! Libraries and their kernels behind handles.

use crate::contexts::{self, Context};
use crate::error::CuResult;
use crate::functions::Function;
use crate::handle::{Kind, Table};
use crate::images::{Texts, code};
use crate::jit::JitOptions;
use crate::modules::{self, Module};
use crate::platform::platform;
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::Stream;
use device::memory::ContextId;
use device::module::Kernel as DeviceKernel;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, Weak};

static LIBRARIES: Table<Library> = Table::new(Kind::Library);
static KERNELS: Table<Kernel> = Table::new(Kind::Kernel);

/// Code that is loaded into each context on demand.
pub struct Library {
    handle: CUlibrary,
    /// Or what is wrong with the code: whoever asks for something in it hears of that.
    library: CuResult<device::module::Library>,
    /// Whether the code is for the device, and not for another that the options named.
    runs_here: CuResult,
    modules: Mutex<HashMap<ContextId, Arc<Module>>>,
    kernels: Mutex<HashMap<String, CUkernel>>,
}

/// A kernel of a library.
pub struct Kernel {
    /// Its library.
    pub library: CUlibrary,
    /// Its name, which programs get a pointer to.
    pub name: CString,
    /// Its code.
    pub kernel: Arc<DeviceKernel>,
    owner: Weak<Library>,
    /// Its function in the context where it was last asked for.
    last: Mutex<Option<(ContextId, Arc<Function>)>>,
}

/// The library of a handle.
pub fn find(handle: CUlibrary) -> CuResult<Arc<Library>> {
    LIBRARIES.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// The kernel of a handle.
pub fn find_kernel(handle: CUkernel) -> CuResult<Arc<Kernel>> {
    KERNELS.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// Makes a library of an image. A wrong one is no failure of loading, except with eager loading; the log tells of it now.
pub fn load(texts: Texts, options: &mut JitOptions) -> CuResult<CUlibrary> {
    let library = code(texts, options).map(device::module::Library::new);
    if let Err(failure) = library
        && platform()?.options().eager
    {
        return Err(failure);
    }
    let runs_here = options.check_device();
    let handle = LIBRARIES.insert_with(|handle| {
        let (modules, kernels) = (Mutex::new(HashMap::new()), Mutex::new(HashMap::new()));
        Arc::new(Library { handle: CUlibrary(handle), library, runs_here, modules, kernels })
    });
    Ok(CUlibrary(handle.ok_or(CUDA_ERROR_OUT_OF_MEMORY)?))
}

/// Unloads a library from all contexts.
pub fn unload(handle: CUlibrary) -> CuResult {
    let library = LIBRARIES.remove(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE)?;
    KERNELS.remove_all(|kernel| kernel.library == handle);
    for module in locked(&library.modules).values() {
        modules::forget_module(module);
    }
    if let Ok(library) = &library.library {
        library.unload(platform()?.memory());
    }
    Ok(())
}

impl Library {
    fn library(&self) -> CuResult<&device::module::Library> {
        self.library.as_ref().map_err(|failure| *failure)
    }

    /// The kernel of this name.
    pub fn kernel(self: &Arc<Self>, name: &CStr) -> CuResult<CUkernel> {
        let text = name.to_str().map_err(|_| CUDA_ERROR_NOT_FOUND)?;
        let kernel = self.library()?.code().kernel(text).ok_or(CUDA_ERROR_NOT_FOUND)?;
        self.handle_of(kernel)
    }

    /// All kernels, in the order of the text; of bad code none.
    pub fn kernels(self: &Arc<Self>) -> CuResult<Vec<CUkernel>> {
        let Ok(library) = &self.library else { return Ok(Vec::new()) };
        library.code().kernels().iter().map(|kernel| self.handle_of(kernel.clone())).collect()
    }

    /// How many kernels there are.
    pub fn kernel_count(&self) -> usize {
        self.library.as_ref().map_or(0, |library| library.code().kernels().len())
    }

    /// The module in the current context.
    pub fn module(&self) -> CuResult<Arc<Module>> {
        self.module_in(&contexts::usable()?)
    }

    fn module_in(&self, context: &Arc<Context>) -> CuResult<Arc<Module>> {
        let library = self.library()?;
        self.runs_here?;
        let module = library.module(context)?;
        let mut modules = locked(&self.modules);
        if let Some(known) = modules.get(&context.id()).filter(|known| Arc::ptr_eq(&known.module, &module)) {
            return Ok(known.clone());
        }
        let module = modules::insert(module, context.id(), true)?;
        modules.insert(context.id(), module.clone());
        Ok(module)
    }

    /// Address and size of a managed variable, which is the same in every context.
    pub fn managed(&self, name: &CStr) -> CuResult<(CUdeviceptr, usize)> {
        let name = name.to_str().map_err(|_| CUDA_ERROR_NOT_FOUND)?;
        let global = self.library()?.managed(platform()?.memory(), name)?;
        Ok((CUdeviceptr(global.address), global.size as usize))
    }

    fn handle_of(self: &Arc<Self>, kernel: Arc<DeviceKernel>) -> CuResult<CUkernel> {
        let mut kernels = locked(&self.kernels);
        if let Some(handle) = kernels.get(&**kernel.name()) {
            return Ok(*handle);
        }
        let text = kernel.name().to_string();
        let name = CString::new(text.as_str()).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
        let (library, owner, last) = (self.handle, Arc::downgrade(self), Mutex::new(None));
        let handle = KERNELS.insert(Arc::new(Kernel { library, name, kernel, owner, last }));
        let handle = CUkernel(handle.ok_or(CUDA_ERROR_OUT_OF_MEMORY)?);
        kernels.insert(text, handle);
        Ok(handle)
    }
}

impl Kernel {
    /// The kernel as a function of the current context.
    pub fn function(&self) -> CuResult<Arc<Function>> {
        self.function_in(&contexts::usable()?)
    }

    /// The kernel as a function of the context of a stream.
    pub fn function_for(&self, stream: &Stream) -> CuResult<Arc<Function>> {
        let id = stream.context()?.id();
        match contexts::current() {
            Ok(current) if current.id() == id => self.function_in(&current),
            _ => self.function_in(&contexts::find(contexts::handle_of(id))?),
        }
    }

    /// The kernel as a function of a context.
    pub fn function_in(&self, context: &Arc<Context>) -> CuResult<Arc<Function>> {
        let mut last = locked(&self.last);
        if let Some((owner, function)) = &*last
            && *owner == context.id()
            && function.function.module().is_ok()
        {
            return Ok(function.clone());
        }
        let library = self.owner.upgrade().ok_or(CUDA_ERROR_INVALID_HANDLE)?;
        let function = library.module_in(context)?.function(&self.name)?;
        *last = Some((context.id(), function.clone()));
        Ok(function)
    }
}
