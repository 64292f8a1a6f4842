//! Random kernels.
//!
//! * [`values`](self): expressions, and indices of all kinds;
//! * [`control`](self): what each thread does for itself, loops that lanes leave at different times and the like;
//! * [`memory`](self): arrays, and what is typical of accesses to them;
//! * [`together`](self): what the threads of a warp or block do together.

mod control;
mod memory;
mod together;
mod values;

use std::collections::HashSet;

use super::expr::{Access, Array, Expr, Given, Layout, Space, Variable, cast};
use super::kernel::{Function, Kernel, Numbering, Scalars, Statement};
use super::types::{Range, Type};
use crate::fuzz::Random;
use crate::machine::Grid;

/// Elements of an input.
pub const INPUT_LENGTH: u32 = 4096;
/// Elements of an array of constants.
const TABLE_LENGTH: u32 = 64;
/// Elements that each thread has of an output.
const OWN_LENGTH: u32 = 8;
/// Blocks: one warp and several, and such as do not fill theirs.
const BLOCKS: [[u32; 3]; 24] = [
    [512, 1, 1],
    [32, 32, 1],
    [32, 1, 1],
    [64, 1, 1],
    [128, 1, 1],
    [96, 1, 1],
    [256, 1, 1],
    [128, 1, 1],
    [64, 1, 1],
    [33, 1, 1],
    [100, 1, 1],
    [7, 1, 1],
    [16, 16, 1],
    [32, 4, 1],
    [16, 8, 1],
    [8, 8, 1],
    [32, 8, 1],
    [5, 7, 1],
    [33, 3, 1],
    [8, 5, 3],
    [4, 4, 4],
    [3, 5, 7],
    [32, 2, 2],
    [13, 5, 1],
];

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut r = Random::new(seed);
    let block = *r.pick(&BLOCKS);
    let threads: u32 = block.iter().product();
    let together = r.chance(60);
    let numbering = match r.below(10) {
        0..2 if !together => {
            Numbering::Strided { counter: *r.pick(&[Type::I32, Type::I64, Type::U32]), carries: r.chance(50) }
        }
        2..5 => Numbering::Linear,
        _ if block[1] > 1 => Numbering::Coordinates,
        _ => Numbering::Linear,
    };
    let most = (640 / threads as usize).clamp(1, 6);
    let grid = match numbering {
        Numbering::Coordinates => [1 + r.below(most.min(3)) as u32, 1 + r.below(most.min(2)) as u32, 1],
        _ => [1 + r.below(most) as u32, 1, 1],
    };
    let all = threads * grid.iter().product::<u32>();
    let (width, height) = match numbering {
        Numbering::Coordinates => (block[0] * grid[0], block[1] * grid[1]),
        _ => (*r.pick(&[7, 16, 32, 33, 37, 64]), 20),
    };
    let count = match numbering {
        Numbering::Strided { .. } => 1 + r.below(700),
        _ if r.chance(50) => all as usize,
        _ => (all as usize).saturating_sub(r.below(40)).max(1),
    };
    let scalars = Scalars {
        width: (width - r.below(if numbering == Numbering::Coordinates { 4 } else { 1 }) as u32).max(1)
            as i32,
        height: height as i32,
        count: count as i32,
        some: *r.pick(&[3, 8, 17, 41]),
    };
    let kernel = Kernel {
        seed,
        grid: Grid { grid, block, dynamic_shared: 0, cluster: None },
        scalars,
        numbering,
        restrict: r.chance(60),
        leaves: !together && !matches!(numbering, Numbering::Strided { .. }) && r.chance(80),
        functions: Vec::new(),
        body: Vec::new(),
    };
    let mut maker = Maker::new(r, kernel);
    maker.functions();
    maker.body(together);
    maker.kernel
}

/// A kernel in the making, and what is known where the next statement goes.
struct Maker {
    r: Random,
    kernel: Kernel,
    /// The number of the next name.
    next: u32,
    scope: Scope,
    /// Inputs, the same for all functions.
    inputs: Vec<Array>,
    /// Constants, likewise.
    tables: Vec<Array>,
}

/// What statements may name and do at a place.
#[derive(Clone, Default)]
struct Scope {
    /// What may be read, the newest last.
    readable: Vec<Variable>,
    /// What may be set to any value.
    accumulators: Vec<Variable>,
    /// What may be set to numbers of its range.
    bounded: Vec<Variable>,
    /// Arrays that may be written element by element.
    writable: Vec<Array>,
    /// Arrays of shared memory that may be read.
    staged: Vec<Array>,
    /// Pointers of walks, and the type they point to.
    pointers: Vec<(u32, Type)>,
    /// Loops around.
    depth: usize,
    breaks: bool,
    continues: bool,
    in_function: bool,
    /// Leaving the kernel, or the function, is possible.
    returns: Option<Type>,
    leaves_kernel: bool,
}

