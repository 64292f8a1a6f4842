//! Modules, libraries and their variables.
#![cfg(not(miri))] // reserved address space

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::*;
use device::memory::{Side, Transfer};
use device::module::{Code, FunctionAttribute, Input, Library};
use device::{Error, Module};
use kernel_abi::KernelInfo;

const PROGRAM: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .b32 numbers[4] = {1, 2, 3};
.visible .const .align 8 .u64 pointer = generic(numbers) + 8;
.visible .global .align 8 .u64 table[2] = {numbers, pointer};
.visible .global .attribute(.managed) .align 4 .u32 shared_with_host = 7;
.visible .entry first(.param .u8 a, .param .u64 b, .param .align 4 .b8 c[12])
.maxntid 64, 2, 1
{
    .shared .align 16 .b8 buffer[1000];
    .reg .b32 %r;
    mov.u32 %r, buffer;
    st.shared.b32 [%r], %r;
    ret;
}
.visible .entry second() .reqntid 32 { ret; }
";

fn read_bytes(setup: &Setup, address: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0_u8; len];
    // SAFETY: the buffer is used for this copy alone.
    let to = unsafe { Side::any(bytes.as_mut_ptr() as u64) };
    let transfer = Transfer::linear(to, Side::device(address), len as u64);
    setup.context.legacy_stream().copy_and_wait(transfer).unwrap();
    bytes
}

