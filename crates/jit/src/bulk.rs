//! Bulk copies for generated code: the memory that they work on.

use kernel_abi::bulk::{BulkFault, Memory, Type, decode, fault, in_block, in_cluster};
use kernel_abi::matrix::LaneWords;
use kernel_abi::{BlockFrame, FaultKind, FaultRecord, WARP};

/// See [`kernel_abi::bulk::BulkFn`].
///
/// # Safety
/// The frame is that of the running block, and `operands` points to 32 words for each operand that the operation has.
pub unsafe extern "C" fn bulk(
    frame: *mut BlockFrame,
    code: u64,
    lanes: u32,
    operands: *const LaneWords,
) -> u32 {
    guard::unguarded(|| {
        let Some(op) = decode(code) else {
            // SAFETY: the caller's contract.
            unsafe { record(frame, FaultKind::IllegalInstruction, WARP, 0) };
            return 1;
        };
        let count = op.operands().len();
        // SAFETY: the caller's contract.
        let operands = unsafe { std::slice::from_raw_parts(operands, count) };
        let mut own = vec![0; count];
        for lane in (0..WARP).filter(|lane| lanes >> lane & 1 != 0) {
            for (word, of_lanes) in own.iter_mut().zip(operands) {
                *word = of_lanes[lane as usize];
            }
            if let Err(failed) = op.run(&own, &mut GuestMemory { frame }) {
                let (kind, address) = fault(failed);
                // SAFETY: the caller's contract.
                unsafe { record(frame, kind, lane, address) };
                return 1;
            }
        }
        0
    })
}

/// # Safety
/// The frame is that of the running block.
unsafe fn record(frame: *mut BlockFrame, kind: FaultKind, lane: u32, address: u64) {
    // SAFETY: the caller's contract.
    unsafe { (*frame).fault = FaultRecord { kind: kind as u32, lane, address, ptx_line: 0 } };
}

struct GuestMemory {
    frame: *const BlockFrame,
}

fn illegal(fault: guard::Fault) -> BulkFault {
    BulkFault::IllegalAddress(fault.address)
}

/// Replaces a word by what `new` makes of it.
macro_rules! update {
    ($word:ty, $at:expr, $new:expr) => {{
        // SAFETY: as for `GuestMemory::copy`.
        unsafe {
            let mut old = guard::load::<$word>($at).map_err(illegal)?;
            loop {
                let new = $new(old.into()) as $word;
                let seen = guard::compare_exchange($at, old, new).map_err(illegal)?;
                if seen == old {
                    return Ok(());
                }
                old = seen;
            }
        }
    }};
}

impl Memory for GuestMemory {
    fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), BulkFault> {
        // SAFETY: addresses that a kernel uses are device memory, its block's windows, or memory that the program gave to the
        // device; what is not mapped is reported. Races are the kernel's.
        unsafe { guard::copy(to, from, bytes) }.map_err(illegal)
    }

    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), BulkFault> {
        self.copy(bytes.as_mut_ptr() as u64, from, bytes.len() as u64)
    }

    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), BulkFault> {
        self.copy(to, bytes.as_ptr() as u64, bytes.len() as u64)
    }

    fn update(&mut self, at: u64, ty: Type, new: &dyn Fn(u64) -> u64) -> Result<(), BulkFault> {
        match ty.bytes() {
            2 => update!(u16, at, new),
            4 => update!(u32, at, new),
            _ => update!(u64, at, new),
        }
    }

    fn in_block(&mut self, address: u64, rank: u32) -> Result<u64, BulkFault> {
        // SAFETY: the frame is that of the running block.
        unsafe { in_block(self.frame, address, rank) }.ok_or(BulkFault::IllegalInstruction(address))
    }

    fn in_cluster(&mut self, address: u64) -> Result<u64, BulkFault> {
        // SAFETY: as above.
        unsafe { in_cluster(self.frame, address) }.ok_or(BulkFault::IllegalInstruction(address))
    }
}
