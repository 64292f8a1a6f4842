//! One thread: its call frames, and what each instruction does to them.

use std::collections::HashMap;

use kernel_abi::{
    BlockFrame, CALL_BYTES, FaultKind, LaunchFrame, MAX_WARPS, RESERVED_SHARED, RESERVED_SHARED_USED, WARP,
};
use simt_ir::texture::TextureOp;
use simt_ir::{
    Access, BarrierKind, Block, Cell, ClusterBarrier, Def, FuncRef, Function, Inst, InstData, Op, Program,
    Signature, Space, SpecialReg, Syscall, Target, Terminator, Type, Value, eval, mbarrier,
};

use crate::memory::{self, BadAccess, Windows};
use crate::texture;

/// Calls may nest this deep whatever the stack limit: frames of the interpreter live on the host's heap.
const MAX_DEPTH: usize = 100_000;

/// What all threads of a block share.
pub struct BlockContext<'a> {
    /// The program.
    pub program: &'a Program,
    /// The launch.
    pub launch: &'a LaunchFrame,
    /// The frame given by the device, for callbacks.
    pub frame: *mut BlockFrame,
    /// The block's index.
    pub ctaid: [u32; 3],
}

impl BlockContext<'_> {
    /// Whether the launch has failed in another block.
    pub fn has_failed(&self) -> bool {
        // SAFETY: callbacks are the device's and hold while the block runs, whose frame this is.
        unsafe { ((*self.launch.callbacks).has_failed)(self.frame) != 0 }
    }
}

/// A thread.
pub struct Thread<'a> {
    /// Index in the block, x fastest.
    pub linear: u32,
    /// What it is doing.
    pub state: State,
    /// The phase of the cluster's barrier that it has arrived in and not yet waited for.
    pub cluster_phase: Option<u64>,
    /// Nanoseconds to sleep, if that is what ended its turn.
    pub sleeps: Option<u32>,
    /// How often it has gone back in its code, as loops do.
    pub turned_back: u64,
    windows: Windows<'a>,
    frames: Vec<CallFrame>,
}

/// A place in the code, comparable among threads of a block: depth, function, block, position.
pub type Location = (usize, FuncRef, Block, usize);

/// What a thread is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It can go on.
    Ready,
    /// It has come to a warp operation, whose operands these are.
    Warp(Op, Vec<u64>),
    /// It waits at a barrier.
    Barrier(Arrival),
    /// It waits at the cluster's barrier.
    ClusterBarrier,
    /// It has ended.
    Done,
    /// An assertion of its warp has failed: it never goes on, and has not ended.
    Lost,
}

/// An arrival at a barrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Barrier number.
    pub barrier: u32,
    /// Threads that take part, 0 for all.
    pub threads: u32,
    /// What the barrier computes.
    pub kind: BarrierKind,
    /// The thread's predicate.
    pub vote: bool,
}

/// What ends a turn early.
pub enum Event {
    /// The thread arrived at a barrier without waiting.
    Arrived(Arrival),
    /// The thread arrived at the cluster's barrier.
    ArrivedInCluster,
    /// A fault.
    Fault {
        /// What.
        kind: FaultKind,
        /// Address, where one is concerned.
        address: Option<u64>,
        /// Line in the PTX.
        ptx_line: u32,
        /// More to say.
        detail: String,
    },
}

struct CallFrame {
    func: FuncRef,
    block: Block,
    /// Position in the block.
    at: usize,
    values: Vec<u64>,
    /// Start of this function's frame in the local window.
    local: u64,
    /// What lies below in the local window is taken.
    stack: u64,
    cells: HashMap<Cell, u64>,
}

impl CallFrame {
    /// What a value is in a thread that has not come to the instructions `here`: what follows from its registers, whatever of that these
    /// instructions only compute.
    fn held(&self, func: &Function, here: &[Inst], value: Value) -> u64 {
        let computed = match func.def(value) {
            Def::Result(inst, _) if here.contains(&inst) && func.inst(inst).op.is_pure() => {
                let data = func.inst(inst);
                let args: Vec<u64> = data.args.iter().map(|arg| self.held(func, here, *arg)).collect();
                let types: Vec<Type> = data.args.iter().map(|arg| func.ty(*arg)).collect();
                eval::eval(data.op, &args, &types, func.ty(value))
            }
            _ => None,
        };
        computed.unwrap_or(self.values[value.index()])
    }
}

