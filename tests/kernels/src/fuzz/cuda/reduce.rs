//! The smallest kernel that still shows something.

use super::expr::{Access, Expr};
use super::kernel::{Kernel, Statement};
use super::types::Type;
use crate::fuzz::nested::{self, Nested};

/// Makes a kernel smaller as long as `shows` holds: leaves statements out, puts the inside of others in their place, and simpler
/// expressions with no other numbers than before in the place of others. No more than `tries` kernels are looked at.
pub fn reduce(kernel: &Kernel, mut tries: usize, mut shows: impl FnMut(&Kernel) -> bool) -> Kernel {
    let mut best = kernel.clone();
    let mut better = |best: &mut Kernel, candidate: Kernel| {
        if tries == 0 || candidate == *best {
            return false;
        }
        tries -= 1;
        let shown = shows(&candidate);
        if shown {
            *best = candidate;
        }
        shown
    };
    loop {
        let mut smaller = false;
        for simpler in SHAPES {
            let mut candidate = best.clone();
            simpler(&mut candidate);
            smaller |= better(&mut best, candidate);
        }
        // Long runs first.
        for share in [2, 4, 8] {
            let mut at = 0;
            while at < best.body.len() {
                let mut candidate = best.clone();
                let end = (at + best.body.len().div_ceil(share)).min(best.body.len());
                candidate.body.drain(at..end);
                if better(&mut best, candidate) {
                    smaller = true;
                } else {
                    at = end;
                }
            }
        }
        let mut at = 0;
        while at < size(&best) {
            let found = changes(&best, at).into_iter().any(|candidate| better(&mut best, candidate));
            smaller |= found;
            at += usize::from(!found);
        }
        let mut at = 0;
        while at < expressions(&best) {
            let found = simpler(&best, at).into_iter().any(|candidate| better(&mut best, candidate));
            smaller |= found;
            at += usize::from(!found);
        }
        if !smaller {
            return best;
        }
    }
}

/// Launches of fewer blocks, and other things that are simpler.
const SHAPES: [fn(&mut Kernel); 3] = [
    |kernel| kernel.grid.grid = [1; 3],
    |kernel| kernel.restrict = true,
    |kernel| kernel.functions.iter_mut().for_each(|function| function.inlined = true),
];

fn lists(kernel: &Kernel) -> impl Iterator<Item = &Vec<Statement>> {
    kernel.functions.iter().map(|function| &function.body).chain([&kernel.body])
}

fn lists_mut(kernel: &mut Kernel) -> impl Iterator<Item = &mut Vec<Statement>> {
    kernel.functions.iter_mut().map(|function| &mut function.body).chain([&mut kernel.body])
}

/// Statements of a kernel.
pub fn size(kernel: &Kernel) -> usize {
    lists(kernel).map(|list| nested::size(list)).sum()
}

/// Kernels that are smaller at their `at`-th statement.
fn changes(kernel: &Kernel, at: usize) -> Vec<Kernel> {
    let with = |change: &dyn Fn(&Statement) -> Vec<Statement>| {
        let mut changed = kernel.clone();
        let mut left = at;
        lists_mut(&mut changed).any(|list| nested::replace(list, &mut left, change));
        changed
    };
    let mut all = nested::smaller(8, with);
    all.retain(|candidate| candidate != kernel && size(candidate) <= size(kernel));
    all
}

/// Calls something for every expression of a kernel, those inside of others after them, until it answers true.
fn visit(kernel: &mut Kernel, change: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
    fn of_expr(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
        change(expr) || expr.operands_mut().into_iter().any(|operand| of_expr(operand, change))
    }
    fn of_list(list: &mut [Statement], change: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
        list.iter_mut().any(|statement| {
            statement.expressions_mut().into_iter().any(|expr| of_expr(expr, change))
                || statement.lists_mut().into_iter().any(|list| of_list(list, change))
        })
    }
    let in_functions = kernel
        .functions
        .iter_mut()
        .any(|function| of_expr(&mut function.result, change) || of_list(&mut function.body, change));
    in_functions || of_list(&mut kernel.body, change)
}

fn expressions(kernel: &Kernel) -> usize {
    let mut count = 0;
    visit(&mut kernel.clone(), &mut |_| {
        count += 1;
        false
    });
    count
}

/// Kernels with something simpler in the place of the `at`-th expression.
fn simpler(kernel: &Kernel, at: usize) -> Vec<Kernel> {
    let mut old = None;
    let mut left = at;
    visit(&mut kernel.clone(), &mut |expr| {
        let found = left == 0;
        if found {
            old = Some(expr.clone());
        }
        left = left.wrapping_sub(1);
        found
    });
    let Some(old) = old else { return Vec::new() };
    let with = |new: Expr| {
        let mut changed = kernel.clone();
        let mut left = at;
        visit(&mut changed, &mut |expr| {
            let found = left == 0;
            if found {
                *expr = new.clone();
            }
            left = left.wrapping_sub(1);
            found
        });
        changed
    };
    replacements(&old).into_iter().map(with).collect()
}

/// What may stand for an expression: constants, and what it is made of.
fn replacements(old: &Expr) -> Vec<Expr> {
    let (ty, range) = (old.ty(), old.range());
    let mut all = Vec::new();
    if ty.is_integer() || ty == Type::Bool {
        let near = 0.clamp(range.low, range.high);
        if !matches!(old, Expr::Integer(..)) {
            all.push(Expr::Integer(ty, near));
            if ty == Type::Bool || range.high > near {
                all.push(Expr::Integer(ty, near + 1));
            }
        }
    } else if !matches!(old, Expr::Eighths(..)) {
        all.push(Expr::Eighths(ty, 8));
    }
    let fits = |new: &&Expr| new.ty() == ty && (!ty.is_integer() || new.range().is_within(range));
    all.extend(old.operands().into_iter().filter(fits).cloned());
    // Of casts of what is of this type.
    all.extend(old.operands().into_iter().flat_map(Expr::operands).filter(fits).cloned());
    if let Expr::Load(access) = old
        && access.other.is_some()
    {
        all.push(Expr::Load(Box::new(Access::new(access.array, access.index.clone()))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::cuda::{make, print};

    #[test]
    fn what_does_not_matter_goes() {
        let kernel = (1..)
            .map(make::kernel)
            .find(|kernel| size(kernel) > 20 && print::kernel(kernel, "k").contains("__popc("))
            .expect("many have it");
        let reduced = reduce(&kernel, usize::MAX, |kernel| print::kernel(kernel, "k").contains("__popc("));
        assert!(size(&reduced) <= 2, "{}", print::kernel(&reduced, "k"));
    }
}
