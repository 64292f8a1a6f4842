//! Choices within choices.
//!
//! Where lanes come together again, those that have been elsewhere get the new value, and the others keep what they had. The new value is
//! often itself a choice: a bit that some lanes add, a minimum that few of them find. Both at once are one instruction where vectors
//! have masks, and one choice less elsewhere.

use super::{UNNAMED, instructions, over_functions};
use crate::llvm::Module;
use llvm_sys::core;
use llvm_sys::prelude::{LLVMBuilderRef, LLVMValueRef};
use llvm_sys::{LLVMOpcode, LLVMTypeKind};

impl Module<'_> {
    /// Has lanes that keep a vector's value either way choose once. A predicate is never poison, in no lane: whatever lanes do
    /// depends on it together with a mask.
    pub fn join_choices(self) {
        // SAFETY: all instructions are of the function; a choice is erased only when it is its own turn.
        over_functions(self, |builder, function| unsafe {
            // All are gathered first: what has no use left is erased.
            let outer: Vec<_> = instructions(function).filter(|inst| is_choice(*inst)).collect();
            for choice in outer {
                join(builder, choice);
            }
        });
    }
}

/// `mask ? (cond ? new : old) : old` and `mask ? (old | (cond ? new : 0)) : old` with one mask instead of two.
///
/// # Safety
/// Both are alive, and the value is a choice of vectors.
unsafe fn join(builder: LLVMBuilderRef, outer: LLVMValueRef) {
    // SAFETY: operands are counted or known by the opcode; what is erased has no use left.
    unsafe {
        let [mask, new, old] = [0, 1, 2].map(|at| core::LLVMGetOperand(outer, at));
        if !is_used_once(new) {
            return;
        }
        let inner = if is_choice(new) && core::LLVMGetOperand(new, 2) == old {
            new
        } else {
            match added_to(new, old) {
                Some(added) if is_choice(added) && is_used_once(added) => {
                    let nothing = core::LLVMGetOperand(added, 2);
                    if core::LLVMIsNull(nothing) == 0 {
                        return;
                    }
                    added
                }
                _ => return,
            }
        };
        let block = core::LLVMGetInstructionParent(outer);
        let cond = core::LLVMGetOperand(inner, 0);
        let are_here = [new, inner].into_iter().all(|inst| core::LLVMGetInstructionParent(inst) == block);
        if !are_here || core::LLVMTypeOf(cond) != core::LLVMTypeOf(mask) {
            return;
        }
        // Here, where the outer mask is there too. Nobody else uses them.
        core::LLVMPositionBuilderBefore(builder, outer);
        let both = core::LLVMBuildAnd(builder, mask, cond, UNNAMED);
        core::LLVMSetOperand(inner, 0, both);
        move_here(builder, inner);
        if new != inner {
            move_here(builder, new);
        }
        core::LLVMReplaceAllUsesWith(outer, new);
        core::LLVMInstructionEraseFromParent(outer);
    }
}

/// The other operand of an operation on `old` that zero changes nothing in.
unsafe fn added_to(inst: LLVMValueRef, old: LLVMValueRef) -> Option<LLVMValueRef> {
    // SAFETY: a binary operation has two operands.
    unsafe {
        if core::LLVMIsABinaryOperator(inst).is_null() {
            return None;
        }
        let [first, second] = [0, 1].map(|at| core::LLVMGetOperand(inst, at));
        match core::LLVMGetInstructionOpcode(inst) {
            LLVMOpcode::LLVMOr | LLVMOpcode::LLVMXor | LLVMOpcode::LLVMAdd if first == old => Some(second),
            LLVMOpcode::LLVMOr | LLVMOpcode::LLVMXor | LLVMOpcode::LLVMAdd if second == old => Some(first),
            LLVMOpcode::LLVMSub if first == old => Some(second),
            _ => None,
        }
    }
}

/// Moves an instruction to where the builder stands.
unsafe fn move_here(builder: LLVMBuilderRef, inst: LLVMValueRef) {
    // SAFETY: both are alive, and the instruction is put back at once.
    unsafe {
        core::LLVMInstructionRemoveFromParent(inst);
        core::LLVMInsertIntoBuilder(builder, inst);
    }
}

/// Whether a value is a choice between vectors, lane by lane.
unsafe fn is_choice(value: LLVMValueRef) -> bool {
    // SAFETY: a choice has a condition.
    unsafe {
        !core::LLVMIsASelectInst(value).is_null()
            && core::LLVMGetTypeKind(core::LLVMTypeOf(core::LLVMGetOperand(value, 0)))
                == LLVMTypeKind::LLVMVectorTypeKind
    }
}

unsafe fn is_used_once(value: LLVMValueRef) -> bool {
    // SAFETY: the value is alive; instructions and arguments have lists of uses.
    unsafe {
        if core::LLVMIsAInstruction(value).is_null() {
            return false;
        }
        let first = core::LLVMGetFirstUse(value);
        !first.is_null() && core::LLVMGetNextUse(first).is_null()
    }
}
