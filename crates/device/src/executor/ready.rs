//! What launches of one kernel have in common.

use std::sync::{Arc, Weak};

use kernel_abi::{CompiledKernel, Shape};

use super::{Locate, Profile, Replay};
use crate::Context;
use crate::domain::Domain;
use crate::module::Module;

/// A kernel made ready for launches of one shape in one module: made once, so that a launch need not put it together.
pub struct Ready {
    /// What it was compiled for.
    pub shape: Shape,
    /// The code.
    pub kernel: Arc<dyn CompiledKernel>,
    /// The kernel's name, for reports.
    pub name: Arc<str>,
    /// For reports.
    pub locate: Option<Arc<Locate>>,
    /// For reports.
    pub replay: Option<Arc<Replay>>,
    /// It is a kernel of the program, whose time counts as the device's.
    pub is_kernel: bool,
    /// Of the kernel.
    pub profile: Arc<Profile>,
    /// Addresses of the variables that the kernel names.
    pub globals: Box<[u64]>,
    /// Of the context.
    pub(crate) domain: Arc<Domain>,
    pub(crate) context: Weak<Context>,
    pub(crate) module: Weak<Module>,
}
