//! Generated code against the scalar meaning of operations, on every CPU level.

mod support;

use codegen::target::Cpu;
use simt_ir::soft::Format;
use simt_ir::{
    Convert, FloatBinary, FloatCmp, FloatMode, FloatRel, FloatUnary, IntBinary, IntCmp, IntUnary, MinMax, Op,
    Rounding, Shift, Type, eval,
};
use support::{Case, Compiled, cpus, operands};

const DIRECTIONS: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];
const INTS: [Type; 4] = [Type::I8, Type::I16, Type::I32, Type::I64];
const FLOATS: [Type; 4] = [Type::F16, Type::BF16, Type::F32, Type::F64];

/// Compares all cases on all CPUs, 32 lanes at a time and one at a time.
fn check(cases: &[Case]) {
    check_where(cases, false, |_, _| true);
}

/// Likewise on the CPUs where `applies`, with subnormals flushed by the processor if `flushing`.
fn check_where(cases: &[Case], flushing: bool, applies: impl Fn(&Case, &Cpu) -> bool) {
    let mut failures = Vec::new();
    for case in cases {
        let operands = operands(&case.types, 4000);
        let expected: Vec<u64> = (0..operands[0].len())
            .map(|i| {
                let args: Vec<u64> = operands.iter().map(|values| values[i]).collect();
                eval::eval(case.op, &args, &case.types, case.result).unwrap()
            })
            .collect();
        for cpu in cpus().into_iter().filter(|cpu| applies(case, cpu)) {
            for lanes in [32, 1] {
                let actual = Compiled::new(case, &cpu, lanes, flushing).run(&operands);
                let wrong = (0..actual.len()).find(|&i| !same(case, expected[i], actual[i]));
                if let Some(i) = wrong {
                    let args: Vec<String> =
                        operands.iter().map(|values| format!("{:#x}", values[i])).collect();
                    failures.push(format!(
                        "{case:?} on {} with {lanes} lanes: {args:?} gives {:#x}, not {:#x}",
                        cpu.name(),
                        actual[i],
                        expected[i]
                    ));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Equal, or two NaNs where the operation leaves the CPU's.
fn same(case: &Case, expected: u64, actual: u64) -> bool {
    let exact = match case.op {
        Op::CanonNan | Op::Select => true,
        Op::Float(FloatBinary::Div, _) | Op::MinMax(_) | Op::FloatUnary(..) => case.result == Type::F64,
        _ => false,
    };
    let any_nan = case.result.is_float() && !exact && {
        let format = Format::of(case.result);
        format.is_nan(expected) && format.is_nan(actual)
    };
    expected == actual || any_nan
}

fn case(op: Op, types: &[Type], result: Type) -> Case {
    Case { op, types: types.to_vec(), result }
}

fn mode(round: Rounding, ftz: bool, sat: bool) -> FloatMode {
    FloatMode { round, ftz, sat, contract: false }
}

/// The modes that PTX has for a type.
fn modes(ty: Type) -> Vec<FloatMode> {
    let rounds = if matches!(ty, Type::F32 | Type::F64) { &DIRECTIONS[..] } else { &DIRECTIONS[..1] };
    let flushes: &[bool] = if ty == Type::F64 || ty == Type::BF16 { &[false] } else { &[false, true] };
    let mut modes = Vec::new();
    for &round in rounds {
        for &ftz in flushes {
            modes.push(mode(round, ftz, false));
            if ty != Type::F64 {
                modes.push(mode(round, ftz, true));
            }
        }
    }
    modes
}

#[test]
fn integer_operations() {
    let mut cases = Vec::new();
    for ty in INTS {
        use IntBinary::*;
        for op in [
            Add, Sub, Mul, MulHiS, MulHiU, DivS, DivU, RemS, RemU, And, Or, Xor, MinS, MinU, MaxS, MaxU,
            AddSatS, SubSatS,
        ] {
            cases.push(case(Op::Int(op), &[ty, ty], ty));
        }
        for op in [IntUnary::Not, IntUnary::Neg, IntUnary::Abs, IntUnary::BitReverse] {
            cases.push(case(Op::IntUnary(op), &[ty], ty));
        }
        for op in [IntUnary::LeadingZeros, IntUnary::PopCount] {
            cases.push(case(Op::IntUnary(op), &[ty], Type::I32));
        }
        for op in [Shift::Left, Shift::RightU, Shift::RightS] {
            cases.push(case(Op::Shift(op), &[ty, Type::I32], ty));
        }
        use IntCmp::*;
        for op in [Eq, Ne, LtS, LeS, GtS, GeS, LtU, LeU, GtU, GeU] {
            cases.push(case(Op::IntCmp(op), &[ty, ty], Type::Pred));
        }
        cases.push(case(Op::Select, &[Type::Pred, ty, ty], ty));
    }
    for op in [IntBinary::And, IntBinary::Or, IntBinary::Xor] {
        cases.push(case(Op::Int(op), &[Type::Pred, Type::Pred], Type::Pred));
    }
    cases.push(case(Op::IntUnary(IntUnary::Not), &[Type::Pred], Type::Pred));
    cases.push(case(Op::Prmt, &[Type::I32; 3], Type::I32));
    for (left, wrap) in [(false, false), (false, true), (true, false), (true, true)] {
        cases.push(case(Op::FunnelShift { left, wrap }, &[Type::I32; 3], Type::I32));
    }
    check(&cases);
}

#[test]
fn float_arithmetic() {
    let mut cases = Vec::new();
    for ty in FLOATS {
        for mode in modes(ty) {
            for op in [FloatBinary::Add, FloatBinary::Sub, FloatBinary::Mul] {
                cases.push(case(Op::Float(op, mode), &[ty, ty], ty));
            }
            if matches!(ty, Type::F32 | Type::F64) {
                cases.push(case(Op::Float(FloatBinary::Div, mode), &[ty, ty], ty));
                for op in [FloatUnary::Sqrt, FloatUnary::Rcp] {
                    cases.push(case(Op::FloatUnary(op, mode), &[ty], ty));
                }
            }
        }
        for op in [FloatUnary::Neg, FloatUnary::Abs] {
            cases.push(case(Op::FloatUnary(op, mode(Rounding::Nearest, false, false)), &[ty], ty));
            cases.push(case(Op::FloatUnary(op, mode(Rounding::Nearest, true, false)), &[ty], ty));
        }
    }
    check(&cases);
}

#[test]
fn fused_multiply_add() {
    let mut cases = Vec::new();
    for ty in FLOATS {
        for mode in modes(ty) {
            cases.push(case(Op::Fma(mode), &[ty; 3], ty));
        }
    }
    check(&cases);
}

#[test]
fn comparisons_and_extrema() {
    let mut cases = Vec::new();
    for ty in FLOATS {
        use FloatRel::*;
        for rel in [Eq, Ne, Lt, Le, Gt, Ge, Ordered, Unordered] {
            for (nan, ftz) in [(false, false), (true, false), (false, true)] {
                cases.push(case(Op::FloatCmp(FloatCmp { rel, nan, ftz }), &[ty, ty], Type::Pred));
            }
        }
        for bits in 0..16 {
            let bit = |n: u32| bits >> n & 1 != 0;
            let op =
                MinMax { max: bit(0), nan: bit(1), ftz: bit(2), xorsign_abs: bit(3), ..MinMax::default() };
            if !(ty == Type::F64 && (op.nan || op.ftz || op.xorsign_abs)) {
                cases.push(case(Op::MinMax(op), &[ty, ty], ty));
            }
        }
        cases.push(case(Op::CanonNan, &[ty], ty));
    }
    check(&cases);
}

#[test]
fn conversions_between_floats() {
    let mut cases = Vec::new();
    for from in FLOATS {
        for to in FLOATS {
            for round in DIRECTIONS {
                for (ftz, sat) in [(false, false), (true, false), (false, true)] {
                    let convert = Convert::FloatToFloat(mode(round, ftz, sat));
                    cases.push(case(Op::Convert(convert), &[from], to));
                }
            }
        }
        for round in DIRECTIONS {
            for (ftz, sat) in [(false, false), (true, true)] {
                let convert = Convert::RoundToIntegral(mode(round, ftz, sat));
                cases.push(case(Op::Convert(convert), &[from], from));
            }
        }
    }
    check(&cases);
}

#[test]
fn conversions_between_floats_and_integers() {
    let mut cases = Vec::new();
    for float in FLOATS {
        for int in INTS {
            for round in DIRECTIONS {
                for ftz in [false, true] {
                    cases.push(case(Op::Convert(Convert::FloatToS { round, ftz }), &[float], int));
                    cases.push(case(Op::Convert(Convert::FloatToU { round, ftz }), &[float], int));
                }
                for sat in [false, true] {
                    let mode = mode(round, false, sat);
                    cases.push(case(Op::Convert(Convert::SToFloat(mode)), &[int], float));
                    cases.push(case(Op::Convert(Convert::UToFloat(mode)), &[int], float));
                }
            }
        }
    }
    check(&cases);
}

#[test]
fn conversions_between_integers() {
    let mut cases = Vec::new();
    for from in INTS {
        for to in INTS {
            let convert = match to.bits().cmp(&from.bits()) {
                std::cmp::Ordering::Less => &[Convert::Trunc][..],
                std::cmp::Ordering::Equal => &[Convert::Bitcast],
                std::cmp::Ordering::Greater => &[Convert::ZExt, Convert::SExt],
            };
            cases.extend(convert.iter().map(|op| case(Op::Convert(*op), &[from], to)));
        }
        cases.push(case(Op::Convert(Convert::Trunc), &[from], Type::Pred));
        cases.push(case(Op::Convert(Convert::ZExt), &[Type::Pred], from));
        cases.push(case(Op::Convert(Convert::SExt), &[Type::Pred], from));
    }
    for float in FLOATS {
        let int = float.as_int().unwrap();
        cases.push(case(Op::Convert(Convert::Bitcast), &[float], int));
        cases.push(case(Op::Convert(Convert::Bitcast), &[int], float));
    }
    check(&cases);
}

#[test]
fn approximations() {
    use simt_ir::Approx::*;
    let mut cases = Vec::new();
    for ftz in [false, true] {
        for func in [Ex2, Lg2, Sin, Cos, Tanh, Rcp, Rsqrt, Sqrt] {
            cases.push(case(Op::Approx { func, ftz }, &[Type::F32], Type::F32));
        }
        for func in [Div, DivFull] {
            cases.push(case(Op::Approx { func, ftz }, &[Type::F32; 2], Type::F32));
        }
        for func in [Rcp, Rsqrt] {
            cases.push(case(Op::Approx { func, ftz }, &[Type::F64], Type::F64));
        }
        for ty in [Type::F16, Type::BF16] {
            for func in [Ex2, Tanh] {
                cases.push(case(Op::Approx { func, ftz }, &[ty], ty));
            }
        }
    }
    check(&cases);
}

#[test]
fn quotients_next_to_limits() {
    use simt_ir::Approx::*;
    let mut random = support::Random(7);
    let mut operands = vec![Vec::new(), Vec::new()];
    for at in 0..3 * 1024 {
        let divisor = f32::from_bits(random.next() as u32);
        let limit = f64::from([128, -126, -150][at % 3]).exp2();
        let dividend = ((f64::from(divisor) * limit) as f32).to_bits();
        operands[0].push(u64::from(dividend.wrapping_add_signed((random.next() >> 32) as i32 % 8)));
        operands[1].push(u64::from(divisor.to_bits()));
    }
    for (func, ftz, flushing) in [Div, DivFull]
        .into_iter()
        .flat_map(|func| [(false, false), (true, false), (true, true)].map(|(ftz, by)| (func, ftz, by)))
    {
        let case = case(Op::Approx { func, ftz }, &[Type::F32; 2], Type::F32);
        for cpu in cpus() {
            for lanes in [128, 32, 1] {
                let actual = Compiled::new(&case, &cpu, lanes, flushing).run(&operands);
                for (at, actual) in actual.into_iter().enumerate() {
                    let args = [operands[0][at], operands[1][at]];
                    let expected = eval::eval(case.op, &args, &case.types, case.result).unwrap();
                    assert!(
                        same(&case, expected, actual),
                        "{case:?} on {} with {lanes} lanes: {args:x?} gives {actual:#x}, not {expected:#x}",
                        cpu.name()
                    );
                }
            }
        }
    }
}

fn functions_of_the_hardware() -> Vec<Case> {
    use simt_ir::Mufu::*;
    let of_single = [Rcp, Rsqrt, Sqrt, Lg2, Ex2, Sin, Cos, Tanh].map(|func| (func, Type::F32));
    of_single.into_iter().map(|(func, ty)| case(Op::Mufu(func), &[ty], ty)).collect()
}

#[test]
fn the_multifunction_unit() {
    use simt_ir::Mufu::*;
    let mut cases = functions_of_the_hardware();
    for (func, ty) in [(Rcp, Type::F64), (Rsqrt, Type::F64)] {
        cases.push(case(Op::Mufu(func), &[ty], ty));
    }
    for ty in [Type::F16, Type::BF16] {
        cases.extend([Ex2, Tanh].map(|func| case(Op::Mufu(func), &[ty], ty)));
    }
    check(&cases);
    check_where(&functions_of_the_hardware(), true, |_, _| true);
}

#[test]
fn the_processor_flushes_as_the_operations_say() {
    let mut cases = Vec::new();
    for round in DIRECTIONS {
        for sat in [false, true] {
            let mode = mode(round, true, sat);
            for op in [FloatBinary::Add, FloatBinary::Sub, FloatBinary::Mul, FloatBinary::Div] {
                cases.push(case(Op::Float(op, mode), &[Type::F32; 2], Type::F32));
            }
            cases.push(case(Op::Fma(mode), &[Type::F32; 3], Type::F32));
            for op in [FloatUnary::Sqrt, FloatUnary::Rcp] {
                cases.push(case(Op::FloatUnary(op, mode), &[Type::F32], Type::F32));
            }
        }
    }
    use simt_ir::Approx::*;
    for func in [Ex2, Lg2, Sin, Cos, Tanh, Rcp, Rsqrt, Sqrt] {
        cases.push(case(Op::Approx { func, ftz: true }, &[Type::F32], Type::F32));
    }
    for func in [Div, DivFull] {
        cases.push(case(Op::Approx { func, ftz: true }, &[Type::F32; 2], Type::F32));
    }
    // What is made of steps rather than one instruction is not left to the processor.
    let direct = |case: &Case| match case.op {
        Op::Float(_, mode) | Op::Fma(mode) | Op::FloatUnary(_, mode) => mode.round == Rounding::Nearest,
        Op::Approx { func, .. } => !matches!(func, Sin | Cos),
        _ => false,
    };
    check_where(&cases, true, |case, cpu| direct(case) || cpu.has_embedded_rounding());
}
