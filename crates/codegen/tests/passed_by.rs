//! Numbers that loops carry past barriers, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::Cpu;
use launch::Launch;
use simt_ir::*;

/// What an iteration does with its numbers `a` and `b`, the first of which begins with 0, and its neighbour's `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// `a = a * x + b`, and `b` stays.
    Sum,
    /// `a, b = b, a * x + b`.
    Exchange,
    /// `a = a * x + b`, and then `b` is the old `a`.
    KeepOld,
    /// Lanes below 16 do as for a sum.
    SomeLanes,
    /// What is added is made of `a` in a loop of its own.
    InnerLoop,
    /// `a` is what `b` becomes as well.
    Both,
}

const STEPS: [Step; 6] =
    [Step::Sum, Step::Exchange, Step::KeepOld, Step::SomeLanes, Step::InnerLoop, Step::Both];
const THREADS: u32 = 64;

struct Kernel(FunctionBuilder);

impl Kernel {
    fn int(&mut self, op: IntBinary, a: Value, b: u64) -> Value {
        let ty = self.0.func().ty(a);
        let b = self.0.constant(ty, b);
        self.0.inst(Op::Int(op), &[a, b], ty)
    }

    fn sum(&mut self, a: Value, x: Value, b: Value) -> Value {
        self.0.inst(Op::Fma(FloatMode::default()), &[a, x, b], Type::F32)
    }

    fn barrier(&mut self) {
        let zero = self.0.constant(Type::I32, 0);
        self.0.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
    }

    /// Does something while `counter`, from 0, is below `end`.
    fn while_below(&mut self, counter: Var, end: u64, body: impl FnOnce(&mut Self)) {
        let (head, after) = (self.0.block(), self.0.block());
        let zero = self.0.constant(Type::I32, 0);
        self.0.write(counter, zero);
        self.0.terminate(Terminator::Jump(Target::new(head)));
        self.0.switch_to(head);
        body(self);
        let now = self.0.read(counter);
        let next = self.int(IntBinary::Add, now, 1);
        self.0.write(counter, next);
        let end = self.0.constant(Type::I32, end);
        let cond = self.0.inst(Op::IntCmp(IntCmp::LtU), &[next, end], Type::Pred);
        let (then, otherwise) = (Target::new(head), Target::new(after));
        self.0.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        self.0.switch_to(after);
    }
}

/// A loop with two barriers, between which a step is done: before them a thread leaves its number to its neighbour.
fn kernel(step: Step) -> Program {
    let mut k = Kernel(FunctionBuilder::new("kernel", Signature::default()));
    let zero = k.0.constant(Type::I64, 0);
    let data = k.0.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
    let tid = k.0.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let wide = k.0.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let bytes = k.int(IntBinary::Mul, wide, 4);
    let own = k.0.inst(Op::Int(IntBinary::Add), &[data, bytes], Type::I64);
    let at = |row: i64| Access::weak(Space::Global, row * i64::from(THREADS) * 4);
    let neighbours = Access { offset: at(3).offset + 4, ..at(3) };
    let x = k.0.inst(Op::Load(at(0)), &[own], Type::F32);
    let [a, b] = [k.0.var(Type::F32), k.0.var(Type::F32)];
    let (nothing, value) = (k.0.constant(Type::F32, 0), k.0.inst(Op::Load(at(1)), &[own], Type::F32));
    k.0.write(a, nothing);
    k.0.write(b, value);
    let [outer, inner] = [k.0.var(Type::I32), k.0.var(Type::I32)];
    k.while_below(outer, 3, |k| {
        k.0.effect(Op::Store(at(3)), &[own, x]);
        k.barrier();
        let x = k.0.inst(Op::Load(neighbours), &[own], Type::F32);
        let (old, other) = (k.0.read(a), k.0.read(b));
        match step {
            Step::Sum => {
                let sum = k.sum(old, x, other);
                k.0.write(a, sum);
            }
            Step::Exchange => {
                let sum = k.sum(old, x, other);
                k.0.write(a, other);
                k.0.write(b, sum);
            }
            Step::KeepOld => {
                let sum = k.sum(old, x, other);
                k.0.write(a, sum);
                k.0.write(b, old);
            }
            Step::SomeLanes => {
                let sixteen = k.0.constant(Type::I32, 16);
                let cond = k.0.inst(Op::IntCmp(IntCmp::LtU), &[tid, sixteen], Type::Pred);
                let (then, after) = (k.0.block(), k.0.block());
                let (taken, otherwise) = (Target::new(then), Target::new(after));
                k.0.terminate(Terminator::Branch { cond, then: taken, otherwise, uniform: false });
                k.0.switch_to(then);
                let sum = k.sum(old, x, other);
                k.0.write(a, sum);
                k.0.terminate(Terminator::Jump(Target::new(after)));
                k.0.switch_to(after);
            }
            Step::InnerLoop => k.while_below(inner, 3, |k| {
                let old = k.0.read(a);
                let sum = k.sum(old, x, other);
                k.0.write(a, sum);
            }),
            Step::Both => {
                let sum = k.sum(old, x, other);
                k.0.write(a, sum);
                k.0.write(b, sum);
            }
        }
        k.barrier();
    });
    for (row, var) in [(5, a), (6, b)] {
        let value = k.0.read(var);
        k.0.effect(Op::Store(at(row)), &[own, value]);
    }
    k.0.terminate(Terminator::Exit);
    let program = Program { functions: vec![k.0.finish()], param_bytes: 8, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

#[test]
fn what_loops_carry_past_barriers_is_what_the_interpreter_has() {
    for step in STEPS {
        let float = |i: u32| u64::from((((i % 23) as f32 - 7.0) / 16.0).to_bits());
        let words: Vec<u64> = (0..THREADS * 7 / 2).map(|i| float(2 * i) | float(2 * i + 1) << 32).collect();
        LAUNCH.must_agree(&kernel(step), &words, |words| [words.as_mut_ptr() as u64], format!("{step:?}"));
    }
}

#[test]
fn a_sum_is_stored_where_it_is_made_and_loaded_where_it_is_used() {
    let cpu = Cpu::level_cpu(codegen::target::Level::Avx2);
    let text = codegen::emit_text(&kernel(Step::Sum), &LAUNCH.shape(), &cpu, Text::OptimizedIr).unwrap();
    let is_state = |line: &&str| line.contains("<32 x float>") && line.ends_with("align 64");
    let accesses = || text.lines().filter(is_state);
    let stores = accesses().filter(|line| line.trim_start().starts_with("store")).count();
    // Before the loop `x`, `b` and a zero; in it the sum.
    assert_eq!(stores, 4, "{text}");
    // For the sum two, for the next iteration `x`, and at the end the results.
    assert_eq!(accesses().count() - stores, 5, "{text}");
}
