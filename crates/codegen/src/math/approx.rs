//! Approximations: the steps of `simt_ir::approx` as instructions.

use super::{Lowering, value_type};
use crate::llvm::{FloatPredicate, IntPredicate, Type, Value};
use simt_ir::approx::{Steps, f32_steps, scale_in_two_steps};
use simt_ir::{Approx, FloatMode, Rounding};

type IrType = simt_ir::Type;

impl<'c> Lowering<'_, 'c> {
    pub(super) fn approx(&self, func: Approx, ftz: bool, ty: IrType, args: &[Value<'c>]) -> Value<'c> {
        let args: Vec<_> = args.iter().map(|&arg| if ftz { self.flush(ty, arg) } else { arg }).collect();
        let result = match ty {
            IrType::F64 => self.approx_f64(func, &args),
            IrType::F32 => self.approx_f32(func, &args),
            _ => {
                let wide: Vec<_> = args.iter().map(|&arg| self.widen(ty, arg)).collect();
                self.narrow(ty, Rounding::Nearest, self.approx_f32(func, &wide))
            }
        };
        if ftz { self.flush(ty, result) } else { result }
    }

    fn approx_f32(&self, func: Approx, args: &[Value<'c>]) -> Value<'c> {
        let steps = Emit { lowering: self, shape: args[0].ty() };
        f32_steps(&steps, func, args[0], args.get(1).copied().unwrap_or(args[0]))
    }

    fn approx_f64(&self, func: Approx, args: &[Value<'c>]) -> Value<'c> {
        let b = self.b;
        let one = args[0].ty().float_const(1.0);
        match func {
            Approx::Rcp => b.fdiv(one, args[0]),
            Approx::Rsqrt => b.fdiv(one, b.sqrt(args[0])),
            Approx::Sqrt => b.sqrt(args[0]),
            Approx::Div | Approx::DivFull => b.fdiv(args[0], args[1]),
            // PTX has these for f32 and narrower only.
            Approx::Ex2 | Approx::Lg2 | Approx::Sin | Approx::Cos | Approx::Tanh => {
                self.constant(IrType::F64, f64::NAN.to_bits(), args[0].ty())
            }
        }
    }
}

/// Emits each step, in the shape of the operands.
struct Emit<'s, 'a, 'c> {
    lowering: &'s Lowering<'a, 'c>,
    shape: Type<'c>,
}

impl<'c> Emit<'_, '_, 'c> {
    fn i32(&self) -> Type<'c> {
        value_type(self.lowering.b.context(), IrType::I32).shaped_like(self.shape)
    }
}

impl<'c> Steps for Emit<'_, '_, 'c> {
    type F = Value<'c>;
    type I = Value<'c>;
    type B = Value<'c>;

    fn float(&self, value: f32) -> Value<'c> {
        self.shape.float_bits(value.to_bits().into())
    }
    fn int(&self, value: u32) -> Value<'c> {
        self.i32().int_const(value.into())
    }
    fn bits(&self, x: Value<'c>) -> Value<'c> {
        self.lowering.bits(x)
    }
    fn of_bits(&self, x: Value<'c>) -> Value<'c> {
        self.lowering.with_bits(x, self.shape)
    }
    fn add(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fadd(a, b)
    }
    fn sub(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fsub(a, b)
    }
    fn mul(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fmul(a, b)
    }
    fn div(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fdiv(a, b)
    }
    fn fma(&self, a: Value<'c>, b: Value<'c>, c: Value<'c>) -> Value<'c> {
        self.lowering.fma(FloatMode::default(), IrType::F32, a, b, c)
    }
    fn sqrt(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.sqrt(a)
    }
    fn to_float(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.sitofp(a, self.shape)
    }
    fn int_add(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.add(a, b)
    }
    fn int_sub(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.sub(a, b)
    }
    fn and(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.and(a, b)
    }
    fn xor(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.xor(a, b)
    }
    fn shl(&self, a: Value<'c>, by: u32) -> Value<'c> {
        self.lowering.b.shl(a, self.int(by))
    }
    fn sar(&self, a: Value<'c>, by: u32) -> Value<'c> {
        self.lowering.b.ashr(a, self.int(by))
    }
    fn less(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fcmp(FloatPredicate::Olt, a, b)
    }
    fn equal(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fcmp(FloatPredicate::Oeq, a, b)
    }
    fn nonzero(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.icmp(IntPredicate::Ne, a, a.ty().zero())
    }
    fn select(&self, condition: Value<'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.select(condition, a, b)
    }

    fn abs(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.fabs(a)
    }

    /// AVX-512 has an instruction for it.
    fn scale(&self, x: Value<'c>, n: Value<'c>) -> Value<'c> {
        let b = self.lowering.b;
        if self.lowering.cpu.vector_bits() != 512 {
            return scale_in_two_steps(self, x, n);
        }
        let exponent = b.sitofp(n, self.shape);
        self.lowering.in_chunks(16, &[x, exponent], |chunk| {
            let zero = chunk[0].ty().zero();
            let all = b.context().int(16).all_ones();
            const CURRENT_ROUNDING: u64 = 4;
            let rounding = b.context().int(32).int_const(CURRENT_ROUNDING);
            b.intrinsic("llvm.x86.avx512.mask.scalef.ps.512", &[], &[chunk[0], chunk[1], zero, all, rounding])
        })
    }
}
