//! Why an operation failed.

use std::fmt;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The arguments of a launch are not those that the kernel takes; the text says which.
    Arguments(String),
    /// A kernel of this context has failed; the text says how and, where it is known, which thread at which line.
    Fault(String),
    /// The PTX is wrong or uses what is not implemented; the text names each place.
    Ptx(String),
    /// The device has not enough memory left.
    OutOfMemory,
    /// There is no device of this number, or none at all.
    NoDevice,
    /// A module has nothing of this name.
    NotFound(String),
    /// Anything else; the text says what.
    Device(String),
}

impl Error {
    /// The device's error, where no more is known about it.
    pub(crate) fn new(error: device::Error) -> Error {
        use device::Error as E;
        match error {
            E::OutOfMemory => Error::OutOfMemory,
            E::NoDevice | E::InvalidDevice => Error::NoDevice,
            E::InvalidPtx(log)
            | E::UnsupportedPtxVersion(log)
            | E::InvalidSource(log)
            | E::InvalidImage(log) => Error::Ptx(log),
            E::Fault(_) => Error::Fault(error.to_string()),
            other => Error::Device(other.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Arguments(text) | Error::Fault(text) | Error::Ptx(text) | Error::Device(text) => {
                f.write_str(text)
            }
            Error::OutOfMemory => f.write_str("the device has not enough memory left"),
            Error::NoDevice => f.write_str("there is no such device"),
            Error::NotFound(name) => write!(f, "the module has no {name}"),
        }
    }
}

impl std::error::Error for Error {}
