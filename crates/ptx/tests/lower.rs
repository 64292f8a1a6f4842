//! Every module in `tests/lower` passes the check, and its kernels lower to IR that the verifier accepts. Lines
//! `// IR text` say what the IR of the kernel after them contains, `// NOT text` what it does not. Every line of the
//! files in `tests/refused` is one instruction with the error it must give.

use std::path::{Path, PathBuf};

use ptx::{LoadErrorKind, lower};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder is part of the crate")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds tests", folder.display());
    files
}

#[test]
fn modules_lower_to_sound_programs() {
    for path in files("lower") {
        let source = std::fs::read_to_string(&path).expect("a text file");
        let at = path.display();
        let module = ptx::parse(&source).unwrap_or_else(|e| panic!("{at}: {e}"));
        lower::check(&source, &module).unwrap_or_else(|e| panic!("{at}: {e}"));
        let mut wanted: Vec<(bool, &str)> = Vec::new();
        for line in source.lines() {
            if let Some(text) = line.strip_prefix("// IR ") {
                wanted.push((true, text));
            } else if let Some(text) = line.strip_prefix("// NOT ") {
                wanted.push((false, text));
            } else if let Some(kernel) = module.entries().find(|f| defines(line, f.name.text)) {
                let name = kernel.name.text;
                let program =
                    lower::program(&source, &module, name).unwrap_or_else(|e| panic!("{at}, {name}: {e}"));
                let text = program.to_string();
                simt_ir::verify(&program).unwrap_or_else(|e| panic!("{at}, {name}: {e}\n{text}"));
                for (present, part) in wanted.drain(..) {
                    assert_eq!(text.contains(part), present, "{at}, {name}: '{part}' in\n{text}");
                }
            }
        }
        assert!(wanted.is_empty(), "{at}: nothing follows the last expectation");
    }
}

/// Whether the line begins the definition of this kernel.
fn defines(line: &str, name: &str) -> bool {
    line.split_once(".entry ")
        .is_some_and(|(_, rest)| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next() == Some(name))
}

const PRELUDE: &str = ".version 7.8 .target sm_80 .address_size 64
.global .u32 variable; .global .u32 array[4]; .shared .u32 block;
.func (.param .b32 r) callee(.param .b32 a) { ret; }
.entry k(.param .u64 param) {
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .u16 %u16_<2>; .reg .b32 %r<8>; .reg .u32 %u<4>; .reg .s32 %s<4>;
.reg .b64 %rd<8>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .v4 .f32 %v; .reg .b128 %q<2>;
label:
";

#[test]
fn wrong_instructions_are_refused_with_their_kind() {
    for path in files("refused") {
        let list = std::fs::read_to_string(&path).expect("a text file");
        for line in list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//")) {
            let (kind, instruction) = line.split_once(": ").expect("'Kind: instruction'");
            let source = format!("{PRELUDE}{instruction}\n}}");
            let errors = match ptx::parse(&source) {
                Ok(module) => lower::check(&source, &module).expect_err(instruction),
                Err(errors) => errors,
            };
            let error = &errors.list()[0];
            assert_eq!(format!("{:?}", error.kind), kind, "{instruction}: {error}");
            assert_eq!(error.line, PRELUDE.lines().count() as u32 + 1, "{instruction}: {error}");
            assert!(error.column > 0 && !error.text.is_empty(), "{instruction}: {error}");
        }
    }
}

