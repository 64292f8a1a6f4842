//! Random kernels, run on a back end and on the interpreter, which must agree bit for bit.
//!
//! * [`table`]: random instructions of the instruction table, from their synopses;
//! * [`program`]: kernels as trees of statements, and their text;
//! * [`generate`]: random trees whose results depend on nothing but their input;
//! * [`walk`]: accesses by indices of all kinds, in loops;
//! * [`patterns`]: what programs are full of, loops over tiles and rows, sums of products and the like;
//! * [`rows`]: random instructions of chosen rows of the table, for the next two;
//! * [`atomics`]: atomic operations, alone and where lanes meet at a word;
//! * [`matrices`]: products of matrices, and matrices in shared memory;
//! * [`images`]: textures and surfaces;
//! * [`copies`]: asynchronous copies;
//! * [`tensors`]: those by tensor maps;
//! * [`reduce`], [`nested`]: the smallest tree that still shows a difference;
//! * [`cuda`]: kernels in CUDA C++, as people write them.
//!
//! A kernel's threads only share what comes out the same in whatever order they run: words that each of them combines with
//! one commutative operation, exchanges at barriers and among the lanes of a warp that a mask names.

pub mod atomics;
pub mod copies;
pub mod cuda;
pub mod generate;
pub mod images;
pub mod matrices;
pub mod nested;
pub mod patterns;
pub mod program;
pub mod reduce;
pub mod rows;
pub mod table;
pub mod tensors;
pub mod walk;

use kernel_abi::KernelBackend;

use crate::machine::{self, GuardedWords};
use crate::module::{LoadFailure, Loaded};
use crate::texture::{Descriptor, Made};
use images::Image;
use program::Program;

impl Image {
    /// The object, over a copy of its texels.
    fn create(&self) -> Result<Made, String> {
        Descriptor::parse(&format!("-\t{}", self.line.replace(' ', "\t")))?.create(&self.texels)
    }
}

/// Numbers that look random and are the same each time (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The sequence that begins here.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// A number below the limit, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// True so many times out of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these, of which there is one at least.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// What a back end made of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What its threads left behind.
    Ran(Vec<u64>),
    /// Not compiled, because something is not supported.
    Refused(String),
    /// Not loaded, not compiled, or ended by a fault.
    Failed(String),
}

/// Runs a program on a back end.
pub fn run(program: &Program, backend: &dyn KernelBackend) -> Outcome {
    let grid = program.grid;
    let loaded = match Loaded::new(&program.text()) {
        Ok(loaded) => loaded,
        Err(LoadFailure::Unsupported(why)) => return Outcome::Refused(why),
        Err(LoadFailure::Wrong(why)) => return Outcome::Failed(why),
    };
    let kernel = match loaded.compile(backend, program::ENTRY, grid) {
        Ok(kernel) => kernel,
        Err(error) if error.unsupported => return Outcome::Refused(error.message),
        Err(error) => return Outcome::Failed(error.message),
    };
    // Code for vectors must not touch what no thread does.
    let input = GuardedWords::new(&program.input());
    let output = GuardedWords::new(&vec![0; program.output_words()]);
    let images = match program.images.iter().map(Image::create).collect::<Result<Vec<Made>, String>>() {
        Ok(images) => images,
        Err(why) => return Outcome::Failed(why),
    };
    let addresses = [&input, &output].map(|words| words.address() as u64);
    let params: Vec<u8> =
        addresses.into_iter().chain(images.iter().map(Made::handle)).flat_map(u64::to_le_bytes).collect();
    let globals = loaded.globals(&kernel.info().globals);
    match machine::launch(&*kernel, grid, &params, &globals) {
        Ok(_) => {
            Outcome::Ran(output.read().into_iter().chain(images.iter().flat_map(Made::texels)).collect())
        }
        Err(fault) => Outcome::Failed(format!("{fault:?}")),
    }
}

/// How two back ends differ about a program, if they do.
pub fn difference(
    program: &Program,
    backend: &dyn KernelBackend,
    oracle: &dyn KernelBackend,
) -> Option<String> {
    let (expected, got) = (run(program, oracle), run(program, backend));
    difference_of(program, &expected, &got).map(|why| match (&expected, &got) {
        (Outcome::Failed(_), _) => format!("{}: {why}", oracle.name()),
        (_, Outcome::Failed(_)) => format!("{}: {why}", backend.name()),
        _ => why,
    })
}

/// How what a back end made of a program differs from what is expected, if both ran it.
pub fn difference_of(program: &Program, expected: &Outcome, got: &Outcome) -> Option<String> {
    match (expected, got) {
        (Outcome::Ran(expected), Outcome::Ran(got)) => {
            let at = expected.iter().zip(got).position(|(a, b)| a != b)?;
            Some(format!("{}: {:#x} instead of {:#x}", place(program, at), got[at], expected[at]))
        }
        (Outcome::Refused(_), _) | (_, Outcome::Refused(_)) => None,
        (Outcome::Failed(why), _) | (_, Outcome::Failed(why)) => Some(why.clone()),
    }
}

/// Whose a word of a program's output is.
pub fn place(program: &Program, at: usize) -> String {
    let own = program::OUTPUT_WORDS * program.threads();
    match at.checked_sub(program::SHARED_WORDS) {
        None => format!("word {at} that all threads share"),
        Some(at) if at >= program.output_words() - program::SHARED_WORDS => {
            format!("word {} of the images", at + program::SHARED_WORDS - program.output_words())
        }
        Some(at) if at >= own => format!("word {} of the columns", at - own),
        Some(at) => format!("thread {}, word {}", at / program::OUTPUT_WORDS, at % program::OUTPUT_WORDS),
    }
}

/// The program as a test that carries its launch and what is expected of it.
pub fn as_test(program: &Program, seed: u64, why: &str, expected: Option<&[u64]>) -> String {
    let list = |words: &[u64]| {
        let mut text = String::new();
        let mut at = 0;
        while at < words.len() {
            let same = words[at..].iter().take_while(|word| **word == words[at]).count();
            text +=
                &if same > 1 { format!(" {:#x}*{same}", words[at]) } else { format!(" {:#x}", words[at]) };
            at += same;
        }
        text
    };
    let grid = program.grid;
    let ([x, y, z], [width, height, depth]) = (grid.block, grid.grid);
    let zeros = program.output_words();
    let mut text = format!("// Found by fuzz-kernels, number {seed}: {why}\n");
    text += &format!("// RUN k grid={width},{height},{depth} block={x},{y},{z}\n");
    text += &format!("// BUFFER u64{}\n// BUFFER u64 0*{zeros}\n", list(&program.input()));
    for image in &program.images {
        let texels: Vec<u64> = image.texels.iter().map(|byte| u64::from(*byte)).collect();
        text += &format!("// TEXTURE - {}: u8{}\n", image.line, list(&texels));
    }
    if let Some(words) = expected {
        text += &format!("// OUT 1:{}\n", list(&words[..zeros]));
    }
    text + &program.text()
}
