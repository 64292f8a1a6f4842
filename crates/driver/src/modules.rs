//! Modules and their functions behind handles.

use crate::contexts;
use crate::error::CuResult;
use crate::functions::{self, Function};
use crate::handle::{Kind, Table};
use crate::images::{Texts, code, logged};
use crate::jit::JitOptions;
use crate::texture_references;
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::memory::ContextId;
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex};

static MODULES: Table<Module> = Table::new(Kind::Module);

/// A module of a context.
pub struct Module {
    /// Its handle.
    pub handle: CUmodule,
    /// The device's module.
    pub module: Arc<device::Module>,
    owner: ContextId,
    /// It belongs to a library, which alone may unload it.
    is_of_library: bool,
    /// Functions that have been asked for.
    functions: Mutex<HashMap<String, Arc<Function>>>,
    /// Texture references that have been asked for.
    textures: Mutex<HashMap<String, CUtexref>>,
    /// Surface references that have been asked for.
    surfaces: Mutex<HashMap<String, CUsurfref>>,
}

/// The module of a handle.
pub fn find(handle: CUmodule) -> CuResult<Arc<Module>> {
    MODULES.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// Loads an image into the current context.
pub fn load(texts: Texts, options: &mut JitOptions) -> CuResult<CUmodule> {
    let context = contexts::usable()?;
    let code = code(texts, options)?;
    options.check_device()?;
    let module = device::Module::load(&context, code).map_err(|error| logged(error, options))?;
    Ok(insert(module, context.id(), false)?.handle)
}

/// Gives a module a handle.
pub fn insert(module: Arc<device::Module>, owner: ContextId, is_of_library: bool) -> CuResult<Arc<Module>> {
    let handle = MODULES.insert_with(|handle| {
        let (functions, textures, surfaces) = (Mutex::default(), Mutex::default(), Mutex::default());
        let handle = CUmodule(handle);
        Arc::new(Module { handle, module, owner, is_of_library, functions, textures, surfaces })
    });
    find(CUmodule(handle.ok_or(CUDA_ERROR_OUT_OF_MEMORY)?))
}

/// Unloads a module.
pub fn unload(handle: CUmodule) -> CuResult {
    if find(handle)?.is_of_library {
        return Err(CUDA_ERROR_NOT_PERMITTED.into());
    }
    let module = MODULES.remove(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE)?;
    forget_parts(handle);
    module.module.unload()?;
    Ok(())
}

/// Makes the handles of a context's modules and functions stale.
pub fn forget(owner: ContextId) {
    for module in MODULES.remove_all(|module| module.owner == owner) {
        forget_parts(module.handle);
    }
}

/// Makes the handle of a library's module stale.
pub fn forget_module(module: &Module) {
    let _ = MODULES.remove(module.handle.0);
    forget_parts(module.handle);
}

/// Makes the handles of what is in a module stale.
fn forget_parts(module: CUmodule) {
    functions::forget(module);
    texture_references::forget_module(module);
}

impl Module {
    /// The kernel of this name.
    pub fn function(&self, name: &CStr) -> CuResult<Arc<Function>> {
        self.function_named(name.to_str().map_err(|_| CUDA_ERROR_NOT_FOUND)?)
    }

    /// The same.
    pub fn function_named(&self, name: &str) -> CuResult<Arc<Function>> {
        let mut functions = locked(&self.functions);
        if let Some(function) = functions.get(name) {
            return Ok(function.clone());
        }
        let function = functions::insert(self.handle, self.module.function(name)?)?;
        functions.insert(name.to_owned(), function.clone());
        Ok(function)
    }

    /// The texture reference of this name.
    pub fn texture_reference(&self, name: &CStr) -> CuResult<CUtexref> {
        let name = name.to_str().map_err(|_| CUDA_ERROR_NOT_FOUND)?;
        let mut textures = locked(&self.textures);
        if let Some(known) = textures.get(name) {
            return Ok(*known);
        }
        let reference = self.module.texture_reference(name)?;
        let handle = texture_references::insert(self.owner, Some((self.handle, reference)))?;
        textures.insert(name.to_owned(), handle);
        Ok(handle)
    }

    /// The surface reference of this name.
    pub fn surface_reference(&self, name: &CStr) -> CuResult<CUsurfref> {
        let name = name.to_str().map_err(|_| CUDA_ERROR_NOT_FOUND)?;
        let mut surfaces = locked(&self.surfaces);
        if let Some(known) = surfaces.get(name) {
            return Ok(*known);
        }
        let reference = self.module.surface_reference(name)?;
        let handle = texture_references::insert_surface(self.owner, self.handle, reference)?;
        surfaces.insert(name.to_owned(), handle);
        Ok(handle)
    }

    /// All kernels, in the order of the text.
    pub fn kernels(&self) -> impl ExactSizeIterator<Item = &Arc<device::module::Kernel>> {
        self.module.code().kernels().iter()
    }

    /// Address and size of a variable.
    pub fn global(&self, name: &CStr) -> CuResult<(CUdeviceptr, usize)> {
        let name = name.to_str().map_err(|_| CUDA_ERROR_NOT_FOUND)?;
        let global = match self.module.global(name) {
            // A kernel's name is no missing variable's, but the wrong argument, as on NVIDIA's driver.
            Err(device::Error::NotFound) if name.is_empty() || self.module.code().kernel(name).is_some() => {
                return Err(CUDA_ERROR_INVALID_VALUE.into());
            }
            found => found?,
        };
        Ok((CUdeviceptr(global.address), global.size as usize))
    }
}
