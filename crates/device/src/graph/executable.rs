//! Graphs that are launched.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::conditional::{Condition, branch};
use super::launched::{self, GraphLaunch};
use super::likeness::{self, UpdateFailure};
use super::{Attachment, Graph, GraphMemory, KernelCall, Node, NodeId, Operation, UpdatableKernel};
use crate::executor::Grid;
use crate::lock::{Rank, RankedMutex};
use crate::memory::AddressSpace;
use crate::stream::{Completion, Queue, Work};
use crate::{Context, Error, Result, Stream};

/// A graph made ready to be launched; its operations can still be exchanged.
pub struct ExecutableGraph {
    steps: RankedMutex<Arc<Steps>>,
    /// The end of the last launch: launches of one graph do not overlap.
    last: RankedMutex<Option<Arc<Completion>>>,
    /// The end of the last launch by a kernel that began at once.
    last_by_kernel: RankedMutex<Option<Arc<Completion>>>,
    kept: RankedMutex<Kept>,
    /// What a launch left allocated is used again by the next.
    reuses_memory: bool,
    /// What kernels know it by that launch it.
    handle: OnceLock<u64>,
    /// It has been uploaded, or launched: kernels can launch it.
    uploaded: AtomicBool,
}

/// What must live until the last launch is over.
#[derive(Clone, Default)]
struct Kept {
    memory: Vec<Arc<GraphMemory>>,
    attachments: Vec<Attachment>,
    conditions: Vec<Condition>,
}

/// What a launch does, in an order that respects dependencies, child graphs opened up.
#[derive(Clone, Default)]
pub(super) struct Steps {
    pub(super) list: Vec<Step>,
    /// Where each node's is. It stays there.
    positions: HashMap<NodeId, usize>,
}

#[derive(Clone)]
pub(super) struct Step {
    pub(super) node: NodeId,
    pub(super) operation: Operation,
    /// Positions of the steps it depends on, its own graph's aside, to compare with another graph.
    pub(super) dependencies: Vec<usize>,
    /// How many steps before this one are those of the graph that this node is, if it is one.
    pub(super) children: Option<usize>,
    enabled: bool,
    /// What a conditional node chooses from.
    pub(super) bodies: Vec<Arc<Steps>>,
}

impl ExecutableGraph {
    /// Whether it has nodes that kernels can change.
    pub fn has_updatable_nodes(&self) -> bool {
        let mut found = false;
        self.steps().for_each_updatable(&mut |_, _, _| found = true);
        found
    }

    /// Makes a graph ready.
    pub fn new(graph: &Graph) -> Arc<ExecutableGraph> {
        ExecutableGraph::with_memory(graph, false)
    }

    /// Makes a graph ready whose launches may use again what the one before left allocated, if `reuses_memory` says so.
    pub fn with_memory(graph: &Graph, reuses_memory: bool) -> Arc<ExecutableGraph> {
        let (steps, kept) = Steps::of(graph);
        steps.for_each_updatable(&mut |kernel, _, _| kernel.reset());
        Arc::new(ExecutableGraph {
            steps: RankedMutex::new(Rank::Graph, Arc::new(steps)),
            last: RankedMutex::new(Rank::Event, None),
            last_by_kernel: RankedMutex::new(Rank::GraphLaunch, None),
            kept: RankedMutex::new(Rank::Graph, kept),
            reuses_memory,
            handle: OnceLock::new(),
            uploaded: AtomicBool::new(false),
        })
    }

    /// Has kernels launch it too, who know it by this handle.
    pub fn let_kernels_launch(self: &Arc<Self>, context: &Context, handle: u64) {
        self.handle.get_or_init(|| handle);
        let this = Arc::downgrade(self);
        context.add_launchable_graph(handle, this);
    }

