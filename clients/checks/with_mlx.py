"""MLX, compared with NumPy: arithmetic, reductions, scans, sorts, indexing, functions that it compiles, gradients, what transformers are made of."""

import math

import mlx.core as mx
import numpy as np

from checking import check, main

RNG = np.random.default_rng(7)


def close(found, expected, bits=12):
    """Whether both are the same up to a relative error of 2^-bits of the largest."""
    found, expected = np.array(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape, f"{found.shape}, not {expected.shape}"
    error = np.abs(found - expected).max(initial=0)
    limit = np.abs(expected).max(initial=1) * 2.0**-bits
    assert error <= limit, f"off by {error}"


@check
def arithmetic():
    assert mx.default_device() == mx.Device(mx.gpu, 0)
    for size in (1, 7, 4096, 100_003):
        a, b = RNG.standard_normal(size).astype(np.float32), RNG.uniform(0.5, 2, size).astype(np.float32)
        x, y = mx.array(a), mx.array(b)
        close(x * y + x / y - y, a * b + a / b - b, 20)
        close(mx.exp(x) + mx.sin(y) * mx.log(y) + mx.sqrt(y), np.exp(a) + np.sin(b) * np.log(b) + np.sqrt(b), 18)
        close(mx.erf(x), [math.erf(value) for value in a], 18)
        close(mx.tanh(x) + mx.sigmoid(y) + mx.power(y, x), np.tanh(a) + 1 / (1 + np.exp(-b)) + b**a, 16)
        close(x.astype(mx.float16) + y.astype(mx.float16), a.astype(np.float16) + b.astype(np.float16), 9)
        close((x.astype(mx.bfloat16) * y.astype(mx.bfloat16)).astype(mx.float32), a * b, 6)
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        a = RNG.integers(1, 100, 1001).astype(kind)
        b = RNG.integers(1, 100, 1001).astype(kind)
        x, y = mx.array(a), mx.array(b)
        for found, expected in ((x + y, a + b), (x // y, a // b), (x % y, a % b), (x & y, a & b), (x << (y & 3), a << (b & 3))):
            assert np.array_equal(np.array(found), expected), kind
    a = (RNG.standard_normal(501) + 1j * RNG.standard_normal(501)).astype(np.complex64)
    close(mx.abs(mx.array(a) * mx.array(a[::-1].copy())), np.abs(a * a[::-1]), 18)


@check
def shapes():
    a = RNG.standard_normal((6, 36, 17)).astype(np.float32)
    b = RNG.standard_normal((36, 1)).astype(np.float32)
    x, y = mx.array(a), mx.array(b)
    close(x + y, a + b, 20)
    close(mx.transpose(x, (2, 0, 1)) * 2, a.transpose(2, 0, 1) * 2, 20)
    close(x[:, ::3, 1:-2] - x[:, 1::3, 3:], a[:, ::3, 1:-2] - a[:, 1::3, 3:], 20)
    close(mx.concatenate([x, x[:, :5]], axis=1), np.concatenate([a, a[:, :5]], axis=1), 20)
    close(mx.pad(x, [(0, 0), (2, 1), (0, 3)]), np.pad(a, [(0, 0), (2, 1), (0, 3)]), 20)
    close(mx.where(x > y, x, y), np.where(a > b, a, b), 20)
    close(mx.repeat(x, 3, axis=1), np.repeat(a, 3, axis=1), 20)
    close(mx.tri(9, 7, 1), np.tri(9, 7, 1))


@check
def reductions():
    for shape, axes in (((100_000,), None), ((37, 513), 0), ((37, 513), 1), ((5, 64, 33), (0, 2)), ((4, 5, 6, 7), (1,)), ((3, 4096), -1)):
        a = RNG.standard_normal(shape).astype(np.float32)
        x = mx.array(a)
        close(mx.sum(x, axis=axes), a.astype(np.float64).sum(axis=axes), 16)
        close(mx.max(x, axis=axes), a.max(axis=axes), 24)
        close(mx.min(x, axis=axes), a.min(axis=axes), 24)
        close(mx.var(x, axis=axes), a.astype(np.float64).var(axis=axes), 14)
        close(mx.prod(1 + x * 1e-4, axis=axes), (1 + a.astype(np.float64) * 1e-4).prod(axis=axes), 8)
        assert np.array_equal(np.array(mx.any(x > 2.5, axis=axes)), (a > 2.5).any(axis=axes))
        assert np.array_equal(np.array(mx.all(x > -2.5, axis=axes)), (a > -2.5).all(axis=axes))
    a = RNG.integers(-1000, 1000, (77, 1025))
    for kind in ("int32", "int64", "uint8"):
        assert np.array_equal(np.array(mx.sum(mx.array(a.astype(kind)).astype(mx.int64), axis=1)), a.astype(kind).astype(np.int64).sum(axis=1))
    assert np.array_equal(np.array(mx.argmax(mx.array(a), axis=1)), a.argmax(axis=1))
    assert np.array_equal(np.array(mx.argmin(mx.array(a), axis=0)), a.argmin(axis=0))
    b = RNG.standard_normal((33, 1000)).astype(np.float32)
    wanted = np.exp(b - b.max(axis=1, keepdims=True))
    close(mx.softmax(mx.array(b), axis=1), wanted / wanted.sum(axis=1, keepdims=True), 18)
    close(mx.logsumexp(mx.array(b), axis=1), np.log(np.exp(b.astype(np.float64)).sum(axis=1)), 18)


@check
def scans():
    a = RNG.standard_normal((21, 3001)).astype(np.float32)
    for axis in (0, 1):
        close(mx.cumsum(mx.array(a), axis=axis), a.astype(np.float64).cumsum(axis=axis), 14)
        close(mx.cummax(mx.array(a), axis=axis), np.maximum.accumulate(a, axis=axis), 24)
        close(mx.cumsum(mx.array(a), axis=axis, reverse=True), np.flip(np.flip(a.astype(np.float64), axis).cumsum(axis), axis), 14)
    b = RNG.integers(0, 9, 70_000)
    assert np.array_equal(np.array(mx.cumsum(mx.array(b))), b.cumsum())


@check
def sorts():
    for kind in ("float32", "int32", "uint8", "int64"):
        for shape in ((10,), (12, 1000), (3, 20_000)):
            a = (RNG.standard_normal(shape) * 1000).astype(kind)
            assert np.array_equal(np.array(mx.sort(mx.array(a))), np.sort(a)), f"{kind} {shape}"
            order = np.array(mx.argsort(mx.array(a))).astype(np.int64)
            assert np.array_equal(np.take_along_axis(a, order, -1), np.sort(a)), f"{kind} {shape}"
    a = RNG.standard_normal((40, 33)).astype(np.float32)
    assert np.array_equal(np.array(mx.sort(mx.array(a), axis=0)), np.sort(a, axis=0))
    assert np.array_equal(np.sort(np.array(mx.topk(mx.array(a), 5))), np.sort(a)[:, -5:])


@check
def indexing():
    a = RNG.standard_normal((50, 20)).astype(np.float32)
    rows, columns = RNG.integers(0, 50, 300), RNG.integers(0, 20, 300)
    x = mx.array(a)
    close(x[mx.array(rows)], a[rows], 24)
    close(x[mx.array(rows), mx.array(columns)], a[rows, columns], 24)
    close(mx.take_along_axis(x, mx.array(columns[:50, None]), axis=1), np.take_along_axis(a, columns[:50, None], axis=1), 24)
    ones = np.ones(300, dtype=np.float32)
    expected = a.copy()
    np.add.at(expected, (rows, columns), ones)
    close(x.at[mx.array(rows), mx.array(columns)].add(mx.array(ones)), expected, 18)
    expected = a.copy()
    np.maximum.at(expected, (rows, columns), ones * 0.5)
    close(x.at[mx.array(rows), mx.array(columns)].maximum(mx.array(ones * 0.5)), expected, 24)
    expected = a.copy()
    expected[3:30:4, 2:9] = 5
    x[3:30:4, 2:9] = 5
    close(x, expected, 24)
    expected = a.copy()
    np.put_along_axis(expected, columns[:50, None], 7, axis=1)
    close(mx.put_along_axis(mx.array(a), mx.array(columns[:50, None]), mx.array(7.0), axis=1), expected, 24)


@check
def compiled():
    """Functions that it makes one kernel of, through NVRTC."""
    a, b = (RNG.standard_normal((64, 100)).astype(np.float32) for _ in range(2))

    @mx.compile
    def fused(x, y):
        z = mx.exp(-mx.abs(x)) * y
        return z + mx.sin(z) * 2, mx.where(z > 0, z, x * 0.01)

    for x, y, p, q in ((mx.array(a), mx.array(b), a, b), (mx.array(a).T, mx.array(b).T, a.T, b.T), (mx.array(a), mx.array(b[:1]), a, b[:1])):
        z = np.exp(-np.abs(p)) * q
        first, second = fused(x, y)
        close(first, z + np.sin(z) * 2, 18)
        close(second, np.where(z > 0, z, p * np.float32(0.01)), 18)


@check
def own_kernels():
    """A kernel in CUDA C++ that a program hands over."""
    kernel = mx.fast.cuda_kernel(
        name="neighbours",
        input_names=["inp"],
        output_names=["out"],
        source="""
            auto at = cooperative_groups::this_grid().thread_rank();
            auto size = inp_shape[0];
            if (at < size) {
                T left = at > 0 ? inp[at - 1] : T(0);
                T right = at + 1 < size ? inp[at + 1] : T(0);
                out[at] = left + inp[at] * T(2) + right;
            }
        """,
    )
    a = RNG.standard_normal(1000).astype(np.float32)
    (found,) = kernel(
        inputs=[mx.array(a)], template=[("T", mx.float32)], grid=(1000, 1, 1), threadgroup=(128, 1, 1),
        output_shapes=[(1000,)], output_dtypes=[mx.float32],
    )
    close(found, np.convolve(a, [1, 2, 1], "same"), 20)


@check
def transformers():
    a = RNG.standard_normal((3, 65, 512)).astype(np.float32)
    weight, bias = (RNG.standard_normal(512).astype(np.float32) for _ in range(2))
    x = mx.array(a)
    norm = a / np.sqrt((a.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5)
    close(mx.fast.rms_norm(x, mx.array(weight), 1e-5), norm * weight, 16)
    centred = a - a.mean(-1, keepdims=True)
    close(mx.fast.layer_norm(x, mx.array(weight), mx.array(bias), 1e-5), centred / np.sqrt(a.var(-1, keepdims=True) + 1e-5) * weight + bias, 14)
    b = RNG.standard_normal((2, 4, 9, 64)).astype(np.float32)
    angles = (np.arange(9) + 3)[:, None] * 10000.0 ** (-np.arange(32) / 32)
    even, odd = b[..., :32], b[..., 32:]
    expected = np.concatenate([even * np.cos(angles) - odd * np.sin(angles), even * np.sin(angles) + odd * np.cos(angles)], -1)
    close(mx.fast.rope(mx.array(b), 64, traditional=False, base=10000.0, scale=1.0, offset=3), expected, 14)
    q = RNG.standard_normal((1, 8, 1, 64)).astype(np.float32)
    k, v = (RNG.standard_normal((1, 2, 77, 64)).astype(np.float32) for _ in range(2))
    scores = np.einsum("bhqd,bhkd->bhqk", q, k.repeat(4, 1)) / 8
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), v.repeat(4, 1))
    close(mx.fast.scaled_dot_product_attention(mx.array(q), mx.array(k), mx.array(v), scale=1 / 8), expected, 14)


@check
def quantized():
    """Products of a vector and a matrix of numbers of 4 and 8 bits."""
    weights = RNG.standard_normal((256, 512)).astype(np.float32)
    a = RNG.standard_normal((1, 512)).astype(np.float32)
    for bits in (4, 8):
        packed, scales, biases = mx.quantize(mx.array(weights), group_size=64, bits=bits)
        plain = np.array(mx.dequantize(packed, scales, biases, group_size=64, bits=bits))
        assert np.abs(plain - weights).max() < 6 / 2**bits
        found = mx.quantized_matmul(mx.array(a), packed, scales, biases, transpose=True, group_size=64, bits=bits)
        close(found, a.astype(np.float64) @ plain.T, 12)


@check
def gradients():
    a, b = RNG.standard_normal(200).astype(np.float32), RNG.standard_normal(200).astype(np.float32)

    def loss(x):
        return mx.mean(mx.tanh(x * mx.array(b)) ** 2 + mx.logsumexp(x) * 0.1)

    value, gradient = mx.value_and_grad(loss)(mx.array(a))
    tanh = np.tanh(a * b)
    close(value, np.mean(tanh**2) + np.log(np.exp(a).sum()) * 0.1, 16)
    close(gradient, 2 * tanh * (1 - tanh**2) * b / 200 + 0.1 * np.exp(a) / np.exp(a).sum(), 16)
    second = mx.grad(lambda x: mx.sum(mx.grad(lambda y: mx.sum(y**3))(x)))(mx.array(a))
    close(second, 6 * a, 18)
    weight = mx.array(RNG.uniform(0.5, 2, 300).astype(np.float32))
    c = mx.array(RNG.standard_normal((7, 300)).astype(np.float32))
    for norm in (lambda x, w: mx.fast.rms_norm(x, w, 1e-5), lambda x, w: mx.fast.layer_norm(x, w, w, 1e-5)):
        differentiate = mx.grad(lambda x, w: mx.sum(mx.sin(norm(x, w))), argnums=(0, 1))
        found = [np.array(gradient) for gradient in differentiate(c, weight)]
        with mx.stream(mx.cpu):
            expected = [np.array(gradient) for gradient in differentiate(c, weight)]
        for one, other in zip(found, expected):
            close(one, other, 12)
    close(mx.vmap(lambda x, y: mx.sum(x * y))(mx.array(a.reshape(20, 10)), mx.array(b.reshape(20, 10))), (a * b).reshape(20, 10).sum(1), 18)


@check
def random_numbers():
    key = mx.random.key(3)
    uniform = np.array(mx.random.uniform(shape=(200_000,), key=key))
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.005 and abs(uniform.var() - 1 / 12) < 0.002
    normal = np.array(mx.random.normal(shape=(200_000,), key=key))
    assert abs(normal.mean()) < 0.01 and abs(normal.var() - 1) < 0.02
    found = np.array(mx.random.randint(0, 1 << 20, (1001,), key=key))
    with mx.stream(mx.cpu):
        expected = np.array(mx.random.randint(0, 1 << 20, (1001,), key=key))
    assert np.array_equal(found, expected)
    assert sorted(np.array(mx.random.permutation(1000, key=key))) == list(range(1000))


@check
def streams():
    """Two streams, one of them the CPU's."""
    with mx.stream(mx.new_stream(mx.gpu)):
        a = mx.arange(100_000) * 2
    with mx.stream(mx.cpu):
        b = a + 1
    c = a + b
    assert np.array_equal(np.array(c), np.arange(100_000) * 4 + 1)
    assert mx.get_peak_memory() > 0


main()
