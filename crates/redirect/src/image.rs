//! What the file of an object tells: whether a runtime is inside, or NVIDIA's run-time compiler, and where their functions are.

use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{LittleEndian, SectionIndex};

type Elf = FileHeader64<LittleEndian>;
const LITTLE: LittleEndian = LittleEndian;

/// What nvcc's glue calls first. Whoever defines it has a runtime, whoever only mentions it or passes it on uses one.
const REGISTRATION: &[u8] = b"__cudaRegisterFatBinary";

/// A runtime that was linked in is one object file, hence complete. A library that defines fewer of its functions (to
/// watch calls, say) is no runtime.
const EVERY_RUNTIME_HAS: &[&[u8]] =
    &[REGISTRATION, b"cudaMalloc", b"cudaLaunchKernel", b"cudaGetErrorString", b"cudaGetDeviceProperties"];

/// Versions differ in names: 11.0 brought the first of these, 12.0 the second and the third, and 13.0 took that away again.
const SINCE_11: &[u8] = b"cudaCtxResetPersistingL2Cache";
const SINCE_12: &[u8] = b"cudaInitDevice";
const ONLY_12: &[u8] = b"cudaGetDeviceProperties_v2";

/// Functions of NVIDIA's run-time compiler (NVRTC) that hand out machine code, and those with the same parameters that hand out the
/// PTX that it was made of.
const COMPILER_PAIRS: [(&[u8], &[u8]); 2] =
    [(b"nvrtcGetCUBINSize", b"nvrtcGetPTXSize"), (b"nvrtcGetCUBIN", b"nvrtcGetPTX")];

/// Where nvcc puts kernels, and the structure that points at them.
const KERNEL_SECTIONS: &[&[u8]] = &[b".nv_fatbin", b".nvFatBinSegment"];

/// A function of the driver that every version of NVIDIA's runtime asks for by this name. Programs that are stripped and load their
/// kernels by the driver, themselves, have no use for it.
const THEIRS_ASKS_FOR: &[u8] = b"cuGetExportTable";

/// A variable that our own runtime reads: its name is in the data of whatever our `libcudart_static.a` was linked into,
/// stripped or not.
const OURS_READS: &[u8] = b"ANYWARP_TRACE";

/// Which runtime an object has inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// None, or a shared one, or ours: nothing to do.
    Nothing,
    /// That of CUDA 11, 12 or 13.
    Runtime(u32),
    /// One of a version before 11, which we do not have.
    Older,
    /// There are kernels and nothing that they could be registered with: the symbols of a runtime were stripped.
    Hidden,
}

/// A function in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function<'data> {
    /// Its address in the file; the loader adds a constant.
    pub address: u64,
    /// The symbol's name.
    pub name: &'data [u8],
    /// How many bytes it has.
    pub size: u64,
}

/// A file's tables.
pub struct Image<'data> {
    data: &'data [u8],
    segments: &'data [ProgramHeader64<LittleEndian>],
    soname: &'data [u8],
    has_kernels: bool,
    /// Its kernels are registered with a runtime elsewhere.
    uses_another: bool,
    /// Functions with a runtime's names, by address. Empty where the symbols do not mention a runtime.
    functions: Vec<Function<'data>>,
    /// Functions of NVRTC's that [`COMPILER_PAIRS`] names.
    compiler: Vec<Function<'data>>,
    /// Where any symbol of executable code begins. Empty likewise.
    beginnings: Vec<u64>,
}

