//! Short work: run by the thread that submits it, where nobody can tell but by the time it takes.
#![cfg(not(miri))] // reserved address space, signals

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use common::*;
use device::memory::{Fill, Side, Transfer};
use device::{Context, Error, Event, EventFlags, Function, Stream, StreamKind};
use kernel_abi::{FaultKind, KernelInfo};

/// A kernel that notes which threads have run its blocks.
fn noting(setup: &Setup, info: KernelInfo) -> (Arc<Function>, Arc<Mutex<Vec<ThreadId>>>) {
    let threads = Arc::new(Mutex::new(Vec::new()));
    let noted = threads.clone();
    let kernel = setup.kernel_with("note", info, move |_| {
        noted.lock().unwrap().push(thread::current().id());
        Ok(())
    });
    (kernel, threads)
}

fn stream(context: &Arc<Context>) -> Arc<Stream> {
    context.create_stream(StreamKind::Blocking, 0).unwrap()
}

/// Launches a block until one has run when the launch returns, on the launching thread; false if that never happens. A disturbed
/// machine may make any single launch look long.
fn comes_to_run_at_once(kernel: &Arc<Function>, stream: &Stream, threads: &Mutex<Vec<ThreadId>>) -> bool {
    (0..2000).any(|_| {
        threads.lock().unwrap().clear();
        launch(kernel, stream, &blocks(1), &[]).unwrap();
        let at_once = *threads.lock().unwrap() == [thread::current().id()] && stream.query() == Ok(());
        stream.synchronize().unwrap();
        at_once
    })
}

/// A host function that holds a stream up until it is told to end.
fn hold(stream: &Stream) -> Arc<AtomicBool> {
    let held = Arc::new(AtomicBool::new(true));
    let until = held.clone();
    stream
        .host_function(move || {
            while until.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        })
        .unwrap();
    held
}

#[test]
fn a_kernel_that_was_short_runs_on_the_launching_thread() {
    for info in [KernelInfo::default(), with_barriers()] {
        let setup = Setup::new();
        let (kernel, threads) = noting(&setup, info);
        assert!(comes_to_run_at_once(&kernel, &stream(&setup.context), &threads));
        assert!(comes_to_run_at_once(&kernel, setup.context.legacy_stream(), &threads));
    }
}

#[test]
fn a_kernel_that_may_wait_for_the_host_never_does() {
    for info in [
        KernelInfo { waits: true, ..KernelInfo::default() },
        KernelInfo { may_wait: true, ..with_barriers() },
    ] {
        let setup = Setup::new();
        let stream = stream(&setup.context);
        let launching = Arc::new(AtomicU64::new(0));
        let (during, me) = (launching.clone(), thread::current().id());
        let kernel = setup.kernel_with("look", info, move |_| {
            // Within the launch this thread may not run it.
            assert!(thread::current().id() != me || during.load(Ordering::SeqCst) == 0);
            Ok(())
        });
        for _ in 0..200 {
            launching.store(1, Ordering::SeqCst);
            launch(&kernel, &stream, &blocks(1), &[]).unwrap();
            launching.store(0, Ordering::SeqCst);
            stream.synchronize().unwrap();
        }
    }
}

#[test]
fn short_work_stays_behind_what_is_before_it() {
    let setup = Setup::new();
    let (kernel, threads) = noting(&setup, KernelInfo::default());
    let (first, other) = (stream(&setup.context), stream(&setup.context));
    let legacy = setup.context.legacy_stream();
    assert!(comes_to_run_at_once(&kernel, &first, &threads));
    let address = setup.context.allocate(64).unwrap();
    legacy.fill(Fill::linear(address, 0, 1, 64)).unwrap();
    setup.context.synchronize().unwrap();
    threads.lock().unwrap().clear();
    // In the same stream; in the legacy stream, which waits for it; in another, which waits for the legacy stream.
    let held = hold(&first);
    launch(&kernel, &first, &blocks(1), &[]).unwrap();
    legacy.fill(Fill::linear(address, 7, 1, 64)).unwrap();
    launch(&kernel, legacy, &blocks(1), &[]).unwrap();
    launch(&kernel, &other, &blocks(1), &[]).unwrap();
    let event = Event::new(&setup.context, EventFlags::default()).unwrap();
    event.record(&other).unwrap();
    assert_eq!(event.query(), Err(Error::NotReady));
    assert!(threads.lock().unwrap().is_empty());
    assert_eq!(read(address), 0);
    held.store(false, Ordering::SeqCst);
    event.synchronize().unwrap();
    assert_eq!(threads.lock().unwrap().len(), 3);
    assert_eq!(read(address), 0x0707_0707_0707_0707);
}

#[test]
fn what_comes_while_short_work_runs_is_not_forgotten() {
    let setup = Setup::new();
    let stream = stream(&setup.context);
    let word = setup.context.allocate(8).unwrap();
    stream.fill(Fill::linear(word, 0, 1, 8)).unwrap();
    stream.synchronize().unwrap();
    let kernel = setup.kernel("count", |frame| {
        add(params(frame)[0], 1);
        Ok(())
    });
    const EACH: u64 = 3000;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    launch(&kernel, &stream, &blocks(1), &[word]).unwrap();
                }
            });
        }
    });
    stream.synchronize().unwrap();
    assert_eq!(read(word), 3 * EACH);
}

