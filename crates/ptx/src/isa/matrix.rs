//! Matrices whose elements lie spread over the registers of a warp: products, and rows of 8 to and from shared memory.

use simt_ir::matrix::{Accumulator, Element, MatrixMultiply, Quads};
use simt_ir::{
    Access, IntBinary, IntCmp, Op, Refusal, Rounding, Shift, ShuffleMode, Space, SpecialReg, Type, Value,
};

use super::memory::real_memory;
use super::syntax::Chosen;
use super::{Form, Ty, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    product("mma.sync.aligned.shape{m8n8k4}.al{row,col}.bl{row,col}.D{f16,f32}.A{f16}.B{f16}.C{f16,f32} d=b32#, a:b32#, b:b32#, c:b32#")
        .since(6, 4, 70)
        .only_if(no_narrower),
    product("mma.sync.aligned.shape{m16n8k8}.row.col.D{f16,f32}.A{f16}.B{f16}.C{f16,f32} d=b32#, a:b32#, b:b32#, c:b32#")
        .since(6, 5, 75)
        .only_if(alike),
    product("mma.sync.aligned.shape{m16n8k16}.row.col.D{f16,f32}.A{f16}.B{f16}.C{f16,f32} d=b32#, a:b32#, b:b32#, c:b32#")
        .since(7, 0, 80)
        .only_if(alike),
    product("mma.sync.aligned.shape{m16n8k8,m16n8k16}.row.col.D{f32}.A{bf16}.B{bf16}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#").since(7, 0, 80),
    product("mma.sync.aligned.shape{m16n8k4,m16n8k8}.row.col.D{f32}.A{tf32}.B{tf32}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#").since(7, 0, 80),
    product("mma.sync.aligned.shape{m16n8k32}.row.col.D{f32}.A{e4m3,e5m2}.B{e4m3,e5m2}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#").since(8, 4, 89),
    product("mma.sync.aligned.shape{m16n8k16,m16n8k32}.row.col.D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2}.C{f16,f32} d=b32#, a:b32#, b:b32#, c:b32#")
        .since(8, 7, 89)
        .only_if(alike),
    product("mma.sync.aligned.shape{m8n8k4}.row.col.rnd{$rnd}?.D{f64}.A{f64}.B{f64}.C{f64} d=b64#, a:b64#, b:b64#, c:b64#").since(7, 0, 80),
    product("mma.sync.aligned.shape{m16n8k4,m16n8k8,m16n8k16}.row.col.rnd{$rnd}?.D{f64}.A{f64}.B{f64}.C{f64} d=b64#, a:b64#, b:b64#, c:b64#").since(7, 8, 90),
    product("mma.sync.aligned.shape{m8n8k16}.row.col.satfinite?.D{s32}.A{u8,s8}.B{u8,s8}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#").since(6, 5, 75),
    product("mma.sync.aligned.shape{m16n8k16,m16n8k32}.row.col.satfinite?.D{s32}.A{u8,s8}.B{u8,s8}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#").since(7, 0, 80),
    product("mma.sync.aligned.shape{m8n8k32}.row.col.satfinite?.D{s32}.A{u4,s4}.B{u4,s4}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#").since(6, 5, 75),
    product("mma.sync.aligned.shape{m16n8k32,m16n8k64}.row.col.satfinite?.D{s32}.A{u4,s4}.B{u4,s4}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#").since(7, 0, 80),
    product("mma.sync.aligned.shape{m8n8k128,m16n8k128,m16n8k256}.row.col.D{s32}.A{b1}.B{b1}.C{s32}.op{xor}.popc d=b32#, a:b32#, b:b32#, c:b32#").since(7, 0, 75),
    product("mma.sync.aligned.shape{m8n8k128,m16n8k128,m16n8k256}.row.col.D{s32}.A{b1}.B{b1}.C{s32}.op{and}.popc d=b32#, a:b32#, b:b32#, c:b32#").since(7, 1, 80),
    sparse_product("mma.sp.sync.aligned.shape{m16n8k16,m16n8k32}.row.col.D{f16,f32}.A{f16}.B{f16}.C{f16,f32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm")
        .since(7, 1, 80)
        .only_if(alike),
    sparse_product("mma.sp::ordered_metadata.sync.aligned.shape{m16n8k16,m16n8k32}.row.col.D{f16,f32}.A{f16}.B{f16}.C{f16,f32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm")
        .since(8, 5, 80)
        .only_if(alike),
    sparse_product("mma.sp.sync.aligned.shape{m16n8k16,m16n8k32}.row.col.D{f32}.A{bf16}.B{bf16}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(7, 1, 80),
    sparse_product("mma.sp::ordered_metadata.sync.aligned.shape{m16n8k16,m16n8k32}.row.col.D{f32}.A{bf16}.B{bf16}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(8, 5, 80),
    sparse_product("mma.sp.sync.aligned.shape{m16n8k8,m16n8k16}.row.col.D{f32}.A{tf32}.B{tf32}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(7, 1, 80),
    sparse_product("mma.sp::ordered_metadata.sync.aligned.shape{m16n8k8,m16n8k16}.row.col.D{f32}.A{tf32}.B{tf32}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(8, 5, 80),
    sparse_product("mma.sp.sync.aligned.shape{m16n8k32,m16n8k64}.row.col.satfinite?.D{s32}.A{u8,s8}.B{u8,s8}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(7, 1, 80),
    sparse_product("mma.sp::ordered_metadata.sync.aligned.shape{m16n8k32,m16n8k64}.row.col.satfinite?.D{s32}.A{u8,s8}.B{u8,s8}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(8, 5, 80),
    sparse_product("mma.sp.sync.aligned.shape{m16n8k64,m16n8k128}.row.col.satfinite?.D{s32}.A{u4,s4}.B{u4,s4}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(7, 1, 80),
    sparse_product("mma.sp::ordered_metadata.sync.aligned.shape{m16n8k64,m16n8k128}.row.col.satfinite?.D{s32}.A{u4,s4}.B{u4,s4}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(8, 5, 80),
    sparse_product("mma.spvariant{sp,sp::ordered_metadata}.sync.aligned.shape{m16n8k64}.row.col.D{f32}.A{e4m3,e5m2}.B{e4m3,e5m2}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#, e:b32, f:imm").since(8, 4, 89),
    form("ldmatrix.sync.aligned.m8n8.count{x1,x2,x4}.trans?.space{shared,shared::cta}?.b16 d=b32#, a:address", load_rows)
        .effect()
        .registers(row_registers)
        .since(6, 5, 75),
    form("stmatrix.sync.aligned.m8n8.count{x1,x2,x4}.trans?.space{shared,shared::cta}?.b16 a:address, b:b32#", store_rows)
        .effect()
        .registers(row_registers)
        .since(7, 8, 90),
    form("movmatrix.sync.aligned.m8n8.trans.b16 d=b32, a:b32", transpose).effect().since(7, 8, 75),
];

const fn product(text: &'static str) -> Form {
    form(text, multiply).effect().registers(product_registers)
}

const fn sparse_product(text: &'static str) -> Form {
    form(text, multiply).effect().registers(product_registers)
}

/// How many ways there are to say which lanes have the metadata of a sparse factor: with more of them, more lanes are needed. NVIDIA's
/// assembler asks less of f16 with sums of f32.
pub(super) fn selectors(opcode: &str, chosen: &Chosen) -> u64 {
    let word = |slot| chosen.word(slot).unwrap_or("");
    let [_, _, k] = dimensions(word("shape"));
    match (word("A"), k) {
        ("f16" | "bf16" | "tf32", _) if opcode == "wgmma" => 2,
        (_, _) if opcode == "wgmma" => 1,
        ("f16", 32) if word("D") == "f32" => 4,
        ("f16" | "bf16", 16) | ("tf32", 8) => 4,
        ("f16" | "bf16", _) | ("tf32", _) | ("u8" | "s8", 32) | ("u4" | "s4", 64) => 2,
        _ => 1,
    }
}

/// Whether a register of this type may hold a part of the matrix that an operand is, as NVIDIA's assembler has it.
pub(super) fn holds(opcode: &str, chosen: &Chosen, operand: &str, register: Ty) -> bool {
    let word = |slot| chosen.word(slot).unwrap_or("");
    let loads_or_stores = !word("role").is_empty();
    let elements = match operand {
        _ if loads_or_stores => word("T"),
        "a" | "b" if word("A").is_empty() => "f16",
        "a" => word("A"),
        "b" => word("B"),
        "c" => word("C"),
        _ => word("D"),
    };
    let is_sparse = opcode == "mma" && chosen.has("sp") || chosen.has("sp::ordered_metadata");
    let integers = [Ty::B32, Ty::U32, Ty::S32].contains(&register);
    match elements {
        _ if operand == "shifts" => !register.is_float(),
        "f16" => [Ty::B32, Ty::F16x2].contains(&register),
        "bf16" | "tf32" if is_sparse => true,
        "bf16" | "tf32" => {
            register == Ty::B32
                || register == Ty::F16x2 && matches!(opcode, "wmma" | "wgmma") && !loads_or_stores
        }
        "f32" => {
            let of_halves = is_sparse && ["f16", "bf16", "tf32"].contains(&word("A"));
            of_halves || [Ty::B32, Ty::F32].contains(&register)
        }
        "s32" => integers,
        "e4m3" | "e5m2" if opcode == "wgmma" => [Ty::B32, Ty::F16x2].contains(&register),
        "u8" | "s8" if opcode == "wmma" => integers,
        "u4" | "s4" | "b1" if opcode == "wmma" && !loads_or_stores => integers,
        _ => true,
    }
}

fn no_narrower(chosen: &Chosen) -> Result<(), &'static str> {
    match (chosen.word("D"), chosen.word("C")) {
        (Some("f16"), Some("f32")) => Err("the result must be .f32 when the addend is"),
        _ => Ok(()),
    }
}

fn alike(chosen: &Chosen) -> Result<(), &'static str> {
    match chosen.word("D") == chosen.word("C") {
        true => Ok(()),
        false => Err("result and addend must have one type"),
    }
}

/// The element type of a factor.
pub(super) fn element(word: &str) -> Element {
    match word {
        "f16" => Element::F16,
        "bf16" => Element::BF16,
        "tf32" => Element::TF32,
        "e4m3" => Element::E4M3,
        "e5m2" => Element::E5M2,
        "f64" => Element::F64,
        "s8" => Element::S8,
        "u8" => Element::U8,
        "s4" => Element::S4,
        "u4" => Element::U4,
        _ => Element::B1,
    }
}

/// The element type of an addend or a result.
pub(super) fn accumulator(word: &str) -> Accumulator {
    match word {
        "f16" => Accumulator::F16,
        "f32" => Accumulator::F32,
        "f64" => Accumulator::F64,
        _ => Accumulator::S32,
    }
}

/// The numbers of a shape such as `m16n8k16`.
pub(super) fn dimensions(shape: &str) -> [u16; 3] {
    let mut numbers = shape.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

/// The product that the modifiers name.
fn described(chosen: &Chosen) -> MatrixMultiply {
    let word = |slot| chosen.word(slot).unwrap_or("");
    let [m, _, k] = dimensions(word("shape"));
    let (a, b) = (element(word("A")), element(word("B")));
    let quads = (word("shape") == "m8n8k4" && a == Element::F16)
        .then(|| Quads { a_by_column: word("al") == "col", b_by_row: word("bl") == "row" });
    let sparse = chosen.has("sp") || chosen.has("sp::ordered_metadata");
    MatrixMultiply {
        sparse: sparse.then_some(0),
        saturate: chosen.has("satfinite"),
        and: word("op") == "and",
        round: rounding(word("rnd")),
        quads,
        ..MatrixMultiply::new(m as u8, k, a, b, accumulator(word("C")), accumulator(word("D")))
    }
}

/// The direction that a modifier names.
pub(super) fn rounding(word: &str) -> Rounding {
    match word {
        "rz" => Rounding::Zero,
        "rm" => Rounding::Down,
        "rp" => Rounding::Up,
        _ => Rounding::Nearest,
    }
}

fn product_registers(chosen: &Chosen, operand: &str) -> usize {
    let op = described(chosen);
    match operand {
        "a" => op.a_registers(),
        "b" => op.b_registers(),
        "c" => op.c_registers(),
        _ => op.d_registers(),
    }
}

fn multiply(x: &mut Expander<'_, '_>) {
    let mut op = described(x.chosen());
    let mut args = x.src_lanes("a", op.a.register());
    args.extend(x.src_lanes("b", op.b.register()));
    args.extend(x.src_lanes("c", op.c.register()));
    if let Some(selector) = &mut op.sparse {
        *selector = x.number("f") as u8;
        args.push(x.src("e"));
    }
    let d = x.body.b.insts(Op::MatrixMultiply(op), &args, &op.results());
    let ty = x.ty_of("d");
    x.set_lanes("d", ty, &d);
}

fn row_registers(chosen: &Chosen, _: &str) -> usize {
    match chosen.word("count") {
        Some("x4") => 4,
        Some("x2") => 2,
        _ => 1,
    }
}

/// The value of another lane.
fn of_lane(x: &mut Expander<'_, '_>, value: Value, lane: Value) -> Value {
    shuffled(x, ShuffleMode::Idx, value, lane)
}

/// The values of all lanes, shuffled.
fn shuffled(x: &mut Expander<'_, '_>, mode: ShuffleMode, value: Value, lane: Value) -> Value {
    let (clamp, all) = (x.imm(Type::I32, 31), x.imm(Type::I32, 0xffff_ffff));
    x.body.b.insts(Op::Shuffle(mode), &[value, lane, clamp, all], &[Type::I32, Type::Pred])[0]
}

/// Addresses of the rows of 8×8 matrices, one row for each lane.
struct Rows {
    space: Space,
    base: Value,
    offset: i64,
}

impl Rows {
    fn new(x: &mut Expander<'_, '_>) -> Option<Rows> {
        let (space, base, offset) = real_memory(x, "a")?;
        Some(Rows { space, base, offset })
    }

    /// The addresses that rows of so many matrices begin at are multiples of a row's bytes. Other lanes hold none.
    fn refuse_misaligned(&self, x: &mut Expander<'_, '_>, matrices: usize) {
        let low = x.fit(self.base, Type::I32);
        let start = x.int_imm(IntBinary::Add, low, self.offset as u64 & 0xf);
        let odd = x.int_imm(IntBinary::And, start, 0xf);
        let mut is_off = x.cmp_imm(IntCmp::Ne, odd, 0);
        if matrices < 4 {
            let lane = x.special(SpecialReg::LaneId);
            let holds_one = x.cmp_imm(IntCmp::LtU, lane, 8 * matrices as u64);
            is_off = x.int(IntBinary::And, is_off, holds_one);
        }
        x.body.b.effect(Op::Refuse(Refusal::Misaligned), &[is_off]);
    }

    /// The place `bytes` behind the start of the row whose address that lane holds.
    fn place(&self, x: &mut Expander<'_, '_>, lane: Value, bytes: Value) -> Value {
        match x.type_of(self.base) {
            Type::I64 => {
                let upper = x.shift_imm(Shift::RightU, self.base, 32);
                let halves = [x.fit(self.base, Type::I32), x.fit(upper, Type::I32)];
                let [low, high] = halves.map(|half| of_lane(x, half, lane));
                let (low, high) = (x.zext(low, Type::I64), x.zext(high, Type::I64));
                let high = x.shift_imm(Shift::Left, high, 32);
                let row = x.int(IntBinary::Or, low, high);
                let bytes = x.zext(bytes, Type::I64);
                x.int(IntBinary::Add, row, bytes)
            }
            _ => {
                let row = of_lane(x, self.base, lane);
                x.int(IntBinary::Add, row, bytes)
            }
        }
    }

    fn access(&self) -> Access {
        Access::weak(self.space, self.offset)
    }
}

/// Which rows and columns a lane has to do with.
struct Share {
    /// A quarter of the lane number: its row, or its column of a transposed matrix.
    outer: Value,
    /// The first of two neighbouring columns, or rows of a transposed matrix.
    inner: Value,
}

impl Share {
    fn new(x: &mut Expander<'_, '_>) -> Share {
        let lane = x.special(SpecialReg::LaneId);
        let outer = x.shift_imm(Shift::RightU, lane, 2);
        let quarter = x.int_imm(IntBinary::And, lane, 3);
        let inner = x.shift_imm(Shift::Left, quarter, 1);
        Share { outer, inner }
    }

    /// The address of the register's two elements.
    fn pair(&self, x: &mut Expander<'_, '_>, rows: &Rows, matrix: usize) -> Value {
        let lane = x.int_imm(IntBinary::Add, self.outer, 8 * matrix as u64);
        let bytes = x.shift_imm(Shift::Left, self.inner, 1);
        rows.place(x, lane, bytes)
    }
}

fn load_rows(x: &mut Expander<'_, '_>) {
    let Some(rows) = Rows::new(x) else { return };
    let count = x.elements("d").len();
    rows.refuse_misaligned(x, count);
    let share = Share::new(x);
    let mut values = Vec::new();
    for matrix in 0..count {
        let place = share.pair(x, &rows, matrix);
        let value = x.op_ty(Op::Load(rows.access()), &[place], Type::I32);
        values.push(if x.has("trans") { transposed(x, value) } else { value });
    }
    let ty = x.ty_of("d");
    x.set_lanes("d", ty, &values);
}

fn store_rows(x: &mut Expander<'_, '_>) {
    let Some(rows) = Rows::new(x) else { return };
    let values = x.src_lanes("b", Type::I32);
    rows.refuse_misaligned(x, values.len());
    let share = Share::new(x);
    for (matrix, value) in values.into_iter().enumerate() {
        let value = if x.has("trans") { transposed(x, value) } else { value };
        let place = share.pair(x, &rows, matrix);
        x.body.b.effect(Op::Store(rows.access()), &[place, value]);
    }
}

/// Two halves in a word.
pub(super) fn join(x: &mut Expander<'_, '_>, [low, high]: [Value; 2]) -> Value {
    let high = x.shift_imm(Shift::Left, high, 16);
    x.int(IntBinary::Or, low, high)
}

fn transpose(x: &mut Expander<'_, '_>) {
    let a = x.src("a");
    let d = transposed(x, a);
    x.set("d", d);
}

/// An 8×8 matrix transposed, of which element (i, j) is half `j % 2` of lane `4 i + j / 2`.
///
/// Three bits of an element's place are its row, three its column. The last of either change places between lanes that are four apart. The others
/// then only move words from lane to lane.
fn transposed(x: &mut Expander<'_, '_>, word: Value) -> Value {
    let four = x.imm(Type::I32, 4);
    let other = shuffled(x, ShuffleMode::Bfly, word, four);
    let lane = x.special(SpecialReg::LaneId);
    let row = x.int_imm(IntBinary::And, lane, 4);
    let is_odd = x.cmp_imm(IntCmp::Ne, row, 0);
    let [low, high] = [0xffff, 0xffff_0000].map(|half| x.int_imm(IntBinary::And, word, half));
    let up = x.shift_imm(Shift::Left, other, 16);
    let down = x.shift_imm(Shift::RightU, other, 16);
    let even_row = x.int(IntBinary::Or, low, up);
    let odd_row = x.int(IntBinary::Or, high, down);
    let swapped = x.select(is_odd, odd_row, even_row);
    // The lane's five bits, from the last: the row's first two, the column's last, its first two.
    let moved = [(1, 3), (2, 3), (4, 0), (8, -3), (16, -3)].map(|(bit, by): (u64, i32)| {
        let bit = x.int_imm(IntBinary::And, lane, bit);
        match by {
            0.. => x.shift_imm(Shift::Left, bit, by as u32),
            _ => x.shift_imm(Shift::RightU, bit, by.unsigned_abs()),
        }
    });
    let source = moved.into_iter().reduce(|lane, bit| x.int(IntBinary::Or, lane, bit)).expect("five bits");
    of_lane(x, swapped, source)
}
