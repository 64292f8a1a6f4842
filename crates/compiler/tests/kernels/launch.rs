//! A launch without a device: parameters, windows, frames.

use jit::Jit;
use kernel_abi::{
    BlockFrame, CompileError, CompileRequest, CompiledKernel, Fault, FaultRecord, KernelBackend, LaunchFrame,
    Shape, Tier, Wait,
};
use std::ptr;
use std::sync::Arc;

/// A launch of a one-dimensional grid.
pub struct Launch {
    grid: u32,
    block: u32,
    params: Vec<u8>,
}

/// A value that can be a parameter.
pub trait Param {
    fn bytes(self) -> Vec<u8>;
}

impl Param for u32 {
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().into()
    }
}

impl Param for u64 {
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().into()
    }
}

#[derive(Clone, Copy)]
#[repr(align(1024))]
struct Window(#[expect(dead_code, reason = "kernels use it")] [u8; 1024]);

fn window(bytes: usize) -> Vec<Window> {
    vec![Window([0; 1024]); bytes.div_ceil(1024) + 1]
}

impl Launch {
    pub fn new(grid: u32, block: u32) -> Self {
        Self { grid, block, params: Vec::new() }
    }

    /// Appends a parameter at its natural alignment.
    pub fn param(mut self, value: impl Param) -> Self {
        let bytes = value.bytes();
        self.params.resize(self.params.len().next_multiple_of(bytes.len()), 0);
        self.params.extend(bytes);
        self
    }

    pub fn compile(
        &self,
        jit: &Jit,
        ptx: &str,
        entry: &str,
    ) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        let shape = Shape::of([self.grid, 1, 1], [self.block, 1, 1]);
        let program = |_| Err(CompileError::new("machine code needs no program"));
        jit.compile(&CompileRequest { ptx, entry, shape, tier: Tier::Full, program: &program })
    }

    pub fn run(&self, jit: &Jit, ptx: &str, entry: &str) -> Result<(), Fault> {
        let kernel = self.compile(jit, ptx, entry).unwrap_or_else(|error| panic!("{entry}: {error}"));
        let info = kernel.info();
        assert!(info.globals.is_empty());
        let warps = self.block.div_ceil(32);
        let local_bytes = info.local_bytes.next_multiple_of(16);
        let mut params = window(self.params.len());
        // SAFETY: the window is larger than the parameters.
        unsafe {
            ptr::copy_nonoverlapping(self.params.as_ptr(), params.as_mut_ptr().cast(), self.params.len());
        }
        let launch = LaunchFrame {
            grid: [self.grid, 1, 1],
            block: [self.block, 1, 1],
            params: params.as_ptr().cast(),
            globals: ptr::null(),
            callbacks: ptr::null(),
            context: ptr::null(),
            dynamic_shared_bytes: 0,
            shared_bytes: info.shared_bytes,
            local_bytes,
            warps,
            threads: self.block,
            sm_count: 1,
            grid_id: 1,
            grid_workspace: 0,
            cluster: [1; 3],
            explicit_cluster: 0,
            graph: 0,
        };
        let mut shared = window(info.shared_bytes as usize);
        let mut local = window((local_bytes * self.block) as usize);
        let mut state = window((info.state_bytes * warps) as usize);
        let mut frame = BlockFrame {
            launch: &launch,
            shared: shared.as_mut_ptr().cast(),
            local: local.as_mut_ptr().cast(),
            state: state.as_mut_ptr().cast(),
            ctaid: [0; 3],
            warp: 0,
            from_warp: 0,
            worker: 0,
            wait: Wait::default(),
            fault: FaultRecord::default(),
            misses: [0; kernel_abi::MISSES],
        };
        // SAFETY: everything is sized as the kernel says; these kernels use no callbacks.
        unsafe { kernel.run(&mut frame, 0, self.grid.into()) }
    }
}
