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
use std::time::Duration;

use kernel_abi::{BlockFrame, Callbacks};

pub use heap::DeviceHeap;
pub use output::Output;

use crate::clock;
use crate::domain::Domain;

/// What a launch's callbacks work with; `LaunchFrame::context` points to it.
pub(crate) struct Services {
    /// The context's.
    pub(crate) domain: Arc<Domain>,
}

/// The services of this device.
pub static TABLE: Callbacks = Callbacks { vprintf, assert_fail, malloc, free, global_timer, nanosleep };

/// The same for blocks that run a second time: they say nothing again.
pub static QUIET: Callbacks = Callbacks {
    vprintf: quiet_vprintf,
    assert_fail: quiet_assert_fail,
    malloc,
    free,
    global_timer,
    nanosleep,
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
        let mut text = Vec::new();
        for lane in lanes(mask) {
            let count = printf::format(&mut text, *formats.add(lane), *arguments.add(lane));
            *results.add(lane) = count.map_or(-1, |count| count as i32);
        }
        services(frame).domain.output.append(&text);
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
        let Some(lane) = lanes(mask).next() else { return };
        let text = |strings: *const u64| guest::string_lossy(*strings.add(lane));
        let (message, file, function) = (text(messages), text(files), text(functions));
        let launch = &*(*frame).launch;
        let [bx, by, bz] = (*frame).ctaid;
        let linear = (*frame).warp * kernel_abi::WARP + lane as u32;
        let (nx, ny) = (launch.block[0].max(1), launch.block[1].max(1));
        let (tx, ty, tz) = (linear % nx, linear / nx % ny, linear / nx / ny);
        eprintln!(
            "{file}:{}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{message}` failed.",
            *lines.add(lane)
        );
    });
}

unsafe extern "C" fn malloc(frame: *mut BlockFrame, mask: u32, sizes: *const u64, results: *mut u64) {
    // SAFETY: as for `vprintf`.
    host(|| unsafe {
        let heap = &services(frame).domain.heap;
        for lane in lanes(mask) {
            *results.add(lane) = heap.allocate(*sizes.add(lane)).unwrap_or(0);
        }
    });
}

unsafe extern "C" fn free(frame: *mut BlockFrame, mask: u32, addresses: *const u64) {
    // SAFETY: as for `vprintf`.
    host(|| unsafe {
        let heap = &services(frame).domain.heap;
        for lane in lanes(mask) {
            heap.free(*addresses.add(lane));
        }
    });
}

unsafe extern "C" fn global_timer() -> u64 {
    clock::now()
}

unsafe extern "C" fn nanosleep(nanoseconds: u32) {
    match nanoseconds.min(LONGEST_SLEEP) {
        // Shorter than going to sleep takes.
        0..1000 => std::thread::yield_now(),
        time => std::thread::sleep(Duration::from_nanos(time.into())),
    }
}

/// Runs host code on behalf of generated code.
fn host(body: impl FnOnce()) {
    // A panic must not unwind through generated code. What it leaves undone is an answer that was not written: those are
    // initialised by the caller.
    let _ = catch_unwind(AssertUnwindSafe(|| guard::unguarded(body)));
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}

/// # Safety
/// `frame` is the frame of a block in flight of a launch of this device.
unsafe fn services<'a>(frame: *mut BlockFrame) -> &'a Services {
    // SAFETY: the launch outlives its blocks, and its context points to its services.
    unsafe { &*(*(*frame).launch).context.cast::<Services>() }
}
