//! The CPU that code is made for, and the way from a module to machine code.

use crate::llvm::{Function, Module, take_message};
use kernel_abi::Tier;
use llvm_sys::core;
use llvm_sys::error::{LLVMErrorRef, LLVMGetErrorMessage};
use llvm_sys::prelude::LLVMMemoryBufferRef;
use llvm_sys::target;
use llvm_sys::target_machine as machine;
use llvm_sys::transforms::pass_builder;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt;
use std::ptr;
use std::rc::Rc;
use std::sync::{LazyLock, Once};

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "code generation is for x86-64 only: add the CPU levels of this target here and its backend in build.rs"
);

/// Instruction set levels that code generation distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// SSE4.2: x86-64-v2. Vectors of 128 bits, no fused multiply-add.
    Baseline,
    /// AVX2, FMA and F16C: x86-64-v3.
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL: x86-64-v4.
    Avx512,
}

/// A CPU to compile for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cpu {
    name: String,
    features: String,
    level: Level,
}

/// Why a CPU name was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownCpu {
    /// Not one of the names.
    Name(String),
    /// This machine's CPU lacks SSE4.2.
    HostTooOld,
}

impl fmt::Display for UnknownCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "unknown CPU `{name}`: expected native, baseline, avx2 or avx512"),
            Self::HostTooOld => write!(f, "this CPU lacks SSE4.2, which generated code needs"),
        }
    }
}

impl std::error::Error for UnknownCpu {}

impl Cpu {
    /// The CPU called `name`: `native` (or nothing) for the one this runs on, or a level: `baseline`, `avx2`,
    /// `avx512`.
    pub fn named(name: &str) -> Result<Self, UnknownCpu> {
        match name {
            "" | "native" => Self::native(),
            "baseline" => Ok(Self::level_cpu(Level::Baseline)),
            "avx2" => Ok(Self::level_cpu(Level::Avx2)),
            "avx512" => Ok(Self::level_cpu(Level::Avx512)),
            other => Err(UnknownCpu::Name(other.to_owned())),
        }
    }

    /// The CPU that this runs on, with all its features.
    pub fn native() -> Result<Self, UnknownCpu> {
        // Asking takes a while in a virtual machine, whose host answers.
        static FOUND: LazyLock<Cpu> = LazyLock::new(|| {
            // SAFETY: both return strings that are ours to dispose of.
            let (name, features) = unsafe {
                (take_message(machine::LLVMGetHostCPUName()), take_message(machine::LLVMGetHostCPUFeatures()))
            };
            Cpu::new(name, features)
        });
        if FOUND.has("sse4.2") { Ok(FOUND.clone()) } else { Err(UnknownCpu::HostTooOld) }
    }

    /// The least CPU of a level.
    pub fn level_cpu(level: Level) -> Self {
        let (name, features) = match level {
            Level::Baseline => ("x86-64-v2", "+sse4.2,+popcnt,+cx16"),
            Level::Avx2 => ("x86-64-v3", "+sse4.2,+popcnt,+cx16,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt"),
            Level::Avx512 => (
                "x86-64-v4",
                "+sse4.2,+popcnt,+cx16,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,\
                 +avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
            ),
        };
        Self::new(name.into(), features.into())
    }

    fn new(name: String, features: String) -> Self {
        let level = level_of(&features);
        // LLVM would make loads one by one of gathers without masks in registers, which are no faster.
        let features = if level == Level::Avx2 { features + ",+fast-gather" } else { features };
        Self { name, features, level }
    }

    /// Whether code for it may use `feature`, by LLVM's name.
    pub fn has(&self, feature: &str) -> bool {
        lists(&self.features, feature)
    }

    /// The highest level all of whose features it has.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Width in bits of the vectors that code should use. Also the widest that a target intrinsic may have: wider ones
    /// abort LLVM.
    pub fn vector_bits(&self) -> u32 {
        match self.level() {
            Level::Baseline => 128,
            Level::Avx2 => 256,
            // The first generations lower their clock for 512-bit vectors by more than these gain.
            Level::Avx512
                if matches!(self.name.as_str(), "skylake-avx512" | "cascadelake" | "cooperlake") =>
            {
                256
            }
            Level::Avx512 => 512,
        }
    }