    /// Whether kernels can launch such a graph: it has nodes, which are kernels, and copies and fills of memory that the device knows.
    ///
    /// # Errors
    /// A node that is none of these, if there is one.
    pub fn check_for_kernels(&self, space: &AddressSpace) -> std::result::Result<(), Option<NodeId>> {
        let steps = self.steps();
        let fits = |step: &Step| match &step.operation {
            Operation::Empty => step.children.is_some(),
            Operation::Copy(transfer) => transfer.check(space).is_ok_and(|ends| !ends.to && !ends.from),
            operation => operation.is_for_kernels(),
        };
        match steps.list.iter().find(|step| !fits(step)) {
            Some(step) => Err(Some(step.node)),
            None if steps.list.is_empty() => Err(None),
            None => Ok(()),
        }
    }

    /// Has kernels be able to launch it. There is nothing to bring anywhere: the device's memory is the host's.
    pub fn upload(&self) {
        if !self.uploaded.swap(true, Ordering::AcqRel) {
            self.steps().for_each_updatable(&mut |kernel, call, enabled| kernel.upload(call, enabled));
        }
    }

    /// Whether kernels can launch it, if they may.
    pub(super) fn is_uploaded(&self) -> bool {
        self.uploaded.load(Ordering::Acquire)
    }

    /// Takes it for a launch by a kernel with this end, unless one before is not over.
    pub(super) fn take_for_kernel(&self, end: &Arc<Completion>) -> bool {
        let mut last = self.last_by_kernel.lock();
        let is_free = last.as_ref().is_none_or(|last| last.is_finished());
        if is_free {
            *last = Some(end.clone());
        }
        is_free
    }

    /// What kernels know it by that launch it; 0 if they cannot.
    pub(super) fn handle(&self) -> u64 {
        self.handle.get().copied().unwrap_or(0)
    }

    /// What a launch does now.
    pub(super) fn steps(&self) -> Arc<Steps> {
        self.steps.lock().clone()
    }

    /// Queues all of it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for words of memory at addresses that the device does not know, for memory to be allocated that a
    /// launch before has left in use, and for memory to be freed that is not in use.
    /// [`Error::StreamCaptureUnsupported`] in a stream that captures, whose capture is then spoiled.
    pub fn launch(self: &Arc<Self>, stream: &Stream) -> Result<()> {
        self.upload();
        let steps = self.steps();
        let context = stream.context()?;
        context.check()?;
        stream.check_not_capturing()?;
        for step in steps.enabled() {
            if let Operation::Words(words) = &step.operation {
                words.iter().try_for_each(|word| word.check_in(context.memory()))?;
            }
        }
        let (allocated, freed) = steps.memory();
        if !allocated.is_empty() || !freed.is_empty() {
            context.memory().launch_graph_memory(&allocated, &freed, self.reuses_memory)?;
        }
        match self.queue(&steps, stream, &context, &allocated) {
            // What the first steps do may fault while the others are queued. That is for the calls after this one to tell.
            Err(_) if context.has_failed() => Ok(()),
            result => result,
        }
    }

    /// Queues the steps, which allocate this memory.
    fn queue(
        self: &Arc<Self>,
        steps: &Steps,
        stream: &Stream,
        context: &Arc<Context>,
        allocated: &[u64],
    ) -> Result<()> {
        let before = self.last.lock().clone().filter(|last| !last.is_finished());
        if let Some(before) = before {
            stream.wait_completion(before)?;
        }
        let kept = self.kept.lock().clone();
        if !kept.conditions.is_empty() {
            let conditions = kept.conditions.clone();
            let apply = move || conditions.iter().try_for_each(Condition::apply_default);
            stream.submit(Vec::new(), Work::Task(Box::new(apply)))?;
            kept.conditions.iter().for_each(|condition| condition.note_launch(true));
        }
        if context.has_launchable_graphs() && steps.enabled().all(|step| step.operation.is_for_kernels()) {
            stream.submit(Vec::new(), launched::launch(self.clone(), Arc::downgrade(context)))?;
            return self.end(stream, context, allocated, kept);
        }
        for step in steps.in_launches() {
            match &step.operation {
                Operation::Conditional(node) => {
                    let choice = branch(Arc::downgrade(context), node.clone(), step.bodies.clone());
                    stream.submit(Vec::new(), choice)?;
                }
                Operation::Kernel(KernelCall { updatable: Some(kernel), .. }) => {
                    stream.submit(Vec::new(), kernel.work(None))?;
                }
                // Kernels run on the devices that they were captured for, whichever the launch is for.
                Operation::Kernel(call) if !Arc::ptr_eq(&call.function.module()?.context()?, context) => {
                    stream.submit(Vec::new(), kernel_work(stream.queue(), call, None)?)?;
                }
                operation => stream.run_operation(operation.clone())?,
            }
        }
        self.end(stream, context, allocated, kept)
    }

