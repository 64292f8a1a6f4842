//! Driver entry point access: functions by name and version.

use crate::error::CuResult;
use crate::exports::{EXPORTS, Export};
use cuda_abi::args::{In, Out, Text};
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::{CStr, c_void};

/// The newest variant of a function that version `cudaVersion` of the API has. Without a status, what is not found is an
/// error.
#[entry_point(before_init)]
fn cuGetProcAddress(symbol: Text, pfn: Out<*mut c_void>, cudaVersion: i32, flags: u64) -> CuResult {
    match find(symbol.get()?, pfn, cudaVersion, flags)? {
        CU_GET_PROC_ADDRESS_SUCCESS => Ok(()),
        _ => Err(CUDA_ERROR_NOT_FOUND.into()),
    }
}

/// The same, telling apart an unknown name from one that is too new.
#[entry_point(before_init)]
fn cuGetProcAddress_v2(
    symbol: Text,
    pfn: Out<*mut c_void>,
    cudaVersion: i32,
    flags: u64,
    symbolStatus: Out<CUdriverProcAddressQueryResult>,
) -> CuResult {
    symbolStatus.set_if_wanted(find(symbol.get()?, pfn, cudaVersion, flags)?);
    Ok(())
}

/// There are no tables of undocumented functions.
#[entry_point(before_init)]
fn cuGetExportTable(ppExportTable: Out<*const c_void>, pExportTableId: In<CUuuid>) -> CuResult {
    pExportTableId.get()?;
    ppExportTable.set(std::ptr::null())?;
    Err(CUDA_ERROR_NOT_FOUND.into())
}

/// An unknown name is no error: the pointer is null then and the status tells.
fn find(
    symbol: &CStr,
    pfn: Out<*mut c_void>,
    version: i32,
    flags: u64,
) -> CuResult<CUdriverProcAddressQueryResult> {
    pfn.check()?;
    // Nobody knows what later versions have.
    if version > CUDA_VERSION
        || flags & !(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0
    {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // Of both wishes the thread's own stream prevails.
    let per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM != 0;
    let name = symbol.to_str().unwrap_or_default();
    let variants = variants(name);
    let newest = |per_thread| {
        variants.iter().rfind(|export| export.since <= version && export.per_thread == per_thread)
    };
    let found = if per_thread { newest(true).or_else(|| newest(false)) } else { newest(false) };
    pfn.set(found.map_or(std::ptr::null_mut(), |export| export.address as *mut c_void))?;
    Ok(match (found, variants) {
        (Some(_), _) => CU_GET_PROC_ADDRESS_SUCCESS,
        (None, []) => CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        (None, _) => CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
    })
}

/// All variants of a name, oldest first.
fn variants(name: &str) -> &'static [Export] {
    let first = EXPORTS.partition_point(|export| export.base < name);
    let end = EXPORTS.partition_point(|export| export.base <= name);
    &EXPORTS[first..end]
}
