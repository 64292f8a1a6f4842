//! The code that takes the place of a kernel's first, which was made quickly: who makes it, and when.
//!
//! Most kernels of most programs run so shortly that better code would not make up for the time that making it takes: nobody asks for theirs. One
//! thread makes the code that was asked for while the program goes on, what was asked for last first, unless somebody waits for other: it is there
//! while there is something to make. Who needs the code waits for it, and makes it where nobody has begun to; a thread that runs the first code for
//! long waits for a while at a time, so that a processor is left to the one that makes the other.

use crate::kernel::Kernel;
use crate::locked;
use guard::FloatControl;
use kernel_abi::{CompiledKernel, Successor};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

type Make = Box<dyn FnOnce() -> Option<Arc<Kernel>> + Send>;

/// Code that may come.
pub struct Better {
    /// Until somebody has begun.
    make: Mutex<Option<Make>>,
    /// Nothing where it could not be made: then the first code is good for ever.
    made: OnceLock<Option<Arc<Kernel>>>,
    done: Condvar,
    cost: Duration,
    /// Nanoseconds that launches have run the first code for.
    ran: AtomicU64,
    /// It is, or was, among what is to be made.
    is_asked_for: AtomicBool,
    /// Somebody has waited for it.
    is_wanted: AtomicBool,
    background: Background,
    itself: Weak<Better>,
}

impl Better {
    /// What `make` makes in about this time, in this background if nobody waits for it.
    pub fn new(make: Make, cost: Duration, background: &Background) -> Arc<Better> {
        Arc::new_cyclic(|itself| Better {
            make: Mutex::new(Some(make)),
            made: OnceLock::new(),
            done: Condvar::new(),
            cost,
            ran: AtomicU64::new(0),
            is_asked_for: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
            background: background.clone(),
            itself: itself.clone(),
        })
    }

    /// The code if it is there.
    pub fn get(&self) -> Option<&Arc<Kernel>> {
        self.made.get()?.as_ref()
    }

    fn wait_for(&self) -> Option<&Arc<Kernel>> {
        let mut make = locked(&self.make);
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
    fn make(&self) {
        let make = locked(&self.make).take();
        make.map(|make| self.settle(make));
    }

    fn settle(&self, make: Make) -> Option<&Arc<Kernel>> {
        /// Also where making it panics.
        struct Told<'a>(&'a Better);
        impl Drop for Told<'_> {
            fn drop(&mut self) {
                self.0.made.get_or_init(|| None);
                // Who is about to wait has looked before it does, in the lock.
                drop(locked(&self.0.make));
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

    fn cost(&self) -> Duration {
        self.cost
    }

    fn ran(&self, more: Duration) -> Duration {
        let more = more.as_nanos() as u64;
        Duration::from_nanos(self.ran.fetch_add(more, Ordering::Relaxed).saturating_add(more))
    }

    fn begin(&self) {
        let is_first = || !self.is_asked_for.swap(true, Ordering::Relaxed);
        if !self.is_asked_for.load(Ordering::Relaxed)
            && is_first()
            && let Some(itself) = self.itself.upgrade()
        {
            self.background.add(itself);
        }
    }

    fn wait_a_while(&self, most: Duration) -> bool {
        self.is_wanted.store(true, Ordering::Relaxed);
        self.begin();
        let make = locked(&self.make);
        let waited = self.done.wait_timeout_while(make, most, |_| !self.is_settled());
        drop(waited);
        self.is_settled()
    }

    fn wait(&self) -> Option<Arc<dyn CompiledKernel>> {
        self.wait_for().map(|kernel| kernel.clone() as _)
    }
}

/// What is to be made.
#[derive(Clone)]
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
    fn add(&self, better: Arc<Better>) {
        let mut pending = locked(&self.0);
        pending.stack.push(better);
        if !pending.has_thread {
            pending.has_thread = self.start();
        }
    }

    fn start(&self) -> bool {
        let shared = self.0.clone();
        let thread = std::thread::Builder::new().name("anywarp-compile".into()).stack_size(Self::STACK);
        thread.spawn(move || make_all(&shared)).is_ok()
    }
}

fn make_all(pending: &Mutex<Pending>) {
    // A thread begins with what the one that started it had.
    let _control = FloatControl::standard();
    loop {
        let next = {
            let mut pending = locked(pending);
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
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| better.make()));
    }
}
