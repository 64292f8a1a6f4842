//! What is known about the numbers integer values hold.

mod low;

use kernel_abi::Shape;
use simt_ir::{
    Block, Cfg, Convert, Def, DomTree, Function, InstData, IntBinary, IntCmp, Op, Shift, SpecialReg,
    Terminator, Type, Value,
};

pub use self::low::Low;
use crate::simplify::sign_extended;

/// An inclusive range of signed numbers.
pub type Range = (i64, i64);

/// Answers questions about a function's integer values.
pub struct Facts<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    dom: &'a DomTree,
    shape: &'a Shape,
}

/// How far definitions are followed.
const DEPTH: u32 = 12;

impl<'a> Facts<'a> {
    /// Facts about a function launched in a shape.
    pub fn new(func: &'a Function, cfg: &'a Cfg, dom: &'a DomTree, shape: &'a Shape) -> Facts<'a> {
        Facts { func, cfg, dom, shape }
    }

    /// Whether extending an affine 8- to 32-bit value to more bits keeps its offsets in every lane active in `block`, when the base
    /// is extended by its sign.
    pub fn extends(&self, value: Value, block: Block, offsets: &[i64], unsigned: bool) -> bool {
        let (mut low, mut high) = self.range(value);
        let (min, max) = signed_limits(self.func.ty(value));
        let (least, most) = (offsets.iter().min().unwrap(), offsets.iter().max().unwrap());
        let fits = |low: i64, high: i64| {
            // A lane's value minus its offset is the base: it must be a number of the narrow type.
            (!unsigned || low >= 0) && low - most >= min && high - least <= max
        };
        if fits(low, high) {
            return true;
        }
        (low, high) = self.guarded((low, high), value, block);
        fits(low, high)
    }

    /// Whether a kernel's entry can compute the value: from parameters, constants and indices.
    pub fn is_known_at_entry(&self, value: Value) -> bool {
        self.known_at_entry(value, 16)
    }

    fn known_at_entry(&self, value: Value, depth: u32) -> bool {
        let Some(data) = self.func.def_inst(value).filter(|_| depth > 0) else { return false };
        match data.op {
            Op::Const(_) => true,
            Op::SpecialReg(reg) => !reg.is_counter(),
            Op::Load(access) => {
                access.space == simt_ir::Space::Param
                    && data.results.len() == 1
                    && self.func.constant(data.args[0]).is_some()
            }
            Op::Int(_) | Op::Shift(_) | Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc) => {
                data.args.iter().all(|arg| self.known_at_entry(*arg, depth - 1))
            }
            _ => false,
        }
    }

    /// The range of a value as a signed number of its type, in every lane.
    pub fn range(&self, value: Value) -> Range {
        self.range_at(value, DEPTH)
    }

    fn range_at(&self, value: Value, depth: u32) -> Range {
        match self.func.def_inst(value).filter(|_| depth > 0) {
            Some(data) => self.result_range(data, value, |arg| self.range_at(arg, depth - 1)),
            None => self.param_range(value, depth).unwrap_or_else(|| signed_limits(self.func.ty(value))),
        }
    }

    /// The range of an instruction's result, given those of its operands.
    pub fn result_range(&self, data: &InstData, value: Value, of: impl Fn(Value) -> Range) -> Range {
        let ty = self.func.ty(value);
        let full = signed_limits(ty);
        let arg = |at: usize| of(data.args[at]);
        let constant = |at: usize| self.func.constant(data.args[at]);
        let range = match data.op {
            Op::Const(bits) => {
                let number = sign_extended(bits, ty.bits());
                Some((number, number))
            }
            Op::SpecialReg(reg) => self.special_range(reg),
            Op::Int(op) => {
                if self.is_global_id(op, &data.args) {
                    return (0, i64::from(i32::MAX) - 1);
                }
                let (a, b) = (arg(0), arg(1));
                combine(op, a, b, constant(0).is_some() || constant(1).is_some())
            }
            Op::Shift(Shift::Left) => constant(1).filter(|amount| *amount < 32).and_then(|amount| {
                let (low, high) = arg(0);
                Some((low.checked_mul(1 << amount)?, high.checked_mul(1 << amount)?))
            }),
            Op::Shift(Shift::RightU) => {
                constant(1).filter(|amount| *amount < u64::from(ty.bits())).and_then(|amount| {
                    let (low, high) = arg(0);
                    match (low, amount) {
                        (0.., _) => Some((low >> amount, high >> amount)),
                        (_, 0) => None,
                        _ => Some((0, (ty.mask() >> amount) as i64)),
                    }
                })
            }
            Op::Shift(Shift::RightS) => {
                constant(1).filter(|amount| *amount < u64::from(ty.bits())).map(|amount| {
                    let (low, high) = arg(0);
                    (low >> amount, high >> amount)
                })
            }
            Op::Convert(Convert::ZExt) => {
                let (low, high) = arg(0);
                let mask = self.func.ty(data.args[0]).mask();
                Some(if low >= 0 && self.func.ty(data.args[0]) != Type::Pred {
                    (low, high)
                } else {
                    (0, i64::try_from(mask).unwrap_or(i64::MAX))
                })
            }
            Op::Convert(Convert::SExt | Convert::Trunc) => Some(arg(0)),
            Op::Select => {
                let (a, b) = (arg(1), arg(2));
                Some((a.0.min(b.0), a.1.max(b.1)))
            }
            Op::IntUnary(simt_ir::IntUnary::Abs) => {
                let (low, high) = arg(0);
                // The least number stays as it is.
                (low > full.0).then(|| match low {
                    0.. => (low, high),
                    _ => (0, high.max(-low)),
                })
            }
            Op::IntUnary(simt_ir::IntUnary::PopCount | simt_ir::IntUnary::LeadingZeros) => Some((0, 64)),
            _ => None,
        };
        range.filter(|(low, high)| full.0 <= *low && *high <= full.1).unwrap_or(full)
    }

    fn special_range(&self, reg: SpecialReg) -> Option<Range> {
        let x = 1i64 << self.shape.x_bits;
        let size = |axis| self.shape.size(axis).map(i64::from);
        Some(match reg {
            SpecialReg::Tid(0) => (0, size(0).unwrap_or(x) - 1),
            SpecialReg::Ntid(0) => (size(0).unwrap_or(1), size(0).unwrap_or(x)),
            SpecialReg::Tid(axis) => (0, size(axis).unwrap_or(1024) - 1),
            SpecialReg::Ntid(axis) => (size(axis).unwrap_or(1), size(axis).unwrap_or(1024)),
            SpecialReg::CtaId(0) => (0, i64::from(i32::MAX) - 1),
            SpecialReg::NctaId(0) => (1, i64::from(i32::MAX)),
            SpecialReg::CtaId(_) | SpecialReg::NctaId(_) => (0, 65535),
            SpecialReg::LaneId | SpecialReg::WarpId => (0, 31),
            SpecialReg::ClusterCtaId(_) | SpecialReg::ClusterCtaRank => {
                (0, i64::from(kernel_abi::MAX_CLUSTER) - 1)
            }
            SpecialReg::ClusterNctaId(_) | SpecialReg::ClusterNctaRank => (1, kernel_abi::MAX_CLUSTER.into()),
            _ => return None,
        })
    }

    /// The hull of what is passed for a parameter of a block that is no loop header.
    fn param_range(&self, value: Value, depth: u32) -> Option<Range> {
        let Def::Param(block, index) = self.func.def(value) else { return None };
        let position = self.cfg.position(block)?;
        let mut hull: Option<Range> = None;
        for &pred in self.cfg.preds(block) {
            if depth < 3 || self.cfg.position(pred)? >= position {
                return None;
            }
            for target in self.func.block(pred).term.targets() {
                if target.block == block {
                    let (low, high) = self.range_at(target.args[index as usize], depth / 2);
                    hull = Some(hull.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
                }
            }
        }
        hull
    }

    /// `ctaid * ntid (+ tid)` and `nctaid * ntid`, where the launch is known to keep them below 2^31.
    fn is_global_id(&self, op: IntBinary, args: &[Value]) -> bool {
        let reg = |value: Value| match self.func.def_inst(value)?.op {
            Op::SpecialReg(reg) => Some(reg),
            _ => None,
        };
        let product = |value: Value| {
            let data = self.func.def_inst(value)?;
            if data.op != Op::Int(IntBinary::Mul) {
                return None;
            }
            match (reg(data.args[0])?, reg(data.args[1])?) {
                (SpecialReg::CtaId(a), SpecialReg::Ntid(b)) | (SpecialReg::Ntid(b), SpecialReg::CtaId(a))
                    if a == b =>
                {
                    Some(a)
                }
                _ => None,
            }
        };
        if !self.shape.ids_fit_i32 || self.func.ty(args[0]) != Type::I32 {
            return false;
        }
        match op {
            IntBinary::Mul => matches!(
                (reg(args[0]), reg(args[1])),
                (Some(SpecialReg::CtaId(a) | SpecialReg::NctaId(a)), Some(SpecialReg::Ntid(b)))
                | (Some(SpecialReg::Ntid(b)), Some(SpecialReg::CtaId(a) | SpecialReg::NctaId(a))) if a == b
            ),
            IntBinary::Add => {
                let sum = |id: Value, tid: Value| match (product(id), reg(tid)) {
                    (Some(a), Some(SpecialReg::Tid(b))) => a == b,
                    _ => false,
                };
                sum(args[0], args[1]) || sum(args[1], args[0])
            }
            _ => false,
        }
    }

    /// The range in lanes that have passed the branches that dominate `block`.
    fn guarded(&self, mut range: Range, value: Value, block: Block) -> Range {
        let mut at = block;
        while let Some(parent) = self.dom.idom(at) {
            if self.cfg.preds(at) == [parent]
                && let Terminator::Branch { cond, then, otherwise, .. } = &self.func.block(parent).term
                && then.block != otherwise.block
            {
                self.assume(&mut range, value, *cond, then.block == at, DEPTH);
            }
            at = parent;
        }
        range
    }

    /// Narrows the range by a condition that is known to be `holds`.
    fn assume(&self, range: &mut Range, value: Value, cond: Value, holds: bool, depth: u32) {
        let Some(data) = self.func.def_inst(cond).filter(|_| depth > 0) else { return };
        match data.op {
            Op::IntUnary(simt_ir::IntUnary::Not) => {
                self.assume(range, value, data.args[0], !holds, depth - 1)
            }
            Op::Int(IntBinary::And) | Op::Unanimous if holds => {
                data.args.iter().for_each(|arg| self.assume(range, value, *arg, true, depth - 1));
            }
            Op::Int(IntBinary::Or) if !holds => {
                data.args.iter().for_each(|arg| self.assume(range, value, *arg, false, depth - 1));
            }
            Op::IntCmp(cmp) => {
                let cmp = if holds { cmp } else { cmp.inverse() };
                if data.args[0] == value {
                    narrow(range, cmp, self.range(data.args[1]));
                } else if data.args[1] == value {
                    narrow(range, cmp.mirrored(), self.range(data.args[0]));
                }
            }
            _ => {}
        }
    }
}

