//! Where results of `.approx` instructions change their kind (normal, subnormal, zero, infinite, and their signs), the fast ones are of the
//! hardware's kind, on every back end.

use kernel_abi::{Approximations, KernelBackend};
use kernel_tests::backend;
use kernel_tests::machine::{self, Grid};
use kernel_tests::module::Loaded;

const THREADS: usize = 1 << 16;

/// Reproducible numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// Quotients at most a few units away from 2^128, 2^-126 and 2^-150, and some that are far away, of all signs.
fn divisions() -> Vec<[u32; 2]> {
    let mut random = Random(1);
    let special = [0f32, f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1.0, 126f32.exp2()];
    let pair = |at: usize| {
        let word = random.next();
        if at.is_multiple_of(16) {
            return [special[word as usize % 7].to_bits(), special[(word >> 8) as usize % 7].to_bits()];
        }
        let limit = [128, -126, -150][at % 3];
        let divisor = f32::from_bits(word as u32 & 0x7fff_ffff);
        let dividend = (f64::from(divisor) * f64::from(limit).exp2()) as f32;
        let dividend = dividend.to_bits().wrapping_add_signed((word >> 32) as i32 % 8);
        [dividend & 0x7fff_ffff | (word >> 40) as u32 & 1 << 31, divisor.to_bits()]
    };
    (0..THREADS).map(pair).collect()
}

/// Arguments next to whole quarters of a turn, and tiny ones.
fn angles() -> Vec<[u32; 2]> {
    let mut random = Random(2);
    let angle = |at: usize| {
        let word = random.next();
        let near = match at % 4 {
            0 => f32::from_bits(word as u32 % 0x3580_0000),
            _ => ((word % 64) as f64 * std::f64::consts::FRAC_PI_2) as f32,
        };
        let bits = near.to_bits().saturating_add_signed((word >> 32) as i32 % 4);
        [bits | (word >> 40) as u32 & 1 << 31, 0]
    };
    (0..THREADS).map(angle).collect()
}

fn results(backend: &dyn KernelBackend, instruction: &str, operands: &[[u32; 2]]) -> Vec<u32> {
    let second = if instruction.starts_with("div") { ", %b" } else { "" };
    let text = format!(
        ".version 9.0 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 operands, .param .u64 results) {{
            .reg .b64 %in, %out, %at; .reg .b32 %i, %n, %t; .reg .f32 %a, %b, %d;
            ld.param.u64 %in, [operands]; ld.param.u64 %out, [results];
            mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %n, %t;
            mul.wide.u32 %at, %i, 8; add.u64 %in, %in, %at;
            mul.wide.u32 %at, %i, 4; add.u64 %out, %out, %at;
            ld.global.v2.f32 {{%a, %b}}, [%in];
            {instruction} %d, %a{second};
            st.global.f32 [%out], %d;
            ret;
        }}"
    );
    let loaded = Loaded::new(&text).expect("the kernel is right");
    let grid =
        Grid { grid: [(THREADS / 128) as u32, 1, 1], block: [128, 1, 1], dynamic_shared: 0, cluster: None };
    let kernel = loaded.compile(backend, "k", grid).expect("the kernel compiles");
    let mut results = vec![0u32; THREADS];
    let params = [operands.as_ptr() as u64, results.as_mut_ptr() as u64];
    let params: Vec<u8> = params.iter().flat_map(|word| word.to_le_bytes()).collect();
    machine::launch(&*kernel, grid, &params, &[]).expect("the kernel runs");
    results
}

/// Compares what the fast instruction gives with the hardware's results, as the interpreter computes them.
fn compare(instruction: &str, operands: &[[u32; 2]], mut alike: impl FnMut([u32; 2], u32, u32) -> bool) {
    let oracle = backend::open_with("interp", Approximations::Hardware).expect("the name opens");
    let expected = results(&*oracle, instruction, operands);
    for name in backend::names() {
        let backend = backend::open(&name).expect("the name opens");
        let given = results(&*backend, instruction, operands);
        for ((&operands, expected), given) in operands.iter().zip(&expected).zip(given) {
            let alike = alike(operands, *expected, given);
            assert!(alike, "{instruction} of {operands:x?} gives {given:#x} on {name}, not {expected:#x}");
        }
    }
}

#[test]
fn quotients_next_to_limits_have_the_bits_of_the_hardware() {
    let operands = divisions();
    let mut decided = 0;
    for instruction in ["div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32"] {
        compare(instruction, &operands, |[a, b], expected, given| {
            let quotient = f64::from(f32::from_bits(a)) / f64::from(f32::from_bits(b));
            let near = [128, -126, -150]
                .iter()
                .any(|limit| (quotient.abs() / f64::from(*limit).exp2() - 1.0).abs() < (-22f64).exp2());
            decided += u32::from(near);
            if near { expected == given } else { kind(expected) == kind(given) }
        });
    }
    assert!(decided > 100_000, "only {decided} quotients are next to limits");
}

#[test]
fn sines_are_zero_where_they_are_on_the_hardware() {
    let operands = angles();
    for instruction in ["sin.approx.f32", "sin.approx.ftz.f32", "cos.approx.f32", "cos.approx.ftz.f32"] {
        // The least that is not zero by the steps, though the hardware does not resolve it.
        let least = |a: u32| a & 0x7fff_ffff == 0x3449_0fdb;
        compare(instruction, &operands, |[a, _], expected, given| least(a) || kind(expected) == kind(given));
    }
}

/// Zero, subnormal, normal, infinite or not a number, and the sign of all but the last.
fn kind(bits: u32) -> (std::num::FpCategory, bool) {
    let value = f32::from_bits(bits);
    (value.classify(), value.is_sign_negative() && !value.is_nan())
}
