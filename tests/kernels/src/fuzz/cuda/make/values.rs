//! Expressions, and indices of all kinds.

use super::{INPUT_LENGTH, Maker};
use crate::fuzz::cuda::expr::{
    Access, Array, Binary, Expr, Given, Intrinsic, Unary, Variable, binary, cast, compare, int,
};
use crate::fuzz::cuda::kernel::Numbering;
use crate::fuzz::cuda::types::{Range, Type};
use Type::{F16, F32, F64, H2, I32, I64, U32, U64};

const fn intrinsic(name: &'static str, ty: Type, arguments: &'static [Type]) -> Intrinsic {
    Intrinsic { name, ty, arguments, range: None }
}

const fn counting(name: &'static str, argument: &'static [Type], high: i128) -> Intrinsic {
    Intrinsic { name, ty: I32, arguments: argument, range: Some(Range { low: 0, high }) }
}

static INTEGER_FUNCTIONS: [Intrinsic; 28] = [
    counting("__popc", &[U32], 32),
    counting("__clz", &[I32], 32),
    counting("__ffs", &[I32], 32),
    counting("__popcll", &[U64], 64),
    counting("__clzll", &[I64], 64),
    intrinsic("__brev", U32, &[U32]),
    intrinsic("__byte_perm", U32, &[U32, U32, U32]),
    intrinsic("__dp4a", I32, &[I32, I32, I32]),
    intrinsic("__dp4a", U32, &[U32, U32, U32]),
    intrinsic("__funnelshift_l", U32, &[U32, U32, U32]),
    intrinsic("__funnelshift_r", U32, &[U32, U32, U32]),
    intrinsic("__funnelshift_lc", U32, &[U32, U32, U32]),
    intrinsic("__mulhi", I32, &[I32, I32]),
    intrinsic("__umulhi", U32, &[U32, U32]),
    intrinsic("__mul64hi", I64, &[I64, I64]),
    intrinsic("__umul24", U32, &[U32, U32]),
    intrinsic("__hadd", I32, &[I32, I32]),
    intrinsic("__sad", U32, &[I32, I32, U32]),
    intrinsic("__vadd4", U32, &[U32, U32]),
    intrinsic("__vminu4", U32, &[U32, U32]),
    intrinsic("__vmaxs2", U32, &[U32, U32]),
    intrinsic("__vabsdiffu4", U32, &[U32, U32]),
    intrinsic("__vavgu4", U32, &[U32, U32]),
    intrinsic("__vcmpeq4", U32, &[U32, U32]),
    intrinsic("__vsetltu4", U32, &[U32, U32]),
    intrinsic("__vaddss2", U32, &[U32, U32]),
    intrinsic("__vsadu4", U32, &[U32, U32]),
    intrinsic("__brevll", U64, &[U64]),
];

static REAL_FUNCTIONS: [Intrinsic; 34] = [
    intrinsic("__halves2half2", H2, &[F16, F16]),
    intrinsic("__floats2half2_rn", H2, &[F32, F32]),
    intrinsic("__low2half", F16, &[H2]),
    intrinsic("__hfma2_sat", H2, &[H2, H2, H2]),
    intrinsic("sinf", F32, &[F32]),
    intrinsic("logf", F32, &[F32]),
    intrinsic("__fdividef", F32, &[F32, F32]),
    intrinsic("__fmul_rz", F32, &[F32, F32]),
    intrinsic("__fadd_ru", F32, &[F32, F32]),
    intrinsic("tanhf", F32, &[F32]),
    intrinsic("rint", F64, &[F64]),
    intrinsic("exp", F64, &[F64]),
    intrinsic("fabsf", F32, &[F32]),
    intrinsic("floorf", F32, &[F32]),
    intrinsic("rintf", F32, &[F32]),
    intrinsic("truncf", F32, &[F32]),
    intrinsic("ceilf", F32, &[F32]),
    intrinsic("sqrtf", F32, &[F32]),
    intrinsic("rsqrtf", F32, &[F32]),
    intrinsic("fmaf", F32, &[F32, F32, F32]),
    intrinsic("__saturatef", F32, &[F32]),
    intrinsic("expf", F32, &[F32]),
    intrinsic("__expf", F32, &[F32]),
    intrinsic("fmodf", F32, &[F32, F32]),
    intrinsic("fabs", F64, &[F64]),
    intrinsic("sqrt", F64, &[F64]),
    intrinsic("floor", F64, &[F64]),
    intrinsic("fma", F64, &[F64, F64, F64]),
    intrinsic("__hfma", F16, &[F16, F16, F16]),
    intrinsic("__habs", F16, &[F16]),
    intrinsic("hfloor", F16, &[F16]),
    intrinsic("__hfma2", H2, &[H2, H2, H2]),
    intrinsic("__lowhigh2highlow", H2, &[H2]),
    intrinsic("__habs2", H2, &[H2]),
];

