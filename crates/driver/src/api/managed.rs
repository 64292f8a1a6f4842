//! Unified addressing: what programs say about where managed memory should be. All processors share the machine's memory, so it
//! changes nothing; but programs may ask for what they said.

use super::copy_batches::{spread, stream_of_batch, value_for};
use crate::contexts;
use crate::error::CuResult;
use crate::platform::{device, platform};
use crate::pools::is_node;
use crate::streams;
use cuda_abi::args::Array;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::{Advice, Place, RangeState};
use entry_macros::entry_point;
use std::ffi::c_void;

#[entry_point]
fn cuMemAdvise(devPtr: CUdeviceptr, count: usize, advice: CUmem_advise, device: CUdevice) -> CuResult {
    advise(devPtr, count, advice, location_of(device))
}

#[entry_point]
fn cuMemAdvise_v2(
    devPtr: CUdeviceptr,
    count: usize,
    advice: CUmem_advise,
    location: CUmemLocation,
) -> CuResult {
    let types = CU_MEM_LOCATION_TYPE_DEVICE.0..=CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT.0;
    if !types.contains(&location.r#type.0) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // A device that there is not is told in this way here.
    if location.r#type == CU_MEM_LOCATION_TYPE_DEVICE && needs_location(advice) {
        place(location).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    }
    advise(devPtr, count, advice, location)
}

fn needs_location(advice: CUmem_advise) -> bool {
    matches!(
        advice,
        CU_MEM_ADVISE_SET_PREFERRED_LOCATION
            | CU_MEM_ADVISE_SET_ACCESSED_BY
            | CU_MEM_ADVISE_UNSET_ACCESSED_BY
    )
}

