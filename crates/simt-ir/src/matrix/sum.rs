//! The sums of products, with the rounding that the hardware has.

use super::{Accumulator, Element, MatrixMultiply};
use crate::soft::{Exact, Format};
use crate::{Convert, FloatBinary, FloatMode, Op, Rounding, Type, eval};

/// A pure operation on operands of one type.
pub(super) fn scalar(op: Op, ty: Type, args: &[u64]) -> u64 {
    eval::eval(op, args, &[ty; 3][..args.len()], ty).expect("the operation is pure")
}

fn convert(from: Type, to: Type, bits: u64) -> u64 {
    let convert = Op::Convert(Convert::FloatToFloat(FloatMode::default()));
    eval::eval(convert, &[bits], &[from], to).expect("conversions are pure")
}

pub(super) fn to_f32(ty: Accumulator, bits: u64) -> u64 {
    match ty {
        Accumulator::F16 => convert(Type::F16, Type::F32, bits),
        _ => bits,
    }
}

/// Sum of two f32 as the result's type, rounded to nearest even.
pub(super) fn add_f32(a: u64, b: u64, ty: Accumulator) -> u64 {
    from_f32(ty, scalar(Op::Float(FloatBinary::Add, FloatMode::default()), Type::F32, &[a, b]))
}

fn from_f32(ty: Accumulator, bits: u64) -> u64 {
    match ty {
        Accumulator::F16 => convert(Type::F32, Type::F16, bits),
        _ => bits,
    }
}

/// The scalar type of an accumulator.
const fn scalar_type(ty: Accumulator) -> Type {
    match ty {
        Accumulator::F16 => Type::F16,
        _ => Type::F32,
    }
}

/// A float taken apart: `magnitude × 2^(exponent - fraction bits)`.
#[derive(Clone, Copy)]
struct Part {
    negative: bool,
    magnitude: u32,
    exponent: i32,
    class: Class,
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Finite,
    Infinite,
    Nan,
}

/// Less than the exponent of anything.
const NO_EXPONENT: i32 = i32::MIN / 4;

impl Part {
    fn new(format: Format, finite: bool, bits: u64) -> Part {
        let class = match finite {
            // e4m3 has no infinity: the largest magnitude alone is no number.
            true if format.magnitude(bits) == format.sign() - 1 => Class::Nan,
            false if format.is_nan(bits) => Class::Nan,
            false if format.is_infinite(bits) => Class::Infinite,
            _ => Class::Finite,
        };
        let exact = format.unpack(bits);
        let exponent = match exact.sig {
            0 => NO_EXPONENT,
            _ => exact.exp + format.precision as i32 - 1,
        };
        Part { negative: exact.negative, magnitude: exact.sig as u32, exponent, class }
    }
}

/// Both factors, ready to be multiplied.
pub(super) enum Sum<'a> {
    Integer { saturate: bool, depth: usize, left: Vec<i32>, right: Vec<i32> },
    Bits { and: bool, depth: usize, left: &'a [u64], right: &'a [u64] },
    Double { round: Rounding, depth: usize, left: &'a [u64], right: &'a [u64] },
    Float(FloatSum),
}

