//! Values that stay together.
//!
//! Where each lane has some elements in a row, a few loads of whole vectors bring those of all lanes, interleaved: to have the first elements of
//! all lanes in one vector, the second in another, takes as many shuffles again and more. Often all elements of a lane have the same fate: each
//! goes into a sum of its own, is multiplied by the same number, and is stored beside the others. Then nobody asks in which order a vector has
//! them. A *pack* is such values, which code generation keeps as they are in memory: one long vector, of all elements of the first lane, then of
//! the second, and so on.
//!
//! Packs begin with loads, in loops or where all of them is stored as it was loaded, and go on through what is computed of them, in all directions: a sum is a pack with what it is added to, from
//! where it comes into the loop to where it goes. They are told apart only where that happens less often than what they are for.
//!
//! They also begin where two numbers are taken out of a word ([`pairs`]), and end where two are put together: a vector of words is a pack as it is.

use std::collections::{HashMap, HashSet, VecDeque};

use simt_ir::{Access, Block, Def, Inst, InstData, IntBinary, Op, Order, Space, Target, Type, Value};

use crate::pairs::{self, Together};
use crate::{LaneShape, Prepared, facts};

/// The most elements of a lane.
const MOST: usize = 16;
/// The most bytes of a lane that are loaded one by one.
pub const MOST_BYTES: i64 = 64;
/// The most arrays that are tested to be apart.
const MOST_ARRAYS: usize = 8;
/// The most packs that are looked at to tell whether one may be told apart.
const MOST_BESIDE: usize = 200;

/// The packs of a function.
#[derive(Default)]
pub struct Packs {
    packs: Vec<Vec<Value>>,
    of: HashMap<Value, (usize, usize)>,
    /// The word that a pack's values are taken out of, by the first of them.
    words: HashMap<Value, Value>,
    /// Words that packs are put together as, and the packs.
    joined: HashMap<Value, [Value; 2]>,
    /// What would be computed on the way to these.
    between: HashSet<Value>,
}

impl Packs {
    /// The packs of a kernel.
    pub fn find(p: &Prepared) -> Packs {
        let mut search = Search::new(p);
        search.begin();
        search.begin_in_words();
        if search.packs.is_empty() {
            return Packs::default();
        }
        search.grow();
        search.settle()
    }

    /// The pack that a value is in, with the number of its place there.
    pub fn of(&self, value: Value) -> Option<(&[Value], usize)> {
        self.of.get(&value).map(|(pack, at)| (&self.packs[*pack][..], *at))
    }

    /// The word that a pack is as it lies there, if it begins with one.
    pub fn word_of(&self, pack: &[Value]) -> Option<Value> {
        self.words.get(&pack[0]).copied()
    }

    /// The pack that a word is put together of.
    pub fn joined_as(&self, word: Value) -> Option<&[Value]> {
        self.joined.get(&word).map(|numbers| &numbers[..])
    }

    /// Whether nobody needs a value, which is only on the way from a pack to a word.
    pub fn passes_by(&self, value: Value) -> bool {
        self.between.contains(&value)
    }

    /// Whether these values, in this order, are a pack.
    pub fn is_pack(&self, values: &[Value]) -> bool {
        self.of(values[0]).is_some_and(|(pack, _)| pack == values)
    }

    /// Of places that values share (see [`places`](crate::places)), leaves those that packs share as a whole, in loops: there nobody asks for a
    /// value by itself, which might be after the pack that comes next has taken its place.
    pub fn place(&self, p: &Prepared, places: &mut [Value]) {
        let shared = places.to_vec();
        let in_loop =
            |value: Value| p.def_block[value.index()].is_some_and(|block| p.loops.innermost(block).is_some());
        for (at, place) in shared.iter().enumerate() {
            let value = Value(at as u32);
            let keeps = match (self.of(value), self.of(*place)) {
                (None, None) => true,
                (Some((own, _)), Some((other, _))) => {
                    in_loop(own[0])
                        && in_loop(other[0])
                        && own.iter().map(|value| shared[value.index()]).eq(other.iter().copied())
                }
                _ => false,
            };
            if !keeps {
                places[at] = value;
            }
        }
    }
}

