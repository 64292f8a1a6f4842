//! Kernels whose warps run in gangs, against the interpreter.

mod kernel;
mod launch;

use codegen::target::{Cpu, Level};
use codegen::{Choice, Text};
use kernel::Kernel;
use kernel_abi::FaultKind;
use launch::Launch;
use simt_ir::*;

/// What happens in the middle of [`product`].
#[derive(Clone, Copy, PartialEq)]
enum Twist {
    None,
    /// Threads whose column is 5 or more above the row load nothing.
    Divergent,
    /// One thread, by x and y, traps.
    Trap(u32, u32),
    /// One thread, by x and y, stores to an address that is no multiple of four.
    Misaligned(u32, u32),
    /// Every thread asks for its warp.
    Warp,
    /// Half of each block meets by itself.
    OwnBarrier,
}

/// `c = a * b` by tiles of `width` columns and `height` rows, for matrices of `n` columns; `a`, `b` and `c` lie one after another.
fn product(width: u32, height: u32, n: u32, twist: Twist) -> Program {
    let mut k = Kernel { b: FunctionBuilder::new("kernel", Signature::default()) };
    let a = k.param(0, Type::I64);
    let size = k.b.constant(Type::I64, u64::from(4 * n * n));
    let b = k.int(IntBinary::Add, a, size);
    let c = k.int(IntBinary::Add, b, size);
    let (x, y) = (k.reg(SpecialReg::Tid(0)), k.reg(SpecialReg::Tid(1)));
    let (block_x, block_y) = (k.reg(SpecialReg::CtaId(0)), k.reg(SpecialReg::CtaId(1)));
    // A number of columns that only the launch knows.
    let count = k.param(8, Type::I32);
    let (tile_width, tile_height) = (k.i32(width), k.i32(height));
    let column = k.int(IntBinary::Mul, block_x, tile_width);
    let column = k.int(IntBinary::Add, column, x);
    let row = k.int(IntBinary::Mul, block_y, tile_height);
    let row = k.int(IntBinary::Add, row, y);
    let (sum, start) = (k.b.var(Type::F32), k.b.var(Type::I32));
    let (zero, nothing) = (k.i32(0), k.b.constant(Type::F32, 0));
    k.b.write(sum, nothing);
    k.b.write(start, zero);
    match twist {
        Twist::Warp => drop(k.reg(SpecialReg::WarpId)),
        Twist::OwnBarrier => {
            let half = k.i32(height / 2);
            let upper = k.b.inst(Op::IntCmp(IntCmp::LtU), &[y, half], Type::Pred);
            let threads = k.i32(width * height / 2);
            k.when(upper, |k| {
                let one = k.i32(1);
                k.b.effect(Op::Barrier { kind: BarrierKind::Sync, count: true }, &[one, threads]);
            });
        }
        _ => {}
    }
    // As compilers do it: pointers that move with the tiles.
    let (left_tile, right_tile) = (k.b.var(Type::I64), k.b.var(Type::I64));
    let left_first = k.element(a, row, count, x);
    k.b.write(left_tile, left_first);
    let right_first = k.element(b, y, count, column);
    k.b.write(right_tile, right_first);
    let right_step = k.int(IntBinary::Mul, count, tile_width);
    let right_step = k.b.inst(Op::Convert(Convert::SExt), &[right_step], Type::I64);
    let two = k.b.constant(Type::I32, 2);
    let right_step = k.b.inst(Op::Shift(Shift::Left), &[right_step, two], Type::I64);
    let left_step = k.b.constant(Type::I64, u64::from(4 * width));
    let (head, done) = (k.b.block(), k.b.block());
    k.b.terminate(Terminator::Jump(Target::new(head)));
    k.b.switch_to(head);
    let from = k.b.read(start);
    let four = k.i32(4);
    let shared = Access::weak(Space::Shared, 0);
    let own = k.int(IntBinary::Mul, y, tile_width);
    let own = k.int(IntBinary::Add, own, x);
    let own = k.b.inst(Op::Shift(Shift::Left), &[own, two], Type::I32);
    let value = k.b.var(Type::F32);
    k.b.write(value, nothing);
    let fill = |k: &mut Kernel| {
        let at = k.b.read(left_tile);
        let loaded = k.b.inst(Op::Load(Access::weak(Space::Global, 0)), &[at], Type::F32);
        k.b.write(value, loaded);
    };
    if twist == Twist::Divergent {
        let far = k.int(IntBinary::Add, y, four);
        let near = k.b.inst(Op::IntCmp(IntCmp::LeS), &[x, far], Type::Pred);
        k.when(near, fill);
    } else {
        fill(&mut k);
    }
    let loaded = k.b.read(value);
    k.b.effect(Op::Store(shared), &[own, loaded]);
    // Of the second there are as many rows as columns of the first.
    let second = 4 * width * height;
    let wanted = k.b.inst(Op::IntCmp(IntCmp::LtU), &[y, tile_width], Type::Pred);
    let at = k.b.read(right_tile);
    let load = |k: &mut Kernel| {
        let loaded = k.b.inst(Op::Load(Access::weak(Space::Global, 0)), &[at], Type::F32);
        k.b.effect(Op::Store(Access { offset: second.into(), ..shared }), &[own, loaded]);
    };
    if height > width {
        k.when(wanted, load)
    } else {
        load(&mut k)
    }
    match twist {
        Twist::Trap(x, y) => {
            let here = k.is_thread(x, y);
            k.trap_when(here);
        }
        Twist::Misaligned(x, y) => {
            let here = k.is_thread(x, y);
            let odd = k.b.inst(Op::Convert(Convert::ZExt), &[here], Type::I64);
            let place = k.element(c, row, count, column);
            let place = k.int(IntBinary::Add, place, odd);
            k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, loaded]);
        }
        _ => {}
    }
    k.barrier();
    let row_start = k.int(IntBinary::Mul, y, tile_width);
    let row_start = k.b.inst(Op::Shift(Shift::Left), &[row_start, two], Type::I32);
    let column_start = k.b.inst(Op::Shift(Shift::Left), &[x, two], Type::I32);
    for step in 0..height.min(width) {
        let left = Access { offset: i64::from(4 * step), ..shared };
        let right = Access { offset: i64::from(second + 4 * width * step), ..shared };
        let left = k.b.inst(Op::Load(left), &[row_start], Type::F32);
        let right = k.b.inst(Op::Load(right), &[column_start], Type::F32);
        let so_far = k.b.read(sum);
        let next = k.b.inst(Op::Fma(FloatMode::default()), &[left, right, so_far], Type::F32);
        k.b.write(sum, next);
    }
    k.barrier();
    for (tile, step) in [(left_tile, left_step), (right_tile, right_step)] {
        let at = k.b.read(tile);
        let next = k.int(IntBinary::Add, at, step);
        k.b.write(tile, next);
    }
    let next = k.int(IntBinary::Add, from, tile_width);
    k.b.write(start, next);
    let cond = k.b.inst(Op::IntCmp(IntCmp::LtS), &[next, count], Type::Pred);
    let (then, otherwise) = (Target::new(head), Target::new(done));
    k.b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    k.b.switch_to(done);
    let place = k.element(c, row, count, column);
    let total = k.b.read(sum);
    k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, total]);
    k.b.terminate(Terminator::Exit);
    k.program(16, 8 * width * height)
}

