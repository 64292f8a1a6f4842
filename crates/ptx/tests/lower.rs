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
