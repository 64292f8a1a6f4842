//! The syntax tree of a PTX module.
//!
//! Names are borrowed from the source text and unresolved; [`crate::resolve`] binds them. Constant
//! expressions are already evaluated. Equality ignores where things stand (see [`Span`]).

use crate::span::Span;

/// An identifier, an opcode, or a modifier without its dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The characters.
    pub text: &'a str,
    /// Where they stand.
    pub span: Span,
}

/// A whole module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module<'a> {
    /// `.version major.minor`.
    pub version: Version,
    /// `.target`.
    pub target: Target<'a>,
    /// `.address_size`, if given.
    pub address_size: Option<u32>,
    /// Everything at module scope, in order.
    pub items: Vec<Item<'a>>,
}

/// A PTX ISA version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The 8 of 8.3.
    pub major: u32,
    /// The 3 of 8.3.
    pub minor: u32,
}

/// The words of `.target`: an architecture and options.
#[derive(Clone, Debug, PartialEq)]
pub struct Target<'a> {
    /// `sm_90a`.
    pub architecture: Name<'a>,
    /// `debug`, `texmode_independent`, …
    pub options: Vec<Name<'a>>,
}

/// Something at module scope.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// A variable, declared or defined.
    Variable(Variable<'a>),
    /// A kernel or function, declared or defined.
    Function(Function<'a>),
    /// `.alias name, aliasee;`
    Alias(Alias<'a>),
    /// `.file`.
    File(File<'a>),
    /// `.section`, kept as text: debugging information.
    Section(Section<'a>),
    /// `.pragma` strings.
    Pragma(Vec<&'a str>),
}

/// Who sees a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Linkage {
    /// No directive: this module only (kernels are found by name all the same).
    #[default]
    Private,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
    /// A `.global` or `.const` variable declared in a function: its block only.
    Block,
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateSpace {
    /// `.reg`
    Reg,
    /// `.sreg`
    Sreg,
    /// `.const`
    Const,
    /// `.global`
    Global,
    /// `.local`
    Local,
    /// `.param`
    Param,
    /// `.shared`
    Shared,
    /// `.tex`, the deprecated texture space.
    Tex,
}

/// The types that declarations may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the PTX type of the same spelling")]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    F32,
    F64,
    Texref,
    Samplerref,
    Surfref,
}

/// A variable outside the register space, or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable<'a> {
    /// Who sees it.
    pub linkage: Linkage,
    /// Where it lives. Parameters of functions may be in `.reg`.
    pub space: StateSpace,
    /// The bank of `.const[n]`, deprecated.
    pub bank: Option<u32>,
    /// `.attribute(…)`.
    pub attributes: Attributes,
    /// `.align`, in bytes; a power of two.
    pub align: Option<u32>,
    /// `.v2`, `.v4`: elements of one vector.
    pub vector: Option<u32>,
    /// The type of an element.
    pub ty: Type,
    /// `.ptr`, on kernel parameters.
    pub pointer: Option<Pointer>,
    /// The name; `_` in prototypes.
    pub name: Name<'a>,
    /// `name<count>`: the variables name0 … name(count-1).
    pub count: Option<u32>,
    /// Array dimensions, outermost first; `None` is `[]`.
    pub dimensions: Vec<Option<u64>>,
    /// `= …`
    pub initialiser: Option<Initialiser<'a>>,
    /// The declaration.
    pub span: Span,
}

/// `.attribute(…)` of variables and functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attributes {
    /// `.managed`
    pub managed: bool,
    /// `.unified(uuid1, uuid2)`
    pub unified: Option<(u64, u64)>,
}

/// `.ptr` of a kernel parameter: what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Space pointed to; `None` is generic.
    pub space: Option<StateSpace>,
    /// Alignment of what is pointed to, in bytes.
    pub align: Option<u32>,
}

/// The value a variable starts with.
#[derive(Clone, Debug, PartialEq)]
pub enum Initialiser<'a> {
    /// A number.
    Value(Immediate),
    /// An address.
    Address(AddressInitialiser<'a>),
    /// `{ … }`
    List(Vec<Initialiser<'a>>),
    /// `{ field = value, … }` of samplers, textures and surfaces.
    Fields(Vec<Field<'a>>),
}

/// `mask(generic(symbol) + offset)`, all but the symbol optional.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressInitialiser<'a> {
    /// Variable or function.
    pub symbol: Name<'a>,
    /// Whether the address is made generic.
    pub generic: bool,
    /// Bytes added.
    pub offset: i64,
    /// Which byte of the address is meant, as a mask such as `0xff00`.
    pub mask: Option<u64>,
}

/// One field of an opaque variable's initialiser.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'a> {
    /// `addr_mode_0`, `width`, …
    pub name: Name<'a>,
    /// A number or a word.
    pub value: FieldValue<'a>,
}

/// What a field is set to.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// `clamp_to_border`, …
    Word(Name<'a>),
    /// A number.
    Number(Immediate),
}

/// `.reg` declarations of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Registers<'a> {
    /// `.align`, which has no effect.
    pub align: Option<u32>,
    /// `.v2`, `.v4`.
    pub vector: Option<u32>,
    /// Type of each (element).
    pub ty: Type,
    /// The declared names.
    pub names: Vec<RegisterName<'a>>,
    /// The declaration.
    pub span: Span,
}

