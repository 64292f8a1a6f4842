//! Processes that use a device.

use super::common::*;
use crate::driver::functions::*;
use cuda_abi::driver::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

const SIZE: usize = 64 << 20;

/// A context with so much memory.
fn use_device() -> CUcontext {
    let (mut context, mut memory) = (CUcontext::NULL, CUdeviceptr(0));
    cu!(cuInit(0); cuCtxCreate_v4(&mut context, null_mut(), 0, 0); cuMemAlloc_v2(&mut memory, SIZE));
    context
}

fn computing(device: nvmlDevice_t) -> Vec<nvmlProcessInfo_t> {
    let mut all = vec![nvmlProcessInfo_t::default(); 256];
    let mut count = all.len() as u32;
    ml!(nvmlDeviceGetComputeRunningProcesses_v3(device, &mut count, all.as_mut_ptr()));
    all.truncate(count as usize);
    all
}

fn found(device: nvmlDevice_t, process: u32) -> Option<nvmlProcessInfo_t> {
    computing(device).into_iter().find(|info| info.pid == process)
}

pub fn a_process_counts_while_it_has_a_context() {
    let (device, process) = (first_device(), std::process::id());
    assert!(found(device, process).is_none());
    let context = use_device();
    let info = found(device, process).expect("this process");
    assert!(info.usedGpuMemory >= SIZE as u64, "{info:?}");
    assert_eq!((info.gpuInstanceId, info.computeInstanceId), (u32::MAX, u32::MAX));
    cu!(cuCtxDestroy_v2(context));
    assert!(found(device, process).is_none());
}

pub fn every_version_tells_the_same() {
    let device = first_device();
    let _ = use_device();
    let mut count = 0;
    fails!(
        NVML_ERROR_INSUFFICIENT_SIZE,
        nvmlDeviceGetComputeRunningProcesses_v3(device, &mut count, null_mut())
    );
    assert!(count >= 1);
    let (mut first, mut second) =
        ([nvmlProcessInfo_v1_t::default(); 256], [nvmlProcessInfo_t::default(); 256]);
    let own = std::process::id();
    let mut count = 256;
    ml!(nvmlDeviceGetComputeRunningProcesses(device, &mut count, first.as_mut_ptr()));
    assert!(first[..count as usize].iter().any(|info| info.pid == own && info.usedGpuMemory >= SIZE as u64));
    let mut count = 256;
    ml!(nvmlDeviceGetComputeRunningProcesses_v2(device, &mut count, second.as_mut_ptr()));
    assert!(second[..count as usize].iter().any(|info| info.pid == own && info.usedGpuMemory >= SIZE as u64));
    fails!(
        NVML_ERROR_INVALID_ARGUMENT,
        nvmlDeviceGetComputeRunningProcesses_v3(device, null_mut(), second.as_mut_ptr())
    );
}

pub fn nobody_draws() {
    let (device, mut first, mut second) =
        (first_device(), [nvmlProcessInfo_v1_t::default(); 64], [nvmlProcessInfo_t::default(); 64]);
    let mut counts = [64; 6];
    let (first, second) = (first.as_mut_ptr(), second.as_mut_ptr());
    ml!(
        nvmlDeviceGetGraphicsRunningProcesses(device, &mut counts[0], first);
        nvmlDeviceGetGraphicsRunningProcesses_v2(device, &mut counts[1], second);
        nvmlDeviceGetGraphicsRunningProcesses_v3(device, &mut counts[2], second);
        nvmlDeviceGetMPSComputeRunningProcesses(device, &mut counts[3], first);
        nvmlDeviceGetMPSComputeRunningProcesses_v2(device, &mut counts[4], second);
        nvmlDeviceGetMPSComputeRunningProcesses_v3(device, &mut counts[5], second);
    );
    assert_eq!(counts, [0; 6]);
}

