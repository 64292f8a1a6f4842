"""Random expressions, fully bracketed: `expr(maker, type, depth)`.

Nothing overflows as a signed number, shifts are within the width and divisors are not zero."""

from maker import TYPES

WORDS = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 1000, 0x7FFF, 0x8000, 0xFFFF, 0x10000]
WORDS += [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0, 0xAAAAAAAA, 0x01010101, 0x80808080, 0xFF00FF00, 0xDEADBEEF, 0x12345678]
REALS = ["0.0f", "-0.0f", "1.0f", "-1.0f", "0.5f", "2.0f", "3.0f", "-7.25f", "1e-3f", "1e10f", "-1e30f", "3e38f", "1e-40f", "1.5f"]
REALS += ["16777216.0f", "0.1f", "0.333333343f", "CUDART_INF_F", "-CUDART_INF_F", "65504.0f", "255.5f", "-128.5f", "2147483648.0f"]
DIVISORS = [1, 2, 3, 5, 6, 7, 9, 10, 12, 24, 25, 32, 100, 127, 255, 641, 1000, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF]


def expr(m, ty, depth):
    """A value of a type."""
    if depth <= 0 or m.chance(12):
        return leaf(m, ty)
    return MAKERS[ty](m, depth - 1)


def leaf(m, ty):
    names = m.variables(ty)
    if names and m.chance(65):
        return names[max(m.below(len(names)), m.below(len(names)))]
    if m.chance(45) and (loaded := load(m, ty)):
        return loaded
    if ty == "u32":
        if m.chance(40):
            return m.pick(m.places)
        return f"{m.pick(WORDS)}u"
    if ty == "u64":
        if m.chance(50):
            return f"(uint64_t){leaf(m, 'u32')}"
        return m.pick(["0ull", "1ull", "~0ull", "0x8000000000000000ull", "0xffffffffull", "0x100000000ull", "1000000007ull"] + (["p.large"] if m.given else []))
    if ty == "f32":
        return m.pick(REALS) if m.chance(70) else f"__uint2float_rn({leaf(m, 'u32')} & 1023u)"
    if ty == "f64":
        return f"(double)({leaf(m, 'f32')})"
    if ty == "f16":
        return f"__float2half_rn({leaf(m, 'f32')})"
    if ty == "bf16":
        return f"__float2bfloat16_rn({leaf(m, 'f32')})"
    if ty == "bool":
        return f"(({leaf(m, 'u32')} >> {m.below(6)}) & 1u)"
    return f"({TYPES[ty]}){leaf(m, 'u32')}"


def load(m, ty):
    """An element of some array of the type."""
    arrays = [array for array in m.all("array") if array[0] == ty]
    if not arrays:
        return None
    _, text, length = arrays[max(m.below(len(arrays)), m.below(len(arrays)))]
    return text.format(index(m, length))


def index(m, length):
    """A number below a length: near the thread's own, in some order, or anywhere."""
    k = m.below(12) if m.given else 0
    if k > 8:
        return bounded(m, place(m), length)
    if k == 0:
        return bounded(m, expr(m, "u32", 1), length)
    if k == 1:
        return f"{m.below(length)}u"
    if k == 2:
        return bounded(m, f"lt * {m.pick([2, 3, 4, 5, 8, 12, 16, 33, 64, 100])}u + {m.below(40)}u", length)
    if k == 3:
        return bounded(m, f"lt ^ {m.pick([1, 2, 3, 4, 7, 16, 31, 32, 63])}u", length)
    if k == 4:
        return bounded(m, f"{m.pick([255, 511, 1023, 4000])}u - lt", length)
    if k == 5:
        a, b, c = m.r.sample(["tx", "ty", "tz", "bx", "lane"], 3)
        return bounded(m, f"({a} * {m.pick([1, 4, 7, 16, 33])}u + {b}) * {m.pick([1, 3, 8, 32])}u + {c}", length)
    if k == 6:
        counters = m.variables("counter")
        if counters:
            return bounded(m, f"{m.pick(['lt', 'tid', 'tx', 'lane * 8u', 'tid * 5u'])} + {m.pick(counters)} * {m.pick([1, 1, 2, 4, 32, 100])}u", length)
    if k == 7:
        return bounded(m, f"tid + {m.below(33)}u", length)
    return bounded(m, expr(m, "u32", 2), length)