/// One declarator of `.reg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterName<'a> {
    /// The name, or the stem of a range.
    pub name: Name<'a>,
    /// `%r<10>` declares `%r0` to `%r9`.
    pub count: Option<u32>,
}

/// `.entry` or `.func`.
#[derive(Clone, Debug, PartialEq)]
pub struct Function<'a> {
    /// Who sees it.
    pub linkage: Linkage,
    /// `.entry`, not `.func`.
    pub is_entry: bool,
    /// `.attribute(…)`.
    pub attributes: Attributes,
    /// Its name.
    pub name: Name<'a>,
    /// Return parameters.
    pub returns: Vec<Variable<'a>>,
    /// Parameters.
    pub params: Vec<Variable<'a>>,
    /// Performance and other directives between parameters and body.
    pub directives: Directives<'a>,
    /// The body.
    pub body: Body<'a>,
    /// The declaration, without the body.
    pub span: Span,
}

/// Directives of a function. Triples are x, y, z with 1 for what is not given.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Directives<'a> {
    /// `.maxntid`
    pub maxntid: Option<[u32; 3]>,
    /// `.reqntid`
    pub reqntid: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub minnctapersm: Option<u32>,
    /// `.maxnreg`
    pub maxnreg: Option<u32>,
    /// `.noreturn`
    pub noreturn: bool,
    /// `.explicitcluster`
    pub explicitcluster: bool,
    /// `.reqnctapercluster`
    pub reqnctapercluster: Option<[u32; 3]>,
    /// `.maxclusterrank`
    pub maxclusterrank: Option<u32>,
    /// `.blocksareclusters`
    pub blocksareclusters: bool,
    /// `.abi_preserve n`
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control n`
    pub abi_preserve_control: Option<u32>,
    /// `.pragma` strings.
    pub pragmas: Vec<&'a str>,
}

/// What follows a function's head.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// `;`: only declared here.
    Declared,
    /// Defined, but not read: the text from `{` to `}`.
    Skipped(Span),
    /// Defined.
    Parsed(Code<'a>),
}

/// A function body that has been read.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Code<'a> {
    /// The outermost scope.
    pub block: Block<'a>,
    /// The `.loc` lines that instructions refer to, each differing from the one before.
    pub locs: Vec<Loc<'a>>,
}

/// `{ … }`
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Block<'a> {
    /// In order.
    pub statements: Vec<Statement<'a>>,
    /// From `{` to `}`.
    pub span: Span,
}

/// Something in a function body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement<'a> {
    /// An instruction.
    Instruction(Instruction<'a>),
    /// `name:`
    Label(Name<'a>),
    /// `.reg`
    Registers(Registers<'a>),
    /// A variable in any other space.
    Variable(Variable<'a>),
    /// A nested scope.
    Block(Block<'a>),
    /// `name: .callprototype …;`
    Prototype(Prototype<'a>),
    /// `name: .calltargets f, g;`
    CallTargets(NameList<'a>),
    /// `name: .branchtargets a, b;`
    BranchTargets(NameList<'a>),
    /// `.pragma` strings.
    Pragma(Vec<&'a str>),
}

/// `name: .callprototype (returns) _ (params) …;`
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype<'a> {
    /// The label.
    pub name: Name<'a>,
    /// Return parameters.
    pub returns: Vec<Variable<'a>>,
    /// Parameters.
    pub params: Vec<Variable<'a>>,
    /// `.noreturn`, `.abi_preserve`.
    pub directives: Directives<'a>,
}

/// A labelled list of labels or functions.
#[derive(Clone, Debug, PartialEq)]
pub struct NameList<'a> {
    /// The label.
    pub name: Name<'a>,
    /// The list.
    pub names: Vec<Name<'a>>,
}

/// Any instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction<'a> {
    /// `@p` or `@!p`.
    pub guard: Option<Guard<'a>>,
    /// `ld`
    pub opcode: Name<'a>,
    /// `global`, `L2::128B`, `v4`, `f32`: without dots, in order.
    pub modifiers: Vec<Name<'a>>,
    /// As written; see [`OperandKind`].
    pub operands: Vec<Operand<'a>>,
    /// The source line this instruction was made from: the last `.loc` before it in the function, as an
    /// index into [`Code::locs`].
    pub loc: Option<u32>,
    /// From the guard to the semicolon.
    pub span: Span,
}

/// The predicate that decides whether an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard<'a> {
    /// `@!p`
    pub negated: bool,
    /// The predicate register.
    pub register: Name<'a>,
}

/// An operand and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand<'a> {
    /// The operand.
    pub kind: OperandKind<'a>,
    /// Where it stands.
    pub span: Span,
}

/// The forms of operands.
#[derive(Clone, Debug, PartialEq)]
pub enum OperandKind<'a> {
    /// A register, special register, variable, function, label, prototype or list of targets.
    Name(Name<'a>),
    /// `%v.x`, `%tid.x`, `%r1.b0`, `%r1.h1`
    Component(Name<'a>, Component),
    /// A number.
    Immediate(Immediate),
    /// `symbol+4`, or `%r+4` as an index.
    SymbolOffset(Name<'a>, i64),
    /// `_`: a result that is not wanted.
    Sink,
    /// `!p`
    Not(Box<Operand<'a>>),
    /// `-a`, of the video instructions.
    Negate(Box<Operand<'a>>),
    /// `{a, b, _}`
    Vector(Vec<Operand<'a>>),
    /// `a|b`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `[…]`
    Address(Box<Address<'a>>),
    /// `symbol[index]`, of arrays in parameters and constants.
    Element(Name<'a>, Box<Operand<'a>>),
    /// `(a, b)`, of `call` only.
    List(Vec<Operand<'a>>),
}

/// `[base+offset, rest…]`
#[derive(Clone, Debug, PartialEq)]
pub struct Address<'a> {
    /// A name, a number, or `symbol[index]`.
    pub base: Operand<'a>,
    /// Bytes added.
    pub offset: i64,
    /// What follows in the brackets: samplers and coordinates of textures and tensors.
    pub rest: Vec<Operand<'a>>,
    /// `.unified` after the bracket.
    pub unified: bool,
}

/// Part of a vector or of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Component {
    /// `.x .y .z .w` or `.r .g .b .a`: an element of a vector, from 0.
    Element(u8),
    /// `.b0`, `.b3210`: bytes of a word or of a pair of words.
    Bytes(Lanes),
    /// `.h0`, `.h10`: halves of a word or of a pair of words.
    Halves(Lanes),
}

/// The digits of a selector of the video instructions, one to four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lanes {
    digits: [u8; 4],
    count: u8,
}

impl Lanes {
    /// The digits in the order written, so the most significant first.
    pub fn digits(&self) -> &[u8] {
        &self.digits[..usize::from(self.count)]
    }

    fn parse(text: &str) -> Option<Lanes> {
        let mut lanes = Lanes { digits: [0; 4], count: text.len().try_into().ok()? };
        if !(1..=4).contains(&lanes.count) {
            return None;
        }
        for (digit, b) in lanes.digits.iter_mut().zip(text.bytes()) {
            *digit = b.checked_sub(b'0').filter(|d| *d < 8)?;
        }
        Some(lanes)
    }
}

/// A number as PTX types it: 64 bits, or the bits of a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Immediate {
    /// An integer of type `.s64`.
    Signed(i64),
    /// An integer of type `.u64`.
    Unsigned(u64),
    /// Bits of an `.f32` (`0f…`).
    F32(u32),
    /// Bits of an `.f64` (`0d…`, or decimal).
    F64(u64),
}

/// `.alias`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias<'a> {
    /// The further name, declared as a function without a body.
    pub name: Name<'a>,
    /// The function it stands for.
    pub target: Name<'a>,
}

/// `.file index "name", timestamp, size`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// What `.loc` refers to.
    pub index: u64,
    /// Its name as written, without quotes.
    pub name: &'a str,
    /// Time stamp and size, if given.
    pub details: Option<(u64, u64)>,
}

/// `.section name { … }`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// With its dots: `.debug_str`.
    pub name: &'a str,
    /// The text between the braces.
    pub text: &'a str,
}

/// `.loc file line column`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loc<'a> {
    /// Index of a `.file`.
    pub file: u64,
    /// Line in it.
    pub line: u64,
    /// Column in it.
    pub column: u64,
    /// Where the function that the line belongs to was inlined.
    pub inlined: Option<Inlined<'a>>,
}

/// `, function_name label+offset, inlined_at file line column`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlined<'a> {
    /// Label of the inlined function's name in the section `.debug_str`.
    pub function: Name<'a>,
    /// Bytes after the label.
    pub offset: i64,
    /// Index of a `.file`.
    pub file: u64,
    /// Line of the call.
    pub line: u64,
    /// Column of the call.
    pub column: u64,
}

impl<'a> Module<'a> {
    /// Whether `.target` says that samplers stand apart from textures.
    pub fn samplers_apart(&self) -> bool {
        self.target.options.iter().any(|option| option.text == "texmode_independent")
    }

    /// All functions, declared or defined, in order.
    pub fn functions(&self) -> impl Iterator<Item = &Function<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }

    /// The kernels that have a body.
    pub fn entries(&self) -> impl Iterator<Item = &Function<'a>> {
        self.functions().filter(|f| f.is_entry && !matches!(f.body, Body::Declared))
    }

    /// All variables of module scope, declared or defined, in order.
    pub fn variables(&self) -> impl Iterator<Item = &Variable<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Variable(variable) => Some(variable),
            _ => None,
        })
    }

    /// The function of this name: its definition if there is one, else a declaration.
    pub fn function(&self, name: &str) -> Option<&Function<'a>> {
        let mut named = self.functions().filter(|f| f.name.text == name);
        let first = named.next()?;
        Some(if first.is_defined() { first } else { named.find(|f| f.is_defined()).unwrap_or(first) })
    }
}

impl Function<'_> {
    /// Whether it has a body.
    pub fn is_defined(&self) -> bool {
        !matches!(self.body, Body::Declared)
    }
}

impl Variable<'_> {
    /// Elements of all dimensions together: 1 for a scalar; `None` if the size is open or overflows.
    pub fn elements(&self) -> Option<u64> {
        let vector = u64::from(self.vector.unwrap_or(1));
        self.dimensions.iter().try_fold(vector, |total, &d| total.checked_mul(d?))
    }

    /// Bytes in memory; `None` if the size is open or overflows.
    pub fn size(&self) -> Option<u64> {
        self.elements()?.checked_mul(self.ty.size())
    }

    /// Alignment in bytes: the declared one, or the natural one of the type.
    pub fn alignment(&self) -> u64 {
        let natural = self.ty.size() * u64::from(self.vector.unwrap_or(1));
        self.align.map_or(natural.next_power_of_two(), u64::from)
    }
}

impl Type {
    const ALL: [(Type, &'static str, u64); 21] = [
        (Type::Pred, "pred", 1),
        (Type::B8, "b8", 1),
        (Type::B16, "b16", 2),
        (Type::B32, "b32", 4),
        (Type::B64, "b64", 8),
        (Type::B128, "b128", 16),
        (Type::U8, "u8", 1),
        (Type::U16, "u16", 2),
        (Type::U32, "u32", 4),
        (Type::U64, "u64", 8),
        (Type::S8, "s8", 1),
        (Type::S16, "s16", 2),
        (Type::S32, "s32", 4),
        (Type::S64, "s64", 8),
        (Type::F16, "f16", 2),
        (Type::F16x2, "f16x2", 4),
        (Type::F32, "f32", 4),
        (Type::F64, "f64", 8),
        (Type::Texref, "texref", 8),
        (Type::Samplerref, "samplerref", 8),
        (Type::Surfref, "surfref", 8),
    ];

    /// The type spelled so, without the dot.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.iter().find(|(_, n, _)| *n == name).map(|(ty, ..)| *ty)
    }

    /// Its spelling, without the dot.
    pub fn name(self) -> &'static str {
        Type::ALL[self as usize].1
    }

    /// Bytes in memory. Opaque types count as the handle they are passed as.
    pub fn size(self) -> u64 {
        Type::ALL[self as usize].2
    }
}

impl StateSpace {
    const ALL: [(StateSpace, &'static str); 8] = [
        (StateSpace::Reg, "reg"),
        (StateSpace::Sreg, "sreg"),
        (StateSpace::Const, "const"),
        (StateSpace::Global, "global"),
        (StateSpace::Local, "local"),
        (StateSpace::Param, "param"),
        (StateSpace::Shared, "shared"),
        (StateSpace::Tex, "tex"),
    ];

    /// The space spelled so, without the dot.
    pub fn from_name(name: &str) -> Option<StateSpace> {
        StateSpace::ALL.iter().find(|(_, n)| *n == name).map(|(space, _)| *space)
    }

    /// Its spelling, without the dot.
    pub fn name(self) -> &'static str {
        StateSpace::ALL[self as usize].1
    }
}

impl Component {
    /// The component spelled so, without the dot.
    pub fn from_name(name: &str) -> Option<Component> {
        Some(match name {
            "x" | "r" => Component::Element(0),
            "y" | "g" => Component::Element(1),
            "z" | "b" => Component::Element(2),
            "w" | "a" => Component::Element(3),
            _ if name.starts_with('b') => Component::Bytes(Lanes::parse(&name[1..])?),
            _ if name.starts_with('h') => Component::Halves(Lanes::parse(&name[1..])?),
            _ => return None,
        })
    }
}

impl Immediate {
    /// The 64 bits of an integer, whatever its signedness; `None` for a float.
    pub fn integer(self) -> Option<u64> {
        match self {
            Immediate::Signed(v) => Some(v as u64),
            Immediate::Unsigned(v) => Some(v),
            Immediate::F32(_) | Immediate::F64(_) => None,
        }
    }
}

impl Linkage {
    /// The directive without its dot; empty where there is none.
    pub fn name(self) -> &'static str {
        match self {
            Linkage::Private | Linkage::Block => "",
            Linkage::Visible => "visible",
            Linkage::Extern => "extern",
            Linkage::Weak => "weak",
            Linkage::Common => "common",
        }
    }
}
