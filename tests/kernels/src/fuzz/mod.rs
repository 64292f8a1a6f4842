//! Random kernels, run on a back end and on the interpreter, which must agree bit for bit.
//!
//! * [`table`]: random instructions of the instruction table, from their synopses;
//! * [`program`]: kernels as trees of statements, and their text;
//! * [`generate`]: random trees whose results depend on nothing but their input;
//! * [`reduce`]: the smallest tree that still shows a difference.
//!
//! A kernel's threads only share what comes out the same in whatever order they run: words that each of them combines with
//! one commutative operation, exchanges at barriers and among the lanes of a warp that a mask names.

pub mod generate;
pub mod program;
pub mod reduce;
pub mod table;

use kernel_abi::KernelBackend;

use crate::machine::{self, Grid};
use crate::module::{LoadFailure, Loaded};
use program::Program;

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
pub fn run(program: &Program, grid: Grid, backend: &dyn KernelBackend) -> Outcome {
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
    let threads: u32 = grid.block.iter().chain(&grid.grid).product();
    let mut input = program.input();
    let mut output = vec![0u64; program::OUTPUT_WORDS * threads as usize + program::SHARED_WORDS];
    let params: Vec<u8> = [input.as_mut_ptr() as u64, output.as_mut_ptr() as u64]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    let globals = loaded.globals(&kernel.info().globals);
    match machine::launch(&*kernel, grid, &params, &globals) {
        Ok(_) => Outcome::Ran(output),
        Err(fault) => Outcome::Failed(format!("{fault:?}")),
    }
}

/// How two back ends differ about a program, if they do.
pub fn difference(
    program: &Program,
    grid: Grid,
    backend: &dyn KernelBackend,
    oracle: &dyn KernelBackend,
) -> Option<String> {
    let expected = run(program, grid, oracle);
    match (&expected, run(program, grid, backend)) {
        (Outcome::Ran(expected), Outcome::Ran(got)) => {
            let at = expected.iter().zip(&got).position(|(a, b)| a != b)?;
            let place = match at.checked_sub(program::SHARED_WORDS) {
                None => format!("word {at} that all threads share"),
                Some(at) => {
                    format!("thread {}, word {}", at / program::OUTPUT_WORDS, at % program::OUTPUT_WORDS)
                }
            };
            Some(format!("{place}: {:#x} instead of {:#x}", got[at], expected[at]))
        }
        (Outcome::Refused(_), _) | (_, Outcome::Refused(_)) => None,
        (Outcome::Failed(why), _) => Some(format!("{}: {why}", oracle.name())),
        (_, Outcome::Failed(why)) => Some(format!("{}: {why}", backend.name())),
    }
}
