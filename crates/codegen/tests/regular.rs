//! Indices that are computed from places of threads by masks and quotients that are not known: consecutive or not as the numbers have it.
//! Against the interpreter.

mod launch;

use codegen::target::{Cpu, Level};
use codegen::{Choice, Text};
use launch::Launch;
use simt_ir::*;

const THREADS: u32 = 256;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// An index from a thread's and the kernel's number, and the address of what is given.
type Index = fn(&mut FunctionBuilder, Value, Value, Value) -> Value;

fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
    let ty = b.func().ty(x);
    b.inst(Op::Int(op), &[x, y], ty)
}

/// As in a sorting network: the first of a pair that lies so far apart.
const PAIRS: Index = |b, tid, number, _| {
    let one = b.constant(Type::I32, 1);
    let mask = int(b, IntBinary::Sub, number, one);
    let (low, twice) = (int(b, IntBinary::And, tid, mask), int(b, IntBinary::Add, tid, tid));
    int(b, IntBinary::Sub, twice, low)
};

/// As in a matrix of so many columns whose rows are somewhat longer.
const ROWS: Index = |b, tid, number, _| {
    let row = int(b, IntBinary::DivU, tid, number);
    let three = b.constant(Type::I32, 3);
    let gaps = int(b, IntBinary::Mul, row, three);
    int(b, IntBinary::Add, tid, gaps)
};

/// As in a sorting network, at the end of what 32 bits hold: from a thread in the middle of a warp on, indices are negative.
const ACROSS: Index = |b, tid, number, data| {
    let first = PAIRS(b, tid, number, data);
    let far = b.constant(Type::I32, u64::from(i32::MAX as u32 - FAR + 1));
    int(b, IntBinary::Add, first, far)
};

/// Indices that are not negative yet.
const FAR: u32 = 80;

/// Whatever was given.
const GIVEN: Index = |b, tid, _, data| {
    let address = element(b, data, tid);
    let given = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[address], Type::I32);
    let last = b.constant(Type::I32, u64::from(THREADS) - 1);
    int(b, IntBinary::And, given, last)
};

fn element(b: &mut FunctionBuilder, base: Value, index: Value) -> Value {
    let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
    let four = b.constant(Type::I64, 4);
    let bytes = int(b, IntBinary::Mul, wide, four);
    int(b, IntBinary::Add, base, bytes)
}

