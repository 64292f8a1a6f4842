//! Bulk copies that generated code leaves to the host (see [`simt_ir::bulk`]).

use simt_ir::AtomicOp;
use simt_ir::matrix::LaneWords;

pub use simt_ir::Type;
pub use simt_ir::bulk::{
    BulkFault, BulkOp, Element, Field, Interleave, MapError, Memory, Mode, Swizzle, TensorMap,
};

use crate::{BlockFrame, CLUSTER_STRIDE, FaultKind, MAX_CLUSTER};

/// Name of a [`BulkFn`] in generated code.
pub const BULK_SYMBOL: &str = "anywarp_bulk";

/// Executes the operation of a code for the lanes of a mask, lowest first. `operands` holds 32 words for each operand, one a
/// lane. Answers 0, or 1 after a fault, which is then in `frame.fault` but for its line.
pub type BulkFn =
    unsafe extern "C" fn(frame: *mut BlockFrame, code: u64, lanes: u32, operands: *const LaneWords) -> u32;

const ATOMICS: [AtomicOp; 15] = [
    AtomicOp::Add,
    AtomicOp::FAdd { ftz: false },
    AtomicOp::FAdd { ftz: true },
    AtomicOp::FMin,
    AtomicOp::FMax,
    AtomicOp::And,
    AtomicOp::Or,
    AtomicOp::Xor,
    AtomicOp::Exch,
    AtomicOp::MinS,
    AtomicOp::MinU,
    AtomicOp::MaxS,
    AtomicOp::MaxU,
    AtomicOp::Inc,
    AtomicOp::Dec,
];

const TYPES: [Type; 7] = [Type::I32, Type::I64, Type::F16, Type::BF16, Type::F32, Type::F64, Type::I16];

/// The code of an operation: its bytes, from the lowest, are which of the four it is, flags, and what they need.
pub fn encode(op: &BulkOp) -> u64 {
    let atomic = |op: AtomicOp| ATOMICS.iter().position(|known| *known == op).unwrap_or(0) as u8 + 1;
    let bytes = match *op {
        BulkOp::Copy { barrier, multicast, reduce } => {
            let (op, ty) = reduce.map_or((0, 0), |(op, ty)| {
                (atomic(op), TYPES.iter().position(|known| *known == ty).unwrap_or(0) as u8)
            });
            [0, barrier.into(), multicast.into(), op, ty]
        }
        BulkOp::Load { rank, im2col, multicast } => [1, rank, im2col.into(), multicast.into(), 0],
        BulkOp::Store { rank, im2col, reduce } => [2, rank, im2col.into(), reduce.map_or(0, atomic), 0],
        BulkOp::Replace(field) => {
            let (number, axis) = match field {
                Field::Address => (0, 0),
                Field::Rank => (1, 0),
                Field::Extent(axis) => (2, axis),
                Field::Size(axis) => (3, axis),
                Field::Stride(axis) => (4, axis),
                Field::Step(axis) => (5, axis),
                Field::Element => (6, 0),
                Field::Interleave => (7, 0),
                Field::Swizzle => (8, 0),
                Field::Fill => (9, 0),
            };
            [3, number, axis, 0, 0]
        }
    };
    bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte))
}

/// The operation of a code that [`encode`] made.
pub fn decode(code: u64) -> Option<BulkOp> {
    let [kind, a, b, c, d, ..] = code.to_le_bytes();
    let atomic = |number: u8| match usize::from(number).checked_sub(1) {
        None => Some(None),
        Some(at) => ATOMICS.get(at).map(|op| Some(*op)),
    };
    Some(match kind {
        0 => {
            let reduce = match atomic(c)? {
                Some(op) => Some((op, *TYPES.get(usize::from(d))?)),
                None => None,
            };
            BulkOp::Copy { barrier: a != 0, multicast: b != 0, reduce }
        }
        1 => BulkOp::Load { rank: a, im2col: b != 0, multicast: c != 0 },
        2 => BulkOp::Store { rank: a, im2col: b != 0, reduce: atomic(c)? },
        3 => BulkOp::Replace(match a {
            0 => Field::Address,
            1 => Field::Rank,
            2 => Field::Extent(b),
            3 => Field::Size(b),
            4 => Field::Stride(b),
            5 => Field::Step(b),
            6 => Field::Element,
            7 => Field::Interleave,
            8 => Field::Swizzle,
            9 => Field::Fill,
            _ => return None,
        }),
        _ => return None,
    })
}

