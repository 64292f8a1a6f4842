//! How much is done for the speed of code.

/// A kernel's code is made at most twice: at once, and well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Soon: for a kernel's first launches. It computes the same, bit for bit.
    Quick,
    /// As fast as it gets.
    #[default]
    Full,
    /// Like [`Quick`](Tier::Quick), of kernels that take too long for it: for those that run until then as they can.
    Patient,
}

impl Tier {
    /// The tier with this number.
    pub fn from_number(number: u32) -> Option<Tier> {
        [Tier::Quick, Tier::Full, Tier::Patient].into_iter().find(|tier| *tier as u32 == number)
    }
}
