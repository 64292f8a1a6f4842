//! Graphs and capture.
//!
//! Captures concern the whole process, so the tests of this file take turns.
#![cfg(not(miri))] // reserved address space

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use common::*;
use device::graph::{
    CaptureMode, CaptureStatus, ConditionalKind, ExecutableGraph, Graph, KernelCall, Operation, UpdateFailure,
};
use device::memory::{Fill, Side, Transfer};
use device::{Error, Event, EventFlags, Function, Stream, StreamKind};
use kernel_abi::FaultKind;

static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A kernel that adds its second parameter to the word its first points to.
fn adder(setup: &Setup) -> Arc<Function> {
    setup.kernel("adder", |frame| {
        add(params(frame)[0], params(frame)[1]);
        Ok(())
    })
}

fn call(function: &Arc<Function>, params: [u64; 2]) -> Operation {
    let params = params.iter().flat_map(|value| value.to_le_bytes()).collect();
    Operation::Kernel(KernelCall { function: function.clone(), launch: blocks(3), params, updatable: None })
}

fn stream(setup: &Setup) -> Arc<Stream> {
    setup.context.create_stream(StreamKind::Blocking, 0).unwrap()
}

fn event(setup: &Setup) -> Arc<Event> {
    Event::new(&setup.context, EventFlags::default()).unwrap()
}

#[test]
fn a_graph_is_launched_many_times() {
    let _turn = turn();
    let setup = Setup::new();
    let kernel = adder(&setup);
    let word = setup.context.allocate(16).unwrap();
    let graph = Graph::new();
    let clear = graph.add(Operation::Fill(Fill::linear(word, 0, 1, 16)), &[]).unwrap();
    let a = graph.add(call(&kernel, [word, 1]), &[clear]).unwrap();
    let b = graph.add(call(&kernel, [word, 10]), &[clear]).unwrap();
    let copy = Transfer::linear(Side::device(word + 8), Side::device(word), 8);
    graph.add(Operation::Copy(copy), &[a, b]).unwrap();
    let executable = ExecutableGraph::new(&graph);
    let streams = [stream(&setup), stream(&setup)];
    for round in 0..20 {
        executable.launch(&streams[round % 2]).unwrap();
    }
    setup.context.synchronize().unwrap();
    assert_eq!((read(word), read(word + 8)), (33, 33));

    executable.set_operation(b, call(&kernel, [word, 100])).unwrap();
    assert_eq!(executable.set_operation(b, Operation::Empty), Err(Error::InvalidValue));
    executable.launch(&streams[0]).unwrap();
    setup.context.synchronize().unwrap();
    assert_eq!(read(word + 8), 303);
    executable.set_enabled(a, false).unwrap();
    executable.launch(&streams[0]).unwrap();
    setup.context.synchronize().unwrap();
    assert_eq!(read(word + 8), 300);
    assert!(!executable.is_enabled(a).unwrap() && executable.is_enabled(b).unwrap());
}

#[test]
fn updating_to_a_graph_of_the_same_form() {
    let _turn = turn();
    let setup = Setup::new();
    let kernel = adder(&setup);
    let word = setup.context.allocate(8).unwrap();
    let make = |value| {
        let graph = Graph::new();
        let clear = graph.add(Operation::Fill(Fill::linear(word, 0, 1, 8)), &[]).unwrap();
        let node = graph.add(call(&kernel, [word, value]), &[clear]).unwrap();
        (graph, node)
    };
    let executable = ExecutableGraph::new(&make(1).0);
    let (other, node) = make(7);
    executable.update(&other).unwrap();
    executable.launch(setup.context.legacy_stream()).unwrap();
    setup.context.synchronize().unwrap();
    assert_eq!(read(word), 21);
    other.add(Operation::Empty, &[node]).unwrap();
    assert_eq!(executable.update(&other), Err(UpdateFailure::CountChanged));
    let apart = Graph::new();
    let first = apart.add(Operation::Fill(Fill::linear(word, 0, 1, 8)), &[]).unwrap();
    apart.add(call(&kernel, [word, 7]), &[]).unwrap();
    assert_eq!(executable.update(&apart), Err(UpdateFailure::TopologyChanged(first, None)));
    let in_rows = Graph::new();
    let rows = Fill { pitch: 4, height: 2, ..Fill::linear(word, 0, 1, 4) };
    let first = in_rows.add(Operation::Fill(rows), &[]).unwrap();
    in_rows.add(call(&kernel, [word, 7]), &[first]).unwrap();
    assert_eq!(executable.update(&in_rows), Err(UpdateFailure::ParametersChanged(first)));
    let together = Graph::new();
    let first = together.add(Operation::Fill(Fill::linear(word, 0, 1, 8)), &[]).unwrap();
    let mut all_at_once = call(&kernel, [word, 7]);
    if let Operation::Kernel(call) = &mut all_at_once {
        call.launch.cooperative = true;
    }
    let second = together.add(all_at_once, &[first]).unwrap();
    assert_eq!(executable.update(&together), Err(UpdateFailure::AttributesChanged(second)));
    let different = Graph::new();
    let first = different.add(Operation::Fill(Fill::linear(word, 0, 1, 8)), &[]).unwrap();
    let second = different.add(Operation::Host(Arc::new(|| ())), &[first]).unwrap();
    assert_eq!(executable.update(&different), Err(UpdateFailure::NodeTypeChanged(second)));
}

