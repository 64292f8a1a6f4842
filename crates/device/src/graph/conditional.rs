//! Conditional nodes: graphs within a graph that run as a word of the device's memory says.
//!
//! The word is the *condition*; its address is what programs hold as its handle, so that a kernel sets it with a store. The word behind
//! it counts the launches under way that have the condition: where there is none, setting it is a bad access. The condition is read
//! when the node's turn comes: what then runs is put at the front of the queue that the node is in, and a loop's next look at
//! its condition behind that.

use std::sync::{Arc, Weak};

use super::executable::{Steps, works_of};
use super::{Graph, NodeId, Operation};
use crate::lock::{Rank, RankedMutex};
use crate::memory::{AddressSpace, Kind};
use crate::stream::Work;
use crate::{Context, Error, Result};

/// Most bodies of a node.
const MOST_BODIES: usize = 1 << 16;

/// How a condition chooses among the bodies of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalKind {
    /// The first where it is not zero, the second, if there is one, where it is.
    If,
    /// The only one, as long as it is not zero.
    While,
    /// The one of its number, if there is one.
    Switch,
}

/// What a conditional node is.
#[derive(Clone)]
pub struct Conditional {
    kind: ConditionalKind,
    /// The address of the word.
    condition: u64,
    bodies: Arc<[Arc<Graph>]>,
}

/// A word that says what a conditional node runs.
#[derive(Clone)]
pub(crate) struct Condition {
    address: u64,
    context: Weak<Context>,
    /// What it is set to when the graph is launched.
    default: Option<u32>,
    /// Launches under way, as the word behind it says.
    running: Arc<RankedMutex<u32>>,
    /// A node has it.
    is_used: bool,
}

impl ConditionalKind {
    /// Whether a node of this kind can have so many bodies.
    pub fn allows(self, bodies: usize) -> bool {
        match self {
            ConditionalKind::If => (1..=2).contains(&bodies),
            ConditionalKind::While => bodies == 1,
            ConditionalKind::Switch => bodies > 0,
        }
    }

    /// The body that runs for a value.
    fn choice(self, value: u32, bodies: usize) -> Option<usize> {
        let body = match self {
            ConditionalKind::If => usize::from(value == 0),
            ConditionalKind::While if value == 0 => return None,
            ConditionalKind::While => 0,
            ConditionalKind::Switch => value as usize,
        };
        (body < bodies).then_some(body)
    }
}

impl Conditional {
    /// How it chooses.
    pub fn kind(&self) -> ConditionalKind {
        self.kind
    }

    /// The handle of its condition.
    pub fn condition(&self) -> u64 {
        self.condition
    }

    /// What it chooses from.
    pub fn bodies(&self) -> &[Arc<Graph>] {
        &self.bodies
    }

    /// Whether another one can take this one's place in an executable graph.
    pub(super) fn has_form_of(&self, other: &Conditional) -> bool {
        self.kind == other.kind && self.bodies.len() == other.bodies.len()
    }
}

impl Graph {
    /// Makes a condition for a node of this graph, or of a body in it; answers its handle. With a default it has that value
    /// whenever a launch of the graph begins.
    pub fn add_condition(&self, context: &Arc<Context>, default: Option<u32>) -> Result<u64> {
        if let Some(parent) = self.parent() {
            return parent.add_condition(context, default);
        }
        let address = context.allocate_as(2 * size_of::<u32>() as u64, Kind::Variable)?;
        self.memory().own(context.memory(), address);
        let running = Arc::new(RankedMutex::new(Rank::Output, 0));
        let condition =
            Condition { address, context: Arc::downgrade(context), default, running, is_used: false };
        store(address, 0)?;
        store(address + 4, 0)?;
        self.conditions.lock().push(condition);
        Ok(address)
    }

    /// Adds a node with so many empty bodies, to be filled before the graph is made ready.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a number of bodies that the kind does not allow, and for a condition that is not this graph's or
    /// has a node, [`Error::OutOfMemory`] for more than 65,536 bodies.
    pub fn add_conditional(
        self: &Arc<Graph>,
        kind: ConditionalKind,
        condition: u64,
        bodies: usize,
        dependencies: &[NodeId],
    ) -> Result<(NodeId, Conditional)> {
        if !kind.allows(bodies) {
            return Err(Error::InvalidValue);
        }
        if bodies > MOST_BODIES {
            return Err(Error::OutOfMemory);
        }
        self.use_condition(condition)?;
        let bodies = (0..bodies).map(|_| Graph::new_body(self)).collect();
        let conditional = Conditional { kind, condition, bodies };
        let node = self.add(Operation::Conditional(conditional.clone()), dependencies);
        Ok((node.inspect_err(|_| self.leave_condition(condition))?, conditional))
    }

    /// Whether it has, or had, a condition. Nodes that go leave theirs.
    pub fn has_conditions(&self) -> bool {
        !self.conditions.lock().is_empty() || self.has_conditional_nodes()
    }

    /// Whether it has a condition without a node, here or in a body.
    pub fn has_unused_conditions(&self) -> bool {
        let (mut conditions, mut used) = (Vec::new(), Vec::new());
        self.collect_conditions(&mut conditions, &mut used);
        conditions.iter().any(|condition| !used.contains(condition))
    }

