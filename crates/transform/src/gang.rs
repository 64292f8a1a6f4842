//! Which warps of a block run as one, and which in parts.
//!
//! A *gang* is several consecutive warps of a block, run as one warp with more lanes: every operation is one on longer vectors, which the
//! processor does in pieces. What the warps share, such as the row of a tile that all of them read, is loaded once for all, and the
//! pieces do not depend on each other, so that they hide each other's latency. Between two barriers the warps of a block have no order, so
//! one in step is as good as any. A gang comes to a barrier once where its warps would one after another, which pays by itself where barriers are
//! near to each other; where it is the whole block, its barriers order memory and nothing else.
//!
//! Where on the other hand the values of one warp are too many for the registers, as the sums that each thread of a product keeps, its lanes run in
//! *strips*, one after another up to each barrier; where they have nothing in common, in strips of one lane (`singly`).
//!
//! A kernel whose warp is one long formula runs two warps at once too, or as many as it takes to keep the processor busy, which sees too little of
//! the next one to do that meanwhile (`chains`).
//!
//! A block of so few threads that a vector has them all is as one gang ([`Shape::in_one`]).
//!
//! Not every kernel can: what a warp means to an operation, a gang does not. And not every one gains: code for more lanes takes longer to compile, and
//! values that do not fit into registers are slower than warps one after another.

use std::collections::{HashMap, HashSet};

use kernel_abi::Shape;
use simt_ir::{
    Access, BarrierKind, Block, Function, Inst, InstData, Op, Order, Space, SpecialReg, Type, Value,
};

use crate::prepare::{self, prepare};
use crate::reroll::{self, Whose};
use crate::{LaneShape, LoopId, Prepared, abreast, chains, in_step, singly, stragglers, stride};

/// The vector registers of a processor.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// How many.
    pub count: u32,
    /// The bytes of one.
    pub bytes: u32,
}

impl Registers {
    /// How many the values in a loop may take.
    fn spent(self) -> u32 {
        self.count * 5 / 8
    }

    /// How many a value of each lane takes.
    fn taken(self, shape: &Shape, ty: Type) -> u32 {
        (shape.lanes() * ty.bits() / 8).div_ceil(self.bytes)
    }

    /// Whether a value of so many bytes leaves none half empty.
    fn are_filled(self, shape: &Shape, bytes: u32) -> bool {
        self.bytes <= bytes * shape.lanes()
    }
}

/// Operations on vectors up to which code is short.
const SHORT: usize = 96;
/// Operations on vectors up to which a gang's code may be long.
const LONG: usize = 4 * SHORT;
/// Operations on vectors of words, from one barrier to the next, that take no longer than a suspension.
const NEAR: usize = 48;

/// Instructions on vectors that a processor looks ahead: as many results have registers.
const LOOK_AHEAD: u32 = 160;
/// Instructions that it needs at hand for each that it waits for, to be busy: a sum or product takes so many cycles.
const AT_ONCE: u32 = 4;

/// Values that a loop carries from one iteration to the next of which a processor computes enough at once.
const SUMS: usize = 8;

/// When warps run in gangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Where that is faster.
    WhereItPays,
    /// Wherever they can, in gangs as large as ever pay on the processor: for tests.
    Always,
    /// Wherever they can, in strips: for tests.
    InStrips,
    /// Wherever they can, in strips of one lane: for tests.
    Singly,
    /// Never, and wherever they can in strips whose values take a register each, for less code: a vector of several registers is as many
    /// of most instructions.
    ForLessCode,
}

