//! Conversions.

use super::float::rounding_control;
use super::{CURRENT_ROUNDING, Lowering, value_type};
use crate::llvm::{FloatPredicate, Type, Value};
use simt_ir::soft::Format;
use simt_ir::{Convert, FloatMode, Op, Rounding};

type IrType = simt_ir::Type;

impl<'c> Lowering<'_, 'c> {
    pub(super) fn convert(&self, op: Convert, from: IrType, to: IrType, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        let target = value_type(b.context(), to).shaped_like(x.ty());
        match op {
            Convert::Trunc => b.int_resize(x, target, false),
            Convert::ZExt => b.int_resize(x, target, false),
            Convert::SExt => b.int_resize(x, target, true),
            Convert::Bitcast => b.bitcast(x, target),
            Convert::FloatToS { round, ftz } => self.float_to_int(true, round, ftz, from, to, x),
            Convert::FloatToU { round, ftz } => self.float_to_int(false, round, ftz, from, to, x),
            Convert::SToFloat(mode) => self.int_to_float(op, true, mode, from, to, x),
            Convert::UToFloat(mode) => self.int_to_float(op, false, mode, from, to, x),
            Convert::FloatToFloat(mode) => self.float_to_float(op, mode, from, to, x),
            Convert::RoundToIntegral(mode) => {
                let x = if mode.ftz { self.flush(to, x) } else { x };
                let result = match to {
                    IrType::F32 | IrType::F64 => self.integral(mode.round, x),
                    _ => self.narrow(to, Rounding::Nearest, self.integral(mode.round, self.widen(to, x))),
                };
                if mode.sat { self.saturate(to, result) } else { result }
            }
        }
    }

    fn integral(&self, round: Rounding, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        match round {
            Rounding::Nearest => b.roundeven(x),
            Rounding::Zero => b.ftrunc(x),
            Rounding::Down => b.floor(x),
            Rounding::Up => b.ceil(x),
            Rounding::NearestAway => b.intrinsic("llvm.round", &[x.ty()], &[x]),
        }
    }

    /// Clamped. The hardware's answer for NaN depends on the widths.
    fn float_to_int(
        &self,
        signed: bool,
        round: Rounding,
        ftz: bool,
        from: IrType,
        to: IrType,
        x: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let x = self.widen(from, if ftz { self.flush(from, x) } else { x });
        if let Some(value) = self.converted_at_once(signed, round, to, x) {
            return value;
        }
        let whole = if round == Rounding::Zero { x } else { self.integral(round, x) };
        let target = value_type(b.context(), to).shaped_like(x.ty());
        let clamped = self.clamped_to_int(signed, whole, target);
        if to.bits() != 64 && from != IrType::F64 {
            return clamped;
        }
        let nan = b.fcmp(FloatPredicate::Uno, x, x);
        b.select(nan, self.sign_mask(target), clamped)
    }

    /// By the processor's conversions of vectors, which round in passing. Of what does not fit they make the least signed number, or the largest
    /// unsigned one: right for negative numbers and for NaNs of f64 or as 64 bits, or for large ones. The others are mended.
    fn converted_at_once(
        &self,
        signed: bool,
        round: Rounding,
        to: IrType,
        x: Value<'c>,
    ) -> Option<Value<'c>> {
        let b = self.b;
        if !x.ty().is_vector() || round == Rounding::NearestAway {
            return None;
        }
        let is_double = x.ty().scalar_bits() == 64;
        let ordered = |x| b.fcmp(FloatPredicate::Ord, x, x);
        let ones = |x: Value<'c>| x.ty().to_mask().all_ones();
        let whole = match (self.cpu.vector_bits(), to, signed) {
            (512, IrType::I32, true) if !is_double => self.masked_to_int("ps2dq", round, to, x, ordered(x)),
            (512, IrType::I32, false) if !is_double => {
                let is_positive = b.fcmp(FloatPredicate::Oge, x, x.ty().zero());
                return Some(self.masked_to_int("ps2udq", round, to, x, is_positive));
            }
            // A double may only be beyond the range once it is rounded.
            (512, IrType::I32, true) => {
                let x = if round == Rounding::Zero { x } else { self.integral(round, x) };
                return Some(self.with_most(
                    to,
                    x,
                    self.masked_to_int("pd2dq", Rounding::Zero, to, x, ones(x)),
                ));
            }
            (512, IrType::I64, true) => {
                let name = if is_double { "pd2qq" } else { "ps2qq" };
                self.masked_to_int(name, round, to, x, ones(x))
            }
            (256, IrType::I32, true) if !is_double => {
                let (name, x) = match round {
                    Rounding::Nearest => ("llvm.x86.avx.cvt.ps2dq.256", x),
                    Rounding::Zero => ("llvm.x86.avx.cvtt.ps2dq.256", x),
                    _ => ("llvm.x86.avx.cvtt.ps2dq.256", self.integral(round, x)),
                };
                let whole = self.in_chunks(8, &[x], |chunk| b.intrinsic(name, &[], chunk));
                b.select(ordered(x), whole, whole.ty().zero())
            }
            _ => return None,
        };
        Some(self.with_most(to, x, whole))
    }

    /// The largest signed number where floats are beyond it.
    fn with_most(&self, to: IrType, x: Value<'c>, whole: Value<'c>) -> Value<'c> {
        let limit = x.ty().float_const(2f64.powi(to.bits() as i32 - 1));
        let most = whole.ty().int_const(u64::MAX >> (65 - to.bits()));
        self.b.select(self.b.fcmp(FloatPredicate::Oge, x, limit), most, whole)
    }

    /// AVX-512's conversion to integers in a direction; 0 where the mask is not set.
    fn masked_to_int(
        &self,
        name: &str,
        round: Rounding,
        to: IrType,
        x: Value<'c>,
        mask: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let lanes = 512 / to.bits().max(x.ty().scalar_bits());
        let truncates = if round == Rounding::Zero { "t" } else { "" };
        let name = format!("llvm.x86.avx512.mask.cvt{truncates}{name}.512");
        let int = value_type(b.context(), to).vector(lanes);
        let control = match round {
            Rounding::Zero => CURRENT_ROUNDING,
            _ => rounding_control(round),
        };
        self.in_chunks(lanes, &[x, mask], |chunk| {
            let operands =
                [chunk[0], int.zero(), b.mask_to_int(chunk[1]), b.context().int(32).int_const(control)];
            b.intrinsic(&name, &[], &operands)
        })
    }

    /// Towards zero, clamped to the target's range; NaN is 0.
    fn clamped_to_int(&self, signed: bool, x: Value<'c>, target: Type<'c>) -> Value<'c> {
        let b = self.b;
        if !x.ty().is_vector() {
            let name = if signed { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
            return b.intrinsic(name, &[target, x.ty()], &[x]);
        }
        // LLVM's own are for one lane after another.
        let bits = target.scalar_bits() - u32::from(signed);
        let limit = x.ty().float_const(2f64.powi(bits as i32));
        let low = if signed {
            let least = x.ty().float_const(-(2f64.powi(bits as i32)));
            b.select(b.fcmp(FloatPredicate::Olt, x, least), least, x)
        } else {
            b.select(b.fcmp(FloatPredicate::Ogt, x, x.ty().zero()), x, x.ty().zero())
        };
        let fits = b.fcmp(FloatPredicate::Olt, low, limit);
        let safe = b.select(fits, low, x.ty().zero());
        let wide = if target.scalar_bits() < 32 { b.context().int(32) } else { target.scalar() };
        let whole = if signed { b.fptosi(safe, wide) } else { b.fptoui(safe, wide) };
        let whole = b.int_resize(whole, target, false);
        let most = target.int_const(u64::MAX >> (64 - bits));
        b.select(b.fcmp(FloatPredicate::Oge, low, limit), most, whole)
    }

    fn int_to_float(
        &self,
        op: Convert,
        signed: bool,
        mode: FloatMode,
        from: IrType,
        to: IrType,
        x: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let (float, double) = (b.context().float(), b.context().double());
        let convert = |x, ty| if signed { b.sitofp(x, ty) } else { b.uitofp(x, ty) };
        let narrow_source = from.bits() <= 32;
        let result = match to {
            IrType::F64 if mode.round == Rounding::Nearest || narrow_source => convert(x, double),
            IrType::F32 if mode.round == Rounding::Nearest || from.bits() <= 16 => convert(x, float),
            IrType::F32 if narrow_source => self.narrow_directed(mode.round, convert(x, double)),
            IrType::F16 | IrType::BF16 if narrow_source => {
                self.narrow(to, mode.round, self.narrow_to_odd(convert(x, double)))
            }
            _ => return self.soft(Op::Convert(op), from, to, &[x]),
        };
        if mode.sat { self.saturate(to, result) } else { result }
    }

    fn float_to_float(
        &self,
        op: Convert,
        mode: FloatMode,
        from: IrType,
        to: IrType,
        x: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        // Subnormals of f32 are flushed, as source or as result, but not on the way to f16; a half's are numbers like others.
        let flush_source = mode.ftz && from == IrType::F32 && to != IrType::F16;
        let x = if flush_source { self.flush(from, x) } else { x };
        let flush_result = mode.ftz && to == IrType::F32;
        let result = match (from, to) {
            _ if from == to => x,
            (IrType::F32, IrType::F64) => {
                let wide = b.fpext(x, b.context().double());
                // Flushing goes through an operation of f32, whose NaN is the canonical one.
                let nan = wide.ty().float_bits(0x7fff_ffff_e000_0000);
                if mode.ftz { b.select(b.fcmp(FloatPredicate::Uno, wide, wide), nan, wide) } else { wide }
            }
            (IrType::F16 | IrType::BF16, IrType::F32) => self.widen(from, x),
            (IrType::F16 | IrType::BF16, IrType::F64) => b.fpext(self.widen(from, x), b.context().double()),
            (IrType::F64, IrType::F32) if mode.round == Rounding::NearestAway => {
                return self.soft(Op::Convert(op), from, to, &[x]);
            }
            (IrType::F64, IrType::F32) => {
                let narrow = match mode.round {
                    Rounding::Nearest => b.fptrunc(x, b.context().float()),
                    round => self.narrow_directed(round, x),
                };
                if flush_result { self.flush_narrowed(mode.round, x, narrow) } else { narrow }
            }
            (IrType::F64, _) => {
                let narrow = self.narrow(to, mode.round, self.narrow_to_odd(x));
                b.select(b.fcmp(FloatPredicate::Uno, x, x), self.narrow_nan(to, x), narrow)
            }
            (IrType::F32, _) => self.narrow(to, mode.round, x),
            _ => self.narrow(to, mode.round, self.widen(from, x)),
        };
        let narrow_source = matches!(from, IrType::F16 | IrType::BF16);
        let result =
            if flush_result && (narrow_source || from == to) { self.flush(to, result) } else { result };
        if mode.sat { self.saturate(to, result) } else { result }
    }

    /// A NaN of f64 as one of a half, with its sign and the upper part of its payload.
    fn narrow_nan(&self, to: IrType, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        let format = Format::of(to);
        let int = b.context().int(64).shaped_like(x.ty());
        let bits = b.bitcast(x, int);
        let cut = Format::of(IrType::F64).precision - format.precision;
        let payload = b.and(b.lshr(bits, int.int_const(cut.into())), int.int_const(format.fraction_mask()));
        let sign = b.and(b.lshr(bits, int.int_const(48)), int.int_const(format.sign()));
        let nan = b.or(b.or(payload, sign), int.int_const(format.infinity() | format.quiet()));
        b.int_resize(nan, value_type(b.context(), to).shaped_like(x.ty()), false)
    }

    /// f64 to f32 in a direction.
    fn narrow_directed(&self, round: Rounding, wide: Value<'c>) -> Value<'c> {
        let b = self.b;
        let narrow = b.fptrunc(wide, b.context().float());
        let error = b.fsub(wide, b.fpext(narrow, b.context().double()));
        self.step(round, narrow, error)
    }

    /// Zero instead of `narrow` where the f64 `wide`, rounded to 24 bits with an unbounded exponent, is below the smallest
    /// normal f32.
    fn flush_narrowed(&self, round: Rounding, wide: Value<'c>, narrow: Value<'c>) -> Value<'c> {
        let b = self.b;
        let magnitude = b.fabs(wide);
        let min_normal = (-126f64).exp2();
        // Below the smallest normal number 24 bits have the unit 2^-150.
        let below = |limit: f64| b.fcmp(FloatPredicate::Olt, magnitude, magnitude.ty().float_const(limit));
        let rounds_up =
            |limit: f64| b.fcmp(FloatPredicate::Ole, magnitude, magnitude.ty().float_const(limit));
        let positive = b.fcmp(FloatPredicate::Ogt, wide, wide.ty().zero());
        let outwards = || rounds_up(min_normal - (-150f64).exp2());
        let tiny = match round {
            Rounding::Nearest | Rounding::NearestAway => below(min_normal - (-151f64).exp2()),
            Rounding::Zero => below(min_normal),
            Rounding::Up => b.select(positive, outwards(), below(min_normal)),
            Rounding::Down => b.select(positive, below(min_normal), outwards()),
        };
        b.select(tiny, b.copysign(narrow.ty().zero(), narrow), narrow)
    }
}
