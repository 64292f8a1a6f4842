//! Buffers of all kinds, and copies.

use super::{KERNELS, context, refused};
use anywarp::{ErrorKind, LaunchConfig};

#[test]
fn buffers_check_lengths_and_may_be_empty() {
    let context = context!();
    let mut buffer = context.zeroed::<u16>(3).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 0, 0]);
    let error = refused(buffer.copy_from(&[1, 2]));
    assert_eq!(error.kind(), ErrorKind::Arguments);
    assert_eq!(error.message(), "the device's memory has 3 elements, the other side 2");
    assert_eq!(refused(buffer.copy_to(&mut [0; 4])).kind(), ErrorKind::Arguments);
    buffer.copy_from(&[1, 2, 3]).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3]);

    let mut empty = context.buffer_from::<f64>(&[]).unwrap();
    assert!(empty.is_empty() && empty.address() == 0 && empty.to_vec().unwrap().is_empty());
    empty.clear().unwrap();
    empty.fill(1.0).unwrap();
    context.default_stream().fill(&mut empty, 0.0).unwrap();
    context.default_stream().upload(&mut empty, Vec::new()).unwrap();
    context.default_stream().scope(|scope| scope.copy_to_host(&mut [], &empty)).unwrap();
    assert!(context.pinned::<u32>(0).unwrap().is_empty());
    assert!(context.managed::<u32>(0).unwrap().read().unwrap().is_empty());
    assert_eq!(context.zeroed::<()>(9).unwrap().to_vec().unwrap(), [(); 9]);
}

#[test]
fn more_memory_than_there_is_is_an_error() {
    let context = context!();
    for len in [usize::MAX, usize::MAX / 8, 1 << 50] {
        assert_eq!(refused(context.zeroed::<u64>(len)).kind(), ErrorKind::OutOfMemory, "{len}");
    }
    assert_eq!(refused(context.pinned::<u64>(usize::MAX / 8)).code(), 2);
    assert_eq!(refused(context.managed::<u64>(usize::MAX / 4)).code(), 2);
}

#[test]
fn memory_is_given_back() {
    let context = context!();
    let total = context.memory_info().unwrap().1;
    assert!(total > 0 && total == context.device().total_memory());
    // More in all than there is, unless each is freed.
    let each = (total / 4) as usize;
    for _ in 0..6 {
        context.allocate::<u8>(each).unwrap();
    }
}

#[test]
fn slices_and_fills_touch_their_elements_only() {
    let context = context!();
    let mut buffer = context.buffer_from(&(0..10_u32).collect::<Vec<_>>()).unwrap();
    buffer.slice_mut(2..=4).unwrap().fill(0x0102_0304).unwrap();
    buffer.slice_mut(8..).unwrap().clear().unwrap();
    let x = 0x0102_0304;
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, x, x, x, 5, 6, 7, 0, 0]);
    assert_eq!(buffer.slice(5..7).unwrap().slice(1..).unwrap().to_vec().unwrap(), [6]);
    for bad in [3..11, 11..11, std::ops::Range { start: 5, end: 4 }] {
        assert_eq!(refused(buffer.slice(bad.clone())).kind(), ErrorKind::Arguments, "{bad:?}");
        assert!(buffer.slice_mut(bad).is_err());
    }
    let (first, mut second) = buffer.view_mut().split_at_mut(9).unwrap();
    assert_eq!((first.len(), second.len()), (9, 1));
    second.copy_from(&[77]).unwrap();
    assert_eq!(second.as_view().to_vec().unwrap(), [77]);
    assert!(buffer.view_mut().split_at_mut(11).is_err());

    let mut wide = context.allocate::<[u16; 5]>(70_000).unwrap();
    wide.fill([1, 2, 3, 4, 5]).unwrap();
    assert!(wide.to_vec().unwrap().iter().all(|element| *element == [1, 2, 3, 4, 5]));
    let mut narrow = context.zeroed::<u16>(3).unwrap();
    narrow.slice_mut(1..2).unwrap().fill(0xabcd).unwrap();
    assert_eq!(narrow.to_vec().unwrap(), [0, 0xabcd, 0]);
}

