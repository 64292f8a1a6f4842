//! Memory management: memory and events of another process.

use super::common::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Runs `theirs` in a process of its own and `ours` in this one, each with its end of a line between them. To be called before
/// the driver is; the other process must end well.
fn two_processes(ours: impl FnOnce(&mut UnixStream), theirs: impl FnOnce(&mut UnixStream)) {
    let (mut here, mut there) = UnixStream::pair().expect("a line");
    // SAFETY: this process has one thread, and has not called the driver.
    match unsafe { libc::fork() } {
        -1 => panic!("no process: {}", std::io::Error::last_os_error()),
        0 => {
            drop(here);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| theirs(&mut there)));
            // SAFETY: ends the process at once, without what this one would do at its end.
            unsafe { libc::_exit(if ended.is_ok() { 0 } else { 101 }) }
        }
        child => {
            drop(there);
            ours(&mut here);
            let mut status = 0;
            // SAFETY: waits for the child, with a place for its status.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "the other process failed");
        }
    }
}

fn send(line: &mut UnixStream, bytes: &[u8]) {
    line.write_all(bytes).expect("the other process listens");
}

fn receive<const N: usize>(line: &mut UnixStream) -> [u8; N] {
    let mut bytes = [0; N];
    line.read_exact(&mut bytes).expect("the other process speaks");
    bytes
}

pub fn memory_of_another_process_is_opened() {
    two_processes(
        |line| {
            let _ = new_context();
            let (p, mut handle) = (alloc_with(&[7u32; 1000]), CUipcMemHandle { reserved: [0; 64] });
            cu!(cuIpcGetMemHandle(&mut handle, p));
            send(line, &handle.reserved);
            assert_eq!(receive::<1>(line), [1]);
            assert_eq!(read::<u32>(p, 3), [7, 9, 7], "what the other process wrote");
            send(line, &[2]);
            receive::<1>(line);
            cu!(cuMemFree_v2(p));
        },
        |line| {
            let handle = CUipcMemHandle { reserved: receive(line) };
            let _ = new_context();
            let mut p = CUdeviceptr(0);
            cu!(cuIpcOpenMemHandle_v2(&mut p, handle, 1));
            assert_eq!(read::<u32>(p, 1000), [7; 1000]);
            cu!(cuMemsetD32_v2(CUdeviceptr(p.0 + 4), 9, 1); cuCtxSynchronize());
            send(line, &[1]);
            receive::<1>(line);
            fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
            cu!(cuIpcCloseMemHandle(p));
            fails!(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p));
            cu!(cuIpcOpenMemHandle(&mut p, handle, 1); cuIpcCloseMemHandle(p));
            // What is open already is counted.
            let mut again = CUdeviceptr(0);
            cu!(cuIpcOpenMemHandle_v2(&mut p, handle, 1); cuIpcOpenMemHandle_v2(&mut again, handle, 1));
            assert_eq!(p.0, again.0);
            cu!(cuIpcCloseMemHandle(p));
            assert_eq!(read::<u32>(p, 3), [7, 9, 7]);
            cu!(cuIpcCloseMemHandle(p));
            fails!(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p));
            send(line, &[3]);
        },
    );
}

pub fn a_handle_of_the_middle_leads_to_the_beginning() {
    two_processes(
        |line| {
            let _ = new_context();
            let (p, mut handle) = (alloc_with(&[5u32, 6, 7, 8]), CUipcMemHandle { reserved: [0; 64] });
            // Nor does it matter what this thread captures.
            let s = stream(CU_STREAM_NON_BLOCKING);
            cu!(
                cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
                cuIpcGetMemHandle(&mut handle, CUdeviceptr(p.0 + 8));
                cuStreamEndCapture(s, &mut { CUgraph::NULL });
            );
            send(line, &handle.reserved);
            receive::<1>(line);
            cu!(cuMemFree_v2(p));
        },
        |line| {
            let handle = CUipcMemHandle { reserved: receive(line) };
            let _ = new_context();
            let mut p = CUdeviceptr(0);
            cu!(cuIpcOpenMemHandle_v2(&mut p, handle, 1));
            assert_eq!(read::<u32>(p, 4), [5, 6, 7, 8]);
            cu!(cuIpcCloseMemHandle(p));
            send(line, &[1]);
        },
    );
}

