//! Small kernels as machine code, against the interpreter and plain computations.

mod launch;

use codegen::Plan;
use codegen::target::Cpu;
use launch::Launch;
use simt_ir::*;

struct Kernel {
    b: FunctionBuilder,
}

fn weak(space: Space) -> Access {
    Access::weak(space, 0)
}

impl Kernel {
    fn new() -> Kernel {
        Kernel { b: FunctionBuilder::new("kernel", Signature::default()) }
    }

    fn param(&mut self, offset: i64, ty: Type) -> Value {
        let zero = self.b.constant(Type::I64, 0);
        self.b.inst(Op::Load(Access::weak(Space::Param, offset)), &[zero], ty)
    }

    fn reg(&mut self, reg: SpecialReg) -> Value {
        self.b.inst(Op::SpecialReg(reg), &[], Type::I32)
    }

    fn int(&mut self, op: IntBinary, a: Value, b: Value) -> Value {
        let ty = self.b.func().ty(a);
        self.b.inst(Op::Int(op), &[a, b], ty)
    }

    fn i32(&mut self, value: i32) -> Value {
        self.b.constant(Type::I32, value as u32 as u64)
    }

    /// `ctaid * ntid + tid`.
    fn global_id(&mut self, axis: u8) -> Value {
        let (cta, ntid, tid) = (
            self.reg(SpecialReg::CtaId(axis)),
            self.reg(SpecialReg::Ntid(axis)),
            self.reg(SpecialReg::Tid(axis)),
        );
        let start = self.int(IntBinary::Mul, cta, ntid);
        self.int(IntBinary::Add, start, tid)
    }

    /// Address of the 32-bit element `index` of the array at `base`.
    fn element(&mut self, base: Value, index: Value) -> Value {
        let wide = self.b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
        let four = self.b.constant(Type::I64, 4);
        let bytes = self.int(IntBinary::Mul, wide, four);
        self.int(IntBinary::Add, base, bytes)
    }

    fn cmp(&mut self, cmp: IntCmp, a: Value, b: Value) -> Value {
        self.b.inst(Op::IntCmp(cmp), &[a, b], Type::Pred)
    }

    fn branch(&mut self, cond: Value, then: Block, otherwise: Block) {
        self.b.terminate(Terminator::Branch {
            cond,
            then: Target::new(then),
            otherwise: Target::new(otherwise),
            uniform: false,
        });
    }

    fn finish(self, param_bytes: u32) -> Program {
        let program =
            Program { functions: vec![self.b.finish()], param_bytes, shared_align: 16, ..Program::default() };
        verify(&program).expect("the kernel is well formed");
        program
    }
}

const LAUNCHES: [Launch; 11] = [
    Launch { grid: [4, 1, 1], block: [64, 1, 1] },
    Launch { grid: [3, 1, 1], block: [100, 1, 1] },
    Launch { grid: [7, 1, 1], block: [33, 1, 1] },
    Launch { grid: [2, 2, 1], block: [32, 4, 1] },
    Launch { grid: [2, 3, 2], block: [16, 8, 1] },
    Launch { grid: [3, 2, 1], block: [64, 2, 3] },
    Launch { grid: [5, 1, 2], block: [32, 3, 2] },
    Launch { grid: [2, 2, 1], block: [96, 2, 1] },
    Launch { grid: [2, 1, 1], block: [8, 4, 2] },
    Launch { grid: [2, 2, 1], block: [10, 7, 1] },
    Launch { grid: [2, 1, 1], block: [5, 3, 4] },
];

fn saxpy() -> Program {
    let mut k = Kernel::new();
    let n = k.param(0, Type::I32);
    let a = k.param(4, Type::F32);
    let (x, y) = (k.param(8, Type::I64), k.param(16, Type::I64));
    let i = k.global_id(0);
    let (body, end) = (k.b.block(), k.b.block());
    let outside = k.cmp(IntCmp::GeS, i, n);
    k.branch(outside, end, body);
    k.b.switch_to(body);
    let (px, py) = (k.element(x, i), k.element(y, i));
    let vx = k.b.inst(Op::Load(weak(Space::Global)), &[px], Type::F32);
    let vy = k.b.inst(Op::Load(weak(Space::Global)), &[py], Type::F32);
    let sum = k.b.inst(Op::Fma(FloatMode::default()), &[vx, a, vy], Type::F32);
    k.b.effect(Op::Store(weak(Space::Global)), &[py, sum]);
    k.b.terminate(Terminator::Jump(Target::new(end)));
    k.b.switch_to(end);
    k.b.terminate(Terminator::Return(vec![]));
    k.finish(24)
}

