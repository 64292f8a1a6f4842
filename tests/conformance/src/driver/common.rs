//! What the tests of the Driver API share.
#![allow(dead_code, unused_imports, reason = "each test file uses some of it")]

pub use crate::answers::{differs, is_ours, ours_only, set_env, skip};
pub use crate::driver::functions::*;
pub use cuda_abi::driver::*;
pub use std::ffi::{CStr, CString, c_char, c_void};
pub use std::ptr::{null, null_mut};

/// Initialises the driver.
pub fn init() {
    cu!(cuInit(0));
}

/// A new context of device 0, current on this thread.
pub fn new_context() -> CUcontext {
    init();
    create_context()
}

/// A further context, current on this thread.
pub fn create_context() -> CUcontext {
    let mut context = CUcontext::NULL;
    cu!(cuCtxCreate_v4(&mut context, null_mut(), 0, 0));
    context
}

/// The current context.
pub fn current() -> CUcontext {
    let mut context = CUcontext(1);
    cu!(cuCtxGetCurrent(&mut context));
    context
}

/// Device memory.
pub fn alloc(bytes: usize) -> CUdeviceptr {
    let mut pointer = CUdeviceptr(0);
    cu!(cuMemAlloc_v2(&mut pointer, bytes));
    pointer
}

/// Device memory with this content.
pub fn alloc_with<T: Copy>(values: &[T]) -> CUdeviceptr {
    let pointer = alloc(size_of_val(values));
    cu!(cuMemcpyHtoD_v2(pointer, values.as_ptr().cast(), size_of_val(values)));
    pointer
}

/// Copies values out of device memory.
pub fn read<T: Copy + Default>(pointer: CUdeviceptr, count: usize) -> Vec<T> {
    let mut values = vec![T::default(); count];
    cu!(cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), pointer, count * size_of::<T>()));
    values
}

/// A module from PTX.
pub fn load(ptx: &str) -> CUmodule {
    let mut module = CUmodule::NULL;
    let ptx = CString::new(ptx).expect("no NUL inside");
    cu!(cuModuleLoadData(&mut module, ptx.as_ptr().cast()));
    module
}

/// A kernel of a module.
pub fn function(module: CUmodule, name: &CStr) -> CUfunction {
    let mut function = CUfunction::NULL;
    cu!(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

/// A kernel of [`KERNELS`].
pub fn kernel(name: &CStr) -> CUfunction {
    function(load(KERNELS), name)
}

/// A stream with these flags.
pub fn stream(flags: u32) -> CUstream {
    let mut stream = CUstream::NULL;
    cu!(cuStreamCreate(&mut stream, flags));
    stream
}

/// Launches on a stream, with pointers to the arguments; answers with the call's code.
pub fn launch(
    function: CUfunction,
    grid: u32,
    block: u32,
    stream: CUstream,
    arguments: &mut [*mut c_void],
) -> CUresult {
    let arguments = if arguments.is_empty() { null_mut() } else { arguments.as_mut_ptr() };
    // SAFETY: the test's arguments are what the kernel takes.
    unsafe { cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, arguments, null_mut()) }
}

/// What `cuLaunchKernelEx` launches one thread by.
pub fn one_thread_in(stream: CUstream, attributes: &mut [CUlaunchAttribute]) -> CUlaunchConfig {
    CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    }
}

/// A graph.
pub fn graph() -> CUgraph {
    let mut graph = CUgraph::NULL;
    cu!(cuGraphCreate(&mut graph, 0));
    graph
}

/// What a graph is launched by.
pub fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut executable = CUgraphExec::NULL;
    cu!(cuGraphInstantiateWithFlags(&mut executable, graph, 0));
    executable
}

/// Launches a graph and waits for it.
pub fn launch_graph(executable: CUgraphExec) {
    cu!(cuGraphLaunch(executable, CUstream::NULL); cuCtxSynchronize());
}

/// A node that runs one thread.
pub fn one_thread(func: CUfunction, arguments: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: if arguments.is_empty() { null_mut() } else { arguments.as_mut_ptr() },
        extra: null_mut(),
        kern: CUkernel::NULL,
        ctx: CUcontext::NULL,
    }
}