/// The shape for a kernel whose warps should run in gangs or in strips, or one by one, and the kernel prepared for it; nothing if its lanes
/// cannot run in step.
pub fn choose(
    func: &Function,
    shape: &Shape,
    registers: Registers,
    choice: Choice,
) -> Option<(Shape, Prepared)> {
    let uses = Uses::of(func);
    if choice == Choice::ForLessCode
        && let Some(chosen) = in_narrow_strips(func, shape, registers, &uses)
    {
        return Some(chosen);
    }
    let prepared = prepare(func.clone(), true, shape).ok()?;
    if in_step::obstacle(&prepared).is_some() {
        return None;
    }
    let alone = match choice {
        Choice::WhereItPays => singly::pays(&prepared),
        Choice::Singly => singly::is_possible(&prepared),
        _ => false,
    };
    if alone
        && !Gang::new(&prepared, shape, registers).shares_a_word()
        && let Some(chosen) = in_single_lanes(func, shape)
    {
        return Some(chosen);
    }
    if matches!(choice, Choice::ForLessCode | Choice::Singly) || !uses.allowed {
        return Some((*shape, prepared));
    }
    if let Some(chosen) = in_one(func, shape, registers, &uses) {
        return Some(chosen);
    }
    if choice == Choice::WhereItPays && stragglers::has_loops_of_their_own(&prepared, shape) {
        return Some((*shape, prepared));
    }
    let warp = Gang::new(&prepared, shape, registers);
    let chosen = match (uses.barriers, uses.shared) {
        (true, true) => in_gangs(func, shape, &warp, choice),
        (false, shared) if choice != Choice::Always => in_strips_alone(func, shape, &warp, choice)
            .or_else(|| if shared { None } else { in_pairs(func, shape, &warp, choice) })
            .or_else(|| if shared { None } else { in_steps(func, shape, &warp, choice) }),
        _ if choice == Choice::WhereItPays => None,
        _ => in_gangs(func, shape, &warp, choice),
    };
    Some(chosen.unwrap_or((*shape, prepared)))
}

/// The shape for lanes one at a time.
fn in_single_lanes(func: &Function, shape: &Shape) -> Option<(Shape, Prepared)> {
    let lane = shape.in_strips(kernel_abi::WARP as u8)?;
    let mut func = func.clone();
    prepare::straighten_out(&mut func, &lane);
    reroll::reroll(&mut func, Whose::OfLanes);
    let prepared = prepare(func, true, &lane).ok()?;
    Some((lane, prepared))
}

/// The shape for gangs or strips, if they pay, where this is what a warp does by itself.
fn in_gangs(func: &Function, shape: &Shape, warp: &Gang<'_>, choice: Choice) -> Option<(Shape, Prepared)> {
    if shape.gangs.most == 1 {
        return None;
    }
    let registers = warp.registers;
    let needed = warp.registers_needed();
    if choice == Choice::InStrips || choice == Choice::WhereItPays && needed > registers.count {
        return in_strips(func, shape, warp, choice);
    }
    let (alone, is_light, busy) = (warp.loads(), warp.is_light(), warp.busy_together());
    for warps in sizes(shape) {
        let shape = shape.in_gangs(warps);
        // One value must fit. What differs between the lanes of a warp does between those of a gang, which takes no fewer registers then.
        let keeps_busy = busy == Some(warps) && needed * u32::from(warps) <= 2 * registers.count;
        let could_pay =
            warp.could_pay(needed * u32::from(warps), is_light) || warp.spares_waits(warps) || keeps_busy;
        if registers.taken(&shape, Type::I32) > registers.spent()
            || choice == Choice::WhereItPays && !could_pay
        {
            continue;
        }
        let prepared = prepare(func.clone(), true, &shape).ok()?;
        let gang = Gang::new(&prepared, &shape, registers);
        let pays = || gang.pays(alone * usize::from(warps)) || gang.spares_waits(warps) || keeps_busy;
        if gang.is_possible() && (choice == Choice::Always || pays()) {
            return Some((shape, prepared));
        }
    }
    None
}

/// The warps of the gangs that a block could be run in, most first.
fn sizes(shape: &Shape) -> impl Iterator<Item = u8> + use<> {
    let halves = std::iter::successors(Some(shape.gangs.most), |warps| Some(warps / 2));
    halves.take_while(|warps| *warps > 1)
}

/// The shape for strips of a kernel without barriers, each of which runs to its end. Two registers of each value are enough for the processor to
/// do one thing while it waits for another.
fn in_strips_alone(
    func: &Function,
    shape: &Shape,
    warp: &Gang<'_>,
    choice: Choice,
) -> Option<(Shape, Prepared)> {
    let crowded = || {
        let needed = warp.registers_needed();
        let each = warp.registers_of(warp.usual_bytes(needed));
        needed > warp.registers.count
            && (each > 2 || each == 2 && 4 * needed > 5 * warp.registers.count && warp.is_busy_in_halves())
    };
    if choice == Choice::WhereItPays && !crowded() {
        return None;
    }
    in_strips(func, shape, warp, choice)
}

