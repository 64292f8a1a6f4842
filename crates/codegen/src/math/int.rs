//! Integer operations.

use super::Lowering;
use crate::llvm::{IntPredicate, Value};
use simt_ir::{IntBinary, IntCmp, IntUnary, Shift};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn int_binary(&self, op: IntBinary, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let b = self.b;
        match op {
            IntBinary::Add => b.add(x, y),
            IntBinary::Sub => b.sub(x, y),
            IntBinary::Mul => b.mul(x, y),
            IntBinary::MulHiS => self.mul_high(true, x, y),
            IntBinary::MulHiU => self.mul_high(false, x, y),
            IntBinary::DivS => self.divide(true, x, y).0,
            IntBinary::DivU => self.divide(false, x, y).0,
            IntBinary::RemS => self.divide(true, x, y).1,
            IntBinary::RemU => self.divide(false, x, y).1,
            IntBinary::And => b.and(x, y),
            IntBinary::Or => b.or(x, y),
            IntBinary::Xor => b.xor(x, y),
            IntBinary::MinS => b.smin(x, y),
            IntBinary::MinU => b.umin(x, y),
            IntBinary::MaxS => b.smax(x, y),
            IntBinary::MaxU => b.umax(x, y),
            IntBinary::AddSatS => b.sadd_sat(x, y),
            IntBinary::SubSatS => b.ssub_sat(x, y),
        }
    }

    pub(super) fn int_unary(&self, op: IntUnary, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        let i32 = b.context().int(32);
        match op {
            IntUnary::Not => b.not(x),
            IntUnary::Neg => b.neg(x),
            IntUnary::Abs => b.intrinsic("llvm.abs", &[x.ty()], &[x, b.context().int(1).zero()]),
            IntUnary::BitReverse => b.bitreverse(x),
            IntUnary::LeadingZeros => b.int_resize(b.ctlz(x), i32, false),
            IntUnary::PopCount => b.int_resize(b.ctpop(x), i32, false),
        }
    }

    pub(super) fn shift(&self, op: Shift, x: Value<'c>, amount: Value<'c>) -> Value<'c> {
        let b = self.b;
        let width = amount.ty().int_const(x.ty().scalar_bits().into());
        let fits = b.icmp(IntPredicate::Ult, amount, width);
        match op {
            // The shift by too much is poison, and the select does not choose it. LLVM knows this pattern.
            Shift::Left | Shift::RightU => {
                let amount = b.int_resize(amount, x.ty().scalar(), false);
                let shifted = if op == Shift::Left { b.shl(x, amount) } else { b.lshr(x, amount) };
                b.select(fits, shifted, x.ty().zero())
            }
            Shift::RightS => {
                let last = amount.ty().int_const(u64::from(x.ty().scalar_bits()) - 1);
                b.ashr(x, b.int_resize(b.umin(amount, last), x.ty().scalar(), false))
            }
        }
    }

    pub(super) fn funnel_shift(
        &self,
        left: bool,
        wrap: bool,
        low: Value<'c>,
        high: Value<'c>,
        amount: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let shifted = if left { b.fshl(high, low, amount) } else { b.fshr(high, low, amount) };
        if wrap {
            return shifted;
        }
        let beyond = b.icmp(IntPredicate::Uge, amount, amount.ty().int_const(32));
        b.select(beyond, if left { low } else { high }, shifted)
    }

    pub(super) fn prmt(&self, x: Value<'c>, y: Value<'c>, selector: Value<'c>) -> Value<'c> {
        match selector.as_int() {
            Some(selector) => self.prmt_constant(x, y, selector),
            None => self.prmt_variable(x, y, selector),
        }
    }

    fn prmt_constant(&self, x: Value<'c>, y: Value<'c>, selector: u64) -> Value<'c> {
        let b = self.b;
        let lanes = x.ty().lanes();
        let bytes = b.context().int(8).vector(4 * lanes);
        let (low, high) = (b.bitcast(x, bytes), b.bitcast(y, bytes));
        let nibble = |byte: u32| (selector >> (4 * (byte % 4)) & 0xf) as u32;
        let source: Vec<i32> = (0..4 * lanes)
            .map(|byte| {
                let at = nibble(byte) & 7;
                (byte / 4 * 4 + at % 4 + if at < 4 { 0 } else { 4 * lanes }) as i32
            })
            .collect();
        let mut chosen = b.shuffle(low, high, &source);
        if (0..4).any(|byte| nibble(byte) & 8 != 0) {
            let signs = b.ashr(chosen, bytes.int_const(7));
            let from: Vec<i32> = (0..4 * lanes)
                .map(|byte| (byte + if nibble(byte) & 8 == 0 { 0 } else { 4 * lanes }) as i32)
                .collect();
            chosen = b.shuffle(chosen, signs, &from);
        }
        b.bitcast(chosen, x.ty())
    }

    fn prmt_variable(&self, x: Value<'c>, y: Value<'c>, selector: Value<'c>) -> Value<'c> {
        let b = self.b;
        let (i32, i64) = (x.ty(), b.context().int(64));
        let both = b.or(b.zext(x, i64), b.shl(b.zext(y, i64), i64.shaped_like(i32).int_const(32)));
        let mut result = i32.zero();
        for byte in 0..4 {
            let nibble = b.lshr(selector, i32.int_const(4 * byte));
            let at = b.shl(b.and(nibble, i32.int_const(7)), i32.int_const(3));
            let chosen = b.trunc(b.lshr(both, b.zext(at, i64)), b.context().int(8));
            let sign = b.ashr(chosen, chosen.ty().int_const(7));
            let replicate = b.icmp(IntPredicate::Ne, b.and(nibble, i32.int_const(8)), i32.zero());
            let chosen = b.zext(b.select(replicate, sign, chosen), i32);
            result = b.or(result, b.shl(chosen, i32.int_const(8 * byte)));
        }
        result
    }

    pub(super) fn int_cmp(&self, cmp: IntCmp, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let predicate = match cmp {
            IntCmp::Eq => IntPredicate::Eq,
            IntCmp::Ne => IntPredicate::Ne,
            IntCmp::LtS => IntPredicate::Slt,
            IntCmp::LeS => IntPredicate::Sle,
            IntCmp::GtS => IntPredicate::Sgt,
            IntCmp::GeS => IntPredicate::Sge,
            IntCmp::LtU => IntPredicate::Ult,
            IntCmp::LeU => IntPredicate::Ule,
            IntCmp::GtU => IntPredicate::Ugt,
            IntCmp::GeU => IntPredicate::Uge,
        };
        self.b.icmp(predicate, x, y)
    }

    fn mul_high(&self, signed: bool, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let b = self.b;
        let bits = x.ty().scalar_bits();
        if x.ty().is_vector() && bits == 32 && x.ty().lanes().is_multiple_of(2) {
            return self.mul_high_in_pairs(signed, x, y);
        }
        if x.ty().is_vector() && bits == 64 {
            return self.mul_high_by_halves(signed, x, y);
        }
        let wide = b.context().int(2 * bits);
        let extend = |value| b.int_resize(value, wide, signed);
        let product = b.mul(extend(x), extend(y));
        b.trunc(b.lshr(product, product.ty().int_const(bits.into())), x.ty())
    }

    /// Processors multiply every second element of 32 bits. Halves of registers, widened, take them more steps.
    fn mul_high_in_pairs(&self, signed: bool, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let b = self.b;
        let (ty, lanes) = (x.ty(), x.ty().lanes() as i32);
        let pairs = b.context().int(64).vector(ty.lanes() / 2);
        let half = pairs.int_const(32);
        let upper = |pair: Value<'c>| if signed { b.ashr(pair, half) } else { b.lshr(pair, half) };
        let (x, y) = (b.bitcast(x, pairs), b.bitcast(y, pairs));
        let even = b.mul(upper(b.shl(x, half)), upper(b.shl(y, half)));
        let odd = b.mul(upper(x), upper(y));
        let order: Vec<i32> =
            (0..lanes).map(|lane| if lane % 2 == 0 { lane + 1 } else { lanes + lane }).collect();
        b.shuffle(b.bitcast(even, ty), b.bitcast(odd, ty), &order)
    }

    /// Elements of 64 bits from products of their halves: LLVM would take them out one by one.
    fn mul_high_by_halves(&self, signed: bool, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let b = self.b;
        let ty = x.ty();
        let lower = |value: Value<'c>| b.and(value, ty.int_const(u32::MAX.into()));
        let upper = |value: Value<'c>| b.lshr(value, ty.int_const(32));
        let [x0, y0, x1, y1] = [lower(x), lower(y), upper(x), upper(y)];
        // None of these sums is over 64 bits.
        let middle = b.add(b.mul(x1, y0), upper(b.mul(x0, y0)));
        let other = b.add(b.mul(x0, y1), lower(middle));
        let product = b.add(b.add(b.mul(x1, y1), upper(middle)), upper(other));
        if !signed {
            return product;
        }
        let if_negative = |sign: Value<'c>, value| b.and(b.ashr(sign, ty.int_const(63)), value);
        b.sub(b.sub(product, if_negative(x, y)), if_negative(y, x))
    }

    /// A quotient or remainder, as `op` says, of 32 bits in each lane by what is the same for all.
    pub fn divide_by_same(&self, op: IntBinary, x: Value<'c>, divisor: Value<'c>) -> Value<'c> {
        let signed = matches!(op, IntBinary::DivS | IntBinary::RemS);
        let all = self.b.splat(divisor, x.ty().lanes());
        let divisor = self.safe_divisor(signed, divisor);
        let (quotient, remainder) =
            self.divide_with(signed, x, all, |_| self.divide_by_reciprocal(signed, x, divisor));
        if matches!(op, IntBinary::DivS | IntBinary::DivU) { quotient } else { remainder }
    }

    fn divide(&self, signed: bool, x: Value<'c>, y: Value<'c>) -> (Value<'c>, Value<'c>) {
        let b = self.b;
        let ty = x.ty();
        let in_float = ty.is_vector() && ty.scalar_bits() <= 32 && y.as_int().is_none();
        self.divide_with(signed, x, y, |divisor| match (in_float, signed) {
            (true, _) => self.divide_in_float(signed, x, divisor),
            (false, true) => b.sdiv(x, divisor),
            (false, false) => b.udiv(x, divisor),
        })
    }

    /// A divisor by which nothing traps: 1 in place of 0 and of -1.
    fn safe_divisor(&self, signed: bool, y: Value<'c>) -> Value<'c> {
        let b = self.b;
        let ty = y.ty();
        let by_zero = b.icmp(IntPredicate::Eq, y, ty.zero());
        // Dividing by -1 is negation, which wraps where the instruction would trap.
        let by_minus_one = b.icmp(IntPredicate::Eq, y, ty.all_ones());
        let unsafe_divisor = if signed { b.or(by_zero, by_minus_one) } else { by_zero };
        b.select(unsafe_divisor, ty.int_const(1), y)
    }

    /// Quotient and remainder as the hardware has them: all ones by zero, MIN / -1 = MIN, MIN % -1 = 0, and elsewhere what `quotient` says of a
    /// [safe divisor](Self::safe_divisor). Unused halves are dead code.
    fn divide_with(
        &self,
        signed: bool,
        x: Value<'c>,
        y: Value<'c>,
        quotient: impl FnOnce(Value<'c>) -> Value<'c>,
    ) -> (Value<'c>, Value<'c>) {
        let b = self.b;
        let ty = x.ty();
        let by_zero = b.icmp(IntPredicate::Eq, y, ty.zero());
        let by_minus_one = b.icmp(IntPredicate::Eq, y, ty.all_ones());
        let divisor = self.safe_divisor(signed, y);
        let mut quotient = quotient(divisor);
        let mut remainder = b.sub(x, b.mul(quotient, divisor));
        if signed {
            quotient = b.select(by_minus_one, b.neg(x), quotient);
            remainder = b.select(by_minus_one, ty.zero(), remainder);
        }
        let ones = ty.all_ones();
        (b.select(by_zero, ones, quotient), b.select(by_zero, ones, remainder))
    }

    /// The quotient of 32 bits by what is the same for all lanes, with one division for all of them. A half is added to the magnitude of what is divided, so
    /// that quotients are at least half a divisor's part away from any integer: f64, whose two roundings are off by 2^-20 of such a part, cuts off what it should.
    fn divide_by_reciprocal(&self, signed: bool, x: Value<'c>, divisor: Value<'c>) -> Value<'c> {
        let b = self.b;
        let context = b.context();
        let (double, i32) = (context.double(), context.int(32));
        let to_float =
            |value: Value<'c>| if signed { b.sitofp(value, double) } else { b.uitofp(value, double) };
        let reciprocal = b.splat(b.fdiv(double.float_const(1.0), to_float(divisor)), x.ty().lanes());
        let x = to_float(x);
        let half = x.ty().float_const(0.5);
        let half = if signed { b.copysign(half, x) } else { half };
        let quotient = b.fmul(b.fadd(x, half), reciprocal);
        if signed { b.fptosi(quotient, i32) } else { b.fptoui(quotient, i32) }
    }

    /// The quotient of up to 32 bits by floating-point division, since vectors have no integer division: f64 holds both
    /// operands, and its relative error of 2^-53 is too small to carry a quotient below the next integer over it, for the
    /// distance is at least 1/divisor. For up to 16 bits f32 is enough.
    fn divide_in_float(&self, signed: bool, x: Value<'c>, divisor: Value<'c>) -> Value<'c> {
        let b = self.b;
        let context = b.context();
        let narrow = x.ty().scalar_bits() <= 16;
        let float = if narrow { context.float() } else { context.double() };
        let i32 = context.int(32);
        let to_float = |value: Value<'c>| match signed {
            true => b.sitofp(value, float),
            false => b.uitofp(value, float),
        };
        let quotient = b.fdiv(to_float(x), to_float(divisor));
        let whole = if signed || narrow { b.fptosi(quotient, i32) } else { b.fptoui(quotient, i32) };
        b.int_resize(whole, x.ty().scalar(), signed)
    }
}
