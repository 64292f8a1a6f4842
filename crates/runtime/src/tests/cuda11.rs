//! What CUDA 11 has shorter or with other parameters: nothing is written behind its structures, nothing read that is not there.

use std::mem::zeroed;

use cuda_abi::driver::*;
use cuda_abi::runtime::*;

use super::cuda12::{Followed, given, nothing, rows};
use super::*;
use crate::api::cuda11::*;

#[test]
fn properties_end_where_the_structure_ends() {
    begin();
    let mut found = Followed::new();
    // SAFETY: a place for the result.
    assert_eq!(unsafe { cudaGetDeviceProperties_cuda11(found.out(), 2) }, cudaSuccess);
    let wanted = found.written();
    let mut device = -1;
    // SAFETY: a place for the result, and a structure that lives while the call runs.
    assert_eq!(unsafe { cudaChooseDevice_cuda11(out(&mut device), given(&wanted)) }, cudaSuccess);
    assert!(device >= 0);
    // SAFETY: null is noticed.
    assert_eq!(unsafe { cudaChooseDevice_cuda11(out(&mut device), nothing()) }, cudaErrorInvalidValue);
}

#[test]
fn attributes_of_a_kernel_end_where_the_structure_ends() {
    begin();
    let host_function = 0;
    let _binary = Registered::new().kernel(&host_function, c"kernel");
    let mut found = Followed::new();
    let function = ptr::from_ref(&host_function).cast();
    // SAFETY: a place for the result.
    assert_eq!(unsafe { cudaFuncGetAttributes_cuda11(found.out(), function) }, cudaSuccess);
    found.written();
}

#[test]
fn descriptions_of_textures_have_no_seamless_cube_maps() {
    begin();
    // SAFETY: numbers, for which zero is a value.
    let mut reading: cudaTextureDesc_cuda11 = unsafe { zeroed() };
    reading.disableTrilinearOptimization = 1;
    let mut texture = 0;
    // SAFETY: the descriptions live while the call runs, or null is noticed.
    let mut create = |reading| unsafe {
        cudaCreateTextureObject_cuda11(out(&mut texture), given(&rows()), reading, nothing())
    };
    assert_eq!(create(nothing()), cudaErrorInvalidValue);
    assert_eq!(create(given(&reading)), cudaSuccess);
    assert_eq!(texture, 1);
    let mut found = Followed::new();
    // SAFETY: a place for the result.
    assert_eq!(unsafe { cudaGetTextureObjectTextureDesc_cuda11(found.out(), texture) }, cudaSuccess);
    let found = found.written();
    assert_eq!((found.maxAnisotropy, found.normalizedCoords), (1, 1));
}

#[test]
fn graphs_tell_what_was_wrong_by_pointers() {
    begin();
    let (graph, exec) = (CUgraph(0x20), CUgraphExec(0x30));
    let mut made = CUgraphExec(0);
    let (node, log) = (ptr::without_provenance_mut(0x40), ptr::without_provenance_mut(0x50));
    // SAFETY: the driver of the tests looks at no pointer.
    let code = unsafe { cudaGraphInstantiate_cuda11(out(&mut made), graph, node, log, 99) };
    assert_eq!(code, cudaSuccess);
    let call = mock_driver::last_call();
    assert!(call.starts_with("cuGraphInstantiate_v2(") && call.ends_with("0x20, 0x40, 0x50, 99)"), "{call}");
    let result = ptr::without_provenance_mut(0x60);
    // SAFETY: as above.
    assert_eq!(unsafe { cudaGraphExecUpdate_cuda11(exec, graph, node, result) }, cudaSuccess);
    assert_eq!(mock_driver::last_call(), "cuGraphExecUpdate(0x30, 0x20, 0x40, 0x60)");
}

#[test]
fn functions_of_the_driver_are_looked_up_without_a_status() {
    begin();
    let mut function = ptr::null_mut();
    // SAFETY: a text and a place for the result.
    let code = unsafe {
        cudaGetDriverEntryPoint_cuda11(cuda_abi::args::Text::new(c"cuInit".as_ptr()), out(&mut function), 0)
    };
    assert_eq!(code, cudaSuccess);
    let call = mock_driver::last_call();
    assert!(call.starts_with("cuGetProcAddress(") && call.ends_with(", 0)"), "{call}");
}
