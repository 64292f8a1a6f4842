//! Programs built by hand, run on the interpreter.

use std::sync::Arc;

use interp::Interpreter;
use kernel_abi::matrix::LaneWords;
use kernel_abi::{
    BlockFrame, Callbacks, CompileRequest, Fault, FaultKind, FaultRecord, KernelBackend, LaunchFrame, Shape,
    Tier, Wait,
};
use simt_ir::*;

unsafe extern "C" fn no_vprintf(_: *mut BlockFrame, _: u32, _: *const u64, _: *const u64, _: *mut i32) {}
unsafe extern "C" fn no_assert(
    _: *mut BlockFrame,
    _: u32,
    _: *const u64,
    _: *const u64,
    _: *const u32,
    _: *const u64,
) {
}
unsafe extern "C" fn no_malloc(_: *mut BlockFrame, _: u32, _: *const u64, _: *mut u64) {}
unsafe extern "C" fn no_free(_: *mut BlockFrame, _: u32, _: *const u64) {}
unsafe extern "C" fn no_timer() -> u64 {
    0
}
unsafe extern "C" fn no_textures(_: *mut BlockFrame, _: u32, _: u64, _: *mut LaneWords) -> u32 {
    0
}
unsafe extern "C" fn no_sleep(_: u32) {}
unsafe extern "C" fn never(_: *mut BlockFrame) -> u32 {
    0
}
unsafe extern "C" fn no_runtime(_: *mut BlockFrame, _: u32, _: u32, _: *const u64, _: *mut u64) {}

const CALLBACKS: Callbacks = Callbacks {
    vprintf: no_vprintf,
    assert_fail: no_assert,
    malloc: no_malloc,
    free: no_free,
    global_timer: no_timer,
    texture: no_textures,
    nanosleep: no_sleep,
    runtime: no_runtime,
    has_failed: never,
};

/// Runs a kernel whose one parameter is the address of `data`.
fn launch(program: Program, grid: u32, block: u32, data: &mut [u32]) -> Result<(), Fault> {
    launch_with(Interpreter::default(), program, grid, block, data)
}

fn launch_with(
    backend: Interpreter,
    program: Program,
    grid: u32,
    block: u32,
    data: &mut [u32],
) -> Result<(), Fault> {
    let params = [data.as_mut_ptr() as u64];
    let mut shared = vec![0u64; 1024];
    let mut local = vec![0u64; 1024];
    let launch = LaunchFrame {
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        params: params.as_ptr().cast(),
        globals: std::ptr::null(),
        callbacks: &CALLBACKS,
        context: std::ptr::null(),
        dynamic_shared_bytes: 0,
        shared_bytes: 4096,
        local_bytes: 64,
        warps: block.div_ceil(32),
        threads: block,
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
        state: std::ptr::null_mut(),
        ctaid: [0; 3],
        warp: 0,
        from_warp: 0,
        worker: 0,
        wait: Wait::default(),
        fault: FaultRecord::default(),
        misses: [0; kernel_abi::MISSES],
    };
    let program = Arc::new(program);
    let request = CompileRequest {
        ptx: "",
        entry: "kernel",
        shape: Shape::of([grid, 1, 1], [block, 1, 1]),
        tier: Tier::Full,
        program: &|_| Ok(Arc::clone(&program)),
    };
    let kernel = backend.compile(&request).expect("interpreting needs no compilation");
    // SAFETY: the frame is as the program needs it.
    unsafe { kernel.run(&mut frame, 0, grid.into()) }
}

/// A kernel and its builder's most used values.
struct Kernel {
    b: FunctionBuilder,
    data: Value,
    tid: Value,
}

impl Kernel {
    fn new() -> Kernel {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let data = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        Kernel { b, data, tid }
    }

    fn element(&mut self, index: Value) -> Value {
        let wide = self.b.inst(Op::Convert(Convert::ZExt), &[index], Type::I64);
        let two = self.b.constant(Type::I32, 2);
        let bytes = self.b.inst(Op::Shift(Shift::Left), &[wide, two], Type::I64);
        self.b.inst(Op::Int(IntBinary::Add), &[self.data, bytes], Type::I64)
    }

    fn int(&mut self, bits: u64) -> Value {
        self.b.constant(Type::I32, bits)
    }

    fn finish(mut self) -> Program {
        self.b.terminate(Terminator::Return(vec![]));
        Program { functions: vec![self.b.finish()], param_bytes: 8, shared_align: 16, ..Program::default() }
    }
}

