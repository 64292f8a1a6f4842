//! What runs kernels.

use device::{Error, Result};
use interp::Interpreter;
use jit::Jit;
use jit::compiler::CompilerLibrary;
use kernel_abi::{Approximations, KernelBackend, WithFallback};
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
/// `ANYWARP_BACKEND` names, `jit` or `interp`. `ANYWARP_APPROX` names what `.approx` instructions become, `fast` or `hardware`.
///
/// # Errors
/// [`Error::InvalidValue`] for other names, which are told on standard error.
pub fn backend(without: WithoutCompiler) -> Result<Arc<dyn KernelBackend>> {
    let name = std::env::var("ANYWARP_BACKEND").unwrap_or_default();
    let approximations = approximations(&std::env::var("ANYWARP_APPROX").unwrap_or_default())?;
    if name.is_empty() && without == WithoutCompiler::Interpret && !CompilerLibrary::is_installed() {
        eprintln!("anywarp: no compiler library (ANYWARP_COMPILER_LIB): kernels are interpreted");
        return named("interp", approximations);
    }
    named(&name, approximations)
}

fn approximations(name: &str) -> Result<Approximations> {
    if name.is_empty() {
        return Ok(Approximations::default());
    }
    Approximations::named(name).ok_or_else(|| {
        eprintln!("anywarp: ANYWARP_APPROX={name} is no kind of approximation: there are fast and hardware");
        Error::InvalidValue
    })
}

fn named(name: &str, approximations: Approximations) -> Result<Arc<dyn KernelBackend>> {
    let jit = || Arc::new(Jit::from_environment(approximations));
    let interpreter = || Arc::new(Interpreter { approximations, ..Interpreter::default() });
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
        let named = |name| named(name, Approximations::default());
        assert_eq!(named("interp").unwrap().name(), "interp");
        assert_eq!(named("jit").unwrap().name(), named("").unwrap().name(), "the compiler comes first");
        assert_eq!(named("gpu").err(), Some(Error::InvalidValue));
        assert_eq!(approximations(""), Ok(Approximations::Fast));
        assert_eq!(approximations("hardware"), Ok(Approximations::Hardware));
        assert_eq!(approximations("exact"), Err(Error::InvalidValue));
    }
}
