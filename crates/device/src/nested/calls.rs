//! The runtime as kernels call it: from a function and its parameters to what is done, and a code back.

use std::sync::Arc;

use kernel_abi::{BlockFrame, WARP};
use simt_ir::RuntimeFunction;

use super::codes::Code;
use super::updates;
use super::{Call, ThreadId};
use crate::Context;
use crate::callbacks::{Services, host, lanes, services};
use crate::launch::Launch;
use crate::limits::{self, Limit};
use crate::memory::{AddressSpace, Extent, Fill, Region, Side, Transfer};
use crate::module::FunctionAttribute;
use crate::occupancy::{BlockShape, blocks_per_multiprocessor};

/// Most parameters of a function.
const MOST: usize = 8;

type Outcome = Result<(), Code>;

/// A call of the runtime by each lane of `mask`, in order: see `Callbacks::runtime`.
pub(crate) unsafe extern "C" fn runtime(
    frame: *mut BlockFrame,
    mask: u32,
    function: u32,
    arguments: *const u64,
    results: *mut u64,
) {
    // SAFETY: the contract of `Callbacks`: a frame of a running launch, and elements for the lanes of the mask.
    host(|| unsafe {
        let Some(function) = RuntimeFunction::from_number(function) else { return };
        let launch = &*(*frame).launch;
        let [x, y, z] = (*frame).ctaid.map(u64::from);
        let block = (z * u64::from(launch.grid[1]) + y) * u64::from(launch.grid[0]) + x;
        let first = (*frame).warp * WARP;
        for lane in lanes(mask) {
            let mut args = [0; MOST];
            for (index, arg) in args[..function.params().len()].iter_mut().enumerate() {
                *arg = *arguments.add(index * WARP as usize + lane);
            }
            let thread = (block, first + lane as u32);
            *results.add(lane) = Caller { services: services(frame), thread }.call(function, &args);
        }
    });
}

/// The same for blocks that run a second time: they launch nothing again.
pub(crate) unsafe extern "C" fn quiet_runtime(
    _frame: *mut BlockFrame,
    mask: u32,
    _function: u32,
    _arguments: *const u64,
    results: *mut u64,
) {
    for lane in lanes(mask) {
        // SAFETY: the contract of `Callbacks`: elements for the lanes of the mask.
        unsafe { *results.add(lane) = 0 };
    }
}

struct Caller<'a> {
    services: &'a Services,
    thread: ThreadId,
}

