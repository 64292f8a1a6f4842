//! The multifunction unit (MUFU) of NVIDIA's processors, bit for bit: what their `.approx` instructions are made of.
//!
//! The unit's results were recorded on an H200 (`sm_90`), and its structure fitted to them: each function is a table of segments,
//! chosen by the leading bits of the operand's mantissa. A segment gives three integers, and with `x`, the 17 bits of the
//! mantissa that follow, the result is
//!
//! > `c0 + c1 * x + 2 * c2 * square(x)`, in units of 2^-40,
//!
//! cut off to 24 significant bits. Nothing else is rounded; only the [`square`] leaves out the low columns of its
//! partial products. That reproduces every result that was recorded, and all 2^32 operands of each function on an H100. Before
//! the table come small steps: the sine takes its operand in turns and folds it to a quarter, the power splits it into whole and
//! fraction; negative numbers there are complements, one unit in the last place from their value.
//!
//! As in [`crate::approx`], the meaning is written once over [`Lanes`]: the interpreter runs it on numbers, the code generator
//! emits it. PTX's instructions are short sequences around these operations, which `ptx` writes as NVIDIA's compiler does.

use crate::approx::{narrow, widen};
use crate::eval::canonical_nan;
use crate::soft::Format;
use crate::{Mufu, Type};

/// The function's value. f16 and bf16 are computed as f32 and cut off; of f64, the high half is what counts.
pub fn eval(func: Mufu, ty: Type, a: u64) -> u64 {
    let single = |a: u32| f32(&Host, func, a);
    match ty {
        Type::F64 => u64::from(high_half_of_f64(&Host, func, (a >> 32) as u32)) << 32,
        Type::F32 => single(a as u32).into(),
        _ => {
            let format = Format::of(ty);
            let result = narrow(format, f32::from_bits(single(widen(format, a).to_bits())));
            if format.is_nan(result) { canonical_nan(ty) } else { result }
        }
    }
}

/// Operations on 32-bit integers (`I`), 64-bit integers (`L`) and conditions (`B`). Both wrap.
pub trait Lanes {
    /// A 32-bit integer.
    type I: Copy;
    /// A 64-bit integer.
    type L: Copy;
    /// A condition.
    type B: Copy;