impl<'a> Sum<'a> {
    pub(super) fn new(op: &MatrixMultiply, left: &'a [u64], right: &'a [u64], rows: usize) -> Sum<'a> {
        let depth = usize::from(op.k);
        match (op.a.format(), op.b.format()) {
            (Some(a), Some(b)) => {
                let parts = |format: Format, ty: Element, bits: &[u64]| {
                    // The low bits of a tf32 are not looked at.
                    let unused = ty.bits() as u32 - format.bits;
                    let finite = ty == Element::E4M3;
                    bits.iter().map(|bits| Part::new(format, finite, bits >> unused)).collect()
                };
                let (stored, left): (_, Vec<Part>) = (left.len() / rows, parts(a, op.a, left));
                let right: Vec<Part> = parts(b, op.b, right);
                let finite = |parts: &[Part]| parts.iter().all(|part| part.class == Class::Finite);
                Sum::Float(FloatSum {
                    finite: finite(&left) && finite(&right),
                    stored,
                    depth,
                    left,
                    right,
                    fraction: a.precision + b.precision - 2,
                    in_two_steps: op.a.bits() == 8 && !op.warpgroup,
                    places: if op.a.bits() == 8 && op.warpgroup { 13 } else { 25 },
                    c: op.c,
                    d: op.d,
                })
            }
            _ => match op.a {
                Element::F64 => Sum::Double { round: op.round, depth, left, right },
                Element::B1 => Sum::Bits { and: op.and, depth, left, right },
                _ => Sum::Integer {
                    saturate: op.saturate,
                    depth,
                    left: left.iter().map(|bits| integer(op.a, *bits)).collect(),
                    right: right.iter().map(|bits| integer(op.b, *bits)).collect(),
                },
            },
        }
    }

    /// One element of the result. `columns` says at which k the stored elements of the row stand.
    pub(super) fn of(&self, row: usize, column: usize, columns: &[u16], addend: u64) -> u64 {
        let stored = columns.len();
        let pairs = |depth: usize| {
            columns
                .iter()
                .enumerate()
                .map(move |(at, k)| (row * stored + at, column * depth + usize::from(*k)))
        };
        match self {
            Sum::Integer { saturate, depth, left, right } => {
                let products: i64 =
                    pairs(*depth).map(|(l, r)| i64::from(left[l]) * i64::from(right[r])).sum();
                let sum = i64::from(addend as u32 as i32) + products;
                let sum = match saturate {
                    true => sum.clamp(i32::MIN.into(), i32::MAX.into()),
                    false => sum,
                };
                u64::from(sum as u32)
            }
            Sum::Bits { and, depth, left, right } => {
                let ones: u64 = pairs(*depth)
                    .map(|(l, r)| if *and { left[l] & right[r] } else { left[l] ^ right[r] })
                    .sum();
                u64::from((addend as u32).wrapping_add(ones as u32))
            }
            Sum::Double { round, depth, left, right } => {
                let fma = Op::Fma(FloatMode { round: *round, ..FloatMode::default() });
                let format = Format::of(Type::F64);
                pairs(*depth).fold(addend, |sum, (l, r)| {
                    // Of several NaNs the second factor's wins, then the sum's.
                    if let Some(nan) = [right[r], sum].into_iter().find(|bits| format.is_nan(*bits)) {
                        return nan | format.quiet();
                    }
                    if *round == Rounding::Nearest {
                        // What is no NaN comes from the host's arithmetic.
                        let [a, b, c] = [left[l], right[r], sum].map(f64::from_bits);
                        let value = a.mul_add(b, c);
                        if !value.is_nan() {
                            return value.to_bits();
                        }
                    }
                    scalar(fma, Type::F64, &[left[l], right[r], sum])
                })
            }
            Sum::Float(sum) => sum.of(row, column, columns, addend),
        }
    }
}

fn integer(ty: Element, bits: u64) -> i32 {
    match ty {
        Element::S8 => i32::from(bits as i8),
        Element::S4 => i32::from((bits << 4) as i8 >> 4),
        _ => bits as i32,
    }
}

/// The sums of the tensor cores.
pub(super) struct FloatSum {
    stored: usize,
    depth: usize,
    left: Vec<Part>,
    right: Vec<Part>,
    /// No factor is an infinity or a NaN.
    finite: bool,
    /// Fraction bits of a product.
    fraction: u32,
    in_two_steps: bool,
    /// Places kept below the largest exponent.
    places: u32,
    c: Accumulator,
    d: Accumulator,
}

impl FloatSum {
    fn of(&self, row: usize, column: usize, columns: &[u16], addend: u64) -> u64 {
        let left = &self.left[row * self.stored..][..self.stored];
        let right = &self.right[column * self.depth..][..self.depth];
        let product = |at: usize| (left[at], right[usize::from(columns[at])]);
        if !self.in_two_steps {
            let products = (0..self.stored).map(product);
            if self.c == self.d {
                return self.step(products, self.d, addend);
            }
            // Of mixed types the sum is one of f32.
            return from_f32(self.d, self.step(products, Accumulator::F32, to_f32(self.c, addend)));
        }
        let part = |second: bool, sum: u64| {
            let taken = (0..self.stored).filter(|at| (at % 4 >= 2) == second);
            self.step(taken.map(product), self.d, sum)
        };
        let sum = to_f32(self.d, part(true, part(false, 0)));
        add_f32(sum, to_f32(self.c, addend), self.d)
    }

