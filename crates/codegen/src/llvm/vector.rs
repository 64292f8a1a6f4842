//! Lanes: extraction, insertion, shuffles, masks, reductions; and the fields of aggregates.

use super::UNNAMED;
use super::arithmetic::IntPredicate;
use super::builder::Builder;
use super::value::Value;
use llvm_sys::core;

impl<'c> Builder<'c> {
    /// `scalar` in each of `lanes` lanes.
    #[track_caller]
    pub fn splat(&self, scalar: Value<'c>, lanes: u32) -> Value<'c> {
        let ty = scalar.ty().vector(lanes);
        if scalar.is_constant() {
            return Value::const_vector(&vec![scalar; lanes as usize]);
        }
        let first = self.insert(ty.poison(), scalar, 0);
        self.shuffle(first, ty.poison(), &vec![0; lanes as usize])
    }

    /// Lane `lane` of `vector`.
    #[track_caller]
    pub fn extract(&self, vector: Value<'c>, lane: u32) -> Value<'c> {
        assert!(lane < vector.ty().lanes(), "no lane {lane} in {}", vector.ty());
        self.extract_dynamic(vector, self.context().int(32).int_const(lane.into()))
    }

    /// The lane of `vector` that `lane` tells; poison beyond the last.
    #[track_caller]
    pub fn extract_dynamic(&self, vector: Value<'c>, lane: Value<'c>) -> Value<'c> {
        self.ready();
        assert!(vector.ty().is_vector() && lane.ty().is_int() && !lane.ty().is_vector());
        // SAFETY: positioned; operands checked.
        self.value(unsafe { core::LLVMBuildExtractElement(self.raw(), vector.raw(), lane.raw(), UNNAMED) })
    }

    /// `vector` with `scalar` in lane `lane`.
    #[track_caller]
    pub fn insert(&self, vector: Value<'c>, scalar: Value<'c>, lane: u32) -> Value<'c> {
        assert!(lane < vector.ty().lanes(), "no lane {lane} in {}", vector.ty());
        self.insert_dynamic(vector, scalar, self.context().int(32).int_const(lane.into()))
    }

    /// `vector` with `scalar` in the lane that `lane` tells; poison beyond the last.
    #[track_caller]
    pub fn insert_dynamic(&self, vector: Value<'c>, scalar: Value<'c>, lane: Value<'c>) -> Value<'c> {
        self.ready();
        assert!(vector.ty().is_vector() && lane.ty().is_int() && !lane.ty().is_vector());
        assert_eq!(vector.ty().scalar(), scalar.ty(), "a lane of another type");
        // SAFETY: positioned; operands checked.
        self.value(unsafe {
            core::LLVMBuildInsertElement(self.raw(), vector.raw(), scalar.raw(), lane.raw(), UNNAMED)
        })
    }

    /// Lanes chosen from `a` followed by `b`; -1 leaves a lane poison.
    #[track_caller]
    pub fn shuffle(&self, a: Value<'c>, b: Value<'c>, lanes: &[i32]) -> Value<'c> {
        self.ready();
        assert!(a.ty() == b.ty() && a.ty().is_vector(), "shuffle of {} and {}", a.ty(), b.ty());
        let available = 2 * i64::from(a.ty().lanes());
        let index = self.context().int(32);
        let lanes: Vec<_> = lanes
            .iter()
            .map(|&lane| {
                assert!((-1..available).contains(&lane.into()), "no lane {lane} in two {}", a.ty());
                if lane < 0 { index.poison() } else { index.int_const(lane as u64) }
            })
            .collect();
        let mask = Value::const_vector(&lanes);
        // SAFETY: positioned; operands checked; the mask is a constant vector of i32 in range.
        self.value(unsafe { core::LLVMBuildShuffleVector(self.raw(), a.raw(), b.raw(), mask.raw(), UNNAMED) })
    }

    /// The lanes of `a` followed by those of `b`.
    #[track_caller]
    pub fn concat(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let lanes: Vec<_> = (0..2 * a.ty().lanes() as i32).collect();
        self.shuffle(a, b, &lanes)
    }

