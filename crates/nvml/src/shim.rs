//! What must hold before the body of an entry point runs: somebody uses the library.

use crate::machine::Machine;
use cuda_abi::nvml::*;
use cuda_abi::shim::{Entry, WriteArguments, guarded, locked, trace};
use std::sync::{Arc, Mutex, MutexGuard};

/// The users that `nvmlInit` counts, and what it found.
static STATE: Mutex<State> = Mutex::new(State { users: 0, machine: None });

struct State {
    users: u32,
    machine: Option<Arc<Machine>>,
}

fn state() -> MutexGuard<'static, State> {
    locked(&STATE)
}

/// Counts a user; the first has the machine looked at.
pub fn initialise() -> NvmlResult {
    let mut state = state();
    state.users = state.users.checked_add(1).ok_or(NVML_ERROR_UNKNOWN)?;
    state.machine.get_or_insert_with(|| Arc::new(Machine::from_environment()));
    Ok(())
}

/// Counts a user less.
pub fn shut_down() -> NvmlResult {
    let mut state = state();
    state.users = state.users.checked_sub(1).ok_or(NVML_ERROR_UNINITIALIZED)?;
    if state.users == 0 {
        state.machine = None;
    }
    Ok(())
}

/// The machine, if the library is initialised.
pub fn machine() -> NvmlResult<Arc<Machine>> {
    state().machine.clone().ok_or(NVML_ERROR_UNINITIALIZED)
}

/// Called by the C side of every entry point.
pub fn call(entry: &Entry, arguments: WriteArguments<'_>, body: impl FnOnce() -> NvmlResult) -> nvmlReturn_t {
    let ready = if entry.before_init { Ok(()) } else { machine().map(drop) };
    let result = ready.and_then(|()| guarded(entry, Err(NVML_ERROR_UNKNOWN), body));
    let code = result.err().unwrap_or(NVML_SUCCESS);
    trace(entry, arguments, &code);
    code
}

/// Called by every stub.
pub fn missing(name: &'static str) -> nvmlReturn_t {
    let entry = Entry { name, before_init: false, while_locked: true, sets_last_error: false };
    call(&entry, &|f| f.write_str("?"), || Err(NVML_ERROR_NOT_SUPPORTED))
}