    /// A constant.
    fn int(&self, value: u32) -> Self::I;
    /// Wrapping sum.
    fn add(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Wrapping difference.
    fn sub(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise and.
    fn and(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise or.
    fn or(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise exclusive or.
    fn xor(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Left shift by an amount below 32.
    fn shl(&self, a: Self::I, by: Self::I) -> Self::I;
    /// Right shift, zeros on top, by an amount below 32.
    fn shr(&self, a: Self::I, by: Self::I) -> Self::I;
    /// Right shift, copies of the sign on top, by an amount below 32.
    fn sar(&self, a: Self::I, by: Self::I) -> Self::I;
    /// `a < b` of signed integers.
    fn less(&self, a: Self::I, b: Self::I) -> Self::B;
    /// `a == b`.
    fn equal(&self, a: Self::I, b: Self::I) -> Self::B;
    /// `a` where the condition holds, else `b`.
    fn select(&self, condition: Self::B, a: Self::I, b: Self::I) -> Self::I;
    /// The row `index` of a table, which has it: c0, c1 and c2.
    fn row(&self, table: &'static Table, index: Self::I) -> (Self::L, Self::I, Self::I);
    /// Sign bits on top.
    fn long(&self, a: Self::I) -> Self::L;
    /// Wrapping sum.
    fn add_long(&self, a: Self::L, b: Self::L) -> Self::L;
    /// Wrapping product.
    fn mul_long(&self, a: Self::L, b: Self::L) -> Self::L;
    /// Bitwise exclusive or.
    fn xor_long(&self, a: Self::L, b: Self::L) -> Self::L;
    /// Left shift by a constant below 64.
    fn shl_long(&self, a: Self::L, by: u32) -> Self::L;
    /// The low half after a right shift by at most 32.
    fn window(&self, a: Self::L, from: u32) -> Self::I;
    /// The bits of an integer in [0, 2^52) as f64.
    fn double(&self, a: Self::L) -> Self::L;
}

/// Segments of a function: coefficients of each.
pub struct Table {
    name: &'static str,
    /// `c0` as given is in units of 2^shift.
    shift: u32,
    /// Added to every `c0`.
    bias: i64,
    c0: &'static [u32],
    c1: &'static [i32],
    c2: &'static [i32],
}

impl Table {
    /// Tells it from the others.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The rows: c0, c1 and c2.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (i64, i32, i32)> {
        (0..self.c0.len()).map(|index| self.row(index))
    }

    fn row(&self, index: usize) -> (i64, i32, i32) {
        ((i64::from(self.c0[index]) << self.shift) + self.bias, self.c1[index], self.c2[index])
    }
}

const NAN: u32 = 0x7fff_ffff;
const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const ONE: u32 = 0x3f80_0000;

/// The function of an f32, as bits.
pub fn f32<N: Lanes>(n: &N, func: Mufu, x: N::I) -> N::I {
    let bits = Bits { n, mantissa: 23 };
    match func {
        Mufu::Rcp => bits.rcp(x),
        Mufu::Rsqrt => bits.rsqrt(x),
        Mufu::Sqrt => bits.sqrt(x),
        Mufu::Lg2 => bits.lg2(x),
        Mufu::Ex2 => bits.ex2(x),
        Mufu::Sin => bits.sin(x, 0),
        Mufu::Cos => bits.sin(x, 1),
        Mufu::Tanh => bits.tanh(x),
    }
}

/// The high half of the function of an f64, from its high half; the low half of the result is zero.
pub fn high_half_of_f64<N: Lanes>(n: &N, func: Mufu, x: N::I) -> N::I {
    let bits = Bits { n, mantissa: 20 };
    match func {
        Mufu::Rcp => bits.rcp(x),
        Mufu::Rsqrt => bits.rsqrt(x),
        // The others are of f32 and narrower only.
        _ => n.int(NAN),
    }
}

/// The exponent of a power of two, whose multiples the results are.
const UNIT: i32 = -40;

/// Floats as bits, with a mantissa of so many of them: those of f32, and the high halves of those of f64.
struct Bits<'n, N> {
    n: &'n N,
    mantissa: u32,
}

/// A float taken apart.
struct Parts<I> {
    sign: I,
    magnitude: I,
    /// Biased.
    exponent: I,
    /// Of 23 bits.
    mantissa: I,
}

impl<N: Lanes> Bits<'_, N> {
    fn bias(&self) -> u32 {
        (1 << (30 - self.mantissa)) - 1
    }

    fn infinity(&self) -> u32 {
        0x7fff_ffff >> self.mantissa << self.mantissa
    }

    fn parts(&self, x: N::I) -> Parts<N::I> {
        let n = self.n;
        let sign = n.and(x, n.int(SIGN));
        let magnitude = n.xor(x, sign);
        let mantissa = n.and(magnitude, n.int((1 << self.mantissa) - 1));
        Parts {
            sign,
            magnitude,
            exponent: self.shr(magnitude, self.mantissa),
            mantissa: self.shl(mantissa, 23 - self.mantissa),
        }
    }

    fn shl(&self, x: N::I, by: u32) -> N::I {
        self.n.shl(x, self.n.int(by))
    }

    fn shr(&self, x: N::I, by: u32) -> N::I {
        self.n.shr(x, self.n.int(by))
    }

    fn min(&self, x: N::I, limit: u32) -> N::I {
        let limit = self.n.int(limit);
        self.n.select(self.n.less(x, limit), x, limit)
    }

    fn max(&self, x: N::I, limit: u32) -> N::I {
        let limit = self.n.int(limit);
        self.n.select(self.n.less(x, limit), limit, x)
    }

    /// `value`, or what the operand's kind says: zero and subnormal, infinite, not a number.
    fn special(&self, of: &Parts<N::I>, value: N::I, zero: N::I, infinite: N::I) -> N::I {
        let n = self.n;
        let infinity = n.int(self.infinity());
        let value = n.select(n.less(of.magnitude, n.int(1 << self.mantissa)), zero, value);
        let value = n.select(n.less(of.magnitude, infinity), value, infinite);
        n.select(n.less(infinity, of.magnitude), n.int(NAN), value)
    }

    /// The sum of a segment's products: positive, below 2^42.
    fn interpolate(&self, table: &'static Table, segment: N::I, x: N::I) -> N::L {
        let n = self.n;
        let (c0, c1, c2) = n.row(table, segment);
        let linear = n.mul_long(n.long(c1), n.long(x));
        let quadratic = n.mul_long(n.long(c2), n.long(square(n, x)));
        n.add_long(c0, n.add_long(linear, n.shl_long(quadratic, 1)))
    }

    /// By the 6 leading bits of the mantissa, in the half of the table that `odd` tells.
    fn by_six_bits(&self, table: &'static Table, mantissa: N::I, odd: N::I) -> N::L {
        let n = self.n;
        let segment = n.add(self.shr(mantissa, 17), self.shl(odd, 6));
        self.interpolate(table, segment, n.and(mantissa, n.int(0x1_ffff)))
    }

    /// The positive `sum * 2^(UNIT + exponent)`, cut off; zero below the normal range. Results above the range are the caller's.
    fn float(&self, sum: N::L, exponent: N::I) -> N::I {
        let n = self.n;
        // The exponent of f64 loses bits at the top, which come out right again, as for any sum that wraps.
        let bits = n.window(n.double(sum), 52 - self.mantissa);
        let bias = (self.bias() as i32 - 1023 + UNIT) as u32;
        let bits = n.add(bits, self.shl(n.add(exponent, n.int(bias)), self.mantissa));
        n.select(n.less(bits, n.int(1 << self.mantissa)), n.int(0), bits)
    }

    fn rcp(&self, x: N::I) -> N::I {
        let n = self.n;
        let of = self.parts(x);
        let rest = self.shl(n.and(of.mantissa, n.int(0xffff)), 1);
        let sum = self.interpolate(&RCP, self.shr(of.mantissa, 16), rest);
        let value = self.float(sum, n.sub(n.int(self.bias()), of.exponent));
        let infinite = n.or(of.sign, n.int(self.infinity()));
        self.special(&of, n.or(of.sign, value), infinite, of.sign)
    }

    /// Half the exponent, and whether it is odd.
    fn halved(&self, exponent: N::I) -> (N::I, N::I) {
        let n = self.n;
        let above = n.add(exponent, n.int(1));
        (n.sub(self.shr(above, 1), n.int(self.bias().div_ceil(2))), n.and(above, n.int(1)))
    }

    fn rsqrt(&self, x: N::I) -> N::I {
        let n = self.n;
        let of = self.parts(x);
        let (half, odd) = self.halved(of.exponent);
        let sum = self.by_six_bits(&RSQRT, of.mantissa, odd);
        let down = n.sub(n.int(0), half);
        // Powers of four are exact; their segment gives the number below.
        let power = n.equal(n.or(of.mantissa, odd), n.int(0));
        let exact = self.shl(n.add(down, n.int(self.bias())), self.mantissa);
        let value = n.select(power, exact, self.float(sum, down));
        let infinite = n.or(of.sign, n.int(self.infinity()));
        let value = n.select(n.equal(of.sign, n.int(0)), value, n.int(NAN));
        let infinity = n.select(n.equal(of.sign, n.int(0)), n.int(0), n.int(NAN));
        self.special(&of, value, infinite, infinity)
    }

    fn sqrt(&self, x: N::I) -> N::I {
        let n = self.n;
        let of = self.parts(x);
        let (half, odd) = self.halved(of.exponent);
        let value = self.float(self.by_six_bits(&SQRT, of.mantissa, odd), half);
        let positive = n.equal(of.sign, n.int(0));
        let value = n.select(positive, value, n.int(NAN));
        self.special(&of, value, of.sign, n.select(positive, of.magnitude, n.int(NAN)))
    }

    fn lg2(&self, x: N::I) -> N::I {
        let n = self.n;
        let of = self.parts(x);
        // The table has one more than the logarithm of the mantissa, halved; so is the exponent.
        let whole = n.sub(of.exponent, n.int(self.bias() + 1));
        let whole = n.shl_long(n.long(whole), 39);
        let sum = n.add_long(self.by_six_bits(&LG2, of.mantissa, n.int(0)), whole);
        let negative = n.sar(n.window(sum, 32), n.int(31));
        let magnitude = n.xor_long(sum, n.long(negative));
        // Three bits at the end do not count.
        let dropped = n.and(n.window(magnitude, 0), n.int(7));
        let magnitude = n.xor_long(magnitude, n.long(dropped));
        let value = n.or(self.float(magnitude, n.int(1)), n.and(negative, n.int(SIGN)));
        let value = n.select(n.equal(x, n.int(ONE)), n.int(0), value);
        let positive = n.equal(of.sign, n.int(0));
        let value = n.select(positive, value, n.int(NAN));
        let infinite = n.select(positive, of.magnitude, n.int(NAN));
        self.special(&of, value, n.int(SIGN | INFINITY), infinite)
    }

    fn ex2(&self, x: N::I) -> N::I {
        let n = self.n;
        let of = self.parts(x);
        // |x| in units of 2^-23, cut off. What is too large stays so with the exponent of 128.
        let significand = self.shl(n.or(of.mantissa, n.int(1 << 23)), 7);
        let by = n.sub(n.int(self.bias() + 7), self.min(of.exponent, self.bias() + 7));
        let magnitude = n.shr(significand, self.min(by, 31));
        let fraction = n.int(0x7f_ffff);
        let negative = n.sub(n.int(0), self.shr(of.sign, 31));
        let complement = n.xor(magnitude, negative);
        // Whole numbers are exact.
        let is_whole = n.equal(n.and(magnitude, fraction), n.int(0));
        let fixed = n.select(is_whole, n.sub(complement, negative), complement);
        let whole = n.sar(fixed, n.int(23));
        let value =
            self.float(self.by_six_bits(&EX2, n.and(fixed, fraction), n.int(0)), n.add(whole, n.int(1)));
        let value = n.select(n.less(n.int(127), whole), n.int(INFINITY), value);
        n.select(n.less(n.int(INFINITY), of.magnitude), n.int(NAN), value)
    }

    /// The sine of `x` turns and `quarters` more.
    fn sin(&self, x: N::I, quarters: u32) -> N::I {
        let n = self.n;
        let of = self.parts(x);
        // Turns in units of 2^-25, cut off; whole turns fall out at the top.
        let significand = n.or(of.mantissa, n.int(1 << 23));
        let up = n.sub(of.exponent, n.int(self.bias() - 2));
        let down = n.sub(n.int(0), up);
        let left = self.min(self.max(up, 0), 31);
        let right = self.min(self.max(down, 0), 31);
        let turns = n.add(n.shr(n.shl(significand, left), right), n.int(quarters << 23));
        let odd = n.sub(n.int(0), n.and(self.shr(turns, 23), n.int(1)));
        let part = n.and(n.xor(turns, odd), n.int(0x7f_ffff));
        let value = self.float(self.by_six_bits(&SIN, part, n.int(0)), n.int(0));
        let value = n.select(n.equal(part, n.int(0)), n.int(0), value);
        let sign = self.shl(self.shr(turns, 24), 31);
        let sign = if quarters == 0 { n.xor(sign, of.sign) } else { sign };
        let infinite = n.less(n.int(INFINITY - 1), of.magnitude);
        n.select(infinite, n.int(NAN), n.or(value, sign))
    }

    fn tanh(&self, x: N::I) -> N::I {
        let n = self.n;
        let of = self.parts(x);
        // Below these exponents the operand is the result, above them it is 1.
        let (first, last) = (119, 129);
        let of_exponent = n.sub(self.min(self.max(of.exponent, first), last), n.int(first));
        let (_, base, bits) = n.row(&TANH_SEGMENTS, of_exponent);
        let segment = n.add(base, n.shr(of.mantissa, n.sub(n.int(23), bits)));
        let rest = n.and(n.shl(of.mantissa, bits), n.int(0x7f_ffff));
        let value = n.or(of.sign, self.float(self.interpolate(&TANH, segment, self.shr(rest, 6)), n.int(0)));
        let value = n.select(n.less(of.exponent, n.int(first)), x, value);
        let value = n.select(n.less(n.int(last), of.exponent), n.or(of.sign, n.int(ONE)), value);
        n.select(n.less(n.int(INFINITY), of.magnitude), n.int(NAN), value)
    }
}

/// `x * x / 2^19` of 17 bits: the sum of the products of two bits of `x`, each different pair taken once and doubled, without those
/// below 2^19.
fn square<N: Lanes>(n: &N, x: N::I) -> N::I {
    let mut sum = n.int(0);
    for bit in 10..17 {
        let below = n.shr(n.and(x, n.int((1 << bit) - 1)), n.int(18 - bit));
        let products = n.add(below, n.int(1 << (2 * bit - 19)));
        let is_set = n.sar(n.shl(x, n.int(31 - bit)), n.int(31));
        sum = n.add(sum, n.and(products, is_set));
    }
    sum
}

/// The operations on the host's own numbers.
struct Host;

impl Lanes for Host {
    type I = u32;
    type L = u64;
    type B = bool;

    fn int(&self, value: u32) -> u32 {
        value
    }
    fn add(&self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
    fn sub(&self, a: u32, b: u32) -> u32 {
        a.wrapping_sub(b)
    }
    fn and(&self, a: u32, b: u32) -> u32 {
        a & b
    }
    fn or(&self, a: u32, b: u32) -> u32 {
        a | b
    }
    fn xor(&self, a: u32, b: u32) -> u32 {
        a ^ b
    }
    fn shl(&self, a: u32, by: u32) -> u32 {
        a << by
    }
    fn shr(&self, a: u32, by: u32) -> u32 {
        a >> by
    }
    fn sar(&self, a: u32, by: u32) -> u32 {
        ((a as i32) >> by) as u32
    }
    fn less(&self, a: u32, b: u32) -> bool {
        (a as i32) < b as i32
    }
    fn equal(&self, a: u32, b: u32) -> bool {
        a == b
    }
    fn select(&self, condition: bool, a: u32, b: u32) -> u32 {
        if condition { a } else { b }
    }
    fn row(&self, table: &'static Table, index: u32) -> (u64, u32, u32) {
        let (c0, c1, c2) = table.row(index as usize);
        (c0 as u64, c1 as u32, c2 as u32)
    }
    fn long(&self, a: u32) -> u64 {
        a as i32 as u64
    }
    fn add_long(&self, a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }
    fn mul_long(&self, a: u64, b: u64) -> u64 {
        a.wrapping_mul(b)
    }
    fn xor_long(&self, a: u64, b: u64) -> u64 {
        a ^ b
    }
    fn shl_long(&self, a: u64, by: u32) -> u64 {
        a << by
    }
    fn window(&self, a: u64, from: u32) -> u32 {
        (a >> from) as u32
    }
    fn double(&self, a: u64) -> u64 {
        (a as f64).to_bits()
    }
}

/// Of each exponent from 2^-8 to 2^2: where its segments begin in [`TANH`], and how many bits of the mantissa choose one.
static TANH_SEGMENTS: Table = Table {
    name: "tanh_segments",
    shift: 0,
    bias: 0,
    c0: &[0; 11],
    c1: &[0, 1, 2, 3, 5, 7, 11, 15, 19, 27, 43],
    c2: &[0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3],
};

/// 1/m, 128 segments of m in [1, 2).
static RCP: Table = Table {
    name: "rcp",
    shift: 14,
    bias: 4046,
    c0: &[
        67108864, 66588642, 66076422, 65572021, 65075262, 64585976, 64103992, 63629146, 63161284, 62700254,
        62245905, 61798091, 61356677, 60921524, 60492499, 60069474, 59652325, 59240930, 58835170, 58434930,
        58040099, 57650569, 57266231, 56886986, 56512729, 56143366, 55778798, 55418934, 55063686, 54712961,
        54366677, 54024747, 53687093, 53353633, 53024288, 52698987, 52377651, 52060212, 51746596, 51436737,
        51130565, 50828017, 50529029, 50233538, 49941482, 49652803, 49367442, 49085342, 48806449, 48530705,
        48258060, 47988464, 47721861, 47458204, 47197444, 46939534, 46684429, 46432082, 46182446, 45935480,
        45691143, 45449392, 45210185, 44973481, 44739244, 44507436, 44278016, 44050948, 43826199, 43603730,
        43383510, 43165503, 42949675, 42735995, 42524430, 42314950, 42107525, 41902122, 41698714, 41497270,
        41297764, 41100168, 40904453, 40710593, 40518561, 40328333, 40139883, 39953186, 39768218, 39584955,
        39403371, 39223448, 39045159, 38868484, 38693401, 38519888, 38347924, 38177489, 38008563, 37841123,
        37675154, 37510633, 37347543, 37185866, 37025582, 36866673, 36709124, 36552915, 36398030, 36244452,
        36092164, 35941151, 35791396, 35642884, 35495599, 35349528, 35204652, 35060959, 34918436, 34777064,
        34636835, 34497732, 34359741, 34222849, 34087044, 33952313, 33818641, 33686019,
    ],
    c1: &[
        -65534, -64522, -63533, -62567, -61622, -60699, -59797, -58914, -58051, -57207, -56381, -55572,
        -54781, -54007, -53249, -52507, -51780, -51068, -50371, -49688, -49019, -48363, -47721, -47091,
        -46473, -45868, -45274, -44692, -44121, -43560, -43011, -42471, -41942, -41423, -40913, -40412,
        -39921, -39439, -38965, -38500, -38043, -37594, -37153, -36720, -36294, -35876, -35464, -35060,
        -34663, -34272, -33888, -33511, -33140, -32774, -32415, -32062, -31714, -31373, -31036, -30705,
        -30379, -30059, -29743, -29432, -29127, -28826, -28529, -28237, -27950, -27667, -27388, -27114,
        -26843, -26577, -26314, -26056, -25801, -25550, -25302, -25058, -24818, -24581, -24348, -24117,
        -23890, -23667, -23446, -23228, -23014, -22802, -22593, -22388, -22184, -21984, -21787, -21592,
        -21399, -21209, -21022, -20837, -20655, -20475, -20297, -20122, -19949, -19778, -19609, -19443,
        -19278, -19116, -18956, -18797, -18641, -18487, -18334, -18184, -18035, -17888, -17743, -17600,
        -17458, -17318, -17180, -17043, -16908, -16775, -16643, -16513,
    ],
    c2: &[
        1013, 989, 966, 945, 923, 902, 883, 863, 845, 827, 809, 791, 774, 758, 742, 727, 711, 696, 682, 669,
        656, 642, 631, 618, 605, 594, 582, 572, 561, 549, 540, 529, 519, 510, 501, 490, 482, 474, 465, 457,
        449, 441, 433, 426, 418, 412, 403, 397, 390, 383, 377, 371, 366, 358, 353, 348, 341, 337, 331, 326,
        320, 316, 310, 305, 302, 297, 291, 287, 283, 279, 274, 271, 266, 263, 258, 256, 251, 248, 243, 240,
        237, 233, 231, 226, 223, 222, 218, 214, 212, 208, 205, 204, 199, 197, 196, 193, 189, 186, 184, 182,
        180, 178, 175, 173, 171, 169, 166, 165, 161, 160, 159, 155, 154, 153, 150, 149, 147, 145, 143, 143,
        140, 138, 137, 135, 133, 132, 131, 130,
    ],
};

/// 1/sqrt(m), 64 segments of [1, 2) and 64 of [2, 4).
static RSQRT: Table = Table {
    name: "rsqrt",
    shift: 14,
    bias: -1,
    c0: &[
        67108863, 66590639, 66084241, 65589221, 65105162, 64631663, 64168347, 63714855, 63270845, 62835988,
        62409974, 61992513, 61583316, 61182120, 60788661, 60402698, 60023992, 59652325, 59287474, 58929239,
        58577420, 58231827, 57892279, 57558603, 57230631, 56908205, 56591165, 56279366, 55972664, 55670922,
        55374006, 55081794, 54794160, 54510985, 54232152, 53957558, 53687093, 53420654, 53158144, 52899463,
        52644526, 52393236, 52145513, 51901271, 51660429, 51422908, 51188636, 50957534, 50729536, 50504569,
        50282569, 50063472, 49847215, 49633735, 49422975, 49214876, 49009386, 48806449, 48606012, 48408023,
        48212434, 48019194, 47828264, 47639591, 47453131, 47086692, 46728616, 46378583, 46036300, 45701486,
        45373875, 45053206, 44739244, 44431753, 44130519, 43835327, 43545983, 43262292, 42984073, 42711159,
        42443373, 42180563, 41922578, 41669267, 41420491, 41176121, 40936025, 40700081, 40468169, 40240176,
        40015995, 39795522, 39578649, 39365288, 39155337, 38948713, 38745321, 38545086, 38347925, 38153756,
        37962508, 37774107, 37588484, 37405572, 37225302, 37047615, 36872447, 36699743, 36529440, 36361488,
        36195833, 36032417, 35871197, 35712123, 35555148, 35400223, 35247304, 35096353, 34947320, 34800174,
        34654869, 34511370, 34369641, 34229642, 34091340, 33954699, 33819689, 33686281,
    ],
    c1: &[
        -65531, -64024, -62575, -61179, -59835, -58539, -57289, -56083, -54919, -53794, -52708, -51657,
        -50641, -49658, -48706, -47784, -46891, -46026, -45186, -44372, -43582, -42815, -42071, -41348,
        -40645, -39962, -39298, -38652, -38023, -37412, -36816, -36237, -35672, -35122, -34586, -34063,
        -33553, -33056, -32571, -32098, -31636, -31185, -30745, -30315, -29895, -29485, -29084, -28691,
        -28308, -27933, -27566, -27208, -26857, -26513, -26177, -25848, -25525, -25209, -24900, -24597,
        -24300, -24009, -23724, -23444, -46337, -45272, -44247, -43260, -42310, -41393, -40510, -39657,
        -38834, -38038, -37270, -36527, -35809, -35113, -34440, -33789, -33157, -32545, -31952, -31376,
        -30817, -30275, -29749, -29237, -28740, -28257, -27788, -27331, -26887, -26454, -26033, -25623,
        -25224, -24835, -24456, -24086, -23726, -23374, -23031, -22697, -22370, -22051, -21740, -21436,
        -21139, -20849, -20565, -20288, -20017, -19752, -19492, -19239, -18991, -18748, -18510, -18277,
        -18049, -17826, -17607, -17393, -17183, -16977, -16775, -16578,
    ],
    c2: &[
        1508, 1450, 1396, 1344, 1296, 1250, 1206, 1164, 1124, 1086, 1052, 1016, 984, 952, 922, 892, 866, 840,
        814, 790, 766, 744, 724, 704, 684, 664, 646, 628, 610, 596, 580, 566, 550, 536, 524, 510, 496, 484,
        472, 462, 450, 440, 430, 420, 410, 402, 392, 382, 374, 366, 358, 352, 344, 336, 330, 324, 316, 308,
        302, 296, 290, 286, 280, 274, 1066, 1026, 986, 950, 918, 884, 854, 824, 796, 768, 742, 718, 696, 672,
        652, 632, 612, 594, 576, 558, 542, 526, 512, 496, 482, 470, 458, 444, 434, 420, 410, 398, 390, 380,
        370, 360, 352, 342, 334, 326, 318, 310, 304, 296, 290, 284, 276, 272, 266, 260, 252, 248, 244, 238,
        234, 228, 224, 220, 214, 210, 206, 202, 198, 194,
    ],
};

/// sqrt(m), 64 segments of [1, 2) and 64 of [2, 4).
static SQRT: Table = Table {
    name: "sqrt",
    shift: 15,
    bias: -1,
    c0: &[
        33554433, 33815561, 34074688, 34331859, 34587118, 34840507, 35092066, 35341835, 35589851, 35836150,
        36080768, 36323739, 36565096, 36804869, 37043091, 37279790, 37514996, 37748737, 37981039, 38211929,
        38441432, 38669573, 38896376, 39121864, 39346060, 39568986, 39790663, 40011111, 40230352, 40448404,
        40665287, 40881020, 41095619, 41309105, 41521492, 41732799, 41943041, 42152235, 42360395, 42567537,
        42773677, 42978828, 43183004, 43386219, 43588487, 43789820, 43990232, 44189736, 44388342, 44586064,
        44782913, 44978900, 45174038, 45368335, 45561805, 45754456, 45946299, 46137345, 46327603, 46517083,
        46705794, 46893745, 47080947, 47267407, 47453134, 47822425, 48188885, 48552580, 48913571, 49271917,
        49627675, 49980901, 50331649, 50679969, 51025911, 51369524, 51710854, 52049945, 52386841, 52721585,
        53054217, 53384775, 53713300, 54039828, 54364395, 54687034, 55007783, 55326671, 55643732, 55958996,
        56272494, 56584255, 56894308, 57202681, 57509400, 57814492, 58117982, 58419896, 58720257, 59019090,
        59316417, 59612261, 59906645, 60199588, 60491113, 60781241, 61069989, 61357379, 61643429, 61928158,
        62211583, 62493723, 62774595, 63054216, 63332602, 63609771, 63885736, 64160515, 64434122, 64706572,
        64977879, 65248059, 65517124, 65785089, 66051967, 66317770, 66582513, 66846207,
    ],
    c1: &[
        65535, 65029, 64534, 64051, 63578, 63116, 62664, 62221, 61787, 61363, 60947, 60539, 60139, 59748,
        59363, 58987, 58617, 58254, 57898, 57548, 57204, 56867, 56535, 56209, 55889, 55574, 55264, 54960,
        54660, 54366, 54076, 53790, 53510, 53233, 52961, 52693, 52429, 52168, 51912, 51660, 51410, 51165,
        50923, 50685, 50449, 50218, 49989, 49763, 49541, 49321, 49104, 48890, 48678, 48471, 48264, 48061,
        47861, 47662, 47467, 47273, 47082, 46894, 46707, 46523, 92680, 91964, 91266, 90582, 89914, 89260,
        88620, 87994, 87380, 86780, 86192, 85616, 85050, 84496, 83952, 83420, 82896, 82384, 81880, 81384,
        80898, 80422, 79952, 79492, 79038, 78594, 78156, 77726, 77302, 76884, 76474, 76072, 75674, 75282,
        74898, 74518, 74146, 73778, 73414, 73058, 72706, 72358, 72016, 71678, 71346, 71018, 70694, 70376,
        70060, 69750, 69444, 69140, 68842, 68548, 68256, 67968, 67686, 67404, 67128, 66854, 66584, 66318,
        66054, 65794,
    ],
    c2: &[
        -506, -494, -482, -472, -461, -452, -443, -434, -424, -417, -408, -399, -391, -385, -376, -370, -363,
        -357, -351, -344, -337, -332, -325, -319, -315, -309, -304, -299, -294, -290, -285, -280, -277, -272,
        -268, -265, -261, -255, -252, -249, -244, -242, -238, -236, -231, -229, -226, -222, -221, -217, -214,
        -211, -207, -207, -202, -200, -199, -194, -194, -190, -188, -187, -184, -182, -714, -697, -684, -668,
        -655, -641, -626, -613, -599, -588, -577, -567, -554, -544, -531, -524, -512, -505, -496, -484, -476,
        -470, -459, -453, -443, -439, -431, -425, -417, -408, -401, -399, -391, -383, -379, -372, -370, -364,
        -356, -353, -348, -341, -336, -330, -327, -323, -317, -316, -309, -306, -303, -297, -294, -293, -287,
        -282, -282, -275, -273, -269, -266, -264, -261, -259,
    ],
};

/// (1 + log2(m)) / 2, 64 segments of [1, 2).
static LG2: Table = Table {
    name: "lg2",
    shift: 13,
    bias: 1674,
    c0: &[
        67108871, 68609946, 70088112, 71544042, 72978405, 74391826, 75784908, 77158227, 78512347, 79847781,
        81165048, 82464633, 83747004, 85012607, 86261887, 87495252, 88713097, 89915819, 91103781, 92277340,
        93436847, 94582627, 95715009, 96834302, 97940802, 99034797, 100116570, 101186389, 102244514,
        103291205, 104326698, 105351230, 106365037, 107368336, 108361349, 109344279, 110317328, 111280694,
        112234573, 113179139, 114114580, 115041073, 115958784, 116867872, 117768509, 118660849, 119545033,
        120421216, 121289540, 122150147, 123003172, 123848742, 124686998, 125518055, 126342043, 127159073,
        127969263, 128772733, 129569594, 130359944, 131143901, 131921555, 132693013, 133458372,
    ],
    c1: &[
        94544, 93090, 91680, 90312, 88984, 87694, 86442, 85224, 84040, 82888, 81768, 80678, 79618, 78584,
        77576, 76594, 75636, 74702, 73792, 72902, 72036, 71188, 70360, 69552, 68760, 67988, 67232, 66494,
        65772, 65064, 64372, 63694, 63032, 62382, 61744, 61122, 60510, 59910, 59324, 58748, 58182, 57628,
        57084, 56552, 56028, 55514, 55010, 54514, 54026, 53548, 53080, 52618, 52164, 51718, 51280, 50848,
        50426, 50008, 49598, 49196, 48798, 48408, 48024, 47646,
    ],
    c2: &[
        -1454, -1410, -1370, -1330, -1292, -1254, -1220, -1184, -1152, -1118, -1088, -1060, -1036, -1008,
        -982, -958, -932, -910, -890, -866, -850, -828, -808, -792, -770, -754, -736, -722, -708, -692, -678,
        -662, -652, -638, -622, -614, -600, -586, -578, -566, -552, -542, -532, -524, -514, -506, -498, -488,
        -476, -468, -464, -454, -446, -438, -432, -422, -418, -408, -402, -398, -390, -384, -378, -372,
    ],
};

/// 2^f / 2, 64 segments of f in [0, 1).
static EX2: Table = Table {
    name: "ex2",
    shift: 14,
    bias: 12228,
    c0: &[
        33554435, 33919818, 34289182, 34662565, 35040018, 35421577, 35807292, 36197209, 36591372, 36989825,
        37392616, 37799797, 38211409, 38627504, 39048131, 39473337, 39903173, 40337690, 40776937, 41220970,
        41669836, 42123592, 42582286, 43045977, 43514717, 43988561, 44467565, 44951786, 45441278, 45936101,
        46436314, 46941971, 47453135, 47969867, 48492225, 49020269, 49554065, 50093674, 50639159, 51190582,
        51748011, 52311510, 52881146, 53456983, 54039091, 54627538, 55222393, 55823725, 56431607, 57046106,
        57667297, 58295254, 58930048, 59571754, 60220447, 60876205, 61539104, 62209220, 62886634, 63571424,
        64263672, 64963458, 65670863, 66385972,
    ],
    c1: &[
        45426, 45920, 46420, 46926, 47436, 47954, 48476, 49004, 49536, 50076, 50622, 51172, 51730, 52294,
        52862, 53438, 54020, 54608, 55204, 55804, 56412, 57026, 57648, 58276, 58910, 59552, 60200, 60856,
        61518, 62188, 62864, 63550, 64242, 64942, 65648, 66364, 67086, 67816, 68554, 69302, 70056, 70818,
        71590, 72370, 73158, 73954, 74760, 75574, 76396, 77228, 78070, 78920, 79778, 80648, 81526, 82414,
        83310, 84218, 85136, 86062, 87000, 87946, 88904, 89872,
    ],
    c2: &[
        494, 501, 506, 511, 518, 521, 527, 532, 541, 546, 551, 559, 564, 568, 577, 583, 589, 596, 600, 609,
        615, 622, 627, 633, 641, 647, 655, 661, 670, 677, 686, 691, 699, 705, 715, 721, 730, 739, 748, 753,
        763, 773, 779, 787, 796, 806, 813, 822, 833, 842, 849, 858, 870, 877, 887, 896, 909, 917, 925, 938,
        946, 959, 969, 980,
    ],
};

/// sin(q * pi/2), 64 segments of q in [0, 1).
static SIN: Table = Table {
    name: "sin",
    shift: 15,
    bias: 0,
    c0: &[
        0, 823463, 1646436, 2468414, 3288906, 4107418, 4923453, 5736526, 6546141, 7351816, 8153060, 8949394,
        9740335, 10525413, 11304145, 12076070, 12840725, 13597643, 14346367, 15086452, 15817450, 16538916,
        17250422, 17951542, 18641840, 19320916, 19988350, 20643746, 21286703, 21916841, 22533776, 23137138,
        23726565, 24301698, 24862194, 25407711, 25937924, 26452518, 26951170, 27433593, 27899488, 28348583,
        28780594, 29195273, 29592364, 29971632, 30332846, 30675788, 31000253, 31306042, 31592974, 31860879,
        32109590, 32338961, 32548845, 32739132, 32909694, 33060432, 33191257, 33302087, 33392857, 33463517,
        33514014, 33544326,
    ],
    c1: &[
        205896, 205840, 205648, 205344, 204904, 204352, 203672, 202864, 201944, 200896, 199728, 198440,
        197032, 195504, 193864, 192104, 190224, 188232, 186128, 183912, 181584, 179152, 176608, 173952,
        171200, 168336, 165376, 162320, 159160, 155912, 152560, 149120, 145592, 141976, 138272, 134488,
        130624, 126672, 122656, 118560, 114392, 110152, 105856, 101488, 97064, 92576, 88032, 83440, 78792,
        74104, 69368, 64584, 59768, 54912, 50032, 45112, 40168, 35200, 30208, 25208, 20184, 15144, 10104,
        5056,
    ],
    c2: &[
        -56, -192, -304, -440, -548, -684, -804, -916, -1048, -1168, -1288, -1408, -1524, -1640, -1764,
        -1880, -1988, -2100, -2212, -2324, -2432, -2548, -2656, -2752, -2860, -2952, -3052, -3160, -3248,
        -3356, -3436, -3524, -3616, -3704, -3784, -3868, -3952, -4016, -4100, -4172, -4236, -4296, -4372,
        -4428, -4492, -4544, -4592, -4648, -4688, -4740, -4784, -4812, -4852, -4880, -4920, -4944, -4968,
        -4988, -5000, -5032, -5040, -5040, -5052, -5060,
    ],
};

/// tanh(x): the segments of [`TANH_SEGMENTS`] one after the other.
static TANH: Table = Table {
    name: "tanh",
    shift: 16,
    bias: 0,
    c0: &[
        65536, 131070, 262124, 524118, 785858, 1047212, 1568268, 2086298, 2600310, 3109372, 3612576, 4109040,
        5078604, 6012224, 6904992, 7753000, 9304656, 10656104, 11809672, 12777544, 13577912, 14231944,
        14761140, 15185952, 15524804, 15793720, 16006268, 16173728, 16305345, 16408581, 16489421, 16552657,
        16602069, 16640655, 16670765, 16694254, 16712570, 16726848, 16737977, 16746648, 16753405, 16758669,
        16762770, 16766000, 16773088, 16775696, 16776656, 16777012, 16777140, 16777188, 16777204,
    ],
    c1: &[
        32768, 65532, 131048, 130952, 130788, 261168, 259904, 258128, 255888, 253184, 250024, 493088, 476480,
        457144, 435608, 825136, 725984, 625008, 528176, 439376, 360816, 293072, 236008, 188720, 150080,
        118800, 93728, 73748, 57884, 45348, 35492, 27740, 21670, 16914, 13198, 10292, 8024, 6254, 4874, 3798,
        2958, 2304, 1794, 5272, 1944, 712, 264, 96, 40, 16, 8,
    ],
    c2: &[
        -2, -12, -104, -164, -220, -1272, -1776, -2236, -2704, -3160, -3564, -16552, -19296, -21488, -23152,
        -98592, -100608, -96608, -88688, -78584, -67824, -57152, -47384, -38736, -31376, -25152, -20072,
        -15946, -12590, -9898, -7784, -6094, -4776, -3734, -2920, -2278, -1778, -1386, -1082, -842, -654,
        -508, -394, -3504, -1296, -464, -176, -64, -32, -16, -8,
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::float_binary;
    use crate::{FloatBinary, FloatMode, Rounding};

    /// Of operands and results: the sum of their mixed bits, whatever their order.
    fn mixed(x: u32, result: u64) -> u64 {
        let z = (u64::from(x) << 32 | result).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// The instruction with `.ftz` that is this function and nothing else; of sine and cosine, with the product before it.
    fn instruction(func: Mufu, x: u32) -> u64 {
        const TURNS_PER_RADIAN: u64 = 0x3e22_f983;
        let towards_zero = FloatMode { round: Rounding::Zero, ..FloatMode::default() };
        let turns = match func {
            Mufu::Sin | Mufu::Cos => {
                float_binary(FloatBinary::Mul, towards_zero, Type::F32, x.into(), TURNS_PER_RADIAN)
            }
            _ => x.into(),
        };
        eval(func, Type::F32, turns)
    }

    #[test]
    fn a_sample_of_the_recorded_results() {
        for (func, first, count, step, expected) in [
            (Mufu::Rcp, 0x3f80_0000, 0x80_0000, 61, 0xaa4f_204e_3383_6d2f),
            (Mufu::Rsqrt, 0x3f80_0000, 0x100_0000, 61, 0x2776_521c_345a_ed25),
            (Mufu::Sqrt, 0x3f80_0000, 0x100_0000, 61, 0x7af0_5ece_6856_4007),
            (Mufu::Lg2, 0x3f00_0000, 0x7e_0000, 61, 0x2568_c2f9_b82a_5b07),
            (Mufu::Lg2, 0x3f82_0000, 0x7e_0000, 61, 0x1b6a_28ba_ea49_5d87),
            (Mufu::Lg2, 0x4000_0000, 0x80_0000, 61, 0x29e0_dac6_478f_2d40),
            (Mufu::Ex2, 0x3f80_0000, 0x80_0000, 61, 0x0d0a_b757_f51e_bdf2),
            (Mufu::Ex2, 0x3f00_0000, 0x80_0000, 61, 0xcdbe_bc9d_f407_8862),
            (Mufu::Ex2, 0x4100_0000, 0x80_0000, 61, 0x592e_ba4c_af9e_417c),
            (Mufu::Ex2, 0xbf80_0000, 0x80_0000, 61, 0x953b_5940_e33d_66c7),
            (Mufu::Sin, 0x3f00_0000, 0x100_0000, 61, 0xc4b2_8250_4c23_9aad),
            (Mufu::Cos, 0x3f00_0000, 0xc0_0000, 61, 0x9e63_bd60_b6e4_28c9),
            (Mufu::Tanh, 0x3e80_0000, 0x280_0000, 976, 0x800a_69cf_fa53_f850),
            (Mufu::Tanh, 0x3c80_0000, 0x500_0000, 7808, 0x65f0_4248_c6fe_8af3),
        ] {
            let operands = (first..first + count).step_by(step);
            let sum = operands.fold(0u64, |sum, x| sum.wrapping_add(mixed(x, instruction(func, x))));
            assert_eq!(sum, expected, "{func:?} from {first:#x}: {sum:#x}");
        }
    }

    #[test]
    fn all_recorded_results_of_halves() {
        for (func, ty, expected) in [
            (Mufu::Ex2, Type::F16, 0x244f_c835_afdc_5fba),
            (Mufu::Tanh, Type::F16, 0xab8e_77a9_82fb_5089),
            (Mufu::Ex2, Type::BF16, 0x4417_5f29_9ecf_9e24),
            (Mufu::Tanh, Type::BF16, 0xcf64_f9fb_c4eb_2a6f),
        ] {
            let sum = (0..1 << 16).fold(0u64, |sum, x| sum.wrapping_add(mixed(x, eval(func, ty, x.into()))));
            assert_eq!(sum, expected, "{func:?} of {ty:?}: {sum:#x}");
        }
    }

    #[test]
    #[ignore = "2^32 operands of ten functions take minutes"]
    fn all_operands_give_what_an_h100_gave() {
        for (func, ty, expected) in [
            (Mufu::Rcp, Type::F32, 0x1c78_472e_399b_4d10),
            (Mufu::Sqrt, Type::F32, 0x0fcf_47ec_1c07_22e8),
            (Mufu::Rsqrt, Type::F32, 0xd74c_5d2c_df04_a5cd),
            (Mufu::Sin, Type::F32, 0x4798_e9be_e619_300a),
            (Mufu::Cos, Type::F32, 0xb50c_6ef4_20b1_243c),
            (Mufu::Ex2, Type::F32, 0x2a57_ff82_6f11_0821),
            (Mufu::Tanh, Type::F32, 0xc7ee_44d3_b0c4_6ece),
            (Mufu::Lg2, Type::F32, 0xcd13_251b_9cb4_15db),
            (Mufu::Rcp, Type::F64, 0x6517_33fd_9d67_a3e1),
            (Mufu::Rsqrt, Type::F64, 0xcb89_eab6_d9d8_76cb),
        ] {
            let result = |x: u32| match ty {
                Type::F64 => eval(func, ty, u64::from(x) << 32) >> 32,
                _ => instruction(func, x),
            };
            let sum = (0..=u32::MAX).fold(0u64, |sum, x| sum.wrapping_add(mixed(x, result(x))));
            assert_eq!(sum, expected, "{func:?} of {ty:?}: {sum:#x}");
        }
    }

    #[test]
    fn of_doubles_the_high_half_counts() {
        let third = eval(Mufu::Rcp, Type::F64, 3f64.to_bits());
        assert_eq!(third, eval(Mufu::Rcp, Type::F64, 3f64.to_bits() | 0xffff_ffff));
        assert_eq!(third, 0x3fd5_5555 << 32);
        assert_eq!(eval(Mufu::Rsqrt, Type::F64, 4f64.to_bits()), 0.5f64.to_bits());
        assert_eq!(eval(Mufu::Rcp, Type::F64, (-0f64).to_bits()), f64::NEG_INFINITY.to_bits());
        assert_eq!(eval(Mufu::Rsqrt, Type::F64, (-1f64).to_bits()), 0x7fff_ffff << 32);
    }
}
