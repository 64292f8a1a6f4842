//! What nodes do.

use std::sync::Arc;

use super::{Conditional, Graph, UpdatableKernel};
use crate::memory::{Fill, Transfer};
use crate::stream::WordOperation;
use crate::{Event, Function, Launch, SemaphoreUse};

/// A kernel with all that a launch needs.
#[derive(Clone)]
pub struct KernelCall {
    /// The kernel.
    pub function: Arc<Function>,
    /// The shape.
    pub launch: Launch,
    /// Its parameters.
    pub params: Vec<u8>,
    /// What kernels can change of it.
    pub updatable: Option<Arc<UpdatableKernel>>,
}

/// What a node does.
#[derive(Clone)]
pub enum Operation {
    /// Nothing: joins dependencies.
    Empty,
    /// Runs a kernel.
    Kernel(KernelCall),
    /// Copies; memory of the program is read or written when the node runs.
    Copy(Transfer),
    /// Sets memory.
    Fill(Fill),
    /// Calls a function of the program.
    Host(Arc<dyn Fn() + Send + Sync>),
    /// Records an event.
    Record(Arc<Event>),
    /// Waits for what an event stands for when the node runs.
    Wait(Arc<Event>),
    /// Waits for words of memory and stores them, one after the other.
    Words(Arc<[WordOperation]>),
    /// Signals semaphores of other APIs.
    Signal(Arc<[SemaphoreUse]>),
    /// Waits for semaphores of other APIs, one after the other.
    AwaitSemaphores(Arc<[SemaphoreUse]>),
    /// Runs another graph, as it was when this one was instantiated.
    Child(Arc<Graph>),
    /// Runs graphs of its own as a word of memory says.
    Conditional(Conditional),
    /// Memory that is there as long as the graph.
    Allocate {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// The end of the use of such memory.
    Free {
        /// First byte.
        address: u64,
    },
}

impl Operation {
    /// Whether two operations are of one sort, so that one can replace the other in a graph.
    pub fn is_like(&self, other: &Operation) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Whether an operation of the same sort can also replace this one in an executable graph, where the number of
    /// operations on words and what each of them does stay the same, the number of semaphores, how a conditional node chooses, where
    /// a copied row is and all about a copy of several, and the shape of several rows that are set.
    pub(super) fn has_form_of(&self, other: &Operation) -> bool {
        match (self, other) {
            (Operation::Signal(these), Operation::Signal(those))
            | (Operation::AwaitSemaphores(these), Operation::AwaitSemaphores(those)) => {
                these.len() == those.len()
            }
            (Operation::Conditional(this), Operation::Conditional(other)) => this.has_form_of(other),
            (Operation::Words(these), Operation::Words(those)) => {
                these.len() == those.len()
                    && these.iter().zip(&**those).all(|(this, that)| this.is_like(that))
            }
            (Operation::Copy(this), Operation::Copy(other)) => {
                let same_ends =
                    this.to.start.is_like(other.to.start) && this.from.start.is_like(other.from.start);
                this == other || (this.extent.is_row() && other.extent.is_row() && same_ends)
            }
            (Operation::Fill(this), Operation::Fill(other)) => {
                let shape = |fill: &Fill| (fill.element, fill.width, fill.height, fill.pitch);
                (this.height <= 1 && other.height <= 1) || shape(this) == shape(other)
            }
            _ => true,
        }
    }

    /// Whether graphs that kernels launch may have it.
    pub fn is_for_kernels(&self) -> bool {
        matches!(self, Operation::Empty | Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(_))
    }

    /// Whether it is a kernel all blocks of which run together.
    pub(super) fn is_cooperative(&self) -> bool {
        matches!(self, Operation::Kernel(call) if call.launch.cooperative)
    }

    /// Checks that the blocks of a kernel can run in the clusters that it asks for.
    ///
    /// # Errors
    /// [`Error::InvalidClusterSize`](crate::Error::InvalidClusterSize).
    pub fn check_clusters(&self) -> crate::Result<()> {
        match self {
            Operation::Kernel(call) => call.function.cluster_if_any(&call.launch).map(drop),
            _ => Ok(()),
        }
    }

    /// The operation with what is set for a node by itself, and not with its parameters: how a kernel's blocks run together.
    #[must_use]
    pub fn with_attributes_of(mut self, other: &Operation) -> Operation {
        if let (Operation::Kernel(call), Operation::Kernel(other)) = (&mut self, other) {
            call.launch.cooperative = other.launch.cooperative;
            call.launch.cluster = other.launch.cluster;
            call.updatable.clone_from(&other.updatable);
        }
        self
    }

    /// What kernels can change of it.
    pub fn updatable(&self) -> Option<&Arc<UpdatableKernel>> {
        match self {
            Operation::Kernel(call) => call.updatable.as_ref(),
            _ => None,
        }
    }
}
