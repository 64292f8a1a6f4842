//! The text of expressions.

use crate::fuzz::cuda::expr::{Access, Array, Binary, Expr, Given, Layout, Space, Unary, Variable};
use crate::fuzz::cuda::types::Type;

/// An element as something that may be assigned to.
pub(super) fn place(access: &Access) -> String {
    let index = expr(&access.index);
    match &access.other {
        None => element(&access.array, &index),
        Some((condition, other)) => {
            let (first, second) = (array_name(&access.array), array_name(other));
            format!("({} ? {first} : {second})[{index}]", expr(condition))
        }
    }
}

pub(super) fn element(array: &Array, index: &str) -> String {
    let name = array_name(array);
    match (array.space, array.layout) {
        (Space::Own, Layout::Rows(step)) => format!("{name}[t * {step} + {index}]"),
        (Space::Own, _) => format!("{name}[{index} * total + t]"),
        (_, Layout::Columns) => format!("{name}[{index}]"),
        (_, Layout::Rows(step)) => format!("{name}[{index} * {step}]"),
        (_, Layout::Padded(row, unused)) => {
            format!("{name}[{index} / {row} * {} + {index} % {row}]", row + unused)
        }
    }
}

/// Where a thread stores its own element of shared memory.
pub(super) fn own_slot(array: &Array) -> String {
    match array.layout {
        Layout::Padded(row, unused) => {
            format!("{}[(tz * blockDim.y + ty) * {} + tx]", array_name(array), row + unused)
        }
        _ => element(array, "L"),
    }
}

pub(super) fn number(ty: Type, number: i128) -> String {
    match ty {
        Type::Bool => (number != 0).to_string(),
        // The smallest number has no literal: its digits alone are one too large.
        Type::I32 if number == i128::from(i32::MIN) => "(-2147483647 - 1)".into(),
        Type::I32 if number < 0 => format!("({number})"),
        Type::I32 => number.to_string(),
        Type::U32 => format!("{number}u"),
        Type::I64 if number == i128::from(i64::MIN) => "(-9223372036854775807ll - 1)".into(),
        Type::I64 => format!("({number}ll)"),
        Type::U64 => format!("{number}ull"),
        _ => format!("({})({number})", ty.name()),
    }
}

/// An expression whose type in C++ is that of the tree, in parentheses if need be.
pub(super) fn expr(value: &Expr) -> String {
    let ty = value.ty();
    match value {
        Expr::Integer(ty, value) => number(*ty, *value),
        Expr::Eighths(ty, eighths) => {
            let value = f64::from(*eighths) / 8.0;
            match ty {
                Type::F64 => format!("({value:?})"),
                Type::F32 => format!("({value:?}f)"),
                _ => convert(*ty, Type::F32, &format!("({value:?}f)")),
            }
        }
        Expr::Variable(variable) => name_of(variable),
        Expr::Given(given, ..) => given_name(*given).into(),
        Expr::Unary(operation, a) => {
            let a = expr(a);
            match (operation, ty) {
                (Unary::Not, Type::Bool) => format!("!{a}"),
                (Unary::Not, _) => format!("({})~{a}", ty.name()),
                (Unary::Negate, Type::F16) => format!("__hneg({a})"),
                (Unary::Negate, Type::H2) => format!("__hneg2({a})"),
                (Unary::Negate, Type::F32 | Type::F64) => format!("(-{a})"),
                // Of the smallest number, only unsigned arithmetic has it.
                (Unary::Negate, _) => format!("({})(0 - ({}){a})", ty.name(), ty.wrapping().name()),
            }
        }
        Expr::Binary(operation, a, b) => operate(*operation, ty, value.is_exact(), &expr(a), &expr(b)),
        Expr::Compare(relation, a, b) => compare(relation, a.ty(), &expr(a), &expr(b)),
        Expr::Select(condition, a, b) => format!("({} ? {} : {})", expr(condition), expr(a), expr(b)),
        Expr::Cast(ty, a) => convert(*ty, a.ty(), &expr(a)),
        Expr::Call(intrinsic, arguments) => {
            let arguments: Vec<String> = arguments.iter().map(expr).collect();
            // Some answer a larger type than they have in the table.
            format!("({}){}({})", ty.name(), intrinsic.name, arguments.join(", "))
        }
        Expr::Load(access) => place(access),
        Expr::Peek(pointer, _, offset) => format!("p{pointer}[{offset}]"),
    }
}

fn given_name(given: Given) -> &'static str {
    match given {
        Given::Thread => "t",
        Given::X => "x",
        Given::Y => "y",
        Given::Z => "z",
        Given::Lane => "lane",
        Given::Local => "L",
        Given::BlockThreads => "LB",
        Given::LocalX => "tx",
        Given::LocalY => "ty",
        Given::BlockX => "bx",
        Given::Live => "live",
        Given::Width => "w",
        Given::Height => "h",
        Given::Count => "n",
        Given::Some => "m",
        Given::Total => "total",
        Given::Scale => "k",
    }
}

