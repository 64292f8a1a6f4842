//! The LLVM layer: what it builds is well formed, compiles for every CPU level, and ill-typed use is refused.

use codegen::llvm::{
    AtomicOp, Builder, Context, FloatPredicate, IntPredicate, Linkage, LoopHint, Module, Ordering,
};
use codegen::target::{Cpu, Level, Machine};

const LEVELS: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

/// A function over 32 lanes that uses every sort of instruction: `void(ptr a, ptr b, i64 n)`.
fn everything(module: Module<'_>, machine: &Machine) {
    let context = module.context();
    let (ptr, i64, i32, f32) = (context.ptr(), context.int(64), context.int(32), context.float());
    let function = module.add_function("everything", context.void(), &[ptr, ptr, i64], Linkage::External);
    machine.set_attributes(function);
    function.add_param_attribute(0, "noalias", 0);
    function.add_param_attribute(1, "align", 16);
    let b = Builder::new(module);
    let (entry, body, exit) =
        (function.append_block("entry"), function.append_block("body"), function.append_block("exit"));
    b.position_at_end(entry);
    let scratch = b.alloca(i32, 4);
    b.store(i32.zero(), scratch, 4);
    b.br(body);

    b.position_at_end(body);
    let i = b.phi(i64);
    i.add_incoming(i64.zero(), entry);
    let lanes = i32.int_vector(&(0..32).collect::<Vec<_>>());
    let bytes = b.shl(i.value(), i64.int_const(2));
    let (at_a, at_b) = (b.ptr_add(function.param(0), bytes), b.ptr_add(function.param(1), bytes));
    let position = b.add(b.splat(b.trunc(i.value(), i32), 32), lanes);
    let limit = b.splat(b.trunc(function.param(2), i32), 32);
    let mask = b.icmp(IntPredicate::Ult, position, limit);
    let vector = f32.vector(32);
    let x = b.masked_load(vector, at_a, 4, mask, vector.zero());
    let scopes = context.alias_scopes(&["a", "b"]);
    scopes[0].mark(context, x, &scopes);
    let offsets = b.sext(b.mul(position, i32.vector(32).int_const(8)), i64);
    let pointers = b.ptr_add(function.param(1), offsets);
    let y = b.gather(vector, pointers, 4, mask, vector.zero());
    let product = b.fma(x, y, vector.float_const(0.5));
    let positive = b.fcmp(FloatPredicate::Ogt, product, vector.zero());
    let chosen = b.select(positive, b.sqrt(product), b.fneg(product));
    b.masked_store(chosen, at_b, 4, mask);
    b.scatter(chosen, pointers, 4, b.and(mask, positive));
    let reversed = b.shuffle(chosen, chosen, &(0..32).rev().collect::<Vec<_>>());
    let lane = b.extract(reversed, 3);
    let (old, replaced) =
        b.compare_exchange(scratch, i32.zero(), b.bitcast(lane, i32), Ordering::SequentiallyConsistent);
    b.atomic_rmw(AtomicOp::UMax, scratch, b.add(old, b.zext(replaced, i32)), Ordering::Relaxed);
    b.fence(Ordering::AcquireRelease);
    b.mark_volatile(b.load(i32, scratch, 4));
    let next = b.add_nowrap(i.value(), i64.int_const(32), false, true);
    i.add_incoming(next, body);
    let more = b.and(b.icmp(IntPredicate::Ult, next, function.param(2)), b.any(mask));
    let latch = b.cond_br(more, body, exit);
    b.mark_loop(latch, &[LoopHint::DoNotUnroll, LoopHint::DoNotVectorize, LoopHint::DoNotHoist]);

    b.position_at_end(exit);
    b.ret_void();
}

#[test]
fn every_instruction_compiles_at_every_level() {
    let native = Cpu::native().unwrap();
    for cpu in LEVELS.map(Cpu::level_cpu).into_iter().chain([native]) {
        let context = Context::new();
        let machine = Machine::for_cpu(&cpu).unwrap();
        let module = context.module("test");
        machine.prepare(module);
        everything(module, &machine);
        machine.optimize(module).unwrap();
        let object = machine.emit_object(module).unwrap();
        assert!(object.starts_with(b"\x7fELF"), "{cpu:?}");
    }
}

#[test]
fn assembly_uses_the_vectors_of_the_level() {
    for (level, register, absent) in
        [(Level::Baseline, "%xmm", "%ymm"), (Level::Avx2, "%ymm", "%zmm"), (Level::Avx512, "%zmm", "%fs")]
    {
        let context = Context::new();
        let machine = Machine::for_cpu(&Cpu::level_cpu(level)).unwrap();
        let module = context.module("test");
        machine.prepare(module);
        everything(module, &machine);
        machine.optimize(module).unwrap();
        let assembly = machine.emit_assembly(module).unwrap();
        assert!(assembly.contains(register) && !assembly.contains(absent), "{level:?}");
    }
}

