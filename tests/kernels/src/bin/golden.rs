//! `golden FOLDER [--backend NAME]... [--filter TEXT] [--verbose]`: replays the corpora of a folder, what the hardware answered, on
//! every back end if none is named. With `ANYWARP_APPROX=hardware`, approximations have the hardware's bits, and must agree in all of
//! them.
//!
//! Prints what failed, how many cases of each family were refused at load because something in them is not implemented (with
//! `--verbose`, which and why), and last `N passed, M failed`.

use std::collections::BTreeMap;
use std::path::Path;

use kernel_abi::Approximations;
use kernel_tests::golden::{Case, Corpus, Outcome};

fn main() {
    match run() {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(message) => {
            eprintln!("golden: {message}");
            std::process::exit(2);
        }
    }
}

fn run() -> Result<bool, String> {
    let (mut corpus, mut backends, mut filter, mut verbose) = (None, Vec::new(), None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--backend" => backends.push(args.next().ok_or("--backend wants a name")?),
            "--filter" => filter = Some(args.next().ok_or("--filter wants a text")?),
            "--verbose" => verbose = true,
            _ => corpus = Some(arg),
        }
    }
    let mut corpora = Corpus::read_all(Path::new(&corpus.ok_or("which corpus?")?))?;
    let approximations = std::env::var("ANYWARP_APPROX").unwrap_or_default();
    let approximations = Approximations::named(&approximations).unwrap_or_default();
    let every_bit = approximations == Approximations::Hardware;
    corpora.iter_mut().for_each(|corpus| corpus.every_bit = every_bit);
    if backends.is_empty() {
        backends = kernel_tests::backend::names();
    }
    let wanted = |case: &Case| filter.as_ref().is_none_or(|filter| case.name.contains(filter.as_str()));
    let (mut passed, mut failed, mut refused) = (0, BTreeMap::new(), BTreeMap::<String, usize>::new());
    for name in backends {
        let backend = kernel_tests::backend::open_with(&name, approximations)?;
        for (case, outcome) in corpora.iter().flat_map(|corpus| corpus.run_all(&*backend, wanted)) {
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Refused(why) => {
                    if verbose {
                        println!("refused {name} {}: {why}", case.name);
                    }
                    *refused.entry(case.group.clone()).or_default() += 1;
                }
                Outcome::Failed(why) => {
                    failed.insert(format!("{} [{name}]", case.name), why);
                }
            }
        }
    }
    for (case, why) in &failed {
        println!("{case}: {why}");
    }
    for (group, count) in &refused {
        println!("refused at load, {group}: {count}");
    }
    println!("{passed} passed, {} failed", failed.len());
    Ok(failed.is_empty() && passed > 0)
}
