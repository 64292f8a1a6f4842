//! What a PTX text means, whatever the context.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use guard::FloatControl;
use kernel_abi::{CompileError, CompileRequest, CompiledKernel, KernelBackend, Shape, Tier};
use ptx::Origin;
use simt_ir::{Approximations, Program};

use super::source::{self, Entry, ObjectVariable, Tuning, Variable};
use crate::executor::{Locate, Profile, Replay};
use crate::limits;
use crate::lock::{Rank, RankedMutex};
use crate::{Error, Result};

/// One of several texts to link.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What errors call it.
    pub name: &'a str,
    /// PTX.
    pub text: &'a str,
}

/// A checked PTX text.
pub struct Code {
    kernels: Vec<Arc<Kernel>>,
    /// Places in `kernels`.
    by_name: HashMap<Arc<str>, usize>,
    variables: Vec<Variable>,
    remarks: Vec<String>,
    /// Variables that stand for textures, samplers and surfaces.
    objects: Vec<ObjectVariable>,
    /// Variables that are somewhere already, and where.
    placed: HashMap<String, u64>,
}

/// A kernel and its compiled forms.
pub struct Kernel {
    text: Arc<str>,
    entry: Entry,
    name: Arc<str>,
    /// Architecture of `.target`, as in `sm_90`.
    target: u32,
    sm: u32,
    settings: Settings,
    /// By [`Approximations`].
    programs: [OnceLock<std::result::Result<Arc<Program>, CompileError>>; 2],
    compiled: RankedMutex<HashMap<Shape, Arc<OnceCompiled>>>,
    profile: Arc<Profile>,
}

/// What is set for a kernel, in all contexts that it is loaded into.
struct Settings {
    /// Dynamic shared memory a launch may have; `u32::MAX` until it is set.
    max_dynamic_shared: AtomicU32,
    hints: [AtomicI32; 4],
    /// Blocks of a cluster in x, y, z; 0 until they are set.
    cluster: [AtomicU32; 3],
}

/// Something that a program prefers for a kernel: kept, and without effect but on how many blocks are told to run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Percentage of the cache to be shared memory; -1 for no preference.
    SharedCarveout,
    /// Clusters may be larger than every device has.
    NonPortableCluster,
    /// How the blocks of a cluster are spread.
    ClusterPolicy,
    /// The same percentage, as a choice between cache and shared memory says it; -1 for none.
    CacheConfig,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_dynamic_shared: AtomicU32::new(u32::MAX),
            hints: [-1, 0, 0, -1].map(AtomicI32::new),
            cluster: [0; 3].map(AtomicU32::new),
        }
    }
}

/// A kernel compiled for a shape.
#[derive(Default)]
struct OnceCompiled {
    code: OnceLock<std::result::Result<Arc<dyn CompiledKernel>, CompileError>>,
}

impl Code {
    /// Reads a text and checks it for a device of compute capability `sm`, 10 · major + minor.
    ///
    /// # Errors
    /// [`Error::InvalidImage`] if it is no PTX, [`Error::UnsupportedPtxVersion`], and [`Error::InvalidPtx`] for all other
    /// mistakes; each with a log that names line, column and text.
    pub fn from_ptx(text: &str, sm: u32) -> Result<Arc<Code>> {
        Code::with_placed(text, HashMap::new(), sm)
    }

    fn with_placed(text: &str, placed: HashMap<String, u64>, sm: u32) -> Result<Arc<Code>> {
        let checked = source::check(text, sm)?;
        let text: Arc<str> = checked.completed.as_deref().unwrap_or(text).into();
        let kernel = |entry: Entry| {
            Arc::new(Kernel {
                text: text.clone(),
                name: entry.name.as_str().into(),
                entry,
                target: checked.target,
                sm,
                settings: Settings::default(),
                programs: Default::default(),
                compiled: RankedMutex::new(Rank::Module, HashMap::new()),
                profile: Arc::default(),
            })
        };
        let kernels: Vec<Arc<Kernel>> = checked.entries.into_iter().map(kernel).collect();
        let names = kernels.iter().enumerate().map(|(place, kernel)| (kernel.name.clone(), place));
        Ok(Arc::new(Code {
            by_name: names.collect(),
            kernels,
            variables: checked.variables,
            remarks: checked.remarks,
            objects: checked.objects,
            placed,
        }))
    }

