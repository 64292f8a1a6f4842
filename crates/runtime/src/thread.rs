//! What the runtime keeps for each thread.
//!
//! Exit handlers and other threads' destructors call into the runtime, so nothing here has a destructor: plain cells,
//! and boxes whose owner is a raw pointer.

use std::cell::Cell;
use std::ptr;

use cuda_abi::runtime::{cudaError_t, cudaStream_t, cudaSuccess, dim3};

/// A launch's shape between `<<<…>>>` and the kernel's stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallConfiguration {
    pub grid: dim3,
    pub block: dim3,
    pub shared_bytes: usize,
    pub stream: cudaStream_t,
}

struct PushedConfiguration {
    configuration: CallConfiguration,
    below: *mut PushedConfiguration,
}

struct Thread {
    last_error: Cell<cudaError_t>,
    device: Cell<Option<i32>>,
    /// The top of the stack of configurations. Each element is a leaked box that the stack owns.
    configurations: Cell<*mut PushedConfiguration>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            last_error: Cell::new(cudaSuccess),
            device: Cell::new(None),
            configurations: Cell::new(ptr::null_mut()),
        }
    };
}

/// The code of the last call of this thread that failed, until it is taken.
pub fn last_error() -> cudaError_t {
    THREAD.with(|thread| thread.last_error.get())
}

/// Makes `code` the thread's last error and gives the one before.
pub fn replace_last_error(code: cudaError_t) -> cudaError_t {
    THREAD.with(|thread| thread.last_error.replace(code))
}

/// The device that the thread chose with `cudaSetDevice`, if it did.
pub fn chosen_device() -> Option<i32> {
    THREAD.with(|thread| thread.device.get())
}

/// Remembers the thread's choice of a device.
pub fn choose_device(device: i32) {
    THREAD.with(|thread| thread.device.set(Some(device)));
}

/// Puts a configuration on the thread's stack. Launches nest: an argument of one may launch another.
pub fn push_configuration(configuration: CallConfiguration) {
    THREAD.with(|thread| {
        let below = thread.configurations.get();
        thread.configurations.set(Box::into_raw(Box::new(PushedConfiguration { configuration, below })));
    });
}

/// Takes the configuration that was pushed last.
pub fn pop_configuration() -> Option<CallConfiguration> {
    THREAD.with(|thread| {
        let top = thread.configurations.get();
        if top.is_null() {
            return None;
        }
        // SAFETY: every pointer in the stack came from `Box::into_raw` and leaves the stack here, once.
        let top = unsafe { Box::from_raw(top) };
        thread.configurations.set(top.below);
        Some(top.configuration)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_abi::runtime::cudaErrorInvalidValue;

    fn configuration(x: u32) -> CallConfiguration {
        let one = dim3 { x: 1, y: 1, z: 1 };
        CallConfiguration { grid: dim3 { x, ..one }, block: one, shared_bytes: 0, stream: cudaStream_t::NULL }
    }

    #[test]
    fn configurations_nest() {
        assert_eq!(pop_configuration(), None);
        push_configuration(configuration(1));
        push_configuration(configuration(2));
        assert_eq!(pop_configuration(), Some(configuration(2)));
        push_configuration(configuration(3));
        assert_eq!(pop_configuration(), Some(configuration(3)));
        assert_eq!(pop_configuration(), Some(configuration(1)));
        assert_eq!(pop_configuration(), None);
    }

    #[test]
    fn the_last_error_belongs_to_the_thread() {
        assert_eq!(replace_last_error(cudaErrorInvalidValue), cudaSuccess);
        assert_eq!(std::thread::spawn(last_error).join().unwrap(), cudaSuccess);
        assert_eq!(replace_last_error(cudaSuccess), cudaErrorInvalidValue);
        assert_eq!(last_error(), cudaSuccess);
    }
}
