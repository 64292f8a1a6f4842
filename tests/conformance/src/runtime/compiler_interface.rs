//! What the compiler's glue calls: fat binaries made here of PTX, registered by hand.

use super::common::*;

/// A fat binary of one PTX text, with the wrapper that the glue registers.
struct FatBinary {
    wrapper: Box<[u64; 3]>,
    _container: Box<[u64]>,
}

impl FatBinary {
    fn new(ptx: &str) -> FatBinary {
        let mut text = ptx.as_bytes().to_vec();
        text.resize((text.len() + 8) & !7, 0);
        let mut bytes = Vec::new();
        let half = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_le_bytes());
        let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
        let long = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
        // The container: magic number, version, size of this header, bytes that follow.
        word(&mut bytes, 0xBA55_ED50);
        half(&mut bytes, 1);
        half(&mut bytes, 16);
        long(&mut bytes, 80 + text.len() as u64);
        // One entry: PTX, size of its header, its size.
        half(&mut bytes, 1);
        half(&mut bytes, 0x0101);
        word(&mut bytes, 80);
        long(&mut bytes, text.len() as u64);
        // Not compressed; where the options are; PTX 8.0 for compute capability 8.0; no name.
        word(&mut bytes, 0);
        word(&mut bytes, 64);
        half(&mut bytes, 0);
        half(&mut bytes, 8);
        word(&mut bytes, 80);
        long(&mut bytes, 0);
        // 64 bits, Linux.
        long(&mut bytes, 0x11);
        long(&mut bytes, 0);
        long(&mut bytes, 0);
        // The options, of which there are none: NVIDIA's driver reads them without asking whether there are any.
        word(&mut bytes, 72);
        word(&mut bytes, 0);
        long(&mut bytes, 0);
        bytes.extend(text);
        let container: Box<[u64]> = bytes
            .chunks_exact(8)
            .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight bytes")))
            .collect();
        let wrapper = Box::new([0x1_466243B1, container.as_ptr().addr() as u64, 0]);
        FatBinary { wrapper, _container: container }
    }

    fn register(&mut self) -> *mut *mut c_void {
        // SAFETY: the wrapper lives as long as the registration, as tests keep it.
        let handle = unsafe { __cudaRegisterFatBinary(self.wrapper.as_mut_ptr().cast()) };
        assert!(!handle.is_null());
        handle
    }
}

fn register_kernel(handle: *mut *mut c_void, host: &u8, name: &CStr) {
    let (none, host) = (null_mut::<c_void>(), std::ptr::from_ref(host).cast());
    let text = name.as_ptr();
    // SAFETY: a registered binary's handle and texts that live for ever.
    unsafe {
        __cudaRegisterFunction(handle, host, text.cast_mut(), text, -1, none, none, none, none, none.cast());
    }
}

fn register_variable<T>(handle: *mut *mut c_void, shadow: &T, name: &CStr, constant: i32) {
    let (shadow, text) = (std::ptr::from_ref(shadow).cast_mut().cast(), name.as_ptr());
    // SAFETY: as above.
    unsafe { __cudaRegisterVar(handle, shadow, text.cast_mut(), text, 0, size_of::<T>(), constant, 0) };
}

/// What `<<<grid, block>>>` and the kernel's stub do.
fn launch_as_compiled(host: &u8, grid: dim3, block: dim3, arguments: &mut [*mut c_void]) -> cudaError_t {
    let host: *const c_void = std::ptr::from_ref(host).cast();
    let mut kernel = cudaKernel_t::NULL;
    let (mut popped_grid, mut popped_block, mut shared) = (size(0), size(0), 1);
    let mut stream = driver::CUstream(1);
    // SAFETY: results have their places, and the test's arguments are what the kernel takes.
    unsafe {
        assert_eq!(__cudaPushCallConfiguration(grid, block, 0, null_mut()), 0);
        let found = __cudaGetKernel(&mut kernel, host);
        let place = (&raw mut stream).cast();
        let popped = __cudaPopCallConfiguration(&mut popped_grid, &mut popped_block, &mut shared, place);
        assert_eq!(popped, cudaSuccess);
        assert_eq!((popped_grid.x, popped_block.x, shared, stream), (grid.x, block.x, 0, DEFAULT));
        if found != cudaSuccess {
            return found;
        }
        __cudaLaunchKernel(kernel, grid, block, arguments.as_mut_ptr(), shared, stream)
    }
}

