//! Operations: what one instruction does in one thread, or among the threads of a warp or block.
//!
//! An operation is a primitive when the hardware knows its shape (`fma`, `prmt`, a shuffle) or when vector code for
//! it is better than for its expansion. Everything else PTX has is an expansion into these (see `ptx::isa`).
//! The scalar meaning of every pure operation is [`crate::eval`].

use crate::Type;
use crate::bulk::BulkOp;
use crate::device_runtime::RuntimeFunction;
use crate::function::{Cell, FuncRef, GlobalRef, SigRef, Signature};
use crate::matrix::MatrixMultiply;
use crate::special::SpecialReg;
use crate::texture::TextureOp;

/// IEEE rounding direction of an inexact result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Rounding {
    /// To nearest, ties to even (`.rn`).
    #[default]
    Nearest,
    /// Towards zero (`.rz`).
    Zero,
    /// Towards minus infinity (`.rm`).
    Down,
    /// Towards plus infinity (`.rp`).
    Up,
    /// To nearest, ties away from zero (`.rna`).
    NearestAway,
}

/// Modifiers of floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct FloatMode {
    /// Direction of rounding.
    pub round: Rounding,
    /// Subnormal inputs and results become zero of the same sign (f32 only).
    pub ftz: bool,
    /// Clamp to [0, 1]; NaN becomes +0.
    pub sat: bool,
    /// The product may be fused with a following addition (PTX `mul`/`add` without a rounding modifier).
    pub contract: bool,
}

/// Two integers in, one of the same type out. `Pred` operands are allowed for `And`, `Or`, `Xor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntBinary {
    /// Wrapping sum.
    Add,
    /// Wrapping difference.
    Sub,
    /// Low half of the product.
    Mul,
    /// High half of the signed product.
    MulHiS,
    /// High half of the unsigned product.
    MulHiU,
    /// Signed quotient towards zero. By zero: all ones. MIN / -1 = MIN.
    DivS,
    /// Unsigned quotient. By zero: all ones.
    DivU,
    /// Signed remainder, sign of the dividend. By zero: all ones. MIN % -1 = 0.
    RemS,
    /// Unsigned remainder. By zero: all ones.
    RemU,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Smaller, signed.
    MinS,
    /// Smaller, unsigned.
    MinU,
    /// Larger, signed.
    MaxS,
    /// Larger, unsigned.
    MaxU,
    /// Sum clamped to the signed range.
    AddSatS,
    /// Difference clamped to the signed range.
    SubSatS,
}

/// A value shifted by an `I32` amount, read unsigned. Amounts of the width or more give what an unbounded shift
/// would: zero, or all sign bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shift {
    /// Left.
    Left,
    /// Right, zeros in.
    RightU,
    /// Right, sign bits in.
    RightS,
}

/// One integer in. The result has the operand's type, but for counts, which are `I32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntUnary {
    /// Bitwise complement; `Pred` allowed.
    Not,
    /// Two's complement negation.
    Neg,
    /// Absolute value; MIN stays MIN.
    Abs,
    /// Bits in reverse order.
    BitReverse,
    /// Number of leading zeros, as `I32`; the width for 0.
    LeadingZeros,
    /// Number of ones, as `I32`.
    PopCount,
}

/// Integer comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the usual ones: S signed, U unsigned")]
pub enum IntCmp {
    Eq,
    Ne,
    LtS,
    LeS,
    GtS,
    GeS,
    LtU,
    LeU,
    GtU,
    GeU,
}

impl IntCmp {
    /// The relation between the operands in the other order.
    pub fn mirrored(self) -> IntCmp {
        match self {
            IntCmp::Eq | IntCmp::Ne => self,
            IntCmp::LtS => IntCmp::GtS,
            IntCmp::GtS => IntCmp::LtS,
            IntCmp::LeS => IntCmp::GeS,
            IntCmp::GeS => IntCmp::LeS,
            IntCmp::LtU => IntCmp::GtU,
            IntCmp::GtU => IntCmp::LtU,
            IntCmp::LeU => IntCmp::GeU,
            IntCmp::GeU => IntCmp::LeU,
        }
    }