    /// Adds up products and an addend of type `ty`, all at once, as a number of that type.
    fn step(
        &self,
        products: impl Iterator<Item = (Part, Part)> + Clone,
        ty: Accumulator,
        addend: u64,
    ) -> u64 {
        let format = Format::of(scalar_type(ty));
        let addend = Part::new(format, false, addend);
        let mut largest = addend.exponent;
        if !self.finite || addend.class != Class::Finite {
            let mut special = Special::default();
            special.add(addend.class, addend.negative);
            products.clone().for_each(|(a, b)| special.add_product(a, b));
            if let Some(value) = special.value(ty) {
                return value;
            }
        }
        for (a, b) in products.clone() {
            // That of a product with zero is less than any other.
            largest = largest.max(a.exponent + b.exponent);
        }
        let cut = |magnitude: u64, fraction: u32, exponent: i32, negative: bool| {
            // Room for all places of either format; no float has more than 25 places kept.
            let below = (largest - exponent) as u64 + u64::from(fraction);
            let kept = (magnitude << self.places) >> below.min(63);
            if negative { -(kept as i64) } else { kept as i64 }
        };
        let mut sum = cut(addend.magnitude.into(), format.precision - 1, addend.exponent, addend.negative);
        for (a, b) in products {
            let magnitude = u64::from(a.magnitude) * u64::from(b.magnitude);
            sum += cut(magnitude, self.fraction, a.exponent + b.exponent, a.negative != b.negative);
        }
        let bits = pack(ty, sum, largest.wrapping_sub(self.places as i32));
        match (self.places, ty) {
            // A normal number keeps as many places as its addends.
            (13, Accumulator::F32) => bits & !0x3ff,
            _ => bits,
        }
    }
}

/// What the infinities and NaNs among the addends come to.
#[derive(Default)]
struct Special {
    nan: bool,
    positive: bool,
    negative: bool,
}

impl Special {
    fn add(&mut self, class: Class, negative: bool) {
        match class {
            Class::Finite => {}
            Class::Infinite if negative => self.negative = true,
            Class::Infinite => self.positive = true,
            Class::Nan => self.nan = true,
        }
    }

    fn add_product(&mut self, a: Part, b: Part) {
        if a.class == Class::Finite && b.class == Class::Finite {
            return;
        }
        let zero = |part: Part| part.class == Class::Finite && part.magnitude == 0;
        if a.class == Class::Nan || b.class == Class::Nan || zero(a) || zero(b) {
            self.nan = true;
        } else {
            self.add(Class::Infinite, a.negative != b.negative);
        }
    }

    fn value(&self, ty: Accumulator) -> Option<u64> {
        let ty = scalar_type(ty);
        let format = Format::of(ty);
        match (self.nan || self.positive && self.negative, self.positive, self.negative) {
            (true, ..) => Some(eval::canonical_nan(ty)),
            (_, true, _) => Some(format.infinity()),
            (_, _, true) => Some(format.infinity() | format.sign()),
            _ => None,
        }
    }
}

/// A sum that is nothing, or that rounding makes nothing, has no sign.
fn unsigned_zero(format: Format, bits: u64) -> u64 {
    if format.is_zero(bits) { 0 } else { bits }
}

/// `sum × 2^lowest` as an f32, rounded towards zero, or as an f16, rounded to nearest even. Too large: infinity.
fn pack(ty: Accumulator, sum: i64, lowest: i32) -> u64 {
    let format = Format::of(scalar_type(ty));
    let magnitude = sum.unsigned_abs();
    let sign = if sum < 0 { format.sign() } else { 0 };
    let exponent = magnitude.checked_ilog2().map_or(i32::MIN, |top| top as i32 + lowest);
    let range = format.min_exp..=1 - format.min_exp;
    if ty != Accumulator::F16 && range.contains(&exponent) {
        // A normal number: the places after the first, cut off.
        let aligned = magnitude << magnitude.leading_zeros() >> (64 - format.precision);
        let field = (exponent - format.min_exp) as u64;
        return sign | ((field << (format.precision - 1)) + aligned);
    }
    let sig = u128::from(magnitude);
    let exact = Exact { negative: sum < 0, exp: lowest, sig, sticky: false };
    if ty == Accumulator::F16 {
        return unsigned_zero(format, exact.round(format, Rounding::Nearest, false));
    }
    // Rounding towards zero alone would stop at the largest number.
    if exponent > *range.end() {
        return format.infinity() | sign;
    }
    unsigned_zero(format, exact.round(format, Rounding::Zero, false))
}
