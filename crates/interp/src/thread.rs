//! One thread: its call frames, and what each instruction does to them.

use kernel_abi::{BlockFrame, CALL_BYTES, FaultKind, LaunchFrame, WARP};
use simt_ir::{
    BarrierKind, Block, Def, FuncRef, Function, Inst, InstData, Op, Program, Signature, SpecialReg, Syscall,
    Target, Terminator, Type, Value, eval,
};

use crate::memory::{self, BadAccess, Windows};

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

/// A thread.
pub struct Thread<'a> {
    /// Index in the block, x fastest.
    pub linear: u32,
    /// What it is doing.
    pub state: State,
    windows: Windows<'a>,
    frames: Vec<CallFrame>,
}

/// What a thread is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It can go on.
    Ready,
    /// It has come to a warp operation, whose operands these are.
    Warp(Op, Vec<u64>),
    /// It waits at a barrier.
    Barrier(Arrival),
    /// It has ended.
    Done,
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
            windows: Windows::new(context.launch, frame, context.program.param_bytes, linear),
            frames: vec![CallFrame {
                func: FuncRef(0),
                block: Function::ENTRY,
                at: 0,
                values: vec![0; kernel.value_count()],
                local: 0,
            }],
        }
    }

    /// Lane in its warp.
    pub fn lane(&self) -> u32 {
        self.linear % WARP
    }

    /// Where the thread is, comparable among threads of a block: depth, function, block, position.
    pub fn location(&self) -> (usize, FuncRef, Block, usize) {
        let frame = self.top();
        (self.frames.len(), frame.func, frame.block, frame.at)
    }

    /// Runs until the thread meets others, ends, or has executed `budget` instructions.
    pub fn run(&mut self, context: &BlockContext<'a>, mut budget: u32) -> Result<(), Event> {
        let program = context.program;
        while self.state == State::Ready && budget > 0 {
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
        let frame = self.top();
        let func = program.function(frame.func);
        let inst = func.inst(func.block(frame.block).insts[frame.at]);
        inst.args.iter().map(|arg| func.ty(*arg)).collect()
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
            Op::ToGeneric(space) => vec![self.windows.window(space).0.wrapping_add(args[0])],
            Op::FromGeneric(space) => vec![args[0].wrapping_sub(self.windows.window(space).0)],
            Op::IsSpace(space) => vec![self.windows.is_in(space, args[0]).into()],
            Op::Load(access) => {
                let ty = func.ty(data.results[0]);
                let total = u64::from(ty.bytes()) * u64::from(access.lanes);
                let at = self.windows.resolve(&access, types[0], args[0], total).map_err(bad)?;
                let lanes = 0..u64::from(access.lanes);
                let loaded =
                    lanes.map(|i| memory::load(ty, at + i * u64::from(ty.bytes()))).collect::<Result<_, _>>();
                memory::fence_for(access.order);
                loaded.map_err(bad)?
            }
            Op::Store(access) => {
                let ty = types[1];
                let total = u64::from(ty.bytes()) * u64::from(access.lanes);
                let at = self.windows.resolve(&access, types[0], args[0], total).map_err(bad)?;
                memory::fence_for(access.order);
                for (i, value) in (0..).zip(&args[1..]) {
                    memory::store(ty, at + i * u64::from(ty.bytes()), *value).map_err(bad)?;
                }
                Vec::new()
            }
            Op::Atomic(op, access) => {
                let at =
                    self.windows.resolve(&access, types[0], args[0], types[1].bytes().into()).map_err(bad)?;
                vec![memory::atomic(op, types[1], at, args[1]).map_err(bad)?]
            }
            Op::AtomicCas(access) => {
                let at =
                    self.windows.resolve(&access, types[0], args[0], types[1].bytes().into()).map_err(bad)?;
                vec![memory::atomic_cas(types[1], at, args[1], args[2]).map_err(bad)?]
            }
            Op::Fence { order, .. } => {
                memory::fence_for(order);
                Vec::new()
            }
            op @ (Op::Shuffle(_)
            | Op::Vote(_)
            | Op::MatchAny
            | Op::MatchAll
            | Op::Redux(_)
            | Op::MatrixMultiply(_)
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
            Op::Nanosleep => {
                // SAFETY: callbacks are the device's and hold while it runs.
                unsafe { ((*context.launch.callbacks).nanosleep)(args[0] as u32) };
                Vec::new()
            }
            Op::Breakpoint => Vec::new(),
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
                self.frames.pop();
                if self.frames.is_empty() {
                    self.state = State::Done;
                } else {
                    // The caller stands at its call.
                    self.resume(program, &results);
                }
            }
            Terminator::Exit => {
                self.frames.clear();
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
        frame.block = target.block;
        frame.at = 0;
    }

    fn call(&mut self, program: &Program, callee: FuncRef, args: Vec<u64>, line: u32) -> Result<(), Event> {
        let caller = self.top();
        let func = program.function(callee);
        let used = caller.local + u64::from(program.function(caller.func).local_bytes + CALL_BYTES);
        let local = used.next_multiple_of(func.local_align.max(1).into());
        let overflow = local + u64::from(func.local_bytes) > self.windows.window(simt_ir::Space::Local).1;
        if self.frames.len() >= MAX_DEPTH || overflow {
            return Err(Event::Fault {
                kind: FaultKind::StackOverflow,
                address: None,
                ptx_line: line,
                detail: format!("calling {} at depth {}", func.name, self.frames.len()),
            });
        }
        let mut values = vec![0; func.value_count()];
        for (param, bits) in func.block(Function::ENTRY).params.iter().zip(args) {
            values[param.index()] = bits;
        }
        self.frames.push(CallFrame { func: callee, block: Function::ENTRY, at: 0, values, local });
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
            SpecialReg::CtaId(a) | SpecialReg::ClusterId(a) => axis(context.ctaid, a),
            SpecialReg::NctaId(a) | SpecialReg::NclusterId(a) => axis(launch.grid, a),
            SpecialReg::LaneId => lane,
            SpecialReg::WarpId => self.linear / WARP,
            SpecialReg::NwarpId => launch.warps,
            // SAFETY: the frame is valid while the block runs.
            SpecialReg::SmId => unsafe { (*context.frame).worker },
            SpecialReg::NsmId => launch.sm_count,
            SpecialReg::GridId => return launch.grid_id,
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
            SpecialReg::TotalSmemSize | SpecialReg::AggrSmemSize => launch.shared_bytes,
            SpecialReg::DynamicSmemSize => launch.dynamic_shared_bytes,
            SpecialReg::ClusterNctaId(_) | SpecialReg::ClusterNctaRank => 1,
            SpecialReg::EnvReg(1) => (launch.grid_workspace >> 32) as u32,
            SpecialReg::EnvReg(2) => launch.grid_workspace as u32,
            SpecialReg::ClusterCtaId(_)
            | SpecialReg::ClusterCtaRank
            | SpecialReg::ReservedSmemOffset(_)
            | SpecialReg::IsExplicitCluster
            | SpecialReg::EnvReg(_)
            | SpecialReg::Pm(_)
            | SpecialReg::CurrentGraphExec => 0,
        };
        value.into()
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
            }
        }
    }
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
