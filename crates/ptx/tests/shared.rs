//! Static shared memory as it is known when a module is loaded, beside what the lowered kernel has.

use std::path::Path;

use ptx::lower;

/// What is known of each kernel of a module, and what it has.
fn sizes(source: &str) -> Vec<(String, Option<u32>, u32)> {
    let module = ptx::parse(source).unwrap_or_else(|e| panic!("{e}\n{source}"));
    let uses = lower::check_uses(source, &module).unwrap_or_else(|e| panic!("{e}\n{source}"));
    let entries = lower::entries_that_use(source, &module, &uses).expect("the module has been checked");
    let actual =
        |name: &str| lower::program(source, &module, name).expect("it has been checked").shared_bytes;
    entries.into_iter().map(|entry| (entry.name.clone(), entry.shared_bytes, actual(&entry.name))).collect()
}

fn known(items: &str) -> Option<u32> {
    let source = format!(".version 8.0 .target sm_80 .address_size 64\n{items}");
    let (_, known, actual) =
        sizes(&source).into_iter().find(|(name, ..)| name == "k").expect("a kernel of this name");
    assert!(known.is_none_or(|known| known == actual), "{known:?} instead of {actual}: {items}");
    known
}

#[test]
fn by_variables_of_module_and_function() {
    assert_eq!(known(".shared .u32 unused; .entry k() { ret; }"), Some(0));
    assert_eq!(known(".shared .u32 x; .entry k() { .reg .b32 %r; mov.u32 %r, x; ret; }"), Some(4));
    assert_eq!(known(".entry k() { .shared .b8 x[100]; ret; }"), Some(100));
    let twice = ".shared .b8 x[6]; .entry k() { .reg .b32 %r; mov.u32 %r, x; mov.u32 %r, x; ret; }";
    assert_eq!(known(twice), Some(6));
}

#[test]
fn through_functions_but_not_other_kernels() {
    let functions =
        ".shared .u64 x; .func g() { .reg .b32 %r; mov.u32 %r, x; ret; } .func f() { call g; ret; }";
    assert_eq!(known(&format!("{functions} .entry k() {{ call f; ret; }}")), Some(8));
    assert_eq!(
        known(&format!("{functions} .entry k() {{ ret; }} .entry other() {{ call f; ret; }}")),
        Some(0)
    );
    let recursive = ".shared .u64 x; .func f() { .reg .b32 %r; mov.u32 %r, x; call f; ret; }";
    assert_eq!(known(&format!("{recursive} .entry k() {{ call f; ret; }}")), Some(8));
}

#[test]
fn what_a_launch_sizes_counts_for_nothing() {
    let dynamic = ".extern .shared .align 64 .b8 more[]; .shared .b8 x[3];";
    assert_eq!(known(&format!("{dynamic} .entry k() {{ .reg .b32 %r; mov.u32 %r, more; ret; }}")), Some(0));
    // The others end where it may begin.
    assert_eq!(known(&format!("{dynamic} .entry k() {{ .reg .b32 %r; mov.u32 %r, x; ret; }}")), Some(64));
}

#[test]
fn nothing_is_said_where_more_than_names_decides() {
    let two = ".shared .b8 x[3]; .shared .u32 y;";
    let uses_both = "{ .reg .b32 %r; mov.u32 %r, x; mov.u32 %r, y; ret; }";
    assert_eq!(known(&format!("{two} .entry k() {uses_both}")), None, "padding depends on the order");
    let numbers = ".const .u32 table[2] = {1, 2}; .entry k() { .reg .b64 %d; mov.u64 %d, table; ret; }";
    assert_eq!(known(numbers), Some(0));
    let table = ".func f() { ret; } .global .u64 table[1] = {f};";
    assert_eq!(known(&format!("{table} .entry k() {{ .reg .b64 %d; mov.u64 %d, table; ret; }}")), None);
}

#[test]
fn every_kernel_of_the_tests_has_what_is_known_of_it() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ptx")];
    let (mut all, mut told) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                let source = std::fs::read_to_string(&path).expect("a text file");
                // Some are to be refused, or lack the device's own functions.
                let Ok(module) = ptx::parse(&source) else { continue };
                let lowers = |name| lower::program(&source, &module, name).is_ok();
                if lower::check(&source, &module).is_err() || !module.entries().all(|k| lowers(k.name.text)) {
                    continue;
                }
                for (name, known, actual) in sizes(&source) {
                    assert!(
                        known.is_none_or(|known| known == actual),
                        "{}, {name}: {known:?}, {actual}",
                        path.display()
                    );
                    all += 1;
                    told += u32::from(known.is_some());
                }
            }
        }
    }
    assert!(all > 100 && told * 2 > all, "{told} of {all} are known");
}
