//! What programs are full of, and random statements seldom are: sums of products of elements that each thread has side by side, elements counted
//! through a tile whose row and column follow from their number, indices by masks and quotients of numbers that only come at run time, neighbours
//! that are taken within bounds, branches on a thread's place in its warp, and loops in loops.
//!
//! Each is PTX text with registers and labels of its own, which reads the kernel's `tid`, `size`, `block`, `in` and `columns`, and leaves what
//! it finds in the kernel's registers or in the thread's places of the output.

use std::fmt::Write;

use super::Random;
use super::program::{COLUMN_BYTES, INPUT_WORDS, STAGE_AT, STAGE_BYTES};
use super::table::any_register;
use crate::machine::Grid;

/// What the place of a pattern allows.
#[derive(Clone, Copy)]
pub struct Around {
    /// The kernel's launch.
    pub grid: Grid,
    /// No loops that threads leave one by one.
    pub steady: bool,
    /// All threads of the block come here, and they have shared memory and barriers.
    pub together: bool,
}

/// One of the patterns.
pub fn draw(r: &mut Random, around: Around) -> String {
    match r.below(if around.steady { 7 } else { 8 }) {
        0 | 1 => plot(r, around),
        2 => counted(r, around),
        3 => computed(r, around),
        4 => places(r, around),
        5 => bounded(r, around),
        7 => chain(r, around),
        _ => nest(r, around),
    }
}

/// Types of elements, their bytes, and what is done with a number `l`, an element `e` and a sum `s`, by way of `t`.
const STEPS: [(&str, u32, &str); 10] = [
    ("f32", 4, "fma.rn.f32 s, l, e, s;"),
    ("f32", 4, "mul.rn.f32 t, l, e;\n\tadd.rn.f32 s, s, t;"),
    ("f32", 4, "sub.rn.f32 t, e, l;\n\tfma.rn.f32 s, t, t, s;"),
    ("f32", 4, "max.f32 s, s, e;"),
    ("u32", 4, "mad.lo.u32 s, l, e, s;"),
    ("u32", 4, "xor.b32 t, l, e;\n\tadd.u32 s, s, t;"),
    ("s32", 4, "add.s32 t, e, e;\n\tmin.s32 s, s, t;\n\tadd.s32 s, s, l;"),
    ("f64", 8, "min.f64 t, e, l;\n\tmax.f64 s, s, t;"),
    // Of several NaNs, PTX does not say which comes out: here only the sum may be one.
    ("f64", 8, "and.b64 t, e, 0xbfefffffffffffff;\n\tfma.rn.f64 s, t, t, s;"),
    ("u64", 8, "mad.lo.u64 s, l, e, s;"),
];

/// The step with an element and a sum of these numbers.
fn step(step: &str, element: usize, sum: usize) -> String {
    let name = |word: &str| match word {
        "e" => format!("e{element}"),
        "s" => format!("s{sum}"),
        _ => word.to_owned(),
    };
    let named = |word: &str| {
        let end = word.find([',', ';']).unwrap_or(word.len());
        name(&word[..end]) + &word[end..]
    };
    step.split(' ').map(named).collect::<Vec<_>>().join(" ")
}

/// The column of the output whose threads have 16 bytes each.
const WIDE_COLUMN: u32 = 4;

/// Leaves the address of the thread's place in that column in `a`; answers its offset.
fn own_column(grid: Grid, text: &mut String) -> u32 {
    *text += "\tmad.lo.u32 i, block, size, tid;\n\tmad.wide.u32 a, i, 16, columns;\n";
    let threads = grid.block.iter().chain(&grid.grid).product::<u32>();
    WIDE_COLUMN * COLUMN_BYTES as u32 * threads
}