    /// The relation that holds where this one does not.
    pub fn inverse(self) -> IntCmp {
        match self {
            IntCmp::Eq => IntCmp::Ne,
            IntCmp::Ne => IntCmp::Eq,
            IntCmp::LtS => IntCmp::GeS,
            IntCmp::GeS => IntCmp::LtS,
            IntCmp::LeS => IntCmp::GtS,
            IntCmp::GtS => IntCmp::LeS,
            IntCmp::LtU => IntCmp::GeU,
            IntCmp::GeU => IntCmp::LtU,
            IntCmp::LeU => IntCmp::GtU,
            IntCmp::GtU => IntCmp::LeU,
        }
    }

    /// The comparison of unsigned numbers, which answers the same where neither is negative.
    pub fn unsigned(self) -> IntCmp {
        match self {
            IntCmp::LtS => IntCmp::LtU,
            IntCmp::LeS => IntCmp::LeU,
            IntCmp::GtS => IntCmp::GtU,
            IntCmp::GeS => IntCmp::GeU,
            cmp => cmp,
        }
    }
}

/// Relation of a floating-point comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the usual ones")]
pub enum FloatRel {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Neither operand is NaN, whatever their order (`num`).
    Ordered,
    /// Some operand is NaN (`nan`).
    Unordered,
}

/// Floating-point comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatCmp {
    /// The relation asked for.
    pub rel: FloatRel,
    /// The answer when an operand is NaN (the `u` forms: true). Ignored by `Ordered` and `Unordered`.
    pub nan: bool,
    /// Subnormal inputs count as zero.
    pub ftz: bool,
}

/// Two floats in, one out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatBinary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Correctly rounded quotient.
    Div,
}

/// Minimum or maximum; `-0 < +0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MinMax {
    /// Maximum rather than minimum.
    pub max: bool,
    /// Any NaN operand makes the result NaN; otherwise the other operand is the result.
    pub nan: bool,
    /// Subnormal inputs become zero.
    pub ftz: bool,
    /// Compare magnitudes; the sign is the exclusive or of the operands' signs (`.xorsign.abs`).
    pub xorsign_abs: bool,
    /// Of two zeros either may be the result: nobody sees the sign.
    pub any_zero: bool,
    /// Neither operand is a signalling NaN.
    pub quiet: bool,
}

/// One float in, one out, exactly defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatUnary {
    /// Sign flipped. Of a NaN: the canonical NaN for f32 and f16, unchanged for f64.
    Neg,
    /// Sign cleared. NaN as for `Neg`.
    Abs,
    /// Correctly rounded square root.
    Sqrt,
    /// Correctly rounded reciprocal.
    Rcp,
}

/// A function approximated within the bounds of the PTX ISA; the sequence of exact steps is [`crate::approx`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Approx {
    /// 2^x.
    Ex2,
    /// log2 x.
    Lg2,
    /// Sine of radians.
    Sin,
    /// Cosine of radians.
    Cos,
    /// Hyperbolic tangent.
    Tanh,
    /// 1/x.
    Rcp,
    /// 1/sqrt x.
    Rsqrt,
    /// Square root.
    Sqrt,
    /// a/b, two operands (`div.approx`): 0 for b beyond 2^126.
    Div,
    /// a/b over the whole range (`div.full`).
    DivFull,
}

/// A function of the hardware's multifunction unit; its bits are [`crate::mufu`]. Subnormal operands count as zero, and what would
/// be a subnormal result is zero, but for [`Mufu::Tanh`], which returns small operands as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mufu {
    /// 1/x.
    Rcp,
    /// 1/sqrt x.
    Rsqrt,
    /// Square root.
    Sqrt,
    /// log2 x.
    Lg2,
    /// 2^x.
    Ex2,
    /// Sine of turns.
    Sin,
    /// Cosine of turns.
    Cos,
    /// Hyperbolic tangent.
    Tanh,
}

