//! What an operation does besides computing: whether it may be repeated or moved, with whom it meets, what memory it accesses.

use crate::{Access, Op};

impl Op {
    /// Whether the result depends on the operands alone, the same in every thread, and nothing else happens:
    /// such an operation may be repeated, moved or dropped.
    pub fn is_pure(&self) -> bool {
        match self {
            Op::Const(_)
            | Op::Int(_)
            | Op::IntUnary(_)
            | Op::Shift(_)
            | Op::FunnelShift { .. }
            | Op::Prmt
            | Op::DotBytes { .. }
            | Op::IntCmp(_)
            | Op::FloatCmp(_)
            | Op::Select
            | Op::Float(..)
            | Op::Fma(_)
            | Op::MinMax(_)
            | Op::FloatUnary(..)
            | Op::Approx { .. }
            | Op::Mufu(_)
            | Op::CanonNan
            | Op::Unanimous
            | Op::AnyLane
            | Op::Convert(_)
            | Op::GlobalAddr(_)
            | Op::FuncToken(_)
            | Op::LocalBase
            | Op::ToGeneric(_)
            | Op::FromGeneric(_)
            | Op::IsSpace(_) => true,
            Op::SpecialReg(reg) => !reg.is_counter(),
            Op::StackSave
            | Op::StackRestore
            | Op::Keep(_)
            | Op::Recall(_)
            | Op::Load(_)
            | Op::Store(_)
            | Op::Atomic(..)
            | Op::AtomicCas(_)
            | Op::MbarrierArrive { .. }
            | Op::Bulk(_)
            | Op::Fence { .. }
            | Op::Shuffle(_)
            | Op::Vote(_)
            | Op::MatchAny
            | Op::MatchAll
            | Op::Redux(_)
            | Op::MatrixMultiply(_)
            | Op::FirstLane
            | Op::FewLanes(_)
            | Op::ActiveMask
            | Op::Elect
            | Op::WarpSync
            | Op::Barrier { .. }
            | Op::ClusterBarrier(_)
            | Op::Call(_)
            | Op::CallIndirect(_)
            | Op::Syscall(_)
            | Op::Texture(_)
            | Op::Nanosleep
            | Op::GiveWay
            | Op::Refuse(_) => false,
        }
    }

    /// Whether lanes of a warp exchange values or wait for each other here: which lanes arrive together matters, so
    /// the operation must not be duplicated or moved across control flow.
    pub fn is_convergent(&self) -> bool {
        matches!(
            self,
            Op::Shuffle(_)
                | Op::Vote(_)
                | Op::MatchAny
                | Op::MatchAll
                | Op::Redux(_)
                | Op::MatrixMultiply(_)
                | Op::FirstLane
                | Op::FewLanes(_)
                | Op::ActiveMask
                | Op::Elect
                | Op::WarpSync
                | Op::Barrier { .. }
                | Op::ClusterBarrier(_)
                | Op::Call(_)
                | Op::CallIndirect(_)
        )
    }

    /// Whether threads meet others of their block or cluster here: the warp suspends.
    pub fn is_barrier(&self) -> bool {
        matches!(self, Op::Barrier { .. } | Op::ClusterBarrier(_))
    }

    /// The access of a memory operation.
    pub fn access(&self) -> Option<&Access> {
        match self {
            Op::Load(access)
            | Op::Store(access)
            | Op::Atomic(_, access)
            | Op::AtomicCas(access)
            | Op::MbarrierArrive { access, .. } => Some(access),
            _ => None,
        }
    }
    /// The position of the operand that names the lanes which take part, among so many operands: forms without `.sync` have none.
    pub fn member_mask(&self, operands: usize) -> Option<usize> {
        let at = match self {
            Op::Shuffle(_) => 3,
            Op::Vote(_) | Op::MatchAny | Op::MatchAll | Op::Redux(_) => 1,
            Op::Elect | Op::WarpSync => 0,
            _ => return None,
        };
        (at < operands).then_some(at)
    }
}
