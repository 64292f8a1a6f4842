//! What a declaration may say, beyond the grammar.

use crate::ast::{
    Function, Immediate, Initialiser, Item, Linkage, Module, StateSpace, Type, Variable, Version,
};
use crate::error::{LoadError, LoadErrorKind};
use crate::span::Span;

/// Where a variable is declared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Module,
    Body,
    EntryParameter,
    FuncParameter,
}

/// Adds to `errors` what is wrong with a declaration.
pub(super) fn check(source: &str, variable: &Variable<'_>, place: Place, errors: &mut Vec<LoadError>) {
    let mut wrong = |kind, span: Span, message: &str| errors.push(LoadError::at(kind, source, span, message));
    if let Err((kind, message)) = check_space(variable, place).and_then(|()| check_shape(variable, place)) {
        wrong(kind, variable.name.span, message);
    } else if let Some(initialiser) = &variable.initialiser
        && let Err(message) = check_initialiser(variable, initialiser)
    {
        wrong(LoadErrorKind::Type, variable.name.span, message);
    }
}

/// Adds to `errors` what is wrong with a function's parameters.
pub(super) fn check_parameters(
    source: &str,
    function: &Function<'_>,
    version: Version,
    errors: &mut Vec<LoadError>,
) {
    let place = if function.is_entry { Place::EntryParameter } else { Place::FuncParameter };
    for variable in function.returns.iter().chain(&function.params) {
        check(source, variable, place, errors);
    }
    if !function.is_entry {
        return;
    }
    let limit = if version >= LARGE_PARAMETERS.0 { LARGE_PARAMETERS.1 } else { SMALL_PARAMETERS };
    // A size that is not known, or too large by itself, is reported already.
    let end = function
        .params
        .iter()
        .filter_map(|p| Some((p.size()?, p.alignment())))
        .try_fold(0u64, |end, (size, alignment)| end.checked_next_multiple_of(alignment)?.checked_add(size));
    if end.is_none_or(|end| end > limit) {
        let message = format!("the parameters of '{}' take more than {limit} bytes", function.name.text);
        errors.push(LoadError::at(LoadErrorKind::TooLarge, source, function.name.span, message));
    }
}

/// Samplers stand apart from textures where `.target` says so, and nowhere else.
pub(super) fn check_samplers(
    source: &str,
    module: &Module<'_>,
    item: &Item<'_>,
    errors: &mut Vec<LoadError>,
) {
    if module.samplers_apart() {
        return;
    }
    let variables: &[Variable<'_>] = match item {
        Item::Variable(variable) => std::slice::from_ref(variable),
        Item::Function(function) => &function.params,
        _ => &[],
    };
    for variable in variables.iter().filter(|variable| variable.ty == Type::Samplerref) {
        let message = "a .samplerref requires .target texmode_independent";
        errors.push(LoadError::at(LoadErrorKind::Type, source, variable.name.span, message));
    }
}

/// Bytes of parameters a kernel may have, up to the version that allowed more.
const SMALL_PARAMETERS: u64 = 4352;
const LARGE_PARAMETERS: (Version, u64) = (Version { major: 8, minor: 1 }, 32764);