/// Conversion between types; the operand's and the result's types come from the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Convert {
    /// Low bits of an integer. To `Pred`: the lowest bit.
    Trunc,
    /// Zeros on top. From `Pred`: 0 or 1.
    ZExt,
    /// Sign bits on top. From `Pred`: 0 or all ones.
    SExt,
    /// Same bits, other type of the same width.
    Bitcast,
    /// Float to signed integer, clamped; NaN by the hardware's rule (see [`crate::eval`]).
    FloatToS {
        /// Direction of rounding to an integer.
        round: Rounding,
        /// Subnormal input counts as zero.
        ftz: bool,
    },
    /// Float to unsigned integer, clamped.
    FloatToU {
        /// Direction of rounding to an integer.
        round: Rounding,
        /// Subnormal input counts as zero.
        ftz: bool,
    },
    /// Signed integer to float. `sat` clamps to [0, 1].
    SToFloat(FloatMode),
    /// Unsigned integer to float. `sat` clamps to [0, 1].
    UToFloat(FloatMode),
    /// Float to float of another or the same width (then only `ftz`, `sat` act).
    FloatToFloat(FloatMode),
    /// Float rounded to an integral value of the same type (`cvt.rni.f32.f32` and kin).
    RoundToIntegral(FloatMode),
}

/// State space of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Any window: a host address, which may point into the shared or local window of the accessing thread.
    Generic,
    /// Device memory; the address is a host address.
    Global,
    /// Constant memory; the address is a host address.
    Const,
    /// The block's shared window; addresses count from its beginning. `I32` addresses wrap at 2^32.
    Shared,
    /// The thread's local window; addresses count from its beginning. `I32` addresses wrap at 2^32.
    Local,
    /// The kernel's parameters; addresses count from the first. Read only.
    Param,
}

/// Memory ordering of one access (PTX ISA, "Memory Consistency Model").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// No promise.
    #[default]
    Weak,
    /// Relaxed at system scope, and never merged or dropped.
    Volatile,
    /// Relaxed.
    Relaxed,
    /// Acquire.
    Acquire,
    /// Release.
    Release,
    /// Acquire and release.
    AcqRel,
    /// Sequentially consistent (fences).
    SeqCst,
}

/// Who an ordered access synchronises with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[expect(missing_docs, reason = "PTX's scopes by name")]
pub enum Scope {
    Cta,
    Cluster,
    #[default]
    Gpu,
    Sys,
}

/// A memory access: the address operand plus `offset` is the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Window of the address.
    pub space: Space,
    /// Bytes added to the address operand.
    pub offset: i64,
    /// Ordering.
    pub order: Order,
    /// Scope of the ordering.
    pub scope: Scope,
    /// Elements of a vector access (1, 2, 4, 8). The address must be a multiple of the whole access. An ordered access
    /// of two `I64` is single-copy atomic as a whole, and an atomic of two is one operation on 128 bits.
    pub lanes: u8,
    /// The location does not change while the kernel runs (`ld.global.nc`, constants, parameters).
    pub invariant: bool,
    /// It may be at any address rather than at a multiple of its size: what a program does byte by byte.
    pub anywhere: bool,
}

impl Access {
    /// A weak scalar access.
    pub const fn weak(space: Space, offset: i64) -> Access {
        let (order, scope) = (Order::Weak, Scope::Gpu);
        Access { space, offset, order, scope, lanes: 1, invariant: false, anywhere: false }
    }
}

/// Read-modify-write of an atomic; the operand's type decides the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// Wrapping integer sum.
    Add,
    /// Float sum, to nearest.
    FAdd {
        /// By the adder of global memory: of f32, subnormals become zero; of f64, a NaN stays as it is, of two the operand's. Without, a NaN of f64
        /// is made quiet, and of two memory's counts.
        ftz: bool,
    },
    /// Float minimum, NaN-dropping (f16, bf16).
    FMin,
    /// Float maximum, NaN-dropping (f16, bf16).
    FMax,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Exchange.
    Exch,
    /// Signed minimum.
    MinS,
    /// Unsigned minimum.
    MinU,
    /// Signed maximum.
    MaxS,
    /// Unsigned maximum.
    MaxU,
    /// `old >= b ? 0 : old + 1`, unsigned.
    Inc,
    /// `old == 0 || old > b ? b : old - 1`, unsigned.
    Dec,
}

