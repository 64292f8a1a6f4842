//! A back end whose kernels are Rust closures.

#![allow(dead_code, reason = "each test file uses some of this")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use device::module::Code;
use device::{Context, ContextFlags, Function, Launch, Module, Options, Platform, Stream};
use kernel_abi::{
    BlockFrame, CompileError, CompileRequest, CompiledKernel, EntryKind, Fault, FaultKind, KernelBackend,
    KernelInfo, Successor,
};

/// What a kernel does with one block.
pub type Body = dyn Fn(&mut BlockFrame) -> Result<(), Fault> + Send + Sync;

/// Kernels by name.
#[derive(Default)]
pub struct ClosureBackend {
    kernels: Mutex<HashMap<String, (KernelInfo, Arc<Body>)>>,
    pub compiled: AtomicUsize,
    /// Where blocks that failed run again.
    pub replayer: Mutex<Option<Arc<ClosureBackend>>>,
    /// What takes the place of kernels, if anything will.
    pub better: Mutex<Option<Arc<Coming>>>,
    /// Whether blocks that wait for each other may be run by one thread.
    pub takes_turns: AtomicBool,
    /// The most blocks that a thread was given at a time.
    pub most_blocks: Arc<AtomicU64>,
}

struct Closure {
    info: KernelInfo,
    body: Arc<Body>,
    better: Option<Arc<Coming>>,
    takes_turns: bool,
    most_blocks: Arc<AtomicU64>,
}

/// Better code that never comes.
#[derive(Default)]
pub struct Coming {
    /// How often a thread has waited for it for a while.
    pub waits: AtomicUsize,
    /// How often a launch has waited for it.
    pub needed: AtomicUsize,
    /// How often it was asked for.
    pub begun: AtomicUsize,
    ran: AtomicU64,
}

impl Successor for Coming {
    fn is_settled(&self) -> bool {
        false
    }

    fn cost(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn ran(&self, more: Duration) -> Duration {
        let more = more.as_nanos() as u64;
        Duration::from_nanos(self.ran.fetch_add(more, Ordering::SeqCst) + more)
    }

    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    fn wait_a_while(&self, most: Duration) -> bool {
        self.waits.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(most);
        false
    }

    fn wait(&self) -> Option<Arc<dyn CompiledKernel>> {
        self.needed.fetch_add(1, Ordering::SeqCst);
        None
    }
}

impl KernelBackend for ClosureBackend {
    fn name(&self) -> &'static str {
        "closures"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let kernels = self.kernels.lock().unwrap();
        let (info, body) = kernels
            .get(request.entry)
            .ok_or_else(|| CompileError::new(format!("no closure is called {}", request.entry)))?;
        let better = self.better.lock().unwrap().clone();
        let takes_turns = self.takes_turns.load(Ordering::Relaxed);
        let (info, body, most_blocks) = (info.clone(), body.clone(), self.most_blocks.clone());
        Ok(Arc::new(Closure { info, body, better, takes_turns, most_blocks }))
    }

    fn replayer(&self) -> Option<Arc<dyn KernelBackend>> {
        Some(self.replayer.lock().unwrap().clone()?)
    }
}

impl CompiledKernel for Closure {
    fn info(&self) -> &KernelInfo {
        &self.info
    }

    fn successor(&self) -> Option<&dyn Successor> {
        self.better.as_deref().map(|better| better as _)
    }

    fn takes_turns(&self) -> bool {
        self.takes_turns
    }

    unsafe fn run(&self, frame: &mut BlockFrame, first: u64, count: u64) -> Result<(), Fault> {
        // SAFETY: the launch outlives its blocks.
        let [x, y, _] = unsafe { (*frame.launch).grid }.map(u64::from);
        self.most_blocks.fetch_max(count, Ordering::Relaxed);
        for block in first..first + count {
            frame.ctaid = [(block % x) as u32, (block / x % y) as u32, (block / x / y) as u32];
            frame.warp = 0;
            (self.body)(frame)?;
        }
        Ok(())
    }
}

