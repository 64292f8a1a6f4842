//! CUDA's Driver API, `libcuda.so.1`.
//!
//! [`api`] holds the entry points, one file per heading of the manual: each converts its arguments, calls the
//! virtual device and returns. The other modules are what they stand on:
//!
//! * what stands behind handles ([`handle`]): [`contexts`], [`green`], [`modules`], [`libraries`], [`functions`], [`links`], [`streams`], [`pools`],
//!   [`arrays`], [`texture_objects`], [`texture_references`], [`external`], [`graphs`];
//! * what the manual's structures say: [`transfers`], [`words`], [`node_work`], [`parameters`], [`array_shapes`], [`formats`], [`texture_views`],
//!   [`images`], [`jit`];
//! * what the library keeps: [`platform`], each thread's [`stack`] of contexts, [`log`], [`coredump`];
//! * what it says of the device: [`attributes`];
//! * the C side: [`shim`], [`error`], [`exports`], [`stubs`]. What the table `cuda-abi/functions.in` calls missing is a generated stub
//!   that answers `CUDA_ERROR_NOT_SUPPORTED`.
//!
//! State lives in statics and is never dropped: programs call the driver from their exit handlers.

pub mod api;
mod array_shapes;
mod arrays;
mod attributes;
mod contexts;
mod coredump;
mod error;
mod exports;
mod external;
mod formats;
mod functions;
mod graphs;
mod green;
mod handle;
mod images;
mod jit;
mod libraries;
mod links;
mod log;
mod modules;
mod node_work;
mod parameters;
mod platform;
mod pools;
mod shim;
mod stack;
mod streams;
mod stubs;
mod texture_objects;
mod texture_references;
mod texture_views;
mod transfers;
mod words;
