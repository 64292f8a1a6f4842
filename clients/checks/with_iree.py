"""Programs in MLIR that IREE compiles to PTX and runs on its device `cuda`, compared with NumPy."""

import math

import iree.compiler
import iree.runtime
import numpy
from checking import check, main

FLAGS = ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_89"]
random = numpy.random.default_rng(1)


def normal(*shape, dtype=numpy.float32):
    return random.standard_normal(shape).astype(dtype)


def ran(text, *arguments, entry="main"):
    """What a function of a module computes of the arguments."""
    code = iree.compiler.compile_str(f"module @m {{\n{text}\n}}", extra_args=FLAGS)
    context = iree.runtime.SystemContext(config=iree.runtime.Config("cuda"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    return context.modules.m[entry](*arguments).to_host()


def matmul(rows, inner, columns, of, to):
    """A product of matrices, whose elements are of one type and whose result is of another."""
    left, right, result = f"tensor<{rows}x{inner}x{of}>", f"tensor<{inner}x{columns}x{of}>", f"tensor<{rows}x{columns}x{to}>"
    zero = "0" if to == "i32" else "0.0"
    return f"""func.func @main(%a: {left}, %b: {right}) -> {result} {{
        %zero = arith.constant {zero} : {to}
        %empty = tensor.empty() : {result}
        %filled = linalg.fill ins(%zero : {to}) outs(%empty : {result}) -> {result}
        %product = linalg.matmul ins(%a, %b : {left}, {right}) outs(%filled : {result}) -> {result}
        return %product : {result} }}"""


@check
def product_of_floats():
    a, b = normal(300, 200), normal(200, 100)
    numpy.testing.assert_allclose(ran(matmul(300, 200, 100, "f32", "f32"), a, b), a @ b, atol=1e-3)


@check
def product_of_halves():
    a, b = normal(128, 256, dtype=numpy.float16), normal(256, 128, dtype=numpy.float16)
    wanted = a.astype(numpy.float64) @ b.astype(numpy.float64)
    numpy.testing.assert_allclose(ran(matmul(128, 256, 128, "f16", "f32"), a, b), wanted, atol=1e-3)


@check
def product_of_bytes():
    a, b = random.integers(-128, 128, (70, 90)).astype(numpy.int8), random.integers(-128, 128, (90, 50)).astype(numpy.int8)
    text = """func.func @main(%a: tensor<70x90xi8>, %b: tensor<90x50xi8>) -> tensor<70x50xi32> {
        %zero = arith.constant 0 : i32
        %empty = tensor.empty() : tensor<70x50xi32>
        %filled = linalg.fill ins(%zero : i32) outs(%empty : tensor<70x50xi32>) -> tensor<70x50xi32>
        %product = linalg.matmul ins(%a, %b : tensor<70x90xi8>, tensor<90x50xi8>) outs(%filled : tensor<70x50xi32>) -> tensor<70x50xi32>
        return %product : tensor<70x50xi32> }"""
    numpy.testing.assert_array_equal(ran(text, a, b), a.astype(numpy.int32) @ b.astype(numpy.int32))


@check
def softmax():
    x = normal(64, 1000)
    text = """func.func @main(%a: tensor<64x1000xf32>) -> tensor<64x1000xf32> {
        %empty = tensor.empty() : tensor<64x1000xf32>
        %r = linalg.softmax dimension(1) ins(%a : tensor<64x1000xf32>) outs(%empty : tensor<64x1000xf32>) -> tensor<64x1000xf32>
        return %r : tensor<64x1000xf32> }"""
    powers = numpy.exp(x)
    numpy.testing.assert_allclose(ran(text, x), powers / powers.sum(1, keepdims=True), rtol=1e-4)


@check
def sum_of_a_vector():
    x = random.integers(-1000, 1000, 100_000).astype(numpy.int32)
    text = """func.func @main(%a: tensor<100000xi32>) -> tensor<i32> {
        %zero = arith.constant 0 : i32
        %empty = tensor.empty() : tensor<i32>
        %filled = linalg.fill ins(%zero : i32) outs(%empty : tensor<i32>) -> tensor<i32>
        %r = linalg.reduce ins(%a : tensor<100000xi32>) outs(%filled : tensor<i32>) dimensions = [0]
            (%in: i32, %sum: i32) { %s = arith.addi %in, %sum : i32
                linalg.yield %s : i32 }
        return %r : tensor<i32> }"""
    assert ran(text, x) == x.sum()


@check
def convolution():
    image, kernel = normal(1, 34, 34, 16), normal(3, 3, 16, 32)
    text = """func.func @main(%a: tensor<1x34x34x16xf32>, %b: tensor<3x3x16x32xf32>) -> tensor<1x32x32x32xf32> {
        %zero = arith.constant 0.0 : f32
        %empty = tensor.empty() : tensor<1x32x32x32xf32>
        %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
        %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
            ins(%a, %b : tensor<1x34x34x16xf32>, tensor<3x3x16x32xf32>) outs(%filled : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
        return %r : tensor<1x32x32x32xf32> }"""
    wanted = sum(
        numpy.einsum("nhwc,cf->nhwf", image[:, i : i + 32, j : j + 32].astype(numpy.float64), kernel[i, j]) for i in range(3) for j in range(3)
    )
    numpy.testing.assert_allclose(ran(text, image, kernel), wanted, atol=1e-3)


@check
def functions():
    x = normal(1000)
    text = """func.func @main(%a: tensor<1000xf32>) -> tensor<1000xf32> {
        %1 = math.tanh %a : tensor<1000xf32>
        %2 = math.exp %1 : tensor<1000xf32>
        %3 = math.sin %a : tensor<1000xf32>
        %4 = arith.addf %2, %3 : tensor<1000xf32>
        %5 = math.erf %4 : tensor<1000xf32>
        return %5 : tensor<1000xf32> }"""
    wide = x.astype(numpy.float64)
    wanted = numpy.vectorize(math.erf)(numpy.exp(numpy.tanh(wide)) + numpy.sin(wide))
    numpy.testing.assert_allclose(ran(text, x), wanted, atol=1e-5)


@check
def sort_and_scatter():
    x = random.permutation(1000).astype(numpy.int32)
    text = """func.func @main(%a: tensor<1000xi32>) -> tensor<1000xi32> {
        %r = iree_linalg_ext.sort dimension(0) outs(%a : tensor<1000xi32>) {
            ^bb0(%p: i32, %q: i32):
                %less = arith.cmpi slt, %p, %q : i32
                iree_linalg_ext.yield %less : i1 } -> tensor<1000xi32>
        return %r : tensor<1000xi32> }"""
    numpy.testing.assert_array_equal(ran(text, x), numpy.arange(1000))


@check
def loop_on_the_host():
    x = normal(500)
    text = """func.func @main(%a: tensor<500xf32>) -> tensor<500xf32> {
        %from = arith.constant 0 : index
        %to = arith.constant 20 : index
        %one = arith.constant 1 : index
        %half = arith.constant dense<0.5> : tensor<500xf32>
        %r = scf.for %i = %from to %to step %one iter_args(%v = %a) -> tensor<500xf32> {
            %w = arith.mulf %v, %half : tensor<500xf32>
            %n = arith.addf %w, %a : tensor<500xf32>
            scf.yield %n : tensor<500xf32> }
        return %r : tensor<500xf32> }"""
    wanted = x.copy()
    for _ in range(20):
        wanted = wanted * numpy.float32(0.5) + x
    numpy.testing.assert_allclose(ran(text, x), wanted, rtol=1e-5)


if __name__ == "__main__":
    main()
