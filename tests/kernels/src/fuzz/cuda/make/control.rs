//! What each thread does for itself.

use super::Maker;
use crate::fuzz::cuda::expr::{Binary, Expr, Space, Variable, binary, cast, int};
use crate::fuzz::cuda::kernel::{Course, Statement};
use crate::fuzz::cuda::types::{Range, Type};

/// Rounds of a loop, one less than a power of two, by the number of loops around it.
const ROUNDS: [i128; 4] = [15, 7, 3, 3];

impl Maker {
    /// Some statements, one after the other.
    pub(super) fn statements(&mut self, count: usize) -> Vec<Statement> {
        (0..count).flat_map(|_| self.statement()).collect()
    }

    fn statement(&mut self) -> Vec<Statement> {
        let deep = self.scope.depth >= 3;
        match self.r.below(30) {
            0..8 if !deep => self.repeat(),
            8 if !deep => self.walk(),
            9..13 if !deep => vec![self.branch()],
            13 if !deep => vec![self.switch()],
            14 => self.store().into_iter().collect(),
            15 | 16 => {
                let load = if self.r.chance(60) { self.vector() } else { self.fields() };
                vec![load, self.accumulate()]
            }
            17 => vec![self.count()],
            18 | 19 => self.small_array(),
            20..22 => self.call(),
            22 | 23 => self.new_variable(),
            24 => {
                let variable = *self.r.pick(&self.scope.bounded);
                self.scope.readable.push(variable);
                vec![Statement::Set(variable, self.small(variable.range.high))]
            }
            25 => self.leave().into_iter().collect(),
            _ => vec![self.accumulate()],
        }
    }

    /// A value is added, or otherwise, to what there is.
    pub(super) fn accumulate(&mut self) -> Statement {
        const INTEGERS: [Binary; 8] = [
            Binary::Add,
            Binary::Add,
            Binary::Add,
            Binary::Xor,
            Binary::Subtract,
            Binary::Minimum,
            Binary::Maximum,
            Binary::Multiply,
        ];
        const REALS: [Binary; 5] =
            [Binary::Add, Binary::Add, Binary::Subtract, Binary::Minimum, Binary::Maximum];
        let variable = *self.r.pick(&self.scope.accumulators);
        let value = self.value(variable.ty, 2);
        let operation = if variable.ty.is_integer() { *self.r.pick(&INTEGERS) } else { *self.r.pick(&REALS) };
        let mut old = Expr::Variable(variable);
        if operation == Binary::Multiply {
            old = binary(Binary::Multiply, old, Expr::Integer(variable.ty, 3));
            return Statement::Set(variable, binary(Binary::Add, old, value));
        }
        Statement::Set(variable, binary(operation, old, value))
    }

    /// Likewise, but with a variable's value as it is, or as an index.
    fn accumulate_with(&mut self, variable: Variable) -> Statement {
        self.scope.readable.push(variable);
        if self.r.chance(50) {
            return self.accumulate();
        }
        let accumulator = *self.r.pick(&self.scope.accumulators);
        let array = *self.r.pick(&self.inputs);
        let mut place = cast(Type::I32, Expr::Variable(variable));
        if self.r.chance(40) {
            let factor = int(*self.r.pick(&[2, 3, 4, 5, 16, 33]));
            place = binary(Binary::Multiply, place, factor);
        }
        if self.r.chance(60) {
            let near = self.given(Type::I32);
            place = binary(Binary::Add, place, near);
        }
        let index = self.bound(place, array.length);
        let element = Expr::Load(Box::new(crate::fuzz::cuda::expr::Access::new(array, index)));
        let value = cast(accumulator.ty, element);
        Statement::Set(accumulator, binary(Binary::Add, Expr::Variable(accumulator), value))
    }

