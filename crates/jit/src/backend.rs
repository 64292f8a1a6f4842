//! The back end: finds kernels in memory, on disk, or has them compiled.

use crate::better::{Background, Better};
use crate::cache::{DiskCache, Key};
use crate::compiler::{Compiler, CompilerLibrary, Source};
use crate::kernel::{Kernel, PlainCode};
use crate::object::LoadedObject;
use crate::{cpu, host_symbol, locked, perf};
use kernel_abi::artifact::{Artifact, ENTRY_SYMBOL, TOGETHER_SYMBOL, VERSION};
use kernel_abi::{
    Approximations, CompileError, CompileRequest, CompiledKernel, KernelBackend, Shape, Successor, Tier,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

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
    /// What takes the place of code that was made quickly. Without it no code is.
    background: Option<Background>,
}

type Slot = Mutex<Weak<Kernel>>;

impl KernelBackend for Jit {
    fn name(&self) -> &'static str {
        "jit"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        let full = Wanted::full(request);
        if request.tier == Tier::Full || self.0.background.is_none() {
            return Ok(self.kernel(full)?);
        }
        match self.known(full)? {
            Some(kernel) => Ok(kernel),
            None => Ok(self.kernel(Wanted { tier: Tier::Quick, ..full })?),
        }
    }

    fn later(&self, request: &CompileRequest<'_>) -> Option<Arc<dyn Successor + Send + Sync>> {
        let background = self.0.background.as_ref()?;
        let make = self.other_code(Wanted { tier: Tier::Patient, ..Wanted::full(request) });
        Some(Better::new(Box::new(move || make().ok()), COST_OF_LONG, background))
    }
}

/// Code of a kernel.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    ptx: &'a str,
    entry: &'a str,
    shape: Shape,
    tier: Tier,
}

impl<'a> Wanted<'a> {
    /// Of the tier that all kernels have.
    fn full(request: &CompileRequest<'a>) -> Wanted<'a> {
        // Other code is the same for blocks of many sizes.
        let shape = if may_gang(request.ptx) { request.shape } else { request.shape.in_pairs_at_most() };
        Wanted { ptx: request.ptx, entry: request.entry, shape, tier: Tier::Full }
    }
}

impl Jit {
    /// With the compiler library and the cache that the environment names.
    pub fn from_environment(approximations: Approximations) -> Jit {
        let jit =
            Jit::with(Box::new(CompilerLibrary::default()), DiskCache::from_environment(), approximations);
        match std::env::var("ANYWARP_TIERS").as_deref().map(str::trim) {
            Ok("0") => jit,
            _ => jit.in_tiers(),
        }
    }

