//! LLVM code for every operation whose result depends on its operands alone.
//!
//! [`Lowering::op`] is to generated code what `simt_ir::eval` is to the interpreter, and agrees with it bit for bit, but
//! for NaNs: arithmetic leaves the NaN that the CPU gives, and [`Op::CanonNan`] makes it the canonical one where it can
//! be seen.
//!
//! **How values are represented.** Scalars and vectors alike: `Pred` is `i1`; integers are themselves; F32 and F64 are
//! `float` and `double`; **F16 and BF16 are `i16`**, their bits. LLVM's own half types are legal on few CPUs only, whereas
//! bits can be moved, selected and stored on all of them.
//!
//! **Floating-point environment.** Code assumes rounding to nearest with subnormals honoured (`MXCSR` as the ABI has it);
//! `.ftz` is explicit, unless [`Lowering::flushing`] says that the processor does it. Products and sums are never fused: the result does not depend on the CPU.

mod approx;
mod convert;
mod dot;
mod float;
mod half;
mod int;
mod matrix;
mod mufu;
mod quotient;
mod soft;

use crate::llvm::{Builder, Context, FloatPredicate, IntPredicate, Type, Value};
use crate::target::{Cpu, Level};
use simt_ir::{FloatCmp, FloatRel, MinMax, Op};

/// For instructions of AVX-512 that may round otherwise.
const CURRENT_ROUNDING: u64 = 4;

/// [`Lowering::fixup`]'s table for what is the other value where it is no NaN.
const NUMBERS_STAY: u64 = 0x1111_1100;

/// Likewise, for what is quiet where it is a signalling NaN.
const QUIET_NANS: u64 = 0x20;

/// Emits operations at the position of a builder.
#[derive(Clone, Copy)]
pub struct Lowering<'a, 'c> {
    b: &'a Builder<'c>,
    cpu: &'a Cpu,
    flushing: bool,
}

/// The LLVM type that represents a scalar of `ty`.
pub fn value_type(context: &Context, ty: simt_ir::Type) -> Type<'_> {
    match ty {
        simt_ir::Type::Pred => context.int(1),
        simt_ir::Type::I8 => context.int(8),
        simt_ir::Type::I16 | simt_ir::Type::F16 | simt_ir::Type::BF16 => context.int(16),
        simt_ir::Type::I32 => context.int(32),
        simt_ir::Type::I64 => context.int(64),
        simt_ir::Type::F32 => context.float(),
        simt_ir::Type::F64 => context.double(),
    }
}

impl<'a, 'c> Lowering<'a, 'c> {
    /// Emits with `b`, for `cpu`.
    pub fn new(b: &'a Builder<'c>, cpu: &'a Cpu) -> Self {
        Self { b, cpu, flushing: false }
    }

    /// Whether the code will run with subnormals flushed by the processor. Then every operation on f32 must be one that
    /// flushes, but for those that do not look at values.
    pub fn flushing(self, flushing: bool) -> Self {
        Self { flushing, ..self }
    }

