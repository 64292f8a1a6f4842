//! The back end with a compiler that makes its objects by hand: caching, loading, running, faults.

use crate::support::Builder;
use jit::Jit;
use jit::cache::DiskCache;
use jit::compiler::{Compiler, Source};
use kernel_abi::artifact::{Artifact, ENTRY_SYMBOL};
use kernel_abi::{
    BlockFrame, CompileError, CompileRequest, CompiledKernel, FaultKind, FaultRecord, KernelBackend,
    KernelInfo, LaunchFrame, Shape, Tier, Wait,
};
use std::mem::offset_of;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `return 0`.
const SUCCEED: &[u8] = &[0x31, 0xc0, 0xc3];

/// Compiles a "PTX" that names what the kernel does.
#[derive(Clone, Default)]
struct ByHand {
    compiled: Arc<AtomicUsize>,
    identity: &'static str,
    /// Held while full code may not be made.
    gate: Arc<Mutex<()>>,
    /// The kernels whose full code was asked for, in order.
    full: Arc<Mutex<Vec<String>>>,
}

impl Compiler for ByHand {
    fn identity(&self) -> String {
        self.identity.into()
    }

    fn compile(&self, source: &Source<'_>) -> Result<Artifact, CompileError> {
        if source.tier == Tier::Full {
            self.full.lock().unwrap().push(source.entry.into());
            drop(self.gate.lock().unwrap());
        }
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let parameters = offset_of!(LaunchFrame, params) as u8;
        let code: Vec<u8> = match source.ptx {
            "succeed" => SUCCEED.into(),
            // mov eax, [0x40]; ret
            "read null" => vec![0x8b, 0x04, 0x25, 0x40, 0, 0, 0, 0xc3],
            // mov rax, [rdi + launch]; mov rax, [rax + params]; add [rax], rdx; xor eax, eax; ret
            "count blocks" => vec![
                0x48,
                0x8b,
                0x47,
                offset_of!(BlockFrame, launch) as u8,
                0x48,
                0x8b,
                0x40,
                parameters,
                0x48,
                0x01,
                0x10,
                0x31,
                0xc0,
                0xc3,
            ],
            // The full code counts each block twice.
            "count by tier" if source.tier == Tier::Quick => {
                return self.compile(&Source { ptx: "count blocks", ..*source });
            }
            "count by tier" => {
                let to_params = [0x48, 0x8b, 0x47, offset_of!(BlockFrame, launch) as u8, 0x48, 0x8b, 0x40];
                let add = [0x48, 0x01, 0x10];
                [&to_params[..], &[parameters], &add, &add, SUCCEED].concat()
            }
            "quick only" if source.tier == Tier::Quick => SUCCEED.into(),
            // mov dword [rdi + ctaid], 3; mov eax, 1; ret
            "give up at block 3" if source.shape.assume_no_wrap => {
                vec![0xc7, 0x47, offset_of!(BlockFrame, ctaid) as u8, 3, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3]
            }
            "give up at block 3" => return self.compile(&Source { ptx: "count blocks", ..*source }),
            "trap" => {
                let mut builder = Builder::new();
                let exit = builder.external("anywarp_guarded_exit");
                let kind = offset_of!(BlockFrame, fault) + offset_of!(FaultRecord, kind);
                // mov dword [rdi + fault.kind], 3; mov edi, 7; call anywarp_guarded_exit
                let mut code = vec![0xc7, 0x87];
                code.extend((kind as u32).to_le_bytes());
                code.extend([3, 0, 0, 0, 0xbf, 7, 0, 0, 0, 0xe8, 0, 0, 0, 0]);
                let at = builder.function(ENTRY_SYMBOL, &code);
                builder.relocate(at + code.len() as u64 - 4, exit, ::object::elf::R_X86_64_PLT32, -4);
                return Ok(Artifact { info: KernelInfo::default(), object: builder.finish() });
            }
            other => return Err(CompileError::new(format!("syntax error in `{other}`"))),
        };
        let mut builder = Builder::new();
        builder.function(ENTRY_SYMBOL, &code);
        let info = KernelInfo { param_bytes: 8, ..KernelInfo::default() };
        Ok(Artifact { info, object: builder.finish() })
    }
}

fn compile(jit: &Jit, ptx: &str) -> Result<Arc<dyn CompiledKernel>, CompileError> {
    compile_entry(jit, ptx, "kernel")
}

fn compile_entry(jit: &Jit, ptx: &str, entry: &str) -> Result<Arc<dyn CompiledKernel>, CompileError> {
    let shape = Shape::of([10, 1, 1], [32, 1, 1]);
    let program = |_| Err(CompileError::new("not wanted"));
    jit.compile(&CompileRequest { ptx, entry, shape, tier: Tier::Quick, program: &program })
}

