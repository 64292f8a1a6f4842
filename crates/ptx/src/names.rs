//! Tables by name.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose keys are short texts, numbers or both.
pub(crate) type NameMap<K, V> = HashMap<K, V, BuildHasherDefault<NameHasher>>;

/// A set of such.
pub(crate) type NameSet<K> = HashSet<K, BuildHasherDefault<NameHasher>>;

/// Quick on the few letters that names have. Names can be made to collide; who writes such a text slows down its own load, and
/// could as well have written a kernel that never ends.
#[derive(Clone, Copy, Default)]
pub(crate) struct NameHasher(u64);

impl NameHasher {
    /// An odd number without pattern: bits of the square root of 2.
    const FACTOR: u64 = 0xb504_f333_f9de_6485;

    fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(Self::FACTOR);
        // Both halves, so that each bit of the word reaches the low and the high bits of the hash.
        self.0 = (product as u64) ^ ((product >> 64) as u64).rotate_left(29);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            // The length tells "a" from "a\0".
            self.add(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn names_of_compilers_spread_over_the_bits_that_tables_use() {
        let build = BuildHasherDefault::<NameHasher>::default();
        let names = ["%r", "%rd", "%f", "$L__BB0_", "_ZN7cutlass6KernelILi", "label_with_a_long_name_"]
            .iter()
            .flat_map(|stem| (0..4000).map(move |number| format!("{stem}{number}")));
        let hashes: Vec<u64> = names.map(|name| build.hash_one(name.as_str())).collect();
        // Balls in bins: about half of the values of as many bits as there are names are met, and so it is with good hashes.
        for shift in [0, 49] {
            let met: HashSet<u64> = hashes.iter().map(|hash| (hash >> shift) & 0x7fff).collect();
            assert!(met.len() > 16_000, "bits from {shift}: {} values of {}", met.len(), hashes.len());
        }
        let different: HashSet<&u64> = hashes.iter().collect();
        assert_eq!(different.len(), hashes.len());
    }

    #[test]
    fn lengths_count() {
        let build = BuildHasherDefault::<NameHasher>::default();
        assert_ne!(build.hash_one("a"), build.hash_one("a\0"));
        assert_ne!(build.hash_one(""), build.hash_one("\0\0"));
    }
}
