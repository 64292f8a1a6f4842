//! Products of matrices in memory: every type, shape and layout of `wmma`, with the matrices in every space.

use std::fmt::Write;

use simt_ir::Rounding;
use simt_ir::matrix::{Accumulator, Element, MatrixMultiply};

use super::{
    Flavour, Model, POISON, Part, Pool, Product, Random, accumulator_word, bits_at, element_word, head,
    vector,
};

/// Bytes of shared memory that matrices are in: one after another the factors, the addend and the result.
const WINDOW: usize = 16 << 10;
/// Bytes of each.
const MATRIX: usize = 4 << 10;
const THREADS: usize = 32;
const POISON_WORD: [u8; MATRIX] = [POISON; MATRIX];

/// A matrix in memory.
#[derive(Clone, Copy)]
struct Matrix {
    rows: usize,
    columns: usize,
    by_row: bool,
    /// Elements from one row, or column, to the next; what it must be if it is not said.
    stride: Option<usize>,
    bits: usize,
    space: &'static str,
    /// Which of the four it is.
    place: usize,
}

impl Matrix {
    /// The bit at which an element starts.
    fn bit(&self, row: usize, column: usize) -> usize {
        let (major, minor) = if self.by_row { (row, column) } else { (column, row) };
        let stride = self.stride.unwrap_or(if self.by_row { self.columns } else { self.rows });
        (major * stride + minor) * self.bits
    }

    fn element(&self, image: &[u8], row: usize, column: usize) -> u64 {
        bits_at(&image[self.place * MATRIX..], self.bit(row, column), self.bits)
    }

    fn layout(&self) -> &'static str {
        if self.by_row { "row" } else { "col" }
    }

    fn is_shared(&self) -> bool {
        self.space.starts_with(".shared")
    }

    /// The address operand, and the stride if it is said.
    fn operands(&self, name: char) -> (String, String) {
        let stride = self.stride.map_or_else(String::new, |stride| format!(", {stride}"));
        (format!("[%{name}_at]"), stride)
    }
}

/// One product.
pub(super) struct Shape {
    shape: &'static str,
    /// Of the elements as the sums have them; `k` is what one step takes.
    op: MatrixMultiply,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    d: Matrix,
    rounding: &'static str,
    rounding_at_end: bool,
}

/// What products of one type are.
struct Kind {
    element: Element,
    shapes: &'static [(&'static str, [usize; 3])],
    sums: &'static [(Accumulator, Accumulator)],
    /// Layouts of the factors are free.
    free: bool,
    clamped: bool,
    repeated: usize,
}

const LARGE: &[(&str, [usize; 3])] =
    &[("m16n16k16", [16, 16, 16]), ("m8n32k16", [8, 32, 16]), ("m32n8k16", [32, 8, 16])];
const HALVES: &[(Accumulator, Accumulator)] = &[
    (Accumulator::F32, Accumulator::F32),
    (Accumulator::F16, Accumulator::F16),
    (Accumulator::F16, Accumulator::F32),
    (Accumulator::F32, Accumulator::F16),
];
const SINGLES: &[(Accumulator, Accumulator)] = &[(Accumulator::F32, Accumulator::F32)];
const DOUBLES: &[(Accumulator, Accumulator)] = &[(Accumulator::F64, Accumulator::F64)];
const INTEGERS: &[(Accumulator, Accumulator)] = &[(Accumulator::S32, Accumulator::S32)];

