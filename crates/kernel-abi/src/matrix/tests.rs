use super::*;

#[test]
fn codes_round_trip() {
    let dense = MatrixMultiply::new(16, 256, Element::B1, Element::B1, Accumulator::S32, Accumulator::S32);
    let quads = Some(Quads { a_by_column: true, b_by_row: false });
    for op in [
        dense,
        MatrixMultiply { and: true, saturate: true, sparse: Some(3), ..dense },
        MatrixMultiply { a: Element::E5M2, b: Element::F64, d: Accumulator::F16, quads, ..dense },
        MatrixMultiply { round: Rounding::Up, c: Accumulator::F64, warpgroup: true, ..dense },
        MatrixMultiply {
            in_memory: Some(InMemory { a_by_row: Some(false), b_by_column: true, negated: false }),
            ..dense
        },
        MatrixMultiply {
            in_memory: Some(InMemory { a_by_row: None, b_by_column: false, negated: true }),
            quads,
            ..dense
        },
    ] {
        assert_eq!(decode(encode(&op)), Some(op));
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A word of elements: of a few exponents, of half of them, with what is special in each format, of a third of them, mostly zeros,
    /// mostly the largest of one exponent, small or zeros, or anything.
    fn word(&mut self, element: Element, flavour: u64) -> u64 {
        let raw = self.next() ^ self.next() << 32;
        let (bits, fraction) = match element {
            Element::F16 => (16, 10),
            Element::BF16 => (16, 7),
            Element::TF32 => (32, 23),
            Element::E4M3 => (8, 3),
            Element::E5M2 => (8, 2),
            Element::F64 => (64, 52),
            _ => return raw,
        };
        let mut word = 0;
        for place in 0..64 / bits {
            let ones = u64::MAX >> (64 - bits);
            let value = raw >> (bits * place) & ones;
            let field = (ones >> 1) >> fraction;
            let rare = self.next() >> 20;
            // What products of one matrix may be apart and still be scaled alike.
            let apart = (field / 3).max(1);
            let exponent = match (flavour, rare % 97) {
                (3, _) => field / 2 - apart / 2 + rare % apart,
                (2, 0) => field,
                (2, 1..20) => rare % 3,
                (5, 1..) => field / 2,
                (6, _) => rare % (field / 6 + 1),
                (0, _) => field / 2 - 2 + rare % 5,
                (1, _) => field / 2 - field / 4 + rare % (field / 2),
                _ => rare % field,
            };
            let mut value = value & !(field << fraction) | exponent << fraction;
            let zero =
                if matches!(flavour, 4 | 6) { !rare.is_multiple_of(16) } else { rare.is_multiple_of(29) };
            if zero {
                value &= !(ones >> 1);
            }
            if flavour == 2 && (rare >> 8).is_multiple_of(31) {
                // The largest fraction, or none.
                value |= (1 << fraction) - 1;
            }
            if flavour == 5 && !rare.is_multiple_of(97) {
                value = value & (field << fraction) | ((1 << fraction) - 1);
            }
            word |= value << (bits * place);
        }
        word
    }

    fn sum(&mut self, sum: Accumulator, flavour: u64) -> u64 {
        match sum {
            // Beside products that are alike or zeros anything.
            Accumulator::F16 => self.word(Element::F16, if matches!(flavour, 3 | 4) { 1 } else { flavour }),
            Accumulator::F32 if flavour > 2 && self.next() & 7 == 0 => 0,
            Accumulator::F32 => self.word(Element::TF32, [0, 1, 2, 7, 7, 5, 6][flavour as usize]),
            Accumulator::F64 => self.word(Element::F64, flavour),
            Accumulator::S32 if flavour == 2 => 0x7fff_fff0 ^ (self.next() as i32 >> 31) as u64,
            Accumulator::S32 => self.next(),
        }
    }
}

/// Every kind of product.
fn kinds() -> Vec<MatrixMultiply> {
    use Accumulator::{F16, F32, F64, S32};
    let dense = MatrixMultiply::new;
    let mut kinds = Vec::new();
    for (c, d) in [(F32, F32), (F16, F16), (F16, F32), (F32, F16)] {
        for k in [8, 16] {
            kinds.push(dense(16, k, Element::F16, Element::F16, c, d));
        }
        for (a, b) in
            [(Element::E4M3, Element::E5M2), (Element::E5M2, Element::E5M2), (Element::E4M3, Element::E4M3)]
        {
            for k in [16, 32] {
                kinds.push(dense(16, k, a, b, c, d));
            }
            kinds.push(MatrixMultiply { sparse: Some(0), ..dense(16, 64, a, b, c, d) });
            if c == d {
                for sparse in [None, Some(0)] {
                    let k = if sparse.is_some() { 64 } else { 32 };
                    kinds.push(MatrixMultiply {
                        warpgroup: true,
                        eights: 2,
                        sparse,
                        ..dense(16, k, a, b, c, d)
                    });
                }
            }
        }
    }
    for (element, k) in [(Element::BF16, 8), (Element::BF16, 16), (Element::TF32, 4), (Element::TF32, 8)] {
        kinds.push(dense(16, k, element, element, F32, F32));
        kinds.push(MatrixMultiply { sparse: Some(1), ..dense(16, 2 * k, element, element, F32, F32) });
        kinds.push(MatrixMultiply { eights: 3, warpgroup: true, ..dense(16, k, element, element, F32, F32) });
    }
    kinds.push(MatrixMultiply { sparse: Some(3), ..dense(16, 16, Element::F16, Element::F16, F32, F32) });
    kinds.push(MatrixMultiply {
        sparse: Some(0),
        eights: 5,
        ..dense(16, 32, Element::F16, Element::F16, F16, F16)
    });
    kinds.push(MatrixMultiply {
        quads: Some(Quads { a_by_column: true, b_by_row: false }),
        ..dense(8, 4, Element::F16, Element::F16, F32, F32)
    });
    for saturate in [false, true] {
        for (m, k, a, b) in [
            (8, 16, Element::S8, Element::U8),
            (16, 16, Element::U8, Element::U8),
            (16, 32, Element::S8, Element::S8),
            (16, 32, Element::U8, Element::S8),
            (8, 32, Element::S4, Element::U4),
            (16, 32, Element::U4, Element::U4),
            (16, 64, Element::S4, Element::S4),
        ] {
            kinds.push(MatrixMultiply { saturate, ..dense(m, k, a, b, S32, S32) });
        }
        for k in [32, 64] {
            let product = dense(16, k, Element::U8, Element::S8, S32, S32);
            kinds.push(MatrixMultiply { saturate, sparse: Some(0), eights: 2, ..product });
        }
        for (k, selector) in [(64, 0), (64, 1), (128, 0)] {
            let product = dense(16, k, Element::U4, Element::S4, S32, S32);
            kinds.push(MatrixMultiply { saturate, sparse: Some(selector), ..product });
        }
    }
    for (m, k) in [(8, 128), (16, 128), (16, 256)] {
        for and in [false, true] {
            kinds.push(MatrixMultiply { and, eights: 2, ..dense(m, k, Element::B1, Element::B1, S32, S32) });
        }
    }
    for (m, k) in [(8, 4), (16, 4), (16, 8), (16, 16)] {
        for round in [Rounding::Nearest, Rounding::Up] {
            kinds.push(MatrixMultiply { round, ..dense(m, k, Element::F64, Element::F64, F64, F64) });
        }
    }
    kinds
}

#[repr(align(64))]
struct Memory([u8; 64 << 10]);

/// The results of a function that has operands and results in memory as generated code has them.
fn results(op: &MatrixMultiply, operands: &[LaneWords], multiply: impl Fn(*mut u8)) -> Vec<LaneWords> {
    let bytes = register_bytes(op);
    let mut memory = Box::new(Memory([0xcb; 64 << 10]));
    assert!(registers(op) * bytes <= memory.0.len(), "{op:?} has room");
    for (register, operand) in memory.0.chunks_mut(bytes).zip(operands) {
        for (lane, word) in register.chunks_mut(bytes / 32).zip(operand) {
            lane.copy_from_slice(&word.to_le_bytes()[..bytes / 32]);
        }
    }
    multiply(memory.0.as_mut_ptr());
    let results = memory.0.chunks(bytes).skip(results_at(op)).take(op.results().len());
    results
        .map(|register| {
            std::array::from_fn(|lane| {
                let mut word = [0; 8];
                word[..bytes / 32].copy_from_slice(&register[lane * bytes / 32..][..bytes / 32]);
                u64::from_le_bytes(word)
            })
        })
        .collect()
}

/// The results by every fast form.
fn fast(op: &MatrixMultiply, operands: &[LaneWords]) -> Vec<Vec<LaneWords>> {
    if op.a == Element::F64 {
        // SAFETY: the memory is aligned and has room for all registers.
        return vec![results(op, operands, |memory| unsafe { anywarp_matrix(encode(op), memory) })];
    }
    let kinds = fast::kinds().into_iter();
    kinds
        .map(|kind| {
            results(op, operands, |memory| {
                // SAFETY: the memory is aligned and has room for all registers.
                kind(op, unsafe { std::slice::from_raw_parts_mut(memory.cast(), registers(op)) });
            })
        })
        .collect()
}

#[test]
fn the_fast_form_is_what_the_definition_says() {
    for op in kinds() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ encode(&op));
        let mask = if op.a == Element::F64 { u64::MAX } else { u64::MAX >> 32 };
        for round in 0..50 {
            let flavour = round % 7;
            let mut registers = |count: usize, word: &mut dyn FnMut(&mut Random) -> u64| -> Vec<LaneWords> {
                (0..count).map(|_| std::array::from_fn(|_| word(&mut random) & mask)).collect()
            };
            let mut operands = registers(op.a_registers(), &mut |random| random.word(op.a, flavour));
            operands.extend(registers(op.b_registers(), &mut |random| random.word(op.b, flavour)));
            operands.extend(registers(op.c_registers(), &mut |random| random.sum(op.c, flavour)));
            if op.sparse.is_some() {
                // Now and then two elements for one place.
                let valid = if op.a == Element::TF32 { [0x4, 0xe, 0x4, 0xe] } else { [0x4, 0x9, 0xd, 0xe] };
                operands.extend(registers(1, &mut |random| match round {
                    49 => random.next(),
                    _ => (0..8).fold(0, |word, _| word << 4 | valid[random.next() as usize >> 7 & 3]),
                }));
            }
            check(&op, &operands, round);
        }
    }
}

