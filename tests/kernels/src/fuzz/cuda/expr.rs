//! Expressions: values with a type, and for integers a range.

use super::types::{Range, Type};

/// A variable of a kernel or function. All are declared at its beginning, as 0 or the number of their range next to it, so that any
/// statement may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Variable {
    pub number: u32,
    pub ty: Type,
    /// Of integers: all that it may ever be.
    pub range: Range,
    /// The number of the structure that it is a member of.
    pub record: Option<u32>,
}

/// What a kernel is given, by its place in the grid or by parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it; the others are told")]
pub enum Given {
    /// The thread's number in the grid, which its outputs lie by.
    Thread,
    X,
    Y,
    Z,
    Lane,
    /// Its number in the block.
    Local,
    /// Threads of the block.
    BlockThreads,
    LocalX,
    LocalY,
    BlockX,
    /// Whether it is in the picture that the kernel works on.
    Live,
    Width,
    Height,
    /// How many elements there are to work on.
    Count,
    /// Some small number.
    Some,
    /// Threads of the grid.
    Total,
    /// Some number that is not whole.
    Scale,
}

/// Where an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it; the others are told")]
pub enum Space {
    Input,
    /// Each thread's own elements of an output.
    Own,
    Local,
    Shared,
    /// Constants, the same in all kernels that have an array of the number.
    Constant,
    /// Words of global memory that all threads combine something into, by the operation of the number.
    Counters,
}

/// How the elements of an array lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// One behind the other; for outputs, so that those of neighbours with the same number are side by side.
    Columns,
    /// Each so many places behind the one before; for outputs, a thread's elements are side by side, and so many are its own.
    Rows(u32),
    /// Rows of so many, each with so many unused ones behind it.
    Padded(u32, u32),
}

/// An array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Array {
    pub space: Space,
    pub number: u32,
    pub ty: Type,
    /// Elements; of outputs, each thread's.
    pub length: u32,
    pub layout: Layout,
}

/// An element, or one of either of two arrays with elements of one type.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Access {
    pub array: Array,
    /// Where the condition does not hold it is this one.
    pub other: Option<(Expr, Array)>,
    pub index: Expr,
}

/// A function of CUDA's headers.
#[derive(Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Intrinsic {
    pub name: &'static str,
    pub ty: Type,
    pub arguments: &'static [Type],
    /// Of integers: what it answers, if less than the type has.
    pub range: Option<Range>,
}

/// An operation with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unary {
    Negate,
    Not,
}

/// An operation with two operands of one type; of shifts, the second is taken modulo the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    /// Of integers, by positive ones only.
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Minimum,
    Maximum,
}

