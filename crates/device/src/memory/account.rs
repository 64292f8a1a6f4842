//! What pools hold of their devices' memory.
//!
//! A pool takes memory from its device in large pieces, and keeps what is freed: the next time somebody waits for the device, it
//! gives back what is more than its threshold (the manual's Stream Ordered Memory Allocator). Held memory is set aside by number;
//! where the bytes lie is the heap's affair, so that what one pool has freed never lies in the way of another.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::{AddressSpace, DeviceMemory, GRANULE, PoolId};
use crate::{Error, Result};

/// What a pool takes from its device at a time, as an H200's driver does.
const PIECE: u64 = 32 << 20;

/// Bytes, now and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolBytes {
    /// Now.
    pub current: u64,
    /// At most since the mark was last reset.
    pub high: u64,
}

impl PoolBytes {
    fn set(&mut self, bytes: u64) {
        self.current = bytes;
        self.high = self.high.max(bytes);
    }
}

/// The books of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    device: usize,
    /// What it holds is the host's, and no device's to run out of.
    is_host: bool,
    /// In allocations.
    used: PoolBytes,
    /// Taken from the device.
    reserved: PoolBytes,
    threshold: u64,
    /// The most that it may hold, if that is limited.
    most: Option<u64>,
    /// It ends with its last allocation.
    is_closed: bool,
}

/// The books of all pools.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    by_id: HashMap<PoolId, Account>,
}

impl Account {
    /// The least that it can hold.
    fn least(&self) -> u64 {
        self.used.current.next_multiple_of(PIECE).min(self.reserved.current)
    }

    /// Gives back all above so many bytes, in whole pieces, if it can.
    fn shrink(&mut self, memory: &DeviceMemory, keep: u64) {
        let keep = keep.checked_next_multiple_of(PIECE).unwrap_or(u64::MAX);
        let left = keep.min(self.reserved.current).max(self.least());
        if !self.is_host {
            memory.discharge(self.reserved.current - left);
        }
        self.reserved.current = left;
    }

    /// Takes so much more from the device, in large pieces where it has them.
    fn grow(&mut self, memory: &DeviceMemory, needed: u64) -> Result<()> {
        for unit in [PIECE, GRANULE] {
            let Some(wanted) = needed.checked_next_multiple_of(unit) else { continue };
            if self.is_host || memory.charge(wanted - self.reserved.current).is_ok() {
                self.reserved.set(wanted);
                return Ok(());
            }
        }
        Err(Error::OutOfMemory)
    }
}

impl AddressSpace {
    /// Opens a pool's books.
    pub(super) fn open_account(&self, pool: PoolId, device: usize, is_host: bool) {
        self.accounts.lock().by_id.insert(pool, Account { device, is_host, ..Account::default() });
    }

    /// The pool is gone: its books end with its last allocation.
    pub(super) fn close_account(&self, pool: PoolId) {
        let mut accounts = self.accounts.lock();
        if let Some(account) = accounts.by_id.get_mut(&pool) {
            account.is_closed = true;
            self.end_account_if_unused(&mut accounts, pool);
        }
    }

    /// Counts an allocation of a pool.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when its device has not as much left, or the pool must not hold as much.
    pub(super) fn take_from_account(&self, pool: PoolId, memory: &DeviceMemory, size: u64) -> Result<()> {
        self.take(pool, memory, size).or_else(|error| {
            if self.release_all_unused() { self.take(pool, memory, size) } else { Err(error) }
        })
    }

    fn take(&self, pool: PoolId, memory: &DeviceMemory, size: u64) -> Result<()> {
        let mut accounts = self.accounts.lock();
        let Some(account) = accounts.by_id.get_mut(&pool) else { return memory.charge(size) };
        let needed = account.used.current.checked_add(size).ok_or(Error::OutOfMemory)?;
        if account.most.is_some_and(|most| needed > most) {
            return Err(Error::OutOfMemory);
        }
        if needed > account.reserved.current {
            account.grow(memory, needed)?;
        }
        account.used.set(needed);
        Ok(())
    }

    /// Counts the end of an allocation of a pool.
    pub(super) fn give_to_account(&self, pool: PoolId, memory: &DeviceMemory, size: u64) {
        let mut accounts = self.accounts.lock();
        let Some(account) = accounts.by_id.get_mut(&pool) else { return memory.discharge(size) };
        account.used.current -= size;
        self.are_pools_full.store(true, Ordering::Relaxed);
        self.end_account_if_unused(&mut accounts, pool);
    }

    /// All pools give back what is above their thresholds: somebody has waited for a device.
    pub(crate) fn release_unused(&self) {
        if !self.are_pools_full.load(Ordering::Relaxed) || !self.are_pools_full.swap(false, Ordering::Relaxed)
        {
            return;
        }
        for account in self.accounts.lock().by_id.values_mut() {
            account.shrink(&self.devices[account.device], account.threshold - account.threshold % PIECE);
        }
    }

    /// All pools give back what they do not use: a device has run out of memory. Whether that was anything.
    pub(super) fn release_all_unused(&self) -> bool {
        let mut accounts = self.accounts.lock();
        let held = |accounts: &Accounts| {
            accounts.by_id.values().map(|account| account.reserved.current).sum::<u64>()
        };
        let before = held(&accounts);
        for account in accounts.by_id.values_mut() {
            account.shrink(&self.devices[account.device], 0);
        }
        held(&accounts) < before
    }

    /// A pool gives back all above so many bytes that it does not use.
    pub(super) fn trim(&self, pool: PoolId, keep: u64) {
        if let Some(account) = self.accounts.lock().by_id.get_mut(&pool) {
            account.shrink(&self.devices[account.device], keep);
        }
    }

    /// Bytes in use of a pool, and bytes that it holds.
    pub(super) fn pool_bytes(&self, pool: PoolId) -> [PoolBytes; 2] {
        self.accounts
            .lock()
            .by_id
            .get(&pool)
            .map_or_else(Default::default, |account| [account.used, account.reserved])
    }

    /// Makes marks those of now: that of use, or that of what is held.
    pub(super) fn reset_pool_high(&self, pool: PoolId, of_reserved: bool) {
        if let Some(account) = self.accounts.lock().by_id.get_mut(&pool) {
            let bytes = if of_reserved { &mut account.reserved } else { &mut account.used };
            bytes.high = bytes.current;
        }
    }

    pub(super) fn pool_threshold(&self, pool: PoolId) -> u64 {
        self.accounts.lock().by_id.get(&pool).map_or(0, |account| account.threshold)
    }

    pub(super) fn set_pool_threshold(&self, pool: PoolId, bytes: u64) {
        if let Some(account) = self.accounts.lock().by_id.get_mut(&pool) {
            account.threshold = bytes;
            self.are_pools_full.store(true, Ordering::Relaxed);
        }
    }

    /// From now on a pool holds no more than so many bytes, in whole pieces.
    pub(super) fn limit_pool(&self, pool: PoolId, most: u64) {
        if let Some(account) = self.accounts.lock().by_id.get_mut(&pool) {
            account.most = most.checked_next_multiple_of(PIECE);
        }
    }

    fn end_account_if_unused(&self, accounts: &mut Accounts, pool: PoolId) {
        let is_over = |account: &Account| account.is_closed && account.used.current == 0;
        if accounts.by_id.get(&pool).is_some_and(is_over)
            && let Some(account) = accounts.by_id.remove(&pool)
            && !account.is_host
        {
            self.devices[account.device].discharge(account.reserved.current);
        }
    }
}
