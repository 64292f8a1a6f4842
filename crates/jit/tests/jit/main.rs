//! Tests of the loader and of the back end, on objects made by hand.

mod backend;
mod object;
mod support;
