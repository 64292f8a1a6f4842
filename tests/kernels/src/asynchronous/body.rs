//! The kernels' text: what one instruction needs around it.

use std::fmt::Write;

use ptx::isa::Row;
use simt_ir::bulk::{Element, Interleave, Swizzle};

use super::model::{Map, Place, World};
use super::number::Number;
use super::{OUTPUT, WINDOW};

/// Where things lie in a block's window: what is copied there, what is copied from there, a tensor map, and an instruction's result.
const TO: usize = 1024;
const FROM: usize = 2048;
const MAP: usize = 3072;
const RESULT: usize = 3584;
/// The same in global memory, of which the first part is the tensor.
const GLOBAL_FROM: usize = 128;
const GLOBAL_TO: usize = 256;
const GLOBAL_MAP: usize = 4096;
/// Bytes of a copy without a map.
const BYTES: usize = 64;

/// How often a thread looks whether a barrier is complete.
const PATIENCE: u32 = 1000;

/// An instruction with what is around it, and the memory before and after.
pub struct Scene {
    pub instruction: String,
    /// What the executing thread does before and after.
    prepare: String,
    finish: String,
    /// All threads of a warp execute it.
    whole_warp: bool,
    pub map: Map,
    pub before: World,
    pub after: World,
}

/// Rows that need no case here: `tests/ptx` has kernels about nothing else.
pub fn is_shown_elsewhere(row: &Row) -> bool {
    row.opcode == "barrier"
}

/// The scene of an instruction; nothing for what is none.
pub fn scene(row: &Row, words: &[&'static str], variant: usize) -> Option<Scene> {
    let before = World::new(variant as u64);
    let scene = Scene {
        instruction: String::new(),
        prepare: String::new(),
        finish: String::new(),
        whole_warp: false,
        map: Map::tiled(3, Element::U32),
        after: before.clone(),
        before,
    };
    let maker = Maker { row, words, variant, scene };
    let is = |word: &str| words.contains(&word);
    match row.opcode {
        "cp" if is("prefetch") => maker.prefetch(),
        "cp" if is("commit_group") || is("wait_group") => maker.group(),
        "cp" if is("tensor") && is("mbarrier::complete_tx::bytes") => maker.tensor_load(),
        "cp" if is("tensor") => maker.tensor_store(),
        "cp" => maker.linear(),
        "tensormap" if is("replace") => maker.replace(),
        "tensormap" => maker.publish(),
        "fence" => maker.fence(),
        "mapa" => maker.mapped(),
        "getctarank" => maker.rank(),
        "st" => maker.store(),
        "red" => maker.reduce(),
        _ => None,
    }
}

struct Maker<'a> {
    row: &'a Row,
    words: &'a [&'static str],
    variant: usize,
    scene: Scene,
}

