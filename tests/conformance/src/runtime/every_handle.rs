//! Every function of the Runtime API that takes a handle, with what is none: see [`crate::every_handle`]. The objects are the driver's,
//! in a context that it has made current.

use super::common::*;
use crate::driver::every_handle::{end, objects};
use crate::every_handle::{Case, findings};

pub fn what_is_no_handle_is_refused_by_every_function() {
    if !ours_only("NVIDIA's driver follows the handle") {
        return;
    }
    set_env("ANYWARP_THREADS", "2");
    use driver::*;
    cu!(cuInit(0));
    let found = findings(super::functions::TAKING_HANDLES, objects, end, expected);
    assert!(found.is_empty(), "{} answers:\n{}", found.len(), found.join("\n"));
}

/// Whether a call has nothing to do: its sizes are zero, or come from structures that are.
fn is_empty(function: &str, number: u64) -> bool {
    let sized = ["cudaMallocAsync", "cudaMemcpy", "cudaMemset"].iter().any(|name| function.starts_with(name));
    sized && !function.contains("Batch") && (number == 0 || function.contains("3D"))
}

fn expected(Case { function, kind, number, .. }: Case) -> u32 {
    let code = match kind {
        // What is empty is not looked at any further.
        "CUstream" if is_empty(function, number) => cudaSuccess,
        // Copies answer for arrays as they do for addresses.
        "CUarray" if function.starts_with("cudaMemcpy") => cudaErrorInvalidValue,
        // What is not there need not be destroyed.
        "CUtexObject" | "CUsurfObject" if function.starts_with("cudaDestroy") => cudaSuccess,
        "CUgraph" | "CUgraphNode" | "CUgraphExec" | "CUuserObject" => cudaErrorInvalidValue,
        "CUmemoryPool" => cudaErrorInvalidValue,
        "CUtexObject" | "CUsurfObject" | "CUasyncCallbackHandle" | "CUlogsCallbackHandle" => {
            cudaErrorInvalidValue
        }
        _ => cudaErrorInvalidResourceHandle,
    };
    code.0
}
