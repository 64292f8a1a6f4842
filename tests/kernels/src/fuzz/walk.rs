//! Accesses at places that follow from where a thread stands: steps of all sizes and both signs along each axis of the block, in every
//! width, by 32-bit indices that wrap around on the way or, under a guard, for good; once or in loops.
//!
//! Each is PTX text with registers and labels of its own. It reads the kernel's `tid`, `size`, `block`, `in` and `columns`.

use std::fmt::Write;

use super::Random;
use super::program::{COLUMN_BYTES, INPUT_WORDS, STAGE_AT, STAGE_BYTES};
use super::table::any_register;
use crate::machine::Grid;

/// What an index is made of besides constants: PTX's name, and the number of values.
type Axis = (&'static str, i64);

/// Coefficients of indices that stay where there is memory.
const STEPS: [i64; 16] = [1, 1, 1, -1, -1, 2, -2, 3, -3, 4, 5, -7, 8, 16, 17, 32];
/// And of those that go anywhere.
const LEAPS: [i64; 12] = [
    1,
    -1,
    3,
    -9,
    257,
    0x0800_0000,
    0x1000_0001,
    0x4000_0000,
    -0x4000_0001,
    0x7fff_ffff,
    -0x8000_0000,
    0x2aaa_aaab,
];
/// What is added to an index and taken off again.
const DETOURS: [u32; 6] = [0, 0, 0x7fff_ffe0, 0x8000_0000, 0xffff_fff0, 0xffff_ffff];

/// Types of elements, and vectors of them: what stands before the type, the type, bytes of an element, elements.
const LOADS: [(&str, &str, u32, u32); 19] = [
    ("", "u8", 1, 1),
    ("", "s8", 1, 1),
    ("", "u16", 2, 1),
    ("", "s16", 2, 1),
    ("", "b32", 4, 1),
    ("", "u32", 4, 1),
    ("", "f32", 4, 1),
    ("", "u32", 4, 1),
    ("", "s64", 8, 1),
    ("", "f64", 8, 1),
    (".v2", "u8", 1, 2),
    (".v2", "s16", 2, 2),
    (".v2", "f32", 4, 2),
    (".v2", "u64", 8, 2),
    (".v4", "s8", 1, 4),
    (".v4", "u16", 2, 4),
    (".v4", "f32", 4, 4),
    (".v4", "u32", 4, 4),
    (".v2", "b32", 4, 2),
];

/// Bytes between the places of neighbouring threads in each column of the output, and whether the last thread comes first.
const COLUMNS: [(u32, bool); 8] =
    [(1, false), (2, false), (4, false), (8, false), (16, false), (4, true), (8, true), (12, false)];

/// An index: a sum of multiples of numbers that differ from thread to thread, or from round to round.
struct Index {
    terms: Vec<(&'static str, i64)>,
    constant: i64,
}

/// A loop's number.
const ROUND: &str = "round";

fn axes(grid: Grid, rounds: i64) -> Vec<Axis> {
    let [x, y, z] = grid.block.map(i64::from);
    vec![
        ("%tid.x", x),
        ("%tid.y", y),
        ("%tid.z", z),
        ("tid", x * y * z),
        ("block", grid.grid.iter().product::<u32>().into()),
        ("%ctaid.x", grid.grid[0].into()),
        ("%ctaid.y", grid.grid[1].into()),
        (ROUND, rounds),
    ]
}

impl Index {
    /// One that stays below `room` in every thread and round.
    fn within(r: &mut Random, grid: Grid, rounds: i64, room: i64) -> Index {
        let (mut terms, mut least, mut most) = (Vec::new(), 0, 0);
        for (name, count) in axes(grid, rounds) {
            // The other way to say `tid` is by its axes.
            let percent =
                if ["tid", "block"].contains(&name) || grid.grid[1] == 1 && name.starts_with("%ctaid") {
                    20
                } else {
                    75
                };
            let step = *r.pick(&STEPS);
            let reach = step * (count - 1);
            if r.chance(percent) && most - least + reach.abs() < room {
                terms.push((name, step));
                if reach < 0 { least += reach } else { most += reach }
            }
        }
        let constant = -least + r.below((room - (most - least)) as usize) as i64;
        Index { terms, constant }
    }

    /// One that may be anything.
    fn anywhere(r: &mut Random, grid: Grid, rounds: i64) -> Index {
        let mut terms = Vec::new();
        for (name, _) in axes(grid, rounds) {
            if r.chance(50) {
                terms.push((name, *r.pick(&LEAPS)));
            }
        }
        Index { terms, constant: *r.pick(&LEAPS) }
    }

    /// Leaves the index in a register of 32 bits.
    fn text(&self, r: &mut Random, to: &str) -> String {
        let mut text = String::new();
        let detour = *r.pick(&DETOURS);
        let (early, late) = if r.chance(50) { (self.constant as u32, 0) } else { (0, self.constant as u32) };
        let _ = writeln!(text, "\tmov.b32 {to}, {};", early.wrapping_add(detour));
        let mut terms = self.terms.clone();
        while !terms.is_empty() {
            let (name, step) = terms.swap_remove(r.below(terms.len()));
            let name = match name.starts_with('%') {
                true => {
                    let _ = writeln!(text, "\tmov.u32 t, {name};");
                    "t"
                }
                false => name,
            };
            let _ = match (step, r.below(3)) {
                (1, _) => writeln!(text, "\tadd.s32 {to}, {to}, {name};"),
                (-1, _) => writeln!(text, "\tsub.s32 {to}, {to}, {name};"),
                (2 | 4 | 8 | 16 | 32, 0) => {
                    writeln!(
                        text,
                        "\tshl.b32 t, {name}, {};\n\tadd.u32 {to}, t, {to};",
                        step.trailing_zeros()
                    )
                }
                (_, 1) => writeln!(text, "\tmul.lo.s32 t, {name}, {step};\n\tadd.s32 {to}, {to}, t;"),
                _ => writeln!(text, "\tmad.lo.s32 {to}, {name}, {step}, {to};"),
            };
        }
        let rest = late.wrapping_sub(detour);
        if rest != 0 {
            let _ = writeln!(text, "\tadd.s32 {to}, {to}, {};", rest as i32);
        }
        text
    }
}

/// Where the accesses of a walk go.
#[derive(Clone, Copy)]
enum Memory {
    Input,
    Stage,
}

impl Memory {
    fn bytes(self) -> u32 {
        match self {
            Memory::Input => 4 * INPUT_WORDS as u32,
            Memory::Stage => STAGE_BYTES as u32,
        }
    }

    /// Leaves the address of the element that `i` says in `a` or `s`; answers the space of the access, and the register.
    fn address(self, r: &mut Random, scale: u32, text: &mut String) -> (&'static str, &'static str) {
        let (base, generic) = match self {
            Memory::Input => ("in", r.chance(20)),
            Memory::Stage if r.chance(75) => {
                *text += "\tmov.u32 t, words;\n";
                *text += &match r.below(2) {
                    0 => format!("\tmad.lo.u32 s, i, {scale}, t;\n\tadd.u32 s, s, {STAGE_AT};\n"),
                    _ => format!(
                        "\tmul.lo.s32 s, i, {scale};\n\tadd.s32 t, t, {STAGE_AT};\n\tadd.s32 s, t, s;\n"
                    ),
                };
                return (".shared", "s");
            }
            Memory::Stage => {
                let _ = writeln!(
                    text,
                    "\tmov.u64 b, words;\n\tcvta.shared.u64 b, b;\n\tadd.u64 b, b, {STAGE_AT};"
                );
                ("b", true)
            }
        };
        *text += &match r.below(6) {
            0 => format!("\tmul.wide.u32 a, i, {scale};\n\tadd.u64 a, a, {base};\n"),
            1 => format!("\tmul.wide.s32 a, i, {scale};\n\tadd.s64 a, {base}, a;\n"),
            2 => format!("\tcvt.u64.u32 a, i;\n\tmad.lo.u64 a, a, {scale}, {base};\n"),
            3 => format!("\tcvt.s64.s32 a, i;\n\tmul.lo.s64 a, a, {scale};\n\tadd.s64 a, a, {base};\n"),
            4 => format!("\tmad.wide.u32 a, i, {scale}, {base};\n"),
            _ => format!(
                "\tcvt.s64.s32 a, i;\n\tshl.b64 a, a, {};\n\tadd.s64 a, {base}, a;\n",
                scale.trailing_zeros()
            ),
        };
        let space = match generic {
            true => "",
            false => *r.pick(&[".global", ".global", ".global.nc"]),
        };
        (space, "a")
    }
}

/// The registers of a walk.
const OWN: &str = "{\n\t.reg .b32 i, s, t, round, v<4>, n;\n\t.reg .b64 a, b, w<2>;\n\t.reg .pred g, h;\n";

/// Reads of the input.
pub fn read(r: &mut Random, grid: Grid, steady: bool) -> String {
    format!("{OWN}{}\t}}", walk(r, grid, steady, Memory::Input))
}

/// All threads of the block put an element each into shared memory, in some order, and read those of others between two barriers.
pub fn stage(r: &mut Random, grid: Grid, steady: bool) -> String {
    let mut text = OWN.to_string();
    let [x, y, z] = grid.block;
    let size = x * y * z;
    match r.below(5) {
        0 => text += "\tmov.b32 i, tid;\n",
        1 => text += "\tsub.u32 i, size, tid;\n\tsub.u32 i, i, 1;\n",
        2 => {
            // Another order of the axes.
            let mut axes = vec![("%tid.x", x), ("%tid.y", y), ("%tid.z", z)];
            text += "\tmov.b32 i, 0;\n";
            while !axes.is_empty() {
                let (name, count) = axes.swap_remove(r.below(axes.len()));
                let _ = writeln!(text, "\tmov.u32 t, {name};\n\tmad.lo.u32 i, i, {count}, t;");
            }
        }
        3 => {
            let most = size.next_power_of_two();
            let _ = writeln!(text, "\txor.b32 i, tid, {};", r.below(most as usize));
        }
        _ => {
            let factor = 2 * r.below(64) + 1;
            let _ = writeln!(text, "\tmul.lo.u32 i, tid, {factor};\n\tand.b32 i, i, 127;");
        }
    }
    let (ty, bytes) = *r.pick(&[("u8", 1), ("u16", 2), ("u32", 4), ("f32", 4), ("u64", 8), ("v2.u32", 8)]);
    let value = match ty {
        "u64" => any_register(r, 64),
        "u16" => any_register(r, 16),
        "v2.u32" => format!("{{{}, {}}}", any_register(r, 32), any_register(r, 32)),
        _ => any_register(r, 32),
    };
    let (space, address) = Memory::Stage.address(r, bytes, &mut text);
    let _ = writeln!(text, "\tst{space}.{ty} [{address}], {value};\n\tbar.sync 0;");
    text += &walk(r, grid, steady, Memory::Stage);
    text + "\tbar.sync 0;\n\t}"
}

/// Stores and loads of the thread's own place in a column of the output.
pub fn column(r: &mut Random, grid: Grid) -> String {
    let at = r.below(COLUMNS.len());
    let (stride, reversed) = COLUMNS[at];
    let size = grid.block.iter().product::<u32>();
    let threads = size * grid.grid.iter().product::<u32>();
    let mut text = OWN.to_string();
    let own = match reversed {
        false => Index { terms: vec![("tid", 1), ("block", size.into())], constant: 0 },
        true => {
            Index { terms: vec![("tid", -1), ("block", -i64::from(size))], constant: i64::from(threads) - 1 }
        }
    };
    for _ in 0..1 + r.below(3) {
        match !reversed && r.chance(40) {
            true => text += "\tmad.lo.u32 i, block, size, tid;\n",
            false => text += &own.text(r, "i"),
        }
        text += &match r.below(3) {
            0 => format!("\tmad.wide.u32 a, i, {stride}, columns;\n"),
            1 => format!("\tmul.wide.s32 a, i, {stride};\n\tadd.s64 a, a, columns;\n"),
            _ => format!("\tmul.lo.u32 i, i, {stride};\n\tcvt.u64.u32 a, i;\n\tadd.u64 a, columns, a;\n"),
        };
        let first = at as u32 * COLUMN_BYTES as u32 * threads;
        let fits = |bytes: u32, count: u32| bytes * count <= stride && (stride.is_multiple_of(bytes * count));
        let (vector, ty, bytes, count) = loop {
            let kind = *r.pick(&LOADS);
            if fits(kind.2, kind.3) {
                break kind;
            }
        };
        let offset = first + bytes * count * r.below((stride / (bytes * count)) as usize) as u32;
        let space = *r.pick(&["", ".global", ".global"]);
        if r.chance(60) {
            let list: Vec<String> =
                (0..count).map(|_| any_register(r, if bytes == 8 { 64 } else { 32 })).collect();
            let list = if count > 1 { format!("{{{}}}", list.join(", ")) } else { list.concat() };
            let _ = writeln!(text, "\tst{space}{vector}.{ty} [a+{offset}], {list};");
        } else {
            text += &load(r, (space, vector), (ty, bytes, count), &format!("a+{offset}"), "");
        }
    }
    text + "\t}"
}

/// A loop of reads, or one; if it is to be steady, all threads go round as often.
fn walk(r: &mut Random, grid: Grid, steady: bool, memory: Memory) -> String {
    let rounds = if r.chance(30) { 1 } else { 2 + r.below(4) as i64 };
    let (vector, ty, bytes, count) = *r.pick(&LOADS);
    // Elements one by one that lie as those of a vector do, or more apart.
    let apart = count == 1 && bytes <= 4 && r.chance(35);
    let neighbours = if apart { 2 + r.below(3) as u32 } else { 1 };
    let whole = bytes * count * neighbours.next_power_of_two();
    let scale = if apart && r.chance(40) { bytes } else { whole };
    let room = i64::from((memory.bytes() - whole) / scale + 1);
    let guarded = r.chance(35);
    let index = match guarded {
        true => Index::anywhere(r, grid, rounds),
        false => Index::within(r, grid, rounds, room),
    };
    let mut text = String::from("\tmov.b32 round, 0;\n");
    let by_thread = rounds > 1 && !steady && r.chance(25);
    if by_thread {
        // Rounds that differ from thread to thread.
        let source = if r.chance(50) { "tid".to_string() } else { any_register(r, 32) };
        let _ = writeln!(text, "\trem.u32 n, {source}, {rounds};");
    } else {
        let _ = writeln!(text, "\tmov.b32 n, {};", rounds - 1);
    }
    let leaves = rounds > 1 && !steady && r.chance(20);
    text += "AGAIN:\n";
    text += &index.text(r, "i");
    let mut guard = "";
    if guarded {
        match r.below(3) {
            0 => text += &format!("\tsetp.lt.u32 g, i, {room};\n"),
            1 => text += &format!("\tsetp.ge.s32 h, i, 0;\n\tsetp.lt.and.s32 g, i, {room}, h;\n"),
            _ => text += &format!("\tsetp.gt.s32 h, i, -1;\n\tsetp.le.and.s32 g, i, {}, h;\n", room - 1),
        }
        if r.chance(50) {
            text += "\t@!g bra PAST;\n";
        } else {
            guard = "@g ";
        }
    }
    let (space, address) = memory.address(r, scale, &mut text);
    let space = if space == ".global" && r.chance(10) { ".volatile.global" } else { space };
    let mut offsets: Vec<u32> = (0..neighbours).map(|neighbour| neighbour * bytes * count).collect();
    while !offsets.is_empty() {
        let offset = offsets.swap_remove(r.below(offsets.len()));
        text += &load(r, (space, vector), (ty, bytes, count), &format!("{address}+{offset}"), guard);
    }
    text += "PAST:\n";
    if leaves {
        let _ =
            writeln!(text, "\tand.b32 t, {}, 7;\n\tsetp.eq.u32 h, t, 3;\n\t@h bra OUT;", any_register(r, 32));
    }
    if rounds > 1 {
        text += "\tadd.u32 round, round, 1;\n\tsetp.le.u32 h, round, n;\n\t@h bra AGAIN;\n";
    }
    text + "OUT:\n"
}

/// Loads elements and takes them into a register of the kernel's.
fn load(
    r: &mut Random,
    (space, vector): (&str, &str),
    (ty, bytes, count): (&str, u32, u32),
    address: &str,
    guard: &str,
) -> String {
    let file = if bytes == 8 { "w" } else { "v" };
    let names: Vec<String> = (0..count).map(|at| format!("{file}{at}")).collect();
    let list = if count > 1 { format!("{{{}}}", names.join(", ")) } else { names.concat() };
    let mut text = format!("\t{guard}ld{space}{vector}.{ty} {list}, [{address}];\n");
    let result = any_register(r, if bytes == 8 { 64 } else { 32 });
    for name in names {
        let _ = match (bytes, r.below(4)) {
            (8, _) => writeln!(text, "\t{guard}mad.lo.u64 {result}, {result}, 31, {name};"),
            (4, 0) => writeln!(text, "\t{guard}fma.rn.f32 {result}, {result}, 0f3F400000, {name};"),
            (_, 1) => writeln!(text, "\t{guard}xor.b32 {result}, {result}, {name};"),
            _ => writeln!(text, "\t{guard}mad.lo.u32 {result}, {result}, 31, {name};"),
        };
    }
    text
}
