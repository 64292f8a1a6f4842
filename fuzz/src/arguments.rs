//! What an argument of each type can be.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::OnceLock;

use crate::host;

/// The fuzzer's bytes, one decision after another.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// The next decision; 0 when there are none left.
    pub fn decision(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first.into()
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.decision() % from.len()]
    }
}

/// An argument as the C ABI passes it.
pub enum Argument {
    /// In an integer register, or on the stack.
    Words(Vec<usize>),
    /// By value, but too large for registers.
    Memory(Vec<usize>),
    /// In a floating-point register.
    Float(f32),
}

/// Memory for what arguments point to, for one call.
pub struct Arena {
    words: Vec<Box<[usize; SLOT]>>,
    texts: Vec<CString>,
}

/// Words that a pointer argument can rely on.
const SLOT: usize = 512;

impl Arena {
    /// Empty.
    pub fn new() -> Arena {
        Arena { words: Vec::new(), texts: Vec::new() }
    }

    fn slot(&mut self, words: &[usize]) -> usize {
        let mut slot = Box::new([0; SLOT]);
        slot[..words.len()].copy_from_slice(words);
        self.words.push(slot);
        self.words.last().expect("pushed above").as_ptr() as usize
    }

    fn text(&mut self, text: &str) -> usize {
        self.texts.push(CString::new(text).expect("no NUL inside"));
        self.texts.last().expect("pushed above").as_ptr() as usize
    }
}

impl Default for Arena {
    fn default() -> Arena {
        Arena::new()
    }
}

/// What earlier calls gave.
#[derive(Default)]
pub struct Known {
    /// Values by type: handles that live or lived, and values of enumerations.
    pub values: HashMap<&'static str, Vec<usize>>,
    /// Addresses of memory that the driver gave.
    pub addresses: Vec<usize>,
}

/// The runtime's types that are the driver's under another name.
fn driver_name(name: &str) -> &str {
    match name {
        "cudaStream_t" => "CUstream",
        "cudaEvent_t" => "CUevent",
        "cudaGraph_t" => "CUgraph",
        "cudaGraphNode_t" => "CUgraphNode",
        "cudaGraphExec_t" => "CUgraphExec",
        "cudaMemPool_t" => "CUmemoryPool",
        "cudaKernel_t" => "CUkernel",
        "cudaLibrary_t" => "CUlibrary",
        "cudaFunction_t" => "CUfunction",
        "cudaArray_t" | "cudaArray_const_t" => "CUarray",
        "cudaMipmappedArray_t" | "cudaMipmappedArray_const_t" => "CUmipmappedArray",
        "cudaTextureObject_t" => "CUtexObject",
        "cudaSurfaceObject_t" => "CUsurfObject",
        other => other,
    }
}

impl Known {
    /// Remembers a value of a type.
    pub fn add(&mut self, name: &'static str, value: usize) {
        let values = self.values.entry(driver_name(name)).or_default();
        if values.last() != Some(&value) {
            values.push(value);
        }
    }

    fn of(&self, name: &str) -> &[usize] {
        self.values.get(driver_name(name)).map_or(&[], Vec::as_slice)
    }
}

/// Numbers that count something.
const COUNTS: &[usize] = &[0, 1, 1, 2, 2, 3, 4, 7, 8];
/// Numbers that measure memory.
const SIZES: &[usize] = &[
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    15,
    16,
    32,
    64,
    100,
    255,
    256,
    1000,
    1024,
    4096,
    4097,
    65_536,
    1 << 20,
    // None of these is any memory's size, whatever it is multiplied with or added to.
    1 << 47,
    1 << 62,
    usize::MAX / 2 + 1,
    usize::MAX - 15,
    usize::MAX,
];
/// Numbers that say something else.
const NUMBERS: &[usize] = &[
    0,
    0,
    1,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    16,
    31,
    32,
    33,
    64,
    100,
    255,
    256,
    1000,
    1024,
    1025,
    4096,
    49_152,
    65_535,
    65_536,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];
const TEXTS: &[&str] = &[
    "",
    "vecadd",
    "bump",
    "mixed",
    "reverse",
    "nothing",
    "at_most_64",
    "counter",
    "cuMemAlloc",
    "no such name",
    "/no/such/file",
    "0000:00:00.0",
    "0000:01:00.0",
    "ff",
    "1:2:3:4",
    "\u{fffd}",
];
/// The kernels of the driver's own tests.
const KERNELS: &str = include_str!("../../crates/driver/tests/common/kernels.ptx");
const IMAGES: &[&str] = &[
    KERNELS,
    KERNELS,
    KERNELS,
    "",
    "nonsense",
    ".version 7.8\n.target sm_90\n.address_size 64\n",
    "\u{7f}ELF",
];