fn launch_of(width: u32, height: u32, n: u32) -> Launch {
    Launch { grid: [n / width, n / height, 1], block: [width, height, 1] }
}

/// The matrices before.
fn matrices(n: u32) -> Vec<u32> {
    (0..3 * n * n).map(|i| ((i % 17) as f32 - 8.0 + (i % 5) as f32 / 3.0).to_bits()).collect()
}

/// Runs both ways on every CPU. Answers how many warps run as one on each.
fn agree(width: u32, height: u32, twist: Twist) -> Vec<u32> {
    let n = 2 * width.max(height);
    let (program, launch) = (product(width, height, n, twist), launch_of(width, height, n));
    let mut expected = matrices(n);
    launch.interpret(&program, &[expected.as_mut_ptr() as u64, n.into()]).unwrap();
    let run = |compiled: &launch::Compiled| {
        let mut got = matrices(n);
        launch.run(compiled, &[got.as_mut_ptr() as u64, n.into()]).unwrap();
        assert!(got == expected, "{launch:?}, {} warps at once", compiled.info.gang);
    };
    let on = |cpu: &Cpu| {
        for choice in [Choice::Always, Choice::InStrips, Choice::ForLessCode] {
            run(&launch.compile_in_gangs(&program, cpu, choice).unwrap());
        }
        let compiled = launch.compile(&program, cpu).unwrap();
        run(&compiled);
        compiled.info.gang
    };
    launch::cpus().iter().map(on).collect()
}

