//! Where redirected functions jump to: a stub for each function that our runtimes export. It jumps on through its slot,
//! which leads to the resolver until the first call has found the function itself, as an executable's own stubs for shared
//! functions do.

use crate::ours::{self, Exports};
use crate::report::die;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Stubs for one runtime, those of CUDA 11 first.
const PER_RUNTIME: usize = 512;
const STUBS: usize = ours::RUNTIMES * PER_RUNTIME;
const STUB_SIZE: usize = 16;

/// Where each stub jumps to. Zero until a function was redirected to it.
static SLOTS: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];

// A stub is `jmp [slot]`, six bytes; what follows calls the resolver with the stub's number. The resolver must leave the
// arguments of the function as they are: the registers of the C calling convention (functions of the runtime have no
// vectors wider than 16 bytes among their arguments), and al, which counts vector registers for variadic functions. A stub
// begins with the stack as at a call; two pushes and the saved registers keep it aligned for the inner call.
std::arch::global_asm!(
    ".pushsection .text.anywarp_redirect_stubs, \"ax\", @progbits",
    ".balign 16",
    "anywarp_redirect_stubs:",
    ".set anywarp_redirect_n, 0",
    ".rept {count}",
    ".balign 16",
    "jmp qword ptr [rip + {slots} + 8 * anywarp_redirect_n]",
    "push anywarp_redirect_n",
    "jmp anywarp_redirect_resolve",
    ".set anywarp_redirect_n, anywarp_redirect_n + 1",
    ".endr",
    "anywarp_redirect_resolve:",
    "push rax",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push r8",
    "push r9",
    "push r10",
    "sub rsp, 128",
    "movups [rsp], xmm0",
    "movups [rsp + 16], xmm1",
    "movups [rsp + 32], xmm2",
    "movups [rsp + 48], xmm3",
    "movups [rsp + 64], xmm4",
    "movups [rsp + 80], xmm5",
    "movups [rsp + 96], xmm6",
    "movups [rsp + 112], xmm7",
    "mov rdi, [rsp + 192]",
    "call {resolve}",
    "mov r11, rax",
    "movups xmm0, [rsp]",
    "movups xmm1, [rsp + 16]",
    "movups xmm2, [rsp + 32]",
    "movups xmm3, [rsp + 48]",
    "movups xmm4, [rsp + 64]",
    "movups xmm5, [rsp + 80]",
    "movups xmm6, [rsp + 96]",
    "movups xmm7, [rsp + 112]",
    "add rsp, 128",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rcx",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "pop rax",
    "add rsp, 8",
    "jmp r11",
    ".popsection",
    count = const STUBS,
    slots = sym SLOTS,
    resolve = sym resolve,
);

unsafe extern "C" {
    static anywarp_redirect_stubs: u8;
}

/// The stub for an exported function of a runtime, ready to be jumped to.
pub fn address(version: u32, index: usize) -> Result<usize, String> {
    if index >= PER_RUNTIME {
        return Err(format!("libcudart.so.{version} exports more than {PER_RUNTIME} functions"));
    }
    let number = ours::place(version) * PER_RUNTIME + index;
    let stub = &raw const anywarp_redirect_stubs as usize + number * STUB_SIZE;
    // Behind the jump. Another object may have got here first, and its calls may have found the function meanwhile.
    let unresolved = stub + 6;
    let _ = SLOTS[number].compare_exchange(0, unresolved, Ordering::Relaxed, Ordering::Relaxed);
    Ok(stub)
}

/// Answers for functions that a newer runtime of NVIDIA's has and ours has not.
pub extern "C" fn not_supported() -> u32 {
    const CUDA_ERROR_NOT_SUPPORTED: u32 = 801;
    CUDA_ERROR_NOT_SUPPORTED
}

/// The first call of a function: finds it and lets its stub jump there from now on. Several threads may do so at once, each
/// with the same result.
extern "C" fn resolve(number: usize) -> usize {
    let version = ours::OLDEST + (number / PER_RUNTIME) as u32;
    // Nothing leads here before the list was read.
    let function = ours::exports(version).and_then(|ours| find(ours, number % PER_RUNTIME));
    match function {
        Ok(function) => {
            SLOTS[number].store(function, Ordering::Relaxed);
            function
        }
        Err(reason) => die(&reason),
    }
}

fn find(ours: &Exports, index: usize) -> Result<usize, String> {
    let name = ours.name(index).ok_or("a stub without a function")?;
    let path = CString::new(ours.path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: opens our library in the program's name space, where it is opened once however often this asks. It stays.
    let library =
        unsafe { libc::dlmopen(libc::LM_ID_BASE, path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(last_error());
    }
    // SAFETY: the library is open and the name a string.
    let function: *mut c_void = unsafe { libc::dlsym(library, name.as_ptr()) };
    if function.is_null() { Err(last_error()) } else { Ok(function as usize) }
}

fn last_error() -> String {
    // SAFETY: dlerror answers with a string of this thread's, or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the dynamic loader failed without a reason".into();
    }
    // SAFETY: not null; the string is valid until the next such call on this thread.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
