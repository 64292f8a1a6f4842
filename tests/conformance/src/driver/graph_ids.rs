//! Graph management: numbers of graphs and nodes, which CUDA 13.1 added.

use super::common::*;

fn empty(graph: CUgraph) -> CUgraphNode {
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddEmptyNode(&mut node, graph, null(), 0));
    node
}

pub fn graphs_and_nodes_are_told_apart() {
    if !ours_only("this version of the driver does not have the functions") {
        return;
    }
    new_context();
    let graphs = [graph(), graph()];
    let mut ids = [0; 2];
    for (graph, id) in graphs.iter().zip(&mut ids) {
        cu!(cuGraphGetId(*graph, id));
    }
    assert_ne!(ids[0], ids[1]);

    let nodes = [empty(graphs[0]), empty(graphs[0]), empty(graphs[1])];
    let (mut local, mut global) = ([0; 3], [0; 3]);
    for (index, node) in nodes.iter().enumerate() {
        let mut containing = CUgraph::NULL;
        cu!(
            cuGraphNodeGetLocalId(*node, &mut local[index]);
            cuGraphNodeGetToolsId(*node, &mut global[index]);
            cuGraphNodeGetContainingGraph(*node, &mut containing);
        );
        assert_eq!(containing, graphs[index / 2]);
    }
    // Graphs count their nodes, and go on counting where some are removed.
    assert_eq!(local, [0, 1, 0]);
    cu!(cuGraphDestroyNode(nodes[0]); cuGraphNodeGetLocalId(nodes[1], &mut local[1]));
    cu!(cuGraphNodeGetLocalId(empty(graphs[0]), &mut local[2]));
    assert_eq!(local[1..], [1, 2]);
    assert!(global[0] != global[1] && global[1] != global[2] && global[0] != global[2]);

    let (mut executables, mut ids) = ([CUgraphExec::NULL; 2], [0; 2]);
    for (index, graph) in graphs.iter().enumerate() {
        cu!(
            cuGraphInstantiateWithFlags(&mut executables[index], *graph, 0);
            cuGraphExecGetId(executables[index], &mut ids[index]);
        );
    }
    assert_ne!(ids[0], ids[1]);
}

pub fn a_picture_names_nodes_by_their_numbers() {
    if !ours_only("this version of the driver does not have the functions") {
        return;
    }
    new_context();
    let (graph, path) = (graph(), std::env::temp_dir().join(format!("ids-{}.dot", std::process::id())));
    let (node, mut id) = (empty(graph), 0);
    let name = CString::new(path.to_str().expect("a path of text")).expect("no NUL inside");
    cu!(cuGraphNodeGetLocalId(node, &mut id); cuGraphDebugDotPrint(graph, name.as_ptr(), 0));
    let text = std::fs::read_to_string(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("the file can go");
    assert!(text.contains(&format!("_node_{id}\"")), "{text}");
}
