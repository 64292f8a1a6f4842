//! Graphs that kernels launch (the section on launching graphs from the device in CUDA's programming guide).
//!
//! A graph that was made ready for that is known to kernels by the handle that the host has. What a kernel launches at once begins in a queue of its own
//! and belongs to the grid as the kernels that it launches do ([`nested`](crate::nested)): the graph that the grid is of ends
//! when that has ended. What it leaves for the end of its graph, which may be the graph itself, comes behind the last step, one after the other.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::executable::{ExecutableGraph, works_of};
use crate::lock::{Rank, RankedMutex};
use crate::stream::{Completion, Work};
use crate::{Context, Error};

/// A graph that kernels can launch. What contexts know of graphs, and graphs of contexts, goes round in circles; here it is opaque, since the compiler
/// takes ages to go round.
pub(crate) trait Launchable: Send + Sync {
    /// Whether it is where a device launches it from.
    fn is_uploaded(&self) -> bool;

    /// Takes it for a launch by a kernel that begins at once and is over at this end. False while such a launch is not over: a graph does
    /// not run beside itself.
    fn take(&self, end: &Arc<Completion>) -> bool;

    /// A launch, as a command.
    fn work(self: Arc<Self>, context: Weak<Context>) -> Work;
}

impl Launchable for ExecutableGraph {
    fn is_uploaded(&self) -> bool {
        ExecutableGraph::is_uploaded(self)
    }

    fn take(&self, end: &Arc<Completion>) -> bool {
        self.take_for_kernel(end)
    }

    fn work(self: Arc<Self>, context: Weak<Context>) -> Work {
        launch(self, context)
    }
}

/// One launch of a graph, which its kernels belong to.
pub(crate) struct GraphLaunch {
    /// What kernels know the graph by; 0 if they cannot launch it.
    handle: u64,
    /// What comes behind its end, with what kernels know it by.
    tail: RankedMutex<VecDeque<(u64, Arc<dyn Launchable>)>>,
}

impl GraphLaunch {
    /// What kernels know the graph by; 0 if they cannot launch it.
    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    /// Leaves a graph for the end of this launch. False where that would be too many, or it is left there already.
    pub(crate) fn add_tail(&self, handle: u64, graph: Arc<dyn Launchable>) -> bool {
        const MOST: usize = 255;
        let mut tail = self.tail.lock();
        let fits = tail.len() < MOST && tail.iter().all(|(other, _)| *other != handle);
        if fits {
            tail.push_back((handle, graph));
        }
        fits
    }
}

/// A launch of a graph, as a command: its steps, and what their kernels leave for its end.
pub(crate) fn launch(graph: Arc<ExecutableGraph>, context: Weak<Context>) -> Work {
    Work::Branch(Box::new(move |queue| {
        let tail = RankedMutex::new(Rank::GraphLaunch, VecDeque::new());
        let launch = Arc::new(GraphLaunch { handle: graph.handle(), tail });
        let here = context.upgrade().ok_or(Error::ContextIsDestroyed)?;
        let mut works = works_of(&here, queue, &graph.steps(), Some(&launch))?;
        works.push(end_of(launch, context));
        Ok(works)
    }))
}

/// What comes behind the steps of a launch.
fn end_of(launch: Arc<GraphLaunch>, context: Weak<Context>) -> Work {
    Work::Branch(Box::new(move |_| {
        let (next, is_last) = {
            let mut tail = launch.tail.lock();
            (tail.pop_front(), tail.is_empty())
        };
        Ok(match next {
            None => Vec::new(),
            Some((_, next)) if is_last => vec![next.work(context)],
            Some((_, next)) => vec![next.work(context.clone()), end_of(launch, context)],
        })
    }))
}
