//! What the quick tier's code is, beside that it computes the same as the interpreter.

mod launch;

use codegen::target::{Cpu, Level};
use codegen::{Plan, Text};
use launch::Launch;
use simt_ir::*;

const ROWS: u32 = 4;
/// Words that the threads of a row add up.
const WORDS: u32 = 40;

/// Which threads of a block wait for each other.
#[derive(Clone, Copy, PartialEq)]
enum Meeting {
    None,
    All,
    /// Those with numbers below this.
    Below(u32),
}

/// Each thread of blocks of `width` by [`ROWS`] adds up the first words of `data`, each times the thread's number, and stores the sum behind
/// them.
fn kernel(width: u32, meeting: Meeting) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let data = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
    let [x, y] = [0, 1].map(|axis| b.inst(Op::SpecialReg(SpecialReg::Tid(axis)), &[], Type::I32));
    let width = b.constant(Type::I32, width.into());
    let row = b.inst(Op::Int(IntBinary::Mul), &[y, width], Type::I32);
    let own = b.inst(Op::Int(IntBinary::Add), &[row, x], Type::I32);
    let after = b.block();
    if let Meeting::Below(below) = meeting {
        let then = b.block();
        let below = b.constant(Type::I32, below.into());
        let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[own, below], Type::Pred);
        let (taken, otherwise) = (Target::new(then), Target::new(after));
        b.terminate(Terminator::Branch { cond, then: taken, otherwise, uniform: false });
        b.switch_to(then);
    }
    if meeting != Meeting::None {
        let id = b.constant(Type::I32, 0);
        b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[id]);
    }
    b.terminate(Terminator::Jump(Target::new(after)));
    b.switch_to(after);
    let mut sum = own;
    for at in 0..WORDS {
        let access = Access::weak(Space::Global, 4 * i64::from(at));
        let word = b.inst(Op::Load(access), &[data], Type::I32);
        let product = b.inst(Op::Int(IntBinary::Mul), &[word, own], Type::I32);
        sum = b.inst(Op::Int(IntBinary::Add), &[sum, product], Type::I32);
    }
    let wide = b.inst(Op::Convert(Convert::ZExt), &[own], Type::I64);
    let four = b.constant(Type::I64, 4);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[wide, four], Type::I64);
    let place = b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64);
    b.effect(Op::Store(Access::weak(Space::Global, 4 * i64::from(WORDS))), &[place, sum]);
    b.terminate(Terminator::Exit);
    let functions = vec![b.finish()];
    let program = Program { functions, param_bytes: 8, shared_align: 16, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

fn launch_of(width: u32) -> Launch {
    Launch { grid: [1, 1, 1], block: [width, ROWS, 1] }
}

fn text(program: &Program, launch: &Launch, cpu: &Cpu, plan: Plan, text: Text) -> String {
    codegen::emit_text_as(program, &launch.shape(), cpu, plan, text).unwrap()
}

#[test]
fn values_take_one_register_where_lanes_do_not_meet() {
    for width in [8, 16, 32, 96] {
        let (program, launch) = (kernel(width, Meeting::None), launch_of(width));
        let words = || (0..WORDS + width * ROWS).map(|i| i.wrapping_mul(0x9e37_79b9)).collect::<Vec<u32>>();
        let mut expected = words();
        launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
        for cpu in launch::cpus() {
            let what = format!("rows of {width} on {}", cpu.name());
            let lanes = if cpu.registers().bytes == 64 { 16 } else { 8 };
            let quick = text(&program, &launch, &cpu, Plan::QUICK, Text::Ir);
            assert!(quick.contains(&format!("<{lanes} x i32>")), "{what}");
            assert!(!quick.contains("<32 x "), "{what}");
            let compiled = launch.compile_as(&program, &cpu, Plan::QUICK).unwrap();
            let mut got = words();
            launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
            assert!(got == expected, "{what}");
        }
    }
}

#[test]
fn strips_come_to_barriers_together_or_are_none() {
    let launch = launch_of(16);
    for cpu in launch::cpus() {
        let quick = |meeting| text(&kernel(16, meeting), &launch, &cpu, Plan::QUICK, Text::Ir);
        assert!(quick(Meeting::All).contains("@strips("), "all lanes meet on {}", cpu.name());
        // One strip of a warp would, and not the other.
        assert!(!quick(Meeting::Below(16)).contains("@strips("), "half a warp meets on {}", cpu.name());
    }
}

#[test]
fn runs_of_loads_end() {
    let (program, launch) = (kernel(32, Meeting::None), launch_of(32));
    let cpu = Cpu::level_cpu(Level::Baseline);
    let count =
        |plan| text(&program, &launch, &cpu, plan, Text::OptimizedIr).matches("load volatile").count();
    assert!(count(Plan::QUICK) as u32 >= WORDS / 16);
    assert_eq!(count(Plan::FULL), 0);
}

#[test]
fn integers_are_fenced() {
    let (program, launch) = (kernel(32, Meeting::None), launch_of(32));
    let cpu = Cpu::level_cpu(Level::Avx2);
    let count = |plan| {
        text(&program, &launch, &cpu, plan, Text::OptimizedIr)
            .matches("= call <8 x float> @llvm.arithmetic.fence")
            .count()
    };
    // Every third operation, in each of the strips.
    assert!(count(Plan::QUICK) as u32 >= WORDS / 3 - 1);
    assert_eq!(count(Plan::FULL), 0);
}

const THREADS: u32 = 64;
/// Bytes that each thread of [`scattered`] adds up.
const BYTES: u32 = 4;

/// Each thread adds up bytes of the words at the first parameter, from where its own word tells on and so far apart as the second one tells, with a
/// barrier after each. Those with an odd word store the sum, to every other word behind.
fn scattered() -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let [data, step] = [0, 8].map(|at| {
        let at = b.constant(Type::I64, at);
        b.inst(Op::Load(Access::weak(Space::Param, 0)), &[at], Type::I64)
    });
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let wide = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let four = b.constant(Type::I64, 4);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[wide, four], Type::I64);
    let own = b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64);
    let word = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[own], Type::I32);
    let low = b.constant(Type::I32, 127);
    let index = b.inst(Op::Int(IntBinary::And), &[word, low], Type::I32);
    let index = b.inst(Op::Convert(Convert::ZExt), &[index], Type::I64);
    let start = b.inst(Op::Int(IntBinary::Add), &[data, index], Type::I64);
    let (mut place, mut sum) = (start, word);
    for _ in 0..BYTES {
        let byte = b.inst(Op::Load(Access::weak(Space::Global, 1)), &[place], Type::I8);
        let byte = b.inst(Op::Convert(Convert::ZExt), &[byte], Type::I32);
        sum = b.inst(Op::Int(IntBinary::Add), &[sum, byte], Type::I32);
        place = b.inst(Op::Int(IntBinary::Add), &[place, step], Type::I64);
        let id = b.constant(Type::I32, 0);
        b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[id]);
    }
    let one = b.constant(Type::I32, 1);
    let odd = b.inst(Op::Int(IntBinary::And), &[word, one], Type::I32);
    let odd = b.inst(Op::IntCmp(IntCmp::Eq), &[odd, one], Type::Pred);
    let (store, after) = (b.block(), b.block());
    let (then, otherwise) = (Target::new(store), Target::new(after));
    b.terminate(Terminator::Branch { cond: odd, then, otherwise, uniform: false });
    b.switch_to(store);
    let behind = b.inst(Op::Int(IntBinary::Add), &[own, distance], Type::I64);
    b.effect(Op::Store(Access::weak(Space::Global, 4 * i64::from(THREADS))), &[behind, sum]);
    b.terminate(Terminator::Jump(Target::new(after)));
    b.switch_to(after);
    b.terminate(Terminator::Exit);
    let functions = vec![b.finish()];
    let program = Program { functions, param_bytes: 16, shared_align: 16, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn what_is_there_in_many_places_is_called() {
    let (program, launch) = (scattered(), Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] });
    let words = || (0..3 * THREADS).map(|i| i.wrapping_mul(0x9e37_79b9)).collect::<Vec<u32>>();
    let step = 5;
    let mut expected = words();
    launch.interpret(&program, &[expected.as_mut_ptr() as u64, step]).unwrap();
    for cpu in launch::cpus() {
        let what = cpu.name();
        let compiled = launch.compile_as(&program, &cpu, Plan::QUICK).unwrap();
        let mut got = words();
        launch.run(&compiled, &[got.as_mut_ptr() as u64, step]).unwrap();
        assert!(got == expected, "{what}");
        let quick = text(&program, &launch, &cpu, Plan::QUICK, Text::Ir);
        let count = |text: &str| quick.matches(text).count();
        assert_eq!(
            (count("void @wait."), count("call void @wait.")),
            (1 + BYTES as usize, BYTES as usize),
            "{what}"
        );
        if cpu.level() == Level::Avx512 {
            assert_eq!(count("@load8("), 1 + BYTES as usize, "{what}");
            assert_eq!(
                (count("call void @llvm.masked.scatter"), count("call void @llvm.masked.store")),
                (1, 0),
                "{what}"
            );
        }
    }
}

