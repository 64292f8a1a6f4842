//! Passes of our own over LLVM's instructions, and what they share. They run behind LLVM's ([`Machine::optimize`](crate::target::Machine::optimize)),
//! each for what LLVM makes badly, wrongly or slowly of the code that we give it:
//!
//! * [`nested`]: choices within choices become one;
//! * [`products`]: parts of products that LLVM (22) shifts wrongly;
//! * [`wide_masks`], [`masks`]: masks for processors without registers for them, as words and, where they cross blocks, as bytes;
//! * [`byte_masks`]: masked accesses to eight bytes, which LLVM (22) gets wrong;
//! * [`chains`], [`fences`]: long runs of loads and long computations, for code that is wanted soon.

mod byte_masks;
mod chains;
mod fences;
mod masks;
mod nested;
mod products;
mod wide_masks;

use super::builder::assembly;
use super::{Module, UNNAMED};
use llvm_sys::core;
use llvm_sys::prelude::{LLVMBuilderRef, LLVMValueRef};

/// Runs a pass over each function of a module, with a builder that it may put anywhere.
fn over_functions(module: Module<'_>, mut pass: impl FnMut(LLVMBuilderRef, LLVMValueRef)) {
    // SAFETY: the module's context is alive.
    let builder = unsafe { core::LLVMCreateBuilderInContext(module.context().raw()) };
    for function in module.functions() {
        pass(builder, function.raw());
    }
    // SAFETY: it was made above, and no pass keeps it.
    unsafe { core::LLVMDisposeBuilder(builder) };
}

/// Lanes of two vectors by their numbers, those of the second after those of the first; any where a number is below zero.
///
/// # Safety
/// The builder is of the vectors' context, and the numbers are lanes of theirs.
unsafe fn shuffled(
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

/// All instructions of a function.
///
/// # Safety
/// The function is alive, and nothing is changed while they are walked.
unsafe fn instructions(function: LLVMValueRef) -> impl Iterator<Item = LLVMValueRef> {
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

fn some<T>(pointer: *mut T) -> Option<*mut T> {
    (!pointer.is_null()).then_some(pointer)
}
