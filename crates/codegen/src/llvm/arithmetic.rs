//! Integer and floating-point arithmetic, comparisons, conversions and selection, on scalars and vectors alike.

use super::UNNAMED;
use super::builder::Builder;
use super::types::Type;
use super::value::Value;
use llvm_sys::core;
use llvm_sys::prelude::LLVMValueRef;
use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate};

/// Relation of two integers or pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the usual relations; U is unsigned, S signed")]
pub enum IntPredicate {
    Eq,
    Ne,
    Ugt,
    Uge,
    Ult,
    Ule,
    Sgt,
    Sge,
    Slt,
    Sle,
}

/// Relation of two floating-point numbers. O: false if either is NaN; U: true if either is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the usual relations")]
pub enum FloatPredicate {
    Oeq,
    Ogt,
    Oge,
    Olt,
    Ole,
    One,
    /// Neither is NaN.
    Ord,
    /// Either is NaN.
    Uno,
    Ueq,
    Ugt,
    Uge,
    Ult,
    Ule,
    Une,
}

macro_rules! int_operations {
    ($($(#[$doc:meta])* $name:ident = $opcode:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
            self.int_binary(LLVMOpcode::$opcode, a, b)
        }
    )*};
}

macro_rules! float_operations {
    ($($(#[$doc:meta])* $name:ident = $opcode:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
            self.float_binary(LLVMOpcode::$opcode, a, b)
        }
    )*};
}

macro_rules! unary_intrinsics {
    ($($(#[$doc:meta])* $name:ident = $intrinsic:literal;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self, a: Value<'c>) -> Value<'c> {
            self.intrinsic($intrinsic, &[a.ty()], &[a])
        }
    )*};
}

macro_rules! binary_intrinsics {
    ($($(#[$doc:meta])* $name:ident = $intrinsic:literal;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
            self.intrinsic($intrinsic, &[a.ty()], &[a, b])
        }
    )*};
}

impl<'c> Builder<'c> {
    int_operations! {
        /// Sum, modulo 2^width.
        add = LLVMAdd;
        /// Difference, modulo 2^width.
        sub = LLVMSub;
        /// Product, modulo 2^width.
        mul = LLVMMul;
        /// Unsigned quotient. Division by 0 traps on x86 or is undefined: guard the divisor.
        udiv = LLVMUDiv;
        /// Signed quotient. Undefined for a divisor of 0 and for the minimum divided by -1: guard both.
        sdiv = LLVMSDiv;
        /// Unsigned remainder; as [`Builder::udiv`].
        urem = LLVMURem;
        /// Signed remainder; as [`Builder::sdiv`].
        srem = LLVMSRem;
        /// Left shift; poison for an amount of the width or more.
        shl = LLVMShl;
        /// Logical right shift; poison for an amount of the width or more.
        lshr = LLVMLShr;
        /// Arithmetic right shift; poison for an amount of the width or more.
        ashr = LLVMAShr;
        /// Bitwise and.
        and = LLVMAnd;
        /// Bitwise or.
        or = LLVMOr;
        /// Bitwise exclusive or.
        xor = LLVMXor;
    }

    float_operations! {
        /// Sum, rounded to nearest even. Never contracted into another operation.
        fadd = LLVMFAdd;
        /// Difference, rounded to nearest even.
        fsub = LLVMFSub;
        /// Product, rounded to nearest even.
        fmul = LLVMFMul;
        /// Quotient, rounded to nearest even.
        fdiv = LLVMFDiv;
    }

    unary_intrinsics! {
        /// Magnitude: clears the sign bit.
        fabs = "llvm.fabs";
        /// Square root, rounded to nearest even.
        sqrt = "llvm.sqrt";
        /// The next integer towards minus infinity.
        floor = "llvm.floor";
        /// The next integer towards plus infinity.
        ceil = "llvm.ceil";
        /// The next integer towards zero.
        ftrunc = "llvm.trunc";
        /// The nearest integer, ties to even.
        roundeven = "llvm.roundeven";
        /// Number of set bits.
        ctpop = "llvm.ctpop";
        /// The bits in reverse order.
        bitreverse = "llvm.bitreverse";
        /// The bytes in reverse order.
        bswap = "llvm.bswap";
    }

