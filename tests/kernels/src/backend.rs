//! The back ends by name.

use codegen::{Choice, Plan};
use jit::Jit;
use jit::compiler::{Compiler, Source};
use kernel_abi::artifact::Artifact;
use kernel_abi::{Approximations, CompileError, KernelBackend};

use crate::module::read;

/// Names of all back ends: the interpreter, code for this processor that runs warps in gangs or in strips, or lanes one at a time, wherever it can, code that is
/// there soon, and generated code for each kind of processor that this one can stand in for, the best last.
pub fn names() -> Vec<String> {
    let levels = ["baseline", "avx2", "avx512"].into_iter().filter(|level| runs_here(level));
    let quick = ["quick", "quick-avx2"].into_iter().filter(|name| *name == "quick" || runs_here("avx2"));
    ["interp", "gangs", "strips", "singly"].into_iter().chain(quick).chain(levels).map(String::from).collect()
}

/// The back end of this name.
pub fn open(name: &str) -> Result<Box<dyn KernelBackend>, String> {
    open_with(name, Approximations::default())
}

/// Likewise, with a choice of what `.approx` instructions become.
pub fn open_with(name: &str, approximations: Approximations) -> Result<Box<dyn KernelBackend>, String> {
    match name {
        "interp" => Ok(Box::new(interp::Interpreter { approximations, ..interp::Interpreter::default() })),
        "baseline" | "avx2" | "avx512" | "native" => {
            let compiler = InProcess { cpu: name.into(), plan: Plan::FULL };
            Ok(Box::new(Jit::with(Box::new(compiler), None, approximations)))
        }
        "gangs" | "strips" | "singly" | "quick" | "quick-avx2" => {
            let (cpu, plan) = match name {
                "gangs" => ("native", Plan::in_gangs(Choice::Always)),
                "strips" => ("native", Plan::in_gangs(Choice::InStrips)),
                "singly" => ("native", Plan::in_gangs(Choice::Singly)),
                "quick" => ("native", Plan::QUICK),
                _ => ("avx2", Plan::QUICK),
            };
            let compiler = InProcess { cpu: cpu.into(), plan };
            Ok(Box::new(Jit::with(Box::new(compiler), None, approximations)))
        }
        _ => Err(format!("there is no back end '{name}'")),
    }
}

fn runs_here(level: &str) -> bool {
    match level {
        "avx2" => std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
        "avx512" => ["avx512f", "avx512bw", "avx512dq", "avx512vl"].iter().all(|feature| match *feature {
            "avx512f" => std::is_x86_feature_detected!("avx512f"),
            "avx512bw" => std::is_x86_feature_detected!("avx512bw"),
            "avx512dq" => std::is_x86_feature_detected!("avx512dq"),
            _ => std::is_x86_feature_detected!("avx512vl"),
        }),
        _ => true,
    }
}

/// The compiler linked in, without its library and without a cache.
struct InProcess {
    cpu: String,
    plan: Plan,
}

impl Compiler for InProcess {
    fn identity(&self) -> String {
        format!("in process, {}, {:?}", self.cpu, self.plan)
    }

    fn compile(&self, source: &Source<'_>) -> Result<Artifact, CompileError> {
        let error = |errors: ptx::Errors| CompileError::new(errors.to_string());
        let module = read(source.ptx).map_err(error)?;
        let program = ptx::lower::program_with(source.ptx, &module, source.entry, source.approximations)
            .map_err(error)?;
        let cpu = codegen::target::Cpu::named(&self.cpu).map_err(|e| CompileError::new(e.to_string()))?;
        let object = codegen::compile_as(&program, &source.shape, &cpu, self.plan)?;
        Ok(Artifact { object: object.bytes, info: object.info })
    }
}