impl Maker<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// The first of the words that there is.
    fn one_of<'w>(&self, words: &[&'w str]) -> Option<&'w str> {
        words.iter().copied().find(|word| self.has(word))
    }

    fn prepare(&mut self, line: &str) {
        let _ = writeln!(self.scene.prepare, "    {line}");
    }

    fn finish(&mut self, line: &str) {
        let _ = writeln!(self.scene.finish, "    {line}");
    }

    /// The scene with the instruction, whose operands are what the function says for their names; a policy is what it always is.
    fn with(mut self, operand: impl Fn(&str) -> String) -> Option<Scene> {
        let policy = self.has("L2::cache_hint");
        if policy {
            self.prepare("createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;");
        }
        let operands = self.row.operands.iter().filter(|name| **name != "policy" || policy);
        let operands: Vec<String> = operands
            .map(|name| if *name == "policy" { "%policy".to_owned() } else { operand(name) })
            .collect();
        let modifiers: String = self.words.iter().map(|word| format!(".{word}")).collect();
        self.scene.instruction = format!("{}{modifiers} {};", self.row.opcode, operands.join(", "));
        Some(self.scene)
    }

    fn wait_for_group(&mut self) {
        self.finish("cp.async.bulk.commit_group;");
        self.finish("cp.async.bulk.wait_group 0;");
    }

    /// Sets the register `%to` or `%from` to a place in global memory.
    fn global(&mut self, register: &str, offset: usize) {
        self.prepare(&format!("add.u64 %{register}_global, %tensor, {offset};"));
    }

    /// The blocks that a copy into shared memory goes to. `%to` and `%barrier` name the place: the other block's for an address in the
    /// cluster, unless there is a mask of blocks.
    fn targets(&mut self) -> Vec<usize> {
        let multicast = self.has("multicast::cluster");
        let other = !multicast && self.one_of(&["shared::cluster"]).is_some();
        if other {
            self.prepare(&format!("mapa.shared::cluster.u32 %to, space+{TO}, 1;"));
            self.prepare("mapa.shared::cluster.u32 %barrier, barrier, 1;");
            return vec![1];
        }
        self.prepare(&format!("mov.u32 %to, space+{TO};"));
        self.prepare("mov.u32 %barrier, barrier;");
        if !multicast {
            return vec![0];
        }
        let both = self.variant.is_multiple_of(2);
        self.prepare(&format!("mov.u16 %mask, {};", if both { 3 } else { 2 }));
        if both { vec![0, 1] } else { vec![1] }
    }

    fn linear(mut self) -> Option<Scene> {
        let reduce = self.has("reduce");
        let spaces: Vec<&str> = self
            .words
            .iter()
            .copied()
            .filter(|word| word.starts_with("shared::") || *word == "global")
            .collect();
        let [to, from] = spaces[..] else { return None };
        let number = reduce.then(|| Number::named(self.words.last()?)).flatten();
        if let Some(number) = number {
            self.scene.before = self.scene.before.of(number);
            self.scene.after = self.scene.before.clone();
        }
        let source = if from == "global" {
            self.global("from", GLOBAL_FROM);
            Place::Tensor(GLOBAL_FROM)
        } else {
            self.prepare(&format!("mov.u32 %from, space+{FROM};"));
            Place::Window(0, FROM)
        };
        let bytes = self.scene.before.bytes(source, BYTES).to_vec();
        let targets = if to == "global" {
            self.global("to", GLOBAL_TO);
            self.wait_for_group();
            vec![Place::Tensor(GLOBAL_TO)]
        } else {
            let blocks = self.targets();
            for block in &blocks {
                self.scene.after.arrived[*block] = BYTES as u32;
            }
            blocks.into_iter().map(|block| Place::Window(block, TO)).collect()
        };
        for target in targets {
            match number {
                None => self.scene.after.put(target, &bytes),
                Some(number) => {
                    let op = self.one_of(&["and", "or", "xor", "add", "inc", "dec", "min", "max"])?;
                    self.scene.after.combine(target, op, number, &bytes);
                }
            }
        }
        // The size may be a number or in a register.
        let size = if self.variant % 3 == 1 { "%bytes".to_owned() } else { BYTES.to_string() };
        self.prepare(&format!("mov.u32 %bytes, {BYTES};"));
        let place = |name: &str, space: &str| {
            if space == "global" { format!("[%{name}_global]") } else { format!("[%{name}]") }
        };
        self.with(|name| match name {
            "to" => place("to", to),
            "from" => place("from", from),
            "bytes" => size.clone(),
            "barrier" => "[%barrier]".to_owned(),
            _ => "%mask".to_owned(),
        })
    }

    fn dimensions(&self) -> Option<usize> {
        let word = self.words.iter().find(|word| word.len() == 2 && word.ends_with('d'))?;
        word.strip_suffix('d')?.parse().ok()
    }

    /// The map of a copy, and where it begins.
    fn tensor(&mut self, element: Element, inside: bool) -> Option<Vec<i32>> {
        let rank = self.dimensions()?;
        let unit = 16 / element.bytes() as i32;
        let im2col = self.has("im2col") || self.has("im2col_no_offs");
        // Some maps have its channels in slices, for which there must be three dimensions.
        let slices =
            [Interleave::None, Interleave::Bytes16, Interleave::None, Interleave::None, Interleave::Bytes32];
        let slices = if rank >= 3 { slices[self.variant % 5] } else { Interleave::None };
        if slices != Interleave::None {
            let map = if im2col { Map::im2col(rank, element, 0) } else { Map::tiled(rank, element) };
            self.scene.map = map.in_slices(slices);
        }
        let start = if slices != Interleave::None {
            // Pixels, slices, image: also where a row or a column of a filter is outside.
            let mut start = vec![1, 0, 0, 0, 0];
            start.truncate(rank);
            start[rank - 2] = 1;
            start[rank - 1] = self.variant as i32 % 2;
            if !inside && !im2col {
                start[0] = -1;
            }
            start
        } else if im2col {
            self.scene.map = Map::im2col(rank, element, if inside { 0 } else { 1 });
            // The image is the last dimension.
            let mut start = vec![unit * (self.variant as i32 % 2), 1, 0, 2, 0];
            start.truncate(rank);
            start[rank - 1] = self.variant as i32 % 2;
            start
        } else {
            self.scene.map = Map::tiled(rank, element);
            let starts = [[0, 0, 0, 0, 0], [unit, 2, 1, 1, 1], [-unit, -1, -1, 0, 1]];
            starts[self.variant % if inside { 2 } else { 3 }][..rank].to_vec()
        };
        self.prepare("mov.b64 %map, map;");
        self.prepare("cvta.param.u64 %map, %map;");
        for (axis, at) in start.iter().enumerate() {
            self.prepare(&format!("mov.b32 %c{axis}, {at};"));
        }
        Some(start)
    }

    fn coordinates(&self) -> String {
        let registers: Vec<String> =
            (0..self.dimensions().unwrap_or(1)).map(|axis| format!("%c{axis}")).collect();
        format!("[%map, {{{}}}]", registers.join(", "))
    }

    /// The offsets of pixels, which end in an operand.
    fn shifts(&mut self) -> (Vec<u16>, String) {
        let count = if self.has("im2col") { self.dimensions().unwrap_or(2) - 2 } else { 0 };
        let shifts = [1, 2, 1][..count].to_vec();
        for (axis, shift) in shifts.iter().enumerate() {
            self.prepare(&format!("mov.u16 %s{axis}, {shift};"));
        }
        let registers: Vec<String> = (0..count).map(|axis| format!("%s{axis}")).collect();
        (shifts, format!("{{{}}}", registers.join(", ")))
    }

    fn tensor_load(mut self) -> Option<Scene> {
        let elements = [
            Element::U32,
            Element::F16,
            Element::U8,
            Element::U64,
            Element::BF16,
            Element::F32,
            Element::S64,
            Element::U16,
            Element::F64,
            Element::S32,
        ];
        let element = elements[self.variant % elements.len()];
        let start = self.tensor(element, false)?;
        let (shifts, list) = self.shifts();
        let size = element.bytes() as usize;
        let moved = self.scene.map.elements(&start, &shifts);
        for block in self.targets() {
            for (at, place) in &moved {
                let zeros = [0; 8];
                let bytes = match place {
                    Some(place) => self.scene.before.bytes(Place::Tensor(*place), size),
                    None => &zeros[..size],
                };
                self.scene.after.put(Place::Window(block, TO + at), bytes);
            }
            self.scene.after.arrived[block] = (moved.len() * size) as u32;
        }
        let map = self.coordinates();
        self.with(|name| match name {
            "to" => "[%to]".to_owned(),
            "map" => map.clone(),
            "barrier" => "[%barrier]".to_owned(),
            "shifts" => list.clone(),
            _ => "%mask".to_owned(),
        })
    }

    fn tensor_store(mut self) -> Option<Scene> {
        const WIDTHS: [(Element, &str); 6] = [
            (Element::U32, "u32"),
            (Element::U64, "u64"),
            (Element::F16, "f16"),
            (Element::BF16, "bf16"),
            (Element::S32, "s32"),
            (Element::F32, "f32"),
        ];
        const ORDERED: [(Element, &str); 6] = [
            (Element::S64, "s64"),
            (Element::U32, "u32"),
            (Element::F16, "f16"),
            (Element::S32, "s32"),
            (Element::BF16, "bf16"),
            (Element::U64, "u64"),
        ];
        let op = self.one_of(&["add", "min", "max", "inc", "dec", "and", "or", "xor"]);
        let choices = match op {
            None | Some("add") => &WIDTHS[..],
            Some("min" | "max") => &ORDERED[..],
            Some("inc" | "dec") => &WIDTHS[..1],
            _ => &WIDTHS[..2],
        };
        let (element, name) = choices[(self.variant + self.variant / 8) % choices.len()];
        let number = Number::named(name)?;
        if op.is_some() {
            self.scene.before = self.scene.before.of(number);
            self.scene.after = self.scene.before.clone();
        }
        let start = self.tensor(element, true)?;
        for (at, place) in self.scene.map.in_units().elements(&start, &[]) {
            let Some(place) = place else { continue };
            let bytes = self.scene.before.bytes(Place::Window(0, FROM + at), number.bytes).to_vec();
            match op {
                None => self.scene.after.put(Place::Tensor(place), &bytes),
                Some(op) => self.scene.after.combine(Place::Tensor(place), op, number, &bytes),
            }
        }
        self.prepare(&format!("mov.u32 %from, space+{FROM};"));
        self.wait_for_group();
        let map = self.coordinates();
        self.with(|name| if name == "map" { map.clone() } else { "[%from]".to_owned() })
    }

    /// A prefetch moves nothing.
    fn prefetch(mut self) -> Option<Scene> {
        if !self.has("tensor") {
            self.global("from", GLOBAL_FROM);
            return self
                .with(|name| if name == "bytes" { BYTES.to_string() } else { "[%from_global]".to_owned() });
        }
        self.tensor(Element::U32, false)?;
        let (_, list) = self.shifts();
        let map = self.coordinates();
        self.with(|name| if name == "map" { map.clone() } else { list.clone() })
    }

    fn group(self) -> Option<Scene> {
        self.with(|_| "0".to_owned())
    }

    /// Puts the kernel's map where an instruction can change it, and answers where.
    fn place_map(&mut self, shared: bool) -> Place {
        self.prepare("mov.b64 %map, map;");
        self.prepare("cvta.param.u64 %map, %map;");
        self.prepare(&if shared {
            format!("mov.u32 %to, space+{MAP};")
        } else {
            format!("add.u64 %to_global, %tensor, {GLOBAL_MAP};")
        });
        for word in 0..16 {
            self.prepare(&format!("ld.b64 %w, [%map+{}];", 8 * word));
            self.prepare(&if shared {
                format!("st.shared.b64 [%to+{}], %w;", 8 * word)
            } else {
                format!("st.global.b64 [%to_global+{}], %w;", 8 * word)
            });
        }
        if shared { Place::Window(0, MAP) } else { Place::Tensor(GLOBAL_MAP) }
    }

    fn replace(mut self) -> Option<Scene> {
        const ELEMENTS: [Element; 13] = [
            Element::U8,
            Element::U16,
            Element::U32,
            Element::S32,
            Element::U64,
            Element::S64,
            Element::F16,
            Element::F32,
            Element::F32Ftz,
            Element::F64,
            Element::BF16,
            Element::TF32,
            Element::TF32Ftz,
        ];
        let shared = self.has("shared::cta");
        let place = self.place_map(shared);
        let mut map = self.scene.map.clone();
        let number = self.variant % ELEMENTS.len();
        // Of the fields with one value for each dimension, that of the second one.
        let (value, in_register) = match self.words[2] {
            "global_address" => {
                map.moved = 512;
                self.prepare("add.u64 %w, %tensor, 512;");
                (String::new(), true)
            }
            // Counted from zero.
            "rank" => {
                map.inner.rank = 5;
                ("4".to_owned(), true)
            }
            "box_dim" => {
                if let simt_ir::bulk::Mode::Tiled { extents } = &mut map.inner.mode {
                    extents[1] = 200;
                }
                ("200".to_owned(), true)
            }
            "global_dim" => {
                map.inner.sizes[1] = 0x8000_0001;
                ("0x80000001".to_owned(), true)
            }
            "element_stride" => {
                map.inner.steps[1] = 7;
                ("7".to_owned(), true)
            }
            "global_stride" => {
                map.inner.strides[1] = 0x12_3456_7890;
                ("0x1234567890".to_owned(), true)
            }
            "elemtype" => {
                map.inner.element = ELEMENTS[number];
                (number.to_string(), false)
            }
            "interleave_layout" => {
                map.inner.interleave = Interleave::Bytes16;
                ("1".to_owned(), false)
            }
            "swizzle_mode" => {
                map.inner.swizzle = Swizzle::Bytes64;
                ("2".to_owned(), false)
            }
            _ => {
                map.inner.nan_outside = true;
                ("1".to_owned(), false)
            }
        };
        let wide = self.has("b64");
        if in_register && !value.is_empty() {
            self.prepare(&if wide {
                format!("mov.b64 %w, {value};")
            } else {
                format!("mov.b32 %v, {value};")
            });
        }
        self.scene.after.maps.push((place, self.scene.map.clone(), map));
        self.with(|name| match name {
            "map" if shared => "[%to]".to_owned(),
            "map" => "[%to_global]".to_owned(),
            "at" => "1".to_owned(),
            _ if !in_register => value.clone(),
            _ if wide => "%w".to_owned(),
            _ => "%v".to_owned(),
        })
    }

    /// A map that was made in shared memory goes to global memory; every thread of a warp takes part.
    fn publish(mut self) -> Option<Scene> {
        self.scene.whole_warp = true;
        self.global("to", GLOBAL_MAP);
        self.prepare(&format!("mov.u32 %from, space+{MAP};"));
        let bytes = self.scene.before.bytes(Place::Window(0, MAP), 128).to_vec();
        self.scene.after.put(Place::Tensor(GLOBAL_MAP), &bytes);
        self.with(|name| match name {
            "to" => "[%to_global]".to_owned(),
            "from" => "[%from]".to_owned(),
            _ => "128".to_owned(),
        })
    }

    /// A fence between two stores: both are seen after the cluster's barrier.
    fn fence(mut self) -> Option<Scene> {
        self.prepare("mov.b64 %map, map;");
        self.prepare("cvta.param.u64 %map, %map;");
        for (at, value) in [(RESULT, 11u32), (RESULT + 4, 12)] {
            let line = format!("st.shared.u32 [space+{at}], {value};");
            if value == 11 {
                self.prepare(&line)
            } else {
                self.finish(&line)
            }
            self.scene.after.put(Place::Window(0, at), &value.to_le_bytes());
        }
        self.with(|name| if name == "map" { "[%map]".to_owned() } else { "128".to_owned() })
    }

    /// Whether the operand is a variable rather than a register: only the row of those needs a state space.
    fn names_a_variable(&self) -> bool {
        self.row.places.iter().any(|place| place.words == ["shared::cluster"] && !place.optional)
    }

    /// The operand of an address of a variable in the own window, in a register or by name.
    fn own_address(&mut self) -> Option<String> {
        let (wide, generic) = (self.has("u64"), !self.has("shared::cluster"));
        if self.names_a_variable() {
            return Some(format!("space+{TO}"));
        }
        self.prepare(&format!("mov.u32 %to, space+{TO};"));
        match (wide, generic) {
            (false, false) => Some("%to".to_owned()),
            // A generic address has 64 bits.
            (false, true) => None,
            (true, _) => {
                self.prepare("cvt.u64.u32 %w, %to;");
                if generic {
                    self.prepare("cvta.shared.u64 %w, %w;");
                }
                Some("%w".to_owned())
            }
        }
    }

    /// An address in the other block's window: a store through it arrives there.
    fn mapped(mut self) -> Option<Scene> {
        let operand = self.own_address()?;
        let (d, space) = (
            if self.has("u64") { "%from_global" } else { "%from" },
            if self.has("shared::cluster") { ".shared::cluster" } else { "" },
        );
        self.finish(&format!("st{space}.u32 [{d}+8], 77;"));
        self.scene.after.put(Place::Window(1, TO + 8), &77u32.to_le_bytes());
        let rank = if self.variant.is_multiple_of(2) { "1" } else { "%one" };
        self.prepare("mov.u32 %one, 1;");
        self.with(|name| match name {
            "d" => d.to_owned(),
            "a" => operand.clone(),
            _ => rank.to_owned(),
        })
    }

    /// The rank of the block that an address is of: the other one, or the own one for a variable.
    fn rank(mut self) -> Option<Scene> {
        let operand = self.own_address()?;
        let own = self.names_a_variable();
        if !own {
            let ty = if self.has("u64") { "u64" } else { "u32" };
            let space = if self.has("shared::cluster") { ".shared::cluster" } else { "" };
            self.prepare(&format!("mapa{space}.{ty} {operand}, {operand}, 1;"));
        }
        self.finish(&format!("st.shared.u32 [space+{RESULT}], %v;"));
        self.scene.after.put(Place::Window(0, RESULT), &u32::from(!own).to_le_bytes());
        self.with(|name| if name == "d" { "%v".to_owned() } else { operand.clone() })
    }

    /// A place and the barrier in the other block's window, by generic addresses where the instruction names no state space.
    fn other_block(&mut self, bytes: usize) -> [&'static str; 2] {
        self.prepare(&format!("mapa.shared::cluster.u32 %to, space+{TO}, 1;"));
        self.prepare("mapa.shared::cluster.u32 %barrier, barrier, 1;");
        self.scene.after.arrived[1] = bytes as u32;
        if self.has("shared::cluster") {
            return ["[%to]", "[%barrier]"];
        }
        for (generic, address) in [("%to_global", "%to"), ("%from_global", "%barrier")] {
            self.prepare(&format!("cvt.u64.u32 {generic}, {address};"));
            self.prepare(&format!("cvta.shared::cluster.u64 {generic}, {generic};"));
        }
        ["[%to_global]", "[%from_global]"]
    }

    fn store(mut self) -> Option<Scene> {
        let count = if self.has("v4") {
            4
        } else if self.has("v2") {
            2
        } else {
            1
        };
        let number = Number::named(self.words.last()?)?;
        let size = number.bytes * count;
        let [to, barrier] = self.other_block(size);
        let class = if number.bytes == 8 { "d" } else { "r" };
        let bytes = self.scene.before.bytes(Place::Window(0, FROM), size).to_vec();
        for at in 0..count {
            let bits = 8 * number.bytes;
            self.prepare(&format!("ld.shared.b{bits} %{class}{at}, [space+{}];", FROM + at * number.bytes));
        }
        self.scene.after.put(Place::Window(1, TO), &bytes);
        let registers: Vec<String> = (0..count).map(|at| format!("%{class}{at}")).collect();
        let value = if count == 1 { registers[0].clone() } else { format!("{{{}}}", registers.join(", ")) };
        self.with(|name| match name {
            "a" => to.to_owned(),
            "b" => value.clone(),
            _ => barrier.to_owned(),
        })
    }

    fn reduce(mut self) -> Option<Scene> {
        let number = Number::named(self.words.last()?)?;
        let [to, barrier] = self.other_block(number.bytes);
        let (class, bits) = if number.bytes == 8 { ("d", 64) } else { ("r", 32) };
        let operand = self.scene.before.bytes(Place::Window(0, FROM), number.bytes).to_vec();
        self.prepare(&format!("ld.shared.b{bits} %{class}0, [space+{FROM}];"));
        let op = self.one_of(&["add", "min", "max", "inc", "dec", "and", "or", "xor"])?;
        self.scene.after.combine(Place::Window(1, TO), op, number, &operand);
        self.with(|name| match name {
            "a" => to.to_owned(),
            "b" => format!("%{class}0"),
            _ => barrier.to_owned(),
        })
    }
}

