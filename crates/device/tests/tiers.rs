//! Grids of kernels that have been compiled quickly, whose full code is there only once somebody asks for it.
#![cfg(not(miri))] // reserved address space, signals

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::*;
use device::Function;
use kernel_abi::{KernelInfo, Successor};

#[test]
fn a_long_grid_leaves_a_processor_to_who_makes_better_code() {
    for info in [KernelInfo::default(), KernelInfo { waits: true, ..KernelInfo::default() }] {
        let setup = Setup::new();
        let coming = Arc::new(Coming::default());
        *setup.backend.better.lock().unwrap() = Some(coming.clone());
        let run = Arc::new(AtomicU64::new(0));
        let (now, better) = (run.clone(), coming.clone());
        const BLOCKS: u64 = 20_000;
        let kernel = setup.kernel_with("slow", info, move |_| {
            // The rest is short.
            if better.waits.load(Ordering::SeqCst) < 3 {
                thread::sleep(Duration::from_millis(1));
            }
            now.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let stream = setup.context.legacy_stream();
        launch(&kernel, stream, &blocks(BLOCKS as u32), &[]).unwrap();
        stream.synchronize().unwrap();
        assert!(coming.waits.load(Ordering::SeqCst) >= 3, "nobody has waited");
        assert!(coming.begun.load(Ordering::SeqCst) > 0, "nobody has asked for it");
        // Nor did all wait at once, for it never comes.
        assert_eq!(run.load(Ordering::SeqCst), BLOCKS, "each block has run");
    }
}

/// A kernel whose better code never comes and whose blocks take so long, and that code.
fn slow(setup: &Setup, time: Duration) -> (Arc<Function>, Arc<Coming>) {
    let coming = Arc::new(Coming::default());
    *setup.backend.better.lock().unwrap() = Some(coming.clone());
    let kernel = setup.kernel("slow", move |_| {
        thread::sleep(time);
        Ok(())
    });
    (kernel, coming)
}

#[test]
fn better_code_is_asked_for_once_the_first_has_run_for_long() {
    let setup = Setup::new();
    let (kernel, coming) = slow(&setup, Duration::from_micros(500));
    let stream = setup.context.legacy_stream();
    for _ in 0..8 {
        launch(&kernel, stream, &blocks(1), &[]).unwrap();
        stream.synchronize().unwrap();
        // From a part of what it costs on, which is somewhat more than the least.
        let (ran, begun) = (coming.ran(Duration::ZERO), coming.begun.load(Ordering::SeqCst) > 0);
        assert!(
            if begun { ran >= Duration::from_millis(3) } else { ran < Duration::from_millis(4) },
            "{ran:?}"
        );
    }
    assert!(coming.begun.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_grid_that_runs_for_long_asks_for_better_code_before_it_ends() {
    let setup = Setup::new();
    let coming = Arc::new(Coming::default());
    *setup.backend.better.lock().unwrap() = Some(coming.clone());
    let asked = Arc::new(AtomicU64::new(0));
    let (better, before_the_end) = (coming.clone(), asked.clone());
    let kernel = setup.kernel("slow", move |_| {
        if better.begun.load(Ordering::SeqCst) > 0 {
            before_the_end.fetch_add(1, Ordering::SeqCst);
        } else {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let stream = setup.context.legacy_stream();
    launch(&kernel, stream, &blocks(1000), &[]).unwrap();
    stream.synchronize().unwrap();
    assert!(asked.load(Ordering::SeqCst) > 0);
}

#[test]
fn launches_wait_for_better_code_once_the_first_has_run_for_as_long_as_that_takes() {
    let setup = Setup::new();
    let (kernel, coming) = slow(&setup, Duration::from_millis(30));
    let stream = setup.context.legacy_stream();
    let mut before = 0;
    for _ in 0..5 {
        let is_long = coming.ran(Duration::ZERO) >= coming.cost();
        launch(&kernel, stream, &blocks(1), &[]).unwrap();
        let needed = coming.needed.load(Ordering::SeqCst);
        assert_eq!(needed > before, is_long);
        before = needed;
        stream.synchronize().unwrap();
    }
    assert!(before > 0);
}

#[test]
fn a_thread_steps_aside_for_better_code_once_several_launches_together_have_run_for_long() {
    let setup = Setup::new();
    let (kernel, coming) = slow(&setup, Duration::from_millis(1));
    let stream = setup.context.legacy_stream();
    let long = Duration::from_millis(100);
    let run = || {
        launch(&kernel, stream, &blocks(8), &[]).unwrap();
        stream.synchronize().unwrap();
    };
    while coming.ran(Duration::ZERO) < long {
        // Where the machine is busy, so short a launch may be a long one.
        let waits = coming.waits.load(Ordering::SeqCst);
        run();
        assert!(waits == 0 || coming.ran(Duration::ZERO) >= long);
    }
    (0..100).for_each(|_| run());
    assert!(coming.waits.load(Ordering::SeqCst) > 0);
}

#[test]
fn blocks_of_quickly_compiled_kernels_are_handed_out_fewer_at_a_time() {
    let most = |is_quick: bool| {
        let setup = Setup::new();
        *setup.backend.better.lock().unwrap() = is_quick.then(Arc::default);
        let kernel = setup.kernel("k", |_| Ok(()));
        let stream = setup.context.legacy_stream();
        launch(&kernel, stream, &blocks(1 << 14), &[]).unwrap();
        stream.synchronize().unwrap();
        setup.backend.most_blocks.load(Ordering::Relaxed)
    };
    let (full, quick) = (most(false), most(true));
    assert!(full >= 4 * quick, "{full} and {quick}: better code takes over between two");
}
