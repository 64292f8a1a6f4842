"""What LuisaCompute computes on the device, beside NumPy: functions written in Python, which become CUDA C++, and through the NVRTC that
its wheel brings PTX, linked with the `libcudadevrt` beside it."""

import luisa
import numpy
from checking import check, main
from luisa.builtin import warp_active_max, warp_prefix_sum
from luisa.dylibs.lcapi import Address, Filter
from luisa.mathtypes import *
from luisa.types import uint

luisa.init("cuda")
random = numpy.random.default_rng(7)


def filled(array):
    """A buffer of the device with the values of an array."""
    buffer = luisa.Buffer(array.size, dtype={"float32": float, "int32": int}[array.dtype.name])
    buffer.copy_from(array)
    return buffer


@luisa.func
def mathematics(x, y):
    i = dispatch_id().x
    a = x.read(i)
    y.write(i, sin(a) * exp(-a) + sqrt(a) * atan2(a, 2.0) + lerp(a, 3.0, 0.25) + clamp(a, 0.2, 0.7))


@check
def functions_of_floats():
    x = random.random(10_000, numpy.float32)
    y = filled(numpy.zeros_like(x))
    mathematics(filled(x), y, dispatch_size=(x.size, 1, 1))
    wanted = numpy.sin(x) * numpy.exp(-x) + numpy.sqrt(x) * numpy.arctan2(x, 2) + x + (3 - x) * 0.25 + numpy.clip(x, 0.2, 0.7)
    numpy.testing.assert_allclose(y.numpy(), wanted, rtol=2e-6)


@luisa.func
def bits(x, y):
    i = dispatch_id().x
    a = x.read(i)
    y.write(i, int(popcount(uint(a)) + 100 * clz(uint(a)) + reverse(uint(a)) % 7))


@check
def functions_of_bits():
    x = random.integers(1, 1 << 30, 5000).astype(numpy.int32)
    y = filled(numpy.zeros_like(x))
    bits(filled(x), y, dispatch_size=(x.size, 1, 1))

    def wanted(value):
        text = f"{value:032b}"
        return text.count("1") + text.index("1") * 100 + int(text[::-1], 2) % 7

    numpy.testing.assert_array_equal(y.numpy(), [wanted(int(value)) for value in x])


@luisa.func
def collatz(x, steps):
    i = dispatch_id().x
    n = x.read(i)
    count = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    steps.write(i, count)


@check
def loops_of_different_length():
    x = numpy.arange(1, 3001, dtype=numpy.int32)
    steps = filled(numpy.zeros_like(x))
    collatz(filled(x), steps, dispatch_size=(x.size, 1, 1))

    def wanted(n):
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    numpy.testing.assert_array_equal(steps.numpy(), [wanted(int(n)) for n in x])


@luisa.func
def histogram(x, counts):
    before = counts.atomic_fetch_add(x.read(dispatch_id().x), 1)


@check
def atomics():
    x = random.integers(0, 50, 20_000).astype(numpy.int32)
    counts = filled(numpy.zeros(50, numpy.int32))
    histogram(filled(x), counts, dispatch_size=(x.size, 1, 1))
    numpy.testing.assert_array_equal(counts.numpy(), numpy.bincount(x, minlength=50))


tile = luisa.SharedArrayType(256, float)


@luisa.func
def turned(x, y):
    set_block_size(256, 1, 1)
    shared = tile()
    here = thread_id().x
    shared[here] = x.read(dispatch_id().x)
    sync_block()
    y.write(dispatch_id().x, shared[255 - here])


@check
def shared_memory():
    x = random.random(2048, numpy.float32)
    y = filled(numpy.zeros_like(x))
    turned(filled(x), y, dispatch_size=(x.size, 1, 1))
    numpy.testing.assert_array_equal(y.numpy(), x.reshape(-1, 256)[:, ::-1].ravel())


@luisa.func
def turned_vectors(angles, x, y):
    i = dispatch_id().x
    a = angles.read(i)
    turn = make_float3x3(cos(a), sin(a), 0.0, -sin(a), cos(a), 0.0, 0.0, 0.0, 1.0)
    v = turn * make_float3(x.read(3 * i), x.read(3 * i + 1), x.read(3 * i + 2))
    v = normalize(cross(v, make_float3(1.0, 2.0, 3.0)))
    y.write(3 * i, v.x)
    y.write(3 * i + 1, v.y)
    y.write(3 * i + 2, dot(v, make_float3(0.5, 0.25, 1.0)) + determinant(turn))


