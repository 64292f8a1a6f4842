//! Numbers that products are made of: the same wherever a product runs, and of several flavours.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use simt_ir::matrix::{Accumulator, Element};

use super::{accumulator_word, element_word};

/// Bytes of every pool.
pub const BYTES: usize = 64 << 10;

/// What numbers are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Of one magnitude or nearly so: every product counts.
    Near,
    /// Of all magnitudes, subnormal ones too: sums lose places, overflow and vanish.
    Wide,
    /// Zeros, infinities, NaNs and the largest numbers among the others.
    Odd,
}

impl Flavour {
    /// All of them.
    pub const ALL: [Flavour; 3] = [Flavour::Near, Flavour::Wide, Flavour::Odd];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Flavour::Near => "near",
            Flavour::Wide => "wide",
            Flavour::Odd => "odd",
        }
    }
}

/// Numbers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Elements of factors.
    Factor(Element, Flavour),
    /// Addends.
    Sum(Accumulator, Flavour),
    /// Which two of four elements are there.
    Pairs,
    /// Which of two elements is there.
    Halves,
}

impl Pool {
    /// A name that no other pool has.
    pub fn name(self) -> String {
        match self {
            Pool::Factor(element, flavour) => format!("{}-{}", element_word(element), flavour.word()),
            Pool::Sum(sum, flavour) => format!("sum-{}-{}", accumulator_word(sum), flavour.word()),
            Pool::Pairs => "pairs".into(),
            Pool::Halves => "halves".into(),
        }
    }

    /// The content.
    pub fn bytes(self) -> &'static [u8] {
        static MADE: Mutex<Option<HashMap<Pool, &'static [u8]>>> = Mutex::new(None);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        made.get_or_insert_default().entry(self).or_insert_with(|| Box::leak(self.draw().into_boxed_slice()))
    }

    fn draw(self) -> Vec<u8> {
        let mut random = Random::of(&self.name());
        let mut bytes = Vec::with_capacity(BYTES);
        while bytes.len() < BYTES {
            let (value, size) = match self {
                Pool::Factor(element, flavour) => factor(&mut random, element, flavour),
                Pool::Sum(sum, flavour) => addend(&mut random, sum, flavour),
                Pool::Pairs => (nibbles(&mut random, &[0x4, 0x8, 0x9, 0xc, 0xd, 0xe]), 4),
                Pool::Halves => (nibbles(&mut random, &[0x4, 0xe]), 4),
            };
            bytes.extend_from_slice(&value.to_le_bytes()[..size]);
        }
        bytes
    }
}

fn nibbles(random: &mut Random, of: &[u64]) -> u64 {
    (0..8).fold(0, |word, _| word << 4 | of[random.below(of.len() as u64) as usize])
}

/// Layout of a float: bits of the exponent and of the fraction, and how far below the middle exponents go on.
struct Layout {
    exponent: u32,
    fraction: u32,
    /// Zeros below the fraction.
    unused: u32,
    /// e4m3 has no infinities.
    finite: bool,
}

impl Layout {
    fn number(&self, random: &mut Random, flavour: Flavour, spread: i64) -> u64 {
        let top = (1i64 << self.exponent) - 1;
        let middle = top / 2;
        let largest = if self.finite { top } else { top - 1 };
        let near = |random: &mut Random, spread: i64| {
            (middle - spread + random.below(2 * spread as u64 + 1) as i64).clamp(0, largest)
        };
        let mut fraction = random.word() & ((1 << self.fraction) - 1);
        let kind = random.below(64);
        let exponent = match (flavour, kind) {
            (_, 0) => {
                fraction = 0;
                0
            }
            (Flavour::Odd, 1) => {
                fraction *= random.below(2);
                top
            }
            (Flavour::Odd, 2) => {
                fraction = u64::MAX >> (64 - self.fraction);
                largest
            }
            (Flavour::Odd, 3..6) => 0,
            (Flavour::Wide, _) => random.below(largest as u64 + 1) as i64,
            _ => near(random, spread),
        };
        // The largest magnitude of e4m3 is its only NaN.
        if self.finite && flavour != Flavour::Odd && exponent == top {
            fraction &= !1;
        }
        let sign = random.word() & 1;
        let bits = (sign << self.exponent | exponent as u64) << self.fraction | fraction;
        bits << self.unused
    }
}

fn factor(random: &mut Random, element: Element, flavour: Flavour) -> (u64, usize) {
    let layout = |exponent, fraction, unused, finite| Layout { exponent, fraction, unused, finite };
    let (layout, bytes) = match element {
        Element::F16 => (layout(5, 10, 0, false), 2),
        Element::BF16 => (layout(8, 7, 0, false), 2),
        Element::TF32 => (layout(8, 10, 13, false), 4),
        Element::E4M3 => (layout(4, 3, 0, true), 1),
        Element::E5M2 => (layout(5, 2, 0, false), 1),
        Element::F64 => (layout(11, 52, 0, false), 8),
        Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 => return (random.word(), 8),
    };
    // What lies below a tf32 is not looked at.
    let below = if element == Element::TF32 { random.word() & 0x1fff } else { 0 };
    (layout.number(random, flavour, 3) | below, bytes)
}

fn addend(random: &mut Random, sum: Accumulator, flavour: Flavour) -> (u64, usize) {
    let layout = |exponent, fraction| Layout { exponent, fraction, unused: 0, finite: false };
    match sum {
        Accumulator::F16 => (layout(5, 10).number(random, flavour, 5), 2),
        Accumulator::F32 => (layout(8, 23).number(random, flavour, 12), 4),
        Accumulator::F64 => (layout(11, 52).number(random, flavour, 6), 8),
        Accumulator::S32 => {
            let word = random.word() as u32;
            let value = match flavour {
                Flavour::Near => (word as i32) >> 12,
                Flavour::Wide => word as i32,
                // So near the limits that most sums pass them.
                Flavour::Odd => (word as i32 >> 31) ^ (i32::MAX - (word as i32 & 0xff)),
            };
            (u64::from(value as u32), 4)
        }
    }
}

/// Numbers that look random, the same for the same name.
pub struct Random(u64);

impl Random {
    /// Those that belong to a name.
    pub fn of(name: &str) -> Random {
        let mix = |state: u64, byte| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Random(name.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// One of the numbers below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    /// One way or the other.
    pub fn flip(&mut self) -> bool {
        self.word() >> 32 & 1 != 0
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