/// A loop in which each thread adds what it has of several elements side by side to as many sums, for some numbers.
fn plot(r: &mut Random, around: Around) -> String {
    let (ty, bytes, does) = *r.pick(&STEPS);
    let bits = 8 * bytes;
    let count = if bytes == 8 { 2 } else { *r.pick(&[2, 3, 4, 4]) };
    let whole = bytes * (count as u32).next_power_of_two();
    let at_once = count != 3 && r.chance(50);
    let stride = if at_once || r.chance(70) { whole } else { bytes * count as u32 };
    let (rounds, between) = (2 + r.below(5) as u32, whole * *r.pick(&[1, 2, 4]));
    let rows = 1 + r.below(3);
    let threads = around.grid.block.iter().product::<u32>();
    let reach = (threads - 1) * stride + (rounds - 1) * between + whole;
    let shared = around.together && reach <= STAGE_BYTES as u32 && r.chance(60);
    let mut text = format!(
        "{{\n\t.reg .b32 i, n, at, w;\n\t.reg .b64 a, b, c;\n\t.reg .pred g;\n\t.reg .b{bits} e<4>, s<12>, l, t;\n"
    );
    if shared {
        // The tile, filled by all; the last word by all whose turn is behind it.
        let _ = writeln!(
            text,
            "\tmov.u32 w, words;\n\tmov.b32 n, 0;\n\tbar.sync 0;\nFILL:\n\tadd.u32 i, n, tid;\n\tmin.u32 i, i, {last};\n\
             \tmad.lo.u32 at, i, 4, w;\n\tmul.lo.u32 i, i, {};\n\tst.shared.b32 [at+{STAGE_AT}], i;\n\tadd.u32 n, n, size;\n\
             \tsetp.le.u32 g, n, {last};\n\t@g bra FILL;\n\tbar.sync 0;",
            r.bits() as u32 | 1,
            last = STAGE_BYTES / 4 - 1,
        );
        let _ = writeln!(text, "\tmad.lo.u32 at, tid, {stride}, w;");
    } else {
        let _ = writeln!(text, "\tmul.wide.u32 a, tid, {stride};\n\tadd.u64 a, a, in;");
    }
    let own_start = r.chance(50);
    for sum in 0..rows * count {
        let _ = match own_start {
            true => writeln!(text, "\tmov.b{bits} s{sum}, {};", any_register(r, bits)),
            false => writeln!(text, "\tmov.b{bits} s{sum}, 0;"),
        };
    }
    let guarded = r.chance(12);
    if guarded {
        let _ = writeln!(text, "\tsetp.ge.u32 g, tid, {};\n\t@g bra DONE;", r.below(threads as usize + 1));
    }
    text += "\tmov.b32 n, 0;\nAGAIN:\n";
    let (space, address) = match shared {
        true => {
            let _ = writeln!(text, "\tmad.lo.u32 w, n, {between}, at;");
            (".shared", format!("w+{STAGE_AT}"))
        }
        false => {
            let _ = writeln!(text, "\tmul.wide.u32 b, n, {between};\n\tadd.u64 b, b, a;");
            (".global", "b".to_owned())
        }
    };
    if at_once {
        let names: Vec<String> = (0..count).map(|at| format!("e{at}")).collect();
        let _ = writeln!(text, "\tld{space}.v{count}.{ty} {{{}}}, [{address}];", names.join(", "));
    } else {
        for at in 0..count {
            let offset = at as u32 * bytes;
            let _ = writeln!(text, "\tld{space}.{ty} e{at}, [{address}+{offset}];");
        }
    }
    let own_numbers = r.chance(20);
    for row in 0..rows {
        match r.below(4) {
            0 if own_numbers => {
                let _ = writeln!(text, "\tmov.b{bits} l, {};", any_register(r, bits));
            }
            1 => {
                // One for some threads in a row each.
                let _ = writeln!(
                    text,
                    "\tshr.u32 i, tid, {};\n\tmad.lo.u32 i, i, 4, n;\n\tmad.wide.u32 c, i, {bytes}, in;\n\tld.global.{ty} l, [c+{}];",
                    3 + r.below(4),
                    row as u32 * 64,
                );
            }
            _ => {
                let _ = writeln!(
                    text,
                    "\tmad.wide.u32 c, n, {bytes}, in;\n\tld.global.{ty} l, [c+{}];",
                    (row as u32 + 5) * 16 * bytes
                );
            }
        }
        for at in 0..count {
            let _ = writeln!(text, "\t{}", step(does, at, row * count + at));
        }
    }
    if r.chance(8) {
        // One by itself.
        let result = any_register(r, bits);
        let _ = writeln!(text, "\txor.b{bits} {result}, {result}, e{};", r.below(count));
    }
    if r.chance(8) {
        // They change places.
        let _ = writeln!(text, "\tmov.b{bits} t, s0;");
        for sum in 1..count {
            let _ = writeln!(text, "\tmov.b{bits} s{}, s{sum};", sum - 1);
        }
        let _ = writeln!(text, "\tmov.b{bits} s{}, t;", count - 1);
    }
    let _ = writeln!(text, "\tadd.u32 n, n, 1;\n\tsetp.lt.u32 g, n, {rounds};\n\t@g bra AGAIN;\nDONE:");
    for row in 0..rows {
        let sums: Vec<String> = (0..count).map(|at| format!("s{}", row * count + at)).collect();
        match r.below(3) {
            0 if count != 3 => {
                let first = own_column(around.grid, &mut text);
                let _ = writeln!(text, "\tst.global.v{count}.b{bits} [a+{first}], {{{}}};", sums.join(", "));
            }
            1 => {
                let first = own_column(around.grid, &mut text);
                for (at, sum) in sums.iter().enumerate() {
                    let _ = writeln!(text, "\tst.global.b{bits} [a+{}], {sum};", first + at as u32 * bytes);
                }
            }
            _ => {
                let result = any_register(r, bits);
                for sum in sums {
                    let _ = writeln!(text, "\tmad.lo.u{bits} {result}, {result}, 31, {sum};");
                }
            }
        }
    }
    if shared {
        text += "\tbar.sync 0;\n";
    }
    text + "\t}"
}

