//! `xtask support`: how much of each API is there, from `functions.in`, as Markdown.

use cuda_abi::functions::{Function, Library, exported_by};
use std::collections::BTreeMap;

/// Prints a table for each library: a row for each heading of the manual.
pub fn print() {
    for library in Library::ALL {
        let functions = exported_by(library);
        println!("### {}\n\n{}", library.soname(), table(&functions));
    }
}

fn table(functions: &[(&str, Function)]) -> String {
    let mut groups: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for (name, function) in functions {
        let (done, missing) = groups.entry(function.group).or_default();
        match function.done {
            true => *done += 1,
            false => missing.push(name),
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
    use cuda_abi::functions::Api;

    #[test]
    fn a_group_shows_what_is_missing() {
        let function = |name, done| {
            (
                name,
                Function {
                    api: Api::Driver,
                    group: "Streams",
                    done,
                    name,
                    parameters: None,
                    result: "CUresult",
                    lookups: Vec::new(),
                    exports: Vec::new(),
                },
            )
        };
        let functions = [function("cuOne", true), function("cuTwo", false)];
        assert!(table(&functions).starts_with("1 of 2 functions."));
        assert!(table(&functions).ends_with("| Streams | 1 of 2 | `cuTwo` |\n"));
    }
}