/// A kernel that takes one from the word its second parameter points to, and sets the condition to what is left.
fn counter(setup: &Setup) -> Arc<Function> {
    setup.kernel("counter", |frame| {
        let [condition, word] = [params(frame)[0], params(frame)[1]];
        add(word, u64::MAX);
        // SAFETY: memory of the test's.
        unsafe { guard::store(condition, read(word) as u32).unwrap() };
        Ok(())
    })
}

#[test]
fn a_loop_runs_as_long_as_its_condition_holds() {
    let _turn = turn();
    let setup = Setup::new();
    let (adder, counter) = (adder(&setup), counter(&setup));
    let words = setup.context.allocate(32).unwrap();
    let graph = Graph::new();
    let set = graph.add(Operation::Fill(Fill::linear(words, 0, 1, 32)), &[]).unwrap();
    let ten = graph.add(Operation::Fill(Fill::linear(words + 24, 10, 1, 1)), &[set]).unwrap();
    let condition = graph.add_condition(&setup.context, Some(1)).unwrap();
    assert!(graph.has_unused_conditions());
    let (node, inner) = graph.add_conditional(ConditionalKind::While, condition, 1, &[ten]).unwrap();
    assert!(!graph.has_unused_conditions() && graph.has_conditional_nodes());
    graph.add(call(&adder, [words + 8, 1]), &[node]).unwrap();
    let body = &inner.bodies()[0];
    let added = body.add(call(&adder, [words, 1]), &[]).unwrap();
    let single = |operation| match operation {
        Operation::Kernel(mut call) => {
            call.launch = blocks(1);
            Operation::Kernel(call)
        }
        other => other,
    };
    let counted = body.add(single(call(&counter, [condition, words + 24])), &[added]).unwrap();
    // In the body: a choice that is there in each round, by a condition of the body's own.
    let own = body.add_condition(&setup.context, Some(2)).unwrap();
    let (_, choice) = body.add_conditional(ConditionalKind::Switch, own, 3, &[counted]).unwrap();
    choice.bodies()[2].add(call(&adder, [words + 16, 1]), &[]).unwrap();
    choice.bodies()[1].add(Operation::Host(Arc::new(|| ())), &[]).unwrap();
    assert!(graph.misplaced_in_bodies(setup.context.memory()).is_some(), "a host function");
    choice.bodies()[1].remove(choice.bodies()[1].nodes()[0]).unwrap();
    assert!(graph.misplaced_in_bodies(setup.context.memory()).is_none());
    let executable = ExecutableGraph::new(&graph);
    let stream = stream(&setup);
    for _ in 0..3 {
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!([0, 8, 16, 24].map(|at| read(words + at)), [30, 3, 30, 0]);
    }
    // Nodes of bodies can be changed too.
    executable.set_operation(added, call(&adder, [words, 2])).unwrap();
    executable.set_enabled(counted, true).unwrap();
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read(words), 60);
    stream.begin_capture(CaptureMode::Relaxed, Graph::new(), &[]).unwrap();
    assert_eq!(executable.launch(&stream), Err(Error::StreamCaptureUnsupported));
    assert_eq!(stream.end_capture().err(), Some(Error::StreamCaptureInvalidated));
}

#[test]
fn a_failing_body_ends_its_loop() {
    let _turn = turn();
    let setup = Setup::new();
    let fails = setup.kernel("fails", |frame| Err(fault(frame, FaultKind::Trap)));
    let graph = Graph::new();
    let condition = graph.add_condition(&setup.context, Some(1)).unwrap();
    let (_, node) = graph.add_conditional(ConditionalKind::While, condition, 1, &[]).unwrap();
    node.bodies()[0].add(call(&fails, [0, 0]), &[]).unwrap();
    let executable = ExecutableGraph::new(&graph);
    // The body may fail before the launch has returned, which then is the first to tell.
    let outcome = executable.launch(setup.context.legacy_stream()).and_then(|()| setup.context.synchronize());
    assert!(matches!(outcome, Err(Error::Fault(_))));
}

