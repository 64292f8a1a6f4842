//! Barriers in memory: `mbarrier`. The object's bits are [`simt_ir::mbarrier`]'s.
//!
//! What threads say when they arrive is one operation, [`Op::MbarrierArrive`]. A wait is a look at the object: loops around it are what
//! waits, and let others run as any loop does that polls memory.

use simt_ir::mbarrier::{COUNT_MASK, EXPECTED_AT, PENDING_AT, PHASE_AT, TX_BITS};
use simt_ir::{Access, IntBinary, IntCmp, IntUnary, Op, Order, Refusal, Shift, Space, Type, Value};

use super::memory::{real_memory, scope};
use super::rules::number;
use super::syntax::Chosen;
use super::{Form, form};
use crate::lower::expander::Expander;
use crate::resolve::{Operand, OperandKind};

pub(super) const FORMS: &[Form] = &[
    form("mbarrier.init.space{shared,shared::cta}?.b64 a:address, count:u32", init).effect().since(7, 0, 80),
    // What an object was is no concern of what its memory becomes.
    form("mbarrier.inval.space{shared,shared::cta}?.b64 a:address", |_| {}).effect().since(7, 0, 80),
    form("mbarrier.arrive.space{shared,shared::cta}?.b64 state_=b64, a:address", arrive).effect().since(7, 0, 80),
    form("mbarrier.arrive.sem{release,relaxed}?.scope{cta,cluster}?.space{shared,shared::cta}?.b64 state_=b64, a:address, count?:u32", arrive)
        .effect()
        .since(7, 8, 90)
        .only_if(sem_with_scope)
        .only_with(some_arrive),
    form("mbarrier.arrive.sem{release,relaxed}?.scope{cta,cluster}?.space{shared::cluster}.b64 state_=b64, a:address, count?:u32", arrive)
        .effect()
        .since(8, 0, 90)
        .only_if(sem_with_scope)
        .only_with(some_arrive_elsewhere),
    form("mbarrier.arrive.expect_tx.sem{release,relaxed}?.scope{cta,cluster}?.space{shared,shared::cta}?.b64 state_=b64, a:address, bytes:u32", arrive)
        .effect()
        .since(8, 0, 90)
        .only_if(sem_with_scope),
    form("mbarrier.arrive.expect_tx.sem{release,relaxed}?.scope{cta,cluster}?.space{shared::cluster}.b64 state_=b64, a:address, bytes:u32", arrive)
        .effect()
        .since(8, 0, 90)
        .only_if(sem_with_scope)
        .only_with(elsewhere),
    form("mbarrier.arrive.noComplete.sem{release}?.scope{cta}?.space{shared,shared::cta}?.b64 state_=b64, a:address, count:u32", arrive)
        .effect()
        .since(7, 0, 80)
        .only_if(sem_with_scope)
        .only_with(some_arrive),
    form("mbarrier.arrive_drop.space{shared,shared::cta}?.b64 state_=b64, a:address", arrive_drop).effect().since(7, 0, 80),
    form("mbarrier.arrive_drop.sem{release,relaxed}?.scope{cta,cluster}?.space{shared,shared::cta}?.b64 state_=b64, a:address, count?:u32", arrive_drop)
        .effect()
        .since(7, 8, 90)
        .only_if(sem_with_scope)
        .only_with(some_arrive),
    form("mbarrier.arrive_drop.sem{release,relaxed}?.scope{cta,cluster}?.space{shared::cluster}.b64 state_=b64, a:address, count?:u32", arrive_drop)
        .effect()
        .since(8, 0, 90)
        .only_if(sem_with_scope)
        .only_with(some_arrive_elsewhere),
    form("mbarrier.arrive_drop.expect_tx.sem{release,relaxed}?.scope{cta,cluster}?.space{shared,shared::cta}?.b64 state_=b64, a:address, bytes:u32", arrive_drop)
        .effect()
        .since(8, 0, 90)
        .only_if(sem_with_scope),
    form("mbarrier.arrive_drop.expect_tx.sem{release,relaxed}?.scope{cta,cluster}?.space{shared::cluster}.b64 state_=b64, a:address, bytes:u32", arrive_drop)
        .effect()
        .since(8, 0, 90)
        .only_if(sem_with_scope)
        .only_with(elsewhere),
    form("mbarrier.arrive_drop.noComplete.sem{release}?.scope{cta}?.space{shared,shared::cta}?.b64 state_=b64, a:address, count:u32", arrive_drop)
        .effect()
        .since(7, 0, 80)
        .only_if(sem_with_scope)
        .only_with(some_arrive),
    form("mbarrier.expect_tx.sem{relaxed}?.scope{cta,cluster}?.space{$shared}?.b64 a:address, bytes:u32", |x| {
        let bytes = x.src("bytes");
        count_bytes(x, bytes);
    })
    .effect()
    .since(8, 0, 90)
    .only_if(sem_with_scope),
    form("mbarrier.complete_tx.sem{relaxed}?.scope{cta,cluster}?.space{$shared}?.b64 a:address, bytes:u32", |x| {
        let bytes = x.src("bytes");
        let less = x.un(IntUnary::Neg, bytes);
        count_bytes(x, less);
    })
    .effect()
    .since(8, 0, 90)
    .only_if(sem_with_scope),
    form("mbarrier.test_wait.sem{acquire,relaxed}?.scope{cta,cluster}?.space{shared,shared::cta}?.b64 done=pred, a:address, state:b64", wait)
        .effect()
        .since(7, 0, 80)
        .only_if(sem_with_scope),
    form("mbarrier.test_wait.parity.sem{acquire,relaxed}?.scope{cta,cluster}?.space{shared,shared::cta}?.b64 done=pred, a:address, parity:u32", wait)
        .effect()
        .since(7, 1, 80)
        .only_if(sem_with_scope)
        .only_with(a_parity),
    // How long a thread may sleep is a hint.
    form("mbarrier.try_wait.sem{acquire,relaxed}?.scope{cta,cluster}?.space{shared,shared::cta}?.b64 done=pred, a:address, state:b64, hint?:u32", wait)
        .effect()
        .since(7, 8, 90)
        .only_if(sem_with_scope),
    form("mbarrier.try_wait.parity.sem{acquire,relaxed}?.scope{cta,cluster}?.space{shared,shared::cta}?.b64 done=pred, a:address, parity:u32, hint?:u32", wait)
        .effect()
        .since(7, 8, 90)
        .only_if(sem_with_scope)
        .only_with(a_parity),
    form("mbarrier.pending_count.b64 d=b32, state:b64", |x| {
        let state = x.src("state");
        let count = x.shift_imm(Shift::RightU, state, PENDING_AT);
        let count = x.int_imm(IntBinary::And, count, COUNT_MASK);
        let count = x.fit(count, Type::I32);
        x.set("d", count);
    })
    .since(7, 0, 80),
    // The thread's copies are complete when they are issued. The arrival that this form announces beforehand takes back itself.
    form("cp.async.mbarrier.arrive.space{shared,shared::cta}?.b64 a:address", |_| {}).effect().since(7, 0, 80),
    form("cp.async.mbarrier.arrive.noinc.space{shared,shared::cta}?.b64 a:address", |x| {
        let [one, none] = [1, 0].map(|count| x.imm(Type::I32, count));
        if let Some([_, too_many]) = arrivals(x, "a", false, true, [one, none]).as_deref() {
            x.body.b.effect(Op::Refuse(Refusal::BarrierCount), &[*too_many]);
        }
    })
    .effect()
    .since(7, 0, 80),
];

