//! Products of matrices, and matrices in memory: what all lanes of a warp do together.
//!
//! A warp has a zone of shared memory for itself, which its lanes fill before.

use std::fmt::Write;

use ptx::isa::Example;

use super::Random;
use super::program::{INPUT_WORDS, ZONE_AT, ZONE_BYTES};
use super::rows::{Addresses, Rows, bound, put_operand};
use super::table::any_register;

/// The rows that these instructions are of.
pub struct Matrices {
    registers: Rows,
    memory: Rows,
}

impl Default for Matrices {
    fn default() -> Matrices {
        let in_memory = |opcode: &str| ["ldmatrix", "stmatrix"].contains(&opcode);
        let is_moved = |words: &[&str]| words.contains(&"load") || words.contains(&"store");
        let moves = |row: &ptx::isa::Row| {
            let words: Vec<&str> = row.places.iter().flat_map(|place| place.words.clone()).collect();
            in_memory(row.opcode) || row.opcode == "wmma" && is_moved(&words)
        };
        let is_matrix = |row: &ptx::isa::Row| ["mma", "wmma", "movmatrix"].contains(&row.opcode);
        Matrices { registers: Rows::of(|row| is_matrix(row) && !moves(row)), memory: Rows::of(moves) }
    }
}

const NOWHERE: Addresses<'static> = Addresses { place: "", shared: "" };

impl Matrices {
    /// A product of fragments in registers, or another move of them.
    pub fn product(&mut self, r: &mut Random) -> Option<String> {
        let mut example = self.registers.draw(r, |_| true)?;
        if !example.words.iter().any(|word| word.starts_with("sp")) {
            return bound(&example, r, NOWHERE, "");
        }
        // Places of two elements among four, or of one among two, which are written as two of four: what else four bits may say has
        // no meaning.
        put_operand(&mut example.text, 1, "places")?;
        let instruction = bound(&example, r, NOWHERE, "")?;
        let is_of_pairs = ["tf32", "u4", "s4"].iter().any(|ty| example.words.contains(ty));
        let [a, b] = [any_register(r, 32), any_register(r, 32)];
        let places = match is_of_pairs || r.chance(50) {
            true => format!("and.b32 places, {a}, 0x11111111;\n\tmad.lo.u32 places, places, 10, 0x44444444;"),
            false => format!(
                "and.b32 places, {a}, 0x11111111;\n\tand.b32 more, {b}, 0x44444444;\n\t\
                 add.u32 places, places, more;\n\tadd.u32 places, places, 0x88888888;"
            ),
        };
        Some(format!("{{\n\t.reg .b32 places, more;\n\t{places}\n\t{instruction}\n\t}}"))
    }

    /// Matrices that the warp loads and stores.
    pub fn in_memory(&mut self, r: &mut Random) -> Option<String> {
        let mut text = String::from("{\n\t.reg .b32 lane, zone, near, at, o<4>;\n\t.reg .b64 place;\n");
        text += "\tand.b32 lane, tid, 31;\n\tshr.u32 zone, tid, 5;\n\tmov.u32 at, words;\n";
        let _ =
            writeln!(text, "\tmad.lo.u32 zone, zone, {ZONE_BYTES}, at;\n\tadd.u32 zone, zone, {ZONE_AT};");
        let share = ZONE_BYTES / 32;
        let _ = writeln!(text, "\tmad.lo.u32 at, lane, {share}, zone;");
        for offset in (0..share).step_by(16) {
            let words: [String; 4] = std::array::from_fn(|_| any_register(r, 32));
            let _ = writeln!(text, "\tst.shared.v4.b32 [at+{offset}], {{{}}};", words.join(", "));
        }
        text += "\tbar.warp.sync 0xffffffff;\n";
        for _ in 0..1 + r.below(4) {
            let example = self.memory.draw(r, |_| true)?;
            text += &addressed(&example, r)?;
            if r.chance(50) {
                let _ = writeln!(text, "\t{}", self.product(r)?);
            }
        }
        text += "\tmad.lo.u32 at, lane, 16, zone;\n";
        let _ = writeln!(text, "\tld.shared.v4.b32 {{o0, o1, o2, o3}}, [at+{}];", 512 * r.below(share / 16));
        for at in 0..4 {
            let result = any_register(r, 32);
            let _ = writeln!(text, "\txor.b32 {result}, {result}, o{at};");
        }
        // The zone may be written again.
        Some(text + "\tbar.warp.sync 0xffffffff;\n\t}")
    }
}

