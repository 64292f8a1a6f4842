//! The commands of one stream.
//!
//! At most one thread at a time has a queue *claimed* and runs its commands; a grid of blocks is run by many threads, and whoever
//! finishes its last block goes on with the queue. A command that waits for one of another queue gives the claim up, and
//! the queue is scheduled again when that one is over. No lock is held while a command runs.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Weak};

use super::completion::Completion;
use crate::domain::Domain;
use crate::executor::{Executor, Grid, Role, Seated};
use crate::fault::FaultReport;
use crate::lock::{Rank, RankedMutex};
use crate::{Error, Result};

/// What a command does.
pub(crate) enum Work {
    /// Nothing: marks a point in the stream.
    Nothing,
    /// Something that is not done any more once the context has failed; its own failure fails the context.
    Task(Box<dyn FnOnce() -> Result<()> + Send>),
    /// Something that is done whatever has happened before; it is told.
    Callback(Box<dyn FnOnce(Result<()>) + Send>),
    /// A function of the program, which is told likewise. It runs on a thread of the device's, never on one that waits: it may ask which thread it is
    /// on, or look at variables of that.
    Host(Box<dyn FnOnce(Result<()>) + Send>),
    /// Something that tells what comes next, before what is queued already. Not done any more once the context has failed.
    Branch(Branch),
    /// A kernel.
    Grid(Arc<Grid>),
    /// The end of a kernel whose blocks have ended before, for what they launched has ended too.
    EndOf(Arc<Grid>),
}

/// What a command decides when its turn comes: the commands of the queue that it is in that follow it.
pub(crate) type Branch = Box<dyn FnOnce(&Arc<Queue>) -> Result<Vec<Work>> + Send>;

/// Where a command may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Behind the others, on whatever thread.
    InQueue,
    /// On the thread that submits it if nothing is before it: it is short, and waits for nobody.
    AtOnce,
}

/// What is left to whoever has [pushed](Queue::push) a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Nothing.
    Done,
    /// The queue must be [scheduled](Queue::schedule).
    MustSchedule,
    /// The queue is claimed, and the work still where it was: the thread must [run](Queue::run_at_once) it.
    MustRun,
}

/// A queued command. Dropped without having run, it ends as dropped.
struct Command {
    waits: Vec<Arc<Completion>>,
    work: Option<Work>,
    completion: Arc<Completion>,
}

impl Command {
    /// One that another has put into the queue, whose end nobody waits for.
    fn inner(waits: Vec<Arc<Completion>>, work: Work) -> Command {
        let completion = match &work {
            Work::Grid(grid) => grid.completion().clone(),
            _ => Completion::new(Weak::new()),
        };
        Command { waits, work: Some(work), completion }
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if self.work.is_some() {
            self.completion.abandon();
        }
    }
}

/// A first-in, first-out queue of commands.
pub(crate) struct Queue {
    executor: Arc<Executor>,
    domain: Arc<Domain>,
    /// 0 is the lowest, below is higher.
    priority: AtomicI32,
    /// How many threads may run blocks of one of its kernels, if not all may.
    threads: Option<u32>,
    /// Threads that wait for its commands and look for what they can do of them.
    near: AtomicUsize,
    state: RankedMutex<State>,
}

/// A thread that is near a queue: it comes by itself for blocks of the queue's grids. Workers leave it the processor that it looks for them on.
pub(super) struct Near<'a> {
    queue: &'a Queue,
    _seated: Option<Seated<'a>>,
}

impl Near<'_> {
    /// Changes when there is work to look for.
    pub(super) fn arrivals(&self) -> u64 {
        self.queue.executor.arrivals()
    }
}

impl Drop for Near<'_> {
    fn drop(&mut self) {
        self.queue.near.fetch_sub(1, Ordering::Relaxed);
        // Before the thread looks once more: see `Executor::start`.
        fence(Ordering::SeqCst);
    }
}

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    claimed: bool,
    /// Its context has ended: no command is taken any more.
    closed: bool,
    /// The grid being run.
    grid: Option<Arc<Grid>>,
    /// The end of the newest command.
    last: Option<Arc<Completion>>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("priority", &self.priority()).finish_non_exhaustive()
    }
}

impl Queue {
    /// An empty queue.
    pub(crate) fn new(executor: Arc<Executor>, domain: Arc<Domain>, priority: i32) -> Arc<Queue> {
        Queue::with_threads(executor, domain, priority, None)
    }

