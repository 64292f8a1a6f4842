"""What CuPy does without the rest of the toolkit (cuBLAS, cuFFT, cuRAND), compared with NumPy.

Run by `anywarp run`, as CuPy's modules have NVIDIA's runtime inside. A line for each check: `ok NAME` or `FAIL NAME: why`.
"""

import sys

import cupy
import numpy
from checking import check, main


def same(found, wanted, tolerance=0.0):
    """Compares what came from the device with NumPy's answer."""
    found = cupy.asnumpy(found)
    assert found.shape == numpy.shape(wanted) and found.dtype == numpy.asarray(wanted).dtype, (found.dtype, found.shape)
    numpy.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def samples(count=1000, kind=numpy.float32):
    """Numbers that look random and are the same every time."""
    return numpy.random.default_rng(7).uniform(-4, 4, count).astype(kind)


@check
def sum_of_a_range():
    assert int(cupy.arange(10).sum()) == 45


@check
def runtime_version():
    assert cupy.cuda.runtime.getDeviceCount() >= 1
    assert cupy.cuda.runtime.runtimeGetVersion() // 1000 == int(sys.argv[1])
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    assert b"Anywarp" in properties["name"] and properties["warpSize"] == 32, properties


@check
def copies_and_shapes():
    host = samples(24).reshape(2, 3, 4)
    device = cupy.asarray(host)
    same(device.transpose(2, 0, 1), host.transpose(2, 0, 1))
    same(cupy.ascontiguousarray(device[:, ::-1, 1:]), host[:, ::-1, 1:])
    same(cupy.concatenate([device, device], axis=1), numpy.concatenate([host, host], axis=1))


@check
def elementwise():
    a, b = samples(), samples()[::-1].copy()
    x, y = cupy.asarray(a), cupy.asarray(b)
    same(x * 2 + y, a * 2 + b, 1e-6)
    same(cupy.where(x > y, x, y), numpy.where(a > b, a, b))
    same(x[:, None] * y[None, :50], a[:, None] * b[None, :50])


@check
def mathematics():
    a = samples(kind=numpy.float64)
    for name in ["sin", "cos", "tan", "exp", "arctan", "tanh", "cbrt", "floor", "rint", "sign"]:
        same(getattr(cupy, name)(cupy.asarray(a)), getattr(numpy, name)(a), 1e-14)
    for name in ["sqrt", "log", "log1p", "log2"]:
        same(getattr(cupy, name)(cupy.asarray(abs(a))), getattr(numpy, name)(abs(a)), 1e-14)


@check
def kinds_of_numbers():
    for kind in ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D"]:
        a = numpy.arange(100).astype(kind)
        same(cupy.asarray(a) + cupy.asarray(a), a + a)
        same(cupy.asarray(a).astype("d" if kind not in "FD" else "D"), a.astype("d" if kind not in "FD" else "D"))
    a = samples() + 1j * samples()[::-1]
    same(abs(cupy.asarray(a)), abs(a), 1e-6)
    same(cupy.asarray(a) * cupy.asarray(a), a * a, 1e-5)


@check
def reductions():
    a = samples(30 * 40 * 50).reshape(30, 40, 50)
    x = cupy.asarray(a)
    for axis in [None, 0, 1, 2, (0, 2)]:
        same(x.sum(axis=axis), a.sum(axis=axis), 1e-3)
        same(x.max(axis=axis), a.max(axis=axis))
        same(x.std(axis=axis), a.std(axis=axis), 1e-3)
    same(x.argmax(axis=1), a.argmax(axis=1))
    same(x.argmin(), a.argmin())
    same((x > 0).all(axis=0), (a > 0).all(axis=0))
    same(cupy.count_nonzero(x > 1), numpy.count_nonzero(a > 1))


@check
def large_reductions():
    a = numpy.arange(1 << 21, dtype=numpy.int64)
    same(cupy.asarray(a).sum(), a.sum())
    same(cupy.asarray(a).max(), a.max())


