//! Random instructions, from the synopses of the instruction table.
//!
//! Any combination of modifiers that a synopsis allows is tried; what the front end refuses is drawn again, so that what is legal is
//! said in one place.

use std::collections::HashMap;

use super::Random;

/// Opcodes whose instructions do more than compute from their operands, or compute from what differs from run to run.
const OTHERWISE: &[&str] = &[
    "activemask",
    "addc",
    "alloca",
    "applypriority",
    "bar",
    "barrier",
    "bra",
    "brkpt",
    "brx",
    "call",
    "clusterlaunchcontrol",
    "createpolicy",
    "cvta",
    "discard",
    "elect",
    "exit",
    "fence",
    "getctarank",
    "griddepcontrol",
    "isspacep",
    "istypep",
    "ldmatrix",
    "madc",
    "mapa",
    "match",
    "mbarrier",
    "membar",
    "mma",
    "movmatrix",
    "nanosleep",
    "pmevent",
    "prefetch",
    "prefetchu",
    "redux",
    "ret",
    "setmaxnreg",
    "shfl",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "subc",
    "trap",
    "vote",
    "wgmma",
    "wmma",
];

/// An operand of a synopsis.
struct Operand {
    written: bool,
    optional: bool,
    kind: Kind,
    second: Option<Box<Operand>>,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A type by name, or the choice of one, and whether twice as wide.
    Value {
        ty: &'static str,
        doubled: bool,
    },
    Condition,
    Immediate,
}

/// A place for a modifier.
struct Slot {
    name: &'static str,
    words: Vec<&'static str>,
    optional: bool,
}

struct Synopsis {
    opcode: &'static str,
    slots: Vec<Slot>,
    operands: Vec<Operand>,
}

/// The instructions that compute.
pub struct Table {
    synopses: Vec<Synopsis>,
    /// Whether an instruction with these modifiers and kinds of operands is legal, once it was asked.
    known: HashMap<String, bool>,
}

/// Names of registers by width: 1 for predicates, 16, 32, 64.
pub fn register(bits: u32, index: usize) -> String {
    let prefix = match bits {
        1 => "p",
        16 => "h",
        32 => "r",
        _ => "d",
    };
    format!("%{prefix}{index}")
}

/// Registers of each width that instructions read and write.
pub const REGISTERS: [(u32, usize); 4] = [(1, 4), (16, 8), (32, 8), (64, 6)];

/// A random register of a width.
pub fn any_register(random: &mut Random, bits: u32) -> String {
    let count = REGISTERS.iter().find(|(width, _)| *width == bits).map_or(1, |(_, count)| *count);
    register(bits, random.below(count))
}

impl Default for Table {
    fn default() -> Table {
        let synopses = ptx::isa::synopses().into_iter().filter_map(Synopsis::parse).collect();
        Table { synopses, known: HashMap::new() }
    }
}

impl Table {
    /// A random instruction that the front end accepts, without a guard.
    pub fn instruction(&mut self, random: &mut Random) -> String {
        loop {
            let synopsis = &self.synopses[random.below(self.synopses.len())];
            let Some((variant, text)) = synopsis.draw(random) else { continue };
            let has_numbers = variant.contains('#');
            // Another number may be refused, or taken where this one is not: some are out of range.
            let legal = match has_numbers {
                true => is_legal(&text),
                false => *self.known.entry(variant).or_insert_with(|| is_legal(&text)),
            };
            if legal {
                return one_nan(text);
            }
        }
    }

    /// How many synopses there are to draw from.
    pub fn len(&self) -> usize {
        self.synopses.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.synopses.is_empty()
    }
}

/// Whether it is for the processor to say which of several operands' NaNs compiled code gives: it goes by an order of operands that compilers
/// may change.
pub fn leaves_nan_open(instruction: &str) -> bool {
    let head = instruction.split(' ').next().unwrap_or_default();
    let opcode = head.split('.').next().unwrap_or(head);
    head.ends_with(".f64") && ["add", "sub", "mul", "fma", "mad"].contains(&opcode)
}

/// Before an instruction that leaves it open, its operands' NaNs are made one.
fn one_nan(instruction: String) -> String {
    if !leaves_nan_open(&instruction) {
        return instruction;
    }
    let (_, operands) = instruction.split_once(' ').unwrap_or((&instruction, ""));
    let mut lines = String::new();
    for operand in
        operands.trim_end_matches(';').split(", ").skip(1).filter(|operand| operand.starts_with('%'))
    {
        lines += &format!("testp.notanumber.f64 %q1, {operand};\n\t");
        lines += &format!("selp.b64 {operand}, 0x7ff8000000000000, {operand}, %q1;\n\t");
    }
    lines + &instruction
}

pub(super) fn is_legal(instruction: &str) -> bool {
    let registers: String = REGISTERS
        .iter()
        .map(|(bits, count)| {
            let ty = if *bits == 1 { "pred".to_string() } else { format!("b{bits}") };
            let name = register(*bits, 0);
            format!(".reg .{ty} {}<{count}>;\n", &name[..name.len() - 1])
        })
        .collect();
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n{registers}{instruction}\nret;\n}}\n"
    );
    ptx::parse(&text).is_ok_and(|module| ptx::lower::check(&text, &module).is_ok())
}

impl Synopsis {
    /// Reads a synopsis, if its operands are registers and numbers and it does nothing but compute.
    fn parse(text: &'static str) -> Option<Synopsis> {
        let (head, operands) = text.split_once(' ')?;
        let (opcode, modifiers) = head.split_once('.').unwrap_or((head, ""));
        if OTHERWISE.contains(&opcode) {
            return None;
        }
        let slots: Vec<Slot> =
            split_outside_braces(modifiers).into_iter().map(Slot::parse).collect::<Option<_>>()?;
        // The carry goes from one instruction to the next.
        if slots.iter().any(|slot| slot.words.contains(&"cc") || slot.words.contains(&"volatile")) {
            return None;
        }
        let operands: Vec<Operand> = operands
            .split(',')
            .map(str::trim)
            .map(|operand| Operand::parse(operand, &slots))
            .collect::<Option<_>>()?;
        operands.iter().any(|operand| operand.written).then_some(Synopsis { opcode, slots, operands })
    }

