//! A device and its primary context.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use kernel_abi::KernelBackend;

use crate::attributes::Attributes;
use crate::context::{Context, ContextFlags};
use crate::executor::Executor;
use crate::lock::{Rank, RankedMutex};
use crate::memory::{AddressSpace, MemoryPlace, Pool, PoolKind};
use crate::registry::Registry;
use crate::{Error, Options, Result};

/// A virtual device.
pub struct Device {
    hardware: Arc<Hardware>,
    primary: PrimaryContext,
}

/// What the contexts of a device share.
pub(crate) struct Hardware {
    pub(crate) ordinal: usize,
    pub(crate) attributes: Attributes,
    pub(crate) options: Options,
    pub(crate) space: Arc<AddressSpace>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) executor: Arc<Executor>,
    pub(crate) backend: Arc<dyn KernelBackend>,
    default_pool: Arc<Pool>,
    current_pool: RankedMutex<Arc<Pool>>,
}

impl Hardware {
    /// What stream-ordered allocations are counted in unless they name a pool.
    pub(crate) fn current_pool(&self) -> Arc<Pool> {
        self.current_pool.lock().clone()
    }
}

/// The context of a device that all users of the process share.
pub struct PrimaryContext {
    context: Arc<Context>,
    retained: RankedMutex<u32>,
}

impl Device {
    pub(crate) fn new(
        ordinal: usize,
        physical: usize,
        options: &Options,
        space: Arc<AddressSpace>,
        registry: Arc<Registry>,
        backend: Arc<dyn KernelBackend>,
    ) -> Device {
        let total = space.info(ordinal).map_or(0, |(_, total)| total);
        let default_pool = Arc::new(Pool::new(ordinal, PoolKind::Device, space.clone()));
        let attributes = Attributes::of_machine(options, physical, total);
        let hardware = Arc::new(Hardware {
            current_pool: RankedMutex::new(Rank::Pools, default_pool.clone()),
            default_pool,
            ordinal,
            executor: Executor::new(options.threads, attributes.multiprocessors),
            attributes,
            options: options.clone(),
            space,
            registry,
            backend,
        });
        let context = Context::new(hardware.clone(), ContextFlags::default(), true);
        let primary = PrimaryContext { context, retained: RankedMutex::new(Rank::Primary, 0) };
        Device { hardware, primary }
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.hardware.ordinal
    }

    /// What it is and can.
    pub fn attributes(&self) -> &Attributes {
        &self.hardware.attributes
    }

    /// Its primary context.
    pub fn primary(&self) -> &PrimaryContext {
        &self.primary
    }

    /// The pool it was made with.
    pub fn default_pool(&self) -> &Arc<Pool> {
        &self.hardware.default_pool
    }

    /// The pool of stream-ordered allocations that name none.
    pub fn current_pool(&self) -> Arc<Pool> {
        self.hardware.current_pool()
    }

    /// Sets the pool of stream-ordered allocations that name none.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a pool of another device.
    pub fn set_current_pool(&self, pool: Arc<Pool>) -> Result<()> {
        let is_own = pool.kind() == PoolKind::Device && pool.device() == self.ordinal();
        if !is_own || self.hardware.space.is_imported(&pool) {
            return Err(Error::InvalidValue);
        }
        *self.hardware.current_pool.lock() = pool;
        Ok(())
    }

    /// Makes a pool of at most so many bytes, in whole pieces as it takes them (0: as many as there are).
    pub fn create_pool(&self, kind: PoolKind, most: u64) -> Arc<Pool> {
        let pool = Pool::new(self.ordinal(), kind, self.hardware.space.clone());
        if most != 0 {
            pool.limit(most);
        }
        Arc::new(pool)
    }

    /// Makes a pool of at most so many bytes (0: as many as the device likes) that other processes can open.
    pub fn create_shared_pool(&self, place: MemoryPlace, most: u64) -> Result<Arc<Pool>> {
        Ok(Arc::new(self.hardware.space.create_shared_pool(self.ordinal(), place, most)?))
    }

    /// Opens another process's pool by a descriptor that it has sent.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a descriptor of something else.
    pub fn import_pool(&self, descriptor: OwnedFd) -> Result<Arc<Pool>> {
        Ok(Arc::new(self.hardware.space.import_shared_pool(self.ordinal(), descriptor)?))
    }

    /// Makes a context.
    pub fn create_context(&self, flags: ContextFlags) -> Result<Arc<Context>> {
        Ok(Context::new(self.hardware.clone(), flags, false))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.hardware.executor.shut_down();
    }
}

impl PrimaryContext {
    /// Activates the context if it is not active, and counts one more user. It is always the same one.
    pub fn retain(&self) -> Result<Arc<Context>> {
        let mut retained = self.retained.lock();
        *retained = retained.checked_add(1).ok_or(Error::OutOfMemory)?;
        // A reset leaves it inactive, whoever retains it.
        self.context.activate();
        Ok(self.context.clone())
    }

    /// Counts one user less; after the last, everything in the context is gone.
    ///
    /// # Errors
    /// [`Error::InvalidContext`] if it has no user.
    pub fn release(&self) -> Result<()> {
        let last = {
            let mut retained = self.retained.lock();
            *retained = retained.checked_sub(1).ok_or(Error::InvalidContext)?;
            *retained == 0
        };
        if last {
            self.context.deactivate();
            self.context.set_flags_if_inactive(ContextFlags::default());
        }
        Ok(())
    }

    /// Destroys everything in the context, whoever uses it, and with that a failure too. The next
    /// [`retain`](Self::retain) begins anew; users still count and have to release it.
    pub fn reset(&self) -> Result<()> {
        self.context.deactivate();
        Ok(())
    }

    /// Whether it has been retained and neither released nor reset since.
    pub fn is_active(&self) -> bool {
        self.context.is_alive()
    }

    /// How it is scheduled.
    pub fn flags(&self) -> ContextFlags {
        self.context.flags_if_inactive()
    }

    /// Sets how it is scheduled, from now on.
    pub fn set_flags(&self, flags: ContextFlags) -> Result<()> {
        self.context.set_flags_if_inactive(flags);
        Ok(())
    }

    /// The context, whether active or not.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}