/// The shape for two warps at once of a kernel without barriers, which wait for one result after another where a single one would.
fn in_pairs(func: &Function, shape: &Shape, warp: &Gang<'_>, choice: Choice) -> Option<(Shape, Prepared)> {
    let registers = warp.value_registers();
    // Rows of a block run in an order of their own: `emit::entry`.
    let possible = shape.gangs.most > 1 && shape.dims == 1 && registers <= 2;
    if choice != Choice::WhereItPays || !possible {
        return None;
    }
    let cost = chains::of(warp.p)?;
    // What does not fit is put aside, and costs less than the waits as long as that is half of it.
    if !waits(cost, registers) || warp.registers_needed() > warp.registers.count {
        return None;
    }
    at_once(2, func, shape, warp)
}

/// The shape for a vector with all threads of a block, where they are few: none waits at barriers, and no lanes of a vector are nobody's.
fn in_one(func: &Function, shape: &Shape, registers: Registers, uses: &Uses) -> Option<(Shape, Prepared)> {
    let one = shape.in_one()?;
    // A warp is a vector as it is.
    let gains = if one.lanes() == kernel_abi::WARP { uses.barriers } else { !lanes_meet(func) };
    if !gains {
        return None;
    }
    let prepared = prepare(func.clone(), true, &one).ok()?;
    Gang::new(&prepared, &one, registers).is_possible().then_some((one, prepared))
}

/// The shape for several warps at once of a kernel without barriers that goes over memory in steps.
///
/// Where warps take turns, an iteration each, a turn takes something beside the iteration, and the processor sees as much further ahead, to the loads that
/// it will wait for. Where loops go over rows in steps of a block, a warp alone touches a small piece of each step, and comes to the row once for
/// each warp; more than two gain little more, and are more code. Where they go in steps of the grid and warps cannot take turns, since they keep sums, the
/// next piece is far away, and the larger each is, the better.
fn in_steps(func: &Function, shape: &Shape, warp: &Gang<'_>, choice: Choice) -> Option<(Shape, Prepared)> {
    let possible = shape.gangs.most > 1 && shape.dims == 1;
    if choice != Choice::WhereItPays || !possible || !warp.is_light() {
        return None;
    }
    let (needed, count) = (warp.registers_needed(), warp.registers.count);
    // In loops that lanes leave one by one, more of them wait for each other.
    let turns = stride::latches(warp.p).len();
    let in_turns = turns > 0 && turns >= warp.p.loops.count();
    if turns == 0 && stride::goes_over_grid(warp.p) {
        let fits = |warps: &u8| u32::from(*warps) * needed <= 2 * count;
        return sizes(shape).find(fits).and_then(|warps| at_once(warps, func, shape, warp));
    }
    if 2 * needed > count || !in_turns && !stride::goes_over_rows(warp.p) {
        return None;
    }
    at_once(2, func, shape, warp)
}

/// The shape for so many warps at once, if they can.
fn at_once(warps: u8, func: &Function, shape: &Shape, warp: &Gang<'_>) -> Option<(Shape, Prepared)> {
    let shape = shape.in_gangs(warps);
    let prepared = prepare(func.clone(), true, &shape).ok()?;
    Gang::new(&prepared, &shape, warp.registers).is_possible().then_some((shape, prepared))
}

/// Whether the processor waits for one result after another where each value takes so many registers: it does not see what comes next, and has too
/// little at hand.
fn waits(cost: chains::Cost, registers: u32) -> bool {
    let work = cost.work * registers;
    work > LOOK_AHEAD && work < AT_ONCE * cost.latency
}

/// The shape with as few strips as it takes to keep what lives in loops in registers.
fn in_strips(func: &Function, shape: &Shape, warp: &Gang<'_>, choice: Choice) -> Option<(Shape, Prepared)> {
    // Where all lanes of a warp come to each barrier, all strips do.
    if lanes_meet(func) || !warp.is_possible() || warp.shares_a_word() {
        return None;
    }
    // Strips of parts of a row have not shown what they gain where there is time.
    let of_rows = |strip: &Shape| strip.x == shape.x || strip.lanes() == shape.row_lanes();
    let strips = [2, 4].into_iter().map_while(|strips| shape.in_strips(strips).filter(of_rows));
    let bytes = warp.usual_bytes(warp.registers_needed());
    let mut fallback: Option<((Shape, Prepared), u32)> = None;
    for shape in strips {
        if !warp.registers.are_filled(&shape, bytes) {
            break;
        }
        let prepared = prepare(func.clone(), true, &shape).ok()?;
        let strip = Gang::new(&prepared, &shape, warp.registers);
        if !strip.is_possible() {
            break;
        }
        if choice == Choice::InStrips
            || 8 * strip.registers_needed() <= 9 * warp.registers.count
            || choice == Choice::WhereItPays && strip.hides_waits()
        {
            return Some((shape, prepared));
        }
        // What of them is put aside costs little where that is less than half. Otherwise everything waits for it, and two registers of each value
        // hide that; lanes in more strips are only more code.
        let needed = strip.registers_needed();
        let mostly_fits = |needed: u32| needed <= 2 * warp.registers.count;
        let better = fallback.as_ref().is_none_or(|(_, before)| !mostly_fits(*before) && mostly_fits(needed));
        if warp.registers_of(bytes) > 2 && strip.registers_of(bytes) <= 2 && better {
            fallback = Some(((shape, prepared), needed));
        }
    }
    fallback.map(|(chosen, _)| chosen)
}