#[test]
fn saxpy_touches_what_it_should() {
    let program = saxpy();
    let cpu = Cpu::native().unwrap();
    let launch = Launch { grid: [5, 1, 1], block: [64, 1, 1] };
    let compiled = launch.compile(&program, &cpu).unwrap();
    let n = 259;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let mut y: Vec<f32> = (0..n + 61).map(|i| (i * i) as f32).collect();
    let expected: Vec<f32> =
        y.iter().enumerate().map(|(i, y)| if i < n { x[i].mul_add(3.0, *y) } else { *y }).collect();
    let params = [n as u64 | u64::from(3f32.to_bits()) << 32, x.as_ptr() as u64, y.as_mut_ptr() as u64];
    launch.run(&compiled, &params).unwrap();
    assert_eq!(y, expected);

    let assembly = codegen::emit_text(&program, &launch.shape(), &cpu, codegen::Text::OptimizedIr).unwrap();
    assert!(!assembly.contains("gather"), "consecutive elements are loaded at once: {assembly}");
}

/// Every thread writes its linear id and its coordinates.
#[test]
fn thread_indices_in_every_layout() {
    let mut k = Kernel::new();
    let out = k.param(0, Type::I64);
    let mut linear = k.i32(0);
    for axis in [2, 1, 0] {
        let (cta, grid) = (k.reg(SpecialReg::CtaId(axis)), k.reg(SpecialReg::NctaId(axis)));
        linear = k.int(IntBinary::Mul, linear, grid);
        linear = k.int(IntBinary::Add, linear, cta);
    }
    for axis in [2, 1, 0] {
        let (tid, block) = (k.reg(SpecialReg::Tid(axis)), k.reg(SpecialReg::Ntid(axis)));
        linear = k.int(IntBinary::Mul, linear, block);
        linear = k.int(IntBinary::Add, linear, tid);
    }
    let place = k.element(out, linear);
    let (x, y, z) = (k.reg(SpecialReg::Tid(0)), k.reg(SpecialReg::Tid(1)), k.reg(SpecialReg::Tid(2)));
    let (lane, warp) = (k.reg(SpecialReg::LaneId), k.reg(SpecialReg::WarpId));
    let mut packed = k.i32(0);
    for value in [x, y, z, lane, warp] {
        let base = k.i32(37);
        packed = k.int(IntBinary::Mul, packed, base);
        packed = k.int(IntBinary::Add, packed, value);
    }
    k.b.effect(Op::Store(weak(Space::Global)), &[place, packed]);
    k.b.terminate(Terminator::Exit);
    let program = k.finish(8);
    for launch in LAUNCHES {
        agree(&program, launch, 4096);
    }
}

/// Runs a kernel whose one parameter is an array of 32-bit words, both ways, for every CPU.
fn agree(program: &Program, launch: Launch, words: usize) {
    for cpu in launch::cpus() {
        agree_on(&cpu, program, launch, words);
    }
}

fn agree_on(cpu: &Cpu, program: &Program, launch: Launch, words: usize) {
    let start: Vec<u32> = (0..words as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 7).collect();
    let mut expected = start.clone();
    launch.interpret(program, &[expected.as_mut_ptr() as u64]).unwrap();
    for plan in [Plan::FULL, Plan::in_gangs(codegen::Choice::Always), Plan::QUICK] {
        let compiled = launch.compile_as(program, cpu, plan).unwrap();
        let mut got = start.clone();
        launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
        let wrong = got.iter().zip(&expected).position(|(a, b)| a != b);
        let words = wrong.map(|i| (got[i], expected[i]));
        let gang = compiled.info.gang;
        assert_eq!(
            wrong,
            None,
            "{launch:?} on {}, {plan:?}, gangs of {gang}: {words:?} in {program}",
            cpu.name()
        );
    }
}

/// A kernel of one block that passes a hash of the thread's index through `body` and stores what comes out.
fn hashed(body: impl FnOnce(&mut Kernel, Value) -> Value) -> Program {
    let mut k = Kernel::new();
    let out = k.param(0, Type::I64);
    let tid = k.reg(SpecialReg::Tid(0));
    let factor = k.i32(0x9e37_79b1u32 as i32);
    let hash = k.int(IntBinary::Mul, tid, factor);
    let result = body(&mut k, hash);
    let place = k.element(out, tid);
    k.b.effect(Op::Store(weak(Space::Global)), &[place, result]);
    k.b.terminate(Terminator::Return(vec![]));
    k.finish(8)
}