/// An image with all kernels, as the loading functions take it.
pub fn kernels() -> usize {
    static IMAGE: OnceLock<CString> = OnceLock::new();
    IMAGE.get_or_init(|| CString::new(KERNELS).expect("no NUL inside")).as_ptr() as usize
}

/// A function as the table has it.
pub struct Signature {
    /// The exported name.
    pub name: &'static str,
    /// Types of its parameters.
    pub parameters: Vec<&'static str>,
}

/// Makes arguments for one call.
pub struct Maker<'a, 'b> {
    /// Decides.
    pub bytes: &'a mut Bytes<'b>,
    /// Gives handles.
    pub known: &'a Known,
    /// Keeps what arguments point to.
    pub arena: &'a mut Arena,
}

impl Maker<'_, '_> {
    /// The argument for a parameter.
    pub fn argument(&mut self, function: &Signature, index: usize) -> Argument {
        let name = function.parameters[index];
        let launches = function.name.contains("Launch");
        let words = match name {
            "f32" => return Argument::Float(1.5),
            "CUipcMemHandle" | "CUipcEventHandle" | "cudaIpcMemHandle_t" | "cudaIpcEventHandle_t" => {
                return Argument::Memory(self.many(8, Self::small));
            }
            "cudaExtent" | "cudaPos" => return Argument::Memory(self.many(3, Self::size)),
            "cudaPitchedPtr" => {
                let mut words = vec![self.address()];
                words.extend(self.many(3, Self::size));
                return Argument::Memory(words);
            }
            "dim3" => {
                let [x, y, z] = [(); 3].map(|()| self.dimension());
                vec![x | y << 32, z]
            }
            "CUmemLocation" | "cudaMemLocation" => {
                vec![self.bytes.choose(&[0, 1, 1, 2, 1 | 1 << 32, 1 | 0xffff_ffff << 32])]
            }
            "CUdeviceptr" => vec![self.address()],
            "CUdevice" => vec![self.bytes.choose(&[0, 0, 0, 1, 1, 2, 0xffff_ffff])],
            "CUhostFn"
            | "CUstreamCallback"
            | "CUoccupancyB2DSize"
            | "cudaHostFn_t"
            | "cudaStreamCallback_t" => {
                vec![if self.bytes.decision().is_multiple_of(8) { 0 } else { called as *const () as usize }]
            }
            "usize" | "u64" if self.counts(function, index) => vec![self.bytes.choose(COUNTS)],
            "u32" | "i32" if launches => {
                vec![self.dimension()]
            }
            "u32" | "i32" if self.counts(function, index) => vec![self.bytes.choose(COUNTS)],
            "usize" | "u64" => vec![self.size()],
            "u32" | "i32" | "u16" | "u8" => vec![self.small()],
            _ if name.starts_with('*') => vec![self.pointer(function, index)],
            _ => vec![self.value(name)],
        };
        Argument::Words(words)
    }

    /// Whether a number belongs to the array beside it.
    fn counts(&self, function: &Signature, index: usize) -> bool {
        let is_array = |name: &&str| {
            let pointee = name.trim_start_matches("*const ").trim_start_matches("*mut ");
            name.starts_with("*const ") && !matches!(pointee, "c_void" | "c_char")
                || matches!(
                    pointee,
                    "CUjit_option" | "CUlibraryOption" | "cudaJitOption" | "cudaLibraryOption"
                )
                || pointee == "*mut c_void" && function.name.contains("Option")
                || matches!(pointee, "CUexecAffinityParam" | "CUpointer_attribute" | "cudaMemRangeAttribute")
        };
        let neighbours = [index.checked_sub(1), Some(index + 1), index.checked_sub(2)];
        neighbours.into_iter().flatten().filter_map(|place| function.parameters.get(place)).any(is_array)
            || [
                "LinkAdd",
                "LinkCreate",
                "LoadData",
                "LoadFromFile",
                "Attributes",
                "MemPoolSetAccess",
                "MemSetAccess",
                "ParamSetv",
                "RangeGetAttribute",
                "Batch",
            ]
            .iter()
            .any(|part| function.name.contains(part))
    }

