//! Links LLVM.
//!
//! Development builds link the distribution's shared library: a relink takes a second. Release builds link LLVM
//! statically, so that the compiler library depends on nothing and, since a Rust cdylib exports only its own
//! `#[no_mangle]` symbols, does not meet another LLVM in the same process.
//!
//! `LLVM_CONFIG` names another `llvm-config`; `ANYWARP_LLVM_LINK=static|dynamic` overrides the choice by profile.

use std::env;
use std::path::Path;
use std::process::Command;

/// What the static link pulls in. `llvm-config` adds what these need, in link order.
const COMPONENTS: [&str; 3] = ["x86codegen", "x86asmparser", "passes"];

const LLVM_MAJOR: &str = "22";

fn main() {
    println!("cargo:rerun-if-env-changed=LLVM_CONFIG");
    println!("cargo:rerun-if-env-changed=ANYWARP_LLVM_LINK");
    println!("cargo:rerun-if-changed=build.rs");
    let llvm = LlvmConfig::find();
    println!("cargo:rustc-link-search=native={}", llvm.query(&["--libdir"]));
    if link_statically() {
        link_static(&llvm)
    } else {
        println!("cargo:rustc-link-lib=dylib=LLVM-{LLVM_MAJOR}")
    }
}

fn link_statically() -> bool {
    match env::var("ANYWARP_LLVM_LINK").as_deref() {
        Ok("static") => true,
        Ok("dynamic") => false,
        Ok(other) => panic!("ANYWARP_LLVM_LINK is `{other}`: expected `static` or `dynamic`"),
        Err(_) => env::var("PROFILE").as_deref() == Ok("release"),
    }
}

fn link_static(llvm: &LlvmConfig) {
    let libraries = llvm.query(&[&["--link-static", "--libnames"], &COMPONENTS[..]].concat());
    for library in libraries.split_whitespace() {
        let name = library.strip_prefix("lib").and_then(|name| name.strip_suffix(".a"));
        println!("cargo:rustc-link-lib=static={}", name.expect("llvm-config names archives lib*.a"));
    }
    // LLVM's archives need these three; their shared versions would bring dependencies that a user may lack.
    for library in ["stdc++", "zstd", "z"] {
        let archive = output(Command::new("g++").arg(format!("-print-file-name=lib{library}.a")));
        let directory = Path::new(&archive).parent().filter(|directory| directory.is_absolute());
        let directory = directory.unwrap_or_else(|| panic!("lib{library}.a is not installed"));
        println!("cargo:rustc-link-search=native={}", directory.display());
        println!("cargo:rustc-link-lib=static={library}");
    }
}

struct LlvmConfig(String);

impl LlvmConfig {
    fn find() -> Self {
        let named = env::var("LLVM_CONFIG").ok();
        let candidates = named.map(|path| vec![path]).unwrap_or_else(|| {
            vec![
                format!("/usr/lib/llvm-{LLVM_MAJOR}/bin/llvm-config"),
                format!("llvm-config-{LLVM_MAJOR}"),
                "llvm-config".into(),
            ]
        });
        for candidate in &candidates {
            let Ok(version) = Command::new(candidate).arg("--version").output() else { continue };
            if version.stdout.starts_with(format!("{LLVM_MAJOR}.").as_bytes()) {
                return Self(candidate.clone());
            }
        }
        panic!("no llvm-config of LLVM {LLVM_MAJOR} among {candidates:?}; set LLVM_CONFIG");
    }

    fn query(&self, arguments: &[&str]) -> String {
        output(Command::new(&self.0).args(arguments))
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a path or a list of names").trim().to_owned()
}
