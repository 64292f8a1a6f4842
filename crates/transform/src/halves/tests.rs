use super::*;
use simt_ir::{
    Block, FloatCmp, FloatMode, FloatRel, FloatUnary, FunctionBuilder, IntCmp, Program, Signature, Target,
    Terminator, eval,
};

/// Takes a number apart: its lower half, and its upper one.
fn apart(b: &mut FunctionBuilder, number: Value) -> [Value; 2] {
    let bits = b.inst(Op::Convert(Convert::Bitcast), &[number], Type::I64);
    let by = b.constant(Type::I32, 32);
    let high = b.inst(Op::Shift(Shift::RightU), &[bits, by], Type::I64);
    [bits, high].map(|half| b.inst(Op::Convert(Convert::Trunc), &[half], Type::I32))
}

/// Puts a number together.
fn together(b: &mut FunctionBuilder, [low, high]: [Value; 2]) -> Value {
    let [low, high] = [low, high].map(|half| b.inst(Op::Convert(Convert::ZExt), &[half], Type::I64));
    let by = b.constant(Type::I32, 32);
    let high = b.inst(Op::Shift(Shift::Left), &[high, by], Type::I64);
    let bits = b.inst(Op::Int(IntBinary::Or), &[low, high], Type::I64);
    b.inst(Op::Convert(Convert::Bitcast), &[bits], Type::F64)
}

fn of_two(b: &mut FunctionBuilder, op: IntBinary, value: Value, constant: u64) -> Value {
    let constant = b.constant(Type::I32, constant);
    b.inst(Op::Int(op), &[value, constant], Type::I32)
}

/// How many instructions of a block make numbers of 32 bits, but for constants.
fn halves_in(func: &Function, block: Block) -> usize {
    let insts = func.block(block).insts.iter().map(|inst| func.inst(*inst));
    insts.filter(|data| func.ty(data.results[0]) == Type::I32 && !matches!(data.op, Op::Const(_))).count()
}

/// What a function of one block returns for these bits.
fn run(func: &Function, params: &[u64]) -> Vec<u64> {
    let block = func.block(Function::ENTRY);
    let mut known: HashMap<Value, u64> = block.params.iter().copied().zip(params.iter().copied()).collect();
    for inst in &block.insts {
        let data = func.inst(*inst);
        let args: Vec<u64> = data.args.iter().map(|arg| known[arg]).collect();
        let types: Vec<Type> = data.args.iter().map(|arg| func.ty(*arg)).collect();
        let bits = eval::eval(data.op, &args, &types, func.ty(data.results[0])).expect("it is pure");
        known.insert(data.results[0], bits);
    }
    block.term.uses().iter().map(|value| known[value]).collect()
}

/// Numbers whose halves are at the edges of what is compared and carried.
fn numbers() -> Vec<u64> {
    let halves = [0u32, 1, 0x3fff_ffff, 0x4086_232a, 0x4086_232b, 0x4086_232c, 0x7fff_fffe, 0x7fff_ffff];
    let halves: Vec<u32> = halves.iter().flat_map(|half| [*half, !half]).collect();
    halves.iter().flat_map(|high| halves.iter().map(|low| u64::from(*high) << 32 | u64::from(*low))).collect()
}

/// What computes of the halves of two numbers gives the same afterwards, and has so many operations of 32 bits then.
fn check(results: &[Type], left: usize, build: impl Fn(&mut FunctionBuilder, [[Value; 2]; 2]) -> Vec<Value>) {
    let signature = Signature { params: vec![Type::F64, Type::F64], results: results.to_vec() };
    let mut b = FunctionBuilder::new("f", signature);
    let params = [b.param(0), b.param(1)];
    let numbers_apart = params.map(|number| apart(&mut b, number));
    let results = build(&mut b, numbers_apart);
    b.terminate(Terminator::Return(results));
    let before = b.finish();
    let mut after = before.clone();
    halves(&mut after);
    assert_eq!(halves_in(&after, Function::ENTRY), left);
    for first in numbers() {
        for second in numbers() {
            let params = [first, second];
            assert_eq!(run(&after, &params), run(&before, &params), "{first:#x} {second:#x}");
        }
    }
}

