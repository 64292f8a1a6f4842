//! Addresses that several nodes of one graph allocate, one after the other.
//!
//! What is allocated behind a node that frees as much has the addresses that are free then, as on a GPU: a capture of a loop that allocates and
//! frees needs no more memory than one turn of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{NodeId, Nodes, Operation};
use crate::{Error, Result};

/// How often nodes of a graph allocate and free at an address.
#[derive(Default)]
pub(super) struct Uses {
    size: u64,
    allocated: usize,
    freed: usize,
    last_freed: Option<NodeId>,
}

/// By address.
#[derive(Default)]
pub(super) struct UsesOfMemory(BTreeMap<u64, Uses>);

impl UsesOfMemory {
    pub(super) fn note(&mut self, node: NodeId, operation: &Operation) {
        match operation {
            Operation::Allocate { address, size } => {
                let uses = self.0.entry(*address).or_default();
                uses.size = *size;
                uses.allocated += 1;
            }
            Operation::Free { address } => {
                let uses = self.0.entry(*address).or_default();
                uses.freed += 1;
                uses.last_freed = Some(node);
            }
            _ => {}
        }
    }

    /// A node frees what is allocated here once, and what is not once as well.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for more.
    pub(super) fn check_not_freed(&self, address: u64) -> Result<()> {
        match self.0.get(&address) {
            Some(uses) if uses.freed >= uses.allocated.max(1) => Err(Error::InvalidValue),
            _ => Ok(()),
        }
    }

    /// What is allocated here and not freed.
    pub(super) fn left(&self) -> impl Iterator<Item = u64> {
        self.0.iter().filter(|(_, uses)| uses.allocated > uses.freed).map(|(address, _)| *address)
    }

    /// Whether this node has freed so many bytes, and none has allocated them again.
    fn is_free_behind(&self, node: NodeId, address: u64, size: u64) -> bool {
        let is_free = |uses: &Uses| uses.allocated == uses.freed && uses.last_freed == Some(node);
        self.0.get(&address).is_some_and(|uses| uses.size == size && is_free(uses))
    }
}

impl Nodes {
    /// Addresses of an allocation of this size that one of the dependencies, or what they depend on, has freed last.
    pub(super) fn free_behind(&self, dependencies: &[NodeId], size: u64) -> Option<u64> {
        /// Nodes that are looked at, at most: those that free what is wanted again are near.
        const MOST: usize = 4096;
        let (mut seen, mut pending) = (BTreeSet::new(), VecDeque::from_iter(dependencies.iter().copied()));
        while let Some(id) = pending.pop_front() {
            if !seen.insert(id) || seen.len() > MOST {
                continue;
            }
            let node = self.all.get(&id)?;
            if let Operation::Free { address } = node.operation
                && self.uses.is_free_behind(id, address, size)
            {
                return Some(address);
            }
            pending.extend(&node.dependencies);
        }
        None
    }
}
