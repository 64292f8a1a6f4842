//! What a module defines beside code: variables with their initial bytes, and the interfaces of its kernels.

use super::links::{tokens, variable_name};
use super::place::kernel_params;
use super::shared::SharedUses;
use crate::ast::{
    AddressInitialiser, Body, Function, Immediate, Initialiser, Linkage, Module, StateSpace, Statement, Type,
    Variable,
};
use crate::names::NameMap;
use crate::resolve::{self, Static, Symbol, Symbols};
use crate::visit::statements;
use crate::{Errors, LoadError, LoadErrorKind};

/// A variable in `.global` or `.const`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleVariable {
    /// Its name. One that a block declares, with [`Linkage::Block`], has a name that nothing in a text can have.
    pub name: String,
    /// [`StateSpace::Global`] or [`StateSpace::Const`].
    pub space: StateSpace,
    /// Who sees it. One with [`Linkage::Extern`] is defined in another module.
    pub linkage: Linkage,
    /// Bytes in memory; 0 if the declaration leaves it open.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// The first bytes; the others are zero.
    pub bytes: Vec<u8>,
    /// Addresses to be added into the bytes, which hold zeros there.
    pub relocations: Vec<Relocation>,
    /// `.attribute(.managed)`: the host may access it too.
    pub managed: bool,
}

/// A place in a variable that holds an address of another, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// First byte in the variable.
    pub offset: u64,
    /// Bytes written there, little-endian.
    pub bytes: u32,
    /// Bits by which the address is shifted right before its low bytes are written.
    pub shift: u32,
    /// The variable whose address it is.
    pub symbol: String,
    /// Bytes added to the address.
    pub addend: i64,
    /// A generic address is meant rather than one in the variable's space. On this device both are the same.
    pub generic: bool,
}

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub params: Vec<EntryParam>,
    /// Bytes of all parameters.
    pub param_bytes: u32,
    /// Bytes of static shared memory, where that is known without lowering it.
    pub shared_bytes: Option<u32>,
    /// `.maxntid`
    pub max_block: Option<[u32; 3]>,
    /// `.reqntid`
    pub required_block: Option<[u32; 3]>,
    /// Its address, as code and variables of the module hold it.
    pub token: u64,
    /// `.minnctapersm`
    pub min_blocks: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster`
    pub required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`
    pub explicit_cluster: bool,
    /// `.maxclusterrank`
    pub max_cluster_rank: Option<u32>,
    /// `.blocksareclusters`: the dimensions of a launch count clusters.
    pub blocks_are_clusters: bool,
}

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryParam {
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// What its type says about it.
    pub class: ParamClass,
}

/// What the type of a kernel's parameter says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamClass {
    /// A signed or unsigned number, or an address.
    Integer,
    /// A floating-point number.
    Float,
    /// Bits, or an array: whatever the program means by it.
    Bits,
}

impl ParamClass {
    fn of(param: &Variable<'_>) -> ParamClass {
        if !param.dimensions.is_empty() {
            return ParamClass::Bits;
        }
        match param.ty {
            Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::S8 | Type::S16 | Type::S32 | Type::S64 => {
                ParamClass::Integer
            }
            Type::F16 | Type::F32 | Type::F64 => ParamClass::Float,
            _ => ParamClass::Bits,
        }
    }
}

/// All kernels of the module that have a body. `source` is the text it was read from.
pub fn entries(source: &str, module: &Module<'_>) -> Result<Vec<Entry>, Errors> {
    described(source, module, None)
}

/// Likewise, where it is known what the functions use of shared memory.
pub fn entries_that_use(
    source: &str,
    module: &Module<'_>,
    uses: &SharedUses<'_, '_>,
) -> Result<Vec<Entry>, Errors> {
    described(source, module, Some(uses))
}

fn described(
    source: &str,
    module: &Module<'_>,
    uses: Option<&SharedUses<'_, '_>>,
) -> Result<Vec<Entry>, Errors> {
    let tokens = tokens(module);
    module
        .entries()
        .map(|function| {
            let (offsets, param_bytes) = kernel_params(&function.params).ok_or_else(|| {
                LoadError::at(LoadErrorKind::TooLarge, source, function.span, "the parameters are too large")
            })?;
            let params = function.params.iter().zip(offsets).map(|(param, offset)| EntryParam {
                offset,
                size: param.size().unwrap_or(0) as u32,
                align: param.alignment() as u32,
                class: ParamClass::of(param),
            });
            Ok(Entry {
                name: function.name.text.to_owned(),
                token: tokens.get(function.name.text).copied().unwrap_or(0),
                params: params.collect(),
                param_bytes,
                shared_bytes: uses.and_then(|uses| uses.bytes(module, function.name.text)),
                max_block: function.directives.maxntid,
                required_block: function.directives.reqntid,
                min_blocks: function.directives.minnctapersm,
                max_registers: function.directives.maxnreg,
                required_cluster: function.directives.reqnctapercluster,
                explicit_cluster: function.directives.explicitcluster,
                max_cluster_rank: function.directives.maxclusterrank,
                blocks_are_clusters: function.directives.blocksareclusters,
            })
        })
        .collect()
}

