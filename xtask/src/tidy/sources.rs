//! Rules about the text of tracked files.

/// Lines a Rust source file may have. Longer ones hold more than one concept: split them by concept.
const MAX_LINES: usize = 800;

/// What a `SAFETY` comment must not consist of: it names the contract and who upholds it.
const NO_REASON: &[&str] = &["", "this is fine", "this is safe", "safe", "trust me", "ok", "fine"];

/// What a tracked file never says, and why. Written in two halves so that this file does not say it either.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("/wo", "rk/", "a path of one machine"),
    ("/ro", "ot/", "a path of one machine"),
    ("/ho", "me/", "a path of one machine"),
    ("to", "do!(", "refuse by name instead: what is missing answers not supported"),
    ("unimpl", "emented!(", "refuse by name instead: what is missing answers not supported"),
    ("db", "g!(", "left from debugging"),
    ("FIX", "ME", "mend it, or say in a comment what is missing and why"),
    ("XX", "X:", "mend it, or say in a comment what is missing and why"),
    ("<<<<", "<<< ", "left from a merge"),
];

/// Manifests of workspace members that do not take the workspace's lints.
pub fn manifests(texts: &[(String, String)]) -> Vec<String> {
    texts
        .iter()
        .filter(|(path, _)| path.ends_with("/Cargo.toml"))
        .filter(|(_, text)| {
            let manifest: Option<toml::Table> = text.parse().ok();
            manifest.and_then(|table| table.get("lints")?.get("workspace")?.as_bool()) != Some(true)
        })
        .map(|(path, _)| format!("{path} lacks `[lints] workspace = true`"))
        .collect()
}

/// Rust sources over their length.
pub fn lengths(texts: &[(String, String)]) -> Vec<String> {
    rust(texts)
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{path} has {lines} lines, the limit is {MAX_LINES}"))
        .collect()
}

/// Modules that are missing in a list of modules. A file whose documentation lists most of its modules, each under a bullet, has such a list.
pub fn module_lists(texts: &[(String, String)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in rust(texts) {
        let docs: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let listed =
            docs.iter().skip_while(|line| !line.starts_with(" * ")).copied().collect::<Vec<_>>().join("\n");
        let modules: Vec<&str> =
            text.lines().filter_map(module).filter(|module| *module != "tests").collect();
        let names = |text: &str, module: &str| {
            [format!("`{module}`"), format!("`mod@{module}`")].iter().any(|name| text.contains(name))
        };
        let is_list = 2 * modules.iter().filter(|module| names(&listed, module)).count() > modules.len();
        let docs = docs.join("\n");
        let missing = modules.iter().filter(|module| is_list && !names(&docs, module));
        findings.extend(missing.map(|module| format!("{path} does not list its module `{module}`")));
    }
    findings
}

/// The module that a line declares, whose text is in another file.
fn module(line: &str) -> Option<&str> {
    let declaration = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches("(crate)").trim_start_matches("(super)").trim_start(),
        None => line,
    };
    declaration.strip_prefix("mod ")?.strip_suffix(';')
}

/// `SAFETY` comments without a reason. (That each unsafe block has a comment is clippy's part.)
pub fn safety(texts: &[(String, String)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in rust(texts) {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(first) = line.trim().strip_prefix("// SAFETY:") else { continue };
            let rest = lines[index + 1..].iter().map_while(|line| line.trim().strip_prefix("//"));
            let words: Vec<&str> =
                std::iter::once(first).chain(rest).flat_map(str::split_whitespace).collect();
            let reason = words.join(" ").trim_end_matches('.').to_lowercase();
            if NO_REASON.contains(&reason.as_str()) {
                findings.push(format!("{path}:{} does not say why this is sound", index + 1));
            }
        }
    }
    findings
}

/// Lines with a forbidden word.
pub fn words(texts: &[(String, String)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in texts {
        for (index, line) in text.lines().enumerate() {
            for (head, tail, why) in FORBIDDEN {
                let word = format!("{head}{tail}");
                if line.contains(&word) {
                    findings.push(format!("{path}:{}: `{word}`: {why}", index + 1));
                }
            }
        }
    }
    findings
}

fn rust(texts: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    texts.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(path, text)| (path.as_str(), text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Vec<(String, String)> {
        vec![(path.into(), text.into())]
    }

    #[test]
    fn a_member_without_the_lints_is_found() {
        assert_eq!(manifests(&file("crates/a/Cargo.toml", "[lints]\nworkspace = true")), [""; 0]);
        assert_eq!(manifests(&file("crates/a/Cargo.toml", "[lints]\n")).len(), 1);
        assert_eq!(manifests(&file("Cargo.toml", "[workspace]")), [""; 0]);
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        assert_eq!(lengths(&file("a.rs", &"\n".repeat(MAX_LINES))), [""; 0]);
        assert_eq!(lengths(&file("a.rs", &"\n".repeat(MAX_LINES + 1))).len(), 1);
        assert_eq!(lengths(&file("a.ptx", &"\n".repeat(MAX_LINES + 1))), [""; 0]);
    }

    #[test]
    fn a_module_that_a_list_lacks_is_found() {
        let list = "//! What there is:\n//! * [`a`]: one;\n//! * [`mod@b`], `c`: others.\n\nmod a;\npub mod b;\npub(crate) mod c;\n";
        assert_eq!(module_lists(&file("a.rs", list)), [""; 0]);
        assert_eq!(
            module_lists(&file("a.rs", &format!("{list}mod d;\n#[cfg(test)]\nmod tests;\n"))).len(),
            1
        );
        assert_eq!(module_lists(&file("a.rs", "//! See [`a`].\n\nmod a;\nmod b;\n")), [""; 0]);
    }

    #[test]
    fn an_empty_reason_is_found_and_a_reason_over_two_lines_is_not() {
        assert_eq!(safety(&file("a.rs", "    // SAFETY: this is fine.\n    unsafe {}")).len(), 1);
        assert_eq!(safety(&file("a.rs", "// SAFETY:\nunsafe {}")).len(), 1);
        assert_eq!(safety(&file("a.rs", "// SAFETY:\n// the caller keeps the pointer alive\n")), [""; 0]);
    }

    #[test]
    fn forbidden_words_are_found_with_their_line() {
        let text = format!("fine\n{}{}\"later\")", "to", "do!(");
        assert!(words(&file("a.rs", &text))[0].starts_with("a.rs:2: "));
    }
}