/// Narrows the range of `x` given `x cmp y` and the range of `y`.
fn narrow(range: &mut Range, cmp: IntCmp, (low, high): Range) {
    let (above, below) = match cmp {
        IntCmp::Eq => (Some(low), Some(high)),
        IntCmp::LtS => (None, Some(high.saturating_sub(1))),
        IntCmp::LeS => (None, Some(high)),
        IntCmp::GtS => (Some(low.saturating_add(1)), None),
        IntCmp::GeS => (Some(low), None),
        // Below a number that is not negative, unsigned, means not negative.
        IntCmp::LtU if low >= 0 => (Some(0), Some(high - 1)),
        IntCmp::LeU if low >= 0 => (Some(0), Some(high)),
        _ => (None, None),
    };
    range.0 = range.0.max(above.unwrap_or(i64::MIN));
    range.1 = range.1.min(below.unwrap_or(i64::MAX));
}

/// Whether these are the same value, or the same constant.
pub(crate) fn are_same(func: &Function, one: Value, other: Value) -> bool {
    let constant = func.constant(one);
    one == other || constant.is_some() && constant == func.constant(other)
}

/// The range of a result that does not wrap.
fn combine(op: IntBinary, a: Range, b: Range, has_constant: bool) -> Option<Range> {
    Some(match op {
        IntBinary::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
        IntBinary::Sub => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
        IntBinary::Mul => {
            let products = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
            let mut range = (i64::MAX, i64::MIN);
            for (x, y) in products {
                let product = x.checked_mul(y)?;
                range = (range.0.min(product), range.1.max(product));
            }
            range
        }
        IntBinary::And if a.0 == a.1 && b.0 == b.1 => (a.0 & b.0, a.0 & b.0),
        IntBinary::Or if a.0 == a.1 && b.0 == b.1 => (a.0 | b.0, a.0 | b.0),
        IntBinary::Xor if a.0 == a.1 && b.0 == b.1 => (a.0 ^ b.0, a.0 ^ b.0),
        IntBinary::And if b.0 >= 0 && has_constant => (0, if a.0 >= 0 { a.1.min(b.1) } else { b.1 }),
        IntBinary::And if a.0 >= 0 => (0, a.1),
        IntBinary::Or | IntBinary::Xor if a.0 >= 0 && b.0 >= 0 => {
            let bits = 64 - (a.1 | b.1).leading_zeros();
            (0, ((1u64 << bits) - 1) as i64)
        }
        IntBinary::MinS => (a.0.min(b.0), a.1.min(b.1)),
        IntBinary::MaxS => (a.0.max(b.0), a.1.max(b.1)),
        IntBinary::MinU if a.0 >= 0 && b.0 >= 0 => (a.0.min(b.0), a.1.min(b.1)),
        IntBinary::MaxU if a.0 >= 0 && b.0 >= 0 => (a.0.max(b.0), a.1.max(b.1)),
        // As an unsigned number, one that may be negative may be greater than any that is not.
        IntBinary::MinU if a.0 >= 0 => (0, a.1),
        IntBinary::MinU if b.0 >= 0 => (0, b.1),
        IntBinary::RemU if b.0 > 0 => (0, b.1 - 1),
        IntBinary::DivU if a.0 >= 0 && b.0 > 0 => (0, a.1),
        _ => return None,
    })
}

pub(crate) fn signed_limits(ty: Type) -> Range {
    (sign_extended(1 << (ty.bits() - 1), ty.bits()), (ty.mask() >> 1) as i64)
}
