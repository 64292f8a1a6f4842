//! Atomics that the thread which runs a block keeps for later.
//!
//! Nobody asks what such an operation found, and nothing behind it in its thread could tell whether it has been done: it may be done any time
//! until the kernel ends. The host does those that go to one line of the cache together, so that threads do not take it from each other for each of them.

pub use simt_ir::{AtomicOp, Type};

/// Name of a [`LateFn`] in generated code.
pub const LATE_SYMBOL: &str = "anywarp_late";

/// The code by which a thread has done what it has had kept.
pub const SETTLE: u32 = u32::MAX;

/// Takes operations of a code upon itself and answers which of the lanes it has not taken: theirs are to be done at once. Where the lanes' elements
/// lie is told by `start` and the [`Places`] in the code; they are aligned to their size. `operands` has an operand of that size for each of 32
/// lanes.
pub type LateFn = unsafe extern "C" fn(code: u32, start: u64, lanes: u32, operands: *const u8) -> u32;

/// Where the elements of a warp's lanes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// That of lane 0 at `start`, those of the others behind it in order.
    Adjacent,
    /// All at `start`.
    One,
    /// At addresses of 64 bits that lie at `start` in order.
    Scattered,
}

/// By their numbers in codes.
const PLACES: [Places; 3] = [Places::Adjacent, Places::One, Places::Scattered];

/// Where that number begins.
const PLACES_SHIFT: u32 = 16;

/// What can be kept.
const KINDS: [(AtomicOp, Type); 18] = {
    use AtomicOp::{Add, And, FAdd, MaxS, MaxU, MinS, MinU, Or, Xor};
    use Type::{F32, F64, I32, I64};
    [
        (Add, I32),
        (And, I32),
        (Or, I32),
        (Xor, I32),
        (MinS, I32),
        (MinU, I32),
        (MaxS, I32),
        (MaxU, I32),
        (Add, I64),
        (And, I64),
        (Or, I64),
        (Xor, I64),
        (MinS, I64),
        (MinU, I64),
        (MaxS, I64),
        (MaxU, I64),
        (FAdd { ftz: true }, F32),
        (FAdd { ftz: true }, F64),
    ]
};

/// Whether an operation on elements of a type can be kept.
pub fn can_wait(op: AtomicOp, ty: Type) -> bool {
    KINDS.contains(&(op, ty))
}

/// The code of an operation that can be kept.
pub fn encode(op: AtomicOp, ty: Type, places: Places) -> Option<u32> {
    let kind = KINDS.iter().position(|kind| *kind == (op, ty))? as u32;
    let places = PLACES.iter().position(|other| *other == places)? as u32;
    Some(kind | places << PLACES_SHIFT)
}

/// The operation of a code that [`encode`] made, the type of its elements, and where they lie.
pub fn decode(code: u32) -> Option<(AtomicOp, Type, Places)> {
    let (op, ty) = *KINDS.get((code & ((1 << PLACES_SHIFT) - 1)) as usize)?;
    Some((op, ty, *PLACES.get((code >> PLACES_SHIFT) as usize)?))
}

/// What an operation puts in the place of `old`: [`simt_ir::eval::atomic`], by the processor's instructions where they have the same bits.
#[inline]
pub fn combined(op: AtomicOp, ty: Type, old: u64, operand: u64) -> u64 {
    let (old_word, word) = (old as u32, operand as u32);
    match (op, ty) {
        (AtomicOp::FAdd { ftz: true }, Type::F32) => sum(old_word, word).into(),
        (AtomicOp::Add, Type::I32) => old_word.wrapping_add(word).into(),
        (AtomicOp::Add, Type::I64) => old.wrapping_add(operand),
        (AtomicOp::MinS, Type::I32) => ((old_word as i32).min(word as i32) as u32).into(),
        (AtomicOp::MaxS, Type::I32) => ((old_word as i32).max(word as i32) as u32).into(),
        (AtomicOp::MinU, Type::I32) => old_word.min(word).into(),
        (AtomicOp::MaxU, Type::I32) => old_word.max(word).into(),
        (AtomicOp::And, Type::I32) => (old_word & word).into(),
        (AtomicOp::Or, Type::I32) => (old_word | word).into(),
        (AtomicOp::Xor, Type::I32) => (old_word ^ word).into(),
        _ => simt_ir::eval::atomic(op, ty, old, operand),
    }
}

