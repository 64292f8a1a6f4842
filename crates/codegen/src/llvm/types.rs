//! [`Type`] and the constants of a type.

use super::context::InContext;
use super::count;
use super::value::Value;
use llvm_sys::LLVMTypeKind;
use llvm_sys::core;
use llvm_sys::prelude::LLVMTypeRef;
use std::fmt;
use std::marker::PhantomData;

/// A type. Equal types of one context are equal handles.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type<'c> {
    raw: LLVMTypeRef,
    context: InContext<'c>,
}

impl<'c> Type<'c> {
    /// # Safety
    /// `raw` is a type of a context that lives for `'c`.
    pub(super) unsafe fn from_raw(raw: LLVMTypeRef) -> Self {
        Self { raw, context: PhantomData }
    }

    pub(super) fn raw(self) -> LLVMTypeRef {
        self.raw
    }

    /// The type of functions from `params` to `result`.
    pub fn function(result: Type<'c>, params: &[Type<'c>]) -> Type<'c> {
        let mut params: Vec<_> = params.iter().map(|param| param.raw).collect();
        // SAFETY: all types are of one live context.
        unsafe {
            Self::from_raw(core::LLVMFunctionType(result.raw, params.as_mut_ptr(), count(params.len()), 0))
        }
    }

    /// A vector of `lanes` of this scalar type.
    #[track_caller]
    pub fn vector(self, lanes: u32) -> Type<'c> {
        assert!(!self.is_vector() && lanes > 0, "no vector of {lanes} {self}");
        // SAFETY: the type is of a live context and can be an element.
        unsafe { Self::from_raw(core::LLVMVectorType(self.raw, lanes)) }
    }

    /// An array of `length` of this type.
    pub fn array(self, length: u64) -> Type<'c> {
        // SAFETY: the type is of a live context.
        unsafe { Self::from_raw(core::LLVMArrayType2(self.raw, length)) }
    }

    /// Number of lanes; 1 for a scalar.
    pub fn lanes(self) -> u32 {
        // SAFETY: asked of a vector only.
        if self.is_vector() { unsafe { core::LLVMGetVectorSize(self.raw) } } else { 1 }
    }

    /// The element type of a vector; any other type is its own.
    pub fn scalar(self) -> Type<'c> {
        // SAFETY: asked of a vector only.
        if self.is_vector() { unsafe { Self::from_raw(core::LLVMGetElementType(self.raw)) } } else { self }
    }

    /// This type's scalar in the shape of `shape`: a vector of as many lanes, or the scalar.
    pub fn shaped_like(self, shape: Type<'c>) -> Type<'c> {
        if shape.is_vector() { self.scalar().vector(shape.lanes()) } else { self.scalar() }
    }

    /// Whether it is a vector.
    pub fn is_vector(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMVectorTypeKind
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMArrayTypeKind
    }

    /// Whether it is an integer or a vector of integers.
    pub fn is_int(self) -> bool {
        self.scalar().kind() == LLVMTypeKind::LLVMIntegerTypeKind
    }

    /// Whether it is a pointer or a vector of pointers.
    pub fn is_ptr(self) -> bool {
        self.scalar().kind() == LLVMTypeKind::LLVMPointerTypeKind
    }

    /// Whether it is a floating-point type or a vector of one.
    pub fn is_float(self) -> bool {
        use LLVMTypeKind::*;
        matches!(
            self.scalar().kind(),
            LLVMHalfTypeKind | LLVMBFloatTypeKind | LLVMFloatTypeKind | LLVMDoubleTypeKind
        )
    }

    /// Width in bits of the scalar; 64 for a pointer.
    #[track_caller]
    pub fn scalar_bits(self) -> u32 {
        use LLVMTypeKind::*;
        let scalar = self.scalar();
        match scalar.kind() {
            // SAFETY: asked of an integer type only.
            LLVMIntegerTypeKind => unsafe { core::LLVMGetIntTypeWidth(scalar.raw) },
            LLVMHalfTypeKind | LLVMBFloatTypeKind => 16,
            LLVMFloatTypeKind => 32,
            LLVMDoubleTypeKind | LLVMPointerTypeKind => 64,
            _ => panic!("{self} has no width"),
        }
    }

    /// The integer type of the same width and shape.
    pub fn to_int(self) -> Type<'c> {
        // SAFETY: the type's own context makes the integer type.
        let int = unsafe {
            Self::from_raw(core::LLVMIntTypeInContext(core::LLVMGetTypeContext(self.raw), self.scalar_bits()))
        };
        int.shaped_like(self)
    }

    /// The type of comparison results of this shape.
    pub fn to_mask(self) -> Type<'c> {
        // SAFETY: the type's own context makes the integer type.
        let bit = unsafe { Self::from_raw(core::LLVMInt1TypeInContext(core::LLVMGetTypeContext(self.raw))) };
        bit.shaped_like(self)
    }

    /// The integer constant with these low bits, in every lane.
    #[track_caller]
    pub fn int_const(self, bits: u64) -> Value<'c> {
        assert!(self.is_int(), "{self} is not an integer type");
        // SAFETY: an integer type of a live context.
        self.splat_const(unsafe { Value::from_raw(core::LLVMConstInt(self.scalar().raw, bits, 0)) })
    }

    /// The floating-point constant nearest to `value`, in every lane.
    #[track_caller]
    pub fn float_const(self, value: f64) -> Value<'c> {
        assert!(self.is_float(), "{self} is not a floating-point type");
        // SAFETY: a floating-point type of a live context.
        self.splat_const(unsafe { Value::from_raw(core::LLVMConstReal(self.scalar().raw, value)) })
    }

    /// The floating-point constant with this bit pattern, in every lane.
    #[track_caller]
    pub fn float_bits(self, bits: u64) -> Value<'c> {
        assert!(self.is_float(), "{self} is not a floating-point type");
        // SAFETY: a floating-point type of at most 64 bits, so one word.
        self.splat_const(unsafe { Value::from_raw(core::LLVMConstFPFromBits(self.scalar().raw, &bits)) })
    }

    /// Zero, null or the aggregate of zeros.
    pub fn zero(self) -> Value<'c> {
        // SAFETY: the type is of a live context.
        unsafe { Value::from_raw(core::LLVMConstNull(self.raw)) }
    }

    /// The integer with all bits set, in every lane.
    #[track_caller]
    pub fn all_ones(self) -> Value<'c> {
        assert!(self.is_int(), "{self} is not an integer type");
        // SAFETY: an integer type of a live context.
        unsafe { Value::from_raw(core::LLVMConstAllOnes(self.raw)) }
    }

    /// Any value, another one at each use.
    pub fn undef(self) -> Value<'c> {
        // SAFETY: the type is of a live context.
        unsafe { Value::from_raw(core::LLVMGetUndef(self.raw)) }
    }

    /// The value that must not be looked at.
    pub fn poison(self) -> Value<'c> {
        // SAFETY: the type is of a live context.
        unsafe { Value::from_raw(core::LLVMGetPoison(self.raw)) }
    }

    /// The integer constants `lanes`, low bits taken, as a vector of this scalar type.
    #[track_caller]
    pub fn int_vector(self, lanes: &[u64]) -> Value<'c> {
        let lanes: Vec<_> = lanes.iter().map(|&lane| self.scalar().int_const(lane)).collect();
        Value::const_vector(&lanes)
    }

    fn splat_const(self, scalar: Value<'c>) -> Value<'c> {
        if self.is_vector() { Value::const_vector(&vec![scalar; self.lanes() as usize]) } else { scalar }
    }

    fn kind(self) -> LLVMTypeKind {
        // SAFETY: the type is of a live context.
        unsafe { core::LLVMGetTypeKind(self.raw) }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the type is of a live context; the message is ours to dispose of.
        f.write_str(&unsafe { super::take_message(core::LLVMPrintTypeToString(self.raw)) })
    }
}

impl fmt::Debug for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
