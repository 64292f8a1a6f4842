//! Random programs with divergent control flow, as machine code and on the interpreter: they must leave the same memory.
//!
//! `ANYWARP_SEEDS=from..to` runs other programs than the usual ones.

mod launch;

use std::collections::HashSet;

use codegen::Plan;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

/// Words every thread owns in the output.
const OWN: u64 = 8;
/// Read-only words at the beginning of the array.
const INPUT: u64 = 1024;

/// A small, fixed random number generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Where control can go from inside a loop.
struct Loop {
    head: Block,
    done: Block,
    counter: Var,
    limit: Value,
}

struct Generator {
    b: FunctionBuilder,
    r: Random,
    ints: Vec<Var>,
    wide: Vec<Var>,
    floats: Vec<Var>,
    input: Value,
    own: Value,
    linear: Value,
    loops: Vec<Loop>,
    end: Block,
    barriers: bool,
    /// Nothing that only warps can do, so that they may run in gangs.
    gangs: bool,
    /// Statements left before the program is long enough.
    budget: u32,
}

impl Generator {
    fn program(seed: u64, launch: Launch) -> Program {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let mut r = Random(seed);
        let zero = b.constant(Type::I64, 0);
        let input = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        let mut linear = b.constant(Type::I32, 0);
        let dims = launch.shape().dims;
        for (position, size) in [
            (SpecialReg::CtaId as fn(u8) -> SpecialReg, SpecialReg::NctaId as fn(u8) -> SpecialReg),
            (SpecialReg::Tid, SpecialReg::Ntid),
        ] {
            for axis in (0..3u8).rev() {
                let size = b.inst(Op::SpecialReg(size(axis)), &[], Type::I32);
                let position = b.inst(Op::SpecialReg(position(axis)), &[], Type::I32);
                let scaled = b.inst(Op::Int(IntBinary::Mul), &[linear, size], Type::I32);
                linear = b.inst(Op::Int(IntBinary::Add), &[scaled, position], Type::I32);
            }
        }
        if dims == 1 && launch.grid[1] == 1 && launch.grid[2] == 1 {
            // As programs write it, so that the compiler sees consecutive addresses.
            let cta = b.inst(Op::SpecialReg(SpecialReg::CtaId(0)), &[], Type::I32);
            let ntid = b.inst(Op::SpecialReg(SpecialReg::Ntid(0)), &[], Type::I32);
            let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
            let start = b.inst(Op::Int(IntBinary::Mul), &[cta, ntid], Type::I32);
            linear = b.inst(Op::Int(IntBinary::Add), &[start, tid], Type::I32);
        }
        let wide = b.inst(Op::Convert(Convert::SExt), &[linear], Type::I64);
        let stride = b.constant(Type::I64, OWN * 4);
        let own = b.inst(Op::Int(IntBinary::Mul), &[wide, stride], Type::I64);
        let start = b.constant(Type::I64, INPUT * 4);
        let own = b.inst(Op::Int(IntBinary::Add), &[own, start], Type::I64);
        let own = b.inst(Op::Int(IntBinary::Add), &[input, own], Type::I64);
        let ints: Vec<Var> = (0..5).map(|_| b.var(Type::I32)).collect();
        let wides: Vec<Var> = (0..2).map(|_| b.var(Type::I64)).collect();
        let floats: Vec<Var> = (0..3).map(|_| b.var(Type::F32)).collect();
        let end = b.block();
        let barriers = r.chance(30);
        let mut g = Generator {
            b,
            r,
            ints,
            wide: wides,
            floats,
            input,
            own,
            linear,
            loops: Vec::new(),
            end,
            barriers,
            gangs: launch.shape().gangs.most > 1 && !seed.is_multiple_of(4),
            budget: 4 + (seed % 57) as u32,
        };
        g.write(g.ints[0], linear);
        for at in 1..4 {
            let reg = g.r.pick(&[
                SpecialReg::Tid(0),
                SpecialReg::Tid(1),
                SpecialReg::LaneId,
                SpecialReg::CtaId(0),
                SpecialReg::WarpId,
            ]);
            let value = g.reg(reg);
            g.write(g.ints[at], value);
        }
        g.statements(0);
        g.b.terminate(Terminator::Jump(Target::new(end)));
        g.b.switch_to(end);
        g.finish();
        let func = g.b.finish();
        let program = Program {
            functions: vec![func],
            param_bytes: 8,
            shared_bytes: 8192,
            shared_align: 16,
            ..Program::default()
        };
        verify(&program).unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
        program
    }

