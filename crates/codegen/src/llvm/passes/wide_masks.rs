//! Masks as vectors of words, for processors without registers for masks.
//!
//! Comparisons of words give words there, all ones for a lane where they hold, and selections and masked accesses look at the sign of words. In
//! between LLVM computes with bytes: it packs the words of each comparison and widens bytes again before each use. Masks that fit in a few
//! registers as words stay words here all the way, through every block.

use super::{UNNAMED, instructions, over_functions, shuffled, some};
use crate::llvm::Module;
use llvm_sys::core;
use llvm_sys::prelude::{LLVMBuilderRef, LLVMContextRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMTypeKind};
use std::collections::HashMap;

/// Lanes of words that a register holds.
const REGISTER: u32 = 8;

impl Module<'_> {
    /// Makes words of masks that have at most `lanes` lanes. The module is well formed before and after.
    pub fn widen_masks(self, lanes: u32) {
        let context = self.context().raw();
        over_functions(self, |builder, function| {
            let masks = Widening { context, builder, lanes, words: HashMap::new() };
            // SAFETY: the function is of the context, and alive.
            unsafe { masks.run(function) };
        });
    }
}

/// The masks of one function. Its methods are unsafe for one reason: values and blocks that they are given are those of a function of the
/// context, and alive.
struct Widening {
    context: LLVMContextRef,
    builder: LLVMBuilderRef,
    lanes: u32,
    /// What each mask is as words, where that is somewhere.
    words: HashMap<LLVMValueRef, LLVMValueRef>,
}

impl Widening {
    unsafe fn run(mut self, function: LLVMValueRef) {
        // SAFETY: the function is alive; what is erased has no use left.
        unsafe {
            let masks: Vec<_> = instructions(function).filter(|inst| self.is_mask(*inst)).collect();
            let phis: Vec<_> =
                masks.iter().copied().filter(|mask| opcode(*mask) == LLVMOpcode::LLVMPHI).collect();
            for phi in &phis {
                core::LLVMPositionBuilderBefore(self.builder, *phi);
                let words = core::LLVMBuildPhi(self.builder, self.words_of(*phi), UNNAMED);
                self.words.insert(*phi, words);
            }
            for mask in &masks {
                self.widened(*mask);
            }
            for phi in &phis {
                for at in 0..core::LLVMCountIncoming(*phi) {
                    let mut from = core::LLVMGetIncomingBlock(*phi, at);
                    let mut words = self.widened(core::LLVMGetIncomingValue(*phi, at));
                    core::LLVMAddIncoming(self.words[phi], &mut words, &mut from, 1);
                }
            }
            masks.iter().for_each(|mask| self.serve_users(*mask));
            let computed: Vec<_> = masks.into_iter().filter(|mask| self.is_computed(*mask)).collect();
            for mask in &computed {
                core::LLVMReplaceAllUsesWith(*mask, core::LLVMGetPoison(core::LLVMTypeOf(*mask)));
            }
            computed.into_iter().for_each(|mask| core::LLVMInstructionEraseFromParent(mask));
        }
    }

