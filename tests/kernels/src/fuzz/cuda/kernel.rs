//! Kernels as trees of statements.

use super::expr::{Access, Array, Expr, Variable};
use super::types::Type;
use crate::fuzz::nested::Nested;
use crate::machine::Grid;

/// How a kernel finds out which element a thread works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Numbering {
    /// By its number in the grid.
    Linear,
    /// By coordinates in two or three dimensions.
    Coordinates,
    /// All elements that are a multiple of the grid's threads apart, counted in this type; variables may keep what they are from one to
    /// the next.
    Strided { counter: Type, carries: bool },
}

/// What the scalar parameters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Scalars {
    pub width: i32,
    pub height: i32,
    pub count: i32,
    pub some: i32,
}

/// A kernel and its functions.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it; the others are told")]
pub struct Kernel {
    pub seed: u64,
    pub grid: Grid,
    pub scalars: Scalars,
    pub numbering: Numbering,
    /// Pointers are `__restrict__`.
    pub restrict: bool,
    /// Threads outside the picture leave at once.
    pub leaves: bool,
    pub functions: Vec<Function>,
    pub body: Vec<Statement>,
}

impl Kernel {
    /// Threads of a block.
    pub fn block_threads(&self) -> u32 {
        self.grid.block.iter().product()
    }

    /// Threads of the grid.
    pub fn threads(&self) -> u32 {
        self.block_threads() * self.grid.grid.iter().product::<u32>()
    }

    /// How many threads', or elements', own outputs there are.
    pub fn owners(&self) -> u32 {
        match self.numbering {
            Numbering::Strided { .. } => self.scalars.count as u32,
            _ => self.threads(),
        }
    }
}

/// A function that a kernel calls.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it; the others are told")]
pub struct Function {
    pub inlined: bool,
    /// Given by value.
    pub parameters: Vec<Variable>,
    /// Given by reference.
    pub references: Vec<Variable>,
    /// Local arrays of the kernel that it is given pointers to.
    pub lent: Vec<Array>,
    pub body: Vec<Statement>,
    pub result: Expr,
}

/// How a loop's variable goes on, and how long.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it; the others are told")]
pub enum Course {
    /// `v < to; v += step`
    Up { to: Expr, step: i128 },
    /// Likewise, but the first round is not asked for.
    UpOnce { to: Expr, step: i128 },
    /// `v >= 0; v -= step`
    Down { step: i128 },
    /// `v < to; v = v * factor + plus`, from 1 on at least.
    Grow { to: Expr, factor: i128, plus: i128 },
    /// `v != 0`, shifted by so much each time.
    Shrink { by: i128 },
    /// `v != 0; v &= v - 1`
    Bits,
    /// `v < w; v += step, w -= step`, with another variable that begins with `from`.
    Meet { other: Variable, from: Expr, step: i128 },
}

/// Operations by which threads combine something into a word that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Combine {
    Add,
    Xor,
    Or,
    And,
    Minimum,
    Maximum,
}

impl Combine {
    /// All of them.
    pub const ALL: [Combine; 6] =
        [Combine::Add, Combine::Xor, Combine::Or, Combine::And, Combine::Minimum, Combine::Maximum];
}

/// What the lanes of a warp, or the threads of a block, do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; the others are told")]
pub enum Together {
    ShuffleUp,
    ShuffleDown,
    ShuffleXor,
    ShuffleIndex,
    Ballot,
    Any,
    All,
    Match,
    ReduceAdd,
    ReduceMaximum,
    ReduceOr,
    /// All threads of the block.
    BlockCount,
    /// Likewise.
    BlockOr,
    /// Likewise.
    BlockAnd,
}

/// A structure in memory, and what it consists of.
#[derive(Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Record {
    pub name: &'static str,
    pub fields: &'static [Type],
    pub bytes: u32,
}

