//! What an H200 answered, call for call: each row of `facts/driver-answers.tsv` is a call of one of these tests.

use std::cell::RefCell;
use std::collections::HashMap;

use super::common::*;
use crate::facts::{DRIVER_ANSWERS, rows};

/// The rows of one situation that are still to come.
struct Known(RefCell<HashMap<&'static str, CUresult>>);

impl Known {
    fn new(situation: &str) -> Known {
        let rows = rows(DRIVER_ANSWERS).filter(|[of, _, _]| *of == situation);
        let code = |code: &str| CUresult(code.parse().expect("a number"));
        Known(RefCell::new(rows.map(|[_, call, answer]| (call, code(answer))).collect()))
    }

    /// The answer to a call. Each is asked once.
    fn take(&self, call: &str) -> CUresult {
        self.0.borrow_mut().remove(call).unwrap_or_else(|| panic!("{call}: no such row, or asked twice"))
    }

    /// Nothing was left out.
    fn end(self) {
        let left: Vec<_> = self.0.into_inner().into_keys().collect();
        assert!(left.is_empty(), "not called: {left:?}");
    }
}

/// Calls with the names of their rows.
macro_rules! answers {
    ($known:expr; $($call:literal: $name:ident($($argument:expr),* $(,)?));+ $(;)?) => {{
        $(fails!($known.take($call), $name($($argument),*));)+
    }};
}

pub fn before_initialisation() {
    let known = Known::new("uninitialised");
    let (mut number, mut text, mut context) = (0, null(), CUcontext::NULL);
    let (mut pointer, mut module) = (CUdeviceptr(0), CUmodule::NULL);
    let (mut stream, mut event) = (CUstream::NULL, CUevent::NULL);
    answers!(known;
        "cuDriverGetVersion": cuDriverGetVersion(&mut number);
        "cuGetErrorName": cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &mut text);
        "cuDeviceGetCount": cuDeviceGetCount(&mut number);
        "cuDeviceGet": cuDeviceGet(&mut number, 0);
        "cuCtxGetCurrent": cuCtxGetCurrent(&mut context);
        "cuMemAlloc": cuMemAlloc_v2(&mut pointer, 16);
        "cuModuleLoadData": cuModuleLoadData(&mut module, c"".as_ptr().cast());
        "cuStreamCreate": cuStreamCreate(&mut stream, 0);
        "cuEventCreate": cuEventCreate(&mut event, 0);
        "cuCtxSynchronize": cuCtxSynchronize();
        "cuCtxCreate": cuCtxCreate_v4(&mut context, null_mut(), 0, 0);
        "cuDeviceGetCount(null)": cuDeviceGetCount(null_mut());
        "cuMemFree(0)": cuMemFree_v2(CUdeviceptr(0));
        "cuInit(1)": cuInit(1);
        "cuInit(0)": cuInit(0);
        "cuInit(0) again": cuInit(0);
    );
    known.end();
}

