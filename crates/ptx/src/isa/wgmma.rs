//! `wgmma`: products of four warps together, with factors in shared memory.
//!
//! Each warp multiplies its own 16 of the 64 rows, in steps of eight columns, as soon as it comes to the instruction; so there
//! is nothing left to wait for. A factor in shared memory is named by a descriptor: where it starts, how far apart its
//! pieces are, and how the 16-byte units of a row are permuted (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared
//! Memory Layout").

use simt_ir::matrix::{Element, MatrixMultiply};
use simt_ir::{Access, IntBinary, IntCmp, Op, Shift, Space, SpecialReg, Type, Value};

use super::matrix::{accumulator, dimensions, element, join};
use super::syntax::Chosen;
use super::{Form, form};
use crate::lower::expander::Expander;

/// An entry whose shapes are `m64nNkK` for every N that products with this K have.
macro_rules! entry {
    (floats, $before:literal, $k:literal, $after:literal) => {
        concat!(
            $before,
            ".shape{m64n8k",
            $k,
            ",m64n16k",
            $k,
            ",m64n24k",
            $k,
            ",m64n32k",
            $k,
            ",m64n40k",
            $k,
            ",m64n48k",
            $k,
            ",m64n56k",
            $k,
            ",m64n64k",
            $k,
            ",m64n72k",
            $k,
            ",m64n80k",
            $k,
            ",m64n88k",
            $k,
            ",m64n96k",
            $k,
            ",m64n104k",
            $k,
            ",m64n112k",
            $k,
            ",m64n120k",
            $k,
            ",m64n128k",
            $k,
            ",m64n136k",
            $k,
            ",m64n144k",
            $k,
            ",m64n152k",
            $k,
            ",m64n160k",
            $k,
            ",m64n168k",
            $k,
            ",m64n176k",
            $k,
            ",m64n184k",
            $k,
            ",m64n192k",
            $k,
            ",m64n200k",
            $k,
            ",m64n208k",
            $k,
            ",m64n216k",
            $k,
            ",m64n224k",
            $k,
            ",m64n232k",
            $k,
            ",m64n240k",
            $k,
            ",m64n248k",
            $k,
            ",m64n256k",
            $k,
            "}",
            $after
        )
    };
    (integers, $before:literal, $k:literal, $after:literal) => {
        concat!(
            $before,
            ".shape{m64n8k",
            $k,
            ",m64n16k",
            $k,
            ",m64n24k",
            $k,
            ",m64n32k",
            $k,
            ",m64n48k",
            $k,
            ",m64n64k",
            $k,
            ",m64n80k",
            $k,
            ",m64n96k",
            $k,
            ",m64n112k",
            $k,
            ",m64n128k",
            $k,
            ",m64n144k",
            $k,
            ",m64n160k",
            $k,
            ",m64n176k",
            $k,
            ",m64n192k",
            $k,
            ",m64n208k",
            $k,
            ",m64n224k",
            $k,
            ",m64n240k",
            $k,
            ",m64n256k",
            $k,
            "}",
            $after
        )
    };
}

