//! Failures that are known, each with its reason. One that no longer fails must leave the list.
//!
//! `tests/known-failures.tsv` has a line for each: suite, back end (`interp`, `jit` for all generated code, `*` for both), test,
//! reason, separated by tabs.

use std::collections::BTreeSet;
use std::path::Path;

/// The list, and which of its lines have been met.
pub struct Known {
    lines: Vec<[String; 4]>,
    met: BTreeSet<usize>,
}

impl Known {
    /// The lines of one suite.
    pub fn read(suite: &str) -> Result<Known, String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../known-failures.tsv");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let fields: Vec<String> = line.split('\t').map(String::from).collect();
            let fields: [String; 4] =
                fields.try_into().map_err(|_| format!("{}: not four fields: {line}", path.display()))?;
            if fields[0] == suite {
                lines.push(fields);
            }
        }
        Ok(Known { lines, met: BTreeSet::new() })
    }

    /// Whether this failure is in the list.
    pub fn expects(&mut self, backend: &str, test: &str) -> bool {
        let kind = if backend == "interp" { "interp" } else { "jit" };
        let found: Vec<usize> = (0..self.lines.len())
            .filter(|i| {
                let [_, on, name, _] = &self.lines[*i];
                name == test && (on == kind || on == "*" || on == backend)
            })
            .collect();
        self.met.extend(&found);
        !found.is_empty()
    }

    /// Lines that nothing failed for.
    pub fn stale(&self) -> Vec<String> {
        (0..self.lines.len())
            .filter(|i| !self.met.contains(i))
            .map(|i| format!("known failure that does not fail: {}", self.lines[i].join(" ")))
            .collect()
    }
}
