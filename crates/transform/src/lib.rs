//! Passes and analyses over the SIMT IR, on the way from one thread's view to code for the 32 lanes of a warp.
//!
//! Passes change a function and say in their first line what holds afterwards; analyses are plain data.
//! In order of use: [`traps`], [`simplify`], [`cancel`], [`decide`], [`halves`](mod@halves), [`pairs`](mod@pairs), [`narrow`](mod@narrow), [`normalize`], [`zeros`], [`lcssa`], [`drift`], then the analyses [`sync`], [`shapes`] and
//! [`linearize`], which code generation reads, in which lanes values are [`wanted`], which floats are [`quiet`], and whether local memory lies [`lane_by_lane`]. Warps whose reads others overwrite without a barrier keep abreast ([`abreast`]). A kernel whose lanes cannot run in step ([`in_step`]) is turned inside out first
//! ([`dispatch`]). Before all of that, functions are inlined ([`inline`]), those that pointers lead to where they are known ([`targets`]), or become parts of the kernel ([`routines`]). Some kernels run several warps as one ([`gang`]), or warps in turns ([`stride`]), or lanes one at a time (`singly`), and some as if their blocks lay on their side ([`turned`](mod@turned)). What barriers suspend is kept in few places
//! ([`places`]). What is loaded together may stay together ([`packs`]), and
//! what a block keeps for itself in shared memory may stay in registers ([`held`]). Where indices are bounded, or lanes may leave a loop apart from each
//! other, code for warps of which that is not so may stand beside ([`within`]), as for those whose lanes have all elements that are guarded ([`guards`](mod@guards)), as may loops that compilers unrolled, rolled again ([`reroll`]), and loops for the few lanes that stay in them longest ([`stragglers`]). Some have blocks that load the same as others beside and below them
//! ([`tiled`]), and some come to the same fault whenever they run ([`retrace`]).

pub mod abreast;
pub mod cancel;
mod chains;
pub mod decide;
pub mod dispatch;
pub mod drift;
pub mod facts;
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
pub mod wanted;
pub mod within;
mod words;
pub mod zeros;

pub use linearize::Linear;
pub use loops::{Irreducible, Loop, LoopId, Loops};
pub use prepare::{Prepared, prepare, prepare_kernel};
pub use shapes::{Assumption, Check, LaneShape, Numbers, Offsets, Shapes};
pub use wanted::Wanted;
