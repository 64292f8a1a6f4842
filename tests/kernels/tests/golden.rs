//! What the hardware answered, against the interpreter and against code for the best processor that this one can stand in for.
//! `make golden` replays it on every back end.

use std::path::Path;

use kernel_tests::backend;
use kernel_tests::golden::{Case, Corpus, Outcome};
use kernel_tests::known::Known;

#[test]
fn back_ends_answer_as_the_hardware() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
    let corpus = Corpus::read(&folder).expect("the corpus is there");
    let cases: Vec<&Case> = corpus.cases.iter().collect();
    let mut known = Known::read("golden").expect("the list of known failures is sound");
    let mut failures = Vec::new();
    let best = backend::names().pop().expect("there are back ends");
    for name in ["interp", &best] {
        let backend = backend::open(name).expect("the name opens");
        let mut passed = 0;
        for (case, outcome) in cases.iter().zip(corpus.run_all(&cases, &*backend)) {
            match outcome {
                Outcome::Passed => passed += 1,
                // What is not implemented is refused by name; `make golden` counts it.
                Outcome::Refused(_) => {}
                Outcome::Failed(why) if !known.expects(name, &case.name) => {
                    failures.push(format!("[{name}] {}: {why}", case.name));
                }
                Outcome::Failed(_) => {}
            }
        }
        assert!(passed > 4500, "only {passed} cases pass on {name}");
    }
    failures.extend(known.stale());
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
}
