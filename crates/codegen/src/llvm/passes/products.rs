//! Upper parts of products, of which sixteen bits are taken.
//!
//! LLVM has an instruction give the upper half of a product of sixteen bits, and shifts it by as much more as is asked for (LLVM 22). Where 64 bits have been multiplied the
//! product goes on above that half with its sign, which is lost then, and the shift may be by sixteen and more, which gives no number. It looks for amounts that are
//! constants.

use super::{UNNAMED, assembly, instructions, over_functions, shuffled, some};
use crate::llvm::Module;
use llvm_sys::core;
use llvm_sys::prelude::{LLVMBuilderRef, LLVMValueRef};
use llvm_sys::{LLVMOpcode, LLVMTypeKind};

/// Bits that are taken.
const TAKEN: u32 = 16;
/// Bits of a product that goes on above its upper half.
const WIDE: u32 = 64;

impl Module<'_> {
    /// Has nobody know the amount by which a vector of products is shifted, where only sixteen bits of it are taken then.
    pub fn hide_shifts_of_products(self) {
        // SAFETY: all instructions are of the function, and none of those that are found is erased before its own turn.
        over_functions(self, |builder, function| unsafe {
            let found: Vec<_> = instructions(function).filter_map(|inst| Taken::of(inst)).collect();
            found.into_iter().for_each(|taken| taken.hide(builder));
        });
    }
}

/// Sixteen bits of a product. Its values are alive.
struct Taken {
    cut: LLVMValueRef,
    product: LLVMValueRef,
    amount: u64,
    opcode: LLVMOpcode,
}

impl Taken {
    /// # Safety
    /// The instruction is alive.
    unsafe fn of(cut: LLVMValueRef) -> Option<Taken> {
        // SAFETY: the contract; operands are those that the instructions have.
        unsafe {
            if core::LLVMGetInstructionOpcode(cut) != LLVMOpcode::LLVMTrunc {
                return None;
            }
            let ty = core::LLVMTypeOf(cut);
            let is_vector = core::LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMVectorTypeKind;
            if !is_vector || core::LLVMGetIntTypeWidth(core::LLVMGetElementType(ty)) != TAKEN {
                return None;
            }
            let shift = chosen(core::LLVMGetOperand(cut, 0));
            let opcode = opcode_of(shift)?;
            if !matches!(opcode, LLVMOpcode::LLVMLShr | LLVMOpcode::LLVMAShr) {
                return None;
            }
            let product = core::LLVMGetOperand(shift, 0);
            let mut origin = chosen(product);
            // Bits that are shifted out need no mask: LLVM drops it.
            if opcode_of(origin) == Some(LLVMOpcode::LLVMAnd) {
                origin = chosen(core::LLVMGetOperand(origin, 0));
            }
            let amount = splat(core::LLVMGetOperand(shift, 1))?;
            let is_product = opcode_of(origin) == Some(LLVMOpcode::LLVMMul);
            let is_wide =
                core::LLVMGetIntTypeWidth(core::LLVMGetElementType(core::LLVMTypeOf(product))) == WIDE;
            (is_product && is_wide && amount > TAKEN.into()).then_some(Taken { cut, product, amount, opcode })
        }
    }

    /// # Safety
    /// The builder is of the values' context.
    unsafe fn hide(self, builder: LLVMBuilderRef) {
        // SAFETY: the contract; the assembly takes and gives what its type says.
        unsafe {
            core::LLVMPositionBuilderBefore(builder, self.cut);
            let wide = core::LLVMTypeOf(self.product);
            let (mut element, count) = (core::LLVMGetElementType(wide), core::LLVMGetVectorSize(wide));
            let ty = core::LLVMFunctionType(element, &mut element, 1, 0);
            let nothing = assembly(ty, c"", c"=r,0");
            let mut amount = core::LLVMConstInt(element, self.amount, 0);
            let amount = core::LLVMBuildCall2(builder, ty, nothing, &mut amount, 1, UNNAMED);
            let index =
                core::LLVMConstInt(core::LLVMInt32TypeInContext(core::LLVMGetTypeContext(wide)), 0, 0);
            let poison = core::LLVMGetPoison(wide);
            let first = core::LLVMBuildInsertElement(builder, poison, amount, index, UNNAMED);
            let amounts = shuffled(builder, first, poison, &vec![0; count as usize]);
            let shifted = core::LLVMBuildBinOp(builder, self.opcode, self.product, amounts, UNNAMED);
            core::LLVMSetOperand(self.cut, 0, shifted);
        }
    }
}

/// The opcode of an instruction; none of other values.
///
/// # Safety
/// The value is alive.
unsafe fn opcode_of(value: LLVMValueRef) -> Option<LLVMOpcode> {
    // SAFETY: the contract.
    unsafe { (!core::LLVMIsAInstruction(value).is_null()).then(|| core::LLVMGetInstructionOpcode(value)) }
}

/// What a choice by a constant gives, as quick code has it for shifts by too much; other values are themselves.
///
/// # Safety
/// The value is alive.
unsafe fn chosen(value: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: the contract; a choice has three operands.
    unsafe {
        if opcode_of(value) == Some(LLVMOpcode::LLVMSelect)
            && core::LLVMIsConstant(core::LLVMGetOperand(value, 0)) != 0
        {
            return core::LLVMGetOperand(value, 1);
        }
        value
    }
}

/// The number that a constant vector has in each lane.
///
/// # Safety
/// The value is alive.
unsafe fn splat(value: LLVMValueRef) -> Option<u64> {
    // SAFETY: the contract; the elements of a constant vector are constants.
    unsafe {
        if core::LLVMIsConstant(value) == 0 {
            return None;
        }
        let count = core::LLVMGetVectorSize(core::LLVMTypeOf(value));
        let element = |at| some(core::LLVMGetAggregateElement(value, at));
        let number = |at| {
            let element = element(at)?;
            (!core::LLVMIsAConstantInt(element).is_null()).then(|| core::LLVMConstIntGetZExtValue(element))
        };
        let first = number(0)?;
        (1..count).all(|at| number(at) == Some(first)).then_some(first)
    }
}
