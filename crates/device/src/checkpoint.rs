//! Processes that are stopped and go on, by themselves or others.
//!
//! A process is *locked* first: what it asks of its devices waits. Then it is *checkpointed*: a GPU's memory would move to the
//! host now; ours is there, and stays. Then it is *restored*, and at last *unlocked*. Each step is a word in the page that
//! processes of one user see of each other ([`usage`](crate::usage)), which every call looks at before it begins.

use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::usage::Remote;
use crate::{Error, Result};

/// Whether a process may use its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It may.
    Running = 0,
    /// Its calls wait.
    Locked = 1,
    /// They wait, and its memory has been set aside.
    Checkpointed = 2,
}

impl State {
    fn of(word: u64) -> State {
        match word {
            0 => State::Running,
            1 => State::Locked,
            _ => State::Checkpointed,
        }
    }
}

/// The word of a process that others cannot see.
static ALONE: AtomicU64 = AtomicU64::new(State::Running as u64);

/// The word of this process.
static WORD: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const ALONE).cast_mut());

/// How often what waits looks again.
const PAUSE: Duration = Duration::from_millis(1);

/// For how many looks nothing may run until a process counts as quiet: one command may end as the next begins.
const QUIET: u32 = 3;

/// Has this process look at a word that others see.
pub(crate) fn use_word(word: &'static AtomicU64) {
    WORD.store(std::ptr::from_ref(word).cast_mut(), Ordering::Release);
}

fn own() -> &'static AtomicU64 {
    // SAFETY: the static above, or what `use_word` was given; both live for ever.
    unsafe { &*WORD.load(Ordering::Acquire) }
}

/// Returns at once, unless the process is locked: then when it is unlocked.
#[inline]
pub fn wait_until_unlocked() {
    if own().load(Ordering::Relaxed) != State::Running as u64 {
        wait();
    }
}

#[cold]
fn wait() {
    while own().load(Ordering::Acquire) != State::Running as u64 {
        std::thread::sleep(PAUSE);
    }
}

/// The processes that can be stopped: those of this folder.
pub struct Processes<'a>(pub Option<&'a Path>);

impl Processes<'_> {
    /// The state of a process.
    ///
    /// # Errors
    /// [`Error::OperatingSystem`] if there is no process of this number, and [`Error::NotInitialized`] if it has no devices or is
    /// not this user's.
    pub fn state(&self, process: u32) -> Result<State> {
        Ok(State::of(self.find(process)?.state().load(Ordering::Acquire)))
    }

    /// Has the calls of a process wait, and waits until its kernels have ended; work that is queued behind them goes on.
    ///
    /// # Errors
    /// As for [`state`](Self::state); [`Error::IllegalState`] unless it runs; [`Error::NotReady`] if that takes longer than it
    /// may, and the process runs again.
    pub fn lock(&self, process: u32, timeout: Option<Duration>) -> Result<()> {
        let found = self.find(process)?;
        change(&found, State::Running, State::Locked)?;
        let (begin, mut quiet) = (Instant::now(), 0);
        while quiet < QUIET {
            quiet = if found.is_busy() { 0 } else { quiet + 1 };
            if timeout.is_some_and(|timeout| begin.elapsed() > timeout) {
                // Somebody else may have unlocked it.
                let _ = change(&found, State::Locked, State::Running);
                return Err(Error::NotReady);
            }
            // It may have ended.
            self.find(process)?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Sets the memory of a locked process aside.
    ///
    /// # Errors
    /// As for [`state`](Self::state); [`Error::IllegalState`] unless it is locked.
    pub fn checkpoint(&self, process: u32) -> Result<()> {
        change(&self.find(process)?, State::Locked, State::Checkpointed)
    }

    /// Brings it back.
    ///
    /// # Errors
    /// As for [`state`](Self::state); [`Error::IllegalState`] unless it has been set aside.
    pub fn restore(&self, process: u32) -> Result<()> {
        change(&self.find(process)?, State::Checkpointed, State::Locked)
    }

    /// Has a locked process go on.
    ///
    /// # Errors
    /// As for [`state`](Self::state); [`Error::IllegalState`] unless it is locked.
    pub fn unlock(&self, process: u32) -> Result<()> {
        change(&self.find(process)?, State::Locked, State::Running)
    }

    fn find(&self, process: u32) -> Result<Remote> {
        let found = self.0.and_then(|folder| Remote::find(folder, process));
        let is_there = || process != 0 && Path::new(&format!("/proc/{process}")).exists();
        found.ok_or_else(|| match is_there() {
            true => Error::NotInitialized,
            false => Error::OperatingSystem(format!("there is no process {process}")),
        })
    }
}

fn change(process: &Remote, from: State, to: State) -> Result<()> {
    let (from, to) = (from as u64, to as u64);
    let changed = process.state().compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    changed.map(drop).map_err(|_| Error::IllegalState)
}
