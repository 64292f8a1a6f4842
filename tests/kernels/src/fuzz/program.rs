//! Kernels as trees of statements, and their text.

use std::fmt::Write;

use super::Random;
use super::images::Image;
use super::table::{REGISTERS, register};
use crate::machine::Grid;

/// The kernel's name.
pub const ENTRY: &str = "k";
/// Words of 64 bits of the output that belong to a thread.
pub const OUTPUT_WORDS: usize = 32;
/// Words of 64 bits at the beginning of the output that all threads combine something into: some of one operation each, then eight for
/// each of the [`HISTOGRAMS`], then as many with what blocks have in theirs.
pub const SHARED_WORDS: usize = 16 + 16 * HISTOGRAMS.len();
/// Operations, and their types, by which threads combine something into one of eight words that they choose.
pub const HISTOGRAMS: [(&str, &str); 6] =
    [("add", "u32"), ("xor", "b32"), ("max", "s32"), ("add", "u64"), ("add", "f32"), ("add", "f64")];
/// Columns of the output behind that, and bytes of each that belong to a thread.
pub const COLUMNS: usize = 8;
/// See [`COLUMNS`].
pub const COLUMN_BYTES: usize = 16;
/// Words of 32 bits of the input.
pub const INPUT_WORDS: usize = 1024;
/// Words of 32 bits of each thread's local array.
pub const LOCAL_WORDS: usize = 16;
/// Where the block's threads put elements for each other, and how many bytes; zeros in the beginning.
pub const STAGE_AT: usize = 1024;
/// See [`STAGE_AT`].
pub const STAGE_BYTES: usize = 1024;
/// Operations by which a block's threads combine something into words of shared memory, one each from [`SHARED_AT`] on, 8 bytes apart.
pub const SHARED_OPERATIONS: [&str; 4] = ["add.u32", "xor.b32", "max.s32", "add.u64"];
/// Where these words are in the block's shared memory.
pub const SHARED_AT: usize = 2048;
/// Where a barrier for all threads of the block is.
const BARRIER_AT: usize = 2304;
/// Where one is that announces the end of copies; the kernel's register `phase` tells which phase it is in.
pub const ARRIVALS_AT: usize = 2312;
/// Where the block's [`HISTOGRAMS`] are.
pub const HISTOGRAM_AT: usize = 2432;
/// Where warps have zones of shared memory of their own, and bytes of each; what is there is not known.
pub const ZONE_AT: usize = 4096;
/// See [`ZONE_AT`].
pub const ZONE_BYTES: usize = 2048;
/// Where threads have pieces of their own, and bytes of each; zeros in the beginning.
pub const COPY_AT: usize = ZONE_AT + MOST_THREADS / 32 * ZONE_BYTES;
/// See [`COPY_AT`].
pub const COPY_BYTES: usize = 32;
/// Where they have tiles for tensors, if the kernel has any, and bytes of each.
pub const TILE_AT: usize = COPY_AT + MOST_THREADS * COPY_BYTES;
/// See [`TILE_AT`].
pub const TILE_BYTES: usize = 128;
/// Threads of a block, at most.
pub const MOST_THREADS: usize = 128;

/// What a thread does. Names of registers are part of the text; `{m}` in it stands for the mask of the lanes that execute it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Statement {
    /// Instructions.
    Plain(String),
    /// An instruction under a guard.
    Guarded(String, String),
    /// Two branches, by a predicate.
    If { condition: String, then: Vec<Statement>, otherwise: Vec<Statement> },
    /// A body that each thread runs once and as many times more as two bits of a register say.
    Loop { count: String, body: Vec<Statement> },
    /// A body that all threads run the same number of times.
    Repeat { count: u32, body: Vec<Statement> },
    /// A loop with an end in the middle, which no mask follows.
    Until { count: String, leave: String, before: Vec<Statement>, after: Vec<Statement> },
    /// One of several bodies, by two bits of a register, which no mask follows.
    Switch { index: String, bodies: Vec<Vec<Statement>> },
    /// Pieces between which control goes about: after each, a predicate and where to go if it holds. No mask follows.
    Maze { pieces: Vec<(Vec<Statement>, String, usize)> },
    /// Two branches with one instruction each, at which the lanes of both meet.
    Meet { condition: String, sides: [String; 2] },
    /// A lock that every thread takes for itself, to add a word to one that all share.
    Lock { word: String },
    /// All threads put a word into a tile some times, and look at several of them between two barriers.
    Tile { count: u32, word: String, result: String, looks: Vec<Look>, body: Vec<Statement> },
    /// Threads exchange a word with a neighbour, at a barrier, or at one in memory.
    Exchange { word: String, result: String, distance: u32, in_memory: bool },
}