    fn new_variable(&mut self) -> Vec<Statement> {
        let ty = *self.r.pick(&Type::INTEGERS);
        let ty = if self.r.chance(20) { Type::F32 } else { ty };
        let variable = self.variable(ty);
        let value = self.value(ty, 2);
        self.scope.readable.push(variable);
        if self.r.chance(60) {
            self.scope.accumulators.push(variable);
        }
        vec![Statement::Set(variable, value)]
    }

    /// The statements inside of something; what is new there is old after it.
    fn inside(&mut self, count: usize) -> Vec<Statement> {
        let known = self.scope.readable.clone();
        let accumulators = self.scope.accumulators.clone();
        let body = self.statements(count);
        // A few remain: what was set in a branch, or in a loop.
        let fresh: Vec<Variable> = self.scope.readable[known.len().min(self.scope.readable.len())..].to_vec();
        self.scope.readable = known;
        self.scope.readable.extend(fresh.into_iter().filter(|_| self.r.chance(40)));
        self.scope.accumulators = accumulators;
        body
    }

    pub(super) fn branch(&mut self) -> Statement {
        let condition = self.condition(1);
        self.scope.depth += 1;
        let count = 1 + self.r.below(2);
        let then = self.inside(count);
        let otherwise = if self.r.chance(40) { self.inside(1) } else { Vec::new() };
        self.scope.depth -= 1;
        Statement::If(condition, then, otherwise)
    }

    fn switch(&mut self) -> Statement {
        let high = *self.r.pick(&[3, 3, 7]);
        let on = self.small(high);
        let breaks = std::mem::replace(&mut self.scope.breaks, false);
        self.scope.depth += 1;
        let count = 2 + self.r.below(high as usize);
        let cases = (0..count).map(|_| (self.inside(1), self.r.chance(25))).collect();
        self.scope.depth -= 1;
        self.scope.breaks = breaks;
        Statement::Switch(on, cases)
    }

    /// Out of a loop, to its next round, out of the function or kernel, for some threads.
    fn leave(&mut self) -> Option<Statement> {
        let condition = self.condition(1);
        let way = match self.r.below(4) {
            0 | 1 if self.scope.breaks => Statement::Break,
            2 if self.scope.continues => Statement::Continue,
            _ => match self.scope.returns {
                Some(ty) => Statement::Return(Some(self.value(ty, 1))),
                None if self.scope.leaves_kernel && self.r.chance(40) => Statement::Return(None),
                None => return None,
            },
        };
        Some(Statement::If(condition, vec![way], Vec::new()))
    }

    /// The body of a loop with a variable.
    fn round(&mut self, variable: Variable) -> Vec<Statement> {
        let known = self.scope.readable.clone();
        let (breaks, continues) = (self.scope.breaks, self.scope.continues);
        (self.scope.breaks, self.scope.continues) = (true, true);
        self.scope.depth += 1;
        self.scope.readable.push(variable);
        let mut body = Vec::new();
        if self.r.chance(25) {
            body.extend(self.leave());
        }
        let count = self.r.below(3);
        body.extend(self.statements(count));
        body.push(self.accumulate_with(variable));
        if self.r.chance(35) {
            body.extend(self.leave());
        }
        self.scope.depth -= 1;
        (self.scope.breaks, self.scope.continues) = (breaks, continues);
        let fresh: Vec<Variable> = self.scope.readable[known.len()..].to_vec();
        self.scope.readable = known;
        self.scope.readable.extend(fresh.into_iter().filter(|_| self.r.chance(30)));
        body
    }

