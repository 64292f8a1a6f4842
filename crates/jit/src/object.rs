//! Loads relocatable ELF objects for x86-64: places sections, resolves symbols, relocates, and makes code executable.
//!
//! Pages are writable or executable, never both. An object comes from the cache, so nothing in it is trusted: whatever is
//! out of bounds or unknown is an error. What the code does when it runs is another matter; the cache's checksum speaks
//! for that.

use object::elf;
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags,
    SectionIndex, SymbolIndex,
};
use std::collections::HashMap;
use std::fmt;
use std::ptr;

type File<'a> = ElfFile64<'a, LittleEndian>;

/// Code and data in memory, ready to run. Unmapped when dropped.
pub struct LoadedObject {
    mapping: Mapping,
    symbols: HashMap<String, Symbol>,
}

/// A symbol that an object defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Where it is.
    pub address: u64,
    /// Bytes, as far as known.
    pub size: u64,
}

/// Why an object could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Not an object, or one that contradicts itself.
    Malformed(String),
    /// It needs a symbol that nobody defines.
    Undefined(String),
    /// A relocation of a type that code for this target does not use.
    Relocation(u32),
    /// A target is out of a relocation's reach.
    OutOfRange(String),
    /// The system gives no memory.
    Memory,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => write!(f, "malformed object: {what}"),
            Self::Undefined(name) => write!(f, "undefined symbol `{name}`"),
            Self::Relocation(kind) => write!(f, "relocation of unknown type {kind}"),
            Self::OutOfRange(name) => write!(f, "`{name}` is out of reach"),
            Self::Memory => write!(f, "no memory for code"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<object::Error> for LoadError {
    fn from(error: object::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl LoadedObject {
    /// Loads an object. `resolve` gives the addresses of symbols that it does not define.
    pub fn load(bytes: &[u8], resolve: &dyn Fn(&str) -> Option<u64>) -> Result<Self, LoadError> {
        let file = File::parse(bytes)?;
        if file.architecture() != object::Architecture::X86_64 {
            return Err(LoadError::Malformed("not for x86-64".into()));
        }
        let layout = Layout::of(&file)?;
        let mut loader = Loader { file: &file, mapping: Mapping::new(layout.size)?, layout, resolve };
        loader.copy_sections()?;
        loader.relocate()?;
        loader.mapping.protect(0, loader.layout.code_end, libc::PROT_READ | libc::PROT_EXEC)?;
        let read_only = loader.layout.read_only_end - loader.layout.code_end;
        loader.mapping.protect(loader.layout.code_end, read_only, libc::PROT_READ)?;
        let symbols = loader.defined_symbols()?;
        Ok(Self { mapping: loader.mapping, symbols })
    }

    /// The symbol called `name`, if the object defines it.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    /// All functions and data that it defines, in no order.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, Symbol)> {
        self.symbols.iter().map(|(name, symbol)| (name.as_str(), *symbol))
    }

    /// Bytes of address space it takes.
    pub fn size(&self) -> usize {
        self.mapping.size
    }
}

/// Where everything goes, as offsets into one mapping: code and stubs, then read-only data and the address table, then
/// writable data.
struct Layout {
    sections: HashMap<SectionIndex, usize>,
    /// Symbols that need an entry of the address table, and a stub to jump through it.
    slots: HashMap<SymbolIndex, usize>,
    stubs: usize,
    table: usize,
    code_end: usize,
    read_only_end: usize,
    size: usize,
}

/// `jmp [rip + displacement]` and padding.
const STUB_SIZE: usize = 8;
const SLOT_SIZE: usize = 8;
const PAGE: usize = 4096;
/// More than any kernel; keeps sums far from overflow and everything within reach of 32-bit displacements.
const MAX_SIZE: u64 = 1 << 30;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Code,
    ReadOnly,
    Writable,
}

impl Layout {
    fn of(file: &File<'_>) -> Result<Self, LoadError> {
        let mut slots = HashMap::new();
        for section in file.sections() {
            for (_, relocation) in section.relocations() {
                if let RelocationTarget::Symbol(index) = relocation.target() {
                    let next = slots.len();
                    slots.entry(index).or_insert(next);
                }
            }
        }
        let mut sections = HashMap::new();
        let mut end = 0;
        let mut place = |class: Class, end: &mut usize| -> Result<(), LoadError> {
            for section in file.sections().filter(|section| class_of(section) == Some(class)) {
                let (size, align) = (section.size(), section.align().max(1));
                if size > MAX_SIZE || align > PAGE as u64 || !align.is_power_of_two() {
                    return Err(LoadError::Malformed("a section of impossible size or alignment".into()));
                }
                let start = end.next_multiple_of(align as usize);
                sections.insert(section.index(), start);
                *end = start + size as usize;
                if *end as u64 > MAX_SIZE {
                    return Err(LoadError::Malformed("too large".into()));
                }
            }
            Ok(())
        };
        place(Class::Code, &mut end)?;
        let stubs = end.next_multiple_of(16);
        let code_end = (stubs + slots.len() * STUB_SIZE).next_multiple_of(PAGE);
        let table = code_end;
        end = table + slots.len() * SLOT_SIZE;
        place(Class::ReadOnly, &mut end)?;
        let read_only_end = end.next_multiple_of(PAGE);
        end = read_only_end;
        place(Class::Writable, &mut end)?;
        let size = end.next_multiple_of(PAGE).max(PAGE);
        Ok(Self { sections, slots, stubs, table, code_end, read_only_end, size })
    }
}

fn class_of<'a>(section: &impl ObjectSection<'a>) -> Option<Class> {
    let SectionFlags::Elf { sh_flags } = section.flags() else { return None };
    if sh_flags & u64::from(elf::SHF_ALLOC) == 0 {
        None
    } else if sh_flags & u64::from(elf::SHF_EXECINSTR) != 0 {
        Some(Class::Code)
    } else if sh_flags & u64::from(elf::SHF_WRITE) != 0 {
        Some(Class::Writable)
    } else {
        Some(Class::ReadOnly)
    }
}

