//! Local memory that lies as the lanes do.
//!
//! A thread's local memory is a window of its own, and an array that a program indexes by numbers that are the same for all threads, such as the
//! registers of an interpreter or the row of a table, would be gathered from as many windows as there are lanes. Where only accesses of one width
//! come there, and no address leaves the function's own hands, each element may lie next to that of the next lane, as it does on a GPU.

use simt_ir::{Cfg, Function, Op, Order, Space};

/// Whether the lanes' local windows may lie in each other, element by element: there are accesses to them, all of one width.
pub fn is_possible(func: &Function, cfg: &Cfg) -> bool {
    width(func, cfg).is_some_and(|bytes| matches!(bytes, 1 | 2 | 4 | 8))
}

/// The bytes of every element of local memory, if they are the same and only this function sees them.
fn width(func: &Function, cfg: &Cfg) -> Option<u32> {
    let mut found = None;
    for inst in cfg.order().iter().flat_map(|block| &func.block(*block).insts) {
        let data = func.inst(*inst);
        if data.op.access().is_some_and(|access| access.space == Space::Local) {
            let value = match data.op {
                Op::Load(access) if access.order == Order::Weak => data.results.first(),
                Op::Store(access) if access.order == Order::Weak => data.args.get(1),
                _ => None,
            };
            let bytes = func.ty(*value?).bits() / 8;
            if *found.get_or_insert(bytes) != bytes {
                return None;
            }
        }
        let lets_go = matches!(
            data.op,
            Op::ToGeneric(Space::Local)
                | Op::FromGeneric(Space::Local)
                | Op::IsSpace(_)
                | Op::Call(_)
                | Op::CallIndirect(_)
                | Op::StackSave
                | Op::StackRestore
        );
        if lets_go {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{Access, FunctionBuilder, Signature, Terminator, Type};

    fn interleaved(op: Option<Op>, second: Type) -> Option<u32> {
        let mut b = FunctionBuilder::new("k", Signature { params: vec![Type::I64], results: vec![] });
        let place = b.param(0);
        let access = Access::weak(Space::Local, 0);
        let first = b.inst(Op::Load(access), &[place], Type::I32);
        let value = b.constant(second, 1);
        b.effect(Op::Store(access), &[place, value]);
        if let Some(op) = op {
            b.inst(op, &[place], Type::I64);
        }
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, first]);
        b.terminate(Terminator::Return(vec![]));
        let func = b.finish();
        let cfg = Cfg::new(&func);
        width(&func, &cfg).filter(|_| is_possible(&func, &cfg))
    }

    #[test]
    fn elements_of_one_width_that_nobody_else_sees_lie_lane_by_lane() {
        assert_eq!(interleaved(None, Type::F32), Some(4));
        assert_eq!(interleaved(None, Type::I64), None, "of two widths");
        assert_eq!(
            interleaved(Some(Op::ToGeneric(Space::Local)), Type::F32),
            None,
            "a pointer may go anywhere"
        );
        assert_eq!(interleaved(Some(Op::ToGeneric(Space::Shared)), Type::F32), Some(4));
    }
}
