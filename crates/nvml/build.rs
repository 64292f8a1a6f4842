//! Generates the stubs from `cuda-abi/functions.in`.

use cuda_abi::functions::{Api, generate};
use std::path::PathBuf;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    generate(Api::Nvml, &out).expect("the build folder can be written");
    // functions.in is compiled into cuda-abi, whose change runs this script again.
    println!("cargo::rerun-if-changed=build.rs");
}
