//! Graphs: work that is described once and launched many times.
//!
//! A [`Graph`] is edited, an [`ExecutableGraph`] is launched. Nodes of a launch run in one order that respects their
//! dependencies; branches do not run side by side.

pub(crate) mod capture;
mod executable;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use capture::{CaptureInfo, CaptureMode, CaptureStatus, check_unsafe_call, exchange_thread_mode};
pub use executable::{ExecutableGraph, UpdateFailure};

use crate::lock::{Rank, RankedMutex};
use crate::memory::{AddressSpace, Fill, Transfer};
use crate::stream::{Condition, Width};
use crate::{Error, Event, Function, Launch, Result};

/// A node, in whatever graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u64);

impl NodeId {
    /// A number no other node of the process has.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A kernel with all that a launch needs.
#[derive(Clone)]
pub struct KernelCall {
    /// The kernel.
    pub function: Arc<Function>,
    /// The shape.
    pub launch: Launch,
    /// Its parameters.
    pub params: Vec<u8>,
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
    /// Waits for a word of memory.
    WaitValue {
        /// Of the word.
        address: u64,
        /// Of the word.
        width: Width,
        /// What it is compared with.
        value: u64,
        /// How it is compared.
        condition: Condition,
    },
    /// Stores a word of memory.
    WriteValue {
        /// Of the word.
        address: u64,
        /// Of the word.
        width: Width,
        /// What is stored.
        value: u64,
    },
    /// Runs another graph, as it was when this one was instantiated.
    Child(Arc<Graph>),
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
    /// Whether two operations are of one sort, so that one can replace the other in an executable graph.
    pub fn is_like(&self, other: &Operation) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A graph that can be edited.
pub struct Graph {
    nodes: RankedMutex<BTreeMap<NodeId, Node>>,
    memory: Arc<GraphMemory>,
    attachments: RankedMutex<Vec<Attachment>>,
}

/// What lives as long as a graph, its copies and what was made of them; its end is its `drop`.
pub type Attachment = Arc<dyn std::any::Any + Send + Sync>;

#[derive(Clone)]
struct Node {
    operation: Operation,
    dependencies: Vec<NodeId>,
    /// The node this one was cloned from.
    original: Option<NodeId>,
}

/// Allocations of nodes, freed with the last user of the graph.
pub(crate) struct GraphMemory {
    owned: RankedMutex<Vec<(Arc<AddressSpace>, u64, u64)>>,
}

impl Default for GraphMemory {
    fn default() -> GraphMemory {
        GraphMemory { owned: RankedMutex::new(Rank::GraphMemory, Vec::new()) }
    }
}

impl Default for Graph {
    fn default() -> Graph {
        let attachments = RankedMutex::new(Rank::GraphMemory, Vec::new());
        Graph { nodes: RankedMutex::new(Rank::Graph, BTreeMap::new()), memory: Arc::default(), attachments }
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Arc<Graph> {
        Arc::default()
    }

    /// Adds a node behind others of this graph.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for dependencies that are not here or named twice.
    pub fn add(&self, operation: Operation, dependencies: &[NodeId]) -> Result<NodeId> {
        let mut nodes = self.nodes.lock();
        check_dependencies(&nodes, dependencies)?;
        let id = new_id();
        nodes.insert(id, Node { operation, dependencies: dependencies.to_vec(), original: None });
        Ok(id)
    }

    /// Adds a node that allocates memory in a context; it lives as long as the graph and what was made of it.
    pub fn add_allocation(
        &self,
        context: &crate::Context,
        size: u64,
        dependencies: &[NodeId],
    ) -> Result<(NodeId, u64)> {
        let address = context.allocate_as(size, crate::memory::Kind::Pooled)?;
        let space = context.memory().clone();
        let id = space.find(address).map_or(0, |found| found.id);
        self.memory.owned.lock().push((space, address, id));
        Ok((self.add(Operation::Allocate { address, size }, dependencies)?, address))
    }

    /// Removes a node and its edges.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not here.
    pub fn remove(&self, node: NodeId) -> Result<()> {
        let mut nodes = self.nodes.lock();
        nodes.remove(&node).ok_or(Error::InvalidValue)?;
        for other in nodes.values_mut() {
            other.dependencies.retain(|dependency| *dependency != node);
        }
        Ok(())
    }

    /// Makes `to` depend on `from`.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if one is not here, they depend on each other already, or `from` on `to`.
    pub fn add_edge(&self, from: NodeId, to: NodeId) -> Result<()> {
        let mut nodes = self.nodes.lock();
        if !nodes.contains_key(&from) || !nodes.contains_key(&to) || from == to || reaches(&nodes, to, from) {
            return Err(Error::InvalidValue);
        }
        let dependencies = &mut nodes.get_mut(&to).ok_or(Error::InvalidValue)?.dependencies;
        if dependencies.contains(&from) {
            return Err(Error::InvalidValue);
        }
        dependencies.push(from);
        Ok(())
    }

    /// Takes an edge out.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not here.
    pub fn remove_edge(&self, from: NodeId, to: NodeId) -> Result<()> {
        let mut nodes = self.nodes.lock();
        let dependencies = &mut nodes.get_mut(&to).ok_or(Error::InvalidValue)?.dependencies;
        let at = dependencies.iter().position(|dependency| *dependency == from).ok_or(Error::InvalidValue)?;
        dependencies.remove(at);
        Ok(())
    }

    /// All nodes, in the order in which they were added.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.nodes.lock().keys().copied().collect()
    }

