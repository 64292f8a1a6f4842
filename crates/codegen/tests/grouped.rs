//! Accesses of parts of rows that are as wide as an argument says, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

/// What each thread copies: the element at `(outer × (tid / period)) × width + inner × (tid % period)`, or with rows and columns exchanged.
#[derive(Clone, Copy)]
struct Layout {
    ty: Type,
    /// Elements of a thread, side by side.
    lanes: u8,
    period: u64,
    outer: u64,
    inner: u64,
    /// The row is the rest, the column the quotient.
    exchanged: bool,
    /// Only threads from this one on take part, and those below that.
    from: u32,
    below: u32,
    /// Elements from row to row.
    width: u64,
    /// Addresses are of 32 bits, as they are in shared memory.
    narrow: bool,
    /// Indices are of 32 bits, and extended with their sign; this is added to them.
    extended: Option<i32>,
    /// So many elements further in front.
    back: u64,
    /// So often, each time 16 rows further.
    rounds: u64,
}

const THREADS: u32 = 64;
const QUARTERS: Layout = Layout {
    ty: Type::I32,
    lanes: 1,
    period: 4,
    outer: 1,
    inner: 1,
    exchanged: false,
    from: 0,
    below: THREADS,
    width: 23,
    narrow: false,
    extended: None,
    back: 0,
    rounds: 1,
};

fn layouts() -> Vec<Layout> {
    vec![
        QUARTERS,
        Layout { period: 16, ..QUARTERS },
        Layout { period: 8, ty: Type::I16, ..QUARTERS },
        Layout { period: 8, ty: Type::I64, outer: 3, ..QUARTERS },
        Layout { period: 4, lanes: 2, inner: 2, width: 18, ..QUARTERS },
        Layout { period: 4, lanes: 4, inner: 4, width: 32, ..QUARTERS },
        Layout { exchanged: true, ..QUARTERS },
        Layout { exchanged: true, ty: Type::I16, inner: 2, ..QUARTERS },
        Layout { exchanged: true, period: 2, ty: Type::I8, ..QUARTERS },
        // All threads of a row have one element, or some share one.
        Layout { inner: 0, period: 16, ..QUARTERS },
        Layout { exchanged: true, outer: 0, ..QUARTERS },
        // Gaps: not groups.
        Layout { inner: 3, period: 16, ..QUARTERS },
        // Rows that overlap.
        Layout { width: 0, period: 16, ..QUARTERS },
        Layout { width: 1, period: 8, ..QUARTERS },
        Layout { below: 41, ..QUARTERS },
        Layout { below: 5, period: 16, ..QUARTERS },
        Layout { below: 0, ..QUARTERS },
        Layout { below: 35, ty: Type::I16, exchanged: true, ..QUARTERS },
        Layout { below: 19, lanes: 2, inner: 2, width: 18, period: 8, ..QUARTERS },
        Layout { below: 27, inner: 0, period: 8, ..QUARTERS },
        Layout { narrow: true, ..QUARTERS },
        Layout { narrow: true, below: 50, period: 16, ..QUARTERS },
        Layout { narrow: true, exchanged: true, ty: Type::I16, ..QUARTERS },
        // The first thread's place would be in front of all shared memory.
        Layout { narrow: true, from: 1, back: 1, period: 16, ..QUARTERS },
        Layout { extended: Some(7), ..QUARTERS },
        Layout { extended: Some(0), period: 16, below: 43, ..QUARTERS },
        Layout { extended: Some(-5), ty: Type::I16, exchanged: true, ..QUARTERS },
        Layout { rounds: 3, ..QUARTERS },
        Layout { rounds: 3, extended: Some(3), period: 8, ..QUARTERS },
        Layout { rounds: 2, below: 23, ..QUARTERS },
    ]
}