    /// The operation on operands of the types given, or nothing if it needs more than its operands (addresses, special
    /// registers). Operands are all scalars or all vectors of one length.
    pub fn op(
        &self,
        op: Op,
        args: &[Value<'c>],
        types: &[simt_ir::Type],
        result: simt_ir::Type,
    ) -> Option<Value<'c>> {
        Some(match op {
            Op::Int(op) => self.int_binary(op, args[0], args[1]),
            Op::IntUnary(op) => self.int_unary(op, args[0]),
            Op::Shift(op) => self.shift(op, args[0], args[1]),
            Op::FunnelShift { left, wrap } => self.funnel_shift(left, wrap, args[0], args[1], args[2]),
            Op::Prmt => self.prmt(args[0], args[1], args[2]),
            Op::DotBytes { signed_a, signed_b } => {
                self.dot_bytes((args[0], signed_a), (args[1], signed_b), args[2])
            }
            Op::IntCmp(cmp) => self.int_cmp(cmp, args[0], args[1]),
            Op::FloatCmp(cmp) => self.float_cmp(cmp, types[0], args[0], args[1]),
            Op::Select => self.b.select(args[0], args[1], args[2]),
            Op::Float(op, mode) => self.float_binary(op, mode, result, args[0], args[1]),
            Op::Fma(mode) => self.fma(mode, result, args[0], args[1], args[2]),
            Op::MinMax(op) => self.min_max(op, result, args[0], args[1]),
            Op::FloatUnary(op, mode) => self.float_unary(op, mode, result, args[0]),
            Op::Approx { func, ftz } => self.approx(func, ftz, result, args),
            Op::Mufu(func) => self.mufu(func, result, args[0]),
            Op::CanonNan => self.canon_nan(result, args[0]),
            Op::Convert(op) => self.convert(op, types[0], result, args[0]),
            Op::Const(bits) => self.constant(result, bits, self.b.context().int(1)),
            _ => return None,
        })
    }

