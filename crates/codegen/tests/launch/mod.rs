//! Runs a program on the interpreter and as machine code, over the same memory.

#![allow(dead_code, reason = "each test uses what it needs")]

use std::sync::Arc;

use codegen::Plan;
use codegen::target::{Cpu, Level};
use interp::InterpretedKernel;
use jit::object::LoadedObject;
use kernel_abi::artifact::TOGETHER_SYMBOL;
use kernel_abi::matrix::LaneWords;
use kernel_abi::{
    BlockFrame, BlocksEntry, Callbacks, CompileError, CompiledKernel, EntryKind, Fault, FaultKind,
    FaultRecord, LaunchFrame, Parted, Shape, Status, TogetherEntry, Wait, WaitKind, WarpEntry,
};
use simt_ir::{Program, RuntimeFunction};

/// The program of the PTX kernel called `kernel`.
pub fn kernel_of(source: &str) -> Program {
    let module = ptx::parse(source).unwrap_or_else(|errors| panic!("{errors}\n{source}"));
    ptx::lower::program(source, &module, "kernel").unwrap_or_else(|errors| panic!("{errors}\n{source}"))
}

/// Words of 32 bits as memory has them, two to one of 64.
pub fn in_pairs(words: &[u32]) -> Vec<u64> {
    words.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32).collect()
}

unsafe extern "C" fn vprintf(_: *mut BlockFrame, mask: u32, f: *const u64, _: *const u64, r: *mut i32) {
    for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: the arrays have 32 elements.
        unsafe { *r.add(lane) = *f.add(lane) as i32 + 1 }
    }
}
unsafe extern "C" fn assert_fail(
    _: *mut BlockFrame,
    _: u32,
    _: *const u64,
    _: *const u64,
    _: *const u32,
    _: *const u64,
) {
}
unsafe extern "C" fn malloc(_: *mut BlockFrame, mask: u32, sizes: *const u64, results: *mut u64) {
    for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: the arrays have 32 elements.
        unsafe { *results.add(lane) = *sizes.add(lane) + 1000 }
    }
}
unsafe extern "C" fn free(_: *mut BlockFrame, _: u32, _: *const u64) {}
/// The number of the function, and of each argument a part.
unsafe extern "C" fn runtime(
    _: *mut BlockFrame,
    mask: u32,
    function: u32,
    arguments: *const u64,
    results: *mut u64,
) {
    let count = RuntimeFunction::from_number(function).map_or(0, |function| function.params().len());
    for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: the arrays have 32 elements for each argument and for the result.
        unsafe {
            let part = |index: usize| (index as u64 + 1).wrapping_mul(*arguments.add(32 * index + lane));
            *results.add(lane) = (0..count).map(part).fold(function.into(), u64::wrapping_add);
        }
    }
}
unsafe extern "C" fn global_timer() -> u64 {
    7
}
unsafe extern "C" fn texture(_: *mut BlockFrame, _: u32, _: u64, _: *mut LaneWords) -> u32 {
    0
}
unsafe extern "C" fn has_failed(_: *mut BlockFrame) -> u32 {
    0
}
unsafe extern "C" fn nanosleep(_: u32) {}

static CALLBACKS: Callbacks =
    Callbacks { vprintf, assert_fail, malloc, free, global_timer, texture, nanosleep, runtime, has_failed };

/// The CPUs that code for can run here.
pub fn cpus() -> Vec<Cpu> {
    let native = Cpu::native().expect("this machine is one that code can be made for");
    let levels = [Level::Baseline, Level::Avx2, Level::Avx512];
    let mut cpus: Vec<_> =
        levels.into_iter().filter(|&level| level <= native.level()).map(Cpu::level_cpu).collect();
    cpus.push(native);
    cpus
}

/// Memory whose second page cannot be accessed.
pub struct Edge {
    pub start: *mut u8,
}

impl Edge {
    pub const PAGE: usize = 4096;

    pub fn new() -> Edge {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, of which half is made inaccessible.
        unsafe {
            let read_write = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(std::ptr::null_mut(), 2 * Self::PAGE, read_write, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.byte_add(Self::PAGE), Self::PAGE, libc::PROT_NONE), 0);
            for at in 0..Self::PAGE {
                start.cast::<u8>().add(at).write((at * 7) as u8);
            }
            Edge { start: start.cast() }
        }
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and used by nobody any more.
        unsafe { libc::munmap(self.start.cast(), 2 * Self::PAGE) };
    }
}

/// A launch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
}

impl Launch {
    /// Runs a program on the interpreter, and on every CPU as machine code, which must leave the same words behind. The
    /// parameters follow from where the words lie.
    pub fn must_agree<const N: usize>(
        &self,
        program: &Program,
        words: &[u64],
        params: impl Fn(&mut [u64]) -> [u64; N],
        what: impl std::fmt::Display,
    ) {
        let mut expected = words.to_vec();
        let given = params(&mut expected);
        self.interpret(program, &given).unwrap();
        for cpu in cpus() {
            let compiled = self.compile(program, &cpu).unwrap();
            let mut got = words.to_vec();
            let given = params(&mut got);
            self.run(&compiled, &given).unwrap();
            assert!(got == expected, "{what} on {}", cpu.name());
        }
    }