pub(super) const FORMS: &[Form] = &[
    form("wgmma.fence.sync.aligned", |_| ()).effect().since(8, 0, 90),
    form("wgmma.commit_group.sync.aligned", |_| ()).effect().since(8, 0, 90),
    form("wgmma.wait_group.sync.aligned n:imm", |_| ()).effect().since(8, 0, 90),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sync.aligned",
        "16",
        ".D{f16,f32}.A{f16}.B{f16} d=b32#, a:b64, b:b64, p:pred!, sa:imm, sb:imm, ta:imm, tb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sync.aligned",
        "16",
        ".D{f16,f32}.A{f16}.B{f16} d=b32#, a:b32#, b:b64, p:pred!, sa:imm, sb:imm, tb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sync.aligned",
        "16",
        ".D{f32}.A{bf16}.B{bf16} d=b32#, a:b64, b:b64, p:pred!, sa:imm, sb:imm, ta:imm, tb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sync.aligned",
        "16",
        ".D{f32}.A{bf16}.B{bf16} d=b32#, a:b32#, b:b64, p:pred!, sa:imm, sb:imm, tb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sync.aligned",
        "8",
        ".D{f32}.A{tf32}.B{tf32} d=b32#, a:b64, b:b64, p:pred!, sa:imm, sb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sync.aligned",
        "8",
        ".D{f32}.A{tf32}.B{tf32} d=b32#, a:b32#, b:b64, p:pred!, sa:imm, sb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sync.aligned",
        "32",
        ".D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2} d=b32#, a:b64, b:b64, p:pred!, sa:imm, sb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sync.aligned",
        "32",
        ".D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2} d=b32#, a:b32#, b:b64, p:pred!, sa:imm, sb:imm"
    )),
    in_memory(entry!(
        integers,
        "wgmma.mma_async.sync.aligned",
        "32",
        ".satfinite?.D{s32}.A{u8,s8}.B{u8,s8} d=b32#, a:b64, b:b64, p:pred!"
    )),
    in_registers(entry!(
        integers,
        "wgmma.mma_async.sync.aligned",
        "32",
        ".satfinite?.D{s32}.A{u8,s8}.B{u8,s8} d=b32#, a:b32#, b:b64, p:pred!"
    )),
    in_memory(entry!(
        integers,
        "wgmma.mma_async.sync.aligned",
        "32",
        ".D{s32}.A{u8,s8}.B{u8,s8}.satfinite? d=b32#, a:b64, b:b64, p:pred!"
    )),
    in_registers(entry!(
        integers,
        "wgmma.mma_async.sync.aligned",
        "32",
        ".D{s32}.A{u8,s8}.B{u8,s8}.satfinite? d=b32#, a:b32#, b:b64, p:pred!"
    )),
    in_memory(entry!(
        integers,
        "wgmma.mma_async.sync.aligned",
        "256",
        ".D{s32}.A{b1}.B{b1}.op{and}.popc d=b32#, a:b64, b:b64, p:pred!"
    )),
    in_registers(entry!(
        integers,
        "wgmma.mma_async.sync.aligned",
        "256",
        ".D{s32}.A{b1}.B{b1}.op{and}.popc d=b32#, a:b32#, b:b64, p:pred!"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned",
        "32",
        ".D{f16,f32}.A{f16}.B{f16} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm, ta:imm, tb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned",
        "32",
        ".D{f16,f32}.A{f16}.B{f16} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm, tb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned",
        "32",
        ".D{f32}.A{bf16}.B{bf16} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm, ta:imm, tb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned",
        "32",
        ".D{f32}.A{bf16}.B{bf16} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm, tb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned",
        "16",
        ".D{f32}.A{tf32}.B{tf32} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned",
        "16",
        ".D{f32}.A{tf32}.B{tf32} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned",
        "64",
        ".D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned",
        "64",
        ".D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm"
    )),
    in_memory(entry!(
        integers,
        "wgmma.mma_async.sp.sync.aligned",
        "64",
        ".satfinite?.D{s32}.A{u8,s8}.B{u8,s8} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!"
    )),
    in_registers(entry!(
        integers,
        "wgmma.mma_async.sp.sync.aligned",
        "64",
        ".satfinite?.D{s32}.A{u8,s8}.B{u8,s8} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!"
    )),
];

/// Both factors are in shared memory.
const fn in_memory(text: &'static str) -> Form {
    form(text, |x| multiply(x, true)).effect().registers(registers).since(8, 0, 90)
}

/// The first factor is in registers.
const fn in_registers(text: &'static str) -> Form {
    form(text, |x| multiply(x, false)).effect().registers(registers).since(8, 0, 90)
}

/// What one warp does for eight columns.
fn described(chosen: &Chosen) -> MatrixMultiply {
    let word = |slot| chosen.word(slot).unwrap_or("");
    let [_, _, k] = dimensions(word("shape"));
    let sum = accumulator(word("D"));
    MatrixMultiply {
        warpgroup: true,
        saturate: chosen.has("satfinite"),
        and: word("op") == "and",
        sparse: chosen.has("sp").then_some(0),
        ..MatrixMultiply::new(16, k, element(word("A")), element(word("B")), sum, sum)
    }
}

