//! What `cuGetProcAddress` can answer with, generated from `functions.in`.

/// A symbol with a name and version to ask for it.
pub struct Export {
    /// The name to ask for.
    pub base: &'static str,
    /// The first version of the API that has this variant.
    pub since: i32,
    /// Whether the default stream is the calling thread's.
    pub per_thread: bool,
    /// The function, to be called with its own signature only.
    pub address: unsafe extern "C" fn(),
}

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
