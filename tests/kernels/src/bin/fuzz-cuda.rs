//! `fuzz-cuda [--seed N] [--count N] [--seconds N] [--backend NAME]... [--compiler nvcc|clang] [--option TEXT]... [--keep FOLDER]
//! [--show N]`: compiles random kernels in CUDA C++ and runs them on the back ends, two of all for each if none is named, and on the
//! interpreter, which must agree.
//!
//! A difference is reduced and printed, or kept in a folder as CUDA C++ and PTX; `--show` prints the kernel of a number. Compilations that
//! take long are differences too. What faults on every back end is the compiler's: clang 22 leaves arrays where an index is the lower half
//! of 64 bits and its upper half is not zero. Kernels run in a process of their own, a few in each: one that dies, or does not end, is reported.
//! The last line is `N passed, M failed`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use kernel_abi::KernelBackend;
use kernel_tests::backend;
use kernel_tests::fuzz::cuda::{self, compile::Compiler, kernel::Kernel, make, run};
use kernel_tests::fuzz::{Outcome, Random};

/// Kernels of a file, and of a process.
const BATCH: u64 = 8;
/// What a kernel may take, all its compilations and runs.
const PATIENCE: Duration = Duration::from_secs(240);
/// Exit status of a batch in which something differed.
const DIFFERED: i32 = 1;

fn main() {
    match Options::read().and_then(|options| options.run()) {
        Ok(true) => {}
        Ok(false) => std::process::exit(DIFFERED),
        Err(message) => {
            eprintln!("fuzz-cuda: {message}");
            std::process::exit(2);
        }
    }
}

struct Options {
    seed: u64,
    count: u64,
    seconds: u64,
    backends: Vec<String>,
    compiler: String,
    options: Vec<String>,
    keep: Option<PathBuf>,
    show: Option<u64>,
    /// Where the process of a batch writes which kernel it is at.
    batch: Option<PathBuf>,
}