const ONE_BLOCK: Launch = Launch { grid: [1, 1, 1], block: [64, 1, 1] };

#[test]
fn calls_of_the_runtime_pass_every_argument_of_every_lane() {
    let program = hashed(|k, hash| {
        // Nothing that is in proportion to the thread's index.
        let shift = k.i32(15);
        let high = k.b.inst(Op::Shift(Shift::RightU), &[hash, shift], Type::I32);
        let hash = k.int(IntBinary::Xor, hash, high);
        let wide = k.b.inst(Op::Convert(Convert::ZExt), &[hash], Type::I64);
        let args: Vec<Value> = (0..6)
            .map(|index| match index {
                4 => hash,
                index => {
                    let factor = k.b.constant(Type::I64, 1 << (7 * index));
                    k.int(IntBinary::Mul, wide, factor)
                }
            })
            .collect();
        k.b.inst(Op::Syscall(Syscall::Runtime(RuntimeFunction::LaunchDevice)), &args, Type::I32)
    });
    agree(&program, ONE_BLOCK, 64);
    let program =
        hashed(|k, _| k.b.inst(Op::Syscall(Syscall::Runtime(RuntimeFunction::GetLastError)), &[], Type::I32));
    agree(&program, ONE_BLOCK, 64);
}

#[test]
fn shuffles_in_every_mode() {
    use ShuffleMode::*;
    for mode in [Idx, Up, Down, Bfly] {
        for clamp in [0x1f, 0, 0x0c1f, 0x181f, 0x1807, 0x100f] {
            for lane in [0, 1, 5, 16, 31, 40] {
                for known in [true, false] {
                    let program = hashed(|k, hash| {
                        let all = k.i32(-1);
                        let clamp = k.i32(clamp);
                        let mut lane = k.i32(lane);
                        if !known {
                            // A different one in each lane.
                            lane = k.int(IntBinary::Xor, lane, hash);
                        }
                        let results =
                            k.b.insts(Op::Shuffle(mode), &[hash, lane, clamp, all], &[Type::I32, Type::Pred]);
                        let valid = k.b.inst(Op::Convert(Convert::ZExt), &[results[1]], Type::I32);
                        k.int(IntBinary::Xor, results[0], valid)
                    });
                    agree_on(&Cpu::native().unwrap(), &program, ONE_BLOCK, 64);
                }
            }
        }
    }
}

#[test]
fn lanes_vote_match_and_reduce() {
    let small = |k: &mut Kernel, hash: Value, mask: i32| {
        let (shift, mask) = (k.i32(20), k.i32(mask));
        let high = k.b.inst(Op::Shift(Shift::RightU), &[hash, shift], Type::I32);
        k.int(IntBinary::And, high, mask)
    };
    for mode in [VoteMode::All, VoteMode::Any, VoteMode::Uni, VoteMode::Ballot] {
        for limit in [-1, 0, 2, 100] {
            let program = hashed(|k, hash| {
                let value = small(k, hash, 7);
                let (limit, all) = (k.i32(limit), k.i32(-1));
                let pred = k.cmp(IntCmp::LtS, value, limit);
                match mode {
                    VoteMode::Ballot => k.b.inst(Op::Vote(mode), &[pred, all], Type::I32),
                    _ => {
                        let vote = k.b.inst(Op::Vote(mode), &[pred, all], Type::Pred);
                        k.b.inst(Op::Convert(Convert::ZExt), &[vote], Type::I32)
                    }
                }
            });
            agree(&program, ONE_BLOCK, 64);
        }
    }
    use IntBinary::*;
    for op in [Add, And, Or, Xor, MinS, MinU, MaxS, MaxU] {
        agree(
            &hashed(|k, hash| {
                let all = k.i32(-1);
                k.b.inst(Op::Redux(op), &[hash, all], Type::I32)
            }),
            ONE_BLOCK,
            64,
        );
    }
    for mask in [0, 1, 3] {
        agree(
            &hashed(|k, hash| {
                let (value, all) = (small(k, hash, mask), k.i32(-1));
                let any = k.b.inst(Op::MatchAny, &[value, all], Type::I32);
                let same = k.b.insts(Op::MatchAll, &[value, all], &[Type::I32, Type::Pred]);
                let elected = k.b.insts(Op::Elect, &[all], &[Type::I32, Type::Pred]);
                let flag = k.b.inst(Op::Select, &[elected[1], elected[0], same[0]], Type::I32);
                k.int(Add, any, flag)
            }),
            ONE_BLOCK,
            64,
        );
    }
}

