//! Graph management: graphs as pictures in the language of Graphviz.
//!
//! Programs read these pictures: they count kernels by their shape, look up names and launches in the labels, and which graphs are in
//! which. So frames, names, shapes and labels are those of NVIDIA's driver.

use super::graph_ids::number_of;
use crate::error::CuResult;
use crate::functions;
use crate::graphs::{self, find, find_node, handle_of, node_handle};
use cuda_abi::args::Text;
use cuda_abi::driver::*;
use device::graph::{Conditional, ConditionalKind, Graph, KernelCall, NodeId, Operation};
use device::memory::{Fill, Kind};
use entry_macros::entry_point;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Every flag that the manual has.
const CU_GRAPH_DEBUG_DOT_FLAGS: u32 = 0x1FFFF;
/// All details.
const VERBOSE: u32 = 1;
/// Details as the Runtime API has them.
const RUNTIME_TYPES: u32 = 1 << 1;
/// How kernels are launched, where and how much is copied, and what is set to what.
const KERNEL_NODE_PARAMS: u32 = 1 << 2;
const MEMCPY_NODE_PARAMS: u32 = 1 << 3;
const MEMSET_NODE_PARAMS: u32 = 1 << 4;
/// Attributes of launches.
const KERNEL_NODE_ATTRIBUTES: u32 = 1 << 9;
/// What graphs allocate and free.
const ALLOCATE_NODE_PARAMS: u32 = 1 << 11;
const FREE_NODE_PARAMS: u32 = 1 << 12;
/// Handles of nodes and kernels.
const HANDLES: u32 = 1 << 10;
/// How many nodes follow a node in the order in which they run.
const EXTRA_TOPO_INFO: u32 = 1 << 14;

/// The flags ask for details of what the nodes do.
#[entry_point]
fn cuGraphDebugDotPrint(hGraph: CUgraph, path: Text, flags: u32) -> CuResult {
    let graph = find(hGraph)?;
    if flags & !CU_GRAPH_DEBUG_DOT_FLAGS != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let path = OsStr::from_bytes(path.get()?.to_bytes());
    let mut picture = Picture { flags, text: String::from("digraph dot {\n") };
    picture.draw(&graph)?;
    std::fs::write(path, picture.text + "}\n").map_err(|_| CUDA_ERROR_OPERATING_SYSTEM)?;
    Ok(())
}

struct Picture {
    flags: u32,
    text: String,
}

impl Picture {
    fn asks(&self, details: u32) -> bool {
        self.flags & (VERBOSE | details) != 0
    }

    /// A frame with the nodes and edges of a graph; behind it those of the graphs in it.
    fn draw(&mut self, graph: &Arc<Graph>) -> CuResult {
        let (number, name) = numbered(graph)?;
        let order = graph.in_order_of_dependencies();
        let later: HashMap<NodeId, usize> = order.into_iter().rev().zip(0..).collect();
        let mut inner = Vec::new();
        self.text += &format!("subgraph cluster_{number} {{\nlabel=\"{name}\" graph[style=\"dashed\"];\n");
        for node in graph.nodes() {
            let operation = graph.operation(node)?;
            let mut id = graph.local_number(node)?.to_string();
            self.text += &format!("\"{name}_node_{id}\"");
            if let (true, Some(later)) = (self.asks(EXTRA_TOPO_INFO), later.get(&node)) {
                id += &format!(" (topoId: {later})");
            }
            self.text += &self.node(graph, node, &id, &operation)?;
            match &operation {
                Operation::Child(child) => inner.push(child.clone()),
                Operation::Conditional(conditional) => inner.extend_from_slice(conditional.bodies()),
                _ => {}
            }
        }
        let port = if self.asks(EXTRA_TOPO_INFO) { " [headlabel=0]" } else { "" };
        for (from, to) in graph.edges() {
            let (from, to) = (graph.local_number(from)?, graph.local_number(to)?);
            self.text += &format!("\"{name}_node_{from}\" -> \"{name}_node_{to}\"{port};\n");
        }
        self.text += "}\n";
        inner.iter().try_for_each(|graph| self.draw(graph))
    }

