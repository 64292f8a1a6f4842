//! Products of matrices for generated code: factors in shared memory, where lanes do not take part.

use kernel_abi::matrix::{LaneWords, decode, register_bytes};
use kernel_abi::{BlockFrame, FaultKind, FaultRecord, WARP};

/// See [`kernel_abi::matrix::AbsentFn`].
///
/// # Safety
/// The frame is that of the running block; `memory` is as for [`kernel_abi::matrix::anywarp_matrix`], and `descriptors` points to two words
/// of each lane.
pub unsafe extern "C" fn absent_lanes(
    frame: *mut BlockFrame,
    code: u64,
    lanes: u32,
    memory: *mut u8,
    descriptors: *const [LaneWords; 2],
) -> u32 {
    guard::unguarded(|| {
        let Some(op) = decode(code) else { return 0 };
        // The lanes that are there name the same factors, as PTX wants it.
        let first = lanes.trailing_zeros() % WARP;
        // SAFETY: the caller's contract.
        let (warp, shared, words) = unsafe { ((*frame).warp, (*frame).shared as u64, &*descriptors) };
        let named = words.map(|of_lanes| of_lanes[first as usize]);
        let mut read = |address: u32, bytes: usize| {
            let at = shared + u64::from(address);
            // SAFETY: this is in the block's shared window, or in what is not mapped behind it, which is reported.
            let value = unsafe {
                match bytes {
                    2 => guard::load::<u16>(at).map(u64::from),
                    _ => guard::load::<u32>(at).map(u64::from),
                }
            };
            value.map_err(|fault| fault.address)
        };
        let bytes = register_bytes(&op);
        for lane in (0..WARP).filter(|lane| lanes >> lane & 1 == 0) {
            for register in 0..op.fragments() {
                match op.absent((warp, lane), register, named, &mut read) {
                    Ok(None) => {}
                    // SAFETY: there are as many registers, each of 32 words.
                    Ok(Some(value)) => unsafe {
                        let at = memory.add(register * bytes);
                        match bytes == size_of::<LaneWords>() {
                            true => *at.cast::<u64>().add(lane as usize) = value,
                            false => *at.cast::<u32>().add(lane as usize) = value as u32,
                        }
                    },
                    Err(address) => {
                        let kind = FaultKind::IllegalAddress as u32;
                        // SAFETY: the caller's contract.
                        unsafe { (*frame).fault = FaultRecord { kind, lane: first, address, ptx_line: 0 } };
                        return 1;
                    }
                }
            }
        }
        0
    })
}