impl Maker {
    fn new(r: Random, kernel: Kernel) -> Maker {
        let input = |number: usize, ty: Type| Array {
            space: Space::Input,
            number: number as u32,
            ty,
            length: INPUT_LENGTH,
            layout: Layout::Columns,
        };
        let types = Type::ELEMENTS.into_iter().chain([Type::F32, Type::U8, Type::H2]);
        let inputs = types.enumerate().map(|(number, ty)| input(number, ty)).collect();
        // Kernels of a file have their own.
        let first = kernel.seed as u32 % 64 * 1000;
        let table = |number: u32, ty: Type| Array {
            space: Space::Constant,
            number: first + number,
            ty,
            length: TABLE_LENGTH,
            layout: Layout::Columns,
        };
        let tables = vec![table(0, Type::I32), table(1, Type::F32), table(2, Type::U8), table(3, Type::I16)];
        Maker { r, kernel, next: 100, scope: Scope::default(), inputs, tables }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// A new variable that may be anything.
    fn variable(&mut self, ty: Type) -> Variable {
        Variable { number: self.number(), ty, range: ty.range_or_any(), record: None }
    }

    /// A new variable for integers of a range.
    fn bounded(&mut self, ty: Type, range: Range) -> Variable {
        assert!(range.is_within(ty.range()), "the type has all these numbers");
        Variable { number: self.number(), ty, range, record: None }
    }

    fn functions(&mut self) {
        let count = *self.r.pick(&[0, 0, 1, 1, 2]);
        let mut lendable = Vec::new();
        for _ in 0..self.r.below(2) {
            lendable.push(self.local_array());
        }
        for _ in 0..count {
            self.function(&lendable);
        }
        self.scope = Scope { writable: lendable, ..Scope::default() };
    }

    fn function(&mut self, lendable: &[Array]) {
        self.scope = Scope { in_function: true, depth: 1, ..Scope::default() };
        let parameters: Vec<Variable> = (0..1 + self.r.below(3)).map(|_| self.parameter()).collect();
        let references: Vec<Variable> = (0..self.r.below(3)).map(|_| self.parameter()).collect();
        let lent: Vec<Array> = lendable.iter().filter(|_| self.r.chance(60)).copied().collect();
        self.scope.readable.extend(parameters.iter().chain(&references));
        self.scope.accumulators.extend(&references);
        self.scope.writable.extend(&lent);
        self.accumulators(3);
        let ty = *self.r.pick(&[Type::I32, Type::I32, Type::F32, Type::I64, Type::U32]);
        self.scope.returns = Some(ty);
        let count = 1 + self.r.below(3);
        let body = self.statements(count);
        let result = self.value(ty, 1);
        let inlined = self.r.chance(30);
        self.kernel.functions.push(Function { inlined, parameters, references, lent, body, result });
    }

    fn parameter(&mut self) -> Variable {
        let ty = *self.r.pick(&[Type::I32, Type::I32, Type::U32, Type::I64, Type::F32, Type::I16]);
        self.variable(ty)
    }

    /// Some variables that may be set to anything, some of them members of a structure.
    fn accumulators(&mut self, count: usize) {
        const TYPES: [Type; 12] = [
            Type::I32,
            Type::I32,
            Type::U32,
            Type::F32,
            Type::F32,
            Type::I64,
            Type::F64,
            Type::I16,
            Type::U8,
            Type::U64,
            Type::H2,
            Type::F16,
        ];
        let record = self.number();
        for index in 0..count {
            let ty = if index == 0 { Type::I32 } else { *self.r.pick(&TYPES) };
            let variable = self.variable(ty);
            let variable = Variable { record: self.r.chance(20).then_some(record), ..variable };
            self.scope.accumulators.push(variable);
            self.scope.readable.push(variable);
        }
        for high in [7, 63] {
            let variable = self.bounded(Type::I32, Range::new(0, high));
            self.scope.bounded.push(variable);
        }
    }

    fn body(&mut self, together: bool) {
        self.scope.leaves_kernel = !together;
        let count = 3 + self.r.below(3);
        self.accumulators(count);
        let mut body = Vec::new();
        for accumulator in self.scope.accumulators.clone() {
            if self.r.chance(40) {
                let value = self.given(accumulator.ty);
                body.push(Statement::Set(accumulator, value));
            }
        }
        for _ in 0..self.r.below(3) {
            let array = self.own_array();
            self.scope.writable.push(array);
        }
        if self.r.chance(40) {
            let array = self.local_array();
            self.scope.writable.push(array);
        }
        let count = if self.r.chance(15) { 8 } else { 2 + self.r.below(4) };
        body.extend(if together { self.all_together(count) } else { self.statements(count) });
        let results = self.results();
        if together && self.r.chance(50) {
            let live = Expr::Given(Given::Live, Type::Bool, Type::Bool.range());
            body.push(Statement::If(live, results, Vec::new()));
        } else {
            body.extend(results);
        }
        self.kernel.body = body;
    }

    /// What the variables have become is stored.
    fn results(&mut self) -> Vec<Statement> {
        let mut stores = Vec::new();
        let mut outputs: Vec<(Array, u32)> = Vec::new();
        let last = self.scope.readable.iter().rev().take(4).copied();
        let mut kept: Vec<Variable> = self.scope.accumulators.iter().copied().chain(last).collect();
        kept.extend(&self.scope.bounded);
        let mut stored = HashSet::new();
        kept.retain(|variable| stored.insert(variable.number));
        for variable in kept {
            let ty = match variable.ty {
                Type::Bool => Type::U8,
                Type::H2 | Type::F16 => Type::F32,
                other => other,
            };
            let at = outputs.iter().position(|(array, used)| array.ty == ty && *used < array.length);
            let at = at.unwrap_or_else(|| {
                let array = Array { ty, ..self.own_array() };
                outputs.push((array, 0));
                outputs.len() - 1
            });
            let (array, used) = &mut outputs[at];
            let index = Expr::Integer(Type::I32, i128::from(*used));
            *used += 1;
            stores.push(Statement::Store(Access::new(*array, index), cast(ty, Expr::Variable(variable))));
        }
        stores
    }
}

impl Type {
    /// The range of a variable that may be anything; of no meaning where it is no integer.
    fn range_or_any(self) -> Range {
        if self.is_integer() { self.range() } else { Type::Bool.range() }
    }
}
