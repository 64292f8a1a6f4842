//! What lanes have where they meet again, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

struct Kernel(FunctionBuilder);

impl Kernel {
    fn new() -> Kernel {
        Kernel(FunctionBuilder::new("kernel", Signature::default()))
    }

    fn int(&mut self, op: IntBinary, a: Value, b: u64) -> Value {
        let ty = self.0.func().ty(a);
        let b = self.0.constant(ty, b);
        self.0.inst(Op::Int(op), &[a, b], ty)
    }

    /// The thread's number, and the address of its word in the first row of the data.
    fn own(&mut self) -> (Value, Value) {
        let zero = self.0.constant(Type::I64, 0);
        let data = self.0.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        let tid = self.0.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let wide = self.0.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
        let bytes = self.int(IntBinary::Mul, wide, 4);
        (tid, self.0.inst(Op::Int(IntBinary::Add), &[data, bytes], Type::I64))
    }

    fn load(&mut self, address: Value, row: u32, ty: Type) -> Value {
        self.0.inst(Op::Load(at(row)), &[address], ty)
    }

    fn barrier(&mut self) {
        let zero = self.0.constant(Type::I32, 0);
        self.0.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
    }

    /// Does something once, and again while `counter`, from 0, is below `end`.
    fn while_below(&mut self, counter: Var, end: Value, body: impl FnOnce(&mut Self, Value)) {
        let (head, after) = (self.0.block(), self.0.block());
        let zero = self.0.constant(Type::I32, 0);
        self.0.write(counter, zero);
        self.0.terminate(Terminator::Jump(Target::new(head)));
        self.0.switch_to(head);
        let now = self.0.read(counter);
        body(self, now);
        let now = self.0.read(counter);
        let next = self.int(IntBinary::Add, now, 1);
        self.0.write(counter, next);
        let cond = self.0.inst(Op::IntCmp(IntCmp::LtU), &[next, end], Type::Pred);
        let (then, otherwise) = (Target::new(head), Target::new(after));
        self.0.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        self.0.switch_to(after);
    }

    /// Does something where a predicate holds.
    fn only_if(&mut self, cond: Value, body: impl FnOnce(&mut Self)) {
        let (then, after) = (self.0.block(), self.0.block());
        let (taken, otherwise) = (Target::new(then), Target::new(after));
        self.0.terminate(Terminator::Branch { cond, then: taken, otherwise, uniform: false });
        self.0.switch_to(then);
        body(self);
        self.0.terminate(Terminator::Jump(Target::new(after)));
        self.0.switch_to(after);
    }

    fn finish(mut self) -> Program {
        self.0.terminate(Terminator::Exit);
        let program = Program { functions: vec![self.0.finish()], param_bytes: 8, ..Program::default() };
        verify(&program).expect("the kernel is well formed");
        program
    }
}

fn at(row: u32) -> Access {
    Access::weak(Space::Global, i64::from(row * THREADS * 4))
}

/// How a lane changes its number, if at all.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// By an operation, the other operand of which may be zero.
    By(IntBinary),
    /// Its number is that operand, which may be zero: the operation is the other way round.
    Of(IntBinary),
    /// It takes another or keeps it.
    Choice,
    /// It takes another or zero.
    Either,
}

const CHANGES: [Change; 9] = [
    Change::By(IntBinary::Or),
    Change::By(IntBinary::Xor),
    Change::By(IntBinary::Add),
    Change::By(IntBinary::Sub),
    Change::By(IntBinary::And),
    Change::Of(IntBinary::Sub),
    Change::Of(IntBinary::Add),
    Change::Choice,
    Change::Either,
];

