//! Lanes that access memory one by one, and bytes of some lanes, where the processor has no instruction for either: against the interpreter, and how
//! they are addressed.
#![cfg(target_arch = "x86_64")]

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::{Edge, Launch, in_pairs, kernel_of};
use simt_ir::Program;

const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// Each thread `%t` has a word, whose address is `%own` and which is `%i`; `%data` begins where the threads' words end.
fn program(step: &str) -> Program {
    kernel_of(&format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 words)\n{{\n\
         .shared .align 16 .b8 tile[8448];\n\
         .reg .b16 %h;\n.reg .b32 %t, %i, %v<4>, %s;\n.reg .b64 %own, %data, %x;\n.reg .pred %p;\n\
         ld.param.u64 %data, [words];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %own, %t, 4;\nadd.u64 %own, %own, %data;\n\
         add.u64 %data, %data, {};\nld.global.u32 %i, [%own];\nmov.b32 %v0, 0;\n{step}\n\
         st.global.u32 [%own], %v0;\nret;\n}}",
        4 * THREADS
    ))
}

/// The words of all threads, and as many times eight words of data.
fn words(own: impl Fn(u32) -> u32) -> Vec<u64> {
    let data = (0..8 * THREADS).map(|at| at.wrapping_mul(0x9e37_79b9));
    in_pairs(&(0..THREADS).map(own).chain(data).collect::<Vec<_>>())
}

fn agrees(step: &str) {
    // Indices in no order, some of them negative.
    let own = |t: u32| (t * 37 % 64).wrapping_sub(8);
    LAUNCH.must_agree(&program(step), &words(own), |words| [words.as_mut_ptr() as u64], step);
}

fn assembly(step: &str, level: Level) -> String {
    codegen::emit_text(&program(step), &LAUNCH.shape(), &Cpu::level_cpu(level), Text::Assembly).unwrap()
}

/// An element of so many bytes at an index that a thread has from memory.
fn indexed(bytes: u32) -> String {
    format!("mul.wide.s32 %x, %i, {bytes};\nadd.u64 %x, %x, %data;")
}

/// A column of a tile whose rows are 33 words.
const COLUMN: &str = "mov.u32 %s, tile;\nmad.lo.u32 %s, %t, 132, %s;\nst.shared.u32 [%s+4], %i;\nbar.sync 0;\nxor.b32 %t, %t, 63;\n\
                      mov.u32 %s, tile;\nmad.lo.u32 %s, %t, 132, %s;\nld.shared.u32 %v0, [%s+4];";

#[test]
fn elements_of_every_size_are_found() {
    let loads = [
        (1, "ld.global.u8 %h, [%x+40]; cvt.u32.u16 %v0, %h;"),
        (2, "ld.global.s16 %h, [%x+40]; cvt.s32.s16 %v0, %h;"),
        (4, "ld.global.u32 %v0, [%x+32];"),
        (8, "ld.global.v2.u32 {%v1, %v2}, [%x+64]; sub.u32 %v0, %v1, %v2;"),
        (
            16,
            "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%x+128]; sub.u32 %v0, %v0, %v1; xor.b32 %v2, %v2, %v3; add.u32 %v0, %v0, %v2;",
        ),
    ];
    for (bytes, load) in loads {
        let step = format!("{}{load}", indexed(bytes));
        agrees(&step);
        // Of some lanes, and of those who are in order.
        agrees(&format!("{}setp.lt.s32 %p, %i, 13;\n@%p bra done;\n{load}\ndone:", indexed(bytes)));
        agrees(&format!("{}add.u32 %i, %t, 2;\n{}{load}", "and.b32 %t, %t, 31;\n", indexed(bytes)));
    }
    agrees(COLUMN);
    agrees(&format!(
        "and.b32 %v1, %i, 1;\nsetp.eq.u32 %p, %v1, 0;\n@%p bra done;\n{}\ndone:",
        COLUMN.replace("bar.sync 0;", "")
    ));
}

