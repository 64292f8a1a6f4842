//! What the scheduler has warps do, told by entries that keep a trace.

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

thread_local! {
    /// What the warps of a test did: warp and step.
    static TRACE: RefCell<Vec<(u32, u32)>> = const { RefCell::new(Vec::new()) };
}

fn trace(warp: u32, step: u32) {
    TRACE.with_borrow_mut(|trace| trace.push((warp, step)));
}

fn launch(warps: u32) -> LaunchFrame {
    LaunchFrame {
        grid: [1; 3],
        block: [32 * warps, 1, 1],
        params: ptr::null(),
        globals: ptr::null(),
        callbacks: ptr::null(),
        context: ptr::null(),
        dynamic_shared_bytes: 0,
        shared_bytes: 0,
        local_bytes: 0,
        warps,
        threads: 32 * warps,
        sm_count: 1,
        grid_id: 1,
        grid_workspace: 0,
        cluster: [1; 3],
        explicit_cluster: 0,
        graph: 0,
    }
}

fn run(warps: u32, entry: WarpEntry, plain: Option<WarpEntry>) -> (Stopped, Vec<(u32, u32)>) {
    run_cluster(1, warps, entry, plain)
}

/// Runs blocks together whose x index is their rank.
fn run_cluster(
    blocks: u32,
    warps: u32,
    entry: WarpEntry,
    plain: Option<WarpEntry>,
) -> (Stopped, Vec<(u32, u32)>) {
    run_in_gangs(1, [blocks, blocks], warps, entry, plain)
}

/// Likewise so many blocks of clusters of so many, with an entry that runs so many warps at once.
fn run_in_gangs(
    gang: u32,
    blocks: [u32; 2],
    warps: u32,
    entry: WarpEntry,
    plain: Option<WarpEntry>,
) -> (Stopped, Vec<(u32, u32)>) {
    run_all_ways(gang, blocks, warps, (entry, None), plain)
}

/// Likewise with code that runs whole blocks, if there is any.
fn run_all_ways(
    gang: u32,
    [blocks, cluster]: [u32; 2],
    warps: u32,
    (entry, together): (WarpEntry, Option<TogetherEntry>),
    plain: Option<WarpEntry>,
) -> (Stopped, Vec<(u32, u32)>) {
    let launch = LaunchFrame { cluster: [cluster, 1, 1], ..launch(warps) };
    let frame = |rank| BlockFrame {
        launch: &launch,
        shared: ptr::null_mut(),
        local: ptr::null_mut(),
        state: ptr::null_mut(),
        ctaid: [rank, 0, 0],
        warp: 0,
        from_warp: 0,
        worker: 0,
        wait: Wait::default(),
        fault: kernel_abi::FaultRecord::default(),
        misses: [0; kernel_abi::MISSES],
    };
    let mut frames: Vec<BlockFrame> = (0..blocks).map(frame).collect();
    TRACE.with_borrow_mut(Vec::clear);
    let code =
        |entry, together, gang| WarpCode { entry, together, state: ptr::null_mut(), block_bytes: 64, gang };
    let mut schedule = Schedule::new(&launch, blocks as usize, code(entry, together, gang));
    schedule.start();
    // SAFETY: the entries of these tests touch nothing but the frame.
    let mut stopped = unsafe { schedule.run(frames.as_mut_ptr()) };
    if let (Stopped::NeedsPlainCode, Some(plain)) = (stopped, plain) {
        schedule.resume_with(code(plain, None, 1));
        // SAFETY: as above.
        stopped = unsafe { schedule.run(frames.as_mut_ptr()) };
    }
    (stopped, TRACE.take())
}

/// Suspends for `kind` at `barrier`, with one vote for each warp with an even number.
unsafe fn suspend(frame: *mut BlockFrame, warp: u32, kind: WaitKind, barrier: u32, threads: u32) {
    let votes = if warp.is_multiple_of(2) { 1 } else { 0 };
    let wait = Wait { kind: kind as u32, barrier, threads, lanes: u32::MAX, votes, ..Wait::default() };
    // SAFETY: the frame of the test.
    unsafe { (*frame).wait = wait };
}

