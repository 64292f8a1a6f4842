"""Whole programs: tables, functions, kernels and the launches of each."""

import random

import control
import functions
import regular
from maker import TYPES, Maker
from values import expr

SHAPES = [(32, 1, 1), (64, 1, 1), (128, 1, 1), (256, 1, 1), (1024, 1, 1), (16, 16, 1), (8, 8, 1), (8, 8, 4), (2, 16, 2), (4, 4, 4)]
SHAPES += [(2, 2, 8), (32, 4, 2), (4, 8, 1), (16, 4, 4), (1, 16, 16), (16, 1, 8), (8, 1, 32), (1, 128, 1), (4, 64, 1), (5, 4, 8)]
SHAPES += [(24, 4, 1), (96, 1, 1), (2, 32, 4), (32, 32, 1), (48, 2, 1), (160, 1, 1), (192, 1, 1), (32, 3, 1), (64, 1, 2), (1, 1, 64)]
ODD = [(1, 1, 1), (7, 1, 1), (33, 1, 1), (100, 1, 1), (31, 1, 1), (3, 5, 7), (20, 3, 1), (1, 9, 4), (9, 9, 1), (255, 1, 1), (17, 1, 3), (50, 2, 2), (8, 3, 3), (3, 8, 1)]
GRIDS = [(1, 1, 1), (2, 1, 1), (3, 1, 1), (5, 1, 1), (2, 2, 1), (1, 3, 1), (2, 1, 2), (1, 1, 3), (8, 1, 1)]
OUTPUTS = 14
KERNELS = 8

HEAD = """  const uint32_t tx = threadIdx.x, ty = threadIdx.y, tz = threadIdx.z, bx = blockIdx.x, T = blockDim.x * blockDim.y * blockDim.z;
  const uint32_t lt = (tz * blockDim.y + ty) * blockDim.x + tx, lane = lt & 31u;
  const uint32_t tid = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + bx) * T + lt, total = T * gridDim.x * gridDim.y * gridDim.z;
  const uint8_t* const in8 = (const uint8_t*)in; const uint16_t* const in16 = (const uint16_t*)in; const uint64_t* const in64 = (const uint64_t*)in;
  uint32_t* const cells32 = (uint32_t*)(cells + 512); uint8_t* const own = bytes + tid * 256u; uint32_t* const own32 = (uint32_t*)(own + 64);
  uint16_t* const own16 = (uint16_t*)(own + 192); const uint32_t warp_lanes = umin(32u, T - (lt & ~31u));
  (void)lane; (void)tx; (void)ty; (void)tz; (void)in8; (void)in16; (void)in64; (void)cells32; (void)own; (void)own32; (void)own16; (void)warp_lanes; (void)inf;"""


