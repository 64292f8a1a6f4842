//! Texture and surface objects behind their handles: what the program described them by. Their images are the device's.

use crate::contexts;
use crate::error::CuResult;
use crate::texture_views::of_resource;
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::memory::ContextId;
use device::texture::{self, Object};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

static OBJECTS: Mutex<BTreeMap<u64, Described>> = Mutex::new(BTreeMap::new());

/// An object as the program described it.
#[derive(Clone)]
pub struct Described {
    /// What it reads.
    pub resource: CUDA_RESOURCE_DESC,
    /// How; a surface has no such thing.
    pub texture: Option<CUDA_TEXTURE_DESC>,
    /// How the resource is seen, if otherwise than it is.
    pub view: Option<CUDA_RESOURCE_VIEW_DESC>,
    owner: Weak<device::Context>,
}

// SAFETY: addresses and handles of the program's, which nobody here follows.
unsafe impl Send for Described {}

fn objects() -> MutexGuard<'static, BTreeMap<u64, Described>> {
    locked(&OBJECTS)
}

/// Makes a texture object in the current context.
pub fn create_texture(
    resource: CUDA_RESOURCE_DESC,
    texture: CUDA_TEXTURE_DESC,
    view: Option<CUDA_RESOURCE_VIEW_DESC>,
) -> CuResult<CUtexObject> {
    let context = contexts::usable()?;
    let mut image = of_resource(&resource, context.attributes())?;
    if let Some(view) = &view {
        image = image.seen_as(view)?;
    }
    let sampler = image.sampler(&texture)?;
    let owner = Arc::downgrade(&context.context);
    let handle = texture::create(context.id(), Object::Texture(image.view, sampler));
    objects().insert(handle, Described { resource, texture: Some(texture), view, owner });
    Ok(handle)
}

/// Makes a surface object in the current context.
pub fn create_surface(resource: CUDA_RESOURCE_DESC) -> CuResult<CUsurfObject> {
    let context = contexts::usable()?;
    if resource.resType != CU_RESOURCE_TYPE_ARRAY {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let view = of_resource(&resource, context.attributes())?.surface()?;
    let owner = Arc::downgrade(&context.context);
    let handle = texture::create(context.id(), Object::Surface(view));
    objects().insert(handle, Described { resource, texture: None, view: None, owner });
    Ok(handle)
}

/// The texture object of a handle.
pub fn find_texture(handle: CUtexObject) -> CuResult<Described> {
    find(handle, |object| object.texture.is_some())
}

/// The surface object of a handle.
pub fn find_surface(handle: CUsurfObject) -> CuResult<Described> {
    find(handle, |object| object.texture.is_none())
}

fn find(handle: u64, is_kind: impl Fn(&Described) -> bool) -> CuResult<Described> {
    let found = objects().get(&handle).cloned().filter(is_kind);
    Ok(found.ok_or(CUDA_ERROR_INVALID_VALUE)?)
}

/// Destroys a texture object; what is queued already may still use it. Nothing is done about a number that names none.
pub fn destroy_texture(handle: CUtexObject) -> CuResult {
    if find_texture(handle).is_ok() { destroy(handle) } else { Ok(()) }
}

/// Destroys a surface object; likewise.
pub fn destroy_surface(handle: CUsurfObject) -> CuResult {
    if find_surface(handle).is_ok() { destroy(handle) } else { Ok(()) }
}

fn destroy(handle: u64) -> CuResult {
    // Another thread may have been quicker.
    if let Some(owner) = objects().remove(&handle).and_then(|object| object.owner.upgrade()) {
        texture::retire(handle, &owner);
    }
    Ok(())
}

/// Makes the handles of a context's objects stale.
pub fn forget(owner: ContextId) {
    objects().retain(|_, object| object.owner.upgrade().is_some_and(|context| context.id() != owner));
}
