//! What to say about modifiers that are those of no entry: of the entry that they are closest to, which of them it has not, and what it wants
//! besides.

use super::syntax::{Slot, Syntax};
use super::types::Ty;
use super::{Entry, Problem, rules, spelling};
use crate::ast;
use crate::error::LoadErrorKind;

/// In what modifiers differ from those of an entry, whatever their order.
struct Misfit<'e> {
    /// Positions of those that the entry has not.
    strange: Vec<usize>,
    /// Places that must not be left empty, and are.
    missing: Vec<&'e Slot>,
    /// How many of the strange ones are types: they say best what is meant.
    types: usize,
}

impl<'e> Misfit<'e> {
    fn of(syntax: &'e Syntax, modifiers: &[&str]) -> Misfit<'e> {
        let mut free: Vec<bool> = vec![true; syntax.slots.len()];
        let (mut strange, mut types, mut next_type) = (Vec::new(), 0, 0);
        for (at, modifier) in modifiers.iter().enumerate() {
            let first = if is_type(modifier) { next_type } else { 0 };
            let fits = |slot: &usize| free[*slot] && syntax.slots[*slot].has(modifier);
            match (first..syntax.slots.len()).find(fits) {
                Some(slot) => {
                    free[slot] = false;
                    if is_type(modifier) {
                        next_type = slot + 1;
                    }
                }
                None => {
                    strange.push(at);
                    types += usize::from(is_type(modifier));
                }
            }
        }
        let missing = syntax.slots.iter().zip(free).filter(|(slot, free)| *free && !slot.is_optional());
        let missing = missing.map(|(slot, _)| slot).collect();
        Misfit { strange, missing, types }
    }

    fn distance(&self) -> (usize, usize, usize) {
        (self.types, self.strange.len(), self.missing.len())
    }
}

/// What is wrong with the modifiers of an instruction.
pub(super) fn modifiers(inst: &ast::Instruction<'_>, entries: &[Entry]) -> Problem {
    let words: Vec<&str> = inst.modifiers.iter().map(|modifier| modifier.text).collect();
    let misfits = entries.iter().map(|entry| Misfit::of(&entry.syntax, &words));
    let Some(misfit) = misfits.min_by_key(Misfit::distance) else {
        return Problem::new(LoadErrorKind::Syntax, inst.span, "there is no such instruction");
    };
    let wanted: Vec<String> = misfit.missing.iter().map(|slot| wanted(slot)).collect();
    let wanted = wanted.join(" and ");
    let Some(first) = misfit.strange.first() else {
        let message = match misfit.missing.is_empty() {
            true => format!("illegal order of modifiers for instruction '{}'", spelling(inst)),
            false => format!("instruction '{}' requires {wanted}", spelling(inst)),
        };
        return Problem::mismatch(inst.span, message);
    };
    // A type that does not fit says more than what goes with the types.
    let place = misfit.strange.iter().find(|at| is_type(words[**at])).unwrap_or(first);
    let (mut strange, mut rest) = (Vec::new(), inst.opcode.text.to_owned());
    for (at, word) in words.iter().enumerate() {
        if !misfit.strange.contains(&at) {
            rest = format!("{rest}.{word}");
        } else if is_type(word) == is_type(words[*place]) {
            strange.push(format!("'.{word}'"));
        }
    }
    let is_known = entries.iter().flat_map(|entry| &entry.syntax.slots).any(|slot| slot.has(words[*place]));
    let kind = if is_known { LoadErrorKind::Type } else { LoadErrorKind::Syntax };
    let (kind, what) = match is_type(words[*place]) {
        true => (LoadErrorKind::Type, "unexpected instruction type"),
        false => (kind, "illegal modifier"),
    };
    let plural = if strange.len() > 1 { "s" } else { "" };
    let mut message = format!("{what}{plural} {} for instruction '{rest}'", strange.join(" and "));
    if !misfit.missing.is_empty() {
        message += &format!(", which requires {wanted}");
    }
    Problem::new(kind, inst.modifiers[*place].span, message)
}

fn is_type(word: &str) -> bool {
    Ty::from_name(word).is_some() || rules::is_narrow_type(word)
}

/// What a place wants, in words.
fn wanted(slot: &Slot) -> String {
    match slot.words() {
        words if words.len() > MANY && words.iter().all(|word| is_type(word)) => "a type".into(),
        [words @ .., last] => {
            let shown = &words[..words.len().min(MANY)];
            let list = shown.iter().map(|word| format!("'.{word}'")).collect::<Vec<_>>().join(", ");
            match (shown.is_empty(), shown.len() < words.len()) {
                (true, _) => format!("'.{last}'"),
                (_, true) => format!("{list}, … or '.{last}'"),
                (_, false) => format!("{list} or '.{last}'"),
            }
        }
        [] => String::new(),
    }
}

/// So many words are listed.
const MANY: usize = 6;