def coordinates(m, depth):
    """What programs compute indices of: a thread's coordinates, multiplied, shifted, masked and put together."""
    if depth == 0 or m.chance(15):
        names = ["(int)tx", "(int)ty", "(int)tz", "(int)bx", "(int)lt", "(int)(tx + bx * blockDim.x)", "(int)lane"]
        return m.pick(names) if m.chance(85) else str(m.pick([0, 1, 3, 5, 7, 16, 31, 32, 63, 64, 100, 255, 256, 1000]))
    a = coordinates(m, depth - 1)
    k = m.below(12)
    if k < 3:
        return f"({a} + {coordinates(m, depth - 1)})"
    if k == 3:
        return f"({a} - {coordinates(m, depth - 1)})"
    if k == 4:
        return f"({a} * {m.pick([2, 3, 4, 5, 8, 16, 36, 64])})"
    if k == 5:
        return f"({a} << {m.pick([1, 2, 3, 4, 5, 6])})"
    if k == 6:
        return f"({a} >> {m.pick([1, 2, 3, 4, 5, 6, 8])})"
    if k == 7:
        return f"({a} & {m.pick([1, 3, 7, 15, 31, 63, 127, 255, 1023, 1020, 0x3F0, 0xFF8, -4, -16, -32])})"
    if k == 8:
        return f"({a} | {m.pick([1, 2, 4, 8, 16, 32, 64, 255])})"
    if k == 9:
        return f"({a} ^ {m.pick([1, 2, 3, 4, 8, 16, 31, 32, 64])})"
    if k == 10:
        return f"(int)((unsigned){a} {m.pick(['>> 1', '>> 2', '>> 4', '>> 8', '% 3u', '% 12u', '/ 5u', '/ 24u'])})"
    return f"(({a} << {m.pick([4, 5, 6, 7, 8])}) | ({coordinates(m, depth - 1)} & {m.pick([3, 7, 15, 31])}))"


def place(m):
    """Likewise, as a number without sign; of more than two operations the signed one might overflow."""
    if m.chance(60):
        return f"(unsigned){coordinates(m, 1 + m.below(2))}"
    return f"(unsigned){coordinates(m, 3).replace('(int)', '(unsigned)')}"


def bounded(m, value, length):
    if length & (length - 1) == 0:
        return f"(({value}) & {length - 1}u)" if m.chance(85) else f"(({value}) % {length}u)"
    return f"(({value}) % {length}u)"


