//! CUDA Checkpointing: processes that are stopped and go on.

use crate::error::CuResult;
use crate::platform::platform;
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use device::checkpoint::{Processes, State};
use entry_macros::entry_point;
use std::time::Duration;

fn processes() -> CuResult<Processes<'static>> {
    Ok(Processes(platform()?.options().shared_folder.as_deref()))
}

/// No process has a negative number.
fn number(pid: i32) -> CuResult<u32> {
    Ok(u32::try_from(pid).map_err(|_| CUDA_ERROR_OPERATING_SYSTEM)?)
}

#[entry_point(while_locked)]
fn cuCheckpointProcessGetState(pid: i32, state: Out<CUprocessState>) -> CuResult {
    state.check()?;
    state.set(match processes()?.state(number(pid)?)? {
        State::Running => CU_PROCESS_STATE_RUNNING,
        State::Locked => CU_PROCESS_STATE_LOCKED,
        State::Checkpointed => CU_PROCESS_STATE_CHECKPOINTED,
    })?;
    Ok(())
}

/// A GPU's driver needs a certain thread to restore; here any would do, and the first one is always there.
#[entry_point(while_locked)]
fn cuCheckpointProcessGetRestoreThreadId(pid: i32, tid: Out<i32>) -> CuResult {
    tid.check()?;
    processes()?.state(number(pid)?)?;
    tid.set(pid)?;
    Ok(())
}

/// What the process asks of its devices waits from now on, until it is unlocked.
#[entry_point(while_locked)]
fn cuCheckpointProcessLock(pid: i32, args: Array<CUcheckpointLockArgs>) -> CuResult {
    let milliseconds = if args.is_null() { 0 } else { args.get(0)?.timeoutMs };
    let timeout = (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()));
    Ok(processes()?.lock(number(pid)?, timeout)?)
}

/// Memory of the devices is the machine's, so nothing of it has to be moved: what is left is that nobody uses it.
#[entry_point(while_locked)]
fn cuCheckpointProcessCheckpoint(pid: i32, _args: Array<CUcheckpointCheckpointArgs>) -> CuResult {
    Ok(processes()?.checkpoint(number(pid)?)?)
}

/// Each device can only take its own place: they are all the same machine.
#[entry_point(while_locked)]
fn cuCheckpointProcessRestore(pid: i32, args: Array<CUcheckpointRestoreArgs>) -> CuResult {
    if !args.is_null() {
        let args = args.get(0)?;
        // SAFETY: the manual wants null, which is noticed, or `gpuPairsCount` pairs.
        let pairs = unsafe { Array::new(args.gpuPairs.cast_mut()) };
        for index in 0..args.gpuPairsCount as usize {
            let pair: CUcheckpointGpuPair = pairs.get(index)?;
            if pair.oldUuid.bytes != pair.newUuid.bytes {
                return Err(CUDA_ERROR_NOT_SUPPORTED.into());
            }
        }
    }
    Ok(processes()?.restore(number(pid)?)?)
}

#[entry_point(while_locked)]
fn cuCheckpointProcessUnlock(pid: i32, _args: Array<CUcheckpointUnlockArgs>) -> CuResult {
    Ok(processes()?.unlock(number(pid)?)?)
}
