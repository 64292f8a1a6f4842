//! Stores that pass by the caches: of many whole lines that nothing reads before.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use kernel_abi::Shape;
use launch::Launch;
use simt_ir::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum To {
    /// Memory of its own,
    Other,
    /// where threads store as `st.relaxed`,
    InOrder,
    /// or count what they store,
    Counted,
    /// or that it is read from.
    Same,
}

/// `out[i] = 3 × in[i]`, by a thread for each `i` below a limit.
fn kernel(to: To) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let (data, out) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I64));
    let limit = param(&mut b, 16, Type::I32);
    let [tid, ntid, ctaid] = [SpecialReg::Tid(0), SpecialReg::Ntid(0), SpecialReg::CtaId(0)]
        .map(|reg| b.inst(Op::SpecialReg(reg), &[], Type::I32));
    let before = b.inst(Op::Int(IntBinary::Mul), &[ctaid, ntid], Type::I32);
    let index = b.inst(Op::Int(IntBinary::Add), &[before, tid], Type::I32);
    let (body, after) = (b.block(), b.block());
    let cond = b.inst(Op::IntCmp(IntCmp::LtS), &[index, limit], Type::Pred);
    let (then, otherwise) = (Target::new(body), Target::new(after));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    b.switch_to(body);
    let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
    let four = b.constant(Type::I64, 4);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[wide, four], Type::I64);
    let from = b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64);
    let global = Access::weak(Space::Global, 0);
    let loaded = b.inst(Op::Load(global), &[from], Type::I32);
    let three = b.constant(Type::I32, 3);
    let result = b.inst(Op::Int(IntBinary::Mul), &[loaded, three], Type::I32);
    let place = match to {
        To::Same => from,
        _ => b.inst(Op::Int(IntBinary::Add), &[out, distance], Type::I64),
    };
    let order = if to == To::InOrder { Order::Relaxed } else { Order::Weak };
    b.effect(Op::Store(Access { order, ..global }), &[place, result]);
    if to == To::Counted {
        b.effect(Op::Atomic(AtomicOp::Add, Access::weak(Space::Global, -4)), &[out, three]);
    }
    b.terminate(Terminator::Jump(Target::new(after)));
    b.switch_to(after);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 20, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn many_lines_are_all_written() {
    const COUNT: u32 = 8 << 20;
    let program = kernel(To::Other);
    let words: Vec<u32> = (0..COUNT).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
    for cpu in launch::cpus() {
        // Where lines begin and where not; all lanes of all warps, and not; each line once, and by two rows of the grid.
        for (distance, limit, rows) in
            [(0, COUNT, 1), (0, COUNT - 45, 1), (4, COUNT, 1), (0, COUNT / 2, 2), (4, COUNT / 2 - 45, 2)]
        {
            let launch = Launch { grid: [COUNT / 256 / rows, rows, 1], block: [256, 1, 1] };
            let compiled = launch.compile(&program, &cpu).unwrap();
            let mut out = vec![0_u32; COUNT as usize + 64];
            let start = (out.as_mut_ptr() as u64).next_multiple_of(64) + distance;
            let first = ((start - out.as_ptr() as u64) / 4) as usize;
            launch.run(&compiled, &[words.as_ptr() as u64, start, limit.into()]).unwrap();
            let (before, rest) = out.split_at(first);
            let (done, behind) = rest.split_at(limit as usize);
            let right = done.iter().zip(&words).all(|(got, word)| *got == word.wrapping_mul(3));
            let untouched = before.iter().chain(behind).all(|word| *word == 0);
            assert!(right && untouched, "{distance}, {limit}, {rows} on {}", cpu.name());
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn only_what_is_not_read_passes_by() {
    let shape = Shape::of([8, 1, 1], [256, 1, 1]);
    for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
        for to in [To::Other, To::InOrder, To::Counted, To::Same] {
            let cpu = Cpu::level_cpu(level);
            let text = codegen::emit_text(&kernel(to), &shape, &cpu, Text::Assembly).unwrap();
            assert_eq!(text.contains("movnt"), to == To::Other, "{to:?}: {text}");
            assert!(!text.contains("movnt") || text.contains("sfence"), "{to:?}: {text}");
        }
    }
}
