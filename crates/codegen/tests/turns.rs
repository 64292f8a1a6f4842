//! Loops over the grid, in which warps take turns, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

/// A thread for each element from its own number on, in steps: `out[i] = 3 × in[i] + turn`, where turns count from 0.
#[derive(Clone, Copy, Debug)]
struct Kernel {
    step: Step,
    /// What else it does.
    extra: Extra,
    /// Elements in each iteration, a step apart.
    unrolled: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// As many as the grid has threads.
    Grid,
    /// So many.
    Constant(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Extra {
    Nothing,
    /// In each iteration, the sum is taken of elements from the thread's own on, as many as the number's last bits say.
    InnerLoop,
    /// Threads whose number ends so are done after their first iteration.
    Leave(u64),
    /// The thread's sum of all elements is stored after them.
    Sum,
    /// The second half of the elements is done in a loop of its own.
    Twice,
    /// What is loaded is counted in memory.
    Count,
    /// It goes by way of the block's memory.
    Shared,
    /// It goes by way of the thread's memory.
    Local,
}

const PLAIN: Kernel = Kernel { step: Step::Grid, extra: Extra::Nothing, unrolled: 1 };

struct Parts {
    b: FunctionBuilder,
    data: Value,
    out: Value,
    step: Value,
    turn: Var,
    sum: Var,
}

impl Parts {
    fn int(&mut self, op: IntBinary, left: Value, right: Value) -> Value {
        self.b.inst(Op::Int(op), &[left, right], Type::I32)
    }

    fn add(&mut self, left: Value, right: Value) -> Value {
        self.int(IntBinary::Add, left, right)
    }

    fn number(&mut self, number: u64) -> Value {
        self.b.constant(Type::I32, number)
    }

    fn place(&mut self, array: Value, index: Value) -> Value {
        let wide = self.b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
        let four = self.b.constant(Type::I64, 4);
        let distance = self.b.inst(Op::Int(IntBinary::Mul), &[wide, four], Type::I64);
        self.b.inst(Op::Int(IntBinary::Add), &[array, distance], Type::I64)
    }

    fn branch(&mut self, cond: Value, then: Block, otherwise: Block) {
        let (then, otherwise) = (Target::new(then), Target::new(otherwise));
        self.b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    }

    fn is_below(&mut self, left: Value, right: Value) -> Value {
        self.b.inst(Op::IntCmp(IntCmp::LtS), &[left, right], Type::Pred)
    }

    fn element(&mut self, extra: Extra, index: Value) {
        let global = Access::weak(Space::Global, 0);
        let from = self.place(self.data, index);
        let mut loaded = self.b.inst(Op::Load(global), &[from], Type::I32);
        match extra {
            Extra::InnerLoop => {
                let (sum, at) = (self.b.var(Type::I32), self.b.var(Type::I32));
                let [zero, one, three] = [0, 1, 3].map(|number| self.number(number));
                self.b.write(sum, loaded);
                self.b.write(at, zero);
                let count = self.int(IntBinary::And, index, three);
                let (inner, after) = (self.b.block(), self.b.block());
                self.b.terminate(Terminator::Jump(Target::new(inner)));
                self.b.switch_to(inner);
                let now = self.b.read(at);
                let value = self.b.read(sum);
                let more = self.add(value, now);
                self.b.write(sum, more);
                let next = self.add(now, one);
                self.b.write(at, next);
                let cond = self.is_below(next, count);
                self.branch(cond, inner, after);
                self.b.switch_to(after);
                loaded = self.b.read(sum);
            }
            Extra::Sum => {
                let sum = self.b.read(self.sum);
                let sum = self.add(sum, loaded);
                self.b.write(self.sum, sum);
            }
            Extra::Count => {
                let one = self.number(1);
                self.b.effect(Op::Atomic(AtomicOp::Add, Access::weak(Space::Global, -4)), &[self.out, one]);
            }
            Extra::Shared | Extra::Local => {
                let space = if extra == Extra::Shared { Space::Shared } else { Space::Local };
                let place = match extra {
                    Extra::Shared => {
                        let tid = self.b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
                        let four = self.number(4);
                        self.int(IntBinary::Mul, tid, four)
                    }
                    _ => self.b.constant(Type::I64, 0),
                };
                self.b.effect(Op::Store(Access::weak(space, 0)), &[place, loaded]);
                loaded = self.b.inst(Op::Load(Access::weak(space, 0)), &[place], Type::I32);
            }
            Extra::Nothing | Extra::Leave(_) | Extra::Twice => {}
        }
        let three = self.number(3);
        let product = self.int(IntBinary::Mul, loaded, three);
        let turn = self.b.read(self.turn);
        let result = self.add(product, turn);
        let to = self.place(self.out, index);
        self.b.effect(Op::Store(global), &[to, result]);
    }

    /// Elements from `first` up to `limit`, exclusive.
    fn elements(&mut self, kernel: Kernel, first: Value, limit: Value) {
        let index = self.b.var(Type::I32);
        self.b.write(index, first);
        let (body, after) = (self.b.block(), self.b.block());
        let any = self.is_below(first, limit);
        self.branch(any, body, after);
        self.b.switch_to(body);
        let mut at = self.b.read(index);
        for _ in 0..kernel.unrolled {
            self.element(kernel.extra, at);
            at = self.add(at, self.step);
        }
        self.b.write(index, at);
        let one = self.number(1);
        let turn = self.b.read(self.turn);
        let turn = self.add(turn, one);
        self.b.write(self.turn, turn);
        let mut more = self.is_below(at, limit);
        if let Extra::Leave(bits) = kernel.extra {
            let [mask, bits] = [7, bits].map(|number| self.number(number));
            let own = self.int(IntBinary::And, at, mask);
            let stays = self.b.inst(Op::IntCmp(IntCmp::Ne), &[own, bits], Type::Pred);
            more = self.b.inst(Op::Int(IntBinary::And), &[more, stays], Type::Pred);
        }
        self.branch(more, body, after);
        self.b.switch_to(after);
    }
}

fn program(kernel: Kernel) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let (data, out) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I64));
    let limit = param(&mut b, 16, Type::I32);
    let special = |b: &mut FunctionBuilder, reg| b.inst(Op::SpecialReg(reg), &[], Type::I32);
    let [tid, ntid, ctaid, nctaid] =
        [SpecialReg::Tid(0), SpecialReg::Ntid(0), SpecialReg::CtaId(0), SpecialReg::NctaId(0)]
            .map(|reg| special(&mut b, reg));
    let step = match kernel.step {
        Step::Grid => b.inst(Op::Int(IntBinary::Mul), &[ntid, nctaid], Type::I32),
        Step::Constant(step) => b.constant(Type::I32, step),
    };
    let (turn, sum) = (b.var(Type::I32), b.var(Type::I32));
    let none = b.constant(Type::I32, 0);
    b.write(turn, none);
    b.write(sum, none);
    let mut parts = Parts { b, data, out, step, turn, sum };
    let before = parts.int(IntBinary::Mul, ctaid, ntid);
    let first = parts.add(before, tid);
    match kernel.extra {
        Extra::Twice => {
            let one = parts.number(1);
            let middle = parts.b.inst(Op::Shift(Shift::RightU), &[limit, one], Type::I32);
            parts.elements(kernel, first, middle);
            let first = parts.add(first, middle);
            parts.b.write(turn, none);
            parts.elements(kernel, first, limit);
        }
        _ => parts.elements(kernel, first, limit),
    }
    if kernel.extra == Extra::Sum {
        let own = parts.add(first, limit);
        let own = parts.add(own, step);
        let place = parts.place(parts.out, own);
        let sum = parts.b.read(parts.sum);
        parts.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, sum]);
    }
    let mut b = parts.b;
    b.terminate(Terminator::Exit);
    let mut function = b.finish();
    if kernel.extra == Extra::Local {
        function.local_bytes = 16;
    }
    let program = Program {
        functions: vec![function],
        param_bytes: 20,
        shared_bytes: if kernel.extra == Extra::Shared { 4096 } else { 0 },
        ..Program::default()
    };
    verify(&program).expect("the kernel is well formed");
    program
}

