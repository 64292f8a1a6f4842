//! A Rust library that has nothing to do with CUDA, linked into a program beside our static runtime: each has its own copy
//! of Rust's standard library, whose symbols must not meet.

use std::collections::HashMap;
use std::panic::catch_unwind;

/// The sum of the numbers from 1 to `number`, found with memory, threads, thread-local values and a panic that is caught.
#[unsafe(no_mangle)]
pub extern "C" fn rust_part(number: i32) -> i32 {
    thread_local!(static DROPPED: Box<i32> = Box::new(1));
    let numbers: HashMap<i32, String> = (1..=number).map(|n| (n, n.to_string())).collect();
    let sum = std::thread::spawn(move || {
        numbers.values().map(|text| text.parse::<i32>().expect("a number")).map(|n| n * DROPPED.with(|one| **one)).sum()
    });
    std::panic::set_hook(Box::new(|_| ()));
    let caught = catch_unwind(|| panic!("on purpose")).is_err();
    let _ = std::panic::take_hook();
    if caught { sum.join().expect("the thread ends") } else { -1 }
}
