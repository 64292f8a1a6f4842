//! Streams, events and launches, with kernels that are closures.
#![cfg(not(miri))] // reserved address space, signals

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::*;
use device::{Error, Event, EventFlags, FaultReport, StreamKind};
use kernel_abi::{FaultKind, KernelInfo};

fn zeroed(setup: &Setup, bytes: u64) -> u64 {
    let address = setup.context.allocate(bytes).unwrap();
    setup.context.legacy_stream().fill(device::memory::Fill::linear(address, 0, 1, bytes)).unwrap();
    setup.context.synchronize().unwrap();
    address
}

#[test]
fn every_block_runs_once() {
    let setup = Setup::new();
    let counts = zeroed(&setup, 8 * 10_000);
    let kernel = setup.kernel("count", |frame| {
        add(params(frame)[0] + 8 * u64::from(frame.ctaid[0] + frame.ctaid[1] * 100), 1);
        Ok(())
    });
    let stream = setup.context.create_stream(StreamKind::Blocking, 0).unwrap();
    for grid in [[100, 100, 1], [100, 1, 1], [1, 1, 1], [7, 9, 1]] {
        launch(&kernel, &stream, &device::Launch { grid, ..blocks(1) }, &[counts]).unwrap();
        stream.synchronize().unwrap();
    }
    for block in 0..10_000 {
        let (x, y) = (block % 100, block / 100);
        let expected = 1 + u64::from(y == 0) + u64::from(block == 0) + u64::from(x < 7 && y < 9);
        assert_eq!(read(counts + 8 * block), expected, "block ({x},{y})");
    }
}

#[test]
fn work_of_a_stream_is_in_order() {
    let setup = Setup::new();
    let word = zeroed(&setup, 8);
    // Each launch of many blocks expects that all of the one before have run.
    let kernel = setup.kernel("step", |frame| {
        let [word, number, per_launch] = params(frame);
        let before = add(word, 1);
        assert!(before / per_launch == number, "{before} at launch {number}");
        Ok(())
    });
    let stream = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    for number in 0..200 {
        launch(&kernel, &stream, &blocks(50), &[word, number, 50]).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(read(word), 200 * 50);
}

#[test]
fn a_launch_returns_before_its_kernel_ends() {
    let setup = Setup::new();
    let go = Arc::new(AtomicBool::new(false));
    let kernel = {
        let go = go.clone();
        setup.kernel("wait", move |_| {
            while !go.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            Ok(())
        })
    };
    let stream = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let event = Event::new(&setup.context, EventFlags::default()).unwrap();
    launch(&kernel, &stream, &blocks(8), &[]).unwrap();
    event.record(&stream).unwrap();
    assert_eq!(stream.query(), Err(Error::NotReady));
    assert_eq!(event.query(), Err(Error::NotReady));
    go.store(true, Ordering::SeqCst);
    event.synchronize().unwrap();
    assert_eq!(stream.query(), Ok(()));
}

#[test]
fn kernels_that_wait_for_each_other_progress_on_one_core() {
    let setup = Setup::with(|options| options.threads = 1);
    let word = zeroed(&setup, 8);
    let wait = setup.kernel("wait_for_words", |frame| {
        while read(params(frame)[0]) < params(frame)[1] {
            std::thread::yield_now();
        }
        Ok(())
    });
    let set = setup.kernel("set_word", |frame| {
        add(params(frame)[0], 1);
        Ok(())
    });
    let streams: Vec<_> =
        (0..4).map(|_| setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap()).collect();
    for stream in &streams[..3] {
        launch(&wait, stream, &blocks(2), &[word, 1]).unwrap();
    }
    launch(&set, &streams[3], &blocks(1), &[word]).unwrap();
    setup.context.synchronize().unwrap();
}

#[test]
fn blocks_of_a_cooperative_grid_run_together() {
    let setup = Setup::with(|options| options.multiprocessors = Some(2));
    let word = zeroed(&setup, 8);
    let kernel = setup.kernel_with("meet", with_barriers(), |frame| {
        let [word, blocks, _] = params(frame);
        add(word, 1);
        while read(word) < blocks {
            std::thread::yield_now();
        }
        Ok(())
    });
    let cooperative = |count| device::Launch { cooperative: true, ..blocks(count) };
    let stream = setup.context.legacy_stream();
    launch(&kernel, stream, &cooperative(64), &[word, 64]).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(
        launch(&kernel, stream, &cooperative(65), &[word, 65]),
        Err(Error::CooperativeLaunchTooLarge),
        "two processors of 32 blocks"
    );
}

#[test]
fn blocks_of_a_cooperative_grid_that_take_turns_need_no_thread_each() {
    let setup = Setup::with(|options| options.multiprocessors = Some(2));
    setup.backend.takes_turns.store(true, Ordering::Relaxed);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let seen = runs.clone();
    let kernel = setup.kernel("in_turns", move |frame| {
        seen.lock().unwrap().push((frame.ctaid[0], std::thread::current().id(), frame.shared as u64));
        Ok(())
    });
    let stream = setup.context.legacy_stream();
    launch(&kernel, stream, &device::Launch { cooperative: true, ..blocks(63) }, &[]).unwrap();
    stream.synchronize().unwrap();
    let mut runs = runs.lock().unwrap().clone();
    runs.sort_unstable_by_key(|(block, ..)| *block);
    assert!(runs.iter().map(|(block, ..)| *block).eq(0..63), "each once");
    for of_one_thread in [&runs[..32], &runs[32..]] {
        let (_, thread, _) = of_one_thread[0];
        let windows: HashSet<u64> = of_one_thread.iter().map(|(_, _, window)| *window).collect();
        assert!(of_one_thread.iter().all(|(_, other, _)| *other == thread));
        assert_eq!(windows.len(), of_one_thread.len(), "blocks that take turns keep their memory");
    }
}

#[test]
fn the_default_stream_is_in_order_with_blocking_streams() {
    let setup = Setup::new();
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |stream: &device::Stream, text: &'static str| {
        let log = log.clone();
        stream.host_function(move || log.lock().unwrap().push(text)).unwrap();
    };
    let hold = Arc::new(AtomicBool::new(true));
    let a = setup.context.create_stream(StreamKind::Blocking, 0).unwrap();
    let b = setup.context.create_stream(StreamKind::Blocking, 0).unwrap();
    let free = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let legacy = setup.context.legacy_stream();
    let held = hold.clone();
    a.host_function(move || {
        while held.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    })
    .unwrap();
    note(&a, "a");
    note(legacy, "legacy");
    note(&b, "b");
    free.host_function(|| ()).unwrap();
    free.synchronize().unwrap();
    assert!(log.lock().unwrap().is_empty());
    hold.store(false, Ordering::SeqCst);
    b.synchronize().unwrap();
    assert_eq!(*log.lock().unwrap(), ["a", "legacy", "b"]);
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    let setup = Setup::new();
    let a = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let b = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let counter = Arc::new(AtomicUsize::new(0));
    for round in 0..500 {
        let (first, second) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let counter = counter.clone();
        first
            .host_function(move || {
                counter.compare_exchange(round, round + 1, Ordering::SeqCst, Ordering::SeqCst).unwrap();
            })
            .unwrap();
        let event = Event::new(&setup.context, EventFlags::default()).unwrap();
        event.record(first).unwrap();
        second.wait_event(&event).unwrap();
    }
    setup.context.synchronize().unwrap();
    assert_eq!(counter.load(Ordering::SeqCst), 500);
}