/// Which words of a tile a thread looks at, in a loop over `times` of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// How the place follows from the number of the round, `%s2`, and the thread: PTX that leaves it in `%s1`.
    pub place: &'static str,
    /// How many.
    pub times: u32,
    /// Four words at once.
    pub wide: bool,
}

/// The places that a [`Look`] may be at: one for all threads, one for a row, one for each, and whichever.
pub const PLACES_OF_LOOKS: [&str; 6] = [
    "mov.b32 %s1, %s2;",
    "mad.lo.u32 %s1, %s2, 3, 1;",
    "mov.u32 %s1, %tid.y;\n\tadd.u32 %s1, %s1, %s2;",
    "mov.u32 %s1, %tid.x;\n\tadd.u32 %s1, %s1, %s2;",
    "mov.u32 %s1, %tid.x;\n\tmad.lo.u32 %s1, %s1, 5, %s2;",
    "xor.b32 %s1, %r2, %s2;",
];

/// A function that a kernel calls: two words in, one out.
pub type Function = Vec<Statement>;

/// A kernel and its functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Decides the input.
    pub seed: u64,
    /// What it is launched with.
    pub grid: Grid,
    /// There are accesses and barriers only, nothing that has to do with warps: several of them may run as a gang.
    pub plain: bool,
    /// Plain, and without barriers and shared memory: blocks run one after another, or row by row.
    pub free: bool,
    /// Textures and surfaces that it is given: parameters `image0` and so on.
    pub images: Vec<Image>,
    /// There are tiles of tensors, and a place for a tensor map for each thread of the grid.
    pub tensors: bool,
    /// The functions, named `f0`, `f1` and so on; each may call those after it.
    pub functions: Vec<Function>,
    /// The kernel's body.
    pub body: Vec<Statement>,
}

impl Program {
    /// The input: numbers of all sizes, and floating-point numbers of all kinds.
    pub fn input(&self) -> Vec<u64> {
        let mut random = Random::new(self.seed ^ 0x5eed);
        let word = |random: &mut Random| match random.below(6) {
            0 => random.bits() as u32 & 0xff,
            1 => 1 << random.below(32),
            2 => (random.bits() as i8 as f32 / 4.0).to_bits(),
            3 => *random.pick(&[
                0,
                0x8000_0000,
                0x7f80_0000,
                0xff80_0000,
                0x7fc0_1234,
                0x7fff_ffff,
                1,
                0x0080_0000,
            ]),
            _ => random.bits() as u32,
        };
        (0..INPUT_WORDS / 2)
            .map(|_| u64::from(word(&mut random)) | u64::from(word(&mut random)) << 32)
            .collect()
    }

    /// Threads of the grid.
    pub fn threads(&self) -> usize {
        self.grid.block.iter().chain(&self.grid.grid).map(|count| *count as usize).product()
    }

    /// Words of 64 bits of the output.
    pub fn output_words(&self) -> usize {
        SHARED_WORDS + (OUTPUT_WORDS + COLUMNS * COLUMN_BYTES / 8) * self.threads()
    }

