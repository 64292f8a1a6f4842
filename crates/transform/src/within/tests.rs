//! What is split, and what becomes regular by that.

use simt_ir::{Access, BarrierKind, Convert, FunctionBuilder, IntCmp, Shift, Signature, Space, SpecialReg};

use super::*;
use crate::LaneShape;

/// A thread's number and a limit; what it does with them is an index.
type Bounded = fn(&mut FunctionBuilder, Value, Value) -> Value;

fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
    b.inst(Op::Int(op), &[x, y], Type::I32)
}

fn nearest(b: &mut FunctionBuilder, x: Value, limit: Value) -> Value {
    let zero = b.constant(Type::I32, 0);
    let x = int(b, IntBinary::MaxS, x, zero);
    int(b, IntBinary::MinS, x, limit)
}

fn load(b: &mut FunctionBuilder, base: Value, index: Value) -> Value {
    let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
    let address = b.inst(Op::Int(IntBinary::Add), &[base, wide], Type::I64);
    b.inst(Op::Load(Access::weak(Space::Global, 0)), &[address], Type::I8)
}

/// An address, a limit, and the thread's number.
fn given(b: &mut FunctionBuilder) -> [Value; 3] {
    let zero = b.constant(Type::I64, 0);
    let [base, limit] = [(0, Type::I64), (8, Type::I32)]
        .map(|(at, ty)| b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty));
    [base, limit, b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32)]
}

/// A kernel that loads the byte before it and the one after it, as an index says, and does something in between.
fn kernel(index: Bounded, between: impl Fn(&mut FunctionBuilder)) -> Function {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let [base, limit, tid] = given(&mut b);
    let mut loaded = Vec::new();
    for step in [-1i32, 1] {
        let step = b.constant(Type::I32, u64::from(step as u32));
        let x = int(&mut b, IntBinary::Add, tid, step);
        let x = index(&mut b, x, limit);
        loaded.push(load(&mut b, base, x));
        between(&mut b);
    }
    let sum = b.inst(Op::Int(IntBinary::Add), &loaded, Type::I8);
    let wide = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let to = b.inst(Op::Int(IntBinary::Add), &[base, wide], Type::I64);
    b.effect(Op::Store(Access::weak(Space::Global, 4096)), &[to, sum]);
    b.terminate(Terminator::Exit);
    b.finish()
}

fn shape() -> Shape {
    Shape::of([8, 1, 1], [256, 1, 1])
}

/// Of the loads of bytes, those of consecutive ones and the others, each where control usually goes and where it does not.
fn loads(func: Function) -> [[usize; 2]; 2] {
    let p = crate::prepare(func, true, &shape()).unwrap();
    let mut loads = [[0; 2]; 2];
    for &block in p.cfg.order() {
        for inst in &p.func.block(block).insts {
            let data = p.func.inst(*inst);
            if matches!(data.op, Op::Load(_)) && p.func.ty(data.results[0]) == Type::I8 {
                let is_even = matches!(p.shapes.of(data.args[0]), LaneShape::Affine(_));
                loads[usize::from(p.is_rare(block))][usize::from(!is_even)] += 1;
            }
        }
    }
    loads
}

#[test]
fn what_stays_within_bounds_is_loaded_side_by_side() {
    let other_side: Bounded = |b, x, limit| {
        let zero = b.constant(Type::I32, 0);
        let beyond = b.inst(Op::IntCmp(IntCmp::GtS), &[x, limit], Type::Pred);
        b.inst(Op::Select, &[beyond, zero, x], Type::I32)
    };
    // Those at an edge stay where they are.
    let stays_at: Bounded = |b, x, limit| {
        let (zero, one) = (b.constant(Type::I32, 0), b.constant(Type::I32, 1));
        let at_edge = b.inst(Op::IntCmp(IntCmp::Eq), &[x, limit], Type::Pred);
        let step = b.inst(Op::Select, &[at_edge, zero, one], Type::I32);
        int(b, IntBinary::Add, x, step)
    };
    let stays_from: Bounded = |b, x, limit| {
        let (zero, one) = (b.constant(Type::I32, 0), b.constant(Type::I32, 1));
        let within = b.inst(Op::IntCmp(IntCmp::LtS), &[x, limit], Type::Pred);
        let step = b.inst(Op::Select, &[within, one, zero], Type::I32);
        int(b, IntBinary::Add, x, step)
    };
    let indices: [Bounded; 8] = [
        nearest,
        other_side,
        stays_at,
        stays_from,
        |b, x, limit| int(b, IntBinary::RemS, x, limit),
        |b, x, limit| {
            let beyond = int(b, IntBinary::Add, x, limit);
            int(b, IntBinary::RemS, beyond, limit)
        },
        |b, x, limit| {
            let (two, most) = (b.constant(Type::I32, 2), b.constant(Type::I32, u64::from(-2i32 as u32)));
            let beyond = int(b, IntBinary::Add, limit, x);
            let beyond = int(b, IntBinary::Add, beyond, two);
            let beyond = int(b, IntBinary::Add, most, beyond);
            int(b, IntBinary::RemU, beyond, limit)
        },
        |b, x, limit| int(b, IntBinary::MinU, limit, x),
    ];
    for index in indices {
        let func = kernel(index, |_| ());
        assert_eq!(loads(func.clone()), [[0, 2], [0, 0]]);
        assert_eq!(loads(split(&func, &shape()).expect("it has bounds")), [[2, 0], [0, 2]]);
    }
}

