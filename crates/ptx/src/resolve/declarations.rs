//! What a declaration may say, beyond the grammar.

use crate::ast::{
    Function, Immediate, Initialiser, Item, Linkage, Module, Prototype, StateSpace, Type, Variable, Version,
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
    check_lists(source, &function.returns, &function.params, place, errors);
    if function.directives.noreturn && !function.returns.is_empty() {
        let message = "a function that does not return has no results";
        errors.push(LoadError::at(LoadErrorKind::Type, source, function.name.span, message));
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

/// Adds to `errors` what is wrong with a prototype.
pub(super) fn check_prototype(source: &str, prototype: &Prototype<'_>, errors: &mut Vec<LoadError>) {
    check_lists(source, &prototype.returns, &prototype.params, Place::FuncParameter, errors);
}

fn check_lists(
    source: &str,
    returns: &[Variable<'_>],
    params: &[Variable<'_>],
    place: Place,
    errors: &mut Vec<LoadError>,
) {
    for variable in returns.iter().chain(params) {
        check(source, variable, place, errors);
    }
    if place == Place::EntryParameter {
        return;
    }
    let is_open = |variable: &&Variable<'_>| matches!(variable.dimensions.first(), Some(None | Some(0)));
    let in_memory = |variable: &&Variable<'_>| variable.space == StateSpace::Param;
    let open_result = returns.iter().find(is_open);
    let open_early = params.split_last().and_then(|(_, early)| early.iter().find(is_open));
    let further = returns.iter().skip(1).find(in_memory);
    let many = params.iter().chain(returns).find(|variable| variable.dimensions.len() > 1);
    for (found, message) in [
        (open_result, "the size of a result is known"),
        (open_early, "only the last parameter may be of any size"),
        (further, "several results are in registers"),
        (many, "an array that is a parameter has one dimension"),
    ] {
        let error = |v: &Variable<'_>| LoadError::at(LoadErrorKind::Type, source, v.name.span, message);
        errors.extend(found.map(error));
    }
}

/// Adds to `errors` what is wrong with an item in such a module: samplers stand apart from textures where `.target` says so, and nowhere else,
/// and textures have a space of their own in old versions only.
pub(super) fn check_age(source: &str, module: &Module<'_>, item: &Item<'_>, errors: &mut Vec<LoadError>) {
    if let Item::Variable(variable) = item
        && variable.space == StateSpace::Tex
        && module.version >= NO_TEX
    {
        let message = format!("there is no state space .tex any more since PTX ISA .version {NO_TEX}");
        errors.push(LoadError::at(LoadErrorKind::Type, source, variable.name.span, message));
    }
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

/// Since then textures are `.texref` variables.
const NO_TEX: Version = Version { major: 1, minor: 5 };

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
    if variable.linkage == Linkage::Common && variable.space != Global {
        return Err((LoadErrorKind::Type, "only .global variables are .common"));
    }
    let opaque = is_opaque(variable.ty);
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

fn is_opaque(ty: Type) -> bool {
    matches!(ty, Type::Texref | Type::Samplerref | Type::Surfref)
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
    if variable.space == StateSpace::Param && (variable.vector.is_some() || variable.ty == Type::F16x2) {
        return Err((LoadErrorKind::Type, "there are no vectors in .param, but arrays"));
    }
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
        return if is_opaque(variable.ty) { Ok(()) } else { Err("only opaque types have fields") };
    }
    let is_empty = matches!(initialiser, Initialiser::List(list) if list.is_empty());
    if is_empty && is_opaque(variable.ty) {
        return Ok(());
    }
    if is_empty && matches!(variable.dimensions.first(), Some(None | Some(0))) {
        return Err("the size of this array is not known");
    }
    check_values(variable, &variable.dimensions, initialiser)
}

/// Whether values fit into an array of this shape: each dimension is a list of its own, and so is each vector.
fn check_values(
    variable: &Variable<'_>,
    shape: &[Option<u64>],
    initialiser: &Initialiser<'_>,
) -> Result<(), &'static str> {
    match (initialiser, shape) {
        (Initialiser::List(list), [outer, inner @ ..]) => {
            // A length of zero says as little as none.
            if outer.is_some_and(|room| room > 0 && list.len() as u64 > room) {
                return Err("there are more initial values than elements");
            }
            list.iter().try_for_each(|value| check_values(variable, inner, value))
        }
        (_, [..]) if !shape.is_empty() => Err("the initial values of an array are in braces"),
        (Initialiser::List(list), _) => match variable.vector {
            Some(lanes) if list.len() == lanes as usize => {
                list.iter().try_for_each(|value| check_scalar(variable.ty, value))
            }
            Some(_) => Err("a vector has as many initial values as elements"),
            None => Err("the initial value of a scalar is not in braces"),
        },
        _ if variable.vector.is_some() => Err("the initial values of a vector are in braces"),
        _ => check_scalar(variable.ty, initialiser),
    }
}

fn check_scalar(ty: Type, initialiser: &Initialiser<'_>) -> Result<(), &'static str> {
    match initialiser {
        Initialiser::Value(value) => check_value(ty, *value),
        Initialiser::Address(address) => {
            // One byte of eight.
            let masks = |mask: u64| mask.count_ones() == 8 && mask >> (mask.trailing_zeros() & !7) == 0xff;
            if address.mask.is_some_and(|mask| !masks(mask)) {
                return Err("a mask is 0xff in its place");
            }
            match (ty, address.mask) {
                (Type::U16, Some(_)) => Err("a part of an address is a byte"),
                (Type::U8 | Type::U32 | Type::U64, Some(_)) | (Type::U32 | Type::U64, None) => Ok(()),
                (Type::U8 | Type::U16, None) => Err("an address has 64 bits"),
                _ => Err("an address is the initial value of a .u64"),
            }
        }
        Initialiser::List(_) => Err("the initial value of a scalar is not in braces"),
        Initialiser::Fields(_) => Err("only opaque types have fields"),
    }
}

fn check_value(ty: Type, value: Immediate) -> Result<(), &'static str> {
    match (ty, value.integer()) {
        (Type::F16 | Type::F16x2, _) => Err("there are no initial values of halves, but of their bits"),
        (Type::F32 | Type::F64, Some(_)) => Err("an integer cannot be the initial value of a float"),
        (Type::F32 | Type::F64, None) => Ok(()),
        // Bits may be those of a float.
        (Type::B8 | Type::B16 | Type::B32 | Type::B64, None) => Ok(()),
        (_, None) => Err("a float cannot be the initial value of an integer"),
        (_, Some(_)) => Ok(()),
    }
}