/// Whether packs have so many values.
fn is_count(count: usize) -> bool {
    count > 1 && count <= MOST && count.is_power_of_two()
}

/// Whether a test at the beginning of a block could show that its loads and stores are of arrays apart from each other.
pub fn may_be_apart(p: &Prepared, block: Block) -> bool {
    let (mut arrays, mut stores_anywhere) = (HashSet::new(), false);
    p.func.block(block).insts.iter().all(|inst| {
        let data = p.func.inst(*inst);
        match data.op {
            Op::Load(access) if matches!(access.space, Space::Param | Space::Const) => true,
            Op::Load(access) | Op::Store(access) => {
                arrays.insert(data.args[0]);
                stores_anywhere |= matches!(data.op, Op::Store(_)) && p.shapes.of(data.args[0]).is_varying();
                access.order == Order::Weak
                    && access.space == Space::Global
                    && p.shapes.checks(data.args[0]).is_empty()
            }
            op => op.is_pure(),
        }
    }) && arrays.len() <= MOST_ARRAYS
        && (!stores_anywhere || own_row(p, block).is_some())
}

/// The address of a row of each lane's own, anywhere, to which a block stores several elements. Nothing else may be anywhere: to tell it from that would
/// take a comparison for each two lanes.
pub fn own_row(p: &Prepared, block: Block) -> Option<Value> {
    let insts = p.func.block(block).insts.iter().map(|inst| p.func.inst(*inst));
    let mut stored = HashSet::new();
    let mut count = 0;
    for data in insts.filter(|data| matches!(data.op, Op::Load(_) | Op::Store(_))) {
        match (data.op, p.shapes.of(data.args[0]).is_varying()) {
            (_, false) => {}
            (Op::Store(_), true) => {
                stored.insert(data.args[0]);
                count += 1;
            }
            _ => return None,
        }
    }
    let is_one = stored.len() == 1 && count > 1;
    stored.into_iter().next().filter(|_| is_one)
}

/// The first arguments of an edge that a pack of parameters gets.
pub fn passed(p: &Prepared, target: &Target, pack: &[Value]) -> Vec<Value> {
    let arg = |param: &Value| match p.func.def(*param) {
        Def::Param(_, at) => target.args[at as usize],
        Def::Result(..) | Def::Removed => unreachable!("a pack of parameters has nothing else"),
    };
    pack.iter().map(arg).collect()
}

/// Whether these are the same value, or the same constant.
pub fn are_same(p: &Prepared, values: &[Value]) -> bool {
    values.iter().all(|value| facts::are_same(&p.func, values[0], *value))
}

/// Whether these are two numbers of a word each, the same two in all lanes.
pub fn are_two_for_all(p: &Prepared, values: &[Value]) -> bool {
    let is_one = |value: &Value| p.func.ty(*value).bits() == 16 && p.shapes.of(*value) == &LaneShape::Uniform;
    values.len() == 2 && values.iter().all(is_one)
}

/// So many lanes at a time have the same of this value, which is loaded from one place for each: to have it as often as a pack has elements costs
/// nothing.
pub fn alike_lanes(p: &Prepared, value: Value) -> Option<u32> {
    let data = p.func.def_inst(value)?;
    let Op::Load(access) = data.op else { return None };
    let LaneShape::Affine(offsets) = p.shapes.of(data.args[0]) else { return None };
    let is_plain = access.lanes == 1
        && access.order == Order::Weak
        && access.space != Space::Local
        && p.shapes.checks(data.args[0]).is_empty()
        && p.def_block[value.index()].is_some_and(|block| p.full[block.index()]);
    let alike = |lanes: &usize| {
        let same = |piece: &[i64]| piece.iter().all(|offset| *offset == piece[0]);
        *lanes < offsets.len() && offsets.chunks(*lanes).all(same)
    };
    [128, 64, 32, 16].into_iter().find(alike).filter(|_| is_plain).map(|lanes| lanes as u32)
}

