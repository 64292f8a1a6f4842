//! What the threads of a warp or block do together: all of them come to these statements.

use super::Maker;
use crate::fuzz::cuda::expr::{
    Access, Array, Binary, Expr, Given, Layout, Space, Variable, binary, cast, compare, int,
};
use crate::fuzz::cuda::kernel::{Combine, Course, Fill, Statement, Together};
use crate::fuzz::cuda::types::{Range, Type};

/// Lanes that may do something without the others.
const SUBSETS: [u32; 7] =
    [0xffff, 0xffff_0000, 0xaaaa_aaaa, 0xff00_ff00, 0xffff_fff0, 0x0f0f_0f0f, 0x8001_8001];

/// Bytes of shared memory that a kernel may have.
const SHARED_BYTES: u32 = 40 << 10;

impl Maker {
    /// Statements that all threads come to.
    pub(super) fn all_together(&mut self, count: usize) -> Vec<Statement> {
        (0..count).flat_map(|_| self.one_together()).collect()
    }

    /// Whether every warp has all its lanes.
    fn has_whole_warps(&self) -> bool {
        self.kernel.block_threads().is_multiple_of(32)
    }

    fn one_together(&mut self) -> Vec<Statement> {
        let whole = self.has_whole_warps();
        let deep = self.scope.depth >= 2;
        match self.r.below(28) {
            24 if self.kernel.block_threads().is_power_of_two() => vec![self.sort_together()],
            25 => vec![self.collect()],
            26 if whole => self.one_warp(),
            27 if whole => self.until_vote(),
            0..5 => vec![self.exchange()],
            5 | 6 => vec![self.tile()],
            7 | 8 => vec![self.gather()],
            9 => vec![self.scan()],
            10..14 if whole => self.in_warp(),
            14 if whole => self.warp_sums(),
            15 if whole => vec![self.peel()],
            16 if whole => self.subset(),
            17 => self.block_vote(),
            18 | 19 if !deep => self.rounds_together(),
            20 => vec![self.accumulate()],
            _ => self.statements(1),
        }
    }

    /// Something that is the same for all threads of a block, from 0 to `high`.
    fn uniform(&mut self, high: i128) -> Expr {
        match self.r.below(4) {
            0 => int(high),
            1 => int(self.r.below(high as usize + 1) as i128),
            2 => {
                let some = i128::from(self.kernel.scalars.some);
                binary(Binary::And, Expr::Given(Given::Some, Type::I32, Range::of(some)), int(high))
            }
            _ => {
                let array = *self.r.pick(&self.inputs);
                let load = Expr::Load(Box::new(Access::new(array, int(self.r.below(4096) as i128))));
                binary(Binary::And, cast(Type::I32, load), int(high))
            }
        }
    }

    /// A loop that all threads go round as often.
    fn rounds_together(&mut self) -> Vec<Statement> {
        let ty = *self.r.pick(&[Type::I32, Type::I32, Type::U32, Type::I64]);
        let variable = self.bounded(ty, Range::new(0, 17));
        let to = cast(ty, self.uniform(3));
        let step = 1 + self.r.below(2) as i128;
        self.scope.depth += 1;
        self.scope.readable.push(variable);
        let count = 1 + self.r.below(2);
        let mut body = self.all_together(count);
        body.push(self.accumulate());
        self.scope.depth -= 1;
        vec![Statement::Loop {
            variable,
            from: Expr::Integer(ty, 0),
            course: Course::Up { to, step },
            unroll: self.r.chance(20).then_some(1),
            body,
        }]
    }

    /// An array of shared memory, if there is room for it.
    fn shared(&mut self, ty: Type, length: u32) -> Array {
        let length = length.min(SHARED_BYTES / 8 / ty.bytes() as u32);
        Array { space: Space::Shared, number: self.number(), ty, length, layout: Layout::Columns }
    }

    /// What is in between two barriers: loops and branches of each thread, with an array to read.
    fn between(&mut self, array: Array) -> Vec<Statement> {
        self.scope.staged.push(array);
        let mut body = Vec::new();
        let value = self.load_of(array);
        let accumulator = *self.r.pick(&self.scope.accumulators);
        let value = cast(accumulator.ty, value);
        body.push(Statement::Set(accumulator, binary(Binary::Add, Expr::Variable(accumulator), value)));
        let count = self.r.below(3);
        body.extend(self.statements(count));
        if self.r.chance(15) && self.scope.depth < 2 {
            body.extend(self.one_together());
        }
        self.scope.staged.pop();
        body
    }