/// Has another process use the device, and ends it by force.
pub fn other_processes_are_seen_until_they_are_killed() {
    let (mut here, mut there) = UnixStream::pair().expect("a line");
    // SAFETY: this process has one thread, and has not called the libraries.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(here);
        let _ = use_device();
        there.write_all(b"x").expect("the test listens");
        loop {
            std::thread::park();
        }
    }
    drop(there);
    here.read_exact(&mut [0]).expect("the other process is ready");
    let device = first_device();
    let info = found(device, child as u32).expect("the other process");
    assert!(info.usedGpuMemory >= SIZE as u64, "{info:?}");
    let mut before = nvmlMemory_v2_t { version: nvmlMemory_v2, ..Default::default() };
    ml!(nvmlDeviceGetMemoryInfo_v2(device, &mut before));
    assert!(before.used >= SIZE as u64);
    // SAFETY: ends the child, and waits for it.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, null_mut(), 0);
    }
    assert!(found(device, child as u32).is_none());
}

pub fn memory_of_other_processes_is_not_free() {
    if is_ours() {
        // Few enough that the machine has as many.
        set_env("ANYWARP_MEMORY", "256M");
    }
    let (mut here, mut there) = UnixStream::pair().expect("a line");
    // SAFETY: this process has one thread, and has not called the libraries.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(here);
        there.read_exact(&mut [0]).expect("the test speaks");
        let _ = use_device();
        there.write_all(b"x").expect("the test listens");
        let _ = there.read_exact(&mut [0]);
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(0) }
    }
    drop(there);
    let (mut context, mut before, mut after, mut total) = (CUcontext::NULL, 0, 0, 0);
    cu!(cuInit(0); cuCtxCreate_v4(&mut context, null_mut(), 0, 0); cuMemGetInfo_v2(&mut before, &mut total));
    here.write_all(b"x").expect("the other process listens");
    here.read_exact(&mut [0]).expect("the other process is ready");
    cu!(cuMemGetInfo_v2(&mut after, &mut total));
    assert!(after + SIZE <= before, "{before} {after}");
    let (device, mut memory) = (first_device(), nvmlMemory_t::default());
    ml!(nvmlDeviceGetMemoryInfo(device, &mut memory));
    assert_eq!(memory.free, after as u64);
    drop(here);
    // SAFETY: waits for the child.
    unsafe { libc::waitpid(child, null_mut(), 0) };
    if is_ours() {
        let _ = std::fs::remove_dir_all(format!("/tmp/anywarp-test-{}", std::process::id()));
    }
}

/// Counts to a large number.
const BUSY: &CStr = c"
.version 8.0
.target sm_90
.address_size 64
.visible .entry busy(.param .u64 place)
{
    .reg .pred %p;
    .reg .b64 %place;
    .reg .b64 %begin;
    .reg .b64 %now;
    ld.param.u64 %place, [place];
    mov.u64 %begin, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %p, %now, 700000000;
    @%p bra again;
    st.global.u64 [%place], %now;
    ret;
}
";

pub fn a_busy_device_is_seen() {
    let device = first_device();
    let _ = use_device();
    let (mut module, mut kernel, mut place) = (CUmodule::NULL, CUfunction::NULL, CUdeviceptr(0));
    cu!(
        cuModuleLoadData(&mut module, BUSY.as_ptr().cast());
        cuModuleGetFunction(&mut kernel, module, c"busy".as_ptr());
        cuMemAlloc_v2(&mut place, 8);
    );
    let mut parameters = [(&raw mut place).cast()];
    for _ in 0..2 {
        cu!(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, parameters.as_mut_ptr(), null_mut()));
    }
    cu!(cuCtxSynchronize());
    let mut use_of = nvmlUtilization_t::default();
    ml!(nvmlDeviceGetUtilizationRates(device, &mut use_of));
    assert!(use_of.gpu >= 50 && use_of.gpu <= 100, "{use_of:?}");
    let (mut count, mut samples) = (64, [nvmlProcessUtilizationSample_t::default(); 64]);
    if ours_only("NVIDIA's samples come late") {
        ml!(nvmlDeviceGetProcessUtilization(device, samples.as_mut_ptr(), &mut count, 0));
        let own = samples[..count as usize].iter().find(|sample| sample.pid == std::process::id());
        assert!(own.expect("this process").smUtil >= 50);
        fails!(
            NVML_ERROR_NOT_FOUND,
            nvmlDeviceGetProcessUtilization(device, samples.as_mut_ptr(), &mut count, u64::MAX)
        );
    }
}