struct Search<'a> {
    p: &'a Prepared,
    /// Instructions that use a value, and as which operand.
    uses: HashMap<Value, Vec<(Block, Inst, usize)>>,
    /// Edges that pass a value on, each from a block, and as which argument.
    edges: HashMap<Value, Vec<(Block, &'a Target, usize)>>,
    /// Packs that may be; some will not.
    packs: Vec<Vec<Value>>,
    of: HashMap<Value, usize>,
    loads: HashSet<usize>,
    /// Those that begin in words: which.
    words: HashMap<usize, Value>,
    /// Those that come of words, or of what a block outside of loops loads and stores. Outside of loops too, they are told apart only where that is rarer.
    strict: HashSet<usize>,
    /// What is put together as words, and by the instructions that begin with that, the numbers.
    joined: Vec<Together>,
    firsts: HashMap<Inst, [Value; 2]>,
    queue: VecDeque<usize>,
}

impl<'a> Search<'a> {
    fn new(p: &'a Prepared) -> Search<'a> {
        let mut uses: HashMap<Value, Vec<(Block, Inst, usize)>> = HashMap::new();
        let mut edges: HashMap<Value, Vec<(Block, &Target, usize)>> = HashMap::new();
        for &block in p.cfg.order() {
            for &inst in &p.func.block(block).insts {
                for (at, arg) in p.func.inst(inst).args.iter().enumerate() {
                    uses.entry(*arg).or_default().push((block, inst, at));
                }
            }
            for target in p.func.block(block).term.targets() {
                for (at, arg) in target.args.iter().enumerate() {
                    edges.entry(*arg).or_default().push((block, target, at));
                }
            }
        }
        let insts = p.cfg.order().iter().flat_map(|block| &p.func.block(*block).insts);
        let mut joined: Vec<Together> =
            insts.filter_map(|inst| pairs::put_together(&p.func, *inst)).collect();
        let is_for_it =
            |value: &Value| !edges.contains_key(value) && uses.get(value).is_some_and(|uses| uses.len() == 1);
        joined.retain(|word| word.between.iter().all(is_for_it));
        let firsts = joined.iter().flat_map(|word| word.first.map(|inst| (inst, word.numbers))).collect();
        let (packs, of, loads, words, strict, queue) = Default::default();
        Search { p, uses, edges, packs, of, loads, words, strict, joined, firsts, queue }
    }

    /// Packs of what is taken out of words, if that is a float each or both are whole numbers.
    fn begin_in_words(&mut self) {
        let p = self.p;
        for &block in p.cfg.order() {
            let mut halves: HashMap<(Value, Type), [Option<Value>; 2]> = HashMap::new();
            for &inst in &p.func.block(block).insts {
                let Some((word, is_upper)) = pairs::number_in_word(&p.func, inst) else { continue };
                let value = p.func.inst(inst).results[0];
                halves.entry((word, p.func.ty(value))).or_default()[usize::from(is_upper)] = Some(value);
            }
            let mut found: Vec<(Value, Vec<Value>)> = halves
                .into_iter()
                .filter_map(|((word, _), [low, high])| Some((word, vec![low?, high?])))
                .filter(|(word, _)| p.shapes.of(*word).is_varying())
                .collect();
            found.sort_unstable_by_key(|(_, values)| values[0]);
            for (word, values) in found {
                if self.could_be(&values) {
                    let pack = self.add(values, true);
                    self.words.insert(pack, word);
                }
            }
        }
    }

    /// Packs of what is loaded, in loops, or in any block that stores.
    fn begin(&mut self) {
        let p = self.p;
        for &block in p.cfg.order() {
            let in_loop = p.loops.innermost(block).is_some();
            // Outside of loops it pays where all of it is stored together.
            let is_strict = !in_loop;
            if in_loop && !p.full[block.index()] || is_strict && !self.stores(block) {
                continue;
            }
            let insts = &p.func.block(block).insts;
            for (at, &inst) in insts.iter().enumerate() {
                let data = p.func.inst(inst);
                let Op::Load(access) = data.op else { continue };
                if access.order != Order::Weak
                    || access.space == Space::Local
                    || !p.shapes.checks(data.args[0]).is_empty()
                    || data.results.iter().any(|value| self.of.contains_key(value))
                {
                    continue;
                }
                let element = p.func.ty(data.results[0]);
                let Some(count) = self.interleaved(data.args[0], element) else { continue };
                let values = match access.lanes {
                    1 => self.neighbours(block, &insts[at..], count),
                    lanes => (count == usize::from(lanes)).then(|| data.results.clone()),
                };
                if let Some(values) = values
                    && self.could_be(&values)
                    && (!is_strict || self.stays(&values))
                {
                    let pack = self.add(values, is_strict);
                    self.loads.insert(pack);
                }
            }
        }
    }

    /// Whether a block stores.
    fn stores(&self, block: Block) -> bool {
        let func = &self.p.func;
        func.block(block).insts.iter().any(|inst| matches!(func.inst(*inst).op, Op::Store(_)))
    }

    /// Whether nothing of this is used in other blocks.
    fn stays(&self, values: &[Value]) -> bool {
        values.iter().all(|value| {
            let uses = self.uses.get(value).into_iter().flatten();
            !self.edges.contains_key(value)
                && uses.into_iter().all(|(user, ..)| Some(*user) == self.p.def_block[value.index()])
        })
    }

    /// What a load and those of its neighbours have, in order: so many in all, before memory may change, if it does not turn out to be other memory.
    fn neighbours(&self, block: Block, insts: &[Inst], count: usize) -> Option<Vec<Value>> {
        let func = &self.p.func;
        let passes = may_be_apart(self.p, block);
        let own = func.inst(insts[0]);
        let access = own.op.access()?;
        let mut found: HashMap<i64, Vec<Value>> = HashMap::new();
        for inst in insts {
            let data = func.inst(*inst);
            match data.op {
                Op::Load(other) if other.order == Order::Weak => {
                    let alike = Access { offset: access.offset, ..other } == *access && data.args == own.args;
                    if alike && func.ty(data.results[0]) == func.ty(own.results[0]) {
                        found.entry(other.offset).or_default().push(data.results[0]);
                    }
                }
                Op::Store(_) if passes => {}
                op if op.is_pure() => {}
                _ => break,
            }
        }
        let size = i64::from(func.ty(own.results[0]).bits() / 8);
        (0..count as i64).find_map(|before| {
            let first = access.offset - before * size;
            let one = |index| match &found.get(&(first + index * size))?[..] {
                [only] if !self.of.contains_key(only) => Some(*only),
                _ => None,
            };
            (0..count as i64).map(one).collect()
        })
    }

    /// How many elements each lane has at such addresses if lanes lie one after another, in pieces that fill vectors.
    fn interleaved(&self, address: Value, element: Type) -> Option<usize> {
        let LaneShape::Affine(offsets) = self.p.shapes.of(address) else { return None };
        let size = i64::from(element.bits() / 8);
        let step = offsets.get(1)?.wrapping_sub(offsets[0]);
        let count = step.checked_div(size).filter(|count| count * size == step)?;
        let piece = offsets.len().min(16);
        let steps = |piece: &[i64]| piece.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step);
        let count = usize::try_from(count).ok().filter(|count| is_count(*count) && step <= MOST_BYTES)?;
        offsets.chunks(piece).all(steps).then_some(count)
    }

