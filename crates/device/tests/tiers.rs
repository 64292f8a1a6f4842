//! Grids whose kernel's full code is still being made.
#![cfg(not(miri))] // reserved address space, signals

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::*;
use kernel_abi::KernelInfo;

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
        // Nor did all wait at once, for it never comes.
        assert_eq!(run.load(Ordering::SeqCst), BLOCKS, "each block has run");
    }
}
