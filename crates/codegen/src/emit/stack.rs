//! Stack memory.

use std::collections::HashMap;

use super::function::Emitter;
use crate::llvm::{Type, Value};

/// Stack memory that an instruction uses and the next may use again, and how much of it the current one has taken.
#[derive(Default)]
pub(super) struct Scratch<'c>(HashMap<Type<'c>, (Vec<Value<'c>>, usize)>);

impl<'c> Emitter<'_, 'c> {
    /// The next instruction has all scratch memory.
    pub(super) fn begin_scratch(&mut self) {
        self.scratch.0.values_mut().for_each(|(_, taken)| *taken = 0);
    }

    /// Stack memory for one `ty`, for the instruction being emitted.
    pub(super) fn scratch(&mut self, ty: Type<'c>) -> Value<'c> {
        let (known, taken) =
            self.scratch.0.get(&ty).map_or((None, 0), |(all, taken)| (all.get(*taken).copied(), *taken));
        let memory = known.unwrap_or_else(|| self.stack(ty));
        let (all, count) = self.scratch.0.entry(ty).or_default();
        if known.is_none() {
            all.push(memory);
        }
        *count = taken + 1;
        memory
    }

    /// Stack memory for one `ty`.
    pub(super) fn stack(&mut self, ty: Type<'c>) -> Value<'c> {
        let b = self.unit.b;
        let here = b.block();
        b.position_at_end(self.stack_block);
        let memory = b.alloca(ty, stack_align(ty));
        b.position_at_end(here);
        memory
    }
}

/// The alignment of stack memory for a type.
pub(super) fn stack_align(ty: Type<'_>) -> u32 {
    if ty.is_vector() || ty.is_array() { 64 } else { 8 }
}
