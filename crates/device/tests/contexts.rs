//! Contexts, their memory, and what a launch refuses.
#![cfg(not(miri))] // reserved address space

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use device::memory::{Extent, Fill, PoolKind, Region, Side, Transfer};
use device::stream::{Condition, Width};
use device::{ContextFlags, Error, Launch, Limit, Platform, StreamKind};
use kernel_abi::{FaultKind, KernelInfo};

fn any<T>(slice: &mut [T]) -> Side {
    // SAFETY: the tests use a buffer for one copy at a time.
    unsafe { Side::any(slice.as_mut_ptr() as u64) }
}

#[test]
fn the_primary_context_is_always_the_same() {
    let setup = Setup::new();
    let primary = setup.platform.device(0).unwrap().primary();
    assert!(!primary.is_active());
    assert_eq!(primary.release(), Err(Error::InvalidContext));
    let context = primary.retain().unwrap();
    assert!(Arc::ptr_eq(&context, &primary.retain().unwrap()));
    assert_eq!(context.destroy(), Err(Error::InvalidContext));
    let address = context.allocate(100).unwrap();
    primary.release().unwrap();
    context.allocate(100).unwrap();
    primary.release().unwrap();
    assert_eq!(context.allocate(100), Err(Error::ContextIsDestroyed));
    assert_eq!(setup.platform.memory().find(address), None);
    assert!(Arc::ptr_eq(&context, &primary.retain().unwrap()));
    context.allocate(100).unwrap();
}

#[test]
fn a_reset_heals_the_primary_context() {
    let setup = Setup::new();
    let primary = setup.platform.device(0).unwrap().primary();
    let context = primary.retain().unwrap();
    setup.define("trap", KernelInfo::default(), |frame| Err(fault(frame, FaultKind::Trap)));
    let module = device::Module::load(&context, code("trap")).unwrap();
    let kernel = module.function("trap").unwrap();
    launch(&kernel, context.legacy_stream(), &blocks(1), &[]).unwrap();
    assert_eq!(context.synchronize(), Err(Error::Fault(FaultKind::Trap)));
    primary.reset().unwrap();
    assert_eq!(context.check(), Err(Error::ContextIsDestroyed));
    primary.retain().unwrap();
    assert_eq!(context.synchronize(), Ok(()));
    context.allocate(16).unwrap();
}

#[test]
fn destroyed_contexts_take_their_memory_along() {
    let setup = Setup::new();
    let address = setup.context.allocate(8 << 20).unwrap();
    let stream = setup.context.create_stream(StreamKind::Blocking, 0).unwrap();
    let (free, total) = setup.context.memory_info().unwrap();
    assert!(free <= total - (8 << 20));
    setup.context.destroy().unwrap();
    assert_eq!(setup.context.destroy(), Err(Error::ContextIsDestroyed));
    assert_eq!(setup.platform.free(address), Err(Error::InvalidValue));
    assert_eq!(stream.synchronize(), Err(Error::ContextIsDestroyed));
    assert_eq!(stream.host_function(|| ()), Err(Error::ContextIsDestroyed));
}

/// Whoever still allocates while another thread ends the context gets an error, or memory that goes with it.
#[test]
fn what_is_allocated_while_a_context_ends_goes_with_it() {
    let setup = Setup::new();
    let (free, _) = setup.context.memory_info().unwrap();
    for _ in 0..200 {
        let context = setup.platform.devices()[0].create_context(ContextFlags::default()).unwrap();
        let begin = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    begin.wait();
                    while context.allocate(4096).is_ok() {
                        let _ = context.create_stream(StreamKind::NonBlocking, 0);
                    }
                });
            }
            begin.wait();
            context.destroy().unwrap();
        });
        assert_eq!(context.allocate(4096), Err(Error::ContextIsDestroyed));
    }
    assert_eq!(setup.context.memory_info().unwrap().0, free);
}

#[test]
fn freeing_waits_for_the_work() {
    let setup = Setup::new();
    let address = setup.context.allocate(8).unwrap();
    let go = Arc::new(AtomicBool::new(false));
    let held = go.clone();
    let kernel = setup.kernel("late", move |frame| {
        while !held.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        add(params(frame)[0], 1);
        Ok(())
    });
    let stream = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    launch(&kernel, &stream, &blocks(1), &[address]).unwrap();
    std::thread::scope(|scope| {
        let free = scope.spawn(|| setup.platform.free(address));
        go.store(true, Ordering::SeqCst);
        assert_eq!(free.join().unwrap(), Ok(()));
    });
    assert_eq!(stream.query(), Ok(()));
}

