"""Statements about memory: arrays of a thread's own, of all kinds, and atomics that commute."""

from maker import TYPES
from values import bounded, expr, place

# What a cell that all threads share is combined with: the function, the type, the expression's mask, and the cell's beginning.
CELLS = [
    ("atomicAdd", "u32", None),
    ("atomicMin", "u32", None),
    ("atomicMax", "u32", None),
    ("atomicAnd", "u32", None),
    ("atomicOr", "u32", None),
    ("atomicXor", "u32", None),
    ("atomicMin", "i32", None),
    ("atomicMax", "i32", None),
    ("atomicAdd", "u64", None),
    ("atomicXor", "u64", None),
    ("atomicMax", "u64", None),
    ("cas_add", "u32", None),
    ("cas_max", "u64", None),
    ("atomicAdd", "f32", 15),
    ("atomicAdd", "f64", 1023),
    ("atomicSub", "u32", None),
]


def any_of(m):
    given = 1 if m.given else 0
    m.weighted([(4, local_array), (7, store), (3 * given, vectors), (2 * given, structure), (3 * given, chosen_pointer)])(m)


def local_array(m):
    ty = m.pick(["u32", "u32", "u8", "u16", "u64", "f32"])
    length = m.pick([2, 3, 4, 7, 8, 16])
    name = m.name("la")
    m.emit(f"{TYPES[ty]} {name}[{length}];")
    i = m.name("i")
    value = expr(m, ty, 1) if m.chance(50) else f"({TYPES[ty]})(({i} + {m.below(5)}u) * {m.pick([1, 3, 7, 257])}u)"
    m.emit(f"for (unsigned {i} = 0u; {i} < {length}u; ++{i}) {name}[{i}] = {value};")
    m.add("array", ty, name + "[{}]", length)
    m.add("own", ty, name + "[{}]", length)


def store_text(m):
    """A store to something of the thread's own, if there is any; no array of its own is written while a loop reads it in parallel."""
    own = m.all("own")
    if not own:
        return None
    ty, text, length = m.pick(own)
    value = expr(m, ty, 2)
    at = f"{m.below(length)}u" if m.chance(40) else bounded(m, expr(m, "u32", 1), length)
    if m.chance(30) and ty in ("u32", "u64", "u8", "u16"):
        return f"{text.format(at)} {m.pick(['+=', '^=', '|='])} {value};"
    return f"{text.format(at)} = {value};"


def store(m):
    text = store_text(m)
    if text is None:
        return local_array(m)
    m.emit(text)


def vectors(m):
    """Two or four elements at once."""
    kind, members, ty, length = m.pick([("uint2", "xy", "u32", 2048), ("uint4", "xyzw", "u32", 1024), ("uchar4", "xyzw", "u8", 4096), ("ushort2", "xy", "u16", 4096), ("ulonglong2", "xy", "u64", 1024), ("float4", "xyzw", "f32", 1024), ("float2", "xy", "f32", 2048), ("uchar2", "xy", "u8", 8192), ("ushort4", "xyzw", "u16", 2048)])
    if ty == "f32" and m.plain:
        return store(m)
    v = m.name("v")
    base = "inf" if ty == "f32" else "in"
    index = bounded(m, m.pick(["lt", "tid", "tid * 3u", "1000u - lt", expr(m, "u32", 1), "ty * 16u + tx", "tx * 8u + ty", place(m)]), length)
    m.emit(f"const {kind} {v} = ((const {kind}*){base})[{index}];")
    for member in members:
        m.add(ty, f"{v}.{member}")
    if ty != "f32" and m.chance(50):
        # Into the thread's own bytes, as one.
        size = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}[ty] * len(members)
        at = m.below(64 // size) + {"u8": 0, "u32": 64, "u64": 128, "u16": 192}[ty] // size
        values = ", ".join(expr(m, ty, 1) for _ in members)
        m.emit(f"(({kind}*)own)[{at}u] = make_{kind}({values});")


def structure(m):
    s = m.name("s")
    m.emit(f"Mixed {s} = {m.pick(['p.mixed', 'mixed_of(' + expr(m, 'u32', 1) + ')'])};")
    for ty, field in [("u32", "word"), ("u8", "byte"), ("u64", "long_"), ("u16", "half_")]:
        m.add(ty, f"{s}.{field}")
        m.add("writable", ty, f"{s}.{field}")
    m.add("array", "u8", s + ".bytes[{}]", 5)
    m.add("own", "u8", s + ".bytes[{}]", 5)


def chosen_pointer(m):
    """A pointer that leads elsewhere in each lane."""
    places = ["own32"]
    for ty, text, length in m.all("array"):
        if ty == "u32" and length >= 4 and text.endswith("[{}]") and "." not in text and "*" not in text and "(" not in text:
            places.append(f"&{text.format(m.below(length - 3))}")
    places.append(f"&in[{m.below(4000)}u]")
    a, b = m.pick(places), m.pick(places)
    q = m.name("ptr")
    m.emit(f"const uint32_t* {q} = {expr(m, 'bool', 1)} ? (const uint32_t*){a} : (const uint32_t*){b};")
    m.add("array", "u32", q + "[{}]", 4)


def atomic(m):
    """Something is combined into a cell; which operation a cell has is the kernel's choice."""
    kind = m.below(len(CELLS))
    function, ty, mask = CELLS[kind]
    spread = m.pick([1, 4, 8])
    at = "0u" if spread == 1 else bounded(m, expr(m, "u32", 1), spread)
    where = f"cells{'' if ty in ('u64', 'f64') else '32'} + {kind * 16}u + {at}"
    if mask:
        value = f"({TYPES[ty]})({expr(m, 'u32', 1)} & {mask}u)"
    elif ty == "i32":
        value = f"(int)({expr(m, 'u32', 2)})"
    else:
        value = expr(m, ty, 2)
    pointer = {"u32": "unsigned*", "i32": "int*", "u64": "unsigned long long*", "f32": "float*", "f64": "double*"}[ty]
    cast = {"u64": "(unsigned long long)", "u32": "(unsigned)"}.get(ty, "")
    m.emit(f"{function}(({pointer})({where}), {cast}({value}));")
