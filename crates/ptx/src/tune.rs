//! What a program asks of the assembler for all kernels of a module, as directives of each.
//!
//! A limit that a kernel declares itself goes before what is asked from outside, unless that is to override it.

use crate::Errors;
use crate::ast::{Body, Directives, Function, Item};
use crate::parser::{Bodies, Options, parse_with};
use crate::target::Device;

/// What is asked of the assembler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Registers that a thread may use at most.
    pub registers: Option<u32>,
    /// Threads of a block for which the registers of a processor must do.
    pub threads: Option<u32>,
    /// Threads that no block has more of.
    pub max_threads: Option<u32>,
    /// Blocks that a processor should be able to hold.
    pub min_blocks: Option<u32>,
    /// The kernels' own directives give way.
    pub overrides: bool,
}

/// Registers of a processor.
const REGISTERS_PER_SM: u32 = 65536;
const MAX_THREADS_PER_SM: u32 = 2048;
const MAX_BLOCKS_PER_SM: u32 = 32;
/// The most registers that an instruction can name.
const MAX_REGISTERS: u32 = 255;

/// The registers that each of so many threads of a processor can have.
pub fn registers_for(threads: u64) -> u32 {
    let each = u64::from(REGISTERS_PER_SM) / threads.next_multiple_of(32).max(32);
    (each / 8 * 8).min(MAX_REGISTERS.into()) as u32
}

/// The registers that a kernel's directives leave each of its threads; more blocks than a processor holds count as none said.
pub fn registers_left(block: [u32; 3], min_blocks: Option<u32>) -> u32 {
    let threads = block.iter().fold(1_u64, |product, n| product.saturating_mul((*n).into()));
    registers_for(min_blocks.and_then(|blocks| resident(threads, blocks)).unwrap_or(threads))
}

/// The threads of so many blocks, if a processor holds them.
fn resident(threads: u64, blocks: u32) -> Option<u64> {
    let all = threads.saturating_mul(blocks.into());
    (blocks <= MAX_BLOCKS_PER_SM && all <= MAX_THREADS_PER_SM.into()).then_some(all)
}

/// The fewest registers that the assembler keeps to.
pub fn fewest_registers(sm: u32) -> u32 {
    if sm >= 90 { 24 } else { 16 }
}

