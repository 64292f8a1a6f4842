//! Who is called for work, and who is woken up.

use super::*;
use crate::callbacks::{DeviceHeap, Output};
use crate::domain::Domain;
use crate::fault::Health;
use crate::memory::{AddressSpace, ContextId};
use crate::usage::Usage;

fn queue(executor: &Arc<Executor>) -> Arc<Queue> {
    let space = Arc::new(AddressSpace::new(&[1 << 20]).unwrap());
    let heap = DeviceHeap::new(space.clone(), 0, ContextId(1), 0);
    let domain = Arc::new(Domain {
        health: Health::new(false, ContextId(1)),
        output: Output::new(0),
        heap,
        memory: space,
        usage: Usage::private(),
    });
    Queue::new(executor.clone(), domain, 0)
}

/// A worker's desk without a worker.
fn desk(executor: &Executor, sleeps: bool) -> Arc<Desk> {
    let desk = Arc::new(Desk::default());
    desk.look();
    assert!(!sleeps || desk.sleep());
    executor.roaming.fetch_add(isize::from(!sleeps), Ordering::Relaxed);
    executor.state.lock().desks.push(desk.clone());
    desk
}

#[test]
fn each_queue_has_a_worker_called_for_it() {
    let executor = Executor::new(3, 16);
    let desks = [desk(&executor, true), desk(&executor, false), desk(&executor, false)];
    executor.schedule(queue(&executor));
    assert_eq!(desks.each_ref().map(|desk| desk.is_called()), [false, true, false], "who looks comes first");
    executor.schedule(queue(&executor));
    assert_eq!(desks.each_ref().map(|desk| desk.is_called()), [false, true, true], "nobody is called twice");
    assert_eq!(executor.roaming(), 2);
    executor.schedule(queue(&executor));
    assert_eq!(desks.each_ref().map(|desk| desk.is_called()), [true; 3]);
    assert_eq!(executor.roaming(), 3, "who is woken up counts as awake");
    assert!(!executor.watched.load(Ordering::Relaxed));
    // All are busy: what they do may wait for this.
    executor.schedule(queue(&executor));
    assert!(executor.watched.load(Ordering::Relaxed));
    assert!(desks.iter().all(|desk| matches!(desk.leave(), Some(Call::Look))));
    executor.shut_down();
}

#[test]
fn a_worker_finds_what_arrived_before_it_could_be_called() {
    let executor = Executor::new(1, 16);
    let desk = Desk::default();
    // As if it arrived while the only worker ran something else: nobody is called.
    executor.state.lock().desks.push(Arc::default());
    executor.schedule(queue(&executor));
    assert!(matches!(executor.next_job(&desk, false), Some(Job::Queue(_))));
    executor.shut_down();
    assert!(executor.next_job(&desk, false).is_none());
}

#[test]
fn those_who_sleep_are_woken_up_for_each_arrival() {
    let executor = Executor::new(2, 16);
    let desk = desk(&executor, false);
    let done = Arc::new(AtomicUsize::new(0));
    let worker = {
        let (executor, desk, done) = (executor.clone(), desk.clone(), done.clone());
        std::thread::spawn(move || {
            desk.open();
            while let Some(job) = executor.next_job(&desk, false) {
                assert!(matches!(job, Job::Queue(_)));
                done.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    // Full of others, so that no more workers are started; nor are any by the watch, which would see no progress.
    executor.state.lock().desks.push(Arc::default());
    executor.watched.store(true, Ordering::Relaxed);
    for number in 0..200 {
        // Just before, while and after it falls asleep.
        std::thread::sleep(Duration::from_micros(number % 100));
        executor.schedule(queue(&executor));
        while done.load(Ordering::SeqCst) <= number as usize {
            std::thread::yield_now();
        }
    }
    executor.shut_down();
    worker.join().unwrap();
}

#[test]
fn work_that_nobody_comes_for_wakes_those_who_sleep_and_then_others_come() {
    let executor = Executor::new(1, 16);
    let mut state = State::default();
    let mut watch = Watch::new(2);
    assert_eq!(watch.look(&state, 7, false, false, false), Remedy::Nothing, "there is no work");
    // As if the worker that was called for it had found something else: one sleeps, and there is work.
    state.ready.insert((0, 1), queue(&executor));
    state.desks.push(desk(&executor, true));
    assert_eq!(watch.look(&state, 7, false, false, false), Remedy::Wake);
    assert_eq!(watch.look(&state, 8, false, false, false), Remedy::Nothing, "something has moved");
    state.desks[0].leave();
    assert_eq!(watch.look(&state, 8, false, false, false), Remedy::Add(1));
    // Blocks in quickly made code may take that long.
    for _ in 1..watch::WATCHES_AT_FIRST {
        assert_eq!(watch.look(&state, 8, false, true, false), Remedy::Nothing);
    }
    assert_eq!(watch.look(&state, 8, false, true, false), Remedy::Add(1));
    assert_eq!(watch.look(&state, 8, false, true, false), Remedy::Nothing, "they are given as long again");
    state.extra = 2;
    assert_eq!(watch.look(&state, 8, true, false, false), Remedy::Add(0));
    state.ready.clear();
    for _ in 0..watch::WATCHES {
        assert_eq!(watch.look(&state, 8, false, false, false), Remedy::Nothing);
    }
    assert_eq!(watch.look(&state, 8, false, false, false), Remedy::End);
}

#[test]
fn blocks_that_only_take_long_get_fewer_and_fewer_threads() {
    let executor = Executor::new(1, 16);
    let mut state = State::default();
    state.ready.insert((0, 1), queue(&executor));
    let mut watch = Watch::new(100);
    let looks = |watch: &mut Watch, progress: u64, waiting: bool| {
        (1..).find(|_| watch.look(&state, progress, waiting, false, false) == Remedy::Add(1))
    };
    assert_eq!(watch.look(&state, 8, false, false, false), Remedy::Nothing, "something has moved");
    assert_eq!([(); 4].map(|()| looks(&mut watch, 8, false)), [1, 2, 4, 8].map(Some));
    assert_eq!(watch.look(&state, 9, false, false, false), Remedy::Nothing, "something has moved");
    assert_eq!(looks(&mut watch, 9, false), Some(16), "it may be as slow as before");
    assert_eq!(looks(&mut watch, 9, true), Some(1), "others wait for what has not begun");
}

#[test]
fn blocks_that_wait_for_each_other_have_a_thread_each_and_are_watched_from_the_start() {
    let executor = Executor::new(2, 16);
    let (looks, sleeps) = (desk(&executor, false), desk(&executor, true));
    let mut calls = Calls::default();
    let mut state = executor.state.lock();
    executor.call_for_waiting(&mut state, None, 4, 4, 4, &mut calls);
    assert!(looks.is_called() && sleeps.is_called());
    assert_eq!((calls.0.len(), state.extra), (1, 2), "two more than there are processors");
    drop(state);
    assert!(executor.watched.load(Ordering::Relaxed));
    executor.shut_down();
}
