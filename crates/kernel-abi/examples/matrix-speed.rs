//! Prints how long a product of each kind takes: by the definition, and as generated code has it.

use std::time::Instant;

use kernel_abi::matrix::{LaneWords, anywarp_matrix, encode, register_bytes, registers};
use simt_ir::matrix::{Accumulator, Element, MatrixMultiply};

#[repr(align(64))]
struct Memory([u8; 64 << 10]);

/// The least of many: the machine may be busy.
fn nanoseconds(mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        (0..50).for_each(|_| work());
        best = best.min(start.elapsed().as_nanos() as f64 / 50.0);
    }
    best
}

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    use Accumulator::{F16, F32, F64, S32};
    let dense = MatrixMultiply::new;
    let warpgroup = |op| MatrixMultiply { warpgroup: true, eights: 16, ..op };
    let kinds = [
        ("m16n8k16 f32 f16", dense(16, 16, Element::F16, Element::F16, F32, F32)),
        ("m16n8k16 f16 f16", dense(16, 16, Element::F16, Element::F16, F16, F16)),
        ("m16n8k16 f32 bf16", dense(16, 16, Element::BF16, Element::BF16, F32, F32)),
        ("m16n8k8 f32 tf32", dense(16, 8, Element::TF32, Element::TF32, F32, F32)),
        ("m16n8k32 f32 e4m3", dense(16, 32, Element::E4M3, Element::E4M3, F32, F32)),
        ("m16n8k32 s32 s8", dense(16, 32, Element::S8, Element::S8, S32, S32)),
        ("m16n8k256 s32 b1", dense(16, 256, Element::B1, Element::B1, S32, S32)),
        ("m16n8k16 f64", dense(16, 16, Element::F64, Element::F64, F64, F64)),
        (
            "m16n8k32 f32 f16 sparse",
            MatrixMultiply { sparse: Some(0), ..dense(16, 32, Element::F16, Element::F16, F32, F32) },
        ),
        ("m64n128k16 f32 f16, a warp", warpgroup(dense(16, 16, Element::F16, Element::F16, F32, F32))),
        ("m64n128k32 f32 e4m3, a warp", warpgroup(dense(16, 32, Element::E4M3, Element::E4M3, F32, F32))),
        ("m64n128k32 s32 s8, a warp", warpgroup(dense(16, 32, Element::S8, Element::S8, S32, S32))),
    ];
    for (name, op) in kinds.into_iter().filter(|(name, _)| name.contains(&only)) {
        // Numbers of every type that are neither large nor small.
        let word = |lane: usize, register: usize| match op.a {
            Element::F64 => (lane as f64 + register as f64 / 7.0).to_bits(),
            Element::E4M3 => 0x3931_3835_u64 ^ ((lane as u64 & 7) * 0x0101_0101),
            Element::F16 => 0x3c01_3a55 ^ (lane as u64) << 3,
            _ => 0x3f81_3f55 ^ (lane as u64) << 2,
        };
        let mut operands: Vec<LaneWords> = (0..op.operands().len())
            .map(|register| std::array::from_fn(|lane| word(lane, register)))
            .collect();
        if op.sparse.is_some() {
            operands.pop();
            operands.push([0x4444_4444; 32]);
        }
        let bytes = register_bytes(&op);
        let mut memory = Box::new(Memory([0; 64 << 10]));
        assert!(registers(&op) * bytes <= memory.0.len());
        for (register, operand) in memory.0.chunks_mut(bytes).zip(&operands) {
            for (lane, word) in register.chunks_mut(bytes / 32).zip(operand) {
                lane.copy_from_slice(&word.to_le_bytes()[..bytes / 32]);
            }
        }
        let slow = if !only.is_empty() {
            0.0
        } else {
            nanoseconds(|| drop(std::hint::black_box(op.multiply(&operands))))
        };
        let code = encode(&op);
        let start = memory.0[..registers(&op) * bytes].to_vec();
        let again =
            |memory: &mut Memory| memory.0[..start.len()].copy_from_slice(std::hint::black_box(&start));
        let fast = nanoseconds(|| {
            // Sums do not grow from call to call.
            again(&mut memory);
            // SAFETY: the memory is aligned and has room for all registers.
            unsafe { anywarp_matrix(code, memory.0.as_mut_ptr()) }
        }) - nanoseconds(|| again(&mut memory));
        println!("{name:30} {slow:9.0} ns {fast:9.0} ns");
    }
}
