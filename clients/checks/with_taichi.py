"""What Taichi, or its successor Quadrants, does on the device, compared with NumPy. The argument is the package's name."""

import importlib
import sys

import numpy
from checking import check, main

ti = importlib.import_module(sys.argv[1])
ti.init(arch=ti.cuda, offline_cache=False, random_seed=5, debug=False)


def close(found, wanted, tolerance=1e-5):
    """Compares what came from the device."""
    numpy.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def samples(count=1000, kind=numpy.float32):
    """Numbers that look random and are the same every time."""
    return numpy.random.default_rng(7).uniform(-4, 4, count).astype(kind)


@check
def the_device_is_used():
    assert ti.cfg.arch == ti.cuda, ti.cfg.arch


@check
def fractal():
    width, height = 64, 32
    pixels = ti.field(ti.i32, shape=(width, height))

    @ti.kernel
    def paint():
        for i, j in pixels:
            z, count = ti.Vector([i / 16.0 - 2.0, j / 16.0 - 1.0]), 0
            while z.norm() < 20 and count < 50:
                z = ti.Vector([z[0] ** 2 - z[1] ** 2 - 0.8, z[1] * z[0] * 2 + 0.156])
                count += 1
            pixels[i, j] = count

    paint()
    x, y = numpy.meshgrid(numpy.arange(width), numpy.arange(height), indexing="ij")
    z = (x / 16 - 2 + 1j * (y / 16 - 1)).astype(numpy.complex64)
    wanted = numpy.zeros((width, height), numpy.int32)
    for _ in range(50):
        inside = numpy.abs(z) < 20
        wanted += inside
        z = numpy.where(inside, z * z + numpy.complex64(-0.8 + 0.156j), z)
    # Rounding decides the last step of a few points.
    assert numpy.mean(pixels.to_numpy() == wanted) > 0.98