#[test]
fn elements_of_every_size_are_stored() {
    for (bytes, store) in [
        (1, "cvt.u16.u32 %h, %t; st.global.u8 [%x+40], %h;"),
        (2, "cvt.u16.u32 %h, %t; st.global.u16 [%x+40], %h;"),
        (4, "st.global.u32 [%x+32], %t;"),
        (8, "st.global.v2.u32 [%x+64], {%t, %i};"),
        (16, "st.global.v4.u32 [%x+128], {%t, %i, %v0, %t};"),
    ] {
        agrees(&format!("{}{store}", indexed(bytes)));
        agrees(&format!("{}setp.lt.s32 %p, %i, 13;\n@%p bra done;\n{store}\ndone:", indexed(bytes)));
        // Of lanes with one place the last one stays.
        agrees(&format!("shr.s32 %i, %i, 2;\n{}{store}", indexed(bytes)));
    }
}

#[test]
fn known_distances_are_in_the_accesses() {
    let text = assembly(COLUMN, Level::Avx2);
    assert!(!text.contains("vpextrq") && !text.contains("vpaddq") && !text.contains("vpmovsx"), "{text}");
}

#[test]
fn indices_leave_their_vector_two_at_a_time() {
    let step = format!("{}ld.global.u32 %v0, [%x+32];", indexed(4));
    let text = assembly(&step, Level::Avx2);
    assert!(text.contains("\tmovslq\t") && text.contains("\tsarq\t$32,"), "{text}");
    assert!(!text.contains("vpmovsxdq") && !text.contains("vpaddq"), "{text}");
    assert!(assembly(&step, Level::Avx512).contains("gather"));
}

#[test]
fn bytes_are_gathered_only_where_that_takes_few_steps() {
    let step = "add.u32 %v1, %i, 8;\ncvt.u64.u32 %x, %v1;\nadd.u64 %x, %x, %data;\nld.global.u8 %h, [%x];\ncvt.u32.u16 %v0, %h;";
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = codegen::emit_text(&program(step), &LAUNCH.shape(), &cpu, Text::Ir).unwrap();
    let gathers = text.matches("= call <32 x i32> @llvm.masked.gather").count();
    assert_eq!(gathers, usize::from(!cpu.has_stepwise_gather()), "of the words that the bytes are in");
    agrees(step);
}

#[test]
fn bytes_of_some_lanes_end_where_memory_ends() {
    let edge = Edge::new();
    // Threads from `first` on, and fewer than `end`, have a byte each; others have none.
    let step = "ld.global.u64 %x, [%data];\nld.global.v2.u32 {%v1, %v2}, [%data+8];\ncvt.u64.u32 %own, %t;\nadd.u64 %x, %x, %own;\n\
                setp.lt.u32 %p, %t, %v1;\n@%p bra done;\nsetp.ge.u32 %p, %t, %v2;\n@%p bra done;\n\
                ld.global.u8 %h, [%x];\ncvt.u32.u16 %v0, %h;\ndone:\n\
                mul.wide.u32 %own, %t, 4;\nadd.u64 %own, %own, %data;\nsub.u64 %own, %own, 256;";
    for (before_end, first, end) in
        [(40u64, 3u32, 40u32), (64, 0, 64), (17, 16, 17), (5, 0, 5), (90, 40, 64), (0, 9, 9)]
    {
        let mut words = words(|_| 0);
        let own = THREADS as usize / 2;
        words[own] = edge.start as u64 + Edge::PAGE as u64 - before_end;
        words[own + 1] = u64::from(first) | u64::from(end) << 32;
        let what = format!("{before_end} bytes, threads {first} to {end}");
        LAUNCH.must_agree(&program(step), &words, |words| [words.as_mut_ptr() as u64], what);
    }
}

