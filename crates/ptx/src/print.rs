//! Syntax trees back to text: `Display` of [`Module`] and its parts. Reading the text again gives an equal
//! tree.

use std::fmt::{Display, Formatter, Result, Write};

use crate::ast::{
    Address, AddressInitialiser, Attributes, Block, Body, Code, Component, Directives, FieldValue, File,
    Function, Immediate, Initialiser, Instruction, Item, Linkage, Loc, Module, NameList, Operand,
    OperandKind, Prototype, Registers, Statement, Target, Variable,
};

impl Display for Module<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, ".version {}", self.version)?;
        writeln!(f, ".target {}", self.target)?;
        if let Some(bits) = self.address_size {
            writeln!(f, ".address_size {bits}")?;
        }
        for item in &self.items {
            writeln!(f, "\n{item}")?;
        }
        Ok(())
    }
}

impl Display for Target<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.architecture.text)?;
        self.options.iter().try_for_each(|option| write!(f, ", {}", option.text))
    }
}

impl Display for Item<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Item::Variable(variable) => write!(f, "{variable};"),
            Item::Function(function) => function.fmt(f),
            Item::Alias(alias) => write!(f, ".alias {}, {};", alias.name.text, alias.target.text),
            Item::File(file) => file.fmt(f),
            Item::Section(section) => write!(f, ".section {} {{{}}}", section.name, section.text),
            Item::Pragma(strings) => pragma(f, strings),
        }
    }
}

impl Display for File<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, ".file {} \"{}\"", self.index, self.name)?;
        match self.details {
            Some((timestamp, size)) => write!(f, ", {timestamp}, {size}"),
            None => Ok(()),
        }
    }
}

/// Without the semicolon, as parameters stand.
impl Display for Variable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        linkage(f, self.linkage)?;
        write!(f, ".{} ", self.space.name())?;
        if let Some(bank) = self.bank {
            write!(f, "[{bank}] ")?;
        }
        self.attributes.fmt(f)?;
        if let Some(align) = self.align {
            write!(f, ".align {align} ")?;
        }
        if let Some(width) = self.vector {
            write!(f, ".v{width} ")?;
        }
        write!(f, ".{} ", self.ty.name())?;
        if let Some(pointer) = self.pointer {
            f.write_str(".ptr ")?;
            if let Some(space) = pointer.space {
                write!(f, ".{} ", space.name())?;
            }
            if let Some(align) = pointer.align {
                write!(f, ".align {align} ")?;
            }
        }
        counted(f, self.name.text, self.count)?;
        for dimension in &self.dimensions {
            match dimension {
                Some(size) => write!(f, "[{size}]")?,
                None => f.write_str("[]")?,
            }
        }
        match &self.initialiser {
            Some(initialiser) => write!(f, " = {initialiser}"),
            None => Ok(()),
        }
    }
}

/// With a blank after it, if there is anything.
impl Display for Attributes {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match (self.managed, self.unified) {
            (false, None) => Ok(()),
            (true, None) => f.write_str(".attribute(.managed) "),
            (false, Some((a, b))) => write!(f, ".attribute(.unified({a}, {b})) "),
            (true, Some((a, b))) => write!(f, ".attribute(.managed, .unified({a}, {b})) "),
        }
    }
}

impl Display for Initialiser<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Initialiser::Value(value) => value.fmt(f),
            Initialiser::Address(address) => address.fmt(f),
            Initialiser::List(list) => write!(f, "{{{}}}", Commas(list)),
            Initialiser::Fields(fields) => {
                f.write_char('{')?;
                for (i, field) in fields.iter().enumerate() {
                    let separator = if i == 0 { "" } else { ", " };
                    write!(f, "{separator}{} = ", field.name.text)?;
                    match &field.value {
                        FieldValue::Word(word) => f.write_str(word.text)?,
                        FieldValue::Number(value) => value.fmt(f)?,
                    }
                }
                f.write_char('}')
            }
        }
    }
}

impl Display for AddressInitialiser<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(mask) = self.mask {
            write!(f, "{mask:#x}(")?;
        }
        match self.generic {
            true => write!(f, "generic({})", self.symbol.text)?,
            false => f.write_str(self.symbol.text)?,
        }
        if self.offset != 0 {
            write!(f, "+{}", self.offset)?;
        }
        if self.mask.is_some() { f.write_char(')') } else { Ok(()) }
    }
}