/// The threads of a block count through the elements of a matrix, whose row and column are the quotient and the rest of their number.
fn counted(r: &mut Random, around: Around) -> String {
    let threads = around.grid.block.iter().product::<u32>();
    let width = *r.pick(&[4u32, 8, 12, 16, 32, 33, 64]);
    let pitch = if r.chance(60) { width } else { width + *r.pick(&[1, 3, 4, 16]) };
    let shared = around.together && r.chance(50);
    let mut elements = 1 + r.below(if shared { STAGE_BYTES / 4 } else { 640 }) as u32;
    if around.steady {
        // All go round as often.
        elements = elements.next_multiple_of(threads);
    }
    let room = if shared { STAGE_BYTES as u32 / 4 } else { INPUT_WORDS as u32 };
    while elements > threads && (elements - 1) / width * pitch + width > room {
        elements -= threads.min(elements);
    }
    let mut text = String::from("{\n\t.reg .b32 e, q, p, i, v, w;\n\t.reg .b64 a;\n\t.reg .pred g, h;\n");
    let fits = (elements.max(threads) - 1) / width * pitch + width <= room;
    text += "\tmov.b32 e, tid;\n";
    if shared {
        text += "\tbar.sync 0;\n";
    }
    text += "NEXT:\n";
    let pow2 = width.is_power_of_two();
    let _ = match r.below(3) {
        0 if pow2 => {
            writeln!(text, "\tshr.u32 q, e, {};\n\tand.b32 p, e, {};", width.trailing_zeros(), width - 1)
        }
        0 | 1 => writeln!(text, "\tdiv.u32 q, e, {width};\n\tmul.lo.u32 p, q, {width};\n\tsub.u32 p, e, p;"),
        _ => writeln!(text, "\tdiv.u32 q, e, {width};\n\trem.u32 p, e, {width};"),
    };
    let _ = match r.below(3) {
        0 => writeln!(text, "\tmad.lo.u32 i, q, {pitch}, p;"),
        1 => writeln!(text, "\tmul.lo.u32 i, q, {pitch};\n\tadd.u32 i, p, i;"),
        _ => writeln!(
            text,
            "\tadd.u32 i, p, 7;\n\tmul.lo.u32 w, q, {};\n\tsub.u32 i, i, w;\n\tmad.lo.u32 i, q, {}, i;\n\tsub.u32 i, i, 7;",
            5,
            pitch + 5
        ),
    };
    if !fits {
        let _ = writeln!(text, "\tsetp.lt.u32 h, i, {room};");
    }
    let guard = if fits { "" } else { "@h " };
    if shared {
        let _ = writeln!(
            text,
            "\tmov.u32 w, words;\n\tmad.lo.u32 w, i, 4, w;\n\tadd.u32 v, e, {};\n\t{guard}st.shared.u32 [w+{STAGE_AT}], v;",
            r.below(1000)
        );
    } else {
        let result = any_register(r, 32);
        let _ = writeln!(
            text,
            "\tmul.wide.u32 a, i, 4;\n\tadd.u64 a, a, in;\n\tmov.b32 v, 0;\n\t{guard}ld.global.u32 v, [a];\n\
             \tmad.lo.u32 {result}, {result}, 31, v;"
        );
    }
    let _ = writeln!(text, "\tadd.u32 e, e, size;\n\tsetp.lt.u32 g, e, {elements};\n\t@g bra NEXT;");
    if shared {
        // Words that nobody has written hold what there was, so that only those of the first row are read.
        let result = any_register(r, 32);
        let most = width.min(elements.max(threads)).min(room);
        let _ = writeln!(
            text,
            "\tbar.sync 0;\n\tadd.u32 i, tid, {};\n\trem.u32 i, i, {most};\n\tmov.u32 w, words;\n\tmad.lo.u32 w, i, 4, w;\n\
             \tld.shared.u32 v, [w+{STAGE_AT}];\n\tmad.lo.u32 {result}, {result}, 31, v;\n\tbar.sync 0;",
            r.below(64)
        );
    }
    text + "\t}"
}