#[test]
fn an_event_behind_nothing_is_over_at_once() {
    let setup = Setup::new();
    let stream = stream(&setup.context);
    let [start, end] = [(); 2].map(|()| Event::new(&setup.context, EventFlags::default()).unwrap());
    start.record(&stream).unwrap();
    assert_eq!(start.query(), Ok(()));
    end.record(&stream).unwrap();
    assert!(start.elapsed_until(&end).unwrap() >= 0.0);
    let held = hold(&stream);
    end.record(&stream).unwrap();
    assert_eq!(end.query(), Err(Error::NotReady));
    held.store(false, Ordering::SeqCst);
    end.synchronize().unwrap();
}

#[test]
fn a_fault_of_short_work_is_the_contexts() {
    let setup = Setup::new();
    let stream = stream(&setup.context);
    let fails = Arc::new(AtomicBool::new(false));
    let now = fails.clone();
    let threads = Arc::new(Mutex::new(Vec::new()));
    let noted = threads.clone();
    let kernel = setup.kernel("fail", move |frame| {
        noted.lock().unwrap().push(thread::current().id());
        if now.load(Ordering::SeqCst) { Err(fault(frame, FaultKind::Trap)) } else { Ok(()) }
    });
    assert!(comes_to_run_at_once(&kernel, &stream, &threads));
    fails.store(true, Ordering::SeqCst);
    assert_eq!(launch(&kernel, &stream, &blocks(1), &[]), Ok(()), "the launch itself is fine");
    assert_eq!(stream.synchronize(), Err(Error::Fault(FaultKind::Trap)));
    assert_eq!(launch(&kernel, &stream, &blocks(1), &[]), Err(Error::Fault(FaultKind::Trap)));
}

#[test]
fn a_launch_that_drags_on_is_left_to_others() {
    let setup = Setup::new();
    let stream = stream(&setup.context);
    let slow = Arc::new(AtomicBool::new(false));
    let (now, threads) = (slow.clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = threads.clone();
    let kernel = setup.kernel("drag", move |_| {
        noted.lock().unwrap().push(thread::current().id());
        if now.load(Ordering::SeqCst) {
            thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    });
    let mut left = false;
    for _ in 0..50 {
        slow.store(false, Ordering::SeqCst);
        assert!(comes_to_run_at_once(&kernel, &stream, &threads));
        slow.store(true, Ordering::SeqCst);
        threads.lock().unwrap().clear();
        launch(&kernel, &stream, &blocks(16), &[]).unwrap();
        left |= stream.query() == Err(Error::NotReady);
        stream.synchronize().unwrap();
        assert_eq!(threads.lock().unwrap().len(), 16);
        if left && threads.lock().unwrap()[0] == thread::current().id() {
            return;
        }
    }
    panic!("the launching thread began it and ran it to its end, or did not begin it");
}

#[test]
fn large_copies_and_fills_are_whole_and_in_order() {
    let setup = Setup::new();
    let stream = stream(&setup.context);
    const WORDS: usize = (5 << 20) / 4 + 3;
    let bytes = 4 * WORDS as u64;
    let [from, to] = [(); 2].map(|()| setup.context.allocate(2 * bytes).unwrap());
    let mut host: Vec<u32> = (0..WORDS as u32).map(|word| word.wrapping_mul(2_654_435_761)).collect();
    // SAFETY: the buffer is used for one copy at a time.
    let side = |host: &mut Vec<u32>| unsafe { Side::any(host.as_mut_ptr() as u64) };
    stream.fill(Fill::linear(from, 0x0102_0304, 4, 2 * WORDS as u64)).unwrap();
    stream.copy(Transfer::linear(Side::device(from), side(&mut host), bytes)).unwrap();
    stream.copy(Transfer::linear(Side::device(to), Side::device(from), 2 * bytes)).unwrap();
    // Onto itself, a word further on: read before it is written.
    stream.copy(Transfer::linear(Side::device(to + 4), Side::device(to), bytes)).unwrap();
    let mut back = vec![0_u32; 2 * WORDS];
    stream.copy_and_wait(Transfer::linear(side(&mut back), Side::device(to), 2 * bytes)).unwrap();
    assert_eq!(back[0], host[0]);
    assert!(back[1..=WORDS] == host[..]);
    assert!(back[WORDS + 1..].iter().all(|word| *word == 0x0102_0304));
}

#[test]
fn memory_that_is_not_there_is_the_callers_error_however_large() {
    let setup = Setup::new();
    let stream = stream(&setup.context);
    let address = setup.context.allocate(16 << 20).unwrap();
    // SAFETY: nothing is mapped there, which the copy must find out.
    let nowhere = unsafe { Side::any(0x1000) };
    let copy = Transfer::linear(nowhere, Side::device(address), 16 << 20);
    assert_eq!(stream.copy_and_wait(copy), Err(Error::InvalidValue));
    assert_eq!(setup.context.check(), Ok(()));
}

#[test]
fn a_thread_with_a_small_stack_runs_no_kernel() {
    let setup = Setup::new();
    let (kernel, threads) = noting(&setup, KernelInfo::default());
    let stream = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    // Those of this thread are short by now: it would run them at once.
    assert!(comes_to_run_at_once(&kernel, &stream, &threads));
    threads.lock().unwrap().clear();
    let run = || {
        for count in [1, 1, 50] {
            launch(&kernel, &stream, &blocks(count), &[]).unwrap();
            stream.synchronize().unwrap();
        }
        thread::current().id()
    };
    let small = thread::scope(|scope| {
        let started = thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, run);
        started.unwrap().join().unwrap()
    });
    let threads = threads.lock().unwrap();
    assert_eq!(threads.len(), 52);
    assert!(!threads.contains(&small));
}
