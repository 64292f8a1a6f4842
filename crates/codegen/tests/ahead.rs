//! Loops over rows: all lanes come to them and leave them together, and what their accesses would test is tested ahead. Against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use kernel_abi::{AlignedParam, Shape};
use launch::Launch;
use simt_ir::*;

const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// Each thread adds elements of this type of a row, every 64th from its own, up to a limit, and stores the sum. The row begins at an index.
fn kernel(ty: Type) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let (data, out) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I64));
    let (start, limit) = (param(&mut b, 16, Type::I32), param(&mut b, 20, Type::I32));
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let own = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let four = b.constant(Type::I64, 4);
    let own = b.inst(Op::Int(IntBinary::Mul), &[own, four], Type::I64);
    let place = b.inst(Op::Int(IntBinary::Add), &[out, own], Type::I64);
    let (number, index, sum) = (b.var(Type::I32), b.var(Type::I32), b.var(Type::I32));
    let none = b.constant(Type::I32, 0);
    b.write(sum, none);
    let (before, body, after) = (b.block(), b.block(), b.block());
    let some = b.inst(Op::IntCmp(IntCmp::LtS), &[tid, limit], Type::Pred);
    let (then, otherwise) = (Target::new(before), Target::new(after));
    b.terminate(Terminator::Branch { cond: some, then, otherwise, uniform: false });
    b.switch_to(before);
    // Between the branch and the loop there is something that all lanes know.
    let step = b.inst(Op::SpecialReg(SpecialReg::Ntid(0)), &[], Type::I32);
    let first = b.inst(Op::Int(IntBinary::Add), &[tid, start], Type::I32);
    b.write(number, tid);
    b.write(index, first);
    b.terminate(Terminator::Jump(Target::new(body)));
    b.switch_to(body);
    let at = b.read(index);
    let wide = b.inst(Op::Convert(Convert::SExt), &[at], Type::I64);
    let size = b.constant(Type::I64, u64::from(ty.bits() / 8));
    let distance = b.inst(Op::Int(IntBinary::Mul), &[wide, size], Type::I64);
    let from = b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64);
    let mut element = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[from], ty);
    if ty != Type::I32 {
        element = b.inst(Op::Convert(Convert::ZExt), &[element], Type::I32);
    }
    let old = b.read(sum);
    let new = b.inst(Op::Int(IntBinary::Add), &[old, element], Type::I32);
    b.write(sum, new);
    let next = b.inst(Op::Int(IntBinary::Add), &[at, step], Type::I32);
    b.write(index, next);
    let now = b.read(number);
    let now = b.inst(Op::Int(IntBinary::Add), &[now, step], Type::I32);
    b.write(number, now);
    let more = b.inst(Op::IntCmp(IntCmp::LtS), &[now, limit], Type::Pred);
    let (then, otherwise) = (Target::new(body), Target::new(after));
    b.terminate(Terminator::Branch { cond: more, then, otherwise, uniform: false });
    b.switch_to(after);
    let sum = b.read(sum);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, sum]);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 24, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

fn params(data: u64, out: &mut [u32], start: i32, limit: i32) -> [u64; 3] {
    [data, out.as_mut_ptr() as u64, u64::from(start as u32) | u64::from(limit as u32) << 32]
}

#[test]
fn rows_of_any_length_are_summed() {
    let program = kernel(Type::I32);
    let row: Vec<u32> = (0..1000_u32).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
    for cpu in launch::cpus() {
        let compiled = LAUNCH.compile(&program, &cpu).unwrap();
        for limit in [-1, 0, 1, 31, 32, 63, 64, 65, 100, 127, 128, 192, 300, 640, 1000] {
            let (mut expected, mut got) = ([7; THREADS as usize], [9; THREADS as usize]);
            let data = row.as_ptr() as u64;
            LAUNCH.interpret(&program, &params(data, &mut expected, 0, limit)).unwrap();
            LAUNCH.run(&compiled, &params(data, &mut got, 0, limit)).unwrap();
            assert_eq!(got, expected, "up to {limit}, {}", cpu.name());
        }
    }
}

/// All lanes are in the loop, and the index of some is the greatest number's next.
#[test]
fn an_index_that_wraps_while_all_lanes_are_there_is_followed() {
    let program = kernel(Type::I8);
    // A byte for each index; the pages between take no memory.
    let mut bytes = vec![0_u8; 1 << 32];
    for near in 0..1 << 12 {
        let last = bytes.len() - 1 - near;
        (bytes[near], bytes[last]) = ((near * 7) as u8, (near * 13 + 1) as u8);
    }
    let data = (bytes.as_ptr() as u64).wrapping_add(1 << 31);
    for cpu in launch::cpus() {
        let compiled = LAUNCH.compile(&program, &cpu).unwrap();
        for start in [i32::MAX, i32::MAX - 10, i32::MAX - 31, i32::MAX - 63, i32::MAX - 70, i32::MAX - 200] {
            let (mut expected, mut got) = ([7; THREADS as usize], [9; THREADS as usize]);
            LAUNCH.interpret(&program, &params(data, &mut expected, start, 300)).unwrap();
            LAUNCH.run(&compiled, &params(data, &mut got, start, 300)).unwrap();
            assert_eq!(got, expected, "from {start}, {}", cpu.name());
        }
    }
}

#[test]
fn a_row_at_an_odd_address_is_a_fault() {
    let program = kernel(Type::I32);
    let row = [0_u32; 256];
    let data = row.as_ptr() as u64 + 1;
    // Code that takes the parameter to be aligned says so, and is not run with this one.
    let shape = Shape { assume_no_wrap: false, ..LAUNCH.shape() };
    for cpu in launch::cpus() {
        let trusting = LAUNCH.compile(&program, &cpu).unwrap();
        assert!(trusting.info.aligned.contains(&AlignedParam { offset: 0, bytes: 4 }), "{}", cpu.name());
        let compiled = LAUNCH.compile_for(&program, &shape, &cpu).unwrap();
        assert_eq!(compiled.info.aligned, []);
        for limit in [64, 10] {
            let mut out = [0; THREADS as usize];
            let (fault, _) = LAUNCH.fault(&compiled, &params(data, &mut out, 0, limit));
            let kind = kernel_abi::FaultKind::Misaligned as u32;
            assert_eq!((fault.kind, fault.lane, fault.address), (kind, 0, data), "{}", cpu.name());
        }
        // No thread accesses it.
        LAUNCH.run(&compiled, &params(data, &mut [0; THREADS as usize], 0, 0)).unwrap();
    }
}

#[test]
fn all_lanes_enter_stay_and_leave_together() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = codegen::emit_text(&kernel(Type::I32), &LAUNCH.shape(), &cpu, Text::Ir).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("together")).count(), 3, "{text}");
}

#[test]
fn what_is_loaded_is_an_operand_in_memory() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = codegen::emit_text(&kernel(Type::I32), &LAUNCH.shape(), &cpu, Text::Assembly).unwrap();
    let adds = text.lines().filter(|line| line.contains("\tvpaddd\t") && line.contains("(%r"));
    assert!(adds.filter(|line| !line.contains("%rip")).count() >= 2, "{text}");
}
