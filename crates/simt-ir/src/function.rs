//! Programs, functions, blocks, instructions and values.

use std::collections::HashMap;

use crate::{Op, Type};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in its table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

index!(
    /// A value: the result of an instruction or a block parameter.
    Value, "v");
index!(
    /// An instruction of a function.
    Inst, "i");
index!(
    /// A basic block of a function.
    Block, "b");
index!(
    /// A function of a program; 0 is the kernel.
    FuncRef, "f");
index!(
    /// A module variable that a program names.
    GlobalRef, "g");
index!(
    /// A signature that indirect calls of a program use.
    SigRef, "s");

index!(
    /// A cell of a function: memory that no address names, with a value for each thread.
    Cell, "c");

/// A kernel and everything it can reach: what a back end compiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// `functions[0]` is the kernel, the others are device functions. All functions whose token the module takes are here
    /// when the program calls indirectly.
    pub functions: Vec<Function>,
    /// Names of module variables in `.global` and `.const` space, by [`GlobalRef`]. The launch supplies their addresses in this order.
    pub globals: Vec<String>,
    /// Signatures by [`SigRef`].
    pub signatures: Vec<Signature>,
    /// Bytes of the kernel's parameters.
    pub param_bytes: u32,
    /// Bytes of static shared memory; dynamic shared memory follows, aligned to `shared_align`.
    pub shared_bytes: u32,
    /// Alignment of the shared window, at least 16.
    pub shared_align: u32,
    /// `.reqntid`, or 0s.
    pub required_block: [u32; 3],
    /// Product of `.maxntid`, or 0.
    pub max_threads: u32,
}

impl Program {
    /// The kernel.
    pub fn kernel(&self) -> &Function {
        &self.functions[0]
    }

    /// The function.
    pub fn function(&self, func: FuncRef) -> &Function {
        &self.functions[func.index()]
    }
}

/// Parameter and result types of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Parameters, in order.
    pub params: Vec<Type>,
    /// Results, in order.
    pub results: Vec<Type>,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceLoc {
    /// Line in the PTX text, from 1; 0 when unknown.
    pub ptx_line: u32,
}

/// A function in SSA form.
///
/// Blocks pass values to their successors as arguments; the entry block's parameters are the function's.
/// Block 0 is the entry and has no predecessors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// Name as in PTX.
    pub name: String,
    /// Types of parameters and results. A kernel has neither: it reads its parameters from memory.
    pub signature: Signature,
    /// What [`Op::FuncToken`] yields, unique in the PTX module and not zero; 0 when no token is taken.
    pub token: u64,
    /// Bytes of this function's frame in the local window.
    pub local_bytes: u32,
    /// Alignment of that frame.
    pub local_align: u32,
    /// Types of the cells, by [`Cell`].
    pub cells: Vec<Type>,
    /// Where other functions have become parts of this one: the headers of loops in which threads may wait for others. Control flow does not tell what
    /// the loops are any more.
    pub waits_at: Option<Vec<Block>>,
    blocks: Vec<BlockData>,
    insts: Vec<InstData>,
    values: Vec<ValueData>,
}

/// One basic block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockData {
    /// Values that predecessors pass.
    pub params: Vec<Value>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// What comes after.
    pub term: Terminator,
    /// Where the terminator comes from.
    pub term_loc: SourceLoc,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct InstData {
    /// What it does.
    pub op: Op,
    /// Operands.
    pub args: Vec<Value>,
    /// Results.
    pub results: Vec<Value>,
    /// Where it comes from.
    pub loc: SourceLoc,
}

impl InstData {
    /// What an access moves between memory and registers: its results, or what it stores behind the address.
    pub fn elements(&self) -> &[Value] {
        if self.results.is_empty() { self.args.get(1..).unwrap_or_default() } else { &self.results }
    }
}

/// Where a value is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// The n-th result of an instruction.
    Result(Inst, u32),
    /// The n-th parameter of a block.
    Param(Block, u32),
    /// Nowhere: a value that a pass has replaced.
    Removed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ValueData {
    ty: Type,
    def: Def,
}