/// Every lane of a branch takes part in what the branch does, and no other.
#[test]
fn warp_operations_under_a_condition() {
    let mut k = Kernel::new();
    let out = k.param(0, Type::I64);
    let tid = k.reg(SpecialReg::Tid(0));
    let var = k.b.var(Type::I32);
    k.b.write(var, tid);
    let three = k.i32(3);
    let rest = k.int(IntBinary::RemU, tid, three);
    let zero = k.i32(0);
    let (body, end) = (k.b.block(), k.b.block());
    let inside = k.cmp(IntCmp::Eq, rest, zero);
    k.branch(inside, body, end);
    k.b.switch_to(body);
    let active = k.b.inst(Op::ActiveMask, &[], Type::I32);
    let sum = k.b.inst(Op::Redux(IntBinary::Add), &[tid, active], Type::I32);
    let elected = k.b.insts(Op::Elect, &[active], &[Type::I32, Type::Pred]);
    let sum = k.int(IntBinary::Add, sum, elected[0]);
    let sum = k.int(IntBinary::Xor, sum, active);
    k.b.write(var, sum);
    k.b.terminate(Terminator::Jump(Target::new(end)));
    k.b.switch_to(end);
    let value = k.b.read(var);
    let place = k.element(out, tid);
    k.b.effect(Op::Store(weak(Space::Global)), &[place, value]);
    k.b.terminate(Terminator::Exit);
    let program = k.finish(8);
    let mut got = vec![0u32; 64];
    let compiled = ONE_BLOCK.compile(&program, &Cpu::native().unwrap()).unwrap();
    ONE_BLOCK.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
    let expected = |tid: u32| {
        let lanes: Vec<u32> = (0..32).filter(|lane| (tid / 32 * 32 + lane).is_multiple_of(3)).collect();
        let sum: u32 = lanes.iter().map(|lane| tid / 32 * 32 + lane).sum();
        let mask: u32 = lanes.iter().map(|lane| 1 << lane).sum();
        if tid.is_multiple_of(3) { (sum + lanes[0]) ^ mask } else { tid }
    };
    assert_eq!(got, (0..64).map(expected).collect::<Vec<_>>());
}

#[test]
fn atomics_of_every_kind() {
    use AtomicOp::*;
    let ops = [
        (Add, Type::I32),
        (And, Type::I32),
        (Or, Type::I32),
        (Xor, Type::I32),
        (Exch, Type::I32),
        (MinS, Type::I32),
        (MinU, Type::I32),
        (MaxS, Type::I32),
        (MaxU, Type::I32),
        (Inc, Type::I32),
        (Dec, Type::I32),
        (FAdd { ftz: false }, Type::F32),
        (Exch, Type::F32),
    ];
    for (op, ty) in ops {
        // Each lane at its own place, with the old value stored; all at one place, without.
        for (shared, space) in [(false, Space::Global), (true, Space::Global), (false, Space::Shared)] {
            if shared && matches!(op, FAdd { .. } | Exch | Inc | Dec) {
                continue;
            }
            let mut k = Kernel::new();
            let out = k.param(0, Type::I64);
            let tid = k.reg(SpecialReg::Tid(0));
            let (four, factor) = (k.i32(128), k.i32(0x9e37_79b1u32 as i32));
            let index = if shared { four } else { k.int(IntBinary::Add, tid, four) };
            let start = if space == Space::Shared { k.b.constant(Type::I64, 0) } else { out };
            let place = k.element(start, index);
            let mut value = k.int(IntBinary::Mul, tid, factor);
            if ty == Type::F32 {
                value = k.b.inst(Op::Convert(Convert::SToFloat(FloatMode::default())), &[value], Type::F32);
            }
            let access = Access { order: Order::Relaxed, ..weak(space) };
            if shared {
                k.b.effect(Op::Atomic(op, access), &[place, value]);
            } else {
                let first = k.b.inst(Op::Atomic(op, access), &[place, value], ty);
                let old = k.b.inst(Op::Atomic(op, access), &[place, first], ty);
                let own = k.element(out, tid);
                k.b.effect(Op::Store(weak(Space::Global)), &[own, old]);
            }
            k.b.terminate(Terminator::Exit);
            agree(&k.finish(8), ONE_BLOCK, 256);
        }
    }
    // All count at one place: each gets another number, none is left out.
    let mut k = Kernel::new();
    let out = k.param(0, Type::I64);
    let (tid, three) = (k.reg(SpecialReg::Tid(0)), k.i32(3));
    let counter = k.b.inst(Op::Atomic(Add, Access::weak(Space::Global, 512)), &[out, three], Type::I32);
    let place = k.element(out, tid);
    k.b.effect(Op::Store(weak(Space::Global)), &[place, counter]);
    k.b.terminate(Terminator::Exit);
    let compiled = ONE_BLOCK.compile(&k.finish(8), &Cpu::native().unwrap()).unwrap();
    let mut data = vec![100u32; 129];
    ONE_BLOCK.run(&compiled, &[data.as_mut_ptr() as u64]).unwrap();
    assert_eq!(data[128], 100 + 3 * 64);
    data[..64].sort();
    assert_eq!(data[..64], (0..64).map(|i| 100 + 3 * i).collect::<Vec<_>>());

    let mut k = Kernel::new();
    let out = k.param(0, Type::I64);
    let tid = k.reg(SpecialReg::Tid(0));
    let place = k.element(out, tid);
    let (one, seven) = (k.i32(1), k.i32(7));
    let seen = k.b.inst(Op::Load(weak(Space::Global)), &[place], Type::I32);
    let guess = k.int(IntBinary::And, tid, one);
    let guess = k.int(IntBinary::Add, seen, guess);
    let access = Access { order: Order::AcqRel, ..weak(Space::Global) };
    let old = k.b.inst(Op::AtomicCas(access), &[place, guess, seven], Type::I32);
    k.b.effect(Op::Store(Access::weak(Space::Global, 512)), &[place, old]);
    k.b.terminate(Terminator::Exit);
    agree(&k.finish(8), ONE_BLOCK, 256);
}

