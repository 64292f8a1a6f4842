//! The command as a user meets it: the command is copied into a folder laid out like `dist/`.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder that goes away with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_anywarp"), path.join("bin/anywarp")).unwrap();
        Self(path)
    }

    /// With a file where the driver library lies.
    fn installed(test: &str) -> Self {
        let folder = Self::new(test);
        fs::create_dir_all(folder.0.join("lib")).unwrap();
        fs::write(folder.0.join("lib/libcuda.so.1"), "").unwrap();
        folder
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.0.join("bin/anywarp"));
        command.arg("run").args(arguments).env_remove("LD_LIBRARY_PATH").output().unwrap()
    }

    /// A program compiled from C.
    fn program(&self, source: &str, flags: &[&str]) -> String {
        let (text, binary) = (self.0.join("program.c"), self.0.join("program"));
        fs::write(&text, source).unwrap();
        let mut compiler = Command::new("cc");
        assert!(compiler.arg(&text).args(flags).arg("-o").arg(&binary).status().unwrap().success());
        binary.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_exit_status_is_the_programs() {
    let folder = Folder::installed("exit_status");
    assert_eq!(folder.run(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert!(folder.run(&["true"]).status.success());
}

#[test]
fn a_signal_ends_the_command_too() {
    let folder = Folder::installed("signal");
    assert_eq!(folder.run(&["sh", "-c", "kill -TERM $$"]).status.signal(), Some(15));
}

#[test]
fn the_program_gets_its_arguments_and_our_libraries() {
    let folder = Folder::installed("arguments");
    let output = folder.run(&["sh", "-c", "echo $LD_LIBRARY_PATH; echo $2-$1", "sh", "a b", "--version"]);
    let library = fs::canonicalize(folder.0.join("lib")).unwrap();
    let expected = format!("{}\n--version-a b\n", library.display());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn what_cannot_run_is_named() {
    let folder = Folder::installed("not_found");
    let output = folder.run(&["no-such-program"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(stderr(&output).contains("no-such-program"), "{}", stderr(&output));
    let output = folder.run(&["/"]);
    assert_eq!(output.status.code(), Some(126));
}

#[test]
fn without_libraries_nothing_runs() {
    let folder = Folder::new("no_libraries");
    let output = folder.run(&["true"]);
    assert_eq!(output.status.code(), Some(126));
    assert!(stderr(&output).contains("libcuda.so.1"), "{}", stderr(&output));
}

#[test]
fn a_static_program_with_kernels_is_told() {
    let folder = Folder::installed("static_program");
    let kernels = "__attribute__((section(\".nv_fatbin\"))) int kernels = 1;\n";
    let inside = format!("{kernels} int main(void) {{ return 3; }}");
    let output = folder.run(&[&folder.program(&inside, &["-static"])]);
    assert!(stderr(&output).contains("-cudart shared"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(3), "the program runs nevertheless");
    let dynamic = folder.run(&[&folder.program(&inside, &[])]);
    assert_eq!(stderr(&dynamic), "");
}

#[test]
fn a_wrong_command_line_shows_the_usage() {
    let folder = Folder::installed("usage");
    let output = folder.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("usage: anywarp run"));
}

#[test]
fn info_names_the_devices_and_the_places() {
    let folder = Folder::installed("info");
    let cache = folder.0.join("cache");
    fs::create_dir_all(cache.join("anywarp")).unwrap();
    fs::write(cache.join("anywarp/one"), "x").unwrap();
    let mut command = Command::new(folder.0.join("bin/anywarp"));
    command
        .arg("info")
        .env("CUDA_CACHE_PATH", &cache)
        .env("ANYWARP_DEVICES", "2")
        .env("ANYWARP_BACKEND", "interp");
    command.env_remove("CUDA_VISIBLE_DEVICES").env_remove("CUDA_CACHE_DISABLE");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let library = fs::canonicalize(folder.0.join("lib")).unwrap();
    for wanted in ["device 0", "device 1", "compute capability", "(1 kernels", library.to_str().unwrap()] {
        assert!(text.contains(wanted), "no {wanted} in:\n{text}");
    }
    assert!(text.contains("libcudart.so.13 is missing"), "{text}");
}

/// `anywarp smi` of a machine with two devices of its own memory, where nobody else uses any.
fn smi(test: &str, arguments: &[&str]) -> Output {
    let folder = Folder::installed(test);
    let mut command = Command::new(folder.0.join("bin/anywarp"));
    command.arg("smi").args(arguments).env("ANYWARP_DEVICES", "2").env("ANYWARP_MEMORY", "512M");
    command.env("ANYWARP_RUNTIME_DIR", folder.0.join("run")).output().unwrap()
}

#[test]
fn smi_lists_devices() {
    let text = String::from_utf8(smi("smi_list", &["-L"]).stdout).unwrap();
    let [first, second] = text.lines().collect::<Vec<_>>()[..] else { panic!("two devices: {text}") };
    assert!(first.starts_with("GPU 0: Anywarp on "), "{first}");
    assert!(second.ends_with("(UUID: GPU-416e7977-6172-7020-6465-766963650001)"), "{second}");
}

#[test]
fn smi_answers_queries_as_scripts_read_them() {
    let ask = |fields: &str, format: &str| {
        let output = smi("smi_query", &[&format!("--query-gpu={fields}"), &format!("--format={format}")]);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask("index,memory.total", "csv,noheader,nounits"), "0, 512\n1, 512\n");
    let text = ask("index, memory.used,utilization.gpu", "csv");
    assert_eq!(text, "index, memory.used [MiB], utilization.gpu [%]\n0, 0 MiB, 0 %\n1, 0 MiB, 0 %\n");
    assert_eq!(ask("compute_cap,temperature.gpu", "csv,noheader"), "9.0, [N/A]\n9.0, [N/A]\n");
    let output = smi("smi_one", &["--query-gpu=index", "--format=csv,noheader", "-i", "1"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "1\n");
    let output = smi("smi_apps", &["--query-compute-apps=pid,used_memory", "--format=csv"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "pid, used_gpu_memory [MiB]\n");
}

#[test]
fn smi_shows_a_table_and_all_it_knows() {
    let text = String::from_utf8(smi("smi_table", &[]).stdout).unwrap();
    for wanted in ["CUDA Version: 13.0", "0MiB / 512MiB", "00000000:02:00.0", "No running processes found"] {
        assert!(text.contains(wanted), "no {wanted} in:\n{text}");
    }
    let text = String::from_utf8(smi("smi_all", &["-q"]).stdout).unwrap();
    assert_eq!(text.matches("compute_cap").count(), 2, "{text}");
    let text = String::from_utf8(smi("smi_fields", &["--help-query-gpu"]).stdout).unwrap();
    assert!(text.contains("memory.free"), "{text}");
}

#[test]
fn smi_refuses_what_it_does_not_know() {
    for (arguments, reason) in [
        (&["--query-gpu=index"][..], "--format=csv"),
        (&["--query-gpu=warp.speed", "--format=csv"], "warp.speed"),
        (&["-i", "7"], "no device 7"),
        (&["--reset"], "no such option"),
    ] {
        let output = smi("smi_refusals", arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

#[test]
fn an_answer_that_nobody_reads_is_no_failure_and_one_that_cannot_be_written_is() {
    for arguments in [&["info"][..], &["smi"], &["smi", "-q"], &["help"], &["version"]] {
        let start = |output: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_anywarp"));
            command.args(arguments).stdout(output).stderr(Stdio::piped());
            command.output().unwrap()
        };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // What devices say of themselves, such as that there is no compiler, is none of the command's.
        let complaint = |output: &Output| {
            let text = stderr(output);
            text.lines().find(|line| line.contains("panicked") || line.contains("output")).map(String::from)
        };
        let unread = start(writer.into());
        assert_eq!((unread.status.code(), complaint(&unread)), (Some(0), None), "{arguments:?}");
        let full = start(fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into());
        assert_eq!(full.status.code(), Some(1), "{arguments:?}");
        let complaint = complaint(&full).unwrap_or_default();
        assert!(complaint.starts_with("anywarp: the output cannot be written"), "{arguments:?}: {complaint}");
    }
}