    pub fn shape(&self) -> Shape {
        Shape::of(self.grid, self.block)
    }

    fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Runs `kernel` with the memory that its blocks need.
    fn with_frame<T>(
        &self,
        params: &[u64],
        state_bytes: u32,
        run: impl FnOnce(&mut BlockFrame, u64) -> T,
    ) -> T {
        const LOCAL: u32 = 256;
        #[repr(align(1024))]
        #[derive(Clone)]
        struct Aligned([u8; 1024]);
        let zeros = |bytes: usize| vec![Aligned([0; 1024]); bytes / 1024 + 2];
        let warps = self.threads().div_ceil(32);
        let mut shared = zeros(1 << 16);
        let mut local = zeros((LOCAL * 32 * warps) as usize);
        let mut state = zeros((state_bytes * warps) as usize);
        let mut padded = zeros(params.len() * 8);
        // SAFETY: the parameters fit the memory made for them.
        unsafe { std::ptr::copy(params.as_ptr(), padded.as_mut_ptr().cast(), params.len()) };
        let launch = LaunchFrame {
            grid: self.grid,
            block: self.block,
            params: padded.as_ptr().cast(),
            globals: std::ptr::null(),
            callbacks: &CALLBACKS,
            context: std::ptr::null(),
            dynamic_shared_bytes: 0,
            shared_bytes: 1 << 16,
            local_bytes: LOCAL,
            warps,
            threads: self.threads(),
            sm_count: 1,
            grid_id: 1,
            grid_workspace: 0,
            cluster: [1; 3],
            explicit_cluster: 0,
            graph: 0,
        };
        let mut frame = BlockFrame {
            launch: &launch,
            shared: shared.as_mut_ptr().cast(),
            local: local.as_mut_ptr().cast(),
            state: state.as_mut_ptr().cast(),
            ctaid: [0; 3],
            warp: 0,
            from_warp: 0,
            worker: 0,
            wait: Wait::default(),
            fault: FaultRecord::default(),
            misses: [0; kernel_abi::MISSES],
        };
        run(&mut frame, self.grid.iter().map(|d| u64::from(*d)).product())
    }

    pub fn interpret(&self, program: &Program, params: &[u64]) -> Result<(), Fault> {
        let kernel = InterpretedKernel::new(Arc::new(program.clone()));
        // SAFETY: the frame is as the program needs it.
        self.with_frame(params, 0, |frame, blocks| unsafe { kernel.run(frame, 0, blocks) })
    }

    pub fn compile(&self, program: &Program, cpu: &Cpu) -> Result<Compiled, CompileError> {
        self.compile_for(program, &self.shape(), cpu)
    }

    pub fn compile_for(&self, program: &Program, shape: &Shape, cpu: &Cpu) -> Result<Compiled, CompileError> {
        let object = codegen::compile(program, shape, cpu)?;
        let loaded = LoadedObject::load(&object.bytes, &jit::host_symbol).expect("the object loads");
        Ok(Compiled { loaded, info: object.info })
    }

    /// Likewise, with warps in gangs, or in strips, wherever they can be.
    pub fn compile_in_gangs(
        &self,
        program: &Program,
        cpu: &Cpu,
        choice: codegen::Choice,
    ) -> Result<Compiled, CompileError> {
        self.compile_as(program, cpu, Plan::in_gangs(choice))
    }

    /// Likewise, in a certain way.
    pub fn compile_as(&self, program: &Program, cpu: &Cpu, plan: Plan) -> Result<Compiled, CompileError> {
        let object = codegen::compile_as(program, &self.shape(), cpu, plan)?;
        let loaded = LoadedObject::load(&object.bytes, &jit::host_symbol).expect("the object loads");
        Ok(Compiled { loaded, info: object.info })
    }

    /// The fault that compiled code raises, and the warp that it names.
    pub fn fault(&self, compiled: &Compiled, params: &[u64]) -> (FaultRecord, u32) {
        self.run_to_end(compiled, params).expect_err("a fault")
    }

    /// Runs compiled code; a fault that it raises is the error.
    pub fn run(&self, compiled: &Compiled, params: &[u64]) -> Result<(), FaultRecord> {
        self.run_to_end(compiled, params).map_err(|(fault, _)| fault)
    }

