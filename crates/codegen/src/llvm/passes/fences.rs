//! Long computations of integers, made of short ones.
//!
//! Instruction selection asks of each operation which bits of its result are known, and of what it is computed from, and so on: of a tree of sums as
//! hashes have them, that is asked again and again for every operation in it. Nothing is known of what comes through a fence.

use super::{UNNAMED, instructions, over_functions};
use crate::llvm::Module;
use llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMOpcode, LLVMTypeKind, core};
use std::collections::HashMap;

impl Module<'_> {
    /// Has at most `most` operations on vectors of integers follow from each other without a fence. The code means the same.
    pub fn fence_integers(self, most: u32) {
        let name = c"llvm.arithmetic.fence";
        // SAFETY: the name is as long as it says.
        let id = unsafe { core::LLVMLookupIntrinsicID(name.as_ptr(), name.count_bytes()) };
        // SAFETY: all instructions are of the function, and stay.
        over_functions(self, |builder, function| unsafe {
            // How many operations a value takes from the last fence on.
            let mut lengths: HashMap<LLVMValueRef, u32> = HashMap::new();
            for inst in instructions(function) {
                let Some(fraction) = passes_bits_on(inst) else { continue };
                let operands =
                    (0..core::LLVMGetNumOperands(inst) as u32).map(|at| core::LLVMGetOperand(inst, at));
                let before = operands.filter_map(|operand| lengths.get(&operand).copied()).max();
                let length = before.unwrap_or(0) + 1;
                if length < most {
                    lengths.insert(inst, length);
                    continue;
                }
                core::LLVMPositionBuilderBefore(builder, core::LLVMGetNextInstruction(inst));
                let mut bits = core::LLVMBuildBitCast(builder, inst, fraction, UNNAMED);
                let mut overload = fraction;
                let fence = core::LLVMGetIntrinsicDeclaration(self.raw(), id, &mut overload, 1);
                let ty = core::LLVMGlobalGetValueType(fence);
                let fenced = core::LLVMBuildCall2(builder, ty, fence, &mut bits, 1, UNNAMED);
                let back = core::LLVMBuildBitCast(builder, fenced, core::LLVMTypeOf(inst), UNNAMED);
                core::LLVMReplaceAllUsesWith(inst, back);
                core::LLVMSetOperand(bits, 0, inst);
            }
        });
    }
}

/// Where the bits of an operation's result follow from those of its operands, the vector of fractions that has as many: what a fence takes.
///
/// # Safety
/// `inst` is an instruction, and alive.
unsafe fn passes_bits_on(inst: LLVMValueRef) -> Option<LLVMTypeRef> {
    use LLVMOpcode::*;
    // SAFETY: the contract; types' kinds are looked at first.
    unsafe {
        let is_rotation = || !core::LLVMIsAIntrinsicInst(inst).is_null();
        let passes = match core::LLVMGetInstructionOpcode(inst) {
            LLVMAdd | LLVMSub | LLVMAnd | LLVMOr | LLVMXor | LLVMShl | LLVMLShr | LLVMAShr => true,
            LLVMCall => is_rotation(),
            _ => false,
        };
        let ty = core::LLVMTypeOf(inst);
        if !passes || core::LLVMGetTypeKind(ty) != LLVMTypeKind::LLVMVectorTypeKind {
            return None;
        }
        let (element, context) = (core::LLVMGetElementType(ty), core::LLVMGetTypeContext(ty));
        if core::LLVMGetTypeKind(element) != LLVMTypeKind::LLVMIntegerTypeKind {
            return None;
        }
        let fraction = match core::LLVMGetIntTypeWidth(element) {
            32 => core::LLVMFloatTypeInContext(context),
            64 => core::LLVMDoubleTypeInContext(context),
            _ => return None,
        };
        Some(core::LLVMVectorType(fraction, core::LLVMGetVectorSize(ty)))
    }
}