    /// The vector registers.
    pub fn registers(&self) -> transform::gang::Registers {
        let count = if self.level() >= Level::Avx512 { 32 } else { 16 };
        transform::gang::Registers { count, bytes: self.vector_bits() / 8 }
    }

    /// Whether what a load by some lanes comes to has to be asked for: such a load makes the processor fetch nothing ahead.
    pub fn has_plain_prefetch_only(&self) -> bool {
        self.level() >= Level::Avx512 && self.name.starts_with("znver")
    }

    /// Whether what is read in order is on its way in time without being asked for. With registers as long as lines few instructions are between one line
    /// and the next, of which AMD's have many at once: on Zen 5 asking takes a fifth of the time of saxpy. Intel's take that much longer without.
    pub fn looks_far_ahead(&self) -> bool {
        self.vector_bits() == 512 && self.name.starts_with("znver")
    }

    /// Whether lines that a loop reads out of order, near each other in each iteration, are on their way only once they are asked for. On Zen 5 asking takes
    /// 0.4 of the time of a product with quantized numbers; Intel's gain nothing by it.
    pub fn looks_for_order(&self) -> bool {
        self.name.starts_with("znver") || self.name.starts_with("x86-64")
    }

    /// Whether gathers are made of several steps for each lane: what they take besides decides whether they are faster than one load after another.
    pub fn has_stepwise_gather(&self) -> bool {
        self.name.starts_with("znver")
    }

    /// Whether stores by the lanes of a mask may take a step for each lane. Intel's never do.
    pub fn has_stepwise_masked_store(&self) -> bool {
        self.level() == Level::Avx2 && (self.name.starts_with("znver") || self.name == "x86-64-v3")
    }

    /// Whether arithmetic instructions can carry a direction of rounding.
    pub fn has_embedded_rounding(&self) -> bool {
        self.vector_bits() == 512
    }

    /// LLVM's name of the CPU.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// LLVM's feature string.
    pub fn features(&self) -> &str {
        &self.features
    }
}

fn lists(features: &str, feature: &str) -> bool {
    features.split(',').any(|known| known.strip_prefix('+') == Some(feature))
}