/// The kernel of a scene.
pub fn kernel(scene: &Scene) -> String {
    let others = if scene.whole_warp {
        "    mov.pred %others, %second;"
    } else {
        "    or.pred %others, %second, %follower;"
    };
    format!(
        "\
.version 9.0
.target sm_90a
.address_size 64
.shared .align 1024 .b8 space[{WINDOW}];
.shared .align 8 .b64 barrier;
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 tensor, .param .u64 seeds, .param .u64 out, .param .u32 to_first, .param .u32 to_second)
{{
    .reg .pred %more, %second, %follower, %others, %done;
    .reg .b16 %mask, %s<3>;
    .reg .b32 %lane, %rank, %i, %at, %a, %b, %v, %one, %to, %from, %barrier, %bytes, %c<5>, %r<4>;
    .reg .b64 %tensor, %seeds, %out, %off, %w, %d<2>, %map, %policy, %to_global, %from_global;
    mov.u32 %lane, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    setp.ne.u32 %second, %rank, 0;
    setp.ne.u32 %follower, %lane, 0;
    ld.param.u64 %tensor, [tensor];
    ld.param.u64 %seeds, [seeds];
    ld.param.u64 %out, [out];
    mul.wide.u32 %off, %rank, {WINDOW};
    add.u64 %seeds, %seeds, %off;
    mul.wide.u32 %off, %rank, {OUTPUT};
    add.u64 %out, %out, %off;
    mov.u32 %i, %lane;
FILL:
    mul.wide.u32 %off, %i, 4;
    add.u64 %off, %seeds, %off;
    ld.global.b32 %v, [%off];
    mov.u32 %at, space;
    mad.lo.u32 %at, %i, 4, %at;
    st.shared.b32 [%at], %v;
    add.u32 %i, %i, 32;
    setp.lt.u32 %more, %i, {words};
    @%more bra FILL;
    @%follower bra READY;
    mbarrier.init.shared::cta.b64 [barrier], 1;
    fence.mbarrier_init.release.cluster;
    ld.param.u32 %a, [to_first];
    ld.param.u32 %b, [to_second];
    selp.u32 %a, %b, %a, %second;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], %a;
READY:
    fence.proxy.async;
    barrier.cluster.arrive;
    barrier.cluster.wait;
{others}
    @%others bra WAIT;
{prepare}    {instruction}
{finish}WAIT:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %i, 0;
AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [barrier], 0;
    add.u32 %i, %i, 1;
    setp.lt.and.u32 %more, %i, {PATIENCE}, !%done;
    @%more bra AGAIN;
    selp.u32 %v, 1, 0, %done;
    st.global.u32 [%out+{WINDOW}], %v;
    fence.proxy.async;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %i, %lane;
DUMP:
    mov.u32 %at, space;
    mad.lo.u32 %at, %i, 4, %at;
    ld.shared.b32 %v, [%at];
    mul.wide.u32 %off, %i, 4;
    add.u64 %off, %out, %off;
    st.global.b32 [%off], %v;
    add.u32 %i, %i, 32;
    setp.lt.u32 %more, %i, {words};
    @%more bra DUMP;
    ret;
}}
",
        words = WINDOW / 4,
        prepare = scene.prepare,
        instruction = scene.instruction,
        finish = scene.finish,
    )
}