    fn exchange(&mut self) -> Statement {
        let array = self.block_array();
        let value = self.value(array.ty, 1);
        let body = self.between(array);
        Statement::Stage { array, fill: Fill::Own(value), body }
    }

    fn tile(&mut self) -> Statement {
        let source = *self.r.pick(&self.inputs);
        let threads = self.kernel.block_threads();
        let length = *self.r.pick(&[threads, threads + 2, 2 * threads, 64, 256, threads + 6]);
        let array = self.shared(source.ty, length);
        let length = array.length;
        let variable = self.bounded(Type::I32, Range::new(0, i128::from(length + threads)));
        let start = binary(
            Binary::Multiply,
            Expr::Given(Given::BlockX, Type::I32, Range::new(0, i128::from(self.kernel.grid.grid[0]) - 1)),
            Expr::Given(Given::BlockThreads, Type::I32, Range::of(i128::from(threads))),
        );
        let halo = binary(Binary::Add, start, int(*self.r.pick(&[0, 0, -1, -3, 5])));
        let place = binary(Binary::Add, halo, Expr::Variable(variable));
        let index = self.bound(place, source.length);
        let value = Expr::Load(Box::new(Access::new(source, index)));
        let body = self.between(array);
        Statement::Stage { array, fill: Fill::Whole(variable, value), body }
    }

    fn gather(&mut self) -> Statement {
        let ty = *self.r.pick(&[Type::U32, Type::I32, Type::U64]);
        let length = *self.r.pick(&[1, 8, 32, 64, 100]);
        let array = self.shared(ty, length);
        let operation = *self.r.pick(&Combine::ALL);
        let atomic = |maker: &mut Maker| {
            let index = maker.index(length);
            let value = if maker.r.chance(40) { Expr::Integer(ty, 1) } else { maker.value(ty, 1) };
            let compares = ty != Type::I32 && maker.r.chance(15);
            Statement::Atomic { array, operation, index, value, compares }
        };
        let mut first = vec![atomic(self)];
        if self.r.chance(50) {
            let condition = self.condition(1);
            first = vec![Statement::If(condition, first, Vec::new())];
        }
        if self.r.chance(30) {
            let to = self.small(7);
            let variable = self.bounded(Type::I32, Range::new(0, 8));
            self.scope.readable.push(variable);
            first.push(Statement::Loop {
                variable,
                from: int(0),
                course: Course::Up { to, step: 1 },
                unroll: None,
                body: vec![atomic(self)],
            });
        }
        let then = self.between(array);
        Statement::Gather { array, start: *self.r.pick(&[0, 0, 5]), first, then }
    }

    fn scan(&mut self) -> Statement {
        let ty = *self.r.pick(&[Type::I32, Type::F32, Type::U32, Type::I64, Type::I16, Type::U8, Type::F64]);
        let threads = self.kernel.block_threads();
        let array = Array { length: threads, ..self.shared(ty, threads) };
        let value = self.value(ty, 1);
        let result = self.variable(ty);
        self.scope.readable.push(result);
        Statement::Scan { array, value, result }
    }

    fn sort_together(&mut self) -> Statement {
        let ty = *self.r.pick(&[Type::I32, Type::I32, Type::F32, Type::U16, Type::I64]);
        let threads = self.kernel.block_threads();
        // An element for each thread, also where that is more than arrays have usually.
        let array = Array { length: threads, ..self.shared(ty, threads) };
        // Of NaNs there is no order.
        let value = if ty == Type::F32 { cast(ty, self.value(Type::I16, 1)) } else { self.value(ty, 1) };
        let result = self.variable(ty);
        self.scope.readable.push(result);
        Statement::Sort { array, value, result }
    }

    fn collect(&mut self) -> Statement {
        let threads = self.kernel.block_threads();
        let array = self.shared(Type::U32, threads + 1);
        let (condition, value, result) =
            (self.condition(1), self.value(Type::U32, 1), self.variable(Type::U32));
        self.scope.readable.push(result);
        Statement::Collect { array, condition, value, result }
    }

    /// What only the lanes of one warp do.
    fn one_warp(&mut self) -> Vec<Statement> {
        let threads = i128::from(self.kernel.block_threads());
        let local = Expr::Given(Given::Local, Type::I32, Range::new(0, threads - 1));
        let which = int(self.r.below((threads / 32).min(2) as usize) as i128);
        let is_it = compare("==", binary(Binary::Divide, local, int(32)), which);
        let mut body = self.in_warp();
        body.extend(self.statements(1));
        body.extend(self.in_warp());
        vec![Statement::If(is_it, body, Vec::new())]
    }