#[test]
fn rows_of_lanes_end_where_memory_ends() {
    let edge = Edge::new();
    // Rows of the last bytes, in no order.
    for (bytes, loads) in [
        (2, "ld.global.u8 %v0, [%x];\nld.global.u8 %v1, [%x+1];\nmad.lo.u32 %v0, %v1, 3, %v0;\n"),
        (
            3,
            "ld.global.u8 %v0, [%x];\nld.global.u8 %v1, [%x+1];\nld.global.u8 %v2, [%x+2];\nmad.lo.u32 %v0, %v1, 3, %v0;\nmad.lo.u32 %v0, %v2, 5, %v0;",
        ),
        (
            12,
            "ld.global.u32 %v0, [%x];\nld.global.u32 %v1, [%x+4];\nld.global.u32 %v2, [%x+8];\nmad.lo.u32 %v0, %v1, 3, %v0;\nmad.lo.u32 %v0, %v2, 5, %v0;",
        ),
    ] {
        for below in [64, 40] {
            let step = format!(
                "ld.global.u64 %x, [%data];\nmul.wide.u32 %own, %i, {bytes};\nadd.u64 %x, %x, %own;\n\
                 setp.ge.u32 %p, %t, {below};\n@%p bra done;\n{loads}\ndone:\n\
                 mul.wide.u32 %own, %t, 4;\nadd.u64 %own, %own, %data;\nsub.u64 %own, %own, 256;"
            );
            let mut words = words(|t| t * 37 % 64);
            words[THREADS as usize / 2] = edge.start as u64 + (Edge::PAGE - bytes * THREADS as usize) as u64;
            LAUNCH.must_agree(&program(&step), &words, |words| [words.as_mut_ptr() as u64], step);
        }
    }
}

/// A byte of a table whose address is the first of the data, for threads below the number that comes next.
fn of_table(index: &str) -> String {
    element_of_table(index, "ld.global.u8 %h, [%x];\ncvt.u32.u16 %v0, %h;")
}

/// Likewise an element, at as many bytes as the index tells.
fn element_of_table(index: &str, load: &str) -> String {
    format!(
        "ld.global.u64 %x, [%data];\nld.global.u32 %v1, [%data+8];\nsetp.ge.u32 %p, %t, %v1;\n@%p bra done;\n{index}\n\
         cvt.u64.u32 %own, %v2;\nadd.u64 %x, %x, %own;\n{load}\ndone:\n\
         mul.wide.u32 %own, %t, 4;\nadd.u64 %own, %own, %data;\nsub.u64 %own, %own, 256;"
    )
}

#[test]
fn tables_of_bytes_end_where_memory_ends() {
    let edge = Edge::new();
    let indices = [
        ("and.b32 %v2, %i, 255;", 256),
        ("and.b32 %v2, %i, 127;", 128),
        ("and.b32 %v2, %i, 15;", 16),
        ("shl.b32 %v2, %i, 3;\nand.b32 %v2, %v2, 255;\nshr.u32 %v2, %v2, 3;", 32),
        ("cvt.u16.u32 %h, %i;\ncvt.u32.u8 %v2, %h;", 256),
    ];
    for (index, size) in indices {
        // Tables at the end of the page, some so short that the rest would be beyond it, and one that is nowhere and of which nobody wants a byte.
        for (bytes, threads) in [(4000, 64), (256, 64), (255, 64), (100, 40), (3, 64), (1, 1), (0, 0)] {
            let mut words = words(|t| t.wrapping_mul(37) % size.min(bytes.max(1)));
            let own = THREADS as usize / 2;
            words[own] = edge.start as u64 + Edge::PAGE as u64 - u64::from(bytes);
            words[own + 1] = threads;
            let what = format!("{index} of {bytes} bytes for {threads} threads");
            LAUNCH.must_agree(&program(&of_table(index)), &words, |words| [words.as_mut_ptr() as u64], what);
        }
    }
}