/// A mask that goes around a loop and is read after it.
fn crossing_mask(module: Module<'_>, machine: &Machine, count: u32) {
    let context = module.context();
    let (ptr, i32, mask) = (context.ptr(), context.int(32), context.int(1).vector(count));
    let function = module.add_function("crossing", context.void(), &[ptr, i32], Linkage::External);
    machine.set_attributes(function);
    let b = Builder::new(module);
    let [entry, body, exit] = ["entry", "body", "exit"].map(|name| function.append_block(name));
    b.position_at_end(entry);
    b.br(body);
    b.position_at_end(body);
    let (left, at) = (b.phi(mask), b.phi(i32));
    left.add_incoming(mask.all_ones(), entry);
    at.add_incoming(i32.zero(), entry);
    let lanes = i32.int_vector(&(0..u64::from(count)).collect::<Vec<_>>());
    let limit = b.splat(b.sub(function.param(1), at.value()), count);
    let still = b.and(left.value(), b.icmp(IntPredicate::Slt, lanes, limit));
    let next = b.add(at.value(), i32.int_const(1));
    left.add_incoming(still, body);
    at.add_incoming(next, body);
    b.cond_br(b.any(still), body, exit);
    b.position_at_end(exit);
    b.masked_store(b.splat(next, count), function.param(0), 4, b.xor(still, left.value()));
    b.ret_void();
}

#[test]
fn masks_without_registers_of_their_own_stay_vectors_between_blocks() {
    for level in [Level::Baseline, Level::Avx2] {
        let context = Context::new();
        let machine = Machine::for_cpu(&Cpu::level_cpu(level)).unwrap();
        let module = context.module("test");
        machine.prepare(module);
        crossing_mask(module, &machine, 64);
        machine.optimize(module).unwrap();
        module.verify().unwrap();
        let text = module.to_string();
        let crosses = |line: &&str| line.contains("phi <64 x i1>");
        assert_eq!(text.lines().find(crosses), None, "{level:?}");
        assert!(text.contains("phi <64 x i8>"), "{level:?}");
        let assembly = machine.emit_assembly(module).unwrap();
        let inserts = assembly.lines().filter(|line| line.contains("pinsrb")).count();
        assert_eq!(inserts, 0, "{level:?}: a lane at a time");
    }
}

#[test]
fn masks_of_a_few_registers_are_words_wherever_they_go() {
    for count in [8, 16, 32] {
        let context = Context::new();
        let machine = Machine::for_cpu(&Cpu::level_cpu(Level::Avx2)).unwrap();
        let module = context.module("test");
        machine.prepare(module);
        crossing_mask(module, &machine, count);
        machine.optimize(module).unwrap();
        module.verify().unwrap();
        let text = module.to_string();
        assert!(text.contains(&format!("phi <{count} x i32>")), "{text}");
        let computes = |line: &&str| {
            ["phi", "and", "xor"].iter().any(|op| line.contains(&format!(" {op} <{count} x i1>")))
        };
        assert_eq!(text.lines().find(computes), None);
        let assembly = machine.emit_assembly(module).unwrap();
        assert!(!assembly.contains("vpack") && !assembly.contains("vpmovzx"), "{assembly}");
    }
}

#[test]
fn levels_are_ordered_and_found_again() {
    for level in LEVELS {
        assert_eq!(Cpu::level_cpu(level).level(), level);
    }
    assert!(Cpu::native().unwrap().level() >= Level::Baseline);
    assert_eq!(Cpu::named("").unwrap(), Cpu::native().unwrap());
    assert!(Cpu::named("i386").is_err());
}

#[test]
fn a_malformed_module_is_refused_before_the_passes() {
    let context = Context::new();
    let machine = Machine::for_cpu(&Cpu::level_cpu(Level::Baseline)).unwrap();
    let module = context.module("test");
    machine.prepare(module);
    let function = module.add_function("f", context.void(), &[], Linkage::External);
    function.append_block("without a terminator");
    assert!(machine.optimize(module).unwrap_err().contains("terminator"));
}

#[test]
#[should_panic(expected = "operands of i32 and i64")]
fn operands_of_two_types_are_refused() {
    let context = Context::new();
    let module = context.module("test");
    let b = Builder::new(module);
    let function = module.add_function("f", context.void(), &[], Linkage::External);
    b.position_at_end(function.append_block("entry"));
    b.add(context.int(32).zero(), context.int(64).zero());
}

#[test]
#[should_panic(expected = "argument types against parameter types")]
fn a_call_with_other_arguments_is_refused() {
    let context = Context::new();
    let module = context.module("test");
    let b = Builder::new(module);
    let function = module.add_function("f", context.void(), &[context.ptr()], Linkage::External);
    b.position_at_end(function.append_block("entry"));
    b.call(function, &[context.int(64).zero()]);
}

#[test]
fn the_text_form_shows_what_was_built() {
    let context = Context::new();
    let machine = Machine::for_cpu(&Cpu::level_cpu(Level::Avx2)).unwrap();
    let module = context.module("test");
    machine.prepare(module);
    everything(module, &machine);
    let text = module.to_string();
    for expected in ["llvm.masked.gather.v32f32", "!alias.scope", "align 4", "llvm.licm.disable", "cmpxchg"] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
}
