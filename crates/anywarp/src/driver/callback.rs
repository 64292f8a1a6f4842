//! Functions of the program that a stream calls.

use crate::{Error, Result};
use cuda_abi::driver::CUDA_ERROR_NOT_PERMITTED;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A function that is told whether the work before it has succeeded.
pub type Callback = Box<dyn FnOnce(Result<()>) + Send>;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// [`NotPermitted`](crate::ErrorKind::NotPermitted) inside a callback: waiting for the stream that waits for it would never
/// end.
pub fn check() -> Result<()> {
    match is_inside() {
        true => {
            Err(Error::new(CUDA_ERROR_NOT_PERMITTED, "CUDA cannot be used in a function that a stream calls"))
        }
        false => Ok(()),
    }
}

/// Whether a callback is running in this thread.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Calls back. A panic has been reported by its hook and ends here: nothing may unwind into a driver.
pub fn run(callback: Callback, status: Result<()>) {
    let outside = INSIDE.replace(true);
    let _ = catch_unwind(AssertUnwindSafe(|| callback(status)));
    INSIDE.set(outside);
}