/// The shape for the most strips that fill a register with a value of 32 bits each.
fn in_narrow_strips(
    func: &Function,
    shape: &Shape,
    registers: Registers,
    uses: &Uses,
) -> Option<(Shape, Prepared)> {
    if !uses.allowed || lanes_meet(func) {
        return None;
    }
    let mut shapes = [4, 2].into_iter().filter_map(|strips| shape.in_strips(strips));
    let narrow = shapes.find(|shape| registers.are_filled(shape, 4))?;
    let possible = |shape: &Shape| {
        let prepared = prepare(func.clone(), true, shape).ok()?;
        let strip = Gang::new(&prepared, shape, registers);
        (strip.is_possible() && !strip.shares_a_word()).then_some(prepared)
    };
    let prepared = possible(&narrow)?;
    // What all lanes of a strip come to, only some strips of a warp may. Without barriers that is nothing to them.
    if uses.barriers {
        possible(shape)?;
    }
    Some((narrow, prepared))
}

/// Whether lanes meet between barriers, those of other strips are not to be had there, or lanes are numbered within a warp.
fn lanes_meet(func: &Function) -> bool {
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts);
    insts.any(|inst| match func.inst(*inst).op {
        Op::Shuffle(_) | Op::Vote(_) | Op::Redux(_) | Op::WarpSync | Op::Atomic(..) => true,
        Op::SpecialReg(reg) => reg.is_of_lane(),
        _ => false,
    })
}

/// What decides about a kernel as a whole.
struct Uses {
    /// Every operation means to a gang or a strip what it means to warps.
    allowed: bool,
    barriers: bool,
    shared: bool,
}

impl Uses {
    fn of(func: &Function) -> Uses {
        let mut uses = Uses { allowed: true, barriers: false, shared: false };
        let insts = func.blocks().flat_map(|block| &func.block(block).insts);
        uses.allowed = insts.into_iter().all(|inst| is_allowed(func, *inst, &mut uses));
        uses
    }
}

fn is_allowed(func: &Function, inst: Inst, uses: &mut Uses) -> bool {
    let data = func.inst(inst);
    match data.op {
        Op::Load(access) | Op::Store(access) => {
            uses.shared |= access.space == Space::Shared;
            access.order == Order::Weak && access.space != Space::Local
        }
        Op::Barrier { .. } => {
            uses.barriers = true;
            is_for_all(func, data)
        }
        Op::SpecialReg(reg) => reg != SpecialReg::WarpId && !reg.is_counter(),
        Op::Shuffle(_) => {
            let constants: Vec<_> = data.args[1..].iter().map(|arg| func.constant(*arg)).collect();
            constants.iter().all(Option::is_some)
                && constants.get(2).is_none_or(|all| *all == Some(u32::MAX.into()))
        }
        Op::Vote(_) | Op::Redux(_) | Op::WarpSync => {
            let members = usize::from(data.op != Op::WarpSync);
            data.args.get(members).is_none_or(|all| func.constant(*all) == Some(u32::MAX.into()))
        }
        Op::Atomic(_, access) => {
            access.lanes == 1
                && matches!(access.order, Order::Weak | Order::Relaxed)
                && access.space != Space::Local
        }
        Op::GiveWay => true,
        Op::LocalBase | Op::ToGeneric(Space::Local) | Op::FromGeneric(Space::Local) => false,
        op => op.is_pure(),
    }
}

