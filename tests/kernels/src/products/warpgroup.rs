//! Products of warpgroups: every row of the table for `wgmma.mma_async` with every number of columns, and around them descriptors of all kinds.

use std::fmt::Write;

use simt_ir::matrix::{Accumulator, Element, LaneWords, MatrixMultiply};

use super::{
    Flavour, Model, Part, Pool, Product, Random, accumulator_word, bits_at, element_word, head, vector,
};

/// Bytes of shared memory that factors may be in.
const WINDOW: usize = 40 << 10;
const THREADS: usize = 128;
const ROWS: usize = 64;

/// Rows of the instruction table that differ in types alone.
struct Kind {
    /// Products in a sum, of which half are left out in sparse ones.
    k: u16,
    sums: &'static [Accumulator],
    factors: &'static [(Element, Element)],
    sparse: bool,
    /// Clamped sums, and whether the word stands at the end.
    clamped: Option<bool>,
}

const HALVES: &[Accumulator] = &[Accumulator::F32, Accumulator::F16];
const SINGLES: &[Accumulator] = &[Accumulator::F32];
const INTEGERS: &[Accumulator] = &[Accumulator::S32];
const F16: &[(Element, Element)] = &[(Element::F16, Element::F16)];
const BF16: &[(Element, Element)] = &[(Element::BF16, Element::BF16)];
const TF32: &[(Element, Element)] = &[(Element::TF32, Element::TF32)];
const F8: &[(Element, Element)] = &[
    (Element::E4M3, Element::E4M3),
    (Element::E4M3, Element::E5M2),
    (Element::E5M2, Element::E4M3),
    (Element::E5M2, Element::E5M2),
];
const I8: &[(Element, Element)] = &[
    (Element::S8, Element::S8),
    (Element::U8, Element::S8),
    (Element::S8, Element::U8),
    (Element::U8, Element::U8),
];
const B1: &[(Element, Element)] = &[(Element::B1, Element::B1)];

const KINDS: &[Kind] = &[
    kind(16, HALVES, F16, false, None),
    kind(16, SINGLES, BF16, false, None),
    kind(8, SINGLES, TF32, false, None),
    kind(32, HALVES, F8, false, None),
    kind(32, INTEGERS, I8, false, Some(false)),
    kind(32, INTEGERS, I8, false, Some(true)),
    kind(256, INTEGERS, B1, false, None),
    kind(32, HALVES, F16, true, None),
    kind(32, SINGLES, BF16, true, None),
    kind(16, SINGLES, TF32, true, None),
    kind(64, HALVES, F8, true, None),
    kind(64, INTEGERS, I8, true, Some(false)),
];

const fn kind(
    k: u16,
    sums: &'static [Accumulator],
    factors: &'static [(Element, Element)],
    sparse: bool,
    clamped: Option<bool>,
) -> Kind {
    Kind { k, sums, factors, sparse, clamped }
}

/// A factor in shared memory.
#[derive(Clone, Copy, Debug)]
struct Factor {
    /// Bytes from the window's start.
    start: usize,
    leading: usize,
    stride: usize,
    swizzle: Swizzle,
    /// Elements of a row of the first factor, or of a column of the second, do not stand side by side.
    transposed: bool,
    /// The field for patterns that start off their boundary.
    base: usize,
}

/// How the 16-byte units of memory are permuted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Swizzle {
    None,
    B32,
    B64,
    B128,
}

impl Swizzle {
    const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::B128, Swizzle::B64, Swizzle::B32];

    /// Units of 16 bytes that a line of the pattern has.
    fn units(self) -> usize {
        match self {
            Swizzle::None => 1,
            Swizzle::B32 => 2,
            Swizzle::B64 => 4,
            Swizzle::B128 => 8,
        }
    }

    /// The descriptor's field.
    fn field(self) -> u64 {
        match self {
            Swizzle::None => 0,
            Swizzle::B128 => 1,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
        }
    }

    /// The place at which the pattern has what would be here. It starts so many lines of 128 bytes behind its boundary.
    fn permuted(self, address: usize, base: usize) -> usize {
        address ^ ((address >> 7).wrapping_sub(base) & (self.units() - 1)) << 4
    }
}

impl Factor {
    /// What the descriptor holds besides the window's address.
    fn descriptor(&self) -> u64 {
        (self.start as u64 >> 4)
            | (self.leading as u64 >> 4) << 16
            | (self.stride as u64 >> 4) << 32
            | (self.base as u64) << 49
            | self.swizzle.field() << 62
    }