def kernel(seed, number, plain, halves, groups, file_functions):
    """A kernel's text and its launches."""
    m = Maker(seed, plain=plain, functions=file_functions)
    m.lanes, m.groups = not plain, groups
    m.whole_warps = m.chance(65)
    m.budget = m.pick([2, 4, 7, 12, 20])
    shapes = m.r.sample(SHAPES if m.whole_warps else ODD + SHAPES[::4], m.pick([1, 1, 1, 2]))
    launches = []
    for shape in shapes:
        threads = shape[0] * shape[1] * shape[2]
        launches.append((m.pick([grid for grid in GRIDS if grid[0] * grid[1] * grid[2] * threads <= 2048 or grid == (1, 1, 1)]), shape))
    if not plain and m.chance(45):
        regular.kernel(m)
        return header(m, number, plain, launches), launches, ["regular"]
    m.halves = halves
    functions.constants(m)
    leaves = m.chance(15)
    for ty, text, length in [("u32", "in[{}]", 4096), ("u8", "in8[{}]", 16384), ("u16", "in16[{}]", 8192), ("u64", "in64[{}]", 2048), ("f32", "inf[{}]", 4096), ("u32", "p.w[{}]", 8), ("u8", "p.b[{}]", 5)]:
        m.add("array", ty, text, length)
    for ty, text, length in [("u8", "own[{}]", 64), ("u32", "own32[{}]", 8), ("u16", "own16[{}]", 16), ("u32", "column[({}) * total]", 4)]:
        m.add("array", ty, text, length)
        m.add("own", ty, text, length)
    if not plain:
        m.emit("const unsigned m0 = warp_lanes == 32u ? 0xffffffffu : (1u << warp_lanes) - 1u; (void)m0;")
        m.mask = "m0"
    if leaves:
        # Threads outside leave at once; a warp's others know it.
        m.level, m.whole_warps = "lane", False
        if not plain:
            m.emit("const unsigned first = tid - lane, stay = p.n > first ? umin(p.n - first, warp_lanes) : 0u;")
            m.emit("const unsigned m1 = stay == 32u ? 0xffffffffu : (1u << stay) - 1u; (void)m1;")
            m.mask = "m1"
        m.emit("if (tid >= p.n) return;")
    for ty in ["u32", "u32", "u64", m.pick(["f32", "u8", "u16", "f64"])]:
        m.declare(ty, expr(m, ty, 2))
    control.statements(m, m.budget)
    place = m.pick(["tid", "tid", "total - 1u - tid", "(tid * 2053u) % total"])
    rows = m.chance(70)
    outputs = [(ty, name) for ty, name in m.all("writable") if "." not in name][-OUTPUTS // 2:]
    out = []
    for ty, name in outputs:
        value = f"bits({name})" if ty in ("f32", "f64", "f16", "bf16") else f"(uint64_t){name}"
        out += [f"(uint32_t)({value})"] + ([f"(uint32_t)({value} >> 32)"] if ty in ("u64", "f64") else [])
    m.emit(f"const uint32_t place = {place};")

    def store(at, value):
        return f"out[{f'{at}u * total + place' if rows else f'place * {OUTPUTS}u + {at}u'}] = {value};"

    if m.chance(25):
        m.emit(f"if ({expr(m, 'bool', 2)}) {{ {store(0, expr(m, 'u32', 2))} return; }}")
    for at, value in enumerate(out[:OUTPUTS]):
        guard = f"if ({expr(m, 'bool', 1)}) " if m.chance(8) else ""
        m.emit(guard + store(at, value))
    return header(m, number, plain, launches), launches, [name for _, name in outputs]


def header(m, number, plain, launches):
    """The whole text of a kernel whose statements have been made."""
    bounds = "" if plain or m.chance(70) else f"__launch_bounds__({max(s[0] * s[1] * s[2] for _, s in launches)}) "
    restrict = m.pick(["__restrict__", ""])
    pointers = ["const uint32_t* {} in", "const float* {} inf", "uint32_t* {} out", "uint64_t* {} cells", "uint8_t* {} bytes", "uint32_t* {} columns"]
    parameters = ", ".join(pointer.format(restrict) for pointer in pointers)
    dynamic = [] if plain else ["  extern __shared__ uint32_t dyn[];"]
    shared = ["  " + line for line in m.shared]
    column = "  uint32_t* const column = columns + tid; (void)column;"
    return [f"__global__ void {bounds}k{number}({parameters}, const Params p) {{", *dynamic, HEAD, column, *shared, *m.lines, "}"]


def program(seed):
    """A program's text, and whether a host can run it too."""
    r = random.Random(seed)
    plain = r.random() < 0.25
    halves, groups = (not plain and r.random() < 0.35 for _ in range(2))
    text = []

    def table(ty, name, values):
        return f"static __constant__ {TYPES[ty]} {name}[{len(values)}] = {{{', '.join(values)}}};"

    text += [table("u32", "c32", [f"{r.getrandbits(r.choice([4, 8, 32]))}u" for _ in range(64)])]
    text += [table("u8", "c8", [str(r.getrandbits(8)) for _ in range(100)])]
    text += [table("u64", "c64", [f"{r.getrandbits(64)}ull" for _ in range(16)])]
    text += [table("f32", "cf", [f"{r.randrange(-4000, 4000) / 64}f" for _ in range(32)])]
    file_functions = []
    for number in range(r.randrange(2, 6)):
        file_functions.append(functions.make(r, number, plain, halves))
        text += file_functions[-1].text
    calls = []
    for number in range(KERNELS):
        lines, launches, names = kernel(f"{seed}/{number}", number, plain, halves, groups, file_functions)
        text += ["", *lines]
        for grid, block in launches:
            threads = grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2]
            n = r.choice([threads, threads - threads // 3, max(threads - 5, 1), threads + 9])
            grid, block = (", ".join(map(str, of)) for of in (grid, block))
            calls += [f"    LAUNCH(k{number}, dim3({grid}), dim3({block}), {r.getrandbits(r.choice([3, 32]))}u, {n}u); // {', '.join(names)}"]
    text += ["", '#include "launch.h"', "int main() {", "    setup();", *calls, "    return 0;", "}", ""]
    text = "\n".join(text)
    wanted = [("GROUPS", groups), ("HALVES", halves)]
    head = [f"#define {name}" for name, is_wanted in wanted if is_wanted]
    return "\n".join([*head, '#include "prelude.h"', text]), plain