impl<'a> Thread<'a> {
    /// A thread at the kernel's beginning.
    pub fn new(context: &BlockContext<'a>, linear: u32) -> Thread<'a> {
        let kernel = context.program.kernel();
        // SAFETY: the frame is valid while the block runs, and is not being changed.
        let frame = unsafe { &*context.frame };
        Thread {
            linear,
            state: State::Ready,
            cluster_phase: None,
            sleeps: None,
            turned_back: 0,
            windows: Windows::new(context.launch, frame, context.program.param_bytes, linear),
            frames: vec![CallFrame {
                func: FuncRef(0),
                block: Function::ENTRY,
                at: 0,
                values: vec![0; kernel.value_count()],
                local: 0,
                stack: kernel.local_bytes.into(),
                cells: HashMap::new(),
            }],
        }
    }

    /// Lane in its warp.
    pub fn lane(&self) -> u32 {
        self.linear % WARP
    }

    /// Where the thread is.
    pub fn location(&self) -> Location {
        let frame = self.top();
        (self.frames.len(), frame.func, frame.block, frame.at)
    }

    /// Whether it is at an assertion that fails.
    pub fn is_at_assertion(&self, program: &Program) -> bool {
        let frame = self.top();
        let func = program.function(frame.func);
        let next = func.block(frame.block).insts.get(frame.at);
        next.is_some_and(|inst| func.inst(*inst).op == Op::Syscall(Syscall::AssertFail))
    }

    /// Whether another thread has come to the function that it is in by the same calls.
    pub fn is_called_as(&self, other: &Thread<'_>) -> bool {
        let place = |frame: &CallFrame| (frame.func, frame.block, frame.at);
        self.frames.iter().rev().skip(1).map(place).eq(other.frames.iter().rev().skip(1).map(place))
    }

    /// Whether another thread is at the same place and came to it by the same calls.
    pub fn is_beside(&self, other: &Thread<'_>) -> bool {
        let place = |frame: &CallFrame| (frame.func, frame.block, frame.at);
        self.frames.iter().rev().map(place).eq(other.frames.iter().rev().map(place))
    }

    /// Runs until the thread meets others, ends, or has executed `budget` instructions.
    pub fn run(&mut self, context: &BlockContext<'a>, mut budget: u32) -> Result<(), Event> {
        let program = context.program;
        self.sleeps = None;
        while self.state == State::Ready && budget > 0 && self.sleeps.is_none() {
            budget -= 1;
            let frame = self.frames.last().expect("a running thread has a frame");
            let func = program.function(frame.func);
            let block = func.block(frame.block);
            match block.insts.get(frame.at) {
                Some(inst) => self.step(context, func, *inst)?,
                None => self.terminate(program, func, &block.term, block.term_loc.ptx_line)?,
            }
        }
        Ok(())
    }

    /// The operand types of the warp operation the thread waits at.
    pub fn warp_operand_types(&self, program: &Program) -> Vec<Type> {
        let func = program.function(self.top().func);
        let inst = func.inst(self.warp_operation(program));
        inst.args.iter().map(|arg| func.ty(*arg)).collect()
    }

    /// What the operands' registers hold here of the warp operation that another thread waits at: what this one last put into them, or zeros.
    pub fn held(&self, other: &Thread<'_>, program: &Program) -> Vec<u64> {
        let place = other.top();
        let func = program.function(place.func);
        let Some(own) = self.frames.iter().rev().find(|frame| frame.func == place.func) else {
            return Vec::new();
        };
        let here = &func.block(place.block).insts;
        func.inst(other.warp_operation(program)).args.iter().map(|arg| own.held(func, here, *arg)).collect()
    }

    /// Two or four bytes of the block's shared memory.
    pub fn load_shared(&self, address: u32, bytes: usize) -> Result<u64, BadAccess> {
        let ty = if bytes == 2 { Type::I16 } else { Type::I32 };
        let at = self.windows.resolve(
            &Access::weak(Space::Shared, 0),
            Type::I32,
            address.into(),
            ty.bytes().into(),
        )?;
        memory::load(ty, at)
    }

    /// Where the barrier is at which the thread arrives with others.
    pub fn barrier_place(&self, access: &Access, program: &Program) -> Result<u64, BadAccess> {
        let State::Warp(_, args) = &self.state else { unreachable!("the thread waits at the operation") };
        self.windows.resolve(access, self.warp_operand_types(program)[0], args[0], 8)
    }

    /// The line of the warp operation the thread waits at.
    pub fn warp_operation_line(&self, program: &Program) -> u32 {
        program.function(self.top().func).inst(self.warp_operation(program)).loc.ptx_line
    }

    fn warp_operation(&self, program: &Program) -> Inst {
        let frame = self.top();
        program.function(frame.func).block(frame.block).insts[frame.at]
    }

    /// Gives the operation the thread waits at its results, and lets the thread go on.
    pub fn resume(&mut self, program: &Program, results: &[u64]) {
        let frame = self.top();
        let func = program.function(frame.func);
        let inst = func.block(frame.block).insts[frame.at];
        self.set_results(func.inst(inst), results);
        self.top_mut().at += 1;
        self.state = State::Ready;
    }

    fn top(&self) -> &CallFrame {
        self.frames.last().expect("a thread that has not ended has a frame")
    }

    fn top_mut(&mut self) -> &mut CallFrame {
        self.frames.last_mut().expect("a thread that has not ended has a frame")
    }

    fn value(&self, value: Value) -> u64 {
        self.top().values[value.index()]
    }

    fn values(&self, values: &[Value]) -> Vec<u64> {
        values.iter().map(|value| self.value(*value)).collect()
    }

    fn set_results(&mut self, data: &InstData, results: &[u64]) {
        let frame = self.top_mut();
        for (value, bits) in data.results.iter().zip(results) {
            frame.values[value.index()] = *bits;
        }
    }

    fn step(&mut self, context: &BlockContext<'a>, func: &Function, inst: Inst) -> Result<(), Event> {
        let data = func.inst(inst);
        let args = self.values(&data.args);
        let types: Vec<Type> = data.args.iter().map(|arg| func.ty(*arg)).collect();
        if let [result] = data.results[..]
            && let Some(bits) = eval::eval(data.op, &args, &types, func.ty(result))
        {
            self.set_results(data, &[bits]);
            self.top_mut().at += 1;
            return Ok(());
        }
        let line = data.loc.ptx_line;
        let bad = |bad: BadAccess| Event::Fault {
            kind: bad.kind,
            address: Some(bad.address),
            ptx_line: line,
            detail: String::new(),
        };
        let results = match data.op {
            Op::SpecialReg(reg) => vec![self.special(context, reg)],
            Op::GlobalAddr(global) => {
                // SAFETY: the launch has one address for each name of the program.
                vec![unsafe { *context.launch.globals.add(global.index()) }]
            }
            Op::FuncToken(func) => vec![context.program.function(func).token],
            Op::LocalBase => vec![self.top().local],
            Op::StackSave => vec![self.top().stack],
            // The front end makes no cells: they are for compiled code.
            Op::Keep(cell) => {
                self.top_mut().cells.insert(cell, args[0]);
                vec![]
            }
            Op::Recall(cell) => vec![self.top().cells.get(&cell).copied().unwrap_or_default()],
            Op::StackRestore => {
                if args[0] > self.windows.window(Space::Local).1 {
                    return Err(stack_overflow(line, "allocating on the stack".into()));
                }
                self.top_mut().stack = args[0];
                Vec::new()
            }
            Op::ToGeneric(space) => vec![self.windows.window(space).0.wrapping_add(args[0])],
            Op::FromGeneric(space) => vec![args[0].wrapping_sub(self.windows.window(space).0)],
            Op::IsSpace(space) => vec![self.windows.is_in(space, args[0]).into()],
            Op::Load(access) => {
                let ty = func.ty(data.results[0]);
                let total = u64::from(ty.bytes()) * u64::from(access.lanes);
                let at = self.windows.resolve(&access, types[0], args[0], total).map_err(bad)?;
                let lanes = 0..u64::from(access.lanes);
                let loaded = if memory::is_whole(&access, ty) {
                    memory::load_pair(at).map(Vec::from)
                } else {
                    lanes.map(|i| memory::load(ty, at + i * u64::from(ty.bytes()))).collect()
                };
                memory::fence_for(access.order);
                loaded.map_err(bad)?
            }
            Op::Store(access) => {
                let ty = types[1];
                let total = u64::from(ty.bytes()) * u64::from(access.lanes);
                let at = self.windows.resolve(&access, types[0], args[0], total).map_err(bad)?;
                memory::fence_for(access.order);
                if memory::is_whole(&access, ty) {
                    memory::exchange_pair(at, [args[1], args[2]]).map_err(bad)?;
                } else {
                    for (i, value) in (0..).zip(&args[1..]) {
                        memory::store(ty, at + i * u64::from(ty.bytes()), *value).map_err(bad)?;
                    }
                }
                Vec::new()
            }
            Op::Atomic(op, access) => {
                let bytes = u64::from(types[1].bytes()) * u64::from(access.lanes);
                let at = self.windows.resolve(&access, types[0], args[0], bytes).map_err(bad)?;
                match args[1..] {
                    [low, high] => memory::exchange_pair(at, [low, high]).map_err(bad)?.to_vec(),
                    _ => vec![memory::atomic(op, types[1], at, args[1]).map_err(bad)?],
                }
            }
            Op::AtomicCas(access) => {
                let bytes = u64::from(types[1].bytes()) * u64::from(access.lanes);
                let at = self.windows.resolve(&access, types[0], args[0], bytes).map_err(bad)?;
                match args[1..] {
                    [a, b, c, d] => memory::cas_pair(at, [a, b], [c, d]).map_err(bad)?.to_vec(),
                    _ => vec![memory::atomic_cas(types[1], at, args[1], args[2]).map_err(bad)?],
                }
            }
            Op::MbarrierArrive { drop, together: false, access } => {
                let at = self.windows.resolve(&access, types[0], args[0], 8).map_err(bad)?;
                let arrived = |old| mbarrier::arrive(old, args[1] as u32, args[2] as u32, drop);
                vec![memory::update(Type::I64, at, arrived).map_err(bad)?]
            }
            Op::Bulk(op) => {
                let fault = |kind, address| Event::Fault {
                    kind,
                    address: Some(address),
                    ptx_line: line,
                    detail: String::new(),
                };
                op.run(&args, &mut memory::BulkMemory { frame: context.frame }).map_err(|fault_of| {
                    let (kind, address) = kernel_abi::bulk::fault(fault_of);
                    fault(kind, address)
                })?;
                Vec::new()
            }
            Op::Fence { order, .. } => {
                memory::fence_for(order);
                Vec::new()
            }
            op @ (Op::MbarrierArrive { together: true, .. }
            | Op::Shuffle(_)
            | Op::Vote(_)
            | Op::MatchAny
            | Op::MatchAll
            | Op::Redux(_)
            | Op::MatrixMultiply(_)
            | Op::FirstLane
            | Op::FewLanes(_)
            | Op::ActiveMask
            | Op::Elect
            | Op::WarpSync) => {
                self.state = State::Warp(op, args);
                return Ok(());
            }
            Op::Barrier { kind, count } => {
                let vote_at = 1 + usize::from(count);
                let arrival = Arrival {
                    barrier: args[0] as u32,
                    threads: if count { args[1] as u32 } else { 0 },
                    kind,
                    vote: args.get(vote_at).is_some_and(|vote| *vote != 0),
                };
                if kind == BarrierKind::Arrive {
                    self.top_mut().at += 1;
                    return Err(Event::Arrived(arrival));
                }
                self.state = State::Barrier(arrival);
                return Ok(());
            }
            Op::ClusterBarrier(ClusterBarrier::Arrive) => {
                self.top_mut().at += 1;
                return Err(Event::ArrivedInCluster);
            }
            Op::ClusterBarrier(ClusterBarrier::Wait) => {
                self.state = State::ClusterBarrier;
                return Ok(());
            }
            Op::Call(callee) => return self.call(context.program, callee, args, line),
            Op::CallIndirect(sig) => {
                let signature = &context.program.signatures[sig.index()];
                let callee =
                    find_callee(context.program, args[0], signature).ok_or_else(|| Event::Fault {
                        kind: FaultKind::InvalidPc,
                        address: Some(args[0]),
                        ptx_line: line,
                        detail: "indirect call of something that is no function of this signature".into(),
                    })?;
                return self.call(context.program, callee, args[1..].to_vec(), line);
            }
            Op::Syscall(call) => self.syscall(context, call, &args, line)?,
            Op::Texture(op) if op.is_store() => {
                // Which of several stores to one place counts is told by the lanes that store together.
                self.state = State::Warp(Op::Texture(op), args);
                return Ok(());
            }
            Op::Texture(op) => self.texture(context, &op, &args, line)?,
            Op::Nanosleep => {
                self.sleeps = Some(args[0] as u32);
                Vec::new()
            }
            // For code in which a warp has no other end of its turn.
            Op::GiveWay => Vec::new(),
            Op::Refuse(refusal) if args[0] != 0 => {
                return Err(Event::Fault {
                    kind: refusal.into(),
                    address: args.get(1).copied(),
                    ptx_line: line,
                    detail: String::new(),
                });
            }
            Op::Refuse(_) => Vec::new(),
            _ => unreachable!("pure operations are evaluated above"),
        };
        self.set_results(data, &results);
        self.top_mut().at += 1;
        Ok(())
    }

    fn terminate(
        &mut self,
        program: &Program,
        func: &Function,
        term: &Terminator,
        line: u32,
    ) -> Result<(), Event> {
        match term {
            Terminator::Jump(target) => self.jump(func, target),
            Terminator::Branch { cond, then, otherwise, .. } => {
                let target = if self.value(*cond) != 0 { then } else { otherwise };
                self.jump(func, target);
            }
            Terminator::Switch { index, targets } => {
                let index = (self.value(*index) as usize).min(targets.len() - 1);
                self.jump(func, &targets[index]);
            }
            Terminator::Return(values) => {
                let results = self.values(values);
                if self.frames.len() == 1 {
                    // What its registers hold may be looked at.
                    self.state = State::Done;
                } else {
                    self.frames.pop();
                    // The caller stands at its call.
                    self.resume(program, &results);
                }
            }
            Terminator::Exit => {
                self.state = State::Done;
            }
            Terminator::Trap => {
                return Err(Event::Fault {
                    kind: FaultKind::Trap,
                    address: None,
                    ptx_line: line,
                    detail: String::new(),
                });
            }
        }
        Ok(())
    }

    fn jump(&mut self, func: &Function, target: &Target) {
        // All arguments are read before any parameter is written: parameters may swap.
        let args = self.values(&target.args);
        let frame = self.top_mut();
        for (param, bits) in func.block(target.block).params.iter().zip(args) {
            debug_assert!(
                matches!(func.def(*param), Def::Param(..)),
                "block parameters are defined by their block"
            );
            frame.values[param.index()] = bits;
        }
        let is_back = target.block <= frame.block;
        frame.block = target.block;
        frame.at = 0;
        self.turned_back += u64::from(is_back);
    }

    fn call(&mut self, program: &Program, callee: FuncRef, args: Vec<u64>, line: u32) -> Result<(), Event> {
        let func = program.function(callee);
        // A program may have set its stack pointer to anything.
        let used = self.top().stack.saturating_add(CALL_BYTES.into());
        let local = used.checked_next_multiple_of(func.local_align.max(1).into());
        let stack = local.and_then(|local| local.checked_add(func.local_bytes.into()));
        let fits = |stack: &u64| *stack <= self.windows.window(Space::Local).1;
        let (Some(local), Some(stack)) = (local, stack.filter(fits)) else {
            let detail = format!("calling {} at depth {}", func.name, self.frames.len());
            return Err(stack_overflow(line, detail));
        };
        if self.frames.len() >= MAX_DEPTH {
            return Err(stack_overflow(line, format!("calling {} at depth {MAX_DEPTH}", func.name)));
        }
        let mut values = vec![0; func.value_count()];
        for (param, bits) in func.block(Function::ENTRY).params.iter().zip(args) {
            values[param.index()] = bits;
        }
        let cells = HashMap::new();
        self.frames.push(CallFrame {
            func: callee,
            block: Function::ENTRY,
            at: 0,
            values,
            local,
            stack,
            cells,
        });
        Ok(())
    }

    fn special(&self, context: &BlockContext<'_>, reg: SpecialReg) -> u64 {
        let launch = context.launch;
        let [x, y] = [launch.block[0], launch.block[1]];
        let lane = self.lane();
        let axis = |values: [u32; 3], axis: u8| values.get(usize::from(axis)).copied().unwrap_or(0);
        let value = match reg {
            SpecialReg::Tid(a) => {
                let tid = [self.linear % x, self.linear / x % y, self.linear / x / y];
                axis(tid, a)
            }
            SpecialReg::Ntid(a) => axis(launch.block, a),
            SpecialReg::CtaId(a) => axis(context.ctaid, a),
            SpecialReg::NctaId(a) => axis(launch.grid, a),
            SpecialReg::ClusterId(a) => axis(context.ctaid, a) / axis(launch.cluster, a),
            SpecialReg::NclusterId(a) => axis(launch.grid, a) / axis(launch.cluster, a),
            SpecialReg::ClusterCtaId(a) => axis(context.ctaid, a) % axis(launch.cluster, a),
            SpecialReg::ClusterNctaId(a) => axis(launch.cluster, a),
            SpecialReg::ClusterCtaRank => launch.rank_of(context.ctaid),
            SpecialReg::ClusterNctaRank => launch.cluster_blocks(),
            SpecialReg::IsExplicitCluster => u32::from(launch.explicit_cluster != 0),
            SpecialReg::LaneId => lane,
            SpecialReg::WarpId => self.linear / WARP,
            SpecialReg::NwarpId => MAX_WARPS,
            // SAFETY: the frame is valid while the block runs.
            SpecialReg::SmId => unsafe { (*context.frame).worker },
            SpecialReg::NsmId => launch.sm_count,
            SpecialReg::GridId => return launch.grid_id,
            SpecialReg::CurrentGraphExec => return launch.graph,
            SpecialReg::LanemaskEq => 1 << lane,
            SpecialReg::LanemaskLt => (1 << lane) - 1,
            SpecialReg::LanemaskLe => (1 << lane) | ((1 << lane) - 1),
            SpecialReg::LanemaskGe => u32::MAX << lane,
            SpecialReg::LanemaskGt => (u32::MAX << lane) & !(1 << lane),
            // SAFETY: callbacks are the device's and hold while it runs.
            SpecialReg::GlobalTimer => return unsafe { ((*launch.callbacks).global_timer)() },
            // SAFETY: as above.
            SpecialReg::GlobalTimerLo => unsafe { ((*launch.callbacks).global_timer)() as u32 },
            // SAFETY: as above.
            SpecialReg::GlobalTimerHi => unsafe { (((*launch.callbacks).global_timer)() >> 32) as u32 },
            SpecialReg::Clock => cycles() as u32,
            SpecialReg::ClockHi => (cycles() >> 32) as u32,
            SpecialReg::Clock64 => return cycles(),
            SpecialReg::TotalSmemSize => launch.total_shared_bytes(),
            SpecialReg::AggrSmemSize => launch.aggregate_shared_bytes(),
            SpecialReg::ReservedSmemOffset(1) => RESERVED_SHARED_USED,
            SpecialReg::ReservedSmemOffset(2) => RESERVED_SHARED,
            SpecialReg::DynamicSmemSize => launch.dynamic_shared_bytes,
            SpecialReg::EnvReg(1) => (launch.grid_workspace >> 32) as u32,
            SpecialReg::EnvReg(2) => launch.grid_workspace as u32,
            SpecialReg::ReservedSmemOffset(_) | SpecialReg::EnvReg(_) | SpecialReg::Pm(_) => 0,
        };
        value.into()
    }

    /// The device carries it out, for this lane alone.
    fn texture(
        &self,
        context: &BlockContext<'_>,
        op: &TextureOp,
        args: &[u64],
        line: u32,
    ) -> Result<Vec<u64>, Event> {
        match texture::serve(context, self.linear / WARP, op, &[(self.lane(), args)]) {
            Ok(mut results) => Ok(results.remove(0)),
            Err(texture::Wrong { kind, address, .. }) => {
                Err(Event::Fault { kind, address: Some(address), ptx_line: line, detail: String::new() })
            }
        }
    }

    fn syscall(
        &self,
        context: &BlockContext<'_>,
        call: Syscall,
        args: &[u64],
        line: u32,
    ) -> Result<Vec<u64>, Event> {
        let lane = self.lane() as usize;
        let mask = 1 << lane;
        let operand = |i: usize| {
            let mut lanes = [0u64; WARP as usize];
            lanes[lane] = args[i];
            lanes
        };
        // SAFETY: callbacks are the device's and hold while it runs; arrays have an element for each lane.
        unsafe {
            (*context.frame).warp = self.linear / WARP;
            let callbacks = &*context.launch.callbacks;
            match call {
                Syscall::Vprintf => {
                    let mut results = [0i32; WARP as usize];
                    let (formats, arguments) = (operand(0), operand(1));
                    (callbacks.vprintf)(
                        context.frame,
                        mask,
                        formats.as_ptr(),
                        arguments.as_ptr(),
                        results.as_mut_ptr(),
                    );
                    Ok(vec![u64::from(results[lane] as u32)])
                }
                Syscall::AssertFail => {
                    let mut lines = [0u32; WARP as usize];
                    lines[lane] = args[2] as u32;
                    let (messages, files, functions) = (operand(0), operand(1), operand(3));
                    (callbacks.assert_fail)(
                        context.frame,
                        mask,
                        messages.as_ptr(),
                        files.as_ptr(),
                        lines.as_ptr(),
                        functions.as_ptr(),
                    );
                    Err(Event::Fault {
                        kind: FaultKind::Assert,
                        address: None,
                        ptx_line: line,
                        detail: String::new(),
                    })
                }
                Syscall::Malloc => {
                    let mut results = [0u64; WARP as usize];
                    let sizes = operand(0);
                    (callbacks.malloc)(context.frame, mask, sizes.as_ptr(), results.as_mut_ptr());
                    Ok(vec![results[lane]])
                }
                Syscall::Free => {
                    let addresses = operand(0);
                    (callbacks.free)(context.frame, mask, addresses.as_ptr());
                    Ok(Vec::new())
                }
                Syscall::Runtime(function) => {
                    let arguments: Vec<[u64; WARP as usize]> = (0..args.len()).map(operand).collect();
                    let mut results = [0u64; WARP as usize];
                    (callbacks.runtime)(
                        context.frame,
                        mask,
                        function as u32,
                        arguments.as_ptr().cast(),
                        results.as_mut_ptr(),
                    );
                    let is_word = function.result() == Type::I32;
                    Ok(vec![if is_word { u64::from(results[lane] as u32) } else { results[lane] }])
                }
            }
        }
    }
}

fn stack_overflow(ptx_line: u32, detail: String) -> Event {
    Event::Fault { kind: FaultKind::StackOverflow, address: None, ptx_line, detail }
}

fn find_callee(program: &Program, token: u64, signature: &Signature) -> Option<FuncRef> {
    let index =
        program.functions.iter().position(|f| token != 0 && f.token == token && f.signature == *signature)?;
    Some(FuncRef(index as u32))
}

/// A counter that rises about once a nanosecond.
fn cycles() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}
