"""Monitors at work: what they say of a device, and of a process that uses it."""

import ctypes
import os
import subprocess
import sys

import pynvml
import pytest

MIB = 1 << 20

# A process with a context and memory, which says when it is ready and waits to be ended.
USER = f"""
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t({64 * MIB})) == 0
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def user():
    process = subprocess.Popen([sys.executable, "-c", USER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def device():
    pynvml.nvmlInit()
    yield pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()


def test_pynvml_describes_the_device_as_the_driver_does(device):
    cuda = ctypes.CDLL("libcuda.so.1")
    name, uuid, count = ctypes.create_string_buffer(96), (ctypes.c_ubyte * 16)(), ctypes.c_int()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
    assert cuda.cuDeviceGetName(name, 96, 0) == 0 and cuda.cuDeviceGetUuid(uuid, 0) == 0
    assert pynvml.nvmlDeviceGetCount() == count.value
    assert pynvml.nvmlDeviceGetName(device) == name.value.decode()
    assert pynvml.nvmlDeviceGetUUID(device).replace("-", "") == "GPU" + bytes(uuid).hex()
    found = pynvml.nvmlDeviceGetHandleByPciBusId(pynvml.nvmlDeviceGetPciInfo(device).busId)
    assert pynvml.nvmlDeviceGetIndex(found) == 0
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(device)
    assert (major, minor) >= (5, 0)


def test_pynvml_sees_memory_and_processes(device, user):
    memory = pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2)
    assert memory.total == memory.free + memory.used + memory.reserved and memory.used >= 64 * MIB
    processes = {process.pid: process for process in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}
    assert processes[user].usedGpuMemory >= 64 * MIB
    assert pynvml.nvmlDeviceGetGraphicsRunningProcesses(device) == []


def test_what_is_not_there_is_not_supported(device):
    for ask in (pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetEccMode, pynvml.nvmlDeviceGetSerial):
        with pytest.raises(pynvml.NVMLError_NotSupported):
            ask(device)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetHandleByIndex(1000)


def test_every_function_that_pynvml_knows_resolves(device):
    source = open(pynvml.__file__).read()
    library = ctypes.CDLL("libnvidia-ml.so.1")
    names = {part.split('"')[0] for part in source.split('_nvmlGetFunctionPointer("')[1:]}
    assert len(names) > 400
    assert [name for name in sorted(names) if name.startswith("nvml") and not hasattr(library, name)] == []


def test_processes_go_when_they_end(device):
    assert os.getpid() not in [process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(device)]


def test_nvitop_shows_the_device_and_its_processes(user):
    import nvitop  # Not before: it puts functions of its own into pynvml.

    device = nvitop.Device.all()[0]
    assert device.memory_total() > 0 and device.memory_used() >= 64 * MIB
    process = device.processes()[user]
    assert process.gpu_memory() >= 64 * MIB and process.type == "C"
    table = subprocess.run([sys.executable, "-m", "nvitop", "-1"], capture_output=True, text=True).stdout
    assert str(user) in table and "CUDA Driver Version" in table


def test_gpustat_shows_the_same(user):
    import gpustat  # Likewise.

    [device, *_] = gpustat.new_query()
    assert device.name and device.memory_used >= 64
    assert user in [process["pid"] for process in device.processes]
