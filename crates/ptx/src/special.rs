//! The special registers: names, types, and what introduced them.

use std::collections::HashSet;

use crate::ast::{Type, Version};
use crate::lexer::{Lexer, TokenKind};

/// A predefined, read-only register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the PTX special register of the same spelling")]
pub enum SpecialRegister {
    Tid,
    Ntid,
    Laneid,
    Warpid,
    Nwarpid,
    Ctaid,
    Nctaid,
    Smid,
    Nsmid,
    Gridid,
    IsExplicitCluster,
    Clusterid,
    Nclusterid,
    ClusterCtaid,
    ClusterNctaid,
    ClusterCtarank,
    ClusterNctarank,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    /// `%pm0` to `%pm7`
    Pm(u8),
    /// `%pm0_64` to `%pm7_64`
    Pm64(u8),
    /// `%envreg0` to `%envreg31`
    Envreg(u8),
    Globaltimer,
    GlobaltimerLo,
    GlobaltimerHi,
    ReservedSmemOffsetBegin,
    ReservedSmemOffsetEnd,
    ReservedSmemOffsetCap,
    /// `%reserved_smem_offset_0` and `_1`
    ReservedSmemOffset(u8),
    TotalSmemSize,
    AggrSmemSize,
    DynamicSmemSize,
    CurrentGraphExec,
}

use SpecialRegister::*;

/// What is known about a special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name, with its `%`; without its number for the numbered ones.
    pub name: &'static str,
    /// Type of each element.
    pub ty: Type,
    /// Whether it has the elements `.x .y .z .w`.
    pub vector: bool,
    /// The PTX version that introduced it.
    pub version: Version,
    /// The first architecture that has it.
    pub sm: u32,
}