fn sem_with_scope(chosen: &Chosen) -> Result<(), &'static str> {
    match (chosen.word("sem"), chosen.word("scope")) {
        (Some(_), None) => Err("a scope is required"),
        (None, Some(_)) => Err("semantics are required with a scope"),
        _ => Ok(()),
    }
}

fn some_arrive(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    if number(operands, 2).is_some_and(|count| count as i64 <= 0) {
        Err("at least one arrives")
    } else {
        Ok(())
    }
}

/// A barrier of another block answers with no state.
fn elsewhere(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    match operands.first().map(|operand| &operand.kind) {
        Some(OperandKind::Sink) => Ok(()),
        _ => Err("the sink '_' is required for a barrier in the cluster"),
    }
}

fn some_arrive_elsewhere(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    elsewhere(operands)?;
    some_arrive(operands)
}

fn a_parity(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    match number(operands, 2) {
        None | Some(0 | 1) => Ok(()),
        Some(_) => Err("a parity is 0 or 1"),
    }
}

fn access(x: &Expander<'_, '_>, space: Space, offset: i64, order: Order) -> Access {
    let order = if x.has("relaxed") { Order::Relaxed } else { order };
    Access { space, offset, order, scope: scope(x), lanes: 1, invariant: false, anywhere: false }
}

