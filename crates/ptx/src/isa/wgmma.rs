//! `wgmma`: products of four warps together, with factors in shared memory.
//!
//! Each warp multiplies its own 16 of the 64 rows as soon as it comes to the instruction; so there
//! is nothing left to wait for. Its lanes load their parts of the factors, as for any product of a warp. A factor in shared memory is named by a descriptor: where it starts, how far apart its
//! pieces are, and how the 16-byte units of a row are permuted (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared
//! Memory Layout").

use simt_ir::matrix::{InMemory, MatrixMultiply};
use simt_ir::{Access, IntBinary, IntCmp, Op, Refusal, Shift, Space, SpecialReg, Type, Value};

use super::matrix::{accumulator, dimensions, element, join};
use super::rules::number;
use super::syntax::Chosen;
use super::{Form, form};
use crate::lower::expander::Expander;
use crate::resolve::Operand;

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
    form("wgmma.fence.sync.aligned?", only_whole_groups).effect().since(8, 0, 90),
    form("wgmma.commit_group.sync.aligned?", |_| ()).effect().since(8, 0, 90),
    form("wgmma.wait_group.sync.aligned? n:imm", |_| ()).effect().since(8, 0, 90).only_with(pending),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sync.aligned?",
        "16",
        ".D{f16,f32}.A{f16}.B{f16} d=b32#, a:b64, b:b64, p:pred!, sa:imm, sb:imm, ta:imm, tb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sync.aligned?",
        "16",
        ".D{f16,f32}.A{f16}.B{f16} d=b32#, a:b32#, b:b64, p:pred!, sa:imm, sb:imm, tb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sync.aligned?",
        "16",
        ".D{f32}.A{bf16}.B{bf16} d=b32#, a:b64, b:b64, p:pred!, sa:imm, sb:imm, ta:imm, tb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sync.aligned?",
        "16",
        ".D{f32}.A{bf16}.B{bf16} d=b32#, a:b32#, b:b64, p:pred!, sa:imm, sb:imm, tb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sync.aligned?",
        "8",
        ".D{f32}.A{tf32}.B{tf32} d=b32#, a:b64, b:b64, p:pred!, sa:imm, sb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sync.aligned?",
        "8",
        ".D{f32}.A{tf32}.B{tf32} d=b32#, a:b32#, b:b64, p:pred!, sa:imm, sb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sync.aligned?",
        "32",
        ".D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2} d=b32#, a:b64, b:b64, p:pred!, sa:imm, sb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sync.aligned?",
        "32",
        ".D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2} d=b32#, a:b32#, b:b64, p:pred!, sa:imm, sb:imm"
    )),
    in_memory(entry!(
        integers,
        "wgmma.mma_async.sync.aligned?",
        "32",
        ".satfinite?.D{s32}.A{u8,s8}.B{u8,s8} d=b32#, a:b64, b:b64, p:pred!"
    )),
    in_registers(entry!(
        integers,
        "wgmma.mma_async.sync.aligned?",
        "32",
        ".satfinite?.D{s32}.A{u8,s8}.B{u8,s8} d=b32#, a:b32#, b:b64, p:pred!"
    )),
    in_memory(entry!(
        integers,
        "wgmma.mma_async.sync.aligned?",
        "32",
        ".D{s32}.A{u8,s8}.B{u8,s8}.satfinite? d=b32#, a:b64, b:b64, p:pred!"
    )),
    in_registers(entry!(
        integers,
        "wgmma.mma_async.sync.aligned?",
        "32",
        ".D{s32}.A{u8,s8}.B{u8,s8}.satfinite? d=b32#, a:b32#, b:b64, p:pred!"
    )),
    in_memory(entry!(
        integers,
        "wgmma.mma_async.sync.aligned?",
        "256",
        ".D{s32}.A{b1}.B{b1}.op{and}.popc d=b32#, a:b64, b:b64, p:pred!"
    )),
    in_registers(entry!(
        integers,
        "wgmma.mma_async.sync.aligned?",
        "256",
        ".D{s32}.A{b1}.B{b1}.op{and}.popc d=b32#, a:b32#, b:b64, p:pred!"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned?",
        "32",
        ".D{f16,f32}.A{f16}.B{f16} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm, ta:imm, tb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned?",
        "32",
        ".D{f16,f32}.A{f16}.B{f16} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm, tb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned?",
        "32",
        ".D{f32}.A{bf16}.B{bf16} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm, ta:imm, tb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned?",
        "32",
        ".D{f32}.A{bf16}.B{bf16} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm, tb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned?",
        "16",
        ".D{f32}.A{tf32}.B{tf32} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned?",
        "16",
        ".D{f32}.A{tf32}.B{tf32} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm"
    )),
    in_memory(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned?",
        "64",
        ".D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm"
    )),
    in_registers(entry!(
        floats,
        "wgmma.mma_async.sp.sync.aligned?",
        "64",
        ".D{f16,f32}.A{e4m3,e5m2}.B{e4m3,e5m2} d=b32#, a:b32#, b:b64, e:b32, f:imm, p:pred!, sa:imm, sb:imm"
    )),
    in_memory(entry!(
        integers,
        "wgmma.mma_async.sp.sync.aligned?",
        "64",
        ".satfinite?.D{s32}.A{u8,s8}.B{u8,s8} d=b32#, a:b64, b:b64, e:b32, f:imm, p:pred!"
    )),
    in_registers(entry!(
        integers,
        "wgmma.mma_async.sp.sync.aligned?",
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

/// What one warp does.
fn described(chosen: &Chosen) -> MatrixMultiply {
    let word = |slot| chosen.word(slot).unwrap_or("");
    let [_, n, k] = dimensions(word("shape"));
    let sum = accumulator(word("D"));
    MatrixMultiply {
        warpgroup: true,
        eights: (n / 8) as u8,
        saturate: chosen.has("satfinite"),
        and: word("op") == "and",
        sparse: chosen.has("sp").then_some(0),
        ..MatrixMultiply::new(16, k, element(word("A")), element(word("B")), sum, sum)
    }
}

fn registers(chosen: &Chosen, operand: &str) -> usize {
    let op = described(chosen);
    match operand {
        "a" => op.a_registers(),
        _ => op.d_registers(),
    }
}

/// A factor in shared memory: its rows are those of the first factor, or the columns of the second.
///
/// Its units of 16 bytes lie in lines, eight to a piece. What stands side by side in memory goes on from unit to unit, what does not from
/// line to line; so the place of an element is a unit and bytes within it, and a group of eight with a line of that.
struct Factor {
    start: Value,
    /// Bytes from a piece to that of the next units, and to that of the next eight lines.
    next_units: Value,
    next_eight: Value,
    /// Units of a line, as a power of two, and less one: these bits of an address's 128-byte number permute the units, counted
    /// from the base.
    line_shift: Value,
    unit_mask: Value,
    base: Value,
    /// A row's elements stand side by side, rather than a column's.
    by_row: bool,
}

impl Factor {
    fn new(x: &mut Expander<'_, '_>, name: &str, by_row: bool) -> Factor {
        let descriptor = x.src(name);
        let field = |x: &mut Expander<'_, '_>, at: u32| {
            let value = x.shift_imm(Shift::RightU, descriptor, at);
            let value = x.fit(value, Type::I32);
            let value = x.int_imm(IntBinary::And, value, 0x3fff);
            x.shift_imm(Shift::Left, value, 4)
        };
        let (start, leading, stride) = (field(x, 0), field(x, 16), field(x, 32));
        let base = x.shift_imm(Shift::RightU, descriptor, 49);
        let base = x.fit(base, Type::I32);
        let mode = x.shift_imm(Shift::RightU, descriptor, 62);
        let mode = x.fit(mode, Type::I32);
        let plain = x.cmp_imm(IntCmp::Eq, mode, 0);
        // Modes 1, 2, 3 permute 8, 4, 2 units.
        let (four, one, zero) = (x.imm(Type::I32, 4), x.imm(Type::I32, 1), x.imm(Type::I32, 0));
        let shift = x.int(IntBinary::Sub, four, mode);
        let line_shift = x.select(plain, zero, shift);
        let units = x.shift(Shift::Left, one, line_shift);
        let unit_mask = x.int_imm(IntBinary::Sub, units, 1);
        let (next_units, next_eight) = match by_row {
            true => (leading, stride),
            // Without permutation the two distances of such a factor change places.
            false => (x.select(plain, stride, leading), x.select(plain, leading, stride)),
        };
        Factor { start, next_units, next_eight, line_shift, unit_mask, base, by_row }
    }

    /// Where the line of a group of eight is, with bytes within a unit.
    fn line(&self, x: &mut Expander<'_, '_>, line: Value, within: Value) -> Value {
        let line = x.shift_imm(Shift::Left, line, 4);
        let line = x.shift(Shift::Left, line, self.line_shift);
        let line = x.int(IntBinary::Add, line, within);
        x.int(IntBinary::Add, self.start, line)
    }

    /// The address in the shared window of what is at that place of a line in this unit and group of eight.
    fn address(&self, x: &mut Expander<'_, '_>, line: Value, unit: Value, eight: Value) -> Value {
        let piece = x.shift(Shift::RightU, unit, self.line_shift);
        let inside = x.int(IntBinary::And, unit, self.unit_mask);
        let terms = [
            x.int(IntBinary::Mul, piece, self.next_units),
            x.int(IntBinary::Mul, eight, self.next_eight),
            x.shift_imm(Shift::Left, inside, 4),
        ];
        let address = terms.into_iter().reduce(|sum, term| x.int(IntBinary::Add, sum, term));
        let address = x.int(IntBinary::Add, line, address.expect("there are terms"));
        let upper = x.shift_imm(Shift::RightU, address, 7);
        let upper = x.int(IntBinary::Sub, upper, self.base);
        let upper = x.int(IntBinary::And, upper, self.unit_mask);
        let upper = x.shift_imm(Shift::Left, upper, 4);
        x.int(IntBinary::Xor, address, upper)
    }

    /// The registers of a lane: each that of a group of eight rows and of a group of columns that takes 16 bytes of a row.
    fn registers(&self, x: &mut Expander<'_, '_>, groups: &[(Value, Value)]) -> Vec<Value> {
        let access = Access::weak(Space::Shared, 0);
        let lane = x.special(SpecialReg::LaneId);
        let outer = x.shift_imm(Shift::RightU, lane, 2);
        let quarter = x.int_imm(IntBinary::And, lane, 3);
        if self.by_row {
            let within = x.shift_imm(Shift::Left, quarter, 2);
            let line = self.line(x, outer, within);
            let load = |(rows, columns): &(Value, Value)| {
                let address = self.address(x, line, *columns, *rows);
                x.op_ty(Op::Load(access), &[address], Type::I32)
            };
            return groups.iter().map(load).collect();
        }
        let within = x.shift_imm(Shift::Left, outer, 1);
        let first = x.shift_imm(Shift::Left, quarter, 1);
        let second = x.int_imm(IntBinary::Add, first, 1);
        let lines = [first, second].map(|line| self.line(x, line, within));
        let load = |(rows, columns): &(Value, Value)| {
            let halves = lines.map(|line| {
                let address = self.address(x, line, *rows, *columns);
                let element = x.op_ty(Op::Load(access), &[address], Type::I16);
                x.zext(element, Type::I32)
            });
            join(x, halves)
        };
        groups.iter().map(load).collect()
    }
}

fn pending(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    let negative = number(operands, 0).is_none_or(|count| count > i64::MAX as u64);
    if negative { Err("no negative number of groups may be pending") } else { Ok(()) }
}

/// Four warps come together: without the others, which the block may lack, it is an illegal instruction. On an H200 it is one too where a
/// warp of the four has exited or goes around it, before or after, and where lanes go around it that have not exited it does not end. PTX
/// leaves open what happens then; here every warp multiplies by itself and does not learn of it.
fn only_whole_groups(x: &mut Expander<'_, '_>) {
    let warp = x.special(SpecialReg::WarpId);
    let last = x.int_imm(IntBinary::Or, warp, 3);
    let first_thread = x.shift_imm(Shift::Left, last, 5);
    let [width, height, depth] = [0, 1, 2].map(|axis| x.special(SpecialReg::Ntid(axis)));
    let slice = x.int(IntBinary::Mul, width, height);
    let threads = x.int(IntBinary::Mul, slice, depth);
    let alone = x.cmp(IntCmp::GeU, first_thread, threads);
    x.body.b.effect(Op::Refuse(Refusal::Illegal), &[alone]);
}

fn multiply(x: &mut Expander<'_, '_>, a_in_memory: bool) {
    only_whole_groups(x);
    let mut op = described(x.chosen());
    let metadata = op.sparse.map(|_| x.src("e"));
    if let Some(selector) = &mut op.sparse {
        *selector = x.number("f") as u8;
    }
    let by_row = |x: &mut Expander<'_, '_>, name| x.operand(name).is_none() || x.number(name) == 0;

    let (a_by_row, b_by_column) = (a_in_memory.then(|| by_row(x, "ta")), by_row(x, "tb"));
    let mut a = if let Some(by_row) = a_by_row {
        let factor = Factor::new(x, "a", by_row);
        let warp = x.special(SpecialReg::WarpId);
        let warp = x.int_imm(IntBinary::And, warp, 3);
        let first = x.shift_imm(Shift::Left, warp, 1);
        let groups: Vec<(Value, Value)> = (0..op.a_registers() as u64)
            .map(|register| (x.int_imm(IntBinary::Add, first, register % 2), x.imm(Type::I32, register / 2)))
            .collect();
        factor.registers(x, &groups)
    } else {
        x.src_lanes("a", Type::I32)
    };
    let negative = |x: &mut Expander<'_, '_>, name| x.operand(name).is_some() && x.number(name) as i32 == -1;
    let negated = negative(x, "sa") != negative(x, "sb");
    if negated {
        for register in &mut a {
            *register = x.int_imm(IntBinary::Xor, *register, op.a.signs());
        }
    }

    op.in_memory = Some(InMemory { a_by_row, b_by_column, negated });
    let factor = Factor::new(x, "b", b_by_column);
    let accumulates = x.src_as("p", Type::Pred);
    let sums = x.src_lanes("d", op.c.register());
    let zero = x.imm(op.c.register(), 0);
    let each = op.b_registers() as u64 / u64::from(op.eights);
    let groups: Vec<(Value, Value)> = (0..op.b_registers() as u64)
        .map(|register| (x.imm(Type::I32, register / each), x.imm(Type::I32, register % each)))
        .collect();
    let mut args = a;
    args.extend(factor.registers(x, &groups));
    args.extend(sums.into_iter().map(|sum| x.select(accumulates, sum, zero)).collect::<Vec<_>>());
    args.extend(metadata);
    let b_descriptor = x.src("b");
    args.extend([if a_in_memory { x.src("a") } else { b_descriptor }, b_descriptor]);
    let d = x.body.b.insts(Op::MatrixMultiply(op), &args, &op.results());
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
            assert!(
                syntax.slots.iter().flat_map(|slot| slot.words()).any(|word| word.starts_with("m64n256k")),
                "{}",
                form.text
            );
        }
    }
}
