//! What passes over LLVM's instructions share.

use super::UNNAMED;
use llvm_sys::LLVMInlineAsmDialect;
use llvm_sys::core;
use llvm_sys::prelude::{LLVMBuilderRef, LLVMTypeRef, LLVMValueRef};
use std::ffi::CStr;

/// Lanes of two vectors by their numbers, those of the second after those of the first; any where a number is below zero.
///
/// # Safety
/// The builder is of the vectors' context, and the numbers are lanes of theirs.
pub(super) unsafe fn shuffled(
    builder: LLVMBuilderRef,
    one: LLVMValueRef,
    other: LLVMValueRef,
    lanes: &[i32],
) -> LLVMValueRef {
    // SAFETY: the contract.
    unsafe {
        let i32 = core::LLVMInt32TypeInContext(core::LLVMGetTypeContext(core::LLVMTypeOf(one)));
        let number = |lane: &i32| match *lane {
            lane if lane < 0 => core::LLVMGetPoison(i32),
            lane => core::LLVMConstInt(i32, lane as u64, 0),
        };
        let mut lanes: Vec<_> = lanes.iter().map(number).collect();
        let lanes = core::LLVMConstVector(lanes.as_mut_ptr(), lanes.len() as u32);
        core::LLVMBuildShuffleVector(builder, one, other, lanes, UNNAMED)
    }
}

/// Assembly of AT&T's kind, of such a type and with such constraints, which does nothing but give its result.
///
/// # Safety
/// The type is a function's, of the constraints' operands.
pub(super) unsafe fn assembly(ty: LLVMTypeRef, code: &CStr, constraints: &CStr) -> LLVMValueRef {
    // SAFETY: the contract.
    unsafe { assembly_that(false, ty, code, constraints) }
}

/// Likewise, which may do something that its result does not tell.
///
/// # Safety
/// The type is a function's, of the constraints' operands.
pub(super) unsafe fn assembly_that(
    has_effects: bool,
    ty: LLVMTypeRef,
    code: &CStr,
    constraints: &CStr,
) -> LLVMValueRef {
    // SAFETY: the contract; both texts have the lengths that are told.
    unsafe {
        core::LLVMGetInlineAsm(
            ty,
            code.as_ptr(),
            code.count_bytes(),
            constraints.as_ptr(),
            constraints.count_bytes(),
            has_effects.into(),
            0,
            LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
            0,
        )
    }
}

/// All instructions of a function.
///
/// # Safety
/// The function is alive, and nothing is changed while they are walked.
pub(super) unsafe fn instructions(function: LLVMValueRef) -> impl Iterator<Item = LLVMValueRef> {
    // SAFETY: the contract; the walks end at null.
    unsafe {
        let blocks = std::iter::successors(some(core::LLVMGetFirstBasicBlock(function)), |block| {
            some(core::LLVMGetNextBasicBlock(*block))
        });
        blocks.flat_map(|block| {
            std::iter::successors(some(core::LLVMGetFirstInstruction(block)), |inst| {
                some(core::LLVMGetNextInstruction(*inst))
            })
        })
    }
}

pub(super) fn some<T>(pointer: *mut T) -> Option<*mut T> {
    (!pointer.is_null()).then_some(pointer)
}
