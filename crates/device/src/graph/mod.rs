//! Graphs: work that is described once and launched many times.
//!
//! A [`Graph`] is edited, an [`ExecutableGraph`] is launched. Nodes of a launch run in one order that respects their
//! dependencies; branches do not run side by side.

pub(crate) mod capture;
mod conditional;
mod executable;
pub(crate) mod launched;
mod likeness;
mod operation;
mod reuse;
mod updatable;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub use capture::{
    CaptureInfo, CaptureMode, CaptureStatus, check_unsafe_call, exchange_thread_mode, is_captured_into,
};
pub use conditional::{Conditional, ConditionalKind};
pub use executable::ExecutableGraph;
pub use likeness::UpdateFailure;
pub use operation::{KernelCall, Operation};
pub use updatable::UpdatableKernel;

use crate::lock::{Rank, RankedMutex};
use crate::memory::AddressSpace;
use crate::{Error, Result};
use conditional::Condition;

/// A node, in whatever graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u64);

impl NodeId {
    /// A number no other node of the process has.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A graph that can be edited.
pub struct Graph {
    nodes: RankedMutex<Nodes>,
    memory: Arc<GraphMemory>,
    attachments: RankedMutex<Vec<Attachment>>,
    /// Words that say what conditional nodes run.
    conditions: RankedMutex<Vec<Condition>>,
    /// What executables leave allocated, as it was when they were made.
    left_allocated: RankedMutex<HashSet<u64>>,
    /// The graph that this one is a body in.
    parent: Option<Weak<Graph>>,
}

/// What the next node of a capture depends on: a node, and what of it is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The node.
    pub node: NodeId,
    /// What of it.
    pub start: EdgeStart,
}

impl Tip {
    /// The end of a node.
    pub fn end(node: NodeId) -> Tip {
        Tip { node, start: EdgeStart::End }
    }
}

pub(crate) fn ids(tips: &[Tip]) -> Vec<NodeId> {
    tips.iter().map(|tip| tip.node).collect()
}

/// What lives as long as a graph, its copies and what was made of them; its end is its `drop`.
pub type Attachment = Arc<dyn std::any::Any + Send + Sync>;

/// What of a node an edge waits for, the earliest first. Where that is less than its end, it is kept and answered: no launch here
/// begins before what it depends on is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeStart {
    /// That a kernel's blocks have begun.
    Begun {
        /// Whether the dependent kernel waits for the rest by itself (`griddepcontrol.wait`).
        programmatic: bool,
    },
    /// That a kernel's blocks have said that dependent ones may begin; these wait for the rest by themselves.
    Triggered,
    /// The end of a node.
    End,
}

impl EdgeStart {
    /// Whether an edge between nodes that are kernels, or are not, can be made so: only kernels have parts, and only kernels wait by
    /// themselves. Captures make others too.
    pub fn is_possible(self, from_kernel: bool, to_kernel: bool) -> bool {
        match self {
            EdgeStart::End => true,
            EdgeStart::Begun { programmatic: false } => from_kernel,
            EdgeStart::Begun { programmatic: true } | EdgeStart::Triggered => from_kernel && to_kernel,
        }
    }
}

#[derive(Clone)]
struct Node {
    /// How many nodes were added to the graph before it.
    local: u32,
    operation: Operation,
    dependencies: Vec<NodeId>,
    /// Those of the dependencies whose end is not waited for.
    early: BTreeMap<NodeId, EdgeStart>,
    /// The nodes that depend on this one.
    dependents: BTreeSet<NodeId>,
}

impl Node {
    /// Takes a dependency away.
    fn forget(&mut self, dependency: NodeId) {
        self.dependencies.retain(|known| *known != dependency);
        self.early.remove(&dependency);
    }
}

/// The nodes of a graph.
#[derive(Default)]
struct Nodes {
    all: BTreeMap<NodeId, Node>,
    /// How many were ever added.
    added: u32,
    /// Nodes that were duplicated to those that were made of them.
    copies: HashMap<NodeId, NodeId>,
    /// How many there are that allocate or free.
    of_memory: usize,
    /// What those do where.
    uses: reuse::UsesOfMemory,
    /// How many there are that are conditional.
    conditional: usize,
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
        Graph::with(Nodes::default(), Arc::default(), Vec::new(), None)
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Arc<Graph> {
        Arc::default()
    }

    /// An empty graph that a conditional node of `parent` chooses.
    fn new_body(parent: &Arc<Graph>) -> Arc<Graph> {
        let parent = Some(Arc::downgrade(parent));
        Arc::new(Graph::with(Nodes::default(), Arc::default(), Vec::new(), parent))
    }

