//! Texture object management.

use super::prelude::*;
use crate::context;
use crate::copy::array_descriptor;
use crate::formats::to_channels;

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