@check
def scans():
    a = numpy.arange(10000, dtype=numpy.int64) % 17
    same(cupy.cumsum(cupy.asarray(a)), numpy.cumsum(a))
    b = samples(64, numpy.float64).reshape(8, 8)
    same(cupy.cumsum(cupy.asarray(b), axis=1), numpy.cumsum(b, axis=1), 1e-12)


@check
def sorting():
    a = samples(5000)
    same(cupy.sort(cupy.asarray(a)), numpy.sort(a))
    same(cupy.argsort(cupy.asarray(a)), numpy.argsort(a))
    b = (a * 5).astype(numpy.int32)
    same(cupy.unique(cupy.asarray(b)), numpy.unique(b))
    same(cupy.sort(cupy.asarray(a).reshape(50, 100), axis=0), numpy.sort(a.reshape(50, 100), axis=0))


@check
def indexing():
    a = samples().reshape(20, 50)
    x = cupy.asarray(a)
    rows, columns = numpy.array([3, 1, 19]), numpy.array([0, 49, 7])
    same(x[rows, columns], a[rows, columns])
    same(x[x > 1], a[a > 1])
    same(cupy.nonzero(x > 2)[0], numpy.nonzero(a > 2)[0])
    same(cupy.take(x, cupy.asarray(columns), axis=1), numpy.take(a, columns, axis=1))
    x[rows] = 5
    a[rows] = 5
    same(x, a)
    total = cupy.zeros(10, dtype=cupy.int32)
    cupy.add.at(total, cupy.arange(100) % 10, 1)
    same(total, numpy.full(10, 10, numpy.int32))


@check
def histograms():
    a = samples(5000)
    same(cupy.histogram(cupy.asarray(a), bins=20)[0], numpy.histogram(a, bins=20)[0])
    b = abs(a * 3).astype(numpy.int32)
    same(cupy.bincount(cupy.asarray(b)), numpy.bincount(b))


@check
def raw_kernels():
    source = r"""
    extern "C" __global__ void scale(const float *in, float *out, float factor, int n) {
        __shared__ float tile[128];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        tile[threadIdx.x] = i < n ? in[i] : 0;
        __syncthreads();
        if (i < n) out[i] = tile[threadIdx.x] * factor;
    }"""
    a = samples()
    out = cupy.zeros(a.size, dtype=cupy.float32)
    cupy.RawKernel(source, "scale")((8,), (128,), (cupy.asarray(a), out, numpy.float32(3), numpy.int32(a.size)))
    same(out, a * numpy.float32(3))


@check
def raw_modules():
    source = r"""
    __constant__ int offset;
    template <typename T> __global__ void shift(T *values) { values[threadIdx.x] += offset; }
    """
    module = cupy.RawModule(code=source, options=("-std=c++17",), name_expressions=["shift<long long>"])
    shift = module.get_function("shift<long long>")
    pointer = module.get_global("offset")
    cupy.ndarray((1,), dtype=cupy.int32, memptr=pointer)[...] = 1000
    values = cupy.arange(64, dtype=cupy.int64)
    shift((1,), (64,), (values,))
    same(values, numpy.arange(64) + 1000)


@check
def made_kernels():
    squared = cupy.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")
    norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
    a, b = samples(), samples()[::-1].copy()
    same(squared(cupy.asarray(a), cupy.asarray(b)), (a - b) * (a - b), 1e-6)
    same(norm(cupy.asarray(a)), numpy.sqrt((a * a).sum()), 1e-5)


@check
def fused_kernels():
    @cupy.fuse()
    def polynomial(x):
        return 3 * x * x - 2 * x + 1

    a = samples(kind=numpy.float64)
    same(polynomial(cupy.asarray(a)), 3 * a * a - 2 * a + 1, 1e-12)


@check
def python_kernels():
    from cupyx import jit

    @jit.rawkernel()
    def twice(values, count):
        i = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
        if i < count:
            values[i] = values[i] * 2

    values = cupy.arange(1000, dtype=cupy.int32)
    twice[8, 128](values, 1000)
    same(values, numpy.arange(1000, dtype=numpy.int32) * 2)