fn has_avx512() -> bool {
    Cpu::native().unwrap().registers().bytes == 64
}

#[test]
fn a_product_by_tiles_runs_in_gangs() {
    for (width, height) in [(16, 16), (32, 32)] {
        let gangs = agree(width, height, Twist::None);
        if has_avx512() {
            assert_eq!(gangs.last(), Some(&8), "tiles of {width} by {height}");
        }
        assert!(gangs[0] <= 2, "few registers");
    }
}

#[test]
fn blocks_of_every_shape_mean_the_same_in_gangs() {
    // Eight warps or fewer are a block without suspension points; the last has too many rows for a gang.
    for (width, height) in [(8, 8), (4, 16), (64, 2), (64, 8), (128, 4), (32, 12), (96, 4)] {
        agree(width, height, Twist::None);
    }
}

#[test]
fn lanes_may_part_in_a_gang() {
    for (width, height) in [(16, 16), (32, 32)] {
        agree(width, height, Twist::Divergent);
    }
}

#[test]
fn what_a_warp_means_keeps_warps_apart() {
    for twist in [Twist::Warp, Twist::OwnBarrier] {
        assert!(agree(32, 16, twist).iter().all(|gang| *gang == 1));
    }
}

#[test]
fn a_block_that_is_a_gang_does_not_suspend() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let compile = |width, height| {
        let program = product(width, height, 64, Twist::None);
        launch_of(width, height, 64).compile_in_gangs(&program, &cpu, Choice::Always).unwrap().info
    };
    let info = compile(16, 16);
    assert_eq!((info.gang, info.entry), (8, kernel_abi::EntryKind::Blocks));
    let info = compile(32, 32);
    assert_eq!((info.gang, info.entry), (8, kernel_abi::EntryKind::Warps));
}

#[test]
fn a_fault_names_its_thread() {
    let places = [
        (16, 16, Choice::Always),
        (32, 32, Choice::Always),
        (32, 32, Choice::InStrips),
        (8, 32, Choice::InStrips),
    ];
    for (width, height, choice) in places {
        for (x, y) in [(0, 0), (3, 9), (width - 1, 14)] {
            for (twist, kind) in
                [(Twist::Trap(x, y), FaultKind::Trap), (Twist::Misaligned(x, y), FaultKind::Misaligned)]
            {
                let n = 2 * width.max(height);
                let (program, launch) = (product(width, height, n, twist), launch_of(width, height, n));
                let cpu = Cpu::native().unwrap();
                let compiled = launch.compile_in_gangs(&program, &cpu, choice).unwrap();
                assert_eq!(compiled.info.gang > 1, choice == Choice::Always);
                let mut data = matrices(n);
                let (fault, warp) = launch.fault(&compiled, &[data.as_mut_ptr() as u64, n.into()]);
                assert_eq!(fault.kind, kind as u32);
                assert_eq!(32 * warp + fault.lane, y * width + x, "thread ({x}, {y})");
            }
        }
    }
}

