//! The SIMT IR.
