"""Kernels as textbooks have them, with numbers, types and orders at random: what the compiler finds regular it treats in its own ways.

Each writes its whole result to `out`, seen as an array of one type."""

from values import place

ELEMENTS = {"u8": ("in8", 16384), "u16": ("in16", 8192), "u32": ("in", 4096), "u64": ("in64", 2048), "f32": ("inf", 4096), "i16": ("((const int16_t*)in)", 8192)}
RESULTS = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "unsigned long long", "f32": "float", "i32": "int", "f64": "double", "i16": "int16_t"}


def kernel(m):
    """A body, for a kernel that has nothing else."""
    kinds = [strided, stencil, product, row_sums, thread_rows, transpose, pixels, sparse, searches, scan_rows, vectors, several]
    m.pick(kinds)(m)


def source(m, types=("u8", "u16", "u32", "f32", "u64", "i16")):
    ty = m.pick(types)
    return (ty, *ELEMENTS[ty])


def result(m, ty):
    """The output as an array of this type, and how many elements there are for each thread."""
    m.emit(f"{RESULTS[ty]}* const o = ({RESULTS[ty]}*)out;")
    return {"u8": 56, "u16": 28, "i16": 28, "u64": 7, "f64": 7}.get(ty, 14)


def sum_type(m, ty):
    return {"f32": m.pick(["float", "float", "double"]), "u64": "uint64_t"}.get(ty, m.pick(["uint32_t", "uint32_t", "uint64_t", "uint16_t"]))


def step(m, s, value):
    """How a sum goes on."""
    return m.pick([f"{s} += {value};", f"{s} += {value};", f"{s} = {s} * 3 + {value};", f"{s} = {s} > {value} ? {s} : {value};", f"if ({value} > {s}) {s} = {value}; else {s} += 1;"])


def at(m, count):
    """A place for each thread among `total`."""
    return m.pick([f"tid * {count}u", "tid", "total - 1u - tid"])