    fn pointer(&mut self, function: &Signature, index: usize) -> usize {
        let name = function.parameters[index];
        if self.bytes.decision() % 32 == 31 {
            return 0;
        }
        match name {
            "*const c_char" => {
                let text = self.bytes.choose(TEXTS);
                self.arena.text(text)
            }
            "*const c_void" | "*mut c_void" if takes_image(function.name) => {
                let image = self.bytes.choose(IMAGES);
                // Whatever length goes with it is in the memory too.
                self.arena.text(&format!("{image}{}", " ".repeat(64)))
            }
            "*const c_void" | "*mut c_void" if is_accessed(function.name) => {
                host::memory() + self.bytes.decision() * 16
            }
            "*const c_void" | "*mut c_void" => match self.bytes.decision() % 8 {
                0 if function.name.starts_with("cuda") => self.value("CUkernel"),
                0..4 => self.address(),
                4 => host::memory(),
                _ => host::memory() + self.bytes.decision() * 16,
            },
            "*mut *mut c_void" if index > 0 && function.parameters[index - 1] == name => self.extra(),
            "*mut *mut c_void" => self.pointers(),
            "*const CUlaunchConfig" => {
                let [gx, gy, gz, bx, by, bz] = [(); 6].map(|()| self.dimension());
                let (stream, attributes) = (self.value("CUstream"), self.attributes());
                let shared = self.bytes.choose(&[0, 0, 64, 0xffff_ffff]);
                let count = self.bytes.decision() % 3;
                let words = [gx | gy << 32, gz | bx << 32, by | bz << 32, shared, stream, attributes, count];
                self.arena.slot(&words)
            }
            "*const cudaLaunchConfig_t" => {
                let [gx, gy, gz, bx, by, bz] = [(); 6].map(|()| self.dimension());
                let (stream, attributes) = (self.value("CUstream"), self.attributes());
                let shared = self.bytes.choose(&[0, 0, 64, usize::MAX]);
                let count = self.bytes.decision() % 3;
                let words = [gx | gy << 32, gz | bx << 32, by | bz << 32, shared, stream, attributes, count];
                self.arena.slot(&words)
            }
            "*const CUDA_KERNEL_NODE_PARAMS"
            | "*const CUDA_KERNEL_NODE_PARAMS_v1"
            | "*const cudaKernelNodeParams" => {
                let [gx, gy, gz, bx, by, bz] = [(); 6].map(|()| self.dimension());
                let kind = self.bytes.choose(&["CUfunction", "CUkernel", "CUfunction", "CUmodule"]);
                let (function, parameters) = (self.value(kind), self.pointers());
                let (kernel, context) = (self.value("CUkernel"), self.value("CUcontext"));
                let words = [
                    function,
                    gx | gy << 32,
                    gz | bx << 32,
                    by | bz << 32,
                    0,
                    parameters,
                    0,
                    kernel,
                    context,
                ];
                self.arena.slot(&words)
            }
            "*const CUDA_HOST_NODE_PARAMS" | "*const cudaHostNodeParams" => {
                let function =
                    if self.bytes.decision().is_multiple_of(8) { 0 } else { called as *const () as usize };
                self.arena.slot(&[function, host::memory()])
            }
            "*mut CUgraphNodeParams" | "*mut cudaGraphNodeParams" => {
                let [x, y, z] = [(); 3].map(|()| self.dimension());
                // Of other kinds of nodes all pointers are null and all lists empty.
                let kind = self.bytes.decision() % 14;
                let (first, rest) = match kind {
                    0 => (self.value("CUfunction"), [x | 1 << 32, 1 | y << 32, 1 | z << 32]),
                    3 => (called as *const () as usize, [host::memory(), 0, 0]),
                    4 => (self.value("CUgraph"), [0; 3]),
                    6 | 7 => (self.value("CUevent"), [0; 3]),
                    11 => (self.address(), [0; 3]),
                    13 => (self.bytes.choose(NUMBERS), [x % 3, 0, 0]),
                    _ => (0, [0; 3]),
                };
                let mut words = [0; 32];
                words[..6].copy_from_slice(&[kind, 0, first, rest[0], rest[1], rest[2]]);
                self.arena.slot(&words)
            }
            "*mut CUctxCreateParams" | "*mut cudaMemAllocNodeParams" => {
                // Lists of nothing.
                let size = self.size();
                self.arena.slot(&[1, 1 << 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, size])
            }
            // Read to learn how much room there is.
            "*mut usize" | "*mut u64" | "*mut u32" => {
                let room = self.bytes.choose(&[0, 1, 2, 8, 64]);
                self.arena.slot(&[room])
            }
            _ if name.starts_with("*mut ") && !name.contains("Params") && !name.contains("Desc") => {
                let words = [self.bytes.choose(NUMBERS)];
                self.arena.slot(&words)
            }
            _ => {
                let pointee = name.trim_start_matches("*const ").trim_start_matches("*mut ");
                if self.known.of(pointee).is_empty() {
                    let words = self.many(32, Self::word);
                    self.arena.slot(&words)
                } else {
                    let words = self.many(8, |maker| maker.value(pointee));
                    self.arena.slot(&words)
                }
            }
        }
    }

