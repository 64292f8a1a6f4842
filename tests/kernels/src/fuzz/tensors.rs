//! Copies by tensor maps: boxes of the input that a thread waits for alone or all threads of a block together, and boxes of the output that a
//! thread, or one for its block, stores or combines something into.
//!
//! Kernels make their maps themselves: 128 bytes, of which some fields are wrong until `tensormap.replace` mends them, in global memory, or in
//! shared memory and copied from there. So a kernel is all there is to a case.

use std::fmt::Write;

use ptx::isa::Row;
use simt_ir::bulk::{Element, Field, Interleave, Mode, Swizzle, TensorMap};

use super::Random;
use super::copies::{guard, look};
use super::program::{
    ARRIVALS_AT, COPY_AT, COPY_BYTES, HISTOGRAMS, INPUT_WORDS, SHARED_WORDS, TILE_AT, TILE_BYTES, ZONE_AT,
    ZONE_BYTES,
};
use super::rows;
use super::table::any_register;

/// Instructions, and maps, that are drawn until one fits, at most.
const TRIES: usize = 5000;
/// Bytes of the output that are a thread's own, and from one thread's to the next.
const OWN_BYTES: u64 = 128;
const OWN_STRIDE: u64 = 256;

/// The rows that have to do with tensor maps.
pub struct Tensors(Vec<Row>);

impl Default for Tensors {
    fn default() -> Tensors {
        let is_here = |row: &Row| row.sm <= ptx::isa::DEVICE && row.until.is_none() && is_of_maps(row);
        Tensors(ptx::isa::rows().into_iter().filter(is_here).collect())
    }
}

fn is_of_maps(row: &Row) -> bool {
    let has = |word: &str| row.places.iter().any(|place| place.words.contains(&word));
    row.opcode == "tensormap" || has("tensor") || has("tensormap") || has("tensormap::generic")
}

/// An instruction of a row, without operands.
struct Drawn<'a> {
    row: &'a Row,
    words: Vec<&'static str>,
}

impl Drawn<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn is_im2col(&self) -> bool {
        self.has("im2col") || self.has("im2col_no_offs")
    }

    fn rank(&self) -> Option<usize> {
        self.words.iter().find_map(|word| word.strip_suffix('d')?.parse().ok())
    }

    /// The instruction, whose operands are what the function says for their names.
    fn with(&self, operand: impl Fn(&str) -> String) -> String {
        let operands =
            self.row.operands.iter().filter(|name| **name != "policy" || self.has("L2::cache_hint"));
        let operands: Vec<String> = operands
            .map(|name| if *name == "policy" { "policy".to_owned() } else { operand(name) })
            .collect();
        let modifiers: String = self.words.iter().map(|word| format!(".{word}")).collect();
        format!("{}{modifiers} {};", self.row.opcode, operands.join(", "))
    }
}

/// What a map may be.
struct Room<'a> {
    /// Bytes of the tensor and of the box in shared memory, at most.
    bytes: u64,
    tile: u64,
    elements: &'a [Element],
    /// Elements are written: no two of them lie at one place, and the box begins inside.
    written: bool,
    /// The last dimension is that of the block's threads, of which there are so many.
    threads: Option<u32>,
}

/// Who makes a map, and where.
#[derive(Clone, Copy, PartialEq)]
enum Maker {
    /// A thread, in its place in global memory.
    Own,
    /// A thread, in its tile.
    Tile,
    /// The first thread of each warp, in its zone.
    Warp,
}

const REGISTERS: &str = "{
	.reg .b64 map, base, policy, w<2>;
	.reg .b32 at, near, c<5>, o<4>, v;
	.reg .b16 s<3>, mask;
	.reg .pred done, leads, others;
	mov.u32 at, words;
	mad.lo.u32 near, tid, TILE_BYTES, at;
	add.u32 near, near, TILE_AT;
	mad.lo.u32 at, tid, COPY_BYTES, at;
	add.u32 at, at, COPY_AT;
	mov.u16 mask, 1;
	createpolicy.fractional.L2::evict_last.b64 policy, 1.0;
";

fn registers() -> String {
    [("TILE_BYTES", TILE_BYTES), ("TILE_AT", TILE_AT), ("COPY_BYTES", COPY_BYTES), ("COPY_AT", COPY_AT)]
        .iter()
        .fold(REGISTERS.to_owned(), |text, (name, value)| text.replace(name, &value.to_string()))
}

