//! Tests of what a thread keeps.

use super::*;
use kernel_abi::late::encode;

/// Memory of two lines, aligned to one.
#[repr(align(64))]
struct Memory([u32; 32]);

fn address(memory: &mut Memory) -> u64 {
    memory.0.as_mut_ptr().expose_provenance() as u64
}

fn call(op: AtomicOp, ty: Type, places: Places, start: u64, lanes: u32, operands: &[u32]) -> u32 {
    assert!(operands.len() * 4 >= 32 * ty.bits() as usize / 8);
    // SAFETY: there are operands of all lanes.
    unsafe { late(encode(op, ty, places).unwrap(), start, lanes, operands.as_ptr().cast()) }
}

/// However long it takes, what is kept stays so.
fn take_your_time() {
    with_table(|table| *table = Some(Table { patience: u64::MAX, ..Table::new() }));
}

#[test]
fn what_is_kept_is_done_when_all_is_settled() {
    take_your_time();
    let mut memory = Memory([0; 32]);
    let start = address(&mut memory) + 8;
    let ones = [1; 32];
    let add = |lanes| call(AtomicOp::Add, Type::I32, Places::Adjacent, start, lanes, &ones);
    for _ in 0..100 {
        assert_eq!(add(0x0001_0003), 0);
    }
    assert_eq!(memory.0, [0; 32]);
    settle().unwrap();
    let mut wanted = [0; 32];
    (wanted[2], wanted[3], wanted[18]) = (100, 100, 100);
    assert_eq!(memory.0, wanted);
    settle().unwrap();
    assert_eq!(memory.0, wanted, "nothing is left");
}

#[test]
fn every_sum_is_rounded_as_if_it_were_done_by_itself() {
    take_your_time();
    let mut memory = Memory([0; 32]);
    let start = address(&mut memory);
    let mut wanted = [0f32; 2];
    for round in 0..100u32 {
        let operands: [u32; 32] =
            std::array::from_fn(|lane| (0.1f32 + (lane as u32 * round) as f32 * 1e3).to_bits());
        let left = call(AtomicOp::FAdd { ftz: true }, Type::F32, Places::Adjacent, start, 3, &operands);
        assert_eq!(left, 0);
        for (lane, sum) in wanted.iter_mut().enumerate() {
            *sum += f32::from_bits(operands[lane]);
        }
    }
    settle().unwrap();
    assert_eq!(memory.0[..2], wanted.map(f32::to_bits));
}

#[test]
fn another_operation_on_a_line_comes_after_those_before_it() {
    take_your_time();
    let mut memory = Memory([0; 32]);
    let start = address(&mut memory) + 64;
    let operations = [
        (AtomicOp::Add, 5),
        (AtomicOp::Add, 7),
        (AtomicOp::Add, 1),
        (AtomicOp::MinU, 9),
        (AtomicOp::MinU, 3),
        (AtomicOp::Or, 64),
        (AtomicOp::Or, 8),
        (AtomicOp::Add, 2),
    ];
    let mut wanted = 0;
    for (op, operand) in operations {
        wanted = combined(op, Type::I32, wanted, operand.into());
        assert_eq!(call(op, Type::I32, Places::One, start, 1, &[operand; 32]), 0);
    }
    settle().unwrap();
    assert_eq!(u64::from(memory.0[16]), wanted);
}

#[test]
fn words_of_64_bits_in_one_place_and_lines_that_share_a_seat() {
    take_your_time();
    let mut memory = vec![0u64; (LINES + 3) * 8];
    let first = (memory.as_mut_ptr().expose_provenance() as u64).next_multiple_of(LINE);
    let operands: [u32; 64] = std::array::from_fn(|at| if at % 2 == 0 { 1 } else { 2 });
    let add = |start| call(AtomicOp::Add, Type::I64, Places::One, start, u32::MAX, &operands);
    let other = first + LINES as u64 * LINE;
    assert_eq!(
        [add(first), add(other), add(first)],
        [0; 3],
        "what is kept for one is done for the other's sake"
    );
    forget();
    settle().unwrap();
    let at = |address: u64| (address - memory.as_ptr().expose_provenance() as u64) as usize / 8;
    assert_eq!([memory[at(first)], memory[at(other)]], [32 << 33 | 32; 2]);
}

#[test]
fn of_memory_that_is_not_there_nothing_is_kept() {
    // Nothing is mapped in the first page.
    assert_eq!(call(AtomicOp::And, Type::I32, Places::Adjacent, 64, 0b101, &[1; 32]), 0b101);
    assert_eq!(call(AtomicOp::And, Type::I32, Places::Adjacent, 64, 0b101, &[1; 32]), 0b101);
    settle().unwrap();
}

#[test]
fn lines_that_nobody_comes_back_to_are_not_noted_for_long() {
    take_your_time();
    let mut memory = vec![0u32; 4096 * 16 + 16];
    let first = (memory.as_mut_ptr().expose_provenance() as u64).next_multiple_of(LINE);
    let add = |line: u64| call(AtomicOp::Add, Type::I32, Places::Adjacent, first + line * LINE, 1, &[1; 32]);
    let kept = (0..4096).filter(|line| add(*line) == 0).count() as u32;
    let noted = DOUBT / NOTED;
    assert!((noted..noted + 4096 / TRIAL).contains(&kept), "{kept}");
    settle().unwrap();
    assert_eq!(memory.iter().sum::<u32>(), kept);
    for _ in 0..2 * DOUBT {
        add(0);
    }
    assert_eq!((add(0), add(1)), (0, 0), "come to again, they are");
    settle().unwrap();
}

