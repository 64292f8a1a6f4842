//! Asynchronous copies, tensor maps and clusters do what a plain model says, in every modifier of every row of the table.

use std::sync::atomic::{AtomicUsize, Ordering};

use kernel_tests::asynchronous;
use kernel_tests::backend;

#[test]
fn every_modifier_has_a_case() {
    let missing = asynchronous::missing(&asynchronous::cases());
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_case_does_what_the_model_says() {
    let names = backend::names();
    let best = names.last().expect("there are back ends");
    let backends = ["interp", best].map(|name| backend::open(name).expect("the name opens"));
    let only = std::env::var("ONLY").unwrap_or_default();
    let cases: Vec<_> =
        asynchronous::cases().into_iter().filter(|case| case.instruction.contains(&only)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            for backend in &backends {
                if let Err(why) = case.run(&**backend) {
                    failures.push(format!("[{}] {} {why}", backend.name(), case.instruction));
                }
            }
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no case panics")).collect()
    });
    let (failed, all) = (failures.len(), 2 * cases.len());
    assert!(failures.is_empty(), "{failed} failures in {all} runs:\n{}", failures.join("\n"));
}