const EXTRAS: [Extra; 9] = [
    Extra::Nothing,
    Extra::InnerLoop,
    Extra::Leave(3),
    Extra::Leave(0),
    Extra::Sum,
    Extra::Twice,
    Extra::Count,
    Extra::Shared,
    Extra::Local,
];

/// Whether compiled code leaves behind what the interpreter does, whatever the number of elements.
fn agrees(kernel: Kernel, launch: Launch) {
    let program = program(kernel);
    let compiled: Vec<_> =
        launch::cpus().into_iter().map(|cpu| (launch.compile(&program, &cpu).unwrap(), cpu)).collect();
    let threads = launch.grid[0] * launch.block[0];
    for limit in [0, 31, threads, 4 * threads - 17] {
        let room = u64::from(limit + 4 * threads);
        let words: Vec<u64> = (0..2 * room + 1).map(|at| at.wrapping_mul(0x1234_5679_0135)).collect();
        let left = |run: &dyn Fn(&[u64])| {
            let mut words = words.clone();
            let start = words.as_mut_ptr() as u64;
            run(&[start, start + 8 * (room + 1), limit.into()]);
            words
        };
        let expected = left(&|params| launch.interpret(&program, params).unwrap());
        for (compiled, cpu) in &compiled {
            let got = left(&|params| launch.run(compiled, params).unwrap());
            assert!(got == expected, "{kernel:?}, {launch:?}, {limit} on {}", cpu.name());
        }
    }
}