@check
def streams_and_events():
    stream, start, end = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event(), cupy.cuda.Event()
    with stream:
        start.record()
        values = cupy.arange(100000) * 3
        end.record()
    end.synchronize()
    assert cupy.cuda.get_elapsed_time(start, end) >= 0
    stream.synchronize()
    same(values, numpy.arange(100000) * 3)


@check
def kinds_of_memory():
    pool = cupy.get_default_memory_pool()
    block = cupy.zeros(1 << 20)
    assert pool.used_bytes() >= 8 << 20
    del block
    pool.free_all_blocks()
    pinned = cupy.cuda.alloc_pinned_memory(4000)
    host = numpy.frombuffer(pinned, numpy.float32, 1000)
    host[...] = samples()
    device = cupy.empty(1000, dtype=cupy.float32)
    device.set(host)
    same(device, host)
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        same(cupy.arange(1000) + 1, numpy.arange(1000) + 1)
    with cupy.cuda.using_allocator(cupy.cuda.malloc_async):
        same(cupy.arange(1000) + 1, numpy.arange(1000) + 1)


@check
def graphs():
    stream = cupy.cuda.Stream(non_blocking=True)
    values = cupy.zeros(100)
    with stream:
        values += 0
        stream.synchronize()
        stream.begin_capture()
        values += 1
        graph = stream.end_capture()
        for _ in range(5):
            graph.launch(stream)
    stream.synchronize()
    same(values, numpy.full(100, 5.0))


@check
def textures_and_surfaces():
    runtime, texture = cupy.cuda.runtime, cupy.cuda.texture
    floats = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    host = samples(6 * 9).reshape(6, 9)
    image = texture.CUDAarray(floats, 9, 6, 0, runtime.cudaArraySurfaceLoadStore)
    image.copy_from(cupy.asarray(host))
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=image)
    between = texture.TextureDescriptor(
        (runtime.cudaAddressModeClamp, runtime.cudaAddressModeClamp),
        runtime.cudaFilterModeLinear,
        runtime.cudaReadModeElementType,
    )
    code = r"""
    extern "C" __global__ void read(float *out, cudaTextureObject_t image, cudaSurfaceObject_t target) {
        int x = threadIdx.x, y = threadIdx.y;
        float value = tex2D<float>(image, x + 1.0f, y + 0.5f);
        out[y * 9 + x] = value;
        surf2Dwrite(-value, target, x * 4, y);
    }"""
    target = texture.CUDAarray(floats, 9, 6, 0, runtime.cudaArraySurfaceLoadStore)
    surface = texture.SurfaceObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=target))
    out = cupy.zeros((6, 9), numpy.float32)
    read = cupy.RawKernel(code, "read")
    read((1,), (9, 6), (out, texture.TextureObject(resource, between), surface))
    right = numpy.minimum(numpy.arange(9) + 1, 8)
    same(out, (host + host[:, right]) / 2, 1e-6)
    back = numpy.empty((6, 9), numpy.float32)
    target.copy_to(back)
    same(back, -cupy.asnumpy(out))


@check
def linear_memory_as_a_texture():
    runtime, texture = cupy.cuda.runtime, cupy.cuda.texture
    host = samples(64)
    floats = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    device = cupy.asarray(host)
    resource = texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=device, chDesc=floats, sizeInBytes=device.nbytes
    )
    image = texture.TextureObject(resource, texture.TextureDescriptor())
    code = r"""
    extern "C" __global__ void read(float *out, cudaTextureObject_t image) {
        out[threadIdx.x] = tex1Dfetch<float>(image, 63 - threadIdx.x);
    }"""
    out = cupy.zeros(64, numpy.float32)
    cupy.RawKernel(code, "read")((1,), (64,), (out, image))
    same(out, host[::-1])


if __name__ == "__main__":
    main()
