//! Modules: PTX and fat binaries loaded into a context.

use crate::driver;
use crate::{Context, Error, Function, Result};
use bytemuck::Pod;

/// Code and variables, loaded into a context; unloaded when dropped.
///
/// Kernels borrow their module:
///
/// ```compile_fail,E0505
/// # use anywarp::{Device, LaunchConfig};
/// # let context = Device::get(0)?.create_context()?;
/// let module = context.load_ptx(".version 8.0\n.target sm_80\n.address_size 64\n.entry nop() { ret; }")?;
/// let nop = module.function("nop")?;
/// drop(module);
/// unsafe { nop.launch(&context.default_stream(), LaunchConfig::new(1, 1), ())? }; // its code would be gone
/// # Ok::<(), anywarp::Error>(())
/// ```
pub struct Module<'c> {
    raw: Box<dyn driver::Module>,
    context: &'c Context,
    log: String,
}

/// What a module is loaded from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Image<'a> {
    /// PTX text.
    Ptx(&'a str),
    /// A fat binary, as `nvcc -fatbin` writes it.
    Fatbin(&'a [u8]),
}

/// How a driver compiles PTX.
///
/// The embedded platform compiles for the machine it runs on whatever these say; their meaning for the results is none.
///
/// ```
/// use anywarp::{Device, Image, JitOptions};
///
/// let context = Device::get(0)?.create_context()?;
/// let nop = ".version 8.0\n.target sm_80\n.address_size 64\n.entry nop() { ret; }";
/// let options = JitOptions::default().with_optimization_level(2).with_verbose(true);
/// let module = context.load_with(&[("nop.ptx", Image::Ptx(nop))], &options)?;
/// println!("{}", module.info_log());
/// # Ok::<(), anywarp::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JitOptions {
    /// Registers of a thread at most.
    pub max_registers: Option<u32>,
    /// From 0 to 4; the driver's own choice is 4.
    pub optimization_level: Option<u32>,
    /// Information for debuggers.
    pub debug_info: bool,
    /// Line numbers for profilers.
    pub line_info: bool,
    /// A longer log.
    pub verbose: bool,
}

impl JitOptions {
    /// The same with at most so many registers for a thread.
    pub fn with_max_registers(self, registers: u32) -> JitOptions {
        JitOptions { max_registers: Some(registers), ..self }
    }

    /// The same with this level of optimisation, from 0 to 4.
    pub fn with_optimization_level(self, level: u32) -> JitOptions {
        JitOptions { optimization_level: Some(level), ..self }
    }

    /// The same with information for debuggers, or without.
    pub fn with_debug_info(self, debug_info: bool) -> JitOptions {
        JitOptions { debug_info, ..self }
    }

    /// The same with line numbers for profilers, or without.
    pub fn with_line_info(self, line_info: bool) -> JitOptions {
        JitOptions { line_info, ..self }
    }

    /// The same with a longer log, or the usual one.
    pub fn with_verbose(self, verbose: bool) -> JitOptions {
        JitOptions { verbose, ..self }
    }
}

impl<'c> Module<'c> {
    pub(crate) fn new(raw: Box<dyn driver::Module>, context: &'c Context, log: String) -> Module<'c> {
        Module { raw, context, log }
    }

    /// Its context.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// What the compiler or linker had to say; often nothing.
    pub fn info_log(&self) -> &str {
        &self.log
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound).
    pub fn function(&self, name: &str) -> Result<Function<'_>> {
        self.make_function(name)
    }

    /// The same for a caller that sees to it that the module outlives the kernel.
    pub(crate) fn make_function<'m>(&self, name: &str) -> Result<Function<'m>>
    where
        'c: 'm,
    {
        let raw = self.raw.function(name).map_err(|error| named(error, name))?;
        Function::new(raw, name, self.context)
    }

    /// The names of all kernels.
    ///
    /// # Errors
    /// [`Other`](crate::ErrorKind::Other) with code 302 over a driver older than CUDA 12.4, which does not tell.
    pub fn function_names(&self) -> Result<Vec<String>> {
        self.raw.function_names()
    }

    /// Address and size in bytes of a variable of module scope.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound).
    pub fn variable(&self, name: &str) -> Result<(u64, usize)> {
        self.raw.variable(name).map_err(|error| named(error, name))
    }

    /// Waits for all work of the context, then copies a variable of module scope to the host.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound); [`Arguments`](crate::ErrorKind::Arguments) if it has another size.
    pub fn read_variable<T: Pod>(&self, name: &str) -> Result<T> {
        let address = self.sized_variable::<T>(name)?;
        let mut value = T::zeroed();
        self.context.read(address, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Waits for all work of the context, then sets a variable of module scope.
    ///
    /// # Errors
    /// As for [`read_variable`](Self::read_variable).
    pub fn write_variable<T: Pod>(&self, name: &str, value: T) -> Result<()> {
        let address = self.sized_variable::<T>(name)?;
        self.context.write(address, &[value])
    }

    fn sized_variable<T>(&self, name: &str) -> Result<u64> {
        let (address, size) = self.variable(name)?;
        if size != size_of::<T>() {
            let wanted = size_of::<T>();
            return Err(Error::arguments(format!("{name} has {size} bytes, not {wanted}")));
        }
        Ok(address)
    }
}

/// An error that says what was not found.
fn named(error: Error, name: &str) -> Error {
    match error.kind() {
        crate::ErrorKind::NotFound => {
            Error::new(cuda_abi::driver::CUDA_ERROR_NOT_FOUND, format!("the module has no {name}"))
        }
        _ => error,
    }
}
