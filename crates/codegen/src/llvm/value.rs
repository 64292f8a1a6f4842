//! [`Value`], [`Function`], [`Block`] and [`Phi`].

use super::context::{Context, InContext, c_string};
use super::count;
use super::metadata::Metadata;
use super::types::Type;
use llvm_sys::core;
use llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex, LLVMOpcode};
use std::fmt;
use std::marker::PhantomData;

/// An SSA value or a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value<'c> {
    raw: LLVMValueRef,
    context: InContext<'c>,
}

impl<'c> Value<'c> {
    /// # Safety
    /// `raw` is a value of a context that lives for `'c`.
    pub(super) unsafe fn from_raw(raw: LLVMValueRef) -> Self {
        Self { raw, context: PhantomData }
    }

    pub(super) fn raw(self) -> LLVMValueRef {
        self.raw
    }

    /// Its type.
    pub fn ty(self) -> Type<'c> {
        // SAFETY: the value is of a live context.
        unsafe { Type::from_raw(core::LLVMTypeOf(self.raw)) }
    }

    /// Whether it is a constant.
    pub fn is_constant(self) -> bool {
        // SAFETY: the value is of a live context.
        unsafe { core::LLVMIsConstant(self.raw) != 0 }
    }

    /// The integer this is a constant of, in every lane if it is a vector.
    pub fn as_int(self) -> Option<u64> {
        let ty = self.ty();
        if !ty.is_int() || ty.scalar_bits() > 64 || !self.is_constant() {
            return None;
        }
        let scalar = |raw: LLVMValueRef| {
            // SAFETY: a constant of a live context; its value is asked for if it is an integer of at most 64 bits.
            unsafe {
                let int = !raw.is_null() && !core::LLVMIsAConstantInt(raw).is_null();
                int.then(|| core::LLVMConstIntGetZExtValue(raw))
            }
        };
        if !ty.is_vector() {
            return scalar(self.raw);
        }
        // SAFETY: lanes of a constant vector, in range.
        let lane = |index| scalar(unsafe { core::LLVMGetAggregateElement(self.raw, index) });
        let first = lane(0)?;
        (1..ty.lanes()).all(|index| lane(index) == Some(first)).then_some(first)
    }

    /// The value and the constant whose sum this integer was computed as, if it was.
    pub fn as_sum(self) -> Option<(Value<'c>, u64)> {
        if !self.ty().is_int() || !self.is_instruction() {
            return None;
        }
        // SAFETY: an instruction of a live context; a sum has two operands.
        let [a, b] = unsafe {
            if core::LLVMGetInstructionOpcode(self.raw) != LLVMOpcode::LLVMAdd {
                return None;
            }
            [0, 1].map(|at| Self::from_raw(core::LLVMGetOperand(self.raw, at)))
        };
        b.as_int().map(|constant| (a, constant))
    }

    /// The mask of up to 64 lanes that this is a constant of, lane 0 in bit 0.
    pub fn as_bits(self) -> Option<u64> {
        let lanes = self.ty().lanes();
        if !self.ty().is_vector() || lanes > 64 || self.ty().scalar_bits() != 1 || !self.is_constant() {
            return None;
        }
        (0..lanes).try_fold(0, |bits, lane| {
            // SAFETY: a constant of a live context, and a lane that it has; null, and what is no number, is looked for.
            let bit = unsafe {
                let element = core::LLVMGetAggregateElement(self.raw, lane);
                if element.is_null() || core::LLVMIsAConstantInt(element).is_null() {
                    return None;
                }
                core::LLVMConstIntGetZExtValue(element)
            };
            Some(bits | bit << lane)
        })
    }

    /// The vector of these constants.
    #[track_caller]
    pub fn const_vector(lanes: &[Value<'c>]) -> Value<'c> {
        let mut raw = Self::constants(lanes);
        assert!(!raw.is_empty(), "a vector has lanes");
        // SAFETY: constants of one type and one live context.
        unsafe { Self::from_raw(core::LLVMConstVector(raw.as_mut_ptr(), count(raw.len()))) }
    }

    /// The array of these constants.
    #[track_caller]
    pub fn const_array(element: Type<'c>, elements: &[Value<'c>]) -> Value<'c> {
        let mut raw = Self::constants(elements);
        assert!(elements.iter().all(|value| value.ty() == element));
        // SAFETY: constants of the element type and one live context.
        unsafe { Self::from_raw(core::LLVMConstArray2(element.raw(), raw.as_mut_ptr(), raw.len() as u64)) }
    }

    #[track_caller]
    fn constants(values: &[Value<'c>]) -> Vec<LLVMValueRef> {
        assert!(values.iter().all(|value| value.is_constant() && value.ty() == values[0].ty()));
        values.iter().map(|value| value.raw).collect()
    }

    /// Names it, for readers of the text form.
    pub fn set_name(self, name: &str) {
        // SAFETY: the value is of a live context; LLVM copies the name.
        unsafe { core::LLVMSetValueName2(self.raw, name.as_ptr().cast(), name.len()) };
    }

    /// Attaches metadata of the named kind if it is an instruction; a folded constant stays as it is.
    pub fn set_metadata(self, kind: &str, metadata: Metadata<'c>) {
        if self.is_instruction() {
            // SAFETY: instruction and metadata are of one live context.
            unsafe {
                let context = core::LLVMGetValueContext(self.raw);
                let kind = core::LLVMGetMDKindIDInContext(context, kind.as_ptr().cast(), count(kind.len()));
                core::LLVMSetMetadata(self.raw, kind, core::LLVMMetadataAsValue(context, metadata.raw()));
            }
        }
    }

    pub(super) fn is_instruction(self) -> bool {
        // SAFETY: the value is of a live context.
        unsafe { !core::LLVMIsAInstruction(self.raw).is_null() }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the value is of a live context; the message is ours to dispose of.
        f.write_str(&unsafe { super::take_message(core::LLVMPrintValueToString(self.raw)) })
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A function, declared or defined.
#[derive(Clone, Copy)]
pub struct Function<'c> {
    raw: LLVMValueRef,
    context: &'c Context,
}

impl<'c> Function<'c> {
    /// # Safety
    /// `raw` is a function of `context`.
    pub(super) unsafe fn from_raw(raw: LLVMValueRef, context: &'c Context) -> Self {
        Self { raw, context }
    }

    pub(super) fn raw(self) -> LLVMValueRef {
        self.raw
    }

    /// Its function type.
    pub fn ty(self) -> Type<'c> {
        // SAFETY: a function is a global value of a live context.
        unsafe { Type::from_raw(core::LLVMGlobalGetValueType(self.raw)) }
    }

    /// Its address.
    pub fn address(self) -> Value<'c> {
        // SAFETY: a function is a value of its context.
        unsafe { Value::from_raw(self.raw) }
    }

    /// Number of parameters.
    pub fn param_count(self) -> u32 {
        // SAFETY: asked of a function.
        unsafe { core::LLVMCountParams(self.raw) }
    }

    /// The parameter at `index`.
    #[track_caller]
    pub fn param(self, index: u32) -> Value<'c> {
        assert!(index < self.param_count(), "no parameter {index}");
        // SAFETY: the index was checked.
        unsafe { Value::from_raw(core::LLVMGetParam(self.raw, index)) }
    }

    /// Appends an empty block.
    pub fn append_block(self, name: &str) -> Block<'c> {
        let name = c_string(name);
        // SAFETY: function and context are alive and belong together.
        unsafe {
            Block::from_raw(core::LLVMAppendBasicBlockInContext(self.context.raw(), self.raw, name.as_ptr()))
        }
    }

    /// The first block.
    #[track_caller]
    pub fn entry(self) -> Block<'c> {
        // SAFETY: asked of a function with a body only.
        unsafe {
            assert!(core::LLVMCountBasicBlocks(self.raw) > 0, "a declaration has no entry block");
            Block::from_raw(core::LLVMGetEntryBasicBlock(self.raw))
        }
    }

    /// Its symbol.
    pub fn name(self) -> &'c str {
        let mut length = 0;
        // SAFETY: the function is alive as long as the context, and nothing renames it; the name has the length that is told.
        let bytes = unsafe {
            let name = core::LLVMGetValueName2(self.raw, &mut length);
            std::slice::from_raw_parts(name.cast::<u8>(), length)
        };
        std::str::from_utf8(bytes).expect("symbols are made of text")
    }

    /// Adds an attribute without a value, such as `nounwind`, to the function.
    #[track_caller]
    pub fn add_attribute(self, name: &str) {
        self.add(LLVMAttributeFunctionIndex, name, 0);
    }

    /// Has calls pass what fits into registers there, 16 vectors and as many results.
    pub fn pass_in_registers(self) {
        let convention = llvm_sys::LLVMCallConv::LLVMX86RegCallCallConv as u32;
        // SAFETY: the function is alive.
        unsafe { core::LLVMSetFunctionCallConv(self.raw, convention) };
    }

    /// Adds a string attribute, such as `"prefer-vector-width"="512"`.
    pub fn add_string_attribute(self, key: &str, value: &str) {
        // SAFETY: LLVM copies both strings; the function is of this context.
        unsafe {
            let attribute = core::LLVMCreateStringAttribute(
                self.context.raw(),
                key.as_ptr().cast(),
                count(key.len()),
                value.as_ptr().cast(),
                count(value.len()),
            );
            core::LLVMAddAttributeAtIndex(self.raw, LLVMAttributeFunctionIndex, attribute);
        }
    }

    /// Adds the string attributes that another function has.
    pub fn add_string_attributes_of(self, other: Function<'c>) {
        // SAFETY: both functions are of this context; LLVM writes as many attributes as it says there are.
        unsafe {
            let number = core::LLVMGetAttributeCountAtIndex(other.raw, LLVMAttributeFunctionIndex);
            let mut attributes = vec![std::ptr::null_mut(); number as usize];
            core::LLVMGetAttributesAtIndex(other.raw, LLVMAttributeFunctionIndex, attributes.as_mut_ptr());
            for attribute in attributes {
                if core::LLVMIsStringAttribute(attribute) != 0 {
                    core::LLVMAddAttributeAtIndex(self.raw, LLVMAttributeFunctionIndex, attribute);
                }
            }
        }
    }

    /// Adds an attribute to a parameter; `value` is 0 for those without, such as `noalias`, and the number for the
    /// others, such as `align`.
    #[track_caller]
    pub fn add_param_attribute(self, index: u32, name: &str, value: u64) {
        assert!(index < self.param_count(), "no parameter {index}");
        self.add(index + 1, name, value);
    }

    #[track_caller]
    fn add(self, index: LLVMAttributeIndex, name: &str, value: u64) {
        let attribute = enum_attribute(self.context.raw(), name, value);
        // SAFETY: function and attribute are of one context; the index is the function's or a parameter's.
        unsafe { core::LLVMAddAttributeAtIndex(self.raw, index, attribute) };
    }
}

