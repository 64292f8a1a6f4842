//! How the tables of names and numbers are written.

/// A C enumeration as a transparent number with the manual's names as constants.
macro_rules! c_enum {
    ($(#[$doc:meta])* $name:ident { $($constant:ident = $value:expr,)* }) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// Every name with its value, as the manual lists them; some values have two names.
            pub const NAMES: &[(&'static str, $name)] = &[$((stringify!($constant), $constant)),*];

            /// The manual's (first) name of the value.
            pub fn name(self) -> Option<&'static str> {
                Self::NAMES.iter().find(|(_, value)| *value == self).map(|(name, _)| *name)
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }

        $(
            #[allow(missing_docs, reason = "the manual's own name")]
            pub const $constant: $name = $name($value);
        )*
    };
}

/// A C enumeration of result codes, each with its text.
macro_rules! c_codes {
    ($(#[$doc:meta])* $name:ident { $($constant:ident = $value:expr, $text:literal;)* }) => {
        c_enum! { $(#[$doc])* $name { $($constant = $value,)* } }

        impl $name {
            /// The code's name as a C string.
            pub fn c_name(self) -> Option<&'static ::core::ffi::CStr> {
                match self {
                    $($constant => Some(c_str(concat!(stringify!($constant), "\0"))),)*
                    _ => None,
                }
            }

            /// The code's description as a C string.
            pub fn c_text(self) -> Option<&'static ::core::ffi::CStr> {
                match self {
                    $($constant => Some(c_str(concat!($text, "\0"))),)*
                    _ => None,
                }
            }
        }

        const fn c_str(text: &'static str) -> &'static ::core::ffi::CStr {
            match ::core::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
                Ok(text) => text,
                Err(_) => panic!("a code's text ends in its only NUL"),
            }
        }
    };
}

/// Opaque handles: pointers in C, whose meaning only the library that gave them knows.
macro_rules! c_handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub usize);

        impl $name {
            /// The null handle.
            pub const NULL: $name = $name(0);

            /// Whether this is the null handle.
            pub const fn is_null(self) -> bool {
                self.0 == 0
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    )*};
}

/// Single bits and other plain constants.
macro_rules! c_consts {
    ($($name:ident: $type:ty = $value:expr;)*) => {$(
        #[allow(missing_docs, reason = "the manual's own name")]
        pub const $name: $type = $value;
    )*};
}