    /// The PTX.
    pub fn text(&self) -> String {
        let mut text = String::from(".version 9.0\n.target sm_90a\n.address_size 64\n");
        let shared = match (self.plain, self.tensors) {
            (true, _) => ZONE_AT,
            (false, false) => TILE_AT,
            (false, true) => TILE_AT + MOST_THREADS * TILE_BYTES,
        };
        let _ = writeln!(text, ".shared .align 128 .b8 words[{shared}];");
        if self.tensors {
            let _ = writeln!(text, ".global .align 128 .b8 maps[{}];", 128 * self.threads());
        }
        for index in 0..self.functions.len() {
            let _ = writeln!(
                text,
                ".func (.reg .b32 z) f{index}(.reg .b32 x, .reg .b32 y, .reg .b32 m, .reg .b64 own, .reg .b64 in, .reg .b64 common);"
            );
        }
        for (index, function) in self.functions.iter().enumerate() {
            let mut out = Writer::default();
            function.iter().for_each(|statement| out.statement(statement, Some("m")));
            let _ = writeln!(
                text,
                ".func (.reg .b32 z) f{index}(.reg .b32 x, .reg .b32 y, .reg .b32 m, .reg .b64 own, .reg .b64 in, .reg .b64 common)\n{{\n{}\t.local .align 16 .b8 local[{}];",
                declarations(out.masks, out.counters),
                4 * LOCAL_WORDS
            );
            text += &clear_local();
            text += &initial("x", "y");
            text += &out.text;
            text += "\txor.b32 z, %r0, %r1;\n\tret;\n}\n";
        }
        let mut out = Writer::default();
        let everyone = (!self.plain).then_some("0xffffffff");
        self.body.iter().for_each(|statement| out.statement(statement, everyone));
        let local = match self.plain {
            true => String::new(),
            false => format!("\t.local .align 16 .b8 local[{}];\n", 4 * LOCAL_WORDS),
        };
        let images: String = (0..self.images.len()).map(|at| format!(", .param .u64 image{at}")).collect();
        let _ = writeln!(
            text,
            ".visible .entry {ENTRY}(.param .u64 input, .param .u64 output{images})\n{{\n{}{local}\t.reg .b32 x, y, z, tid, size, block, phase;\n\t.reg .b64 in, common, columns, own, plane;",
            declarations(out.masks, out.counters),
        );
        if self.plain {
            text += &places();
            let _ = writeln!(
                text,
                "\tadd.u64 columns, common, {};",
                8 * (SHARED_WORDS + OUTPUT_WORDS * self.threads())
            );
            if !self.free {
                text += SHARED_PLACES;
                text += "\tbar.sync 0;\n";
            }
        } else {
            text += &prologue(8 * (SHARED_WORDS + OUTPUT_WORDS * self.threads()));
            text += &clear_local();
        }
        text += &initial("x", "y");
        text += &out.text;
        text += &epilogue(self.plain, self.free);
        text += "\tret;\n}\n";
        text
    }
}

fn declarations(masks: usize, counters: usize) -> String {
    let mut text = String::new();
    for (bits, count) in REGISTERS {
        let ty = if bits == 1 { "pred".into() } else { format!("b{bits}") };
        let name = register(bits, 0);
        let _ = writeln!(text, "\t.reg .{ty} {}<{count}>;", &name[..name.len() - 1]);
    }
    let _ = writeln!(text, "\t.reg .b32 %m<{}>, %c<{}>, %s<4>, %t<4>;", masks.max(1), counters.max(1));
    text += "\t.reg .b64 %a<4>;\n\t.reg .pred %q<2>;\n";
    text
}

