//! Instructions that compute from their operands, and thread indices.

use std::mem::offset_of;

use kernel_abi::{BlockFrame, Callbacks, CompileError, LaunchFrame, MAX_WARPS, RESERVED_SHARED, XLayout};
use simt_ir::{
    Convert, Inst, InstData, IntBinary, Op, Shift, Space, SpecialReg, Type as IrType, Value as IrValue,
};
use transform::LaneShape;

use super::function::Emitter;
use super::unsupported;
use crate::llvm::{IntPredicate, Ordering, Type, Value};
use crate::math::value_type;
use crate::target::Level;

/// Registers up to which an operation is done one by one: [`Emitter::in_order`].
const MOST_IN_ORDER: u32 = 4;

impl<'c> Emitter<'_, 'c> {
    /// Emits an instruction and defines its results.
    pub(super) fn inst(&mut self, inst: Inst) -> Result<(), CompileError> {
        let p = self.p;
        let data = p.func.inst(inst);
        if let [result] = data.results[..]
            && self.is_prologue(result)
        {
            return Ok(());
        }
        if let [result] = data.results[..]
            && let Some(natural) = self.known(result)
        {
            self.define(result, natural);
            return Ok(());
        }
        self.end_copies(&data.op);
        match data.op {
            Op::SpecialReg(reg) => {
                let value = self.counter(reg, data)?;
                self.define_scalar_or_vector(data.results[0], value);
            }
            Op::StackSave => {
                let pointers = self.stack_pointers();
                self.define(data.results[0], pointers);
            }
            Op::StackRestore => self.stack_restore(inst),
            Op::Keep(cell) => self.keep(cell, data.args[0]),
            Op::Recall(cell) => self.recall(cell, data.results[0]),
            Op::Load(access) => self.load(inst, access)?,
            Op::Store(access) => self.store(inst, access)?,
            Op::Atomic(op, access) => self.atomic(inst, op, access)?,
            Op::AtomicCas(access) => self.atomic_cas(inst, access)?,
            Op::MbarrierArrive { drop, together, access } => {
                self.mbarrier_arrive(inst, drop, together, access);
            }
            Op::Bulk(op) => self.bulk(inst, &op),
            Op::Fence { order, .. } => self.unit.b.fence(match order {
                simt_ir::Order::SeqCst => Ordering::SequentiallyConsistent,
                _ => Ordering::AcquireRelease,
            }),
            Op::Shuffle(mode) => self.shuffle(inst, mode),
            Op::Vote(mode) => self.vote(inst, mode),
            Op::MatchAny => self.match_any(inst),
            Op::MatchAll => self.match_all(inst),
            Op::Redux(op) => self.redux(inst, op)?,
            Op::MatrixMultiply(op) => self.matrix_multiply(inst, &op),
            Op::ActiveMask => {
                let mask = self.active();
                let bits = self.unit.b.mask_to_int(mask);
                self.define_scalar_or_vector(data.results[0], bits);
            }
            Op::Elect => self.elect(inst),
            Op::Unanimous => self.unanimous(data)?,
            Op::AnyLane => self.any_lane(data),
            Op::FirstLane => self.first_lane(inst),
            Op::FewLanes(most) => self.few_lanes(data, most),
            // The lanes of a warp run in step.
            Op::WarpSync => {}
            Op::Barrier { kind, count } => self.barrier(inst, kind, count)?,
            Op::ClusterBarrier(half) => self.cluster_barrier(inst, half)?,
            Op::Call(func) => self.call(inst, func),
            Op::CallIndirect(sig) => self.call_indirect(inst, sig),
            Op::Syscall(call) => self.syscall(inst, call)?,
            Op::Texture(op) => self.texture(inst, &op),
            Op::Nanosleep => self.nanosleep(inst),
            Op::GiveWay => self.give_way(),
            Op::Refuse(refusal) => self.refuse(data, refusal.into()),
            _ => self.pure(data)?,
        }
        Ok(())
    }

    fn pure(&mut self, data: &InstData) -> Result<(), CompileError> {
        let [result] = data.results[..] else { return Ok(()) };
        if self.pure_packed(data, result)? {
            return Ok(());
        }
        let value = match self.p.shapes.of(result) {
            LaneShape::Varying => {
                if let Some(compared) = self.compared_narrow(data) {
                    self.define(result, compared);
                    return Ok(());
                }
                let args: Vec<Value<'c>> = data.args.iter().map(|arg| self.vector(*arg)).collect();
                self.vector_result(data, result, &args)?
            }
            LaneShape::Rows(_) => {
                let args: Vec<Value<'c>> = data.args.iter().map(|arg| self.row_bases(*arg)).collect();
                self.rows_result(data, result, &args)
            }
            LaneShape::Uniform | LaneShape::Affine(_) => {
                let args: Vec<Value<'c>> = data.args.iter().map(|arg| self.natural(*arg)).collect();
                self.scalar_result(data, result, &args)
            }
        };
        self.define_scalar_or_vector(result, value);
        Ok(())
    }

    /// A comparison of what has been extended by zeros with a constant, made before it is. Masks that have registers of their own are as good
    /// from vectors of bytes as from those of words.
    fn compared_narrow(&mut self, data: &InstData) -> Option<Value<'c>> {
        let p = self.p;
        let Op::IntCmp(cmp) = data.op else { return None };
        let limit = p.func.constant(data.args[1])?;
        let extended = p.func.def_inst(data.args[0]).filter(|data| data.op == Op::Convert(Convert::ZExt))?;
        let narrow = extended.args[0];
        let is_here = p.def_block[narrow.index()] == Some(self.current);
        // As a signed number of more bits what is extended is not negative.
        let ty = p.func.ty(narrow);
        let fits = ty != IrType::Pred && limit <= ty.mask();
        if !is_here || !fits || self.is_quick() || self.unit.machine.cpu().level() < Level::Avx512 {
            return None;
        }
        let value = self.vector(narrow);
        let limit = value.ty().int_const(limit);
        let op = Op::IntCmp(cmp.unsigned());
        self.unit.math().op(op, &[value, limit], &[ty, ty], IrType::Pred)
    }

    /// The result of a pure operation in each lane.
    pub(super) fn vector_result(
        &mut self,
        data: &InstData,
        result: IrValue,
        args: &[Value<'c>],
    ) -> Result<Value<'c>, CompileError> {
        let b = self.unit.b;
        Ok(match data.op {
            Op::ToGeneric(space) => {
                let base = self.window(space);
                b.add(args[0], base)
            }
            Op::FromGeneric(space) => {
                let base = self.window(space);
                b.sub(args[0], base)
            }
            Op::IsSpace(space) => self.is_space(space, args[0]),
            Op::Int(op @ (IntBinary::DivS | IntBinary::DivU | IntBinary::RemS | IntBinary::RemU))
                if self.has_divisor_for_all(data, args[0]) =>
            {
                let divisor = self.natural(data.args[1]);
                self.unit.math().divide_by_same(op, args[0], divisor)
            }
            op => self
                .in_order(op, data, result, args)
                .or_else(|| self.math_op(op, data, result, args))
                .ok_or_else(|| unsupported(&format!("{op:?}"), data.loc))?,
        })
    }

    /// Whether all lanes divide numbers of 32 bits by the same, which is not known before it runs.
    fn has_divisor_for_all(&self, data: &InstData, dividends: Value<'c>) -> bool {
        let p = self.p;
        let divisor = data.args[1];
        dividends.ty().scalar_bits() == 32
            && p.shapes.of(divisor).is_uniform()
            && p.func.constant(divisor).is_none()
    }

    /// What an operation makes of what is loaded for it alone, register by register. LLVM takes vectors of several registers apart from the end, and loads
    /// come with the operations they are for: the end of each piece of memory first, which is not the order in which processors fetch it ahead.
    fn in_order(&self, op: Op, data: &InstData, result: IrValue, args: &[Value<'c>]) -> Option<Value<'c>> {
        let b = self.unit.b;
        let p = self.p;
        let is_loaded_for_it = |arg: &IrValue| {
            self.uses[arg.index()] == 1
                && p.def_block[arg.index()] == Some(self.current)
                && matches!(p.op_of(*arg), Some(Op::Load(_)))
        };
        let is_short = matches!(op, Op::Float(..) | Op::Fma(_) | Op::Int(_));
        if self.is_quick() || !is_short || !data.args.iter().any(is_loaded_for_it) {
            return None;
        }
        let (ty, bytes) = (args[0].ty(), self.unit.machine.cpu().registers().bytes);
        let in_register = bytes * 8 / ty.scalar_bits();
        let registers = ty.lanes() / in_register;
        if !(2..=MOST_IN_ORDER).contains(&registers) || args.iter().any(|arg| arg.ty() != ty) {
            return None;
        }
        let piece = |at: u32| {
            let args: Vec<Value<'c>> =
                args.iter().map(|arg| b.subvector(*arg, at * in_register, in_register)).collect();
            self.math_op(op, data, result, &args)
        };
        (0..registers).map(piece).collect::<Option<_>>().map(|pieces| self.concatenated(pieces))
    }

    /// The result of a pure operation that is uniform or affine, from its operands' natural forms.
    pub(super) fn scalar_result(
        &mut self,
        data: &InstData,
        result: IrValue,
        args: &[Value<'c>],
    ) -> Value<'c> {
        let b = self.unit.b;
        match data.op {
            // The base of an affine value has zeros where the constant acts, so the constant is all in the offsets.
            Op::Int(IntBinary::Or | IntBinary::Xor) if data.args.iter().any(|arg| self.is_affine(*arg)) => {
                if self.is_affine(data.args[0]) {
                    args[0]
                } else {
                    args[1]
                }
            }
            Op::Convert(Convert::ZExt) if self.is_affine(data.args[0]) => {
                b.sext(args[0], self.lane_type(result))
            }
            Op::ToGeneric(space) => {
                let base = self.window_scalar(space);
                b.add(args[0], base)
            }
            Op::FromGeneric(space) => {
                let base = self.window_scalar(space);
                b.sub(args[0], base)
            }
            Op::IsSpace(space) => self.is_space(space, args[0]),
            Op::LocalBase => self.local_base,
            Op::GlobalAddr(global) => {
                let globals = self.launch_field(offset_of!(LaunchFrame, globals), self.unit.types.ptr);
                let place = b.ptr_offset(globals, 8 * i64::from(global.0));
                b.mark_invariant(b.load(self.unit.types.i64, place, 8))
            }
            Op::FuncToken(func) => self.unit.types.i64.int_const(self.unit.program.function(func).token),
            op => self.math_op(op, data, result, args).expect("every pure operation has a meaning"),
        }
    }

    /// The bases of a result that is affine in each row, from its operands' bases there.
    pub(super) fn rows_result(&self, data: &InstData, result: IrValue, args: &[Value<'c>]) -> Value<'c> {
        let b = self.unit.b;
        let rows = self.unit.rows();
        let is_number =
            |arg: &Value<'c>| arg.ty().is_vector() && arg.ty().is_int() && arg.ty().scalar_bits() > 1;
        if args.iter().all(is_number) && self.has_rows_apart() && is_integer(&data.op) {
            return self.of_rows(|row| {
                let own: Vec<Value<'c>> = args.iter().map(|arg| b.extract(*arg, row)).collect();
                self.rows_result(data, result, &own)
            });
        }
        let of_all = |scalar| if args[0].ty().is_vector() { b.splat(scalar, rows) } else { scalar };
        match data.op {
            // As of an affine value: a row's first lane need not be active, and then its value may be negative. Where all lanes of a
            // row have the base itself it is that of those that are active.
            Op::Convert(Convert::ZExt) if matches!(self.p.shapes.of(result), LaneShape::Rows(offsets) if offsets.iter().any(|o| *o != 0)) => {
                b.sext(args[0], self.lane_type(result))
            }
            Op::ToGeneric(space) => b.add(args[0], of_all(self.window_scalar(space))),
            Op::FromGeneric(space) => b.sub(args[0], of_all(self.window_scalar(space))),
            op => self.math_op(op, data, result, args).expect("what keeps rows has a meaning"),
        }
    }

    pub(super) fn math_op(
        &self,
        op: Op,
        data: &InstData,
        result: IrValue,
        args: &[Value<'c>],
    ) -> Option<Value<'c>> {
        if let Some(value) = self.fma_in_binade(op, data, result, args) {
            return Some(value);
        }
        let types: Vec<simt_ir::Type> = data.args.iter().map(|arg| self.p.func.ty(*arg)).collect();
        if op == Op::Int(IntBinary::Mul)
            && types[0] == IrType::I64
            && args[0].ty().is_vector()
            && data.args.iter().all(|arg| self.is_half(*arg))
            && !data.args.iter().any(|arg| self.p.func.constant(*arg).is_some_and(u64::is_power_of_two))
        {
            // LLVM, which looks no further than a block, multiplies halves where it sees that there is no more. By a power of two it shifts.
            let b = self.unit.b;
            let halves: Vec<_> =
                args.iter().map(|arg| b.and(*arg, arg.ty().int_const(u32::MAX.into()))).collect();
            return self.computed(op, &halves, &types, self.p.func.ty(result));
        }
        self.computed(op, args, &types, self.p.func.ty(result))
    }

    /// Whether a number of 64 bits comes from something that leaves the upper half zero.
    fn is_half(&self, value: IrValue) -> bool {
        let func = &self.p.func;
        if let Some(bits) = func.constant(value) {
            return bits <= u32::MAX.into();
        }
        func.def_inst(value).is_some_and(|data| {
            let constant = data.args.get(1).and_then(|arg| func.constant(*arg));
            match data.op {
                Op::Convert(Convert::ZExt) => true,
                Op::Shift(Shift::RightU) => constant.is_some_and(|amount| (32..64).contains(&amount)),
                Op::Int(IntBinary::And) => constant.is_some_and(|mask| mask <= u32::MAX.into()),
                _ => false,
            }
        })
    }

    /// A directed sum of a constant and a multiple of what is known to be from 0 to 1, where that is cheap.
    fn fma_in_binade(
        &self,
        op: Op,
        data: &InstData,
        result: IrValue,
        args: &[Value<'c>],
    ) -> Option<Value<'c>> {
        let Op::Fma(mode) = op else { return None };
        let func = &self.p.func;
        let saturated = |value: IrValue| {
            func.def_inst(value).is_some_and(|data| match data.op {
                Op::Float(_, mode) | Op::Fma(mode) | Op::Convert(Convert::FloatToFloat(mode)) => mode.sat,
                _ => false,
            })
        };
        let constant = |at: usize| func.constant(data.args[at]).map(|bits| f32::from_bits(bits as u32));
        let x = if saturated(data.args[0]) { 0 } else { 1 };
        let (y, z) = (constant(1 - x)?, constant(2)?);
        let math = self.unit.math();
        let applies = func.ty(result) == simt_ir::Type::F32
            && (mode.ftz || !self.unit.flushing)
            && saturated(data.args[x])
            && math.keeps_exponent(mode, y, z);
        applies.then(|| math.fma_in_binade(mode, args[x], args[1 - x], args[2], z.is_sign_negative()))
    }

    fn is_affine(&self, value: IrValue) -> bool {
        matches!(self.p.shapes.of(value), LaneShape::Affine(_))
    }

    // Windows

    /// Generic address of the beginning of a window, in each lane.
    fn window(&mut self, space: Space) -> Value<'c> {
        match space {
            Space::Local => self.local_windows(),
            _ => self.unit.b.splat(self.window_scalar(space), self.unit.lanes),
        }
    }

    /// Generic address of the beginning of a window that all lanes share.
    pub(super) fn window_scalar(&self, space: Space) -> Value<'c> {
        let i64 = self.unit.types.i64;
        match space {
            Space::Shared => self.shared_base,
            Space::Param => self.launch_field(offset_of!(LaunchFrame, params), i64),
            Space::Generic | Space::Global | Space::Const | Space::Local => i64.zero(),
        }
    }

    /// The bytes of the block's shared memory, of which the kernel's own are known.
    pub(super) fn shared_window_bytes(&self) -> Value<'c> {
        let (b, least) = (self.unit.b, RESERVED_SHARED + self.unit.program.shared_bytes);
        let bytes = self.launch_field(offset_of!(LaunchFrame, shared_bytes), self.unit.types.i32);
        b.zext(b.mark_at_least(bytes, least.into()), self.unit.types.i64)
    }

    /// Generic address of the first lane's local window, and the bytes of each.
    pub(super) fn first_local_window(&self) -> (Value<'c>, Value<'c>) {
        let b = self.unit.b;
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        let local = b.ptr_offset(self.place.frame, offset_of!(BlockFrame, local) as i64);
        let local = b.mark_invariant(b.load(i64, local, 8));
        let bytes = b.zext(self.launch_field(offset_of!(LaunchFrame, local_bytes), i32), i64);
        let first = b.zext(self.unit.first_thread(self.place.warp), i64);
        (b.add(local, b.mul(first, bytes)), bytes)
    }

    /// Generic address of each lane's local window.
    pub(super) fn local_windows(&self) -> Value<'c> {
        let b = self.unit.b;
        let (start, bytes) = self.first_local_window();
        let lane = self.unit.lane_indices(self.unit.types.i64);
        b.add(b.splat(start, self.unit.lanes), b.mul(lane, b.splat(bytes, self.unit.lanes)))
    }

    fn is_space(&self, space: Space, address: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        let shape = |value: Value<'c>| {
            if address.ty().is_vector() { b.splat(value, address.ty().lanes()) } else { value }
        };
        let within = |start: Value<'c>, bytes: Value<'c>| {
            b.icmp(IntPredicate::Ult, b.sub(address, shape(start)), shape(bytes))
        };
        let shared = within(self.window_scalar(Space::Shared), self.shared_window_bytes());
        let all_local = {
            let local = b.ptr_offset(self.place.frame, offset_of!(BlockFrame, local) as i64);
            let local = b.mark_invariant(b.load(i64, local, 8));
            let bytes = b.zext(self.launch_field(offset_of!(LaunchFrame, local_bytes), i32), i64);
            let threads = b.zext(self.launch_field(offset_of!(LaunchFrame, threads), i32), i64);
            within(local, b.mul(bytes, threads))
        };
        match space {
            Space::Shared => shared,
            Space::Local => all_local,
            Space::Global => b.not(b.or(shared, all_local)),
            Space::Generic => b.or(shared, b.not(shared)),
            Space::Param => {
                within(self.window_scalar(space), i64.int_const(self.unit.program.param_bytes.into()))
            }
            // Constants are told from other global memory by what the module declares.
            Space::Const => b.and(shared, b.not(shared)),
        }
    }

    // Launch and thread indices

    /// A field of the launch frame, which does not change.
    pub(super) fn launch_field(&self, offset: usize, ty: Type<'c>) -> Value<'c> {
        let b = self.unit.b;
        let align = ty.scalar_bits() / 8;
        b.mark_invariant(b.load(ty, b.ptr_offset(self.place.launch, offset as i64), align))
    }

    /// A kernel parameter.
    pub(super) fn param_load(
        &self,
        access: simt_ir::Access,
        address: Option<u64>,
        value: IrValue,
    ) -> Value<'c> {
        let b = self.unit.b;
        let ty = value_type(self.unit.context(), self.p.func.ty(value));
        let params = self.launch_field(offset_of!(LaunchFrame, params), self.unit.types.ptr);
        let offset = address.unwrap_or(0) as i64 + access.offset;
        let align = (1 << offset.trailing_zeros().min(3)).min(ty.scalar_bits() / 8).max(1);
        b.mark_invariant(b.load(ty, b.ptr_offset(params, offset), align))
    }

    fn dimension(&self, field: usize, axis: u8) -> Value<'c> {
        self.launch_field(field + 4 * usize::from(self.unit.axis(axis)), self.unit.types.i32)
    }

    fn ntid(&self, axis: u8) -> Value<'c> {
        let i32 = self.unit.types.i32;
        match self.unit.shape.size(axis) {
            Some(size) => i32.int_const(size.into()),
            None => self.dimension(offset_of!(LaunchFrame, block), axis),
        }
    }

    /// A special register that does not change, in natural form. Emits in the prologue.
    pub(super) fn special(&mut self, reg: SpecialReg) -> Value<'c> {
        if let Some(known) = self.prologue_regs.get(&reg) {
            return *known;
        }
        let b = self.unit.b;
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        let field = |offset: usize| self.launch_field(offset, i32);
        let lane = b.and(self.unit.lane_indices(i32), i32.vector(self.unit.lanes).int_const(31));
        let ones = i32.vector(self.unit.lanes).int_const(1);
        let round_up = |value: Value<'c>, unit: u32| {
            let [less, mask] = [unit - 1, !(unit - 1)].map(|bits| i32.int_const(bits.into()));
            b.and(b.add(value, less), mask)
        };
        let value = match reg {
            SpecialReg::Tid(axis) => self.tid(axis),
            SpecialReg::Ntid(axis) => self.ntid(axis),
            SpecialReg::CtaId(axis) => self.place.ctaid[usize::from(self.unit.axis(axis))],
            SpecialReg::NctaId(axis) => self.dimension(offset_of!(LaunchFrame, grid), axis),
            SpecialReg::LaneId => i32.zero(),
            SpecialReg::WarpId => self.place.warp,
            SpecialReg::NwarpId => i32.int_const(MAX_WARPS.into()),
            SpecialReg::SmId => {
                b.load(i32, b.ptr_offset(self.place.frame, offset_of!(BlockFrame, worker) as i64), 4)
            }
            SpecialReg::NsmId => field(offset_of!(LaunchFrame, sm_count)),
            SpecialReg::GridId => self.launch_field(offset_of!(LaunchFrame, grid_id), i64),
            SpecialReg::LanemaskEq => b.shl(ones, lane),
            SpecialReg::LanemaskLt => b.sub(b.shl(ones, lane), ones),
            SpecialReg::LanemaskLe => {
                let lower = b.sub(b.shl(ones, lane), ones);
                b.or(lower, b.shl(ones, lane))
            }
            SpecialReg::LanemaskGt => {
                let lower = b.sub(b.shl(ones, lane), ones);
                b.not(b.or(lower, b.shl(ones, lane)))
            }
            SpecialReg::LanemaskGe => b.not(b.sub(b.shl(ones, lane), ones)),
            // As `LaunchFrame` says.
            SpecialReg::TotalSmemSize => {
                let window = field(offset_of!(LaunchFrame, shared_bytes));
                let reserved = i32.int_const(RESERVED_SHARED.into());
                round_up(b.sub(window, reserved), kernel_abi::SHARED_UNIT)
            }
            SpecialReg::AggrSmemSize => {
                let dynamic = field(offset_of!(LaunchFrame, dynamic_shared_bytes));
                let fixed = b.sub(field(offset_of!(LaunchFrame, shared_bytes)), dynamic);
                b.add(round_up(fixed, 16), dynamic)
            }
            SpecialReg::ReservedSmemOffset(1) => i32.int_const(kernel_abi::RESERVED_SHARED_USED.into()),
            SpecialReg::ReservedSmemOffset(2) => i32.int_const(RESERVED_SHARED.into()),
            SpecialReg::DynamicSmemSize => field(offset_of!(LaunchFrame, dynamic_shared_bytes)),
            SpecialReg::ClusterNctaId(axis) => self.dimension(offset_of!(LaunchFrame, cluster), axis),
            SpecialReg::ClusterId(axis) => {
                let size = self.special(SpecialReg::ClusterNctaId(axis));
                b.udiv(self.place.ctaid[usize::from(axis)], size)
            }
            SpecialReg::NclusterId(axis) => {
                let size = self.special(SpecialReg::ClusterNctaId(axis));
                b.udiv(self.dimension(offset_of!(LaunchFrame, grid), axis), size)
            }
            SpecialReg::ClusterCtaId(axis) => {
                let size = self.special(SpecialReg::ClusterNctaId(axis));
                b.urem(self.place.ctaid[usize::from(axis)], size)
            }
            SpecialReg::ClusterCtaRank => {
                let [x, y, z] = [0, 1, 2].map(|axis| self.special(SpecialReg::ClusterCtaId(axis)));
                let [width, height] = [0, 1].map(|axis| self.special(SpecialReg::ClusterNctaId(axis)));
                b.add(b.mul(b.add(b.mul(z, height), y), width), x)
            }
            SpecialReg::ClusterNctaRank => {
                let [x, y, z] = [0, 1, 2].map(|axis| self.special(SpecialReg::ClusterNctaId(axis)));
                b.mul(b.mul(x, y), z)
            }
            SpecialReg::IsExplicitCluster => {
                let explicit = field(offset_of!(LaunchFrame, explicit_cluster));
                b.icmp(IntPredicate::Ne, explicit, i32.zero())
            }
            SpecialReg::CurrentGraphExec => self.launch_field(offset_of!(LaunchFrame, graph), i64),
            SpecialReg::EnvReg(1) => field(offset_of!(LaunchFrame, grid_workspace) + 4),
            SpecialReg::EnvReg(2) => field(offset_of!(LaunchFrame, grid_workspace)),
            SpecialReg::ReservedSmemOffset(_)
            | SpecialReg::EnvReg(_)
            | SpecialReg::Pm(_)
            | SpecialReg::Clock
            | SpecialReg::ClockHi
            | SpecialReg::Clock64
            | SpecialReg::GlobalTimer
            | SpecialReg::GlobalTimerLo
            | SpecialReg::GlobalTimerHi => i32.zero(),
        };
        self.prologue_regs.insert(reg, value);
        value
    }

    /// `%tid`, in natural form by the layout of the warp.
    fn tid(&mut self, axis: u8) -> Value<'c> {
        let b = self.unit.b;
        let i32 = self.unit.types.i32;
        let shape = self.unit.shape;
        if axis >= shape.dims {
            return i32.zero();
        }
        if let Some(tid) = self.place.tid {
            return tid[usize::from(axis)];
        }
        let first = self.unit.first_thread(self.place.warp);
        if shape.dims == 1 {
            return first;
        }
        match shape.x {
            XLayout::Rows => {
                let width = self.ntid(0);
                match axis {
                    0 => b.urem(first, width),
                    _ => {
                        let row = b.udiv(first, width);
                        match (axis, shape.dims) {
                            (1, 2) => row,
                            (1, _) => b.urem(row, self.ntid(1)),
                            _ => b.udiv(row, self.ntid(1)),
                        }
                    }
                }
            }
            XLayout::Period(period) => {
                let rows = self.unit.lanes / u32::from(period);
                let row = b.mul(self.place.warp, i32.int_const(rows.into()));
                match (axis, shape.rows(), shape.size(1)) {
                    (0, ..) => i32.zero(),
                    (1, Some(_), _) if shape.dims == 2 => row,
                    (1, Some(_), Some(height)) => b.and(row, i32.int_const(u64::from(height) - 1)),
                    (_, Some(_), Some(height)) => b.lshr(row, i32.int_const(height.trailing_zeros().into())),
                    _ => {
                        let indices = i32.int_vector(&(0..u64::from(rows)).collect::<Vec<_>>());
                        let row = b.add(b.splat(row, rows), indices);
                        let height = b.splat(self.ntid(1), rows);
                        let (quotient, rest) = self.divided(row, height);
                        if axis == 1 { rest } else { quotient }
                    }
                }
            }
            XLayout::Irregular => {
                let lane = self.unit.lane_indices(i32);
                let linear = b.add(b.splat(first, self.unit.lanes), lane);
                let width = b.splat(self.ntid(0), self.unit.lanes);
                let (row, x) = self.divided(linear, width);
                match (axis, shape.dims) {
                    (0, _) => x,
                    (_, 2) => row,
                    _ => {
                        let (z, y) = self.divided(row, b.splat(self.ntid(1), self.unit.lanes));
                        if axis == 1 { y } else { z }
                    }
                }
            }
        }
    }

    /// Quotient and remainder of vectors of thread indices and dimensions, which are small enough for floating point: half a
    /// unit is added so that rounding never reaches the next integer.
    fn divided(&self, index: Value<'c>, by: Value<'c>) -> (Value<'c>, Value<'c>) {
        let b = self.unit.b;
        let float = self.unit.context().float();
        let numerator = b.sitofp(index, float);
        let numerator = b.fadd(numerator, numerator.ty().float_const(0.5));
        let quotient = b.fptosi(b.fdiv(numerator, b.sitofp(by, float)), self.unit.types.i32);
        (quotient, b.sub(index, b.mul(quotient, by)))
    }

    /// A special register that counts.
    fn counter(&mut self, reg: SpecialReg, data: &InstData) -> Result<Value<'c>, CompileError> {
        let b = self.unit.b;
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        let ticks = match reg {
            SpecialReg::Clock | SpecialReg::ClockHi | SpecialReg::Clock64 => {
                b.intrinsic("llvm.readcyclecounter", &[], &[])
            }
            SpecialReg::GlobalTimer | SpecialReg::GlobalTimerLo | SpecialReg::GlobalTimerHi => {
                let timer = self.callback(offset_of!(Callbacks, global_timer));
                b.call_indirect(Type::function(i64, &[]), timer, &[])
            }
            _ => i64.zero(),
        };
        Ok(match reg {
            SpecialReg::Clock64 | SpecialReg::GlobalTimer => ticks,
            SpecialReg::Clock | SpecialReg::GlobalTimerLo => b.trunc(ticks, i32),
            SpecialReg::ClockHi | SpecialReg::GlobalTimerHi => b.trunc(b.lshr(ticks, i64.int_const(32)), i32),
            SpecialReg::Pm(_) => i32.zero(),
            _ => return Err(unsupported(&format!("{reg:?}"), data.loc)),
        })
    }

    /// What a value is in the lowest active lane.
    pub(super) fn first_active(&mut self, value: IrValue) -> Value<'c> {
        if self.p.shapes.of(value).is_uniform() {
            return self.natural(value);
        }
        let b = self.unit.b;
        let (mask, vector) = (self.active(), self.vector(value));
        let lane = b.int_resize(b.cttz(b.mask_to_int(mask)), self.unit.types.i32, false);
        b.extract_dynamic(vector, lane)
    }
}

/// Whether an operation is as cheap for each of two numbers as for both at once.
fn is_integer(op: &Op) -> bool {
    match op {
        Op::Int(op) => matches!(
            op,
            IntBinary::Add
                | IntBinary::Sub
                | IntBinary::Mul
                | IntBinary::And
                | IntBinary::Or
                | IntBinary::Xor
                | IntBinary::MinS
                | IntBinary::MaxS
        ),
        Op::Shift(_) | Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc) => true,
        Op::ToGeneric(_) | Op::FromGeneric(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn thread_indices_divide_exactly_in_floating_point() {
        for index in 0..2048 {
            for by in 1..=1024 {
                assert_eq!(((index as f32 + 0.5) / by as f32) as i32, index / by, "{index} / {by}");
            }
        }
    }
}
