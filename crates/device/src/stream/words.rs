//! Words of memory as signals between streams, kernels and the host.

use std::time::Duration;

use super::{Stream, Work};
use crate::graph::Operation;
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
        for operation in operations {
            let (WordOperation::Wait { address, width, .. } | WordOperation::Write { address, width, .. }) =
                *operation;
            let size = width.bytes();
            let known = context.memory().find(address).is_some_and(|found| found.end() - address >= size);
            if !known || !address.is_multiple_of(size) {
                return Err(Error::InvalidValue);
            }
        }
        for operation in operations {
            self.perform(match *operation {
                WordOperation::Wait { address, width, value, condition } => {
                    Operation::WaitValue { address, width, value, condition }
                }
                WordOperation::Write { address, width, value } => {
                    Operation::WriteValue { address, width, value }
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn run_wait_value(
        &self,
        address: u64,
        width: Width,
        value: u64,
        condition: Condition,
    ) -> Result<()> {
        let task = move || {
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
        };
        self.submit(Vec::new(), Work::Task(Box::new(task))).map(drop)
    }
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
    // SAFETY: memory known to the device, which holds no host object; what is gone is a fault.
    unsafe {
        match width {
            Width::Bits32 => guard::load::<u32>(address).map(u64::from),
            Width::Bits64 => guard::load::<u64>(address),
        }
    }
    .map_err(|_| Error::InvalidValue)
}

pub(super) fn store(address: u64, width: Width, value: u64) -> Result<()> {
    // SAFETY: as for `load`.
    unsafe {
        match width {
            Width::Bits32 => guard::store(address, value as u32),
            Width::Bits64 => guard::store(address, value),
        }
    }
    .map_err(|_| Error::InvalidValue)
}
