//! Copies of whole blocks of memory by one thread: PTX `cp.async.bulk`, `cp.reduce.async.bulk`, with and without tensor maps.
//!
//! An asynchronous copy may be complete at any time before it is waited for. Here it is when it is issued: the bytes are
//! moved, and the barrier learns that they have come. What memory is, is the caller's ([`Memory`]).

mod layout;
mod map;
mod tensor;

use crate::{AtomicOp, Type, mbarrier};

pub use map::{Element, Field, Interleave, MapError, Mode, Swizzle, TensorMap};

/// Why a copy failed, and the address it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkFault {
    /// Memory that is not there.
    IllegalAddress(u64),
    /// An address that is not aligned as it must be.
    Misaligned(u64),
    /// A size, a map or a field that makes no sense.
    IllegalInstruction(u64),
}

/// Memory as a copy sees it: host addresses, any of which may be bad.
pub trait Memory {
    /// Copies bytes; the ranges do not overlap.
    fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), BulkFault>;
    /// Reads bytes.
    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), BulkFault>;
    /// Writes bytes.
    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), BulkFault>;
    /// Replaces a value by what `new` makes of it, with nobody in between.
    fn update(&mut self, at: u64, ty: Type, new: &dyn Fn(u64) -> u64) -> Result<(), BulkFault>;
    /// The address in the shared memory of the cluster's block of this rank that lies as `address` does in that of its own block.
    fn in_block(&mut self, address: u64, rank: u32) -> Result<u64, BulkFault>;
    /// What an address is to a copy, which looks only at a part of a shared one; others are what they are.
    fn in_cluster(&mut self, address: u64) -> Result<u64, BulkFault>;
}

/// What a copy does to its destination besides replacing it.
pub type Reduction = (AtomicOp, Type);

/// One instruction. Addresses are host addresses (`I64`), everything else is `I32` unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BulkOp {
    /// `(to, from, bytes, [barrier], [mask of blocks])`.
    Copy {
        /// The barrier that learns of it is an operand.
        barrier: bool,
        /// The copy goes to the blocks of a mask.
        multicast: bool,
        /// What becomes of what was there.
        reduce: Option<Reduction>,
    },
    /// `(to, map, barrier, coordinates, [offsets], [mask of blocks])`: a box of a tensor into shared memory.
    Load {
        /// Dimensions.
        rank: u8,
        /// By columns of pixels, with offsets for all but the first and last coordinate.
        im2col: bool,
        /// The copy goes to the blocks of a mask.
        multicast: bool,
    },
    /// `(from, map, coordinates)`: shared memory into a box of a tensor.
    Store {
        /// Dimensions.
        rank: u8,
        /// By columns of pixels.
        im2col: bool,
        /// What becomes of what was there: `Add`, the bitwise ones, `MinU`, `MaxU`, `Inc` and `Dec`, each as the tensor's elements need.
        reduce: Option<AtomicOp>,
    },
    /// `(map, value I64)`: changes a field of a tensor map.
    Replace(Field),
}

impl BulkOp {
    /// Types of the operands.
    pub fn operands(&self) -> Vec<Type> {
        let [address, word] = [Type::I64, Type::I32];
        match *self {
            BulkOp::Copy { barrier, multicast, .. } => {
                let mut types = vec![address, address, word];
                types.extend(barrier.then_some(address));
                types.extend(multicast.then_some(word));
                types
            }
            BulkOp::Load { rank, im2col, multicast } => {
                let words = usize::from(rank) + offsets(rank, im2col) + usize::from(multicast);
                let mut types = vec![address; 3];
                types.extend(std::iter::repeat_n(word, words));
                types
            }
            BulkOp::Store { rank, .. } => {
                let mut types = vec![address; 2];
                types.extend(std::iter::repeat_n(word, rank.into()));
                types
            }
            BulkOp::Replace(_) => vec![address; 2],
        }
    }

