//! Surface object management.

use std::mem::MaybeUninit;

use super::prelude::*;
use crate::{context, resources};

/// Makes a surface object.
#[entry_point]
fn cudaCreateSurfaceObject(
    pSurfObject: Out<cudaSurfaceObject_t>,
    pResDesc: In<cudaResourceDesc>,
) -> CudaResult {
    context::ensure_current()?;
    create(pSurfObject.check()?, &pResDesc.get()?)
}

/// Makes a surface object of a resource that was described in the structure of any version.
pub(super) fn create(surface: Out<cudaSurfaceObject_t>, resource: &cudaResourceDesc) -> CudaResult {
    // SAFETY: the member that the kind names; any bits are a handle.
    if resource.resType == cudaResourceTypeArray && unsafe { resource.res.array }.0 == 0 {
        return Err(cudaErrorInvalidResourceHandle);
    }
    let resource = resources::to_driver(resource)?;
    call!(cuSurfObjectCreate(surface.as_ptr(), &resource))
}

/// Destroys a surface object.
#[entry_point]
fn cudaDestroySurfaceObject(surfObject: cudaSurfaceObject_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuSurfObjectDestroy(surfObject))
}

/// What a surface object reads and writes.
#[entry_point]
fn cudaGetSurfaceObjectResourceDesc(
    pResDesc: Out<cudaResourceDesc>,
    surfObject: cudaSurfaceObject_t,
) -> CudaResult {
    context::ensure_current()?;
    let out = pResDesc.check()?;
    out.set(resource_of(surfObject)?)?;
    Ok(())
}

/// The same, to be handed out in the structure of any version.
pub(super) fn resource_of(surface: cudaSurfaceObject_t) -> CudaResult<cudaResourceDesc> {
    let mut resource = MaybeUninit::uninit();
    call!(cuSurfObjectGetResourceDesc(resource.as_mut_ptr(), surface))?;
    // SAFETY: the driver said that it wrote the description.
    resources::from_driver(unsafe { resource.assume_init_ref() })
}
