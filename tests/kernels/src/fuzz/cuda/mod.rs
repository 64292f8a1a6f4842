//! Random kernels in CUDA C++, as people write them: compiled to PTX, run on a back end and on the interpreter, which must agree.
//!
//! * [`types`]: types of values, and which numbers an integer may be;
//! * [`expr`] and [`kernel`]: expressions and statements as trees;
//! * [`make`]: random trees whose results depend on nothing but their input;
//! * [`print`](mod@print): their text;
//! * [`compile`]: the text's PTX;
//! * [`run`]: a kernel's launch, and what it leaves behind;
//! * [`reduce`]: the smallest tree that still shows a difference.
//!
//! What random PTX has not comes out of structured programs: loops that lanes leave at different times, with values that become indices
//! after them, addresses that a compiler has made of one another, rows of structures and of threads. The kernels have no undefined
//! behaviour: signed arithmetic is written as such only where it cannot overflow, and threads share only what barriers part, or what
//! they combine with one commutative operation.

pub mod compile;
pub mod expr;
pub mod kernel;
pub mod make;
pub mod print;
pub mod reduce;
pub mod run;
pub mod types;

use std::time::Duration;

use kernel_abi::KernelBackend;

use crate::fuzz::Outcome;
use crate::module::{LoadFailure, Loaded};
use compile::Compiler;
use kernel::Kernel;

/// The processor's time that a compilation may take; more is reported.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The text of a file with kernels, each named by its seed.
pub fn text(kernels: &[Kernel]) -> String {
    let texts = kernels.iter().map(|kernel| print::kernel(kernel, &name(kernel)));
    std::iter::once(print::prelude()).chain(texts).collect::<Vec<String>>().join("\n")
}

/// The name of a kernel.
pub fn name(kernel: &Kernel) -> String {
    format!("k{}", kernel.seed)
}

/// The module of some PTX.
///
/// # Errors
/// It is not read, though a compiler made it.
pub fn load(ptx: &str) -> Result<Loaded, String> {
    Loaded::new(ptx).map_err(|failure| match failure {
        LoadFailure::Unsupported(why) | LoadFailure::Wrong(why) => why,
    })
}

/// How two back ends differ about a kernel that a module has, if they do.
pub fn difference(
    kernel: &Kernel,
    loaded: &Loaded,
    expected: &Outcome,
    backend: &dyn KernelBackend,
) -> Option<String> {
    let got = run::run(kernel, loaded, &name(kernel), backend);
    run::difference(kernel, expected, &got.outcome)
}

/// Kernels that a reduction looks at, at most: each costs a compilation.
const TRIES: usize = 600;

/// The smallest kernel about which the back ends differ too, its text, its PTX and how they differ. It is told of each that it looks at.
pub fn reduced(
    kernel: &Kernel,
    compiler: &Compiler,
    options: &[String],
    backend: &dyn KernelBackend,
    oracle: &dyn KernelBackend,
    mut on_try: impl FnMut(),
) -> (Kernel, String, String, String) {
    let mut compare = |kernel: &Kernel| {
        on_try();
        let text = text(std::slice::from_ref(kernel));
        let ptx = compiler.ptx(&text, options).ok()?;
        let loaded = load(&ptx).ok()?;
        let expected = run::run(kernel, &loaded, &name(kernel), oracle).outcome;
        // What the reference refuses says nothing about the other.
        matches!(expected, Outcome::Ran(_)).then_some(())?;
        let why = difference(kernel, &loaded, &expected, backend)?;
        Some((text, ptx, why))
    };
    let smallest = reduce::reduce(kernel, TRIES, |candidate| compare(candidate).is_some());
    let (text, ptx, why) = compare(&smallest).unwrap_or_default();
    (smallest, text, ptx, why)
}