impl Maker {
    /// A value of a type.
    pub(super) fn value(&mut self, ty: Type, depth: usize) -> Expr {
        match ty {
            Type::Bool => self.condition(depth),
            _ if ty.is_integer() => self.whole(ty, depth),
            _ => self.real(ty, depth),
        }
    }

    /// Something known about the thread or its kernel.
    pub(super) fn given(&mut self, ty: Type) -> Expr {
        let all = self.all_given();
        let (what, own, range) = *self.r.pick(&all);
        cast(ty, Expr::Given(what, own, range))
    }

    /// A certain one of them.
    fn given_as(&self, what: Given) -> Expr {
        let all = self.all_given();
        let found = all.into_iter().find(|given| given.0 == what);
        let (what, ty, range) = found.expect("kernels are given it");
        cast(I32, Expr::Given(what, ty, range))
    }

    /// What is known about the thread or its kernel, with types and ranges, as often as it is used.
    fn all_given(&self) -> Vec<(Given, Type, Range)> {
        let (block, grid, scalars) = (self.kernel.grid.block, self.kernel.grid.grid, self.kernel.scalars);
        let upto = |high: u32| Range::new(0, i128::from(high) - 1);
        let one = |number: i32| Range::of(number.into());
        let threads = self.kernel.block_threads();
        let mut all = vec![
            (Given::Lane, upto(threads.min(32))),
            (Given::Lane, upto(threads.min(32))),
            (Given::Local, upto(threads)),
            (Given::Local, upto(threads)),
            (Given::BlockThreads, one(threads as i32)),
            (Given::LocalX, upto(block[0])),
            (Given::LocalY, upto(block[1])),
            (Given::BlockX, upto(grid[0])),
        ];
        if !self.scope.in_function {
            let owners = self.kernel.owners();
            let (x, y) = match self.kernel.numbering {
                Numbering::Coordinates => (upto(block[0] * grid[0]), upto(block[1] * grid[1])),
                _ => (upto(scalars.width as u32), upto(owners / scalars.width as u32 + 1)),
            };
            all.extend([
                (Given::Thread, upto(owners)),
                (Given::Thread, upto(owners)),
                (Given::X, x),
                (Given::X, x),
                (Given::Y, y),
                (Given::Width, one(scalars.width)),
                (Given::Count, one(scalars.count)),
                (Given::Some, one(scalars.some)),
            ]);
        }
        let thread = match self.kernel.numbering {
            Numbering::Strided { counter, .. } => counter,
            _ => I32,
        };
        let own = |what| if what == Given::Thread { thread } else { I32 };
        all.into_iter().map(|(what, range)| (what, own(what), range)).collect()
    }

    /// A variable, most likely one of the newest.
    fn variable_in_reach(&mut self) -> Option<Variable> {
        let all = &self.scope.readable;
        if all.is_empty() {
            return None;
        }
        let newest = &all[all.len().saturating_sub(4)..];
        Some(if self.r.chance(65) { *self.r.pick(newest) } else { *self.r.pick(all) })
    }

    fn leaf(&mut self, ty: Type) -> Expr {
        match self.r.below(12) {
            0..7 => match self.variable_in_reach() {
                Some(variable) => cast(ty, Expr::Variable(variable)),
                None => self.given(ty),
            },
            7..10 => self.given(ty),
            10 if !self.scope.pointers.is_empty() => {
                let (pointer, pointed) = *self.r.pick(&self.scope.pointers);
                cast(ty, Expr::Peek(pointer, pointed, self.r.below(3) as u32))
            }
            _ if ty.is_integer() => self.constant(ty),
            _ => self.real_constant(ty),
        }
    }

    fn constant(&mut self, ty: Type) -> Expr {
        let Range { low, high } = ty.range();
        let number = match self.r.below(10) {
            0 => high,
            1 => low,
            2 => high / 2,
            3 => 255,
            _ => *self.r.pick(&[0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 33, 100, -1, -7]),
        };
        Expr::Integer(ty, number.clamp(low, high))
    }