/// What is said is what a person must change: the modifier that does not go with the types, or what is missing.
#[test]
fn messages_name_the_cause() {
    for (instruction, column, message) in [
        (
            "setp.ltu.ftz.s32 %p0, %r0, %r1;",
            5,
            "illegal modifiers '.ltu' and '.ftz' for instruction 'setp.s32', which requires '.eq', '.ne', '.lt', '.le', '.gt' or '.ge'",
        ),
        (
            "cvt.rna.f32.s32 %f0, %r0;",
            4,
            "illegal modifier '.rna' for instruction 'cvt.f32.s32', which requires '.rn', '.rz', '.rm' or '.rp'",
        ),
        ("cvt.f64.s64 %d0, %rd0;", 1, "instruction 'cvt.f64.s64' requires '.rn', '.rz', '.rm' or '.rp'"),
        ("min.abs.f16 %h0, %h1, %h2;", 1, "instruction 'min.abs.f16' requires '.xorsign'"),
        (
            "atom.global.max.f32 %f0, [%rd0], %f1;",
            12,
            "illegal modifier '.max' for instruction 'atom.global.f32', which requires '.add'",
        ),
        (
            "abs.u16 %h0, %h1;",
            4,
            "unexpected instruction type '.u16' for instruction 'abs', which requires '.s16', '.s32' or '.s64'",
        ),
        ("add.fast.u32 %r0, %r1, %r2;", 4, "illegal modifier '.fast' for instruction 'add.u32'"),
        ("mul.u32.lo %r0, %r1, %r2;", 1, "illegal order of modifiers for instruction 'mul.u32.lo'"),
        // Of several entries with these modifiers that one is meant which goes furthest.
        (
            "mov.u32 %r0, array;",
            14,
            "arguments mismatch for instruction 'mov': the address of a .global variable has 64 bits",
        ),
        (
            "call (%r0), callee, (%rd0);",
            22,
            "arguments mismatch for instruction 'call': the type is not that of the parameter 'a'",
        ),
        ("ld.global.u32 %r0, [%rd0-4];", 25, "syntax error near '-': an offset is added, as in 'a+-4'"),
    ] {
        let source = format!("{PRELUDE}{instruction}\n}}");
        let errors = match ptx::parse(&source) {
            Ok(module) => lower::check(&source, &module).expect_err(instruction),
            Err(errors) => errors,
        };
        let error = &errors.list()[0];
        let line = PRELUDE.lines().count() as u32 + 1;
        assert_eq!(
            (error.line, error.column, error.message.as_str()),
            (line, column, message),
            "{instruction}"
        );
    }
}

