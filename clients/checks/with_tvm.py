"""What TVM computes on the device with its default schedules, beside NumPy. It would have NVRTC make machine code; its hook for another
compiler makes PTX of the same source instead."""

import numpy
import tvm
import tvm_ffi
from checking import check, main
from tvm import relax
from tvm.s_tir import dlight
from tvm.support import nvcc

ARCH = "sm_90"
TARGET = tvm.target.Target({"kind": "cuda", "arch": ARCH, "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152})
RANDOM = numpy.random.default_rng(0)


@tvm_ffi.register_global_func("tvm_callback_cuda_compile", override=True)
def to_ptx(code, target=None):
    return nvcc.compile_cuda(code, target_format="ptx", arch=ARCH, compiler="nvrtc")


def computed(make, *inputs):
    """What a function of tensors gives on the device, where `make` builds its expression of variables."""
    builder = relax.BlockBuilder()
    variables = [relax.Var(f"x{i}", relax.TensorType(x.shape, str(x.dtype))) for i, x in enumerate(inputs)]
    with builder.function("main", variables):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(make(*variables)))
        builder.emit_func_output(result)
    rules = [dlight.gpu.Matmul(), dlight.gpu.GEMV(), dlight.gpu.Reduction(), dlight.gpu.GeneralReduction(), dlight.gpu.Fallback()]
    with TARGET:
        module = tvm.ir.transform.Sequential([relax.get_pipeline("zero"), dlight.ApplyDefaultSchedule(*rules)])(builder.get())
    machine = relax.VirtualMachine(tvm.compile(module, target=TARGET), tvm.cuda(0))
    return machine["main"](*[tvm.runtime.tensor(x, tvm.cuda(0)) for x in inputs]).numpy()


def floats(*shape):
    return RANDOM.normal(size=shape).astype(numpy.float32)


def same(found, wanted, tolerance=1e-5):
    numpy.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@check
def the_device():
    device = tvm.cuda(0)
    assert device.exist and device.compute_version == "9.0" and device.warp_size == 32


@check
def elements():
    x, y = floats(100, 77), floats(77)
    same(computed(lambda x, y: relax.op.exp(relax.op.tanh(x) * y), x, y), numpy.exp(numpy.tanh(x) * y))


@check
def products():
    x, y = floats(96, 160), floats(160, 128)
    same(computed(relax.op.matmul, x, y), x @ y, 1e-4)


@check
def products_with_vectors():
    x, y = floats(1, 300), floats(300, 200)
    same(computed(relax.op.matmul, x, y), x @ y, 1e-4)


@check
def sums_and_extremes():
    x = floats(33, 1000)
    same(computed(lambda x: relax.op.sum(x, axis=1), x), x.sum(axis=1), 1e-3)
    same(computed(lambda x: relax.op.max(x, axis=0), x), x.max(axis=0))


@check
def softmax_and_norms():
    x, gamma, beta = floats(20, 500), floats(500), floats(500)
    powers = numpy.exp(x - x.max(axis=1, keepdims=True))
    same(computed(lambda x: relax.op.nn.softmax(x, axis=1), x), powers / powers.sum(axis=1, keepdims=True))
    wanted = (x - x.mean(axis=1, keepdims=True)) / numpy.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * gamma + beta
    same(computed(lambda x, g, b: relax.op.nn.layer_norm(x, g, b, axes=[-1]), x, gamma, beta), wanted, 1e-4)


@check
def convolution():
    x, kernel = floats(1, 3, 20, 20), floats(5, 3, 3, 3)
    windows = numpy.lib.stride_tricks.sliding_window_view(x[0], (3, 3), axis=(1, 2))
    wanted = numpy.einsum("cyxuv,ocuv->oyx", windows, kernel)[None]
    same(computed(lambda x, k: relax.op.nn.conv2d(x, k), x, kernel), wanted, 1e-4)


@check
def half_precision():
    x = floats(64, 64).astype(numpy.float16)
    same(computed(lambda x: relax.op.nn.relu(x) + x, x), numpy.maximum(x, 0) + x, 1e-3)


main()