    /// How a node is drawn.
    fn node(&self, graph: &Arc<Graph>, node: NodeId, id: &str, operation: &Operation) -> CuResult<String> {
        let number = node_handle(graph, node)?;
        let handle = format!("0x{:016X}", number.0);
        Ok(match operation {
            Operation::Kernel(call) if self.asks(KERNEL_NODE_PARAMS | KERNEL_NODE_ATTRIBUTES | HANDLES) => {
                record("bold", &self.kernel(id, &handle, number, call)?)
            }
            Operation::Kernel(call) => {
                let name = call.function.kernel().name().replace(['"', '\\'], "_");
                format!("[style=\"bold\" shape=\"octagon\" label=\"{id}\n{name}\n\"];\n\n")
            }
            Operation::Copy(_) => {
                let (described, _) = find_node(number)?;
                let copy = described.copy(operation)?;
                match self.asks(MEMCPY_NODE_PARAMS) {
                    true if self.flags & RUNTIME_TYPES == 0 => {
                        record("solid", &described_copy(id, &handle, &copy))
                    }
                    true => record("solid", &copied(id, &handle, &copy)),
                    false => moves("trapezium", id, "MEMCPY", &moved(&copy)),
                }
            }
            Operation::Fill(fill) if self.asks(MEMSET_NODE_PARAMS) => {
                record("solid\" style=\"solid", &set(id, &handle, fill))
            }
            Operation::Fill(fill) => {
                let bytes = u128::from(fill.element) * u128::from(fill.width) * u128::from(fill.height);
                moves("invtrapezium", id, "MEMSET", &format!("{},{bytes}", fill.value))
            }
            Operation::Child(child) => self.plain(id, &numbered(child)?.1, &handle),
            Operation::Conditional(conditional) => self.plain(id, &chosen(conditional)?, &handle),
            Operation::Allocate { address, size } if self.asks(ALLOCATE_NODE_PARAMS) => {
                // What a graph allocates is a device's, and shared with nobody.
                let (described, _) = find_node(number)?;
                let device = described.allocation(operation)?.poolProps.location.id;
                record("solid", &allocated(id, &handle, device, *address, *size))
            }
            Operation::Free { address } if self.asks(FREE_NODE_PARAMS) => {
                record("solid", &freed(id, &handle, *address))
            }
            _ => self.plain(id, &kind(operation), &handle),
        })
    }

    /// A node of which no more is told than its handle.
    fn plain(&self, id: &str, what: &str, handle: &str) -> String {
        let handle = if self.asks(HANDLES) { format!("node handle: {handle}\n") } else { String::new() };
        format!("[style=\"solid\" shape=\"rectangle\" label=\"{id}\n{what}\n{handle}\"];\n\n")
    }

    fn kernel(&self, id: &str, handle: &str, node: CUgraphNode, call: &KernelCall) -> CuResult<String> {
        let mut text = format!("KERNEL\n| {{ID | {id} | {}", escaped(call.function.kernel().name()));
        if self.asks(KERNEL_NODE_PARAMS) {
            let (grid, block) = (shape(call.launch.grid), shape(call.launch.block));
            text += &format!("\\<\\<\\<{grid},{block},{}\\>\\>\\>", call.launch.dynamic_shared);
        }
        text += "}\n";
        if self.asks(HANDLES) {
            let function = functions::handle_of(&call.function)?.0;
            text += &format!("| {{{{node handle | func handle}} | {{{handle} | 0x{function:016X}}}}}\n");
        }
        if self.asks(KERNEL_NODE_ATTRIBUTES) {
            let (node, _) = find_node(node)?;
            let attribute = |id| node.attribute(id).map_or([0; 64], |value| value.bytes);
            text += &window(&attribute(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW));
            text += &format!("| {{cooperative | {}}}\n", u32::from(call.launch.cooperative));
            let [a, b, c, d, ..] = attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY);
            text += &format!("| {{priority | {}}}\n", i32::from_ne_bytes([a, b, c, d]));
        }
        Ok(text)
    }
}

/// The number of a graph, and its name.
fn numbered(graph: &Arc<Graph>) -> CuResult<(u32, String)> {
    let number = number_of(handle_of(graph)?.0);
    Ok((number, format!("graph_{number}")))
}

/// A node with a table of details.
fn record(style: &str, table: &str) -> String {
    format!("[style=\"{style}\" shape=\"record\" label=\"{{{table}}}\"];\n\n")
}

