//! Runs each test in a process of its own, several at a time.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::FromRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::answers::{DIFFERENCE, SKIPPED};
use crate::library::{self, Choice, Maker};
use crate::{Test, tests};

const USAGE: &str = "\
Tests libcuda.so.1 and libcudart.so.13 through their C interface.

    conformance [OPTIONS] [PART OF A TEST'S NAME...]

    --lib FOLDER          both libraries are in this folder (else the loader finds them)
    --cuda FILE           the Driver API
    --cudart FILE         the Runtime API
    --cudart12 FILE       the Runtime API of CUDA 12
    --nvml FILE           the management library
    --driver MAKER        anywarp or nvidia (else the library's file tells)
    --jobs N              so many tests at a time (else one for each core, 8 at most)
    --timeout SECONDS     a test that takes longer has failed (else 60)
    --list                the tests' names
    --differences         run the tests and print where our answers and NVIDIA's differ, with the reasons
    --verbose             a line for passed tests too
";

#[derive(Default)]
struct Options {
    choice: Choice,
    maker: Option<Maker>,
    jobs: Option<usize>,
    timeout: Option<u64>,
    list: bool,
    differences: bool,
    verbose: bool,
    run: Option<String>,
    filters: Vec<String>,
}

impl Options {
    fn parse(arguments: Vec<OsString>) -> Result<Options, String> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let option = argument.to_string_lossy().into_owned();
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            let text = |value: OsString| value.to_string_lossy().into_owned();
            match &*option {
                "--lib" => {
                    let folder = PathBuf::from(value()?);
                    options.choice.driver.get_or_insert(folder.join("libcuda.so.1"));
                    options.choice.runtime.get_or_insert(folder.join("libcudart.so.13"));
                    options.choice.runtime12.get_or_insert(folder.join("libcudart.so.12"));
                    options.choice.runtime11.get_or_insert(folder.join("libcudart.so.11.0"));
                    options.choice.nvml.get_or_insert(folder.join("libnvidia-ml.so.1"));
                }
                "--cuda" => options.choice.driver = Some(value()?.into()),
                "--cudart" => options.choice.runtime = Some(value()?.into()),
                "--cudart12" => options.choice.runtime12 = Some(value()?.into()),
                "--cudart11" => options.choice.runtime11 = Some(value()?.into()),
                "--nvml" => options.choice.nvml = Some(value()?.into()),
                "--driver" => {
                    let name = text(value()?);
                    let maker =
                        Maker::from_name(&name).ok_or_else(|| format!("--driver {name}: no such maker"))?;
                    options.maker = Some(maker);
                }
                "--jobs" => options.jobs = Some(number(&text(value()?))?.max(1)),
                "--timeout" => options.timeout = Some(number(&text(value()?))? as u64),
                "--list" => options.list = true,
                "--differences" => options.differences = true,
                "--verbose" => options.verbose = true,
                "--run" => options.run = Some(text(value()?)),
                "--help" => return Err(USAGE.to_owned()),
                _ if option.starts_with('-') => return Err(format!("{option}: no such option\n\n{USAGE}")),
                _ => options.filters.push(option),
            }
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text}: not a number"))
}

/// What the program does; `arguments` without its own name.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(name) = &options.run {
        return run_here(name, &options);
    }
    let chosen: Vec<Test> = tests().filter(|test| options.chooses(test.name)).collect();
    if options.list {
        chosen.iter().for_each(|test| println!("{}", test.name));
        return ExitCode::SUCCESS;
    }
    if chosen.is_empty() {
        eprintln!("no test has such a name");
        return ExitCode::FAILURE;
    }
    match library::describe(&options.choice, chosen.iter().any(|test| test.name.starts_with("runtime::"))) {
        Ok(libraries) => println!("{libraries}"),
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::FAILURE;
        }
    }
    run_all(&chosen, &options)
}

impl Options {
    fn chooses(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(&**filter))
    }
}

/// The child's part: one test, in this process. A panic ends it with the code 101.
fn run_here(name: &str, options: &Options) -> ExitCode {
    let Some(test) = tests().find(|test| test.name == name) else {
        eprintln!("{name}: no such test");
        return ExitCode::FAILURE;
    };
    // SAFETY: sets a limit of this process; a crash that a test is about leaves no core file.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) };
    library::choose(options.choice.clone(), options.maker);
    (test.body)();
    ExitCode::SUCCESS
}

/// How a test ended.
enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

struct Report {
    outcome: Outcome,
    differences: Vec<String>,
}

fn run_all(tests: &[Test], options: &Options) -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let jobs = options.jobs.unwrap_or(cores.min(8));
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = run_apart(test, options);
                    report.print(test, options);
                    reports.lock().expect("no test panics in this process").push((test.name, report));
                }
            });
        }
    });
    let mut reports = reports.into_inner().expect("no test panics in this process");
    reports.sort_by_key(|(name, _)| *name);
    if options.differences {
        print_differences(&reports);
    }
    let count =
        |wanted: fn(&Outcome) -> bool| reports.iter().filter(|(_, report)| wanted(&report.outcome)).count();
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    if skipped > 0 {
        println!("{skipped} skipped");
    }
    println!("{} passed, {failed} failed", reports.len() - failed - skipped);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Report {
    fn print(&self, test: &Test, options: &Options) {
        match &self.outcome {
            Outcome::Failed(why) => println!("FAIL {}: {why}", test.name),
            Outcome::Skipped(why) => println!("skip {}: {why}", test.name),
            Outcome::Passed if options.verbose => println!("ok   {}", test.name),
            Outcome::Passed => {}
        }
    }
}

