//! Every exported function with nothing but zeros: a code, no crash.

mod common;
use common::*;
use cuda_abi::functions::{self, Api};

/// As many arguments as any function has, and more.
type AnyFunction = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> CUresult;

/// Name and address of every symbol that `cuGetProcAddress` knows.
fn all_functions() -> Vec<(&'static str, AnyFunction)> {
    let mut found = Vec::new();
    for function in functions::all().into_iter().filter(|function| function.api == Api::Driver) {
        for lookup in &function.lookups {
            let flags = if lookup.per_thread { CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM } else { 0 };
            let mut pointer = null_mut::<c_void>();
            cu!(cuGetProcAddress(any_text(lookup.base), out(&mut pointer), lookup.since, flags));
            assert!(!pointer.is_null(), "{}", function.name);
            // SAFETY: an exported function; in the C ABI the caller removes its arguments, so more than it takes do no harm.
            found.push((function.name, unsafe { std::mem::transmute::<*mut c_void, AnyFunction>(pointer) }));
        }
    }
    found
}

fn call_all(state: &str) {
    for (name, function) in all_functions() {
        // SAFETY: zeros are null pointers, null handles and counts of nothing, which every function must notice.
        let code = unsafe { function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) };
        assert!(code.name().is_some(), "{name} {state} answers {code:?}");
        assert_ne!(code, CUDA_ERROR_UNKNOWN, "{name} {state} failed inside");
    }
}

#[test]
fn zeros_are_answered_in_every_state() {
    // The driver is not initialised yet, except by cuInit among the functions themselves.
    call_all("before cuInit");
    init();
    call_all("without a context");
    let context = new_context();
    call_all("in a context");
    cu!(cuCtxSetCurrent(context); cuMemFree_v2(alloc(16)); cuCtxDestroy_v2(context));
}
