//! What runs kernels.

use device::{Error, Result};
use interp::Interpreter;
use jit::Jit;
use jit::compiler::CompilerLibrary;
use kernel_abi::{KernelBackend, WithFallback};
use std::sync::Arc;

/// What happens where the compiler library is not installed and the environment does not name a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutCompiler {
    /// A launch of a kernel that is not in the cache fails: the installation is incomplete.
    Refuse,
    /// Kernels are interpreted: correct, a hundred times slower, and told on standard error.
    Interpret,
}

/// What runs kernels: compiled code, and the interpreter for what the compiler does not support; or only the one that
/// `ANYWARP_BACKEND` names, `jit` or `interp`.
///
/// # Errors
/// [`Error::InvalidValue`] for another name, which is told on standard error.
pub fn backend(without: WithoutCompiler) -> Result<Arc<dyn KernelBackend>> {
    let name = std::env::var("ANYWARP_BACKEND").unwrap_or_default();
    if name.is_empty() && without == WithoutCompiler::Interpret && !CompilerLibrary::is_installed() {
        eprintln!("anywarp: no compiler library (ANYWARP_COMPILER_LIB): kernels are interpreted");
        return named("interp");
    }
    named(&name)
}

fn named(name: &str) -> Result<Arc<dyn KernelBackend>> {
    let (jit, interpreter) = (|| Arc::new(Jit::default()), || Arc::new(Interpreter::default()));
    match name {
        "" => Ok(Arc::new(WithFallback::new(jit(), interpreter()))),
        "jit" => Ok(jit()),
        "interp" => Ok(interpreter()),
        other => {
            eprintln!("anywarp: ANYWARP_BACKEND={other} is no back end: there are jit and interp");
            Err(Error::InvalidValue)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name() {
        assert_eq!(named("interp").unwrap().name(), "interp");
        assert_eq!(named("jit").unwrap().name(), named("").unwrap().name(), "the compiler comes first");
        assert_eq!(named("gpu").err(), Some(Error::InvalidValue));
    }
}
