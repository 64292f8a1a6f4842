//! Large copies and fills: cut into pieces, which threads take as they take the blocks of a kernel.
//!
//! One core cannot use all of a machine's memory bandwidth, and memory that is touched for the first time costs a core more than
//! what is then written.

use std::sync::Arc;

use kernel_abi::{BlockFrame, CompiledKernel, Fault, KernelInfo, Shape};

use super::{Completion, Stream, Work};
use crate::callbacks::Services;
use crate::executor::{Grid, GridParts, Params, Profile, Ready};
use crate::fault::FaultReport;
use crate::lock::RankedMutex;
use crate::memory::{Fill, Transfer};
use crate::nested::Nested;
use crate::{Context, Error, Result};

/// Bytes from which on several threads are worth waking.
const LARGE: u64 = 2 << 20;
/// Bytes of a piece, whole pages.
const PIECE: u64 = 512 << 10;

/// What is made piece by piece.
#[derive(Clone, Copy)]
pub(super) enum Bulk {
    Copy(Transfer),
    Fill(Fill),
}

/// Where the outcome goes that is the caller's and not the context's.
pub(super) type Outcome = Arc<RankedMutex<Result<()>>>;

/// Pieces as blocks of a grid.
struct Pieces {
    info: KernelInfo,
    work: Bulk,
    outcome: Option<Outcome>,
}

impl Bulk {
    /// How many pieces there are; `None` for what is better left to one thread: little, or not of one row, or a copy whose ends overlap.
    fn pieces(&self) -> Option<u64> {
        let bytes = match self {
            Bulk::Copy(transfer) => transfer.bytes_apart()?,
            Bulk::Fill(fill) => fill.bytes_in_a_row()?,
        };
        (bytes >= LARGE).then(|| bytes.div_ceil(PIECE))
    }

    fn run(&self, piece: u64) -> Result<()> {
        match self {
            Bulk::Copy(transfer) => transfer.run_part(piece * PIECE, PIECE),
            Bulk::Fill(fill) => fill.run_part(piece * PIECE, PIECE),
        }
    }
}

impl CompiledKernel for Pieces {
    fn info(&self) -> &KernelInfo {
        &self.info
    }

    unsafe fn run(&self, _: &mut BlockFrame, first: u64, count: u64) -> std::result::Result<(), Fault> {
        for piece in first..first + count {
            let Err(error) = self.work.run(piece) else { continue };
            match &self.outcome {
                Some(outcome) => *outcome.lock() = Err(error),
                None => return Err(fault_of(&error)),
            }
        }
        Ok(())
    }
}

fn fault_of(error: &Error) -> Fault {
    FaultReport::of_command(format!("a queued command ({error})")).fault
}

impl Stream {
    /// A command that makes a copy or a fill, in pieces if it is large. What goes wrong is the context's failure, unless there is an
    /// `outcome` to put it into.
    pub(super) fn bulk_work(
        &self,
        context: &Arc<Context>,
        work: Bulk,
        outcome: Option<Outcome>,
    ) -> impl FnOnce(Arc<Completion>) -> Work + use<> {
        let (context, queue) = (context.clone(), self.queue.clone());
        move |completion| {
            let pieces = work.pieces().and_then(|pieces| u32::try_from(pieces).ok());
            let Some(pieces) = pieces else {
                return Work::Task(Box::new(move || {
                    let result = match work {
                        Bulk::Copy(transfer) => transfer.run(),
                        Bulk::Fill(fill) => fill.run(),
                    };
                    match outcome {
                        Some(outcome) => {
                            *outcome.lock() = result;
                            Ok(())
                        }
                        None => result,
                    }
                }));
            };
            let ready = Arc::new(Ready {
                shape: Shape::ANY,
                kernel: Arc::new(Pieces { info: KernelInfo::default(), work, outcome }),
                name: "".into(),
                locate: None,
                replay: None,
                is_kernel: false,
                profile: Arc::<Profile>::default(),
                globals: Box::default(),
                domain: context.domain().clone(),
                context: Arc::downgrade(&context),
                module: std::sync::Weak::new(),
            });
            let parts = GridParts {
                ready: ready.clone(),
                grid: [pieces, 1, 1],
                block: [1; 3],
                params: Params::new(&[], 0),
                dynamic_shared: 0,
                shared: 0,
                local: 0,
                resident_blocks: 1,
                cooperative: false,
                cluster: None,
            };
            let services = Services::new(Nested::new(ready, 0), Vec::new());
            Work::Grid(Grid::new(parts, queue, services, completion))
        }
    }
}