/// All variables of the module in `.global` and `.const` space, in order: those of module scope, then those of functions' blocks.
/// `source` is the text it was read from.
pub fn variables(source: &str, module: &Module<'_>) -> Result<Vec<ModuleVariable>, Errors> {
    let tokens = tokens(module);
    let mut all: Vec<ModuleVariable> = Vec::new();
    let mut places: NameMap<String, usize> = NameMap::default();
    for variable in module.variables() {
        if !matches!(variable.space, StateSpace::Global | StateSpace::Const) || is_opaque(variable.ty) {
            continue;
        }
        let target = |name: &str| match tokens.get(name) {
            Some(token) => Target::Function(*token),
            None => Target::Variable(name.to_owned()),
        };
        for new in members(source, variable, &mut |name| target(name))? {
            // A definition replaces a declaration.
            match places.get(&new.name).map(|place| &mut all[*place]) {
                Some(known) if known.linkage == Linkage::Extern => *known = new,
                Some(_) => {}
                None => {
                    places.insert(new.name.clone(), all.len());
                    all.push(new);
                }
            }
        }
    }
    all.extend(statics(source, module, &tokens)?);
    check_constants(&all)?;
    Ok(all)
}

/// Bytes of constants that a module can have.
const MAX_CONSTANTS: u64 = 64 << 10;

fn check_constants(variables: &[ModuleVariable]) -> Result<(), Errors> {
    let defined = |v: &&ModuleVariable| v.space == StateSpace::Const && v.linkage != Linkage::Extern;
    let end = variables.iter().filter(defined).try_fold(0_u64, |end, variable| {
        end.checked_next_multiple_of(variable.align.max(1))?.checked_add(variable.size)
    });
    if end.is_some_and(|end| end <= MAX_CONSTANTS) {
        return Ok(());
    }
    let message = format!("the module's .const variables take more than {MAX_CONSTANTS} bytes");
    Err(LoadError::without_place(LoadErrorKind::TooLarge, ".const", message).into())
}

/// The variables that functions' blocks declare.
fn statics(
    source: &str,
    module: &Module<'_>,
    tokens: &NameMap<&str, u64>,
) -> Result<Vec<ModuleVariable>, Errors> {
    let mut all = Vec::new();
    let mut having = module.functions().filter(|function| has_statics(function)).peekable();
    if having.peek().is_none() {
        return Ok(all);
    }
    let symbols = Symbols::new(source, module)?;
    for function in having {
        for Static { declaration, addresses } in resolve::function(&symbols, function)?.statics {
            let mut addresses = addresses.into_iter();
            let mut target = |name: &str| match addresses.next() {
                Some(Symbol::Global(variable, index)) => Target::Variable(variable_name(variable, index)),
                Some(Symbol::Function(f)) => Target::Function(tokens.get(f.name.text).copied().unwrap_or(0)),
                Some(Symbol::Local(_)) | None => Target::Variable(name.to_owned()),
            };
            all.extend(members(source, declaration, &mut target)?);
        }
    }
    Ok(all)
}

fn has_statics(function: &Function<'_>) -> bool {
    let Body::Parsed(code) = &function.body else { return false };
    let mut found = false;
    statements(&code.block, &mut |statement| {
        found |= matches!(statement, Statement::Variable(variable) if variable.linkage == Linkage::Block);
    });
    found
}

/// What a declaration makes: one variable, or those of `name<count>`. `target` is asked for each name in the initial value, in order.
fn members(
    source: &str,
    variable: &Variable<'_>,
    target: &mut dyn FnMut(&str) -> Target,
) -> Result<Vec<ModuleVariable>, Errors> {
    let error = |message: &str| LoadError::at(LoadErrorKind::Type, source, variable.span, message);
    let mut image = Image { target, bytes: Vec::new(), relocations: Vec::new() };
    let declared = shape(variable).ok_or_else(|| error("the variable is too large"))?;
    let mut size = declared.unwrap_or(0);
    if let Some(initialiser) = &variable.initialiser {
        let end = image
            .fill(variable.ty, initialiser, 0, &strides(variable), declared)
            .map_err(|message| error(&message))?;
        if declared.is_none() {
            let stride = strides(variable).first().copied().unwrap_or(1).max(1);
            size = end.next_multiple_of(stride);
        }
    }
    let Image { bytes, relocations, .. } = image;
    let one = |index| ModuleVariable {
        name: variable_name(variable, index),
        space: variable.space,
        linkage: variable.linkage,
        size,
        align: variable.alignment(),
        bytes: bytes.clone(),
        relocations: relocations.clone(),
        managed: variable.attributes.managed,
    };
    Ok(match variable.count {
        None => vec![one(None)],
        Some(count) => (0..count.min(MAX_COUNT)).map(|index| one(Some(index))).collect(),
    })
}

