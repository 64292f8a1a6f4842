//! Where LLVM is linked in, its global objects are never destroyed: a thread may be compiling when the process exits, and whoever exits need not wait
//! for it. LLVM in a library of its own is destroyed as usual: see `exit.rs`.

fn main() {
    println!("cargo:rerun-if-env-changed=ANYWARP_LLVM_LINK");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(llvm_linked_in)");
    // As crates/codegen/build.rs decides.
    let is_static = match std::env::var("ANYWARP_LLVM_LINK").as_deref() {
        Ok(kind) => kind == "static",
        Err(_) => std::env::var("PROFILE").as_deref() == Ok("release"),
    };
    if is_static {
        println!("cargo:rustc-cfg=llvm_linked_in");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap=__cxa_atexit");
    }
}
