//! What a failing kernel leaves behind.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kernel_abi::{Fault, FaultKind};
use ptx::Origin;

use crate::lock::{Rank, RankedMutex};
use crate::memory::ContextId;
use crate::{Error, Result, clock};

/// Why and where a context's work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// The kernel; empty if it was a copy or another command.
    pub kernel: String,
    /// Threads of a block in x, y, z.
    pub block_dim: [u32; 3],
    /// Where the instruction comes from in the program's source, if the PTX tells.
    pub source: Option<Origin>,
    /// The rest.
    pub fault: Fault,
}

impl FaultReport {
    /// The failure of a command that is no kernel.
    pub fn of_command(detail: impl Into<String>) -> FaultReport {
        FaultReport {
            kernel: String::new(),
            block_dim: [1; 3],
            source: None,
            fault: Fault {
                kind: FaultKind::IllegalAddress,
                address: None,
                ctaid: [0; 3],
                warp: 0,
                lane: None,
                ptx_line: None,
                detail: detail.into(),
            },
        }
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = &self.fault;
        let what = match fault.kind {
            FaultKind::IllegalAddress => "illegal address",
            FaultKind::Misaligned => "misaligned address",
            FaultKind::Trap => "trap instruction",
            FaultKind::OutsideCluster => "access to shared memory of a block that the cluster has not",
            FaultKind::BarrierCount => "more arrivals or bytes than an mbarrier expects or counts",
            FaultKind::Assert => "assertion failed",
            FaultKind::StackOverflow => "stack overflow",
            FaultKind::IllegalInstruction => "illegal instruction",
            FaultKind::InvalidPc => "call of what is no function",
            FaultKind::InvalidAddressSpace => "address outside its address space",
            FaultKind::Deadlock => "deadlock: all warps of the block wait for each other",
        };
        f.write_str(what)?;
        if let Some(address) = fault.address {
            write!(f, " {address:#x}")?;
        }
        if self.kernel.is_empty() {
            return write!(f, " in {}", fault.detail);
        }
        let [x, y, z] = fault.ctaid;
        write!(f, " in kernel {}, block ({x},{y},{z})", self.kernel)?;
        match fault.thread(self.block_dim) {
            Some([x, y, z]) => write!(f, ", thread ({x},{y},{z})")?,
            None => write!(f, ", warp {}", fault.warp)?,
        }
        if let Some(line) = fault.ptx_line {
            write!(f, ", PTX line {line}")?;
        }
        if let Some(origin) = &self.source {
            write!(f, ", {origin}")?;
        }
        if !fault.detail.is_empty() {
            write!(f, ": {}", fault.detail)?;
        }
        Ok(())
    }
}

/// A failure that nobody has noticed is known to all after this time, as on a GPU, which takes about as long to tell its driver.
const KNOWN_AFTER: Duration = Duration::from_millis(100);

/// Whether a context still works. The first failure stays until the context is reset.
///
/// Nothing runs any more at once. Calls hear of it only when somebody has *noticed*: whoever waits for work that it has ended, or asks
/// whether that is over. Programs count on that: what they queue behind a kernel that fails is accepted, and the wait behind it tells.
#[derive(Debug)]
pub struct Health {
    failed: AtomicBool,
    noticed: AtomicBool,
    /// When, on [`clock`]; 0 if it has not.
    failed_at: AtomicU64,
    report: RankedMutex<Option<FaultReport>>,
    /// Describe the first failure on standard error.
    log: bool,
    /// Whose health.
    owner: ContextId,
}

impl Health {
    /// Good health of a context.
    pub fn new(log: bool, owner: ContextId) -> Health {
        Health {
            failed: AtomicBool::new(false),
            noticed: AtomicBool::new(false),
            failed_at: AtomicU64::new(0),
            report: RankedMutex::new(Rank::Output, None),
            log,
            owner,
        }
    }

    /// [`Error::Fault`] once a failure has been noticed.
    pub fn check(&self) -> Result<()> {
        if !self.has_failed() {
            return Ok(());
        }
        let is_known = self.noticed.load(Ordering::Acquire)
            || clock::since(self.failed_at.load(Ordering::Relaxed)) >= KNOWN_AFTER;
        if is_known { self.outcome() } else { Ok(()) }
    }

    /// [`Error::Fault`] if a kernel has failed, which is noticed now: for who has waited for all work, or needs the device at once.
    pub fn notice(&self) -> Result<()> {
        if self.has_failed() {
            self.noticed.store(true, Ordering::Release);
        }
        self.outcome()
    }