    /// Whether values that are in no pack could be one.
    fn could_be(&self, values: &[Value]) -> bool {
        let p = self.p;
        let ty = p.func.ty(values[0]);
        let block = p.def_block[values[0].index()];
        let distinct: HashSet<Value> = values.iter().copied().collect();
        is_count(values.len())
            && distinct.len() == values.len()
            && !matches!(ty, Type::Pred | Type::I8)
            && block.is_some_and(|block| {
                p.full[block.index()] || !self.is_passed(values[0]) && (ty.bits() == 16 || self.stays(values))
            })
            && values.iter().all(|value| {
                p.func.ty(*value) == ty
                    && p.def_block[value.index()] == block
                    && p.shapes.of(*value).is_varying()
                    && !self.of.contains_key(value)
            })
    }

    fn is_passed(&self, value: Value) -> bool {
        matches!(self.p.func.def(value), Def::Param(..))
    }

    fn add(&mut self, values: Vec<Value>, is_strict: bool) -> usize {
        let pack = self.packs.len();
        if is_strict {
            self.strict.insert(pack);
        }
        values.iter().for_each(|value| {
            self.of.insert(*value, pack);
        });
        self.packs.push(values);
        self.queue.push_back(pack);
        pack
    }

    fn is_pack(&self, values: &[Value]) -> bool {
        self.of.get(&values[0]).is_some_and(|pack| self.packs[*pack] == values)
    }