    fn reg(&mut self, reg: SpecialReg) -> Value {
        let of_warp = matches!(reg, SpecialReg::LaneId | SpecialReg::WarpId | SpecialReg::LanemaskLt);
        let reg = if self.gangs && of_warp { SpecialReg::Tid(1) } else { reg };
        self.b.inst(Op::SpecialReg(reg), &[], Type::I32)
    }

    fn write(&mut self, var: Var, value: Value) {
        self.b.write(var, value);
    }

    fn finish(&mut self) {
        for at in 0..self.ints.len() {
            let value = self.b.read(self.ints[at]);
            self.b.effect(Op::Store(Access::weak(Space::Global, at as i64 * 4)), &[self.own, value]);
        }
        let wide = self.b.read(self.wide[0]);
        let low = self.b.inst(Op::Convert(Convert::Trunc), &[wide], Type::I32);
        self.b.effect(Op::Store(Access::weak(Space::Global, 20)), &[self.own, low]);
        for at in 0..2 {
            let value = self.b.read(self.floats[at]);
            self.b.effect(Op::Store(Access::weak(Space::Global, 24 + 4 * at as i64)), &[self.own, value]);
        }
        self.b.terminate(Terminator::Exit);
    }

    fn statements(&mut self, depth: u32) {
        for _ in 0..1 + self.r.below(5) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            match self.r.below(if depth < 4 { 12 } else { 7 }) {
                0..=3 => self.assign(),
                4 => self.load(),
                5 => self.store(),
                6 => self.leave(),
                7..=9 => self.branch(depth),
                10 => self.repeat(depth),
                _ => self.exchange(depth),
            }
        }
    }

    fn int(&mut self) -> Value {
        match self.r.below(6) {
            0 => {
                let value = self.r.pick(&[
                    0,
                    1,
                    2,
                    3,
                    4,
                    5,
                    7,
                    8,
                    16,
                    31,
                    32,
                    100,
                    0xffff_ffff,
                    0x7fff_ffff,
                    0x8000_0000,
                ]);
                self.b.constant(Type::I32, value)
            }
            1 => {
                let reg = self.r.pick(&[
                    SpecialReg::Tid(0),
                    SpecialReg::Tid(1),
                    SpecialReg::Tid(2),
                    SpecialReg::Ntid(0),
                    SpecialReg::CtaId(0),
                    SpecialReg::LaneId,
                    SpecialReg::LanemaskLt,
                ]);
                self.reg(reg)
            }
            _ => {
                let var = self.r.pick(&self.ints.clone());
                self.b.read(var)
            }
        }
    }

    fn wide(&mut self) -> Value {
        if self.r.chance(40) {
            let value = self.int();
            let op = self.r.pick(&[Convert::SExt, Convert::ZExt]);
            self.b.inst(Op::Convert(op), &[value], Type::I64)
        } else {
            let var = self.r.pick(&self.wide.clone());
            self.b.read(var)
        }
    }

    fn float(&mut self) -> Value {
        match self.r.below(5) {
            0 => {
                let value = self.r.pick(&[0.0f32, 1.0, -2.5, 1e30, f32::INFINITY, 0.1]);
                self.b.constant(Type::F32, value.to_bits().into())
            }
            1 => {
                let value = self.int();
                self.b.inst(Op::Convert(Convert::SToFloat(FloatMode::default())), &[value], Type::F32)
            }
            2 => {
                let value = self.int();
                self.b.inst(Op::Convert(Convert::Bitcast), &[value], Type::F32)
            }
            _ => {
                let var = self.r.pick(&self.floats.clone());
                self.b.read(var)
            }
        }
    }

    fn condition(&mut self) -> Value {
        let cmp = self.r.pick(&[
            IntCmp::Eq,
            IntCmp::Ne,
            IntCmp::LtS,
            IntCmp::GeS,
            IntCmp::LtU,
            IntCmp::GtU,
            IntCmp::LeS,
        ]);
        match self.r.below(6) {
            0 => {
                let (a, b) = (self.float(), self.float());
                let rel = self.r.pick(&[FloatRel::Lt, FloatRel::Ge, FloatRel::Ne, FloatRel::Unordered]);
                self.b.inst(
                    Op::FloatCmp(FloatCmp { rel, nan: self.r.chance(50), ftz: false }),
                    &[a, b],
                    Type::Pred,
                )
            }
            1 => {
                // The same for the whole block.
                let (a, b) =
                    (self.b.inst(Op::SpecialReg(SpecialReg::CtaId(0)), &[], Type::I32), self.r.below(3));
                let b = self.b.constant(Type::I32, b);
                self.b.inst(Op::IntCmp(cmp), &[a, b], Type::Pred)
            }
            2 => {
                let (a, limit) = (self.int(), self.r.below(8));
                let mask = self.b.constant(Type::I32, 7);
                let a = self.b.inst(Op::Int(IntBinary::And), &[a, mask], Type::I32);
                let b = self.b.constant(Type::I32, limit);
                self.b.inst(Op::IntCmp(cmp), &[a, b], Type::Pred)
            }
            _ => {
                let (a, b) = (self.int(), self.int());
                self.b.inst(Op::IntCmp(cmp), &[a, b], Type::Pred)
            }
        }
    }

    fn assign(&mut self) {
        use IntBinary::*;
        const OPS: [IntBinary; 16] =
            [Add, Add, Sub, Mul, And, Or, Xor, MinS, MaxU, DivS, DivU, RemS, RemU, MulHiS, AddSatS, Sub];
        match self.r.below(10) {
            0..=3 => {
                let op = self.r.pick(&OPS);
                let (a, b) = (self.int(), self.int());
                let value = self.b.inst(Op::Int(op), &[a, b], Type::I32);
                let var = self.r.pick(&self.ints.clone());
                self.write(var, value);
            }
            4 => {
                let op = self.r.pick(&[Shift::Left, Shift::RightS, Shift::RightU]);
                let (a, amount) = (self.int(), self.r.below(40));
                let amount = self.b.constant(Type::I32, amount);
                let value = self.b.inst(Op::Shift(op), &[a, amount], Type::I32);
                let var = self.r.pick(&self.ints.clone());
                self.write(var, value);
            }
            5 => {
                let (cond, a, b) = (self.condition(), self.int(), self.int());
                let value = self.b.inst(Op::Select, &[cond, a, b], Type::I32);
                let var = self.r.pick(&self.ints.clone());
                self.write(var, value);
            }
            6 | 7 => {
                let op = self.r.pick(&[Add, Sub, Mul, Xor, And]);
                let (a, b) = (self.wide(), self.wide());
                let value = self.b.inst(Op::Int(op), &[a, b], Type::I64);
                let var = self.r.pick(&self.wide.clone());
                self.write(var, value);
                let low = self.b.inst(Op::Convert(Convert::Trunc), &[value], Type::I32);
                let var = self.r.pick(&self.ints.clone());
                self.write(var, low);
            }
            _ => {
                let op =
                    self.r.pick(&[FloatBinary::Add, FloatBinary::Sub, FloatBinary::Mul, FloatBinary::Div]);
                let (a, b) = (self.float(), self.float());
                let value = self.b.inst(Op::Float(op, FloatMode::default()), &[a, b], Type::F32);
                let var = self.r.pick(&self.floats.clone());
                self.write(var, value);
                if self.r.chance(30) {
                    let bits = self.b.inst(Op::Convert(Convert::Bitcast), &[value], Type::I32);
                    let var = self.r.pick(&self.ints.clone());
                    self.write(var, bits);
                }
            }
        }
    }

    /// An index below a power of two, as consecutive over the lanes or not.
    fn index(&mut self, limit: u64) -> Value {
        let value = match self.r.below(3) {
            0 => self.linear,
            1 => self.b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32),
            _ => self.int(),
        };
        let by = self.r.below(5);
        let by = self.b.constant(Type::I32, by);
        let value = self.b.inst(Op::Int(IntBinary::Add), &[value, by], Type::I32);
        let mask = self.b.constant(Type::I32, limit - 1);
        self.b.inst(Op::Int(IntBinary::And), &[value, mask], Type::I32)
    }

    fn load(&mut self) {
        if self.r.chance(30) {
            // What this thread stored.
            let at = self.r.below(OWN) as i64 * 4;
            let value = self.b.inst(Op::Load(Access::weak(Space::Global, at)), &[self.own], Type::I32);
            let var = self.r.pick(&self.ints.clone());
            return self.write(var, value);
        }
        let tid = self.b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let consecutive = self.r.chance(50);
        let index = if consecutive { tid } else { self.index(INPUT) };
        let convert = self.r.pick(&[Convert::SExt, Convert::ZExt]);
        let index = self.b.inst(Op::Convert(convert), &[index], Type::I64);
        let (lanes, size) =
            if consecutive { self.r.pick(&[(1, 4), (1, 8), (2, 8), (1, 12)]) } else { (1, 4) };
        let size = if consecutive { size } else { 4 };
        // 128 threads at most in x, of 12 bytes at most.
        let size_value = self.b.constant(Type::I64, size);
        let bytes = self.b.inst(Op::Int(IntBinary::Mul), &[index, size_value], Type::I64);
        let address = self.b.inst(Op::Int(IntBinary::Add), &[self.input, bytes], Type::I64);
        let access = Access { lanes, ..Access::weak(Space::Global, 0) };
        for value in self.b.insts(Op::Load(access), &[address], &vec![Type::I32; lanes.into()]) {
            let var = self.r.pick(&self.ints.clone());
            self.write(var, value);
        }
    }

    fn store(&mut self) {
        let access = Access::weak(Space::Global, self.r.below(OWN) as i64 * 4);
        let value = self.int();
        match self.r.below(3) {
            0 if !self.gangs => {
                // In the thread's own window, and back.
                let base = self.b.inst(Op::LocalBase, &[], Type::I64);
                let at = self.r.below(8) as i64 * 4;
                self.b.effect(Op::Store(Access::weak(Space::Local, at)), &[base, value]);
                let at = self.r.below(8) as i64 * 4;
                let back = self.b.inst(Op::Load(Access::weak(Space::Local, at)), &[base], Type::I32);
                let var = self.r.pick(&self.ints.clone());
                self.write(var, back);
            }
            1 => {
                let which = self.int();
                let mask = self.b.constant(Type::I32, 1);
                let which = self.b.inst(Op::Int(IntBinary::And), &[which, mask], Type::I32);
                let which = self.b.inst(Op::Convert(Convert::ZExt), &[which], Type::I64);
                let four = self.b.constant(Type::I64, 4);
                let bytes = self.b.inst(Op::Int(IntBinary::Mul), &[which, four], Type::I64);
                let address = self.b.inst(Op::Int(IntBinary::Add), &[self.own, bytes], Type::I64);
                self.b.effect(Op::Store(Access::weak(Space::Global, 8)), &[address, value]);
            }
            _ => self.b.effect(Op::Store(access), &[self.own, value]),
        }
    }

    fn leave(&mut self) {
        if self.r.chance(50) {
            return self.assign();
        }
        let cond = self.condition();
        let after = self.b.block();
        let jump = match self.loops.last() {
            Some(inner) if self.r.chance(60) => {
                if self.r.chance(50) {
                    Target::new(inner.done)
                } else {
                    return self.continue_loop(cond, after);
                }
            }
            Some(_) if self.r.chance(50) => Target::new(self.loops[0].done),
            _ if self.barriers => return self.assign_after(after),
            _ => Target::new(self.end),
        };
        self.b.terminate(Terminator::Branch {
            cond,
            then: jump,
            otherwise: Target::new(after),
            uniform: false,
        });
        self.b.switch_to(after);
    }

    fn assign_after(&mut self, after: Block) {
        self.b.terminate(Terminator::Jump(Target::new(after)));
        self.b.switch_to(after);
        self.assign();
    }

    fn continue_loop(&mut self, cond: Value, after: Block) {
        let step = self.b.block();
        self.b.terminate(Terminator::Branch {
            cond,
            then: Target::new(step),
            otherwise: Target::new(after),
            uniform: false,
        });
        self.b.switch_to(step);
        self.next_iteration();
        self.b.switch_to(after);
    }

    fn next_iteration(&mut self) {
        let inner = self.loops.last().expect("inside a loop");
        let (head, done, counter, limit) = (inner.head, inner.done, inner.counter, inner.limit);
        let at = self.b.read(counter);
        let one = self.b.constant(Type::I32, 1);
        let next = self.b.inst(Op::Int(IntBinary::Add), &[at, one], Type::I32);
        self.write(counter, next);
        let more = self.b.inst(Op::IntCmp(IntCmp::LtU), &[next, limit], Type::Pred);
        self.b.terminate(Terminator::Branch {
            cond: more,
            then: Target::new(head),
            otherwise: Target::new(done),
            uniform: false,
        });
    }

    fn branch(&mut self, depth: u32) {
        let cond = self.condition();
        let (then, otherwise, after) = (self.b.block(), self.b.block(), self.b.block());
        let has_else = self.r.chance(50);
        self.b.terminate(Terminator::Branch {
            cond,
            then: Target::new(then),
            otherwise: Target::new(if has_else { otherwise } else { after }),
            uniform: false,
        });
        self.b.switch_to(then);
        let barriers = std::mem::replace(&mut self.barriers, false);
        let returns_allowed = !barriers;
        if returns_allowed {
            self.statements(depth + 1);
        } else {
            self.assign();
            self.load();
        }
        self.b.terminate(Terminator::Jump(Target::new(after)));
        self.b.switch_to(otherwise);
        if has_else {
            if returns_allowed {
                self.statements(depth + 1);
            } else {
                self.store();
            }
        }
        self.b.terminate(Terminator::Jump(Target::new(after)));
        self.b.switch_to(after);
        self.barriers = barriers;
    }

    fn repeat(&mut self, depth: u32) {
        let counter = self.b.var(Type::I32);
        let zero = self.b.constant(Type::I32, 0);
        self.write(counter, zero);
        let limit = if self.r.chance(50) || self.barriers {
            let times = 1 + self.r.below(4);
            self.b.constant(Type::I32, times)
        } else {
            let (value, mask) = (self.int(), self.b.constant(Type::I32, 3));
            self.b.inst(Op::Int(IntBinary::And), &[value, mask], Type::I32)
        };
        let (head, done) = (self.b.block(), self.b.block());
        self.b.terminate(Terminator::Jump(Target::new(head)));
        self.b.switch_to(head);
        if self.barriers {
            // All threads go round together.
            for _ in 0..3 {
                self.assign();
                self.exchange(depth + 1);
            }
        }
        self.loops.push(Loop { head, done, counter, limit });
        if !self.barriers {
            self.statements(depth + 1);
        }
        self.next_iteration();
        self.loops.pop();
        self.b.switch_to(done);
    }

    /// Threads pass values through shared memory, where all of them come by.
    fn exchange(&mut self, depth: u32) {
        if !self.barriers {
            return self.branch(depth);
        }
        let mut tid = self.b.constant(Type::I32, 0);
        let mut count = self.b.constant(Type::I32, 1);
        for axis in [2, 1, 0] {
            let size = self.b.inst(Op::SpecialReg(SpecialReg::Ntid(axis)), &[], Type::I32);
            let position = self.b.inst(Op::SpecialReg(SpecialReg::Tid(axis)), &[], Type::I32);
            let scaled = self.b.inst(Op::Int(IntBinary::Mul), &[tid, size], Type::I32);
            tid = self.b.inst(Op::Int(IntBinary::Add), &[scaled, position], Type::I32);
            count = self.b.inst(Op::Int(IntBinary::Mul), &[count, size], Type::I32);
        }
        let two = self.b.constant(Type::I32, 2);
        let value = self.int();
        let place = self.b.inst(Op::Shift(Shift::Left), &[tid, two], Type::I32);
        self.b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[place, value]);
        let zero = self.b.constant(Type::I32, 0);
        self.b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
        let step = self.r.below(70);
        let step = self.b.constant(Type::I32, step);
        let other = self.b.inst(Op::Int(IntBinary::Add), &[tid, step], Type::I32);
        let other = self.b.inst(Op::Int(IntBinary::RemU), &[other, count], Type::I32);
        let place = self.b.inst(Op::Shift(Shift::Left), &[other, two], Type::I32);
        let value = self.b.inst(Op::Load(Access::weak(Space::Shared, 0)), &[place], Type::I32);
        let var = self.r.pick(&self.ints.clone());
        self.write(var, value);
        if self.r.chance(50) && !self.gangs {
            let cond = self.condition();
            let kind = self.r.pick(&[BarrierKind::RedPopc, BarrierKind::RedAnd, BarrierKind::RedOr]);
            let op = Op::Barrier { kind, count: false };
            let value = if kind == BarrierKind::RedPopc {
                self.b.inst(op, &[zero, cond], Type::I32)
            } else {
                let value = self.b.inst(op, &[zero, cond], Type::Pred);
                self.b.inst(Op::Convert(Convert::ZExt), &[value], Type::I32)
            };
            let var = self.r.pick(&self.ints.clone());
            self.write(var, value);
        } else {
            self.b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
        }
    }
}