#[test]
fn an_exponent_is_added_to_in_place() {
    check(&[Type::F64], 0, |b, [[low, high], [other, _]]| {
        let by = b.constant(Type::I32, 20);
        let exponent = b.inst(Op::Shift(Shift::Left), &[other, by], Type::I32);
        let high = b.inst(Op::Int(IntBinary::Add), &[high, exponent], Type::I32);
        vec![together(b, [low, high])]
    });
}

#[test]
fn a_mantissa_is_masked_in_place() {
    check(&[Type::F64], 0, |b, [[low, high], _]| {
        let high = of_two(b, IntBinary::And, high, 0x800f_ffff);
        let high = of_two(b, IntBinary::Or, high, 0x3ff0_0000);
        let high = of_two(b, IntBinary::Sub, high, 0x0010_0000);
        vec![together(b, [low, high])]
    });
}

#[test]
fn halves_of_two_numbers_meet() {
    check(&[Type::F64, Type::F64], 0, |b, [[low, high], [other_low, other_high]]| {
        let low_sum = b.inst(Op::Int(IntBinary::Add), &[low, other_low], Type::I32);
        let mixed = b.inst(Op::Int(IntBinary::Xor), &[high, other_high], Type::I32);
        vec![together(b, [low_sum, high]), together(b, [low, mixed])]
    });
}

#[test]
fn carries_of_lower_halves_do_not_reach_upper_ones() {
    check(&[Type::F64], 0, |b, [[low, high], [_, other_high]]| {
        let sum = b.inst(Op::Int(IntBinary::Add), &[high, other_high], Type::I32);
        vec![together(b, [low, sum])]
    });
}

#[test]
fn what_only_comparisons_ask_for_is_compared_in_place() {
    let compare = |b: &mut FunctionBuilder, relation: IntCmp, value: Value, limit: u64| {
        let limit = b.constant(Type::I32, limit);
        b.inst(Op::IntCmp(relation), &[value, limit], Type::Pred)
    };
    let relations = [
        IntCmp::Eq,
        IntCmp::Ne,
        IntCmp::LtS,
        IntCmp::LeS,
        IntCmp::GtS,
        IntCmp::GeS,
        IntCmp::LtU,
        IntCmp::LeU,
        IntCmp::GtU,
        IntCmp::GeU,
    ];
    for relation in relations {
        check(&[Type::Pred, Type::Pred], 0, |b, [[_, high], _]| {
            let less = of_two(b, IntBinary::Sub, high, 1);
            vec![compare(b, relation, high, 0x4086_232b), compare(b, relation, less, 0xffff_fffd)]
        });
        // Nothing is above the largest number.
        let largest = [IntCmp::LeS, IntCmp::GtS].contains(&relation).then_some(0x7fff_ffff);
        let largest = largest.or([IntCmp::LeU, IntCmp::GtU].contains(&relation).then_some(0xffff_ffff));
        if let Some(largest) = largest {
            check(&[Type::Pred], 1, |b, [[_, high], _]| vec![compare(b, relation, high, largest)]);
        }
    }
}

#[test]
fn magnitudes_are_compared_as_bits() {
    for (rel, nan, left) in [
        (FloatRel::Lt, false, 0),
        (FloatRel::Le, false, 0),
        (FloatRel::Gt, true, 0),
        (FloatRel::Ge, true, 0),
        // A NaN's bits are above all: these say no to it.
        (FloatRel::Gt, false, 1),
        (FloatRel::Lt, true, 1),
    ] {
        check(&[Type::Pred], left, |b, [[_, high], _]| {
            let float = b.inst(Op::Convert(Convert::Bitcast), &[high], Type::F32);
            let abs = Op::FloatUnary(FloatUnary::Abs, FloatMode::default());
            let magnitude = b.inst(abs, &[float], Type::F32);
            let limit = b.constant(Type::F32, 0x4086_232b);
            let cmp = FloatCmp { rel, nan, ftz: false };
            vec![b.inst(Op::FloatCmp(cmp), &[magnitude, limit], Type::Pred)]
        });
    }
}

#[test]
fn a_half_that_is_needed_anyway_is_compared_as_it_is() {
    check(&[Type::Pred, Type::I32], 1, |b, [[_, high], _]| {
        let limit = b.constant(Type::I32, 7);
        vec![b.inst(Op::IntCmp(IntCmp::LtS), &[high, limit], Type::Pred), high]
    });
}

