//! The machinery of `fuzz-kernels` and `fuzz-cuda`: it sees a difference, and reduces it.

use std::sync::Arc;

use kernel_abi::{
    BlockFrame, CompileError, CompileRequest, CompiledKernel, Fault, KernelBackend, KernelInfo,
};
use kernel_tests::fuzz::generate::Sources;
use kernel_tests::fuzz::program::{ENTRY, Program, Statement};
use kernel_tests::fuzz::{self, Outcome, cuda, generate, reduce};
use kernel_tests::module::Loaded;

/// The interpreter, but that each kernel with a `popc` in it leaves one bit wrong.
struct Liar(interp::Interpreter);

struct LyingKernel {
    honest: Arc<dyn CompiledKernel>,
    lies: bool,
}

impl KernelBackend for Liar {
    fn name(&self) -> &'static str {
        "liar"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        let honest = self.0.compile(request)?;
        Ok(Arc::new(LyingKernel { honest, lies: request.ptx.contains("popc.b32") }))
    }
}

impl CompiledKernel for LyingKernel {
    fn info(&self) -> &KernelInfo {
        self.honest.info()
    }

    unsafe fn run(&self, frame: &mut BlockFrame, first: u64, count: u64) -> Result<(), Fault> {
        // SAFETY: the caller's contract is ours.
        unsafe { self.honest.run(frame, first, count)? };
        if self.lies {
            // SAFETY: the second parameter is the output, which has some words.
            unsafe {
                let output = *(*frame.launch).params.cast::<*mut u64>().add(1);
                *output ^= 1;
            }
        }
        Ok(())
    }
}

#[test]
fn a_wrong_bit_is_found_and_its_cause_is_all_that_is_left() {
    let (honest, liar) = (interp::Interpreter::default(), Liar(interp::Interpreter::default()));
    let mut sources = Sources::default();
    let mut program: Program = (1..)
        .map(|seed| generate::program(seed, &mut sources))
        .find(|program| !program.body.is_empty() && !program.text().contains("popc"))
        .expect("most kernels have none");
    assert_eq!(fuzz::difference(&program, &liar, &honest), None);
    let cause = Statement::Plain("popc.b32 %r2, %r3;".into());
    let body = vec![Statement::Loop { count: "%r0".into(), body: vec![cause.clone()] }];
    program.body.push(Statement::If { condition: "%p0".into(), then: body, otherwise: Vec::new() });
    let why = fuzz::difference(&program, &liar, &honest).expect("one bit differs");
    assert!(why.starts_with("word 0 that all threads share"), "{why}");
    let reduced = reduce::reduce(&program, |candidate| fuzz::difference(candidate, &liar, &honest).is_some());
    assert_eq!(reduced.body, vec![cause]);
    assert!(reduced.functions.iter().all(Vec::is_empty));
}

#[test]
fn kernels_run_in_the_interpreter_and_are_the_same_each_time() {
    let honest = interp::Interpreter::default();
    for seed in 1..30 {
        let program = generate::program(seed, &mut Sources::default());
        assert_eq!(program, generate::program(seed, &mut Sources::default()), "kernel {seed}");
        let outcome = fuzz::run(&program, &honest);
        assert!(matches!(outcome, Outcome::Ran(_)), "kernel {seed}: {outcome:?}\n{}", program.text());
    }
}

#[test]
fn some_kernels_run_as_gangs() {
    let gangs = kernel_tests::backend::open("gangs").expect("there is one everywhere");
    let is_gang = |seed: &u64| {
        let program = generate::program(*seed, &mut Sources::default());
        let loaded = program.plain.then(|| Loaded::new(&program.text()).expect("it loads"));
        loaded.is_some_and(|loaded| {
            let kernel = loaded.compile(&*gangs, ENTRY, program.grid).expect("it compiles");
            kernel.info().gang > 1
        })
    };
    let found = (1..36).filter(is_gang).count();
    assert!(found >= 2, "{found} of 35 kernels");
}

/// Kernels in CUDA C++ of fixed numbers.
const CUDA_KERNELS: std::ops::Range<u64> = 1..13;

#[test]
fn kernels_in_cuda_are_the_same_each_time_and_agree_in_quick_and_full_code() {
    let kernels: Vec<_> = CUDA_KERNELS.map(cuda::make::kernel).collect();
    let again: Vec<_> = CUDA_KERNELS.map(cuda::make::kernel).collect();
    assert_eq!(cuda::text(&kernels), cuda::text(&again));
    let compiler = match cuda::compile::Compiler::nvcc() {
        Ok(compiler) => compiler,
        Err(why) => return println!("skipped: {why}"),
    };
    let ptx = compiler.ptx(&cuda::text(&kernels), &[]).expect("the kernels are right");
    let loaded = cuda::load(&ptx).expect("what the compiler makes is read");
    let best = kernel_tests::backend::names().pop().expect("there are back ends");
    let open = |name: &str| kernel_tests::backend::open(name).expect("it opens");
    let (oracle, backends) = (open("interp"), [open("quick"), open(&best)]);
    for kernel in &kernels {
        let expected = cuda::run::run(kernel, &loaded, &cuda::name(kernel), &*oracle).outcome;
        assert!(matches!(expected, Outcome::Ran(_)), "kernel {}: {expected:?}", kernel.seed);
        for backend in &backends {
            let difference = cuda::difference(kernel, &loaded, &expected, &**backend);
            assert_eq!(difference, None, "kernel {}, {}", kernel.seed, backend.name());
        }
    }
}