    /// A random choice of modifiers and operands: what of it decides whether it is legal, and the text.
    fn draw(&self, random: &mut Random) -> Option<(String, String)> {
        let mut chosen: Vec<(&str, &str)> = Vec::new();
        let mut text = self.opcode.to_string();
        for slot in &self.slots {
            if slot.optional && random.chance(60) {
                continue;
            }
            let word = *random.pick(&slot.words);
            chosen.push((slot.name, word));
            text += &format!(".{word}");
        }
        let (mut variant, mut rendered) = (text.clone(), Vec::new());
        for operand in &self.operands {
            if operand.optional && random.chance(50) {
                break;
            }
            let mut one = operand.draw(random, &chosen, &mut variant)?;
            if let Some(second) = operand.second.as_ref().filter(|_| random.chance(50)) {
                variant.push('|');
                one += &format!("|{}", second.draw(random, &chosen, &mut variant)?);
            }
            rendered.push(one);
        }
        Some((variant, format!("{text} {};", rendered.join(", "))))
    }
}

impl Slot {
    fn parse(text: &'static str) -> Option<Slot> {
        let (text, optional) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
        let Some((name, list)) = text.split_once('{') else {
            return Some(Slot { name: text, words: vec![text], optional });
        };
        let mut words = Vec::new();
        for word in list.strip_suffix('}')?.split(',') {
            match word.strip_prefix('$') {
                Some(set) => words.extend(ptx::isa::words_of_set(set)?.split(',')),
                None => words.push(word),
            }
        }
        Some(Slot { name, words, optional })
    }
}

impl Operand {
    fn parse(text: &'static str, slots: &[Slot]) -> Option<Operand> {
        let (text, second) = match text.split_once('|') {
            Some((first, second)) => (first, Some(Box::new(Operand::parse(second, slots)?))),
            None => (text, None),
        };
        let at = text.find(['=', ':'])?;
        let kind = text[at + 1..].trim_end_matches('+');
        let is_slot = |name: &str| slots.iter().any(|slot| slot.name == name);
        let kind = match kind {
            "pred!" => Kind::Condition,
            "imm" => Kind::Immediate,
            "part" | "-part" | "lanes2" | "lanes4" => Kind::Value { ty: "b32", doubled: false },
            _ => match kind.strip_prefix('2') {
                Some(slot) if is_slot(slot) => Kind::Value { ty: slot, doubled: true },
                _ if is_slot(kind) || width(kind).is_some() => Kind::Value { ty: kind, doubled: false },
                _ => return None,
            },
        };
        Some(Operand {
            written: text.as_bytes()[at] == b'=',
            optional: text[..at].contains('?'),
            kind,
            second,
        })
    }

    fn draw(&self, random: &mut Random, chosen: &[(&str, &str)], variant: &mut String) -> Option<String> {
        let (ty, doubled) = match self.kind {
            Kind::Condition => {
                let negated = if random.chance(30) { "!" } else { "" };
                return Some(format!("{negated}{}", any_register(random, 1)));
            }
            Kind::Immediate => {
                variant.push('#');
                return Some(random.below(256).to_string());
            }
            Kind::Value { ty, doubled } => {
                (chosen.iter().find(|(name, _)| *name == ty).map_or(ty, |(_, word)| *word), doubled)
            }
        };
        let bits = width(ty)? * if doubled { 2 } else { 1 };
        let integer = ty.starts_with(['b', 'u', 's']) && !ty.contains('x') && !ty.starts_with("bf");
        if !self.written && integer && bits > 1 && random.chance(15) {
            variant.push('#');
            let bits = bits.min(32);
            let value = match random.below(4) {
                0 => random.bits() & 0xff,
                1 => 1 << random.below(bits as usize),
                2 => (1u64 << (bits - 1)) - 1,
                _ => random.bits() & ((1 << bits) - 1) >> 1,
            };
            return Some(value.to_string());
        }
        variant.push(' ');
        (bits <= 64).then(|| any_register(random, bits.max(if bits == 1 { 1 } else { 16 })))
    }
}

/// Bits of a type by name.
fn width(ty: &str) -> Option<u32> {
    if ty == "pred" {
        return Some(1);
    }
    if ty == "tf32" {
        return Some(32);
    }
    if ty.starts_with("e4m3") || ty.starts_with("e5m2") {
        return Some(if ty.ends_with("x2") { 16 } else { 8 });
    }
    let digits = ty.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let is_type = ["b", "u", "s", "f", "bf"].contains(&&ty[..ty.len() - digits.len()]);
    let (each, count) = digits.split_once('x').unwrap_or((digits, "1"));
    let bits = each.parse::<u32>().ok()? * count.parse::<u32>().ok()?;
    (is_type && bits <= 128).then_some(bits)
}

fn split_outside_braces(text: &'static str) -> Vec<&'static str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            '.' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_what_computes_is_drawn() {
        let mut table = Table::default();
        assert!(table.len() > 100, "only {} synopses are understood", table.len());
        let mut random = Random::new(1);
        let mut opcodes: Vec<String> = (0..3000)
            .map(|_| table.instruction(&mut random).split('.').next().unwrap_or_default().to_string())
            .collect();
        opcodes.sort();
        opcodes.dedup();
        assert!(opcodes.len() > 50, "only {opcodes:?}");
    }
}
