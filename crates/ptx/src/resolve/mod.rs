//! Binding of names.
//!
//! [`Symbols`] holds what module scope declares. [`function`] turns one function's body into a flat list of
//! instructions whose operands refer to dense registers, variables and labels: scopes are gone, and nothing
//! is looked up by name any more.

mod body;
mod declarations;
mod redeclared;
mod scope;

use crate::ast::{
    self, AddressInitialiser, Alias, Component, Function, Immediate, Initialiser, Item, Linkage, Module,
    Name, StateSpace, Type, Variable,
};
use crate::error::{Errors, LoadError, LoadErrorKind};
use crate::span::Span;
use crate::special::SpecialRegister;
use crate::visit::addresses;

pub use body::function;
use declarations::Place;
pub(crate) use scope::Names;

/// A register of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegisterId(pub u32);

/// A variable or parameter in memory that a function declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub u32);

/// A label of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// A `.callprototype` of a function: an index into [`ResolvedFunction::prototypes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrototypeId(pub u32);

/// A list of targets of a function: an index into [`ResolvedFunction::branch_targets`] or `call_targets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetsId(pub u32);

/// A function with its names bound.
#[derive(Clone, Debug)]
pub struct ResolvedFunction<'m, 'a> {
    /// What it was made from.
    pub function: &'m Function<'a>,
    /// The registers that are used, in order of first use, parameters first. Indexed by [`RegisterId`].
    pub registers: Vec<Register<'a>>,
    /// Variables and parameters in memory, in order of declaration. Indexed by [`VariableId`].
    pub variables: Vec<LocalVariable<'m, 'a>>,
    /// The `.global` and `.const` variables declared in its blocks, in order: one instance each, whoever calls the function.
    pub statics: Vec<Static<'m, 'a>>,
    /// Where each return parameter is.
    pub returns: Vec<Parameter>,
    /// Where each parameter is.
    pub params: Vec<Parameter>,
    /// Indexed by [`LabelId`].
    pub labels: Vec<Label<'a>>,
    /// Indexed by [`PrototypeId`].
    pub prototypes: Vec<&'m ast::Prototype<'a>>,
    /// `.branchtargets`, indexed by [`TargetsId`].
    pub branch_targets: Vec<Vec<LabelId>>,
    /// `.calltargets`, indexed by [`TargetsId`].
    pub call_targets: Vec<Vec<&'m Function<'a>>>,
    /// In order of execution, blocks flattened.
    pub instructions: Vec<Instruction<'m, 'a>>,
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Register<'a> {
    /// Its name, or the stem of the range it is from.
    pub stem: Name<'a>,
    /// Its number in the range.
    pub index: Option<u32>,
    /// Type of each (element).
    pub ty: Type,
    /// Elements of a vector register.
    pub vector: Option<u32>,
}

/// A variable declared in a function.
#[derive(Clone, Copy, Debug)]
pub struct LocalVariable<'m, 'a> {
    /// The declaration.
    pub declaration: &'m Variable<'a>,
    /// Its number, if declared as `name<count>`.
    pub index: Option<u32>,
    /// What it is to the function.
    pub role: Role,
}

/// A variable of the module that only a block of a function can name.
#[derive(Clone, Debug)]
pub struct Static<'m, 'a> {
    /// The declaration.
    pub declaration: &'m Variable<'a>,
    /// What the names in its initial value stand for, in their order.
    pub addresses: Vec<Symbol<'m, 'a>>,
}

/// What a local variable is to its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its n-th parameter.
    Param(u32),
    /// Its n-th return parameter.
    Return(u32),
    /// Declared in the body. In `.param`: an argument or a result of calls.
    Local,
}

/// Where a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// In a register, as `.func (.reg .u32 r)` says.
    Register(RegisterId),
    /// In parameter space.
    Variable(VariableId),
}

/// A place to branch to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Index of the instruction it stands before; the number of instructions if it stands at the end.
    pub at: u32,
}

/// An instruction with its names bound.
#[derive(Clone, Debug)]
pub struct Instruction<'m, 'a> {
    /// Opcode, modifiers, places.
    pub syntax: &'m ast::Instruction<'a>,
    /// The guard.
    pub guard: Option<Guard>,
    /// The operands, one for one those of `syntax`.
    pub operands: Vec<Operand<'m, 'a>>,
}

