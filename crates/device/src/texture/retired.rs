//! Objects that the host is done with while kernels may still use them.

use std::sync::Arc;

use super::destroy;
use crate::Context;
use crate::lock::{Rank, RankedMutex};
use crate::stream::Completion;

/// An object that goes when all that was queued before is over.
struct Retired {
    handle: u64,
    awaited: Vec<Arc<Completion>>,
}

static RETIRED: RankedMutex<Vec<Retired>> = RankedMutex::new(Rank::RetiredTextures, Vec::new());

/// Forgets an object once the work is done that is queued in its context: programs may destroy it right after a launch.
pub fn retire(handle: u64, context: &Context) {
    sweep();
    let awaited = context.unfinished();
    if awaited.is_empty() {
        destroy(handle);
    } else {
        RETIRED.lock().push(Retired { handle, awaited });
    }
}

/// Forgets the retired objects that nothing can use any more.
fn sweep() {
    let mut over = Vec::new();
    RETIRED.lock().retain(|retired| {
        let keep = retired.awaited.iter().any(|awaited| !awaited.is_finished());
        if !keep {
            over.push(retired.handle);
        }
        keep
    });
    for handle in over {
        destroy(handle);
    }
}