    /// Notes the end of a launch, all of which has been queued.
    fn end(&self, stream: &Stream, context: &Context, allocated: &[u64], kept: Kept) -> Result<()> {
        let end = stream.mark(move || {
            kept.conditions.iter().for_each(|condition| condition.note_launch(false));
            drop(kept);
        })?;
        if !allocated.is_empty() {
            context.memory().note_graph_launch(allocated, &end);
        }
        *self.last.lock() = Some(end);
        Ok(())
    }

    /// Has a node do something else of the same sort, from the next launch on.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for another sort, for words of memory in another number or order of waits and stores, for another shape
    /// where there are several rows, and for a node that the graph did not have.
    pub fn set_operation(&self, node: NodeId, operation: Operation) -> Result<()> {
        self.change(node, |step| {
            if !step.operation.is_like(&operation) || !step.operation.has_form_of(&operation) {
                return Err(Error::InvalidValue);
            }
            step.operation = operation;
            Ok(())
        })
    }

    /// What a node does.
    pub fn operation(&self, node: NodeId) -> Result<Operation> {
        self.look(node, |step| step.operation.clone())
    }

    /// Leaves a node out of launches, or takes it in again.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a node that is no kernel, copy or fill, and for one that the graph did not have.
    pub fn set_enabled(&self, node: NodeId, enabled: bool) -> Result<()> {
        self.change(node, |step| {
            step.check_can_be_left_out()?;
            step.enabled = enabled;
            Ok(())
        })
    }

    /// Whether launches run a node.
    pub fn is_enabled(&self, node: NodeId) -> Result<bool> {
        self.look(node, |step| step.check_can_be_left_out().map(|()| step.enabled))?
    }

    /// Has a node that is a graph do what another graph of the same form does, from the next launch on.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a graph of another form, or a node that the graph did not have or that is no graph.
    pub fn set_child(&self, node: NodeId, graph: &Graph) -> Result<()> {
        let (new, kept) = Steps::of(graph);
        let mut steps = self.steps.lock();
        let at = *steps.positions.get(&node).ok_or(Error::InvalidValue)?;
        let children = steps.list[at].children.ok_or(Error::InvalidValue)?;
        let (inside, all) = (at - children..at, 0..new.list.len());
        let pairs = likeness::pair((&steps.list, inside), (&new.list, all));
        let pairs = pairs.map_err(|_| Error::GraphExecUpdateFailure)?;
        likeness::take_over(&mut Arc::make_mut(&mut steps).list, new.list, &pairs);
        drop(steps);
        self.kept.lock().extend(kept);
        Ok(())
    }

    /// Takes over the operations of a graph of the same form.
    pub fn update(&self, graph: &Graph) -> std::result::Result<(), UpdateFailure> {
        let (new, kept) = Steps::of(graph);
        let mut steps = self.steps.lock();
        let pairs = likeness::pair((&steps.list, 0..steps.list.len()), (&new.list, 0..new.list.len()))?;
        likeness::take_over(&mut Arc::make_mut(&mut steps).list, new.list, &pairs);
        drop(steps);
        let before = std::mem::replace(&mut *self.kept.lock(), kept);
        drop(before);
        Ok(())
    }

    fn look<R>(&self, node: NodeId, look: impl FnOnce(&Step) -> R) -> Result<R> {
        let steps = self.steps.lock().clone();
        steps.find(node).map(look).ok_or(Error::InvalidValue)
    }

