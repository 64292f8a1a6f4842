//! Shared memory that registers can stand for.
//!
//! Threads put a tile into shared memory so that others can read it. Where one gang of warps is a whole block, those others are lanes beside them: a
//! row of the tile is one of the registers that it was stored from. If whatever is read of a tile is a row of it, nothing of it need be in memory.
//! A tile whose elements are read one by one, each for many lanes, is better off there.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use kernel_abi::Shape;
use simt_ir::{Block, Inst, InstData, Op, Order, Space, SpecialReg, Value, eval};

use crate::Prepared;
use crate::gang::Registers;

/// How far an address is followed.
const DEPTH: u32 = 24;

/// What registers stand for.
#[derive(Debug, Default)]
pub struct Held {
    loads: HashMap<Inst, Reload>,
    stores: HashSet<Inst>,
}

/// What a load gives: in each lane what a value that was stored is in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reload {
    /// The value.
    pub value: Value,
    /// For each lane, the one that has its element.
    pub lanes: Rc<[u32]>,
}

impl Held {
    /// Finds them, in a kernel whose shared variables end at `window`, for a machine with such vector registers.
    pub fn find(p: &Prepared, shape: &Shape, window: u64, registers: Registers) -> Held {
        let finder = Finder { p, shape, window, registers, known: RefCell::default() };
        let none = !shape.block_is_gang() || shape.dims > 2 || p.dispatched;
        if none { Held::default() } else { finder.find().unwrap_or_default() }
    }

    /// What a load gives, if it need not be one.
    pub fn reload(&self, load: Inst) -> Option<&Reload> {
        self.loads.get(&load)
    }

    /// Whether nobody reads from memory what this stores.
    pub fn is_unread(&self, store: Inst) -> bool {
        self.stores.contains(&store)
    }

    /// The loads that need not be, and the values they give lanes of.
    pub fn reloads(&self) -> impl Iterator<Item = (Inst, Value)> + '_ {
        self.loads.iter().map(|(load, reload)| (*load, reload.value))
    }
}

struct Finder<'a> {
    p: &'a Prepared,
    shape: &'a Shape,
    /// Where shared memory ends that every launch has.
    window: u64,
    registers: Registers,
    /// What has been asked for by [`Finder::numbers`].
    known: RefCell<HashMap<Value, Option<Rc<[u64]>>>>,
}

/// An access to shared memory at places that are known.
struct Known {
    inst: Inst,
    block: Block,
    is_store: bool,
    /// Where each lane's element begins.
    places: Vec<u64>,
    bytes: u64,
    /// From the first of their bytes to behind the last.
    span: Range<u64>,
}

impl Known {
    /// Bytes of all lanes.
    fn size(&self) -> u64 {
        self.places.len() as u64 * self.bytes
    }

    fn meets(&self, other: &Known) -> bool {
        self.span.start < other.span.end && other.span.start < self.span.end
    }
}

