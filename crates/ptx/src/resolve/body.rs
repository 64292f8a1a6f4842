//! One function's body.

use super::declarations::{self, Place};
use super::scope::Names;
use super::{
    Address, Guard, Instruction, Label, LabelId, LocalVariable, Operand, OperandKind, Parameter, PrototypeId,
    Register, RegisterId, ResolvedFunction, Role, Static, Symbol, Symbols, TargetsId, VariableId, duplicate,
    early, is_register, unknown,
};
use crate::ast::{
    self, Block, Body, Component, Function, Linkage, Name, NameList, Prototype, Statement, Type, Variable,
};
use crate::error::{Errors, LoadError, LoadErrorKind};
use crate::names::NameMap;
use crate::special::SpecialRegister;
use crate::visit::addresses;

/// Binds the names of `function`. One that has no body, or whose body was skipped, has no instructions.
pub fn function<'m, 'a>(
    symbols: &Symbols<'m, 'a>,
    function: &'m Function<'a>,
) -> Result<ResolvedFunction<'m, 'a>, Errors> {
    let result = ResolvedFunction {
        function,
        registers: Vec::new(),
        variables: Vec::new(),
        statics: Vec::new(),
        returns: Vec::new(),
        params: Vec::new(),
        labels: Vec::new(),
        prototypes: Vec::new(),
        branch_targets: Vec::new(),
        call_targets: Vec::new(),
        instructions: Vec::new(),
    };
    let mut resolver = Resolver { symbols, result, scopes: vec![Scope::default()], errors: Vec::new() };
    resolver.parameters();
    if let Body::Parsed(code) = &function.body {
        // The body's outermost block is the parameters' scope too.
        resolver.statements(&code.block);
    }
    resolver.check_overlap();
    Errors::from_list(resolver.errors)?;
    Ok(resolver.result)
}

struct Resolver<'s, 'm, 'a> {
    symbols: &'s Symbols<'m, 'a>,
    result: ResolvedFunction<'m, 'a>,
    /// Outermost (the parameters) first.
    scopes: Vec<Scope<'m, 'a>>,
    errors: Vec<LoadError>,
}

#[derive(Default)]
struct Scope<'m, 'a> {
    names: Names<'a, Declared<'m, 'a>>,
    /// What has been bound so far; members of ranges get their ids at first use.
    bound: NameMap<&'a str, Bound<'m, 'a>>,
}

/// What a declaration in a function makes.
#[derive(Clone, Copy)]
enum Declared<'m, 'a> {
    Register { ty: Type, vector: Option<u32> },
    Variable(&'m Variable<'a>, Role),
    Fixed(Bound<'m, 'a>),
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum Bound<'m, 'a> {
    Register(RegisterId),
    Variable(VariableId),
    Static(&'m Variable<'a>, Option<u32>),
    Label(LabelId),
    Prototype(PrototypeId),
    CallTargets(TargetsId),
    BranchTargets(TargetsId),
    /// A list or a prototype that is declared further down.
    Later,
}

/// An error has been recorded.
struct Failed;

impl<'m, 'a> Resolver<'_, 'm, 'a> {
    fn parameters(&mut self) {
        let function = self.result.function;
        for (i, variable) in function.returns.iter().enumerate() {
            if let Some(parameter) = self.parameter(variable, Role::Return(i as u32)) {
                self.result.returns.push(parameter);
            }
        }
        for (i, variable) in function.params.iter().enumerate() {
            if let Some(parameter) = self.parameter(variable, Role::Param(i as u32)) {
                self.result.params.push(parameter);
            }
        }
    }

    /// Declares a parameter and gives it its place at once, whether it is used or not.
    fn parameter(&mut self, variable: &'m Variable<'a>, role: Role) -> Option<Parameter> {
        if !self.result.function.is_defined() {
            // Nothing can refer to it, and several may have one name, or none.
            return Some(if is_register(variable.space) {
                Parameter::Register(self.new_register(variable.name, None, variable.ty, variable.vector))
            } else {
                Parameter::Variable(self.new_variable(variable, None, role))
            });
        }
        self.declare_variable(variable, role);
        match self.local(variable.name.text)? {
            Bound::Register(id) => Some(Parameter::Register(id)),
            Bound::Variable(id) => Some(Parameter::Variable(id)),
            _ => None,
        }
    }

    fn block(&mut self, block: &'m Block<'a>) {
        self.scopes.push(Scope::default());
        self.statements(block);
        self.check_overlap();
        self.scopes.pop();
    }

    fn statements(&mut self, block: &'m Block<'a>) {
        self.declare_labels(block);
        for statement in &block.statements {
            if self.errors.len() >= Errors::LIMIT {
                break;
            }
            self.statement(statement);
        }
    }