    /// The constant with these bits, in the shape of `shape`.
    pub fn constant(&self, ty: simt_ir::Type, bits: u64, shape: Type<'c>) -> Value<'c> {
        let llvm = value_type(self.b.context(), ty).shaped_like(shape);
        if llvm.is_float() { llvm.float_bits(bits) } else { llvm.int_const(bits) }
    }

    /// NaNs become the canonical NaN of the type.
    pub fn canon_nan(&self, ty: simt_ir::Type, a: Value<'c>) -> Value<'c> {
        let nan = self.constant(ty, simt_ir::eval::canonical_nan(ty), a.ty());
        if self.has_fixup(a) && !self.flushing {
            return self.fixup(nan, a, NUMBERS_STAY);
        }
        self.b.select(self.is_nan(ty, a), nan, a)
    }

    fn float_cmp(&self, cmp: FloatCmp, ty: simt_ir::Type, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        use FloatPredicate::*;
        let predicate = match (cmp.rel, cmp.nan) {
            (FloatRel::Ordered, _) => Ord,
            (FloatRel::Unordered, _) => Uno,
            (FloatRel::Eq, false) => Oeq,
            (FloatRel::Ne, false) => One,
            (FloatRel::Lt, false) => Olt,
            (FloatRel::Le, false) => Ole,
            (FloatRel::Gt, false) => Ogt,
            (FloatRel::Ge, false) => Oge,
            (FloatRel::Eq, true) => Ueq,
            (FloatRel::Ne, true) => Une,
            (FloatRel::Lt, true) => Ult,
            (FloatRel::Le, true) => Ule,
            (FloatRel::Gt, true) => Ugt,
            (FloatRel::Ge, true) => Uge,
        };
        let operand = |value| {
            let value = if cmp.ftz { self.flush(ty, value) } else { value };
            self.widen(ty, value)
        };
        self.b.fcmp(predicate, operand(a), operand(b))
    }

    fn min_max(&self, op: MinMax, ty: simt_ir::Type, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        // With a constant it is one instruction anyway, signalling NaNs or not.
        let by_range = self.has_fixup(a) && !b.is_constant() && !op.nan;
        // A processor that flushes does so here too.
        let flushes = op.ftz && !(by_range && self.flushing);
        let (mut x, mut y) = if flushes { (self.flush(ty, a), self.flush(ty, b)) } else { (a, b) };
        let sign = op.xorsign_abs.then(|| {
            let bits = self.b.xor(self.bits(x), self.bits(y));
            (x, y) = (self.magnitude(x), self.magnitude(y));
            self.b.and(bits, self.sign_mask(bits.ty()))
        });
        let result = if by_range {
            self.range(op, x, y)
        } else if x.ty().is_float() {
            let name = match (op.max, op.nan) {
                (false, false) => "llvm.minimumnum",
                (true, false) => "llvm.maximumnum",
                (false, true) => "llvm.minimum",
                (true, true) => "llvm.maximum",
            };
            // Of a single number that LLVM knows for one, and a quiet NaN, it gives the NaN where zeros have an order and the processor classes
            // (LLVM 22): the other one stands for it.
            let (x, y) = if self.loses_number(op, x) && !y.is_constant() {
                let number = |value, other| self.b.select(self.is_nan(ty, value), other, value);
                (number(x, y), number(y, x))
            } else {
                (x, y)
            };
            let result = self.b.intrinsic(name, &[x.ty()], &[x, y]);
            if op.any_zero { self.b.allow_any_zero(result) } else { result }
        } else {
            self.half_min_max(op, ty, x, y)
        };
        // Of two NaNs the second counts; which one the processor's instructions give is for LLVM to say.
        let result = match ty {
            simt_ir::Type::F64 => self.b.select(self.is_nan(ty, result), self.quiet(y), result),
            _ => result,
        };
        match sign {
            None => result,
            Some(sign) => self.with_bits(self.b.or(self.bits(result), sign), result.ty()),
        }
    }

    /// Whether LLVM's lesser or greater number may be a NaN beside one.
    fn loses_number(&self, op: MinMax, x: Value<'c>) -> bool {
        self.cpu.level() >= Level::Avx512 && !x.ty().is_vector() && !op.nan && !op.any_zero
    }

    /// The lesser or greater one, by AVX-512's own instruction: of a number and a quiet NaN the number, of zeros the one that its sign
    /// makes the lesser or greater. A signalling NaN it would pass on.
    fn range(&self, op: MinMax, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        const LESSER: u64 = 0b0100;
        const GREATER: u64 = 0b0101;
        let quiet = |value: Value<'c>| if op.quiet { value } else { self.fixup(value, value, QUIET_NANS) };
        let context = self.b.context();
        let (suffix, lanes) = suffix_and_lanes(x);
        self.in_chunks(lanes, &[quiet(x), quiet(y)], |chunk| {
            let operands = [
                chunk[0],
                chunk[1],
                context.int(32).int_const(if op.max { GREATER } else { LESSER }),
                chunk[0].ty().zero(),
                context.int(lanes).all_ones(),
                context.int(32).int_const(CURRENT_ROUNDING),
            ];
            self.b.intrinsic(&format!("llvm.x86.avx512.mask.range.{suffix}.512"), &[], &operands)
        })
    }

    /// Whether AVX-512's [`Self::fixup`] is there for values like this one.
    fn has_fixup(&self, a: Value<'c>) -> bool {
        self.cpu.vector_bits() == 512 && a.ty().is_vector() && a.ty().is_float() && !a.is_constant()
    }

    /// By AVX-512's own instruction, for each lane what the table says of the class of `of`. From the lowest, the table has four bits each
    /// for NaNs, quiet and signalling, 0, 1, the infinities, negative first, and other numbers, negative first: with 0 the result is
    /// `value`, with 1 it is `of`, with 2 `of` as a quiet NaN, with 3 the NaN of an invalid operation, with 6 an infinity of its sign, with 8 0.
    fn fixup(&self, value: Value<'c>, of: Value<'c>, table: u64) -> Value<'c> {
        let context = self.b.context();
        let (suffix, lanes) = suffix_and_lanes(of);
        self.in_chunks(lanes, &[value, of], |chunk| {
            let operands = [
                chunk[0],
                chunk[1],
                chunk[1].ty().to_int().int_const(table),
                context.int(32).zero(),
                context.int(lanes).all_ones(),
                context.int(32).int_const(CURRENT_ROUNDING),
            ];
            self.b.intrinsic(&format!("llvm.x86.avx512.mask.fixupimm.{suffix}.512"), &[], &operands)
        })
    }

    // Pieces that the other files use

    /// Subnormals become zeros of their sign.
    fn flush(&self, ty: simt_ir::Type, a: Value<'c>) -> Value<'c> {
        // A processor that flushes takes subnormals for zeros in this test too.
        let by_class = self.cpu.vector_bits() == 512 && !self.flushing;
        if by_class && a.ty().is_vector() && a.ty().is_float() && !a.is_constant() {
            const SUBNORMAL: u64 = 0x20;
            let tiny = self.is_of_class(a, SUBNORMAL);
            return self.b.select(tiny, self.b.copysign(a.ty().zero(), a), a);
        }
        let bits = self.bits(a);
        let sign = self.sign_mask(bits.ty());
        let magnitude = self.b.and(bits, self.b.not(sign));
        let min_normal = bits.ty().int_const(simt_ir::soft::Format::of(ty).min_normal());
        let tiny = self.b.icmp(IntPredicate::Ult, magnitude, min_normal);
        let zero = self.with_bits(self.b.and(bits, sign), a.ty());
        self.b.select(tiny, zero, a)
    }

    /// By AVX-512's own test: of quiet NaNs, positive and negative zeros, positive and negative infinities, subnormals, other negative numbers and
    /// signalling NaNs, from the lowest bit, those whose bits are set.
    fn is_of_class(&self, a: Value<'c>, classes: u64) -> Value<'c> {
        let (suffix, lanes) = suffix_and_lanes(a);
        let name = format!("llvm.x86.avx512.fpclass.{suffix}.512");
        let class = self.b.context().int(32).int_const(classes);
        self.in_chunks(lanes, &[a], |chunk| self.b.intrinsic(&name, &[], &[chunk[0], class]))
    }

    /// Clamps to [0, 1]; NaN and -0 become +0.
    fn saturate(&self, ty: simt_ir::Type, a: Value<'c>) -> Value<'c> {
        let zero = a.ty().zero();
        let one = self.constant(ty, simt_ir::soft::Format::of(ty).one(), a.ty());
        if a.ty().is_float() {
            let low = self.b.select(self.b.fcmp(FloatPredicate::Ogt, a, zero), a, zero);
            return self.b.select(self.b.fcmp(FloatPredicate::Olt, low, one), low, one);
        }
        let clamped = self.b.smin(self.b.smax(a, zero), one);
        self.b.select(self.is_nan(ty, a), zero, clamped)
    }

    fn is_nan(&self, ty: simt_ir::Type, a: Value<'c>) -> Value<'c> {
        if a.ty().is_float() {
            return self.b.fcmp(FloatPredicate::Uno, a, a);
        }
        let infinity = a.ty().int_const(simt_ir::soft::Format::of(ty).infinity());
        self.b.icmp(IntPredicate::Ugt, self.magnitude(a), infinity)
    }

    /// A NaN of f64, made quiet.
    fn quiet(&self, a: Value<'c>) -> Value<'c> {
        let bits = self.bits(a);
        let quiet = simt_ir::soft::Format::of(simt_ir::Type::F64).quiet();
        self.with_bits(self.b.or(bits, bits.ty().int_const(quiet)), a.ty())
    }

    /// The value without its sign, of a NaN too.
    fn magnitude(&self, a: Value<'c>) -> Value<'c> {
        if a.ty().is_float() {
            return self.b.fabs(a);
        }
        self.b.and(a, self.b.not(self.sign_mask(a.ty())))
    }

    fn bits(&self, a: Value<'c>) -> Value<'c> {
        self.b.bitcast(a, a.ty().to_int())
    }

    fn with_bits(&self, bits: Value<'c>, ty: Type<'c>) -> Value<'c> {
        self.b.bitcast(bits, ty)
    }

    fn sign_mask(&self, int: Type<'c>) -> Value<'c> {
        int.int_const(1 << (int.scalar_bits() - 1))
    }
}

/// How AVX-512's instructions for such floats are called, and the lanes that they have.
fn suffix_and_lanes(floats: Value<'_>) -> (&'static str, u32) {
    if floats.ty().scalar_bits() == 64 { ("pd", 8) } else { ("ps", 16) }
}