struct Loader<'a, 'f> {
    file: &'a File<'f>,
    layout: Layout,
    mapping: Mapping,
    resolve: &'a dyn Fn(&str) -> Option<u64>,
}

impl Loader<'_, '_> {
    fn copy_sections(&mut self) -> Result<(), LoadError> {
        for (&index, &start) in &self.layout.sections {
            // A section without contents (.bss) has no data and stays zero.
            let data = self.file.section_by_index(index)?.data()?;
            self.mapping.write(start, data)?;
        }
        Ok(())
    }

    fn relocate(&mut self) -> Result<(), LoadError> {
        self.fill_table()?;
        for section in self.file.sections() {
            let Some(&start) = self.layout.sections.get(&section.index()) else { continue };
            for (offset, relocation) in section.relocations() {
                let RelocationFlags::Elf { r_type } = relocation.flags() else {
                    return Err(LoadError::Malformed("a relocation that is not ELF's".into()));
                };
                let RelocationTarget::Symbol(symbol) = relocation.target() else {
                    return Err(LoadError::Malformed("a relocation without symbol".into()));
                };
                let at = usize::try_from(offset)
                    .ok()
                    .and_then(|offset| offset.checked_add(start))
                    .filter(|_| offset < section.size())
                    .ok_or_else(|| LoadError::Malformed("a relocation outside its section".into()))?;
                self.apply(r_type, at, symbol, relocation.addend())?;
            }
        }
        Ok(())
    }

    /// Writes the addresses of all symbols that relocations name, and the stubs that jump to them.
    fn fill_table(&mut self) -> Result<(), LoadError> {
        let slots: Vec<_> = self.layout.slots.iter().map(|(symbol, slot)| (*symbol, *slot)).collect();
        for (symbol, slot) in slots {
            let address = self.address(symbol)?;
            let (entry, stub) = (self.layout.table + slot * SLOT_SIZE, self.layout.stubs + slot * STUB_SIZE);
            self.mapping.write(entry, &address.to_le_bytes())?;
            let displacement =
                i32::try_from(entry as i64 - (stub as i64 + 6)).map_err(|_| LoadError::Memory)?;
            self.mapping.write(stub, &[0xff, 0x25])?;
            self.mapping.write(stub + 2, &displacement.to_le_bytes())?;
        }
        Ok(())
    }

