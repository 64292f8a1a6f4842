//! Graphs that are launched.

use std::sync::Arc;

use super::{Graph, GraphMemory, NodeId, Operation};
use crate::lock::{Rank, RankedMutex};
use crate::stream::Completion;
use crate::{Error, Result, Stream};

/// A graph made ready to be launched; its operations can still be exchanged.
pub struct ExecutableGraph {
    /// In an order that respects dependencies, child graphs opened up.
    steps: RankedMutex<Vec<Step>>,
    /// The end of the last launch: launches of one graph do not overlap.
    last: RankedMutex<Option<Arc<Completion>>>,
    memory: RankedMutex<Vec<Arc<GraphMemory>>>,
}

#[derive(Clone)]
struct Step {
    node: NodeId,
    operation: Operation,
    /// Positions of the steps it depends on, to compare with another graph.
    dependencies: Vec<usize>,
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
        let mut memory = Vec::new();
        let mut steps = Vec::new();
        open_up(graph, &mut steps, &mut memory);
        ExecutableGraph {
            steps: RankedMutex::new(Rank::Graph, steps),
            last: RankedMutex::new(Rank::Event, None),
            memory: RankedMutex::new(Rank::Graph, memory),
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
        let memory = self.memory.lock().clone();
        let end = stream.mark(move || drop(memory))?;
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

    /// Takes over the operations of a graph of the same form.
    pub fn update(&self, graph: &Graph) -> std::result::Result<(), UpdateFailure> {
        let (mut new, mut memory) = (Vec::new(), Vec::new());
        open_up(graph, &mut new, &mut memory);
        let mut steps = self.steps.lock();
        if steps.len() != new.len() {
            return Err(UpdateFailure::TopologyChanged);
        }
        for (step, new) in steps.iter().zip(&new) {
            if step.dependencies != new.dependencies {
                return Err(UpdateFailure::TopologyChanged);
            }
            if !step.operation.is_like(&new.operation) {
                return Err(UpdateFailure::NodeTypeChanged(new.node));
            }
        }
        for (step, new) in steps.iter_mut().zip(new) {
            step.operation = new.operation;
        }
        drop(steps);
        *self.memory.lock() = memory;
        Ok(())
    }
}

/// Appends the steps of a graph. A child graph's come before an empty step that stands for its node.
fn open_up(graph: &Graph, steps: &mut Vec<Step>, memory: &mut Vec<Arc<GraphMemory>>) {
    memory.push(graph.memory().clone());
    let mut positions = std::collections::HashMap::new();
    for (id, node) in graph.in_order() {
        let mut dependencies: Vec<usize> = node.dependencies.iter().map(|id| positions[id]).collect();
        let operation = match node.operation {
            Operation::Child(child) => {
                let first = steps.len();
                open_up(&child, steps, memory);
                dependencies.extend(first..steps.len());
                Operation::Empty
            }
            operation => operation,
        };
        dependencies.sort_unstable();
        positions.insert(id, steps.len());
        steps.push(Step { node: id, operation, dependencies, enabled: true });
    }
}
