//! Launches in clusters: which are possible, what attributes say about them, and what their blocks share.

use super::common::*;

/// Each kernel writes, for each block, its rank, the cluster's blocks, and what the block of the next rank has in shared memory.
const BODY: &str = "
{
    .shared .align 4 .b32 own;
    .reg .pred %p;
    .reg .b32 %r<16>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %nctaid.x;
    mov.u32 %r3, %ctaid.y;
    mad.lo.u32 %r1, %r3, %r2, %r1;
    add.u32 %r4, %r1, 100;
    st.shared.u32 [own], %r4;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r5, %cluster_ctarank;
    mov.u32 %r6, %cluster_nctarank;
    add.u32 %r7, %r5, 1;
    rem.u32 %r7, %r7, %r6;
    mov.u32 %r8, own;
    mapa.shared::cluster.u32 %r8, %r8, %r7;
    ld.shared::cluster.u32 %r9, [%r8];
    mov.pred %p, %is_explicit_cluster;
    selp.u32 %r10, 1, 0, %p;
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 16;
    add.u64 %rd1, %rd1, %rd2;
    st.global.v4.u32 [%rd1], {%r5, %r6, %r9, %r10};
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
}
";

fn module() -> CUmodule {
    let kernels = [
        ("plain", ""),
        ("two", ".explicitcluster .reqnctapercluster 2, 1, 1"),
        ("two_at_least", ".reqnctapercluster 2, 1, 1"),
        ("explicit", ".explicitcluster"),
        ("up_to_four", ".maxclusterrank 4"),
        ("sixteen", ".explicitcluster .reqnctapercluster 16, 1, 1"),
    ];
    let header = ".version 8.0\n.target sm_90\n.address_size 64\n".to_string();
    load(&kernels.iter().fold(header, |text, (name, directives)| {
        text + &format!(".visible .entry {name}(.param .u64 out) {directives}{BODY}")
    }))
}

fn attribute_of(id: CUlaunchAttributeID, words: [u32; 3]) -> CUlaunchAttribute {
    let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
    for (bytes, word) in value.bytes.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    CUlaunchAttribute { id, pad: [0; 4], value }
}

const SIZE: CUlaunchAttributeID = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
const PREFERRED: CUlaunchAttributeID = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
const POLICY: CUlaunchAttributeID = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;

fn config(grid: [u32; 2], threads: u32, attributes: &mut [CUlaunchAttribute]) -> CUlaunchConfig {
    CUlaunchConfig {
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: CUstream::NULL,
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    }
}

/// Launches; answers the code and what the kernel wrote.
fn run(
    kernel: CUfunction,
    grid: [u32; 2],
    attributes: &[(CUlaunchAttributeID, [u32; 3])],
) -> (CUresult, Vec<[u32; 4]>) {
    let mut attributes: Vec<_> = attributes.iter().map(|(id, words)| attribute_of(*id, *words)).collect();
    let blocks = (grid[0] * grid[1]) as usize;
    let out = alloc_with(&vec![[7_u32; 4]; blocks]);
    let arguments = &mut [arg(&out)];
    let config = config(grid, 32, &mut attributes);
    // SAFETY: the attributes are as many as the configuration says; the kernel takes an address.
    let code = unsafe { cuLaunchKernelEx(&config, kernel, arguments.as_mut_ptr(), null_mut()) };
    cu!(cuCtxSynchronize());
    (code, read(out, blocks))
}

/// What blocks of clusters of this shape write.
fn expected(grid: [u32; 2], cluster: [u32; 2], explicit: u32) -> Vec<[u32; 4]> {
    let size = cluster[0] * cluster[1];
    let at = |x: u32, y: u32| {
        let (fx, fy) = (x - x % cluster[0], y - y % cluster[1]);
        let rank = y % cluster[1] * cluster[0] + x % cluster[0];
        let next = (rank + 1) % size;
        let (nx, ny) = (fx + next % cluster[0], fy + next / cluster[0]);
        [rank, size, 100 + ny * grid[0] + nx, explicit]
    };
    (0..grid[1]).flat_map(|y| (0..grid[0]).map(move |x| at(x, y))).collect()
}

const BAD: CUresult = CUDA_ERROR_INVALID_CLUSTER_SIZE;