/// Which predicate decides whether an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Whether it is executed where the predicate is false.
    pub negated: bool,
    /// The predicate.
    pub register: RegisterId,
}

/// An operand and its place.
#[derive(Clone, Debug)]
pub struct Operand<'m, 'a> {
    /// The operand.
    pub kind: OperandKind<'m, 'a>,
    /// Where it stands.
    pub span: Span,
}

impl<'m, 'a> Operand<'m, 'a> {
    /// The operand, or what is in it if it is a vector of one.
    pub fn alone(&self) -> &Operand<'m, 'a> {
        match &self.kind {
            OperandKind::Vector(list) if list.len() == 1 => list[0].alone(),
            _ => self,
        }
    }
}

/// The forms of operands, as in [`ast::OperandKind`] with names bound.
#[derive(Clone, Debug)]
pub enum OperandKind<'m, 'a> {
    /// A register.
    Register(RegisterId),
    /// An element of a vector register, or bytes or halves of a register.
    Component(RegisterId, Component),
    /// A special register, or an element of it.
    Special(SpecialRegister, Option<Component>),
    /// A register and a number added to it: an index of [`OperandKind::Element`].
    RegisterOffset(RegisterId, i64),
    /// A number.
    Immediate(Immediate),
    /// A variable or function, as an address, and bytes added.
    Symbol(Symbol<'m, 'a>, i64),
    /// A label.
    Label(LabelId),
    /// A `.callprototype`.
    Prototype(PrototypeId),
    /// A list of functions.
    CallTargets(TargetsId),
    /// A list of labels.
    BranchTargets(TargetsId),
    /// `_`
    Sink,
    /// `!p`
    Not(Box<Operand<'m, 'a>>),
    /// `-a`
    Negate(Box<Operand<'m, 'a>>),
    /// `{a, b, _}`
    Vector(Vec<Operand<'m, 'a>>),
    /// `a|b`
    Pair(Box<Operand<'m, 'a>>, Box<Operand<'m, 'a>>),
    /// `[…]`
    Address(Box<Address<'m, 'a>>),
    /// `symbol[index]`
    Element(Symbol<'m, 'a>, Box<Operand<'m, 'a>>),
    /// `(a, b)`
    List(Vec<Operand<'m, 'a>>),
}

/// `[base+offset, rest…]`
#[derive(Clone, Debug)]
pub struct Address<'m, 'a> {
    /// A register, symbol, number or element.
    pub base: Operand<'m, 'a>,
    /// Bytes added.
    pub offset: i64,
    /// Further things in the brackets.
    pub rest: Vec<Operand<'m, 'a>>,
    /// `.unified` after the bracket.
    pub unified: bool,
}

/// Something with an address.
#[derive(Clone, Copy, Debug)]
pub enum Symbol<'m, 'a> {
    /// A variable or parameter of the function itself.
    Local(VariableId),
    /// A variable of module scope, or a `.global` or `.const` one of a block, with its number if declared as `name<count>`.
    Global(&'m Variable<'a>, Option<u32>),
    /// A function, with aliases followed.
    Function(&'m Function<'a>),
}

/// What module scope declares.
#[derive(Debug)]
pub struct Symbols<'m, 'a> {
    source: &'a str,
    names: Names<'a, Known<'m, 'a>>,
}

/// What a name stands for, and where.
#[derive(Clone, Copy, Debug)]
struct Known<'m, 'a> {
    entity: Entity<'m, 'a>,
    /// Where it is declared first: it is known from there on.
    from: u32,
    /// An `.alias` made it stand for another function.
    aliased: bool,
}

/// Something of module scope.
#[derive(Clone, Copy, Debug)]
pub enum Entity<'m, 'a> {
    /// A variable: its definition, or a declaration if this module has no more.
    Variable(&'m Variable<'a>),
    /// A function: its definition, or a declaration if this module has no more.
    Function(&'m Function<'a>),
}