    fn real_constant(&mut self, ty: Type) -> Expr {
        Expr::Eighths(ty, *self.r.pick(&[0, 4, 8, 12, 16, -8, -26, 1, 800]))
    }

    fn whole(&mut self, ty: Type, depth: usize) -> Expr {
        if depth == 0 {
            return self.leaf(ty);
        }
        let depth = depth - 1;
        let two = |maker: &mut Maker, operation| {
            let (a, b) = (maker.whole(ty, depth), maker.whole(ty, depth));
            binary(operation, a, b)
        };
        match self.r.below(26) {
            0..3 => two(self, Binary::Add),
            3..5 => two(self, Binary::Subtract),
            5..7 => two(self, Binary::Multiply),
            7 => {
                let operation = *self.r.pick(&[Binary::And, Binary::Or, Binary::Xor]);
                two(self, operation)
            }
            8 => {
                let operation = *self.r.pick(&[Binary::ShiftLeft, Binary::ShiftRight, Binary::ShiftRight]);
                let amount = Expr::Integer(ty, self.r.below(8 * ty.bytes()) as i128);
                let value = self.whole(ty, depth);
                binary(operation, value, amount)
            }
            9 => {
                let operation = *self.r.pick(&[Binary::ShiftLeft, Binary::ShiftRight]);
                two(self, operation)
            }
            10 => {
                let operation = *self.r.pick(&[Binary::Divide, Binary::Remainder]);
                let by = Expr::Integer(ty, *self.r.pick(&[2, 3, 5, 7, 8, 10, 16, 100]));
                let value = self.whole(ty, depth);
                binary(operation, value, by)
            }
            11 => {
                let operation = *self.r.pick(&[Binary::Divide, Binary::Remainder]);
                let (value, by) = (self.whole(ty, depth), self.whole(ty, depth));
                binary(operation, value, binary(Binary::Maximum, by, Expr::Integer(ty, 1)))
            }
            12 => {
                let operation = *self.r.pick(&[Binary::Minimum, Binary::Maximum]);
                two(self, operation)
            }
            13 | 14 => {
                let (condition, a, b) = (self.condition(depth), self.whole(ty, depth), self.whole(ty, 0));
                Expr::Select(Box::new(condition), Box::new(a), Box::new(b))
            }
            15..19 => cast(ty, self.load()),
            19 => {
                let narrow = *self.r.pick(&Type::INTEGERS);
                let value = self.whole(narrow, depth);
                cast(ty, value)
            }
            20 => {
                let real = *self.r.pick(&[F32, F32, F64, F16]);
                let value = self.real(real, depth);
                cast(ty, value)
            }
            21 => {
                let operation = *self.r.pick(&[Unary::Negate, Unary::Not]);
                Expr::Unary(operation, Box::new(self.whole(ty, depth)))
            }
            22 | 23 => {
                let function = self.r.pick(&INTEGER_FUNCTIONS);
                let arguments = function.arguments.iter().map(|ty| self.whole(*ty, depth.min(1))).collect();
                cast(ty, Expr::Call(function, arguments))
            }
            24 => cast(ty, self.condition(depth)),
            _ => {
                // The upper part of a wide product.
                let (a, b) = (self.whole(I32, depth), self.whole(I32, depth));
                let product = binary(Binary::Multiply, cast(I64, a), cast(I64, b));
                let amount = Expr::Integer(I64, self.r.below(40) as i128);
                cast(ty, binary(Binary::ShiftRight, product, amount))
            }
        }
    }

    fn real(&mut self, ty: Type, depth: usize) -> Expr {
        if depth == 0 {
            return self.leaf(ty);
        }
        let depth = depth - 1;
        match self.r.below(14) {
            0..6 => {
                const ALL: [Binary; 9] = [
                    Binary::Add,
                    Binary::Add,
                    Binary::Subtract,
                    Binary::Multiply,
                    Binary::Multiply,
                    Binary::Add,
                    Binary::Divide,
                    Binary::Minimum,
                    Binary::Maximum,
                ];
                let operation = *self.r.pick(&ALL);
                let (a, b) = (self.real(ty, depth), self.real(ty, depth));
                binary(operation, a, b)
            }
            6..9 => cast(ty, self.load()),
            9 => cast(ty, self.whole(I32, depth)),
            10 => {
                let (condition, a, b) = (self.condition(depth), self.real(ty, depth), self.real(ty, 0));
                Expr::Select(Box::new(condition), Box::new(a), Box::new(b))
            }
            11 | 12 => {
                let function = self.r.pick(&REAL_FUNCTIONS);
                let arguments = function.arguments.iter().map(|ty| self.real(*ty, depth.min(1))).collect();
                cast(ty, Expr::Call(function, arguments))
            }
            _ => Expr::Unary(Unary::Negate, Box::new(self.real(ty, depth))),
        }
    }

