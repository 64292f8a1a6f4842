"""Statements: what a thread sets, branches and loops."""

import memory
import warps
from values import bounded, expr, uniform


def statements(m, count):
    for _ in range(count):
        if m.budget <= 0:
            return
        m.budget -= 1
        statement(m)


def statement(m):
    deep = m.depth >= 4
    table = [
        (16, assign),
        (6, new_variable),
        (8, memory.any_of),
        (3 if m.given else 0, memory.atomic),
    ]
    if not deep:
        table += [(9, branch), (8, loop), (3, switch), (2, jumps), (2, guarded_store)]
    if m.loop:
        table += [(5, leave_loop)]
    if m.lanes:
        if m.mask:
            table += [(12, warps.any_of)]
        if m.level == "block":
            table += [(12, warps.block_wide)]
    m.weighted(table)(m)


def assign(m):
    target = m.target()
    if not target:
        return new_variable(m)
    ty, name = target
    value = expr(m, ty, 2 + m.below(2))
    if ty in ("u32", "u64", "u16", "u8") and m.chance(60):
        m.emit(f"{name} {m.pick(['+=', '^=', '-=', '|=', '*=', '+='])} {value};")
    elif ty in ("u32", "u64") and m.chance(40):
        m.emit(f"{name} = {name} * {m.pick([3, 5, 7, 33])}u + {value};")
    elif ty in ("f32", "f64") and m.chance(50):
        m.emit(f"{name} {m.pick(['+=', '-=', '*='])} {value};")
    else:
        m.emit(f"{name} = {value};")


def new_variable(m):
    types = ["u32", "u32", "u64", "f32", "u16", "u8", "f64", "i16", "i8"] + (["f16", "bf16"] if m.halves else [])
    ty = m.pick(types)
    m.declare(ty, expr(m, ty, 2), writable=ty not in ("f16", "bf16") or m.chance(50))


def condition(m):
    """A condition, and who comes to what depends on it."""
    k = m.below(10)
    if k < 2:
        return f"{uniform(m, 7)} {m.pick(['<', '>', '=='])} {m.below(8)}u", m.level
    if k == 2 and m.level != "lane" and m.lanes:
        text = m.pick([f"((lt / 32u) & 1u) == {m.below(2)}u", f"lt / 32u < {m.below(4)}u"])
        return text, "warp"
    return expr(m, "bool", 2), "lane"


def branch(m):
    text, level = condition(m)
    mask, others = m.mask, None
    if level == "lane":
        if m.mask and m.chance(65):
            # Both sides know who they are.
            taken = m.name("q")
            m.emit(f"const bool {taken} = {text};")
            mask = m.name("m")
            m.emit(f"const unsigned {mask} = __ballot_sync({m.mask}, {taken});")
            others = m.name("m")
            m.emit(f"const unsigned {others} = {m.mask} & ~{mask}; (void){others};")
            text = taken
        else:
            mask = None
    after = m.mask
    two = m.chance(45)
    with m.braces(f"if ({text})", "} else {" if two else "}"), m.having(level=level, mask=mask):
        statements(m, 1 + m.below(3))
    if two:
        with m.inside("}"), m.having(level=level, mask=others if level == "lane" else mask):
            statements(m, 1 + m.below(2))
    if after and m.level != "block" and m.chance(20):
        m.emit(f"__syncwarp({after});")


def rounds(m):
    """The most that a loop goes round here."""
    return m.pick([2, 3, 4, 5, 8, 12]) if m.cost < 12 else m.pick([1, 2, 3])


def loop(m):
    if m.cost > 150:
        return assign(m)
    high = rounds(m)
    table = [(2, uniform_rounds), (1, until_none), (1, shrinking), (1, part_of_array), (3, counted)]
    if m.mask:
        table.append((2, parting))
    with m.having(cost=m.cost * high):
        m.weighted(table)(m, high, m.name("i"))


def own_rounds(m, high):
    """How often a thread goes round, for itself."""
    return bounded(m, expr(m, "u32", 2), high + 1)


def alone(m):
    """Nobody knows who else is there."""
    return m.having(level="lane", mask=None, loop=True)


def uniform_rounds(m, high, i):
    """As many for all, known to the compiler or not."""
    to = m.pick([f"{high}u", uniform(m, high)])
    unroll(m)
    with m.braces(f"for (unsigned {i} = {m.pick(['0u', '0u', '1u'])}; {i} < {to}; ++{i})"), m.having(loop=False):
        counter(m, i)
        statements(m, 1 + m.below(3))


def parting(m, high, i):
    """Lanes leave one after the other; those that stay know each other."""
    n, before, mask = m.name("n"), m.name("m"), m.name("m")
    m.emit(f"const unsigned {n} = {own_rounds(m, high)};")
    m.emit(f"unsigned {before} = {m.mask};")
    with m.braces(f"for (unsigned {i} = 0u;; ++{i})"):
        m.emit(f"const unsigned {mask} = __ballot_sync({before}, {i} < {n});")
        m.emit(f"if ({i} >= {n}) break;")
        m.emit(f"{before} = {mask};")
        counter(m, i)
        with m.having(level="lane", mask=mask, loop=False):
            statements(m, 1 + m.below(3))