/// Structures with and without gaps, of sizes that are powers of two and others.
pub static RECORDS: [Record; 6] = [
    Record { name: "Mixed", fields: &[Type::I32, Type::I16, Type::U8, Type::I8], bytes: 8 },
    Record { name: "Colour", fields: &[Type::U8, Type::U8, Type::U8], bytes: 3 },
    Record { name: "Wide", fields: &[Type::I64, Type::U8, Type::U32], bytes: 16 },
    Record { name: "Shorts", fields: &[Type::I16, Type::U16, Type::I16], bytes: 6 },
    Record { name: "Place", fields: &[Type::I32, Type::I32, Type::U32], bytes: 12 },
    Record { name: "Long", fields: &[Type::U64, Type::I32, Type::I32, Type::I64], bytes: 24 },
];

/// What shared memory is filled with.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Each thread stores its element.
    Own(Expr),
    /// All elements, this one at the place of the variable.
    Whole(Variable, Expr),
}

/// What a thread does. Those that name barriers or other lanes are only where all threads come together.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it; the others are told")]
pub enum Statement {
    Set(Variable, Expr),
    Store(Access, Expr),
    If(Expr, Vec<Statement>, Vec<Statement>),
    Loop {
        variable: Variable,
        from: Expr,
        course: Course,
        unroll: Option<u32>,
        body: Vec<Statement>,
    },
    /// A pointer goes over elements of an input; how far it came is what is left in the variable.
    Walk {
        pointer: u32,
        array: Array,
        from: Expr,
        count: Expr,
        step: u32,
        left: Variable,
        body: Vec<Statement>,
    },
    Break,
    Continue,
    /// Out of a function, with its result, or out of the kernel.
    Return(Option<Expr>),
    /// Cases, and whether each falls through to the next.
    Switch(Expr, Vec<(Vec<Statement>, bool)>),
    /// A vector of elements is loaded, or stored.
    Vector {
        array: Array,
        index: Expr,
        members: Vec<Variable>,
        store: bool,
    },
    /// `compares`: by a loop around a comparison and exchange.
    Atomic {
        array: Array,
        operation: Combine,
        index: Expr,
        value: Expr,
        compares: bool,
    },
    /// A structure is loaded from the bytes of an input.
    Fields {
        array: Array,
        record: &'static Record,
        index: Expr,
        members: Vec<Variable>,
    },
    Call {
        function: usize,
        arguments: Vec<Expr>,
        references: Vec<Variable>,
        result: Variable,
    },
    /// Shared memory is filled, and then used.
    Stage {
        array: Array,
        fill: Fill,
        body: Vec<Statement>,
    },
    /// Words of shared memory that threads combine something into first, and look at then.
    Gather {
        array: Array,
        start: i128,
        first: Vec<Statement>,
        then: Vec<Statement>,
    },
    /// Sums of what the threads before have, through shared memory.
    Scan {
        array: Array,
        value: Expr,
        result: Variable,
    },
    /// What the block's threads have, in order, of which each gets its own.
    Sort {
        array: Array,
        value: Expr,
        result: Variable,
    },
    /// Those threads for which the condition holds put their value into a list, wherever there is room: the sum is the same.
    Collect {
        array: Array,
        condition: Expr,
        value: Expr,
        result: Variable,
    },
    /// `operand` is the lane, distance or nothing.
    Together {
        what: Together,
        mask: u32,
        width: u32,
        value: Expr,
        operand: Expr,
        result: Variable,
    },
    /// Some lanes only: `mask` says which.
    Subset {
        mask: u32,
        body: Vec<Statement>,
    },
    /// One lane after the other tells its value to all, as long as there are any for which the condition holds.
    Peel {
        pending: Expr,
        value: Expr,
        result: Variable,
        with_equals: bool,
        body: Vec<Statement>,
    },
}

/// The statements inside of one, of a reference to it of either kind.
macro_rules! lists {
    ($statement:expr) => {
        match $statement {
            Statement::If(_, then, otherwise) => vec![then, otherwise],
            Statement::Loop { body, .. }
            | Statement::Walk { body, .. }
            | Statement::Stage { body, .. }
            | Statement::Subset { body, .. }
            | Statement::Peel { body, .. } => vec![body],
            Statement::Switch(_, cases) => cases.into_iter().map(|(body, _)| body).collect(),
            Statement::Gather { first, then, .. } => vec![first, then],
            _ => Vec::new(),
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
            Statement::If(condition, then, _) => {
                Some(Statement::If(condition.clone(), then.clone(), Vec::new()))
            }
            Statement::Loop { variable, from, course, body, .. } => Some(Statement::Loop {
                variable: *variable,
                from: from.clone(),
                course: course.clone(),
                unroll: None,
                body: body.clone(),
            }),
            _ => None,
        }
    }
}

