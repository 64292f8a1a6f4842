//! Long runs of loads, for code that is wanted soon.
//!
//! Instruction selection looks for loads from neighbouring places among all that may change places with a load, for each of them: the time
//! grows with the square of their number, and is most of all where a warp takes back hundreds of values after a barrier. A volatile load stays
//! where it is, so that a run ends there.

use super::instructions;
use crate::llvm::Module;
use llvm_sys::LLVMTypeKind::{LLVMIntegerTypeKind, LLVMVectorTypeKind};
use llvm_sys::core;
use llvm_sys::prelude::LLVMValueRef;

impl Module<'_> {
    /// Has at most `most` loads in a row that may change places. The code means the same; accesses that LLVM would drop or join, it keeps.
    pub fn end_runs_of_loads(self, most: u32) {
        for function in self.functions() {
            let mut block = std::ptr::null_mut();
            let mut run = 0;
            // SAFETY: the function is alive, and so are its instructions, which stay.
            for inst in unsafe { instructions(function.raw()) } {
                // SAFETY: as above.
                unsafe {
                    let own = core::LLVMGetInstructionParent(inst);
                    if std::mem::replace(&mut block, own) != own || !core::LLVMIsAStoreInst(inst).is_null() {
                        run = 0;
                    }
                    if core::LLVMIsALoadInst(inst).is_null() || !is_plain(inst) {
                        continue;
                    }
                    run += 1;
                    if run == most {
                        core::LLVMSetVolatile(inst, 1);
                        run = 0;
                    }
                }
            }
        }
    }
}

/// Whether it is a load of words, neither volatile nor atomic: masks in memory have code of their own.
///
/// # Safety
/// `load` is one, and alive.
unsafe fn is_plain(load: LLVMValueRef) -> bool {
    // SAFETY: the contract.
    unsafe {
        let mut ty = core::LLVMTypeOf(load);
        if core::LLVMGetTypeKind(ty) == LLVMVectorTypeKind {
            ty = core::LLVMGetElementType(ty);
        }
        let is_bit = core::LLVMGetTypeKind(ty) == LLVMIntegerTypeKind && core::LLVMGetIntTypeWidth(ty) == 1;
        let ordering = core::LLVMGetOrdering(load);
        !is_bit
            && core::LLVMGetVolatile(load) == 0
            && ordering == llvm_sys::LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic
    }
}
