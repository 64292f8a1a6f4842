"""Kernels in Triton's language, compiled to PTX by its own LLVM and handed to the driver as they are, compared with NumPy.

Triton's own launcher wants PyTorch and a cubin; here the driver gets the PTX, which Triton keeps beside the cubin."""

import numpy
import triton
import triton.language as tl
from checking import check, main
from cuda.bindings import driver
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGET = GPUTarget("cuda", 90, 32)
TYPES = {"float32": "fp32", "float16": "fp16", "float64": "fp64", "int32": "i32", "int8": "i8", "int64": "i64", "uint8": "u8"}
random = numpy.random.default_rng(5)


def call(function, *arguments):
    """Calls a function of the driver, which must succeed."""
    code, *results = function(*arguments)
    assert code == driver.CUresult.CUDA_SUCCESS, f"{function.__name__}: {code}"
    return results[0] if len(results) == 1 else results


call(driver.cuInit, 0)
CONTEXT = call(driver.cuDevicePrimaryCtxRetain, 0)
call(driver.cuCtxSetCurrent, CONTEXT)


def launch(kernel, grid, *arguments, constants={}, types={}, **options):
    """Compiles a kernel for what it is given and runs it; what it wrote is in the arrays afterwards."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = dict.fromkeys(constants, "constexpr")
    for name, value in zip(names, arguments, strict=True):
        if isinstance(value, numpy.ndarray):
            signature[name] = "*" + types.get(name, TYPES[value.dtype.name])
        else:
            signature[name] = "fp32" if isinstance(value, float) else "i32"
    signature = {name: signature[name] for name in kernel.arg_names}
    # What Triton's launcher says of pointers and sizes: they are multiples of 16, so that copies are asynchronous.
    aligned = {(index,): [["tt.divisibility", 16]] for index, name in enumerate(kernel.arg_names)
               if name in names and (signature[name][0] == "*" or arguments[names.index(name)] % 16 == 0)}
    compiled = triton.compile(ASTSource(kernel, signature=signature, constexprs=constants, attrs=aligned), target=TARGET, options=options)
    about = compiled.metadata
    module = call(driver.cuModuleLoadData, compiled.asm["ptx"].encode() + b"\0")
    function = call(driver.cuModuleGetFunction, module, about.name.encode())
    if about.shared > 48 << 10:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call(driver.cuFuncSetAttribute, function, attribute, about.shared)
    blocks = grid[0] * grid[1] * grid[2]
    held, values = [], []

    def on_device(size):
        held.append(call(driver.cuMemAlloc, max(size, 1)))
        return held[-1]

    for value in arguments:
        if isinstance(value, numpy.ndarray):
            pointer = on_device(value.nbytes)
            call(driver.cuMemcpyHtoD, pointer, value.ctypes.data, value.nbytes)
            values.append(numpy.array([int(pointer)], numpy.uint64))
        else:
            values.append(numpy.array([value], numpy.float32 if isinstance(value, float) else numpy.int32))
    arrays = list(zip([value for value in arguments if isinstance(value, numpy.ndarray)], held))
    for size in (about.global_scratch_size, about.profile_scratch_size):
        values.append(numpy.array([int(on_device(size * blocks)) if size else 0], numpy.uint64))
    pointers = numpy.array([value.ctypes.data for value in values], numpy.uint64)
    call(driver.cuLaunchKernel, function, *grid, 32 * about.num_warps, 1, 1, about.shared, 0, pointers.ctypes.data, 0)
    call(driver.cuCtxSynchronize)
    for value, pointer in arrays:
        call(driver.cuMemcpyDtoH, value.ctypes.data, pointer, value.nbytes)
    for pointer in held:
        call(driver.cuMemFree, pointer)
    call(driver.cuModuleUnload, module)
    return compiled.asm["ptx"]


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@check
def sum_of_vectors():
    x, y = random.standard_normal((2, 10_001), numpy.float32)
    out = numpy.zeros_like(x)
    launch(add_kernel, (10, 1, 1), x, y, out, x.size, constants={"BLOCK": 1024})
    numpy.testing.assert_array_equal(out, x + y)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@check
def softmax():
    x = random.standard_normal((37, 781), numpy.float32)
    out = numpy.zeros_like(x)
    launch(softmax_kernel, (37, 1, 1), x, out, 781, constants={"BLOCK": 1024}, num_warps=8)
    powers = numpy.exp(x - x.max(1, keepdims=True))
    numpy.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def product_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EXACT: tl.constexpr, SUM: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), SUM)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + inner[None, :], mask=(rows[:, None] < M) & (k + inner[None, :] < K), other=0.0)
        right = tl.load(b + (k + inner[:, None]) * N + columns[None, :], mask=(k + inner[:, None] < K) & (columns[None, :] < N), other=0.0)
        total = tl.dot(left, right, total, input_precision=EXACT, out_dtype=SUM)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))


def product(a, b, tile, total=tl.float32, precision="ieee", types={}, **options):
    """The product of two matrices by the kernel, and the PTX that computed it."""
    c = numpy.zeros((a.shape[0], b.shape[1]), {tl.float32: numpy.float32, tl.int32: numpy.int32, tl.float64: numpy.float64}[total])
    grid = (-(-a.shape[0] // tile[0]), -(-b.shape[1] // tile[1]), 1)
    constants = dict(zip(("BM", "BN", "BK"), tile)) | {"EXACT": precision, "SUM": total}
    ptx = launch(product_kernel, grid, a, b, c, a.shape[0], b.shape[1], a.shape[1], constants=constants, types=types, **options)
    return c, ptx


@check
def product_of_halves_by_wgmma():
    a, b = random.standard_normal((192, 160)).astype(numpy.float16), random.standard_normal((160, 128)).astype(numpy.float16)
    c, ptx = product(a, b, (64, 64, 32), num_stages=3)
    assert "wgmma.mma_async" in ptx and "cp.async" in ptx
    numpy.testing.assert_allclose(c, a.astype(numpy.float64) @ b.astype(numpy.float64), atol=1e-3)


@check
def product_of_halves_by_mma():
    a, b = random.standard_normal((100, 90)).astype(numpy.float16), random.standard_normal((90, 70)).astype(numpy.float16)
    c, ptx = product(a, b, (32, 32, 32), num_warps=2)
    assert "mma.sync" in ptx
    numpy.testing.assert_allclose(c, a.astype(numpy.float64) @ b.astype(numpy.float64), atol=1e-3)


@check
def product_of_floats():
    a, b = random.standard_normal((64, 96), numpy.float32), random.standard_normal((96, 80), numpy.float32)
    c, _ = product(a, b, (32, 32, 16))
    numpy.testing.assert_allclose(c, a @ b, atol=1e-4)
    c, ptx = product(a, b, (64, 32, 32), precision="tf32")
    assert "tf32" in ptx
    numpy.testing.assert_allclose(c, a @ b, atol=0.1)
    c, _ = product(a, b, (64, 32, 32), precision="tf32x3")
    numpy.testing.assert_allclose(c, a @ b, atol=1e-4)


@check
def product_of_bytes():
    a, b = random.integers(-128, 128, (128, 96)).astype(numpy.int8), random.integers(-128, 128, (96, 64)).astype(numpy.int8)
    c, _ = product(a, b, (64, 32, 32), total=tl.int32)
    numpy.testing.assert_array_equal(c, a.astype(numpy.int32) @ b.astype(numpy.int32))


@check
def product_of_8_bit_floats():
    a, b = random.integers(0, 0x50, (128, 128)).astype(numpy.uint8), random.integers(0, 0x50, (128, 64)).astype(numpy.uint8)
    b |= (random.integers(0, 2, b.shape) << 7).astype(numpy.uint8)
    c, ptx = product(a, b, (64, 64, 64), types={"a": "fp8e4nv", "b": "fp8e4nv"})
    assert "e4m3" in ptx
    numbers = numpy.array([(1 + m / 8) * 2.0 ** (e - 7) if e else m / 8 * 2.0**-6 for e in range(16) for m in range(8)])
    numbers = numpy.concatenate([numbers, -numbers])
    # Tensor cores keep 14 bits of such sums.
    numpy.testing.assert_allclose(c, numbers[a] @ numbers[b], rtol=1e-2, atol=0.5)


@check
def product_of_doubles():
    a, b = random.standard_normal((64, 48)), random.standard_normal((48, 32))
    c, _ = product(a, b, (32, 32, 16), total=tl.float64)
    numpy.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)


@triton.jit
def attention_kernel(q, k, v, out, n, scale, BLOCK: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr):
    rows, wide = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, WIDTH)
    head = tl.program_id(1) * n * WIDTH
    query = tl.load(q + head + rows[:, None] * WIDTH + wide[None, :])
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    norm = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK, STEP):
        at = start + tl.arange(0, STEP)
        keys = tl.load(k + head + at[None, :] * WIDTH + wide[:, None])
        scores = tl.dot(query, keys) * scale
        scores = tl.where(rows[:, None] >= at[None, :], scores, -float("inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp2(scores - now[:, None])
        shrink = tl.exp2(most - now)
        norm = norm * shrink + tl.sum(weights, 1)
        values = tl.load(v + head + at[:, None] * WIDTH + wide[None, :])
        total = tl.dot(weights.to(tl.float16), values, total * shrink[:, None])
        most = now
    tl.store(out + head + rows[:, None] * WIDTH + wide[None, :], total / norm[:, None])


@check
def flash_attention():
    q, k, v = random.standard_normal((3, 2, 128, 64)).astype(numpy.float16)
    out = numpy.zeros(q.shape, numpy.float32)
    launch(attention_kernel, (2, 2, 1), q, k, v, out, 128, 1.4426950408889634 / 8, constants={"BLOCK": 64, "STEP": 32, "WIDTH": 64})
    scores = q.astype(numpy.float64) @ k.astype(numpy.float64).swapaxes(1, 2) / 8
    scores[:, ~numpy.tri(128, dtype=bool)] = -numpy.inf
    weights = numpy.exp(scores - scores.max(2, keepdims=True))
    wanted = weights / weights.sum(2, keepdims=True) @ v.astype(numpy.float64)
    numpy.testing.assert_allclose(out, wanted, atol=5e-3)


@triton.jit
def in_order_kernel(x, sums, sorted, places, most, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * BLOCK
    values = tl.load(x + row + at)
    tl.store(sums + row + at, tl.cumsum(values, 0))
    tl.store(sorted + row + at, tl.sort(values))
    tl.store(places + tl.program_id(0), tl.argmax(values, 0))
    tl.store(most + row + at, tl.associative_scan(values, 0, larger))


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@check
def scans_and_sorts():
    x = random.permutation(4 * 512).astype(numpy.int32).reshape(4, 512)
    sums, ordered, most, places = numpy.zeros_like(x), numpy.zeros_like(x), numpy.zeros_like(x), numpy.zeros(4, numpy.int32)
    launch(in_order_kernel, (4, 1, 1), x, sums, ordered, places, most, constants={"BLOCK": 512})
    numpy.testing.assert_array_equal(sums, x.cumsum(1))
    numpy.testing.assert_array_equal(ordered, numpy.sort(x, 1))
    numpy.testing.assert_array_equal(places, x.argmax(1))
    numpy.testing.assert_array_equal(most, numpy.maximum.accumulate(x, 1))


@triton.jit
def counted_kernel(x, counts, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(counts + values, 1, mask=at < n)
    tl.atomic_add(total, tl.sum(values, 0))


@check
def counts_by_atomics():
    x = random.integers(0, 100, 5000).astype(numpy.int32)
    counts, total = numpy.zeros(100, numpy.int32), numpy.zeros(1, numpy.int32)
    launch(counted_kernel, (20, 1, 1), x, counts, total, x.size, constants={"BLOCK": 256})
    numpy.testing.assert_array_equal(counts, numpy.bincount(x, minlength=100))
    assert total[0] == x.sum()


@triton.jit
def shuffled_kernel(x, by, out, transposed, W: tl.constexpr, H: tl.constexpr):
    at = tl.arange(0, H)[:, None] * W + tl.arange(0, W)[None, :]
    values = tl.load(x + at)
    tl.store(out + at, tl.gather(values, tl.load(by + at), axis=1))
    tl.store(transposed + tl.arange(0, W)[:, None] * H + tl.arange(0, H)[None, :], tl.trans(values))


@check
def gathers_and_transposes():
    x = random.standard_normal((32, 64), numpy.float32)
    by = random.integers(0, 64, (32, 64)).astype(numpy.int32)
    out, transposed = numpy.zeros_like(x), numpy.zeros((64, 32), numpy.float32)
    launch(shuffled_kernel, (1, 1, 1), x, by, out, transposed, constants={"W": 64, "H": 32})
    numpy.testing.assert_array_equal(out, numpy.take_along_axis(x, by, 1))
    numpy.testing.assert_array_equal(transposed, x.T)


@triton.jit
def drawn_kernel(x, out, seed, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > 0.25
    tl.store(out + at, tl.where(kept, tl.load(x + at) / 0.75, 0.0))


@check
def dropout():
    x = numpy.ones(4096, numpy.float32)
    out = numpy.zeros_like(x)
    launch(drawn_kernel, (1, 1, 1), x, out, 1234, constants={"BLOCK": 4096})
    again = numpy.zeros_like(x)
    launch(drawn_kernel, (1, 1, 1), x, again, 1234, constants={"BLOCK": 4096}, num_warps=8)
    numpy.testing.assert_array_equal(out, again)
    assert 0.72 < (out != 0).mean() < 0.78


@triton.jit
def normed_kernel(x, weight, bias, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    apart = tl.where(at < columns, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / columns + 1e-5)
    result = apart * scale * tl.load(weight + at, mask=at < columns) + tl.load(bias + at, mask=at < columns)
    tl.store(out + row * columns + at, result.to(tl.float16), mask=at < columns)


@check
def layer_norm():
    x = random.standard_normal((16, 300)).astype(numpy.float16)
    weight, bias = random.standard_normal((2, 300), numpy.float32)
    out = numpy.zeros_like(x)
    launch(normed_kernel, (16, 1, 1), x, weight, bias, out, 300, constants={"BLOCK": 512})
    wide = x.astype(numpy.float64)
    wanted = (wide - wide.mean(1, keepdims=True)) / numpy.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight + bias
    numpy.testing.assert_allclose(out, wanted, atol=5e-3)


@triton.jit
def described_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([row, k]), right.load([k, column]), total)
    out.store([row, column], total)


@check
def product_through_tensor_maps_made_on_the_device():
    a, b = random.standard_normal((192, 128)).astype(numpy.float16), random.standard_normal((128, 96)).astype(numpy.float16)
    c = numpy.zeros((192, 96), numpy.float32)
    constants = {"BM": 64, "BN": 32, "BK": 64}
    ptx = launch(described_kernel, (3, 3, 1), a, b, c, 192, 96, 128, constants=constants, num_stages=3)
    assert "cp.async.bulk.tensor" in ptx and "tensormap.replace" in ptx
    numpy.testing.assert_allclose(c, a.astype(numpy.float64) @ b.astype(numpy.float64), atol=1e-3)


if __name__ == "__main__":
    main()
