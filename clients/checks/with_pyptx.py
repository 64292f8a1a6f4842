"""The examples of pyptx, launched as its own launcher would, compared with NumPy."""

import ctypes
import importlib
import math

import ml_dtypes
import numpy
from checking import check, main
from cuda.bindings import driver
from pyptx.emitter import emit
from pyptx.jax_support import synthesize_tma_descriptor, synthesize_tma_descriptor_3d
from pyptx.specs import Layout, unify_envs

bf16 = ml_dtypes.bfloat16
TYPES = {"bf16": bf16, "f32": numpy.float32, "u32": numpy.uint32}
random = numpy.random.default_rng(5)


def ask(answer):
    """What a call answers beside its code."""
    assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer[0]
    return answer[1] if len(answer) == 2 else answer[1:]


ask(driver.cuInit(0))
ask(driver.cuCtxSetCurrent(ask(driver.cuDevicePrimaryCtxRetain(0))))


def example(name):
    return importlib.import_module(f"pyptx.examples.{name}")


def tensor_map(spec, shape, environment):
    """The description of a tensor that the kernel asks for, on the host, and where it is to be on the device."""
    box = spec.tma_box and tuple(environment.get(size, size) for size in spec.tma_box)
    if spec.tma_rank == 3:
        swizzled = spec.layout == Layout.TMA_128B
        kind = {"swizzle_128b": swizzled, "padding": spec.tma_padding}
        return synthesize_tma_descriptor_3d(*shape, spec.dtype, *box, **kind)
    return synthesize_tma_descriptor(shape, spec.dtype, spec.layout, box)


def launch(kernel, *inputs):
    """What the kernel makes of these arrays."""
    environment = unify_envs([spec.extract_env(array.shape) for spec, array in zip(kernel.in_specs, inputs)])
    kind = {"shape_env": environment, "template_kwargs": kernel.template_params, "raw_param_kwargs": {}}
    scalars = kernel._resolve_callable_raw_params(**kind)
    traced = kernel._trace(_shape_env=environment)
    module = ask(driver.cuModuleLoadData(emit(traced).encode() + b"\0"))
    function = ask(driver.cuModuleGetFunction(module, kernel.__name__.encode()))
    shared = max(kernel.smem, kernel._last_trace_smem)
    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    ask(driver.cuFuncSetAttribute(function, most, shared))

    specs = [*kernel.in_specs, *kernel.out_specs]
    shapes = [spec.resolve_shape(environment) for spec in specs]
    results = [numpy.full(shape, 7, TYPES[spec.dtype.name]) for spec, shape in zip(specs, shapes)][len(inputs) :]
    arrays = [*map(numpy.ascontiguousarray, inputs), *results]
    places = [ask(driver.cuMemAlloc(array.nbytes)) for array in arrays]
    for place, array in zip(places, arrays):
        ask(driver.cuMemcpyHtoD(place, array.ctypes.data, array.nbytes))
    arguments = [(int(place), ctypes.c_uint64) for place in places]
    arguments += [(bits, {4: ctypes.c_uint32, 8: ctypes.c_uint64}[size]) for _, _, bits, size in scalars]
    for name in kernel._tma_names_by_module_id[id(traced)]:
        at = kernel._positional_names.index(name)
        described, on_host, on_device = tensor_map(specs[at], shapes[at], environment)
        ask(driver.cuTensorMapReplaceAddress(described, int(places[at])))
        ask(driver.cuMemcpyHtoD(on_device, on_host, 128))
        arguments.append((on_device, ctypes.c_uint64))

    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = kernel._resolve_grid(environment)
    config.blockDimX, config.blockDimY, config.blockDimZ = kernel.block
    config.sharedMemBytes = shared
    if kernel.cluster != (1, 1, 1):
        cluster = driver.CUlaunchAttribute()
        cluster.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = cluster.value.clusterDim
        size.x, size.y, size.z = kernel.cluster
        config.attrs, config.numAttrs = [cluster], 1
    ask(driver.cuLaunchKernelEx(config, function, tuple(zip(*arguments)), 0))
    ask(driver.cuCtxSynchronize())
    for place, array in zip(places[len(inputs) :], results):
        ask(driver.cuMemcpyDtoH(array.ctypes.data, place, array.nbytes))
    return results[0]


def numbers(*shape, dtype=numpy.float32):
    return random.standard_normal(shape, dtype=numpy.float32).astype(dtype)