type Row = (SpecialRegister, &'static str, Type, bool, (u32, u32), u32);

/// Numbered ones stand here with the number 0.
const TABLE: [Row; 39] = [
    (Tid, "%tid", Type::U32, true, (1, 0), 10),
    (Ntid, "%ntid", Type::U32, true, (1, 0), 10),
    (Laneid, "%laneid", Type::U32, false, (1, 3), 10),
    (Warpid, "%warpid", Type::U32, false, (1, 3), 10),
    (Nwarpid, "%nwarpid", Type::U32, false, (2, 0), 20),
    (Ctaid, "%ctaid", Type::U32, true, (1, 0), 10),
    (Nctaid, "%nctaid", Type::U32, true, (1, 0), 10),
    (Smid, "%smid", Type::U32, false, (1, 3), 10),
    (Nsmid, "%nsmid", Type::U32, false, (2, 0), 20),
    (Gridid, "%gridid", Type::U64, false, (1, 0), 10),
    (IsExplicitCluster, "%is_explicit_cluster", Type::Pred, false, (7, 8), 90),
    (Clusterid, "%clusterid", Type::U32, true, (7, 8), 90),
    (Nclusterid, "%nclusterid", Type::U32, true, (7, 8), 90),
    (ClusterCtaid, "%cluster_ctaid", Type::U32, true, (7, 8), 90),
    (ClusterNctaid, "%cluster_nctaid", Type::U32, true, (7, 8), 90),
    (ClusterCtarank, "%cluster_ctarank", Type::U32, false, (7, 8), 90),
    (ClusterNctarank, "%cluster_nctarank", Type::U32, false, (7, 8), 90),
    (LanemaskEq, "%lanemask_eq", Type::U32, false, (2, 0), 20),
    (LanemaskLe, "%lanemask_le", Type::U32, false, (2, 0), 20),
    (LanemaskLt, "%lanemask_lt", Type::U32, false, (2, 0), 20),
    (LanemaskGe, "%lanemask_ge", Type::U32, false, (2, 0), 20),
    (LanemaskGt, "%lanemask_gt", Type::U32, false, (2, 0), 20),
    (Clock, "%clock", Type::U32, false, (1, 0), 10),
    (ClockHi, "%clock_hi", Type::U32, false, (5, 0), 20),
    (Clock64, "%clock64", Type::U64, false, (2, 0), 20),
    (Pm(0), "%pm", Type::U32, false, (1, 3), 10),
    (Pm64(0), "%pm", Type::U64, false, (4, 0), 50),
    (Envreg(0), "%envreg", Type::B32, false, (2, 1), 10),
    (Globaltimer, "%globaltimer", Type::U64, false, (3, 1), 30),
    (GlobaltimerLo, "%globaltimer_lo", Type::U32, false, (3, 1), 30),
    (GlobaltimerHi, "%globaltimer_hi", Type::U32, false, (3, 1), 30),
    (ReservedSmemOffsetBegin, "%reserved_smem_offset_begin", Type::B32, false, (7, 6), 80),
    (ReservedSmemOffsetEnd, "%reserved_smem_offset_end", Type::B32, false, (7, 6), 80),
    (ReservedSmemOffsetCap, "%reserved_smem_offset_cap", Type::B32, false, (7, 6), 80),
    (ReservedSmemOffset(0), "%reserved_smem_offset_", Type::B32, false, (7, 6), 80),
    (TotalSmemSize, "%total_smem_size", Type::U32, false, (4, 1), 20),
    (AggrSmemSize, "%aggr_smem_size", Type::U32, false, (8, 1), 90),
    (DynamicSmemSize, "%dynamic_smem_size", Type::U32, false, (4, 1), 20),
    (CurrentGraphExec, "%current_graph_exec", Type::U64, false, (8, 0), 50),
];

/// Every special register; of the numbered ones the first.
pub fn all() -> impl Iterator<Item = SpecialRegister> {
    TABLE.iter().map(|row| row.0)
}

/// The special registers that a text names; of the numbered ones the first.
pub fn used(source: &str) -> HashSet<SpecialRegister> {
    let mut lexer = Lexer::at(source, 0);
    let mut found = HashSet::new();
    loop {
        let token = lexer.next_token();
        if matches!(token.kind, TokenKind::End | TokenKind::Unterminated) {
            return found;
        }
        found.extend(SpecialRegister::from_name(token.span.text(source)).map(SpecialRegister::first));
    }
}

impl SpecialRegister {
    /// The special register of this name, which begins with `%`.
    pub fn from_name(name: &str) -> Option<SpecialRegister> {
        let numbered = |prefix: &str, suffix: &str, count: u8| {
            let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
            let canonical = digits == "0" || !digits.starts_with('0');
            let plain = digits.bytes().all(|b| b.is_ascii_digit()) && canonical;
            digits.parse::<u8>().ok().filter(|&n| plain && n < count)
        };
        if let Some(n) = numbered("%pm", "", 8) {
            return Some(Pm(n));
        }
        if let Some(n) = numbered("%pm", "_64", 8) {
            return Some(Pm64(n));
        }
        if let Some(n) = numbered("%envreg", "", 32) {
            return Some(Envreg(n));
        }
        if let Some(n) = numbered("%reserved_smem_offset_", "", 2) {
            return Some(ReservedSmemOffset(n));
        }
        let is_numbered = |r| matches!(r, Pm(_) | Pm64(_) | Envreg(_) | ReservedSmemOffset(_));
        TABLE.iter().find(|row| row.1 == name && !is_numbered(row.0)).map(|row| row.0)
    }

    /// The first of its kind, if it is numbered.
    fn first(self) -> SpecialRegister {
        match self {
            Pm(_) => Pm(0),
            Pm64(_) => Pm64(0),
            Envreg(_) => Envreg(0),
            ReservedSmemOffset(_) => ReservedSmemOffset(0),
            other => other,
        }
    }

    /// Its name as a page has it, with all numbers or elements that there are.
    pub fn display(self) -> String {
        let Description { name, vector, .. } = self.describe();
        match self {
            Pm(_) => format!("{name}{{0..7}}"),
            Pm64(_) => format!("{name}{{0..7}}_64"),
            Envreg(_) => format!("{name}{{0..31}}"),
            ReservedSmemOffset(_) => format!("{name}{{0,1}}"),
            _ if vector => format!("{name}.{{x,y,z,w}}"),
            _ => name.to_owned(),
        }
    }

    /// What is known about it.
    pub fn describe(self) -> Description {
        let row =
            TABLE.iter().find(|row| row.0 == self.first()).expect("the table has every special register");
        let version = Version { major: row.4.0, minor: row.4.1 };
        Description { name: row.1, ty: row.2, vector: row.3, version, sm: row.5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_name() {
        for row in TABLE {
            let name = match row.0 {
                Pm64(n) => format!("{}{n}_64", row.1),
                Pm(n) | Envreg(n) | ReservedSmemOffset(n) => format!("{}{n}", row.1),
                _ => row.1.to_owned(),
            };
            let found = SpecialRegister::from_name(&name);
            assert_eq!(found, Some(row.0), "{name}");
            assert_eq!(found.unwrap().describe().name, row.1);
        }
    }

    #[test]
    fn numbers_have_ranges() {
        assert_eq!(SpecialRegister::from_name("%envreg31"), Some(Envreg(31)));
        assert_eq!(SpecialRegister::from_name("%pm3_64"), Some(Pm64(3)));
        for bad in ["%envreg32", "%envreg01", "%pm8", "%pm", "%envreg", "%r1", "%pm+1", "%tid.x"] {
            assert_eq!(SpecialRegister::from_name(bad), None, "{bad}");
        }
    }
}