/// Registers a binary with one variable. What is returned keeps it in place.
pub(super) fn one_variable<T>(ptx: &str, shadow: &T, name: &CStr) -> impl Sized + use<T> {
    let mut binary = FatBinary::new(ptx);
    let handle = binary.register();
    register_variable(handle, shadow, name, 0);
    binary
}

static ADD: u8 = 0;
static BUMP: u8 = 1;
static STRANGER: u8 = 2;
static COUNTER: u32 = 0;
static SCALE: f32 = 0.0;

fn registered() -> (FatBinary, *mut *mut c_void) {
    let mut binary = FatBinary::new(KERNELS);
    let handle = binary.register();
    register_kernel(handle, &ADD, c"vecadd");
    register_kernel(handle, &BUMP, c"bump");
    register_variable(handle, &COUNTER, c"counter", 0);
    register_variable(handle, &SCALE, c"scale", 1);
    // SAFETY: the binary's handle.
    unsafe { __cudaRegisterFatBinaryEnd(handle) };
    (binary, handle)
}

pub fn a_registered_kernel_is_launched_as_the_compiler_does() {
    let (_binary, _) = registered();
    let (a, b) = (malloc_with(&[1.0f32, 2.0, 3.0]), malloc_with(&[10.0f32, 20.0, 30.0]));
    let (sum, count) = (malloc(12), 3u32);
    let mut arguments = [arg(&a), arg(&b), arg(&sum), arg(&count)];
    assert_eq!(launch_as_compiled(&ADD, size(1), size(32), &mut arguments), cudaSuccess);
    assert_eq!(read::<f32>(sum, 3), [11.0, 22.0, 33.0]);
    // The same by the host function's address.
    cuda!(cudaMemset(sum, 0, 12));
    let host = std::ptr::from_ref(&ADD).cast();
    assert_eq!(launch(host, 1, 32, DEFAULT, &mut arguments), cudaSuccess);
    assert_eq!(read::<f32>(sum, 3), [11.0, 22.0, 33.0]);
    // And on the thread's own default stream.
    cuda!(cudaMemset(sum, 0, 12));
    let mut kernel = cudaKernel_t::NULL;
    cuda!(__cudaGetKernel(&mut kernel, host));
    cuda!(__cudaLaunchKernel_ptsz(kernel, size(1), size(32), arguments.as_mut_ptr(), 0, DEFAULT));
    cuda!(cudaDeviceSynchronize());
    assert_eq!(read::<f32>(sum, 3), [11.0, 22.0, 33.0]);
}

pub fn a_node_tells_the_host_function_of_its_kernel() {
    let (_binary, _) = registered();
    let counter = malloc_with(&[0u32]);
    let host: *mut c_void = std::ptr::from_ref(&BUMP).cast_mut().cast();
    let (mut arguments, mut main, mut node) = ([arg(&counter)], cudaGraph_t::NULL, cudaGraphNode_t::NULL);
    // SAFETY: numbers and pointers, for which zero is a value.
    let nothing: cudaKernelNodeParams = unsafe { std::mem::zeroed() };
    let params = cudaKernelNodeParams {
        func: host,
        gridDim: size(1),
        blockDim: size(1),
        kernelParams: arguments.as_mut_ptr(),
        ..nothing
    };
    let mut described = nothing;
    cuda!(
        cudaGraphCreate(&mut main, 0);
        cudaGraphAddKernelNode(&mut node, main, null(), 0, &params);
        cudaGraphKernelNodeGetParams(node, &mut described);
    );
    assert_eq!(described.func, host);
    // It serves again, as programs do that change a captured launch.
    cuda!(cudaGraphKernelNodeSetParams(node, &described));
}

pub fn registering_needs_no_driver() {
    let mut context = driver::CUcontext::NULL;
    let (_binary, handle) = registered();
    fails!(driver::CUDA_ERROR_NOT_INITIALIZED, current_context(&mut context));
    // SAFETY: the binary's handle.
    unsafe { __cudaUnregisterFatBinary(handle) };
    fails!(driver::CUDA_ERROR_NOT_INITIALIZED, current_context(&mut context));
}

use driver::cuCtxGetCurrent as current_context;