impl<'m, 'a> Symbols<'m, 'a> {
    /// Collects the symbols of `module`, which was read from `source`, and checks module scope: nothing is
    /// defined twice, types, sizes and initial values fit, and what they and aliases refer to exists.
    pub fn new(source: &'a str, module: &'m Module<'a>) -> Result<Symbols<'m, 'a>, Errors> {
        let mut symbols = Symbols { source, names: Names::default() };
        let mut errors = Vec::new();
        for item in &module.items {
            declarations::check_age(source, module, item, &mut errors);
            let result = match item {
                Item::Variable(variable) => {
                    declarations::check(source, variable, Place::Module, &mut errors);
                    symbols.declare_variable(variable)
                }
                Item::Function(function) => {
                    declarations::check_parameters(source, function, module.version, &mut errors);
                    symbols.declare_function(function)
                }
                Item::Alias(alias) => symbols.bind_alias(alias),
                _ => Ok(()),
            };
            errors.extend(result.err());
            if errors.len() >= Errors::LIMIT {
                break;
            }
        }
        errors.extend(symbols.names.overlap().map(|name| symbols.duplicate("variable", name)));
        symbols.follow_aliases(module);
        let mut in_values = Vec::new();
        for variable in module.variables() {
            if let Some(initialiser) = &variable.initialiser {
                symbols.check_initialiser(initialiser, &mut in_values);
            }
        }
        errors.extend(in_values);
        Errors::from_list(errors)?;
        Ok(symbols)
    }

    /// The symbol of this name, wherever it is declared.
    pub fn get(&self, name: &str) -> Option<Symbol<'m, 'a>> {
        self.known(name).map(|(symbol, _)| symbol)
    }

    /// The symbol that a name in the text stands for. It is declared before it is used.
    fn used(&self, name: Name<'a>) -> Result<Option<Symbol<'m, 'a>>, LoadError> {
        match self.known(name.text) {
            Some((_, from)) if from > name.span.start => Err(early(self.source, name)),
            known => Ok(known.map(|(symbol, _)| symbol)),
        }
    }

    fn known(&self, name: &str) -> Option<(Symbol<'m, 'a>, u32)> {
        let (known, index) = self.names.get(name)?;
        let symbol = match known.entity {
            Entity::Variable(variable) => Symbol::Global(variable, index),
            Entity::Function(function) => Symbol::Function(function),
        };
        Some((symbol, known.from))
    }

    fn declare_variable(&mut self, variable: &'m Variable<'a>) -> Result<(), LoadError> {
        // A variable is not known in its own initial value.
        let from = variable.span.end;
        let known = Known { entity: Entity::Variable(variable), from, aliased: false };
        if let Some(count) = variable.count {
            let range = self.names.insert_range(variable.name, count, known);
            return range.map_err(|()| self.duplicate("variable", variable.name));
        }
        let Some(previous) = self.names.insert(variable.name, known) else { return Ok(()) };
        let Entity::Variable(earlier) = previous.entity else {
            return Err(self.duplicate("function", variable.name));
        };
        if !is_declaration(earlier) && !is_declaration(variable) {
            return Err(self.duplicate("variable", variable.name));
        }
        let entity = if is_declaration(earlier) { known.entity } else { previous.entity };
        self.names.insert(variable.name, Known { entity, ..previous });
        match redeclared::variable(earlier, variable) {
            Some(message) => {
                Err(LoadError::at(LoadErrorKind::Type, self.source, variable.name.span, message))
            }
            None => Ok(()),
        }
    }

    fn declare_function(&mut self, function: &'m Function<'a>) -> Result<(), LoadError> {
        let from = function.name.span.start;
        let known = Known { entity: Entity::Function(function), from, aliased: false };
        let Some(previous) = self.names.insert(function.name, known) else { return Ok(()) };
        let Entity::Function(earlier) = previous.entity else {
            return Err(self.duplicate("variable", function.name));
        };
        let stays = previous.aliased || earlier.is_defined();
        let entity = if stays { previous.entity } else { known.entity };
        self.names.insert(function.name, Known { entity, ..previous });
        if previous.aliased {
            return Ok(());
        }
        if earlier.is_entry != function.is_entry || earlier.is_defined() {
            return Err(self.duplicate("function", function.name));
        }
        match redeclared::function(earlier, function) {
            Some(message) => {
                Err(LoadError::at(LoadErrorKind::Type, self.source, function.name.span, message))
            }
            None => Ok(()),
        }
    }