fn advise(pointer: CUdeviceptr, len: usize, advice: CUmem_advise, location: CUmemLocation) -> CuResult {
    device::graph::check_unsafe_call()?;
    if let Ok(context) = contexts::current() {
        context.check()?;
    }
    let user = || -> CuResult<Option<usize>> {
        match place(location)? {
            Place::Device(device) => Ok(Some(device)),
            Place::Host => Ok(None),
            // Accesses are of devices and of the host as a whole.
            Place::HostNode(_) => Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    };
    let advice = match advice {
        CU_MEM_ADVISE_SET_READ_MOSTLY => Advice::ReadMostly(true),
        CU_MEM_ADVISE_UNSET_READ_MOSTLY => Advice::ReadMostly(false),
        CU_MEM_ADVISE_SET_PREFERRED_LOCATION => Advice::Preferred(Some(place(location)?)),
        CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION => Advice::Preferred(None),
        CU_MEM_ADVISE_SET_ACCESSED_BY => Advice::AccessedBy(user()?, true),
        CU_MEM_ADVISE_UNSET_ACCESSED_BY => Advice::AccessedBy(user()?, false),
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    platform()?.memory().advise(pointer.0, len as u64, advice)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuMemPrefetchAsync(
    default: DefaultStream,
    devPtr: CUdeviceptr,
    count: usize,
    dstDevice: CUdevice,
    hStream: CUstream,
) -> CuResult {
    let place = place(location_of(dstDevice))?;
    streams::find(hStream, default)?.prefetch(devPtr.0, count as u64, place)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuMemPrefetchAsync_v2(
    default: DefaultStream,
    devPtr: CUdeviceptr,
    count: usize,
    location: CUmemLocation,
    flags: u32,
    hStream: CUstream,
) -> CuResult {
    check_flags(flags.into())?;
    let place = place(location)?;
    streams::find(hStream, default)?.prefetch(devPtr.0, count as u64, place)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuMemPrefetchBatchAsync(
    default: DefaultStream,
    dptrs: Array<CUdeviceptr>,
    sizes: Array<usize>,
    count: usize,
    prefetchLocs: Array<CUmemLocation>,
    prefetchLocIdxs: Array<usize>,
    numPrefetchLocs: usize,
    flags: u64,
    hStream: CUstream,
) -> CuResult {
    let ranges = Ranges { starts: dptrs, sizes, count };
    let places = Places { locations: prefetchLocs, firsts: prefetchLocIdxs, count: numPrefetchLocs };
    ranges.run(false, Some(places), flags, hStream, default)
}

#[entry_point(ptsz)]
fn cuMemDiscardBatchAsync(
    default: DefaultStream,
    dptrs: Array<CUdeviceptr>,
    sizes: Array<usize>,
    count: usize,
    flags: u64,
    hStream: CUstream,
) -> CuResult {
    Ranges { starts: dptrs, sizes, count }.run(true, None, flags, hStream, default)
}

#[entry_point(ptsz)]
fn cuMemDiscardAndPrefetchBatchAsync(
    default: DefaultStream,
    dptrs: Array<CUdeviceptr>,
    sizes: Array<usize>,
    count: usize,
    prefetchLocs: Array<CUmemLocation>,
    prefetchLocIdxs: Array<usize>,
    numPrefetchLocs: usize,
    flags: u64,
    hStream: CUstream,
) -> CuResult {
    let ranges = Ranges { starts: dptrs, sizes, count };
    let places = Places { locations: prefetchLocs, firsts: prefetchLocIdxs, count: numPrefetchLocs };
    ranges.run(true, Some(places), flags, hStream, default)
}

/// The ranges of a batch.
struct Ranges {
    starts: Array<CUdeviceptr>,
    sizes: Array<usize>,
    count: usize,
}

/// Where they are to go.
struct Places {
    locations: Array<CUmemLocation>,
    firsts: Array<usize>,
    count: usize,
}

impl Ranges {
    /// Discards or prefetches all ranges, or both; or none if one is wrong.
    fn run(
        self,
        discard: bool,
        places: Option<Places>,
        flags: u64,
        stream: CUstream,
        default: DefaultStream,
    ) -> CuResult {
        check_flags(flags)?;
        if self.count == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        let stream = stream_of_batch(stream, default)?;
        let places = match places {
            Some(places) => Some(spread(self.count, places.locations, places.firsts, places.count)?),
            None => None,
        };
        let memory = platform()?.memory();
        let mut ranges = Vec::new();
        for index in 0..self.count {
            let (start, len) = (self.starts.get(index)?.0, self.sizes.get(index)? as u64);
            let to = match &places {
                Some(places) => Some(place(value_for(places, index))?),
                None => None,
            };
            memory.check_movable(start, len)?;
            ranges.push((start, len, to));
        }
        for (start, len, to) in ranges {
            if discard {
                stream.discard(start, len)?;
            }
            if let Some(to) = to {
                stream.prefetch(start, len, to)?;
            }
        }
        Ok(())
    }
}

/// What was said of a whole range.
#[entry_point]
unsafe fn cuMemRangeGetAttribute(
    data: *mut c_void,
    dataSize: usize,
    attribute: CUmem_range_attribute,
    devPtr: CUdeviceptr,
    count: usize,
) -> CuResult {
    let state = platform()?.memory().range_state(devPtr.0, count as u64)?;
    // SAFETY: the caller's duty.
    unsafe { write_attribute(data, dataSize, attribute, &state) }
}

#[entry_point]
unsafe fn cuMemRangeGetAttributes(
    data: Array<*mut c_void>,
    dataSizes: Array<usize>,
    attributes: Array<CUmem_range_attribute>,
    numAttributes: usize,
    devPtr: CUdeviceptr,
    count: usize,
) -> CuResult {
    let state = platform()?.memory().range_state(devPtr.0, count as u64)?;
    if numAttributes == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    for index in 0..numAttributes {
        let (place, size) = (data.get(index)?, dataSizes.get(index)?);
        // SAFETY: the caller's duty.
        unsafe { write_attribute(place, size, attributes.get(index)?, &state) }?;
    }
    Ok(())
}

/// # Safety
/// `place` is null or has room for `size` bytes.
unsafe fn write_attribute(
    place: *mut c_void,
    size: usize,
    attribute: CUmem_range_attribute,
    state: &RangeState,
) -> CuResult {
    let (preferred, prefetched) = (state.preferred.map(location), state.prefetched.map(location));
    let kind = |at: Option<CUmemLocation>| at.map_or(CU_MEM_LOCATION_TYPE_INVALID, |at| at.r#type).0 as i32;
    let id = |at: Option<CUmemLocation>| at.map_or(CU_DEVICE_INVALID, |at| at.id);
    // Numbers of devices; nodes of the host are the host.
    let number = |at: Option<Place>| match at {
        Some(Place::Device(device)) => device as i32,
        Some(Place::Host | Place::HostNode(_)) => CU_DEVICE_CPU,
        None => CU_DEVICE_INVALID,
    };
    let value = match attribute {
        CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY => state.read_mostly.into(),
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION => number(state.preferred),
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION => number(state.prefetched),
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE => kind(preferred),
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID => id(preferred),
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE => kind(prefetched),
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID => id(prefetched),
        CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY => {
            // As many as there is room for, and a filler behind them.
            if place.is_null() || size == 0 || !size.is_multiple_of(4) {
                return Err(CUDA_ERROR_INVALID_VALUE.into());
            }
            let host = state.accessed_by_host.then_some(CU_DEVICE_CPU);
            let users = state.accessed_by.iter().map(|device| *device as i32).chain(host);
            let filled = users.chain(std::iter::repeat(CU_DEVICE_INVALID));
            for (index, user) in filled.take(size / 4).enumerate() {
                // SAFETY: within the bytes that the caller has room for.
                unsafe { place.cast::<i32>().add(index).write_unaligned(user) };
            }
            return Ok(());
        }
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    if place.is_null() || size != 4 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: not null, with room for four bytes.
    unsafe { place.cast::<i32>().write_unaligned(value) };
    Ok(())
}

/// A location as the functions of old name it: a device, or the host.
fn location_of(number: CUdevice) -> CUmemLocation {
    match number {
        CU_DEVICE_CPU => CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST, id: 0 },
        id => CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id },
    }
}

fn place(location: CUmemLocation) -> CuResult<Place> {
    match location.r#type {
        CU_MEM_LOCATION_TYPE_DEVICE => Ok(Place::Device(device(location.id)?.ordinal())),
        CU_MEM_LOCATION_TYPE_HOST => Ok(Place::Host),
        CU_MEM_LOCATION_TYPE_HOST_NUMA if is_node(location.id) => Ok(Place::HostNode(location.id)),
        // The first node stands for all: which one is near makes no difference.
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Ok(Place::HostNode(0)),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

fn location(place: Place) -> CUmemLocation {
    let (r#type, id) = match place {
        Place::Device(device) => (CU_MEM_LOCATION_TYPE_DEVICE, device as i32),
        Place::Host => (CU_MEM_LOCATION_TYPE_HOST, CU_DEVICE_CPU),
        Place::HostNode(node) => (CU_MEM_LOCATION_TYPE_HOST_NUMA, node),
    };
    CUmemLocation { r#type, id }
}

/// Flags are for the future.
fn check_flags(flags: u64) -> CuResult {
    if flags == 0 { Ok(()) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
}