    fn repeat(&mut self) -> Vec<Statement> {
        let rounds = ROUNDS[self.scope.depth];
        let unroll = match self.r.below(10) {
            0 => Some(1),
            1 => Some(4),
            2 => Some(2),
            _ => None,
        };
        let (variable, from, course) = match self.r.below(14) {
            0..5 => self.upwards(rounds, false),
            5 => self.upwards(rounds, true),
            6 | 7 => {
                let step = 1 + self.r.below(3) as i128;
                let ty = *self.r.pick(&[Type::I32, Type::I32, Type::I64, Type::I16]);
                let from = self.small(rounds);
                let variable = self.bounded(ty, Range::new(-step, rounds));
                (variable, cast(ty, from), Course::Down { step })
            }
            8 => {
                let ty = *self.r.pick(&Type::INTEGERS);
                let (factor, plus) = *self.r.pick(&[(2, 0), (2, 1), (3, 0), (1, 3)]);
                let from = self.small(3);
                let from = binary(Binary::Add, cast(ty, from), Expr::Integer(ty, 1));
                let to = cast(ty, self.small(31));
                let variable = self.bounded(ty, Range::new(0, 30 * factor + plus));
                (variable, from, Course::Grow { to, factor, plus })
            }
            9 => {
                let ty = *self.r.pick(&[Type::I32, Type::U32, Type::U16, Type::U8, Type::U64]);
                let high = *self.r.pick(&[15, 127, 255]);
                let from = cast(ty, self.small(high.min(ty.range().high)));
                let variable = self.bounded(ty, Range::new(0, high.min(ty.range().high)));
                let by = 1 + self.r.below(3) as i128;
                (variable, from, Course::Shrink { by })
            }
            10 => {
                let ty = *self.r.pick(&[Type::U32, Type::I32, Type::U64]);
                let from = cast(ty, self.small(255));
                (self.bounded(ty, Range::new(0, 255)), from, Course::Bits)
            }
            11 => {
                let step = 1 + self.r.below(2) as i128;
                let (from, second) = (self.small(rounds / 2), self.small(2 * rounds + 1));
                let variable = self.bounded(Type::I32, Range::new(0, 2 * rounds + 1 + step));
                let other = self.bounded(Type::I32, Range::new(-step, 2 * rounds + 1));
                self.scope.readable.push(other);
                (variable, from, Course::Meet { other, from: second, step })
            }
            _ => return self.far(rounds),
        };
        let unroll = if matches!(course, Course::UpOnce { .. }) { None } else { unroll };
        let mut body = self.round(variable);
        if let Course::Up { step, .. } = course
            && variable.ty == Type::I32
            && self.r.chance(15)
        {
            // Some threads skip some rounds.
            let skip = 1 + self.r.below(2) as i128;
            let next = binary(Binary::Add, Expr::Variable(variable), int(skip));
            let next = binary(Binary::Minimum, next, int(variable.range.high - step));
            let condition = self.condition(1);
            body.push(Statement::If(condition, vec![Statement::Set(variable, next)], Vec::new()));
        }
        self.after(Statement::Loop { variable, from, course, unroll, body }, variable)
    }

    fn upwards(&mut self, rounds: i128, once: bool) -> (Variable, Expr, Course) {
        let ty = *self.r.pick(&Type::INTEGERS);
        let step = *self.r.pick(&[1, 1, 1, 2, 3, 5, 4]);
        let from = if self.r.chance(40) { int(0) } else { self.small(rounds) };
        let to = match self.r.below(4) {
            0 => int(rounds + 1),
            1 => self.small(rounds),
            2 => {
                let more = self.small(rounds);
                binary(Binary::Add, from.clone(), more)
            }
            _ => {
                let (more, factor) = (self.small(7), int(*self.r.pick(&[1, 2, 3])));
                binary(Binary::Multiply, more, factor)
            }
        };
        let (low, high) = (from.range().low, from.range().high.max(to.range().high) + step);
        let variable = self.bounded(ty, Range::new(low.min(0), high));
        let (from, to) = (cast(ty, from), cast(ty, to));
        let course = if once { Course::UpOnce { to, step } } else { Course::Up { to, step } };
        (variable, from, course)
    }