    fn with(
        nodes: Nodes,
        memory: Arc<GraphMemory>,
        attachments: Vec<Attachment>,
        parent: Option<Weak<Graph>>,
    ) -> Graph {
        Graph {
            nodes: RankedMutex::new(Rank::Graph, nodes),
            memory,
            attachments: RankedMutex::new(Rank::GraphMemory, attachments),
            conditions: RankedMutex::new(Rank::GraphMemory, Vec::new()),
            left_allocated: RankedMutex::new(Rank::GraphMemory, HashSet::new()),
            parent,
        }
    }

    /// Adds a node behind others of this graph.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for dependencies that are not here or named twice.
    pub fn add(&self, operation: Operation, dependencies: &[NodeId]) -> Result<NodeId> {
        let mut nodes = self.nodes.lock();
        nodes.check_dependencies(dependencies)?;
        if let Operation::Free { address } = operation {
            nodes.uses.check_not_freed(address)?;
        }
        let id = new_id();
        nodes.insert(id, operation, dependencies.to_vec());
        Ok(id)
    }

    /// Adds a node behind others of this graph, as [`add`](Self::add) does, and says what of them it waits for. Any node may wait for
    /// a part of a kernel here.
    pub(crate) fn add_captured(&self, operation: Operation, tips: &[Tip]) -> Result<NodeId> {
        let node = self.add(operation, &ids(tips))?;
        self.set_captured_starts(node, tips)?;
        Ok(node)
    }

    pub(crate) fn set_captured_starts(&self, node: NodeId, tips: &[Tip]) -> Result<()> {
        let early = tips.iter().filter(|tip| tip.start != EdgeStart::End);
        self.nodes.lock().node(node)?.early.extend(early.map(|tip| (tip.node, tip.start)));
        Ok(())
    }

    /// Adds a node that allocates memory in a context; it lives as long as the graph and what was made of it. Behind a node that frees as much it is
    /// that memory again.
    pub fn add_allocation(
        &self,
        context: &crate::Context,
        size: u64,
        dependencies: &[NodeId],
    ) -> Result<(NodeId, u64)> {
        let free = self.nodes.lock().free_behind(dependencies, size);
        let address = match free {
            Some(address) => address,
            None => {
                let address = context.allocate_for_graph(size)?;
                self.memory.own(context.memory(), address);
                address
            }
        };
        Ok((self.add(Operation::Allocate { address, size }, dependencies)?, address))
    }

    /// Whether there is a node here that allocates or frees.
    pub fn has_memory_nodes(&self) -> bool {
        self.nodes.lock().of_memory > 0
    }

    /// Whether there is a node here that kernels can change.
    pub fn has_updatable_nodes(&self) -> bool {
        self.nodes.lock().all.values().any(|node| node.operation.updatable().is_some())
    }

    /// Has kernels be able to change a kernel's node; the node as they know it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a node that is no kernel, or is not here.
    pub fn let_kernels_change(&self, node: NodeId) -> Result<Arc<UpdatableKernel>> {
        match &mut self.nodes.lock().node(node)?.operation {
            Operation::Kernel(call) => Ok(call.updatable.get_or_insert_with(UpdatableKernel::new).clone()),
            _ => Err(Error::InvalidValue),
        }
    }

    /// Whether there is a conditional node here.
    pub fn has_conditional_nodes(&self) -> bool {
        self.nodes.lock().conditional > 0
    }

    /// Whether this is what a conditional node chooses from.
    pub fn is_body(&self) -> bool {
        self.parent.is_some()
    }

    fn parent(&self) -> Option<Arc<Graph>> {
        self.parent.as_ref()?.upgrade()
    }

    /// Removes a node and its edges.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not here.
    pub fn remove(&self, node: NodeId) -> Result<()> {
        // Dropped outside the lock: what a node does may be a graph.
        let removed = self.nodes.lock().remove(node);
        removed.map(drop)
    }

    /// Makes `to` depend on `from`.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if one is not here, both are the same, or the edge is there. An edge may close a circle, with which
    /// the graph cannot be made ready.
    pub fn add_edge(&self, from: NodeId, to: NodeId) -> Result<()> {
        let mut nodes = self.nodes.lock();
        let known = nodes.all.contains_key(&from) && nodes.all.contains_key(&to);
        if !known || from == to {
            return Err(Error::InvalidValue);
        }
        if !nodes.node(from)?.dependents.insert(to) {
            return Err(Error::InvalidValue);
        }
        nodes.node(to)?.dependencies.push(from);
        Ok(())
    }