impl Tensors {
    /// A copy in a kernel's own registers and memory; with barriers only where all threads of the block, so many, come together.
    pub fn copy(&self, r: &mut Random, together: bool, threads: u32) -> Option<String> {
        match r.below(if together { 6 } else { 3 }) {
            0 => self.load(r),
            1 => self.store(r),
            2 => self.combine(r),
            3 | 4 => self.announced(r, threads),
            _ => self.spread(r, threads),
        }
    }

    /// A box of the input, for which a thread waits alone.
    fn load(&self, r: &mut Random) -> Option<String> {
        let drawn = self.draw(r, |drawn| drawn.has("mbarrier::complete_tx::bytes"))?;
        let (begin, map) = self.of_input(r, &drawn, TILE_BYTES as u64)?;
        let maker = *r.pick(&[Maker::Own, Maker::Tile]);
        let mut text = registers();
        let guarded = r.chance(30);
        if guarded {
            let _ = writeln!(text, "\t@{} bra PAST;", any_register(r, 1));
        }
        text += &begin;
        text += &self.make(r, &map, maker)?;
        text += &fill(r);
        let barrier = format!("at+{}", 8 * r.below(COPY_BYTES / 8));
        let _ = writeln!(text, "\tmbarrier.init.shared.b64 [{barrier}], 1;\n\tfence.proxy.async;");
        let _ = writeln!(
            text,
            "\tmbarrier.arrive.expect_tx.shared.b64 _, [{barrier}], {};",
            rows_of(&map) * row_bytes(&map)
        );
        let (place, operands) = coordinates(r, &map, false);
        text += &place;
        text += &self.ahead(r, &drawn, &operands)?;
        let instruction = load_with(&drawn, "near", &operands, &barrier);
        let _ = writeln!(
            text,
            "\t{instruction}\nWAIT:\n\tmbarrier.try_wait.parity.shared.b64 done, [{barrier}], 0;\n\t@!done bra WAIT;"
        );
        let _ = writeln!(
            text,
            "\tmbarrier.inval.shared.b64 [{barrier}];\n\tmov.b64 w0, 0;\n\tst.shared.b64 [{barrier}], w0;"
        );
        let place = format!("near+{}", 16 * r.below(TILE_BYTES / 16));
        text += &look(r, &place);
        if guarded {
            text += "PAST:\n";
        }
        Some(text + "\t}")
    }

    /// A box of the input, of whose end a barrier in memory tells all threads.
    fn announced(&self, r: &mut Random, threads: u32) -> Option<String> {
        let drawn = self.draw(r, |drawn| drawn.has("mbarrier::complete_tx::bytes"))?;
        let (begin, map) = self.of_input(r, &drawn, u64::from(threads) * TILE_BYTES as u64)?;
        let mut text = registers() + &begin + &fill(r);
        text += &self.make_for_all(r, &map, threads)?;
        text += "\tfence.proxy.async;\n\tbar.sync 0;\n";
        let (place, operands) = coordinates(r, &map, false);
        text += &place;
        text += &self.ahead(r, &drawn, &operands)?;
        let barrier = format!("words+{ARRIVALS_AT}");
        let bytes = rows_of(&map) * row_bytes(&map);
        let _ = writeln!(text, "\t@!leads mbarrier.arrive.shared.b64 _, [{barrier}];");
        let _ = writeln!(text, "\t@leads mbarrier.arrive.expect_tx.shared.b64 _, [{barrier}], {bytes};");
        let instruction = load_with(&drawn, &format!("words+{TILE_AT}"), &operands, &barrier);
        let wait = *r.pick(&["try_wait", "test_wait"]);
        let _ = writeln!(
            text,
            "\t@leads {instruction}\nWAIT:\n\tmbarrier.{wait}.parity.shared.b64 done, [{barrier}], phase;\n\t@!done bra WAIT;\n\txor.b32 phase, phase, 1;"
        );
        let units = u64::from(threads) * TILE_BYTES as u64 / 16;
        // A few threads look at the first units, at which more is to be seen.
        let seen = if r.chance(50) { units } else { (tile_bytes(&map) / 16).max(1) };
        let _ = writeln!(
            text,
            "\tmad.lo.u32 at, tid, {}, {};\n\trem.u32 at, at, {seen};\n\tmov.u32 near, words;\n\tmad.lo.u32 at, at, 16, near;",
            1 + r.below(8),
            r.below(units as usize)
        );
        text += &look(r, &format!("at+{TILE_AT}"));
        Some(text + "\tbar.sync 0;\n\t}")
    }