    /// Links texts into one and reads that; a single text is read as it is.
    ///
    /// # Errors
    /// [`Error::InvalidSource`] where they do not fit together, and as for [`from_ptx`](Self::from_ptx).
    pub fn from_inputs(inputs: &[Input<'_>], sm: u32) -> Result<Arc<Code>> {
        match inputs {
            [only] => Code::from_ptx(only.text, sm),
            _ => Code::from_ptx(&Code::link(inputs, sm)?, sm),
        }
    }

    /// The same, where variables that the texts only declare are at the addresses given, in every context. Names that no
    /// text declares are ignored.
    ///
    /// # Errors
    /// As for [`from_inputs`](Self::from_inputs).
    pub fn from_inputs_with(inputs: &[Input<'_>], placed: &[(String, u64)], sm: u32) -> Result<Arc<Code>> {
        if placed.is_empty() {
            return Code::from_inputs(inputs, sm);
        }
        let mut names: HashSet<&str> = placed.iter().map(|(name, _)| name.as_str()).collect();
        let define = |input: &Input<'_>| source::define(input.text, &mut names, sm);
        let defined: Vec<Option<String>> = inputs.iter().map(define).collect::<Result<_>>()?;
        let inputs: Vec<Input<'_>> = inputs
            .iter()
            .zip(&defined)
            .map(|(input, defined)| Input {
                name: input.name,
                text: defined.as_deref().unwrap_or(input.text),
            })
            .collect();
        let used = placed.iter().filter(|(name, _)| !names.contains(name.as_str()));
        let placed = used.cloned().collect();
        match &inputs[..] {
            [only] => Code::with_placed(only.text, placed, sm),
            _ => Code::with_placed(&Code::link(&inputs, sm)?, placed, sm),
        }
    }

    /// Links texts into one.
    ///
    /// # Errors
    /// As for [`from_inputs`](Self::from_inputs).
    pub fn link(inputs: &[Input<'_>], sm: u32) -> Result<String> {
        source::link(inputs, sm)
    }

    /// A text with what a program asks of the compiler in it, and remarks about what cannot be done.
    ///
    /// # Errors
    /// As for [`from_ptx`](Self::from_ptx).
    pub fn tune(text: &str, tuning: Tuning, sm: u32) -> Result<(String, Vec<String>)> {
        source::tune(text, tuning, sm)
    }

    /// Checks a text that is to be linked with others, which may define what it only declares.
    ///
    /// # Errors
    /// As for [`from_ptx`](Self::from_ptx).
    pub fn check_piece(input: Input<'_>, sm: u32) -> Result<()> {
        source::check_piece(input.text, sm)
    }

    /// The names of a text of which nothing else may define one.
    ///
    /// # Errors
    /// [`Error::InvalidPtx`] and its like, as of [`check_piece`](Self::check_piece).
    pub fn strong_names(text: &str, sm: u32) -> Result<Vec<String>> {
        source::strong_names(text, sm)
    }

    /// Checks whether texts define nothing twice; others may define what they only declare.
    ///
    /// # Errors
    /// As for [`link`](Self::link).
    pub fn check_together(inputs: &[Input<'_>], sm: u32) -> Result<()> {
        source::check_together(inputs, sm)
    }

    /// What is worth knowing about the text.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The kernels, in order.
    pub fn kernels(&self) -> &[Arc<Kernel>] {
        &self.kernels
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<Arc<Kernel>> {
        self.by_name.get(name).map(|place| self.kernels[*place].clone())
    }

    /// The kernel whose address kernels know by this number.
    pub(crate) fn kernel_of_token(&self, token: u64) -> Option<Arc<Kernel>> {
        self.kernels.iter().find(|kernel| kernel.entry.token == token).cloned()
    }

    /// Where a variable is that the module does not allocate.
    pub(crate) fn placed(&self, name: &str) -> Option<u64> {
        self.placed.get(name).copied()
    }

    pub(crate) fn variables(&self) -> &[Variable] {
        &self.variables
    }

    pub(crate) fn objects(&self) -> &[ObjectVariable] {
        &self.objects
    }

    /// Compiles all kernels for the commonest shape of launch, several at once on so many threads. Answers the first kernel's error
    /// if some cannot be compiled.
    pub(crate) fn compile_all(&self, backend: &dyn KernelBackend, threads: usize) -> Result<()> {
        const COMMON: [[u32; 3]; 2] = [[1024, 1, 1], [256, 1, 1]];
        /// As much as programs have: a compiler descends into what it reads.
        const STACK: usize = 8 << 20;
        let shape = Shape::of(COMMON[0], COMMON[1]);
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        // The first failure among the kernels that this thread compiles. They are handed out in order, so all before one that
        // failed are seen to by somebody.
        let work = || {
            while !stopped.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let kernel = self.kernels.get(at)?;
                if let Err(error) = kernel.compile(backend, shape, Tier::Full) {
                    stopped.store(true, Ordering::Relaxed);
                    return Some((at, error));
                }
            }
            None
        };
        let failures = std::thread::scope(|scope| {
            // Without a further thread this one does it all.
            let spawn = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads.min(self.kernels.len())).filter_map(spawn).collect();
            let mut failures = vec![work()];
            for other in others {
                let failure = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                failures.push(failure);
            }
            failures
        });
        let first = failures.into_iter().flatten().min_by_key(|(at, _)| *at);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// How it is launched.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// 10 · major + minor of the virtual architecture it was written for.
    pub fn ptx_version(&self) -> u32 {
        self.target
    }

    /// 10 · major + minor of the compute capability it is compiled for.
    pub fn binary_version(&self) -> u32 {
        self.sm
    }

    /// The greatest block that the kernel declares, which `.reqntid` does not count as, or that there can be.
    pub fn declared_max_threads(&self) -> u32 {
        let threads =
            self.entry.max_block.map(|dims| dims.iter().fold(1_u32, |all, n| all.saturating_mul(*n)));
        threads.unwrap_or(u32::MAX).min(crate::limits::MAX_THREADS_PER_BLOCK)
    }

    /// Most threads of a block that is launched.
    pub fn max_threads(&self) -> u32 {
        let product = |dims: [u32; 3]| dims.iter().fold(1_u32, |product, n| product.saturating_mul(*n));
        let declared = self.entry.required_block.or(self.entry.max_block).map(product);
        declared.unwrap_or(u32::MAX).min(crate::limits::MAX_THREADS_PER_BLOCK)
    }

    /// A preference.
    pub fn hint(&self, hint: Hint) -> i32 {
        self.settings.hints[hint as usize].load(Ordering::Relaxed)
    }

    /// Sets a preference.
    pub fn set_hint(&self, hint: Hint, value: i32) {
        self.settings.hints[hint as usize].store(value, Ordering::Relaxed);
    }

    /// Blocks of the clusters that it must be launched in, if its text says so or that was set.
    pub fn required_cluster(&self) -> Option<[u32; 3]> {
        let set = || [0, 1, 2].map(|axis| self.required_cluster_blocks(axis));
        self.entry.required_cluster.or_else(|| Some(set()).filter(|cluster| *cluster != [0; 3]))
    }

    /// The same in one dimension; 0 if that is open.
    pub fn required_cluster_blocks(&self, axis: usize) -> u32 {
        match self.entry.required_cluster {
            Some(cluster) => cluster[axis],
            None => self.settings.cluster[axis].load(Ordering::Relaxed),
        }
    }

    /// Sets that for a dimension, 0 for leaving it open. Launches fail unless it is set in all or in none.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the kernel's text says something else.
    pub fn set_required_cluster_blocks(&self, axis: usize, blocks: u32) -> Result<()> {
        if self.entry.required_cluster.is_some_and(|cluster| cluster[axis] != blocks) {
            return Err(Error::InvalidValue);
        }
        self.settings.cluster[axis].store(blocks, Ordering::Relaxed);
        Ok(())
    }

    /// The most blocks that a cluster may have, as far as the launch does not decide it.
    pub fn most_in_cluster(&self) -> u32 {
        let most = match self.hint(Hint::NonPortableCluster) {
            0 => limits::PORTABLE_CLUSTER,
            _ => kernel_abi::MAX_CLUSTER,
        };
        self.entry.max_cluster_rank.map_or(most, |rank| rank.min(most))
    }

    /// Dynamic shared memory that a launch may have, if that was set.
    pub(crate) fn max_dynamic_shared(&self) -> Option<u32> {
        let bytes = self.settings.max_dynamic_shared.load(Ordering::Relaxed);
        (bytes != u32::MAX).then_some(bytes)
    }

    pub(crate) fn set_max_dynamic_shared(&self, bytes: u32) {
        self.settings.max_dynamic_shared.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of static shared memory.
    ///
    /// # Errors
    /// As for [`program`](Self::program).
    pub fn static_shared(&self) -> Result<u32> {
        self.entry.shared_bytes.map_or_else(|| Ok(self.program()?.shared_bytes), Ok)
    }

    /// Registers that a thread would need on a GPU: the most values that live at once, within what was allowed. Compiled kernels
    /// have none of their own to count.
    ///
    /// # Errors
    /// As for [`program`](Self::program).
    pub fn registers(&self) -> Result<u32> {
        let program = self.program()?;
        let most = program.functions.iter().map(simt_ir::registers).max().unwrap_or(0);
        Ok(most.clamp(1, self.allowed_registers()))
    }

    /// What the kernel's directives leave a thread of the registers of a GPU.
    fn allowed_registers(&self) -> u32 {
        let entry = &self.entry;
        let block = entry.required_block.or(entry.max_block);
        let by_blocks = block.map(|block| source::registers_left(block, entry.min_blocks));
        // Beside a limit of its own a block's size says nothing, unless a number of blocks is wished for.
        let by_blocks = by_blocks.filter(|_| entry.max_registers.is_none() || entry.min_blocks.is_some());
        let allowed = entry.max_registers.into_iter().chain(by_blocks).min();
        allowed.unwrap_or(u32::MAX).clamp(source::fewest_registers(self.sm), source::registers_for(1))
    }

    /// The kernel in IR.
    ///
    /// # Errors
    /// [`Error::InvalidPtx`] for what is not implemented.
    pub fn program(&self) -> Result<Arc<Program>> {
        let _control = FloatControl::standard();
        self.lowered(Approximations::default()).map_err(refused)
    }

    /// The kernel compiled for a shape; the first time, it is compiled.
    ///
    /// With [`Tier::Quick`], code that is there soon will do: until better code has been made, which [grids](crate::executor::Grid) ask for, or the
    /// first has run for as long as making that takes. What has cost so much is worth waiting for, and leaves few processors to who makes it.
    pub(crate) fn compile(
        &self,
        backend: &dyn KernelBackend,
        shape: Shape,
        tier: Tier,
    ) -> Result<Arc<dyn CompiledKernel>> {
        let slot = self.compiled.lock().entry(shape).or_default().clone();
        let compiled = slot.code.get_or_init(|| {
            let _control = FloatControl::standard();
            let compiled = backend.compile(&CompileRequest {
                ptx: &self.text,
                entry: &self.entry.name,
                shape,
                tier,
                program: &|approximations| self.lowered(approximations),
            });
            // A launch has no log to put the reason into, and its code alone tells little.
            compiled.inspect_err(|error| eprintln!("anywarp: kernel {}: {}", self.name, error.message))
        });
        let compiled = compiled.clone().map_err(refused)?;
        let Some(successor) = compiled.successor() else { return Ok(compiled) };
        if tier == Tier::Quick && !successor.is_settled() && successor.ran(Duration::ZERO) < successor.cost()
        {
            return Ok(compiled);
        }
        let Some(successor) = successor.wait() else { return Ok(compiled) };
        let replacement = OnceCompiled { code: Ok(successor.clone()).into() };
        // What was there before is dropped outside the lock.
        let before = self.compiled.lock().insert(shape, Arc::new(replacement));
        drop(before);
        Ok(successor)
    }

    pub(crate) fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Finds source lines of this kernel's text.
    pub(crate) fn locate(self: &Arc<Kernel>) -> Arc<Locate> {
        let kernel = Arc::downgrade(self);
        Arc::new(move |line| Origin::of_line(&kernel.upgrade()?.text, line))
    }

    /// Compiles this kernel for a second run.
    pub(crate) fn replay(self: &Arc<Kernel>, backend: &Arc<dyn KernelBackend>) -> Arc<Replay> {
        let (kernel, backend) = (Arc::downgrade(self), backend.clone());
        Arc::new(move || {
            let _control = FloatControl::standard();
            let kernel = kernel.upgrade()?;
            let request = CompileRequest {
                ptx: &kernel.text,
                entry: &kernel.entry.name,
                shape: Shape::ANY,
                tier: Tier::Full,
                program: &|approximations| kernel.lowered(approximations),
            };
            backend.replayer()?.compile(&request).ok()
        })
    }

    fn lowered(&self, approximations: Approximations) -> std::result::Result<Arc<Program>, CompileError> {
        let program = &self.programs[approximations as usize];
        program.get_or_init(|| source::lower(&self.text, &self.entry.name, approximations)).clone()
    }
}

fn refused(error: CompileError) -> Error {
    if error.no_compiler { Error::NoCompiler(error.message) } else { Error::InvalidPtx(error.message) }
}
