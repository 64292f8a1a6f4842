//! Masked accesses to eight bytes, for processors with registers for masks.
//!
//! LLVM makes them accesses to sixteen, and the mask of eight lanes one of sixteen by a move between registers that clears the upper half.
//! Where it then runs out of registers, it takes that move for a mere copy (LLVM 22) and keeps the register before the move instead: the mask
//! of the next lanes in its upper half, which then are stored, or loaded, too. It takes no assembly for a copy.

use super::{UNNAMED, assembly, instructions, over_functions, shuffled};
use crate::llvm::Module;
use llvm_sys::LLVMTypeKind;
use llvm_sys::core;
use llvm_sys::prelude::{LLVMBuilderRef, LLVMTypeRef, LLVMValueRef};

/// Lanes of the accesses that LLVM makes longer, and those of what it makes of them.
const LANES: [u32; 2] = [8, 16];

impl Module<'_> {
    /// Has masked accesses to eight bytes be such to sixteen, of which the upper half is not touched.
    pub fn lengthen_byte_masks(self) {
        // SAFETY: all instructions are of the function, and each is alive when it is looked at.
        over_functions(self, |builder, function| unsafe {
            // All are gathered first: what is replaced is erased. So what one stores is asked for when it is its turn: it may be what another
            // has loaded.
            let accesses: Vec<_> =
                instructions(function).filter(|inst| Access::of(*inst).is_some()).collect();
            for access in accesses.into_iter().filter_map(|inst| Access::of(inst)) {
                access.lengthen(self, builder);
            }
        });
    }
}

/// A masked access to eight bytes. Its values are alive.
struct Access {
    inst: LLVMValueRef,
    ptr: LLVMValueRef,
    mask: LLVMValueRef,
    /// What is stored, or what is loaded where the mask is not set.
    value: LLVMValueRef,
    stores: bool,
}

impl Access {
    /// # Safety
    /// The instruction is alive.
    unsafe fn of(inst: LLVMValueRef) -> Option<Access> {
        // SAFETY: the contract; operands are those that the intrinsics have.
        unsafe {
            if core::LLVMIsAIntrinsicInst(inst).is_null() {
                return None;
            }
            let id = core::LLVMGetIntrinsicID(core::LLVMGetCalledValue(inst));
            let is = |name: &str| id == core::LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            let operand = |at| core::LLVMGetOperand(inst, at);
            let access = if is("llvm.masked.store") {
                Access { inst, value: operand(0), ptr: operand(1), mask: operand(2), stores: true }
            } else if is("llvm.masked.load") {
                Access { inst, ptr: operand(0), mask: operand(1), value: operand(2), stores: false }
            } else {
                return None;
            };
            let ty = core::LLVMTypeOf(access.value);
            let is_short = core::LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMVectorTypeKind
                && core::LLVMGetVectorSize(ty) == LANES[0]
                && core::LLVMGetElementType(ty) == core::LLVMInt8TypeInContext(core::LLVMGetTypeContext(ty));
            (is_short && core::LLVMIsConstant(access.mask) == 0).then_some(access)
        }
    }

    /// # Safety
    /// The builder and the module are of the access's context.
    unsafe fn lengthen(self, module: Module<'_>, builder: LLVMBuilderRef) {
        // SAFETY: the contract; the types are as `of` has found them, and what is erased has no use left.
        unsafe {
            core::LLVMPositionBuilderBefore(builder, self.inst);
            let mask = self.long_mask(builder);
            let value = lanes(builder, self.value, LANES[1]);
            let mut overloads = [core::LLVMTypeOf(value), core::LLVMTypeOf(self.ptr)];
            let (name, mut operands) = if self.stores {
                ("llvm.masked.store", [value, self.ptr, mask])
            } else {
                ("llvm.masked.load", [self.ptr, mask, value])
            };
            let id = core::LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            let function =
                core::LLVMGetIntrinsicDeclaration(module.raw(), id, overloads.as_mut_ptr(), overloads.len());
            let ty = core::LLVMGlobalGetValueType(function);
            let access = core::LLVMBuildCall2(builder, ty, function, operands.as_mut_ptr(), 3, UNNAMED);
            if !self.stores {
                core::LLVMReplaceAllUsesWith(self.inst, lanes(builder, access, LANES[0]));
            }
            core::LLVMInstructionEraseFromParent(self.inst);
        }
    }

    /// The mask of twice the lanes, of which the upper half is clear.
    ///
    /// # Safety
    /// The builder is of the access's context, and before the access.
    unsafe fn long_mask(&self, builder: LLVMBuilderRef) -> LLVMValueRef {
        // SAFETY: the contract; the assembly takes and gives what its type says.
        unsafe {
            let context = core::LLVMGetTypeContext(core::LLVMTypeOf(self.mask));
            let [mut short, long] = LANES.map(|bits| core::LLVMIntTypeInContext(context, bits));
            let ty: LLVMTypeRef = core::LLVMFunctionType(long, &mut short, 1, 0);
            let moves = assembly(ty, c"kmovb $1, $0", c"=k,k");
            let mut bits = core::LLVMBuildBitCast(builder, self.mask, short, UNNAMED);
            let bits = core::LLVMBuildCall2(builder, ty, moves, &mut bits, 1, UNNAMED);
            let predicates = core::LLVMVectorType(core::LLVMInt1TypeInContext(context), LANES[1]);
            core::LLVMBuildBitCast(builder, bits, predicates, UNNAMED)
        }
    }
}

/// The first lanes of a vector, and any others where it has fewer.
///
/// # Safety
/// The builder is of the vector's context.
unsafe fn lanes(builder: LLVMBuilderRef, vector: LLVMValueRef, count: u32) -> LLVMValueRef {
    // SAFETY: the contract; the places are within the vector or none.
    unsafe {
        let ty = core::LLVMTypeOf(vector);
        let has = core::LLVMGetVectorSize(ty);
        let places: Vec<i32> = (0..count).map(|at| if at < has { at as i32 } else { -1 }).collect();
        shuffled(builder, vector, core::LLVMGetPoison(ty), &places)
    }
}