/// A pointer to an argument.
pub fn arg<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

/// A device attribute.
pub fn attribute(attribute: CUdevice_attribute) -> i32 {
    let mut value = 0;
    cu!(cuDeviceGetAttribute(&mut value, attribute, 0));
    value
}

/// The text of a code's name or description.
pub fn text_of(text: *const c_char) -> String {
    assert!(!text.is_null(), "no text");
    // SAFETY: the driver's own text, which lives for ever.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// An event with these flags.
pub fn event(flags: u32) -> CUevent {
    let mut event = CUevent::NULL;
    cu!(cuEventCreate(&mut event, flags));
    event
}

/// What an array is made with: width, height and depth, and texels.
pub fn array_descriptor(
    [width, height, depth]: [usize; 3],
    format: CUarray_format,
    channels: u32,
    flags: u32,
) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: height,
        Depth: depth,
        Format: format,
        NumChannels: channels,
        Flags: flags,
    }
}

/// A texture read point by point, in texels, clamped.
pub fn plain_texture() -> CUDA_TEXTURE_DESC {
    CUDA_TEXTURE_DESC {
        addressMode: [CU_TR_ADDRESS_MODE_CLAMP; 3],
        filterMode: CU_TR_FILTER_MODE_POINT,
        flags: 0,
        maxAnisotropy: 0,
        mipmapFilterMode: CU_TR_FILTER_MODE_POINT,
        mipmapLevelBias: 0.0,
        minMipmapLevelClamp: 0.0,
        maxMipmapLevelClamp: 0.0,
        borderColor: [0.0; 4],
        reserved: [0; 12],
    }
}

/// What memory of device 0 is made with, shareable by descriptor.
pub fn allocation_prop() -> CUmemAllocationProp {
    CUmemAllocationProp {
        r#type: CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        location: CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 },
        win32HandleMetaData: null_mut(),
        compressionType: 0,
        gpuDirectRDMACapable: 0,
        usage: 0,
        reserved: [0; 4],
    }
}

/// A reservation of three granules with memory behind the first two, each of its own; answers address and granule.
pub fn mapped_pair() -> (CUdeviceptr, usize) {
    let (prop, mut g, mut start) = (allocation_prop(), 0, CUdeviceptr(0));
    cu!(cuMemGetAllocationGranularity(&mut g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    cu!(cuMemAddressReserve(&mut start, 3 * g, 0, CUdeviceptr(0), 0));
    for piece in 0..2 {
        let mut memory = 0;
        cu!(
            cuMemCreate(&mut memory, g, &prop, 0);
            cuMemMap(CUdeviceptr(start.0 + piece * g as u64), g, 0, memory, 0);
            cuMemRelease(memory);
        );
    }
    let access = CUmemAccessDesc { location: prop.location, flags: CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0 };
    cu!(cuMemSetAccess(start, 2 * g, &access, 1));
    (start, g)
}

/// A gate that streams stand at until it is opened.
pub struct Gate(&'static std::sync::atomic::AtomicU32);

impl Gate {
    /// A closed gate.
    #[allow(clippy::new_without_default, reason = "a gate is made closed, on purpose")]
    pub fn new() -> Gate {
        Gate(Box::leak(Box::default()))
    }

    /// What is queued in the stream from now on waits for the gate.
    pub fn hold(&self, stream: CUstream) {
        cu!(cuLaunchHostFunc(stream, Some(stand_at), std::ptr::from_ref(self.0).cast_mut().cast()));
    }

    /// Lets all pass.
    pub fn open(&self) {
        self.0.store(1, std::sync::atomic::Ordering::Release);
    }
}

unsafe extern "C" fn stand_at(gate: *mut c_void) {
    // SAFETY: a gate lives for ever.
    let gate = unsafe { &*gate.cast::<std::sync::atomic::AtomicU32>() };
    while gate.load(std::sync::atomic::Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
}

/// Kernels that several tests use.
pub const KERNELS: &str = include_str!("kernels.ptx");
