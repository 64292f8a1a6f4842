"""Systems that cholespy solves on the device, beside its CPU's solutions of them."""

import cholespy
import drjit
import numpy
import scipy.sparse
from checking import check, main
from drjit.cuda import TensorXf, TensorXf64, TensorXi

random = numpy.random.default_rng(3)


def grid(side):
    """The differences of neighbours in a square grid, and a little of each place itself."""
    sizes = [-1, -1, 4.5, -1, -1]
    return scipy.sparse.diags(sizes, [-side, -1, 0, 1, side], shape=(side * side, side * side)).tocoo()


def scattered(size, density):
    """One whose places are anywhere."""
    part = scipy.sparse.random(size, size, density, random_state=4)
    return (part @ part.T + scipy.sparse.eye(size) * size * density * 2).tocoo()


def on_device(kind, values):
    array = kind(values)
    drjit.eval(array)
    drjit.sync_thread()
    return array


def solves(matrix, columns, is_double):
    """That the device finds what the CPU does, twice with one solver."""
    solver = cholespy.CholeskySolverD if is_double else cholespy.CholeskySolverF
    kind, dtype = (TensorXf64, numpy.float64) if is_double else (TensorXf, numpy.float32)
    size, order = matrix.shape[0], cholespy.MatrixType.COO
    rows, cols = matrix.row.astype(numpy.int32), matrix.col.astype(numpy.int32)
    of_host = solver(size, rows, cols, matrix.data, order)
    places = [on_device(TensorXi, places) for places in (rows, cols)]
    of_device = solver(size, *places, on_device(TensorXf64, matrix.data), order)
    for _ in range(2):
        right = random.normal(size=(size, columns)).astype(dtype)
        expected = numpy.zeros_like(right)
        of_host.solve(right, expected)
        found = on_device(kind, numpy.zeros_like(right))
        of_device.solve(on_device(kind, right), found)
        drjit.sync_thread()
        tolerance = 1e-11 if is_double else 1e-4
        numpy.testing.assert_allclose(found.numpy(), expected, atol=tolerance, rtol=tolerance)


@check
def small_grids():
    for columns in (1, 3, 40, 128):
        solves(grid(20), columns, False)
        solves(grid(20), columns, True)


@check
def larger_grids():
    for columns in (1, 32):
        solves(grid(50), columns, False)
        solves(grid(50), columns, True)


@check
def scattered_places():
    for columns in (1, 5, 64):
        solves(scattered(300, 0.02), columns, False)
        solves(scattered(300, 0.02), columns, True)


if __name__ == "__main__":
    main()