pub fn a_launch_says_how_large_clusters_are() {
    new_context();
    let plain = function(module(), c"plain");
    assert_eq!(run(plain, [4, 1], &[]), (CUDA_SUCCESS, expected([4, 1], [1, 1], 0)));
    assert_eq!(run(plain, [4, 1], &[(SIZE, [0; 3])]), (CUDA_SUCCESS, expected([4, 1], [1, 1], 0)));
    assert_eq!(run(plain, [4, 1], &[(SIZE, [1; 3])]), (CUDA_SUCCESS, expected([4, 1], [1, 1], 1)));
    for (grid, cluster) in
        [([4, 1], [2, 1]), ([6, 1], [3, 1]), ([8, 1], [8, 1]), ([4, 2], [2, 2]), ([2, 8], [1, 8])]
    {
        let asked = [(SIZE, [cluster[0], cluster[1], 1])];
        assert_eq!(run(plain, grid, &asked), (CUDA_SUCCESS, expected(grid, cluster, 1)), "{cluster:?}");
    }
    // The last of several counts.
    let twice = [(SIZE, [4, 1, 1]), (SIZE, [2, 1, 1])];
    assert_eq!(run(plain, [4, 1], &twice), (CUDA_SUCCESS, expected([4, 1], [2, 1], 1)));
    let together = [(SIZE, [2, 1, 1]), (CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [1, 0, 0])];
    assert_eq!(run(plain, [4, 1], &together), (CUDA_SUCCESS, expected([4, 1], [2, 1], 1)));
}

