//! Which objects exist.
//!
//! Kernels look handles up all the time and on every core. So each thread keeps what it has found, and looks again only after
//! something was removed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use super::Object;
use crate::lock::{Rank, RankedMutex};
use crate::memory::ContextId;

#[derive(Default)]
struct Table {
    objects: HashMap<u64, (ContextId, Arc<Object>)>,
    last: u64,
}

static TABLE: LazyLock<RankedMutex<Table>> =
    LazyLock::new(|| RankedMutex::new(Rank::Textures, Table::default()));

/// How often something was removed.
static REMOVALS: AtomicU64 = AtomicU64::new(0);

/// What a thread has found, and what [`REMOVALS`] was then.
#[derive(Default)]
struct Found {
    removals: u64,
    objects: HashMap<u64, Arc<Object>>,
}

thread_local! {
    static FOUND: RefCell<Found> = RefCell::default();
}

pub(super) fn insert(owner: ContextId, object: Arc<Object>) -> u64 {
    let mut table = TABLE.lock();
    table.last += 1;
    let handle = table.last;
    table.objects.insert(handle, (owner, object));
    handle
}

pub(super) fn remove(handle: u64) -> bool {
    let removed = TABLE.lock().objects.remove(&handle).is_some();
    REMOVALS.fetch_add(removed.into(), Ordering::Release);
    removed
}

pub(super) fn remove_owned(owner: ContextId) {
    TABLE.lock().objects.retain(|_, (of, _)| *of != owner);
    REMOVALS.fetch_add(1, Ordering::Release);
}

/// Whether a handle is or was one of an object.
pub(super) fn was_given(handle: u64) -> bool {
    (1..=TABLE.lock().last).contains(&handle)
}

/// The object of a handle.
pub fn find(handle: u64) -> Option<Arc<Object>> {
    FOUND.with_borrow_mut(|found| {
        let removals = REMOVALS.load(Ordering::Acquire);
        if found.removals != removals {
            *found = Found { removals, ..Found::default() };
        }
        if let Some(object) = found.objects.get(&handle) {
            return Some(object.clone());
        }
        let object = TABLE.lock().objects.get(&handle).map(|(_, object)| object.clone())?;
        found.objects.insert(handle, object.clone());
        Some(object)
    })
}

#[cfg(test)]
mod tests {
    use simt_ir::texture::{Channel, Format, Geometry, ImageView, Level};

    use super::*;
    use crate::texture::{create, destroy, destroy_owned};

    fn surface(address: u64) -> Object {
        Object::Surface(ImageView {
            geometry: Geometry::D1,
            format: Format::new(Channel::U8, 1).unwrap(),
            layers: 1,
            levels: vec![Level { extent: [4, 1, 1], address, row_pitch: 4, slice_pitch: 4, tiles: None }],
            first_level: 0,
            is_linear: false,
            is_sparse: false,
        })
    }

    #[test]
    fn handles_are_not_used_again() {
        let owner = ContextId(u64::MAX);
        let first = create(owner, surface(1));
        assert_eq!(find(first).as_deref(), Some(&surface(1)));
        assert!(destroy(first));
        assert!(!destroy(first));
        let second = create(owner, surface(2));
        assert_ne!(first, second);
        assert_eq!(find(first), None);
        assert_eq!(find(second).as_deref(), Some(&surface(2)));
        destroy_owned(owner);
        assert_eq!(find(second), None);
        assert_eq!(find(0), None);
    }

    #[test]
    fn another_thread_sees_what_is_gone() {
        let handle = create(ContextId(u64::MAX - 1), surface(3));
        let (ask, asked) = std::sync::mpsc::channel();
        let (answer, answered) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            for () in asked {
                answer.send(find(handle).is_some()).unwrap();
            }
        });
        ask.send(()).unwrap();
        assert!(answered.recv().unwrap());
        destroy(handle);
        ask.send(()).unwrap();
        assert!(!answered.recv().unwrap());
        drop(ask);
        other.join().unwrap();
    }
}
