//! The loader: sections and relocations of every kind, and objects that are wrong.

use crate::support::Builder;
use ::object::{SectionKind, elf};
use jit::object::{LoadError, LoadedObject};

fn none(_: &str) -> Option<u64> {
    None
}

/// Calls a loaded function without parameters.
fn call(object: &LoadedObject, name: &str) -> u64 {
    let address = object.symbol(name).unwrap().address as *const ();
    // SAFETY: the functions of these tests have this signature.
    let function = unsafe { std::mem::transmute::<*const (), extern "C" fn() -> u64>(address) };
    function()
}

#[test]
fn code_reads_its_constants() {
    let mut builder = Builder::new();
    let table = builder.data("table", SectionKind::ReadOnlyData, &0x1122_3344_5566_7788_u64.to_le_bytes());
    // mov rax, [rip + table]; ret
    let at = builder.function("f", &[0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3]);
    builder.relocate(at + 3, table, elf::R_X86_64_PC32, -4);
    let object = LoadedObject::load(&builder.finish(), &none).unwrap();
    assert_eq!(call(&object, "f"), 0x1122_3344_5566_7788);
}

#[test]
fn code_calls_the_host_through_a_stub_and_through_the_table() {
    extern "C" fn answer() -> u64 {
        42
    }
    let resolve = |name: &str| (name == "answer").then_some(answer as *const () as u64);
    let mut builder = Builder::new();
    let symbol = builder.external("answer");
    // sub rsp, 8; call answer; add rsp, 8; ret
    let at = builder.function("direct", &[0x48, 0x83, 0xec, 8, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3]);
    builder.relocate(at + 5, symbol, elf::R_X86_64_PLT32, -4);
    // sub rsp, 8; call [rip + answer@GOTPCREL]; add rsp, 8; ret
    let code = [0x48, 0x83, 0xec, 8, 0xff, 0x15, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3];
    let at = builder.function("indirect", &code);
    builder.relocate(at + 6, symbol, elf::R_X86_64_GOTPCRELX, -4);
    let object = LoadedObject::load(&builder.finish(), &resolve).unwrap();
    assert_eq!((call(&object, "direct"), call(&object, "indirect")), (42, 42));
}

#[test]
fn variables_are_writable_and_absolute_addresses_right() {
    let mut builder = Builder::new();
    let variable = builder.data("variable", SectionKind::Data, &[5, 0, 0, 0, 0, 0, 0, 0]);
    // movabs rdx, variable; inc qword [rdx]; mov rax, [rdx]; ret
    let code = [0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0, 0x48, 0xff, 0x02, 0x48, 0x8b, 0x02, 0xc3];
    let at = builder.function("f", &code);
    builder.relocate(at + 2, variable, elf::R_X86_64_64, 0);
    let object = LoadedObject::load(&builder.finish(), &none).unwrap();
    assert_eq!((call(&object, "f"), call(&object, "f")), (6, 7));
}

#[test]
fn code_and_constants_cannot_be_written() {
    let mut builder = Builder::new();
    builder.function("f", &[0xc3]);
    builder.data("table", SectionKind::ReadOnlyData, &[0; 8]);
    let object = LoadedObject::load(&builder.finish(), &none).unwrap();
    for name in ["f", "table"] {
        // SAFETY: the write is expected to be refused.
        let fault = unsafe { guard::store(object.symbol(name).unwrap().address, 0_u8) }.unwrap_err();
        assert_eq!(fault.kind, guard::FaultKind::Protected, "{name}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let mut builder = Builder::new();
    let symbol = builder.external("nobody");
    let at = builder.function("f", &[0xe8, 0, 0, 0, 0, 0xc3]);
    builder.relocate(at + 1, symbol, elf::R_X86_64_PLT32, -4);
    let error = LoadedObject::load(&builder.finish(), &none).err();
    assert_eq!(error, Some(LoadError::Undefined("nobody".into())));
}

#[test]
fn relocations_of_other_types_are_refused() {
    let mut builder = Builder::new();
    let table = builder.data("table", SectionKind::ReadOnlyData, &[0; 8]);
    let at = builder.function("f", &[0; 16]);
    builder.relocate(at, table, elf::R_X86_64_TLSGD, -4);
    let error = LoadedObject::load(&builder.finish(), &none).err();
    assert_eq!(error, Some(LoadError::Relocation(elf::R_X86_64_TLSGD)));
}

#[test]
fn a_relocation_beyond_its_section_is_refused() {
    let mut builder = Builder::new();
    let table = builder.data("table", SectionKind::ReadOnlyData, &[0; 8]);
    builder.function("f", &[0; 16]);
    builder.relocate(1 << 40, table, elf::R_X86_64_PC32, -4);
    assert!(matches!(LoadedObject::load(&builder.finish(), &none), Err(LoadError::Malformed(_))));
}

#[test]
fn damaged_objects_do_no_harm() {
    let mut builder = Builder::new();
    let table = builder.data("table", SectionKind::ReadOnlyData, &[1; 64]);
    let at = builder.function("f", &[0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3]);
    builder.relocate(at + 3, table, elf::R_X86_64_PC32, -4);
    let whole = builder.finish();
    for length in 0..whole.len() {
        let _ = LoadedObject::load(&whole[..length], &none);
    }
    for position in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[position] ^= 1 << bit;
            let _ = LoadedObject::load(&damaged, &none);
        }
    }
}