/// Kinds of products of a warpgroup: types, columns of the first factor, and whether factors may lie the other way round and may change
/// their sign.
const OF_WARPGROUPS: [(&str, usize, bool, bool); 11] = [
    ("f32.f16.f16", 16, true, true),
    ("f16.f16.f16", 16, true, true),
    ("f32.bf16.bf16", 16, true, true),
    ("f32.tf32.tf32", 8, false, true),
    ("f32.e4m3.e5m2", 32, false, true),
    ("f16.e5m2.e5m2", 32, false, true),
    ("f32.e5m2.e4m3", 32, false, true),
    ("s32.s8.u8", 32, false, false),
    ("satfinite.s32.u8.u8", 32, false, false),
    ("satfinite.s32.s8.s8", 32, false, false),
    ("s32.b1.b1.and.popc", 256, false, false),
];

/// Where a factor lies in the zones of the warpgroup: a descriptor but for the address, and bytes before it. All that it may name is in there.
fn descriptor(r: &mut Random) -> (u64, usize) {
    let (leading, stride) = (8 * (1 + r.below(4)) as u64, 8 * r.below(4) as u64);
    let (base, mode) = (r.below(8) as u64, r.below(4) as u64);
    (leading << 16 | stride << 32 | base << 49 | mode << 62, 16 * r.below(192))
}

/// A product of the four warps of a block, over what they put into their zones before. If `some_leave`, lanes that have done so exit before
/// it, but not all of a warp: what follows is for the others.
pub fn of_warpgroup(r: &mut Random, some_leave: bool) -> String {
    let (kind, k, turns, signs) = *r.pick(&OF_WARPGROUPS);
    let sparse = !kind.contains("b1") && r.chance(35);
    let in_memory = r.chance(50);
    let mut text = String::from(
        "{\n\t.reg .b32 lane, zone, at, places, a<4>, d<4>;\n\t.reg .b64 first, second;\n\t.reg .pred adds;\n",
    );
    let share = ZONE_BYTES / 32;
    let _ = writeln!(
        text,
        "\tmov.u32 zone, words;\n\tadd.u32 zone, zone, {ZONE_AT};\n\tmad.lo.u32 at, tid, {share}, zone;"
    );
    for offset in (0..share).step_by(16) {
        let words: [String; 4] = std::array::from_fn(|_| any_register(r, 32));
        let _ = writeln!(text, "\tst.shared.v4.b32 [at+{offset}], {{{}}};", words.join(", "));
    }
    text += "\tfence.proxy.async;\n\tbar.sync 0;\n";
    for name in ["first", "second"] {
        let (bits, start) = descriptor(r);
        let _ =
            writeln!(text, "\tadd.u32 at, zone, {start};\n\tshr.u32 at, at, 4;\n\tcvt.u64.u32 {name}, at;");
        let _ = writeln!(text, "\tor.b64 {name}, {name}, {bits:#x};");
    }
    let registers = if kind.starts_with("f16") { 2 } else { 4 };
    for at in 0..4 {
        let _ = writeln!(
            text,
            "\tmov.b32 a{at}, {};\n\tmov.b32 d{at}, {};",
            any_register(r, 32),
            any_register(r, 32)
        );
    }
    let _ = writeln!(
        text,
        "\tand.b32 places, {}, 0x11111111;\n\tmad.lo.u32 places, places, 10, 0x44444444;",
        any_register(r, 32)
    );
    if some_leave {
        let (bit, stays) = (1 << r.below(32), r.below(32));
        let _ = writeln!(
            text,
            "\tand.b32 at, {}, {bit};\n\tand.b32 lane, tid, 31;\n\tsetp.ne.u32 adds, lane, {stays};\n\t\
             setp.ne.and.u32 adds, at, 0, adds;\n\t@adds exit;",
            any_register(r, 32)
        );
    }
    let _ = writeln!(text, "\tsetp.lt.u32 adds, block, {};", r.below(3));
    let sums: Vec<String> = (0..registers).map(|at| format!("d{at}")).collect();
    let mut operands = vec![format!("{{{}}}", sums.join(", "))];
    operands.push(if in_memory { "first".into() } else { "{a0, a1, a2, a3}".into() });
    operands.push("second".into());
    if sparse {
        operands.extend(["places".into(), "0".into()]);
    }
    operands.push((*r.pick(&["adds", "!adds", "1", "0"])).into());
    let mut numbers =
        |count: usize, from: &[&str]| operands.extend((0..count).map(|_| (*r.pick(from)).into()));
    numbers(if signs { 2 } else { 0 }, &["1", "-1"]);
    numbers(if turns { 1 + usize::from(in_memory) } else { 0 }, &["0", "1"]);
    let (variant, k) = if sparse { (".sp", 2 * k) } else { ("", k) };
    let _ = writeln!(
        text,
        "\twgmma.fence.sync.aligned;\n\twgmma.mma_async{variant}.sync.aligned.m64n8k{k}.{kind} {};\n\t\
         wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;",
        operands.join(", ")
    );
    for sum in sums {
        let result = any_register(r, 32);
        let _ = writeln!(text, "\txor.b32 {result}, {result}, {sum};");
    }
    // The zones may be written again.
    text + "\tbar.sync 0;\n\t}"
}

