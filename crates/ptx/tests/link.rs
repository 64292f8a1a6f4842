//! Linking of modules.

use std::collections::HashSet;

use ptx::ast::{Body, Linkage};
use ptx::link::{Input, define, link, undefined_variables, unresolved};
use ptx::target::Device;
use ptx::{LoadError, LoadErrorKind, Module, parse, resolve};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn link_all(texts: &[&str]) -> Result<String, Vec<LoadError>> {
    let texts: Vec<String> = texts.iter().map(|text| format!("{HEAD}{text}")).collect();
    let names = ["a.ptx", "b.ptx", "c.ptx"];
    let inputs: Vec<Input<'_>> = names.iter().zip(&texts).map(|(name, text)| Input { name, text }).collect();
    link(&inputs, Device::default()).map_err(|errors| errors.list().to_vec())
}

/// Links, and checks that the result stands by itself.
fn linked(texts: &[&str]) -> String {
    let text = link_all(texts).unwrap_or_else(|errors| panic!("{errors:?}"));
    let module = parse(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    resolve::check(&text, &module).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    text
}

fn variable<'m>(module: &'m Module<'_>, name: &str) -> &'m ptx::ast::Variable<'m> {
    module.variables().find(|v| v.name.text == name).unwrap_or_else(|| panic!("no {name} in\n{module}"))
}

#[test]
fn declarations_meet_definitions() {
    let text = linked(&[
        ".extern .func (.param .b32 r) twice(.param .b32 x);
         .extern .global .u32 counter;
         .visible .entry k() { .reg .b64 %d; .reg .b32 %r;
            { .param .b32 a; .param .b32 r; call (r), twice, (a); } mov.u64 %d, counter; ret; }",
        ".visible .global .u32 counter = 3;
         .visible .func (.param .b32 r) twice(.param .b32 x) { ret; }",
    ]);
    let module = parse(&text).unwrap();
    assert!(module.function("twice").unwrap().is_defined());
    assert!(module.functions().all(|f| f.linkage == Linkage::Visible), "{text}");
    assert!(variable(&module, "counter").initialiser.is_some());
    assert_eq!(module.variables().count(), 1);
}

#[test]
fn what_refers_to_each_other_is_declared_before() {
    let text = linked(&[
        ".extern .global .u64 other[2];
         .visible .global .u64 one[1] = {other};
         .extern .entry late();
         .visible .entry early() { .reg .b64 %d; mov.u64 %d, late; ret; }",
        ".extern .global .u64 one[1];
         .visible .global .u64 other[2] = {one, generic(one)};
         .visible .entry late() { ret; }",
    ]);
    let module = parse(&text).unwrap();
    assert_eq!(module.entries().map(|f| f.name.text).collect::<Vec<_>>(), ["late", "early"], "{text}");
    let defined = module.variables().filter(|v| v.linkage == Linkage::Visible).map(|v| v.name.text);
    assert_eq!(defined.collect::<Vec<_>>(), ["other", "one"], "{text}");
    assert_eq!(unresolved(&module), [""; 0]);
}

#[test]
fn what_is_private_comes_before_what_names_it() {
    // The first module's declaration is where the symbol is first spoken of.
    let text = linked(&[
        ".extern .global .u64 table[1]; .visible .entry k() { .reg .b64 %d; mov.u64 %d, table; ret; }",
        ".global .u32 data[2] = {1, 2};
         .global .u64 inner[1] = {data};
         .visible .global .u64 table[1] = {generic(inner)};",
    ]);
    let place =
        |name: &str| text.find(&format!(" {name}[")).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    assert!(place("data") < place("inner"), "{text}");
    assert!(text.rfind(" table[") > Some(place("inner")), "{text}");
}

#[test]
fn private_symbols_stay_apart() {
    let text = linked(&[
        ".global .u32 state = 1;
         .func helper() { ret; }
         .visible .entry a() { .reg .b64 %d; mov.u64 %d, state; call helper; ret; }",
        ".global .u32 state = 2;
         .func helper() { .reg .b32 state; mov.u32 state, 0; ret; }
         .global .u64 table[2] = {helper, generic(state)+4};
         .visible .entry b() { .reg .b64 %d; mov.u64 %d, state; call helper; ret; }",
        ".visible .func helper() { exit; }",
    ]);
    let module = parse(&text).unwrap();
    let calls = |name: &str| match &module.function(name).unwrap().body {
        Body::Parsed(code) => format!("{code}"),
        _ => panic!("{name} has no body"),
    };
    // The visible one keeps its name, so both private ones give way.
    assert!(calls("helper").contains("exit"));
    assert!(calls("a").contains("call helper$module0"), "{text}");
    assert!(calls("a").contains("%d, state;"), "{text}");
    assert!(
        calls("b").contains("call helper$module1") && calls("b").contains("%d, state$module1;"),
        "{text}"
    );
    assert!(calls("helper$module1").contains("mov.u32 state, 0"), "a local name is another thing: {text}");
    assert!(text.contains("{helper$module1, generic(state$module1)+4}"), "{text}");
}

#[test]
fn weak_and_common_symbols_join() {
    let text = linked(&[
        ".weak .func f() { ret; }
         .weak .global .u32 v = 1;
         .common .global .align 4 .b8 buffer[16];
         .extern .shared .align 4 .b8 dynamic[];",
        ".weak .func f() { exit; }
         .visible .global .u32 v = 2;
         .common .global .align 8 .b8 buffer[64];
         .extern .shared .align 16 .b8 dynamic[];",
    ]);
    let module = parse(&text).unwrap();
    assert!(format!("{}", module).contains("ret;") && !text.contains("exit;"), "the first weak one stays");
    assert!(text.contains("v = 2"), "a strong one wins");
    assert_eq!(variable(&module, "buffer").size(), Some(64));
    assert_eq!(variable(&module, "dynamic").alignment(), 16);
    assert_eq!(module.variables().count(), 3);
}

