//! `libanywarp_compiler.so`: PTX in, machine code out.
//!
//! The only library that contains LLVM, and thus large. A process opens it at the first kernel that is in no cache. Its C
//! interface is [`kernel_abi::library`]; three symbols are all it exports. Rust programs may link [`compile`] in instead.

mod entry;
mod exit;

use codegen::Plan;
use codegen::target::Cpu;
use kernel_abi::artifact::Artifact;
use kernel_abi::{Approximations, CompileError, Shape, Tier};
use ptx::{Errors, LoadErrorKind};

pub use entry::{anywarp_compile, anywarp_compile_free, anywarp_compiler_interface};

/// Compiles the kernel `entry` of a linked module for launches of `shape` on the CPU called `cpu` (`native`, `baseline`,
/// `avx2`, `avx512`).
pub fn compile(
    source: &str,
    entry: &str,
    shape: Shape,
    cpu: &str,
    approximations: Approximations,
    tier: Tier,
) -> Result<Artifact, CompileError> {
    let cpu = Cpu::named(cpu).map_err(|error| CompileError::new(error.to_string()))?;
    // Its device accepted the module when it was loaded; only the kernel's own functions are read again.
    let options = ptx::Options { device: None, bodies: ptx::Bodies::Skipped };
    let module = ptx::parse_with(source, &options).map_err(refused)?;
    let program = ptx::lower::program_of(source, module, entry, approximations).map_err(refused)?;
    let object = codegen::compile_as(&program, &shape, &cpu, Plan::of(tier))?;
    Ok(Artifact { info: object.info, object: object.bytes })
}

fn refused(errors: Errors) -> CompileError {
    match errors.kind() {
        LoadErrorKind::Unsupported => CompileError::unsupported(errors.to_string()),
        _ => CompileError::new(errors.to_string()),
    }
}
