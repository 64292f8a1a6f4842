//! Runs PTX kernels on every back end and compares.
//!
//! The APIs are not involved, and of the device only its textures: [`machine`] provides a block's memory and calls a back end
//! directly, so that a wrong result here is the compiler's or the interpreter's. [`case`] reads tests that carry their launches and expected
//! output in comments; [`golden`] replays what the hardware answered; [`driver`] asks it.

pub mod agreement;
pub mod asynchronous;
pub mod backend;
pub mod case;
pub mod driver;
pub mod fuzz;
pub mod golden;
pub mod known;
pub mod machine;
pub mod module;
pub mod products;
pub mod support;
pub mod texture;
