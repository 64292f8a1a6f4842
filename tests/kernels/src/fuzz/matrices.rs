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
