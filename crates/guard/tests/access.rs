//! The accesses at unchecked addresses: values, faults, and how far a broken copy came.

use guard::{FaultKind, compare_exchange, compare_exchange_u128, copy, fill, load, load_u128, store};
use std::ptr;

const PAGE: u64 = 4096;

/// Two pages of zeros followed by one without access.
fn two_pages_and_a_wall() -> u64 {
    // SAFETY: a fresh private mapping that is never unmapped.
    unsafe {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(ptr::null_mut(), 3 * PAGE as usize, rw, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(start.byte_add(2 * PAGE as usize), PAGE as usize, libc::PROT_NONE), 0);
        start as u64
    }
}

// SAFETY (all blocks of this file): the addresses are null, or in a mapping of the test's own.

#[test]
fn words_round_trip() {
    let at = two_pages_and_a_wall();
    // SAFETY: see above.
    unsafe {
        store(at, 0x1122_3344_5566_7788_u64).unwrap();
        assert_eq!(load::<u64>(at), Ok(0x1122_3344_5566_7788));
        assert_eq!(load::<u32>(at + 4), Ok(0x1122_3344));
        assert_eq!(load::<u16>(at + 1), Ok(0x6677));
        assert_eq!(load::<u8>(at + 7), Ok(0x11));
        store(at + 2, 0xaa_u8).unwrap();
        store(at + 3, 0xbbcc_u16).unwrap();
        store(at + 8, 0xdead_beef_u32).unwrap();
        assert_eq!(load::<u64>(at), Ok(0x1122_33bb_ccaa_7788));
        assert_eq!(load::<u64>(at + 8), Ok(0xdead_beef));
    }
}

#[test]
fn exchanges_compare_first() {
    let at = two_pages_and_a_wall();
    // SAFETY: see above.
    unsafe {
        assert_eq!(compare_exchange(at, 0_u32, 5), Ok(0));
        assert_eq!(compare_exchange(at, 0_u32, 6), Ok(5));
        assert_eq!(load::<u32>(at), Ok(5));
        assert_eq!(compare_exchange(at + 8, 0_u8, 0xff), Ok(0));
        assert_eq!(compare_exchange(at + 8, 0x00ff_u16, 0x1234), Ok(0xff));
        assert_eq!(compare_exchange(at + 8, 0x1234_u64, u64::MAX), Ok(0x1234));
        let wide = u128::MAX / 3;
        assert_eq!(compare_exchange_u128(at + 16, 0, wide), Ok(0));
        assert_eq!(compare_exchange_u128(at + 16, 1, 2), Ok(wide));
        assert_eq!(compare_exchange_u128(at + 16, wide, 2), Ok(wide));
        assert_eq!(compare_exchange_u128(at + 16, 2, 3), Ok(2));
        store(at + 24, 7_u64).unwrap();
        assert_eq!(load_u128(at + 16), Ok(7 << 64 | 3));
        assert_eq!(load_u128(at + 8).unwrap_err().kind, FaultKind::General);
        assert_eq!(load_u128(at + 2 * PAGE).unwrap_err().address, at + 2 * PAGE);
    }
}

#[test]
fn faults_tell_the_address() {
    let wall = two_pages_and_a_wall() + 2 * PAGE;
    // SAFETY: see above.
    unsafe {
        let at_null = load::<u32>(0).unwrap_err();
        assert_eq!((at_null.kind, at_null.address), (FaultKind::Unmapped, 0));
        let split = load::<u64>(wall - 3).unwrap_err();
        assert_eq!((split.kind, split.address), (FaultKind::Protected, wall));
        assert_eq!(store(wall, 1_u8).unwrap_err().address, wall);
        assert_eq!(compare_exchange(wall + 4, 0_u32, 1).unwrap_err().address, wall + 4);
        assert_eq!(compare_exchange_u128(wall + 16, 0, 1).unwrap_err().address, wall + 16);
        assert_eq!(load::<u8>(1 << 60).unwrap_err().kind, FaultKind::General);
    }
}

#[test]
fn copies_stop_at_the_wall() {
    let (from, to) = (two_pages_and_a_wall(), two_pages_and_a_wall());
    // SAFETY: see above.
    unsafe {
        fill(from, 0x5a, 2 * PAGE).unwrap();
        copy(to + 1, from, PAGE).unwrap();
        assert_eq!(
            (load::<u8>(to), load::<u8>(to + PAGE), load::<u8>(to + PAGE + 1)),
            (Ok(0), Ok(0x5a), Ok(0))
        );
        let fault = copy(to, from + PAGE, PAGE + 10).unwrap_err();
        assert_eq!((fault.kind, fault.address), (FaultKind::Protected, from + 2 * PAGE));
        assert_eq!(load::<u8>(to), Ok(0x5a));
        assert_eq!(copy(to + 2 * PAGE - 4, from, 8).unwrap_err().address, to + 2 * PAGE);
        assert_eq!(load::<u32>(to + 2 * PAGE - 4), Ok(0x5a5a_5a5a));
        assert_eq!(fill(to + PAGE, 0, 2 * PAGE).unwrap_err().address, to + 2 * PAGE);
        assert_eq!(copy(0, from, 0), Ok(()));
    }
}

#[test]
fn copies_come_as_far_wherever_both_ends_lie_in_their_pages() {
    let (from, to) = (two_pages_and_a_wall(), two_pages_and_a_wall());
    // SAFETY: see above.
    unsafe {
        for at in (0..2 * PAGE).step_by(2) {
            store(from + at, (at as u16).wrapping_mul(40503)).unwrap();
        }
        for distance in [0, 16, 48, 500, 512, 4080] {
            for (start, wanted) in [(0, 1000), (16, 4000), (8, 3000), (PAGE + 32, 2 * PAGE)] {
                fill(to, 0, 2 * PAGE).unwrap();
                let (source, destination) = (from + start, to + (start + distance) % PAGE);
                let result = copy(destination, source, wanted);
                let room = (from + 2 * PAGE - source).min(to + 2 * PAGE - destination);
                let copied = wanted.min(room);
                assert_eq!(result.is_ok(), copied == wanted, "{distance}, {start}");
                for at in 0..copied {
                    assert_eq!(
                        load::<u8>(destination + at),
                        load::<u8>(source + at),
                        "{distance}, {start}: {at}"
                    );
                }
                let after = destination + copied;
                assert!(
                    after == to + 2 * PAGE || load::<u8>(after) == Ok(0),
                    "{distance}, {start}: nothing more"
                );
            }
        }
    }
}

#[test]
fn a_failed_access_keeps_the_callers_registers() {
    let wall = two_pages_and_a_wall() + 2 * PAGE;
    let numbers: Vec<u64> = (0..64).map(std::hint::black_box).collect();
    let mut sum = 0;
    for number in &numbers {
        // SAFETY: see above.
        unsafe {
            assert!(load::<u32>(wall + number).is_err());
            assert!(compare_exchange_u128(wall, 0, 1).is_err());
        }
        sum += number;
    }
    assert_eq!(sum, 2016);
}
