//! One back end behind another.

use std::sync::Arc;

use crate::{CompileError, CompileRequest, CompiledKernel, KernelBackend};

/// Compiles with the first back end, and what that one does not support with the second: a kernel is never refused because the
/// fast path lacks something.
pub struct WithFallback {
    first: Arc<dyn KernelBackend>,
    second: Arc<dyn KernelBackend>,
}

impl WithFallback {
    /// `first`, and behind it `second`.
    pub fn new(first: Arc<dyn KernelBackend>, second: Arc<dyn KernelBackend>) -> WithFallback {
        WithFallback { first, second }
    }
}

impl KernelBackend for WithFallback {
    fn name(&self) -> &'static str {
        self.first.name()
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        match self.first.compile(request) {
            Err(error) if error.unsupported => {
                if std::env::var_os("ANYWARP_LOG").is_some() {
                    let (first, second) = (self.first.name(), self.second.name());
                    eprintln!("anywarp: {}: {second} instead of {first}: {error}", request.entry);
                }
                self.second.compile(request)
            }
            result => result,
        }
    }

    fn replayer(&self) -> Option<Arc<dyn KernelBackend>> {
        self.first.replayer().or_else(|| self.second.replayer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, Tier};

    struct Refusing(CompileError);

    impl KernelBackend for Refusing {
        fn name(&self) -> &'static str {
            "refusing"
        }

        fn compile(&self, _: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
            Err(self.0.clone())
        }
    }

    #[test]
    fn only_what_is_unsupported_goes_to_the_second() {
        let second = Arc::new(Refusing(CompileError::new("second asked")));
        let compile = |first: CompileError| {
            let request = CompileRequest {
                ptx: "",
                entry: "k",
                shape: Shape::ANY,
                tier: Tier::Full,
                program: &|_| Err(CompileError::new("no program")),
            };
            let both = WithFallback::new(Arc::new(Refusing(first)), Arc::clone(&second) as _);
            both.compile(&request).err().map(|error| error.message)
        };
        assert_eq!(compile(CompileError::unsupported("new")).as_deref(), Some("second asked"));
        assert_eq!(compile(CompileError::new("wrong")).as_deref(), Some("wrong"));
    }
}