def word(m, d):
    def e(n=d):
        return expr(m, "u32", n)

    k = m.below(60)
    if k > 57 and m.given:
        return f"(uint32_t){coordinates(m, 2)}"
    if k < 6:
        return f"({e()} {m.pick(['+', '-', '*', '&', '|', '^'])} {e()})"
    if k < 10:
        return f"({e()} {m.pick(['+', '-', '*', '&', '|', '^'])} {m.pick(WORDS)}u)"
    if k == 10:
        return f"({e()} << {m.pick([1, 2, 3, 4, 8, 16, 24, 31])})"
    if k == 11:
        return f"({e()} >> {m.pick([1, 2, 3, 4, 8, 16, 24, 31])})"
    if k == 12:
        return f"({e()} {m.pick(['<<', '>>'])} ({e(d - 1)} & 31u))"
    if k == 13:
        return f"(uint32_t)((int){e()} >> {m.pick([1, 3, 8, 16, 31])})"
    if k == 14:
        return f"({e()} {m.pick(['/', '%'])} {m.pick(DIVISORS)}u)"
    if k == 15:
        return f"({e()} {m.pick(['/', '%'])} ({e(d - 1)} | 1u))"
    if k == 16:
        return f"(uint32_t)((int){e()} {m.pick(['/', '%'])} {m.pick([2, 3, 5, 7, 8, 10, 16, 100, 1000, -3, -7, -8])})"
    if k == 17:
        return f"(uint32_t)((int){e()} {m.pick(['/', '%'])} (int)(({e(d - 1)} & {m.pick([7, 255, 0xFFFFF])}u) + 1u))"
    if k == 18:
        return f"{m.pick(['__umulhi', '__umul24', 'umin', 'umax', '__uhadd', '__urhadd'])}({e()}, {e()})"
    if k == 19:
        f = m.pick(["__mulhi", "__mul24", "min", "max", "__hadd", "__rhadd"])
        return f"(uint32_t){f}((int){e()}, (int){e()})"
    if k == 20:
        return f"__byte_perm({e()}, {e()}, {m.pick(['0x3210', '0x0123', '0x5410', '0x7632', '0x6240', '0x4321', '0x2222', e(0)])})"
    if k == 21:
        return f"__funnelshift_{m.pick(['l', 'r', 'lc', 'rc'])}({e()}, {e()}, {m.pick([str(m.below(33)), e(0)])})"
    if k == 22:
        return f"(uint32_t){m.pick(['__popc', '__clz', '__ffs', '__clz', '__popc'])}({e()})"
    if k == 23:
        return f"__brev({e()})"
    if k == 24:
        return m.pick(["__dp4a({}, {}, {})", "(uint32_t)__dp4a((int){}, (int){}, (int){})", "__usad({}, {}, {})", "(uint32_t)__sad((int){}, (int){}, {})"]).format(e(), e(), e(d - 1))
    if k in (25, 26):
        f = m.pick(["vadd4", "vsub4", "vadd2", "vsub2", "vmaxu4", "vminu4", "vmaxs4", "vmins4", "vmaxu2", "vmins2", "vabsdiffu4", "vavgu4", "vcmpgtu4", "vcmpeq4", "vcmpges2", "vaddus4", "vsubus4", "vaddss2", "vsadu4", "vcmpltu2", "vsetgtu4", "vseteq2", "vhaddu4"])
        return f"__{f}({e()}, {e()})"
    if k == 27:
        return f"(({e()} >> {m.below(28)}) & {m.pick([1, 3, 7, 15, 31, 255, 1023])}u)"
    if k == 28:
        s = m.pick([1, 8, 16, 24, 28])
        return f"(uint32_t)((int)({e()} << {s}) >> {m.pick([s, s, 31])})"
    if k == 29:
        w, s = m.pick([(255, 8), (0xFFFF, 16), (15, 4), (1, 31), (1023, 10)])
        return f"(({e()} & ~({w}u << {s})) | (({e()} & {w}u) << {s}))"
    if k == 30:
        return f"(uint32_t)({m.pick(['uint8_t', 'int8_t', 'uint16_t', 'int16_t'])})({e()})"
    if k in (31, 32, 33):
        return f"({expr(m, 'bool', d)} ? {e()} : {e()})"
    if k == 34:
        return f"(uint32_t)({expr(m, 'u64', d)}{m.pick(['', ' >> 32', ' >> 7'])})"
    if k == 35:
        return f"(uint32_t)({expr(m, 'bool', d)})"
    if k == 36:
        f = m.pick(["__float2uint_rz", "(uint32_t)__float2int_rn", "__float2uint_ru", "(uint32_t)__float2int_rd", "__float2uint_rn"])
        return f"{f}({expr(m, 'f32', d)})"
    if k == 37:
        return f"bits({expr(m, m.pick(['f32', 'f32', 'f16', 'bf16']) if m.halves else 'f32', d)})"
    if k == 38:
        return f"({e()} ^ (uint32_t)bits({expr(m, 'f64', d)}))"
    if k in (39, 40, 41):
        ty = m.pick(["u8", "i8", "u16", "i16"])
        return f"(uint32_t)({expr(m, ty, d)})"
    if k == 42:
        a, b, c = e(), e(), e(d - 1)
        return m.pick([f"(({a} & {b}) ^ {c})", f"(({a} & {b}) | (~{a} & {c}))", f"(({a} ^ {b}) & {c})", f"~({a} | {b} ^ {c})"])
    if k == 43:
        return f"({e()} * {e(d - 1)} + {e()})"
    if k == 44:
        return f"(uint32_t)(((uint64_t){e()} * {e()}) >> {m.pick([1, 16, 32, 33])})"
    if k == 45:
        return f"(uint32_t)(((int64_t)(int){e()} * (int){e()}) >> {m.pick([16, 32, 40])})"
    if k in (46, 47, 48) and (called := call(m, "u32", d)):
        return called
    if k == 49:
        return f"(uint32_t)(short)({e()} + {e()})"
    if k == 50:
        return f"(uint32_t)min(max((int){e()}, {m.pick([0, -128, -32768, -5])}), {m.pick([127, 255, 32767, 65535])})"
    if k == 51:
        return f"({m.pick(['~', '-'])}{e()})"
    if k == 52:
        return f"(uint32_t)abs31({e()})"
    if k == 53:
        return f"((uint32_t)({e()} < {e()}) + {e(d - 1)} - (uint32_t)((int){e(d - 1)} >= (int){e(d - 1)}))"
    if k == 54:
        return f"((({e()} & 0xffu) << 24) | (({e()} & 0xffu) << 16) | (({e(d - 1)} & 0xffu) << 8) | ({e(d - 1)} & 0xffu))"
    return load(m, "u32") or e()


