//! Kernels of a module, as programs know them.

use std::sync::{Arc, Weak};

use kernel_abi::Shape;

use super::{Kernel, Module};
use crate::executor::Ready;
use crate::limits;
use crate::lock::{Rank, RankedMutex};
use crate::{Error, Result};

/// A kernel of a module.
pub struct Function {
    module: Weak<Module>,
    kernel: Arc<Kernel>,
    /// For launches of the shape of the last.
    ready: RankedMutex<Option<Arc<Ready>>>,
}

/// A number about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionAttribute {
    /// Most threads of a block.
    MaxThreadsPerBlock,
    /// Bytes of static shared memory.
    SharedSize,
    /// Bytes of constants of the program.
    ConstSize,
    /// Bytes of local memory of a thread.
    LocalSize,
    /// Registers of a thread, as [`Kernel::registers`] estimates them.
    Registers,
    /// 10 · major + minor of the virtual architecture of its PTX.
    PtxVersion,
    /// 10 · major + minor of what it is compiled for.
    BinaryVersion,
    /// Bytes of dynamic shared memory a launch may ask for.
    MaxDynamicSharedSize,
}

impl Function {
    pub(crate) fn new(module: &Arc<Module>, kernel: Arc<Kernel>) -> Function {
        Function { module: Arc::downgrade(module), kernel, ready: RankedMutex::new(Rank::Module, None) }
    }

    /// What the last launch was made ready with, if it was of this shape.
    pub(crate) fn last_ready(&self, shape: Shape) -> Option<Arc<Ready>> {
        self.ready.lock().as_ref().filter(|ready| ready.shape == shape).cloned()
    }

    /// Keeps that for the next launch.
    pub(crate) fn keep_ready(&self, ready: &Arc<Ready>) {
        // What was kept before is dropped outside the lock.
        let before = self.ready.lock().replace(ready.clone());
        drop(before);
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.kernel.name()
    }

    /// Its code.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// Its module.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] if that is gone or unloaded.
    pub fn module(&self) -> Result<Arc<Module>> {
        let module = self.module.upgrade().ok_or(Error::InvalidHandle)?;
        module.check()?;
        Ok(module)
    }

    /// A number about it.
    pub fn attribute(&self, attribute: FunctionAttribute) -> Result<u32> {
        Ok(match attribute {
            FunctionAttribute::MaxThreadsPerBlock => self.kernel.declared_max_threads(),
            FunctionAttribute::SharedSize => self.static_shared()?,
            FunctionAttribute::ConstSize => {
                let bytes: u64 = self
                    .module()?
                    .code()
                    .variables()
                    .iter()
                    .filter(|v| v.space == ptx::ast::StateSpace::Const)
                    .map(|v| v.size)
                    .sum();
                bytes.min(u32::MAX.into()) as u32
            }
            FunctionAttribute::LocalSize => {
                let program = self.kernel.program()?;
                program.functions.iter().fold(0, |bytes: u32, f| bytes.saturating_add(f.local_bytes))
            }
            FunctionAttribute::Registers => self.kernel.registers()?,
            FunctionAttribute::PtxVersion => self.kernel.ptx_version(),
            FunctionAttribute::BinaryVersion => self.kernel.binary_version(),
            FunctionAttribute::MaxDynamicSharedSize => self.max_dynamic_shared()?,
        })
    }

    /// Allows launches with so much dynamic shared memory.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the device has not as much.
    pub fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()> {
        let most = self.module()?.context()?.attributes().multiprocessor().shared_per_block;
        let total = self.static_shared()?.checked_add(bytes);
        if total.is_none_or(|total| total > most) {
            return Err(Error::InvalidValue);
        }
        self.kernel.set_max_dynamic_shared(bytes);
        Ok(())
    }

    /// Dynamic shared memory that a launch may have.
    pub fn max_dynamic_shared(&self) -> Result<u32> {
        match self.kernel.max_dynamic_shared() {
            Some(bytes) => Ok(bytes),
            None => Ok(default_dynamic_shared(self.static_shared()?)),
        }
    }

    /// As [`max_dynamic_shared`](Self::max_dynamic_shared), for a caller that knows the static shared memory.
    pub(crate) fn max_dynamic_shared_with(&self, static_shared: u32) -> u32 {
        self.kernel.max_dynamic_shared().unwrap_or_else(|| default_dynamic_shared(static_shared))
    }

    /// Static shared memory.
    pub fn static_shared(&self) -> Result<u32> {
        self.kernel.static_shared()
    }
}

fn default_dynamic_shared(static_shared: u32) -> u32 {
    limits::SHARED_PER_BLOCK.saturating_sub(static_shared)
}