pub fn registered_variables_are_reached_by_their_shadows() {
    let (_binary, _) = registered();
    let counter: *const c_void = std::ptr::from_ref(&COUNTER).cast();
    let (mut value, mut bytes, mut address) = (0u32, 0usize, null_mut());
    let to: *mut c_void = (&raw mut value).cast();
    cuda!(cudaGetSymbolSize(&mut bytes, counter); cudaGetSymbolAddress(&mut address, counter));
    assert_eq!((bytes, read::<u32>(address, 1)), (4, vec![7]));
    let by = 3u32;
    assert_eq!(launch_as_compiled(&BUMP, size(2), size(32), &mut [arg(&by)]), cudaSuccess);
    cuda!(cudaMemcpyFromSymbol(to, counter, 4, 0, cudaMemcpyDeviceToHost));
    assert_eq!(value, 7 + 3 * 64);
    let new = 100u32;
    cuda!(cudaMemcpyToSymbol(counter, arg(&new), 4, 0, cudaMemcpyHostToDevice));
    assert_eq!(read::<u32>(address, 1), [100]);
    let newer = 200u32;
    cuda!(cudaMemcpyToSymbolAsync(counter, arg(&newer), 4, 0, cudaMemcpyHostToDevice, DEFAULT));
    cuda!(cudaMemcpyFromSymbolAsync(to, counter, 4, 0, cudaMemcpyDefault, DEFAULT); cudaDeviceSynchronize());
    assert_eq!(value, 200);
    let last = 300u32;
    cuda!(cudaMemcpyToSymbol_ptds(counter, arg(&last), 4, 0, cudaMemcpyHostToDevice));
    cuda!(cudaMemcpyFromSymbol_ptds(to, counter, 4, 0, cudaMemcpyDeviceToHost));
    assert_eq!(value, 300);
    let very_last = 400u32;
    let any = cudaMemcpyDefault;
    cuda!(cudaMemcpyToSymbolAsync_ptsz(counter, arg(&very_last), 4, 0, any, DEFAULT));
    cuda!(cudaMemcpyFromSymbolAsync_ptsz(to, counter, 4, 0, any, DEFAULT));
    cuda!(cudaStreamSynchronize_ptsz(DEFAULT));
    assert_eq!(value, 400);
    let down = cudaMemcpyDeviceToHost;
    fails!(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(counter, arg(&new), 4, 0, down));
    fails!(cudaErrorInvalidValue, cudaMemcpyToSymbol(counter, arg(&new), 4, 1, any));
    fails!(cudaErrorInvalidValue, cudaMemcpyFromSymbol(to, counter, 5, 0, any));
    fails!(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(null(), arg(&new), 4, 0, any));
    fails!(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&mut address, arg(&new)));
    fails!(cudaErrorInvalidSymbol, cudaGetSymbolSize(&mut bytes, null()));

    let scale: *const c_void = std::ptr::from_ref(&SCALE).cast();
    let mut factor = 0.0f32;
    cuda!(cudaMemcpyFromSymbol((&raw mut factor).cast(), scale, 4, 0, cudaMemcpyDeviceToHost));
    assert_eq!(factor, 2.0);
}

pub fn each_context_has_its_own_variables() {
    let (_binary, _) = registered();
    let counter: *const c_void = std::ptr::from_ref(&COUNTER).cast();
    let mut first = null_mut();
    cuda!(cudaGetSymbolAddress(&mut first, counter));
    cuda!(cudaMemset(first, 0, 4));
    let mut own = driver::CUcontext::NULL;
    cu!(create(&mut own, null_mut(), 0, 0));
    let mut second = null_mut();
    cuda!(cudaGetSymbolAddress(&mut second, counter));
    assert_ne!(first, second);
    assert_eq!(read::<u32>(second, 1), [7]);
    // A reset begins anew.
    cuda!(cudaSetDevice(0); cudaDeviceReset(); cudaGetSymbolAddress(&mut first, counter));
    assert_eq!(read::<u32>(first, 1), [7]);
}

use driver::{CUDA_SUCCESS, cuCtxCreate_v4 as create};