    /// Follows packs to what they go into and come from.
    fn grow(&mut self) {
        while let Some(pack) = self.queue.pop_front() {
            let values = self.packs[pack].clone();
            let is_strict = self.strict.contains(&pack);
            self.operands(&values, is_strict);
            self.results(&values, is_strict);
            for (_, target, _) in self.edges.get(&values[0]).cloned().unwrap_or_default() {
                let at = |value: &Value| target.args.iter().position(|arg| arg == value);
                let Some(at) = values.iter().map(at).collect::<Option<Vec<_>>>() else { continue };
                let params = &self.p.func.block(target.block).params;
                self.want(&at.into_iter().map(|at| params[at]).collect::<Vec<_>>(), is_strict);
            }
        }
    }

    /// What a pack comes from should be packs.
    fn operands(&mut self, values: &[Value], is_strict: bool) {
        let p = self.p;
        match p.func.def(values[0]) {
            Def::Param(block, _) => {
                for &from in p.cfg.preds(block) {
                    for target in p.func.block(from).term.targets() {
                        if target.block == block {
                            self.want(&passed(p, target, values), is_strict);
                        }
                    }
                }
            }
            Def::Result(inst, _) if is_allowed(&p.func.inst(inst).op) => {
                for at in 0..p.func.inst(inst).args.len() {
                    self.want(&operand(p, values, at), is_strict);
                }
            }
            _ => {}
        }
    }

    /// What a pack goes into should be packs.
    fn results(&mut self, values: &[Value], is_strict: bool) {
        let p = self.p;
        for (block, inst, at) in self.uses.get(&values[0]).cloned().unwrap_or_default() {
            let own = p.func.inst(inst);
            if !is_allowed(&own.op) {
                continue;
            }
            // Of several that do the same with an element, as the rows of a product, each belongs to those with the same other operands.
            let is_like = |data: &InstData| {
                data.op == own.op
                    && data.args.iter().zip(&own.args).enumerate().all(|(index, (arg, own))| {
                        let is_other = p.shapes.of(*own).is_varying() && alike_lanes(p, *own).is_none();
                        index == at || is_other || are_same(p, &[*arg, *own])
                    })
            };
            let like = |value: &Value| {
                let uses = self.uses.get(value)?.iter();
                let mut found = uses
                    .filter(|(other, inst, index)| {
                        (*other, *index) == (block, at) && is_like(p.func.inst(*inst))
                    })
                    .map(|(_, inst, _)| p.func.inst(*inst).results[0]);
                found.next().filter(|_| found.next().is_none())
            };
            if let Some(results) = values.iter().map(like).collect::<Option<Vec<_>>>() {
                self.want(&results, is_strict);
            }
        }
    }

    /// Makes values a pack, if they may be one.
    fn want(&mut self, values: &[Value], is_strict: bool) {
        let func = &self.p.func;
        if !self.could_be(values) {
            return;
        }
        let alike = match func.def(values[0]) {
            Def::Param(..) => values.iter().all(|value| matches!(func.def(*value), Def::Param(..))),
            Def::Result(..) => {
                let op = |value: &Value| func.def_inst(*value).map(|data| data.op);
                values.iter().all(|value| op(value) == op(&values[0]))
                    && op(&values[0]).is_some_and(|op| is_allowed(&op))
            }
            Def::Removed => false,
        };
        if alike {
            self.add(values.to_vec(), is_strict);
        }
    }