pub(super) type Wrong = (LoadErrorKind, &'static str);

fn check_space(variable: &Variable<'_>, place: Place) -> Result<(), Wrong> {
    use StateSpace::*;
    let fits = match place {
        Place::Module => matches!(variable.space, Const | Global | Shared | Tex),
        Place::Body => matches!(variable.space, Const | Global | Shared | Local | Param),
        Place::EntryParameter => variable.space == Param,
        Place::FuncParameter => matches!(variable.space, Param | Reg),
    };
    if !fits {
        return Err((LoadErrorKind::Type, "a variable of this state space cannot be declared here"));
    }
    let opaque = matches!(variable.ty, Type::Texref | Type::Samplerref | Type::Surfref);
    let opaque_fits = match place {
        Place::Module => variable.space == Global,
        Place::EntryParameter => true,
        Place::Body | Place::FuncParameter => false,
    };
    if opaque && !opaque_fits {
        return Err((LoadErrorKind::Type, "an opaque type is for .global variables and kernel parameters"));
    }
    if variable.ty == Type::Pred && variable.space != Reg {
        return Err((LoadErrorKind::Type, "predicates are in registers only"));
    }
    Ok(())
}

/// Whether there are vectors of so many elements of the type.
pub(super) fn check_vector(ty: Type, vector: Option<u32>) -> Result<(), Wrong> {
    if u64::from(vector.unwrap_or(1)) * ty.size() > 16 || vector.is_some() && ty == Type::Pred {
        return Err((LoadErrorKind::Type, "a vector has at most 128 bits"));
    }
    Ok(())
}

fn check_shape(variable: &Variable<'_>, place: Place) -> Result<(), Wrong> {
    check_vector(variable.ty, variable.vector)?;
    if variable.space == StateSpace::Reg && !variable.dimensions.is_empty() {
        return Err((LoadErrorKind::Type, "there are no arrays of registers"));
    }
    if variable.count.is_some() && (!variable.dimensions.is_empty() || variable.initialiser.is_some()) {
        return Err((LoadErrorKind::Type, "one of several variables is neither an array nor initialised"));
    }
    let mut inner = variable.dimensions.iter().skip(1);
    if inner.any(|length| length.is_none_or(|length| length == 0)) {
        return Err((LoadErrorKind::Type, "only the first dimension may be left open"));
    }
    // A length of zero says as little as none.
    let open = matches!(variable.dimensions.first(), Some(None | Some(0)));
    // The launch, the initial value, the definition elsewhere or the caller gives the size.
    let sized_elsewhere = variable.linkage == Linkage::Extern
        || variable.initialiser.is_some()
        || place == Place::FuncParameter
        || place == Place::Body && variable.space == StateSpace::Param;
    if open && !sized_elsewhere {
        return Err((LoadErrorKind::Type, "the size of this array is not known"));
    }
    if !open && variable.size().is_none_or(|size| size > i64::MAX as u64) {
        return Err((LoadErrorKind::TooLarge, "the variable is too large"));
    }
    Ok(())
}

fn check_initialiser(variable: &Variable<'_>, initialiser: &Initialiser<'_>) -> Result<(), &'static str> {
    if !matches!(variable.space, StateSpace::Const | StateSpace::Global) {
        return Err("only .const and .global variables have initial values");
    }
    if variable.linkage == Linkage::Extern {
        return Err("an .extern variable has no initial value here");
    }
    if let Initialiser::Fields(_) = initialiser {
        let opaque = matches!(variable.ty, Type::Texref | Type::Samplerref | Type::Surfref);
        return if opaque { Ok(()) } else { Err("only opaque types have fields") };
    }
    let vector = variable.vector.map(|width| Some(u64::from(width)));
    let shape: Vec<Option<u64>> = variable.dimensions.iter().copied().chain(vector).collect();
    check_values(variable.ty, &shape, initialiser)
}

/// Whether values fit into an array of this shape. A list may leave out inner braces, as in C.
fn check_values(ty: Type, shape: &[Option<u64>], initialiser: &Initialiser<'_>) -> Result<(), &'static str> {
    match (initialiser, shape) {
        (Initialiser::List(list), [outer, inner @ ..]) => {
            let nested = list.iter().any(|value| matches!(value, Initialiser::List(_)));
            let room = match (nested, outer) {
                (_, None) => None,
                (true, Some(outer)) => Some(*outer),
                (false, Some(outer)) => {
                    inner.iter().try_fold(*outer, |total, size| total.checked_mul((*size)?))
                }
            };
            if room.is_some_and(|room| list.len() as u64 > room) {
                return Err("there are more initial values than elements");
            }
            let inner = if nested { inner } else { &[] };
            list.iter().try_for_each(|value| check_values(ty, inner, value))
        }
        (Initialiser::List(list), []) => match list.as_slice() {
            [] => Ok(()),
            [one] => check_values(ty, &[], one),
            _ => Err("there are more initial values than elements"),
        },
        (Initialiser::Value(value), []) => check_value(ty, *value),
        (Initialiser::Address(address), []) => {
            // One byte of eight.
            let masks = |mask: u64| mask.count_ones() == 8 && mask >> (mask.trailing_zeros() & !7) == 0xff;
            if address.mask.is_some_and(|mask| !masks(mask)) {
                return Err("a mask is 0xff in its place");
            }
            if address.mask.is_some() && ty.size() == 2 {
                return Err("a part of an address is a byte");
            }
            let integer = !matches!(ty, Type::F16 | Type::F16x2 | Type::F32 | Type::F64 | Type::B128);
            let fits = integer && (ty.size() == 8 || address.mask.is_some());
            if fits { Ok(()) } else { Err("an address has 64 bits") }
        }
        (Initialiser::Value(_) | Initialiser::Address(_), [..]) => {
            Err("the initial values of an array are in braces")
        }
        (Initialiser::Fields(_), _) => Err("only opaque types have fields"),
    }
}

fn check_value(ty: Type, value: Immediate) -> Result<(), &'static str> {
    let float = matches!(ty, Type::F16 | Type::F16x2 | Type::F32 | Type::F64);
    if value.integer().is_none() && !float {
        return Err("a float cannot be the initial value of an integer");
    }
    Ok(())
}
