//! Surface object management.

use crate::error::CuResult;
use crate::texture_objects;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use entry_macros::entry_point;

#[entry_point]
fn cuSurfObjectCreate(pSurfObject: Out<CUsurfObject>, pResDesc: In<CUDA_RESOURCE_DESC>) -> CuResult {
    pSurfObject.check()?.set(texture_objects::create_surface(pResDesc.get()?)?)?;
    Ok(())
}

#[entry_point]
fn cuSurfObjectDestroy(surfObject: CUsurfObject) -> CuResult {
    texture_objects::destroy_surface(surfObject)
}

#[entry_point]
fn cuSurfObjectGetResourceDesc(pResDesc: Out<CUDA_RESOURCE_DESC>, surfObject: CUsurfObject) -> CuResult {
    pResDesc.check()?.set(texture_objects::find_surface(surfObject)?.resource)?;
    Ok(())
}
