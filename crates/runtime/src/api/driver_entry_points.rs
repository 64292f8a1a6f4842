//! Driver entry point access.

use super::prelude::*;
use crate::context;
use crate::version::version;

/// The driver's function of a name, in the variant that the library's version of the API has.
#[entry_point(ptsz)]
fn cudaGetDriverEntryPoint(
    default: DefaultStream,
    symbol: Text,
    funcPtr: Out<*mut c_void>,
    flags: u64,
    driverStatus: Out<cudaDriverEntryPointQueryResult>,
) -> CudaResult {
    lookup(default, symbol, funcPtr, version(), flags, driverStatus)
}

/// The driver's function of a name, in the newest variant that a version of the API has.
#[entry_point(ptsz)]
fn cudaGetDriverEntryPointByVersion(
    default: DefaultStream,
    symbol: Text,
    funcPtr: Out<*mut c_void>,
    cudaVersion: u32,
    flags: u64,
    driverStatus: Out<cudaDriverEntryPointQueryResult>,
) -> CudaResult {
    let version = i32::try_from(cudaVersion).map_err(|_| cudaErrorInvalidValue)?;
    lookup(default, symbol, funcPtr, version, flags, driverStatus)
}

/// A table of functions that is not in the manual, by its identifier: the driver's, if it has one.
#[entry_point]
fn cudaGetExportTable(ppExportTable: Out<*const c_void>, pExportTableId: In<cudaUUID_t>) -> CudaResult {
    context::initialize()?;
    let table = ppExportTable.check()?;
    let id = pExportTableId.get()?;
    call!(cuGetExportTable(table.as_ptr(), &id))
}

fn lookup(
    default: DefaultStream,
    symbol: Text,
    function: Out<*mut c_void>,
    version: i32,
    flags: u64,
    status: Out<cudaDriverEntryPointQueryResult>,
) -> CudaResult {
    context::initialize()?;
    let function = function.check()?;
    let flags = match (default, flags) {
        (DefaultStream::PerThread, cudaEnableDefault) => cudaEnablePerThreadDefaultStream,
        _ => flags,
    };
    // Both APIs number the results alike.
    call!(cuGetProcAddress_v2(
        symbol.get()?.as_ptr(),
        function.as_ptr(),
        version,
        flags,
        status.as_ptr().cast()
    ))
}
