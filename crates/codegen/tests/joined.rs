//! Loads of neighbouring elements, one by one, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::Cpu;
use launch::Launch;
use simt_ir::*;

/// How the lanes of a block lie: each has `count` elements, and the next lane's begin `stride` elements further.
#[derive(Clone, Copy)]
struct Layout {
    ty: Type,
    stride: u64,
    /// Lanes after which the elements repeat.
    period: u64,
    /// The offsets of the loads, in elements, in order.
    loads: &'static [i64],
    /// Only threads below this load.
    below: u32,
    /// A store to the first element of all lanes comes before this load.
    store_before: Option<usize>,
    /// Where a lane's elements are depends on the bits of a word of its own.
    anywhere: bool,
}

const THREADS: u32 = 64;

/// Sums of what is loaded, with weights that tell the elements apart.
fn kernel(layout: Layout) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let access = |offset: i64| Access::weak(Space::Global, offset);
    let data = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
    let out = b.inst(Op::Load(Access::weak(Space::Param, 8)), &[zero], Type::I64);
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let bytes = i64::from(layout.ty.bits() / 8);
    let mask = b.constant(Type::I32, layout.period - 1);
    let lane = b.inst(Op::Int(IntBinary::And), &[tid, mask], Type::I32);
    let wide = b.inst(Op::Convert(Convert::ZExt), &[lane], Type::I64);
    let step = b.constant(Type::I64, layout.stride * bytes as u64);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[wide, step], Type::I64);
    let mut from = b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64);
    if layout.anywhere {
        let word = b.inst(Op::Load(access(0)), &[from], Type::I64);
        let mask = b.constant(Type::I64, 255);
        let index = b.inst(Op::Int(IntBinary::And), &[word, mask], Type::I64);
        let size = b.constant(Type::I64, bytes as u64);
        let distance = b.inst(Op::Int(IntBinary::Mul), &[index, size], Type::I64);
        from = b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64);
    }
    let (load, after) = (b.block(), b.block());
    let limit = b.constant(Type::I32, layout.below.into());
    let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[tid, limit], Type::Pred);
    let (then, otherwise) = (Target::new(load), Target::new(after));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    b.switch_to(load);
    let mut sum = b.constant(layout.ty, 0);
    for (index, offset) in layout.loads.iter().enumerate() {
        if layout.store_before == Some(index) {
            b.effect(Op::Store(access(0)), &[from, sum]);
        }
        let value = b.inst(Op::Load(access(offset * bytes)), &[from], layout.ty);
        let weight = b.constant(layout.ty, 3 + 2 * index as u64);
        let value = b.inst(Op::Int(IntBinary::Mul), &[value, weight], layout.ty);
        sum = b.inst(Op::Int(IntBinary::Add), &[sum, value], layout.ty);
    }
    let own = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let size = b.constant(Type::I64, bytes as u64);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[own, size], Type::I64);
    let place = b.inst(Op::Int(IntBinary::Add), &[out, distance], Type::I64);
    b.effect(Op::Store(access(0)), &[place, sum]);
    b.terminate(Terminator::Jump(Target::new(after)));
    b.switch_to(after);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 16, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

const FOUR: Layout = Layout {
    ty: Type::I32,
    stride: 4,
    period: 64,
    loads: &[0, 1, 2, 3],
    below: THREADS,
    store_before: None,
    anywhere: false,
};

/// Each lane has words of 64 bits, which tell where its elements are.
const ANYWHERE: Layout = Layout { stride: 8, anywhere: true, ..FOUR };

