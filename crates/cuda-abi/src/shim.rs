//! What the C side of an entry point does besides its work.
//!
//! `#[entry_point]` (crate `entry-macros`) expands to an `extern "C"` function that calls `crate::shim::call` of its own
//! crate with an [`Entry`], a writer of the arguments and the body; that function decides what must hold before the body
//! runs (initialisation in the driver, the last error in the runtime) and uses the helpers here.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// One exported function, as `#[entry_point]` describes it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The exported name.
    pub name: &'static str,
    /// Whether the function works before the API is initialised.
    pub before_init: bool,
    /// Whether the function works while the process is locked (driver only).
    pub while_locked: bool,
    /// Whether a failure becomes the calling thread's last error (runtime only).
    pub sets_last_error: bool,
}

/// The stream that handle 0 means, for the functions that exist in two variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultStream {
    /// The context's one stream, which waits for and is waited for by other blocking streams.
    Legacy,
    /// The calling thread's own (`_ptds` and `_ptsz` variants).
    PerThread,
}

/// Writes a call's arguments, as `name=value, …`.
pub type WriteArguments<'a> = &'a dyn Fn(&mut fmt::Formatter<'_>) -> fmt::Result;

/// Runs a body; a panic in it, which is always a bug of ours, is reported on standard error and becomes `on_panic`.
pub fn guarded<R>(entry: &Entry, on_panic: R, body: impl FnOnce() -> R) -> R {
    // What a panicking body leaves is behind locks: see `locked`.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        eprintln!("anywarp: internal error in {}", entry.name);
        on_panic
    })
}

/// Locks what entry points share, whether or not a body has panicked under the lock: each change there is complete before anything can panic,
/// so that one call's failure is not the end of all others.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints one call if `ANYWARP_TRACE` asks for it.
pub fn trace(entry: &Entry, arguments: WriteArguments<'_>, result: &dyn fmt::Debug) {
    if trace_enabled() {
        struct Arguments<'a>(WriteArguments<'a>);
        impl fmt::Display for Arguments<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (self.0)(f)
            }
        }
        eprintln!("anywarp: {}({}) = {result:?}", entry.name, Arguments(arguments));
    }
}

/// Whether `ANYWARP_TRACE` is set to anything but nothing or 0.
fn trace_enabled() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| {
        std::env::var_os("ANYWARP_TRACE").is_some_and(|value| !value.is_empty() && value != "0")
    })
}
