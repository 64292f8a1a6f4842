//! Functions that recurse as parts of the kernel's own body.
//!
//! A warp that suspends leaves the kernel's code, and one in a function could not: what its callers had would be lost. Where threads end in
//! functions that recurse, or wait for others there, [`merge`] makes *routines* of them: blocks of the kernel that a call jumps to. What
//! the caller has and still needs, and where to go on, each thread keeps on its own stack:
//!
//! ```text
//! caller's frame | what it keeps | number of the call, stack pointer | callee's frame | …
//!                                ^ CALL_BYTES before the frame of the routine
//! ```
//!
//! Threads that call from different places, or return to different ones, part as at any branch. So the kernel's lanes have places of their
//! own ([`dispatch`](crate::dispatch)), for control enters the loops that such calls make in several places.

use std::collections::{BTreeSet, HashMap, HashSet};

use kernel_abi::{CALL_BYTES, Shape};
use simt_ir::{
    Access, Block, Cfg, FuncRef, Function, FunctionBuilder, Inst, IntBinary, IntCmp, Op, Program, SourceLoc,
    Space, Target, Terminator, Type, Value, Var,
};

use crate::dispatch::is_free;
use crate::prepare::waits_at;
use crate::simplify::simplify;

/// Bytes that a value takes on the stack.
const KEPT: u64 = 8;

/// After: the kernel has these functions as parts of its body, and calls none of them any more. The rest of the program is as it was. Answers how many times
/// as much stack a thread takes as the program knows of, at the most.
pub fn merge(program: &mut Program, routines: &[FuncRef], shape: &Shape) -> u32 {
    if routines.is_empty() {
        return 1;
    }
    let mut functions: Vec<Function> = vec![program.kernel().clone()];
    functions.extend(routines.iter().map(|routine| program.function(*routine).clone()));
    functions.iter_mut().for_each(simplify);
    let kernel = &functions[0];
    let mut b = FunctionBuilder::new(kernel.name.clone(), kernel.signature.clone());
    b.func_mut().token = kernel.token;
    (b.func_mut().local_bytes, b.func_mut().local_align) = (kernel.local_bytes, kernel.local_align);
    b.func_mut().waits_at = Some(Vec::new());
    let first = b.block();
    let mut merge = Merge { routines: routines.to_vec(), places: Vec::new(), scale: 1, b };
    merge.places = functions[1..].iter().map(|func| merge.place_of(func)).collect();
    let free: Vec<HashMap<Value, Value>> = functions.iter().map(|func| merge.hoist(func)).collect();
    merge.jump(first, Vec::new());
    for (index, (func, free)) in functions.iter().zip(free).enumerate() {
        let own = index.checked_sub(1);
        Body::new(&mut merge, func, own, free, shape).copy(if own.is_none() { Some(first) } else { None });
    }
    for (index, func) in functions[1..].iter().enumerate() {
        merge.give_back(index, func);
    }
    let scale = merge.scale;
    program.functions[0] = merge.b.finish();
    scale
}

/// Where a routine is, and who calls it.
struct Place {
    entry: Block,
    /// Takes the routine's frame and its results.
    end: Block,
    /// Where it goes back to, by the number of the call.
    after: Vec<Block>,
    local_bytes: u32,
    local_align: u32,
}

struct Merge {
    routines: Vec<FuncRef>,
    places: Vec<Place>,
    scale: u32,
    b: FunctionBuilder,
}

impl Merge {
    fn place_of(&mut self, func: &Function) -> Place {
        let (entry, end) = (self.b.block(), self.b.block());
        Place {
            entry,
            end,
            after: Vec::new(),
            local_bytes: func.local_bytes,
            local_align: func.local_align.max(KEPT as u32),
        }
    }

    /// Has the kernel's entry compute what a function computes from the launch and the thread alone: it is there wherever control goes.
    fn hoist(&mut self, func: &Function) -> HashMap<Value, Value> {
        let mut free: HashMap<Value, Value> = HashMap::new();
        for &block in Cfg::new(func).order() {
            for inst in &func.block(block).insts {
                let data = func.inst(*inst);
                // Where a function's frame is depends on the call.
                if data.op == Op::LocalBase || !is_free(func, *inst) {
                    continue;
                }
                let Some(args) =
                    data.args.iter().map(|arg| free.get(arg).copied()).collect::<Option<Vec<_>>>()
                else {
                    continue;
                };
                let types: Vec<Type> = data.results.iter().map(|value| func.ty(*value)).collect();
                self.b.set_loc(data.loc);
                let results = self.b.insts(data.op, &args, &types);
                free.extend(data.results.iter().copied().zip(results));
            }
        }
        free
    }

