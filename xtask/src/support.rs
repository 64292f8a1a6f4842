//! `xtask support`: how much of each API is there, from `functions.in`, as Markdown.

use cuda_abi::functions::{self, Function, Library};
use std::collections::BTreeMap;

/// Prints a table for each library: a row for each heading of the manual.
pub fn print() {
    for library in [Library::Driver, Library::Runtime] {
        let functions = functions::all();
        let functions: Vec<_> = functions.iter().filter(|function| function.library == library).collect();
        println!("### {}\n\n{}", library.soname(), table(&functions));
    }
}

fn table(functions: &[&Function]) -> String {
    let mut groups: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for function in functions {
        let (done, missing) = groups.entry(function.group).or_default();
        match function.done {
            true => *done += 1,
            false => missing.push(function.name),
        }
    }
    let done: usize = groups.values().map(|(done, _)| done).sum();
    let mut text =
        format!("{done} of {} functions.\n\n| group | there | missing |\n|---|---:|---|\n", functions.len());
    for (group, (done, missing)) in groups {
        let names = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
        text += &format!("| {group} | {done} of {} | {names} |\n", done + missing.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_shows_what_is_missing() {
        let function = |name, done| Function {
            library: Library::Driver,
            group: "Streams",
            done,
            name,
            parameters: None,
            result: "CUresult",
            lookups: Vec::new(),
        };
        let (one, two) = (function("cuOne", true), function("cuTwo", false));
        assert!(table(&[&one, &two]).starts_with("1 of 2 functions."));
        assert!(table(&[&one, &two]).ends_with("| Streams | 1 of 2 | `cuTwo` |\n"));
    }
}
