//! A kernel's text, in CUDA C++.

mod expr;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::expr::{Array, Binary, Expr, Layout, Space, Variable};
use super::kernel::{Combine, Course, Fill, Function, Kernel, Numbering, RECORDS, Statement, Together};
use super::types::Type;
use crate::fuzz::nested::Nested;
use expr::{array_name, convert, element, expr, name_of, number, operate, own_slot, place};

/// Names of the types.
const TYPES: &str = "\
#include <cuda_fp16.h>
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef __half f16;
typedef float f32;
typedef double f64;
typedef __half2 h2;
";

/// What stands before all kernels of a file.
pub fn prelude() -> String {
    let mut text = String::from(TYPES);
    for record in &RECORDS {
        let fields = record.fields.iter().enumerate();
        let fields: Vec<String> = fields.map(|(at, ty)| format!("{} f{at};", ty.name())).collect();
        let _ = writeln!(text, "struct {} {{ {} }};", record.name, fields.join(" "));
    }
    text
}

/// What functions know of their thread.
const PLACE_IN_BLOCK: &str = "    const i32 tx = threadIdx.x, ty = threadIdx.y, tz = threadIdx.z, bx = blockIdx.x;
    const i32 LB = blockDim.x * blockDim.y * blockDim.z, L = tx + blockDim.x * (ty + blockDim.y * tz), lane = L & 31;
";

/// The kernel's text, without [`prelude`]; functions begin with its name.
pub fn kernel(kernel: &Kernel, name: &str) -> String {
    let used = Used::by(kernel, &kernel.body);
    let tables = used.arrays.values().filter(|array| array.space == Space::Constant);
    let mut text: String = tables.map(table).collect();
    for &index in used.functions.iter().rev() {
        text += &function(kernel, index, name);
    }
    Printer { kernel, name, text, depth: 1 }.kernel()
}

/// The arrays that a kernel is given, in the order of its parameters; numbers follow.
pub fn parameters(kernel: &Kernel) -> Vec<Array> {
    let used = Used::by(kernel, &kernel.body);
    used.arrays
        .into_values()
        .filter(|array| !matches!(array.space, Space::Local | Space::Shared | Space::Constant))
        .collect()
}

/// What statements name.
#[derive(Default)]
struct Used {
    variables: BTreeMap<u32, Variable>,
    arrays: BTreeMap<(Space, u32), Array>,
    functions: BTreeSet<usize>,
}

impl Used {
    fn by(kernel: &Kernel, list: &[Statement]) -> Used {
        let mut used = Used::default();
        used.statements(kernel, list);
        used
    }

    fn statements(&mut self, kernel: &Kernel, list: &[Statement]) {
        for statement in list {
            let (variables, arrays) = statement.names();
            self.variables.extend(variables.into_iter().map(|variable| (variable.number, variable)));
            arrays.into_iter().for_each(|array| self.array(array));
            statement.expressions().into_iter().for_each(|expr| self.expr(expr));
            statement.lists().into_iter().for_each(|list| self.statements(kernel, list));
            if let Statement::Call { function, .. } = statement
                && self.functions.insert(*function)
            {
                let called = &kernel.functions[*function];
                called.lent.iter().for_each(|array| self.array(*array));
                outside(kernel, called).into_iter().for_each(|array| self.array(array));
            }
        }
    }

    fn array(&mut self, array: Array) {
        self.arrays.insert((array.space, array.number), array);
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Variable(variable) => {
                self.variables.insert(variable.number, *variable);
            }
            Expr::Load(access) => {
                self.array(access.array);
                access.other.iter().for_each(|(_, array)| self.array(*array));
            }
            _ => {}
        }
        expr.operands().into_iter().for_each(|operand| self.expr(operand));
    }
}

/// The arrays that a function and those that it calls have not of their own.
fn outside(kernel: &Kernel, function: &Function) -> Vec<Array> {
    let mut used = Used::by(kernel, &function.body);
    used.expr(&function.result);
    let inside = |array: &Array| matches!(array.space, Space::Local | Space::Shared);
    used.arrays.into_values().filter(|array| !inside(array)).collect()
}

/// Those of global memory: a function's last parameters.
fn globals(kernel: &Kernel, function: &Function) -> Vec<Array> {
    let mut arrays = outside(kernel, function);
    arrays.retain(|array| array.space != Space::Constant);
    arrays
}

