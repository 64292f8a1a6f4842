//! `xtask tidy`: the rules of this repository that can be checked without compiling it.

mod edges;
mod licences;
mod sources;

use crate::{Error, Report, coverage, exports, support, workspace};

/// Runs every check.
pub fn run() -> Result<Report, Error> {
    let packages = workspace::packages()?;
    let texts = workspace::tracked_texts()?;
    let deny = std::fs::read_to_string(workspace::root().join("deny.toml"))?;
    let mut report = Report::default();
    report.add("dependencies between crates point down", edges::check(&packages));
    report.add("every crate takes the workspace's lints", sources::manifests(&texts));
    report.add("every licence is in deny.toml", licences::check(&packages, &deny)?);
    report.add("no file is over its length", sources::lengths(&texts));
    report.add("lists of modules are complete", sources::module_lists(&texts));
    report.add("SAFETY comments say something", sources::safety(&texts));
    report.add("no words that do not belong here", sources::words(&texts));
    report.add("every exported name has one body or is a stub", exports::check(&texts));
    coverage::check(&texts, &mut report);
    support::check(&texts, &mut report);
    Ok(report)
}