    /// An empty queue whose kernels are each run by so many threads.
    pub(crate) fn with_threads(
        executor: Arc<Executor>,
        domain: Arc<Domain>,
        priority: i32,
        threads: Option<u32>,
    ) -> Arc<Queue> {
        let state = RankedMutex::new(Rank::Stream, State::default());
        let near = AtomicUsize::new(0);
        Arc::new(Queue { executor, domain, priority: AtomicI32::new(priority), threads, near, state })
    }

    /// Whose threads run its commands.
    pub(crate) fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// How many threads may run blocks of one of its kernels, if not all may.
    pub(crate) fn threads(&self) -> Option<u32> {
        self.threads
    }

    /// Whether the calling thread, if it is one of the program's, may run the commands.
    pub(super) fn may_run_here(&self) -> bool {
        self.executor.may_run_here()
    }

    /// The calling thread stays near as long as the answer.
    pub(super) fn come_near<'a>(&'a self, completion: &'a Arc<Completion>) -> Near<'a> {
        self.near.fetch_add(1, Ordering::Relaxed);
        Near { queue: self, _seated: self.executor.take_seat(Role::Helper(completion)) }
    }

    /// How many threads are near.
    pub(crate) fn near(&self) -> usize {
        self.near.load(Ordering::Relaxed)
    }

    /// 0, or below for more urgent queues.
    pub(crate) fn priority(&self) -> i32 {
        self.priority.load(Ordering::Relaxed)
    }

    /// Counts from the next time the queue is scheduled.
    pub(crate) fn set_priority(&self, priority: i32) {
        self.priority.store(priority, Ordering::Relaxed);
    }

    /// The end of the newest command, if it is not over.
    pub(crate) fn last(&self) -> Option<Arc<Completion>> {
        self.state.lock().last.as_ref().filter(|last| !last.is_finished()).cloned()
    }

    /// When the newest command ended, if there was one and it is over.
    pub(crate) fn last_end(&self) -> Option<u64> {
        self.state.lock().last.as_ref()?.finished_at()
    }

    /// Whether all that was queued is over.
    ///
    /// # Errors
    /// [`Error::ContextIsDestroyed`] if the queue is [closed](Self::close).
    pub(crate) fn is_over(&self) -> Result<bool> {
        let state = self.state.lock();
        if state.closed {
            return Err(Error::ContextIsDestroyed);
        }
        Ok(state.is_over())
    }

