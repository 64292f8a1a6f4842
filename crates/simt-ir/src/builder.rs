//! Builds functions in SSA form from code that assigns to variables.
//!
//! PTX registers are variables: assigned many times, read anywhere. [`FunctionBuilder`] takes reads and writes in program order,
//! block by block, and [`FunctionBuilder::finish`] places block parameters where definitions meet and are still needed
//! (pruned SSA by dominance frontiers). A variable read before any assignment is zero.

use std::collections::{HashMap, HashSet};

use crate::{Block, Cfg, DomTree, Function, Op, Signature, SourceLoc, Terminator, Type, Value};

/// A variable: has a type, and one value at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

/// Builds one function.
pub struct FunctionBuilder {
    func: Function,
    vars: Vec<Type>,
    /// For each block the variables it reads before writing, with a stand-in for their value.
    reads: Vec<HashMap<Var, Value>>,
    /// For each block the last value it gives to each variable.
    writes: Vec<HashMap<Var, Value>>,
    /// All stand-ins.
    stand_ins: HashSet<Value>,
    current: Block,
    /// Blocks in the order in which they were first gone to.
    layout: Vec<Block>,
    placed: Vec<bool>,
    loc: SourceLoc,
}

impl FunctionBuilder {
    /// Begins a function; the entry block exists, has the parameters, and is current.
    pub fn new(name: impl Into<String>, signature: Signature) -> FunctionBuilder {
        let params = signature.params.clone();
        let mut builder = FunctionBuilder {
            func: Function::new(name, signature),
            vars: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            stand_ins: HashSet::new(),
            current: Function::ENTRY,
            layout: vec![Function::ENTRY],
            placed: Vec::new(),
            loc: SourceLoc::default(),
        };
        let entry = builder.block();
        for ty in params {
            builder.func.add_param(entry, ty);
        }
        builder
    }

    /// The function so far.
    pub fn func(&self) -> &Function {
        &self.func
    }

    /// The function so far, to set its frame or token.
    pub fn func_mut(&mut self) -> &mut Function {
        &mut self.func
    }

    /// The n-th parameter of the function.
    pub fn param(&self, index: usize) -> Value {
        self.func.block(Function::ENTRY).params[index]
    }

    /// A new variable.
    pub fn var(&mut self, ty: Type) -> Var {
        self.vars.push(ty);
        Var(self.vars.len() as u32 - 1)
    }

    /// The variable's type.
    pub fn var_ty(&self, var: Var) -> Type {
        self.vars[var.0 as usize]
    }

    /// A new block.
    pub fn block(&mut self) -> Block {
        self.reads.push(HashMap::new());
        self.writes.push(HashMap::new());
        // The entry is placed from the start.
        self.placed.push(self.placed.is_empty());
        self.func.add_block()
    }

    /// What follows goes to the end of `block`. In the finished function blocks stand in the order in which they were first gone to.
    pub fn switch_to(&mut self, block: Block) {
        self.current = block;
        if !self.placed[block.index()] {
            self.placed[block.index()] = true;
            self.layout.push(block);
        }
    }

    /// The block's number in the finished function, if it has been gone to.
    pub fn final_number(&self, block: Block) -> Option<Block> {
        self.layout.iter().position(|at| *at == block).map(|at| Block(at as u32))
    }

    /// The block that instructions go to.
    pub fn current(&self) -> Block {
        self.current
    }

    /// Where what follows comes from.
    pub fn set_loc(&mut self, loc: SourceLoc) {
        self.loc = loc;
    }

    /// The variable's value at this point.
    pub fn read(&mut self, var: Var) -> Value {
        if let Some(value) = self.writes[self.current.index()].get(&var) {
            return *value;
        }
        let ty = self.var_ty(var);
        let func = &mut self.func;
        let stand_ins = &mut self.stand_ins;
        *self.reads[self.current.index()].entry(var).or_insert_with(|| {
            // A stand-in that no block lists; `finish` replaces it everywhere.
            let inst = func.make_inst(Op::Const(0), Vec::new(), &[ty], SourceLoc::default());
            let value = func.inst(inst).results[0];
            stand_ins.insert(value);
            value
        })
    }

    /// The bits of a value that is known to be a constant. [`Function::constant`] cannot tell while the function is built: a variable's
    /// value may come from another block.
    pub fn known_constant(&self, value: Value) -> Option<u64> {
        if self.stand_ins.contains(&value) { None } else { self.func.constant(value) }
    }

    /// Gives the variable a value of its type.
    pub fn write(&mut self, var: Var, value: Value) {
        debug_assert_eq!(self.func.ty(value), self.var_ty(var), "a variable keeps its type");
        self.writes[self.current.index()].insert(var, value);
    }

