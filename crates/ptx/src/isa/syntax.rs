//! The notation in which the instruction table writes its entries, and matching instructions against it.
//!
//! An entry looks much as in a manual: `add.rnd{rn,rz,rm,rp}?.ftz?.T{f32} d=T, a:T, b:T`.
//!
//! After the opcode come modifiers in their order. A plain word stands for itself; `name{…}` is a choice, whose outcome
//! the expansion asks for by that name; `?` makes either optional. `$set` inside braces names one of [`SETS`].
//!
//! Operands follow, each `name`, then `=` where it is written or `:` where it is read, then what it is:
//! * a type, or the name of a choice of types, or `2T` for the type twice as wide: a register, or a number if read;
//! * `T+` the register may be wider; `T*` a vector of as many elements as the choice `vec` says, a scalar without it;
//! * `T#` a vector of as many registers as [`Form::registers`](super::Form) says;
//! * `T%` the same, or a register that is such a vector; of a result, elements may be the sink `_`;
//! * `T/` a vector whose elements together are as wide as `T`;
//! * `object` a texture, sampler or surface in brackets; `image`, `surface` with coordinates, an image perhaps with a sampler;
//! * `pred!` a predicate that may be negated; `imm` a number; `address`; `tensor` a map and coordinates in brackets; `label`; `list` of labels; `symbol` a variable or function;
//! * `part` a word or one byte or half of it, `-part` also negated; `lanes2`, `lanes4` a word or a choice of its halves or bytes.
//!
//! `name?` may be left out together with all that follow; `name_` may be the sink `_`. `d=b32|p?=pred` is a pair of
//! results of which the second may be left out. An operand `...` stands for any further operands.

use super::rules::is_narrow_type;
use super::types::Ty;

/// Named lists for the braces of an entry.
const SETS: &[(&str, &str)] = &[
    ("int", "u16,u32,u64,s16,s32,s64"),
    ("int8", "u8,u16,u32,u64,s8,s16,s32,s64"),
    ("word", "u32,s32,u64,s64"),
    ("bits", "b16,b32,b64"),
    ("scalar", "b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64"),
    ("memory", "b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64"),
    ("wide", "b32,b64,u32,u64,s32,s64,f32,f64"),
    ("rnd", "rn,rz,rm,rp"),
    ("rndi", "rni,rzi,rmi,rpi"),
    ("order", "relaxed,acquire,release,acq_rel"),
    ("scope", "cta,cluster,gpu,sys"),
    ("bool", "and,or,xor"),
    ("cmps", "eq,ne,lt,le,gt,ge"),
    ("cmpu", "eq,ne,lt,le,gt,ge,lo,ls,hi,hs"),
    ("cmpf", "eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan"),
    ("shared", "shared,shared::cta,shared::cluster"),
    ("common", "global,shared,shared::cta,shared::cluster"),
    ("written", "global,shared,shared::cta,shared::cluster,local,param,param::func"),
    ("data", "global,shared,shared::cta,shared::cluster,local,const,param,param::entry,param::func"),
    ("evict1", "L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate"),
    ("evict2", "L2::evict_normal,L2::evict_first,L2::evict_last"),
    ("prefetch", "L2::64B,L2::128B,L2::256B"),
];

/// The words of one of [`SETS`].
pub(super) fn words_of_set(name: &str) -> Option<&'static str> {
    SETS.iter().find(|(set, _)| *set == name).map(|(_, words)| *words)
}

/// One place for a modifier.
#[derive(Debug)]
pub(crate) struct Slot {
    name: &'static str,
    words: Vec<&'static str>,
    optional: bool,
}

impl Slot {
    /// The name by which an expansion asks for its word.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The words that may stand there.
    pub fn words(&self) -> &[&'static str] {
        &self.words
    }

    /// Whether it may be left out.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Whether the word may stand there.
    pub fn has(&self, modifier: &str) -> bool {
        self.word(modifier).is_some()
    }

    /// The word, if it may stand there.
    fn word(&self, modifier: &str) -> Option<&'static str> {
        self.words.iter().copied().find(|word| *word == modifier)
    }
}

/// What an operand of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A value of the type.
    Value(TypeSpec),
    /// A predicate that may be negated.
    Condition,
    /// A number.
    Immediate,
    /// `[…]`
    Address,
    /// `[…, {…}]`: a tensor map and as many coordinates as the form says.
    Tensor,
    /// A label of the function.
    Label,
    /// A word or one part of it, possibly negated.
    Part { negative: bool },
    /// A word or a choice of this many parts.
    Lanes(u8),
    /// A `.branchtargets`.
    TargetList,
    /// A variable or function, as an address.
    Symbol,
    /// A vector of two or four elements that together have the type's width.
    Parts(TypeSpec),
    /// A vector of as many registers as the form says.
    Fragment(TypeSpec),
    /// The same, or a register that is such a vector.
    Tuple(TypeSpec),
    /// `[object]`
    Object,
    /// `[object, coordinates]`, with a sampler between them if that is allowed.
    Image { sampler: bool },
    /// Any number of operands of any kind.
    Rest,
}