#[test]
fn warps_within_a_row_of_a_power_of_two_load_side_by_side() {
    let indices: [Bounded; 2] = [
        |b, x, _| {
            let mask = b.constant(Type::I32, 1023);
            int(b, IntBinary::And, x, mask)
        },
        |b, x, limit| {
            let ten = b.constant(Type::I32, 10);
            let x = int(b, IntBinary::Add, x, limit);
            let row = b.inst(Op::Shift(Shift::RightS), &[x, ten], Type::I32);
            let start = int(b, IntBinary::Mul, row, limit);
            int(b, IntBinary::Add, start, x)
        },
    ];
    for index in indices {
        let func = kernel(index, |_| ());
        assert_eq!(loads(func.clone()), [[0, 2], [0, 0]]);
        // Rows may be short: the code for warps in two is no rare one.
        assert_eq!(loads(split(&func, &shape()).expect("it has rows")), [[2, 2], [0, 0]]);
    }
}

#[test]
fn other_kernels_are_left_alone() {
    let unbounded = kernel(|_, x, _| x, |_| ());
    assert!(split(&unbounded, &shape()).is_none());
    // Data that is bounded is no index.
    let data: Bounded = |b, x, limit| {
        let least = int(b, IntBinary::MinS, x, limit);
        let zero = b.constant(Type::I64, 0);
        let out = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[out, least]);
        x
    };
    assert!(split(&kernel(data, |_| ()), &shape()).is_none());
    // An index that lanes do not have in a row before it is bounded has none after.
    let squared: Bounded = |b, x, limit| {
        let square = int(b, IntBinary::Mul, x, x);
        int(b, IntBinary::MinU, square, limit)
    };
    assert!(split(&kernel(squared, |_| ()), &shape()).is_none());
    // Lanes that are far from each other have few in a row.
    let far: Bounded = |b, x, _| {
        let (factor, mask) = (b.constant(Type::I32, 40), b.constant(Type::I32, 1023));
        let far = int(b, IntBinary::Mul, x, factor);
        int(b, IntBinary::And, far, mask)
    };
    assert!(split(&kernel(far, |_| ()), &shape()).is_none());
}

#[test]
fn what_lanes_do_together_is_there_once() {
    let count = |func: &Function, is: fn(&Op) -> bool| {
        let insts = func.blocks().flat_map(|block| &func.block(block).insts);
        insts.filter(|inst| is(&func.inst(**inst).op)).count()
    };
    let waiting = |b: &mut FunctionBuilder| {
        let zero = b.constant(Type::I32, 0);
        b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
    };
    let func = split(&kernel(nearest, waiting), &shape()).expect("it has bounds");
    assert_eq!(count(&func, Op::is_barrier), 2);
    assert_eq!(loads(func), [[2, 0], [0, 2]], "on both sides of a barrier");
    let meeting = |b: &mut FunctionBuilder| {
        let all = b.constant(Type::I32, u64::from(u32::MAX));
        b.effect(Op::WarpSync, &[all]);
    };
    let func = split(&kernel(nearest, meeting), &shape()).expect("it has bounds");
    assert_eq!(count(&func, |op| *op == Op::WarpSync), 2);
    assert_eq!(loads(func), [[1, 1], [0, 1]], "as far as the first meeting");
}

#[test]
fn what_was_bounded_before_a_barrier_is_bounded_again() {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let [base, limit, tid] = given(&mut b);
    let less = b.constant(Type::I32, u64::from(u32::MAX));
    let x = int(&mut b, IntBinary::Add, tid, less);
    let x = nearest(&mut b, x, limit);
    let zero = b.constant(Type::I32, 0);
    b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
    let loaded = load(&mut b, base, x);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[base, loaded]);
    b.terminate(Terminator::Exit);
    let func = b.finish();
    assert_eq!(loads(func.clone()), [[0, 1], [0, 0]]);
    assert_eq!(loads(split(&func, &shape()).expect("it has bounds")), [[1, 0], [0, 1]]);
}

