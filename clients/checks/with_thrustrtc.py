"""ThrustRTC's algorithms on vectors of several types, whose kernels it has compiled for each, beside NumPy's."""

import os

import numpy
import ThrustRTC as rtc
from checking import check, main

rtc.set_libnvrtc_path(os.environ["NVRTC"])
random = numpy.random.default_rng(5)
SIZES = (1, 1000, 100_003)


def vector(values):
    return rtc.device_vector_from_numpy(values)


def same(found, expected):
    found = found.to_host() if hasattr(found, "to_host") else found
    numpy.testing.assert_array_equal(found, expected)


def numbers(size, dtype=numpy.int32, most=1000):
    return random.integers(0, most, size).astype(dtype)


def functor(parameters, body, **constants):
    return rtc.Functor(constants, parameters, f"        return {body};\n")


EVEN = functor(["x"], "x % 2 == 0")


@check
def transformations():
    for size in SIZES:
        a, b = numbers(size), numbers(size)
        out = rtc.device_vector("int32_t", size)
        rtc.Transform_Binary(vector(a), vector(b), out, rtc.Plus())
        same(out, a + b)
        rtc.Transform(vector(a), out, functor(["x"], "x * scale - 3", scale=rtc.DVInt32(7)))
        same(out, a * 7 - 3)
        of_both = vector(a)
        rtc.Transform_If(vector(a), of_both, rtc.Negate(), EVEN)
        same(of_both, numpy.where(a % 2 == 0, -a, a))
        rtc.Adjacent_Difference(vector(a), out)
        same(out, numpy.diff(a, prepend=numpy.int32(0)))
        rtc.Sequence(out, rtc.DVInt32(5), rtc.DVInt32(3))
        same(out, 5 + 3 * numpy.arange(size))


@check
def sums_and_extremes():
    for size in SIZES:
        for dtype, kind in ((numpy.int32, rtc.DVInt32), (numpy.int64, rtc.DVInt64), (numpy.float64, rtc.DVDouble)):
            a, b = numbers(size, dtype), numbers(size, dtype)
            on_device = vector(a)
            assert rtc.Reduce(on_device) == a.sum(), f"a sum of {size} of {dtype}"
            assert rtc.Reduce(on_device, kind(-5), rtc.Maximum()) == a.max()
            assert rtc.Inner_Product(on_device, vector(b), kind(3)) == a @ b + 3
            assert a[rtc.Min_Element(on_device)] == a.min()
            least, most = rtc.MinMax_Element(on_device)
            assert (a[least], a[most]) == (a.min(), a.max())
            assert rtc.Count(on_device, kind(7)) == (a == 7).sum()
        assert rtc.Count_If(vector(numpy.arange(size, dtype=numpy.int32)), EVEN) == (size + 1) // 2


