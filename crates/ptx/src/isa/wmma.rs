//! `wmma`: products of matrices in memory, over the same fragments as `mma`.
//!
//! PTX leaves open which element lies in which register between `wmma.load` and `wmma.store`. Here fragments are those of the
//! `mma` that a product is made of: the rows of the first factor go in blocks of 16, the columns of the second in blocks of
//! 8, and products with eight rows and 32 columns are computed transposed. Registers of f16 fragments that are left
//! over hold zeros.

use simt_ir::matrix::{Accumulator, Element, MatrixMultiply};
use simt_ir::{Access, Convert, FloatMode, IntBinary, Op, Rounding, Shift, Space, SpecialReg, Type, Value};

use super::matrix::{accumulator, dimensions, element, join, rounding};
use super::memory::real_memory;
use super::syntax::Chosen;
use super::{Form, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    load("wmma.load.role{a,b}.sync.aligned.layout{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.space{global,shared,shared::cta}?.T{f16} d=b32#, p:address, stride?:b32").since(6, 0, 70),
    load("wmma.load.role{a,b}.sync.aligned.layout{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.space{global,shared,shared::cta}?.T{bf16} d=b32#, p:address, stride?:b32").since(7, 0, 80),
    load("wmma.load.role{a,b}.sync.aligned.layout{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.space{global,shared,shared::cta}?.T{u8,s8} d=b32#, p:address, stride?:b32").since(6, 3, 72),
    load("wmma.load.role{a,b}.sync.aligned.layout{row,col}.shape{m16n16k8}.space{global,shared,shared::cta}?.T{tf32} d=b32#, p:address, stride?:b32").since(7, 0, 80),
    load("wmma.load.role{a,b}.sync.aligned.layout{row,col}.shape{m8n8k4}.space{global,shared,shared::cta}?.T{f64} d=b64#, p:address, stride?:b32").since(7, 0, 80),
    load("wmma.load.role{a}.sync.aligned.layout{row}.shape{m8n8k32}.space{global,shared,shared::cta}?.T{u4,s4} d=b32#, p:address, stride?:b32").since(6, 3, 75),
    load("wmma.load.role{b}.sync.aligned.layout{col}.shape{m8n8k32}.space{global,shared,shared::cta}?.T{u4,s4} d=b32#, p:address, stride?:b32").since(6, 3, 75),
    load("wmma.load.role{a}.sync.aligned.layout{row}.shape{m8n8k128}.space{global,shared,shared::cta}?.T{b1} d=b32#, p:address, stride?:b32").since(6, 3, 75),
    load("wmma.load.role{b}.sync.aligned.layout{col}.shape{m8n8k128}.space{global,shared,shared::cta}?.T{b1} d=b32#, p:address, stride?:b32").since(6, 3, 75),
    load("wmma.load.role{c}.sync.aligned.layout{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.space{global,shared,shared::cta}?.T{f16,f32,s32} d=b32#, p:address, stride?:b32").since(6, 0, 70),
    load("wmma.load.role{c}.sync.aligned.layout{row,col}.shape{m16n16k8}.space{global,shared,shared::cta}?.T{f32} d=b32#, p:address, stride?:b32").since(7, 0, 80),
    load("wmma.load.role{c}.sync.aligned.layout{row,col}.shape{m8n8k32,m8n8k128}.space{global,shared,shared::cta}?.T{s32} d=b32#, p:address, stride?:b32").since(6, 3, 75),
    load("wmma.load.role{c}.sync.aligned.layout{row,col}.shape{m8n8k4}.space{global,shared,shared::cta}?.T{f64} d=b64#, p:address, stride?:b32").since(7, 0, 80),
    store("wmma.store.role{d}.sync.aligned.layout{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.space{global,shared,shared::cta}?.T{f16,f32,s32} p:address, d:b32#, stride?:b32").since(6, 0, 70),
    store("wmma.store.role{d}.sync.aligned.layout{row,col}.shape{m16n16k8}.space{global,shared,shared::cta}?.T{f32} p:address, d:b32#, stride?:b32").since(7, 0, 80),
    store("wmma.store.role{d}.sync.aligned.layout{row,col}.shape{m8n8k32,m8n8k128}.space{global,shared,shared::cta}?.T{s32} p:address, d:b32#, stride?:b32").since(6, 3, 75),
    store("wmma.store.role{d}.sync.aligned.layout{row,col}.shape{m8n8k4}.space{global,shared,shared::cta}?.T{f64} p:address, d:b64#, stride?:b32").since(7, 0, 80),
    product("wmma.mma.sync.aligned.al{row,col}.bl{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.D{f16,f32}.C{f16,f32} d=b32#, a:b32#, b:b32#, c:b32#").since(6, 0, 70),
    product("wmma.mma.sync.aligned.al{row,col}.bl{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.D{f16,f32}.C{f16,f32}.satfinite d=b32#, a:b32#, b:b32#, c:b32#")
        .since(6, 0, 70)
        .until(6, 4, 70),
    product("wmma.mma.sync.aligned.al{row,col}.bl{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.D{f32}.A{bf16}.B{bf16}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#").since(7, 0, 80),
    product("wmma.mma.sync.aligned.al{row,col}.bl{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.D{s32}.A{u8}.B{u8}.C{s32}.satfinite? d=b32#, a:b32#, b:b32#, c:b32#").since(6, 3, 72),
    product("wmma.mma.sync.aligned.al{row,col}.bl{row,col}.shape{m16n16k16,m8n32k16,m32n8k16}.D{s32}.A{s8}.B{s8}.C{s32}.satfinite? d=b32#, a:b32#, b:b32#, c:b32#").since(6, 3, 72),
    product("wmma.mma.sync.aligned.al{row,col}.bl{row,col}.shape{m16n16k8}.D{f32}.A{tf32}.B{tf32}.C{f32} d=b32#, a:b32#, b:b32#, c:b32#").since(7, 0, 80),
    product("wmma.mma.sync.aligned.al{row,col}.bl{row,col}.shape{m8n8k4}.rnd{$rnd}?.D{f64}.A{f64}.B{f64}.C{f64} d=b64#, a:b64#, b:b64#, c:b64#").since(7, 0, 80),
    product("wmma.mma.sync.aligned.al{row,col}.bl{row,col}.shape{m8n8k4}.D{f64}.A{f64}.B{f64}.C{f64}.rnd{$rnd} d=b64#, a:b64#, b:b64#, c:b64#").since(7, 0, 80),
    product("wmma.mma.sync.aligned.al{row}.bl{col}.shape{m8n8k32}.D{s32}.A{u4}.B{u4}.C{s32}.satfinite? d=b32#, a:b32#, b:b32#, c:b32#").since(6, 3, 75),
    product("wmma.mma.sync.aligned.al{row}.bl{col}.shape{m8n8k32}.D{s32}.A{s4}.B{s4}.C{s32}.satfinite? d=b32#, a:b32#, b:b32#, c:b32#").since(6, 3, 75),
    product("wmma.mma.op{xor}.popc.sync.aligned.al{row}.bl{col}.shape{m8n8k128}.D{s32}.A{b1}.B{b1}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#").since(6, 3, 75),
    product("wmma.mma.op{and}.popc.sync.aligned.al{row}.bl{col}.shape{m8n8k128}.D{s32}.A{b1}.B{b1}.C{s32} d=b32#, a:b32#, b:b32#, c:b32#").since(7, 1, 80),
];