#[test]
fn conditions_belong_to_one_node_of_their_graph() {
    let _turn = turn();
    let setup = Setup::new();
    let (graph, other) = (Graph::new(), Graph::new());
    let condition = graph.add_condition(&setup.context, None).unwrap();
    let add =
        |graph: &Arc<Graph>, kind, bodies| graph.add_conditional(kind, condition, bodies, &[]).map(drop);
    assert_eq!(add(&other, ConditionalKind::If, 1), Err(Error::InvalidValue));
    assert_eq!(add(&graph, ConditionalKind::While, 2), Err(Error::InvalidValue));
    let missing = other.add(Operation::Empty, &[]).unwrap();
    let failed = graph.add_conditional(ConditionalKind::If, condition, 1, &[missing]).map(drop);
    assert_eq!(failed, Err(Error::InvalidValue));
    add(&graph, ConditionalKind::If, 2).unwrap();
    assert_eq!(add(&graph, ConditionalKind::If, 1), Err(Error::InvalidValue), "it has a node");
    // Another graph of this form may take its place, one that chooses otherwise may not.
    let executable = ExecutableGraph::new(&graph);
    let same = |kind, bodies| {
        let graph = Graph::new();
        let condition = graph.add_condition(&setup.context, None).unwrap();
        let (node, _) = graph.add_conditional(kind, condition, bodies, &[]).unwrap();
        (graph, node)
    };
    executable.update(&same(ConditionalKind::If, 2).0).unwrap();
    let (longer, node) = same(ConditionalKind::Switch, 2);
    assert_eq!(executable.update(&longer), Err(UpdateFailure::NotSupported(node)));
}

#[test]
fn child_graphs_run_in_their_place() {
    let _turn = turn();
    let setup = Setup::new();
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |text: &'static str| {
        let log = log.clone();
        Operation::Host(Arc::new(move || log.lock().unwrap().push(text)))
    };
    let child = Graph::new();
    child.add(note("child"), &[]).unwrap();
    let graph = Graph::new();
    let before = graph.add(note("before"), &[]).unwrap();
    let node = graph.add(Operation::Child(child), &[before]).unwrap();
    graph.add(note("after"), &[node]).unwrap();
    let executable = ExecutableGraph::new(&graph);
    executable.launch(setup.context.legacy_stream()).unwrap();
    setup.context.synchronize().unwrap();
    assert_eq!(*log.lock().unwrap(), ["before", "child", "after"]);
}

#[test]
fn a_capture_spreads_and_is_joined() {
    let _turn = turn();
    let setup = Setup::new();
    let kernel = adder(&setup);
    let word = setup.context.allocate(8).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let (s, t) = (stream(&setup), stream(&setup));
    let (fork, join) = (event(&setup), event(&setup));
    s.begin_capture(CaptureMode::Global, Graph::new(), &[]).unwrap();
    assert_eq!(s.begin_capture(CaptureMode::Global, Graph::new(), &[]), Err(Error::IllegalState));
    s.fill(Fill::linear(word, 0, 1, 8)).unwrap();
    fork.record(&s).unwrap();
    t.wait_event(&fork).unwrap();
    assert_eq!(t.capture_status().unwrap().0, CaptureStatus::Active);
    launch(&kernel, &s, &blocks(2), &[word, 1]).unwrap();
    launch(&kernel, &t, &blocks(2), &[word, 10]).unwrap();
    let counter = calls.clone();
    t.host_function(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    })
    .unwrap();
    join.record(&t).unwrap();
    s.wait_event(&join).unwrap();
    let graph = s.end_capture().unwrap();
    assert_eq!(s.capture_status().unwrap().0, CaptureStatus::None);
    assert_eq!((graph.nodes().len(), graph.edges().len()), (4, 3));
    setup.context.synchronize().unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 0, "captured work does not run");
    let executable = ExecutableGraph::new(&graph);
    for _ in 0..10 {
        executable.launch(&s).unwrap();
    }
    s.synchronize().unwrap();
    assert_eq!((read(word), calls.load(Ordering::SeqCst)), (22, 10));
}