fn init(x: &mut Expander<'_, '_>) {
    let count = x.src("count");
    let Some((space, base, offset)) = real_memory(x, "a") else { return };
    let count = x.zext(count, Type::I64);
    let count = x.int_imm(IntBinary::And, count, COUNT_MASK);
    let expected = x.shift_imm(Shift::Left, count, EXPECTED_AT);
    let pending = x.shift_imm(Shift::Left, count, PENDING_AT);
    let bits = x.int(IntBinary::Or, expected, pending);
    x.body.b.effect(Op::Store(Access::weak(space, offset)), &[base, bits]);
}

fn arrive(x: &mut Expander<'_, '_>) {
    arrive_or_drop(x, false);
}

fn arrive_drop(x: &mut Expander<'_, '_>) {
    arrive_or_drop(x, true);
}

/// Without a count one arrives. The lanes of a warp arrive at once, as on the hardware, but with `.noComplete`, which promises what need not be
/// known: then it has them arrive one after another.
fn arrive_or_drop(x: &mut Expander<'_, '_>, drop: bool) {
    let expects = x.has("expect_tx");
    let count = if expects { None } else { x.src_if("count") };
    let count = count.unwrap_or_else(|| x.imm(Type::I32, 1));
    let bytes = if expects { x.src("bytes") } else { x.imm(Type::I32, 0) };
    let together = !x.has("noComplete");
    let Some(results) = arrivals(x, "a", drop, together, [count, bytes]) else { return };
    let old = results[0];
    let too_many = match results.get(1) {
        Some(too_many) => *too_many,
        None => {
            let pending = x.shift_imm(Shift::RightU, old, PENDING_AT);
            let pending = x.fit(pending, Type::I32);
            let pending = x.int_imm(IntBinary::And, pending, COUNT_MASK);
            x.cmp(IntCmp::LtU, pending, count)
        }
    };
    x.body.b.effect(Op::Refuse(Refusal::BarrierCount), &[too_many]);
    if x.wants("state") {
        x.set("state", old);
    }
}

/// Fewer bytes than 2^20 may be expected, or have come unexpected.
fn count_bytes(x: &mut Expander<'_, '_>, bytes: Value) {
    const MOST: u64 = COUNT_MASK;
    let nobody = x.imm(Type::I32, 0);
    let Some(old) = arrival(x, "a", false, nobody, bytes) else { return };
    let above = 64 - TX_BITS;
    let before = x.shift_imm(Shift::Left, old, above);
    let before = x.shift_imm(Shift::RightS, before, above);
    let bytes = x.extend(true, bytes, Type::I64);
    let sum = x.int(IntBinary::Add, before, bytes);
    let from_least = x.int_imm(IntBinary::Add, sum, MOST);
    let outside = x.cmp_imm(IntCmp::GtU, from_least, 2 * MOST);
    x.body.b.effect(Op::Refuse(Refusal::BarrierCount), &[outside]);
}

/// Arrivals of each thread for itself at the barrier that an operand names; what it was before.
fn arrival(x: &mut Expander<'_, '_>, name: &str, drop: bool, count: Value, bytes: Value) -> Option<Value> {
    arrivals(x, name, drop, false, [count, bytes])?.first().copied()
}

/// The same, and if the lanes arrive together, whether they are too many.
fn arrivals(
    x: &mut Expander<'_, '_>,
    name: &str,
    drop: bool,
    together: bool,
    [count, bytes]: [Value; 2],
) -> Option<Vec<Value>> {
    let (space, base, offset) = real_memory(x, name)?;
    let op = Op::MbarrierArrive { drop, together, access: access(x, space, offset, Order::Release) };
    let results: &[Type] = if together { &[Type::I64, Type::Pred] } else { &[Type::I64] };
    Some(x.body.b.insts(op, &[base, count, bytes], results))
}

/// Whether the phase of a parity, or that of a state, is over.
fn wait(x: &mut Expander<'_, '_>) {
    let parity = if x.has("parity") {
        let parity = x.src("parity");
        x.int_imm(IntBinary::And, parity, 1)
    } else {
        let state = x.src("state");
        phase(x, state)
    };
    let Some((space, base, offset)) = real_memory(x, "a") else { return };
    let look = Op::Load(access(x, space, offset, Order::Acquire));
    let now = x.op_ty(look, &[base], Type::I64);
    let now = phase(x, now);
    let done = x.cmp(IntCmp::Ne, now, parity);
    x.set("done", done);
}

fn phase(x: &mut Expander<'_, '_>, bits: Value) -> Value {
    let phase = x.shift_imm(Shift::RightU, bits, PHASE_AT);
    x.fit(phase, Type::I32)
}
