//! Green contexts and what they are made of: parts of a device.
//!
//! A resource is a structure of the program's, in whose inner part stands where it comes from. Any number of multiprocessors is a part.

use crate::contexts;
use crate::error::CuResult;
use crate::handle::{BadHandle, Kind, Table};
use crate::platform::device;
use cuda_abi::driver::*;
use device::{Partition, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static GREEN: Table<GreenContext> = Table::new(Kind::GreenContext);
static DESCRIPTIONS: Table<Description> = Table::new(Kind::ResourceDescription);

/// The least part of a device, and what every part is a multiple of.
const MIN_PARTITION: u32 = 1;
const ALIGNMENT: u32 = 1;

/// Multiprocessors of a device, and how they were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    device: CUdevice,
    /// The split that they come from; 0 for all that a device or a context has.
    split: u64,
    /// Which of the split's they are, by the first and the number.
    first: u32,
    count: u32,
}

/// Multiprocessors for a green context.
struct Description {
    processors: Processors,
}

/// A green context.
pub struct GreenContext {
    /// Its handle.
    pub handle: CUgreenCtx,
    /// Its streams, on its multiprocessors.
    pub partition: Arc<Partition>,
    /// What it was made with.
    pub processors: Processors,
    /// Its handle as a context.
    context: CUcontext,
}

/// Stands in the inner part of a resource that a function here has made.
const TAG: u64 = u64::from_ne_bytes(*b"anywarp\0");

impl Processors {
    /// All of a device.
    pub fn of_device(ordinal: CUdevice) -> CuResult<Processors> {
        let count = device(ordinal)?.attributes().multiprocessors;
        Ok(Processors { device: ordinal, split: 0, first: 0, count })
    }

