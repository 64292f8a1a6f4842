//! Asynchronous copies, tensor maps and clusters: kernels made from the rows of the instruction table, each beside a plain model of what it
//! should do.
//!
//! A kernel runs as a cluster of two blocks. Both fill their shared window with given bytes and set up a barrier in it, the first block
//! executes one instruction, everybody waits as the instruction asks for, and both windows are written out. The [`model`] does to its
//! copy of the windows and of a tensor in global memory what the manual says; afterwards all of it must be equal, so that a byte that
//! nobody should have touched shows as well. So does a barrier that is told a wrong number of bytes: it is not complete.

mod body;
mod model;
mod number;

use std::collections::BTreeSet;

use kernel_abi::KernelBackend;
use ptx::isa::{Place, Row};

use crate::machine::{self, Grid};
use crate::module::Loaded;

pub use model::World;

/// Families of the table whose rows these kernels are made from.
const FAMILIES: [&str; 2] = ["Bulk copies and tensor maps", "Clusters"];

/// Bytes of a block's shared memory that a case is about.
pub const WINDOW: usize = 4096;
/// Bytes that a block writes out: its window, and whether its barrier is complete.
const OUTPUT: usize = WINDOW + 64;
/// Bytes of the tensor in global memory.
pub const TENSOR: usize = 8192;

/// An instruction of a row, with what is around it and what it should do.
pub struct Case {
    /// The row's place in [`ptx::isa::rows`].
    pub row: usize,
    /// The instruction's modifiers.
    pub words: Vec<&'static str>,
    /// The instruction with its operands, for messages.
    pub instruction: String,
    text: String,
    before: World,
    after: World,
    map: model::Map,
}

/// All cases, row by row.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, row) in ptx::isa::rows().iter().enumerate() {
        if FAMILIES.contains(&row.family) {
            let words = choices(&row.places);
            cases.extend(words.into_iter().enumerate().filter_map(|(n, words)| case(number, row, words, n)));
        }
    }
    cases
}

/// The modifiers of the instructions of a row: every choice where there are several, and what may be left out is there in every other one.
fn choices(places: &[Place]) -> Vec<Vec<&'static str>> {
    let is_switch = |place: &Place| place.optional && place.words.len() == 1;
    let mut all: Vec<Vec<&'static str>> = vec![Vec::new()];
    for place in places.iter().filter(|place| !is_switch(place)) {
        let absent = place.optional.then_some("");
        let words: Vec<&'static str> = absent.into_iter().chain(place.words.iter().copied()).collect();
        all = all
            .iter()
            .flat_map(|chosen| words.iter().map(move |word| [&chosen[..], &[*word]].concat()))
            .collect();
    }
    // Where the choices are few, with and without.
    if all.len() <= 4 && places.iter().any(is_switch) {
        all = all.iter().flat_map(|chosen| [chosen.clone(), chosen.clone()]).collect();
    }
    let in_order = |(number, chosen): (usize, Vec<&'static str>)| {
        let mut chosen = chosen.into_iter();
        let word = |place: &Place| match is_switch(place) {
            true if number.is_multiple_of(2) => "",
            true => place.words[0],
            false => chosen.next().unwrap_or_default(),
        };
        places.iter().map(word).filter(|word| !word.is_empty()).collect()
    };
    all.into_iter().enumerate().map(in_order).collect()
}

fn case(number: usize, row: &Row, words: Vec<&'static str>, variant: usize) -> Option<Case> {
    let scene = body::scene(row, &words, variant)?;
    let text = body::kernel(&scene);
    // What the table's further rules refuse is no instruction.
    Loaded::new(&text).ok()?;
    let body::Scene { instruction, before, after, map, .. } = scene;
    Some(Case { row: number, words, instruction, text, before, after, map })
}

impl Case {
    /// Runs the kernel.
    ///
    /// # Errors
    /// It does not compile, fails, or does something else than the model.
    pub fn run(&self, backend: &dyn KernelBackend) -> Result<(), String> {
        let grid = Grid { grid: [2, 1, 1], block: [32, 1, 1], dynamic_shared: 0, cluster: Some([2, 1, 1]) };
        let loaded = Loaded::new(&self.text).map_err(|failure| format!("{failure:?}"))?;
        let kernel = loaded.compile(backend, "k", grid).map_err(|e| e.message)?;
        let mut tensor = Aligned::new(&self.before.tensor);
        let mut seeds = Aligned::new(&self.before.windows.concat());
        let mut out = Aligned::new(&[0; 2 * OUTPUT]);
        let mut params = self.map.at(tensor.address()).to_vec();
        for address in [tensor.address(), seeds.address(), out.address()] {
            params.extend(address.to_le_bytes());
        }
        params.extend(self.after.arrived.iter().flat_map(|bytes| bytes.to_le_bytes()));
        let globals = loaded.globals(&kernel.info().globals);
        machine::launch(&*kernel, grid, &params, &globals).map_err(|fault| format!("{fault:?}"))?;
        let expected = self.after.at(tensor.address());
        same("global memory", tensor.bytes(), &expected.tensor)?;
        for (block, got) in out.bytes().chunks_exact(OUTPUT).enumerate() {
            if got[WINDOW] != 1 {
                return Err(format!("the barrier of block {block} is not told of all bytes"));
            }
            same(&format!("block {block}"), &got[..WINDOW], &expected.windows[block])?;
        }
        Ok(())
    }
}

fn same(place: &str, got: &[u8], expected: &[u8]) -> Result<(), String> {
    match got.iter().zip(expected).position(|(got, expected)| got != expected) {
        None => Ok(()),
        Some(at) => {
            let around = at & !3..(at & !3) + 16;
            let (got, expected) = (got.get(around.clone()), expected.get(around));
            Err(format!("{place} at {at}: {got:02x?} instead of {expected:02x?}"))
        }
    }
}

/// Rows that have no case, and modifiers of rows that no case has.
pub fn missing(cases: &[Case]) -> Vec<String> {
    let mut missing = Vec::new();
    for (number, row) in ptx::isa::rows().iter().enumerate() {
        if !FAMILIES.contains(&row.family) || body::is_shown_elsewhere(row) {
            continue;
        }
        let shown: BTreeSet<&str> = cases
            .iter()
            .filter(|case| case.row == number)
            .flat_map(|case| case.words.iter().copied())
            .collect();
        let words = row.places.iter().flat_map(|place| &place.words);
        let absent: Vec<&str> = words.copied().filter(|word| !shown.contains(word)).collect();
        if !absent.is_empty() {
            missing.push(format!("{} {:?}: {absent:?}", row.opcode, row.operands));
        }
    }
    missing
}

/// Bytes aligned as device memory is.
struct Aligned {
    words: Vec<u64>,
    skip: usize,
    bytes: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Aligned {
        let words = vec![0u64; bytes.len().div_ceil(8) + 32];
        let address = words.as_ptr() as usize;
        let mut aligned =
            Aligned { skip: (address.next_multiple_of(256) - address) / 8, words, bytes: bytes.len() };
        for (word, part) in aligned.words[aligned.skip..].iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(part.try_into().expect("chunks have eight bytes"));
        }
        aligned
    }

    fn address(&mut self) -> u64 {
        self.words[self.skip..].as_mut_ptr() as u64
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: words of the vector, from the aligned one on; the kernel is over.
        unsafe { std::slice::from_raw_parts(self.words[self.skip..].as_ptr().cast(), self.bytes) }
    }
}
