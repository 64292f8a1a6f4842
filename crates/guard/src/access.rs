//! Access to memory at addresses that nobody vouches for.
//!
//! Loads and stores of a naturally aligned [`Word`] are single-copy atomic, and on x86-64 every load acquires and every
//! store releases. [`compare_exchange`] is a full fence.

use crate::x86_64::{self, Accessed};
use crate::{Fault, FaultKind, install, receptive};

/// An unsigned integer that moves in one access.
pub trait Word: Copy + sealed::Sealed {}

mod sealed {
    use super::Accessed;

    pub trait Sealed: Sized {
        unsafe fn load(address: u64) -> Accessed;
        unsafe fn store(address: u64, value: Self) -> Accessed;
        unsafe fn compare_exchange(address: u64, expected: Self, new: Self) -> (Accessed, Self);
        fn from_value(value: u64) -> Self;
    }
}

macro_rules! word {
    ($($type:ty: $load:ident, $store:ident, $cas:ident;)*) => {$(
        impl sealed::Sealed for $type {
            unsafe fn load(address: u64) -> Accessed {
                // SAFETY: a faulting access is answered, not performed; what it may touch is the caller's contract.
                unsafe { x86_64::$load(address) }
            }
            unsafe fn store(address: u64, value: Self) -> Accessed {
                // SAFETY: as for `load`.
                unsafe { x86_64::$store(address, value.into()) }
            }
            unsafe fn compare_exchange(address: u64, expected: Self, new: Self) -> (Accessed, Self) {
                // SAFETY: as for `load`.
                let accessed = unsafe { x86_64::$cas(address, expected.into(), new.into()) };
                let old = accessed.value as $type;
                (accessed, old)
            }
            fn from_value(value: u64) -> Self {
                value as $type
            }
        }
        impl Word for $type {}
    )*};
}

word! {
    u8: anywarp_guard_load8, anywarp_guard_store8, anywarp_guard_cas8;
    u16: anywarp_guard_load16, anywarp_guard_store16, anywarp_guard_cas16;
    u32: anywarp_guard_load32, anywarp_guard_store32, anywarp_guard_cas32;
    u64: anywarp_guard_load64, anywarp_guard_store64, anywarp_guard_cas64;
}

/// Reads a word.
///
/// # Safety
/// If memory is readable at `address`, reading it must be sound: no host object is being written there.
#[inline]
pub unsafe fn load<T: Word>(address: u64) -> Result<T, Fault> {
    install();
    // SAFETY: the caller's contract.
    let accessed = unsafe { T::load(address) };
    checked(accessed).map(T::from_value)
}

/// Writes a word.
///
/// # Safety
/// If memory is writable at `address`, it must not belong to a host object.
pub unsafe fn store<T: Word>(address: u64, value: T) -> Result<(), Fault> {
    install();
    // SAFETY: the caller's contract.
    checked(unsafe { T::store(address, value) }).map(drop)
}

/// Replaces the word at `address` by `new` if it equals `expected`; returns what it was.
///
/// # Safety
/// As for [`store`].
pub unsafe fn compare_exchange<T: Word>(address: u64, expected: T, new: T) -> Result<T, Fault> {
    install();
    // SAFETY: the caller's contract.
    let (accessed, old) = unsafe { T::compare_exchange(address, expected, new) };
    checked(accessed).map(|_| old)
}

/// [`load`] of 16 bytes, single-copy atomic. An address that is not a multiple of 16 is a [`FaultKind::General`].
///
/// # Safety
/// As for [`load`].
pub unsafe fn load_u128(address: u64) -> Result<u128, Fault> {
    install();
    if !std::arch::is_x86_feature_detected!("avx") {
        // Whatever is there stays: what equals zero is replaced by zero.
        // SAFETY: the caller's contract; nothing changes.
        return unsafe { compare_exchange_u128(address, 0, 0) };
    }
    let mut read = [0_u64; 2];
    // SAFETY: `read` is ours; the rest is the caller's contract. Processors with AVX have an aligned load of 16 bytes be one.
    checked(unsafe { x86_64::anywarp_guard_load128(address, &raw mut read) })?;
    Ok(u128::from(read[1]) << 64 | u128::from(read[0]))
}

/// [`compare_exchange`] of 16 bytes. An address that is not a multiple of 16 is a [`FaultKind::General`].
///
/// # Safety
/// As for [`store`].
pub unsafe fn compare_exchange_u128(address: u64, expected: u128, new: u128) -> Result<u128, Fault> {
    install();
    if !std::arch::is_x86_feature_detected!("cmpxchg16b") {
        return Err(Fault { kind: FaultKind::IllegalInstruction, address, pc: 0 });
    }
    let mut old = [expected as u64, (expected >> 64) as u64];
    // SAFETY: `old` is ours; the rest is the caller's contract.
    checked(unsafe { x86_64::anywarp_guard_cas128(address, &raw mut old, new as u64, (new >> 64) as u64) })?;
    Ok(u128::from(old[1]) << 64 | u128::from(old[0]))
}

/// Copies `length` bytes upwards. After a fault, the bytes before the faulting one have been copied.
///
/// # Safety
/// What is readable from `source` must be sound to read, what is writable from `destination` must not belong to a host
/// object. Ranges that overlap need `destination <= source`.
pub unsafe fn copy(destination: u64, source: u64, length: u64) -> Result<(), Fault> {
    install();
    let _receptive = receptive();
    // SAFETY: the caller's contract.
    checked(unsafe { x86_64::anywarp_guard_copy(destination, source, length) }).map(drop)
}

/// Sets `length` bytes. After a fault, the bytes before the faulting one have been set.
///
/// # Safety
/// As for [`store`].
pub unsafe fn fill(destination: u64, byte: u8, length: u64) -> Result<(), Fault> {
    install();
    let _receptive = receptive();
    // SAFETY: the caller's contract.
    checked(unsafe { x86_64::anywarp_guard_fill(destination, byte.into(), length) }).map(drop)
}

#[inline]
fn checked(accessed: Accessed) -> Result<u64, Fault> {
    let Accessed { value, fault } = accessed;
    match FaultKind::from_code(fault) {
        None => Ok(value),
        Some(kind) => Err(Fault { kind, address: value, pc: 0 }),
    }
}
