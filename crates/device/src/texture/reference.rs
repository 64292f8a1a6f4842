//! Texture and surface references: variables of a module that the host binds.

use std::sync::Arc;

use super::{Object, create, destroy};
use crate::lock::{Rank, RankedMutex};
use crate::memory::ContextId;

/// A variable of PTX's type `.texref` or `.surfref` in a context.
pub struct Reference {
    owner: ContextId,
    bound: RankedMutex<Option<Arc<Bound>>>,
}

/// An object that a reference has, or that a launch took from it. It goes with the last of them.
#[derive(Debug)]
pub struct Bound(u64);

impl Bound {
    /// The object's handle.
    pub fn handle(&self) -> u64 {
        self.0
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        destroy(self.0);
    }
}

impl Reference {
    /// One that is not bound.
    pub fn new(owner: ContextId) -> Reference {
        Reference { owner, bound: RankedMutex::new(Rank::TextureReference, None) }
    }

    /// What kernels launched from now on find in it.
    pub fn bind(&self, object: Option<Object>) {
        let bound = object.map(|object| Arc::new(Bound(create(self.owner, object))));
        // The old one is dropped after the lock is given up.
        let _old = std::mem::replace(&mut *self.bound.lock(), bound);
    }

    /// What it is bound to.
    pub fn bound(&self) -> Option<Arc<Bound>> {
        self.bound.lock().clone()
    }
}