    /// Labels can be referred to before they stand there. Lists and prototypes cannot, but who does is to hear that.
    fn declare_labels(&mut self, block: &'m Block<'a>) {
        for statement in &block.statements {
            let (name, bound) = match statement {
                Statement::Label(name) => {
                    self.result.labels.push(Label { name: *name, at: 0 });
                    (*name, Bound::Label(LabelId(self.result.labels.len() as u32 - 1)))
                }
                Statement::Prototype(Prototype { name, .. })
                | Statement::CallTargets(NameList { name, .. })
                | Statement::BranchTargets(NameList { name, .. }) => (*name, Bound::Later),
                _ => continue,
            };
            self.declare("label", name, Declared::Fixed(bound));
        }
    }

    /// From here on the name of a list or a prototype is known.
    fn bind(&mut self, name: Name<'a>, bound: Bound<'m, 'a>) {
        let scope = self.innermost();
        scope.bound.insert(name.text, bound);
    }

    fn statement(&mut self, statement: &'m Statement<'a>) {
        match statement {
            Statement::Instruction(instruction) => {
                if let Ok(instruction) = self.instruction(instruction) {
                    self.result.instructions.push(instruction);
                }
            }
            Statement::Label(name) => {
                // A second label of the same name has been reported; this scope holds one of them.
                if let Some(Bound::Label(LabelId(id))) = self.local(name.text) {
                    self.result.labels[id as usize].at = self.result.instructions.len() as u32;
                }
            }
            Statement::Registers(registers) => {
                let register = Declared::Register { ty: registers.ty, vector: registers.vector };
                if let (Err((kind, message)), Some(declared)) =
                    (declarations::check_vector(registers.ty, registers.vector), registers.names.first())
                {
                    let span = declared.name.span;
                    self.errors.push(LoadError::at(kind, self.symbols.source, span, message));
                }
                for declared in &registers.names {
                    self.declare_counted(declared.name, declared.count, register);
                }
            }
            Statement::Variable(variable) => {
                declarations::check(self.symbols.source, variable, Place::Body, &mut self.errors);
                let addresses = self.addresses(variable);
                self.declare_variable(variable, Role::Local);
                if variable.linkage == Linkage::Block {
                    self.result.statics.push(Static { declaration: variable, addresses });
                }
            }
            Statement::Block(block) => self.block(block),
            Statement::BranchTargets(list) => {
                let labels = list.names.iter().filter_map(|name| self.label(*name)).collect();
                self.result.branch_targets.push(labels);
                let id = TargetsId(self.result.branch_targets.len() as u32 - 1);
                self.bind(list.name, Bound::BranchTargets(id));
            }
            Statement::CallTargets(list) => {
                let functions = list.names.iter().filter_map(|name| self.called(*name)).collect();
                self.result.call_targets.push(functions);
                let id = TargetsId(self.result.call_targets.len() as u32 - 1);
                self.bind(list.name, Bound::CallTargets(id));
            }
            Statement::Prototype(prototype) => {
                declarations::check_prototype(self.symbols.source, prototype, &mut self.errors);
                self.result.prototypes.push(prototype);
                let id = PrototypeId(self.result.prototypes.len() as u32 - 1);
                self.bind(prototype.name, Bound::Prototype(id));
            }
            Statement::Pragma(_) => {}
        }
    }

    /// What the names in a variable's initial value stand for. It cannot name itself.
    fn addresses(&mut self, variable: &'m Variable<'a>) -> Vec<Symbol<'m, 'a>> {
        let mut found = Vec::new();
        let Some(initialiser) = &variable.initialiser else { return found };
        addresses(initialiser, &mut |address| {
            // An unknown name is reported where it is looked up.
            let Ok(symbol) = self.symbol(address.symbol) else { return };
            match self.symbols.check_address(address, symbol) {
                Ok(()) => found.push(symbol),
                Err(error) => self.errors.push(error),
            }
        });
        found
    }

    fn instruction(&mut self, syntax: &'m ast::Instruction<'a>) -> Result<Instruction<'m, 'a>, Failed> {
        // All operands are looked at, so that each unknown name is reported.
        let guard = syntax.guard.map(|guard| self.guard(guard)).transpose();
        let operands: Vec<_> = syntax.operands.iter().map(|operand| self.operand(operand)).collect();
        let mut operands = operands.into_iter().collect::<Result<Vec<_>, Failed>>()?;
        if syntax.opcode.text == "mov"
            && !syntax.modifiers.iter().any(|word| matches!(word.text, "v2" | "v4"))
        {
            operands.iter_mut().for_each(|operand| self.spell_out(operand));
        }
        Ok(Instruction { syntax, guard: guard?, operands })
    }

