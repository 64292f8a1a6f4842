//! The smallest program that still shows something.

use super::nested::{self, Nested};
use super::program::{Program, Statement};

/// Makes a program smaller as long as `shows` holds: leaves statements out, and puts the inside of others in their place.
pub fn reduce(program: &Program, mut shows: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    loop {
        let mut smaller = false;
        // Whole functions and long runs first.
        for function in 0..best.functions.len() {
            let mut candidate = best.clone();
            if !std::mem::take(&mut candidate.functions[function]).is_empty() && shows(&candidate) {
                best = candidate;
                smaller = true;
            }
        }
        let mut at = 0;
        while at < size(&best) {
            let better = changes(&best, at).into_iter().find(|candidate| shows(candidate));
            match better {
                Some(candidate) => {
                    best = candidate;
                    smaller = true;
                }
                None => at += 1,
            }
        }
        if !smaller {
            return best;
        }
    }
}

/// Statements in a program.
pub fn size(program: &Program) -> usize {
    program.functions.iter().chain([&program.body]).map(|list| nested::size(list)).sum()
}

/// The statements inside of one, of a reference to it of either kind.
macro_rules! lists {
    ($statement:expr) => {
        match $statement {
            Statement::Plain(_)
            | Statement::Guarded(..)
            | Statement::Meet { .. }
            | Statement::Lock { .. }
            | Statement::Exchange { .. } => Vec::new(),
            Statement::If { then, otherwise, .. } => vec![then, otherwise],
            Statement::Loop { body, .. } | Statement::Repeat { body, .. } | Statement::Tile { body, .. } => {
                vec![body]
            }
            Statement::Until { before, after, .. } => vec![before, after],
            Statement::Switch { bodies, .. } => Vec::from_iter(bodies),
            Statement::Maze { pieces } => pieces.into_iter().map(|(body, ..)| body).collect(),
        }
    };
}

impl Nested for Statement {
    fn lists(&self) -> Vec<&Vec<Statement>> {
        lists!(self)
    }

    fn lists_mut(&mut self) -> Vec<&mut Vec<Statement>> {
        lists!(self)
    }

    fn simpler(&self) -> Option<Statement> {
        match self {
            Statement::Guarded(_, text) => Some(Statement::Plain(text.clone())),
            _ => None,
        }
    }
}

/// Programs that are smaller at their `at`-th statement.
fn changes(program: &Program, at: usize) -> Vec<Program> {
    let with = |change: &dyn Fn(&Statement) -> Vec<Statement>| {
        let mut changed = program.clone();
        let mut left = at;
        let Program { functions, body, .. } = &mut changed;
        functions.iter_mut().chain([body]).any(|list| nested::replace(list, &mut left, change));
        changed
    };
    let mut all = nested::smaller(6, with);
    all.retain(|candidate| candidate != program && size(candidate) <= size(program));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Grid;

    const GRID: Grid = Grid { grid: [1, 1, 1], block: [32, 1, 1], dynamic_shared: 0, cluster: None };

    #[test]
    fn what_does_not_matter_goes() {
        let plain = |text: &str| Statement::Plain(text.into());
        let inner = Statement::Loop { count: "%r0".into(), body: vec![plain("a"), plain("bad"), plain("b")] };
        let body = vec![
            plain("c"),
            Statement::If { condition: "%p0".into(), then: vec![inner], otherwise: vec![plain("d")] },
        ];
        let program = Program {
            seed: 0,
            grid: GRID,
            plain: false,
            free: false,
            images: Vec::new(),
            tensors: false,
            functions: vec![vec![plain("e")]],
            body,
        };
        let reduced = reduce(&program, |program| program.text().contains("bad"));
        assert_eq!(reduced.body, vec![plain("bad")]);
        assert_eq!(reduced.functions, vec![vec![]]);
    }
}
