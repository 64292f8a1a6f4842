//! Eight threads with eight streams each, in one context: what each stream leaves in its memory is what the thread computed.

mod common;
use common::*;
use std::sync::atomic::{AtomicU32, Ordering};

const THREADS: u32 = 8;
const STREAMS: usize = 8;
const WORDS: usize = 64;
const OPERATIONS: usize = 1500;

/// A stream, the memory that it works on, and what must be there.
struct Lane {
    stream: CUstream,
    memory: CUdeviceptr,
    pinned: *mut c_void,
    expected: [u32; WORDS],
}

/// Numbers that follow from a seed.
struct Random(u32);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % limit
    }
}

unsafe extern "C" fn count(counter: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the stream's work.
    unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

fn at(memory: CUdeviceptr, word: usize) -> CUdeviceptr {
    CUdeviceptr(memory.0 + 4 * word as u64)
}

fn new_lane(number: usize) -> Lane {
    let (mut stream, mut pinned) = (CUstream::NULL, null_mut());
    let memory = alloc_with(&[0_u32; WORDS]);
    cu!(
        cuStreamCreate(out(&mut stream), number as u32 % 2);
        cuMemAllocHost_v2(out(&mut pinned), 4 * WORDS);
    );
    Lane { stream, memory, pinned, expected: [0; WORDS] }
}

fn drop_lane(lane: &Lane) {
    cu!(cuStreamDestroy_v2(lane.stream); cuMemFree_v2(lane.memory); cuMemFreeHost(lane.pinned));
}

fn work(context: CUcontext, module: CUmodule, seed: u32) {
    cu!(cuCtxSetCurrent(context));
    let (mut random, poke, calls) = (Random(seed), function(module, "poke"), AtomicU32::new(0));
    let (mut event, mut wanted_calls) = (CUevent::NULL, 0);
    cu!(cuEventCreate(out(&mut event), 0));
    let mut lanes: Vec<Lane> = (0..STREAMS).map(new_lane).collect();
    for _ in 0..OPERATIONS {
        let (which, first) = (random.below(STREAMS), random.below(WORDS));
        let (len, value) = (1 + random.below(WORDS - first), random.below(1 << 20) as u32);
        let (from, bytes) = (random.below(STREAMS), 4 * len);
        let (source, source_stream) = (lanes[from].memory, lanes[from].stream);
        let copied = lanes[from].expected;
        let lane = &mut lanes[which];
        let place = at(lane.memory, first);
        match random.below(12) {
            0 | 1 => {
                cu!(cuMemsetD32Async(place, value, len, lane.stream));
                lane.expected[first..first + len].fill(value);
            }
            2 => {
                let values = vec![value; len];
                cu!(cuMemcpyHtoDAsync_v2(place, values.as_ptr().cast(), bytes, lane.stream));
                lane.expected[first..first + len].fill(value);
            }
            3 => {
                let mut values = vec![0; len];
                cu!(
                    cuMemcpyDtoHAsync_v2(values.as_mut_ptr().cast(), place, bytes, lane.stream);
                    cuStreamSynchronize(lane.stream);
                );
                assert_eq!(values, lane.expected[first..first + len]);
            }
            4 => {
                cu!(cuMemcpyDtoHAsync_v2(lane.pinned, place, bytes, lane.stream); cuStreamSynchronize(lane.stream));
                // SAFETY: the copy is over, and nobody else uses this thread's memory.
                let values = unsafe { std::slice::from_raw_parts(lane.pinned.cast::<u32>(), len) };
                assert_eq!(values, &lane.expected[first..first + len]);
            }
            5 | 6 if from != which => {
                cu!(
                    cuEventRecord(event, source_stream);
                    cuStreamWaitEvent(lane.stream, event, 0);
                    cuMemcpyDtoDAsync_v2(place, at(source, first), bytes, lane.stream);
                    cuEventRecord(event, lane.stream);
                    cuStreamWaitEvent(source_stream, event, 0);
                );
                lane.expected[first..first + len].copy_from_slice(&copied[first..first + len]);
            }
            7 | 8 => {
                assert_eq!(launch(poke, 2, 32, lane.stream, &mut [arg(&place)]), CUDA_SUCCESS);
                lane.expected[first] = 1;
            }
            9 => {
                cu!(cuLaunchHostFunc(lane.stream, Some(count), (&raw const calls).cast_mut().cast()));
                wanted_calls += 1;
            }
            10 => {
                let mut scratch = CUdeviceptr(0);
                cu!(
                    cuMemAllocAsync(out(&mut scratch), bytes, lane.stream);
                    cuMemsetD32Async(scratch, value, len, lane.stream);
                    cuMemcpyDtoDAsync_v2(place, scratch, bytes, lane.stream);
                    cuMemFreeAsync(scratch, lane.stream);
                );
                lane.expected[first..first + len].fill(value);
            }
            _ if value.is_multiple_of(8) => {
                cu!(cuStreamSynchronize(lane.stream));
                assert_eq!(read::<u32>(lane.memory, WORDS), lane.expected);
                let old = std::mem::replace(lane, new_lane(which));
                drop_lane(&old);
            }
            _ => {
                cu!(cuEventRecord(event, lane.stream); cuEventSynchronize(event); cuStreamQuery(lane.stream));
            }
        }
    }
    for lane in &lanes {
        cu!(cuStreamSynchronize(lane.stream));
        assert_eq!(read::<u32>(lane.memory, WORDS), lane.expected);
        drop_lane(lane);
    }
    assert_eq!(calls.load(Ordering::Relaxed), wanted_calls);
    cu!(cuEventDestroy_v2(event); cuCtxSetCurrent(CUcontext::NULL));
}

#[test]
fn threads_and_streams_do_not_disturb_each_other() {
    let context = new_context();
    let module = load(KERNELS);
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || work(context, module, seed));
        }
    });
    cu!(cuCtxDestroy_v2(context));
}

/// A number that a worker of the device and the program write without any order: what ThreadSanitizer must find.
#[test]
#[ignore = "has a race on purpose, to show that scripts/tsan finds one"]
fn planted_race() {
    static mut NUMBER: u32 = 0;
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn write(_: *mut c_void) {
        // SAFETY: not sound: that is the point. The test is run by scripts/tsan alone.
        unsafe { (&raw mut NUMBER).write(1) };
        // Tells the program without ordering anything.
        WRITTEN.store(1, Ordering::Relaxed);
    }
    let context = new_context();
    let mut stream = CUstream::NULL;
    cu!(
        cuStreamCreate(out(&mut stream), CU_STREAM_NON_BLOCKING);
        cuLaunchHostFunc(stream, Some(write), null_mut());
    );
    while WRITTEN.load(Ordering::Relaxed) == 0 {
        // SAFETY: as above.
        unsafe { (&raw mut NUMBER).write(2) };
        std::thread::yield_now();
    }
    cu!(cuStreamSynchronize(stream); cuCtxDestroy_v2(context));
    // SAFETY: as above. (What nobody reads, nobody need write.)
    assert_ne!(unsafe { (&raw const NUMBER).read() }, 0);
}
