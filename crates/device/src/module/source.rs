//! PTX as this crate needs it: the only file that speaks to the `ptx` crate about contents.

use std::collections::HashSet;
use std::sync::Arc;

use kernel_abi::CompileError;
pub use ptx::lower::{Entry, EntryParam, ModuleVariable as Variable, ObjectKind, ObjectVariable, ParamClass};
use ptx::target::{Architecture, Device};
pub use ptx::tune::Tuning;
use ptx::{Bodies, Errors, LoadErrorKind, Options};
use simt_ir::{Approximations, Program};

use super::Input;
use crate::{Error, Result};

/// What a text holds.
pub(crate) struct Checked {
    /// What is worth knowing.
    pub(crate) remarks: Vec<String>,
    /// Architecture of `.target`, as in `sm_90`.
    pub(crate) target: u32,
    /// The text with the device's own functions, where it uses some.
    pub(crate) completed: Option<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) objects: Vec<ObjectVariable>,
}

/// Reads a text that is a whole program and checks all of it. Variables that it only declares and nobody defines become its
/// own, of zeros.
pub(crate) fn check(text: &str, sm: u32) -> Result<Checked> {
    let device = Device { sm };
    let undefined = match read(text, device).map_err(load_error)? {
        Read::Checked(checked) => return Ok(checked),
        Read::Undefined(names) => names,
    };
    let mut names = undefined.iter().map(String::as_str).collect();
    let defined = define(text, &mut names, sm)?.unwrap_or_else(|| text.to_owned());
    let mut checked = match read(&defined, device).map_err(load_error)? {
        Read::Checked(checked) => checked,
        Read::Undefined(names) => {
            return Err(Error::Internal(format!("{names:?} are defined still nowhere")));
        }
    };
    checked.completed.get_or_insert(defined);
    let remark = |name: &String| format!("nothing defines the extern variable {name}: it is defined here");
    checked.remarks = undefined.iter().map(remark).collect();
    Ok(checked)
}

/// A text as a whole program.
enum Read {
    Checked(Checked),
    /// These variables are defined nowhere.
    Undefined(Vec<String>),
}

fn read(text: &str, device: Device) -> std::result::Result<Read, Errors> {
    let options = Options { device: Some(device), bodies: Bodies::Parsed };
    let module = ptx::parse_with(text, &options)?;
    let undefined = ptx::link::undefined_variables(&module);
    if !undefined.is_empty() {
        return Ok(Read::Undefined(undefined.into_iter().map(str::to_owned).collect()));
    }
    ptx::link::check_unresolved(text, &module)?;
    let uses = ptx::lower::check_uses(text, &module)?;
    let target = Architecture::parse(module.target.architecture.text).map_or(device.sm, |target| target.sm);
    let completed = ptx::provided::with_library(text, &module, device)?;
    let (entries, variables) = match &completed {
        None => (ptx::lower::entries_that_use(text, &module, &uses)?, ptx::lower::variables(text, &module)?),
        // What runs is the whole, where functions may have other addresses.
        Some(whole) => {
            let module = ptx::parse_with(whole, &options)?;
            (ptx::lower::entries(whole, &module)?, ptx::lower::variables(whole, &module)?)
        }
    };
    let objects = ptx::lower::object_variables(&module);
    Ok(Read::Checked(Checked { remarks: Vec::new(), target, completed, entries, variables, objects }))
}

/// Reads a text and checks all but what it leaves to others.
pub(crate) fn check_piece(text: &str, sm: u32) -> Result<()> {
    let options = Options { device: Some(Device { sm }), bodies: Bodies::Parsed };
    ptx::parse_with(text, &options).and_then(|module| ptx::lower::check(text, &module)).map_err(load_error)
}

/// The text with the variables of these names defined that it only declares. What is found leaves `names`.
pub(crate) fn define(text: &str, names: &mut HashSet<&str>, sm: u32) -> Result<Option<String>> {
    ptx::link::define(text, names, Device { sm }).map_err(load_error)
}

/// Links texts into one.
pub(crate) fn link(inputs: &[Input<'_>], sm: u32) -> Result<String> {
    ptx::link::link(&pieces(inputs), Device { sm }).map_err(link_error)
}

/// The names of a text of which nothing else may define one.
pub(crate) fn strong_names(text: &str, sm: u32) -> Result<Vec<String>> {
    ptx::link::strong_names(text, Device { sm }).map_err(load_error)
}

/// Whether texts can be linked, with others that define what these only declare.
pub(crate) fn check_together(inputs: &[Input<'_>], sm: u32) -> Result<()> {
    ptx::link::join(&pieces(inputs), Device { sm }).map(drop).map_err(link_error)
}

fn pieces<'a>(inputs: &[Input<'a>]) -> Vec<ptx::link::Input<'a>> {
    inputs.iter().map(|input| ptx::link::Input { name: input.name, text: input.text }).collect()
}

fn link_error(errors: Errors) -> Error {
    match errors.kind() {
        LoadErrorKind::Unresolved | LoadErrorKind::MultiplyDefined => {
            Error::InvalidSource(errors.to_string())
        }
        _ => load_error(errors),
    }
}

pub(crate) use ptx::tune::{fewest_registers, registers_for, registers_left};

/// The text with what is asked for in it, and remarks about what cannot be done.
pub(crate) fn tune(text: &str, tuning: Tuning, sm: u32) -> Result<(String, Vec<String>)> {
    ptx::tune::tune(text, tuning, Device { sm }).map_err(load_error)
}

/// Lowers one kernel of a text that has been checked.
pub(crate) fn lower(
    text: &str,
    entry: &str,
    approximations: Approximations,
) -> std::result::Result<Arc<Program>, CompileError> {
    let options = Options { device: None, bodies: Bodies::Skipped };
    let program = ptx::parse_with(text, &options)
        .and_then(|module| ptx::lower::program_of(text, module, entry, approximations));
    program.map(Arc::new).map_err(|errors| CompileError {
        unsupported: errors.kind() == LoadErrorKind::Unsupported,
        ..CompileError::new(errors.to_string())
    })
}

fn load_error(errors: Errors) -> Error {
    let log = errors.to_string();
    match errors.kind() {
        LoadErrorKind::NotPtx => Error::InvalidImage(log),
        LoadErrorKind::UnsupportedVersion => Error::UnsupportedPtxVersion(log),
        _ => Error::InvalidPtx(log),
    }
}