fn level_of(features: &str) -> Level {
    let all = |wanted: &[&str]| wanted.iter().all(|feature| lists(features, feature));
    if !all(&["avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt"]) {
        Level::Baseline
    } else if all(&["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]) {
        Level::Avx512
    } else {
        Level::Avx2
    }
}

/// Passes run on a module, in LLVM's notation. Chosen by measurement: what a vectorising or unrolling pipeline adds costs
/// more compile time than it gains on code that is vectors already, and some of it makes such code slower.
const PASSES: &CStr = c"always-inline,globaldce,function(sroa,early-cse<memssa>,simplifycfg,loop-mssa(licm),gvn<no-load-pre>,instsimplify,dce)";

/// Likewise for code that is wanted soon: what makes less of it, for everything after costs more.
const QUICK_PASSES: &CStr = c"always-inline,globaldce,function(sroa,early-cse,simplifycfg)";

/// Loads in a row that may change places, in such code: with as few as that their number costs nothing.
const RUN: u32 = 12;

/// Operations on integers that may follow from each other without a fence, in such code. With so few, SHA-256 takes half as long to compile, and its
/// code 1.05 (AVX2) to 1.3 times as long to run, until the better code is there.
const FENCED: u32 = 3;

/// Lanes of the largest masks that are words where processors have no registers for masks: what four vector registers hold. Words of larger ones
/// would be kept in memory.
const WIDE_MASKS: u32 = 32;

/// Options of LLVM's code generation, after a program's name; LLVM is in our library alone.
///
/// * Loops here have few addresses, and those that a processor's instructions compute: finding cheaper ones takes up to a tenth of the time of
///   small kernels and gains nothing.
/// * The order of instructions after registers are given out is nothing to a processor that has its own, and finding one takes time that grows with
///   the square of a block's length: most of all for a kernel whose loops are unrolled.
/// * Before, in blocks of more than so many accesses, what may alias is told for many at once.
const OPTIONS: [&CStr; 5] = [
    c"anywarp",
    c"-disable-lsr",
    c"-disable-post-ra",
    c"-dag-maps-huge-region=200",
    c"-dag-maps-reduction-size=100",
];

/// Makes machine code for one CPU. Belongs to a thread: get it by [`Machine::for_cpu`].
pub struct Machine {
    raw: machine::LLVMTargetMachineRef,
    layout: target::LLVMTargetDataRef,
    triple: CString,
    cpu: Cpu,
    tier: Tier,
}

impl Machine {
    /// This thread's machine for fast code for `cpu`.
    pub fn for_cpu(cpu: &Cpu) -> Result<Rc<Self>, String> {
        Self::of_tier(cpu, Tier::Full)
    }

    /// This thread's machine for code of a tier for `cpu`. Making one takes part of a millisecond, so the thread keeps the last.
    pub fn of_tier(cpu: &Cpu, tier: Tier) -> Result<Rc<Self>, String> {
        thread_local! {
            static LAST: RefCell<Option<Rc<Machine>>> = const { RefCell::new(None) };
        }
        LAST.with_borrow_mut(|last| match last {
            Some(machine) if machine.cpu == *cpu && machine.tier == tier => Ok(machine.clone()),
            _ => Ok(last.insert(Rc::new(Self::new(cpu, tier)?)).clone()),
        })
    }

    fn new(cpu: &Cpu, tier: Tier) -> Result<Self, String> {
        static BACKEND: Once = Once::new();
        let c_string = |text: &str| CString::new(text).map_err(|_| "a CPU name with a NUL".to_owned());
        let (name, features) = (c_string(&cpu.name)?, c_string(&cpu.features)?);
        // SAFETY: the backend is initialised first; all strings are NUL-terminated and only read; what LLVM returns is
        // checked before use and disposed of once.
        unsafe {
            BACKEND.call_once(|| {
                let options = OPTIONS.map(CStr::as_ptr);
                let count = options.len() as i32;
                llvm_sys::support::LLVMParseCommandLineOptions(count, options.as_ptr(), c"".as_ptr());
                target::LLVMInitializeX86TargetInfo();
                target::LLVMInitializeX86Target();
                target::LLVMInitializeX86TargetMC();
                target::LLVMInitializeX86AsmPrinter();
                target::LLVMInitializeX86AsmParser();
            });
            let triple = c_string(&take_message(machine::LLVMGetDefaultTargetTriple()))?;
            let (mut backend, mut message) = (ptr::null_mut(), ptr::null_mut());
            if machine::LLVMGetTargetFromTriple(triple.as_ptr(), &mut backend, &mut message) != 0 {
                return Err(take_message(message));
            }
            let raw = machine::LLVMCreateTargetMachine(
                backend,
                triple.as_ptr(),
                name.as_ptr(),
                features.as_ptr(),
                match tier {
                    Tier::Quick | Tier::Patient => machine::LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
                    Tier::Full => machine::LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
                },
                machine::LLVMRelocMode::LLVMRelocPIC,
                machine::LLVMCodeModel::LLVMCodeModelSmall,
            );
            if raw.is_null() {
                return Err(format!("LLVM has no machine for {}", cpu.name));
            }
            let layout = machine::LLVMCreateTargetDataLayout(raw);
            Ok(Self { raw, layout, triple, cpu: cpu.clone(), tier })
        }
    }

    /// The CPU it makes code for.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// How much it does for the code's speed.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Tells `module` what it will be compiled for. Comes before emission: folding depends on it.
    pub fn prepare(&self, module: Module<'_>) {
        // SAFETY: module, triple and layout are alive; LLVM copies the latter two.
        unsafe {
            core::LLVMSetTarget(module.raw(), self.triple.as_ptr());
            target::LLVMSetModuleDataLayout(module.raw(), self.layout);
        }
    }

    /// Gives `function` the attributes that all generated functions have. Without the vector widths LLVM would split
    /// 512-bit values.
    pub fn set_attributes(&self, function: Function<'_>) {
        function.add_attribute("nounwind");
        function.add_attribute("mustprogress");
        // Where it has a frame pointer, LLVM aligns the stack for the vectors that it spills.
        function.add_string_attribute("frame-pointer", "all");
        // An access to address 0 faults, as any bad address does; without this it means that the code is never reached.
        function.add_attribute("null_pointer_is_valid");
        let bits = self.cpu.vector_bits().to_string();
        function.add_string_attribute("prefer-vector-width", &bits);
        function.add_string_attribute("min-legal-vector-width", &bits);
        // A large frame touches its pages in order, so that a stack overflow meets the guard page.
        function.add_string_attribute("probe-stack", "inline-asm");
    }

    /// Tells LLVM that `function` runs with f32 subnormals flushed, so that it folds constants accordingly.
    pub fn set_flushing(&self, function: Function<'_>) {
        function.add_string_attribute("denormal-fp-math-f32", "preserve-sign,preserve-sign");
    }

    /// Runs the passes. The module must be well formed: it is verified first, since a malformed one may end the process.
    pub fn optimize(&self, module: Module<'_>) -> Result<(), String> {
        module.verify().map_err(|message| format!("malformed code: {message}"))?;
        let passes = match self.tier {
            Tier::Quick | Tier::Patient => QUICK_PASSES,
            Tier::Full => PASSES,
        };
        // SAFETY: module and machine are alive; the options are ours.
        unsafe {
            let options = pass_builder::LLVMCreatePassBuilderOptions();
            let error = pass_builder::LLVMRunPasses(module.raw(), passes.as_ptr(), self.raw, options);
            pass_builder::LLVMDisposePassBuilderOptions(options);
            take_error(error)?;
        }
        if self.tier == Tier::Full {
            module.join_choices();
        }
        module.hide_shifts_of_products();
        if self.cpu.level() < Level::Avx512 {
            if self.cpu.level() == Level::Avx2 {
                module.widen_masks(WIDE_MASKS);
            }
            module.widen_crossing_masks(self.cpu.vector_bits() / 8);
        } else {
            module.lengthen_byte_masks();
        }
        if self.tier != Tier::Full {
            module.end_runs_of_loads(RUN);
            module.fence_integers(FENCED);
        }
        Ok(())
    }

    /// Machine code as a relocatable ELF object.
    pub fn emit_object(&self, module: Module<'_>) -> Result<Vec<u8>, String> {
        self.emit(module, machine::LLVMCodeGenFileType::LLVMObjectFile)
    }

    /// Machine code as assembly text. Changes the module: emit the object from another.
    pub fn emit_assembly(&self, module: Module<'_>) -> Result<String, String> {
        let text = self.emit(module, machine::LLVMCodeGenFileType::LLVMAssemblyFile)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn emit(&self, module: Module<'_>, kind: machine::LLVMCodeGenFileType) -> Result<Vec<u8>, String> {
        let (mut message, mut buffer): (_, LLVMMemoryBufferRef) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: module and machine are alive; on success the buffer is ours and holds `size` bytes.
        let bytes = unsafe {
            let failed = machine::LLVMTargetMachineEmitToMemoryBuffer(
                self.raw,
                module.raw(),
                kind,
                &mut message,
                &mut buffer,
            );
            if failed != 0 {
                return Err(take_message(message));
            }
            let start = core::LLVMGetBufferStart(buffer).cast::<u8>();
            let bytes = std::slice::from_raw_parts(start, core::LLVMGetBufferSize(buffer)).to_vec();
            core::LLVMDisposeMemoryBuffer(buffer);
            bytes
        };
        match module.context().take_errors() {
            errors if errors.is_empty() => Ok(bytes),
            errors => Err(errors.join("; ")),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: created in `new`, disposed of once.
        unsafe {
            target::LLVMDisposeTargetData(self.layout);
            machine::LLVMDisposeTargetMachine(self.raw);
        }
    }
}

/// # Safety
/// `error` comes from LLVM and is used no more.
unsafe fn take_error(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a non-null error has one message, which is disposed of once; taking it consumes the error.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        llvm_sys::error::LLVMDisposeErrorMessage(message);
        Err(text)
    }
}
