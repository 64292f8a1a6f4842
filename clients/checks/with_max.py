"""Graphs of tensors that MAX compiles for the device, its kernels in Mojo, beside NumPy. What of a graph is asked for together is compiled together."""

import math

import numpy
from checking import check, main
from max.driver import CPU, Accelerator, Buffer
from max.dtype import DType
from max.engine import InferenceSession
from max.graph import DeviceRef, Graph, TensorType, ops

DEVICE = Accelerator()
SESSION = InferenceSession(devices=[DEVICE])
random = numpy.random.default_rng(3)


def floats(*shape):
    return random.standard_normal(shape).astype(numpy.float32)


def computed(function, *arrays):
    """What a function of tensors gives for these arrays, on the device."""
    types = {"float32": DType.float32, "int64": DType.int64}
    inputs = [TensorType(types[array.dtype.name], array.shape, device=DeviceRef.GPU()) for array in arrays]
    with Graph(function.__name__, input_types=inputs) as graph:
        graph.output(*function(*(value.tensor for value in graph.inputs)))
    model = SESSION.load(graph)
    results = model.execute(*(Buffer.from_numpy(array).to(DEVICE) for array in arrays))
    return [result.to(CPU()).to_numpy() for result in results]


def softmax(x):
    powers = numpy.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@check
def elements_and_rows():
    x, y, scale, shift = floats(40, 500), floats(500), floats(500), floats(500)

    def graph(x, y, scale, shift):
        return [
            ops.gelu(x) + ops.sigmoid(y),
            ops.where(x > y, ops.tanh(x), ops.exp(y)),
            ops.erf(x) * ops.rsqrt(ops.abs(y) + 1),
            ops.round(x * 3) + ops.floor(y),
            ops.sum(x, axis=1),
            ops.max(x, axis=1),
            ops.argmax(x, axis=1),
            ops.mean(x, axis=0),
            ops.cumsum(x, axis=1),
            ops.softmax(x),
            ops.layer_norm(x, scale, shift, 1e-5),
            ops.rms_norm(x, scale, 1e-5),
            *ops.top_k(x, 7),
        ]

    given = computed(graph, x, y, scale, shift)
    erf = numpy.vectorize(math.erf)
    centred = x - x.mean(1, keepdims=True)
    wanted = [
        x * (1 + erf(x / math.sqrt(2))) / 2 + 1 / (1 + numpy.exp(-y)),
        numpy.where(x > y, numpy.tanh(x), numpy.exp(y)),
        erf(x) / numpy.sqrt(numpy.abs(y) + 1),
        numpy.round(x * 3) + numpy.floor(y),
        x.sum(1, keepdims=True),
        x.max(1, keepdims=True),
        x.argmax(1)[:, None],
        x.mean(0, keepdims=True),
        x.cumsum(1),
        softmax(x),
        centred / numpy.sqrt(x.var(1, keepdims=True) + 1e-5) * scale + shift,
        x / numpy.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * scale,
        -numpy.sort(-x, 1)[:, :7],
        numpy.argsort(-x, 1)[:, :7],
    ]
    for number, (one, other) in enumerate(zip(given, wanted, strict=True)):
        numpy.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=f"output {number}")


@check
def images_and_places():
    x, weights, table = floats(1, 12, 12, 8), floats(3, 3, 8, 16), floats(50, 16)
    at, line = random.integers(0, 50, 30).astype(numpy.int64), floats(1000)

    def graph(x, weights, table, at, line):
        rows = ops.gather(table, at, 0)
        return [
            ops.conv2d(x, weights, padding=(1, 1, 1, 1)),
            ops.max_pool2d(x, (2, 2), 2),
            ops.avg_pool2d(x, (3, 3), 3),
            rows,
            ops.scatter_add(table, rows, ops.broadcast_to(ops.unsqueeze(at, 1), (30, 16)), 0),
            ops.argsort(line),
        ]

    given = computed(graph, x, weights, table, at, line)
    padded = numpy.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    places = [(i, j) for i in range(3) for j in range(3)]
    added = table.copy()
    numpy.add.at(added, at, table[at])
    wanted = [
        sum(numpy.einsum("nhwc,cd->nhwd", padded[:, i : i + 12, j : j + 12], weights[i, j]) for i, j in places),
        x.reshape(1, 6, 2, 6, 2, 8).max((2, 4)),
        x.reshape(1, 4, 3, 4, 3, 8).mean((2, 4)),
        table[at],
        added,
        numpy.argsort(line),
    ]
    for number, (one, other) in enumerate(zip(given, wanted, strict=True)):
        # Products take the places that tf32 has.
        numpy.testing.assert_allclose(one, other, rtol=1e-2, atol=5e-2 if number == 0 else 1e-5, err_msg=f"output {number}")


@check
def products_and_attention():
    a, b, q, k, v = floats(128, 192), floats(192, 256), floats(4, 64, 64), floats(4, 64, 64), floats(4, 64, 64)

    def graph(a, b, q, k, v):
        small = ops.cast(a, DType.bfloat16) @ ops.cast(b, DType.bfloat16)
        attention = ops.softmax(q @ ops.transpose(k, 1, 2) * 0.125) @ v
        return [a @ b, ops.cast(small, DType.float32), attention]

    given = computed(graph, a, b, q, k, v)
    wanted = [a @ b, a @ b, softmax(q @ k.transpose(0, 2, 1) / 8) @ v]
    for one, other, tolerance in zip(given, wanted, (5e-2, 0.4, 2e-2), strict=True):
        numpy.testing.assert_allclose(one, other, rtol=2e-2, atol=tolerance)


if __name__ == "__main__":
    main()
