//! Accesses that may pass each other.
//!
//! Where a kernel stores to one array between loads from another, and does not say that they are apart, a load can go ahead of a store only
//! if they are, so that elements which each lane has in a row are loaded and stored one by one: the members of a structure that is changed in
//! place, the elements of a small matrix. Mostly all lanes' elements of one array lie on one side of all of the other, which a few comparisons
//! of numbers tell before the block (see [`ahead`](super::ahead)); and what lanes have in the same array lies at known distances. Where lanes load from
//! anywhere, as the colours of a pixel that a picture is turned to, each lane's elements are compared with all that is stored. Where each lane stores to
//! a row of its own, as what gathers the channels of a pixel does, rows have to come one after another too.

use std::collections::BTreeMap;

use simt_ir::{Access, Block, Inst, InstData, Op, Order, Space, Value as IrValue};
use transform::LaneShape;
use transform::packs::may_be_apart;

use super::function::Emitter;
use crate::llvm::{IntPredicate, Value};

/// A load or a store of a block.
#[derive(Clone, Copy)]
struct Own {
    address: IrValue,
    access: Access,
    is_store: bool,
    /// What a lane accesses, in bytes.
    bytes: i64,
}

/// From where to where the accesses of an array are, from its first lane's address on, from that of each row's first, or from each lane's where these
/// are anywhere.
struct Extent {
    first: i64,
    end: i64,
    is_stored: bool,
    count: usize,
}

