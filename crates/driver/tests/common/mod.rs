//! What the tests share: calls that must succeed or give one code, and pointers to locals.
#![allow(dead_code, unused_macros, unused_imports, reason = "each test file uses some of it")]

pub use cuda_abi::args::{Array, In, Out, Text};
pub use cuda_abi::driver::*;
pub use driver::api::*;
pub use std::ffi::{CString, c_void};
pub use std::ptr::{null, null_mut};

/// Calls that must succeed, one after another.
macro_rules! cu {
    ($($name:ident($($argument:expr),* $(,)?));+ $(;)?) => {{
        $(fails!(CUDA_SUCCESS, $name($($argument),*));)+
    }};
}

/// A call that must give this code.
macro_rules! fails {
    ($code:expr, $name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the test passes what the manual asks for, or what the driver must notice.
        assert_eq!(unsafe { $name($($argument),*) }, $code, "{}", stringify!($name($($argument),*)))
    };
}
pub(crate) use {cu, fails};

/// A place for an answer.
pub fn out<T>(place: &mut T) -> Out<T> {
    // SAFETY: a reference can be written; calls end before the local does.
    unsafe { Out::new(place) }
}

/// No place for an answer.
pub fn nowhere<T>() -> Out<T> {
    // SAFETY: null is allowed.
    unsafe { Out::new(null_mut()) }
}

/// A structure passed by pointer.
pub fn by_ref<T: Copy>(value: &T) -> In<T> {
    // SAFETY: a reference can be read; calls end before the local does.
    unsafe { In::new(value) }
}

/// Several values passed by pointer.
pub fn array<T: Copy>(values: &mut [T]) -> Array<T> {
    // SAFETY: as long as the test passes the slice's length along.
    unsafe { Array::new(values.as_mut_ptr()) }
}

/// No array.
pub fn no_array<T: Copy>() -> Array<T> {
    // SAFETY: null is allowed.
    unsafe { Array::new(null_mut()) }
}

/// A C string literal as an argument.
pub fn text(text: &'static std::ffi::CStr) -> Text {
    // SAFETY: a C string that lives for ever.
    unsafe { Text::new(text.as_ptr()) }
}

/// Text of any origin as an argument; leaked, as tests end soon.
pub fn any_text(content: &str) -> Text {
    text(Box::leak(CString::new(content).expect("no NUL inside").into_boxed_c_str()))
}

/// Initialises the driver. Unless the environment chooses, kernels are interpreted: the compiler is a library of its own, which
/// these tests do not build.
pub fn init() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("ANYWARP_BACKEND").is_none() {
            // SAFETY: every test of this process comes here first, and the environment is read below, by this thread.
            unsafe { std::env::set_var("ANYWARP_BACKEND", "interp") };
        }
        cu!(cuInit(0));
    });
}

/// A new context, current on this thread.
pub fn new_context() -> CUcontext {
    init();
    let mut context = CUcontext::NULL;
    cu!(cuCtxCreate_v4(out(&mut context), null_mut(), 0, 0));
    context
}

/// The current context.
pub fn current() -> CUcontext {
    let mut context = CUcontext(1);
    cu!(cuCtxGetCurrent(out(&mut context)));
    context
}

/// Device memory.
pub fn alloc(bytes: usize) -> CUdeviceptr {
    let mut pointer = CUdeviceptr(0);
    cu!(cuMemAlloc_v2(out(&mut pointer), bytes));
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
    cu!(cuModuleLoadData(out(&mut module), ptx.as_ptr().cast()));
    module
}

/// A kernel of a module.
pub fn function(module: CUmodule, name: &str) -> CUfunction {
    let mut function = CUfunction::NULL;
    cu!(cuModuleGetFunction(out(&mut function), module, any_text(name)));
    function
}

/// Launches on a stream, with pointers to the arguments.
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

/// A pointer to an argument.
pub fn arg<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

/// Kernels that several tests use.
pub const KERNELS: &str = include_str!("kernels.ptx");
