//! What of a grid nobody has taken yet.
//!
//! Threads take chunks of consecutive blocks. Where blocks may wait for each other they are handed out in order, so that one waits only for
//! those that have begun. Otherwise every processor has a section of its own, the same one in each grid of as many blocks: what
//! one kernel leaves in the processor's caches, the next kernel finds there. Once its section is used up, it takes from the ends of the others'.

use std::sync::atomic::{AtomicU64, Ordering};

use super::seats::Processor;

/// Most sections of a grid. With more processors several share one.
const MOST: usize = 64;
/// Chunks that one thread, which has the grid to itself, takes it in: it stops now and then, to see whether it should.
const PIECES_ALONE: u64 = 4;

/// The part of what is left of a section that a thread takes at a time: a few chunks at first, one by one in the end, so that all threads
/// end at about the same time. With larger parts, those on a slower processor, or in a section whose blocks take longer, are still at what they took when
/// all the rest is done: with a fourth at a time, counting says, a tenth of the time is lost where one of 16 processors is half as fast.
const PART: u32 = 16;

/// The blocks of a grid, or its clusters, that are still to be taken.
pub(super) struct Supply {
    total: u64,
    chunk: u64,
    portion: Portion,
    left: Left,
}

/// How much one of several threads takes at a time.
#[derive(Clone, Copy)]
enum Portion {
    OneChunk,
    /// Of what is left of a section.
    Part(u32),
}

enum Left {
    /// From this one on.
    InOrder(AtomicU64),
    Sections(Box<[Section]>),
}

/// A section, as numbers of chunks: the first left in the lower half, the first behind those left in the upper. Processors write
/// theirs at the same time, so no two are in one cache line, nor in a pair that is fetched together.
#[repr(align(128))]
struct Section(AtomicU64);

/// Who takes blocks.
#[derive(Clone, Copy)]
pub(super) enum Taker {
    /// The only thread that may: in order.
    Alone,
    /// One of several, on this processor.
    On(Processor),
}

impl Supply {
    /// So many, which are handed out in order.
    pub(super) fn in_order(total: u64, chunk: u64) -> Supply {
        Supply { total, chunk, portion: Portion::OneChunk, left: Left::InOrder(AtomicU64::new(0)) }
    }

    /// The same, whose chunks are taken one by one.
    pub(super) fn one_by_one(self) -> Supply {
        Supply { portion: Portion::OneChunk, ..self }
    }

    /// The same, of whose sections threads take such a part at a time.
    pub(super) fn in_parts_of(self, part: u32) -> Supply {
        Supply { portion: Portion::Part(part), ..self }
    }

    /// So many, in sections for so many processors.
    pub(super) fn in_sections(total: u64, chunk: u64, processors: u32) -> Supply {
        let chunks = total.div_ceil(chunk);
        let count = (processors as usize).min(MOST);
        if chunks < count.max(2) as u64 || u32::try_from(chunks).is_err() {
            return Supply::in_order(total, chunk);
        }
        let bound = |at: usize| (chunks * at as u64 / count as u64) as u32;
        let section = |at: usize| Section(AtomicU64::new(packed(bound(at), bound(at + 1))));
        let left = Left::Sections((0..count).map(section).collect());
        Supply { total, chunk, portion: Portion::Part(PART), left }
    }

    /// How many chunks there were.
    pub(super) fn chunks(&self) -> u64 {
        self.total.div_ceil(self.chunk)
    }

