//! What kernels ask of the host: output, assertions, heap, time.
//!
//! Generated code calls the functions of [`TABLE`] with its block's frame, which leads to the launch's [`Services`]. They are
//! called in the middle of a guarded call and must come back: they run unguarded (a fault in them is a bug of ours), and touch
//! what the kernel points to only through guarded accesses.

mod guest;
mod heap;
mod output;
mod printf;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kernel_abi::matrix::LaneWords;
use kernel_abi::texture::Failure;
use kernel_abi::{BlockFrame, Callbacks, Fault, FaultKind};

pub use heap::DeviceHeap;
pub use output::Output;

use crate::clock;
use crate::domain::Domain;
use crate::fault::FaultReport;
use crate::nested::{Nested, quiet_runtime, runtime};
use crate::texture::Bound;

/// What a launch's callbacks work with; `LaunchFrame::context` points to it.
pub(crate) struct Services {
    /// What its blocks launch.
    pub(crate) nested: Nested,
    /// What the module's references were bound to when it was launched.
    pub(crate) _objects: Vec<Arc<Bound>>,
    /// A block has failed, or could not run; blocks that are counted as done afterwards make that known.
    pub(crate) failed: AtomicBool,
    /// When the first has, set before `failed`.
    pub(crate) failed_at: AtomicU64,
}

impl Services {
    pub(crate) fn new(nested: Nested, objects: Vec<Arc<Bound>>) -> Services {
        Services { nested, _objects: objects, failed: AtomicBool::new(false), failed_at: AtomicU64::new(0) }
    }

    /// The context's.
    fn domain(&self) -> &Domain {
        &self.nested.ready().domain
    }
}

/// The services of this device.
pub static TABLE: Callbacks =
    Callbacks { vprintf, assert_fail, malloc, free, global_timer, texture, nanosleep, runtime, has_failed };

/// The same for blocks that run a second time: they say nothing again.
pub static QUIET: Callbacks = Callbacks {
    vprintf: quiet_vprintf,
    assert_fail: quiet_assert_fail,
    malloc,
    free: quiet_free,
    global_timer,
    texture,
    nanosleep,
    runtime: quiet_runtime,
    has_failed,
};

unsafe extern "C" fn quiet_vprintf(
    _frame: *mut BlockFrame,
    _mask: u32,
    _formats: *const u64,
    _arguments: *const u64,
    _results: *mut i32,
) {
}

unsafe extern "C" fn quiet_assert_fail(
    _frame: *mut BlockFrame,
    _mask: u32,
    _messages: *const u64,
    _files: *const u64,
    _lines: *const u32,
    _functions: *const u64,
) {
}

/// Longest sleep of a thread at once.
const LONGEST_SLEEP: u32 = 1_000_000;

unsafe extern "C" fn vprintf(
    frame: *mut BlockFrame,
    mask: u32,
    formats: *const u64,
    arguments: *const u64,
    results: *mut i32,
) {
    // SAFETY: the contract of `Callbacks`: a frame of a running launch, and elements for the lanes of the mask.
    host(|| unsafe {
        let output = &services(frame).domain().output;
        let mut text = Vec::new();
        for lane in lanes(mask) {
            text.clear();
            let format = *formats.add(lane);
            *results.add(lane) = match printf::format(&mut text, format, *arguments.add(lane)) {
                Some(count) => {
                    output.append(&text, count);
                    count as i32
                }
                // The manual's answers: -1 for no format, -2 for what goes wrong otherwise.
                None if format == 0 => -1,
                None => {
                    fail(
                        frame,
                        lane,
                        FaultKind::IllegalAddress,
                        format,
                        "printf of a string that is not there",
                    );
                    -2
                }
            };
        }
    });
}

unsafe extern "C" fn assert_fail(
    frame: *mut BlockFrame,
    mask: u32,
    messages: *const u64,
    files: *const u64,
    lines: *const u32,
    functions: *const u64,
) {
    // SAFETY: as for `vprintf`.
    host(|| unsafe {
        let launch = &*(*frame).launch;
        let [bx, by, bz] = (*frame).ctaid;
        let (nx, ny) = (launch.block[0].max(1), launch.block[1].max(1));
        let mut said = String::new();
        for lane in lanes(mask) {
            let text = |strings: *const u64| guest::string_lossy(*strings.add(lane));
            let (message, file, function) = (text(messages), text(files), text(functions));
            let linear = (*frame).warp * kernel_abi::WARP + lane as u32;
            let (tx, ty, tz) = (linear % nx, linear / nx % ny, linear / nx / ny);
            said += &format!(
                "{file}:{}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{message}` failed.\n",
                *lines.add(lane)
            );
        }
        // At once, so that no other warp's come in between.
        eprint!("{said}");
    });
}