#[test]
fn a_shuffle_reads_the_other_lane() {
    let mut k = Kernel::new();
    let (one, clamp, all) = (k.int(1), k.int(31), k.int(u64::MAX));
    let tid = k.tid;
    let results =
        k.b.insts(Op::Shuffle(ShuffleMode::Down), &[tid, one, clamp, all], &[Type::I32, Type::Pred]);
    let at = k.element(tid);
    k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[at, results[0]]);
    let mut data = [99; 32];
    launch(k.finish(), 1, 32, &mut data).unwrap();
    let expected: Vec<u32> = (0..32).map(|i| if i == 31 { 31 } else { i + 1 }).collect();
    assert_eq!(data, *expected);
}

#[test]
fn a_barrier_orders_shared_memory_between_warps() {
    let mut k = Kernel::new();
    let tid = k.tid;
    let two = k.int(2);
    let at = k.b.inst(Op::Shift(Shift::Left), &[tid, two], Type::I32);
    k.b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[at, tid]);
    let zero = k.int(0);
    k.b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
    let last = k.int(252);
    let mirrored = k.b.inst(Op::Int(IntBinary::Sub), &[last, at], Type::I32);
    let value = k.b.inst(Op::Load(Access::weak(Space::Shared, 0)), &[mirrored], Type::I32);
    let out = k.element(tid);
    k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[out, value]);
    let mut data = [0; 64];
    launch(k.finish(), 1, 64, &mut data).unwrap();
    assert_eq!(data.to_vec(), (0..64).rev().collect::<Vec<u32>>());
}

#[test]
fn threads_of_a_warp_may_spin_on_each_other() {
    // A lock taken by compare-and-swap in a loop, per thread: data[1] += 1 under data[0].
    let mut k = Kernel::new();
    let (try_lock, locked, done) = (k.b.block(), k.b.block(), k.b.block());
    k.b.terminate(Terminator::Jump(Target::new(try_lock)));
    k.b.switch_to(try_lock);
    let (zero, one) = (k.int(0), k.int(1));
    let data = k.data;
    let old = k.b.inst(Op::AtomicCas(Access::weak(Space::Global, 0)), &[data, zero, one], Type::I32);
    let taken = k.b.inst(Op::IntCmp(IntCmp::Ne), &[old, zero], Type::Pred);
    k.b.terminate(Terminator::Branch {
        cond: taken,
        then: Target::new(try_lock),
        otherwise: Target::new(locked),
        uniform: false,
    });
    k.b.switch_to(locked);
    let counter = Access::weak(Space::Global, 4);
    let value = k.b.inst(Op::Load(counter), &[data], Type::I32);
    let one = k.int(1);
    let next = k.b.inst(Op::Int(IntBinary::Add), &[value, one], Type::I32);
    k.b.effect(Op::Store(counter), &[data, next]);
    let zero = k.int(0);
    k.b.inst(Op::Atomic(AtomicOp::Exch, Access::weak(Space::Global, 0)), &[data, zero], Type::I32);
    k.b.terminate(Terminator::Jump(Target::new(done)));
    k.b.switch_to(done);
    let mut data = [0; 2];
    launch(k.finish(), 2, 48, &mut data).unwrap();
    assert_eq!(data, [0, 96]);
}

#[test]
fn a_bad_access_names_the_thread() {
    let mut k = Kernel::new();
    let (tid, five) = (k.tid, k.int(37));
    let bad = k.b.inst(Op::IntCmp(IntCmp::Eq), &[tid, five], Type::Pred);
    let good_at = k.element(tid);
    let one = k.b.constant(Type::I64, 16);
    let at = k.b.inst(Op::Select, &[bad, one, good_at], Type::I64);
    k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[at, tid]);
    let fault = launch(k.finish(), 1, 64, &mut [0; 64]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    assert_eq!(fault.thread([64, 1, 1]), Some([37, 0, 0]));
    assert_eq!(fault.address, Some(16));
}

#[test]
fn a_misaligned_access_is_refused() {
    let mut k = Kernel::new();
    let data = k.data;
    k.b.inst(Op::Load(Access::weak(Space::Global, 2)), &[data], Type::I32);
    let fault = launch(k.finish(), 1, 1, &mut [0; 4]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Misaligned);
}

#[test]
fn a_budget_ends_what_does_not_end() {
    let mut k = Kernel::new();
    let forever = k.b.block();
    k.b.terminate(Terminator::Jump(Target::new(forever)));
    k.b.switch_to(forever);
    k.b.terminate(Terminator::Jump(Target::new(forever)));
    let program = Program { functions: vec![k.b.finish()], param_bytes: 8, ..Program::default() };
    let fault = launch_with(
        Interpreter { budget: Some(100_000), ..Interpreter::default() },
        program,
        1,
        32,
        &mut [0],
    )
    .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Deadlock);
}
