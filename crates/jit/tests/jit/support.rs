//! Builds small objects by hand.

use ::object::write::{Object, Relocation, SectionId, Symbol, SymbolId, SymbolSection};
use ::object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope,
};

/// An object under construction.
pub struct Builder {
    object: Object<'static>,
    text: SectionId,
}

impl Builder {
    pub fn new() -> Self {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let text = object.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        Self { object, text }
    }

    /// Appends a function; returns its offset in the section of code.
    pub fn function(&mut self, name: &str, code: &[u8]) -> u64 {
        let offset = self.object.append_section_data(self.text, code, 16);
        self.define(name, SymbolSection::Section(self.text), offset, code.len() as u64, SymbolKind::Text);
        offset
    }

    /// Appends data to a section of its own.
    pub fn data(&mut self, name: &str, kind: SectionKind, bytes: &[u8]) -> SymbolId {
        let section = self.object.add_section(Vec::new(), format!(".{name}").into_bytes(), kind);
        let offset = self.object.append_section_data(section, bytes, 8);
        self.define(name, SymbolSection::Section(section), offset, bytes.len() as u64, SymbolKind::Data)
    }

    /// Names a symbol that is defined elsewhere.
    pub fn external(&mut self, name: &str) -> SymbolId {
        self.define(name, SymbolSection::Undefined, 0, 0, SymbolKind::Text)
    }

    /// Adds a relocation to the code.
    pub fn relocate(&mut self, offset: u64, symbol: SymbolId, r_type: u32, addend: i64) {
        let relocation = Relocation { offset, symbol, addend, flags: RelocationFlags::Elf { r_type } };
        self.object.add_relocation(self.text, relocation).unwrap();
    }

    pub fn finish(self) -> Vec<u8> {
        self.object.write().unwrap()
    }

    fn define(
        &mut self,
        name: &str,
        section: SymbolSection,
        value: u64,
        size: u64,
        kind: SymbolKind,
    ) -> SymbolId {
        self.object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size,
            kind,
            scope: SymbolScope::Dynamic,
            weak: false,
            section,
            flags: SymbolFlags::None,
        })
    }
}
