//! Texture object management.

use std::mem::MaybeUninit;
use std::ptr;

use super::prelude::*;
use crate::copy::array_descriptor;
use crate::formats::to_channels;
use crate::{context, resources};

/// Makes a texture object. The view may be left out.
#[entry_point]
fn cudaCreateTextureObject(
    pTexObject: Out<cudaTextureObject_t>,
    pResDesc: In<cudaResourceDesc>,
    pTexDesc: In<cudaTextureDesc>,
    pResViewDesc: In<cudaResourceViewDesc>,
) -> CudaResult {
    context::ensure_current()?;
    let texture = pTexObject.check()?;
    let view = if pResViewDesc.is_null() { None } else { Some(pResViewDesc.get()?) };
    if pTexDesc.is_null() && !pResDesc.is_null() {
        // The code that NVIDIA's runtime has for it.
        return Err(cudaErrorInvalidResourceHandle);
    }
    create(texture, &pResDesc.get()?, &pTexDesc.get()?, view.as_ref())
}

/// Makes a texture object of what was described in the structures of any version. Both APIs lay views out alike.
pub(super) fn create(
    texture: Out<cudaTextureObject_t>,
    resource: &cudaResourceDesc,
    reading: &cudaTextureDesc,
    view: Option<&cudaResourceViewDesc>,
) -> CudaResult {
    let resource = resources::to_driver(resource)?;
    resources::check_reading(&resource, reading)?;
    let reading = resources::texture_to_driver(reading);
    let view = view.map_or(ptr::null(), ptr::from_ref);
    call!(cuTexObjectCreate(texture.as_ptr(), &resource, &reading, view.cast()))
}

/// Destroys a texture object.
#[entry_point]
fn cudaDestroyTextureObject(texObject: cudaTextureObject_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuTexObjectDestroy(texObject))
}

/// What a texture object reads.
#[entry_point]
fn cudaGetTextureObjectResourceDesc(
    pResDesc: Out<cudaResourceDesc>,
    texObject: cudaTextureObject_t,
) -> CudaResult {
    context::ensure_current()?;
    let out = pResDesc.check()?;
    out.set(resource_of(texObject)?)?;
    Ok(())
}

/// The same, to be handed out in the structure of any version.
pub(super) fn resource_of(texture: cudaTextureObject_t) -> CudaResult<cudaResourceDesc> {
    let mut resource = MaybeUninit::uninit();
    call!(cuTexObjectGetResourceDesc(resource.as_mut_ptr(), texture))?;
    // SAFETY: the driver said that it wrote the description.
    resources::from_driver(unsafe { resource.assume_init_ref() })
}

/// How a texture object reads.
#[entry_point]
fn cudaGetTextureObjectTextureDesc(
    pTexDesc: Out<cudaTextureDesc>,
    texObject: cudaTextureObject_t,
) -> CudaResult {
    context::ensure_current()?;
    pTexDesc.check()?.set(texture_of(texObject)?)?;
    Ok(())
}

/// How a texture object reads.
pub fn texture_of(object: cudaTextureObject_t) -> CudaResult<cudaTextureDesc> {
    let mut texture = MaybeUninit::uninit();
    call!(cuTexObjectGetTextureDesc(texture.as_mut_ptr(), object))?;
    // SAFETY: the driver said that it wrote the description.
    Ok(resources::texture_from_driver(unsafe { texture.assume_init_ref() }))
}

/// The view through which a texture object reads, if it was made with one.
#[entry_point]
fn cudaGetTextureObjectResourceViewDesc(
    pResViewDesc: Out<cudaResourceViewDesc>,
    texObject: cudaTextureObject_t,
) -> CudaResult {
    context::ensure_current()?;
    let view = pResViewDesc.check()?;
    call!(cuTexObjectGetResourceViewDesc(view.as_ptr().cast(), texObject))
}

/// Puts a channel description together.
#[entry_point]
fn cudaCreateChannelDesc(x: i32, y: i32, z: i32, w: i32, f: cudaChannelFormatKind) -> cudaChannelFormatDesc {
    cudaChannelFormatDesc { x, y, z, w, f }
}

/// The channels of an array's elements.
#[entry_point]
fn cudaGetChannelDesc(desc: Out<cudaChannelFormatDesc>, array: cudaArray_const_t) -> CudaResult {
    context::ensure_current()?;
    let desc = desc.check()?;
    let array = array_descriptor(CUarray(array.0))?;
    desc.set(to_channels(array.Format, array.NumChannels)?)?;
    Ok(())
}