/// What the block's threads share begins as zeros, and they meet.
fn prologue(columns: usize) -> String {
    let mut text =
        format!("{}\tadd.u64 columns, common, {columns};\n{SHARED_PLACES}\tmov.u64 %a0, 0;\n", places());
    for index in 0..SHARED_OPERATIONS.len() {
        let _ = writeln!(text, "\tst.shared.u64 [words+{}], %a0;", SHARED_AT + 8 * index);
    }
    let _ = write!(
        text,
        "\tmov.b32 phase, 0;
	mov.u32 %t1, words;
	mad.lo.u32 %s1, tid, {COPY_BYTES}, %t1;
	st.shared.v2.u64 [%s1+{COPY_AT}], {{%a0, %a0}};
	st.shared.v2.u64 [%s1+{}], {{%a0, %a0}};
	mov.u32 %s1, tid;
EMPTY:
	min.u32 %s2, %s1, {};
	mad.lo.u32 %s2, %s2, 8, %t1;
	st.shared.u64 [%s2+{HISTOGRAM_AT}], %a0;
	add.u32 %s1, %s1, size;
	setp.lt.u32 %q0, %s1, {};
	@%q0 bra EMPTY;
	setp.eq.u32 %q0, tid, 0;
	@%q0 mbarrier.init.shared.b64 [words+{BARRIER_AT}], size;
	@%q0 mbarrier.init.shared.b64 [words+{ARRIVALS_AT}], size;
	bar.sync 0;
",
        COPY_AT + 16,
        8 * HISTOGRAMS.len() - 1,
        8 * HISTOGRAMS.len(),
    );
    text
}

/// The thread's word of shared memory, and zeros where threads put elements for each other.
const SHARED_PLACES: &str = "	shl.b32 y, tid, 2;
	mov.u32 %s0, words;
	add.u32 %s0, %s0, y;
	st.shared.u32 [%s0], x;
	mov.u32 %s1, tid;
	mov.u32 %t0, 0;
CLEAR:
	min.u32 %s2, %s1, 127;
	mov.u32 %t1, words;
	mad.lo.u32 %s2, %s2, 8, %t1;
	mov.u64 %a0, 0;
	st.shared.u64 [%s2+1024], %a0;
	add.u32 %s1, %s1, size;
	add.u32 %t0, %t0, size;
	setp.lt.u32 %q0, %t0, 128;
	@%q0 bra CLEAR;
	mul.lo.u32 y, x, 0x9e3779b1;
";

/// Where things are, and a number of the thread's own.
fn places() -> String {
    PLACES.replace("OWN_AT", &(8 * SHARED_WORDS).to_string())
}

/// See [`places`].
const PLACES: &str = "	ld.param.u64 in, [input];
	ld.param.u64 common, [output];
	mov.u32 tid, %tid.x;
	mov.u32 size, %ntid.x;
	mov.u32 x, %tid.y;
	mad.lo.u32 tid, x, size, tid;
	mov.u32 y, %ntid.y;
	mul.lo.u32 size, size, y;
	mov.u32 x, %tid.z;
	mad.lo.u32 tid, x, size, tid;
	mov.u32 y, %ntid.z;
	mul.lo.u32 size, size, y;
	mov.u32 block, %ctaid.z;
	mov.u32 x, %nctaid.y;
	mov.u32 y, %ctaid.y;
	mad.lo.u32 block, block, x, y;
	mov.u32 x, %nctaid.x;
	mov.u32 y, %ctaid.x;
	mad.lo.u32 block, block, x, y;
	mad.lo.u32 x, block, size, tid;
	mul.wide.u32 own, x, 256;
	add.u64 own, own, common;
	add.u64 own, own, OWN_AT;
	mul.wide.u32 plane, tid, 4;
	mul.lo.u32 y, x, 0x9e3779b1;
";

fn clear_local() -> String {
    (0..LOCAL_WORDS)
        .fold(String::new(), |text, at| text + &format!("\tst.local.u32 [local+{}], 0;\n", 4 * at))
}

/// Gives all registers values that follow from two words and the input.
fn initial(x: &str, y: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "\tand.b32 %s1, {y}, 63;\n\tmul.wide.u32 %a0, %s1, 8;\n\tadd.u64 %a0, %a0, in;");
    for (bits, count) in REGISTERS {
        for index in 0..count {
            let name = register(bits, index);
            let _ = match bits {
                1 => {
                    writeln!(text, "\tand.b32 %s1, {y}, {};\n\tsetp.ne.u32 {name}, %s1, 0;", 1 << (index + 3))
                }
                16 => writeln!(text, "\tld.global.u16 {name}, [%a0+{}];", 2 * index + 64),
                32 if index == 0 => writeln!(text, "\tmov.b32 {name}, {x};"),
                32 if index == 1 => writeln!(text, "\tmov.b32 {name}, {y};"),
                32 => writeln!(text, "\tld.global.u32 {name}, [%a0+{}];", 4 * index),
                _ => writeln!(text, "\tld.global.u64 {name}, [%a0+{}];", 8 * index + 128),
            };
        }
    }
    text
}

