//! Instructions made from the table: each row in each of its modifiers, for tests that hold the back ends against each other.
//!
//! Sources are `%p0`, `%b0` (8 bits), `%h0` (16), `%r0` (32), `%d0` (64), `%q0` (128) and the registers after them, results `%p16`, `%h16` and so
//! on. Memory is at `[%d40]`, at `[%r40]` (and `[%d41]`, a generic address) in shared memory, and in the variables `memory`, `shared_memory`,
//! `local_memory`, `constant` and `parameter`.

use super::syntax::{Chosen, OperandSpec, Shape, Slot, Syntax};
use super::{FAMILIES, Form, TABLE, Ty};

/// An instruction, complete but for the declarations of what it names.
#[derive(Clone, Debug)]
pub struct Example {
    /// Its place in [`rows`](super::rows).
    pub row: usize,
    /// The first architecture that has the row.
    pub sm: u32,
    /// Its modifiers.
    pub words: Vec<&'static str>,
    /// The instruction with its semicolon.
    pub text: String,
    /// The registers that it writes.
    pub results: Vec<String>,
    /// Its address operand, if it has one.
    pub address: Option<String>,
}

/// Families whose instructions need more around them than registers and some memory.
const OTHERS: &[&str] = &[
    "Stack",
    "Asynchronous copies",
    "Bulk copies and tensor maps",
    "Barriers in memory",
    "Barriers of blocks and warps",
    "Clusters",
    "Control flow",
    "Matrices in memory",
    "Products of warpgroups",
];

/// The architecture of the device.
pub const DEVICE: u32 = 90;

/// Choices of the other modifiers that are tried to find one that a modifier goes with.
const TRIES: usize = 5000;

/// For each modifier of each row an instruction that has it, and for each row one with as few as can be.
pub fn examples() -> Vec<Example> {
    let families = FAMILIES.iter().flat_map(|(family, forms)| forms.iter().map(move |form| (*family, form)));
    families
        .enumerate()
        .filter(|(_, (family, form))| !OTHERS.contains(family) && form.until.is_none())
        .flat_map(|(row, (_, form))| of_form(row, form))
        .collect()
}

/// The instruction of a row with these words in its places, if they go together and its operands are registers and addresses.
pub fn example(row: usize, words: &[Option<&'static str>]) -> Option<Example> {
    let form = FAMILIES.iter().flat_map(|(_, forms)| forms.iter()).nth(row)?;
    let syntax = &TABLE.of(form).syntax;
    let chosen = Chosen::of(
        syntax.slots.iter().zip(words).filter_map(|(slot, word)| word.map(|word| (slot.name(), word))),
    );
    (form.legal)(&chosen).is_ok().then(|| write(row, form, syntax, &chosen))?
}

fn of_form(row: usize, form: &'static Form) -> Vec<Example> {
    let syntax = &TABLE.of(form).syntax;
    let mut found: Vec<Example> = Vec::new();
    for (place, slot) in syntax.slots.iter().enumerate() {
        for word in slot.words() {
            if found.iter().all(|example| !example.words.contains(word)) {
                found.extend(with(row, form, syntax, place, word));
            }
        }
    }
    if syntax.slots.is_empty() {
        found.extend(write(row, form, syntax, &Chosen::default()));
    }
    found
}

/// An instruction with one modifier in its place.
fn with(
    row: usize,
    form: &'static Form,
    syntax: &'static Syntax,
    place: usize,
    word: &'static str,
) -> Option<Example> {
    // What each place may hold: nothing first, if it may be left out.
    let choices: Vec<Vec<Option<&'static str>>> = syntax
        .slots
        .iter()
        .enumerate()
        .map(|(at, slot)| if at == place { vec![Some(word)] } else { choices(slot) })
        .collect();
    let all: usize = choices.iter().fold(1, |product, choice| product.saturating_mul(choice.len()));
    (0..all.min(TRIES)).find_map(|mut number| {
        let chosen = Chosen::of(syntax.slots.iter().zip(&choices).filter_map(|(slot, choice)| {
            let word = choice[number % choice.len()];
            number /= choice.len();
            Some((slot.name(), word?))
        }));
        let legal = (form.legal)(&chosen).is_ok();
        legal.then(|| write(row, form, syntax, &chosen))?
    })
}

fn choices(slot: &Slot) -> Vec<Option<&'static str>> {
    let nothing = slot.is_optional().then_some(None);
    nothing.into_iter().chain(slot.words().iter().map(|word| Some(*word))).collect()
}

