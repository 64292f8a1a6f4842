//! Instructions about textures and surfaces: the device carries them out.

use kernel_abi::texture::{Failure, encode};
use kernel_abi::{FaultKind, WARP};
use simt_ir::texture::TextureOp;

use crate::thread::BlockContext;

/// What went wrong, in which lane, and at which address.
pub struct Wrong {
    pub kind: FaultKind,
    pub lane: u32,
    pub address: u64,
}

/// The results of each lane of a warp, of which the operands are given.
pub fn serve(
    context: &BlockContext<'_>,
    warp: u32,
    op: &TextureOp,
    lanes: &[(u32, &[u64])],
) -> Result<Vec<Vec<u64>>, Wrong> {
    let results = op.results().len();
    let mut registers = vec![[0u64; WARP as usize]; op.operands().len().max(results)];
    let mut mask = 0;
    for (lane, args) in lanes {
        mask |= 1 << lane;
        for (register, arg) in registers.iter_mut().zip(*args) {
            register[*lane as usize] = *arg;
        }
    }
    // SAFETY: callbacks are the device's and hold while it runs; there are as many registers as it may touch.
    let status = unsafe {
        (*context.frame).warp = warp;
        let serve = (*context.launch.callbacks).texture;
        serve(context.frame, mask, encode(op), registers.as_mut_ptr())
    };
    match Failure::of(status) {
        Some(Failure { kind, lane }) => Err(Wrong { kind, lane, address: registers[0][0] }),
        None => {
            let of_lane = |lane: u32| registers[..results].iter().map(|r| r[lane as usize]).collect();
            Ok(lanes.iter().map(|(lane, _)| of_lane(*lane)).collect())
        }
    }
}