#[test]
fn not_much_is_there_twice() {
    let long = |count: u32| {
        kernel(nearest, move |b| {
            let mut value = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
            for _ in 0..count {
                value = int(b, IntBinary::Mul, value, value);
            }
            let zero = b.constant(Type::I64, 0);
            let out = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
            b.effect(Op::Store(Access::weak(Space::Global, 0)), &[out, value]);
        })
    };
    assert!(split(&long(8), &shape()).is_some());
    assert!(split(&long(256), &shape()).is_none());
}

/// A kernel that counts up in a loop as often as each thread's number says, or as all threads are told, and then loads in another.
fn two_loops(own_count: bool) -> Function {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let [base, limit, tid] = given(&mut b);
    let count = if own_count { int(&mut b, IntBinary::DivU, tid, limit) } else { limit };
    let (before, first, second, end) = (b.block(), b.block(), b.block(), b.block());
    let (x, left) = (b.var(Type::I32), b.var(Type::I32));
    b.write(x, tid);
    b.write(left, count);
    let none = b.constant(Type::I32, 0);
    let (step, less) = (b.constant(Type::I32, 64), b.constant(Type::I32, u64::from(u32::MAX)));
    let branch = |b: &mut FunctionBuilder, cmp, [one, other]: [Value; 2], then, otherwise| {
        let cond = b.inst(Op::IntCmp(cmp), &[one, other], Type::Pred);
        let (then, otherwise) = (Target::new(then), Target::new(otherwise));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    };
    branch(&mut b, IntCmp::Ne, [count, none], before, second);
    b.switch_to(before);
    b.terminate(Terminator::Jump(Target::new(first)));
    b.switch_to(first);
    let (old, rest) = (b.read(x), b.read(left));
    let (new, rest) = (int(&mut b, IntBinary::Add, old, step), int(&mut b, IntBinary::Add, rest, less));
    b.write(x, new);
    b.write(left, rest);
    branch(&mut b, IntCmp::Ne, [rest, none], first, second);
    b.switch_to(second);
    let index = b.read(x);
    let loaded = load(&mut b, base, index);
    let wide = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let place = b.inst(Op::Int(IntBinary::Add), &[base, wide], Type::I64);
    b.effect(Op::Store(Access::weak(Space::Global, 4096)), &[place, loaded]);
    let new = int(&mut b, IntBinary::Add, index, step);
    b.write(x, new);
    branch(&mut b, IntCmp::LtS, [new, limit], second, end);
    b.switch_to(end);
    b.terminate(Terminator::Exit);
    b.finish()
}

#[test]
fn lanes_that_leave_a_loop_together_are_still_side_by_side() {
    let func = two_loops(true);
    assert_eq!(loads(func.clone()), [[0, 1], [0, 0]]);
    // Not all warps need leave it together: the code for others is no rare one.
    assert_eq!(loads(split(&func, &shape()).expect("lanes may part")), [[1, 1], [0, 0]]);
    assert!(split(&two_loops(false), &shape()).is_none(), "all lanes take as many iterations");
}

#[test]
fn lanes_with_as_many_iterations_leave_a_loop_together() {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let [base, limit, tid] = given(&mut b);
    let count = int(&mut b, IntBinary::DivU, tid, limit);
    let (body, end) = (b.block(), b.block());
    let (x, left) = (b.var(Type::I32), b.var(Type::I32));
    b.write(x, tid);
    b.write(left, count);
    b.terminate(Terminator::Jump(Target::new(body)));
    b.switch_to(body);
    let (old, rest) = (b.read(x), b.read(left));
    let loaded = load(&mut b, base, old);
    b.effect(Op::Store(Access::weak(Space::Global, 4096)), &[base, loaded]);
    let (step, less) = (b.constant(Type::I32, 64), b.constant(Type::I32, u64::from(u32::MAX)));
    let (new, rest) = (int(&mut b, IntBinary::Add, old, step), int(&mut b, IntBinary::Add, rest, less));
    b.write(x, new);
    b.write(left, rest);
    let none = b.constant(Type::I32, 0);
    let cond = b.inst(Op::IntCmp(IntCmp::Ne), &[rest, none], Type::Pred);
    let (then, otherwise) = (Target::new(body), Target::new(end));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    b.switch_to(end);
    b.terminate(Terminator::Exit);
    let func = b.finish();
    let divergent = |func: Function| {
        let p = crate::prepare(func, true, &shape()).unwrap();
        p.shapes.divergent_loops().to_vec()
    };
    assert_eq!(divergent(func.clone()), [true]);
    let mut found = divergent(split(&func, &shape()).expect("lanes may part"));
    found.sort_unstable();
    assert_eq!(found, [false, true]);
}