const KINDS: &[Kind] = &[
    Kind { element: Element::F16, shapes: LARGE, sums: HALVES, free: true, clamped: true, repeated: 1 },
    Kind { element: Element::BF16, shapes: LARGE, sums: SINGLES, free: true, clamped: false, repeated: 2 },
    Kind { element: Element::S8, shapes: LARGE, sums: INTEGERS, free: true, clamped: true, repeated: 1 },
    Kind { element: Element::U8, shapes: LARGE, sums: INTEGERS, free: true, clamped: true, repeated: 1 },
    Kind {
        element: Element::TF32,
        shapes: &[("m16n16k8", [16, 16, 8])],
        sums: SINGLES,
        free: true,
        clamped: false,
        repeated: 4,
    },
    Kind {
        element: Element::F64,
        shapes: &[("m8n8k4", [8, 8, 4])],
        sums: DOUBLES,
        free: true,
        clamped: false,
        repeated: 10,
    },
    Kind {
        element: Element::S4,
        shapes: &[("m8n8k32", [8, 8, 32])],
        sums: INTEGERS,
        free: false,
        clamped: true,
        repeated: 8,
    },
    Kind {
        element: Element::U4,
        shapes: &[("m8n8k32", [8, 8, 32])],
        sums: INTEGERS,
        free: false,
        clamped: true,
        repeated: 8,
    },
    Kind {
        element: Element::B1,
        shapes: &[("m8n8k128", [8, 8, 128])],
        sums: INTEGERS,
        free: false,
        clamped: false,
        repeated: 16,
    },
];

/// Every type with every shape, in every layout.
pub(super) fn products() -> Vec<Product> {
    let mut products = Vec::new();
    for kind in KINDS {
        for (shape, dimensions) in kind.shapes {
            for (d, c) in kind.sums {
                let layouts = if kind.free { 4 } else { 1 };
                let clamps = if kind.clamped { 2 } else { 1 };
                for number in 0..layouts * clamps * kind.repeated {
                    let shape = Shape::new(kind, shape, *dimensions, [*c, *d], number, layouts);
                    products.push(shape.product(number));
                }
            }
        }
    }
    products
}

impl Shape {
    fn new(
        kind: &Kind,
        shape: &'static str,
        [m, n, k]: [usize; 3],
        [c, d]: [Accumulator; 2],
        number: usize,
        layouts: usize,
    ) -> Shape {
        let element = kind.element;
        let mut random = Random::of(&format!("{}{shape}{c:?}{d:?}{number}", element_word(element)));
        let saturate = kind.clamped && number / layouts % 2 == 1;
        let is_old = saturate && element == Element::F16;
        let mut matrix = |place: usize, rows: usize, columns: usize, by_row: bool, bits: usize| {
            let spaces = ["", ".global", ".shared", if is_old { ".shared" } else { ".shared::cta" }];
            // With one layout twice the number leaves spaces out, so later ones begin with another.
            let begin = if layouts == 1 { number / 12 } else { 0 };
            let space = spaces[(number + number / layouts + begin + place) % 4];
            let line = if by_row { columns } else { rows };
            // Lines start at multiples of 16 bytes.
            let step = 128 / bits;
            let stride =
                (random.below(4) > 0).then(|| line.next_multiple_of(step) + step * random.below(3) as usize);
            Matrix { rows, columns, by_row, stride, bits, space, place }
        };
        let sum_bits = |sum| match sum {
            Accumulator::F16 => 16,
            Accumulator::F64 => 64,
            _ => 32,
        };
        let layout = number % layouts;
        let (a_by_row, b_by_row) =
            if layouts == 1 { (true, false) } else { (layout & 1 == 0, layout & 2 != 0) };
        let a = matrix(0, m, k, a_by_row, element.bits());
        let b = matrix(1, k, n, b_by_row, element.bits());
        let c_matrix = matrix(2, m, n, number / layouts % 2 == number % 2, sum_bits(c));
        let d_matrix = matrix(3, m, n, (number / 2).is_multiple_of(2), sum_bits(d));
        let steps = if element == Element::TF32 { 2 } else { 1 };
        let rounding = match element {
            Element::F64 => ["", ".rn", ".rz", ".rm", ".rp"][number % 5],
            _ => "",
        };
        let op = MatrixMultiply {
            saturate,
            and: element == Element::B1 && number.is_multiple_of(3),
            round: match rounding {
                ".rz" => Rounding::Zero,
                ".rm" => Rounding::Down,
                ".rp" => Rounding::Up,
                _ => Rounding::Nearest,
            },
            ..MatrixMultiply::new(16, (k / steps) as u16, element, element, c, d)
        };
        Shape { shape, op, a, b, c: c_matrix, d: d_matrix, rounding, rounding_at_end: number / 5 % 2 == 1 }
    }

