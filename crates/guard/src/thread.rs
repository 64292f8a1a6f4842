//! What each thread needs: its chain of guarded calls, a stack for the signal handler, the bounds of its own stack.
//!
//! The state hangs on a pthread key rather than on `thread_local!`: looking a key up in a signal handler is safe on a
//! thread that never set it, whereas the first use of a thread-local variable of a dlopened library may allocate.

use crate::stack::Stack;
use crate::x86_64::{FloatControl, Record};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// Enough for the largest register state (11 KiB with AMX) and for a handler before ours that is chained to.
const SIGNAL_STACK_SIZE: usize = 64 * 1024;
const PAGE: usize = 4096;
/// The gap the kernel keeps below a stack that grows (`stack_guard_gap`).
const KERNEL_GUARD_GAP: u64 = 256 * PAGE as u64;

/// State of a thread that has used this crate. Only its own thread and the handlers running on it touch it.
pub struct Thread {
    innermost: *mut Record,
    /// The mapping of the signal stack if the thread had none that was large enough.
    signal_stack: *mut c_void,
    /// A fault here is the stack's end.
    stack_guard: Range<u64>,
}

/// The pthread key plus one; 0 before [`create_key`].
static KEY: AtomicU32 = AtomicU32::new(0);

/// Called once, before any handler is installed.
pub fn create_key() {
    let mut key = 0;
    // SAFETY: `key` is ours and `destroy` takes what `current` stores.
    let error = unsafe { libc::pthread_key_create(&mut key, Some(destroy)) };
    assert_eq!(error, 0, "the process has a free pthread key");
    KEY.store(key + 1, Ordering::Release);
}

/// The state of this thread, or null if it never entered a guarded call. Async-signal-safe.
pub fn existing() -> *mut Thread {
    match KEY.load(Ordering::Acquire) {
        0 => ptr::null_mut(),
        // SAFETY: the key was created and is never deleted.
        key => unsafe { libc::pthread_getspecific(key - 1) }.cast(),
    }
}

/// The innermost guarded call in progress on this thread, or null. Async-signal-safe.
pub fn innermost() -> *mut Record {
    let thread = existing();
    // SAFETY: a state that exists lives until its thread ends.
    if thread.is_null() { ptr::null_mut() } else { unsafe { (*thread).innermost } }
}

/// Makes `record` the innermost guarded call until the result is dropped.
pub fn enter(record: *mut Record) -> Nesting {
    let thread = current();
    // SAFETY: both are ours; nobody else looks at them but handlers on this thread.
    unsafe {
        let outer = (*thread).innermost;
        (*record).outer = outer;
        (*thread).innermost = record;
        Nesting { thread, outer }
    }
}

/// Runs host code that generated code called back into, in the floating-point environment that host code expects. A fault in it goes to whoever handled faults before, unless it
/// is inside a guarded call that `body` makes.
pub fn unguarded<R>(body: impl FnOnce() -> R) -> R {
    let thread = existing();
    if thread.is_null() {
        return body();
    }
    // SAFETY: the state lives until the thread ends.
    let outer = unsafe { std::mem::replace(&mut (*thread).innermost, ptr::null_mut()) };
    let _nesting = Nesting { thread, outer };
    let _control = FloatControl::standard();
    body()
}

/// Puts back what was the innermost guarded call.
#[must_use]
pub struct Nesting {
    thread: *mut Thread,
    outer: *mut Record,
}

impl Drop for Nesting {
    fn drop(&mut self) {
        // SAFETY: the state lives until the thread ends, and a Nesting stays on its thread (it holds pointers).
        unsafe { (*self.thread).innermost = self.outer };
    }
}

impl Thread {
    /// Whether a fault at `address` with the stack pointer at `stack_pointer` means that the stack is used up: it is in
    /// the guard below the thread's stack, or, on a stack that pthread does not know (a coroutine's), just at its top.
    pub fn is_stack_end(&self, address: u64, stack_pointer: u64) -> bool {
        const RED_ZONE: u64 = 128;
        self.stack_guard.contains(&address)
            || (stack_pointer.saturating_sub(RED_ZONE)..stack_pointer.saturating_add(8)).contains(&address)
    }
}

fn current() -> *mut Thread {
    let thread = existing();
    if !thread.is_null() {
        return thread;
    }
    let thread = Box::into_raw(Box::new(Thread {
        innermost: ptr::null_mut(),
        signal_stack: ensure_signal_stack(),
        stack_guard: stack_guard(),
    }));
    let key = KEY.load(Ordering::Acquire) - 1;
    // SAFETY: the key was created by `install`, which every user of this module calls first.
    let error = unsafe { libc::pthread_setspecific(key, thread.cast()) };
    assert_eq!(error, 0, "memory for a pthread value");
    thread
}

/// Gives the thread a signal stack unless it has a large enough one; returns the mapping, or null.
fn ensure_signal_stack() -> *mut c_void {
    // SAFETY: plain queries and a fresh private mapping; the kernel keeps the stack's address until `destroy`.
    unsafe {
        let mut old = MaybeUninit::<libc::stack_t>::zeroed().assume_init();
        let known = libc::sigaltstack(ptr::null(), &mut old) == 0;
        if known && old.ss_flags & libc::SS_DISABLE == 0 && old.ss_size >= SIGNAL_STACK_SIZE / 2 {
            return ptr::null_mut();
        }
        let mapping = libc::mmap(
            ptr::null_mut(),
            PAGE + SIGNAL_STACK_SIZE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
            -1,
            0,
        );
        if mapping == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        libc::mprotect(mapping, PAGE, libc::PROT_NONE);
        let new = libc::stack_t { ss_sp: mapping.byte_add(PAGE), ss_flags: 0, ss_size: SIGNAL_STACK_SIZE };
        if libc::sigaltstack(&new, ptr::null_mut()) != 0 {
            libc::munmap(mapping, PAGE + SIGNAL_STACK_SIZE);
            return ptr::null_mut();
        }
        mapping
    }
}

/// Where faults happen when this thread's stack is used up. Whether pthread counts the guard as part of the stack has
/// varied, so the range covers both readings; a usable page in it does not fault.
fn stack_guard() -> Range<u64> {
    let Stack { low, high, guard } = Stack::of_this_thread();
    if high == 0 {
        return 0..0;
    }
    // SAFETY: they only answer numbers.
    let is_main = unsafe { libc::gettid() == libc::getpid() };
    let gap = if is_main { KERNEL_GUARD_GAP } else { guard.max(PAGE as u64) };
    low.saturating_sub(gap)..low + gap
}

/// The key's destructor: the thread is ending.
extern "C" fn destroy(thread: *mut c_void) {
    // SAFETY: pthread passes the value `current` stored, once. If our signal stack is still the thread's, it is taken
    // out of use before it is unmapped.
    unsafe {
        let thread = Box::from_raw(thread.cast::<Thread>());
        if thread.signal_stack.is_null() {
            return;
        }
        let mut active = MaybeUninit::<libc::stack_t>::zeroed().assume_init();
        if libc::sigaltstack(ptr::null(), &mut active) == 0
            && active.ss_sp == thread.signal_stack.byte_add(PAGE)
            && active.ss_flags & libc::SS_DISABLE == 0
        {
            let off = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            libc::sigaltstack(&off, ptr::null_mut());
        }
        libc::munmap(thread.signal_stack, PAGE + SIGNAL_STACK_SIZE);
    }
}