/// Every thread keeps so many sums of products of what its block has in shared memory.
fn sums(count: u32) -> Program {
    let mut k = Kernel { b: FunctionBuilder::new("kernel", Signature::default()) };
    let data = k.param(0, Type::I64);
    let (x, block) = (k.reg(SpecialReg::Tid(0)), k.reg(SpecialReg::CtaId(0)));
    let width = k.i32(64);
    let own = k.element(data, block, width, x);
    let value = k.b.inst(Op::Load(Access::weak(Space::Global, 0)), &[own], Type::F32);
    let two = k.b.constant(Type::I32, 2);
    let place = k.b.inst(Op::Shift(Shift::Left), &[x, two], Type::I32);
    k.b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[place, value]);
    k.barrier();
    let totals = k.sums(count, value, 4, 64 * 4, |k, from| {
        k.b.inst(Op::Load(Access::weak(Space::Shared, 0)), &[from], Type::F32)
    });
    k.barrier();
    for (index, total) in totals.iter().enumerate() {
        let row = k.i32(2 + index as u32);
        let row = k.int(IntBinary::Add, row, block);
        let place = k.element(data, row, width, x);
        let total = k.b.read(*total);
        // One kernel's blocks would write over each other's.
        k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, total]);
    }
    k.b.terminate(Terminator::Exit);
    k.program(8, 256)
}

#[test]
fn what_is_too_much_for_the_registers_runs_in_strips() {
    let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1] };
    for count in [3, 12, 20, 50] {
        let program = sums(count);
        let words = || (0..64 * 53).map(|i| ((i % 13) as f32 / 16.0).to_bits()).collect::<Vec<u32>>();
        let mut expected = words();
        launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
        for cpu in launch::cpus() {
            let text = codegen::emit_text(&program, &launch.shape(), &cpu, codegen::Text::Ir).unwrap();
            let registers = cpu.registers();
            // Twice as many as there are, of a warp's lanes; no more, of a strip's.
            let needed = count * 128 / registers.bytes;
            if needed > registers.count {
                let strips = [2, 4]
                    .into_iter()
                    .find(|strips| (count + 3) * 128 / strips / registers.bytes <= registers.count);
                let fits = strips.is_some_and(|strips| 128 / strips >= registers.bytes);
                // Where a warp takes more than two registers for a value, strips are less code even if they do not fit.
                let fits = fits || registers.bytes < 64;
                assert_eq!(text.contains("@strips("), fits, "{count} sums on {}", cpu.name());
                // A few too many are put aside in strips of one register; of far too many, two hide what each waits for.
                if registers.bytes == 32 {
                    let lanes = if count + 3 <= 2 * registers.count { 8 } else { 16 };
                    let of = |lanes: u32| text.contains(&format!("<{lanes} x float>"));
                    assert!(of(lanes) && !of(24 - lanes), "{count} sums on {}", cpu.name());
                }
            } else if needed * 3 < registers.count {
                assert!(!text.contains("@strips("), "{count} sums on {}", cpu.name());
            }
            let mut got = words();
            launch.run(&launch.compile(&program, &cpu).unwrap(), &[got.as_mut_ptr() as u64]).unwrap();
            assert!(got == expected, "{count} sums on {}", cpu.name());
        }
    }
}

/// Every thread of blocks of two rows keeps so many sums of products of its number with the first 16.
fn sums_apart(count: u32) -> Program {
    let mut k = Kernel { b: FunctionBuilder::new("kernel", Signature::default()) };
    let data = k.param(0, Type::I64);
    let [x, y] = [0, 1].map(|axis| k.reg(SpecialReg::Tid(axis)));
    let width = k.i32(64);
    let own = k.element(data, y, width, x);
    let value = k.b.inst(Op::Load(Access::weak(Space::Global, 0)), &[own], Type::F32);
    let first = k.i32(0);
    let totals = k.sums(count, value, 1, 2, |k, from| {
        let other = k.element(data, from, width, first);
        k.b.inst(Op::Load(Access::weak(Space::Global, 0)), &[other], Type::F32)
    });
    for (index, total) in totals.iter().enumerate() {
        let (two, before) = (k.i32(2), k.i32(2 + 2 * index as u32));
        let row = k.int(IntBinary::RemU, y, two);
        let row = k.int(IntBinary::Add, before, row);
        let place = k.element(data, row, width, x);
        let total = k.b.read(*total);
        k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, total]);
    }
    k.b.terminate(Terminator::Exit);
    k.program(8, 0)
}

