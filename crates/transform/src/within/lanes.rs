//! What bounds an index, and how values differ between lanes where nothing leaves its bounds.

use std::collections::{HashMap, HashSet};

use kernel_abi::XLayout;
use simt_ir::{Convert, Def, Function, Inst, IntBinary, IntCmp, Op, Shift, Space, SpecialReg, Type, Value};

use super::Search;
use crate::rejoined::Rejoined;
use crate::rows::InRow;

/// How far definitions are followed.
pub const DEPTH: u32 = 64;

/// How many values are looked at for one that something follows from.
const FOLLOWED: usize = 256;

/// How a value differs between lanes, as far as it is easily seen: what is computed from it decides, not this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It is the same in a warp.
    Same,
    /// It grows evenly from lane to lane.
    Even,
    /// Anything.
    Any,
}

/// Something bounded.
pub struct Bound {
    pub result: Value,
    /// What it usually is.
    pub usual: Value,
    /// When.
    pub tests: Vec<Comparison>,
}

impl Bound {
    /// Whether it is what one of these instructions bounds, or comes to their block.
    pub fn is_of(&self, func: &Function, insts: &[Inst]) -> bool {
        match func.def(self.result) {
            Def::Result(inst, _) => insts.contains(&inst),
            Def::Param(..) => true,
            Def::Removed => false,
        }
    }

    /// What a part takes in its place: what it usually is, and what is compared.
    pub fn takes(&self) -> impl Iterator<Item = Value> {
        let compared = self.tests.iter().flat_map(|(_, a, b)| [Some(*a), *b]).flatten();
        compared.chain([self.usual])
    }
}

/// A comparison with a value, or with zero.
pub type Comparison = (IntCmp, Value, Option<Value>);

/// What differs between lanes if nothing leaves its bounds.
pub struct Lanes<'a> {
    search: &'a Search<'a>,
    usual: HashMap<Value, Value>,
    kinds: HashMap<Value, Kind>,
    /// How deep the search for a kind is.
    depth: u32,
    bounded: HashMap<Value, bool>,
    fixed: HashMap<Value, bool>,
    /// Whether something of [`rejoined`](crate::rejoined) is among what is bounded.
    has_rejoined: bool,
}