    /// A loop that a warp leaves when none of its lanes wants to go on.
    fn until_vote(&mut self) -> Vec<Statement> {
        let rounds = self.bounded(Type::I32, Range::new(0, 21));
        let limit = self.small(15);
        let goes_on = compare("<", Expr::Variable(rounds), limit);
        self.scope.depth += 1;
        self.scope.readable.push(rounds);
        let vote = self.together(Together::Any, u32::MAX, 32, goes_on, int(0));
        let Statement::Together { result, .. } = vote else { unreachable!("just made") };
        let none = compare("==", Expr::Variable(result), int(0));
        let mut body = vec![vote, Statement::If(none, vec![Statement::Break], Vec::new())];
        body.extend(self.statements(1));
        if self.r.chance(60) {
            body.extend(self.in_warp());
        }
        self.scope.depth -= 1;
        let course = Course::Up { to: int(20), step: 1 };
        let unroll = self.r.chance(30).then_some(1);
        vec![Statement::Loop { variable: rounds, from: int(0), course, unroll, body }, self.accumulate()]
    }

    fn together(&mut self, what: Together, mask: u32, width: u32, value: Expr, operand: Expr) -> Statement {
        let (ty, range) = match what {
            Together::Any | Together::All | Together::BlockOr | Together::BlockAnd => {
                (Type::I32, Range::new(i128::from(i32::MIN), i128::from(i32::MAX)))
            }
            Together::BlockCount => (Type::I32, Range::new(0, 1024)),
            Together::Ballot
            | Together::Match
            | Together::ReduceAdd
            | Together::ReduceMaximum
            | Together::ReduceOr => (Type::U32, Type::U32.range()),
            _ => (value.ty(), value.ty().range()),
        };
        let range = if ty.is_integer() { range } else { Type::Bool.range() };
        let result = Variable { number: self.number(), ty, range, record: None };
        self.scope.readable.push(result);
        Statement::Together { what, mask, width, value, operand, result }
    }

    fn shuffle(&mut self) -> Statement {
        let what = *self.r.pick(&[
            Together::ShuffleUp,
            Together::ShuffleDown,
            Together::ShuffleXor,
            Together::ShuffleIndex,
            Together::ShuffleIndex,
        ]);
        let width = *self.r.pick(&[32, 32, 16, 8, 4]);
        let ty = *self.r.pick(&[
            Type::I32,
            Type::I32,
            Type::U32,
            Type::F32,
            Type::F32,
            Type::I64,
            Type::F64,
            Type::F16,
            Type::H2,
        ]);
        let value = self.value(ty, 1);
        let operand = match self.r.below(4) {
            0 | 1 => int(self.r.below(width as usize) as i128),
            2 => self.uniform(i128::from(width) - 1),
            // Distances that differ are for shuffles by index; the others have them too, if rarely.
            _ => self.small(i128::from(width) - 1),
        };
        self.together(what, u32::MAX, width, value, operand)
    }

    fn in_warp(&mut self) -> Vec<Statement> {
        let mut all = Vec::new();
        let statement = match self.r.below(8) {
            0..4 => self.shuffle(),
            4 | 5 => {
                let what = *self.r.pick(&[Together::Ballot, Together::Ballot, Together::Any, Together::All]);
                let condition = self.condition(1);
                self.together(what, u32::MAX, 32, condition, int(0))
            }
            6 => {
                let high = *self.r.pick(&[1, 3, 7]);
                let value = self.small(high);
                self.together(Together::Match, u32::MAX, 32, value, int(0))
            }
            _ => {
                let what = *self.r.pick(&[Together::ReduceAdd, Together::ReduceMaximum, Together::ReduceOr]);
                let value = self.value(Type::U32, 1);
                self.together(what, u32::MAX, 32, value, int(0))
            }
        };
        let votes = match &statement {
            Statement::Together { what: Together::Ballot | Together::Match, result, .. } => Some(*result),
            _ => None,
        };
        all.push(statement);
        if let Some(votes) = votes
            && self.r.chance(60)
        {
            // The place among those that voted alike.
            static COUNT: crate::fuzz::cuda::expr::Intrinsic = crate::fuzz::cuda::expr::Intrinsic {
                name: "__popc",
                ty: Type::I32,
                arguments: &[Type::U32],
                range: Some(Range { low: 0, high: 32 }),
            };
            let lane = Expr::Given(Given::Lane, Type::I32, Range::new(0, 31));
            let bit = binary(Binary::ShiftLeft, Expr::Integer(Type::U32, 1), cast(Type::U32, lane));
            let below = binary(Binary::Subtract, bit, Expr::Integer(Type::U32, 1));
            let counted = Expr::Call(&COUNT, vec![binary(Binary::And, Expr::Variable(votes), below)]);
            let rank = self.bounded(Type::I32, Range::new(0, 32));
            self.scope.readable.push(rank);
            all.push(Statement::Set(rank, counted));
        }
        all.push(self.accumulate());
        all
    }