def strided(m):
    """A loop over the grid."""
    ty, array, length = source(m)
    to = m.pick(["u8", "u16", "u32", "f32", "i32", "i16"])
    each = min(result(m, to), length // 2048)
    counter = m.pick(["unsigned", "int", "uint64_t"])
    n = m.pick([f"total * {each}u", f"total * {each}u - total / 3u", "p.n", f"(p.n < total * {each}u ? p.n : total * {each}u)"])
    factor, plus = m.pick([(1, 0), (1, 1), (2, 0), (3, 1), (5, 7), (16, 0)])
    m.emit(f"const unsigned n = umin({n}, total * {each}u);")
    with m.braces(f"for ({counter} i = tid; i < n; i += total)"):
        m.emit(f"const auto v = {array}[(i * {factor}u + {plus}u) % {length}u];")
        m.emit(f"const auto w = {array}[({m.pick(['n - 1u - i', 'i ^ 1u', 'i / 2u', 'i + 1u', 'i * 3u'])}) % {length}u];")
        value = m.pick(["v * 3 + w", "v > w ? v : w", "v - w", "v + (i & 7u)", "v == w ? v : w * 2"])
        guard = m.pick(["", "", "if (v > w) ", "if (i % 3u != 1u) "])
        place_of = m.pick(["i", "i", "n - 1u - i"])
        m.emit(f"{guard}o[{place_of}] = ({RESULTS[to]})({'(int)' if ty == 'f32' and to != 'f32' else ''}({value}));")


def stencil(m):
    """A picture's points and their neighbours, at the edges as well."""
    ty, array, length = source(m)
    width = m.pick(["16u", "17u", "32u", "(p.some & 31u) + 3u", "blockDim.x * gridDim.x"])
    to = m.pick(["u32", "f32", "u8", "u16"])
    result(m, to)
    m.emit(f"const unsigned w = {width}, h = total / w; const int x = (int)(tid % w), y = (int)(tid / w);" if m.chance(50) else f"const unsigned w = {width}, h = total / w; const int x = (int)(tx + bx * blockDim.x), y = (int)(ty + blockIdx.y * blockDim.y);")
    m.emit("if (x >= (int)w || y >= (int)h || tz != 0u || blockIdx.z != 0u) return;")
    total = sum_type(m, ty)
    m.emit(f"{total} s = 0;")
    radius = m.pick([1, 1, 2])
    m.emit(m.pick(["", "#pragma unroll", "#pragma unroll 1"]))
    with m.braces(f"for (int dy = -{radius}; dy <= {radius}; ++dy)"), m.braces(f"for (int dx = -{radius}; dx <= {radius}; ++dx)"):
        edge = m.pick(["skip", "clamp", "wrap"])
        m.emit("int ax = x + dx, ay = y + dy;")
        if edge == "skip":
            m.emit("if (ax < 0 || ay < 0 || ax >= (int)w || ay >= (int)h) continue;")
        elif edge == "clamp":
            m.emit("ax = min(max(ax, 0), (int)w - 1); ay = min(max(ay, 0), (int)h - 1);")
        else:
            m.emit("ax = (ax + (int)w) % (int)w; ay = (ay + (int)h) % (int)h;")
        m.emit(f"const auto v = {array}[(unsigned)({m.pick(['ay * (int)w + ax', 'ax * (int)h + ay', '(ay * (int)w + ax) * 3 + 1'])}) % {length}u];")
        m.emit(step(m, "s", m.pick(["v", "v * (dx + 2)", "(v >> 1)" if ty != "f32" else "v * 0.5f"])))
    m.emit(f"o[{m.pick(['y * (int)w + x', 'x * (int)h + y'])}] = ({RESULTS[to]}){'(int)' if total in ('float', 'double') and to != 'f32' else ''}s;")


def product(m):
    """A product of matrices by tiles in shared memory."""
    ty = m.pick(["u32", "f32", "u8", "u16"])
    array, length = ELEMENTS[ty]
    tile, pad = m.pick([4, 8, 16]), m.below(2)
    width = m.pick(["blockDim.x", "33u", "(p.some & 15u) + 9u"])
    a, b, room = "sha", "shb", 2048
    for name in (a, b):
        m.shared.append(f"__shared__ {RESULTS[ty]} {name}[{room}];")
    m.emit(f"const unsigned w = {width}, rows = blockDim.y * blockDim.z, row = ty + tz * blockDim.y; (void)w;")
    m.emit(f"if ((rows + {pad}u) * {tile + pad}u > {room}u || blockDim.x * {tile}u > {room}u) return;")
    own = m.pick([1, 1, 2, 4])
    total = "float" if ty == "f32" else "uint32_t"
    m.emit(f"{total} s[{own}] = {{}};")
    with m.braces(f"for (unsigned k0 = 0u; k0 < {m.pick(['2u', '3u', '(p.some & 3u)', '4u'])}; ++k0)"):
        with m.braces(f"for (unsigned i = lt; i < blockDim.x * {tile}u; i += T)"):
            m.emit(f"{b}[i] = {array}[(k0 * {tile}u * w + i{m.pick(['', ' + bx * 8u', ' * 3u'])}) % {length}u];")
        with m.braces(f"for (unsigned i = lt; i < rows * {tile}u; i += T)"):
            spot = f"(i / {tile}u) * {tile + pad}u + i % {tile}u" if m.chance(70) else f"(i % {tile}u) * (rows + {pad}u) + i / {tile}u"
            turned = "rows" in spot
            m.emit(f"{a}[{spot}] = {array}[((i / {tile}u) * w + k0 * {tile}u + i % {tile}u) % {length}u];")
        m.emit("__syncthreads();")
        m.emit(m.pick(["", "#pragma unroll", "#pragma unroll 2", "#pragma unroll 1"]))
        with m.braces(f"for (unsigned k = 0u; k < {tile}u; ++k)"):
            for j in range(own):
                first = f"k * (rows + {pad}u) + (row + {j}u) % rows" if turned else f"((row + {j}u) % rows) * {tile + pad}u + k"
                m.emit(f"s[{j}] += ({total}){a}[{first}] * {b}[k * blockDim.x + tx];")
        m.emit("__syncthreads();")
    result(m, "f32" if ty == "f32" else "u32")
    for j in range(own):
        m.emit(f"o[{m.pick(['tid * %du + %du' % (own, j), '%du * total + tid' % j])}] = s[{j}];" if own == 1 else f"o[{j}u * total + tid] = s[{j}];")


def row_sums(m):
    """A row for each warp, or block."""
    ty, array, length = source(m)
    to = "f32" if ty == "f32" else "u32"
    result(m, to)
    total = "float" if ty == "f32" else "uint32_t"
    m.emit(f"{total} s = {m.pick(['0', '1'])};")
    n = m.pick(["100u", "(p.some & 255u)", "64u", "33u", "256u"])
    by_warp = m.chance(50) and m.whole_warps
    first, stride = ("lane", "32u") if by_warp else ("lt", "T")
    row = "(tid / 32u)" if by_warp else "(tid / T)"
    with m.braces(f"for (unsigned i = {first}; i < {n}; i += {stride})"):
        m.emit(f"const auto v = {array}[({row} * {n} + {m.pick(['i', f'({n} - 1u - i)', 'i * 2u'])}) % {length}u];")
        m.emit(step(m, "s", "v"))
    if by_warp:
        how = m.pick(["xor", "down"])
        m.emit(f"for (unsigned d = 16u; d > 0u; d /= 2u) s {m.pick(['+=', '+='])} __shfl_{how}_sync(0xffffffffu, s, d);")
        m.emit(f"{m.pick(['if (lane == 0u) ', ''])}o[{m.pick(['tid', 'total - 1u - tid'])}] = s;")
    else:
        m.shared.append(f"__shared__ {total} all[1024];")
        m.emit("all[lt] = s;")
        m.emit("__syncthreads();")
        with m.braces(m.pick(["for (unsigned d = 512u; d > 0u; d >>= 1)"])):
            m.emit("if (lt < d && lt + d < T) all[lt] += all[lt + d];")
            m.emit("__syncthreads();")
        m.emit("o[tid] = all[0] + s;")


def thread_rows(m):
    """A row for each thread, read and perhaps written in order."""
    ty, array, length = source(m)
    to = m.pick(["u8", "u16", "u32", "f32", "u64"])
    each = result(m, to)
    row = m.pick([n for n in (1, 2, 3, 4, 5, 7, 8, 12, 16) if n <= each])
    total = sum_type(m, ty)
    m.emit(f"{total} s = 1;")
    m.emit(m.pick(["", "", "#pragma unroll 1", "#pragma unroll"]))
    n = m.pick([f"{row}u", f"umin({row}u, p.some & 15u)"])
    cast = f"({RESULTS[to]}){'(int)' if total in ('float', 'double') and to != 'f32' else ''}"
    with m.braces(f"for (unsigned j = 0u; j < {n}; ++j)"):
        m.emit(f"const auto v = {array}[{m.pick([f'(tid * {row}u + j)', f'(j * total + tid)', f'(tid * {row}u + {row - 1}u - j)', f'({place(m)} + j)'])} % {length}u];")
        m.emit(step(m, "s", "v"))
        m.emit(f"{m.pick(['', '', 'if (v > 100) '])}o[{m.pick([f'tid * {row}u + j', 'j * total + tid', f'tid * {row}u + {row - 1}u - j'])}] = {cast}s;")
    if m.chance(40):
        m.emit("columns[tid] = (uint32_t)(int64_t)s;")


def transpose(m):
    """A tile is stored one way and read another."""
    ty, array, length = source(m, ("u8", "u16", "u32", "f32"))
    pad = m.below(3)
    m.shared.append(f"__shared__ {RESULTS[ty]} tile[3072];")
    m.emit(f"tile[row_of * (blockDim.x + {pad}u) + tx] = {array}[({m.pick(['tid', 'tid * 3u', place(m)])}) % {length}u];".replace("row_of", "(ty + tz * blockDim.y)"))
    m.emit("__syncthreads();")
    result(m, ty)
    m.emit("const unsigned rows = blockDim.y * blockDim.z;")
    spot = m.pick([f"(lt % rows) * (blockDim.x + {pad}u) + lt / rows", f"(lt / blockDim.x) * (blockDim.x + {pad}u) + (lt % blockDim.x)", f"(rows - 1u - lt / blockDim.x) * (blockDim.x + {pad}u) + (blockDim.x - 1u - tx)", f"((lt / blockDim.x) ^ (rows % 2u ? 0u : 1u)) * (blockDim.x + {pad}u) + tx"])
    m.emit(f"{m.pick(['', 'if (lt % 5u != 3u) '])}o[{m.pick(['tid', 'total - 1u - tid'])}] = tile[{spot}];")


def pixels(m):
    """Interleaved bytes, with sums that are kept in range."""
    channels = m.pick([3, 4, 3, 2])
    result(m, "u8")
    width = m.pick(["(blockDim.x * gridDim.x)", "20u", "(p.some & 63u) + 5u"])
    m.emit(f"const unsigned w = {width}, x = tid % w, y = tid / w;")
    m.emit("int s = 0; (void)s;")
    for c in range(channels):
        m.emit(f"const int c{c} = in8[((y * w + {m.pick(['x', 'x', 'w - 1u - x'])}) * {channels}u + {c}u) % 16384u];")
        m.emit(f"s += c{c} * {m.pick([1, 3, 77, 150, 29])};")
    for c in range(channels):
        value = m.pick([f"min(max(c{c} * {m.pick([2, 3, -1])} - {m.below(300)}, 0), 255)", "s >> 8", f"255 - c{c}", f"(c{c} + c{(c + 1) % channels} + 1) / 2", f"c{c} > 128 ? 255 : s & 15"])
        m.emit(f"{m.pick(['', '', 'if (s & 1) '])}o[(y * w + x) * {channels}u + {c}u] = (uint8_t)({value});")


def sparse(m):
    """Rows whose lengths are loaded, with indices that are loaded as well."""
    ty, array, length = source(m, ("u32", "f32", "u16"))
    to = "f32" if ty == "f32" else "u32"
    result(m, to)
    m.emit(f"const unsigned from = in[{m.pick(['tid', 'tid / 4u', 'bx * 7u'])} % 4096u] & 1023u, to = from + (in8[(tid * {m.pick([1, 3])}u) % 16384u] & {m.pick([3, 7, 31])}u);")
    m.emit(f"{'float' if to == 'f32' else 'uint32_t'} s = 0;")
    with m.braces(f"for (unsigned j = from; j < to; {m.pick(['++j', 'j += 2u'])})"):
        m.emit(f"const unsigned c = {m.pick(['in16[j]', 'in[j] & 2047u', 'j * 5u'])};")
        if m.chance(30):
            m.emit(f"if (c % 7u == 2u) {m.pick(['continue', 'break'])};")
        m.emit(step(m, "s", f"{array}[c % {length}u]"))
    m.emit(f"o[{at(m, 1)}] = s;")


def searches(m):
    """Loops that end for each lane at another time."""
    result(m, "u32")
    k = m.below(6)
    m.emit(f"uint32_t x = in[{m.pick(['tid', 'tid * 3u', 'total - tid'])} % 4096u], n = 0;")
    if k == 0:
        m.emit("x %= 1000u; while (x > 1u && n < 60u) { x = x & 1u ? x * 3u + 1u : x / 2u; ++n; }")
    elif k == 1:
        m.emit("uint32_t y = in[(tid + 1u) % 4096u] | 1u; while (y != 0u) { const uint32_t z = x % y; x = y; y = z; ++n; }")
    elif k == 2:
        m.emit("unsigned low = 0u, high = 4096u; while (low < high) { const unsigned mid = (low + high) / 2u; if (mid * mid < (x & 0xffffffu)) low = mid + 1u; else high = mid; ++n; } x = low;")
    elif k == 3:
        m.emit("float zx = 0.0f, zy = 0.0f; const float cx = (float)tx / 16.0f - 1.5f, cy = (float)ty / 16.0f - 0.3f; while (zx * zx + zy * zy < 4.0f && n < 40u) { const float t = zx * zx - zy * zy + cx; zy = 2.0f * zx * zy + cy; zx = t; ++n; } x ^= bits(zx);")
    elif k == 4:
        m.emit("for (unsigned bit = 0u; bit < 32u; ++bit) { if (x >> bit == 0u) break; if ((x >> bit & 3u) == 3u) { ++bit; continue; } n += bit * (x >> bit & 1u); }")
    else:
        m.emit("uint8_t stack[16]; unsigned top = 0; for (unsigned i = 0; i < 12u; ++i) { const unsigned c = x >> (i * 2u) & 3u; if (c == 0u && top) { n = n * 7u + stack[--top]; } else { stack[top++] = (uint8_t)(c + i); } } while (top) n = n * 5u + stack[--top];")
    m.emit("o[tid] = x; o[total + tid] = n;" if m.chance(50) else "o[tid * 2u] = x; o[tid * 2u + 1u] = n;")


def scan_rows(m):
    """Running sums along rows or columns, each thread's or the block's."""
    ty, array, length = source(m, ("u32", "f32", "u8", "u16"))
    to = m.pick(["u32", "f32"]) if ty != "f32" else "f32"
    result(m, to)
    n = m.pick([3, 4, 8, 12])
    m.emit(f"{'float' if to == 'f32' else 'uint32_t'} s = 0, before = 0;")
    with m.braces(f"for (unsigned j = 0u; j < {n}u; ++j)"):
        m.emit(f"s {m.pick(['+=', '=', '-='])} {array}[({m.pick([f'tid * {n}u + j', 'j * total + tid', f'(ty * {n}u + j) * blockDim.x + tx'])}) % {length}u];")
        m.emit(f"o[{m.pick([f'tid * {n}u + j', 'j * total + tid'])}] = s {m.pick(['+', '-', '*'])} before;")
        m.emit("before = s;")


def vectors(m):
    """Elements converted four, or two, at a time."""
    count = m.pick([2, 4])
    members = "xyzw"[:count]
    kind, ty = m.pick([("uchar", "u8"), ("ushort", "u16"), ("uint", "u32"), ("float", "f32")])
    to_kind, to = m.pick([("uchar", "u8"), ("ushort", "u16"), ("uint", "u32"), ("float", "f32"), ("int", "i32"), ("short", "i16")])
    limit = ELEMENTS[ty][1] // count
    base = "inf" if ty == "f32" else "in"
    per = m.pick([1, 2, 3])
    m.emit(f"{to_kind}{count}* const o = ({to_kind}{count}*)out;")
    m.emit(m.pick(["", "#pragma unroll"]))
    with m.braces(f"for (unsigned j = 0u; j < {per}u; ++j)"):
        spot = m.pick([f"tid * {per}u + j", "j * total + tid", f"(tid ^ j)", place(m) + " + j"])
        m.emit(f"const {kind}{count} v = ((const {kind}{count}*){base})[({spot}) % {limit}u];")
        m.emit(f"{to_kind}{count} r;")
        for member in members:
            value = m.pick([f"v.{member}", f"v.{m.pick(members)} + v.{m.pick(members)}", f"v.{member} * 3 - v.{m.pick(members)}", f"v.{member} > v.{m.pick(members)} ? v.{member} : 7"])
            m.emit(f"r.{member} = {'(int)' if ty == 'f32' and to != 'f32' else ''}({value});")
        m.emit(f"{m.pick(['', '', 'if (v.x > v.y) '])}o[{m.pick([f'tid * {per}u + j', 'j * total + tid'])}] = r;")


def several(m):
    """Some formulas of loads, each to an array of its own."""
    result(m, "u32")
    for number in range(m.pick([1, 2, 3, 4])):
        ty, array, length = source(m, ("u32", "u8", "u16"))
        m.emit(f"uint32_t s{number} = 0;")
        for _ in range(m.pick([1, 2, 3])):
            load = f"{array}[({place(m)}) % {length}u]"
            if m.chance(30):
                m.emit(f"if ({place(m)} {m.pick(['<', '>', '>='])} {m.pick([1, 5, 16, 40, 100])}u) s{number} += {load};")
            elif m.chance(25):
                m.emit(f"for (unsigned r = 0u; r < {m.pick([2, 3, 5])}u; ++r) s{number} = s{number} * 3u + {array}[({place(m)} + r * {m.pick([1, 4, 16, 64, 100])}u) % {length}u];")
            else:
                m.emit(f"s{number} = s{number} * 5u + {load};")
        spot = m.pick(["tid", "total - 1u - tid", "(tid * 2053u) % total", "tid ^ (total % 2u ? 0u : 1u)", "(tid + 5u) % total"])
        m.emit(f"o[{number}u * total + {spot}] = s{number};")