    /// Says what of `from` the edge to `to` waits for.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if there is no such edge, or it cannot begin there ([`EdgeStart::is_possible`]).
    pub fn set_edge_start(&self, from: NodeId, to: NodeId, start: EdgeStart) -> Result<()> {
        let mut nodes = self.nodes.lock();
        let is_possible = start.is_possible(nodes.is_kernel(from)?, nodes.is_kernel(to)?);
        let dependent = nodes.node(to)?;
        if !dependent.dependencies.contains(&from) || !is_possible {
            return Err(Error::InvalidValue);
        }
        match start {
            EdgeStart::End => dependent.early.remove(&from),
            _ => dependent.early.insert(from, start),
        };
        Ok(())
    }

    /// Has a kernel begin when the kernels that it depends on let it; what else it depends on ends before, as always.
    pub(crate) fn let_begin_early(&self, node: NodeId) -> Result<()> {
        let kernels: Vec<NodeId> = {
            let mut nodes = self.nodes.lock();
            let dependencies = nodes.node(node)?.dependencies.clone();
            dependencies.into_iter().filter(|from| nodes.is_kernel(*from) == Ok(true)).collect()
        };
        kernels.into_iter().try_for_each(|from| self.set_edge_start(from, node, EdgeStart::Triggered))
    }

    /// Takes an edge out.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not here.
    pub fn remove_edge(&self, from: NodeId, to: NodeId) -> Result<()> {
        let mut nodes = self.nodes.lock();
        if !nodes.node(from)?.dependents.remove(&to) {
            return Err(Error::InvalidValue);
        }
        nodes.node(to)?.forget(from);
        Ok(())
    }

    /// What of `from` an edge to `to` waits for.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if `to` is not here.
    pub fn edge_start(&self, from: NodeId, to: NodeId) -> Result<EdgeStart> {
        Ok(self.nodes.lock().node(to)?.early.get(&from).copied().unwrap_or(EdgeStart::End))
    }