    fn modifiers(&self) -> String {
        let op = &self.op;
        let [element, c, d] = [element_word(op.a), accumulator_word(op.c), accumulator_word(op.d)];
        let bits = match (op.a, op.and) {
            (Element::B1, true) => ".and.popc",
            (Element::B1, false) => ".xor.popc",
            _ => "",
        };
        let types =
            if op.a == Element::F16 { format!(".{d}.{c}") } else { format!(".{d}.{element}.{element}.{c}") };
        let rounding = |at_end| if self.rounding_at_end == at_end { self.rounding } else { "" };
        format!(
            "{bits}.sync.aligned.{}.{}.{}{}{types}{}{}",
            self.a.layout(),
            self.b.layout(),
            self.shape,
            rounding(false),
            rounding(true),
            if op.saturate { ".satfinite" } else { "" },
        )
    }

    fn matrices(&self) -> [(char, Matrix); 4] {
        [('a', self.a), ('b', self.b), ('c', self.c), ('d', self.d)]
    }

    /// Registers of a fragment and their class.
    fn fragment(&self, name: char) -> (usize, &'static str) {
        let matrix = self.matrices()[usize::from(name as u8 - b'a')].1;
        let elements = matrix.rows * matrix.columns / THREADS;
        let class = if matrix.bits == 64 { "f64" } else { "b32" };
        let factor = matrix.place < 2;
        let count = match self.op.a {
            // These are there twice.
            Element::F16 if factor => 8,
            _ => (elements * matrix.bits).div_ceil(32) / if matrix.bits == 64 { 2 } else { 1 },
        };
        (count.max(1), class)
    }

