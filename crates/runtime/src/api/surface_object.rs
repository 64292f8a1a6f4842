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
    let surface = pSurfObject.check()?;
    let resource = resources::to_driver(&pResDesc.get()?)?;
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
    let mut resource = MaybeUninit::uninit();
    call!(cuSurfObjectGetResourceDesc(resource.as_mut_ptr(), surfObject))?;
    // SAFETY: the driver said that it wrote the description.
    out.set(resources::from_driver(unsafe { resource.assume_init_ref() })?)?;
    Ok(())
}