/// A number that all threads load, so many at most.
fn given(r: &mut Random, name: &str, most: u32) -> String {
    let at = 4 * r.below(INPUT_WORDS);
    match r.chance(50) {
        // Powers of two are what programs have.
        true => {
            let bits = 32 - most.leading_zeros();
            format!(
                "\tld.global.u32 {name}, [in+{at}];\n\trem.u32 {name}, {name}, {bits};\n\tshl.b32 {name}, 1, {name};\n\
                 \tmin.u32 {name}, {name}, {most};\n"
            )
        }
        false => format!(
            "\tld.global.u32 {name}, [in+{at}];\n\trem.u32 {name}, {name}, {most};\n\tadd.u32 {name}, {name}, 1;\n"
        ),
    }
}

/// Elements beside a thread's place, where that is within bounds.
fn bounded(r: &mut Random, around: Around) -> String {
    let wide = r.chance(25);
    let bits = if wide { 64 } else { 32 };
    let threads = around.grid.block.iter().product::<u32>() as usize;
    let any = 1 + r.below(INPUT_WORDS / 2);
    let last = *r.pick(&[threads - 1, 31, 63, any, any % (2 * threads)]);
    let last = last.clamp(1, INPUT_WORDS / 2);
    let (ty, bytes) = *r.pick(&[("u8", 1u32), ("s8", 1), ("u16", 2), ("u32", 4), ("f32", 4)]);
    let mut text = format!(
        "{{\n\t.reg .b32 n, v, s;\n\t.reg .b{bits} x, y, last;\n\t.reg .b64 a;\n\t.reg .pred g, h;\n\tmov.b32 s, 1;\n\tmov.b{bits} last, {last};\n"
    );
    let place = *r.pick(&["tid", "tid", "%tid.x"]);
    let _ = match wide {
        true => writeln!(text, "\tmov.u32 v, {place};\n\tcvt.u64.u32 y, v;"),
        false => writeln!(text, "\tmov.u32 y, {place};"),
    };
    let guarded = r.chance(30);
    if guarded {
        let _ = writeln!(text, "\tsetp.ge.u32 h, tid, {};\n\t@h bra OUT;", r.below(threads + 1));
    }
    let looped = !around.steady && r.chance(30);
    if looped {
        text += "\tmov.b32 n, 0;\nAGAIN:\n";
    }
    let away = *r.pick(&[1, 1, 2, 5, 40]);
    let bound = match r.below(7) {
        0 | 1 => format!("\tmax.s{bits} x, x, 0;\n\tmin.s{bits} x, x, last;\n"),
        2 => format!("\tmin.s{bits} x, last, x;\n\tmax.s{bits} x, 0, x;\n"),
        3 => format!("\tmin.u{bits} x, x, last;\n"),
        4 => format!("\trem.s{bits} x, x, last;\n\tmax.s{bits} x, x, 0;\n"),
        5 => format!("\trem.u{bits} x, x, last;\n"),
        _ => format!(
            "\tsetp.gt.s{bits} g, x, last;\n\tselp.b{bits} x, 0, x, g;\n\tsetp.lt.s{bits} g, x, 0;\n\tselp.b{bits} x, last, x, g;\n"
        ),
    };
    for at in 0..1 + r.below(4) as i64 {
        let step = (at - 1) * away;
        let _ = writeln!(text, "\tadd.s{bits} x, y, {step};");
        text += &bound;
        let _ = match wide {
            true => writeln!(text, "\tmul.lo.u64 a, x, {bytes};"),
            false => writeln!(text, "\tmul.wide.s32 a, x, {bytes};"),
        };
        let _ = writeln!(text, "\tadd.u64 a, a, in;\n\tld.global.{ty} v, [a];\n\tmad.lo.u32 s, s, 31, v;");
    }
    if looped {
        let _ = writeln!(
            text,
            "\tadd.s{bits} y, y, {away};\n\tadd.u32 n, n, 1;\n\tsetp.lt.u32 g, n, {};\n\t@g bra AGAIN;",
            2 + r.below(3)
        );
    }
    let result = any_register(r, 32);
    let _ = writeln!(text, "\txor.b32 {result}, {result}, s;");
    if guarded {
        text += "OUT:\n";
    }
    text + "\t}"
}