    /// The conditions that it has, and those of nodes, here and in bodies.
    fn collect_conditions(&self, conditions: &mut Vec<u64>, used: &mut Vec<u64>) {
        conditions.extend(self.conditions.lock().iter().map(|condition| condition.address));
        for node in self.conditionals() {
            used.push(node.condition);
            node.bodies.iter().for_each(|body| body.collect_conditions(conditions, used));
        }
    }

    /// A node of a conditional node's body, however deep, of a sort that cannot be there; and the body.
    pub fn misplaced_in_bodies(&self, space: &AddressSpace) -> Option<(Arc<Graph>, NodeId)> {
        let conditionals = self.conditionals();
        let bodies = conditionals.iter().flat_map(|node| node.bodies.iter());
        bodies.clone().find_map(|body| {
            let here = body.misplaced(space).map(|node| (body.clone(), node));
            here.or_else(|| body.misplaced_in_bodies(space))
        })
    }

    /// A node that cannot be in a body if this graph is one. Nor can copies of memory that the device does not know.
    pub(super) fn misplaced(&self, space: &AddressSpace) -> Option<NodeId> {
        // Each graph that is left to be looked at, with the node of this one that it is in; child graphs may be deep.
        let mut left = Vec::new();
        for node in self.nodes() {
            left.push((node, self.operation(node).ok()?));
            while let Some((node, operation)) = left.pop() {
                match operation {
                    Operation::Copy(copy) => {
                        if copy.check(space).is_ok_and(|pageable| pageable.to || pageable.from) {
                            return Some(node);
                        }
                    }
                    Operation::Empty | Operation::Kernel(_) | Operation::Fill(_) => {}
                    // Its bodies are looked at by themselves.
                    Operation::Conditional(_) => {}
                    Operation::Child(child) => {
                        left.extend(child.operations().into_iter().map(|operation| (node, operation)));
                    }
                    _ => return Some(node),
                }
            }
        }
        None
    }

    /// Its conditional nodes.
    fn conditionals(&self) -> Vec<Conditional> {
        let of_node = |operation: &Operation| match operation {
            Operation::Conditional(conditional) => Some(conditional.clone()),
            _ => None,
        };
        self.operations().iter().filter_map(of_node).collect()
    }

    fn use_condition(&self, address: u64) -> Result<()> {
        let mut conditions = self.conditions.lock();
        if let Some(found) = conditions.iter_mut().find(|condition| condition.address == address) {
            return if std::mem::replace(&mut found.is_used, true) {
                Err(Error::InvalidValue)
            } else {
                Ok(())
            };
        }
        drop(conditions);
        self.parent().ok_or(Error::InvalidValue)?.use_condition(address)
    }

    fn leave_condition(&self, address: u64) {
        let mut conditions = self.conditions.lock();
        if let Some(found) = conditions.iter_mut().find(|condition| condition.address == address) {
            found.is_used = false;
            return;
        }
        drop(conditions);
        if let Some(parent) = self.parent() {
            parent.leave_condition(address);
        }
    }
}

impl Condition {
    /// What a launch begins with: gives the word its default, if it has one.
    pub(super) fn apply_default(&self) -> Result<()> {
        match (self.default, self.context.upgrade()) {
            (Some(value), Some(context)) if context.is_alive() => store(self.address, value),
            _ => Ok(()),
        }
    }

    /// Notes that one more launch is under way, or one less. What a context took along is of no use to anybody.
    pub(super) fn note_launch(&self, begins: bool) {
        let context = self.context.upgrade();
        let mut running = self.running.lock();
        *running = if begins { *running + 1 } else { *running - 1 };
        if context.as_ref().is_some_and(|context| context.is_alive()) {
            let _ = store(self.address + 4, *running);
        }
    }
}

/// A conditional node of a launch: what is decided when its turn comes.
pub(super) fn branch(context: Weak<Context>, node: Conditional, bodies: Vec<Arc<Steps>>) -> Work {
    Work::Branch(Box::new(move |queue| {
        let value = load(node.condition)?;
        let (Some(chosen), Some(alive)) = (node.kind.choice(value, bodies.len()), context.upgrade()) else {
            return Ok(Vec::new());
        };
        let mut works = works_of(&alive, queue, &bodies[chosen], None)?;
        if node.kind == ConditionalKind::While {
            works.push(branch(context, node, bodies));
        }
        Ok(works)
    }))
}

fn load(address: u64) -> Result<u32> {
    let _receptive = guard::receptive();
    // SAFETY: memory of the graph's, which its launches keep; what a context took along is a fault.
    unsafe { guard::load(address) }.map_err(|_| Error::InvalidValue)
}

fn store(address: u64, value: u32) -> Result<()> {
    let _receptive = guard::receptive();
    // SAFETY: as for `load`.
    unsafe { guard::store(address, value) }.map_err(|_| Error::InvalidValue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_choose_bodies() {
        use ConditionalKind::{If, Switch, While};
        let choices = |kind: ConditionalKind, bodies| [0, 1, 2, u32::MAX].map(|v| kind.choice(v, bodies));
        assert_eq!(choices(If, 1), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(choices(If, 2), [Some(1), Some(0), Some(0), Some(0)]);
        assert_eq!(choices(While, 1), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(choices(Switch, 2), [Some(0), Some(1), None, None]);
        let allowed = |kind: ConditionalKind| [0, 1, 2, 3].map(|bodies| kind.allows(bodies));
        assert_eq!(allowed(If), [false, true, true, false]);
        assert_eq!(allowed(While), [false, true, false, false]);
        assert_eq!(allowed(Switch), [false, true, true, true]);
    }
}
