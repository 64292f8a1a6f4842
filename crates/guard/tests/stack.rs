//! What is left of a thread's stack.

use guard::{has_stack, stack_left, want_stack};
use std::hint::black_box;

#[test]
fn a_thread_knows_how_much_it_has_left() {
    for size in [256 << 10, 4 << 20] {
        let left = std::thread::Builder::new().stack_size(size).spawn(stack_left).unwrap().join().unwrap();
        assert!((size / 2..=size).contains(&left), "{left} of {size}");
    }
}

#[test]
fn what_is_used_is_not_left() {
    #[inline(never)]
    fn deeper() -> usize {
        let used = black_box([1_u8; 100_000]);
        let left = stack_left();
        black_box(&used);
        left
    }
    let [before, below] = std::thread::spawn(|| [stack_left(), deeper()]).join().unwrap();
    assert!(before - below >= 100_000, "{before}, {below}");
}

#[test]
fn a_stack_must_do_for_all_code() {
    let has = |size: usize, bytes: usize| {
        std::thread::Builder::new().stack_size(size).spawn(move || has_stack(bytes)).unwrap().join().unwrap()
    };
    assert!(has(2 << 20, 1 << 20) && !has(2 << 20, 3 << 20));
    want_stack(3 << 20);
    want_stack(1 << 20);
    assert!(!has(2 << 20, 1 << 20), "some code wants more");
    assert!(has(8 << 20, 1 << 20));
}