/// A node that copies or sets memory, without details.
fn moves(shape: &str, id: &str, kind: &str, what: &str) -> String {
    format!("[style=\"solid\" shape=\"{shape}\"label=\"{id}\n{kind}\n({what})\n\"];\n\n")
}

fn kind(operation: &Operation) -> String {
    if let Operation::Wait(_) = operation {
        return "EVENT_WAIT".to_owned();
    }
    let kind = format!("{:?}", graphs::node_type(operation));
    kind.strip_prefix("CU_GRAPH_NODE_TYPE_").unwrap_or(&kind).to_owned()
}

/// How a conditional node chooses, and from what.
fn chosen(conditional: &Conditional) -> CuResult<String> {
    let kind = match conditional.kind() {
        ConditionalKind::If => "IF",
        ConditionalKind::While => "WHILE",
        ConditionalKind::Switch => "SWITCH",
    };
    let mut text = format!("CONDITIONAL\nType: {kind}");
    for body in conditional.bodies() {
        text = text + "\n" + &numbered(body)?.1;
    }
    Ok(text)
}

/// Text inside a table, where some signs mean something.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        if "<>{}|\"\\".contains(sign) {
            escaped.push('\\');
        }
        escaped.push(sign);
    }
    escaped
}

/// An extent in as many dimensions as it has.
fn shape(extent: [u32; 3]) -> String {
    match extent {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("\\{{{x},{y}\\}}"),
        [x, y, z] => format!("\\{{{x},{y},{z}\\}}"),
    }
}

/// An access policy window.
fn window(bytes: &[u8; 64]) -> String {
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let policy = |at| ['N', 'S', 'P'].get(half(at) as usize).copied().unwrap_or('N');
    let (base, bytes, ratio, hit, miss) =
        (word(0), word(8), f32::from_bits(half(16)), policy(20), policy(24));
    format!(
        "| {{accessPolicyWindow | {{base_ptr | num_bytes | hitRatio | hitProp | missProp}} | \
         {{0x{base:016X} | {bytes} | {ratio:.6} | {hit} | {miss}}}}}\n"
    )
}

/// From what to what kind of memory, by a letter each, and how many bytes.
fn moved(copy: &CUDA_MEMCPY3D) -> String {
    let bytes = copy.WidthInBytes as u128 * copy.Height as u128 * copy.Depth as u128;
    format!("{}to{},{bytes}", letter(copy.srcMemoryType), letter(copy.dstMemoryType))
}

fn letter(kind: CUmemorytype) -> char {
    match kind {
        CU_MEMORYTYPE_HOST => 'H',
        CU_MEMORYTYPE_DEVICE => 'D',
        CU_MEMORYTYPE_ARRAY => 'A',
        _ => 'U',
    }
}

/// What kind of memory an address is of.
fn kind_of_memory(address: u64) -> &'static str {
    match super::memory::find(address).ok().flatten().map(|allocation| allocation.kind) {
        None => "HOST PAGEABLE",
        Some(kind) if kind.is_host() => "HOST PINNED",
        Some(Kind::Managed { .. }) => "MANAGED",
        Some(_) => "DEVICE",
    }
}

fn allocated(id: &str, handle: &str, device: i32, address: u64, size: u64) -> String {
    format!(
        "\nMEM_ALLOC\n| {{{{ID | node handle}} | {{{id} | {handle}}}}}\n\
         | {{{{{{poolProps | {{allocType | handleTypes | {{location | {{type | id}}}}}} | {{PINNED | NONE | DEVICE | {device}}}}}}}}}\n\
         | {{{{bytesize | dptr}} | {{{size} | 0x{address:016X}}}}}\n"
    )
}

fn freed(id: &str, handle: &str, address: u64) -> String {
    format!(
        "\nMEM_FREE\n| {{{{ID | node handle}} | {{{id} | {handle}}}}}\n| {{{{dptr}} | {{0x{address:016X}}}}}\n"
    )
}

