//! Masks that cross blocks, for processors without registers for masks.
//!
//! A mask that one block computes and another reads is kept in registers of bytes. Where it has more lanes than one of them has bytes, LLVM
//! keeps each lane in a register of its own instead, which takes thousands of instructions. Such a mask crosses as a vector of bytes here, of
//! which LLVM makes several registers: all ones for a lane that is set.

use super::{UNNAMED, instructions, over_functions, some};
use crate::llvm::Module;
use llvm_sys::core;
use llvm_sys::prelude::{LLVMBasicBlockRef, LLVMBuilderRef, LLVMContextRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMIntPredicate, LLVMTypeKind};
use std::collections::HashMap;

impl Module<'_> {
    /// Has masks of more than `lanes` lanes cross blocks as vectors of bytes. The module is well formed before and after.
    pub fn widen_crossing_masks(self, lanes: u32) {
        let context = self.context().raw();
        over_functions(self, |builder, function| {
            let masks = Crossing { context, builder, lanes, bytes: HashMap::new() };
            // SAFETY: the function is of the context, and alive.
            unsafe { masks.run(function) };
        });
    }
}

/// The masks of one function. Its methods are unsafe for one reason: values and blocks that they are given are those of a function of the
/// context, and alive.
struct Crossing {
    context: LLVMContextRef,
    builder: LLVMBuilderRef,
    /// The most lanes that one register holds.
    lanes: u32,
    /// What each mask is as bytes, where that is somewhere.
    bytes: HashMap<LLVMValueRef, LLVMValueRef>,
}

impl Crossing {
    unsafe fn run(mut self, function: LLVMValueRef) {
        // SAFETY: the function is alive; what is erased has no use left.
        unsafe {
            let (phis, mut masks): (Vec<_>, Vec<_>) = instructions(function)
                .filter(|inst| self.is_wide(*inst))
                .partition(|inst| !core::LLVMIsAPHINode(*inst).is_null());
            let mut widened = Vec::new();
            for phi in phis {
                core::LLVMPositionBuilderBefore(self.builder, phi);
                let bytes = core::LLVMBuildPhi(self.builder, self.bytes_of(phi), UNNAMED);
                let mask = self.mask_at_start(bytes, core::LLVMGetInstructionParent(phi));
                core::LLVMReplaceAllUsesWith(phi, mask);
                self.bytes.insert(mask, bytes);
                masks.push(mask);
                widened.push((phi, bytes));
            }
            for (phi, bytes) in widened {
                for at in 0..core::LLVMCountIncoming(phi) {
                    let mut from = core::LLVMGetIncomingBlock(phi, at);
                    let mut value = self.widened(core::LLVMGetIncomingValue(phi, at), from);
                    core::LLVMAddIncoming(bytes, &mut value, &mut from, 1);
                }
                core::LLVMInstructionEraseFromParent(phi);
            }
            for mask in masks {
                self.cross(mask);
            }
        }
    }

    /// Has other blocks than its own read a mask from its bytes.
    unsafe fn cross(&mut self, mask: LLVMValueRef) {
        // SAFETY: all are instructions of one function. A use may be gone once its user is changed, so all are gathered first.
        unsafe {
            let own = core::LLVMGetInstructionParent(mask);
            let uses = std::iter::successors(some(core::LLVMGetFirstUse(mask)), |at| {
                some(core::LLVMGetNextUse(*at))
            });
            let elsewhere: Vec<(LLVMValueRef, LLVMBasicBlockRef)> = uses
                .map(|at| core::LLVMGetUser(at))
                .map(|user| (user, core::LLVMGetInstructionParent(user)))
                .filter(|(_, block)| *block != own)
                .collect();
            let mut there = HashMap::new();
            for (user, block) in elsewhere {
                let bytes = self.widened(mask, own);
                let again = *there.entry(block).or_insert_with(|| self.mask_at_start(bytes, block));
                for at in 0..core::LLVMGetNumOperands(user) as u32 {
                    if core::LLVMGetOperand(user, at) == mask {
                        core::LLVMSetOperand(user, at, again);
                    }
                }
            }
        }
    }

    /// A mask as bytes: made where the mask is, or at the end of `block` if it is no instruction.
    unsafe fn widened(&mut self, mask: LLVMValueRef, block: LLVMBasicBlockRef) -> LLVMValueRef {
        if let Some(known) = self.bytes.get(&mask) {
            return *known;
        }
        // SAFETY: an instruction that gives a mask is not the last of its block; a block has a last one.
        unsafe {
            let is_instruction = !core::LLVMIsAInstruction(mask).is_null();
            let before = match is_instruction {
                true => core::LLVMGetNextInstruction(mask),
                false => core::LLVMGetBasicBlockTerminator(block),
            };
            core::LLVMPositionBuilderBefore(self.builder, before);
            let bytes = core::LLVMBuildSExt(self.builder, mask, self.bytes_of(mask), UNNAMED);
            if is_instruction {
                self.bytes.insert(mask, bytes);
            }
            bytes
        }
    }

    /// A mask from its bytes, at the start of a block.
    unsafe fn mask_at_start(&self, bytes: LLVMValueRef, block: LLVMBasicBlockRef) -> LLVMValueRef {
        // SAFETY: a block has an instruction that is no phi: its last.
        unsafe {
            let mut at = core::LLVMGetFirstInstruction(block);
            while !core::LLVMIsAPHINode(at).is_null() {
                at = core::LLVMGetNextInstruction(at);
            }
            core::LLVMPositionBuilderBefore(self.builder, at);
            let zero = core::LLVMConstNull(core::LLVMTypeOf(bytes));
            core::LLVMBuildICmp(self.builder, LLVMIntPredicate::LLVMIntSLT, bytes, zero, UNNAMED)
        }
    }

    unsafe fn is_wide(&self, value: LLVMValueRef) -> bool {
        // SAFETY: the type's kind is looked at first.
        unsafe {
            let ty = core::LLVMTypeOf(value);
            core::LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMVectorTypeKind
                && core::LLVMGetVectorSize(ty) > self.lanes
                && core::LLVMGetElementType(ty) == core::LLVMInt1TypeInContext(self.context)
        }
    }

    /// The vector of bytes that has as many lanes as a mask.
    unsafe fn bytes_of(&self, mask: LLVMValueRef) -> LLVMTypeRef {
        // SAFETY: a mask is a vector.
        unsafe {
            let lanes = core::LLVMGetVectorSize(core::LLVMTypeOf(mask));
            core::LLVMVectorType(core::LLVMInt8TypeInContext(self.context), lanes)
        }
    }
}
