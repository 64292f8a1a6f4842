"""What the lanes of a warp, or the threads of a block, do together."""

import control
import memory
from maker import TYPES
from values import bounded, expr, uniform


def any_of(m):
    """Among exactly the lanes of the mask."""
    table = [(6, shuffle), (4, vote), (2, match), (3, reduce), (2, nth_lane), (2, peel)]
    if m.level != "lane" and m.whole_warps and m.groups:
        table += [(4, tile), (2, labels)]
    m.weighted(table)(m)


def shuffle(m):
    ty = m.pick(["u32", "u32", "u64", "f32", "f64", "u32"] + (["f16"] if m.halves else []))
    width = m.pick([32, 32, 32, 16, 8, 4, 2])
    value = expr(m, ty, 2)
    how = m.pick(["xor", "up", "down", "idx"])
    distance = m.pick([f"{m.below(width)}u", f"{1 << m.below(5)}u", uniform(m, 31)]) if how != "idx" else bounded(m, expr(m, "u32", 1), 32)
    name = {"u32": "a", "u64": "w", "f32": "f", "f64": "d", "f16": "h"}[ty]
    x, source = m.name("x"), m.name("l")
    m.emit(f"const {TYPES[ty]} {x} = {value};")
    m.emit(f"const unsigned {source} = source_{how}(lane, {distance}, {width}u);")
    argument = source if how == "idx" else distance
    if how == "idx" and m.chance(50):
        argument = f"({distance})"
    suffix = "" if how == "idx" else "_" + how
    y = m.name(name)
    # What comes from a lane that does not take part is not looked at.
    m.emit(f"{TYPES[ty]} {y} = __shfl{suffix}_sync({m.mask}, {x}, {argument}, {width});")
    m.emit(f"if (!(({m.mask} >> {source}) & 1u)) {y} = {x};")
    m.add(ty, y)
    m.add("writable", ty, y)


def nth_lane(m):
    """From a lane that takes part for certain."""
    ty = m.pick(["u32", "u64", "f32"])
    y = m.declare(ty, f"__shfl_sync({m.mask}, {expr(m, ty, 2)}, lane_of({m.mask}, {m.pick(['0u', '1u', 'lane', uniform(m, 31), expr(m, 'u32', 1)])}))")
    return y


def vote(m):
    k = m.below(4)
    condition = expr(m, "bool", 2)
    if k < 2:
        text = f"__ballot_sync({m.mask}, {condition})"
        text = m.pick([text, f"__popc({text})", f"(uint32_t)__popc({text} & ((1u << lane) - 1u))", f"(uint32_t)__ffs({text})"])
    else:
        text = f"(uint32_t)(__{m.pick(['any', 'all'])}_sync({m.mask}, {condition}) != 0)"
    m.declare("u32", text)


def match(m):
    ty = m.pick(["u32", "u32", "u64"])
    if m.chance(70):
        m.declare("u32", f"__match_any_sync({m.mask}, {bounded(m, expr(m, 'u32', 2), m.pick([2, 4, 7, 64]))})")
    else:
        ok = m.name("ok")
        m.emit(f"int {ok} = 0;")
        m.declare("u32", f"__match_all_sync({m.mask}, {expr(m, ty, 1)}, &{ok})")
        m.declare("u32", f"(uint32_t)({ok} != 0)")


def reduce(m):
    if m.chance(75):
        operation = m.pick(["add", "min", "max", "and", "or", "xor"])
        signed = operation in ("add", "min", "max") and m.chance(30)
        value = expr(m, "u32", 2)
        m.declare("u32", f"(uint32_t)__reduce_{operation}_sync({m.mask}, {'(int)' if signed else '(unsigned)'}({value}))")
    elif m.level != "lane" and m.whole_warps:
        # As people write them.
        ty = m.pick(["u32", "u64", "f32", "u32"])
        x = m.declare(ty, expr(m, ty, 2))
        how = m.pick(["xor", "down", "up"])
        start = m.pick([16, 8, 4])
        operation = m.pick(["{0} += {1};", "{0} = {0} > {1} ? {0} : {1};", "{0} = {0} + {1} * 3;"])
        step = f"__shfl_{how}_sync({m.mask}, {x}, o)"
        m.emit(f"for (unsigned o = {start}u; o > 0u; o >>= 1) {{ const {TYPES[ty]} y = {step}; {operation.format(x, 'y')} }}")
    else:
        vote(m)