    /// A thread's tile goes to its own place in the output.
    fn store(&self, r: &mut Random) -> Option<String> {
        let (drawn, elements) = self.draw_store(r, |_| true)?;
        let room = Room {
            bytes: OWN_BYTES,
            tile: TILE_BYTES as u64,
            elements: &elements,
            written: true,
            threads: None,
        };
        let map = map(r, &drawn, &room)?;
        let maker = *r.pick(&[Maker::Own, Maker::Tile]);
        let mut text = registers() + "\tmov.b64 base, own;\n" + &self.make(r, &map, maker)? + &fill(r);
        let guard = guard(r);
        text += &stored(r, &drawn, &map, "near", &guard);
        Some(text + "\t}")
    }

    /// A thread's tile is combined with words that all threads combine something into by the same operation.
    fn combine(&self, r: &mut Random) -> Option<String> {
        let kind = r.below(4);
        let (operation, elements): (&str, &[Element]) = match HISTOGRAMS[kind] {
            ("add", "u32") => ("add", &[Element::U32, Element::S32]),
            ("xor", _) => ("xor", &[Element::U32, Element::S32, Element::U64]),
            ("max", "s32") => ("max", &[Element::S32]),
            ("add", "u64") => ("add", &[Element::U64]),
            _ => return None,
        };
        let (drawn, _) = self.draw_store(r, |drawn| drawn.has("reduce") && drawn.has(operation))?;
        let room = Room { bytes: 64, tile: TILE_BYTES as u64, elements, written: true, threads: None };
        let map = map(r, &drawn, &room)?;
        let at = 8 * (SHARED_WORDS - 16 * HISTOGRAMS.len()) + 64 * kind;
        let maker = *r.pick(&[Maker::Own, Maker::Tile]);
        let mut text = registers();
        let _ = writeln!(text, "\tadd.u64 base, common, {at};");
        text += &self.make(r, &map, maker)?;
        text += &fill(r);
        let guard = guard(r);
        text += &stored(r, &drawn, &map, "near", &guard);
        Some(text + "\t}")
    }

    /// One thread stores, or combines, a box that reaches over the own places of several threads of its block.
    fn spread(&self, r: &mut Random, threads: u32) -> Option<String> {
        let (drawn, elements) = self.draw_store(r, |drawn| drawn.rank() > Some(1))?;
        let tile = u64::from(threads) * TILE_BYTES as u64;
        let room =
            Room { bytes: OWN_BYTES, tile, elements: &elements, written: true, threads: Some(threads) };
        let map = map(r, &drawn, &room)?;
        let mut text = registers();
        let _ = writeln!(text, "\tmul.wide.u32 base, tid, {OWN_STRIDE};\n\tsub.u64 base, own, base;");
        text += &fill(r);
        text += &self.make_for_all(r, &map, threads)?;
        text += "\tfence.proxy.async;\n\tbar.sync 0;\n";
        text += &stored(r, &drawn, &map, &format!("words+{TILE_AT}"), "@leads ");
        Some(text + "\tbar.sync 0;\n\t}")
    }

    /// A map of a part of the input for a load, and text that leaves the address of that part in `base`.
    fn of_input(&self, r: &mut Random, drawn: &Drawn<'_>, tile: u64) -> Option<(String, TensorMap)> {
        let skipped = 32 * r.below(64) as u64;
        let bytes = 4 * INPUT_WORDS as u64 - skipped;
        let map =
            map(r, drawn, &Room { bytes, tile, elements: &Element::ALL, written: false, threads: None })?;
        Some((format!("\tadd.u64 base, in, {skipped};\n"), map))
    }

