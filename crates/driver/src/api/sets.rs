//! Memory management: setting memory to a value.

use crate::error::CuResult;
use crate::streams;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::Fill;
use entry_macros::entry_point;

/// In the order of the default stream. The call waits only if the host can see the memory.
pub(super) fn fill_now(default: DefaultStream, fill: Fill) -> CuResult {
    streams::default_stream(default)?.fill_now(fill)?;
    Ok(())
}

/// In the order of a stream.
fn fill_async(default: DefaultStream, stream: CUstream, fill: Fill) -> CuResult {
    streams::find(stream, default)?.fill(fill)?;
    Ok(())
}

pub(super) fn rows(
    address: CUdeviceptr,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
) -> Fill {
    let (pitch, width, height) = (pitch as u64, width as u64, height as u64);
    Fill { address: address.0, pitch, value, element, width, height }
}

#[entry_point(ptds)]
fn cuMemsetD8_v2(default: DefaultStream, dstDevice: CUdeviceptr, uc: u8, N: usize) -> CuResult {
    fill_now(default, Fill::linear(dstDevice.0, uc.into(), 1, N as u64))
}

#[entry_point(ptsz)]
fn cuMemsetD8Async(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    uc: u8,
    N: usize,
    hStream: CUstream,
) -> CuResult {
    fill_async(default, hStream, Fill::linear(dstDevice.0, uc.into(), 1, N as u64))
}

#[entry_point(ptds)]
fn cuMemsetD2D8_v2(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    uc: u8,
    Width: usize,
    Height: usize,
) -> CuResult {
    fill_now(default, rows(dstDevice, dstPitch, uc.into(), 1, Width, Height))
}

#[entry_point(ptsz)]
fn cuMemsetD2D8Async(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    uc: u8,
    Width: usize,
    Height: usize,
    hStream: CUstream,
) -> CuResult {
    fill_async(default, hStream, rows(dstDevice, dstPitch, uc.into(), 1, Width, Height))
}

#[entry_point(ptds)]
fn cuMemsetD16_v2(default: DefaultStream, dstDevice: CUdeviceptr, us: u16, N: usize) -> CuResult {
    fill_now(default, Fill::linear(dstDevice.0, us.into(), 2, N as u64))
}

#[entry_point(ptsz)]
fn cuMemsetD16Async(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    us: u16,
    N: usize,
    hStream: CUstream,
) -> CuResult {
    fill_async(default, hStream, Fill::linear(dstDevice.0, us.into(), 2, N as u64))
}

#[entry_point(ptds)]
fn cuMemsetD2D16_v2(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    us: u16,
    Width: usize,
    Height: usize,
) -> CuResult {
    fill_now(default, rows(dstDevice, dstPitch, us.into(), 2, Width, Height))
}

#[entry_point(ptsz)]
fn cuMemsetD2D16Async(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    us: u16,
    Width: usize,
    Height: usize,
    hStream: CUstream,
) -> CuResult {
    fill_async(default, hStream, rows(dstDevice, dstPitch, us.into(), 2, Width, Height))
}

#[entry_point(ptds)]
fn cuMemsetD32_v2(default: DefaultStream, dstDevice: CUdeviceptr, ui: u32, N: usize) -> CuResult {
    fill_now(default, Fill::linear(dstDevice.0, ui, 4, N as u64))
}

#[entry_point(ptsz)]
fn cuMemsetD32Async(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    ui: u32,
    N: usize,
    hStream: CUstream,
) -> CuResult {
    fill_async(default, hStream, Fill::linear(dstDevice.0, ui, 4, N as u64))
}

#[entry_point(ptds)]
fn cuMemsetD2D32_v2(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    ui: u32,
    Width: usize,
    Height: usize,
) -> CuResult {
    fill_now(default, rows(dstDevice, dstPitch, ui, 4, Width, Height))
}

#[entry_point(ptsz)]
fn cuMemsetD2D32Async(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    ui: u32,
    Width: usize,
    Height: usize,
    hStream: CUstream,
) -> CuResult {
    fill_async(default, hStream, rows(dstDevice, dstPitch, ui, 4, Width, Height))
}