/// The type of an operand in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeSpec {
    Fixed(Ty),
    Slot(&'static str),
    Doubled(&'static str),
}

/// One operand of an entry.
#[derive(Debug)]
pub(crate) struct OperandSpec {
    pub name: &'static str,
    pub written: bool,
    pub optional: bool,
    pub sink: bool,
    pub wider: bool,
    pub vector: bool,
    pub shape: Shape,
    /// The second of a pair.
    pub second: Option<Box<OperandSpec>>,
}

/// An entry of the table, read.
#[derive(Debug)]
pub(crate) struct Syntax {
    pub opcode: &'static str,
    pub slots: Vec<Slot>,
    pub operands: Vec<OperandSpec>,
}

/// The words an instruction chose, slot by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    words: Vec<(&'static str, &'static str)>,
}

impl Chosen {
    /// These words in their places.
    pub fn of(words: impl Iterator<Item = (&'static str, &'static str)>) -> Chosen {
        Chosen { words: words.collect() }
    }

    /// The word of a choice, if the instruction has one.
    pub fn word(&self, slot: &str) -> Option<&'static str> {
        self.words.iter().find(|(name, _)| *name == slot).map(|(_, word)| *word)
    }

    /// Whether the instruction has this modifier, in whatever place.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|(_, w)| *w == word)
    }

    /// Every word chosen, in order of the places.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.words.iter().map(|(_, word)| *word)
    }

    /// The type in a slot.
    pub fn ty(&self, slot: &str) -> Option<Ty> {
        Ty::from_name(self.word(slot)?)
    }

    /// The type of an operand.
    pub fn resolve(&self, spec: TypeSpec) -> Option<Ty> {
        match spec {
            TypeSpec::Fixed(ty) => Some(ty),
            TypeSpec::Slot(slot) => self.ty(slot),
            TypeSpec::Doubled(slot) => self.ty(slot)?.doubled(),
        }
    }

    /// Elements of a vector access: the choice `vec`.
    pub fn lanes(&self) -> usize {
        match self.word("vec") {
            Some("v2") => 2,
            Some("v4") => 4,
            Some("v8") => 8,
            _ => 1,
        }
    }
}

impl Syntax {
    /// The opcode of an entry.
    pub fn opcode_of(text: &'static str) -> &'static str {
        text.split(['.', ' ']).next().unwrap_or(text)
    }

    /// Reads an entry; `Err` says what is wrong with the entry itself.
    pub fn parse(text: &'static str) -> Result<Syntax, String> {
        let (head, operands) = text.split_once(' ').unwrap_or((text, ""));
        let (opcode, modifiers) = head.split_once('.').unwrap_or((head, ""));
        let mut slots = Vec::new();
        for slot in split_outside_braces(modifiers, '.') {
            slots.push(parse_slot(slot)?);
        }
        let mut parsed = Vec::new();
        for operand in operands.split(',').map(str::trim).filter(|o| !o.is_empty()) {
            parsed.push(parse_operand(operand, &slots)?);
        }
        Ok(Syntax { opcode, slots, operands: parsed })
    }

    /// Matches modifiers in order.
    pub fn choose<'m>(&self, modifiers: impl Iterator<Item = &'m str>) -> Option<Chosen> {
        let mut chosen = Chosen::default();
        let mut slots = self.slots.iter();
        'modifiers: for modifier in modifiers {
            for slot in slots.by_ref() {
                if let Some(word) = slot.word(modifier) {
                    chosen.words.push((slot.name, word));
                    continue 'modifiers;
                }
                if !slot.optional {
                    return None;
                }
            }
            return None;
        }
        slots.all(|slot| slot.optional).then_some(chosen)
    }

    /// Matches modifiers whatever their order, but for types, and state spaces, among themselves, and what is rather a part of the opcode.
    pub fn choose_in_any_order<'m>(&self, modifiers: impl Iterator<Item = &'m str>) -> Option<Chosen> {
        let mut chosen: Vec<Option<&'static str>> = vec![None; self.slots.len()];
        let (mut next_type, mut next_space, mut parts) = (0, 0, 0);
        for (at, modifier) in modifiers.enumerate() {
            let is_type = Ty::from_name(modifier).is_some() || is_narrow_type(modifier);
            let is_space = is_space(modifier);
            let first = match (is_type, is_space) {
                (true, _) => next_type,
                (_, true) => next_space,
                _ => 0,
            };
            let free = (first..self.slots.len()).filter(|slot| chosen[*slot].is_none());
            let found = free.filter_map(|slot| Some((slot, self.slots[slot].word(modifier)?))).next();
            let Some((slot, word)) = found else {
                if TWICE.contains(&modifier) && chosen.contains(&Some(modifier)) {
                    continue;
                }
                return None;
            };
            if is_part_of_opcode(self.opcode, word) {
                if at != parts || chosen[slot..].iter().any(Option::is_some) {
                    return None;
                }
                parts += 1;
            }
            chosen[slot] = Some(word);
            if is_type {
                next_type = slot + 1;
            }
            if is_space {
                next_space = slot + 1;
            }
        }
        let complete = self.slots.iter().zip(&chosen).all(|(slot, word)| slot.optional || word.is_some());
        let words =
            self.slots.iter().zip(chosen).filter_map(|(slot, word)| Some((slot.name, word?))).collect();
        complete.then_some(Chosen { words })
    }

    /// Operands that must be there, and that may be.
    pub fn operand_counts(&self) -> (usize, usize) {
        let required = self.operands.iter().filter(|o| !o.optional && o.shape != Shape::Rest).count();
        let rest = self.operands.iter().any(|o| o.shape == Shape::Rest);
        (required, if rest { usize::MAX } else { self.operands.len() })
    }

    /// Position of the operand, and whether it is the second of a pair there.
    pub fn position(&self, name: &str) -> Option<(usize, bool)> {
        self.operands.iter().enumerate().find_map(|(i, operand)| {
            let second = operand.second.as_ref().is_some_and(|s| s.name == name);
            (second || operand.name == name).then_some((i, second))
        })
    }

    /// The operand's entry.
    pub fn operand(&self, name: &str) -> Option<&OperandSpec> {
        let (index, second) = self.position(name)?;
        let operand = &self.operands[index];
        if second { operand.second.as_deref() } else { Some(operand) }
    }
}