@check
def arrays_of_the_host():
    host = samples()

    @ti.kernel
    def double(a: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in a:
            a[i] = 2 * a[i] + i

    passed = host.copy()
    double(passed)
    close(passed, 2 * host + numpy.arange(1000))
    kept = ti.ndarray(ti.f32, shape=1000)
    kept.from_numpy(host)
    double(kept)
    close(kept.to_numpy(), passed)


@check
def mathematics():
    host = samples()
    result = ti.field(ti.f32, shape=(8, 1000))
    values = ti.field(ti.f32, shape=1000)
    values.from_numpy(host)

    @ti.kernel
    def compute():
        for i in values:
            x = values[i]
            result[0, i] = ti.sin(x)
            result[1, i] = ti.exp(x)
            result[2, i] = ti.sqrt(ti.abs(x))
            result[3, i] = ti.atan2(x, 2.0)
            result[4, i] = ti.tanh(x)
            result[5, i] = ti.floor(x)
            result[6, i] = ti.pow(ti.abs(x), 1.5)
            result[7, i] = ti.log(ti.abs(x) + 1)

    compute()
    size = numpy.abs(host)
    wanted = [
        numpy.sin(host), numpy.exp(host), numpy.sqrt(size), numpy.arctan2(host, 2), numpy.tanh(host),
        numpy.floor(host), size**1.5, numpy.log(size + 1),
    ]  # fmt: skip
    close(result.to_numpy(), numpy.stack(wanted), 1e-4)


@check
def doubles_and_integers():
    host = samples(kind=numpy.float64)
    roots = ti.field(ti.f64, shape=1000)
    roots.from_numpy(host)
    words = ti.field(ti.u64, shape=1000)

    @ti.kernel
    def compute():
        for i in roots:
            roots[i] = roots[i] / 3.0 + ti.cos(roots[i])
            words[i] = (ti.cast(i, ti.u64) * ti.u64(6364136223846793005)) >> 13

    compute()
    close(roots.to_numpy(), host / 3 + numpy.cos(host), 1e-12)
    wanted = (numpy.arange(1000, dtype=numpy.uint64) * numpy.uint64(6364136223846793005)) >> numpy.uint64(13)
    assert (words.to_numpy() == wanted).all()


@check
def sums_by_atomics():
    host = samples(100_000)
    values = ti.field(ti.f32, shape=100_000)
    values.from_numpy(host)
    total, most, bits = ti.field(ti.f64, shape=()), ti.field(ti.f32, shape=()), ti.field(ti.i32, shape=16)

    @ti.kernel
    def reduce() -> ti.f32:
        result = 0.0
        for i in values:
            total[None] += values[i]
            ti.atomic_max(most[None], values[i])
            bits[ti.cast(ti.floor(values[i]), ti.i32) & 15] += 1
            result += values[i]
        return result

    found = reduce()
    close(total[None], host.astype(numpy.float64).sum(), 1e-4)
    close(found, host.astype(numpy.float64).sum(), 1e-2)
    assert most[None] == host.max()
    counts = numpy.bincount(numpy.floor(host).astype(numpy.int32) & 15, minlength=16)
    assert (bits.to_numpy() == counts).all()


@check
def structures_with_pointers():
    tree = ti.field(ti.i32)
    block = ti.root.pointer(ti.ij, 16)
    block.dense(ti.ij, 8).place(tree)

    @ti.kernel
    def activate():
        for i in range(40):
            tree[i * 3, i * 2] = i + 1

    @ti.kernel
    def count() -> ti.i32:
        found = 0
        for i, j in tree:
            found += tree[i, j]
        return found

    activate()
    assert count() == sum(range(1, 41))
    block.deactivate_all()
    assert count() == 0


@check
def lists_that_grow():
    numbers = ti.field(ti.i32)
    row = ti.root.dynamic(ti.i, 1024, chunk_size=32)
    row.place(numbers)

    @ti.kernel
    def fill():
        for i in range(500):
            numbers.append(i)

    @ti.kernel
    def total() -> ti.i32:
        found = 0
        for i in numbers:
            found += numbers[i]
        return found

    fill()
    assert total() == sum(range(500))


@check
def gradients():
    x = ti.field(ti.f32, shape=64, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    host = samples(64)
    x.from_numpy(host)

    @ti.kernel
    def compute():
        for i in x:
            loss[None] += x[i] ** 2 + ti.sin(x[i])

    with ti.ad.Tape(loss):
        compute()
    close(x.grad.to_numpy(), 2 * host + numpy.cos(host), 1e-4)


@check
def matrices():
    host = numpy.random.default_rng(3).uniform(-1, 1, (100, 3, 3)).astype(numpy.float32)
    given = ti.Matrix.field(3, 3, ti.f32, shape=100)
    found = ti.Matrix.field(3, 3, ti.f32, shape=100)
    given.from_numpy(host)

    @ti.kernel
    def compute():
        for i in given:
            u, s, v = ti.svd(given[i])
            found[i] = u @ s @ v.transpose()

    compute()
    close(found.to_numpy(), host, 1e-3)


@check
def shared_memory_and_barriers():
    host = samples(1024)
    values = ti.field(ti.f32, shape=1024)
    sums = ti.field(ti.f32, shape=8)
    values.from_numpy(host)

    @ti.kernel
    def reduce():
        ti.loop_config(block_dim=128)
        for i in range(1024):
            lane = i % 128
            pad = ti.simt.block.SharedArray((128,), ti.f32)
            pad[lane] = values[i]
            ti.simt.block.sync()
            step = 64
            while step > 0:
                if lane < step:
                    pad[lane] += pad[lane + step]
                ti.simt.block.sync()
                step //= 2
            if lane == 0:
                sums[i // 128] = pad[0]

    reduce()
    close(sums.to_numpy(), host.reshape(8, 128).sum(axis=1), 1e-3)


@check
def particles_on_a_grid():
    count, cells = 2000, 32
    place = ti.Vector.field(2, ti.f32, shape=count)
    speed = ti.Vector.field(2, ti.f32, shape=count)
    mass = ti.field(ti.f32, shape=(cells, cells))
    momentum = ti.Vector.field(2, ti.f32, shape=(cells, cells))
    rng = numpy.random.default_rng(11)
    place.from_numpy(rng.uniform(0.2, 0.8, (count, 2)).astype(numpy.float32))
    speed.from_numpy(rng.uniform(-1, 1, (count, 2)).astype(numpy.float32))

    @ti.kernel
    def scatter():
        for p in place:
            base = ti.cast(place[p] * cells - 0.5, ti.i32)
            fx = place[p] * cells - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i][0] * w[j][1]
                mass[base + ti.Vector([i, j])] += weight
                momentum[base + ti.Vector([i, j])] += weight * speed[p]

    scatter()
    close(mass.to_numpy().sum(), count, 1e-3)
    close(momentum.to_numpy().sum(axis=(0, 1)), speed.to_numpy().sum(axis=0), 1e-2)


@check
def random_numbers():
    drawn = ti.field(ti.f32, shape=100_000)

    @ti.kernel
    def draw():
        for i in drawn:
            drawn[i] = ti.random()

    draw()
    found = drawn.to_numpy()
    assert 0 <= found.min() and found.max() < 1 and abs(found.mean() - 0.5) < 0.01
    assert len(numpy.unique(found)) > 90_000


@check
def printing():
    @ti.kernel
    def tell() -> ti.i32:
        print("lane", 42)
        return 42

    assert tell() == 42
    ti.sync()


if __name__ == "__main__":
    main()