fn print_differences(reports: &[(&str, Report)]) {
    for (name, report) in reports {
        if !report.differences.is_empty() {
            println!("{name}");
            report.differences.iter().for_each(|difference| println!("    {difference}"));
        }
    }
}

/// One test in a process of its own.
fn run_apart(test: &Test, options: &Options) -> Report {
    match child(test, options) {
        Ok((ending, output)) => judge(ending, &output),
        Err(error) => {
            Report { outcome: Outcome::Failed(format!("not run: {error}")), differences: Vec::new() }
        }
    }
}

/// How a child ended (`None`: it was stopped for taking too long) and what it wrote.
fn child(test: &Test, options: &Options) -> std::io::Result<(Option<ExitStatus>, String)> {
    let mut output = anonymous_file()?;
    let mut command = Command::new(std::env::current_exe()?);
    let Choice { driver, runtime, runtime12, runtime11, nvml } = &options.choice;
    for (option, path) in [
        ("--cuda", driver),
        ("--cudart", runtime),
        ("--cudart12", runtime12),
        ("--cudart11", runtime11),
        ("--nvml", nvml),
    ] {
        if let Some(path) = path {
            command.arg(option).arg(path);
        }
    }
    if let Some(maker) = options.maker {
        command.args(["--driver", maker.name()]);
    }
    command.args(["--run", test.name]).env("RUST_BACKTRACE", "0");
    let folder = PrivateFolder::new(test);
    command.env("ANYWARP_RUNTIME_DIR", &folder.0);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = command.spawn()?;
    let end = Instant::now() + Duration::from_secs(options.timeout.unwrap_or(60));
    let ending = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() > end => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut bytes = Vec::new();
    output.seek(SeekFrom::Start(0))?;
    output.read_to_end(&mut bytes)?;
    Ok((ending, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Where processes tell each other what they use: of one test, so that free memory is not what other tests left. The library
/// makes the folder if it needs it.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn new(test: &Test) -> PrivateFolder {
        let name = format!("anywarp-{}-{}", std::process::id(), test.name.replace("::", "-"));
        PrivateFolder(std::env::temp_dir().join(name))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // It was not made, or what is left of it is small and of no more use.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file for a child's output. A pipe would stay open as long as any process that the test started.
fn anonymous_file() -> std::io::Result<File> {
    // SAFETY: makes a file, whose descriptor nobody else has.
    let descriptor = unsafe { libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just made, and owned by nobody else.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

fn judge(ending: Option<ExitStatus>, output: &str) -> Report {
    let marked =
        |mark: &str| output.lines().filter_map(|line| Some(line.split_once(mark)?.1.to_owned())).collect();
    let differences: Vec<String> = marked(DIFFERENCE);
    let skipped: Vec<String> = marked(SKIPPED);
    let what = match ending {
        None => Some("takes too long".to_owned()),
        Some(status) if status.success() => None,
        Some(status) => match status.signal() {
            Some(signal) => Some(format!("ended by signal {signal}")),
            None => Some(String::new()),
        },
    };
    let outcome = match (what, skipped.first()) {
        (None, None) => Outcome::Passed,
        (None, Some(why)) => Outcome::Skipped(why.clone()),
        (Some(what), _) => {
            let said = output
                .lines()
                .filter(|line| !line.contains(DIFFERENCE))
                .filter(|line| !line.trim().is_empty());
            let said: Vec<_> = said.map(str::trim).filter(|line| !line.starts_with("note: ")).collect();
            Outcome::Failed(
                [what].into_iter().chain(said.into_iter().map(str::to_owned)).collect::<Vec<_>>().join(" | "),
            )
        }
    };
    Report { outcome, differences }
}

#[cfg(test)]
mod tests_of_the_runner {
    use super::*;

    fn ended(status: i32, output: &str) -> Outcome {
        judge(Some(ExitStatus::from_raw(status)), output).outcome
    }

    #[test]
    fn a_signal_a_panic_and_a_hang_are_failures() {
        assert!(matches!(ended(0, ""), Outcome::Passed));
        assert!(matches!(ended(11, ""), Outcome::Failed(why) if why == "ended by signal 11"));
        assert!(
            matches!(ended(101 << 8, "left: 1\nright: 2"), Outcome::Failed(why) if why.contains("right: 2"))
        );
        assert!(matches!(judge(None, "").outcome, Outcome::Failed(_)));
    }

    #[test]
    fn what_a_test_says_is_read_from_its_output() {
        let report =
            judge(Some(ExitStatus::from_raw(0)), "x\n::difference:: ours 1\n::skipped:: one device\n");
        assert_eq!(report.differences, ["ours 1"]);
        assert!(matches!(report.outcome, Outcome::Skipped(why) if why == "one device"));
    }

    #[test]
    fn every_test_has_a_name_of_its_own() {
        let mut names: Vec<_> = tests().map(|test| test.name).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