    /// A store or reduction by a map, and the types of elements that it takes.
    fn draw_store(
        &self,
        r: &mut Random,
        wanted: impl Fn(&Drawn<'_>) -> bool,
    ) -> Option<(Drawn<'_>, Vec<Element>)> {
        let drawn = self.draw(r, |drawn| drawn.has("bulk_group") && wanted(drawn))?;
        let operation = OPERATIONS.into_iter().find(|operation| drawn.has(operation));
        let elements = Element::ALL.into_iter().filter(|element| is_taken(operation, *element)).collect();
        Some((drawn, elements))
    }

    /// Two hints before a copy, some of the time.
    fn ahead(&self, r: &mut Random, drawn: &Drawn<'_>, [map, shifts]: &[String; 2]) -> Option<String> {
        let mut text = String::new();
        if r.chance(20) {
            let hint = self
                .draw(r, |hint| hint.row.opcode == "prefetch" && !hint.has("const") && !hint.has("param"))?;
            let _ = writeln!(text, "\t{}", hint.with(|_| "[map]".into()));
        }
        if r.chance(30) {
            let hint = self.draw(r, |hint| {
                hint.has("prefetch") && hint.rank() == drawn.rank() && hint.is_im2col() == drawn.is_im2col()
            })?;
            let _ = writeln!(
                text,
                "\t{}",
                hint.with(|name| if name == "map" { map.clone() } else { shifts.clone() })
            );
        }
        Some(text)
    }

    /// Some instruction for which this holds.
    fn draw(&self, r: &mut Random, wanted: impl Fn(&Drawn<'_>) -> bool) -> Option<Drawn<'_>> {
        (0..TRIES).find_map(|_| {
            let row = r.pick(&self.0);
            let words = row.places.iter().filter_map(|place| rows::word(place, r)).collect();
            Some(Drawn { row, words }).filter(&wanted)
        })
    }

    /// One map for all threads of the block, in `map` of the one that `leads`, who alone uses it. All threads come here.
    fn make_for_all(&self, r: &mut Random, map: &TensorMap, threads: u32) -> Option<String> {
        let mut text = format!("\tsetp.eq.u32 leads, tid, {};\n", r.below(threads as usize));
        if threads.is_multiple_of(32) && r.chance(40) {
            return Some(text + &self.make(r, map, Maker::Warp)?);
        }
        let maker = *r.pick(&[Maker::Own, Maker::Tile]);
        let keeps = maker == Maker::Tile;
        // What the tile is filled with is put there again.
        let _ = writeln!(
            text,
            "\t@!leads bra MADE;\n{}{}MADE:",
            self.make(r, map, maker)?,
            if keeps { fill(r) } else { String::new() }
        );
        Some(text)
    }

    /// Makes a map of the tensor at `base` and leaves its address in `map`.
    fn make(&self, r: &mut Random, map: &TensorMap, maker: Maker) -> Option<String> {
        let (bytes, changes) = with_wrong_fields(r, map);
        let (place, space) = match maker {
            Maker::Own => ("map", *r.pick(&["global", ""])),
            Maker::Tile => ("near", "shared::cta"),
            Maker::Warp => ("at", "shared::cta"),
        };
        let mut text = String::from("\tmad.lo.u32 v, block, size, tid;\n");
        if maker == Maker::Warp {
            // Its first thread has a place there, as all have.
            text += "\tand.b32 c0, tid, 31;\n\tsub.u32 v, v, c0;\n\tsetp.ne.u32 others, c0, 0;\n";
            let _ = writeln!(
                text,
                "\tshr.u32 c0, tid, 5;\n\tmov.u32 at, words;\n\tmad.lo.u32 at, c0, {ZONE_BYTES}, at;\n\tadd.u32 at, at, {ZONE_AT};"
            );
        }
        text += "\tmov.u64 map, maps;\n\tcvta.global.u64 map, map;\n\tmad.wide.u32 map, v, 128, map;\n";
        if maker == Maker::Warp {
            text += "\tbar.warp.sync 0xffffffff;\n\t@others bra WRITTEN;\n";
        }
        let store = if maker == Maker::Own { "st" } else { "st.shared" };
        for (at, pair) in bytes.chunks_exact(16).enumerate() {
            let [low, high] = [0, 8]
                .map(|at| pair[at..at + 8].iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte)));
            let _ = writeln!(
                text,
                "\tmov.b64 w0, {low:#x};\n\tmov.b64 w1, {high:#x};\n\t{store}.v2.b64 [{place}+{}], {{w0, w1}};",
                16 * at
            );
        }
        for change in &changes {
            text += &self.replace(r, change, place, space)?;
        }
        match maker {
            Maker::Own => {}
            Maker::Tile => {
                for at in (0..TensorMap::BYTES).step_by(16) {
                    let _ = writeln!(
                        text,
                        "\tld.shared.v2.b64 {{w0, w1}}, [near+{at}];\n\tst.v2.b64 [map+{at}], {{w0, w1}};"
                    );
                }
            }
            Maker::Warp => {
                let publish = self.draw(r, |drawn| drawn.has("cp_fenceproxy"))?;
                let publish = publish.with(|name| match name {
                    "to" => "[map]".into(),
                    "from" => "[at]".into(),
                    _ => "128".into(),
                });
                let _ = writeln!(text, "WRITTEN:\n\tbar.warp.sync 0xffffffff;\n\t{publish}");
            }
        }
        if maker != Maker::Warp {
            let release = self.draw(r, |drawn| drawn.row.opcode == "fence" && drawn.has("release"))?;
            let _ = writeln!(text, "\t{}", release.with(|_| String::new()));
        }
        let acquire = self.draw(r, |drawn| drawn.row.opcode == "fence" && drawn.has("acquire"))?;
        let acquire = acquire.with(|name| if name == "map" { "[map]".into() } else { "128".into() });
        let _ = writeln!(text, "\t{acquire}");
        if maker == Maker::Warp {
            let _ = writeln!(
                text,
                "\tmov.u32 at, words;\n\tmad.lo.u32 at, tid, {COPY_BYTES}, at;\n\tadd.u32 at, at, {COPY_AT};"
            );
        }
        Some(text)
    }

    /// The instruction that puts a field right.
    fn replace(&self, r: &mut Random, change: &Change, place: &str, space: &str) -> Option<String> {
        let wanted = |drawn: &Drawn<'_>| {
            let is_there = match space {
                "" => !drawn.has("global") && !drawn.has("shared::cta"),
                _ => drawn.has(space),
            };
            drawn.has("replace") && drawn.has(change.field) && is_there
        };
        let drawn = self.draw(r, wanted)?;
        let (text, value) = match change.value {
            Value::Base => (String::new(), "base".to_owned()),
            Value::Number(value) => (String::new(), value.to_string()),
            Value::Word(value) if r.chance(50) => (String::new(), value.to_string()),
            Value::Word(value) => (format!("\tmov.b32 v, {value};\n"), "v".to_owned()),
            Value::Wide(value) => (format!("\tmov.b64 w0, {value};\n"), "w0".to_owned()),
        };
        let instruction = drawn.with(|name| match name {
            "map" => format!("[{place}]"),
            "at" => change.axis.to_string(),
            _ => value.clone(),
        });
        Some(format!("{text}\t{instruction}\n"))
    }
}

