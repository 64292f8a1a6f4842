"""Functions and shaders in Slang on SlangPy's device for CUDA, compared with NumPy."""

import pathlib
import tempfile

import numpy
import slangpy
from checking import check, main

SOURCE = """
float mixed(float a, float b, float t) { return lerp(a, b, t) + sin(a) * exp(-b); }

int bits(int x) { return countbits(x) + int(firstbithigh(uint(x))) * 100 + reversebits(uint(x)) % 7; }

[Differentiable] float cubed(float x) { return x * x * x + 2 * x; }

[shader("compute")] [numthreads(64, 1, 1)]
void waves(uint3 at: SV_DispatchThreadID, RWStructuredBuffer<int> values, RWStructuredBuffer<int> sums) {
    int value = values[at.x];
    sums[at.x] = WavePrefixSum(value) + value;
    int most = WaveActiveMax(value);
    if (WaveIsFirstLane()) values[at.x] = most;
}

groupshared int tile[256];

[shader("compute")] [numthreads(256, 1, 1)]
void turned(uint3 at: SV_DispatchThreadID, uint3 here: SV_GroupThreadID, RWStructuredBuffer<int> values) {
    tile[here.x] = values[at.x];
    GroupMemoryBarrierWithGroupSync();
    values[at.x] = tile[255 - here.x];
}

[shader("compute")] [numthreads(128, 1, 1)]
void counted(uint3 at: SV_DispatchThreadID, StructuredBuffer<int> values, RWStructuredBuffer<int> counts) {
    InterlockedAdd(counts[values[at.x]], 1);
}

[shader("compute")] [numthreads(8, 8, 1)]
void blurred(uint3 at: SV_DispatchThreadID, Texture2D<float> image, RWStructuredBuffer<float> result) {
    uint width, height;
    image.GetDimensions(width, height);
    float sum = 0;
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++)
            sum += image[uint2(clamp(int(at.x) + x, 0, int(width) - 1), clamp(int(at.y) + y, 0, int(height) - 1))];
    result[at.y * 64 + at.x] = sum / 9;
}
"""

folder = pathlib.Path(tempfile.mkdtemp())
(folder / "checks.slang").write_text(SOURCE)
device = slangpy.create_device(slangpy.DeviceType.cuda, include_paths=[folder])
module = slangpy.Module.load_from_file(device, "checks.slang")
random = numpy.random.default_rng(2)


def buffer(values):
    """A buffer of the device with the values of an array."""
    usage = slangpy.BufferUsage.shader_resource | slangpy.BufferUsage.unordered_access
    held = device.create_buffer(size=values.nbytes, struct_size=values.itemsize, usage=usage)
    held.copy_from_numpy(values)
    return held


def contents(held, dtype):
    return held.to_numpy().view(dtype)


def dispatch(name, threads, **arguments):
    kernel = device.create_compute_kernel(device.load_program("checks.slang", [name]))
    kernel.dispatch(thread_count=threads, **arguments)
    device.wait_for_idle()


@check
def functions_of_arrays():
    a, b, t = random.random((3, 10_000), numpy.float32)
    wanted = a + (b - a) * t + numpy.sin(a) * numpy.exp(-b)
    numpy.testing.assert_allclose(module.mixed(a, b, t, _result="numpy"), wanted, rtol=1e-5)


@check
def functions_of_bits():
    x = random.integers(1, 1 << 30, 5000).astype(numpy.int32)

    def wanted(value):
        text = f"{value:032b}"
        return text.count("1") + (31 - text.index("1")) * 100 + int(text[::-1], 2) % 7

    numpy.testing.assert_array_equal(module.bits(x, _result="numpy"), [wanted(int(value)) for value in x])


@check
def derivatives():
    x = random.random(1000, numpy.float32)
    held = slangpy.Tensor.from_numpy(device, x).with_grads(zero=True)
    result = module.cubed(held, _result="tensor").with_grads()
    result.grad.copy_from_numpy(numpy.ones(1000, numpy.float32))
    module.cubed.bwds(held, _result=result)
    numpy.testing.assert_allclose(held.grad.to_numpy(), 3 * x * x + 2, rtol=1e-5)


@check
def sums_across_a_wave():
    x = random.integers(0, 1000, 1024).astype(numpy.int32)
    values, sums = buffer(x), buffer(numpy.zeros_like(x))
    dispatch("waves", [1024, 1, 1], values=values, sums=sums)
    waves = x.reshape(-1, 32)
    numpy.testing.assert_array_equal(contents(sums, numpy.int32), waves.cumsum(1).ravel())
    numpy.testing.assert_array_equal(contents(values, numpy.int32)[::32], waves.max(1))


@check
def shared_memory():
    x = random.integers(0, 1 << 30, 2048).astype(numpy.int32)
    values = buffer(x)
    dispatch("turned", [2048, 1, 1], values=values)
    numpy.testing.assert_array_equal(contents(values, numpy.int32), x.reshape(-1, 256)[:, ::-1].ravel())


@check
def atomics():
    x = random.integers(0, 50, 1280).astype(numpy.int32)
    counts = buffer(numpy.zeros(50, numpy.int32))
    dispatch("counted", [1280, 1, 1], values=buffer(x), counts=counts)
    numpy.testing.assert_array_equal(contents(counts, numpy.int32), numpy.bincount(x, minlength=50))


@check
def textures():
    x = random.random((48, 64), numpy.float32)
    usage = slangpy.TextureUsage.shader_resource
    image = device.create_texture(format=slangpy.Format.r32_float, width=64, height=48, usage=usage, data=x)
    result = buffer(numpy.zeros(48 * 64, numpy.float32))
    dispatch("blurred", [64, 48, 1], image=image, result=result)
    padded = numpy.pad(x, 1, mode="edge")
    wanted = sum(padded[i : i + 48, j : j + 64] for i in range(3) for j in range(3)) / 9
    numpy.testing.assert_allclose(contents(result, numpy.float32).reshape(48, 64), wanted, rtol=1e-5)


if __name__ == "__main__":
    main()