pub fn an_event_of_another_process_is_waited_for() {
    two_processes(
        |line| {
            let _ = new_context();
            let e = event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
            let (s, gate, mut handle) =
                (stream(CU_STREAM_NON_BLOCKING), Gate::new(), CUipcEventHandle { reserved: [0; 64] });
            cu!(cuIpcGetEventHandle(&mut handle, e));
            gate.hold(s);
            cu!(cuEventRecord(e, s));
            fails!(CUDA_ERROR_NOT_READY, cuEventQuery(e));
            send(line, &handle.reserved);
            // The other process sees that the event is not over before the gate opens.
            receive::<1>(line);
            gate.open();
            cu!(cuEventSynchronize(e));
            // And records the event itself: not before, or this process would have waited for that.
            send(line, &[2]);
            receive::<1>(line);
            let t = stream(CU_STREAM_NON_BLOCKING);
            fails!(CUDA_ERROR_NOT_READY, cuEventQuery(e));
            cu!(cuStreamWaitEvent(t, e, 0));
            fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(t));
            send(line, &[3]);
            cu!(cuStreamSynchronize(t); cuEventSynchronize(e); cuEventQuery(e); cuEventDestroy_v2(e));
        },
        |line| {
            let handle = CUipcEventHandle { reserved: receive(line) };
            let _ = new_context();
            let (mut e, s, p) = (CUevent::NULL, stream(CU_STREAM_NON_BLOCKING), alloc_with(&[0u32; 1]));
            cu!(cuIpcOpenEventHandle(&mut e, handle));
            // It is not passed on.
            fails!(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&mut { handle }, e));
            fails!(CUDA_ERROR_NOT_READY, cuEventQuery(e));
            cu!(cuStreamWaitEvent(s, e, 0); cuMemsetD32Async(p, 5, 1, s));
            fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
            send(line, &[1]);
            cu!(cuEventSynchronize(e); cuStreamSynchronize(s); cuEventQuery(e));
            assert_eq!(read::<u32>(p, 1), [5]);
            receive::<1>(line);
            let gate = Gate::new();
            gate.hold(s);
            cu!(cuEventRecord(e, s));
            send(line, &[2]);
            receive::<1>(line);
            gate.open();
            cu!(cuEventSynchronize(e));
            // Such an event has no time.
            fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&mut 0.0, e, e));
            cu!(cuEventDestroy_v2(e));
        },
    );
}

pub fn what_is_gone_is_not_opened() {
    two_processes(
        |line| {
            let _ = new_context();
            let (small, large) = (alloc(64), alloc(4 << 20));
            let (mut handle, mut event_handle) =
                (CUipcMemHandle { reserved: [0; 64] }, CUipcEventHandle { reserved: [0; 64] });
            let shared = event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
            cu!(cuIpcGetMemHandle(&mut handle, small));
            send(line, &handle.reserved);
            cu!(cuIpcGetMemHandle(&mut handle, large));
            send(line, &handle.reserved);
            cu!(cuIpcGetEventHandle(&mut event_handle, shared));
            send(line, &event_handle.reserved);
            cu!(cuMemFree_v2(small); cuMemFree_v2(large); cuEventDestroy_v2(shared));
            send(line, &[1]);
            receive::<1>(line);
        },
        |line| {
            let memory: [CUipcMemHandle; 2] = [(); 2].map(|()| CUipcMemHandle { reserved: receive(line) });
            let handle = CUipcEventHandle { reserved: receive(line) };
            receive::<1>(line);
            let _ = new_context();
            if ours_only("nobody has tried what NVIDIA's driver says") {
                for memory in memory {
                    fails!(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&mut CUdeviceptr(0), memory, 1));
                }
                fails!(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(&mut CUevent(0), handle));
            }
            send(line, &[2]);
        },
    );
}

pub fn handles_are_checked() {
    new_context();
    let p = alloc(64);
    let (mut memory, mut event_handle) =
        (CUipcMemHandle { reserved: [0; 64] }, CUipcEventHandle { reserved: [0; 64] });
    let (mut opened, mut e) = (CUdeviceptr(0), CUevent::NULL);
    fails!(CUDA_ERROR_MAP_FAILED, cuIpcOpenEventHandle(&mut e, event_handle));
    cu!(cuIpcGetMemHandle(&mut memory, p));
    // One's own memory is not opened again.
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&mut opened, memory, 1));
    // One flag must be there; the others are not looked at.
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&mut opened, memory, 77));
    fails!(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&mut opened, memory, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&mut memory, CUdeviceptr(0x1234)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(null_mut(), p));
    fails!(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p));
    // Only events that were made for it are shared.
    let plain = event(CU_EVENT_DISABLE_TIMING);
    fails!(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&mut event_handle, plain));
    fails!(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(&mut event_handle, CUevent::NULL));
    let shared = event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    cu!(cuIpcGetEventHandle(&mut event_handle, shared));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&mut e, event_handle));
    if ours_only("NVIDIA's driver may follow null, and what no driver has written") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(null_mut(), shared));
        fails!(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(null_mut(), event_handle));
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuIpcOpenEventHandle(&mut e, CUipcEventHandle { reserved: [9; 64] })
        );
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuIpcOpenMemHandle_v2(&mut opened, CUipcMemHandle { reserved: [9; 64] }, 1)
        );
        fails!(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(null_mut(), memory, 1));
    }
}

pub fn remote_writes_are_visible() {
    new_context();
    let own = CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX;
    for scope in [CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES] {
        if attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) & 1 != 0 {
            cu!(cuFlushGPUDirectRDMAWrites(own, scope));
        }
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuFlushGPUDirectRDMAWrites(own, CUflushGPUDirectRDMAWritesScope(7)));
}
