//! Bounds of indices that warps meet after, computed again where they are used.
//!
//! A step of a filter in shared memory is done over and over, with barriers between, and what bounds its indices is computed once before all of
//! them. Nothing in which lanes meet can be there twice, and so nothing that comes after such a bound could. Where the block that loads computes
//! the bound, it can by itself.

use std::collections::{HashMap, HashSet};

use simt_ir::{Block, Cfg, Def, DomTree, Function, Inst, IntBinary, Op, Value};

use super::lanes::{DEPTH, is_access, keeps_bounds, may_bound};

/// Computes what bounds addresses in the blocks that use them, where lanes meet after it was computed.
pub fn compute(func: &mut Function) {
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let insts = |block: Block| func.block(block).insts.iter().copied();
    let meets = |block: &Block| insts(*block).any(|inst| func.inst(inst).op.is_convergent());
    let meetings: Vec<Block> = cfg.order().iter().copied().filter(meets).collect();
    let is_before = |block: &Block| meetings.iter().any(|meeting| dom.dominates(*block, *meeting));
    let before: HashSet<Inst> = cfg.order().iter().copied().filter(is_before).flat_map(insts).collect();
    if before.is_empty() {
        return;
    }
    for &block in cfg.order() {
        // As far as lanes do not meet in the block itself.
        let insts = func.block(block).insts.clone();
        let meeting = insts.iter().rposition(|inst| func.inst(*inst).op.is_convergent());
        let start = meeting.map_or(0, |at| at + 1);
        let own = insts[start..].iter().copied().collect();
        let mut again = Again { func, before: &before, own, known: HashMap::new(), made: Vec::new() };
        for &inst in &insts[start..] {
            let data = again.func.inst(inst);
            if is_access(&data.op) {
                let address = again.computed(data.args[0], DEPTH);
                again.func.inst_mut(inst).args[0] = address;
            }
        }
        let made = again.made;
        func.block_mut(block).insts.splice(start..start, made);
    }
}

/// What a block computes again.
struct Again<'a> {
    func: &'a mut Function,
    /// What lanes meet after.
    before: &'a HashSet<Inst>,
    /// What the block computes anyway.
    own: HashSet<Inst>,
    known: HashMap<Value, Value>,
    /// In order, for the block's beginning.
    made: Vec<Inst>,
}

impl Again<'_> {
    /// The value itself, or what is computed here in its place, from a bound on.
    fn computed(&mut self, value: Value, depth: u32) -> Value {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let Def::Result(inst, _) = self.func.def(value) else { return value };
        let (is_own, data) = (self.own.contains(&inst), self.func.inst(inst).clone());
        let is_bound = !is_own && is_cheap(self.func, inst);
        if depth == 0 || !is_own && !self.before.contains(&inst) || !is_bound && !keeps_bounds(&data.op) {
            return value;
        }
        let args: Vec<Value> = data.args.iter().map(|arg| self.computed(*arg, depth - 1)).collect();
        let computed = if !is_bound && args == data.args {
            value
        } else if is_own {
            self.func.inst_mut(inst).args = args;
            value
        } else {
            let ty = self.func.ty(value);
            self.func.push_value(&mut self.made, data.op, args, ty, data.loc)
        };
        self.known.insert(value, computed);
        computed
    }
}

/// Whether an instruction bounds an index and takes no longer than a test whether it does.
fn is_cheap(func: &Function, inst: Inst) -> bool {
    let is_rest = matches!(func.inst(inst).op, Op::Int(IntBinary::RemS | IntBinary::RemU));
    !is_rest && may_bound(func, inst)
}
