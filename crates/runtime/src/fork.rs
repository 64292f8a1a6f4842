//! Children of the process.
//!
//! A child has one thread, and the locks of this library as the parent's threads held them when it was made: nothing may be
//! locked there. All that needs the driver fails in it, as the driver itself does.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked from one that had initialised the driver.
pub fn is_child() -> bool {
    IN_CHILD.load(Ordering::Relaxed)
}

/// Has children that are made from now on know it.
pub fn watch() {
    static ONCE: Once = Once::new();
    extern "C" fn in_child() {
        IN_CHILD.store(true, Ordering::Relaxed);
    }
    ONCE.call_once(|| {
        // SAFETY: the handler stores to an atomic, which is allowed in a child of a process with threads. If it cannot be
        // registered, children go unnoticed.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