#[test]
fn clashes_are_named() {
    let errors = link_all(&[".visible .func f() { ret; }", ".visible .func f() { ret; }"]).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].kind, errors[0].text.as_str()), (LoadErrorKind::MultiplyDefined, "f"));
    assert!(errors[0].message.contains("a.ptx") && errors[0].message.contains("b.ptx"));
    let errors = link_all(&[".entry k() { ret; }", ".entry k() { ret; }"]).unwrap_err();
    assert_eq!(errors[0].kind, LoadErrorKind::MultiplyDefined);
    let errors = link_all(&[".visible .global .u32 x;", ".visible .func x() { ret; }"]).unwrap_err();
    assert_eq!((errors[0].kind, errors[0].text.as_str()), (LoadErrorKind::MultiplyDefined, "x"));
}

#[test]
fn what_is_missing_is_named() {
    let uses = ".extern .func missing(); .extern .func unused(); .extern .global .u32 gone;
        .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
        .global .u64 where = gone;
        .visible .entry k() { call missing; { .param .b32 r; .param .b64 a;
            call (r), vprintf, (a, a); } ret; }";
    let errors = link_all(&[uses, ""]).unwrap_err();
    let found: Vec<_> = errors.iter().map(|e| (e.kind, e.text.as_str())).collect();
    assert_eq!(found, [(LoadErrorKind::Unresolved, "gone"), (LoadErrorKind::Unresolved, "missing")]);
    let text = format!("{HEAD}{uses}");
    let module = parse(&text).unwrap();
    assert_eq!(unresolved(&module), ["gone", "missing"]);
    let errors = ptx::link::check_unresolved(&text, &module).unwrap_err();
    assert_eq!(errors.list()[0].line, 6, "the first use is what is reported");
}

#[test]
fn aliases_define() {
    let text = linked(&[
        ".visible .func g(); .func f() { ret; } .alias g, f;",
        ".extern .func g(); .func f() { exit; } .visible .entry k() { call g; call f; ret; }",
    ]);
    assert!(text.contains(".alias g, f;") && text.contains("call f$module1;"), "{text}");
}

#[test]
fn lines_keep_their_files() {
    let text = linked(&[
        ".file 1 \"a.cu\"\n .file 2 \"h.h\"\n .visible .entry a() {\n.loc 2 7 1\n ret; }",
        ".file 1 \"h.h\"\n .file 2 \"b.cu\"\n .visible .entry b() {\n.loc 1 8 1\n bar.sync 0;
         .loc 2 9 1, function_name l, inlined_at 1 3 4\n ret; }",
    ]);
    for line in
        [".file 3 \"b.cu\"", ".loc 2 7 1\n", ".loc 2 8 1\n", ".loc 3 9 1, function_name l, inlined_at 2 3 4"]
    {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(text.matches(".file").count(), 3);
}

#[test]
fn the_newest_header_holds_for_all() {
    let inputs = [
        Input {
            name: "a",
            text: ".version 8.7 .target sm_52, debug, texmode_unified .section .debug_str { .b8 0 }",
        },
        Input { name: "b", text: ".version 8.0 .target sm_90a .address_size 64" },
    ];
    let text = link(&inputs, Device::default()).unwrap();
    assert!(text.starts_with(".version 8.7\n.target sm_90a, texmode_unified\n.address_size 64\n"), "{text}");
    assert!(parse(&link(&[], Device::default()).unwrap()).is_ok(), "linking nothing gives an empty module");
}

#[test]
fn errors_of_one_text_are_its_own() {
    let errors = link_all(&["", ".func f() { add.u32 ,; }"]).unwrap_err();
    assert_eq!((errors[0].kind, errors[0].line), (LoadErrorKind::Syntax, 4));
}

#[test]
fn what_is_defined_afterwards_keeps_its_lines() {
    let text = "// .extern is only said here\n.version 9.0\n.target sm_90\n.address_size 64
.extern /* .extern */ .global\n    .align 8 .b8 a[16], b[4];\n.extern .const .u32 c;\n.extern .global .u32 d;
.visible .entry k()\n{\n    ret;\n}\n";
    let mut names = HashSet::from(["b", "d", "elsewhere"]);
    let device = Device::default();
    let defined = define(text, &mut names, device).unwrap().unwrap();
    assert_eq!(names, HashSet::from(["elsewhere"]));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(text), lines(&defined));
    assert_eq!(before.len(), after.len());
    let changed: Vec<usize> = (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
    assert_eq!(changed, [4, 5, 7], "{defined}");
    let module = parse(&defined).unwrap();
    let linkage = |name: &str| module.variables().find(|v| v.name.text == name).unwrap().linkage;
    assert_eq!([linkage("a"), linkage("b")], [Linkage::Extern, Linkage::Visible]);
    assert_eq!([linkage("c"), linkage("d")], [Linkage::Extern, Linkage::Visible]);
    assert_eq!(define(text, &mut HashSet::from(["elsewhere"]), device).unwrap(), None);
}

#[test]
fn shared_memory_of_known_size_is_to_be_defined() {
    let text = ".version 7.1\n.target sm_80\n.address_size 64
.extern .shared .align 4 .b8 sized[512];\n.extern .shared .align 4 .b8 launched[];\n.extern .shared .b32 unused;
.visible .entry k()\n{\n    .reg .b32 %a;\n    mov.u32 %a, sized;\n    mov.u32 %a, launched;\n    ret;\n}\n";
    assert_eq!(undefined_variables(&parse(text).unwrap()), ["sized"]);
}