/// Loads from where the layout says into consecutive elements, or the other way round.
fn kernel(layout: Layout, load: bool) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, offset: i64| {
        b.inst(Op::Load(Access::weak(Space::Param, offset)), &[zero], Type::I64)
    };
    let (data, out, width) = (param(&mut b, 0), param(&mut b, 8), param(&mut b, 16));
    let whole_width = width;
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let bytes = u64::from(layout.ty.bits() / 8);
    let shift = b.constant(Type::I32, layout.period.trailing_zeros().into());
    let quotient = b.inst(Op::Shift(Shift::RightU), &[tid, shift], Type::I32);
    let mask = b.constant(Type::I32, layout.period - 1);
    let rest = b.inst(Op::Int(IntBinary::And), &[tid, mask], Type::I32);
    let is_32 = layout.narrow || layout.extended.is_some();
    let ty = if is_32 { Type::I32 } else { Type::I64 };
    let wide = |b: &mut FunctionBuilder, value: Value, factor: u64| {
        let value = if is_32 { value } else { b.inst(Op::Convert(Convert::ZExt), &[value], ty) };
        let factor = b.constant(ty, factor);
        b.inst(Op::Int(IntBinary::Mul), &[value, factor], ty)
    };
    let (outer, inner) = (wide(&mut b, quotient, layout.outer), wide(&mut b, rest, layout.inner));
    let (row, column) = if layout.exchanged { (inner, outer) } else { (outer, inner) };
    let width = if is_32 { b.inst(Op::Convert(Convert::Trunc), &[width], ty) } else { width };
    let start = b.inst(Op::Int(IntBinary::Mul), &[row, width], ty);
    let mut index = b.inst(Op::Int(IntBinary::Add), &[start, column], ty);
    if layout.back > 0 {
        let back = b.constant(ty, layout.back);
        index = b.inst(Op::Int(IntBinary::Sub), &[index, back], ty);
    }
    let mut ty = ty;
    if layout.extended.is_some() {
        let more = param(&mut b, 24);
        let more = b.inst(Op::Convert(Convert::Trunc), &[more], ty);
        let sum = b.inst(Op::Int(IntBinary::Add), &[index, more], ty);
        ty = Type::I64;
        index = b.inst(Op::Convert(Convert::SExt), &[sum], ty);
    }
    let size = b.constant(Type::I32, bytes.trailing_zeros().into());
    let distance = b.inst(Op::Shift(Shift::Left), &[index, size], ty);
    let (load_block, after) = (b.block(), b.block());
    let from = b.constant(Type::I32, layout.from.into());
    let limit = b.constant(Type::I32, u64::from(layout.below - layout.from));
    let number = b.inst(Op::Int(IntBinary::Sub), &[tid, from], Type::I32);
    let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[number, limit], Type::Pred);
    let own = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let step = b.constant(Type::I64, bytes * u64::from(layout.lanes));
    let own = b.inst(Op::Int(IntBinary::Mul), &[own, step], Type::I64);
    if layout.narrow {
        // Something to load.
        let four = b.constant(Type::I32, 4);
        let place = b.inst(Op::Int(IntBinary::Mul), &[tid, four], Type::I32);
        for round in 0..16 {
            let base = b.constant(Type::I32, u64::from(THREADS) * 4 * round);
            let place = b.inst(Op::Int(IntBinary::Add), &[place, base], Type::I32);
            let word = b.inst(Op::Int(IntBinary::Mul), &[place, place], Type::I32);
            b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[place, word]);
        }
        let id = b.constant(Type::I32, 0);
        b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[id]);
    }
    let (then, otherwise) = (Target::new(load_block), Target::new(after));
    b.terminate(match (layout.from, layout.below) {
        (0, THREADS) => Terminator::Jump(then),
        _ => Terminator::Branch { cond, then, otherwise, uniform: false },
    });
    b.switch_to(load_block);
    let space = if layout.narrow { Space::Shared } else { Space::Global };
    let there = match layout.narrow {
        true => distance,
        false => b.inst(Op::Int(IntBinary::Add), &[data, distance], Type::I64),
    };
    let out = b.inst(Op::Int(IntBinary::Add), &[out, own], Type::I64);
    let (mut there, mut out) = (there, out);
    let vars = [b.var(Type::I64), b.var(Type::I64), b.var(Type::I64)];
    let (mut count, mut again) = (None, None);
    if layout.rounds > 1 {
        // Pointers that a loop moves.
        let header = b.block();
        let none = b.constant(Type::I64, 0);
        for (var, start) in vars.into_iter().zip([there, out, none]) {
            b.write(var, start);
        }
        b.terminate(Terminator::Jump(Target::new(header)));
        b.switch_to(header);
        (there, out) = (b.read(vars[0]), b.read(vars[1]));
        (count, again) = (Some(b.read(vars[2])), Some(header));
    }
    let vector = |space: Space| Access { lanes: layout.lanes, ..Access::weak(space, 0) };
    let types = vec![layout.ty; layout.lanes.into()];
    let (from, to) =
        if load { ((space, there), (Space::Global, out)) } else { ((Space::Global, out), (space, there)) };
    let values = b.insts(Op::Load(vector(from.0)), &[from.1], &types);
    let mut args = vec![to.1];
    args.extend(values);
    b.effect(Op::Store(vector(to.0)), &args);
    if layout.narrow && !load {
        let again = b.insts(Op::Load(vector(space)), &[there], &types);
        let mut args = vec![out];
        args.extend(again);
        b.effect(Op::Store(vector(Space::Global)), &args);
    }
    if let (Some(count), Some(header)) = (count, again) {
        let one = b.constant(Type::I64, 1);
        let next = b.inst(Op::Int(IntBinary::Add), &[count, one], Type::I64);
        let rows = b.constant(Type::I64, 16 * bytes);
        let row = b.inst(Op::Int(IntBinary::Mul), &[whole_width, rows], Type::I64);
        let there = b.inst(Op::Int(IntBinary::Add), &[there, row], Type::I64);
        let all = b.constant(Type::I64, u64::from(THREADS) * bytes * u64::from(layout.lanes));
        let out = b.inst(Op::Int(IntBinary::Add), &[out, all], Type::I64);
        let limit = b.constant(Type::I64, layout.rounds);
        let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[next, limit], Type::Pred);
        for (var, value) in vars.into_iter().zip([there, out, next]) {
            b.write(var, value);
        }
        let (then, otherwise) = (Target::new(header), Target::new(after));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    } else {
        b.terminate(Terminator::Jump(Target::new(after)));
    }
    b.switch_to(after);
    b.terminate(Terminator::Exit);
    let shared = if layout.narrow { 8192 } else { 0 };
    let program =
        Program { functions: vec![b.finish()], param_bytes: 32, shared_bytes: shared, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn groups_are_what_their_lanes_are() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };
    for (number, layout) in layouts().into_iter().enumerate() {
        for load in [true, false] {
            if !load && (layout.inner == 0 || layout.outer == 0 || layout.width < 2) {
                // Threads store to one place.
                continue;
            }
            let program = kernel(layout, load);
            let words: Vec<_> = (0..2400u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let args = |words: &mut [u64]| {
                let more = layout.extended.unwrap_or(0);
                [words[8..].as_mut_ptr() as u64, words[1900..].as_mut_ptr() as u64, layout.width, more as u64]
            };
            launch.must_agree(&program, &words, args, format_args!("layout {number}, load: {load}"));
        }
    }
}