#[test]
fn variables_get_their_values() {
    let setup = Setup::new();
    let module = Module::load(&setup.context, Code::from_ptx(PROGRAM, 90).unwrap()).unwrap();
    let numbers = module.global("numbers").unwrap();
    let pointer = module.global("pointer").unwrap();
    let table = module.global("table").unwrap();
    assert_eq!((numbers.size, pointer.size, table.size), (16, 8, 16));
    let expected: Vec<u8> = [1_u32, 2, 3, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(read_bytes(&setup, numbers.address, 16), expected);
    assert_eq!(read_bytes(&setup, pointer.address, 8), (numbers.address + 8).to_le_bytes());
    let expected: Vec<u8> = [numbers.address, pointer.address].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(read_bytes(&setup, table.address, 16), expected);
    assert!(module.global("shared_with_host").unwrap().managed);
    assert_eq!(module.global("missing").err(), Some(Error::NotFound));
}

#[test]
fn functions_have_attributes() {
    let setup = Setup::new();
    let module = Module::load(&setup.context, Code::from_ptx(PROGRAM, 90).unwrap()).unwrap();
    let first = module.function("first").unwrap();
    let attribute = |which| first.attribute(which).unwrap();
    assert_eq!(attribute(FunctionAttribute::MaxThreadsPerBlock), 128);
    assert_eq!(attribute(FunctionAttribute::SharedSize), 1000);
    assert_eq!(attribute(FunctionAttribute::PtxVersion), 90);
    assert_eq!(attribute(FunctionAttribute::BinaryVersion), 90);
    assert_eq!(attribute(FunctionAttribute::ConstSize), 8);
    assert_eq!(attribute(FunctionAttribute::MaxDynamicSharedSize), (48 << 10) - 1000);
    let entry = first.kernel().entry();
    let layout: Vec<_> = entry.params.iter().map(|param| (param.offset, param.size)).collect();
    assert_eq!((layout, entry.param_bytes), (vec![(0, 1), (8, 8), (16, 12)], 28));
    assert_eq!(first.set_max_dynamic_shared((227 << 10) - 999), Err(Error::InvalidValue));
    first.set_max_dynamic_shared((227 << 10) - 1000).unwrap();
    assert_eq!(module.functions().unwrap().len(), 2);
    assert_eq!(module.function("third").err(), Some(Error::NotFound));
}

#[test]
fn shared_memory_ends_where_a_launch_may_add_to_it() {
    let setup = Setup::new();
    let kernel = |name: &str, bytes: u32| {
        format!(
            ".visible .entry {name}()\n{{\n.shared .align 4 .b8 own[{bytes}];\n.reg .b32 %r;\nmov.u32 %r, own;\n\
             st.shared.b32 [%r], %r;\nret;\n}}\n"
        )
    };
    // What an H200's driver says of each, whether the kernel uses what the module declares or not.
    for (more, sizes) in [
        ("", [5, 40, 100]),
        (".extern .shared .align 4 .b8 more[];", [16, 48, 112]),
        (".extern .shared .align 32 .b8 more[];", [32, 64, 128]),
    ] {
        let kernels = [("a", 5), ("b", 40), ("c", 100)].map(|(name, bytes)| kernel(name, bytes)).concat();
        let text = format!(".version 9.0\n.target sm_90\n.address_size 64\n{more}\n{kernels}");
        let module = Module::load(&setup.context, Code::from_ptx(&text, 90).unwrap()).unwrap();
        let size = |name| module.function(name).unwrap().attribute(FunctionAttribute::SharedSize).unwrap();
        assert_eq!(["a", "b", "c"].map(size), sizes, "{more}");
    }
}

#[test]
fn unloading() {
    let setup = Setup::new();
    let module = Module::load(&setup.context, Code::from_ptx(PROGRAM, 90).unwrap()).unwrap();
    let numbers = module.global("numbers").unwrap();
    let second = module.function("second").unwrap();
    assert!(setup.platform.memory().find(numbers.address).is_some());
    assert_eq!(setup.platform.free(numbers.address), Err(Error::InvalidValue), "not the program's to free");
    module.unload().unwrap();
    assert_eq!(module.unload(), Err(Error::InvalidHandle));
    assert!(setup.platform.memory().find(numbers.address).is_none());
    assert_eq!(launch(&second, setup.context.legacy_stream(), &blocks(1), &[]), Err(Error::InvalidHandle));
}

#[test]
fn wrong_texts_are_refused_with_their_place() {
    let load = |text: &str| Code::from_ptx(text, 90).err().unwrap();
    for text in ["", "// nothing", "no PTX"] {
        assert!(matches!(load(text), Error::InvalidImage(_)), "{text}");
    }
    assert!(matches!(load(".version 99.0\n.target sm_90\n"), Error::UnsupportedPtxVersion(_)));
    assert!(matches!(load(".version 9.0\n.target sm_100\n"), Error::InvalidPtx(_)));
    let broken = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n  frobnicate.u32 1;\n}\n";
    let Error::InvalidPtx(log) = load(broken) else { panic!("not invalid PTX") };
    assert!(log.contains("line 6") && log.contains("frobnicate"), "{log}");
    let unresolved = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f();\n\
                      .visible .entry k() { call f; ret; }\n";
    let Error::InvalidPtx(log) = load(unresolved) else { panic!("not invalid PTX") };
    assert!(log.contains('f'), "{log}");
}

#[test]
fn several_texts_are_linked() {
    let head = ".version 8.0\n.target sm_90\n.address_size 64\n";
    let a = format!(
        "{head}.extern .global .u32 counter;\n.visible .entry k() {{ .reg .b64 %a; mov.u64 %a, counter; ret; }}\n"
    );
    let b = format!("{head}.visible .global .u32 counter = 5;\n");
    let input = |name, text| Input { name, text };
    let code = Code::from_inputs(&[input("a", &a), input("b", &b)], 90).unwrap();
    let setup = Setup::new();
    let module = Module::load(&setup.context, code).unwrap();
    let counter = module.global("counter").unwrap();
    assert_eq!(read_bytes(&setup, counter.address, 4), 5_u32.to_le_bytes());
    let error = Code::from_inputs(&[input("b", &b), input("again", &b)], 90).err().unwrap();
    assert!(matches!(&error, Error::InvalidSource(log) if log.contains("counter")), "{error}");
    let error = Code::from_inputs(&[input("a", &a), input("a2", head)], 90).err().unwrap();
    assert!(matches!(&error, Error::InvalidSource(log) if log.contains("counter")), "{error}");
}