#[test]
fn what_is_kept_is_done_when_its_time_is_over() {
    let mut memory = Memory([0; 32]);
    let start = address(&mut memory);
    let add = || call(AtomicOp::Add, Type::I32, Places::Adjacent, start, 1, &[1; 32]);
    let mut done_after = |patience| {
        with_table(|table| *table = Some(Table { patience, ..Table::new() }));
        assert_eq!([add(), add()], [0; 2]);
        let done = std::mem::take(&mut memory.0[0]);
        forget();
        done
    };
    assert_eq!([done_after(0), done_after(u64::MAX)], [2, 0]);
}

#[test]
fn memory_that_goes_is_told() {
    take_your_time();
    let page = 4096;
    // SAFETY: a new mapping, and then its end.
    let start = unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let mapped = libc::mmap(std::ptr::null_mut(), page, access, kind, -1, 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        assert_eq!(call(AtomicOp::Or, Type::I32, Places::Adjacent, mapped as u64, 1, &[1; 32]), 0);
        libc::munmap(mapped, page);
        mapped as u64
    };
    assert_eq!(settle().unwrap_err().address, start);
    settle().unwrap();
}

#[test]
fn threads_that_add_to_one_line_leave_nothing_out() {
    let mut memory = Memory([0; 32]);
    let start = address(&mut memory);
    let (threads, rounds) = (4, 2_000);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..rounds {
                    assert_eq!(
                        call(
                            AtomicOp::FAdd { ftz: true },
                            Type::F32,
                            Places::Adjacent,
                            start,
                            u32::MAX,
                            &[1f32.to_bits(); 32]
                        ),
                        0
                    );
                }
                settle().unwrap();
            });
        }
    });
    assert_eq!(memory.0, [((threads * rounds) as f32).to_bits(); 32]);
}

/// Calls for elements at these places.
fn scattered(op: AtomicOp, ty: Type, addresses: &[u64; 32], lanes: u32, operands: &[u32]) -> u32 {
    call(op, ty, Places::Scattered, addresses.as_ptr().expose_provenance() as u64, lanes, operands)
}

#[test]
fn scattered_elements_are_kept_each_in_its_order() {
    take_your_time();
    let mut memory = Memory([0; 32]);
    let start = address(&mut memory);
    // Some lanes meet in one place.
    let element = |lane: u32, round: u32| (lane * 7 + round * 3) % 11 + lane % 2 * 16;
    let sum = AtomicOp::FAdd { ftz: true };
    let mut wanted = [0u64; 32];
    for (op, ty) in [(AtomicOp::Add, Type::I32), (AtomicOp::MaxU, Type::I32), (sum, Type::F32)] {
        for round in 0..100 {
            let lanes = 0xffff_0fffu32.rotate_left(round);
            let addresses = std::array::from_fn(|lane| start + 4 * u64::from(element(lane as u32, round)));
            let operands: [u32; 32] = std::array::from_fn(|lane| {
                let number = lane as u32 * 1001 + round;
                if op == sum { (number as f32 * 1e-3).to_bits() } else { number }
            });
            // Threads of other tests may be there or not.
            let mut left = scattered(op, ty, &addresses, lanes, &operands);
            assert!(op == sum || left == 0);
            while left != 0 {
                let lane = left.trailing_zeros();
                let own = &mut memory.0[element(lane, round) as usize];
                *own = combined(op, ty, (*own).into(), operands[lane as usize].into()) as u32;
                left &= left - 1;
            }
            for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
                let own = &mut wanted[element(lane, round) as usize];
                *own = combined(op, ty, *own, operands[lane as usize].into());
            }
        }
    }
    settle().unwrap();
    assert_eq!(memory.0.map(u64::from), wanted);
}

#[test]
fn elements_in_too_many_lines_are_left_to_the_kernel() {
    take_your_time();
    let mut memory = vec![0u32; 4096 * 16 + 16];
    let first = (memory.as_mut_ptr().expose_provenance() as u64).next_multiple_of(LINE);
    let (mut kept, mut next) = (0, 0);
    let mut add = |count: u64| {
        for _ in 0..count {
            let line = |lane: usize| (next + lane as u64) * 37 % 4096;
            let addresses = std::array::from_fn(|lane| first + line(lane) * LINE);
            kept += 32 - scattered(AtomicOp::Add, Type::I32, &addresses, u32::MAX, &[1; 32]).count_ones();
            next += 32;
        }
        kept
    };
    let before = add(64);
    assert!(before < 1024, "{before}");
    assert_eq!(add(u64::from(REST) / 2), before, "it rests");
    settle().unwrap();
    assert_eq!(memory.iter().sum::<u32>(), kept);
}

#[test]
fn scattered_elements_of_memory_that_is_not_there_are_left_to_the_kernel() {
    take_your_time();
    let mut memory = Memory([0; 32]);
    let mut addresses = [address(&mut memory); 32];
    addresses[3] = 64;
    assert_eq!(scattered(AtomicOp::Xor, Type::I32, &addresses, 0b1011, &[1; 32]), 0b1000);
    settle().unwrap();
    assert_eq!(memory.0[0], 0, "twice the same");
}

#[test]
fn nothing_is_kept_of_the_first_line_of_all_where_no_memory_is() {
    take_your_time();
    let ones = [1; 32];
    for (places, start) in [(Places::One, 0), (Places::Adjacent, 16), (Places::One, 60)] {
        assert_eq!(call(AtomicOp::Add, Type::I32, places, start, 1, &ones), 1, "{start}");
    }
    let addresses = [8u64; 32];
    let start = addresses.as_ptr().expose_provenance() as u64;
    assert_eq!(call(AtomicOp::Add, Type::I32, Places::Scattered, start, 3, &ones), 3);
    settle().unwrap();
    forget();
    assert_eq!(call(AtomicOp::Add, Type::I32, Places::One, 0, 1, &ones), 1, "nor after something failed");
}
