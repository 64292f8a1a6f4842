//! A run of calls, and the end of everything that they made.

use std::sync::OnceLock;

use cuda_abi::driver::*;
use cuda_abi::functions::{self, Api};

use crate::arguments::{Arena, Argument, Bytes, Known, Maker, Signature};
use crate::{arguments, host, symbols};

/// Functions that wait for what never comes, write files, change the process for good, or take a list of structures that lead to
/// others.
const LEFT_OUT: &[&str] = &[
    "WaitValue",
    "BatchMemOp",
    "ExternalSemaphores",
    // No other call comes through then.
    "CheckpointProcessLock",
    "DotPrint",
    "DumpToFile",
    "RegisterCallback",
    "RegisterAsync",
    "ProfilerInitialize",
    "MultiDevice",
    "__cuda",
    // A dump ends the process.
    "CoredumpSet",
    "CreateChannelDesc",
];

/// One run.
pub struct Session {
    known: Known,
    /// Reserved addresses, to be given back.
    reserved: Vec<(usize, usize)>,
    /// What the linker was given and writes to later.
    kept: Vec<Arena>,
}

/// The functions that a target calls: those of the driver, or also those of the runtime.
pub fn signatures(runtime: bool) -> &'static [Signature] {
    static ALL: [OnceLock<Vec<Signature>>; 2] = [OnceLock::new(), OnceLock::new()];
    ALL[usize::from(runtime)].get_or_init(|| {
        let called = functions::all().into_iter().filter(|function| {
            function.done
                && (function.api == Api::Driver || runtime && function.api == Api::Runtime)
                && !LEFT_OUT.iter().any(|part| function.name.contains(part))
                && symbols::address(function.name).is_some()
        });
        called
            .filter_map(|function| Some(Signature { name: function.name, parameters: function.parameters? }))
            .collect()
    })
}

/// Gets the process ready: small devices, kernels interpreted, no reports of faults that are looked for.
pub fn prepare() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let settings = [
            ("ANYWARP_BACKEND", "interp"),
            ("ANYWARP_MEMORY", "64M"),
            ("ANYWARP_DEVICES", "2"),
            ("ANYWARP_THREADS", "2"),
            ("ANYWARP_QUIET", "1"),
        ];
        for (name, value) in settings {
            // SAFETY: no other thread runs yet that reads the environment.
            unsafe { std::env::set_var(name, value) };
        }
        #[cfg(fuzzing)]
        runtime::use_driver(|name| {
            let address = name.to_str().ok().and_then(symbols::address);
            address.map_or(std::ptr::null_mut(), |function| function as *mut std::ffi::c_void)
        });
        call("cuInit", &[Argument::Words(vec![0])]);
    });
}

/// Runs what the fuzzer's bytes say, in a thread of its own: its stack of contexts ends with it.
pub fn run(bytes: &[u8], runtime: bool) {
    prepare();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = Session { known: Known::default(), reserved: Vec::new(), kept: Vec::new() };
            session.begin();
            let mut bytes = Bytes(bytes);
            while !bytes.0.is_empty() {
                session.step(&mut bytes, signatures(runtime));
            }
            session.end();
        });
    });
}