const fn load(text: &'static str) -> Form {
    form(text, load_fragment).effect().registers(fragment_registers)
}

const fn store(text: &'static str) -> Form {
    form(text, store_fragment).effect().registers(fragment_registers)
}

const fn product(text: &'static str) -> Form {
    form(text, multiply).effect().registers(product_registers)
}

/// A matrix of a `wmma` operation.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    A,
    B,
    Accumulator,
}

/// How a `wmma` shape is made of `mma` products.
#[derive(Clone, Copy)]
struct Tiling {
    rows: u16,
    columns: u16,
    depth: u16,
    /// The product is computed as that of the transposed factors, the second first.
    transposed: bool,
}

impl Tiling {
    fn new(shape: &str) -> Tiling {
        let [m, n, k] = dimensions(shape);
        match (m, n) {
            (8, 32) => Tiling { rows: n, columns: m, depth: k, transposed: true },
            _ => Tiling { rows: m, columns: n, depth: k, transposed: false },
        }
    }

    /// Rows of one `mma`.
    fn block(&self) -> u16 {
        self.rows.min(16)
    }

    fn row_blocks(&self) -> usize {
        usize::from(self.rows / self.block())
    }

    fn column_blocks(&self) -> usize {
        usize::from(self.columns / 8)
    }

    /// One `mma` of these elements.
    fn product(&self, a: Element, c: Accumulator, d: Accumulator) -> MatrixMultiply {
        MatrixMultiply::new(self.block() as u8, self.depth, a, a, c, d)
    }