    /// The end of a routine: back to where it was called.
    fn give_back(&mut self, index: usize, func: &Function) {
        let end = self.places[index].end;
        let frame = self.b.func_mut().add_param(end, Type::I64);
        let results: Vec<Value> =
            func.signature.results.iter().map(|ty| self.b.func_mut().add_param(end, *ty)).collect();
        self.b.switch_to(end);
        self.b.set_loc(SourceLoc::default());
        let number = self.load(frame, -i64::from(CALL_BYTES), Type::I32);
        let stack = self.load(frame, -(KEPT as i64), Type::I64);
        self.b.effect(Op::StackRestore, &[stack]);
        let after = self.places[index].after.iter();
        let targets: Vec<Target> =
            after.map(|block| Target { block: *block, args: results.clone() }).collect();
        self.b.terminate(match targets.is_empty() {
            true => Terminator::Trap,
            false => Terminator::Switch { index: number, targets },
        });
    }

    fn load(&mut self, address: Value, offset: i64, ty: Type) -> Value {
        self.b.inst(Op::Load(Access::weak(Space::Local, offset)), &[address], ty)
    }

    fn store(&mut self, address: Value, offset: i64, value: Value) {
        self.b.effect(Op::Store(Access::weak(Space::Local, offset)), &[address, value]);
    }

    /// The address rounded up to a multiple of a power of two, after so many bytes.
    fn aligned(&mut self, address: Value, bytes: u64, align: u64) -> Value {
        let more = self.b.constant(Type::I64, bytes + align - 1);
        let sum = self.b.inst(Op::Int(IntBinary::Add), &[address, more], Type::I64);
        let mask = self.b.constant(Type::I64, !(align - 1));
        self.b.inst(Op::Int(IntBinary::And), &[sum, mask], Type::I64)
    }

    /// Where a caller keeps what it needs: what its stack pointer is when it calls, and again when the routine has gone back.
    fn kept_at(&mut self) -> Value {
        let pointer = self.b.inst(Op::StackSave, &[], Type::I64);
        self.aligned(pointer, 0, KEPT)
    }

    fn jump(&mut self, block: Block, args: Vec<Value>) {
        self.b.terminate(Terminator::Jump(Target { block, args }));
    }
}

/// The body of one function that becomes part of the kernel's.
struct Body<'a> {
    m: &'a mut Merge,
    func: &'a Function,
    /// Which routine it is; none for the kernel.
    own: Option<usize>,
    /// What the kernel's entry has computed.
    free: HashMap<Value, Value>,
    /// What stands for other values: those that no call passes by.
    values: HashMap<Value, Value>,
    /// Those that calls pass by.
    vars: HashMap<Value, Var>,
    /// Where a routine's frame is.
    frame: Option<Var>,
    /// For each call of a routine the values that are needed after it.
    needed: HashMap<Inst, Vec<Value>>,
    blocks: HashMap<Block, Block>,
    /// Headers of loops in which threads may wait.
    waits_at: Vec<Block>,
}

