//! What a module defines beside code.

use ptx::ast::{Linkage, StateSpace};
use ptx::lower::{self, EntryParam, ModuleVariable, ParamClass, Relocation};

fn variables(declarations: &str) -> Vec<ModuleVariable> {
    let source = format!(".version 8.0 .target sm_80 .address_size 64\n{declarations}");
    let module = ptx::parse(&source).expect("the syntax is right");
    lower::variables(&source, &module).expect("the variables are right")
}

#[test]
fn bytes_are_little_endian_and_zeros_may_be_missing() {
    let all = variables(
        ".global .align 8 .u32 a = 0x01020304;
         .const .f32 b[4] = {1.5, 0f40000000};
         .visible .global .u16 c[2][3] = {{1}, {2, 3}};
         .global .s8 d[] = {-1, 2, 3};
         .global .v2 .u32 e = {7, 8};
         .global .attribute(.managed) .b64 f[100];",
    );
    let bytes: Vec<&[u8]> = all.iter().map(|v| &v.bytes[..]).collect();
    assert_eq!(bytes[0], [4, 3, 2, 1]);
    assert_eq!(bytes[1], [0, 0, 0xc0, 0x3f, 0, 0, 0, 0x40]);
    assert_eq!(bytes[2], [1, 0, 0, 0, 0, 0, 2, 0, 3, 0]);
    assert_eq!(bytes[3], [255, 2, 3]);
    assert_eq!(bytes[4], [7, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(bytes[5], [0u8; 0]);
    let sizes: Vec<(u64, u64)> = all.iter().map(|v| (v.size, v.align)).collect();
    assert_eq!(sizes, [(4, 8), (16, 4), (12, 2), (3, 1), (8, 8), (800, 8)]);
    assert_eq!(all[1].space, StateSpace::Const);
    assert_eq!(all[2].linkage, Linkage::Visible);
    assert!(all[5].managed && !all[0].managed);
}

#[test]
fn addresses_become_relocations_and_functions_tokens() {
    let all = variables(
        ".global .u32 target[4];
         .func first() { ret; }
         .func second() { ret; }
         .global .u64 pointers[3] = {target, generic(target)+8, second};
         .global .u8 parts[2] = {0xff(target), 0xff00(target)};",
    );
    let relocation = |offset, bytes, shift, addend, generic| Relocation {
        offset,
        bytes,
        shift,
        symbol: "target".into(),
        addend,
        generic,
    };
    assert_eq!(all[1].relocations, [relocation(0, 8, 0, 0, false), relocation(8, 8, 0, 8, true)]);
    assert_eq!(all[2].relocations, [relocation(0, 1, 0, 0, false), relocation(1, 1, 8, 0, false)]);
    let token = u64::from_le_bytes(all[1].bytes[16..24].try_into().expect("eight bytes"));
    assert_ne!(token, 0);

    // The same token is what the program compares with.
    let source = ".version 8.0 .target sm_80 .address_size 64
        .func first() { ret; }
        .func second() { ret; }
        .global .u64 pointers[3] = {0, 0, second};
        .entry k(.param .u64 p) { .reg .b64 %f; ld.param.u64 %f, [p]; proto: .callprototype _(); call %f, proto; ret; }";
    let module = ptx::parse(source).expect("the syntax is right");
    let program = lower::program(source, &module, "k").expect("the kernel is right");
    let taken: Vec<(&str, u64)> = program.functions[1..].iter().map(|f| (f.name.as_str(), f.token)).collect();
    assert_eq!(taken, [("second", token)]);
}

#[test]
fn a_definition_replaces_a_declaration() {
    let all = variables(".extern .global .u32 x; .visible .global .u32 x = 5; .extern .global .u32 y;");
    assert_eq!((all[0].linkage, all[0].bytes[0]), (Linkage::Visible, 5));
    assert_eq!(all[1].linkage, Linkage::Extern);
    assert_eq!(all.len(), 2);
}

#[test]
fn parameters_are_aligned() {
    let source = ".version 8.0 .target sm_80 .address_size 64
        .entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20], .param .f32 d)
        .maxntid 128, 2 { ret; }";
    let module = ptx::parse(source).expect("the syntax is right");
    let entry = &lower::entries(source, &module).expect("the parameters are right")[0];
    let param = |offset, size, align, class| EntryParam { offset, size, align, class };
    let (integer, bits, float) = (ParamClass::Integer, ParamClass::Bits, ParamClass::Float);
    let expected =
        [param(0, 1, 1, integer), param(8, 8, 8, integer), param(16, 20, 16, bits), param(36, 4, 4, float)];
    assert_eq!(entry.params, expected);
    assert_eq!((entry.param_bytes, entry.max_block), (40, Some([128, 2, 1])));
    let program = lower::program(source, &module, "k").expect("the kernel is right");
    assert_eq!((program.param_bytes, program.max_threads), (40, 256));
}

