//! What the hardware answered, against the interpreter, against code for first launches, and against code for the best processor that this one can stand in for.
//! `make golden` replays it on every back end.

use std::path::Path;

use kernel_abi::Approximations;
use kernel_tests::backend;
use kernel_tests::golden::{Case, Corpus, Outcome};
use kernel_tests::known::Known;

#[test]
fn back_ends_answer_as_the_hardware() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
    let corpora = Corpus::read_all(&folder).expect("the corpora are there");
    let mut known = Known::read("golden").expect("the list of known failures is sound");
    let mut failures = Vec::new();
    let best = backend::names().pop().expect("there are back ends");
    for name in ["interp", "quick", &best] {
        let backend = backend::open(name).expect("the name opens");
        let mut passed = 0;
        for (case, outcome) in corpora.iter().flat_map(|corpus| corpus.run_all(&*backend, |_| true)) {
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Refused(why) => failures.push(format!("[{name}] {} is refused: {why}", case.name)),
                Outcome::Failed(why) if !known.expects(name, &case.name) => {
                    failures.push(format!("[{name}] {}: {why}", case.name));
                }
                Outcome::Failed(_) => {}
            }
        }
        assert!(passed > 0, "no case passes on {name}");
    }
    failures.extend(known.stale());
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn approximations_of_the_hardware_have_its_bits() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
    let mut corpus = Corpus::read(&folder).expect("the corpus is there");
    corpus.every_bit = true;
    let approximate = |case: &Case| case.name.contains(".approx") || case.name.contains("div.full");
    assert!(corpus.cases.iter().filter(|case| approximate(case)).count() > 30);
    let mut failures = Vec::new();
    for name in backend::names() {
        let backend = backend::open_with(&name, Approximations::Hardware).expect("the name opens");
        for (case, outcome) in corpus.run_all(&*backend, approximate) {
            if let Outcome::Failed(why) | Outcome::Refused(why) = outcome {
                failures.push(format!("[{name}] {}: {why}", case.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
}