def long(m, d):
    def e(n=d):
        return expr(m, "u64", n)

    def w(n=d):
        return expr(m, "u32", n)

    k = m.below(24)
    if k < 5:
        return f"({e()} {m.pick(['+', '-', '*', '&', '|', '^'])} {e()})"
    if k == 5:
        return f"({e()} {m.pick(['<<', '>>'])} {m.pick([1, 5, 8, 31, 32, 33, 48, 63])})"
    if k == 6:
        return f"({e()} {m.pick(['<<', '>>'])} ({w(d - 1)} & 63u))"
    if k == 7:
        return f"(uint64_t)((int64_t){e()} >> {m.pick([1, 16, 32, 63])})"
    if k == 8:
        return f"({e()} {m.pick(['/', '%'])} {m.pick([3, 7, 10, 1000, 4294967295, 4294967297, 1 << 40])}ull)"
    if k == 9:
        return f"({e()} {m.pick(['/', '%'])} ({m.pick([e(d - 1), '(uint64_t)' + w(d - 1)])} | 1ull))"
    if k == 10:
        return f"(uint64_t)((int64_t){e()} {m.pick(['/', '%'])} {m.pick([3, 8, 10, 1000, -7])})"
    if k == 11:
        return f"((uint64_t){w()} * {w()} + {e()})"
    if k == 12:
        return f"(uint64_t)((int64_t)(int){w()} * (int){w()})"
    if k == 13:
        return f"__umul64hi({e()}, {e()})"
    if k == 14:
        return f"(uint64_t)__mul64hi((int64_t){e()}, (int64_t){e()})"
    if k == 15:
        return f"(uint64_t){m.pick(['__popcll', '__clzll', '__ffsll'])}({e()})"
    if k == 16:
        return f"__brevll({e()})"
    if k == 17:
        return f"(uint64_t)(((unsigned __int128){e()} * {e()} + {e(d - 1)}) >> {m.pick([0, 1, 31, 64, 65])})"
    if k == 18:
        return f"(uint64_t)(((((unsigned __int128){e()} << 64) | {e()}) + {e(d - 1)}) >> {m.pick([1, 64, 100])})"
    if k == 19:
        return f"({expr(m, 'bool', d)} ? {e()} : {e()})"
    if k == 20:
        return f"(((uint64_t){w()} << 32) | {w()})"
    if k == 21:
        return f"bits({expr(m, 'f64', d)})"
    if k == 22 and not m.plain:
        return f"(uint64_t)__double2{m.pick(['ull_rz', 'll_rn', 'll_rd', 'ull_ru'])}({expr(m, 'f64', d)})"
    return f"(uint64_t){m.pick(['(int)', '', '(int16_t)', '(uint8_t)'])}{w()}"