    /// Appends an instruction and returns its results.
    pub fn insts(&mut self, op: Op, args: &[Value], results: &[Type]) -> Vec<Value> {
        let inst = self.func.append(self.current, op, args.to_vec(), results, self.loc);
        self.func.inst(inst).results.clone()
    }

    /// Appends an instruction with one result.
    pub fn inst(&mut self, op: Op, args: &[Value], result: Type) -> Value {
        let inst = self.func.append(self.current, op, args.to_vec(), &[result], self.loc);
        self.func.inst(inst).results[0]
    }

    /// Appends an instruction without result.
    pub fn effect(&mut self, op: Op, args: &[Value]) {
        self.func.append(self.current, op, args.to_vec(), &[], self.loc);
    }

    /// A constant.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.inst(Op::Const(bits & ty.mask()), &[], ty)
    }

    /// Ends the current block.
    pub fn terminate(&mut self, term: Terminator) {
        let loc = self.loc;
        let data = self.func.block_mut(self.current);
        data.term = term;
        data.term_loc = loc;
    }

    /// The function in SSA form. Blocks that the entry does not reach are emptied.
    pub fn finish(mut self) -> Function {
        let cfg = Cfg::new(&self.func);
        for block in self.func.blocks() {
            if !cfg.is_reachable(block) {
                let data = self.func.block_mut(block);
                data.insts.clear();
                data.params.clear();
                data.term = Terminator::Trap;
                self.reads[block.index()].clear();
                self.writes[block.index()].clear();
            }
        }
        let dom = DomTree::new(&cfg);
        let phis = self.place_params(&cfg, &dom);
        let mut reaching = Reaching { builder: &mut self, dom: &dom, phis: &phis, known: HashMap::new() };

        // Arguments for the new parameters.
        for &block in cfg.order() {
            let mut term = reaching.builder.func.block(block).term.clone();
            for target in term.targets_mut() {
                for (var, _) in &phis[target.block.index()] {
                    let value = reaching.at_end(block, *var);
                    target.args.push(value);
                }
            }
            reaching.builder.func.block_mut(block).term = term;
        }
        // What each stand-in stands for; it may itself be a stand-in of another block.
        let mut replaced: HashMap<Value, Value> = HashMap::new();
        for &block in cfg.order() {
            let stand_ins: Vec<(Var, Value)> =
                reaching.builder.reads[block.index()].iter().map(|(var, value)| (*var, *value)).collect();
            for (var, stand_in) in stand_ins {
                let value = reaching.at_start(block, var);
                replaced.insert(stand_in, value);
            }
        }
        self.func.map_uses(|mut value| {
            while let Some(next) = replaced.get(&value) {
                value = *next;
            }
            value
        });
        let unused: Vec<Block> = self.func.blocks().filter(|block| !self.placed[block.index()]).collect();
        self.layout.extend(unused);
        self.func.reorder_blocks(&self.layout);
        self.func
    }

    /// Adds block parameters where definitions of a live variable meet: for each block its variables and parameters.
    fn place_params(&mut self, cfg: &Cfg, dom: &DomTree) -> Vec<Vec<(Var, Value)>> {
        let live = self.live_in(cfg);
        let frontiers = dom.frontiers(cfg);
        let mut phis: Vec<Vec<(Var, Value)>> = vec![Vec::new(); self.reads.len()];
        let mut defs: Vec<Vec<Block>> = vec![Vec::new(); self.vars.len()];
        for &block in cfg.order() {
            for var in self.writes[block.index()].keys() {
                defs[var.0 as usize].push(block);
            }
        }
        for (index, mut work) in defs.into_iter().enumerate() {
            let var = Var(index as u32);
            let mut placed: Vec<Block> = Vec::new();
            while let Some(block) = work.pop() {
                for &at in &frontiers[block.index()] {
                    if live.contains(at, var) && !placed.contains(&at) {
                        placed.push(at);
                        let param = self.func.add_param(at, self.vars[index]);
                        phis[at.index()].push((var, param));
                        work.push(at);
                    }
                }
            }
        }
        phis
    }

    /// Variables whose value at a block's start is needed.
    fn live_in(&self, cfg: &Cfg) -> LiveSets {
        let mut live = LiveSets::new(self.reads.len(), self.vars.len());
        for &block in cfg.order() {
            for var in self.reads[block.index()].keys() {
                live.insert(block, *var);
            }
        }
        let mut written = LiveSets::new(self.reads.len(), self.vars.len());
        for &block in cfg.order() {
            for var in self.writes[block.index()].keys() {
                written.insert(block, *var);
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &block in cfg.order().iter().rev() {
                for &succ in cfg.succs(block) {
                    changed |= live.flow(block, succ, &written);
                }
            }
        }
        live
    }
}

/// The value of a variable at the borders of a block, by walking up the dominator tree.
struct Reaching<'a> {
    builder: &'a mut FunctionBuilder,
    dom: &'a DomTree,
    phis: &'a [Vec<(Var, Value)>],
    known: HashMap<(Block, Var), Value>,
}