    fn change(&self, node: NodeId, change: impl FnOnce(&mut Step) -> Result<()>) -> Result<()> {
        let mut steps = self.steps.lock();
        steps.find(node).ok_or(Error::InvalidValue)?;
        let step = Steps::find_mut(&mut steps, node).expect("found just now");
        change(step)?;
        if let Operation::Kernel(call) = &step.operation
            && let Some(kernel) = &call.updatable
        {
            kernel.set(call, step.enabled);
        }
        Ok(())
    }
}

impl Steps {
    /// What launches of a graph do, and what must live meanwhile.
    fn of(graph: &Graph) -> (Steps, Kept) {
        let (mut list, mut kept) = (Vec::new(), Kept::default());
        open_up(graph, &mut list, &mut kept);
        let positions = list.iter().enumerate().map(|(at, step)| (step.node, at)).collect();
        (Steps { list, positions }, kept)
    }

    fn enabled(&self) -> impl Iterator<Item = &Step> {
        self.list.iter().filter(|step| step.enabled)
    }

    /// Those that launches run, or may run when their turn comes.
    fn in_launches(&self) -> impl Iterator<Item = &Step> {
        self.list.iter().filter(|step| step.enabled || step.operation.updatable().is_some())
    }

    /// Calls a function with each node that kernels can change, here and in bodies, and with what it was made to do.
    fn for_each_updatable(&self, visit: &mut dyn FnMut(&UpdatableKernel, &KernelCall, bool)) {
        for step in &self.list {
            if let Operation::Kernel(call) = &step.operation
                && let Some(kernel) = &call.updatable
            {
                visit(kernel, call, step.enabled);
            }
            step.bodies.iter().for_each(|body| body.for_each_updatable(visit));
        }
    }

    /// What a launch allocates, and what it frees.
    fn memory(&self) -> (Vec<u64>, Vec<u64>) {
        let (mut allocated, mut freed) = (Vec::new(), Vec::new());
        for step in self.enabled() {
            match step.operation {
                Operation::Allocate { address, .. } => allocated.push(address),
                Operation::Free { address } => freed.push(address),
                _ => {}
            }
        }
        (allocated, freed)
    }

    /// The step of a node, here or in a body.
    fn find(&self, node: NodeId) -> Option<&Step> {
        if let Some(at) = self.positions.get(&node) {
            return Some(&self.list[*at]);
        }
        self.list.iter().flat_map(|step| &step.bodies).find_map(|body| body.find(node))
    }

    /// The same, to be changed: what launches still hold is copied before.
    fn find_mut(this: &mut Arc<Steps>, node: NodeId) -> Option<&mut Step> {
        let here = this.positions.get(&node).copied();
        let has_it = |step: &Step| step.bodies.iter().any(|body| body.find(node).is_some());
        let at = here.or_else(|| this.list.iter().position(has_it))?;
        let step = &mut Arc::make_mut(this).list[at];
        match here {
            Some(_) => Some(step),
            None => step.bodies.iter_mut().find_map(|body| match body.find(node) {
                Some(_) => Steps::find_mut(body, node),
                None => None,
            }),
        }
    }
}

impl Step {
    fn check_can_be_left_out(&self) -> Result<()> {
        match self.operation {
            Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(_) => Ok(()),
            _ => Err(Error::InvalidValue),
        }
    }
}

/// What the steps of a body are to a queue.
/// Their kernels belong to a `launch`, if they can launch graphs.
pub(super) fn works_of(
    context: &Arc<Context>,
    queue: &Arc<Queue>,
    body: &Steps,
    launch: Option<&Arc<GraphLaunch>>,
) -> Result<Vec<Work>> {
    let mut works = Vec::with_capacity(body.list.len());
    for step in body.in_launches() {
        works.push(match &step.operation {
            Operation::Empty => continue,
            Operation::Copy(transfer) => {
                let transfer = *transfer;
                Work::Task(Box::new(move || transfer.run()))
            }
            Operation::Fill(fill) => {
                let fill = *fill;
                Work::Task(Box::new(move || fill.run()))
            }
            Operation::Conditional(node) => {
                branch(Arc::downgrade(context), node.clone(), step.bodies.clone())
            }
            Operation::Kernel(KernelCall { updatable: Some(kernel), .. }) => kernel.work(launch.cloned()),
            Operation::Kernel(call) => kernel_work(queue, call, launch)?,
            // Refused when the graph was made ready.
            _ => return Err(Error::NotSupported("such a node in a conditional node's body".into())),
        });
    }
    Ok(works)
}