#[test]
fn what_spoils_a_capture() {
    let _turn = turn();
    let setup = Setup::new();
    let (s, t) = (stream(&setup), stream(&setup));
    let outside = event(&setup);
    outside.record(&t).unwrap();
    t.synchronize().unwrap();
    let begin = |mode| s.begin_capture(mode, Graph::new(), &[]).unwrap();
    let spoiled = || {
        assert_eq!(s.capture_status().unwrap().0, CaptureStatus::Invalidated);
        assert_eq!(s.host_function(|| ()), Err(Error::StreamCaptureInvalidated));
        assert_eq!(s.end_capture().err(), Some(Error::StreamCaptureInvalidated));
        assert_eq!(s.end_capture().err(), Some(Error::IllegalState));
    };
    begin(CaptureMode::Global);
    assert_eq!(setup.context.allocate(8), Err(Error::StreamCaptureUnsupported));
    spoiled();
    begin(CaptureMode::Relaxed);
    setup.context.allocate(8).unwrap();
    assert_eq!(t.query(), Ok(()));
    assert_eq!(
        setup.context.legacy_stream().fill(Fill::linear(0, 0, 1, 0)),
        Err(Error::StreamCaptureImplicit)
    );
    spoiled();
    begin(CaptureMode::ThreadLocal);
    std::thread::scope(|scope| {
        scope.spawn(|| setup.context.allocate(8).unwrap());
    });
    assert_eq!(t.query(), Err(Error::StreamCaptureUnsupported));
    spoiled();
    begin(CaptureMode::ThreadLocal);
    assert_eq!(s.synchronize(), Err(Error::StreamCaptureUnsupported));
    spoiled();
    let executable = ExecutableGraph::new(&Graph::new());
    begin(CaptureMode::Relaxed);
    executable.launch(&t).unwrap();
    assert_eq!(executable.launch(&s), Err(Error::StreamCaptureUnsupported));
    spoiled();
    begin(CaptureMode::Relaxed);
    assert_eq!(s.wait_event(&outside), Err(Error::StreamCaptureIsolation));
    spoiled();
    begin(CaptureMode::Relaxed);
    let inside = event(&setup);
    inside.record(&s).unwrap();
    assert_eq!(inside.query(), Err(Error::CapturedEvent));
    spoiled();
    begin(CaptureMode::Relaxed);
    assert_eq!(setup.context.synchronize(), Err(Error::StreamCaptureUnsupported));
    spoiled();
    assert_eq!(
        setup.context.legacy_stream().begin_capture(CaptureMode::Relaxed, Graph::new(), &[]),
        Err(Error::StreamCaptureUnsupported)
    );
    setup.context.synchronize().unwrap();
}

#[test]
fn a_branch_that_is_not_joined() {
    let _turn = turn();
    let setup = Setup::new();
    let (s, t) = (stream(&setup), stream(&setup));
    let fork = event(&setup);
    s.begin_capture(CaptureMode::ThreadLocal, Graph::new(), &[]).unwrap();
    fork.record(&s).unwrap();
    t.wait_event(&fork).unwrap();
    t.host_function(|| ()).unwrap();
    assert_eq!(s.end_capture().err(), Some(Error::StreamCaptureUnjoined));
    assert!(!s.is_capturing() && !t.is_capturing());
    t.synchronize().unwrap();
    s.begin_capture(CaptureMode::Global, Graph::new(), &[]).unwrap();
    let other = std::thread::scope(|scope| scope.spawn(|| s.end_capture().err()).join().unwrap());
    assert_eq!(other, Some(Error::StreamCaptureWrongThread));
    assert!(!s.is_capturing());
    assert_eq!(s.end_capture().err(), Some(Error::IllegalState));
}

#[test]
fn memory_of_a_graph() {
    let _turn = turn();
    let setup = Setup::new();
    let kernel = adder(&setup);
    let word = setup.context.allocate(8).unwrap();
    setup.context.legacy_stream().fill(Fill::linear(word, 0, 1, 8)).unwrap();
    setup.context.synchronize().unwrap();
    let s = stream(&setup);
    s.begin_capture(CaptureMode::Global, Graph::new(), &[]).unwrap();
    let memory = s.allocate(4096).unwrap();
    s.fill(Fill::linear(memory, 0, 1, 4096)).unwrap();
    launch(&kernel, &s, &blocks(1), &[memory, 5]).unwrap();
    launch(&kernel, &s, &blocks(1), &[word, 1]).unwrap();
    s.free(memory).unwrap();
    let graph = s.end_capture().unwrap();
    assert_eq!(graph.nodes().len(), 5);
    let executable = ExecutableGraph::new(&graph);
    drop(graph);
    for _ in 0..3 {
        executable.launch(&s).unwrap();
    }
    drop(executable);
    s.synchronize().unwrap();
    assert_eq!(read(word), 3);
    assert!(setup.platform.memory().find(memory).is_none(), "freed with the last user");
}

#[test]
fn a_stream_dropped_in_a_capture() {
    let _turn = turn();
    let setup = Setup::new();
    let s = stream(&setup);
    s.begin_capture(CaptureMode::Global, Graph::new(), &[]).unwrap();
    drop(s);
    setup.context.allocate(8).unwrap();
}