    binary_intrinsics! {
        /// Signed minimum.
        smin = "llvm.smin";
        /// Signed maximum.
        smax = "llvm.smax";
        /// Unsigned minimum.
        umin = "llvm.umin";
        /// Unsigned maximum.
        umax = "llvm.umax";
        /// Unsigned saturating sum.
        uadd_sat = "llvm.uadd.sat";
        /// Unsigned saturating difference.
        usub_sat = "llvm.usub.sat";
        /// Signed saturating sum.
        sadd_sat = "llvm.sadd.sat";
        /// Signed saturating difference.
        ssub_sat = "llvm.ssub.sat";
        /// The magnitude of the first with the sign of the second.
        copysign = "llvm.copysign";
    }

    /// `a * b + c`, rounded once. A call of libm's `fma` per lane where the CPU has no such instruction.
    #[track_caller]
    pub fn fma(&self, a: Value<'c>, b: Value<'c>, c: Value<'c>) -> Value<'c> {
        self.intrinsic("llvm.fma", &[a.ty()], &[a, b, c])
    }

    /// Number of leading zero bits; the width for 0.
    #[track_caller]
    pub fn ctlz(&self, a: Value<'c>) -> Value<'c> {
        self.intrinsic("llvm.ctlz", &[a.ty()], &[a, self.context().int(1).zero()])
    }

    /// Number of trailing zero bits; the width for 0.
    #[track_caller]
    pub fn cttz(&self, a: Value<'c>) -> Value<'c> {
        self.intrinsic("llvm.cttz", &[a.ty()], &[a, self.context().int(1).zero()])
    }

    /// High bits of the double-width value `high:low` shifted left by `amount` modulo the width.
    #[track_caller]
    pub fn fshl(&self, high: Value<'c>, low: Value<'c>, amount: Value<'c>) -> Value<'c> {
        self.intrinsic("llvm.fshl", &[high.ty()], &[high, low, amount])
    }

    /// Low bits of the double-width value `high:low` shifted right by `amount` modulo the width.
    #[track_caller]
    pub fn fshr(&self, high: Value<'c>, low: Value<'c>, amount: Value<'c>) -> Value<'c> {
        self.intrinsic("llvm.fshr", &[high.ty()], &[high, low, amount])
    }

    /// Sum that does not wrap, as signed (`nsw`), unsigned (`nuw`) or both: poison if it does.
    #[track_caller]
    pub fn add_nowrap(&self, a: Value<'c>, b: Value<'c>, nsw: bool, nuw: bool) -> Value<'c> {
        nowrap(self.add(a, b), nsw, nuw)
    }

    /// Product that does not wrap; as [`Builder::add_nowrap`].
    #[track_caller]
    pub fn mul_nowrap(&self, a: Value<'c>, b: Value<'c>, nsw: bool, nuw: bool) -> Value<'c> {
        nowrap(self.mul(a, b), nsw, nuw)
    }

    /// `0 - a`.
    #[track_caller]
    pub fn neg(&self, a: Value<'c>) -> Value<'c> {
        self.sub(a.ty().zero(), a)
    }

    /// All bits inverted.
    #[track_caller]
    pub fn not(&self, a: Value<'c>) -> Value<'c> {
        self.xor(a, a.ty().all_ones())
    }

    /// The sign bit inverted, of a NaN too.
    #[track_caller]
    pub fn fneg(&self, a: Value<'c>) -> Value<'c> {
        self.ready();
        assert!(a.ty().is_float(), "{} is not a floating-point type", a.ty());
        // SAFETY: positioned; operand checked.
        self.value(unsafe { core::LLVMBuildFNeg(self.raw(), a.raw(), UNNAMED) })
    }

    /// Lets LLVM fuse this operation with a neighbour that is marked too.
    pub fn allow_contraction(&self, value: Value<'c>) -> Value<'c> {
        self.allow(value, llvm_sys::LLVMFastMathAllowContract)
    }

    /// Lets an operation have either zero as its result where that is one.
    pub fn allow_any_zero(&self, value: Value<'c>) -> Value<'c> {
        self.allow(value, llvm_sys::LLVMFastMathNoSignedZeros)
    }

    fn allow(&self, value: Value<'c>, flags: llvm_sys::LLVMFastMathFlags) -> Value<'c> {
        if value.is_instruction() {
            // SAFETY: flags are set only where LLVM says that the instruction takes them.
            unsafe {
                if core::LLVMCanValueUseFastMathFlags(value.raw()) != 0 {
                    core::LLVMSetFastMathFlags(value.raw(), flags);
                }
            }
        }
        value
    }

    /// Compares integers or pointers.
    #[track_caller]
    pub fn icmp(&self, predicate: IntPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        use LLVMIntPredicate::*;
        self.ready();
        assert!(a.ty().is_int() || a.ty().is_ptr(), "icmp of {}", a.ty());
        same_type(a, b);
        let predicate = match predicate {
            IntPredicate::Eq => LLVMIntEQ,
            IntPredicate::Ne => LLVMIntNE,
            IntPredicate::Ugt => LLVMIntUGT,
            IntPredicate::Uge => LLVMIntUGE,
            IntPredicate::Ult => LLVMIntULT,
            IntPredicate::Ule => LLVMIntULE,
            IntPredicate::Sgt => LLVMIntSGT,
            IntPredicate::Sge => LLVMIntSGE,
            IntPredicate::Slt => LLVMIntSLT,
            IntPredicate::Sle => LLVMIntSLE,
        };
        // SAFETY: positioned; operands checked.
        self.value(unsafe { core::LLVMBuildICmp(self.raw(), predicate, a.raw(), b.raw(), UNNAMED) })
    }

    /// Compares floating-point numbers.
    #[track_caller]
    pub fn fcmp(&self, predicate: FloatPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        use LLVMRealPredicate::*;
        self.ready();
        assert!(a.ty().is_float(), "fcmp of {}", a.ty());
        same_type(a, b);
        let predicate = match predicate {
            FloatPredicate::Oeq => LLVMRealOEQ,
            FloatPredicate::Ogt => LLVMRealOGT,
            FloatPredicate::Oge => LLVMRealOGE,
            FloatPredicate::Olt => LLVMRealOLT,
            FloatPredicate::Ole => LLVMRealOLE,
            FloatPredicate::One => LLVMRealONE,
            FloatPredicate::Ord => LLVMRealORD,
            FloatPredicate::Uno => LLVMRealUNO,
            FloatPredicate::Ueq => LLVMRealUEQ,
            FloatPredicate::Ugt => LLVMRealUGT,
            FloatPredicate::Uge => LLVMRealUGE,
            FloatPredicate::Ult => LLVMRealULT,
            FloatPredicate::Ule => LLVMRealULE,
            FloatPredicate::Une => LLVMRealUNE,
        };
        // SAFETY: positioned; operands checked.
        self.value(unsafe { core::LLVMBuildFCmp(self.raw(), predicate, a.raw(), b.raw(), UNNAMED) })
    }

    /// `then` where `condition` holds, else `otherwise`. A scalar condition chooses whole vectors.
    #[track_caller]
    pub fn select(&self, condition: Value<'c>, then: Value<'c>, otherwise: Value<'c>) -> Value<'c> {
        self.ready();
        same_type(then, otherwise);
        let bit = self.context().int(1);
        assert!(
            condition.ty() == bit || condition.ty() == bit.shaped_like(then.ty()),
            "a condition of {} cannot choose between values of {}",
            condition.ty(),
            then.ty()
        );
        // SAFETY: positioned; operands checked.
        self.value(unsafe {
            core::LLVMBuildSelect(self.raw(), condition.raw(), then.raw(), otherwise.raw(), UNNAMED)
        })
    }

    // Conversions. `to` may be a scalar type: the result has the shape of the operand.

    /// Drops high bits.
    #[track_caller]
    pub fn trunc(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_int() && to.is_int() && a.ty().scalar_bits() > to.scalar_bits());
        self.cast(LLVMOpcode::LLVMTrunc, a, to)
    }

    /// Adds zero bits.
    #[track_caller]
    pub fn zext(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_int() && to.is_int() && a.ty().scalar_bits() < to.scalar_bits());
        self.cast(LLVMOpcode::LLVMZExt, a, to)
    }

    /// Adds copies of the sign bit.
    #[track_caller]
    pub fn sext(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_int() && to.is_int() && a.ty().scalar_bits() < to.scalar_bits());
        self.cast(LLVMOpcode::LLVMSExt, a, to)
    }

    /// Makes an integer as wide as `to`, whatever its width: drops bits or adds zeros or sign bits.
    #[track_caller]
    pub fn int_resize(&self, a: Value<'c>, to: Type<'c>, signed: bool) -> Value<'c> {
        use std::cmp::Ordering::*;
        match (a.ty().scalar_bits().cmp(&to.scalar_bits()), signed) {
            (Equal, _) => a,
            (Greater, _) => self.trunc(a, to),
            (Less, true) => self.sext(a, to),
            (Less, false) => self.zext(a, to),
        }
    }

    /// Rounds to a narrower floating-point type, to nearest even.
    #[track_caller]
    pub fn fptrunc(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_float() && to.is_float() && a.ty().scalar_bits() > to.scalar_bits());
        self.cast(LLVMOpcode::LLVMFPTrunc, a, to)
    }

    /// Converts to a wider floating-point type, exactly. A signalling NaN becomes quiet.
    #[track_caller]
    pub fn fpext(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_float() && to.is_float() && a.ty().scalar_bits() < to.scalar_bits());
        self.cast(LLVMOpcode::LLVMFPExt, a, to)
    }

    /// Converts to a signed integer towards zero; poison where it does not fit.
    #[track_caller]
    pub fn fptosi(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_float() && to.is_int());
        self.cast(LLVMOpcode::LLVMFPToSI, a, to)
    }

    /// Converts to an unsigned integer towards zero; poison where it does not fit.
    #[track_caller]
    pub fn fptoui(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_float() && to.is_int());
        self.cast(LLVMOpcode::LLVMFPToUI, a, to)
    }

    /// Converts a signed integer, rounding to nearest even.
    #[track_caller]
    pub fn sitofp(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_int() && to.is_float());
        self.cast(LLVMOpcode::LLVMSIToFP, a, to)
    }

    /// Converts an unsigned integer, rounding to nearest even.
    #[track_caller]
    pub fn uitofp(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_int() && to.is_float());
        self.cast(LLVMOpcode::LLVMUIToFP, a, to)
    }