    /// Along k the hardware does a product of tf32 in two steps.
    fn steps(a: Element) -> u16 {
        if a == Element::TF32 { 2 } else { 1 }
    }

    /// Whether this matrix is the first factor of the `mma`.
    fn is_left(&self, role: Role) -> bool {
        (role == Role::A) != self.transposed
    }

    /// Registers of a factor that hold elements.
    fn factor_registers(&self, role: Role, ty: Element) -> usize {
        let op = self.product(ty, Accumulator::S32, Accumulator::S32);
        match self.is_left(role) {
            true => self.row_blocks() * op.a_registers(),
            false => self.column_blocks() * op.b_registers(),
        }
    }

    fn accumulator_registers(&self, ty: Accumulator) -> usize {
        let op = self.product(Element::S8, ty, ty);
        self.row_blocks() * self.column_blocks() * op.c_registers()
    }
}

/// Registers of a fragment as PTX has them.
fn registers(tiling: Tiling, role: Role, ty: &str) -> usize {
    match role {
        Role::Accumulator => tiling.accumulator_registers(accumulator(ty)),
        _ if ty == "f16" => 8,
        _ => tiling.factor_registers(role, element(ty)),
    }
}

fn role(word: &str) -> Role {
    match word {
        "a" => Role::A,
        "b" => Role::B,
        _ => Role::Accumulator,
    }
}

fn fragment_registers(chosen: &Chosen, _: &str) -> usize {
    let word = |slot| chosen.word(slot).unwrap_or("");
    registers(Tiling::new(word("shape")), role(word("role")), word("T"))
}

fn product_registers(chosen: &Chosen, operand: &str) -> usize {
    let word = |slot| chosen.word(slot).unwrap_or("");
    let tiling = Tiling::new(word("shape"));
    match operand {
        "a" | "b" => registers(tiling, role(operand), chosen.word("A").unwrap_or("f16")),
        "c" => registers(tiling, Role::Accumulator, word("C")),
        _ => registers(tiling, Role::Accumulator, word("D")),
    }
}

/// Where the elements of one register are in the matrix: the first of them, how many, and how they go on.
struct Placed {
    /// Row and column of the first element, each a multiple of a quarter of the lane number, one of the rest of it,
    /// and a number.
    row: Affine,
    column: Affine,
    /// Elements of the register.
    count: u16,
    /// The next element stands in the next column, not in the next row.
    along_row: bool,
}

/// `outer × (lane / 4) + inner × (lane % 4) + constant`.
#[derive(Clone, Copy)]
struct Affine {
    outer: u64,
    inner: u64,
    constant: u64,
}

