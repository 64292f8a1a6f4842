//! [`Context`] and [`Module`].

use super::count;
use super::types::Type;
use super::value::{Function, Value};
use llvm_sys::prelude::{LLVMContextRef, LLVMModuleRef};
use llvm_sys::{self as sys, LLVMDiagnosticSeverity, LLVMLinkage, analysis, core, error_handling};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::sync::Once;

/// The attribute of a function for bytes of which a larger frame is told.
pub const TELLS_FRAME: &str = "warn-stack-size";

/// Owns types, constants and modules, and collects what LLVM complains about.
pub struct Context {
    raw: LLVMContextRef,
    /// Boxed: LLVM keeps its address.
    reports: Box<Reports>,
}

/// What LLVM has told.
#[derive(Default)]
struct Reports {
    errors: RefCell<Vec<String>>,
    /// Bytes of the frames of functions that were to be told, together.
    frames: Cell<u64>,
}

impl Context {
    /// A fresh, empty context.
    #[expect(clippy::new_without_default, reason = "creating one is an act, not a default value")]
    pub fn new() -> Self {
        static FATAL: Once = Once::new();
        let reports = Box::<Reports>::default();
        // SAFETY: the handlers have the types LLVM calls them with, and `reports` outlives the context.
        unsafe {
            FATAL.call_once(|| error_handling::LLVMInstallFatalErrorHandler(Some(report_fatal)));
            let raw = core::LLVMContextCreate();
            let sink: *const Reports = &*reports;
            core::LLVMContextSetDiagnosticHandler(raw, Some(collect), sink.cast_mut().cast());
            Self { raw, reports }
        }
    }

    /// Values and blocks keep no names from now on: for code that nobody will read.
    pub fn forget_names(&self) {
        // SAFETY: the context is alive.
        unsafe { core::LLVMContextSetDiscardValueNames(self.raw, 1) }
    }

    /// An empty module, which lives as long as the context.
    pub fn module(&self, name: &str) -> Module<'_> {
        let name = c_string(name);
        // SAFETY: the context is alive; it deletes its modules when it is disposed of.
        let raw = unsafe { core::LLVMModuleCreateWithNameInContext(name.as_ptr(), self.raw) };
        Module { raw, context: self }
    }

    /// The integer type of `bits` bits, 1 to 2^23.
    pub fn int(&self, bits: u32) -> Type<'_> {
        assert!((1..=1 << 23).contains(&bits), "no integer type of {bits} bits");
        // SAFETY: the context is alive and the width is one LLVM has.
        self.ty(unsafe { core::LLVMIntTypeInContext(self.raw, bits) })
    }

    /// IEEE binary16.
    pub fn half(&self) -> Type<'_> {
        // SAFETY: the context is alive.
        self.ty(unsafe { core::LLVMHalfTypeInContext(self.raw) })
    }

    /// The truncated binary32 of 16 bits.
    pub fn bfloat(&self) -> Type<'_> {
        // SAFETY: the context is alive.
        self.ty(unsafe { core::LLVMBFloatTypeInContext(self.raw) })
    }

    /// IEEE binary32.
    pub fn float(&self) -> Type<'_> {
        // SAFETY: the context is alive.
        self.ty(unsafe { core::LLVMFloatTypeInContext(self.raw) })
    }

    /// IEEE binary64.
    pub fn double(&self) -> Type<'_> {
        // SAFETY: the context is alive.
        self.ty(unsafe { core::LLVMDoubleTypeInContext(self.raw) })
    }

    /// A pointer in address space 0, the only one generated code uses.
    pub fn ptr(&self) -> Type<'_> {
        // SAFETY: the context is alive.
        self.ty(unsafe { core::LLVMPointerTypeInContext(self.raw, 0) })
    }

    /// The type of a function that returns nothing.
    pub fn void(&self) -> Type<'_> {
        // SAFETY: the context is alive.
        self.ty(unsafe { core::LLVMVoidTypeInContext(self.raw) })
    }

    /// An anonymous struct with natural alignment.
    pub fn structure(&self, fields: &[Type<'_>]) -> Type<'_> {
        let mut fields: Vec<_> = fields.iter().map(|field| field.raw()).collect();
        // SAFETY: the context is alive and the types belong to it.
        self.ty(unsafe {
            core::LLVMStructTypeInContext(self.raw, fields.as_mut_ptr(), count(fields.len()), 0)
        })
    }

    /// The errors LLVM has reported since the last call.
    pub fn take_errors(&self) -> Vec<String> {
        std::mem::take(&mut *self.reports.errors.borrow_mut())
    }

    /// Bytes that the frames have together, of functions of which machine code was made, that are larger than their attribute [`TELLS_FRAME`] says.
    pub fn told_frames(&self) -> u64 {
        self.reports.frames.get()
    }

    pub(super) fn raw(&self) -> LLVMContextRef {
        self.raw
    }

    fn ty(&self, raw: sys::prelude::LLVMTypeRef) -> Type<'_> {
        // SAFETY: made in this context just now.
        unsafe { Type::from_raw(raw) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: every handle borrows from `self`, so none is left.
        unsafe { core::LLVMContextDispose(self.raw) };
    }
}

/// One translation unit.
#[derive(Clone, Copy)]
pub struct Module<'c> {
    raw: LLVMModuleRef,
    context: &'c Context,
}