    /// The packs that come of packs, and need not be told apart where that would cost.
    fn settle(mut self) -> Packs {
        loop {
            let bad: Vec<usize> = (0..self.packs.len()).filter(|pack| !self.holds(*pack)).collect();
            if bad.is_empty() {
                break;
            }
            for pack in bad {
                for value in std::mem::take(&mut self.packs[pack]) {
                    self.of.remove(&value);
                }
            }
        }
        let begun = self.words.iter().filter_map(|(pack, word)| Some((*self.packs[*pack].first()?, *word)));
        let words: HashMap<Value, Value> = begun.collect();
        let (mut joined, mut between) = (HashMap::new(), HashSet::new());
        for together in &self.joined {
            if self.is_pack(&together.numbers) {
                joined.insert(together.word, together.numbers);
                between.extend(together.between.iter().copied());
            }
        }
        let packs: Vec<Vec<Value>> = self.packs.into_iter().filter(|pack| !pack.is_empty()).collect();
        let places = packs.iter().enumerate().flat_map(|(pack, values)| {
            values.iter().enumerate().map(move |(at, value)| (*value, (pack, at)))
        });
        Packs { of: places.collect(), packs, words, joined, between }
    }

    fn holds(&self, pack: usize) -> bool {
        let p = self.p;
        let values = &self.packs[pack];
        let Some(block) = values.first().and_then(|value| p.def_block[value.index()]) else { return true };
        let is_operand = |values: &[Value]| {
            let is_spread =
                || p.shapes.of(values[0]) == &LaneShape::Uniform || alike_lanes(p, values[0]).is_some();
            self.is_pack(values) || are_same(p, values) && is_spread() || are_two_for_all(p, values)
        };
        let comes_from_packs = match p.func.def(values[0]) {
            Def::Param(..) => {
                p.cfg.preds(block).iter().all(|from| {
                    let together = p.full[from.index()] && !p.shapes.divergent()[from.index()];
                    let mut targets = p.func.block(*from).term.targets().into_iter();
                    let rare = || self.depth(*from) < self.depth(block);
                    let is_fine = |target: &Target| rare() || is_operand(&passed(p, target, values));
                    together && targets.all(|target| target.block != block || is_fine(target))
                }) && !p.linear.is_delayed(block)
            }
            Def::Result(inst, _) => {
                let data = p.func.inst(inst);
                self.loads.contains(&pack)
                    || self.words.contains_key(&pack)
                    || (0..data.args.len()).all(|at| is_operand(&operand(p, values, at)))
            }
            Def::Removed => false,
        };
        let Fate { together, apart } = self.fate(pack, block);
        let begins = self.loads.contains(&pack) || self.words.contains_key(&pack);
        comes_from_packs && (together > 0 || !begins) && (!apart || !begins && self.pays_to_part(pack))
    }

    /// Whether fewer packs are told apart than are words as they are, among those that a pack of words is computed with: to tell one apart takes as
    /// much as to do that with a word.
    fn pays_to_part(&self, pack: usize) -> bool {
        if !self.strict.contains(&pack) {
            return false;
        }
        let joined: HashSet<[Value; 2]> = self.joined.iter().map(|word| word.numbers).collect();
        let (mut words, mut parted) = (0, 0);
        let (mut work, mut seen) = (vec![pack], HashSet::from([pack]));
        while let Some(pack) = work.pop() {
            let values = &self.packs[pack];
            let Some(block) = values.first().and_then(|value| self.p.def_block[value.index()]) else {
                continue;
            };
            words += usize::from(self.words.contains_key(&pack));
            words += usize::from(values.len() == 2 && joined.contains(&[values[0], values[1]]));
            parted += usize::from(self.fate(pack, block).apart);
            let beside = self.beside(values[0]).into_iter().filter_map(|value| self.of.get(&value));
            work.extend(beside.copied().filter(|pack| seen.insert(*pack)));
            if seen.len() > MOST_BESIDE {
                return false;
            }
        }
        words > parted
    }

    /// What a value is computed of, and what is computed of it.
    fn beside(&self, value: Value) -> Vec<Value> {
        let p = self.p;
        let mut found: Vec<Value> = match p.func.def(value) {
            Def::Result(inst, _) if is_allowed(&p.func.inst(inst).op) => p.func.inst(inst).args.clone(),
            Def::Param(block, at) => p.cfg.passed(&p.func, block, at as usize).collect(),
            Def::Result(..) | Def::Removed => Vec::new(),
        };
        let users = self.uses.get(&value).into_iter().flatten();
        found.extend(users.filter_map(|(_, inst, _)| p.func.inst(*inst).results.first()));
        let edges = self.edges.get(&value).into_iter().flatten();
        found.extend(edges.map(|(_, target, at)| p.func.block(target.block).params[*at]));
        found
    }