/// Elements of two to eight bytes, and what tells a place of such among so many.
const ELEMENTS: [(u32, &str); 3] = [
    (2, "ld.global.s16 %h, [%x];\ncvt.s32.s16 %v0, %h;"),
    (4, "ld.global.u32 %v0, [%x];"),
    (8, "ld.global.u64 %own, [%x];\nshr.u64 %own, %own, 23;\ncvt.u32.u64 %v0, %own;"),
];

fn place_among(count: u32, size: u32) -> String {
    format!("and.b32 %v2, %i, {};\nmul.lo.u32 %v2, %v2, {size};", count - 1)
}

#[test]
fn tables_of_words_end_where_memory_ends() {
    let edge = Edge::new();
    for (size, load) in ELEMENTS {
        for count in [1, 8, 16, 64, 128, 256] {
            let step = element_of_table(&place_among(count, size), load);
            // The last ones are shorter than the index may tell.
            for (elements, threads) in [(4000 / size, 64), (count, 64), (count.div_ceil(3), 50), (0, 0)] {
                let mut words = words(|t| t.wrapping_mul(37) % count.min(elements.max(1)));
                let own = THREADS as usize / 2;
                words[own] = edge.start as u64 + Edge::PAGE as u64 - u64::from(elements * size);
                words[own + 1] = threads;
                let what = format!("{elements} of {size} bytes by {count} for {threads} threads");
                LAUNCH.must_agree(&program(&step), &words, |words| [words.as_mut_ptr() as u64], what);
            }
        }
    }
}

#[test]
fn a_table_of_words_is_in_registers_if_it_takes_few() {
    let in_registers = |count: u32, (size, load): (u32, &str)| {
        let program = program(&element_of_table(&place_among(count, size), load));
        let cpu = Cpu::level_cpu(Level::Avx512);
        let text = codegen::emit_text(&program, &LAUNCH.shape(), &cpu, Text::Ir).unwrap();
        ["permvar.", "vpermi2var."].iter().any(|name| text.contains(&format!("@llvm.x86.avx512.{name}")))
    };
    for (size, load) in ELEMENTS {
        assert!(in_registers(16, (size, load)), "{size}");
        assert!(in_registers(256 / size, (size, load)), "{size}");
        assert!(!in_registers(512 / size, (size, load)), "{size}");
    }
}

#[test]
fn a_table_of_bytes_is_in_registers_if_its_index_is_a_byte() {
    let native = Cpu::native().unwrap();
    let in_registers = |index: &str| {
        let text =
            codegen::emit_text(&program(&of_table(index)), &LAUNCH.shape(), &native, Text::Ir).unwrap();
        text.contains("@llvm.x86.avx512.vpermi2var.qi.512(")
    };
    assert_eq!(in_registers("and.b32 %v2, %i, 255;"), native.has("avx512vbmi"));
    assert!(!in_registers("and.b32 %v2, %i, 511;"));
    assert!(!in_registers("mov.b32 %v2, %i;"));
}

#[test]
fn tables_of_bytes_may_be_in_shared_memory() {
    let table = "mad.lo.u32 %v1, %t, 7, 13;\nmov.u32 %s, tile;\nadd.u32 %s, %s, %t;\ncvt.u16.u32 %h, %v1;\nst.shared.u8 [%s+1000], %h;\n\
                 bar.sync 0;\nand.b32 %v1, %i, 63;\nmov.u32 %s, tile;\nadd.u32 %s, %s, %v1;\n";
    let load = "ld.shared.u8 %v0, [%s+1000];\n";
    agrees(&format!("{table}{load}"));
    agrees(&format!("{table}setp.lt.s32 %p, %i, 13;\n@%p bra done;\n{load}done:\n"));
    let native = Cpu::native().unwrap();
    let text =
        codegen::emit_text(&program(&format!("{table}{load}")), &LAUNCH.shape(), &native, Text::Ir).unwrap();
    assert_eq!(text.contains("@llvm.x86.avx512.permvar.qi.512("), native.has("avx512vbmi"));
}