/// Steps of eight columns.
fn column_blocks(chosen: &Chosen) -> usize {
    let [_, n, _] = dimensions(chosen.word("shape").unwrap_or(""));
    usize::from(n / 8)
}

fn registers(chosen: &Chosen, operand: &str) -> usize {
    let op = described(chosen);
    match operand {
        "a" => op.a_registers(),
        _ => column_blocks(chosen) * op.d_registers(),
    }
}

/// A factor in shared memory: its rows are those of the first factor, or the columns of the second.
struct Factor {
    start: Value,
    /// Bytes between neighbouring pieces along a row, and from eight rows to the next eight.
    leading: Value,
    stride: Value,
    /// Bytes that a row of a piece has: 16, or as many as are permuted.
    width: Value,
    /// Which of the three bits above the units of 128 bytes go into the number of the 16-byte unit.
    permuted: Value,
    /// Not permuted at all.
    plain: Value,
    /// A row's elements stand side by side, rather than a column's.
    by_row: bool,
    element: Element,
}

impl Factor {
    fn new(x: &mut Expander<'_, '_>, name: &str, element: Element, by_row: bool) -> Factor {
        let descriptor = x.src(name);
        let field = |x: &mut Expander<'_, '_>, at: u32| {
            let value = x.shift_imm(Shift::RightU, descriptor, at);
            let value = x.fit(value, Type::I32);
            let value = x.int_imm(IntBinary::And, value, 0x3fff);
            x.shift_imm(Shift::Left, value, 4)
        };
        let (start, leading, stride) = (field(x, 0), field(x, 16), field(x, 32));
        let mode = x.shift_imm(Shift::RightU, descriptor, 62);
        let mode = x.fit(mode, Type::I32);
        let plain = x.cmp_imm(IntCmp::Eq, mode, 0);
        // Modes 1, 2, 3 permute 128, 64, 32 bytes.
        let (widest, unit) = (x.imm(Type::I32, 256), x.imm(Type::I32, 16));
        let wide = x.shift(Shift::RightU, widest, mode);
        let width = x.select(plain, unit, wide);
        let units = x.shift_imm(Shift::RightU, width, 4);
        let permuted = x.int_imm(IntBinary::Sub, units, 1);
        Factor { start, leading, stride, width, permuted, plain, by_row, element }
    }

    /// The address of an element in the shared window.
    fn address(&self, x: &mut Expander<'_, '_>, row: Value, column: Value) -> Value {
        let shift = match self.element {
            Element::TF32 => 2,
            Element::F16 | Element::BF16 => 1,
            _ => 0,
        };
        // Bytes along what stands side by side, and the position across.
        let (along, across) = if self.by_row { (column, row) } else { (row, column) };
        let along = match self.element {
            Element::B1 => x.shift_imm(Shift::RightU, along, 3),
            _ => x.shift_imm(Shift::Left, along, shift),
        };
        let (next_along, next_across) = match self.by_row {
            true => (self.leading, self.stride),
            // Without permutation the two distances of such a factor change places.
            false => (
                x.select(self.plain, self.stride, self.leading),
                x.select(self.plain, self.leading, self.stride),
            ),
        };
        let piece = x.int(IntBinary::DivU, along, self.width);
        let inside = x.int(IntBinary::RemU, along, self.width);
        let eight = x.shift_imm(Shift::RightU, across, 3);
        let line = x.int_imm(IntBinary::And, across, 7);
        let terms = [
            x.int(IntBinary::Mul, piece, next_along),
            x.int(IntBinary::Mul, eight, next_across),
            x.int(IntBinary::Mul, line, self.width),
            inside,
        ];
        let address = terms.into_iter().fold(self.start, |sum, term| x.int(IntBinary::Add, sum, term));
        let upper = x.shift_imm(Shift::RightU, address, 7);
        let upper = x.int(IntBinary::And, upper, self.permuted);
        let upper = x.shift_imm(Shift::Left, upper, 4);
        x.int(IntBinary::Xor, address, upper)
    }

