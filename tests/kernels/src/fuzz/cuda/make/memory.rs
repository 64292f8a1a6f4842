//! Arrays, and what is typical of accesses to them.

use super::{Maker, OWN_LENGTH};
use crate::fuzz::cuda::expr::{Access, Array, Binary, Expr, Layout, Space, binary, cast, compare, int};
use crate::fuzz::cuda::kernel::{Combine, Course, RECORDS, Statement};
use crate::fuzz::cuda::types::{Range, Type};

/// Words of global memory that threads combine something into with one operation.
const COUNTERS: u32 = 64;

impl Maker {
    fn element_type(&mut self) -> Type {
        *self.r.pick(&Type::ELEMENTS)
    }

    /// An output of which every thread has some elements.
    pub(super) fn own_array(&mut self) -> Array {
        let (number, ty) = (self.number(), self.element_type());
        let layout = match self.r.below(10) {
            0..4 => Layout::Columns,
            4..8 => Layout::Rows(OWN_LENGTH),
            8 => Layout::Rows(OWN_LENGTH + 1),
            _ => Layout::Rows(12),
        };
        Array { space: Space::Own, number, ty, length: OWN_LENGTH, layout }
    }

    /// An array of local memory.
    pub(super) fn local_array(&mut self) -> Array {
        let (number, ty) = (self.number(), self.element_type());
        let length = *self.r.pick(&[8, 8, 16, 4, 32]);
        Array { space: Space::Local, number, ty, length, layout: Layout::Columns }
    }

    /// An array of shared memory with an element for each thread of the block.
    pub(super) fn block_array(&mut self) -> Array {
        let (number, threads) = (self.number(), self.kernel.block_threads());
        let ty = self.element_type();
        let [row, ..] = self.kernel.grid.block;
        let layout = match self.r.below(8) {
            0 if threads * ty.bytes() as u32 <= 512 => Layout::Rows(*self.r.pick(&[2, 3, 5, 9, 33])),
            1 | 2 if row < threads => Layout::Padded(row, self.r.below(3) as u32),
            _ => Layout::Columns,
        };
        Array { space: Space::Shared, number, ty, length: threads, layout }
    }

    pub(super) fn store(&mut self) -> Option<Statement> {
        if self.scope.writable.is_empty() {
            return None;
        }
        let array = *self.r.pick(&self.scope.writable);
        let (index, value) = (self.index(array.length), self.value(array.ty, 1));
        Some(Statement::Store(Access::new(array, index), value))
    }

    /// Several elements at once.
    pub(super) fn vector(&mut self) -> Statement {
        let lanes_of = |ty: Type| if ty.bytes() == 8 { 2 } else { 4 };
        let rows = |array: &&Array| {
            array.space == Space::Own && matches!(array.layout, Layout::Rows(step) if step % 4 == 0)
        };
        let usable = |ty: Type| !matches!(ty, Type::F16 | Type::H2);
        let own: Vec<Array> =
            self.scope.writable.iter().filter(rows).filter(|array| usable(array.ty)).copied().collect();
        let inputs: Vec<Array> = self.inputs.iter().filter(|array| usable(array.ty)).copied().collect();
        let array =
            if !own.is_empty() && self.r.chance(40) { *self.r.pick(&own) } else { *self.r.pick(&inputs) };
        let lanes = if self.r.chance(30) { 2 } else { lanes_of(array.ty) };
        let index = self.index(array.length / lanes);
        let members: Vec<_> = (0..lanes).map(|_| self.variable(array.ty)).collect();
        let store = array.space == Space::Own && self.r.chance(40);
        if !store {
            self.scope.readable.extend(&members);
        }
        Statement::Vector { array, index, members, store }
    }

    /// The fields of a structure.
    pub(super) fn fields(&mut self) -> Statement {
        let record = self.r.pick(&RECORDS);
        let bytes: Vec<Array> = self.inputs.iter().filter(|array| array.ty == Type::U8).copied().collect();
        let array = *self.r.pick(&bytes);
        let index = self.index(array.length / record.bytes);
        let members: Vec<_> = record.fields.iter().map(|ty| self.variable(*ty)).collect();
        self.scope.readable.extend(&members);
        Statement::Fields { array, record, index, members }
    }

    /// Something is combined into a word that all threads share.
    pub(super) fn count(&mut self) -> Statement {
        let operation = *self.r.pick(&Combine::ALL);
        let ty = *self.r.pick(&[Type::U32, Type::I32, Type::U64]);
        // One array for each operation and type, as the order must not matter.
        let number = operation as u32 * 3
            + [Type::U32, Type::I32, Type::U64].iter().position(|it| *it == ty).unwrap_or(0) as u32;
        let array = Array { space: Space::Counters, number, ty, length: COUNTERS, layout: Layout::Columns };
        let index = self.index(COUNTERS);
        let value = if self.r.chance(30) { Expr::Integer(ty, 1) } else { self.value(ty, 1) };
        Statement::Atomic { array, operation, index, value, compares: ty != Type::I32 && self.r.chance(10) }
    }

    /// What programs do with small arrays of their own: they sort them, use them as a stack, count in them, turn them round.
    pub(super) fn small_array(&mut self) -> Vec<Statement> {
        let writable: Vec<Array> =
            self.scope.writable.iter().filter(|array| array.length <= 8).copied().collect();
        if writable.is_empty() {
            return vec![self.count()];
        }
        let array = *self.r.pick(&writable);
        match self.r.below(4) {
            0 => self.sort(array),
            1 => self.stack(array),
            2 => self.histogram(array),
            _ => self.reverse(array),
        }
    }