/// A kernel of any context as a command of a queue.
pub(super) fn kernel_work(
    queue: &Arc<Queue>,
    call: &KernelCall,
    launch: Option<&Arc<GraphLaunch>>,
) -> Result<Work> {
    let module = call.function.module()?;
    let context = module.context()?;
    context.check()?;
    let (parts, mut services) = call.function.prepare(&context, &module, &call.launch, &call.params, 0)?;
    if let Some(launch) = launch {
        services.nested.join(launch.clone());
    }
    let end = Completion::new(Weak::new());
    Ok(Work::Grid(Grid::new(parts, queue.clone(), services, end)))
}

/// The steps of a graph's own nodes among `steps`, which are all of its: not those of the graphs that nodes are.
pub(super) fn own(steps: &[Step], range: &Range<usize>) -> Vec<usize> {
    let mut own = Vec::new();
    let mut end = range.end;
    while end > range.start {
        own.push(end - 1);
        end = (end - 1).saturating_sub(steps[end - 1].children.unwrap_or(0));
    }
    own.reverse();
    own
}

/// A graph whose steps are being appended.
struct Opened {
    /// Its nodes that have no step yet.
    rest: std::vec::IntoIter<(NodeId, Node)>,
    positions: HashMap<NodeId, usize>,
    /// The node that is a graph whose steps are being appended, what it depends on, and where they begin.
    child: Option<(NodeId, Vec<usize>, usize)>,
}

impl Opened {
    fn new(graph: &Graph, kept: &mut Kept) -> Opened {
        kept.memory.push(graph.memory().clone());
        kept.attachments.extend(graph.attachments());
        kept.conditions.extend(graph.conditions());
        Opened { rest: graph.in_order().into_iter(), positions: HashMap::new(), child: None }
    }
}

/// Appends the steps of a graph. A child graph's come before an empty step that stands for its node and depends on them all.
/// Graphs may be in each other deeper than a stack is.
fn open_up(graph: &Graph, steps: &mut Vec<Step>, kept: &mut Kept) {
    let mut opened = vec![Opened::new(graph, kept)];
    while let Some(innermost) = opened.last_mut() {
        let Some((id, node)) = innermost.rest.next() else {
            opened.pop();
            let outer = opened.last_mut().and_then(|outer| outer.child.take().map(|child| (outer, child)));
            if let Some((outer, (id, dependencies, first))) = outer {
                let (operation, children) = (Operation::Empty, Some(steps.len() - first));
                outer.positions.insert(id, steps.len());
                let bodies = Vec::new();
                steps.push(Step { node: id, operation, dependencies, children, enabled: true, bodies });
            }
            continue;
        };
        let mut dependencies: Vec<usize> =
            node.dependencies.iter().map(|id| innermost.positions[id]).collect();
        dependencies.sort_unstable();
        let mut bodies = Vec::new();
        let operation = match node.operation {
            Operation::Child(child) => {
                innermost.child = Some((id, dependencies, steps.len()));
                opened.push(Opened::new(&child, kept));
                continue;
            }
            Operation::Conditional(node) => {
                for body in node.bodies() {
                    let (steps, of_body) = Steps::of(body);
                    bodies.push(Arc::new(steps));
                    kept.extend(of_body);
                }
                Operation::Conditional(node)
            }
            operation => operation,
        };
        innermost.positions.insert(id, steps.len());
        steps.push(Step { node: id, operation, dependencies, children: None, enabled: true, bodies });
    }
}

impl Kept {
    fn extend(&mut self, other: Kept) {
        self.memory.extend(other.memory);
        self.attachments.extend(other.attachments);
        self.conditions.extend(other.conditions);
    }
}