/// The variable of an array of constants, in constant memory or global.
fn table(array: &Array) -> String {
    let (ty, name, length) = (array.ty, array_name(array), array.length);
    let space = if array.number.is_multiple_of(2) { "__constant__" } else { "static __device__ const" };
    let values: Vec<String> = (0..length)
        .map(|at| i128::from((at * 37 + array.number) % 101))
        .map(|value| if ty.is_integer() { number(ty, value) } else { format!("{}.5f", value - 50) })
        .collect();
    format!("{space} {} {name}[{length}] = {{{}}};\n", ty.name(), values.join(", "))
}

fn function(kernel: &Kernel, index: usize, kernel_name: &str) -> String {
    let function = &kernel.functions[index];
    let mut used = Used::by(kernel, &function.body);
    used.expr(&function.result);
    let mut parameters = Vec::new();
    parameters.extend(function.parameters.iter().map(|v| format!("{} {}", v.ty.name(), name_of(v))));
    parameters.extend(function.references.iter().map(|v| format!("{}& {}", v.ty.name(), name_of(v))));
    parameters
        .extend(function.lent.iter().map(|array| format!("{}* {}", array.ty.name(), array_name(array))));
    parameters.extend(globals(kernel, function).iter().map(|array| pointer(array, false)));
    let mut text = format!(
        "static __device__ {} {} {kernel_name}_f{index}({})\n{{\n{PLACE_IN_BLOCK}",
        if function.inlined { "__forceinline__" } else { "__noinline__" },
        function.result.ty().name(),
        parameters.join(", ")
    );
    for variable in function.parameters.iter().chain(&function.references) {
        used.variables.remove(&variable.number);
    }
    for array in &function.lent {
        used.arrays.remove(&(Space::Local, array.number));
    }
    text += &declarations(&used);
    let mut printer = Printer { kernel, name: kernel_name, text, depth: 1 };
    printer.statements(&function.body);
    printer.line(&format!("return {};", expr(&function.result)));
    printer.text + "}\n"
}

/// A parameter for an array of global memory.
fn pointer(array: &Array, restrict: bool) -> String {
    let constant = if array.space == Space::Input { "const " } else { "" };
    let restrict = if restrict { "__restrict__ " } else { "" };
    format!("{constant}{}* {restrict}{}", array.ty.name(), array_name(array))
}

/// Variables, structures and the arrays of functions.
fn declarations(used: &Used) -> String {
    let mut text = String::new();
    let mut records: BTreeMap<u32, Vec<&Variable>> = BTreeMap::new();
    for variable in used.variables.values() {
        match variable.record {
            Some(record) => records.entry(record).or_default().push(variable),
            None => {
                let _ =
                    writeln!(text, "    {} {} = {};", variable.ty.name(), name_of(variable), first(variable));
            }
        }
    }
    for (record, members) in records {
        let fields: Vec<String> = members.iter().map(|v| format!("{} v{};", v.ty.name(), v.number)).collect();
        let firsts: Vec<String> = members.iter().map(|v| first(v)).collect();
        let _ = writeln!(text, "    struct R{record} {{ {} }};", fields.join(" "));
        let _ = writeln!(text, "    R{record} r{record} = {{{}}};", firsts.join(", "));
    }
    for array in used.arrays.values() {
        let (ty, name) = (array.ty.name(), array_name(array));
        match array.space {
            Space::Shared => {
                let _ = writeln!(text, "    __shared__ __align__(16) {ty} {name}[{}];", places(array));
            }
            Space::Local => {
                let _ = writeln!(text, "    {ty} {name}[{}];", array.length);
                let element = format!("{name}[z] = {};", convert(array.ty, Type::I32, "(z * 3 ^ lane)"));
                let _ = writeln!(text, "    for (i32 z = 0; z < {}; z++) {element}", array.length);
            }
            Space::Input | Space::Own | Space::Counters | Space::Constant => {}
        }
    }
    text
}

/// Elements that an array has room for.
fn places(array: &Array) -> u32 {
    match array.layout {
        Layout::Columns => array.length,
        Layout::Rows(step) => array.length * step,
        Layout::Padded(row, unused) => array.length.div_ceil(row) * (row + unused),
    }
}

