//! Exchange between the lanes of a warp.

use kernel_abi::CompileError;
use simt_ir::{Inst, IntBinary, Op, ShuffleMode, Value as IrValue, VoteMode};

use super::function::Emitter;
use super::{LANES, unsupported};
use crate::llvm::{IntPredicate, Type, Value};
use crate::target::Level;

impl<'c> Emitter<'_, 'c> {
    pub(super) fn shuffle(&mut self, inst: Inst, mode: ShuffleMode) {
        let b = self.unit.b;
        let p = self.p;
        let data = p.func.inst(inst);
        if self.unit.shape.gang > 1 {
            return self.shuffle_in_gang(inst, mode);
        }
        if p.shapes.of(data.results[0]).is_uniform() {
            return self.broadcast(inst);
        }
        let members = data.args.get(3).copied();
        let value = self.taking_part_only(data.args[0], members);
        let sources = self.known_sources(mode, data.args[1], data.args[2]);
        let (picked, valid, source) = if let Some(sources) = sources {
            let near = p.wanted.near(data.results[0], sources.map(|(lane, _)| lane));
            let picked = b.shuffle(value, value, &near.map(|lane| lane as i32));
            let valid = self.unit.types.mask.int_vector(&sources.map(|(_, valid)| u64::from(valid)));
            (picked, valid, value.ty().int_vector(&sources.map(|(lane, _)| u64::from(lane))))
        } else {
            let (lane, clamp) = (self.vector(data.args[1]), self.vector(data.args[2]));
            let (source, valid) = self.source_lanes(mode, lane, clamp);
            (self.permute(value, source), valid, source)
        };
        let picked = match members {
            Some(members) if !p.shapes.of(members).is_uniform() => {
                let members = self.vector(members);
                let source = b.and(source, source.ty().int_const(31));
                let bit = b.and(b.lshr(members, source), members.ty().int_const(1));
                b.select(b.icmp(IntPredicate::Ne, bit, bit.ty().zero()), picked, picked.ty().zero())
            }
            _ => picked,
        };
        self.define(data.results[0], picked);
        if let Some(result) = data.results.get(1) {
            self.define(*result, valid);
        }
    }

    /// The lane that each lane reads, and whether that is in range, where that is known now.
    pub(super) fn known_sources(
        &self,
        mode: ShuffleMode,
        lane: IrValue,
        clamp: IrValue,
    ) -> Option<[(u32, bool); 32]> {
        let clamp = self.p.func.constant(clamp)? as u32;
        if let Some(lane) = self.p.func.constant(lane) {
            return Some(mode.sources(lane as u32, clamp));
        }
        let lanes = self.known_numbers(lane)?;
        Some(std::array::from_fn(|at| mode.sources(lanes[at] as u32, clamp)[at]))
    }

    /// What a value is in each lane, where that is known, or is another such value and a constant.
    fn known_numbers(&self, value: IrValue) -> Option<Vec<u64>> {
        let p = self.p;
        if let Some(numbers) = p.shapes.known(value) {
            return Some(numbers.to_vec());
        }
        let data = p.func.def_inst(value).filter(|data| data.op == Op::Int(IntBinary::Add))?;
        let constants = [0, 1].map(|at| p.func.constant(data.args[at]));
        let at = constants.iter().position(|constant| constant.is_some())?;
        let (numbers, constant) = (p.shapes.known(data.args[1 - at])?, constants[at]?);
        Some(numbers.iter().map(|number| number.wrapping_add(constant) & p.func.ty(value).mask()).collect())
    }

    /// A shuffle of all lanes of each of a gang's warps, by constants.
    fn shuffle_in_gang(&mut self, inst: Inst, mode: ShuffleMode) {
        let b = self.unit.b;
        let p = self.p;
        let data = p.func.inst(inst);
        let constant =
            |at: usize| p.func.constant(data.args[at]).expect("a gang's shuffles are by constants");
        let (lane, clamp) = (constant(1) as u32, constant(2) as u32);
        let vector = self.vector(data.args[0]);
        let value = if self.is_full() {
            vector
        } else {
            let mask = self.active();
            b.select(mask, vector, vector.ty().zero())
        };
        let sources = mode.sources(lane, clamp);
        let near = p.wanted.near(data.results[0], sources.map(|(lane, _)| lane));
        let of_warp = |at: u32| (at - at % LANES, (at % LANES) as usize);
        let lanes = (0..self.unit.lanes).map(of_warp).map(|(first, at)| (first + near[at]) as i32);
        let lanes: Vec<i32> = lanes.collect();
        // Of integers LLVM would look for zeros in each lane, through one shuffle after another.
        let context = self.unit.context();
        let float = if value.ty().scalar_bits() == 64 { context.double() } else { context.float() };
        let float = b.bitcast(value, float.vector(self.unit.lanes));
        self.define(data.results[0], b.bitcast(b.shuffle(float, float, &lanes), value.ty()));
        if let Some(result) = data.results.get(1) {
            let valid = (0..self.unit.lanes).map(of_warp).map(|(_, at)| u64::from(sources[at].1));
            let valid: Vec<u64> = valid.collect();
            self.define(*result, self.unit.types.mask.int_vector(&valid));
        }
    }

    /// The lanes of a value, with zeros in those that do not take part, as far as that is the same for all lanes.
    fn taking_part_only(&mut self, value: IrValue, members: Option<IrValue>) -> Value<'c> {
        let b = self.unit.b;
        let vector = self.vector(value);
        let members = members.filter(|members| self.p.shapes.of(*members).is_uniform());
        if self.all_take_part(members) {
            return vector;
        }
        let part = self.taking_part(members);
        b.select(self.unit.int_to_mask(part), vector, vector.ty().zero())
    }

    /// Whether surely all lanes take part in an operation with this member mask.
    fn all_take_part(&self, members: Option<IrValue>) -> bool {
        let all = |members| self.p.func.constant(members) == Some(u32::MAX.into());
        self.is_full() && members.is_none_or(all)
    }

    /// A shuffle in which all lanes read one lane.
    fn broadcast(&mut self, inst: Inst) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let members = data.args.get(3).copied();
        let value = if self.p.shapes.of(data.args[0]).is_uniform() {
            self.natural(data.args[0])
        } else {
            let vector = self.vector(data.args[0]);
            let lane = self.natural(data.args[1]);
            b.extract_dynamic(vector, b.and(lane, lane.ty().int_const(31)))
        };
        let value = if self.all_take_part(members) {
            value
        } else {
            let (part, lane) = (self.taking_part(members), self.natural(data.args[1]));
            let lane = b.and(lane, lane.ty().int_const(31));
            let bit = b.and(b.lshr(part, lane), part.ty().int_const(1));
            b.select(self.nonzero(bit), value, value.ty().zero())
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
        if self.unit.shape.gang > 1 {
            return self.vote_in_gang(inst, mode);
        }
        let part = self.taking_part(data.args.get(1).copied());
        let votes = self.vector(data.args[0]);
        let votes = b.mask_to_int(votes);
        let votes = if part.ty().is_vector() { b.splat(votes, LANES) } else { votes };
        let value = self.counted(mode, b.and(votes, part), part);
        self.define_scalar_or_vector(data.results[0], value);
    }

    /// A vote of all lanes of each of a gang's warps.
    fn vote_in_gang(&mut self, inst: Inst, mode: VoteMode) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let (mask, votes) = (self.active(), self.vector(data.args[0]));
        let votes = b.and(votes, mask);
        let value = self.of_each_warp(|first| {
            let [votes, part] = [votes, mask].map(|mask| b.mask_to_int(b.subvector(mask, first, LANES)));
            self.counted(mode, votes, part)
        });
        self.define(data.results[0], value);
    }

    /// In each lane of a gang what its warp has, of which the first lane is given.
    fn of_each_warp(&self, of_warp: impl Fn(u32) -> Value<'c>) -> Value<'c> {
        let firsts = (0..self.unit.lanes).step_by(LANES as usize);
        self.concatenated(firsts.map(|first| self.unit.b.splat(of_warp(first), LANES)).collect())
    }

    /// What a vote gives, of the lanes that take part and those of them whose vote is yes.
    fn counted(&self, mode: VoteMode, votes: Value<'c>, part: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let all = || b.icmp(IntPredicate::Eq, votes, part);
        let any = || self.nonzero(votes);
        match mode {
            VoteMode::All => all(),
            VoteMode::Any => any(),
            VoteMode::Uni => b.or(all(), b.not(any())),
            VoteMode::Ballot => votes,
        }
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
        let same_as = |this: &mut Self, at| {
            let own = b.splat(this.element(values, at, ty), LANES);
            b.and(b.mask_to_int(b.icmp(IntPredicate::Eq, vector, own)), active)
        };
        // Often it is one value.
        let all = same_as(self, self.lowest(active));
        b.store(b.splat(all, LANES), results, 64);
        self.where_holds(b.icmp(IntPredicate::Ne, all, active), |this| {
            this.for_each_lane(active, |this, at| {
                let same = same_as(this, at);
                b.store(same, this.element_ptr(results, at, i32), 4);
            });
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

    pub(super) fn match_all(&mut self, inst: Inst) {
        let data = self.p.func.inst(inst);
        let vector = self.vector(data.args[0]);
        let (i32, bit) = (self.unit.types.i32, self.unit.types.bit);
        let results = self.for_members(data.args[1], &[i32, bit], |this, part| {
            let b = this.unit.b;
            let first = b.extract_dynamic(vector, this.lowest(part));
            let same = b.mask_to_int(b.icmp(IntPredicate::Eq, vector, b.splat(first, LANES)));
            let all = b.icmp(IntPredicate::Eq, b.and(same, part), part);
            // A member that has exited, or never was, is not in the answer.
            vec![b.select(all, part, part.ty().zero()), all]
        });
        for (result, value) in data.results.iter().zip(results) {
            self.define_scalar_or_vector(*result, value);
        }
    }

    pub(super) fn redux(&mut self, inst: Inst, op: IntBinary) -> Result<(), CompileError> {
        let data = self.p.func.inst(inst);
        let b = self.unit.b;
        let vector = self.vector(data.args[0]);
        let i32 = self.unit.types.i32;
        let ty = i32.vector(LANES);
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
        let reduced = |mask, values| b.intrinsic(name, &[ty], &[b.select(mask, values, identity)]);
        if self.unit.shape.gang > 1 {
            let mask = self.active();
            let value = self.of_each_warp(|first| {
                reduced(b.subvector(mask, first, LANES), b.subvector(vector, first, LANES))
            });
            self.define(data.results[0], value);
            return Ok(());
        }
        let results = self.for_members(data.args[1], &[i32], |this, part| {
            vec![reduced(this.unit.int_to_mask(part), vector)]
        });
        self.define_scalar_or_vector(data.results[0], results[0]);
        Ok(())
    }

    pub(super) fn elect(&mut self, inst: Inst) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let i32 = self.unit.types.i32;
        let leaders = self.for_members(data.args[0], &[i32], |this, part| vec![this.lowest(part)]);
        let leader = leaders[0];
        self.define_scalar_or_vector(data.results[0], leader);
        if let Some(result) = data.results.get(1) {
            let own = i32.int_vector(&std::array::from_fn::<u64, 32, _>(|lane| lane as u64));
            let leader = if leader.ty().is_vector() { leader } else { b.splat(leader, LANES) };
            self.define(*result, b.icmp(IntPredicate::Eq, own, leader));
        }
    }

    /// Computes something for the lanes that take part, whose member mask they name: scalars if the whole warp has one mask, else for one
    /// mask after the other, and vectors in all.
    fn for_members(
        &mut self,
        members: IrValue,
        types: &[Type<'c>],
        body: impl FnOnce(&mut Self, Value<'c>) -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let part = self.taking_part(Some(members));
        if !part.ty().is_vector() {
            return body(self, part);
        }
        let i32 = self.unit.types.i32;
        let named = self.vector(members);
        let named_array = self.spill(named);
        let mask = self.active();
        let active = b.mask_to_int(mask);
        // Bits are kept as words: lanes of memory are bytes at least.
        let kept: Vec<Type<'c>> =
            types.iter().map(|ty| if *ty == self.unit.types.bit { i32 } else { *ty }).collect();
        let arrays: Vec<Value<'c>> = kept.iter().map(|ty| self.scratch(ty.vector(LANES))).collect();
        let before = b.block();
        let (head, done) = (b.append_block("members"), b.append_block("members.done"));
        let none = b.icmp(IntPredicate::Eq, active, i32.zero());
        b.cond_br(none, done, head);
        b.position_at_end(head);
        let left = b.phi(i32);
        left.add_incoming(active, before);
        let lane = b.cttz(left.value());
        let own = self.element(named_array, lane, i32);
        let same = b.icmp(IntPredicate::Eq, named, b.splat(own, LANES));
        let group = b.and(b.mask_to_int(same), left.value());
        let results = body(self, b.and(group, own));
        let lanes = self.unit.int_to_mask(group);
        for ((array, value), ty) in arrays.iter().zip(results).zip(&kept) {
            let value = if value.ty() == self.unit.types.bit { b.zext(value, i32) } else { value };
            let old = b.load(ty.vector(LANES), *array, 64);
            b.store(b.select(lanes, b.splat(value, LANES), old), *array, 64);
        }
        let rest = b.and(left.value(), b.not(group));
        left.add_incoming(rest, b.block());
        let last = b.icmp(IntPredicate::Eq, rest, i32.zero());
        b.cond_br(last, done, head);
        b.position_at_end(done);
        arrays
            .iter()
            .zip(types)
            .map(|(array, ty)| {
                let is_bit = *ty == self.unit.types.bit;
                let ty = if is_bit { i32 } else { *ty };
                let value = b.load(ty.vector(LANES), *array, 64);
                if is_bit { b.icmp(IntPredicate::Ne, value, value.ty().zero()) } else { value }
            })
            .collect()
    }

    /// The lowest lane set in an i32, at most 31.
    fn lowest(&self, lanes: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        b.and(b.cttz(lanes), lanes.ty().int_const(31))
    }
}
