//! Variables of a module that stand for textures, samplers and surfaces.

use std::collections::HashMap;
use std::sync::Arc;

use super::Code;
use super::source::ObjectKind;
use crate::memory::ContextId;
use crate::texture::{Bound, Object, Reference};

/// What they are bound to, in one context.
pub(crate) struct Objects {
    by_name: HashMap<String, (ObjectKind, Arc<Reference>)>,
}

impl Objects {
    /// References for the variables of some code. Samplers are what their initial values say, the others are not bound.
    pub(crate) fn new(owner: ContextId, code: &Code) -> Objects {
        let reference = |kind: &ObjectKind| {
            let reference = Reference::new(owner);
            if let ObjectKind::Sampler(sampler) = kind {
                reference.bind(Some(Object::Sampler(sampler.clone())));
            }
            Arc::new(reference)
        };
        let variables = code.objects().iter();
        let by_name = variables
            .map(|variable| (variable.name.clone(), (variable.kind.clone(), reference(&variable.kind))));
        Objects { by_name: by_name.collect() }
    }

    pub(crate) fn texture(&self, name: &str) -> Option<Arc<Reference>> {
        self.find(name, |kind| *kind == ObjectKind::Texture)
    }

    pub(crate) fn surface(&self, name: &str) -> Option<Arc<Reference>> {
        self.find(name, |kind| *kind == ObjectKind::Surface)
    }

    /// What the variable is bound to now; `None` if there is no such variable.
    pub(crate) fn bound(&self, name: &str) -> Option<Option<Arc<Bound>>> {
        self.by_name.get(name).map(|(_, reference)| reference.bound())
    }

    fn find(&self, name: &str, fits: impl Fn(&ObjectKind) -> bool) -> Option<Arc<Reference>> {
        let (kind, reference) = self.by_name.get(name)?;
        fits(kind).then(|| reference.clone())
    }
}
