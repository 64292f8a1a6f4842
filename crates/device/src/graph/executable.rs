//! Graphs that are launched.

use std::sync::Arc;

use super::{Attachment, Graph, GraphMemory, NodeId, Operation};
use crate::lock::{Rank, RankedMutex};
use crate::stream::Completion;
use crate::{Error, Result, Stream};

/// A graph made ready to be launched; its operations can still be exchanged.
pub struct ExecutableGraph {
    /// In an order that respects dependencies, child graphs opened up.
    steps: RankedMutex<Vec<Step>>,
    /// The end of the last launch: launches of one graph do not overlap.
    last: RankedMutex<Option<Arc<Completion>>>,
    kept: RankedMutex<Kept>,
}

/// What must live until the last launch is over.
#[derive(Clone, Default)]
struct Kept {
    memory: Vec<Arc<GraphMemory>>,
    attachments: Vec<Attachment>,
}

#[derive(Clone)]
struct Step {
    node: NodeId,
    operation: Operation,
    /// Positions of the steps it depends on, to compare with another graph.
    dependencies: Vec<usize>,
    /// How many steps before this one are those of the graph that this node is.
    children: usize,
    enabled: bool,
}

/// Why an executable graph cannot become like another graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateFailure {
    /// Nodes or edges differ.
    TopologyChanged,
    /// A node does something of another sort; the node is the other graph's.
    NodeTypeChanged(NodeId),
}

impl ExecutableGraph {
    /// Makes a graph ready.
    pub fn new(graph: &Graph) -> ExecutableGraph {
        let mut kept = Kept::default();
        let mut steps = Vec::new();
        open_up(graph, &mut steps, &mut kept);
        ExecutableGraph {
            steps: RankedMutex::new(Rank::Graph, steps),
            last: RankedMutex::new(Rank::Event, None),
            kept: RankedMutex::new(Rank::Graph, kept),
        }
    }

    /// Queues all of it. A stream that captures gets the operations as nodes.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let steps = self.steps.lock().clone();
        let context = stream.context()?;
        context.check()?;
        if stream.is_capturing() {
            let enabled = steps.iter().filter(|step| step.enabled);
            return enabled.map(|step| step.operation.clone()).try_for_each(|step| stream.perform(step));
        }
        let before = self.last.lock().clone().filter(|last| !last.is_finished());
        if let Some(before) = before {
            stream.wait_completion(before)?;
        }
        for step in steps.iter().filter(|step| step.enabled) {
            stream.run_operation(step.operation.clone())?;
        }
        let kept = self.kept.lock().clone();
        let end = stream.mark(move || drop(kept))?;
        *self.last.lock() = Some(end);
        Ok(())
    }

    /// Has a node do something else of the same sort, from the next launch on.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for another sort or a node that the graph did not have.
    pub fn set_operation(&self, node: NodeId, operation: Operation) -> Result<()> {
        let mut steps = self.steps.lock();
        let step = steps.iter_mut().find(|step| step.node == node).ok_or(Error::InvalidValue)?;
        if !step.operation.is_like(&operation) {
            return Err(Error::InvalidValue);
        }
        step.operation = operation;
        Ok(())
    }

    /// What a node does.
    pub fn operation(&self, node: NodeId) -> Result<Operation> {
        let steps = self.steps.lock();
        let step = steps.iter().find(|step| step.node == node).ok_or(Error::InvalidValue)?;
        Ok(step.operation.clone())
    }

    /// Leaves a node out of launches, or takes it in again.
    pub fn set_enabled(&self, node: NodeId, enabled: bool) -> Result<()> {
        let mut steps = self.steps.lock();
        steps.iter_mut().find(|step| step.node == node).ok_or(Error::InvalidValue)?.enabled = enabled;
        Ok(())
    }

    /// Whether launches run a node.
    pub fn is_enabled(&self, node: NodeId) -> Result<bool> {
        let steps = self.steps.lock();
        Ok(steps.iter().find(|step| step.node == node).ok_or(Error::InvalidValue)?.enabled)
    }

    /// Has a node that is a graph do what another graph of the same form does, from the next launch on.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a graph of another form, or a node that the graph did not have or that is no graph.
    pub fn set_child(&self, node: NodeId, graph: &Graph) -> Result<()> {
        let (mut new, mut kept) = (Vec::new(), Kept::default());
        open_up(graph, &mut new, &mut kept);
        let mut steps = self.steps.lock();
        let at = steps.iter().position(|step| step.node == node).ok_or(Error::InvalidValue)?;
        let children = steps[at].children;
        if children == 0 {
            return Err(Error::InvalidValue);
        }
        let first = at - children;
        replace(&mut steps[first..at], first, new).map_err(|_| Error::InvalidValue)?;
        drop(steps);
        let mut all = self.kept.lock();
        all.memory.extend(kept.memory);
        all.attachments.extend(kept.attachments);
        Ok(())
    }

    /// Takes over the operations of a graph of the same form.
    pub fn update(&self, graph: &Graph) -> std::result::Result<(), UpdateFailure> {
        let (mut new, mut kept) = (Vec::new(), Kept::default());
        open_up(graph, &mut new, &mut kept);
        let mut steps = self.steps.lock();
        replace(&mut steps, 0, new)?;
        drop(steps);
        let before = std::mem::replace(&mut *self.kept.lock(), kept);
        drop(before);
        Ok(())
    }
}

/// Has steps do what others of the same form do. The dependencies of `steps` count from `base`.
fn replace(steps: &mut [Step], base: usize, new: Vec<Step>) -> std::result::Result<(), UpdateFailure> {
    if steps.len() != new.len() {
        return Err(UpdateFailure::TopologyChanged);
    }
    for (step, new) in steps.iter().zip(&new) {
        if !step.dependencies.iter().copied().eq(new.dependencies.iter().map(|dependency| base + dependency))
        {
            return Err(UpdateFailure::TopologyChanged);
        }
        if !step.operation.is_like(&new.operation) {
            return Err(UpdateFailure::NodeTypeChanged(new.node));
        }
    }
    for (step, new) in steps.iter_mut().zip(new) {
        step.operation = new.operation;
    }
    Ok(())
}

/// Appends the steps of a graph. A child graph's come before an empty step that stands for its node.
fn open_up(graph: &Graph, steps: &mut Vec<Step>, kept: &mut Kept) {
    kept.memory.push(graph.memory().clone());
    kept.attachments.extend(graph.attachments());
    let mut positions = std::collections::HashMap::new();
    for (id, node) in graph.in_order() {
        let mut dependencies: Vec<usize> = node.dependencies.iter().map(|id| positions[id]).collect();
        let first = steps.len();
        let operation = match node.operation {
            Operation::Child(child) => {
                open_up(&child, steps, kept);
                dependencies.extend(first..steps.len());
                Operation::Empty
            }
            operation => operation,
        };
        let children = steps.len() - first;
        dependencies.sort_unstable();
        positions.insert(id, steps.len());
        steps.push(Step { node: id, operation, dependencies, children, enabled: true });
    }
}