def until_none(m, high, i):
    m.emit(f"unsigned {i} = {own_rounds(m, high)};")
    tail = f"}} while ({i}-- != 0u{m.pick(['', ' && ' + expr(m, 'bool', 1)])});"
    with m.braces("do", tail), alone(m):
        m.add("u32", i)
        statements(m, 1 + m.below(3))


def shrinking(m, high, i):
    """Numbers that are halved, or lose their bits."""
    m.emit(f"uint32_t {i} = {expr(m, 'u32', 2)} & {(1 << min(high, 8)) - 1}u;")
    step = m.pick([f"{i} >>= 1", f"{i} &= {i} - 1u", f"{i} /= 3u", f"{i} = {i} > 2u ? {i} / 2u : 0u"])
    with m.braces(f"for (; {i} != 0u; {step})"), alone(m):
        m.add("u32", i)
        statements(m, 1 + m.below(3))


def part_of_array(m, high, i):
    """From somewhere on to somewhere, as over the rows of a sparse matrix."""
    start, to = m.name("s"), m.name("n")
    m.emit(f"const unsigned {start} = {expr(m, 'u32', 1)} & {m.pick([7, 63, 1023])}u;")
    m.emit(f"const unsigned {to} = {start} + ({expr(m, 'u32', 1)} % {high + 1}u) * {m.pick([1, 2])}u;")
    unroll(m)
    with m.braces(f"for (unsigned {i} = {start}; {i} < {to}; {i} += {m.pick([1, 1, 2, 3])}u)"), alone(m):
        counter(m, i)
        statements(m, 1 + m.below(3))


def counted(m, high, i):
    """With a signed counter, up or down."""
    n = m.name("n")
    m.emit(f"const int {n} = (int)({own_rounds(m, high)});")
    unroll(m)
    ways = [f"{i} = 0; {i} < {n}; ++{i}", f"{i} = {n} - 1; {i} >= 0; --{i}", f"{i} = 0; {i} <= {n}; {i} += 2"]
    with m.braces(f"for (int {m.pick(ways)})"), alone(m):
        m.emit(f"const uint32_t {i}u = (uint32_t){i};")
        counter(m, i + "u")
        statements(m, 1 + m.below(3))


def counter(m, name):
    m.add("u32", name)
    m.add("counter", name)


def unroll(m):
    if m.chance(30):
        m.emit(f"#pragma unroll {m.pick(['1', '2', '4', ''])}")


def leave_loop(m):
    m.emit(f"if ({expr(m, 'bool', 2)}) {m.pick(['break', 'continue', 'break'])};")


def switch(m):
    text, level = expr(m, "u32", 2), "lane"
    if m.chance(20):
        text, level = uniform(m, 7), m.level
    count = m.pick([3, 4, 5, 6, 8])
    cases = m.r.sample(range(count + 2), count)
    known = m.having(level=level, mask=m.mask if level != "lane" else None, loop=False)
    with m.braces(f"switch (({text}) % {count + 1}u)"), known:
        for case in cases:
            m.emit(f"case {case}u: {{")
            with m.inside("}" if level == "lane" and m.chance(25) else "} break;"):
                statements(m, 1 + m.below(2))
        if m.chance(50):
            with m.braces("default:"):
                statements(m, 1)


def jumps(m):
    """Blocks that jump to each other, into loops as well; each jump uses up something."""
    n, fuel = m.name("L"), m.name("n")
    high = rounds(m)
    m.emit(f"unsigned {fuel} = {bounded(m, expr(m, 'u32', 2), high + 2)};")
    count = m.pick([2, 3, 4])
    with m.having(level="lane", mask=None, loop=False, cost=m.cost * high):
        # No declarations may be jumped over.
        m.emit(f"if ({expr(m, 'bool', 2)}) goto {n}_{m.below(count)};")
        for at in range(count):
            m.emit(f"{n}_{at}:")
            with m.braces(""):
                statements(m, 1 + m.below(2))
            if m.chance(80):
                m.emit(f"if ({expr(m, 'bool', 1)} && {fuel} != 0u) {{ --{fuel}; goto {n}_{m.below(count)}; }}")
        m.emit(f"if ({fuel} > 2u) {{ {fuel} -= 3u; goto {n}_{m.below(count)}; }}")


def guarded_store(m):
    """A short branch with a store in it, or two."""
    with m.having(level="lane", mask=None):
        store = memory.store_text(m)
        if store is None:
            return assign(m)
        text = expr(m, "bool", 2)
        if m.chance(40) and (other := memory.store_text(m)):
            m.emit(f"if ({text}) {store} else {other}")
        else:
            m.emit(f"if ({text}) {store}")
