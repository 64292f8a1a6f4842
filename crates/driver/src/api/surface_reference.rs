//! Surface reference management (deprecated).

use crate::error::CuResult;
use crate::texture_references::find_surface;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;

/// The array must be one for surfaces. No flags are defined.
#[entry_point]
fn cuSurfRefSetArray(hSurfRef: CUsurfref, hArray: CUarray, Flags: u32) -> CuResult {
    if Flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    find_surface(hSurfRef)?.bind(hArray)
}

/// An error for a reference that is not bound.
#[entry_point]
fn cuSurfRefGetArray(phArray: Out<CUarray>, hSurfRef: CUsurfref) -> CuResult {
    let array = find_surface(hSurfRef)?.array();
    if array.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    phArray.check()?.set(array)?;
    Ok(())
}