/// The text with a rounding said for each product of floats that leaves it open: such a product is not fused with a sum.
pub fn products_kept(text: &str) -> String {
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    let mut out = String::with_capacity(text.len() + text.len() / 64);
    let mut rest = text;
    while let Some(at) = rest.find("mul.") {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !in_name(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        let mut parts = word.split('.');
        let is_rounded = parts.clone().any(|part| matches!(part, "rn" | "rz" | "rm" | "rp"));
        let is_float = matches!(parts.next_back(), Some("f16" | "f16x2" | "bf16" | "bf16x2" | "f32" | "f64"));
        out.push_str(before);
        if is_float && !is_rounded && !before.ends_with(in_name) {
            out.push_str("mul.rn");
            out.push_str(&word["mul".len()..]);
        } else {
            out.push_str(word);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

impl Tuning {
    /// Whether something is asked for.
    pub fn is_any(&self) -> bool {
        self.registers.or(self.threads).or(self.max_threads).or(self.min_blocks).is_some()
    }

    /// This where it asks for something, and otherwise what `other` asks for.
    pub fn or(self, other: Tuning) -> Tuning {
        Tuning {
            registers: self.registers.or(other.registers),
            threads: self.threads.or(other.threads),
            max_threads: self.max_threads.or(other.max_threads),
            min_blocks: self.min_blocks.or(other.min_blocks),
            overrides: self.overrides || other.overrides,
        }
    }
}

/// A module's text with what is asked for in it, and remarks about what cannot be done. Only declarations of kernels change, each
/// within the lines it has, so that errors and faults name the lines of the program's own text.
///
/// # Errors
/// As for [`parse_with`].
pub fn tune(text: &str, tuning: Tuning, device: Device) -> Result<(String, Vec<String>), Errors> {
    let module = parse_with(text, &Options { device: Some(device), bodies: Bodies::Skipped })?;
    let mut remarks = Vec::new();
    let (mut tuned, mut done) = (String::with_capacity(text.len()), 0);
    let registers = registers(tuning, device, &mut remarks);
    for item in module.items {
        let Item::Function(mut function) = item else { continue };
        if !function.is_entry || !function.is_defined() {
            continue;
        }
        match registers {
            Some(registers) => limit(&mut function.directives, registers, tuning.overrides),
            None => shape(&mut function, tuning, &mut remarks),
        }
        let (start, end) = (function.span.start as usize, function.span.end as usize);
        let lines = text[start..end].matches('\n').count();
        function.body = Body::Declared;
        let declaration = function.to_string().replace('\n', " ");
        tuned += &text[done..start];
        tuned += declaration.trim_end_matches(';');
        tuned.extend(std::iter::repeat_n('\n', lines));
        done = end;
    }
    Ok((tuned + &text[done..], remarks))
}

/// The limit of registers that was asked for, in one way or the other.
fn registers(tuning: Tuning, device: Device, remarks: &mut Vec<String>) -> Option<u32> {
    let asked = tuning.registers.filter(|asked| {
        let possible = *asked <= MAX_REGISTERS;
        if !possible {
            remarks.push(format!("a limit of {asked} registers is none, and is ignored"));
        }
        possible
    });
    let asked = asked.into_iter().chain(tuning.threads.map(|threads| registers_for(threads.into()))).min()?;
    let fewest = fewest_registers(device.sm);
    if asked < fewest {
        remarks.push(format!("a limit of {asked} registers is raised to {fewest}"));
    }
    if tuning.max_threads.or(tuning.min_blocks).is_some() {
        remarks.push("blocks and threads of a block are ignored beside a limit of registers".into());
    }
    Some(asked.max(fewest))
}

fn limit(directives: &mut Directives<'_>, registers: u32, overrides: bool) {
    let own = directives.maxntid.is_some()
        || directives.reqntid.is_some()
        || directives.minnctapersm.is_some()
        || directives.maxnreg.is_some();
    if overrides || !own {
        (directives.maxnreg, directives.minnctapersm) = (Some(registers), None);
    }
}

/// Sets the greatest block and the number of blocks.
fn shape(function: &mut Function<'_>, tuning: Tuning, remarks: &mut Vec<String>) {
    let (directives, name) = (&mut function.directives, function.name.text);
    // A limit that is none overrides the kernel's all the same.
    if tuning.overrides && tuning.registers.is_some() {
        (directives.maxnreg, directives.minnctapersm) = (None, None);
    }
    let is_declared = directives.maxntid.is_some() || directives.reqntid.is_some();
    if let Some(threads) = tuning.max_threads
        && (tuning.overrides || !is_declared)
    {
        if threads > MAX_THREADS_PER_SM {
            remarks.push(format!("{threads} threads of {name} do not fit a processor: ignored"));
        } else {
            (directives.maxntid, directives.reqntid) = (Some([threads, 1, 1]), None);
        }
    }
    let Some(block) = directives.reqntid.or(directives.maxntid) else { return };
    if let Some(blocks) = tuning.min_blocks
        && (tuning.overrides || directives.minnctapersm.is_none())
    {
        let threads = block.iter().fold(1_u64, |product, n| product.saturating_mul((*n).into()));
        if resident(threads, blocks).is_none() {
            remarks.push(format!("{blocks} blocks of {name} do not fit a processor: ignored"));
        } else {
            directives.minnctapersm = Some(blocks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    #[test]
    fn products_of_floats_get_a_rounding() {
        let text =
            "mul.f32 a,b,c; mul.ftz.sat.f32 a,b,c; mul.f16x2\td,e,f; mul.bf16 x,y,z; mul.rz.f64 p,q,r;\n";
        let kept = "mul.rn.f32 a,b,c; mul.rn.ftz.sat.f32 a,b,c; mul.rn.f16x2\td,e,f; mul.rn.bf16 x,y,z; mul.rz.f64 p,q,r;\n";
        assert_eq!(products_kept(text), kept);
        for other in
            ["mul.wide.u32 a,b,c;", "mul.lo.s32 a,b,c;", "call my_mul.f32;", ".reg .f32 %mul.f32;", ""]
        {
            assert_eq!(products_kept(other), other);
        }
    }

    /// The directives of a kernel with these, when something is asked for.
    fn tuned(directives: &str, tuning: Tuning) -> (String, usize) {
        let text = format!("{HEAD}.visible .entry k()\n{directives}\n{{\nret;\n}}\n");
        let (text, remarks) = tune(&text, tuning, Device::default()).unwrap();
        let head = text.split('{').next().unwrap();
        let after = &head[head.find(')').unwrap() + 1..];
        (after.split_whitespace().collect::<Vec<_>>().join(" "), remarks.len())
    }

    fn registers(registers: u32) -> Tuning {
        Tuning { registers: Some(registers), ..Tuning::default() }
    }

    #[test]
    fn registers_are_limited_where_the_kernel_says_nothing() {
        assert_eq!(tuned("", registers(32)), (".maxnreg 32".into(), 0));
        assert_eq!(tuned("", registers(8)), (".maxnreg 24".into(), 1));
        assert_eq!(tuned("", registers(300)), (String::new(), 1));
        assert_eq!(tuned(".maxnreg 40", registers(32)), (".maxnreg 40".into(), 0));
        assert_eq!(tuned(".maxnreg 40", Tuning { overrides: true, ..registers(32) }).0, ".maxnreg 32");
        let threads = Tuning { threads: Some(1000), ..Tuning::default() };
        assert_eq!(tuned("", threads).0, ".maxnreg 64");
        assert_eq!(tuned("", Tuning { registers: Some(32), ..threads }).0, ".maxnreg 32");
    }

    #[test]
    fn lines_stay_where_they_are() {
        let text = format!(
            "{HEAD}// one\n.visible .entry k( // two\n  .param .u64 p)\n  .maxntid 64 // three\n{{\n  ret;\n}}\n\
             .func f()\n{{\n  ret;\n}}\n.entry l()\n{{ ret; }}\n"
        );
        let (tuned, _) = tune(&text, Tuning { overrides: true, ..registers(32) }, Device::default()).unwrap();
        let place = |text: &str, what: &str| {
            text.lines()
                .enumerate()
                .filter(|(_, line)| line.contains(what))
                .map(|(at, _)| at)
                .collect::<Vec<_>>()
        };
        for what in ["ret;", ".func f", "// one", "{"] {
            assert_eq!(place(&tuned, what), place(&text, what), "{what} in {tuned}");
        }
        assert_eq!(tuned.matches(".maxnreg 32").count(), 2);
        assert!(parse_with(&tuned, &Options::default()).is_ok(), "{tuned}");
    }

    #[test]
    fn blocks_are_limited_where_the_kernel_says_nothing() {
        let four = Tuning { min_blocks: Some(4), ..Tuning::default() };
        let both = Tuning { max_threads: Some(128), ..four };
        assert_eq!(tuned("", four), (String::new(), 0));
        assert_eq!(tuned(".maxntid 256, 1, 1", four).0, ".maxntid 256, 1, 1 .minnctapersm 4");
        assert_eq!(tuned(".maxntid 1024, 1, 1", four), (".maxntid 1024, 1, 1".into(), 1));
        assert_eq!(tuned("", both).0, ".maxntid 128, 1, 1 .minnctapersm 4");
        assert_eq!(tuned(".reqntid 64, 1, 1", both).0, ".reqntid 64, 1, 1 .minnctapersm 4");
        let over = Tuning { overrides: true, ..both };
        assert_eq!(tuned(".reqntid 64, 1, 1", over).0, ".maxntid 128, 1, 1 .minnctapersm 4");
        assert_eq!(tuned("", Tuning { registers: Some(64), ..both }), (".maxnreg 64".into(), 1));
        let threads = |threads| Tuning { max_threads: Some(threads), ..Tuning::default() };
        assert_eq!(tuned("", threads(2048)).0, ".maxntid 2048, 1, 1");
        assert_eq!(tuned("", threads(2049)), (String::new(), 1));
        let none = Tuning { registers: Some(300), overrides: true, ..Tuning::default() };
        assert_eq!(tuned(".maxnreg 40", none), (String::new(), 1));
        assert_eq!(registers_left([1000, 2, 1], Some(4)), 32);
        assert_eq!(registers_left([64, 2, 1], Some(8)), 64);
    }
}