impl<'a> Body<'a> {
    fn new(
        m: &'a mut Merge,
        func: &'a Function,
        own: Option<usize>,
        free: HashMap<Value, Value>,
        shape: &Shape,
    ) -> Body<'a> {
        let needed = needed_after_calls(func, |callee| m.routines.contains(&callee), &free);
        let passed_by: BTreeSet<Value> = needed.values().flatten().copied().collect();
        let vars = passed_by.into_iter().map(|value| (value, m.b.var(func.ty(value)))).collect();
        let frame = own.map(|_| m.b.var(Type::I64));
        let (values, blocks) = (HashMap::new(), HashMap::new());
        let waits_at = waits_at(func, own.is_none(), shape);
        Body { m, func, own, free, values, vars, frame, needed, blocks, waits_at }
    }

    /// Copies it: the kernel's to `first`.
    fn copy(mut self, first: Option<Block>) {
        let cfg = Cfg::new(self.func);
        for &block in cfg.order() {
            let entry = self.own.map(|own| self.m.places[own].entry).or(first);
            let new = match entry {
                Some(entry) if block == Function::ENTRY => entry,
                _ => self.m.b.block(),
            };
            self.blocks.insert(block, new);
            if block == Function::ENTRY
                && let Some(frame) = self.frame
            {
                let param = self.m.b.func_mut().add_param(new, Type::I64);
                self.m.b.switch_to(new);
                self.m.b.write(frame, param);
            }
            for param in &self.func.block(block).params {
                let value = self.m.b.func_mut().add_param(new, self.func.ty(*param));
                self.values.insert(*param, value);
            }
        }
        // A definition comes before its uses.
        for &block in cfg.order() {
            self.block(block);
        }
    }

    fn block(&mut self, block: Block) {
        self.m.b.switch_to(self.blocks[&block]);
        let func = self.func;
        if self.waits_at.contains(&block) {
            self.m.b.func_mut().waits_at.get_or_insert_default().push(self.blocks[&block]);
        }
        let data = func.block(block);
        data.params.iter().for_each(|param| self.define(*param, self.values[param]));
        for inst in &data.insts {
            self.inst(*inst);
        }
        self.m.b.set_loc(data.term_loc);
        let mut term = data.term.clone();
        match (&term, self.own) {
            (Terminator::Return(values), Some(own)) => {
                let mut args = vec![self.frame()];
                args.extend(values.iter().map(|value| self.value(*value)).collect::<Vec<_>>());
                self.m.jump(self.m.places[own].end, args);
            }
            _ => {
                term.map_uses(|value| self.value(value));
                for target in term.targets_mut() {
                    target.block = self.blocks[&target.block];
                }
                self.m.b.terminate(term);
            }
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.func.inst(inst);
        self.m.b.set_loc(data.loc);
        if data.results.first().is_some_and(|result| self.free.contains_key(result)) {
            return;
        }
        if let Op::Call(callee) = data.op
            && let Some(routine) = self.m.routines.iter().position(|routine| *routine == callee)
        {
            return self.call(inst, routine);
        }
        if data.op == Op::LocalBase && self.frame.is_some() {
            let frame = self.frame();
            return self.define(data.results[0], frame);
        }
        let args: Vec<Value> = data.args.iter().map(|arg| self.value(*arg)).collect();
        let types: Vec<Type> = data.results.iter().map(|value| self.func.ty(*value)).collect();
        let results = self.m.b.insts(data.op, &args, &types);
        for (old, new) in data.results.iter().zip(results) {
            self.define(*old, new);
        }
    }

    /// A call of a routine: keeps what is needed after it, goes there, and comes back.
    fn call(&mut self, inst: Inst, routine: usize) {
        let func = self.func;
        let data = func.inst(inst);
        let args: Vec<Value> = data.args.iter().map(|arg| self.value(*arg)).collect();
        let mut kept: Vec<Var> = self.needed[&inst].iter().map(|value| self.vars[value]).collect();
        kept.extend(self.frame);
        let pointer = self.m.b.inst(Op::StackSave, &[], Type::I64);
        let at = self.m.aligned(pointer, 0, KEPT);
        let place = &self.m.places[routine];
        let (local_bytes, local_align, entry) =
            (u64::from(place.local_bytes), u64::from(place.local_align), place.entry);
        let number = place.after.len() as u64;
        let bytes = KEPT * kept.len() as u64 + u64::from(CALL_BYTES);
        let frame = self.m.aligned(at, bytes, local_align);
        let size = self.m.b.constant(Type::I64, local_bytes);
        let end = self.m.b.inst(Op::Int(IntBinary::Add), &[frame, size], Type::I64);
        // What does not fit is found before anything is stored there.
        self.m.b.effect(Op::StackRestore, &[end]);
        let offset = |number: usize| (KEPT * number as u64) as i64;
        for (number, var) in kept.iter().enumerate() {
            let value = self.m.b.read(*var);
            let value = self.as_stored(value, *var);
            self.m.store(at, offset(number), value);
        }
        let number = self.m.b.constant(Type::I32, number);
        self.m.store(frame, -i64::from(CALL_BYTES), number);
        self.m.store(frame, -(KEPT as i64), pointer);
        // Of what the program knows of there is at least the room of the call itself.
        let known = u64::from(CALL_BYTES) + local_bytes;
        let scale = (bytes + KEPT + local_align + local_bytes).div_ceil(known);
        self.m.scale = self.m.scale.max(u32::try_from(scale).unwrap_or(u32::MAX));
        let args = std::iter::once(frame).chain(args).collect();
        self.m.jump(entry, args);

        let after = self.m.b.block();
        self.m.places[routine].after.push(after);
        let results: Vec<Value> =
            data.results.iter().map(|value| self.m.b.func_mut().add_param(after, func.ty(*value))).collect();
        self.m.b.switch_to(after);
        let at = self.m.kept_at();
        for (number, var) in kept.iter().enumerate() {
            let value = self.as_kept(at, offset(number), *var);
            self.m.b.write(*var, value);
        }
        for (old, new) in data.results.iter().zip(results) {
            self.define(*old, new);
        }
    }

    /// A value in the form in which memory has it.
    fn as_stored(&mut self, value: Value, var: Var) -> Value {
        match self.m.b.var_ty(var) {
            Type::Pred => {
                let [one, zero] = [1, 0].map(|bits| self.m.b.constant(Type::I32, bits));
                self.m.b.inst(Op::Select, &[value, one, zero], Type::I32)
            }
            _ => value,
        }
    }

    fn as_kept(&mut self, at: Value, offset: i64, var: Var) -> Value {
        match self.m.b.var_ty(var) {
            Type::Pred => {
                let word = self.m.load(at, offset, Type::I32);
                let zero = self.m.b.constant(Type::I32, 0);
                self.m.b.inst(Op::IntCmp(IntCmp::Ne), &[word, zero], Type::Pred)
            }
            ty => self.m.load(at, offset, ty),
        }
    }

    fn frame(&mut self) -> Value {
        let frame = self.frame.expect("a routine has a frame");
        self.m.b.read(frame)
    }

    fn define(&mut self, value: Value, new: Value) {
        match self.vars.get(&value) {
            Some(var) => self.m.b.write(*var, new),
            None => {
                self.values.insert(value, new);
            }
        }
    }

    fn value(&mut self, value: Value) -> Value {
        match (self.free.get(&value), self.vars.get(&value)) {
            (Some(free), _) => *free,
            (None, Some(var)) => self.m.b.read(*var),
            (None, None) => self.values[&value],
        }
    }
}

