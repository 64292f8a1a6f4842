//! Memory management: allocations and events of other processes.

use crate::contexts;
use crate::error::CuResult;
use crate::platform::platform;
use crate::streams;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use device::SharedEventHandle;
use device::memory::{Shared, SharedHandle};
use entry_macros::entry_point;

/// What the handles of this driver begin with: those of memory, and those of events.
const MAGIC: u32 = 0x6177_6970;
const EVENT_MAGIC: u32 = 0x6177_6576;

/// Waits for the work of the allocation's context, since the memory behind it changes.
#[entry_point]
fn cuIpcGetMemHandle(pHandle: Out<CUipcMemHandle>, dptr: CUdeviceptr) -> CuResult {
    pHandle.check()?;
    contexts::usable()?;
    pHandle.set(encode(&platform()?.share(dptr.0)?))?;
    Ok(())
}

#[entry_point]
fn cuIpcOpenMemHandle(pdptr: Out<CUdeviceptr>, handle: CUipcMemHandle, Flags: u32) -> CuResult {
    open(pdptr, &handle, Flags)
}

#[entry_point]
fn cuIpcOpenMemHandle_v2(pdptr: Out<CUdeviceptr>, handle: CUipcMemHandle, Flags: u32) -> CuResult {
    open(pdptr, &handle, Flags)
}

fn open(place: Out<CUdeviceptr>, handle: &CUipcMemHandle, flags: u32) -> CuResult {
    place.check()?;
    // The one flag there is must be there: it asks for access to a peer's memory, which there always is.
    if flags & 1 == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let context = contexts::usable()?;
    let shared = decode(handle).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    place.set(CUdeviceptr(platform()?.memory().open_shared(context.device(), &shared)?))?;
    Ok(())
}

/// Waits for the work of the current context.
#[entry_point]
fn cuIpcCloseMemHandle(dptr: CUdeviceptr) -> CuResult {
    contexts::usable()?.synchronize()?;
    platform()?.memory().close_shared(dptr.0)?;
    Ok(())
}

/// The event stays this process's; what another makes of the handle counts as long as it does.
#[entry_point]
fn cuIpcGetEventHandle(pHandle: Out<CUipcEventHandle>, event: CUevent) -> CuResult {
    pHandle.check()?;
    if event.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let shared = streams::find_event(event)?.share()?;
    let mut handle = CUipcEventHandle { reserved: [0; CU_IPC_HANDLE_SIZE] };
    let words = [EVENT_MAGIC.to_ne_bytes(), shared.process.to_ne_bytes(), shared.descriptor.to_ne_bytes()];
    write(&mut handle.reserved, words.as_flattened().iter().chain(&shared.identity.to_ne_bytes()));
    pHandle.set(handle)?;
    Ok(())
}

#[entry_point]
fn cuIpcOpenEventHandle(phEvent: Out<CUevent>, handle: CUipcEventHandle) -> CuResult {
    phEvent.check()?;
    let read = || {
        let (word, number) = readers(&handle.reserved);
        let (process, descriptor) = (word(4)?, word(8)? as i32);
        let shared = SharedEventHandle { process, descriptor, identity: number(12)? };
        Some(shared).filter(|_| word(0) == Some(EVENT_MAGIC))
    };
    let is_empty = handle.reserved.iter().all(|byte| *byte == 0);
    let unreadable = if is_empty { CUDA_ERROR_MAP_FAILED } else { CUDA_ERROR_INVALID_VALUE };
    phEvent.set(streams::open_event(&read().ok_or(unreadable)?)?)?;
    Ok(())
}

/// Puts bytes at the beginning of a handle.
fn write<'a>(handle: &mut [u8; CU_IPC_HANDLE_SIZE], bytes: impl Iterator<Item = &'a u8>) {
    for (place, byte) in handle.iter_mut().zip(bytes) {
        *place = *byte;
    }
}

/// What reads numbers of 32 and 64 bits at a place of a handle.
fn readers(
    bytes: &[u8; CU_IPC_HANDLE_SIZE],
) -> (impl Fn(usize) -> Option<u32>, impl Fn(usize) -> Option<u64>) {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let number = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    (word, number)
}

fn encode(handle: &SharedHandle) -> CUipcMemHandle {
    let SharedHandle { process, shared, size, id } = handle;
    let mut encoded = CUipcMemHandle { reserved: [0; CU_IPC_HANDLE_SIZE] };
    let words = [MAGIC.to_ne_bytes(), process.to_ne_bytes(), shared.descriptor.to_ne_bytes()];
    let Shared { identity, offset, len, ticket, .. } = shared;
    let numbers = [identity, offset, len, ticket, size, id].map(|number| number.to_ne_bytes());
    write(&mut encoded.reserved, words.as_flattened().iter().chain(numbers.as_flattened()));
    encoded
}

fn decode(handle: &CUipcMemHandle) -> Option<SharedHandle> {
    let (word, number) = readers(&handle.reserved);
    if word(0)? != MAGIC {
        return None;
    }
    let shared = Shared {
        descriptor: word(8)? as i32,
        identity: number(12)?,
        offset: number(20)?,
        len: number(28)?,
        ticket: number(36)?,
    };
    Some(SharedHandle { process: word(4)?, shared, size: number(44)?, id: number(52)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_say_what_was_put_in() {
        let shared = Shared { descriptor: 5, identity: 6, offset: 1 << 40, len: 1 << 41, ticket: 9 };
        let shared = SharedHandle { process: 7, shared, size: 12, id: 13 };
        let mut handle = encode(&shared);
        assert_eq!(decode(&handle), Some(shared));
        handle.reserved[0] ^= 1;
        assert_eq!(decode(&handle), None);
    }
}
