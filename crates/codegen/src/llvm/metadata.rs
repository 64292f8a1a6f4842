//! Metadata: alias scopes, loop hints, markers.

use super::builder::Builder;
use super::context::{Context, InContext};
use super::types::Type;
use super::value::Value;
use llvm_sys::core;
use llvm_sys::prelude::LLVMMetadataRef;
use std::marker::PhantomData;

/// A metadata node or string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Metadata<'c> {
    raw: LLVMMetadataRef,
    context: InContext<'c>,
}

/// A set of memory that accesses outside it do not touch: give an access the scopes it is in with
/// [`AliasScope::mark`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AliasScope<'c>(Metadata<'c>);

/// What to tell the loop passes about one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopHint {
    /// Do not unroll.
    DoNotUnroll,
    /// Do not vectorise: the code is vectors already.
    DoNotVectorize,
    /// Do not hoist invariants out of it: the emitter has decided which ones are worth a register.
    DoNotHoist,
    /// The loop ends; LLVM may assume so.
    MustProgress,
}

impl<'c> Metadata<'c> {
    pub(super) fn raw(self) -> LLVMMetadataRef {
        self.raw
    }

    fn from_raw(raw: LLVMMetadataRef) -> Self {
        Self { raw, context: PhantomData }
    }
}

impl Context {
    /// A metadata string.
    pub fn metadata_string(&self, text: &str) -> Metadata<'_> {
        // SAFETY: the context is alive; LLVM copies the text.
        Metadata::from_raw(unsafe {
            core::LLVMMDStringInContext2(self.raw(), text.as_ptr().cast(), text.len())
        })
    }

    /// A node of these operands. Nodes of equal operands are one.
    pub fn metadata_node<'c>(&'c self, operands: &[Metadata<'c>]) -> Metadata<'c> {
        let mut raw: Vec<_> = operands.iter().map(|operand| operand.raw).collect();
        // SAFETY: the context is alive and the operands are its own.
        Metadata::from_raw(unsafe { core::LLVMMDNodeInContext2(self.raw(), raw.as_mut_ptr(), raw.len()) })
    }

    /// A constant as metadata.
    #[track_caller]
    pub fn metadata_constant<'c>(&'c self, constant: Value<'c>) -> Metadata<'c> {
        assert!(constant.is_constant());
        // SAFETY: a constant of this context.
        Metadata::from_raw(unsafe { core::LLVMValueAsMetadata(constant.raw()) })
    }

    /// A node that is equal to no other: its first operand is itself.
    pub fn distinct_node<'c>(&'c self, operands: &[Metadata<'c>]) -> Metadata<'c> {
        let mut raw = vec![std::ptr::null_mut(); operands.len() + 1];
        // SAFETY: the temporary stands for the node until it exists and is replaced (and freed) right after; all
        // operands are of this live context.
        unsafe {
            let temporary = llvm_sys::debuginfo::LLVMTemporaryMDNode(self.raw(), std::ptr::null_mut(), 0);
            raw[0] = temporary;
            for (slot, operand) in raw[1..].iter_mut().zip(operands) {
                *slot = operand.raw;
            }
            let node = core::LLVMMDNodeInContext2(self.raw(), raw.as_mut_ptr(), raw.len());
            llvm_sys::debuginfo::LLVMMetadataReplaceAllUsesWith(temporary, node);
            Metadata::from_raw(node)
        }
    }

    /// Scopes called `names` in a new domain: memory in one is in none of the others.
    pub fn alias_scopes(&self, names: &[&str]) -> Vec<AliasScope<'_>> {
        let domain = self.distinct_node(&[self.metadata_string("memory")]);
        names
            .iter()
            .map(|name| AliasScope(self.distinct_node(&[domain, self.metadata_string(name)])))
            .collect()
    }
}

impl<'c> AliasScope<'c> {
    /// Declares that `access` (a load, a store or a call) touches memory of this scope only, and nothing of `others`.
    pub fn mark(self, context: &'c Context, access: Value<'c>, others: &[AliasScope<'c>]) {
        access.set_metadata("alias.scope", context.metadata_node(&[self.0]));
        let others: Vec<_> = others.iter().filter(|&&other| other != self).map(|other| other.0).collect();
        if !others.is_empty() {
            access.set_metadata("noalias", context.metadata_node(&others));
        }
    }
}

impl<'c> Builder<'c> {
    /// Declares that the memory of `load` never changes while the kernel runs.
    pub fn mark_invariant(&self, load: Value<'c>) -> Value<'c> {
        load.set_metadata("invariant.load", self.context().metadata_node(&[]));
        load
    }

    /// Says that an integer that a load gives is no less than `least`, which is not zero.
    pub fn mark_at_least(&self, load: Value<'c>, least: u64) -> Value<'c> {
        let (context, ty) = (self.context(), load.ty());
        let bounds = [least, 0].map(|bound| context.metadata_constant(ty.int_const(bound)));
        load.set_metadata("range", context.metadata_node(&bounds));
        load
    }

    /// Makes a store go around the caches, where it fills whole lines.
    pub fn mark_nontemporal(&self, store: Value<'c>) {
        let one = self.context().metadata_constant(self.context().int(32).int_const(1));
        store.set_metadata("nontemporal", self.context().metadata_node(&[one]));
    }

    /// Gives the loop whose back edge is the branch `latch` these hints.
    pub fn mark_loop(&self, latch: Value<'c>, hints: &[LoopHint]) {
        let context = self.context();
        let named = |name: &str| context.metadata_node(&[context.metadata_string(name)]);
        let flag = |name: &str, value: u64| {
            let constant = context.metadata_constant(context.int(1).int_const(value));
            context.metadata_node(&[context.metadata_string(name), constant])
        };
        let operands: Vec<_> = hints
            .iter()
            .map(|hint| match hint {
                LoopHint::DoNotUnroll => named("llvm.loop.unroll.disable"),
                LoopHint::DoNotVectorize => flag("llvm.loop.vectorize.enable", 0),
                LoopHint::DoNotHoist => named("llvm.licm.disable"),
                LoopHint::MustProgress => named("llvm.loop.mustprogress"),
            })
            .collect();
        latch.set_metadata("llvm.loop", context.distinct_node(&operands));
    }

    /// Gives the branch `branch` the odds `taken : not_taken`.
    pub fn mark_odds(&self, branch: Value<'c>, taken: u32, not_taken: u32) {
        let context = self.context();
        let weight = |weight: u32| {
            let i32: Type<'_> = context.int(32);
            context.metadata_constant(i32.int_const(weight.into()))
        };
        let operands = [context.metadata_string("branch_weights"), weight(taken), weight(not_taken)];
        branch.set_metadata("prof", context.metadata_node(&operands));
    }
}
