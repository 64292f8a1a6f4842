//! Arithmetic of f32 and f64 in every rounding.
//!
//! Rounding to nearest is the CPU's own arithmetic. Other directions use AVX-512's embedded rounding, or else, for f32,
//! start from a neighbouring result and step to the right one by the sign of the exact error, which f64 holds. f64 without
//! AVX-512 goes to the host.

use super::Lowering;
use crate::llvm::{FloatPredicate, IntPredicate, Type, Value};
use simt_ir::{FloatBinary, FloatMode, FloatUnary, Op, Rounding};

type IrType = simt_ir::Type;

/// An arithmetic operation with as many operands as it takes.
#[derive(Clone, Copy)]
enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Fma,
    Sqrt,
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn float_binary(
        &self,
        op: FloatBinary,
        mode: FloatMode,
        ty: IrType,
        x: Value<'c>,
        y: Value<'c>,
    ) -> Value<'c> {
        if !x.ty().is_float() {
            return self.half_binary(op, mode, ty, x, y);
        }
        let arithmetic = match op {
            FloatBinary::Add => Arithmetic::Add,
            FloatBinary::Sub => Arithmetic::Sub,
            FloatBinary::Mul => Arithmetic::Mul,
            FloatBinary::Div => Arithmetic::Div,
        };
        self.arithmetic(arithmetic, Op::Float(op, mode), mode, ty, &[x, y])
    }

    pub(super) fn fma(
        &self,
        mode: FloatMode,
        ty: IrType,
        x: Value<'c>,
        y: Value<'c>,
        z: Value<'c>,
    ) -> Value<'c> {
        if !x.ty().is_float() {
            return self.half_fma(mode, ty, x, y, z);
        }
        self.arithmetic(Arithmetic::Fma, Op::Fma(mode), mode, ty, &[x, y, z])
    }

    pub(super) fn float_unary(&self, op: FloatUnary, mode: FloatMode, ty: IrType, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        match op {
            FloatUnary::Neg | FloatUnary::Abs => {
                let x = if mode.ftz { self.flush(ty, x) } else { x };
                let changed = match op {
                    FloatUnary::Abs => self.magnitude(x),
                    _ if x.ty().is_float() => b.fneg(x),
                    _ => b.xor(x, self.sign_mask(x.ty())),
                };
                // The sign of an f64 NaN stays.
                let result = match ty {
                    IrType::F64 => b.select(self.is_nan(ty, x), self.quiet(x), changed),
                    _ => changed,
                };
                if mode.sat { self.saturate(ty, result) } else { result }
            }
            FloatUnary::Sqrt if x.ty().is_float() => {
                self.arithmetic(Arithmetic::Sqrt, Op::FloatUnary(op, mode), mode, ty, &[x])
            }
            FloatUnary::Sqrt => self.soft(Op::FloatUnary(op, mode), ty, ty, &[x]),
            FloatUnary::Rcp => {
                let one = self.constant(ty, simt_ir::soft::Format::of(ty).one(), x.ty());
                self.float_binary(FloatBinary::Div, mode, ty, one, x)
            }
        }
    }

    /// `whole` is the operation, `arithmetic` its kind.
    fn arithmetic(
        &self,
        arithmetic: Arithmetic,
        whole: Op,
        mode: FloatMode,
        ty: IrType,
        args: &[Value<'c>],
    ) -> Value<'c> {
        let directed = mode.round != Rounding::Nearest;
        if directed && ty == IrType::F64 && !self.cpu.has_embedded_rounding() {
            return self.soft(whole, ty, ty, args);
        }
        let flush = mode.ftz && !(self.flushing && ty == IrType::F32);
        let may_vanish = mode.ftz && !flush && self.may_vanish(args);
        let operand = |&arg: &Value<'c>| match arg.is_constant() {
            _ if flush => self.flush(ty, arg),
            false if may_vanish => self.b.intrinsic("llvm.canonicalize", &[arg.ty()], &[arg]),
            _ => arg,
        };
        let args: Vec<_> = args.iter().map(operand).collect();
        let result = self.rounded(arithmetic, mode.round, &args);
        let result =
            if flush { self.flush_result(arithmetic, mode.round, ty, &args, result) } else { result };
        if mode.sat { self.saturate(ty, result) } else { result }
    }

    /// Whether LLVM may take one operand for the result, as of a product with one, and with the operation what would flush it.
    fn may_vanish(&self, args: &[Value<'c>]) -> bool {
        let mut constants = args.iter().filter(|arg| arg.is_constant()).peekable();
        let is_neutral = |arg: &Value<'c>| {
            let bits = |value: f32| self.constant(IrType::F32, value.to_bits().into(), arg.ty());
            [1.0, -1.0, 0.0, -0.0].into_iter().any(|value| *arg == bits(value))
        };
        constants.peek().is_some() && constants.all(is_neutral)
    }

    /// The operation rounded in the direction given.
    fn rounded(&self, op: Arithmetic, round: Rounding, args: &[Value<'c>]) -> Value<'c> {
        if round == Rounding::Nearest {
            self.nearest(op, args)
        } else if self.cpu.has_embedded_rounding() {
            self.embedded(op, round, args)
        } else {
            self.stepped(op, round, args)
        }
    }

    fn nearest(&self, op: Arithmetic, args: &[Value<'c>]) -> Value<'c> {
        let b = self.b;
        match op {
            Arithmetic::Add => b.fadd(args[0], args[1]),
            Arithmetic::Sub => b.fsub(args[0], args[1]),
            Arithmetic::Mul => b.fmul(args[0], args[1]),
            Arithmetic::Div => b.fdiv(args[0], args[1]),
            Arithmetic::Sqrt => b.sqrt(args[0]),
            Arithmetic::Fma if self.cpu.has("fma") || args[0].ty().scalar_bits() == 64 => {
                b.fma(args[0], args[1], args[2])
            }
            Arithmetic::Fma => {
                let (sum, error) = self.fma_parts(args);
                b.fptrunc(self.round_to_odd(sum, error), b.context().float())
            }
        }
    }

    /// A subnormal result becomes zero. Whether it is subnormal is judged by the result rounded with an unbounded exponent,
    /// which is the result of the operation scaled up. Scaling an operand up can only overflow where the result is not tiny:
    /// flushed operands have at most 149 bits below the point.
    fn flush_result(
        &self,
        op: Arithmetic,
        round: Rounding,
        ty: IrType,
        args: &[Value<'c>],
        result: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let llvm = result.ty();
        let scale = llvm.float_const(if ty == IrType::F64 { 512f64.exp2() } else { 64f64.exp2() });
        let limit = if ty == IrType::F64 { (-1022f64 + 512.).exp2() } else { (-126f64 + 64.).exp2() };
        let min_normal = self.constant(ty, simt_ir::soft::Format::of(ty).min_normal(), llvm);
        let (scaled, limit) = match op {
            Arithmetic::Sqrt => return result,
            // Sums of normal numbers that are subnormal are exact.
            Arithmetic::Add | Arithmetic::Sub => (result, min_normal),
            Arithmetic::Mul | Arithmetic::Div => {
                let args = [b.fmul(args[0], scale), args[1]];
                (self.rounded(op, round, &args), llvm.float_const(limit))
            }
            Arithmetic::Fma => {
                let args = [b.fmul(args[0], scale), args[1], b.fmul(args[2], scale)];
                (self.rounded(op, round, &args), llvm.float_const(limit))
            }
        };
        let tiny = b.fcmp(FloatPredicate::Olt, b.fabs(scaled), limit);
        b.select(tiny, b.copysign(llvm.zero(), result), result)
    }

    // AVX-512

    fn embedded(&self, op: Arithmetic, round: Rounding, args: &[Value<'c>]) -> Value<'c> {
        let b = self.b;
        let wide = args[0].ty().scalar_bits() == 64;
        let lanes = if wide { 8 } else { 16 };
        let control = b.context().int(32).int_const(rounding_control(round));
        let name = match (op, wide) {
            (Arithmetic::Add, false) => "llvm.x86.avx512.add.ps.512",
            (Arithmetic::Add, true) => "llvm.x86.avx512.add.pd.512",
            (Arithmetic::Sub, false) => "llvm.x86.avx512.sub.ps.512",
            (Arithmetic::Sub, true) => "llvm.x86.avx512.sub.pd.512",
            (Arithmetic::Mul, false) => "llvm.x86.avx512.mul.ps.512",
            (Arithmetic::Mul, true) => "llvm.x86.avx512.mul.pd.512",
            (Arithmetic::Div, false) => "llvm.x86.avx512.div.ps.512",
            (Arithmetic::Div, true) => "llvm.x86.avx512.div.pd.512",
            (Arithmetic::Fma, false) => "llvm.x86.avx512.vfmadd.ps.512",
            (Arithmetic::Fma, true) => "llvm.x86.avx512.vfmadd.pd.512",
            (Arithmetic::Sqrt, false) => "llvm.x86.avx512.sqrt.ps.512",
            (Arithmetic::Sqrt, true) => "llvm.x86.avx512.sqrt.pd.512",
        };
        self.in_chunks(lanes, args, |chunk| {
            let mut operands = chunk.to_vec();
            operands.push(control);
            b.intrinsic(name, &[], &operands)
        })
    }

    /// f64 to f32.
    fn narrow_embedded(&self, round: Rounding, wide: Value<'c>) -> Value<'c> {
        let b = self.b;
        let (all, control) =
            (b.context().int(8).all_ones(), b.context().int(32).int_const(rounding_control(round)));
        let none = b.context().float().vector(8).zero();
        self.in_chunks(8, &[wide], |chunk| {
            b.intrinsic("llvm.x86.avx512.mask.cvtpd2ps.512", &[], &[chunk[0], none, all, control])
        })
    }

    /// Applies `f`, which takes vectors of exactly `lanes` lanes, to operands of any shape.
    pub(super) fn in_chunks(
        &self,
        lanes: u32,
        args: &[Value<'c>],
        f: impl Fn(&[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let shape = args[0].ty();
        let total = shape.lanes();
        if !shape.is_vector() || total < lanes {
            // Lanes nobody asked for compute on zeros.
            let padded: Vec<_> = args
                .iter()
                .map(|&arg| {
                    if arg.ty().is_vector() {
                        let index: Vec<i32> = (0..lanes).map(|lane| lane.min(total) as i32).collect();
                        b.shuffle(arg, arg.ty().zero(), &index)
                    } else {
                        b.insert(arg.ty().vector(lanes).zero(), arg, 0)
                    }
                })
                .collect();
            let result = f(&padded);
            return if shape.is_vector() { b.subvector(result, 0, total) } else { b.extract(result, 0) };
        }
        assert_eq!(total % lanes, 0, "vectors of a power of two");
        let parts = (0..total / lanes)
            .map(|part| {
                let chunk: Vec<_> = args.iter().map(|&arg| b.subvector(arg, part * lanes, lanes)).collect();
                f(&chunk)
            })
            .collect();
        b.concatenated(parts)
    }

    /// `x * y + z` in a direction, where `x` is from 0 to 1 and the constants `y` and `z` are as [`Self::keeps_exponent`] says. What the nearest
    /// result adds to `z` is exact then, and one more operation tells on which side of the exact result it is.
    pub fn fma_in_binade(
        &self,
        mode: FloatMode,
        x: Value<'c>,
        y: Value<'c>,
        z: Value<'c>,
        negative: bool,
    ) -> Value<'c> {
        let b = self.b;
        let x = if mode.ftz && !self.flushing { self.flush(IrType::F32, x) } else { x };
        let near = b.fma(x, y, z);
        let rest = b.fma(x, y, b.fsub(z, near));
        let below = match mode.round {
            Rounding::Zero => !negative,
            round => round == Rounding::Down,
        };
        let predicate = if below { FloatPredicate::Olt } else { FloatPredicate::Ogt };
        let beyond = b.fcmp(predicate, rest, rest.ty().zero());
        let bits = self.bits(near);
        // Bits count magnitudes; true is -1.
        let step = b.sext(beyond, bits.ty());
        let stepped = if below != negative { b.add(bits, step) } else { b.sub(bits, step) };
        self.with_bits(stepped, near.ty())
    }

    /// Whether [`Self::fma_in_binade`] is for these constants and this CPU: both have one sign and are at least 1, and all results have the
    /// exponent of `z`. `expf` is computed so.
    pub fn keeps_exponent(&self, mode: FloatMode, y: f32, z: f32) -> bool {
        let directed = !matches!(mode.round, Rounding::Nearest | Rounding::NearestAway);
        let exponent = |value: f32| value.to_bits() >> 23;
        let alike = y.is_sign_negative() == z.is_sign_negative() && y.abs() >= 1.0 && z.abs() >= 1.0;
        directed
            && !mode.sat
            && self.cpu.has("fma")
            && !self.cpu.has_embedded_rounding()
            && (y + z).is_finite()
            && alike
            && exponent(y + z) == exponent(z)
    }

    // f32 by way of f64

    /// Directed rounding of f32: the nearest result, moved by one step if the exact result lies on the other side.
    fn stepped(&self, op: Arithmetic, round: Rounding, args: &[Value<'c>]) -> Value<'c> {
        let b = self.b;
        let f32 = args[0].ty();
        let wide = |value: Value<'c>| b.fpext(value, b.context().double());
        let (result, error) = match op {
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Fma => {
                let (sum, rest) = match op {
                    Arithmetic::Add => self.two_sum(wide(args[0]), wide(args[1])),
                    Arithmetic::Sub => self.two_sum(wide(args[0]), b.fneg(wide(args[1]))),
                    _ => self.fma_parts(args),
                };
                let result = b.fptrunc(sum, b.context().float());
                (result, b.fadd(b.fsub(sum, wide(result)), rest))
            }
            Arithmetic::Mul => {
                let result = b.fmul(args[0], args[1]);
                (result, b.fsub(b.fmul(wide(args[0]), wide(args[1])), wide(result)))
            }
            Arithmetic::Div => {
                // The sign of a/b - q is that of (a - q*b) * b, and q*b is exact.
                let result = b.fdiv(args[0], args[1]);
                let rest = b.fsub(wide(args[0]), b.fmul(wide(result), wide(args[1])));
                (result, self.signed_by(rest, wide(args[1])))
            }
            Arithmetic::Sqrt => {
                let result = b.sqrt(args[0]);
                let root = wide(result);
                (result, b.fsub(wide(args[0]), b.fmul(root, root)))
            }
        };
        let stepped = self.step(round, result, error);
        match (op, round) {
            // An exact zero is negative, unless it is the sum of positive zeros.
            (Arithmetic::Add | Arithmetic::Sub | Arithmetic::Fma, Rounding::Down) => {
                let (x, y) = match op {
                    Arithmetic::Add => (args[0], args[1]),
                    Arithmetic::Sub => (args[0], b.fneg(args[1])),
                    _ => (b.fptrunc(b.fmul(wide(args[0]), wide(args[1])), b.context().float()), args[2]),
                };
                let both = b.or(self.bits(x), self.bits(y));
                let positive = b.icmp(IntPredicate::Eq, both, both.ty().zero());
                let zero = b.fcmp(FloatPredicate::Oeq, stepped, f32.zero());
                let negative = b.and(zero, b.not(positive));
                let exact = b.fcmp(FloatPredicate::Oeq, error, error.ty().zero());
                b.select(b.and(negative, exact), f32.float_const(-0.0), stepped)
            }
            _ => stepped,
        }
    }

    /// The neighbour of `result` in the direction of rounding if the exact value, `result + error`, is not `result` and
    /// `result` is on the wrong side of it. A NaN error means exact.
    pub(super) fn step(&self, round: Rounding, result: Value<'c>, error: Value<'c>) -> Value<'c> {
        let b = self.b;
        let bits = self.bits(result);
        let zero = error.ty().zero();
        let negative = b.icmp(IntPredicate::Slt, bits, bits.ty().zero());
        let above = b.fcmp(FloatPredicate::Ogt, error, zero);
        let below = b.fcmp(FloatPredicate::Olt, error, zero);
        // Bits count magnitudes: one more is further from zero.
        let (outwards, inwards) = match round {
            Rounding::Down => (b.and(negative, below), b.and(b.not(negative), below)),
            Rounding::Up => (b.and(b.not(negative), above), b.and(negative, above)),
            Rounding::Zero => {
                let inwards = b.or(b.and(b.not(negative), below), b.and(negative, above));
                (inwards.ty().zero(), inwards)
            }
            Rounding::Nearest | Rounding::NearestAway => unreachable!("not a direction"),
        };
        let stepped = b.sub(b.add(bits, b.zext(outwards, bits.ty())), b.zext(inwards, bits.ty()));
        self.with_bits(stepped, result.ty())
    }

    /// `a` with its sign inverted if `b` is negative.
    fn signed_by(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let one = a.ty().float_const(1.0);
        self.b.fmul(a, self.b.copysign(one, b))
    }

    /// `a*b + c` of f32 as an f64 and what that leaves out.
    fn fma_parts(&self, args: &[Value<'c>]) -> (Value<'c>, Value<'c>) {
        let b = self.b;
        let wide = |value: Value<'c>| b.fpext(value, b.context().double());
        self.two_sum(b.fmul(wide(args[0]), wide(args[1])), wide(args[2]))
    }

    /// The sum and its exact rounding error (Knuth). NaN errors where the sum is not finite.
    pub(super) fn two_sum(&self, x: Value<'c>, y: Value<'c>) -> (Value<'c>, Value<'c>) {
        let b = self.b;
        let sum = b.fadd(x, y);
        let y_part = b.fsub(sum, x);
        let x_part = b.fsub(sum, y_part);
        (sum, b.fadd(b.fsub(x, x_part), b.fsub(y, y_part)))
    }

    /// Rounds `value + error` to odd: if inexact, to the neighbour whose last bit is one. Rounding that once more to a
    /// format with at least two bits less is as good as rounding the exact value.
    pub(super) fn round_to_odd(&self, value: Value<'c>, error: Value<'c>) -> Value<'c> {
        let b = self.b;
        let bits = self.bits(value);
        let int: Type<'c> = bits.ty();
        let inexact = b.fcmp(FloatPredicate::One, error, error.ty().zero());
        let even = b.icmp(IntPredicate::Eq, b.and(bits, int.int_const(1)), int.zero());
        let negative = b.icmp(IntPredicate::Slt, bits, int.zero());
        let error_negative = b.fcmp(FloatPredicate::Olt, error, error.ty().zero());
        let inwards = b.xor(negative, error_negative);
        let step = b.select(inwards, int.all_ones(), int.int_const(1));
        self.with_bits(b.select(b.and(inexact, even), b.add(bits, step), bits), value.ty())
    }

    /// `x * y + z`, rounded to odd, where the product is exact.
    pub(super) fn fma_to_odd(&self, [x, y, z]: [Value<'c>; 3]) -> Value<'c> {
        if self.cpu.has_embedded_rounding() && x.ty().is_vector() {
            let rounded = |round| self.embedded(Arithmetic::Fma, round, &[x, y, z]);
            return self.odd_of(rounded(Rounding::Down), rounded(Rounding::Up));
        }
        let (sum, error) = self.two_sum(self.b.fmul(x, y), z);
        self.round_to_odd(sum, error)
    }

    /// A number rounded to odd, of that rounded down and up: either is exact, or they are neighbours.
    fn odd_of(&self, down: Value<'c>, up: Value<'c>) -> Value<'c> {
        let b = self.b;
        let bits = self.bits(down);
        let is_odd = b.icmp(IntPredicate::Ne, b.and(bits, bits.ty().int_const(1)), bits.ty().zero());
        b.select(is_odd, down, up)
    }

    /// f64 to f32, rounded to odd.
    pub(super) fn narrow_to_odd(&self, wide: Value<'c>) -> Value<'c> {
        let b = self.b;
        if self.cpu.has_embedded_rounding() && wide.ty().is_vector() {
            let rounded = |round| self.narrow_embedded(round, wide);
            return self.odd_of(rounded(Rounding::Down), rounded(Rounding::Up));
        }
        let narrow = b.fptrunc(wide, b.context().float());
        let error = b.fsub(wide, b.fpext(narrow, b.context().double()));
        self.round_to_odd(narrow, error)
    }
}

/// The immediate of embedded rounding: suppress exceptions, and the direction.
pub(super) fn rounding_control(round: Rounding) -> u64 {
    const NO_EXCEPTIONS: u64 = 8;
    NO_EXCEPTIONS
        | match round {
            Rounding::Nearest => 0,
            Rounding::Down => 1,
            Rounding::Up => 2,
            Rounding::Zero => 3,
            Rounding::NearestAway => unreachable!("no instruction rounds ties away"),
        }
}