/// A loop in which each thread follows what it finds from place to place, and leaves it when it will, by one way or by two.
fn chain(r: &mut Random, around: Around) -> String {
    let mut text = String::from("{\n\t.reg .b32 i, n, v, s, most;\n\t.reg .b64 a, b;\n\t.reg .pred g;\n");
    let stores = r.chance(50);
    let offset = own_column(around.grid, &mut text);
    let _ = writeln!(
        text,
        "\tmul.lo.u32 most, tid, {};\n\tshr.u32 most, most, {};\n\tmul.lo.u32 i, tid, {};\n\trem.u32 i, i, {INPUT_WORDS};\n\tmov.b32 n, 0;\n\t\
         mov.b32 s, {};\nAGAIN:\n\tsetp.ge.u32 g, n, most;\n\t@g bra DONE;\n\tmul.wide.u32 b, i, 4;\n\tadd.u64 b, b, in;\n\tld.global.u32 v, [b];",
        r.bits() as u32 | 1,
        26 + r.below(4),
        1 + r.below(9),
        any_register(r, 32),
    );
    text += *r.pick(&[
        "\tmad.lo.u32 s, s, 31, v;\n",
        "\tadd.f32 s, s, v;\n",
        "\tsetp.lt.u32 g, v, s;\n\t@g xor.b32 s, s, n;\n",
    ]);
    if stores {
        let _ = writeln!(
            text,
            "\tand.b32 v, n, 3;\n\tmul.wide.u32 b, v, 4;\n\tadd.u64 b, b, a;\n\tst.global.u32 [b+{offset}], s;"
        );
    }
    if r.chance(40) {
        text += "\tand.b32 v, s, 15;\n\tsetp.eq.u32 g, v, 3;\n\t@g bra DONE;\n";
    }
    let next = *r.pick(&["xor.b32 i, i, s;", "mad.lo.u32 i, i, 5, v;", "add.u32 i, i, 1;"]);
    let result = any_register(r, 32);
    let _ = writeln!(
        text,
        "\t{next}\n\trem.u32 i, i, {INPUT_WORDS};\n\tadd.u32 n, n, 1;\n\tbra AGAIN;\nDONE:\n\txor.b32 {result}, {result}, s;"
    );
    text + "\t}"
}