@check
def sums_of_runs():
    for size in SIZES:
        keys, values = numpy.sort(numbers(size, most=size // 4 + 1)), numbers(size)
        of, out = rtc.device_vector("int32_t", size), rtc.device_vector("int32_t", size)
        count = rtc.Reduce_By_Key(vector(keys), vector(values), of, out)
        kinds, places = numpy.unique(keys, return_inverse=True)
        same(of.to_host(0, count), kinds)
        same(out.to_host(0, count), numpy.bincount(places, values).astype(numpy.int32))
        rtc.Inclusive_Scan_By_Key(vector(keys), vector(values), out)
        sums = numpy.cumsum(values)
        starts = numpy.searchsorted(keys, keys)
        same(out, sums - (sums - values)[starts])


@check
def scans():
    for size in SIZES:
        a = numbers(size)
        out = rtc.device_vector("int32_t", size)
        rtc.Inclusive_Scan(vector(a), out)
        same(out, numpy.cumsum(a))
        rtc.Exclusive_Scan(vector(a), out, rtc.DVInt32(11))
        same(out, numpy.cumsum(a) - a + 11)
        rtc.Inclusive_Scan(vector(a), out, rtc.Maximum())
        same(out, numpy.maximum.accumulate(a))


@check
def sorts():
    for size in SIZES:
        for dtype in (numpy.int32, numpy.uint32, numpy.int64, numpy.uint64, numpy.float32, numpy.float64):
            a = (random.normal(size=size) * 1e6).astype(numpy.int64).astype(dtype)
            on_device = vector(a)
            rtc.Sort(on_device)
            same(on_device, numpy.sort(a))
            assert rtc.Is_Sorted(on_device)
        a = numbers(size, most=10 * size)
        keys, places = vector(a), vector(numpy.arange(size, dtype=numpy.int32))
        rtc.Sort_By_Key(keys, places)
        same(keys, numpy.sort(a))
        same(a[places.to_host()], numpy.sort(a))
        downwards = vector(a)
        rtc.Sort(downwards, rtc.Greater())
        same(downwards, numpy.sort(a)[::-1])


@check
def merges():
    for size in SIZES:
        a, b = numpy.sort(numbers(size)), numpy.sort(numbers(2 * size))
        out = rtc.device_vector("int32_t", 3 * size)
        rtc.Merge(vector(a), vector(b), out)
        same(out, numpy.sort(numpy.concatenate([a, b])))


@check
def selections():
    for size in SIZES:
        a = numbers(size, most=50)
        out = rtc.device_vector("int32_t", size)
        same(out.to_host(0, rtc.Copy_If(vector(a), out, EVEN)), a[a % 2 == 0])
        same(out.to_host(0, rtc.Remove_Copy(vector(a), out, rtc.DVInt32(7))), a[a != 7])
        ordered = numpy.sort(a)
        same(out.to_host(0, rtc.Unique_Copy(vector(ordered), out)), numpy.unique(a))
        parted = vector(a)
        count = rtc.Partition(parted, EVEN)
        same(parted, numpy.concatenate([a[a % 2 == 0], a[a % 2 == 1]]))
        assert count == (a % 2 == 0).sum()


@check
def searches():
    for size in SIZES:
        a, wanted = numpy.sort(numbers(size)), numbers(500)
        places = rtc.device_vector("int32_t", 500)
        rtc.Lower_Bound_V(vector(a), vector(wanted), places)
        same(places, numpy.searchsorted(a, wanted))
        rtc.Upper_Bound_V(vector(a), vector(wanted), places)
        same(places, numpy.searchsorted(a, wanted, "right"))
        b = numbers(size)
        b[size // 2] = 5000
        assert rtc.Find(vector(b), rtc.DVInt32(5000)) == size // 2
        assert rtc.Find(vector(b), rtc.DVInt32(6000)) is None
        changed = b.copy()
        changed[-1] += 1
        assert rtc.Mismatch(vector(b), vector(changed)) == size - 1


@check
def gathers():
    for size in SIZES:
        a, places = numbers(size), random.permutation(size).astype(numpy.int32)
        out = rtc.device_vector("int32_t", size)
        rtc.Gather(vector(places), vector(a), out)
        same(out, a[places])
        rtc.Scatter(vector(a), vector(places), out)
        expected = numpy.empty_like(a)
        expected[places] = a
        same(out, expected)
        rtc.Copy(rtc.DVReverse(vector(a)), out)
        same(out, a[::-1])


@check
def kernels():
    """Those of the program's own text, with vectors, tuples and numbers as arguments."""
    size = 100_003
    x, y = random.normal(size=size).astype(numpy.float32), random.normal(size=size).astype(numpy.float32)
    on_device = vector(y)
    loop = rtc.For(["x", "y", "a"], "i", "        y[i] = a * x[i] + y[i];\n")
    loop.launch_n(size, [vector(x), on_device, rtc.DVFloat(0.5)])
    same(on_device, numpy.float32(0.5) * x + y)
    kernel = rtc.Kernel(
        ["values", "pair", "sums"],
        """        __shared__ int part;
        if (threadIdx.x == 0) part = 0;
        __syncthreads();
        for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < values.size(); i += gridDim.x * blockDim.x)
            if (values[i] >= pair.low && values[i] < pair.high) atomicAdd(&part, values[i]);
        __syncthreads();
        if (threadIdx.x == 0) sums[blockIdx.x] = part;
""",
    )
    a, sums = numbers(size), rtc.device_vector("int32_t", 12)
    arguments = [vector(a), rtc.DVTuple({"low": rtc.DVInt32(100), "high": rtc.DVInt32(900)}), sums]
    block = kernel.calc_optimal_block_size(arguments)
    assert block == 1024, "a processor's threads are two such blocks"
    assert kernel.calc_number_blocks(arguments, 256) > 0
    kernel.launch(12, block, arguments)
    assert sums.to_host().sum() == a[(a >= 100) & (a < 900)].sum()


main()