/// A successor with the arguments for its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The successor.
    pub block: Block,
    /// One argument a parameter.
    pub args: Vec<Value>,
}

impl Target {
    /// A successor without arguments.
    pub fn new(block: Block) -> Target {
        Target { block, args: Vec::new() }
    }
}

/// The end of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// To one successor.
    Jump(Target),
    /// By a predicate.
    Branch {
        /// A `Pred`.
        cond: Value,
        /// Where it holds.
        then: Target,
        /// Where not.
        otherwise: Target,
        /// The program promises that all active lanes agree (`bra.uni`).
        uniform: bool,
    },
    /// By an `I32` index; an index past the end takes the last target.
    Switch {
        /// The index, unsigned.
        index: Value,
        /// Targets by index; at least one.
        targets: Vec<Target>,
    },
    /// Back to the caller; in a kernel, the thread ends.
    Return(Vec<Value>),
    /// The thread ends, in a device function too.
    Exit,
    /// The launch ends with a fault.
    Trap,
}

impl Terminator {
    /// The successors, in order.
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            Terminator::Jump(target) => vec![target],
            Terminator::Branch { then, otherwise, .. } => vec![then, otherwise],
            Terminator::Switch { targets, .. } => targets.iter().collect(),
            Terminator::Return(_) | Terminator::Exit | Terminator::Trap => Vec::new(),
        }
    }

    /// The successors, to change.
    pub fn targets_mut(&mut self) -> Vec<&mut Target> {
        match self {
            Terminator::Jump(target) => vec![target],
            Terminator::Branch { then, otherwise, .. } => vec![then, otherwise],
            Terminator::Switch { targets, .. } => targets.iter_mut().collect(),
            Terminator::Return(_) | Terminator::Exit | Terminator::Trap => Vec::new(),
        }
    }

    /// The values read, successors' arguments included.
    pub fn uses(&self) -> Vec<Value> {
        let mut uses = match self {
            Terminator::Branch { cond, .. } => vec![*cond],
            Terminator::Switch { index, .. } => vec![*index],
            Terminator::Return(values) => values.clone(),
            Terminator::Jump(_) | Terminator::Exit | Terminator::Trap => Vec::new(),
        };
        for target in self.targets() {
            uses.extend_from_slice(&target.args);
        }
        uses
    }

    /// Applies `map` to every value read.
    pub fn map_uses(&mut self, mut map: impl FnMut(Value) -> Value) {
        match self {
            Terminator::Branch { cond, .. } => *cond = map(*cond),
            Terminator::Switch { index, .. } => *index = map(*index),
            Terminator::Return(values) => values.iter_mut().for_each(|value| *value = map(*value)),
            Terminator::Jump(_) | Terminator::Exit | Terminator::Trap => {}
        }
        for target in self.targets_mut() {
            target.args.iter_mut().for_each(|value| *value = map(*value));
        }
    }
}

impl Function {
    /// An empty function: add an entry block first.
    pub fn new(name: impl Into<String>, signature: Signature) -> Function {
        Function { name: name.into(), signature, local_align: 1, ..Function::default() }
    }

    /// Adds a cell.
    pub fn add_cell(&mut self, ty: Type) -> Cell {
        self.cells.push(ty);
        Cell(self.cells.len() as u32 - 1)
    }

    /// The entry block.
    pub const ENTRY: Block = Block(0);

