"""cuda-core at work: NVRTC makes the PTX, the driver loads and links it, numpy knows the results."""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Device, EventOptions, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
template <class T> __global__ void scale_add(T a, const T* x, T* y, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * size_t(blockDim.x))
        y[i] += a * x[i];
}

struct Mixed { char letter; double number; short rest[3]; };

extern "C" __global__ void unpack(Mixed mixed, double* out) {
    out[0] = mixed.letter; out[1] = mixed.number; out[2] = mixed.rest[2];
}

__constant__ int table[3] = {5, 7, 11};
__device__ int calls;

extern "C" __global__ void count(int* out) {
    atomicAdd(&calls, 1);
    out[threadIdx.x] = table[threadIdx.x % 3] + __popc(__ballot_sync(~0u, threadIdx.x % 2));
}

extern "C" __global__ void reverse(int* data) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
"""


def ask(answer):
    """The results of a call of cuda.bindings, which must succeed."""
    code, *results = answer
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return results[0] if len(results) == 1 else results


@pytest.fixture(scope="module")
def device():
    device = Device(0)
    device.set_current()
    return device


@pytest.fixture(scope="module")
def stream(device):
    return device.create_stream()


@pytest.fixture(scope="module")
def module(device):
    major, minor = device.compute_capability
    options = ProgramOptions(std="c++17", arch=f"compute_{major}{minor}")
    names = ("scale_add<float>", "scale_add<double>", "scale_add<int>")
    return Program(SOURCE, "c++", options).compile("ptx", name_expressions=names)


def upload(array):
    pointer = ask(driver.cuMemAlloc(array.nbytes))
    ask(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    return pointer


def download(pointer, like):
    array = np.empty_like(like)
    ask(driver.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))
    return array


@pytest.mark.parametrize("name, dtype", [("float", np.float32), ("double", np.float64), ("int", np.int32)])
def test_templates(module, stream, name, dtype):
    x, y = np.arange(4000).astype(dtype), np.full(4000, 3, dtype)
    on_device = upload(x), upload(y)
    kernel = module.get_kernel(f"scale_add<{name}>")
    arguments = (dtype(2), *map(int, on_device), np.uint64(len(x)))
    launch(stream, LaunchConfig(grid=7, block=96), kernel, *arguments)
    stream.sync()
    np.testing.assert_array_equal(download(on_device[1], y), 3 + 2 * x)


def test_shared_memory(module, stream):
    data = np.arange(160, dtype=np.int32)
    pointer = upload(data)
    config = LaunchConfig(grid=1, block=160, shmem_size=data.nbytes)
    launch(stream, config, module.get_kernel("reverse"), int(pointer))
    stream.sync()
    np.testing.assert_array_equal(download(pointer, data), data[::-1])


def test_a_structure_by_value_and_globals(module):
    image = ask(driver.cuModuleLoadData(bytes(module.code) + b"\0"))

    class Mixed(ctypes.Structure):
        _fields_ = [("letter", ctypes.c_char), ("number", ctypes.c_double), ("rest", ctypes.c_short * 3)]

    mixed, out = Mixed(b"k", 2.5, (1, 2, -9)), upload(np.zeros(3))
    target = ctypes.c_void_p(int(out))
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(mixed), ctypes.addressof(target))
    unpack = ask(driver.cuModuleGetFunction(image, b"unpack"))
    ask(driver.cuLaunchKernel(unpack, 1, 1, 1, 1, 1, 1, 0, 0, ctypes.addressof(arguments), 0))
    np.testing.assert_array_equal(download(out, np.zeros(3)), [ord("k"), 2.5, -9])

    results = upload(np.zeros(32, np.int32))
    count = ask(driver.cuModuleGetFunction(image, b"count"))
    arguments = ((int(results),), (ctypes.c_void_p,))
    ask(driver.cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, 0, arguments, 0))
    expected = np.array([5, 7, 11], np.int32)[np.arange(32) % 3] + 16
    np.testing.assert_array_equal(download(results, expected), expected)
    calls, size = ask(driver.cuModuleGetGlobal(image, b"calls"))
    assert size == 4 and download(calls, np.zeros(1, np.int32))[0] == 32
    ask(driver.cuModuleUnload(image))


def test_the_drivers_linker(module):
    link = ask(driver.cuLinkCreate(0, [], []))
    text = bytes(module.code) + b"\0"
    kind = driver.CUjitInputType.CU_JIT_INPUT_PTX
    ask(driver.cuLinkAddData(link, kind, text, len(text), b"a.ptx", 0, [], []))
    image, size = ask(driver.cuLinkComplete(link))
    loaded = ask(driver.cuModuleLoadData(ctypes.string_at(int(image), size)))
    ask(driver.cuModuleGetFunction(loaded, b"reverse"))
    ask(driver.cuLinkDestroy(link))


def test_a_captured_graph(stream):
    words = upload(np.zeros(64, np.int32))
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    ask(driver.cuStreamBeginCapture(int(stream.handle), mode))
    ask(driver.cuMemsetD32Async(words, 9, 64, int(stream.handle)))
    graph = ask(driver.cuStreamEndCapture(int(stream.handle)))
    executable = ask(driver.cuGraphInstantiate(graph, 0))
    assert not download(words, np.zeros(64, np.int32)).any()
    ask(driver.cuGraphLaunch(executable, int(stream.handle)))
    stream.sync()
    assert (download(words, np.zeros(64, np.int32)) == 9).all()


def test_events_keep_time(device, stream, module):
    options = EventOptions(timing_enabled=True)
    begin, end = device.create_event(options), device.create_event(options)
    pointer = upload(np.zeros(256, np.int32))
    stream.record(begin)
    launch(stream, LaunchConfig(grid=1, block=256, shmem_size=1024), module.get_kernel("reverse"), int(pointer))
    stream.record(end)
    end.sync()
    assert end - begin >= 0


def test_buffers_of_the_pool(device, stream):
    buffer = device.allocate(4096, stream=stream)
    assert buffer.size == 4096 and buffer.is_device_accessible
    buffer.close(stream)
    stream.sync()


def test_properties(device):
    properties = device.properties
    assert properties.warp_size == 32 and properties.max_threads_per_block == 1024
    assert properties.multiprocessor_count > 0 and device.name


def test_mistakes_have_codes():
    assert driver.cuMemFree(0x1234)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    assert driver.cuModuleLoadData(b"no PTX\0")[0] == driver.CUresult.CUDA_ERROR_INVALID_IMAGE