    /// How many chunks are left.
    pub(super) fn chunks_left(&self) -> u64 {
        match &self.left {
            Left::InOrder(next) => {
                self.total.saturating_sub(next.load(Ordering::Relaxed)).div_ceil(self.chunk)
            }
            Left::Sections(sections) => sections
                .iter()
                .map(|section| {
                    let (front, back) = unpacked(section.0.load(Ordering::Relaxed));
                    u64::from(back - front)
                })
                .sum(),
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks_left() == 0
    }

    /// Takes some: the first, and how many.
    pub(super) fn take(&self, taker: Taker) -> Option<(u64, u64)> {
        match &self.left {
            Left::InOrder(next) => {
                let chunks = if let Taker::Alone = taker { self.pieces_alone() } else { 1 };
                let count = chunks * self.chunk;
                let first = next.fetch_add(count, Ordering::Relaxed);
                (first < self.total).then(|| (first, count.min(self.total - first)))
            }
            Left::Sections(sections) => {
                let count = sections.len();
                let (own, alone) = match taker {
                    Taker::Alone => (0, true),
                    Taker::On(processor) => (processor.of(count), false),
                };
                let of = |left: u32| match taker {
                    Taker::Alone => self.pieces_alone() as u32,
                    Taker::On(_) => match self.portion {
                        Portion::OneChunk => 1,
                        Portion::Part(part) => left / part,
                    },
                };
                (0..count).find_map(|step| {
                    let section = &sections[(own + step) % count].0;
                    let (first, chunks) = take_from(section, of, step == 0 || alone)?;
                    let first = u64::from(first) * self.chunk;
                    Some((first, (u64::from(chunks) * self.chunk).min(self.total - first)))
                })
            }
        }
    }

    fn pieces_alone(&self) -> u64 {
        self.chunks().div_ceil(PIECES_ALONE)
    }

    /// Takes all that is left; how many.
    pub(super) fn drain(&self) -> u64 {
        match &self.left {
            Left::InOrder(next) => self.total.saturating_sub(next.swap(self.total, Ordering::Relaxed)),
            Left::Sections(sections) => sections
                .iter()
                .map(|section| {
                    let (front, back) = unpacked(section.0.swap(0, Ordering::Relaxed));
                    let bound = |chunk: u32| (u64::from(chunk) * self.chunk).min(self.total);
                    bound(back) - bound(front)
                })
                .sum(),
        }
    }
}

/// Takes as many chunks of a section as `of` says of those that are left, but one at least.
fn take_from(section: &AtomicU64, of: impl Fn(u32) -> u32, from_front: bool) -> Option<(u32, u32)> {
    let mut now = section.load(Ordering::Relaxed);
    loop {
        let (front, back) = unpacked(now);
        if back == front {
            return None;
        }
        let count = of(back - front).clamp(1, back - front);
        let (first, rest) = match from_front {
            true => (front, packed(front + count, back)),
            false => (back - count, packed(front, back - count)),
        };
        match section.compare_exchange_weak(now, rest, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some((first, count)),
            Err(other) => now = other,
        }
    }
}

fn packed(front: u32, back: u32) -> u64 {
    u64::from(front) | u64::from(back) << 32
}

fn unpacked(section: u64) -> (u32, u32) {
    (section as u32, (section >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(processor: usize) -> Taker {
        Taker::On(Processor(processor))
    }

    fn taken(supply: &Supply, taker: Taker) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| supply.take(taker)).collect()
    }

    #[test]
    fn a_processor_takes_its_own_section_first_and_the_others_from_their_ends() {
        let supply = Supply::in_sections(70, 10, 2);
        assert_eq!((supply.chunks(), supply.chunks_left()), (7, 7));
        assert_eq!(supply.take(on(1)), Some((30, 10)));
        assert_eq!(supply.take(on(4)), Some((0, 10)), "as many processors as sections, or more");
        let rest = [(40, 10), (50, 10), (60, 10), (20, 10), (10, 10)];
        assert_eq!(taken(&supply, on(3)), rest);
        assert!(supply.is_empty());
    }

    #[test]
    fn less_and_less_is_taken_at_a_time() {
        let supply = Supply::in_sections(1600, 10, 2);
        assert_eq!(supply.take(on(0)), Some((0, 50)));
        assert_eq!(supply.take(on(0)), Some((50, 40)));
        assert_eq!(supply.take(on(1)), Some((800, 50)));
        let counts: Vec<u64> = taken(&supply, on(0)).iter().map(|(_, count)| *count).collect();
        assert_eq!(counts.iter().sum::<u64>(), 1600 - 140);
        assert_eq!(counts.last(), Some(&10), "one chunk in the end");
        let one_by_one = Supply::in_sections(1600, 10, 2).one_by_one();
        assert!(taken(&one_by_one, on(0)).iter().all(|(_, count)| *count == 10));
    }

    #[test]
    fn parts_may_be_large_and_a_whole() {
        let supply = Supply::in_sections(64, 1, 2).in_parts_of(2);
        assert_eq!(supply.take(on(0)), Some((0, 16)));
        assert_eq!(supply.take(on(1)), Some((32, 16)));
        assert_eq!(supply.take(on(0)), Some((16, 8)));
        let whole = Supply::in_sections(64, 1, 1).in_parts_of(1);
        assert_eq!(taken(&whole, on(3)), [(0, 64)]);
    }

    #[test]
    fn whatever_the_way_each_is_taken_once() {
        for (total, chunk, processors) in
            [(1, 1, 2), (7, 2, 2), (1000, 3, 16), (1000, 7, 40), (64, 64, 8), (50, 3, 1)]
        {
            for in_order in [false, true] {
                let supply = match in_order {
                    true => Supply::in_order(total, chunk),
                    false => Supply::in_sections(total, chunk, processors),
                };
                let mut seen = vec![0; total as usize];
                for taker in [5, 0, 3, 1].into_iter().cycle() {
                    let taker = if taker == 5 { Taker::Alone } else { on(taker) };
                    let Some((first, count)) = supply.take(taker) else { break };
                    seen[first as usize..(first + count) as usize].iter_mut().for_each(|times| *times += 1);
                }
                assert_eq!(seen, vec![1; total as usize], "{total} by {chunk}, in order: {in_order}");
            }
        }
    }

    #[test]
    fn one_thread_alone_takes_them_in_order() {
        let supply = Supply::in_sections(80, 1, 2);
        assert_eq!(taken(&supply, Taker::Alone), [(0, 20), (20, 20), (40, 20), (60, 20)]);
    }

    #[test]
    fn what_is_drained_is_not_taken() {
        for supply in [Supply::in_sections(65, 10, 2), Supply::in_order(65, 10)] {
            let (_, count) = supply.take(on(1)).unwrap();
            assert_eq!(supply.drain() + count, 65);
            assert_eq!(supply.take(on(1)), None);
            assert_eq!(supply.drain(), 0);
        }
    }
}