/// The sum of two numbers of 32 bits, where subnormal ones are zero.
fn sum(a: u32, b: u32) -> u32 {
    const EXPONENT: u32 = 0x7f80_0000;
    const NAN: u32 = 0x7fff_ffff;
    let flushed = |bits: u32| if bits & EXPONENT == 0 { bits & !NAN } else { bits };
    let sum = (f32::from_bits(flushed(a)) + f32::from_bits(flushed(b))).to_bits();
    if sum & NAN > EXPONENT { NAN } else { flushed(sum) }
}

/// Adds to numbers of 32 bits those operands that the mask has, as [`combined`] does one.
pub fn sums(numbers: &mut [u32; 16], operands: &[u32; 16], mask: u16) {
    for at in 0..16 {
        let new = sum(numbers[at], operands[at]);
        let keeps = u32::from(mask >> at & 1).wrapping_sub(1);
        numbers[at] = numbers[at] & keeps | new & !keeps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_sums_are_those_of_the_hardware() {
        let edges = [
            0,
            1,
            0x007f_ffff,
            0x0080_0000,
            0x0080_0001,
            0x3f80_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7fc0_1234,
            0x7f80_0001,
        ];
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x85eb_ca6b);
            state ^ state >> 15
        };
        let numbers: Vec<u32> =
            edges.iter().flat_map(|bits| [*bits, bits | 1 << 31]).chain((0..300).map(|_| random())).collect();
        for &a in &numbers {
            for &b in &numbers {
                let (op, ty) = (AtomicOp::FAdd { ftz: true }, Type::F32);
                let (own, exact) =
                    (combined(op, ty, a.into(), b.into()), simt_ir::eval::atomic(op, ty, a.into(), b.into()));
                assert_eq!(own, exact, "{a:#x} and {b:#x}");
                let mut line = [a; 16];
                sums(&mut line, &[b; 16], 0b0110_0000_0000_0010);
                let wanted = |at: usize| if [1, 13, 14].contains(&at) { exact as u32 } else { a };
                assert_eq!(line, std::array::from_fn(wanted));
            }
        }
    }

    #[test]
    fn the_processors_operations_are_those_of_the_hardware() {
        let edges =
            [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678_9abc_def0, u64::MAX, 1 << 63];
        for (op, ty) in KINDS.into_iter().filter(|(op, _)| !matches!(op, AtomicOp::FAdd { .. })) {
            let bits = |number: u64| number & (u64::MAX >> (64 - ty.bits()));
            for (old, operand) in
                edges.iter().flat_map(|old| edges.map(|operand| (bits(*old), bits(operand))))
            {
                let exact = simt_ir::eval::atomic(op, ty, old, operand);
                assert_eq!(combined(op, ty, old, operand), exact, "{op:?} of {old:#x} and {operand:#x}");
            }
        }
    }

    #[test]
    fn codes_are_told_apart() {
        for (op, ty) in KINDS {
            for places in PLACES {
                assert_eq!(decode(encode(op, ty, places).unwrap()), Some((op, ty, places)));
            }
        }
        assert_eq!(encode(AtomicOp::Exch, Type::I32, Places::One), None);
        assert_eq!(
            encode(AtomicOp::FAdd { ftz: false }, Type::F32, Places::One),
            None,
            "that of shared memory"
        );
        assert_eq!(decode(99), None);
        assert_eq!(decode(3 << PLACES_SHIFT), None);
    }
}
