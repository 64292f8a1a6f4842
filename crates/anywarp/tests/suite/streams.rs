//! Streams, events, callbacks, threads.

use super::{KERNELS, context, refused};
use anywarp::{ErrorKind, EventOptions, LaunchConfig, StreamOptions};
use std::sync::mpsc;

#[test]
fn streams_wait_for_events_and_call_the_host() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let scale = module.function("scale").unwrap();
    let (first, second) = (context.create_stream().unwrap(), context.create_stream().unwrap());
    let mut values = context.buffer_from(&[1.0_f32; 64]).unwrap();
    let (begin, end) = (context.create_event().unwrap(), context.create_event().unwrap());
    begin.record(&first).unwrap();
    for _ in 0..3 {
        // SAFETY: as many threads as elements.
        unsafe { scale.launch(&first, LaunchConfig::new(2, 32), (&mut values, 2.0_f32)).unwrap() };
    }
    end.record(&first).unwrap();
    second.wait_for(&end).unwrap();
    // SAFETY: as many threads as elements; the event keeps the launches apart.
    unsafe { scale.launch(&second, LaunchConfig::new(2, 32), (&mut values, 5.0_f32)).unwrap() };
    let (send, receive) = mpsc::channel();
    second.call(move || send.send(42).unwrap()).unwrap();
    second.synchronize().unwrap();
    assert_eq!(receive.try_recv(), Ok(42));
    assert!(second.is_done().unwrap() && end.is_done().unwrap());
    assert_eq!(values.to_vec().unwrap(), [40.0; 64]);
    end.elapsed_since(&begin).unwrap();
    assert!(begin.elapsed_since(&end).unwrap() <= end.elapsed_since(&begin).unwrap());
}

#[test]
fn work_is_asynchronous_and_in_order() {
    let context = context!();
    let stream = context.create_stream().unwrap();
    let event = context.create_event_with(EventOptions::default().with_blocking(true)).unwrap();
    let (open, gate) = mpsc::channel::<()>();
    stream.call(move || gate.recv().unwrap()).unwrap();
    let mut buffer = context.allocate::<u32>(4).unwrap();
    stream.fill(&mut buffer, 7).unwrap();
    stream.upload(buffer.slice_mut(1..2).unwrap(), vec![8]).unwrap();
    event.record(&stream).unwrap();
    assert!(!stream.is_done().unwrap() && !event.is_done().unwrap());
    open.send(()).unwrap();
    event.synchronize().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [7, 8, 7, 7]);
    assert!(stream.is_done().unwrap());
}

#[test]
fn events_without_time_or_record_tell_none() {
    let context = context!();
    let stream = context.create_stream().unwrap();
    let (recorded, unrecorded) = (context.create_event().unwrap(), context.create_event().unwrap());
    let silent = context.create_event_with(EventOptions::default().with_timing(false)).unwrap();
    recorded.record(&stream).unwrap();
    silent.record(&stream).unwrap();
    stream.synchronize().unwrap();
    for other in [&unrecorded, &silent] {
        let error = refused(recorded.elapsed_since(other));
        assert_eq!((error.kind(), error.code()), (ErrorKind::Arguments, 400));
    }
    unrecorded.synchronize().unwrap();
    assert!(unrecorded.is_done().unwrap());
}

#[test]
fn streams_have_priorities() {
    let context = context!();
    let (least, most) = context.stream_priorities().unwrap();
    assert!(most <= least);
    for wanted in [least, most] {
        let options = StreamOptions::default().with_priority(wanted).with_non_blocking(false);
        assert_eq!(context.create_stream_with(options).unwrap().priority().unwrap(), wanted);
    }
    let options = StreamOptions::default().with_priority(most - 100);
    assert_eq!(context.create_stream_with(options).unwrap().priority().unwrap(), most);
}

#[test]
fn objects_of_another_context_are_refused() {
    let (one, other) = (context!(), context!());
    let (stream, event) = (other.create_stream().unwrap(), one.create_event().unwrap());
    for outcome in [stream.wait_for(&event), event.record(&stream)] {
        assert_eq!(refused(outcome).kind(), ErrorKind::Arguments);
    }
    let mut buffer = one.zeroed::<u8>(4).unwrap();
    assert_eq!(refused(stream.fill(&mut buffer, 0)).message(), "the memory is of another context");
    assert!(stream.scope(|scope| scope.copy_from_host(&mut buffer, &[0; 4])).is_err());
    assert!(stream.upload(&mut buffer, vec![0; 4]).is_err());
}

#[test]
fn callbacks_may_not_use_cuda_and_may_panic() {
    let Some(context) = super::make_context() else { return };
    let context = context.leak();
    let stream = context.create_stream().unwrap();
    let buffer = context.buffer_from(&[1_u8; 16]).unwrap();
    let (send, receive) = mpsc::channel();
    stream
        .call(move || {
            let kinds = [
                context.synchronize().map_err(|error| error.kind()),
                context.zeroed::<u8>(1).map(drop).map_err(|error| error.kind()),
                buffer.to_vec().map(drop).map_err(|error| error.kind()),
            ];
            send.send(kinds).unwrap();
            drop(buffer); // does not wait for itself
        })
        .unwrap();
    stream.call(|| panic!("reported, and no more than that")).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(receive.recv().unwrap(), [Err(ErrorKind::NotPermitted); 3]);
    context.synchronize().unwrap();
}

#[test]
fn threads_share_a_context() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    std::thread::scope(|threads| {
        for number in 1..=4_u32 {
            let (context, module) = (&context, &module);
            threads.spawn(move || {
                let scale = module.function("scale").unwrap();
                let stream = context.create_stream().unwrap();
                for _ in 0..20 {
                    let mut values = context.buffer_from(&[1.0_f32; 256]).unwrap();
                    for _ in 0..3 {
                        let (config, factor) = (LaunchConfig::new(4, 64), number as f32);
                        // SAFETY: as many threads as elements.
                        unsafe { scale.launch(&stream, config, (&mut values, factor)).unwrap() };
                    }
                    assert_eq!(values.to_vec().unwrap(), [number.pow(3) as f32; 256]);
                }
            });
        }
    });
}

#[test]
fn what_is_dropped_in_any_order_is_gone() {
    let context = context!();
    for _ in 0..50 {
        let (stream, event) = (context.create_stream().unwrap(), context.create_event().unwrap());
        let mut buffer = context.zeroed::<u32>(64).unwrap();
        stream.fill(&mut buffer, 1).unwrap();
        event.record(&stream).unwrap();
        drop(stream);
        drop(buffer);
        drop(event);
    }
    let ended = context.create_stream().map(drop);
    ended.unwrap();
    context.destroy().unwrap();
}