/// Products that fill 31 bits, and addends that make one more of them.
#[test]
fn the_largest_sums_are_what_the_definition_says() {
    let op = MatrixMultiply::new(16, 16, Element::F16, Element::F16, Accumulator::F32, Accumulator::F32);
    let largest = 0x3fff_3fff;
    let missing = (4095.0 / 65536.0f32).to_bits();
    for sign in [0, 0x8000_8000] {
        for difference in 0..3 {
            let addend = (missing - 1 + difference) | (sign & 0x8000_0000);
            let mut operands = vec![[u64::from(largest | sign); 32]; op.a_registers()];
            operands.extend(vec![[largest.into(); 32]; op.b_registers()]);
            operands.extend(vec![[addend.into(); 32]; op.c_registers()]);
            check(&op, &operands, difference.into());
        }
    }
}

/// Compares every fast form with the definition.
fn check(op: &MatrixMultiply, operands: &[LaneWords], round: u64) {
    let expected = op.multiply(operands);
    for got in fast(op, operands) {
        for (at, (expected, got)) in expected.iter().zip(&got).enumerate() {
            for lane in 0..32 {
                let (expected, got) = (expected[lane], got[lane]);
                assert!(
                    expected == got,
                    "{op:?}, round {round}, register {at}, lane {lane}: {got:#x}, not {expected:#x}"
                );
            }
        }
    }
}
