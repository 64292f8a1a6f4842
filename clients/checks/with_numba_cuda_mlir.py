"""What kernels in Python do on the device that numba-cuda-mlir compiles, beside NumPy."""

import math
import warnings

import numpy
from checking import check, main
from numba_cuda_mlir import cuda

# Of small grids, and of nvJitLink, which is not there.
warnings.simplefilter("ignore")
random = numpy.random.default_rng(3)


def agree(found, wanted, **tolerance):
    numpy.testing.assert_allclose(found, wanted, **{"rtol": 1e-6, "atol": 1e-12, **tolerance})


@check
def elements_of_each_type():
    @cuda.jit
    def twice_and_more(source, to):
        index = cuda.grid(1)
        if index < to.size:
            to[index] = source[index] + source[index] * source[index]

    for kind in ("int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64", "complex128"):
        source = (random.random(500) * 8).astype(kind)
        to = cuda.device_array_like(source)
        twice_and_more[4, 128](cuda.to_device(source), to)
        agree(to.copy_to_host(), source + source * source, rtol=2e-3 if kind == "float16" else 1e-6)


@check
def functions_of_mathematics():
    @cuda.jit
    def many(x, to):
        index = cuda.grid(1)
        if index < x.size:
            v = x[index]
            to[0, index] = math.sin(v) + math.cos(v)
            to[1, index] = math.exp(-v) * math.log(v)
            to[2, index] = math.sqrt(v) / math.tanh(v)
            to[3, index] = math.erf(v) + math.gamma(v)
            to[4, index] = math.atan2(v, 2.0) ** 1.5
            to[5, index] = math.fmod(v, 0.7) + math.floor(v) - math.ceil(v)

    for kind, tolerance in (("float32", 2e-5), ("float64", 1e-12)):
        x = (random.random(300) * 4 + 0.5).astype(kind)
        to = cuda.device_array((6, 300), kind)
        many[3, 128](x, to)
        v = x.astype("float64")
        wanted = [
            numpy.sin(v) + numpy.cos(v),
            numpy.exp(-v) * numpy.log(v),
            numpy.sqrt(v) / numpy.tanh(v),
            [math.erf(value) + math.gamma(value) for value in v],
            numpy.arctan2(v, 2.0) ** 1.5,
            [math.fmod(value, float(x.dtype.type(0.7))) - 1 for value in v],
        ]
        agree(to.copy_to_host()[:5], wanted[:5], rtol=tolerance, atol=tolerance)


@check
def products_by_tiles():
    @cuda.jit
    def multiply(a, b, to):
        tile_a = cuda.shared.array((16, 16), "float32")
        tile_b = cuda.shared.array((16, 16), "float32")
        column, row = cuda.grid(2)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        total = numpy.float32(0)
        for part in range(a.shape[1] // 16):
            tile_a[y, x] = a[row, part * 16 + x]
            tile_b[y, x] = b[part * 16 + y, column]
            cuda.syncthreads()
            for k in range(16):
                total += tile_a[y, k] * tile_b[k, x]
            cuda.syncthreads()
        to[row, column] = total

    a, b = random.random((64, 96), "float32"), random.random((96, 32), "float32")
    to = cuda.device_array((64, 32), "float32")
    multiply[(2, 4), (16, 16)](a, b, to)
    agree(to.copy_to_host(), a @ b, rtol=1e-5)


@check
def atomic_operations():
    @cuda.jit
    def count(values, bins, extremes, exchanged):
        index = cuda.grid(1)
        if index < values.size:
            cuda.atomic.add(bins, values[index], 1)
            cuda.atomic.max(extremes, 0, values[index])
            cuda.atomic.min(extremes, 1, values[index])
            cuda.atomic.cas(exchanged, values[index], 0, values[index])

    values = random.integers(3, 60, 5000).astype("int32")
    bins, exchanged = numpy.zeros(64, "int32"), numpy.zeros(64, "int32")
    extremes = numpy.array([-1, 1000], "int32")
    count[20, 256](values, bins, extremes, exchanged)
    agree(bins, numpy.bincount(values, minlength=64))
    agree(extremes, [values.max(), values.min()])
    agree(exchanged, numpy.where(bins > 0, numpy.arange(64), 0))


@check
def lanes_of_a_warp():
    @cuda.jit
    def together(values, to):
        value = values[cuda.grid(1)]
        total = value
        for step in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, step)
        votes = cuda.ballot_sync(0xFFFFFFFF, value > 50)
        same = cuda.match_any_sync(0xFFFFFFFF, value & 3)
        to[0, cuda.grid(1)] = total
        to[1, cuda.grid(1)] = cuda.popc(votes)
        to[2, cuda.grid(1)] = cuda.popc(same)
        to[3, cuda.grid(1)] = cuda.shfl_up_sync(0xFFFFFFFF, value, 3)

    values = random.integers(0, 100, 128).astype("int32")
    to = numpy.zeros((4, 128), "int32")
    together[2, 64](values, to)
    warps = values.reshape(4, 32)
    agree(to[0].reshape(4, 32), numpy.repeat(warps.sum(1)[:, None], 32, 1))
    agree(to[1].reshape(4, 32), numpy.repeat((warps > 50).sum(1)[:, None], 32, 1))
    agree(to[2].reshape(4, 32), ((warps[:, :, None] & 3) == (warps[:, None] & 3)).sum(2))
    agree(to[3].reshape(4, 32)[:, 3:], warps[:, :-3])


