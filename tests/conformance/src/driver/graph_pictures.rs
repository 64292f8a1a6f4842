//! Graph management: pictures of graphs, as programs read them that count kernels by their shape and look for names in labels.

use super::common::*;
use super::copies::copy_3d;

/// What the driver draws of a graph.
fn picture(graph: CUgraph, flags: u32) -> String {
    let path = std::env::temp_dir().join(format!("conformance-picture-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().expect("a path of text")).expect("no NUL inside");
    cu!(cuGraphDebugDotPrint(graph, name.as_ptr(), flags));
    let text = std::fs::read_to_string(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("the file can go");
    text
}

/// A kernel of several blocks behind another node, if there is one.
fn launched(graph: CUgraph, after: &[CUgraphNode], grid: [u32; 3], shared: u32) -> CUgraphNode {
    let (by, mut node) = (alloc(4), CUgraphNode::NULL);
    let mut arguments = [arg(&by)];
    let mut params = one_thread(kernel(c"poke"), &mut arguments);
    (params.gridDimX, params.gridDimY, params.gridDimZ) = grid.into();
    (params.blockDimX, params.sharedMemBytes) = (64, shared);
    cu!(cuGraphAddKernelNode_v2(&mut node, graph, after.as_ptr(), after.len(), &params));
    node
}

fn set(graph: CUgraph, after: &[CUgraphNode], to: CUdeviceptr) -> CUgraphNode {
    let (mut node, params) = (
        CUgraphNode::NULL,
        CUDA_MEMSET_NODE_PARAMS { dst: to, pitch: 0, value: 7, elementSize: 4, width: 16, height: 1 },
    );
    cu!(cuGraphAddMemsetNode(&mut node, graph, after.as_ptr(), after.len(), &params, current()));
    node
}

pub fn kernels_are_octagons_with_their_names_and_others_are_not() {
    new_context();
    let main = graph();
    let first = launched(main, &[], [2, 1, 1], 0);
    let second = set(main, &[first], alloc(64));
    launched(main, &[second], [2, 1, 1], 0);
    let text = picture(main, 0);
    assert!(text.starts_with("digraph dot {\nsubgraph cluster_"), "{text}");
    assert_eq!(text.matches("shape=\"octagon\"").count(), 2, "{text}");
    assert!(
        text.contains("[style=\"solid\" shape=\"invtrapezium\"label=\"1\nMEMSET\n(7,64)\n\"];\n\n"),
        "{text}"
    );
    // A label is the node's number in its graph and, for a kernel, its name, a line each.
    assert!(text.contains("_node_0\"[") && text.contains("label=\"0\npoke\n"), "{text}");
    assert!(text.contains("_node_2\"[") && text.contains("label=\"2\npoke\n"), "{text}");
    assert!(!text.contains("\\<\\<\\<"), "{text}");
    assert_eq!(text.matches("\" -> \"").count(), 2, "{text}");
}

pub fn copies_tell_how_much_and_other_nodes_what_they_are() {
    new_context();
    let (main, by, mut node) = (graph(), alloc(4096), [CUgraphNode::NULL; 6]);
    let host = vec![0_u8; 256];
    let copy = CUDA_MEMCPY3D { WidthInBytes: 2, Height: 2, Depth: 1, ..copy_3d(&host, by) };
    cu!(cuGraphAddMemcpyNode(&mut node[0], main, null(), 0, &copy, current()));
    cu!(cuGraphAddEmptyNode(&mut node[1], main, null(), 0));
    let event = event(0);
    cu!(cuGraphAddEventRecordNode(&mut node[2], main, null(), 0, event));
    cu!(cuGraphAddEventWaitNode(&mut node[3], main, null(), 0, event));
    let text = picture(main, 0);
    assert!(
        text.contains("[style=\"solid\" shape=\"trapezium\"label=\"0\nMEMCPY\n(HtoD,4)\n\"];\n\n"),
        "{text}"
    );
    for (number, kind) in [(1, "EMPTY"), (2, "EVENT_RECORD"), (3, "EVENT_WAIT")] {
        let node = format!("[style=\"solid\" shape=\"rectangle\" label=\"{number}\n{kind}\n\"];\n\n");
        assert!(text.contains(&node), "{node}: {text}");
    }
    let text = picture(main, 1);
    let from = format!("{{HOST (HOST PAGEABLE) | 0x{:016X} | 0x{:016X} | ", 0, host.as_ptr() as u64);
    assert!(text.contains(&from), "{text}");
    assert!(text.contains("{Extent | {WidthInBytes | Height | Depth} | {2 | 2 | 1}}"), "{text}");
    let as_runtime = picture(main, 3);
    assert!(as_runtime.contains("| {kind | HtoD (HOST PAGEABLE to DEVICE)}"), "{as_runtime}");
    assert!(text.contains("EMPTY\nnode handle: 0x"), "{text}");
}

pub fn all_details_tell_how_kernels_are_launched_and_what_is_set() {
    new_context();
    let (main, pointer) = (graph(), alloc(64));
    let first = launched(main, &[], [2, 1, 1], 128);
    let second = launched(main, &[first], [3, 2, 1], 0);
    let third = launched(main, &[second], [4, 1, 2], 0);
    set(main, &[third], pointer);
    let text = picture(main, 1);
    assert_eq!(text.matches("shape=\"record\" label=\"{KERNEL\n").count(), 3, "{text}");
    // Extents have as many numbers as dimensions.
    for launch in ["2,64,128", "\\{3,2\\},64,0", "\\{4,1,2\\},64,0"] {
        assert!(text.contains(&format!("poke\\<\\<\\<{launch}\\>\\>\\>")), "{launch}: {text}");
    }
    assert_eq!(text.matches("| {cooperative | 0}").count(), 3, "{text}");
    assert_eq!(text.matches("| {priority | 0}").count(), 3, "{text}");
    assert!(text.contains("0 (topoId: 3)") && text.contains("3 (topoId: 0)"), "{text}");
    let filled = format!("0x{:016X} | 0 | 7 | 4 | 16 | 1", pointer.0);
    assert!(text.contains("MEMSET") && text.contains(&filled), "{text}");
}

pub fn graphs_in_graphs_have_frames_beside_each_other() {
    new_context();
    let (inner, outer, mut node) = (graph(), graph(), CUgraphNode::NULL);
    launched(inner, &[], [1, 1, 1], 0);
    cu!(cuGraphAddChildGraphNode(&mut node, outer, null(), 0, inner));
    let text = picture(outer, 0);
    assert_eq!(text.matches("subgraph cluster_").count(), 2, "{text}");
    let (first, second) = text.split_once("\n}\nsubgraph cluster_").expect("a frame behind the other's end");
    // The node is called as the frame is.
    let number = second.split(' ').next().expect("a number");
    assert!(first.contains(&format!("label=\"0\ngraph_{number}\n")), "{text}");
    assert!(second.contains(&format!("label=\"graph_{number}\" graph[style=\"dashed\"]")), "{text}");
    assert!(second.contains("shape=\"octagon\"") && !first.contains("octagon"), "{text}");
}
