//! The runtime's way in Rust: the current device and its primary context are there without being named.

use anywarp::{Error, LaunchConfig, runtime};

const KERNELS: &str = include_str!("../kernels.ptx");

/// What each thread of the kernel does, on the host.
fn steps(mut number: u64) -> u32 {
    let mut steps = 0;
    while number > 1 {
        number = if number % 2 == 1 { 3 * number + 1 } else { number / 2 };
        steps += 1;
    }
    steps
}

fn main() -> Result<(), Error> {
    runtime::set_device(0)?;
    let numbers: Vec<u64> = (1..=20_000).collect();
    let n = numbers.len() as u32;

    let device_numbers = runtime::buffer_from(&numbers)?;
    let mut device_steps = runtime::zeroed::<u32>(numbers.len())?;
    let collatz = runtime::kernel(KERNELS, "collatz")?;
    // SAFETY: collatz reads n elements of the first buffer and writes n of the second; both have as many.
    unsafe { collatz.launch(LaunchConfig::for_threads(n, 128), (n, &device_numbers, &mut device_steps))? };

    let found = device_steps.to_vec()?; // waits for the kernel
    for (number, found) in numbers.iter().zip(&found) {
        assert_eq!(*found, steps(*number), "the steps from {number}");
    }
    let longest = (0..found.len()).max_by_key(|&i| found[i]).map_or(0, |i| numbers[i]);
    println!("ok: {n} sequences, the longest from {longest} with {} steps", steps(longest));
    Ok(())
}