/// An access by an index that is computed from the thread's place and numbers that are not known before.
fn computed(r: &mut Random, around: Around) -> String {
    let mut text = String::from("{\n\t.reg .b32 d, m, i, q, p, v;\n\t.reg .b64 a;\n\t.reg .pred g;\n");
    text += &given(r, "d", 128);
    let thread = *r.pick(&["tid", "tid", "%tid.x"]);
    let _ = writeln!(text, "\tmov.u32 v, {thread};");
    text += match r.below(7) {
        // The first of a pair so far apart.
        0 => "\tsub.u32 m, d, 1;\n\tand.b32 p, v, m;\n\tadd.u32 i, v, v;\n\tsub.u32 i, i, p;\n",
        // Rows with gaps, or moved.
        1 => "\tdiv.u32 q, v, d;\n\tmad.lo.u32 i, q, 3, v;\n",
        2 => "\tdiv.u32 q, v, d;\n\trem.u32 p, v, d;\n\tmad.lo.u32 i, q, d, p;\n",
        3 => "\trem.u32 p, v, d;\n\tdiv.u32 q, v, d;\n\tmad.lo.u32 i, p, 5, q;\n",
        4 => "\txor.b32 i, v, d;\n",
        5 => {
            "\tsub.u32 m, d, 1;\n\tand.b32 p, v, m;\n\tnot.b32 m, m;\n\tand.b32 q, v, m;\n\tor.b32 i, q, p;\n"
        }
        _ => "\tmin.u32 i, v, d;\n\tmax.u32 p, v, d;\n\tsub.u32 p, p, i;\n\tadd.u32 i, v, p;\n",
    };
    if r.chance(40) {
        // Far away and back, around the end of what 32 bits hold or not.
        let far = *r.pick(&[0x7fff_ffc0u32, 0x7fff_fff1, 0x8000_0000, 0xffff_fff0, 64]);
        let _ = writeln!(
            text,
            "\tadd.u32 i, i, {far};\n\tsetp.gt.s32 g, i, 3;\n\t@g sub.u32 i, i, {far};\n\t@!g sub.u32 i, i, {far};"
        );
    }
    let shared = around.together && r.chance(40);
    let (vector, ty, bytes, count) = *r.pick(&[
        ("", "u8", 1u32, 1),
        ("", "u16", 2, 1),
        ("", "u32", 4, 1),
        ("", "f32", 4, 1),
        (".v2", "u32", 4, 2),
    ]);
    let scale = bytes * count;
    let room = if shared { STAGE_BYTES } else { 4 * INPUT_WORDS } as u32 / scale;
    let guard = match r.chance(40) {
        true => {
            let _ = writeln!(text, "\tsetp.lt.u32 g, i, {room};");
            "@g "
        }
        false => {
            let _ = writeln!(text, "\tand.b32 i, i, {};", room - 1);
            ""
        }
    };
    let list = if count == 2 { "{v, p}" } else { "v" };
    text += "\tmov.b32 v, 0;\n\tmov.b32 p, 0;\n";
    if shared {
        let _ = writeln!(text, "\tmov.u32 q, words;\n\tmad.lo.u32 q, i, {scale}, q;");
        if r.chance(50) {
            // What several threads store in one place is the same for all of them.
            let _ = writeln!(
                text,
                "\tbar.sync 0;\n\tadd.u32 v, i, {};\n\tmov.b32 p, v;\n\t{guard}st.shared{vector}.{ty} [q+{STAGE_AT}], {list};\n\tbar.sync 0;",
                r.below(200)
            );
            let _ = writeln!(text, "\t{guard}ld.shared{vector}.{ty} {list}, [q+{STAGE_AT}];\n\tbar.sync 0;");
        } else {
            let _ = writeln!(
                text,
                "\tbar.sync 0;\n\tmov.u32 v, words;\n\tmad.lo.u32 v, tid, 8, v;\n\tmul.lo.u32 p, tid, 0x9e3779b1;\n\
                 \tst.shared.v2.u32 [v+{STAGE_AT}], {{p, i}};\n\tbar.sync 0;\n\tmul.lo.u32 p, size, {};",
                8 / scale
            );
            // Only what has been written is read.
            let _ = writeln!(
                text,
                "\trem.u32 i, i, p;\n\tmov.u32 q, words;\n\tmad.lo.u32 q, i, {scale}, q;\n\tmov.b32 p, 0;\n\
                 \tld.shared{vector}.{ty} {list}, [q+{STAGE_AT}];\n\tbar.sync 0;"
            );
        }
    } else {
        let _ = match r.below(3) {
            0 => writeln!(text, "\tmad.wide.u32 a, i, {scale}, in;"),
            1 => writeln!(text, "\tmul.wide.s32 a, i, {scale};\n\tadd.s64 a, in, a;"),
            _ => writeln!(text, "\tcvt.s64.s32 a, i;\n\tmad.lo.s64 a, a, {scale}, in;"),
        };
        let _ = writeln!(text, "\t{guard}ld.global{vector}.{ty} {list}, [a];");
    }
    let result = any_register(r, 32);
    text + &format!("\tmad.lo.u32 {result}, {result}, 31, v;\n\txor.b32 {result}, {result}, p;\n\t}}")
}

