//! Elements out of a table that is small enough for registers.
//!
//! An index that is a byte can tell 256 places. Where that many bytes may be read, the table is four registers, and two instructions choose for 64
//! lanes what would be 64 loads: an image's levels that are made others, say, or boxes of a cipher. Words out of as many registers are chosen likewise: the
//! values of weights of four bits. Tables may be read if they lie in one page, as most do: of that page the lanes read anyway.

use kernel_abi::CompileError;
use simt_ir::{Access, Inst, Order, Space, Type as IrType};
use transform::facts::Facts;

use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use super::memory::Pattern;
use crate::llvm::{IntPredicate, Value};

/// Bytes of a register, and the most registers that a table takes: from more it takes as long to choose as to gather.
const REGISTER: u32 = 64;
const MOST: u32 = 4;

impl<'c> Emitter<'_, 'c> {
    /// Loads an element for each lane from a table by an index that tells few places, if the processor can choose among such elements.
    pub(super) fn load_from_table(
        &mut self,
        inst: Inst,
        access: Access,
        address: &Address<'c>,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        let p = self.p;
        let data = p.func.inst(inst);
        let (value, result) = (data.args[0], data.results[0]);
        let lane = self.lane_type(result);
        let (bits, cpu) = (lane.scalar_bits(), self.unit.machine.cpu());
        let chooses = cpu.vector_bits() == 8 * REGISTER && (bits > 8 || cpu.has("avx512vbmi"));
        if self.wants_less_code()
            || !chooses
            || access.lanes != 1
            || access.order != Order::Weak
            || access.space == Space::Local
            || !self.is_sure(value)
            || !matches!(self.pattern(address, bits / 8, 1, true), Pattern::Scattered | Pattern::Indexed(..))
            // Words that lie together come together.
            || bits > 8 && self.has_company(inst)
        {
            return Ok(false);
        }
        let (offset, moves) = self.before_moves(value);
        let size = bits / 8;
        let most = match Facts::new(&p.func, &p.cfg, &p.dom, self.unit.shape).range(offset) {
            (0.., most) if most < i64::from(MOST * REGISTER) => most as u32,
            _ => return Ok(false),
        };
        let b = self.unit.b;
        let registers = most / REGISTER + 1;
        let is_narrow = p.func.ty(value) == IrType::I32;
        let none = if is_narrow { self.unit.types.i32.zero() } else { self.unit.types.i64.zero() };
        let moved = moves.into_iter().fold(none, |sum, by| b.add(sum, self.natural(by)));
        let moved = self.offset(moved, access.offset);
        let start = b.add(self.in_window(moved, is_narrow, 0), self.window_scalar(access.space));
        // What is an element's place is one from there on, too.
        let misplaced = b.and(start, start.ty().int_const(u64::from(size) - 1));
        let is_aligned = b.icmp(IntPredicate::Eq, misplaced, start.ty().zero());
        let mut holds = b.and(is_aligned, self.in_one_page(start, registers * REGISTER));
        if is_narrow {
            // With an index such an address does not wrap.
            holds = b.and(holds, b.icmp(IntPredicate::Sge, moved, none));
        }
        if !self.is_full() {
            holds = b.and(holds, b.any(self.active()));
        }
        let offsets = self.vector(offset);
        let indices = b.lshr(offsets, offsets.ty().int_const(size.trailing_zeros().into()));
        let indices = b.int_resize(indices, lane.to_int(), false);
        let elements = self.either(
            holds,
            |this| {
                let chosen = this.choose_elements(start, registers, indices, mark);
                Ok(vec![b.bitcast(chosen, lane.vector(this.unit.lanes))])
            },
            |this| this.load_lanes(address, lane, 1, mark),
        )?;
        self.define(result, elements[0]);
        Ok(true)
    }

    /// The elements, as integers, that indices as wide tell of so many registers from here on.
    fn choose_elements(&self, start: Value<'c>, registers: u32, indices: Value<'c>, mark: Mark) -> Value<'c> {
        let b = self.unit.b;
        let element = indices.ty().scalar();
        let each = 8 * REGISTER / element.scalar_bits();
        let load = |at: u32| {
            let ptr = b.inttoptr(self.offset(start, (at * REGISTER).into()));
            self.loaded(element.vector(each), ptr, mark)
        };
        let table: Vec<Value<'c>> = (0..registers).map(load).collect();
        let choose = |indices: Value<'c>| {
            let chosen: Vec<Value<'c>> = table.chunks(2).map(|pair| self.chosen_of(pair, indices)).collect();
            match chosen[..] {
                [low, high] => {
                    // The instruction looks at the lower bits of an index.
                    let next = b.and(indices, indices.ty().int_const(u64::from(2 * each)));
                    b.select(b.icmp(IntPredicate::Ne, next, next.ty().zero()), high, low)
                }
                _ => chosen[0],
            }
        };
        let lanes = self.unit.lanes;
        let at_once = each.min(lanes);
        let parts = (0..lanes).step_by(at_once as usize).map(|at| choose(b.subvector(indices, at, at_once)));
        self.concatenated(parts.collect())
    }

    /// What indices tell of one register or two, by as many of their lower bits as that takes. They are as wide as the elements, and no more than a
    /// register has.
    pub(super) fn chosen_of(&self, registers: &[Value<'c>], indices: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let (ty, lanes) = (registers[0].ty(), indices.ty().lanes());
        if lanes < ty.lanes() {
            let own = |lane: u32| if lane < lanes { lane as i32 } else { -1 };
            let places: Vec<i32> = (0..ty.lanes()).map(own).collect();
            return b.subvector(self.chosen_of(registers, b.shuffle(indices, indices, &places)), 0, lanes);
        }
        let bits = ty.scalar().scalar_bits();
        match *registers {
            [low, high] => {
                let kind = match bits {
                    8 => "qi",
                    16 => "hi",
                    32 => "d",
                    _ => "q",
                };
                b.intrinsic(&format!("llvm.x86.avx512.vpermi2var.{kind}.512"), &[], &[low, indices, high])
            }
            _ if ty.lanes() * bits == 256 => {
                b.intrinsic("llvm.x86.avx2.permd", &[], &[registers[0], indices])
            }
            _ => {
                let kind = match bits {
                    8 => "qi",
                    16 => "hi",
                    32 => "si",
                    _ => "di",
                };
                b.intrinsic(&format!("llvm.x86.avx512.permvar.{kind}.512"), &[], &[registers[0], indices])
            }
        }
    }
}
