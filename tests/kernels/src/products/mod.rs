//! Products that need more around them than the table's kernels have: those of warpgroups (`wgmma`) and of matrices in memory (`wmma`).
//!
//! A [`Product`] is a module with one kernel around one product, with its inputs and a model of what it computes: the layouts of
//! the PTX ISA, written down anew, over the sums of [`simt_ir::matrix`]. `tests/golden/products.tsv` has what a GPU answered to
//! these very modules: a checksum each ([`Record`]).

mod fragments;
mod pool;
mod warpgroup;

use std::collections::BTreeMap;
use std::path::Path;

use kernel_abi::KernelBackend;
use simt_ir::matrix::{Accumulator, Element};

use crate::machine::{self, Grid};
use crate::module::Loaded;

pub use pool::{Flavour, Pool, Random};

/// What memory holds that nobody has written.
pub const POISON: u8 = 0xcb;

/// A kernel around one product, with its inputs.
///
/// Its parameters are the addresses of an image of shared memory, of registers (word r of thread t is word `r * threads + t`)
/// and of the result.
pub struct Product {
    /// The instruction, and what it does not say.
    pub name: String,
    /// The module; its kernel is `k`.
    pub text: String,
    /// Threads of the block.
    pub threads: u32,
    /// What the image holds.
    pub image: Vec<Part>,
    /// What the registers hold.
    pub registers: Vec<Part>,
    /// Bytes of the result.
    pub bytes: usize,
    model: Model,
}

/// Some of a pool's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Whose.
    pub pool: Pool,
    /// Where they start.
    pub offset: usize,
    /// How many.
    pub bytes: usize,
}

enum Model {
    Warpgroup(warpgroup::Shape),
    Fragments(Box<fragments::Shape>),
}

/// All products.
pub fn all() -> Vec<Product> {
    let mut all = warpgroup::products();
    all.extend(fragments::products());
    all
}

impl Product {
    /// The result on a back end.
    ///
    /// # Errors
    /// The module does not load, or its kernel fails.
    pub fn run(&self, backend: &dyn KernelBackend) -> Result<Vec<u8>, String> {
        let grid = Grid { grid: [1; 3], block: [self.threads, 1, 1], dynamic_shared: 0, cluster: None };
        let loaded = Loaded::new(&self.text).map_err(|failure| format!("{failure:?}"))?;
        let kernel = loaded.compile(backend, "k", grid).map_err(|error| error.message)?;
        let mut buffers = [collected(&self.image), collected(&self.registers), vec![POISON; self.bytes]]
            .map(|bytes| Aligned::new(&bytes));
        let params: Vec<u8> = buffers.iter_mut().flat_map(|buffer| buffer.address().to_le_bytes()).collect();
        machine::launch(&*kernel, grid, &params, &loaded.globals(&kernel.info().globals))
            .map_err(|fault| format!("{fault:?}"))?;
        Ok(buffers[2].bytes()[..self.bytes].to_vec())
    }

    /// The result by the model.
    pub fn expected(&self) -> Vec<u8> {
        let (image, registers) = (collected(&self.image), collected(&self.registers));
        match &self.model {
            Model::Warpgroup(shape) => shape.expected(&image, &registers),
            Model::Fragments(shape) => shape.expected(&image),
        }
    }
}

fn collected(parts: &[Part]) -> Vec<u8> {
    parts.iter().flat_map(|part| &part.pool.bytes()[part.offset..][..part.bytes]).copied().collect()
}

/// Memory as device allocations are aligned.
struct Aligned {
    words: Vec<[u64; 32]>,
    skip: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Aligned {
        // One chunk more: the vector's own alignment is 8.
        let mut words = vec![[0; 32]; bytes.len().div_ceil(256) + 1];
        let start = words.as_mut_ptr() as usize;
        let skip = start.next_multiple_of(256) - start;
        let mut aligned = Aligned { words, skip };
        aligned.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        aligned
    }