/// Runs ten blocks; the parameter is a counter.
fn run(kernel: &dyn CompiledKernel) -> Result<u64, kernel_abi::Fault> {
    let mut counter = 0_u64;
    let launch = LaunchFrame {
        grid: [10, 1, 1],
        block: [32, 1, 1],
        params: (&raw mut counter).cast(),
        globals: ptr::null(),
        callbacks: ptr::null(),
        context: ptr::null(),
        dynamic_shared_bytes: 0,
        shared_bytes: 0,
        local_bytes: 0,
        warps: 1,
        threads: 32,
        sm_count: 1,
        grid_id: 1,
        grid_workspace: 0,
        cluster: [1; 3],
        explicit_cluster: 0,
        graph: 0,
    };
    let mut frame = BlockFrame {
        launch: &launch,
        shared: ptr::null_mut(),
        local: ptr::null_mut(),
        state: ptr::null_mut(),
        ctaid: [0; 3],
        warp: 0,
        from_warp: 0,
        worker: 0,
        wait: Wait::default(),
        fault: FaultRecord::default(),
        misses: [0; kernel_abi::MISSES],
    };
    // SAFETY: the kernels above touch the counter and the frame alone.
    unsafe { kernel.run(&mut frame, 0, 10) }?;
    Ok(counter)
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("anywarp-jit-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn cache(&self) -> Option<DiskCache> {
        Some(DiskCache::new(self.0.clone(), 1 << 20))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn kernels_run() {
    let jit = Jit::new(Box::new(ByHand::default()), None);
    assert_eq!(run(&*compile(&jit, "count blocks").unwrap()), Ok(10));
}

#[test]
fn a_kernel_is_compiled_once() {
    let compiler = ByHand::default();
    let jit = Jit::new(Box::new(compiler.clone()), None);
    let kernels: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| compile(&jit, "succeed").unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(compiler.compiled.load(Ordering::Relaxed), 1);
    drop(kernels);
    compile(&jit, "succeed").unwrap();
    assert_eq!(compiler.compiled.load(Ordering::Relaxed), 2, "what nobody holds is not kept");
}

#[test]
fn the_disk_cache_outlives_the_back_end_and_a_damaged_entry() {
    let directory = Directory::new("outlives");
    let compiler = ByHand::default();
    let again = |compiler: &ByHand| {
        let jit = Jit::new(Box::new(compiler.clone()), directory.cache());
        assert_eq!(run(&*compile(&jit, "count blocks").unwrap()), Ok(10));
        compiler.compiled.load(Ordering::Relaxed)
    };
    assert_eq!(again(&compiler), 1);
    assert_eq!(again(&compiler), 1, "found on disk");
    for file in std::fs::read_dir(&directory.0).unwrap() {
        std::fs::write(file.unwrap().path(), b"damaged").unwrap();
    }
    assert_eq!(again(&compiler), 2, "compiled anew");
    assert_eq!(again(&ByHand { identity: "another build", ..compiler.clone() }), 3, "of another compiler");
}

#[test]
fn errors_are_the_compiler_s_and_not_remembered() {
    let compiler = ByHand::default();
    let jit = Jit::new(Box::new(compiler.clone()), None);
    for attempt in 1..=2 {
        let error = compile(&jit, "nonsense").err().unwrap();
        assert!(error.message.contains("syntax error"), "{error}");
        assert_eq!(compiler.compiled.load(Ordering::Relaxed), attempt);
    }
}

#[test]
fn a_bad_access_is_a_fault_of_the_launch() {
    let jit = Jit::new(Box::new(ByHand::default()), None);
    let fault = run(&*compile(&jit, "read null").unwrap()).unwrap_err();
    assert_eq!((fault.kind, fault.address), (FaultKind::IllegalAddress, Some(0x40)));
}

#[test]
fn a_fault_that_code_raises_keeps_its_kind() {
    let jit = Jit::new(Box::new(ByHand::default()), None);
    let kernel = compile(&jit, "trap").unwrap();
    assert_eq!(run(&*kernel).unwrap_err().kind, FaultKind::Trap);
    assert_eq!(run(&*compile(&jit, "succeed").unwrap()), Ok(0), "the next launch is not affected");
}

#[test]
fn blocks_whose_assumption_fails_run_plain_code() {
    let compiler = ByHand::default();
    let jit = Jit::new(Box::new(compiler.clone()), None);
    let kernel = compile(&jit, "give up at block 3").unwrap();
    assert_eq!(run(&*kernel), Ok(7), "the seven blocks from the third on");
}

#[test]
fn a_first_launch_has_quick_code_until_the_full_is_there() {
    let compiler = ByHand::default();
    let jit = Jit::new(Box::new(compiler.clone()), None).in_tiers();
    let closed = compiler.gate.lock().unwrap();
    let first = compile(&jit, "count by tier").unwrap();
    assert!(!first.successor().unwrap().is_settled());
    assert_eq!(run(&*first), Ok(10));
    assert!(Arc::ptr_eq(&first, &compile(&jit, "count by tier").unwrap()), "it is compiled once");
    drop(closed);
    let full = first.successor().unwrap().wait().unwrap();
    assert!(full.successor().is_none());
    assert_eq!(run(&*full), Ok(20));
    assert!(first.successor().unwrap().is_settled());
    assert_eq!(run(&*first), Ok(20), "blocks that begin now run the full code");
    assert!(Arc::ptr_eq(&full, &compile(&jit, "count by tier").unwrap()), "so do later launches");
}

#[test]
fn a_wait_for_full_code_ends_with_its_time_or_with_the_code() {
    let compiler = ByHand::default();
    let jit = Jit::new(Box::new(compiler.clone()), None).in_tiers();
    let closed = compiler.gate.lock().unwrap();
    let first = compile(&jit, "count by tier").unwrap();
    let full = first.successor().unwrap();
    assert!(!full.wait_a_while(Duration::from_millis(1)));
    drop(closed);
    while !full.wait_a_while(Duration::from_secs(60)) {}
    assert_eq!(run(&*first), Ok(20));
}

#[test]
fn full_code_is_made_if_asked_for_the_last_first_but_what_somebody_waits_for_before_that() {
    let compiler = ByHand::default();
    let jit = Jit::new(Box::new(compiler.clone()), None).in_tiers();
    let closed = compiler.gate.lock().unwrap();
    let names = ["never asked for", "at work", "asked for", "waited for", "asked for last"];
    let kernels = names.map(|name| compile_entry(&jit, "count by tier", name).unwrap());
    let [_, at_work, earlier, waited_for, last] =
        kernels.each_ref().map(|kernel| kernel.successor().unwrap());
    at_work.begin();
    while compiler.full.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    for kernel in [earlier, waited_for, last] {
        kernel.begin();
        kernel.begin();
    }
    assert!(!waited_for.wait_a_while(Duration::ZERO));
    drop(closed);
    while !earlier.is_settled() {
        std::thread::yield_now();
    }
    let order = compiler.full.lock().unwrap().clone();
    assert_eq!(order, ["at work", "waited for", "asked for last", "asked for"]);
}

#[test]
fn code_that_cannot_be_made_better_stays() {
    let jit = Jit::new(Box::new(ByHand::default()), None).in_tiers();
    let first = compile(&jit, "quick only").unwrap();
    assert!(first.successor().unwrap().wait().is_none());
    assert_eq!(run(&*first), Ok(0));
}

#[test]
fn who_wants_full_code_gets_it_at_once() {
    let shape = Shape::of([10, 1, 1], [32, 1, 1]);
    let program = |_| Err(CompileError::new("not wanted"));
    let request =
        CompileRequest { ptx: "count by tier", entry: "kernel", shape, tier: Tier::Full, program: &program };
    let jit = Jit::new(Box::new(ByHand::default()), None).in_tiers();
    assert_eq!(run(&*jit.compile(&request).unwrap()), Ok(20));
    let without = Jit::new(Box::new(ByHand::default()), None);
    assert_eq!(run(&*compile(&without, "count by tier").unwrap()), Ok(20), "there are no tiers");
}

#[test]
fn the_disk_cache_keeps_both_tiers() {
    let directory = Directory::new("tiers");
    let compiler = ByHand::default();
    let jit = || Jit::new(Box::new(compiler.clone()), directory.cache()).in_tiers();
    {
        let _closed = compiler.gate.lock().unwrap();
        for _ in 0..2 {
            assert_eq!(run(&*compile(&jit(), "count by tier").unwrap()), Ok(10));
        }
        // Once for what the compiler was asked, and once for what it made of that.
        assert_eq!(compiler.compiled.load(Ordering::Relaxed), 2, "the quick code is found on disk");
    }
    if let Some(successor) = compile(&jit(), "count by tier").unwrap().successor() {
        successor.wait();
    }
    let third = compile(&jit(), "count by tier").unwrap();
    assert!(third.successor().is_none(), "the full code is found on disk");
    assert_eq!(run(&*third), Ok(20));
}
