// A matrix product as a C++ programmer writes it who knows registers: a few rows and 64 columns of the product stay there.
#pragma once

#include <stddef.h>

#include <algorithm>

template <typename T>
void gemm(int n, const T *a, const T *b, T *c) {
    constexpr int rows = 16 / sizeof(T), columns = 64;
#pragma omp parallel for collapse(2) schedule(static)
    for (int row = 0; row < n; row += rows)
        for (int column = 0; column < n; column += columns) {
            T sums[rows][columns] = {};
            for (int k = 0; k < n; k++)
                for (int r = 0; r < rows; r++) {
                    const T left = a[size_t(row + r) * n + k];
#pragma omp simd
                    for (int j = 0; j < columns; j++) sums[r][j] += left * b[size_t(k) * n + column + j];
                }
            for (int r = 0; r < rows; r++) std::copy_n(sums[r], columns, c + size_t(row + r) * n + column);
        }
}
