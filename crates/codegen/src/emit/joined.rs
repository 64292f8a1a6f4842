//! Loads of neighbours: each lane has some elements in a row, and loads them one by one.
//!
//! By itself each of these loads is strided. Together they are all elements of a piece of memory: a few loads of whole vectors, and
//! shuffles. Compilers leave them apart where they do not know that the address is aligned to all elements, as that of a part of a tile.

use kernel_abi::CompileError;
use simt_ir::{Access, Inst, Op, Order};

use super::function::Emitter;
use super::memory::{Mark, Pattern};

/// The most elements of a lane, as many as a vector load has.
const MOST: i64 = 4;

impl Emitter<'_, '_> {
    /// Whether an earlier load has loaded this as well.
    pub(super) fn is_joined(&self, inst: Inst) -> bool {
        self.joined.contains(&inst)
    }

    /// Loads what this load and its neighbours load, if together they are whole pieces of memory and apart they are not. Nothing may have
    /// been written between them, so that the neighbours may go first.
    pub(super) fn load_joined(
        &mut self,
        inst: Inst,
        access: Access,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        let data = self.p.func.inst(inst);
        let (address, lane) = (data.args[0], self.lane_type(data.results[0]));
        let size = lane.scalar_bits() / 8;
        if self.is_quick()
            || access.lanes != 1
            || access.order != Order::Weak
            || !self.p.shapes.checks(address).is_empty()
        {
            return Ok(false);
        }
        let own = self.address(address, access);
        if !matches!(self.pattern(&own, size, 1, true), Pattern::Strided(..) | Pattern::Scattered(_)) {
            return Ok(false);
        }
        let neighbours = self.neighbours(inst, access);
        for count in [4, 2] {
            let step = i64::from(size);
            let Some(first) = (0..count).map(|before| access.offset - before * step).find(|first| {
                let mut wanted = (0..count).map(|index| first + index * step);
                wanted.all(|offset| neighbours.iter().any(|(at, _)| *at == offset))
            }) else {
                continue;
            };
            let first = Access { offset: first, ..access };
            let start = self.address(address, first);
            let whole = match self.pattern(&start, size, count as u32, true) {
                Pattern::Consecutive(_) => true,
                Pattern::Pieces { same, .. } => !same,
                _ => false,
            };
            if !whole {
                continue;
            }
            let values = self.load_lanes(&start, lane, count as u32, mark)?;
            for (index, value) in values.into_iter().enumerate() {
                let offset = first.offset + index as i64 * step;
                for (_, load) in neighbours.iter().filter(|(at, _)| *at == offset) {
                    self.joined.insert(*load);
                    self.define(self.p.func.inst(*load).results[0], value);
                }
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// The loads from this address, each with its offset, that come from here on before memory may change.
    fn neighbours(&self, inst: Inst, access: Access) -> Vec<(i64, Inst)> {
        let func = &self.p.func;
        let own = func.inst(inst);
        let insts = &func.block(self.current).insts;
        let from = insts.iter().position(|at| *at == inst).unwrap_or(insts.len());
        let mut found = Vec::new();
        for &at in &insts[from..] {
            let data = func.inst(at);
            match data.op {
                Op::Load(other) if other.order == Order::Weak => {
                    let near = (other.offset - access.offset).unsigned_abs() < (MOST * 8) as u64;
                    let alike = Access { offset: access.offset, ..other } == access;
                    if near
                        && alike
                        && data.args == own.args
                        && func.ty(data.results[0]) == func.ty(own.results[0])
                    {
                        found.push((other.offset, at));
                    }
                }
                op if op.is_pure() => {}
                _ => break,
            }
        }
        found
    }
}
