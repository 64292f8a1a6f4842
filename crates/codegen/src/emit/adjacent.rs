//! Atomics of lanes that lie side by side in memory: those of 16 bytes at once.
//!
//! Each lane's operation is atomic by itself, and no lane is promised to be done before another, so one exchange of 16 bytes
//! may do several. It costs about what one lane's costs, and where several threads want the same line of the cache, which
//! is when atomics are slow, the line comes once instead of once for each lane.

use kernel_abi::late::Places;
use simt_ir::{Access, AtomicOp, Space, Type as IrType, Value as IrValue};

use super::LANES;
use super::address::Address;
use super::atomic::may_rest;
use super::function::Emitter;
use super::memory::Pattern;
use crate::llvm::{IntPredicate, Ordering, Value};
use crate::math::value_type;

/// What one exchange takes.
const BYTES: u32 = 16;

/// What is wanted of an atomic.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What was there before.
    Old,
    /// That it is done.
    Done,
    /// That it is done before the kernel ends: see [`transform::late`].
    DoneLater,
}

impl<'c> Emitter<'_, 'c> {
    /// Where lane 0's element lies, if the lanes of this atomic lie side by side and more than one fits an exchange.
    pub(super) fn adjacent(&self, address: &Address<'c>, ty: IrType, access: Access) -> Option<Value<'c>> {
        if access.space == Space::Shared
            || !matches!(ty, IrType::I32 | IrType::F32 | IrType::I64 | IrType::F64)
        {
            return None;
        }
        let bytes = value_type(self.unit.context(), ty).scalar_bits() / 8;
        match (address, self.pattern(address, bytes, 1, true)) {
            (Address::Affine(..) | Address::Rows { .. }, Pattern::Consecutive(start)) => Some(start),
            _ => None,
        }
    }

    /// The operation by the active lanes, side by side from `start`. Answers what was there before, if that is wanted.
    pub(super) fn atomic_adjacent(
        &mut self,
        op: AtomicOp,
        ty: IrType,
        start: Value<'c>,
        operands: IrValue,
        access: Access,
        wanted: Wanted,
    ) -> Option<Value<'c>> {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        let lane = value_type(self.unit.context(), ty);
        let bytes = lane.scalar_bits() / 8;
        let each = BYTES / bytes;
        // The first exchange begins up to so many lanes before lane 0: the arrays are laid out as memory is.
        let first =
            b.and(b.lshr(start, i64.int_const(bytes.ilog2().into())), i64.int_const(u64::from(each - 1)));
        let exact = start;
        let start = b.and(start, i64.int_const(!u64::from(BYTES - 1)));
        let padded = lane.array(u64::from(self.unit.lanes + each));
        let at_first = |array: Value<'c>| b.ptr_add(array, b.mul(first, i64.int_const(bytes.into())));
        let operands = self.vector(operands);
        let vector = operands.ty();
        let array = self.scratch(padded);
        b.store(operands, at_first(array), bytes);
        let results = (wanted == Wanted::Old).then(|| self.scratch(padded));
        let mask = self.active();
        self.for_each_warp(b.mask_to_int(mask), |this, warp, lanes| {
            let passed = b.mul(b.zext(warp, i64), i64.int_const(u64::from(LANES * bytes)));
            let lanes = match wanted {
                Wanted::DoneLater => {
                    let own = b.ptr_add(at_first(array), passed);
                    this.keep_late((op, ty, Places::Adjacent), b.add(exact, passed), lanes, own)
                }
                Wanted::Old | Wanted::Done => lanes,
            };
            let lanes = b.shl(b.zext(lanes, i64), first);
            this.for_each_exchange(lanes, each, |this, exchange, own| {
                let offset = b.add(passed, b.mul(exchange, i64.int_const(BYTES.into())));
                let operand = b.load(lane.vector(each), b.ptr_add(array, offset), BYTES);
                let place = b.inttoptr(b.add(start, offset));
                let old = this.exchange_adjacent(op, ty, place, operand, own, access);
                if let Some(results) = results {
                    // Another warp's lanes may lie in the same 16 bytes.
                    let place = b.ptr_add(results, offset);
                    let others = b.load(old.ty(), place, BYTES);
                    b.store(b.select(own, old, others), place, BYTES);
                }
            });
        });
        results.map(|results| b.load(vector, at_first(results), bytes))
    }

    /// Runs `body` for every group of `each` bits of an i64 that has one set, with the group's index and its bits as a mask.
    fn for_each_exchange(
        &mut self,
        lanes: Value<'c>,
        each: u32,
        body: impl FnOnce(&mut Self, Value<'c>, Value<'c>),
    ) {
        let b = self.unit.b;
        let i64 = lanes.ty();
        let before = b.block();
        let (head, after) = (b.append_block("exchange"), b.append_block("exchanged"));
        b.cond_br(b.icmp(IntPredicate::Eq, lanes, i64.zero()), after, head);
        b.position_at_end(head);
        let left = b.phi(i64);
        left.add_incoming(lanes, before);
        let group = b.lshr(b.cttz(left.value()), i64.int_const(each.ilog2().into()));
        let bit = b.mul(group, i64.int_const(each.into()));
        let wanted = b.trunc(b.lshr(left.value(), bit), self.unit.context().int(each));
        let mark = self.mark();
        body(self, group, b.int_to_mask(wanted));
        self.forget_since(mark);
        let rest = b.and(left.value(), b.not(b.shl(i64.int_const((1 << each) - 1), bit)));
        left.add_incoming(rest, b.block());
        b.cond_br(b.icmp(IntPredicate::Eq, rest, i64.zero()), after, head);
        b.position_at_end(after);
    }

    /// One exchange, tried until nobody comes between: the lanes of `wanted` change, the others stay. Answers what was there.
    fn exchange_adjacent(
        &mut self,
        op: AtomicOp,
        ty: IrType,
        place: Value<'c>,
        operand: Value<'c>,
        wanted: Value<'c>,
        access: Access,
    ) -> Value<'c> {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        // A guess, so it need not be read at once: each element of it was there.
        let low = b.load_atomic(i64, place, Ordering::Relaxed);
        let high = b.load_atomic(i64, b.ptr_add(place, i64.int_const(8)), Ordering::Relaxed);
        let guess = self.whole([low, high]);
        self.exchange(place, guess, operand.ty(), access.order, may_rest(op, access.order), |old| {
            b.select(wanted, self.combined(op, ty, old, operand), old)
        })
    }
}