const OPERATIONS: [&str; 8] = ["add", "min", "max", "inc", "dec", "and", "or", "xor"];

/// Whether elements of a type are stored, or undergo an operation.
fn is_taken(operation: Option<&str>, element: Element) -> bool {
    use Element::{BF16, F16, S32, S64, U8, U16, U32, U64};
    match operation {
        None => true,
        Some("add") => ![U8, U16, S64].contains(&element),
        Some("min" | "max") => [U32, S32, U64, S64, F16, BF16].contains(&element),
        Some("inc" | "dec") => element == U32,
        Some(_) => [U32, S32, U64].contains(&element),
    }
}

/// A field that is wrong in a map's bytes, and what it should be.
struct Change {
    field: &'static str,
    axis: usize,
    value: Value,
}

enum Value {
    /// What `base` holds.
    Base,
    /// A number in the text.
    Number(u64),
    /// 32 and 64 bits.
    Word(u64),
    Wide(u64),
}

/// A map's bytes with other values in some of its fields, and what is to be done about it.
fn with_wrong_fields(r: &mut Random, map: &TensorMap) -> ([u8; TensorMap::BYTES], Vec<Change>) {
    let mut bytes = map.to_bytes();
    let mut fields = vec![
        (Field::Rank, "rank", 0, Value::Word(u64::from(map.rank) - 1)),
        (Field::Element, "elemtype", 0, Value::Number(number_of(map.element))),
        (Field::Interleave, "interleave_layout", 0, Value::Number(map.interleave as u64)),
        (Field::Swizzle, "swizzle_mode", 0, Value::Number(map.swizzle as u64)),
        (Field::Fill, "fill_mode", 0, Value::Number(map.nan_outside.into())),
    ];
    for (axis, at) in (0..map.rank()).zip(0..) {
        fields.push((Field::Size(at), "global_dim", axis, Value::Word(map.sizes[axis])));
        fields.push((Field::Step(at), "element_stride", axis, Value::Word(map.steps[axis].into())));
        if let Mode::Tiled { extents } = map.mode {
            fields.push((Field::Extent(at), "box_dim", axis, Value::Word(extents[axis].into())));
        }
        if axis + 1 < map.rank() {
            fields.push((Field::Stride(at), "global_stride", axis, Value::Wide(map.strides[axis])));
        }
    }
    let mut changes = vec![Change { field: "global_address", axis: 0, value: Value::Base }];
    for (field, name, axis, value) in fields {
        if r.chance(60) {
            continue;
        }
        let wrong = match field {
            // The rounding to tf32 would stay.
            Field::Element if !matches!(map.element, Element::TF32 | Element::TF32Ftz) => r.below(11),
            Field::Element => r.below(13),
            Field::Interleave => r.below(3),
            Field::Swizzle => r.below(4),
            Field::Fill => r.below(2),
            _ => r.bits() as u32 as usize,
        };
        if field.replace(&mut bytes, wrong as u64).is_some() {
            changes.push(Change { field: name, axis, value });
        }
    }
    for at in (1..changes.len()).rev() {
        let other = r.below(at + 1);
        changes.swap(at, other);
    }
    (bytes, changes)
}

