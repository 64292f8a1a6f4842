//! Where the stack of a thread lies.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A thread's stack as pthread knows it.
#[derive(Clone, Copy)]
pub struct Stack {
    pub low: u64,
    pub high: u64,
    /// Bytes of the guard. Whether pthread counts it as part of the stack has varied.
    pub guard: u64,
}

thread_local! {
    static STACK: Cell<Option<Stack>> = const { Cell::new(None) };
}

/// What is wanted of a stack at most by code that may run.
static WANTED: AtomicUsize = AtomicUsize::new(0);

/// There is code from now on that wants so many bytes of a stack.
pub fn want_stack(bytes: usize) {
    WANTED.fetch_max(bytes, Ordering::Relaxed);
}

/// Whether the calling thread has so many bytes of its stack left, and as many as any code wants.
pub fn has_stack(bytes: usize) -> bool {
    stack_left() >= bytes.max(WANTED.load(Ordering::Relaxed))
}

/// How many bytes of its stack the calling thread has left; 0 on a stack that pthread does not know, as a coroutine's.
pub fn stack_left() -> usize {
    let here = 0_u8;
    let at = (&raw const here).addr() as u64;
    let Stack { low, high, guard } = Stack::of_this_thread();
    if (low..high).contains(&at) { at.saturating_sub(low + guard) as usize } else { 0 }
}

impl Stack {
    /// The calling thread's; an empty one if nobody knows. The first call of a thread takes a while.
    pub fn of_this_thread() -> Stack {
        if let Some(known) = STACK.get() {
            return known;
        }
        let found = Stack::ask().unwrap_or(Stack { low: 0, high: 0, guard: 0 });
        STACK.set(Some(found));
        found
    }

    fn ask() -> Option<Stack> {
        // SAFETY: the attributes are ours, filled by pthread_getattr_np and destroyed once.
        unsafe {
            let mut attributes = MaybeUninit::uninit();
            if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
                return None;
            }
            let (mut low, mut size, mut guard) = (ptr::null_mut(), 0, 0);
            libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size);
            libc::pthread_attr_getguardsize(attributes.as_ptr(), &mut guard);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            let low = low.addr() as u64;
            Some(Stack { low, high: low.saturating_add(size as u64), guard: guard as u64 })
        }
    }
}