/// More members of `name<count>` than anyone declares.
const MAX_COUNT: u32 = 1 << 16;

fn is_opaque(ty: Type) -> bool {
    matches!(ty, Type::Texref | Type::Samplerref | Type::Surfref)
}

/// Bytes of the variable; the inner `None` if its first dimension is open, the outer if it overflows.
fn shape(variable: &Variable<'_>) -> Option<Option<u64>> {
    // A length of zero says as little as none.
    if matches!(variable.dimensions.first(), Some(None | Some(0))) {
        return Some(None);
    }
    variable.size().map(Some)
}

/// Bytes from one element to the next for each nesting level of an initialiser, outermost first; the last is the scalar's size.
fn strides(variable: &Variable<'_>) -> Vec<u64> {
    let scalar = variable.ty.size();
    let mut strides = vec![scalar];
    let inner = variable.vector.map(u64::from).into_iter();
    let levels: Vec<u64> = variable.dimensions.iter().map(|d| d.unwrap_or(1)).chain(inner).collect();
    for count in levels.iter().skip(1).rev() {
        let last = *strides.last().expect("one is there");
        strides.push(last.saturating_mul(*count));
    }
    strides.reverse();
    strides
}

/// What a name in an initial value stands for.
enum Target {
    /// The variable of this name, which has an address once the module is loaded.
    Variable(String),
    /// A function, by its token.
    Function(u64),
}

struct Image<'t> {
    target: &'t mut dyn FnMut(&str) -> Target,
    bytes: Vec<u8>,
    relocations: Vec<Relocation>,
}

impl Image<'_> {
    /// Writes an initialiser at `at`; `strides` are those of its level and below. Answers where it ends.
    fn fill(
        &mut self,
        ty: Type,
        initialiser: &Initialiser<'_>,
        at: u64,
        strides: &[u64],
        limit: Option<u64>,
    ) -> Result<u64, String> {
        match initialiser {
            Initialiser::List(list) => {
                let (stride, inner) = match strides {
                    [last] => (*last, strides),
                    [first, rest @ ..] => (*first, rest),
                    [] => return Err("the initial value is nested too deeply".into()),
                };
                let mut next = at;
                let mut end = at;
                for value in list {
                    end = end.max(self.fill(ty, value, next, inner, limit)?);
                    next = next.checked_add(stride).ok_or("the initial value is too large")?;
                }
                Ok(end)
            }
            Initialiser::Value(value) => {
                let bits = scalar_bits(*value, ty);
                self.write(at, ty.size(), bits, limit)
            }
            Initialiser::Address(address) => self.address(ty, address, at, limit),
            Initialiser::Fields(_) => Err("fields are initial values of samplers and textures only".into()),
        }
    }

    fn address(
        &mut self,
        ty: Type,
        address: &AddressInitialiser<'_>,
        at: u64,
        limit: Option<u64>,
    ) -> Result<u64, String> {
        let shift = address.mask.map_or(0, |mask| mask.trailing_zeros() & !7);
        let masked = address.mask.map_or(u64::MAX, |_| 0xff);
        let symbol = match (self.target)(address.symbol.text) {
            Target::Variable(name) => name,
            Target::Function(token) => {
                let bits = token.wrapping_add(address.offset as u64) >> shift & masked;
                return self.write(at, ty.size(), u128::from(bits), limit);
            }
        };
        let end = self.write(at, ty.size(), 0, limit)?;
        self.relocations.push(Relocation {
            offset: at,
            bytes: if address.mask.is_some() { 1 } else { ty.size() as u32 },
            shift,
            symbol,
            addend: address.offset,
            generic: address.generic,
        });
        Ok(end)
    }

    fn write(&mut self, at: u64, size: u64, bits: u128, limit: Option<u64>) -> Result<u64, String> {
        let end = at.checked_add(size).filter(|end| limit.is_none_or(|limit| *end <= limit));
        let end = end.ok_or("the initial value is larger than the variable")?;
        if self.bytes.len() < end as usize {
            self.bytes.resize(end as usize, 0);
        }
        self.bytes[at as usize..end as usize].copy_from_slice(&bits.to_le_bytes()[..size as usize]);
        Ok(end)
    }
}

fn scalar_bits(value: Immediate, ty: Type) -> u128 {
    let bits = match (value, ty) {
        (Immediate::F64(bits), Type::F64 | Type::B64) => bits,
        // What is narrower than a double has a float's bits, or the low ones of them.
        (Immediate::F64(bits), _) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        // A double written as a float has its bits, as NVIDIA's assembler has it.
        (Immediate::F32(bits), _) => u64::from(bits),
        (Immediate::Signed(v), _) => v as u64,
        (Immediate::Unsigned(v), _) => v,
    };
    u128::from(bits)
}