#[test]
fn without_barriers_warps_run_in_strips_where_values_take_many_registers() {
    let launch = Launch { grid: [1, 1, 1], block: [64, 2, 1] };
    for count in [2, 5, 24, 40] {
        let program = sums_apart(count);
        let words = || (0..64 * 90).map(|i| ((i % 13) as f32 / 16.0).to_bits()).collect::<Vec<u32>>();
        let mut expected = words();
        launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
        for cpu in launch::cpus() {
            let text = codegen::emit_text(&program, &launch.shape(), &cpu, codegen::Text::Ir).unwrap();
            let registers = cpu.registers();
            // Two registers of a value become one where that is enough.
            let crowded = match registers.bytes {
                64 => count == 24,
                bytes => count * 128 / bytes > registers.count,
            };
            assert!(!crowded || !text.contains("<32 x float>"), "{count} sums on {}", cpu.name());
            assert!(
                crowded || registers.bytes < 64 || text.contains("<32 x float>"),
                "{count} sums on {}",
                cpu.name()
            );
            for choice in [Choice::WhereItPays, Choice::InStrips, Choice::ForLessCode] {
                let mut got = words();
                let compiled = launch.compile_in_gangs(&program, &cpu, choice).unwrap();
                launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
                assert!(got == expected, "{count} sums on {}, {choice:?}", cpu.name());
            }
        }
    }
}

