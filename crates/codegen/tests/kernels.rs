//! Small kernels as machine code, against the interpreter and plain computations.

mod launch;

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

const LAUNCHES: [Launch; 8] = [
    Launch { grid: [4, 1, 1], block: [64, 1, 1] },
    Launch { grid: [3, 1, 1], block: [100, 1, 1] },
    Launch { grid: [7, 1, 1], block: [33, 1, 1] },
    Launch { grid: [2, 2, 1], block: [32, 4, 1] },
    Launch { grid: [2, 3, 2], block: [16, 8, 1] },
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

/// Runs a kernel whose one parameter is an array of 32-bit words, both ways.
fn agree(program: &Program, launch: Launch, words: usize) {
    let start: Vec<u32> = (0..words as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 7).collect();
    let mut expected = start.clone();
    launch.interpret(program, &[expected.as_mut_ptr() as u64]).unwrap();
    for cpu in launch::cpus() {
        let compiled = launch.compile(program, &cpu).unwrap();
        let mut got = start.clone();
        launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
        let wrong = got.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{launch:?} on {}: {:?}", cpu.name(), wrong.map(|i| (got[i], expected[i])));
    }
}
