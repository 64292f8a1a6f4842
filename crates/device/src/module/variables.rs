//! The variables of a module in a context.

use std::collections::HashMap;

use super::Global;
use super::source::Variable;
use crate::memory::{Fill, Kind, Side, Transfer};
use crate::{Context, Error, Result};

/// Where the variables are.
pub(crate) struct Variables {
    by_name: HashMap<String, Global>,
}

impl Variables {
    /// Allocates variables and gives them their initial values.
    pub(crate) fn load(context: &Context, variables: &[Variable]) -> Result<Variables> {
        let mut loaded = Variables { by_name: HashMap::new() };
        let outcome = loaded.fill(context, variables);
        if let Err(error) = outcome {
            for global in loaded.all() {
                let _ = context.memory().free(global.address, |_| true);
            }
            return Err(error);
        }
        Ok(loaded)
    }

    /// The variable of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Global> {
        self.by_name.get(name).copied()
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Global> {
        self.by_name.values().copied()
    }

    fn fill(&mut self, context: &Context, variables: &[Variable]) -> Result<()> {
        for variable in variables {
            let kind = if variable.managed { Kind::Managed { attach_host: false } } else { Kind::Variable };
            let address = context.allocate_as(variable.size.max(1), kind)?;
            let global = Global { address, size: variable.size, managed: variable.managed };
            self.by_name.insert(variable.name.clone(), global);
        }
        for variable in variables {
            self.initialise(variable)?;
        }
        Ok(())
    }

    fn initialise(&self, variable: &Variable) -> Result<()> {
        let address = self.by_name[&variable.name].address;
        Fill::linear(address, 0, 1, variable.size).run()?;
        let mut bytes = variable.bytes.clone();
        for relocation in &variable.relocations {
            let target = self.find(&relocation.symbol).ok_or_else(|| {
                Error::InvalidPtx(format!("{} refers to the unknown {}", variable.name, relocation.symbol))
            })?;
            let value = target.address.wrapping_add(relocation.addend as u64) >> relocation.shift;
            let place = usize::try_from(relocation.offset)
                .ok()
                .and_then(|start| bytes.get_mut(start..start.checked_add(relocation.bytes as usize)?));
            let place = place.ok_or_else(|| {
                Error::InvalidPtx(format!("the initial value of {} ends too early", variable.name))
            })?;
            let len = place.len().min(8);
            place[..len].copy_from_slice(&value.to_le_bytes()[..len]);
        }
        if bytes.len() as u64 > variable.size {
            return Err(Error::InvalidPtx(format!("the initial value of {} is too long", variable.name)));
        }
        // SAFETY: the buffer is ours.
        let from = unsafe { Side::any(bytes.as_ptr() as u64) };
        Transfer::linear(Side::device(address), from, bytes.len() as u64).run()
    }
}