/// PTX's number of a type of elements.
fn number_of(element: Element) -> u64 {
    use Element::{BF16, F16, F32, F32Ftz, F64, S32, S64, TF32, TF32Ftz, U8, U16, U32, U64};
    let all = [U8, U16, U32, S32, U64, S64, F16, F32, F32Ftz, F64, BF16, TF32, TF32Ftz];
    all.iter().position(|known| *known == element).unwrap_or(0) as u64
}

/// A map for an instruction.
fn map(r: &mut Random, drawn: &Drawn<'_>, room: &Room<'_>) -> Option<TensorMap> {
    let (rank, im2col) = (drawn.rank()?, drawn.is_im2col());
    (0..TRIES).find_map(|_| Some(any_map(r, rank, im2col, room)).filter(|map| fits(map, room)))
}

fn any_map(r: &mut Random, rank: usize, im2col: bool, room: &Room<'_>) -> TensorMap {
    let element = *r.pick(room.elements);
    let bytes = element.bytes();
    let interleave = match rank >= 3 && r.chance(25) {
        true => *r.pick(&[Interleave::Bytes16, Interleave::Bytes32]),
        false => Interleave::None,
    };
    let grain = if interleave == Interleave::Bytes32 { 32 } else { 16 };
    let mut map = TensorMap {
        element,
        rank: rank as u8,
        address: 0,
        sizes: [1; 5],
        strides: [0; 4],
        steps: [1; 5],
        interleave,
        swizzle: *r.pick(&[
            Swizzle::None,
            Swizzle::None,
            Swizzle::Bytes32,
            Swizzle::Bytes64,
            Swizzle::Bytes128,
        ]),
        nan_outside: element.is_float() && r.chance(40),
        promotion: r.below(4) as u8,
        mode: Mode::Tiled { extents: [1; 5] },
    };
    let mut reach = 0;
    for axis in 0..rank {
        if r.chance(20) {
            map.steps[axis] = 1 + r.below(3) as u32;
        }
        let last = axis + 1 == rank;
        map.sizes[axis] = match (axis, interleave.slice(), room.threads) {
            (_, _, Some(threads)) if last => threads.into(),
            (0, None, _) => 1 + r.bits() % (80 / bytes),
            _ => 1 + r.bits() % if room.written && r.chance(80) { 2 } else { 4 },
        };
        if axis > 0 {
            map.strides[axis - 1] = match room.threads {
                Some(_) if last => OWN_STRIDE,
                _ if room.written => u64::next_multiple_of(reach, grain) + grain * (r.bits() % 2),
                // They may overlap.
                _ => grain * (r.bits() % 12),
            };
        }
        reach = match (axis, interleave.slice()) {
            (0, None) => u64::next_multiple_of(map.sizes[0] * bytes, 16),
            (0, Some(slice)) => map.sizes[0] * slice,
            _ => reach + (map.sizes[axis] - 1) * map.strides[axis - 1],
        };
    }
    let row = (1 + r.below(8)) as u32 * (16 / bytes) as u32;
    map.mode = match im2col {
        true => {
            let corner = |r: &mut Random, from: i32, to: i32| {
                std::array::from_fn(|axis| {
                    if axis + 2 < rank { from + r.below((to - from + 1) as usize) as i32 } else { 0 }
                })
            };
            let (lower, upper) = match room.written {
                true if r.chance(70) => ([0; 3], [0; 3]),
                true => (corner(r, 0, 1), corner(r, -1, 0)),
                false => (corner(r, -2, 2), corner(r, -2, 2)),
            };
            Mode::Im2col { lower, upper, channels: row, pixels: 1 + r.below(20) as u32 }
        }
        false => {
            let mut extents = [1; 5];
            for (axis, extent) in extents[..rank].iter_mut().enumerate() {
                *extent = match (axis, interleave.slice(), room.threads) {
                    (_, _, Some(threads)) if axis + 1 == rank => 1 + r.below(threads as usize) as u32,
                    (0, None, _) => row,
                    _ => 1 + r.below(if room.tile > TILE_BYTES as u64 { 6 } else { 3 }) as u32,
                };
            }
            Mode::Tiled { extents }
        }
    };
    map
}