/// Lanes whose number is not below that of the turn change another number, some of them. So do few others afterwards.
fn changed(change: Change) -> Program {
    let mut k = Kernel::new();
    let (tid, own) = k.own();
    let limit = k.load(own, 0, Type::I32);
    let value = k.0.var(Type::I32);
    let first = k.load(own, 1, Type::I32);
    k.0.write(value, first);
    let (turn, turns) = (k.0.var(Type::I32), k.0.constant(Type::I32, 40));
    k.while_below(turn, turns, |k, now| {
        let cond = k.0.inst(Op::IntCmp(IntCmp::GeU), &[tid, now], Type::Pred);
        k.only_if(cond, |k| {
            let product = k.int(IntBinary::Mul, now, 0x9e37_79b9);
            let sum = k.0.inst(Op::Int(IntBinary::Add), &[product, tid], Type::I32);
            let other = k.int(IntBinary::Mul, sum, 0x85eb_ca6b);
            let is_less = k.0.inst(Op::IntCmp(IntCmp::LtU), &[other, limit], Type::Pred);
            let (old, zero) = (k.0.read(value), k.0.constant(Type::I32, 0));
            let keep = if matches!(change, Change::Choice) { old } else { zero };
            let chosen = k.0.inst(Op::Select, &[is_less, other, keep], Type::I32);
            let new = match change {
                Change::By(op) => k.0.inst(Op::Int(op), &[old, chosen], Type::I32),
                Change::Of(op) => k.0.inst(Op::Int(op), &[chosen, old], Type::I32),
                Change::Choice | Change::Either => chosen,
            };
            k.0.write(value, new);
        });
    });
    let value = k.0.read(value);
    k.0.effect(Op::Store(at(2)), &[own, value]);
    k.finish()
}

/// Between two barriers lanes add up as many as they want, again and again; each time the sum begins with nothing.
fn summed() -> Program {
    let mut k = Kernel::new();
    let (_, own) = k.own();
    let wanted = k.load(own, 0, Type::I32);
    let wanted = k.int(IntBinary::And, wanted, 7);
    let x = k.load(own, 1, Type::F32);
    let [outer, inner] = [k.0.var(Type::I32), k.0.var(Type::I32)];
    let (sum, turns) = (k.0.var(Type::F32), k.0.constant(Type::I32, 3));
    k.while_below(outer, turns, |k, _| {
        k.barrier();
        let nothing = k.0.constant(Type::F32, 0);
        k.0.write(sum, nothing);
        k.while_below(inner, wanted, |k, _| {
            let old = k.0.read(sum);
            let new = k.0.inst(Op::Fma(FloatMode::default()), &[old, x, x], Type::F32);
            k.0.write(sum, new);
        });
        let value = k.0.read(sum);
        k.0.effect(Op::Store(at(2)), &[own, value]);
    });
    k.finish()
}

#[test]
fn lanes_that_meet_have_what_each_had() {
    let words = || (0..u64::from(THREADS) * 3 / 2).map(|i| (i * 2 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93));
    for change in CHANGES {
        let words: Vec<u64> = words().collect();
        LAUNCH.must_agree(
            &changed(change),
            &words,
            |words| [words.as_mut_ptr() as u64],
            format!("{change:?}"),
        );
    }
    // Floats that are numbers.
    let words: Vec<u64> = words().map(|word| word & 0x3fff_ffff_3fff_ffff).collect();
    LAUNCH.must_agree(&summed(), &words, |words| [words.as_mut_ptr() as u64], "sums");
}

#[test]
fn lanes_that_change_a_number_or_not_choose_once() {
    let choices = |change| {
        let cpu = Cpu::level_cpu(Level::Avx512);
        let text = codegen::emit_text(&changed(change), &LAUNCH.shape(), &cpu, Text::OptimizedIr).unwrap();
        (text.matches("= select <32 x i1>").count(), text)
    };
    for change in CHANGES {
        let (count, text) = choices(change);
        // Where zero is a number like others, those who choose it and those who are elsewhere are not the same.
        let expected = match change {
            Change::By(IntBinary::And) | Change::Of(IntBinary::Sub) | Change::Either => 2,
            _ => 1,
        };
        assert_eq!(count, expected, "{change:?}: {text}");
    }
}

#[test]
fn what_lanes_had_after_a_loop_is_not_kept_for_the_next_time() {
    let cpu = Cpu::level_cpu(Level::Avx2);
    let text = codegen::emit_text(&summed(), &LAUNCH.shape(), &cpu, Text::OptimizedIr).unwrap();
    let stores =
        text.lines().filter(|line| line.contains("store <32 x float>") && line.ends_with("align 64"));
    // `x` alone is needed after the barrier.
    assert_eq!(stores.count(), 1, "{text}");
}
