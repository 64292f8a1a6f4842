//! The clock of events and of `%globaltimer`.

use std::sync::OnceLock;
use std::time::Duration;

/// Nanoseconds of the machine's monotonic clock.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970, what `%globaltimer` says on a GPU. As even as [`now`]: setting the machine's clock moves it in the next
/// process only.
pub fn since_1970() -> u64 {
    static OFFSET: OnceLock<u64> = OnceLock::new();
    let offset = *OFFSET.get_or_init(|| read(libc::CLOCK_REALTIME).wrapping_sub(now()));
    now().wrapping_add(offset)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours; both clocks that are asked for always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time since an earlier [`now`].
pub fn since(earlier: u64) -> Duration {
    Duration::from_nanos(now().saturating_sub(earlier))
}
