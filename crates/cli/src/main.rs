//! The `anywarp` command.

fn main() {}