#[test]
fn what_is_passed_to_functions_is_of_their_types() {
    const FUNCTIONS: &str = ".version 9.0 .target sm_90 .address_size 64
        .func word(.param .u32 x) { ret; } .func float(.reg .f32 x) { ret; }
        .func bytes(.param .align 8 .b8 x[8]) { ret; } .func small(.param .u16 x) { ret; } .func truth(.reg .pred x) { ret; }
        .func (.param .b32 r) answer() { ret; }
        .entry k() { .reg .b32 r; .reg .u64 wide; .reg .f32 f; .reg .b16 h; .reg .pred p;
        .param .s32 signed; .param .b64 long; .param .align 4 .b8 less[8]; .param .align 8 .b8 more[16]; .param .align 8 .b8 fits[8]; .local .b32 local; ";
    let check = |call: &str| {
        let source = format!("{FUNCTIONS}{call} ret; }}");
        let module = ptx::parse(&source).expect(call);
        lower::check(&source, &module)
    };
    for call in [
        "call word, (r);",
        "call word, (7);",
        "call word, (signed);",
        "call float, (f);",
        "call float, (1.5);",
        "call bytes, (fits);",
        "call small, (h);",
        "call (r), answer;",
        "call (signed), answer;",
        "call (_), answer;",
    ] {
        check(call).unwrap_or_else(|errors| panic!("{call}: {errors}"));
    }
    for call in [
        "call word, (wide);",
        "call word, (long);",
        "call word, (f);",
        "call word, (1.5);",
        "call word, (fits);",
        "call word, (local);",
        "call word, (_);",
        "call float, (7);",
        "call float, (signed);",
        "call bytes, (less);",
        "call bytes, (more);",
        "call bytes, (wide);",
        "call truth, (p);",
        "call (wide), answer;",
        "call (local), answer;",
        "call (p), answer;",
    ] {
        let errors = check(call).expect_err(call);
        assert_eq!(errors.kind(), LoadErrorKind::Type, "{call}: {errors}");
    }
}

#[test]
fn coordinates_beyond_those_there_are_mean_nothing() {
    let program = |instruction: &str| {
        let source = format!(
            ".version 9.0 .target sm_90 .address_size 64 .global .texref t; .global .surfref s;
            .entry k() {{ .reg .f32 %f<8>; .reg .b32 %r<8>;
            mov.f32 %f0, 0.5; mov.f32 %f1, 1.5; mov.b32 %r0, 1; mov.b32 %r1, 2; {instruction} ret; }}"
        );
        let module = ptx::parse(&source).expect(instruction);
        lower::check(&source, &module).unwrap_or_else(|errors| panic!("{instruction}: {errors}"));
        lower::program(&source, &module, "k").expect(instruction).to_string()
    };
    for (short, long) in [
        (
            "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [t, {%f0,%f1}];",
            "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [t, {%f0,%f1,%f1,%f0}];",
        ),
        (
            "tex.1d.v4.f32.s32 {%f4,%f5,%f6,%f7}, [t, {%r0}];",
            "tex.1d.v4.f32.s32 {%f4,%f5,%f6,%f7}, [t, {%r0,%r0}];",
        ),
        (
            "tex.a1d.v4.f32.s32 {%f4,%f5,%f6,%f7}, [t, {%r0,%r1}];",
            "tex.a1d.v4.f32.s32 {%f4,%f5,%f6,%f7}, [t, {%r0,%r1,%r1,%r1}];",
        ),
        ("suld.b.2d.b32.trap {%r4}, [s, {%r0,%r1}];", "suld.b.2d.b32.trap {%r4}, [s, {%r0,%r1,%r0,%r0}];"),
    ] {
        assert_eq!(program(short), program(long), "{long}");
    }
}

#[test]
fn a_hundred_thousand_labels_take_no_time_to_speak_of() {
    let labels: String = (0..100_000).map(|at| format!("l{at}: bra l{};\n", at + 1)).collect();
    let source =
        format!(".version 9.0 .target sm_90 .address_size 64 .entry k() {{ {labels} l100000: ret; }}");
    let module = ptx::parse(&source).expect("syntax");
    lower::check(&source, &module).expect("the module is right");
    let program = lower::program(&source, &module, "k").expect("the kernel is right");
    assert!(program.functions[0].blocks().count() > 100_000);
}

#[test]
fn what_later_architectures_add_is_refused_by_name() {
    const HEAD: &str = ".version 9.0 .target sm_90a .address_size 64
.entry k() { .reg .pred %p<8>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b128 %q<8>; .reg .f32 %f<8>;
";
    for later in ptx::isa::refused() {
        let example = later.example;
        let source = format!("{HEAD}{example}\n}}");
        let module = ptx::parse(&source).unwrap_or_else(|errors| panic!("{example}: {errors}"));
        let errors = lower::check(&source, &module).expect_err(example);
        let [error] = errors.list() else { panic!("{example}: {errors}") };
        assert_eq!((error.kind, error.line), (LoadErrorKind::Unsupported, 3), "{example}: {error}");
        let words: String = example.split([' ', ';']).next().unwrap_or_default().into();
        assert!(error.message.contains(&words), "{example}: {error}");
    }
}

#[test]
fn a_callee_that_is_nowhere_is_named() {
    let source = ".version 8.0 .target sm_80 .address_size 64
        .extern .func nowhere();
        .entry k() { call nowhere; ret; }";
    let module = ptx::parse(source).expect("the syntax is right");
    let errors = lower::program(source, &module, "k").expect_err("the callee is missing");
    assert_eq!(errors.kind(), LoadErrorKind::Unresolved);
    assert!(errors.to_string().contains("nowhere"), "{errors}");
}

#[test]
fn what_a_sampler_says_is_asked_of_samplers_where_they_stand_apart() {
    let queries = [
        ("width", [true, false], [true, true]),
        ("normalized_coords", [true, false], [true, true]),
        ("filter_mode", [false, true], [true, true]),
        ("addr_mode_1", [false, true], [true, true]),
        ("force_unnormalized_coords", [false, true], [false, true]),
    ];
    for (query, apart, together) in queries {
        for (object, kind) in ["texref", "samplerref"].into_iter().enumerate() {
            for (mode, expected) in [("texmode_independent", apart), ("texmode_unified", together)] {
                if mode == "texmode_unified" && kind == "samplerref" {
                    continue;
                }
                let source = format!(
                    ".version 7.8 .target sm_80, {mode} .address_size 64 .global .{kind} object;
                     .entry k() {{ .reg .b32 %r; txq.{query}.b32 %r, [object]; ret; }}"
                );
                let module = ptx::parse(&source).expect("syntax");
                let checked = lower::check(&source, &module);
                assert_eq!(checked.is_ok(), expected[object], "{query} of a .{kind}, {mode}: {checked:?}");
            }
        }
    }
}