/// Sums of a block's numbers, by shuffles in each warp and then by its first: thread t begins with number t, and goes on in steps of 96 up to
/// `n`. What each thread has is added to one of five counts in shared memory as well, and both come to `out`.
fn reduction(n: u32) -> Program {
    let mut k = Kernel { b: FunctionBuilder::new("kernel", Signature::default()) };
    let data = k.param(0, Type::I64);
    let shared = Access::weak(Space::Shared, 0);
    let tid = k.reg(SpecialReg::Tid(0));
    let end = k.param(8, Type::I32);
    let (step, zero, two) = (k.i32(96), k.i32(0), k.i32(2));
    let (sum, at) = (k.b.var(Type::I32), k.b.var(Type::I32));
    k.b.write(sum, zero);
    k.b.write(at, tid);
    let count_of = |k: &mut Kernel, number: Value| {
        let five = k.i32(5);
        let count = k.int(IntBinary::RemU, number, five);
        k.b.inst(Op::Shift(Shift::Left), &[count, two], Type::I32)
    };
    let few = k.i32(5);
    let clears = k.b.inst(Op::IntCmp(IntCmp::LtU), &[tid, few], Type::Pred);
    k.when(clears, |k| {
        let place = count_of(k, tid);
        k.b.effect(Op::Store(shared), &[place, zero]);
    });
    k.barrier();
    let some = k.b.inst(Op::IntCmp(IntCmp::LtU), &[tid, end], Type::Pred);
    k.when(some, |k| {
        let (head, done) = (k.b.block(), k.b.block());
        k.b.terminate(Terminator::Jump(Target::new(head)));
        k.b.switch_to(head);
        let index = k.b.read(at);
        let place = k.element(data, zero, zero, index);
        let number = k.b.inst(Op::Load(Access::weak(Space::Global, 0)), &[place], Type::I32);
        let so_far = k.b.read(sum);
        let next = k.int(IntBinary::Add, so_far, number);
        k.b.write(sum, next);
        let count = count_of(k, number);
        k.b.effect(Op::Atomic(AtomicOp::Add, Access { order: Order::Relaxed, ..shared }), &[count, number]);
        let next = k.int(IntBinary::Add, index, step);
        k.b.write(at, next);
        let cond = k.b.inst(Op::IntCmp(IntCmp::LtU), &[next, end], Type::Pred);
        let (then, otherwise) = (Target::new(head), Target::new(done));
        k.b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        k.b.switch_to(done);
    });
    let of_warp = |k: &mut Kernel, sum: Var, mode: ShuffleMode| {
        let (clamp, all) = (k.i32(31), k.i32(u32::MAX));
        for distance in [16, 8, 4, 2, 1] {
            let distance = k.i32(distance);
            let own = k.b.read(sum);
            let results =
                k.b.insts(Op::Shuffle(mode), &[own, distance, clamp, all], &[Type::I32, Type::Pred]);
            let other = k.b.inst(Op::Select, &[results[1], results[0], zero], Type::I32);
            let both = k.int(IntBinary::Add, own, other);
            k.b.write(sum, both);
        }
    };
    of_warp(&mut k, sum, ShuffleMode::Bfly);
    let (mask, five, one_warp) = (k.i32(31), k.i32(5), k.i32(32));
    let lane = k.int(IntBinary::And, tid, mask);
    let warp = k.b.inst(Op::Shift(Shift::RightU), &[tid, five], Type::I32);
    let part = k.b.inst(Op::Shift(Shift::Left), &[warp, two], Type::I32);
    let parts = Access { offset: 64, ..shared };
    let first = k.b.inst(Op::IntCmp(IntCmp::Eq), &[lane, zero], Type::Pred);
    k.when(first, |k| {
        let own = k.b.read(sum);
        k.b.effect(Op::Store(parts), &[part, own]);
    });
    k.barrier();
    let in_first = k.b.inst(Op::IntCmp(IntCmp::LtU), &[tid, one_warp], Type::Pred);
    k.when(in_first, |k| {
        let warps = k.reg(SpecialReg::Ntid(0));
        let warps = k.b.inst(Op::Shift(Shift::RightU), &[warps, five], Type::I32);
        let used = k.b.inst(Op::IntCmp(IntCmp::LtU), &[tid, warps], Type::Pred);
        k.b.write(sum, zero);
        k.when(used, |k| {
            let own = k.b.inst(Op::Shift(Shift::Left), &[tid, two], Type::I32);
            let part = k.b.inst(Op::Load(parts), &[own], Type::I32);
            k.b.write(sum, part);
        });
        of_warp(k, sum, ShuffleMode::Down);
        let total = k.b.read(sum);
        let place = k.element(data, zero, zero, tid);
        k.b.effect(Op::Store(Access::weak(Space::Global, i64::from(4 * n))), &[place, total]);
    });
    k.when(clears, |k| {
        let from = count_of(k, tid);
        let count = k.b.inst(Op::Load(shared), &[from], Type::I32);
        let place = k.element(data, zero, zero, tid);
        k.b.effect(Op::Store(Access::weak(Space::Global, i64::from(4 * n + 128))), &[place, count]);
    });
    k.b.terminate(Terminator::Exit);
    k.program(16, 256)
}

#[test]
fn sums_by_shuffles_run_in_gangs() {
    for threads in [32, 64, 128, 256, 512] {
        let n = 4000;
        let program = reduction(n);
        let launch = Launch { grid: [1, 1, 1], block: [threads, 1, 1] };
        let start: Vec<u32> = (0..n + 64).map(|i| i.wrapping_mul(0x9e37_79b9) >> 5).collect();
        let mut expected = start.clone();
        launch.interpret(&program, &[expected.as_mut_ptr() as u64, n.into()]).unwrap();
        for cpu in launch::cpus() {
            let compiled = launch.compile(&program, &cpu).unwrap();
            if cpu.registers().bytes == 64 {
                assert_eq!(compiled.info.gang, (threads / 32).min(8), "{threads} threads on {}", cpu.name());
            }
            for compiled in [compiled, launch.compile_in_gangs(&program, &cpu, Choice::Always).unwrap()] {
                let mut got = start.clone();
                launch.run(&compiled, &[got.as_mut_ptr() as u64, n.into()]).unwrap();
                let gang = compiled.info.gang;
                assert!(got == expected, "{threads} threads in gangs of {gang} on {}", cpu.name());
            }
        }
    }
}

