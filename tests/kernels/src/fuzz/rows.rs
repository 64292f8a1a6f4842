//! Random instructions of chosen rows of the instruction table, with their modifiers and vectors as the rows have them, and with registers
//! and addresses that the kernel gives them.

use std::collections::HashMap;
use std::fmt::Write;

use ptx::isa::{Example, Place, Row};

use super::Random;
use super::table::{REGISTERS, any_register, register};

/// Instructions that are drawn until one fits, at most.
const TRIES: usize = 200;

/// Rows of the table.
pub struct Rows {
    /// Their numbers, in groups of one opcode.
    rows: Vec<Vec<(usize, Row)>>,
    /// Whether an instruction with these modifiers is legal, once it was asked.
    known: HashMap<String, bool>,
}

/// Where an instruction finds memory: a generic or global address in a register, and one in shared memory.
#[derive(Clone, Copy)]
pub struct Addresses<'a> {
    /// For instructions that say no space, or global memory.
    pub place: &'a str,
    /// For those that say shared memory.
    pub shared: &'a str,
}

impl Rows {
    /// The rows that this holds for.
    pub fn of(wanted: impl Fn(&Row) -> bool) -> Rows {
        let rows = ptx::isa::rows().into_iter().enumerate();
        let is_here = |row: &Row| row.sm <= ptx::isa::DEVICE && row.until.is_none();
        let mut groups: Vec<Vec<(usize, Row)>> = Vec::new();
        for (number, row) in rows.filter(|(_, row)| is_here(row) && wanted(row)) {
            match groups.iter_mut().find(|group| group[0].1.opcode == row.opcode) {
                Some(group) => group.push((number, row)),
                None => groups.push(vec![(number, row)]),
            }
        }
        Rows { rows: groups, known: HashMap::new() }
    }

    /// A random instruction for which this holds.
    pub fn draw(&mut self, r: &mut Random, wanted: impl Fn(&Example) -> bool) -> Option<Example> {
        (0..TRIES).find_map(|_| {
            let group = r.pick(&self.rows);
            let (number, row) = r.pick(group);
            let words: Vec<Option<&'static str>> = row.places.iter().map(|place| word(place, r)).collect();
            let example = ptx::isa::example(*number, &words)?;
            let head = example.text.split(' ').next().unwrap_or_default().to_owned();
            let legal = *self.known.entry(head).or_insert_with(|| is_legal(&example.text));
            (legal && wanted(&example)).then_some(example)
        })
    }
}

/// Whether the front end takes an example.
fn is_legal(instruction: &str) -> bool {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred %p<48>;\n.reg .b8 %b<48>;\n.reg .b16 %h<48>;\n\
         .reg .b32 %r<48>;\n.reg .b64 %d<48>;\n.reg .b128 %q<48>;\n{instruction}\nret;\n}}\n"
    );
    ptx::parse(&text).is_ok_and(|module| ptx::lower::check(&text, &module).is_ok())
}

/// One of the words that may stand at a place, or none.
pub fn word(place: &Place, r: &mut Random) -> Option<&'static str> {
    (!place.optional || r.chance(40)).then(|| *r.pick(&place.words))
}

/// The instruction with registers of the kernel's: any as sources, different ones as results. Nothing if there are too few.
pub fn bound(example: &Example, r: &mut Random, addresses: Addresses<'_>, guard: &str) -> Option<String> {
    let mut names: HashMap<String, String> = HashMap::new();
    let mut taken: Vec<String> = Vec::new();
    let (mut text, mut before, mut after) = (String::new(), String::new(), String::new());
    let mut rest = example.text.as_str();
    while let Some(at) = rest.find('%') {
        text += &rest[..at];
        let end = rest[at + 2..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| at + 2 + end);
        let name = &rest[at..end];
        rest = &rest[end..];
        if !names.contains_key(name) {
            let is_result = example.results.iter().any(|result| result == name);
            let new = match name {
                "%d40" => addresses.place.to_owned(),
                "%d41" | "%r40" => addresses.shared.to_owned(),
                _ if name.starts_with("%q") => {
                    let new = format!("q{}", names.len());
                    let [low, high] = other_than(r, 64, &mut taken, is_result)?;
                    let _ = match is_result {
                        true => write!(after, "\n\t{guard}mov.b128 {{{low}, {high}}}, {new};"),
                        false => write!(before, "mov.b128 {new}, {{{low}, {high}}};\n\t"),
                    };
                    new
                }
                _ => {
                    let bits = match name.as_bytes()[1] {
                        b'p' => 1,
                        b'b' | b'h' => 16,
                        b'r' => 32,
                        _ => 64,
                    };
                    let [new] = other_than(r, bits, &mut taken, is_result)?;
                    new
                }
            };
            names.insert(name.to_owned(), new);
        }
        text += &names[name];
    }
    text += rest;
    match before.is_empty() && after.is_empty() {
        true => Some(format!("{guard}{text}")),
        false => Some(format!("{{\n\t.reg .b128 q<8>;\n\t{before}{guard}{text}{after}\n\t}}")),
    }
}

/// Puts another register in the place of one that an instruction ends with: the last operand, or one that is so many before it.
pub fn put_operand(instruction: &mut String, from_last: usize, register: &str) -> Option<()> {
    let end = instruction.rmatch_indices([',', ';']).nth(from_last)?.0;
    let start = instruction[..end].rfind(", ")? + 2;
    instruction.replace_range(start..end, register);
    Some(())
}

/// Registers; for results, others than those taken.
fn other_than<const N: usize>(
    r: &mut Random,
    bits: u32,
    taken: &mut Vec<String>,
    is_result: bool,
) -> Option<[String; N]> {
    let mut all = std::array::from_fn(|_| String::new());
    for one in &mut all {
        *one = any_register(r, bits);
        if is_result {
            let count = REGISTERS.iter().find(|(width, _)| *width == bits)?.1;
            let first = r.below(count);
            let mut free = (0..count).map(|at| register(bits, (first + at) % count));
            *one = free.find(|name| !taken.contains(name))?;
            taken.push(one.clone());
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::table;

    #[test]
    fn registers_are_the_kernels_and_results_differ() {
        let mut rows = Rows::of(|row| row.opcode == "mma");
        let mut r = Random::new(1);
        let addresses = Addresses { place: "place", shared: "near" };
        for _ in 0..200 {
            let example = rows.draw(&mut r, |_| true).expect("there are many");
            let Some(text) = bound(&example, &mut r, addresses, "") else { continue };
            assert!(table::is_legal(&text), "{text}");
            let (_, results) = text.split_once('{').expect("results are a vector");
            let mut results: Vec<&str> =
                results.split('}').next().expect("it ends").split(',').map(str::trim).collect();
            let count = results.len();
            results.sort_unstable();
            results.dedup();
            assert_eq!(results.len(), count, "{text}");
        }
    }
}
