//! The program's threads: which one calls, and which contexts to tell when it ends.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::Context;

/// A number that no other thread of the process has or had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadNumber(u64);

/// The calling thread's number; also while its thread-local values are being destroyed, when the standard library does not know
/// the thread any more.
pub(crate) fn number() -> ThreadNumber {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    }
    ThreadNumber(NUMBER.get())
}

/// Has the context [told](Context::forget_thread) when the calling thread ends. A thread that is ending already tells nobody:
/// what it leaves goes with the context.
pub(crate) fn on_exit(context: &Arc<Context>) {
    thread_local! {
        static TOLD: Told = const { Told(RefCell::new(Vec::new())) };
    }
    let _ = TOLD.try_with(|told| {
        let mut contexts = told.0.borrow_mut();
        contexts.retain(|known| known.strong_count() > 0);
        let context = Arc::downgrade(context);
        if !contexts.iter().any(|known| Weak::ptr_eq(known, &context)) {
            contexts.push(context);
        }
    });
}

/// The contexts that one thread has a stream in.
struct Told(RefCell<Vec<Weak<Context>>>);

impl Drop for Told {
    fn drop(&mut self) {
        for context in self.0.take() {
            if let Some(context) = context.upgrade() {
                context.forget_thread(number());
            }
        }
    }
}