impl<'c> Emitter<'_, 'c> {
    /// Tests whether the arrays that a block accesses are apart, if that lets accesses go together and can be had at the block's beginning; it is taken for
    /// granted from then on.
    pub(super) fn test_apart_ahead(&mut self, block: Block, tests: &mut Vec<Value<'c>>) {
        let Some(extents) = self.arrays(block) else { return };
        if !extents.keys().all(|base| self.bring_forward(*base, block)) {
            return;
        }
        let extents: Vec<(IrValue, Extent)> = extents.into_iter().collect();
        let stored = extents.iter().filter(|(_, extent)| extent.is_stored);
        for (rows, extent) in stored.filter(|(base, _)| self.p.shapes.of(*base).is_varying()) {
            let holds = self.follow_each_other(*rows, extent);
            tests.push(holds);
        }
        for (at, (one, own)) in extents.iter().enumerate() {
            for (other, others) in
                extents[..at].iter().filter(|(_, others)| own.is_stored || others.is_stored)
            {
                if self.p.shapes.of(*one).is_varying() {
                    self.test_outside((*one, own), (*other, others), tests);
                } else {
                    self.test_outside((*other, others), (*one, own), tests);
                }
            }
        }
        self.ahead.apart = extents.into_iter().map(|(base, _)| base).collect();
    }

    /// Tests whether all that is accessed of the one array is outside of the other, whose lanes are not anywhere.
    fn test_outside(
        &mut self,
        (one, own): (IrValue, &Extent),
        (other, others): (IrValue, &Extent),
        tests: &mut Vec<Value<'c>>,
    ) {
        let b = self.unit.b;
        // What ends behind the array's beginning by less than so many bytes begins in front of its end.
        let within = (others.end - others.first) + (own.end - own.first) - 1;
        for start in self.starts(other) {
            let from = self.offset(start, others.first - own.end + 1);
            if self.p.shapes.of(one).is_varying() {
                let lanes = self.vector(one);
                let behind = b.sub(lanes, b.splat(from, self.unit.lanes));
                tests.push(b.all(b.icmp(IntPredicate::Uge, behind, behind.ty().int_const(within as u64))));
                continue;
            }
            for lane in self.starts(one) {
                let behind = b.sub(lane, from);
                tests.push(b.icmp(IntPredicate::Uge, behind, behind.ty().int_const(within as u64)));
            }
        }
    }

    /// Whether what each lane accesses ends before what the next one does begins.
    fn follow_each_other(&mut self, rows: IrValue, extent: &Extent) -> Value<'c> {
        let b = self.unit.b;
        let (lanes, count) = (self.vector(rows), self.unit.lanes);
        let distances = b.sub(b.subvector(lanes, 1, count - 1), b.subvector(lanes, 0, count - 1));
        let bytes = distances.ty().int_const((extent.end - extent.first) as u64);
        b.all(b.icmp(IntPredicate::Uge, distances, bytes))
    }

    /// What the extent of an array is told from: its first lane's address, or that of each row's first.
    fn starts(&mut self, array: IrValue) -> Vec<Value<'c>> {
        let start = self.natural(array);
        match self.p.shapes.of(array) {
            LaneShape::Rows(_) => (0..self.unit.rows()).map(|row| self.unit.b.extract(start, row)).collect(),
            _ => vec![start],
        }
    }

    /// Whether a test could let accesses of a block go together that otherwise stay in order.
    pub(super) fn may_have_arrays_apart(&self, block: Block) -> bool {
        self.arrays(block).is_some_and(|arrays| arrays.len() > 1)
    }

    /// The arrays of a block, by what their addresses are computed from; nothing if their accesses had better stay in order.
    fn arrays(&self, block: Block) -> Option<BTreeMap<IrValue, Extent>> {
        let p = self.p;
        if !may_be_apart(p, block) {
            return None;
        }
        let mut extents: BTreeMap<IrValue, Extent> = BTreeMap::new();
        let (mut stores, mut after_store) = (0, 0);
        for inst in &p.func.block(block).insts {
            let data = p.func.inst(*inst);
            // What is the same for all lanes and no kernel changes is nobody's element.
            let Some(own) = self.own(data) else { continue };
            let (low, high) = match p.shapes.of(own.address) {
                LaneShape::Uniform | LaneShape::Varying => (0, 0),
                LaneShape::Affine(offsets) | LaneShape::Rows(offsets) => {
                    (*offsets.iter().min()?, *offsets.iter().max()?)
                }
            };
            let (first, end) = (low + own.access.offset, high + own.access.offset + own.bytes);
            let extent =
                extents.entry(own.address).or_insert(Extent { first, end, is_stored: false, count: 0 });
            (extent.first, extent.end) = (extent.first.min(first), extent.end.max(end));
            extent.is_stored |= own.is_store;
            extent.count += 1;
            stores += usize::from(own.is_store);
            after_store += usize::from(stores > 0 && !own.is_store);
        }
        let has_rows = extents.values().any(|extent| extent.count > 1);
        (has_rows && after_store > 0).then_some(extents)
    }

    /// What a load or a store is that may pass others.
    fn own(&self, data: &InstData) -> Option<Own> {
        let (access, element, is_store) = match data.op {
            Op::Load(access) => (access, data.results[0], false),
            Op::Store(access) => (access, data.args[1], true),
            _ => return None,
        };
        let bytes = i64::from(self.lane_type(element).scalar_bits() / 8 * u32::from(access.lanes));
        let is_plain = access.order == Order::Weak && access.space == Space::Global;
        is_plain.then_some(Own { address: data.args[0], access, is_store, bytes })
    }

    /// How far the lanes' addresses are from the first one's, if that is known, in ascending order.
    fn sorted_offsets(&self, address: IrValue) -> Option<Vec<i64>> {
        match self.p.shapes.of(address) {
            LaneShape::Uniform => Some(vec![0]),
            LaneShape::Affine(offsets) => {
                let mut sorted = offsets.to_vec();
                sorted.sort_unstable();
                Some(sorted)
            }
            _ => None,
        }
    }

    /// Has a value at hand that the block computes from what is known at its beginning, or loads before it stores.
    fn bring_forward(&mut self, value: IrValue, block: Block) -> bool {
        let p = self.p;
        if p.def_block[value.index()] != Some(block) || self.local.contains_key(&value) {
            return self.is_at_hand(value);
        }
        let insts = &p.func.block(block).insts;
        let Some(at) = insts.iter().position(|inst| p.func.inst(*inst).results == [value]) else {
            return self.is_at_hand(value);
        };
        let is_store = |inst: &Inst| matches!(p.func.inst(*inst).op, Op::Store(_));
        let data = p.func.inst(insts[at]);
        let is_load = self.own(data).is_some() && !insts[..at].iter().any(is_store);
        if !is_load && !data.op.is_pure() {
            return self.is_at_hand(value);
        }
        let is_there =
            data.args.iter().all(|arg| self.bring_forward(*arg, block)) && self.inst(insts[at]).is_ok();
        if is_load {
            self.joined.insert(insts[at]);
        }
        is_there
    }

    /// Whether one of two accesses, of which one is a store, may come before or after the other, whatever lanes they are of.
    pub(super) fn may_pass(&self, one: Inst, other: Inst) -> bool {
        let p = self.p;
        let [Some(one), Some(other)] = [one, other].map(|inst| self.own(p.func.inst(inst))) else {
            return false;
        };
        if one.address != other.address {
            return [one, other].iter().all(|own| self.ahead.apart.contains(&own.address));
        }
        let Some(starts) = self.sorted_offsets(one.address) else { return false };
        // No lane's element of one overlaps a lane's of the other.
        starts.iter().all(|start| {
            let from = start + one.access.offset - other.access.offset;
            let next = starts.partition_point(|other_start| other_start + other.bytes <= from);
            starts.get(next).is_none_or(|other_start| *other_start >= from + one.bytes)
        })
    }
}
