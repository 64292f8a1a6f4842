//! Accesses that may pass each other.
//!
//! Where a kernel stores to one array between loads from another, and does not say that they are apart, a load can go ahead of a store only
//! if they are, so that elements which each lane has in a row are loaded and stored one by one: the members of a structure that is changed in
//! place, the elements of a small matrix. Mostly all lanes' elements of one array lie on one side of all of the other, which a few comparisons
//! of numbers tell before the block (see [`ahead`](super::ahead)); and what lanes have in the same array lies at known distances.

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

/// From where to where the accesses of an array are, from its first lane's address on.
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
        let b = self.unit.b;
        let extents: Vec<(IrValue, Extent)> = extents.into_iter().collect();
        for (at, (one, own)) in extents.iter().enumerate() {
            for (other, others) in
                extents[..at].iter().filter(|(_, others)| own.is_stored || others.is_stored)
            {
                let [first, second] = [*one, *other].map(|base| self.natural(base));
                let ends_before = |one, end, other, start| {
                    b.icmp(IntPredicate::Ule, self.offset(one, end), self.offset(other, start))
                };
                let before = ends_before(first, own.end, second, others.first);
                tests.push(b.or(before, ends_before(second, others.end, first, own.first)));
            }
        }
        self.ahead.apart = extents.into_iter().map(|(base, _)| base).collect();
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
            let offsets = self.sorted_offsets(own.address)?;
            let (low, high) = (offsets.first()?, offsets.last()?);
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

    /// Has a value at hand that the block computes from what is known at its beginning.
    fn bring_forward(&mut self, value: IrValue, block: Block) -> bool {
        let p = self.p;
        if p.def_block[value.index()] != Some(block) || self.local.contains_key(&value) {
            return self.is_at_hand(value);
        }
        let Some(data) = p.func.def_inst(value).filter(|data| data.op.is_pure()) else {
            return self.is_at_hand(value);
        };
        let Some(inst) =
            p.func.block(block).insts.iter().copied().find(|inst| p.func.inst(*inst).results == [value])
        else {
            return false;
        };
        data.args.iter().all(|arg| self.bring_forward(*arg, block)) && self.inst(inst).is_ok()
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