impl Reaching<'_> {
    fn at_end(&mut self, block: Block, var: Var) -> Value {
        match self.builder.writes[block.index()].get(&var) {
            Some(value) => *value,
            None => self.at_start(block, var),
        }
    }

    fn at_start(&mut self, block: Block, var: Var) -> Value {
        let mut walked = Vec::new();
        let mut at = block;
        let value = loop {
            if let Some(value) = self.known.get(&(at, var)) {
                break *value;
            }
            walked.push(at);
            if let Some((_, param)) = self.phis[at.index()].iter().find(|(v, _)| *v == var) {
                break *param;
            }
            let Some(parent) = self.dom.idom(at) else {
                break self.undefined(var);
            };
            if let Some(value) = self.builder.writes[parent.index()].get(&var) {
                break *value;
            }
            at = parent;
        };
        for block in walked {
            self.known.insert((block, var), value);
        }
        value
    }

    /// Zero, at the beginning of the function.
    fn undefined(&mut self, var: Var) -> Value {
        let ty = self.builder.var_ty(var);
        let func = &mut self.builder.func;
        let inst = func.make_inst(Op::Const(0), Vec::new(), &[ty], SourceLoc::default());
        func.block_mut(Function::ENTRY).insts.insert(0, inst);
        func.inst(inst).results[0]
    }
}

/// A set of variables for every block.
struct LiveSets {
    words: usize,
    bits: Vec<u64>,
}

impl LiveSets {
    fn new(blocks: usize, vars: usize) -> LiveSets {
        let words = vars.div_ceil(64);
        LiveSets { words, bits: vec![0; words * blocks] }
    }

    fn insert(&mut self, block: Block, var: Var) {
        self.bits[block.index() * self.words + var.0 as usize / 64] |= 1 << (var.0 % 64);
    }

    fn contains(&self, block: Block, var: Var) -> bool {
        self.bits[block.index() * self.words + var.0 as usize / 64] >> (var.0 % 64) & 1 != 0
    }

    /// What a successor needs and this block does not write, this block needs. Whether that changed anything.
    fn flow(&mut self, block: Block, succ: Block, written: &LiveSets) -> bool {
        let mut changed = false;
        for word in 0..self.words {
            let at = block.index() * self.words + word;
            let new = self.bits[at] | self.bits[succ.index() * self.words + word] & !written.bits[at];
            changed |= new != self.bits[at];
            self.bits[at] = new;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IntBinary, IntCmp, Target};

    #[test]
    fn a_loop_gets_parameters_for_what_it_changes_only() {
        let mut b =
            FunctionBuilder::new("count", Signature { params: vec![Type::I32], results: vec![Type::I32] });
        let (i, n, unused) = (b.var(Type::I32), b.var(Type::I32), b.var(Type::I32));
        let param = b.param(0);
        b.write(n, param);
        let zero = b.constant(Type::I32, 0);
        b.write(i, zero);
        b.write(unused, zero);
        let (body, done) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(body)));
        b.switch_to(body);
        let (at, one) = (b.read(i), b.constant(Type::I32, 1));
        let next = b.inst(Op::Int(IntBinary::Add), &[at, one], Type::I32);
        b.write(i, next);
        b.write(unused, next);
        let limit = b.read(n);
        let cond = b.inst(Op::IntCmp(IntCmp::LtS), &[next, limit], Type::Pred);
        b.terminate(Terminator::Branch {
            cond,
            then: Target::new(body),
            otherwise: Target::new(done),
            uniform: false,
        });
        b.switch_to(done);
        let result = b.read(i);
        b.terminate(Terminator::Return(vec![result]));
        let func = b.finish();

        assert_eq!(func.block(body).params.len(), 1, "only the counter changes and is needed");
        assert_eq!(func.block(done).params.len(), 0);
        assert_eq!(func.block(done).term, Terminator::Return(vec![next]));
        let compare =
            func.block(body).insts.iter().find(|i| matches!(func.inst(**i).op, Op::IntCmp(_))).unwrap();
        assert_eq!(func.inst(*compare).args[1], param, "the limit comes from the entry");
    }

    #[test]
    fn a_variable_never_written_is_zero() {
        let mut b = FunctionBuilder::new("undef", Signature { params: vec![], results: vec![Type::I64] });
        let x = b.var(Type::I64);
        let next = b.block();
        b.terminate(Terminator::Jump(Target::new(next)));
        b.switch_to(next);
        let value = b.read(x);
        b.terminate(Terminator::Return(vec![value]));
        let func = b.finish();
        let Terminator::Return(values) = &func.block(next).term else { panic!("the end is kept") };
        assert_eq!(func.constant(values[0]), Some(0));
    }
}