    fn apply(&mut self, kind: u32, at: usize, symbol: SymbolIndex, addend: i64) -> Result<(), LoadError> {
        let base = self.mapping.address();
        let place = base + at as u64;
        let target = self.address(symbol)?;
        let slot = self.layout.slots[&symbol];
        let relative = |to: u64| to.wrapping_add_signed(addend).wrapping_sub(place) as i64;
        let out_of_range = || LoadError::OutOfRange(self.name(symbol));
        match kind {
            elf::R_X86_64_NONE => Ok(()),
            elf::R_X86_64_64 => self.mapping.write(at, &target.wrapping_add_signed(addend).to_le_bytes()),
            elf::R_X86_64_PC64 => self.mapping.write(at, &relative(target).to_le_bytes()),
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => {
                let direct = i32::try_from(relative(target));
                let value = match direct {
                    Ok(value) => value,
                    // Only a call may take the detour; a reference to data cannot.
                    Err(_) if kind == elf::R_X86_64_PLT32 => {
                        let stub = base + (self.layout.stubs + slot * STUB_SIZE) as u64;
                        i32::try_from(relative(stub)).map_err(|_| out_of_range())?
                    }
                    Err(_) => return Err(out_of_range()),
                };
                self.mapping.write(at, &value.to_le_bytes())
            }
            elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
                let entry = base + (self.layout.table + slot * SLOT_SIZE) as u64;
                let value = i32::try_from(relative(entry)).map_err(|_| out_of_range())?;
                self.mapping.write(at, &value.to_le_bytes())
            }
            elf::R_X86_64_32 => {
                let value = u32::try_from(target.wrapping_add_signed(addend)).map_err(|_| out_of_range())?;
                self.mapping.write(at, &value.to_le_bytes())
            }
            elf::R_X86_64_32S => {
                let value =
                    i32::try_from(target.wrapping_add_signed(addend) as i64).map_err(|_| out_of_range())?;
                self.mapping.write(at, &value.to_le_bytes())
            }
            other => Err(LoadError::Relocation(other)),
        }
    }

    fn address(&self, index: SymbolIndex) -> Result<u64, LoadError> {
        let symbol = self.file.symbol_by_index(index)?;
        if symbol.is_undefined() {
            let name = symbol.name()?;
            return (self.resolve)(name).ok_or_else(|| LoadError::Undefined(name.into()));
        }
        match symbol.section() {
            object::SymbolSection::Absolute => Ok(symbol.address()),
            object::SymbolSection::Section(section) => {
                let start = self.layout.sections.get(&section);
                let start =
                    start.ok_or_else(|| LoadError::Malformed("a symbol in no loaded section".into()))?;
                Ok(self.mapping.address().wrapping_add(*start as u64).wrapping_add(symbol.address()))
            }
            _ => Err(LoadError::Malformed(format!("symbol `{}` is nowhere", self.name(index)))),
        }
    }

    fn name(&self, index: SymbolIndex) -> String {
        let symbol = self.file.symbol_by_index(index);
        symbol.and_then(|symbol| symbol.name().map(str::to_owned)).unwrap_or_default()
    }

    fn defined_symbols(&self) -> Result<HashMap<String, Symbol>, LoadError> {
        let mut symbols = HashMap::new();
        for symbol in self.file.symbols() {
            let name = symbol.name()?;
            let loaded =
                symbol.section_index().is_some_and(|section| self.layout.sections.contains_key(&section));
            if !name.is_empty() && loaded {
                let entry = Symbol { address: self.address(symbol.index())?, size: symbol.size() };
                symbols.insert(name.to_owned(), entry);
            }
        }
        Ok(symbols)
    }
}

/// Private memory, writable until protected.
struct Mapping {
    start: *mut u8,
    size: usize,
}

// SAFETY: the memory belongs to the mapping; after loading it is read and executed only, but for writable sections, whose
// use generated code answers for.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(size: usize) -> Result<Self, LoadError> {
        // SAFETY: a fresh private mapping.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            Err(LoadError::Memory)
        } else {
            Ok(Self { start: start.cast(), size })
        }
    }

    fn address(&self) -> u64 {
        self.start as u64
    }

    fn write(&mut self, at: usize, data: &[u8]) -> Result<(), LoadError> {
        let fits = at.checked_add(data.len()).is_some_and(|end| end <= self.size);
        if !fits {
            return Err(LoadError::Malformed("contents beyond the end of a section".into()));
        }
        // SAFETY: in bounds, as checked; the mapping is ours and still writable.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), self.start.add(at), data.len()) };
        Ok(())
    }

    fn protect(&self, at: usize, size: usize, protection: libc::c_int) -> Result<(), LoadError> {
        if size == 0 {
            return Ok(());
        }
        // SAFETY: whole pages of our mapping.
        let failed = unsafe { libc::mprotect(self.start.add(at).cast(), size, protection) } != 0;
        if failed { Err(LoadError::Memory) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, unmapped once. Whoever runs the code keeps the object alive.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}
