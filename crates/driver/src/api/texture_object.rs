//! Texture object management.

use crate::error::CuResult;
use crate::texture_objects;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use entry_macros::entry_point;

/// Without a view the resource is seen as it is.
#[entry_point]
fn cuTexObjectCreate(
    pTexObject: Out<CUtexObject>,
    pResDesc: In<CUDA_RESOURCE_DESC>,
    pTexDesc: In<CUDA_TEXTURE_DESC>,
    pResViewDesc: In<CUDA_RESOURCE_VIEW_DESC>,
) -> CuResult {
    let place = pTexObject.check()?;
    if pTexDesc.get()?.reserved != [0; 12] {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let view = if pResViewDesc.is_null() { None } else { Some(pResViewDesc.get()?) };
    place.set(texture_objects::create_texture(pResDesc.get()?, pTexDesc.get()?, view)?)?;
    Ok(())
}

#[entry_point]
fn cuTexObjectDestroy(texObject: CUtexObject) -> CuResult {
    texture_objects::destroy_texture(texObject)
}

#[entry_point]
fn cuTexObjectGetResourceDesc(pResDesc: Out<CUDA_RESOURCE_DESC>, texObject: CUtexObject) -> CuResult {
    pResDesc.check()?.set(texture_objects::find_texture(texObject)?.resource)?;
    Ok(())
}

#[entry_point]
fn cuTexObjectGetTextureDesc(pTexDesc: Out<CUDA_TEXTURE_DESC>, texObject: CUtexObject) -> CuResult {
    let texture = texture_objects::find_texture(texObject)?.texture.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    pTexDesc.check()?.set(texture)?;
    Ok(())
}

/// Of an object that was made without a view: one that says nothing.
#[entry_point]
fn cuTexObjectGetResourceViewDesc(
    pResViewDesc: Out<CUDA_RESOURCE_VIEW_DESC>,
    texObject: CUtexObject,
) -> CuResult {
    const NONE: CUDA_RESOURCE_VIEW_DESC = CUDA_RESOURCE_VIEW_DESC {
        format: CU_RES_VIEW_FORMAT_NONE,
        width: 0,
        height: 0,
        depth: 0,
        firstMipmapLevel: 0,
        lastMipmapLevel: 0,
        firstLayer: 0,
        lastLayer: 0,
        reserved: [0; 16],
    };
    pResViewDesc.check()?.set(texture_objects::find_texture(texObject)?.view.unwrap_or(NONE))?;
    Ok(())
}
