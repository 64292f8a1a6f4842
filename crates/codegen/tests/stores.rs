//! Stores of each lane's own elements, and of a tile's that threads count through, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

/// How the lanes of a block lie: the next lane's elements begin `stride` elements further.
#[derive(Clone, Copy)]
struct Layout {
    ty: Type,
    stride: u64,
    /// The offsets of the stores, in elements, in order.
    stores: &'static [i64],
    /// Only threads below this store.
    below: u32,
    /// The first element is loaded before this store, and goes into what is stored.
    load_before: Option<usize>,
}

const THREADS: u32 = 64;

const FOUR: Layout =
    Layout { ty: Type::I32, stride: 4, stores: &[0, 1, 2, 3], below: THREADS, load_before: None };

/// Stores numbers that tell elements and threads apart.
fn kernel(layout: Layout) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let access = |offset: i64| Access::weak(Space::Global, offset);
    let out = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let bytes = i64::from(layout.ty.bits() / 8);
    let own = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let step = b.constant(Type::I64, layout.stride * bytes as u64);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[own, step], Type::I64);
    let to = b.inst(Op::Int(IntBinary::Add), &[out, distance], Type::I64);
    let (store, after) = (b.block(), b.block());
    let limit = b.constant(Type::I32, layout.below.into());
    let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[tid, limit], Type::Pred);
    let (then, otherwise) = (Target::new(store), Target::new(after));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    b.switch_to(store);
    let mut number = match layout.ty {
        Type::I64 => own,
        Type::I32 => tid,
        ty => b.inst(Op::Convert(Convert::Trunc), &[tid], ty),
    };
    for (index, offset) in layout.stores.iter().enumerate() {
        let factor = b.constant(layout.ty, 77 + 2 * index as u64);
        let mut value = b.inst(Op::Int(IntBinary::Mul), &[number, factor], layout.ty);
        // So that it is no known distance from another lane's.
        value = b.inst(Op::Int(IntBinary::Xor), &[value, number], layout.ty);
        if layout.load_before == Some(index) {
            let before = b.inst(Op::Load(access(0)), &[to], layout.ty);
            number = b.inst(Op::Int(IntBinary::Add), &[number, before], layout.ty);
        }
        b.effect(Op::Store(access(offset * bytes)), &[to, value]);
    }
    b.terminate(Terminator::Jump(Target::new(after)));
    b.switch_to(after);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 8, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

fn layouts() -> Vec<Layout> {
    vec![
        FOUR,
        Layout { stores: &[2, 0, 3, 1], ..FOUR },
        Layout { below: 41, ..FOUR },
        Layout { below: 0, ..FOUR },
        Layout { stride: 2, stores: &[1, 0], ..FOUR },
        Layout { stride: 3, stores: &[0, 1, 2], ..FOUR },
        Layout { stride: 5, stores: &[0, 1, 2, 3, 4], ..FOUR },
        // The same twice, and some that belong to no whole piece.
        Layout { stride: 8, stores: &[0, 1, 0, 2, 1, 3, 4, 5, 6], ..FOUR },
        Layout { stores: &[3, 0, 1, 2, 3, 0], ..FOUR },
        Layout { ty: Type::I64, ..FOUR },
        Layout { ty: Type::I64, stride: 2, stores: &[-1, -2], below: 50, ..FOUR },
        Layout { ty: Type::I16, below: 33, ..FOUR },
        Layout { load_before: Some(2), ..FOUR },
        Layout { load_before: Some(1), below: 16, ..FOUR },
        Layout { stride: 64, stores: &[0], ..FOUR },
        Layout { stride: 37, stores: &[7, 5], ..FOUR },
        Layout { stride: 37, stores: &[7], below: 43, ..FOUR },
        Layout { ty: Type::I64, stride: 13, stores: &[1, 2, 3, 0], ..FOUR },
        Layout { ty: Type::I16, stride: 13, stores: &[1, 2], ..FOUR },
    ]
}

