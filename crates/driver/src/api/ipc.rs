//! Memory management: allocations of other processes.

use crate::contexts;
use crate::error::CuResult;
use crate::platform::platform;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use device::memory::SharedHandle;
use entry_macros::entry_point;

/// What the handles of this driver begin with.
const MAGIC: u32 = 0x6177_6970;

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
    // The one flag there is asks for access to a peer's memory, which there always is.
    if flags & !1 != 0 {
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

fn encode(shared: &SharedHandle) -> CUipcMemHandle {
    let mut handle = CUipcMemHandle { reserved: [0; CU_IPC_HANDLE_SIZE] };
    let words = [MAGIC.to_ne_bytes(), shared.process.to_ne_bytes(), shared.descriptor.to_ne_bytes()];
    let numbers = [shared.offset.to_ne_bytes(), shared.size.to_ne_bytes()];
    let bytes = words.iter().flatten().chain(numbers.iter().flatten());
    for (place, byte) in handle.reserved.iter_mut().zip(bytes) {
        *place = *byte;
    }
    handle
}

fn decode(handle: &CUipcMemHandle) -> Option<SharedHandle> {
    let bytes = handle.reserved;
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let number = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if word(0)? != MAGIC {
        return None;
    }
    Some(SharedHandle {
        process: word(4)?,
        descriptor: word(8)? as i32,
        offset: number(12)?,
        size: number(20)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_say_what_was_put_in() {
        let shared = SharedHandle { process: 7, descriptor: 5, offset: 1 << 40, size: 12 };
        let mut handle = encode(&shared);
        assert_eq!(decode(&handle), Some(shared));
        handle.reserved[0] ^= 1;
        assert_eq!(decode(&handle), None);
    }
}
