//! Whether a loop does the same as another several times over, and what must be tested for that.

use std::collections::HashMap;

use simt_ir::{Access, Block, Convert, Function, IntBinary, IntCmp, Op, Order, Space, Type, Value};

use super::expr::{Exprs, Id};
use super::known::{self, Counted};
use super::{MOST, Maker, Unrolled, Whose, through, ways};

/// How far definitions are followed.
const DEPTH: u32 = 32;

/// What goes on from the loops.
pub enum Leaving {
    /// What the first loop has there at its end.
    State(usize),
    /// What was there before.
    Value(Value),
}

/// An address that the second loop goes on from, and how far it is from one of the first loop's.
struct Pointer {
    entering: Value,
    state: usize,
    further: u64,
}

/// How two loops are the same.
pub struct Same {
    /// What the first loop begins with.
    pub entering: Vec<Value>,
    /// Which of its parameters counts the iterations that are left.
    pub counter: usize,
    pub leaving: Vec<Leaving>,
    /// Which one is compared with a limit, what it goes up by, and the limit.
    number: usize,
    step: Value,
    limit: Value,
    is_unsigned: bool,
    /// What each parameter goes up by, if that is known outside.
    steps: Vec<Option<Value>>,
    pointers: Vec<Pointer>,
    /// Whether all that would be tested is known to hold.
    pub is_known: bool,
}

/// What a loop does in an iteration: its accesses with addresses and what is stored, and what its values are.
pub(super) struct Done {
    accesses: Vec<(Access, bool, Id, Vec<Id>)>,
    pub(super) values: HashMap<Value, Id>,
}

/// What these values are, where some are known; the others are from outside.
pub(super) fn told(exprs: &mut Exprs<'_>, known: &HashMap<Value, Id>, values: &[Value]) -> Vec<Id> {
    values.iter().map(|value| known.get(value).copied().unwrap_or_else(|| exprs.outside(*value))).collect()
}

/// Runs the instructions of a block on expressions.
pub(super) fn run(
    exprs: &mut Exprs<'_>,
    func: &Function,
    block: Block,
    params: &[Id],
    loaded: &mut usize,
) -> Option<Done> {
    let mut values: HashMap<Value, Id> =
        func.block(block).params.iter().copied().zip(params.iter().copied()).collect();
    let mut accesses = Vec::new();
    for inst in &func.block(block).insts {
        let data = func.inst(*inst);
        let args = told(exprs, &values, &data.args);
        match data.op {
            Op::Load(access) | Op::Store(access) if access.order == Order::Weak => {
                let is_store = data.results.is_empty();
                // The offset is part of the address.
                let address = exprs.plus(args[0], access.offset as u64);
                accesses.push((Access { offset: 0, ..access }, is_store, address, args[1..].to_vec()));
                for result in &data.results {
                    values.insert(*result, exprs.loaded(*loaded));
                    *loaded += 1;
                }
            }
            // Another lane may be elsewhere then.
            Op::AnyLane | Op::Unanimous | Op::ActiveMask => return None,
            op if op.is_pure() && data.results.len() == 1 => {
                let id = exprs.computed(data, &args);
                values.insert(data.results[0], id);
            }
            _ => return None,
        }
    }
    Some(Done { accesses, values })
}