/// Indices that wrap from the largest number to the smallest, in one of the groups.
#[test]
fn groups_may_wrap() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };
    let layout = Layout { ty: Type::I8, period: 8, width: 16, extended: Some(0), ..QUARTERS };
    let program = kernel(layout, true);
    let half = 1 << 31;
    // Hardly any of it is ever touched.
    let mut bytes = vec![0u8; 2 * half];
    for at in 0..200 {
        bytes[at] = at as u8;
        bytes[2 * half - 1 - at] = (3 * at + 1) as u8;
    }
    for start in [i32::MAX - 3, i32::MAX - 35, i32::MAX - 200] {
        let data = bytes.as_mut_ptr() as u64 + half as u64;
        let args = |out: &mut [u64]| [data, out.as_mut_ptr() as u64, layout.width, start as u64];
        launch.must_agree(&program, &[0; 32], args, format_args!("from {start}"));
    }
}

#[test]
fn groups_are_vectors() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let gathers = |layout: Layout, load: bool| {
        let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
        let text = codegen::emit_text(&kernel(layout, load), &shape, &cpu, Text::Ir);
        text.expect("it compiles").contains(if load { "llvm.masked.gather" } else { "llvm.masked.scatter" })
    };
    for load in [true, false] {
        assert!(!gathers(QUARTERS, load));
        assert!(!gathers(Layout { exchanged: true, ty: Type::I16, ..QUARTERS }, load));
        assert!(!gathers(Layout { below: 41, ..QUARTERS }, load));
        assert!(gathers(Layout { inner: 3, period: 16, ..QUARTERS }, load));
    }
    assert!(!gathers(Layout { inner: 0, period: 16, ..QUARTERS }, true));
    // The lanes of indices that wrap are no groups: there is code for both.
    let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
    let program = kernel(Layout { extended: Some(7), ..QUARTERS }, true);
    let text = codegen::emit_text(&program, &shape, &cpu, Text::Ir).expect("it compiles");
    assert!(text.contains("load <4 x i32>") && text.contains("llvm.masked.gather"));
}