impl Display for Function<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        linkage(f, self.linkage)?;
        write!(f, "{} {}", if self.is_entry { ".entry" } else { ".func" }, self.attributes)?;
        if !self.returns.is_empty() {
            write!(f, "({}) ", Commas(&self.returns))?;
        }
        write!(f, "{}({}){}", self.name.text, Commas(&self.params), self.directives)?;
        match &self.body {
            Body::Declared => f.write_char(';'),
            Body::Skipped(_) => f.write_str("\n{ /* not read */ }"),
            Body::Parsed(code) => write!(f, "\n{code}"),
        }
    }
}

/// Each with a line break before it.
impl Display for Directives<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let triples = [
            (".maxntid", self.maxntid),
            (".reqntid", self.reqntid),
            (".reqnctapercluster", self.reqnctapercluster),
        ];
        for (name, [x, y, z]) in triples.into_iter().filter_map(|(n, v)| Some((n, v?))) {
            write!(f, "\n{name} {x}, {y}, {z}")?;
        }
        let singles = [
            (".minnctapersm", self.minnctapersm),
            (".maxnreg", self.maxnreg),
            (".maxclusterrank", self.maxclusterrank),
            (".abi_preserve", self.abi_preserve),
            (".abi_preserve_control", self.abi_preserve_control),
        ];
        for (name, value) in singles.into_iter().filter_map(|(n, v)| Some((n, v?))) {
            write!(f, "\n{name} {value}")?;
        }
        let flags = [
            (".noreturn", self.noreturn),
            (".explicitcluster", self.explicitcluster),
            (".blocksareclusters", self.blocksareclusters),
        ];
        for (name, _) in flags.into_iter().filter(|(_, set)| *set) {
            write!(f, "\n{name}")?;
        }
        if !self.pragmas.is_empty() {
            f.write_char('\n')?;
            pragma(f, &self.pragmas)?;
        }
        Ok(())
    }
}

impl Display for Code<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Printer { locs: &self.locs, loc: None, depth: 0 }.block(f, &self.block)
    }
}

impl Display for Loc<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, ".loc {} {} {}", self.file, self.line, self.column)?;
        let Some(inlined) = self.inlined else { return Ok(()) };
        write!(f, ", function_name {}", inlined.function.text)?;
        if inlined.offset != 0 {
            write!(f, "+{}", inlined.offset)?;
        }
        write!(f, ", inlined_at {} {} {}", inlined.file, inlined.line, inlined.column)
    }
}

impl Display for Registers<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(".reg ")?;
        if let Some(align) = self.align {
            write!(f, ".align {align} ")?;
        }
        if let Some(width) = self.vector {
            write!(f, ".v{width} ")?;
        }
        write!(f, ".{} ", self.ty.name())?;
        for (i, register) in self.names.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            counted(f, register.name.text, register.count)?;
        }
        f.write_char(';')
    }
}

impl Display for Prototype<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}: .callprototype ", self.name.text)?;
        if !self.returns.is_empty() {
            write!(f, "({}) ", Commas(&self.returns))?;
        }
        write!(f, "_ ({}){};", Commas(&self.params), self.directives)
    }
}

impl Display for Instruction<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(guard) = self.guard {
            write!(f, "@{}{} ", if guard.negated { "!" } else { "" }, guard.register.text)?;
        }
        f.write_str(self.opcode.text)?;
        for modifier in &self.modifiers {
            write!(f, ".{}", modifier.text)?;
        }
        if !self.operands.is_empty() {
            write!(f, " {}", Commas(&self.operands))?;
        }
        f.write_char(';')
    }
}

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.kind {
            OperandKind::Name(name) => f.write_str(name.text),
            OperandKind::Component(name, component) => write!(f, "{}.{component}", name.text),
            OperandKind::Immediate(value) => value.fmt(f),
            OperandKind::SymbolOffset(name, offset) => write!(f, "{}+{offset}", name.text),
            OperandKind::Sink => f.write_char('_'),
            OperandKind::Not(operand) => write!(f, "!{operand}"),
            OperandKind::Negate(operand) => write!(f, "-{operand}"),
            OperandKind::Vector(list) => write!(f, "{{{}}}", Commas(list)),
            OperandKind::Pair(a, b) => write!(f, "{a}|{b}"),
            OperandKind::Address(address) => address.fmt(f),
            OperandKind::Element(name, index) => write!(f, "{}[{index}]", name.text),
            OperandKind::List(list) => write!(f, "({})", Commas(list)),
        }
    }
}