const LAUNCHES: [Launch; 17] = [
    Launch { grid: [3, 1, 1], block: [64, 1, 1] },
    Launch { grid: [3, 1, 1], block: [100, 1, 1] },
    Launch { grid: [2, 1, 1], block: [33, 1, 1] },
    Launch { grid: [2, 2, 1], block: [32, 4, 1] },
    Launch { grid: [2, 1, 2], block: [64, 2, 1] },
    Launch { grid: [2, 2, 1], block: [16, 8, 1] },
    Launch { grid: [2, 1, 1], block: [8, 4, 2] },
    Launch { grid: [2, 1, 1], block: [10, 7, 1] },
    Launch { grid: [2, 1, 1], block: [5, 3, 4] },
    Launch { grid: [1, 1, 1], block: [7, 1, 1] },
    Launch { grid: [2, 1, 1], block: [256, 1, 1] },
    Launch { grid: [1, 2, 1], block: [32, 8, 1] },
    Launch { grid: [2, 1, 1], block: [16, 16, 1] },
    Launch { grid: [1, 1, 1], block: [32, 8, 3] },
    Launch { grid: [1, 1, 1], block: [128, 4, 1] },
    Launch { grid: [1, 1, 1], block: [192, 2, 1] },
    Launch { grid: [1, 1, 2], block: [4, 8, 8] },
];

