//! What the driver tells unasked: notifications about a device, and its log of errors.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::ffi::{c_char, c_void};

c_enum! {
    /// What a notification is about.
    CUasyncNotificationType {
        CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET = 1,
    }
}

/// A notification: how many bytes a process has above what it was granted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUasyncNotificationInfo {
    pub r#type: CUasyncNotificationType,
    pub bytesOverBudget: u64,
}

/// Called with a notification, the caller's datum and the registration.
pub type CUasyncCallback =
    Option<unsafe extern "C" fn(*mut CUasyncNotificationInfo, *mut c_void, CUasyncCallbackHandle)>;

c_enum! {
    /// How bad it is what a message of the log tells.
    CUlogLevel {
        CU_LOG_LEVEL_ERROR = 0,
        CU_LOG_LEVEL_WARNING = 1,
    }
}

c_handles! {
    /// A registered function that is told of messages.
    CUlogsCallbackHandle;
}

/// A place in the log.
pub type CUlogIterator = u32;

/// Called with the caller's datum and a message, which ends in NUL and has this many bytes before it.
pub type CUlogsCallback = Option<unsafe extern "C" fn(*mut c_void, CUlogLevel, *mut c_char, usize)>;
