//! From a program in IR to an object file.

use kernel_abi::{CompileError, EntryKind, KernelInfo, Shape, Tier};
use simt_ir::Program;
use transform::gang::Choice;
use transform::{inline, targets};

use crate::emit;
use crate::flush;
use crate::llvm::{Builder, Context, TELLS_FRAME};
use crate::target::{Cpu, Machine};

/// Instructions of a kernel whose calls had to be inlined, or to become parts of it, above which even code that is made quickly is not there soon: it
/// takes a millisecond for some of them. Such kernels are those of languages' runtimes: most of it is hardly ever run.
const LONG: usize = 2000;

/// The symbol of a compiled kernel's entry, a [`BlocksEntry`](kernel_abi::BlocksEntry) or a [`WarpEntry`](kernel_abi::WarpEntry).
pub const ENTRY_SYMBOL: &str = "anywarp_kernel";

/// Bytes of a frame that counts: what is less, every thread has left.
const LARGE_FRAME: u32 = 64 << 10;

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct Object {
    /// A relocatable ELF object that defines [`ENTRY_SYMBOL`].
    pub bytes: Vec<u8>,
    /// What the kernel needs.
    pub info: KernelInfo,
}

/// A text form of compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// LLVM's IR as emitted.
    Ir,
    /// LLVM's IR after its passes.
    OptimizedIr,
    /// Assembly.
    Assembly,
}

/// A part of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// LLVM's description of the CPU is made, if the thread has none yet.
    Machine,
    /// The passes over our IR, and from it LLVM's.
    Emission,
    /// LLVM's passes.
    Passes,
    /// Machine code.
    Generation,
}

/// How code is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How much is done for its speed.
    pub tier: Tier,
    /// When warps run in gangs.
    pub gangs: Choice,
    /// Whether it may take long.
    pub patient: bool,
}

impl Plan {
    /// Quickly: less code, and LLVM does with it as little as it can.
    pub const QUICK: Plan = Plan { tier: Tier::Quick, gangs: Choice::ForLessCode, patient: false };
    /// Well.
    pub const FULL: Plan = Plan::in_gangs(Choice::WhereItPays);

    /// Well, with a choice of when warps run in gangs.
    pub const fn in_gangs(gangs: Choice) -> Plan {
        Plan { tier: Tier::Full, gangs, patient: true }
    }

    /// For this tier.
    pub fn of(tier: Tier) -> Plan {
        match tier {
            Tier::Quick => Plan::QUICK,
            Tier::Patient => Plan { patient: true, ..Plan::QUICK },
            Tier::Full => Plan::FULL,
        }
    }
}

/// Compiles a kernel for a launch shape and a CPU.
pub fn compile(program: &Program, shape: &Shape, cpu: &Cpu) -> Result<Object, CompileError> {
    compile_as(program, shape, cpu, Plan::FULL)
}

/// Likewise, in a certain way.
pub fn compile_as(program: &Program, shape: &Shape, cpu: &Cpu, plan: Plan) -> Result<Object, CompileError> {
    compile_in_stages(program, shape, cpu, plan, &mut |_| ())
}

/// Likewise, telling at the end of each stage, in order, that it is done.
pub fn compile_in_stages(
    program: &Program,
    shape: &Shape,
    cpu: &Cpu,
    plan: Plan,
    done: &mut dyn FnMut(Stage),
) -> Result<Object, CompileError> {
    let machine = Machine::of_tier(cpu, plan.tier).map_err(CompileError::new)?;
    let context = Context::new();
    context.forget_names();
    done(Stage::Machine);
    let (builder, mut info) = emit_unoptimized(program, shape, &machine, &context, plan)?;
    done(Stage::Emission);
    machine.optimize(builder.module()).map_err(CompileError::new)?;
    done(Stage::Passes);
    let large = LARGE_FRAME.to_string();
    builder.module().functions().for_each(|function| function.add_string_attribute(TELLS_FRAME, &large));
    let bytes = machine.emit_object(builder.module()).map_err(CompileError::new)?;
    info.stack_bytes = u32::try_from(context.told_frames()).unwrap_or(u32::MAX);
    done(Stage::Generation);
    Ok(Object { bytes, info })
}

