//! Times launches of a kernel that does nothing: what the device itself costs.

use std::sync::Arc;
use std::time::Instant;

use device::module::Code;
use device::{ContextFlags, Launch, Module, Options, Platform, StreamKind};
use kernel_abi::{
    BlockFrame, CompileError, CompileRequest, CompiledKernel, Fault, KernelBackend, KernelInfo,
};

struct Nothing(KernelInfo);

impl KernelBackend for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn compile(&self, _: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        Ok(Arc::new(Nothing(KernelInfo::default())))
    }
}

impl CompiledKernel for Nothing {
    fn info(&self) -> &KernelInfo {
        &self.0
    }

    unsafe fn run(&self, _: &mut BlockFrame, _: u64, _: u64) -> Result<(), Fault> {
        Ok(())
    }
}

const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";

fn main() -> device::Result<()> {
    let platform = Platform::new(Options::default(), Arc::new(Nothing(KernelInfo::default())))?;
    let context = platform.device(0)?.create_context(ContextFlags::default())?;
    let module = Module::load(&context, Code::from_ptx(TEXT, 90)?)?;
    let kernel = module.function("k")?;
    let stream = context.create_stream(StreamKind::Blocking, 0)?;
    let measure = |what: &str, blocks: u32, together: u32| -> device::Result<()> {
        let launch = Launch {
            grid: [blocks, 1, 1],
            block: [256, 1, 1],
            dynamic_shared: 0,
            cooperative: false,
            cluster: None,
        };
        let mut best = f64::INFINITY;
        for _ in 0..20 {
            const ROUNDS: u32 = 500;
            let start = Instant::now();
            for _ in 0..ROUNDS {
                for _ in 0..together {
                    // SAFETY: the kernel does nothing.
                    unsafe { kernel.launch(&stream, &launch, &[])? };
                }
                stream.synchronize()?;
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS * together));
        }
        println!("{what}: {best:.0} ns");
        Ok(())
    };
    measure("launch of 1 block and wait", 1, 1)?;
    measure("launch of 64 blocks and wait", 64, 1)?;
    measure("100 launches of 1 block and wait, each", 1, 100)?;
    measure("100 launches of 64 blocks and wait, each", 64, 100)?;
    Ok(())
}
