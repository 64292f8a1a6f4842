//! PTX as this crate needs it: the only file that speaks to the `ptx` crate about contents.

use std::collections::HashSet;
use std::sync::Arc;

use kernel_abi::CompileError;
pub use ptx::lower::{Entry, EntryParam, ModuleVariable as Variable, ParamClass};
use ptx::target::{Architecture, Device};
use ptx::{Bodies, Errors, LoadErrorKind, Options};
use simt_ir::Program;

use super::Input;
use crate::{Error, Result};

/// What a text holds.
pub(crate) struct Checked {
    /// Architecture of `.target`, as in `sm_90`.
    pub(crate) target: u32,
    /// The text with the device's own functions, where it uses some.
    pub(crate) completed: Option<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) variables: Vec<Variable>,
}

/// Reads a text and checks all of it.
pub(crate) fn check(text: &str, sm: u32) -> Result<Checked> {
    let device = Device { sm };
    let options = Options { device: Some(device), bodies: Bodies::Parsed };
    let read = || {
        let module = ptx::parse_with(text, &options)?;
        ptx::link::check_unresolved(text, &module)?;
        ptx::lower::check(text, &module)?;
        Ok(Checked {
            target: Architecture::parse(module.target.architecture.text).map_or(sm, |target| target.sm),
            completed: ptx::provided::with_library(text, &module, device)?,
            entries: ptx::lower::entries(text, &module)?,
            variables: ptx::lower::variables(text, &module)?,
        })
    };
    read().map_err(load_error)
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
    let inputs: Vec<ptx::link::Input<'_>> =
        inputs.iter().map(|input| ptx::link::Input { name: input.name, text: input.text }).collect();
    ptx::link::link(&inputs, Device { sm }).map_err(|errors| match errors.kind() {
        LoadErrorKind::Unresolved | LoadErrorKind::MultiplyDefined => {
            Error::InvalidSource(errors.to_string())
        }
        _ => load_error(errors),
    })
}

/// Lowers one kernel of a text that has been checked.
pub(crate) fn lower(text: &str, entry: &str) -> std::result::Result<Arc<Program>, CompileError> {
    let options = Options { device: None, bodies: Bodies::Skipped };
    let program =
        ptx::parse_with(text, &options).and_then(|module| ptx::lower::program(text, &module, entry));
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
