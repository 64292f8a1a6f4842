//! The code that takes the place of a kernel's first, which was made quickly: who makes it, and when.
//!
//! One thread makes such code while the program goes on, for the kernel launched last first, unless somebody waits for another's: it is there while
//! there is something to make, and yields to others where processors are short. Who needs the code waits for it, and makes it where nobody has
//! begun to; a thread that runs the first code for long waits for a while at a time, so that a processor is left to the one that makes the other.

use crate::kernel::Kernel;
use kernel_abi::{CompiledKernel, Successor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

type Make = Box<dyn FnOnce() -> Option<Arc<Kernel>> + Send>;

/// Code that is to come.
pub struct Better {
    /// Until somebody has begun.
    make: Mutex<Option<Make>>,
    /// Nothing where it could not be made: then the first code is good for ever.
    made: OnceLock<Option<Arc<Kernel>>>,
    done: Condvar,
    /// Somebody has waited for it.
    is_wanted: AtomicBool,
}

impl Better {
    /// What `make` makes.
    pub fn new(make: Make) -> Arc<Better> {
        Arc::new(Better {
            make: Mutex::new(Some(make)),
            made: OnceLock::new(),
            done: Condvar::new(),
            is_wanted: AtomicBool::new(false),
        })
    }

    /// The code if it is there.
    pub fn get(&self) -> Option<&Arc<Kernel>> {
        self.made.get()?.as_ref()
    }

    fn wait_for(&self) -> Option<&Arc<Kernel>> {
        let mut make = lock(&self.make);
        if let Some(wanted) = make.take() {
            drop(make);
            return self.settle(wanted);
        }
        while !self.is_settled() {
            make = self.done.wait(make).unwrap_or_else(PoisonError::into_inner);
        }
        drop(make);
        self.get()
    }

    /// Makes it, unless somebody has begun to.
    fn begin(&self) {
        let make = lock(&self.make).take();
        make.map(|make| self.settle(make));
    }

    fn settle(&self, make: Make) -> Option<&Arc<Kernel>> {
        /// Also where making it panics.
        struct Told<'a>(&'a Better);
        impl Drop for Told<'_> {
            fn drop(&mut self) {
                self.0.made.get_or_init(|| None);
                // Who is about to wait has looked before it does, in the lock.
                drop(lock(&self.0.make));
                self.0.done.notify_all();
            }
        }
        let told = Told(self);
        let made = make();
        self.made.get_or_init(|| made);
        drop(told);
        self.get()
    }
}

impl Successor for Better {
    fn is_settled(&self) -> bool {
        self.made.get().is_some()
    }

    fn wait_a_while(&self, most: Duration) -> bool {
        self.is_wanted.store(true, Ordering::Relaxed);
        let make = lock(&self.make);
        let waited = self.done.wait_timeout_while(make, most, |_| !self.is_settled());
        drop(waited);
        self.is_settled()
    }

    fn wait(&self) -> Option<Arc<dyn CompiledKernel>> {
        self.wait_for().map(|kernel| kernel.clone() as _)
    }
}

/// What is to be made.
pub struct Background(Arc<Mutex<Pending>>);

struct Pending {
    /// The last comes first.
    stack: Vec<Arc<Better>>,
    has_thread: bool,
    /// What is made is kept for others.
    kept: bool,
}

impl Background {
    /// As much as programs have: a compiler descends into what it reads.
    const STACK: usize = 8 << 20;

    /// With nothing to make. What nobody holds any more is made only if what is made is kept for others.
    pub fn new(kept: bool) -> Background {
        Background(Arc::new(Mutex::new(Pending { stack: Vec::new(), has_thread: false, kept })))
    }

    /// Has this made. Without a thread to do it, it is made when it is needed.
    pub fn add(&self, better: Arc<Better>) -> Arc<Better> {
        let mut pending = lock(&self.0);
        pending.stack.push(better.clone());
        if !pending.has_thread {
            pending.has_thread = self.start();
        }
        better
    }

    fn start(&self) -> bool {
        let shared = self.0.clone();
        let thread = std::thread::Builder::new().name("anywarp-compile".into()).stack_size(Self::STACK);
        thread.spawn(move || make_all(&shared)).is_ok()
    }
}

fn make_all(pending: &Mutex<Pending>) {
    /// In the order of `nice`: some of the processor is left to it, for somebody may come to wait.
    const POLITENESS: i32 = 5;
    // SAFETY: system calls about the calling thread, which by Linux has a priority of its own. Where it is refused all stays as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, POLITENESS) };
    loop {
        let next = {
            let mut pending = lock(pending);
            let kept = pending.kept;
            pending.stack.retain(|better| kept || Arc::strong_count(better) > 1);
            let wanted = |better: &Arc<Better>| better.is_wanted.load(Ordering::Relaxed);
            let next = match pending.stack.iter().rposition(wanted) {
                Some(place) => Some(pending.stack.remove(place)),
                None => pending.stack.pop(),
            };
            pending.has_thread = next.is_some();
            next
        };
        let Some(better) = next else { return };
        // A panic has settled it.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| better.begin()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
