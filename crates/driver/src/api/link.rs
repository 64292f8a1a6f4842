//! Module management: linking pieces into one image.

use super::module::given;
use crate::error::CuResult;
use crate::images;
use crate::jit::{JitOptions, Use};
use crate::links;
use cuda_abi::args::{Array, Out, Text};
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::c_void;

#[entry_point]
fn cuLinkCreate(
    numOptions: u32,
    options: Array<CUjit_option>,
    optionValues: Array<*mut c_void>,
    stateOut: Out<CUlinkState>,
) -> CuResult {
    create(numOptions, options, optionValues, stateOut)
}

/// The options' arrays and buffers must live until the link is destroyed: logs are written as pieces are added.
#[entry_point]
fn cuLinkCreate_v2(
    numOptions: u32,
    options: Array<CUjit_option>,
    optionValues: Array<*mut c_void>,
    stateOut: Out<CUlinkState>,
) -> CuResult {
    create(numOptions, options, optionValues, stateOut)
}

fn create(
    count: u32,
    options: Array<CUjit_option>,
    values: Array<*mut c_void>,
    place: Out<CUlinkState>,
) -> CuResult {
    place.check()?.set(links::create(JitOptions::read(count, options, values, Use::Link)?)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuLinkAddData(
    state: CUlinkState,
    r#type: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: Text,
    numOptions: u32,
    options: Array<CUjit_option>,
    optionValues: Array<*mut c_void>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let bytes = unsafe { images::bytes(data, size) }?;
    let options = JitOptions::read(numOptions, options, optionValues, Use::Piece)?;
    links::add(state, r#type, bytes, name, options)
}

#[entry_point]
unsafe fn cuLinkAddData_v2(
    state: CUlinkState,
    r#type: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: Text,
    numOptions: u32,
    options: Array<CUjit_option>,
    optionValues: Array<*mut c_void>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let bytes = unsafe { images::bytes(data, size) }?;
    let options = JitOptions::read(numOptions, options, optionValues, Use::Piece)?;
    links::add(state, r#type, bytes, name, options)
}

#[entry_point]
fn cuLinkAddFile(
    state: CUlinkState,
    r#type: CUjitInputType,
    path: Text,
    numOptions: u32,
    options: Array<CUjit_option>,
    optionValues: Array<*mut c_void>,
) -> CuResult {
    let options = JitOptions::read(numOptions, options, optionValues, Use::Piece)?;
    links::add(state, r#type, &images::read_file(path.get()?)?, path, options)
}

#[entry_point]
fn cuLinkAddFile_v2(
    state: CUlinkState,
    r#type: CUjitInputType,
    path: Text,
    numOptions: u32,
    options: Array<CUjit_option>,
    optionValues: Array<*mut c_void>,
) -> CuResult {
    let options = JitOptions::read(numOptions, options, optionValues, Use::Piece)?;
    links::add(state, r#type, &images::read_file(given(&path)?)?, path, options)
}

/// The image belongs to the link and lives as long.
#[entry_point]
fn cuLinkComplete(state: CUlinkState, cubinOut: Out<*mut c_void>, sizeOut: Out<usize>) -> CuResult {
    cubinOut.check()?;
    let (image, size) = links::complete(state)?;
    cubinOut.set(image.cast_mut().cast())?;
    sizeOut.set_if_wanted(size);
    Ok(())
}

#[entry_point]
fn cuLinkDestroy(state: CUlinkState) -> CuResult {
    links::destroy(state)
}
