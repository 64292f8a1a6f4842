"""Pipelines that Halide compiles to PTX with an LLVM of its own, compared with NumPy."""

import halide as hl
import numpy
from checking import check, main

TARGET = hl.get_host_target().with_feature(hl.TargetFeature.CUDA).with_feature(hl.TargetFeature.CUDACapability80)
x, y, xi, yi = (hl.Var(name) for name in ("x", "y", "xi", "yi"))


def computed(function, shape):
    """What the pipeline computes. NumPy names the axes of a buffer in the other order."""
    buffer = function.realize(list(reversed(shape)), TARGET)
    buffer.copy_to_host()
    return numpy.array(buffer)


def tiled(function, width=16, height=16):
    """The schedule of a function: tiles on the device."""
    return function.gpu_tile(x, y, xi, yi, width, height)


def image(height=90, width=120):
    """An image that looks random, and is the same every time, with Halide's buffer of it."""
    host = numpy.random.default_rng(7).uniform(-1, 1, (height, width)).astype(numpy.float32)
    return host, hl.Buffer(host)


@check
def pointwise():
    host, buffer = image()
    f = hl.Func("pointwise")
    f[x, y] = hl.sin(buffer[x, y]) + hl.exp(buffer[x, y]) * hl.f32(y)
    tiled(f)
    rows = numpy.arange(host.shape[0])[:, None]
    numpy.testing.assert_allclose(computed(f, host.shape), numpy.sin(host) + numpy.exp(host) * rows, rtol=1e-4, atol=1e-5)


@check
def blur_through_shared_memory():
    host, buffer = image()
    clamped = hl.BoundaryConditions.repeat_edge(buffer)
    across, f = hl.Func("across"), hl.Func("blur")
    across[x, y] = (clamped[x - 1, y] + clamped[x, y] + clamped[x + 1, y]) / 3
    f[x, y] = (across[x, y - 1] + across[x, y] + across[x, y + 1]) / 3
    tiled(f)
    across.compute_at(f, x).gpu_threads(x, y)
    padded = numpy.pad(host, 1, mode="edge")
    rows = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
    numpy.testing.assert_allclose(computed(f, host.shape), (rows[:-2] + rows[1:-1] + rows[2:]) / 3, rtol=1e-4, atol=1e-6)


@check
def product_of_matrices():
    a, first = image(48, 64)
    b, second = image(64, 80)
    k = hl.RDom([(0, 64)])
    f = hl.Func("product")
    f[x, y] = 0.0
    f[x, y] += first[k.x, y] * second[x, k.x]
    tiled(f)
    tiled(f.update())
    numpy.testing.assert_allclose(computed(f, (48, 80)), a @ b, rtol=1e-4, atol=1e-4)


@check
def histogram_by_atomics():
    host = numpy.random.default_rng(3).integers(0, 256, (90, 120)).astype(numpy.uint8)
    buffer = hl.Buffer(host)
    r = hl.RDom([(0, 120), (0, 90)])
    f = hl.Func("histogram")
    f[x] = 0
    f[hl.i32(buffer[r.x, r.y])] += 1
    block, thread = hl.RVar("block"), hl.RVar("thread")
    f.gpu_tile(x, xi, 32)
    f.update().atomic().split(r.x, block, thread, 32).gpu_blocks(r.y).gpu_threads(thread)
    numpy.testing.assert_array_equal(computed(f, (256,)), numpy.bincount(host.ravel(), minlength=256))


@check
def integers_and_selection():
    f = hl.Func("integers")
    f[x, y] = hl.select((x ^ y) & 1 == 0, hl.i32(x) / 3 - y, (x * 7919 + y) % 1000)
    tiled(f, 8, 4)
    column, row = numpy.meshgrid(numpy.arange(70), numpy.arange(50))
    wanted = numpy.where((column ^ row) & 1 == 0, column // 3 - row, (column * 7919 + row) % 1000)
    numpy.testing.assert_array_equal(computed(f, (50, 70)), wanted)


@check
def doubles_and_halves():
    f, g = hl.Func("doubles"), hl.Func("halves")
    f[x, y] = hl.sqrt(hl.f64(x) + 0.5) / (hl.f64(y) + 1)
    tiled(f)
    column, row = numpy.meshgrid(numpy.arange(40, dtype=numpy.float64), numpy.arange(30, dtype=numpy.float64))
    numpy.testing.assert_allclose(computed(f, (30, 40)), numpy.sqrt(column + 0.5) / (row + 1), rtol=1e-14)
    g[x, y] = hl.f32(hl.cast(hl.Float(16), hl.f32(x) * 0.1)) + hl.f32(y)
    tiled(g)
    wanted = (column.astype(numpy.float32) * numpy.float32(0.1)).astype(numpy.float16).astype(numpy.float32) + row
    numpy.testing.assert_allclose(computed(g, (30, 40)), wanted, rtol=1e-6)


if __name__ == "__main__":
    main()