/// Accesses of every width and order, at addresses of every shape.
#[test]
fn ordered_and_vector_accesses() {
    for order in [Order::Weak, Order::Volatile, Order::Relaxed, Order::Acquire] {
        for (stride, lanes) in [(0, 1), (4, 1), (8, 1), (12, 1), (20, 1), (8, 2), (16, 2), (16, 4), (32, 4)] {
            let mut k = Kernel::new();
            let out = k.param(0, Type::I64);
            let tid = k.reg(SpecialReg::Tid(0));
            let (step, five) = (k.i32(stride), k.i32(5));
            let offset = k.int(IntBinary::Mul, tid, step);
            let offset = k.b.inst(Op::Convert(Convert::ZExt), &[offset], Type::I64);
            let place = k.int(IntBinary::Add, out, offset);
            let access = Access { order, lanes, ..weak(Space::Global) };
            let values = k.b.insts(Op::Load(access), &[place], &vec![Type::I32; lanes.into()]);
            let (body, end) = (k.b.block(), k.b.block());
            let inside = k.cmp(IntCmp::GeU, tid, five);
            k.branch(inside, body, end);
            k.b.switch_to(body);
            let order = if order == Order::Acquire { Order::Release } else { order };
            let access = Access { order, lanes, offset: 4096, ..weak(Space::Global) };
            let mut args = vec![place];
            args.extend(values.iter().rev());
            k.b.effect(Op::Store(access), &args);
            k.b.terminate(Terminator::Jump(Target::new(end)));
            k.b.switch_to(end);
            k.b.terminate(Terminator::Exit);
            agree(&k.finish(8), Launch { grid: [1, 1, 1], block: [61, 1, 1] }, 2048);
        }
    }
}

/// Accesses of bytes and halves of words, at steps and scattered, by all lanes and by some: what lies between stays as it is.
#[test]
fn accesses_of_less_than_a_word() {
    for (ty, bytes) in [(Type::I8, 1), (Type::F16, 2)] {
        for (step, scattered) in [(1, false), (3, false), (5, false), (7, true)] {
            for least in [0, 5] {
                let mut k = Kernel::new();
                let out = k.param(0, Type::I64);
                let tid = k.reg(SpecialReg::Tid(0));
                let (step, least) = (k.i32(step * bytes), k.i32(least));
                let offset = k.int(IntBinary::Mul, tid, step);
                let offset = if scattered {
                    let (tid, mask) = (k.int(IntBinary::Mul, tid, offset), k.i32(0x3ff & -bytes));
                    k.int(IntBinary::And, tid, mask)
                } else {
                    offset
                };
                let offset = k.b.inst(Op::Convert(Convert::ZExt), &[offset], Type::I64);
                let place = k.int(IntBinary::Add, out, offset);
                let value = k.b.inst(Op::Load(weak(Space::Global)), &[place], ty);
                let (body, end) = (k.b.block(), k.b.block());
                let inside = k.cmp(IntCmp::GeU, tid, least);
                k.branch(inside, body, end);
                k.b.switch_to(body);
                let again = Access { offset: bytes.into(), ..weak(Space::Global) };
                let next = k.b.inst(Op::Load(again), &[place], ty);
                for (offset, value) in [(1024, value), (2048, next)] {
                    let access = Access { offset, ..weak(Space::Global) };
                    k.b.effect(Op::Store(access), &[place, value]);
                }
                k.b.terminate(Terminator::Jump(Target::new(end)));
                k.b.switch_to(end);
                k.b.terminate(Terminator::Exit);
                let program = k.finish(8);
                agree(&program, Launch { grid: [1, 1, 1], block: [64, 1, 1] }, 2048);
                agree(&program, Launch { grid: [1, 1, 1], block: [61, 1, 1] }, 2048);
            }
        }
    }
}

