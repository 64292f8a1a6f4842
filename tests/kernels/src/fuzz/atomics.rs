//! Atomic operations in all their forms: on memory of the thread's own, and on words that threads choose among, where several lanes of a
//! warp may come to the same.

use std::fmt::Write;

use super::Random;
use super::program::{COPY_AT, COPY_BYTES, HISTOGRAM_AT, HISTOGRAMS, SHARED_WORDS};
use super::rows::{Addresses, Rows, bound, put_operand};
use super::table::any_register;

/// The rows that these instructions are of.
pub struct Atomics(Rows);

impl Default for Atomics {
    fn default() -> Atomics {
        Atomics(Rows::of(|row| {
            let words = row.places.iter().flat_map(|place| &place.words);
            ["atom", "red"].contains(&row.opcode) && !words.copied().any(|word| word == "async")
        }))
    }
}

impl Atomics {
    /// An operation on memory that no other thread uses: global, or shared if there is some.
    pub fn own(&mut self, r: &mut Random, guard: &str, has_shared: bool) -> Option<String> {
        let mut example = self
            .0
            .draw(r, |example| has_shared || !example.words.iter().any(|word| word.starts_with("shared")))?;
        let mut text = String::from("{\n\t.reg .b64 place;\n\t.reg .b32 near;\n");
        let names_global = example.words.contains(&"global");
        let names_shared = example.words.iter().any(|word| word.starts_with("shared"));
        if has_shared {
            let offset = COPY_AT + 16 * r.below(COPY_BYTES / 16);
            let _ = writeln!(
                text,
                "\tmov.u32 near, words;\n\tmad.lo.u32 near, tid, {COPY_BYTES}, near;\n\tadd.u32 near, near, {offset};"
            );
        }
        // Vectors and what is packed are for global memory.
        let is_plain = !example.text.contains(".v") && !example.text.contains("{");
        text += &match has_shared && !names_global && !names_shared && is_plain && r.chance(40) {
            true => "\tcvt.u64.u32 place, near;\n\tcvta.shared.u64 place, place;\n".to_owned(),
            false => format!("\tadd.u64 place, own, {};\n", 16 * r.below(8)),
        };
        if example.words.contains(&"L2::cache_hint") {
            // A GPU refuses to carry out one with a policy that is none.
            text += "\t.reg .b64 policy;\n\tcreatepolicy.fractional.L2::evict_last.b64 policy, 1.0;\n";
            put_operand(&mut example.text, 0, "policy")?;
        }
        let instruction = bound(&example, r, Addresses { place: "place", shared: "near" }, guard)?;
        Some(format!("{text}\t{instruction}\n\t}}"))
    }

    /// One of a few words that all threads, or those of the block, combine something into. The order of threads changes nothing: sums of
    /// floating-point numbers are exact.
    pub fn histogram(&mut self, r: &mut Random, guard: &str, has_shared: bool) -> String {
        let kind = r.below(HISTOGRAMS.len());
        let (operation, ty) = HISTOGRAMS[kind];
        let bits = if ty.ends_with("64") { 64 } else { 32 };
        let mut text =
            String::from("{\n\t.reg .b64 place, unseen_64, v64;\n\t.reg .b32 near, unseen_32, v32;\n");
        // More or fewer lanes meet at a word.
        let _ = writeln!(text, "\tand.b32 near, {}, {};", any_register(r, 32), r.pick(&[7, 7, 3, 1, 0]));
        let value = match ty {
            "f32" | "f64" => {
                let _ = writeln!(
                    text,
                    "\tand.b32 v32, {}, 255;\n\tcvt.rn.{ty}.u32 v{bits}, v32;",
                    any_register(r, 32)
                );
                format!("v{bits}")
            }
            _ => any_register(r, bits),
        };
        let is_shared = has_shared && r.chance(50);
        let is_generic = r.chance(25);
        let place = if is_shared {
            let at = HISTOGRAM_AT + 64 * kind;
            let _ = writeln!(
                text,
                "\tmov.u32 unseen_32, words;\n\tmad.lo.u32 near, near, 8, unseen_32;\n\tadd.u32 near, near, {at};"
            );
            if is_generic {
                text += "\tcvt.u64.u32 place, near;\n\tcvta.shared.u64 place, place;\n";
            }
            if is_generic { "place" } else { "near" }
        } else {
            let at = 8 * (SHARED_WORDS - 16 * HISTOGRAMS.len()) + 64 * kind;
            let _ = writeln!(
                text,
                "\tmul.wide.u32 place, near, 8;\n\tadd.u64 place, place, common;\n\tadd.u64 place, place, {at};"
            );
            "place"
        };
        let space = match (is_generic, is_shared) {
            (true, _) => "",
            (_, true) => *r.pick(&[".shared", ".shared::cta"]),
            _ => ".global",
        };
        let order = *r.pick(&["", ".relaxed.gpu", ".relaxed.cta", ".relaxed.sys"]);
        let order = if is_shared || order != ".relaxed.cta" { order } else { ".relaxed.gpu" };
        // The sum of two numbers is one that the other instruction could have made, too.
        let _ = match r.chance(50) {
            true => writeln!(text, "\t{guard}red{order}{space}.{operation}.{ty} [{place}], {value};"),
            false => writeln!(
                text,
                "\t{guard}atom{order}{space}.{operation}.{ty} unseen_{bits}, [{place}], {value};"
            ),
        };
        text + "\t}"
    }
}
