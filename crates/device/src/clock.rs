//! The clock of events and of `%globaltimer`.

use std::time::Duration;

/// Nanoseconds of the machine's monotonic clock.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours; the monotonic clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time since an earlier [`now`].
pub fn since(earlier: u64) -> Duration {
    Duration::from_nanos(now().saturating_sub(earlier))
}
