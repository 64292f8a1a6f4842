//! Tests of accesses, made before the code for all lanes of a block.
//!
//! Beside each access, a test whether it is aligned and its index does not wrap parts the code: what one side loads is merged with what the other
//! does, so that it takes registers from there on, where it could be an operand in memory of what uses it. Code for all lanes has code for some
//! beside it (see [`full`](super::full)), which tests everything where it is: where one of the tests would fail, that runs.

use std::collections::HashSet;

use simt_ir::{Access, Block, Def, Op, Value as IrValue};

use super::function::Emitter;
use crate::llvm::{IntPredicate, Value};

/// What has been tested for the code being emitted.
#[derive(Default)]
pub(super) struct Ahead {
    /// Addresses whose indices do not wrap.
    in_range: HashSet<IrValue>,
    /// Addresses, with what is added to them, that are multiples of so many bytes.
    aligned: HashSet<(IrValue, i64, u32)>,
    /// Addresses of arrays that are apart from each other: see [`apart`](super::apart).
    pub(super) apart: HashSet<IrValue>,
}

impl Ahead {
    /// Whether the offsets of this address hold.
    pub(super) fn is_in_range(&self, address: IrValue) -> bool {
        self.in_range.contains(&address)
    }

    /// Whether accesses of so many bytes are aligned.
    pub(super) fn is_aligned(&self, address: IrValue, access: Access, bytes: u32) -> bool {
        self.aligned.contains(&(address, access.offset, bytes))
    }
}

impl<'c> Emitter<'_, 'c> {
    /// Tests at a block's beginning what it can of what the block's accesses would test. The result is true where all of it holds, which is then
    /// taken for granted until [`Self::ahead`] is emptied; nothing if there is nothing to test.
    pub(super) fn test_ahead(&mut self, block: Block) -> Option<Value<'c>> {
        let p = self.p;
        let mut tests = Vec::new();
        for inst in &p.func.block(block).insts {
            let data = p.func.inst(*inst);
            let (access, word) = match data.op {
                Op::Load(access) => (access, data.results[0]),
                Op::Store(access) => (access, data.args[1]),
                _ => continue,
            };
            let address = data.args[0];
            let bytes = self.lane_type(word).scalar_bits() / 8 * u32::from(access.lanes);
            self.test_range_ahead(address, block, &mut tests);
            self.test_alignment_ahead(address, access, bytes, block, &mut tests);
        }
        self.test_apart_ahead(block, &mut tests);
        tests.into_iter().reduce(|all, test| self.unit.b.and(all, test))
    }

    fn test_range_ahead(&mut self, address: IrValue, block: Block, tests: &mut Vec<Value<'c>>) {
        let p = self.p;
        let checks = p.shapes.checks(address);
        let is_base = |value: IrValue| !p.shapes.of(value).is_vector();
        if checks.is_empty()
            || !checks.iter().all(|check| {
                is_base(check.assumption.index) && self.is_known_at_start(check.assumption.index, block)
            })
        {
            return;
        }
        for check in checks {
            let base = self.natural(check.assumption.index);
            tests.push(self.stays_in_range(&check.assumption, base));
        }
        self.ahead.in_range.insert(address);
    }

    fn test_alignment_ahead(
        &mut self,
        address: IrValue,
        access: Access,
        bytes: u32,
        block: Block,
        tests: &mut Vec<Value<'c>>,
    ) {
        let Some(test) = self.alignment_test(address, access, bytes) else { return };
        if !test.is_scalar || !self.is_known_at_start(test.tested, block) {
            return;
        }
        let b = self.unit.b;
        let checked = self.natural(test.tested);
        let checked = self.offset(checked, test.offset);
        let low = b.and(checked, checked.ty().int_const(u64::from(bytes - 1)));
        tests.push(b.icmp(IntPredicate::Eq, low, low.ty().zero()));
        self.ahead.aligned.insert((address, access.offset, bytes));
    }

    /// Whether a value can be had where a block begins.
    fn is_known_at_start(&mut self, value: IrValue, block: Block) -> bool {
        let p = self.p;
        let is_own =
            matches!(p.func.def(value), Def::Result(..)) && p.def_block[value.index()] == Some(block);
        self.is_prologue(value) || !is_own && self.is_at_hand(value)
    }
}