/// What a variable is in the beginning.
fn first(variable: &Variable) -> String {
    match variable.ty {
        Type::F16 => "__float2half(0.f)".into(),
        Type::H2 => "__float2half2_rn(0.f)".into(),
        ty if ty.is_integer() => number(ty, 0.clamp(variable.range.low, variable.range.high)),
        _ => "0".into(),
    }
}

/// A barrier of the block.
const SYNC: &str = "__syncthreads();";

struct Printer<'a> {
    kernel: &'a Kernel,
    name: &'a str,
    text: String,
    depth: usize,
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        self.text += &"    ".repeat(self.depth);
        self.text += line;
        self.text.push('\n');
    }

    fn kernel(mut self) -> String {
        let (kernel, used) = (self.kernel, Used::by(self.kernel, &self.kernel.body));
        let mut parameters: Vec<String> =
            self::parameters(kernel).iter().map(|array| pointer(array, kernel.restrict)).collect();
        parameters.push("i32 w, i32 h, i32 n, i32 m, i32 total, f32 k".into());
        let _ = writeln!(
            self.text,
            "extern \"C\" __global__ void {}({})\n{{\n{}",
            self.name,
            parameters.join(", "),
            PLACE_IN_BLOCK.trim_end()
        );
        const NUMBER: &str = "(i32)(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)) * LB + L";
        let mut ends = 0;
        match kernel.numbering {
            Numbering::Linear => {
                self.line(&format!("const i32 t = {NUMBER}, x = t % w, y = t / w, z = 0;"));
                self.line("const bool live = t < n;");
            }
            Numbering::Coordinates => {
                self.line("const i32 x = blockIdx.x * blockDim.x + tx, y = blockIdx.y * blockDim.y + ty;");
                self.line("const i32 z = blockIdx.z * blockDim.z + tz;");
                self.line("const i32 t = (z * (gridDim.y * blockDim.y) + y) * (gridDim.x * blockDim.x) + x;");
                self.line("const bool live = x < w && y < h;");
            }
            Numbering::Strided { counter, carries } => {
                if carries {
                    self.text += &declarations(&used);
                }
                let step = "LB * gridDim.x * gridDim.y * gridDim.z";
                self.line(&format!(
                    "for ({} t = {NUMBER}; t < ({})n; t += {step}) {{",
                    counter.name(),
                    counter.name()
                ));
                self.line("const i32 x = (i32)t % w, y = (i32)t / w, z = 0;");
                self.line("const bool live = true;");
                ends = 1;
                if !carries {
                    self.text += &declarations(&used);
                }
            }
        }
        if kernel.leaves {
            self.line("if (!live) return;");
        }
        if ends == 0 {
            self.text += &declarations(&used);
        }
        self.statements(&kernel.body);
        self.text + &"}".repeat(ends + 1) + "\n"
    }

    fn statements(&mut self, list: &[Statement]) {
        list.iter().for_each(|statement| self.statement(statement));
    }

    fn block(&mut self, head: &str, body: &[Statement], tail: &str) {
        self.line(&format!("{head}{{"));
        self.depth += 1;
        self.statements(body);
        self.depth -= 1;
        self.line(&format!("}}{tail}"));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Set(variable, value) => {
                self.line(&format!("{} = {};", name_of(variable), expr(value)))
            }
            Statement::Store(access, value) => self.line(&format!("{} = {};", place(access), expr(value))),
            Statement::If(condition, then, otherwise) => {
                self.block(&format!("if ({}) ", expr(condition)), then, "");
                if !otherwise.is_empty() {
                    self.block("else ", otherwise, "");
                }
            }
            Statement::Loop { variable, from, course, unroll, body } => {
                if let Some(times) = unroll {
                    self.line(&format!("#pragma unroll {times}"));
                }
                self.repeat(variable, from, course, body);
            }
            Statement::Walk { pointer, array, from, count, step, left, body } => {
                let (ty, name) = (array.ty.name(), array_name(array));
                self.line("{");
                self.line(&format!(
                    "const {ty}* p{pointer} = {name} + {}, *e{pointer} = p{pointer} + {};",
                    expr(from),
                    expr(count)
                ));
                let head = format!("for (; p{pointer} < e{pointer}; p{pointer} += {step}) ");
                self.block(&head, body, "");
                self.line(&format!("{} = ({})(p{pointer} - {name}); }}", name_of(left), left.ty.name()));
            }
            Statement::Break => self.line("break;"),
            Statement::Continue => self.line("continue;"),
            Statement::Return(None) => self.line("return;"),
            Statement::Return(Some(value)) => self.line(&format!("return {};", expr(value))),
            Statement::Switch(on, cases) => {
                self.line(&format!("switch ({}) {{", expr(on)));
                for (number, (body, falls)) in cases.iter().enumerate() {
                    self.block(&format!("case {number}: "), body, if *falls { "" } else { " break;" });
                }
                self.line("}");
            }
            Statement::Vector { array, index, members, store } => self.vector(array, index, members, *store),
            Statement::Fields { array, record, index, members } => {
                let parts: Vec<String> = members
                    .iter()
                    .enumerate()
                    .map(|(at, member)| format!("{} = q.f{at};", name_of(member)))
                    .collect();
                let (name, base) = (record.name, array_name(array));
                let at = expr(index);
                self.line(&format!(
                    "{{ const {name} q = ((const {name}*){base})[{at}]; {} }}",
                    parts.join(" ")
                ));
            }
            Statement::Atomic { array, operation, index, value, compares: true } => {
                let (at, ty) = (element(array, &expr(index)), array.ty);
                let operation = match operation {
                    Combine::Add => Binary::Add,
                    Combine::Xor => Binary::Xor,
                    Combine::Or => Binary::Or,
                    Combine::And => Binary::And,
                    Combine::Minimum => Binary::Minimum,
                    Combine::Maximum => Binary::Maximum,
                };
                let new = operate(operation, ty, false, "was", "mine");
                self.line(&format!("{{ {0}* word = &{at}; const {0} mine = {1};", ty.name(), expr(value)));
                self.line(&format!("{0} now = *word, was;", ty.name()));
                self.line(&format!(
                    "do {{ was = now; now = atomicCAS(word, was, {new}); }} while (now != was); }}"
                ));
            }
            Statement::Atomic { array, operation, index, value, .. } => {
                let function = match operation {
                    Combine::Add => "atomicAdd",
                    Combine::Xor => "atomicXor",
                    Combine::Or => "atomicOr",
                    Combine::And => "atomicAnd",
                    Combine::Minimum => "atomicMin",
                    Combine::Maximum => "atomicMax",
                };
                let at = element(array, &expr(index));
                self.line(&format!("{function}(&{at}, {});", expr(value)));
            }
            Statement::Call { function, arguments, references, result } => {
                let called = &self.kernel.functions[*function];
                let mut given: Vec<String> = arguments.iter().map(expr).collect();
                given.extend(references.iter().map(name_of));
                given.extend(called.lent.iter().map(array_name));
                given.extend(globals(self.kernel, called).iter().map(array_name));
                let call = format!("{}_f{function}({})", self.name, given.join(", "));
                self.line(&format!("{} = {call};", name_of(result)));
            }
            Statement::Stage { .. } | Statement::Gather { .. } => self.shared(statement),
            Statement::Scan { .. } | Statement::Sort { .. } | Statement::Collect { .. } => {
                self.whole_block(statement);
            }
            Statement::Together { .. } | Statement::Subset { .. } | Statement::Peel { .. } => {
                self.warp(statement);
            }
        }
    }

    fn repeat(&mut self, variable: &Variable, from: &Expr, course: &Course, body: &[Statement]) {
        let (v, from, ty) = (name_of(variable), expr(from), variable.ty.name());
        match course {
            Course::Up { to, step } => {
                self.block(&format!("for ({v} = {from}; {v} < {}; {v} += {step}) ", expr(to)), body, "");
            }
            Course::UpOnce { to, step } => {
                self.line(&format!("{v} = {from};"));
                self.block("do ", body, &format!(" while (({v} += {step}) < {});", expr(to)));
            }
            Course::Down { step } => {
                self.block(&format!("for ({v} = {from}; {v} >= 0; {v} -= {step}) "), body, "");
            }
            Course::Grow { to, factor, plus } => {
                let next = format!("{v} = ({ty})({v} * {factor} + {plus})");
                self.block(&format!("for ({v} = {from}; {v} < {}; {next}) ", expr(to)), body, "");
            }
            Course::Shrink { by } => {
                self.block(&format!("for ({v} = {from}; {v} != 0; {v} >>= {by}) "), body, "");
            }
            Course::Bits => {
                self.block(&format!("for ({v} = {from}; {v} != 0; {v} &= {v} - 1) "), body, "");
            }
            Course::Meet { other, from: second, step } => {
                let o = name_of(other);
                let head = format!(
                    "for ({v} = {from}, {o} = {}; {v} < {o}; {v} += {step}, {o} -= {step}) ",
                    expr(second)
                );
                self.block(&head, body, "");
            }
        }
    }

    fn vector(&mut self, array: &Array, index: &Expr, members: &[Variable], store: bool) {
        let ty = format!("{}{}", vector_base(array.ty), members.len());
        let constant = if array.space == Space::Input { "const " } else { "" };
        let base = match array.space {
            Space::Own => format!("&{}", element(array, "0")),
            _ => array_name(array),
        };
        let at = format!("(({constant}{ty}*)({base}))[{}]", expr(index));
        let names: Vec<String> = members.iter().map(name_of).collect();
        if store {
            self.line(&format!("{at} = make_{ty}({});", names.join(", ")));
        } else {
            let parts: Vec<String> = names
                .iter()
                .zip(["x", "y", "z", "w"])
                .map(|(name, part)| format!("{name} = q.{part};"))
                .collect();
            self.line(&format!("{{ {ty} q = {at}; {} }}", parts.join(" ")));
        }
    }

    fn shared(&mut self, statement: &Statement) {
        match statement {
            Statement::Stage { array, fill, body } => {
                match fill {
                    Fill::Own(value) => self.line(&format!("{} = {};", own_slot(array), expr(value))),
                    Fill::Whole(variable, value) => {
                        let (v, at) = (name_of(variable), element(array, &name_of(variable)));
                        let head = format!("for ({v} = L; {v} < {}; {v} += LB)", array.length);
                        self.line(&format!("{head} {at} = {};", expr(value)));
                    }
                }
                self.line(SYNC);
                self.statements(body);
                self.line(SYNC);
            }
            Statement::Gather { array, start, first, then } => {
                let at = element(array, "z");
                let start = number(array.ty, *start);
                self.line(&format!("for (i32 z = L; z < {}; z += LB) {at} = {start};", array.length));
                self.line(SYNC);
                self.statements(first);
                self.line(SYNC);
                self.statements(then);
                self.line(SYNC);
            }
            _ => unreachable!("the caller's match"),
        }
    }

    fn whole_block(&mut self, statement: &Statement) {
        match statement {
            Statement::Scan { array, value, result } => {
                let (name, ty) = (array_name(array), array.ty);
                let sum = operate(Binary::Add, ty, false, &format!("{name}[L]"), "q");
                self.line(&format!("{name}[L] = {};", expr(value)));
                self.line(SYNC);
                self.line("for (i32 d = 1; d < LB; d *= 2) {");
                self.line(&format!("    const {0} q = L >= d ? {name}[L - d] : ({0})0;", ty.name()));
                self.line(&format!("    {SYNC} {name}[L] = {sum}; {SYNC}"));
                self.line("}");
                self.line(&format!("{} = {name}[L];", name_of(result)));
                self.line(SYNC);
            }
            Statement::Sort { array, value, result } => {
                let (name, ty) = (array_name(array), array.ty.name());
                self.line(&format!("{name}[L] = {};", expr(value)));
                self.line(SYNC);
                self.line("for (i32 size = 2; size <= LB; size *= 2) for (i32 step = size / 2; step > 0; step /= 2) {");
                self.line("    const i32 other = L ^ step;");
                self.line(&format!("    if (other > L) {{ const {ty} a = {name}[L], b = {name}[other];"));
                self.line(&format!(
                    "        if ((a > b) == ((L & size) == 0)) {{ {name}[L] = b; {name}[other] = a; }} }}"
                ));
                self.line(&format!("    {SYNC}"));
                self.line("}");
                self.line(&format!("{} = {name}[L];", name_of(result)));
                self.line(SYNC);
            }
            Statement::Collect { array, condition, value, result } => {
                // The first element counts.
                let name = array_name(array);
                self.line(&format!("for (i32 z = L; z < {}; z += LB) {name}[z] = 0;", array.length));
                self.line(SYNC);
                self.line(&format!("if ({}) {{", expr(condition)));
                self.line(&format!("    const i32 at = (i32)atomicAdd(&{name}[0], 1u) + 1;"));
                self.line(&format!("    {name}[at] = {};", expr(value)));
                self.line("}");
                self.line(SYNC);
                let sum = name_of(result);
                self.line(&format!(
                    "{sum} = 0; for (i32 z = 1; z <= (i32){name}[0]; z++) {sum} += {name}[z];"
                ));
                self.line(SYNC);
            }
            _ => unreachable!("the caller's match"),
        }
    }

    fn warp(&mut self, statement: &Statement) {
        match statement {
            Statement::Together { what, mask, width, value, operand, result } => {
                let (value, operand, mask) = (expr(value), expr(operand), format!("{mask:#x}u"));
                let call = match what {
                    Together::ShuffleUp => format!("__shfl_up_sync({mask}, {value}, {operand}, {width})"),
                    Together::ShuffleDown => format!("__shfl_down_sync({mask}, {value}, {operand}, {width})"),
                    Together::ShuffleXor => format!("__shfl_xor_sync({mask}, {value}, {operand}, {width})"),
                    Together::ShuffleIndex => format!("__shfl_sync({mask}, {value}, {operand}, {width})"),
                    Together::Ballot => format!("__ballot_sync({mask}, {value})"),
                    Together::Any => format!("__any_sync({mask}, {value})"),
                    Together::All => format!("__all_sync({mask}, {value})"),
                    Together::Match => format!("__match_any_sync({mask}, {value})"),
                    Together::ReduceAdd => format!("__reduce_add_sync({mask}, {value})"),
                    Together::ReduceMaximum => format!("__reduce_max_sync({mask}, {value})"),
                    Together::ReduceOr => format!("__reduce_or_sync({mask}, {value})"),
                    Together::BlockCount => format!("__syncthreads_count({value})"),
                    Together::BlockOr => format!("__syncthreads_or({value})"),
                    Together::BlockAnd => format!("__syncthreads_and({value})"),
                };
                self.line(&format!("{} = {call};", name_of(result)));
            }
            Statement::Subset { mask, body } => {
                let condition = match mask {
                    0xffff => "lane < 16".into(),
                    0xffff_0000 => "lane >= 16".into(),
                    0xaaaa_aaaa => "lane & 1".into(),
                    0xff00_ff00 => "lane & 8".into(),
                    0xffff_fff0 => "lane > 3".into(),
                    0x0f0f_0f0f => "!(lane & 4)".into(),
                    _ => format!("{mask:#x}u >> lane & 1"),
                };
                self.block(&format!("if ({condition}) "), body, "");
            }
            Statement::Peel { pending, value, result, with_equals, body } => {
                let ty = value.ty().name();
                self.line(&format!(
                    "{{ bool pending = {}; const {ty} mine = {};",
                    expr(pending),
                    expr(value)
                ));
                self.line("while (true) {");
                self.line("const u32 votes = __ballot_sync(~0u, pending);");
                self.line("if (votes == 0) break;");
                self.line("const i32 leader = __ffs(votes) - 1;");
                self.line(&format!("{} = __shfl_sync(~0u, mine, leader);", name_of(result)));
                self.block("", body, "");
                let equals =
                    if *with_equals { format!(" || mine == {}", name_of(result)) } else { String::new() };
                self.line(&format!("if (lane == leader{equals}) pending = false;"));
                self.line("} }");
            }
            _ => unreachable!("the caller's match"),
        }
    }
}

/// The types with members `x`, `y` and so on, but for their number.
fn vector_base(ty: Type) -> &'static str {
    match ty {
        Type::I8 => "char",
        Type::U8 => "uchar",
        Type::I16 => "short",
        Type::U16 => "ushort",
        Type::I32 => "int",
        Type::U32 => "uint",
        Type::I64 => "longlong",
        Type::U64 => "ulonglong",
        Type::F32 => "float",
        Type::F64 => "double",
        Type::Bool | Type::F16 | Type::H2 => unreachable!("no vectors are made of it"),
    }
}
