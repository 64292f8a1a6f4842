//! Streams and events behind their handles.

use crate::contexts::{self, Context};
use crate::error::CuResult;
use crate::handle::{Kind, Table};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::ContextId;
use device::{Event, EventFlags, SharedEventHandle, Stream, StreamKind};
use std::sync::Arc;

static STREAMS: Table<Owned<Stream>> = Table::new(Kind::Stream);
static EVENTS: Table<Owned<Event>> = Table::new(Kind::Event);

/// An object and the context whose end makes its handle stale.
struct Owned<T> {
    owner: ContextId,
    object: Arc<T>,
}

/// The stream of a handle. 0 is one of the default streams of the current context, `default` says which; 1 and 2 are
/// the legacy and the calling thread's.
pub fn find(handle: CUstream, default: DefaultStream) -> CuResult<Arc<Stream>> {
    match handle {
        CUstream::NULL => default_stream(default),
        CU_STREAM_LEGACY => default_stream(DefaultStream::Legacy),
        CU_STREAM_PER_THREAD => default_stream(DefaultStream::PerThread),
        _ => {
            let stream = STREAMS.map(handle.0, |stream| stream.object.clone());
            let stream = stream.map_err(|_| CUDA_ERROR_INVALID_HANDLE)?;
            // Streams stay when their green context goes, but are of no more use.
            stream.partition().map(|partition| partition.context()).transpose()?;
            Ok(stream)
        }
    }
}

/// A default stream of the current context.
pub fn default_stream(which: DefaultStream) -> CuResult<Arc<Stream>> {
    let context = contexts::usable()?;
    if let Some(partition) = context.partition() {
        return Ok(partition.default_stream()?);
    }
    Ok(match which {
        DefaultStream::Legacy => context.legacy_stream().clone(),
        DefaultStream::PerThread => context.per_thread_stream(),
    })
}

/// Makes a stream in the current context.
pub fn create(flags: u32, priority: i32) -> CuResult<CUstream> {
    let kind = match flags {
        CU_STREAM_DEFAULT => StreamKind::Blocking,
        CU_STREAM_NON_BLOCKING => StreamKind::NonBlocking,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    create_in(&*contexts::current()?, kind, priority)
}

/// Makes a stream in a context.
pub fn create_in(context: &Context, kind: StreamKind, priority: i32) -> CuResult<CUstream> {
    let stream = match context.partition() {
        Some(partition) => partition.create_stream(kind, priority)?,
        None => context.create_stream(kind, priority)?,
    };
    insert(&STREAMS, context, stream).map(CUstream)
}

/// Destroys a stream, whose work goes on.
pub fn destroy(handle: CUstream) -> CuResult {
    let stream = STREAMS.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE)?;
    // One of a green context that is gone is of no more use, and stays.
    stream.object.partition().map(|partition| partition.context()).transpose()?;
    STREAMS.remove(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE)?;
    stream.object.context()?.check()?;
    Ok(())
}

/// The bits a stream was made with.
pub fn flags(stream: &Stream) -> u32 {
    match stream.kind() {
        StreamKind::NonBlocking => CU_STREAM_NON_BLOCKING,
        StreamKind::Blocking | StreamKind::Legacy | StreamKind::PerThread => CU_STREAM_DEFAULT,
    }
}

/// The event of a handle.
pub fn find_event(handle: CUevent) -> CuResult<Arc<Event>> {
    EVENTS.map(handle.0, |event| event.object.clone()).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// Makes an event in the current context.
pub fn create_event(flags: u32) -> CuResult<CUevent> {
    if flags & !(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS) != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let flags = EventFlags {
        blocking_sync: flags & CU_EVENT_BLOCKING_SYNC != 0,
        disable_timing: flags & CU_EVENT_DISABLE_TIMING != 0,
        interprocess: flags & CU_EVENT_INTERPROCESS != 0,
    };
    let context = contexts::current()?;
    let event = Event::new(&context, flags)?;
    insert(&EVENTS, &context, event).map(CUevent)
}

/// Opens another process's event in the current context.
pub fn open_event(handle: &SharedEventHandle) -> CuResult<CUevent> {
    let context = contexts::current()?;
    let event = Event::open(&context, handle)?;
    insert(&EVENTS, &context, event).map(CUevent)
}

/// Destroys an event.
pub fn destroy_event(handle: CUevent) -> CuResult {
    let event = EVENTS.remove(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE)?;
    event.object.context()?.check()?;
    Ok(())
}

/// Makes the handles of a context's streams and events stale.
pub fn forget(owner: ContextId) {
    STREAMS.remove_all(|stream| stream.owner == owner);
    EVENTS.remove_all(|event| event.owner == owner);
}

fn insert<T>(table: &Table<Owned<T>>, context: &Context, object: Arc<T>) -> CuResult<usize> {
    table.insert(Arc::new(Owned { owner: context.id(), object })).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}