    /// Takes the work as a command that begins when all `waits` are over too.
    ///
    /// # Errors
    /// [`Error::ContextIsDestroyed`] if the queue is [closed](Self::close); the work then stays where it is.
    pub(crate) fn push(
        &self,
        waits: Vec<Arc<Completion>>,
        work: &mut Option<Work>,
        completion: Arc<Completion>,
        start: Start,
    ) -> Result<Pushed> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Error::ContextIsDestroyed);
        }
        let was_empty = state.commands.is_empty();
        let nothing_to_wait_for = was_empty && waits.iter().all(|wait| wait.is_finished());
        if matches!(work, Some(Work::Nothing)) && nothing_to_wait_for && state.is_over() {
            *work = None;
            completion.finish();
            return Ok(Pushed::Done);
        }
        state.last = Some(completion.clone());
        let was_idle = was_empty && !state.claimed;
        let runs_here = || !matches!(work, Some(Work::Grid(_))) || self.may_run_here();
        if start == Start::AtOnce && was_idle && nothing_to_wait_for && runs_here() {
            state.claimed = true;
            if let Some(Work::Grid(grid)) = work {
                state.grid = Some(grid.clone());
            }
            return Ok(Pushed::MustRun);
        }
        state.commands.push_back(Command { waits, work: work.take(), completion });
        Ok(if was_idle { Pushed::MustSchedule } else { Pushed::Done })
    }

    /// Runs work that may begin at once. What it leaves to do, and what has come behind it meanwhile, is for others.
    pub(crate) fn run_at_once(self: &Arc<Queue>, work: Work, completion: &Completion) {
        match work {
            Work::Grid(grid) => {
                if self.run_grid(&grid, Role::Submitter) == Continue::ByOther {
                    return;
                }
            }
            work => {
                self.run_command(work);
                completion.finish();
            }
        }
        self.executor.note_progress();
        let mut state = self.state.lock();
        state.claimed = false;
        let more = !state.commands.is_empty();
        drop(state);
        if more {
            self.schedule();
        }
    }

    /// Refuses commands from now on, or takes them again. What is queued still runs.
    pub(crate) fn close(&self, closed: bool) {
        self.state.lock().closed = closed;
    }

    /// Appends a command that does nothing but wait. Answers whether the queue must be [scheduled](Self::schedule); a closed
    /// one takes no command that could have to wait.
    pub(crate) fn wait_for(self: &Arc<Queue>, waits: Vec<Arc<Completion>>) -> bool {
        let completion = Completion::new(Arc::downgrade(self));
        let pushed = self.push(waits, &mut Some(Work::Nothing), completion, Start::InQueue);
        pushed == Ok(Pushed::MustSchedule)
    }

    /// Has a worker look at the queue.
    pub(crate) fn schedule(self: &Arc<Queue>) {
        self.executor.schedule(self.clone());
    }

    /// What the commands share.
    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Runs what is ready, if no other thread does.
    pub(crate) fn run(self: &Arc<Queue>) {
        if self.claim() {
            self.run_claimed(Role::Worker);
        }
    }

    /// A thread that waited for a command of the queue wakes up.
    pub(super) fn make_room(&self) {
        self.executor.make_room();
    }

    /// Does some of the work that `completion` waits for.
    pub(super) fn help(completion: &Arc<Completion>) -> Help {
        let mut completion = completion.clone();
        loop {
            let Some(queue) = completion.queue() else { return Help::NoneWanted };
            if !queue.may_run_here() {
                return Help::NoneWanted;
            }
            let mut state = queue.state.lock();
            if completion.is_finished() {
                return Help::Given;
            }
            if state.claimed {
                let grid = state.grid.clone();
                drop(state);
                let Some(grid) = grid else { return Help::NoneWanted };
                if queue.executor.wants_help(&grid) {
                    queue.executor.participate(&grid, Role::Helper(&completion));
                    return Help::Given;
                }
                return if queue.executor.all_run(&grid) { Help::AllBusy } else { Help::NoneWanted };
            }
            match state.blocked_by() {
                Blocked::Empty => return Help::NoneWanted,
                Blocked::By(other) => {
                    drop(state);
                    completion = other;
                }
                Blocked::Not if state.is_for_workers() => return Help::NoneWanted,
                Blocked::Not => {
                    state.claimed = true;
                    drop(state);
                    queue.run_claimed(Role::Helper(&completion));
                    return Help::Given;
                }
            }
        }
    }

    fn claim(&self) -> bool {
        let mut state = self.state.lock();
        !std::mem::replace(&mut state.claimed, true)
    }

    /// Runs commands in order until there is none, one is blocked, a grid is left to others, or what `role` waits for
    /// is over. The caller has claimed the queue.
    pub(crate) fn run_claimed(self: &Arc<Queue>, role: Role<'_>) {
        loop {
            let mut state = self.state.lock();
            if role.is_satisfied() {
                state.claimed = false;
                let more = !state.commands.is_empty();
                drop(state);
                if more {
                    self.schedule();
                }
                return;
            }
            match state.blocked_by() {
                Blocked::Not if matches!(role, Role::Helper(_)) && state.is_for_workers() => {
                    state.claimed = false;
                    drop(state);
                    return self.schedule();
                }
                Blocked::Not => {}
                Blocked::Empty => {
                    state.claimed = false;
                    return;
                }
                Blocked::By(other) => {
                    if other.then_schedule(self) {
                        state.claimed = false;
                        return;
                    }
                    continue;
                }
            }
            let mut command = state.commands.pop_front().expect("a command that is not blocked");
            let work = command.work.take().expect("queued commands have work");
            match work {
                Work::Grid(grid) => {
                    state.grid = Some(grid.clone());
                    drop(state);
                    if self.run_grid(&grid, role) == Continue::ByOther {
                        return;
                    }
                }
                Work::Branch(branch) => {
                    drop(state);
                    let mut next = Vec::new();
                    self.guarded(|| {
                        if !self.domain.health.has_failed() {
                            next = branch(self)?;
                        }
                        Ok(())
                    });
                    if next.is_empty() {
                        command.completion.finish();
                    } else {
                        // The command ends behind what it has chosen.
                        let end = command.completion.clone();
                        drop(command);
                        self.put_first(next, end);
                    }
                }
                work => {
                    drop(state);
                    self.run_command(work);
                    command.completion.finish();
                }
            }
            self.executor.note_progress();
        }
    }

    /// The end of a grid's blocks: called once, by whoever ran the last, at the time `now`. If commands `remain`, they are next, and the grid ends
    /// behind them.
    pub(crate) fn retire(&self, grid: &Grid, remain: Option<Vec<(Vec<Arc<Completion>>, Work)>>, now: u64) {
        let mut state = self.state.lock();
        let this = state.grid.take();
        let (Some(this), Some(remain)) = (this, remain) else {
            drop(state);
            return grid.completion().finish_at(now);
        };
        let end = (Vec::new(), Work::EndOf(this));
        for (waits, work) in remain.into_iter().chain([end]).rev() {
            state.commands.push_front(Command::inner(waits, work));
        }
    }

    /// Has `works` come next, and `end` be over behind them, if anybody else knows of it: a graph that launches itself over and over would leave one
    /// such end for each round.
    fn put_first(&self, works: Vec<Work>, end: Arc<Completion>) {
        let mut state = self.state.lock();
        if Arc::strong_count(&end) > 1 {
            let work = Some(Work::Nothing);
            state.commands.push_front(Command { waits: Vec::new(), work, completion: end });
        }
        for work in works.into_iter().rev() {
            state.commands.push_front(Command::inner(Vec::new(), work));
        }
    }

    fn run_grid(self: &Arc<Queue>, grid: &Arc<Grid>, role: Role<'_>) -> Continue {
        if self.domain.health.has_failed() {
            self.state.lock().grid = None;
            grid.skip();
            return Continue::Here;
        }
        self.domain.memory.conceal_freed();
        // Before others are called, who find it taken then.
        let seated = self.executor.take_seat(role);
        self.executor.start(grid, role);
        self.executor.run_blocks(grid, role);
        drop(seated);
        if grid.leave() { Continue::Here } else { Continue::ByOther }
    }

    fn run_command(&self, work: Work) {
        let health = &self.domain.health;
        self.guarded(|| match work {
            Work::Nothing | Work::Grid(_) | Work::Branch(_) => Ok(()),
            Work::EndOf(grid) => {
                grid.completion().finish();
                Ok(())
            }
            Work::Task(_) if health.has_failed() => Ok(()),
            Work::Task(task) => {
                self.domain.memory.conceal_freed();
                task()
            }
            Work::Callback(callback) => {
                self.domain.output.flush();
                callback(health.outcome());
                Ok(())
            }
            Work::Host(function) => {
                self.domain.memory.conceal_freed();
                self.domain.output.flush();
                run_host_function(|| function(health.outcome()));
                Ok(())
            }
        });
    }

    /// Runs a command; its failure is the context's.
    fn guarded(&self, command: impl FnOnce() -> Result<()>) {
        let health = &self.domain.health;
        match catch_unwind(AssertUnwindSafe(command)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => health.fail(FaultReport::of_command(format!("a queued command ({error})"))),
            Err(panic) => health.fail(FaultReport::of_command(describe_panic(&*panic))),
        }
    }
}