    /// The program's structure for them; one of no type for none.
    pub fn write(&self) -> CUdevResource {
        if self.count == 0 {
            let (r#type, internal, oversize) = (CU_DEV_RESOURCE_TYPE_INVALID, [0; 92], [0; 36]);
            return CUdevResource { r#type, internal, sm: CUdevSmResource::default(), oversize };
        }
        let mut internal = [0; 92];
        let words = [TAG, self.device as u64, self.split, self.first.into(), self.count.into()];
        for (place, word) in internal.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        CUdevResource { r#type: CU_DEV_RESOURCE_TYPE_SM, internal, sm: self.told(), oversize: [0; 36] }
    }

    /// What programs see. A part of a split, which cannot be split again, tells no sizes to split it by.
    fn told(&self) -> CUdevSmResource {
        let (least, alignment) = if self.split == 0 { (MIN_PARTITION, ALIGNMENT) } else { (0, 0) };
        CUdevSmResource { smCount: self.count, minSmPartitionSize: least, smCoscheduledAlignment: alignment }
    }

    /// What the program's structure says.
    pub fn read(resource: &CUdevResource) -> CuResult<Processors> {
        if resource.r#type != CU_DEV_RESOURCE_TYPE_SM {
            return Err(CUDA_ERROR_INVALID_RESOURCE_TYPE.into());
        }
        let word = |index: usize| {
            let bytes = resource.internal[8 * index..8 * index + 8].try_into();
            u64::from_ne_bytes(bytes.expect("eight bytes"))
        };
        let small = |index| u32::try_from(word(index)).ok();
        let read = || {
            let (device, first, count) = (small(1)?, small(3)?, small(4)?);
            let known = word(0) == TAG && count > 0 && count == resource.sm.smCount;
            known.then_some(Processors { device: device as CUdevice, split: word(2), first, count })
        };
        let processors = read().ok_or(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)?;
        let all = Processors::of_device(processors.device)?.count;
        let end = processors.first.checked_add(processors.count).filter(|end| *end <= all);
        end.map(|_| processors).ok_or(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION.into())
    }

    /// Parts of at least `least` multiprocessors, all of one size, at most `most` of them; and what is left.
    pub fn split(&self, least: u32, most: u32) -> CuResult<(Vec<Processors>, Processors)> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if self.split != 0 || least > self.count {
            return Err(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION.into());
        }
        // Where a whole one does not fit, a part is all that there is.
        let size = least.max(MIN_PARTITION).next_multiple_of(ALIGNMENT).min(self.count);
        let parts = (self.count / size).min(most);
        let split = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let part = |first, count| Processors { device: self.device, split, first: self.first + first, count };
        let all = (0..parts).map(|index| part(index * size, size)).collect();
        Ok((all, part(parts * size, self.count - parts * size)))
    }

    /// Several parts of one split as one.
    fn join(parts: &[Processors]) -> CuResult<Processors> {
        let mut parts = parts.to_vec();
        parts.sort_unstable_by_key(|part| part.first);
        let Some(&first) = parts.first() else { return Err(CUDA_ERROR_INVALID_VALUE.into()) };
        let mut joined = Processors { count: 0, ..first };
        for (index, part) in parts.iter().enumerate() {
            let overlaps = index > 0 && parts[index - 1].first + parts[index - 1].count > part.first;
            let alone = part.split == 0 && parts.len() > 1;
            if part.count == 0
                || part.device != first.device
                || part.split != first.split
                || overlaps
                || alone
            {
                return Err(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION.into());
            }
            joined.count += part.count;
        }
        Ok(joined)
    }
}

/// Describes what a green context will have.
pub fn describe(parts: &[Processors]) -> CuResult<CUdevResourceDesc> {
    let processors = Processors::join(parts)?;
    let handle = DESCRIPTIONS.insert(Arc::new(Description { processors })).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    Ok(CUdevResourceDesc(handle))
}

/// Makes a green context, of the whole device if the description is null. It retains the device's primary context.
pub fn create(description: CUdevResourceDesc, ordinal: CUdevice) -> CuResult<CUgreenCtx> {
    let primary = contexts::primary(ordinal)?;
    let wanted = match description {
        CUdevResourceDesc::NULL => Processors::of_device(ordinal)?,
        described => DESCRIPTIONS.get(described.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?.processors,
    };
    if wanted.device != ordinal {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    primary.retain()?;
    let of_primary = device(ordinal)?.primary().context();
    let partition = Partition::new(of_primary, wanted.count);
    // As what a device has: it may be split again.
    let processors = Processors { split: 0, ..wanted };
    let context = contexts::insert_green(of_primary.clone(), partition.clone()).inspect_err(|_| {
        let _ = primary.release();
    })?;
    let make = |handle| {
        let handle = CUgreenCtx(handle);
        Arc::new(GreenContext { handle, partition, processors, context })
    };
    Ok(CUgreenCtx(GREEN.insert_with(make).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?))
}

/// Destroys a green context and releases the primary context. What is queued in its streams goes on.
pub fn destroy(handle: CUgreenCtx) -> CuResult {
    let green = GREEN.remove(handle.0).map_err(refused)?;
    green.partition.end()?;
    contexts::forget_green(green.context);
    contexts::primary(green.processors.device)?.release()
}

/// The green context of a handle.
pub fn find(handle: CUgreenCtx) -> CuResult<Arc<GreenContext>> {
    GREEN.get(handle.0).map_err(|bad| refused(bad).into())
}

/// The green context that a part of a device is.
pub fn of_partition(partition: &Partition) -> CuResult<Arc<GreenContext>> {
    let found = GREEN.find_all(|green| green.partition.id() == partition.id()).pop();
    found.map(|(_, green)| green).ok_or(CUDA_ERROR_CONTEXT_IS_DESTROYED.into())
}

/// The green context of a stream; null if it is a whole device's.
pub fn handle_of(stream: &Stream) -> CuResult<CUgreenCtx> {
    let green = stream.partition().map(|partition| of_partition(partition)).transpose()?;
    Ok(green.map_or(CUgreenCtx::NULL, |green| green.handle))
}

/// The context of a stream, as programs know it.
pub fn context_of(stream: &Stream) -> CuResult<CUcontext> {
    match stream.partition() {
        Some(partition) => Ok(of_partition(partition)?.context),
        None => Ok(contexts::handle_of(stream.context()?.id())),
    }
}

fn refused(bad: BadHandle) -> CUresult {
    match bad {
        BadHandle::Stale => CUDA_ERROR_CONTEXT_IS_DESTROYED,
        BadHandle::Foreign => CUDA_ERROR_INVALID_CONTEXT,
    }
}

impl GreenContext {
    /// Its handle as a context.
    pub fn context(&self) -> CUcontext {
        self.context
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Processors = Processors { device: 0, split: 0, first: 0, count: 10 };

    fn counts(parts: &[Processors]) -> Vec<(u32, u32)> {
        parts.iter().map(|part| (part.first, part.count)).collect()
    }

    #[test]
    fn parts_are_of_one_size() {
        let (parts, rest) = ALL.split(3, 9).unwrap();
        assert_eq!((counts(&parts), rest.first, rest.count), (vec![(0, 3), (3, 3), (6, 3)], 9, 1));
        let (parts, rest) = ALL.split(4, 1).unwrap();
        assert_eq!((counts(&parts), rest.first, rest.count), (vec![(0, 4)], 4, 6));
        assert_eq!(ALL.split(0, 99).unwrap().0.len(), 10);
        assert!(ALL.split(11, 1).is_err());
        assert!(parts[0].split(1, 1).is_err(), "a part of a split");
    }

    #[test]
    fn a_resource_that_a_program_has_emptied_is_none() {
        let mut resource = ALL.write();
        resource.internal[32..40].fill(0);
        resource.sm.smCount = 0;
        assert_eq!(Processors::read(&resource), Err(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION.into()));
    }

    #[test]
    fn parts_of_one_split_are_joined() {
        let (parts, rest) = ALL.split(3, 3).unwrap();
        assert_eq!(Processors::join(&[rest, parts[0], parts[2]]).unwrap().count, 7);
        assert_eq!(Processors::join(&[ALL]).unwrap().count, 10);
        let (others, _) = ALL.split(3, 3).unwrap();
        let none = Processors { count: 0, ..rest };
        for wrong in
            [[parts[0], parts[0]], [parts[0], others[1]], [parts[0], ALL], [ALL, ALL], [parts[0], none]]
        {
            assert!(Processors::join(&wrong).is_err(), "{wrong:?}");
        }
        assert!(Processors::join(&[]).is_err());
    }
}
