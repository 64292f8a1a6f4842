//! What an instruction about a texture or a surface asks for.

use super::Geometry;
use crate::{AtomicOp, Type};

/// Which mip level is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lod {
    /// The base level.
    Base,
    /// The one that an operand says.
    Level,
    /// The one that suits the distance to the next samples in x and y of the screen: two vectors of operands.
    Gradients,
}

/// `tex` and `tld4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sample {
    /// The coordinates among the operands.
    pub geometry: Geometry,
    /// Coordinates are signed integers, in texels, rather than `f32`.
    pub integers: bool,
    /// The mip level.
    pub lod: Lod,
    /// One channel of the four texels that a linear filter would read (`tld4`).
    pub gather: Option<u8>,
    /// Offsets in texels are among the operands, one for each coordinate of the image.
    pub offsets: bool,
    /// Results are pairs of `f16`.
    pub halves: bool,
    /// An object that has the sampler is among the operands.
    pub sampler: bool,
}

/// What `txq` and `suq` ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PTX's names")]
pub enum Query {
    Width,
    Height,
    Depth,
    ChannelDataType,
    ChannelOrder,
    NormalizedCoords,
    ForceUnnormalizedCoords,
    FilterMode,
    AddrMode0,
    AddrMode1,
    AddrMode2,
    ArraySize,
    NumMipmapLevels,
    NumSamples,
    MemoryLayout,
    /// Whether the handle is one of a texture; answers 0 for one that is not known.
    IsTexture,
    /// Likewise, of a sampler.
    IsSampler,
    /// Likewise, of a surface.
    IsSurface,
}

impl Query {
    /// All of them.
    pub const ALL: [Query; 18] = [
        Query::Width,
        Query::Height,
        Query::Depth,
        Query::ChannelDataType,
        Query::ChannelOrder,
        Query::NormalizedCoords,
        Query::ForceUnnormalizedCoords,
        Query::FilterMode,
        Query::AddrMode0,
        Query::AddrMode1,
        Query::AddrMode2,
        Query::ArraySize,
        Query::NumMipmapLevels,
        Query::NumSamples,
        Query::MemoryLayout,
        Query::IsTexture,
        Query::IsSampler,
        Query::IsSurface,
    ];
}

/// What an access of a surface does outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outside {
    /// The kernel fails.
    Trap,
    /// The nearest place is meant.
    Clamp,
    /// Loads give zeros, stores do nothing.
    Zero,
}

impl Outside {
    /// All of them.
    pub const ALL: [Outside; 3] = [Outside::Trap, Outside::Clamp, Outside::Zero];
}

/// What an access of a surface does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// `suld.b`: bytes.
    Load,
    /// `sust.b`: bytes.
    Store,
    /// `sust.p`: values, converted to what the texels are.
    StoreFormatted,
    /// `sured`: one of `Add`, `MinS`, `MinU`, `MaxS`, `MaxU`, `And`, `Or`; with `texels` x counts those, else bytes.
    Reduce {
        /// The operation.
        op: AtomicOp,
        /// x counts texels.
        texels: bool,
    },
}

/// `suld`, `sust`, `sured`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SurfaceAccess {
    /// The coordinates among the operands.
    pub geometry: Geometry,
    /// What it does.
    pub access: Access,
    /// What it does outside.
    pub outside: Outside,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Elements: 1, 2 or 4.
    pub elements: u8,
}

/// An instruction about a texture or a surface. Operands are the object's handle first, then what each says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextureOp {
    /// `([sampler], [layer], coordinates, [level or gradients], [offsets]) → I32 × 4`, two for pairs of halves.
    Sample(Sample),
    /// `([level]) → I32`.
    Query {
        /// What is asked.
        query: Query,
        /// Of a surface.
        surface: bool,
        /// A level is among the operands.
        level: bool,
    },
    /// `([layer], coordinates, [values]) → values`, of the type that the element has.
    Surface(SurfaceAccess),
}

impl Sample {
    /// How many results there are.
    pub const fn results(&self) -> usize {
        if self.halves { 2 } else { 4 }
    }
}

impl SurfaceAccess {
    /// The type of an element.
    pub const fn element(&self) -> Type {
        match self.bytes {
            1 => Type::I8,
            2 => Type::I16,
            4 => Type::I32,
            _ => Type::I64,
        }
    }
}

impl TextureOp {
    /// Whether it only stores, so that several lanes may store to one place.
    pub const fn is_store(&self) -> bool {
        match self {
            TextureOp::Surface(access) => matches!(access.access, Access::Store | Access::StoreFormatted),
            _ => false,
        }
    }

    /// Types of the operands.
    pub fn operands(&self) -> Vec<Type> {
        let mut types = vec![Type::I64];
        match self {
            TextureOp::Sample(sample) => {
                if sample.sampler {
                    types.push(Type::I64);
                }
                let count = sample.geometry.coordinates();
                if sample.geometry.is_layered() {
                    types.push(Type::I32);
                }
                let coordinate = if sample.integers { Type::I32 } else { Type::F32 };
                types.resize(types.len() + count, coordinate);
                let levels = match sample.lod {
                    Lod::Base => 0,
                    Lod::Level => 1,
                    Lod::Gradients => 2 * count,
                };
                let whole = sample.integers && sample.lod == Lod::Level;
                let level = if whole { Type::I32 } else { Type::F32 };
                types.resize(types.len() + levels, level);
                if sample.offsets {
                    types.resize(types.len() + count, Type::I32);
                }
            }
            TextureOp::Query { level, .. } => {
                if *level {
                    types.push(Type::I32);
                }
            }
            TextureOp::Surface(surface) => {
                let coordinates = surface.geometry.coordinates() + usize::from(surface.geometry.is_layered());
                types.resize(types.len() + coordinates, Type::I32);
                if surface.access != Access::Load {
                    types.resize(types.len() + usize::from(surface.elements), surface.element());
                }
            }
        }
        types
    }

    /// Types of the results.
    pub fn results(&self) -> Vec<Type> {
        match self {
            TextureOp::Sample(sample) => vec![Type::I32; sample.results()],
            TextureOp::Query { .. } => vec![Type::I32],
            TextureOp::Surface(surface) if surface.access == Access::Load => {
                vec![surface.element(); surface.elements.into()]
            }
            TextureOp::Surface(_) => Vec::new(),
        }
    }
}
