//! One back end behind another.

use std::sync::Arc;

use crate::{
    BlockFrame, CompileError, CompileRequest, CompiledKernel, Fault, KernelBackend, KernelInfo, Successor,
};

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
                let kernel = self.second.compile(request)?;
                let successor = if error.later { self.first.later(request) } else { None };
                if std::env::var_os("ANYWARP_LOG").is_some() {
                    let (first, second) = (self.first.name(), self.second.name());
                    let until = if successor.is_some() { "until there is code of" } else { "instead of" };
                    eprintln!("anywarp: {}: {second} {until} {first}: {error}", request.entry);
                }
                Ok(match successor {
                    Some(successor) => Arc::new(Stopgap { kernel, successor }),
                    None => kernel,
                })
            }
            result => result,
        }
    }

    fn replayer(&self) -> Option<Arc<dyn KernelBackend>> {
        self.first.replayer().or_else(|| self.second.replayer())
    }
}

/// A kernel until there is other code of it.
struct Stopgap {
    kernel: Arc<dyn CompiledKernel>,
    successor: Arc<dyn Successor + Send + Sync>,
}

impl CompiledKernel for Stopgap {
    fn info(&self) -> &KernelInfo {
        self.kernel.info()
    }

    fn successor(&self) -> Option<&dyn Successor> {
        Some(&*self.successor)
    }

    unsafe fn run(&self, frame: &mut BlockFrame, first: u64, count: u64) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        unsafe { self.kernel.run(frame, first, count) }
    }

    unsafe fn run_each(
        &self,
        frame: &mut BlockFrame,
        blocks: &mut dyn Iterator<Item = u64>,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        unsafe { self.kernel.run_each(frame, blocks) }
    }

    unsafe fn run_clusters(&self, frames: &mut [BlockFrame], first: u64, count: u64) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        unsafe { self.kernel.run_clusters(frames, first, count) }
    }

    fn settle(&self, frame: &BlockFrame) -> Result<(), Fault> {
        self.kernel.settle(frame)
    }

    fn forget(&self) {
        self.kernel.forget();
    }

    fn takes_turns(&self) -> bool {
        self.kernel.takes_turns()
    }

    unsafe fn run_in_turns(&self, frames: &mut [BlockFrame], first: u64) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        unsafe { self.kernel.run_in_turns(frames, first) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, Tier};
    use std::time::Duration;

    struct Refusing(CompileError);

    impl KernelBackend for Refusing {
        fn name(&self) -> &'static str {
            "refusing"
        }

        fn compile(&self, _: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
            Err(self.0.clone())
        }
    }

    /// Has no code sooner than later.
    struct Slow;

    impl KernelBackend for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn compile(&self, _: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
            Err(CompileError::later("large"))
        }

        fn later(&self, _: &CompileRequest<'_>) -> Option<Arc<dyn Successor + Send + Sync>> {
            Some(Arc::new(Slow))
        }
    }

    impl Successor for Slow {
        fn is_settled(&self) -> bool {
            false
        }

        fn cost(&self) -> Duration {
            Duration::from_secs(7)
        }

        fn ran(&self, more: Duration) -> Duration {
            more
        }

        fn begin(&self) {}

        fn wait_a_while(&self, _: Duration) -> bool {
            false
        }

        fn wait(&self) -> Option<Arc<dyn CompiledKernel>> {
            None
        }
    }

    struct Done(KernelInfo);

    impl KernelBackend for Done {
        fn name(&self) -> &'static str {
            "done"
        }

        fn compile(&self, _: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
            Ok(Arc::new(Done(self.0.clone())))
        }
    }

    impl CompiledKernel for Done {
        fn info(&self) -> &KernelInfo {
            &self.0
        }

        unsafe fn run(&self, _: &mut BlockFrame, _: u64, _: u64) -> Result<(), Fault> {
            Ok(())
        }
    }

    #[test]
    fn what_takes_long_is_run_by_the_second_until_then() {
        let second = Done(KernelInfo { local_bytes: 48, ..KernelInfo::default() });
        let both = WithFallback::new(Arc::new(Slow), Arc::new(second));
        let request = CompileRequest {
            ptx: "",
            entry: "k",
            shape: Shape::ANY,
            tier: Tier::Quick,
            program: &|_| Err(CompileError::new("no program")),
        };
        let kernel = both.compile(&request).expect("the second compiles everything");
        assert_eq!(kernel.info().local_bytes, 48);
        assert_eq!(kernel.successor().map(Successor::cost), Some(Duration::from_secs(7)));
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
