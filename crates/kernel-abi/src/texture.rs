//! Instructions about textures and surfaces as numbers (see [`simt_ir::texture`]).

use simt_ir::AtomicOp;
use simt_ir::texture::{Access, Geometry, Lod, Outside, Query, Sample, SurfaceAccess, TextureOp};

use crate::FaultKind;
use crate::fields::{Fields, position};

const LODS: [Lod; 3] = [Lod::Base, Lod::Level, Lod::Gradients];

const REDUCTIONS: [AtomicOp; 7] = [
    AtomicOp::Add,
    AtomicOp::MinS,
    AtomicOp::MinU,
    AtomicOp::MaxS,
    AtomicOp::MaxU,
    AtomicOp::And,
    AtomicOp::Or,
];

/// The operation in 64 bits.
pub fn encode(op: &TextureOp) -> u64 {
    let mut fields = Fields::new(0);
    match op {
        TextureOp::Sample(sample) => {
            fields.put(2, 1);
            fields.put(4, position(&Geometry::ALL, sample.geometry));
            fields.put(1, sample.integers.into());
            fields.put(2, position(&LODS, sample.lod));
            fields.put(3, sample.gather.map_or(0, |channel| 1 + u64::from(channel & 3)));
            fields.put(1, sample.offsets.into());
            fields.put(1, sample.halves.into());
            fields.put(1, sample.sampler.into());
        }
        TextureOp::Query { query, surface, level } => {
            fields.put(2, 2);
            fields.put(5, position(&Query::ALL, *query));
            fields.put(1, (*surface).into());
            fields.put(1, (*level).into());
        }
        TextureOp::Surface(surface) => {
            fields.put(2, 3);
            fields.put(4, position(&Geometry::ALL, surface.geometry));
            fields.put(2, position(&Outside::ALL, surface.outside));
            fields.put(4, surface.bytes.into());
            fields.put(4, surface.elements.into());
            match surface.access {
                Access::Load => fields.put(2, 0),
                Access::Store => fields.put(2, 1),
                Access::StoreFormatted => fields.put(2, 2),
                Access::Reduce { op, texels } => {
                    fields.put(2, 3);
                    fields.put(3, position(&REDUCTIONS, op));
                    fields.put(1, texels.into());
                }
            }
        }
    }
    fields.bits
}

/// The operation of a code that [`encode`] made.
pub fn decode(code: u64) -> Option<TextureOp> {
    let mut fields = Fields::new(code);
    Some(match fields.take(2) {
        1 => TextureOp::Sample(Sample {
            geometry: *Geometry::ALL.get(fields.take(4) as usize)?,
            integers: fields.take(1) != 0,
            lod: *LODS.get(fields.take(2) as usize)?,
            gather: fields.take(3).checked_sub(1).map(|channel| channel as u8),
            offsets: fields.take(1) != 0,
            halves: fields.take(1) != 0,
            sampler: fields.take(1) != 0,
        }),
        2 => TextureOp::Query {
            query: *Query::ALL.get(fields.take(5) as usize)?,
            surface: fields.take(1) != 0,
            level: fields.take(1) != 0,
        },
        3 => TextureOp::Surface(SurfaceAccess {
            geometry: *Geometry::ALL.get(fields.take(4) as usize)?,
            outside: *Outside::ALL.get(fields.take(2) as usize)?,
            bytes: fields.take(4) as u8,
            elements: fields.take(4) as u8,
            access: match fields.take(2) {
                0 => Access::Load,
                1 => Access::Store,
                2 => Access::StoreFormatted,
                _ => Access::Reduce {
                    op: *REDUCTIONS.get(fields.take(3) as usize)?,
                    texels: fields.take(1) != 0,
                },
            },
        }),
        _ => return None,
    })
}

/// Why the service failed. The address stands in the first word of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub kind: FaultKind,
    /// In which lane.
    pub lane: u32,
}

impl Failure {
    /// The number that the service answers: the kind below, the lane from bit 8 up.
    pub const fn code(self) -> u32 {
        self.kind as u32 | self.lane << 8
    }

    /// What the number of a service that failed says.
    pub fn of(code: u32) -> Option<Failure> {
        let kind = FaultKind::from_number(code & 0xff)?;
        Some(Failure { kind, lane: code >> 8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        let sample = Sample {
            geometry: Geometry::CubeLayered,
            integers: true,
            lod: Lod::Gradients,
            gather: Some(3),
            offsets: true,
            halves: true,
            sampler: true,
        };
        let surface = SurfaceAccess {
            geometry: Geometry::D2Layered,
            access: Access::Reduce { op: AtomicOp::Or, texels: true },
            outside: Outside::Zero,
            bytes: 8,
            elements: 4,
        };
        for op in [
            TextureOp::Sample(sample),
            TextureOp::Sample(Sample { gather: None, halves: false, lod: Lod::Base, ..sample }),
            TextureOp::Query { query: Query::IsSurface, surface: true, level: false },
            TextureOp::Surface(surface),
            TextureOp::Surface(SurfaceAccess { access: Access::StoreFormatted, bytes: 1, ..surface }),
        ] {
            assert_eq!(decode(encode(&op)), Some(op));
        }
    }

    #[test]
    fn failures_round_trip() {
        let failure = Failure { kind: FaultKind::IllegalAddress, lane: 31 };
        assert_eq!(Failure::of(failure.code()), Some(failure));
        assert_eq!(Failure::of(0), None);
    }
}