pub fn without_a_context() {
    let known = Known::new("no context");
    init();
    let (mut number, mut flags, mut context) = (0, 0, CUcontext::NULL);
    let (mut pointer, mut module, mut host) = (CUdeviceptr(0), CUmodule::NULL, null_mut());
    let (mut stream, mut event) = (CUstream::NULL, CUevent::NULL);
    let (mut free, mut total) = (0, 0);
    let image = CString::new(KERNELS).expect("no NUL inside");
    let own = CUdeviceptr((&raw const number).addr() as u64);
    let place = (&raw mut flags).cast();
    const WARP: CUdevice_attribute = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    answers!(known;
        "cuCtxGetCurrent": cuCtxGetCurrent(&mut context);
        "cuMemAlloc": cuMemAlloc_v2(&mut pointer, 16);
        "cuMemFree(0)": cuMemFree_v2(CUdeviceptr(0));
        "cuMemGetInfo": cuMemGetInfo_v2(&mut free, &mut total);
        "cuModuleLoadData": cuModuleLoadData(&mut module, image.as_ptr().cast());
        "cuStreamCreate": cuStreamCreate(&mut stream, 0);
        "cuEventCreate": cuEventCreate(&mut event, 0);
        "cuCtxSynchronize": cuCtxSynchronize();
        "cuCtxGetDevice": cuCtxGetDevice(&mut number);
        "cuCtxPopCurrent (empty stack)": cuCtxPopCurrent_v2(&mut context);
        "cuCtxPushCurrent(null)": cuCtxPushCurrent_v2(CUcontext::NULL);
        "cuCtxSetCurrent(null)": cuCtxSetCurrent(CUcontext::NULL);
        "cuCtxDestroy(null)": cuCtxDestroy_v2(CUcontext::NULL);
        "cuCtxGetFlags": cuCtxGetFlags(&mut flags);
        "cuCtxGetLimit": cuCtxGetLimit(&mut total, CU_LIMIT_STACK_SIZE);
        "cuStreamSynchronize(0)": cuStreamSynchronize(CUstream::NULL);
        "cuDeviceGet(99)": cuDeviceGet(&mut number, 99);
        "cuDeviceGet(-1)": cuDeviceGet(&mut number, -1);
        "cuDeviceGet(null)": cuDeviceGet(null_mut(), 0);
        "cuDeviceGetAttribute bad device": cuDeviceGetAttribute(&mut number, WARP, 99);
        "cuDeviceGetAttribute bad attribute": cuDeviceGetAttribute(&mut number, CUdevice_attribute(9999), 0);
        "cuDeviceGetAttribute null": cuDeviceGetAttribute(null_mut(), WARP, 0);
        "cuCtxCreate bad device": cuCtxCreate_v4(&mut context, null_mut(), 0, 99);
        "cuCtxCreate bad flags": cuCtxCreate_v4(&mut context, null_mut(), 0xFFFF, 0);
        "cuCtxCreate null": cuCtxCreate_v4(null_mut(), null_mut(), 0, 0);
        "cuDevicePrimaryCtxRelease without retain": cuDevicePrimaryCtxRelease_v2(0);
        "primary state": cuDevicePrimaryCtxGetState(0, &mut flags, &mut number);
        "cuMemHostAlloc": cuMemHostAlloc(&mut host, 16, 0);
        "cuPointerGetAttribute of host": cuPointerGetAttribute(place, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, own);
    );
    known.end();
}

pub fn contexts_one_after_the_other() {
    let known = Known::new("contexts");
    init();
    let (mut a, mut b, mut other) = (CUcontext::NULL, CUcontext::NULL, CUcontext::NULL);
    answers!(known;
        "create a": cuCtxCreate_v4(&mut a, null_mut(), 0, 0);
        "create b": cuCtxCreate_v4(&mut b, null_mut(), 0, 0);
    );
    let of_b = alloc(64);
    answers!(known;
        "pop": cuCtxPopCurrent_v2(&mut other);
        "memset in a of memory of b": cuMemsetD8_v2(of_b, 1, 64);
        "free in a of memory of b": cuMemFree_v2(of_b);
        "destroy b (not current)": cuCtxDestroy_v2(b);
    );
    let by_chance = ["destroy b twice", "push destroyed b", "set destroyed b"].map(|call| known.take(call));
    let of_destroyed =
        ["destroy current a", "get current after destroying current"].map(|call| known.take(call));
    let then = ["alloc after destroying current", "pop after"].map(|call| known.take(call));
    if ours_only("NVIDIA's driver reads what it has freed: it answers by chance, or crashes") {
        fails!(by_chance[0], cuCtxDestroy_v2(b));
        fails!(by_chance[1], cuCtxPushCurrent_v2(b));
        fails!(by_chance[2], cuCtxSetCurrent(b));
        fails!(of_destroyed[0], cuCtxDestroy_v2(a));
        fails!(of_destroyed[1], cuCtxGetCurrent(&mut other));
        let mut pointer = CUdeviceptr(0);
        fails!(then[0], cuMemAlloc_v2(&mut pointer, 16));
        fails!(then[1], cuCtxPopCurrent_v2(&mut other));
    }
    known.end();
}

