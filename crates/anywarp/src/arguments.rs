//! Arguments of a launch, checked against the parameters that a kernel declares.

use crate::{Buffer, Context, Error, ManagedBuffer, PinnedBuffer, Result, View, ViewMut};
use bytemuck::Pod;

/// What an argument is, as far as PTX tells parameters apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum ArgumentKind {
    Integer,
    Float,
    Pointer,
    Structure,
}

/// One argument of a kernel: a number, a reference to memory of its context (its address goes to the kernel), or anything
/// else [by value](ByValue).
pub trait Argument: Sealed {
    /// What it is.
    #[doc(hidden)]
    const KIND: ArgumentKind;

    /// Its bytes, as the kernel reads them.
    #[doc(hidden)]
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R;

    /// The context that it belongs to, if it does.
    #[doc(hidden)]
    fn context(&self) -> Option<&Context> {
        None
    }
}

/// The arguments of a launch: a tuple of up to 16 [`Argument`]s, `()` for none.
pub trait Arguments: Sealed {
    /// Packs them for a kernel with these parameters; buffers must be of its context.
    #[doc(hidden)]
    fn pack(&self, parameters: &[Parameter], context: &Context) -> Result<Vec<u8>>;
}

/// A parameter as a kernel declares it.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Parameter {
    pub offset: usize,
    pub size: usize,
    pub declared: Declared,
}

/// The type in a kernel's declaration, as far as it says what fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Declared {
    Integer,
    Float,
    /// Bits, or an array of bytes.
    Bits,
}

/// A structure or array passed as it is: a type without padding, laid out with `#[repr(C)]`.
///
/// ```
/// # let context = anywarp::Device::get(0)?.create_context()?;
/// # let module = context.load_ptx(".version 8.0\n.target sm_80\n.address_size 64
/// #   .visible .entry take (.param .align 4 .b8 point[8]) { ret; }")?;
/// # let take = module.function("take")?;
/// # use anywarp::{ByValue, LaunchConfig};
/// let point = [1.5_f32, 2.5]; // for a kernel that takes `struct { float x, y; }`
/// // SAFETY: the kernel writes nothing.
/// unsafe { take.launch(&context.default_stream(), LaunchConfig::new(1, 1), (ByValue(point),))? };
/// # Ok::<(), anywarp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ByValue<T: Pod>(pub T);

/// Only this crate says what an argument is.
mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

macro_rules! numbers {
    ($($kind:ident: $($number:ty)*;)*) => {$($(
        impl Sealed for $number {}
        impl Argument for $number {
            const KIND: ArgumentKind = ArgumentKind::$kind;

            fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
                use_bytes(&self.to_le_bytes())
            }
        }
    )*)*};
}

numbers! {
    Integer: u8 i8 u16 i16 u32 i32 u64 i64 usize isize;
    Float: f32 f64;
}

impl<T: Pod> Sealed for ByValue<T> {}
impl<T: Pod> Argument for ByValue<T> {
    const KIND: ArgumentKind = ArgumentKind::Structure;

    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        use_bytes(bytemuck::bytes_of(&self.0))
    }
}

macro_rules! memory {
    ($($reference:ty),*) => {$(
        impl<T: Pod> Sealed for $reference {}
        impl<T: Pod> Argument for $reference {
            const KIND: ArgumentKind = ArgumentKind::Pointer;

            fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
                use_bytes(&self.address().to_le_bytes())
            }

            fn context(&self) -> Option<&Context> {
                Some((**self).context())
            }
        }
    )*};
}

memory! {
    &Buffer<'_, T>, &mut Buffer<'_, T>, &View<'_, T>, &ViewMut<'_, T>, &mut ViewMut<'_, T>,
    &PinnedBuffer<'_, T>, &mut PinnedBuffer<'_, T>, &ManagedBuffer<'_, T>, &mut ManagedBuffer<'_, T>
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: Argument),*> Sealed for ($($name,)*) {}
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            #[allow(non_snake_case, unused_variables, unused_mut, reason = "one macro for every length, 0 included")]
            fn pack(&self, parameters: &[Parameter], context: &Context) -> Result<Vec<u8>> {
                let ($($name,)*) = self;
                let count = 0 $(+ { let _ = $name; 1 })*;
                if count != parameters.len() {
                    let wanted = parameters.len();
                    return Err(Error::arguments(format!("the kernel takes {wanted} arguments, {count} were given")));
                }
                let size = parameters.iter().map(|parameter| parameter.offset + parameter.size).max().unwrap_or(0);
                let mut bytes = vec![0; size];
                let mut slots = parameters.iter().enumerate();
                $(
                    let (index, parameter) = slots.next().expect("as many as were counted");
                    place($name, index, parameter, context, &mut bytes)?;
                )*
                Ok(bytes)
            }
        }
    };
}

tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
tuples!(A B C D E F G H I J K L M);
tuples!(A B C D E F G H I J K L M N);
tuples!(A B C D E F G H I J K L M N O);
tuples!(A B C D E F G H I J K L M N O P);

/// Puts one argument where its parameter lies.
fn place<A: Argument>(
    argument: &A,
    index: usize,
    parameter: &Parameter,
    context: &Context,
    bytes: &mut [u8],
) -> Result<()> {
    let wrong = |what: String| Err(Error::arguments(format!("argument {index}: {what}")));
    if argument.context().is_some_and(|of| !of.is_same(context)) {
        return wrong("the memory is of another context".into());
    }
    match (parameter.declared, A::KIND) {
        (Declared::Float, ArgumentKind::Integer | ArgumentKind::Pointer) => {
            return wrong("the kernel takes a floating-point number".into());
        }
        (Declared::Integer, ArgumentKind::Float) => {
            return wrong("the kernel takes an integer or a pointer".into());
        }
        _ => {}
    }
    argument.with_bytes(|value| {
        if value.len() != parameter.size {
            return wrong(format!("the kernel takes {} bytes, {} were given", parameter.size, value.len()));
        }
        bytes[parameter.offset..parameter.offset + parameter.size].copy_from_slice(value);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter { offset: 0, size: 1, declared: Declared::Integer },
        Parameter { offset: 8, size: 8, declared: Declared::Float },
        Parameter { offset: 16, size: 4, declared: Declared::Bits },
    ];

    fn pack(arguments: impl Arguments) -> Result<Vec<u8>> {
        let context = crate::Device::get(0)?.create_context()?;
        arguments.pack(PARAMETERS, &context)
    }

    #[test]
    fn each_goes_to_its_place_and_gaps_are_zero() {
        let bytes = pack((-2_i8, 1.0_f64, 1.5_f32)).unwrap();
        let mut expected = vec![0xfe, 0, 0, 0, 0, 0, 0, 0];
        expected.extend(1.0_f64.to_le_bytes());
        expected.extend(1.5_f32.to_le_bytes());
        assert_eq!(bytes, expected);
        assert!(pack((1_u8, 1.0_f64, ByValue([1_u16, 2]))).is_ok());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let reason = |outcome: Result<Vec<u8>>| outcome.unwrap_err().to_string();
        assert_eq!(reason(pack((1_u8, 1.0_f64))), "the kernel takes 3 arguments, 2 were given");
        assert_eq!(
            reason(pack((1_u8, 1_u64, 0_u32))),
            "argument 1: the kernel takes a floating-point number"
        );
        assert_eq!(
            reason(pack((1_u8, 1.0_f32, 0_u32))),
            "argument 1: the kernel takes 8 bytes, 4 were given"
        );
        let wide = [Parameter { offset: 0, size: 4, declared: Declared::Integer }];
        let context = crate::Device::get(0).unwrap().create_context().unwrap();
        let outcome = (1.0_f32,).pack(&wide, &context);
        assert_eq!(reason(outcome), "argument 0: the kernel takes an integer or a pointer");
    }

    #[test]
    fn a_buffer_of_another_context_is_refused() {
        let device = crate::Device::get(0).unwrap();
        let (one, other) = (device.create_context().unwrap(), device.create_context().unwrap());
        let buffer = other.zeroed::<u8>(4).unwrap();
        let pointer = [Parameter { offset: 0, size: 8, declared: Declared::Integer }];
        let refused = (&buffer,).pack(&pointer, &one).unwrap_err();
        assert_eq!(refused.to_string(), "argument 0: the memory is of another context");
        assert!((&buffer,).pack(&pointer, &other).is_ok());
    }
}