    /// Sums or maxima over a warp, or of what the lanes before have, step by step.
    fn warp_sums(&mut self) -> Vec<Statement> {
        let ty = *self.r.pick(&[Type::I32, Type::F32, Type::U32, Type::I64, Type::F64]);
        let (sum, value) = (self.variable(ty), self.value(ty, 1));
        let operation = *self.r.pick(&[Binary::Add, Binary::Add, Binary::Maximum, Binary::Minimum]);
        let distance = self.bounded(Type::I32, Range::new(0, 64));
        let what = *self.r.pick(&[Together::ShuffleUp, Together::ShuffleDown, Together::ShuffleXor]);
        let width = *self.r.pick(&[32, 32, 16, 8]);
        let step = self.together(what, u32::MAX, width, Expr::Variable(sum), Expr::Variable(distance));
        let Statement::Together { result, .. } = step else { unreachable!("just made") };
        let combined = Statement::Set(sum, binary(operation, Expr::Variable(sum), Expr::Variable(result)));
        let combined = if what == Together::ShuffleUp {
            let lane = Expr::Given(Given::Lane, Type::I32, Range::new(0, 31));
            let in_row = binary(Binary::And, lane, int(i128::from(width) - 1));
            Statement::If(compare(">=", in_row, Expr::Variable(distance)), vec![combined], Vec::new())
        } else {
            combined
        };
        let (from, course) = if self.r.chance(50) {
            (int(1), Course::Grow { to: int(i128::from(width)), factor: 2, plus: 0 })
        } else {
            (int(i128::from(width / 2)), Course::Shrink { by: 1 })
        };
        self.scope.readable.push(sum);
        let rounds =
            Statement::Loop { variable: distance, from, course, unroll: None, body: vec![step, combined] };
        vec![Statement::Set(sum, value), rounds, self.accumulate()]
    }

    fn peel(&mut self) -> Statement {
        let (pending, value) = (self.condition(1), self.value(Type::I32, 1));
        let result = self.variable(Type::I32);
        self.scope.readable.push(result);
        self.scope.depth += 1;
        let mut body = vec![self.accumulate()];
        if self.r.chance(50) {
            body.push(self.branch());
        }
        self.scope.depth -= 1;
        Statement::Peel { pending, value, result, with_equals: self.r.chance(40), body }
    }

    fn subset(&mut self) -> Vec<Statement> {
        let mask = *self.r.pick(&SUBSETS);
        let lanes: Vec<i128> = (0..32).filter(|lane| mask >> lane & 1 != 0).collect();
        let mut body = vec![self.accumulate()];
        let statement = match self.r.below(3) {
            0 => {
                let (value, lane) = (self.value(Type::I32, 1), int(*self.r.pick(&lanes)));
                self.together(Together::ShuffleIndex, mask, 32, value, lane)
            }
            1 => {
                let condition = self.condition(1);
                let what = *self.r.pick(&[Together::Ballot, Together::Any]);
                self.together(what, mask, 32, condition, int(0))
            }
            _ => {
                let value = self.value(Type::U32, 1);
                self.together(Together::ReduceAdd, mask, 32, value, int(0))
            }
        };
        body.push(statement);
        body.push(self.accumulate());
        vec![Statement::Subset { mask, body }]
    }

    fn block_vote(&mut self) -> Vec<Statement> {
        let what = *self.r.pick(&[Together::BlockCount, Together::BlockOr, Together::BlockAnd]);
        let condition = self.condition(1);
        let vote = self.together(what, u32::MAX, 32, condition, int(0));
        vec![vote, self.accumulate()]
    }
}