    /// Clamped sums of floats were only in the first versions.
    fn target(&self) -> &'static str {
        match (self.op.saturate, self.op.a) {
            (true, Element::F16) => ".version 6.4\n.target sm_70\n",
            _ => ".version 9.0\n.target sm_90a\n",
        }
    }

    fn text(&self) -> String {
        let mut registers = String::new();
        for (name, _) in self.matrices() {
            let (count, class) = self.fragment(name);
            let _ = writeln!(registers, "    .reg .{class} %{name}<{count}>;\n    .reg .b64 %{name}_at;");
        }
        let mut text = head(self.target(), WINDOW, THREADS as u32, &registers);
        for (name, matrix) in self.matrices() {
            let offset = MATRIX * matrix.place;
            let _ = match (matrix.is_shared(), name) {
                (true, _) => {
                    writeln!(text, "    add.u32 %at, %window, {offset};\n    cvt.u64.u32 %{name}_at, %at;")
                }
                (false, 'd') => writeln!(text, "    mov.b64 %d_at, %result;"),
                (false, _) => writeln!(text, "    add.u64 %{name}_at, %image, {offset};"),
            };
        }
        text.push_str("    // ---- under test\n");
        let element = element_word(self.op.a);
        for (name, matrix) in &self.matrices()[..3] {
            let (address, stride) = matrix.operands(*name);
            let ty = if *name == 'c' { accumulator_word(self.op.c) } else { element };
            let _ = writeln!(
                text,
                "    wmma.load.{name}.sync.aligned.{}.{}{}.{ty} {}, {address}{stride};",
                matrix.layout(),
                self.shape,
                matrix.space,
                vector(&name.to_string(), self.fragment(*name).0),
            );
        }
        let fragments = ['d', 'a', 'b', 'c'].map(|name| vector(&name.to_string(), self.fragment(name).0));
        let _ = writeln!(text, "    wmma.mma{} {};", self.modifiers(), fragments.join(", "));
        let (address, stride) = self.d.operands('d');
        let _ = writeln!(
            text,
            "    wmma.store.d.sync.aligned.{}.{}{}.{} {address}, {}{stride};\n    // ----",
            self.d.layout(),
            self.shape,
            self.d.space,
            accumulator_word(self.op.d),
            fragments[0],
        );
        if self.d.is_shared() {
            let _ = writeln!(
                text,
                "    bar.warp.sync 0xffffffff;
    mov.u32 %window, %window;
    mad.wide.u32 %result, %t, 4, %result;
    shl.b32 %at, %t, 2;
    add.u32 %at, %at, %window;
    add.u32 %to, %at, {MATRIX};
OUT:
    ld.shared.b32 %x0, [%at+{}];
    st.global.b32 [%result], %x0;
    add.u64 %result, %result, 128;
    add.u32 %at, %at, 128;
    setp.lt.u32 %again, %at, %to;
    @%again bra OUT;",
                MATRIX * self.d.place,
            );
        }
        text.push_str("    ret;\n}\n");
        text
    }

    fn product(self, number: usize) -> Product {
        let label = format!("wmma.mma{}{number}", self.modifiers());
        let mut random = Random::of(&label);
        let flavour = random.one(&Flavour::ALL);
        let mut part = |pool: Pool, bytes: usize| Part {
            pool,
            offset: 8 * random.below(((super::pool::BYTES - bytes) / 8) as u64 + 1) as usize,
            bytes,
        };
        let factors = Pool::Factor(self.op.a, flavour);
        let places: Vec<String> = self
            .matrices()
            .iter()
            .map(|(name, matrix)| {
                let stride = matrix.stride.map_or_else(|| "-".into(), |stride| stride.to_string());
                format!("{name}{}{}{stride}", matrix.layout(), matrix.space.replace("::", "-"))
            })
            .collect();
        Product {
            name: format!("wmma.mma{}.{}.{}.{number}", self.modifiers(), places.join("."), flavour.word()),
            text: self.text(),
            threads: THREADS as u32,
            image: vec![
                part(factors, 2 * MATRIX),
                part(Pool::Sum(self.op.c, flavour), MATRIX),
                part(Pool::Factor(Element::S8, flavour), MATRIX),
            ],
            registers: Vec::new(),
            bytes: MATRIX,
            model: Model::Fragments(Box::new(self)),
        }
    }

    /// Clamped f16 are f32 of which the places that there is no room for are cut off.
    fn is_cut(&self) -> bool {
        self.op.saturate && (self.op.c, self.op.d) == (Accumulator::F32, Accumulator::F16)
    }

    /// What the result's memory holds afterwards.
    pub(super) fn expected(&self, image: &[u8]) -> Vec<u8> {
        let op = match self.is_cut() {
            true => MatrixMultiply { d: Accumulator::F32, ..self.op },
            false => self.op,
        };
        let mut result = match self.d.is_shared() {
            true => image[self.d.place * MATRIX..][..MATRIX].to_vec(),
            false => POISON_WORD.to_vec(),
        };
        let depth = usize::from(op.k);
        for row in 0..self.d.rows {
            for column in 0..self.d.columns {
                let mut sum = self.c.element(image, row, column);
                for step in 0..self.a.columns / depth {
                    let ks = step * depth..(step + 1) * depth;
                    let left: Vec<u64> = ks.clone().map(|k| self.a.element(image, row, k)).collect();
                    let right: Vec<u64> = ks.map(|k| self.b.element(image, k, column)).collect();
                    sum = op.element(&left, &right, sum);
                }
                if self.is_cut() {
                    sum = towards_zero(f32::from_bits(sum as u32));
                }
                let place = self.d.bit(row, column) / 8;
                result[place..][..self.d.bits / 8].copy_from_slice(&sum.to_le_bytes()[..self.d.bits / 8]);
            }
        }
        result
    }
}

/// The f16 next to a number on the side of zero.
fn towards_zero(value: f32) -> u64 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let half = match magnitude {
        0x7f80_0001.. => return 0x7fff,
        0x7f80_0000 => 0x7c00,
        0x4780_0000.. => 0x7bff,
        0x3880_0000.. => (magnitude - (112 << 23)) >> 13,
        _ => (value.abs() * 24f32.exp2()) as u32,
    };
    u64::from(half | bits >> 16 & 0x8000)
}
