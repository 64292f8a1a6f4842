//! What the hardware answered, against every back end.

use std::path::Path;

use kernel_tests::backend;
use kernel_tests::golden::{Corpus, Outcome};
use kernel_tests::known::Known;

fn replay(backends: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
    let corpus = Corpus::read(&folder).expect("the corpus is there");
    let mut known = Known::read("golden").expect("the list of known failures is sound");
    let mut failures = Vec::new();
    for name in backends {
        let backend = backend::open(name).expect("the name opens");
        let mut passed = 0;
        for case in &corpus.cases {
            match corpus.run(case, &*backend) {
                Outcome::Passed => passed += 1,
                // What is not implemented is refused by name; `make golden` counts it.
                Outcome::Refused(_) => {}
                Outcome::Failed(why) if !known.expects(name, &case.name) => {
                    failures.push(format!("[{name}] {}: {why}", case.name));
                }
                Outcome::Failed(_) => {}
            }
        }
        assert!(passed > 3000, "only {passed} cases pass on {name}");
    }
    if backends.len() > 1 {
        failures.extend(known.stale());
    }
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_back_end_answers_as_the_hardware() {
    let names = backend::names();
    replay(&names.iter().map(String::as_str).collect::<Vec<_>>());
}