    /// The register whose first element is at (row, column), and which goes on along the row.
    fn register(&self, x: &mut Expander<'_, '_>, row: Value, column: Value) -> Value {
        let access = Access::weak(Space::Shared, 0);
        if self.by_row {
            let address = self.address(x, row, column);
            return x.op_ty(Op::Load(access), &[address], Type::I32);
        }
        let halves = [0, 1].map(|half| {
            let column = x.int_imm(IntBinary::Add, column, half);
            let address = self.address(x, row, column);
            let element = x.op_ty(Op::Load(access), &[address], Type::I16);
            x.zext(element, Type::I32)
        });
        join(x, halves)
    }
}

/// Signs of all elements of a register.
fn signs(element: Element) -> u64 {
    match element {
        Element::F16 | Element::BF16 => 0x8000_8000,
        Element::TF32 => 0x8000_0000,
        _ => 0x8080_8080,
    }
}

fn multiply(x: &mut Expander<'_, '_>, a_in_memory: bool) {
    let mut op = described(x.chosen());
    let metadata = op.sparse.map(|_| x.src("e"));
    if let Some(selector) = &mut op.sparse {
        *selector = x.number("f") as u8;
    }
    let lane = x.special(SpecialReg::LaneId);
    let outer = x.shift_imm(Shift::RightU, lane, 2);
    let quarter = x.int_imm(IntBinary::And, lane, 3);
    let per_register = 32 / op.a.bits() as u64;
    let inner = x.int_imm(IntBinary::Mul, quarter, per_register);
    let by_row = |x: &mut Expander<'_, '_>, name| x.operand(name).is_none() || x.number(name) == 0;

    let mut a = if a_in_memory {
        let by_row = by_row(x, "ta");
        let factor = Factor::new(x, "a", op.a, by_row);
        let warp = x.special(SpecialReg::WarpId);
        let warp = x.int_imm(IntBinary::And, warp, 3);
        let first = x.shift_imm(Shift::Left, warp, 4);
        let first = x.int(IntBinary::Add, first, outer);
        (0..op.a_registers() as u64)
            .map(|register| {
                let row = x.int_imm(IntBinary::Add, first, 8 * (register % 2));
                let column = x.int_imm(IntBinary::Add, inner, register / 2 * 4 * per_register);
                factor.register(x, row, column)
            })
            .collect()
    } else {
        x.src_lanes("a", Type::I32)
    };
    let negative = |x: &mut Expander<'_, '_>, name| x.operand(name).is_some() && x.number(name) as i32 == -1;
    if negative(x, "sa") != negative(x, "sb") {
        for register in &mut a {
            *register = x.int_imm(IntBinary::Xor, *register, signs(op.a));
        }
    }

    let by_row = by_row(x, "tb");
    let factor = Factor::new(x, "b", op.b, by_row);
    let accumulates = x.src_as("p", Type::Pred);
    let sums = x.src_lanes("d", op.c.register());
    let zero = x.imm(op.c.register(), 0);
    let mut d = Vec::new();
    for (block, sums) in sums.chunks(op.c_registers()).enumerate() {
        let mut args = a.clone();
        let row = x.int_imm(IntBinary::Add, outer, 8 * block as u64);
        for register in 0..op.b_registers() as u64 {
            let column = x.int_imm(IntBinary::Add, inner, register * 4 * per_register);
            args.push(factor.register(x, row, column));
        }
        for sum in sums {
            args.push(x.select(accumulates, *sum, zero));
        }
        args.extend(metadata);
        d.extend(x.body.b.insts(Op::MatrixMultiply(op), &args, &op.results()));
    }
    let ty = x.ty_of("d");
    x.set_lanes("d", ty, &d);
}

#[cfg(test)]
mod tests {
    use super::super::syntax::Syntax;
    use super::*;

    #[test]
    fn every_product_goes_up_to_256_columns() {
        for form in FORMS.iter().filter(|form| form.text.contains("shape")) {
            let syntax = Syntax::parse(form.text).expect("an entry");
            assert!(syntax.words().any(|word| word.starts_with("m64n256k")), "{}", form.text);
        }
    }
}