impl<'data> Image<'data> {
    /// Reads the tables. Cheap for a file without a runtime: its symbols are not looked at one by one.
    pub fn parse(data: &'data [u8]) -> object::Result<Self> {
        let header = Elf::parse(data)?;
        header.endian()?;
        let segments = header.program_headers(LITTLE, data)?;
        let sections = header.sections(LITTLE, data)?;
        let mut image = Self {
            data,
            segments,
            soname: soname(segments, data).unwrap_or_default(),
            has_kernels: sections.iter().any(|section| {
                sections.section_name(LITTLE, section).is_ok_and(|name| KERNEL_SECTIONS.contains(&name))
            }),
            uses_another: false,
            functions: Vec::new(),
            compiler: Vec::new(),
            beginnings: Vec::new(),
        };
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            image.read_symbols(&sections, kind)?;
        }
        image.beginnings.sort_unstable();
        // Exported functions are in both tables.
        image.functions.sort_unstable();
        image.functions.dedup();
        Ok(image)
    }

    fn read_symbols(&mut self, sections: &SectionTable<'data, Elf>, kind: u32) -> object::Result<()> {
        let Some((index, section)) =
            sections.enumerate().find(|(_, section)| section.sh_type(LITTLE) == kind)
        else {
            return Ok(());
        };
        let strings =
            sections.section(SectionIndex(section.sh_link(LITTLE) as usize))?.data(LITTLE, self.data)?;
        let mentions = |name: &[u8]| memchr::memmem::find(strings, name).is_some();
        let (has_runtime, has_compiler) = (mentions(REGISTRATION), mentions(COMPILER_PAIRS[0].0));
        if !has_runtime && !has_compiler {
            return Ok(());
        }
        let symbols = SymbolTable::parse(LITTLE, self.data, sections, index, section)?;
        for symbol in symbols.iter() {
            let Ok(name) = symbol.name(LITTLE, symbols.strings()) else { continue };
            if symbol.is_undefined(LITTLE) {
                self.uses_another |= name == REGISTRATION;
                continue;
            }
            let address = symbol.st_value(LITTLE);
            if !self.is_code(address) {
                continue;
            }
            self.beginnings.push(address);
            if symbol.st_type() != elf::STT_FUNC {
                continue;
            }
            if is_compiler_name(name) {
                self.compiler.push(Function { name, address, size: symbol.st_size(LITTLE) });
            }
            if !has_runtime || !is_runtime_name(name) {
                continue;
            }
            match symbol.st_size(LITTLE) {
                // Compilers tell how long a function is. What has no length is written in assembler, to pass calls on to a
                // runtime that is opened when it is needed, as XLA does.
                0 => self.uses_another |= name == REGISTRATION,
                size => self.functions.push(Function { name, address, size }),
            }
        }
        Ok(())
    }

    /// Whether there is a runtime inside, and which.
    pub fn inside(&self) -> Inside {
        // A shared runtime, ours or NVIDIA's, is what programs are led to, not what is led.
        if self.soname.starts_with(b"libcudart.so") {
            return Inside::Nothing;
        }
        let found = if EVERY_RUNTIME_HAS.iter().all(|name| self.defines(name)) {
            match (self.defines(SINCE_12), self.defines(ONLY_12)) {
                (false, _) if self.defines(SINCE_11) => Inside::Runtime(11),
                (false, _) => Inside::Older,
                (true, true) => Inside::Runtime(12),
                (true, false) => Inside::Runtime(13),
            }
        } else if self.has_kernels && !self.uses_another && !self.defines(REGISTRATION) {
            Inside::Hidden
        } else {
            return Inside::Nothing;
        };
        // Looked for last: this reads the whole file.
        let mentions = |name: &[u8]| memchr::memmem::find(self.data, name).is_some();
        let is_theirs = found != Inside::Hidden || mentions(THEIRS_ASKS_FOR);
        if is_theirs && !mentions(OURS_READS) { found } else { Inside::Nothing }
    }

    /// Each function of NVRTC inside that hands out machine code, with the one to call in its place. None where any of them is missing.
    pub fn compiler_functions(&self) -> Vec<(Function<'data>, Function<'data>)> {
        let find = |wanted: &[u8]| self.compiler.iter().find(|function| function.name == wanted).copied();
        let pairs = COMPILER_PAIRS.iter().map(|(code, text)| find(code).zip(find(text)));
        pairs.collect::<Option<_>>().unwrap_or_default()
    }

    fn defines(&self, name: &[u8]) -> bool {
        self.functions.iter().any(|function| function.name == name)
    }

    /// The functions of the runtime inside: those that are `known`, and others of such a name among them. The linker
    /// keeps an object file's code together, so a function outside is the program's own, whatever its name.
    pub fn runtime_functions(&self, known: impl Fn(&[u8]) -> bool) -> Vec<Function<'data>> {
        let first = self.functions.iter().position(|function| known(function.name));
        let last = self.functions.iter().rposition(|function| known(function.name));
        match (first, last) {
            (Some(first), Some(last)) => self.functions[first..=last].to_vec(),
            _ => Vec::new(),
        }
    }

    /// Where the next symbol after an address begins, if any does.
    pub fn next_beginning(&self, address: u64) -> Option<u64> {
        let after = self.beginnings.partition_point(|&beginning| beginning <= address);
        self.beginnings.get(after).copied()
    }

    /// The bytes of executable code at an address, as in the file; `None` where there are not so many.
    pub fn code(&self, address: u64, length: u64) -> Option<&'data [u8]> {
        self.segments
            .iter()
            .filter(|segment| is_executable(segment))
            .find_map(|segment| segment.data_range(LITTLE, self.data, address, length).ok().flatten())
    }

    fn is_code(&self, address: u64) -> bool {
        self.code(address, 1).is_some()
    }
}

/// What a runtime's functions are called.
fn is_runtime_name(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"__").unwrap_or(name).strip_prefix(b"cuda");
    rest.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_uppercase))
}

fn is_compiler_name(name: &[u8]) -> bool {
    COMPILER_PAIRS.iter().any(|(code, text)| name == *code || name == *text)
}

/// Code that is mapped as it is: never written to, so the file's bytes are those in memory.
fn is_executable(segment: &ProgramHeader64<LittleEndian>) -> bool {
    let flags = segment.p_flags(LITTLE);
    segment.p_type(LITTLE) == elf::PT_LOAD && flags & elf::PF_X != 0 && flags & elf::PF_W == 0
}

/// The name that an object gives itself.
fn soname<'data>(segments: &'data [ProgramHeader64<LittleEndian>], data: &'data [u8]) -> Option<&'data [u8]> {
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(LITTLE, data).ok().flatten())?;
    let value = |wanted: i64| {
        dynamic.iter().find(|entry| entry.d_tag(LITTLE) == wanted).map(|entry| entry.d_val(LITTLE))
    };
    let (table, size, name) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?, value(elf::DT_SONAME)?);
    let strings = segments
        .iter()
        .filter(|segment| segment.p_type(LITTLE) == elf::PT_LOAD)
        .find_map(|segment| segment.data_range(LITTLE, data, table, size).ok().flatten())?;
    let name = strings.get(usize::try_from(name).ok()?..)?;
    name.split(|&byte| byte == 0).next()
}