    /// Makes the alias's name stand for the function behind it. Both are declared before.
    fn bind_alias(&mut self, alias: &Alias<'a>) -> Result<(), LoadError> {
        let mut found = Vec::new();
        for name in [alias.name, alias.target] {
            match self.names.get(name.text) {
                Some((known @ Known { entity: Entity::Function(function), .. }, _)) => {
                    found.push((known, function));
                }
                _ => return Err(unknown(self.source, name)),
            }
        }
        let [(known, function), (target, aliased)] = found[..] else { return Ok(()) };
        let wrong = if known.aliased {
            Some("the name is an alias already".into())
        } else if function.is_defined() {
            Some("a function that is defined is no alias of another".into())
        } else {
            redeclared::alias(function, aliased)
        };
        if let Some(message) = wrong {
            return Err(LoadError::at(LoadErrorKind::Type, self.source, alias.name.span, message));
        }
        self.names.insert(alias.name, Known { entity: target.entity, aliased: true, ..known });
        Ok(())
    }

    /// Once all functions are known: an alias may stand before the definition of its function.
    fn follow_aliases(&mut self, module: &Module<'a>) {
        for item in &module.items {
            let Item::Alias(alias) = item else { continue };
            let (name, target) = (self.names.get(alias.name.text), self.names.get(alias.target.text));
            if let (Some((known, _)), Some((Known { entity, .. }, _))) = (name, target)
                && known.aliased
            {
                self.names.insert(alias.name, Known { entity, ..known });
            }
        }
    }

    fn check_initialiser(&self, initialiser: &Initialiser<'a>, errors: &mut Vec<LoadError>) {
        addresses(initialiser, &mut |address| {
            if errors.len() >= Errors::LIMIT {
                return;
            }
            errors.extend(match self.used(address.symbol) {
                Ok(Some(symbol)) => self.check_address(address, symbol).err(),
                Ok(None) => Some(unknown(self.source, address.symbol)),
                Err(early) => Some(early),
            });
        });
    }

    /// An initial value holds addresses that are known once the module is loaded.
    fn check_address(
        &self,
        address: &AddressInitialiser<'a>,
        symbol: Symbol<'m, 'a>,
    ) -> Result<(), LoadError> {
        let known = match symbol {
            Symbol::Global(variable, _) => matches!(variable.space, StateSpace::Global | StateSpace::Const),
            Symbol::Function(_) => true,
            Symbol::Local(_) => false,
        };
        let message = match symbol {
            Symbol::Function(_) if address.generic => "a function has no generic address",
            _ if known => return Ok(()),
            _ => "an initial value has addresses of functions and of .global and .const variables only",
        };
        Err(LoadError::at(LoadErrorKind::Type, self.source, address.symbol.span, message))
    }

    fn duplicate(&self, what: &str, name: Name<'a>) -> LoadError {
        duplicate(self.source, what, name)
    }
}

/// Whether a definition of the same name may stand beside it.
fn is_declaration(variable: &Variable<'_>) -> bool {
    variable.linkage == Linkage::Extern && variable.initialiser.is_none()
}

/// Checks the names of all functions of a module.
pub fn check<'a>(source: &'a str, module: &Module<'a>) -> Result<(), Errors> {
    let symbols = Symbols::new(source, module)?;
    let mut errors = Vec::new();
    for function in module.functions() {
        if let Err(found) = self::function(&symbols, function) {
            errors.extend_from_slice(found.list());
        }
        if errors.len() >= Errors::LIMIT {
            break;
        }
    }
    Errors::from_list(errors)
}

fn unknown(source: &str, name: Name<'_>) -> LoadError {
    let message = format!("unknown symbol '{}'", name.text);
    LoadError::at(LoadErrorKind::Name, source, name.span, message)
}

/// An error for a name that is declared only after it is used.
fn early(source: &str, name: Name<'_>) -> LoadError {
    let message = format!("unknown symbol '{}': it is declared after this", name.text);
    LoadError::at(LoadErrorKind::Name, source, name.span, message)
}

fn duplicate(source: &str, what: &str, name: Name<'_>) -> LoadError {
    let message = format!("duplicate definition of {what} '{}'", name.text);
    LoadError::at(LoadErrorKind::Name, source, name.span, message)
}

/// Whether a variable of this space is a register.
fn is_register(space: StateSpace) -> bool {
    space == StateSpace::Reg
}