    /// Pointers to memory that can be read.
    fn pointers(&mut self) -> usize {
        let words = self.many(16, |maker| host::memory() + maker.bytes.decision() % 16 * 8);
        self.arena.slot(&words)
    }

    /// Parameters in a buffer, as a launch takes them.
    fn extra(&mut self) -> usize {
        if self.bytes.decision().is_multiple_of(2) {
            return 0;
        }
        let size = self.bytes.choose(&[0, 1, 4, 8, 16, 28, 32, 64, 4096]);
        let size = self.arena.slot(&[size]);
        self.arena.slot(&[1, host::memory(), 2, size, 0])
    }

    fn attributes(&mut self) -> usize {
        let words = self.many(32, |maker| maker.bytes.choose(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
        self.arena.slot(&words)
    }

    /// Of a grid or a block: what can be launched is over soon.
    fn dimension(&mut self) -> usize {
        self.bytes.choose(&[1, 1, 1, 2, 3, 5, 0, 0xffff_ffff])
    }

    /// A value of a named type: a handle, or of an enumeration.
    fn value(&mut self, name: &str) -> usize {
        let known = self.known.of(name);
        match self.bytes.decision() {
            choice @ 0..200 if !known.is_empty() => known[known.len() - 1 - choice % known.len().min(8)],
            200..212 => 0,
            212..220 => self.bytes.choose(&[1, 2, 3, 0x10, usize::MAX, 0xdead_0000, host::memory()]),
            220..228 => {
                let kinds = ["CUcontext", "CUmodule", "CUstream", "CUevent", "CUgraph", "CUfunction"];
                let other = self.known.of(kinds[self.bytes.decision() % kinds.len()]);
                other.last().copied().unwrap_or(0)
            }
            228..236 if !known.is_empty() => known[self.bytes.decision() % known.len()],
            _ => self.bytes.decision() % 40,
        }
    }

    /// An address, of memory or not.
    fn address(&mut self) -> usize {
        let known = &self.known.addresses;
        let choice = self.bytes.decision();
        let base = match choice {
            0..180 if !known.is_empty() => known[known.len() - 1 - choice % known.len().min(8)],
            180..220 => host::memory(),
            220..228 => self.bytes.choose(&[0, 1, 0x1000, usize::MAX, 1 << 63, 0x7fff_ffff_f000]),
            _ if !known.is_empty() => known[choice % known.len()],
            _ => 0,
        };
        base.wrapping_add(self.bytes.choose(&[0, 0, 0, 0, 0, 0, 4, 8, 1, 64, 256, 4096, 1 << 21, usize::MAX]))
    }

    fn size(&mut self) -> usize {
        self.bytes.choose(SIZES)
    }

    /// A flag or an index more often than not.
    fn small(&mut self) -> usize {
        let choice = self.bytes.decision();
        if choice < 128 { choice % 2 } else { NUMBERS[choice % NUMBERS.len()] }
    }

    /// A part of a structure: an address or a number.
    fn word(&mut self) -> usize {
        match self.bytes.decision() % 4 {
            0 => self.address(),
            1 => self.size(),
            2 => self.bytes.choose(&[1, 2, 3, 4, 1 << 32, 2 << 32, 2 | 1 << 32]),
            _ => 0,
        }
    }

    fn many(&mut self, count: usize, make: impl Fn(&mut Self) -> usize) -> Vec<usize> {
        (0..count).map(|_| make(self)).collect()
    }
}

/// Whether the driver reads or writes a value where an untyped pointer leads to, which must be there then.
fn is_accessed(function: &str) -> bool {
    let reads_kernel = function.contains("Func") || function.contains("Kernel");
    function != "cudaPointerGetAttributes" && function.contains("Attribute") && !reads_kernel
        || ["ParamSetv", "Shareable", "FreeNodeGetParams", "HandleForAddressRange"]
            .iter()
            .any(|part| function.contains(part))
}

fn takes_image(function: &str) -> bool {
    ["ModuleLoad", "LibraryLoad", "LinkAddData"].iter().any(|part| function.contains(part))
}

/// What the program is called back by: takes whatever it is given.
extern "C" fn called() -> usize {
    64
}
