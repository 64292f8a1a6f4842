//! What happens to LLVM when the process exits while a thread compiles.

/// A part of a thread's time in which it uses LLVM.
pub struct InUse {
    #[cfg(not(llvm_linked_in))]
    _shared: std::sync::RwLockReadGuard<'static, ()>,
}

impl InUse {
    /// LLVM is there until this is dropped.
    pub fn begin() -> InUse {
        InUse {
            #[cfg(not(llvm_linked_in))]
            _shared: shared::begin(),
        }
    }
}

#[cfg(not(llvm_linked_in))]
impl Drop for InUse {
    fn drop(&mut self) {
        shared::have_exits_wait();
    }
}

// LLVM in this library: what its global objects would have done at exit is not even noted down, so that threads may use them to the end.
#[cfg(llvm_linked_in)]
std::arch::global_asm!(
    ".globl __wrap___cxa_atexit",
    ".hidden __wrap___cxa_atexit",
    ".type __wrap___cxa_atexit, @function",
    "__wrap___cxa_atexit:",
    "xor eax, eax",
    "ret",
);

/// LLVM in a library of its own, which builds for development have: who exits waits for threads that use it, and none begins to then.
#[cfg(not(llvm_linked_in))]
mod shared {
    use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard};

    static USE: RwLock<()> = RwLock::new(());

    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> i32;
    }

    pub fn begin() -> RwLockReadGuard<'static, ()> {
        USE.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has exits wait. Comes after a first use, when LLVM has made all its global objects: what is noted last is done first.
    pub fn have_exits_wait() {
        static NOTED: Once = Once::new();
        // Without room for it there is nothing to be done.
        // SAFETY: the function stays, as this code does.
        NOTED.call_once(|| unsafe {
            atexit(wait);
        });
    }

    extern "C" fn wait() {
        // For good.
        std::mem::forget(USE.write());
    }
}
