//! What the IR calls the special registers.

use simt_ir::SpecialReg;

use crate::special::SpecialRegister;

/// The register, or element `axis` (from 0) of it.
pub(crate) fn register(register: SpecialRegister, axis: u8) -> SpecialReg {
    match register {
        SpecialRegister::Tid => SpecialReg::Tid(axis),
        SpecialRegister::Ntid => SpecialReg::Ntid(axis),
        SpecialRegister::Ctaid => SpecialReg::CtaId(axis),
        SpecialRegister::Nctaid => SpecialReg::NctaId(axis),
        SpecialRegister::Laneid => SpecialReg::LaneId,
        SpecialRegister::Warpid => SpecialReg::WarpId,
        SpecialRegister::Nwarpid => SpecialReg::NwarpId,
        SpecialRegister::Smid => SpecialReg::SmId,
        SpecialRegister::Nsmid => SpecialReg::NsmId,
        SpecialRegister::Gridid => SpecialReg::GridId,
        SpecialRegister::IsExplicitCluster => SpecialReg::IsExplicitCluster,
        SpecialRegister::Clusterid => SpecialReg::ClusterId(axis),
        SpecialRegister::Nclusterid => SpecialReg::NclusterId(axis),
        SpecialRegister::ClusterCtaid => SpecialReg::ClusterCtaId(axis),
        SpecialRegister::ClusterNctaid => SpecialReg::ClusterNctaId(axis),
        SpecialRegister::ClusterCtarank => SpecialReg::ClusterCtaRank,
        SpecialRegister::ClusterNctarank => SpecialReg::ClusterNctaRank,
        SpecialRegister::LanemaskEq => SpecialReg::LanemaskEq,
        SpecialRegister::LanemaskLe => SpecialReg::LanemaskLe,
        SpecialRegister::LanemaskLt => SpecialReg::LanemaskLt,
        SpecialRegister::LanemaskGe => SpecialReg::LanemaskGe,
        SpecialRegister::LanemaskGt => SpecialReg::LanemaskGt,
        SpecialRegister::Clock => SpecialReg::Clock,
        SpecialRegister::ClockHi => SpecialReg::ClockHi,
        SpecialRegister::Clock64 => SpecialReg::Clock64,
        SpecialRegister::Pm(n) | SpecialRegister::Pm64(n) => SpecialReg::Pm(n),
        SpecialRegister::Envreg(n) => SpecialReg::EnvReg(n),
        SpecialRegister::Globaltimer => SpecialReg::GlobalTimer,
        SpecialRegister::GlobaltimerLo => SpecialReg::GlobalTimerLo,
        SpecialRegister::GlobaltimerHi => SpecialReg::GlobalTimerHi,
        SpecialRegister::ReservedSmemOffsetBegin => SpecialReg::ReservedSmemOffset(0),
        SpecialRegister::ReservedSmemOffsetEnd => SpecialReg::ReservedSmemOffset(1),
        SpecialRegister::ReservedSmemOffsetCap => SpecialReg::ReservedSmemOffset(2),
        SpecialRegister::ReservedSmemOffset(n) => SpecialReg::ReservedSmemOffset(3 + n),
        SpecialRegister::TotalSmemSize => SpecialReg::TotalSmemSize,
        SpecialRegister::AggrSmemSize => SpecialReg::AggrSmemSize,
        SpecialRegister::DynamicSmemSize => SpecialReg::DynamicSmemSize,
        SpecialRegister::CurrentGraphExec => SpecialReg::CurrentGraphExec,
    }
}