/// For each call of a routine the values that are needed after it, but those that are known anyway.
fn needed_after_calls(
    func: &Function,
    is_routine: impl Fn(FuncRef) -> bool,
    known: &HashMap<Value, Value>,
) -> HashMap<Inst, Vec<Value>> {
    let cfg = Cfg::new(func);
    let mut live_in: Vec<HashSet<Value>> = vec![HashSet::new(); func.blocks().len()];
    let live_out = |live_in: &[HashSet<Value>], block: Block| {
        let mut live = HashSet::new();
        for succ in cfg.succs(block) {
            live.extend(live_in[succ.index()].iter().copied());
        }
        live.extend(func.block(block).term.uses().into_iter().filter(|value| !known.contains_key(value)));
        live
    };
    // Control passes an instruction the other way.
    let pass = |live: &mut HashSet<Value>, inst: Inst| {
        let data = func.inst(inst);
        data.results.iter().for_each(|result| {
            live.remove(result);
        });
        live.extend(data.args.iter().copied().filter(|value| !known.contains_key(value)));
    };
    let mut changed = true;
    while changed {
        changed = false;
        for &block in cfg.order().iter().rev() {
            let mut live = live_out(&live_in, block);
            func.block(block).insts.iter().rev().for_each(|inst| pass(&mut live, *inst));
            func.block(block).params.iter().for_each(|param| {
                live.remove(param);
            });
            if live.len() != live_in[block.index()].len() {
                live_in[block.index()] = live;
                changed = true;
            }
        }
    }
    let mut needed = HashMap::new();
    for &block in cfg.order() {
        let mut live = live_out(&live_in, block);
        for inst in func.block(block).insts.iter().rev() {
            let data = func.inst(*inst);
            if matches!(data.op, Op::Call(callee) if is_routine(callee)) {
                let results = &data.results;
                let mut values: Vec<Value> =
                    live.iter().copied().filter(|value| !results.contains(value)).collect();
                values.sort();
                needed.insert(*inst, values);
            }
            pass(&mut live, *inst);
        }
    }
    needed
}
