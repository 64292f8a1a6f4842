//! The entry points, one file per heading of the manual.

pub mod version;