/// Puts all registers where the host finds them.
fn epilogue(plain: bool, free: bool) -> String {
    let mut text = String::new();
    let mut at = 128;
    for (bits, count) in REGISTERS {
        for index in 0..count {
            let name = register(bits, index);
            let _ = match bits {
                1 => writeln!(text, "\tselp.u32 %s1, 1, 0, {name};\n\tst.global.u32 [own+{at}], %s1;"),
                16 => writeln!(text, "\tst.global.u16 [own+{at}], {name};"),
                32 => writeln!(text, "\tst.global.u32 [own+{at}], {name};"),
                _ => writeln!(text, "\tst.global.u64 [own+{at}], {name};"),
            };
            at += if bits == 1 { 4 } else { bits as usize / 8 };
            if bits == 32 && index + 1 == count {
                at = at.next_multiple_of(8);
            }
        }
    }
    if free {
        return text;
    }
    let _ = writeln!(text, "\tld.shared.u32 %s1, [%s0];\n\tst.global.u32 [own+{at}], %s1;\n\tbar.sync 0;");
    if plain {
        return text;
    }
    // One thread adds what its block has.
    text += "\tsetp.eq.u32 %q0, tid, 0;\n";
    for index in 0..SHARED_OPERATIONS.len() {
        let _ = writeln!(text, "\tld.shared.u64 %a0, [words+{}];", SHARED_AT + 8 * index);
        let _ = writeln!(text, "\t@%q0 red.global.add.u64 [common+{}], %a0;", 80 + 8 * index);
    }
    let first = 8 * (SHARED_WORDS - 8 * HISTOGRAMS.len());
    let _ = write!(
        text,
        "\tmov.u32 %s1, words;
	add.u32 %s2, %s1, {};
	add.u64 %a1, common, {first};
SUMS:
	ld.shared.u64 %a0, [%s1+{HISTOGRAM_AT}];
	@%q0 red.global.add.u64 [%a1], %a0;
	add.u64 %a1, %a1, 8;
	add.u32 %s1, %s1, 8;
	setp.lt.u32 %q1, %s1, %s2;
	@%q1 bra SUMS;
",
        64 * HISTOGRAMS.len(),
    );
    text
}

/// Writes statements, and numbers what they need.
#[derive(Default)]
struct Writer {
    text: String,
    labels: usize,
    masks: usize,
    counters: usize,
}

