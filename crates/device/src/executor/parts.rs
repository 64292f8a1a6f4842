//! What a launch is made of.

use std::sync::Arc;

use kernel_abi::CompiledKernel;
use ptx::Origin;

use super::Ready;

/// Finds where a line of PTX comes from.
pub type Locate = dyn Fn(u32) -> Option<Origin> + Send + Sync;

/// Compiles the kernel for a second run of a block that failed, if that is possible.
pub type Replay = dyn Fn() -> Option<Arc<dyn CompiledKernel>> + Send + Sync;

/// What a grid is made of.
pub struct GridParts {
    /// The kernel.
    pub ready: Arc<Ready>,
    /// Blocks in x, y, z; none is 0.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z; none is 0.
    pub block: [u32; 3],
    /// As many bytes as the kernel takes.
    pub params: Params,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Bytes of shared memory in all, but for what is reserved.
    pub shared: u32,
    /// Bytes of local memory of a thread.
    pub local: u32,
    /// Blocks that run on one processor together.
    pub resident_blocks: u32,
    /// All blocks must run at the same time.
    pub cooperative: bool,
    /// Blocks of a cluster in x, y, z, which divide those of the grid; `None` where blocks are by themselves.
    pub cluster: Option<[u32; 3]>,
}

impl GridParts {
    /// Whether so many multiprocessors run all blocks at the same time.
    pub(crate) fn fits_at_once(&self, processors: u32) -> bool {
        let blocks: u64 = self.grid.iter().map(|n| u64::from(*n)).product();
        blocks <= u64::from(self.resident_blocks) * u64::from(processors)
    }

    /// Whether the thread that launches it may as well run it: it has been short before, and its blocks wait for nobody.
    pub(crate) fn is_quick(&self) -> bool {
        let info = self.ready.kernel.info();
        // Perhaps for the host.
        let may_wait = self.cooperative || info.waits || info.may_wait;
        let blocks = self.grid.iter().fold(1_u64, |all, n| all.saturating_mul((*n).into()));
        !may_wait && self.cluster.is_none() && self.ready.profile.is_short(blocks, QUICK)
    }

    pub(super) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    pub(super) fn warps(&self) -> u32 {
        self.threads().div_ceil(kernel_abi::WARP)
    }

    /// Bytes of a block's shared window.
    pub(super) fn shared_window(&self) -> u32 {
        kernel_abi::RESERVED_SHARED + self.shared
    }

    pub(super) fn local_stride(&self) -> u32 {
        self.local.min(u32::MAX - 15).next_multiple_of(16)
    }
}

/// Nanoseconds below which the launching thread runs a launch itself: handing it over costs it as much.
const QUICK: u64 = 10_000;

/// A cache line: what parameters are aligned to.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [u8; 64]);

/// The parameters of a launch, where its blocks find them.
pub struct Params {
    /// If they fit in two lines: somewhere in this, see [`Params::settle`]. Not itself aligned to lines, for memory that is takes long
    /// to allocate.
    few: [u8; Params::FEW + 63],
    /// Where in `few` they begin.
    start: usize,
    /// If they do not fit.
    many: Box<[Line]>,
}

impl Params {
    /// These bytes, and zeros up to `len`.
    pub fn new(bytes: &[u8], len: usize) -> Params {
        let mut params = Params { few: [0; _], start: 0, many: Box::default() };
        let len = len.max(bytes.len());
        if len <= Params::FEW {
            params.few[..bytes.len()].copy_from_slice(bytes);
        } else {
            params.many = vec![Line([0; 64]); len.div_ceil(64)].into_boxed_slice();
            for (line, bytes) in params.many.iter_mut().zip(bytes.chunks(64)) {
                line.0[..bytes.len()].copy_from_slice(bytes);
            }
        }
        params
    }

    /// Bytes of two lines.
    const FEW: usize = 128;

    /// Puts the parameters where a line begins; from now on they stay where they are.
    pub(super) fn settle(&mut self) {
        let address = self.few.as_ptr().addr();
        let start = address.next_multiple_of(64) - address;
        self.few.copy_within(self.start..self.start + Params::FEW, start);
        self.start = start;
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        if self.many.is_empty() { self.few[self.start..].as_ptr() } else { self.many.as_ptr().cast() }
    }
}
