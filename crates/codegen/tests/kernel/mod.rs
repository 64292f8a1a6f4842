//! Kernels for tests, built one operation after another.

#![allow(dead_code, reason = "each test uses some of it")]

use simt_ir::*;

/// A kernel that is being built.
pub struct Kernel {
    pub b: FunctionBuilder,
}

impl Kernel {
    /// The program of this kernel alone.
    pub fn program(self, param_bytes: u32, shared_bytes: u32) -> Program {
        let functions = vec![self.b.finish()];
        let program =
            Program { functions, param_bytes, shared_bytes, shared_align: 16, ..Program::default() };
        verify(&program).expect("the kernel is well formed");
        program
    }

    pub fn param(&mut self, offset: i64, ty: Type) -> Value {
        let zero = self.b.constant(Type::I64, 0);
        self.b.inst(Op::Load(Access::weak(Space::Param, offset)), &[zero], ty)
    }

    pub fn reg(&mut self, reg: SpecialReg) -> Value {
        self.b.inst(Op::SpecialReg(reg), &[], Type::I32)
    }

    pub fn int(&mut self, op: IntBinary, a: Value, b: Value) -> Value {
        let ty = self.b.func().ty(a);
        self.b.inst(Op::Int(op), &[a, b], ty)
    }

    pub fn i32(&mut self, value: u32) -> Value {
        self.b.constant(Type::I32, value.into())
    }

    /// Address of the 32-bit element `row * width + column`.
    pub fn element(&mut self, base: Value, row: Value, width: Value, column: Value) -> Value {
        let index = self.int(IntBinary::Mul, row, width);
        let index = self.int(IntBinary::Add, index, column);
        let index = self.b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
        let four = self.b.constant(Type::I64, 4);
        let bytes = self.int(IntBinary::Mul, index, four);
        self.int(IntBinary::Add, base, bytes)
    }
    /// So many sums of products in a loop: of a value with what `other` gives, then of each sum with it.
    pub fn sums(
        &mut self,
        count: u32,
        value: Value,
        step: u32,
        end: u32,
        mut other: impl FnMut(&mut Kernel, Value) -> Value,
    ) -> Vec<Var> {
        let totals: Vec<_> = (0..count).map(|_| self.b.var(Type::F32)).collect();
        let (at, nothing, first) = (self.b.var(Type::I32), self.b.constant(Type::F32, 0), self.i32(0));
        totals.iter().for_each(|total| self.b.write(*total, nothing));
        self.b.write(at, first);
        let (body, done) = (self.b.block(), self.b.block());
        self.b.terminate(Terminator::Jump(Target::new(body)));
        self.b.switch_to(body);
        let from = self.b.read(at);
        let other = other(self, from);
        let mut left = value;
        for total in &totals {
            let so_far = self.b.read(*total);
            let sum = self.b.inst(Op::Fma(FloatMode::default()), &[left, other, so_far], Type::F32);
            self.b.write(*total, sum);
            left = sum;
        }
        let (step, end) = (self.i32(step), self.i32(end));
        let next = self.int(IntBinary::Add, from, step);
        self.b.write(at, next);
        let cond = self.b.inst(Op::IntCmp(IntCmp::LtU), &[next, end], Type::Pred);
        let (then, otherwise) = (Target::new(body), Target::new(done));
        self.b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        self.b.switch_to(done);
        totals
    }

    pub fn barrier(&mut self) {
        let zero = self.i32(0);
        self.b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
    }

    /// Where the condition holds, `body` happens.
    pub fn when(&mut self, cond: Value, body: impl FnOnce(&mut Self)) {
        let (then, after) = (self.b.block(), self.b.block());
        let (taken, otherwise) = (Target::new(then), Target::new(after));
        self.b.terminate(Terminator::Branch { cond, then: taken, otherwise, uniform: false });
        self.b.switch_to(then);
        body(self);
        self.b.terminate(Terminator::Jump(Target::new(after)));
        self.b.switch_to(after);
    }

    /// Where the condition holds, a trap ends the kernel.
    pub fn trap_when(&mut self, cond: Value) {
        let (then, after) = (self.b.block(), self.b.block());
        let (taken, otherwise) = (Target::new(then), Target::new(after));
        self.b.terminate(Terminator::Branch { cond, then: taken, otherwise, uniform: false });
        self.b.switch_to(then);
        self.b.terminate(Terminator::Trap);
        self.b.switch_to(after);
    }

    /// Whether this is the thread at (x, y).
    pub fn is_thread(&mut self, x: u32, y: u32) -> Value {
        let place = [x, y].map(|at| self.i32(at));
        let tid = [0, 1].map(|axis| self.reg(SpecialReg::Tid(axis)));
        let same = [0, 1].map(|at| self.b.inst(Op::IntCmp(IntCmp::Eq), &[tid[at], place[at]], Type::Pred));
        self.b.inst(Op::Int(IntBinary::And), &same, Type::Pred)
    }
}
