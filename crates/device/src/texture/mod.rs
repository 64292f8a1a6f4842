//! Texture and surface objects: images that kernels name by a number.
//!
//! Objects of all contexts lie in one table. A handle is a number that is never used again, so that one which a kernel
//! kept, or made up, is either the object that it was or unknown. Objects do not change: a reference of a module that is
//! bound anew gets another object, and kernels launched before keep theirs.

mod reference;
mod retired;
mod service;
mod table;

use std::sync::Arc;

use simt_ir::texture::{ImageView, Sampler};

pub use reference::{Bound, Reference};
pub use retired::retire;
pub use service::serve;
pub use table::find;

use crate::memory::ContextId;

/// What a handle stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// Read through a sampler.
    Texture(ImageView, Sampler),
    /// Read and written as it is. It has one level.
    Surface(ImageView),
    /// How to read textures that name it.
    Sampler(Sampler),
}

impl Object {
    /// Its texels.
    pub fn view(&self) -> Option<&ImageView> {
        match self {
            Object::Texture(view, _) | Object::Surface(view) => Some(view),
            Object::Sampler(_) => None,
        }
    }
}

/// Makes an object of a context, and answers its handle, which is not 0.
pub fn create(owner: ContextId, object: Object) -> u64 {
    table::insert(owner, Arc::new(object))
}

/// Forgets an object; kernels that use it from now on find no texels. Answers whether it was there.
pub fn destroy(handle: u64) -> bool {
    table::remove(handle)
}

/// Forgets all objects of a context.
pub fn destroy_owned(owner: ContextId) {
    table::remove_owned(owner);
}