    /// The address as an integer.
    #[track_caller]
    pub fn ptrtoint(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        assert!(a.ty().is_ptr() && to.is_int());
        self.cast(LLVMOpcode::LLVMPtrToInt, a, to)
    }

    /// The integer as an address.
    #[track_caller]
    pub fn inttoptr(&self, a: Value<'c>) -> Value<'c> {
        assert!(a.ty().is_int());
        self.cast(LLVMOpcode::LLVMIntToPtr, a, self.context().ptr())
    }

    /// The same bits as another type of the same size; the number of lanes may differ, lane 0 in the low bits.
    #[track_caller]
    pub fn bitcast(&self, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        self.ready();
        let size = |ty: Type<'c>| {
            assert!(ty.is_int() || ty.is_float(), "bitcast of {ty}");
            ty.lanes() * ty.scalar_bits()
        };
        assert_eq!(size(a.ty()), size(to), "bitcast of {} to {to}", a.ty());
        if a.ty() == to {
            return a;
        }
        // SAFETY: positioned; equal sizes of types without pointers.
        self.value(unsafe { core::LLVMBuildBitCast(self.raw(), a.raw(), to.raw(), UNNAMED) })
    }

    /// Fixes what a poison value is.
    pub fn freeze(&self, a: Value<'c>) -> Value<'c> {
        self.ready();
        // SAFETY: positioned; value of this context.
        self.value(unsafe { core::LLVMBuildFreeze(self.raw(), a.raw(), UNNAMED) })
    }

    #[track_caller]
    fn int_binary(&self, opcode: LLVMOpcode, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        assert!(a.ty().is_int(), "integer operation on {}", a.ty());
        self.binary(opcode, a, b)
    }

    #[track_caller]
    fn float_binary(&self, opcode: LLVMOpcode, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        assert!(a.ty().is_float(), "floating-point operation on {}", a.ty());
        self.binary(opcode, a, b)
    }

    #[track_caller]
    fn binary(&self, opcode: LLVMOpcode, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.ready();
        same_type(a, b);
        // SAFETY: positioned; operands of one type that the operation takes.
        self.value(unsafe { core::LLVMBuildBinOp(self.raw(), opcode, a.raw(), b.raw(), UNNAMED) })
    }

    #[track_caller]
    fn cast(&self, opcode: LLVMOpcode, a: Value<'c>, to: Type<'c>) -> Value<'c> {
        self.ready();
        let to = to.shaped_like(a.ty());
        // SAFETY: positioned; callers have checked that the cast exists between these types.
        self.value(unsafe { core::LLVMBuildCast(self.raw(), opcode, a.raw(), to.raw(), UNNAMED) })
    }
}

#[track_caller]
fn same_type(a: Value<'_>, b: Value<'_>) {
    assert!(a.ty() == b.ty(), "operands of {} and {}", a.ty(), b.ty());
}

fn nowrap<'c>(value: Value<'c>, nsw: bool, nuw: bool) -> Value<'c> {
    let raw: LLVMValueRef = value.raw();
    if value.is_instruction() {
        // SAFETY: the add or multiplication just built, unless it was folded, which was excluded (folding yields a
        // constant or an operand; an operand is not marked since it is not a fresh binary operation).
        unsafe {
            if !core::LLVMIsABinaryOperator(raw).is_null() {
                core::LLVMSetNSW(raw, nsw.into());
                core::LLVMSetNUW(raw, nuw.into());
            }
        }
    }
    value
}