    /// Where a unit of 16 bytes is: the canonical layouts of the PTX ISA. `along` counts units in the direction in which elements stand
    /// side by side, `across` counts elements in the other.
    fn unit(&self, along: usize, across: usize) -> usize {
        let units = self.swizzle.units();
        let (eight, line) = (across / 8, across % 8);
        self.start
            + match (self.transposed, self.swizzle) {
                (true, Swizzle::None) => along * self.stride + line * 16 + eight * self.leading,
                (true, _) => {
                    along / units * self.leading + (along % units + line * units) * 16 + eight * self.stride
                }
                (false, Swizzle::None) => along * self.leading + line * 16 + eight * self.stride,
                (false, _) => {
                    along / units * self.leading + (along % units + line * units) * 16 + eight * self.stride
                }
            }
    }

    /// An element of the line (a row of the first factor, a column of the second) at the position along k.
    fn element(&self, image: &[u8], element: Element, line: usize, k: usize) -> u64 {
        let bits = element.bits();
        let per_unit = 128 / bits;
        let (along, across) = if self.transposed { (line, k) } else { (k, line) };
        let unit = self.swizzle.permuted(self.unit(along / per_unit, across), self.base);
        bits_at(image, unit * 8 + along % per_unit * bits, bits)
    }

    /// One that lies in the window: `along` units by `across` elements.
    fn draw(random: &mut Random, swizzle: Swizzle, transposed: bool, along: usize, across: usize) -> Factor {
        let units = swizzle.units();
        let pieces = [along.div_ceil(units), across.div_ceil(8)];
        // What the pattern repeats after.
        let pattern = 128 * units;
        let (small, large) = if transposed == (swizzle == Swizzle::None) { (1, 0) } else { (0, 1) };
        // Now and then pieces overlap, or lie apart from each other.
        let canonical = random.below(3) > 0;
        let step = if canonical { pattern } else { 16 * random.one(&[1, 2, 5, 8, 9, 16, 24, 40]) };
        let mut distances = [0; 2];
        distances[small] = step;
        distances[large] =
            if canonical { pattern * pieces[small] } else { 16 * random.one(&[3, 8, 10, 16, 32, 64]) };
        let reach = |distances: &[usize; 2]| {
            (pieces[0] - 1) * distances[0] + (pieces[1] - 1) * distances[1] + pattern
        };
        while reach(&distances) > WINDOW {
            let longest = usize::from(distances[0] * pieces[0] < distances[1] * pieces[1]);
            distances[longest] = (distances[longest] / 2).next_multiple_of(16).max(16);
        }
        let room = (WINDOW - reach(&distances)) / 1024;
        let start = 1024 * random.below(room as u64 + 1) as usize;
        let [along, across] = distances;
        let (leading, stride) =
            if transposed && swizzle == Swizzle::None { (across, along) } else { (along, across) };
        Factor { start, leading, stride, swizzle, transposed, base: 0 }
    }
}

/// One product.
pub(super) struct Shape {
    n: usize,
    op: MatrixMultiply,
    clamped_at_end: bool,
    /// In registers if there is none.
    a: Option<Factor>,
    b: Factor,
    negated: [bool; 2],
    accumulates: bool,
}

/// Every row with every number of columns, and every selection of metadata.
pub(super) fn products() -> Vec<Product> {
    let mut products = Vec::new();
    for kind in KINDS {
        for a_in_memory in [true, false] {
            let columns = (1..=32).map(|blocks| 8 * blocks);
            // Integers have fewer.
            let columns = columns.filter(|n| kind.sums != INTEGERS || n % 16 == 0 || *n == 8 || *n == 24);
            for (number, n) in columns.enumerate() {
                products.push(kind.product(number, n, a_in_memory));
            }
            // With few columns, again in every order of things.
            for number in 0..24 {
                products.push(kind.product(number * 5 + 2, [8, 16, 24][number % 3], a_in_memory));
            }
        }
    }
    products.extend(off_boundary());
    products
}

/// Descriptors of patterns that start off their boundary, with every number in the field that is there for them.
fn off_boundary() -> Vec<Product> {
    let mut products = Vec::new();
    for swizzle in [Swizzle::B128, Swizzle::B64, Swizzle::B32] {
        for base in 0..8 {
            for (number, start) in [0, 128 * base, 128 * base + 32].into_iter().enumerate() {
                let mut shape = KINDS[0].shape(&mut Random::of("off"), 0, 16, false);
                shape.accumulates = false;
                shape.b = Factor { start, leading: 16, stride: 1024, swizzle, transposed: false, base };
                let name = format!("wgmma.{}.{swizzle:?}.base{base}.start{number}", shape.modifiers());
                products.push(shape.product(name, Flavour::Near));
            }
        }
    }
    products
}