/// A platform, a context on its first device, and kernels with three 64-bit parameters.
pub struct Setup {
    pub platform: Platform,
    pub context: Arc<Context>,
    pub backend: Arc<ClosureBackend>,
}

impl Setup {
    pub fn new() -> Setup {
        Setup::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Setup {
        let mut options =
            Options { memory: Some(256 << 20), threads: 2, report_faults: false, ..Options::default() };
        change(&mut options);
        let backend = Arc::new(ClosureBackend::default());
        let platform = Platform::new(options, backend.clone()).unwrap();
        let context = platform.device(0).unwrap().create_context(ContextFlags::default()).unwrap();
        Setup { platform, context, backend }
    }

    /// Makes a kernel of a closure.
    pub fn kernel(
        &self,
        name: &str,
        body: impl Fn(&mut BlockFrame) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Arc<Function> {
        self.kernel_with(name, KernelInfo::default(), body)
    }

    /// Makes a kernel of a closure with these needs.
    pub fn kernel_with(
        &self,
        name: &str,
        info: KernelInfo,
        body: impl Fn(&mut BlockFrame) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Arc<Function> {
        self.define(name, info, body);
        let module = Module::load(&self.context, code(name)).unwrap();
        module.function(name).unwrap()
    }

    pub fn define(
        &self,
        name: &str,
        info: KernelInfo,
        body: impl Fn(&mut BlockFrame) -> Result<(), Fault> + Send + Sync + 'static,
    ) {
        let info = KernelInfo { param_bytes: 24, shared_align: 16, ..info };
        self.backend.define(name, info, body);
    }
}

impl ClosureBackend {
    /// The kernel of this name.
    pub fn define(
        &self,
        name: &str,
        info: KernelInfo,
        body: impl Fn(&mut BlockFrame) -> Result<(), Fault> + Send + Sync + 'static,
    ) {
        self.kernels.lock().unwrap().insert(name.into(), (info, Arc::new(body)));
    }
}

/// Code with one kernel.
pub fn code(name: &str) -> Arc<Code> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry {name}(.param .u64 a, .param .u64 b, .param .u64 c)\n{{\n ret;\n}}\n"
    );
    Code::from_ptx(&text, 90).unwrap()
}

/// A kernel that waits at barriers.
pub fn with_barriers() -> KernelInfo {
    KernelInfo { entry: EntryKind::Warps, ..KernelInfo::default() }
}

/// A launch of so many blocks of 32 threads.
pub fn blocks(count: u32) -> Launch {
    Launch { grid: [count, 1, 1], block: [32, 1, 1], dynamic_shared: 0, cooperative: false, cluster: None }
}

/// Launches a kernel.
pub fn launch(
    function: &Arc<Function>,
    stream: &Stream,
    launch: &Launch,
    params: &[u64],
) -> device::Result<()> {
    let bytes: Vec<u8> = params.iter().flat_map(|value| value.to_le_bytes()).collect();
    // SAFETY: the tests' kernels touch what they are given.
    unsafe { function.launch(stream, launch, &bytes) }
}

/// The parameters of a block's launch.
pub fn params(frame: &BlockFrame) -> [u64; 3] {
    // SAFETY: every kernel of these tests has three.
    unsafe { (*frame.launch).params.cast::<[u64; 3]>().read() }
}

/// Adds to a word of device memory.
pub fn add(address: u64, value: u64) -> u64 {
    // SAFETY: the tests give addresses of words that only atomics touch.
    unsafe { (*(address as *const std::sync::atomic::AtomicU64)).fetch_add(value, Ordering::SeqCst) }
}

/// A word of device memory.
pub fn read(address: u64) -> u64 {
    add(address, 0)
}

/// A fault of the block.
pub fn fault(frame: &BlockFrame, kind: FaultKind) -> Fault {
    Fault {
        kind,
        address: Some(0x10),
        ctaid: frame.ctaid,
        warp: frame.warp,
        lane: Some(3),
        ptx_line: Some(5),
        detail: String::new(),
    }
}
