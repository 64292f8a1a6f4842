//! What kernels print, assert, allocate and how long they sleep, through the callbacks they are given.
#![cfg(not(miri))] // reserved address space

mod common;

use std::ffi::CStr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use common::*;
use kernel_abi::{BlockFrame, FaultKind};

/// Set in the process that this test starts of itself, to see its output.
const CHILD: &str = "DEVICE_TEST_OUTPUT";

/// Runs the test `name` of this file in a process of its own; answers its standard output and error.
fn output_of(name: &str) -> (String, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Calls `vprintf` for two lanes, whose arguments are a number each.
fn print(frame: &mut BlockFrame, format: &'static CStr, values: [u64; 2]) -> [i32; 2] {
    let formats = [format.as_ptr() as u64; 32];
    let mut arguments = [0; 32];
    arguments[4] = &raw const values[0] as u64;
    arguments[9] = &raw const values[1] as u64;
    let mut results = [0; 32];
    // SAFETY: the launch has callbacks; the arrays have 32 elements.
    unsafe {
        let callbacks = &*(*frame.launch).callbacks;
        let mask = 1 << 4 | 1 << 9;
        (callbacks.vprintf)(frame, mask, formats.as_ptr(), arguments.as_ptr(), results.as_mut_ptr());
    }
    [results[4], results[9]]
}

#[test]
fn printf_is_written_at_synchronisation() {
    if is_child() {
        let setup = Setup::new();
        let kernel = setup.kernel("prints", |frame| {
            let block = u64::from(frame.ctaid[0]);
            let results = print(frame, c"<block %d>\n", [block, block + 100]);
            assert_eq!(results, [1, 1]);
            Ok(())
        });
        launch(&kernel, setup.context.legacy_stream(), &blocks(3), &[]).unwrap();
        setup.context.synchronize().unwrap();
        return;
    }
    let (stdout, _) = output_of("printf_is_written_at_synchronisation");
    let mut lines: Vec<&str> = stdout.lines().filter(|line| line.starts_with("<block")).collect();
    lines.sort_unstable_by_key(|line| (line.len(), *line));
    assert_eq!(
        lines,
        ["<block 0>", "<block 1>", "<block 2>", "<block 100>", "<block 101>", "<block 102>"],
        "{stdout}"
    );
}

#[test]
fn a_failed_assertion_says_where() {
    if is_child() {
        let setup = Setup::with(|options| options.report_faults = true);
        let kernel = setup.kernel("asserts", |frame| {
            let text = |text: &'static CStr| [text.as_ptr() as u64; 32];
            let (messages, files, functions) = (text(c"x > 0"), text(c"k.cu"), text(c"void k(int)"));
            frame.warp = 1;
            // SAFETY: as in `print`.
            unsafe {
                let callbacks = &*(*frame.launch).callbacks;
                (callbacks.assert_fail)(
                    frame,
                    1 << 5,
                    messages.as_ptr(),
                    files.as_ptr(),
                    [42; 32].as_ptr(),
                    functions.as_ptr(),
                );
            }
            Err(fault(frame, FaultKind::Assert))
        });
        let shape = device::Launch { block: [16, 4, 1], ..blocks(1) };
        launch(&kernel, setup.context.legacy_stream(), &shape, &[]).unwrap();
        assert_eq!(setup.context.synchronize(), Err(device::Error::Fault(FaultKind::Assert)));
        return;
    }
    let (_, stderr) = output_of("a_failed_assertion_says_where");
    let expected = "k.cu:42: void k(int): block: [0,0,0], thread: [5,2,0] Assertion `x > 0` failed.";
    assert!(stderr.contains(expected), "{stderr}");
    assert!(stderr.contains("anywarp: assertion failed"), "{stderr}");
}

#[test]
fn the_heap_of_kernels() {
    let setup = Setup::new();
    setup.context.set_limit(device::Limit::MallocHeapSize, 4 << 20).unwrap();
    let found = Arc::new(Mutex::new(Vec::new()));
    let slot = found.clone();
    let kernel = setup.kernel("allocates", move |frame| {
        let mut results = [1; 32];
        // SAFETY: as in `print`.
        unsafe {
            let callbacks = &*(*frame.launch).callbacks;
            (callbacks.malloc)(frame, 0b111, [437_000; 32].as_ptr(), results.as_mut_ptr());
            (callbacks.free)(frame, 0b010, results.as_ptr());
            (callbacks.nanosleep)(100);
            assert!((callbacks.global_timer)() > 0);
        }
        slot.lock().unwrap().push(results);
        Ok(())
    });
    // Three blocks of 1,311,000 bytes, a third of them given back.
    launch(&kernel, setup.context.legacy_stream(), &blocks(3), &[]).unwrap();
    setup.context.synchronize().unwrap();
    for results in found.lock().unwrap().iter() {
        assert!(results[..3].iter().all(|address| *address != 0 && address % 16 == 0));
        assert!(results[3..].iter().all(|result| *result == 1), "lanes that did not ask get no answer");
        assert!(setup.platform.memory().is_device_address(results[0]));
        assert!(setup.platform.free(results[0]).is_err(), "the host does not free what kernels allocate");
    }
    // The heap is used up now but for one piece.
    launch(&kernel, setup.context.legacy_stream(), &blocks(2), &[]).unwrap();
    setup.context.synchronize().unwrap();
    assert!(found.lock().unwrap()[3..].iter().flat_map(|results| &results[..3]).any(|address| *address == 0));
    assert_eq!(
        setup.context.set_limit(device::Limit::MallocHeapSize, 8 << 20),
        Err(device::Error::InvalidValue),
        "in use"
    );
}