/// Which lane a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PTX's modes by name")]
pub enum ShuffleMode {
    Idx,
    Up,
    Down,
    Bfly,
}

impl ShuffleMode {
    /// The lane that each lane reads for operands `lane` and `clamp`, and whether that is in range; its own where not (PTX ISA, `shfl.sync`).
    pub fn sources(self, lane: u32, clamp: u32) -> [(u32, bool); 32] {
        let (lane, bound, segment) = ((lane & 31) as i32, clamp as i32 & 31, (clamp >> 8 & 31) as i32);
        std::array::from_fn(|at| {
            let at = at as i32;
            let max = at & segment | bound & !segment;
            let (source, valid) = match self {
                ShuffleMode::Up => (at - lane, at - lane >= max),
                ShuffleMode::Down => (at + lane, at + lane <= max),
                ShuffleMode::Bfly => (at ^ lane, at ^ lane <= max),
                ShuffleMode::Idx => {
                    let source = at & segment | lane & !segment;
                    (source, source <= max)
                }
            };
            if valid { (source as u32, true) } else { (at as u32, false) }
        })
    }
}

/// Warp vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PTX's modes by name")]
pub enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}

/// What a barrier does besides counting arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierKind {
    /// Wait for everyone (`bar.sync`).
    Sync,
    /// Announce, and go on (`bar.arrive`).
    Arrive,
    /// Wait; result: the number of threads whose predicate held.
    RedPopc,
    /// Wait; result: whether all predicates held.
    RedAnd,
    /// Wait; result: whether any predicate held.
    RedOr,
}

/// Most blocks of a cluster.
pub const MAX_CLUSTER: u32 = 16;

/// Bytes from the shared window of one block of a cluster to that of the next. A program's shared addresses are distances from the
/// window of the cluster's first block, so they mean the same to every block, as on the hardware, and the bits above the stride are the
/// rank of the block. The operations of this crate know the own window alone: what goes from one to the other is arithmetic with the rank,
/// and a generic address of another block lies whole strides away. Addresses that name a rank beyond the cluster lie past all windows and
/// fault.
pub const CLUSTER_STRIDE: u64 = 1 << 24;

/// Bytes at the start of each shared window that are the system's: a program's variables begin behind them, as on the hardware.
/// Code for a whole system may use them: the groups of more than one warp that CUDA's headers offer keep their barriers there.
pub const RESERVED_SHARED: u32 = 1024;

/// How many of them hold something, what `%reserved_smem_offset_end` says.
pub const RESERVED_SHARED_USED: u32 = 288;

/// How the hardware takes an instruction that it does not carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// As an illegal instruction.
    Illegal,
    /// As a misaligned address.
    Misaligned,
    /// As a failure: a count of a barrier in memory leaves its range.
    BarrierCount,
    /// As what the program asked for: `trap`.
    Trap,
    /// As a call of what is no function, at this address.
    NoFunction,
}

/// One half of the barrier of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterBarrier {
    /// Announce, and go on.
    Arrive,
    /// Wait until all threads of the cluster that have not ended have arrived as often as this one.
    Wait,
}

/// A service of the host. Operands are generic addresses and integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syscall {
    /// `vprintf(format, arguments)` → I32.
    Vprintf,
    /// `__assertfail(message, file, line I32, function, char size I64)`; does not return.
    AssertFail,
    /// `malloc(size I64)` → I64, 0 when the heap is exhausted.
    Malloc,
    /// `free(address)`.
    Free,
    /// What the runtime offers to kernels.
    Runtime(RuntimeFunction),
}

impl Syscall {
    /// Its parameters and results.
    pub fn signature(self) -> Signature {
        use Type::{I32, I64};
        let (params, result): (&[Type], Option<Type>) = match self {
            Syscall::Vprintf => (&[I64, I64], Some(I32)),
            Syscall::AssertFail => (&[I64, I64, I32, I64, I64], None),
            Syscall::Malloc => (&[I64], Some(I64)),
            Syscall::Free => (&[I64], None),
            Syscall::Runtime(function) => (function.params(), Some(function.result())),
        };
        Signature { params: params.to_vec(), results: result.into_iter().collect() }
    }
}