/// What came of an offer to help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Help {
    /// Something was done, or is over.
    Given,
    /// There is nothing to do now.
    NoneWanted,
    /// As many threads as there are processors do it.
    AllBusy,
}

#[derive(PartialEq)]
enum Continue {
    Here,
    ByOther,
}

enum Blocked {
    /// The first command can run.
    Not,
    /// There is no command.
    Empty,
    /// The first command waits for this.
    By(Arc<Completion>),
}

impl State {
    /// Whether all commands are over.
    fn is_over(&self) -> bool {
        self.commands.is_empty() && self.last.as_ref().is_none_or(|last| last.is_finished())
    }

    /// Whether only workers run the first command.
    fn is_for_workers(&self) -> bool {
        self.commands.front().is_some_and(|command| matches!(command.work, Some(Work::Host(_))))
    }

    fn blocked_by(&mut self) -> Blocked {
        let Some(command) = self.commands.front_mut() else { return Blocked::Empty };
        while let Some(wait) = command.waits.last() {
            if !wait.is_finished() {
                return Blocked::By(wait.clone());
            }
            command.waits.pop();
        }
        Blocked::Not
    }
}

/// What a panic of the executor says, for the report.
pub(crate) fn describe_panic(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a command that panicked: {}", text.unwrap_or("no message"))
}

/// Whether the calling thread is inside a host function that a stream runs.
pub fn in_host_function() -> bool {
    IN_HOST_FUNCTION.get()
}

thread_local! {
    static IN_HOST_FUNCTION: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs a function of the program from a stream.
fn run_host_function(function: impl FnOnce()) {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_HOST_FUNCTION.set(self.0);
        }
    }
    let _restore = Restore(IN_HOST_FUNCTION.replace(true));
    function();
}
