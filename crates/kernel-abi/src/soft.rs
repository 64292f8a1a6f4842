//! Operations that generated code leaves to the host: those for which a CPU has no instruction and nobody is in a hurry,
//! such as directed rounding of f64 without AVX-512.

use simt_ir::{Approx, Convert, FloatBinary, FloatMode, FloatUnary, Op, Rounding, Type, eval};

/// Name of [`anywarp_soft`] in generated code.
pub const SOFT_SYMBOL: &str = "anywarp_soft";

/// An operation in the 32 bits that generated code passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftOp {
    /// A floating-point operation or a conversion.
    pub op: Op,
    /// Type of the operands.
    pub from: Type,
    /// Type of the result.
    pub to: Type,
}

const ROUNDINGS: [Rounding; 5] =
    [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up, Rounding::NearestAway];

/// All operations there are, in the mode given; the position is the number in the code.
fn operations(mode: FloatMode) -> [Op; 14] {
    let FloatMode { round, ftz, .. } = mode;
    [
        Op::Float(FloatBinary::Add, mode),
        Op::Float(FloatBinary::Sub, mode),
        Op::Float(FloatBinary::Mul, mode),
        Op::Float(FloatBinary::Div, mode),
        Op::Fma(mode),
        Op::FloatUnary(FloatUnary::Sqrt, mode),
        Op::FloatUnary(FloatUnary::Rcp, mode),
        Op::Convert(Convert::FloatToFloat(mode)),
        Op::Convert(Convert::SToFloat(mode)),
        Op::Convert(Convert::UToFloat(mode)),
        Op::Convert(Convert::RoundToIntegral(mode)),
        Op::Convert(Convert::FloatToS { round, ftz }),
        Op::Approx { func: Approx::Div, ftz },
        Op::Approx { func: Approx::DivFull, ftz },
    ]
}

/// Fields of the code, from bit 0: operation 4, rounding 3, ftz 1, sat 1, from 4, to 4.
impl SoftOp {
    /// The code, or nothing for an operation that is not among these.
    pub fn encode(self) -> Option<u32> {
        let mode = match self.op {
            Op::Float(_, mode)
            | Op::Fma(mode)
            | Op::FloatUnary(_, mode)
            | Op::Convert(
                Convert::FloatToFloat(mode)
                | Convert::SToFloat(mode)
                | Convert::UToFloat(mode)
                | Convert::RoundToIntegral(mode),
            ) => mode,
            Op::Convert(Convert::FloatToS { round, ftz }) => FloatMode { round, ftz, ..FloatMode::default() },
            Op::Approx { func: Approx::Div | Approx::DivFull, ftz } => {
                FloatMode { ftz, ..FloatMode::default() }
            }
            _ => return None,
        };
        let number = operations(mode).iter().position(|op| *op == self.op)? as u32;
        let round = ROUNDINGS.iter().position(|round| *round == mode.round)? as u32;
        let ty = |ty| Type::ALL.iter().position(|known| *known == ty).map(|at| at as u32);
        Some(
            number
                | round << 4
                | u32::from(mode.ftz) << 7
                | u32::from(mode.sat) << 8
                | ty(self.from)? << 9
                | ty(self.to)? << 13,
        )
    }

    /// The operation of a code that [`SoftOp::encode`] made.
    pub fn decode(code: u32) -> Option<SoftOp> {
        let mode = FloatMode {
            round: *ROUNDINGS.get((code >> 4 & 7) as usize)?,
            ftz: code & 1 << 7 != 0,
            sat: code & 1 << 8 != 0,
            contract: false,
        };
        Some(SoftOp {
            op: *operations(mode).get((code & 15) as usize)?,
            from: *Type::ALL.get((code >> 9 & 15) as usize)?,
            to: *Type::ALL.get((code >> 13 & 15) as usize)?,
        })
    }
}

/// Performs an operation on `lanes` lanes. `values` holds the bits of the first operands, then of the second, then of the
/// third; the results replace the first. Nothing happens if `code` is not a code.
///
/// # Safety
/// `values` points to as many times `lanes` numbers as the operation has operands, which nobody else uses.
pub unsafe extern "C" fn anywarp_soft(code: u32, lanes: u32, values: *mut u64) {
    let Some(SoftOp { op, from, to }) = SoftOp::decode(code) else { return };
    let lanes = lanes as usize;
    let operands = match op {
        Op::Fma(_) => 3,
        Op::Float(..) | Op::Approx { .. } => 2,
        _ => 1,
    };
    // SAFETY: the caller's contract.
    let values = unsafe { std::slice::from_raw_parts_mut(values, lanes * operands) };
    for lane in 0..lanes {
        let args: [u64; 3] = std::array::from_fn(|i| if i < operands { values[i * lanes + lane] } else { 0 });
        if let Some(result) = eval::eval(op, &args[..operands], &[from; 3][..operands], to) {
            values[lane] = result;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for round in ROUNDINGS {
            for flags in 0..4 {
                let mode = FloatMode { round, ftz: flags & 1 != 0, sat: flags & 2 != 0, contract: false };
                for op in operations(mode) {
                    let soft = SoftOp { op, from: Type::F64, to: Type::BF16 };
                    let decoded = soft.encode().and_then(SoftOp::decode);
                    // These have no direction or no saturation flag to keep.
                    let kept = match op {
                        Op::Convert(Convert::FloatToS { .. }) => !mode.sat,
                        Op::Approx { .. } => !mode.sat && round == Rounding::Nearest,
                        _ => true,
                    };
                    if kept {
                        assert_eq!(decoded, Some(soft));
                    }
                }
            }
        }
        assert_eq!(SoftOp { op: Op::Prmt, from: Type::I32, to: Type::I32 }.encode(), None);
    }

    #[test]
    fn lanes_are_computed_in_place() {
        let mode = FloatMode { round: Rounding::Up, ..FloatMode::default() };
        let op = Op::Float(FloatBinary::Div, mode);
        let code = SoftOp { op, from: Type::F64, to: Type::F64 }.encode().unwrap();
        let mut values = [1.0f64, 6.0, 3.0, 2.0].map(f64::to_bits);
        // SAFETY: two lanes of two operands.
        unsafe { anywarp_soft(code, 2, values.as_mut_ptr()) };
        assert_eq!(values[0], (1.0f64 / 3.0).to_bits() + 1);
        assert_eq!(values[1], 3f64.to_bits());
    }
}