fn layouts() -> Vec<Layout> {
    vec![
        FOUR,
        Layout { loads: &[2, 0, 3, 1], ..FOUR },
        Layout { period: 16, ..FOUR },
        Layout { below: 41, ..FOUR },
        Layout { below: 0, ..FOUR },
        Layout { period: 16, below: 3, loads: &[3, 1, 0, 2], ..FOUR },
        // The same twice, and some that belong to no whole piece.
        Layout { loads: &[0, 1, 0, 2, 1, 3, 4, 5, 6], ..FOUR },
        Layout { stride: 2, loads: &[1, 0], ..FOUR },
        Layout { stride: 2, loads: &[0, 1, 2, 3], ..FOUR },
        Layout { stride: 3, loads: &[0, 1, 2], ..FOUR },
        Layout { ty: Type::I64, stride: 4, ..FOUR },
        Layout { ty: Type::I64, stride: 2, loads: &[-1, -2], below: 50, ..FOUR },
        Layout { ty: Type::I16, stride: 4, below: 33, ..FOUR },
        Layout { store_before: Some(2), ..FOUR },
        Layout { period: 16, below: 16, store_before: Some(1), ..FOUR },
        // Further apart than they reach.
        Layout { stride: 16, loads: &[4, 6, 5, 7], below: 50, ..FOUR },
        ANYWHERE,
        Layout { below: 17, ..ANYWHERE },
        Layout { below: 0, ..ANYWHERE },
        Layout { loads: &[3, 2, 1, 0], below: 40, ..ANYWHERE },
        Layout { loads: &[0, 1], ..ANYWHERE },
        Layout { loads: &[-3, -1, -2, 0, 1, 2, 9], below: 63, ..ANYWHERE },
        Layout { loads: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17], ..ANYWHERE },
        Layout { ty: Type::I64, loads: &[1, 0, 3, 2], below: 33, ..ANYWHERE },
        Layout { ty: Type::I64, loads: &[0, 1, 2, 3, 4, 5, 6, 7, 8], ..ANYWHERE },
        Layout { ty: Type::I16, loads: &[0, 1, 2, 3], below: 33, ..ANYWHERE },
        Layout { ty: Type::I16, loads: &[1, 0, 2, 4, 5], ..ANYWHERE },
        Layout { ty: Type::I16, loads: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ..ANYWHERE },
        Layout { ty: Type::I8, ..ANYWHERE },
        Layout { ty: Type::I8, loads: &[2, 1, 3, 0, 4, 5, 6, 7], below: 47, ..ANYWHERE },
        Layout {
            ty: Type::I8,
            loads: &[-2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17],
            ..ANYWHERE
        },
        Layout { ty: Type::I8, loads: &[0, 1, 2], ..ANYWHERE },
        Layout { ty: Type::I8, loads: &[1, 0], below: 29, ..ANYWHERE },
        Layout { ty: Type::I8, loads: &[2, 0, 1, 9, 8, 20, 21, 22, 23, 24, 26], below: 50, ..ANYWHERE },
        Layout { ty: Type::I8, loads: &[-1, 0, 1, 2, 3, 4, 5], ..ANYWHERE },
        Layout { loads: &[2, 0, 1], ..ANYWHERE },
        Layout { loads: &[0, 1, 2], below: 21, ..ANYWHERE },
        Layout { loads: &[0, 1, 2, 3, 4, 5, 6, 10, 11, 9], ..ANYWHERE },
        Layout { ty: Type::I16, loads: &[0, 1, 2], ..ANYWHERE },
        Layout { ty: Type::I8, stride: 18, loads: &[2, 3, 4, 5, 6, 7, 8, 9], ..FOUR },
    ]
}

#[test]
fn neighbours_are_what_they_are_one_by_one() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };
    for (number, layout) in layouts().into_iter().enumerate() {
        let program = kernel(layout);
        let words: Vec<_> = (0..1200u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        // The matrix begins a little further on, for those that look before it.
        let args = |words: &mut [u64]| [words[8..].as_mut_ptr() as u64, words[900..].as_mut_ptr() as u64];
        launch.must_agree(&program, &words, args, format_args!("layout {number}"));
    }
}

#[test]
fn together_they_are_vectors() {
    let cpu = Cpu::level_cpu(codegen::target::Level::Avx512);
    let gathers = |layout: Layout| {
        let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
        let text = codegen::emit_text(&kernel(layout), &shape, &cpu, Text::Ir).unwrap();
        text.matches("call <32 x i32> @llvm.masked.gather").count()
    };
    assert_eq!(gathers(Layout { period: 16, ..FOUR }), 0);
    assert_eq!(gathers(Layout { period: 16, loads: &[0, 1, 2], ..FOUR }), 0);
    assert_eq!(gathers(Layout { period: 16, loads: &[0, 2, 4], ..FOUR }), 3, "none is another's neighbour");
    assert_eq!(gathers(ANYWHERE), 0);
    assert_eq!(gathers(Layout { below: 20, ..ANYWHERE }), 0);
    assert_eq!(
        gathers(Layout { loads: &[0, 1, 2], ..ANYWHERE }),
        0,
        "two loads for the three words of each lane"
    );
    assert_eq!(
        gathers(Layout { store_before: Some(2), loads: &[0, 2, 1, 3], ..ANYWHERE }),
        4,
        "no load goes ahead of a store"
    );
}

#[test]
fn bytes_are_words() {
    let cpu = Cpu::level_cpu(codegen::target::Level::Avx512);
    let gathers = |loads| {
        let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
        let layout = Layout { ty: Type::I8, loads, ..ANYWHERE };
        let text = codegen::emit_text(&kernel(layout), &shape, &cpu, Text::Ir).unwrap();
        // Its declaration is one.
        text.matches("@llvm.masked.gather").count() - 1
    };
    assert_eq!(gathers(&[0, 1, 2, 3]), 1);
    assert_eq!(gathers(&[4, 5, 6, 7, 0, 1, 2, 3]), 1, "two words at once");
    assert_eq!(gathers(&[0, 1, 2]), 1, "three are part of a word");
    assert_eq!(gathers(&[4, 5]), 1);
    assert_eq!(gathers(&[0, 1, 2, 3, 4]), 2);
    assert_eq!(gathers(&[0, 2, 4]), 3, "none is another's neighbour");
}

#[test]
fn elements_of_four_are_told_apart_in_two_steps() {
    let cpu = Cpu::level_cpu(codegen::target::Level::Avx512);
    let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
    let text = codegen::emit_text(&kernel(FOUR), &shape, &cpu, Text::Assembly).unwrap();
    // Of eight registers that are loaded, eight with pairs and eight with elements.
    let shuffles = text.lines().filter(|line| line.contains("\tvperm") || line.contains("\tvshuf")).count();
    assert_eq!(shuffles, 16, "{text}");
}
