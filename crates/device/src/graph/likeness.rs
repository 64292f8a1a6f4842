//! Whether an executable graph can become like another graph, and which of their nodes stand for each other.
//!
//! Nodes are paired as NVIDIA's driver does, which decides what an update accepts and which node it names: first those that nothing depends
//! on, the newest with the newest, and from these on what pairs depend on, breadth first. Who added nodes in another order, but the same
//! graph, may find them alike.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::executable::{Step, own};
use super::{NodeId, Operation};

/// Why an executable graph cannot become like another graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateFailure {
    /// There are more nodes or fewer, or fewer that nothing depends on.
    CountChanged,
    /// A node depends on others than its like; the node is the other graph's, and so is the one that it should not depend on, if it is that.
    TopologyChanged(NodeId, Option<NodeId>),
    /// A node does something of another sort; the node is the other graph's.
    NodeTypeChanged(NodeId),
    /// A node does the same with something that cannot be exchanged; the node is the other graph's.
    ParametersChanged(NodeId),
    /// The blocks of a kernel run together and did not, or the reverse; the node is the other graph's.
    AttributesChanged(NodeId),
    /// A conditional node chooses otherwise; the node is the other graph's.
    NotSupported(NodeId),
}

type Checked<T = ()> = Result<T, UpdateFailure>;

/// Steps that are alike, by where they are in the two lists.
pub(super) type Pairs = Vec<(usize, usize)>;

/// The steps of a graph: a range of a list. Dependencies count from the beginning of the list.
pub(super) type Part<'a> = (&'a [Step], Range<usize>);

/// Pairs all steps of two graphs that can do the same, those of graphs in them too, but not those of conditional nodes' bodies.
pub(super) fn pair((steps, range): Part<'_>, (new_steps, new_range): Part<'_>) -> Checked<Pairs> {
    let mut pairs = Pairs::new();
    // Graphs may be in each other deeper than a stack is.
    let mut graphs = vec![Pairing::begin((steps, range), (new_steps, new_range))?];
    while let Some(innermost) = graphs.last_mut() {
        let Some((at, new_at)) = innermost.next.pop_front() else {
            graphs.pop();
            continue;
        };
        let (step, new) = (&steps[at], &new_steps[new_at]);
        if step.dependencies.len() != new.dependencies.len() {
            return Err(UpdateFailure::TopologyChanged(new.node, None));
        }
        check_sort(step, new)?;
        innermost.go_on(step, (new_steps, new))?;
        pairs.push((at, new_at));
        if let (Some(children), Some(new_children)) = (step.children, new.children) {
            let (inside, new_inside) = (at - children..at, new_at - new_children..new_at);
            graphs.push(Pairing::begin((steps, inside), (new_steps, new_inside))?);
        } else {
            check_operation(step, new)?;
        }
    }
    Ok(pairs)
}

/// Two graphs whose nodes are being paired.
struct Pairing {
    partners: HashMap<usize, usize>,
    taken: HashSet<usize>,
    /// Pairs whose dependencies have not been looked at.
    next: VecDeque<(usize, usize)>,
}

impl Pairing {
    fn begin((steps, range): Part<'_>, (new_steps, new_range): Part<'_>) -> Checked<Pairing> {
        let (nodes, new_nodes) = (own(steps, &range), own(new_steps, &new_range));
        if nodes.len() != new_nodes.len() {
            return Err(UpdateFailure::CountChanged);
        }
        let (ends, new_ends) = (ends(steps, nodes), ends(new_steps, new_nodes));
        if new_ends.len() < ends.len() {
            return Err(UpdateFailure::CountChanged);
        }
        if let Some(more) = new_ends.get(ends.len()) {
            return Err(UpdateFailure::TopologyChanged(new_steps[*more].node, None));
        }
        let next: VecDeque<(usize, usize)> = ends.into_iter().zip(new_ends).collect();
        Ok(Pairing {
            partners: next.iter().copied().collect(),
            taken: next.iter().map(|(_, new)| *new).collect(),
            next,
        })
    }

    /// Pairs what two steps of a pair depend on.
    fn go_on(&mut self, step: &Step, (new_steps, new): (&[Step], &Step)) -> Checked {
        for (&before, &new_before) in step.dependencies.iter().zip(&new.dependencies) {
            let is_free = self.taken.insert(new_before);
            match self.partners.get(&before) {
                None if is_free => {
                    self.partners.insert(before, new_before);
                    self.next.push_back((before, new_before));
                }
                Some(partner) if *partner == new_before => {}
                _ => {
                    let from = new_steps[new_before].node;
                    return Err(UpdateFailure::TopologyChanged(new.node, Some(from)));
                }
            }
        }
        Ok(())
    }
}

/// Those of the nodes that none of them depends on, the newest first.
fn ends(steps: &[Step], nodes: Vec<usize>) -> Vec<usize> {
    let awaited: HashSet<usize> =
        nodes.iter().flat_map(|at| steps[*at].dependencies.iter().copied()).collect();
    let mut ends: Vec<usize> = nodes.into_iter().filter(|at| !awaited.contains(at)).collect();
    ends.sort_unstable_by_key(|at| std::cmp::Reverse(steps[*at].node));
    ends
}

fn check_sort(step: &Step, new: &Step) -> Checked {
    let same = step.operation.is_like(&new.operation) && step.children.is_some() == new.children.is_some();
    if same { Ok(()) } else { Err(UpdateFailure::NodeTypeChanged(new.node)) }
}

fn check_operation(step: &Step, new: &Step) -> Checked {
    if !step.operation.has_form_of(&new.operation) {
        return Err(match new.operation {
            Operation::Conditional(_) => UpdateFailure::NotSupported(new.node),
            _ => UpdateFailure::ParametersChanged(new.node),
        });
    }
    if step.operation.is_cooperative() != new.operation.is_cooperative() {
        return Err(UpdateFailure::AttributesChanged(new.node));
    }
    for (body, new) in step.bodies.iter().zip(&new.bodies) {
        pair((&body.list, 0..body.list.len()), (&new.list, 0..new.list.len()))?;
    }
    Ok(())
}

/// Has steps do what those do that they are paired with; they stay the steps of their nodes.
pub(super) fn take_over(steps: &mut [Step], new: Vec<Step>, pairs: &Pairs) {
    let mut new: Vec<Option<Step>> = new.into_iter().map(Some).collect();
    for &(at, new_at) in pairs {
        let (step, Some(new)) = (&mut steps[at], new[new_at].take()) else { continue };
        step.operation = new.operation;
        for (body, new) in step.bodies.iter_mut().zip(new.bodies) {
            let all = |steps: &[Step]| 0..steps.len();
            // They were found alike with the nodes that they belong to.
            let Ok(pairs) = pair((&body.list, all(&body.list)), (&new.list, all(&new.list))) else {
                continue;
            };
            take_over(&mut Arc::make_mut(body).list, Arc::unwrap_or_clone(new).list, &pairs);
        }
    }
}
