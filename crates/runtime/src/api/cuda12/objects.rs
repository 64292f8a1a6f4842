//! Texture and surface objects, described without flags.

use crate::api::prelude::*;
use crate::api::{surface_object, texture_object};
use crate::context;

/// Makes a texture object. The view may be left out.
#[entry_point]
fn cudaCreateTextureObject_cuda12(
    pTexObject: Out<cudaTextureObject_t>,
    pResDesc: In<cudaResourceDesc_cuda12>,
    pTexDesc: In<cudaTextureDesc>,
    pResViewDesc: In<cudaResourceViewDesc_cuda12>,
) -> CudaResult {
    create(pTexObject, pResDesc, &pTexDesc.get()?, pResViewDesc)
}

/// Makes a texture object of a description without flags.
pub fn create(
    object: Out<cudaTextureObject_t>,
    resource: In<cudaResourceDesc_cuda12>,
    texture: &cudaTextureDesc,
    view: In<cudaResourceViewDesc_cuda12>,
) -> CudaResult {
    context::ensure_current()?;
    let object = object.check()?;
    let view = if view.is_null() { None } else { Some(widen_view(&view.get()?)) };
    texture_object::create(object, &widen(&resource.get()?)?, texture, view.as_ref())
}

/// What a texture object reads.
#[entry_point]
fn cudaGetTextureObjectResourceDesc_cuda12(
    pResDesc: Out<cudaResourceDesc_cuda12>,
    texObject: cudaTextureObject_t,
) -> CudaResult {
    context::ensure_current()?;
    let out = pResDesc.check()?;
    out.set(narrow(&texture_object::resource_of(texObject)?)?)?;
    Ok(())
}

/// The view through which a texture object reads, if it was made with one.
#[entry_point]
fn cudaGetTextureObjectResourceViewDesc_cuda12(
    pResViewDesc: Out<cudaResourceViewDesc_cuda12>,
    texObject: cudaTextureObject_t,
) -> CudaResult {
    context::ensure_current()?;
    let out = pResViewDesc.check()?;
    let mut view = NO_VIEW;
    call!(cuTexObjectGetResourceViewDesc((&raw mut view).cast(), texObject))?;
    let cudaResourceViewDesc {
        format,
        width,
        height,
        depth,
        firstMipmapLevel,
        lastMipmapLevel,
        firstLayer,
        lastLayer,
        ..
    } = view;
    out.set(cudaResourceViewDesc_cuda12 {
        format,
        width,
        height,
        depth,
        firstMipmapLevel,
        lastMipmapLevel,
        firstLayer,
        lastLayer,
    })?;
    Ok(())
}

/// Makes a surface object.
#[entry_point]
fn cudaCreateSurfaceObject_cuda12(
    pSurfObject: Out<cudaSurfaceObject_t>,
    pResDesc: In<cudaResourceDesc_cuda12>,
) -> CudaResult {
    context::ensure_current()?;
    surface_object::create(pSurfObject.check()?, &widen(&pResDesc.get()?)?)
}

/// What a surface object reads and writes.
#[entry_point]
fn cudaGetSurfaceObjectResourceDesc_cuda12(
    pResDesc: Out<cudaResourceDesc_cuda12>,
    surfObject: cudaSurfaceObject_t,
) -> CudaResult {
    context::ensure_current()?;
    let out = pResDesc.check()?;
    out.set(narrow(&surface_object::resource_of(surfObject)?)?)?;
    Ok(())
}

/// CUDA 13's description of the same resource. (Only the member that counts may be read: the rest of the union may
/// never have been written.)
fn widen(resource: &cudaResourceDesc_cuda12) -> CudaResult<cudaResourceDesc> {
    let from = &resource.res;
    let mut res = cudaResource { reserved: [0; 32] };
    match resource.resType {
        // SAFETY: the caller set the member that resType names. Every bit pattern of it is a value.
        cudaResourceTypeArray => res.array = unsafe { from.array },
        // SAFETY: as above.
        cudaResourceTypeMipmappedArray => res.mipmap = unsafe { from.mipmap },
        // SAFETY: as above.
        cudaResourceTypeLinear => res.linear = unsafe { from.linear },
        // SAFETY: as above.
        cudaResourceTypePitch2D => res.pitch2D = unsafe { from.pitch2D },
        _ => return Err(cudaErrorInvalidValue),
    }
    Ok(cudaResourceDesc { resType: resource.resType, res, flags: 0 })
}

/// CUDA 12's description of the same resource.
fn narrow(resource: &cudaResourceDesc) -> CudaResult<cudaResourceDesc_cuda12> {
    let from = &resource.res;
    let res = match resource.resType {
        // SAFETY: `resources::from_driver` set the member that resType names.
        cudaResourceTypeArray => cudaResource_cuda12 { array: unsafe { from.array } },
        // SAFETY: as above.
        cudaResourceTypeMipmappedArray => cudaResource_cuda12 { mipmap: unsafe { from.mipmap } },
        // SAFETY: as above.
        cudaResourceTypeLinear => cudaResource_cuda12 { linear: unsafe { from.linear } },
        // SAFETY: as above.
        cudaResourceTypePitch2D => cudaResource_cuda12 { pitch2D: unsafe { from.pitch2D } },
        _ => return Err(cudaErrorNotSupported),
    };
    Ok(cudaResourceDesc_cuda12 { resType: resource.resType, res })
}

const NO_VIEW: cudaResourceViewDesc = cudaResourceViewDesc {
    format: cudaResourceViewFormat(0),
    width: 0,
    height: 0,
    depth: 0,
    firstMipmapLevel: 0,
    lastMipmapLevel: 0,
    firstLayer: 0,
    lastLayer: 0,
    reserved: [0; 16],
};

fn widen_view(view: &cudaResourceViewDesc_cuda12) -> cudaResourceViewDesc {
    cudaResourceViewDesc {
        format: view.format,
        width: view.width,
        height: view.height,
        depth: view.depth,
        firstMipmapLevel: view.firstMipmapLevel,
        lastMipmapLevel: view.lastMipmapLevel,
        firstLayer: view.firstLayer,
        lastLayer: view.lastLayer,
        ..NO_VIEW
    }
}