def real(m, d):
    def e(n=d):
        return expr(m, "f32", n)

    k = m.below(13 if m.plain else 30)
    if k < 4:
        return f"({e()} {m.pick(['+', '-', '*', '+', '*'])} {e()})"
    if k == 4:
        return f"fmaf({e()}, {e()}, {e()})"
    if k == 5:
        return f"({expr(m, 'bool', d)} ? {e()} : {e()})"
    if k == 6:
        return m.pick(["__uint2float_rn({})", "__int2float_rn((int){})"]).format(expr(m, "u32", d))
    if k == 7:
        return f"(float)({TYPES[m.pick(['u8', 'i8', 'u16', 'i16'])]})({expr(m, 'u32', d)})"
    if k == 8:
        return f"{m.pick(['fabsf', 'floorf', 'ceilf', 'truncf', 'rintf', '-'])}({e()})"
    if k == 9:
        return f"({e()} / {e()})"
    if k == 10:
        return f"real_of({expr(m, 'u32', d)})"
    if k == 11:
        return f"sqrtf({e()})"
    if k == 12:
        return f"(float)({expr(m, 'f64', d)})"
    if k == 13:
        return f"{m.pick(['fminf', 'fmaxf', 'fmodf', 'copysignf', '__fdividef', 'fdimf'])}({e()}, {e()})"
    if k in (14, 15):
        return f"__f{m.pick(['add', 'mul', 'sub', 'div'])}_{m.pick(['rz', 'ru', 'rd', 'rn'])}({e()}, {e()})"
    if k == 16:
        return f"__fmaf_{m.pick(['rz', 'ru', 'rd'])}({e()}, {e()}, {e()})"
    if k == 17:
        return f"__f{m.pick(['sqrt', 'rcp'])}_{m.pick(['rz', 'ru', 'rd'])}({e()})"
    if k in (18, 19):
        return f"{m.pick(['sinf', 'cosf', 'expf', 'logf', 'exp2f', 'log2f', 'tanhf', 'rsqrtf', 'cbrtf', 'roundf', 'atanf', 'erff'])}({e()})"
    if k == 20:
        return f"{m.pick(['__expf', '__logf', '__sinf', '__cosf', '__saturatef', '__log2f', '__exp10f'])}({e()})"
    if k == 21:
        return f"__{m.pick(['uint2float', 'int2float'])}_{m.pick(['rz', 'ru', 'rd'])}((uint32_t)({expr(m, 'u32', d)}))"
    if k == 22 and m.halves:
        return f"__half2float({expr(m, 'f16', d)})"
    if k == 23 and m.halves:
        return f"__bfloat162float({expr(m, 'bf16', d)})"
    if k == 24:
        return f"__double2float_{m.pick(['rz', 'ru', 'rd', 'rn'])}({expr(m, 'f64', d)})"
    if k == 25:
        return f"ldexpf({e()}, (int)({expr(m, 'u32', d - 1)} & 63u) - 32)"
    if k == 26 and (called := call(m, "f32", d)):
        return called
    return load(m, "f32") or e()


