//! What the tests of the Runtime API share.
#![allow(dead_code, unused_imports, reason = "each test file uses some of it")]

pub use crate::answers::{differs, is_ours, our_runtime_only, ours_only, runtime_differs, set_env, skip};
pub use crate::runtime::functions::*;
pub use cuda_abi::runtime::*;
pub use std::ffi::{CStr, CString, c_char, c_void};
pub use std::ptr::{null, null_mut};

/// Functions of the driver, for programs that use both APIs.
pub mod driver {
    pub use crate::driver::functions::*;
    pub use cuda_abi::driver::*;
}

/// The default stream.
pub const DEFAULT: cudaStream_t = cudaStream_t::NULL;

/// Device memory.
pub fn malloc(bytes: usize) -> *mut c_void {
    let mut pointer = null_mut();
    cuda!(cudaMalloc(&mut pointer, bytes));
    pointer
}

/// Device memory with this content.
pub fn malloc_with<T: Copy>(values: &[T]) -> *mut c_void {
    let pointer = malloc(size_of_val(values));
    cuda!(cudaMemcpy(pointer, values.as_ptr().cast(), size_of_val(values), cudaMemcpyHostToDevice));
    pointer
}

/// Copies values out of device memory.
pub fn read<T: Copy + Default>(pointer: *const c_void, count: usize) -> Vec<T> {
    let mut values = vec![T::default(); count];
    cuda!(cudaMemcpy(values.as_mut_ptr().cast(), pointer, count * size_of::<T>(), cudaMemcpyDeviceToHost));
    values
}

/// A stream.
pub fn stream() -> cudaStream_t {
    let mut stream = cudaStream_t::NULL;
    cuda!(cudaStreamCreate(&mut stream));
    stream
}

/// An event.
pub fn event() -> cudaEvent_t {
    let mut event = cudaEvent_t::NULL;
    cuda!(cudaEventCreate(&mut event));
    event
}

/// A library from PTX.
pub fn library(ptx: &str) -> cudaLibrary_t {
    let mut library = cudaLibrary_t::NULL;
    let ptx = CString::new(ptx).expect("no NUL inside");
    cuda!(cudaLibraryLoadData(
        &mut library,
        ptx.as_ptr().cast(),
        null_mut(),
        null_mut(),
        0,
        null_mut(),
        null_mut(),
        0
    ));
    library
}

/// A library's kernel.
pub fn kernel_of(library: cudaLibrary_t, name: &CStr) -> cudaKernel_t {
    let mut kernel = cudaKernel_t::NULL;
    cuda!(cudaLibraryGetKernel(&mut kernel, library, name.as_ptr()));
    kernel
}

/// A kernel of [`KERNELS`], as launches and other functions take it.
pub fn kernel(name: &CStr) -> *const c_void {
    as_function(kernel_of(library(KERNELS), name))
}

/// A kernel's handle in the place of a host function.
pub fn as_function(kernel: cudaKernel_t) -> *const c_void {
    std::ptr::without_provenance(kernel.0)
}

/// Sizes in one dimension.
pub fn size(x: u32) -> dim3 {
    dim3 { x, y: 1, z: 1 }
}

/// Launches on a stream, with pointers to the arguments; answers with the call's code.
pub fn launch(
    kernel: *const c_void,
    grid: u32,
    block: u32,
    stream: cudaStream_t,
    arguments: &mut [*mut c_void],
) -> cudaError_t {
    // SAFETY: the test's arguments are what the kernel takes.
    unsafe { cudaLaunchKernel(kernel, size(grid), size(block), arguments.as_mut_ptr(), 0, stream) }
}

/// A pointer to an argument.
pub fn arg<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

/// Has a kernel write to an address where nothing is; answers with the launch's code.
pub fn fault() -> cudaError_t {
    let nowhere = 16u64;
    launch(kernel(c"poke"), 1, 1, DEFAULT, &mut [arg(&nowhere)])
}

/// The thread's last error, which is then forgotten.
pub fn last_error() -> cudaError_t {
    // SAFETY: no pointers.
    unsafe { cudaGetLastError() }
}

/// The thread's last error.
pub fn peek() -> cudaError_t {
    // SAFETY: no pointers.
    unsafe { cudaPeekAtLastError() }
}

/// The current context in the driver's sense.
pub fn current() -> driver::CUcontext {
    use driver::*;
    let mut context = CUcontext(1);
    cu!(cuCtxGetCurrent(&mut context));
    context
}

/// Whether device 0's primary context is alive.
pub fn primary_is_active() -> bool {
    use driver::*;
    let (mut flags, mut active) = (0, 0);
    cu!(cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
    active != 0
}

/// A device attribute.
pub fn attribute(attribute: cudaDeviceAttr) -> i32 {
    let mut value = 0;
    cuda!(cudaDeviceGetAttribute(&mut value, attribute, 0));
    value
}

/// The text of a code's name or description.
pub fn text_of(text: *const c_char) -> String {
    assert!(!text.is_null(), "no text");
    // SAFETY: the library's own text, which lives for ever.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// An address that nobody allocated.
pub fn garbage<T>() -> *mut T {
    std::ptr::without_provenance_mut(0x1234_5000)
}

/// Kernels that several tests use.
pub const KERNELS: &str = include_str!("../driver/kernels.ptx");