    /// A vector register as the vector of its elements: what is packed may be either.
    fn spell_out(&self, operand: &mut Operand<'m, 'a>) {
        let OperandKind::Register(id) = operand.kind else { return };
        if let Some(width) = self.result.registers[id.0 as usize].vector {
            let element = |n| {
                let kind = OperandKind::Component(id, Component::Element(n as u8));
                Operand { kind, span: operand.span }
            };
            operand.kind = OperandKind::Vector((0..width).map(element).collect());
        }
    }

    fn guard(&mut self, guard: ast::Guard<'a>) -> Result<Guard, Failed> {
        match self.operand_of_name(guard.register)? {
            OperandKind::Register(register) => Ok(Guard { negated: guard.negated, register }),
            _ => Err(self.wrong(guard.register, "a guard is a predicate register")),
        }
    }

    fn operand(&mut self, operand: &ast::Operand<'a>) -> Result<Operand<'m, 'a>, Failed> {
        use ast::OperandKind as Syntax;
        let kind = match &operand.kind {
            Syntax::Name(name) => self.operand_of_name(*name)?,
            Syntax::Component(name, component) => self.component(*name, *component)?,
            Syntax::Immediate(value) => OperandKind::Immediate(*value),
            Syntax::SymbolOffset(name, offset) => match self.operand_of_name(*name)? {
                OperandKind::Symbol(symbol, _) => OperandKind::Symbol(symbol, *offset),
                OperandKind::Register(register) => OperandKind::RegisterOffset(register, *offset),
                _ => return Err(self.wrong(*name, "expected a variable or a register")),
            },
            Syntax::Sink => OperandKind::Sink,
            Syntax::Not(inner) => OperandKind::Not(Box::new(self.operand(inner)?)),
            Syntax::Negate(inner) => OperandKind::Negate(Box::new(self.operand(inner)?)),
            Syntax::Vector(list) => OperandKind::Vector(self.operands(list)?),
            Syntax::List(list) => OperandKind::List(self.operands(list)?),
            Syntax::Pair(a, b) => OperandKind::Pair(Box::new(self.operand(a)?), Box::new(self.operand(b)?)),
            Syntax::Element(name, index) => {
                OperandKind::Element(self.symbol(*name)?, Box::new(self.operand(index)?))
            }
            Syntax::Address(address) => OperandKind::Address(Box::new(Address {
                base: self.operand(&address.base)?,
                offset: address.offset,
                rest: self.operands(&address.rest)?,
                unified: address.unified,
            })),
        };
        Ok(Operand { kind, span: operand.span })
    }