#[test]
fn what_cannot_be_freed() {
    let setup = Setup::new();
    let platform = &setup.platform;
    let device = setup.context.allocate(1000).unwrap();
    let host = setup.context.allocate_host(1000, 0).unwrap();
    assert_eq!(platform.free(0), Ok(()));
    for address in [0x1234, device + 4, host] {
        assert_eq!(platform.free(address), Err(Error::InvalidValue));
    }
    assert_eq!(platform.free_host(device), Err(Error::InvalidValue));
    platform.free_host(host).unwrap();
    platform.free(device).unwrap();
    assert_eq!(platform.free(device), Err(Error::InvalidValue));
    assert_eq!(setup.context.allocate_host(0, 0), Ok(0));
    assert_eq!(setup.context.allocate(0), Err(Error::InvalidValue));
}

#[test]
fn pageable_memory_can_be_used_again_at_once() {
    let setup = Setup::new();
    let stream = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let device = setup.context.allocate(1 << 20).unwrap();
    let hold = Arc::new(AtomicBool::new(true));
    let held = hold.clone();
    stream
        .host_function(move || {
            while held.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        })
        .unwrap();
    let mut buffer = vec![7_u8; 4096];
    stream.copy(Transfer::linear(Side::device(device), any(&mut buffer), 4096)).unwrap();
    buffer.fill(9);
    hold.store(false, Ordering::SeqCst);
    let mut back = vec![0_u8; 4096];
    stream.copy(Transfer::linear(any(&mut back), Side::device(device), 4096)).unwrap();
    assert_eq!(back, [7; 4096]);
    let mut large: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
    stream.copy(Transfer::linear(Side::device(device), any(&mut large), 1 << 20)).unwrap();
    let expected = large.clone();
    large.fill(0);
    stream.copy(Transfer::linear(any(&mut large), Side::device(device), 1 << 20)).unwrap();
    assert_eq!(large, expected);
}

#[test]
fn bad_host_memory_is_an_error_and_no_fault() {
    let setup = Setup::new();
    let stream = setup.context.legacy_stream();
    let device = setup.context.allocate(4096).unwrap();
    // SAFETY: nothing is there, which the copy must find out.
    let nowhere = unsafe { Side::any(0x10) };
    for len in [16, 4096] {
        let transfer = Transfer::linear(Side::device(device), nowhere, len);
        assert_eq!(stream.copy_and_wait(transfer), Err(Error::InvalidValue));
        assert_eq!(stream.copy(transfer), Err(Error::InvalidValue));
        let transfer = Transfer::linear(nowhere, Side::device(device), len);
        assert_eq!(stream.copy(transfer), Err(Error::InvalidValue));
    }
    assert_eq!(setup.context.synchronize(), Ok(()));
}

#[test]
fn planes_and_fills() {
    let setup = Setup::new();
    let stream = setup.context.legacy_stream();
    let (plane, pitch) = setup.context.allocate_pitched(100, 10, 4).unwrap();
    assert_eq!(pitch, 512);
    assert_eq!(setup.context.allocate_pitched(100, 10, 3).err(), Some(Error::InvalidValue));
    let fill = Fill { address: plane, pitch, value: 0x0403_0201, element: 4, width: 25, height: 10 };
    stream.fill(fill).unwrap();
    let mut host = vec![0_u8; 1000];
    let region = |start, pitch| Region { start, pitch, slice_pitch: 0 };
    let transfer = Transfer {
        to: region(any(&mut host), 100),
        from: region(Side::device(plane), pitch),
        extent: Extent { width: 100, height: 10, depth: 1 },
    };
    stream.copy_and_wait(transfer).unwrap();
    assert!(host.iter().enumerate().all(|(i, byte)| *byte as usize == i % 4 + 1));
    let too_high = Transfer { extent: Extent { height: 11, ..transfer.extent }, ..transfer };
    assert_eq!(stream.copy_and_wait(too_high), Err(Error::InvalidValue));
}

