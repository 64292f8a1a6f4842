//! Code that is loaded into each context when that first asks for it.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Code, Module};
use crate::lock::{Rank, RankedMutex};
use crate::memory::ContextId;
use crate::{Context, Result};

/// Code that belongs to no context.
pub struct Library {
    code: Arc<Code>,
    modules: RankedMutex<HashMap<ContextId, Arc<Module>>>,
}

impl Library {
    /// A library that is loaded nowhere yet.
    pub fn new(code: Arc<Code>) -> Library {
        Library { code, modules: RankedMutex::new(Rank::Library, HashMap::new()) }
    }

    /// Its code.
    pub fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// Its module in a context: loaded now if it is not yet, or was lost in a reset.
    pub fn module(&self, context: &Arc<Context>) -> Result<Arc<Module>> {
        let mut modules = self.modules.lock();
        if let Some(module) = modules.get(&context.id()).filter(|module| module.is_loaded()) {
            return Ok(module.clone());
        }
        let module = Module::load(context, self.code.clone())?;
        modules.insert(context.id(), module.clone());
        Ok(module)
    }

    /// Unloads it from all contexts.
    pub fn unload(&self) {
        let modules = std::mem::take(&mut *self.modules.lock());
        for module in modules.into_values() {
            // What fails here has failed in its context, which says so at the next call.
            let _ = module.unload();
        }
    }
}