#[test]
fn faults_say_what_and_where() {
    let mut k = Kernel::new();
    let out = k.param(0, Type::I64);
    let (tid, limit) = (k.reg(SpecialReg::Tid(0)), k.i32(37));
    let odd = k.cmp(IntCmp::Eq, tid, limit);
    let odd = k.b.inst(Op::Convert(Convert::ZExt), &[odd], Type::I64);
    let place = k.element(out, tid);
    let place = k.int(IntBinary::Add, place, odd);
    k.b.effect(Op::Store(weak(Space::Global)), &[place, tid]);
    k.b.terminate(Terminator::Exit);
    let program = k.finish(8);
    let compiled = ONE_BLOCK.compile(&program, &Cpu::native().unwrap()).unwrap();
    let mut data = vec![0u32; 64];
    let fault = ONE_BLOCK.run(&compiled, &[data.as_mut_ptr() as u64]).unwrap_err();
    assert_eq!((fault.kind, fault.lane), (kernel_abi::FaultKind::Misaligned as u32, 5));
    assert_eq!(fault.address, data.as_ptr() as u64 + 37 * 4 + 1);
    let fault = ONE_BLOCK.run(&compiled, &[16]).unwrap_err();
    assert_eq!(fault.kind, kernel_abi::FaultKind::IllegalAddress as u32);

    let mut k = Kernel::new();
    let (tid, limit) = (k.reg(SpecialReg::Tid(0)), k.i32(40));
    let (trap, end) = (k.b.block(), k.b.block());
    let inside = k.cmp(IntCmp::GeS, tid, limit);
    k.branch(inside, trap, end);
    k.b.switch_to(trap);
    k.b.terminate(Terminator::Trap);
    k.b.switch_to(end);
    k.b.terminate(Terminator::Exit);
    let compiled = ONE_BLOCK.compile(&k.finish(8), &Cpu::native().unwrap()).unwrap();
    let fault = ONE_BLOCK.run(&compiled, &[0]).unwrap_err();
    assert_eq!((fault.kind, fault.lane), (kernel_abi::FaultKind::Trap as u32, 8));
}

/// A loop whose index might wrap between lanes, and does at the end.
#[test]
fn indices_that_wrap_are_followed_exactly() {
    for unsigned in [false, true] {
        let mut k = Kernel::new();
        let out = k.param(0, Type::I64);
        let tid = k.reg(SpecialReg::Tid(0));
        let (start, step) = (k.i32(-40), k.i32(24));
        let (var, count) = (k.b.var(Type::I32), k.b.var(Type::I32));
        let first = k.int(IntBinary::Add, tid, start);
        k.b.write(var, first);
        let zero = k.i32(0);
        k.b.write(count, zero);
        let (body, end) = (k.b.block(), k.b.block());
        k.b.terminate(Terminator::Jump(Target::new(body)));
        k.b.switch_to(body);
        let index = k.b.read(var);
        let wide =
            k.b.inst(Op::Convert(if unsigned { Convert::ZExt } else { Convert::SExt }), &[index], Type::I64);
        // From 2^32 - 40 on, or from -40 on: back into the array.
        let back = k.b.constant(Type::I64, if unsigned { 40u64.wrapping_sub(1 << 32) } else { 40 });
        let four = k.b.constant(Type::I64, 4);
        let moved = k.int(IntBinary::Add, wide, back);
        let bytes = k.int(IntBinary::Mul, moved, four);
        let place = k.int(IntBinary::Add, out, bytes);
        let negative = k.cmp(IntCmp::LtS, index, zero);
        let (touch, next) = (k.b.block(), k.b.block());
        // Unsigned, only what did not wrap is in the array.
        if unsigned {
            k.branch(negative, touch, next)
        } else {
            k.b.terminate(Terminator::Jump(Target::new(touch)))
        }
        k.b.switch_to(touch);
        let place = if unsigned {
            let wide = k.b.inst(Op::Convert(Convert::ZExt), &[index], Type::I64);
            let moved = k.int(IntBinary::Add, wide, back);
            let bytes = k.int(IntBinary::Mul, moved, four);
            k.int(IntBinary::Add, out, bytes)
        } else {
            place
        };
        let value = k.b.inst(Op::Load(weak(Space::Global)), &[place], Type::I32);
        let value = k.int(IntBinary::Add, value, index);
        k.b.effect(Op::Store(weak(Space::Global)), &[place, value]);
        k.b.terminate(Terminator::Jump(Target::new(next)));
        k.b.switch_to(next);
        let index = k.b.read(var);
        let index = k.int(IntBinary::Add, index, step);
        k.b.write(var, index);
        let at = k.b.read(count);
        let one = k.i32(1);
        let at = k.int(IntBinary::Add, at, one);
        k.b.write(count, at);
        let times = k.i32(4);
        let more = k.cmp(IntCmp::LtS, at, times);
        k.branch(more, body, end);
        k.b.switch_to(end);
        k.b.terminate(Terminator::Exit);
        agree(&k.finish(8), Launch { grid: [1, 1, 1], block: [32, 1, 1] }, 512);
    }
}