pub fn clusters_divide_the_grid_and_are_not_too_large() {
    new_context();
    let plain = function(module(), c"plain");
    for (grid, cluster) in [
        ([3, 1], [2, 1, 1]),
        ([4, 1], [8, 1, 1]),
        ([4, 1], [2, 2, 1]),
        ([4, 1], [0, 1, 1]),
        ([4, 1], [2, 0, 0]),
        ([9, 1], [9, 1, 1]),
        ([16, 1], [16, 1, 1]),
        ([4, 1], [1 << 31, 1 << 31, 4]),
    ] {
        assert_eq!(run(plain, grid, &[(SIZE, cluster)]).0, BAD, "{cluster:?} in {grid:?}");
    }
    cu!(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    for size in [9, 12, 16] {
        let asked = [(SIZE, [size, 1, 1])];
        assert_eq!(run(plain, [size, 1], &asked), (CUDA_SUCCESS, expected([size, 1], [size, 1], 1)));
    }
    assert_eq!(run(plain, [32, 1], &[(SIZE, [32, 1, 1])]).0, BAD);
}

pub fn what_is_no_grid_is_told_before_clusters() {
    new_context();
    let module = module();
    for name in [c"two", c"explicit"] {
        let kernel = function(module, name);
        let out = alloc_with(&[[7_u32; 4]; 2]);
        for (grid, threads, code) in [
            ([3, 1], 32, BAD),
            ([0, 1], 32, CUDA_ERROR_INVALID_VALUE),
            ([3, 1], 0, CUDA_ERROR_INVALID_VALUE),
            ([3, 1], 1025, CUDA_ERROR_INVALID_VALUE),
            ([3, 65536], 32, CUDA_ERROR_INVALID_VALUE),
        ] {
            assert_eq!(launch_of(kernel, grid, threads, out), code, "{name:?} {grid:?} {threads}");
        }
    }
}

/// The code of a launch without attributes.
fn launch_of(kernel: CUfunction, grid: [u32; 2], threads: u32, out: CUdeviceptr) -> CUresult {
    let (config, arguments) = (config(grid, threads, &mut []), &mut [arg(&out)]);
    // SAFETY: no attributes; the kernel takes an address.
    unsafe { cuLaunchKernelEx(&config, kernel, arguments.as_mut_ptr(), null_mut()) }
}

pub fn a_kernel_says_how_large_clusters_are() {
    new_context();
    let module = module();
    let [two, two_at_least, explicit, up_to_four, sixteen] =
        [c"two", c"two_at_least", c"explicit", c"up_to_four", c"sixteen"].map(|name| function(module, name));
    let pairs = (CUDA_SUCCESS, expected([4, 1], [2, 1], 1));
    assert_eq!(run(two, [4, 1], &[]), pairs);
    assert_eq!(run(two, [4, 1], &[(SIZE, [2, 1, 1])]), pairs);
    assert_eq!(run(two_at_least, [4, 1], &[]), pairs);
    assert_eq!(run(explicit, [4, 1], &[(SIZE, [2, 1, 1])]), pairs);
    assert_eq!(run(two, [3, 1], &[]).0, BAD);
    assert_eq!(run(two_at_least, [3, 1], &[]).0, BAD);
    assert_eq!(run(two, [4, 1], &[(SIZE, [4, 1, 1])]).0, BAD);
    assert_eq!(run(two, [4, 1], &[(SIZE, [1, 1, 1])]).0, BAD);
    assert_eq!(run(explicit, [4, 1], &[]).0, BAD);
    assert_eq!(run(up_to_four, [8, 1], &[]).0, CUDA_SUCCESS);
    assert_eq!(run(up_to_four, [8, 1], &[(SIZE, [4, 1, 1])]).0, CUDA_SUCCESS);
    assert_eq!(run(up_to_four, [8, 1], &[(SIZE, [8, 1, 1])]).0, BAD);
    assert_eq!(run(sixteen, [16, 1], &[]).0, BAD);
    cu!(cuFuncSetAttribute(sixteen, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    assert_eq!(run(sixteen, [16, 1], &[]), (CUDA_SUCCESS, expected([16, 1], [16, 1], 1)));
    // However it is launched.
    let out = alloc_with(&[[7_u32; 4]; 4]);
    assert_eq!(launch(two, 3, 32, CUstream::NULL, &mut [arg(&out)]), BAD);
    assert_eq!(launch(explicit, 4, 32, CUstream::NULL, &mut [arg(&out)]), BAD);
    assert_eq!(launch(two, 4, 32, CUstream::NULL, &mut [arg(&out)]), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    assert_eq!(read::<[u32; 4]>(out, 4), pairs.1);
}

pub fn attributes_of_kernels_tell_of_clusters() {
    new_context();
    let module = module();
    for (name, expected) in [
        (c"plain", [0, 0, 0, 0]),
        (c"two", [1, 2, 1, 1]),
        (c"two_at_least", [0, 2, 1, 1]),
        (c"explicit", [1, 0, 0, 0]),
        (c"up_to_four", [0, 0, 0, 0]),
        (c"sixteen", [1, 16, 1, 1]),
    ] {
        let kernel = function(module, name);
        let found = [
            CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
        ]
        .map(|attribute| {
            let mut value = -7;
            cu!(cuFuncGetAttribute(&mut value, attribute, kernel));
            value
        });
        assert_eq!(found, expected, "{name:?}");
    }
}

pub fn what_a_kernel_asks_for_can_be_set() {
    new_context();
    let module = module();
    let (plain, two) = (function(module, c"plain"), function(module, c"two"));
    const WIDTH: CUfunction_attribute = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
    const HEIGHT: CUfunction_attribute = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT;
    const DEPTH: CUfunction_attribute = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH;
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(plain, WIDTH, -1));
    cu!(cuFuncSetAttribute(plain, WIDTH, 2));
    assert_eq!(run(plain, [4, 1], &[]).0, BAD, "all three or none");
    cu!(cuFuncSetAttribute(plain, HEIGHT, 1); cuFuncSetAttribute(plain, DEPTH, 1));
    assert_eq!(run(plain, [4, 1], &[]), (CUDA_SUCCESS, expected([4, 1], [2, 1], 1)));
    assert_eq!(run(plain, [4, 1], &[(SIZE, [4, 1, 1])]).0, BAD);
    // What the kernel's text says stays.
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(two, WIDTH, 4));
    cu!(cuFuncSetAttribute(two, HEIGHT, 1));
    assert_eq!(run(two, [4, 1], &[]).0, CUDA_SUCCESS);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 1)
    );
    const POLICY: CUfunction_attribute = CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(plain, POLICY, 7));
}

pub fn preferences_have_no_effect_but_must_be_possible() {
    new_context();
    let plain = function(module(), c"plain");
    let two = (SIZE, [2, 1, 1]);
    let pairs = (CUDA_SUCCESS, expected([8, 1], [2, 1], 1));
    for policy in [0, 1, 2] {
        assert_eq!(run(plain, [8, 1], &[two, (POLICY, [policy, 0, 0])]), pairs);
    }
    assert_eq!(run(plain, [8, 1], &[two, (POLICY, [7, 0, 0])]).0, CUDA_ERROR_INVALID_VALUE);
    assert_eq!(run(plain, [8, 1], &[(POLICY, [7, 0, 0])]).0, CUDA_ERROR_INVALID_VALUE);
    assert_eq!(run(plain, [8, 1], &[two, (PREFERRED, [4, 1, 1])]), pairs);
    assert_eq!(run(plain, [8, 1], &[two, (PREFERRED, [3, 1, 1])]).0, BAD);
    assert_eq!(run(plain, [8, 1], &[(PREFERRED, [4, 1, 1])]).0, BAD);
    // The other size may be the kernel's own.
    let own = function(module(), c"two");
    assert_eq!(run(own, [8, 1], &[(PREFERRED, [4, 1, 1])]), pairs);
    assert_eq!(run(own, [8, 1], &[(PREFERRED, [1, 1, 1])]).0, BAD);
}

