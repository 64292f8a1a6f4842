//! Handles: what programs hold instead of objects.
//!
//! A handle names a slot of a table and the slot's generation, so that a destroyed object's handle is known for what it
//! is and a made-up one is refused; neither is ever followed as a pointer. Different kinds of object have different
//! handles, which lets a function accept a kernel where the manual speaks of a function. Tables live in statics and
//! are never dropped, because programs call the driver from their own exit handlers.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What a handle stands for.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A context.
    Context = 1,
    /// A module.
    Module,
    /// A kernel of a module.
    Function,
    /// A library.
    Library,
    /// A kernel of a library.
    Kernel,
    /// A stream.
    Stream,
    /// An event.
    Event,
    /// A pending invocation of the linker.
    Link,
    /// A graph.
    Graph,
    /// A node of a graph.
    GraphNode,
    /// An executable graph.
    GraphExec,
    /// A pool of memory.
    MemoryPool,
    /// Memory without an address.
    PhysicalMemory,
    /// A registration for notifications.
    Notification,
    /// An object whose lifetime graphs share.
    UserObject,
    /// An array.
    Array,
    /// An array with mipmap levels.
    MipmappedArray,
    /// A texture reference.
    TextureReference,
    /// A surface reference.
    SurfaceReference,
    /// Memory of another API.
    ExternalMemory,
    /// A semaphore of another API.
    ExternalSemaphore,
    /// A context limited to some multiprocessors.
    GreenContext,
    /// A description of multiprocessors.
    ResourceDescription,
}

/// Why a handle does not name an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHandle {
    /// The object was destroyed.
    Stale,
    /// It was never a handle of this kind.
    Foreign,
}

// A handle, from bit 0: 4 zeros, so that it looks like an address; 20 bits of slot; 20 of generation; the kind. It stays
// below 2^48, and no small number, null and the special streams among them, is a handle.
const SLOT_SHIFT: u32 = 4;
const SLOT_BITS: u32 = 20;
const GENERATION_SHIFT: u32 = SLOT_SHIFT + SLOT_BITS;
const GENERATION_BITS: u32 = 20;
const KIND_SHIFT: u32 = GENERATION_SHIFT + GENERATION_BITS;

/// The objects of one kind.
pub struct Table<T> {
    kind: Kind,
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    all: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    object: Option<Arc<T>>,
}

impl<T> Table<T> {
    /// An empty table.
    pub const fn new(kind: Kind) -> Self {
        Table { kind, slots: RwLock::new(Slots { all: Vec::new(), free: Vec::new() }) }
    }

    /// Adds the object that `make` makes from its own handle. `None` if a million objects of this kind live.
    pub fn insert_with(&self, make: impl FnOnce(usize) -> Arc<T>) -> Option<usize> {
        let mut slots = self.to_change();
        let slot = match slots.free.pop() {
            Some(slot) => slot as usize,
            None if slots.all.len() == 1 << SLOT_BITS => return None,
            None => {
                slots.all.push(Slot { generation: 0, object: None });
                slots.all.len() - 1
            }
        };
        let handle = encode(self.kind, slot, slots.all[slot].generation);
        slots.all[slot].object = Some(make(handle));
        Some(handle)
    }

    /// Adds an object.
    pub fn insert(&self, object: Arc<T>) -> Option<usize> {
        self.insert_with(|_| object)
    }

    /// The object a handle names.
    pub fn get(&self, handle: usize) -> Result<Arc<T>, BadHandle> {
        let slots = self.to_read();
        let slot = slots.find(self.kind, handle)?;
        slots.all[slot].object.clone().ok_or(BadHandle::Stale)
    }

    /// Tells something of the object a handle names, which must not need this table.
    pub fn map<R>(&self, handle: usize, tell: impl FnOnce(&T) -> R) -> Result<R, BadHandle> {
        let slots = self.to_read();
        let slot = slots.find(self.kind, handle)?;
        slots.all[slot].object.as_deref().map(tell).ok_or(BadHandle::Stale)
    }

    /// Takes the object out; its handle is stale from now on.
    pub fn remove(&self, handle: usize) -> Result<Arc<T>, BadHandle> {
        let mut slots = self.to_change();
        let slot = slots.find(self.kind, handle)?;
        slots.remove(slot).ok_or(BadHandle::Stale)
    }

    /// Takes out all objects that `which` chooses.
    pub fn remove_all(&self, which: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut slots = self.to_change();
        let chosen: Vec<usize> = (0..slots.all.len())
            .filter(|slot| slots.all[*slot].object.as_deref().is_some_and(&which))
            .collect();
        chosen.into_iter().filter_map(|slot| slots.remove(slot)).collect()
    }

