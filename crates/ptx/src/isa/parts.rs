//! Operands of which an instruction takes a part: bytes and halves of words.

use super::syntax::OperandSpec;
use super::{Checker, Problem, Ty};
use crate::ast;
use crate::resolve::{Operand, OperandKind, RegisterId};

impl Checker<'_> {
    /// A word, or a byte or half of it.
    pub(super) fn part(&self, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let (id, selected) = match &operand.kind {
            OperandKind::Immediate(value) if value.integer().is_some() => return Ok(()),
            OperandKind::Register(id) => (id, true),
            OperandKind::Component(id, ast::Component::Bytes(lanes)) => {
                (id, matches!(lanes.digits(), [digit] if *digit < 4))
            }
            OperandKind::Component(id, ast::Component::Halves(lanes)) => {
                (id, matches!(lanes.digits(), [digit] if *digit < 2))
            }
            _ => return self.mismatch(operand, "a word or a part of one is required"),
        };
        self.selection(operand, *id, selected)
    }

    /// A word, or a choice of `count` parts out of two words; of a destination any of its parts.
    pub(super) fn lanes(
        &self,
        spec: &OperandSpec,
        operand: &Operand<'_, '_>,
        count: u8,
    ) -> Result<(), Problem> {
        let (id, digits) = match (&operand.kind, count) {
            (OperandKind::Immediate(value), _) if !spec.written && value.integer().is_some() => return Ok(()),
            (OperandKind::Register(id), _) => (id, None),
            (OperandKind::Component(id, ast::Component::Halves(lanes)), 2)
            | (OperandKind::Component(id, ast::Component::Bytes(lanes)), 4) => (id, Some(lanes.digits())),
            _ => return self.mismatch(operand, "a word or a choice of its parts is required"),
        };
        let selected = match digits {
            Some(digits) if spec.written => digits.iter().all(|digit| *digit < count),
            Some(digits) => {
                digits.len() == usize::from(count) && digits.iter().all(|digit| *digit < 2 * count)
            }
            None => true,
        };
        self.selection(operand, *id, selected)
    }

    fn selection(&self, operand: &Operand<'_, '_>, id: RegisterId, selected: bool) -> Result<(), Problem> {
        let register = self.context.register(id);
        if register.vector.is_some() || !Ty::U32.accepts(register.ty, false) {
            self.mismatch(operand, "a register of 32 bits is required")
        } else if selected {
            Ok(())
        } else {
            self.mismatch(operand, "there is no such part")
        }
    }
}