/// Who can see a function or global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// Visible outside, under its name.
    External,
    /// Visible in this module only.
    Internal,
}

impl<'c> Module<'c> {
    /// The context it was made in.
    pub fn context(self) -> &'c Context {
        self.context
    }

    /// Declares a function; append a block to define it. The name must be free.
    pub fn add_function(
        self,
        name: &str,
        result: Type<'c>,
        params: &[Type<'c>],
        linkage: Linkage,
    ) -> Function<'c> {
        let ty = Type::function(result, params);
        let name = c_string(name);
        // SAFETY: module and types are of one live context; the name is NUL-terminated.
        unsafe {
            assert!(
                core::LLVMGetNamedFunction(self.raw, name.as_ptr()).is_null(),
                "{name:?} is defined twice"
            );
            let raw = core::LLVMAddFunction(self.raw, name.as_ptr(), ty.raw());
            if linkage == Linkage::Internal {
                core::LLVMSetLinkage(raw, LLVMLinkage::LLVMInternalLinkage);
            }
            Function::from_raw(raw, self.context)
        }
    }

    /// The function of that name, if declared.
    pub fn function(self, name: &str) -> Option<Function<'c>> {
        let name = c_string(name);
        // SAFETY: the module is alive; the name is NUL-terminated.
        unsafe {
            let raw = core::LLVMGetNamedFunction(self.raw, name.as_ptr());
            (!raw.is_null()).then(|| Function::from_raw(raw, self.context))
        }
    }

    /// All functions, declared and defined.
    pub fn functions(self) -> impl Iterator<Item = Function<'c>> {
        // SAFETY: the module is alive; the walk ends at null.
        let first = unsafe { core::LLVMGetFirstFunction(self.raw) };
        // SAFETY: as above.
        let all = std::iter::successors((!first.is_null()).then_some(first), |&function| unsafe {
            let next = core::LLVMGetNextFunction(function);
            (!next.is_null()).then_some(next)
        });
        // SAFETY: functions of this context.
        all.map(move |raw| unsafe { Function::from_raw(raw, self.context) })
    }

    /// The function of that name, declared now unless it is already. Its type must be the same.
    pub fn extern_function(self, name: &str, result: Type<'c>, params: &[Type<'c>]) -> Function<'c> {
        let function =
            self.function(name).unwrap_or_else(|| self.add_function(name, result, params, Linkage::External));
        assert_eq!(function.ty(), Type::function(result, params), "{name} is declared with another type");
        function
    }

    /// A constant array of bytes-like data: an internal, aligned, read-only global. Returns its address.
    pub fn add_constant(self, name: &str, initializer: Value<'c>, align: u32) -> Value<'c> {
        assert!(initializer.is_constant());
        let name = c_string(name);
        // SAFETY: module and constant are of one live context.
        unsafe {
            let global = core::LLVMAddGlobal(self.raw, initializer.ty().raw(), name.as_ptr());
            core::LLVMSetInitializer(global, initializer.raw());
            core::LLVMSetGlobalConstant(global, 1);
            core::LLVMSetLinkage(global, LLVMLinkage::LLVMPrivateLinkage);
            core::LLVMSetAlignment(global, align);
            Value::from_raw(global)
        }
    }

    /// The address of the constant of that name, if there is one.
    pub fn constant(self, name: &str) -> Option<Value<'c>> {
        let name = c_string(name);
        // SAFETY: the module is alive; the name is NUL-terminated.
        unsafe {
            let raw = core::LLVMGetNamedGlobal(self.raw, name.as_ptr());
            (!raw.is_null()).then(|| Value::from_raw(raw))
        }
    }

    /// LLVM's verdict on the module: what is malformed, if anything.
    pub fn verify(self) -> Result<(), String> {
        let mut message = std::ptr::null_mut();
        let action = analysis::LLVMVerifierFailureAction::LLVMReturnStatusAction;
        // SAFETY: the module is alive; the message is ours to dispose of.
        unsafe {
            let failed = analysis::LLVMVerifyModule(self.raw, action, &mut message) != 0;
            let message = take_message(message);
            if failed { Err(message) } else { Ok(()) }
        }
    }

    pub(crate) fn raw(self) -> LLVMModuleRef {
        self.raw
    }
}

