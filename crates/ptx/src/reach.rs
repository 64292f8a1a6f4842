//! Reading just the functions that one kernel can run.

use std::collections::HashSet;

use crate::ast::{Item, Module, Name};
use crate::error::Errors;
use crate::names::NameMap;
use crate::visit::{free_names, initialiser_names};

/// Reads the bodies of the function `name` of `module` and of all functions it may call, directly, through
/// addresses it takes, or through initial values of variables it refers to; `source` is the text the module
/// was read from. The answer holds the indices of these functions in [`Module::items`], definitions and
/// declarations, `name` itself first; it is empty if there is no such function.
pub fn read_reachable<'a>(
    source: &'a str,
    module: &mut Module<'a>,
    name: &str,
) -> Result<Vec<usize>, Errors> {
    let mut walk = Walk::from(module, name);
    while let Some(item) = walk.next() {
        if let Item::Function(function) = &mut module.items[item] {
            Module::parse_body(source, function)?;
        }
        walk.follow(&module.items[item], item);
    }
    Ok(walk.functions)
}

/// As [`read_reachable`], for a module all of whose bodies have been read.
pub(crate) fn reachable(module: &Module<'_>, name: &str) -> Vec<usize> {
    let mut walk = Walk::from(module, name);
    while let Some(item) = walk.next() {
        walk.follow(&module.items[item], item);
    }
    walk.functions
}

/// All items that a kernel uses, directly or not, in a module all of whose bodies have been read.
pub(crate) fn items(module: &Module<'_>, name: &str) -> Vec<usize> {
    let mut walk = Walk::from(module, name);
    let mut found = Vec::new();
    while let Some(item) = walk.next() {
        walk.follow(&module.items[item], item);
        found.push(item);
    }
    found
}

/// Items from name to name.
struct Walk<'a> {
    index: Index<'a>,
    seen: HashSet<usize>,
    pending: Vec<usize>,
    functions: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn from(module: &Module<'a>, name: &str) -> Walk<'a> {
        let index = Index::new(module);
        let mut pending: Vec<usize> = index.items(name).to_vec();
        pending.retain(|&item| matches!(&module.items[item], Item::Function(f) if f.is_defined()));
        Walk { index, seen: HashSet::new(), pending, functions: Vec::new() }
    }

    /// The next item to look at.
    fn next(&mut self) -> Option<usize> {
        loop {
            let item = self.pending.pop()?;
            if self.seen.insert(item) {
                return Some(item);
            }
        }
    }

    /// Queues what the item refers to.
    fn follow(&mut self, item: &Item<'a>, at: usize) {
        let mut found: Vec<Name<'a>> = Vec::new();
        match item {
            Item::Function(function) => {
                self.functions.push(at);
                free_names(function, |name| found.push(*name));
            }
            Item::Variable(variable) => {
                if let Some(initialiser) = &variable.initialiser {
                    initialiser_names(initialiser, &mut |name| found.push(*name));
                }
            }
            Item::Alias(alias) => found.push(alias.target),
            _ => {}
        }
        for name in found {
            self.pending.extend(self.index.items(name.text).iter().filter(|item| !self.seen.contains(item)));
        }
    }
}

/// Which items a name stands for.
struct Index<'a> {
    items: NameMap<&'a str, Vec<usize>>,
}

impl<'a> Index<'a> {
    fn new(module: &Module<'a>) -> Index<'a> {
        let mut items: NameMap<&'a str, Vec<usize>> = NameMap::default();
        for (at, item) in module.items.iter().enumerate() {
            let name = match item {
                Item::Function(function) => function.name,
                Item::Variable(variable) => variable.name,
                Item::Alias(alias) => alias.name,
                _ => continue,
            };
            items.entry(name.text).or_default().push(at);
        }
        Index { items }
    }

    fn items(&self, name: &str) -> &[usize] {
        self.items.get(name).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::Body;
    use crate::{Bodies, Options, parse_with};

    const SOURCE: &str = ".version 8.0 .target sm_80
        .func a() { ret; }
        .func b() { ret; }
        .func c() { ret; }
        .global .u64 table[1] = {b};
        .entry k() { .reg .b64 %d; call a; mov.u64 %d, table; ret; }
        .entry broken() { add.u32 }";

    #[test]
    fn through_calls_and_tables_only() {
        let skipped = Options { bodies: Bodies::Skipped, ..Options::default() };
        let mut module = parse_with(SOURCE, &skipped).unwrap();
        let mut names: Vec<&str> = read_reachable(SOURCE, &mut module, "k")
            .unwrap()
            .into_iter()
            .map(|at| match &module.items[at] {
                Item::Function(function) => function.name.text,
                _ => unreachable!("the answer lists functions"),
            })
            .collect();
        names[1..].sort_unstable();
        assert_eq!(names, ["k", "a", "b"]);
        assert!(matches!(module.function("c").unwrap().body, Body::Skipped(_)));
        assert!(read_reachable(SOURCE, &mut module, "broken").is_err());
        assert_eq!(read_reachable(SOURCE, &mut module, "nothing").unwrap(), []);
    }
}
