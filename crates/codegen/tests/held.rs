//! Tiles in shared memory that registers may stand for, in blocks that are one gang, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::Program;

/// What happens to the tile of a block of 16 × 16 threads in each of three rounds. `%a` is the place of a thread's own word, `%x4` that of its column in a
/// row, `%v` what it stores, and `%r` what it has read; `tile` has room for a second.
#[derive(Clone, Copy, Debug)]
struct Use {
    /// Before the first barrier.
    write: &'static str,
    /// Behind it; what is read is added up.
    read: &'static [&'static str],
}

const OWN: &str = "st.shared.u32 [%a], %v;";
const ROWS: &[&str] =
    &["ld.shared.u32 %r, [%x4+64];", "ld.shared.u32 %r, [%x4];", "ld.shared.u32 %r, [%x4+960];"];
/// Where threads find what they stored themselves.
const SAME: &[&str] = &["ld.shared.u32 %r, [%a];"];

/// Those of which nothing need be in memory.
const HELD: &[Use] = &[
    Use { write: OWN, read: ROWS },
    Use { write: OWN, read: SAME },
    // The last that was stored is what is read.
    Use { write: "st.shared.u32 [%a], %t; st.shared.u32 [%a], %v;", read: ROWS },
    // Bits are bits.
    Use { write: "st.shared.f32 [%a], %f;", read: ROWS },
    Use { write: OWN, read: &["ld.shared.f32 %f2, [%x4+128]; mov.b32 %r, %f2;"] },
    // Rows change places on the way.
    Use { write: "xor.b32 %b, %a, 192; st.shared.u32 [%b], %v;", read: ROWS },
    Use { write: OWN, read: &["xor.b32 %b, %a, 64; ld.shared.u32 %r, [%b];"] },
    // Written anew behind a barrier, and read then.
    Use {
        write: OWN,
        read: &[
            "ld.shared.u32 %r, [%x4+64]; bar.sync 0; st.shared.u32 [%a], %r; bar.sync 0;",
            "ld.shared.u32 %r, [%x4+128];",
        ],
    },
];

/// One tile and the other: of the second an element is read.
const ONE_OF_TWO: Use = Use {
    write: "st.shared.u32 [%a], %v; st.shared.u32 [%a+1024], %t;",
    read: &["ld.shared.u32 %r, [%x4+64];", "ld.shared.u32 %r, [tile+1028];"],
};

/// Those that are in memory.
const KEPT: &[Use] = &[
    // Elements, columns, and what lies across rows.
    Use { write: OWN, read: &["ld.shared.u32 %r, [tile+68];"] },
    Use {
        write: OWN,
        read: &["sub.u32 %b, %x4, %base; mad.lo.u32 %b, %b, 16, %base; ld.shared.u32 %r, [%b+4];"],
    },
    Use { write: OWN, read: &["ld.shared.u32 %r, [%x4+4];"] },
    Use { write: OWN, read: &["ld.shared.u32 %r, [%x4+64];", "ld.shared.u32 %r, [tile+4];"] },
    Use { write: OWN, read: &["ld.shared.u16 %h, [%x4+64]; cvt.u32.u16 %r, %h;"] },
    Use { write: OWN, read: &["ld.shared.v2.u32 {%r, %b}, [%e+64]; add.u32 %r, %r, %b;"] },
    // Some threads store, or some read.
    Use { write: "@%p st.shared.u32 [%a], %v;", read: ROWS },
    Use { write: "st.shared.u32 [%a], %v; @%p st.shared.u32 [%a], %t;", read: ROWS },
    Use { write: OWN, read: &["mov.u32 %r, 0; @%p ld.shared.u32 %r, [%x4+64];"] },
    // A tile of another round.
    Use {
        write: "ld.shared.u32 %r, [%x4+64]; add.u32 %v, %v, %r; bar.sync 0; st.shared.u32 [%a], %v;",
        read: SAME,
    },
    // Somebody else may look.
    Use { write: OWN, read: &["ld.volatile.shared.u32 %r, [%x4+64];"] },
    Use {
        write: OWN,
        read: &["atom.shared.add.u32 %r, [%x4], 1; mov.u32 %r, 0;", "ld.shared.u32 %r, [%x4+64];"],
    },
    Use { write: OWN, read: &["cvta.shared.u64 %w, %wx; ld.u32 %r, [%w+64];"] },
    // Beyond what every launch has.
    Use { write: "st.shared.u32 [%a+2048], %v;", read: &["ld.shared.u32 %r, [%x4+2112];"] },
    // At places that the kernel is told.
    Use { write: OWN, read: &["add.u32 %b, %x4, %n; ld.shared.u32 %r, [%b];"] },
    // Threads of two rows store to the same place.
    Use { write: "and.b32 %b, %a, -65; st.shared.u32 [%b], %v;", read: &["ld.shared.u32 %r, [%x4];"] },
];

