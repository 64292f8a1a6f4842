//! The functions themselves.

use driver as _;
use runtime as _;

include!(concat!(env!("OUT_DIR"), "/symbols.rs"));

/// The address of an exported function.
pub fn address(name: &str) -> Option<unsafe extern "C" fn()> {
    let place = SYMBOLS.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(SYMBOLS[place].1)
}