def peel(m):
    """Lanes with equal values go together, one value after the other."""
    left, now = m.name("m"), m.name("m")
    key = m.name("k")
    m.emit(f"const uint32_t {key} = {bounded(m, expr(m, 'u32', 2), m.pick([2, 3, 5, 8]))};")
    with m.braces(f"for (unsigned {left} = {m.mask}; {left} != 0u;)"), m.having(cost=m.cost * 4):
        chosen = m.declare("u32", f"__shfl_sync({m.mask}, {key}, __ffs((int){left}) - 1)", writable=False)
        m.emit(f"const unsigned {now} = __ballot_sync({m.mask}, {key} == {chosen});")
        with m.having(level="lane", mask=now, loop=False), m.braces(f"if ({key} == {chosen})"):
            control.statements(m, 1 + m.below(2))
        m.emit(f"{left} &= ~{now};")


def tile(m):
    """Tiles of cooperative groups."""
    size = m.pick([32, 32, 16, 8, 4, 2])
    t = m.name("t")
    m.emit(f"auto {t} = cg::tiled_partition<{size}>(cg::this_thread_block());")
    k = m.below(7)
    ty = m.pick(["u32", "u32", "f32", "u64"])
    if k == 0:
        m.declare(ty, f"{t}.shfl({expr(m, ty, 2)}, {bounded(m, expr(m, 'u32', 1), size)})")
    elif k == 1:
        m.declare(ty, f"{t}.shfl_{m.pick(['xor', 'up', 'down'])}({expr(m, ty, 2)}, {m.below(size)}u)" if size > 1 else "0")
    elif k == 2:
        m.declare("u32", f"(uint32_t){t}.{m.pick(['ballot', 'any', 'all'])}({expr(m, 'bool', 2)})")
    elif k == 3:
        operation = m.pick(["plus", "less", "greater", "bit_xor", "bit_and", "bit_or"])
        m.declare("u32", f"cg::reduce({t}, (unsigned)({expr(m, 'u32', 2)}), cg::{operation}<unsigned>())")
    elif k == 4:
        scan = m.pick(["inclusive_scan", "exclusive_scan"])
        m.declare("u32", f"cg::{scan}({t}, (unsigned)({expr(m, 'u32', 2)}), cg::{m.pick(['plus', 'bit_xor'])}<unsigned>())")
    elif k == 5:
        m.declare("u32", f"{t}.match_any({bounded(m, expr(m, 'u32', 1), 5)}) + {t}.thread_rank() * 3u + {t}.meta_group_rank()")
    else:
        # Tiles part; those that go have all their lanes.
        rank = m.name("mg")
        m.emit(f"const unsigned {rank} = {t}.meta_group_rank();")
        mask = m.name("m")
        with m.braces(f"if (({rank} + {m.below(4)}u) & {m.pick([1, 2, 3])}u)"):
            m.emit(f"const unsigned {mask} = {'0xffffffffu' if size == 32 else f'{(1 << size) - 1}u << (lane & ~{size - 1}u)'};")
            with m.having(level="warp" if size == 32 else "lane", mask=mask, loop=False):
                control.statements(m, 1 + m.below(2))
                target = m.declare("u32", f"cg::reduce({t}, (unsigned)({expr(m, 'u32', 1)}), cg::plus<unsigned>())")
                control.statements(m, 1)
                m.emit(f"{(m.target(['u32']) or ('u32', target))[1]} ^= {target};")


def labels(m):
    """Groups of lanes with the same label."""
    g, t = m.name("g"), m.name("t")
    m.emit(f"auto {t} = cg::tiled_partition<32>(cg::this_thread_block());")
    if m.chance(60):
        m.emit(f"auto {g} = cg::labeled_partition({t}, (unsigned)({bounded(m, expr(m, 'u32', 2), m.pick([2, 3, 6]))}));")
    else:
        m.emit(f"auto {g} = cg::binary_partition({t}, (bool)({expr(m, 'bool', 2)}));")
    m.declare("u32", f"{g}.thread_rank() * 64u + {g}.num_threads()")
    k = m.below(4)
    if k == 0:
        m.declare("u32", f"{g}.shfl({expr(m, 'u32', 2)}, {g}.num_threads() - 1u)")
    elif k == 1:
        m.declare("u32", f"cg::reduce({g}, (unsigned)({expr(m, 'u32', 2)}), cg::plus<unsigned>())")
    elif k == 2:
        m.declare("u32", f"{g}.ballot({expr(m, 'bool', 2)})")
    else:
        m.declare("u32", f"cg::inclusive_scan({g}, (unsigned)({expr(m, 'u32', 1)}), cg::plus<unsigned>())")


# Whole blocks.


def block_wide(m):
    m.weighted([(8, exchange), (3, table), (3, histogram), (3, count), (3, uniform_loop), (2, scan), (2, in_warp_exchange), (1, halves), (1, transposed)])(m)