@check
def grids_that_meet():
    @cuda.jit
    def diffuse(values, other, steps):
        grid = cuda.cg.this_grid()
        index = cuda.grid(1)
        for _ in range(steps):
            left, right = max(index - 1, 0), min(index + 1, values.size - 1)
            other[index] = (values[left] + values[index] + values[right]) / 3
            grid.sync()
            values[index] = other[index]
            grid.sync()

    values = random.random(256)
    wanted = values.copy()
    diffuse[4, 64](values, numpy.zeros(256), 20)
    for _ in range(20):
        wanted = (numpy.concatenate([wanted[:1], wanted[:-1]]) + wanted + numpy.concatenate([wanted[1:], wanted[-1:]])) / 3
    agree(values, wanted)


@check
def functions_and_local_memory():
    @cuda.jit(device=True)
    def sorted_middle(values, count):
        for i in range(1, count):
            for j in range(i, 0, -1):
                if values[j] < values[j - 1]:
                    values[j], values[j - 1] = values[j - 1], values[j]
        return values[count // 2]

    @cuda.jit
    def median(source, to):
        window = cuda.local.array(5, "float64")
        index = cuda.grid(1)
        if index + 4 < source.size:
            for k in range(5):
                window[k] = source[index + k]
            to[index] = sorted_middle(window, 5)

    source, to = random.random(300), numpy.zeros(296)
    median[3, 128](source, to)
    agree(to, numpy.median(numpy.lib.stride_tricks.sliding_window_view(source, 5), axis=1))


@check
def streams_and_events():
    @cuda.jit
    def scale(values, factor):
        index = cuda.grid(1)
        if index < values.size:
            values[index] *= factor

    streams, parts = [cuda.stream() for _ in range(3)], []
    done = cuda.event()
    for number, stream in enumerate(streams):
        part = cuda.to_device(numpy.ones(1000), stream=stream)
        scale[8, 128, stream](part, float(number + 2))
        parts.append(part)
    done.record(streams[2])
    done.wait(streams[0])
    scale[8, 128, streams[0]](parts[2], 10.0)
    cuda.synchronize()
    agree([part.copy_to_host().mean() for part in parts], [2, 3, 40])


@check
def constants_slices_and_failures():
    table = numpy.arange(10, dtype="float64") ** 2

    @cuda.jit
    def look_up(indices, to):
        squares = cuda.const.array_like(table)
        index = cuda.grid(1)
        if index < indices.size:
            to[index] = squares[indices[index]]

    indices = random.integers(0, 10, (40, 3))[:, 1]
    to = numpy.zeros(40)
    look_up[1, 64](cuda.to_device(numpy.ascontiguousarray(indices)), to)
    agree(to, indices**2)

    @cuda.jit
    def transpose(source, to):
        x, y = cuda.grid(2)
        if x < source.shape[0] and y < source.shape[1]:
            to[y, x] = source[x, y]

    source = random.random((30, 50))
    to = cuda.device_array((20, 12))
    transpose[(2, 4), (16, 16)](cuda.to_device(source)[4:16, 10:50:2], to)
    agree(to.copy_to_host(), source[4:16, 10:50:2].T)


if __name__ == "__main__":
    main()