/// Each thread has so many words at once, and stores one of them elsewhere before it adds them up, the last one first.
fn with_words_at_once(count: u32) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let [data, other] = [0, 8].map(|at| b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], Type::I64));
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let wide = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let four = b.constant(Type::I64, 4);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[wide, four], Type::I64);
    let own = b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64);
    let access = |at: u32| Access::weak(Space::Global, 128 * i64::from(at));
    let words: Vec<Value> = (0..count).map(|at| b.inst(Op::Load(access(at)), &[own], Type::I32)).collect();
    b.effect(Op::Store(access(0)), &[other, words[1]]);
    let three = b.constant(Type::I32, 3);
    let sum = words.iter().rev().fold(tid, |sum, word| {
        let product = b.inst(Op::Int(IntBinary::Mul), &[sum, three], Type::I32);
        b.inst(Op::Int(IntBinary::Add), &[product, *word], Type::I32)
    });
    b.effect(Op::Store(access(count)), &[own, sum]);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 16, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn large_frames_are_told() {
    let shape = kernel_abi::Shape::of([1; 3], [32, 1, 1]);
    let cpu = Cpu::level_cpu(Level::Avx2);
    let frames = |count| {
        codegen::compile_as(&with_words_at_once(count), &shape, &cpu, Plan::QUICK).unwrap().info.stack_bytes
    };
    assert_eq!(frames(20), 0, "as any thread has");
    // A word of eight lanes, of all those that the registers do not have.
    let large = frames(4000);
    assert!((100_000..200_000).contains(&large), "{large}");
}