/// Threads below a limit take the element with their index, in shared memory or not, and leave a sum at the same index of the result.
fn kernel(index: Index, shared: bool) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let (data, out) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I64));
    let (number, limit) = (param(&mut b, 16, Type::I32), param(&mut b, 20, Type::I32));
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let index = index(&mut b, tid, number, data);
    let (some, end) = (b.block(), b.block());
    let cond = b.inst(Op::IntCmp(IntCmp::LtS), &[tid, limit], Type::Pred);
    let (then, otherwise) = (Target::new(some), Target::new(end));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    b.switch_to(some);
    let from = element(&mut b, data, index);
    let mut value = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[from], Type::I32);
    if shared {
        let four = b.constant(Type::I32, 4);
        let place = int(&mut b, IntBinary::Mul, index, four);
        b.effect(Op::Store(Access::weak(Space::Shared, 8)), &[place, value]);
        value = b.inst(Op::Load(Access::weak(Space::Shared, 8)), &[place], Type::I32);
    }
    let value = int(&mut b, IntBinary::Add, value, tid);
    let to = element(&mut b, out, index);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[to, value]);
    b.terminate(Terminator::Jump(Target::new(end)));
    b.switch_to(end);
    b.terminate(Terminator::Exit);
    let functions = vec![b.finish()];
    let program =
        Program { functions, param_bytes: 24, shared_bytes: 8192, shared_align: 16, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn elements_come_from_where_their_indices_say() {
    const WORDS: u64 = 1024;
    let words: Vec<u64> =
        (0..2 * WORDS).map(|at| if at < WORDS { at * 0x9e37_79b9_7f4a } else { 0 }).collect();
    let indices = [
        ("pairs", PAIRS, &[1, 2, 16, 32, 64, 256][..]),
        ("rows", ROWS, &[1, 7, 15, 17, 22, 31, 32, 64, 200, 500]),
    ];
    for (name, index, numbers) in indices {
        for shared in [false, true] {
            let program = kernel(index, shared);
            let mut compiled = Vec::new();
            for cpu in launch::cpus() {
                for choice in [Choice::WhereItPays, Choice::Always] {
                    let code = LAUNCH.compile_in_gangs(&program, &cpu, choice).unwrap();
                    compiled.push((code, format!("{choice:?} in gangs on {}", cpu.name())));
                }
            }
            for &number in numbers {
                for limit in [0, 1, 45, 250, 256_u64] {
                    let params = |words: &mut [u64]| {
                        let start = words.as_mut_ptr() as u64;
                        [start, start + 8 * WORDS, number | limit << 32]
                    };
                    let mut expected = words.clone();
                    LAUNCH.interpret(&program, &params(&mut expected)).unwrap();
                    for (code, how) in &compiled {
                        let mut got = words.clone();
                        LAUNCH.run(code, &params(&mut got)).unwrap();
                        assert!(got == expected, "{name} by {number}, {limit} threads, {shared}, {how}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_follows_from_places_alone_may_be_one_access() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = |index, shared| {
        let program = kernel(index, shared);
        codegen::emit_text(&program, &LAUNCH.shape().alone(), &cpu, Text::OptimizedIr).unwrap()
    };
    let accesses = |text: &str| {
        ["@llvm.masked.load.", "@llvm.masked.store.", "@llvm.masked.gather.", "@llvm.masked.scatter."].map(
            |name| text.lines().filter(|line| line.contains(name) && !line.starts_with("declare")).count(),
        )
    };
    // Where only some threads are below the limit; where all are, vectors need no mask, and there are as many gathers and scatters again.
    // Where lanes are not all side by side, each half of a warp may be in two runs, or else in two registers.
    assert_eq!(accesses(&text(PAIRS, false)), [1 + 2 * (4 + 4), 1, 2, 2]);
    // A warp that lies in one row has code of its own.
    assert_eq!(accesses(&text(ROWS, true)), [2 + 4 * (4 + 4) + 1, 2 + 2, 4, 4]);
    assert_eq!(accesses(&text(GIVEN, false)), [0, 0, 2, 2]);
}

/// Memory for every index of 32 bits, of which little is ever touched.
struct Everywhere {
    start: *mut libc::c_void,
}

impl Everywhere {
    const HALF: usize = 4 << 31;
    /// Behind the highest index, and for a second array in the same memory.
    const MORE: usize = 1 << 14;

    fn new() -> Everywhere {
        let (read_write, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping where the system likes.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), 2 * Self::HALF + Self::MORE, read_write, flags, -1, 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        Everywhere { start }
    }

    /// The words around the lowest and around the highest index.
    fn ends(&mut self) -> [&mut [u32]; 2] {
        let at = |byte: usize, bytes: usize| {
            // SAFETY: inside the mapping, aligned, and apart from the other end, which is borrowed as long.
            unsafe { std::slice::from_raw_parts_mut(self.start.cast::<u8>().add(byte).cast(), bytes / 4) }
        };
        [at(0, Self::MORE), at(2 * Self::HALF - Self::MORE, 2 * Self::MORE)]
    }

    /// The element with index 0.
    fn middle(&self) -> u64 {
        self.start as u64 + Self::HALF as u64
    }
}

impl Drop for Everywhere {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing of it is borrowed.
        unsafe { libc::munmap(self.start, 2 * Self::HALF + Self::MORE) };
    }
}

#[test]
fn lanes_on_both_sides_of_the_highest_index_are_not_side_by_side() {
    let program = kernel(ACROSS, false);
    let left = |run: &dyn Fn(&[u64; 3])| {
        let mut memory = Everywhere::new();
        for (word, at) in memory.ends().into_iter().flatten().zip(1u32..) {
            *word = at.wrapping_mul(0x9e37_79b9);
        }
        // In one array they are apart by the block's size, so that all that is written is elsewhere than what is read.
        let (data, out) = (memory.middle(), memory.middle() + u64::from(8 * THREADS));
        run(&[data, out, u64::from(THREADS) | u64::from(THREADS) << 32]);
        memory.ends().concat()
    };
    let expected = left(&|params| LAUNCH.interpret(&program, params).unwrap());
    for cpu in launch::cpus() {
        for choice in [Choice::WhereItPays, Choice::Always] {
            let code = LAUNCH.compile_in_gangs(&program, &cpu, choice).unwrap();
            let got = left(&|params| LAUNCH.run(&code, params).unwrap());
            assert!(got == expected, "{choice:?} in gangs on {}", cpu.name());
        }
    }
}