pub fn nodes_of_graphs_have_clusters() {
    new_context();
    let (plain, out) = (function(module(), c"plain"), alloc_with(&[[7_u32; 4]; 4]));
    let arguments = &mut [arg(&out)];
    let params = CUDA_KERNEL_NODE_PARAMS {
        func: plain,
        gridDimX: 4,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: arguments.as_mut_ptr(),
        extra: null_mut(),
        kern: CUkernel::NULL,
        ctx: CUcontext::NULL,
    };
    let (mut graph, mut node, mut ready) = (CUgraph::NULL, CUgraphNode::NULL, CUgraphExec::NULL);
    let value = attribute_of(SIZE, [2, 1, 1]).value;
    let mut found = CUlaunchAttributeValue { bytes: [9; 64] };
    cu!(
        cuGraphCreate(&mut graph, 0);
        cuGraphAddKernelNode_v2(&mut node, graph, null(), 0, &params);
        cuGraphKernelNodeGetAttribute(node, SIZE, &mut found);
    );
    assert_eq!(found.bytes[..12], [0; 12]);
    cu!(
        cuGraphKernelNodeSetAttribute(node, SIZE, &value);
        cuGraphKernelNodeGetAttribute(node, SIZE, &mut found);
    );
    assert_eq!(found.bytes[..12], value.bytes[..12]);
    // Other parameters leave the clusters as they are.
    cu!(
        cuGraphKernelNodeSetParams_v2(node, &params);
        cuGraphInstantiateWithFlags(&mut ready, graph, 0);
        cuGraphLaunch(ready, CUstream::NULL);
        cuCtxSynchronize();
    );
    assert_eq!(read::<[u32; 4]>(out, 4), expected([4, 1], [2, 1], 1));
    // A launch that is captured has its clusters too.
    let (stream, mut captured) = (stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL);
    let mut attributes = [attribute_of(SIZE, [4, 1, 1])];
    let config = CUlaunchConfig { hStream: stream, ..config([4, 1], 32, &mut attributes) };
    cu!(
        cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        cuLaunchKernelEx(&config, plain, arguments.as_mut_ptr(), null_mut());
        cuStreamEndCapture(stream, &mut captured);
        cuGraphInstantiateWithFlags(&mut ready, captured, 0);
        cuGraphLaunch(ready, stream);
        cuStreamSynchronize(stream);
    );
    assert_eq!(read::<[u32; 4]>(out, 4), expected([4, 1], [4, 1], 1));
}

pub fn impossible_clusters_of_nodes_are_found_at_once() {
    new_context();
    let (kernels, out) = (module(), alloc_with(&[0u32; 64]));
    let arguments = &mut [arg(&out)];
    let params = |kernel: &CStr, blocks: u32| CUDA_KERNEL_NODE_PARAMS {
        func: function(kernels, kernel),
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: arguments.as_ptr().cast_mut(),
        extra: null_mut(),
        kern: CUkernel::NULL,
        ctx: CUcontext::NULL,
    };
    let (mut graph, mut node, mut ready) = (CUgraph::NULL, CUgraphNode::NULL, CUgraphExec::NULL);
    let mut found = CUlaunchAttributeValue { bytes: [9; 64] };
    cu!(
        cuGraphCreate(&mut graph, 0);
        cuGraphAddKernelNode_v2(&mut node, graph, null(), 0, &params(c"plain", 8));
    );
    for size in [[3, 1, 1], [16, 1, 1], [2, 0, 1], [1, 2, 1], [1 << 31, 2, 1]] {
        fails!(BAD, cuGraphKernelNodeSetAttribute(node, SIZE, &attribute_of(SIZE, size).value));
    }
    cu!(cuGraphKernelNodeGetAttribute(node, SIZE, &mut found));
    assert_eq!(found.bytes[..12], [0; 12]);
    // Other parameters must go with the clusters that there are.
    cu!(
        cuGraphKernelNodeSetAttribute(node, SIZE, &attribute_of(SIZE, [2, 1, 1]).value);
        cuGraphInstantiateWithFlags(&mut ready, graph, 0);
    );
    fails!(BAD, cuGraphExecKernelNodeSetParams_v2(ready, node, &params(c"plain", 7)));
    fails!(BAD, cuGraphKernelNodeSetParams_v2(node, &params(c"plain", 7)));
    fails!(BAD, cuGraphAddKernelNode_v2(&mut node, graph, null(), 0, &params(c"two", 7)));
    // A node may leave open what a launch may not.
    let (mut graph, mut ready) = (CUgraph::NULL, CUgraphExec::NULL);
    cu!(
        cuGraphCreate(&mut graph, 0);
        cuGraphAddKernelNode_v2(&mut node, graph, null(), 0, &params(c"explicit", 8));
        cuGraphInstantiateWithFlags(&mut ready, graph, 0);
        cuGraphLaunch(ready, CUstream::NULL);
    );
    let why = "a GPU has no barrier of clusters for a kernel that is to have them and has none";
    // SAFETY: no pointers.
    assert_eq!(unsafe { cuCtxSynchronize() }, differs(why, CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_INSTRUCTION));
}