@check
def vectors_and_matrices():
    angles, x = random.random(500, numpy.float32), random.random((500, 3), numpy.float32)
    y = filled(numpy.zeros(1500, numpy.float32))
    turned_vectors(filled(angles), filled(x.ravel()), y, dispatch_size=(500, 1, 1))
    c, s = numpy.cos(angles), numpy.sin(angles)
    v = numpy.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1], x[:, 2]], 1)
    v = numpy.cross(v, [1, 2, 3])
    v /= numpy.linalg.norm(v, axis=1, keepdims=True)
    wanted = numpy.stack([v[:, 0], v[:, 1], v @ [0.5, 0.25, 1] + 1], 1)
    numpy.testing.assert_allclose(y.numpy().reshape(-1, 3), wanted, atol=2e-5)


@luisa.func
def blurred(image, result):
    at = dispatch_id().xy
    size = dispatch_size().xy
    total = make_float4(0.0)
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            x = clamp(int(at.x) + dx, 0, int(size.x) - 1)
            y = clamp(int(at.y) + dy, 0, int(size.y) - 1)
            total += image.read(make_int2(x, y))
    result.write(at, total / 9.0)


@check
def images():
    x = random.random((48, 64, 4), numpy.float32)
    image, result = luisa.Image2D(64, 48, 4, float), luisa.Image2D(64, 48, 4, float)
    image.copy_from(x)
    blurred(image, result, dispatch_size=(64, 48, 1))
    padded = numpy.pad(x, ((1, 1), (1, 1), (0, 0)), mode="edge")
    wanted = sum(padded[i : i + 48, j : j + 64] for i in range(3) for j in range(3)) / 9
    numpy.testing.assert_allclose(result.numpy().reshape(48, 64, 4), wanted, rtol=2e-6)


@luisa.func
def waves(x, sums, most):
    set_block_size(64, 1, 1)
    i = dispatch_id().x
    a = x.read(i)
    sums.write(i, warp_prefix_sum(a) + a)
    most.write(i, warp_active_max(a))


@check
def sums_across_a_warp():
    x = random.integers(0, 1000, 1024).astype(numpy.int32)
    sums, most = filled(numpy.zeros_like(x)), filled(numpy.zeros_like(x))
    waves(filled(x), sums, most, dispatch_size=(x.size, 1, 1))
    warps = x.reshape(-1, 32)
    numpy.testing.assert_array_equal(sums.numpy(), warps.cumsum(1).ravel())
    numpy.testing.assert_array_equal(most.numpy(), warps.max(1).repeat(32))


@luisa.func
def filtered(heap, points, result):
    i = dispatch_id().x
    at = make_float2(points.read(2 * i), points.read(2 * i + 1))
    result.write(i, heap.texture2d_sample(0, at).x + heap.buffer_read(float, 1, i % 16))


@check
def bindless_arrays():
    x, table = random.random((16, 16, 4), numpy.float32), random.random(16, numpy.float32)
    image, heap, values = luisa.Image2D(16, 16, 4, float), luisa.BindlessArray(4), filled(table)
    image.copy_from(x)
    heap.emplace(0, image, filter=Filter.LINEAR_POINT, address=Address.EDGE)
    heap.emplace(1, values)
    heap.update()
    points = random.random((400, 2), numpy.float32)
    result = filled(numpy.zeros(400, numpy.float32))
    filtered(heap, filled(points.ravel()), result, dispatch_size=(400, 1, 1))
    # The device's places between texels have eight bits of fraction: hence the tolerance.
    at = points.astype(numpy.float64) * 16 - 0.5
    low = numpy.floor(at).astype(int)
    part = at - low
    get = lambda dx, dy: x[numpy.clip(low[:, 1] + dy, 0, 15), numpy.clip(low[:, 0] + dx, 0, 15), 0]
    rows = [get(0, dy) * (1 - part[:, 0]) + get(1, dy) * part[:, 0] for dy in (0, 1)]
    wanted = rows[0] * (1 - part[:, 1]) + rows[1] * part[:, 1] + table[numpy.arange(400) % 16]
    numpy.testing.assert_allclose(result.numpy(), wanted, atol=5e-3)


if __name__ == "__main__":
    main()