impl Writer {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "\t{line}");
    }

    fn label(&mut self, name: &str) {
        let _ = writeln!(self.text, "{name}:");
    }

    fn fresh_label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn fresh_mask(&mut self) -> String {
        self.masks += 1;
        format!("%m{}", self.masks - 1)
    }

    fn fresh_counter(&mut self) -> String {
        self.counters += 1;
        format!("%c{}", self.counters - 1)
    }

    fn all(&mut self, statements: &[Statement], mask: Option<&str>) {
        statements.iter().for_each(|statement| self.statement(statement, mask));
    }

    fn statement(&mut self, statement: &Statement, mask: Option<&str>) {
        match statement {
            Statement::Plain(text) => self.line(&text.replace("{m}", mask.unwrap_or("0"))),
            Statement::Guarded(guard, text) => self.line(&format!("@{guard} {text}")),
            Statement::If { condition, then, otherwise } => {
                let (other, end) = (self.fresh_label(), self.fresh_label());
                let (name, negated) = match condition.strip_prefix('!') {
                    Some(name) => (name, true),
                    None => (condition.as_str(), false),
                };
                let masks = mask.map(|mask| {
                    let (inside, outside) = (self.fresh_mask(), self.fresh_mask());
                    self.line(&format!("vote.sync.ballot.b32 {inside}, {condition}, {mask};"));
                    self.line(&format!("xor.b32 {outside}, {inside}, {mask};"));
                    (inside, outside)
                });
                self.line(&format!("@{}{name} bra {other};", if negated { "" } else { "!" }));
                self.all(then, masks.as_ref().map(|(inside, _)| inside.as_str()));
                if !otherwise.is_empty() {
                    self.line(&format!("bra {end};"));
                }
                self.label(&other);
                self.all(otherwise, masks.as_ref().map(|(_, outside)| outside.as_str()));
                self.label(&end);
            }
            Statement::Loop { count, body } => {
                let (counter, top) = (self.fresh_counter(), self.fresh_label());
                self.line(&format!("and.b32 {counter}, {count}, 3;"));
                let inside = mask.map(|mask| {
                    let inside = self.fresh_mask();
                    self.line(&format!("mov.b32 {inside}, {mask};"));
                    inside
                });
                self.label(&top);
                self.all(body, inside.as_deref());
                self.line(&format!("setp.ne.u32 %q0, {counter}, 0;"));
                self.line(&format!("sub.u32 {counter}, {counter}, 1;"));
                if let Some(inside) = inside {
                    self.line(&format!("vote.sync.ballot.b32 {inside}, %q0, {inside};"));
                }
                self.line(&format!("@%q0 bra {top};"));
            }
            Statement::Repeat { count, body } => {
                let (counter, top) = (self.fresh_counter(), self.fresh_label());
                self.line(&format!("mov.b32 {counter}, {count};"));
                self.label(&top);
                self.all(body, mask);
                self.line(&format!("sub.u32 {counter}, {counter}, 1;"));
                self.line(&format!("setp.ne.u32 %q0, {counter}, 0;"));
                self.line(&format!("@%q0 bra {top};"));
            }
            Statement::Until { count, leave, before, after } => {
                let (counter, top, end) = (self.fresh_counter(), self.fresh_label(), self.fresh_label());
                self.line(&format!("and.b32 {counter}, {count}, 7;"));
                self.label(&top);
                self.all(before, None);
                self.line(&format!("@{leave} bra {end};"));
                self.all(after, None);
                self.line(&format!("setp.ne.u32 %q0, {counter}, 0;"));
                self.line(&format!("sub.u32 {counter}, {counter}, 1;"));
                self.line(&format!("@%q0 bra {top};"));
                self.label(&end);
            }
            Statement::Switch { index, bodies } => {
                let (counter, table, end) = (self.fresh_counter(), self.fresh_label(), self.fresh_label());
                let labels: Vec<String> = bodies.iter().map(|_| self.fresh_label()).collect();
                self.line(&format!("rem.u32 {counter}, {index}, {};", bodies.len().max(1)));
                self.line(&format!("{table}: .branchtargets {};", labels.join(", ")));
                self.line(&format!("brx.idx {counter}, {table};"));
                for (body, label) in bodies.iter().zip(&labels) {
                    self.label(label);
                    self.all(body, None);
                    self.line(&format!("bra {end};"));
                }
                self.label(&end);
            }
            Statement::Maze { pieces } => {
                let fuel = self.fresh_counter();
                let mut labels: Vec<String> = pieces.iter().map(|_| self.fresh_label()).collect();
                labels.push(self.fresh_label());
                self.line(&format!("mov.b32 {fuel}, 6;"));
                for ((at, (body, condition, to)), label) in pieces.iter().enumerate().zip(&labels) {
                    self.label(label);
                    self.all(body, None);
                    let to = (*to).min(labels.len() - 1);
                    if to <= at {
                        self.line(&format!("setp.ne.u32 %q0, {fuel}, 0;"));
                        self.line(&format!("and.pred %q0, %q0, {condition};"));
                        self.line(&format!("@%q0 sub.u32 {fuel}, {fuel}, 1;"));
                        self.line(&format!("@%q0 bra {};", labels[to]));
                    } else {
                        self.line(&format!("@{condition} bra {};", labels[to]));
                    }
                }
                let end = labels.last().cloned().unwrap_or_default();
                self.label(&end);
            }
            Statement::Meet { condition, sides } => {
                let (other, end) = (self.fresh_label(), self.fresh_label());
                let mask = mask.unwrap_or("0");
                self.line(&format!("@{condition} bra {other};"));
                self.line(&sides[0].replace("{m}", mask));
                self.line(&format!("bra {end};"));
                self.label(&other);
                self.line(&sides[1].replace("{m}", mask));
                self.label(&end);
            }
            Statement::Lock { word } => {
                let again = self.fresh_label();
                self.label(&again);
                self.line("atom.global.cas.b32 %s1, [common+64], 0, 1;");
                self.line("setp.ne.u32 %q0, %s1, 0;");
                self.line(&format!("@%q0 bra {again};"));
                self.line("fence.acq_rel.gpu;");
                self.line("ld.volatile.global.u32 %s1, [common+72];");
                self.line(&format!("add.u32 %s1, %s1, {word};"));
                self.line("st.volatile.global.u32 [common+72], %s1;");
                self.line("fence.acq_rel.gpu;");
                self.line("atom.global.exch.b32 %s1, [common+64], 0;");
            }
            Statement::Tile { count, word, result, looks, body } => {
                let (counter, top) = (self.fresh_counter(), self.fresh_label());
                self.line(&format!("mov.b32 {counter}, {count};"));
                self.label(&top);
                self.line(&format!("st.shared.u32 [%s0], {word};"));
                self.line("bar.sync 0;");
                looks.iter().for_each(|look| self.look(look, result));
                self.line("bar.sync 0;");
                self.all(body, mask);
                self.line(&format!("sub.u32 {counter}, {counter}, 1;"));
                self.line(&format!("setp.ne.u32 %q0, {counter}, 0;"));
                self.line(&format!("@%q0 bra {top};"));
            }
            Statement::Exchange { word, result, distance, in_memory } => {
                self.line(&format!("st.shared.u32 [%s0], {word};"));
                if *in_memory {
                    let again = self.fresh_label();
                    self.line(&format!("mbarrier.arrive.shared.b64 %a2, [words+{BARRIER_AT}];"));
                    self.label(&again);
                    self.line(&format!("mbarrier.test_wait.shared.b64 %q0, [words+{BARRIER_AT}], %a2;"));
                    self.line(&format!("@!%q0 bra {again};"));
                } else {
                    self.line("bar.sync 0;");
                }
                self.line(&format!("add.u32 %s1, tid, {distance};"));
                self.line("rem.u32 %s1, %s1, size;");
                self.line("shl.b32 %s1, %s1, 2;");
                self.line("mov.u32 %s2, words;");
                self.line("add.u32 %s1, %s1, %s2;");
                self.line(&format!("ld.shared.u32 {result}, [%s1];"));
                self.line("bar.sync 0;");
            }
        }
    }

    /// A loop that takes words of the tile into a result.
    fn look(&mut self, look: &Look, result: &str) {
        let again = self.fresh_label();
        self.line("mov.b32 %s2, 0;");
        self.label(&again);
        self.line(look.place);
        self.line("mov.u32 %s3, words;");
        if look.wide {
            self.line("shr.u32 %t0, size, 2;");
            self.line("max.u32 %t0, %t0, 1;");
            self.line("rem.u32 %s1, %s1, %t0;");
            self.line("mad.lo.u32 %s1, %s1, 16, %s3;");
            self.line("ld.shared.v4.u32 {%t0, %t1, %t2, %t3}, [%s1];");
            self.line(&format!("mad.lo.u32 {result}, %t0, %t1, {result};"));
            self.line("sub.u32 %t0, %t2, %t3;");
        } else {
            self.line("rem.u32 %s1, %s1, size;");
            self.line("mad.lo.u32 %s1, %s1, 4, %s3;");
            self.line("ld.shared.u32 %t0, [%s1];");
        }
        self.line(&format!("mad.lo.u32 {result}, {result}, 31, %t0;"));
        self.line("add.u32 %s2, %s2, 1;");
        self.line(&format!("setp.lt.u32 %q0, %s2, {};", look.times));
        self.line(&format!("@%q0 bra {again};"));
    }
}