    /// All blocks in layout order.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + ExactSizeIterator + use<> {
        (0..self.blocks.len() as u32).map(Block)
    }

    /// Number of values ever made; they are numbered from 0.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Number of instructions ever made.
    pub fn inst_count(&self) -> usize {
        self.insts.len()
    }

    /// The block.
    pub fn block(&self, block: Block) -> &BlockData {
        &self.blocks[block.index()]
    }

    /// The block, to change.
    pub fn block_mut(&mut self, block: Block) -> &mut BlockData {
        &mut self.blocks[block.index()]
    }

    /// The instruction.
    pub fn inst(&self, inst: Inst) -> &InstData {
        &self.insts[inst.index()]
    }

    /// Whether it looks at memory in a way that shows what other threads do meanwhile.
    pub fn sees_others(&self) -> bool {
        let mut insts = self.blocks.iter().flat_map(|block| &block.insts);
        insts.any(|inst| match self.inst(*inst).op {
            Op::Load(access) => access.order != crate::Order::Weak,
            Op::Atomic(..) | Op::AtomicCas(_) => true,
            _ => false,
        })
    }

    /// The instruction, to change.
    pub fn inst_mut(&mut self, inst: Inst) -> &mut InstData {
        &mut self.insts[inst.index()]
    }

    /// The value's type.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value.index()].ty
    }

    /// Where the value is defined.
    pub fn def(&self, value: Value) -> Def {
        self.values[value.index()].def
    }

    /// The instruction that defines the value, if one does.
    pub fn def_inst(&self, value: Value) -> Option<&InstData> {
        match self.def(value) {
            Def::Result(inst, _) => Some(self.inst(inst)),
            Def::Param(..) | Def::Removed => None,
        }
    }

    /// The bits of a constant.
    pub fn constant(&self, value: Value) -> Option<u64> {
        match self.def_inst(value)?.op {
            Op::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// Adds a block that ends in [`Terminator::Trap`] until it gets its own end.
    pub fn add_block(&mut self) -> Block {
        self.blocks.push(BlockData {
            params: Vec::new(),
            insts: Vec::new(),
            term: Terminator::Trap,
            term_loc: SourceLoc::default(),
        });
        Block(self.blocks.len() as u32 - 1)
    }

    /// Adds a parameter to a block; every predecessor must then pass one more argument.
    pub fn add_param(&mut self, block: Block, ty: Type) -> Value {
        let position = self.block(block).params.len() as u32;
        let value = self.add_value(ty, Def::Param(block, position));
        self.block_mut(block).params.push(value);
        value
    }

    /// Removes the parameters for which `keep` is false, and the arguments passed for them: all at once, since every edge
    /// has to be looked at.
    pub fn retain_params(&mut self, keep: impl Fn(Block, Value) -> bool) {
        let mut kept: Vec<Option<Vec<bool>>> = vec![None; self.blocks.len()];
        for block in self.blocks() {
            let keeps: Vec<bool> = self.block(block).params.iter().map(|param| keep(block, *param)).collect();
            if keeps.iter().all(|keeps| *keeps) {
                continue;
            }
            let old = std::mem::take(&mut self.block_mut(block).params);
            for (value, keeps) in old.into_iter().zip(&keeps) {
                self.values[value.index()].def = if *keeps {
                    let params = &mut self.block_mut(block).params;
                    params.push(value);
                    Def::Param(block, params.len() as u32 - 1)
                } else {
                    Def::Removed
                };
            }
            kept[block.index()] = Some(keeps);
        }
        if kept.iter().all(Option::is_none) {
            return;
        }
        for data in &mut self.blocks {
            for target in data.term.targets_mut() {
                if let Some(keeps) = &kept[target.block.index()] {
                    let mut keeps = keeps.iter();
                    target.args.retain(|_| *keeps.next().unwrap_or(&true));
                }
            }
        }
    }

    /// Lays the blocks out in this order, which names each once and the entry first; they are numbered anew.
    pub fn reorder_blocks(&mut self, order: &[Block]) {
        debug_assert_eq!(order.first(), Some(&Function::ENTRY));
        debug_assert_eq!(order.len(), self.blocks.len());
        let mut number = vec![Function::ENTRY; self.blocks.len()];
        for (new, old) in order.iter().enumerate() {
            number[old.index()] = Block(new as u32);
        }
        let mut old: Vec<Option<BlockData>> =
            std::mem::take(&mut self.blocks).into_iter().map(Some).collect();
        self.blocks = order.iter().filter_map(|block| old[block.index()].take()).collect();
        for data in &mut self.blocks {
            for target in data.term.targets_mut() {
                target.block = number[target.block.index()];
            }
        }
        self.waits_at.iter_mut().flatten().for_each(|block| *block = number[block.index()]);
        for value in &mut self.values {
            if let Def::Param(block, _) = &mut value.def {
                *block = number[block.index()];
            }
        }
    }

    /// Makes an instruction without placing it in a block.
    pub fn make_inst(&mut self, op: Op, args: Vec<Value>, results: &[Type], loc: SourceLoc) -> Inst {
        let inst = Inst(self.insts.len() as u32);
        let results =
            results.iter().zip(0..).map(|(ty, i)| self.add_value(*ty, Def::Result(inst, i))).collect();
        self.insts.push(InstData { op, args, results, loc });
        inst
    }

    /// Makes an instruction at the end of a block.
    pub fn append(
        &mut self,
        block: Block,
        op: Op,
        args: Vec<Value>,
        results: &[Type],
        loc: SourceLoc,
    ) -> Inst {
        let inst = self.make_inst(op, args, results, loc);
        self.block_mut(block).insts.push(inst);
        inst
    }

    /// Makes an instruction with one result at the end of a block; its result.
    pub fn append_value(
        &mut self,
        block: Block,
        op: Op,
        args: Vec<Value>,
        ty: Type,
        loc: SourceLoc,
    ) -> Value {
        let inst = self.append(block, op, args, &[ty], loc);
        self.inst(inst).results[0]
    }

    /// Makes a copy of an instruction at the end of a block. It reads what `values` has for each operand, or the operand itself, and
    /// its results are added there as what stands for the original's.
    pub fn append_copy(&mut self, block: Block, inst: Inst, values: &mut HashMap<Value, Value>) -> Inst {
        let data = self.inst(inst).clone();
        let args = data.args.iter().map(|arg| *values.get(arg).unwrap_or(arg)).collect();
        let types: Vec<Type> = data.results.iter().map(|result| self.ty(*result)).collect();
        let copy = self.append(block, data.op, args, &types, data.loc);
        values.extend(data.results.into_iter().zip(self.inst(copy).results.iter().copied()));
        copy
    }

    /// Makes an instruction with one result at the end of a list that is to be put into a block; its result.
    pub fn push_value(
        &mut self,
        list: &mut Vec<Inst>,
        op: Op,
        args: Vec<Value>,
        ty: Type,
        loc: SourceLoc,
    ) -> Value {
        let inst = self.make_inst(op, args, &[ty], loc);
        list.push(inst);
        self.inst(inst).results[0]
    }

    /// Makes an instruction with one result at a place in a block; its result.
    pub fn insert(
        &mut self,
        block: Block,
        at: usize,
        op: Op,
        args: Vec<Value>,
        ty: Type,
        loc: SourceLoc,
    ) -> Value {
        let inst = self.make_inst(op, args, &[ty], loc);
        self.block_mut(block).insts.insert(at, inst);
        self.inst(inst).results[0]
    }

    /// Applies `map` to every value that an instruction or terminator reads.
    pub fn map_uses(&mut self, mut map: impl FnMut(Value) -> Value) {
        for data in &mut self.insts {
            data.args.iter_mut().for_each(|value| *value = map(*value));
        }
        for data in &mut self.blocks {
            data.term.map_uses(&mut map);
        }
    }

    /// Moves the instructions of `block` from position `at` on, and its terminator, to a new block. The block ends in a
    /// trap until it gets its own end.
    pub fn split_block(&mut self, block: Block, at: usize) -> Block {
        let new = self.add_block();
        let data = self.block_mut(block);
        let tail = data.insts.split_off(at);
        let term = std::mem::replace(&mut data.term, Terminator::Trap);
        let term_loc = data.term_loc;
        let data = self.block_mut(new);
        data.insts = tail;
        data.term = term;
        data.term_loc = term_loc;
        new
    }

    fn add_value(&mut self, ty: Type, def: Def) -> Value {
        self.values.push(ValueData { ty, def });
        Value(self.values.len() as u32 - 1)
    }
}