impl Caller<'_> {
    fn call(&self, function: RuntimeFunction, args: &[u64; MOST]) -> u64 {
        use RuntimeFunction as F;
        let nested = &self.services.nested;
        let address = match function {
            F::GetLastError => return nested.last_error(self.thread, true).0.into(),
            F::PeekAtLastError => return nested.last_error(self.thread, false).0.into(),
            // Its error is its answer alone.
            F::GraphLaunch => {
                let launched = nested.launch_graph(args[0], args[1]);
                return launched.err().unwrap_or(Code::SUCCESS).0.into();
            }
            F::GraphKernelNodeSetParam
            | F::GraphKernelNodeSetEnabled
            | F::GraphKernelNodeSetGridDim
            | F::GraphKernelNodeUpdatesApply => {
                return updates::perform(function, args).err().unwrap_or(Code::SUCCESS).0.into();
            }
            F::AlignedMalloc => {
                let heap = &nested.ready().domain.heap;
                return heap.allocate_aligned(args[0], args[1]).unwrap_or(0);
            }
            F::GetErrorName => return Code(args[0] as u32).name_address(),
            F::GetErrorString => return Code(args[0] as u32).meaning_address(),
            F::GetParameterBuffer => nested.add_buffer(args[1], None),
            F::GetParameterBufferV2 => {
                shape(args[1], args[2], args[3]).and_then(|launch| nested.parameter_buffer(args[0], launch))
            }
            _ => self.perform(function, args).map(|()| 0),
        };
        match address {
            Ok(result) => result,
            Err(code) => {
                nested.note_error(self.thread, code);
                let gives_address = matches!(function, F::GetParameterBuffer | F::GetParameterBufferV2);
                if gives_address { 0 } else { code.0.into() }
            }
        }
    }

    /// A function that answers a code.
    fn perform(&self, function: RuntimeFunction, args: &[u64; MOST]) -> Outcome {
        use RuntimeFunction as F;
        let nested = &self.services.nested;
        let (block, heap) = (self.thread.0, &self.services.nested.ready().domain.heap);
        let [a, b, c, d, e, f, g, h] = *args;
        match function {
            F::LaunchDeviceV2 => nested.launch(a, None, b, block),
            F::LaunchDevice => {
                let call = Call { kernel: nested.kernel(a)?, launch: shape(c, d, e)? };
                nested.launch(b, Some(call), f, block)
            }
            F::StreamCreateWithFlags => {
                // The default kind, which a grid has nothing to order with, and the one that says so.
                if b as u32 > 1 {
                    return Err(Code::INVALID_VALUE);
                }
                put(a, nested.make_stream()?)
            }
            F::StreamDestroy => nested.destroy_stream(a),
            F::StreamWaitEvent if c as u32 != 0 => Err(Code::INVALID_VALUE),
            F::StreamWaitEvent => nested.wait_event(a, b, block),
            F::EventCreateWithFlags => {
                const DISABLE_TIMING: u32 = 2;
                if b as u32 != DISABLE_TIMING {
                    return Err(Code::INVALID_VALUE);
                }
                put(a, nested.make_event())
            }
            F::EventRecordWithFlags if c as u32 != 0 => Err(Code::INVALID_VALUE),
            F::EventRecord | F::EventRecordWithFlags => nested.record(a, b, block),
            F::EventDestroy => nested.destroy_event(a),
            F::Malloc => put(a, heap.allocate(b).ok_or(Code::MEMORY_ALLOCATION)?),
            F::Free if a == 0 || heap.free(a) => Ok(()),
            F::Free => Err(Code::INVALID_VALUE),
            F::MemcpyAsync => self.copy(row(a), row(b), [c, 1, 1], d, e),
            F::Memcpy2DAsync => self.copy((a, b, 0), (c, d, 0), [e, f, 1], g, h),
            F::Memcpy3DAsync => self.copy_3d(a, b),
            F::MemsetAsync => self.fill((a, 0, 0), b, [c, 1, 1], d),
            F::Memset2DAsync => self.fill((a, b, 0), c, [d, e, 1], f),
            F::Memset3DAsync => {
                let (pitch, height) = (word(a, 1)?, word(a, 3)?);
                let slice = pitch.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
                let extent = [word(c, 0)?, word(c, 1)?, word(c, 2)?];
                self.fill((word(a, 0)?, pitch, slice), b, extent, d)
            }
            F::GetDeviceCount => put(a, 1_u32),
            F::GetDevice => put(a, 0_u32),
            // What kernels are told has stayed that of the first version that had them call the runtime so.
            F::RuntimeGetVersion => put(a, 6_000_u32),
            F::DeviceGetCacheConfig | F::DeviceGetSharedMemConfig => put(a, 0_u32),
            F::DeviceGetLimit => {
                let limit = match b {
                    0 => Limit::StackSize,
                    1 => Limit::PrintfFifoSize,
                    2 => Limit::MallocHeapSize,
                    3 => Limit::DevRuntimeSyncDepth,
                    4 => Limit::DevRuntimePendingLaunchCount,
                    5 => Limit::MaxL2FetchGranularity,
                    6 => Limit::PersistingL2CacheSize,
                    _ => return Err(Code::INVALID_VALUE),
                };
                put(a, nested.context()?.limit(limit)?)
            }
            // Of the device that it runs on, which is the only one that a kernel knows.
            F::DeviceGetAttribute => {
                if c as u32 != 0 {
                    return Err(Code::INVALID_DEVICE);
                }
                let value = attribute(&nested.context()?, b as u32).ok_or(Code::INVALID_VALUE)?;
                put(a, value)
            }
            F::FuncGetAttributes => self.function_attributes(a, b),
            F::OccupancyMaxActiveBlocksPerMultiprocessor
            | F::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags => {
                let function = nested.function(&nested.kernel(b)?)?;
                let threads = c as u32;
                if threads == 0 || threads > limits::MAX_THREADS_PER_BLOCK {
                    return Err(Code::INVALID_VALUE);
                }
                let shared = u64::from(function.static_shared()?).checked_add(d);
                let shared = shared.and_then(|bytes| u32::try_from(bytes).ok()).ok_or(Code::INVALID_VALUE)?;
                let of = nested.context()?.attributes().multiprocessor();
                put(a, blocks_per_multiprocessor(of, BlockShape { threads, shared }))
            }
            F::GraphLaunch
            | F::GraphKernelNodeSetParam
            | F::GraphKernelNodeSetEnabled
            | F::GraphKernelNodeSetGridDim
            | F::GraphKernelNodeUpdatesApply
            | F::GetLastError
            | F::PeekAtLastError
            | F::GetErrorName
            | F::GetErrorString
            | F::AlignedMalloc
            | F::GetParameterBuffer
            | F::GetParameterBufferV2 => Err(Code::NOT_SUPPORTED),
        }
    }

    /// Queues a copy within the device. Each end is an address, a pitch and the bytes of a slice.
    fn copy(&self, to: End, from: End, extent: [u64; 3], kind: u64, stream: u64) -> Outcome {
        const DEVICE_TO_DEVICE: u32 = 3;
        const DEFAULT: u32 = 4;
        if !matches!(kind as u32, DEVICE_TO_DEVICE | DEFAULT) {
            return Err(Code::INVALID_MEMCPY_DIRECTION);
        }
        let region = |end: End| Region { start: Side::kernel(end.0), pitch: end.1, slice_pitch: end.2 };
        let [width, height, depth] = extent;
        let transfer = match (height, depth) {
            (1, 1) => Transfer::linear(Side::kernel(to.0), Side::kernel(from.0), width),
            _ => Transfer { to: region(to), from: region(from), extent: Extent { width, height, depth } },
        };
        let nested = &self.services.nested;
        let context = nested.context()?;
        let space = context.memory();
        let checked = transfer.check(space).map(drop);
        let checked = known_later(space, [(to, extent), (from, extent)], checked)?;
        let task = Box::new(move || checked.and_then(|()| transfer.run()));
        nested.submit(&context, stream, self.thread.0, task)
    }

    /// Queues the copy that a `cudaMemcpy3DParms` describes.
    fn copy_3d(&self, params: u64, stream: u64) -> Outcome {
        // In words: source array, position of three, pitched pointer of four; the same of the destination; extent; kind.
        let end = |first: u64| -> Result<End, Code> {
            let [array, x, y, z, address, pitch, _, height] = read_words(params, first)?;
            if array != 0 {
                return Err(Code::NOT_SUPPORTED);
            }
            let slice = pitch.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
            let offset =
                z.checked_mul(slice).and_then(|z| y.checked_mul(pitch)?.checked_add(z)?.checked_add(x));
            let start = offset.and_then(|offset| address.checked_add(offset)).ok_or(Code::INVALID_VALUE)?;
            Ok((start, pitch, slice))
        };
        let extent = [word(params, 16)?, word(params, 17)?, word(params, 18)?];
        self.copy(end(8)?, end(0)?, extent, word(params, 19)?, stream)
    }

    /// Queues the setting of bytes.
    fn fill(&self, to: End, value: u64, extent: [u64; 3], stream: u64) -> Outcome {
        let [width, height, depth] = extent;
        let context = self.services.nested.context()?;
        let slice = move |z: u64| {
            let address = z.checked_mul(to.2).and_then(|offset| to.0.checked_add(offset))?;
            Some(Fill { address, pitch: to.1, value: value as u32 & 0xff, element: 1, width, height })
        };
        if width == 0 || height == 0 || depth == 0 {
            return Ok(());
        }
        let (first, last) = (slice(0), slice(depth - 1));
        let (first, last) = (first.ok_or(Code::INVALID_VALUE)?, last.ok_or(Code::INVALID_VALUE)?);
        let space = context.memory();
        let checked = first.check_for_kernel(space).and_then(|()| last.check_for_kernel(space));
        let checked = known_later(space, [(to, extent)], checked)?;
        let task =
            move || checked.and_then(|()| (0..depth).filter_map(slice).try_for_each(|fill| fill.run()));
        self.services.nested.submit(&context, stream, self.thread.0, Box::new(task))
    }

    /// Writes a `cudaFuncAttributes`: three sizes, then numbers of 32 bits.
    fn function_attributes(&self, to: u64, function: u64) -> Outcome {
        const BYTES: u64 = 144;
        let nested = &self.services.nested;
        let function = nested.function(&nested.kernel(function)?)?;
        let value = |attribute| function.attribute(attribute).map_err(Code::from);
        for word in 0..BYTES / 8 {
            put(to.wrapping_add(8 * word), 0_u64)?;
        }
        let sizes =
            [FunctionAttribute::SharedSize, FunctionAttribute::ConstSize, FunctionAttribute::LocalSize];
        for (index, attribute) in (0..).zip(sizes) {
            put(to.wrapping_add(8 * index), u64::from(value(attribute)?))?;
        }
        let numbers = [
            (24, FunctionAttribute::MaxThreadsPerBlock),
            (28, FunctionAttribute::Registers),
            (32, FunctionAttribute::PtxVersion),
            (36, FunctionAttribute::BinaryVersion),
            (44, FunctionAttribute::MaxDynamicSharedSize),
        ];
        for (offset, attribute) in numbers {
            put(to.wrapping_add(offset), value(attribute)?)?;
        }
        Ok(())
    }
}

