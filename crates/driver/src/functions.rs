//! Kernels behind handles: attributes and launches.

use crate::api::stream_attributes::is_possible;
use crate::error::CuResult;
use crate::handle::{self, Kind, Table};
use crate::parameters::{Parameter, pack_into};
use crate::{graphs, libraries, streams};
use cuda_abi::driver::*;
use cuda_abi::shim::{DefaultStream, locked};
use device::graph::{CaptureStatus, EdgeStart};
use device::limits::Multiprocessor;
use device::module::{Entry, FunctionAttribute, Hint};
use device::occupancy::{BlockShape, blocks_per_multiprocessor};
use device::{Event, Launch, Stream, limits};
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex};

static FUNCTIONS: Table<Function> = Table::new(Kind::Function);

/// A kernel of a module.
pub struct Function {
    /// Its handle.
    pub handle: CUfunction,
    /// Its module.
    pub module: CUmodule,
    /// Its name, which programs get a pointer to.
    pub name: CString,
    /// The device's function.
    pub function: Arc<device::Function>,
    /// What the deprecated functions have set for the next launch.
    prepared: Mutex<Prepared>,
}

/// A launch in the making, by the deprecated functions.
struct Prepared {
    block: [u32; 3],
    dynamic_shared: u32,
    parameters: Vec<u8>,
}