impl Options {
    fn read() -> Result<Options, String> {
        let mut options = Options {
            seed: 1,
            count: u64::MAX,
            seconds: u64::MAX,
            backends: Vec::new(),
            compiler: "nvcc".into(),
            options: Vec::new(),
            keep: None,
            show: None,
            batch: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let value = args.next().ok_or(format!("{arg} wants a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("'{value}' is no number"));
            match arg.as_str() {
                "--seed" => options.seed = number()?,
                "--count" => options.count = number()?,
                "--seconds" => options.seconds = number()?,
                "--backend" => options.backends.push(value),
                "--compiler" => options.compiler = value,
                "--option" => options.options.push(value),
                "--keep" => options.keep = Some(value.into()),
                "--show" => options.show = Some(number()?),
                "--batch" => options.batch = Some(value.into()),
                _ => return Err(format!("what is {arg}?")),
            }
        }
        Ok(options)
    }

    fn run(&self) -> Result<bool, String> {
        if let Some(seed) = self.show {
            let kernel = make::kernel(seed);
            println!(
                "// {:?}, {:?}\n{}",
                kernel.grid,
                kernel.scalars,
                cuda::text(std::slice::from_ref(&kernel))
            );
            return Ok(true);
        }
        if let Some(folder) = &self.keep {
            std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        match &self.batch {
            Some(progress) => self.run_batch(progress),
            None => self.run_batches(),
        }
    }

    /// All batches, in processes of their own.
    fn run_batches(&self) -> Result<bool, String> {
        let start = Instant::now();
        let (mut passed, mut failed) = (0u64, 0u64);
        let progress = std::env::temp_dir().join(format!("fuzz-cuda-progress-{}", std::process::id()));
        let (mut seed, end) = (self.seed, self.seed.saturating_add(self.count));
        while seed < end && (self.seconds == u64::MAX || start.elapsed() < Duration::from_secs(self.seconds))
        {
            let last = (seed + BATCH - seed % BATCH).min(end);
            let _ = std::fs::remove_file(&progress);
            let mut batch = self.start_batch(seed, last - seed, &progress)?;
            let ended = wait(&mut batch, &progress)?;
            let (at, wrong, _) = read_progress(&progress).unwrap_or((seed, 0, 0));
            failed += wrong;
            seed = match ended {
                Some(0 | DIFFERED) => {
                    passed += (last - seed).saturating_sub(wrong);
                    last
                }
                Some(2) => return Err("the batch could not be run".into()),
                how => {
                    let what = if how.is_some() { "the process died" } else { "no end" };
                    println!("kernel {at}: {what}");
                    self.keep(at, ".cu", &cuda::text(&[make::kernel(at)]))?;
                    passed += (at - seed).saturating_sub(wrong);
                    failed += 1;
                    at + 1
                }
            };
        }
        let _ = std::fs::remove_file(&progress);
        println!("{passed} passed, {failed} failed");
        Ok(failed == 0)
    }

    fn start_batch(&self, seed: u64, count: u64, progress: &Path) -> Result<Child, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
        let mut command = Command::new(program);
        command.args(["--seed", &seed.to_string(), "--count", &count.to_string()]);
        command.args(["--compiler", &self.compiler]).arg("--batch").arg(progress);
        for name in &self.backends {
            command.args(["--backend", name]);
        }
        for option in &self.options {
            command.args(["--option", option]);
        }
        if let Some(folder) = &self.keep {
            command.arg("--keep").arg(folder);
        }
        command.spawn().map_err(|error| format!("a batch: {error}"))
    }

    /// The kernels of one file, in this process.
    fn run_batch(&self, progress: &Path) -> Result<bool, String> {
        let compiler = match self.compiler.as_str() {
            "nvcc" => Compiler::nvcc()?,
            "clang" => Compiler::clang()?,
            other => return Err(format!("there is no compiler '{other}'")),
        };
        let names = if self.backends.is_empty() {
            backend::names().into_iter().filter(|name| name != "interp").collect()
        } else {
            self.backends.clone()
        };
        let oracle = backend::open("interp")?;
        let backends =
            names.iter().map(|name| Ok((name, backend::open(name)?))).collect::<Result<Vec<_>, String>>()?;
        let kernels: Vec<Kernel> = (self.seed..self.seed + self.count).map(make::kernel).collect();
        let ptx = compiler.ptx(&cuda::text(&kernels), &self.options)?;
        let loaded = cuda::load(&ptx)?;
        let mut failed = 0u64;
        for kernel in &kernels {
            let seed = kernel.seed;
            std::fs::write(progress, format!("{seed} {failed}"))
                .map_err(|error| format!("{}: {error}", progress.display()))?;
            let expected = run::run(kernel, &loaded, &cuda::name(kernel), &*oracle).outcome;
            if let Outcome::Refused(why) | Outcome::Failed(why) = &expected {
                let (_, other) = &backends[0];
                let got = run::run(kernel, &loaded, &cuda::name(kernel), &**other).outcome;
                let alone = if matches!(got, Outcome::Ran(_)) { " alone" } else { ", and not only it" };
                println!("kernel {seed}: the reference{alone}: {why}");
                failed += 1;
                continue;
            }
            let mut random = Random::new(!seed);
            let first = random.below(backends.len());
            let second = (first + 1 + random.below(backends.len().max(2) - 1)) % backends.len();
            let mut chosen = vec![first, second];
            chosen.dedup();
            for (name, backend) in chosen.into_iter().map(|index| &backends[index]) {
                let got = run::run(kernel, &loaded, &cuda::name(kernel), &**backend);
                if got.compiled_in > cuda::PATIENCE {
                    println!("kernel {seed}, {name}: compiled in {:?}", got.compiled_in);
                    self.keep(seed, ".cu", &cuda::text(std::slice::from_ref(kernel)))?;
                    failed += 1;
                    break;
                }
                let Some(why) = run::difference(kernel, &expected, &got.outcome) else { continue };
                println!("kernel {seed}, {name}, block {:?}: {why}", kernel.grid.block);
                self.tell(kernel, name, &why, &compiler, (&**backend, &*oracle), (progress, failed))?;
                failed += 1;
                break;
            }
        }
        std::fs::write(progress, format!("{} {failed}", self.seed + self.count))
            .map_err(|error| format!("{}: {error}", progress.display()))?;
        Ok(failed == 0)
    }

    /// Writes what there is about a kernel into the folder, if there is one.
    fn keep(&self, seed: u64, suffix: &str, text: &str) -> Result<(), String> {
        let Some(folder) = &self.keep else { return Ok(()) };
        let path = folder.join(format!("kernel_{seed}{suffix}"));
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Prints or keeps a kernel that differs, and what remains of it.
    fn tell(
        &self,
        kernel: &Kernel,
        name: &str,
        why: &str,
        compiler: &Compiler,
        (backend, oracle): (&dyn KernelBackend, &dyn KernelBackend),
        (progress, failed): (&Path, u64),
    ) -> Result<(), String> {
        let note = |kernel: &Kernel, why: &str, text: &str| {
            let (seed, grid, scalars) = (kernel.seed, kernel.grid, kernel.scalars);
            format!(
                "// Found by fuzz-cuda, number {seed}, back end {name}: {why}\n// {grid:?}, {scalars:?}\n{text}"
            )
        };
        let whole = cuda::text(std::slice::from_ref(kernel));
        self.keep(kernel.seed, ".cu", &note(kernel, why, &whole))?;
        let mut tries = 0;
        let (smallest, text, ptx, why) =
            cuda::reduced(kernel, compiler, &self.options, backend, oracle, || {
                tries += 1;
                // Should it not be written, this process is only thought to have come to no end.
                let _ = std::fs::write(progress, format!("{} {failed} {tries}", kernel.seed));
            });
        if why.is_empty() {
            println!("  it is not the same with a kernel alone in its file");
            return Ok(());
        }
        self.keep(kernel.seed, "_reduced.cu", &note(&smallest, &why, &text))?;
        self.keep(kernel.seed, "_reduced.ptx", &ptx)?;
        println!("  {why}");
        if self.keep.is_none() {
            println!("{}", note(&smallest, &why, &text));
        }
        Ok(())
    }
}

/// Waits for a batch to end, while it comes to other kernels every now and then: its exit status, -1 if it died.
fn wait(batch: &mut Child, progress: &Path) -> Result<Option<i32>, String> {
    let failed = |error: std::io::Error| format!("a batch: {error}");
    let (mut last, mut since) = (None, Instant::now());
    loop {
        if let Some(status) = batch.try_wait().map_err(failed)? {
            return Ok(Some(status.code().unwrap_or(-1)));
        }
        let at = read_progress(progress);
        if at != last {
            (last, since) = (at, Instant::now());
        }
        if since.elapsed() > PATIENCE {
            batch.kill().map_err(failed)?;
            batch.wait().map_err(failed)?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Which kernel a batch is at, how many differed before, and how many smaller ones of it have been looked at.
fn read_progress(path: &Path) -> Option<(u64, u64, u64)> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut numbers = text.split(' ').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)))
}