    fn run_to_end(&self, compiled: &Compiled, params: &[u64]) -> Result<(), (FaultRecord, u32)> {
        let entry = compiled.loaded.symbol(codegen::ENTRY_SYMBOL).expect("the entry is defined").address;
        let result =
            self.with_frame(params, compiled.info.state_bytes, |frame, blocks| match compiled.info.entry {
                EntryKind::Blocks => {
                    // SAFETY: the symbol is an entry of this kind.
                    let entry: BlocksEntry = unsafe { std::mem::transmute(entry as *const ()) };
                    call(frame, |frame| {
                        // SAFETY: the frame is as the program needs it.
                        unsafe { entry(frame, 0, blocks) }
                    })
                    .map(|status| assert_eq!(status, 0, "no index wraps"))
                    .map_err(|fault| (fault, frame.warp))
                }
                EntryKind::Warps => {
                    // SAFETY: the symbol is an entry of this kind.
                    let entry: WarpEntry = unsafe { std::mem::transmute(entry as *const ()) };
                    let together = compiled.loaded.symbol(TOGETHER_SYMBOL).map(|symbol| {
                        // SAFETY: the symbol is an entry of this kind.
                        unsafe {
                            std::mem::transmute::<*const (), TogetherEntry>(symbol.address as *const ())
                        }
                    });
                    for block in 0..blocks {
                        let [x, y] = [self.grid[0], self.grid[1]].map(u64::from);
                        frame.ctaid = [block % x, block / x % y, block / x / y].map(|id| id as u32);
                        run_block(frame, self.threads().div_ceil(32) / compiled.info.gang, entry, together)
                            .map_err(|fault| (fault, frame.warp))?;
                    }
                    Ok(())
                }
            });
        match result {
            Ok(()) => jit::late::settle().expect("the memory is still there"),
            Err(_) => jit::late::forget(),
        }
        result
    }
}

impl Launch {
    /// Whether compiled code without barriers refuses to run because an index wraps.
    pub fn gives_up(&self, compiled: &Compiled, params: &[u64]) -> bool {
        let entry = compiled.loaded.symbol(codegen::ENTRY_SYMBOL).expect("the entry is defined").address;
        assert_eq!(compiled.info.entry, EntryKind::Blocks);
        self.with_frame(params, 0, |frame, blocks| {
            // SAFETY: the symbol is an entry of this kind.
            let entry: BlocksEntry = unsafe { std::mem::transmute(entry as *const ()) };
            call(frame, |frame| {
                // SAFETY: the frame is as the program needs it.
                unsafe { entry(frame, 0, blocks) }
            })
            .expect("no fault")
                == Status::Deopt as u32
        })
    }
}

pub struct Compiled {
    loaded: LoadedObject,
    pub info: kernel_abi::KernelInfo,
}

/// Warps in turn; when all wait or are done, those that wait go on. Where the code runs whole blocks, it does as far as warps go together.
fn run_block(
    frame: &mut BlockFrame,
    warps: u32,
    entry: WarpEntry,
    together: Option<TogetherEntry>,
) -> Result<(), FaultRecord> {
    let mut resume = vec![Some(0u32); warps as usize];
    let mut from = 0;
    if let Some(together) = together {
        let mut parted = Parted::default();
        let ended = call(frame, |frame| {
            // SAFETY: the frame is as the program needs it.
            unsafe { together(frame, warps, &raw mut parted) }
        })?;
        if ended == 1 {
            return Ok(());
        }
        assert_ne!(parted.own, u32::MAX, "no index wraps");
        let went_on = |answer: u32| (answer != 0).then_some(answer);
        resume.fill(Some(parted.resume));
        resume[..parted.at as usize].fill(went_on(parted.first));
        resume[parted.at as usize] = went_on(parted.own);
        from = parted.at + 1;
    }
    while resume.iter().any(Option::is_some) {
        let (mut votes, mut arrived) = (0, 0);
        let (result, total) = (frame.wait.result, frame.wait.arrived);
        for warp in std::mem::take(&mut from)..warps {
            let Some(at) = resume[warp as usize] else { continue };
            (frame.wait.result, frame.wait.arrived) = (result, total);
            let next = call(frame, |frame| {
                // SAFETY: the frame is as the program needs it.
                unsafe { entry(frame, warp, at) }
            })?;
            assert_ne!(next, u32::MAX, "no index wraps");
            resume[warp as usize] = (next != 0).then_some(next);
            if next != 0 {
                assert_eq!(frame.wait.kind, WaitKind::Barrier as u32);
                votes += frame.wait.votes.count_ones();
                arrived += frame.wait.lanes.count_ones();
            }
        }
        (frame.wait.result, frame.wait.arrived) = (votes, arrived);
    }
    Ok(())
}

fn call(frame: &mut BlockFrame, mut run: impl FnMut(&mut BlockFrame) -> u32) -> Result<u32, FaultRecord> {
    struct Call<'a> {
        frame: &'a mut BlockFrame,
        run: &'a mut dyn FnMut(&mut BlockFrame) -> u32,
    }
    unsafe extern "C" fn trampoline(call: *mut std::ffi::c_void, _: u64, _: u64) -> u32 {
        // SAFETY: the pointer is the one given below.
        let call = unsafe { &mut *call.cast::<Call<'_>>() };
        (call.run)(call.frame)
    }
    frame.fault = FaultRecord::default();
    let mut call = Call { frame, run: &mut run };
    // SAFETY: nothing between here and generated code owns anything.
    let result = unsafe { guard::guarded_call(trampoline, (&raw mut call).cast(), 0, 0) };
    match result {
        Ok(status) if call.frame.fault.kind == 0 => Ok(status),
        Ok(_) => Err(call.frame.fault),
        Err(fault) => Err(FaultRecord {
            kind: FaultKind::IllegalAddress as u32,
            lane: 32,
            address: fault.address,
            ptx_line: 0,
        }),
    }
}
