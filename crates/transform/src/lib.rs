//! Passes and analyses over the SIMT IR, on the way from one thread's view to code for the 32 lanes of a warp.
//!
//! A pass changes a function, and its file says first what holds afterwards; an analysis is plain data. [`prepare()`] runs what every kernel goes
//! through, in order. Around it, `codegen` chooses how the kernel is to run and reads the analyses.
//!
//! **Calls**, before all else:
//! * [`targets`]: calls through pointers become choices among the functions they may lead to;
//! * [`inline`]: device functions become part of their callers;
//! * [`routines`]: functions that recurse become parts of the kernel that threads jump to.
//!
//! **What `prepare` runs**, in this order:
//! * [`traps`], [`simplify`], [`disjoint`], [`cancel`], [`decide`], [`selections`]: clean-ups, what the launch's shape decides, and short branches;
//! * [`halves`](mod@halves), [`pairs`](mod@pairs), `words`: parts of a register are computed with where they are; `bytes`: words read byte by byte are read at once;
//! * [`narrow`](mod@narrow): integers have as few bits as they need;
//! * [`normalize`](mod@normalize): the normal form, with loops that have one entry;
//! * [`nan`], [`zeros`]: the bits of NaNs and the signs of zeros, where either may be `seen`;
//! * [`lcssa`], [`drift`]: how values leave loops, and how addresses move on in them.
//!
//! **What it finds**, which is in [`Prepared`]:
//! * [`loops`], [`sync`], [`linearize`]: loops, where lanes meet again, and the order of blocks for lanes that part;
//! * [`shapes`]: how a value differs between lanes, by what is known of numbers ([`facts`]); `columns`: what the rows of a block have in common;
//! * [`poll`], [`late`], [`wanted`], [`unread`], `quiet`, [`lane_by_lane`]: loops that wait, atomics that can, lanes whose values nobody wants,
//!   parameters that only lanes read that came one way, floats that are no signalling NaNs, and how local memory lies.
//!
//! **Lanes that rely on each other**:
//! * [`in_step`]: whether the lanes of a warp may run in step;
//! * [`dispatch`](mod@dispatch): if not, the kernel is turned inside out, and each lane has a place of its own;
//! * [`abreast`]: warps that read what others overwrite without a barrier between.
//!
//! **How a block runs**:
//! * [`gang`]: several warps as one, or one in strips, for which `chains` says what a kernel waits for; `singly`: lanes one at a time;
//! * [`stride`], [`slope`]: warps in turns in loops over the grid, and how values change from block to block;
//! * [`turned`](mod@turned): blocks as if they lay on their side; [`permuted`]: lanes that lie in runs in another order; [`tiled`]: blocks that load the same as those beside and below them.
//!
//! **Code for usual warps beside the code for any**:
//! * [`within`], with `rows`, `rejoined`: where indices are bounded, numbers divided into rows, or loops left by lanes one by one;
//! * `guards`: the elements of a lane in a row under one test; `reroll`: loops that compilers unrolled, as one again;
//! * [`stragglers`]: the few lanes that stay longest in a loop go on one by one.
//!
//! **What emission asks when it gets there**:
//! * [`packs`]: values loaded together that stay together; [`held`]: shared memory that registers can stand for;
//! * [`places`]: values that can be kept in one place; [`retrace`]: kernels that go the same way whenever they run;
//! * [`far`]: loads that loops repeat far away.

pub mod abreast;
mod bytes;
pub mod cancel;
mod chains;
mod columns;
pub mod decide;
pub mod disjoint;
pub mod dispatch;
pub mod drift;
pub mod facts;
pub mod far;
pub mod gang;
mod guards;
pub mod halves;
pub mod held;
pub mod in_step;
pub mod inline;
pub mod lane_by_lane;
pub mod late;
pub mod lcssa;
pub mod linearize;
pub mod loops;
pub mod nan;
pub mod narrow;
pub mod normalize;
pub mod packs;
pub mod pairs;
pub mod permuted;
pub mod places;
pub mod poll;
pub mod prepare;
mod quiet;
mod rejoined;
mod reroll;
pub mod retrace;
pub mod routines;
mod rows;
mod seen;
pub mod selections;
pub mod shapes;
pub mod simplify;
mod singly;
pub mod slope;
pub mod stragglers;
pub mod stride;
pub mod sync;
pub mod targets;
pub mod tiled;
pub mod traps;
pub mod turned;
pub mod unread;
pub mod wanted;
pub mod within;
mod words;
pub mod zeros;

pub use linearize::Linear;
pub use loops::{Irreducible, Loop, LoopId, Loops};
pub use prepare::{Prepared, prepare, prepare_kernel};
pub use shapes::{Assumption, Check, LaneShape, Numbers, Offsets, Shapes};
pub use unread::Unread;
pub use wanted::Wanted;