/// The expressions of a statement, of a reference to it of either kind, with the method that hands out those of an access likewise.
macro_rules! expressions {
    ($statement:expr, $operands:ident) => {
        match $statement {
            Statement::Set(_, value) | Statement::Scan { value, .. } | Statement::Sort { value, .. } => {
                vec![value]
            }
            Statement::Collect { condition, value, .. } => vec![condition, value],
            Statement::Store(access, value) => access.$operands().into_iter().chain([value]).collect(),
            Statement::If(condition, ..) | Statement::Switch(condition, _) => vec![condition],
            Statement::Loop { from, course, .. } => match course {
                Course::Up { to, .. } | Course::UpOnce { to, .. } | Course::Grow { to, .. } => vec![from, to],
                Course::Meet { from: other, .. } => vec![from, other],
                Course::Down { .. } | Course::Shrink { .. } | Course::Bits => vec![from],
            },
            Statement::Walk { from, count, .. } => vec![from, count],
            Statement::Return(value) => Vec::from_iter(value),
            Statement::Vector { index, .. } | Statement::Fields { index, .. } => vec![index],
            Statement::Atomic { index, value, .. } => vec![index, value],
            Statement::Call { arguments, .. } => Vec::from_iter(arguments),
            Statement::Stage { fill: Fill::Own(value) | Fill::Whole(_, value), .. } => vec![value],
            Statement::Together { value, operand, .. } => vec![value, operand],
            Statement::Peel { pending, value, .. } => vec![pending, value],
            Statement::Break | Statement::Continue | Statement::Gather { .. } | Statement::Subset { .. } => {
                Vec::new()
            }
        }
    };
}

impl Statement {
    /// Its own expressions, without those of statements inside.
    pub fn expressions(&self) -> Vec<&Expr> {
        expressions!(self, operands)
    }

    /// Likewise, to be changed.
    pub fn expressions_mut(&mut self) -> Vec<&mut Expr> {
        expressions!(self, operands_mut)
    }

    /// The variables that it sets, and its arrays, without those of statements and expressions inside.
    pub fn names(&self) -> (Vec<Variable>, Vec<Array>) {
        match self {
            Statement::Set(variable, _) => (vec![*variable], vec![]),
            Statement::Store(access, _) => {
                (vec![], access.other.iter().map(|(_, array)| *array).chain([access.array]).collect())
            }
            Statement::Loop { variable, course, .. } => match course {
                Course::Meet { other, .. } => (vec![*variable, *other], vec![]),
                _ => (vec![*variable], vec![]),
            },
            Statement::Walk { array, left, .. } => (vec![*left], vec![*array]),
            Statement::Vector { array, members, .. } | Statement::Fields { array, members, .. } => {
                (members.clone(), vec![*array])
            }
            Statement::Atomic { array, .. } | Statement::Gather { array, .. } => (vec![], vec![*array]),
            Statement::Call { references, result, .. } => {
                (references.iter().copied().chain([*result]).collect(), vec![])
            }
            Statement::Stage { array, fill, .. } => match fill {
                Fill::Own(_) => (vec![], vec![*array]),
                Fill::Whole(variable, _) => (vec![*variable], vec![*array]),
            },
            Statement::Scan { array, result, .. }
            | Statement::Sort { array, result, .. }
            | Statement::Collect { array, result, .. } => (vec![*result], vec![*array]),
            Statement::Together { result, .. } | Statement::Peel { result, .. } => (vec![*result], vec![]),
            Statement::If(..)
            | Statement::Break
            | Statement::Continue
            | Statement::Return(_)
            | Statement::Switch(..)
            | Statement::Subset { .. } => (vec![], vec![]),
        }
    }
}
