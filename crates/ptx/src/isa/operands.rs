//! Operands against their entries.

use super::syntax::{Chosen, OperandSpec, Shape};
use super::{Context, Kind, Problem, Ty, rules, texture};
use crate::ast;
use crate::error::LoadErrorKind;
use crate::resolve::{Address, Operand, OperandKind, Symbol};

/// Checks the operands of an instruction.
pub(super) struct Checker<'c> {
    pub context: &'c Context<'c>,
    pub chosen: &'c Chosen,
    pub opcode: &'c str,
    pub registers: fn(&Chosen, &str) -> usize,
}

impl Checker<'_> {
    pub fn mismatch(&self, operand: &Operand<'_, '_>, what: impl std::fmt::Display) -> Result<(), Problem> {
        let message = format!("arguments mismatch for instruction '{}': {what}", self.opcode);
        Err(Problem::mismatch(operand.span, message))
    }

    pub fn operand(&self, spec: &OperandSpec, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        if let OperandKind::Pair(first, second) = &operand.kind {
            let Some(second_spec) = &spec.second else {
                return self.mismatch(operand, "unexpected pair of operands");
            };
            self.single(spec, first)?;
            return self.single(second_spec, second);
        }
        if spec.second.as_ref().is_some_and(|second| !second.optional) {
            return self.mismatch(operand, "a pair of operands is required");
        }
        self.single(spec, operand)
    }

    fn single(&self, spec: &OperandSpec, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        match spec.shape {
            Shape::Rest => Ok(()),
            Shape::Immediate => match &operand.kind {
                OperandKind::Immediate(value) if value.integer().is_some() => Ok(()),
                _ => self.mismatch(operand, "an integer constant is required"),
            },
            Shape::Address => match &operand.kind {
                OperandKind::Address(address) if address.rest.is_empty() => self.address_base(&address.base),
                OperandKind::Element(symbol, index) if matches!(self.opcode, "ld" | "ldu" | "st") => {
                    self.element(symbol, index)
                }
                // What else a copy of a tensor names may stand without brackets, as NVIDIA's assembler has it.
                OperandKind::Register(_) | OperandKind::Symbol(..)
                    if self.opcode == "cp" && self.chosen.has("tensor") =>
                {
                    self.address_base(operand)
                }
                _ => self.mismatch(operand, "an address is required"),
            },
            Shape::Tensor => match &operand.kind {
                OperandKind::Address(address) => self.tensor(spec, operand, address),
                _ => self.mismatch(operand, "a tensor and coordinates are required"),
            },
            Shape::Label => match &operand.kind {
                OperandKind::Label(_) => Ok(()),
                _ => self.mismatch(operand, "a label is required"),
            },
            Shape::Part { negative } => match &operand.kind {
                OperandKind::Negate(inner) if negative => self.part(inner),
                _ => self.part(operand),
            },
            Shape::Lanes(count) => self.lanes(spec, operand, count),
            Shape::TargetList => match &operand.kind {
                OperandKind::BranchTargets(_) => Ok(()),
                _ => self.mismatch(operand, "a list of branch targets is required"),
            },
            Shape::Symbol => match &operand.kind {
                OperandKind::Symbol(..) => Ok(()),
                OperandKind::Element(_, index) if matches!(index.kind, OperandKind::Immediate(_)) => Ok(()),
                OperandKind::Element(symbol, index) if self.opcode == "mov" => self.element(symbol, index),
                _ => self.mismatch(operand, "a register, a constant or an address is required"),
            },
            Shape::Parts(type_spec) => {
                let OperandKind::Vector(parts) = &operand.kind else {
                    return self.mismatch(operand, "a vector is required");
                };
                let whole = self.chosen.resolve(type_spec).map_or(0, Ty::bits);
                // NVIDIA's assembler takes vectors of one too, and makes something else of them.
                let part = match (parts.len(), whole) {
                    (2, 16) | (4, 32) => Ty::B8,
                    (2, 32) | (4, 64) => Ty::B16,
                    (2, 64) | (4, 128) => Ty::B32,
                    (2, 128) => Ty::B64,
                    _ => return self.mismatch(operand, "so many elements do not fit the type"),
                };
                self.alike(spec, operand, parts, part)
            }
            Shape::Fragment(type_spec) => {
                let count = (self.registers)(self.chosen, spec.name);
                let ty = self.chosen.resolve(type_spec);
                match (&operand.kind, ty) {
                    (OperandKind::Vector(list), Some(ty)) if list.len() == count => {
                        list.iter().try_for_each(|register| self.value(spec, register, ty))
                    }
                    _ => self.mismatch(operand, format!("a vector of {count} registers is required")),
                }
            }
            Shape::Tuple(type_spec) => {
                let count = (self.registers)(self.chosen, spec.name);
                match (self.chosen.resolve(type_spec), &operand.kind) {
                    // Offsets may be more than there are coordinates: two, or four.
                    (Some(ty), OperandKind::Vector(list))
                        if spec.name == "e" && list.len() > count && matches!(list.len(), 2 | 4) =>
                    {
                        self.tuple(spec, operand, list.len(), |_| ty, false)
                    }
                    (Some(ty), _) => self.tuple(spec, operand, count, |_| ty, false),
                    (None, _) => self.mismatch(operand, "the instruction has no such type"),
                }
            }
            Shape::Object => match &operand.kind {
                OperandKind::Address(address) if address.rest.is_empty() && address.offset == 0 => {
                    let asked = self.chosen.word("query").unwrap_or_default();
                    let types = texture::asked(self.opcode, asked, self.context.samplers_apart);
                    self.object(&address.base, types)?;
                    if matches!(address.base.kind, OperandKind::Register(_)) && !texture::of_handles(asked) {
                        let what = "asks about variables only: no driver loads it for a register";
                        let message = format!("'{}.{asked}' {what}", self.opcode);
                        return Err(Problem::new(LoadErrorKind::Unsupported, operand.span, message));
                    }
                    Ok(())
                }
                _ => self.mismatch(operand, "a texture, a sampler or a surface is required"),
            },
            Shape::Image { sampler } => self.image(spec, operand, sampler),
            Shape::Condition => self.value(spec, rules::negated(operand), Ty::Pred),
            Shape::Value(type_spec) => {
                let Some(ty) = self.chosen.resolve(type_spec) else {
                    return self.mismatch(operand, "the instruction has no such type");
                };
                // A predicate may be negated wherever it is read.
                let operand = if ty == Ty::Pred && !spec.written { rules::negated(operand) } else { operand };
                if spec.vector { self.vector(spec, operand, ty) } else { self.value(spec, operand, ty) }
            }
        }
    }

    /// `[map, {coordinates}]`
    fn tensor(
        &self,
        spec: &OperandSpec,
        operand: &Operand<'_, '_>,
        address: &Address<'_, '_>,
    ) -> Result<(), Problem> {
        let count = (self.registers)(self.chosen, spec.name);
        match &address.rest[..] {
            [Operand { kind: OperandKind::Vector(list), .. }]
                if list.len() == count && address.offset == 0 =>
            {
                self.address_base(&address.base)?;
                self.alike(spec, operand, list, Ty::S32)
            }
            _ => self.mismatch(operand, format!("a tensor and a vector of {count} coordinates are required")),
        }
    }

    /// A handle of a texture, a sampler or a surface.
    fn object(&self, base: &Operand<'_, '_>, types: &[ast::Type]) -> Result<(), Problem> {
        if let Some(problem) = texture::object_problem(base, types) {
            return self.mismatch(base, problem);
        }
        match &base.kind {
            OperandKind::Register(id) => {
                let register = self.context.register(*id);
                match register.vector.is_none() && Ty::U64.accepts(register.ty, false) {
                    true => Ok(()),
                    false => self.mismatch(base, "a register of 64 bits is required"),
                }
            }
            _ => Ok(()),
        }
    }

    /// An object and coordinates.
    fn image(&self, spec: &OperandSpec, operand: &Operand<'_, '_>, sampler: bool) -> Result<(), Problem> {
        let OperandKind::Address(address) = &operand.kind else {
            return self.mismatch(operand, "an object and coordinates are required");
        };
        let coordinates = match &address.rest[..] {
            _ if address.offset != 0 => return self.mismatch(operand, "an object has no offset"),
            [coordinates] => coordinates,
            [other, coordinates] if sampler => {
                self.object(other, &[ast::Type::Samplerref])?;
                coordinates
            }
            _ => return self.mismatch(operand, "an object and coordinates are required"),
        };
        self.object(&address.base, &[if sampler { ast::Type::Texref } else { ast::Type::Surfref }])?;
        let wanted = texture::brackets(self.chosen);
        let ty = self.chosen.ty("C").filter(|_| sampler).unwrap_or(Ty::S32);
        // Samples stand after the layer. A surface's layer is a number like the others, and so is a sample without a layer.
        let apart = wanted.layered && sampler;
        let integers = if apart { 1 + usize::from(wanted.samples) } else { 0 };
        let ty_of = |index| if index < integers { Ty::U32 } else { ty };
        // Further coordinates are ignored: old compilers wrote four wherever there were two.
        let count = match &coordinates.kind {
            OperandKind::Vector(list) if list.len() > wanted.numbers && matches!(list.len(), 2 | 4) => {
                list.len()
            }
            _ => wanted.numbers,
        };
        self.tuple(spec, coordinates, count, ty_of, true)
    }

    /// A vector of so many values, or perhaps one value for a vector of one.
    fn tuple(
        &self,
        spec: &OperandSpec,
        operand: &Operand<'_, '_>,
        count: usize,
        ty: impl Fn(usize) -> Ty,
        scalar: bool,
    ) -> Result<(), Problem> {
        match &operand.kind {
            OperandKind::Vector(list) if list.len() == count => {
                // What is a layer or a sample is one whatever stands beside it.
                let last = count.saturating_sub(1);
                let apart = (0..last).take_while(|index| ty(*index) != ty(last)).count();
                let (before, rest) = list.split_at(apart);
                before.iter().enumerate().try_for_each(|(index, value)| {
                    match rules::is_halves(value, self.context) {
                        true => self.mismatch(value, "a layer is an integer"),
                        false => self.value(spec, value, ty(index)),
                    }
                })?;
                self.alike(spec, operand, rest, ty(last))
            }
            OperandKind::Vector(_) => {
                self.mismatch(operand, format!("a vector of {count} elements is required"))
            }
            OperandKind::Register(id) if self.context.register(*id).vector.is_some() => {
                let register = self.context.register(*id);
                let fits = register.vector == Some(count as u32)
                    && (0..count).all(|index| ty(index).accepts(register.ty, false));
                if fits { Ok(()) } else { self.mismatch(operand, "a vector of another kind is required") }
            }
            _ if count == 1 && scalar => self.value(spec, operand, ty(0)),
            _ => self.mismatch(operand, format!("a vector of {count} elements is required")),
        }
    }

    /// A vector of as many elements as the instruction says; a scalar if it says nothing.
    fn vector(&self, spec: &OperandSpec, operand: &Operand<'_, '_>, ty: Ty) -> Result<(), Problem> {
        let lanes = self.chosen.lanes();
        let wrong = || self.mismatch(operand, format!("a vector of {lanes} elements is required"));
        match &operand.kind {
            OperandKind::Vector(elements) => {
                if elements.len() != lanes {
                    return wrong();
                }
                self.alike(spec, operand, elements, ty)
            }
            OperandKind::Sink if spec.sink => Ok(()),
            _ if self.chosen.word("vec").is_none() => self.value(spec, operand, ty),
            OperandKind::Special(register, None) if register.describe().vector && !spec.written => Ok(()),
            OperandKind::Register(id) => {
                let register = self.context.register(*id);
                let fits = register.vector == Some(lanes as u32) && ty.accepts(register.ty, spec.wider);
                if fits { Ok(()) } else { wrong() }
            }
            _ => wrong(),
        }
    }

    /// The elements of a vector.
    fn alike(
        &self,
        spec: &OperandSpec,
        operand: &Operand<'_, '_>,
        elements: &[Operand<'_, '_>],
        ty: Ty,
    ) -> Result<(), Problem> {
        let Some(ty) = rules::element_type(elements, ty, self.context) else {
            return self.mismatch(
                operand,
                "the elements of a vector are of one width and all floats or all integers",
            );
        };
        let is_place = matches!(self.opcode, "suld" | "sust" | "sured" | "cp") && ty == Ty::S32;
        if (is_place || spec.name == "e") && elements.iter().all(|at| rules::is_halves(at, self.context)) {
            return self.mismatch(operand, "pairs of halves are no places");
        }
        if elements.iter().all(|element| matches!(element.kind, OperandKind::Sink)) {
            return self.mismatch(operand, "one result at least is wanted");
        }
        elements.iter().try_for_each(|element| match element.kind {
            OperandKind::Sink if spec.written => Ok(()),
            _ => self.value(spec, element, ty),
        })
    }

    fn value(&self, spec: &OperandSpec, operand: &Operand<'_, '_>, ty: Ty) -> Result<(), Problem> {
        let (register, relaxed) = match &operand.kind {
            OperandKind::Register(id) => {
                let register = self.context.register(*id);
                if register.vector.is_some() {
                    return self.mismatch(operand, "a scalar is required");
                }
                (register.ty, spec.wider)
            }
            OperandKind::Component(id, ast::Component::Element(_)) => {
                (self.context.register(*id).ty, spec.wider)
            }
            OperandKind::Special(register, component) if !spec.written => {
                if register.describe().vector != component.is_some() {
                    return self.mismatch(operand, "an element of the vector is required");
                }
                // Reading `%tid.x` as 16 bits is old usage.
                (register.describe().ty, spec.wider || ty.bits() == 16)
            }
            OperandKind::Immediate(value) if !spec.written => {
                // What multimem stores as .bf16x2 is as good as bits.
                let halves = ty.half().is_some() || matches!(ty, Ty::F16 | Ty::Bf16 | Ty::Tf32);
                let width = match value {
                    ast::Immediate::F32(_) => 32,
                    _ => 64,
                };
                return match (ty.kind(), value.integer()) {
                    (Kind::Pred, None) => self.mismatch(operand, "a predicate is required"),
                    _ if halves
                        && !(self.opcode == "multimem" && self.chosen.has("st") && ty != Ty::F16x2) =>
                    {
                        self.mismatch(operand, format!("there are no constants of type .{}", ty.name()))
                    }
                    (Kind::Bits, None) if ty.bits() != width => {
                        self.mismatch(operand, "a float of another width")
                    }
                    (Kind::Signed | Kind::Unsigned, None) => self.mismatch(operand, "an integer is required"),
                    (Kind::Float, Some(_)) if matches!(ty, Ty::F32 | Ty::F64) => {
                        self.mismatch(operand, "a floating-point constant is required")
                    }
                    _ => Ok(()),
                };
            }
            OperandKind::Sink if spec.sink => return Ok(()),
            OperandKind::Sink => return self.mismatch(operand, "the sink '_' is not allowed here"),
            _ if spec.written => return self.mismatch(operand, "a register is required"),
            _ => return self.mismatch(operand, "a register or constant is required"),
        };
        // What `set` answers as .bf16 may be in integers too, and as .bf16x2 in anything.
        let integer = match ty {
            Ty::Bf16 => Some(Ty::U16),
            Ty::Bf16x2 => Some(Ty::B32),
            _ => None,
        };
        let truth = integer.filter(|_| match self.opcode {
            "set" => spec.written,
            // What copies load and store as .bf16x2 may be in anything too.
            "multimem" => ty == Ty::Bf16x2 && !self.chosen.has("red"),
            _ => false,
        });
        if ty.accepts(register, relaxed) || truth.is_some_and(|ty| ty.accepts(register, false)) {
            Ok(())
        } else {
            let what = format!("a register of type .{} does not fit type .{}", register.name(), ty.name());
            self.mismatch(operand, what)
        }
    }

    /// `array[index]`, without brackets around it.
    fn element(&self, symbol: &Symbol<'_, '_>, index: &Operand<'_, '_>) -> Result<(), Problem> {
        let is_array = match symbol {
            Symbol::Local(id) => !self.context.variables[id.0 as usize].declaration.dimensions.is_empty(),
            Symbol::Global(variable, _) => !variable.dimensions.is_empty(),
            Symbol::Function(_) => false,
        };
        if !is_array {
            return self.mismatch(index, "what is indexed is no array");
        }
        match &index.kind {
            OperandKind::Immediate(_) => Ok(()),
            OperandKind::Register(id) | OperandKind::RegisterOffset(id, _) => {
                let register = self.context.register(*id);
                let fits = [Ty::U16, Ty::U32, Ty::U64].iter().any(|ty| ty.accepts(register.ty, false));
                if register.vector.is_none() && fits {
                    return Ok(());
                }
                self.mismatch(index, "an index is an integer")
            }
            _ => self.mismatch(index, "an index is a register or a constant"),
        }
    }

    fn address_base(&self, base: &Operand<'_, '_>) -> Result<(), Problem> {
        let register = match &base.kind {
            OperandKind::Immediate(_) => return Ok(()),
            OperandKind::Symbol(Symbol::Local(_) | Symbol::Global(..), _) => return Ok(()),
            OperandKind::Element(_, index) if matches!(index.kind, OperandKind::Immediate(_)) => {
                return Ok(());
            }
            OperandKind::Component(id, ast::Component::Element(_)) => self.context.register(*id),
            OperandKind::Register(id) if self.context.register(*id).vector.is_none() => {
                self.context.register(*id)
            }
            _ => return self.mismatch(base, "not an address"),
        };
        if Ty::U32.accepts(register.ty, false) || Ty::U64.accepts(register.ty, false) {
            Ok(())
        } else {
            self.mismatch(base, format!("a register of type .{} cannot hold an address", register.ty.name()))
        }
    }
}
