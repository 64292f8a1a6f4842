//! Emission of SIMD code: one LLVM value for the 32 lanes of a warp, or for those of a gang's warps or of a strip of one (`transform::gang`).
//! What only warps do has 32.
//!
//! The frame:
//! * [`entry`][]: the loops over blocks and warps;
//! * [`together`][]: the loop over the warps of a block and its barriers;
//! * [`turns`][]: warps that take turns;
//! * [`wraps`][], [`bounded`][]: tests before any block runs, of each warp and of all;
//! * [`call`][]: device functions that are not inlined;
//! * [`shared`][]: functions called from many places;
//! * [`host`][]: faults and services of the host.
//!
//! Control flow and values:
//! * [`function`][]: control flow, masks, and where values are kept;
//! * [`edges`][]: what goes from block to block;
//! * [`full`][]: code for all lanes beside the code for some;
//! * [`pieces`][]: control flow inside a block;
//! * [`few`][]: few lanes that go on one after another;
//! * [`suspend`][]: barriers;
//! * [`slots`][]: stack memory for values that several blocks use;
//! * [`cell`][]: values that wait in the warp's state;
//! * [`packed`][]: values that stay as they lie in memory.
//!
//! Instructions:
//! * [`value`][]: those that compute from their operands; thread indices;
//! * [`unflushed`][]: operations that keep subnormals where the processor flushes;
//! * [`warp`][]: exchange between lanes;
//! * [`matrix`][]: products of matrices;
//! * [`texture`][]: textures and surfaces;
//! * [`bulk`][]: copies of blocks of memory;
//! * [`mbarrier`][]: barriers in memory;
//! * [`stack`][]: stack memory.
//!
//! Loads and stores:
//! * [`memory`][]: by the shape of their addresses;
//! * [`address`][]: where the lanes of an access are;
//! * [`mark`][]: what else is known of it;
//! * [`alignment`][]: accesses at odd addresses;
//! * [`ahead`][]: tests of accesses before code for all lanes;
//! * [`apart`][]: accesses that may pass each other;
//! * [`joined`][]: accesses to neighbours;
//! * [`own_rows`][]: loads of some elements in a row for each lane;
//! * [`grouped`][]: lanes in groups that lie side by side;
//! * [`permuted`][]: lanes that lie in runs of memory in another order than theirs;
//! * [`tile`][]: accesses of a tile by its columns;
//! * [`copied`][]: rows that go from global to shared memory;
//! * [`held`][]: shared memory that registers stand for;
//! * [`lane_by_lane`][]: local memory that lies as the lanes do;
//! * [`regular`][]: accesses that turn out to be consecutive;
//! * [`near`][]: loads that turn out to be near each other;
//! * [`two_places`][]: lanes that are at one of two places;
//! * [`indexed`][]: gathers and scatters by indices;
//! * [`each`][]: scattered accesses, one lane after another;
//! * [`table`][]: bytes out of tables that registers hold;
//! * [`exact`][]: accesses at addresses that wrap between lanes;
//! * [`masked`][]: accesses by some lanes;
//! * [`passing`][]: stores that pass by the caches;
//! * [`fetch`][]: memory asked for before it is read.
//!
//! Atomics:
//! * [`atomic`][]: lane by lane, or the whole warp at once;
//! * [`adjacent`][]: those of neighbours;
//! * [`late`][]: those that the host keeps for later.

mod address;
mod adjacent;
mod ahead;
mod alignment;
mod apart;
mod atomic;
mod bounded;
mod bulk;
mod call;
mod cell;
mod copied;
mod each;
mod edges;
mod entry;
mod exact;
mod fetch;
mod few;
mod full;
mod function;
mod grouped;
mod held;
mod host;
mod indexed;
mod joined;
mod lane_by_lane;
mod late;
mod mark;
mod masked;
mod matrix;
mod mbarrier;
mod memory;
mod near;
mod own_rows;
mod packed;
mod passing;
mod permuted;
mod pieces;
mod regular;
mod shared;
mod slots;
mod stack;
mod suspend;
mod table;
mod texture;
mod tile;
mod together;
mod turns;
mod two_places;
mod unflushed;
mod value;
mod warp;
mod wraps;