    /// A mask as words.
    unsafe fn widened(&mut self, mask: LLVMValueRef) -> LLVMValueRef {
        if let Some(known) = self.words.get(&mask) {
            return *known;
        }
        // SAFETY: an instruction that gives a mask is not the last of its block, and its operands are there.
        unsafe {
            let ty = self.words_of(mask);
            if core::LLVMIsAInstruction(mask).is_null() {
                // Constants become others. What a function is given is there at its start.
                if !core::LLVMIsAArgument(mask).is_null() {
                    let entry = core::LLVMGetEntryBasicBlock(core::LLVMGetParamParent(mask));
                    core::LLVMPositionBuilderBefore(self.builder, core::LLVMGetFirstInstruction(entry));
                }
                let words = core::LLVMBuildSExt(self.builder, mask, ty, UNNAMED);
                self.words.insert(mask, words);
                return words;
            }
            let operand = |at: u32| core::LLVMGetOperand(mask, at);
            let words = if self.is_computed(mask) {
                let of = opcode(mask);
                let first = if of == LLVMOpcode::LLVMSelect { 1 } else { 0 };
                let one = self.widened(operand(first));
                let other = match of {
                    LLVMOpcode::LLVMFreeze | LLVMOpcode::LLVMInsertElement => one,
                    _ => self.widened(operand(first + 1)),
                };
                core::LLVMPositionBuilderBefore(self.builder, core::LLVMGetNextInstruction(mask));
                match of {
                    LLVMOpcode::LLVMFreeze => core::LLVMBuildFreeze(self.builder, one, UNNAMED),
                    LLVMOpcode::LLVMInsertElement => {
                        let word = core::LLVMGetElementType(ty);
                        let element = core::LLVMBuildSExt(self.builder, operand(1), word, UNNAMED);
                        core::LLVMBuildInsertElement(self.builder, one, element, operand(2), UNNAMED)
                    }
                    LLVMOpcode::LLVMShuffleVector => {
                        let lanes = core::LLVMGetNumMaskElements(mask);
                        let lanes: Vec<_> = (0..lanes).map(|at| core::LLVMGetMaskValue(mask, at)).collect();
                        shuffled(self.builder, one, other, &lanes)
                    }
                    LLVMOpcode::LLVMSelect => {
                        core::LLVMBuildSelect(self.builder, operand(0), one, other, UNNAMED)
                    }
                    _ => core::LLVMBuildBinOp(self.builder, of, one, other, UNNAMED),
                }
            } else {
                core::LLVMPositionBuilderBefore(self.builder, core::LLVMGetNextInstruction(mask));
                core::LLVMBuildSExt(self.builder, mask, ty, UNNAMED)
            };
            self.words.insert(mask, words);
            words
        }
    }

    /// Gives those who use a mask for something else than another mask what they need.
    unsafe fn serve_users(&mut self, mask: LLVMValueRef) {
        // SAFETY: all are instructions of one function. A use may be gone once its user is changed, so all are gathered first.
        unsafe {
            let words = self.words[&mask];
            for user in users(mask) {
                if self.is_mask(user) && self.is_computed(user) {
                    continue;
                }
                let own = core::LLVMGetInstructionParent(user) == core::LLVMGetInstructionParent(mask);
                let is_extended =
                    opcode(user) == LLVMOpcode::LLVMSExt && core::LLVMTypeOf(user) == core::LLVMTypeOf(words);
                if is_extended && user != words {
                    core::LLVMReplaceAllUsesWith(user, words);
                    core::LLVMInstructionEraseFromParent(user);
                } else if self.is_test_of_lanes(user) {
                    self.test_words(user, words);
                } else if self.is_computed(mask) || !own {
                    core::LLVMPositionBuilderBefore(self.builder, user);
                    let again = self.mask_of(words);
                    for at in 0..core::LLVMGetNumOperands(user) as u32 {
                        if core::LLVMGetOperand(user, at) == mask {
                            core::LLVMSetOperand(user, at, again);
                        }
                    }
                }
            }
        }
    }

    /// Whether the lanes of a mask of several registers become bits that are compared with none or all of them alone.
    unsafe fn is_test_of_lanes(&self, user: LLVMValueRef) -> bool {
        // SAFETY: an integer's type has a width, and an operand that is a constant integer of up to 64 bits a value.
        unsafe {
            let ty = core::LLVMTypeOf(user);
            opcode(user) == LLVMOpcode::LLVMBitCast
                && core::LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMIntegerTypeKind
                && core::LLVMGetIntTypeWidth(ty) > REGISTER
                && users(user).into_iter().all(|test| {
                    opcode(test) == LLVMOpcode::LLVMICmp
                        && matches!(
                            core::LLVMGetICmpPredicate(test),
                            LLVMIntPredicate::LLVMIntEQ | LLVMIntPredicate::LLVMIntNE
                        )
                        && core::LLVMGetOperand(test, 0) == user
                        && is_none_or_all(core::LLVMGetOperand(test, 1))
                })
        }
    }