    /// Executes the instruction for one thread. `operands` are as [`BulkOp::operands`] says.
    pub fn run(&self, operands: &[u64], memory: &mut impl Memory) -> Result<(), BulkFault> {
        match *self {
            BulkOp::Copy { barrier, multicast, reduce } => {
                let barrier = barrier.then(|| operands[3]);
                let mask = multicast.then(|| operands[4] as u32);
                linear(operands[0], operands[1], operands[2] & 0xffff_ffff, barrier, mask, reduce, memory)
            }
            BulkOp::Load { rank, im2col, multicast } => {
                let (coordinates, rest) = operands[3..].split_at(rank.into());
                let (shifts, mask) = rest.split_at(offsets(rank, im2col));
                let map = map_at(operands[1], rank, im2col, memory)?;
                let targets = targets(operands[0], operands[2], multicast.then(|| mask[0] as u32), memory)?;
                tensor::load(&map, &signed(coordinates), shifts, &targets, memory)
            }
            BulkOp::Store { rank, im2col, reduce } => {
                let map = map_at(operands[1], rank, im2col, memory)?;
                let from = memory.in_cluster(operands[0])?;
                tensor::store(&map, &signed(&operands[2..]), from, reduce, memory)
            }
            BulkOp::Replace(field) => {
                let mut bytes = [0; TensorMap::BYTES];
                memory.read(operands[0], &mut bytes)?;
                field.replace(&mut bytes, operands[1]).ok_or(BulkFault::IllegalInstruction(operands[0]))?;
                memory.write(operands[0], &bytes)
            }
        }
    }
}

fn offsets(rank: u8, im2col: bool) -> usize {
    if im2col { usize::from(rank).saturating_sub(2) } else { 0 }
}

fn signed(coordinates: &[u64]) -> Vec<i64> {
    coordinates.iter().map(|at| i64::from(*at as i32)).collect()
}

fn map_at(address: u64, rank: u8, im2col: bool, memory: &mut impl Memory) -> Result<TensorMap, BulkFault> {
    aligned(address, 64)?;
    let mut bytes = [0; TensorMap::BYTES];
    memory.read(address, &mut bytes)?;
    TensorMap::from_bytes(&bytes)
        .filter(|map| map.rank() == usize::from(rank) && map.is_im2col() == im2col)
        .ok_or(BulkFault::IllegalInstruction(address))
}

fn aligned(address: u64, to: u64) -> Result<(), BulkFault> {
    if address.is_multiple_of(to) { Ok(()) } else { Err(BulkFault::Misaligned(address)) }
}

/// Where the bytes go, and the barrier that learns of them, in each block of a mask.
fn targets(
    to: u64,
    barrier: u64,
    mask: Option<u32>,
    memory: &mut impl Memory,
) -> Result<Vec<(u64, u64)>, BulkFault> {
    aligned(barrier, 8)?;
    let Some(mask) = mask else { return Ok(vec![(memory.in_cluster(to)?, memory.in_cluster(barrier)?)]) };
    let ranks = (0..u16::BITS).filter(|rank| mask >> rank & 1 != 0);
    ranks.map(|rank| Ok((memory.in_block(to, rank)?, memory.in_block(barrier, rank)?))).collect()
}

/// Bytes have come.
fn complete(barrier: u64, bytes: u64, memory: &mut impl Memory) -> Result<(), BulkFault> {
    let less = (bytes as u32).wrapping_neg();
    memory.update(barrier, Type::I64, &|old| mbarrier::arrive(old, 0, less, false))
}

/// A copy of consecutive bytes.
fn linear(
    to: u64,
    from: u64,
    bytes: u64,
    barrier: Option<u64>,
    mask: Option<u32>,
    reduce: Option<Reduction>,
    memory: &mut impl Memory,
) -> Result<(), BulkFault> {
    // What is no whole unit of 16 bytes stays behind, as on the hardware, and so do whole mebibytes.
    let bytes = bytes & 0xf_fff0;
    // Of no bytes, nobody asks where they are: programs copy none where too few are left for the addresses to be aligned.
    if bytes == 0 {
        return Ok(());
    }
    aligned(to, 16)?;
    aligned(from, 16)?;
    let from = memory.in_cluster(from)?;
    let targets = match barrier {
        Some(barrier) => targets(to, barrier, mask, memory)?,
        None => vec![(to, 0)],
    };
    for (to, signal) in targets {
        match reduce {
            None => memory.copy(to, from, bytes)?,
            Some(reduction) => reduce_bytes(to, from, bytes, reduction, memory)?,
        }
        if barrier.is_some() {
            complete(signal, bytes, memory)?;
        }
    }
    Ok(())
}

/// Combines consecutive elements with what is at their destination.
fn reduce_bytes(
    to: u64,
    from: u64,
    bytes: u64,
    reduction: Reduction,
    memory: &mut impl Memory,
) -> Result<(), BulkFault> {
    let mut buffer = [0; 256];
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(buffer.len() as u64);
        let buffer = &mut buffer[..part as usize];
        memory.read(from.wrapping_add(done), buffer)?;
        reduce_elements(to.wrapping_add(done), buffer, reduction, memory)?;
        done += part;
    }
    Ok(())
}

