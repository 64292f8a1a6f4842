//! Any functions of the runtime and the driver in any order, with good and bad arguments: a code for each, no crash, no hang.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anywarp_fuzz::session::run(bytes, true));