#[test]
fn a_barrier_is_passed_by_all_or_none() {
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(warp, resume);
        // SAFETY: the frame of the test.
        unsafe {
            if resume > 0 {
                assert_eq!(((*frame).wait.result, (*frame).wait.arrived), (2, 96));
            }
            suspend(frame, warp, WaitKind::Barrier, 0, 0);
        }
        if resume < 2 { resume + 1 } else { 0 }
    }
    let (stopped, trace) = run(3, entry, None);
    assert_eq!(stopped, Stopped::Done);
    let mut steps: Vec<u32> = trace.iter().map(|(_, step)| *step).collect();
    assert!(steps.is_sorted(), "no warp runs ahead: {trace:?}");
    steps.dedup();
    assert_eq!((steps.len(), trace.len()), (3, 9));
}

/// What generated code does that runs whole blocks.
unsafe fn run_whole(
    entry: WarpEntry,
    frame: *mut BlockFrame,
    count: u32,
    parted: *mut kernel_abi::Parted,
) -> u32 {
    let mut resume = 0;
    loop {
        let (mut first, mut barrier) = (0, 0);
        for at in 0..count {
            // SAFETY: the entry of a test, and its frame.
            let own = unsafe { entry(frame, at, resume) };
            if at == 0 {
                // SAFETY: the frame of the test.
                (first, barrier) = (own, unsafe { (*frame).wait.barrier });
            }
            if own != first || own == u32::MAX {
                // SAFETY: the schedule's.
                unsafe { *parted = kernel_abi::Parted { resume, at, first, own, barrier } };
                return 0;
            }
        }
        resume = first;
        if resume == 0 {
            return 1;
        }
    }
}

#[test]
fn code_that_runs_whole_blocks_leaves_them_where_warps_part() {
    /// At step `.0` warp `.1` ends, goes to another barrier or gives up, as `.2` says.
    static PARTS: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(warp, resume);
        let [step, who, what] = PARTS.each_ref().map(|part| part.load(Ordering::Relaxed));
        let own = (resume, warp) == (step, who);
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Barrier, if own && what == 1 { 5 } else { 2 }, 0) };
        match (own, what) {
            (true, 0) => 0,
            (true, 1) => resume + 10,
            (true, 2) if resume == 0 => u32::MAX,
            _ if resume % 10 >= 2 => 0,
            _ => resume + 1,
        }
    }
    unsafe extern "C" fn plain(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(100 + warp, resume);
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Barrier, 2, 0) };
        if resume == 2 { 0 } else { resume + 1 }
    }
    unsafe extern "C" fn together(
        frame: *mut BlockFrame,
        count: u32,
        parted: *mut kernel_abi::Parted,
    ) -> u32 {
        // SAFETY: the schedule's.
        unsafe { run_whole(entry, frame, count, parted) }
    }
    for step in 0..3 {
        for who in 0..4 {
            for what in 0..3 {
                for (part, value) in PARTS.iter().zip([step, who, what]) {
                    part.store(value, Ordering::Relaxed);
                }
                // Gangs of plain warps are something else.
                let run = |together| run_all_ways(1, [2, 1], 4, (entry, together), Some(plain));
                assert_eq!(run(Some(together)), run(None), "step {step}, warp {who}, {what}");
            }
        }
    }
}

#[test]
fn warps_that_part_after_a_while_have_what_they_had_together() {
    // The last warp ends after two votes, the first announces itself then, and the others vote once more.
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(warp, resume);
        // SAFETY: the frame of the test.
        unsafe {
            let Wait { result, arrived, .. } = (*frame).wait;
            match resume {
                1 | 2 => assert_eq!((result, arrived), (2, 128), "warp {warp}"),
                3 if warp > 0 => assert_eq!((result, arrived), (1, 64), "warp {warp}"),
                _ => {}
            }
            let kind = if (warp, resume) == (0, 2) { WaitKind::Arrive } else { WaitKind::Barrier };
            suspend(frame, warp, kind, 0, 0);
        }
        if (warp, resume) == (3, 2) || resume == 3 { 0 } else { resume + 1 }
    }
    let (stopped, trace) = run(4, entry, None);
    assert_eq!(stopped, Stopped::Done);
    let together: Vec<_> = (0..3).flat_map(|step| (0..4).map(move |warp| (warp, step))).collect();
    let mut expected = together;
    expected.insert(9, (0, 3));
    expected.extend([(1, 3), (2, 3)]);
    assert_eq!(trace, expected);
}

