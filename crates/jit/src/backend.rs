//! The back end: finds kernels in memory, on disk, or has them compiled.

use crate::cache::{DiskCache, Key};
use crate::compiler::{Compiler, CompilerLibrary, Source};
use crate::kernel::{Kernel, PlainCode};
use crate::object::LoadedObject;
use crate::{cpu, host_symbol, perf};
use kernel_abi::artifact::{Artifact, ENTRY_SYMBOL, VERSION};
use kernel_abi::{Approximations, CompileError, CompileRequest, CompiledKernel, KernelBackend, Shape};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Runs kernels as machine code. Cheap to clone: clones share everything.
#[derive(Clone)]
pub struct Jit(Arc<Inner>);

struct Inner {
    compiler: Box<dyn Compiler>,
    cache: Option<DiskCache>,
    cpu: Result<String, CompileError>,
    approximations: Approximations,
    fingerprint: String,
    /// Kernels that somebody holds. Each key has its own lock, so that different kernels compile at the same time and one
    /// kernel once.
    kernels: Mutex<HashMap<Key, Arc<Slot>>>,
    /// Texts of modules whose kernels may need other code later.
    texts: Mutex<HashMap<Key, Weak<str>>>,
}

type Slot = Mutex<Weak<Kernel>>;

impl KernelBackend for Jit {
    fn name(&self) -> &'static str {
        "jit"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        Ok(self.kernel(request.ptx, request.entry, request.shape)?)
    }
}

impl Jit {
    /// With the compiler library and the cache that the environment names.
    pub fn from_environment(approximations: Approximations) -> Jit {
        Jit::with(Box::new(CompilerLibrary::default()), DiskCache::from_environment(), approximations)
    }

    /// With this compiler, and this cache if any.
    pub fn new(compiler: Box<dyn Compiler>, cache: Option<DiskCache>) -> Jit {
        Jit::with(compiler, cache, Approximations::default())
    }

    /// Likewise, with a choice of what `.approx` instructions become.
    pub fn with(
        compiler: Box<dyn Compiler>,
        cache: Option<DiskCache>,
        approximations: Approximations,
    ) -> Jit {
        Jit(Arc::new(Inner {
            compiler,
            cache,
            cpu: cpu::chosen(),
            approximations,
            fingerprint: cpu::fingerprint(),
            kernels: Mutex::default(),
            texts: Mutex::default(),
        }))
    }

    fn kernel(&self, ptx: &str, entry: &str, shape: Shape) -> Result<Arc<Kernel>, CompileError> {
        let inner = &*self.0;
        let cpu = inner.cpu.as_deref().map_err(CompileError::clone)?;
        // Code that runs warps one by one is the same for blocks of all sizes.
        let shape = if may_gang(ptx) { shape } else { shape.alone() };
        let key = Key::of(&[
            &VERSION.to_le_bytes(),
            ptx.as_bytes(),
            entry.as_bytes(),
            &shape.code().to_le_bytes(),
            cpu.as_bytes(),
            inner.approximations.name().as_bytes(),
            inner.fingerprint.as_bytes(),
            inner.compiler.identity().as_bytes(),
        ]);
        let slot = self.slot(key);
        let mut kernel = lock(&slot);
        if let Some(kernel) = kernel.upgrade() {
            return Ok(kernel);
        }
        let cached = inner.cache.as_ref().and_then(|cache| cache.load(key));
        // An entry that does not load is as good as damaged.
        let cached = cached.and_then(|bytes| self.load(Artifact::decode(&bytes)?, ptx, entry, shape).ok());
        let found = match cached {
            Some(kernel) => kernel,
            None => self
                .compile_new(key, &Source { ptx, entry, shape, cpu, approximations: inner.approximations })?,
        };
        *kernel = Arc::downgrade(&found);
        Ok(found)
    }

    fn slot(&self, key: Key) -> Arc<Slot> {
        let mut kernels = lock(&self.0.kernels);
        if let Some(slot) = kernels.get(&key) {
            return slot.clone();
        }
        // Of kernels that are gone nothing is kept, but for slots in whose hands they are being made.
        kernels.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|kernel| kernel.strong_count() > 0)
        });
        kernels.entry(key).or_default().clone()
    }

    fn compile_new(&self, key: Key, source: &Source<'_>) -> Result<Arc<Kernel>, CompileError> {
        let artifact = self.0.compiler.compile(source)?;
        let bytes = self.0.cache.as_ref().map(|_| artifact.encode());
        let kernel = self.load(artifact, source.ptx, source.entry, source.shape)?;
        if let (Some(cache), Some(bytes)) = (&self.0.cache, bytes) {
            cache.store(key, &bytes);
        }
        Ok(kernel)
    }

    fn load(
        &self,
        artifact: Artifact,
        ptx: &str,
        entry: &str,
        shape: Shape,
    ) -> Result<Arc<Kernel>, CompileError> {
        let failed =
            |what: &dyn std::fmt::Display| CompileError::new(format!("cannot load kernel `{entry}`: {what}"));
        let object = LoadedObject::load(&artifact.object, &host_symbol).map_err(|error| failed(&error))?;
        let symbol = object.symbol(ENTRY_SYMBOL).ok_or_else(|| failed(&"its code has no entry"))?;
        perf::announce(entry, &object);
        let plain = shape.assume_no_wrap.then(|| self.plain_code(ptx, entry, shape));
        // SAFETY: the object comes from the compiler, or from the cache, which keeps whole what the compiler made for this
        // version of the interface.
        Ok(Arc::new(unsafe { Kernel::new(object, symbol.address, artifact.info, plain) }))
    }

    /// How to get the code of a kernel that makes no assumption on wrapping.
    fn plain_code(&self, ptx: &str, entry: &str, shape: Shape) -> PlainCode {
        let (text, entry) = (self.text(ptx), entry.to_owned());
        let shape = Shape { assume_no_wrap: false, ..shape.alone() };
        // A kernel must not keep the table alive that keeps it.
        let weak = Arc::downgrade(&self.0);
        Box::new(move || match weak.upgrade() {
            Some(inner) => Jit(inner).kernel(&text, &entry, shape),
            None => Err(CompileError::new("the back end is gone")),
        })
    }

    /// A shared copy of a module's text.
    fn text(&self, ptx: &str) -> Arc<str> {
        let key = Key::of(&[ptx.as_bytes()]);
        let mut texts = lock(&self.0.texts);
        if let Some(text) = texts.get(&key).and_then(Weak::upgrade) {
            return text;
        }
        texts.retain(|_, text| text.strong_count() > 0);
        let text: Arc<str> = ptx.into();
        texts.insert(key, Arc::downgrade(&text));
        text
    }
}

/// Whether kernels of this text may run several warps as one: only where there are barriers and shared memory.
fn may_gang(ptx: &str) -> bool {
    ptx.contains(".shared") && (ptx.contains("bar.") || ptx.contains("barrier."))
}

/// The tables are changed by single calls that leave them whole, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