def floats(array):
    return numpy.asarray(array, numpy.float32)


def agree(found, expected, tolerance):
    numpy.testing.assert_allclose(floats(found), floats(expected), atol=tolerance, rtol=tolerance)


def product(name, builder, rows, columns, depth):
    left, right = numbers(rows, depth, dtype=bf16), numbers(columns, depth, dtype=bf16)
    kernel = getattr(example(name), builder)(rows, columns, depth)
    agree(launch(kernel, left, right), floats(left) @ floats(right).T, 1e-3)


@check
def product_of_a_warp():
    product("ampere.gemm", "build_gemm", 64, 32, 64)


@check
def product_in_stages():
    product("ampere.gemm_pipelined", "build_gemm_pipelined", 128, 128, 128)


@check
def product_of_a_ring_of_copies():
    product("ampere.gemm_highperf_ampere", "build_gemm_highperf", 256, 256, 256)


@check
def products_of_groups():
    groups, rows, columns, depth = 2, 128, 64, 128
    left, right = numbers(groups, rows, depth, dtype=bf16), numbers(groups, depth, columns, dtype=bf16)
    kernel = example("hopper.grouped_gemm").build_grouped_gemm(groups, rows, columns, depth)
    stacked = [array.reshape(groups * array.shape[1], -1) for array in (left, right)]
    agree(launch(kernel, *stacked).reshape(groups, rows, columns), floats(left) @ floats(right), 1e-3)


@check
def product_of_specialised_warps():
    """In clusters that take tiles in the order of a curve; what it makes is transposed."""
    module, size = example("hopper.gemm_highperf_hopper"), 512
    left, right = numbers(size, size, dtype=bf16), numbers(size, size, dtype=bf16)
    order = module.create_hilbert_schedule(size // (module.BM * module.CLUSTER_M), size // module.BN)
    found = launch(module.gemm_warp_specialized, left, right, order.view(numpy.uint32))
    agree(found, (floats(left) @ floats(right).T).T, 1e-2)


def for_both(name, builder, rows, columns, inputs, expected):
    """A kernel that has the same source for both devices."""
    for arch in ("sm_80", "sm_90a"):
        kernel = getattr(example(f"hopper.{name}"), builder)(rows, columns, arch=arch)
        agree(launch(kernel, *inputs), expected, 1e-4)


@check
def softmax():
    for rows, columns in ((16, 2048), (3, 288)):
        values = numbers(rows, columns)
        powers = numpy.exp(values - values.max(1, keepdims=True))
        for_both("softmax", "build_softmax", rows, columns, [values], powers / powers.sum(1, keepdims=True))


@check
def norms():
    values, scales, shifts = numbers(16, 1024), numbers(1024), numbers(1024)
    squares = (values * values).mean(1, keepdims=True)
    for_both("rms_norm", "build_rms_norm", 16, 1024, [values, scales], values / numpy.sqrt(squares + 1e-6) * scales)
    middle = values - values.mean(1, keepdims=True)
    squares = (middle * middle).mean(1, keepdims=True)
    normal = middle / numpy.sqrt(squares + 1e-5) * scales + shifts
    for_both("layer_norm", "build_layer_norm", 16, 1024, [values, scales, shifts], normal)


@check
def gates():
    gates, values = numbers(16, 1024), numbers(16, 1024)
    expected = gates / (1 + numpy.exp(-gates)) * values
    for_both("swiglu", "build_fused_silu_mul", 16, 1024, [gates, values], expected)


def attends(kernel, queries, keys, width):
    """Attention of so many queries to keys. Its keys come transposed."""
    query, key, value = (numbers(count, width, dtype=bf16) for count in (queries, keys, keys))
    scores = floats(query) @ floats(key).T / math.sqrt(width)
    weights = numpy.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ floats(value)
    agree(launch(kernel, query, key.T, value), expected, 2e-2)


@check
def attention():
    folder = "hopper.experimental.flash_attention"
    attends(example(f"{folder}_parallel").build_flash_attention_parallel(128, 64), 128, 64, 16)
    attends(example(f"{folder}_wgmma_kloop").build_flash_attention_kloop(64), 64, 64, 16)
    # Heads of 64 numbers are left out: the weights there overwrite the queries, since their place in dynamic shared memory is forgotten.
    for width in (16, 32):
        kernel = example(f"{folder}_hopper").build_flash_attention_hopper(256, 256, width)
        attends(kernel, 256, 256, width)


if __name__ == "__main__":
    main()
