//! Names for profilers: with `ANYWARP_PERF_MAP=1`, `/tmp/perf-PID.map` tells `perf` which kernel an address belongs to.

use crate::object::LoadedObject;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Adds the functions of a kernel to the map, if the user wants one.
pub fn announce(kernel: &str, object: &LoadedObject) {
    static WANTED: OnceLock<bool> = OnceLock::new();
    static FILE: Mutex<()> = Mutex::new(());
    if !*WANTED.get_or_init(|| std::env::var_os("ANYWARP_PERF_MAP").is_some_and(|value| value == "1")) {
        return;
    }
    let lines: String = object
        .symbols()
        .filter(|(_, symbol)| symbol.size > 0)
        .map(|(name, symbol)| format!("{:x} {:x} {kernel}:{name}\n", symbol.address, symbol.size))
        .collect();
    let _writing = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = format!("/tmp/perf-{}.map", std::process::id());
    // A profiler without names is no reason to fail.
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = file.write_all(lines.as_bytes());
    }
}