    /// The nodes without dependencies.
    pub fn roots(&self) -> Vec<NodeId> {
        let nodes = self.nodes.lock();
        nodes.iter().filter(|(_, node)| node.dependencies.is_empty()).map(|(id, _)| *id).collect()
    }

    /// All edges, from dependency to dependent.
    pub fn edges(&self) -> Vec<(NodeId, NodeId)> {
        let nodes = self.nodes.lock();
        nodes.iter().flat_map(|(id, node)| node.dependencies.iter().map(move |from| (*from, *id))).collect()
    }

    /// What a node depends on.
    pub fn dependencies(&self, node: NodeId) -> Result<Vec<NodeId>> {
        let nodes = self.nodes.lock();
        Ok(nodes.get(&node).ok_or(Error::InvalidValue)?.dependencies.clone())
    }

    /// What depends on a node.
    pub fn dependents(&self, node: NodeId) -> Result<Vec<NodeId>> {
        let nodes = self.nodes.lock();
        if !nodes.contains_key(&node) {
            return Err(Error::InvalidValue);
        }
        Ok(nodes.iter().filter(|(_, other)| other.dependencies.contains(&node)).map(|(id, _)| *id).collect())
    }

    /// What a node does.
    pub fn operation(&self, node: NodeId) -> Result<Operation> {
        Ok(self.nodes.lock().get(&node).ok_or(Error::InvalidValue)?.operation.clone())
    }

    /// Has a node do something else of the same sort.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for another sort or a node that is not here.
    pub fn set_operation(&self, node: NodeId, operation: Operation) -> Result<()> {
        let mut nodes = self.nodes.lock();
        let node = nodes.get_mut(&node).ok_or(Error::InvalidValue)?;
        if !node.operation.is_like(&operation) {
            return Err(Error::InvalidValue);
        }
        node.operation = operation;
        Ok(())
    }

    /// A copy with nodes of its own. It shares the memory of its nodes that allocate.
    pub fn duplicate(&self) -> Arc<Graph> {
        let nodes = self.nodes.lock().clone();
        let new: BTreeMap<NodeId, NodeId> = nodes.keys().map(|id| (*id, new_id())).collect();
        let copy = nodes.into_iter().map(|(id, node)| {
            let dependencies = node.dependencies.iter().map(|dependency| new[dependency]).collect();
            (new[&id], Node { dependencies, original: Some(id), ..node })
        });
        Arc::new(Graph {
            nodes: RankedMutex::new(Rank::Graph, copy.collect()),
            memory: self.memory.clone(),
            attachments: RankedMutex::new(Rank::GraphMemory, self.attachments()),
        })
    }

    /// The node that was made of `original` when this graph was duplicated.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if there is none.
    pub fn find_copy(&self, original: NodeId) -> Result<NodeId> {
        let nodes = self.nodes.lock();
        let found = nodes.iter().find(|(_, node)| node.original == Some(original));
        found.map(|(id, _)| *id).ok_or(Error::InvalidValue)
    }

    /// Has something live as long as the graph.
    pub fn attach(&self, attachment: Attachment) {
        self.attachments.lock().push(attachment);
    }

    /// Takes out what `which` chooses, the newest first, at most `count` of them.
    pub fn detach(&self, count: usize, which: impl Fn(&Attachment) -> bool) -> Vec<Attachment> {
        let mut attachments = self.attachments.lock();
        let mut found = Vec::new();
        while found.len() < count {
            let Some(at) = attachments.iter().rposition(&which) else { break };
            found.push(attachments.remove(at));
        }
        found
    }