#[test]
fn many_threads_with_their_own_streams() {
    let setup = Arc::new(Setup::new());
    let word = zeroed(&setup, 8);
    let kernel = setup.kernel("add_one", |frame| {
        add(params(frame)[0], 1);
        Ok(())
    });
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let stream = setup.context.per_thread_stream();
                for _ in 0..100 {
                    launch(&kernel, &stream, &blocks(4), &[word]).unwrap();
                    stream.synchronize().unwrap();
                }
                launch(&kernel, setup.context.legacy_stream(), &blocks(1), &[word]).unwrap();
            });
        }
    });
    setup.context.synchronize().unwrap();
    assert_eq!(read(word), 6 * 401);
}

#[test]
fn events_measure_and_refuse() {
    let setup = Setup::new();
    let event = |flags| Event::new(&setup.context, flags).unwrap();
    let (start, end) = (event(EventFlags::default()), event(EventFlags::default()));
    let untimed = event(EventFlags { disable_timing: true, ..EventFlags::default() });
    assert_eq!(start.query(), Ok(()), "never recorded");
    assert_eq!(start.elapsed_until(&end), Err(Error::InvalidHandle));
    let stream = setup.context.legacy_stream();
    start.record(stream).unwrap();
    stream.host_function(|| std::thread::sleep(std::time::Duration::from_millis(5))).unwrap();
    end.record(stream).unwrap();
    untimed.record(stream).unwrap();
    end.synchronize().unwrap();
    assert!(start.elapsed_until(&end).unwrap() >= 5.0);
    assert!(end.elapsed_until(&start).unwrap() <= -5.0);
    assert_eq!(start.elapsed_until(&untimed), Err(Error::InvalidHandle));
    assert_eq!(
        Event::new(&setup.context, EventFlags { interprocess: true, ..EventFlags::default() }).err(),
        Some(Error::InvalidValue)
    );
}