/// Each thread's number goes through so many steps, each a product and a quotient of what the one before gives; then, where `parted`, that of one
/// half of the threads through as many again. Where they meet, they get their numbers by way of shared memory, and there are no quotients.
fn formula(steps: u32, parted: bool, meet: bool) -> Program {
    let mut k = Kernel { b: FunctionBuilder::new("kernel", Signature::default()) };
    let base = k.param(0, Type::I64);
    let [block, size, tid] =
        [SpecialReg::CtaId(0), SpecialReg::Ntid(0), SpecialReg::Tid(0)].map(|reg| k.reg(reg));
    // The second row of a block begins behind all first rows.
    let (y, blocks) = (k.reg(SpecialReg::Tid(1)), k.i32(3));
    let row = k.int(IntBinary::Mul, y, blocks);
    let row = k.int(IntBinary::Add, row, block);
    let place = k.element(base, row, size, tid);
    let global = Access::weak(Space::Global, 0);
    let number = k.b.var(Type::F32);
    let first = k.b.inst(Op::Load(global), &[place], Type::F32);
    k.b.write(number, first);
    if meet {
        let (four, none) = (k.i32(4), k.i32(0));
        let own = k.int(IntBinary::Mul, tid, four);
        let shared = Access::weak(Space::Shared, 0);
        k.b.effect(Op::Store(shared), &[own, first]);
        k.b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[none]);
        let given = k.b.inst(Op::Load(shared), &[own], Type::F32);
        k.b.write(number, given);
    }
    let [half, three] = [0.5f32, 3.0].map(|value| k.b.constant(Type::F32, value.to_bits().into()));
    let calculate = |k: &mut Kernel| {
        for _ in 0..steps {
            let value = k.b.read(number);
            let product = k.b.inst(Op::Fma(FloatMode::default()), &[value, half, three], Type::F32);
            if meet {
                k.b.write(number, product);
                continue;
            }
            let divide = Op::Float(FloatBinary::Div, FloatMode::default());
            let quotient = k.b.inst(divide, &[three, product], Type::F32);
            k.b.write(number, quotient);
        }
    };
    calculate(&mut k);
    if parted {
        let one = k.i32(1);
        let odd = k.int(IntBinary::And, tid, one);
        let odd = k.b.inst(Op::IntCmp(IntCmp::Eq), &[odd, one], Type::Pred);
        k.when(odd, calculate);
    }
    let result = k.b.read(number);
    k.b.effect(Op::Store(global), &[place, result]);
    k.b.terminate(Terminator::Exit);
    k.program(8, if meet { 1024 } else { 0 })
}

/// Computes a formula everywhere, which must come to the same, in gangs of so many warps where registers have 64 bytes. Elsewhere warps that do not meet
/// run by themselves.
fn runs_in_gangs_of(wanted: u32, launch: Launch, steps: u32, parted: bool, meet: bool) {
    let program = formula(steps, parted, meet);
    let threads: u32 = launch.block.iter().chain([&launch.grid[0]]).product();
    let numbers = || (0..threads).map(|i| (i as f32 - 100.0).to_bits()).collect::<Vec<_>>();
    let mut expected = numbers();
    launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
    for cpu in &launch::cpus() {
        let compiled = launch.compile(&program, cpu).unwrap();
        let mut got = numbers();
        launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
        let what = format!("{launch:?}, {steps} steps, parted: {parted}, on {}", cpu.name());
        assert!(got == expected, "{what}");
        match cpu.registers().bytes {
            64 => assert_eq!(compiled.info.gang, wanted, "{what}"),
            _ if !meet => assert_eq!(compiled.info.gang, 1, "{what}"),
            _ => {}
        }
    }
}