#[test]
fn neighbours_are_what_they_are_one_by_one() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };
    for (number, layout) in layouts().into_iter().enumerate() {
        let program = kernel(layout);
        let words: Vec<_> = (0..4200u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        // The elements begin a little further on, for those that come before the first.
        let args = |words: &mut [u64]| [words[8..].as_mut_ptr() as u64];
        launch.must_agree(&program, &words, args, format_args!("layout {number}"));
    }
}

fn count(layout: Layout, wanted: &str) -> usize {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
    let text = codegen::emit_text(&kernel(layout), &shape, &cpu, Text::Ir).unwrap();
    // Beside those that pass by the caches, which is for grids of many more threads.
    text.lines().filter(|line| line.contains(wanted) && !line.contains("!nontemporal")).count()
}

#[test]
fn together_they_are_vectors() {
    let masked = "call void @llvm.masked.store";
    assert_eq!(count(FOUR, masked), 0);
    assert_eq!(count(FOUR, "store <128 x i32>"), 1);
    assert_eq!(count(Layout { stores: &[2, 0, 3, 1], ..FOUR }, "store <128 x i32>"), 1);
    assert_eq!(count(Layout { stores: &[0, 1, 2], ..FOUR }, masked), 3, "the fourth would be missing");
    assert_eq!(count(Layout { load_before: Some(2), ..FOUR }, masked), 4, "none goes behind a load");
}

#[test]
fn known_distances_are_not_scattered_to() {
    let scatter = "call void @llvm.masked.scatter";
    let layout = Layout { stride: 64, stores: &[0], ..FOUR };
    assert_eq!(count(layout, scatter), 0);
    assert_eq!(count(Layout { below: 43, ..layout }, scatter), 1, "some lanes may be missing");
}

/// 64 threads fill a tile of 7 rows of so many elements, each of `pitch` bytes, and copy it from there.
fn tile(width: u32, pitch: u32) -> Program {
    let source = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 out)\n{{\n\
         .shared .align 4 .b8 tile[{bytes}];\n\
         .reg .pred %p;\n.reg .b32 %t, %i, %row, %rest, %a, %v;\n.reg .b64 %out, %x;\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %i, %t;\n\
         FILL:\n\
         div.s32 %row, %i, {width};\nmul.lo.s32 %a, %row, {width};\nsub.s32 %rest, %i, %a;\n\
         mad.lo.s32 %v, %row, 1000, %rest;\nmov.u32 %a, tile;\nmad.lo.s32 %a, %row, {pitch}, %a;\n\
         shl.b32 %rest, %rest, 2;\nadd.s32 %a, %a, %rest;\nst.shared.u32 [%a], %v;\n\
         add.s32 %i, %i, 64;\nsetp.lt.s32 %p, %i, {elements};\n@%p bra FILL;\n\
         bar.sync 0;\nmov.u32 %i, %t;\n\
         COPY:\n\
         shl.b32 %rest, %i, 2;\nmov.u32 %a, tile;\nadd.s32 %a, %a, %rest;\nld.shared.u32 %v, [%a];\n\
         mul.wide.u32 %x, %i, 4;\nadd.s64 %x, %x, %out;\nst.global.u32 [%x], %v;\n\
         add.s32 %i, %i, 64;\nsetp.lt.s32 %p, %i, {elements};\n@%p bra COPY;\nret;\n}}\n",
        bytes = 7 * pitch,
        elements = 7 * width,
    );
    launch::kernel_of(&source)
}

#[test]
fn a_tile_that_is_counted_through_is_stored_by_vectors() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };
    let cpu = Cpu::level_cpu(Level::Avx512);
    for (width, pitch) in [(22, 88), (33, 132), (64, 256)] {
        let program = tile(width, pitch);
        let args = |words: &mut [u64]| [words.as_mut_ptr() as u64];
        launch.must_agree(&program, &vec![0; 300], args, format_args!("rows of {width}"));
        let text = codegen::emit_text(&program, &launch.shape(), &cpu, Text::Ir).unwrap();
        assert!(!text.contains("call void @llvm.masked.scatter"), "rows of {width}");
    }
}
