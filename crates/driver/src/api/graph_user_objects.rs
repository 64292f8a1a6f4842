//! Graph management: objects whose lifetime graphs share.

use crate::error::CuResult;
use crate::graphs::find;
use crate::handle::{Kind, Table};
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::graph::Attachment;
use entry_macros::entry_point;
use std::cell::RefCell;
use std::ffi::c_void;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, Weak};

static OBJECTS: Table<UserObject> = Table::new(Kind::UserObject);

/// An object as the program knows it.
struct UserObject {
    /// References that the program holds, and what keeps the object alive while there are any.
    held: Mutex<(usize, Option<Arc<Ending>>)>,
    ending: Weak<Ending>,
}

/// Ends the object when nobody holds it any more: neither the program nor a graph.
struct Ending {
    handle: usize,
    datum: usize,
    destroy: unsafe extern "C" fn(*mut c_void),
}

/// References that a graph holds.
struct References {
    ending: Arc<Ending>,
    count: usize,
}

impl Drop for Ending {
    fn drop(&mut self) {
        // The last call that names the object may be on its way: it holds the object itself.
        let _ = OBJECTS.remove(self.handle);
        let (datum, destroy) = (self.datum, self.destroy);
        let end: End = Box::new(move || {
            // SAFETY: the program gave the function with its argument to be called so, once.
            unsafe { destroy(std::ptr::with_exposed_provenance_mut(datum)) };
        });
        // Else on another thread: whoever drops the last reference may hold locks, and may be in the middle of the work of a
        // stream. A process that ends first does not wait for it.
        let ended = ENDING_HERE.with_borrow_mut(|here| match &mut **here {
            Some(ends) => {
                ends.push(end);
                Ok(())
            }
            None => end_later(end),
        });
        if let Err(error) = ended {
            eprintln!("anywarp: a user object is not destroyed: {error}");
        }
    }
}

type End = Box<dyn FnOnce() + Send>;

thread_local! {
    /// What is to end when a call of the program's on this thread is through, if it is in one that ends objects. Without a destructor: exit handlers,
    /// which run after those of thread-locals, make such calls too.
    static ENDING_HERE: RefCell<ManuallyDrop<Option<Vec<End>>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Runs a call of the program's that may give up the last references to objects. They end on its thread, before it returns, as with NVIDIA's driver: a
/// program may free next what they name.
pub fn ending_here<T>(call: impl FnOnce() -> T) -> T {
    ENDING_HERE.set(ManuallyDrop::new(Some(Vec::new())));
    let result = call();
    // The call holds nothing any more, and what the objects' functions call is another.
    let ends = ENDING_HERE.replace(ManuallyDrop::new(None));
    ManuallyDrop::into_inner(ends).into_iter().flatten().for_each(|end| end());
    result
}

/// Has the thread that ends objects, one after the other, end one more. The first starts it.
fn end_later(end: End) -> io::Result<()> {
    static ENDS: Mutex<Option<Sender<End>>> = Mutex::new(None);
    let mut ends = locked(&ENDS);
    let unsent = match &*ends {
        Some(sender) => sender.send(end).err().map(|unsent| unsent.0),
        None => Some(end),
    };
    if let Some(end) = unsent {
        let (sender, receiver) = mpsc::channel::<End>();
        let all = move || receiver.into_iter().for_each(|end| end());
        std::thread::Builder::new().name("user objects".into()).spawn(all)?;
        // The thread is there, and listens.
        let _ = sender.send(end);
        *ends = Some(sender);
    }
    Ok(())
}

/// The program holds `initialRefcount` references.
#[entry_point]
fn cuUserObjectCreate(
    object_out: Out<CUuserObject>,
    ptr: *mut c_void,
    destroy: CUhostFn,
    initialRefcount: u32,
    flags: u32,
) -> CuResult {
    object_out.check()?;
    let destroy = destroy.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    // The flag says what is so anyway, and must be there.
    if flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let count = check_count(initialRefcount)?;
    let inserted = OBJECTS.insert_with(|handle| {
        let ending = Arc::new(Ending { handle, datum: ptr.expose_provenance(), destroy });
        let weak = Arc::downgrade(&ending);
        Arc::new(UserObject { held: Mutex::new((count, Some(ending))), ending: weak })
    });
    object_out.set(CUuserObject(inserted.ok_or(CUDA_ERROR_OUT_OF_MEMORY)?))?;
    Ok(())
}

#[entry_point]
fn cuUserObjectRetain(object: CUuserObject, count: u32) -> CuResult {
    let count = check_count(count)?;
    let object = find_object(object)?;
    let ending = object.ending.upgrade().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let mut held = locked(&object.held);
    held.0 = held.0.checked_add(count).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    held.1 = Some(ending);
    Ok(())
}

#[entry_point]
fn cuUserObjectRelease(object: CUuserObject, count: u32) -> CuResult {
    let count = check_count(count)?;
    ending_here(|| release(&*find_object(object)?, count))
}

/// The graph holds `count` references, which are the caller's if the flag says so.
#[entry_point]
fn cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: u32, flags: u32) -> CuResult {
    let count = check_count(count)?;
    if flags & !CU_GRAPH_USER_OBJECT_MOVE != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let (graph, object) = (find(graph)?, find_object(object)?);
    let ending = object.ending.upgrade().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    if flags & CU_GRAPH_USER_OBJECT_MOVE != 0 {
        release(&object, count)?;
    }
    graph.attach(Arc::new(References { ending, count }));
    Ok(())
}

#[entry_point]
fn cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: u32) -> CuResult {
    ending_here(|| release_of_graph(graph, object, check_count(count)?))
}

/// Gives up references of a graph's.
fn release_of_graph(graph: CUgraph, object: CUuserObject, count: usize) -> CuResult {
    let (graph, object) = (find(graph)?, find_object(object)?);
    let ending = object.ending.upgrade().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let is_of = |attachment: &Attachment| {
        attachment.downcast_ref::<References>().is_some_and(|found| Arc::ptr_eq(&found.ending, &ending))
    };
    let found = graph.detach(usize::MAX, is_of);
    let total: usize =
        found.iter().filter_map(|found| found.downcast_ref::<References>()).map(|found| found.count).sum();
    let left = total.checked_sub(count);
    // What stays, or all if they were not so many. Copies of the graph have what they had.
    let count = left.unwrap_or(total);
    if count > 0 {
        graph.attach(Arc::new(References { ending: ending.clone(), count }));
    }
    left.map(drop).ok_or(CUDA_ERROR_INVALID_VALUE.into())
}

fn find_object(object: CUuserObject) -> CuResult<Arc<UserObject>> {
    OBJECTS.get(object.0).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

/// Counts are positive numbers of 31 bits.
fn check_count(count: u32) -> CuResult<usize> {
    match i32::try_from(count) {
        Ok(count) if count > 0 => Ok(count as usize),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// Gives up references of the program's.
fn release(object: &UserObject, count: usize) -> CuResult {
    let last = {
        let mut held = locked(&object.held);
        held.0 = held.0.checked_sub(count).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        if held.0 == 0 { held.1.take() } else { None }
    };
    // Outside the lock: this may be the end of the object.
    drop(last);
    Ok(())
}