pub fn the_primary_context() {
    let known = Known::new("primary context");
    init();
    let (mut primary, mut again, mut pointer) = (CUcontext::NULL, CUcontext::NULL, CUdeviceptr(0));
    answers!(known; "primary retain": cuDevicePrimaryCtxRetain(&mut primary, 0));
    cu!(cuDevicePrimaryCtxRetain(&mut again, 0); cuCtxSetCurrent(primary));
    answers!(known;
        "cuCtxDestroy of the primary": cuCtxDestroy_v2(primary);
        "set flags of an active primary": cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC);
        "alloc in the primary": cuMemAlloc_v2(&mut pointer, 16);
        "release (retained twice)": cuDevicePrimaryCtxRelease_v2(0);
        "alloc after the first release": cuMemAlloc_v2(&mut pointer, 16);
        "second release": cuDevicePrimaryCtxRelease_v2(0);
        "release once more": cuDevicePrimaryCtxRelease_v2(0);
        "alloc in the inactive primary": cuMemAlloc_v2(&mut pointer, 16);
        "retain again after inactive": cuDevicePrimaryCtxRetain(&mut again, 0);
    );
    assert_eq!(again, primary);
    known.end();
}

const MODULE: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .b8 gvar[16];
.visible .const .align 4 .b8 cvar[8];
.visible .entry pair(.param .u64 out, .param .u32 value)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry stand(.param .u64 word)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [word];
AGAIN:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    ret;
}
.visible .entry plain() { ret; }
.visible .entry half_full()
{
    .shared .align 4 .b8 buffer[32768];
    .reg .b32 %r<2>;
    mov.u32 %r1, buffer;
    st.shared.u32 [%r1], %r1;
    ret;
}
.visible .entry at_most_64() .maxntid 64, 1, 1 { ret; }
.visible .entry exactly_64() .reqntid 64, 1, 1 { ret; }
";

/// Memory, modules, streams and events, asked wrongly and rightly.
pub fn arguments() {
    let known = Known::new("arguments");
    new_context();
    memory(&known);
    modules(&known);
    streams_and_events(&known);
    let function = function(load(MODULE), c"plain");
    answers!(known;
        "cuCtxSetLimit stack 1<<40": cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 40);
        "cuCtxSetLimit bad": cuCtxSetLimit(CUlimit(99), 1);
        "cuFuncSetAttribute smem 300000":
            cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300_000);
        "cuFuncSetAttribute read-only": cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1);
    );
    known.end();
}

fn memory(known: &Known) {
    const SIZE: usize = 2 << 20;
    let (mut p, mut pitch) = (CUdeviceptr(0), 0);
    answers!(known;
        "cuMemAlloc(0 bytes)": cuMemAlloc_v2(&mut p, 0);
        "cuMemAlloc(null)": cuMemAlloc_v2(null_mut(), 16);
        "cuMemAlloc(1<<50)": cuMemAlloc_v2(&mut p, 1 << 50);
        "cuMemFree(0)": cuMemFree_v2(CUdeviceptr(0));
        "cuMemFree(0x1234)": cuMemFree_v2(CUdeviceptr(0x1234));
    );
    p = alloc(SIZE);
    let at = |offset: usize| CUdeviceptr(p.0 + offset as u64);
    answers!(known; "cuMemFree(p+4)": cuMemFree_v2(at(4)));
    let mut q = alloc(SIZE);
    answers!(known; "free": cuMemFree_v2(q); "double free": cuMemFree_v2(q));
    let mut host = vec![0u8; 2 * SIZE];
    let bytes: *mut c_void = host.as_mut_ptr().cast();
    answers!(known;
        "HtoD past the end (2 MiB allocation)": cuMemcpyHtoD_v2(p, bytes, SIZE + 1);
        "DtoH past the end by much": cuMemcpyDtoH_v2(bytes, p, 2 * SIZE);
        "memset past the end": cuMemsetD8_v2(p, 0, SIZE + 1);
        "HtoD 16 into p+2MiB-8": cuMemcpyHtoD_v2(at(SIZE - 8), bytes, 16);
        "HtoD null host": cuMemcpyHtoD_v2(p, null(), 16);
        "HtoD to null device": cuMemcpyHtoD_v2(CUdeviceptr(0), bytes, 16);
        "HtoD 0 bytes to null": cuMemcpyHtoD_v2(CUdeviceptr(0), bytes, 0);
        "DtoH from garbage": cuMemcpyDtoH_v2(bytes, CUdeviceptr(0x1234_5678), 16);
        "memset misaligned D32": cuMemsetD32_v2(at(1), 0, 4);
        "memset D16 misaligned": cuMemsetD16_v2(at(1), 0, 4);
        "memset D32 zero count": cuMemsetD32_v2(p, 0, 0);
    );
    let address = |pointer: *mut c_void| CUdeviceptr(pointer.addr() as u64);
    let (mut pinned, mut stray) = (null_mut(), 0u64);
    let stray: *mut c_void = (&raw mut stray).cast();
    answers!(known;
        "cuMemcpy host to host": cuMemcpy(address(bytes), address(bytes.wrapping_byte_add(64)), 64);
        "cuMemFreeHost garbage": cuMemFreeHost(stray);
        "cuMemHostAlloc 0": cuMemHostAlloc(&mut pinned, 0, 0);
        "cuMemAllocHost null": cuMemAllocHost_v2(null_mut(), 16);
    );
    let mut pages = vec![0u8; 3 * 4096];
    let page: *mut c_void = pages.as_mut_ptr().cast();
    cu!(cuMemHostRegister_v2(page, pages.len(), 0));
    answers!(known;
        "cuMemHostRegister twice": cuMemHostRegister_v2(page, pages.len(), 0);
        "cuMemHostUnregister unknown": cuMemHostUnregister(stray);
        "cuMemAllocPitch element size 3": cuMemAllocPitch_v2(&mut q, &mut pitch, 64, 4, 3);
        "cuMemGetAddressRange of garbage": cuMemGetAddressRange_v2(&mut q, &mut pitch, CUdeviceptr(0x1234_5678));
        "cuMemAllocManaged flags 0": cuMemAllocManaged(&mut q, 64, 0);
    );
    cu!(cuMemHostUnregister(page));
}