/// The attribute called `name`.
#[track_caller]
pub(super) fn enum_attribute(
    context: llvm_sys::prelude::LLVMContextRef,
    name: &str,
    value: u64,
) -> llvm_sys::prelude::LLVMAttributeRef {
    // SAFETY: LLVM only reads the name; the context is the caller's and alive.
    unsafe {
        let kind = core::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
        assert_ne!(kind, 0, "LLVM has no attribute `{name}`");
        core::LLVMCreateEnumAttribute(context, kind, value)
    }
}

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block<'c> {
    raw: LLVMBasicBlockRef,
    context: InContext<'c>,
}

impl<'c> Block<'c> {
    /// # Safety
    /// `raw` is a block of a context that lives for `'c`.
    pub(super) unsafe fn from_raw(raw: LLVMBasicBlockRef) -> Self {
        Self { raw, context: PhantomData }
    }

    pub(super) fn raw(self) -> LLVMBasicBlockRef {
        self.raw
    }

    /// Whether it ends in a terminator already.
    pub fn is_terminated(self) -> bool {
        // SAFETY: the block is of a live context.
        unsafe { !core::LLVMGetBasicBlockTerminator(self.raw).is_null() }
    }

    /// Moves it behind `other`, for readers of the text form and for code layout.
    pub fn move_after(self, other: Block<'c>) {
        // SAFETY: blocks of one function.
        unsafe { core::LLVMMoveBasicBlockAfter(self.raw, other.raw) };
    }
}

/// A phi, which is completed as its incoming edges become known.
#[derive(Clone, Copy)]
pub struct Phi<'c>(pub(super) Value<'c>);

impl<'c> Phi<'c> {
    /// The value it yields.
    pub fn value(self) -> Value<'c> {
        self.0
    }

    /// Adds the value it has when control comes from `from`.
    #[track_caller]
    pub fn add_incoming(self, value: Value<'c>, from: Block<'c>) {
        assert_eq!(value.ty(), self.0.ty(), "incoming value of another type");
        // SAFETY: a phi, a value of its type and a block of one context.
        unsafe { core::LLVMAddIncoming(self.0.raw(), &mut value.raw(), &mut from.raw(), 1) };
    }
}
