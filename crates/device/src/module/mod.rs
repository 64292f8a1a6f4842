//! Modules: code and variables of one program in one context.
//!
//! [`Code`] is what a PTX text means, whatever the context: kernels, their compiled forms, the initial values of variables.
//! A [`Module`] is code with variables of its own in a context; a [`Library`] makes one for each context that asks.

mod code;
mod function;
mod image;
mod library;
mod objects;
mod source;
mod variables;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

pub use code::{Code, Hint, Input, Kernel};
pub use function::{Function, FunctionAttribute};
pub use image::{Texts, from_bytes, texts_of, texts_of_objects};
pub use library::Library;
use objects::Objects;
pub use source::{Entry, EntryParam, ParamClass, Tuning};
use variables::Variables;

use crate::texture::{Bound, Reference};
use crate::{Context, Error, Result};

/// A program loaded into a context.
pub struct Module {
    code: Arc<Code>,
    context: Weak<Context>,
    variables: Variables,
    objects: Objects,
    loaded: AtomicBool,
}

/// A variable of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The host may access it too.
    pub managed: bool,
}

impl Module {
    /// Loads code into a context: allocates its variables and gives them their values. Kernels are compiled at their first
    /// launch, or now if the options say so.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; if kernels are compiled now, their errors.
    pub fn load(context: &Arc<Context>, code: Arc<Code>) -> Result<Arc<Module>> {
        Module::load_sharing(context, code, None)
    }

    /// The same, with some variables that are there already.
    fn load_sharing(
        context: &Arc<Context>,
        code: Arc<Code>,
        shared: Option<&Variables>,
    ) -> Result<Arc<Module>> {
        // Code and variables go to the device during the call, which tells what has become of the work before.
        context.notice()?;
        context.domain().output.flush();
        let variables = Variables::load(context, &code, shared)?;
        let objects = Objects::new(context.id(), &code);
        let module = Arc::new(Module {
            code,
            context: Arc::downgrade(context),
            variables,
            objects,
            loaded: AtomicBool::new(true),
        });
        if context.hardware().options.eager {
            let hardware = context.hardware();
            module.code.compile_all(&*hardware.backend, hardware.options.threads)?;
        }
        context.add_module(module.clone());
        Ok(module)
    }

    /// Its code.
    pub fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// Its context.
    pub fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or(Error::ContextIsDestroyed)
    }

    /// Whether it has neither been unloaded nor lost its context.
    pub fn is_loaded(&self) -> bool {
        self.loaded.load(Ordering::Acquire)
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none.
    pub fn function(self: &Arc<Module>, name: &str) -> Result<Arc<Function>> {
        self.check()?;
        let kernel = self.code.kernel(name).ok_or(Error::NotFound)?;
        Ok(Arc::new(Function::new(self, kernel)))
    }

    /// All kernels, in the order of the text.
    pub fn functions(self: &Arc<Module>) -> Result<Vec<Arc<Function>>> {
        self.check()?;
        Ok(self.code.kernels().iter().map(|kernel| Arc::new(Function::new(self, kernel.clone()))).collect())
    }

    /// The variable of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::InvalidValue`] for a texture's.
    pub fn global(&self, name: &str) -> Result<Global> {
        self.check()?;
        let is_texture = || self.objects.texture(name).is_some();
        self.variables
            .find(name)
            .ok_or_else(|| if is_texture() { Error::InvalidValue } else { Error::NotFound })
    }

    /// The texture reference of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none.
    pub fn texture_reference(&self, name: &str) -> Result<Arc<Reference>> {
        self.check()?;
        self.objects.texture(name).ok_or(Error::NotFound)
    }

    /// The surface reference of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none.
    pub fn surface_reference(&self, name: &str) -> Result<Arc<Reference>> {
        self.check()?;
        self.objects.surface(name).ok_or(Error::NotFound)
    }

    /// What a variable that stands for an object is bound to now; `None` if there is no such variable.
    pub(crate) fn bound(&self, name: &str) -> Option<Option<Arc<Bound>>> {
        self.objects.bound(name)
    }

    /// Waits for the context's work, and frees the variables. Functions of the module can no longer be launched.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] if it is not loaded any more.
    pub fn unload(&self) -> Result<()> {
        let context = self.context()?;
        if !self.loaded.swap(false, Ordering::AcqRel) {
            return Err(Error::InvalidHandle);
        }
        let outcome = context.finish_work();
        context.remove_module(self);
        self.variables.free(context.memory());
        outcome
    }

    /// The context frees everything.
    pub(crate) fn mark_unloaded(&self) {
        self.loaded.store(false, Ordering::Release);
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_loaded() { Ok(()) } else { Err(Error::InvalidHandle) }
    }
}
