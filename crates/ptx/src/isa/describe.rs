//! The table for people: its rows as a page can show them, and which rows a module uses, so that tests can be held against them.

use std::collections::HashMap;

use super::syntax::Slot;
pub use super::unsupported::Later;
use super::{Context, FAMILIES, Form, TABLE, find, unsupported};
use crate::ast::{Module, Version};
use crate::lower::architecture;
use crate::resolve::{self, Symbols};
use crate::{Errors, LineIndex};

/// A row of the table: one instruction with the modifiers it can have.
#[derive(Clone, Debug)]
pub struct Row {
    /// What the instruction belongs to.
    pub family: &'static str,
    /// Its first word.
    pub opcode: &'static str,
    /// Its modifiers in order.
    pub places: Vec<Place>,
    /// Names of its operands.
    pub operands: Vec<&'static str>,
    /// First version of PTX that has it.
    pub version: Version,
    /// First architecture that has it.
    pub sm: u32,
    /// The last version of PTX that has it for architectures from that number on.
    pub until: Option<(u32, u32, u32)>,
    /// Modifiers that came later: each with the version and architecture.
    pub later: &'static [(&'static str, u32, u32, u32)],
}

/// A place for a modifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The words that may stand there.
    pub words: Vec<&'static str>,
    /// It may be left out.
    pub optional: bool,
}

/// Every row, family by family.
pub fn rows() -> Vec<Row> {
    let families = FAMILIES.iter().flat_map(|(family, forms)| forms.iter().map(move |form| (*family, form)));
    families.map(|(family, form)| row(family, form)).collect()
}

fn row(family: &'static str, form: &'static Form) -> Row {
    let syntax = &TABLE.of(form).syntax;
    let place = |slot: &Slot| Place { words: slot.words().to_vec(), optional: slot.is_optional() };
    Row {
        family,
        opcode: syntax.opcode,
        places: syntax.slots.iter().map(place).collect(),
        operands: syntax.operands.iter().map(|operand| operand.name).collect(),
        version: Version { major: form.version.0, minor: form.version.1 },
        sm: form.sm,
        until: form.until,
        later: form.later,
    }
}

/// An instruction of a module and the row that it is.
#[derive(Clone, Debug)]
pub struct Use {
    /// The function it stands in.
    pub function: String,
    /// Its line.
    pub line: u32,
    /// Its place in [`rows`].
    pub row: usize,
    /// Its modifiers.
    pub words: Vec<&'static str>,
}

/// The rows that the instructions of a module are. Instructions that are refused are none.
///
/// # Errors
/// The names of the module are wrong.
pub fn uses(source: &str, module: &Module<'_>) -> Result<Vec<Use>, Errors> {
    let numbers: HashMap<&str, usize> = FAMILIES
        .iter()
        .flat_map(|(_, forms)| forms.iter())
        .enumerate()
        .map(|(number, form)| (form.text, number))
        .collect();
    let symbols = Symbols::new(source, module)?;
    let lines = LineIndex::new(source);
    let sm = architecture(module);
    let mut uses = Vec::new();
    for function in module.functions() {
        let resolved = resolve::function(&symbols, function)?;
        let context = Context {
            version: module.version,
            sm,
            samplers_apart: module.samplers_apart(),
            registers: &resolved.registers,
            variables: &resolved.variables,
            prototypes: &resolved.prototypes,
            call_targets: &resolved.call_targets,
        };
        for inst in &resolved.instructions {
            let Ok(found) = find(inst, &context) else { continue };
            uses.push(Use {
                function: function.name.text.to_owned(),
                line: lines.position(inst.syntax.span.start).line,
                row: numbers[found.entry.form.text],
                words: found.chosen.all().collect(),
            });
        }
    }
    Ok(uses)
}

/// What PTX has for later architectures and this compiler refuses by name.
pub fn refused() -> &'static [Later] {
    unsupported::all()
}