/// Modifiers that may be said twice.
const TWICE: [&str; 8] = ["sat", "satfinite", "relu", "NaN", "cc", "uni", "sync", "approx"];

/// Whether the word follows the opcode wherever the other modifiers stand.
fn is_part_of_opcode(opcode: &str, word: &str) -> bool {
    match opcode {
        "mul" | "mad" | "madc" | "mul24" | "mad24" | "dp2a" => matches!(word, "lo" | "hi" | "wide"),
        "div" => word == "full",
        "cvt" => word == "pack",
        "cvta" => word == "to",
        "createpolicy" => matches!(word, "fractional" | "range" | "cvt"),
        "pmevent" => word == "mask",
        "fence" | "membar" => word == "proxy",
        "bar" | "barrier" => matches!(word, "cta" | "cluster" | "warp" | "arrive" | "wait" | "red"),
        "multimem" => matches!(word, "ld_reduce" | "st" | "red"),
        "mbarrier" => {
            matches!(
                word,
                "init"
                    | "inval"
                    | "arrive"
                    | "arrive_drop"
                    | "expect_tx"
                    | "complete_tx"
                    | "test_wait"
                    | "try_wait"
                    | "parity"
                    | "pending_count"
            )
        }
        "wmma" => matches!(word, "load" | "store" | "mma" | "a" | "b" | "c" | "d"),
        "wgmma" => matches!(word, "fence" | "commit_group" | "wait_group" | "mma_async"),
        "tensormap" => matches!(word, "replace" | "cp_fenceproxy"),
        "shf" => matches!(word, "l" | "r"),
        "tex" => matches!(word, "base" | "level" | "grad"),
        "txq" => word == "level",
        "suld" | "sust" | "sured" => matches!(word, "b" | "p"),
        "brx" => word == "idx",
        "setmaxnreg" => matches!(word, "inc" | "dec"),
        "st" | "red" => word == "async",
        "cp" => matches!(
            word,
            "async"
                | "reduce"
                | "bulk"
                | "tensor"
                | "prefetch"
                | "commit_group"
                | "wait_group"
                | "wait_all"
                | "mbarrier"
                | "arrive"
        ),
        _ => false,
    }
}

/// Whether the modifier names a state space: of two, the order tells which is which.
fn is_space(modifier: &str) -> bool {
    let space = modifier.split_once("::").map_or(modifier, |(space, _)| space);
    matches!(space, "global" | "shared" | "local" | "const" | "param")
}

fn split_outside_braces(text: &'static str, at: char) -> Vec<&'static str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            c if c == at && depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    parts
}