impl<'a> Lanes<'a> {
    pub fn new(search: &'a Search<'a>) -> Lanes<'a> {
        Lanes {
            search,
            usual: HashMap::new(),
            kinds: HashMap::new(),
            depth: 0,
            bounded: HashMap::new(),
            fixed: HashMap::new(),
            has_rejoined: false,
        }
    }

    /// Nothing leaves these bounds.
    pub fn keep(&mut self, bound: &Bound) {
        self.usual.insert(bound.result, bound.usual);
        self.has_rejoined |= self.search.rejoined.contains_key(&bound.result);
    }

    /// What an instruction bounds, if it bounds what grows evenly by what is the same for all lanes.
    pub fn bound(&mut self, inst: Inst) -> Option<Bound> {
        let func = self.search.func;
        if let Some(InRow { number, width, usual, tests }) = self.search.in_row.get(&inst) {
            let kinds = [*number, *width].map(|arg| self.kind(arg));
            let result = func.inst(inst).results[0];
            let is_bits = matches!(func.inst(inst).op, Op::Int(IntBinary::And) | Op::Shift(_));
            let may_leave = kinds == [Kind::Even, Kind::Same] && (!is_bits || self.search.may_carry(*number));
            return may_leave.then(|| Bound { result, usual: *usual, tests: tests.clone() });
        }
        if !may_bound(func, inst) {
            return None;
        }
        let data = func.inst(inst);
        let result = data.results[0];
        if data.op == Op::Select {
            return self.choice(result, data.args[0], data.args[1], data.args[2]);
        }
        let Op::Int(op) = data.op else { return None };
        let [first, second] = [data.args[0], data.args[1]].map(|arg| self.in_bounds(arg));
        let (even, limit) = match (self.kind(first), self.kind(second)) {
            (Kind::Even, Kind::Same) => (first, second),
            (Kind::Same, Kind::Even) if !matches!(op, IntBinary::RemS | IntBinary::RemU) => (second, first),
            _ => return None,
        };
        let usual = self.search.around.get(&inst).copied().unwrap_or(even);
        if self.kind(usual) != Kind::Even {
            return None;
        }
        let mut tests = match op {
            IntBinary::MinS => vec![(IntCmp::LeS, even, Some(limit))],
            IntBinary::MaxS => vec![(IntCmp::GeS, even, Some(limit))],
            IntBinary::MinU => vec![(IntCmp::LeU, even, Some(limit))],
            IntBinary::MaxU => vec![(IntCmp::GeU, even, Some(limit))],
            IntBinary::RemU => vec![(IntCmp::LtU, usual, Some(limit))],
            IntBinary::RemS => vec![(IntCmp::GeS, usual, None), (IntCmp::LtS, usual, Some(limit))],
            _ => return None,
        };
        if usual != even {
            // With the divisor it must not have wrapped.
            tests.push((if op == IntBinary::RemU { IntCmp::GeU } else { IntCmp::GeS }, even, Some(limit)));
        }
        Some(Bound { result, usual, tests })
    }

    /// What a parameter of a block is where lanes have left a loop together.
    pub fn rejoined(&mut self, param: Value) -> Option<Bound> {
        let Rejoined { usual, before, exits } = self.search.rejoined.get(&param)?;
        let may_part =
            exits.iter().any(|exit| self.kind(*exit) != Kind::Same && !self.is_fixed(*exit, DEPTH));
        let is_even = self.kind(param) == Kind::Even && self.kind(*before) == Kind::Even;
        let tests = vec![(IntCmp::Eq, param, Some(*usual))];
        (may_part && is_even).then_some(Bound { result: param, usual: *usual, tests })
    }

    /// A choice, at an edge, between what grows evenly and what is the same for all lanes: usually the former. Or between two steps that are, as
    /// `x == 0 ? 0 : -1`: usually what lanes have that are at no edge.
    fn choice(&mut self, result: Value, cond: Value, first: Value, second: Value) -> Option<Bound> {
        let func = self.search.func;
        let data = func.def_inst(cond)?;
        let Op::IntCmp(cmp) = data.op else { return None };
        let [a, b] = [data.args[0], data.args[1]].map(|arg| self.in_bounds(arg));
        let is_index = matches!(func.ty(a), Type::I32 | Type::I64);
        let compared = (self.kind(a), self.kind(b));
        if !is_index || !matches!(compared, (Kind::Even, Kind::Same) | (Kind::Same, Kind::Even)) {
            return None;
        }
        let [first, second] = [first, second].map(|arg| self.in_bounds(arg));
        let is_first = match (self.kind(first), self.kind(second)) {
            (Kind::Even, Kind::Same) => true,
            (Kind::Same, Kind::Even) => false,
            (Kind::Same, Kind::Same) => match cmp {
                IntCmp::Eq => false,
                IntCmp::Ne => true,
                // Those at the edge stay where they are.
                _ => match [first, second].map(|step| func.constant(step) == Some(0)) {
                    [true, false] => false,
                    [false, true] => true,
                    _ => return None,
                },
            },
            _ => return None,
        };
        let (usual, cmp) = if is_first { (first, cmp) } else { (second, cmp.inverse()) };
        Some(Bound { result, usual, tests: vec![(cmp, a, Some(b))] })
    }

    /// What a value is if nothing leaves its bounds.
    fn in_bounds(&self, mut value: Value) -> Value {
        while let Some(usual) = self.usual.get(&value) {
            value = *usual;
        }
        value
    }

    pub fn kind(&mut self, value: Value) -> Kind {
        let value = self.in_bounds(value);
        if let Some(known) = self.kinds.get(&value) {
            return *known;
        }
        if self.depth == DEPTH {
            return Kind::Any;
        }
        // What a loop passes on to itself is what it began with and what is added.
        self.kinds.insert(value, Kind::Same);
        self.depth += 1;
        let kind = self.found(value);
        self.depth -= 1;
        self.kinds.insert(value, kind);
        kind
    }

    fn found(&mut self, value: Value) -> Kind {
        let Search { func, shape, .. } = *self.search;
        let data = match func.def(value) {
            Def::Result(inst, _) => func.inst(inst),
            Def::Param(..) => {
                let args = self.passed(value);
                return args.into_iter().map(|arg| self.kind(arg)).max().unwrap_or(Kind::Any);
            }
            Def::Removed => return Kind::Any,
        };
        match data.op {
            Op::SpecialReg(SpecialReg::Tid(axis)) => match shape.x {
                _ if axis >= shape.dims => Kind::Same,
                XLayout::Rows if axis > 0 => Kind::Same,
                XLayout::Irregular => Kind::Any,
                _ => Kind::Even,
            },
            Op::SpecialReg(
                SpecialReg::Ntid(_) | SpecialReg::CtaId(_) | SpecialReg::NctaId(_) | SpecialReg::WarpId,
            ) => Kind::Same,
            Op::AnyLane => Kind::Same,
            // All lanes read the same element.
            Op::Load(access) if access.space != Space::Local => match self.widest(&data.args) {
                Kind::Same => Kind::Same,
                _ => Kind::Any,
            },
            Op::Int(IntBinary::Add | IntBinary::Sub)
            | Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc)
            | Op::ToGeneric(Space::Global | Space::Const | Space::Shared)
            | Op::FromGeneric(Space::Global | Space::Const | Space::Shared) => self.widest(&data.args),
            // Rows of a block may be any distance apart.
            Op::Int(IntBinary::Mul) | Op::Shift(Shift::Left) => {
                let both = self.kind(data.args[0]) == self.kind(data.args[1]);
                match self.widest(&data.args) {
                    Kind::Even if both => Kind::Any,
                    kind => kind,
                }
            }
            op if op.is_pure() && self.widest(&data.args) == Kind::Same => Kind::Same,
            _ => Kind::Any,
        }
    }

    fn widest(&mut self, values: &[Value]) -> Kind {
        values.iter().map(|value| self.kind(*value)).max().unwrap_or(Kind::Same)
    }

    /// Whether a value is computed from a thread's place in its block alone: each lane's is known then (`shapes`).
    fn is_fixed(&mut self, value: Value, depth: u32) -> bool {
        if let Some(known) = self.fixed.get(&value) {
            return *known;
        }
        if depth == 0 {
            return false;
        }
        // What a loop passes on to itself is computed from what it began with.
        self.fixed.insert(value, true);
        let args = match self.search.func.def_inst(value) {
            None => self.passed(value),
            Some(data) => match data.op {
                Op::SpecialReg(SpecialReg::Tid(_) | SpecialReg::Ntid(_)) => Vec::new(),
                op if op.is_pure() && !matches!(op, Op::SpecialReg(_)) => data.args.clone(),
                _ => vec![value],
            },
        };
        let is = args.iter().all(|arg| *arg != value && self.is_fixed(*arg, depth - 1));
        self.fixed.insert(value, is);
        is
    }

    /// What comes to a parameter of a block.
    fn passed(&self, param: Value) -> Vec<Value> {
        let Search { func, cfg, .. } = *self.search;
        let Def::Param(block, index) = func.def(param) else { return Vec::new() };
        cfg.passed(func, block, index as usize).collect()
    }

    /// Whether a value is computed from something bounded, by whatever operations and ways.
    pub fn follows(&self, value: Value) -> bool {
        let mut seen: HashSet<Value> = HashSet::new();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if self.usual.contains_key(&value) {
                return true;
            }
            if seen.len() > FOLLOWED {
                return false;
            }
            let args = match self.search.func.def_inst(value) {
                Some(data) if data.op.is_pure() => data.args.clone(),
                Some(_) => continue,
                None => self.passed(value),
            };
            open.extend(args.into_iter().filter(|arg| seen.insert(*arg)));
        }
        false
    }

    /// Whether an address is computed from something bounded.
    pub fn is_bounded(&mut self, value: Value, depth: u32) -> bool {
        if self.usual.contains_key(&value) {
            return true;
        }
        if let Some(known) = self.bounded.get(&value) {
            return *known;
        }
        // What a loop passes on to itself is what it began with, and so as bounded.
        self.bounded.insert(value, false);
        let is_passed = self.has_rejoined
            && depth > 0
            && self.passed(value).iter().any(|arg| self.is_bounded(*arg, depth - 1));
        let is = is_passed
            || self.search.func.def_inst(value).filter(|_| depth > 0).is_some_and(|data| {
                keeps_bounds(&data.op) && data.args.iter().any(|arg| self.is_bounded(*arg, depth - 1))
            });
        self.bounded.insert(value, is);
        is
    }
}