    /// What uses a pack's values in its loop, or in one inside.
    fn fate(&self, pack: usize, block: Block) -> Fate {
        let p = self.p;
        let values = &self.packs[pack];
        let is_strict = self.strict.contains(&pack);
        let (mut together, mut apart) = (0, false);
        for (at, value) in values.iter().enumerate() {
            for (user, inst, index) in self.uses.get(value).into_iter().flatten() {
                let data = p.func.inst(*inst);
                let whole = data.results.first().and_then(|result| self.of.get(result)).is_some_and(|of| {
                    let results = &self.packs[*of];
                    results.len() == values.len()
                        && results.get(at) == data.results.first()
                        && operand(p, results, *index) == *values
                });
                let whole = whole
                    || self.firsts.get(inst).is_some_and(|numbers| numbers[..] == values[..])
                    || is_strict && *index == 1 && self.is_stored_together(data, values, at);
                together += usize::from(whole);
                apart |= !whole && !self.is_rare(*user, block, is_strict);
            }
        }
        for (place, value) in values.iter().enumerate() {
            for (from, target, at) in self.edges.get(value).into_iter().flatten() {
                let param = p.func.block(target.block).params[*at];
                let whole = self.of.get(&param).is_some_and(|of| {
                    let params = &self.packs[*of];
                    params.get(place) == Some(&param) && passed(p, target, params) == *values
                });
                together += usize::from(whole);
                apart |= !whole && !self.is_rare(*from, block, is_strict);
            }
        }
        Fate { together, apart }
    }

    /// Whether a store of one of these values is beside stores of all others, one after another as the values are.
    fn is_stored_together(&self, store: &InstData, values: &[Value], at: usize) -> bool {
        let func = &self.p.func;
        let Op::Store(own) = store.op else { return false };
        let size = i64::from(func.ty(values[0]).bits() / 8);
        let is_beside = |(value, place): (&Value, i64)| {
            let access = Access { offset: own.offset + (place - at as i64) * size, ..own };
            self.uses.get(value).into_iter().flatten().any(|(_, inst, index)| {
                let data = func.inst(*inst);
                *index == 1 && data.op == Op::Store(access) && data.args[0] == store.args[0]
            })
        };
        own.lanes == 1
            && own.order == Order::Weak
            && own.space != Space::Local
            && self.interleaved(store.args[0], func.ty(values[0])) == Some(values.len())
            && values.iter().zip(0..).all(is_beside)
    }

    fn depth(&self, block: Block) -> usize {
        self.p.loops.around(block).count()
    }

    /// Whether control passes `user` less often than what is in loops around `block`, or no loop is around it and it is not about words.
    fn is_rare(&self, user: Block, block: Block, is_strict: bool) -> bool {
        self.depth(user) < self.depth(block).max(usize::from(!is_strict))
    }
}

/// What becomes of a pack.
struct Fate {
    /// How often it goes into one.
    together: usize,
    /// Something needs a value of it by itself.
    apart: bool,
}

/// The operands of a pack's instructions with this number.
fn operand(p: &Prepared, values: &[Value], at: usize) -> Vec<Value> {
    let arg = |value: &Value| p.func.def_inst(*value).map(|data| data.args[at]);
    values.iter().map(|value| arg(value).expect("packs are of results or of parameters")).collect()
}

/// Operations that do the same to each element, for vectors of any length.
fn is_allowed(op: &Op) -> bool {
    match op {
        Op::Float(..) | Op::Fma(_) | Op::MinMax(_) | Op::FloatUnary(..) | Op::CanonNan | Op::IntUnary(_) => {
            true
        }
        Op::Int(op) => !matches!(op, IntBinary::DivS | IntBinary::DivU | IntBinary::RemS | IntBinary::RemU),
        _ => false,
    }
}
