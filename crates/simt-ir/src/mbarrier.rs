//! The 64 bits of a barrier in memory (PTX `mbarrier`), which programs may only hand on.
//!
//! From bit 0 upwards: the bytes still to come (22 bits, signed), the arrivals that every phase expects (20), those that this phase
//! still waits for (20), a zero, and the phase's parity.

/// Bits of the byte count.
pub const TX_BITS: u32 = 22;
/// Bits of each count of arrivals.
pub const COUNT_BITS: u32 = 20;
/// Where the expected arrivals are.
pub const EXPECTED_AT: u32 = TX_BITS;
/// Where the pending arrivals are.
pub const PENDING_AT: u32 = EXPECTED_AT + COUNT_BITS;
/// Where the parity of the phase is.
pub const PHASE_AT: u32 = 63;
/// A count of arrivals, at the bottom.
pub const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// The count of bytes.
pub const TX_MASK: u64 = (1 << TX_BITS) - 1;

/// A barrier that `count` arrivals complete.
pub const fn new(count: u64) -> u64 {
    let count = count & COUNT_MASK;
    count << EXPECTED_AT | count << PENDING_AT
}

/// The barrier after `count` arrivals, of threads that take part in no later phase if `drop`, and with `tx` more bytes to come
/// (fewer, if negative). The last of them completes the phase.
pub const fn arrive(barrier: u64, count: u32, tx: u32, drop: bool) -> u64 {
    let count = count as u64;
    let tx = barrier.wrapping_add(tx as u64) & TX_MASK;
    let leaving = if drop { count } else { 0 };
    let expected = (barrier >> EXPECTED_AT).wrapping_sub(leaving) & COUNT_MASK;
    let pending = (barrier >> PENDING_AT).wrapping_sub(count) & COUNT_MASK;
    let phase = barrier >> PHASE_AT << PHASE_AT;
    if pending == 0 && tx == 0 {
        return phase ^ 1 << PHASE_AT | new(expected);
    }
    phase | pending << PENDING_AT | expected << EXPECTED_AT | tx
}

/// Whether `count` arrivals are too many for a barrier that was `first` before all who arrive at once with them, which is what each of those
/// learns, and `now` before these: a phase waits for all of them together.
pub const fn is_too_many(first: u64, now: u64, count: u32) -> bool {
    let pending = now >> PENDING_AT & COUNT_MASK;
    count != 0 && (pending < count as u64 || (first ^ now) >> PHASE_AT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(barrier: u64) -> u64 {
        barrier >> PHASE_AT
    }

    #[test]
    fn a_phase_ends_when_all_have_arrived_and_all_bytes_have_come() {
        let mut barrier = new(2);
        barrier = arrive(barrier, 1, 512, false);
        barrier = arrive(barrier, 1, 0, false);
        assert_eq!(phase(barrier), 0, "bytes are missing");
        barrier = arrive(barrier, 0, 256u32.wrapping_neg(), false);
        assert_eq!(phase(barrier), 0, "half the bytes are missing");
        barrier = arrive(barrier, 0, 256u32.wrapping_neg(), false);
        assert_eq!(barrier, 1 << PHASE_AT | new(2));
    }

    #[test]
    fn bytes_may_come_before_they_are_expected() {
        let early = arrive(new(1), 0, 64u32.wrapping_neg(), false);
        assert_eq!(phase(early), 0);
        assert_eq!(phase(arrive(early, 1, 64, false)), 1);
    }

    #[test]
    fn who_arrives_at_once_arrives_in_one_phase() {
        let first = new(2);
        let second = arrive(first, 1, 0, false);
        let third = arrive(second, 1, 0, false);
        assert!(!is_too_many(first, first, 2) && is_too_many(first, first, 3));
        assert!(!is_too_many(first, second, 1) && is_too_many(first, second, 2));
        assert!(is_too_many(first, third, 1) && !is_too_many(first, third, 0));
        assert!(!is_too_many(third, third, 1), "one after another is no matter");
    }

    #[test]
    fn who_drops_is_expected_no_more() {
        let barrier = arrive(arrive(new(3), 1, 0, true), 2, 0, false);
        assert_eq!(barrier, 1 << PHASE_AT | new(2));
        assert_eq!(arrive(barrier, 2, 0, false), new(2));
    }
}
