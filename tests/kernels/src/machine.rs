//! The least that a kernel needs to run: memory for the blocks that run together on each worker, and callbacks.

use std::cell::RefCell;
use std::ffi::c_void;

use kernel_abi::matrix::LaneWords;
use kernel_abi::{
    BlockFrame, CLUSTER_STRIDE, Callbacks, CompiledKernel, Fault, FaultRecord, KernelInfo, LaunchFrame, WARP,
    Wait,
};

/// Bytes of the shared window: what the hardware has.
const SHARED_BYTES: usize = 227 << 10;

/// Where and how a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Blocks of a cluster, if there are clusters.
    pub cluster: Option<[u32; 3]>,
}

/// A reservation with unmapped memory behind it.
struct Mapping {
    base: *mut u8,
    reserved: usize,
}

impl Mapping {
    fn new(usable: usize, guard: usize) -> Mapping {
        Mapping::windows(usable, 1, guard)
    }

    /// So many usable pieces, as far apart as the shared windows of a cluster.
    fn windows(usable: usize, count: usize, guard: usize) -> Mapping {
        let page = 4096;
        let usable = usable.next_multiple_of(page);
        let stride = CLUSTER_STRIDE as usize;
        let reserved = usable + (count - 1) * stride + guard;
        // SAFETY: a fresh private mapping.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                reserved,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED, "address space is available");
        for at in 0..count {
            // SAFETY: within the mapping just made.
            let rc = unsafe {
                libc::mprotect(base.byte_add(at * stride), usable, libc::PROT_READ | libc::PROT_WRITE)
            };
            assert_eq!(rc, 0, "memory is available");
        }
        Mapping { base: base.cast(), reserved }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`, which nothing uses any more.
        unsafe { libc::munmap(self.base.cast(), self.reserved) };
    }
}

/// Words whose end is that of the mapped memory: what reads or writes beyond them faults.
pub struct GuardedWords {
    mapping: Mapping,
    count: usize,
}

impl GuardedWords {
    /// Memory with these words.
    pub fn new(words: &[u64]) -> GuardedWords {
        let memory =
            GuardedWords { mapping: Mapping::new(size_of_val(words).max(1), 1 << 20), count: words.len() };
        // SAFETY: the mapping has as many words, and nobody else knows it.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), memory.address(), words.len()) };
        memory
    }

    /// Where the first word is.
    pub fn address(&self) -> *mut u64 {
        let bytes = 8 * self.count;
        self.mapping.base.wrapping_add(bytes.next_multiple_of(4096) - bytes).cast()
    }

    /// What the words are now.
    pub fn read(&self) -> Vec<u64> {
        // SAFETY: the mapping has as many words; kernels that write them have ended.
        unsafe { std::slice::from_raw_parts(self.address(), self.count) }.to_vec()
    }
}

thread_local! {
    /// What kernels of this thread's launch have printed: the format strings' addresses are resolved at once.
    static PRINTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Runs all blocks of a launch, one after another.
pub fn launch(
    kernel: &dyn CompiledKernel,
    grid: Grid,
    params: &[u8],
    globals: &[u64],
) -> Result<Vec<String>, Fault> {
    launch_on(1, kernel, grid, params, globals)
}

/// Runs all blocks of a launch on so many threads of the host.
pub fn launch_on(
    workers: u32,
    kernel: &dyn CompiledKernel,
    grid: Grid,
    params: &[u8],
    globals: &[u64],
) -> Result<Vec<String>, Fault> {
    let info = kernel.info();
    assert!(params.len() >= info.param_bytes as usize, "all parameters are given");
    assert_eq!(globals.len(), info.globals.len(), "every variable has an address");
    let threads: u32 = grid.block.iter().product();
    let warps = threads.div_ceil(WARP);
    let shared_bytes = shared_need(info, grid);
    assert!(shared_bytes as usize <= SHARED_BYTES, "shared memory suffices");
    let local_bytes = (info.local_bytes + info.stack_limits * (16 << 10)).next_multiple_of(16);

    let mut aligned_params = vec![0u64; params.len().div_ceil(8) + 8];
    let skip = (64 - aligned_params.as_ptr() as usize % 64) % 64;
    let params_at = aligned_params.as_mut_ptr().cast::<u8>().wrapping_add(skip);
    // SAFETY: the vector has 64 bytes more than the parameters.
    unsafe { std::ptr::copy_nonoverlapping(params.as_ptr(), params_at, params.len()) };

    let callbacks = Callbacks {
        vprintf,
        assert_fail,
        malloc: device_malloc,
        free: device_free,
        global_timer,
        texture,
        nanosleep,
        runtime,
        has_failed,
    };
    let cluster = grid.cluster.unwrap_or([1; 3]);
    assert!((0..3).all(|axis| grid.grid[axis].is_multiple_of(cluster[axis])), "clusters divide the grid");
    let launch = LaunchFrame {
        grid: grid.grid,
        block: grid.block,
        params: params_at,
        globals: globals.as_ptr(),
        callbacks: &callbacks,
        context: std::ptr::null::<c_void>(),
        dynamic_shared_bytes: grid.dynamic_shared,
        shared_bytes,
        local_bytes,
        warps,
        threads,
        sm_count: 1,
        grid_id: 1,
        grid_workspace: 0,
        cluster,
        explicit_cluster: grid.cluster.is_some().into(),
        graph: 0,
    };
    // What a worker runs whole: a cluster, or a block.
    let units: u64 = grid.grid.iter().zip(cluster).map(|(blocks, size)| u64::from(blocks / size)).product();
    let run = |worker: u32, first: u64, count: u64| {
        PRINTED.with_borrow_mut(Vec::clear);
        run_blocks(kernel, &launch, worker, first, count)?;
        Ok(PRINTED.with_borrow_mut(std::mem::take))
    };
    if workers == 1 {
        return run(0, 0, units);
    }
    let run = Shared(&run);
    let share = |worker: u32| units * u64::from(worker) / u64::from(workers);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers)
            .map(|worker| {
                let (first, last) = (share(worker), share(worker + 1));
                scope.spawn(move || run.get()(worker, first, last - first))
            })
            .collect();
        let finished = started.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        finished.collect::<Result<Vec<_>, Fault>>().map(|printed| printed.concat())
    })
}

/// What workers may share: a launch frame, whose pointers are to memory of the launch and to functions.
#[derive(Clone, Copy)]
struct Shared<'a, T>(&'a T);

impl<'a, T> Shared<'a, T> {
    fn get(self) -> &'a T {
        self.0
    }
}

// SAFETY: workers only read the frame; what it points to is for kernels, whose threads share it anyway.
unsafe impl<T> Send for Shared<'_, T> {}

/// Runs some of a launch's clusters, or blocks that are in none, one after another.
fn run_blocks(
    kernel: &dyn CompiledKernel,
    launch: &LaunchFrame,
    worker: u32,
    first: u64,
    count: u64,
) -> Result<(), Fault> {
    let together = launch.cluster_blocks() as usize;
    let local_bytes = launch.local_bytes as usize * (launch.warps * WARP) as usize;
    let state_bytes = kernel.info().state_bytes as usize * launch.warps as usize;
    let shared = Mapping::windows(launch.shared_bytes.max(1) as usize, together, 4 << 30);
    let local = Mapping::new((local_bytes * together).max(1), 4096);
    let state = Mapping::new((state_bytes * together).max(1), 4096);
    // What another kernel left there; nothing may be read that was not written.
    // SAFETY: fresh memory of at least so many bytes.
    unsafe { state.base.write_bytes(0xa5, state_bytes * together) };
    let frame = |rank: usize| BlockFrame {
        launch,
        shared: shared.base.wrapping_add(rank * CLUSTER_STRIDE as usize),
        local: local.base.wrapping_add(rank * local_bytes),
        state: state.base.wrapping_add(rank * state_bytes),
        ctaid: [0; 3],
        warp: 0,
        from_warp: 0,
        worker,
        wait: Wait::default(),
        fault: FaultRecord::default(),
        misses: [0; kernel_abi::MISSES],
    };
    let mut frames: Vec<BlockFrame> = (0..together).map(frame).collect();
    // SAFETY: frames and launch are as the kernel's info asks for; blocks are within the grid.
    let result = unsafe {
        match launch.explicit_cluster {
            0 => kernel.run(&mut frames[0], first, count),
            _ => kernel.run_clusters(&mut frames, first, count),
        }
    };
    if result.is_err() {
        kernel.forget();
    }
    result.and_then(|()| kernel.settle(&frames[0]))
}

fn shared_need(info: &KernelInfo, grid: Grid) -> u32 {
    let fixed = kernel_abi::RESERVED_SHARED + info.shared_bytes;
    fixed.next_multiple_of(info.shared_align.max(16)) + grid.dynamic_shared
}

/// Records the format string and the first eight argument bytes: formatting is the device's.
unsafe extern "C" fn vprintf(
    _frame: *mut BlockFrame,
    mask: u32,
    formats: *const u64,
    arguments: *const u64,
    results: *mut i32,
) {
    for lane in (0..WARP as usize).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: arrays have an element for each lane; the kernel under test passes good addresses.
        unsafe {
            let format =
                std::ffi::CStr::from_ptr(*formats.add(lane) as *const _).to_string_lossy().into_owned();
            let block = *arguments.add(lane);
            let first = if block == 0 { 0 } else { (block as *const u32).read_unaligned() };
            PRINTED.with_borrow_mut(|printed| printed.push(format!("{}|{first}", format.trim_end())));
            *results.add(lane) = 1;
        }
    }
}

unsafe extern "C" fn assert_fail(
    _frame: *mut BlockFrame,
    _mask: u32,
    _messages: *const u64,
    _files: *const u64,
    _lines: *const u32,
    _functions: *const u64,
) {
}

unsafe extern "C" fn device_malloc(_frame: *mut BlockFrame, mask: u32, sizes: *const u64, results: *mut u64) {
    for lane in (0..WARP as usize).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: arrays have an element for each lane.
        unsafe { *results.add(lane) = libc::malloc(*sizes.add(lane) as usize) as u64 };
    }
}

unsafe extern "C" fn device_free(_frame: *mut BlockFrame, mask: u32, addresses: *const u64) {
    for lane in (0..WARP as usize).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: what the kernel frees came from `device_malloc`.
        unsafe { libc::free(*addresses.add(lane) as *mut c_void) };
    }
}

/// The device's own: objects are made there.
unsafe extern "C" fn texture(
    _frame: *mut BlockFrame,
    mask: u32,
    code: u64,
    registers: *mut LaneWords,
) -> u32 {
    // SAFETY: the contract of `Callbacks`.
    guard::unguarded(|| unsafe { device::texture::serve(mask, code, registers) })
}

unsafe extern "C" fn global_timer() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_nanos() as u64)
}

unsafe extern "C" fn nanosleep(_nanoseconds: u32) {}
unsafe extern "C" fn has_failed(_frame: *mut BlockFrame) -> u32 {
    0
}

/// There is no device to launch anything on: every call answers 0, which for a buffer of parameters means there is none.
unsafe extern "C" fn runtime(
    _frame: *mut BlockFrame,
    mask: u32,
    _function: u32,
    _arguments: *const u64,
    results: *mut u64,
) {
    for lane in (0..WARP as usize).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: arrays have an element for each lane.
        unsafe { *results.add(lane) = 0 };
    }
}
