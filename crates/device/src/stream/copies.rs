//! Copies and fills in a stream.
//!
//! Memory that the device does not know is *pageable*: the program may do with it what it likes as soon as the call returns.
//! So a copy from there is made from a buffer that was filled at once, or has been made when the call returns.

use std::sync::Arc;

use super::bulk::Bulk;
use super::{Stream, Work, start_of};
use crate::graph::Operation;
use crate::lock::{Rank, RankedMutex};
use crate::memory::{Fill, Kind, Side, Transfer};
use crate::{Context, Result};

/// Largest copy from pageable memory that is made when it is queued rather than waited for.
const STAGED: u64 = 64 << 10;

/// When the source of a copy is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceAccess {
    /// When the stream gets there, or at any time before it does.
    InStream,
    /// Before the call returns.
    DuringCall,
}

impl Stream {
    /// Queues a copy. Where one end is memory that the device does not know, the copy may be over when this returns; the
    /// program may then use that memory again.
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if an end is not in the memory it should be in.
    pub fn copy(&self, transfer: Transfer) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        let pageable = transfer.check(context.memory())?;
        if self.is_capturing() {
            return self.capture.add(Operation::Copy(transfer));
        }
        if transfer.is_empty() {
            return Ok(());
        }
        match (pageable.to, pageable.from) {
            (false, false) => self.run_operation(Operation::Copy(transfer)),
            (false, true) => self.copy_staged(transfer),
            (true, _) => self.copy_and_wait(transfer),
        }
    }

    /// Queues a copy whose source is read when it is said to be. The program leaves both ends alone until the copy is done,
    /// whatever memory they are.
    ///
    /// # Errors
    /// As for [`copy`](Self::copy); [`Error::StreamCaptureUnsupported`](crate::Error::StreamCaptureUnsupported) for a source to be read during the call that would become
    /// a node of a graph.
    pub fn copy_from(&self, transfer: Transfer, access: SourceAccess) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        transfer.check(context.memory())?;
        match access {
            SourceAccess::InStream => self.perform(Operation::Copy(transfer)),
            SourceAccess::DuringCall => {
                self.check_not_capturing()?;
                self.copy_staged(transfer)
            }
        }
    }

    /// Copies as the synchronous calls do: waits, unless both ends are memory of the device alone and neither the program nor
    /// the context asks for waiting.
    ///
    /// # Errors
    /// As for [`copy_and_wait`](Self::copy_and_wait).
    pub fn copy_now(&self, transfer: Transfer) -> Result<()> {
        let context = self.context()?;
        context.check_before_waiting()?;
        self.check_not_capturing()?;
        let pageable = transfer.check(context.memory())?;
        let ends = [transfer.to.start, transfer.from.start];
        let waits = pageable.to || pageable.from || ends.iter().any(|end| waits_for(&context, end.address()));
        if waits { self.copy_and_wait(transfer) } else { self.copy(transfer) }
    }

    /// Queues a copy and waits for it.
    ///
    /// # Errors
    /// Also [`Error::InvalidValue`](crate::Error::InvalidValue) if memory of the program at one end is not there.
    pub fn copy_and_wait(&self, transfer: Transfer) -> Result<()> {
        let context = self.context()?;
        context.check_before_waiting()?;
        self.check_not_capturing()?;
        transfer.check(context.memory())?;
        if transfer.is_empty() {
            return Ok(());
        }
        let outcome = Arc::new(RankedMutex::new(Rank::Output, Ok(())));
        // What is wrong with the program's memory is the caller's error and not the context's.
        let make = self.bulk_work(&context, Bulk::Copy(transfer), Some(outcome.clone()));
        self.submit_and_wait(&context, make, start_of(transfer.bytes()))?;
        context.domain().output.flush();
        context.notice()?;
        outcome.lock().clone()
    }

    /// Queues a fill.
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if it is not all in memory the device knows, or misaligned.
    pub fn fill(&self, fill: Fill) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        fill.check(context.memory())?;
        self.perform(Operation::Fill(fill))
    }

    /// Fills as the synchronous calls do: waits if the host can see the memory, or waiting is asked for.
    ///
    /// # Errors
    /// As for [`fill`](Self::fill).
    pub fn fill_now(&self, fill: Fill) -> Result<()> {
        let context = self.context()?;
        self.fill(fill)?;
        if waits_for(&context, fill.address) { self.synchronize() } else { Ok(()) }
    }

    /// Reads the source before it returns: into a buffer if that is small enough, by waiting otherwise.
    fn copy_staged(&self, transfer: Transfer) -> Result<()> {
        match transfer.bytes() {
            Some(0) => Ok(()),
            Some(bytes @ ..=STAGED) if transfer.is_linear() => {
                let mut staged = vec![0_u8; bytes as usize];
                // SAFETY: the buffer is ours until the copy has run.
                let buffer = unsafe { Side::any(staged.as_mut_ptr() as u64) };
                Transfer::linear(buffer, transfer.from.start, bytes).run()?;
                let task = move || {
                    let staged = staged;
                    // SAFETY: as above.
                    let buffer = unsafe { Side::any(staged.as_ptr() as u64) };
                    Transfer::linear(transfer.to.start, buffer, bytes).run()
                };
                self.submit_sized(Some(bytes), Work::Task(Box::new(task)))
            }
            _ => self.copy_and_wait(transfer),
        }
    }
}

/// Whether synchronous calls on this memory end only when they are done.
fn waits_for(context: &Context, address: u64) -> bool {
    context.flags_if_inactive().sync_memory_operations
        || context.memory().find(address).is_some_and(|found| {
            found.synchronous || found.kind.is_host() || matches!(found.kind, Kind::Managed { .. })
        })
}