    /// What lives as long as the graph.
    pub fn attachments(&self) -> Vec<Attachment> {
        self.attachments.lock().clone()
    }

    pub(crate) fn memory(&self) -> &Arc<GraphMemory> {
        &self.memory
    }

    /// Whether every one of `nodes` is among `from` or what those depend on.
    pub(crate) fn covers(&self, from: &[NodeId], nodes: &[NodeId]) -> bool {
        let all = self.nodes.lock();
        nodes.iter().all(|node| from.iter().any(|start| start == node || reaches(&all, *node, *start)))
    }

    /// The nodes so that each stands behind its dependencies.
    fn in_order(&self) -> Vec<(NodeId, Node)> {
        let nodes = self.nodes.lock();
        let mut waiting: BTreeMap<NodeId, usize> =
            nodes.iter().map(|(id, node)| (*id, node.dependencies.len())).collect();
        let mut dependents: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for (id, node) in nodes.iter() {
            for dependency in &node.dependencies {
                dependents.entry(*dependency).or_default().push(*id);
            }
        }
        let mut ready: std::collections::BTreeSet<NodeId> =
            waiting.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        let mut order = Vec::with_capacity(nodes.len());
        while let Some(id) = ready.pop_first() {
            order.push((id, nodes[&id].clone()));
            for dependent in dependents.get(&id).into_iter().flatten() {
                let count = waiting.get_mut(dependent).expect("every node is counted");
                *count -= 1;
                if *count == 0 {
                    ready.insert(*dependent);
                }
            }
        }
        order
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        for (space, address, id) in self.owned.lock().drain(..) {
            // The program may have freed it itself.
            let _ = space.free(address, |allocation| allocation.id == id);
        }
    }
}

fn new_id() -> NodeId {
    static LAST: AtomicU64 = AtomicU64::new(0);
    NodeId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

fn check_dependencies(nodes: &BTreeMap<NodeId, Node>, dependencies: &[NodeId]) -> Result<()> {
    let valid = dependencies
        .iter()
        .enumerate()
        .all(|(at, dependency)| nodes.contains_key(dependency) && !dependencies[..at].contains(dependency));
    if valid { Ok(()) } else { Err(Error::InvalidValue) }
}

/// Whether `to` depends on `from`, however indirectly.
fn reaches(nodes: &BTreeMap<NodeId, Node>, from: NodeId, to: NodeId) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    let mut pending = vec![to];
    while let Some(id) = pending.pop() {
        for dependency in nodes.get(&id).into_iter().flat_map(|node| &node.dependencies) {
            if *dependency == from {
                return true;
            }
            if seen.insert(*dependency) {
                pending.push(*dependency);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_make_no_cycles() {
        let graph = Graph::new();
        let a = graph.add(Operation::Empty, &[]).unwrap();
        let b = graph.add(Operation::Empty, &[a]).unwrap();
        let c = graph.add(Operation::Empty, &[b]).unwrap();
        assert_eq!(graph.add(Operation::Empty, &[a, a]), Err(Error::InvalidValue));
        assert_eq!(graph.add_edge(c, a), Err(Error::InvalidValue));
        assert_eq!(graph.add_edge(a, b), Err(Error::InvalidValue), "there already");
        graph.add_edge(a, c).unwrap();
        assert_eq!(graph.roots(), [a]);
        assert_eq!(graph.edges().len(), 3);
        graph.remove(b).unwrap();
        assert_eq!(graph.edges(), [(a, c)]);
        assert_eq!(graph.dependents(a).unwrap(), [c]);
        assert_eq!(graph.dependencies(b), Err(Error::InvalidValue));
        graph.remove_edge(a, c).unwrap();
        assert_eq!(graph.roots(), [a, c]);
    }

    #[test]
    fn order_respects_edges_added_later() {
        let graph = Graph::new();
        let nodes: Vec<NodeId> = (0..10).map(|_| graph.add(Operation::Empty, &[]).unwrap()).collect();
        for pair in nodes.windows(2) {
            graph.add_edge(pair[1], pair[0]).unwrap();
        }
        let order: Vec<NodeId> = graph.in_order().into_iter().map(|(id, _)| id).collect();
        assert_eq!(order, nodes.iter().rev().copied().collect::<Vec<_>>());
        let copy = graph.duplicate();
        let last = copy.find_copy(nodes[9]).unwrap();
        assert_eq!(copy.roots(), [last]);
        assert_eq!(copy.find_copy(last), Err(Error::InvalidValue));
        assert!(graph.covers(&[nodes[0]], &nodes));
        assert!(!graph.covers(&[nodes[5]], &nodes[..5]));
    }
}
