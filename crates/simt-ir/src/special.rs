//! Special registers.

use crate::Type;

/// Special registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "PTX's registers by name; `Axis` counts x, y, z from 0")]
pub enum SpecialReg {
    Tid(u8),
    Ntid(u8),
    CtaId(u8),
    NctaId(u8),
    LaneId,
    WarpId,
    NwarpId,
    SmId,
    NsmId,
    GridId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    TotalSmemSize,
    AggrSmemSize,
    DynamicSmemSize,
    /// Begin, end, size, and from 3 on the numbered ones.
    ReservedSmemOffset(u8),
    ClusterId(u8),
    NclusterId(u8),
    ClusterCtaId(u8),
    ClusterNctaId(u8),
    ClusterCtaRank,
    ClusterNctaRank,
    IsExplicitCluster,
    EnvReg(u8),
    Pm(u8),
    CurrentGraphExec,
}

impl SpecialReg {
    /// Whether this is about a lane's number in its warp.
    pub fn is_of_lane(self) -> bool {
        matches!(
            self,
            SpecialReg::LaneId
                | SpecialReg::LanemaskEq
                | SpecialReg::LanemaskLe
                | SpecialReg::LanemaskLt
                | SpecialReg::LanemaskGe
                | SpecialReg::LanemaskGt
        )
    }

    /// Whether two reads in one thread may differ.
    pub fn is_counter(self) -> bool {
        matches!(
            self,
            SpecialReg::Clock
                | SpecialReg::ClockHi
                | SpecialReg::Clock64
                | SpecialReg::GlobalTimer
                | SpecialReg::GlobalTimerLo
                | SpecialReg::GlobalTimerHi
                | SpecialReg::Pm(_)
        )
    }

    /// The register's type.
    pub fn ty(self) -> Type {
        match self {
            SpecialReg::Clock64
            | SpecialReg::GlobalTimer
            | SpecialReg::GridId
            | SpecialReg::CurrentGraphExec => Type::I64,
            SpecialReg::IsExplicitCluster => Type::Pred,
            _ => Type::I32,
        }
    }
}
