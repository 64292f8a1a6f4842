//! What a test says beside passing and failing: where the libraries' answers differ, and what cannot be tested here.

use crate::library::{self, Maker};

/// How a test's process marks the lines that the runner reads from its output.
pub(crate) const DIFFERENCE: &str = "::difference:: ";
pub(crate) const SKIPPED: &str = "::skipped:: ";

/// The right answer of the driver under test, where ours has a reason to answer otherwise than NVIDIA's.
///
/// ```ignore
/// let code = differs("a fault ends its own context only", CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_ADDRESS);
/// fails!(code, cuCtxSynchronize());
/// ```
pub fn differs<T: std::fmt::Debug>(why: &str, ours: T, nvidias: T) -> T {
    eprintln!("{DIFFERENCE}ours {ours:?}, NVIDIA's {nvidias:?}: {why}");
    pick(library::driver().maker(), ours, nvidias)
}

/// Likewise where the difference is the runtime library's.
pub fn runtime_differs<T: std::fmt::Debug>(why: &str, ours: T, nvidias: T) -> T {
    eprintln!("{DIFFERENCE}ours {ours:?}, NVIDIA's {nvidias:?}: {why}");
    pick(library::runtime().maker(), ours, nvidias)
}

fn pick<T>(maker: Maker, ours: T, nvidias: T) -> T {
    match maker {
        Maker::Anywarp => ours,
        Maker::Nvidia => nvidias,
    }
}

/// Whether the driver under test is ours, for what NVIDIA's does not survive.
///
/// ```ignore
/// if ours_only("NVIDIA's driver crashes") {
///     fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(destroyed));
/// }
/// ```
pub fn ours_only(why: &str) -> bool {
    eprintln!("{DIFFERENCE}ours only: {why}");
    library::driver().maker() == Maker::Anywarp
}

/// Likewise by who made the runtime library.
pub fn our_runtime_only(why: &str) -> bool {
    eprintln!("{DIFFERENCE}ours only: {why}");
    library::runtime().maker() == Maker::Anywarp
}

/// Whether the driver under test is ours, without calling it a difference: names and sizes that every device has of its
/// own.
pub fn is_ours() -> bool {
    library::driver().maker() == Maker::Anywarp
}

/// Ends the test, which counts as neither passed nor failed: this machine lacks what it needs.
pub fn skip(why: &str) -> ! {
    eprintln!("{SKIPPED}{why}");
    std::process::exit(0)
}

/// Sets an environment variable that the libraries read. Call it first in a test, before any call of theirs.
pub fn set_env(name: &str, value: &str) {
    // SAFETY: a test runs in a process of its own, whose only thread is this one until a library starts more.
    unsafe { std::env::set_var(name, value) };
}