fn modules(known: &Known) {
    let (mut module, mut other, mut function) = (CUmodule::NULL, CUmodule::NULL, CUfunction::NULL);
    let (mut p, mut size) = (CUdeviceptr(0), 0);
    let image = CString::new(MODULE).expect("no NUL inside");
    let image = image.as_ptr().cast();
    answers!(known; "load": cuModuleLoadData(&mut module, image));
    answers!(known;
        "missing kernel": cuModuleGetFunction(&mut function, module, c"absent".as_ptr());
        "null module": cuModuleGetFunction(&mut function, CUmodule::NULL, c"plain".as_ptr());
        "missing global": cuModuleGetGlobal_v2(&mut p, &mut size, module, c"absent".as_ptr());
        "global": cuModuleGetGlobal_v2(&mut p, &mut size, module, c"gvar".as_ptr());
    );
    assert_eq!(size, 16);
    answers!(known;
        "const variable by cuModuleGetGlobal": cuModuleGetGlobal_v2(&mut p, &mut size, module, c"cvar".as_ptr());
        "global with null outputs": cuModuleGetGlobal_v2(null_mut(), null_mut(), module, c"gvar".as_ptr());
        "unload": cuModuleUnload(module);
        "unload null": cuModuleUnload(CUmodule::NULL);
        "cuModuleLoad missing file": cuModuleLoad(&mut other, c"/no/such/file".as_ptr());
        "cuModuleLoadData null": cuModuleLoadData(&mut other, null());
        "cuModuleLoadFatBinary of text": cuModuleLoadFatBinary(&mut other, image);
    );
    assert_eq!(size, 8);
}