/// What went wrong, and how large the program is.
struct Failure {
    size: usize,
    message: String,
}

/// Answers the most warps that have run as one.
fn check(seed: u64) -> Result<u32, Failure> {
    let launch = LAUNCHES[seed as usize % LAUNCHES.len()];
    let program = Generator::program(seed, launch);
    let fail = |what: String| Failure {
        size: program.kernel().inst_count(),
        message: format!("seed {seed}, {launch:?}: {what}\n{program}"),
    };
    let threads: u32 = launch.grid.iter().chain(&launch.block).product();
    let words = (INPUT + OWN * u64::from(threads) + 64) as usize;
    let start: Vec<u32> = (0..words as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> (i % 30)).collect();
    let mut expected = start.clone();
    launch
        .interpret(&program, &[expected.as_mut_ptr() as u64])
        .map_err(|fault| fail(format!("{fault:?}")))?;
    let cpus = launch::cpus();
    let cpu = &cpus[seed as usize / 2 % cpus.len()];
    if std::env::var_os("ANYWARP_DUMP").is_some() {
        eprintln!("{}", codegen::emit_text(&program, &launch.shape(), cpu, codegen::Text::Ir).unwrap());
    }
    let mut gang = 1;
    let in_gangs = Plan::in_gangs(codegen::Choice::Always);
    for plan in [Plan::FULL, Plan::QUICK, in_gangs] {
        let compiled = launch.compile_as(&program, cpu, plan).map_err(|error| fail(error.to_string()))?;
        gang = gang.max(compiled.info.gang);
        if plan == in_gangs && gang == 1 {
            break;
        }
        let mut got = start.clone();
        launch.run(&compiled, &[got.as_mut_ptr() as u64]).map_err(|fault| fail(format!("{fault:?}")))?;
        if let Some(at) = got.iter().zip(&expected).position(|(a, b)| a != b) {
            let thread = (at as u64).saturating_sub(INPUT) / OWN;
            let word = at as u64 % OWN;
            let (got, expected) = (got[at], expected[at]);
            return Err(fail(format!(
                "on {}, {plan:?}, {gang} warps at once, word {word} of thread {thread} is {got:#x}, not {expected:#x}",
                cpu.name()
            )));
        }
    }
    Ok(gang)
}

#[test]
fn random_programs_mean_the_same_as_machine_code() {
    let seeds = match std::env::var("ANYWARP_SEEDS") {
        Ok(range) => {
            let (from, to) = range.split_once("..").expect("a range of seeds");
            from.parse().unwrap()..to.parse().unwrap()
        }
        Err(_) => 0..120,
    };
    let mut failures = Vec::new();
    let mut gangs = HashSet::new();
    for seed in seeds {
        match check(seed) {
            Ok(gang) => drop(gangs.insert(gang)),
            Err(failure) => failures.push(failure),
        }
    }
    if let Some(smallest) = failures.iter().min_by_key(|failure| failure.size) {
        panic!("{} programs differ, the smallest: {}", failures.len(), smallest.message);
    } // Those drawn by default.
    if std::env::var_os("ANYWARP_SEEDS").is_none() {
        let has_avx512 = Cpu::native().unwrap().level() >= Level::Avx512;
        let sizes = if has_avx512 { vec![1, 2, 4, 8] } else { vec![1, 2] };
        assert_eq!(gangs, HashSet::from_iter(sizes), "warps run in gangs of every size");
    }
}