/// Whether there can be such a map, and there is memory for what it names.
fn fits(map: &TensorMap, room: &Room<'_>) -> bool {
    let rank = map.rank();
    let row = match map.interleave.slice() {
        Some(slice) => slice,
        None => u64::next_multiple_of(map.sizes[0] * map.element.bytes(), 16),
    };
    let along = |axis: usize| match axis {
        0 => {
            if map.interleave.slice().is_some() {
                (map.sizes[0] - 1) * row
            } else {
                0
            }
        }
        _ => (map.sizes[axis] - 1) * map.strides[axis - 1],
    };
    let inner = if room.threads.is_some() { rank - 1 } else { rank };
    let bytes = row + (0..inner).map(along).sum::<u64>();
    let has_start = match map.mode {
        Mode::Tiled { .. } => true,
        Mode::Im2col { lower, upper, .. } => (0..rank - 2)
            .all(|at| i64::from(lower[at]) < map.sizes[at + first_axis(map)] as i64 + i64::from(upper[at])),
    };
    let is_usable = TensorMap::from_bytes(&map.to_bytes()) == Some(*map);
    is_usable && has_start && bytes <= room.bytes && tile_bytes(map) <= room.tile
}

/// The first dimension whose elements are rows of their own in shared memory.
fn first_axis(map: &TensorMap) -> usize {
    usize::from(map.interleave == Interleave::None)
}

/// Rows of a box, and bytes of each that a barrier is told of.
fn rows_of(map: &TensorMap) -> u64 {
    match map.mode {
        Mode::Im2col { pixels, .. } => pixels.into(),
        Mode::Tiled { extents } => (first_axis(map)..map.rank())
            .filter(|axis| map.interleave == Interleave::None || axis + 2 != map.rank())
            .map(|axis| u64::from(extents[axis].div_ceil(map.steps[axis])))
            .product(),
    }
}

fn row_bytes(map: &TensorMap) -> u64 {
    let elements = match map.mode {
        Mode::Im2col { channels, .. } => channels,
        Mode::Tiled { extents } => extents[0],
    };
    map.interleave.slice().unwrap_or(u64::from(elements) * map.element.bytes())
}

/// Bytes of shared memory among which a box lies: whole lines of what is permuted.
fn tile_bytes(map: &TensorMap) -> u64 {
    let pitch = match map.interleave.slice() {
        Some(slice) => slice,
        None => row_bytes(map).max(map.swizzle.span().unwrap_or(0)),
    };
    u64::next_multiple_of(rows_of(map) * pitch, 128)
}

