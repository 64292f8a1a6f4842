//! Parameters of entry points as types that state the caller's duty once.
//!
//! An entry point is `unsafe extern "C"`: its caller promises what the manual demands of each pointer. [`Out`], [`In`],
//! [`Text`] and [`Array`] are transparent over the C pointer and can be made only by such a caller (or with an `unsafe`
//! constructor), so a body that uses them needs no unsafe code of its own. Null is always noticed.

use core::ffi::{CStr, c_char};
use core::fmt;

/// A null pointer where the manual wants none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullPointer;

/// A `T *` to be written: null, or valid for writing one `T` (which may be uninitialised) during the call.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    /// `pointer` is null or valid for writing a `T` while the `Out` is used.
    pub unsafe fn new(pointer: *mut T) -> Self {
        Out(pointer)
    }

    /// Fails on a null pointer, to check it before work is done.
    pub fn check(self) -> Result<Self, NullPointer> {
        if self.0.is_null() { Err(NullPointer) } else { Ok(self) }
    }

    /// Whether the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes the result.
    pub fn set(self, value: T) -> Result<(), NullPointer> {
        self.check()?;
        // SAFETY: not null, so valid for writing a `T` by the type's invariant; callers' memory may be misaligned.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result unless the caller does not want it.
    pub fn set_if_wanted(self, value: T) {
        let _ = self.set(value);
    }

    /// The pointer itself.
    pub fn as_ptr(self) -> *mut T {
        self.0
    }
}

/// A `const T *` to be read: null, or valid for reading one initialised `T` during the call.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// # Safety
    /// `pointer` is null or valid for reading a `T` while the `In` is used.
    pub unsafe fn new(pointer: *const T) -> Self {
        In(pointer)
    }

    /// A copy of what the pointer points to.
    pub fn get(self) -> Result<T, NullPointer> {
        if self.0.is_null() {
            return Err(NullPointer);
        }
        // SAFETY: not null, so valid for reading a `T` by the type's invariant; callers' memory may be misaligned.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Whether the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer itself.
    pub fn as_ptr(self) -> *const T {
        self.0
    }
}

/// A `T *` or `const T *` to the first of several elements, whose number is another parameter.
#[repr(transparent)]
pub struct Array<T>(*mut T);

impl<T: Copy> Array<T> {
    /// # Safety
    /// `pointer` is null or valid for as many elements as the other parameters of the call say.
    pub unsafe fn new(pointer: *mut T) -> Self {
        Array(pointer)
    }

    /// Whether the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Reads element `index`, which the caller's count covers.
    pub fn get(self, index: usize) -> Result<T, NullPointer> {
        if self.0.is_null() {
            return Err(NullPointer);
        }
        // SAFETY: not null, and `index` is below the count that goes with the array: readable by the type's invariant.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Writes element `index`, which the caller's count covers.
    pub fn set(self, index: usize, value: T) -> Result<(), NullPointer> {
        if self.0.is_null() {
            return Err(NullPointer);
        }
        // SAFETY: not null, and `index` is below the count that goes with the array: writable by the type's invariant.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// The pointer itself.
    pub fn as_ptr(self) -> *mut T {
        self.0
    }
}

/// A `const char *`: null, or a text that ends in NUL and lives during the call.
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// # Safety
    /// `pointer` is null or points to a text ending in NUL that lives while the `Text` is used.
    pub unsafe fn new(pointer: *const c_char) -> Self {
        Text(pointer)
    }

    /// The text; the caller of the entry point keeps it alive for the call.
    pub fn get(&self) -> Result<&CStr, NullPointer> {
        if self.0.is_null() {
            return Err(NullPointer);
        }
        // SAFETY: not null, so NUL-terminated and alive during the call by the type's invariant.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }

    /// Whether the caller passed null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

macro_rules! pointer_traits {
    ($($name:ident),*) => {$(
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0 as usize)
            }
        }
    )*};
}
pointer_traits!(Out, In, Array);

impl Clone for Text {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for Text {}
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            // Module images arrive as text pointers too: show the beginning only.
            Ok(text) if text.count_bytes() > 64 => write!(f, "{:#x}", self.0 as usize),
            Ok(text) => write!(f, "{text:?}"),
            Err(NullPointer) => f.write_str("null"),
        }
    }
}

impl From<NullPointer> for crate::driver::CUresult {
    fn from(_: NullPointer) -> Self {
        crate::driver::CUDA_ERROR_INVALID_VALUE
    }
}

impl From<NullPointer> for crate::nvml::nvmlReturn_t {
    fn from(_: NullPointer) -> Self {
        crate::nvml::NVML_ERROR_INVALID_ARGUMENT
    }
}

impl From<NullPointer> for crate::runtime::cudaError_t {
    fn from(_: NullPointer) -> Self {
        crate::runtime::cudaErrorInvalidValue
    }
}
