//! Tests of the Driver API, the Runtime API and the management library, through their C interface alone.
//!
//! The libraries under test are opened at run time, so that one and the same test judges ours, which run without a GPU,
//! and NVIDIA's, where there is one:
//!
//! ```text
//! conformance --lib dist/lib            ours
//! conformance                           those that the loader finds
//! conformance --differences             where the two differ, and why
//! ```
//!
//! A test is a function `pub fn name()` in `src/driver/<heading>.rs`, `src/runtime/<heading>.rs` or `src/nvml/<heading>.rs`. It runs in a process of its
//! own: it may crash, hang, or leave a context that no call works in any more. `docs/how-to/test-an-api-function.md` shows
//! how to write one.

#[macro_use]
mod macros;
pub mod answers;
pub mod driver;
pub mod every_handle;
pub mod facts;
pub mod library;
pub mod nvml;
pub mod runner;
pub mod runtime;

/// A test: a function that panics where a library's answer is wrong.
#[derive(Clone, Copy)]
pub struct Test {
    /// The API, the file and the function, separated by `::`.
    pub name: &'static str,
    /// The test itself.
    pub body: fn(),
}

/// All tests, those of the Driver API first.
pub fn tests() -> impl Iterator<Item = Test> {
    driver::TESTS.iter().chain(runtime::TESTS).chain(nvml::TESTS).copied()
}