/// Leaves the box's first element in `c0` and so on, and offsets of pixels in `s0`; the operands that name them.
fn coordinates(r: &mut Random, map: &TensorMap, written: bool) -> (String, [String; 2]) {
    let mut text = String::new();
    let (rank, first) = (map.rank(), first_axis(map));
    for axis in 0..rank {
        let size = map.sizes[axis] as i64;
        let before = if written { 0 } else { -1 };
        let (least, count, unit) = match map.mode {
            // A pixel in the box of pixels.
            Mode::Im2col { lower, upper, .. } if (first..first + rank - 2).contains(&axis) => {
                let least = i64::from(lower[axis - first]);
                (least, size + i64::from(upper[axis - first]) - least, 1)
            }
            _ if axis < first => {
                let unit = 16 / map.element.bytes() as i64;
                (before, (size + unit - 1) / unit + 1 - before, unit)
            }
            Mode::Im2col { .. } if axis + 1 == rank => (0, size + 1, 1),
            _ => (before, size + 1 - before, 1),
        };
        let _ = match r.chance(50) {
            true => writeln!(text, "\tmov.b32 c{axis}, {};", unit * (least + r.below(count as usize) as i64)),
            false => writeln!(
                text,
                "\trem.u32 c{axis}, {}, {count};\n\tmad.lo.s32 c{axis}, c{axis}, {unit}, {};",
                any_register(r, 32),
                unit * least
            ),
        };
    }
    let shifts = rank.saturating_sub(2);
    for at in 0..shifts {
        let _ = writeln!(text, "\tmov.u16 s{at}, {};", r.below(4));
    }
    let list = |name: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("{name}{at}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    (text, [format!("[map, {}]", list("c", rank)), list("s", shifts)])
}

/// A load into a place in shared memory.
fn load_with(drawn: &Drawn<'_>, to: &str, [map, shifts]: &[String; 2], barrier: &str) -> String {
    drawn.with(|name| match name {
        "to" => format!("[{to}]"),
        "map" => map.clone(),
        "barrier" => format!("[{barrier}]"),
        "shifts" => shifts.clone(),
        _ => "mask".to_owned(),
    })
}

/// A store from a place in shared memory, and the wait for it.
fn stored(r: &mut Random, drawn: &Drawn<'_>, map: &TensorMap, from: &str, guard: &str) -> String {
    let (mut text, operands) = coordinates(r, map, true);
    let instruction =
        drawn.with(|name| if name == "map" { operands[0].clone() } else { format!("[{from}]") });
    let _ = writeln!(text, "\tfence.proxy.async;\n\t{guard}{instruction}\n\tcp.async.bulk.commit_group;");
    if r.chance(30) {
        text += "\tcp.async.bulk.wait_group.read 0;\n";
    }
    text + "\tcp.async.bulk.wait_group 0;\n"
}

/// Fills the thread's tile with registers.
fn fill(r: &mut Random) -> String {
    (0..TILE_BYTES).step_by(16).fold(String::new(), |text, at| {
        let words: [String; 4] = std::array::from_fn(|_| any_register(r, 32));
        text + &format!("\tst.shared.v4.b32 [near+{at}], {{{}}};\n", words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fuzz::program::Program;
    use crate::fuzz::program::Statement;
    use crate::machine::Grid;

    #[test]
    fn every_row_is_drawn_and_all_that_is_drawn_loads() {
        let tensors = Tensors::default();
        let mut r = Random::new(1);
        let grid = Grid { grid: [1; 3], block: [64, 1, 1], dynamic_shared: 0, cluster: None };
        let mut shown = BTreeSet::new();
        for seed in 0..150 {
            let body = (0..8)
                .map(|_| Statement::Plain(tensors.copy(&mut r, true, 64).expect("there always is one")))
                .collect();
            let program = Program {
                seed,
                grid,
                plain: false,
                free: false,
                images: Vec::new(),
                tensors: true,
                functions: Vec::new(),
                body,
            };
            let text = program.text();
            let module = ptx::parse(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            let uses = ptx::isa::uses(&text, &module).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            shown.extend(uses.iter().flat_map(|found| found.words.iter().map(|word| (found.row, *word))));
        }
        for (number, row) in ptx::isa::rows().iter().enumerate().filter(|(_, row)| is_of_maps(row)) {
            let words = row.places.iter().flat_map(|place| &place.words);
            let missing: Vec<&&str> = words.filter(|word| !shown.contains(&(number, **word))).collect();
            // Maps are in global memory.
            let is_elsewhere = |word: &&&str| row.opcode == "prefetch" && ["const", "param"].contains(word);
            let missing: Vec<_> = missing.into_iter().filter(|word| !is_elsewhere(word)).collect();
            assert!(missing.is_empty(), "{} {:?}: {missing:?}", row.opcode, row.operands);
        }
    }
}