pub fn impossible_clusters_end_a_capture() {
    new_context();
    let (plain, out) = (function(module(), c"plain"), alloc_with(&[0u32; 64]));
    const SPOILED: CUresult = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (which, size, end) in
        [(SIZE, [3, 1, 1], SPOILED), (SIZE, [2, 0, 1], CUDA_SUCCESS), (PREFERRED, [2, 1, 1], SPOILED)]
    {
        let (stream, mut captured) = (stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL);
        let mut attributes = [attribute_of(which, size)];
        let config = CUlaunchConfig { hStream: stream, ..config([8, 1], 32, &mut attributes) };
        cu!(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        fails!(BAD, cuLaunchKernelEx(&config, plain, [arg(&out)].as_mut_ptr(), null_mut()));
        // SAFETY: a stream that captures, and a place for the graph.
        assert_eq!(unsafe { cuStreamEndCapture(stream, &mut captured) }, end, "{size:?}");
    }
}

pub fn occupancy_counts_clusters() {
    new_context();
    let module = module();
    let [plain, two, explicit, up_to_four, sixteen] =
        [c"plain", c"two", c"explicit", c"up_to_four", c"sixteen"].map(|name| function(module, name));
    let ask = |kernel, threads: u32, shared: u32, cluster: Option<u32>| {
        let mut attributes: Vec<_> = cluster.iter().map(|size| attribute_of(SIZE, [*size, 1, 1])).collect();
        let config = CUlaunchConfig { sharedMemBytes: shared, ..config([64, 1], threads, &mut attributes) };
        let (mut size, mut count) = (-7, -7);
        // SAFETY: the attributes are as many as the configuration says.
        let codes = unsafe {
            [
                cuOccupancyMaxPotentialClusterSize(&mut size, kernel, &config),
                cuOccupancyMaxActiveClusters(&mut count, kernel, &config),
            ]
        };
        assert_eq!(codes[0], codes[1], "both look at the same");
        (codes[0], size, count)
    };
    let processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    let fine = |size, count: i32| (CUDA_SUCCESS, size, count);
    assert_eq!(ask(plain, 32, 0, None), fine(8, 0));
    assert_eq!(ask(plain, 32, 0, Some(1)), fine(8, processors * 8));
    assert_eq!(ask(plain, 32, 0, Some(2)), fine(8, processors * 4));
    assert_eq!(ask(plain, 1024, 0, Some(2)), fine(8, processors));
    assert_eq!(ask(up_to_four, 1024, 0, None), fine(8, 0));
    assert_eq!(ask(two, 1024, 0, None), fine(8, processors));
    let (code, size, count) = ask(plain, 1024, 0, Some(8));
    assert_eq!((code, size), (CUDA_SUCCESS, 8));
    assert!((1..=(processors / 4).max(1)).contains(&count), "{count}");
    // More threads or shared memory than a launch may have.
    assert_eq!(ask(plain, 2048, 0, Some(2)), fine(0, 0));
    assert_eq!(ask(plain, 256, 200_000, Some(2)), fine(0, 0));
    for (kernel, cluster) in [
        (plain, Some(16)),
        (plain, Some(3)),
        (plain, Some(64)),
        (two, Some(4)),
        (explicit, None),
        (sixteen, None),
    ] {
        assert_eq!(ask(kernel, 256, 0, cluster), (BAD, -7, -7));
    }
    assert_eq!(ask(plain, 0, 0, Some(2)), (CUDA_ERROR_INVALID_VALUE, -7, -7));
    cu!(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    let (code, size, count) = ask(plain, 1024, 0, Some(16));
    assert_eq!((code, size), (CUDA_SUCCESS, 16));
    assert!(count >= 1, "{count}");
    let (config, mut number) = (config([64, 1], 32, &mut []), 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialClusterSize(null_mut(), plain, &config));
    fails!(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveClusters(null_mut(), plain, &config));
    fails!(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialClusterSize(&mut number, plain, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveClusters(&mut number, plain, null()));
    let none = differs("as everywhere else", CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE);
    fails!(none, cuOccupancyMaxPotentialClusterSize(&mut number, CUfunction::NULL, &config));
    fails!(none, cuOccupancyMaxActiveClusters(&mut number, CUfunction::NULL, &config));
}

pub fn occupancy_refuses_what_a_launch_would() {
    new_context();
    let plain = function(module(), c"plain");
    let ask = |attribute: CUlaunchAttribute| {
        let attributes = &mut [attribute];
        let (config, mut count) = (config([8, 1], 32, attributes), 0);
        // SAFETY: one attribute, as the configuration says.
        unsafe { cuOccupancyMaxActiveClusters(&mut count, plain, &config) }
    };
    assert_eq!(ask(attribute_of(PREFERRED, [4, 1, 1])), BAD);
    for id in [CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT] {
        for (flags, code) in
            [(CU_EVENT_DEFAULT, CUDA_ERROR_NOT_SUPPORTED), (CU_EVENT_DISABLE_TIMING, CUDA_SUCCESS)]
        {
            let handle = event(flags).0 as u64;
            assert_eq!(ask(attribute_of(id, [handle as u32, (handle >> 32) as u32, 0])), code, "{id:?}");
        }
    }
}

/// Launches a cluster of two blocks that execute this, which reads something into `%r3`.
fn ends_in(code: CUresult, access: &str) {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n
         .visible .entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1
         {{
             .shared .align 16 .b8 own[64];
             .reg .b32 %r<8>;
             .reg .b64 %rd<4>;
             barrier.cluster.arrive;
             barrier.cluster.wait;
             mov.u32 %r1, own;
             {access}
             ld.param.u64 %rd1, [out];
             st.global.u32 [%rd1], %r3;
             barrier.cluster.arrive;
             barrier.cluster.wait;
             ret;
         }}"
    );
    new_context();
    let (kernel, out) = (function(load(&text), c"k"), alloc(16));
    assert_eq!(launch(kernel, 2, 32, CUstream::NULL, &mut [arg(&out)]), CUDA_SUCCESS);
    fails!(code, cuCtxSynchronize());
}

pub fn memory_of_a_block_that_the_cluster_has_not() {
    let access = "mov.u32 %r4, 9; mapa.shared::cluster.u32 %r2, %r1, %r4; ld.shared::cluster.u32 %r3, [%r2];";
    ends_in(CUDA_ERROR_LAUNCH_FAILED, access);
}

pub fn memory_of_a_block_that_no_cluster_has() {
    let access =
        "mov.u32 %r4, -1; mapa.shared::cluster.u32 %r2, %r1, %r4; ld.shared::cluster.u32 %r3, [%r2];";
    ends_in(CUDA_ERROR_ILLEGAL_INSTRUCTION, access);
}

pub fn memory_beyond_that_of_another_block() {
    let access = "mapa.shared::cluster.u32 %r2, %r1, 1; ld.shared::cluster.u32 %r3, [%r2+1000000];";
    ends_in(CUDA_ERROR_ILLEGAL_ADDRESS, access);
}

pub fn a_misaligned_address_in_another_block() {
    let access = "mapa.shared::cluster.u32 %r2, %r1, 1; ld.shared::cluster.u32 %r3, [%r2+2];";
    ends_in(CUDA_ERROR_MISALIGNED_ADDRESS, access);
}

pub fn an_address_of_another_block_leads_back_to_the_own() {
    let access = "mapa.shared::cluster.u32 %r2, %r1, 1; mapa.shared::cluster.u32 %r2, %r2, 0;
                  ld.shared::cluster.u32 %r3, [%r2];";
    ends_in(CUDA_SUCCESS, access);
}