/// An address, the bytes from one row to the next, and from one slice to the next.
type End = (u64, u64, u64);

fn row(address: u64) -> End {
    (address, 0, 0)
}

/// A copy or fill whose ends begin in memory of a device, with rows that do not overlap, is queued as on a GPU even if not all of
/// it is there: it faults when its turn comes. What is anything else, as a thread's local memory, is refused at once.
fn known_later<const ENDS: usize>(
    space: &AddressSpace,
    ends: [(End, [u64; 3]); ENDS],
    checked: crate::Result<()>,
) -> Result<crate::Result<()>, Code> {
    let faults_later = |((address, pitch, slice), [width, height, depth]): (End, [u64; 3])| {
        let is_known = space.is_device_address(address) || space.find(address).is_some();
        let rows = height <= 1 || pitch >= width;
        let slices = depth <= 1 || u128::from(slice) >= u128::from(pitch) * u128::from(height);
        is_known && rows && slices
    };
    if checked.is_ok() || ends.into_iter().all(faults_later) { Ok(checked) } else { Err(Code::INVALID_VALUE) }
}

/// The shape of a launch: two `dim3` by their addresses, and bytes of shared memory.
fn shape(grid: u64, block: u64, shared: u64) -> Result<Launch, Code> {
    let (grid, block) = (dims(grid)?, dims(block)?);
    Ok(Launch { grid, block, dynamic_shared: shared as u32, cooperative: false, cluster: None })
}