/// An operation. Operand and result types are listed as `(operands) → results`; `T` is any type the text allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `() → T`: the constant whose bits these are.
    Const(u64),
    /// `(T, T) → T`.
    Int(IntBinary),
    /// `(T) → T` or `I32`.
    IntUnary(IntUnary),
    /// `(T, I32) → T`.
    Shift(Shift),
    /// `(lo I32, hi I32, amount I32) → I32`: 32 bits out of `hi:lo`. Left takes the high half after shifting left.
    FunnelShift {
        /// Left rather than right.
        left: bool,
        /// Amount modulo 32 rather than clamped to 32.
        wrap: bool,
    },
    /// `(a I32, b I32, selector I32) → I32`: `prmt` in its default mode.
    Prmt,
    /// `(a I32, b I32, c I32) → I32`: the sum of `c` and the products of each byte of `a` with that of `b` (`dp4a`).
    DotBytes {
        /// The bytes of `a` are signed.
        signed_a: bool,
        /// The bytes of `b` are signed.
        signed_b: bool,
    },
    /// `(a T, b T) → Pred`.
    IntCmp(IntCmp),
    /// `(a T, b T) → Pred`.
    FloatCmp(FloatCmp),
    /// `(Pred, a T, b T) → T`: `a` when the predicate holds.
    Select,
    /// `(T, T) → T`.
    Float(FloatBinary, FloatMode),
    /// `(a T, b T, c T) → T`: a*b+c, rounded once.
    Fma(FloatMode),
    /// `(T, T) → T`.
    MinMax(MinMax),
    /// `(T) → T`.
    FloatUnary(FloatUnary, FloatMode),
    /// `(T) → T`, or `(T, T) → T` for the divisions.
    Approx {
        /// The function.
        func: Approx,
        /// Subnormal inputs and results become zero.
        ftz: bool,
    },
    /// `(T) → T`: F32; F16 and BF16 for `Ex2` and `Tanh`; F64 for `Rcp` and `Rsqrt`, whose low half is neither read nor
    /// computed.
    Mufu(Mufu),
    /// `(T) → T`: a NaN becomes the canonical NaN. Arithmetic already has that meaning in this IR, so this changes
    /// nothing; back ends whose arithmetic leaves another NaN get it put where the difference could be seen.
    CanonNan,
    /// `(Pred) → Pred`: true only where the operand is, and only if it is in all lanes of a warp that execute this together. It may be false
    /// all the same: code chooses by it between two ways to compute one thing.
    Unanimous,
    /// `(T) → T`: the operand of one lane of a warp, the same one for all that execute this together. It may be any: code finds out
    /// whether the others agree, and does another thing if they do not.
    AnyLane,
    /// `(T) → T`: the operand of the first of the lanes that execute this together.
    FirstLane,
    /// `() → Pred`: whether no more than so many lanes execute this together. It may be false all the same: code chooses by it between two ways
    /// to compute one thing.
    FewLanes(u8),
    /// `(T) → U`.
    Convert(Convert),
    /// `() → T`: `Clock64`, `GlobalTimer` and `GridId` are I64, predicates Pred, everything else I32.
    SpecialReg(SpecialReg),
    /// `() → I64`: address of a module variable, a host address.
    GlobalAddr(GlobalRef),
    /// `() → I64`: the token by which [`Op::CallIndirect`] knows the function (see [`crate::Program`]).
    FuncToken(FuncRef),
    /// `() → I64`: start of this function's frame in the thread's local window.
    LocalBase,
    /// `() → I64`: the thread's stack pointer, in the local window. A function begins with the end of its frame, and frames of
    /// functions that it calls lie above the stack pointer.
    StackSave,
    /// `(I64) → ()`: sets the stack pointer, until the function returns. Past the end of the local window it is a
    /// stack overflow.
    StackRestore,
    /// `(T) → ()`: puts a value into the thread's cell. What lives long in few places costs nothing in between there.
    Keep(Cell),
    /// `() → T`: what was put into the thread's cell last, or anything if nothing was.
    Recall(Cell),
    /// `(I64) → I64`: address in a window to generic address.
    ToGeneric(Space),
    /// `(I64) → I64`: generic address to address in a window.
    FromGeneric(Space),
    /// `(I64 generic) → Pred`: whether the address lies in the window.
    IsSpace(Space),
    /// `(address) → T × lanes`.
    Load(Access),
    /// `(address, T × lanes) → ()`.
    Store(Access),
    /// `(address, b T × lanes) → old T × lanes`, or no result (`red`). Two lanes: an exchange of `I64`s.
    Atomic(AtomicOp, Access),
    /// `(address, compare T × lanes, new T × lanes) → old T × lanes`, or no result. Two lanes: `I64`s.
    AtomicCas(Access),
    /// `(address, count I32, bytes I32) → old I64`, or no result: arrivals at a barrier in memory, see [`crate::mbarrier::arrive`].
    /// `→ (old I64, too many Pred)` if lanes arrive together.
    MbarrierArrive {
        /// Those who arrive take part in no later phase.
        drop: bool,
        /// The lanes of a warp that execute it at once arrive at once, in one phase: see [`crate::mbarrier::is_too_many`].
        together: bool,
        /// Where the barrier is.
        access: Access,
    },
    /// A copy of a block of memory by each thread, or a change of a tensor map; operands as [`BulkOp::operands`] says, no result.
    Bulk(BulkOp),
    /// `() → ()`.
    Fence {
        /// `AcqRel` or `SeqCst`.
        order: Order,
        /// Threads it orders.
        scope: Scope,
    },
    /// `(value I32, lane I32, clamp I32, [member mask I32]) → (I32, Pred)`; the fourth operand is there for `.sync`. A lane
    /// that does not take part is read as zero. Compiled code exchanges values of 64 bits too, where lanes and members are known.
    Shuffle(ShuffleMode),
    /// `(Pred, [member mask I32]) → Pred`, `I32` for ballots.
    Vote(VoteMode),
    /// `(value I32 or I64, member mask I32) → I32`: lanes that hold the same value.
    MatchAny,
    /// `(value, member mask) → (I32, Pred)`: the mask if all hold the same value, else 0.
    MatchAll,
    /// `(value I32, member mask I32) → I32`: `Add`, `And`, `Or`, `Xor` and the four minima and maxima only.
    Redux(IntBinary),
    /// `(fragments of a, of b, of c, [metadata]) → (fragments of d)`: see [`crate::matrix`].
    MatrixMultiply(MatrixMultiply),
    /// `() → I32`: lanes that execute this together.
    ActiveMask,
    /// `(member mask I32) → (lane I32, Pred)`: the lowest member is elected.
    Elect,
    /// `(member mask I32) → ()`: waits for the named lanes (`bar.warp.sync`).
    WarpSync,
    /// `(id I32, [threads I32], [Pred]) → ()`, `I32` for popc, `Pred` for and/or. A suspension point.
    Barrier {
        /// What it does.
        kind: BarrierKind,
        /// A thread count operand is there; otherwise the whole block takes part.
        count: bool,
    },
    /// `() → ()`. A suspension point.
    ClusterBarrier(ClusterBarrier),
    /// `(arguments) → results`.
    Call(FuncRef),
    /// `(token I64, arguments) → results`.
    CallIndirect(SigRef),
    /// See [`Syscall`].
    Syscall(Syscall),
    /// `(handle I64, …) → …`: see [`TextureOp`].
    Texture(TextureOp),
    /// `(nanoseconds I32) → ()`.
    Nanosleep,
    /// `() → ()`. A suspension point: the block's other warps come as far first, if they come here.
    GiveWay,
    /// `(whether Pred) → ()`, or `(whether Pred, address I64) → ()`: a thread for which it is true goes no further.
    Refuse(Refusal),
}