#[test]
fn stream_ordered_allocations() {
    let setup = Setup::new();
    let stream = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let kernel = setup.kernel("touch", |frame| {
        add(params(frame)[0], 1);
        Ok(())
    });
    for _ in 0..50 {
        let address = stream.allocate(4 << 20).unwrap();
        launch(&kernel, &stream, &blocks(4), &[address]).unwrap();
        stream.free(address).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(setup.platform.memory().info(0).unwrap().1, 256 << 20);
    assert_eq!(stream.free(0x1234), Err(Error::InvalidValue));
    let device = setup.platform.device(0).unwrap();
    let usage = device.default_pool().used();
    assert!(usage.current == 0 && usage.high >= 4 << 20, "{usage:?}");
    let pool = device.create_pool(PoolKind::Device, 0);
    let address = stream.allocate_from(&pool, 5000).unwrap();
    assert_eq!((pool.used().current, device.default_pool().used().current), (5000, 0));
    device.set_current_pool(pool.clone()).unwrap();
    let other = stream.allocate(1000).unwrap();
    assert_eq!(pool.used().current, 6000);
    setup.platform.free(address).unwrap();
    stream.free(other).unwrap();
    stream.synchronize().unwrap();
    assert_eq!((pool.used().current, pool.used().high), (0, 6000));
    pool.reset_most_used();
    assert_eq!(pool.used().high, 0);
}

#[test]
fn what_pools_keep_is_there_for_others_in_need() {
    let setup = Setup::new();
    let stream = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let device = setup.platform.device(0).unwrap();
    let pool = device.create_pool(PoolKind::Device, 0);
    pool.set_threshold(u64::MAX);
    let address = stream.allocate_from(&pool, 200 << 20).unwrap();
    assert_eq!(setup.context.allocate(100 << 20), Err(Error::OutOfMemory));
    stream.free(address).unwrap();
    stream.synchronize().unwrap();
    assert_eq!((pool.used().current, pool.reserved().current), (0, 224 << 20));
    setup.context.allocate(100 << 20).unwrap();
    assert_eq!(pool.reserved().current, 0);
    // What is left is less than a pool takes at a time.
    let other = setup.context.allocate(150 << 20).unwrap();
    let address = stream.allocate_from(&pool, 5000).unwrap();
    assert_eq!(pool.reserved().current, 5120);
    setup.platform.free(other).unwrap();
    drop(pool);
    stream.free(address).unwrap();
    stream.synchronize().unwrap();
    setup.context.allocate(150 << 20).unwrap();
}

#[test]
fn values_of_memory_hold_streams_up() {
    let setup = Setup::with(|options| options.threads = 1);
    let words = setup.context.allocate(64).unwrap();
    setup.context.legacy_stream().fill(Fill::linear(words, 0, 1, 64)).unwrap();
    setup.context.synchronize().unwrap();
    let a = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    let b = setup.context.create_stream(StreamKind::NonBlocking, 0).unwrap();
    a.wait_value(words, Width::Bits32, 5, Condition::GreaterOrEqual).unwrap();
    a.write_value(words + 8, Width::Bits64, 1 << 40).unwrap();
    assert_eq!(a.query(), Err(Error::NotReady));
    b.write_value(words, Width::Bits32, 5).unwrap();
    a.synchronize().unwrap();
    assert_eq!(read(words + 8), 1 << 40);
    assert_eq!(a.wait_value(words + 2, Width::Bits32, 0, Condition::Equal), Err(Error::InvalidValue));
    assert_eq!(a.write_value(0x1000, Width::Bits32, 0), Err(Error::InvalidValue));
}

#[test]
fn launches_that_are_refused() {
    let setup = Setup::new();
    let kernel =
        setup.kernel_with("k", KernelInfo { shared_bytes: 32 << 10, ..KernelInfo::default() }, |_| Ok(()));
    let stream = setup.context.legacy_stream();
    let with = |grid, block, dynamic_shared| Launch {
        grid,
        block,
        dynamic_shared,
        cooperative: false,
        cluster: None,
    };
    let one = [1; 3];
    for bad in [
        with(one, [1025, 1, 1], 0),
        with(one, [32, 32, 2], 0),
        with(one, [1, 1, 65], 0),
        with([0, 1, 1], one, 0),
        with(one, [1, 0, 1], 0),
        with([1 << 31, 1, 1], one, 0),
        with([1, 65536, 1], one, 0),
        with([1, 1, 65536], one, 0),
        with(one, one, 17 << 10),
        with(one, one, 1 << 20),
        with(one, one, u32::MAX),
    ] {
        assert_eq!(launch(&kernel, stream, &bad, &[]), Err(Error::InvalidValue), "{bad:?}");
    }
    assert_eq!(launch(&kernel, stream, &blocks(1), &[0; 4]), Err(Error::LaunchOutOfResources));
    launch(&kernel, stream, &with(one, [1024, 1, 1], 16 << 10), &[0; 3]).unwrap();
    let other = setup.platform.device(0).unwrap().create_context(Default::default()).unwrap();
    assert_eq!(launch(&kernel, other.legacy_stream(), &blocks(1), &[]), Err(Error::InvalidHandle));
    assert_eq!(setup.context.synchronize(), Ok(()));
}

#[test]
fn shared_memory_of_a_block() {
    let setup = Setup::new();
    let info = KernelInfo { shared_bytes: 100, local_bytes: 40, state_bytes: 64, ..with_barriers() };
    let kernel = setup.kernel_with("k", info, |frame| {
        // SAFETY: the launch outlives its blocks; the windows are as large as it says.
        unsafe {
            let launch = &*frame.launch;
            let window = kernel_abi::RESERVED_SHARED + 112 + 1000;
            assert_eq!((launch.shared_bytes, launch.dynamic_shared_bytes), (window, 1000));
            assert_eq!((launch.local_bytes, launch.warps, launch.threads), (48, 2, 33));
            frame.shared.write_bytes(1, launch.shared_bytes as usize);
            frame.local.write_bytes(2, 48 * 33);
            frame.state.write_bytes(3, 64 * 2);
        }
        Ok(())
    });
    let shape = Launch {
        grid: [5, 1, 1],
        block: [33, 1, 1],
        dynamic_shared: 1000,
        cooperative: false,
        cluster: None,
    };
    launch(&kernel, setup.context.legacy_stream(), &shape, &[]).unwrap();
    assert_eq!(setup.context.synchronize(), Ok(()));
}

#[test]
fn limits_of_a_context() {
    let setup = Setup::new();
    setup.context.set_limit(Limit::MallocHeapSize, 16 << 20).unwrap();
    assert_eq!(setup.context.limit(Limit::MallocHeapSize), Ok(16 << 20));
    setup.context.set_limit(Limit::MallocHeapSize, 1 << 20).unwrap();
    assert_eq!(setup.context.limit(Limit::MallocHeapSize), Ok(4 << 20), "the least there is");
    assert_eq!(setup.context.limit(Limit::PrintfFifoSize), Ok(8_650_752));
    assert_eq!(setup.context.set_limit(Limit::StackSize, 1 << 40), Err(Error::InvalidValue));
    assert_eq!(setup.context.limit(Limit::DevRuntimeSyncDepth), Err(Error::UnsupportedLimit));
}

#[test]
fn devices_are_apart() {
    let setup = Setup::with(|options| {
        options.devices = 4;
        options.visible = Some(vec![2, 0]);
    });
    assert_eq!(setup.platform.devices().len(), 2);
    let uuids: Vec<_> = setup.platform.devices().iter().map(|device| device.attributes().uuid).collect();
    assert_ne!(uuids[0], uuids[1]);
    let second = setup.platform.device(1).unwrap().create_context(Default::default()).unwrap();
    let address = second.allocate(64).unwrap();
    assert_eq!(setup.platform.memory().find(address).unwrap().device, 1);
    assert!(setup.platform.device(2).is_err());
    let none = device::Options { visible: Some(vec![]), ..device::Options::default() };
    assert_eq!(Platform::new(none, setup.backend.clone()).err(), Some(Error::NoDevice));
}

#[test]
fn a_forked_child_is_told() {
    let _setup = Setup::new();
    // SAFETY: the child looks at one atomic and leaves.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let code = if Platform::check_process() == Err(Error::NotInitialized) { 17 } else { 1 };
            libc::_exit(code);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(libc::WEXITSTATUS(status), 17);
    }
    assert_eq!(Platform::check_process(), Ok(()));
}

#[test]
fn a_stream_of_before_a_reset_takes_no_work() {
    let setup = Setup::new();
    let primary = setup.platform.device(0).unwrap().primary();
    let old = primary.retain().unwrap().create_stream(StreamKind::NonBlocking, 0).unwrap();
    old.host_function_once(|| ()).unwrap();
    primary.reset().unwrap();
    let context = primary.retain().unwrap();
    assert_eq!(old.host_function_once(|| ()), Err(Error::ContextIsDestroyed));
    context.legacy_stream().host_function_once(|| ()).unwrap();
    context.synchronize().unwrap();
}