/// Compiles a kernel as far as to a text form, for people to read.
pub fn emit_text(program: &Program, shape: &Shape, cpu: &Cpu, text: Text) -> Result<String, CompileError> {
    emit_text_as(program, shape, cpu, Plan::FULL, text)
}

/// Likewise, of code that is made in a certain way.
pub fn emit_text_as(
    program: &Program,
    shape: &Shape,
    cpu: &Cpu,
    plan: Plan,
    text: Text,
) -> Result<String, CompileError> {
    let machine = Machine::of_tier(cpu, plan.tier).map_err(CompileError::new)?;
    let context = Context::new();
    let (builder, _) = emit_unoptimized(program, shape, &machine, &context, plan)?;
    if text == Text::Ir {
        return Ok(builder.module().to_string());
    }
    machine.optimize(builder.module()).map_err(CompileError::new)?;
    match text {
        Text::Assembly => machine.emit_assembly(builder.module()).map_err(CompileError::new),
        _ => Ok(builder.module().to_string()),
    }
}

fn emit_unoptimized<'c>(
    program: &Program,
    shape: &Shape,
    machine: &Machine,
    context: &'c Context,
    plan: Plan,
) -> Result<(Builder<'c>, KernelInfo), CompileError> {
    let mut program = program.clone();
    targets::resolve(&mut program);
    let mut inlined = program.clone();
    let refused = match inline::inline_calls(&mut inlined) {
        true => match emit_inlined(&inlined, shape, machine, context, plan.gangs) {
            Err(error) if error.unsupported && inline::has_calls(&inlined) => error,
            result => return result,
        },
        false => CompileError::unsupported("the kernel is too large once its calls are inlined"),
    };
    // What cannot be done in a function may be in the kernel's own body.
    let Some(routines) = inline::inline_all_that_meet(&mut program) else { return Err(refused) };
    if inline::size(&program, &routines) > LONG && !plan.patient {
        return Err(CompileError::later(refused.message));
    }
    let scale = transform::routines::merge(&mut program, &routines, shape);
    let (builder, mut info) = emit_inlined(&program, shape, machine, context, plan.gangs)
        .map_err(|error| if error.unsupported { refused } else { error })?;
    info.local_bytes = info.local_bytes.saturating_mul(scale);
    info.stack_limits *= scale;
    Ok((builder, info))
}

/// Emits a kernel whose calls have been inlined.
fn emit_inlined<'c>(
    program: &Program,
    shape: &Shape,
    machine: &Machine,
    context: &'c Context,
    choice: Choice,
) -> Result<(Builder<'c>, KernelInfo), CompileError> {
    let module = context.module("kernel");
    machine.prepare(module);
    let builder = Builder::new(module);
    let flushing = flush::in_hardware(program, machine.cpu());
    let emit::Emitted { state_bytes, waits, may_wait, gang, retraced, tiled, walks, turned, aligned } =
        emit::module(&builder, program, shape, machine, flushing, choice)?;
    if flushing {
        let flushed = module.functions().filter(|function| !emit::keeps_subnormals(*function));
        flushed.for_each(|function| machine.set_flushing(function));
    }
    let (local_bytes, unbounded_stack) = inline::stack_need(program, kernel_abi::CALL_BYTES);
    let info = KernelInfo {
        param_bytes: program.param_bytes,
        shared_bytes: program.shared_bytes,
        shared_align: program.shared_align.max(16),
        local_bytes: u32::try_from(local_bytes).unwrap_or(u32::MAX),
        stack_limits: unbounded_stack.into(),
        stack_bytes: 0,
        state_bytes: state_bytes.unwrap_or(0),
        globals: program.globals.clone(),
        flush_subnormals: flushing,
        waits,
        may_wait,
        gang,
        retraced,
        tiled,
        walks,
        turned,
        aligned,
        entry: if state_bytes.is_some() { EntryKind::Warps } else { EntryKind::Blocks },
    };
    Ok((builder, info))
}