#[test]
fn streams_copy_and_fill_in_order() {
    let context = context!();
    let stream = context.create_stream().unwrap();
    let mut one = context.zeroed::<u32>(1000).unwrap();
    let mut other = context.zeroed::<u32>(500).unwrap();
    stream.upload(&mut one, (0..1000).collect()).unwrap();
    stream.copy(&mut other, one.slice(250..750).unwrap()).unwrap();
    stream.fill(&mut one, 3).unwrap();
    stream.copy(one.slice_mut(..500).unwrap(), &other).unwrap();
    let expected: Vec<u32> = (250..750).chain(std::iter::repeat_n(3, 500)).collect();
    assert_eq!(one.to_vec().unwrap(), expected);

    assert_eq!(refused(stream.copy(&mut one, &other)).kind(), ErrorKind::Arguments);
    assert_eq!(refused(stream.upload(&mut one, vec![1])).kind(), ErrorKind::Arguments);
    let mut doubles = context.zeroed::<f64>(2).unwrap();
    assert_eq!(refused(stream.fill(&mut doubles, 1.5)).message(), "elements of 8 bytes cannot be filled");
    stream.fill(&mut doubles, f64::from_bits(0x0101_0101_0101_0101)).unwrap();
    assert_eq!(doubles.to_vec().unwrap()[1].to_bits(), 0x0101_0101_0101_0101);
}

#[test]
fn scopes_copy_borrowed_memory_and_wait() {
    let context = context!();
    let stream = context.create_stream().unwrap();
    let module = context.load_ptx(KERNELS).unwrap();
    let scale = module.function("scale").unwrap();
    const N: usize = 8_192;
    let mut staging = context.pinned::<f32>(N).unwrap();
    staging.iter_mut().enumerate().for_each(|(i, value)| *value = i as f32);
    let (mut output, mut buffer) = (vec![0.0_f32; N], context.zeroed::<f32>(N).unwrap());
    let answer = stream.scope(|scope| {
        scope.copy_from_host(&mut buffer, &staging)?;
        // SAFETY: the grid has as many threads as there are elements.
        unsafe {
            scale.launch(scope.stream(), LaunchConfig::new(N as u32 / 32, 32), (&mut buffer, 2.0_f32))?
        };
        scope.copy_to_host(&mut output, &buffer)?;
        Ok(5)
    });
    assert_eq!(answer, Ok(5));
    assert!(output.iter().enumerate().all(|(i, value)| *value == 2.0 * i as f32));

    let wrong = stream.scope(|scope| scope.copy_from_host(&mut buffer, &[1.0]));
    assert_eq!(refused(wrong).kind(), ErrorKind::Arguments);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.scope(|scope| -> anywarp::Result<()> {
            scope.copy_from_host(&mut buffer, &output)?;
            panic!("the scope waits all the same")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(buffer.to_vec().unwrap(), output);
}

#[test]
fn kernels_reach_pinned_and_managed_memory() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let scale = module.function("scale").unwrap();
    let stream = context.create_stream().unwrap();
    let mut pinned = context.pinned::<f32>(8).unwrap();
    let mut managed = context.managed::<f32>(8).unwrap();
    assert_eq!((&pinned[..], managed.read().unwrap()), (&[0.0; 8][..], &[0.0; 8][..]));
    pinned.fill(3.0);
    managed.write().unwrap().fill(4.0);
    // SAFETY: as many threads as elements, and the host looks only after it has waited.
    unsafe {
        scale.launch(&stream, LaunchConfig::new(1, 8), (&mut pinned, 2.0_f32)).unwrap();
        scale.launch(&stream, LaunchConfig::new(1, 8), (&mut managed, 2.0_f32)).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(pinned[..], [6.0; 8]);
    assert_eq!(managed.read().unwrap(), [8.0; 8]);
    assert_eq!((managed.len(), managed.is_empty()), (8, false));
}

/// More than any driver promises, so that a reference to it must not be made by chance.
#[derive(Clone, Copy)]
#[repr(C, align(16384))]
struct Page([u8; 16384]);

// SAFETY: bytes without padding, of which any make a page.
unsafe impl bytemuck::Zeroable for Page {}
// SAFETY: as above.
unsafe impl anywarp::Pod for Page {}

#[test]
fn memory_that_the_host_refers_to_is_aligned_or_refused() {
    let context = context!();
    for _ in 0..8 {
        // Something small before each, so that not every allocation happens to lie well.
        let _small = (context.pinned::<u8>(1).unwrap(), context.managed::<u8>(1).unwrap());
        if let Ok(pages) = context.pinned::<Page>(2) {
            assert!(pages.address().is_multiple_of(16384) && pages[1].0 == [0; 16384]);
        }
        if let Ok(pages) = context.managed::<Page>(2) {
            assert!(pages.address().is_multiple_of(16384) && pages.read().unwrap()[1].0 == [0; 16384]);
        }
    }
}

#[test]
fn a_buffer_that_is_dropped_waits_for_its_kernel() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let scale = module.function("scale").unwrap();
    let stream = context.create_stream().unwrap();
    for _ in 0..20 {
        let mut buffer = context.buffer_from(&vec![1.0_f32; 1 << 12]).unwrap();
        // SAFETY: as many threads as elements.
        unsafe { scale.launch(&stream, LaunchConfig::new(1 << 5, 1 << 7), (&mut buffer, 2.0_f32)).unwrap() };
    }
    stream.synchronize().unwrap();
}