fn parse_slot(text: &'static str) -> Result<Slot, String> {
    let (text, optional) = text.strip_suffix('?').map_or((text, false), |t| (t, true));
    let Some((name, list)) = text.split_once('{') else {
        return Ok(Slot { name: text, words: vec![text], optional });
    };
    let list = list.strip_suffix('}').ok_or_else(|| format!("'{text}' lacks a brace"))?;
    let mut words = Vec::new();
    for word in list.split(',') {
        match word.strip_prefix('$') {
            Some(set) => {
                let found = words_of_set(set).ok_or_else(|| format!("no set '{set}'"))?;
                words.extend(found.split(','));
            }
            None => words.push(word),
        }
    }
    Ok(Slot { name, words, optional })
}

fn parse_operand(text: &'static str, slots: &[Slot]) -> Result<OperandSpec, String> {
    if text == "..." {
        return Ok(OperandSpec {
            name: text,
            written: false,
            optional: true,
            sink: false,
            wider: false,
            vector: false,
            shape: Shape::Rest,
            second: None,
        });
    }
    let (text, second) = match text.split_once('|') {
        Some((first, second)) => (first, Some(Box::new(parse_operand(second, slots)?))),
        None => (text, None),
    };
    let at = text.find(['=', ':']).ok_or_else(|| format!("operand '{text}' has no kind"))?;
    let written = text.as_bytes()[at] == b'=';
    let name = text[..at].trim_end_matches(['?', '_']);
    let (optional, sink) = (text[..at].contains('?'), text[..at].contains('_'));
    let kind = &text[at + 1..];
    let (kind, vector) = kind.strip_suffix('*').map_or((kind, false), |k| (k, true));
    let (kind, wider) = kind.strip_suffix('+').map_or((kind, false), |k| (k, true));
    let (kind, fragment) = kind.strip_suffix('#').map_or((kind, false), |k| (k, true));
    let (kind, tuple) = kind.strip_suffix('%').map_or((kind, false), |k| (k, true));
    let (kind, parts) = kind.strip_suffix('/').map_or((kind, false), |k| (k, true));
    let is_slot = |name: &str| slots.iter().any(|slot| slot.name == name);
    let ty = match (Ty::from_name(kind), kind.strip_prefix('2')) {
        (Some(ty), _) => Some(TypeSpec::Fixed(ty)),
        (None, Some(slot)) if is_slot(slot) => Some(TypeSpec::Doubled(slot)),
        (None, _) if is_slot(kind) => Some(TypeSpec::Slot(kind)),
        _ => None,
    };
    let shape = match (kind, ty) {
        ("imm", _) => Shape::Immediate,
        ("address", _) => Shape::Address,
        ("tensor", _) => Shape::Tensor,
        ("label", _) => Shape::Label,
        ("part", _) => Shape::Part { negative: false },
        ("-part", _) => Shape::Part { negative: true },
        ("lanes2", _) => Shape::Lanes(2),
        ("lanes4", _) => Shape::Lanes(4),
        ("list", _) => Shape::TargetList,
        ("symbol", _) => Shape::Symbol,
        ("pred!", _) => Shape::Condition,
        ("object", _) => Shape::Object,
        ("image", _) => Shape::Image { sampler: true },
        ("surface", _) => Shape::Image { sampler: false },
        (_, Some(ty)) if parts => Shape::Parts(ty),
        (_, Some(ty)) if fragment => Shape::Fragment(ty),
        (_, Some(ty)) if tuple => Shape::Tuple(ty),
        (_, Some(ty)) => Shape::Value(ty),
        _ => return Err(format!("operand '{text}' has an unknown kind")),
    };
    Ok(OperandSpec { name, written, optional, sink, wider, vector, shape, second })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_matches_in_order() {
        let syntax = Syntax::parse("add.rnd{$rnd}?.ftz?.T{f32,f64} d=T, a:T, b:T").unwrap();
        let chosen = syntax.choose(["rz", "f32"].into_iter()).unwrap();
        assert_eq!(
            (chosen.word("rnd"), chosen.has("ftz"), chosen.ty("T")),
            (Some("rz"), false, Some(Ty::F32))
        );
        assert!(syntax.choose(["ftz", "rz", "f32"].into_iter()).is_none());
        assert!(syntax.choose(["rz"].into_iter()).is_none());
        assert_eq!(syntax.operand_counts(), (3, 3));
    }

    #[test]
    fn pairs_and_optional_operands() {
        let syntax = Syntax::parse("shfl.mode{up,down}.b32 d=b32|p?=pred, a:b32, b:b32, c?:b32").unwrap();
        assert_eq!(syntax.position("p"), Some((0, true)));
        assert_eq!(syntax.operand_counts(), (3, 4));
        assert!(syntax.operand("p").unwrap().optional);
    }
}