/// Branches on the place of a thread in its warp, and numbers that follow from it.
fn places(r: &mut Random, around: Around) -> String {
    let mut text = String::from("{\n\t.reg .b32 k, t, v;\n\t.reg .b64 a;\n\t.reg .pred g, h;\n");
    text += match r.below(4) {
        0 => "\tmov.u32 k, %laneid;\n",
        1 => "\trem.u32 k, tid, 32;\n",
        2 => "\tand.b32 k, tid, 15;\n",
        _ => "\tand.b32 k, tid, 31;\n",
    };
    let condition = |r: &mut Random, name: &str| match r.below(7) {
        0 => format!("\tsetp.eq.u32 {name}, k, {};\n", r.below(33)),
        1 => format!("\tsetp.ge.u32 {name}, k, {};\n", r.below(33)),
        2 => format!("\tsetp.lt.s32 {name}, k, {};\n", r.below(33)),
        3 => {
            format!("\tshr.u32 t, {}, k;\n\tand.b32 t, t, 1;\n\tsetp.ne.u32 {name}, t, 0;\n", r.bits() as u32)
        }
        4 => format!("\txor.b32 t, k, {};\n\tsetp.gt.u32 {name}, t, {};\n", r.below(32), r.below(32)),
        5 => {
            format!("\tmul.lo.u32 t, k, {};\n\tand.b32 t, t, 8;\n\tsetp.eq.u32 {name}, t, 0;\n", r.below(64))
        }
        _ => format!("\tpopc.b32 t, k;\n\tsetp.lt.u32 {name}, t, {};\n", r.below(5)),
    };
    let act = |r: &mut Random| {
        let (x, y, z) = (any_register(r, 32), any_register(r, 32), any_register(r, 32));
        match r.below(4) {
            0 => format!("\tmad.lo.u32 {x}, {y}, 7, {z};\n"),
            1 => format!(
                "\tshl.b32 t, k, 2;\n\tcvt.u64.u32 a, t;\n\tadd.u64 a, a, in;\n\tld.global.u32 {x}, [a+{}];\n",
                4 * r.below(512)
            ),
            2 => {
                let mut text = String::new();
                let first = own_column(around.grid, &mut text).to_string();
                text.replace("\tmad.lo.u32 i, ", "\tmad.lo.u32 t, ").replace("a, i, 16", "a, t, 16")
                    + &format!("\tst.global.u32 [a+{first}], {y};\n")
            }
            _ => format!("\tmul.lo.u32 t, k, {};\n\tadd.u32 {x}, {x}, t;\n", r.below(1000)),
        }
    };
    text += &condition(r, "g");
    text += "\t@!g bra ELSE;\n";
    text += &act(r);
    text += &condition(r, "h");
    text += "\t@h bra INNER;\n";
    text += &act(r);
    text += "INNER:\n";
    text += &act(r);
    if r.chance(60) {
        text += "\tbra END;\nELSE:\n";
        text += &act(r);
        text += "END:\n";
    } else {
        text += "ELSE:\n";
    }
    let (x, y) = (any_register(r, 32), any_register(r, 32));
    text += &condition(r, "h");
    text + &format!("\tselp.b32 {x}, {x}, {y}, h;\n\t}}")
}