    fn relation(&mut self, of: &[&'static str]) -> &'static str {
        of[self.r.below(of.len())]
    }

    /// Something that holds for some threads.
    pub(super) fn condition(&mut self, depth: usize) -> Expr {
        const RELATIONS: [&str; 6] = ["<", ">", "<=", ">=", "==", "!="];
        match self.r.below(12) {
            0 => {
                let value = self.whole(I32, depth);
                let mask = int(*self.r.pick(&[1, 3, 4, 7]));
                compare(
                    self.relation(&["==", "!="]),
                    binary(Binary::And, value, mask),
                    int(self.r.below(2) as i128),
                )
            }
            1 => {
                let lane = Expr::Given(Given::Lane, I32, Range::new(0, 31));
                compare(self.relation(&["<", ">", "=="]), lane, int(self.r.below(32) as i128))
            }
            2 | 3 => {
                let value = self.load();
                let (ty, relation) = (value.ty(), self.relation(&RELATIONS[..4]));
                let limit = if ty.is_integer() {
                    Expr::Integer(ty, *self.r.pick(&[0, 1, 20, 100]))
                } else {
                    self.real_constant(ty)
                };
                compare(relation, value, limit)
            }
            4 => {
                let ty = *self.r.pick(&[F32, F32, F64, F16]);
                let (a, b) = (self.real(ty, depth), self.real(ty, depth));
                compare(self.relation(&RELATIONS), a, b)
            }
            5 | 6 if depth > 0 => {
                let operation = *self.r.pick(&[Binary::And, Binary::Or]);
                let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
                binary(operation, a, b)
            }
            _ => {
                let ty = *self.r.pick(&Type::INTEGERS);
                let (a, b) = (self.whole(ty, depth), self.whole(ty, 0));
                compare(self.relation(&RELATIONS), a, b)
            }
        }
    }

    /// A number from 0 to `high`, one less than a power of two, mostly another one for each thread.
    pub(super) fn small(&mut self, high: i128) -> Expr {
        match self.r.below(10) {
            0 => int(self.r.below(high as usize + 1) as i128),
            1 => int(high),
            2 => binary(Binary::And, Expr::Given(Given::Lane, I32, Range::new(0, 31)), int(high)),
            3 => {
                let value = self.whole(U32, 1);
                let ty = I32;
                cast(ty, binary(Binary::Remainder, value, Expr::Integer(U32, high + 1)))
            }
            4 => {
                let value = self.whole(I32, 1);
                binary(Binary::Maximum, int(0), binary(Binary::Minimum, value, int(high)))
            }
            5 | 6 => {
                let value = self.load();
                binary(Binary::And, cast(I32, value), int(high))
            }
            _ => {
                let value = self.whole(I32, 1);
                binary(Binary::And, value, int(high))
            }
        }
    }

    /// An index of an array with so many elements.
    pub(super) fn index(&mut self, length: u32) -> Expr {
        let near = self.place();
        self.bound(near, length)
    }

    /// A place near some that others look at, or anywhere.
    fn place(&mut self) -> Expr {
        let some = |maker: &mut Maker| match maker.variable_in_reach() {
            Some(variable) if maker.r.chance(75) => cast(I32, Expr::Variable(variable)),
            _ => maker.given(I32),
        };
        let times = |value: Expr, factor: i128| binary(Binary::Multiply, value, int(factor));
        match self.r.below(16) {
            14 | 15 if !self.scope.in_function => self.pixel(),
            0..3 => some(self),
            3 => {
                let (a, b) = (self.given(I32), some(self));
                binary(Binary::Add, a, b)
            }
            4 | 5 => {
                let (a, b) = (self.given(I32), some(self));
                let factor = *self.r.pick(&[2, 3, 4, 8, 16, 33, 32]);
                binary(Binary::Add, times(a, factor), b)
            }
            6 | 7 => {
                let (a, b) = (some(self), some(self));
                let factor = *self.r.pick(&[2, 3, 4, 16, 64, 100]);
                binary(Binary::Add, times(a, factor), b)
            }
            8 => {
                let (a, amount) = (some(self), int(*self.r.pick(&[1, 2, 5, -1, -3, 40])));
                binary(Binary::Add, a, amount)
            }
            9 => {
                let value = some(self);
                binary(Binary::Divide, value, int(*self.r.pick(&[2, 3, 4, 5, 8, 16])))
            }
            10 => {
                let value = some(self);
                binary(Binary::Remainder, value, int(*self.r.pick(&[3, 5, 8, 16, 60])))
            }
            11 => {
                let value = some(self);
                binary(Binary::Xor, value, int(*self.r.pick(&[1, 2, 16, 31])))
            }
            12 => {
                let (condition, a, b) = (self.condition(0), some(self), some(self));
                Expr::Select(Box::new(condition), Box::new(a), Box::new(b))
            }
            _ => self.whole(I32, 2),
        }
    }

    /// A place in a picture, at the thread's own or near it, and within the picture.
    fn pixel(&mut self) -> Expr {
        let scalars = self.kernel.scalars;
        let one = |number: i32| Range::of(number.into());
        let (width, height) = (
            Expr::Given(Given::Width, I32, one(scalars.width)),
            Expr::Given(Given::Height, I32, one(scalars.height)),
        );
        let (mut x, mut y) = (self.given_as(Given::X), self.given_as(Given::Y));
        for coordinate in [&mut x, &mut y] {
            let near = match self.variable_in_reach() {
                Some(variable) if self.r.chance(50) => cast(I32, Expr::Variable(variable)),
                _ => int(*self.r.pick(&[-1, 0, 0, 1, 2])),
            };
            *coordinate = binary(Binary::Add, coordinate.clone(), near);
        }
        let mut within = |coordinate: Expr, length: &Expr| {
            let last = binary(Binary::Subtract, length.clone(), int(1));
            match self.r.below(4) {
                0 => cast(I32, binary(Binary::Remainder, cast(U32, coordinate), cast(U32, length.clone()))),
                1 => binary(Binary::Minimum, binary(Binary::Maximum, coordinate, int(0)), last),
                _ => binary(Binary::Maximum, int(0), binary(Binary::Minimum, coordinate, last)),
            }
        };
        let (x, y) = (within(x, &width), within(y, &height));
        binary(Binary::Add, binary(Binary::Multiply, y, width), x)
    }

    /// The place, or another one if it is not in an array of so many elements.
    pub(super) fn bound(&mut self, place: Expr, length: u32) -> Expr {
        let last = i128::from(length) - 1;
        if place.range().is_within(Range::new(0, last)) && self.r.chance(85) {
            return place;
        }
        let wide = |ty: Type| Expr::Integer(ty, last);
        match self.r.below(8) {
            0 => {
                let most = Expr::Integer(U32, i128::from(length));
                binary(Binary::Remainder, cast(U32, place), most)
            }
            1 | 2 => binary(Binary::Maximum, int(0), binary(Binary::Minimum, place, int(last))),
            3 => binary(Binary::Minimum, cast(U32, place), wide(U32)),
            4 if length.is_power_of_two() => binary(Binary::And, cast(I64, place), wide(I64)),
            5 if length.is_power_of_two() && length <= 1 << 16 => {
                cast(Type::U16, binary(Binary::And, place, int(last)))
            }
            6 if length.is_power_of_two() => binary(Binary::And, cast(U64, cast(U32, place)), wide(U64)),
            _ if length.is_power_of_two() => binary(Binary::And, place, int(last)),
            _ => {
                cast(I32, binary(Binary::Remainder, cast(U32, place), Expr::Integer(U32, i128::from(length))))
            }
        }
    }

    /// An element of some array.
    pub(super) fn load(&mut self) -> Expr {
        let staged = !self.scope.staged.is_empty() && self.r.chance(50);
        let written = !self.scope.writable.is_empty() && self.r.chance(25);
        let array = if staged {
            *self.r.pick(&self.scope.staged)
        } else if written {
            *self.r.pick(&self.scope.writable)
        } else if self.r.chance(8) {
            *self.r.pick(&self.tables)
        } else {
            *self.r.pick(&self.inputs)
        };
        self.load_of(array)
    }

    /// An element of an array, or of another one like it.
    pub(super) fn load_of(&mut self, array: Array) -> Expr {
        let index = self.index(array.length);
        let mut access = Access::new(array, index);
        let twin =
            self.inputs.iter().copied().find(|other| other.ty == array.ty && other.number != array.number);
        if let Some(twin) = twin
            && array.length == INPUT_LENGTH
            && self.r.chance(25)
        {
            access.other = Some((self.condition(0), twin));
        }
        Expr::Load(Box::new(access))
    }
}
