//! Bytes out of a table that is small enough for registers.
//!
//! An index that is a byte can tell 256 places. Where that many bytes may be read, the table is four registers, and two instructions choose for 64
//! lanes what would be 64 loads: an image's levels that are made others, say, or boxes of a cipher. They may be read if they lie in one page, as most
//! tables do: of that page the lanes read anyway.

use kernel_abi::CompileError;
use simt_ir::{Access, Inst, Order, Space, Type as IrType};
use transform::facts::Facts;

use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use super::memory::Pattern;
use crate::llvm::{IntPredicate, Value};

/// Bytes of a register.
const REGISTER: u32 = 64;

/// The most places that an index tells.
const MOST: i64 = 256;

impl<'c> Emitter<'_, 'c> {
    /// Loads a byte for each lane from a table by an index that is a byte, if the processor can choose among bytes.
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
        if self.wants_less_code()
            || !self.unit.machine.cpu().has("avx512vbmi")
            || lane.scalar_bits() != 8
            || access.lanes != 1
            || access.order != Order::Weak
            || access.space == Space::Local
            || !self.is_sure(value)
            || !matches!(self.pattern(address, 1, 1, true), Pattern::Scattered | Pattern::Indexed(..))
        {
            return Ok(false);
        }
        let (index, moves) = self.before_moves(value);
        let (0.., most @ ..MOST) = Facts::new(&p.func, &p.cfg, &p.dom, self.unit.shape).range(index) else {
            return Ok(false);
        };
        let b = self.unit.b;
        let registers = (most as u32 + REGISTER) / REGISTER;
        let is_narrow = p.func.ty(value) == IrType::I32;
        let none = if is_narrow { self.unit.types.i32.zero() } else { self.unit.types.i64.zero() };
        let moved = moves.into_iter().fold(none, |sum, by| b.add(sum, self.natural(by)));
        let moved = self.offset(moved, access.offset);
        let start = b.add(self.in_window(moved, is_narrow, 0), self.window_scalar(access.space));
        let mut holds = self.in_one_page(start, registers * REGISTER);
        if is_narrow {
            // With an index such an address does not wrap.
            holds = b.and(holds, b.icmp(IntPredicate::Sge, moved, none));
        }
        if !self.is_full() {
            holds = b.and(holds, b.any(self.active()));
        }
        let indices = self.vector(index);
        let indices = b.trunc(indices, self.unit.context().int(8));
        let elements = self.either(
            holds,
            |this| {
                let chosen = this.choose_bytes(start, registers, indices, mark);
                Ok(vec![b.bitcast(chosen, lane.vector(this.unit.lanes))])
            },
            |this| this.load_lanes(address, lane, 1, mark),
        )?;
        self.define(result, elements[0]);
        Ok(true)
    }

    /// The bytes that indices tell of so many registers from here on.
    fn choose_bytes(&self, start: Value<'c>, registers: u32, indices: Value<'c>, mark: Mark) -> Value<'c> {
        let b = self.unit.b;
        let i8 = self.unit.context().int(8);
        let load = |at: u32| {
            let ptr = b.inttoptr(self.offset(start, (at * REGISTER).into()));
            self.loaded(i8.vector(REGISTER), ptr, mark)
        };
        let table: Vec<Value<'c>> = (0..registers).map(load).collect();
        let lanes = self.unit.lanes;
        let choose = |indices: Value<'c>| {
            let of_two = |pair: &[Value<'c>]| match pair {
                [one] => b.intrinsic("llvm.x86.avx512.permvar.qi.512", &[], &[*one, indices]),
                _ => b.intrinsic("llvm.x86.avx512.vpermi2var.qi.512", &[], &[pair[0], indices, pair[1]]),
            };
            let chosen: Vec<Value<'c>> = table.chunks(2).map(of_two).collect();
            match chosen[..] {
                [low, high] => {
                    // The instruction looks at the lower bits of an index.
                    let is_high = b.icmp(IntPredicate::Slt, indices, indices.ty().zero());
                    b.select(is_high, high, low)
                }
                _ => chosen[0],
            }
        };
        if lanes < REGISTER {
            let own: Vec<i32> =
                (0..REGISTER).map(|lane| if lane < lanes { lane as i32 } else { -1 }).collect();
            return b.subvector(choose(b.shuffle(indices, indices, &own)), 0, lanes);
        }
        let parts =
            (0..lanes).step_by(REGISTER as usize).map(|at| choose(b.subvector(indices, at, REGISTER)));
        self.concatenated(parts.collect())
    }
}