impl Same {
    pub fn of(func: &Function, unrolled: &Unrolled, whose: Whose) -> Option<Same> {
        let Unrolled { first, second, between, after, before, times, .. } = *unrolled;
        if func.block(first).insts.len() > MOST {
            return None;
        }
        let params = &func.block(first).params;
        let (back, out, cond, stays) = ways(func, first)?;
        let entering = Unrolled::edge(func, unrolled.enters_first.unwrap_or(before), first)?.args.clone();
        let counter = counter(func, unrolled, back.args.as_slice(), cond, stays)?;
        // Where lanes begin anywhere, they are no more side by side in one loop than in the other.
        if entering[counter] != unrolled.left
            || whose == Whose::OfWarps && !entering.iter().all(|value| is_of_places(func, *value, DEPTH))
        {
            return None;
        }
        // What each of the second loop's parameters is of the first's.
        let around = Unrolled::edge(func, before, between)?;
        let into_second = Unrolled::edge(func, unrolled.enters_second.unwrap_or(between), second)?;
        let between_params = &func.block(between).params;
        let mut exprs = Exprs::new(func);
        let passed = |exprs: &mut Exprs<'_>, value: Value| -> Option<Option<usize>> {
            let Some(at) = between_params.iter().position(|param| *param == value) else { return Some(None) };
            let state = back.args.iter().position(|arg| *arg == out.args[at])?;
            // Lanes that have nothing left over come with the same.
            (exprs.outside(around.args[at]) == exprs.outside(entering[state])).then_some(Some(state))
        };
        let mut states = Vec::new();
        for arg in &into_second.args {
            states.push(passed(&mut exprs, *arg)?);
        }
        // The number that is compared with a limit.
        let (again, over, until, stays) = ways(func, second)?;
        let test = func.def_inst(until).filter(|data| data.op == Op::IntCmp(IntCmp::LtS) && stays)?;
        let own = again.args.iter().position(|arg| *arg == test.args[0])?;
        let (number, limit) = (states[own]?, test.args[1]);
        let is_own = |value: Value| {
            [first, second, between]
                .into_iter()
                .chain(unrolled.enters_first)
                .chain(unrolled.enters_second)
                .any(|block| {
                    let data = func.block(block);
                    data.params.contains(&value)
                        || data.insts.iter().any(|inst| func.inst(*inst).results.contains(&value))
                })
        };
        let step_of = |state: usize| {
            let data = func.def_inst(back.args[state]).filter(|data| data.op == Op::Int(IntBinary::Add))?;
            let at = data.args.iter().position(|arg| *arg == params[state])?;
            let step = data.args[1 - at];
            (!is_own(step) || func.constant(step).is_some()).then_some(step)
        };
        let steps: Vec<Option<Value>> = (0..params.len()).map(step_of).collect();
        let step = steps[number]?;
        if is_own(limit) || func.ty(params[number]) != Type::I32 || is_used_elsewhere(func, unrolled) {
            return None;
        }
        // The first loop, as often as the second does it.
        let ids: Vec<Id> = (0..params.len()).map(|at| exprs.param(at)).collect();
        let step_id = exprs.outside(step);
        exprs.count(ids[number], step_id, times);
        let begins = substituted(&mut exprs, func, &ids, &entering, &steps, number);
        let (mut now, mut all, mut loaded) = (begins.clone(), Vec::new(), 0);
        for _ in 0..times {
            let done = run(&mut exprs, func, first, &now, &mut loaded)?;
            all.extend(done.accesses);
            now = back
                .args
                .iter()
                .map(|arg| done.values.get(arg).copied().unwrap_or_else(|| exprs.outside(*arg)))
                .collect();
        }
        // The second loop, with addresses of its own that are not known yet; then with what they turn out to be.
        let own_params = params.len();
        let unknown: Vec<Id> = (0..states.len()).map(|at| exprs.param(own_params + at)).collect();
        let known = |pointers: &HashMap<usize, Id>| -> Vec<Id> {
            let of = |(at, state): (usize, &Option<usize>)| match state {
                Some(state) => begins[*state],
                None => pointers.get(&at).copied().unwrap_or(unknown[at]),
            };
            states.iter().enumerate().map(of).collect()
        };
        let mut found: HashMap<usize, Id> = HashMap::new();
        let mut pointers = Vec::new();
        let trial = run(&mut exprs, func, second, &known(&found), &mut 0)?;
        if trial.accesses.len() != all.len() {
            return None;
        }
        for (mine, theirs) in trial.accesses.iter().zip(&all) {
            let Some((term, further)) = exprs.term_and_constant(mine.2) else { continue };
            let Some(at) = unknown.iter().position(|id| *id == term).filter(|at| !found.contains_key(at))
            else {
                continue;
            };
            if states[at].is_some() {
                continue;
            }
            // Where the first loop is then, and one of its addresses that is a known distance from there.
            let place = exprs.plus(theirs.2, 0u64.wrapping_sub(further));
            let (state, distance) = (0..params.len())
                .filter(|state| func.ty(params[*state]) == Type::I64 && steps[*state].is_some())
                .find_map(|state| Some((state, exprs.distance(begins[state], place)?)))?;
            found.insert(at, place);
            pointers.push(Pointer { entering: into_second.args[at], state, further: distance });
        }
        let done = run(&mut exprs, func, second, &known(&found), &mut 0)?;
        if done.accesses != all {
            return None;
        }
        // It goes on as the first loop would.
        for (at, arg) in again.args.iter().enumerate() {
            let next = done.values.get(arg).copied().unwrap_or_else(|| exprs.outside(*arg));
            let wanted = match states[at] {
                Some(state) => now[state],
                None => {
                    let pointer = pointers.iter().find(|pointer| pointer.entering == into_second.args[at])?;
                    exprs.plus(now[pointer.state], pointer.further)
                }
            };
            if next != wanted {
                return None;
            }
        }
        // And so does what comes after.
        let around = Unrolled::edge(func, between, after)?;
        let mut leaving = Vec::new();
        for (own, other) in over.args.iter().zip(&around.args) {
            let next = done.values.get(own).copied();
            leaving.push(match next {
                None => {
                    if own != other || is_own(*own) {
                        return None;
                    }
                    Leaving::Value(*own)
                }
                Some(next) => {
                    let state = passed(&mut exprs, *other)??;
                    if now[state] != next {
                        return None;
                    }
                    Leaving::State(state)
                }
            });
        }
        let counted = Counted { begin: entering[number], limit };
        let is_known = func.constant(step) == Some(1)
            && !exprs.is_unsigned
            && counted.takes(func, unrolled)
            && known::is_left_out_alone(&mut exprs, func, unrolled)
            && {
                let between: Option<Vec<Id>> =
                    between_params.iter().map(|param| Some(begins[passed(&mut exprs, *param)??])).collect();
                let going_in =
                    between.and_then(|between| known::going_in(&mut exprs, func, unrolled, &between));
                going_in.is_some_and(|values| {
                    pointers.iter().all(|pointer| {
                        let at = into_second.args.iter().position(|arg| *arg == pointer.entering);
                        let there = exprs.plus(begins[pointer.state], pointer.further);
                        at.is_some_and(|at| values[at] == there)
                    })
                }) && !exprs.is_unsigned
            };
        let is_unsigned = exprs.is_unsigned;
        Some(Same { entering, counter, leaving, number, step, limit, is_unsigned, steps, pointers, is_known })
    }

    /// Whether two of the first loop's parameters are addresses that go up by the same constant.
    pub(super) fn go_along(&self, func: &Function, one: usize, other: usize) -> bool {
        let step = |at: usize| self.steps[at].and_then(|step| func.constant(step));
        let is_address = |at: usize| func.ty(self.entering[at]) == Type::I64;
        is_address(one) && is_address(other) && step(one).is_some() && step(one) == step(other)
    }

    /// What a parameter goes up by.
    pub(super) fn step(&self, make: &mut Maker<'_>, at: usize) -> Value {
        again(make, self.steps[at].expect("it has one"))
    }

    /// What must hold for a lane to take all its iterations in the first loop, with what it begins with.
    pub(super) fn tests(&self, unrolled: &Unrolled, make: &mut Maker<'_>, entering: &[Value]) -> Value {
        let (trips, times) = (unrolled.trips, unrolled.times);
        let step = again(make, self.step);
        let begin = entering[self.number];
        let wide = |make: &mut Maker<'_>, value| make.widened(Convert::SExt, value);
        let (first, by, limit) = (wide(make, begin), wide(make, step), wide(make, self.limit));
        let count = make.widened(Convert::ZExt, trips);
        let way = make.int(IntBinary::Mul, count, by);
        let end = make.int(IntBinary::Add, first, way);
        let zero = make.constant(Type::I64, 0);
        let [none, many, several] = [0, 1 << 30, times].map(|number| make.constant(Type::I32, number));
        let most = make.constant(Type::I64, i32::MAX as u64);
        let factor = make.constant(Type::I64, times);
        let back = make.int(IntBinary::Mul, by, factor);
        let sooner = make.int(IntBinary::Sub, end, back);
        // It ends after these iterations, and not before; numbers do not wrap on the way.
        let is_short = make.compare(IntCmp::LtU, trips, several);
        let goes_on = make.compare(IntCmp::LtS, sooner, limit);
        let mut tests = vec![make.compare(IntCmp::LtU, trips, many)];
        if self.are_counted_one_by_one(make.func, trips) {
            let wraps = make.constant(Type::I32, i32::MAX as u64);
            tests.push(make.compare(IntCmp::Ne, begin, wraps));
        } else {
            tests.extend([
                make.compare(IntCmp::Ne, trips, none),
                make.compare(IntCmp::GtS, by, zero),
                make.compare(IntCmp::GeS, end, limit),
                make.compare(IntCmp::LeS, end, most),
                make.int(IntBinary::Or, is_short, goes_on),
            ]);
        }
        if self.is_unsigned {
            tests.push(make.compare(IntCmp::GeS, first, zero));
        }
        // Where the second loop would begin.
        let left = unrolled.left;
        let passed = make.int(IntBinary::Mul, left, step);
        let later = make.int(IntBinary::Add, begin, passed);
        let blocks: Vec<Block> = [unrolled.between].into_iter().chain(unrolled.enters_second).collect();
        let mut map = HashMap::new();
        for (param, state) in self.between(make, unrolled) {
            if state == self.number {
                map.insert(param, later);
            }
        }
        // It is left out where there are fewer iterations than it takes at once.
        let simt_ir::Terminator::Branch { cond, then, .. } = make.func.block(unrolled.between).term.clone()
        else {
            return never(make, trips);
        };
        let Some(cond) = make.value_in(cond, &blocks, &mut map) else { return never(make, trips) };
        let leaves = through(make.func, &then).block == unrolled.after;
        let is_left_out = if leaves { cond } else { make.not(cond) };
        let (is_in, is_long) = (make.not(is_left_out), make.not(is_short));
        let both = make.int(IntBinary::And, is_left_out, is_short);
        let neither = make.int(IntBinary::And, is_in, is_long);
        tests.push(make.int(IntBinary::Or, both, neither));
        let left = make.widened(Convert::ZExt, left);
        for pointer in &self.pointers {
            let Some(begins) = make.value_in(pointer.entering, &blocks, &mut map) else {
                return never(make, trips);
            };
            let step = self.step(make, pointer.state);
            let way = make.int(IntBinary::Mul, left, step);
            let there = make.int(IntBinary::Add, entering[pointer.state], way);
            let further = make.constant(Type::I64, pointer.further);
            let there = make.int(IntBinary::Add, there, further);
            tests.push(make.compare(IntCmp::Eq, begins, there));
        }
        let all = tests.into_iter().reduce(|all, test| make.int(IntBinary::And, all, test));
        all.expect("there are tests")
    }

    /// Whether the iterations are as many as numbers from the first one up to the limit, or one: they end as they should then, if what comes after the
    /// first number does not wrap.
    fn are_counted_one_by_one(&self, func: &Function, trips: Value) -> bool {
        let begin = self.entering[self.number];
        let args = |value: Value, op: IntBinary| match func.def_inst(value) {
            Some(data) if data.op == Op::Int(op) => Some([data.args[0], data.args[1]]),
            _ => None,
        };
        let either_way = |[a, b]: [Value; 2]| [[a, b], [b, a]];
        let is_next = |value: Value| {
            let mut sums = args(value, IntBinary::Add).into_iter().flat_map(either_way);
            sums.any(|[a, b]| a == begin && func.constant(b) == Some(1))
        };
        let is_end = |value: Value| {
            let mut ends = args(value, IntBinary::MaxS).into_iter().flat_map(either_way);
            ends.any(|[a, b]| a == self.limit && is_next(b))
        };
        func.constant(self.step) == Some(1)
            && args(trips, IntBinary::Sub).is_some_and(|[end, start]| start == begin && is_end(end))
    }

    /// The parameters of the block between the loops, and what of the first loop comes there.
    fn between(&self, make: &Maker<'_>, unrolled: &Unrolled) -> Vec<(Value, usize)> {
        let Some((back, out, ..)) = ways(make.func, unrolled.first) else { return Vec::new() };
        let params = &make.func.block(unrolled.between).params;
        let state = |at: usize| back.args.iter().position(|arg| *arg == out.args[at]);
        params.iter().enumerate().filter_map(|(at, param)| Some((*param, state(at)?))).collect()
    }
}