/// The function of a handle; a library's kernel stands for its function in the current context.
pub fn find(handle: CUfunction) -> CuResult<Arc<Function>> {
    if handle::is_kind(handle.0, Kind::Kernel) {
        return libraries::find_kernel(CUkernel(handle.0))?.function();
    }
    FUNCTIONS.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// Likewise, what is launched in a stream: of a library's kernel that is the function of the stream's context, whichever is current.
fn find_for(handle: CUfunction, stream: &Stream) -> CuResult<Arc<Function>> {
    if handle::is_kind(handle.0, Kind::Kernel) {
        return libraries::find_kernel(CUkernel(handle.0))?.function_for(stream);
    }
    find(handle)
}

/// Gives a function a handle.
pub fn insert(module: CUmodule, function: Arc<device::Function>) -> CuResult<Arc<Function>> {
    let name = CString::new(function.name()).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    let handle = FUNCTIONS.insert_with(|handle| {
        let prepared = Mutex::new(Prepared { block: [1, 1, 1], dynamic_shared: 0, parameters: Vec::new() });
        Arc::new(Function { handle: CUfunction(handle), module, name, function, prepared })
    });
    find(CUfunction(handle.ok_or(CUDA_ERROR_OUT_OF_MEMORY)?))
}

/// The handle of a function that has one.
pub fn handle_of(function: &Arc<device::Function>) -> CuResult<CUfunction> {
    let known = FUNCTIONS.find_all(|known| Arc::ptr_eq(&known.function, function));
    known.first().map(|(_, known)| known.handle).ok_or(CUDA_ERROR_INVALID_HANDLE.into())
}

/// Makes the handles of a module's functions stale.
pub fn forget(module: CUmodule) {
    FUNCTIONS.remove_all(|function| function.module == module);
}

/// Place and size of a parameter.
pub fn parameter(entry: &Entry, index: usize) -> CuResult<Parameter> {
    let parameter = entry.params.get(index).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    Ok(Parameter { offset: parameter.offset as usize, size: parameter.size as usize })
}

impl Function {
    /// How it is launched.
    pub fn entry(&self) -> &Entry {
        self.function.kernel().entry()
    }

    /// A number about it.
    pub fn attribute(&self, attribute: CUfunction_attribute) -> CuResult<i32> {
        let cluster = |axis: usize| self.function.kernel().required_cluster_blocks(axis) as i32;
        let known = match attribute {
            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => FunctionAttribute::MaxThreadsPerBlock,
            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => FunctionAttribute::SharedSize,
            CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => FunctionAttribute::ConstSize,
            CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => FunctionAttribute::LocalSize,
            CU_FUNC_ATTRIBUTE_NUM_REGS => FunctionAttribute::Registers,
            CU_FUNC_ATTRIBUTE_PTX_VERSION => FunctionAttribute::PtxVersion,
            CU_FUNC_ATTRIBUTE_BINARY_VERSION => FunctionAttribute::BinaryVersion,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => FunctionAttribute::MaxDynamicSharedSize,
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => return Ok(self.hint(Hint::SharedCarveout)),
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => {
                return Ok(self.hint(Hint::NonPortableCluster));
            }
            CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => {
                return Ok(self.hint(Hint::ClusterPolicy));
            }
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH => return Ok(cluster(0)),
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT => return Ok(cluster(1)),
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => return Ok(cluster(2)),
            CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => return Ok(self.entry().explicit_cluster.into()),
            CU_FUNC_ATTRIBUTE_CACHE_MODE_CA => return Ok(0),
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        };
        Ok(self.function.attribute(known)? as i32)
    }

    /// Sets what can be set: the most dynamic shared memory; preferences only change what occupancy is told.
    pub fn set_attribute(&self, attribute: CUfunction_attribute, value: i32) -> CuResult {
        match attribute {
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                let bytes = u32::try_from(value).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
                self.function.set_max_dynamic_shared(bytes)?;
                Ok(())
            }
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT if (-1..=100).contains(&value) => {
                self.set_hint(Hint::SharedCarveout, value)
            }
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => {
                self.set_hint(Hint::NonPortableCluster, i32::from(value != 0))
            }
            CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE if (0..=2).contains(&value) => {
                self.set_hint(Hint::ClusterPolicy, value)
            }
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH => self.set_cluster(0, value),
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT => self.set_cluster(1, value),
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => self.set_cluster(2, value),
            _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    }

    /// Launches it. In a capture, its node has the stream's priority, unless the launch has one.
    ///
    /// # Safety
    /// As for the device's function.
    unsafe fn launch(&self, stream: &Stream, launch: &Launch, parameters: &[u8]) -> CuResult {
        // SAFETY: the caller's duty.
        unsafe { self.function.launch(stream, launch, parameters) }?;
        let priority = stream.priority();
        if priority == 0 {
            return Ok(());
        }
        let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
        value.bytes[..4].copy_from_slice(&priority.to_ne_bytes());
        remember_in_capture(stream, &[(CU_LAUNCH_ATTRIBUTE_PRIORITY, value)])
    }

    fn hint(&self, hint: Hint) -> i32 {
        self.function.kernel().hint(hint)
    }

    fn set_hint(&self, hint: Hint, value: i32) -> CuResult {
        self.function.kernel().set_hint(hint, value);
        Ok(())
    }

    fn set_cluster(&self, axis: usize, blocks: i32) -> CuResult {
        let blocks = u32::try_from(blocks).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
        self.function.kernel().set_required_cluster_blocks(axis, blocks)?;
        Ok(())
    }

    /// Blocks of so many threads that run on a multiprocessor together; 0 where a launch would be refused.
    pub fn resident_blocks(&self, threads: u32, dynamic_shared: u64) -> CuResult<u32> {
        let fixed = self.function.attribute(FunctionAttribute::SharedSize)?;
        let most = self.function.max_dynamic_shared()?.max(49152u32.saturating_sub(fixed));
        // The kernel's own limit of threads does not count here, nor one below the usual of dynamic shared memory, as on NVIDIA's driver.
        if dynamic_shared > most.into() {
            return Ok(0);
        }
        let shared = fixed.saturating_add(dynamic_shared as u32);
        Ok(blocks_per_multiprocessor(self.multiprocessor()?, BlockShape { threads, shared }))
    }

    /// A multiprocessor of its device, with as much shared memory as it prefers.
    pub fn multiprocessor(&self) -> CuResult<Multiprocessor> {
        let preferred = [Hint::SharedCarveout, Hint::CacheConfig].map(|hint| self.hint(hint));
        let percent = preferred.into_iter().find(|percent| *percent >= 0).unwrap_or(-1);
        Ok(self.function.module()?.context()?.attributes().multiprocessor().preferring(percent))
    }

    /// Prefers cache or shared memory.
    pub fn set_cache_config(&self, config: CUfunc_cache) -> CuResult {
        let percent = match config {
            CU_FUNC_CACHE_PREFER_NONE => -1,
            CU_FUNC_CACHE_PREFER_SHARED => 100,
            CU_FUNC_CACHE_PREFER_L1 => 0,
            CU_FUNC_CACHE_PREFER_EQUAL => 50,
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        };
        self.set_hint(Hint::CacheConfig, percent)
    }

    /// Sets the block shape of the next prepared launch.
    pub fn prepare_block(&self, block: [u32; 3]) {
        locked(&self.prepared).block = block;
    }

    /// Sets the dynamic shared memory of the next prepared launch.
    pub fn prepare_shared(&self, bytes: u32) {
        locked(&self.prepared).dynamic_shared = bytes;
    }

    /// Sets parameter bytes of the next prepared launch.
    pub fn prepare_parameters(&self, offset: usize, bytes: &[u8]) -> CuResult {
        let mut prepared = locked(&self.prepared);
        let end = offset.checked_add(bytes.len()).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let most = self.entry().param_bytes as usize;
        if end > most {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        prepared.parameters.resize(most, 0);
        prepared.parameters[offset..end].copy_from_slice(bytes);
        Ok(())
    }
}

/// Launches a kernel.
///
/// # Safety
/// Parameters are as `cuLaunchKernel` asks.
pub unsafe fn launch(
    function: CUfunction,
    launch: Launch,
    stream: CUstream,
    default: DefaultStream,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CuResult {
    let stream = streams::find(stream, default)?;
    let function = find_for(function, &stream)?;
    let entry = function.entry();
    let layout = entry
        .params
        .iter()
        .map(|parameter| Parameter { offset: parameter.offset as usize, size: parameter.size as usize });
    // Most kernels have few: no memory is allocated for those.
    let (mut few, mut many) = ([0; 128], Vec::new());
    let len = entry.param_bytes as usize;
    let parameters = match few.get_mut(..len) {
        Some(few) => few,
        None => {
            many.resize(len, 0);
            &mut many[..]
        }
    };
    // SAFETY: the caller's duty.
    unsafe { pack_into(parameters, layout, kernel_params, extra) }?;
    // SAFETY: the caller's duty.
    unsafe { function.launch(&stream, &launch, parameters) }
}

/// Launches a kernel with what the deprecated functions have set.
pub fn launch_prepared(function: CUfunction, grid: [u32; 3], stream: CUstream) -> CuResult {
    let function = find(function)?;
    let stream = streams::find(stream, DefaultStream::Legacy)?;
    let prepared = locked(&function.prepared);
    let launch = Launch {
        grid,
        block: prepared.block,
        dynamic_shared: prepared.dynamic_shared,
        cooperative: false,
        cluster: None,
    };
    // SAFETY: the program keeps the kernel and the host in order, as with every device.
    unsafe { function.launch(&stream, &launch, &prepared.parameters) }
}

/// Makes one cooperative launch for each device. All streams get to it before one begins, and none goes on before all are over,
/// unless the flags say otherwise.
///
/// # Safety
/// Parameters are as `cuLaunchKernel` asks.
pub unsafe fn launch_on_devices(launches: &[CUDA_LAUNCH_PARAMS], flags: u32) -> CuResult {
    let mut streams = Vec::new();
    for (index, launch) in launches.iter().enumerate() {
        // The default streams of the call's context are one device's.
        if launch.hStream.is_null() {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        let stream = streams::find(launch.hStream, DefaultStream::Legacy)?;
        let device = stream.context()?.device();
        let same = |other: &CUDA_LAUNCH_PARAMS| shape_of(other) == shape_of(launch);
        let twice = streams.iter().any(|(known, _): &(usize, _)| *known == device);
        if twice || !launches[..index].iter().all(same) {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        streams.push((device, stream));
    }
    let join = |wanted: bool| -> CuResult {
        if wanted && streams.len() > 1 {
            let ends: Vec<_> = streams.iter().filter_map(|(_, stream)| stream.last()).collect();
            streams.iter().try_for_each(|(_, stream)| stream.wait_all(ends.clone()))?;
        }
        Ok(())
    };
    join(flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC == 0)?;
    for launch in launches {
        let (grid, block, dynamic_shared) = shape_of(launch);
        let shape = Launch { grid, block, dynamic_shared, cooperative: true, cluster: None };
        let (params, extra) = (launch.kernelParams, std::ptr::null_mut());
        // SAFETY: the caller's duty.
        unsafe {
            self::launch(launch.function, shape, launch.hStream, DefaultStream::Legacy, params, extra)
        }?;
    }
    join(flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC == 0)
}

fn shape_of(launch: &CUDA_LAUNCH_PARAMS) -> ([u32; 3], [u32; 3], u32) {
    (
        [launch.gridDimX, launch.gridDimY, launch.gridDimZ],
        [launch.blockDimX, launch.blockDimY, launch.blockDimZ],
        launch.sharedMemBytes,
    )
}

/// What a launch's attributes ask for that is more than a hint.
#[derive(Clone, Default)]
pub struct Asked {
    /// All blocks at the same time.
    pub cooperative: bool,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Blocks of a cluster where the device can have them: this one never does.
    preferred_cluster: Option<[u32; 3]>,
    /// Events that the launch records: one when its blocks let dependent launches go on, one when all of them have begun.
    events: [CUevent; 2],
    /// One of them is said to be for other graphs to wait for.
    external_event: bool,
    /// The first of them is recorded when blocks begin, whether they let others go on or not.
    at_start: bool,
    /// To begin when the kernels before it let it, rather than at their end.
    pub programmatic: bool,
    /// Kernels are to change its node: it is for captures.
    pub updatable: bool,
    /// What it permits or prefers.
    hints: Vec<(CUlaunchAttributeID, CUlaunchAttributeValue)>,
}

impl Asked {
    /// The events that the launch is to record. No launch here begins before the one that it depends on is over, so they are recorded
    /// after the kernel, as late as the manual lets them be. With each, what of the kernel a capture's nodes that wait for it wait for.
    ///
    /// # Errors
    /// [`CUDA_ERROR_NOT_SUPPORTED`] for events that take the time or that other processes see, and for one of the completion that who
    /// waits for it sleeps; for events that other graphs are to wait for in a capture, and [`CUDA_ERROR_ILLEGAL_STATE`] elsewhere.
    pub fn events(
        &self,
        is_captured: impl FnOnce() -> CuResult<bool>,
    ) -> CuResult<Vec<(Arc<Event>, EdgeStart)>> {
        if self.external_event {
            let code = if is_captured()? { CUDA_ERROR_NOT_SUPPORTED } else { CUDA_ERROR_ILLEGAL_STATE };
            return Err(code.into());
        }
        let find = |handle: CUevent, may_block: bool| -> CuResult<_> {
            let event = streams::find_event(handle)?;
            let flags = event.flags();
            let fits = flags.disable_timing && !flags.interprocess && (may_block || !flags.blocking_sync);
            if fits { Ok(event) } else { Err(CUDA_ERROR_NOT_SUPPORTED.into()) }
        };
        let first =
            if self.at_start { EdgeStart::Begun { programmatic: true } } else { EdgeStart::Triggered };
        let parts = [(true, first), (false, EdgeStart::Begun { programmatic: false })];
        let wanted = self.events.into_iter().zip(parts).filter(|(handle, _)| !handle.is_null());
        wanted.map(|(handle, (may_block, start))| Ok((find(handle, may_block)?, start))).collect()
    }

    /// If the stream captures: the node of the launch has what the launch permits or prefers.
    pub fn remember_in_capture(&self, stream: CUstream, default: DefaultStream) -> CuResult {
        if self.hints.is_empty() {
            return Ok(());
        }
        remember_in_capture(&*streams::find(stream, default)?, &self.hints)
    }

    /// Whether clusters of the preferred size would be possible: made of whole clusters of the other, which the launch or its function says, and
    /// dividing the grid.
    pub fn is_preference_possible(&self, function: CUfunction, grid: [u32; 3]) -> CuResult<bool> {
        let Some(preferred) = self.preferred_cluster.filter(|preferred| *preferred != [0; 3]) else {
            return Ok(true);
        };
        let divides = |part: u32, whole: u32| part != 0 && whole.is_multiple_of(part);
        let fits = |cluster: [u32; 3]| {
            (0..3).all(|axis| divides(cluster[axis], preferred[axis]) && divides(preferred[axis], grid[axis]))
        };
        let cluster = match self.cluster {
            Some(cluster) => Some(cluster),
            None => find(function)?.function.kernel().required_cluster(),
        };
        Ok(cluster.is_some_and(fits))
    }
}

/// What a launch's attributes ask for.
///
/// # Safety
/// `attributes` is null or leads to `count` attributes.
pub unsafe fn asked(attributes: *const CUlaunchAttribute, count: u32) -> CuResult<Asked> {
    if attributes.is_null() && count > 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let mut asked = Asked::default();
    for index in 0..count as usize {
        // SAFETY: the caller's duty.
        let attribute = unsafe { attributes.add(index).read_unaligned() };
        let value = attribute.value;
        let dimensions = || Some([0, 1, 2].map(|axis| value.word(axis)));
        match attribute.id {
            CU_LAUNCH_ATTRIBUTE_COOPERATIVE => asked.cooperative = value.word(0) != 0,
            CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => asked.cluster = dimensions(),
            CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => asked.preferred_cluster = dimensions(),
            CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE if value.word(0) > 2 => {
                return Err(CUDA_ERROR_INVALID_VALUE.into());
            }
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION => asked.programmatic = value.word(0) != 0,
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => {
                (asked.events[0], asked.external_event) = event_of(value)?;
                asked.at_start = value.word(3) != 0;
            }
            CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
                let (event, is_external) = event_of(value)?;
                asked.events[1] = event;
                asked.external_event |= is_external;
            }
            CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE if value.word(0) > 1 => {
                return Err(CUDA_ERROR_INVALID_VALUE.into());
            }
            CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => asked.updatable = value.word(0) == 1,
            // Of streams alone.
            CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => return Err(CUDA_ERROR_INVALID_VALUE.into()),
            // The rest permits or prefers something; nothing is an answer to that.
            hint if hint.name().is_some() && is_hint(hint, value) => {
                asked.hints.push((hint, kept(hint, value)))
            }
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    }
    Ok(asked)
}

/// The stream captures, and kernels are to change the node of the newest launch: what they know it by is written where the program asked.
///
/// # Safety
/// As for [`asked`].
pub unsafe fn let_kernels_change(
    stream: &Stream,
    attributes: *mut CUlaunchAttribute,
    count: u32,
) -> CuResult {
    let (CaptureStatus::Active, Some(info)) = stream.capture_status()? else { return Ok(()) };
    for tip in &info.dependencies {
        let kernel = info.graph.let_kernels_change(tip.node)?;
        for index in 0..count as usize {
            // SAFETY: the caller's duty.
            let place = unsafe { attributes.add(index) };
            // SAFETY: likewise.
            let mut attribute = unsafe { place.read_unaligned() };
            if attribute.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE {
                attribute.value = updatable_value(kernel.handle());
                // SAFETY: likewise; the manual has the node written there.
                unsafe { place.write_unaligned(attribute) };
            }
        }
    }
    Ok(())
}

/// What the attribute of a node says that kernels know by this.
pub fn updatable_value(handle: u64) -> CUlaunchAttributeValue {
    let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
    value.bytes[..4].copy_from_slice(&1_u32.to_ne_bytes());
    value.bytes[8..16].copy_from_slice(&handle.to_ne_bytes());
    value
}

/// If the stream captures: the node of the newest launch has these attributes.
fn remember_in_capture(
    stream: &Stream,
    attributes: &[(CUlaunchAttributeID, CUlaunchAttributeValue)],
) -> CuResult {
    let (status, Some(info)) = stream.capture_status()? else { return Ok(()) };
    if status == CaptureStatus::Active {
        for tip in &info.dependencies {
            let (node, _) = graphs::find_node(graphs::node_handle(&info.graph, tip.node)?)?;
            attributes.iter().for_each(|(attribute, value)| node.set_attribute(*attribute, *value));
        }
    }
    Ok(())
}

/// What is kept of an attribute's value: a priority is brought into the range that there is, as a stream's.
pub fn kept(attribute: CUlaunchAttributeID, mut value: CUlaunchAttributeValue) -> CUlaunchAttributeValue {
    if attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY {
        let ((least, greatest), wanted) = (limits::PRIORITIES, value.word(0) as i32);
        value.bytes[..4].copy_from_slice(&wanted.clamp(greatest, least).to_ne_bytes());
    }
    value
}

/// Whether an attribute that changes nothing may have this value.
pub fn is_hint(attribute: CUlaunchAttributeID, value: CUlaunchAttributeValue) -> bool {
    let first = value.word(0);
    match attribute {
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => {
            // SAFETY: the member is plain numbers and lies at the beginning of the union's 64 bytes.
            is_possible(&unsafe { value.bytes.as_ptr().cast::<CUaccessPolicyWindow>().read_unaligned() })
        }
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => value.bytes[..2].iter().all(|domain| *domain < 4),
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN | CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING => {
            first <= 1
        }
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => first <= 100,
        _ => true,
    }
}

/// The event of an attribute, which has flags beside it: whether other graphs are to wait for it.
fn event_of(value: CUlaunchAttributeValue) -> CuResult<(CUevent, bool)> {
    let event = u64::from(value.word(0)) | u64::from(value.word(1)) << 32;
    match value.word(2) {
        _ if event == 0 => Err(CUDA_ERROR_INVALID_HANDLE.into()),
        flags @ (CU_EVENT_RECORD_DEFAULT | CU_EVENT_RECORD_EXTERNAL) => {
            Ok((CUevent(event as usize), flags == CU_EVENT_RECORD_EXTERNAL))
        }
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}
