"""What Dr.Jit traces and writes as PTX, compared with NumPy."""

import drjit as dr
import numpy
from checking import check, main
from drjit.cuda import Array3f, Float, Float64, Int, Matrix3f, UInt, UInt64
from drjit.cuda.ad import Float as Differentiable


def close(found, wanted, tolerance=1e-5):
    """Compares what came from the device."""
    numpy.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)


def samples(count=1000):
    """Numbers that look random and are the same every time."""
    return numpy.random.default_rng(7).uniform(0.1, 4, count).astype(numpy.float32)


@check
def mathematics():
    host = samples()
    x = Float(host)
    close(dr.sin(x) + dr.exp(-x), numpy.sin(host) + numpy.exp(-host))
    close(dr.sqrt(x) * dr.rcp(x), numpy.sqrt(host) / host)
    close(dr.log(x) + dr.atan2(x, Float(2)), numpy.log(host) + numpy.arctan2(host, 2))
    close(dr.power(x, 1.5), host**1.5, 1e-4)


@check
def doubles_and_integers():
    host = samples().astype(numpy.float64)
    close(dr.fma(Float64(host), Float64(host), 1 / Float64(host)), host * host + 1 / host, 1e-13)
    index = dr.arange(UInt64, 1000)
    wanted = (numpy.arange(1000, dtype=numpy.uint64) * numpy.uint64(6364136223846793005)) >> numpy.uint64(13)
    assert ((index * 6364136223846793005 >> 13).numpy() == wanted).all()
    signed = dr.arange(Int, 1000) - 500
    assert ((signed // 7).numpy() == numpy.trunc((numpy.arange(1000) - 500) / 7)).all()
    assert (dr.popcnt(dr.arange(UInt, 1000)).numpy() == [bin(i).count("1") for i in range(1000)]).all()


@check
def reductions_and_scans():
    host = samples(100_000)
    x = Float(host)
    numpy.testing.assert_allclose(dr.sum(x).numpy(), host.sum(dtype=numpy.float64), rtol=1e-4)
    assert dr.max(x)[0] == host.max() and dr.min(x)[0] == host.min()
    counts = numpy.arange(10_000, dtype=numpy.uint32) % 7
    assert (dr.cumsum(UInt(counts)).numpy() == numpy.cumsum(counts)).all()
    assert (dr.compress(UInt(counts) == 3).numpy() == numpy.flatnonzero(counts == 3)).all()


@check
def gathers_and_scatters():
    host = samples()
    order = numpy.random.default_rng(1).permutation(1000).astype(numpy.uint32)
    close(dr.gather(Float, Float(host), UInt(order)), host[order])
    target = dr.zeros(Float, 1000)
    dr.scatter(target, Float(host), UInt(order))
    close(dr.gather(Float, target, UInt(order)), host)
    bins = dr.zeros(UInt, 16)
    dr.scatter_reduce(dr.ReduceOp.Add, bins, UInt(1), UInt(order) % 16)
    assert (bins.numpy() == numpy.bincount(order % 16, minlength=16)).all()


@check
def loops_on_the_device():
    start = numpy.arange(1, 1001, dtype=numpy.uint32)

    @dr.syntax
    def steps(n: UInt):
        count = UInt(0)
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            count += 1
        return count

    def wanted(n):
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    assert (steps(UInt(start)).numpy() == [wanted(int(n)) for n in start]).all()


@check
def vectors_and_matrices():
    host = numpy.random.default_rng(3).uniform(-1, 1, (3, 200)).astype(numpy.float32)
    v = Array3f(host)
    close(dr.norm(v), numpy.linalg.norm(host, axis=0))
    turned = Matrix3f(0, -1, 0, 1, 0, 0, 0, 0, 1) @ v
    close(turned, numpy.stack([-host[1], host[0], host[2]]))


@check
def gradients():
    host = samples()
    x = Differentiable(host)
    dr.enable_grad(x)
    dr.backward(dr.sum(x * x + dr.sin(x)))
    close(dr.grad(x), 2 * host + numpy.cos(host), 1e-4)


@check
def calls_by_index():
    functions = [lambda x: x + 1, lambda x: dr.sin(x), lambda x: x * x]
    host, which = samples(), numpy.arange(1000, dtype=numpy.uint32) % 3
    found = dr.switch(UInt(which), functions, Float(host))
    close(found, numpy.choose(which, [host + 1, numpy.sin(host), host * host]))


if __name__ == "__main__":
    main()