pub use unflushed::keeps_subnormals;

use std::cell::RefCell;

use kernel_abi::{AlignedParam, CompileError, Shape, Tier};
use simt_ir::verify::verify_function;
use simt_ir::{FuncRef, Function, Op, Program, SourceLoc, Syscall};
use transform::Prepared;
use transform::gang::{self, Choice};
use transform::turned;

use crate::llvm::{self, Builder, Context, Type};
use crate::math::Lowering;
use crate::target::{Level, Machine};

/// Lanes of a warp.
const LANES: u32 = kernel_abi::WARP;

/// What all functions of a module share.
#[derive(Clone, Copy)]
struct Unit<'a, 'c> {
    b: &'a Builder<'c>,
    program: &'a Program,
    shape: &'a Shape,
    machine: &'a Machine,
    types: Types<'c>,
    raise: llvm::Function<'c>,
    /// Lanes of a vector: those of a warp, or of a gang.
    lanes: u32,
    /// Device functions called so far.
    callees: &'a RefCell<Vec<(FuncRef, llvm::Function<'c>)>>,
    /// The processor flushes subnormals.
    flushing: bool,
    /// Parameters taken to be multiples so far.
    aligned: &'a alignment::Trusted,
}

/// The types used most.
#[derive(Clone, Copy)]
struct Types<'c> {
    bit: Type<'c>,
    i32: Type<'c>,
    i64: Type<'c>,
    ptr: Type<'c>,
    /// One bit a lane.
    mask: Type<'c>,
}

