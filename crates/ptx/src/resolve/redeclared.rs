//! What may be declared again under a name, and what an alias may stand for.

use crate::ast::{Function, Linkage, Variable};

/// Why `next` cannot follow `previous`, a function of the same name.
pub(super) fn function(previous: &Function<'_>, next: &Function<'_>) -> Option<String> {
    use Linkage::{Extern, Private, Visible, Weak};
    let stays = previous.linkage == next.linkage
        // What was declared for others may be defined without saying so again.
        || matches!((previous.linkage, next.linkage), (Visible | Weak, Private));
    if previous.linkage == Extern && next.is_defined() {
        return Some("a function that is declared '.extern' is defined in another module".into());
    }
    if !stays {
        return Some("the function is declared before with another linkage".into());
    }
    let differs = prototype(previous, next)?;
    Some(format!("the function is declared before with another prototype: {differs}"))
}

/// Why `next` cannot follow `previous`, a variable of the same name.
pub(super) fn variable(previous: &Variable<'_>, next: &Variable<'_>) -> Option<&'static str> {
    if previous.linkage == Linkage::Extern && next.linkage == Linkage::Private {
        return Some("a variable that is declared '.extern' is not private to the module");
    }
    let open = |variable: &Variable<'_>| variable.dimensions.first() == Some(&None);
    let any_length = usize::from(open(previous) || open(next));
    let same = (previous.ty, previous.vector) == (next.ty, next.vector)
        && previous.dimensions.len() == next.dimensions.len()
        && previous.dimensions.iter().zip(&next.dimensions).skip(any_length).all(|(a, b)| a == b);
    (!same).then_some("the variable is declared before with another type")
}

/// Why a function cannot be called `alias` too.
pub(super) fn alias(alias: &Function<'_>, target: &Function<'_>) -> Option<String> {
    if alias.is_entry || target.is_entry {
        return Some("kernels have no aliases".into());
    }
    match target.linkage {
        Linkage::Extern => return Some("a function that is declared '.extern' has no aliases".into()),
        Linkage::Weak => return Some("a function that is '.weak' has no aliases".into()),
        _ => {}
    }
    let differs = prototype(alias, target)?;
    Some(format!("an alias has the function's prototype: {differs}"))
}

/// In what the prototypes of two functions differ.
fn prototype(a: &Function<'_>, b: &Function<'_>) -> Option<&'static str> {
    if a.params.len() != b.params.len() || a.returns.len() != b.returns.len() {
        return Some("the number of parameters differs");
    }
    let pairs = || a.returns.iter().chain(&a.params).zip(b.returns.iter().chain(&b.params));
    let length = |parameter: &Variable<'_>| {
        // A length of zero says as little as none.
        parameter.dimensions.iter().map(|length| length.unwrap_or(0)).collect::<Vec<_>>()
    };
    if pairs().any(|(a, b)| a.space != b.space) {
        Some("a parameter's state space differs")
    } else if pairs().any(|(a, b)| (a.ty, a.vector) != (b.ty, b.vector) || length(a) != length(b)) {
        Some("a parameter's type differs")
    } else if pairs().any(|(a, b)| a.alignment() != b.alignment()) {
        Some("a parameter's alignment differs")
    } else if a.directives.noreturn != b.directives.noreturn {
        Some("'.noreturn' differs")
    } else {
        None
    }
}