/// A number or its double, as control goes: its halves come to a block along two ways.
fn joined(passes_number: bool) -> (Function, Block) {
    let mut b = FunctionBuilder::new(
        "f",
        Signature { params: vec![Type::F64, Type::Pred], results: vec![Type::F64] },
    );
    let (number, cond) = (b.param(0), b.param(1));
    let first = apart(&mut b, number);
    let (other, join) = (b.block(), b.block());
    let passed = |number: Value, halves: [Value; 2]| {
        let mut args = halves.to_vec();
        args.extend(passes_number.then_some(number));
        Target { block: join, args }
    };
    let then = passed(number, first);
    b.terminate(Terminator::Branch { cond, then, otherwise: Target::new(other), uniform: false });
    b.switch_to(other);
    let double =
        b.inst(Op::Float(simt_ir::FloatBinary::Add, FloatMode::default()), &[number, number], Type::F64);
    let second = apart(&mut b, double);
    b.terminate(Terminator::Jump(passed(double, second)));
    b.switch_to(join);
    let mut func = b.finish();
    let halves = [Type::I32, Type::I32].map(|ty| func.add_param(join, ty));
    let whole = passes_number.then(|| func.add_param(join, Type::F64));
    let make = |func: &mut Function, op: Op, args: &[Value], ty: Type| {
        let inst = func.append(join, op, args.to_vec(), &[ty], simt_ir::SourceLoc::default());
        func.inst(inst).results[0]
    };
    let [low, high] = halves.map(|half| make(&mut func, Op::Convert(Convert::ZExt), &[half], Type::I64));
    let by = make(&mut func, Op::Const(32), &[], Type::I32);
    let high = make(&mut func, Op::Shift(Shift::Left), &[high, by], Type::I64);
    let bits = make(&mut func, Op::Int(IntBinary::Or), &[low, high], Type::I64);
    let result = make(&mut func, Op::Convert(Convert::Bitcast), &[bits], Type::F64);
    let sum = Op::Float(simt_ir::FloatBinary::Add, FloatMode::default());
    let result = whole.map_or(result, |whole| make(&mut func, sum, &[result, whole], Type::F64));
    func.block_mut(join).term = Terminator::Return(vec![result]);
    (func, join)
}

#[test]
fn halves_that_control_brings_along_are_one_number() {
    for passes_number in [false, true] {
        let (mut func, join) = joined(passes_number);
        halves(&mut func);
        let mut kernel = FunctionBuilder::new("k", Signature::default());
        kernel.terminate(Terminator::Return(Vec::new()));
        let kernel = kernel.finish();
        let program = Program { functions: vec![kernel, func], ..Program::default() };
        simt_ir::verify(&program).expect("it is well formed");
        let func = &program.functions[1];
        let params: Vec<Type> = func.block(join).params.iter().map(|param| func.ty(*param)).collect();
        assert_eq!(params, [if passes_number { Type::F64 } else { Type::I64 }]);
        assert!(func.blocks().all(|block| halves_in(func, block) == 0));
    }
}

#[test]
fn a_half_is_taken_out_where_it_is_asked_for() {
    let mut b = FunctionBuilder::new(
        "f",
        Signature { params: vec![Type::F64, Type::Pred], results: vec![Type::I32] },
    );
    let (number, cond) = (b.param(0), b.param(1));
    let [_, high] = apart(&mut b, number);
    let zero = b.constant(Type::I32, 0);
    let (rare, end) = (b.block(), b.block());
    b.terminate(Terminator::Branch {
        cond,
        then: Target::new(rare),
        otherwise: Target::new(end),
        uniform: false,
    });
    b.switch_to(rare);
    let odd = of_two(&mut b, IntBinary::And, high, 1);
    b.terminate(Terminator::Return(vec![odd]));
    b.switch_to(end);
    b.terminate(Terminator::Return(vec![zero]));
    let mut func = b.finish();
    halves(&mut func);
    assert_eq!([Function::ENTRY, rare].map(|block| halves_in(&func, block)), [0, 2]);
}

#[test]
fn sums_that_double_again_and_again_are_looked_at_once() {
    check(&[Type::Pred], 41, |b, [[_, high], _]| {
        let mut sum = high;
        for _ in 0..40 {
            sum = b.inst(Op::Int(IntBinary::Add), &[sum, sum], Type::I32);
        }
        let limit = b.constant(Type::I32, 7);
        vec![b.inst(Op::IntCmp(IntCmp::LtS), &[sum, limit], Type::Pred)]
    });
}
