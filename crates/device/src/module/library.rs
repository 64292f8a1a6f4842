//! Code that is loaded into each context when that first asks for it.

use std::collections::HashMap;
use std::sync::Arc;

use super::variables::Variables;
use super::{Code, Global, Module};
use crate::lock::{Rank, RankedMutex};
use crate::memory::{AddressSpace, ContextId};
use crate::{Context, Error, Result};

/// Code that belongs to no context. Each context gets variables of its own, except for managed ones: they are there once,
/// whatever becomes of the contexts.
pub struct Library {
    code: Arc<Code>,
    loaded: RankedMutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    /// The managed variables, once they were asked for.
    managed: Option<Variables>,
    modules: HashMap<ContextId, Arc<Module>>,
}

impl Library {
    /// A library that is loaded nowhere yet.
    pub fn new(code: Arc<Code>) -> Library {
        Library { code, loaded: RankedMutex::new(Rank::Library, Loaded::default()) }
    }

    /// Its code.
    pub fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// Its module in a context: loaded now if it is not yet, or was lost in a reset.
    pub fn module(&self, context: &Arc<Context>) -> Result<Arc<Module>> {
        let mut loaded = self.loaded.lock();
        if let Some(module) = loaded.modules.get(&context.id()).filter(|module| module.is_loaded()) {
            return Ok(module.clone());
        }
        let managed = loaded.managed(&self.code, context.memory())?;
        let module = Module::load_sharing(context, self.code.clone(), Some(managed))?;
        loaded.modules.insert(context.id(), module.clone());
        Ok(module)
    }

    /// A managed variable, which needs no context.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub fn managed(&self, memory: &AddressSpace, name: &str) -> Result<Global> {
        self.loaded.lock().managed(&self.code, memory)?.find(name).ok_or(Error::NotFound)
    }

    /// Unloads it from all contexts.
    pub fn unload(&self, memory: &AddressSpace) {
        let Loaded { managed, modules } = std::mem::take(&mut *self.loaded.lock());
        for module in modules.into_values() {
            // What fails here has failed in its context, which says so at the next call.
            let _ = module.unload();
        }
        if let Some(managed) = managed {
            managed.free(memory);
        }
    }
}

impl Loaded {
    /// The managed variables, allocated now if they are not yet.
    fn managed(&mut self, code: &Code, memory: &AddressSpace) -> Result<&Variables> {
        match &mut self.managed {
            Some(managed) => Ok(managed),
            managed => Ok(managed.insert(Variables::load_managed(memory, code.variables())?)),
        }
    }
}