def double(m, d):
    def e(n=d):
        return expr(m, "f64", n)

    k = m.below(9 if m.plain else 16)
    if k < 3:
        return f"({e()} {m.pick(['+', '-', '*'])} {e()})"
    if k == 3:
        return f"fma({e()}, {e()}, {e()})"
    if k == 4:
        return f"(double)({expr(m, 'f32', d)})"
    if k == 5:
        return f"(double)(int)({expr(m, 'u32', d)})"
    if k == 6:
        return f"({expr(m, 'bool', d)} ? {e()} : {e()})"
    if k == 7:
        return f"{m.pick(['fabs', 'floor', 'ceil', 'trunc', 'rint', '-', 'sqrt'])}({e()})"
    if k == 8:
        return f"({e()} / {e()})"
    if k == 9:
        return f"__d{m.pick(['add', 'mul', 'div'])}_{m.pick(['rz', 'ru', 'rd'])}({e()}, {e()})"
    if k == 10:
        return f"{m.pick(['fmin', 'fmax', 'copysign'])}({e()}, {e()})"
    if k == 11:
        return f"__u{m.pick(['ll2double_rn', 'll2double_rz', 'int2double_rn'])}({expr(m, 'u64', d)})"
    if k == 12:
        return f"{m.pick(['exp', 'log', 'sin', 'rsqrt'])}({e(d - 1)})"
    if k == 13:
        return f"__hiloint2double((int)({expr(m, 'u32', d)} & 0xc00fffffu | 0x3ff00000u), (int){expr(m, 'u32', d)})"
    return load(m, "f64") or e()


def half(m, d):
    def e(n=d):
        return expr(m, "f16", n)

    k = m.below(11)
    if k < 3:
        return f"__h{m.pick(['add', 'sub', 'mul', 'min', 'max', 'add_sat', 'div'])}({e()}, {e()})"
    if k == 3:
        return f"__hfma{m.pick(['', '_sat', '_relu'])}({e()}, {e()}, {e()})"
    if k == 4:
        return f"__float2half_{m.pick(['rn', 'rz', 'ru', 'rd'])}({expr(m, 'f32', d)})"
    if k == 5:
        return f"__u{m.pick(['int2half_rn', 'short2half_rz'])}({expr(m, 'u32', d)})"
    if k == 6:
        two = f"__h{m.pick(['add', 'sub', 'mul'])}2(__halves2half2({e()}, {e()}), __halves2half2({e(d - 1)}, {e(d - 1)}))"
        return f"__{m.pick(['low', 'high'])}2half({two})"
    if k == 7:
        return f"{m.pick(['hsqrt', 'hrcp', 'hfloor', 'hrint', '__habs', '__hneg', 'hexp2', 'hceil'])}({e()})"
    if k == 8:
        return f"({expr(m, 'bool', d)} ? {e()} : {e()})"
    if k == 9:
        return f"__ushort_as_half((uint16_t)({expr(m, 'u32', d)} & 0xbfffu))"
    return load(m, "f16") or e()


def brain(m, d):
    def e(n=d):
        return expr(m, "bf16", n)

    k = m.below(7)
    if k < 3:
        return f"__h{m.pick(['add', 'sub', 'mul', 'min', 'max'])}({e()}, {e()})"
    if k == 3:
        return f"__hfma({e()}, {e()}, {e()})"
    if k == 4:
        return f"__float2bfloat16_{m.pick(['rn', 'rz'])}({expr(m, 'f32', d)})"
    if k == 5:
        return f"({expr(m, 'bool', d)} ? {e()} : {e()})"
    return f"__ushort_as_bfloat16((uint16_t)({expr(m, 'u32', d)} & 0xbfffu))"


