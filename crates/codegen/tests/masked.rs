//! Stores of neighbouring elements by some lanes of a warp, against the interpreter.

mod launch;

use launch::{Launch, kernel_of};
use simt_ir::Program;

/// Lanes whose bit in the first word of `data` is set, or is not, store `count` words each, side by side.
fn program(is_set: bool, count: u32) -> Program {
    let (stores, bytes) = match count {
        1 => ("st.global.u32 [%a], %v;".to_owned(), 4),
        2 => ("st.global.v2.u32 [%a], {%v, %w};".to_owned(), 8),
        _ => (
            (0..3).map(|at| format!("st.global.u32 [%a+{}], %{};\n", 4 * at, ["v", "w", "u"][at])).collect(),
            12,
        ),
    };
    kernel_of(&format!(
        "
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 data) {{
    .reg .pred %q;
    .reg .b32 %t, %m, %v, %w, %u;
    .reg .b64 %a, %offset;
    ld.param.u64 %a, [data];
    ld.global.u32 %m, [%a];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %offset, %t, {bytes};
    add.u64 %a, %a, %offset;
    mul.lo.u32 %v, %t, 0x9e3779b1;
    add.u32 %w, %v, 5;
    xor.b32 %u, %v, %w;
    and.b32 %t, %t, 31;
    shr.u32 %m, %m, %t;
    and.b32 %m, %m, 1;
    setp.eq.u32 %q, %m, {};
    add.u64 %a, %a, 64;
    @%q bra DONE;
    {stores}
DONE:
    ret;
}}",
        u32::from(!is_set)
    ))
}

#[test]
fn only_active_lanes_store() {
    let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1] };
    for count in [1, 2, 3] {
        for is_set in [false, true] {
            let program = program(is_set, count);
            for mask in
                [0, 1, 1 << 31, !1, u32::MAX, 0xff, 0xff00_ff00, 0x00ff_fe00, 0x1234_5678, !0xff, 0x00ff_ff80]
            {
                let mut words: Vec<u64> =
                    (0..200u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
                words[0] = u64::from(mask);
                let what = format!("{count} words, {mask:x}, {is_set}");
                launch.must_agree(&program, &words, |words| [words.as_mut_ptr() as u64], &what);
            }
        }
    }
}
