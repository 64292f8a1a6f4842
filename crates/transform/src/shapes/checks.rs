//! What offsets depend on: tests at the entry, and tests beside accesses.
//!
//! An address computed from an extension is affine as long as the extended index does not wrap between lanes. If it does, a lane's address is off
//! by a multiple of what the extension has been multiplied by, however it was moved since. So the test may stand beside the access, wherever
//! that is, and what is exact can be computed there: in another block than the extension, or in a loop that moves a pointer.

use std::collections::{HashMap, HashSet};

use simt_ir::{Block, Convert, InstData, IntBinary, Op, Shift, Terminator, Type, Value};

use super::{Analysis, Assumption, Extension, LaneShape};

/// What offsets depend on.
#[derive(Clone, Debug, Default)]
pub(super) struct Tests {
    pub(super) assumed: Vec<Assumption>,
    pub(super) checks: HashMap<Value, Vec<Check>>,
}

/// An index that an address depends on and that may wrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What must hold.
    pub assumption: Assumption,
    /// What the extended index has been multiplied by, modulo 2 to the 64.
    pub factor: u64,
}

/// A check, and the extension that it is for, with its block.
type Source = (Check, Value, Block);

impl Analysis<'_> {
    /// What the offsets found depend on. If an extension that would need tests beside accesses has other uses, the error names it.
    pub(super) fn assumptions(&self) -> Result<Tests, HashSet<Value>> {
        let mut assumed = Vec::new();
        let mut found: HashMap<Value, Vec<Source>> = HashMap::new();
        let mut misused: HashSet<Value> = HashSet::new();
        for &block in self.cfg.order() {
            for (index, &param) in self.func.block(block).params.iter().enumerate() {
                // From the first edge that is known; that the others agree is seen below.
                let mut args = self.cfg.passed(self.func, block, index);
                if let Some(sources) = args.find_map(|arg| found.get(&arg)).cloned() {
                    found.insert(param, sources);
                }
            }
            for &inst in &self.func.block(block).insts {
                let data = self.func.inst(inst);
                if let Op::Convert(op @ (Convert::ZExt | Convert::SExt)) = data.op
                    && let LaneShape::Affine(offsets) | LaneShape::Rows(offsets) = self.of(data.results[0])
                {
                    let assumption = Assumption { index: data.args[0], unsigned: op == Convert::ZExt };
                    match self.extension(block, inst, &offsets) {
                        Extension::Assumed if !assumed.contains(&assumption) => assumed.push(assumption),
                        Extension::Checked => {
                            let check = Check { assumption, factor: 1 };
                            found.insert(data.results[0], vec![(check, data.results[0], block)]);
                        }
                        _ => {}
                    }
                    continue;
                }
                let mut sum: Vec<Source> = Vec::new();
                for (position, arg) in data.args.iter().enumerate() {
                    let Some(sources) = found.get(arg) else { continue };
                    let is_address = matches!(data.op, Op::Load(_) | Op::Store(_)) && position == 0;
                    match self.factor(data, position) {
                        Some(factor) => sources.iter().for_each(|source| add(&mut sum, source, factor)),
                        None if is_address && self.reaches(sources, block) => {}
                        None => misused.extend(sources.iter().map(|(_, extension, _)| *extension)),
                    }
                }
                if !sum.is_empty() {
                    found.insert(data.results[0], sum);
                }
            }
        }
        self.check_edges(&found, &mut misused);
        if !misused.is_empty() {
            return Err(misused);
        }
        let checks = found
            .into_iter()
            .map(|(value, sources)| (value, sources.into_iter().map(|(check, _, _)| check).collect()));
        Ok(Tests { assumed, checks: checks.collect() })
    }

    /// By what an operation multiplies one of its arguments on the way to its result, if it only moves and multiplies addresses.
    fn factor(&self, data: &InstData, position: usize) -> Option<u64> {
        let [result] = data.results[..] else { return None };
        if self.of(result).is_vector() || self.func.ty(result) != Type::I64 {
            return None;
        }
        let constant = |at: usize| self.func.constant(data.args[at]);
        match data.op {
            Op::Int(IntBinary::Add) | Op::ToGeneric(_) | Op::FromGeneric(_) => Some(1),
            Op::Int(IntBinary::Sub) => Some(if position == 0 { 1 } else { u64::MAX }),
            Op::Int(IntBinary::Mul) => constant(1 - position),
            Op::Shift(Shift::Left) if position == 0 => {
                constant(1).filter(|amount| *amount < 64).map(|amount| 1 << amount)
            }
            _ => None,
        }
    }

    /// Whether what was extended is still what it was where a block accesses memory: it is not that of another iteration.
    fn reaches(&self, sources: &[Source], block: Block) -> bool {
        sources.iter().all(|(_, _, at)| self.loops.around(*at).all(|id| self.loops.contains(id, block)))
    }

    /// What blocks pass on depends on the same in all blocks that pass it, and nothing else of their ends depends on anything.
    fn check_edges(&self, found: &HashMap<Value, Vec<Source>>, misused: &mut HashSet<Value>) {
        let sources = |value: Value| found.get(&value).map_or(&[][..], Vec::as_slice);
        let mut misuse =
            |value: Value| misused.extend(sources(value).iter().map(|(_, extension, _)| *extension));
        for &block in self.cfg.order() {
            let term = &self.func.block(block).term;
            match term {
                Terminator::Branch { cond, .. } => misuse(*cond),
                Terminator::Switch { index, .. } => misuse(*index),
                Terminator::Return(values) => values.iter().for_each(|value| misuse(*value)),
                Terminator::Jump(_) | Terminator::Exit | Terminator::Trap => {}
            }
            for target in term.targets() {
                for (&param, &arg) in self.func.block(target.block).params.iter().zip(&target.args) {
                    let same = sources(param) == sources(arg);
                    if !same || self.of(param).is_vector() || !self.reaches(sources(arg), target.block) {
                        misuse(param);
                        misuse(arg);
                    }
                }
            }
        }
    }
}

/// Adds so many times what an address depends on.
fn add(sum: &mut Vec<Source>, source: &Source, factor: u64) {
    let (check, extension, block) = source;
    let factor = check.factor.wrapping_mul(factor);
    match sum.iter_mut().find(|(known, other, _)| known.assumption == check.assumption && other == extension)
    {
        Some((known, _, _)) => known.factor = known.factor.wrapping_add(factor),
        None => sum.push((Check { factor, ..check.clone() }, *extension, *block)),
    }
}
