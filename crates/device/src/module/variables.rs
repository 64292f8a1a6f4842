//! The variables of a module in a context.

use std::collections::HashMap;

use super::source::Variable;
use super::{Code, Global};
use crate::memory::{AddressSpace, ContextId, Fill, Kind, Side, Transfer};
use crate::{Context, Error, Result};

/// Where the variables are.
pub(crate) struct Variables {
    by_name: HashMap<String, Global>,
    /// Those that were allocated here, and not taken over.
    owned: Vec<u64>,
}

impl Variables {
    /// Allocates code's variables in a context and gives them their initial values. Those that are in `shared` are taken
    /// over from there, and those that have a place stay in it.
    pub(crate) fn load(context: &Context, code: &Code, shared: Option<&Variables>) -> Result<Variables> {
        let shared = |variable: &Variable| match code.placed(&variable.name) {
            Some(address) => Some(Global { address, size: variable.size, managed: false }),
            None => shared.and_then(|shared| shared.find(&variable.name)),
        };
        let allocate = |size, kind| context.allocate_as(size, kind);
        Variables::load_with(context.memory(), code.variables(), shared, allocate)
    }

    /// Allocates the managed ones among the variables for all contexts and gives them their initial values.
    pub(crate) fn load_managed(memory: &AddressSpace, variables: &[Variable]) -> Result<Variables> {
        let managed: Vec<_> = variables.iter().filter(|variable| variable.managed).cloned().collect();
        let allocate = |size, kind| memory.allocate(0, ContextId::NONE, size, kind);
        Variables::load_with(memory, &managed, |_| None, allocate)
    }

    /// Frees those that are not shared.
    pub(crate) fn free(&self, memory: &AddressSpace) {
        for &address in &self.owned {
            // Gone already if the context has been reset meanwhile.
            let is_variable = |kind| matches!(kind, Kind::Variable | Kind::Managed { .. });
            let _ = memory.free(address, |found| is_variable(found.kind));
        }
    }

    /// The variable of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Global> {
        self.by_name.get(name).copied()
    }

    fn load_with(
        memory: &AddressSpace,
        variables: &[Variable],
        shared: impl Fn(&Variable) -> Option<Global>,
        allocate: impl Fn(u64, Kind) -> Result<u64>,
    ) -> Result<Variables> {
        let mut loaded = Variables { by_name: HashMap::new(), owned: Vec::new() };
        match loaded.fill(variables, shared, allocate) {
            Ok(()) => Ok(loaded),
            Err(error) => {
                loaded.free(memory);
                Err(error)
            }
        }
    }

    fn fill(
        &mut self,
        variables: &[Variable],
        shared: impl Fn(&Variable) -> Option<Global>,
        allocate: impl Fn(u64, Kind) -> Result<u64>,
    ) -> Result<()> {
        let mut own = Vec::new();
        for variable in variables {
            let global = match shared(variable) {
                Some(global) => global,
                None => {
                    let managed = variable.managed;
                    let kind = if managed { Kind::Managed { attach_host: false } } else { Kind::Variable };
                    let address = allocate(variable.size.max(1), kind)?;
                    self.owned.push(address);
                    own.push(variable);
                    Global { address, size: variable.size, managed }
                }
            };
            self.by_name.insert(variable.name.clone(), global);
        }
        own.into_iter().try_for_each(|variable| self.initialise(variable))
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
