//! Asynchronous copies: each thread's own, and those that a barrier in memory counts.

use std::fmt::Write;

use super::Random;
use super::program::{ARRIVALS_AT, COPY_AT, COPY_BYTES};
use super::table::any_register;

/// Leaves the address of the thread's own piece of shared memory in `at`.
fn own_piece() -> String {
    format!("\tmov.u32 at, words;\n\tmad.lo.u32 at, tid, {COPY_BYTES}, at;\n\tadd.u32 at, at, {COPY_AT};\n")
}

const OWN: &str = "{\n\t.reg .b32 at, size, o<4>;\n\t.reg .b64 from, to;\n\t.reg .pred done, leads;\n";

/// One copy of a thread's from the input into its piece.
fn copy(r: &mut Random, slot: usize) -> String {
    let bytes = *r.pick(&[4usize, 8, 16, 16]);
    let mut text = format!("\tand.b32 size, {}, {};\n", any_register(r, 32), 3840 / bytes - 1);
    let _ = writeln!(text, "\tmul.wide.u32 from, size, {bytes};\n\tadd.u64 from, from, in;");
    let guard = guard(r);
    let operator = if bytes == 16 { *r.pick(&["ca", "cg"]) } else { "ca" };
    let space = *r.pick(&["shared", "shared::cta"]);
    let fetch = *r.pick(&["", "", ".L2::64B", ".L2::128B", ".L2::256B"]);
    let fewer = match r.below(5) {
        0 => {
            let _ = writeln!(text, "\trem.u32 size, {}, {};", any_register(r, 32), bytes + 1);
            ", size".to_owned()
        }
        1 => format!(", {}", r.below(bytes + 1)),
        2 => format!(", {}{}", if r.chance(40) { "!" } else { "" }, any_register(r, 1)),
        _ => String::new(),
    };
    let offset = 16 * slot + bytes * r.below(16 / bytes);
    text + &format!(
        "\t{guard}cp.async.{operator}.{space}.global{fetch} [at+{offset}], [from], {bytes}{fewer};\n"
    )
}

/// A guard, some of the time.
pub fn guard(r: &mut Random) -> String {
    match r.below(4) {
        0 => format!("@{} ", any_register(r, 1)),
        1 => format!("@!{} ", any_register(r, 1)),
        _ => String::new(),
    }
}

/// Takes 16 bytes of shared memory into registers of the kernel's.
pub fn look(r: &mut Random, place: &str) -> String {
    let mut text = format!("\tld.shared.v4.b32 {{o0, o1, o2, o3}}, [{place}];\n");
    for at in 0..4 {
        let result = any_register(r, 32);
        let _ = writeln!(text, "\tmad.lo.u32 {result}, {result}, 31, o{at};");
    }
    text
}

/// Copies that a thread waits for alone.
pub fn own(r: &mut Random) -> String {
    let mut text = OWN.to_owned() + &own_piece();
    text += &copy(r, 0);
    match r.below(3) {
        0 => {
            text += &copy(r, 1);
            text += "\tcp.async.wait_all;\n";
        }
        1 => {
            // The second group may still be on its way.
            text += "\tcp.async.commit_group;\n";
            text += &copy(r, 1);
            text += "\tcp.async.commit_group;\n\tcp.async.wait_group 1;\n";
            text += &look(r, "at");
            text += "\tcp.async.wait_group 0;\n";
        }
        _ => text += "\tcp.async.commit_group;\n\tcp.async.wait_group 0;\n",
    }
    let slot = 16 * r.below(COPY_BYTES / 16);
    text + &look(r, &format!("at+{slot}")) + "\t}"
}

