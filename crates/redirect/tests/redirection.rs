//! Programs with something inside that looks like NVIDIA's runtime, run with the library as their auditor. The runtime
//! inside answers -1 to everything; the one beside the library says which it is.

use anywarp_redirect::image::{Image, Inside};
use anywarp_redirect::jump;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder like `dist/lib`, in which programs are built; it goes away with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(test));
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir_all(&folder.0).unwrap();
        // Cargo leaves the library beside the tests.
        let tests = std::env::current_exe().unwrap();
        fs::copy(tests.with_file_name("libanywarp_redirect.so"), folder.path("libanywarp_redirect.so"))
            .unwrap();
        for (version, minor) in [("11", ".0"), ("12", ""), ("13", "")] {
            let (name, ours) = (format!("libcudart.so.{version}{minor}"), format!("-DOURS={version}"));
            folder.build(&name, &["ours.c"], &["-shared", "-fPIC", &ours, &format!("-Wl,-soname,{name}")]);
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn build(&self, name: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-fno-builtin"]).args(sources.iter().map(|source| programs.join(source)));
        compiler.args(flags).arg("-o").arg(self.path(name)).args(["-lpthread", "-ldl"]);
        assert!(compiler.status().unwrap().success(), "{compiler:?}");
        self.path(name)
    }

    /// A program with a runtime inside.
    fn program(&self, inside: u32, flags: &[&str]) -> PathBuf {
        self.build("program", &["calls.c", "inside.c"], &[&[&*format!("-DINSIDE={inside}")], flags].concat())
    }

    /// A library with one inside, hidden as nvcc's linker scripts or flags hide it.
    fn library(&self, name: &str, inside: u32, flags: &[&str]) -> PathBuf {
        let script = self.path("script");
        fs::write(&script, "{ global: calls; local: *; };").unwrap();
        let (inside, script) =
            (format!("-DINSIDE={inside}"), format!("-Wl,--version-script={}", script.display()));
        let shared = ["-shared", "-fPIC", "-DLIBRARY", &inside, &script];
        self.build(name, &["calls.c", "inside.c"], &[&shared, flags].concat())
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("LD_AUDIT", self.path("libanywarp_redirect.so"))
            .env_remove("ANYWARP_LOG");
        command.env("LD_LIBRARY_PATH", &self.0).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn assert_output(output: &Output, expected: &str, message: &str) {
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(text, expected, "{errors}");
    assert!(errors.contains(message) && errors.is_empty() == message.is_empty(), "{errors}");
    assert!(output.status.success(), "{:?}", output.status);
}

/// The answers when everything leads to ours; what ours does not have is refused; neighbours and the program's own
/// functions are as they were.
const THIRTEEN: &str = "1301 1302 1303 1304 1305 1308 1309 1311 801 77 55\n";
const ELEVEN: &str = "1101 1102 1103 1104 1105 1108 1109 1111 801 77 55\n";
const TWELVE: &str = "1201 1202 1203 1204 1205 1208 1209 1211 801 77 55\n";
/// The answers of the runtime inside.
const INSIDE: &str = "-1 -1 -1 -1 -1 0 0 -1 -1 77 55\n";

#[test]
fn every_function_of_a_program_leads_to_ours() {
    let folder = Folder::new("program");
    for flags in
        [&["-fpie", "-pie"][..], &["-fno-pie", "-no-pie"], &["-Wl,-z,now"], &["-Wl,-z,lazy"], &["-rdynamic"]]
    {
        assert_output(&folder.run(&folder.program(13, flags), &[]), THIRTEEN, "");
    }
}

#[test]
fn the_version_inside_decides_which() {
    let folder = Folder::new("version");
    assert_output(&folder.run(&folder.program(12, &[]), &[]), TWELVE, "");
    assert_output(&folder.run(&folder.program(11, &[]), &[]), ELEVEN, "");
    assert_output(&folder.run(&folder.program(10, &[]), &[]), INSIDE, "a version before 11");
    fs::remove_file(folder.path("libcudart.so.12")).unwrap();
    assert_output(&folder.run(&folder.program(12, &[]), &[]), INSIDE, "libcudart.so.12: No such file");
}

#[test]
fn a_library_is_reached_before_its_constructors_run() {
    let folder = Folder::new("library");
    let thirteen = folder.library("libthirteen.so", 13, &[]);
    let twelve = folder.library("libtwelve.so", 12, &[]);
    let opens = folder.build("opens", &["opens.c"], &[]);
    let (thirteen, twelve) = (thirteen.to_str().unwrap(), twelve.to_str().unwrap());
    for mode in ["lazy", "now"] {
        // Two runtimes in one process, and a library that is opened again.
        let output = folder.run(&opens, &[mode, thirteen, twelve, thirteen]);
        assert_output(&output, &format!("{THIRTEEN}{TWELVE}{THIRTEEN}"), "");
    }
}

#[test]
fn children_are_reached_too() {
    let folder = Folder::new("children");
    let program = folder.program(13, &[]);
    let output = folder.run(Path::new("/bin/sh"), &["-c", &format!("{0}; (exec {0})", program.display())]);
    assert_output(&output, &format!("{THIRTEEN}{THIRTEEN}"), "");
}

#[test]
fn a_stripped_object_is_told() {
    let folder = Folder::new("stripped");
    let program = folder.program(13, &["-DKERNELS", "-s"]);
    assert_output(&folder.run(&program, &[]), INSIDE, "has NVIDIA's CUDA runtime inside but no symbol table");
    let library = folder.library("libstripped.so", 13, &["-DKERNELS", "-s"]);
    let opens = folder.build("opens", &["opens.c"], &[]);
    let output = folder.run(&opens, &["now", library.to_str().unwrap()]);
    assert_output(&output, INSIDE, "libstripped.so has NVIDIA's CUDA runtime inside but no symbol table");
}

#[test]
fn stripped_objects_that_load_their_kernels_themselves_are_left_alone() {
    let folder = Folder::new("themselves");
    let flags = ["-DKERNELS", "-DANOTHER_REGISTERS", "-s"];
    assert_output(&folder.run(&folder.program(13, &flags), &[]), INSIDE, "");
}

#[test]
fn a_function_without_room_leaves_all_as_it_was() {
    let folder = Folder::new("crowded");
    let output = folder.run(&folder.program(13, &["-DCROWDED"]), &[]);
    assert_output(&output, INSIDE, "cudaTwoBytes is too short");
}

/// A program that names the folder of its shared runtime itself. That one answers as one inside.
fn with_run_path(folder: &Folder, soname: &str) -> PathBuf {
    let theirs = folder.path("theirs");
    fs::create_dir_all(&theirs).unwrap();
    let flags = ["-DINSIDE=13", "-shared", "-fPIC", &format!("-Wl,-soname,{soname}")];
    let runtime = folder.build(&format!("theirs/{soname}"), &["inside.c"], &flags);
    let run_path = format!("-Wl,--disable-new-dtags,-rpath,{}", theirs.display());
    folder.build("asks", &["asks.c"], &[&run_path, runtime.to_str().unwrap()])
}

#[test]
fn a_shared_runtime_is_not_led_anywhere() {
    let folder = Folder::new("shared");
    let program = with_run_path(&folder, "libcudart.so.14");
    assert_output(&folder.run(&program, &[]), "-1 -1\n", "");
}

#[test]
fn our_shared_libraries_are_found_before_those_in_folders_of_the_program() {
    let folder = Folder::new("run_path");
    let program = with_run_path(&folder, "libcudart.so.13");
    assert_output(&folder.run(&program, &[]), "1301 1302\n", "");
    let alone = Command::new(&program).env("LD_LIBRARY_PATH", &folder.0).output().unwrap();
    assert_output(&alone, "-1 -1\n", "");
}

#[test]
fn our_own_static_runtime_is_left_alone() {
    let folder = Folder::new("ours");
    for flags in [&["-DKERNELS", "-DOURS_INSIDE"][..], &["-DKERNELS", "-DOURS_INSIDE", "-s"]] {
        assert_output(&folder.run(&folder.program(13, flags), &[]), INSIDE, "");
    }
}

#[test]
fn calls_that_are_passed_on_are_no_runtime() {
    let folder = Folder::new("passes_on");
    let program = folder.build("program", &["asks.c", "passes_on.c"], &[]);
    assert_output(&folder.run(&program, &[]), "1301 1302\n", "");
}

#[test]
fn a_compiler_that_is_asked_for_machine_code_hands_out_ptx() {
    let folder = Folder::new("compiler");
    let opens = folder.build("opens", &["opens.c"], &[]);
    let shared = ["-shared", "-fPIC"];
    let whole = folder.build("libnvrtc.so.13", &["compiler.c"], &shared);
    let part = folder.build("part.so", &["compiler.c"], &[&shared[..], &["-DPART"]].concat());
    let run = |library: &Path| folder.run(&opens, &["now", library.to_str().unwrap()]);
    assert_output(&run(&whole), "2 ptx\n", "");
    assert_output(&run(&part), "1 cubin\n", "");
}

#[test]
fn programs_without_a_runtime_open_none() {
    let folder = Folder::new("none");
    let program = folder.build("opens", &["opens.c"], &[]);
    fs::remove_file(folder.path("libcudart.so.13")).unwrap();
    assert_output(&folder.run(&program, &["now"]), "", "");
}

/// Whatever a file says, reading it ends with an answer, and a plan stays within the code.
#[test]
fn damaged_files_are_read_without_harm() {
    let folder = Folder::new("damaged");
    let whole = fs::read(folder.program(13, &["-DKERNELS"])).unwrap();
    assert_eq!(Image::parse(&whole).unwrap().inside(), Inside::Runtime(13));
    let mut random = 1_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    for length in (0..whole.len()).step_by(397) {
        read(&whole[..length]);
    }
    // The tables: headers at the beginning, section headers at the end, symbols before them.
    let tables = [0..1024, whole.len() - 2048..whole.len(), whole.len() / 2..whole.len()];
    for _ in 0..1000 {
        let mut damaged = whole.clone();
        for _ in 0..1 + next() % 4 {
            let table = &tables[next() % tables.len()];
            damaged[table.start + next() % table.len()] = [0, 0xFF, 0x7F, 0x80, next() as u8][next() % 5];
        }
        read(&damaged);
    }
}

fn read(bytes: &[u8]) {
    let Ok(image) = Image::parse(bytes) else { return };
    let _ = image.inside();
    let functions = image.runtime_functions(|_| true);
    let requests = functions.into_iter().map(|function| jump::Request { function, target: 0x1234 }).collect();
    for patch in jump::plan(&image, requests, 0x5555_0000_0000).unwrap_or_default() {
        assert!(image.code(patch.address, patch.bytes.len() as u64).is_some());
    }
}
