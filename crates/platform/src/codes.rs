//! Failures as CUDA's codes.

use cuda_abi::driver::*;
use device::Error;
use kernel_abi::FaultKind;

/// The code of a device's error.
pub fn code(error: &Error) -> CUresult {
    match error {
        Error::InvalidValue => CUDA_ERROR_INVALID_VALUE,
        Error::OutOfMemory => CUDA_ERROR_OUT_OF_MEMORY,
        Error::NotInitialized => CUDA_ERROR_NOT_INITIALIZED,
        Error::NoDevice => CUDA_ERROR_NO_DEVICE,
        Error::InvalidDevice => CUDA_ERROR_INVALID_DEVICE,
        Error::InvalidImage(_) => CUDA_ERROR_INVALID_IMAGE,
        Error::InvalidContext => CUDA_ERROR_INVALID_CONTEXT,
        Error::NoBinaryForDevice => CUDA_ERROR_NO_BINARY_FOR_GPU,
        Error::UnsupportedLimit => CUDA_ERROR_UNSUPPORTED_LIMIT,
        Error::PeerAccessUnsupported => CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
        Error::InvalidPtx(_) => CUDA_ERROR_INVALID_PTX,
        Error::UnsupportedPtxVersion(_) => CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        Error::InvalidSource(_) => CUDA_ERROR_INVALID_SOURCE,
        Error::NoCompiler(_) => CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
        Error::FileNotFound => CUDA_ERROR_FILE_NOT_FOUND,
        Error::OperatingSystem(_) => CUDA_ERROR_OPERATING_SYSTEM,
        Error::InvalidHandle => CUDA_ERROR_INVALID_HANDLE,
        Error::IllegalState => CUDA_ERROR_ILLEGAL_STATE,
        Error::NotFound => CUDA_ERROR_NOT_FOUND,
        Error::NotReady => CUDA_ERROR_NOT_READY,
        Error::Fault(kind) => fault_code(*kind),
        Error::LaunchOutOfResources => CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        Error::PeerAccessAlreadyEnabled => CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
        Error::PeerAccessNotEnabled => CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
        Error::PrimaryContextActive => CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
        Error::ContextIsDestroyed => CUDA_ERROR_CONTEXT_IS_DESTROYED,
        Error::HostMemoryAlreadyRegistered => CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        Error::HostMemoryNotRegistered => CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        Error::CooperativeLaunchTooLarge => CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        Error::InvalidClusterSize => CUDA_ERROR_INVALID_CLUSTER_SIZE,
        Error::NotPermitted => CUDA_ERROR_NOT_PERMITTED,
        Error::StreamCaptureUnsupported => CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        Error::StreamCaptureInvalidated => CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        Error::StreamCaptureMerge => CUDA_ERROR_STREAM_CAPTURE_MERGE,
        Error::StreamCaptureUnmatched => CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
        Error::StreamCaptureUnjoined => CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        Error::StreamCaptureIsolation => CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        Error::StreamCaptureImplicit => CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        Error::CapturedEvent => CUDA_ERROR_CAPTURED_EVENT,
        Error::StreamCaptureWrongThread => CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
        Error::GraphExecUpdateFailure => CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
        Error::NotSupported(_) => CUDA_ERROR_NOT_SUPPORTED,
        Error::Internal(_) => CUDA_ERROR_UNKNOWN,
    }
}

fn fault_code(kind: FaultKind) -> CUresult {
    match kind {
        FaultKind::IllegalAddress | FaultKind::StackOverflow => CUDA_ERROR_ILLEGAL_ADDRESS,
        FaultKind::Misaligned => CUDA_ERROR_MISALIGNED_ADDRESS,
        FaultKind::Trap | FaultKind::OutsideCluster | FaultKind::BarrierCount => CUDA_ERROR_LAUNCH_FAILED,
        FaultKind::Assert => CUDA_ERROR_ASSERT,
        FaultKind::IllegalInstruction => CUDA_ERROR_ILLEGAL_INSTRUCTION,
        FaultKind::InvalidPc => CUDA_ERROR_INVALID_PC,
        FaultKind::InvalidAddressSpace => CUDA_ERROR_INVALID_ADDRESS_SPACE,
        FaultKind::Deadlock => CUDA_ERROR_LAUNCH_TIMEOUT,
    }
}