impl Finder<'_> {
    fn find(&self) -> Option<Held> {
        let accesses = self.accesses()?;
        let (stores, loads): (Vec<&Known>, Vec<&Known>) = accesses.iter().partition(|access| access.is_store);
        let by_inst: HashMap<Inst, &Known> = stores.iter().map(|store| (store.inst, *store)).collect();
        let mut sources: HashMap<Inst, (Inst, Reload)> = HashMap::new();
        for load in &loads {
            if let Some(store) = self.store_for(load, &by_inst)
                && let Some(lanes) = self.lanes(load, store)
            {
                let value = self.inst(store.inst).args[1];
                sources.insert(load.inst, (store.inst, Reload { value, lanes }));
            }
        }
        let read_from = |store: &Known| sources.values().filter(|(from, _)| *from == store.inst).count();
        let in_memory: Vec<&&Known> = loads.iter().filter(|load| !sources.contains_key(&load.inst)).collect();
        let unread: Vec<&Known> =
            stores.into_iter().filter(|store| !in_memory.iter().any(|load| load.meets(store))).collect();
        let mut wanted: Vec<&Known> = unread.iter().copied().filter(|store| read_from(store) > 0).collect();
        wanted.sort_by_key(|store| Reverse(read_from(store)));

        let mut tiles: Vec<&Known> = Vec::new();
        wanted.retain(|store| {
            if tiles.iter().any(|tile| tile.meets(store)) {
                return true;
            }
            let taken: u64 = tiles.iter().map(|tile| tile.size()).sum();
            let fits = taken + store.size() <= self.most_bytes();
            if fits {
                tiles.push(store);
            }
            fits
        });
        let is_held = |store: Inst| wanted.iter().any(|held| held.inst == store);
        let stores = unread.iter().filter(|store| read_from(store) == 0 || is_held(store.inst));
        let stores = stores.map(|store| store.inst).collect();
        let loads = sources.into_iter().filter(|(_, (store, _))| is_held(*store));
        Some(Held { loads: loads.map(|(load, (_, reload))| (load, reload)).collect(), stores })
    }

    /// What tiles may have in all. Half of the registers: the others are for what is computed of them.
    fn most_bytes(&self) -> u64 {
        u64::from(self.registers.count / 2 * self.registers.bytes)
    }

    fn inst(&self, inst: Inst) -> &InstData {
        self.p.func.inst(inst)
    }

    /// All accesses to shared memory, unless there are such at places that are not known.
    fn accesses(&self) -> Option<Vec<Known>> {
        let mut accesses = Vec::new();
        for &block in self.p.cfg.order() {
            for &inst in &self.p.func.block(block).insts {
                match self.inst(inst).op {
                    Op::Load(access) | Op::Store(access) if access.space == Space::Shared => {
                        accesses.push(self.known(inst, block)?);
                    }
                    op if is_elsewhere(&op) => {}
                    _ => return None,
                }
            }
        }
        Some(accesses)
    }

    fn known(&self, inst: Inst, block: Block) -> Option<Known> {
        let data = self.inst(inst);
        let (access, word, is_store) = match data.op {
            Op::Load(access) => (access, data.results[0], false),
            Op::Store(access) => (access, data.args[1], true),
            _ => return None,
        };
        if access.order != Order::Weak {
            return None;
        }
        let numbers = self.numbers(data.args[0], DEPTH)?;
        let bytes = u64::from(self.p.func.ty(word).bits() / 8) * u64::from(access.lanes);
        // Others are faults.
        let is_right =
            |place: &u64| place.is_multiple_of(bytes) && place.saturating_add(bytes) <= self.window;
        let place = |number: &u64| number.checked_add_signed(access.offset).filter(is_right);
        let places: Vec<u64> = numbers.iter().map(place).collect::<Option<_>>()?;
        let span = *places.iter().min()?..places.iter().max()? + bytes;
        Some(Known { inst, block, is_store, places, bytes, span })
    }

    /// What a value is in each lane, if that follows from where this is in its block.
    fn numbers(&self, value: Value, depth: u32) -> Option<Rc<[u64]>> {
        let (func, lanes) = (&self.p.func, self.shape.lanes() as usize);
        if let Some(constant) = func.constant(value) {
            return Some(vec![constant; lanes].into());
        }
        if let Some(known) = self.known.borrow().get(&value) {
            return known.clone();
        }
        let data = func.def_inst(value)?;
        let found: Option<Rc<[u64]>> = match data.op {
            // The gang begins with the block's first thread.
            Op::SpecialReg(SpecialReg::Tid(_)) => {
                let offsets = self.p.shapes.of(value).offsets(lanes)?;
                Some(offsets.iter().map(|offset| *offset as u64).collect())
            }
            op if depth > 0 && op.is_pure() && data.results.len() == 1 => {
                let args = data.args.iter().map(|arg| self.numbers(*arg, depth - 1));
                let args: Vec<Rc<[u64]>> = args.collect::<Option<_>>()?;
                let types: Vec<_> = data.args.iter().map(|arg| func.ty(*arg)).collect();
                let in_lane = |lane: usize| {
                    let args: Vec<u64> = args.iter().map(|numbers| numbers[lane]).collect();
                    eval::eval(op, &args, &types, func.ty(value))
                };
                (0..lanes).map(in_lane).collect()
            }
            _ => None,
        };
        self.known.borrow_mut().insert(value, found.clone());
        found
    }

    /// The store that wrote last where a load reads, if control comes from it in one way.
    fn store_for<'k>(&self, load: &Known, stores: &HashMap<Inst, &'k Known>) -> Option<&'k Known> {
        let known = |inst: &Inst| stores.get(inst).copied();
        let mut block = load.block;
        let insts = &self.p.func.block(block).insts;
        let mut before = &insts[..insts.iter().position(|inst| *inst == load.inst)?];
        let mut passed = HashSet::from([block]);
        loop {
            let last = before.iter().rev().filter_map(known).find(|store| store.meets(load));
            if let Some(store) = last {
                return Some(store);
            }
            let [from] = self.p.cfg.preds(block) else { return None };
            if !passed.insert(*from) {
                return None;
            }
            block = *from;
            before = &self.p.func.block(block).insts;
        }
    }

    /// Which lane stored what each lane loads, if all of them stored and each register that is loaded is one that was stored.
    fn lanes(&self, load: &Known, store: &Known) -> Option<Rc<[u32]>> {
        let p = self.p;
        let all = |access: &Known| p.full[access.block.index()];
        let (from, to) = (self.inst(store.inst), self.inst(load.inst));
        let single = from.args.len() == 2 && to.results.len() == 1;
        if !single || !all(load) || !all(store) || load.bytes != store.bytes || !store.bytes.is_power_of_two()
        {
            return None;
        }
        let in_register = (u64::from(self.registers.bytes) / store.bytes).max(1) as usize;
        let follow = |places: &[u64]| places.windows(2).all(|pair| pair[1] == pair[0] + store.bytes);
        let in_rows = |access: &Known| access.places.chunks(in_register).all(follow);
        if store.places.len() < in_register || !in_rows(store) || !in_rows(load) {
            return None;
        }
        let mut at = HashMap::new();
        for (lane, place) in store.places.iter().enumerate() {
            if at.insert(*place, lane as u32).is_some() {
                return None;
            }
        }
        let lanes: Vec<u32> =
            load.places.iter().map(|place| at.get(place).copied()).collect::<Option<_>>()?;
        let whole = |lanes: &[u32]| {
            lanes[0].is_multiple_of(in_register as u32) && lanes.windows(2).all(|pair| pair[1] == pair[0] + 1)
        };
        lanes.chunks(in_register).all(whole).then(|| lanes.into())
    }
}

/// Whether an operation does nothing with a block's shared memory, nor tells anybody where it is.
fn is_elsewhere(op: &Op) -> bool {
    match op {
        Op::ToGeneric(space) | Op::FromGeneric(space) => *space != Space::Shared,
        Op::MatrixMultiply(multiply) => multiply.in_memory.is_none(),
        Op::MbarrierArrive { .. }
        | Op::Bulk(_)
        | Op::ClusterBarrier(_)
        | Op::Call(_)
        | Op::CallIndirect(_)
        | Op::Syscall(_) => false,
        op => op.access().is_none_or(|access| access.space != Space::Shared),
    }
}