/// Whether an instruction is of a kind that bounds an index.
pub fn may_bound(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    let is_index = |value: Value| matches!(func.ty(value), Type::I32 | Type::I64);
    matches!(
        data.op,
        Op::Int(
            IntBinary::MinS
                | IntBinary::MaxS
                | IntBinary::MinU
                | IntBinary::MaxU
                | IntBinary::RemS
                | IntBinary::RemU
        ) | Op::Select
    ) && is_index(data.results[0])
}

/// Whether what is computed by it from a bounded index is one, or the address of one.
pub fn keeps_bounds(op: &Op) -> bool {
    matches!(
        op,
        Op::Int(
            IntBinary::Add
                | IntBinary::Sub
                | IntBinary::Mul
                // Of a row, as the channel `i / size % channels` of a pixel.
                | IntBinary::DivS
                | IntBinary::DivU
                | IntBinary::RemS
                | IntBinary::RemU
        ) | Op::Shift(_)
            | Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc)
            | Op::ToGeneric(_)
            | Op::FromGeneric(_)
    )
}

/// Whether it takes what lies at an address that lanes may have side by side.
pub fn is_access(op: &Op) -> bool {
    matches!(op, Op::Load(access) | Op::Store(access) if !matches!(access.space, Space::Param | Space::Local))
}