/// Calls through a table and recursion, with lanes that go different ways.
#[test]
fn functions_that_are_not_inlined() {
    // fib(n), with a frame of its own.
    let signature = Signature { params: vec![Type::I32], results: vec![Type::I32] };
    let fib = |depth: u32| {
        let mut k = Kernel { b: FunctionBuilder::new("fib", signature.clone()) };
        let n = k.b.param(0);
        let (two, one) = (k.i32(2), k.i32(1));
        let (small, large) = (k.b.block(), k.b.block());
        let done = k.cmp(IntCmp::LtS, n, two);
        k.branch(done, small, large);
        k.b.switch_to(small);
        k.b.terminate(Terminator::Return(vec![n]));
        k.b.switch_to(large);
        let base = k.b.inst(Op::LocalBase, &[], Type::I64);
        let (a, b) = (k.int(IntBinary::Sub, n, one), k.int(IntBinary::Sub, n, two));
        let a = k.b.inst(Op::Call(FuncRef(1)), &[a], Type::I32);
        k.b.effect(Op::Store(weak(Space::Local)), &[base, a]);
        let b = k.b.inst(Op::Call(FuncRef(1)), &[b], Type::I32);
        let a = k.b.inst(Op::Load(weak(Space::Local)), &[base], Type::I32);
        let sum = k.int(IntBinary::Add, a, b);
        k.b.terminate(Terminator::Return(vec![sum]));
        let mut func = k.b.finish();
        (func.local_bytes, func.local_align, func.token) = (depth, 4, 77);
        func
    };
    let double = {
        let mut k = Kernel { b: FunctionBuilder::new("double", signature.clone()) };
        let n = k.b.param(0);
        let sum = k.int(IntBinary::Add, n, n);
        k.b.terminate(Terminator::Return(vec![sum]));
        let mut func = k.b.finish();
        func.token = 78;
        func
    };
    let kernel = |wrong: u64| {
        let mut k = Kernel::new();
        let out = k.param(0, Type::I64);
        let tid = k.reg(SpecialReg::Tid(0));
        let (seven, three) = (k.i32(7), k.i32(3));
        let n = k.int(IntBinary::And, tid, seven);
        let first = k.b.inst(Op::FuncToken(FuncRef(1)), &[], Type::I64);
        let second = k.b.inst(Op::FuncToken(FuncRef(2)), &[], Type::I64);
        let which = k.int(IntBinary::RemU, tid, three);
        let zero = k.i32(0);
        let is_first = k.cmp(IntCmp::Eq, which, zero);
        let token = k.b.inst(Op::Select, &[is_first, first, second], Type::I64);
        let off = k.b.constant(Type::I64, wrong);
        let token = k.int(IntBinary::Add, token, off);
        let result = k.b.inst(Op::CallIndirect(SigRef(0)), &[token, n], Type::I32);
        let direct = k.b.inst(Op::Call(FuncRef(1)), &[n], Type::I32);
        let hundred = k.i32(100);
        let result = k.int(IntBinary::Mul, result, hundred);
        let result = k.int(IntBinary::Add, result, direct);
        let place = k.element(out, tid);
        k.b.effect(Op::Store(weak(Space::Global)), &[place, result]);
        k.b.terminate(Terminator::Exit);
        k.b.finish()
    };
    let program = |wrong: u64, depth: u32| Program {
        functions: vec![kernel(wrong), fib(depth), double.clone()],
        signatures: vec![signature.clone()],
        param_bytes: 8,
        shared_align: 16,
        ..Program::default()
    };
    let good = program(0, 4);
    verify(&good).unwrap();
    agree(&good, Launch { grid: [2, 1, 1], block: [50, 1, 1] }, 64);
    let cpu = Cpu::native().unwrap();
    let mut data = vec![0u32; 64];
    let fault = |program: &Program, data: &mut [u32]| {
        let compiled = ONE_BLOCK.compile(program, &cpu).unwrap();
        ONE_BLOCK.run(&compiled, &[data.as_mut_ptr() as u64]).unwrap_err().kind
    };
    assert_eq!(fault(&program(5, 4), &mut data), kernel_abi::FaultKind::InvalidPc as u32);
    assert_eq!(fault(&program(0, 64), &mut data), kernel_abi::FaultKind::StackOverflow as u32);
}