    fn operands(&mut self, list: &[ast::Operand<'a>]) -> Result<Vec<Operand<'m, 'a>>, Failed> {
        list.iter().map(|operand| self.operand(operand)).collect()
    }

    fn operand_of_name(&mut self, name: Name<'a>) -> Result<OperandKind<'m, 'a>, Failed> {
        if let Some(bound) = self.local(name.text) {
            return Ok(match bound {
                Bound::Register(id) => OperandKind::Register(id),
                Bound::Variable(id) => OperandKind::Symbol(Symbol::Local(id), 0),
                Bound::Static(variable, index) => OperandKind::Symbol(Symbol::Global(variable, index), 0),
                Bound::Label(id) => OperandKind::Label(id),
                Bound::Prototype(id) => OperandKind::Prototype(id),
                Bound::CallTargets(id) => OperandKind::CallTargets(id),
                Bound::BranchTargets(id) => OperandKind::BranchTargets(id),
                Bound::Later => {
                    self.errors.push(early(self.symbols.source, name));
                    return Err(Failed);
                }
            });
        }
        match self.symbols.used(name) {
            Ok(Some(symbol)) => return Ok(OperandKind::Symbol(symbol, 0)),
            Ok(None) => {}
            Err(early) => {
                self.errors.push(early);
                return Err(Failed);
            }
        }
        if let Some(register) = SpecialRegister::from_name(name.text) {
            return Ok(OperandKind::Special(register, None));
        }
        self.errors.push(unknown(self.symbols.source, name));
        Err(Failed)
    }

    fn component(&mut self, name: Name<'a>, component: Component) -> Result<OperandKind<'m, 'a>, Failed> {
        match self.operand_of_name(name)? {
            OperandKind::Register(id) => {
                let width = self.result.registers[id.0 as usize].vector;
                match component {
                    Component::Element(n) if width.is_none_or(|w| u32::from(n) >= w) => {
                        Err(self.wrong(name, "the register has no such element"))
                    }
                    _ => Ok(OperandKind::Component(id, component)),
                }
            }
            OperandKind::Special(special, _)
                if special.describe().vector && matches!(component, Component::Element(_)) =>
            {
                Ok(OperandKind::Special(special, Some(component)))
            }
            _ => Err(self.wrong(name, "only registers have parts")),
        }
    }

    fn symbol(&mut self, name: Name<'a>) -> Result<Symbol<'m, 'a>, Failed> {
        match self.operand_of_name(name)? {
            OperandKind::Symbol(symbol, _) => Ok(symbol),
            _ => Err(self.wrong(name, "expected the name of a variable")),
        }
    }

    fn label(&mut self, name: Name<'a>) -> Option<LabelId> {
        match self.operand_of_name(name).ok()? {
            OperandKind::Label(id) => Some(id),
            _ => {
                self.wrong(name, "expected a label");
                None
            }
        }
    }

    fn called(&mut self, name: Name<'a>) -> Option<&'m Function<'a>> {
        match self.operand_of_name(name).ok()? {
            OperandKind::Symbol(Symbol::Function(function), _) => Some(function),
            _ => {
                self.wrong(name, "expected a function");
                None
            }
        }
    }

    /// What `name` stands for in the innermost scope of the function that has it.
    fn local(&mut self, name: &'a str) -> Option<Bound<'m, 'a>> {
        for at in (0..self.scopes.len()).rev() {
            if let Some(bound) = self.scopes[at].bound.get(name) {
                return Some(*bound);
            }
            let Some((declared, index)) = self.scopes[at].names.get(name) else { continue };
            let bound = match declared {
                Declared::Fixed(bound) => bound,
                Declared::Register { ty, vector } => {
                    let stem = self.scopes[at].names.declared(name)?;
                    Bound::Register(self.new_register(stem, index, ty, vector))
                }
                Declared::Variable(variable, _) if is_register(variable.space) => {
                    Bound::Register(self.new_register(variable.name, index, variable.ty, variable.vector))
                }
                Declared::Variable(variable, _) if variable.linkage == Linkage::Block => {
                    Bound::Static(variable, index)
                }
                Declared::Variable(variable, role) => {
                    Bound::Variable(self.new_variable(variable, index, role))
                }
            };
            if !matches!(bound, Bound::Later) {
                self.scopes[at].bound.insert(name, bound);
            }
            return Some(bound);
        }
        None
    }

    fn new_register(
        &mut self,
        stem: Name<'a>,
        index: Option<u32>,
        ty: Type,
        vector: Option<u32>,
    ) -> RegisterId {
        self.result.registers.push(Register { stem, index, ty, vector });
        RegisterId(self.result.registers.len() as u32 - 1)
    }

    fn new_variable(&mut self, declaration: &'m Variable<'a>, index: Option<u32>, role: Role) -> VariableId {
        self.result.variables.push(LocalVariable { declaration, index, role });
        VariableId(self.result.variables.len() as u32 - 1)
    }

    /// Declares a variable. A single one gets its id now, so that ids follow the order of declarations.
    fn declare_variable(&mut self, variable: &'m Variable<'a>, role: Role) {
        self.declare_counted(variable.name, variable.count, Declared::Variable(variable, role));
        if variable.count.is_none() {
            self.local(variable.name.text);
        }
    }

    fn declare_counted(&mut self, name: Name<'a>, count: Option<u32>, what: Declared<'m, 'a>) {
        match count {
            None => self.declare("variable", name, what),
            Some(count) => {
                let scope = self.innermost();
                if scope.names.insert_range(name, count, what).is_err() {
                    self.errors.push(duplicate(self.symbols.source, "variable", name));
                }
            }
        }
    }

    fn declare(&mut self, kind: &str, name: Name<'a>, what: Declared<'m, 'a>) {
        if self.innermost().names.insert(name, what).is_some() {
            self.errors.push(duplicate(self.symbols.source, kind, name));
        }
    }

    fn innermost(&mut self) -> &mut Scope<'m, 'a> {
        self.scopes.last_mut().expect("the parameters' scope is never closed")
    }

    fn check_overlap(&mut self) {
        let source = self.symbols.source;
        let overlap = self.innermost().names.overlap();
        self.errors.extend(overlap.map(|name| duplicate(source, "variable", name)));
    }

    fn wrong(&mut self, name: Name<'a>, message: &str) -> Failed {
        self.errors.push(LoadError::at(LoadErrorKind::Type, self.symbols.source, name.span, message));
        Failed
    }
}
