//! The entries of the instruction table, found by opcode.

use std::sync::{LazyLock, OnceLock};

use super::syntax::Syntax;
use super::{FAMILIES, Form};
use crate::names::NameMap;

/// A form and its synopsis, read.
pub(crate) struct Entry {
    pub form: &'static Form,
    pub syntax: Syntax,
}

/// Entries by opcode. Those of an opcode are read when it is first met: few programs use many.
pub(super) struct Table {
    opcodes: NameMap<&'static str, Opcode>,
}

/// The entries of an opcode.
struct Opcode {
    forms: Vec<&'static Form>,
    entries: OnceLock<Vec<Entry>>,
}

impl Opcode {
    fn entries(&self) -> &[Entry] {
        self.entries.get_or_init(|| {
            let entry = |form: &&'static Form| {
                let syntax =
                    Syntax::parse(form.text).unwrap_or_else(|e| panic!("the entry '{}': {e}", form.text));
                Entry { form, syntax }
            };
            self.forms.iter().map(entry).collect()
        })
    }
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut opcodes: NameMap<&'static str, Opcode> = NameMap::default();
    for form in FAMILIES.iter().flat_map(|(_, forms)| forms.iter()) {
        let new = || Opcode { forms: Vec::new(), entries: OnceLock::new() };
        opcodes.entry(Syntax::opcode_of(form.text)).or_insert_with(new).forms.push(form);
    }
    Table { opcodes }
});

impl Table {
    /// The entries of an opcode, if it is one.
    pub(super) fn entries(&self, opcode: &str) -> Option<&[Entry]> {
        self.opcodes.get(opcode).map(Opcode::entries)
    }

    /// Whether it is an opcode.
    pub(super) fn has(&self, opcode: &str) -> bool {
        self.opcodes.contains_key(opcode)
    }

    /// All opcodes.
    #[cfg(test)]
    pub(super) fn opcodes(&self) -> impl Iterator<Item = &'static str> {
        self.opcodes.keys().copied()
    }

    /// The entry of a form.
    pub(super) fn of(&self, form: &Form) -> &Entry {
        let entries = self.entries(Syntax::opcode_of(form.text)).unwrap_or_default();
        entries.iter().find(|entry| entry.form.text == form.text).expect("every form has an entry")
    }
}