    /// The same, where code for first launches is made quickly if a request allows that. Its compiler may be at work when the process exits.
    ///
    /// # Panics
    /// If it has been cloned.
    pub fn in_tiers(mut self) -> Jit {
        let inner = Arc::get_mut(&mut self.0).expect("it is not shared yet");
        inner.background = Some(Background::new(inner.cache.is_some()));
        self
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
            background: None,
        }))
    }

    fn key(&self, wanted: Wanted<'_>) -> Result<Key, CompileError> {
        let inner = &*self.0;
        Ok(Key::of(&[
            &VERSION.to_le_bytes(),
            wanted.ptx.as_bytes(),
            wanted.entry.as_bytes(),
            &wanted.shape.code().to_le_bytes(),
            &(wanted.tier as u32).to_le_bytes(),
            inner.cpu()?.as_bytes(),
            inner.approximations.name().as_bytes(),
            inner.fingerprint.as_bytes(),
            inner.compiler.identity().as_bytes(),
        ]))
    }

    fn kernel(&self, wanted: Wanted<'_>) -> Result<Arc<Kernel>, CompileError> {
        let key = self.key(wanted)?;
        let slot = self.slot(key);
        let mut kernel = locked(&slot);
        if let Some(kernel) = kernel.upgrade() {
            return Ok(kernel);
        }
        let found = match self.cached(key, wanted) {
            Some(kernel) => kernel,
            None => self.compile_new(key, wanted)?,
        };
        *kernel = Arc::downgrade(&found);
        Ok(found)
    }

    /// Code that need not be compiled.
    fn known(&self, wanted: Wanted<'_>) -> Result<Option<Arc<Kernel>>, CompileError> {
        let key = self.key(wanted)?;
        let slot = self.slot(key);
        // Who holds the lock is compiling it.
        let Ok(mut kernel) = slot.try_lock() else { return Ok(None) };
        if let Some(kernel) = kernel.upgrade() {
            return Ok(Some(kernel));
        }
        let found = self.cached(key, wanted);
        if let Some(found) = &found {
            *kernel = Arc::downgrade(found);
        }
        Ok(found)
    }

    fn cached(&self, key: Key, wanted: Wanted<'_>) -> Option<Arc<Kernel>> {
        let bytes = self.0.cache.as_ref()?.load(key)?;
        // An entry that does not load is as good as damaged.
        self.load(Artifact::decode(&bytes)?, wanted).ok()
    }

    fn slot(&self, key: Key) -> Arc<Slot> {
        let mut kernels = locked(&self.0.kernels);
        if let Some(slot) = kernels.get(&key) {
            return slot.clone();
        }
        // Of kernels that are gone nothing is kept, but for slots in whose hands they are being made.
        kernels.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|kernel| kernel.strong_count() > 0)
        });
        kernels.entry(key).or_default().clone()
    }

    fn compile_new(&self, key: Key, wanted: Wanted<'_>) -> Result<Arc<Kernel>, CompileError> {
        let Wanted { ptx, entry, shape, tier } = wanted;
        let approximations = self.0.approximations;
        let artifact = self.0.compiler.compile(&Source {
            ptx,
            entry,
            shape,
            cpu: self.0.cpu()?,
            approximations,
            tier,
        })?;
        let bytes = self.0.cache.as_ref().map(|_| artifact.encode());
        let kernel = self.load(artifact, wanted)?;
        if let (Some(cache), Some(bytes)) = (&self.0.cache, bytes) {
            cache.store(key, &bytes);
        }
        Ok(kernel)
    }

    fn load(&self, artifact: Artifact, wanted: Wanted<'_>) -> Result<Arc<Kernel>, CompileError> {
        let Wanted { entry, shape, tier, .. } = wanted;
        let failed =
            |what: &dyn std::fmt::Display| CompileError::new(format!("cannot load kernel `{entry}`: {what}"));
        let object = LoadedObject::load(&artifact.object, &host_symbol).map_err(|error| failed(&error))?;
        let symbol = object.symbol(ENTRY_SYMBOL).ok_or_else(|| failed(&"its code has no entry"))?;
        let together = object.symbol(TOGETHER_SYMBOL).map(|symbol| symbol.address);
        perf::announce(entry, &object);
        // Code without assumptions runs where other code gives up: it is not a launch's.
        let (mut plain, mut better) = (None, None);
        if shape.assume_no_wrap {
            let other = self.other_code(Wanted { shape: no_assumption(shape), ..wanted });
            plain = Some(Box::new(other) as PlainCode);
            if let (Tier::Quick | Tier::Patient, Some(background)) = (tier, &self.0.background) {
                let fast = self.other_code(Wanted { tier: Tier::Full, ..wanted });
                let cost = COST_OF_BYTE * u32::try_from(artifact.object.len()).unwrap_or(u32::MAX);
                better = Some(Better::new(Box::new(move || fast().ok()), cost, background));
            }
        }
        // SAFETY: the object comes from the compiler, or from the cache, which keeps whole what the compiler made for this
        // version of the interface.
        Ok(Arc::new(unsafe { Kernel::new(object, symbol.address, together, artifact.info, plain, better) }))
    }

    /// How to get other code of a kernel later.
    fn other_code(
        &self,
        wanted: Wanted<'_>,
    ) -> impl Fn() -> Result<Arc<Kernel>, CompileError> + Send + Sync + use<> {
        let (text, entry) = (self.text(wanted.ptx), wanted.entry.to_owned());
        let (shape, tier) = (wanted.shape, wanted.tier);
        // A kernel must not keep the table alive that keeps it.
        let weak = Arc::downgrade(&self.0);
        move || match weak.upgrade() {
            Some(inner) => Jit(inner).kernel(Wanted { ptx: &text, entry: &entry, shape, tier }),
            None => Err(CompileError::new("the back end is gone")),
        }
    }

    /// A shared copy of a module's text.
    fn text(&self, ptx: &str) -> Arc<str> {
        let key = Key::of(&[ptx.as_bytes()]);
        let mut texts = locked(&self.0.texts);
        if let Some(text) = texts.get(&key).and_then(Weak::upgrade) {
            return text;
        }
        texts.retain(|_, text| text.strong_count() > 0);
        let text: Arc<str> = ptx.into();
        texts.insert(key, Arc::downgrade(&text));
        text
    }
}

impl Inner {
    fn cpu(&self) -> Result<&str, CompileError> {
        self.cpu.as_deref().map_err(CompileError::clone)
    }
}

/// What compiling a kernel well takes for each byte of the code that was made quickly: the geometric mean of those of `benches`, of which few
/// take a third or three times as long.
const COST_OF_BYTE: Duration = Duration::from_micros(10);

/// What compiling takes for a kernel that has no quick code: from one to some ten seconds.
const COST_OF_LONG: Duration = Duration::from_secs(4);

/// The shape for code that makes no assumption on wrapping.
fn no_assumption(shape: Shape) -> Shape {
    Shape { assume_no_wrap: false, ..shape.alone() }
}

/// Whether kernels of this text may run more than two warps as one: only where there are barriers and shared memory, or loops in steps of the grid.
fn may_gang(ptx: &str) -> bool {
    ptx.contains(".shared") && (ptx.contains("bar.") || ptx.contains("barrier.")) || ptx.contains("%nctaid")
}