impl Affine {
    /// All but the constant.
    fn of_lane(self, x: &mut Expander<'_, '_>) -> Value {
        let lane = x.special(SpecialReg::LaneId);
        let quarter = x.shift_imm(Shift::RightU, lane, 2);
        let rest = x.int_imm(IntBinary::And, lane, 3);
        let outer = x.int_imm(IntBinary::Mul, quarter, self.outer);
        let inner = x.int_imm(IntBinary::Mul, rest, self.inner);
        x.int(IntBinary::Add, outer, inner)
    }
}

/// Places of all registers of a fragment.
fn places(tiling: Tiling, role: Role, word: &str) -> Vec<Placed> {
    let mut all = Vec::new();
    if role == Role::Accumulator {
        let ty = accumulator(word);
        let op = tiling.product(Element::S8, ty, ty);
        let count = if ty == Accumulator::F16 { 2 } else { 1 };
        for row_block in 0..tiling.row_blocks() as u64 {
            for column_block in 0..tiling.column_blocks() as u64 {
                for register in 0..op.c_registers() as u64 {
                    let element = register * count;
                    let row = 16 * row_block + 8 * (element / 2);
                    all.push(Placed {
                        row: Affine { outer: 1, inner: 0, constant: row },
                        column: Affine { outer: 0, inner: 2, constant: 8 * column_block + element % 2 },
                        count: count as u16,
                        along_row: true,
                    });
                }
            }
        }
    } else {
        let ty = element(word);
        let count = (32 / ty.bits()).max(1) as u64;
        let op = tiling.product(ty, Accumulator::S32, Accumulator::S32);
        let along = |step: u64| Affine { outer: 0, inner: count, constant: step * 4 * count };
        if tiling.is_left(role) {
            let halves = u64::from(tiling.block() / 8);
            for block in 0..tiling.row_blocks() as u64 {
                for register in 0..op.a_registers() as u64 {
                    let row = 16 * block + 8 * (register % halves);
                    all.push(Placed {
                        row: Affine { outer: 1, inner: 0, constant: row },
                        column: along(register / halves),
                        count: count as u16,
                        along_row: true,
                    });
                }
            }
        } else {
            for block in 0..tiling.column_blocks() as u64 {
                for register in 0..op.b_registers() as u64 {
                    all.push(Placed {
                        row: along(register),
                        column: Affine { outer: 1, inner: 0, constant: 8 * block },
                        count: count as u16,
                        along_row: false,
                    });
                }
            }
        }
    }
    if tiling.transposed {
        for placed in &mut all {
            std::mem::swap(&mut placed.row, &mut placed.column);
            placed.along_row = !placed.along_row;
        }
    }
    all
}

/// A matrix in memory, as one `wmma.load` or `wmma.store` names it.
struct Stored {
    space: Space,
    base: Value,
    offset: i64,
    by_row: bool,
    /// Elements from one row, or column, to the next.
    stride: Value,
    bits: u64,
    tiling: Tiling,
    role: Role,
    ty: &'static str,
}

impl Stored {
    fn new(x: &mut Expander<'_, '_>) -> Option<Stored> {
        let (space, base, offset) = real_memory(x, "p")?;
        let (shape, role, ty) = (x.word("shape"), role(x.word("role")), x.word("T"));
        let by_row = x.word("layout") == "row";
        let [m, n, k] = dimensions(shape);
        let (rows, columns) = match role {
            Role::A => (m, k),
            Role::B => (k, n),
            Role::Accumulator => (m, n),
        };
        let stride = match x.src_if("stride") {
            Some(stride) => stride,
            None => x.imm(Type::I32, u64::from(if by_row { columns } else { rows })),
        };
        let bits = match (role, ty) {
            (_, "f16") => 16,
            (Role::Accumulator, "f64") => 64,
            (Role::Accumulator, _) => 32,
            _ => element(ty).bits() as u64,
        };
        Some(Stored { space, base, offset, by_row, stride, bits, tiling: Tiling::new(shape), role, ty })
    }