    fn at(array: Array, index: Expr) -> Access {
        let last = i128::from(array.length) - 1;
        let index = if index.range().is_within(Range::new(0, last)) {
            index
        } else {
            binary(Binary::And, index, int(last))
        };
        Access::new(array, index)
    }

    fn load_at(array: Array, index: Expr) -> Expr {
        Expr::Load(Box::new(Maker::at(array, index)))
    }

    fn sort(&mut self, array: Array) -> Vec<Statement> {
        let last = i128::from(array.length) - 1;
        let (i, j) =
            (self.bounded(Type::I32, Range::new(0, last + 1)), self.bounded(Type::I32, Range::new(-1, last)));
        let held = self.variable(array.ty);
        let one_more = binary(Binary::Add, Expr::Variable(j), int(1));
        let below = Maker::load_at(array, Expr::Variable(j));
        let in_place = compare("<=", below.clone(), Expr::Variable(held));
        let inner = Statement::Loop {
            variable: j,
            from: binary(Binary::Maximum, binary(Binary::Subtract, Expr::Variable(i), int(1)), int(0)),
            course: Course::Down { step: 1 },
            unroll: None,
            body: vec![
                Statement::If(in_place, vec![Statement::Break], Vec::new()),
                Statement::Store(Maker::at(array, one_more.clone()), below),
            ],
        };
        let limit = if self.r.chance(50) { int(last + 1) } else { self.small(last) };
        self.scope.readable.push(j);
        vec![Statement::Loop {
            variable: i,
            from: int(1),
            course: Course::Up { to: limit, step: 1 },
            unroll: None,
            body: vec![
                Statement::Set(held, Maker::load_at(array, Expr::Variable(i))),
                inner,
                Statement::Store(Maker::at(array, one_more), Expr::Variable(held)),
            ],
        }]
    }

    fn stack(&mut self, array: Array) -> Vec<Statement> {
        let last = i128::from(array.length) - 1;
        let depth = self.bounded(Type::I32, Range::new(0, last));
        let fuel = self.bounded(Type::I32, Range::new(0, 31));
        let popped = self.variable(array.ty);
        let top = Expr::Variable(depth);
        let moved = |operation, limit, bound| {
            let next = binary(operation, Expr::Variable(depth), int(1));
            Statement::Set(depth, binary(bound, next, int(limit)))
        };
        let push = |maker: &mut Maker| {
            let (condition, value) = (maker.condition(1), maker.value(array.ty, 1));
            let store = Statement::Store(Maker::at(array, top.clone()), value);
            Statement::If(condition, vec![store, moved(Binary::Add, last, Binary::Minimum)], Vec::new())
        };
        self.scope.readable.push(popped);
        let pushes = [push(self), push(self)];
        let mut body = vec![
            Statement::If(compare("==", top.clone(), int(0)), vec![Statement::Break], Vec::new()),
            moved(Binary::Subtract, 0, Binary::Maximum),
            Statement::Set(popped, Maker::load_at(array, top.clone())),
        ];
        body.extend(pushes);
        body.push(self.accumulate());
        let start = self.small(3);
        self.scope.readable.extend([depth, fuel]);
        vec![
            Statement::Set(depth, binary(Binary::Minimum, start, int(last))),
            Statement::Loop {
                variable: fuel,
                from: int(0),
                course: Course::Up { to: int(20), step: 1 },
                unroll: None,
                body,
            },
        ]
    }

    fn histogram(&mut self, array: Array) -> Vec<Statement> {
        let i = self.bounded(Type::I32, Range::new(0, 16));
        let to = self.small(15);
        self.scope.readable.push(i);
        let index = self.index(array.length);
        let access = Access::new(array, index);
        let step = cast(array.ty, if self.r.chance(50) { int(1) } else { Expr::Variable(i) });
        let more = binary(Binary::Add, Expr::Load(Box::new(access.clone())), step);
        vec![Statement::Loop {
            variable: i,
            from: int(0),
            course: Course::Up { to, step: 1 },
            unroll: None,
            body: vec![Statement::Store(access, more)],
        }]
    }

    fn reverse(&mut self, array: Array) -> Vec<Statement> {
        let last = i128::from(array.length) - 1;
        let low = self.bounded(Type::I32, Range::new(0, last + 1));
        let high = self.bounded(Type::I32, Range::new(-1, last));
        let held = self.variable(array.ty);
        let (a, b) = (Maker::at(array, Expr::Variable(low)), Maker::at(array, Expr::Variable(high)));
        let mut body = vec![
            Statement::Set(held, Expr::Load(Box::new(a.clone()))),
            Statement::Store(a, Expr::Load(Box::new(b.clone()))),
            Statement::Store(b, Expr::Variable(held)),
        ];
        if self.r.chance(40) {
            let condition = self.condition(0);
            body.push(Statement::If(condition, vec![Statement::Break], Vec::new()));
        }
        self.scope.readable.push(low);
        vec![Statement::Loop {
            variable: low,
            from: int(0),
            course: Course::Meet { other: high, from: int(last), step: 1 },
            unroll: None,
            body,
        }]
    }
}