/// Whether a barrier is one that all threads of the block come to, for nothing but that.
pub(crate) fn is_for_all(func: &Function, data: &InstData) -> bool {
    data.op == Op::Barrier { kind: BarrierKind::Sync, count: false }
        && func.constant(data.args[0]).is_some_and(|id| id < kernel_abi::BARRIERS as u64)
}

struct Gang<'a> {
    p: &'a Prepared,
    lanes: u32,
    /// Lanes in one row of the block.
    row: u32,
    registers: Registers,
}

/// What lanes access at the same address.
struct Word {
    access: Access,
    base: Value,
    bytes: i64,
    /// Not all lanes may come there.
    is_partial: bool,
}

impl Word {
    /// Whether the words may be the same, as far as that matters.
    fn may_be(&self, store: &Word) -> bool {
        let [load_space, store_space] = [self, store].map(|word| word.access.space);
        let starts = [self, store].map(|word| word.access.offset);
        let meets = starts[0] < starts[1] + store.bytes && starts[1] < starts[0] + self.bytes;
        match store.is_partial {
            true => self.base == store.base && meets,
            false => load_space == store_space || [load_space, store_space].contains(&Space::Generic),
        }
    }
}

impl<'a> Gang<'a> {
    fn new(p: &'a Prepared, shape: &Shape, registers: Registers) -> Gang<'a> {
        Gang { p, lanes: shape.lanes(), row: shape.row_lanes(), registers }
    }

    /// The registers that a value of 32 bits takes.
    fn value_registers(&self) -> u32 {
        self.registers_of(4)
    }

    /// The registers that a value of so many bytes takes.
    fn registers_of(&self, bytes: u32) -> u32 {
        (self.lanes * bytes).div_ceil(self.registers.bytes)
    }

    /// The bytes of a value of those that take most of the registers needed.
    fn usual_bytes(&self, needed: u32) -> u32 {
        let wide = |value: Value| self.p.func.ty(value).bits() == 64;
        let of_wide = self.registers_in(|block| self.is_usual_in_loop(block), wide);
        if 2 * of_wide >= needed { 8 } else { 4 }
    }

    /// Whether all warps come to each barrier together, and none waits for another elsewhere.
    fn is_possible(&self) -> bool {
        let p = self.p;
        let mut blocks = p.cfg.order().iter();
        p.polling.headers.is_empty()
            && in_step::obstacle(p).is_none()
            && blocks.all(|block| p.full[block.index()] || !self.has(*block, abreast::suspends))
    }

    /// Whether lanes may load a word that others of their warp then store to, as where a warp takes what was left for it: each of the lanes is to find what
    /// was there, not what those of another strip have stored. Stores of all lanes may be to any such word, those of some of them, as the
    /// first, are to one that all have loaded where the address is the same value.
    fn shares_a_word(&self) -> bool {
        let (stored, loaded) = (self.words(true), self.words(false));
        let all_load = || loaded.iter().filter(|load| !load.is_partial);
        stored.iter().any(|store| all_load().any(|load| load.may_be(store)))
    }

    /// The words that all lanes that come there load or store.
    fn words(&self, stored: bool) -> Vec<Word> {
        let p = self.p;
        let insts = p.cfg.order().iter().flat_map(|block| {
            let is_partial = !p.full[block.index()] && p.linear.skip(*block).is_some();
            p.func.block(*block).insts.iter().map(move |inst| (is_partial, p.func.inst(*inst)))
        });
        insts
            .filter_map(|(is_partial, data)| {
                let (access, value) = match data.op {
                    Op::Load(access) if !stored && !access.invariant => (access, data.results[0]),
                    Op::Store(access) if stored => (access, data.args[1]),
                    _ => return None,
                };
                let shared = matches!(access.space, Space::Shared | Space::Global | Space::Generic);
                let bytes = i64::from(access.lanes) * i64::from(p.func.ty(value).bytes());
                let is_one = shared && p.shapes.of(data.args[0]).is_uniform();
                is_one.then_some(Word { access, base: data.args[0], bytes, is_partial })
            })
            .collect()
    }

    /// Whether loops load clearly less than the warps would one by one, and what lives in them fits into registers.
    fn pays(&self, apart: usize) -> bool {
        let shares = apart > 0 && 8 * self.loads() <= 7 * apart;
        let needed = self.registers_needed();
        shares && needed <= self.registers.spent() || needed <= 2 * self.registers.count && self.is_light()
    }

    /// Whether barriers are so near to each other that what a gang of so many warps saves, suspensions there, is more than what it costs: values
    /// that do not stay in registers, and what it does for all warps where perhaps only one would.
    fn spares_waits(&self, warps: u8) -> bool {
        let (mut work, mut barriers) = (0, 0);
        for block in self.p.usual_blocks() {
            // An inner loop runs more often than what is around it.
            let often = 16usize.saturating_pow(self.p.loops.around(block).count() as u32);
            let for_one = if self.p.full[block.index()] { 1 } else { warps.into() };
            work += often * for_one * self.work(block);
            barriers += often * self.count(block, Op::is_barrier);
        }
        work <= NEAR * barriers && self.length() <= LONG
    }

    /// How many warps keep the processor busy where one is a long formula that waits for one result after another.
    fn busy_together(&self) -> Option<u8> {
        let (main, cost) = chains::of_main_block(self.p)?;
        let registers = self.value_registers();
        if !waits(cost, registers) {
            return None;
        }
        let warps = (AT_ONCE * cost.latency).div_ceil(cost.work * registers).next_power_of_two();
        let fits = warps * self.registers_in(|block| block == main, |_| true) <= self.registers.count;
        fits.then_some(warps as u8)
    }

    /// The operations on vectors, where most warps come.
    fn length(&self) -> usize {
        let p = self.p;
        p.usual_blocks().map(|block| self.vectors(block)).sum()
    }

    fn vectors(&self, block: Block) -> usize {
        let p = self.p;
        let insts = p.func.block(block).insts.iter().map(|inst| p.func.inst(*inst));
        insts.filter(|data| data.results.iter().any(|value| p.shapes.of(*value).is_varying())).count()
    }

    /// What a block does with vectors: an operation counts for as many as its result has words.
    fn work(&self, block: Block) -> usize {
        let p = self.p;
        let insts = p.func.block(block).insts.iter().map(|inst| p.func.inst(*inst));
        let words = |value: Value| match p.shapes.of(value) {
            LaneShape::Varying => p.func.ty(value).bits().div_ceil(32) as usize,
            _ => 0,
        };
        insts.filter_map(|data| data.results.iter().map(|value| words(*value)).max()).sum()
    }

    fn waits_in_loops(&self) -> bool {
        self.in_loops().any(|block| self.has(block, Op::is_barrier))
    }

    /// Whether code that needs so many registers could pay at all.
    fn could_pay(&self, needed: u32, is_light: bool) -> bool {
        needed <= self.registers.spent() || needed <= 2 * self.registers.count && is_light
    }

    /// Whether the code stays short with so many lanes, and loops run between barriers: then what a gang saves, suspensions and the wait for
    /// memory and for one result after another, is more than what values cost that do not stay in registers.
    fn is_light(&self) -> bool {
        !self.waits_in_loops() && self.length() <= SHORT
    }

    /// The accesses, of one register's size each, that loads in loops take.
    fn loads(&self) -> usize {
        let mut sum = 0;
        for block in self.in_loops() {
            for inst in &self.p.func.block(block).insts {
                let data = self.p.func.inst(*inst);
                if let Op::Load(access) = data.op
                    && access.space != Space::Param
                {
                    let bytes = self.p.func.ty(data.results[0]).bits().div_ceil(8) * u32::from(access.lanes);
                    sum += self.pieces(data.args[0], bytes);
                }
            }
        }
        sum
    }

    /// The blocks in loops, where most warps come.
    fn in_loops(&self) -> impl Iterator<Item = Block> {
        let p = self.p;
        p.usual_blocks().filter(|block| p.loops.innermost(*block).is_some())
    }

    fn has(&self, block: Block, is: impl Fn(&Op) -> bool) -> bool {
        self.count(block, is) > 0
    }

    fn count(&self, block: Block, is: impl Fn(&Op) -> bool) -> usize {
        let insts = &self.p.func.block(block).insts;
        insts.iter().filter(|inst| is(&self.p.func.inst(**inst).op)).count()
    }

    /// The accesses that a load of so many bytes a lane takes.
    fn pieces(&self, address: Value, bytes: u32) -> usize {
        let lanes = (self.registers.bytes / bytes.max(1)).clamp(1, self.row);
        match self.p.shapes.of(address) {
            LaneShape::Uniform => 1,
            LaneShape::Affine(offsets) => {
                let starts = offsets.iter().step_by(lanes as usize);
                starts.collect::<HashSet<_>>().len()
            }
            LaneShape::Rows(_) => (self.lanes / lanes) as usize,
            LaneShape::Varying => self.lanes as usize,
        }
    }

    /// The most registers that values in loops take at once, or everywhere if there are no loops; where most warps do not come does not count.
    fn registers_needed(&self) -> u32 {
        self.registers_in(|block| self.is_usual_in_loop(block), |_| true)
    }

    /// Whether the kernel spends its time there, if anywhere.
    fn is_usual_in_loop(&self, block: Block) -> bool {
        let loops = &self.p.loops;
        (loops.innermost(block).is_some() || loops.count() == 0) && !self.p.is_unusual(block)
    }

    /// The most registers that some values take at once in some blocks.
    fn registers_in(&self, counts: impl Fn(Block) -> bool, takes: impl Fn(Value) -> bool) -> u32 {
        let p = self.p;
        let uses = self.p.uses();
        let size = |value: Value| if takes(value) { self.size(value, &uses) } else { 0 };
        let mut live_in: HashMap<Block, HashSet<Value>> = HashMap::new();
        let mut changed = true;
        let mut most = 0;
        while changed {
            changed = false;
            most = 0;
            for &block in p.cfg.order().iter().rev() {
                let data = p.func.block(block);
                let mut live: HashSet<Value> = HashSet::new();
                for target in data.term.targets() {
                    live.extend(live_in.get(&target.block).into_iter().flatten());
                }
                live.extend(data.term.uses());
                let mut sum: u32 = live.iter().map(|value| size(*value)).sum();
                let mut peak = sum;
                for inst in data.insts.iter().rev() {
                    let inst = p.func.inst(*inst);
                    for result in &inst.results {
                        if live.remove(result) {
                            sum -= size(*result);
                        }
                    }
                    for arg in &inst.args {
                        if live.insert(*arg) {
                            sum += size(*arg);
                        }
                    }
                    peak = peak.max(sum);
                }
                for param in &data.params {
                    live.remove(param);
                }
                if counts(block) {
                    most = most.max(peak);
                }
                if live_in.get(&block) != Some(&live) {
                    live_in.insert(block, live);
                    changed = true;
                }
            }
        }
        most
    }

    /// Whether lanes of one register alone would wait for one result after another, and those of a second fill that time: what of them does not fit
    /// the registers is put aside, and costs less.
    fn hides_waits(&self) -> bool {
        let Some(cost) = chains::of(self.p) else { return false };
        waits(cost, 1) && self.value_registers() == 2 && self.registers_needed() <= 2 * self.registers.count
    }

    /// Whether one register of each value is enough for the processor to be busy, and none is half empty: bytes of so few lanes are less than a register.
    fn is_busy_in_halves(&self) -> bool {
        let is_narrow = |inst: &Inst| {
            let data = self.p.func.inst(*inst);
            let is_short = |value: &Value| self.p.func.ty(*value).bits() < 32;
            data.op.access().is_some() && data.elements().iter().any(is_short)
        };
        if self.p.usual_blocks().flat_map(|block| &self.p.func.block(block).insts).any(is_narrow) {
            return false;
        }
        let loops = &self.p.loops;
        let varies = |value: &&Value| self.p.shapes.of(**value).is_varying();
        // Each that a loop carries waits for itself alone.
        let carried = |header: Block| self.p.func.block(header).params.iter().filter(varies).count();
        let is_inner = |id: &LoopId| loops.ids().all(|other| loops.get(other).parent != Some(*id));
        let mut inner = loops.ids().filter(is_inner).peekable();
        match inner.peek() {
            None => chains::of(self.p).is_some_and(|cost| !waits(cost, 1)),
            Some(_) => inner.all(|id| carried(loops.get(id).header) >= SUMS),
        }
    }

    /// The registers that a value takes.
    fn size(&self, value: Value, uses: &[u32]) -> u32 {
        let p = self.p;
        let ty = p.func.ty(value);
        // Masks have their own; what is loaded for one operation is that one's operand in memory, or one piece at a time.
        if ty == Type::Pred || uses[value.index()] < 2 && matches!(p.op_of(value), Some(Op::Load(_))) {
            return 0;
        }
        match p.shapes.of(value) {
            LaneShape::Varying => (self.lanes * ty.bits() / 8).div_ceil(self.registers.bytes),
            // Bases of rows are few and used little.
            LaneShape::Uniform | LaneShape::Affine(_) | LaneShape::Rows(_) => 0,
        }
    }
}