def shared_array(m, ty, length):
    size = {"u8": 1, "u16": 2, "u32": 4, "f32": 4}.get(ty, 8) * length
    if m.shared_bytes + size > 40000:
        return None
    m.shared_bytes += size + 16
    name = m.name("sh")
    m.shared.append(f"__shared__ {TYPES[ty]} {name}[{length}];")
    return name


def places(m):
    """Where in a block's array a thread's element lies: another place for each thread."""
    return m.pick(["lt", "lt", "T - 1u - lt", f"(lt + {m.below(70)}u) % T", "(lt * 1031u) % T", "(tx * blockDim.y + ty) * blockDim.z + tz", "(ty * blockDim.x + tx) * blockDim.z + tz", "(tz * blockDim.x + tx) * blockDim.y + ty", "((T & 1u) ? lt : lt ^ 1u)"])


def exchange(m):
    ty = m.pick(["u32", "u32", "u64", "u8", "u16", "f32"])
    stride, plus = m.pick([(1, 0), (1, 0), (1, 5), (2, 1)])
    if ty == "u64":
        stride = 1
    dynamic = ty == "u32" and stride == 1 and not m.all("dynamic") and m.chance(25)
    name = "dyn" if dynamic else shared_array(m, ty, 1024 * stride + plus)
    if name is None:
        return count(m)
    with m.braces(""):
        if dynamic:
            m.add("dynamic")
        place = places(m)
        m.emit(f"{name}[({place}) * {stride}u + {plus if not dynamic else 0}u] = {expr(m, ty, 2)};")
        m.emit("__syncthreads();")
        text = f"{name}[(({{}}) % T) * {stride}u + {plus if not dynamic else 0}u]"
        m.add("array", ty, text, m.pick([64, 256, 1024]))
        if stride == 1 and not plus and m.chance(50):
            m.add("array", ty, name + m.pick(["[lt / 2u + ({}) * 0u]", "[T - 1u - lt + ({}) * 0u]", "[(lt * 7u + ({})) % T]"]), 1024)
        target = m.target([ty])
        if target:
            m.emit(f"{target[1]} += {text.format(expr(m, 'u32', 1))};")
        control.statements(m, 1 + m.below(3))
        m.emit("__syncthreads();")


def transposed(m):
    """Rows are stored and columns read, of a tile that is as wide as the block or has an element more."""
    name = shared_array(m, "u32", 2048)
    if name is None:
        return count(m)
    pad = m.below(2)
    m.emit(f"{name}[(ty + tz * blockDim.y) * (blockDim.x + {pad}u) + tx] = {expr(m, 'u32', 2)};")
    m.emit("__syncthreads();")
    rows = "(blockDim.y * blockDim.z)"
    m.declare("u32", f"{name}[(lt % {rows}) * (blockDim.x + {pad}u) + lt / {rows}]")
    m.emit("__syncthreads();")


def table(m):
    """A table that the block fills in a loop, and rounds of reading it."""
    ty = m.pick(["u32", "u8", "u16", "f32", "u64"])
    length = m.pick([8, 33, 64, 100, 256, 500])
    name = shared_array(m, ty, length)
    if name is None:
        return count(m)
    i = m.name("i")
    with m.braces(""):
        with m.braces(f"for (unsigned {i} = lt; {i} < {length}u; {i} += T)"):
            m.add("u32", i)
            with m.having(level="lane", mask=None):
                source = {"u32": "in", "u8": "in8", "u16": "in16", "f32": "inf", "u64": "in64"}[ty]
                value = m.pick([f"{source}[{i} * {m.pick([1, 3, 4])}u]", f"({TYPES[ty]})({i} * {m.pick([3, 5])}u + bx)"])
                m.emit(f"{name}[{m.pick([i, f'{length - 1}u - {i}'])}] = {value};")
        m.emit("__syncthreads();")
        m.add("array", ty, name + "[{}]", length)
        control.statements(m, 2 + m.below(3))
        m.emit("__syncthreads();")