/// Some threads of a warp pass a barrier, the others go to the end and meet nobody.
#[test]
fn a_barrier_that_not_all_threads_come_to() {
    let mut k = Kernel::new();
    let out = k.param(0, Type::I64);
    let tid = k.reg(SpecialReg::Tid(0));
    let place = k.element(out, tid);
    k.b.effect(Op::Store(weak(Space::Global)), &[place, tid]);
    let limit = k.i32(40);
    let (meet, end, done) = (k.b.block(), k.b.block(), k.b.block());
    let inside = k.cmp(IntCmp::LtU, tid, limit);
    k.branch(inside, meet, end);
    k.b.switch_to(meet);
    let zero = k.i32(0);
    k.b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
    let (one, mask) = (k.i32(33), k.i32(31));
    let other = k.int(IntBinary::Add, tid, one);
    let other = k.int(IntBinary::And, other, mask);
    let from = k.element(out, other);
    let value = k.b.inst(Op::Load(weak(Space::Global)), &[from], Type::I32);
    k.b.effect(Op::Store(Access::weak(Space::Global, 256)), &[place, value]);
    k.b.terminate(Terminator::Jump(Target::new(end)));
    k.b.switch_to(end);
    k.b.effect(Op::Store(Access::weak(Space::Global, 512)), &[place, tid]);
    k.b.terminate(Terminator::Jump(Target::new(done)));
    k.b.switch_to(done);
    k.b.terminate(Terminator::Exit);
    agree(&k.finish(8), ONE_BLOCK, 256);
}

/// An index known at the entry: code that assumes it does not wrap refuses to run where it does, before it has done anything.
#[test]
fn an_assumption_that_fails_is_noticed_first() {
    let mut k = Kernel::new();
    let (n, out) = (k.param(0, Type::I32), k.param(8, Type::I64));
    let tid = k.reg(SpecialReg::Tid(0));
    let index = k.int(IntBinary::Add, tid, n);
    let place = k.element(out, index);
    let zero = k.i32(0);
    let (body, end) = (k.b.block(), k.b.block());
    let inside = k.cmp(IntCmp::GeS, index, zero);
    k.branch(inside, body, end);
    k.b.switch_to(body);
    k.b.effect(Op::Store(weak(Space::Global)), &[place, tid]);
    k.b.terminate(Terminator::Jump(Target::new(end)));
    k.b.switch_to(end);
    k.b.terminate(Terminator::Exit);
    let program = k.finish(16);
    let cpu = Cpu::native().unwrap();
    let mut data = vec![u32::MAX; 64];
    let at = data.as_mut_ptr() as u64;
    let assuming = ONE_BLOCK.compile(&program, &cpu).unwrap();
    assert!(!ONE_BLOCK.gives_up(&assuming, &[0, at]));
    assert_eq!(data, (0..64).collect::<Vec<_>>());
    data.fill(u32::MAX);
    // Index 48 is 2^31.
    let n = (1u64 << 31) - 48;
    let params = [n, at.wrapping_sub(4 * n)];
    assert!(ONE_BLOCK.gives_up(&assuming, &params));
    assert_eq!(data, [u32::MAX; 64]);
    let shape = kernel_abi::Shape { assume_no_wrap: false, ..ONE_BLOCK.shape() };
    let plain = ONE_BLOCK.compile_for(&program, &shape, &cpu).unwrap();
    ONE_BLOCK.run(&plain, &params).unwrap();
    assert_eq!(data, (0..64).map(|i| if i < 48 { i } else { u32::MAX }).collect::<Vec<_>>());
}
