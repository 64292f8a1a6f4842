//! Products of warpgroups and of matrices in memory: a model is what a GPU answered, and the back ends compute what the model says.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel_abi::KernelBackend;
use kernel_tests::backend;
use kernel_tests::products::{self, Product, Record, checksum};

/// The products whose names have the words of `ONLY` in them.
fn selected() -> Vec<Product> {
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut all = products::all();
    all.retain(|product| product.name.contains(&only));
    all
}

fn record() -> Record {
    Record::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden")).expect("the record can be read")
}

/// What is wrong with the products, looked at by as many threads as there are processors.
fn failures(products: &[Product], check: impl Fn(&Product) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(product) = products.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(check(product).map(|why| format!("{}: {why}", product.name)));
        }
        failures
    };
    std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no product panics")).collect()
    })
}

#[test]
fn the_record_answers_what_is_asked() {
    let all = products::all();
    let names: BTreeSet<&str> = all.iter().map(|product| product.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "every product has a name of its own");
    let record = record();
    let stale: Vec<&str> = record.names().filter(|name| !names.contains(name)).collect();
    assert!(stale.is_empty(), "answers to what is not asked any more: {stale:?}");
    assert!(record.names().count() > 1500, "the record is complete, but for what is newer");
}

#[test]
fn the_model_is_what_a_gpu_answered() {
    let record = record();
    let failures = failures(&selected(), |product| {
        (checksum(&product.expected()) != record.get(&product.name)?)
            .then(|| "not what the GPU answered".into())
    });
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// What is wrong with a back end's result.
fn disagreement(product: &Product, back_end: &dyn KernelBackend) -> Option<String> {
    let (expected, got) = match product.run(back_end) {
        Ok(got) => (product.expected(), got),
        Err(why) => return Some(why),
    };
    let at = got.iter().zip(&expected).position(|(got, expected)| got != expected)?;
    Some(format!("byte {at} is {:#x}, the model's {:#x}", got[at], expected[at]))
}

/// Runs every `step`-th product, or with `ALL` in the environment every one.
fn the_model_is_what_runs_on(name: &str, step: usize) {
    let back_end = backend::open(name).expect("the name opens");
    let step = if std::env::var_os("ALL").is_some() { 1 } else { step };
    let products: Vec<Product> = selected().into_iter().step_by(step).collect();
    let failures = failures(&products, |product| disagreement(product, &*back_end));
    assert!(failures.is_empty(), "{} failures on {name}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_interpreter_computes_what_the_model_says() {
    the_model_is_what_runs_on("interp", 4);
}

#[test]
fn compiled_code_computes_what_the_model_says() {
    // Products with many columns take long to compile.
    the_model_is_what_runs_on(&backend::names().pop().expect("there are back ends"), 9);
}