fn streams_and_events(known: &Known) {
    let (mut s, mut e, mut ms) = (CUstream::NULL, CUevent::NULL, 0.0);
    answers!(known;
        "stream flags 77": cuStreamCreate(&mut s, 77);
        "stream null": cuStreamCreate(null_mut(), 0);
        "stream destroy null": cuStreamDestroy_v2(CUstream::NULL);
        "stream destroy legacy": cuStreamDestroy_v2(CU_STREAM_LEGACY);
    );
    s = stream(CU_STREAM_NON_BLOCKING);
    let (mut prior, first, second, quiet) =
        (CUstream::NULL, event(0), event(0), event(CU_EVENT_DISABLE_TIMING));
    answers!(known;
        "stream query idle": cuStreamQuery(s);
        "stream query null": cuStreamQuery(CUstream::NULL);
        "priority 99": cuStreamCreateWithPriority(&mut prior, 0, 99);
        "event flags 99": cuEventCreate(&mut e, 99);
        "query an unrecorded event": cuEventQuery(first);
        "synchronize an unrecorded event": cuEventSynchronize(first);
        "elapsed of unrecorded": cuEventElapsedTime_v2(&mut ms, first, second);
    );
    cu!(cuEventRecord(first, s); cuEventRecord(quiet, s); cuStreamSynchronize(s));
    answers!(known;
        "elapsed of one recorded": cuEventElapsedTime_v2(&mut ms, first, second);
        "elapsed with timing disabled": cuEventElapsedTime_v2(&mut ms, quiet, quiet);
        "event destroy null": cuEventDestroy_v2(CUevent::NULL);
        "event query null": cuEventQuery(CUevent::NULL);
        "event record null": cuEventRecord(CUevent::NULL, s);
        "interprocess without disable timing": cuEventCreate(&mut e, CU_EVENT_INTERPROCESS);
    );
    // A kernel that runs until the host says that it may end.
    let mut word: *mut c_void = null_mut();
    cu!(cuMemHostAlloc(&mut word, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    let word = word.cast::<u32>();
    // SAFETY: four bytes of pinned memory, which no kernel has yet.
    unsafe { word.write(0) };
    let (stand, address) = (function(load(MODULE), c"stand"), word.addr() as u64);
    assert_eq!(launch(stand, 1, 1, s, &mut [arg(&address)]), known.take("launch spin"));
    cu!(cuEventRecord(second, s));
    answers!(known;
        "query a running stream": cuStreamQuery(s);
        "query a pending event": cuEventQuery(second);
        "elapsed of a pending event": cuEventElapsedTime_v2(&mut ms, first, second);
    );
    // SAFETY: as above; the kernel only reads it.
    unsafe { word.write_volatile(1) };
    cu!(cuStreamSynchronize(s));
    answers!(known; "query after": cuStreamQuery(s));
}

pub fn launches() {
    let known = Known::new("launch");
    new_context();
    let module = load(MODULE);
    let [plain, pair, half_full, at_most, exactly] =
        [c"plain", c"pair", c"half_full", c"at_most_64", c"exactly_64"].map(|name| function(module, name));
    let with = |function: CUfunction, grid: [u32; 3], block: [u32; 3], shared: u32, call: &str| {
        let ([gx, gy, gz], [x, y, z]) = (grid, block);
        let (none, code) = (null_mut(), known.take(call));
        // SAFETY: the kernels take no arguments.
        let found =
            unsafe { cuLaunchKernel(function, gx, gy, gz, x, y, z, shared, CUstream::NULL, none, none) };
        assert_eq!(found, code, "{call}");
    };
    const ONE: [u32; 3] = [1; 3];
    with(plain, ONE, ONE, 0, "ok");
    with(plain, ONE, [1024, 1, 1], 0, "1024 threads");
    with(plain, ONE, [1025, 1, 1], 0, "1025 threads");
    with(plain, ONE, [32, 32, 2], 0, "32x32x2 threads");
    with(plain, ONE, [1, 1, 65], 0, "z 65 threads");
    with(plain, [0, 1, 1], ONE, 0, "zero grid");
    with(plain, ONE, [0, 1, 1], 0, "zero block");
    with(plain, [1 << 31, 1, 1], ONE, 0, "grid x 2^31");
    with(plain, [1, 65536, 1], ONE, 0, "grid y 65536");
    with(plain, [1, 1, 65536], ONE, 0, "grid z 65536");
    with(plain, ONE, ONE, 48 << 10, "dynamic smem 48 KiB");
    with(plain, ONE, ONE, (48 << 10) + 1, "dynamic smem 48 KiB + 1");
    with(plain, ONE, ONE, 1 << 20, "dynamic smem 1 MiB");
    with(half_full, ONE, ONE, 17 << 10, "static 32 KiB + dynamic 17 KiB");
    let most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let optin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    answers!(known; "raise limit": cuFuncSetAttribute(plain, most, 100_000));
    with(plain, ONE, ONE, 100_000, "dynamic smem 100000 after raising");
    answers!(known;
        "raise to opt-in max + 1": cuFuncSetAttribute(plain, most, optin + 1);
        "raise to opt-in max": cuFuncSetAttribute(plain, most, optin);
    );
    with(at_most, ONE, [65, 1, 1], 0, "maxntid 64 with 65");
    with(at_most, ONE, [32, 1, 1], 0, "maxntid 64 with 32");
    with(exactly, ONE, [32, 1, 1], 0, "reqntid 64 with 32");
    with(exactly, ONE, [64, 1, 1], 0, "reqntid 64 with 64");
    with(CUfunction::NULL, ONE, ONE, 0, "null function");

    // Parameters in one buffer: an address and a number, twelve bytes.
    let out = alloc(16);
    let mut buffer = [0u64; 8];
    (buffer[0], buffer[1]) = (out.0, 7);
    let extra = |bytes: usize, arguments: *mut *mut c_void, call: &str| {
        const END: *mut c_void = null_mut();
        const POINTER: *mut c_void = std::ptr::without_provenance_mut(1);
        const SIZE: *mut c_void = std::ptr::without_provenance_mut(2);
        let mut list = [POINTER, arg(&buffer), SIZE, arg(&bytes), END];
        let (list, code) = (list.as_mut_ptr(), known.take(call));
        // SAFETY: a buffer of at least as many bytes, and what the kernel writes.
        let found = unsafe { cuLaunchKernel(pair, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, arguments, list) };
        assert_eq!(found, code, "{call}");
    };
    extra(12, null_mut(), "extra with 12 bytes");
    extra(8, null_mut(), "extra with 8 of 12 bytes");
    extra(64, null_mut(), "extra with 64 of 12 bytes");
    let value = 7u32;
    let mut arguments = [arg(&out), arg(&value)];
    extra(12, arguments.as_mut_ptr(), "both kernelParams and extra");
    let (mut offset, mut size) = (0, 0);
    let (all, none) = (1 << 20, null_mut());
    answers!(known;
        "sync": cuCtxSynchronize();
        "cooperative grid too large":
            cuLaunchCooperativeKernel(plain, all, 1, 1, 1024, 1, 1, 0, CUstream::NULL, none);
        "cuFuncGetParamInfo 0": cuFuncGetParamInfo(pair, 0, &mut offset, &mut size);
        "cuFuncGetParamInfo 2 of 2": cuFuncGetParamInfo(pair, 2, &mut offset, &mut size);
    );
    known.end();
}

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel with this body.
fn kernel_of(body: &str) -> String {
    format!("{HEAD}.visible .entry k() {{\n{body}\nret;\n}}\n")
}

/// PTX that is right, wrong, or none.
fn texts() -> Vec<(&'static str, Vec<u8>)> {
    let empty_kernel = ".visible .entry k() { ret; }\n";
    let with_head = |version: &str, target: &str, size: &str| {
        let size = if size.is_empty() { String::new() } else { format!(".address_size {size}\n") };
        format!(".version {version}\n.target {target}\n{size}{empty_kernel}")
    };
    let registers = ".reg .u32 %a, %b, %c;\n";
    let body = |text: &str| kernel_of(&format!("{registers}{text}"));
    let texts = [
        ("ok", format!("{HEAD}{empty_kernel}")),
        ("empty string", String::new()),
        ("not ptx", "this is no PTX".to_owned()),
        ("no version", format!(".target sm_80\n.address_size 64\n{empty_kernel}")),
        ("version 99.0", with_head("99.0", "sm_80", "64")),
        ("target sm_999", with_head("8.0", "sm_999", "64")),
        ("target sm_100 on sm_90", with_head("8.6", "sm_100", "64")),
        ("target sm_90a", with_head("8.0", "sm_90a", "64")),
        ("target sm_30", with_head("6.0", "sm_30", "64")),
        ("target sm_70 (older)", with_head("7.0", "sm_70", "64")),
        ("address_size 32", with_head("8.0", "sm_80", "32")),
        ("no address_size", with_head("8.0", "sm_80", "")),
        ("no entries", HEAD.to_owned()),
        ("unknown instruction", body("foo.u32 %a, %b;")),
        ("undeclared register", body("add.u32 %a, %b, %missing;")),
        ("type mismatch", kernel_of(".reg .u32 %a;\n.reg .f64 %d;\nadd.u32 %a, %a, %d;")),
        ("missing semicolon", body("add.u32 %a, %b, %c")),
        ("undefined label", body("bra NOWHERE;")),
        ("undefined symbol", kernel_of(".reg .u64 %d;\nmov.u64 %d, nosuch;")),
        ("bad modifier", body("add.sat.u32 %a, %b, %c;")),
        ("feature of a newer target", kernel_of(".reg .f32 %f;\nredux.sync.add.f32 %f, %f, 0xffffffff;")),
        ("duplicate label", body("A:\nA:")),
        ("duplicate register", kernel_of(".reg .u32 %a;\n.reg .u32 %a;")),
        ("too much shared", kernel_of(".shared .b8 buffer[300000];\n.reg .u32 %a;\nmov.u32 %a, buffer;")),
        ("two errors", body("foo %a;\nbar2 %b;")),
        ("unresolved extern call", format!("{HEAD}.extern .func ext();\n{empty_kernel}")),
        (
            "unresolved extern function",
            format!("{HEAD}.extern .func ext();\n.visible .entry k() {{ call ext; ret; }}\n"),
        ),
        ("duplicate kernel", format!("{HEAD}{empty_kernel}{empty_kernel}")),
        ("unterminated comment", format!("{HEAD}/* {empty_kernel}")),
        ("extern shared only", format!("{HEAD}.extern .shared .align 16 .b8 dynamic[];\n{empty_kernel}")),
    ];
    let mut texts: Vec<_> = texts.map(|(name, text)| (name, text.into_bytes())).into();
    let mut strange = kernel_of("").into_bytes();
    strange.splice(HEAD.len()..HEAD.len(), *b"\xff\n");
    texts.push(("non-ascii byte", strange));
    texts.iter_mut().for_each(|(_, text)| text.push(0));
    texts
}

pub fn ptx() {
    let known = Known::new("ptx");
    new_context();
    for (name, text) in texts() {
        let (image, code, mut module) = (text.as_ptr().cast(), known.take(name), CUmodule::NULL);
        // SAFETY: an image that ends in NUL, and no options.
        unsafe {
            assert_eq!(cuModuleLoadDataEx(&mut module, image, 0, null_mut(), null_mut()), code, "{name}");
            assert_eq!(cuModuleLoadData(&mut module, image), code, "{name}");
        }
    }
    let wrong = CString::new(kernel_of("foo;")).expect("no NUL inside");
    let mut log = [0u8; 16];
    let mut names = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    let (mut module, mut link, mut image) = (CUmodule::NULL, CUlinkState::NULL, null_mut());
    let (mut library, mut kernel, mut size) = (CUlibrary::NULL, CUkernel::NULL, 0);
    let (wrong, none, name) = (wrong.as_ptr(), c"no PTX".as_ptr(), c"piece".as_ptr());
    let right = CString::new(MODULE).expect("no NUL inside");
    let (names, values) = (names.as_mut_ptr(), values.as_mut_ptr());
    let kind = CU_JIT_INPUT_PTX;
    macro_rules! load {
        ($text:expr) => {
            cuLibraryLoadData(&mut library, $text, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0)
        };
    }
    answers!(known;
        "error log of 16 bytes": cuModuleLoadDataEx(&mut module, wrong.cast(), 2, names, values);
        "link: create": cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link);
        "link: add bad ptx":
            cuLinkAddData_v2(link, kind, none.cast_mut().cast(), 7, name, 0, null_mut(), null_mut());
        "link: complete with nothing": cuLinkComplete(link, &mut image, &mut size);
    );
    // SAFETY: texts that end in NUL, and no options.
    unsafe {
        assert_eq!(load!(right.as_ptr().cast()), known.take("library load"));
        let missing = known.take("library kernel missing");
        assert_eq!(cuLibraryGetKernel(&mut kernel, library, c"absent".as_ptr()), missing);
        assert_eq!(load!(wrong.cast()), known.take("library load of bad ptx"));
    }
    known.end();
}