    fn address(&mut self) -> u64 {
        self.bytes_mut().as_mut_ptr() as u64
    }

    fn bytes(&self) -> &[u8] {
        let bytes = self.words.len() * 256 - self.skip;
        // SAFETY: the vector's words are plain bytes, of which the first ones are skipped.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>().add(self.skip), bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.words.len() * 256 - self.skip;
        // SAFETY: the vector's words are plain bytes, of which the first ones are skipped.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>().add(self.skip), bytes) }
    }
}

/// What a GPU answered: a checksum for each product.
pub struct Record(BTreeMap<String, u32>);

impl Record {
    /// Reads `products.tsv` of a folder.
    ///
    /// # Errors
    /// It is not there, or a line of it is no name and checksum.
    pub fn read(folder: &Path) -> Result<Record, String> {
        let path = folder.join("products.tsv");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let line = |line: &str| {
            let (name, sum) = line.split_once('\t')?;
            Some((name.to_owned(), u32::from_str_radix(sum, 16).ok()?))
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|text| line(text).ok_or_else(|| format!("no name and checksum: {text}")))
            .collect::<Result<_, _>>()
            .map(Record)
    }

    /// The checksum of a product's result.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.0.get(name).copied()
    }

    /// Names of all products that were asked about.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// CRC-32 as zlib has it.
pub fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 != 0 { 0xedb8_8320 } else { 0 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

fn element_word(element: Element) -> &'static str {
    match element {
        Element::F16 => "f16",
        Element::BF16 => "bf16",
        Element::TF32 => "tf32",
        Element::E4M3 => "e4m3",
        Element::E5M2 => "e5m2",
        Element::F64 => "f64",
        Element::S8 => "s8",
        Element::U8 => "u8",
        Element::S4 => "s4",
        Element::U4 => "u4",
        Element::B1 => "b1",
    }
}

fn accumulator_word(sum: Accumulator) -> &'static str {
    match sum {
        Accumulator::F16 => "f16",
        Accumulator::F32 => "f32",
        Accumulator::F64 => "f64",
        Accumulator::S32 => "s32",
    }
}

/// An element that starts at this bit.
fn bits_at(bytes: &[u8], bit: usize, bits: usize) -> u64 {
    let mut word = [0; 8];
    let (from, count) = (bit / 8, bits.div_ceil(8));
    word[..count].copy_from_slice(&bytes[from..][..count]);
    u64::from_le_bytes(word) >> (bit % 8) & u64::MAX >> (64 - bits)
}

/// Kernel text around what differs: the head, with the registers that it needs, and the copy of the image to shared memory.
fn head(target: &str, window: usize, threads: u32, registers: &str) -> String {
    format!(
        "{target}.address_size 64
.shared .align 1024 .b8 window[{window}];
.visible .entry k(.param .u64 image, .param .u64 registers, .param .u64 result)
{{
    .reg .pred %again, %p;
    .reg .b32 %t, %at, %to, %window, %x<4>;
    .reg .b64 %image, %registers, %result, %from;
{registers}    mov.u32 %t, %tid.x;
    mov.u32 %window, window;
    ld.param.u64 %image, [image];
    ld.param.u64 %registers, [registers];
    ld.param.u64 %result, [result];
    shl.b32 %at, %t, 4;
COPY:
    cvt.u64.u32 %from, %at;
    add.u64 %from, %image, %from;
    ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%from];
    add.u32 %to, %window, %at;
    st.shared.v4.b32 [%to], {{%x0, %x1, %x2, %x3}};
    add.u32 %at, %at, {step};
    setp.lt.u32 %again, %at, {window};
    @%again bra COPY;
    bar.sync 0;
    mad.wide.u32 %registers, %t, 4, %registers;
",
        step = 16 * threads
    )
}

/// `{%d0, %d1}`.
fn vector(name: &str, count: usize) -> String {
    let registers: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
    format!("{{{}}}", registers.join(", "))
}
