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
    types = ["u32", "u32", "u64", "f32", "u16", "u8", "f64", "i16", "i8"] + ([] if m.plain else ["f16", "bf16"])
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
        m.indent += 1
        m.scopes.append([])
        m.depth += 1
        with m.having(level=level, mask=others if level == "lane" else mask):
            statements(m, 1 + m.below(2))
        m.depth -= 1
        m.scopes.pop()
        m.indent -= 1
        m.emit("}")
    if after and m.level != "block" and m.chance(20):
        m.emit(f"__syncwarp({after});")


def rounds(m):
    return m.pick([2, 3, 4, 5, 8, 12]) if m.cost < 12 else m.pick([1, 2, 3])


def loop(m):
    if m.cost > 150:
        return assign(m)
    k = m.below(8)
    high = rounds(m)
    i = m.name("i")
    with m.having(cost=m.cost * high):
        if k < 2:
            to = m.pick([f"{high}u", uniform(m, high)])
            unroll(m)
            with m.braces(f"for (unsigned {i} = {m.pick(['0u', '0u', '1u'])}; {i} < {to}; ++{i})"), m.having(loop=False):
                m.add("u32", i)
                m.add("counter", i)
                statements(m, 1 + m.below(3))
        elif k == 2 and m.mask:
            # Lanes leave one after the other; those that stay know each other.
            n, mask = m.name("n"), m.name("m")
            m.emit(f"const unsigned {n} = {bounded(m, expr(m, 'u32', 2), high + 1)};")
            with m.braces(f"for (unsigned {i} = 0u;; ++{i})"):
                m.emit(f"const unsigned {mask} = __ballot_sync({m.mask if m.chance(0) else mask + 'o'}, {i} < {n});")
                m.emit(f"if ({i} >= {n}) break;")
                m.emit(f"{mask}o = {mask};")
                m.add("u32", i)
                m.add("counter", i)
                with m.having(level="lane", mask=mask, loop=False):
                    statements(m, 1 + m.below(3))
            # The mask of the round before is declared in front of the loop.
            head = next(at for at in range(len(m.lines) - 1, -1, -1) if f"for (unsigned {i} = 0u;;" in m.lines[at])
            m.lines.insert(head, "  " * m.indent + f"unsigned {mask}o = {m.mask};")
        elif k == 3:
            n = m.name("n")
            m.emit(f"unsigned {n} = {bounded(m, expr(m, 'u32', 2), high + 1)};")
            with m.braces("do", f"}} while ({n}-- != 0u{m.pick(['', ' && ' + expr(m, 'bool', 1)])});"), m.having(level="lane", mask=None, loop=True):
                m.add("u32", n)
                # A continue goes to the condition.
                statements(m, 1 + m.below(3))
        elif k == 4:
            # Numbers that halve, or bits that go.
            n = m.name("n")
            m.emit(f"uint32_t {n} = {expr(m, 'u32', 2)} & {(1 << min(high, 8)) - 1}u;")
            step = m.pick([f"{n} >>= 1", f"{n} &= {n} - 1u", f"{n} /= 3u", f"{n} = {n} > 2u ? {n} / 2u : 0u"])
            with m.braces(f"for (; {n} != 0u; {step})"), m.having(level="lane", mask=None, loop=True):
                m.add("u32", n)
                statements(m, 1 + m.below(3))
        elif k == 5:
            # Over part of an array, from somewhere on.
            start, to = m.name("s"), m.name("n")
            m.emit(f"const unsigned {start} = {expr(m, 'u32', 1)} & {m.pick([7, 63, 1023])}u;")
            m.emit(f"const unsigned {to} = {start} + ({expr(m, 'u32', 1)} % {high + 1}u) * {m.pick([1, 2])}u;")
            unroll(m)
            with m.braces(f"for (unsigned {i} = {start}; {i} < {to}; {i} += {m.pick([1, 1, 2, 3])}u)"), m.having(level="lane", mask=None, loop=True):
                m.add("u32", i)
                m.add("counter", i)
                statements(m, 1 + m.below(3))
        else:
            n = m.name("n")
            m.emit(f"const int {n} = (int)({bounded(m, expr(m, 'u32', 2), high + 1)});")
            unroll(m)
            head = m.pick([f"for (int {i} = 0; {i} < {n}; ++{i})", f"for (int {i} = {n} - 1; {i} >= 0; --{i})", f"for (int {i} = 0; {i} <= {n}; {i} += 2)"])
            with m.braces(head), m.having(level="lane", mask=None, loop=True):
                m.emit(f"const uint32_t {i}u = (uint32_t){i};")
                m.add("u32", i + "u")
                m.add("counter", i + "u")
                statements(m, 1 + m.below(3))


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
    with m.braces(f"switch (({text}) % {count + 1}u)"):
        for case in cases:
            m.emit(f"case {case}u: {{")
            m.indent += 1
            m.scopes.append([])
            with m.having(level=level, mask=m.mask if level != "lane" else None, loop=False):
                statements(m, 1 + m.below(2))
            m.scopes.pop()
            m.indent -= 1
            falls = level == "lane" and m.chance(25)
            m.emit("}" if falls else "} break;")
        if m.chance(50):
            m.emit("default: {")
            m.indent += 1
            m.scopes.append([])
            with m.having(level=level, mask=m.mask if level != "lane" else None, loop=False):
                statements(m, 1)
            m.scopes.pop()
            m.indent -= 1
            m.emit("}")


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
