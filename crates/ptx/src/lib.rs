//! PTX, the text form in which programs reach a device.
//!
//! * [`parse`] reads a text into a [`ast::Module`]; every error it finds carries line, column and the
//!   offending text. Instructions are read generically (opcode, modifiers, operands): which of them exist is
//!   the business of the instruction table alone.
//! * [`isa`] is that table; [`lower::check`] holds a module against it.
//! * [`lower::program`] turns a kernel and the functions it reaches into [`simt_ir`].
//! * [`resolve`] binds the names of a function: registers, variables, labels, symbols.
//!
//! The tree borrows its names from the source text.

pub mod ast;
pub mod directives;
mod error;
mod image;
pub mod isa;
pub mod lexer;
pub mod link;
pub mod lower;
mod names;
mod origin;
mod parser;
mod print;
pub mod provided;
mod reach;
pub mod resolve;
mod span;
pub mod special;
pub mod target;
pub mod tune;
pub mod visit;

pub use ast::Module;
pub use error::{Errors, LoadError, LoadErrorKind};
pub use image::text_of_image;
pub use origin::{Origin, Place};
pub use parser::{Bodies, Options, parse, parse_with};
pub use reach::read_reachable;
pub use span::{LineIndex, Position, Span, position};