    /// Vectors of one length, a power of two of them, one after another.
    #[track_caller]
    pub fn concatenated(&self, mut pieces: Vec<Value<'c>>) -> Value<'c> {
        while pieces.len() > 1 {
            pieces = pieces.chunks(2).map(|pair| self.concat(pair[0], pair[1])).collect();
        }
        pieces[0]
    }

    /// `count` lanes of `a` from lane `start` on.
    #[track_caller]
    pub fn subvector(&self, a: Value<'c>, start: u32, count: u32) -> Value<'c> {
        let lanes: Vec<_> = (start as i32..(start + count) as i32).collect();
        self.shuffle(a, a.ty().poison(), &lanes)
    }

    /// A mask as an integer, lane 0 in bit 0.
    #[track_caller]
    pub fn mask_to_int(&self, mask: Value<'c>) -> Value<'c> {
        let ty = self.context().int(mask.ty().lanes());
        // LLVM does not fold this one, so that branches would stay whose way is known.
        match mask.as_bits() {
            Some(bits) => ty.int_const(bits),
            None => self.bitcast(mask, ty),
        }
    }

    /// Bit i of `bits` as lane i of a mask.
    #[track_caller]
    pub fn int_to_mask(&self, bits: Value<'c>) -> Value<'c> {
        self.bitcast(bits, self.context().int(1).vector(bits.ty().scalar_bits()))
    }

    /// Whether any lane of `mask` is set.
    #[track_caller]
    pub fn any(&self, mut mask: Value<'c>) -> Value<'c> {
        // As far as masks have registers of their own, their union is tested in one.
        while mask.ty().lanes() > 64 {
            let half = mask.ty().lanes() / 2;
            mask = self.or(self.subvector(mask, 0, half), self.subvector(mask, half, half));
        }
        let bits = self.mask_to_int(mask);
        self.icmp(IntPredicate::Ne, bits, bits.ty().zero())
    }

    /// Whether all lanes of `mask` are set.
    #[track_caller]
    pub fn all(&self, mut mask: Value<'c>) -> Value<'c> {
        while mask.ty().lanes() > 64 {
            let half = mask.ty().lanes() / 2;
            mask = self.and(self.subvector(mask, 0, half), self.subvector(mask, half, half));
        }
        let bits = self.mask_to_int(mask);
        self.icmp(IntPredicate::Eq, bits, bits.ty().all_ones())
    }

    /// Field `index` of an aggregate.
    #[track_caller]
    pub fn extract_field(&self, aggregate: Value<'c>, index: u32) -> Value<'c> {
        self.ready();
        check_field(aggregate, index);
        // SAFETY: positioned; index checked.
        self.value(unsafe { core::LLVMBuildExtractValue(self.raw(), aggregate.raw(), index, UNNAMED) })
    }

    /// `aggregate` with `value` in field `index`.
    #[track_caller]
    pub fn insert_field(&self, aggregate: Value<'c>, value: Value<'c>, index: u32) -> Value<'c> {
        self.ready();
        check_field(aggregate, index);
        // SAFETY: positioned; index checked. The verifier checks the field's type.
        self.value(unsafe {
            core::LLVMBuildInsertValue(self.raw(), aggregate.raw(), value.raw(), index, UNNAMED)
        })
    }
}

#[track_caller]
fn check_field(aggregate: Value<'_>, index: u32) {
    use llvm_sys::LLVMTypeKind::*;
    let ty = aggregate.ty().raw();
    // SAFETY: the element count is asked of a struct or an array only.
    let fields = unsafe {
        match core::LLVMGetTypeKind(ty) {
            LLVMStructTypeKind => u64::from(core::LLVMCountStructElementTypes(ty)),
            LLVMArrayTypeKind => core::LLVMGetArrayLength2(ty),
            _ => 0,
        }
    };
    assert!(u64::from(index) < fields, "{} has no field {index}", aggregate.ty());
}