impl Kind {
    fn shape(&self, random: &mut Random, number: usize, n: usize, a_in_memory: bool) -> Shape {
        let sum = self.sums[number % self.sums.len()];
        let (a, b) = self.factors[number / self.sums.len() % self.factors.len()];
        let k = usize::from(self.k);
        let sixteen = a.bits() == 16;
        let float = self.sums != INTEGERS;
        let factor = |random: &mut Random, transposed: bool, bits: usize, lines: usize, k: usize| {
            let swizzle = random.one(&Swizzle::ALL);
            let (along, across) = if transposed { (lines, k) } else { (k, lines) };
            Factor::draw(random, swizzle, transposed, along * bits / 128, across)
        };
        let stored = if self.sparse { k / 2 } else { k };
        let left_transposed = sixteen && random.flip();
        let right_transposed = sixteen && random.flip();
        let left = factor(random, left_transposed, a.bits(), ROWS, stored);
        let right = factor(random, right_transposed, b.bits(), n, k);
        let clamped = self.clamped.is_some_and(|at_end| at_end || number % 3 == 1);
        let selectors = if k * a.bits() == 512 && a.bits() != 8 { 2 } else { 1 };
        Shape {
            n,
            op: MatrixMultiply {
                warpgroup: true,
                saturate: clamped,
                and: a == Element::B1,
                sparse: self.sparse.then(|| random.below(selectors) as u8),
                ..MatrixMultiply::new(16, self.k, a, b, sum, sum)
            },
            clamped_at_end: self.clamped == Some(true),
            a: a_in_memory.then_some(left),
            b: right,
            negated: [float && random.flip(), float && random.flip()],
            accumulates: number % 7 != 3,
        }
    }

    fn product(&self, number: usize, n: usize, a_in_memory: bool) -> Product {
        let source = if a_in_memory { "memory" } else { "registers" };
        let label = format!("{}{}{source}{number}n{n}", self.k, element_word(self.factors[0].0));
        let mut random = Random::of(&label);
        let shape = self.shape(&mut random, number, n, a_in_memory);
        let flavour = random.one(&Flavour::ALL);
        let name = format!("wgmma.{}.{source}.{}.{number}", shape.modifiers(), flavour.word());
        shape.product(name, flavour)
    }
}

impl Shape {
    fn modifiers(&self) -> String {
        let op = &self.op;
        let mut text = format!("m64n{}k{}", self.n, op.k);
        let clamped = |at_end| if op.saturate && self.clamped_at_end == at_end { ".satfinite" } else { "" };
        let [d, a, b] = [accumulator_word(op.d), element_word(op.a), element_word(op.b)];
        let _ = write!(text, "{}.{d}.{a}.{b}{}", clamped(false), clamped(true));
        if op.and {
            text.push_str(".and.popc");
        }
        text
    }

    /// Registers that hold the sums of a thread.
    fn sums(&self) -> usize {
        self.n / 8 * self.op.d_registers()
    }

    fn factor_registers(&self) -> usize {
        if self.a.is_some() { 0 } else { self.op.a_registers() }
    }

    fn text(&self) -> String {
        let mut text = head(
            ".version 9.0\n.target sm_90a\n",
            WINDOW,
            THREADS as u32,
            &format!("    .reg .b32 %d<{}>, %a<4>, %e;\n    .reg .b64 %left, %right, %start;\n", self.sums()),
        );
        let mut row = 0;
        let mut load = |text: &mut String, register: &str| {
            let _ = writeln!(text, "    ld.global.b32 %{register}, [%registers+{}];", 4 * THREADS * row);
            row += 1;
        };
        (0..self.sums()).for_each(|at| load(&mut text, &format!("d{at}")));
        (0..self.factor_registers()).for_each(|at| load(&mut text, &format!("a{at}")));
        load(&mut text, "e");
        text.push_str("    shr.u32 %at, %window, 4;\n    cvt.u64.u32 %start, %at;\n");
        let left = self.a.map_or(0, |factor| factor.descriptor());
        for (name, descriptor) in [("left", left), ("right", self.b.descriptor())] {
            let _ = writeln!(
                text,
                "    mov.b64 %{name}, {descriptor:#x};\n    add.u64 %{name}, %{name}, %start;"
            );
        }
        let _ = writeln!(text, "    setp.ne.u32 %p, {}, 0;", u32::from(self.accumulates));
        let sparse = if self.op.sparse.is_some() { ".sp" } else { "" };
        let a = match self.a {
            Some(_) => "%left".into(),
            None => vector("a", self.factor_registers()),
        };
        let mut operands = vec![vector("d", self.sums()), a, "%right".into()];
        if let Some(selector) = self.op.sparse {
            operands.extend(["%e".into(), selector.to_string()]);
        }
        operands.push("%p".into());
        if self.op.d != Accumulator::S32 {
            operands.extend(self.negated.map(|negated| if negated { "-1" } else { "1" }.into()));
        }
        if self.op.a.bits() == 16 {
            let transposed = |factor: &Factor| u8::from(factor.transposed).to_string();
            operands.extend(self.a.as_ref().map(transposed));
            operands.push(transposed(&self.b));
        }
        let _ = write!(
            text,
            "    fence.proxy.async;
    bar.sync 0;
    wgmma.fence.sync.aligned;
    // ---- under test
    wgmma.mma_async{sparse}.sync.aligned.{} {};
    // ----
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mad.wide.u32 %result, %t, 4, %result;
",
            self.modifiers(),
            operands.join(", "),
        );
        for at in 0..self.sums() {
            let _ = writeln!(text, "    st.global.b32 [%result+{}], %d{at};", 4 * THREADS * at);
        }
        text.push_str("    ret;\n}\n");
        text
    }

