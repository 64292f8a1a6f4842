//! `txq` and `suq`.

use super::{AddressMode, Channel, Filter, Geometry, ImageView, Query, Sampler};

/// What an instruction asks about an image; `level` counts from the first that is seen. What an image or a surface does not have
/// is 0. Channel types and orders are OpenCL's numbers.
pub fn query(query: Query, view: &ImageView, sampler: Option<&Sampler>, level: u32) -> u32 {
    let extent = view.levels.get(level as usize).map_or([0; 3], |level| level.extent);
    // Layers are the dimension after the image's own.
    let layers = if view.geometry.is_cube() { view.layers / 6 } else { view.layers };
    let there = u32::from(extent[0] != 0);
    let axis = |axis: usize| sampler.map_or(0, |sampler| address_mode(sampler.address[axis]));
    match query {
        Query::Width => extent[0],
        Query::Height if view.geometry == Geometry::D1Layered => layers * there,
        // A surface of one dimension is a row in memory; a texture is an image of one row.
        Query::Height if view.geometry == Geometry::D1 && sampler.is_none() => 0,
        Query::Height => extent[1],
        Query::Depth => match view.geometry {
            Geometry::D3 => extent[2],
            Geometry::D2Layered | Geometry::CubeLayered => layers * there,
            _ => 0,
        },
        Query::ChannelDataType => channel_type(view.format.channel),
        Query::ChannelOrder => match view.format.channels {
            1 => 0x10b0,
            2 => 0x10b2,
            _ => 0x10b5,
        },
        Query::NormalizedCoords => sampler.is_some_and(|sampler| sampler.normalized).into(),
        // Asked about samplers that stand apart only, whose coordinates are normalized unless they are forced not to be.
        Query::ForceUnnormalizedCoords => sampler.is_some_and(|sampler| !sampler.normalized).into(),
        Query::FilterMode => sampler.is_some_and(|sampler| sampler.filter == Filter::Linear).into(),
        Query::AddrMode0 => axis(0),
        Query::AddrMode1 => axis(1),
        Query::AddrMode2 => axis(2),
        Query::ArraySize if view.geometry.is_layered() => layers,
        Query::ArraySize => 0,
        Query::NumMipmapLevels => view.levels.len() as u32,
        Query::NumSamples => 1,
        // Only whoever knows the handles can tell.
        Query::MemoryLayout | Query::IsTexture | Query::IsSampler | Query::IsSurface => 0,
    }
}

/// PTX's order of the modes: wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border.
fn address_mode(mode: AddressMode) -> u32 {
    match mode {
        AddressMode::Wrap => 0,
        AddressMode::Mirror => 1,
        AddressMode::Clamp => 3,
        AddressMode::Border => 4,
    }
}

fn channel_type(channel: Channel) -> u32 {
    match channel {
        Channel::Snorm8 => 0x10d0,
        Channel::Snorm16 => 0x10d1,
        // OpenCL's type for such words is one of three channels.
        Channel::Unorm10 | Channel::Unorm2 => 0x10d6,
        Channel::Unorm8 => 0x10d2,
        Channel::Unorm16 => 0x10d3,
        Channel::S8 => 0x10d7,
        Channel::S16 => 0x10d8,
        Channel::S32 => 0x10d9,
        Channel::U8 => 0x10da,
        Channel::U16 => 0x10db,
        Channel::U32 => 0x10dc,
        Channel::F16 => 0x10dd,
        Channel::F32 => 0x10de,
    }
}
