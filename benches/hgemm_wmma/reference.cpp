#include <vector>

#include "../common/gemm.h"

static void widen(size_t count, const _Float16 *from, float *to) {
#pragma omp parallel for simd
    for (size_t i = 0; i < count; i++) to[i] = float(from[i]);
}

// Widening costs n², the product n³.
void hgemm(int n, const void *a, const void *b, float *c) {
    const size_t count = size_t(n) * n;
    std::vector<float> left(count), right(count);
    widen(count, static_cast<const _Float16 *>(a), left.data());
    widen(count, static_cast<const _Float16 *>(b), right.data());
    gemm(n, left.data(), right.data(), c);
}