    fn places(&self) -> Vec<Placed> {
        places(self.tiling, self.role, self.ty)
    }

    /// Type of the fragment's registers.
    fn register(&self) -> Type {
        match (self.role, self.ty) {
            (_, "f64") => Type::F64,
            (Role::Accumulator, "f32") => Type::F32,
            _ => Type::I32,
        }
    }

    /// Where the first elements of all registers would be if each were the first of its fragment: what differs between lanes, and is much code
    /// where the stride is no constant, is computed once.
    fn start(&self, x: &mut Expander<'_, '_>, first: &Placed) -> Value {
        let (row, column) = (first.row.of_lane(x), first.column.of_lane(x));
        let (major, minor) = if self.by_row { (row, column) } else { (column, row) };
        let (major, minor) = (x.zext(major, Type::I64), x.zext(minor, Type::I64));
        let stride = x.zext(self.stride, Type::I64);
        let lines = x.int(IntBinary::Mul, major, stride);
        let index = x.int(IntBinary::Add, lines, minor);
        let bytes = self.bytes(x, index);
        x.int(IntBinary::Add, self.base, bytes)
    }

    /// The address of a register's first element, but for what its access adds, which is told too.
    fn address(&self, x: &mut Expander<'_, '_>, start: Value, placed: &Placed) -> (Value, i64) {
        let (row, column) = (placed.row.constant, placed.column.constant);
        let (major, minor) = if self.by_row { (row, column) } else { (column, row) };
        // Fragments of elements smaller than bytes have one register, which begins where they do.
        let ahead = (minor * self.bits / 8) as i64;
        if major == 0 {
            return (start, ahead);
        }
        let stride = x.zext(self.stride, Type::I64);
        let index = x.int_imm(IntBinary::Mul, stride, major);
        let bytes = self.bytes(x, index);
        (x.int(IntBinary::Add, start, bytes), ahead)
    }

    /// The bytes that so many elements take, as what is added to addresses.
    fn bytes(&self, x: &mut Expander<'_, '_>, elements: Value) -> Value {
        let bytes = match self.bits {
            8.. => x.int_imm(IntBinary::Mul, elements, self.bits / 8),
            bits => {
                let bits = x.int_imm(IntBinary::Mul, elements, bits);
                x.shift_imm(Shift::RightU, bits, 3)
            }
        };
        let ty = x.type_of(self.base);
        x.fit(bytes, ty)
    }

    /// Bytes from one element of a register to the next, where they do not stand side by side.
    fn step(&self, x: &mut Expander<'_, '_>) -> Value {
        let stride = x.zext(self.stride, Type::I64);
        self.bytes(x, stride)
    }

    fn access(&self, ahead: i64) -> Access {
        Access::weak(self.space, self.offset.wrapping_add(ahead))
    }

    /// Whether a register's elements stand side by side.
    fn adjacent(&self, placed: &Placed) -> bool {
        placed.count == 1 || placed.along_row == self.by_row
    }

    /// An element's type where it is handled by itself.
    fn single(&self) -> Type {
        if self.bits == 8 { Type::I8 } else { Type::I16 }
    }
}

fn load_fragment(x: &mut Expander<'_, '_>) {
    let Some(matrix) = Stored::new(x) else { return };
    let register = matrix.register();
    let mut values = Vec::new();
    let places = matrix.places();
    let start = matrix.start(x, &places[0]);
    for placed in places {
        let (mut address, ahead) = matrix.address(x, start, &placed);
        let access = matrix.access(ahead);
        if matrix.adjacent(&placed) {
            values.push(x.op_ty(Op::Load(access), &[address], register));
            continue;
        }
        let step = matrix.step(x);
        let mut word = x.imm(Type::I32, 0);
        for at in 0..placed.count {
            let element = x.op_ty(Op::Load(access), &[address], matrix.single());
            let element = x.zext(element, Type::I32);
            let element = x.shift_imm(Shift::Left, element, u32::from(at) * matrix.bits as u32);
            word = x.int(IntBinary::Or, word, element);
            address = x.int(IntBinary::Add, address, step);
        }
        values.push(word);
    }
    // Registers that are left over hold the same again, as a GPU has it.
    let held = values.len();
    for at in held..x.elements("d").len() {
        values.push(values[at % held]);
    }
    let ty = x.ty_of("d");
    x.set_lanes("d", ty, &values);
}

