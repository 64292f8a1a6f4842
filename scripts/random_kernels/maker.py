"""What a kernel is made with: random choices, its text so far, and what its statements may name."""

import random
from contextlib import contextmanager

# C++ types of values, by the short names that the other files use.
TYPES = {
    "u8": "uint8_t",
    "i8": "int8_t",
    "u16": "uint16_t",
    "i16": "int16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "f32": "float",
    "f64": "double",
    "f16": "__half",
    "bf16": "__nv_bfloat16",
}


class Maker:
    """One kernel, or function, in the making.

    `level` says who comes to the statement that is being made: "block", all threads of the block; "warp", all lanes of a warp; "lane",
    any. `mask` is the name of a variable with exactly the lanes that come, None where nobody knows them."""

    def __init__(self, seed, plain=False, functions=()):
        self.r = random.Random(seed)
        self.lines = []
        self.indent = 1
        self.scopes = [[]]
        self.level, self.mask = "block", None
        self.plain = plain  # no lanes, no shared memory: a host can run it, thread by thread
        self.functions = list(functions)
        self.counter = 0
        self.depth = 0
        self.loop = False  # inside of a loop that may be left
        self.budget = 60  # statements
        self.shared_bytes = 0
        self.shared = []  # declarations at the kernel's beginning
        self.whole_warps = True
        self.cost = 1  # rounds of all loops around
        self.halves = self.groups = False  # the headers of half numbers and of cooperative groups are there
        self.lanes = True  # warps and blocks may do something together
        self.given = True  # a kernel, which knows its thread's place and has parameters
        self.places = ["lt", "tid", "tx", "ty", "tz", "lane", "bx", "p.some", "T", "(lt / 32u)"]

    # Choices.

    def chance(self, percent):
        return self.r.randrange(100) < percent

    def pick(self, items):
        return items[self.r.randrange(len(items))]

    def weighted(self, table):
        """One of the entries of [(weight, entry)]."""
        return self.r.choices([entry for _, entry in table], [weight for weight, _ in table])[0]

    def below(self, count):
        return self.r.randrange(count)

    # Text.

    def emit(self, line):
        self.lines.append("  " * self.indent + line)

    @contextmanager
    def braces(self, head, tail="}"):
        """A block of statements; what is declared there is gone behind it."""
        self.emit(head + " {")
        with self.inside(tail):
            yield

    @contextmanager
    def inside(self, tail):
        """The rest of a block that has been opened."""
        self.indent += 1
        self.scopes.append([])
        self.depth += 1
        yield
        self.depth -= 1
        self.scopes.pop()
        self.indent -= 1
        self.emit(tail)

    @contextmanager
    def having(self, **fields):
        """These fields for a while."""
        before = {name: getattr(self, name) for name in fields}
        for name, value in fields.items():
            setattr(self, name, value)
        yield
        for name, value in before.items():
            setattr(self, name, value)

    def name(self, prefix):
        self.counter += 1
        return f"{prefix}{self.counter}"

    # What there is.

    def add(self, kind, *what):
        """Something to be named from here to the end of the block: ("u32", "x"), ("array", type, text with {} for the index, length)."""
        self.scopes[-1].append((kind, *what))

    def all(self, kind):
        return [what[1:] for scope in self.scopes for what in scope if what[0] == kind]

    def variables(self, ty):
        return [name for (name,) in self.all(ty)]

    def declare(self, ty, value, writable=True):
        """A new variable."""
        name = self.name({"u32": "a", "u64": "w", "f32": "f", "f64": "d", "f16": "h", "bf16": "g"}.get(ty, "b"))
        self.emit(f"{TYPES[ty]} {name} = {value};")
        self.add(ty, name)
        if writable:
            self.add("writable", ty, name)
        return name

    def target(self, types=("u32", "u32", "u32", "u64", "f32", "u16", "u8", "f64")):
        """A variable to be set, with its type."""
        all_of = [(ty, name) for ty, name in self.all("writable") if ty in types]
        if not all_of:
            return None
        # The newest are the likeliest.
        return all_of[max(self.below(len(all_of)), self.below(len(all_of)))]
