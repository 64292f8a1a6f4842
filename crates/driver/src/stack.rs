//! Each thread's stack of contexts, whose top is the current one.
//!
//! The stack is a thread-local without a destructor: exit handlers that run after those of thread-locals still find
//! their context. Contexts are held by handle, since a context may be destroyed while other threads have it.

use cuda_abi::driver::CUcontext;
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;

/// Depth up to which a stack needs no memory of its own; what lies above is not given back when the thread ends.
const INLINE: usize = 8;

struct Stack {
    len: usize,
    inline: [CUcontext; INLINE],
    rest: ManuallyDrop<Vec<CUcontext>>,
}

thread_local! {
    static STACK: UnsafeCell<Stack> = const {
        UnsafeCell::new(Stack { len: 0, inline: [CUcontext::NULL; INLINE], rest: ManuallyDrop::new(Vec::new()) })
    };
}

fn with<R>(action: impl FnOnce(&mut Stack) -> R) -> R {
    // SAFETY: the cell belongs to this thread, and the actions below, all in this file, do not come back here.
    STACK.with(|stack| action(unsafe { &mut *stack.get() }))
}

impl Stack {
    fn push(&mut self, context: CUcontext) {
        match self.inline.get_mut(self.len) {
            Some(place) => *place = context,
            None => self.rest.push(context),
        }
        self.len += 1;
    }

    fn pop(&mut self) -> Option<CUcontext> {
        self.len = self.len.checked_sub(1)?;
        self.inline.get(self.len).copied().or_else(|| self.rest.pop())
    }
}

/// The current context, if there is one.
pub fn top() -> Option<CUcontext> {
    with(|stack| {
        let index = stack.len.checked_sub(1)?;
        stack.inline.get(index).copied().or_else(|| stack.rest.last().copied())
    })
}

/// Makes a context current above the others.
pub fn push(context: CUcontext) {
    with(|stack| stack.push(context))
}

/// Takes the current context off.
pub fn pop() -> Option<CUcontext> {
    with(Stack::pop)
}

/// Replaces the current context, or takes it off if `context` is null.
pub fn set(context: CUcontext) {
    with(|stack| {
        stack.pop();
        if !context.is_null() {
            stack.push(context);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_stacks_come_back_in_order() {
        for number in 1..=3 * INLINE {
            push(CUcontext(number));
            assert_eq!(top(), Some(CUcontext(number)));
        }
        for number in (1..=3 * INLINE).rev() {
            assert_eq!(pop(), Some(CUcontext(number)));
        }
        assert_eq!((pop(), top()), (None, None));
    }

    #[test]
    fn set_replaces_and_null_takes_off() {
        push(CUcontext(1));
        push(CUcontext(2));
        set(CUcontext(3));
        assert_eq!(top(), Some(CUcontext(3)));
        set(CUcontext::NULL);
        assert_eq!(top(), Some(CUcontext(1)));
        set(CUcontext::NULL);
        set(CUcontext(4));
        assert_eq!((pop(), pop()), (Some(CUcontext(4)), None));
    }

    #[test]
    fn threads_have_their_own() {
        push(CUcontext(1));
        assert_eq!(std::thread::spawn(top).join().unwrap(), None);
        assert_eq!(pop(), Some(CUcontext(1)));
    }
}
