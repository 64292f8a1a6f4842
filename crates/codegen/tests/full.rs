//! Code for all lanes beside code for some, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

const THREADS: u32 = 64;

/// A thread whose number of this type, `tid + base`, compares so with `limit` adds what it loads, again and again `step` further, as long as it compares so, and
/// stores the sum. No number of turns is above eight.
fn kernel(cmp: IntCmp, ty: Type, stays: bool) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let (data, out) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I64));
    let [base, limit, step] = [16, 24, 32].map(|at| param(&mut b, at, ty));
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let own = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let four = b.constant(Type::I64, 4);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[own, four], Type::I64);
    let from = b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64);
    let place = b.inst(Op::Int(IntBinary::Add), &[out, distance], Type::I64);
    let first = if ty == Type::I64 { own } else { tid };
    let first = b.inst(Op::Int(IntBinary::Add), &[first, base], ty);
    let (number, sum, turns) = (b.var(ty), b.var(Type::I32), b.var(Type::I32));
    let none = b.constant(Type::I32, 0);
    b.write(number, first);
    b.write(sum, none);
    b.write(turns, none);
    let (body, after) = (b.block(), b.block());
    let branch = |b: &mut FunctionBuilder, cond: Value| {
        let (then, otherwise) = match stays {
            true => (Target::new(body), Target::new(after)),
            false => (Target::new(after), Target::new(body)),
        };
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    };
    let cond = b.inst(Op::IntCmp(cmp), &[first, limit], Type::Pred);
    branch(&mut b, cond);
    b.switch_to(body);
    let loaded = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[from], Type::I32);
    let (old, count) = (b.read(sum), b.read(turns));
    let new = b.inst(Op::Int(IntBinary::Add), &[old, loaded], Type::I32);
    b.write(sum, new);
    let one = b.constant(Type::I32, 1);
    let count = b.inst(Op::Int(IntBinary::Add), &[count, one], Type::I32);
    b.write(turns, count);
    let now = b.read(number);
    let next = b.inst(Op::Int(IntBinary::Add), &[now, step], ty);
    b.write(number, next);
    let most = b.constant(Type::I32, 8);
    let few = b.inst(Op::IntCmp(IntCmp::LtU), &[count, most], Type::Pred);
    let many = b.inst(Op::IntUnary(IntUnary::Not), &[few], Type::Pred);
    let cond = b.inst(Op::IntCmp(cmp), &[next, limit], Type::Pred);
    let cond = match stays {
        true => b.inst(Op::Int(IntBinary::And), &[cond, few], Type::Pred),
        false => b.inst(Op::Int(IntBinary::Or), &[cond, many], Type::Pred),
    };
    branch(&mut b, cond);
    b.switch_to(after);
    let sum = b.read(sum);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, sum]);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 40, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn lanes_that_go_together_go_where_each_would() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };
    let comparisons = [
        IntCmp::LtS,
        IntCmp::LeS,
        IntCmp::GtS,
        IntCmp::GeS,
        IntCmp::LtU,
        IntCmp::LeU,
        IntCmp::GtU,
        IntCmp::GeU,
    ];
    for (cmp, stays) in comparisons.into_iter().flat_map(|cmp| [(cmp, true), (cmp, false)]) {
        for (ty, low, high) in
            [(Type::I32, i32::MIN.into(), i32::MAX.into()), (Type::I64, i64::MIN, i64::MAX)]
        {
            let program = kernel(cmp, ty, stays);
            let compiled: Vec<_> = launch::cpus()
                .into_iter()
                .map(|cpu| (launch.compile(&program, &cpu).unwrap(), cpu))
                .collect();
            for base in [0, 1, -1, -31, -64, 1000, low, high, high - 31, high - 70] {
                for limit in [0, 31, 64, 200, -5, low, low + 20, high, high - 40] {
                    for step in [64, -64, 3] {
                        let data: Vec<u32> = (0..THREADS).map(|at| at.wrapping_mul(0x9abc_def1)).collect();
                        let stored = |run: &dyn Fn(&[u64])| {
                            let mut sums = [0_u32; THREADS as usize];
                            let (from, to) = (data.as_ptr() as u64, sums.as_mut_ptr() as u64);
                            run(&[from, to, base as u64, limit as u64, step as u64]);
                            sums
                        };
                        let expected = stored(&|params| launch.interpret(&program, params).unwrap());
                        for (compiled, cpu) in &compiled {
                            let got = stored(&|params| launch.run(compiled, params).unwrap());
                            let how = format!("{cmp:?} of {ty:?}, {stays}, {}", cpu.name());
                            assert_eq!(got, expected, "{how}: {base} and {limit}, by {step}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn in_a_loop_all_lanes_have_code_of_their_own() {
    for level in [Level::Avx2, Level::Avx512] {
        let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
        let cpu = Cpu::level_cpu(level);
        let text = codegen::emit_text(&kernel(IntCmp::LtS, Type::I32, true), &shape, &cpu, Text::OptimizedIr)
            .unwrap();
        assert!(text.contains("= load <32 x i32>"), "{level:?}, all lanes: {text}");
        assert!(text.contains("@llvm.masked.load.v32i32"), "{level:?}, some lanes");
    }
}

#[test]
fn that_all_lanes_stay_is_told_by_two_numbers() {
    let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
    let cpu = Cpu::level_cpu(Level::Avx512);
    let program = kernel(IntCmp::LtU, Type::I64, true);
    let text = codegen::emit_text(&program, &shape, &cpu, Text::OptimizedIr).unwrap();
    // No lane's number wraps.
    assert!(text.contains("icmp ule i64"), "{text}");
}