#[test]
fn a_fault_stays_in_its_context() {
    let setup = Setup::new();
    let other = setup.platform.device(0).unwrap().create_context(Default::default()).unwrap();
    let ran = Arc::new(AtomicU64::new(0));
    let counter = ran.clone();
    let kernel = setup.kernel("bad", move |frame| {
        counter.fetch_add(1, Ordering::SeqCst);
        if frame.ctaid[0] == 3 { Err(fault(frame, FaultKind::IllegalAddress)) } else { Ok(()) }
    });
    let stream = setup.context.create_stream(StreamKind::Blocking, 0).unwrap();
    launch(&kernel, &stream, &blocks(1_000_000), &[]).unwrap();
    let failed = Err(Error::Fault(FaultKind::IllegalAddress));
    assert_eq!(stream.synchronize(), failed);
    assert!(ran.load(Ordering::SeqCst) < 1_000_000, "the other blocks are abandoned");
    assert_eq!(setup.context.allocate(16).map(drop), failed);
    assert_eq!(launch(&kernel, &stream, &blocks(1), &[]), failed);
    assert_eq!(stream.query(), failed);
    let FaultReport { kernel, fault, .. } = setup.context.fault().unwrap();
    assert_eq!((kernel.as_str(), fault.ctaid), ("bad", [3, 0, 0]));
    let address = other.allocate(16).unwrap();
    other.synchronize().unwrap();
    setup.platform.free(address).unwrap();
    setup.context.destroy().unwrap();
    assert_eq!(setup.context.check(), Err(Error::ContextIsDestroyed));
}

#[test]
fn a_second_run_tells_the_thread_of_a_fault() {
    for (second, told) in [(0x2010, Some(7)), (0x9000, None)] {
        let setup = Setup::new();
        let again = Arc::new(ClosureBackend::default());
        let info = KernelInfo { param_bytes: 24, ..KernelInfo::default() };
        again.define("bad", info, move |frame| {
            let fault = fault(frame, FaultKind::IllegalAddress);
            Err(kernel_abi::Fault { address: Some(second), lane: Some(7), ptx_line: Some(12), ..fault })
        });
        *setup.backend.replayer.lock().unwrap() = Some(again);
        let bad = setup.kernel("bad", |frame| {
            let fault = fault(frame, FaultKind::IllegalAddress);
            Err(kernel_abi::Fault { address: Some(0x2000), lane: None, ptx_line: None, ..fault })
        });
        launch(&bad, setup.context.legacy_stream(), &blocks(1), &[]).unwrap();
        assert!(setup.context.synchronize().is_err());
        let found = setup.context.fault().unwrap().fault;
        assert_eq!(found.lane, told, "a fault elsewhere is another fault");
        assert_eq!(found.ptx_line, told.map(|_| 12));
    }
}

#[test]
fn what_is_queued_behind_a_fault_does_not_run() {
    let setup = Setup::new();
    let kernel = setup.kernel("trap", |frame| Err(fault(frame, FaultKind::Trap)));
    let stream = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let (ran, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
    let hold = Arc::new(AtomicBool::new(true));
    let held = hold.clone();
    stream
        .host_function(move || {
            while held.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        })
        .unwrap();
    launch(&kernel, &stream, &blocks(1), &[]).unwrap();
    let flag = ran.clone();
    stream.host_function(move || flag.store(true, Ordering::SeqCst)).unwrap();
    let slot = told.clone();
    stream.callback(move |status| *slot.lock().unwrap() = Some(status)).unwrap();
    hold.store(false, Ordering::SeqCst);
    assert_eq!(stream.synchronize(), Err(Error::Fault(FaultKind::Trap)));
    assert!(!ran.load(Ordering::SeqCst));
    assert_eq!(*told.lock().unwrap(), Some(Err(Error::Fault(FaultKind::Trap))));
}

#[test]
fn a_panic_of_the_back_end_is_a_fault() {
    let setup = Setup::new();
    let kernel = setup.kernel("panics", |_| panic!("on purpose"));
    launch(&kernel, setup.context.legacy_stream(), &blocks(64), &[]).unwrap();
    assert!(matches!(setup.context.synchronize(), Err(Error::Fault(_))));
    assert!(setup.context.fault().unwrap().fault.detail.contains("on purpose"));
}

#[test]
fn host_functions_know_where_they_are() {
    let setup = Setup::new();
    let inside = Arc::new(AtomicBool::new(false));
    let flag = inside.clone();
    let stream = setup.context.legacy_stream();
    stream.host_function(move || flag.store(device::stream::in_host_function(), Ordering::SeqCst)).unwrap();
    stream.synchronize().unwrap();
    assert!(inside.load(Ordering::SeqCst));
    assert!(!device::stream::in_host_function());
}

#[test]
fn host_functions_never_run_on_a_thread_that_waits() {
    let setup = Setup::new();
    let own = std::thread::current().id();
    let here = Arc::new(AtomicU32::new(0));
    let count = |here: &Arc<AtomicU32>| {
        let here = here.clone();
        move || {
            here.fetch_add(u32::from(std::thread::current().id() == own), Ordering::SeqCst);
        }
    };
    let kernel = setup.kernel("nothing", |_| Ok(()));
    let stream = setup.context.legacy_stream();
    for _ in 0..300 {
        launch(&kernel, stream, &blocks(4), &[]).unwrap();
        stream.host_function(count(&here)).unwrap();
        stream.host_function_once(count(&here)).unwrap();
        launch(&kernel, stream, &blocks(4), &[]).unwrap();
        let told = count(&here);
        stream.callback(move |_| told()).unwrap();
        stream.synchronize().unwrap();
    }
    assert_eq!(here.load(Ordering::SeqCst), 0);
}