impl<'a, 'c> Unit<'a, 'c> {
    fn context(&self) -> &'c Context {
        self.b.context()
    }

    /// What the launch calls an axis of blocks or threads.
    fn axis(&self, axis: u8) -> u8 {
        turned::other(axis, self.shape.turned)
    }

    /// Lanes that lie in one row of the block.
    fn row_lanes(&self) -> u32 {
        self.shape.row_lanes()
    }

    /// The same of the first lanes alone, some rows.
    fn of_first(mut self, lanes: u32) -> Unit<'a, 'c> {
        self.lanes = lanes;
        self.types.mask = self.types.bit.vector(self.lanes);
        self
    }

    /// Rows of the block that the lanes lie in.
    fn rows(&self) -> u32 {
        self.lanes / self.row_lanes()
    }

    /// The number of the lanes' first warp, of `lanes` lanes each, as the index of its first thread.
    fn first_thread(&self, warp: llvm::Value<'c>) -> llvm::Value<'c> {
        self.b.shl(warp, self.types.i32.int_const(self.lanes.trailing_zeros().into()))
    }

    /// Whether any function of the program may fail an assertion.
    fn may_assert(&self) -> bool {
        let functions = self.program.functions.iter();
        let mut insts = functions.flat_map(|func| {
            func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| &func.inst(*inst).op)
        });
        insts.any(|op| *op == Op::Syscall(Syscall::AssertFail))
    }

    /// The warp that a gang begins with, or that a strip is of, by the gang's or the strip's number.
    fn first_warp(&self, number: llvm::Value<'c>) -> llvm::Value<'c> {
        let first = self.b.shl(number, self.gang_bits());
        self.b.lshr(first, self.types.i32.int_const(self.shape.strips.trailing_zeros().into()))
    }

    /// By how many bits the number of a gang is shifted to be that of its first warp.
    fn gang_bits(&self) -> llvm::Value<'c> {
        self.types.i32.int_const(self.shape.gang.trailing_zeros().into())
    }

    /// The indices of the lanes, as integers of this type.
    fn lane_indices(&self, ty: Type<'c>) -> llvm::Value<'c> {
        ty.int_vector(&(0..u64::from(self.lanes)).collect::<Vec<_>>())
    }

    /// Bit i of `bits` as lane i of a mask.
    fn int_to_mask(&self, bits: llvm::Value<'c>) -> llvm::Value<'c> {
        let b = self.b;
        let lanes = bits.ty().scalar_bits();
        if self.machine.cpu().level() >= Level::Avx512 || !lanes.is_multiple_of(8) {
            return b.int_to_mask(bits);
        }
        // Without registers for masks LLVM would take the bits one by one.
        let bytes = b.bitcast(bits, self.context().int(8).vector(lanes / 8));
        let own: Vec<i32> = (0..lanes as i32).map(|lane| lane / 8).collect();
        let bytes = b.shuffle(bytes, bytes, &own);
        let bit_of: Vec<u64> = (0..lanes).map(|lane| 1 << (lane % 8)).collect();
        let bit = b.and(bytes, bytes.ty().int_vector(&bit_of));
        b.icmp(llvm::IntPredicate::Ne, bit, bit.ty().zero())
    }

    fn math(&self) -> Lowering<'a, 'c> {
        Lowering::new(self.b, self.machine.cpu()).flushing(self.flushing)
    }
}

/// What the caller of a kernel's code must know.
pub struct Emitted {
    /// The bytes of state that each warp keeps while suspended, if the kernel has suspension points.
    pub state_bytes: Option<u32>,
    /// Its blocks may wait for each other.
    pub waits: bool,
    /// See [`KernelInfo::may_wait`](kernel_abi::KernelInfo::may_wait).
    pub may_wait: bool,
    /// Warps of a block that run as one.
    pub gang: u32,
    /// See [`KernelInfo::retraced`](kernel_abi::KernelInfo::retraced).
    pub retraced: bool,
    /// See [`KernelInfo::tiled`](kernel_abi::KernelInfo::tiled).
    pub tiled: bool,
    /// See [`KernelInfo::walks`](kernel_abi::KernelInfo::walks).
    pub walks: bool,
    /// See [`KernelInfo::turned`](kernel_abi::KernelInfo::turned).
    pub turned: u8,
    /// See [`KernelInfo::aligned`](kernel_abi::KernelInfo::aligned).
    pub aligned: Vec<AlignedParam>,
}

/// Emits a kernel and all it calls.
pub fn module(
    b: &Builder<'_>,
    program: &Program,
    shape: &Shape,
    machine: &Machine,
    flushing: bool,
    choice: Choice,
) -> Result<Emitted, CompileError> {
    if let Some(loc) = call::barrier_in_function(program) {
        return Err(unsupported(suspend::BARRIER_IN_FUNCTION, loc));
    }
    let mut entry = program.kernel().clone();
    transform::abreast::keep(&mut entry);
    let context = b.context();
    let registers = machine.cpu().registers();
    let choose = |kernel: &Function, shape: &Shape| {
        // Lanes of which some may be in one function and some in another go their own ways.
        if kernel.waits_at.is_some() {
            return None;
        }
        let within = match machine.tier() {
            Tier::Full => transform::within::split(kernel, shape),
            Tier::Quick | Tier::Patient => None,
        };
        gang::choose(within.as_ref().unwrap_or(kernel), shape, registers, choice)
    };
    let mut chosen = choose(&entry, shape);
    if machine.tier() == Tier::Full
        && let Some((own, prepared)) = &chosen
        && let Some((turned, shape)) = turned::turned(&entry, shape, prepared, own)
        && let Some(better) = choose(&turned, &shape)
    {
        chosen = Some(better);
    }
    let (shape, kernel) = match chosen {
        Some(chosen) => chosen,
        None => {
            let kernel = transform::prepare_kernel(&entry, shape).map_err(|obstacle| {
                unsupported(&format!("{}, in a kernel of this size,", obstacle.what), obstacle.loc)
            })?;
            (*shape, kernel)
        }
    };
    let kernel = match machine.tier() {
        Tier::Full => kernel.with_stragglers_apart(&shape),
        Tier::Quick | Tier::Patient => kernel,
    };
    if cfg!(debug_assertions) {
        verify_function(program, &kernel.func).expect("what is prepared keeps the rules of the IR");
    }
    let shape = &shape;
    let types = Types {
        bit: context.int(1),
        i32: context.int(32),
        i64: context.int(64),
        ptr: context.ptr(),
        mask: context.int(1).vector(shape.lanes()),
    };
    let raise = host::raise_function(b);
    let callees = RefCell::new(Vec::new());
    let aligned = alignment::Trusted::new(&kernel, shape, program.param_bytes);
    let lanes = shape.lanes();
    let unit = Unit {
        b,
        program,
        shape,
        machine,
        types,
        raise,
        lanes,
        callees: &callees,
        flushing,
        aligned: &aligned,
    };
    if kernel.dispatched && calls_where_lanes_meet(program) {
        let what = "a meeting of threads in a function that recurses or is called through a pointer, in a kernel whose threads wait,";
        return Err(unsupported(what, SourceLoc::default()));
    }
    let (state_bytes, blocks) = if suspends(&kernel) && !shape.block_is_gang() {
        (Some(entry::warp_entry(unit, &kernel)?), entry::BlocksEntry::default())
    } else {
        (None, entry::blocks_entry(unit, &kernel)?)
    };
    let entry::BlocksEntry { retraced, walks } = blocks;
    call::functions(unit)?;
    let waits = kernel.dispatched || !kernel.polling.yields.is_empty();
    let tiled = !waits && transform::tiled::is_tiled(&kernel);
    let may_wait = kernel.polling.may_hide;
    let (gang, turned, aligned) = (shape.gang.into(), shape.turned, aligned.params());
    Ok(Emitted { state_bytes, waits, may_wait, gang, retraced, tiled, walks, turned, aligned })
}

fn prepare(func: &Function, is_kernel: bool, shape: &Shape) -> Result<Prepared, CompileError> {
    transform::prepare(func.clone(), is_kernel, shape).map_err(|irreducible| {
        let line = func.block(irreducible.0).term_loc.ptx_line;
        CompileError::unsupported(format!(
            "{}: control flow enters a loop in more than one place, near line {line}",
            func.name
        ))
    })
}

/// Whether a kernel calls functions, and in some of them lanes may wait for each other: such a function runs in step.
fn calls_where_lanes_meet(program: &Program) -> bool {
    let ops = |func: &Function| -> Vec<Op> {
        func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| func.inst(*inst).op).collect()
    };
    let is_call = |op: &Op| matches!(op, Op::Call(_) | Op::CallIndirect(_));
    if !ops(program.kernel()).iter().any(is_call) {
        return false;
    }
    let callees = transform::targets::callees(program);
    let (mut called, mut work) = (vec![false; callees.len()], vec![0]);
    while let Some(at) = work.pop() {
        let new = callees[at].iter().map(|callee| callee.index());
        work.extend(new.filter(|callee| !std::mem::replace(&mut called[*callee], true)).collect::<Vec<_>>());
    }
    let meets = |at: usize| ops(&program.functions[at]).iter().any(|op| op.is_convergent() && !is_call(op));
    (0..called.len()).any(|at| called[at] && meets(at))
}

fn suspends(kernel: &Prepared) -> bool {
    let mut insts = kernel.cfg.order().iter().flat_map(|block| kernel.func.block(*block).insts.iter());
    !kernel.polling.yields.is_empty()
        || insts.any(|inst| transform::abreast::suspends(&kernel.func.inst(*inst).op))
}

fn unsupported(what: &str, loc: SourceLoc) -> CompileError {
    CompileError::unsupported(format!("{what} is not supported in SIMD code (line {})", loc.ptx_line))
}