/// What holds nowhere.
fn never(make: &mut Maker<'_>, value: Value) -> Value {
    make.compare(IntCmp::Ne, value, value)
}

/// A value from outside of a loop, or a constant in it.
fn again(make: &mut Maker<'_>, value: Value) -> Value {
    match make.func.constant(value) {
        Some(bits) => {
            let ty = make.func.ty(value);
            make.constant(ty, bits)
        }
        None => value,
    }
}

/// Whether a value is computed from places of threads and what the launch has, not from what memory holds or a loop around computes.
fn is_of_places(func: &Function, value: Value, depth: u32) -> bool {
    let Some(data) = func.def_inst(value).filter(|_| depth > 0) else { return false };
    let is_given = matches!(data.op, Op::Load(access) if access.space == Space::Param);
    (is_given || data.op.is_pure()) && data.args.iter().all(|arg| is_of_places(func, *arg, depth - 1))
}

/// The parameter that goes down by one in each iteration, to none.
fn counter(func: &Function, unrolled: &Unrolled, back: &[Value], cond: Value, stays: bool) -> Option<usize> {
    let test = func.def_inst(cond)?;
    let is_left = match test.op {
        Op::IntCmp(IntCmp::Ne) => stays,
        Op::IntCmp(IntCmp::Eq) => !stays,
        _ => false,
    };
    if !is_left || func.constant(test.args[1]) != Some(0) {
        return None;
    }
    let at = back.iter().position(|arg| *arg == test.args[0])?;
    let param = func.block(unrolled.first).params[at];
    let data = func.def_inst(test.args[0]).filter(|data| data.op == Op::Int(IntBinary::Add))?;
    let is_less = data.args[0] == param && func.constant(data.args[1]) == Some(u32::MAX.into());
    is_less.then_some(at)
}

