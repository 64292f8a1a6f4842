//! The directives: what each belongs to, and the version and architecture that introduced it.

use std::collections::BTreeSet;

use crate::ast::Version;
use crate::lexer::{Lexer, TokenKind};

/// A directive, or a pragma's string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Its name with the dot, or the first word of the string.
    pub name: &'static str,
    /// What it belongs to.
    pub group: &'static str,
    /// Where it may stand.
    pub(crate) place: Place,
    /// The PTX version that introduced it.
    pub version: Version,
    /// The first architecture that has it.
    pub sm: u32,
}

/// Where a directive may stand. Only what stands between a function's parameters and its body is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At kernels.
    Kernel,
    /// At functions that are called, and at prototypes.
    Callee,
    /// A string of `.pragma`.
    Pragma,
    /// Elsewhere.
    Other,
}

const MODULE: &str = "Module";
const LINKAGE: &str = "Linkage";
const FUNCTION: &str = "Kernels and functions";
const VARIABLE: &str = "Variables and parameters";
const CONTROL: &str = "Control flow";
const TUNING: &str = "Performance";
const CLUSTER: &str = "Clusters";
const DEBUGGING: &str = "Debugging";
const PRAGMA: &str = "Pragmas";

type Row = (&'static str, &'static str, Place, (u32, u32), u32);

/// `.maxnctapersm`, `.tex` and banks of constants are no directives any more: assemblers refuse them in the versions of PTX that have
/// targets like ours.
const TABLE: [Row; 47] = [
    (".version", MODULE, Place::Other, (1, 0), 10),
    (".target", MODULE, Place::Other, (1, 0), 10),
    (".address_size", MODULE, Place::Other, (2, 3), 10),
    (".extern", LINKAGE, Place::Other, (1, 0), 10),
    (".visible", LINKAGE, Place::Other, (1, 0), 10),
    (".weak", LINKAGE, Place::Other, (3, 1), 10),
    (".common", LINKAGE, Place::Other, (5, 0), 20),
    (".entry", FUNCTION, Place::Other, (1, 0), 10),
    (".func", FUNCTION, Place::Other, (1, 0), 10),
    (".alias", FUNCTION, Place::Other, (6, 3), 30),
    (".noreturn", FUNCTION, Place::Callee, (6, 4), 30),
    (".reg", VARIABLE, Place::Other, (1, 0), 10),
    (".const", VARIABLE, Place::Other, (1, 0), 10),
    (".global", VARIABLE, Place::Other, (1, 0), 10),
    (".local", VARIABLE, Place::Other, (1, 0), 10),
    (".param", VARIABLE, Place::Other, (1, 0), 10),
    (".shared", VARIABLE, Place::Other, (1, 0), 10),
    (".texref", VARIABLE, Place::Other, (1, 5), 10),
    (".samplerref", VARIABLE, Place::Other, (1, 5), 10),
    (".surfref", VARIABLE, Place::Other, (1, 5), 10),
    (".align", VARIABLE, Place::Other, (1, 0), 10),
    (".ptr", VARIABLE, Place::Other, (2, 2), 10),
    (".attribute", VARIABLE, Place::Other, (4, 0), 30),
    (".managed", VARIABLE, Place::Other, (4, 0), 30),
    (".unified", VARIABLE, Place::Other, (9, 0), 90),
    (".branchtargets", CONTROL, Place::Other, (2, 1), 20),
    (".calltargets", CONTROL, Place::Other, (2, 1), 20),
    (".callprototype", CONTROL, Place::Other, (2, 1), 20),
    (".maxnreg", TUNING, Place::Kernel, (1, 3), 10),
    (".maxntid", TUNING, Place::Kernel, (1, 3), 10),
    (".reqntid", TUNING, Place::Kernel, (2, 1), 10),
    (".minnctapersm", TUNING, Place::Kernel, (2, 0), 10),
    (".pragma", TUNING, Place::Kernel, (2, 0), 10),
    (".abi_preserve", TUNING, Place::Callee, (9, 0), 80),
    (".abi_preserve_control", TUNING, Place::Callee, (9, 0), 80),
    (".reqnctapercluster", CLUSTER, Place::Kernel, (7, 8), 90),
    (".explicitcluster", CLUSTER, Place::Kernel, (7, 8), 90),
    (".maxclusterrank", CLUSTER, Place::Kernel, (7, 8), 90),
    (".blocksareclusters", CLUSTER, Place::Kernel, (9, 0), 90),
    (".file", DEBUGGING, Place::Other, (1, 0), 10),
    (".loc", DEBUGGING, Place::Other, (1, 0), 10),
    (".section", DEBUGGING, Place::Other, (2, 0), 10),
    ("function_name", DEBUGGING, Place::Other, (7, 2), 10),
    ("nounroll", PRAGMA, Place::Pragma, (2, 0), 20),
    ("used_bytes_mask", PRAGMA, Place::Pragma, (8, 3), 50),
    ("enable_smem_spilling", PRAGMA, Place::Pragma, (9, 0), 75),
    ("frequency", PRAGMA, Place::Pragma, (9, 0), 10),
];

/// All directives, group by group.
pub fn all() -> impl Iterator<Item = Directive> {
    TABLE.iter().map(|&(name, group, place, (major, minor), sm)| Directive {
        name,
        group,
        place,
        version: Version { major, minor },
        sm,
    })
}

/// The directive of this name, without its dot, that stands between a function's parameters and its body.
pub(crate) fn of_function(word: &str) -> Option<Directive> {
    let stands = |place| matches!(place, Place::Kernel | Place::Callee);
    all().find(|directive| directive.name.strip_prefix('.') == Some(word) && stands(directive.place))
}

/// Whether the string of a pragma is known.
pub(crate) fn is_pragma(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    all().any(|directive| directive.place == Place::Pragma && directive.name == word)
}

/// The names of the directives in a text.
pub fn used(source: &str) -> BTreeSet<&'static str> {
    let mut lexer = Lexer::at(source, 0);
    let mut names = BTreeSet::new();
    loop {
        let token = lexer.next_token();
        let text = token.span.text(source);
        let word = match token.kind {
            TokenKind::End | TokenKind::Unterminated => return names,
            TokenKind::String => text.trim_matches('"').split_whitespace().next().unwrap_or_default(),
            // What follows another word is a modifier.
            TokenKind::Dotted if follows_a_word(source, token.span.start as usize) => continue,
            _ => text,
        };
        names.extend(TABLE.iter().map(|row| row.0).filter(|name| *name == word));
    }
}

fn follows_a_word(source: &str, at: usize) -> bool {
    source[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ']' | '%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_no_directives() {
        let names = used(".func f() { ld.global.u32 %r, [a]; .pragma \"nounroll\"; }");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [".func", ".pragma", "nounroll"]);
    }
}