    /// All nodes, in the order in which they were added.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.nodes.lock().all.keys().copied().collect()
    }

    /// A number no other node of this graph has: how many were added before it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a node that is not here.
    pub fn local_number(&self, node: NodeId) -> Result<u32> {
        Ok(self.nodes.lock().node(node)?.local)
    }

    /// Whether all of these nodes are here.
    pub fn has_all(&self, nodes: &[NodeId]) -> bool {
        let known = self.nodes.lock();
        nodes.iter().all(|node| known.all.contains_key(node))
    }

    /// The nodes without dependencies.
    pub fn roots(&self) -> Vec<NodeId> {
        let nodes = self.nodes.lock();
        nodes.all.iter().filter(|(_, node)| node.dependencies.is_empty()).map(|(id, _)| *id).collect()
    }

    /// All edges, from dependency to dependent, in the order of the dependencies, and of what depends on each.
    pub fn edges(&self) -> Vec<(NodeId, NodeId)> {
        let nodes = self.nodes.lock();
        let edges_from = |(id, node): (&NodeId, &Node)| -> Vec<_> {
            node.dependents.iter().map(|to| (*id, *to)).collect()
        };
        nodes.all.iter().flat_map(edges_from).collect()
    }

    /// What a node depends on.
    pub fn dependencies(&self, node: NodeId) -> Result<Vec<NodeId>> {
        Ok(self.nodes.lock().node(node)?.dependencies.clone())
    }

    /// What depends on a node.
    pub fn dependents(&self, node: NodeId) -> Result<Vec<NodeId>> {
        Ok(self.nodes.lock().node(node)?.dependents.iter().copied().collect())
    }

    /// What a node does.
    pub fn operation(&self, node: NodeId) -> Result<Operation> {
        Ok(self.nodes.lock().node(node)?.operation.clone())
    }

    /// An executable is made of it as it is: what its nodes allocate and do not free is not freed by nodes that it gets later.
    pub fn note_left_allocated(&self) {
        let left: Vec<u64> = self.nodes.lock().uses.left().collect();
        self.left_allocated.lock().extend(left);
    }

    /// Whether one of its own nodes allocates this, and an executable was made of it when none freed it.
    pub fn was_left_allocated(&self, address: u64) -> bool {
        self.left_allocated.lock().contains(&address)
    }

    /// Whether a node launches a kernel.
    pub fn is_kernel(&self, node: NodeId) -> Result<bool> {
        self.nodes.lock().is_kernel(node)
    }

    /// What all nodes do.
    fn operations(&self) -> Vec<Operation> {
        self.nodes.lock().all.values().map(|node| node.operation.clone()).collect()
    }

    /// Has a node do something else of the same sort.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for another sort or a node that is not here.
    pub fn set_operation(&self, node: NodeId, operation: Operation) -> Result<()> {
        let mut nodes = self.nodes.lock();
        let node = nodes.node(node)?;
        if !node.operation.is_like(&operation) {
            return Err(Error::InvalidValue);
        }
        let before = std::mem::replace(&mut node.operation, operation);
        drop(nodes);
        drop(before);
        Ok(())
    }

    /// A copy with nodes of its own. It shares the memory of its nodes that allocate, and what its conditional nodes choose from.
    pub fn duplicate(&self) -> Arc<Graph> {
        let all = self.nodes.lock().all.clone();
        let copies: HashMap<NodeId, NodeId> = all.keys().map(|id| (*id, new_id())).collect();
        let mut nodes = Nodes::default();
        // In the order of the new identities, which is that of the old ones; edges may lead back.
        for (id, node) in &all {
            nodes.insert(copies[id], node.operation.clone(), Vec::new());
        }
        for (id, node) in &all {
            let copy = nodes.all.get_mut(&copies[id]).expect("inserted above");
            copy.dependencies = node.dependencies.iter().map(|dependency| copies[dependency]).collect();
            copy.early = node.early.iter().map(|(dependency, start)| (copies[dependency], *start)).collect();
            copy.dependents = node.dependents.iter().map(|dependent| copies[dependent]).collect();
        }
        nodes.copies = copies;
        Arc::new(Graph::with(nodes, self.memory.clone(), self.attachments(), None))
    }

    /// The node that was made of `original` when this graph was duplicated.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if there is none.
    pub fn find_copy(&self, original: NodeId) -> Result<NodeId> {
        let nodes = self.nodes.lock();
        let copy = nodes.copies.get(&original).filter(|copy| nodes.all.contains_key(copy));
        copy.copied().ok_or(Error::InvalidValue)
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

    fn conditions(&self) -> Vec<Condition> {
        self.conditions.lock().clone()
    }

    /// Whether every one of `nodes` is among `from` or what those depend on.
    pub(crate) fn covers(&self, from: &[NodeId], nodes: &[NodeId]) -> bool {
        let all = self.nodes.lock();
        nodes.iter().all(|node| from.iter().any(|start| start == node || all.reaches(*node, *start)))
    }

    /// A node that depends on itself by way of others.
    pub fn circle(&self) -> Option<NodeId> {
        let order = self.in_order();
        let nodes = self.nodes.lock();
        if order.len() == nodes.all.len() {
            return None;
        }
        let reached: BTreeSet<NodeId> = order.into_iter().map(|(id, _)| id).collect();
        let stuck = nodes.all.iter().filter(|(id, _)| !reached.contains(*id));
        let behind = |id: &NodeId| nodes.all[id].dependents.iter().any(|next| !reached.contains(next));
        stuck.map(|(id, _)| *id).find(behind)
    }

    /// The nodes so that each stands behind its dependencies; without those of circles and what is behind them.
    pub fn in_order_of_dependencies(&self) -> Vec<NodeId> {
        self.in_order().into_iter().map(|(id, _)| id).collect()
    }

    /// As [`in_order_of_dependencies`](Self::in_order_of_dependencies), with what they are.
    fn in_order(&self) -> Vec<(NodeId, Node)> {
        let nodes = self.nodes.lock();
        let mut waiting: HashMap<NodeId, usize> =
            nodes.all.iter().map(|(id, node)| (*id, node.dependencies.len())).collect();
        let mut ready: BTreeSet<NodeId> =
            waiting.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        let mut order = Vec::with_capacity(nodes.all.len());
        while let Some(id) = ready.pop_first() {
            let node = &nodes.all[&id];
            order.push((id, node.clone()));
            for dependent in &node.dependents {
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

impl Drop for Graph {
    /// Child graphs go one after the other, however deep they are in each other.
    fn drop(&mut self) {
        let mut left = self.nodes.get_mut().take_children();
        while let Some(graph) = left.pop() {
            if let Some(mut graph) = Arc::into_inner(graph) {
                left.append(&mut graph.nodes.get_mut().take_children());
            }
        }
    }
}

impl Nodes {
    /// The graphs that nodes are, of which nothing is left here.
    fn take_children(&mut self) -> Vec<Arc<Graph>> {
        let mut children = Vec::new();
        for node in self.all.values_mut().filter(|node| matches!(node.operation, Operation::Child(_))) {
            if let Operation::Child(child) = std::mem::replace(&mut node.operation, Operation::Empty) {
                children.push(child);
            }
        }
        children
    }

    fn is_kernel(&mut self, node: NodeId) -> Result<bool> {
        Ok(matches!(self.node(node)?.operation, Operation::Kernel(_)))
    }

    fn node(&mut self, node: NodeId) -> Result<&mut Node> {
        self.all.get_mut(&node).ok_or(Error::InvalidValue)
    }

    fn insert(&mut self, id: NodeId, operation: Operation, dependencies: Vec<NodeId>) {
        for dependency in &dependencies {
            self.all.get_mut(dependency).expect("checked before").dependents.insert(id);
        }
        self.count(&operation, 1);
        self.uses.note(id, &operation);
        let (early, dependents) = (BTreeMap::new(), BTreeSet::new());
        self.all.insert(id, Node { local: self.added, operation, dependencies, early, dependents });
        self.added += 1;
    }

    fn remove(&mut self, id: NodeId) -> Result<Node> {
        let node = self.all.remove(&id).ok_or(Error::InvalidValue)?;
        for dependency in &node.dependencies {
            self.all.get_mut(dependency).expect("both ends of an edge are here").dependents.remove(&id);
        }
        for dependent in &node.dependents {
            let dependent = self.all.get_mut(dependent).expect("both ends of an edge are here");
            dependent.forget(id);
        }
        self.count(&node.operation, -1);
        Ok(node)
    }

    fn count(&mut self, operation: &Operation, change: isize) {
        let counted = match operation {
            Operation::Allocate { .. } | Operation::Free { .. } => &mut self.of_memory,
            Operation::Conditional(_) => &mut self.conditional,
            _ => return,
        };
        *counted = counted.saturating_add_signed(change);
    }

    fn check_dependencies(&self, dependencies: &[NodeId]) -> Result<()> {
        let mut seen = BTreeSet::new();
        let valid = dependencies
            .iter()
            .all(|dependency| self.all.contains_key(dependency) && seen.insert(*dependency));
        if valid { Ok(()) } else { Err(Error::InvalidValue) }
    }

    /// Whether `to` depends on `from`, however indirectly.
    fn reaches(&self, from: NodeId, to: NodeId) -> bool {
        let mut seen = BTreeSet::new();
        let mut pending = vec![to];
        while let Some(id) = pending.pop() {
            for dependency in self.all.get(&id).into_iter().flat_map(|node| &node.dependencies) {
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
}

impl GraphMemory {
    /// Takes an allocation over.
    fn own(&self, space: &Arc<AddressSpace>, address: u64) {
        let id = space.find(address).map_or(0, |found| found.id);
        self.owned.lock().push((space.clone(), address, id));
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        for (space, address, id) in self.owned.lock().drain(..) {
            space.disown_graph_memory(address, id);
        }
    }
}

fn new_id() -> NodeId {
    static LAST: AtomicU64 = AtomicU64::new(0);
    NodeId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_there_once_and_circles_are_found() {
        let graph = Graph::new();
        let a = graph.add(Operation::Empty, &[]).unwrap();
        let b = graph.add(Operation::Empty, &[a]).unwrap();
        let c = graph.add(Operation::Empty, &[b]).unwrap();
        assert_eq!(graph.add(Operation::Empty, &[a, a]), Err(Error::InvalidValue));
        assert_eq!(graph.add_edge(a, a), Err(Error::InvalidValue));
        assert_eq!(graph.add_edge(a, b), Err(Error::InvalidValue), "there already");
        assert_eq!(graph.circle(), None);
        graph.add_edge(c, a).unwrap();
        assert!([a, b, c].contains(&graph.circle().unwrap()));
        graph.remove_edge(c, a).unwrap();
        assert_eq!(graph.circle(), None);
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
    fn graphs_are_in_each_other_however_deep() {
        let space = crate::memory::AddressSpace::new(&[1 << 20]).unwrap();
        let mut graph = Graph::new();
        graph.add(Operation::Empty, &[]).unwrap();
        for _ in 0..100_000 {
            let outer = Graph::new();
            outer.add(Operation::Child(graph.duplicate()), &[]).unwrap();
            graph = outer;
        }
        assert_eq!(graph.misplaced(&space), None);
        let executable = ExecutableGraph::new(&graph);
        assert_eq!(executable.update(&graph.duplicate()), Ok(()));
        drop(graph);
        drop(executable);
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