impl Session {
    /// One object of most kinds: without them few calls would get far.
    fn begin(&mut self) {
        let kernels = arguments::kernels();
        self.make("cuCtxCreate_v2", "CUcontext", &[0, 0]);
        let module = self.make("cuModuleLoadData", "CUmodule", &[kernels]);
        for name in [c"vecadd", c"bump", c"reverse", c"nothing"] {
            self.make("cuModuleGetFunction", "CUfunction", &[module, name.as_ptr() as usize]);
        }
        let library = self.make("cuLibraryLoadData", "CUlibrary", &[kernels, 0, 0, 0, 0, 0, 0]);
        self.make("cuLibraryGetKernel", "CUkernel", &[library, c"bump".as_ptr() as usize]);
        self.make("cuStreamCreate", "CUstream", &[0]);
        self.make("cuStreamCreate", "CUstream", &[1]);
        self.make("cuEventCreate", "CUevent", &[0]);
        let graph = self.make("cuGraphCreate", "CUgraph", &[0]);
        self.make("cuGraphAddEmptyNode", "CUgraphNode", &[graph, 0, 0]);
        // 8 × 4 texels of one float.
        let (flat, levels) = ([8_usize, 4, 1 << 32 | 32], [8_usize, 4, 0, 1 << 32 | 32, 2]);
        let array = self.make("cuArrayCreate_v2", "CUarray", &[flat.as_ptr() as usize]);
        self.make("cuMipmappedArrayCreate", "CUmipmappedArray", &[levels.as_ptr() as usize, 3]);
        let (mut resource, plain) = ([0_usize; 18], [0_usize; 18]);
        resource[1] = array;
        let (resource, plain) = (resource.as_ptr() as usize, plain.as_ptr() as usize);
        self.make("cuTexObjectCreate", "CUtexObject", &[resource, plain, 0]);
        self.make("cuSurfObjectCreate", "CUsurfObject", &[resource]);
        self.make("cuTexRefCreate", "CUtexref", &[]);
        for size in [4096, 100] {
            let address = self.make("cuMemAlloc_v2", "memory", &[size]);
            self.known.addresses.push(address);
        }
        let pinned = self.make("cuMemAllocHost_v2", "memory", &[4096]);
        self.known.addresses.push(pinned);
    }

    /// Makes an object with a function whose first parameter is a place for it.
    fn make(&mut self, function: &str, kind: &'static str, rest: &[usize]) -> usize {
        let mut made = 0_usize;
        let mut arguments = vec![Argument::Words(vec![&raw mut made as usize])];
        arguments.extend(rest.iter().map(|&word| Argument::Words(vec![word])));
        assert_eq!(call(function, &arguments), 0, "{function} at the beginning");
        self.known.add(kind, made);
        made
    }

    fn step(&mut self, bytes: &mut Bytes<'_>, functions: &'static [Signature]) {
        let choice = bytes.decision() | bytes.decision() << 8;
        self.perform(&functions[choice % functions.len()], bytes);
    }

    fn perform(&mut self, function: &'static Signature, bytes: &mut Bytes<'_>) {
        let mut arena = Arena::new();
        let mut maker = Maker { bytes, known: &self.known, arena: &mut arena };
        let arguments: Vec<_> =
            (0..function.parameters.len()).map(|index| maker.argument(function, index)).collect();
        if std::env::var_os("FUZZ_TRACE").is_some() {
            eprintln!("{}", function.name);
        }
        let code = call(function.name, &arguments);
        // What is no descriptor of anything usable is unknown, too.
        let failed_inside = code == CUDA_ERROR_UNKNOWN.0 && !function.name.contains("ImportExternal");
        assert!(!failed_inside, "{} failed inside", function.name);
        if code == 0 {
            self.learn(function, &arguments);
        }
        // An invocation of the linker uses its options until it is destroyed.
        if function.name.contains("LinkCreate") {
            self.kept.push(arena);
        }
    }

    /// Remembers what a call has given.
    fn learn(&mut self, function: &'static Signature, arguments: &[Argument]) {
        for (name, argument) in function.parameters.iter().zip(arguments) {
            let (Some(pointee), Argument::Words(words)) = (name.strip_prefix("*mut "), argument) else {
                continue;
            };
            if words[0] == 0 || matches!(pointee, "c_void" | "c_char") || pointee.starts_with("*const") {
                continue;
            }
            // SAFETY: such an argument is null or leads to a slot of the arena, or to the program's memory.
            let value = unsafe { *(words[0] as *const usize) };
            match pointee {
                "CUdeviceptr" | "*mut c_void" => {
                    if is_memory(value) || function.name.contains("Reserve") {
                        self.known.addresses.push(value);
                    }
                }
                _ => self.known.add(pointee, value),
            }
        }
        match (function.name, arguments) {
            ("cuMemAddressReserve", [Argument::Words(place), Argument::Words(size), ..]) => {
                // SAFETY: as above.
                self.reserved.push((unsafe { *(place[0] as *const usize) }, size[0]));
            }
            (name, [Argument::Words(place), ..])
                if name.contains("ExportToShareable") || name.contains("HandleForAddressRange") =>
            {
                // SAFETY: the driver wrote a descriptor there, which is the program's.
                unsafe { libc::close(*(place[0] as *const i32)) };
            }
            _ => {}
        }
    }