/// An operation on operands of a type; `exact` if it cannot overflow.
pub(super) fn operate(operation: Binary, ty: Type, exact: bool, a: &str, b: &str) -> String {
    if matches!(ty, Type::F16 | Type::H2) {
        let pair = if ty == Type::H2 { "2" } else { "" };
        let function = match operation {
            Binary::Add => "__hadd",
            Binary::Subtract => "__hsub",
            Binary::Multiply => "__hmul",
            Binary::Minimum => "__hmin",
            Binary::Maximum => "__hmax",
            _ => "__h2div",
        };
        return match (operation, ty) {
            (Binary::Divide, Type::F16) => format!("__hdiv({a}, {b})"),
            (Binary::Divide, _) => format!("__h2div({a}, {b})"),
            _ => format!("{function}{pair}({a}, {b})"),
        };
    }
    let symbol = match operation {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
        Binary::And if ty == Type::Bool => "&&",
        Binary::Or if ty == Type::Bool => "||",
        Binary::Xor if ty == Type::Bool => "!=",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::Minimum | Binary::Maximum => {
            let function = if operation == Binary::Minimum { "min" } else { "max" };
            return match ty {
                Type::F32 => format!("f{function}f({a}, {b})"),
                Type::F64 => format!("f{function}({a}, {b})"),
                Type::Bool | Type::I8 | Type::U8 | Type::I16 | Type::U16 => {
                    format!("({})({function}((i32){a}, (i32){b}))", ty.name())
                }
                _ => format!("{function}({a}, {b})"),
            };
        }
    };
    if matches!(ty, Type::Bool | Type::F32 | Type::F64) {
        return format!("({a} {symbol} {b})");
    }
    if matches!(operation, Binary::ShiftLeft | Binary::ShiftRight) {
        let mask = 8 * ty.bytes() - 1;
        let a =
            if operation == Binary::ShiftLeft { format!("({}){a}", ty.wrapping().name()) } else { a.into() };
        return format!("({})({a} {symbol} ({b} & {mask}))", ty.name());
    }
    let wraps = matches!(operation, Binary::Add | Binary::Subtract | Binary::Multiply) && !exact;
    match (wraps, ty) {
        (true, Type::U32 | Type::U64) | (false, Type::I32 | Type::U32 | Type::I64 | Type::U64) => {
            format!("({a} {symbol} {b})")
        }
        (true, _) => {
            let wide = ty.wrapping().name();
            format!("({})(({wide}){a} {symbol} ({wide}){b})", ty.name())
        }
        (false, _) => format!("({})({a} {symbol} {b})", ty.name()),
    }
}

fn compare(relation: &str, ty: Type, a: &str, b: &str) -> String {
    if !matches!(ty, Type::F16 | Type::H2) {
        return format!("({a} {relation} {b})");
    }
    let name = match relation {
        "<" => "lt",
        ">" => "gt",
        "<=" => "le",
        ">=" => "ge",
        "==" => "eq",
        _ => "ne",
    };
    let pair = if ty == Type::H2 { "b" } else { "" };
    let tail = if ty == Type::H2 { "2" } else { "" };
    format!("__h{pair}{name}{tail}({a}, {b})")
}

/// A value of one type in another one: as the hardware converts, which C++ leaves open for what is out of range.
pub(super) fn convert(to: Type, from: Type, value: &str) -> String {
    let name = to.name();
    match (from, to) {
        (Type::F32, Type::F16) => format!("__float2half({value})"),
        (Type::F32, Type::H2) => format!("__float2half2_rn({value})"),
        (Type::F16, Type::H2) => format!("__half2half2({value})"),
        (Type::H2, Type::F16) => format!("__low2half({value})"),
        (Type::F16, Type::F32) => format!("__half2float({value})"),
        (Type::H2, _) => convert(to, Type::F16, &format!("__high2half({value})")),
        (Type::F16, _) => convert(to, Type::F32, &format!("__half2float({value})")),
        (_, Type::F16 | Type::H2) => convert(to, Type::F32, &format!("(f32){value}")),
        (Type::F32 | Type::F64, Type::Bool) => format!("({value} != 0)"),
        (Type::F32, Type::U32) => format!("__float2uint_rz({value})"),
        (Type::F32, Type::I64) => format!("__float2ll_rz({value})"),
        (Type::F32, Type::U64) => format!("__float2ull_rz({value})"),
        (Type::F32, _) if to.is_integer() => format!("({name})__float2int_rz({value})"),
        (Type::F64, Type::U32) => format!("__double2uint_rz({value})"),
        (Type::F64, Type::I64) => format!("__double2ll_rz({value})"),
        (Type::F64, Type::U64) => format!("__double2ull_rz({value})"),
        (Type::F64, _) if to.is_integer() => format!("({name})__double2int_rz({value})"),
        _ => format!("({name}){value}"),
    }
}
pub(super) fn name_of(variable: &Variable) -> String {
    match variable.record {
        Some(record) => format!("r{record}.v{}", variable.number),
        None => format!("v{}", variable.number),
    }
}

pub(super) fn array_name(array: &Array) -> String {
    let letter = match array.space {
        Space::Input => "in",
        Space::Own => "own",
        Space::Local => "l",
        Space::Shared => "s",
        Space::Constant => "table",
        Space::Counters => "count",
    };
    format!("{letter}{}", array.number)
}
