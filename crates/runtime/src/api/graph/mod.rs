//! Graph management. Graphs, their nodes and most descriptions of nodes are the driver's own.

pub mod any_node;
pub mod capture;
pub mod copy_nodes;
pub mod execution;
pub mod kernel_nodes;
pub mod memory;
pub mod nodes;
pub mod semaphores;
pub mod structure;
pub mod user_objects;