fn reduce_elements(
    to: u64,
    elements: &[u8],
    (op, ty): Reduction,
    memory: &mut impl Memory,
) -> Result<(), BulkFault> {
    let size = ty.bytes() as usize;
    for (at, element) in elements.chunks_exact(size).enumerate() {
        let mut bits = [0; 8];
        bits[..size].copy_from_slice(element);
        let operand = u64::from_le_bytes(bits);
        let place = to.wrapping_add((at * size) as u64);
        memory.update(place, ty, &|old| crate::eval::atomic(op, ty, old, operand))?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Memory of a test: addresses count from 0.
    pub struct Flat(pub Vec<u8>);

    impl Flat {
        fn range(&self, at: u64, bytes: u64) -> Result<std::ops::Range<usize>, BulkFault> {
            let end = at.checked_add(bytes).filter(|end| *end <= self.0.len() as u64);
            end.map(|end| at as usize..end as usize).ok_or(BulkFault::IllegalAddress(at))
        }
    }

    impl Memory for Flat {
        fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), BulkFault> {
            let (to, from) = (self.range(to, bytes)?, self.range(from, bytes)?);
            self.0.copy_within(from, to.start);
            Ok(())
        }

        fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), BulkFault> {
            let range = self.range(from, bytes.len() as u64)?;
            bytes.copy_from_slice(&self.0[range]);
            Ok(())
        }

        fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), BulkFault> {
            let range = self.range(to, bytes.len() as u64)?;
            self.0[range].copy_from_slice(bytes);
            Ok(())
        }

        fn update(&mut self, at: u64, ty: Type, new: &dyn Fn(u64) -> u64) -> Result<(), BulkFault> {
            let size = ty.bytes() as usize;
            let mut bits = [0; 8];
            self.read(at, &mut bits[..size])?;
            let new = new(u64::from_le_bytes(bits)).to_le_bytes();
            self.write(at, &new[..size])
        }

        fn in_cluster(&mut self, address: u64) -> Result<u64, BulkFault> {
            Ok(address)
        }

        fn in_block(&mut self, address: u64, rank: u32) -> Result<u64, BulkFault> {
            if rank < 4 {
                Ok(address + u64::from(rank) * 1024)
            } else {
                Err(BulkFault::IllegalAddress(address))
            }
        }
    }

    #[test]
    fn a_copy_goes_to_every_block_of_the_mask_and_says_so_there() {
        let mut memory = Flat(vec![0; 8192]);
        for (at, byte) in memory.0[4096..4160].iter_mut().enumerate() {
            *byte = at as u8 + 1;
        }
        for rank in 0..4 {
            memory
                .write(rank * 1024 + 8, &mbarrier::arrive(mbarrier::new(1), 1, 64, false).to_le_bytes())
                .unwrap();
        }
        let op = BulkOp::Copy { barrier: true, multicast: true, reduce: None };
        op.run(&[512, 4096, 64, 8, 0b1010], &mut memory).unwrap();
        for rank in 0..4usize {
            let reached = rank & 1 == 1;
            assert_eq!(memory.0[rank * 1024 + 512] == 1, reached);
            assert_eq!(memory.0[rank * 1024 + 575] == 64, reached);
            assert_eq!(memory.0[rank * 1024 + 15] >> 7 == 1, reached, "the phase of block {rank}");
        }
        let absent = op.run(&[512, 4096, 64, 8, 0b10000], &mut memory);
        assert_eq!(absent, Err(BulkFault::IllegalAddress(512)));
    }

    #[test]
    fn sums_are_of_elements() {
        let mut memory = Flat(vec![0xff; 64]);
        memory.0[32..].fill(1);
        let reduce = Some((AtomicOp::Add, Type::I32));
        let op = BulkOp::Copy { barrier: false, multicast: false, reduce };
        op.run(&[0, 32, 16], &mut memory).unwrap();
        assert_eq!(memory.0[..16], [0, 1, 1, 1].repeat(4));
        assert_eq!(memory.0[16..32], [0xff; 16]);
        assert_eq!(op.run(&[8, 32, 16], &mut memory), Err(BulkFault::Misaligned(8)));
        assert_eq!(op.run(&[8, 31, 0], &mut memory), Ok(()), "nothing is nowhere");
        assert_eq!(op.run(&[48, 32, 32], &mut memory), Err(BulkFault::IllegalAddress(64)));
    }
}