/// A copy of bytes to the thread's own place in the output, or an operation on what is there.
pub fn bulk_out(r: &mut Random) -> String {
    const OPERATIONS: [&str; 14] = [
        "add.u32",
        "add.s32",
        "add.u64",
        "and.b32",
        "or.b64",
        "xor.b32",
        "min.s32",
        "max.u64",
        "inc.u32",
        "dec.u32",
        "add.f32",
        "add.noftz.f16",
        "min.bf16",
        "max.f16",
    ];
    let words: [String; 4] = std::array::from_fn(|_| any_register(r, 32));
    let mut text = OWN.to_owned() + &own_piece();
    let slot = 16 * r.below(COPY_BYTES / 16);
    let _ = writeln!(text, "\tst.shared.v4.b32 [at+{slot}], {{{}}};", words.join(", "));
    let _ = writeln!(text, "\tfence.proxy.async;\n\tadd.u64 to, own, {};", 16 * r.below(8));
    let guard = guard(r);
    text += &match r.chance(50) {
        true => format!("\t{guard}cp.async.bulk.global.shared::cta.bulk_group [to], [at+{slot}], 16;\n"),
        false => format!(
            "\t{guard}cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [to], [at+{slot}], 16;\n",
            r.pick(&OPERATIONS)
        ),
    };
    text += "\tcp.async.bulk.commit_group;\n";
    if r.chance(30) {
        text += "\tcp.async.bulk.wait_group.read 0;\n";
    }
    text + "\tcp.async.bulk.wait_group 0;\n\t}"
}

/// Copies whose end a barrier in memory announces to all threads of the block, which read what others have copied.
pub fn announced(r: &mut Random, threads: u32) -> String {
    let barrier = format!("words+{ARRIVALS_AT}");
    let mut text = OWN.to_owned() + &own_piece();
    let own = "\tld.shared.v4.b32 {o0, o1, o2, o3}, [at];\n\tbar.sync 0;\n";
    // What others read until now is over.
    text += own;
    match r.below(3) {
        0 => {
            text += &copy(r, 0);
            let _ = writeln!(text, "\tcp.async.mbarrier.arrive.noinc.shared.b64 [{barrier}];");
        }
        1 => {
            text += &copy(r, 1);
            let _ = writeln!(text, "\tcp.async.mbarrier.arrive.shared.b64 [{barrier}];");
            let _ = writeln!(text, "\tmbarrier.arrive.shared.b64 _, [{barrier}];");
        }
        _ => {
            // One thread copies for all.
            let bytes = 16 * (1 + r.below(threads as usize * COPY_BYTES / 16));
            let from = 16 * r.below((4096 - bytes) / 16 + 1);
            let _ = writeln!(
                text,
                "\tsetp.eq.u32 leads, tid, {};\n\tadd.u64 from, in, {from};\n\tmov.b32 size, {bytes};",
                r.below(threads as usize)
            );
            let _ = writeln!(text, "\t@!leads mbarrier.arrive.shared.b64 _, [{barrier}];");
            let _ = writeln!(text, "\t@leads mbarrier.arrive.expect_tx.shared.b64 _, [{barrier}], {bytes};");
            let to = *r.pick(&["shared::cluster", "shared::cta"]);
            let _ = writeln!(
                text,
                "\t@leads cp.async.bulk.{to}.global.mbarrier::complete_tx::bytes [words+{COPY_AT}], [from], size, [{barrier}];"
            );
        }
    }
    let wait = *r.pick(&["try_wait", "test_wait"]);
    let _ = writeln!(
        text,
        "WAIT:\n\tmbarrier.{wait}.parity.shared.b64 done, [{barrier}], phase;\n\t@!done bra WAIT;\n\txor.b32 phase, phase, 1;"
    );
    let _ = writeln!(text, "\tadd.u32 at, tid, {};\n\trem.u32 at, at, {threads};", r.below(threads as usize));
    let _ = writeln!(
        text,
        "\tmov.u32 size, words;\n\tmad.lo.u32 at, at, {COPY_BYTES}, size;\n\tadd.u32 at, at, {COPY_AT};"
    );
    let slot = 16 * r.below(COPY_BYTES / 16);
    text += &look(r, &format!("at+{slot}"));
    text + "\tbar.sync 0;\n\t}"
}