/// An expression without effect.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it; the others are told")]
pub enum Expr {
    Integer(Type, i128),
    /// So many eighths.
    Eighths(Type, i32),
    Variable(Variable),
    Given(Given, Type, Range),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// By an operator of C++; operands have one type.
    Compare(&'static str, Box<Expr>, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(Type, Box<Expr>),
    Call(&'static Intrinsic, Vec<Expr>),
    Load(Box<Access>),
    /// What is so many elements behind the pointer of a walk.
    Peek(u32, Type, u32),
}

/// The expressions in one, of a reference to it of either kind, with the method that hands out those of an access likewise.
macro_rules! operands {
    ($expr:expr, $operands:ident) => {
        match $expr {
            Expr::Integer(..) | Expr::Eighths(..) | Expr::Variable(_) | Expr::Given(..) | Expr::Peek(..) => {
                Vec::new()
            }
            Expr::Unary(_, a) | Expr::Cast(_, a) => vec![a],
            Expr::Binary(_, a, b) | Expr::Compare(_, a, b) => vec![a, b],
            Expr::Select(condition, a, b) => vec![condition, a, b],
            Expr::Call(_, arguments) => Vec::from_iter(arguments),
            Expr::Load(access) => access.$operands(),
        }
    };
}

impl Expr {
    /// Its type.
    pub fn ty(&self) -> Type {
        match self {
            Expr::Integer(ty, _)
            | Expr::Eighths(ty, _)
            | Expr::Given(_, ty, _)
            | Expr::Cast(ty, _)
            | Expr::Peek(_, ty, _) => *ty,
            Expr::Variable(variable) => variable.ty,
            Expr::Unary(_, operand) | Expr::Binary(_, operand, _) | Expr::Select(_, operand, _) => {
                operand.ty()
            }
            Expr::Compare(..) => Type::Bool,
            Expr::Call(intrinsic, _) => intrinsic.ty,
            Expr::Load(access) => access.array.ty,
        }
    }

    /// What it may be, if it is an integer.
    pub fn range(&self) -> Range {
        let all = self.ty().range();
        let or_all = |range: Range| if range.is_within(all) { range } else { all };
        match self {
            Expr::Integer(_, number) => Range::of(*number),
            Expr::Variable(variable) => variable.range,
            Expr::Given(_, _, range) => *range,
            Expr::Select(_, a, b) => a.range().join(b.range()),
            Expr::Cast(_, operand) if operand.ty().is_integer() || operand.ty() == Type::Bool => {
                or_all(operand.range())
            }
            Expr::Binary(operation, a, b) if all_integers(a) => or_all(exact(*operation, a, b)),
            Expr::Call(intrinsic, _) => intrinsic.range.unwrap_or(all),
            _ => all,
        }
    }

    /// Whether it cannot overflow when it is written with the type's own operators.
    pub fn is_exact(&self) -> bool {
        match self {
            Expr::Binary(operation, a, b) if all_integers(a) => {
                exact(*operation, a, b).is_within(self.ty().range())
            }
            _ => false,
        }
    }

    /// What it is made of.
    pub fn operands(&self) -> Vec<&Expr> {
        operands!(self, operands)
    }

    /// Likewise, to be changed.
    pub fn operands_mut(&mut self) -> Vec<&mut Expr> {
        operands!(self, operands_mut)
    }
}

impl Access {
    /// An element of one array.
    pub fn new(array: Array, index: Expr) -> Access {
        Access { array, other: None, index }
    }

    /// The expressions in it.
    pub fn operands(&self) -> Vec<&Expr> {
        self.other.iter().map(|(condition, _)| condition).chain([&self.index]).collect()
    }

    /// Likewise, to be changed.
    pub fn operands_mut(&mut self) -> Vec<&mut Expr> {
        self.other.iter_mut().map(|(condition, _)| condition).chain([&mut self.index]).collect()
    }
}

fn all_integers(operand: &Expr) -> bool {
    operand.ty().is_integer()
}

/// What an operation on integers would come to without overflow.
fn exact(operation: Binary, a: &Expr, b: &Expr) -> Range {
    let (ty, left, right) = (a.ty(), a.range(), b.range());
    let positive = left.low >= 0 && right.low >= 0;
    match operation {
        Binary::Add => left.corners(right, |a, b| a + b),
        Binary::Subtract => left.corners(right, |a, b| a - b),
        Binary::Multiply => left.corners(right, i128::saturating_mul),
        Binary::Divide => left.corners(right, |a, b| a / b.max(1)),
        Binary::Remainder => {
            let most = (right.high - 1).max(0);
            let low = if left.low >= 0 { 0 } else { (-most).max(left.low) };
            Range::new(low, most.min(left.high).max(0))
        }
        Binary::And if positive => Range::new(0, left.high.min(right.high)),
        Binary::And if left.low >= 0 => Range::new(0, left.high),
        Binary::And if right.low >= 0 => Range::new(0, right.high),
        Binary::Or | Binary::Xor if positive => {
            let bits = 128 - left.high.max(right.high).leading_zeros();
            Range::new(0, (1 << bits) - 1)
        }
        Binary::ShiftLeft => match b {
            Expr::Integer(_, amount) if (0..8).contains(amount) => {
                left.corners(Range::of(1 << amount), i128::saturating_mul)
            }
            _ => Range::new(i128::MIN, i128::MAX),
        },
        Binary::ShiftRight => match b {
            Expr::Integer(_, amount) if *amount >= 0 && *amount < 8 * ty.bytes() as i128 => {
                left.corners(Range::of(*amount), |a, b| a >> b)
            }
            _ => left.join(Range::of(if left.low < 0 { -1 } else { 0 })),
        },
        Binary::Minimum => Range::new(left.low.min(right.low), left.high.min(right.high)),
        Binary::Maximum => Range::new(left.low.max(right.low), left.high.max(right.high)),
        Binary::And | Binary::Or | Binary::Xor => ty.range(),
    }
}

/// A number of type `int`.
pub fn int(number: i128) -> Expr {
    Expr::Integer(Type::I32, number)
}

/// An operation on two values of one type.
pub fn binary(operation: Binary, a: Expr, b: Expr) -> Expr {
    assert_eq!(a.ty(), b.ty(), "operands have one type");
    Expr::Binary(operation, Box::new(a), Box::new(b))
}

/// The value in another type, if it has not that one already.
pub fn cast(ty: Type, value: Expr) -> Expr {
    if value.ty() == ty { value } else { Expr::Cast(ty, Box::new(value)) }
}

/// A comparison of two values of one type.
pub fn compare(relation: &'static str, a: Expr, b: Expr) -> Expr {
    assert_eq!(a.ty(), b.ty(), "operands have one type");
    Expr::Compare(relation, Box::new(a), Box::new(b))
}
