//! A PTX module in memory: its variables, and its kernels on demand.

use std::collections::HashMap;
use std::sync::Arc;

use kernel_abi::{CompileError, CompileRequest, CompiledKernel, KernelBackend, Shape, Tier};
use ptx::LoadErrorKind;
use ptx::lower::{ModuleVariable, ObjectKind};

use crate::machine::Grid;
use crate::texture::Made;

/// A module whose variables have memory.
pub struct Loaded {
    text: String,
    variables: HashMap<String, Memory>,
    samplers: HashMap<String, Made>,
}

/// The memory of a variable, 64-byte aligned, with its address.
struct Memory {
    words: Vec<[u64; 8]>,
    at: usize,
}

impl Memory {
    fn new(bytes: usize) -> Memory {
        let words = vec![[0; 8]; bytes.div_ceil(64) + 1];
        let start = words.as_ptr() as usize;
        Memory { at: start.next_multiple_of(64) - start, words }
    }

    fn address(&self) -> u64 {
        (self.words.as_ptr() as usize + self.at) as u64
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let room = self.words.len() * 64 - self.at;
        assert!(offset + bytes.len() <= room, "initial bytes fit the variable");
        // SAFETY: within the vector, as just checked; its words are plain bytes.
        unsafe {
            let to = self.words.as_mut_ptr().cast::<u8>().add(self.at + offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

/// Why a module does not load.
#[derive(Clone, Debug)]
pub enum LoadFailure {
    /// It uses something that is not implemented.
    Unsupported(String),
    /// It is refused for another reason.
    Wrong(String),
}

impl From<ptx::Errors> for LoadFailure {
    fn from(errors: ptx::Errors) -> LoadFailure {
        let text = errors.to_string();
        if errors.list().iter().all(|error| error.kind == LoadErrorKind::Unsupported) {
            LoadFailure::Unsupported(text)
        } else {
            LoadFailure::Wrong(text)
        }
    }
}

/// Reads a module for whatever target it has, as the device does with one from a fat binary.
///
/// # Errors
/// It is not PTX.
pub fn read(text: &str) -> Result<ptx::Module<'_>, ptx::Errors> {
    ptx::parse_with(text, &ptx::Options { device: None, ..ptx::Options::default() })
}

impl Loaded {
    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads and checks a module, and gives its variables memory with their initial content.
    pub fn new(text: &str) -> Result<Loaded, LoadFailure> {
        let module = read(text)?;
        ptx::lower::check(text, &module)?;
        let variables = ptx::lower::variables(text, &module)?;
        let mut memory: HashMap<String, Memory> =
            variables.iter().map(|v| (v.name.clone(), Memory::new(v.size as usize))).collect();
        for variable in &variables {
            initialise(variable, &mut memory);
        }
        let samplers = ptx::lower::object_variables(&module).into_iter().filter_map(|variable| {
            let ObjectKind::Sampler(sampler) = variable.kind else { return None };
            Some((variable.name, Made::sampler(sampler)))
        });
        Ok(Loaded { text: text.into(), samplers: samplers.collect(), variables: memory })
    }

    /// A kernel for launches of this shape.
    pub fn compile(
        &self,
        backend: &dyn KernelBackend,
        entry: &str,
        grid: Grid,
    ) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        let program = |approximations| {
            let module = read(&self.text).map_err(|e| CompileError::new(e.to_string()))?;
            let program = ptx::lower::program_with(&self.text, &module, entry, approximations)
                .map_err(|e| CompileError::new(e.to_string()))?;
            simt_ir::verify(&program).map_err(|e| CompileError::new(format!("{e}\n{program}")))?;
            Ok(Arc::new(program))
        };
        backend.compile(&CompileRequest {
            ptx: &self.text,
            entry,
            shape: Shape::of(grid.grid, grid.block),
            tier: Tier::Full,
            program: &program,
        })
    }

    /// The launch in clusters, if the kernel asks for them.
    pub fn in_clusters(&self, grid: Grid, entry: &str) -> Grid {
        let module = read(&self.text).expect("the module has been read before");
        let entries = ptx::lower::entries(&self.text, &module).expect("the module has been checked");
        let required = entries.iter().find(|known| known.name == entry).and_then(|it| it.required_cluster);
        Grid { cluster: grid.cluster.or(required), ..grid }
    }

    /// Addresses of the variables with these names, and handles of samplers. Textures and surfaces are not bound: 0.
    pub fn globals(&self, names: &[String]) -> Vec<u64> {
        let value = |name: &String| match self.samplers.get(name) {
            Some(sampler) => sampler.handle(),
            None => self.variables.get(name).map_or(0, Memory::address),
        };
        names.iter().map(value).collect()
    }
}

fn initialise(variable: &ModuleVariable, memory: &mut HashMap<String, Memory>) {
    let mut bytes = variable.bytes.clone();
    for relocation in &variable.relocations {
        let target = memory.get(&relocation.symbol).map_or(0, Memory::address);
        let value = target.wrapping_add(relocation.addend as u64) >> relocation.shift;
        let (from, count) = (relocation.offset as usize, relocation.bytes as usize);
        bytes.resize(bytes.len().max(from + count), 0);
        bytes[from..from + count].copy_from_slice(&value.to_le_bytes()[..count]);
    }
    let own = memory.get_mut(&variable.name).expect("every variable has memory");
    own.write(0, &bytes);
}