#[test]
fn compiled_once_for_each_shape() {
    let setup = Setup::new();
    let kernel = setup.kernel("k", |_| Ok(()));
    let compiled = || setup.backend.compiled.load(Ordering::Relaxed);
    assert_eq!(compiled(), 0, "compiled at the first launch");
    let stream = setup.context.legacy_stream();
    for _ in 0..3 {
        launch(&kernel, stream, &blocks(2), &[]).unwrap();
    }
    assert_eq!(compiled(), 1);
    launch(&kernel, stream, &device::Launch { block: [33, 1, 1], ..blocks(2) }, &[]).unwrap();
    assert_eq!(compiled(), 2);
}

#[test]
fn eager_loading_compiles_at_once() {
    let setup = Setup::with(|options| options.eager = true);
    setup.define("k", KernelInfo::default(), |_| Ok(()));
    Module::load(&setup.context, code("k")).unwrap();
    assert_eq!(setup.backend.compiled.load(Ordering::Relaxed), 1);
    let error = Module::load(&setup.context, code("unknown")).err();
    assert!(matches!(error, Some(Error::InvalidPtx(_))));
}

#[test]
fn eager_loading_compiles_every_kernel_once_and_tells_the_first_mistake() {
    let setup = Setup::with(|options| (options.eager, options.threads) = (true, 4));
    let text = |names: &[String]| {
        let kernels: String =
            names.iter().map(|name| format!(".visible .entry {name}() {{ ret; }}\n")).collect();
        Code::from_ptx(&format!(".version 8.0\n.target sm_80\n.address_size 64\n{kernels}"), 90).unwrap()
    };
    let mut names: Vec<String> = (0..50).map(|number| format!("k{number}")).collect();
    for name in &names {
        setup.define(name, KernelInfo::default(), |_| Ok(()));
    }
    Module::load(&setup.context, text(&names)).unwrap();
    assert_eq!(setup.backend.compiled.load(Ordering::Relaxed), 50);
    names[20] = "first_unknown".into();
    names[21] = "other_unknown".into();
    names[45] = "last_unknown".into();
    let Some(Error::InvalidPtx(log)) = Module::load(&setup.context, text(&names)).err() else {
        panic!("a kernel that cannot be compiled");
    };
    assert!(log.contains("first_unknown"), "{log}");
}

#[test]
fn a_library_has_a_module_in_each_context() {
    let setup = Setup::new();
    let other = setup.platform.device(0).unwrap().primary();
    let primary = other.retain().unwrap();
    let library = Library::new(Code::from_ptx(PROGRAM, 90).unwrap());
    let here = library.module(&setup.context).unwrap();
    let there = library.module(&primary).unwrap();
    assert!(Arc::ptr_eq(&here, &library.module(&setup.context).unwrap()));
    assert_ne!(here.global("numbers").unwrap().address, there.global("numbers").unwrap().address);
    other.reset().unwrap();
    let primary = other.retain().unwrap();
    assert!(!there.is_loaded());
    assert!(library.module(&primary).unwrap().is_loaded(), "loaded again after the reset");
    library.unload(setup.platform.memory());
    assert!(!here.is_loaded());
}

#[test]
fn managed_variables_of_a_library_are_there_once() {
    let setup = Setup::new();
    let library = Library::new(Code::from_ptx(PROGRAM, 90).unwrap());
    let memory = setup.platform.memory();
    // No context has asked for the library yet.
    let managed = library.managed(memory, "shared_with_host").unwrap();
    assert_eq!(read_bytes(&setup, managed.address, 4), 7_u32.to_le_bytes());
    assert_eq!(library.managed(memory, "numbers").err(), Some(Error::NotFound));
    let device = setup.platform.device(0).unwrap().primary();
    let primary = device.retain().unwrap();
    for context in [&setup.context, &primary] {
        assert_eq!(library.module(context).unwrap().global("shared_with_host").unwrap(), managed);
    }
    device.reset().unwrap();
    assert!(memory.find(managed.address).is_some(), "it outlives a context");
    assert_eq!(setup.platform.free(managed.address), Err(Error::InvalidValue));
    library.unload(memory);
    assert!(memory.find(managed.address).is_none());
}