impl Use {
    fn text(&self) -> String {
        let reads: String =
            self.read.iter().map(|read| format!("{read}\nmad.lo.u32 %s, %s, 3, %r;\n")).collect();
        format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n\
             .visible .entry kernel(.param .u64 data, .param .u64 out, .param .u32 n)\n{{\n\
             .shared .align 64 .b8 tile[2048];\n.reg .pred %p, %q;\n.reg .b16 %h;\n.reg .f32 %f, %f2;\n\
             .reg .b32 %t, %y, %a, %x4, %b, %v, %r, %s, %i, %n, %base, %e;\n.reg .b64 %data, %out, %w, %wx, %step;\n\
             ld.param.u64 %data, [data];\nld.param.u64 %out, [out];\nld.param.u32 %n, [n];\n\
             mov.u32 %t, %tid.x;\nmov.u32 %y, %tid.y;\nmov.u32 %base, tile;\n\
             shl.b32 %x4, %t, 2;\nadd.u32 %x4, %x4, %base;\nmad.lo.u32 %a, %y, 64, %x4;\ncvt.u64.u32 %wx, %x4;\nand.b32 %e, %x4, -8;\n\
             mad.lo.u32 %t, %y, 16, %t;\nmul.wide.u32 %step, %t, 4;\n\
             add.u64 %data, %data, %step;\nadd.u64 %out, %out, %step;\nsetp.lt.u32 %p, %y, 9;\n\
             mov.u32 %s, 1;\nmov.u32 %i, 0;\nst.shared.u32 [%a], %s;\nst.shared.u32 [%a+1024], %s;\nbar.sync 0;\nROUND:\n\
             ld.global.u32 %v, [%data];\nmov.b32 %f, %v;\n{}\nbar.sync 0;\n{reads}bar.sync 0;\n\
             add.u64 %data, %data, 1024;\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %q, %i, 3;\n@%q bra ROUND;\n\
             st.global.u32 [%out], %s;\nret;\n}}",
            self.write
        )
    }

    fn program(&self) -> Program {
        let source = self.text();
        launch::kernel_of(&source)
    }

    /// Stores of vectors, those of the output and of the tiles' first contents among them.
    fn stores(&self) -> usize {
        let shape = kernel_abi::Shape::of([1; 3], BLOCK);
        let text =
            codegen::emit_text(&self.program(), &shape, &Cpu::level_cpu(Level::Avx512), Text::OptimizedIr);
        let is_store = |line: &&str| {
            ["store <", "@llvm.masked.store", "@llvm.masked.scatter"].iter().any(|store| line.contains(store))
                && !line.starts_with("declare")
        };
        text.unwrap().lines().filter(is_store).count()
    }
}

const BLOCK: [u32; 3] = [16, 16, 1];

#[test]
fn what_is_read_is_what_was_stored() {
    let launch = Launch { grid: [1, 1, 1], block: BLOCK };
    let words: Vec<u64> = (1..=4 * 128u64).map(|at| at * 0x9e37_79b9_7f4a).collect();
    let params = |words: &mut [u64]| [words.as_mut_ptr() as u64, words[3 * 128..].as_mut_ptr() as u64, 256];
    for plan in HELD.iter().chain(KEPT).chain([&ONE_OF_TWO]) {
        launch.must_agree(&plan.program(), &words, params, format_args!("{plan:?}"));
    }
}

#[test]
fn tiles_that_are_read_by_rows_are_in_no_memory() {
    let output = 1;
    for plan in HELD {
        assert_eq!(plan.stores(), output, "{plan:?}");
    }
    assert_eq!(ONE_OF_TWO.stores(), output + 2, "{ONE_OF_TWO:?}");
    for plan in KEPT {
        assert!(plan.stores() > output + 1, "{plan:?}");
    }
}