    /// A loop over numbers that are large, and a variable with how far it came.
    fn far(&mut self, rounds: i128) -> Vec<Statement> {
        let (ty, base) = *self.r.pick(&[
            (Type::U32, 0xffff_ff00),
            (Type::I64, 0xffff_fff0),
            (Type::I64, 0x7fff_fff0),
            (Type::U64, 0x1_ffff_fff8),
            (Type::I64, -20),
            (Type::U32, 0x7fff_fff0),
        ]);
        let step = 1 + self.r.below(3) as i128;
        let start = cast(ty, self.small(rounds));
        let from = binary(Binary::Add, start, Expr::Integer(ty, base));
        let variable = self.bounded(ty, Range::new(base, base + 2 * rounds + step));
        let distance = self.bounded(Type::I32, Range::new(0, 2 * rounds + step));
        let to = Expr::Integer(ty, base + rounds + 1);
        let way = binary(Binary::Subtract, Expr::Variable(variable), Expr::Integer(ty, base));
        let set = Statement::Set(distance, cast(Type::I32, way));
        let mut body = vec![set.clone()];
        body.extend(self.round(distance));
        let course = Course::Up { to, step };
        let mut all = self.after(Statement::Loop { variable, from, course, unroll: None, body }, distance);
        all.insert(1, set);
        all
    }

    /// The loop, and most likely something with what it left behind.
    fn after(&mut self, statement: Statement, variable: Variable) -> Vec<Statement> {
        let mut all = vec![statement];
        for _ in 0..self.r.below(3) {
            all.push(self.accumulate_with(variable));
        }
        self.scope.readable.push(variable);
        all
    }

    fn walk(&mut self) -> Vec<Statement> {
        let array = *self.r.pick(&self.inputs);
        let (pointer, step) = (self.number(), 1 + self.r.below(3) as u32);
        let from = self.index(array.length / 2);
        let rounds = ROUNDS[self.scope.depth];
        let count = match self.r.below(3) {
            0 => int(rounds + 1),
            1 => self.small(rounds),
            _ => {
                let rounds = self.small(rounds);
                binary(Binary::Multiply, rounds, int(i128::from(step)))
            }
        };
        let most = i128::from(array.length / 2) + 64;
        let ty = *self.r.pick(&[Type::I32, Type::I64, Type::I16]);
        let left = self.bounded(ty, Range::new(0, most));
        self.scope.pointers.push((pointer, array.ty));
        let rounds = self.bounded(Type::I32, Range::new(0, 63));
        let mut body = self.round(rounds);
        let next = binary(Binary::Add, Expr::Variable(rounds), int(1));
        body.push(Statement::Set(rounds, binary(Binary::And, next, int(63))));
        let accumulator = *self.r.pick(&self.scope.accumulators);
        let element = cast(accumulator.ty, Expr::Peek(pointer, array.ty, 0));
        let sum = binary(Binary::Add, Expr::Variable(accumulator), element);
        body.insert(0, Statement::Set(accumulator, sum));
        self.scope.pointers.pop();
        self.after(Statement::Walk { pointer, array, from, count, step, left, body }, left)
    }

    pub(super) fn call(&mut self) -> Vec<Statement> {
        if self.scope.in_function || self.kernel.functions.is_empty() {
            return vec![self.accumulate()];
        }
        let function = self.r.below(self.kernel.functions.len());
        let called = &self.kernel.functions[function];
        let (ty, lent) = (called.result.ty(), called.lent.clone());
        let parameters = called.parameters.clone();
        let wanted = called.references.clone();
        let arguments = parameters.iter().map(|parameter| self.value(parameter.ty, 1)).collect();
        let mut references: Vec<Variable> = Vec::new();
        let mut before = Vec::new();
        for reference in wanted {
            let fits = |it: &&Variable| it.ty == reference.ty && !references.contains(it);
            let known = self.scope.accumulators.iter().find(fits).copied();
            references.push(known.unwrap_or_else(|| {
                let variable = self.variable(reference.ty);
                let value = self.value(reference.ty, 1);
                before.push(Statement::Set(variable, value));
                variable
            }));
        }
        debug_assert!(lent.iter().all(|array| array.space == Space::Local), "only those can be lent");
        let result = self.variable(ty);
        self.scope.readable.push(result);
        before.push(Statement::Call { function, arguments, references, result });
        before
    }
}