/// The instruction with the address that it wants before it.
fn addressed(example: &Example, r: &mut Random) -> Option<String> {
    let mut text = String::new();
    let is_wmma = example.text.starts_with("wmma");
    if !is_wmma {
        // Each lane has the address of a row; rows that are stored are different ones.
        let rows = ZONE_BYTES / 16;
        let (factor, start, part) = (2 * r.below(16) + 1, r.below(32), r.below(rows / 32));
        let _ = match example.text.starts_with("ldmatrix") {
            true => writeln!(text, "\tand.b32 at, {}, {};", any_register(r, 32), rows - 1),
            false => writeln!(
                text,
                "\tmad.lo.u32 at, lane, {factor}, {start};\n\tand.b32 at, at, 31;\n\tadd.u32 at, at, {};",
                32 * part
            ),
        };
        text += "\tmad.lo.u32 near, at, 16, zone;\n";
    }
    let mut example = example.clone();
    if is_wmma {
        let (offset, stride) = layout(&example, r)?;
        let is_load = example.words.contains(&"load");
        let is_global = example.words.contains(&"global");
        let is_shared = example.words.iter().any(|word| word.starts_with("shared"));
        if is_global && !is_load {
            return None;
        }
        let _ =
            writeln!(text, "\tadd.u32 near, zone, {};", if is_shared { offset % 512 / 32 * 32 } else { 0 });
        if is_global || !is_shared && is_load && r.chance(50) {
            let _ = writeln!(text, "\tadd.u64 place, in, {offset};");
        } else if !is_shared {
            text += "\tcvt.u64.u32 place, near;\n\tcvta.shared.u64 place, place;\n";
        }
        // The stride is what may follow.
        let end = example.text.rfind(';')?;
        example.text.insert_str(end, &format!(", {stride}"));
    }
    let instruction = bound(
        &example,
        r,
        Addresses { place: "place", shared: if is_wmma { "near" } else { shared_of(&example) } },
        "",
    )?;
    if !is_wmma && shared_of(&example) == "place" {
        text += "\tcvt.u64.u32 place, near;\n\tcvta.shared.u64 place, place;\n";
    }
    let writes = example.results.is_empty();
    if writes {
        text += "\tbar.warp.sync 0xffffffff;\n";
    }
    let _ = writeln!(text, "\t{instruction}");
    if writes {
        text += "\tbar.warp.sync 0xffffffff;\n";
    }
    Some(text)
}

/// The register of an address in shared memory, which is a generic one where no space is said.
fn shared_of(example: &Example) -> &'static str {
    if example.text.contains("%d41") { "place" } else { "near" }
}

/// Where a matrix may begin in the input, and the elements from line to line.
fn layout(example: &Example, r: &mut Random) -> Option<(usize, usize)> {
    let shape = example.words.iter().find(|word| word.starts_with('m') && word.contains('k'))?;
    let [m, n, k] = dimensions(shape)?;
    let by_row = example.words.contains(&"row");
    let (rows, columns) = match ["a", "b"].map(|role| example.words.contains(&role)) {
        [true, _] => (m, k),
        [_, true] => (k, n),
        _ => (m, n),
    };
    let (lines, line) = if by_row { (rows, columns) } else { (columns, rows) };
    let bits = match *example.words.last()? {
        "f64" => 64,
        "f16" | "bf16" => 16,
        "u8" | "s8" => 8,
        "u4" | "s4" => 4,
        "b1" => 1,
        _ => 32,
    };
    let step = 128 / bits;
    let stride = line.next_multiple_of(step) + step * r.below(2);
    let bytes = (lines * stride * bits).div_ceil(8);
    // Matrices begin at multiples of 32 bytes.
    let room = (4 * INPUT_WORDS - bytes) / 32;
    Some((32 * r.below(room), stride))
}

/// `m16n8k4`.
fn dimensions(shape: &str) -> Option<[usize; 3]> {
    let (m, rest) = shape.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}