    /// Has those tests look at one register, which all of the words' go into.
    unsafe fn test_words(&self, bits: LLVMValueRef, words: LLVMValueRef) {
        // SAFETY: the tests are comparisons with none or all bits.
        unsafe {
            for test in users(bits) {
                core::LLVMPositionBuilderBefore(self.builder, test);
                let none = core::LLVMGetOperand(test, 1);
                let is_any = core::LLVMIsNull(none) != 0;
                let mut part = words;
                let mut lanes = core::LLVMGetVectorSize(core::LLVMTypeOf(words));
                while lanes > REGISTER {
                    lanes /= 2;
                    let half = |from: u32| {
                        let lanes: Vec<_> = (from..from + lanes).map(|lane| lane as i32).collect();
                        shuffled(self.builder, part, part, &lanes)
                    };
                    let (low, high) = (half(0), half(lanes));
                    part = match is_any {
                        true => core::LLVMBuildOr(self.builder, low, high, UNNAMED),
                        false => core::LLVMBuildAnd(self.builder, low, high, UNNAMED),
                    };
                }
                let ty = core::LLVMIntTypeInContext(self.context, lanes);
                let bits = core::LLVMBuildBitCast(self.builder, self.mask_of(part), ty, UNNAMED);
                let other = if is_any { core::LLVMConstNull(ty) } else { core::LLVMConstAllOnes(ty) };
                let predicate = core::LLVMGetICmpPredicate(test);
                let again = core::LLVMBuildICmp(self.builder, predicate, bits, other, UNNAMED);
                core::LLVMReplaceAllUsesWith(test, again);
                core::LLVMInstructionEraseFromParent(test);
            }
            core::LLVMInstructionEraseFromParent(bits);
        }
    }

    /// A mask from its words, where the builder is.
    unsafe fn mask_of(&self, words: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: the words are a vector of integers.
        unsafe {
            let zero = core::LLVMConstNull(core::LLVMTypeOf(words));
            core::LLVMBuildICmp(self.builder, LLVMIntPredicate::LLVMIntSLT, words, zero, UNNAMED)
        }
    }

    /// Whether a mask is computed from masks alone, and so from words.
    unsafe fn is_computed(&self, mask: LLVMValueRef) -> bool {
        // SAFETY: it is an instruction.
        unsafe {
            match opcode(mask) {
                LLVMOpcode::LLVMShuffleVector => self.is_mask(core::LLVMGetOperand(mask, 0)),
                LLVMOpcode::LLVMPHI
                | LLVMOpcode::LLVMAnd
                | LLVMOpcode::LLVMOr
                | LLVMOpcode::LLVMXor
                | LLVMOpcode::LLVMInsertElement
                | LLVMOpcode::LLVMSelect
                | LLVMOpcode::LLVMFreeze => true,
                _ => false,
            }
        }
    }

    unsafe fn is_mask(&self, value: LLVMValueRef) -> bool {
        // SAFETY: the type's kind is looked at first.
        unsafe {
            let ty = core::LLVMTypeOf(value);
            core::LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMVectorTypeKind
                && (2..=self.lanes).contains(&core::LLVMGetVectorSize(ty))
                && core::LLVMGetElementType(ty) == core::LLVMInt1TypeInContext(self.context)
        }
    }

    /// The vector of words that has as many lanes as a mask.
    unsafe fn words_of(&self, mask: LLVMValueRef) -> LLVMTypeRef {
        // SAFETY: a mask is a vector.
        unsafe {
            let lanes = core::LLVMGetVectorSize(core::LLVMTypeOf(mask));
            core::LLVMVectorType(core::LLVMInt32TypeInContext(self.context), lanes)
        }
    }
}

/// # Safety
/// It is an instruction that is alive.
unsafe fn opcode(inst: LLVMValueRef) -> LLVMOpcode {
    // SAFETY: the contract.
    unsafe { core::LLVMGetInstructionOpcode(inst) }
}

/// Who uses a value, each once.
///
/// # Safety
/// It is alive, and an instruction or what only instructions use.
unsafe fn users(value: LLVMValueRef) -> Vec<LLVMValueRef> {
    // SAFETY: the contract; the walk ends at null.
    unsafe {
        let uses =
            std::iter::successors(some(core::LLVMGetFirstUse(value)), |at| some(core::LLVMGetNextUse(*at)));
        let mut users: Vec<_> = uses.map(|at| core::LLVMGetUser(at)).collect();
        users.sort_unstable();
        users.dedup();
        users
    }
}

/// # Safety
/// It is alive.
unsafe fn is_none_or_all(value: LLVMValueRef) -> bool {
    // SAFETY: the contract; what a constant is compared with is another of its type.
    unsafe {
        !core::LLVMIsAConstantInt(value).is_null()
            && (core::LLVMIsNull(value) != 0 || value == core::LLVMConstAllOnes(core::LLVMTypeOf(value)))
    }
}