#[test]
fn each_element_is_done_once_in_its_turn() {
    for extra in EXTRAS {
        agrees(Kernel { extra, ..PLAIN }, Launch { grid: [3, 1, 1], block: [96, 1, 1] });
    }
    agrees(Kernel { unrolled: 3, ..PLAIN }, Launch { grid: [3, 1, 1], block: [64, 1, 1] });
    // More warps than take turns at once, one, and those that are not whole.
    let shapes = [
        ([700, 2, 1], [256, 1, 1]),
        ([1, 1, 1], [32, 1, 1]),
        ([3, 1, 1], [40, 1, 1]),
        ([2, 1, 1], [32, 5, 1]),
    ];
    for (grid, block) in shapes {
        agrees(Kernel { extra: Extra::Leave(3), ..PLAIN }, Launch { grid, block });
    }
}

#[test]
fn warps_take_turns_where_only_the_order_tells() {
    let shape = kernel_abi::Shape::of([8, 1, 1], [256, 1, 1]);
    let cpu = Cpu::level_cpu(Level::Avx512);
    let in_turns = |kernel: Kernel| {
        codegen::emit_text(&program(kernel), &shape, &cpu, Text::Ir).unwrap().contains("\nround:")
    };
    assert!(in_turns(PLAIN) && in_turns(Kernel { unrolled: 4, ..PLAIN }));
    for extra in EXTRAS {
        // Sums are vectors that would go to memory and back in each turn; the others are in one place for all blocks, or show who was first.
        let not = matches!(extra, Extra::Sum | Extra::Count | Extra::Shared | Extra::Local);
        assert_eq!(in_turns(Kernel { extra, ..PLAIN }), !not, "{extra:?}");
    }
    assert!(!in_turns(Kernel { step: Step::Constant(1), ..PLAIN }));
}

#[test]
fn two_warps_share_a_turn() {
    let shape = kernel_abi::Shape::of([8, 1, 1], [256, 1, 1]);
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text =
        |extra| codegen::emit_text(&program(Kernel { extra, ..PLAIN }), &shape, &cpu, Text::Ir).unwrap();
    assert!(text(Extra::Nothing).contains("<64 x i32>"));
    // Lanes leave the inner loop one by one.
    assert!(!text(Extra::InnerLoop).contains("<64 x i32>"));
}

#[test]
fn warps_that_keep_sums_and_cannot_take_turns_run_in_gangs() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = |kernel, block| {
        let shape = kernel_abi::Shape::of([8, 1, 1], block);
        codegen::emit_text(&program(kernel), &shape, &cpu, Text::Ir).unwrap()
    };
    let sums = Kernel { extra: Extra::Sum, ..PLAIN };
    assert!(text(sums, [256, 1, 1]).contains("<256 x i32>"));
    assert!(text(sums, [192, 1, 1]).contains("<64 x i32>"));
    // The next piece is not far away.
    assert!(!text(Kernel { step: Step::Constant(1), ..sums }, [256, 1, 1]).contains("<64 x i32>"));
    for (grid, block) in [([5, 1, 1], [256, 1, 1]), ([3, 1, 1], [192, 1, 1])] {
        agrees(sums, Launch { grid, block });
    }
}