/// The text form.
impl std::fmt::Display for Module<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: the module is alive; the message is ours to dispose of.
        f.write_str(&unsafe { take_message(core::LLVMPrintModuleToString(self.raw)) })
    }
}

/// Marker for handles into a context.
pub(super) type InContext<'c> = PhantomData<&'c Context>;

pub(super) fn c_string(text: &str) -> CString {
    CString::new(text).expect("a name without NUL")
}

/// Copies a message of LLVM's and disposes of it. A null message is empty.
///
/// # Safety
/// `message` is null or comes from LLVM and is used no more.
pub(crate) unsafe fn take_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: LLVM's messages are NUL-terminated; ours to dispose of by contract.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        core::LLVMDisposeMessage(message);
        text
    }
}

extern "C" fn collect(info: sys::prelude::LLVMDiagnosticInfoRef, sink: *mut c_void) {
    // SAFETY: LLVM passes a live diagnostic and the pointer given with this handler, which the context owns.
    let (severity, reports) = unsafe { (core::LLVMGetDiagInfoSeverity(info), &*sink.cast::<Reports>()) };
    // SAFETY: likewise.
    let message = || unsafe { take_message(core::LLVMGetDiagInfoDescription(info)) };
    match severity {
        LLVMDiagnosticSeverity::LLVMDSError => reports.errors.borrow_mut().push(message()),
        LLVMDiagnosticSeverity::LLVMDSWarning => {
            let bytes = frame_told(&message()).unwrap_or(0);
            reports.frames.set(reports.frames.get().saturating_add(bytes));
        }
        _ => {}
    }
}

/// The bytes of a frame that is larger than was asked for, if a message tells of one.
fn frame_told(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("stack frame size (")?;
    rest.split_once(')')?.0.parse().ok()
}

/// LLVM ends the process after this; the least we can do is to say whose fault it was.
extern "C" fn report_fatal(reason: *const c_char) {
    // SAFETY: LLVM passes a NUL-terminated string.
    let reason = unsafe { CStr::from_ptr(reason) };
    eprintln!("anywarp: LLVM cannot compile this kernel and ends the process: {}", reason.to_string_lossy());
}