#[test]
fn blocks_have_variables_of_the_module() {
    let source = ".version 8.0 .target sm_80 .address_size 64
        .global .u32 x = 1;
        .func f() { .const .u32 x[] = {2, 3}; { .global .u64 y<2>; .global .u64 x = y1; } ret; }
        .func g() { .global .u64 f = f; .global .u64 x = f; ret; }
        .entry k() { .reg .pred %p; .reg .b64 %a; isspacep.const %p, %a; ret; }";
    let module = ptx::parse(source).expect("the syntax is right");
    let all = lower::variables(source, &module).expect("the variables are right");
    let sizes: Vec<(&str, u64)> =
        all.iter().map(|v| (v.name.split_once('@').map_or("", |(name, _)| name), v.size)).collect();
    assert_eq!(sizes, [("", 4), ("x", 8), ("y0", 8), ("y1", 8), ("x", 8), ("f", 8), ("x", 8)]);
    let names: std::collections::HashSet<&str> = all.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "{names:?}");
    assert_eq!(all[4].relocations[0].symbol, all[3].name);
    assert!(all[5].relocations.is_empty() && all[5].bytes != [0; 8], "the first f is a function");
    assert_eq!(all[6].relocations[0].symbol, all[5].name, "the second is a variable");

    // Whoever asks for the space of an address may have another function's constant, whose body need not be read for anything else.
    let skipped = ptx::Options { bodies: ptx::Bodies::Skipped, ..ptx::Options::default() };
    let module = ptx::parse_with(source, &skipped).expect("the syntax is right");
    let program = lower::program(source, &module, "k").expect("the kernel is right");
    assert_eq!(program.globals, [all[1].name.clone()]);
}

#[test]
fn constants_have_64_kib_in_all() {
    let verdict = |declarations: &str| {
        let source = format!(".version 8.0 .target sm_80 .address_size 64\n{declarations}");
        let module = ptx::parse(&source).expect("the syntax is right");
        lower::variables(&source, &module).map(|all| all.len()).map_err(|errors| errors.to_string())
    };
    assert_eq!(verdict(".const .b8 a[65533]; .global .b8 b[9]; .const .b8 c[3];"), Ok(3));
    let error = verdict(".const .b8 a[65533]; .func f() { .const .align 4 .b8 c[1]; ret; }").unwrap_err();
    assert!(error.contains("more than 65536 bytes"), "{error}");
}

/// Each error's place is found by counting lines: of hundreds of thousands that takes minutes.
#[test]
fn a_text_that_is_wrong_everywhere_is_not_looked_at_to_its_end() {
    let each = |line: &str| {
        let lines: String = (0..100_000).map(|at| line.replace('#', &at.to_string())).collect();
        format!(".version 8.0 .target sm_80 .address_size 64\n{lines}")
    };
    let of_one = format!(".global .u64 x[100000] = {{{}}};", "y,\n".repeat(99_999) + "y");
    for source in [each(".global .u64 x# = y#;\n"), each(".global .u64 x;\n"), each("") + &of_one] {
        let module = ptx::parse(&source).expect("the syntax is right");
        let begin = std::time::Instant::now();
        let errors = ptx::resolve::check(&source, &module).unwrap_err();
        assert_eq!(errors.list().len(), ptx::Errors::LIMIT);
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{:?}", begin.elapsed());
    }
}