/// A copy's fault as that of a kernel, and its address.
pub fn fault(fault: BulkFault) -> (FaultKind, u64) {
    match fault {
        BulkFault::IllegalAddress(address) => (FaultKind::IllegalAddress, address),
        BulkFault::Misaligned(address) => (FaultKind::Misaligned, address),
        BulkFault::IllegalInstruction(address) => (FaultKind::IllegalInstruction, address),
    }
}

/// Bits of a shared address that a copy takes for an offset in a window; those above, up to the rank, mean nothing to it.
const OFFSET: u64 = (1 << 20) - 1;

/// The address that a copy takes a host address for: in the shared window of a block of the cluster, or as it is where no windows are.
/// `None` for a block that the cluster has not.
///
/// # Safety
/// The frame is that of a running block.
pub unsafe fn in_cluster(frame: *const BlockFrame, address: u64) -> Option<u64> {
    // SAFETY: the caller's contract.
    let (first, blocks) = unsafe { cluster_of(frame) };
    let distance = address.wrapping_sub(first);
    if distance >= u64::from(MAX_CLUSTER) * CLUSTER_STRIDE {
        return Some(address);
    }
    let (rank, offset) = (distance / CLUSTER_STRIDE, distance & OFFSET);
    (rank < u64::from(blocks)).then(|| first + rank * CLUSTER_STRIDE + offset)
}

/// The beginning of the shared window of the cluster's first block, and how many blocks it has.
///
/// # Safety
/// The frame is that of a running block.
unsafe fn cluster_of(frame: *const BlockFrame) -> (u64, u32) {
    // SAFETY: the caller's contract; the launch outlives its blocks.
    let (launch, ctaid, shared) = unsafe { (&*(*frame).launch, (*frame).ctaid, (*frame).shared as u64) };
    (shared.wrapping_sub(u64::from(launch.rank_of(ctaid)) * CLUSTER_STRIDE), launch.cluster_blocks())
}

/// The address in the shared window of the cluster's block of this rank that lies as `address` does in that of the running
/// block. `None` if there is no such block.
///
/// # Safety
/// The frame is that of a running block.
pub unsafe fn in_block(frame: *const BlockFrame, address: u64, rank: u32) -> Option<u64> {
    // SAFETY: the caller's contract.
    let (first, blocks) = unsafe { cluster_of(frame) };
    let offset = address.wrapping_sub(first) & OFFSET;
    (rank < blocks).then(|| first.wrapping_add(u64::from(rank) * CLUSTER_STRIDE + offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        let mut all = vec![
            BulkOp::Copy { barrier: true, multicast: true, reduce: None },
            BulkOp::Load { rank: 5, im2col: true, multicast: false },
            BulkOp::Store { rank: 1, im2col: false, reduce: None },
            BulkOp::Store { rank: 4, im2col: true, reduce: Some(AtomicOp::Dec) },
        ];
        for op in ATOMICS {
            all.extend(TYPES.map(|ty| BulkOp::Copy {
                barrier: false,
                multicast: false,
                reduce: Some((op, ty)),
            }));
        }
        for axis in 0..5 {
            let fields = [Field::Extent(axis), Field::Size(axis), Field::Stride(axis), Field::Step(axis)];
            all.extend(fields.map(BulkOp::Replace));
        }
        let fields =
            [Field::Address, Field::Rank, Field::Element, Field::Interleave, Field::Swizzle, Field::Fill];
        all.extend(fields.map(BulkOp::Replace));
        for op in all {
            assert_eq!(decode(encode(&op)), Some(op));
        }
    }
}
