//! Every row of the instruction table in every modifier: the interpreter and compiled code compute the same.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel_abi::KernelBackend;
use kernel_tests::agreement::Kernel;
use kernel_tests::backend;
use kernel_tests::fuzz::table::leaves_nan_open;
use ptx::isa::Example;

#[test]
fn both_back_ends_mean_the_same_by_every_row() {
    let mut rows: BTreeMap<usize, Vec<Example>> = BTreeMap::new();
    for example in ptx::isa::examples() {
        rows.entry(example.row).or_default().push(example);
    }
    assert!(rows.len() > 200, "only {} rows", rows.len());
    let interpreter = backend::open("interp").expect("the name opens");
    let best = backend::names().pop().expect("there are back ends");
    let compiler = backend::open(&best).expect("the name opens");
    let rows: Vec<Vec<Example>> = rows.into_values().collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(examples) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(disagreements(examples, &*interpreter, &*compiler));
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no row panics")).collect()
    });
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// What is wrong with the examples of a row: refused though the table has them, or not the same on both.
fn disagreements(
    examples: &[Example],
    interpreter: &dyn KernelBackend,
    compiler: &dyn KernelBackend,
) -> Vec<String> {
    let first = &examples[0].text;
    let kernel = Kernel::new(examples.to_vec());
    let mut failures: Vec<String> =
        kernel.refused.iter().map(|(example, why)| format!("{} {why}", example.text)).collect();
    match (kernel.run(interpreter), kernel.run(compiler)) {
        // Addresses are others in each run.
        (Ok(_), Ok(_)) if first.starts_with("cvta") || first.contains(", memory") => {}
        (Ok(expected), Ok(got)) => {
            let alike = |(expected, got): (&u64, &u64)| {
                expected == got || leaves_nan_open(first) && [expected, got].into_iter().all(is_nan)
            };
            let differs = expected.iter().zip(&got).position(|pair| !alike(pair));
            failures.extend(differs.map(|at| {
                let (example, expected, got) = (kernel.example_of(at), expected[at], got[at]);
                format!("{example} {expected:#x} by the interpreter, {got:#x} compiled")
            }));
        }
        (expected, got) => failures.push(format!("{first} {:?} {:?}", expected.err(), got.err())),
    }
    failures
}

fn is_nan(bits: &u64) -> bool {
    f64::from_bits(*bits).is_nan()
}