#[test]
fn what_a_long_loop_stores_passes_by_the_caches() {
    let launch = Launch { grid: [4, 1, 1], block: [256, 1, 1] };
    let program = program(PLAIN);
    let count = (8 << 20) + 45;
    let threads = launch.grid[0] * launch.block[0];
    let words: Vec<u32> = (0..count).map(|at: u32| at.wrapping_mul(0x9e37_79b9)).collect();
    for cpu in launch::cpus() {
        let compiled = launch.compile(&program, &cpu).unwrap();
        let mut out = vec![0_u32; count as usize + 16];
        let first = (out.as_ptr() as usize).next_multiple_of(64) - out.as_ptr() as usize;
        let own = &mut out[first / 4..];
        launch.run(&compiled, &[words.as_ptr() as u64, own.as_mut_ptr() as u64, count.into()]).unwrap();
        let done = own.iter().zip(&words).zip(0..);
        let wrong =
            done.filter(|((got, word), at)| **got != word.wrapping_mul(3).wrapping_add(at / threads)).count();
        assert_eq!((wrong, own[count as usize]), (0, 0), "{}", cpu.name());
    }
    #[cfg(target_arch = "x86_64")]
    {
        let cpu = Cpu::level_cpu(Level::Avx512);
        let text = codegen::emit_text(&program, &launch.shape(), &cpu, Text::Assembly).unwrap();
        assert!(text.contains("movnt") && text.contains("sfence"), "{text}");
    }
}

/// A loop over the grid as compilers unroll it: first the iterations that do not fill two, then two at a time. Each element has its index added.
const UNROLLED: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 data, .param .u64 out, .param .u32 limit)
{
    .reg .b32 i, n, step, trips, left, v, t;
    .reg .b64 in, o, a, b, bytes;
    .reg .pred p;
    ld.param.u64 in, [data];
    ld.param.u64 o, [out];
    ld.param.u32 n, [limit];
    mov.u32 t, %ctaid.x;
    mov.u32 step, %ntid.x;
    mov.u32 i, %tid.x;
    mad.lo.u32 i, t, step, i;
    setp.ge.s32 p, i, n;
    @p bra done;
    mov.u32 t, %nctaid.x;
    mul.lo.u32 step, step, t;
    mul.wide.s32 bytes, step, 4;
    not.b32 v, i;
    add.u32 v, v, n;
    div.u32 trips, v, step;
    add.u32 left, trips, 1;
    and.b32 left, left, 1;
    setp.eq.u32 p, left, 0;
    @p bra two;
    mul.wide.s32 a, i, 4;
    add.u64 b, a, o;
    add.u64 a, a, in;
one:
    ld.global.u32 v, [a];
    add.u32 v, v, i;
    st.global.u32 [b], v;
    add.u32 i, i, step;
    add.u64 a, a, bytes;
    add.u64 b, b, bytes;
    add.u32 left, left, -1;
    setp.ne.u32 p, left, 0;
    @p bra one;
two:
    setp.lt.u32 p, trips, 1;
    @p bra done;
again:
    mul.wide.s32 a, i, 4;
    add.u64 b, a, o;
    add.u64 a, a, in;
    ld.global.u32 v, [a];
    add.u32 v, v, i;
    st.global.u32 [b], v;
    add.u64 a, a, bytes;
    add.u64 b, b, bytes;
    add.u32 i, i, step;
    ld.global.u32 v, [a];
    add.u32 v, v, i;
    st.global.u32 [b], v;
    add.u32 i, i, step;
    setp.lt.s32 p, i, n;
    @p bra again;
done:
    ret;
}";

#[test]
fn warps_take_turns_in_loops_that_compilers_unrolled() {
    let program = launch::kernel_of(UNROLLED);
    let shape = kernel_abi::Shape::of([8, 1, 1], [256, 1, 1]);
    let text = codegen::emit_text(&program, &shape, &Cpu::level_cpu(Level::Avx512), Text::Ir).unwrap();
    assert!(text.contains("\nround:"));
    let launch = Launch { grid: [3, 1, 1], block: [64, 1, 1] };
    // As many elements for all threads, one more for all lanes of a warp, and for some.
    for limit in [0u64, 7, 192, 384, 448, 401, 1000] {
        let words: Vec<u64> = (0..1000u64).map(|at| at.wrapping_mul(0x1234_5679_0135)).collect();
        let args = |words: &mut [u64]| {
            let start = words.as_mut_ptr() as u64;
            [start, start + 4000, limit]
        };
        launch.must_agree(&program, &words, args, format_args!("{limit} elements"));
    }
}
