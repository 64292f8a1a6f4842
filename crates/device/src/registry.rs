//! Which contexts exist.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::Context;
use crate::lock::{Rank, RankedMutex};
use crate::memory::ContextId;

/// The contexts of a platform.
pub(crate) struct Registry {
    contexts: RankedMutex<HashMap<ContextId, Weak<Context>>>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry { contexts: RankedMutex::new(Rank::Registry, HashMap::new()) }
    }
}

impl Registry {
    /// A new identity.
    pub(crate) fn new_id() -> ContextId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ContextId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn add(&self, context: &Arc<Context>) {
        let mut contexts = self.contexts.lock();
        contexts.retain(|_, context| context.strong_count() > 0);
        contexts.insert(context.id(), Arc::downgrade(context));
    }

    /// The contexts of a device.
    pub(crate) fn of_device(&self, device: usize) -> Vec<Arc<Context>> {
        let contexts = self.contexts.lock();
        contexts.values().filter_map(Weak::upgrade).filter(|context| context.device() == device).collect()
    }

    pub(crate) fn find(&self, id: ContextId) -> Option<Arc<Context>> {
        self.contexts.lock().get(&id)?.upgrade()
    }
}
