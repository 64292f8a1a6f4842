"""What StreamLZ compresses and gets back: there is no other implementation for CPUs, so frames must shrink, and come back as they were."""

import ctypes
import ctypes.util

import numpy
import streamlz
from checking import check, main

# Its library takes the context that is current.
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0

random = numpy.random.default_rng(5)
words = ["stream", "warp", "the", "of", "lane", "block", "and", "a", "thread", "is"]
TEXT = " ".join(random.choice(words, 30000)).encode()
WAVE = (1000 * numpy.sin(numpy.arange(40000) / 300)).astype(numpy.int32).tobytes()
NOISE = random.bytes(70000)
codec = streamlz.Compressor(backend="cuda")


def returns(data, shrinks=1.0, **options):
    """That a frame of this is smaller by a factor, and leads back to it."""
    frame = codec.compress(data, **options)
    assert len(frame) <= len(data) / shrinks + 100, f"{len(data)} bytes became {len(frame)}"
    assert codec.decompress(frame) == data, f"something else came back of {len(frame)} bytes"
    return frame


@check
def levels():
    sizes = [len(returns(TEXT, 2, level=level)) for level in range(1, 7)]
    assert sizes[5] < sizes[4] < sizes[2] < sizes[0], f"better levels are no better: {sizes}"


@check
def the_best_level():
    returns(TEXT[:20000], 4, level=7)


@check
def noise_and_nothing():
    for level in (1, 3, 5):
        returns(NOISE, level=level)
        assert len(returns(bytes(300000), level=level)) < 1000
        for data in (b"x", b"short", b"ab" * 100):
            returns(data, level=level)


@check
def records():
    plain = len(returns(WAVE, level=5))
    for stride in (2, 4, 8, 12):
        returns(WAVE, level=5, byte_plane_stride=stride)
    assert len(returns(WAVE, level=5, byte_plane_stride=4)) < plain
    returns(WAVE, level=5, byte_plane_stride=4, byte_plane_delta=True)


@check
def programs():
    with open(ctypes.util.__file__.replace("util.py", "__init__.py"), "rb") as file:
        source = file.read()
    with open("/proc/self/exe", "rb") as file:
        machine = file.read(200000)
    returns(source, 2, level=6, wrt=True)
    for code in (streamlz.cuda.CODE_FILTER_X86, streamlz.cuda.CODE_FILTER_ARM64):
        returns(machine, level=3, code_filter=code)


@check
def distant_matches_only():
    returns(TEXT, 1.5, level=4, min_match_distance=32)


@check
def memory_of_the_device():
    pointers = [ctypes.c_uint64() for _ in range(3)]
    for pointer in pointers:
        assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(2 * len(TEXT))) == 0
    source, frame, back = (pointer.value for pointer in pointers)
    assert cuda.cuMemcpyHtoD_v2(pointers[0], TEXT, ctypes.c_size_t(len(TEXT))) == 0
    size = codec.compress_d2d(source, len(TEXT), frame, 2 * len(TEXT), level=5)
    assert 0 < size < len(TEXT) / 3, size
    codec.decompress_d2d(frame, size, back, len(TEXT))
    found = ctypes.create_string_buffer(len(TEXT))
    assert cuda.cuCtxSynchronize() == cuda.cuMemcpyDtoH_v2(found, pointers[2], ctypes.c_size_t(len(TEXT))) == 0
    assert found.raw == TEXT


@check
def broken_frames():
    frame = bytearray(codec.compress(TEXT, level=5))
    frame[:8] = b"\xff" * 8
    try:
        codec.decompress(bytes(frame))
    except streamlz.cuda.StreamLZError:
        return returns(TEXT, 2, level=5)
    raise AssertionError("a broken frame was taken")


if __name__ == "__main__":
    main()