/// The instruction's text; nothing if it has an operand that is none of the registers and the memory.
fn write(row: usize, form: &Form, syntax: &Syntax, chosen: &Chosen) -> Option<Example> {
    let mut writer =
        Writer { form, chosen, opcode: syntax.opcode, taken: 0, results: Vec::new(), address: None };
    let mut operands = Vec::new();
    for spec in &syntax.operands {
        let mut text = writer.operand(spec)?;
        if let Some(second) = &spec.second {
            text = format!("{text}|{}", writer.operand(second)?);
        }
        // What may be left out is left out, but for the policy that a modifier asks for.
        let wanted = !spec.optional || spec.name == "policy" && chosen.has("L2::cache_hint");
        if !wanted {
            break;
        }
        operands.push(text);
    }
    let words: Vec<&'static str> = chosen.all().collect();
    let modifiers: String = words.iter().map(|word| format!(".{word}")).collect();
    Some(Example {
        row,
        sm: form.sm,
        text: format!("{}{modifiers} {};", syntax.opcode, operands.join(", ")),
        words,
        results: writer.results,
        address: writer.address,
    })
}

struct Writer<'c> {
    form: &'c Form,
    chosen: &'c Chosen,
    opcode: &'c str,
    taken: usize,
    results: Vec<String>,
    address: Option<String>,
}

impl Writer<'_> {
    fn operand(&mut self, spec: &OperandSpec) -> Option<String> {
        Some(match spec.shape {
            Shape::Value(ty) if spec.vector && self.chosen.word("vec").is_some() => {
                let ty = self.chosen.resolve(ty)?;
                let count = self.chosen.lanes();
                self.vector(spec, ty, count)
            }
            Shape::Value(ty) => {
                let ty = self.chosen.resolve(ty)?;
                self.register(spec, ty)
            }
            Shape::Parts(ty) => {
                let part = match self.chosen.resolve(ty)?.bits() {
                    16 => Ty::B8,
                    32 => Ty::B16,
                    64 => Ty::B32,
                    _ => Ty::B64,
                };
                self.vector(spec, part, 2)
            }
            Shape::Condition => self.register(spec, Ty::Pred),
            Shape::Part { .. } | Shape::Lanes(_) => self.register(spec, Ty::B32),
            Shape::Immediate => match self.opcode {
                "applypriority" | "discard" => "128",
                "setmaxnreg" => "40",
                // Which threads of a warp have the metadata of a sparse matrix.
                "mma" => "0",
                _ => "3",
            }
            .to_owned(),
            Shape::Address => {
                let address = match self.chosen.word("space") {
                    Some("shared" | "shared::cta" | "shared::cluster") => "[%r40]",
                    Some("local") => "[local_memory]",
                    Some("const") => "[constant]",
                    // Those of a kernel are not written, and those of a call are no memory.
                    Some("param") if self.opcode == "st" => return None,
                    Some("param::func") => return None,
                    Some("param" | "param::entry") => "[parameter]",
                    // Matrices lie in shared memory, whatever the address.
                    _ if matches!(self.opcode, "ldmatrix" | "stmatrix") => "[%d41]",
                    _ => "[%d40]",
                };
                self.address = Some(address.to_owned());
                address.to_owned()
            }
            Shape::Fragment(ty) => {
                let (ty, count) = (self.chosen.resolve(ty)?, (self.form.registers)(self.chosen, spec.name));
                self.vector(spec, ty, count)
            }
            Shape::Symbol => match self.chosen.word("space") {
                Some("const") => "constant",
                Some("local") => "local_memory",
                Some("param" | "param::entry") => "parameter",
                Some(space) if space.starts_with("shared") => "shared_memory",
                _ if matches!(self.opcode, "mapa" | "getctarank") => "shared_memory",
                // Addresses in .global have 64 bits.
                _ if self.chosen.ty("T").is_some_and(|ty| ty.bits() == 32) => "shared_memory",
                _ => "memory",
            }
            .to_owned(),
            // Labels, tensors and the like: nothing that registers and memory give.
            _ => return None,
        })
    }

    fn vector(&mut self, spec: &OperandSpec, ty: Ty, count: usize) -> String {
        let registers: Vec<String> = (0..count).map(|_| self.register(spec, ty)).collect();
        format!("{{{}}}", registers.join(", "))
    }

    fn register(&mut self, spec: &OperandSpec, ty: Ty) -> String {
        // The participants of an operation among lanes are all of them.
        if spec.name == "mask" {
            return "0xffffffff".to_owned();
        }
        let class = match ty.bits() {
            1 => "p",
            8 if !spec.wider => "b",
            8 | 16 => "h",
            32 => "r",
            64 => "d",
            _ => "q",
        };
        self.taken += 1;
        if !spec.written {
            return format!("%{class}{}", self.taken - 1);
        }
        let register = format!("%{class}{}", 16 + self.results.len());
        self.results.push(register.clone());
        register
    }
}