unsafe extern "C" fn malloc(frame: *mut BlockFrame, mask: u32, sizes: *const u64, results: *mut u64) {
    // SAFETY: as for `vprintf`.
    host(|| unsafe {
        let heap = &services(frame).domain().heap;
        for lane in lanes(mask) {
            *results.add(lane) = heap.allocate(*sizes.add(lane)).unwrap_or(0);
        }
    });
}

unsafe extern "C" fn free(frame: *mut BlockFrame, mask: u32, addresses: *const u64) {
    // SAFETY: as for `vprintf`.
    host(|| unsafe {
        let services = services(frame);
        let domain = services.domain();
        for lane in lanes(mask) {
            let address = *addresses.add(lane);
            if address == 0 || domain.heap.free(address) {
                continue;
            }
            // Twice, or never allocated: the heap stays as it is, and the context fails. The hardware's `free` traps at what the heap has not given, and
            // reads in vain beside what is not the heap's.
            let kind = match domain.heap.contains(address) {
                true => FaultKind::Trap,
                false => FaultKind::IllegalAddress,
            };
            fail(frame, lane, kind, address, "free of what malloc has not given, or no longer");
        }
    });
}

/// A call cannot be done as it should: the context fails.
///
/// # Safety
/// A frame of a running launch.
unsafe fn fail(frame: *mut BlockFrame, lane: usize, kind: FaultKind, address: u64, detail: &str) {
    // SAFETY: the caller's duty.
    let (services, frame) = unsafe { (services(frame), &*frame) };
    // SAFETY: a running launch's frame leads to it.
    let block_dim = unsafe { (*frame.launch).block };
    services.domain().health.fail(FaultReport {
        kernel: services.nested.ready().name.to_string(),
        block_dim,
        source: None,
        fault: Fault {
            kind,
            address: Some(address),
            ctaid: frame.ctaid,
            warp: frame.warp,
            lane: Some(lane as u32),
            ptx_line: None,
            detail: detail.into(),
        },
    });
}

/// What the first run has freed stays so; what a second run allocates, nobody else knows of.
unsafe extern "C" fn quiet_free(frame: *mut BlockFrame, mask: u32, addresses: *const u64) {
    // SAFETY: as for `vprintf`.
    host(|| unsafe {
        for lane in lanes(mask) {
            services(frame).domain().heap.free(*addresses.add(lane));
        }
    });
}

unsafe extern "C" fn texture(
    _frame: *mut BlockFrame,
    mask: u32,
    code: u64,
    registers: *mut LaneWords,
) -> u32 {
    let mut status = Failure { kind: FaultKind::IllegalInstruction, lane: 0 }.code();
    // SAFETY: the contract of `Callbacks`.
    host(|| status = unsafe { crate::texture::serve(mask, code, registers) });
    status
}

unsafe extern "C" fn global_timer() -> u64 {
    clock::since_1970()
}

unsafe extern "C" fn nanosleep(nanoseconds: u32) {
    match nanoseconds.min(LONGEST_SLEEP) {
        // Shorter than going to sleep takes.
        0..1000 => std::thread::yield_now(),
        time => std::thread::sleep(Duration::from_nanos(time.into())),
    }
}

unsafe extern "C" fn has_failed(frame: *mut BlockFrame) -> u32 {
    // SAFETY: the contract of `Callbacks`: a frame of a running launch.
    unsafe { services(frame) }.failed.load(Ordering::Relaxed).into()
}

/// Runs host code on behalf of generated code.
pub(crate) fn host(body: impl FnOnce()) {
    // A panic must not unwind through generated code. What it leaves undone is an answer that was not written: those are
    // initialised by the caller.
    let _ = catch_unwind(AssertUnwindSafe(|| guard::unguarded(body)));
}

pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}

/// # Safety
/// `frame` is the frame of a block in flight of a launch of this device.
pub(crate) unsafe fn services<'a>(frame: *mut BlockFrame) -> &'a Services {
    // SAFETY: the launch outlives its blocks, and its context points to its services.
    unsafe { &*(*(*frame).launch).context.cast::<Services>() }
}