/// Loops in loops, whose numbers of rounds come at run time, over rows of the input.
fn nest(r: &mut Random, around: Around) -> String {
    let mut text =
        String::from("{\n\t.reg .b32 x, y, i, n, m, v, k;\n\t.reg .b64 a, b;\n\t.reg .pred g, h;\n");
    let own = !around.steady && r.chance(30);
    match own {
        true => {
            let _ = writeln!(text, "\tand.b32 n, {}, 3;\n\tadd.u32 n, n, 1;", any_register(r, 32));
        }
        false => text += &given(r, "n", 5),
    }
    text += &given(r, "m", 5);
    let (pitch, step) = (*r.pick(&[16u32, 32, 33, 64]), 1 + r.below(4) as u32);
    let (total, value) = (any_register(r, 32), any_register(r, 32));
    text += "\tmov.b32 y, 0;\nROWS:\n\tmov.b32 x, 0;\n";
    if r.chance(30) {
        text += "\tmov.b32 k, 0;\n";
    } else {
        let _ = writeln!(text, "\tmov.b32 k, {value};");
    }
    if r.chance(40) {
        // Some do not go into the inner loop, or go round less often.
        let _ = match r.chance(50) && !around.steady {
            true => writeln!(text, "\tsetp.gt.u32 h, y, m;\n\t@h bra PAST;"),
            false => writeln!(text, "\tsetp.eq.u32 h, m, 3;\n\t@h bra PAST;"),
        };
    }
    text += "COLUMNS:\n";
    // At most 4 rows of 64 words, 4 times 5 columns and 127 threads.
    let _ = match r.below(3) {
        0 => writeln!(
            text,
            "\tmad.lo.u32 i, y, {pitch}, tid;\n\tmad.lo.u32 i, x, {step}, i;\n\tmad.wide.u32 a, i, 4, in;"
        ),
        1 => writeln!(text, "\tmad.lo.u32 i, y, {pitch}, x;\n\tmad.wide.u32 a, i, 4, in;"),
        _ => writeln!(
            text,
            "\tmul.wide.u32 b, y, {};\n\tadd.u64 b, b, in;\n\tmad.lo.u32 i, x, {step}, tid;\n\tshl.b32 i, i, 2;\n\tcvt.u64.u32 a, i;\n\tadd.u64 a, a, b;",
            4 * pitch
        ),
    };
    let _ = match r.below(3) {
        0 => writeln!(text, "\tld.global.u32 v, [a];\n\tmad.lo.u32 k, k, 31, v;"),
        1 => writeln!(text, "\tld.global.f32 v, [a];\n\tfma.rn.f32 k, k, 0f3F400000, v;"),
        _ => writeln!(text, "\tld.global.u16 v, [a];\n\tmax.u32 k, k, v;\n\tadd.u32 {total}, {total}, v;"),
    };
    if !around.steady && r.chance(25) {
        let _ = writeln!(text, "\tand.b32 v, v, 7;\n\tsetp.eq.u32 h, v, 5;\n\t@h bra PAST;");
    }
    text += "\tadd.u32 x, x, 1;\n\tsetp.lt.u32 h, x, m;\n\t@h bra COLUMNS;\nPAST:\n";
    let _ = writeln!(text, "\txor.b32 {total}, {total}, k;");
    text += "\tadd.u32 y, y, 1;\n\tsetp.lt.u32 g, y, n;\n\t@g bra ROWS;\n";
    text + "\t}"
}