    /// [`notice`](Self::notice)s if what ended `at` that time on [`clock`] may have ended with the failure; what was over before it has
    /// not.
    pub fn notice_at(&self, at: u64) -> Result<()> {
        if self.has_failed() && at >= self.failed_at.load(Ordering::Relaxed) {
            self.notice()
        } else {
            self.check()
        }
    }

    /// [`Error::Fault`] if a kernel has failed, noticed or not.
    pub fn outcome(&self) -> Result<()> {
        if !self.has_failed() {
            return Ok(());
        }
        match &*self.report.lock() {
            Some(report) => Err(Error::Fault(report.fault.kind)),
            None => Ok(()),
        }
    }

    /// Whether nothing may run any more.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// What went wrong, if anything has.
    pub fn report(&self) -> Option<FaultReport> {
        self.report.lock().clone()
    }

    /// Records a failure; only the first counts.
    pub fn fail(&self, report: FaultReport) {
        self.fail_at(report, clock::now());
    }

    /// Records a failure by that time on [`clock`]; only the first counts.
    pub fn fail_at(&self, report: FaultReport, now: u64) {
        let mut slot = self.report.lock();
        if slot.is_none() {
            if self.log {
                eprintln!("anywarp: {report}");
            }
            if let Some(listener) = LISTENER.get() {
                listener(self.owner, &report);
            }
            *slot = Some(report);
            self.failed_at.store(now, Ordering::Relaxed);
            self.failed.store(true, Ordering::Release);
        }
    }

    /// Forgets the failure: its context has been reset.
    pub fn reset(&self) {
        let mut slot = self.report.lock();
        *slot = None;
        self.failed.store(false, Ordering::Release);
        self.noticed.store(false, Ordering::Release);
    }
}

/// What is told of failures: whose, and which.
pub type Listener = fn(ContextId, &FaultReport);

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Has `listener` called with every failure from now on, by the thread that finds it, which may hold locks: it must call
/// nothing of the device's. Only the first listener counts.
pub fn tell(listener: Listener) {
    let _ = LISTENER.set(listener);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(kind: FaultKind) -> FaultReport {
        FaultReport {
            kernel: "saxpy".into(),
            block_dim: [16, 16, 1],
            source: Origin::of(".file 1 \"saxpy.cu\" { .loc 1 7 1 trap; }", 28),
            fault: Fault {
                kind,
                address: Some(16),
                ctaid: [3, 0, 0],
                warp: 1,
                lane: Some(2),
                ptx_line: Some(41),
                detail: String::new(),
            },
        }
    }

    #[test]
    fn names_kernel_block_thread_and_line() {
        assert_eq!(
            report(FaultKind::IllegalAddress).to_string(),
            "illegal address 0x10 in kernel saxpy, block (3,0,0), thread (2,2,0), PTX line 41, saxpy.cu:7"
        );
    }

    #[test]
    fn the_first_failure_stays() {
        let health = Health::new(false, ContextId(1));
        assert_eq!(health.check(), Ok(()));
        health.fail(report(FaultKind::Trap));
        health.fail(report(FaultKind::Misaligned));
        assert_eq!(health.outcome(), Err(Error::Fault(FaultKind::Trap)));
        assert_eq!(health.notice(), Err(Error::Fault(FaultKind::Trap)));
        assert_eq!(health.check(), Err(Error::Fault(FaultKind::Trap)));
        health.reset();
        assert_eq!(health.check(), Ok(()));
    }

    #[test]
    fn calls_hear_of_a_failure_once_it_has_been_noticed() {
        let (health, fault) = (Health::new(false, ContextId(1)), Err(Error::Fault(FaultKind::Trap)));
        let now = clock::now();
        health.fail_at(report(FaultKind::Trap), now);
        assert!(health.has_failed());
        assert_eq!(health.notice_at(now - 1), Ok(()), "what was over before");
        assert_eq!(health.notice_at(now), fault, "what ended with it");
        assert_eq!(health.check(), fault);
    }

    #[test]
    fn a_failure_is_known_to_all_after_a_while() {
        let health = Health::new(false, ContextId(1));
        health.fail_at(report(FaultKind::Trap), clock::now() - KNOWN_AFTER.as_nanos() as u64);
        assert_eq!(health.check(), Err(Error::Fault(FaultKind::Trap)));
    }
}
