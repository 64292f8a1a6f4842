//! Words of memory as signals between streams, kernels and the host.

use std::time::Duration;

use super::Stream;
use crate::graph::Operation;
use crate::memory::AddressSpace;
use crate::{Error, Result};

/// A comparison of a word of memory with a value, for [`Stream::wait_value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The word has reached the value, counting around.
    GreaterOrEqual,
    /// They are equal.
    Equal,
    /// They have a bit in common.
    And,
    /// Some bit is set in neither.
    Nor,
}

/// Width of a word for [`Stream::wait_value`] and [`Stream::write_value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 4 bytes.
    Bits32,
    /// 8 bytes.
    Bits64,
}

/// An operation on a word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOperation {
    /// What is queued later waits until the word satisfies the condition.
    Wait {
        /// Of the word.
        address: u64,
        /// Of the word.
        width: Width,
        /// What it is compared with.
        value: u64,
        /// How it is compared.
        condition: Condition,
    },
    /// Stores a word.
    Write {
        /// Of the word.
        address: u64,
        /// Of the word.
        width: Width,
        /// What is stored.
        value: u64,
    },
    /// What was stored before is seen by what comes later, on the device or everywhere; the order of a stream sees to that.
    Barrier {
        /// Everywhere.
        is_system_wide: bool,
    },
}

impl Stream {
    /// What is queued from now on waits until the word satisfies the condition.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for an address that is not aligned to the word or not known to the device.
    pub fn wait_value(&self, address: u64, width: Width, value: u64, condition: Condition) -> Result<()> {
        self.word_operations(&[WordOperation::Wait { address, width, value, condition }])
    }

    /// Queues the store of a word.
    ///
    /// # Errors
    /// As for [`wait_value`](Self::wait_value).
    pub fn write_value(&self, address: u64, width: Width, value: u64) -> Result<()> {
        self.word_operations(&[WordOperation::Write { address, width, value }])
    }

    /// Queues several operations in this order, or none.
    ///
    /// # Errors
    /// As for [`wait_value`](Self::wait_value).
    pub fn word_operations(&self, operations: &[WordOperation]) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        operations.iter().try_for_each(|operation| operation.check_in(context.memory()))?;
        if operations.is_empty() {
            return Ok(());
        }
        self.perform(Operation::Words(operations.into()))
    }
}

impl WordOperation {
    /// Whether a word can be at the address, whatever is there.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for an address that is not aligned to the word.
    pub fn check(&self) -> Result<()> {
        match self.word() {
            Some((address, width)) if !address.is_multiple_of(width.bytes()) => Err(Error::InvalidValue),
            _ => Ok(()),
        }
    }

    /// Whether the word is there, at an address that one can be at.
    pub(crate) fn check_in(&self, memory: &AddressSpace) -> Result<()> {
        self.check()?;
        match self.word() {
            Some((address, width)) if !is_known(memory, address, width) => Err(Error::InvalidValue),
            _ => Ok(()),
        }
    }

    /// Address and width of its word, if it has one.
    fn word(&self) -> Option<(u64, Width)> {
        match *self {
            WordOperation::Wait { address, width, .. } | WordOperation::Write { address, width, .. } => {
                Some((address, width))
            }
            WordOperation::Barrier { .. } => None,
        }
    }

    /// Whether both do the same with words of one width.
    pub(crate) fn is_like(&self, other: &WordOperation) -> bool {
        match (self, other) {
            (WordOperation::Wait { width, .. }, WordOperation::Wait { width: other, .. })
            | (WordOperation::Write { width, .. }, WordOperation::Write { width: other, .. }) => {
                width == other
            }
            (WordOperation::Barrier { .. }, barrier) => self == barrier,
            _ => false,
        }
    }

    /// What it does when its turn comes.
    pub(super) fn task(self) -> impl FnOnce() -> Result<()> + Send + 'static {
        move || match self {
            WordOperation::Wait { address, width, value, condition } => {
                wait(address, width, value, condition)
            }
            WordOperation::Write { address, width, value } => store(address, width, value),
            WordOperation::Barrier { .. } => Ok(()),
        }
    }
}

fn is_known(memory: &AddressSpace, address: u64, width: Width) -> bool {
    memory.find(address).is_some_and(|found| found.end() - address >= width.bytes())
}

fn wait(address: u64, width: Width, value: u64, condition: Condition) -> Result<()> {
    let mut tries = 0_u32;
    while !condition.holds(load(address, width)?, value, width) {
        tries = tries.saturating_add(1);
        match tries {
            0..100 => std::hint::spin_loop(),
            100..1000 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
    }
    Ok(())
}

impl Width {
    fn bytes(self) -> u64 {
        match self {
            Width::Bits32 => 4,
            Width::Bits64 => 8,
        }
    }
}

impl Condition {
    fn holds(self, word: u64, value: u64, width: Width) -> bool {
        let narrow = width == Width::Bits32;
        match self {
            Condition::GreaterOrEqual if narrow => (word as u32).wrapping_sub(value as u32) as i32 >= 0,
            Condition::GreaterOrEqual => word.wrapping_sub(value) as i64 >= 0,
            Condition::Equal if narrow => word as u32 == value as u32,
            Condition::Equal => word == value,
            Condition::And => word & value != 0,
            Condition::Nor if narrow => !(word | value) as u32 != 0,
            Condition::Nor => !(word | value) != 0,
        }
    }
}

fn load(address: u64, width: Width) -> Result<u64> {
    let _receptive = guard::receptive();
    // SAFETY: memory known to the device, which holds no host object; what is gone is a fault.
    unsafe {
        match width {
            Width::Bits32 => guard::load::<u32>(address).map(u64::from),
            Width::Bits64 => guard::load::<u64>(address),
        }
    }
    .map_err(|_| Error::InvalidValue)
}

fn store(address: u64, width: Width, value: u64) -> Result<()> {
    let _receptive = guard::receptive();
    // SAFETY: as for `load`.
    unsafe {
        match width {
            Width::Bits32 => guard::store(address, value as u32),
            Width::Bits64 => guard::store(address, value),
        }
    }
    .map_err(|_| Error::InvalidValue)
}