impl Display for Address<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "[{}", self.base)?;
        if self.offset != 0 {
            write!(f, "+{}", self.offset)?;
        }
        if !self.rest.is_empty() {
            write!(f, ", {}", Commas(&self.rest))?;
        }
        f.write_str(if self.unified { "].unified" } else { "]" })
    }
}

impl Display for Component {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (kind, lanes) = match self {
            Component::Element(n) => return f.write_str(["x", "y", "z", "w"][usize::from(*n & 3)]),
            Component::Bytes(lanes) => ('b', lanes),
            Component::Halves(lanes) => ('h', lanes),
        };
        f.write_char(kind)?;
        lanes.digits().iter().try_for_each(|digit| write!(f, "{digit}"))
    }
}

impl Display for Immediate {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            // Its magnitude alone is a `.u64`.
            Immediate::Signed(i64::MIN) => f.write_str("(.s64)0x8000000000000000"),
            Immediate::Signed(value) => write!(f, "{value}"),
            Immediate::Unsigned(value) => write!(f, "{value}U"),
            Immediate::F32(bits) => write!(f, "0f{bits:08X}"),
            Immediate::F64(bits) => write!(f, "0d{bits:016X}"),
        }
    }
}

/// Prints statements, indented, with a `.loc` where the source line changes.
struct Printer<'p, 'a> {
    locs: &'p [Loc<'a>],
    loc: Option<u32>,
    depth: usize,
}

impl Printer<'_, '_> {
    fn block(&mut self, f: &mut Formatter<'_>, block: &Block<'_>) -> Result {
        f.write_str("{\n")?;
        self.depth += 1;
        for statement in &block.statements {
            self.statement(f, statement)?;
            f.write_char('\n')?;
        }
        self.depth -= 1;
        self.indent(f)?;
        f.write_char('}')
    }

    fn statement(&mut self, f: &mut Formatter<'_>, statement: &Statement<'_>) -> Result {
        match statement {
            Statement::Instruction(instruction) => {
                if let Some(loc) = instruction.loc.filter(|_| instruction.loc != self.loc) {
                    self.loc = instruction.loc;
                    self.indent(f)?;
                    writeln!(f, "{}", self.locs[loc as usize])?;
                }
                self.indent(f)?;
                instruction.fmt(f)
            }
            Statement::Label(name) => write!(f, "{}:", name.text),
            Statement::Registers(registers) => {
                self.indent(f)?;
                registers.fmt(f)
            }
            Statement::Variable(variable) => {
                self.indent(f)?;
                write!(f, "{variable};")
            }
            Statement::Block(block) => {
                self.indent(f)?;
                self.block(f, block)
            }
            Statement::Prototype(prototype) => prototype.fmt(f),
            Statement::CallTargets(list) => targets(f, ".calltargets", list),
            Statement::BranchTargets(list) => targets(f, ".branchtargets", list),
            Statement::Pragma(strings) => {
                self.indent(f)?;
                pragma(f, strings)
            }
        }
    }

    fn indent(&self, f: &mut Formatter<'_>) -> Result {
        (0..self.depth).try_for_each(|_| f.write_char('\t'))
    }
}

fn linkage(f: &mut Formatter<'_>, linkage: Linkage) -> Result {
    if linkage.name().is_empty() { Ok(()) } else { write!(f, ".{} ", linkage.name()) }
}

fn counted(f: &mut Formatter<'_>, name: &str, count: Option<u32>) -> Result {
    f.write_str(name)?;
    count.map_or(Ok(()), |count| write!(f, "<{count}>"))
}

fn pragma(f: &mut Formatter<'_>, strings: &[&str]) -> Result {
    for (i, string) in strings.iter().enumerate() {
        write!(f, "{} \"{string}\"", if i == 0 { ".pragma" } else { "," })?;
    }
    f.write_char(';')
}

fn targets(f: &mut Formatter<'_>, directive: &str, list: &NameList<'_>) -> Result {
    write!(f, "{}: {directive}", list.name.text)?;
    for (i, name) in list.names.iter().enumerate() {
        write!(f, "{} {}", if i == 0 { "" } else { "," }, name.text)?;
    }
    f.write_char(';')
}

/// Things with commas between them.
struct Commas<'l, T>(&'l [T]);

impl<T: Display> Display for Commas<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (i, one) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            one.fmt(f)?;
        }
        Ok(())
    }
}