/// Whether something else than the loops and what is between them uses what is computed there.
fn is_used_elsewhere(func: &Function, unrolled: &Unrolled) -> bool {
    let inner: Vec<Block> =
        [unrolled.between, unrolled.second].into_iter().chain(unrolled.enters_second).collect();
    let mut own: Vec<Value> = Vec::new();
    for block in &inner {
        own.extend(&func.block(*block).params);
        own.extend(func.block(*block).insts.iter().flat_map(|inst| &func.inst(*inst).results));
    }
    // What leads on from there is part of it.
    let is_inner = |block: &Block| inner.contains(block) || super::is_empty(func, *block);
    func.blocks().filter(|block| !is_inner(block)).any(|block| {
        let data = func.block(block);
        let args = data.insts.iter().flat_map(|inst| func.inst(*inst).args.iter().copied());
        args.chain(data.term.uses()).any(|value| own.contains(&value))
    })
}

/// The first loop's parameters, where addresses that go along with the counted number are told by it.
fn substituted(
    exprs: &mut Exprs<'_>,
    func: &Function,
    ids: &[Id],
    entering: &[Value],
    steps: &[Option<Value>],
    number: usize,
) -> Vec<Id> {
    let begin = exprs.outside(entering[number]);
    let mut all = ids.to_vec();
    for (at, step) in steps.iter().enumerate().filter(|(at, _)| func.ty(entering[*at]) == Type::I64) {
        let Some(step) = *step else { continue };
        let (own, step) = (exprs.outside(entering[at]), exprs.outside(step));
        if let Some(along) = exprs.along(own, step, begin) {
            all[at] = along;
        }
    }
    all
}
