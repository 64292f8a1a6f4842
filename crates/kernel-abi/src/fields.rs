//! Descriptions of operations as numbers.

/// Writes or reads fields of a number, from bit 0 upwards.
pub struct Fields {
    /// The number.
    pub bits: u64,
    at: u32,
}

impl Fields {
    /// At the beginning of a number.
    pub fn new(bits: u64) -> Fields {
        Fields { bits, at: 0 }
    }

    /// Writes the next field.
    pub fn put(&mut self, width: u32, value: u64) {
        self.bits |= value << self.at;
        self.at += width;
    }

    /// Reads the next field.
    pub fn take(&mut self, width: u32) -> u64 {
        let value = self.bits >> self.at & ((1 << width) - 1);
        self.at += width;
        value
    }
}

/// Where a value stands in a list of all of them.
pub fn position<T: PartialEq>(all: &[T], value: T) -> u64 {
    all.iter().position(|known| *known == value).map_or(0, |at| at as u64)
}