def histogram(m):
    length = m.pick([1, 8, 32, 100, 256])
    name = shared_array(m, "u32", length)
    if name is None:
        return count(m)
    operation, start = m.pick([("atomicAdd", 0), ("atomicAdd", 0), ("atomicMax", 0), ("atomicXor", 0), ("atomicOr", 0), ("atomicMin", 0xFFFFFFFF), ("cas_add", 0)])
    i = m.name("i")
    m.emit(f"for (unsigned {i} = lt; {i} < {length}u; {i} += T) {name}[{i}] = {start}u;")
    m.emit("__syncthreads();")
    head = m.pick(["", f"if ({expr(m, 'bool', 2)})", f"for (unsigned {i} = 0u; {i} < ({expr(m, 'u32', 1)} & 3u); ++{i})"])
    with m.braces(head), m.having(level="lane", mask=None):
        if head.startswith("for"):
            m.add("u32", i)
        m.emit(f"{operation}(&{name}[{bounded(m, expr(m, 'u32', 2), length)}], {m.pick(['1u', '(unsigned)(' + expr(m, 'u32', 1) + ')'])});")
    m.emit("__syncthreads();")
    with m.braces(""):
        m.add("array", "u32", name + "[{}]", length)
        target = m.target(["u32"])
        if target:
            m.emit(f"{target[1]} += {name}[{bounded(m, expr(m, 'u32', 1), length)}];")
        control.statements(m, 1 + m.below(2))
        m.emit("__syncthreads();")


def count(m):
    condition = expr(m, "bool", 2)
    m.declare("u32", f"(uint32_t)__syncthreads_{m.pick(['count', 'and', 'or'])}({condition})")


def uniform_loop(m):
    if m.cost > 20:
        return count(m)
    i = m.name("i")
    to = m.pick([uniform(m, 4), "3u"])
    with m.braces(f"for (unsigned {i} = 0u; {i} < {to}; ++{i})"), m.having(cost=m.cost * 3, loop=False):
        m.add("u32", i)
        m.add("counter", i)
        block_wide(m)
        control.statements(m, 1 + m.below(2))


def scan(m):
    ty = m.pick(["u32", "u64", "u16", "f32"])
    name = shared_array(m, ty, 1024)
    if name is None:
        return count(m)
    x = m.declare(ty, expr(m, ty, 1))
    m.emit(f"{name}[lt] = {x};")
    m.emit("__syncthreads();")
    with m.braces("for (unsigned o = 1u; o < T; o *= 2u)"):
        m.emit(f"const {TYPES[ty]} y = lt >= o ? {name}[lt - o] : ({TYPES[ty]})0;")
        m.emit("__syncthreads();")
        m.emit(f"{name}[lt] += y;")
        m.emit("__syncthreads();")
    m.emit(f"{x} ^= {name}[lt];" if ty != "f32" else f"{x} = {name}[lt];")
    m.emit("__syncthreads();")


def in_warp_exchange(m):
    """Through shared memory, among the lanes of a warp."""
    name = shared_array(m, "u32", 1024)
    if name is None:
        return count(m)
    m.emit(f"{name}[lt] = {expr(m, 'u32', 2)};")
    m.emit(f"__syncwarp({m.mask});")
    other = f"lt ^ {m.pick([1, 3, 16, 31])}u"
    x = m.declare("u32", f"{name}[{other if m.whole_warps else f'same_warp(lt, {other}, T)'}]")
    m.emit(f"__syncwarp({m.mask});")
    if m.chance(50):
        m.emit(f"{name}[lt] += {x};")
        m.emit(f"__syncwarp({m.mask});")
        m.declare("u32", f"{name}[(lt & ~31u) + {m.pick(['0u', 'min(lane * 3u % 32u, warp_lanes - 1u)'])}]")
    m.emit("__syncthreads();")


def halves(m):
    """Each pair of warps has a barrier of its own, or the first warps tell the others something."""
    name = shared_array(m, "u32", 1024)
    if name is None or not m.whole_warps:
        return count(m)
    m.emit("__syncthreads();")
    with m.braces("if (T % 64u == 0u)"):
        if m.chance(50):
            # Pairs; there are sixteen barriers, the first of which is __syncthreads().
            with m.braces("if (T <= 960u)"):
                m.emit(f"{name}[lt] = {expr(m, 'u32', 2)};")
                m.emit("__barrier_sync_count(1u + lt / 64u, 64u);")
                target = m.target(["u32"])
                if target:
                    m.emit(f"{target[1]} += {name}[lt ^ {m.pick([32, 63, 33, 1])}u];")
                m.emit("__barrier_sync_count(1u + lt / 64u, 64u);")
        else:
            with m.braces("if (lt < T / 2u)", "} else {"), m.having(level="warp"):
                m.emit(f"{name}[lt] = {expr(m, 'u32', 2)};")
                m.emit('asm volatile("bar.arrive 3, %0;" :: "r"(T) : "memory");')
                control.statements(m, 1)
            with m.inside("}"):
                m.emit('asm volatile("bar.sync 3, %0;" :: "r"(T) : "memory");')
                target = m.target(["u32"])
                if target:
                    m.emit(f"{target[1]} ^= {name}[T - 1u - lt];")
    m.emit("__syncthreads();")
