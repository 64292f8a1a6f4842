#!/usr/bin/env python3
"""Fits the polynomials of crates/simt-ir/src/approx.rs and prints them as Rust constants.

Each is a minimax fit of the relative error, by Lawson's iteration of weighted least squares. Coefficients are rounded to
f32 one after another, lowest first, the others fitted again each time, so that later ones make up for the rounding of
earlier ones. Needs nothing but Python.
"""

from decimal import Decimal, getcontext
import math
import struct

getcontext().prec = 40
POINTS = 240
ROUNDS = 40


def f32(value):
    """The nearest f32, as a Decimal."""
    return Decimal(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def bits(value):
    return struct.unpack("<I", struct.pack("<f", float(value)))[0]


def solve(matrix, right):
    """Gaussian elimination with partial pivoting."""
    size = len(right)
    rows = [row[:] + [value] for row, value in zip(matrix, right)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, size):
            factor = rows[row][column] / rows[column][column]
            for at in range(column, size + 1):
                rows[row][at] -= factor * rows[column][at]
    solution = [Decimal(0)] * size
    for row in reversed(range(size)):
        rest = sum((rows[row][at] * solution[at] for at in range(row + 1, size)), Decimal(0))
        solution[row] = (rows[row][size] - rest) / rows[row][row]
    return solution


def minimax(target, low, high, degree, fixed):
    """Coefficients of the polynomial of `degree` that begins with `fixed`, and its largest relative error."""
    nodes = [math.cos(math.pi * (k + 0.5) / POINTS) for k in range(POINTS)]
    xs = [Decimal((low + high) / 2 + node * (high - low) / 2) for node in nodes]
    ys = [target(x) for x in xs]
    powers = [[x**k for k in range(degree + 1)] for x in xs]
    free = range(len(fixed), degree + 1)
    weights = [Decimal(1)] * POINTS
    best = None
    for _ in range(ROUNDS):
        if free:
            basis = [[p[k] / y for k in free] for p, y in zip(powers, ys)]
            rest = [
                (y - sum((c * p[k] for k, c in enumerate(fixed)), Decimal(0))) / y for p, y in zip(powers, ys)
            ]
            count = len(basis[0])
            normal = [
                [sum((w * row[i] * row[j] for w, row in zip(weights, basis)), Decimal(0)) for j in range(count)]
                for i in range(count)
            ]
            right = [
                sum((w * row[i] * r for w, row, r in zip(weights, basis, rest)), Decimal(0)) for i in range(count)
            ]
            coefficients = list(fixed) + solve(normal, right)
        else:
            coefficients = list(fixed)
        errors = [
            abs(sum((c * p[k] for k, c in enumerate(coefficients)), Decimal(0)) / y - 1) for p, y in zip(powers, ys)
        ]
        worst = max(errors)
        if best is None or worst < best[1]:
            best = coefficients, worst
        if not free:
            break
        weights = [w * (e + worst / 1000) for w, e in zip(weights, errors)]
        total = sum(weights)
        weights = [w / total for w in weights]
    return best


def fit(name, doc, target, low, high, degree, fixed=()):
    coefficients = [Decimal(c) for c in fixed]
    while len(coefficients) <= degree:
        fitted, _ = minimax(target, low, high, degree, coefficients)
        coefficients.append(f32(fitted[len(coefficients)]))
    _, error = minimax(target, low, high, degree, coefficients)
    print(f"/// {doc} Relative error 2^{math.log2(error):.1f} before rounding.")
    words = ", ".join(f"{bits(c):#010x}" for c in coefficients)
    print(f"const {name}: [u32; {degree + 1}] = [{words}];")


TWO = Decimal(2)
LN2 = TWO.ln()


def series(x, start, step):
    """Sum of (-1)^k x^k / (start * (start+1) * ... ), the sine and cosine series in x = argument squared."""
    term, total, n = Decimal(1), Decimal(1), start
    while abs(term) > Decimal(10) ** -38:
        term *= -x / (n * (n + 1))
        n += step
        total += term
    return total


def tanh_over(u):
    """tanh(sqrt u) / sqrt u."""
    root = u.sqrt()
    if root < Decimal("1e-12"):
        return Decimal(1) - u / 3
    e = (2 * root).exp()
    return (e - 1) / (e + 1) / root


if __name__ == "__main__":
    fit("EX2", "2^f for f in [-0.5, 0.5].", lambda f: (f * LN2).exp(), -0.5, 0.5, 6, [1])
    fit("LG2", "log2(1 + f) / f for f in [-0.25, 0.5].", lambda f: (1 + f).ln() / (f * LN2), -0.25, 0.5, 8)
    quarter = (math.pi / 4) ** 2 * 1.0001
    fit("SIN", "sin(r) / r in r^2, r up to pi/4.", lambda s: series(s, 2, 2), 0, quarter, 3, [1])
    fit("COS", "cos(r) in r^2, r up to pi/4.", lambda s: series(s, 1, 2), 0, quarter, 4, [1])
    fit("TANH", "tanh(x) / x in x^2, x up to 0.6.", tanh_over, 0, 0.36, 5, [1])
    fit("RSQRT", "1 / sqrt(1 + e) for e in [-0.0684, 0.0678].", lambda e: 1 / (1 + e).sqrt(), -0.0684, 0.0678, 4, [1])
