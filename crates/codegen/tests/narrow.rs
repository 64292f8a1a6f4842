//! Arithmetic on bytes and halves, which is done in as few bits as it has, against the interpreter.

mod launch;

use launch::Launch;
use simt_ir::*;

const LAUNCH: Launch = Launch { grid: [2, 1, 1], block: [64, 1, 1] };
const THREADS: u64 = 128;
/// Bytes that each thread loads, and that it stores.
const LOADED: u64 = 16;
const STORED: u64 = 64;

/// Numbers that look random (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A kernel whose threads load bytes and halves, compute with them as C does, and store bytes, halves and words.
fn kernel(r: &mut Random) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], Type::I64)
    };
    let (data, out) = (param(&mut b, 0), param(&mut b, 8));
    let reg = |b: &mut FunctionBuilder, reg| b.inst(Op::SpecialReg(reg), &[], Type::I32);
    let (cta, tid) = (reg(&mut b, SpecialReg::CtaId(0)), reg(&mut b, SpecialReg::Tid(0)));
    let block = b.constant(Type::I32, 64);
    let start = b.inst(Op::Int(IntBinary::Mul), &[cta, block], Type::I32);
    let thread = b.inst(Op::Int(IntBinary::Add), &[start, tid], Type::I32);
    let place = |b: &mut FunctionBuilder, base: Value, bytes: u64| {
        let wide = b.inst(Op::Convert(Convert::ZExt), &[thread], Type::I64);
        let bytes = b.constant(Type::I64, bytes);
        let at = b.inst(Op::Int(IntBinary::Mul), &[wide, bytes], Type::I64);
        b.inst(Op::Int(IntBinary::Add), &[base, at], Type::I64)
    };
    let (from, to) = (place(&mut b, data, LOADED), place(&mut b, out, STORED));
    // C's `int`, or PTX's registers of 16 bits.
    let ty = r.pick(&[Type::I32, Type::I32, Type::I16]);
    let mut values = Vec::new();
    for _ in 0..2 + r.below(5) {
        let narrow = if ty == Type::I32 { r.pick(&[Type::I8, Type::I8, Type::I16]) } else { Type::I8 };
        let at = (r.below(LOADED as usize) as i64) & !(i64::from(narrow.bytes()) - 1);
        let loaded = b.inst(Op::Load(Access::weak(Space::Global, at)), &[from], narrow);
        let extension = r.pick(&[Convert::ZExt, Convert::ZExt, Convert::SExt]);
        values.push(b.inst(Op::Convert(extension), &[loaded], ty));
    }
    if r.below(3) == 0 {
        values.push(if ty == Type::I32 { tid } else { b.inst(Op::Convert(Convert::Trunc), &[tid], ty) });
    }
    for _ in 0..3 + r.below(14) {
        let x = r.pick(&values);
        let y = match r.below(3) {
            0 => {
                let number =
                    r.pick(&[0, 1, 2, 7, 15, 127, 128, 255, 256, 511, 1023, u64::MAX, u64::MAX - 127]);
                b.constant(ty, number & ty.mask())
            }
            _ => r.pick(&values),
        };
        use IntBinary::*;
        let value = match r.below(9) {
            0..=3 => {
                let op = r.pick(&[Add, Add, Sub, Mul, And, And, Or, Xor, MinS, MaxS, MinU, MaxU]);
                b.inst(Op::Int(op), &[x, y], ty)
            }
            4 => {
                // As pictures are kept within what a byte holds.
                let (least, most) = (b.constant(ty, 0), b.constant(ty, r.pick(&[255, 127, 15])));
                let x = b.inst(Op::Int(MaxS), &[x, least], ty);
                b.inst(Op::Int(MinS), &[x, most], ty)
            }
            5 => {
                let op = r.pick(&[Shift::Left, Shift::RightU, Shift::RightS]);
                let amount = b.constant(Type::I32, r.pick(&[0, 1, 3, 4, 7, 8, 15, 16, 40]));
                b.inst(Op::Shift(op), &[x, amount], ty)
            }
            6 => {
                let op = r.pick(&[IntUnary::Not, IntUnary::Neg, IntUnary::Abs]);
                b.inst(Op::IntUnary(op), &[x], ty)
            }
            _ => {
                use IntCmp::*;
                let cmp = r.pick(&[Eq, Ne, LtS, LeS, GtS, GeS, LtU, LeU, GtU, GeU]);
                let cond = b.inst(Op::IntCmp(cmp), &[x, y], Type::Pred);
                let (z, w) = (r.pick(&values), r.pick(&values));
                b.inst(Op::Select, &[cond, z, w], ty)
            }
        };
        values.push(value);
    }
    let mut at = 0;
    while at + 8 <= STORED as i64 {
        // Later values more often.
        let value = if r.below(2) == 0 { *values.last().unwrap() } else { r.pick(&values) };
        let stored = r.pick(&[Type::I8, Type::I8, Type::I16, Type::I32, Type::I64]);
        let value = match stored.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Less => b.inst(Op::Convert(Convert::Trunc), &[value], stored),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => {
                b.inst(Op::Convert(r.pick(&[Convert::ZExt, Convert::SExt])), &[value], stored)
            }
        };
        b.effect(Op::Store(Access::weak(Space::Global, at)), &[to, value]);
        at += 8 * (1 + r.below(4)) as i64;
    }
    b.terminate(Terminator::Exit);
    let functions = vec![b.finish()];
    let program = Program { functions, param_bytes: 16, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn narrow_numbers_are_what_wide_ones_would_be() {
    let mut r = Random(1);
    let count = (THREADS * (LOADED + STORED) / 8) as usize;
    for number in 0..200 {
        let program = kernel(&mut r);
        let words: Vec<u64> = (0..count).map(|_| r.next()).collect();
        let params = |words: &mut [u64]| {
            let start = words.as_mut_ptr() as u64;
            [start, start + THREADS * LOADED]
        };
        LAUNCH.must_agree(&program, &words, params, format_args!("kernel {number}"));
    }
}