#[test]
fn a_gang_counts_for_its_warps_until_each_runs_by_itself() {
    unsafe extern "C" fn entry(frame: *mut BlockFrame, gang: u32, resume: u32) -> u32 {
        // SAFETY: the frame of the test.
        unsafe {
            trace(10 + gang, (*frame).warp);
            suspend(frame, gang, WaitKind::Barrier, 0, 0);
        }
        match (gang, resume) {
            // The second finds that an assumption does not hold.
            (1, _) => u32::MAX,
            (_, 0) => 1,
            _ => 0,
        }
    }
    unsafe extern "C" fn plain(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        // SAFETY: the frame of the test.
        unsafe {
            trace(warp, (*frame).warp);
            suspend(frame, warp, WaitKind::Barrier, 0, 0);
        }
        if resume == 0 { 1 } else { 0 }
    }
    let (stopped, trace) = run_in_gangs(2, [1, 1], 6, entry, Some(plain));
    assert_eq!(stopped, Stopped::Done);
    let round = [(10, 0), (2, 2), (3, 3), (12, 4)];
    let first = [(10, 0), (11, 2), (2, 2), (3, 3), (12, 4)];
    assert_eq!(trace, [&first[..], &round[..]].concat());
}

#[test]
fn warps_that_ended_do_not_hold_a_barrier() {
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(warp, resume);
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Barrier, 3, 0) };
        if warp == 2 || resume == 1 { 0 } else { 1 }
    }
    assert_eq!(run(3, entry, None), (Stopped::Done, vec![(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]));
}

#[test]
fn producers_announce_and_consumers_wait() {
    // Warp 0 waits at barrier 1 for 64 threads; warp 1 announces itself there and goes on.
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(warp, resume);
        let kind = if warp == 0 { WaitKind::Barrier } else { WaitKind::Arrive };
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, kind, 1, 64) };
        if resume == 0 { 1 } else { 0 }
    }
    assert_eq!(run(2, entry, None), (Stopped::Done, vec![(0, 0), (1, 0), (1, 1), (0, 1)]));
}

#[test]
fn two_groups_use_two_barriers() {
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Barrier, 1 + warp / 2, 64) };
        if resume == 0 { 1 } else { 0 }
    }
    assert_eq!(run(4, entry, None).0, Stopped::Done);
}

#[test]
fn warps_that_wait_for_each_other_are_a_deadlock() {
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, _: u32) -> u32 {
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Barrier, warp, 64) };
        1
    }
    assert_eq!(run(2, entry, None).0, Stopped::Deadlock);
}

#[test]
fn a_barrier_that_does_not_exist_is_a_fault() {
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, _: u32) -> u32 {
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Barrier, 16, 0) };
        1
    }
    assert_eq!(run(1, entry, None).0, Stopped::NoSuchBarrier);
}

#[test]
fn the_barrier_of_a_cluster_is_passed_by_all_blocks_or_none() {
    // Arrives, does something, waits, and that again.
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        // SAFETY: the frame of the test.
        unsafe {
            trace((*frame).ctaid[0] * 10 + warp, resume);
            assert_eq!((*frame).state as usize, (*frame).ctaid[0] as usize * 64, "each has its own state");
            let kind = if resume.is_multiple_of(2) { WaitKind::ClusterArrive } else { WaitKind::ClusterWait };
            suspend(frame, warp, kind, 0, 0);
        }
        if resume < 4 { resume + 1 } else { 0 }
    }
    let (stopped, trace) = run_cluster(3, 2, entry, None);
    assert_eq!((stopped, trace.len()), (Stopped::Done, 6 * 5));
    let at = |step| trace.iter().enumerate().filter(move |(_, (_, known))| *known == step).map(|(at, _)| at);
    // What follows a wait comes after all that precedes the arrival; what is between the two may be early.
    assert!(at(0).max() < at(2).min() && at(2).max() < at(4).min(), "{trace:?}");
}