/// A copy as the Driver API describes it.
fn described_copy(id: &str, handle: &str, copy: &CUDA_MEMCPY3D) -> String {
    const SIDE: &str = "MemoryType | Array | Host | Device | XInBytes | Y | Z | Pitch | Height | LOD";
    let memory = |kind, host: u64, device: u64| match kind {
        CU_MEMORYTYPE_HOST => format!("HOST ({})", kind_of_memory(host)),
        CU_MEMORYTYPE_DEVICE => "DEVICE (DEVICE)".to_owned(),
        CU_MEMORYTYPE_ARRAY => "ARRAY (ARRAY)".to_owned(),
        _ => format!("UNIFIED ({})", kind_of_memory(device)),
    };
    let side = |memory, array, host, device, position: [usize; 3], pitch, height, level| {
        let [x, y, z] = position;
        format!(
            "{memory} | 0x{array:016X} | 0x{host:016X} | 0x{device:016X} | {x} | {y} | {z} | {pitch} | {height} | {level}"
        )
    };
    let (source, target) = (
        side(
            memory(copy.srcMemoryType, copy.srcHost as u64, copy.srcDevice.0),
            copy.srcArray.0 as u64,
            copy.srcHost as u64,
            copy.srcDevice.0,
            [copy.srcXInBytes, copy.srcY, copy.srcZ],
            copy.srcPitch,
            copy.srcHeight,
            copy.srcLOD,
        ),
        side(
            memory(copy.dstMemoryType, copy.dstHost as u64, copy.dstDevice.0),
            copy.dstArray.0 as u64,
            copy.dstHost as u64,
            copy.dstDevice.0,
            [copy.dstXInBytes, copy.dstY, copy.dstZ],
            copy.dstPitch,
            copy.dstHeight,
            copy.dstLOD,
        ),
    );
    format!(
        "\nMEMCPY\n| {{{{ID | node handle}} | {{{id} | {handle}}}}}\n\
         | {{{{src | dst}} | {{ {SIDE} | {SIDE}}} | {{{source} | {target}}}}}\n\
         | {{Extent | {{WidthInBytes | Height | Depth}} | {{{} | {} | {}}}}}\n",
        copy.WidthInBytes, copy.Height, copy.Depth
    )
}

fn copied(id: &str, handle: &str, copy: &CUDA_MEMCPY3D) -> String {
    let side = |kind, host: u64, device: u64, array: u64| match kind {
        CU_MEMORYTYPE_HOST => (kind_of_memory(host), host),
        CU_MEMORYTYPE_DEVICE => ("DEVICE", device),
        CU_MEMORYTYPE_ARRAY => ("ARRAY", array),
        _ => (kind_of_memory(device), device),
    };
    let (from, source) =
        side(copy.srcMemoryType, copy.srcHost as u64, copy.srcDevice.0, copy.srcArray.0 as u64);
    let (to, target) =
        side(copy.dstMemoryType, copy.dstHost as u64, copy.dstDevice.0, copy.dstArray.0 as u64);
    let (f, t) = (letter(copy.srcMemoryType), letter(copy.dstMemoryType));
    let way = if (f, t) == ('U', 'U') { "default".to_owned() } else { format!("{f}to{t}") };
    let position = |x, y, z| format!("{{{{x | {x}}} | {{y | {y}}} | {{z | {z}}}}}");
    let mut text = format!("\nMEMCPY\n| {{{{ID | node handle}} | {{{id} | {handle}}}}}\n");
    let _ = write!(
        text,
        "| {{kind | {way} ({from} to {to})}}\n\
         | {{{{srcPtr | dstPtr}} | {{pitch | ptr | xsize | ysize | pitch | ptr | xsize | ysize}} | \
         {{{} | 0x{source:016X} | {} | {} | {} | 0x{target:016X} | {} | {}}}}}\n\
         | {{{{srcPos | {}}} | {{dstPos | {}}} | {{Extent | {{{{Width | {}}} | {{Height | {}}} | {{Depth | {}}}}}}}}}\n",
        copy.srcPitch,
        copy.srcPitch,
        copy.srcHeight,
        copy.dstPitch,
        copy.dstPitch,
        copy.dstHeight,
        position(copy.srcXInBytes, copy.srcY, copy.srcZ),
        position(copy.dstXInBytes, copy.dstY, copy.dstZ),
        copy.WidthInBytes,
        copy.Height,
        copy.Depth,
    );
    text
}

fn set(id: &str, handle: &str, fill: &Fill) -> String {
    let Fill { address, pitch, value, element, width, height } = fill;
    format!(
        "MEMSET\n| {{{{ID | node handle | dptr | pitch | value | elementSize | width | height}} | \
         {{{id} | {handle} | 0x{address:016X} | {pitch} | {value} | {element} | {width} | {height}}}}}"
    )
}