    fn product(self, name: String, flavour: Flavour) -> Product {
        let mut random = Random::of(&name);
        let mut part = |pool: Pool, bytes: usize| Part {
            pool,
            offset: 4 * random.below(((super::pool::BYTES - bytes) / 4) as u64 + 1) as usize,
            bytes,
        };
        let metadata = if self.op.a == Element::TF32 { Pool::Halves } else { Pool::Pairs };
        let factors = Pool::Factor(self.op.a, flavour);
        Product {
            text: self.text(),
            threads: THREADS as u32,
            image: vec![part(factors, WINDOW)],
            registers: vec![
                part(Pool::Sum(self.op.c, flavour), 4 * THREADS * self.sums()),
                part(factors, 4 * THREADS * self.factor_registers()),
                part(metadata, 4 * THREADS),
            ],
            bytes: 4 * THREADS * self.sums(),
            name,
            model: Model::Warpgroup(self),
        }
    }

    /// Word r of thread t is at `r * 128 + t`.
    pub(super) fn expected(&self, image: &[u8], registers: &[u8]) -> Vec<u8> {
        let word =
            |register: usize, thread: usize| bits_at(registers, 32 * (register * THREADS + thread), 32);
        let op = &self.op;
        let depth = usize::from(op.k);
        let stored = if op.sparse.is_some() { depth / 2 } else { depth };
        let sign = 1 << (op.a.bits() - 1);
        let flip = if self.negated[0] != self.negated[1] { sign } else { 0 };
        let columns: Vec<Vec<u64>> = (0..self.n)
            .map(|column| (0..depth).map(|k| self.b.element(image, op.b, column, k)).collect())
            .collect();
        let mut result = vec![0; 4 * THREADS * self.sums()];
        for row in 0..ROWS {
            let warp = row / 16;
            let factors: Vec<u64> = (0..stored).map(|k| flip ^ self.left(image, &word, row, k)).collect();
            let met: Vec<usize> = match op.sparse {
                None => (0..depth).collect(),
                Some(_) => {
                    let metadata: LaneWords = std::array::from_fn(|lane| {
                        word(self.sums() + self.factor_registers(), 32 * warp + lane)
                    });
                    op.columns(row % 16, &metadata).map(usize::from).collect()
                }
            };
            for (column, elements) in columns.iter().enumerate() {
                let met: Vec<u64> = met.iter().map(|k| elements[*k]).collect();
                let thread = 32 * warp + row % 8 * 4 + column % 8 / 2;
                // Halves of a register stand side by side.
                let (register, half) = match op.d {
                    Accumulator::F16 => (column / 8 * 2 + row / 8 % 2, column % 2),
                    _ => (column / 8 * 4 + row / 8 % 2 * 2 + column % 2, 0),
                };
                let bits = if op.d == Accumulator::F16 { 16 } else { 32 };
                let place = 4 * (register * THREADS + thread) + 2 * half;
                let addend = if self.accumulates { bits_at(registers, 8 * place, bits) } else { 0 };
                let sum = op.element(&factors, &met, addend);
                result[place..][..bits / 8].copy_from_slice(&sum.to_le_bytes()[..bits / 8]);
            }
        }
        result
    }

    /// An element of the first factor that is there.
    fn left(&self, image: &[u8], word: &impl Fn(usize, usize) -> u64, row: usize, k: usize) -> u64 {
        if let Some(factor) = &self.a {
            return factor.element(image, self.op.a, row, k);
        }
        let bits = self.op.a.bits();
        let per_register = 32 / bits;
        let (group, place) = (k / per_register, k % per_register);
        let thread = row / 16 * 32 + row % 8 * 4 + group % 4;
        let register = group / 4 * 2 + row / 8 % 2;
        word(self.sums() + register, thread) >> (bits * place) & u64::MAX >> (64 - bits)
    }
}
