//! Exchange between the lanes of a warp.

use kernel_abi::CompileError;
use simt_ir::{Inst, IntBinary, ShuffleMode, Value as IrValue, VoteMode};

use super::function::Emitter;
use super::{LANES, unsupported};
use crate::llvm::{IntPredicate, Value};
use crate::target::Level;

impl<'c> Emitter<'_, 'c> {
    pub(super) fn shuffle(&mut self, inst: Inst, mode: ShuffleMode) {
        let b = self.unit.b;
        let p = self.p;
        let data = p.func.inst(inst);
        if p.shapes.of(data.results[0]).is_uniform() {
            return self.broadcast(inst);
        }
        let value = self.vector(data.args[0]);
        let constants = (p.func.constant(data.args[1]), p.func.constant(data.args[2]));
        let (picked, valid) = if let (Some(lane), Some(clamp)) = constants {
            let sources: [(u32, bool); 32] =
                std::array::from_fn(|at| source_lane(mode, at as u32, lane as u32, clamp as u32));
            let picked = b.shuffle(value, value, &sources.map(|(lane, _)| lane as i32));
            let valid = self.unit.types.mask.int_vector(&sources.map(|(_, valid)| u64::from(valid)));
            (picked, valid)
        } else {
            let (lane, clamp) = (self.vector(data.args[1]), self.vector(data.args[2]));
            let (source, valid) = self.source_lanes(mode, lane, clamp);
            (self.permute(value, source), valid)
        };
        self.define(data.results[0], picked);
        if let Some(result) = data.results.get(1) {
            self.define(*result, valid);
        }
    }

    /// A shuffle in which all lanes read one lane.
    fn broadcast(&mut self, inst: Inst) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let value = if self.p.shapes.of(data.args[0]).is_uniform() {
            self.natural(data.args[0])
        } else {
            let vector = self.vector(data.args[0]);
            let lane = self.natural(data.args[1]);
            b.extract_dynamic(vector, b.and(lane, lane.ty().int_const(31)))
        };
        self.define_scalar_or_vector(data.results[0], value);
        if let Some(valid) = data.results.get(1) {
            self.define_scalar_or_vector(*valid, self.unit.types.bit.all_ones());
        }
    }

    /// The lane each lane reads, and whether it is in range.
    fn source_lanes(&self, mode: ShuffleMode, lane: Value<'c>, clamp: Value<'c>) -> (Value<'c>, Value<'c>) {
        let b = self.unit.b;
        let ty = lane.ty();
        let own = ty.int_vector(&std::array::from_fn::<u64, 32, _>(|lane| lane as u64));
        let low = ty.int_const(31);
        let lane = b.and(lane, low);
        let bound = b.and(clamp, low);
        let segment = b.and(b.lshr(clamp, ty.int_const(8)), low);
        let within = b.not(segment);
        let max = b.or(b.and(own, segment), b.and(bound, within));
        let (source, valid) = match mode {
            ShuffleMode::Up => {
                let source = b.sub(own, lane);
                (source, b.icmp(IntPredicate::Sge, source, max))
            }
            ShuffleMode::Down => {
                let source = b.add(own, lane);
                (source, b.icmp(IntPredicate::Sle, source, max))
            }
            ShuffleMode::Bfly => {
                let source = b.xor(own, lane);
                (source, b.icmp(IntPredicate::Sle, source, max))
            }
            ShuffleMode::Idx => {
                let source = b.or(b.and(own, segment), b.and(lane, within));
                (source, b.icmp(IntPredicate::Sle, source, max))
            }
        };
        (b.select(valid, source, own), valid)
    }

    /// Lane `source[i]` of `value` in lane i, for lanes below 32.
    fn permute(&mut self, value: Value<'c>, source: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let cpu = self.unit.machine.cpu();
        if cpu.level() >= Level::Avx512 && cpu.vector_bits() == 512 {
            let (low, high) = (b.subvector(value, 0, 16), b.subvector(value, 16, 16));
            let half = |start: u32| {
                let source = b.subvector(source, start, 16);
                b.intrinsic("llvm.x86.avx512.vpermi2var.d.512", &[], &[low, source, high])
            };
            return b.concat(half(0), half(16));
        }
        let memory = self.spill(value);
        let lane = self.unit.types.i32;
        let mut result = value.ty().zero();
        for at in 0..LANES {
            // Masked again so that a lane that is not active, whose index may be anything, reads inside.
            let source = b.and(b.extract(source, at), lane.int_const(31));
            let element = self.element(memory, source, lane);
            result = b.insert(result, element, at);
        }
        result
    }

    /// The lanes that take part in an operation with a member mask: an i32, of the whole warp if the mask is, else of each lane.
    fn taking_part(&mut self, members: Option<IrValue>) -> Value<'c> {
        let b = self.unit.b;
        let mask = self.active();
        let active = b.mask_to_int(mask);
        match members {
            None => active,
            Some(members) if self.p.shapes.of(members).is_uniform() => {
                let members = self.natural(members);
                b.and(active, members)
            }
            Some(members) => {
                let members = self.vector(members);
                b.and(b.splat(active, LANES), members)
            }
        }
    }

    pub(super) fn vote(&mut self, inst: Inst, mode: VoteMode) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let part = self.taking_part(data.args.get(1).copied());
        let votes = self.vector(data.args[0]);
        let votes = b.mask_to_int(votes);
        let votes = if part.ty().is_vector() { b.splat(votes, LANES) } else { votes };
        let votes = b.and(votes, part);
        let all = |b: &crate::llvm::Builder<'c>| b.icmp(IntPredicate::Eq, votes, part);
        let any = self.nonzero(votes);
        let value = match mode {
            VoteMode::All => all(b),
            VoteMode::Any => any,
            VoteMode::Uni => b.or(all(b), b.not(any)),
            VoteMode::Ballot => votes,
        };
        self.define_scalar_or_vector(data.results[0], value);
    }

    /// For each lane, which active lanes hold the same value.
    fn same_value(&mut self, value: IrValue) -> Value<'c> {
        let b = self.unit.b;
        let ty = self.lane_type(value);
        let i32 = self.unit.types.i32;
        let vector = self.vector(value);
        let values = self.spill(vector);
        let results = self.scratch(i32.vector(LANES));
        let mask = self.active();
        let active = b.mask_to_int(mask);
        self.for_each_lane(active, |this, at| {
            let own = b.splat(this.element(values, at, ty), LANES);
            let same = b.mask_to_int(b.icmp(IntPredicate::Eq, vector, own));
            b.store(b.and(same, active), this.element_ptr(results, at, i32), 4);
        });
        b.load(i32.vector(LANES), results, 64)
    }

    pub(super) fn match_any(&mut self, inst: Inst) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let same = self.same_value(data.args[0]);
        let members = self.vector(data.args[1]);
        self.define(data.results[0], b.and(same, members));
    }

    pub(super) fn match_all(&mut self, inst: Inst) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        if !self.p.shapes.of(data.args[1]).is_uniform() {
            return Err(unsupported("`match.all` with member masks that differ", data.loc));
        }
        let part = self.taking_part(Some(data.args[1]));
        let vector = self.vector(data.args[0]);
        let first = b.extract_dynamic(vector, self.lowest(part));
        let same = b.mask_to_int(b.icmp(IntPredicate::Eq, vector, b.splat(first, LANES)));
        let all = b.icmp(IntPredicate::Eq, b.and(same, part), part);
        // A member that has exited, or never was, is not in the answer.
        let mask = b.select(all, part, part.ty().zero());
        self.define_scalar_or_vector(data.results[0], mask);
        if let Some(result) = data.results.get(1) {
            self.define_scalar_or_vector(*result, all);
        }
        Ok(())
    }

    pub(super) fn redux(&mut self, inst: Inst, op: IntBinary) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        if !self.p.shapes.of(data.args[1]).is_uniform() {
            return Err(unsupported("`redux` with member masks that differ", data.loc));
        }
        let vector = self.vector(data.args[0]);
        let ty = vector.ty();
        let (name, identity) = match op {
            IntBinary::Add => ("llvm.vector.reduce.add", ty.zero()),
            IntBinary::And => ("llvm.vector.reduce.and", ty.all_ones()),
            IntBinary::Or => ("llvm.vector.reduce.or", ty.zero()),
            IntBinary::Xor => ("llvm.vector.reduce.xor", ty.zero()),
            IntBinary::MinS => ("llvm.vector.reduce.smin", ty.int_const(i32::MAX as u64)),
            IntBinary::MinU => ("llvm.vector.reduce.umin", ty.all_ones()),
            IntBinary::MaxS => ("llvm.vector.reduce.smax", ty.int_const(1 << 31)),
            IntBinary::MaxU => ("llvm.vector.reduce.umax", ty.zero()),
            _ => return Err(unsupported(&format!("`redux` with {op:?}"), data.loc)),
        };
        let part = self.taking_part(Some(data.args[1]));
        let value = b.select(b.int_to_mask(part), vector, identity);
        let value = b.intrinsic(name, &[ty], &[value]);
        self.define_scalar_or_vector(data.results[0], value);
        Ok(())
    }

    pub(super) fn elect(&mut self, inst: Inst) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let part = self.taking_part(Some(data.args[0]));
        if part.ty().is_vector() {
            return Err(unsupported("`elect` with member masks that differ", data.loc));
        }
        let leader = self.lowest(part);
        self.define_scalar_or_vector(data.results[0], leader);
        if let Some(result) = data.results.get(1) {
            let ty = self.unit.types.i32;
            let own = ty.int_vector(&std::array::from_fn::<u64, 32, _>(|lane| lane as u64));
            let elected = b.icmp(IntPredicate::Eq, own, b.splat(leader, LANES));
            self.define(*result, elected);
        }
        Ok(())
    }

    /// The lowest lane set in an i32, at most 31.
    fn lowest(&self, lanes: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        b.and(b.cttz(lanes), lanes.ty().int_const(31))
    }
}

/// The lane that `at` reads, and whether it is in range: the shuffles of the PTX ISA, for operands known now.
fn source_lane(mode: ShuffleMode, at: u32, lane: u32, clamp: u32) -> (u32, bool) {
    let (lane, bound, segment) = (lane & 31, clamp & 31, clamp >> 8 & 31);
    let max = at & segment | bound & !segment & 31;
    let (at, lane, max) = (at as i32, lane as i32, max as i32);
    let (source, valid) = match mode {
        ShuffleMode::Up => (at - lane, at - lane >= max),
        ShuffleMode::Down => (at + lane, at + lane <= max),
        ShuffleMode::Bfly => (at ^ lane, at ^ lane <= max),
        ShuffleMode::Idx => {
            let source = at & segment as i32 | lane & !(segment as i32) & 31;
            (source, source <= max)
        }
    };
    if valid { (source as u32, true) } else { (at as u32, false) }
}