#[test]
fn warps_that_ended_do_not_hold_the_barrier_of_a_cluster() {
    // Those of block 1 end, one of them after its arrival.
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        // SAFETY: the frame of the test.
        let rank = unsafe { (*frame).ctaid[0] };
        let kind = if resume == 0 { WaitKind::ClusterArrive } else { WaitKind::ClusterWait };
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, kind, 0, 0) };
        match (rank, warp, resume) {
            (1, 0, _) | (1, 1, 1) | (_, _, 2) => 0,
            _ => resume + 1,
        }
    }
    assert_eq!(run_cluster(2, 2, entry, None).0, Stopped::Done);
}

#[test]
fn who_waits_for_the_cluster_without_having_arrived_waits_for_ever() {
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        // SAFETY: the frame of the test.
        let rank = unsafe { (*frame).ctaid[0] };
        let arrives = rank == 0 && resume == 0;
        let kind = if arrives { WaitKind::ClusterArrive } else { WaitKind::ClusterWait };
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, kind, 0, 0) };
        if resume == 2 { 0 } else { resume + 1 }
    }
    assert_eq!(run_cluster(2, 1, entry, None).0, Stopped::Deadlock);
}

#[test]
fn a_block_that_polls_lets_the_others_of_its_cluster_go_on() {
    // Block 0 asks again and again until block 1 has taken its third step.
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        // SAFETY: the frame of the test.
        let rank = unsafe { (*frame).ctaid[0] };
        trace(rank, resume);
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Yield, 0, 0) };
        match rank {
            0 if TRACE.with_borrow(|trace| trace.contains(&(1, 3))) => 0,
            0 => 1,
            _ if resume == 3 => 0,
            _ => resume + 1,
        }
    }
    assert_eq!(run_cluster(2, 1, entry, None).0, Stopped::Done);
}

#[test]
fn clusters_that_take_turns_each_have_a_barrier() {
    // Of two clusters of two blocks the second waits at its barrier; the first polls until the last block is past that.
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        // SAFETY: the frame of the test.
        let block = unsafe { (*frame).ctaid[0] };
        trace(block, resume);
        let kind = match (block, resume) {
            (0 | 1, _) => WaitKind::Yield,
            (_, 0) => WaitKind::ClusterArrive,
            _ => WaitKind::ClusterWait,
        };
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, kind, 0, 0) };
        match block {
            0 | 1 if TRACE.with_borrow(|trace| trace.contains(&(3, 2))) => 0,
            0 | 1 => 1,
            _ if resume == 2 => 0,
            _ => resume + 1,
        }
    }
    assert_eq!(run_in_gangs(1, [4, 2], 1, entry, None).0, Stopped::Done);
}

#[test]
fn a_yield_lets_others_go_first() {
    unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(warp, resume);
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Yield, 0, 0) };
        if warp == 1 || resume == 3 { 0 } else { resume + 1 }
    }
    assert_eq!(run(2, entry, None), (Stopped::Done, vec![(0, 0), (1, 0), (0, 1), (0, 2), (0, 3)]));
}

#[test]
fn a_warp_whose_assumption_fails_runs_plain_code_from_its_start() {
    unsafe extern "C" fn assuming(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(warp, resume);
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Barrier, 0, 0) };
        match (warp, resume) {
            (1, 0) => u32::MAX,
            (_, 0) => 1,
            _ => 0,
        }
    }
    unsafe extern "C" fn plain(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
        trace(warp, 100 + resume);
        // SAFETY: the frame of the test.
        unsafe { suspend(frame, warp, WaitKind::Barrier, 0, 0) };
        if resume == 0 { 7 } else { 0 }
    }
    let (stopped, trace) = run(3, assuming, Some(plain));
    assert_eq!(stopped, Stopped::Done);
    assert_eq!(trace, [(0, 0), (1, 0), (1, 100), (2, 0), (0, 1), (1, 107), (2, 1)]);
}
