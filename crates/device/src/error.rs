//! Why an operation of the device failed.

use std::fmt;

use kernel_abi::FaultKind;

/// The result of an operation of the device.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed: one variant for each answer an API gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument is out of range, or contradicts another.
    InvalidValue,
    /// No memory is left, or never as much as was asked for.
    OutOfMemory,
    /// The platform belongs to the process this one was forked from.
    NotInitialized,
    /// No device is visible.
    NoDevice,
    /// No device has this number.
    InvalidDevice,
    /// A module image is of no kind that can be loaded; the text says why.
    InvalidImage(String),
    /// The operation is not for this context.
    InvalidContext,
    /// The image holds nothing this device can run.
    NoBinaryForDevice,
    /// The limit exists but this device has no such thing.
    UnsupportedLimit,
    /// A device is not its own peer.
    PeerAccessUnsupported,
    /// The PTX is wrong, or uses what is not implemented; the text is the log.
    InvalidPtx(String),
    /// The PTX is of a version that is not understood; the text is the log.
    UnsupportedPtxVersion(String),
    /// Linked images define a symbol twice or not at all; the text is the log.
    InvalidSource(String),
    /// There is no compiler to compile a kernel with; the text says what was looked for.
    NoCompiler(String),
    /// The file cannot be read.
    FileNotFound,
    /// The operating system refused.
    OperatingSystem(String),
    /// The object is gone.
    InvalidHandle,
    /// The object is in no state for this operation.
    IllegalState,
    /// No such name, or no allocation at this address.
    NotFound,
    /// The work has not finished.
    NotReady,
    /// A kernel of this context has failed; nothing runs in it any more.
    Fault(FaultKind),
    /// The launch carries more than the kernel takes.
    LaunchOutOfResources,
    /// Peer access is enabled already.
    PeerAccessAlreadyEnabled,
    /// Peer access is not enabled.
    PeerAccessNotEnabled,
    /// The primary context is in use.
    PrimaryContextActive,
    /// The context has been destroyed, or its primary context released.
    ContextIsDestroyed,
    /// The host memory is registered already.
    HostMemoryAlreadyRegistered,
    /// The host memory is not registered.
    HostMemoryNotRegistered,
    /// The blocks of a cooperative launch do not fit on the device together.
    CooperativeLaunchTooLarge,
    /// No such cluster: more blocks than the device runs together, or others than the kernel asks for.
    InvalidClusterSize,
    /// Not from within a host function.
    NotPermitted,
    /// A capture in progress forbids it, and is spoiled by it.
    StreamCaptureUnsupported,
    /// The capture was spoiled before.
    StreamCaptureInvalidated,
    /// Two captures would become one.
    StreamCaptureMerge,
    /// The capture did not begin in this stream.
    StreamCaptureUnmatched,
    /// The capture spread to a stream that was not joined to where it began.
    StreamCaptureUnjoined,
    /// Captured work would depend on work that is not captured.
    StreamCaptureIsolation,
    /// The legacy default stream would depend on captured work.
    StreamCaptureImplicit,
    /// The event was recorded in a capture and cannot be waited for.
    CapturedEvent,
    /// The capture was begun by another thread.
    StreamCaptureWrongThread,
    /// A graph that was made ready cannot do what it is to do instead: that has another form.
    GraphExecUpdateFailure,
    /// Not implemented; the text names what.
    NotSupported(String),
    /// A failure inside this implementation; the text says which.
    Internal(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Error::InvalidValue => "invalid value",
            Error::OutOfMemory => "out of memory",
            Error::NotInitialized => "the platform was initialised before this process was forked",
            Error::NoDevice => "no device is visible",
            Error::InvalidDevice => "no such device",
            Error::InvalidImage(log) => return write!(f, "invalid module image: {log}"),
            Error::InvalidContext => "the operation is not for this context",
            Error::NoBinaryForDevice => "the image holds nothing for this device",
            Error::UnsupportedLimit => "the device has no such limit",
            Error::PeerAccessUnsupported => "a device is not its own peer",
            Error::InvalidPtx(log) => return write!(f, "invalid PTX: {log}"),
            Error::UnsupportedPtxVersion(log) => return write!(f, "unsupported PTX version: {log}"),
            Error::InvalidSource(log) => return write!(f, "linking failed: {log}"),
            Error::NoCompiler(what) => return write!(f, "no compiler: {what}"),
            Error::FileNotFound => "the file cannot be read",
            Error::OperatingSystem(what) => return write!(f, "the operating system refused: {what}"),
            Error::InvalidHandle => "the object is gone",
            Error::IllegalState => "the object is in no state for this",
            Error::NotFound => "not found",
            Error::NotReady => "not finished yet",
            Error::Fault(kind) => return write!(f, "a kernel has failed: {kind:?}"),
            Error::LaunchOutOfResources => "the launch carries more parameters than the kernel takes",
            Error::PeerAccessAlreadyEnabled => "peer access is enabled already",
            Error::PeerAccessNotEnabled => "peer access is not enabled",
            Error::PrimaryContextActive => "the primary context is in use",
            Error::ContextIsDestroyed => "the context has been destroyed",
            Error::HostMemoryAlreadyRegistered => "the host memory is registered already",
            Error::HostMemoryNotRegistered => "the host memory is not registered",
            Error::CooperativeLaunchTooLarge => "the grid does not fit on the device at once",
            Error::InvalidClusterSize => "the launch cannot be in clusters of this size",
            Error::NotPermitted => "not permitted in a host function",
            Error::StreamCaptureUnsupported => "not permitted while a stream captures",
            Error::StreamCaptureInvalidated => "the capture was invalidated",
            Error::StreamCaptureMerge => "two captures would be merged",
            Error::StreamCaptureUnmatched => "the capture did not begin in this stream",
            Error::StreamCaptureUnjoined => "the capture has streams that were not joined",
            Error::StreamCaptureIsolation => "captured work would depend on other work",
            Error::StreamCaptureImplicit => "the default stream would depend on captured work",
            Error::CapturedEvent => "the event was recorded in a capture",
            Error::StreamCaptureWrongThread => "the capture was begun by another thread",
            Error::GraphExecUpdateFailure => "a graph of another form",
            Error::NotSupported(what) => return write!(f, "not supported: {what}"),
            Error::Internal(what) => return write!(f, "internal failure: {what}"),
        };
        f.write_str(text)
    }
}

impl std::error::Error for Error {}