    /// Destroys everything. What cannot be is of a context that went before it.
    fn end(self) {
        let all = |name: &str| self.known.values.get(name).cloned().unwrap_or_default();
        let destroy = |kind: &str, function: &str| {
            for value in all(kind) {
                call(function, &[Argument::Words(vec![value])]);
            }
        };
        // Captures end with their streams; what runs ends with its context.
        destroy("CUgraphExec", "cuGraphExecDestroy");
        destroy("CUgraph", "cuGraphDestroy");
        destroy("CUlinkState", "cuLinkDestroy");
        destroy("CUcontext", "cuCtxDestroy_v2");
        destroy("CUlibrary", "cuLibraryUnload");
        for &(address, size) in &self.reserved {
            call("cuMemUnmap", &[Argument::Words(vec![address]), Argument::Words(vec![size])]);
            call("cuMemAddressFree", &[Argument::Words(vec![address]), Argument::Words(vec![size])]);
        }
        destroy("CUmemGenericAllocationHandle", "cuMemRelease");
        for device in 0..2 {
            call("cuDevicePrimaryCtxReset_v2", &[Argument::Words(vec![device])]);
            let mut pool = 0_usize;
            let place = Argument::Words(vec![&raw mut pool as usize]);
            call("cuDeviceGetDefaultMemPool", &[place, Argument::Words(vec![device])]);
            call("cuDeviceSetMemPool", &[Argument::Words(vec![device]), Argument::Words(vec![pool])]);
        }
        destroy("CUmemoryPool", "cuMemPoolDestroy");
        // SAFETY: the program's memory.
        unsafe { std::ptr::write_bytes(host::memory() as *mut u8, 0, host::LEN) };
    }
}

/// Whether the driver knows memory at an address.
fn is_memory(address: usize) -> bool {
    let mut kind = 0_u64;
    let place = Argument::Words(vec![&raw mut kind as usize]);
    let which = Argument::Words(vec![CU_POINTER_ATTRIBUTE_MEMORY_TYPE.0 as usize]);
    call("cuPointerGetAttribute", &[place, which, Argument::Words(vec![address])]) == 0
}

/// Calls a function as the C ABI of x86-64 has it: integers in six registers and on the stack, a number in a vector register,
/// structures on the stack.
fn call(name: &str, arguments: &[Argument]) -> u32 {
    let function = symbols::address(name).expect("a function of the table");
    let (mut registers, mut stack, mut number) = (Vec::new(), Vec::new(), 0.0);
    for argument in arguments {
        match argument {
            Argument::Float(value) => number = *value,
            Argument::Memory(words) => stack.extend(words),
            Argument::Words(words) if registers.len() + words.len() <= 6 => registers.extend(words),
            Argument::Words(words) => stack.extend(words),
        }
    }
    registers.resize(6, 0);
    assert!(stack.len() <= 20, "{name} has more arguments than this can pass");
    stack.resize(20, 0);
    let [a, b, c, d, e, f] = registers[..] else { unreachable!("resized above") };
    let on_stack: [usize; 20] = stack.try_into().expect("resized above");
    // SAFETY: an exported function with as many arguments as it takes, of the types it takes; a structure by value on the stack is
    // what it would be as separate words. More arguments do no harm: the caller removes them.
    unsafe {
        let function = std::mem::transmute::<unsafe extern "C" fn(), AnyFunction>(function);
        function(a, b, c, d, e, f, number, OnStack(on_stack))
    }
}

/// Arguments beyond the registers: too large to be passed otherwise.
#[repr(C)]
struct OnStack([usize; 20]);

type AnyFunction = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, f32, OnStack) -> u32;
