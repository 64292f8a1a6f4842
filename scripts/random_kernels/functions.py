"""Functions that kernels call: inlined and not, recursive, through pointers and tables of classes, with structures by value."""

from dataclasses import dataclass, field

import control
from maker import TYPES, Maker
from values import expr


@dataclass
class Function:
    """A function; `form` is the text of a call, with places for the arguments."""

    result: str
    parameters: list
    form: str
    text: list = field(default_factory=list)

    def call(self, m, arguments):
        return self.form.format(*arguments)


def body(seed, parameters, result, plain, halves, count=3):
    """Statements and a result, that know nothing but parameters and constants."""
    m = Maker(seed, plain=plain)
    m.halves = halves
    m.given, m.lanes, m.level, m.mask = False, False, "lane", None
    m.cost, m.budget = 12, 8
    constants(m)
    for ty, name in parameters:
        m.add(ty, name)
        m.add("writable", ty, name)
    m.places = [name for ty, name in parameters if ty == "u32"] or ["77u"]
    control.statements(m, m.below(count + 1))
    m.emit(f"return {expr(m, result, 3)};")
    return m.lines


def constants(m):
    m.add("array", "u32", "c32[{}]", 64)
    m.add("array", "u8", "c8[{}]", 100)
    m.add("array", "u64", "c64[{}]", 16)
    m.add("array", "f32", "cf[{}]", 32)


def signature(result, name, parameters):
    return f"{TYPES[result]} {name}({', '.join(f'{TYPES[ty]} {of}' for ty, of in parameters)})"


def make(r, number, plain, halves):
    """A function of the file, by a random generator."""
    name = f"fn{number}"
    types = [r.choice(["u32", "u32", "u64", "f32", "u8"]) for _ in range(r.randrange(1, 4))]
    parameters = [(ty, "xyz"[at]) for at, ty in enumerate(types)]
    result = r.choice(["u32", "u32", "f32"])
    seed = r.random()
    slots = ", ".join("{}" for _ in types)
    kind = r.choice(["plain", "recursive", "pointers", "virtual", "structure", "choice", "walk"])
    if kind == "plain":
        how = r.choice(["__noinline__", "__forceinline__", ""])
        text = [f"static __device__ {how} {signature(result, name, parameters)} {{", *body(seed, parameters, result, plain, halves), "}"]
        return Function(result, types, f"{name}({slots})", text)
    if kind == "recursive":
        parameters = [("u32", "x"), ("u32", "depth")]
        result = "u32"
        again = r.choice([f"{name}(next, depth - 1u)", f"{name}(next, depth - 1u) + {name}(next ^ 5u, depth / 2u)"])
        inner = body(seed, [("u32", "x"), ("u32", "depth")], "u32", plain, halves)
        text = [f"static __device__ uint32_t {name}(uint32_t x, uint32_t depth);"]
        text += [f"static __device__ {signature('u32', name + '_step', parameters)} {{", *inner, "}"]
        text += [f"static __device__ __noinline__ uint32_t {name}(uint32_t x, uint32_t depth) {{"]
        text += [f"  if (depth == 0u{r.choice(['', ' || (x & 3u) == 1u'])}) return x * 5u;", f"  const uint32_t next = {name}_step(x, depth);"]
        text += [f"  return {again} {r.choice(['+', '^'])} {r.choice(['x', 'next', 'c32[x & 63u]'])};", "}"]
        return Function("u32", ["u32", "u32"], f"{name}({{}}, ({{}}) & {r.choice([1, 3, 3])}u)", text)
    if kind in ("pointers", "choice"):
        count = r.choice([2, 3, 4])
        text = []
        for at in range(count):
            text += [f"static __device__ {r.choice(['', '__noinline__'])} {signature(result, f'{name}_{at}', parameters)} {{"]
            text += [*body(r.random(), parameters, result, plain, halves, 2), "}"]
        arguments = ", ".join(TYPES[ty] for ty in types)
        if kind == "pointers":
            text += [f"typedef {TYPES[result]} (*{name}_t)({arguments});"]
            text += [f"static __device__ {name}_t {name}[{count}] = {{{', '.join(f'{name}_{at}' for at in range(count))}}};"]
            return Function(result, ["u32", *types], f"{name}[({{}}) % {count}u]({slots})", text)
        return Function(result, ["bool", *types], f"({{}} ? {name}_0 : {name}_1)({slots})", text)
    if kind == "virtual":
        one = signature(result, "value", parameters)
        text = [f"struct {name}_base {{ uint32_t a; __device__ {name}_base(uint32_t a) : a(a) {{}} __device__ virtual {one} const = 0; }};"]
        count = r.choice([2, 3])
        for at in range(count):
            text += [f"struct {name}_{at} : {name}_base {{ uint32_t more; __device__ {name}_{at}(uint32_t a) : {name}_base(a), more(a * {at + 3}u) {{}}"]
            # Members are read as variables of the function.
            text += [f"__device__ {one} const override {{ uint32_t own_a = a, own_more = more; (void)own_a; (void)own_more;"]
            text += [*body(r.random(), [*parameters, ("u32", "own_a"), ("u32", "own_more")], result, plain, halves, 2), "} };"]
        text += [f"static __device__ {r.choice(['', '__noinline__'])} {signature(result, name, [('u32', 'which'), *parameters])} {{"]
        text += [f"  {name}_{at} o{at}(which + {at}u);" for at in range(count)]
        text += [f"  const {name}_base* all[] = {{{', '.join(f'&o{at}' for at in range(count))}}};"]
        text += [f"  return all[which % {count}u]->value({', '.join(of for _, of in parameters)});", "}"]
        return Function(result, ["u32", *types], f"{name}({{}}, {slots})", text)
    if kind == "structure":
        inner = body(seed, [("u32", "m.word"), ("u8", "m.byte"), ("u64", "m.long_"), ("u16", "m.half_"), ("u32", "x")], "u32", plain, halves)
        text = [f"static __device__ __noinline__ uint32_t {name}_inner(Mixed m, uint32_t x) {{", *inner, "}"]
        text += [f"static __device__ __noinline__ Mixed {name}_make(Mixed m, uint32_t x) {{", f"  m.bytes[x % 5u] ^= (uint8_t){name}_inner(m, x);"]
        text += ["  m.long_ += m.bytes[(x >> 3) % 5u];", "  return m;", "}"]
        text += [f"static __device__ uint32_t {name}(uint32_t x, uint32_t y) {{", f"  const Mixed r = {name}_make(mixed_of(x), y);"]
        text += ["  return r.word + r.bytes[y % 5u] * 3u + (uint32_t)(r.long_ >> 7) + r.half_;", "}"]
        return Function("u32", ["u32", "u32"], f"{name}({{}}, {{}})", text)
    inner = body(seed, [("u32", "x"), ("u32", "y")], "u32", plain, halves, 2)
    text = [f"static __device__ {signature('u32', name + '_one', [('u32', 'x'), ('u32', 'y')])} {{", *inner, "}"]
    text += [f"static __device__ __noinline__ uint32_t {name}(uint32_t x, uint32_t n) {{", "  uint32_t list[8], sum = 0;"]
    text += ["  for (unsigned i = 0; i < n; ++i) list[i] = x + i * 7u;", f"  for (unsigned i = n; i-- > 0;) sum = sum * 3u + {name}_one(list[(i + x) % n], sum);"]
    text += ["  return sum;", "}"]
    return Function("u32", ["u32", "u32"], f"{name}({{}}, (({{}}) & 7u) + 1u)", text)