    /// The handles and objects that `which` chooses.
    pub fn find_all(&self, which: impl Fn(&T) -> bool) -> Vec<(usize, Arc<T>)> {
        let slots = self.to_read();
        let live = slots.all.iter().enumerate().filter_map(|(index, slot)| {
            let object = slot.object.as_ref().filter(|object| which(object))?;
            Some((encode(self.kind, index, slot.generation), object.clone()))
        });
        live.collect()
    }

    /// The slots, whether or not somebody has panicked over them: each is whole at any time.
    fn to_read(&self) -> RwLockReadGuard<'_, Slots<T>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Likewise.
    fn to_change(&self) -> RwLockWriteGuard<'_, Slots<T>> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Slots<T> {
    /// The slot of a handle of the current generation.
    fn find(&self, kind: Kind, handle: usize) -> Result<usize, BadHandle> {
        let (slot, generation) = decode(kind, handle).ok_or(BadHandle::Foreign)?;
        let now = self.all.get(slot).ok_or(BadHandle::Foreign)?.generation;
        match generation.cmp(&now) {
            std::cmp::Ordering::Less => Err(BadHandle::Stale),
            std::cmp::Ordering::Equal => Ok(slot),
            std::cmp::Ordering::Greater => Err(BadHandle::Foreign),
        }
    }

    fn remove(&mut self, slot: usize) -> Option<Arc<T>> {
        let object = self.all[slot].object.take()?;
        // A slot whose generations are used up is not used again.
        self.all[slot].generation += 1;
        if self.all[slot].generation < 1 << GENERATION_BITS {
            self.free.push(slot as u32);
        }
        Some(object)
    }
}

/// The kind of object a handle names if it names one.
pub fn is_kind(handle: usize, kind: Kind) -> bool {
    decode(kind, handle).is_some()
}

fn encode(kind: Kind, slot: usize, generation: u32) -> usize {
    (kind as usize) << KIND_SHIFT | (generation as usize) << GENERATION_SHIFT | slot << SLOT_SHIFT
}

fn decode(kind: Kind, handle: usize) -> Option<(usize, u32)> {
    if handle >> KIND_SHIFT != kind as usize || handle & ((1 << SLOT_SHIFT) - 1) != 0 {
        return None;
    }
    let slot = handle >> SLOT_SHIFT & ((1 << SLOT_BITS) - 1);
    let generation = handle >> GENERATION_SHIFT & ((1 << GENERATION_BITS) - 1);
    Some((slot, generation as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_and_made_up_handles_are_told_apart() {
        let table = Table::new(Kind::Stream);
        let handle = table.insert(Arc::new(7)).unwrap();
        assert_eq!(table.get(handle).as_deref(), Ok(&7));
        for made_up in [0, 1, 2, handle + 1, handle + 16, handle + (1 << GENERATION_SHIFT), usize::MAX] {
            assert_eq!(table.get(made_up), Err(BadHandle::Foreign), "{made_up:#x}");
        }
        assert_eq!(table.remove(handle).as_deref(), Ok(&7));
        assert_eq!(table.get(handle), Err(BadHandle::Stale));
        assert_eq!(table.remove(handle), Err(BadHandle::Stale));
    }

    #[test]
    fn a_reused_slot_has_a_new_handle() {
        let table = Table::new(Kind::Event);
        let first = table.insert(Arc::new(1)).unwrap();
        table.remove(first).unwrap();
        let second = table.insert(Arc::new(2)).unwrap();
        assert_ne!(first, second);
        assert_eq!(table.get(first), Err(BadHandle::Stale));
        assert_eq!(table.get(second).as_deref(), Ok(&2));
    }

    #[test]
    fn kinds_do_not_mix() {
        let (streams, events) = (Table::new(Kind::Stream), Table::new(Kind::Event));
        let stream = streams.insert(Arc::new(1)).unwrap();
        events.insert(Arc::new(2)).unwrap();
        assert_eq!(events.get(stream), Err(BadHandle::Foreign));
        assert!(is_kind(stream, Kind::Stream) && !is_kind(stream, Kind::Event));
    }

    #[test]
    fn objects_of_one_owner_go_together() {
        let table = Table::new(Kind::Module);
        let handles: Vec<_> = (0..6).map(|number| table.insert(Arc::new(number)).unwrap()).collect();
        assert_eq!(table.remove_all(|number| number % 2 == 0).len(), 3);
        let live: Vec<_> =
            handles.iter().filter_map(|handle| table.get(*handle).ok()).map(|number| *number).collect();
        assert_eq!(live, [1, 3, 5]);
    }
}