#[test]
fn warps_that_meet_hide_the_latency_of_a_long_formula() {
    let launch = Launch { grid: [2, 1, 1], block: [256, 1, 1] };
    runs_in_gangs_of(8, launch, 120, false, true);
    runs_in_gangs_of(1, launch, 120, true, true);
}

#[test]
fn two_warps_hide_the_latency_of_a_long_formula() {
    let wide = Launch { grid: [3, 1, 1], block: [128, 1, 1] };
    let odd = Launch { block: [96, 1, 1], ..wide };
    let rows = Launch { block: [64, 2, 1], ..wide };
    runs_in_gangs_of(2, wide, 40, false, false);
    // The processor sees what comes next by itself.
    runs_in_gangs_of(1, wide, 4, false, false);
    // More lanes go one way or the other less often.
    runs_in_gangs_of(1, wide, 40, true, false);
    runs_in_gangs_of(1, odd, 40, false, false);
    runs_in_gangs_of(1, rows, 40, false, false);
}

/// A kernel whose threads compute so many numbers, a long formula of the first, and add the others to it in the end: until then all of them are kept.
fn long_with_much_kept(kept: i64, steps: u32) -> Program {
    let mut k = Kernel { b: FunctionBuilder::new("kernel", Signature::default()) };
    let (data, tid, none) = (k.param(0, Type::I64), k.reg(SpecialReg::Tid(0)), k.i32(0));
    let place = k.element(data, none, none, tid);
    let at = |index: i64| Access::weak(Space::Global, index * 4 * 64);
    let [half, three] = [0.5f32, 3.0].map(|value| k.b.constant(Type::F32, value.to_bits().into()));
    let number = |k: &mut Kernel, index: i64| {
        let loaded = k.b.inst(Op::Load(at(index)), &[place], Type::F32);
        k.b.inst(Op::Fma(FloatMode::default()), &[loaded, half, three], Type::F32)
    };
    let own: Vec<Value> = (0..kept).map(|index| number(&mut k, index)).collect();
    let mut value = own[0];
    for _ in 0..steps {
        let product = k.b.inst(Op::Fma(FloatMode::default()), &[value, half, three], Type::F32);
        let divide = Op::Float(FloatBinary::Div, FloatMode::default());
        value = k.b.inst(divide, &[three, product], Type::F32);
    }
    for other in &own[1..] {
        value = k.b.inst(Op::Fma(FloatMode::default()), &[value, half, *other], Type::F32);
    }
    k.b.effect(Op::Store(at(0)), &[place, value]);
    k.b.terminate(Terminator::Exit);
    k.program(8, 0)
}

#[test]
fn strips_are_of_two_registers_where_one_would_wait() {
    let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1] };
    let words: Vec<u64> =
        (0..12 * 32).map(|at| u64::from((at as f32 / 7.0).to_bits()) << 32 | 0x3f80_0000).collect();
    let lanes = |program: &Program| {
        let cpu = Cpu::level_cpu(Level::Avx2);
        let text = codegen::emit_text(program, &launch.shape(), &cpu, Text::OptimizedIr).unwrap();
        [8, 16, 32].map(|lanes| text.contains(&format!("fdiv <{lanes} x float>")))
    };
    for (kept, steps, wanted) in [
        (2, 40, [false, false, true]),
        (6, 40, [false, true, false]),
        (12, 40, [false, true, false]),
        (12, 3, [true, false, false]),
    ] {
        let program = long_with_much_kept(kept, steps);
        launch.must_agree(
            &program,
            &words,
            |words| [words.as_mut_ptr() as u64],
            format_args!("{kept} kept, {steps} steps"),
        );
        assert_eq!(lanes(&program), wanted, "{kept} kept, {steps} steps");
    }
}
