//! Pieces of control flow inside a block: what runs sometimes, and what runs lane by lane.

use kernel_abi::CompileError;

use super::LANES;
use super::function::Emitter;
use super::stack::stack_align;
use crate::llvm::{Block, IntPredicate, Type, Value};

impl<'c> Emitter<'_, 'c> {
    /// Runs `body` only where the scalar condition holds, which is rare. What it computes is forgotten afterwards.
    pub(super) fn unlikely(&mut self, condition: Value<'c>, body: impl FnOnce(&mut Self)) {
        self.with_odds(condition, Some((1, 2000)), body);
    }

    /// Runs `body` only where the scalar condition holds, as often as not.
    pub(super) fn where_holds(&mut self, condition: Value<'c>, body: impl FnOnce(&mut Self)) {
        self.with_odds(condition, None, body);
    }

    fn with_odds(&mut self, condition: Value<'c>, odds: Option<(u32, u32)>, body: impl FnOnce(&mut Self)) {
        let b = self.unit.b;
        let (then, after) = (b.append_block("then"), b.append_block("after"));
        let branch = b.cond_br(condition, then, after);
        if let Some((holds, fails)) = odds {
            b.mark_odds(branch, holds, fails);
        }
        b.position_at_end(then);
        let mark = self.mark();
        body(self);
        self.forget_since(mark);
        if !b.block().is_terminated() {
            b.br(after);
        }
        b.position_at_end(after);
    }

    /// Runs one of two pieces that answer nothing; the first is the usual one.
    pub(super) fn one_of(
        &mut self,
        condition: Value<'c>,
        usual: impl FnOnce(&mut Self) -> Result<(), CompileError>,
        rare: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let none = |()| Vec::new();
        self.either(condition, |this| usual(this).map(none), |this| rare(this).map(none)).map(drop)
    }

    /// Runs one of two pieces, each of which answers values of the same types; the first is the usual one.
    pub(super) fn either(
        &mut self,
        condition: Value<'c>,
        usual: impl FnOnce(&mut Self) -> Result<Vec<Value<'c>>, CompileError>,
        rare: impl FnOnce(&mut Self) -> Result<Vec<Value<'c>>, CompileError>,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        let b = self.unit.b;
        let (then, otherwise, after) =
            (b.append_block("usual"), b.append_block("rare"), b.append_block("both"));
        let branch = b.cond_br(condition, then, otherwise);
        b.mark_odds(branch, 2000, 1);
        let mark = self.mark();
        b.position_at_end(then);
        let usual = usual(self)?;
        let usual_end = b.block();
        b.br(after);
        self.forget_since(mark);
        b.position_at_end(otherwise);
        let rare = rare(self)?;
        let rare_end = b.block();
        b.br(after);
        self.forget_since(mark);
        b.position_at_end(after);
        Ok(self.merged((usual, usual_end), (rare, rare_end)))
    }

    /// What comes from one of two blocks: the values of each, in their order.
    pub(super) fn merged(
        &self,
        (values, end): (Vec<Value<'c>>, Block<'c>),
        (others, other_end): (Vec<Value<'c>>, Block<'c>),
    ) -> Vec<Value<'c>> {
        let merge = |(value, other): (Value<'c>, Value<'c>)| {
            let phi = self.unit.b.phi(value.ty());
            phi.add_incoming(value, end);
            phi.add_incoming(other, other_end);
            phi.value()
        };
        values.into_iter().zip(others).map(merge).collect()
    }

    /// Runs `body` for each lane set in `lanes`, an integer with a bit for each, with the lane's index as i32, lowest first.
    pub(super) fn for_each_lane(&mut self, lanes: Value<'c>, body: impl FnOnce(&mut Self, Value<'c>)) {
        let b = self.unit.b;
        let five = self.unit.types.i32.int_const(5);
        self.for_each_warp(lanes, |this, warp, own| {
            this.for_each_lane_of_warp(own, |this, at| body(this, b.or(b.shl(warp, five), at)));
        });
    }

    /// Runs `body` for each warp that `lanes` has bits of, with its index and its bits as i32.
    pub(super) fn for_each_warp(
        &mut self,
        lanes: Value<'c>,
        body: impl FnOnce(&mut Self, Value<'c>, Value<'c>),
    ) {
        let b = self.unit.b;
        let i32 = self.unit.types.i32;
        let count = lanes.ty().scalar_bits().div_ceil(LANES);
        if count == 1 {
            // A strip has fewer.
            let own = b.int_resize(lanes, i32, false);
            return body(self, i32.zero(), own);
        }
        let words = self.scratch(lanes.ty());
        b.store(lanes, words, stack_align(lanes.ty()));
        let before = b.block();
        let (head, after) = (b.append_block("lanes.warp"), b.append_block("lanes.all"));
        b.br(head);
        b.position_at_end(head);
        let warp = b.phi(i32);
        warp.add_incoming(i32.zero(), before);
        let own = self.element(words, warp.value(), i32);
        let mark = self.mark();
        body(self, warp.value(), own);
        self.forget_since(mark);
        let next = b.add(warp.value(), i32.int_const(1));
        warp.add_incoming(next, b.block());
        let done = b.icmp(IntPredicate::Eq, next, i32.int_const(count.into()));
        b.cond_br(done, after, head);
        b.position_at_end(after);
    }

    /// Runs `body` for every lane, lowest first, as [`Self::for_each_lane`] does where all are active, with less between one and the next. It is
    /// also given the lane's elements of `arrays`, which are stack memory, each of vectors of a type.
    ///
    /// They are loaded for several lanes at once. A processor that has seen a load overtake a store to the same place lets it wait for all stores before
    /// it from then on, and what such a store's place is must not be known only after another such load.
    pub(super) fn for_all_lanes(
        &mut self,
        arrays: &[(Value<'c>, Type<'c>)],
        body: impl Fn(&mut Self, Value<'c>, &[Value<'c>]),
    ) {
        const AT_ONCE: u32 = 8;
        let b = self.unit.b;
        let i32 = self.unit.types.i32;
        let before = b.block();
        let (head, after) = (b.append_block("lanes"), b.append_block("lanes.done"));
        b.br(head);
        b.position_at_end(head);
        let first = b.phi(i32);
        first.add_incoming(i32.zero(), before);
        let step = AT_ONCE.min(self.unit.lanes);
        let words: Vec<_> =
            arrays.iter().map(|(array, lane)| self.words(*array, first.value(), step, *lane)).collect();
        for at in 0..step {
            let mark = self.mark();
            let elements: Vec<_> = words
                .iter()
                .zip(arrays)
                .map(|(words, (_, lane))| self.part_of_words(*words, at, *lane))
                .collect();
            // A sum that does not wrap becomes part of the address of what the lane has in memory.
            body(self, b.add_nowrap(first.value(), i32.int_const(at.into()), true, true), &elements);
            self.forget_since(mark);
        }
        let next = b.add(first.value(), i32.int_const(step.into()));
        first.add_incoming(next, b.block());
        let done = b.icmp(IntPredicate::Eq, next, i32.int_const(self.unit.lanes.into()));
        b.cond_br(done, after, head);
        b.position_at_end(after);
    }

    /// So many elements, from `first` on, of stack memory that holds a vector, in words of 64 bits.
    fn words(&self, array: Value<'c>, first: Value<'c>, count: u32, lane: Type<'c>) -> Value<'c> {
        let bytes = count * lane.scalar_bits() / 8;
        self.unit.b.load(self.unit.types.i64.vector(bytes / 8), self.element_ptr(array, first, lane), bytes)
    }

    /// Element `at` of those in words of 64 bits.
    fn part_of_words(&self, words: Value<'c>, at: u32, lane: Type<'c>) -> Value<'c> {
        let b = self.unit.b;
        let bits = lane.scalar_bits();
        let bit = at * bits;
        let word = b.extract(words, bit / 64);
        let part = b.lshr(word, word.ty().int_const((bit % 64).into()));
        b.bitcast(b.int_resize(part, lane.to_int(), false), lane)
    }

    fn for_each_lane_of_warp(&mut self, lanes: Value<'c>, body: impl FnOnce(&mut Self, Value<'c>)) {
        let b = self.unit.b;
        let before = b.block();
        let (head, after) = (b.append_block("lane"), b.append_block("lanes.done"));
        let none = b.icmp(IntPredicate::Eq, lanes, self.unit.types.i32.zero());
        b.cond_br(none, after, head);
        b.position_at_end(head);
        let left = b.phi(self.unit.types.i32);
        left.add_incoming(lanes, before);
        let lane = b.cttz(left.value());
        let mark = self.mark();
        body(self, lane);
        self.forget_since(mark);
        let one = self.unit.types.i32.int_const(1);
        let rest = b.and(left.value(), b.sub(left.value(), one));
        left.add_incoming(rest, b.block());
        let done = b.icmp(IntPredicate::Eq, rest, self.unit.types.i32.zero());
        b.cond_br(done, after, head);
        b.position_at_end(after);
    }
}