def truth(m, d):
    """A condition that mostly holds for some."""

    def w():
        return expr(m, "u32", d)

    relation = m.pick(["<", ">", "<=", ">=", "==", "!="])
    k = m.below(20)
    if k in (14, 15) and not m.given:
        k = 0
    if k < 3:
        return f"({w()} {relation} {w()})"
    if k < 5:
        return f"((int){w()} {relation} {m.pick(['', '(int)'])}{m.pick(['-5', '0', '3', '17', '100'])})"
    if k < 8:
        return f"(({w()} & {m.pick([1, 2, 3, 5, 7, 16, 31])}u) {m.pick(['==', '!=', '<', '>'])} {m.below(8)}u)"
    if k == 8:
        return f"({expr(m, 'bool', d)} && {expr(m, 'bool', d)})"
    if k == 9:
        return f"({expr(m, 'bool', d)} || {expr(m, 'bool', d)})"
    if k == 10:
        return f"!{expr(m, 'bool', d)}"
    if k == 11:
        return f"({expr(m, 'f32', d)} {relation} {expr(m, 'f32', d)})"
    if k == 12:
        return f"({expr(m, 'u64', d)} {relation} {expr(m, 'u64', d)})"
    if k == 13:
        return f"((int64_t){expr(m, 'u64', d)} {relation} (int64_t){expr(m, 'u64', d)})"
    if k == 14:
        return f"(lane {m.pick(['<', '>', '==', '!='])} {m.pick([0, 1, 7, 16, 31])}u)"
    if k == 15:
        return f"({m.pick(['tx', 'ty', 'lt', 'tid'])} {m.pick(['<', '>', '>='])} {m.pick([1, 3, 8, 20, 40])}u)"
    if k == 16:
        return f"(({expr(m, 'bool', d)}) != ({expr(m, 'bool', d)}))"
    if k == 17 and not m.plain:
        return m.pick([f"isnan({expr(m, 'f32', d)})", f"isfinite({expr(m, 'f32', d)})", f"({expr(m, 'f64', d)} {relation} {expr(m, 'f64', d)})"])
    if k == 19 and m.halves:
        return m.pick([f"__h{m.pick(['lt', 'ge', 'eq', 'ne', 'gtu'])}({expr(m, 'f16', d)}, {expr(m, 'f16', d)})"])
    if k == 18:
        ty = m.pick(["u8", "i8", "u16", "i16"])
        return f"({expr(m, ty, d)} {relation} {expr(m, ty, d)})"
    return f"((__popc({w()}) & 1) != 0)"


def small(ty):
    """Makers of bytes and shorts."""

    def make(m, d):
        def e(n=d):
            return expr(m, ty, n)

        c = TYPES[ty]
        k = m.below(8)
        if k < 3:
            return f"({c})({e()} {m.pick(['+', '-', '&', '|', '^', '+'])} {e()})"
        if k == 3:
            return f"({c})({e()} >> {m.pick([1, 2, 4, 7])})"
        if k == 4:
            return f"({c})((uint32_t){e()} * (uint32_t){e()})"
        if k == 5:
            return f"({expr(m, 'bool', d)} ? {e()} : {e()})"
        if k == 6:
            return f"({c})min((int){e()}, (int){e()})"
        return load(m, ty) or f"({c})({expr(m, 'u32', d)})"

    return make


def call(m, ty, d):
    """A call of one of the file's functions."""
    fitting = [function for function in m.functions if function.result == ty]
    if not fitting or m.cost > 64:
        return None
    function = m.pick(fitting)
    return function.call(m, [expr(m, parameter, d - 1) for parameter in function.parameters])


MAKERS = {"u32": word, "u64": long, "f32": real, "f64": double, "f16": half, "bf16": brain, "bool": truth}
MAKERS.update({ty: small(ty) for ty in ["u8", "i8", "u16", "i16"]})


def uniform(m, high):
    """A number from 0 to `high`, the same in the whole block; a compiler may know it or not."""
    k = m.below(6) if m.given else 0
    if k == 0:
        return f"{m.below(high + 1)}u"
    if k == 1:
        return f"(p.some & {high}u)" if high & (high + 1) == 0 else f"(p.some % {high + 1}u)"
    if k == 2:
        return f"(in[{m.below(4096)}u] % {high + 1}u)"
    if k == 3:
        return f"((bx + {m.below(9)}u) % {high + 1}u)"
    if k == 4:
        return f"(in[(bx * {m.pick([1, 3, 17])}u + {m.below(100)}u) & 4095u] % {high + 1}u)"
    return f"(p.w[{m.pick(['bx & 7u', str(m.below(8)) + 'u'])}] % {high + 1}u)"