fn store_fragment(x: &mut Expander<'_, '_>) {
    let Some(matrix) = Stored::new(x) else { return };
    let values = x.src_lanes("d", matrix.register());
    let places = matrix.places();
    let start = matrix.start(x, &places[0]);
    for (placed, value) in places.into_iter().zip(values) {
        let (mut address, ahead) = matrix.address(x, start, &placed);
        let access = matrix.access(ahead);
        if matrix.adjacent(&placed) {
            x.body.b.effect(Op::Store(access), &[address, value]);
            continue;
        }
        let step = matrix.step(x);
        for at in 0..placed.count {
            let element = x.shift_imm(Shift::RightU, value, u32::from(at) * matrix.bits as u32);
            let element = x.fit(element, matrix.single());
            x.body.b.effect(Op::Store(access), &[address, element]);
            address = x.int(IntBinary::Add, address, step);
        }
    }
}

fn multiply(x: &mut Expander<'_, '_>) {
    let tiling = Tiling::new(x.word("shape"));
    let factor = match x.word("A") {
        "" => Element::F16,
        word => element(word),
    };
    let steps = Tiling::steps(factor);
    let (c, d) = (accumulator(x.word("C")), accumulator(x.word("D")));
    // An f16 that is a clamped sum of f32 is rounded towards zero, so that the largest finite number is the last; others are not clamped.
    let cut = x.has("satfinite") && (c, d) == (Accumulator::F32, Accumulator::F16);
    let op = MatrixMultiply {
        k: tiling.depth / steps,
        saturate: x.has("satfinite"),
        and: x.word("op") == "and",
        round: rounding(x.word("rnd")),
        ..tiling.product(factor, c, if cut { Accumulator::F32 } else { d })
    };
    let (a, b) = (x.src_lanes("a", op.a.register()), x.src_lanes("b", op.b.register()));
    let c = x.src_lanes("c", op.c.register());
    let (left, right) = if tiling.transposed { (b, a) } else { (a, b) };
    let op = MatrixMultiply { eights: tiling.column_blocks() as u8, ..op };
    let (a_registers, c_registers) = (op.a_registers(), op.c_registers());
    let b_registers = op.b_registers() / tiling.column_blocks();
    let steps = usize::from(steps);
    let mut d = Vec::new();
    for row_block in 0..tiling.row_blocks() {
        let mut sum = c[row_block * c_registers..][..c_registers].to_vec();
        for step in 0..steps {
            let mut args = left[(row_block * steps + step) * a_registers..][..a_registers].to_vec();
            for column_block in 0..tiling.column_blocks() {
                args.extend(&right[(column_block * steps + step) * b_registers..][..b_registers]);
            }
            args.extend(&sum);
            sum = x.body.b.insts(Op::MatrixMultiply(op), &args, &op.results());
        }
        d.extend(sum);
    }
    if cut {
        let mode = FloatMode { round: Rounding::Zero, ..FloatMode::default() };
        let half = |x: &mut Expander<'_, '_>, sum: Value| {
            let half = x.convert(Convert::FloatToFloat(mode), sum, Type::F16);
            let half = x.convert(Convert::Bitcast, half, Type::I16);
            x.zext(half, Type::I32)
        };
        d = d
            .chunks(2)
            .map(|pair| {
                let pair = [half(x, pair[0]), half(x, pair[1])];
                join(x, pair)
            })
            .collect();
    }
    let ty = x.ty_of("d");
    x.set_lanes("d", ty, &d);
}