pub fn a_managed_variable_is_there_for_the_host() {
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n\
               .visible .global .attribute(.managed) .align 4 .u32 shared = 42;\n\
               .visible .entry raise() { .reg .u32 %r; atom.global.add.u32 %r, [shared], 1; ret; }";
    let mut binary = FatBinary::new(ptx);
    let handle = binary.register();
    static RAISE: u8 = 0;
    register_kernel(handle, &RAISE, c"raise");
    let mut pointer: *mut c_void = null_mut();
    let (place, name) = (&raw mut pointer, c"shared");
    // SAFETY: the binary's handle; the pointer and the text live through the test.
    unsafe {
        __cudaRegisterManagedVar(handle, place, name.as_ptr().cast_mut(), name.as_ptr(), 0, 4, 0, 0);
        __cudaRegisterFatBinaryEnd(handle);
        assert_ne!(__cudaInitModule(handle), 0);
    }
    // SAFETY: the library wrote the variable's address.
    let shared = unsafe { place.read() }.cast::<u32>();
    // SAFETY: managed memory, which no kernel uses now.
    assert_eq!(unsafe { shared.read() }, 42);
    assert_eq!(launch_as_compiled(&RAISE, size(1), size(8), &mut []), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    // SAFETY: as above.
    assert_eq!(unsafe { shared.read() }, 50);
    // A program's name for the variable leads to its place.
    let mut address = null_mut();
    cuda!(cudaGetSymbolAddress(&mut address, shared.cast()));
    assert_eq!(address, shared.cast());
}

pub fn device_code_reaches_a_variable_of_the_host() {
    if attribute(cudaDevAttrPageableMemoryAccess) == 0 {
        skip("the device does not reach the host's memory");
    }
    static SHARED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(40);
    static RAISE: u8 = 0;
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .global .align 4 .u32 host_counter;\n\
               .visible .entry raise() { .reg .u32 %r; atom.global.add.u32 %r, [host_counter], 1; ret; }";
    let mut binary = FatBinary::new(ptx);
    let handle = binary.register();
    register_kernel(handle, &RAISE, c"raise");
    let variable = SHARED.as_ptr().cast();
    // SAFETY: the binary's handle, and a text and a variable that live for ever.
    unsafe { __cudaRegisterHostVar(handle, c"host_counter".as_ptr(), variable, 4) };
    assert_eq!(launch_as_compiled(&RAISE, size(1), size(2), &mut []), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    assert_eq!(SHARED.load(std::sync::atomic::Ordering::SeqCst), 42);
    // Without the host's the code has a variable of its own, as every program on its own that defines it nowhere.
    let mut alone = FatBinary::new(ptx);
    static OTHER: u8 = 1;
    register_kernel(alone.register(), &OTHER, c"raise");
    assert_eq!(launch_as_compiled(&OTHER, size(1), size(1), &mut []), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    assert_eq!(SHARED.load(std::sync::atomic::Ordering::SeqCst), 42);
}

pub fn an_unregistered_binary_is_forgotten() {
    let (_binary, handle) = registered();
    let by = 1u32;
    let bump: *const c_void = std::ptr::from_ref(&BUMP).cast();
    assert_eq!(launch(bump, 1, 1, DEFAULT, &mut [arg(&by)]), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    // SAFETY: the binary's handle.
    unsafe { __cudaUnregisterFatBinary(handle) };
    if ours_only("NVIDIA's driver takes the address of what is registered no more for a kernel") {
        assert_eq!(launch(bump, 1, 1, DEFAULT, &mut [arg(&by)]), cudaErrorInvalidResourceHandle);
    }
    let counter: *const c_void = std::ptr::from_ref(&COUNTER).cast();
    fails!(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&mut null_mut(), counter));
    // The same code may come again, as when a shared object is opened anew.
    let (_again, _) = registered();
    assert_eq!(launch(bump, 1, 1, DEFAULT, &mut [arg(&by)]), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
}

pub fn wrong_code_is_reported_by_each_launch() {
    let mut binary = FatBinary::new(".version 8.0\n.target sm_80\n.address_size 64\nnonsense");
    let handle = binary.register();
    register_kernel(handle, &ADD, c"vecadd");
    for _ in 0..2 {
        let code = launch_as_compiled(&ADD, size(1), size(1), &mut []);
        assert_eq!(code, cudaErrorInvalidPtx);
    }
    let mut missing = FatBinary::new(KERNELS);
    let handle = missing.register();
    register_kernel(handle, &BUMP, c"no_such_kernel");
    assert_eq!(launch_as_compiled(&BUMP, size(1), size(1), &mut []), cudaErrorSymbolNotFound);
    assert_eq!(launch(std::ptr::from_ref(&BUMP).cast(), 1, 1, DEFAULT, &mut []), cudaErrorSymbolNotFound);
}

pub fn configurations_are_a_stack() {
    let (mut grid, mut block, mut shared) = (size(0), size(0), 0);
    let mut stream = DEFAULT;
    let place: *mut c_void = (&raw mut stream).cast();
    fails!(
        cudaErrorMissingConfiguration,
        __cudaPopCallConfiguration(&mut grid, &mut block, &mut shared, place)
    );
    let _ = last_error();
    for number in 1..=3 {
        // SAFETY: no pointer is followed.
        assert_eq!(unsafe { __cudaPushCallConfiguration(size(number), size(32), 8, null_mut()) }, 0);
    }
    for number in (1..=3).rev() {
        cuda!(__cudaPopCallConfiguration(&mut grid, &mut block, &mut shared, place));
        assert_eq!((grid.x, block.x, shared), (number, 32, 8));
    }
    fails!(
        cudaErrorMissingConfiguration,
        __cudaPopCallConfiguration(&mut grid, &mut block, &mut shared, place)
    );
    // Another thread's stack is another.
    // SAFETY: as above.
    assert_eq!(unsafe { __cudaPushCallConfiguration(size(9), size(1), 0, null_mut()) }, 0);
    std::thread::spawn(|| {
        let (mut grid, mut block, mut shared, mut stream) = (size(0), size(0), 0, DEFAULT);
        let place: *mut c_void = (&raw mut stream).cast();
        fails!(
            cudaErrorMissingConfiguration,
            __cudaPopCallConfiguration(&mut grid, &mut block, &mut shared, place)
        );
    })
    .join()
    .expect("the other thread agrees");
}

pub fn what_was_not_registered_is_refused() {
    let stranger: *const c_void = std::ptr::from_ref(&STRANGER).cast();
    let mut attributes = std::mem::MaybeUninit::uninit();
    fails!(cudaErrorInvalidDeviceFunction, __cudaGetKernel(&mut cudaKernel_t::default(), stranger));
    assert_eq!(launch(null(), 1, 1, DEFAULT, &mut []), cudaErrorInvalidDeviceFunction);
    assert_eq!(launch(stranger, 1, 1, DEFAULT, &mut []), cudaErrorInvalidResourceHandle);
    fails!(cudaErrorInvalidResourceHandle, cudaFuncGetAttributes(attributes.as_mut_ptr(), stranger));
    if our_runtime_only("NVIDIA's library follows the pointers that its glue passes") {
        let nothing = null_mut();
        // SAFETY: null and unknown handles are noticed.
        unsafe {
            __cudaUnregisterFatBinary(null_mut());
            __cudaUnregisterFatBinary(garbage());
            __cudaRegisterFatBinaryEnd(null_mut());
            __cudaRegisterFunction(
                garbage(),
                null(),
                null_mut(),
                null(),
                0,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing.cast(),
            );
            __cudaRegisterVar(garbage(), null_mut(), null_mut(), null(), 0, 4, 0, 0);
            __cudaRegisterHostVar(garbage(), null(), null_mut(), 4);
            __cudaRegisterUnifiedTable(garbage(), null_mut(), 0, null_mut(), 0);
            assert_eq!(__cudaInitModule(garbage()), 1);
            let null_wrapper = __cudaRegisterFatBinary(null_mut());
            assert_eq!(__cudaInitModule(null_wrapper), 0);
            __cudaUnregisterFatBinary(null_wrapper);
        }
        fails!(
            cudaErrorInvalidDeviceFunction,
            __cudaLaunchKernel(cudaKernel_t::NULL, size(1), size(1), null_mut(), 0, DEFAULT)
        );
        let known = std::ptr::from_ref(&ADD).cast();
        let (_binary, _) = registered();
        fails!(cudaErrorInvalidValue, __cudaGetKernel(null_mut(), known));
    }
}

pub fn many_threads_register_and_launch() {
    let (_binary, _) = registered();
    let counter: *const c_void = std::ptr::from_ref(&COUNTER).cast();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let mut other = FatBinary::new(KERNELS);
                    let handle = other.register();
                    let host = Box::new(0u8);
                    register_kernel(handle, &host, c"nothing");
                    assert_eq!(launch_as_compiled(&host, size(1), size(1), &mut []), cudaSuccess);
                    let by = 1u32;
                    assert_eq!(launch_as_compiled(&BUMP, size(1), size(32), &mut [arg(&by)]), cudaSuccess);
                    cuda!(cudaDeviceSynchronize());
                    // SAFETY: the binary's handle.
                    unsafe { __cudaUnregisterFatBinary(handle) };
                }
            });
        }
    });
    let mut value = 0u32;
    cuda!(cudaMemcpyFromSymbol((&raw mut value).cast(), counter, 4, 0, cudaMemcpyDeviceToHost));
    assert_eq!(value, 7 + 8 * 20 * 32);
}