/// Numbers of blocks or threads that the kernel passed.
pub(super) fn dims(at: u64) -> Result<[u32; 3], Code> {
    let dim = |index: u64| {
        // SAFETY: reading memory of the kernel's; what is not there is answered as a fault.
        unsafe { guard::load::<u32>(at.wrapping_add(4 * index)) }.map_err(|_| Code::ILLEGAL_ADDRESS)
    };
    Ok([dim(0)?, dim(1)?, dim(2)?])
}

/// A word of a structure that the kernel passed.
pub(super) fn word(structure: u64, index: u64) -> Result<u64, Code> {
    // SAFETY: reading memory of the kernel's; what is not there is answered as a fault.
    unsafe { guard::load(structure.wrapping_add(8 * index)) }.map_err(|_| Code::ILLEGAL_ADDRESS)
}

fn read_words(structure: u64, first: u64) -> Result<[u64; 8], Code> {
    let mut words = [0; 8];
    for (index, place) in (first..).zip(&mut words) {
        *place = word(structure, index)?;
    }
    Ok(words)
}

/// Writes an answer where the kernel wants it.
fn put<T: guard::Word>(address: u64, value: T) -> Outcome {
    // SAFETY: the kernel passed the address for this; what is not there is answered as a fault.
    unsafe { guard::store(address, value) }.map_err(|_| Code::INVALID_VALUE)
}

/// Those of `cudaDeviceAttr` that kernels can ask for.
fn attribute(context: &Arc<Context>, number: u32) -> Option<u32> {
    let device = &context.hardware().attributes;
    let multiprocessor = device.multiprocessor();
    Some(match number {
        1 => limits::MAX_THREADS_PER_BLOCK,
        2..=4 => limits::MAX_BLOCK[number as usize - 2],
        5..=7 => limits::MAX_GRID[number as usize - 5],
        8 => limits::SHARED_PER_BLOCK,
        9 => limits::CONSTANT_MEMORY,
        10 => WARP,
        11 => i32::MAX as u32,
        12 | 82 => limits::REGISTERS_PER_SM,
        13 => device.clock_khz,
        16 => device.multiprocessors,
        38 => device.l2_bytes,
        39 => multiprocessor.threads,
        75 => device.compute_capability.0,
        76 => device.compute_capability.1,
        81 => multiprocessor.shared,
        97 => multiprocessor.shared_per_block,
        106 => multiprocessor.blocks,
        _ => return None,
    })
}
