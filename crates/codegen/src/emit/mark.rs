//! What is known of the accesses that one instruction becomes, besides where they are.

use super::each::ANYWHERE;
use super::full::ActiveLanes;
use super::function::Emitter;
use crate::llvm::{Type, Value};

/// How the accesses of one instruction are marked.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) kind: Kind,
    /// They may be at any address rather than at a multiple of their size.
    pub(super) anywhere: bool,
    /// The rows of the block have the addresses in common, if all lanes are active: see [`transform::Prepared::columns`].
    pub(super) in_columns: bool,
}

/// What kind of access it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Volatile,
    Invariant,
    /// A load of shared memory, which lies in the caches.
    Near,
    /// A store that may pass by the caches.
    Passing,
}

impl Mark {
    pub(super) const PLAIN: Mark = Mark::of(Kind::Plain);
    pub(super) const VOLATILE: Mark = Mark::of(Kind::Volatile);

    /// Of this kind, and nothing else.
    pub(super) const fn of(kind: Kind) -> Mark {
        Mark { kind, anywhere: false, in_columns: false }
    }

    /// What elements of this type are multiples of.
    pub(super) fn alignment(self, ty: Type<'_>) -> u32 {
        if self.anywhere { ANYWHERE } else { ty.scalar_bits() / 8 }
    }
}

impl<'c> Emitter<'_, 'c> {
    /// Loads what lies there, marked so.
    pub(super) fn loaded(&self, ty: Type<'c>, ptr: Value<'c>, mark: Mark) -> Value<'c> {
        self.marked(self.unit.b.load(ty, ptr, mark.alignment(ty)), mark)
    }

    pub(super) fn marked(&self, access: Value<'c>, mark: Mark) -> Value<'c> {
        match mark.kind {
            Kind::Plain | Kind::Near | Kind::Passing => access,
            Kind::Volatile => self.unit.b.mark_volatile(access),
            Kind::Invariant => self.unit.b.mark_invariant(access),
        }
    }

    /// How many lanes may load for all others: those of a row of the block, or of as many as fill a register with words.
    pub(super) fn lanes_for_all(&self, mark: Mark) -> Option<u32> {
        let register = self.unit.machine.cpu().vector_bits() / 32;
        let lanes = self.unit.row_lanes().max(register);
        (mark.in_columns && self.is_full() && lanes < self.unit.lanes).then_some(lanes)
    }

    /// What the first lanes load, for all lanes.
    pub(super) fn by_first_lanes(
        &mut self,
        lanes: u32,
        load: impl FnOnce(&mut Self) -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let all = self.unit;
        self.unit = all.of_first(lanes);
        let elements = self.knowing(ActiveLanes::All, load);
        self.unit = all;
        let own: Vec<i32> = (0..all.lanes).map(|lane| (lane % lanes) as i32).collect();
        elements.into_iter().map(|elements| all.b.shuffle(elements, elements, &own)).collect()
    }
}
