//! A kernel's launch, and what its arrays are before and after.

use std::time::Duration;

use kernel_abi::KernelBackend;

use super::expr::{Array, Layout, Space};
use super::kernel::Kernel;
use super::print;
use super::types::Type;
use crate::fuzz::{Outcome, Random};
use crate::machine::{self, GuardedWords};
use crate::module::Loaded;

/// What became of a kernel on a back end.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Run {
    pub outcome: Outcome,
    /// How long a processor worked to compile it.
    pub compiled_in: Duration,
}

/// Runs a kernel of a module on a back end. What it leaves behind is the elements of its outputs, one word each.
pub fn run(kernel: &Kernel, loaded: &Loaded, name: &str, backend: &dyn KernelBackend) -> Run {
    let start = processor_time();
    let compiled = loaded.compile(backend, name, kernel.grid);
    let compiled_in = processor_time().saturating_sub(start);
    let outcome = match compiled {
        Err(error) if error.unsupported => Outcome::Refused(error.message),
        Err(error) => Outcome::Failed(error.message),
        Ok(compiled) => {
            let arrays = print::parameters(kernel);
            let memory: Vec<GuardedWords> =
                arrays.iter().map(|array| GuardedWords::new(&words(&content(kernel, array)))).collect();
            let params = parameters(kernel, &memory);
            let globals = loaded.globals(&compiled.info().globals);
            match machine::launch(&*compiled, kernel.grid, &params, &globals) {
                Err(fault) => Outcome::Failed(format!("{fault:?}")),
                Ok(_) => {
                    let outputs = arrays.iter().zip(&memory).filter(|(array, _)| array.space != Space::Input);
                    let left = |(array, memory): (&Array, &GuardedWords)| {
                        let count = content(kernel, array).len() / array.ty.bytes();
                        elements(array, &memory.read()).into_iter().take(count).collect::<Vec<_>>()
                    };
                    Outcome::Ran(outputs.flat_map(left).collect())
                }
            }
        }
    };
    Run { outcome, compiled_in }
}

/// What this thread has had of processors: other processes may be busy too.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is there to be written.
    let rc = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(rc, 0, "every thread has the clock");
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Which element of which output a word of an outcome is.
pub fn place(kernel: &Kernel, word: usize) -> String {
    let mut at = word;
    for array in print::parameters(kernel).iter().filter(|array| array.space != Space::Input) {
        let count = content(kernel, array).len() / array.ty.bytes();
        if at < count {
            return match (array.space, array.layout) {
                (Space::Own, Layout::Rows(step)) => {
                    let step = step as usize;
                    format!("own{} of thread {}, element {}", array.number, at / step, at % step)
                }
                (Space::Own, _) => {
                    let owners = kernel.owners() as usize;
                    format!("own{} of thread {}, element {}", array.number, at % owners, at / owners)
                }
                _ => format!("count{}, element {at}", array.number),
            };
        }
        at -= count;
    }
    format!("word {word}")
}

/// The bytes of the parameters: pointers, then the numbers.
fn parameters(kernel: &Kernel, memory: &[GuardedWords]) -> Vec<u8> {
    let scalars = kernel.scalars;
    let owners = kernel.owners() as i32;
    let numbers = [scalars.width, scalars.height, scalars.count, scalars.some, owners];
    memory
        .iter()
        .flat_map(|words| (words.address() as u64).to_le_bytes())
        .chain(numbers.iter().flat_map(|number| number.to_le_bytes()))
        .chain(0.375f32.to_le_bytes())
        .collect()
}

/// What an array is before the launch.
fn content(kernel: &Kernel, array: &Array) -> Vec<u8> {
    let elements = match (array.space, array.layout) {
        (Space::Own, Layout::Rows(step)) => kernel.owners() * step,
        (Space::Own, _) => kernel.owners() * array.length,
        _ => array.length,
    };
    let mut random = Random::new(u64::from(array.number) ^ 0x5eed);
    (0..elements).flat_map(|_| element(&mut random, array.ty)).collect()
}

/// One element: small numbers for the most part, as programs have them, some large ones, and no NaN.
fn element(random: &mut Random, ty: Type) -> Vec<u8> {
    let bits = random.bits();
    let number = match random.below(8) {
        0 => bits as i64,
        1 | 2 => (bits % 8) as i64,
        3 | 4 => (bits % 3) as i64 - 1,
        _ => (bits % 300) as i64 - 100,
    };
    let eighths = (bits % 2000) as f64 / 8.0 - 100.0;
    // From 1/8 to 16, of both signs.
    let half = (bits & 0x83ff | (12 + (bits >> 20 & 7)) << 10) as u16;
    match ty {
        Type::F16 => half.to_le_bytes().to_vec(),
        Type::H2 => [half.to_le_bytes(), (half ^ 0x8111).to_le_bytes()].concat(),
        Type::F32 => (eighths as f32).to_le_bytes().to_vec(),
        Type::F64 => eighths.to_le_bytes().to_vec(),
        _ => number.to_le_bytes()[..ty.bytes()].to_vec(),
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    // Vectors of 16 bytes are aligned, as in device memory.
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(16), 0);
    padded
        .chunks_exact(8)
        .map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
        .collect()
}

/// The elements in memory, all NaNs as one: which of several comes out is not defined.
fn elements(array: &Array, words: &[u64]) -> Vec<u64> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let of_bytes = |chunk: &[u8]| {
        let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        match array.ty {
            Type::F32 if f32::from_bits(word as u32).is_nan() => 0x7fff_ffff,
            Type::F64 if f64::from_bits(word).is_nan() => u64::MAX >> 1,
            Type::F16 if word & 0x7fff > 0x7c00 => 0x7fff,
            _ => word,
        }
    };
    let size = array.ty.bytes();
    bytes.chunks_exact(size).map(of_bytes).collect()
}

/// How what a back end made of a kernel differs from what is expected.
pub fn difference(kernel: &Kernel, expected: &Outcome, got: &Outcome) -> Option<String> {
    match (expected, got) {
        (Outcome::Ran(expected), Outcome::Ran(got)) => {
            let at = expected.iter().zip(got).position(|(a, b)| a != b)?;
            Some(format!("{}: {:#x} instead of {:#x}", place(kernel, at), got[at], expected[at]))
        }
        (Outcome::Refused(_), _) | (_, Outcome::Refused(_)) => None,
        (Outcome::Failed(why), _) => Some(format!("the reference: {why}")),
        (_, Outcome::Failed(why)) => Some(why.clone()),
    }
}
